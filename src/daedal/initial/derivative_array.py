"""Consistent values from the derivative array (Leimkuhler, Petzold and Gear; BCP section 5.3.4), for small systems.

F(t, y, y') = 0 is necessary but not sufficient. With its time derivative, approximated by differences along
(y', y''), the system

    F(t0, y, y') = 0,     (-3 F_0 + 4 F_1 - F_2) / 2h = 0,     F_i = F(t0 + ih, y + ih y', y' + ih y''),

determines (y, y') for index 1 and semi-explicit index 2 once the free initial data are given; y'' need not be unique,
so that the minimum-norm least-squares correction is taken.
"""

import numpy as np

from daedal.initial.newton import InitialResult
from daedal.initial.structure import evaluate_or_nan, time_scale

_ITERATIONS = 30
_INCREMENTS = 14
_DIFFERENCE = 1e-5  # of difference quotients, relative to the size of an unknown
_RANK = 1e-11
_ROUNDOFF = float(np.finfo(float).eps)


def derivative_array_initial(
    problem,
    t: float,
    y: np.ndarray,
    yp: np.ndarray,
    *,
    fixed: np.ndarray,
    fixed_slope: np.ndarray | None = None,
    h: float | None = None,
    weights: np.ndarray | None = None,
) -> InitialResult:
    """Solve the derivative array for the values that are not fixed.

    The increment in time is found by trial: from large to small, the first one whose result also satisfies the array
    with a hundred times smaller increment is right for the time scale of the problem.

    Parameters
    ----------
    fixed, fixed_slope : bool masks
        Components of y, and of y', that keep their given values (by default no component of y').
    h : float, optional
        First increment in time; its sign says on which side of t the equations may be evaluated. By default a
        thousandth of the time scale that the equations show.
    weights : array, optional
        Changes of y that do not matter, rtol |y| + atol: what values that are zero are measured by.
    """
    if weights is None:
        weights = np.maximum(1e-6 * np.abs(y), 1e-9)
    if h is None:
        h = 1e-3 * (time_scale(problem, t, y, yp, weights) or max(1.0, abs(t)))
    array = _Array(problem, t, y, yp, fixed, fixed_slope, np.maximum(np.abs(y), 1e3 * weights))
    increment = np.float64(h)
    with np.errstate(all="ignore"):
        for _ in range(_INCREMENTS):
            if abs(increment) <= 100.0 * _ROUNDOFF * abs(t):
                break
            coarse = array.solve(increment)
            if coarse is not None and array.holds(*coarse, 1e-2 * increment):
                fine = array.solve(1e-2 * increment)
                best = fine if fine is not None and array.holds(*fine, 1e-4 * increment) else coarse
                return InitialResult(best[0], best[1], True, 0.0)
            increment *= 0.1
    return InitialResult(y, yp, False, np.inf)


