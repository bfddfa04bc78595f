"""A glance at the structure of a problem: whether its index can be larger than 1, for almost nothing."""

from __future__ import annotations

from typing import Any

import numpy as np

from daedal.drive.request import Settings
from daedal.index_reduction import WAYS
from daedal.structure.equations import orders_of
from daedal.tracing.tracer import TracedProblem

_LARGEST_COMPILED = 100  # unknowns of a problem in compiled functions, which is traced for its structure alone
_LARGEST_PLAIN = 300  # unknowns up to which nothing is imported for it


def is_reduction(formulation: Any) -> bool:
    """Whether a formulation is one of the ways to reduce the index."""
    return isinstance(formulation, str) and formulation in WAYS


def may_be_reduced(problem: Any, settings: Settings, traced: TracedProblem | None) -> bool:
    """Whether a problem is to be reduced, or whether that is to be looked at more closely."""
    formulation = settings.formulation
    if is_reduction(formulation):
        return True
    if not isinstance(formulation, str) or formulation != "auto" or settings.compile == "never":
        return False
    if traced is None:  # compiled functions
        orders = orders_of(problem) if problem.n <= _LARGEST_COMPILED else None
    else:
        orders = None if traced.orders is None else traced.orders()
    return orders is not None and not has_low_index(orders, problem.n)


def has_low_index(orders: list[dict[int, int]], n: int) -> bool:
    """Whether the equations determine the highest derivatives as they stand: then the structural index is 0 or 1.

    Each unknown is to be matched with an equation of its own that contains its highest derivative.
    """
    highest = [0] * n
    for row in orders:
        for j, order in row.items():
            highest[j] = max(highest[j], order)
    leading = [[j for j, order in row.items() if order == highest[j]] for row in orders]
    if not all(leading):
        return False
    if n <= _LARGEST_PLAIN:
        return _matches_all(leading, n)
    import scipy.sparse as sp
    from scipy.sparse.csgraph import maximum_bipartite_matching

    rows = np.repeat(np.arange(n), [len(row) for row in leading])
    columns = np.fromiter((j for row in leading for j in row), np.int64, rows.size)
    matrix = sp.csr_array((np.ones(rows.size), (rows, columns)), shape=(n, n))
    return bool(np.all(maximum_bipartite_matching(matrix) >= 0))


def _matches_all(rows: list[list[int]], n: int) -> bool:
    """Whether each row can have a column of its own, by augmenting paths (H. W. Kuhn 1955)."""
    row_of, column_of = [-1] * n, [-1] * n
    for start in range(n):
        came_from: dict[int, int] = {}  # columns that were reached, with the row
        waiting, free = [start], -1
        while waiting and free < 0:
            i = waiting.pop()
            for j in rows[i]:
                if j not in came_from:
                    came_from[j] = i
                    if row_of[j] < 0:
                        free = j
                        break
                    waiting.append(row_of[j])
        if free < 0:
            return False
        while free >= 0:  # each row on the path takes the column that was reached from it, and frees its own
            i = came_from[free]
            row_of[free], column_of[i], free = i, free, column_of[i]
    return True
