"""Motions prescribed as functions of time; their multipliers are the required forces."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from daedal.common.tabular import listing
from daedal.errors import InvalidProblemError
from daedal.multibody.body import checked_name
from daedal.multibody.constraints.constraint import Constraint, named_coordinate
from daedal.multibody.forces import frame_of
from daedal.multibody.rotation import about_z, of_parameters, of_shape
from daedal.problems.checks import check_finite, set_checked


@dataclass(frozen=True, eq=False)
class Prescribed(Constraint):
    """A joint whose angle or displacement is prescribed, as by an ideal motor.

    The multiplier of the constraint is minus the driving torque or force.

    Parameters
    ----------
    name : str
        Name of the drive.
    joint : Joint or str
        The joint; ``"A.angle"`` or ``"A.displacement"`` if it has several coordinates.
    function : callable or float
        ``function(t)``, the angle or displacement; a number locks the joint.

    Examples
    --------
    >>> import numpy as np
    >>> from daedal.multibody import Body, Model, Prescribed, Revolute, ground
    >>> rod = Body.rod("rod", length=1.0, mass=3.0)
    >>> motor = Prescribed("motor", "pivot", lambda t: 2.0 * t**2)
    >>> machine = Model(Revolute("pivot", ground, rod.start), motor, planar=True)
    >>> print(machine.system().at(0.0, [0.0], [0.0]).multipliers)  # moment of inertia 1, acceleration 4
    [-4.]
    """

    name: str
    joint: Any
    function: Callable[[Any], Any] | float

    def __post_init__(self):
        checked_name(self.name, "constraint")
        if not callable(self.function):
            object.__setattr__(self, "function", check_finite(self.function, f"the function of drive '{self.name}'"))

    @property
    def joints(self):  # type: ignore[override]
        """The driven joint."""
        return (named_coordinate(self.joint),)

    def size(self, planar):
        return 1

    def residual(self, t, motion):
        value = self.function
        if callable(value):
            value = of_shape(value(t), (), f"the function of drive '{self.name}'")
        return (motion.coordinate(*named_coordinate(self.joint)) - value,)


@dataclass(frozen=True, eq=False)
class PrescribedMotion(Constraint):
    """A frame with prescribed motion, such as a shaking table or a hand guiding a tool.

    The multipliers of the position are minus the force on the frame, in the axes of the ground.

    Parameters
    ----------
    name : str
        Name of the drive.
    frame : Body or Frame
        The driven frame.
    position : callable, optional
        ``position(t)``, two or three coordinates in the axes of the ground.
    orientation : callable, optional
        ``orientation(t)``: an angle about z, four Euler parameters (of length 1) or a matrix, from the axes of the
        frame to those of the ground.

    Examples
    --------
    >>> from daedal.multibody import Body, Free, Model, PrescribedMotion, ground
    >>> table = Body.particle("table", mass=1.0)
    >>> shaken = PrescribedMotion("drive", table, lambda t: (0.1 * t, 0.0))
    >>> model = Model(Free("free", ground, table), shaken, planar=True)
    >>> print(model.report().degrees_of_freedom)
    1
    """

    name: str
    frame: Any
    position: Callable[[Any], Any] | None = None
    orientation: Callable[[Any], Any] | None = None

    def __post_init__(self):
        checked_name(self.name, "constraint")
        object.__setattr__(self, "frame", frame_of(self.frame, f"frame of drive '{self.name}'"))
        if self.position is None and self.orientation is None:
            raise InvalidProblemError(f"drive '{self.name}' needs position, orientation or both")
        for what in ("position", "orientation"):
            given = getattr(self, what)
            if given is not None and not callable(given):
                raise InvalidProblemError(f"{what} of drive '{self.name}' must be a function of time, got {given!r}")
        set_checked(self, frames=(self.frame,))

    def size(self, planar):
        places = 0 if self.position is None else 2 if planar else 3
        return places + (0 if self.orientation is None else 1 if planar else 3)

    def residual(self, t, motion):
        """Deviation from the given position, and products of axes that should be orthogonal."""
        values = []
        if self.position is not None:
            given, here = self.position(t), motion.position(self.frame)
            if len(np.shape(given)) != 1 or len(given) not in (2, 3):
                raise InvalidProblemError(
                    f"position of drive '{self.name}' returned {given!r}; expected two or three coordinates"
                )
            count = 2 if motion.planar else 3
            values += [here[k] - (given[k] if k < len(given) else 0.0) for k in range(count)]
        if self.orientation is not None:
            target, axes = self._target(t), motion.rotation(self.frame)
            for k, l in ((0, 1),) if motion.planar else ((0, 1), (0, 2), (1, 2)):
                values.append(sum(target[i, k] * axes[i, l] for i in range(3)))
        return values

    def _target(self, t):
        assert self.orientation is not None
        given = self.orientation(t)
        shape = np.shape(given)
        if shape == ():
            return about_z(given)
        if shape == (4,):
            return of_parameters(np.array(given))
        return np.array(of_shape(given, (3, 3), f"orientation of drive '{self.name}'"))


def drives_in_words(constraints: Iterable[Constraint]) -> str:
    """Description of the drives among the constraints, with the driven joints; empty if there are none."""
    found = [f"'{one.name}' (joint '{_label(one.joint)}')" for one in constraints if isinstance(one, Prescribed)]
    found += [
        f"'{one.name}' (body '{one.frame.body.name}')" for one in constraints if isinstance(one, PrescribedMotion)
    ]
    return listing(found) if found else ""


def _label(joint: Any) -> str:
    return getattr(joint, "name", joint)