class _Array:
    """The derivative array at t0 for the unknowns among (y, y', y''), each measured by its `size`."""

    def __init__(self, problem, t, y, yp, fixed, fixed_slope, size):
        self.problem, self.t, self.y, self.yp, self.size = problem, t, y, yp, size
        self.free_y = np.flatnonzero(~fixed)
        self.free_yp = np.arange(problem.n) if fixed_slope is None else np.flatnonzero(~fixed_slope)

    def residual(self, t, y, yp) -> np.ndarray:
        return evaluate_or_nan(self.problem, t, y, yp)

    def along(self, y, yp, ypp, h):
        """F, and dF/dt along (1, y', y'') by a one-sided difference of second order."""
        here = self.residual(self.t, y, yp)
        ahead = self.residual(self.t + h, y + h * yp, yp + h * ypp)
        further = self.residual(self.t + 2.0 * h, y + 2.0 * h * yp, yp + 2.0 * h * ypp)
        return here, (4.0 * ahead - 3.0 * here - further) / (2.0 * h)

    def terms(self, y, yp, ypp, h) -> np.ndarray:
        """The size of the terms of every equation on the way to t + h: what a change of one unknown by itself makes.

        A value that is zero changes by its `size`: what it leaves in an equation such as v = 0 is round-off of that;
        and a slope that is zero by what would change its value by that much in the unit of time of :meth:`solve`.
        """
        y, yp = y + h * yp, yp + h * ypp
        here = self.residual(self.t + h, y, yp)
        total = np.abs(here)
        slope = self.size / (1e3 * abs(h))
        moved = [np.where(np.abs(y) < self.size, self.size, y), np.where(np.abs(yp) < slope, slope, yp)]
        for place, values in enumerate(moved):
            for j in np.flatnonzero(values):
                point = [y.copy(), yp.copy()]
                point[place][j] += _DIFFERENCE * values[j]
                change = np.abs(self.residual(self.t + h, *point) - here) / _DIFFERENCE
                total = np.maximum(total, np.nan_to_num(change))
        return total

    def holds(self, y, yp, ypp, h) -> bool:
        """Whether dF/dt vanishes for increment h too, compared with what t, y and y' contribute to it."""
        here, total = self.along(y, yp, ypp, h)
        by_time = self.residual(self.t + h, y, yp) - here
        by_y = self.residual(self.t, y + h * yp, yp) - here
        by_yp = self.residual(self.t, y, yp + h * ypp) - here
        terms = (np.abs(by_time) + np.abs(by_y) + np.abs(by_yp)) / abs(h)
        noise = 1e3 * _ROUNDOFF * self.terms(y, yp, ypp, h) / abs(h)
        return bool(np.all(np.abs(total) <= 1e-3 * terms + noise))

    def solve(self, h) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
        """Gauss-Newton with one increment h; time is measured in units of 1000 h."""
        unit, n_y, n_yp = 1e3 * abs(h), self.free_y.size, self.free_yp.size
        sizes = np.concatenate([self.size[self.free_y], self.size[self.free_yp], self.size])

        def unpack(x):
            y, yp, values = self.y.copy(), self.yp.copy(), x * sizes
            y[self.free_y] = values[:n_y]
            yp[self.free_yp] = values[n_y : n_y + n_yp] / unit
            return y, yp, values[n_y + n_yp :] / unit**2

        def array(x):
            here, derivative = self.along(*unpack(x), h)
            return np.concatenate([here, unit * derivative])

        x = np.concatenate([self.y[self.free_y], unit * self.yp[self.free_yp], np.zeros(self.y.size)]) / sizes
        residual = array(x)
        if not np.all(np.isfinite(residual)):
            return None
        for _ in range(_ITERATIONS):
            jacobian = _jacobian(array, x, residual)
            if not np.all(np.isfinite(jacobian)):
                return None
            scale = np.maximum(np.abs(x), 1.0)
            correction = scale * _least_squares(jacobian * scale, -residual)
            rows = _row_sizes(jacobian * scale)
            factor, old = 1.0, np.linalg.norm(residual / rows)
            while factor > 1e-6:
                trial = array(x + factor * correction)
                if np.all(np.isfinite(trial)):
                    if np.linalg.norm(trial / rows) <= old * (1.0 - 1e-4 * factor) + 1e-300:
                        break
                factor *= 0.5
            else:
                break
            x, residual = x + factor * correction, trial
            if np.max(np.abs(correction / scale)[: n_y + n_yp], initial=0.0) < 1e-9:
                break
        y, yp, ypp = unpack(x)
        by_unknowns = np.abs(_jacobian(array, x, residual)) @ np.maximum(np.abs(x), 1e-3)
        rounding = self.terms(y, yp, ypp, h)  # an equation that no unknown can change holds to round-off only
        allowed = 1e-6 * by_unknowns + np.concatenate([1e-10 * rounding, 1e3 * _ROUNDOFF * rounding * unit / abs(h)])
        return (y, yp, ypp) if np.all(np.abs(residual) <= allowed) else None


def _row_sizes(matrix: np.ndarray) -> np.ndarray:
    largest = np.max(np.abs(matrix), axis=1, initial=0.0)
    return np.where(largest > 0.0, largest, 1.0)


def _least_squares(matrix: np.ndarray, right: np.ndarray) -> np.ndarray:
    """The shortest solution; equations are scaled, so that their units do not decide about the rank."""
    rows = _row_sizes(matrix)
    return np.linalg.lstsq(matrix / rows[:, None], right / rows, rcond=_RANK)[0]


def _jacobian(function, x, base):
    matrix = np.empty((base.size, x.size))
    for j in range(x.size):
        delta = _DIFFERENCE * max(abs(x[j]), 1.0)
        shifted = x.copy()
        shifted[j] += delta
        above = function(shifted)
        shifted[j] -= 2.0 * delta
        matrix[:, j] = (above - function(shifted)) / (2.0 * delta)
    return matrix
