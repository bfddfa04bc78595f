"""Which variables are algebraic, and partial derivatives for small systems."""

from __future__ import annotations

import numpy as np

from daedal.errors import InvalidProblemError

LARGEST_DENSE = 500


def partials(problem, t: float, y: np.ndarray, yp: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """E = dF/dy' and B = dF/dy by central differences, dense."""
    n = problem.n
    root = np.finfo(float).eps ** (1.0 / 3.0)
    matrices = []
    for which in (1, 0):
        matrix = np.empty((n, n))
        for j in range(n):
            point = [y.copy(), yp.copy()]
            delta = root * max(abs(point[which][j]), 1.0)
            point[which][j] += delta
            above = problem.evaluate(t, *point)
            point[which][j] -= 2.0 * delta
            below = problem.evaluate(t, *point)
            matrix[:, j] = (above - below) / (2.0 * delta)
        matrices.append(matrix)
    return matrices[0], matrices[1]


def algebraic_variables(problem, t: float, y: np.ndarray, yp: np.ndarray) -> np.ndarray:
    """The mask of variables whose derivative does not occur: as given, or found by moving each y'_j."""
    if problem.algebraic is not None:
        return problem.algebraic
    n = problem.n
    base = problem.evaluate(t, y, yp)
    occurs = np.zeros(n, dtype=bool)
    for columns in _column_groups(problem):
        shifted = yp.copy()
        shifted[columns] += np.maximum(1.0, np.abs(yp[columns]))
        changed = problem.evaluate(t, y, shifted) != base
        if len(columns) == 1:
            occurs[columns] = bool(np.any(changed))
        else:
            for j in columns:
                rows = problem.sparsity.indices[problem.sparsity.indptr[j] : problem.sparsity.indptr[j + 1]]
                occurs[j] = bool(np.any(changed[rows]))
    return ~occurs


def _column_groups(problem) -> list[np.ndarray]:
    if problem.sparsity is not None:
        from daedal.kernels.patterns import sparse_groups

        start, columns = sparse_groups(problem.sparsity)
        return [columns[a:b] for a, b in zip(start[:-1], start[1:], strict=True)]
    if problem.n > 10 * LARGEST_DENSE:
        raise InvalidProblemError(
            f"say which of the {problem.n} variables are algebraic: pass algebraic=... (or sparsity=...) to the problem"
        )
    return [np.array([j]) for j in range(problem.n)]
