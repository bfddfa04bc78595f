"""Cheap structural tests of whether the index can exceed 1."""

from __future__ import annotations

from typing import Any

import numpy as np

from daedal.driver.request import Settings
from daedal.index.reduction import WAYS
from daedal.index.structure.system_equations import orders_of
from daedal.problems import SecondOrderDAE
from daedal.problems.compile import machine_value
from daedal.symbolic.tracing.tracer import TracedProblem

_LARGEST_COMPILED = 100  # number of unknowns up to which a compiled problem is traced for its structure alone
_LARGEST_PLAIN = 300  # number of unknowns up to which matchings are computed without importing SciPy
_LARGEST_MECHANISM = 2000  # number of unknowns above which mechanisms are not recognised
LARGEST_EXAMINED = 50
"""Number of unknowns up to which the structure is tested for being misleading."""
LOWEST_REDUCED = 3
"""Structural index from which problems are reduced automatically: methods solve index 2 directly, and second-order
methods index 3."""
_SAMPLES = 3  # number of random points at which the matrix must be singular
_SINGULAR = 1e-13  # smallest singular value relative to the largest, below which a matrix counts as singular


def is_reduction(formulation: Any) -> bool:
    """Whether a formulation is an index reduction."""
    return isinstance(formulation, str) and formulation in WAYS


def may_be_reduced(problem: Any, settings: Settings, traced: TracedProblem | None) -> bool:
    """Whether a problem must be reduced or analysed further."""
    formulation = settings.formulation
    if is_reduction(formulation):
        return True
    if not isinstance(formulation, str) or formulation != "auto" or settings.compile == "never":
        return False
    if traced is None:  # compiled functions
        orders = orders_of(problem) if problem.n <= _LARGEST_COMPILED else None
    else:
        orders = None if traced.orders is None else traced.orders()
    if orders is None:
        return False
    if problem.n > _LARGEST_MECHANISM:
        lowest = LOWEST_REDUCED + isinstance(problem, SecondOrderDAE)
        return not has_low_index(orders, problem.n) and _structural_index(orders) >= lowest
    return not has_low_index(orders, problem.n) or (traced is not None and misleads(traced.problem, orders))


def _structural_index(orders: list[dict[int, int]]) -> float:
    """Structural index from the orders alone; infinite if an unknown is undetermined."""
    from daedal.index.structure.signature import StructuralSignature

    try:
        return StructuralSignature.of_orders(orders).index
    except ValueError:
        return np.inf


def has_low_index(orders: list[dict[int, int]], n: int) -> bool:
    """Whether the equations determine the highest derivatives directly: the structural index is then 0 or 1.

    Each unknown must be matched with a distinct equation that contains its highest derivative.
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
    """Whether each row can be matched with a distinct column, by augmenting paths (H. W. Kuhn 1955)."""
    row_of, column_of = [-1] * n, [-1] * n
    for start in range(n):
        came_from: dict[int, int] = {}  # columns reached, with their row
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
        while free >= 0:  # flip the path: each row takes the column reached from it and releases its previous one
            i = came_from[free]
            row_of[free], column_of[i], free = i, free, column_of[i]
    return True


def misleads(problem: Any, orders: list[dict[int, int]]) -> bool:
    """Whether the matrix of the highest derivatives is always singular.

    Example: x' + t y' = ..., x + t y = ... . The structural index is then too small.
    """
    n = problem.n
    if n > LARGEST_EXAMINED:
        return False
    highest = np.zeros(n, dtype=np.int64)
    for row in orders:
        for j, order in row.items():
            highest[j] = max(highest[j], order)
    rng = np.random.default_rng(n)
    for _ in range(_SAMPLES):
        partials = _partials(problem, rng)
        if partials is None:
            return False
        leading = np.choose(highest, partials)
        sizes = np.max(np.abs(leading), axis=1, keepdims=True)
        if not np.isfinite(leading).all() or not np.all(sizes > 0.0):
            return False
        values = np.linalg.svd(leading / sizes, compute_uv=False)
        if values[-1] > _SINGULAR * values[0]:
            return False
    return True


def _partials(problem: Any, rng: np.random.Generator) -> list[np.ndarray] | None:
    """Exact partial derivatives with respect to x, x', ... at a random point; None if unavailable."""
    n, t = problem.n, float(rng.uniform(0.1, 0.9))
    if isinstance(problem, SecondOrderDAE):
        if not getattr(problem.jacobian, "is_derivative", False):
            return None
        point = rng.uniform(0.5, 1.5, (3, n))
        values = (machine_value(problem.jacobian, problem.params, t, *point, *c) for c in ((0, 0), (1, 0), (0, 1)))
        found = [value for value in values if value is not None and value.shape == (n, n)]
        return [found[0], found[1] - found[0], found[2] - found[0]] if len(found) == 3 else None
    exact = problem.implicit().exact_partials(t, *rng.uniform(0.5, 1.5, (2, n)))
    return None if exact is None else [exact[1], exact[0]]
