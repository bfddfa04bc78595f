"""Steps of one-step methods in compiled code: attempts, errors, step size control, the polynomial of a step.

A one-step method is one function, called through a pointer: `attempt(run, t, h)` computes y at t, the end of the step,
from phi_0, the values at its start, stores it in ``run.y`` and its slope in ``run.slope``, and sets
``run.error_of_step``, the error in units of the tolerance (0 with constant steps). It returns 0 or an error status.

An `accept(run, t, h)` is optional. It is called after a step whose error is small enough, passes it to the hook
(:func:`give_to_owner`), and sets y' and the polynomial of the step. The default is cubic Hermite interpolation.

Sums of slopes and norms of errors are defined once, for one run and for eight in parallel
(:mod:`daedal.kernels.arithmetic`).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from daedal.kernels.arithmetic import ONE, NumberOperations
from daedal.kernels.callbacks import RAISED, UNEVALUABLE
from daedal.kernels.compilation import caller, entry, inlined, part
from daedal.kernels.endings import Ending
from daedal.kernels.matrix import JACOBIAN_UNEVALUABLE, SINGULAR
from daedal.kernels.norms import norm
from daedal.kernels.records import data_of, floats, record_at
from daedal.kernels.signatures import f64, i64
from daedal.kernels.system import HOOK_CHANGED, after_step
from daedal.methods.run_record import RUN, STEP
from daedal.methods.step_size import FAILED, LEAST_BEFORE, classic_growth, growth, shrinkage, step_to_try

# --- sums and norms ---------------------------------------------------------------------------------------------------


class Sums(NamedTuple):
    """The functions returned by :func:`sums_of`."""

    combine: Any
    weighted_sum: Any
    size_in: Any
    set_scales: Any
    stiffness: Any


def sums_of(number: NumberOperations) -> Sums:
    """The sums and norms for vectors of the given number type."""
    width, vector, get, put, spread, absolute, root, larger, where_less, _ = number

    @inlined
    def weighted_sum(row, count, k, first, last, target):
        """target = sum_j row_j k_j for the components from `first` to `last`, slope by slope."""
        combine_at(data_of(row), count, data_of(k), k.shape[1], 0, 1.0, first, last, data_of(target))

    @inlined
    def combine(row, count, k, start, h, first, last, target):
        """target = start + h sum_j row_j k_j for the components from `first` to `last`."""
        combine_at(data_of(row), count, data_of(k), k.shape[1], data_of(start), h, first, last, data_of(target))

    @part
    def combine_at(row, count, k, n, start, h, first, last, target):
        """`combine` and `weighted_sum` as functions of addresses, whose constant offsets cost nothing; sums stay in
        registers, four at a time."""
        weights, i = floats(row, count), first
        while i + 4 <= last:
            a, b, c, d = spread(0.0), spread(0.0), spread(0.0), spread(0.0)
            at = k + width * i
            for j in range(count):
                weight = weights[j]
                if weight != 0.0:
                    slopes = vector(at, 4)
                    a = a + weight * get(slopes, 0)
                    b = b + weight * get(slopes, 1)
                    c = c + weight * get(slopes, 2)
                    d = d + weight * get(slopes, 3)
                at += width * n
            if start != 0:
                origin = vector(start + width * i, 4)
                a, b = get(origin, 0) + h * a, get(origin, 1) + h * b
                c, d = get(origin, 2) + h * c, get(origin, 3) + h * d
            result = vector(target + width * i, 4)
            put(result, 0, a)
            put(result, 1, b)
            put(result, 2, c)
            put(result, 3, d)
            i += 4
        while i < last:
            a, at = spread(0.0), k + width * i
            for j in range(count):
                if weights[j] != 0.0:
                    a = a + weights[j] * get(vector(at, 1), 0)
                at += width * n
            total = a if start == 0 else get(vector(start + width * i, 1), 0) + h * a
            put(vector(target + width * i, 1), 0, total)
            i += 1

    @part
    def size_in(maximum, v, scale):
        """The weighted norm of a vector: the maximum, or the root mean square."""
        total, n = spread(0.0), v.shape[0]
        for i in range(n):
            value = absolute(get(v, i) * get(scale, i))
            total = larger(total, value) if maximum else total + value * value
        return total if maximum else root(total / float(n))

    @part
    def set_scales(run):
        """``run.scale`` = 1 / (rtol |y| + atol), with the larger |y| of the two ends of the step; 0 if excluded."""
        start, y, scale = run.phi[0], run.y, run.scale
        rtol, atol, included = run.rtol, run.atol, run.included
        for i in range(run.n):
            largest = larger(absolute(get(y, i)), absolute(get(start, i)))
            put(scale, i, included[i] / (rtol[i] * largest + atol[i]))

    @part
    def stiffness(run, h, k, a, change):
        """|lambda| from the last two stages, both at the end of the step; -1 if unknown.

        The stages differ by d, their slopes by J d: DOPRI5 uses |lambda| = |J d| / |d| (HW IV.2). For a mechanism,
        d = (dq, dv) and J d = (dv, da), and lambda^2 = |da| / |dq|, which is the squared frequency of a vibration in
        any phase, whereas |J d| / |d| can take any value up to it.
        """
        n, s, nx, y, zero = run.n, a.shape[0], run.positions, run.y, spread(0.0)
        combine(a[s - 2], s - 2, k, run.phi[0], h, 0, n, change)
        for i in range(n):
            put(change, i, get(y, i) - get(change, i))
        largest = spread(-1.0)
        if nx > 0:
            squared = growth(k[s - 1], k[s - 2], nx, 2 * nx, change, 0)
            largest = where_less(squared, zero, largest, root(larger(squared, zero)))
        if n > 2 * nx:
            largest = larger(largest, growth(k[s - 1], k[s - 2], 2 * nx, n, change, 2 * nx))
        return largest

    @part
    def growth(last, before, first, end, change, origin):
        """The difference of two slopes in some components divided by `change` in those from `origin` on; -1 for 0/0."""
        top, bottom, zero = spread(0.0), spread(0.0), spread(0.0)
        for j in range(first, end):
            difference, moved = get(last, j) - get(before, j), get(change, origin + j - first)
            top = top + difference * difference
            bottom = bottom + moved * moved
        ratio = top / where_less(zero, bottom, bottom, spread(1.0))
        return where_less(zero, bottom, root(ratio), spread(-1.0))

    return Sums(combine, weighted_sum, size_in, set_scales, stiffness)


# --- steps ------------------------------------------------------------------------------------------------------------


_STIFF, _CALLBACK_RAISED, _UNEVALUABLE = int(Ending.STIFF), int(Ending.CALLBACK_RAISED), int(Ending.UNEVALUABLE)
_ERROR_TEST_FAILED, _NEWTON_FAILED = int(Ending.ERROR_TEST_FAILED), int(Ending.NEWTON_FAILED)
_MATRIX_SINGULAR = int(Ending.MATRIX_SINGULAR)

ATTEMPT = i64(i64, f64, f64)
"""The C signature of `attempt` and `accept`: status = attempt(run, t, h), with t the end of the step."""

HOPELESS = -4  # status: a shorter step would not help, since the slopes at the start are unavailable

MEMORY, CLASSIC, OWN = 0, 1, 2  # controllers; with OWN the method chooses ``run.h`` itself
STIFF_STEPS = 15  # consecutive steps at the limit of stability that indicate stiffness
_HERMITE_NODES = 3

_call_attempt = caller(ATTEMPT)
combine, weighted_sum, size_in, set_scales, stiffness = sums_of(ONE)


@entry(STEP)
def one_step(run):
    """Take one accepted step; return 0 or the reason to stop."""
    return _step(record_at(run, RUN), run)


@part
def _step(run, address):
    """Attempt successively shorter steps until one is accepted."""
    if run.stop_when_stiff and run.stiff_count >= STIFF_STEPS:
        return _STIFF
    failures, errors, singular, unevaluable, status = 0, 0, 0, False, 0
    while True:
        h, t = step_to_try(run)
        if h == 0.0:
            return ending_of(UNEVALUABLE if unevaluable else status, singular)
        run.error_of_step = 0.0
        status = _call_attempt(run.attempt, address, t, h)
        if status == 0 and not run.error_of_step < np.inf:
            status = UNEVALUABLE
        if status == 0 and run.error_of_step <= 1.0:
            status = _call_attempt(run.accept, address, t, h)
            if status == 0:
                _count(run, t, h)
                next_step_size(run, h)
                return 0
        if status == RAISED:
            return _CALLBACK_RAISED
        if status == HOPELESS:
            return _UNEVALUABLE
        reject(run, h, status)
        errors += 1 if status == 0 else 0
        failures += 1 if status != 0 else 0
        singular += 1 if status == SINGULAR else 0
        unevaluable = unevaluable or status == UNEVALUABLE
        most = run.most_failures
        if run.fixed or (most > 0 and (failures >= most or errors >= 2 * most or singular >= 4)):
            return ending_of(status, singular)


@part
def ending_of(status, singular):
    """The reason to stop, from the status of the last attempt and the number of singular matrices."""
    if status == 0:
        return _ERROR_TEST_FAILED
    if status == UNEVALUABLE or status == JACOBIAN_UNEVALUABLE:
        return _UNEVALUABLE
    return _MATRIX_SINGULAR if singular > 0 else _NEWTON_FAILED


@part
def reject(run, h, status):
    """Shorten a step whose error was too large or that could not be computed."""
    run.rejected = 1
    if status != 0:
        run.newton_failures += 1
        run.attempt_newton_failures += 1
        if run.controller != OWN or abs(run.h) >= abs(h):  # the method itself has not chosen a shorter step
            run.h = FAILED * h
        return
    run.error_test_failures += 1
    run.attempt_error_failures += 1
    if run.controller != OWN:
        run.h = h * shrinkage(run.error_of_step, run.control_order)


@part
def _count(run, t, h):
    run.attempt_newton_failures = 0
    run.attempt_error_failures = 0
    run.t = t
    run.h_last = h
    run.steps += 1


@part
def next_step_size(run, h):
    """The step size after an accepted step, by a PI controller or by the classical rule."""
    if run.fixed or run.controller == OWN:
        run.rejected = 0
        return
    size, order = max(run.error_of_step, run.least_error), run.control_order
    if run.controller == CLASSIC:
        grow = classic_growth(size, order, run.rejected)
    else:
        grow = growth(size, run.error_before, order, run.rejected)
        run.error_before = max(size, LEAST_BEFORE)
    run.rejected = 0
    run.h = h if 1.0 <= grow <= run.kept_ratio else h * grow


@part
def size_of_error(system, run, maximum=0):
    """The norm of ``run.error`` in units of the tolerance, based on the larger of |y| at both ends of the step."""
    error, scale = run.error, run.scale
    set_scales(run)
    return size_in(1, error, scale) if maximum else norm(system, run.t, error, scale)


@part
def give_to_owner(system, run, t, h):
    """Call the hook with the step; its change of y is stored in ``run.scratch``."""
    n = run.n
    y, change = run.y, run.scratch
    for i in range(n):
        change[i] = y[i]
    signal = after_step(system, t, h, y)
    for i in range(n):
        change[i] -= y[i]
    return signal


@entry(ATTEMPT)
def accept_with_hermite(address, t, h):
    """Store the polynomial through the values and slopes at both ends of the step."""
    return _accept_with_hermite(record_at(address, RUN), t, h)


@part
def _accept_with_hermite(run, t, h):
    system, n = run.system, run.n
    yp, slope = run.yp, run.slope
    if system.hook != 0:
        status = give_to_owner(system, run, t, h)
        if status != 0 and status != HOOK_CHANGED:
            return status
    hermite_polynomial(run, h, yp, slope)
    for i in range(n):
        yp[i] = slope[i]
    return 0


@part
def hermite_polynomial(run, h, first, last):
    """The polynomial through the values at both ends of the step, phi_0 and y, and the slopes there."""
    y, phi = run.y, run.phi
    for i in range(run.n):
        start, change = phi[0, i], y[i] - phi[0, i]
        for q in range(1, _HERMITE_NODES):
            a = 1.0 - q / _HERMITE_NODES
            bulge = (1.0 - 2.0 * a) * change + h * ((a - 1.0) * first[i] + a * last[i])
            phi[q, i] = start + a * change + a * (a - 1.0) * bulge
        phi[0, i], phi[_HERMITE_NODES, i] = y[i], start
    close_polynomial(run, h, _HERMITE_NODES)


@part
def polynomial(run, h, y, k, inner, n, nodes):
    """The polynomial of a step from its interior values y_0 + h sum_i inner_qi k_i, for the first n components."""
    phi = run.phi
    for q in range(nodes - 1):
        combine(inner[q], k.shape[0], k, phi[0], h, 0, n, phi[q + 1])
    for j in range(n):
        phi[nodes, j] = phi[0, j]
        phi[0, j] = y[j]


@part
def close_polynomial(run, h, nodes):
    """Convert the values at t_1, t_1 - h/nodes, ..., t_0 in phi to their backward differences: the Newton form."""
    phi = run.phi
    for i in range(nodes):
        run.psi[i] = h * (i + 1) / nodes
    run.psi[nodes] = 2.0 * h
    run.degree = nodes
    for order in range(1, nodes + 1):
        for q in range(nodes, order - 1, -1):
            for j in range(run.n):
                phi[q, j] = phi[q - 1, j] - phi[q, j]


@part
def count_stiff(run, h, largest, limit):
    """Count a step by h |lambda|; negative values mean unknown."""
    if largest < 0.0:
        return
    if abs(h) * largest > limit:
        run.nonstiff_count = 0
        run.stiff_count += 1
    else:
        run.nonstiff_count += 1
        if run.nonstiff_count >= 6 and run.stiff_count > 0:
            run.stiff_count = 0
