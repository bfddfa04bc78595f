r"""Modified BDF for F(t, x, x', x'') = 0 in compiled code: predict, correct, test the error, choose order and step.

The formulas are in :mod:`daedal.methods.modified_bdf_formulas`. Newton's method, norms, output and events are those of
the other methods.
"""

from __future__ import annotations

import numpy as np

from daedal.kernels.callbacks import RAISED, UNEVALUABLE
from daedal.kernels.compilation import announce, kernel, part
from daedal.kernels.linear import prepare_matrix, solve_linear
from daedal.kernels.matrix import JACOBIAN_UNEVALUABLE
from daedal.kernels.newton import CONVERGED, DIVERGED, KRYLOV_FAILED, SINGULAR, UNKNOWN_RATE, newton
from daedal.kernels.norms import wrms
from daedal.kernels.records import ADDRESS, FLOAT, INTEGER, float_rows, floats, integers, record_at
from daedal.kernels.second_order import SECOND_ORDER, derivatives, gather, scatter
from daedal.kernels.system import HOOK_CHANGED, residual
from daedal.methods.dassl_run import empty_buffers
from daedal.methods.dassl_step import (
    CALLBACK_RAISED,
    ERROR_TEST_FAILED,
    MATRIX_SINGULAR,
    NEWTON_FAILED,
    RESIDUAL_UNEVALUABLE,
    differences,
)
from daedal.methods.modified_bdf_formulas import (
    DIRECT,
    PAST,
    ROWS,
    error_factors,
    formula,
    newton_basis,
    update_differences,
)
from daedal.methods.one_step import (
    backward_differences,
    close_step,
    end_of_step,
    give_to_owner,
    next_step,
    open_run,
    step_to_try,
)
from daedal.methods.thesis_control import extrapolation_error, remember, step_after_failure, step_after_success

_DEGREES = 7  # rows of the polynomial of a step, at most
_REFRESH_BELOW, _REFRESH_ABOVE = 0.6, 1.0 / 0.6  # as in DASSL, for c_2
_MAX_FAILURES = 15
_PATIENCE = 3  # failures of a step before the past is given up
_MOST_ITERATIONS, _STAGNATION = 50, 1e-7  # with prescribed steps
_MOST_FOLLOWING = 8
_ROUNDOFF_LEVEL = 100.0 * np.finfo(np.float64).eps
_TRACE = 1e-6  # of the weight of other variables is left to multipliers with prescribed steps
_SHARPER = 30.0  # than the error test must Newton's method be: high differences amplify what it leaves
_NO_ESTIMATE = -1.0
_ULPS = 100.0  # to which x is solved for
_TARGET = 0.5  # of the tolerance is what step and order are chosen for
_LONGEST_START = 60
_THESIS_START = 4  # steps without error test
_SMALL_DIFFERENCE = 0.01  # in units of the tolerance: no matter whether they fall

MODIFIED_BDF = np.dtype(
    [
        ("second_order", ADDRESS),
        ("family", INTEGER),
        ("thesis", INTEGER),  # the controller of the thesis
        ("max_order", INTEGER),
        # what all methods with their own loop have
        ("order", INTEGER),
        ("fixed", INTEGER),
        ("t0", FLOAT),
        ("last_step", INTEGER),
        ("rejected", INTEGER),
        ("past_t", ADDRESS),
        ("past_y", ADDRESS),
        ("grid", ADDRESS),
        ("n_grid", INTEGER),
        ("grid_orders", ADDRESS),
        # the past
        ("nodes", ADDRESS),
        ("dd", ADDRESS),
        ("points", INTEGER),
        ("taken", INTEGER),
        ("velocities", ADDRESS),
        ("velocity_order", ADDRESS),
        ("basis", ADDRESS),
        ("basis1", ADDRESS),
        ("basis2", ADDRESS),
        # the present
        ("k", INTEGER),
        ("x", ADDRESS),
        ("xp", ADDRESS),
        ("xpp", ADDRESS),
        ("last_xpp", ADDRESS),
        ("e", ADDRESS),
        ("delta", ADDRESS),
        ("weights", ADDRESS),
        ("matrix_weights", ADDRESS),
        ("scale_weights", ADDRESS),  # inverse tolerances of x as large as it ever was
        ("matrix_needed", INTEGER),
        ("matrix_new", INTEGER),
        ("c2_matrix", FLOAT),
        ("rate_factor", FLOAT),
        ("constant", INTEGER),  # steps since the last change of the step size
        ("same_order", INTEGER),  # and of the order
        ("blocked", INTEGER),  # steps for which the order must not be raised
        ("penalty", INTEGER),
        ("last_ratio", FLOAT),
        ("growth", ADDRESS),  # largest ratio of successive steps, by order
        ("start_order", INTEGER),
        ("initial_phase", INTEGER),
        ("successes", INTEGER),
        ("consecutive_failures", INTEGER),
    ]
)


