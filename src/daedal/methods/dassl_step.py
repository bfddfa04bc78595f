"""One step of DASSL: predict, correct, test the error, choose order and step size (BCP sections 5.2.2 to 5.2.4)."""

from __future__ import annotations

import numpy as np

from daedal.kernels.callbacks import RAISED, UNEVALUABLE
from daedal.kernels.compilation import inlined, part
from daedal.kernels.differences import (
    COEFFICIENTS,
    ROWS,
    error_constant,
    leading_coefficient,
    predict,
    scale_differences,
    unscale_differences,
    update_coefficients,
    update_differences,
)
from daedal.kernels.linear import prepare_matrix, solve_linear
from daedal.kernels.matrix import JACOBIAN_UNEVALUABLE
from daedal.kernels.newton import (
    CONVERGED,
    DIVERGED,
    KRYLOV_FAILED,
    SINGULAR,
    TOLERANCE,
    UNKNOWN_RATE,
    newton,
)
from daedal.kernels.norms import norm
from daedal.kernels.records import ADDRESS, FLOAT, INTEGER, float_rows, floats, integers
from daedal.kernels.system import HOOK_CHANGED, after_step, residual

# What a step reports, DASSL's IDID (spec: BCP section 5.3 and the DASSL documentation).
STEP_TAKEN = 1
ERROR_TEST_FAILED, NEWTON_FAILED, MATRIX_SINGULAR = -6, -7, -8
ERROR_THEN_NEWTON_FAILED, RESIDUAL_UNEVALUABLE, CALLBACK_RAISED, KRYLOV_NOT_CONVERGED = -9, -10, -11, -14

REFRESH_BOUND = 0.25  # mu of BCP section 5.2.2: a new matrix when |(a^ - a)/(a^ + a)| exceeds it
_REFRESH_BELOW = (1.0 - REFRESH_BOUND) / (1.0 + REFRESH_BOUND)
_REFRESH_ABOVE = 1.0 / _REFRESH_BELOW
_MAX_NEWTON_FAILURES = 10
_MAX_SINGULAR = 3
_MATRIX_NEEDED, _MATRIX_CURRENT, _MATRIX_OLD = -1, 0, 1

VECTORS = (
    "y",
    "yp",
    "delta",
    "correction",
    "scratch",
    "scratch_yp",
    "inverse_weights",
    "error_weights",
    "newton_weights",
    "included",  # 1 for components that take part in the error test, else 0
    "error_power",
    "newton_power",
    "rtol",
    "atol",
)

INTEGRATOR = np.dtype(
    [
        ("n", INTEGER),
        ("phi", ADDRESS),
        ("c", COEFFICIENTS),
        *[(name, ADDRESS) for name in VECTORS],
        ("nonnegative", ADDRESS),
        # options
        ("max_order", INTEGER),
        ("remember_rate", INTEGER),
        ("plain_weights", INTEGER),
        ("filter_error", INTEGER),
        ("some_nonnegative", INTEGER),
        # state
        ("t", FLOAT),
        ("h", FLOAT),
        ("h_last", FLOAT),
        ("h_min", FLOAT),
        ("cj", FLOAT),
        ("cj_matrix", FLOAT),
        ("rate_factor", FLOAT),
        ("error_constant", FLOAT),
        ("size", FLOAT),  # norm of the correction
        ("filter_gain", FLOAT),
        ("error_km1", FLOAT),  # error estimate at order k - 1
        ("k", INTEGER),
        ("k_last", INTEGER),
        ("constant_steps", INTEGER),
        ("initial_phase", INTEGER),
        ("matrix_status", INTEGER),
        # what happened
        ("steps", INTEGER),
        ("newton_failures", INTEGER),
        ("error_test_failures", INTEGER),
        ("attempt_newton_failures", INTEGER),
        ("attempt_error_failures", INTEGER),
        ("first_step_failures", INTEGER),
        ("jacobian_unevaluable", INTEGER),
    ]
)


@inlined
def differences(w):
    """The modified divided differences phi, one row each."""
    return float_rows(w.phi, ROWS, w.n)


