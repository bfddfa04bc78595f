r"""Modified BDF for F(t, x, x', x'') = 0 in compiled code: predict, correct, test the error, choose order and step.

The formulas are in :mod:`daedal.methods.bdf.modified_bdf_formulas`. Newton's method, norms, output and events are
shared with the other methods.
"""

from __future__ import annotations

import numpy as np

from daedal.kernels.callbacks import RAISED
from daedal.kernels.compilation import entry, part
from daedal.kernels.convergence import CONVERGED, DIVERGED, ROUND_OFF, UNKNOWN, expect_full, judge, start
from daedal.kernels.endings import Ending
from daedal.kernels.linear import LINEAR, prepare_matrix, solve_linear
from daedal.kernels.matrix import JACOBIAN_UNEVALUABLE
from daedal.kernels.newton import KRYLOV_FAILED, SINGULAR, expect_mean_rate, newton
from daedal.kernels.norms import wrms
from daedal.kernels.records import FLOAT, INTEGER, Struct, at, optional, record_at
from daedal.kernels.second_order import SECOND_ORDER, derivatives, gather, scatter
from daedal.kernels.signatures import f64, i64
from daedal.kernels.system import HOOK_CHANGED, residual
from daedal.methods.bdf.modified_bdf_control import (
    NO_ESTIMATE,
    POINTS,
    error_of_step,
    next_order_and_step,
    remember,
    shorten_after_error,
)
from daedal.methods.bdf.modified_bdf_formulas import PAST, ROWS, formula, newton_basis, update_differences
from daedal.methods.one_step import close_polynomial, ending_of, give_to_owner
from daedal.methods.run_record import RUN, STEP, differences
from daedal.methods.step_size import step_to_try

_CALLBACK_RAISED = int(Ending.CALLBACK_RAISED)
# a new matrix is formed if c_2, relative to that of the current matrix, leaves these bounds
_REFRESH_BELOW, _REFRESH_ABOVE = 0.6, 1.0 / 0.6
_MAX_FAILURES = 15
# failures of a step before the history is discarded, unless errors decrease by this factor
_PATIENCE, _FALLING = 3, 0.5
_MOST_ITERATIONS, _STAGNATION = 50, 1e-7  # limits with prescribed steps
_MOST_FOLLOWING, _FAR_WORSE = 8, 10.0
_ROUNDOFF_LEVEL = 100.0 * np.finfo(np.float64).eps
_TRACE = 1e-6  # fraction of the weight of other variables given to multipliers with prescribed steps
_SHARPER = 1000.0  # factor of the Newton weights relative to the error test: high differences amplify errors

MODIFIED_BDF = Struct(
    "MODIFIED_BDF",
    [
        ("linear", at(LINEAR)),
        ("second_order", at(SECOND_ORDER)),
        ("family", INTEGER),
        ("thesis", INTEGER),  # the controller of the thesis
        ("max_order", INTEGER),
        ("share", FLOAT),  # fraction of the tolerance allowed for one step
        ("past_t", f64[POINTS]),
        ("past_y", f64[POINTS, "second_order.n_y"]),
        ("grid", optional(f64["n_grid"])),
        ("n_grid", INTEGER),
        ("grid_orders", optional(i64["n_grid"])),
        # history
        ("nodes", f64[ROWS]),
        ("dd", f64[ROWS, "second_order.n"]),
        ("points", INTEGER),
        ("taken", INTEGER),
        ("velocities", f64[PAST, "second_order.n"]),
        ("velocity_order", i64[PAST]),
        ("basis", f64[ROWS]),
        ("basis1", f64[ROWS]),
        ("basis2", f64[ROWS]),
        # current step
        ("k", INTEGER),
        ("x", f64["second_order.n"]),
        ("xp", f64["second_order.n"]),
        ("xpp", f64["second_order.n"]),
        ("last_xpp", f64["second_order.n"]),
        ("e", f64["second_order.n"]),
        ("delta", f64["second_order.n"]),
        ("weights", f64["second_order.n"]),
        ("matrix_weights", f64["second_order.n"]),
        ("scale_weights", f64["second_order.n"]),  # inverse tolerances for the largest values of x so far
        ("matrix_needed", INTEGER),
        ("matrix_new", INTEGER),
        ("c2_matrix", FLOAT),
        ("constant", INTEGER),  # steps since the last change of step size
        ("same_order", INTEGER),  # steps since the last change of order
        ("blocked", INTEGER),  # number of steps for which the order must not be raised
        ("penalty", INTEGER),
        ("last_ratio", FLOAT),
        ("growth", f64[6]),  # largest ratio of successive step sizes, by order
        ("start_order", INTEGER),
        ("initial_phase", INTEGER),
        ("successes", INTEGER),
        ("consecutive_failures", INTEGER),
    ],
)


