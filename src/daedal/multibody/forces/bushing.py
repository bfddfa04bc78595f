"""Bushings: elastic links with six stiffnesses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from daedal.multibody.forces.force import Force, three_numbers, title, two_frames
from daedal.multibody.kinematics import cross
from daedal.problems.checks import set_checked


@dataclass(frozen=True, eq=False, repr=False)
class Bushing(Force):
    r"""An elastic link between two frames, with stiffness and damping along and about three axes.

    With the shift :math:`\delta = A^T (p_b - p_a)` and the rotation :math:`R = A^T B` of frame b in the axes A of
    frame a, its Euler parameters :math:`(p_0, e)` and :math:`\theta = 2 e` (:math:`2 \sin(\varphi/2)` times the axis),
    force and torque on b are, in the axes of a,

    .. math:: F = -K \delta - C \dot\delta, \qquad T = -(p_0 m + e \times m) - C_r \omega, \quad m = K_r \theta .

    The elastic part has the potential :math:`\frac12 \delta^T K \delta + \frac12 \theta^T K_r \theta`, also where
    rotations are large (less than half a turn); for small ones :math:`T = -K_r \theta`.

    Parameters
    ----------
    name : str
        A name that no other force of the model has.
    a, b : Body or Frame
        The two frames; the link is at rest where they coincide.
    stiffness, damping : number or three numbers
        Along the axes of frame a.
    torsional_stiffness, torsional_damping : number or three numbers
        About the axes of frame a.

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
        """Push and turn the frames together; the force acts at the origin of b on both bodies."""
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
        """What is stored in the link."""
        _, _, shift, _, e = self._strain(motion)
        return 0.5 * float(self.stiffness @ shift**2) + 2.0 * float(self.torsional_stiffness @ e**2)

    def power(self, t, motion) -> float:
        """What damping takes."""
        axes, d, *_ = self._strain(motion)
        slip, spin = self._rates(motion, axes, d)
        return -float(self.damping @ slip**2 + self.torsional_damping @ spin**2)