@inlined
def start(w, t, h):
    """phi_1 = y_0, phi_2 = h y'_0: as if a step h had come before, along the tangent."""
    w.t = t
    w.h = h
    w.h_last = 0.0
    w.cj = 0.0
    w.cj_matrix = 1.0 / h
    w.rate_factor = UNKNOWN_RATE
    w.k = 1
    w.k_last = 0
    w.constant_steps = 0
    w.initial_phase = 1
    w.matrix_status = _MATRIX_NEEDED
    phi, y, yp = differences(w), floats(w.y, w.n), floats(w.yp, w.n)
    for i in range(w.n):
        for j in range(ROWS):
            phi[j, i] = 0.0
        phi[0, i] = y[i]
        phi[1, i] = h * yp[i]
    w.c.psi[0] = h


@part
def step(system, linear, w):
    """Advance by one accepted step, cutting the step size as often as needed; returns STEP_TAKEN or a failure code."""
    phi = differences(w)
    newton_failures, singular, error_failures = 0, 0, 0
    while True:
        k = w.k
        if w.h != w.h_last or k != w.k_last:
            w.constant_steps = 0
        w.constant_steps = min(w.constant_steps + 1, w.k_last + 2)
        if k + 1 >= w.constant_steps:
            update_coefficients(w.c, w.h, k)
            w.error_constant = error_constant(w.c, k)
            cj_before = w.cj
            w.cj = leading_coefficient(k) / w.h
            ratio = w.cj / w.cj_matrix
            if ratio < _REFRESH_BELOW or ratio > _REFRESH_ABOVE:
                w.matrix_status = _MATRIX_NEEDED
            if w.cj != cj_before:
                w.rate_factor = UNKNOWN_RATE
        scaled_from = w.constant_steps
        scale_differences(phi, w.c.beta, scaled_from, k)
        t_before = w.t
        t = w.t + w.h
        _set_test_weights(w)

        status = _correct(system, linear, w, t)
        if status == CONVERGED and w.some_nonnegative:
            status = _keep_nonnegative(system, w, t)

        error, estimate, k_new = 0.0, 0.0, k
        if status == CONVERGED:
            error, estimate, k_new, status = _error_and_order(system, linear, w, t)
        if status == CONVERGED and error <= 1.0 and system.hook != 0:
            status = apply_hook(system, w, t)
        if status == CONVERGED and error <= 1.0:
            w.t = t
            w.steps += 1
            _choose_order_and_step(system, w, t, estimate, k_new)
            update_differences(phi, k, k < w.max_order, floats(w.correction, w.n))
            return STEP_TAKEN

        # The step failed: restore the differences, then change order and step size (BCP section 5.2.4).
        w.initial_phase = 0
        w.t = t_before
        unscale_differences(phi, w.c.beta, scaled_from, k)
        for i in range(1, k + 1):
            w.c.psi[i - 1] = w.c.psi[i] - w.h
        if w.steps == 0:
            w.first_step_failures += 1
        if status == RAISED:
            return CALLBACK_RAISED
        if status == CONVERGED:
            error_failures += 1
            w.error_test_failures += 1
            if error_failures == 1:
                w.k = k_new
                factor = 0.9 * (2.0 * estimate + 0.0001) ** (-1.0 / (k_new + 1))
                w.h *= max(0.25, min(0.9, factor))
            else:
                w.k = k_new if error_failures == 2 else 1
                w.h *= 0.25
        else:
            newton_failures += 1
            singular += 1 if status == SINGULAR else 0
            w.newton_failures += 1
            w.h *= 0.25
        w.attempt_error_failures = error_failures
        w.attempt_newton_failures = newton_failures
        w.jacobian_unevaluable = status == JACOBIAN_UNEVALUABLE
        reason = _give_up(status, error_failures, newton_failures, singular, abs(w.h) < w.h_min)
        if reason != 0:
            return reason


@inlined
def _give_up(status, error_failures, newton_failures, singular, too_small):
    """The failure code if the step is hopeless, else 0."""
    if status == CONVERGED:
        return ERROR_TEST_FAILED if too_small else 0
    if status == SINGULAR:
        return MATRIX_SINGULAR if singular >= _MAX_SINGULAR or too_small else 0
    if newton_failures < _MAX_NEWTON_FAILURES and not too_small:
        return 0
    if status == UNEVALUABLE or status == JACOBIAN_UNEVALUABLE:
        return RESIDUAL_UNEVALUABLE
    if error_failures >= 3:
        return ERROR_THEN_NEWTON_FAILED
    return KRYLOV_NOT_CONVERGED if status == KRYLOV_FAILED else NEWTON_FAILED