@entry(STEP)
def modified_bdf_step(address):
    """Take one accepted step; return 0 or the reason to stop."""
    run = record_at(address, RUN)
    method = record_at(run.method, MODIFIED_BDF)
    return _step(run.system, method.linear, method, method.second_order, run)


@part
def _aim(method, run):
    """Step size and end of the next step; the size is zero if it has become too small."""
    if method.n_grid > 0:
        grid = method.grid
        return grid[run.steps + 1] - grid[run.steps], grid[run.steps + 1]
    return step_to_try(run)


@part
def _order_of_step(method, run):
    """The order of the next step, limited by the available data."""
    k = method.k
    if method.n_grid > 0:
        k = method.grid_orders[run.steps]
    return max(1, min(k, min(method.max_order, method.taken + method.start_order)))


@part
def _step(system, linear, method, form, run):
    x, xp, xpp, e = method.x, method.xp, method.xpp, method.e
    errors, newtons, singular, status, longest = 0, 0, 0, CONVERGED, 0.0
    last_error, forgotten = np.inf, False
    while True:
        h, t = _aim(method, run)
        if h == 0.0:
            return ending_of(status, singular)
        if errors + newtons == 0:
            longest = h
        k = _order_of_step(method, run)
        if not formula(method, form, t, k):
            k = 1
            formula(method, form, t, k)
        status = _correct(system, linear, method, form, run, t, h)
        error, estimate = 0.0, NO_ESTIMATE
        if status == CONVERGED:
            derivatives(form, e, xp, xpp)
            gather(form, x, xp, run.y)
            if not run.fixed:
                error, estimate = error_of_step(method, form, run, t, k)
                if not error < np.inf:
                    status = DIVERGED
        if status == CONVERGED and error <= 1.0:
            status = _accept(system, method, form, run, t, h, k)
            if status == CONVERGED:
                if not run.fixed:
                    next_order_and_step(method, form, run, t, h, k, estimate)
                return 0
        if status == RAISED:
            return _CALLBACK_RAISED
        if status == CONVERGED:
            errors += 1
            run.error_test_failures += 1
            stuck = errors + newtons >= _PATIENCE and error > _FALLING * last_error
            last_error = error
            shorten_after_error(method, run, h, k, error, errors, stuck)
        else:
            newtons += 1
            stuck = errors + newtons >= _PATIENCE
            run.newton_failures += 1
            singular += 1 if status == SINGULAR else 0
            run.h = 0.25 * h
            method.constant = 0
        if stuck and not forgotten and method.taken > 0 and not method.thesis and not run.fixed:
            # a jump or round-off in the history may be the cause: restart without history
            _forget_the_past(method, form, run)
            run.h = 0.1 * longest
            forgotten = True
        method.matrix_needed = 1
        method.successes = 0
        method.initial_phase = 0
        run.attempt_error_failures = errors
        run.attempt_newton_failures = newtons
        run.jacobian_unevaluable = status == JACOBIAN_UNEVALUABLE
        if run.fixed or newtons >= _MAX_FAILURES or errors >= 2 * _MAX_FAILURES or singular >= 4:
            return ending_of(status, singular)