@kernel
def advance_modified_bdf(systems, linears, methods, integrators, runs, root_functions):
    """Integrate until the end, a failure, a terminal event, or a full buffer; returns the reason."""
    system, linear, m, w, r, roots = (
        systems[0],
        linears[0],
        methods[0],
        integrators[0],
        runs[0],
        root_functions[0],
    )
    s = record_at(m.second_order, SECOND_ORDER)
    empty_buffers(r)
    if not r.started:
        reason = open_run(system, w, r, roots)
        if reason != 0:
            return reason
    taken = 0
    while True:
        reason = next_step(system, m, w, r, roots, taken, _DEGREES)
        if reason != 0:
            return reason
        reason = _step(system, linear, m, s, w, r)
        if reason != 0:
            return reason
        taken += 1
        close_step(w, r)


@part
def _aim(m, w, r):
    """Step size and end of the next step; zero if it has become too small."""
    if m.n_grid > 0:
        grid = floats(m.grid, m.n_grid)
        return grid[w.steps + 1] - grid[w.steps], grid[w.steps + 1]
    h = step_to_try(m, w, r)
    return h, end_of_step(m, w, r, h)


@part
def _order_of_step(m, w):
    """The order of the next step, for which there must be data."""
    k = m.k
    if m.n_grid > 0:
        k = integers(m.grid_orders, m.n_grid)[w.steps]
    return max(1, min(k, min(m.max_order, m.taken + m.start_order)))


@part
def _step(system, linear, m, s, w, r):
    """One accepted step; 0 or the reason to stop."""
    n = s.n
    x, xp, xpp, e = floats(m.x, n), floats(m.xp, n), floats(m.xpp, n), floats(m.e, n)
    errors, newtons, singular, status, longest = 0, 0, 0, CONVERGED, 0.0
    while True:
        h, t = _aim(m, w, r)
        if h == 0.0:
            return _reason(status, singular)
        if errors + newtons == 0:
            longest = h
        k = _order_of_step(m, w)
        if not formula(m, s, t, k):
            k = 1
            formula(m, s, t, k)
        status = _correct(system, linear, m, s, w, t, h)
        error, estimate = 0.0, _NO_ESTIMATE
        if status == CONVERGED:
            derivatives(s, e, xp, xpp)
            gather(s, x, xp, floats(w.y, w.n))
            if not m.fixed:
                error, estimate = _error(m, s, w, t, k)
                if not error < np.inf:
                    status = DIVERGED
        if status == CONVERGED and error <= 1.0:
            status = _accept(system, m, s, w, t, h, k)
            if status == CONVERGED:
                if not m.fixed:
                    _next_order_and_step(m, s, w, t, h, k, estimate)
                return 0
        if status == RAISED:
            return CALLBACK_RAISED
        if status == CONVERGED:
            errors += 1
            w.error_test_failures += 1
            _after_error(m, w, h, k, error, errors)
        else:
            newtons += 1
            w.newton_failures += 1
            singular += 1 if status == SINGULAR else 0
            w.h = 0.25 * h
            m.constant = 0
        if errors + newtons == _PATIENCE and m.taken > 0 and not m.thesis and not m.fixed:
            # the past may be to blame, a jump in it, or noise: go on without it
            _forget_the_past(m, s, w)
            w.h = 0.1 * longest
        m.matrix_needed = 1
        m.successes = 0
        m.initial_phase = 0
        w.attempt_error_failures = errors
        w.attempt_newton_failures = newtons
        w.jacobian_unevaluable = status == JACOBIAN_UNEVALUABLE
        if m.fixed or newtons >= _MAX_FAILURES or errors >= 2 * _MAX_FAILURES or singular >= 4:
            return _reason(status, singular)


