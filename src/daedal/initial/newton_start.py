"""Consistent values at t0 by Newton's method with a line search (Brown, Hindmarsh and Petzold; BCP section 7.5).

Large systems of unknown structure use a damped implicit Euler step.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from daedal.errors import InconsistentInitialError
from daedal.methods.workspace import Workspace

_STEP_SIZES = 8  # number of artificial step sizes tried (MXNH of DASPK, which is 5 there)
_MATRICES = 6  # number of iteration matrices for each step size (MXNJ)
_ITERATIONS = 5  # number of iterations with one matrix (MXNIT)
_CONVERGING = 0.8
_POLISHING = 20
_INVISIBLE = 1e-20  # correction, in units of the weights, that leaves y' unchanged with an artificial step of 1e-12
_TOLERANCE = 0.01 * 0.33  # EPINIT times the Newton tolerance
_SUFFICIENT = 1e-4
_CORRECTIONS = 6  # maximum number of minimum-norm corrections
_UNMOVED = 1e-14  # correction, relative to the largest value, up to which partial derivatives count as unchanged
_RANK = 1e-10  # fraction of the largest singular value below which a direction is not corrected
_SMALLEST = np.finfo(float).eps ** (2.0 / 3.0)


@dataclass
class InitialResult:
    """Values at t0, whether the iteration converged, the last weighted correction, and the reason for a failure.

    `guesses` is the mask of unknowns determined only by derivatives of the equations, such as multipliers; None if only
    equations without derivatives are known to hold.
    """

    y: np.ndarray
    yp: np.ndarray
    converged: bool
    size: float
    refusal: InconsistentInitialError | None = None
    guesses: np.ndarray | None = None


def newton_initial(
    workspace: Workspace, t: float, y: np.ndarray, yp: np.ndarray, algebraic: np.ndarray, h: float, weights: np.ndarray
) -> InitialResult:
    r"""Problem 1: given the differential variables u, compute their derivatives u' and the algebraic variables v.

    The iteration matrix is that of the integration, A = dF/dy + (1/h) dF/dy', with its differential columns scaled by
    h: with :math:`\delta = A^{-1} F` the corrections are :math:`v \leftarrow v - \delta_a` and
    :math:`u' \leftarrow u' - \delta_d / h`.
    """
    result = InitialResult(y, yp, False, np.inf)
    for _ in range(_STEP_SIZES):
        if not np.isfinite(1.0 / h if h != 0.0 else np.inf):
            break
        result = _iterate(workspace, t, y, yp, ~algebraic, 1.0 / h, h, weights)
        if result.converged:
            return result
        h *= 0.1
    return result


def newton_with_given_slope(
    workspace: Workspace, t: float, y: np.ndarray, yp: np.ndarray, h: float, weights: np.ndarray
) -> InitialResult:
    """Problem 2: given y', compute y; the iteration matrix is dF/dy."""
    return _iterate(workspace, t, y, yp, np.zeros(y.size, dtype=bool), 0.0, h, weights)


def nearest_point(problem, t: float, y: np.ndarray, yp: np.ndarray) -> tuple[np.ndarray, ...] | None:
    """y and y' near given ones with F(t, y, y') = 0, by minimum-norm corrections, and dF/dy' and dF/dy there.

    None without exact derivatives, or if they are undefined.
    """
    for _ in range(_CORRECTIONS):
        partials = problem.exact_partials(t, y, yp)
        r = None if partials is None else problem.sample(t, y, yp)
        if partials is None or r is None or not np.isfinite(r).all():
            return None
        if not r.any():
            break
        change = np.linalg.lstsq(np.hstack(partials[::-1]), -r, rcond=_RANK)[0]
        y, yp = y + change[: y.size], yp + change[y.size :]
        if np.abs(change).max() <= _UNMOVED * max(np.abs(y).max(), np.abs(yp).max()):
            break
    return None if partials is None else (y, yp, *partials)


def _iterate(workspace, t, y, yp, derivative_unknown, cj, h, weights) -> InitialResult:
    y, yp = y.copy(), yp.copy()
    inverse = 1.0 / weights
    size = np.inf
    for _ in range(_MATRICES):
        r = workspace.residual(t, y, yp)
        if r is None or not workspace.prepare(t, y, yp, r, cj, h, inverse):
            break
        delta = workspace.solve(t, y, yp, r, cj, inverse)
        if delta is None:
            break
        size = _norm(delta, inverse)
        for _ in range(_ITERATIONS):
            if size <= _TOLERANCE:
                break
            moved = _linesearch(workspace, t, y, yp, delta, size, derivative_unknown, cj, inverse)
            if moved is None:
                return InitialResult(y, yp, False, size)
            y, yp, delta, new_size = moved
            rate, size = new_size / size, new_size
            if rate > _CONVERGING:
                break
        if size <= _TOLERANCE:
            y, yp = _polished(workspace, t, y, yp, delta, derivative_unknown, cj, inverse)
            return InitialResult(y, yp, True, size)
    return InitialResult(y, yp, False, size)