@part
def _forget_the_past(method, form, run):
    """Restart from the last point with its x, x' and x''."""
    dd, nodes, past, orders, last = method.dd, method.nodes, method.velocities, method.velocity_order, method.last_xpp
    for i in range(form.n):
        dd[1, i] = past[0, i]
        dd[2, i] = 0.5 * last[i]
        for j in range(3, ROWS):
            dd[j, i] = 0.0
    for j in range(ROWS):
        nodes[j] = run.t
    for j in range(PAST):
        orders[j] = 3
    method.points = 3
    method.taken = 0
    method.k = method.start_order


@part
def _newton_weights(method, form, run):
    """Set the Newton weights: corrections e of x are measured by their effect on x and on x', e and c_1 e.

    Corrections of multipliers and of passive variables are checked after x has converged.
    """
    n, source, inverse = form.n, form.source, run.inverse_weights
    weights, matrix_weights, scale_weights = method.weights, method.matrix_weights, method.scale_weights
    order, included = form.order, run.included
    for j in range(form.n_y):
        i = source[j]
        if i < form.n:
            scale_weights[i] = min(scale_weights[i], inverse[j]) if scale_weights[i] > 0.0 else inverse[j]
            weights[i] = inverse[j] if order[i] > 0 and included[j] != 0.0 else 0.0
            matrix_weights[i] = inverse[j]
    for j in range(form.n_y):
        i = source[j] - form.n
        if i >= 0 and included[j] != 0.0:
            weights[i] = max(weights[i], abs(form.c1) * inverse[j])
    for i in range(n):
        weights[i] *= _SHARPER


@part
def _correct(system, linear, method, form, run, t, h):
    """Solve for x at t; after a failure with an old matrix, retry with a new one."""
    x, e, delta, base = method.x, method.e, method.delta, form.base
    correction, weights = method.xp, method.weights
    _newton_weights(method, form, run)
    if run.fixed:
        return _iterate_to_roundoff(system, linear, method, form, run.newton, t, h)
    ratio = form.c2 / method.c2_matrix
    if ratio < _REFRESH_BELOW or ratio > _REFRESH_ABOVE or method.thesis:
        method.matrix_needed = 1
    while True:
        for i in range(form.n):
            x[i] = base[0, i]
            e[i] = 0.0
        status = residual(system, t, x, e, delta)
        if status != 0:
            return status
        if method.matrix_needed:
            status = prepare_matrix(system, linear, t, x, e, delta, 1.0, h, method.matrix_weights)
            if status != 0:
                return status
            method.c2_matrix = form.c2
            method.matrix_needed = 0
            method.matrix_new = 1
        old = method.c2_matrix / form.c2
        expect_mean_rate(run.newton)
        status = newton(system, linear, run.newton, t, x, e, delta, correction, 1.0, old, weights, 0, form.n)
        if status == CONVERGED:
            status = _follow(system, linear, method, form, t)
        if (status == DIVERGED or status == KRYLOV_FAILED) and not method.matrix_new:
            method.matrix_needed = 1
            continue
        method.matrix_new = 0
        return status


@part
def _size_of_others(method, form, correction):
    """The size of corrections of variables excluded from Newton's test, in units of their tolerances."""
    weights, inverse, total = method.weights, method.matrix_weights, 0.0
    for i in range(form.n):
        if weights[i] == 0.0:
            total += (correction[i] * inverse[i]) ** 2
    return np.sqrt(total / form.n)


@part
def _follow(system, linear, method, form, t):
    """Iterate until the multipliers have converged or their corrections are round-off: c_2 times the round-off of x.

    Growing corrections are not round-off, even if x hardly changes in a short step.
    """
    x, e, delta, weights = method.x, method.e, method.delta, method.weights
    size, worse = _size_of_others(method, form, delta), 0
    for _ in range(_MOST_FOLLOWING):
        if size <= 1.0:
            return CONVERGED
        status = residual(system, t, x, e, delta)
        if status == 0:
            status = solve_linear(
                system, linear, t, x, e, delta, 1.0, method.c2_matrix / form.c2, method.matrix_weights, delta
            )
        if status != 0:
            return status
        for i in range(form.n):
            x[i] -= delta[i]
            e[i] -= delta[i]
        before, size = size, _size_of_others(method, form, delta)
        worse += 1 if size > _FAR_WORSE * before else 0
        if worse == 2 or not size < np.inf:
            return DIVERGED
        stays = 0.5 * before <= size <= _FAR_WORSE * before
        if stays and wrms(delta, weights) <= max(1.0, _ROUNDOFF_LEVEL * wrms(x, weights)):
            return CONVERGED
    return CONVERGED if size <= 1.0 else DIVERGED


