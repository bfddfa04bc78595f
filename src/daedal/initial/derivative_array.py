"""Consistent values from the derivative array (Leimkuhler, Petzold and Gear; BCP section 5.3.4), for small systems.

F(t, y, y') = 0 is necessary but not sufficient. With its time derivative, approximated by differences along
(y', y''), the system

    F(t0, y, y') = 0,     (-3 F_0 + 4 F_1 - F_2) / 2h = 0,     F_i = F(t0 + ih, y + ih y', y' + ih y''),

determines (y, y') for index 1 and semi-explicit index 2 once the free initial data are given; y'' need not be unique,
so that the minimum-norm least-squares correction is taken.
"""

import numpy as np

from daedal.initial.newton import InitialResult
from daedal.initial.structure import evaluate_or_nan

_ITERATIONS = 30
_INCREMENTS = 12


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

    The increment in time is found by trial: from large to small, the first one whose result also satisfies the array
    with a hundred times smaller increment is right for the time scale of the problem.

    Parameters
    ----------
    fixed, fixed_slope : bool masks
        Components of y, and of y', that keep their given values (by default no component of y').
    h : float, optional
        First increment in time; its sign says on which side of t the equations may be evaluated.
    """
    h = np.float64(1e-3 * max(1.0, abs(t)) if h is None else h)
    with np.errstate(all="ignore"):
        for _ in range(_INCREMENTS):
            coarse = _solve(problem, t, y, yp, fixed, fixed_slope, h)
            if coarse is not None and _holds(problem, t, *coarse, 1e-2 * h):
                fine = _solve(problem, t, y, yp, fixed, fixed_slope, 1e-2 * h)
                best = fine if fine is not None and _holds(problem, t, *fine, 1e-4 * h) else coarse
                return InitialResult(best[0], best[1], True, 0.0)
            h *= 0.1
    return InitialResult(y, yp, False, np.inf)


def _derivative_along(problem, t, y, yp, ypp, h):
    """dF/dt along (1, y', y'') by a one-sided difference of second order."""
    here = evaluate_or_nan(problem, t, y, yp)
    ahead = evaluate_or_nan(problem, t + h, y + h * yp, yp + h * ypp)
    further = evaluate_or_nan(problem, t + 2.0 * h, y + 2.0 * h * yp, yp + 2.0 * h * ypp)
    return here, (4.0 * ahead - 3.0 * here - further) / (2.0 * h)


def _holds(problem, t, y, yp, ypp, h) -> bool:
    """Whether dF/dt vanishes for increment h too, compared with what t, y and y' contribute to it."""
    here, total = _derivative_along(problem, t, y, yp, ypp, h)
    by_time = evaluate_or_nan(problem, t + h, y, yp) - here
    by_y = evaluate_or_nan(problem, t, y + h * yp, yp) - here
    by_yp = evaluate_or_nan(problem, t, y, yp + h * ypp) - here
    terms = (np.abs(by_time) + np.abs(by_y) + np.abs(by_yp)) / abs(h)
    noise = 1e3 * np.finfo(float).eps * (np.abs(here) + np.max(np.abs(y))) / abs(h)
    return bool(np.all(np.abs(total) <= 1e-3 * terms + noise))


def _solve(problem, t, y, yp, fixed, fixed_slope, h) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
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
        here, derivative = _derivative_along(problem, t, *unpack(x), h)
        return np.concatenate([here, unit * derivative])

    x = np.concatenate([y[free_y], unit * yp[free_yp], unit**2 * ypp])
    residual = array(x)
    if not np.all(np.isfinite(residual)):
        return None
    for _ in range(_ITERATIONS):
        jacobian = _jacobian(array, x, residual)
        if not np.all(np.isfinite(jacobian)):
            return None
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
        if np.max(np.abs(relevant), initial=0.0) < 1e-9:
            break
    terms = np.abs(_jacobian(array, x, residual)) @ np.maximum(np.abs(x), 1e-3 * np.max(np.abs(x)))
    rounding = 1e-10 * np.max(np.abs(y))  # an equation that no unknown can change holds to round-off only
    return unpack(x) if np.all(np.abs(residual) <= 1e-6 * terms + rounding) else None


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