def _polished(workspace, t, y, yp, delta, derivative_unknown, cj, inverse):
    """Iterate while corrections decrease: a tolerance for y does not control y', whose error is 1/h times larger."""
    for _ in range(_POLISHING):
        y, yp = _corrected(y, yp, delta, derivative_unknown, cj)
        r = workspace.residual(t, y, yp)
        following = None if r is None else workspace.solve(t, y, yp, r, cj, inverse)
        if following is None:
            break
        size = _norm(following, inverse)
        if size <= _INVISIBLE or size > _CONVERGING * _norm(delta, inverse):
            break
        delta = following
    return y, yp


def _corrected(y, yp, delta, derivative_unknown, cj):
    """Corrected values: of y' for variables with unknown derivative, otherwise of y."""
    return np.where(derivative_unknown, y, y - delta), np.where(derivative_unknown, yp - cj * delta, yp)


def _norm(v, inverse) -> float:
    return float(np.sqrt(np.mean((v * inverse) ** 2)))


def _linesearch(workspace, t, y, yp, delta, size, derivative_unknown, cj, inverse):
    """Backtrack on f = 1/2 ||A^{-1} F||^2 until it decreases sufficiently; None if no step length suffices.

    A full correction may change v although the fixed u caused the residual, and the next one may reverse this change:
    two full corrections may succeed where one fails.
    """
    step = 1.0
    smallest = _SMALLEST / max(size, 1e-300)
    while step >= min(smallest, 0.5):
        limit = (1.0 - 2.0 * _SUFFICIENT * step) * size**2
        moved: Any = _attempt(workspace, t, y, yp, step * delta, derivative_unknown, cj, inverse)
        if moved is not None and moved[3] ** 2 <= limit:
            return moved
        if moved is not None and step == 1.0:
            y1, yp1, following = moved[:3]
            again: Any = _attempt(workspace, t, y1, yp1, following, derivative_unknown, cj, inverse)
            if again is not None and again[3] ** 2 <= limit:
                return again
        step *= 0.5
    return None


def _attempt(workspace, t, y, yp, delta, derivative_unknown, cj, inverse):
    """The values after a correction, the next correction and its norm; None if not computable."""
    y, yp = _corrected(y, yp, delta, derivative_unknown, cj)
    r = workspace.residual(t, y, yp)
    following = None if r is None else workspace.solve(t, y, yp, r, cj, inverse)
    return None if following is None else (y, yp, following, _norm(following, inverse))


# --- y' from a small damped implicit Euler step, as in DASSL (BCP section 5.3.1) -------------------------------------

# The values are at t0 + h instead of t0: a fallback for large systems of unknown structure.

_DAMPING = 0.75
_EULER_ITERATIONS = 10
_NEW_MATRIX_EVERY = 5
_SLOWEST_RATE = 0.9
_EULER_TOLERANCE = 0.33
_MAX_FAILURES = 10
_ROUNDOFF_LEVEL = 100.0 * np.finfo(float).eps


def damped_euler_step(
    workspace: Workspace, t: float, y: np.ndarray, yp: np.ndarray, h: float, weights: np.ndarray
) -> tuple[float, np.ndarray, np.ndarray] | None:
    """(t0 + h, y, y') after one implicit Euler step with ||y - y0|| <= 1, or None."""
    inverse = 1.0 / weights
    for _ in range(_MAX_FAILURES):
        solved = _euler_newton(workspace, t + h, y, yp, h, inverse)
        if solved is None:
            h *= 0.25
            continue
        error = float(np.sqrt(np.mean(((solved[0] - y) * inverse) ** 2)))
        if error <= 1.0:
            return t + h, *solved
        h *= max(0.1, min(0.5, 0.9 / (2.0 * error + 1e-4)))
    return None


def _euler_newton(workspace, t, y0, yp0, h, inverse):
    y, yp = y0 + h * yp0, yp0.copy()
    cj = 1.0 / h
    level = _ROUNDOFF_LEVEL * float(np.sqrt(np.mean((y0 * inverse) ** 2)))
    factor, first = 1e6, 0.0
    for m in range(_EULER_ITERATIONS):
        r = workspace.residual(t, y, yp)
        if r is None or (m % _NEW_MATRIX_EVERY == 0 and not workspace.prepare(t, y, yp, r, cj, h, inverse)):
            return None
        delta = workspace.solve(t, y, yp, r, cj, inverse)
        if delta is None:
            return None
        delta *= _DAMPING
        y = y - delta
        yp = yp - cj * delta
        size = float(np.sqrt(np.mean((delta * inverse) ** 2)))
        if size <= level:
            return y, yp
        if m == 0:
            first = size
        else:
            rate = (size / first) ** (1.0 / m)
            if rate > _SLOWEST_RATE:
                return None
            factor = rate / (1.0 - rate)
        if factor * size <= _EULER_TOLERANCE:
            return y, yp
    return None


def weighted_size(change: np.ndarray, weights: np.ndarray) -> float:
    """The root mean square of a change in units of weights."""
    return float(np.sqrt(np.mean((change / weights) ** 2)))
