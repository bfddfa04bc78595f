"""One step of DASSL: predict, correct, test the error, choose order and step size (BCP sections 5.2.2 to 5.2.4)."""

from __future__ import annotations

from math import inf, isfinite

import numpy as np

from daedal.kernels.callbacks import RAISED, UNEVALUABLE
from daedal.kernels.compilation import entry, inlined, part
from daedal.kernels.differences import (
    COEFFICIENTS,
    error_constant,
    leading_coefficient,
    predict,
    scale_differences,
    unscale_differences,
    update_coefficients,
    update_differences,
    variable_leading_coefficient,
)
from daedal.kernels.endings import Ending
from daedal.kernels.linear import LINEAR, prepare_matrix, solve_linear
from daedal.kernels.matrix import JACOBIAN_UNEVALUABLE
from daedal.kernels.newton import (
    CONVERGED,
    DIVERGED,
    KRYLOV_FAILED,
    SINGULAR,
    TOLERANCE,
    UNKNOWN_RATE,
    apply_correction,
    expect_mean_rate,
    newton,
)
from daedal.kernels.norms import norm
from daedal.kernels.records import FLOAT, INTEGER, Struct, at, record_at
from daedal.kernels.signatures import f64, i64
from daedal.kernels.system import HOOK_CHANGED, after_step, residual
from daedal.kernels.vectors import power
from daedal.methods.bdf.dassl_estimate import FILTERED, MATRIX_NEEDED, error_and_order, estimate_size, set_test_weights
from daedal.methods.run_record import RUN, STEP

_TOO_ACCURATE, _ERROR_TEST_FAILED = int(Ending.TOO_ACCURATE), int(Ending.ERROR_TEST_FAILED)
_NEWTON_FAILED, _MATRIX_SINGULAR = int(Ending.NEWTON_FAILED), int(Ending.MATRIX_SINGULAR)
_ERROR_THEN_NEWTON_FAILED, _UNEVALUABLE = int(Ending.ERROR_THEN_NEWTON_FAILED), int(Ending.UNEVALUABLE)
_CALLBACK_RAISED, _KRYLOV_FAILED = int(Ending.CALLBACK_RAISED), int(Ending.KRYLOV_FAILED)
_TROUBLED = int(Ending.TROUBLED)

MOST_LOOKS = 2  # how often a step may consult the owner of the run: when failures accumulate, and before the run fails
_USUAL_FAILURES = 5
_ROUNDING = 0.1  # size of corrections, in units of the tolerance, that may be round-off

REFRESH_BOUND = 0.25  # mu of BCP section 5.2.2: a new matrix when |(a^ - a)/(a^ + a)| exceeds it
_REFRESH_BELOW = (1.0 - REFRESH_BOUND) / (1.0 + REFRESH_BOUND)
_REFRESH_ABOVE = 1.0 / _REFRESH_BELOW
_MAX_NEWTON_FAILURES = 10
_MAX_SINGULAR = 3
_MATRIX_CURRENT, _MATRIX_OLD = 0, 1
_ROUNDOFF = np.finfo(float).eps
_TIGHT = 1e-13  # rtol below which round-off may exceed the tolerance

DASSL = Struct(
    "DASSL",
    [
        ("linear", at(LINEAR)),
        ("c", COEFFICIENTS),
        ("n", INTEGER),
        *[(name, f64["n"]) for name in ("delta", "scratch_yp", "error_weights", "newton_weights")],
        *[(name, f64["n"]) for name in ("error_power", "newton_power")],  # powers of h~ in the weights
        ("nonnegative", i64["n"]),  # whether a component is nonnegative
        ("max_change", f64["n"]),  # largest change in one iteration, with constant steps
        ("base", f64["n"]),  # the residual at the end of an attempt
        # options
        ("max_order", INTEGER),
        ("remember_rate", INTEGER),
        ("plain_weights", INTEGER),
        ("some_nonnegative", INTEGER),
        ("may_keep_slope", INTEGER),  # whether dF/dy' has storage
        ("leading", INTEGER),  # number of unknowns solved first; all by default
        ("direct", INTEGER),  # whether the others, sensitivities, use a separate matrix
        # state
        ("estimate", INTEGER),  # PLAIN, WATCHED, COUPLED or FILTERED
        ("reason", INTEGER),  # pending reason for failure, or 0
        ("resumed", INTEGER),  # whether the owner of the run was consulted during this step
        ("looks", INTEGER),  # how many more times the owner of the run may be consulted
        ("tight", INTEGER),  # whether rtol is so small that round-off may exceed the tolerance
        ("cj_matrix", FLOAT),
        ("error_constant", FLOAT),
        ("size", FLOAT),  # norm of the estimate before multiplication by the error constant of the order
        ("error_km1", FLOAT),  # error estimate at order k - 1
        ("k_last", INTEGER),
        ("constant_steps", INTEGER),
        ("initial_phase", INTEGER),
        ("matrix_status", INTEGER),
        ("new_matrix", INTEGER),  # whether this attempt uses a new matrix
        ("watched", INTEGER),  # number of new matrices so far
        ("has_base", INTEGER),  # whether `base` is the residual at the end of this attempt
    ],
)


