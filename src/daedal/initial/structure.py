"""Which variables are algebraic, and partial derivatives for small systems."""

from itertools import pairwise

import numpy as np

from daedal.errors import InvalidProblemError

LARGEST_DENSE = 500


def evaluate_or_nan(problem, t: float, y: np.ndarray, yp: np.ndarray) -> np.ndarray:
    """F for probing around a point, where the user's function may not be defined: NaN instead of an exception."""
    try:
        return problem.evaluate(t, y, yp)
    except Exception:
        return np.full(problem.n, np.nan)


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
        changed = evaluate_or_nan(problem, t, y, shifted) != base  # NaN counts as a change
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
        return [columns[a:b] for a, b in pairwise(start)]
    if problem.n > 10 * LARGEST_DENSE:
        raise InvalidProblemError(
            f"say which of the {problem.n} variables are algebraic: pass algebraic=... (or sparsity=...) to the problem"
        )
    return [np.array([j]) for j in range(problem.n)]
