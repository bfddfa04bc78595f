"""The error estimate of DASSL, used by the error test and the choice of the order (BCP sections 5.2.3 and 5.4.2).

An error v of the formula for y' causes the error cj G^{-1} (dF/dy') v in y: v itself for differential equations
y' = f, zero for algebraic ones, and another vector if derivatives are coupled or variables have index 2.
"""

from __future__ import annotations

from daedal.kernels.callbacks import RAISED, UNEVALUABLE
from daedal.kernels.compilation import inlined, part
from daedal.kernels.convergence import CONVERGED
from daedal.kernels.linear import solve_linear
from daedal.kernels.matrix import slope_times
from daedal.kernels.norms import norm
from daedal.kernels.system import residual

PLAIN, WATCHED, COUPLED, FILTERED = 0, 1, 2, 3
"""Modes of the error test. In order: E = y - y(0); E, unless the filtered estimate, computed with every new matrix, is
larger; the larger one by component; the filtered estimate alone (index 2)."""
MATRIX_NEEDED = -1
_OFTEN = 4  # the first 4 new matrices are checked, then every fourth
_MATTERS = 0.1  # filtered estimates below this fraction of the tolerance are not compared
_LARGER = 2.0  # factor by which the filtered estimate must be larger to show that E misses errors


@inlined
def set_test_weights(run, method):
    """Set weights of error and Newton tests: powers of h~ = 1/|cj| for higher-index variables, 0 for excluded ones."""
    if method.plain_weights:
        return
    h = 1.0 / abs(run.cj)
    plain, included = run.inverse_weights, run.included
    error_power, newton_power = method.error_power, method.newton_power
    error_weights, newton_weights = method.error_weights, method.newton_weights
    for i in range(run.n):
        error_weights[i] = plain[i] * included[i] * h ** error_power[i]
        newton_weights[i] = plain[i] * h ** newton_power[i]


@inlined
def error_test_weights(run, method):
    return run.inverse_weights if method.plain_weights else method.error_weights


@part
def error_and_order(system, linear, run, method, t):
    """The error of this step, the estimate at the order to use after a failure, and that order (BCP section 5.2.3)."""
    k, n = run.order, run.n
    sigma, phi = method.c.sigma, run.phi
    correction, scratch = run.correction, run.scratch
    method.has_base = 0
    if method.estimate == WATCHED and method.new_matrix:
        status = _watch(system, linear, run, method, t)
        if status != 0:
            return 0.0, 0.0, k, status
    size, status = estimate_size(system, linear, run, method, t, correction)
    method.size = size
    if status != 0:
        return 0.0, 0.0, k, status
    estimate = sigma[k] * size
    term_k = (k + 1) * estimate
    k_new = k
    error = method.error_constant * size
    if method.estimate == FILTERED:
        error = max(error, estimate)  # alpha_{k+1} decreases if the step is shortened; the higher derivatives do not
    if k > 1:
        for i in range(n):
            scratch[i] = phi[k, i] + correction[i]
        size_km1, status = estimate_size(system, linear, run, method, t, scratch)
        if status != 0:
            return 0.0, 0.0, k, status
        error_km1 = sigma[k - 1] * size_km1
        method.error_km1 = error_km1
        term_km1 = k * error_km1
        lower = k == 2 and term_km1 <= 0.5 * term_k
        if k > 2:
            for i in range(n):
                scratch[i] += phi[k - 1, i]
            size_km2, status = estimate_size(system, linear, run, method, t, scratch)
            if status != 0:
                return 0.0, 0.0, k, status
            lower = max(term_km1, (k - 1) * sigma[k - 2] * size_km2) <= term_k
        if lower:
            k_new = k - 1
            estimate = error_km1
    return error, estimate, k_new, CONVERGED


@part
def _watch(system, linear, run, method, t):
    """Include the filtered estimate in the test from now on if it shows errors that E misses.

    In y_0' - y_1' = f the error of y_0 includes those of both derivatives, which y_0 - y_0(0) does not reveal.
    """
    method.watched += 1
    if method.watched > _OFTEN and method.watched % _OFTEN != 0:
        return 0
    correction, weights = run.correction, error_test_weights(run, method)
    plain = norm(system, t, correction, weights)
    status = _filter(system, linear, run, method, t, correction)
    if status != 0:
        return 0 if status == UNEVALUABLE else status
    filtered = norm(system, t, method.delta, weights)
    if plain < 0.0 or filtered < 0.0:
        return RAISED
    if filtered > _LARGER * plain and method.error_constant * filtered > _MATTERS:
        method.estimate = COUPLED
        linear.matrix.keeps_slope = method.may_keep_slope
        method.matrix_status = MATRIX_NEEDED
    return 0


@part
def estimate_size(system, linear, run, method, t, v):
    """The norm of a difference of y in the error test, and the status."""
    weights = error_test_weights(run, method)
    if method.estimate <= WATCHED:
        size = norm(system, t, v, weights)
        return size, 0 if size >= 0.0 else RAISED
    status = _filter(system, linear, run, method, t, v)
    filtered = method.delta
    if status == UNEVALUABLE and method.estimate == COUPLED:
        filtered[:] = 0.0
    elif status != 0:
        return 0.0, status
    if method.estimate == COUPLED:
        for i in range(run.n):
            filtered[i] = max(abs(filtered[i]), abs(v[i]))
    size = norm(system, t, filtered, weights)
    return size, 0 if size >= 0.0 else RAISED


@part
def _filter(system, linear, run, method, t, v):
    """delta := cj G^{-1} (dF/dy') v, the error in y caused by an error v of the formula (BCP section 5.4.2)."""
    n = run.n
    y, yp, shifted, weights = run.y, run.yp, method.scratch_yp, run.inverse_weights
    change, base = method.delta, method.base
    if linear.matrix.has_slope and not linear.use_krylov:
        slope_times(linear.matrix, v, change)
        for i in range(n):
            change[i] *= run.cj
        return solve_linear(system, linear, t, y, yp, base, run.cj, method.cj_matrix, weights, change)
    if not method.has_base:
        status = residual(system, t, y, yp, base)
        if status != 0:
            return status
        method.has_base = 1
    for i in range(n):
        shifted[i] = yp[i] + run.cj * v[i]
    status = residual(system, t, y, shifted, change)
    if status != 0:
        return status
    for i in range(n):
        change[i] -= base[i]
    return solve_linear(system, linear, t, y, yp, base, run.cj, method.cj_matrix, weights, change)
