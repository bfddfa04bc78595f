"""Springs, dampers and bushings, and their characteristics."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from daedal import Table
from daedal.errors import InvalidProblemError, Unevaluable
from daedal.multibody.body import Frame
from daedal.multibody.force import Force, joint_name, three_numbers, title, two_frames
from daedal.multibody.kinematics import cross
from daedal.problems.checks import check_finite, check_real, set_checked


def law_of(given: Any, what: str) -> float | Table | Callable[[Any], Any]:
    """Convert a value to a characteristic: a factor, a table from pairs (x, force), or a function of x."""
    if isinstance(given, Table) or callable(given):
        return given
    if isinstance(given, (list, tuple, np.ndarray)):
        pairs = check_real(given, what, "be a number, pairs (x, force), a Table or a function")
        if pairs.ndim != 2 or pairs.shape[1] != 2:
            raise InvalidProblemError(
                f"{what} as a table must be pairs (x, force), got an array of shape {pairs.shape}"
            )
        try:
            return Table(pairs[:, 0], pairs[:, 1])
        except InvalidProblemError as error:
            raise InvalidProblemError(f"{what}: {error}") from None
    return check_finite(given, what)


def value_of(law, x):
    """The force at x."""
    return law(x) if callable(law) else law * x


def energy_of(law, x) -> float:
    """The integral of the force from 0 to x."""
    if not callable(law):
        return 0.5 * law * x**2
    from scipy.integrate import quad

    low, high = sorted((0.0, float(x)))
    inside = [p for p in law.times if low < p < high] if isinstance(law, Table) else None
    return float(quad(law, 0.0, float(x), points=inside or None, limit=200)[0])


@dataclass(frozen=True, eq=False, repr=False)
class Spring(Force):
    r"""A spring with a damper between two points.

    The tension along the line from a to b is :math:`F = F_k(\ell - \ell_0) + F_d(\dot\ell)`.

    Parameters
    ----------
    name : str
        A unique name.
    a, b : Body or Frame
        The two ends.
    stiffness : number, pairs, Table or callable
        :math:`F_k`: a number k for :math:`F_k(x) = k x`, pairs (x, force) or a :class:`daedal.Table` (constant beyond
        its ends), or a function of the extension x.
    length : float
        The free length :math:`\ell_0`. If it is 0, tables and functions refer to the length.
    damping : number, pairs, Table or callable
        :math:`F_d`, as a function of the rate of the length.

    Notes
    -----
    The potential energy is :math:`\int_0^{\ell - \ell_0} F_k`. The direction of the line is undefined if the ends
    coincide; only a spring with a number as stiffness, free length zero and no damping can pass through this point.

    Examples
    --------
    A mass on a spring has the period 2 pi sqrt(m/k):

    >>> import numpy as np
    >>> import daedal
    >>> from daedal.multibody import Body, Model, Prismatic, Spring, ground
    >>> mass = Body.particle("mass", mass=2.0)
    >>> model = Model(
    ...     Prismatic("rail", ground, mass, axis="x"),
    ...     Spring("spring", ground.at(-1.0, 0.0), mass, stiffness=8.0, length=1.0),
    ... )
    >>> sol = daedal.solve(model.system(), (0.0, np.pi), ([0.1], [0.0]), rtol=1e-9, atol=1e-12)
    >>> print(f"{sol['rail'][-1]:.6f}")
    0.100000
    """

    name: str
    a: Any
    b: Any
    stiffness: Any = 0.0
    length: float = 0.0
    damping: Any = 0.0

    def __post_init__(self):
        what = title(self)
        a, b = two_frames(self, what)
        set_checked(
            self,
            a=a,
            b=b,
            stiffness=law_of(self.stiffness, f"stiffness of {what}"),
            length=check_finite(self.length, f"length of {what}"),
            damping=law_of(self.damping, f"damping of {what}"),
        )
        if self.length < 0.0:
            raise InvalidProblemError(f"length of {what} must not be negative, got {self.length:g}")
        set_checked(self, frames=(self.a, self.b))

    def apply(self, t, motion, loads):
        if not callable(self.stiffness) and self.length == 0.0 and self.damping == 0.0:
            pull = self.stiffness * (motion.position(self.b) - motion.position(self.a))
        else:
            length, rate, along = line(self.a, self.b, motion, title(self))
            pull = (value_of(self.stiffness, length - self.length) + value_of(self.damping, rate)) * along
        loads.force(self.a, pull)
        loads.force(self.b, -pull)

    def energy(self, t, motion) -> float:
        """Elastic energy."""
        d = motion.position(self.b) - motion.position(self.a)
        return energy_of(self.stiffness, float(np.sqrt(d @ d)) - self.length)

    def power(self, t, motion) -> float:
        """Power of the damper; not positive if it dissipates."""
        if self.damping == 0.0:
            return 0.0
        _, rate, _ = line(self.a, self.b, motion, title(self))
        return -float(value_of(self.damping, rate) * rate)


@dataclass(frozen=True, eq=False, repr=False)
class Damper(Spring):
    """A damper between two points: tension :math:`F_d` of the rate of the length; see :class:`Spring`.

    Examples
    --------
    >>> from daedal.multibody import Body, Damper, ground
    >>> Damper("strut", ground, Body.particle("mass", mass=1.0), damping=[(-1.0, -300.0), (0.0, 0.0), (1.0, 900.0)])
    Damper('strut')
    """


def line(a: Frame, b: Frame, motion, who: str):
    """Length, its rate, and the direction of the line from a to b."""
    d = motion.position(b) - motion.position(a)
    speed = motion.velocity(b) - motion.velocity(a)
    length = np.sqrt(d[0] ** 2 + d[1] ** 2 + d[2] ** 2)
    if isinstance(length, float) and length == 0.0:  # only for numbers; the traced function has no branch
        raise Unevaluable(
            f"{who}: its ends coincide, so the direction of its line is undefined. Remedy: start with its ends "
            "apart, or use a spring with a number as stiffness, free length 0 and no damping, or a Bushing"
        )
    along = d / length
    return length, along[0] * speed[0] + along[1] * speed[1] + along[2] * speed[2], along


@dataclass(frozen=True, eq=False, repr=False)
class TorsionSpring(Force):
    r"""A spring and damper acting on a joint coordinate, usually an angle.

    The torque on the second body of the joint is :math:`M = -M_k(\varphi - \varphi_0) - M_d(\dot\varphi)`. For a
    coordinate that is a displacement it is a force along the axis.

    Parameters
    ----------
    name : str
        A unique name.
    joint : Joint or str
        The joint or its name.
    stiffness : number, pairs, Table or callable
        :math:`M_k`, as for :class:`Spring`; a number k denotes :math:`M_k(x) = k x`.
    angle : float
        :math:`\varphi_0`, the rest position of the spring.
    damping : number, pairs, Table or callable
        :math:`M_d`, as a function of the rate.
    which : str, optional
        Coordinate name, if the joint has several: "angle", "displacement", "second_angle" (universal joint).

    Notes
    -----
    In relative coordinates angles count turns. In absolute ones, and at cut joints, they are computed from the axes of
    the two bodies, between -pi and pi.

    Examples
    --------
    >>> from daedal.multibody import Body, Model, Revolute, TorsionSpring, ground
    >>> door = Body.box("door", size=(0.8, 0.04, 2.0), mass=20.0)
    >>> hinge = Revolute("hinge", ground, door.at(-0.4, 0, 0))
    >>> model = Model(hinge, TorsionSpring("closer", hinge, stiffness=10.0, damping=4.0))
    >>> print(model.system().at(0.0, [0.5], [0.0]).force)
    [-5.]
    """

    name: str
    joint: Any
    stiffness: Any = 0.0
    angle: float = 0.0
    damping: Any = 0.0
    which: str | None = None

    def __post_init__(self):
        what = title(self)
        set_checked(
            self,
            joint=joint_name(self.joint, what),
            stiffness=law_of(self.stiffness, f"stiffness of {what}"),
            angle=check_finite(self.angle, f"angle of {what}"),
            damping=law_of(self.damping, f"damping of {what}"),
        )
        set_checked(self, joints=(self.joint,))

    def apply(self, t, motion, loads):
        moment = value_of(self.stiffness, motion.coordinate(self.joint, self.which) - self.angle)
        if self.damping != 0.0:
            moment = moment + value_of(self.damping, motion.rate(self.joint, self.which))
        loads.joint(self.joint, -moment, self.which)

    def energy(self, t, motion) -> float:
        """Elastic energy."""
        return energy_of(self.stiffness, float(motion.coordinate(self.joint, self.which)) - self.angle)

    def power(self, t, motion) -> float:
        """Power of the damper."""
        rate = motion.rate(self.joint, self.which)
        return -float(value_of(self.damping, rate) * rate)


@dataclass(frozen=True, eq=False, repr=False)
class Bushing(Force):
    r"""An elastic link between two frames, with stiffness and damping along and about three axes.

    With the shift :math:`\delta = A^T (p_b - p_a)` and the rotation :math:`R = A^T B` of frame b in the axes A of
    frame a, its Euler parameters :math:`(p_0, e)` and :math:`\theta = 2 e` (:math:`2 \sin(\varphi/2)` times the axis),
    force and torque on b are, in the axes of a,

    .. math:: F = -K \delta - C \dot\delta, \qquad T = -(p_0 m + e \times m) - C_r \omega, \quad m = K_r \theta .

    The elastic part has the potential :math:`\frac12 \delta^T K \delta + \frac12 \theta^T K_r \theta`, even for large
    rotations (less than half a turn); for small rotations :math:`T = -K_r \theta`.

    Parameters
    ----------
    name : str
        A unique name.
    a, b : Body or Frame
        The two frames; the bushing is at rest when they coincide.
    stiffness, damping : number or three numbers
        Values along the axes of frame a.
    torsional_stiffness, torsional_damping : number or three numbers
        Values about the axes of frame a.

    Examples
    --------
    >>> from daedal.multibody import Body, Bushing, Free, Model, ground
    >>> engine = Body.box("engine", size=(0.6, 0.5, 0.5), mass=120.0)
    >>> mount = Bushing("mount", ground, engine, stiffness=(2e5, 1e5, 1e5), torsional_stiffness=800.0, damping=300.0)
    >>> model = Model(Free("suspension", ground, engine), mount)
    >>> print(model.system().at(0.0, [0.001, 0, 0, 1, 0, 0, 0], [0.0] * 7).force.round(6)[:3])
    [-200.    0.    0.]
    """

    name: str
    a: Any
    b: Any
    stiffness: Any = 0.0
    torsional_stiffness: Any = 0.0
    damping: Any = 0.0
    torsional_damping: Any = 0.0

    def __post_init__(self):
        what = title(self)
        a, b = two_frames(self, what)
        names = ("stiffness", "torsional_stiffness", "damping", "torsional_damping")
        set_checked(self, a=a, b=b, **{name: three_numbers(getattr(self, name), f"{name} of {what}") for name in names})
        set_checked(self, frames=(self.a, self.b))

    def _strain(self, motion):
        axes = motion.rotation(self.a)
        d = motion.position(self.b) - motion.position(self.a)
        R = axes.T @ motion.rotation(self.b)
        p0 = 0.5 * np.sqrt(1.0 + R[0, 0] + R[1, 1] + R[2, 2])
        e = np.zeros(3)
        e[0] = (R[2, 1] - R[1, 2]) / (4.0 * p0)
        e[1] = (R[0, 2] - R[2, 0]) / (4.0 * p0)
        e[2] = (R[1, 0] - R[0, 1]) / (4.0 * p0)
        return axes, d, axes.T @ d, p0, e

    def _rates(self, motion, axes, d):
        carried = motion.angular_velocity(self.a)
        slip = axes.T @ (motion.velocity(self.b) - motion.velocity(self.a) - cross(carried, d))
        return slip, axes.T @ (motion.angular_velocity(self.b) - carried)

    def apply(self, t, motion, loads):
        axes, d, shift, p0, e = self._strain(motion)
        slip, spin = self._rates(motion, axes, d)
        moment = 2.0 * self.torsional_stiffness * e
        force = axes @ (self.stiffness * shift + self.damping * slip)
        torque = axes @ (p0 * moment + cross(e, moment) + self.torsional_damping * spin)
        loads.force(self.b, -force)
        loads.torque(self.b, -torque)
        loads.force(self.a, force)
        loads.torque(self.a, torque + cross(d, force))

    def energy(self, t, motion) -> float:
        """Elastic energy."""
        _, _, shift, _, e = self._strain(motion)
        return 0.5 * float(self.stiffness @ shift**2) + 2.0 * float(self.torsional_stiffness @ e**2)

    def power(self, t, motion) -> float:
        """Power of the damping."""
        axes, d, *_ = self._strain(motion)
        slip, spin = self._rates(motion, axes, d)
        return -float(self.damping @ slip**2 + self.torsional_damping @ spin**2)