@part
def _forget_the_past(m, s, w):
    """Begin anew at the last point, with x, x' and x'' there."""
    n = s.n
    dd, nodes, past = float_rows(m.dd, ROWS, n), floats(m.nodes, ROWS), float_rows(m.velocities, PAST, n)
    orders, last = integers(m.velocity_order, PAST), floats(m.last_xpp, n)
    for i in range(n):
        dd[1, i] = past[0, i]
        dd[2, i] = 0.5 * last[i]
        for j in range(3, ROWS):
            dd[j, i] = 0.0
    for j in range(ROWS):
        nodes[j] = w.t
    for j in range(PAST):
        orders[j] = 3
    m.points = 3
    m.taken = 0
    m.k = m.start_order


@part
def _reason(status, singular):
    if status == CONVERGED:
        return ERROR_TEST_FAILED
    if status == UNEVALUABLE or status == JACOBIAN_UNEVALUABLE:
        return RESIDUAL_UNEVALUABLE
    return MATRIX_SINGULAR if singular > 0 else NEWTON_FAILED


@part
def _newton_weights(m, s, w):
    """Corrections of x are judged by what they mean for x and for x', which changes c_1 times as much.

    Those of multipliers, and of variables that are only computed along, are looked at when x has converged.
    """
    n, source, inverse = s.n, integers(s.source, s.n_y), floats(w.inverse_weights, w.n)
    weights, matrix_weights, order = floats(m.weights, n), floats(m.matrix_weights, n), integers(s.order, n)
    scale_weights, included = floats(m.scale_weights, n), floats(w.included, w.n)
    for j in range(s.n_y):
        i = source[j]
        if i < s.n:
            scale_weights[i] = min(scale_weights[i], inverse[j]) if scale_weights[i] > 0.0 else inverse[j]
            weights[i] = inverse[j] if order[i] > 0 and included[j] != 0.0 else 0.0
            matrix_weights[i] = inverse[j]
    for j in range(s.n_y):
        i = source[j] - s.n
        if i >= 0 and included[j] != 0.0:
            weights[i] = max(weights[i], abs(s.c1) * inverse[j])
    for i in range(n):
        weights[i] *= _SHARPER


@part
def _correct(system, linear, m, s, w, t, h):
    """Solve for x at t; with an old matrix a failure leads to a second try with a new one."""
    n = s.n
    x, e, delta, base = floats(m.x, n), floats(m.e, n), floats(m.delta, n), float_rows(s.base, 3, n)
    correction = floats(m.xp, n)
    _newton_weights(m, s, w)
    if m.fixed:
        return _iterate_to_roundoff(system, linear, m, s, t, h)
    ratio = s.c2 / m.c2_matrix
    if ratio < _REFRESH_BELOW or ratio > _REFRESH_ABOVE or m.thesis:
        m.matrix_needed = 1
    while True:
        for i in range(n):
            x[i] = base[0, i]
            e[i] = 0.0
        status = residual(system, t, x, e, delta)
        if status != 0:
            return status
        if m.matrix_needed:
            status = prepare_matrix(system, linear, t, x, e, delta, 1.0, h, floats(m.matrix_weights, n))
            if status != 0:
                return status
            m.c2_matrix = s.c2
            m.matrix_needed = 0
            m.matrix_new = 1
        status, _ = newton(
            system, linear, t, x, e, delta, correction, 1.0, m.c2_matrix / s.c2, UNKNOWN_RATE, floats(m.weights, n)
        )
        if status == CONVERGED:
            status = _follow(system, linear, m, s, t)
        if (status == DIVERGED or status == KRYLOV_FAILED) and not m.matrix_new:
            m.matrix_needed = 1
            continue
        m.matrix_new = 0
        return status


