"""Forces between bodies; each is a small class with one method, ``apply``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from daedal.errors import InvalidProblemError
from daedal.multibody.body import Body, Frame, checked_name


def frame_of(given: Any, what: str) -> Frame:
    """A frame from a frame or from a body (its origin)."""
    if isinstance(given, Frame):
        return given
    if isinstance(given, Body):
        return given.at()
    raise InvalidProblemError(f"{what} must be a body or a frame on a body, got {given!r}")


class Force:
    """What acts on bodies besides gravity.

    A force has a name, the frames that it acts on, and

    * ``apply(t, motion, loads)``: asks `motion` where frames are and how they move and adds to `loads`.

    The method is traced, so it is plain arithmetic on what `motion` gives.
    """

    name: str
    frames: tuple[Frame, ...] = ()

    def apply(self, t, motion, loads):
        """Add what this force does to `loads`."""
        raise NotImplementedError


@dataclass(frozen=True, eq=False)
class Spring(Force):
    """A spring with a damper between two points: tension k (length - free length) + d (rate of length)."""

    name: str
    a: Any
    b: Any
    stiffness: float = 0.0
    length: float = 0.0
    damping: float = 0.0

    def __post_init__(self):
        checked_name(self.name, "force")
        for side in ("a", "b"):
            object.__setattr__(self, side, frame_of(getattr(self, side), f"{side} of spring '{self.name}'"))

    @property
    def frames(self) -> tuple[Frame, ...]:  # type: ignore[override]
        """The two ends."""
        return self.a, self.b

    def apply(self, t, motion, loads):
        """Pull the ends together."""
        d = motion.position(self.b) - motion.position(self.a)
        speed = motion.velocity(self.b) - motion.velocity(self.a)
        length = np.sqrt(d[0] ** 2 + d[1] ** 2 + d[2] ** 2)
        along = d / length
        rate = along[0] * speed[0] + along[1] * speed[1] + along[2] * speed[2]
        pull = (self.stiffness * (length - self.length) + self.damping * rate) * along
        loads.force(self.a, pull)
        loads.force(self.b, -pull)
