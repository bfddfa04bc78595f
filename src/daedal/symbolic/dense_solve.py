"""``np.linalg.solve`` on symbols: Gaussian elimination with partial pivoting, in which row exchanges are choices.

The pivot row is known only at run time, so every comparison becomes a choice between two rows. The result equals that
of LAPACK up to round-off; a singular matrix gives infinities or NaN.
"""

import numpy as np

from daedal.symbolic.arrays import array_of
from daedal.symbolic.expression import Expression, choose


def solve_dense(a: np.ndarray, b: np.ndarray):
    """Solve a x = b for a square matrix of expressions and numbers; b is a vector or a matrix."""
    graph = next(x.graph for x in (*a.flat, *b.flat) if type(x) is Expression)
    sites = dict(graph.sites)
    n = len(a)
    rows = [[*a[i], *np.atleast_1d(b[i])] for i in range(n)]
    for k in range(n):
        for i in range(k + 1, n):
            if not _is_zero(rows[i][k]):
                larger = abs(rows[i][k]) > abs(rows[k][k])
                rows[k], rows[i] = _exchanged(larger, rows[k], rows[i])
        for i in range(k + 1, n):
            if not _is_zero(rows[i][k]):
                multiplier = rows[i][k] / rows[k][k]
                rows[i] = [x - multiplier * y if j > k else 0.0 for j, (x, y) in enumerate(zip(rows[i], rows[k]))]
    x = np.empty((n, len(rows[0]) - n), dtype=object)
    for k in reversed(range(n)):
        for c in range(x.shape[1]):
            rest = sum((rows[k][j] * x[j, c] for j in range(k + 1, n)), start=0.0)
            x[k, c] = (rows[k][n + c] - rest) / rows[k][k]
    graph.sites = sites  # row exchanges are not switches: the solution does not jump
    return array_of(x).reshape(b.shape)


def _is_zero(x) -> bool:
    return type(x) is not Expression and x == 0.0


def _exchanged(exchange, first: list, second: list) -> tuple[list, list]:
    if isinstance(exchange, (bool, np.bool_)):
        return (second, first) if exchange else (first, second)
    pairs = list(zip(first, second))
    return [choose(exchange, y, x) for x, y in pairs], [choose(exchange, x, y) for x, y in pairs]
