"""Springs and dampers at joints."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from daedal.multibody.forces.force import Force, joint_name, title
from daedal.multibody.forces.laws import energy_of, law_of, value_of
from daedal.problems.checks import check_finite, set_checked


@dataclass(frozen=True, eq=False, repr=False)
class TorsionSpring(Force):
    r"""A spring with a damper that acts on the coordinate of a joint, as a rule an angle.

    The torque on the second body of the joint is :math:`M = -M_k(\varphi - \varphi_0) - M_d(\dot\varphi)`. For a
    coordinate that is a displacement it is a force along the axis.

    Parameters
    ----------
    name : str
        A name that no other force of the model has.
    joint : Joint or str
        The joint or its name.
    stiffness : number, pairs, Table or callable
        :math:`M_k`, a number k for :math:`M_k(x) = k x`.
    angle : float
        :math:`\varphi_0`, where the spring is at rest.
    damping : number, pairs, Table or callable
        :math:`M_d`, of the rate.
    which : str, optional
        Which coordinate, of a joint with several: "angle", "displacement", "second_angle" (universal joint).

    Notes
    -----
    In relative coordinates angles count turns. In absolute ones, and at joints that are cut, they are found from the
    axes of the two bodies, between -pi and pi.

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
        """Turn the joint back."""
        moment = value_of(self.stiffness, motion.coordinate(self.joint, self.which) - self.angle)
        if self.damping != 0.0:
            moment = moment + value_of(self.damping, motion.rate(self.joint, self.which))
        loads.joint(self.joint, -moment, self.which)

    def energy(self, t, motion) -> float:
        """What is stored in the spring."""
        return energy_of(self.stiffness, float(motion.coordinate(self.joint, self.which)) - self.angle)

    def power(self, t, motion) -> float:
        """What the damper takes."""
        rate = motion.rate(self.joint, self.which)
        return -float(value_of(self.damping, rate) * rate)