@part
def _size_of_others(m, s, correction):
    """The size of corrections of variables that Newton's test leaves out, in units of their tolerances."""
    weights, inverse, total = floats(m.weights, s.n), floats(m.matrix_weights, s.n), 0.0
    for i in range(s.n):
        if weights[i] == 0.0:
            total += (correction[i] * inverse[i]) ** 2
    return np.sqrt(total / s.n)


@part
def _follow(system, linear, m, s, t):
    """Iterate until multipliers have followed, or their corrections are noise: c_2 times the round-off of x."""
    n = s.n
    x, e, delta = floats(m.x, n), floats(m.e, n), floats(m.delta, n)
    size = _size_of_others(m, s, delta)
    for _ in range(_MOST_FOLLOWING):
        if size <= 1.0:
            return CONVERGED
        status = residual(system, t, x, e, delta)
        if status == 0:
            status = solve_linear(
                system, linear, t, x, e, delta, 1.0, m.c2_matrix / s.c2, floats(m.matrix_weights, n), delta
            )
        if status != 0:
            return status
        for i in range(n):
            x[i] -= delta[i]
            e[i] -= delta[i]
        before, size = size, _size_of_others(m, s, delta)
        weights = floats(m.weights, n)
        if size >= 0.5 * before and wrms(delta, weights) <= max(1.0, _ROUNDOFF_LEVEL * wrms(x, weights)):
            return CONVERGED
    return CONVERGED if size <= 1.0 else DIVERGED


@part
def _iterate_to_roundoff(system, linear, m, s, t, h):
    """Newton's method with a new matrix in every iteration: with prescribed steps no tolerance says when to stop."""
    n = s.n
    x, e, delta, base = floats(m.x, n), floats(m.e, n), floats(m.delta, n), float_rows(s.base, 3, n)
    weights = floats(m.weights, n)
    for i in range(n):
        x[i] = base[0, i]
        e[i] = 0.0
    for i in range(n):
        weights[i] = max(weights[i], _TRACE * floats(m.matrix_weights, n)[i])
    before, scale = np.inf, wrms(x, weights)
    for _ in range(_MOST_ITERATIONS):
        status = residual(system, t, x, e, delta)
        if status == 0:
            status = prepare_matrix(system, linear, t, x, e, delta, 1.0, h, floats(m.matrix_weights, n))
        if status == 0:
            system.newton_iterations += 1
            status = solve_linear(system, linear, t, x, e, delta, 1.0, 1.0, weights, delta)
        if status != 0:
            return status
        size = wrms(delta, weights)
        if not size < np.inf:
            return DIVERGED
        if size >= 0.5 * before and before <= _STAGNATION * scale:
            return CONVERGED
        for i in range(n):
            x[i] -= delta[i]
            e[i] -= delta[i]
        if size == 0.0:
            return CONVERGED
        scale = max(scale, size)
        before = size
    return DIVERGED


@part
def _error(m, s, w, t, k):
    """The error of this step, and the same estimate for the choice of the next one, in units of the tolerance."""
    if m.thesis:
        if m.taken < _THESIS_START:
            return 0.0, _NO_ESTIMATE
        error = extrapolation_error(m, w, t)
        return error, error
    n, nodes = s.n, floats(m.nodes, ROWS)
    if k == 2 and m.taken == 0:  # there are no data beyond those that the formula uses
        k = 1
    # e is the divided difference of order k + 2 times prod (t_n - t_{n-i}), i = 1 .. k + 2
    e, scale = floats(m.e, n), 1.0 / _product(t, nodes, k + 2)
    estimate = _local_error(m, s, w, t, k, nodes, e, scale, 0.0)
    if estimate <= _TARGET:
        return estimate, estimate
    # what round-off explains is no reason to repeat the step, nor to shorten the next one
    error = _local_error(m, s, w, t, k, nodes, e, scale, _ULPS)
    return error, max(error, _TARGET)