@entry(STEP)
def dassl_begin(address):
    """Start with order 1, as after a step along the tangent, or with the order of the loaded history."""
    run = record_at(address, RUN)
    method = record_at(run.method, DASSL)
    run.order = run.degree
    if run.degree > 1:
        method.k_last = run.degree
        run.h_last = run.h
    method.cj_matrix = 1.0 / run.h
    expect_mean_rate(run.newton)
    method.initial_phase = 1
    method.matrix_status = MATRIX_NEEDED
    rtol = run.rtol
    for i in range(run.n):
        if rtol[i] < _TIGHT:
            method.tight = 1
    return 0


@entry(STEP)
def dassl_step(address):
    """Take one accepted step; return 0 or the reason to stop."""
    run = record_at(address, RUN)
    method = record_at(run.method, DASSL)
    return _limited_step(run.system, method.linear, run, method)


@part
def _limited_step(system, linear, run, method):
    """Take a step within the maximum step size that does not pass the stop time."""
    if method.tight:
        if 100.0 * _ROUNDOFF * norm(system, run.t, run.phi[0], run.inverse_weights) > 1.0:
            return _TOO_ACCURATE
    if abs(run.h) > run.h_max:
        run.h = run.sign * run.h_max
    rest = run.t_stop - run.t
    if run.sign * (run.h - rest) > -1e-8 * abs(rest):  # avoid a tiny last step
        run.h = rest
    elif method.estimate == FILTERED and abs(rest) < 2.0 * abs(run.h):
        run.h = 0.5 * rest  # y' of index-2 variables has errors u/h: avoid a short last step too
    reason = _step(system, linear, run, method)
    if system.norm_failed:
        return _CALLBACK_RAISED
    if isfinite(run.t_stop) and abs(run.t - run.t_stop) <= 10.0 * _ROUNDOFF * (abs(run.t) + abs(run.h_last)):
        run.t = run.t_stop
    return reason


@part
def _step(system, linear, run, method):
    """Take one accepted step, reducing the step size as needed; returns 0 or a failure code."""
    phi = run.phi
    newton_failures, singular, error_failures = 0, 0, 0
    if method.resumed:
        newton_failures, error_failures = run.attempt_newton_failures, run.attempt_error_failures
        method.resumed = 0
    while True:
        k = run.order
        if run.h != run.h_last or k != method.k_last:
            method.constant_steps = 0
        method.constant_steps = min(method.constant_steps + 1, method.k_last + 2)
        if k + 1 >= method.constant_steps:
            update_coefficients(method.c, run.psi, run.h, k)
            cj_before = run.cj
            if method.estimate == FILTERED:
                # With a fixed leading coefficient y' keeps an error of order h_{n}^k, no matter how short step n+1 is.
                method.error_constant = method.c.alpha[k]
                run.cj = variable_leading_coefficient(method.c, k) / run.h
            else:
                method.error_constant = error_constant(method.c, k)
                run.cj = leading_coefficient(k) / run.h
            ratio = run.cj / method.cj_matrix
            if ratio < _REFRESH_BELOW or ratio > _REFRESH_ABOVE:
                method.matrix_status = MATRIX_NEEDED
            if run.cj != cj_before:
                run.newton.factor = UNKNOWN_RATE
        scaled_from = method.constant_steps
        scale_differences(phi, method.c.beta, scaled_from, k)
        t_before = run.t
        t = run.t + run.h
        set_test_weights(run, method)

        status = _correct(system, linear, run, method, t)
        if status == CONVERGED and method.some_nonnegative:
            status = _keep_nonnegative(system, run, method, t)

        error, estimate, k_new = 0.0, 0.0, k
        if status == CONVERGED:
            error, estimate, k_new, status = error_and_order(system, linear, run, method, t)
        if status == CONVERGED and error <= 1.0 and system.hook != 0:
            status = apply_hook(system, run, method, t)
        if status == CONVERGED and error <= 1.0:
            run.t = t
            run.steps += 1
            status = _choose_order_and_step(system, linear, run, method, t, estimate, k_new)
            if status != CONVERGED:
                return _CALLBACK_RAISED if status == RAISED else _UNEVALUABLE
            update_differences(phi, k, k < method.max_order, run.correction)
            run.degree = k
            return 0

        # The step failed: restore the differences, then change order and step size (BCP section 5.2.4).
        method.initial_phase = 0
        run.t = t_before
        unscale_differences(phi, method.c.beta, scaled_from, k)
        for i in range(1, k + 1):
            run.psi[i - 1] = run.psi[i] - run.h
        if run.steps == 0:
            run.first_step_failures += 1
        if status == RAISED:
            return _CALLBACK_RAISED
        if status == CONVERGED:
            error_failures += 1
            run.error_test_failures += 1
            if error_failures == 1:
                run.order = k_new
                factor = 0.9 * (2.0 * estimate + 0.0001) ** (-1.0 / (k_new + 1))
                run.h *= max(0.25, min(0.9, factor))
            else:
                run.order = k_new if error_failures == 2 else 1
                run.h *= 0.25
        else:
            newton_failures += 1
            singular += 1 if status == SINGULAR else 0
            run.newton_failures += 1
            run.h *= 0.25
        run.attempt_error_failures = error_failures
        run.attempt_newton_failures = newton_failures
        run.jacobian_unevaluable = status == JACOBIAN_UNEVALUABLE
        reason = _give_up(status, error_failures, newton_failures, singular, abs(run.h) < run.h_min)
        method.reason = reason
        if method.looks > 0 and (reason != 0 or _in_trouble(run, method, error_failures, newton_failures)):
            method.looks -= 1
            method.resumed = 1
            return _TROUBLED
        if reason != 0:
            return reason


