r"""Extrapolation of the half-explicit midpoint rule for mechanical systems, in compiled code.

With y = (q, v, r) and the multipliers that enforce the velocity constraint at the next point (Lubich, IMPACT 1 (1989)
260-268, and MEXX: Lubich, Nowak, Poehle, Engstler, ZIB SC 92-12 (1992)),

    y_1 = y_0 + h f(y_0, lambda_0),   y_{n+1} = y_{n-1} + 2h f(y_n, lambda_n),   G(q_{n+1}) v_{n+1} + g_t = 0,

every step solves one linear system, and y_n has an expansion in h^2 for even n, and another one for odd n. Step numbers
are 2, 6, 10, ...: the midpoint of the step is always an odd point. The polynomial of the step has value and slope at
both ends, and at midstep the value and three derivatives, from central differences of the slopes (as in ODEX: Hairer,
Ostermann, Numer. Math. 58 (1990) 419-439).
"""

from __future__ import annotations

import numpy as np

from daedal.kernels.callbacks import RAISED, is_given
from daedal.kernels.compilation import entry, part
from daedal.kernels.records import Struct, at, floats, local_words, record_at
from daedal.kernels.signatures import f64
from daedal.kernels.system import HOOK_CHANGED
from daedal.mechanics.constrained import CONSTRAINED
from daedal.methods.explicit.runge_kutta_step import HARMLESS
from daedal.methods.extrapolation.extrapolation_control import (
    TABLE,
    begin_table,
    count_polynomial,
    fill_table,
    next_step,
)
from daedal.methods.extrapolation.extrapolation_sequences import MOST_COLUMNS
from daedal.methods.extrapolation.extrapolation_step import divided_differences, largest_product, store_polynomial
from daedal.methods.half_explicit.half_explicit_step import slope_at, stage_slope
from daedal.methods.one_step import ATTEMPT, HOPELESS, give_to_owner, size_in, size_of_error
from daedal.methods.run_record import RUN, STEP, differences

MIDDLE = 4
"""Conditions at midstep: the value and three derivatives."""

MEXX = Struct(
    "MEXX",
    [
        *TABLE,
        ("mechanism", at(CONSTRAINED)),
        ("derivatives", f64[MIDDLE * MOST_COLUMNS, "n"]),  # derivatives at midstep, from every row
        ("inner", f64[MIDDLE, "n"]),
        ("start", f64[2, "n"]),  # value and slope at both ends
        ("end", f64[2, "n"]),
        *[(name, f64["n"]) for name in ("stage", "bar", "before", "slope")],
    ],
)

_NODES = np.array([0.5, 0.5, 0.5, 0.5, 1.0, 1.0, 0.0, 0.0])
_COUNT = _NODES.size
_room = local_words(_COUNT)
_SHARE = 0.25  # weight of the difference from the polynomial of one degree less, as the error estimate


@entry(STEP)
def mexx_begin(address):
    """Choose the initial number of columns."""
    run = record_at(address, RUN)
    begin_table(run, record_at(run.method, MEXX))
    return 0


@entry(ATTEMPT)
def mexx_attempt(address, t, h):
    """Compute the table of a step."""
    run = record_at(address, RUN)
    method = record_at(run.method, MEXX)
    if not run.slope_known:
        status = slope_at(run.system, method.mechanism, run.t, differences(run)[0], run.yp)
        if status != 0:
            return status if status == RAISED else HOPELESS
        run.slope_known = 1
    return fill_table(run, method, address, t, h)


@entry(ATTEMPT)
def mexx_row(address, t, h):
    """Take the midpoint steps of row ``method.current``."""
    run = record_at(address, RUN)
    method = record_at(run.method, MEXX)
    return _row(run.system, method.mechanism, run, method, h)


@entry(ATTEMPT)
def mexx_measure(address, t, h):
    """Compute the error of the last column, and of the polynomial if the former is small enough."""
    run = record_at(address, RUN)
    method = record_at(run.method, MEXX)
    return _measure(run.system, method.mechanism, run, method, t, h)


@entry(ATTEMPT)
def mexx_accept(address, t, h):
    """Store the polynomial of the step, and choose size and order of the next one."""
    run = record_at(address, RUN)
    return _accept(run.system, run, record_at(run.method, MEXX), t, h)


