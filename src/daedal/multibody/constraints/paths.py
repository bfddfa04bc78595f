"""Points that stay on a curve or on a surface."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from daedal.errors import InvalidProblemError
from daedal.multibody.arguments import of_shape
from daedal.multibody.body import Frame, checked_name, ground
from daedal.multibody.constraints.base import Constraint
from daedal.multibody.forces import frame_of
from daedal.problems.checks import check_finite


def _local(motion, frame: Frame, carrier: Frame):
    """Where a frame is in the axes of another."""
    d = motion.position(frame) - motion.position(carrier)
    axes = motion.rotation(carrier)
    return axes.T @ d


class _Guided(Constraint):
    """A point of one body guided by something on another."""

    frame: Any
    carrier: Any

    def _check(self, function, what: str):
        checked_name(self.name, "constraint")
        if not callable(function):
            raise InvalidProblemError(f"{what} of constraint '{self.name}' must be a function, got {function!r}")
        for side in ("frame", "carrier"):
            object.__setattr__(self, side, frame_of(getattr(self, side), f"{side} of constraint '{self.name}'"))
        object.__setattr__(self, "frames", (self.frame, self.carrier))


@dataclass(frozen=True, eq=False)
class PointOnCurve(_Guided):
    """A point that slides along a curve: a bead on a wire, a roller in a groove.

    The place on the curve is a coordinate of its own, without mass, named "s of" and the name of the constraint.

    Parameters
    ----------
    name : str
        The name of the constraint.
    frame : Body or Frame
        Its origin slides.
    curve : callable
        ``curve(s)``, two or three coordinates in the axes of `carrier`.
    carrier : Body or Frame
        What the curve is drawn on; by default the ground.
    start : float
        Where on the curve, by its parameter, the search for the starting position begins.

    Examples
    --------
    A bead on a parabola:

    >>> from daedal.multibody import Body, Cartesian, Model, PointOnCurve, ground
    >>> bead = Body.particle("bead", mass=1.0)
    >>> wire = PointOnCurve("wire", bead, lambda s: (s, s**2))
    >>> model = Model(Cartesian("motion", ground, bead), wire, gravity=(0.0, -9.81), planar=True)
    >>> model.system().names
    ('motion.x', 'motion.y', 's of wire')
    """

    name: str
    frame: Any
    curve: Callable[[Any], Any]
    carrier: Any = ground
    start: float = 0.0

    def __post_init__(self):
        self._check(self.curve, "curve")
        object.__setattr__(self, "start", check_finite(self.start, f"the start of constraint '{self.name}'"))

    @property
    def parameters(self):
        """The place on the curve."""
        return {f"s of {self.name}": self.start}

    def size(self, planar):
        """The point is where the curve is."""
        return 2 if planar else 3

    def residual(self, t, motion):
        """The point less that of the curve, in the axes of the carrier."""
        place = self.curve(motion.parameter(f"s of {self.name}"))
        if np.shape(place) not in ((2,), (3,)):
            raise InvalidProblemError(
                f"curve of constraint '{self.name}' returned {place!r}; expected two or three coordinates"
            )
        here = _local(motion, self.frame, self.carrier)
        count = 2 if motion.planar else 3
        return [here[k] - (place[k] if k < len(place) else 0.0) for k in range(count)]


@dataclass(frozen=True, eq=False)
class PointOnSurface(_Guided):
    """A point that stays on a surface given by an equation; in the plane, on a curve.

    Two of them keep a point on the curve where two surfaces meet.

    Parameters
    ----------
    name : str
        The name of the constraint.
    frame : Body or Frame
        Its origin stays on the surface.
    function : callable
        ``function(x, y, z)``, zero on the surface, in the axes of `carrier`; its gradient must not vanish there.
    carrier : Body or Frame
        What the surface belongs to; by default the ground.
    """

    name: str
    frame: Any
    function: Callable[[Any, Any, Any], Any]
    carrier: Any = ground

    def __post_init__(self):
        self._check(self.function, "function")

    def size(self, planar):
        """One condition."""
        return 1

    def residual(self, t, motion):
        """The function at the point."""
        x, y, z = _local(motion, self.frame, self.carrier)
        return (of_shape(self.function(x, y, z), (), f"function of constraint '{self.name}'"),)