@inlined
def _set_test_weights(w):
    """Weights of the error and Newton tests: powers of h~ = 1/|cj| for higher-index variables, 0 for excluded ones."""
    if w.plain_weights:
        return
    h = 1.0 / abs(w.cj)
    plain, included = floats(w.inverse_weights, w.n), floats(w.included, w.n)
    error_power, newton_power = floats(w.error_power, w.n), floats(w.newton_power, w.n)
    error_weights, newton_weights = floats(w.error_weights, w.n), floats(w.newton_weights, w.n)
    for i in range(w.n):
        error_weights[i] = plain[i] * included[i] * h ** error_power[i]
        newton_weights[i] = plain[i] * h ** newton_power[i]


@inlined
def _error_test_weights(w):
    return floats(w.inverse_weights if w.plain_weights else w.error_weights, w.n)


@inlined
def _newton_test_weights(w):
    return floats(w.inverse_weights if w.plain_weights else w.newton_weights, w.n)


@part
def _correct(system, linear, w, t):
    """Solve for y_{n+1}; with an old matrix a failure leads to a second try with a new one."""
    n = w.n
    y, yp, delta = floats(w.y, n), floats(w.yp, n), floats(w.delta, n)
    weights = _newton_test_weights(w)
    while True:
        predict(differences(w), w.c.gamma, w.k, y, yp)
        status = residual(system, t, y, yp, delta)
        if status != 0:
            return status
        if w.matrix_status == _MATRIX_NEEDED:
            w.cj_matrix = w.cj
            w.rate_factor = UNKNOWN_RATE
            status = prepare_matrix(system, linear, t, y, yp, delta, w.cj, w.h, floats(w.inverse_weights, n))
            if status != 0:
                return status
            w.matrix_status = _MATRIX_CURRENT
        elif not w.remember_rate:
            w.rate_factor = UNKNOWN_RATE
        status, rate_factor = newton(
            system, linear, t, y, yp, delta, floats(w.correction, n), w.cj, w.cj_matrix, w.rate_factor, weights
        )
        w.rate_factor = rate_factor
        if (status == DIVERGED or status == KRYLOV_FAILED) and w.matrix_status == _MATRIX_OLD:
            w.matrix_status = _MATRIX_NEEDED
            continue
        w.matrix_status = _MATRIX_OLD
        return status


@part
def apply_hook(system, w, t):
    """Give the step to the owner of the problem; a change of y (a projection) becomes part of the correction."""
    n = w.n
    y, correction, before = floats(w.y, n), floats(w.correction, n), floats(w.scratch_yp, n)
    for i in range(n):
        before[i] = y[i]
    signal = after_step(system, t, w.h, y)
    if signal != HOOK_CHANGED:
        return signal
    for i in range(n):
        correction[i] += y[i] - before[i]
    return CONVERGED


@part
def _keep_nonnegative(system, w, t):
    """Clip small negative values; a clip that the Newton test would notice is a failure of the step."""
    n = w.n
    y, correction, scratch = floats(w.y, n), floats(w.correction, n), floats(w.scratch, n)
    nonnegative = integers(w.nonnegative, n)
    for i in range(n):
        scratch[i] = min(y[i], 0.0) if nonnegative[i] else 0.0
    if norm(system, t, scratch, _newton_test_weights(w)) > TOLERANCE:
        return DIVERGED
    for i in range(n):
        y[i] -= scratch[i]
        correction[i] -= scratch[i]
    return CONVERGED


