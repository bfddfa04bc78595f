"""Consistent initial values of problems of any index, in all unknowns of the reduced problem."""

from __future__ import annotations

from typing import Any

import numpy as np

from daedal.analysis.probe import Probe
from daedal.driver.given_start import GivenStart
from daedal.driver.request import Request
from daedal.index.reduction.reduced_problem import ReducedProblem
from daedal.index.reduction.selection import lift
from daedal.index.structure.derivative_array import equation_in_words
from daedal.problems import SemiExplicitDAE

_ROUNDOFF = 1e-13


def given_values(problem: Any, request: Request) -> tuple[np.ndarray, np.ndarray | None]:
    """y and, if given, y' at the start; NaN where unknown."""
    y, yp = request.stacked(problem)
    if isinstance(problem, SemiExplicitDAE) and request.initial[1] is None:
        y = np.concatenate([y[: problem.n_y], np.full(problem.n_z, np.nan)])
    return y, yp


def consistent_start(reduction: ReducedProblem, request: Request, y: np.ndarray, yp: np.ndarray | None) -> np.ndarray:
    """u satisfying all equations at the start; an error if given values are far off and may not be corrected.

    If derivatives are not given, values of unknowns that are not states, such as multipliers, are guesses. Given
    derivatives may satisfy the equations but contradict the differentiated ones.
    """
    t, n = request.span[0], y.size
    u = lift(reduction, t, y, yp)
    guess = reduction.is_highest[:n] if yp is None else np.zeros(n, dtype=bool)  # quantities that no state depends on
    around = u.copy()
    slopes, given_slopes = np.full((2, n), np.nan)
    if yp is not None and not _hold(reduction.original, t, y, yp):
        columns = reduction.slope_columns
        occurs = columns >= 0
        slopes[occurs], given_slopes[occurs] = u[columns[occurs]], yp[occurs]
        around[columns[occurs]] = yp[occurs]
    values = np.where(guess, np.nan, y)
    around[:n] = np.where(np.isfinite(values), values, u[:n])
    start = GivenStart(reduction.original, request, values, given_slopes, u[:n], slopes)
    if not start.is_tolerated():
        kept = reduction.prolongation.kept
        residual = reduction.constraints.values(t, around)[0]
        start.refuse([equation_in_words(*row) for row in kept], residual, [i for i, _ in kept])
    return u


def _hold(problem: Any, t: float, y: np.ndarray, yp: np.ndarray) -> bool:
    """Whether the equations hold up to round-off, relative to their terms."""
    probe = Probe(problem)
    return bool(np.all(np.abs(probe.residual(t, y, yp)) <= _ROUNDOFF * probe.terms(t, y, yp)))
