"""Algebraic variables, orders of the others, and partial derivatives for small systems."""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from daedal.analysis.index import partials
from daedal.errors import InvalidProblemError
from daedal.kernels.patterns import band_pattern, sparse_groups
from daedal.problems import SecondOrderDAE

LARGEST_DENSE = 500
_SHIFTS = (1.0, 1e12)  # shifts of y', such that a term with y' is noticeable in any unit of time


def evaluate_or_nan(problem, t: float, y: np.ndarray, yp: np.ndarray) -> np.ndarray:
    """F near a point, where the user's function may be undefined: NaN instead of an exception."""
    try:
        return problem.sample(t, y, yp)
    except Exception:
        return np.full(problem.n, np.nan)


def partials_of(problem, t: float, y: np.ndarray, yp: np.ndarray, **scales) -> tuple[np.ndarray, np.ndarray]:
    """dF/dy' and dF/dy: exact if the problem was traced, otherwise by differences (:func:`partials`)."""
    exact = problem.exact_partials(t, y, yp)
    return partials(partial(evaluate_or_nan, problem), t, y, yp, **scales) if exact is None else exact


def algebraic_variables(problem, t: float, y: np.ndarray, yp: np.ndarray) -> np.ndarray:
    """The mask of variables whose derivative does not occur: as given, or detected by changing each y'_j."""
    if problem.algebraic is not None:
        return problem.algebraic
    n = problem.n
    problem.evaluate(t, y, yp)  # exceptions of the user's function propagate
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
    """The time in which y changes by its own size according to dF/dy' and dF/dy; None if undetermined.

    The result is the median over the equations that contain both y and y'.
    """
    scale = None
    for _ in range(2):  # the increments of y' depend on a time scale
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
            f"specify which of the {problem.n} variables are algebraic: pass algebraic=... (or sparsity=...) to "
            "the problem"
        )
    return [np.array([j]) for j in range(problem.n)]


# --- User-supplied structure of an implicit problem, compared with its equations at the start -----------------------
_SEEN = 1e-6  # fraction of a directional derivative above which missing entries are located
_MOST_LOOKED_AT = 5  # maximum number of equations examined


def refuse_wrong_algebraic(problem: Any, t: float, y: np.ndarray, yp: np.ndarray) -> None:
    """Reject variables declared algebraic whose derivatives occur."""
    said = np.flatnonzero(problem.algebraic)
    base = evaluate_or_nan(problem, t, y, yp)
    for factor in _SHIFTS if said.size else ():
        shift = factor * np.maximum(1.0, np.abs(yp))
        if not _changed(problem, t, y, yp, base, said, shift).any():
            continue
        for j in said:
            changed = np.flatnonzero(_changed(problem, t, y, yp, base, np.array([j]), shift))
            if changed.size:
                name = problem.label(int(j))
                raise InvalidProblemError(
                    f"algebraic: {name} is declared algebraic, but equation {changed[0]} contains its derivative. "
                    f"Remedy: remove {name} from algebraic, or omit algebraic to have it detected"
                )


def _changed(problem, t, y, yp, base, columns, shift) -> np.ndarray:
    """The equations that change with the derivatives of some variables; none if functions are stateful or random."""
    moved = yp.copy()
    moved[columns] += shift[columns]
    changed = (evaluate_or_nan(problem, t, y, moved) != base) & np.isfinite(base)
    if changed.any() and (evaluate_or_nan(problem, t, y, yp) != base)[changed].any():
        return np.zeros_like(changed)
    return changed


