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
from daedal.methods.modified_bdf_control import NO_ESTIMATE, error_of_step, next_order_and_step, shorten_after_error
from daedal.methods.modified_bdf_formulas import (
    PAST,
    ROWS,
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
from daedal.methods.thesis_control import remember

_DEGREES = 7  # rows of the polynomial of a step, at most
_REFRESH_BELOW, _REFRESH_ABOVE = 0.6, 1.0 / 0.6  # as in DASSL, for c_2
_MAX_FAILURES = 15
_PATIENCE = 3  # failures of a step before the past is given up
_MOST_ITERATIONS, _STAGNATION = 50, 1e-7  # with prescribed steps
_MOST_FOLLOWING = 8
_ROUNDOFF_LEVEL = 100.0 * np.finfo(np.float64).eps
_TRACE = 1e-6  # of the weight of other variables is left to multipliers with prescribed steps
_SHARPER = 30.0  # than the error test must Newton's method be: high differences amplify what it leaves

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
        error, estimate = 0.0, NO_ESTIMATE
        if status == CONVERGED:
            derivatives(s, e, xp, xpp)
            gather(s, x, xp, floats(w.y, w.n))
            if not m.fixed:
                error, estimate = error_of_step(m, s, w, t, k)
                if not error < np.inf:
                    status = DIVERGED
        if status == CONVERGED and error <= 1.0:
            status = _accept(system, m, s, w, t, h, k)
            if status == CONVERGED:
                if not m.fixed:
                    next_order_and_step(m, s, w, t, h, k, estimate)
                return 0
        if status == RAISED:
            return CALLBACK_RAISED
        if status == CONVERGED:
            errors += 1
            w.error_test_failures += 1
            shorten_after_error(m, w, h, k, error, errors)
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


announce(advance_modified_bdf, "the modified BDF integrator")
