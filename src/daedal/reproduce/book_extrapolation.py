"""Brenan, Campbell and Petzold, section 4.6: orders in the extrapolation table of the linearly implicit Euler method.

Orders up to 8 show only where errors are far below round-off of floats: all is done with decimal numbers of many
digits, on a problem of index 1 whose solution is rational.
"""

import math
from collections.abc import Callable, Mapping
from decimal import Decimal, localcontext
from functools import cache
from typing import Any

import daedal
from daedal.reproduce.printed_table import PrintedTable, Row

_DIGITS = 120
_STEP = Decimal(2) ** -20
_ROWS = 10


def _end(step: Decimal, n: int) -> tuple[Decimal, Decimal]:
    """n linearly implicit Euler steps for y' = -2 y z, 0 = y - z^2 from (1, 1); J = [[-2, -2], [1, -2]] stays."""
    h, y, z = step / n, Decimal(1), Decimal(1)
    for _ in range(n):
        a, b = -2 * h * y * z, z * z - y  # [[1 + 2h, 2h], [1, -2]] (dy, dz) = (a, b)
        dy = (a + h * b) / (1 + 3 * h)
        y, z = y + dy, z + (dy - b) / 2
    return y, z


@cache
def _errors(refinement: int, component: int) -> list[list[Decimal]]:
    """The errors of all entries of the table after one basic step; the solution is y = (1 + t)^-2, z = (1 + t)^-1."""
    with localcontext() as context:
        context.prec = _DIGITS
        step = _STEP / refinement
        truth = (1 / (1 + step) ** 2, 1 / (1 + step))[component]
        table = daedal.extrapolation_table(range(1, _ROWS + 1), lambda n: _end(step, n)[component])
        return [[abs(value - truth) for value in row] for row in table]


def _orders(component: int, loss: int) -> Callable[[PrintedTable], Any]:
    """The exponents of H in the local error, less `loss`."""

    def values(row: Row) -> Mapping[str, float]:
        coarse, fine = (_errors(refinement, component)[row["j"] - 1] for refinement in (1, 2))
        return {f"k{k + 1}": math.log2(coarse[k] / fine[k]) - loss for k in range(len(fine))}

    return lambda table: table.each(values)


TABLES = {"4.6.1": _orders(0, 1), "4.6.2": _orders(1, 0)}
