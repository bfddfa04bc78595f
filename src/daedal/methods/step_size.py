"""The first step size of a run, and the limits of later ones, in compiled code."""

from __future__ import annotations

from math import isfinite, sqrt

import numpy as np

from daedal.kernels.compilation import entry, inlined, part
from daedal.kernels.externals import spacing
from daedal.kernels.signatures import f64

_SPACINGS = 100.0
_ROUNDOFF = np.finfo(np.float64).eps


@entry(f64(f64, f64, f64[:], f64[:], f64[:], f64[:], f64))
def first_step_size(t0, t1, y, yp, rtol, atol, longest):
    """h_0 = min(1e-3 |t_1 - t_0|, 1/2 ||y'_0||^{-1}), signed (BCP section 5.2.4).

    It is not shorter than a hundred spacings of floats at t_0 and t_1.
    """
    length = abs(t1 - t0)
    h, slope = 1e-3 * length, 0.0
    for i in range(y.size):
        weight = rtol[i] * abs(y[i]) + atol[i]
        slope += (yp[i] / weight) ** 2
    slope = sqrt(slope) / sqrt(float(y.size))
    if isfinite(slope) and slope > 0.5 / h:
        h = 0.5 / slope
    shortest = min(_SPACINGS * spacing(max(abs(t0), abs(t1))), length)
    return (1.0 if t1 > t0 else -1.0) * min(max(h, shortest), longest)


@part
def choose_first_step(run):
    """The first step of a run for which none is given, by the rule of its method."""
    n = run.n
    y, yp, rtol, atol = run.y, run.yp, run.rtol, run.atol
    h = first_step_size(run.t, run.t_end, y, yp, rtol, atol, run.h_max)
    if run.start_order == 0 or n == 0:
        return h
    longest = min(0.1 * abs(run.t_end - run.t), run.h_max)
    if run.positions > 0:
        estimate = _mechanical(run, y, yp, rtol, atol)
        if estimate > 0.0:
            return run.sign * min(estimate, longest)
    estimate = _first_order(y, yp, rtol, atol)
    return run.sign * min(max(estimate, abs(h)), longest) if estimate > 0.0 else h


@part
def _mechanical(run, y, yp, rtol, atol):
    """A part of the shortest of |q|/|v| and (|q|/|a|)^(1/2) that suits the tolerance; 0 if there is none."""
    nx = run.positions
    q, v, a, largest, ratio = 0.0, 0.0, 0.0, 0.0, 0.0
    for i in range(nx):
        q, v, a = max(q, abs(y[i])), max(v, abs(y[nx + i])), max(a, abs(yp[nx + i]))
        largest, ratio = max(largest, atol[i]), max(ratio, atol[i] / max(rtol[i], 1e-14))
    if 0.0 < q <= largest:  # as good as zero
        q = ratio
    if q == 0.0:
        return 0.0
    rate, tolerance = max(v / q, sqrt(a / q)), 0.0
    for i in range(nx):
        tolerance = max(tolerance, rtol[i] + atol[i] / q)
    if not (isfinite(rate) and rate > 0.0):
        return 0.0
    return 0.1 * min(tolerance, 1.0) ** (1.0 / (run.start_order + 1)) / rate


@part
def _first_order(y, yp, rtol, atol):
    """0.01 |y|/|y'| in the norm of the tolerances (HNW II.4); 0 where that is no length."""
    size, slope = 0.0, 0.0
    for i in range(y.size):
        weight = rtol[i] * abs(y[i]) + atol[i]
        if not weight > 0.0:
            return 0.0
        size += (y[i] / weight) ** 2
        slope += (yp[i] / weight) ** 2
    size, slope = sqrt(size), sqrt(slope)
    if not (size > 0.0 and slope > 0.0 and isfinite(size / slope)):
        return 0.0
    return 0.01 * size / slope


@inlined
def shortest_step(run):
    """The step size below which a run gives up."""
    return max(4.0 * _ROUNDOFF * abs(run.t), 1e-30 * abs(run.t_end - run.t))


@part
def step_to_try(run):
    """The step size within its limits, and the end of the step; the size is 0 if it has become too small.

    Constant steps end on multiples of h, the last one on the end of the interval.
    """
    h = run.h
    if run.fixed:
        last = run.steps + 1 == run.last_step and abs(run.t_end - run.t0 - run.last_step * h) <= 1e-9 * abs(h)
        return h, run.t_end if last else run.t0 + (run.steps + 1) * h
    if abs(h) > run.h_max:
        h = run.sign * run.h_max
    rest = run.t_stop - run.t
    if isfinite(run.t_stop) and run.sign * (h - rest) > -1e-8 * abs(rest):
        h = rest
    if abs(h) < run.h_min:
        return 0.0, run.t
    t = run.t + h
    if isfinite(run.t_stop) and abs(t - run.t_stop) <= 1e-14 * (abs(t) + abs(h)):
        t = run.t_stop
    return h, t
