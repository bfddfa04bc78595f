"""Friction and contact without modes: forces that change rapidly but continuously."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from daedal.errors import InvalidProblemError
from daedal.multibody.forces.force import Force, frame_of, joint_name, title
from daedal.multibody.kinematics import cross
from daedal.multibody.motion import power_of
from daedal.multibody.rotation import direction, positive
from daedal.problems.checks import check_finite, set_checked


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
    the point against the plane: a simple tyre that locks.

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
