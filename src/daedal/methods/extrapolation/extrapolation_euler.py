r"""Euler steps of extrapolation methods in compiled code: n_j of them with h = H/n_j make one row of the table.

With F_y and B = F_y' at the start of the basic step, for F(t, y, y') = 0 and v_n = (y_n - y_{n-1}) / h (Brenan,
Campbell and Petzold 4.6):

    linearly implicit  (F_y + B/h) (y_{n+1} - y_n) = B v_n - F(t_{n+1}, y_n, v_n)                         (scheme 1)
    limex              as scheme 1, with B at (t_{n+1}, y_n, v_n), recomputed in every step             (scheme 2)
    implicit           F(t_{n+1}, y_{n+1}, (y_{n+1} - y_n) / h) = 0 by the simplified Newton method

For F = B(y) y' - f(y) the first two schemes are those of the book with F_y = B'(y_0) y_0' - f'(y_0).
"""

from __future__ import annotations

import numpy as np

from daedal.kernels.compilation import entry, part
from daedal.kernels.convergence import (
    CONTINUE,
    DIVERGED,
    SIMPLIFIED,
    TO_ROUNDOFF,
    expect,
    judge,
    start,
)
from daedal.kernels.linear import LINEAR
from daedal.kernels.matrix import BANDED, factor, solve
from daedal.kernels.norms import wrms
from daedal.kernels.records import ADDRESS, FLOAT, INTEGER, Struct, at, floats, record_at
from daedal.kernels.signatures import f64, i64
from daedal.kernels.system import residual
from daedal.methods.extrapolation.extrapolation_control import TABLE
from daedal.methods.extrapolation.extrapolation_sequences import MOST_COLUMNS
from daedal.methods.one_step import ATTEMPT
from daedal.methods.partial_derivatives import separate
from daedal.methods.run_record import RUN, differences

LINEARLY_IMPLICIT, LIMEX, IMPLICIT = 0, 1, 2

DIFFERENCES = 4
"""Number of stored backward differences of the Euler steps, up to the third: predictors, and derivatives for output."""

MIDDLE = 2
"""Conditions at midstep: value and slope."""

EXTRAPOLATION = Struct(
    "EXTRAPOLATION",
    [
        ("linear", at(LINEAR)),
        ("linearise", ADDRESS),
        ("scheme", INTEGER),
        # dF/dy and dF/dy', entry by entry, and their positions in the matrix
        ("entries", INTEGER),
        ("f_y", ADDRESS),
        ("f_yp", ADDRESS),
        ("look", ADDRESS),  # workspace of `after_first_look`
        ("moving_f_y", f64["entries"]),  # Jacobian of scheme 2
        ("moving_f_yp", f64["entries"]),
        ("rows", i64["entries"]),
        ("columns", i64["entries"]),
        ("place", i64["entries"]),
        *TABLE,
        ("amplification", f64[MOST_COLUMNS]),
        # y - y_0 and H y' at midstep, H^k y^(k) at the end, from every row
        ("nabla", f64[DIFFERENCES, "n"]),
        ("derivatives", f64[(MIDDLE + DIFFERENCES) * MOST_COLUMNS, "n"]),
        ("start", f64[DIFFERENCES, "n"]),  # derivatives at both ends of the step and in the middle
        ("end", f64[DIFFERENCES, "n"]),
        ("inner", f64[MIDDLE, "n"]),
        ("left", INTEGER),  # number of conditions in use at each of these points, including the value
        ("right", INTEGER),
        ("middle", INTEGER),
        ("scale", FLOAT),  # scale of the derivatives at the start
        *[(name, f64["n"]) for name in ("stage_y", "stage_yp", "residual", "sum", "noise")],
        ("jacobian_known", INTEGER),
    ],
)

_MOST_ITERATIONS, _POLISHING = 12, 50  # maximum number of Newton iterations: with variable steps, with constant steps
_TOLERANCE = 1e-4  # Newton tolerance, in units of the error tolerance; extrapolation amplifies the remaining error
_ROUNDING, _PLATEAU = 1e-2, 100.0  # stagnating corrections below this count as round-off
_UNKNOWN = 10.0  # rate / (1 - rate) before a rate is known
_NOISE = 4.0  # multiple of the round-off at which corrections end Newton's method


@part
def _coefficients(system, linear, run, method, t, y, yp, h, f_y, f_yp):
    """F_y and F_y' at (t, y, y')."""
    place, r = method.place, method.sum
    return separate(system, linear.matrix, run, t, y, yp, r, 1.0 / h, h, place, f_y, f_yp)


@entry(ATTEMPT)
def euler_linearise(address, t, h):
    """F_y and F_y' at the start of the step."""
    run = record_at(address, RUN)
    method = record_at(run.method, EXTRAPOLATION)
    f_y, f_yp = floats(method.f_y, method.entries), floats(method.f_yp, method.entries)
    start, yp = differences(run)[0], run.yp
    system, linear = run.system, method.linear
    status = _coefficients(system, linear, run, method, run.t, start, yp, h, f_y, f_yp)
    method.jacobian_known = 1 if status == 0 else 0
    return status


@entry(ATTEMPT)
def euler_row(address, t, h):
    """The Euler steps of the row ``method.current``, of the basic step h that ends at t."""
    run = record_at(address, RUN)
    method = record_at(run.method, EXTRAPOLATION)
    return _row(run.system, method.linear, run, method, t, h)


