"""What a call costs besides its steps, and what a step costs; `make bench` prints it, ``-m benchmarks.fixed_cost`` too.

All functions are plain, and traced. Fixed costs are those of a span of 1e-9, the shortest of many calls: through
`daedal.solve` on a problem that it has seen before, through a prepared solver, and through one with new parameters.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from math import inf

import daedal

SPAN = 1e-9
MODELS = ("robertson", "planar_pendulum", "crank_slider", "car_axis", "seven_body")
HEADS = ("microseconds", "solve", "prepared", "new params", "a step")


def shortest(action: Callable[[], object], seconds: float = 1.0) -> float:
    """The shortest time of an action that is repeated for a while, in microseconds."""
    action()
    best, end = inf, time.perf_counter() + seconds
    while (began := time.perf_counter()) < end:
        action()
        best = min(best, time.perf_counter() - began)
    return 1e6 * best


def costs(name: str) -> tuple[float, float, float, float]:
    """`solve`, prepared, prepared with new parameters, and one step of the default method, in microseconds."""
    model = daedal.library.get(name)
    problem, initial, (t0, t1) = model.problem, model.initial, model.t_span
    solver, short = daedal.prepare(problem), (t0, t0 + SPAN)
    fixed = shortest(lambda: daedal.solve(problem, short, initial))
    prepared = shortest(lambda: solver.solve(short, initial))
    anew = (
        shortest(lambda: solver.solve(short, initial, params=problem.params))
        if problem.params is not None
        else prepared
    )
    steps = solver.solve((t0, t1), initial).stats.steps
    whole = shortest(lambda: solver.solve((t0, t1), initial), 2.0)
    return fixed, prepared, anew, (whole - prepared) / steps


def rows() -> list[list[str]]:
    """The table under `HEADS`."""
    return [[name, *(f"{x:.0f}" for x in found[:3]), f"{found[3]:.2f}"] for name in MODELS if (found := costs(name))]


def main() -> None:
    """Print the table."""
    for row in (HEADS, *rows()):
        print(f"{row[0]:18}" + "".join(f"{cell:>12}" for cell in row[1:]))


if __name__ == "__main__":
    main()
