"""Times at equal achieved error, read off the work-precision line."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from benchmarks.measure import Point
from benchmarks.solvers import SOLVERS, baseline

# Errors below this are rounding, and zero has no logarithm.
SMALLEST_ERROR = 1e-16
TARGET_ERRORS = tuple(float(f"1e-{k}") for k in range(2, 11))
TYPICAL_ERROR = 1e-5


@dataclass(frozen=True)
class Line:
    """The best a solver does on one case: the runs that no other of its runs beats in both error and time.

    ``errors`` fall, ``seconds`` rise. Between the runs the logarithm of the time is linear in that of the error.
    Where looser tolerances only made it slower, up to the error ``loosest``, the quickest run counts. Beyond nothing is
    known.
    """

    errors: tuple[float, ...] = ()
    seconds: tuple[float, ...] = ()
    loosest: float = 0.0

    @classmethod
    def through(cls, points: Iterable[Point]) -> Line:
        runs = sorted((p.seconds, max(p.error, SMALLEST_ERROR)) for p in points if p.worked)
        errors: list[float] = []
        seconds: list[float] = []
        for time, error in runs:
            if not errors or error < errors[-1]:
                errors.append(error)
                seconds.append(time)
        return cls(tuple(errors), tuple(seconds), max((error for _, error in runs), default=0.0))

    def seconds_at(self, error: float) -> float | None:
        """The time the solver needs for this error; None beyond the ends of the line."""
        error = max(error, SMALLEST_ERROR)
        if not self.errors or not self.errors[-1] <= error <= self.loosest:
            return None
        if error >= self.errors[0]:
            return self.seconds[0]
        k = next(k for k, reached in enumerate(self.errors) if reached <= error)
        share = math.log(self.errors[k - 1] / error) / math.log(self.errors[k - 1] / self.errors[k])
        return self.seconds[k - 1] * (self.seconds[k] / self.seconds[k - 1]) ** share


@dataclass(frozen=True)
class Comparison:
    """A point against Daedal's line: how many times longer it took, or why that cannot be said."""

    ratio: float | None
    note: str = ""


def compare(point: Point, baseline: Line) -> Comparison:
    """The point's time over Daedal's at the point's error."""
    if point.failure:
        return Comparison(None, point.failure)
    if not point.worked:
        return Comparison(None, "the result is not finite")
    if not baseline.errors:
        return Comparison(None, "Daedal has no result here")
    seconds = baseline.seconds_at(point.error)
    if seconds is not None:
        return Comparison(point.seconds / seconds)
    if point.error > baseline.loosest:
        times = point.seconds / baseline.seconds[0]
        return Comparison(None, f"less accurate than every run of Daedal, {times:.2g} x the time of its quickest")
    times = point.seconds / baseline.seconds[-1]
    return Comparison(None, f"more accurate than every run of Daedal, {times:.2g} x the time of its most accurate")


@dataclass(frozen=True)
class Standing:
    """A solver on one case against Daedal: the ratios of the times at ``TARGET_ERRORS``, where both reach them."""

    case: str
    solver: str
    ratios: tuple[float | None, ...]
    failed: int
    runs: int
    drift: float

    @property
    def mean(self) -> float | None:
        """The geometric mean of the ratios that are known."""
        known = [math.log(ratio) for ratio in self.ratios if ratio is not None]
        return math.exp(sum(known) / len(known)) if known else None

    def at(self, error: float) -> float | None:
        return self.ratios[TARGET_ERRORS.index(error)]


def standings(points: list[Point]) -> list[Standing]:
    """Every solver on every case, Daedal's baselines too."""
    groups: dict[tuple[str, str], list[Point]] = {}
    for point in points:
        groups.setdefault((point.case, point.solver), []).append(point)
    lines = {key: Line.through(group) for key, group in groups.items()}
    found = []
    for (case, solver), group in groups.items():
        theirs, ours = lines[case, solver], lines.get((case, baseline(solver)), Line())
        ratios = tuple(_ratio_at(error, theirs, ours) for error in TARGET_ERRORS)
        failed = sum(not point.worked for point in group)
        drift = next((point.drift for point in nearest(group, TYPICAL_ERROR)), float("nan"))
        found.append(Standing(case, solver, ratios, failed, len(group), drift))
    return found


def _ratio_at(error: float, peer: Line, baseline: Line) -> float | None:
    theirs, ours = peer.seconds_at(error), baseline.seconds_at(error)
    return None if theirs is None or ours is None else theirs / ours


def quickest_forms(standings: Iterable[Standing]) -> list[Standing]:
    """Of a solver that took a mechanism in several forms the one that was quickest at 1e-5, or else in the mean."""
    found: dict[tuple[str, str], Standing] = {}
    for standing in standings:
        key = standing.case, standing.solver.removesuffix(f"-{SOLVERS[standing.solver].form}")
        if key not in found or _slowness(standing) < _slowness(found[key]):
            found[key] = standing
    return list(found.values())


def _slowness(standing: Standing) -> tuple[bool, float]:
    at_error = standing.at(TYPICAL_ERROR)
    ratio = standing.mean if at_error is None else at_error
    return at_error is None, math.inf if ratio is None else ratio


def nearest(points: Iterable[Point], error: float) -> list[Point]:
    """For each case and solver the run whose error is nearest to ``error``."""
    found: dict[tuple[str, str], Point] = {}
    for point in points:
        key = point.case, point.solver
        if point.worked and (key not in found or _distance(point, error) < _distance(found[key], error)):
            found[key] = point
    return list(found.values())


def _distance(point: Point, error: float) -> float:
    return abs(math.log(max(point.error, SMALLEST_ERROR) / error))


def ratio_text(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:.1g}" if value < 0.095 else f"{value:.2f}" if value < 10.0 else f"{value:.0f}"


def number_text(value: float) -> str:
    """Three digits, or all before the point."""
    return f"{value:.3g}" if value < 100.0 else f"{value:.0f}"
