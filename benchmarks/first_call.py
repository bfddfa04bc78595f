"""The first call in a new process: what someone waits for who runs a script once, with plain Python functions.

A process imports the solver's package and the functions of the problem, then states and solves the problem once, which
is timed. Compiled code that a package keeps on disk is there from earlier runs. The import is timed in a process of its
own, in which nothing else has been loaded. ``python -m benchmarks.first_call SOLVER PROBLEM RTOL ATOL`` is such a
process.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

from benchmarks.compare import TYPICAL_ERROR, nearest, quickest_forms, standings
from benchmarks.measure import Point
from benchmarks.solvers import SOLVERS, baseline
from benchmarks.solvers.base import Level

LIMIT_SECONDS = 60.0


@dataclass(frozen=True)
class FirstCall:
    """One solver on one problem in a new process; times in seconds."""

    case: str
    solver: str
    error: float
    seconds: float
    import_seconds: float


def measure(points: list[Point], repeats: int) -> Iterable[FirstCall]:
    """The first calls of Daedal and of all peers with Python callbacks, each in its quickest form, near one error."""
    chosen = {(standing.case, standing.solver) for standing in quickest_forms(standings(points))}
    for point in nearest((p for p in points if (p.case, p.solver) in chosen), TYPICAL_ERROR):
        solver = SOLVERS[point.solver]
        if solver.callbacks != "python" or (solver.package == "daedal" and point.solver != baseline(point.solver)):
            continue
        level = point.level
        arguments = ["-m", "benchmarks.first_call", point.solver, point.case, repr(level.rtol), repr(level.atol)]
        seconds = min(_answers(arguments, repeats), default=None)
        if seconds is not None:
            imported = import_seconds(solver.module or solver.package, repeats)
            yield FirstCall(point.case, point.solver, point.error, seconds, imported)


@cache
def import_seconds(module: str, repeats: int) -> float:
    """The shortest time of an import in a new process."""
    code = f"import time; began = time.perf_counter(); import {module}; print(time.perf_counter() - began)"
    return min(_answers(["-c", code], repeats + 1))


def _answers(arguments: list[str], repeats: int) -> list[float]:
    found = []
    command = [sys.executable, "-W", "ignore", *arguments]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    for _ in range(repeats):
        try:
            run = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_SECONDS, env=environment)
        except subprocess.TimeoutExpired:
            continue
        if run.returncode == 0:
            found.append(float(json.loads(run.stdout.splitlines()[-1])))
    return found


def main() -> None:
    import time
    from importlib import import_module

    from benchmarks import cases

    solver, case = SOLVERS[sys.argv[1]], cases.get(sys.argv[2])
    import_module(solver.module or solver.package)
    stated = solver(case)
    began = time.perf_counter()
    stated.prepare(Level(float(sys.argv[3]), float(sys.argv[4])))()
    print(time.perf_counter() - began)


if __name__ == "__main__":
    main()
