r"""A step of an implicit Runge-Kutta method for F(t, y, y') = 0 in compiled code: its end, its error, its polynomial.

The error is that of an embedded method, h sum (b_i - b^_i) Y'_i, if the tableau has one. Diagonally implicit ones
filter it, (F_y' / h + a F_y)^{-1} F_y' / h: components determined by algebraic equations or stiffness have no error
(Hairer and Wanner II, IV.8). Otherwise the step is repeated as two halves, from which the run continues: the difference
is the error of the whole step, which bounds that of the halves (Hairer, Norsett and Wanner I, II.4). Either estimate is
compared with the defect of the polynomial of the step, and the larger one is tested.

Projected methods apply to index 2 in Hessenberg form (U. M. Ascher, L. R. Petzold: Projected implicit Runge-Kutta
methods for differential-algebraic equations, SIAM J. Numer. Anal. 28 (1991) 1097-1120). The end of a step for y' = f(t,
y, z), 0 = g(t, y) is replaced by

    y_{n+1} = y^ + f_z(t_{n+1}, y^, z^) lambda,    g(t_{n+1}, y_{n+1}) = 0.

Multipliers z are computed from the stages of their own step: z_{n+1} interpolates the values Z_i, and errors of z_n are
not propagated for any R(infinity).
"""

from __future__ import annotations

import numpy as np

from daedal.kernels.compilation import caller, entry, part
from daedal.kernels.convergence import CONTINUE, CONVERGED, DIVERGED, TO_ROUNDOFF, UNKNOWN, expect, judge, start
from daedal.kernels.dense import factor_lu, solve_lu
from daedal.kernels.endings import Ending
from daedal.kernels.interpolation import newton_polynomial
from daedal.kernels.norms import wrms
from daedal.kernels.records import record_at
from daedal.kernels.system import HOOK_CHANGED, residual
from daedal.methods.implicit_rk.implicit_runge_kutta_newton import IRK, solve_all_stages, take_block
from daedal.methods.implicit_rk.implicit_runge_kutta_output import add_defect, find_points, is_halved, keep_polynomial
from daedal.methods.implicit_rk.stages import share_of_class
from daedal.methods.one_step import ATTEMPT, combine, give_to_owner, size_of_error, weighted_sum
from daedal.methods.partial_derivatives import after_first_look
from daedal.methods.run_record import RUN, STEP

_TROUBLED = int(Ending.TROUBLED)
_GOOD_RATE = 0.05  # rate below which the next step reuses F_y and F_y'
_SLOW_RATE = 0.6  # rate above which steps do not grow
_TROUBLE = 5  # steps without growth after a failure of Newton's method
_NO_GROWTH = 0.5  # estimated error, in units of the tolerance, for which the step size remains the same
_ROUNDOFF = 50.0 * np.finfo(np.float64).eps
_FAR = 2.0  # steps longer than the last one by this factor are not predicted by its polynomial

_MOST_PROJECTIONS = 20  # maximum number of Newton iterations in a projection
_NOISE = 30.0 * np.finfo(np.float64).eps
_ROUNDING = 1e-2

_call, _call_step = caller(ATTEMPT), caller(STEP)


@entry(STEP)
def irk_begin(address):
    """Compute the derivatives at the start, from which the run determines the index of the variables if unknown."""
    run = record_at(address, RUN)
    method = record_at(run.method, IRK)
    if not method.searches:
        return 0
    status = _call(method.linearise, address, run.t, run.h)
    if status == 0 and method.unsettled:
        return _TROUBLED
    return after_first_look(status, method, method.derivatives[0], method.derivatives[1], run.n)


@entry(ATTEMPT)
def irk_attempt(address, t, h):
    """Compute the stages, the end of the step and its error."""
    run = record_at(address, RUN)
    return _attempt(run.system, run, record_at(run.method, IRK), address, t, h)


@entry(ATTEMPT)
def irk_accept(address, t, h):
    """Store the polynomial of the step."""
    run = record_at(address, RUN)
    return _accept(run.system, run, record_at(run.method, IRK), t, h)


@part
def _attempt(system, run, method, address, t, h):
    start, whole = run.phi[0], method.whole
    run.cj, run.order = 1.0 / h, method.order
    method.slowest = 0.0
    _set_weights(run, method, h)
    if run.attempt_error_failures + run.attempt_newton_failures == 0:
        method.jacobian_fresh = 0
    _predict(run, method, h)
    method.level = 0
    status = _stages_and_end(system, run, method, address, run.t, t, h, start, whole, run.y)
    if status == CONVERGED and not run.fixed:
        status = _halves(system, run, method, address, t, h) if method.doubling else _embedded(run, method, address, h)
        if status == CONVERGED:
            find_points(run, method, h)
            status = add_defect(system, method.linear, run, method, address, t, h)
        if status == CONVERGED and method.some_powers:
            status = _discount_roundoff(run, method, address)
        if status == CONVERGED:
            _test(system, run, method)
    if status > 0:
        method.trouble = _TROUBLE
    return status