@part
def _iterate_to_roundoff(system, linear, method, form, progress, t, h):
    """Newton's method with a new matrix in every iteration: prescribed steps have no tolerance to stop at."""
    n = form.n
    x, e, delta, base = method.x, method.e, method.delta, form.base
    weights, matrix_weights = method.weights, method.matrix_weights
    for i in range(n):
        x[i] = base[0, i]
        e[i] = 0.0
    for i in range(n):
        weights[i] = max(weights[i], _TRACE * matrix_weights[i])
    scale = wrms(x, weights)
    expect_full(progress, _MOST_ITERATIONS, 0.0, 0.0, 0.5)
    start(progress, UNKNOWN)
    while True:
        status = residual(system, t, x, e, delta)
        if status == 0:
            status = prepare_matrix(system, linear, t, x, e, delta, 1.0, h, matrix_weights)
        if status == 0:
            system.newton_iterations += 1
            status = solve_linear(system, linear, t, x, e, delta, 1.0, 1.0, weights, delta)
        if status != 0:
            return status
        size = wrms(delta, weights)
        scale = max(scale, size)
        progress.rounding = _STAGNATION * scale
        verdict = judge(progress, size, 0.0)
        if verdict == ROUND_OFF or verdict == DIVERGED:
            return CONVERGED if verdict == ROUND_OFF else DIVERGED
        for i in range(n):
            x[i] -= delta[i]
            e[i] -= delta[i]
        if verdict == CONVERGED:
            return CONVERGED


@part
def _accept(system, method, form, run, t, h, k):
    """Pass the step to the hook, then add it to the history and store its polynomial."""
    n = form.n
    x, xp, xpp, y = method.x, method.xp, method.xpp, run.y
    if system.hook != 0:
        status = give_to_owner(system, run, t, h)
        if status == HOOK_CHANGED:
            scatter(form, y, x, xp)
        elif status != 0:
            return status
    past = method.velocities
    for i in range(n):
        for j in range(PAST - 1, 0, -1):
            past[j, i] = past[j - 1, i]
        past[0, i] = xp[i]
    update_differences(method, form, t, x, k)
    method.taken += 1
    if method.thesis:
        remember(method, run, t, y)
    _keep_polynomial(method, form, run, t, h, k)
    gather(form, xp, xpp, run.yp)
    last = method.last_xpp
    for i in range(n):
        last[i] = xpp[i]
    run.attempt_newton_failures = 0
    run.attempt_error_failures = 0
    run.t = t
    run.h_last = h
    run.order = k
    run.steps += 1
    return CONVERGED


@part
def _keep_polynomial(method, form, run, t, h, k):
    """The interpolant of the step and its derivative, as values at equidistant points of the step."""
    n = form.n
    degree = k + 1
    if method.thesis and method.taken > 5:
        degree = k + 3  # 5 at order 2, Wunderlich (4.31)
    nodes, dd, phi = method.nodes, method.dd, differences(run)
    values, first, second = method.basis, method.basis1, method.basis2
    source, y = form.source, run.y
    for q in range(1, degree + 1):
        newton_basis(t - h * q / degree, nodes, degree + 1, values, first, second)
        for j in range(form.n_y):
            i, total = source[j], 0.0
            if i < n:
                for l in range(degree + 1):
                    total += dd[l, i] * values[l]
            else:
                for l in range(1, degree + 1):
                    total += dd[l, i - n] * first[l]
            phi[q, j] = total
    for j in range(form.n_y):
        phi[0, j] = y[j]
    close_polynomial(run, h, degree)