def missing_entry(problem: Any, t: float, y: np.ndarray, yp: np.ndarray) -> tuple[int, int] | None:
    """Row and column of an iteration matrix entry that is missing in `sparsity` or `bandwidth`; None if none is
    missing.

    A derivative along a random direction, assembled from entries computed by groups of columns as in a run, differs
    from a finite difference along it if an entry is missing. This is then confirmed bitwise: the equation changes with
    variables that it is declared not to contain.
    """
    pattern = _pattern(problem)
    start, order = sparse_groups(pattern)
    step = np.sqrt(np.finfo(float).eps) * np.maximum(np.abs(y), np.maximum(np.abs(yp), 1.0))
    base = evaluate_or_nan(problem, t, y, yp)

    def difference(direction: np.ndarray) -> np.ndarray:
        return evaluate_or_nan(problem, t, y + step * direction, yp + step * direction) - base

    def responds(i: int, columns: np.ndarray) -> bool:
        direction = np.zeros(y.size)
        direction[columns] = 1.0
        # the larger change exceeds the round-off of large terms
        return any(difference(factor * direction)[i] != 0.0 for factor in (1.0, 1e4))

    if difference(np.zeros(y.size)).any():  # not finite, or a stateful or random function
        return None
    along = np.random.default_rng(0).uniform(0.5, 1.5, y.size)
    told, size = np.zeros(y.size), np.zeros(y.size)
    for columns in (order[a:b] for a, b in pairwise(start)):
        unit = np.zeros(y.size)
        unit[columns] = 1.0
        change = difference(unit)
        for j in columns:
            rows = pattern.indices[pattern.indptr[j] : pattern.indptr[j + 1]]
            told[rows] += change[rows] * along[j]
            size[rows] += np.abs(change[rows]) * along[j]
    wrong = np.abs(difference(along) - told)
    suspicious = np.flatnonzero(wrong > _SEEN * size)
    by_rows = pattern.tocsr()
    for i in suspicious[np.argsort(-wrong[suspicious])][:_MOST_LOOKED_AT]:
        outside = np.ones(y.size, dtype=bool)
        outside[by_rows.indices[by_rows.indptr[i] : by_rows.indptr[i + 1]]] = False
        columns = np.flatnonzero(outside)
        if columns.size and responds(i, columns):
            while columns.size > 1:
                half = columns[: columns.size // 2]
                columns = half if responds(i, half) else columns[half.size :]
            if responds(i, columns):
                return int(i), int(columns[0])
    return None


def _pattern(problem: Any) -> Any:
    """The given structure, as a CSC array."""
    if problem.sparsity is not None:
        return problem.sparsity
    from scipy.sparse import csc_array

    start, rows = band_pattern(problem.n, *problem.bandwidth)
    return csc_array((np.ones(rows.size), rows, start), shape=(problem.n, problem.n))


# --- The highest derivative of each variable that occurs in F(t, x, x', x'') -----------------------------------------


_BESIDE = (0.0, 1e-2, 1e-1)
_LARGER = np.array([1e8, 1e16, 1e24])  # changes of a derivative, used if smaller ones vanish in other terms
_LARGEST = 1e150  # largest unit of these changes


def detect_order(problem: SecondOrderDAE, t0: float, x0: np.ndarray, xp0: np.ndarray) -> np.ndarray:
    """The highest derivative of each variable that affects F, at the start and at two nearby points.

    F need not be defined away from the start: exceptions there are ignored.
    """
    n = problem.n
    generator = np.random.default_rng(0)
    order = np.zeros(n, dtype=np.int64)
    for shift in _BESIDE:
        point = [values + shift * _sizes(values) * generator.uniform(-1.0, 1.0, n) for values in (x0, xp0, np.zeros(n))]
        if shift == 0.0 and _start_residual(problem, t0, point) is None:
            continue
        base = _residual(problem, t0, point)  # compared bitwise with other values, so the same code must be used
        if base is None:
            continue
        unit = min(max(1.0, max(float(np.max(np.abs(values))) for values in point)), _LARGEST)
        for level in (2, 1):
            missing = np.flatnonzero(order < level)
            order[[i for i in missing if _responds(problem, t0, point, base, level, [i])]] = level
            for larger in unit * _LARGER:
                missing = np.flatnonzero(order < level)
                if missing.size and _responds(problem, t0, point, base, level, missing, larger):
                    order[[i for i in missing if _responds(problem, t0, point, base, level, [i], larger)]] = level
    return order


def check_order(problem: SecondOrderDAE, found: np.ndarray) -> np.ndarray:
    """The user's orders, which must not be too low, or the detected ones."""
    if problem.order is None:
        return found
    low = np.flatnonzero(problem.order < found)
    if low.size:
        i = int(low[0])
        raise InvalidProblemError(
            f"order[{i}] = {problem.order[i]} is too low: the residual depends on "
            f"{problem.label(i)}{chr(39) * int(found[i])}, so that {problem.label(i)} has order {found[i]}. Give "
            f"order={found.tolist()}, or omit it"
        )
    return problem.order


def _sizes(values: np.ndarray) -> np.ndarray:
    """Size of each value; the largest size for zeros."""
    size = np.abs(values)
    return np.where(size > 0.0, size, np.max(size) if np.any(size) else 1.0)


def _responds(problem: SecondOrderDAE, t, point, base, level: int, which, factor: float = 1.0) -> bool:
    """Whether F changes with some derivatives; leaving the domain of F counts as a change."""
    changed = [values.copy() for values in point]
    changed[level][which] += factor * np.maximum(1.0, np.abs(changed[level][which]))
    values = _residual(problem, t, changed)
    return values is None or not np.array_equal(values, base)


def _start_residual(problem: SecondOrderDAE, t, point) -> np.ndarray | None:
    """F at the initial values; exceptions of the user's function propagate."""
    with np.errstate(all="ignore"):
        return _finite(problem.evaluate(t, *point))


def _finite(values: np.ndarray) -> np.ndarray | None:
    return values if np.all(np.isfinite(values)) else None


def _residual(problem: SecondOrderDAE, t, point) -> np.ndarray | None:
    """F, or None if undefined."""
    try:
        with np.errstate(all="ignore"):
            return _finite(problem.sample(t, *point))
    except Exception:  # the residual may raise anything near the start
        return None
