"""The measurement: a first run of everything, then rounds in which all solvers take turns."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks import cases
from benchmarks.cases import Case
from benchmarks.solvers import SOLVERS
from benchmarks.solvers.base import Level, Solver
from benchmarks.worker import Failure, Trial, Worker

# A turn lasts this long if the run is short (several runs), or one run.
TURN_SECONDS = 0.03
# No point is measured in further rounds once it has cost this much.
POINT_SECONDS = 6.0
# Granted to the first run of a solver on a case, for compiling.
COMPILING_SECONDS = 120.0


@dataclass
class Point:
    """One solver on one rung of a case: its best time and its error, or why there is none."""

    case: str
    solver: str
    level: Level
    seconds: float = float("inf")
    error: float = float("nan")
    drift: float = float("nan")
    evaluations: int | None = None
    steps: int | None = None
    failure: str = ""
    spent: float = field(default=0.0, repr=False)

    @property
    def worked(self) -> bool:
        return not self.failure and math.isfinite(self.error)


def measure(
    case_names: Iterable[str],
    solvers: list[type[Solver]],
    *,
    rtols: tuple[float, ...] | None,
    repeats: int,
    limit: float,
    logs: Path,
    say: Callable[[str], None],
) -> Iterator[list[Point]]:
    """The points of one case after another.

    Parameters
    ----------
    rtols : tuple of float, optional
        Keep only these of the tolerances of each case.
    repeats : int
        Rounds in which every point is timed.
    limit : float
        Seconds after which a single run is stopped; for the large cases ten times as many.
    """
    logs.mkdir(parents=True, exist_ok=True)
    workers = {package: Worker(package, logs) for package in dict.fromkeys(solver.package for solver in solvers)}
    try:
        for name in case_names:
            case = cases.get(name)
            allowed = limit if case.linear == "dense" else 10.0 * limit
            wanted = tuple(r for r in case.rtols if rtols is None or r in rtols)
            chosen = [solver for solver in solvers if solver.takes(case)]
            say(f"{case.title} ({case.n} unknowns): {', '.join(solver.name for solver in chosen)}")
            ladder = [
                p for solver in chosen for p in first_runs(case, solver, wanted, workers[solver.package], allowed)
            ]
            take_turns(ladder, workers, repeats, allowed)
            yield ladder
            for worker in workers.values():
                if worker.process is not None:
                    worker.ask(allowed, "forget")
    finally:
        for worker in workers.values():
            worker.stop()


def first_runs(case: Case, solver: type[Solver], rtols: tuple[float, ...], worker: Worker, limit: float) -> list[Point]:
    """One run on every rung, from the loosest: error, counts, and whether it works. Compiling is over after it."""
    points = []
    hung = False
    for level in solver.levels(case, rtols):
        point = Point(case.name, solver.name, level)
        points.append(point)
        if hung:
            point.failure = "not tried: a looser tolerance took too long"
            continue
        allowed = 2.0 * limit + (COMPILING_SECONDS if not points[1:] else 0.0)  # a trial runs the solver twice
        answer = worker.ask(allowed, "try", solver.name, case.name, level)
        if isinstance(answer, Failure):
            point.failure = answer.message
            hung = answer.message.startswith("stopped")
        elif isinstance(answer, Trial):
            point.error, point.drift = case.error(answer.outcome.y), case.drift(answer.outcome.y)
            point.evaluations, point.steps = answer.outcome.evaluations, answer.outcome.steps
            point.seconds = point.spent = answer.seconds
    return points


def take_turns(points: list[Point], workers: dict[str, Worker], repeats: int, limit: float) -> None:
    """Time all points in rounds; within a round all solvers run a rung before any runs the next."""
    order = sorted((p for p in points if not p.failure), key=lambda p: -p.level.rtol)
    for _ in range(repeats):
        for point in order:
            if point.failure or point.spent > POINT_SECONDS:
                continue
            worker = workers[SOLVERS[point.solver].package]
            answer = worker.ask(
                2.0 * limit + COMPILING_SECONDS, "time", point.solver, point.case, point.level, TURN_SECONDS
            )
            if isinstance(answer, Failure):
                point.failure = f"worked once, then: {answer.message}"
            else:
                point.seconds = min(point.seconds, answer)
                point.spent += max(answer, TURN_SECONDS)
