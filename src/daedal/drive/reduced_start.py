"""Consistent initial values of problems of any index, in all unknowns of the reduced problem."""

from __future__ import annotations

import numpy as np

from daedal.analysis.wording import FROM_ZERO, MOST_NAMED, listing, number
from daedal.drive.request import Request
from daedal.errors import InconsistentInitialError
from daedal.index_reduction.reduced import ReducedProblem
from daedal.initial.consistent import split_initial
from daedal.problems import SemiExplicitDAE
from daedal.problems.checks import check_tolerances
from daedal.structure.derivative_array import equation_in_words

_TOLERATED = 0.33  # weighted size of a correction that Newton's method would not notice
_VIOLATED = 1e-3  # part of the worst violation


def consistent_start(reduction: ReducedProblem, request: Request) -> np.ndarray:
    """u on all equations at the start; values that are too far from them are refused unless they may be corrected.

    Where derivatives are not given, values of unknowns without states, such as multipliers, are taken for guesses.
    """
    problem, t, settings = reduction.original, request.span[0], request.settings
    y, yp = split_initial(problem, request.initial)
    if isinstance(problem, SemiExplicitDAE) and request.initial[1] is None:
        y = np.concatenate([y[: problem.n_y], np.full(problem.n_z, np.nan)])
    u = reduction.lift(t, y, yp)
    rtol, atol = check_tolerances(reduction.n, settings.rtol, settings.atol)
    known = np.isfinite(y)
    if yp is None:  # what no state depends on is a guess
        known &= ~reduction.is_highest[: y.size]
    change = np.where(known, u[: y.size] - y, 0.0)
    weights = rtol * np.abs(np.where(known, y, 0.0)) + atol
    ratio = np.abs(change) / np.maximum(weights, 1e-300)
    if not settings.correct_initial and float(np.sqrt(np.mean(ratio**2))) > _TOLERATED:
        _refuse(reduction, t, np.where(known, y, u[: y.size]), u, ratio)
    return u


def _refuse(reduction: ReducedProblem, t: float, y: np.ndarray, u: np.ndarray, ratio: np.ndarray):
    """Say which equations, hidden ones included, the given values violate."""
    given = u.copy()
    given[: y.size] = y
    residual = reduction.constraints.values(t, given)[0]
    order = np.argsort(-np.abs(residual), kind="stable")
    violated = [int(k) for k in order if abs(residual[k]) > _VIOLATED * abs(residual[order[0]])]
    kept = reduction.prolongation.kept
    named = listing(
        (f"{equation_in_words(*kept[k])} ({number(residual[k])})" for k in violated[:MOST_NAMED]), len(violated)
    )
    moved = [int(j) for j in np.argsort(-ratio, kind="stable") if ratio[j] > 1.0][:MOST_NAMED]
    changes = listing(f"{reduction.original.label(j)} from {number(y[j])} to {number(u[j])}" for j in moved)
    message = (
        f"The initial values do not satisfy the equations and what follows from them by differentiation at "
        f"t = {number(t)}.\nViolated {FROM_ZERO}, with the residual that should be 0: {named}.\n"
        f"What would have to change, for example: {changes}.\n"
        "Remedy: correct these values, or have them corrected with correct_initial=True."
    )
    raise InconsistentInitialError(message, tuple(dict.fromkeys(kept[k][0] for k in violated)), residual)
