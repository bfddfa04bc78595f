"""Forces on single bodies, attraction between bodies, drag, and smooth friction and contact, without modes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from daedal.errors import InvalidProblemError
from daedal.multibody.body import Frame, direction, point, positive
from daedal.multibody.force import Force, frame_of, joint_name, title, two_frames, vector, vector_or_function
from daedal.multibody.kinematics import cross
from daedal.multibody.motion import power_of
from daedal.multibody.spring import line
from daedal.problems.checks import check_finite, set_checked

_SPEED_AT_REST = 1e-200  # added under the square root, so that the speed is differentiable at rest


@dataclass(frozen=True, eq=False, repr=False)
class GeneralForce(Force):
    """A force on a body, constant or given by a function.

    Parameters
    ----------
    name : str
        A unique name.
    at : Body or Frame
        Point of application: the origin of the frame.
    force : vector, str or callable
        Two or three components, the name of a vector input, or a function ``force(t, motion)``, in the axes of the
        ground, or of the frame if `follows`.
    follows : bool
        Whether the force rotates with the body, like the thrust of a rocket.

    Examples
    --------
    >>> from daedal.multibody import Body, Free, GeneralForce, Model, ground
    >>> kite = Body.sphere("kite", radius=0.1, mass=1.0)
    >>> wind = GeneralForce("wind", kite, lambda t, motion: (2.0 * t, -motion.position(kite.at())[0]))
    >>> model = Model(Free("flight", ground, kite), wind, planar=True)
    >>> print(model.system().at(1.0, [3.0, 0.0, 0.0], [0.0, 0.0, 0.0]).force)
    [ 2. -3.  0.]
    """

    name: str
    at: Any
    force: Any
    follows: bool = False

    driven = ("force",)

    def default_input(self, planar):
        return np.zeros(2 if planar else 3)

    def __post_init__(self):
        what = title(self)
        given = vector_or_function(self.force, f"force of {what}")
        set_checked(self, at=frame_of(self.at, f"at of {what}"), force=given)
        set_checked(self, frames=(self.at,))

    def _vector(self, t, motion):
        value = self.force
        if isinstance(value, str):
            value = vector(motion.input(value), f"input '{value}' of {title(self)}")
        elif callable(value):
            value = vector(value(t, motion), f"the function of {title(self)}")
        return motion.rotation(self.at) @ value if self.follows else value

    def apply(self, t, motion, loads):
        loads.force(self.at, self._vector(t, motion))


@dataclass(frozen=True, eq=False, repr=False)
class Torque(Force):
    """A torque on a body, constant or given by a function.

    Parameters
    ----------
    name : str
        A unique name.
    at : Body or Frame
        The body, or a frame on it that provides the axes.
    torque : number, vector, str or callable
        Three components, the name of a vector input, or a function ``torque(t, motion)``, in the axes of the ground,
        or of the frame if `follows`; a single number is a torque about the z axis.
    follows : bool
        Whether the torque rotates with the body.

    Examples
    --------
    >>> from daedal.multibody import Body, Model, Revolute, Torque, ground
    >>> disc = Body.cylinder("disc", radius=0.5, length=0.1, mass=4.0)
    >>> model = Model(Revolute("axle", ground, disc), Torque("twist", disc, lambda t, motion: 3.0))
    >>> print(model.system().at(0.0, [0.0], [0.0]).force)
    [3.]
    """

    name: str
    at: Any
    torque: Any
    follows: bool = False

    driven = ("torque",)

    def default_input(self, planar):
        return 0.0 if planar else np.zeros(3)

    def __post_init__(self):
        what = title(self)
        is_number = not callable(self.torque) and not isinstance(self.torque, str) and np.ndim(self.torque) == 0
        torque = (0.0, 0.0, self.torque) if is_number else self.torque
        given = vector_or_function(torque, f"torque of {what}")
        set_checked(self, at=frame_of(self.at, f"at of {what}"), torque=given)
        set_checked(self, frames=(self.at,))

    def apply(self, t, motion, loads):
        value = self.torque
        if callable(value) or isinstance(value, str):
            given = motion.input(value) if isinstance(value, str) else value(t, motion)
            value = vector(given if np.ndim(given) else (0.0, 0.0, given), f"the value of {title(self)}")
        loads.torque(self.at, motion.rotation(self.at) @ value if self.follows else value)


@dataclass(frozen=True, eq=False, repr=False)
class Gravitation(Force):
    r"""Newton's attraction between two bodies, :math:`G m_a m_b / r^2` between two points.

    Parameters
    ----------
    name : str
        A unique name.
    a, b : Body or Frame
        The two bodies (their centres of mass) or frames.
    constant : float
        Gravitational constant G; by default 6.6743e-11 m^3/(kg s^2).
    mass : float, optional
        Mass :math:`m_a`, by default that of the body; required if a is on the ground.

    Examples
    --------
    >>> from daedal.multibody import Body, Free, Gravitation, Model, ground
    >>> moon = Body.sphere("moon", radius=1.74e6, mass=7.35e22)
    >>> pull = Gravitation("pull", ground, moon, mass=5.97e24)
    >>> model = Model(Free("orbit", ground, moon), pull, planar=True)
    >>> print(f"{model.system().at(0.0, [3.844e8, 0.0, 0.0], [0.0, 0.0, 0.0]).force[0]:.3e}")
    -1.982e+20
    """

    name: str
    a: Any
    b: Any
    constant: float = 6.6743e-11
    mass: float | None = None

    def __post_init__(self):
        what = title(self)
        for side in ("a", "b"):
            given = getattr(self, side)
            if hasattr(given, "center"):
                object.__setattr__(self, side, Frame(given, given.center))
        a, b = two_frames(self, what)
        mass = positive(self.mass, f"mass of {what}") if self.mass is not None else a.body.mass
        if mass <= 0.0 or b.body.mass <= 0.0:
            which = a if mass <= 0.0 else b
            raise InvalidProblemError(
                f"{what}: body '{which.body.name}' has no mass; give it one, or pass mass=... for a"
            )
        set_checked(self, a=a, b=b, constant=check_finite(self.constant, f"constant of {what}"), mass=mass)
        set_checked(self, frames=(self.a, self.b))

    @property
    def _strength(self) -> float:
        return self.constant * float(self.mass or 0.0) * self.b.body.mass

    def apply(self, t, motion, loads):
        distance, _, along = line(self.a, self.b, motion, title(self))
        pull = self._strength / distance**2 * along
        loads.force(self.a, pull)
        loads.force(self.b, -pull)

    def energy(self, t, motion) -> float:
        """Potential energy, zero at infinite distance."""
        d = motion.position(self.b) - motion.position(self.a)
        return -self._strength / float(np.sqrt(d @ d))

    def power(self, t, motion) -> float:
        """Zero: the force has a potential."""
        return 0.0


@dataclass(frozen=True, eq=False, repr=False)
class Drag(Force):
    r"""Drag of air or water at a point: :math:`F = -(c_1 + c_2 |w|)\, w`, with the velocity w relative to the medium.

    Parameters
    ----------
    name : str
        A unique name.
    at : Body or Frame
        Point of application.
    linear : float
        :math:`c_1` (a small sphere: :math:`6 \pi \eta r`, Stokes).
    quadratic : float
        :math:`c_2 = \frac12 \rho\, c_w A`.
    wind : vector
        The velocity of the medium.

    Examples
    --------
    >>> from daedal.multibody import Body, Drag, Free, Model, ground
    >>> ball = Body.sphere("ball", radius=0.1, mass=1.0)
    >>> model = Model(Free("flight", ground, ball), Drag("air", ball, quadratic=0.5), planar=True)
    >>> print(model.system().at(0.0, [0.0, 0.0, 0.0], [3.0, 4.0, 0.0]).force)
    [ -7.5 -10.    0. ]
    """

    name: str
    at: Any
    linear: float = 0.0
    quadratic: float = 0.0
    wind: Any = (0.0, 0.0, 0.0)

    def __post_init__(self):
        what = title(self)
        set_checked(
            self,
            at=frame_of(self.at, f"at of {what}"),
            linear=check_finite(self.linear, f"linear of {what}"),
            quadratic=check_finite(self.quadratic, f"quadratic of {what}"),
            wind=point(self.wind, f"wind of {what}"),
        )
        set_checked(self, frames=(self.at,))

    def apply(self, t, motion, loads):
        w = motion.velocity(self.at) - self.wind
        speed = np.sqrt(w[0] ** 2 + w[1] ** 2 + w[2] ** 2 + _SPEED_AT_REST)
        loads.force(self.at, -(self.linear + self.quadratic * speed) * w)


@dataclass(frozen=True, eq=False, repr=False)
class SmoothFriction(Force):
    r"""Friction at a joint without sticking: :math:`M = -M_0 \tanh(\dot\varphi / v_0)`.

    Under a load M at which dry friction would stick, the joint creeps at the rate
    :math:`v_0\, \mathrm{artanh}(M / M_0)`.

    Parameters
    ----------
    name : str
        A unique name.
    joint : Joint or str
        The joint or its name.
    torque : float
        Friction level :math:`M_0`: a torque at a hinge, a force at a slider.
    speed : float
        Speed :math:`v_0`, small compared with the rates of the joint; smaller values make the equations stiffer.
    which : str, optional
        Coordinate name, if the joint has several coordinates.

    Examples
    --------
    >>> from daedal.multibody import Body, Model, Revolute, SmoothFriction, ground
    >>> wheel = Body.cylinder("wheel", radius=0.5, length=0.1, mass=4.0)
    >>> model = Model(Revolute("axle", ground, wheel), SmoothFriction("bearing", "axle", torque=2.0, speed=0.01))
    >>> print(model.system().at(0.0, [0.0], [1.0]).force)
    [-2.]
    """

    name: str
    joint: Any
    torque: float
    speed: float
    which: str | None = None

    def __post_init__(self):
        what = title(self)
        set_checked(
            self,
            joint=joint_name(self.joint, what),
            torque=positive(self.torque, f"torque of {what}"),
            speed=positive(self.speed, f"speed of {what}"),
        )
        set_checked(self, joints=(self.joint,))

    def apply(self, t, motion, loads):
        loads.joint(self.joint, -self.torque * np.tanh(motion.rate(self.joint, self.which) / self.speed), self.which)


@dataclass(frozen=True, eq=False, repr=False)
class SoftContact(Force):
    r"""A ball or a point that penetrates a plane to the depth :math:`\delta = r - n \cdot (p - p_0)`.

    For :math:`\delta > 0` the force along n is

    .. math:: F = k\, \delta^p \left(1 + d\, \dot\delta\right), \qquad F \ge 0,

    linear for p = 1, Hertz's law for p = 3/2 (a ball of radius R and the effective modulus :math:`E^*`:
    :math:`k = \tfrac43 E^* \sqrt R`); the damping is that of K. H. Hunt and F. R. E. Crossley, J. Appl. Mech. 42 (1975)
    440-445, with :math:`d \approx \tfrac32 (1 - e) / \dot\delta_0` for the restitution e at the speed of impact
    :math:`\dot\delta_0`. Friction along the plane is :math:`-\mu F\, w / \sqrt{|w|^2 + v_0^2}` with the velocity w of
    the point relative to the plane: a simple model of a locked tyre.

    Parameters
    ----------
    name : str
        A unique name.
    point : Body or Frame
        The point, or the centre of a ball.
    against : Body or Frame
        A point of the plane.
    normal : direction
        Normal n of the plane, towards the point, in the axes of `against`.
    stiffness : float
        Stiffness k.
    exponent : float
        Exponent p, at least 1.
    damping : float
        Damping factor d.
    radius : float
        Radius r of a ball; 0 for a point.
    friction : float
        Friction coefficient :math:`\mu`.
    speed : float
        Speed :math:`v_0` below which friction is reduced.

    Notes
    -----
    There are no modes, so any number of these contacts is possible; contact changes are located as switches of the
    force. Steps are short during a stiff contact.

    Examples
    --------
    A ball of 1 kg rests where k delta = m g:

    >>> from daedal.multibody import Body, Free, Model, SoftContact, ground
    >>> ball = Body.sphere("ball", radius=0.1, mass=1.0)
    >>> floor = SoftContact("floor", ball, ground, "y", stiffness=9810.0, radius=0.1)
    >>> model = Model(Free("flight", ground, ball), floor, gravity=(0.0, -9.81), planar=True)
    >>> print(model.system().at(0.0, [0.0, 0.099, 0.0], [0.0, 0.0, 0.0]).force.round(9) + 0.0)
    [0. 0. 0.]
    """

    name: str
    point: Any
    against: Any
    normal: Any
    stiffness: float = 0.0
    exponent: float = 1.0
    damping: float = 0.0
    radius: float = 0.0
    friction: float = 0.0
    speed: float = 0.01

    def __post_init__(self):
        what = title(self)
        exponent = check_finite(self.exponent, f"exponent of {what}")
        if exponent < 1.0:
            raise InvalidProblemError(f"exponent of {what} must be at least 1, got {exponent:g}")
        values = {
            name: check_finite(getattr(self, name), f"{name} of {what}") for name in ("damping", "radius", "friction")
        }
        for name, value in values.items():
            if value < 0.0:
                raise InvalidProblemError(f"{name} of {what} must not be negative, got {value:g}")
        set_checked(
            self,
            point=frame_of(self.point, f"point of {what}"),
            against=frame_of(self.against, f"against of {what}"),
            normal=direction(self.normal, f"normal of {what}"),
            stiffness=positive(self.stiffness, f"stiffness of {what}"),
            exponent=exponent,
            speed=positive(self.speed, f"speed of {what}"),
            **values,
        )
        set_checked(self, frames=(self.point, self.against))

    def _touch(self, motion):
        """Normal, elastic force, depth and its rate, position and velocity of the contact point."""
        n = motion.rotation(self.against) @ self.normal
        arm = -self.radius * n
        lever = motion.position(self.point) + arm - motion.position(self.against)
        of_point = motion.velocity(self.point) + cross(motion.angular_velocity(self.point), arm)
        of_plane = motion.velocity(self.against) + cross(motion.angular_velocity(self.against), lever)
        w = of_point - of_plane
        depth, rate = np.maximum(-np.dot(n, lever), 0.0), -np.dot(n, w)
        return n, self.stiffness * depth**self.exponent, depth, rate, arm, lever, w

    def apply(self, t, motion, loads):
        n, elastic, _, rate, arm, lever, w = self._touch(motion)
        pressure = np.maximum(elastic * (1.0 + self.damping * rate), 0.0)
        force = pressure * n
        if self.friction:
            along = w + rate * n
            speed = np.sqrt(along[0] ** 2 + along[1] ** 2 + along[2] ** 2 + self.speed**2)
            force = force - self.friction * pressure / speed * along
        loads.force(self.point, force)
        loads.torque(self.point, cross(arm, force))
        loads.force(self.against, -force)
        loads.torque(self.against, -cross(lever, force))

    def energy(self, t, motion) -> float:
        """Elastic energy of the penetration."""
        _, elastic, depth, *_ = self._touch(motion)
        return float(elastic * depth) / (self.exponent + 1.0)

    def power(self, t, motion) -> float:
        """Power of damping and friction, negative if dissipated."""
        _, elastic, _, rate, *_ = self._touch(motion)
        return power_of(self, t, motion) + float(elastic * rate)
