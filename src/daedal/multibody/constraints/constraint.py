"""What all constraints have in common."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from daedal.errors import InvalidProblemError
from daedal.multibody.body import Body, Frame

COORDINATES = ("angle", "second_angle", "displacement", "x", "y", "z")
"""Names of coordinates of joints that have a value."""


class Constraint:
    """A restriction of the motion of bodies that is not a joint.

    A constraint has a name, the frames that it holds on to, and

    * ``size(planar)``: how many conditions on positions it has, in space or in the plane, and
      ``residual(t, motion)``: their values, which are to be zero;
    * ``velocity_size(planar)`` and ``velocity_residual(t, motion)``: the same on velocities, linear in them, for
      conditions that cannot be stated by positions (nonholonomic ones).

    Both ask `motion` where frames are and how they move. They are traced, so they are plain arithmetic.
    """

    name: str
    frames: Sequence[Any] = ()  # those of class Frame
    joints: Sequence[Any] = ()  # coordinates of joints that it reads: joint, and which of them
    parameters: Mapping[str, float] = {}  # its own coordinates without mass, and where the search for them starts

    turns: tuple[Frame, ...] = ()  # two frames of a model of the plane whose relative angle it reads

    def stated(self, planar: bool) -> Constraint:
        """The constraint as it is in a model of space or of the plane."""
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
    """A joint and the name of its coordinate from a joint, its name, or "joint.coordinate"."""
    if isinstance(given, str):
        joint, dot, which = given.rpartition(".")
        if dot and which in COORDINATES:
            return joint, which
    return given, None


def frame_along_axis(given: Any, turn: np.ndarray, what: str) -> Frame:
    """A frame from a frame or a body, its axes turned."""
    if isinstance(given, Frame):
        return given.turned(turn)
    if isinstance(given, Body):
        return Frame(given, np.zeros(3), turn)
    raise InvalidProblemError(f"{what} must be a body or a frame on a body, got {given!r}")
