"""Motors at joints and actuators between points: forces as functions of time and motion."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from daedal.multibody.forces.force import Force, called, joint_name, number_or_function, title, two_frames
from daedal.multibody.forces.spring import line
from daedal.problems.checks import set_checked


@dataclass(frozen=True, eq=False, repr=False)
class Motor(Force):
    r"""A torque at a joint (or a force, along a coordinate that is a displacement).

    Parameters
    ----------
    name : str
        A name that no other force of the model has.
    joint : Joint or str
        The joint or its name.
    torque : float or callable
        On the second body of the joint, in the direction in which the coordinate grows, with its reaction on the
        first: a number or ``torque(t, motion)``; see :class:`~daedal.multibody.motion.Motion` for what can be asked.
    which : str, optional
        Which coordinate, of a joint with several.

    Examples
    --------
    A motor whose torque falls with its speed:

    >>> from daedal.multibody import Body, Model, Motor, Revolute, ground
    >>> wheel = Body.cylinder("wheel", radius=0.2, length=0.05, mass=10.0)
    >>> motor = Motor("motor", "shaft", lambda t, motion: 3.0 - 0.1 * motion.rate("shaft"))
    >>> model = Model(Revolute("shaft", ground, wheel), motor)
    >>> print(model.system().at(0.0, [0.0], [10.0]).force)
    [2.]
    """

    name: str
    joint: Any
    torque: Any = 0.0
    which: str | None = None

    def __post_init__(self):
        what = title(self)
        set_checked(
            self, joint=joint_name(self.joint, what), torque=number_or_function(self.torque, f"torque of {what}")
        )
        set_checked(self, joints=(self.joint,))

    def apply(self, t, motion, loads):
        """Drive the joint."""
        value = called(self.torque, f"torque of {title(self)}", t, motion)
        loads.joint(self.joint, value, self.which)


@dataclass(frozen=True, eq=False, repr=False)
class Actuator(Force):
    r"""A push between two points, along the line that joins them: a cylinder, a linear drive, a muscle.

    Parameters
    ----------
    name : str
        A name that no other force of the model has.
    a, b : Body or Frame
        The two ends.
    force : float or callable
        Positive if it pushes the ends apart: a number or ``force(t, motion)``.

    Examples
    --------
    >>> from daedal.multibody import Actuator, Body, Model, Prismatic, ground
    >>> cart = Body.particle("cart", mass=1.0)
    >>> push = Actuator("push", ground.at(-1, 0), cart, lambda t, motion: 4.0 * t)
    >>> print(Model(Prismatic("rail", ground, cart, axis="x"), push).system().at(0.5, [0.0], [0.0]).force)
    [2.]
    """

    name: str
    a: Any
    b: Any
    force: Any = 0.0

    def __post_init__(self):
        what = title(self)
        a, b = two_frames(self, what)
        set_checked(self, a=a, b=b, force=number_or_function(self.force, f"force of {what}"))
        set_checked(self, frames=(self.a, self.b))

    def apply(self, t, motion, loads):
        """Push the ends apart."""
        _, _, along = line(self.a, self.b, motion, title(self))
        push = called(self.force, f"force of {title(self)}", t, motion) * along
        loads.force(self.a, -push)
        loads.force(self.b, push)
