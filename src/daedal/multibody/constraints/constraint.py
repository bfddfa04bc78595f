"""Common base of all constraints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from daedal.errors import InvalidProblemError
from daedal.multibody.body import Body, Frame

COORDINATES = ("angle", "second_angle", "displacement", "x", "y", "z")
"""Names of scalar joint coordinates."""


class Constraint:
    """A restriction of body motion other than a joint.

    A constraint has a name, the frames to which it is attached, and

    * ``size(planar)``: its number of conditions on positions, in space or in the plane, and ``residual(t, motion)``:
      their values, which must be zero;
    * ``velocity_size(planar)`` and ``velocity_residual(t, motion)``: number and values of nonholonomic conditions,
      which are linear in the velocities.

    Residuals read positions and velocities of frames from `motion`. They are traced, so they must be plain arithmetic.

    Examples
    --------
    >>> from daedal.multibody import Body, Constraint, Distance, ground
    >>> rope = Distance("rope", ground, Body.particle("bob", mass=1.0), length=2.0)
    >>> print(isinstance(rope, Constraint), rope.size(planar=True))
    True 1
    """

    name: str
    frames: Sequence[Any] = ()  # attachment frames of class Frame
    joints: Sequence[Any] = ()  # joint coordinates that the constraint reads: joint and coordinate name
    parameters: Mapping[str, float] = {}  # additional massless coordinates, with initial guesses

    turns: tuple[Frame, ...] = ()  # two frames of a planar model whose relative angle the constraint reads

    def stated(self, planar: bool) -> Constraint:
        """The variant of the constraint for a spatial or planar model."""
        return self

    def size(self, planar: bool) -> int:
        """Number of conditions on positions."""
        return 0

    def velocity_size(self, planar: bool) -> int:
        """Number of conditions on velocities."""
        return 0

    def residual(self, t, motion):
        """Values of the conditions on positions."""
        return ()

    def velocity_residual(self, t, motion):
        """Values of the conditions on velocities."""
        return ()


def named_coordinate(given: Any) -> tuple[Any, str | None]:
    """A joint (or its name), and the name of one of its coordinates or None, from "joint.coordinate" or a joint."""
    if isinstance(given, str):
        joint, dot, which = given.rpartition(".")
        if dot and which in COORDINATES:
            return joint, which
    return given, None


def frame_along_axis(given: Any, turn: np.ndarray, what: str) -> Frame:
    """The frame `given`, or the frame of a body, rotated by `turn`."""
    if isinstance(given, Frame):
        return given.turned(turn)
    if isinstance(given, Body):
        return Frame(given, np.zeros(3), turn)
    raise InvalidProblemError(f"{what} must be a body or a frame on a body, got {given!r}")