@inlined
def _in_trouble(run, method, error_failures, newton_failures):
    """Whether so many attempts failed that the cause may not be the step size; False after the first consultation."""
    if method.looks < MOST_LOOKS:
        return False
    failures = run.error_test_failures + run.newton_failures
    return error_failures >= 3 or newton_failures >= 3 or failures > _USUAL_FAILURES + run.steps // 2


@inlined
def _give_up(status, error_failures, newton_failures, singular, too_small):
    """The failure code if the step is hopeless, else 0."""
    if status == CONVERGED:
        return _ERROR_TEST_FAILED if too_small else 0
    if status == SINGULAR:
        return _MATRIX_SINGULAR if singular >= _MAX_SINGULAR or too_small else 0
    if newton_failures < _MAX_NEWTON_FAILURES and not too_small:
        return 0
    if status == UNEVALUABLE or status == JACOBIAN_UNEVALUABLE:
        return _UNEVALUABLE
    if error_failures >= 3:
        return _ERROR_THEN_NEWTON_FAILED
    return _KRYLOV_FAILED if status == KRYLOV_FAILED else _NEWTON_FAILED


@inlined
def _newton_test_weights(run, method):
    return run.inverse_weights if method.plain_weights else method.newton_weights


@part
def _correct(system, linear, run, method, t):
    """Solve for y_{n+1}; after a failure with an old matrix, retry with a new one."""
    n = run.n
    y, yp, delta = run.y, run.yp, method.delta
    weights = _newton_test_weights(run, method)
    method.new_matrix = 0
    while True:
        predict(run.phi, method.c.gamma, run.order, y, yp)
        status = residual(system, t, y, yp, delta)
        if status != 0:
            return status
        if method.matrix_status == MATRIX_NEEDED:
            method.cj_matrix = run.cj
            run.newton.factor = UNKNOWN_RATE
            status = prepare_matrix(system, linear, t, y, yp, delta, run.cj, run.h, run.inverse_weights)
            if status != 0:
                return status
            method.matrix_status = _MATRIX_CURRENT
            method.new_matrix = 1
        elif not method.remember_rate:
            run.newton.factor = UNKNOWN_RATE
        if method.leading == n:
            status = _iterate(system, linear, run, method, t, weights, 0, n)
        else:
            status = _staggered(system, linear, run, method, t, weights)
        if (status == DIVERGED or status == KRYLOV_FAILED) and method.matrix_status == _MATRIX_OLD:
            method.matrix_status = MATRIX_NEEDED
            continue
        if status == DIVERGED and method.estimate == FILTERED and norm(system, t, delta, weights) <= _ROUNDING:
            status = CONVERGED  # corrections of index-2 variables stagnate at u/h
        method.matrix_status = _MATRIX_OLD
        return status