@part
def _set_weights(run, method, h):
    """Set the weights of corrections; variables of index 2 and 3 count less for short steps, like their errors."""
    n = run.n
    weights, others, plain, power = method.weights, method.others, run.inverse_weights, method.power
    share = share_of_class(run, method, h) if method.some_powers and not run.fixed else 1.0
    for j in range(n):
        weights[j] = plain[j] * share ** power[j]
        others[j] = plain[j] if power[j] > 0.0 else 0.0


@part
def _stages_and_end(system, run, method, address, t0, t1, h, start, k, y):
    """The slopes of a step in k, and y = y_n + h sum_i b_i Y'_i, projected if requested."""
    status = solve_all_stages(system, run, method, address, t0, t1, h, start, k)
    if status != CONVERGED:
        return status
    combine(method.b, method.s, k[1:], start, h, 0, run.n, y)
    return project(system, run, method, address, t1, h, start, k, y) if method.projects else CONVERGED


@part
def _embedded(run, method, address, h):
    """The error from the embedded weights, filtered by the matrix of a stage."""
    n, s, entries = run.n, method.s, method.entries
    error, r = run.error, method.r[0]
    weighted_sum(method.embedded, s, method.whole[1:], 0, n, error)
    for j in range(n):
        error[j] *= h
    if method.filtering < 0:
        return CONVERGED
    rows, columns, f_yp = method.rows, method.columns, method.derivatives[1]
    r[:] = 0.0
    for e in range(entries):
        r[rows[e]] += f_yp[e] / h * error[columns[e]]
    take_block(method, method.filtering)
    status = _call(method.correct, address, run.t, h)
    for j in range(n):
        error[j] = r[j]
    return status


@part
def _discount_roundoff(run, method, address):
    """Subtract from the errors of variables of index 2 and 3 the effect of round-off, which is divided by h or h^2.

    The effect is computed as the Newton correction for rounding errors of the terms of the equations.
    """
    n, entries = run.n, method.entries
    y, error, power = run.y, run.error, method.power
    rows, columns = method.rows, method.columns
    f_y, terms, r = method.derivatives[0], method.residual, method.r
    take_block(method, method.blocks - 1)
    count = method.block_size[method.block]
    terms[:] = 0.0
    for e in range(entries):
        terms[rows[e]] += abs(f_y[e] * y[columns[e]])
    for i in range(count):
        for j in range(n):
            r[i, j] = terms[j] if (i + j) % 2 == 0 else -terms[j]
    status = _call(method.correct, address, run.t, method.h)
    for j in range(n):
        if power[j] > 0.0:
            noise = 0.0
            for i in range(count):
                noise = max(noise, abs(r[i, j]))
            error[j] = max(abs(error[j]) - _ROUNDOFF * noise, 0.0)
    return status


@part
def _test(system, run, method):
    """The error in units of the tolerance; errors of variables of index 2 and 3 count less for short steps."""
    n = run.n
    error, correction = run.error, run.correction
    weights, plain = method.weights, run.inverse_weights
    for j in range(n):
        error[j] *= weights[j] / plain[j]
        correction[j] = error[j]
    run.error_of_step = size_of_error(system, run)
    run.least_error = _NO_GROWTH if method.trouble > 0 or method.slowest > _SLOW_RATE else 0.0


@part
def _predict(run, method, h):
    """Predict slopes from the polynomial of the last step, or its chord; at the start of a run from the tangent."""
    n, s = run.n, method.s
    whole, c, values, slope = method.whole, method.c, method.stage_y, run.yp
    for j in range(n):
        whole[0, j] = slope[j]
    if method.straight or abs(h) > _FAR * abs(run.h_last):
        _follow(s, n, method.secant if run.steps > 0 else slope, whole)
        return
    for i in range(s):
        time = run.t + c[i] * h
        newton_polynomial(time, run.t, run.psi, run.phi, run.degree, values, whole[i + 1])


@part
def _follow(s, n, slope, k):
    """Use one slope for all stages."""
    for i in range(s):
        for j in range(n):
            k[i + 1, j] = slope[j]