@part
def _row(system, c, run, method, h):
    n, nx, count = run.n, c.nx, method.numbers[method.current]
    small, middle = h / count, count // 2
    start, stage, bar = differences(run)[0], method.stage, method.bar
    before, total, slope = method.before, method.total, method.slope
    straight = c.n_c > 0 and is_given(c.stage)
    for j in range(n):
        before[j] = 0.0
        total[j] = 0.0
    for i in range(count):
        step = small if i == 0 else 2.0 * small
        for j in range(n):
            stage[j] = start[j] + total[j]
        for j in range(nx):
            slope[j] = stage[nx + j]
            bar[j] = start[j] + (before[j] + step * slope[j])
            bar[nx + j] = start[nx + j] + before[nx + j]
        t, t_bar = run.t + i * small, run.t + (i + 1) * small
        status = stage_slope(system, c, t, stage, t_bar, bar, step, False, straight, slope)
        if status != 0:
            return status
        _collect(method, n, i - middle, count, h, total, slope)
        for j in range(n):
            value = before[j] + step * slope[j]
            before[j] = total[j]
            total[j] = value
    return 0


@part
def _collect(method, n, place, count, h, total, slope):
    """H^k y^(k) at midstep: central differences of the slopes, with increment 2h."""
    if abs(place) > 2:
        return
    rates = method.derivatives
    value, first = rates[method.current], rates[MOST_COLUMNS + method.current]
    second, third = rates[2 * MOST_COLUMNS + method.current], rates[3 * MOST_COLUMNS + method.current]
    half = 0.5 * count
    if place == -2 or (place == -1 and count == 2):
        for j in range(n):
            second[j] = 0.0
            third[j] = 0.0
    for j in range(n):
        change = h * slope[j]
        if place == 0:
            value[j] = total[j]
            first[j] = change
            third[j] -= 2.0 * half * half * change
        elif abs(place) == 1:
            second[j] += place * half * change
        else:
            third[j] += half * half * change


@part
def _measure(system, c, run, method, t, h):
    n, y, slope = run.n, run.y, run.slope
    run.error_of_step = size_of_error(system, run)
    if run.error_of_step > 1.0 and not run.fixed:
        return 0
    status = slope_at(system, c, t, y, slope)
    if status != 0:
        return status
    ends, starts, inner, table, yp = method.end, method.start, method.inner, method.table, run.yp
    error, values = run.error, floats(_room(), _COUNT)
    for order in range(MIDDLE):
        _extrapolate(method, n, order, inner[order])
    largest = largest_product(_NODES, _NODES.size - 1)
    for i in range(n):
        ends[0, i] = table[0, i]
        ends[1, i] = h * slope[i]
        starts[1, i] = h * yp[i]
        divided_differences(values, _NODES, _NODES.size - 1, ends[:, i], inner[:, i], starts[:, i])
        error[i] = values[_NODES.size - 1] * largest
    count_polynomial(run, method, _SHARE * size_of_error(system, run))
    return 0


@part
def _extrapolate(method, n, order, target):
    """A derivative at midstep from the rows with enough steps."""
    numbers, rates = method.numbers, method.derivatives
    first = 1 if order > 1 else 0
    for i in range(n):
        target[i] = 0.0
    for j in range(first, method.reached):
        weight = 1.0
        for l in range(first, method.reached):
            if l != j:
                ratio = numbers[l] / numbers[j]
                weight /= 1.0 - ratio * ratio
        for i in range(n):
            target[i] += weight * rates[MOST_COLUMNS * order + j, i]


@part
def _accept(system, run, method, t, h):
    n, changed = run.n, False
    yp, slope = run.yp, run.slope
    if system.hook != 0:
        status = give_to_owner(system, run, t, h)
        if status == HOOK_CHANGED:
            change = size_in(0, run.scratch, run.inverse_weights)
            changed = run.fixed != 0 or change > HARMLESS
        elif status != 0:
            return status
    store_polynomial(run, h, _NODES, _NODES.size - 1, method.end, method.inner, method.start)
    for i in range(n):
        yp[i] = slope[i]
    run.slope_known = 0 if changed else 1
    if not run.fixed:
        next_step(run, method, h)
    return 0