@part
def _row(system, linear, run, method, t, h):
    n, count = run.n, method.numbers[method.current]
    small = h / count
    nabla, total, start = method.nabla, method.total, differences(run)[0]
    y, v, yp = method.stage_y, method.stage_yp, run.yp
    f_yp = floats(method.f_yp, method.entries)
    rates = method.derivatives
    run.cj = 1.0 / small
    if method.scheme != LIMEX:
        status = _factor(system, linear, method, f_yp, t, small)
        if status != 0:
            return status
        if method.current == 0:
            status = _estimate_noise(linear, run, method, t)
            if status != 0:
                return status
    for j in range(n):
        total[j] = 0.0
        v[j] = yp[j]
    for i in range(count):
        end = t if i == count - 1 else run.t + (i + 1) * small
        for j in range(n):
            y[j] = start[j] + total[j]
        if method.scheme == IMPLICIT:
            status = _solve_implicit(system, linear, run, method, end, small, i)
        else:
            status = _solve_linear(system, linear, run, method, end, small)
        if status != 0:
            return status
        step = method.residual
        for j in range(n):
            total[j] += step[j]
            v[j] = step[j] / small
        _update_differences(nabla, step, i)
        if 2 * (i + 1) == count:
            for j in range(n):
                rates[method.current, j] = total[j]
                rates[MOST_COLUMNS + method.current, j] = count * step[j]
    power = 1.0
    for k in range(1, min(count + 1, DIFFERENCES)):
        power *= count
        for j in range(n):
            rates[MOST_COLUMNS * (MIDDLE + k) + method.current, j] = power * nabla[k, j]
    method.iterated += count if method.scheme == IMPLICIT else 0
    return 0


@part
def _factor(system, linear, method, f_yp, t, h):
    """Factorise F_y + F_y'/h."""
    matrix = linear.matrix
    f_y, data = floats(method.f_y, method.entries), matrix.data
    place = method.place
    if matrix.kind == BANDED:
        data[:] = 0.0
    for e in range(method.entries):
        data[place[e]] = f_y[e] + f_yp[e] / h
    system.factorisations += 1
    return factor(matrix, t)


@part
def _estimate_noise(linear, run, method, t):
    """Round-off of an Euler step: the terms of F times the unit round-off, as a right-hand side."""
    n = run.n
    y, yp, noise = differences(run)[0], run.yp, method.noise
    rows, columns = method.rows, method.columns
    f_y, f_yp = floats(method.f_y, method.entries), floats(method.f_yp, method.entries)
    for j in range(n):
        noise[j] = 0.0
    for e in range(method.entries):
        term = abs(f_y[e] * y[columns[e]]) + abs(f_yp[e] * yp[columns[e]])
        noise[rows[e]] += np.finfo(np.float64).eps * term
    return solve(linear.matrix, t, noise)


@part
def _solve_linear(system, linear, run, method, t, h):
    """The increment of a linearly implicit step from `stage_y` with the last slope `stage_yp`; result in `residual`."""
    n = run.n
    y, v, r = method.stage_y, method.stage_yp, method.residual
    rows, columns = method.rows, method.columns
    f_yp = floats(method.f_yp, method.entries)
    if method.scheme == LIMEX:
        f_yp = method.moving_f_yp
        status = _coefficients(system, linear, run, method, t, y, v, h, method.moving_f_y, f_yp)
        if status == 0:
            status = _factor(system, linear, method, f_yp, t, h)
        if status != 0:
            return status
    status = residual(system, t, y, v, r)
    if status != 0:
        return status
    for j in range(n):
        r[j] = -r[j]
    for e in range(method.entries):
        r[rows[e]] += f_yp[e] * v[columns[e]]
    return solve(linear.matrix, t, r)


@part
def _solve_implicit(system, linear, run, method, t, h, before):
    """The increment of an implicit step from `stage_y`, predicted from previous steps; result in `residual`."""
    n = run.n
    y, v, r = method.stage_y, method.stage_yp, method.residual
    nabla, step = method.nabla, method.sum
    weights = run.inverse_weights
    for j in range(n):
        step[j] = h * v[j]
    for k in range(2, min(before + 1, DIFFERENCES)):
        for j in range(n):
            step[j] += nabla[k, j]
    for j in range(n):
        y[j] += step[j]
        v[j] = step[j] / h
    noise, progress = wrms(method.noise, weights), run.newton
    kind, most = (TO_ROUNDOFF, _POLISHING) if run.fixed else (SIMPLIFIED, _MOST_ITERATIONS)
    tolerance = max(_TOLERANCE, _NOISE * noise)
    expect(progress, kind, most, tolerance, _NOISE * noise, max(_ROUNDING, _PLATEAU * noise))
    start(progress, _UNKNOWN)
    while True:
        status = residual(system, t, y, v, r)
        if status == 0:
            status = solve(linear.matrix, t, r)
        if status != 0:
            return status
        system.newton_iterations += 1
        method.iterations += 1
        size = wrms(r, weights)
        verdict = judge(progress, size, 0.0)
        if verdict == DIVERGED:
            break
        for j in range(n):
            step[j] -= r[j]
            y[j] -= r[j]
            v[j] = step[j] / h
        if verdict != CONTINUE:
            for j in range(n):
                r[j] = step[j]
            return 0
    correction, tried = run.correction, run.y
    for j in range(n):
        correction[j] = r[j]
        tried[j] = y[j]
    return DIVERGED


@part
def _update_differences(nabla, step, before):
    """Update the backward differences of y after an Euler step; the k-th differences exist after k steps."""
    for j in range(step.size):
        value = step[j]
        for k in range(1, min(before + 2, DIFFERENCES)):
            last = nabla[k, j]
            nabla[k, j] = value
            value -= last
