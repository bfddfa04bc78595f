"""Step sizes in compiled code: the first step, growth, reduction, limits.

The rules are functions of numbers only; kernels use them directly, and integrators in C use their traces
(:mod:`daedal.ensembles.gpu_model`).
"""

from __future__ import annotations

from math import isfinite, sqrt

import numpy as np

from daedal.kernels.compilation import entry, inlined, part
from daedal.kernels.externals import spacing
from daedal.kernels.signatures import f64

SPACINGS = 100.0  # smallest first step, in units of the floating-point spacing at the ends of the interval
ROUNDOFF = float(np.finfo(np.float64).eps)
FAILED = 0.25  # factor by which a step that could not be computed is shortened
LEAST_BEFORE = 1e-4  # errors of the previous step below this value are ignored

_SAFETY, _SMALLEST = 0.9, 0.2
_BETA, _LARGEST = 0.04, 10.0  # Hairer, Norsett, Wanner II.4: PI step control
_LARGEST_CLASSIC = 5.0
_LEAST_ERROR = 1e-12


# --- after a step -----------------------------------------------------------------------------------------------------


@part
def growth(size, before, order, rejected):
    """The factor by which a step grows after one with an error of `size`: a PI controller.

    `before` is the error of the previous step; `rejected` is whether an attempt at this step was rejected.
    """
    factor = max(size, _LEAST_ERROR) ** (1.0 / order - 0.75 * _BETA) / max(before, LEAST_BEFORE) ** _BETA / _SAFETY
    return _limited(1.0 / max(factor, 1.0 / _LARGEST), rejected)


@part
def classic_growth(size, order, rejected):
    """The factor by which a step grows, by the classical rule."""
    return _limited(min(_LARGEST_CLASSIC, _SAFETY * max(size, _LEAST_ERROR) ** (-1.0 / order)), rejected)


@part
def _limited(factor, rejected):
    return max(min(factor, 1.0) if rejected else factor, _SMALLEST)


@part
def shrinkage(size, order):
    """The factor by which a step with too large an error `size` is shortened."""
    return max(_SMALLEST, _SAFETY * size ** (-1.0 / order))


# --- the first step ---------------------------------------------------------------------------------------------------


@part
def step_by_slope(length, slope, shortest, longest):
    """min(1e-3 |t_1 - t_0|, 1/2 ||y'_0||^{-1}) within its limits (BCP section 5.2.4)."""
    h = 1e-3 * length
    if isfinite(slope) and slope > 0.5 / h:
        h = 0.5 / slope
    return min(max(h, shortest), longest)


@part
def step_by_size(size, slope):
    """0.01 |y|/|y'| in the norm of the tolerances (HNW II.4); 0 if undefined."""
    return 0.01 * size / slope if size > 0.0 and slope > 0.0 and isfinite(size / slope) else 0.0


@part
def usual_position(q, largest, ratio):
    """The typical size of positions; if they are practically zero, `ratio` (atol relative to rtol)."""
    return ratio if 0.0 < q <= largest else q


@part
def step_by_motion(q, v, a, tolerance, order):
    """A fraction of the smaller of |q|/|v| and (|q|/|a|)^(1/2) that suits the tolerance; 0 if undefined."""
    rate = max(v / q, sqrt(a / q))
    return 0.1 * min(tolerance, 1.0) ** (1.0 / (order + 1)) / rate if isfinite(rate) and rate > 0.0 else 0.0


@part
def first_step(by_motion, by_size, by_slope, length, longest):
    """The first step of an explicit method, by the first applicable rule."""
    most = min(0.1 * length, longest)
    if by_motion > 0.0:
        return min(by_motion, most)
    return min(max(by_size, by_slope), most) if by_size > 0.0 else by_slope