@part
def _error_and_order(system, linear, w, t):
    """The error of this step, the estimate at the order to use if it fails, and that order (BCP section 5.2.3)."""
    k, n = w.k, w.n
    sigma, phi = w.c.sigma, differences(w)
    correction, scratch = floats(w.correction, n), floats(w.scratch, n)
    weights = _error_test_weights(w)
    size = norm(system, t, correction, weights)
    w.size = size
    if size < 0.0:
        return 0.0, 0.0, k, RAISED
    tested = size
    if w.filter_error:
        tested, status = _filtered_size(system, linear, w, t)
        if status != 0:
            return 0.0, 0.0, k, status
    # The estimates at other orders are not filtered themselves: they are enlarged as much as the one at this order.
    w.filter_gain = max(1.0, tested / size) if size > 0.0 else 1.0
    estimate = sigma[k] * tested
    term_k = (k + 1) * sigma[k] * size
    k_new = k
    if k > 1:
        for i in range(n):
            scratch[i] = phi[k, i] + correction[i]
        error_km1 = sigma[k - 1] * norm(system, t, scratch, weights)
        w.error_km1 = error_km1
        term_km1 = k * error_km1
        lower = k == 2 and term_km1 <= 0.5 * term_k
        if k > 2:
            for i in range(n):
                scratch[i] += phi[k - 1, i]
            term_km2 = (k - 1) * sigma[k - 2] * norm(system, t, scratch, weights)
            lower = max(term_km1, term_km2) <= term_k
        if lower:
            k_new = k - 1
            estimate = error_km1 * w.filter_gain
    error = w.error_constant * size
    if w.filter_error:
        # M does not fall when h is cut at k > 1, and neither does a multiplier's estimate; sigma_{k+1}, which equals
        # M at constant steps, does.
        error = max(error, sigma[k] * tested)
    return error, estimate, k_new, CONVERGED


@part
def _filtered_size(system, linear, w, t):
    """|| cj G^{-1} (dF/dy') E ||, the estimate that index-2 variables do not spoil (BCP section 5.4.2)."""
    n = w.n
    y, yp, shifted = floats(w.y, n), floats(w.yp, n), floats(w.scratch_yp, n)
    correction, change, base = floats(w.correction, n), floats(w.delta, n), floats(w.scratch, n)
    for i in range(n):
        shifted[i] = yp[i] + w.cj * correction[i]
    status = residual(system, t, y, shifted, change)
    if status == 0:
        status = residual(system, t, y, yp, base)
    if status != 0:
        return 0.0, status
    for i in range(n):
        change[i] -= base[i]
    weights = floats(w.inverse_weights, n)
    status = solve_linear(system, linear, t, y, yp, base, w.cj, w.cj_matrix, weights, change)
    return norm(system, t, change, weights), status


@part
def _choose_order_and_step(system, w, t, estimate, k_new):
    """Order and step size of the next step, BCP sections 5.2.3 and 5.2.4; called before the differences are updated."""
    k, h, n = w.k, w.h, w.n
    raised = k - w.k_last == 1
    w.k_last = k
    w.h_last = h
    lowered = k_new == k - 1
    if lowered or k == w.max_order:
        w.initial_phase = 0
    if w.initial_phase:
        w.k = k + 1
        w.h = 2.0 * h
        return
    if lowered:
        w.k = k - 1
    elif k < w.max_order and k + 1 < w.constant_steps and not raised:
        phi = differences(w)
        correction, scratch = floats(w.correction, n), floats(w.scratch, n)
        weights = _error_test_weights(w)
        for i in range(n):
            scratch[i] = correction[i] - phi[k + 1, i]
        error_kp1 = norm(system, t, scratch, weights) / (k + 2)
        term_kp1 = (k + 2) * error_kp1
        term_k = (k + 1) * w.c.sigma[k] * w.size
        if k == 1:
            if term_kp1 < 0.5 * term_k:
                w.k = k + 1
                estimate = error_kp1 * w.filter_gain
        else:
            if k * w.error_km1 <= min(term_k, term_kp1):
                w.k = k - 1
                estimate = w.error_km1 * w.filter_gain
            elif term_kp1 < term_k:
                w.k = k + 1
                estimate = error_kp1 * w.filter_gain
    # r = aimed ** (-1 / (k+1)): double the step if r >= 2, keep it if 1 < r < 2, shorten it otherwise.
    aimed = 2.0 * estimate + 0.0001
    if aimed <= 0.5 ** (w.k + 1):
        w.h = 2.0 * h
    elif aimed >= 1.0:
        w.h = h * max(0.5, min(0.9, aimed ** (-1.0 / (w.k + 1))))