@part
def _iterate(system, linear, run, method, t, weights, first, last):
    y, yp, delta, correction = run.y, run.yp, method.delta, run.correction
    cj, cj_matrix, progress = run.cj, method.cj_matrix, run.newton
    return newton(system, linear, progress, t, y, yp, delta, correction, cj, cj_matrix, weights, first, last)


@part
def _staggered(system, linear, run, method, t, weights):
    """Solve for the solution, then for its sensitivities.

    The staggered direct method of DASSAC forms and factors a matrix for the sensitivities, which satisfy linear
    equations once the solution is known, and needs one solve (M. Caracotsios, W. E. Stewart, Comput. Chem. Eng. 9,
    1985).
    """
    n, cj, leading = run.n, run.cj, method.leading
    y, yp, delta, correction = run.y, run.yp, method.delta, run.correction
    status = _iterate(system, linear, run, method, t, weights, 0, leading)
    if status == CONVERGED:
        status = residual(system, t, y, yp, delta)
    if status != CONVERGED:
        return status
    if not method.direct:
        factor = run.newton.factor
        run.newton.factor = UNKNOWN_RATE
        status = _iterate(system, linear, run, method, t, weights, leading, n)
        run.newton.factor = factor
        return status
    method.cj_matrix = cj
    status = prepare_matrix(system, linear, t, y, yp, delta, cj, run.h, run.inverse_weights)
    if status == 0:
        system.newton_iterations += 1
        status = solve_linear(system, linear, t, y, yp, delta, cj, cj, weights, delta)
    if status == 0:
        for i in range(leading, n):
            correction[i] = 0.0
        apply_correction(y, yp, delta, correction, cj, leading, n)
    return status


@part
def apply_hook(system, run, method, t):
    """Pass the step to the hook of the problem; a change of y (a projection) becomes part of the correction."""
    n = run.n
    y, correction, before = run.y, run.correction, method.scratch_yp
    for i in range(n):
        before[i] = y[i]
    signal = after_step(system, t, run.h, y)
    if signal != HOOK_CHANGED:
        return signal
    for i in range(n):
        correction[i] += y[i] - before[i]
    return CONVERGED


@part
def _keep_nonnegative(system, run, method, t):
    """Clip small negative values; a clip larger than the Newton tolerance fails the step."""
    n = run.n
    y, correction, scratch, nonnegative = run.y, run.correction, run.scratch, method.nonnegative
    for i in range(n):
        scratch[i] = min(y[i], 0.0) if nonnegative[i] else 0.0
    if norm(system, t, scratch, _newton_test_weights(run, method)) > TOLERANCE:
        return DIVERGED
    for i in range(n):
        y[i] -= scratch[i]
        correction[i] -= scratch[i]
    return CONVERGED


@part
def _choose_order_and_step(system, linear, run, method, t, estimate, k_new):
    """Choose order and step size of the next step (BCP 5.2.3, 5.2.4), before the differences are updated."""
    k, h, n = run.order, run.h, run.n
    raised = k - method.k_last == 1
    method.k_last = k
    run.h_last = h
    lowered = k_new == k - 1
    if lowered or k == method.max_order:
        method.initial_phase = 0
    if method.initial_phase:
        run.order = k + 1
        run.h = 2.0 * h
        return CONVERGED
    if lowered:
        run.order = k - 1
    elif k < method.max_order and k + 1 < method.constant_steps and not raised:
        phi = run.phi
        correction, scratch = run.correction, run.scratch
        for i in range(n):
            scratch[i] = correction[i] - phi[k + 1, i]
        term_kp1, status = estimate_size(system, linear, run, method, t, scratch)
        if status == RAISED:
            return status
        if status != 0:
            term_kp1 = inf
        error_kp1 = term_kp1 / (k + 2)
        term_k = (k + 1) * method.c.sigma[k] * method.size
        if k == 1:
            if term_kp1 < 0.5 * term_k:
                run.order = k + 1
                estimate = error_kp1
        else:
            if k * method.error_km1 <= min(term_k, term_kp1):
                run.order = k - 1
                estimate = method.error_km1
            elif term_kp1 < term_k:
                run.order = k + 1
                estimate = error_kp1
    # r = aimed ** (-1 / (k+1)): double the step if r >= 2, keep it if 1 < r < 2, shorten it otherwise.
    aimed = 2.0 * estimate + 0.0001
    if aimed <= power(0.5, run.order + 1):
        run.h = 2.0 * h
    elif aimed >= 1.0:
        run.h = h * max(0.5, min(0.9, aimed ** (-1.0 / (run.order + 1))))
    return CONVERGED
