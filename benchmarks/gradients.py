"""What a gradient by adjoint equations costs, in units of one solve; ``-m`` of it takes ``--quick`` and ``--save``.

A rod with heat sources that are piecewise constant, one parameter for each piece: the number of parameters changes
nothing else. Times are those of prepared solvers and of repeated calls, as an optimiser makes them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

import daedal
from benchmarks.fixed_cost import shortest
from benchmarks.results import keep
from benchmarks.worker import limit_threads

HEADS = ("gradient of a final cost", "unknowns", "parameters", "one solve ms", "gradient ms", "solves")
TOLERANCES = {"rtol": 1e-6, "atol": 1e-8}


def rod(n: int, m: int) -> tuple[daedal.ImplicitDAE, Callable[..., Any]]:
    """A rod of n cells, heated by m sources, which loses heat with the third power of its temperature; and a cost."""
    piece = np.arange(n) * m // n

    def residual(t, y, yp, p):
        left, right = np.concatenate([[0.0], y[:-1]]), np.concatenate([y[1:], [0.0]])
        return yp - 0.05 * (n + 1) ** 2 * (left - 2.0 * y + right) - np.array([p[k] for k in piece]) + y**3

    problem = daedal.ImplicitDAE(
        residual, n, params=np.linspace(0.5, 1.5, m), bandwidth=(1, 1), algebraic=np.zeros(n, dtype=bool)
    )
    return problem, lambda t, y, p: (y * y).sum() / n


def row(name: str, problem: Any, initial: Any, end: float, cost: Callable[..., Any], **tolerances: float) -> list[str]:
    """One line of the table."""
    solver = daedal.prepare(problem, dense_output=True, **tolerances)
    span = (0.0, end)
    solve = 1e-3 * shortest(lambda: solver.solve(span, initial), 0.5)
    whole = 1e-3 * shortest(lambda: daedal.gradient(problem, span, initial, final_cost=cost, **tolerances), 0.5)
    count = len(daedal.gradient(problem, span, initial, final_cost=cost, **tolerances).names)
    return [name, f"{problem.n}", f"{count}", f"{solve:.2f}", f"{whole:.2f}", f"{whole / solve:.1f}"]


def rows(quick: bool = False) -> list[list[str]]:
    """The table under `HEADS`."""
    robertson = daedal.library.get("robertson")
    start = (robertson.initial[0], None)
    table = [row("robertson", robertson.problem, start, 40.0, lambda t, y, p: y[2], rtol=1e-7, atol=1e-11)]
    for n, counts in ((1000, (1, 100, 1000)), (10_000, (1, 10_000)))[: 1 if quick else 2]:
        for m in counts:
            problem, cost = rod(n, m)
            table.append(row("heated rod", problem, (np.zeros(n), None), 1.0, cost, **TOLERANCES))
    return table


def main() -> None:
    """Print the table."""
    limit_threads()
    found = rows("--quick" in sys.argv)
    for line in (HEADS, *found):
        print(f"{line[0]:26}" + "".join(f"{cell:>14}" for cell in line[1:]))
    if "--save" in sys.argv:
        keep(gradients=found)


if __name__ == "__main__":
    main()