@entry(f64(f64, f64, f64[:], f64[:], f64[:], f64[:], f64))
def first_step_size(t0, t1, y, yp, rtol, atol, longest):
    """h_0 = min(1e-3 |t_1 - t_0|, 1/2 ||y'_0||^{-1}), signed (BCP section 5.2.4).

    It is at least a hundred floating-point spacings at t_0 and t_1.
    """
    length, slope = abs(t1 - t0), 0.0
    for i in range(y.size):
        weight = rtol[i] * abs(y[i]) + atol[i]
        slope += (yp[i] / weight) ** 2
    slope = sqrt(slope) / sqrt(float(y.size))
    shortest = min(SPACINGS * spacing(max(abs(t0), abs(t1))), length)
    return (1.0 if t1 > t0 else -1.0) * step_by_slope(length, slope, shortest, longest)


@part
def choose_first_step(run):
    """The first step of a run if not given, by the rule of its method."""
    n = run.n
    y, yp, rtol, atol = run.y, run.yp, run.rtol, run.atol
    h = first_step_size(run.t, run.t_end, y, yp, rtol, atol, run.h_max)
    if run.start_order == 0 or n == 0:
        return h
    by_motion = _by_motion(run, y, yp, rtol, atol) if run.positions > 0 else 0.0
    by_size = _by_size(y, yp, rtol, atol)
    return run.sign * first_step(by_motion, by_size, abs(h), abs(run.t_end - run.t), run.h_max)


@part
def _by_motion(run, y, yp, rtol, atol):
    nx = run.positions
    q, v, a, largest, ratio = 0.0, 0.0, 0.0, 0.0, 0.0
    for i in range(nx):
        q, v, a = max(q, abs(y[i])), max(v, abs(y[nx + i])), max(a, abs(yp[nx + i]))
        largest, ratio = max(largest, atol[i]), max(ratio, atol[i] / max(rtol[i], 1e-14))
    q = usual_position(q, largest, ratio)
    if q == 0.0:
        return 0.0
    tolerance = 0.0
    for i in range(nx):
        tolerance = max(tolerance, rtol[i] + atol[i] / q)
    return step_by_motion(q, v, a, tolerance, run.start_order)


@part
def _by_size(y, yp, rtol, atol):
    size, slope = 0.0, 0.0
    for i in range(y.size):
        weight = rtol[i] * abs(y[i]) + atol[i]
        if not weight > 0.0:
            return 0.0
        size += (y[i] / weight) ** 2
        slope += (yp[i] / weight) ** 2
    return step_by_size(sqrt(size), sqrt(slope))


# --- limits -----------------------------------------------------------------------------------------------------------


@inlined
def shortest_step(run):
    """The smallest step size with which a run continues."""
    return least_step(run.t, run.t_end - run.t)


@part
def least_step(t, rest):
    """The smallest step size with which a run continues, given the rest of the interval."""
    return max(4.0 * ROUNDOFF * abs(t), 1e-30 * abs(rest))


@part
def step_within(h, t, t_stop, longest, sign):
    """The step size h within its limits, extended to `t_stop` if the step nearly reaches it."""
    if abs(h) > longest:
        h = sign * longest
    rest = t_stop - t
    return rest if isfinite(t_stop) and sign * (h - rest) > -1e-8 * abs(rest) else h


@part
def end_of_step(h, t, t_stop):
    """t + h, or `t_stop` if the two are equal up to round-off."""
    end = t + h
    return t_stop if isfinite(t_stop) and abs(end - t_stop) <= 1e-14 * (abs(end) + abs(h)) else end


@part
def step_to_try(run):
    """The step size within its limits, and the end of the step; the size is 0 if it has become too small.

    Constant steps end at multiples of h, the last one at the end of the interval.
    """
    if run.fixed:
        h = run.h
        last = run.steps + 1 == run.last_step and abs(run.t_end - run.t0 - run.last_step * h) <= 1e-9 * abs(h)
        return h, run.t_end if last else run.t0 + (run.steps + 1) * h
    h = step_within(run.h, run.t, run.t_stop, run.h_max, run.sign)
    return (0.0, run.t) if abs(h) < run.h_min else (h, end_of_step(h, run.t, run.t_stop))