@part
def _local_error(m, s, w, t, k, nodes, difference, scale, ulps):
    """The norm of the local error of order k, from a multiple of the divided difference of order k + 2.

    Less the part that errors of x of so many ulps make.
    """
    second, first, velocity = error_factors(m, t, k, nodes)
    x = floats(m.x, s.n)
    source, order = integers(s.source, s.n_y), integers(s.order, s.n)
    vector, included = floats(w.scratch, w.n), floats(w.included, w.n)
    noise = ulps * 2.0 ** (k + 2) * np.finfo(np.float64).eps / abs(_product(t, nodes, k + 2))
    for j in range(s.n_y):
        i = source[j]
        if i >= s.n:
            vector[j] = abs(velocity) * max(abs(scale * difference[i - s.n]) - noise * abs(x[i - s.n]), 0.0)
        elif order[i] == 2:
            vector[j] = abs(second) * max(abs(scale * difference[i]) - noise * abs(x[i]), 0.0)
        elif order[i] == 1:
            vector[j] = scale * first * difference[i]
        else:
            vector[j] = 0.0
        vector[j] *= included[j]
    return wrms(vector, floats(w.inverse_weights, w.n))


@part
def _product(t, nodes, count):
    result = 1.0
    for i in range(count):
        result *= t - nodes[i]
    return result


@part
def _accept(system, m, s, w, t, h, k):
    """Let the owner look at the step, then make it part of the past and keep its polynomial."""
    n = s.n
    x, xp, xpp, y = floats(m.x, n), floats(m.xp, n), floats(m.xpp, n), floats(w.y, w.n)
    if system.hook != 0:
        status = give_to_owner(system, w, t, h)
        if status == HOOK_CHANGED:
            scatter(s, y, x, xp)
        elif status != 0:
            return status
    past = float_rows(m.velocities, PAST, n)
    for i in range(n):
        for j in range(PAST - 1, 0, -1):
            past[j, i] = past[j - 1, i]
        past[0, i] = xp[i]
    update_differences(m, s, t, x, k)
    m.taken += 1
    if m.thesis:
        remember(m, w, t, y)
    _keep_polynomial(m, s, w, t, h, k)
    gather(s, xp, xpp, floats(w.yp, w.n))
    last = floats(m.last_xpp, n)
    for i in range(n):
        last[i] = xpp[i]
    w.attempt_newton_failures = 0
    w.attempt_error_failures = 0
    w.t = t
    w.h_last = h
    w.k = k
    w.steps += 1
    return CONVERGED


@part
def _keep_polynomial(m, s, w, t, h, k):
    """The interpolant of the step and its derivative, as values at equidistant points of the step."""
    n = s.n
    degree = k + 1
    if m.thesis and m.taken > 5:
        degree = k + 3  # 5 at order 2, Wunderlich (4.31)
    nodes, dd, phi = floats(m.nodes, ROWS), float_rows(m.dd, ROWS, n), differences(w)
    values, first, second = floats(m.basis, ROWS), floats(m.basis1, ROWS), floats(m.basis2, ROWS)
    source, y = integers(s.source, s.n_y), floats(w.y, w.n)
    for q in range(degree):
        w.c.psi[q] = h * (q + 1) / degree
    w.c.psi[degree] = 2.0 * h
    for q in range(1, degree + 1):
        newton_basis(t - h * q / degree, nodes, degree + 1, values, first, second)
        for j in range(s.n_y):
            i, total = source[j], 0.0
            if i < n:
                for l in range(degree + 1):
                    total += dd[l, i] * values[l]
            else:
                for l in range(1, degree + 1):
                    total += dd[l, i - n] * first[l]
            phi[q, j] = total
    for j in range(s.n_y):
        phi[0, j] = y[j]
        backward_differences(phi, j, degree)
    w.k_last = degree


@part
def _after_error(m, w, h, k, error, errors):
    """The step after a failed error test."""
    w.h = step_after_failure(h, k, error, errors)
    if errors >= 3:
        m.k = 1
    m.constant = 0
    m.same_order = 0
    m.last_ratio = 1.0


