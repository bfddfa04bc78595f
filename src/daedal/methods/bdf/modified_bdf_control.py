r"""Step control of modified BDF: error estimates, and the choice of order and step size.

Estimates are local errors of x and of x' from divided differences, with the constants of the formula on the current
grid. Orders change after at least k + 1 steps, and steps grow after k + 1 equal ones: with this and order-dependent
bounds on their ratio, the formulas are stable under all changes.

The control of Wunderlich's thesis is reproduced exactly (sections 4.3 and 4.4). Its error is the distance of all
variables from the cubic through the last four points; after a few constant steps every success doubles the step size.
"""

from __future__ import annotations

import numpy as np

from daedal.kernels.compilation import part
from daedal.kernels.norms import wrms
from daedal.kernels.vectors import power
from daedal.methods.bdf.modified_bdf_formulas import DIRECT, error_factors

# --- the thesis' control ----------------------------------------------------------------------------------------------

POINTS = 4


@part
def remember(method, run, t, y):
    """Append y at t to the last four points."""
    times, values = method.past_t, method.past_y
    for q in range(POINTS - 1, 0, -1):
        times[q] = times[q - 1]
        for j in range(run.n):
            values[q, j] = values[q - 1, j]
    times[0] = t
    for j in range(run.n):
        values[0, j] = y[j]


@part
def extrapolation_error(method, run, t):
    """The distance of y from the extrapolated cubic, Wunderlich (4.22) to (4.24), in units of the tolerance."""
    times, values = method.past_t, method.past_y
    y, vector = run.y, run.scratch
    for j in range(run.n):
        vector[j] = y[j]
    for q in range(POINTS):
        weight = 1.0
        for l in range(POINTS):
            if l != q:
                weight *= (t - times[l]) / (times[q] - times[l])
        for j in range(run.n):
            vector[j] -= weight * values[q, j]
    return wrms(vector, run.inverse_weights)


@part
def step_after_failure(h, k, error, failures):
    """The step size after the given number of consecutive error-test failures."""
    if failures > 1:
        return 0.25 * h
    return h * max(0.25, min(0.9, 0.9 * (2.0 * error) ** (-1.0 / (k + 1))))


@part
def step_after_success(h, k, error, successes):
    """The step size after the given number of consecutive successes; the second doubles it regardless of the error."""
    ratio = (2.0 * error) ** (-1.0 / (k + 1))
    if successes > 1 or ratio >= 2.0:
        return 2.0 * h
    return h if ratio > 1.0 else h * max(0.5, min(0.9, ratio))


# --- order and step size of modified BDF ------------------------------------------------------------------------------


NO_ESTIMATE = -1.0
_ULPS = 100.0  # error of x after Newton's method, in units of its round-off
_TARGET = 0.5  # fraction of the admissible error used as target for step size and order
_LEAST = 0.05  # error assumed if round-off explains the whole estimate
_LONGEST_START = 60
_THESIS_START = 4  # steps without error test
_SMALL_DIFFERENCE = 0.01  # size of differences, in units of the tolerance, below which they need not decrease


@part
def error_of_step(method, form, run, t, k):
    """The error of this step, and the estimate for the choice of the next one, in units of the tolerance."""
    if method.thesis:
        if method.taken < _THESIS_START:
            return 0.0, NO_ESTIMATE
        error = extrapolation_error(method, run, t)
        return error, error
    nodes = method.nodes
    if k == 2 and method.taken == 0:  # no data older than those of the formula
        k = 1
    # e is the divided difference of order k + 2 times prod (t_n - t_{n-i}), i = 1 .. k + 2
    e, scale = method.e, 1.0 / _product(t, nodes, k + 2)
    estimate = _local_error(method, form, run, t, k, nodes, e, scale, 0.0)
    if estimate <= _TARGET:
        return estimate, estimate
    # errors explained by round-off do not fail the step or shorten the next one; longer steps have smaller ones
    error = _local_error(method, form, run, t, k, nodes, e, scale, _ULPS)
    return error, max(error, _LEAST)


@part
def _local_error(method, form, run, t, k, nodes, difference, scale, ulps):
    """The norm of the local error of order k, from a multiple of the divided difference of order k + 2.

    The contribution of errors in x of the given number of ulps is subtracted.
    """
    second, first, velocity = error_factors(method, t, k, nodes)
    x, source, order = method.x, form.source, form.order
    vector, included = run.scratch, run.included
    noise = ulps * power(2.0, k + 2) * np.finfo(np.float64).eps / abs(_product(t, nodes, k + 2))
    for j in range(form.n_y):
        i = source[j]
        if i >= form.n:
            vector[j] = abs(velocity) * max(abs(scale * difference[i - form.n]) - noise * abs(x[i - form.n]), 0.0)
        elif order[i] == 2:
            vector[j] = abs(second) * max(abs(scale * difference[i]) - noise * abs(x[i]), 0.0)
        elif order[i] == 1:
            vector[j] = scale * first * difference[i]
        else:
            vector[j] = 0.0
        vector[j] *= included[j]
    return wrms(vector, run.inverse_weights) / method.share


