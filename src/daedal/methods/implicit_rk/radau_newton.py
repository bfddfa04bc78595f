r"""The stages of a Radau IIA step for F(t, y, y') = 0 in compiled code: the simplified Newton method.

The unknowns are Z_i = Y_i - y_0; the equations are F(t_i, y_0 + Z_i, (1/h) sum_j w_ij Z_j) = 0. Rate of convergence and
the prediction of failure are those of Hairer and Wanner, Solving Ordinary Differential Equations II, IV.8.
"""

from __future__ import annotations

import numpy as np

from daedal.kernels.callbacks import UNEVALUABLE
from daedal.kernels.compilation import caller, part
from daedal.kernels.interpolation import newton_polynomial
from daedal.kernels.newton import CONVERGED, DIVERGED
from daedal.kernels.norms import wrms
from daedal.kernels.system import residual
from daedal.kernels.vectors import largest, smallest
from daedal.kernels.vectors import power as power_of
from daedal.methods.implicit_rk.radau_matrix import gamma_of, stages_of
from daedal.methods.one_step import ATTEMPT

_TOLERANCE = 0.003  # of Newton's method, in units of the error tolerance
_TIGHT = 3e-4  # the same with variables of index 2 and 3, to which errors of the others come divided by h
_TIGHTEST = 1e-7  # with variables of index 3, to which what a constraint leaves comes divided by h^2 of the next step
_SMALL = 1e-2  # the last correction with them, in units of the tolerance: the first ratios may be too good
_FEWEST, _MORE = 10, 2.5  # iterations with 3 stages, and for each further one
_FURTHER = 2  # with the sharper tolerance
_POLISHING = 100  # iterations of constant steps, which end at round-off
_STALLED, _STALLED_BELOW, _STALLS = 0.97, 1e-2, 3  # ratio and size, in tolerances, so many times: that is round-off
_NOISE = 30.0 * np.finfo(np.float64).eps
_ROUNDING = 0.1  # size of corrections, in units of the tolerance, that may be rounding errors if they do not fall
_PLATEAU = 300.0  # the same in units of the round-off of y
_SLOWEST = 0.99
_LOOK, _WILD = 2, 10.0  # corrections may grow at first, up to so much: the first ratio need not be that of the others
_UNKNOWN = 1.0  # rate / (1 - rate) before a rate has been seen

_call = caller(ATTEMPT)


@part
def most_iterations(method):
    """How many iterations a step may take."""
    return _FEWEST + int(_MORE * (stages_of(method) - 3)) + (_FURTHER if method.some_powers else 0)


@part
def solve_stages(system, run, method, address, t, h):
    """Z for the step; old derivatives and a start that cannot be evaluated lead to a second try."""
    _set_weights(run, method, h)
    flat = False
    while True:
        if not method.jacobian_known:
            status = _call(method.linearise, address, t, h)
            if status != 0:
                return status
        if method.h_matrix != h or method.scheme_matrix != method.scheme:
            status = _call(method.factor, address, t, h)
            method.rate_factor = _UNKNOWN
            if status != 0 and (method.jacobian_fresh or status < 0):
                return status
            if status != 0:
                method.jacobian_known = 0
                continue
        _predict(run, method, t, h, flat)
        status = _staggered(system, run, method, address, t, h)
        if status == DIVERGED and not method.jacobian_fresh:
            method.jacobian_known = 0
            continue
        if status == UNEVALUABLE and not flat and method.iterations == 0:
            flat = True  # the polynomial of the last step leads where the equations are not defined
            continue
        return status


@part
def _set_weights(run, method, h):
    """Corrections of variables of index 2 and 3 count like their errors, but have to fall as far as they can."""
    n = run.n
    weights, others = method.weights, method.others
    plain, power = run.inverse_weights, method.power
    share = share_of_class(run, method, h) if method.some_powers else 1.0
    for i in range(n):
        weights[i] = plain[i] if power[i] == 0.0 else plain[i] * share ** power[i]
        others[i] = 0.0 if power[i] == 0.0 else plain[i]


@part
def share_of_class(run, method, h):
    """By what errors of variables of index 2 are multiplied; those of index 3 by its square.

    Hairer and Wanner (VII.6) take h, which depends on the unit of time. Here it is h / tau, and 1 at most, where tau is
    the time in which the variables of index 1 change by their size. It has to fall with h: y' at the start of a step,
    with which the estimate compares, carries the error of such variables from the step before.
    """
    n = run.n
    y, yp = run.phi[0], run.yp
    weights, power = run.inverse_weights, method.power
    size, slope, lowest = 0.0, 0.0, smallest(power)  # of index 1, unless all variables have a part of index 2
    for i in range(n):
        if power[i] == lowest:
            size += (y[i] * weights[i]) ** 2
            slope += (yp[i] * weights[i]) ** 2
    return abs(h) * np.sqrt(slope / size) if slope * h * h < size else 1.0


@part
def _predict(run, method, t, h, flat):
    """Z from the polynomial of the last step, the tangent at the start of a run, or nothing."""
    n, s = run.n, stages_of(method)
    start, z, slope = run.phi[0], method.z, method.stage_yp
    c = method.c[method.scheme]
    for i in range(s):
        if flat:
            for j in range(n):
                z[i, j] = 0.0
            continue
        newton_polynomial(run.t + c[i] * h, run.t, run.psi, run.phi, run.degree, z[i], slope)
        for j in range(n):
            z[i, j] -= start[j]