@part
def _halves(system, run, method, address, t, h):
    """Repeat the step in two halves, and estimate the error of the whole one."""
    n, s, middle_t = run.n, method.s, run.t + 0.5 * h
    start, y, middle, error = run.phi[0], run.y, method.middle, run.error
    whole, first, second = method.whole, method.first, method.second
    weights, secant = method.halves, method.secant
    for j in range(n):
        error[j] = y[j]
        first[0, j] = whole[0, j]
        secant[j] = (y[j] - start[j]) / h
    method.level = 1
    if method.straight:
        _follow(s, n, secant, first)
        _follow(s, n, secant, second)
    else:
        for i in range(s):
            weighted_sum(weights[i], s + 1, whole, 0, n, first[i + 1])
            weighted_sum(weights[s + i], s + 1, whole, 0, n, second[i + 1])
    status = _stages_and_end(system, run, method, address, run.t, middle_t, 0.5 * h, start, first, middle)
    if status != CONVERGED:
        return status
    weighted_sum(method.end_slope, s + 1, first, 0, n, second[0])
    status = _stages_and_end(system, run, method, address, middle_t, t, 0.5 * h, middle, second, y)
    for j in range(n):
        error[j] = y[j] - error[j]
    return status


@part
def _accept(system, run, method, t, h):
    n, s = run.n, method.s
    if system.hook != 0:
        status = give_to_owner(system, run, t, h)
        if status != 0 and status != HOOK_CHANGED:
            return status
    start, y, secant = run.phi[0], run.y, method.secant
    for j in range(n):
        secant[j] = (y[j] - start[j]) / h
    last = method.second if is_halved(run, method) else method.whole
    if run.fixed:
        find_points(run, method, h)
    keep_polynomial(run, method, h)
    weighted_sum(method.end_slope, s + 1, last, 0, n, run.yp)
    method.trouble = max(method.trouble - 1, 0)
    method.jacobian_known = 1 if method.slowest <= _GOOD_RATE and not run.fixed else 0
    return 0


# --- projection of index 2 --------------------------------------------------------------------------------------------


@part
def project(system, run, method, address, t, h, start, k, y):
    """Correct the end y of a step with slopes k along f_z until the constraints hold."""
    n, s = run.n, method.s
    multiplier, weights = method.multiplier, method.end_value
    point, slope, end_slope = method.stage_y, method.stage_yp, method.end_slope
    for j in range(n):
        if multiplier[j] >= 0:
            value = 0.0
            for i in range(s):
                value += weights[i] * k[i + 1, j]
            y[j] = start[j] + h * value
        point[j] = y[j]
        slope[j] = 0.0
        for i in range(s + 1):
            slope[j] += end_slope[i] * k[i, j]
    method.stage_t, method.slot, method.h = t, s, h
    status = _call_step(method.linearise_there, address)
    if status == 0:
        status = _directions(method, n)
    if status != 0:
        return status
    return _onto_constraints(system, run, method, t, y)


@part
def _directions(method, n):
    """f_z, and the factors of g_y f_z."""
    entries, n_z = method.entries, method.n_z
    rows, columns = method.rows, method.columns
    multiplier, constraint = method.multiplier, method.constraint
    derivative, f_y = method.derivative, method.f_y[method.s]
    direction, matrix = method.direction, method.lu.data
    direction[:] = 0.0
    matrix[:] = 0.0
    for e in range(entries):
        if derivative[rows[e]] >= 0 and multiplier[columns[e]] >= 0:
            direction[derivative[rows[e]], multiplier[columns[e]]] = -f_y[e]
    for e in range(entries):
        if constraint[rows[e]] >= 0 and multiplier[columns[e]] < 0:
            for l in range(n_z):
                matrix[l, constraint[rows[e]]] += f_y[e] * direction[columns[e], l]
    return factor_lu(method.lu)


@part
def _onto_constraints(system, run, method, t, y):
    """Newton's method for lambda with a constant matrix."""
    n, n_z = run.n, method.n_z
    slope, r, change = method.stage_yp, method.residual, method.stage_y
    rhs, constraint = method.hat, method.constraint
    direction, weights = method.direction, run.inverse_weights
    progress = run.newton
    expect(progress, TO_ROUNDOFF, _MOST_PROJECTIONS, 0.0, _NOISE * wrms(y, weights), _ROUNDING)
    start(progress, UNKNOWN)
    while True:
        status = residual(system, t, y, slope, r)
        if status != 0:
            return status
        for i in range(n):
            if constraint[i] >= 0:
                rhs[constraint[i]] = r[i]
        solve_lu(method.lu, rhs)
        for j in range(n):
            change[j] = 0.0
            for l in range(n_z):
                change[j] -= direction[j, l] * rhs[l]
            y[j] += change[j]
        verdict = judge(progress, wrms(change, weights), 0.0)
        if verdict != CONTINUE:
            return DIVERGED if verdict == DIVERGED else CONVERGED
