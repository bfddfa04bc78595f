"""Which variables are algebraic, and partial derivatives for small systems."""

from functools import partial
from itertools import pairwise

import numpy as np

from daedal.analysis.index import partials
from daedal.errors import InvalidProblemError

LARGEST_DENSE = 500
_SHIFTS = (1.0, 1e12)  # of y', so that a term with y' is felt beside others, whatever the unit of time


def evaluate_or_nan(problem, t: float, y: np.ndarray, yp: np.ndarray) -> np.ndarray:
    """F for probing around a point, where the user's function may not be defined: NaN instead of an exception."""
    try:
        return problem.sample(t, y, yp)
    except Exception:
        return np.full(problem.n, np.nan)


def partials_of(problem, t: float, y: np.ndarray, yp: np.ndarray, **scales) -> tuple[np.ndarray, np.ndarray]:
    """dF/dy' and dF/dy: exact where the problem was traced, otherwise by differences (:func:`partials`)."""
    exact = problem.exact_partials(t, y, yp)
    return partials(partial(evaluate_or_nan, problem), t, y, yp, **scales) if exact is None else exact


def algebraic_variables(problem, t: float, y: np.ndarray, yp: np.ndarray) -> np.ndarray:
    """The mask of variables whose derivative does not occur: as given, or found by moving each y'_j."""
    if problem.algebraic is not None:
        return problem.algebraic
    n = problem.n
    problem.evaluate(t, y, yp)  # where exceptions are the user's
    base = evaluate_or_nan(problem, t, y, yp)
    occurs = np.zeros(n, dtype=bool)
    for columns in _column_groups(problem):
        for factor in _SHIFTS:
            shifted = yp.copy()
            shifted[columns] += factor * np.maximum(1.0, np.abs(yp[columns]))
            changed = evaluate_or_nan(problem, t, y, shifted) != base  # NaN counts as a change
            for j in columns:
                rows = slice(None)
                if len(columns) > 1:
                    rows = problem.sparsity.indices[problem.sparsity.indptr[j] : problem.sparsity.indptr[j + 1]]
                occurs[j] |= bool(np.any(changed[rows]))
            if occurs[columns].all():
                break
    return ~occurs


def time_scale(problem, t: float, y: np.ndarray, yp: np.ndarray, weights: np.ndarray) -> float | None:
    """The time in which the equations let y change by its own size, from dF/dy' and dF/dy; None if they do not say.

    The middle one of those equations that have terms of both kinds decides.
    """
    scale = None
    for _ in range(2):  # the increments of y' need a time scale themselves
        e, b = partials_of(problem, t, y, yp, weights=weights, time_scale=scale or 1.0)
        size = np.maximum(np.abs(y), 1e3 * weights)
        by_slope, by_value = np.abs(e) @ size, np.abs(b) @ size
        usable = np.isfinite(by_slope) & np.isfinite(by_value) & (by_slope > 0.0) & (by_value > 0.0)
        if not usable.any():
            return scale
        scale = float(np.exp(np.median(np.log(by_slope[usable] / by_value[usable]))))
        if 1e-4 < scale < 1e4:
            break
    return scale


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
