"""Times at equal achieved error, read off the work-precision line."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from benchmarks.measure import Point

# Errors below this are rounding, and zero has no logarithm.
SMALLEST_ERROR = 1e-16


@dataclass(frozen=True)
class Line:
    """The best a solver does on one case: the points that no other of its points beats in both error and time.

    ``errors`` fall, ``seconds`` rise. Between the points the logarithm of the time is linear in that of the error;
    beyond them nothing is known.
    """

    errors: tuple[float, ...]
    seconds: tuple[float, ...]

    @classmethod
    def through(cls, points: Iterable[Point]) -> Line:
        candidates = sorted(
            (p.seconds, max(p.error, SMALLEST_ERROR)) for p in points if not p.failure and math.isfinite(p.error)
        )
        errors: list[float] = []
        seconds: list[float] = []
        for time, error in candidates:
            if not errors or error < errors[-1]:
                errors.append(error)
                seconds.append(time)
        return cls(tuple(errors), tuple(seconds))

    def seconds_at(self, error: float) -> float | None:
        """The time the solver needs for this error; None beyond the ends of the line."""
        error = max(error, SMALLEST_ERROR)
        for k, reached in enumerate(self.errors):
            if math.isclose(error, reached, rel_tol=1e-12):
                return self.seconds[k]
            if error > reached:
                if k == 0:
                    return None
                share = math.log(self.errors[k - 1] / error) / math.log(self.errors[k - 1] / reached)
                return self.seconds[k - 1] * (self.seconds[k] / self.seconds[k - 1]) ** share
        return None


@dataclass(frozen=True)
class Comparison:
    """A point against Daedal's line: how many times longer it took, or why that cannot be said."""

    ratio: float | None
    note: str = ""


def compare(point: Point, baseline: Line) -> Comparison:
    """The point's time over Daedal's at the point's error."""
    if point.failure:
        return Comparison(None, point.failure)
    if not math.isfinite(point.error):
        return Comparison(None, "the result is not finite")
    if not baseline.errors:
        return Comparison(None, "Daedal has no result here")
    seconds = baseline.seconds_at(point.error)
    if seconds is not None:
        return Comparison(point.seconds / seconds)
    if point.error > baseline.errors[0]:
        times = point.seconds / baseline.seconds[0]
        return Comparison(
            None, f"less accurate than Daedal's quickest run (error {baseline.errors[0]:.0e}), {times:.2g} x its time"
        )
    times = point.seconds / baseline.seconds[-1]
    return Comparison(
        None, f"more accurate than Daedal's best run (error {baseline.errors[-1]:.0e}), {times:.2g} x its time"
    )


def ratio_at(error: float, peer: Line, baseline: Line) -> float | None:
    """The peer's time over Daedal's where both lines reach ``error``; None elsewhere."""
    theirs, ours = peer.seconds_at(error), baseline.seconds_at(error)
    return None if theirs is None or ours is None else theirs / ours