@part
def _next_order_and_step(m, s, w, t, h, k, estimate):
    """Order and step size after an accepted step; the divided differences include it."""
    m.successes += 1
    if m.thesis:
        _thesis_rules(m, w, h, k, estimate)
        return
    m.constant += 1
    m.same_order += 1
    m.blocked = max(m.blocked - 1, 0)
    here = _ratio(estimate, k)
    best, ratio = _best_order(m, s, w, t, k, here)
    if m.initial_phase:
        if here >= 2.0 and m.taken < _LONGEST_START:
            # the error is far below the tolerance: double the step, and raise the order with it if that does no harm
            _change_order(m, k, best)
            w.h = 2.0 * h
            m.constant = 0
            return
        m.initial_phase = 0
    if m.same_order <= k:
        best, ratio = k, here
    elif best > k and m.blocked > 0:
        best, ratio = k, here
    if k >= 3 and not _differences_fall(m, s, w, t, k):
        # growing differences are a sign of instability, which lower orders do not have
        best, ratio = k - 1, here
        m.penalty = min(max(2 * m.penalty, 20), 400)
        m.blocked = m.penalty
    _change_order(m, k, best)
    grow = min(ratio, m.last_ratio) if m.last_ratio > 0.0 else ratio
    m.last_ratio = ratio
    if grow >= 1.2 and (m.constant > k or k == 1):
        w.h = h * min(grow, floats(m.growth, 6)[best])
        m.constant = 0
    elif ratio < 0.9:
        w.h = h * max(0.5, ratio)
        m.constant = 0


@part
def _change_order(m, k, best):
    if best != k:
        m.same_order = 0
    m.k = best


@part
def _best_order(m, s, w, t, k, here):
    """The order among k - 1, k, k + 1 that allows the longest step, with a bias for the present one, and the ratio."""
    if m.family != DIRECT:
        return min(k + 1, m.max_order), here
    dd, before = float_rows(m.dd, ROWS, s.n), floats(m.nodes, ROWS)[1:]
    best, ratio, lower = k, here, 0.0
    if k > 1:
        lower = _ratio(_local_error(m, s, w, t, k - 1, before, dd[k + 1], 1.0, 0.0), k - 1)
        if lower > 1.1 * here and not m.initial_phase:
            best, ratio = k - 1, lower
    if k < m.max_order and m.points >= k + 4:
        higher = _ratio(_local_error(m, s, w, t, k + 1, before, dd[k + 3], 1.0, 0.0), k + 1)
        wanted = 0.9 * here if m.initial_phase else 1.05 * max(here, lower)
        if higher > wanted:
            best, ratio = k + 1, higher
    return best, ratio


@part
def _differences_fall(m, s, w, t, k):
    """Whether the scaled differences of order k + 2 are smaller than those of order k + 1, as for smooth solutions."""
    nodes, dd = floats(m.nodes, ROWS), float_rows(m.dd, ROWS, s.n)
    weights, order, product = floats(m.scale_weights, s.n), integers(s.order, s.n), 1.0
    for i in range(1, k + 2):
        product *= t - nodes[i]
    low, high, further = 0.0, 0.0, t - nodes[k + 2]
    for i in range(s.n):
        if order[i] == 2:
            low += (product * dd[k + 1, i] * weights[i]) ** 2
            high += (product * further * dd[k + 2, i] * weights[i]) ** 2
    return high <= low or high < s.n * _SMALL_DIFFERENCE**2


@part
def _ratio(estimate, k):
    """How much longer a step of order k may be if its error is to be half the tolerance."""
    return (2.0 * estimate + 1e-10) ** (-1.0 / (k + 1))


@part
def _thesis_rules(m, w, h, k, estimate):
    """Four steps to start with; after every second success the order is raised to 2."""
    if m.taken < _THESIS_START:
        m.k = 2
        return
    first = m.taken == _THESIS_START
    w.h = step_after_success(h, k, estimate, 2 if first else m.successes)
    if m.successes > 1:
        m.k = min(k + 1, 2)


announce(advance_modified_bdf, "the modified BDF integrator")
