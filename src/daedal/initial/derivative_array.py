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

    Parameters
    ----------
    fixed, fixed_slope : bool masks
        Components of y, and of y', that keep their given values (by default no component of y').
    h : float, optional
        Difference increment in time.
    """
    n = problem.n
    free_y = np.flatnonzero(~fixed)
    free_yp = np.arange(n) if fixed_slope is None else np.flatnonzero(~fixed_slope)
    h = 1e-5 * max(1.0, abs(t)) if h is None else h
    y, yp, ypp = y.copy(), yp.copy(), np.zeros(n)

    def unpack(x):
        new_y, new_yp = y.copy(), yp.copy()
        new_y[free_y] = x[: free_y.size]
        new_yp[free_yp] = x[free_y.size : free_y.size + free_yp.size]
        return new_y, new_yp, x[free_y.size + free_yp.size :]

    def array(x):
        a, b, c = unpack(x)
        here = evaluate_or_nan(problem, t, a, b)
        ahead = evaluate_or_nan(problem, t + h, a + h * b, b + h * c)
        further = evaluate_or_nan(problem, t + 2.0 * h, a + 2.0 * h * b, b + 2.0 * h * c)
        return np.concatenate([here, (4.0 * ahead - 3.0 * here - further) / (2.0 * h)])

    x = np.concatenate([y[free_y], yp[free_yp], ypp])
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
    level = np.max(np.abs(_jacobian(array, x, residual)) @ np.maximum(np.abs(x), 1.0), initial=1.0)
    converged = bool(np.max(np.abs(residual)) <= 1e-6 * level)
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