@part
def _product(t, nodes, count):
    result = 1.0
    for i in range(count):
        result *= t - nodes[i]
    return result


@part
def shorten_after_error(method, run, h, k, error, errors, stuck):
    """The step size after a failed error test."""
    run.h = step_after_failure(h, k, error, errors)
    if stuck:
        method.k = 1
    method.constant = 0
    method.same_order = 0
    method.last_ratio = 1.0


@part
def next_order_and_step(method, form, run, t, h, k, estimate):
    """Order and step size after an accepted step, which is included in the divided differences."""
    method.successes += 1
    if method.thesis:
        _thesis_rules(method, run, h, k, estimate)
        return
    method.constant += 1
    method.same_order += 1
    method.blocked = max(method.blocked - 1, 0)
    here = _ratio(estimate, k)
    best, ratio = _best_order(method, form, run, t, k, here)
    if method.initial_phase:
        if here >= 2.0 and method.taken < _LONGEST_START:
            # error far below the tolerance: double the step size, and raise the order unless that is harmful
            _change_order(method, k, best)
            run.h = 2.0 * h
            method.constant = 0
            return
        method.initial_phase = 0
    if method.same_order <= k:
        best, ratio = k, here
    elif best > k and method.blocked > 0:
        best, ratio = k, here
    if k >= 3 and not _differences_fall(method, form, run, t, k):
        # growing differences indicate an instability that lower orders avoid
        best, ratio = k - 1, here
        method.penalty = min(max(2 * method.penalty, 20), 400)
        method.blocked = method.penalty
    _change_order(method, k, best)
    grow = min(ratio, method.last_ratio) if method.last_ratio > 0.0 else ratio
    method.last_ratio = ratio
    if grow >= 1.2 and (method.constant > k or k == 1):
        run.h = h * min(grow, method.growth[best])
        method.constant = 0
    elif ratio < 0.9:
        run.h = h * max(0.5, ratio)
        method.constant = 0


@part
def _change_order(method, k, best):
    if best != k:
        method.same_order = 0
    method.k = best


@part
def _best_order(method, form, run, t, k, here):
    """The order among k - 1, k, k + 1 that allows the longest step, with a bias for the current one, and the ratio."""
    if method.family != DIRECT:
        return min(k + 1, method.max_order), here
    dd, before = method.dd, method.nodes[1:]
    best, ratio, lower = k, here, 0.0
    if k > 1:
        lower = _ratio(_local_error(method, form, run, t, k - 1, before, dd[k + 1], 1.0, 0.0), k - 1)
        if lower > 1.1 * here and not method.initial_phase:
            best, ratio = k - 1, lower
    if k < method.max_order and method.points >= k + 4:
        higher = _ratio(_local_error(method, form, run, t, k + 1, before, dd[k + 3], 1.0, 0.0), k + 1)
        wanted = 0.9 * here if method.initial_phase else 1.05 * max(here, lower)
        if higher > wanted:
            best, ratio = k + 1, higher
    return best, ratio


@part
def _differences_fall(method, form, run, t, k):
    """Whether scaled differences of order k + 2 are smaller than those of order k + 1, as for smooth solutions."""
    nodes, dd, weights, order, product = method.nodes, method.dd, method.scale_weights, form.order, 1.0
    for i in range(1, k + 2):
        product *= t - nodes[i]
    low, high, further = 0.0, 0.0, t - nodes[k + 2]
    for i in range(form.n):
        if order[i] == 2:
            low += (product * dd[k + 1, i] * weights[i]) ** 2
            high += (product * further * dd[k + 2, i] * weights[i]) ** 2
    return high <= low or high < form.n * _SMALL_DIFFERENCE**2


@part
def _ratio(estimate, k):
    """Step size ratio at order k for an error of half the tolerance."""
    return (2.0 * estimate + 1e-10) ** (-1.0 / (k + 1))


@part
def _thesis_rules(method, run, h, k, estimate):
    """Order and step size of the thesis: four initial steps, then order 2; steps double after two successes."""
    if method.taken < _THESIS_START:
        method.k = 2
        return
    first = method.taken == _THESIS_START
    run.h = step_after_success(h, k, estimate, 2 if first else method.successes)
    if method.successes > 1:
        method.k = min(k + 1, 2)
