"""Lift values of a problem to a point on all equations of a prolonged system."""

from __future__ import annotations

import numpy as np

from daedal.index.reduction.reduced_problem import ReducedProblem
from daedal.index.reduction.selection import SingularBlock
from daedal.initial.jet import consistent_jet

# relative residual of satisfied equations, in the search for derivatives at given values
_MOST_ITERATIONS, _ROUNDOFF = 5, 1e-13


def lift(reduced: ReducedProblem, t: float, y: np.ndarray, yp: np.ndarray | None = None) -> np.ndarray:
    """u on all equations near values of the original problem, including its derivatives if known.

    Values y that satisfy all equations are unchanged; NaN denotes unknown values.
    """
    known = np.isfinite(y)
    around = reduced.around(np.where(known, y, 0.0), np.zeros(reduced.n) if yp is None else yp)
    u = _completed(reduced, t, around) if known.all() else None
    if u is None:
        u = _with_others(reduced, t, around, known & ~reduced.is_highest[: reduced.n])
    if u is not None:
        return u
    jet = np.full((3, reduced.equations.n), np.nan)
    for (j, k), value, slope in zip(reduced.prolongation.leading, y, y if yp is None else yp, strict=True):
        jet[k, j] = value
        if yp is not None and (j, k + 1) not in reduced.prolongation.leading:
            jet[k + 1, j] = slope
    given = jet[: 1 + max(np.flatnonzero(np.isfinite(jet).any(axis=1)), default=0)]
    return reduced.from_jet(consistent_jet(reduced.equations, t, given, offsets=reduced.prolongation.c))


def _completed(reduced: ReducedProblem, t: float, u: np.ndarray) -> np.ndarray | None:
    """u with y fixed, by Gauss-Newton iteration for the derivatives; None if residuals exceed round-off."""
    for _ in range(_MOST_ITERATIONS):
        if _is_satisfied(reduced, t, u):
            return u
        f, matrix, _ = reduced.constraints.values(t, u)
        if not (np.isfinite(f).all() and np.isfinite(matrix.data).all()):
            return None
        u = u.copy()
        u[reduced.n :] -= np.linalg.lstsq(matrix[:, reduced.n :].toarray(), f, rcond=None)[0]
    return None


def _with_others(reduced: ReducedProblem, t: float, u: np.ndarray, kept: np.ndarray) -> np.ndarray | None:
    """u with modified highest derivatives and unknown values, by Newton's method; None if other values must change."""
    start = u[: reduced.n].copy()
    for _ in range(2):  # the size of zero values is unknown
        sizes = np.where(u == 0.0, np.inf, np.abs(u))
        try:
            selected = reduced.selected(t, u, np.where(u == 0.0, 1.0, sizes))
        except SingularBlock:
            return None
        [u], _, [found] = selected.exact(np.array([t]), u[None, :], sizes)
        if not found:
            return None
    moved = np.abs(u[: reduced.n] - start) > _ROUNDOFF * np.abs(start)
    return None if np.any(moved & kept) or not _is_satisfied(reduced, t, u) else u


def _is_satisfied(reduced: ReducedProblem, t: float, u: np.ndarray) -> bool:
    """Whether all equations hold to round-off of their terms."""
    f, matrix, _ = reduced.constraints.values(t, u)
    return bool(np.all(np.abs(f) <= _ROUNDOFF * (abs(matrix) @ np.abs(u))))