@part
def _residuals(system, run, method, t, h):
    """r_i = F at the stages."""
    n, s = run.n, stages_of(method)
    start, y, yp = run.phi[0], method.stage_y, method.stage_yp
    z, r = method.z, method.r
    c, w = method.c[method.scheme], method.w[method.scheme]
    for i in range(s):
        for j in range(n):
            y[j] = start[j] + z[i, j]
            yp[j] = 0.0
        for l in range(s):
            weight = w[i, l] / h
            for j in range(n):
                yp[j] += weight * z[l, j]
        status = residual(system, t if i == s - 1 else run.t + c[i] * h, y, yp, r[i])
        if status != 0:
            tried = run.y
            for j in range(n):
                tried[j] = y[j]
            return status
    return 0


@part
def _staggered(system, run, method, address, t, h):
    """All unknowns together, or the leading ones and then the others, which are their sensitivities."""
    leading = run.n if method.some_powers else method.leading
    status = _iterate(system, run, method, address, t, h, 0, leading)
    if status != CONVERGED or leading == run.n:
        return status
    rate, rate_factor, iterations = method.rate, method.rate_factor, method.iterations
    method.rate_factor = _UNKNOWN
    status = _iterate(system, run, method, address, t, h, leading, run.n)
    method.rate, method.rate_factor = rate, rate_factor
    method.iterations = max(iterations, method.iterations)
    return status


@part
def _iterate(system, run, method, address, t, h, first, last):
    """Newton's method for part of the unknowns from Z; a failure leaves the step to try next in ``run.h``."""
    z, r, s = method.z, method.r, stages_of(method)
    weights, others = method.weights, method.others
    most = _POLISHING if run.fixed else most_iterations(method)
    noise = _NOISE * wrms(run.phi[0], weights)
    tight = _TIGHTEST if largest(method.power) > 1.0 else _TIGHT
    tolerance = max(tight if method.some_powers else _TOLERANCE, noise)
    rounding = max(tolerance if method.some_powers else _ROUNDING, _PLATEAU * noise)
    method.iterations = 0
    # Variables of index 2 and 3 see what is left of the corrections of others divided by h: their rate is measured.
    known = _UNKNOWN if method.some_powers else method.rate_factor
    method.rate_factor = max(known, np.finfo(np.float64).eps) ** 0.8
    method.rate = 0.0
    before, ratio, stalls, rest, previous = 0.0, 0.0, 0, np.inf, 0.0
    for m in range(1, most + 1):
        status = _residuals(system, run, method, t, h)
        if status != 0:
            return status
        system.newton_iterations += 1
        status = _call(method.correct, address, t, h)
        if status != 0:
            return status
        total, rest_before, rest = 0.0, rest, 0.0
        for i in range(s):
            if method.some_powers:
                part, part_of_others = _beyond_roundoff(method, r[i], weights, others)
                total += part
                rest += part_of_others
            else:
                total += wrms(r[i, first:last], weights[first:last]) ** 2
        size, rest = np.sqrt(total / s), np.sqrt(rest / s)
        if not size + rest < np.inf:
            return _diverged(run, method, h, 0.5)
        if m > 1:
            previous, ratio = ratio, size / before
            method.rate = ratio if m == 2 or previous >= _SLOWEST else np.sqrt(ratio * previous)
            stalls = stalls + 1 if ratio > _STALLED else 0
            if run.fixed and before < _STALLED_BELOW:
                if stalls >= _STALLS:
                    return CONVERGED
            elif method.rate >= _SLOWEST:
                if size <= rounding and (m > _LOOK or not method.some_powers):
                    return CONVERGED
                if ratio > _WILD or (m > _LOOK and not run.fixed):
                    return _diverged(run, method, h, 0.5)
                method.rate_factor = _UNKNOWN
            else:
                method.rate_factor = method.rate / (1.0 - method.rate)
            if method.rate < _SLOWEST and _LOOK < m < most and not run.fixed:
                expected = method.rate_factor * size * power_of(method.rate, most - 1 - m) / tolerance
                if expected >= 1.0 and size > noise and method.rate_factor * size > rounding:
                    slow = max(1e-4, min(20.0, expected))
                    return _diverged(run, method, h, 0.8 * slow ** (-1.0 / (4 + most - 1 - m)))
        before = max(size, np.finfo(np.float64).tiny)
        for i in range(s):
            for j in range(first, last):
                z[i, j] -= r[i, j]
        method.iterations = m
        plateau = rest >= 0.5 * rest_before and size <= _PLATEAU * noise  # round-off
        followed = plateau or (method.rate_factor * rest <= _TOLERANCE and (size <= _SMALL or not method.some_powers))
        if (followed or run.fixed) and (size <= noise or (method.rate_factor * size <= tolerance and not run.fixed)):
            return CONVERGED
    converged = before < _STALLED_BELOW if run.fixed else method.rate_factor * before <= rounding
    return CONVERGED if converged else _diverged(run, method, h, 0.5)


@part
def _beyond_roundoff(method, correction, weights, others):
    """Mean squares of a correction in both weights, less what the round-off of F makes of it."""
    n = correction.size
    roundoff = method.roundoff
    total, rest = 0.0, 0.0
    for j in range(n):
        size = abs(correction[j])
        size = 0.0 if size <= roundoff[j] else size - roundoff[j]  # not a number stays what it is
        total += (size * weights[j]) ** 2
        rest += (size * others[j]) ** 2
    return total / n, rest / n


@part
def _diverged(run, method, h, factor):
    """Keep the last correction for messages, and shorten the step."""
    n = run.n
    r, correction, y = method.r, run.correction, run.y
    z, start, last = method.z, run.phi[0], stages_of(method) - 1
    for j in range(n):
        correction[j] = r[last, j]
        y[j] = start[j] + z[last, j]
    run.h = factor * h
    run.cj = gamma_of(method) / h
    return DIVERGED
