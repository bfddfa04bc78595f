"""What a run costs besides its steps: ``python benchmarks/fixed_cost.py``.

Prepared runs over a span of 1e-9, the best of many, and the time that the compiled loop takes in them.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numba
import numpy as np

import daedal
from daedal.formulations.projection import VelocityConstraints
from daedal.mechanics.assembly import Assembly
from daedal.methods.task import Equations, Task

SPAN = (0.0, 1e-9)


@numba.njit
def robertson(t, y, yp):
    fast = 1e4 * y[1] * y[2]
    return np.array(
        [yp[0] + 0.04 * y[0] - fast, yp[1] - 0.04 * y[0] + fast + 3e7 * y[1] ** 2, y[0] + y[1] + y[2] - 1.0]
    )


def best(action: Callable[[], object], rounds: int = 2000) -> float:
    """The shortest time of an action, in microseconds."""
    shortest = np.inf
    for _ in range(rounds):
        began = time.perf_counter()
        action()
        shortest = min(shortest, time.perf_counter() - began)
    return 1e6 * shortest


def dassl():
    """DASSL on Robertson's problem, compiled."""
    n, ones = 3, np.ones(3)
    run = daedal.DASSL().prepare(Equations(n, problem=daedal.ImplicitDAE(robertson, n)))
    return run, Task(SPAN, np.array([1.0, 0.0, 0.0]), np.array([-0.04, 0.04, 0.0]), 1e-6 * ones, 1e-9 * ones)


def phem56():
    """PHEM56 on the planar pendulum."""
    model = daedal.library.get("planar_pendulum")
    q0, v0 = (np.asarray(values, dtype=float) for values in model.initial[:2])
    assembly = Assembly(model.problem, 0.0, q0, autonomous=True)
    reduction = VelocityConstraints().reduce(assembly, assembly.start(0.0, np.concatenate([q0, v0])))
    n, hook = reduction.problem.n, reduction.rate.hook
    run = daedal.PHEM56().prepare(Equations(n, mechanism=assembly, hook=hook, bridge=assembly.bridge))
    return run, Task(SPAN, reduction.y0, reduction.yp0, np.full(n, 1e-6), np.full(n, 1e-9))


def main():
    """Print a table."""
    print(f"{'prepared run, span 1e-9':28} {'all':>8} {'kernel':>8} {'Python':>8}   us")
    for title, case in (("DASSL, Robertson", dassl), ("PHEM56, planar pendulum", phem56)):
        run, task = case()
        run.integrate(task)
        whole, inner = best(lambda run=run, task=task: run.integrate(task)), [np.inf]
        advance = run._advance

        def timed(address, advance=advance, inner=inner):
            began = time.perf_counter()
            reason = advance(address)
            inner[0] = min(inner[0], time.perf_counter() - began)
            return reason

        run._advance = timed
        best(lambda run=run, task=task: run.integrate(task))
        print(f"{title:28} {whole:8.1f} {1e6 * inner[0]:8.1f} {whole - 1e6 * inner[0]:8.1f}")


if __name__ == "__main__":
    main()
