"""Constraints that are written as functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from daedal.errors import InvalidProblemError
from daedal.multibody.arguments import of_shape
from daedal.multibody.body import Frame, checked_name
from daedal.multibody.constraints.base import Constraint, named_coordinate
from daedal.multibody.forces import frame_of
from daedal.problems.checks import check_size


@dataclass(frozen=True, eq=False)
class UserConstraint(Constraint):
    """Conditions of your own.

    Parameters
    ----------
    name : str
        The name of the constraint.
    function : callable
        ``function(t, motion)``, `n` values that are to be zero. `motion` tells ``position(frame)``,
        ``rotation(frame)`` and ``coordinate(joint)``; on velocities also ``velocity(frame)`` and
        ``angular_velocity(frame)``.
    n : int
        How many.
    on : {"position", "velocity"}
        Whether they are conditions on positions, or on velocities that cannot be stated by positions
        (nonholonomic); these must be linear in the velocities.
    frames : sequence of Body or Frame
        Frames that the function asks for on bodies which no other part of the model names.
    joints : sequence of Joint or str
        Joints whose coordinates the function asks for, so that their angles count turns.

    Examples
    --------
    A skate: the middle of the body moves along its x axis only.

    >>> from daedal.multibody import Body, Free, Model, UserConstraint, ground
    >>> skate = Body("skate", mass=1.0, inertia=0.1)
    >>> blade = skate.at()
    >>> edge = UserConstraint(
    ...     "edge", lambda t, motion: [motion.rotation(blade)[:, 1] @ motion.velocity(blade)], 1, on="velocity"
    ... )
    >>> model = Model(Free("motion", ground, skate), edge, planar=True)
    >>> model.system().n_velocity_constraints
    1
    """

    name: str
    function: Callable[[Any, Any], Any]
    n: int
    on: str = "position"
    frames: Sequence[Any] = ()
    joints: Sequence[Any] = ()

    def __post_init__(self):
        checked_name(self.name, "constraint")
        if not callable(self.function):
            raise InvalidProblemError(f"function of constraint '{self.name}' must be a function, got {self.function!r}")
        if self.on not in ("position", "velocity"):
            raise InvalidProblemError(f"on={self.on!r} of constraint '{self.name}' must be 'position' or 'velocity'")
        frames: tuple[Frame, ...] = tuple(frame_of(one, f"frames of constraint '{self.name}'") for one in self.frames)
        object.__setattr__(self, "n", check_size(self.n, f"n of constraint '{self.name}'"))
        object.__setattr__(self, "frames", frames)
        object.__setattr__(self, "joints", tuple(named_coordinate(joint) for joint in self.joints))

    def size(self, planar):
        """All of them, if they are on positions."""
        return self.n if self.on == "position" else 0

    def velocity_size(self, planar):
        """All of them, if they are on velocities."""
        return self.n if self.on == "velocity" else 0

    def residual(self, t, motion):
        """What the function says."""
        return of_shape(self.function(t, motion), (self.n,), f"function of constraint '{self.name}'")

    velocity_residual = residual
