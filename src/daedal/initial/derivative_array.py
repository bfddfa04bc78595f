"""Consistent values from the derivative array (Leimkuhler, Petzold and Gear; BCP section 5.3.4), for small systems.

F(t, y, y') = 0 is necessary but not sufficient. With its time derivative, approximated by differences along
(y', y''), the system

    F(t0, y, y') = 0,     (-3 F_0 + 4 F_1 - F_2) / 2h = 0,     F_i = F(t0 + ih, y + ih y', y' + ih y''),

determines (y, y') for index 1 and semi-explicit index 2 once the free initial data are given; y'' need not be unique,
so that the minimum-norm least-squares correction is taken.
"""

from __future__ import annotations

import numpy as np

from daedal.initial.newton import InitialResult
from daedal.initial.structure import evaluate_or_nan

_ITERATIONS = 30
_INCREMENTS = 12
_AGREEMENT = 1e-7
_ACCEPTED = 1e-2


def derivative_array_initial(
    problem,
    t: float,
    y: np.ndarray,
    yp: np.ndarray,
    *,
    fixed: np.ndarray,
    fixed_slope: np.ndarray | None = None,
    h: float | None = None,
) -> InitialResult:
    """Solve the derivative array for the values that are not fixed.

    The increment in time is found by trial: too large a one misses fast changes, too small a one drowns in round-off. It
    is divided by ten until two results agree; the best agreement counts.

    Parameters
    ----------
    fixed, fixed_slope : bool masks
        Components of y, and of y', that keep their given values (by default no component of y').
    h : float, optional
        First increment in time; its sign says on which side of t the equations may be evaluated.
    """
    h = 1e-3 * max(1.0, abs(t)) if h is None else h
    best, agreement, last = InitialResult(y, yp, False, np.inf), np.inf, None
    for _ in range(_INCREMENTS):
        result = _solve(problem, t, y, yp, fixed, fixed_slope, h)
        if result.converged and last is not None:
            # The derivatives of algebraic variables need not be unique.
            change = max(
                _relative_change(result.yp[fixed], last.yp[fixed]), _relative_change(result.y[~fixed], last.y[~fixed])
            )
            if change < agreement:
                best, agreement = result, change
            if change < _AGREEMENT:
                break
        last = result if result.converged else None
        h *= 0.1
    return best if agreement < _ACCEPTED else InitialResult(y, yp, False, np.inf)


def _relative_change(new: np.ndarray, old: np.ndarray) -> float:
    if new.size == 0:
        return 0.0
    return float(np.max(np.abs(new - old) / np.maximum(np.abs(new), 1e-3 * np.max(np.abs(new)) + 1e-300)))


def _solve(problem, t, y, yp, fixed, fixed_slope, h) -> InitialResult:
    """Gauss-Newton for the derivative array with one increment h; time is measured in units of 1000 h."""
    unit = 1e3 * abs(h)
    n = problem.n
    free_y = np.flatnonzero(~fixed)
    free_yp = np.arange(n) if fixed_slope is None else np.flatnonzero(~fixed_slope)
    y, yp, ypp = y.copy(), yp.copy(), np.zeros(n)

    def unpack(x):
        new_y, new_yp = y.copy(), yp.copy()
        new_y[free_y] = x[: free_y.size]
        new_yp[free_yp] = x[free_y.size : free_y.size + free_yp.size] / unit
        return new_y, new_yp, x[free_y.size + free_yp.size :] / unit**2

    def array(x):
        a, b, c = unpack(x)
        here = evaluate_or_nan(problem, t, a, b)
        ahead = evaluate_or_nan(problem, t + h, a + h * b, b + h * c)
        further = evaluate_or_nan(problem, t + 2.0 * h, a + 2.0 * h * b, b + 2.0 * h * c)
        return np.concatenate([here, (4.0 * ahead - 3.0 * here - further) * (unit / (2.0 * h))])

    x = np.concatenate([y[free_y], unit * yp[free_yp], unit**2 * ypp])
    residual = array(x)
    size = np.inf
    if not np.all(np.isfinite(residual)):
        return InitialResult(y, yp, False, size)
    for _ in range(_ITERATIONS):
        jacobian = _jacobian(array, x, residual)
        if not np.all(np.isfinite(jacobian)):
            return InitialResult(y, yp, False, size)
        # Unknowns of different size: measure the correction relative to them.
        scale = np.maximum(np.abs(x), 1.0)
        correction = scale * np.linalg.lstsq(jacobian * scale, -residual, rcond=1e-9)[0]
        factor, old = 1.0, np.linalg.norm(residual)
        while factor > 1e-6:
            trial = array(x + factor * correction)
            if np.all(np.isfinite(trial)) and np.linalg.norm(trial) <= old * (1.0 - 1e-4 * factor) + 1e-300:
                break
            factor *= 0.5
        else:
            break
        x, residual = x + factor * correction, trial
        relevant = (correction / scale)[: free_y.size + free_yp.size]
        size = float(np.max(np.abs(relevant), initial=0.0))
        if size < 1e-9:
            break
    new_y, new_yp, _ = unpack(x)
    terms = np.abs(_jacobian(array, x, residual)) @ np.maximum(np.abs(x), 1e-3 * np.max(np.abs(x)))
    converged = bool(np.all(np.abs(residual) <= 1e-6 * terms))
    return InitialResult(new_y, new_yp, converged, size)


def _jacobian(function, x, base):
    matrix = np.empty((base.size, x.size))
    for j in range(x.size):
        delta = 1e-6 * max(abs(x[j]), 1.0)
        shifted = x.copy()
        shifted[j] += delta
        above = function(shifted)
        shifted[j] -= 2.0 * delta
        matrix[:, j] = (above - function(shifted)) / (2.0 * delta)
    return matrix
