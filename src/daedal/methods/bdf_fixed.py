"""BDF of constant order and step size, without error control: for order studies and printed tables.

At constant step the fixed-leading-coefficient formula is the classical k-step BDF, so the kernels of DASSL serve here
too. Every Newton iteration uses a new matrix and goes on until round-off stops it.
"""

from __future__ import annotations

import numpy as np

from daedal.kernels.callbacks import RAISED
from daedal.kernels.compilation import announce, part, pointer
from daedal.kernels.differences import leading_coefficient, predict, update_coefficients, update_differences
from daedal.kernels.endings import Ending
from daedal.kernels.linear import LINEAR, prepare_matrix, solve_linear
from daedal.kernels.newton import CONVERGED, DIVERGED, SINGULAR
from daedal.kernels.records import floats, record_at
from daedal.kernels.system import SYSTEM, residual
from daedal.methods.dassl_step import DASSL, apply_hook
from daedal.methods.one_step import ending_of
from daedal.methods.run_record import RUN, STEP, differences
from daedal.methods.step_size import step_to_try

_CALLBACK_RAISED = int(Ending.CALLBACK_RAISED)
_MAX_ITERATIONS = 50
_ROUNDOFF_LEVEL = 1e-14
_STAGNATION_LEVEL = 1e-6


@pointer(STEP)
def fixed_bdf_step(address):
    """One step of order ``run.order``; 0 or the reason to stop."""
    run = record_at(address, RUN)
    method = record_at(run.method, DASSL)
    return _step(record_at(run.system, SYSTEM), record_at(method.linear, LINEAR), run, method)


@part
def _step(system, linear, run, method):
    k, phi = run.order, differences(run)
    h, t = step_to_try(run)
    for i in range(k + 1):
        run.psi[i] = (i + 1) * h
    update_coefficients(method.c, run.psi, h, k)
    run.cj = leading_coefficient(k) / h
    status = _solve_step(system, linear, run, method, t)
    if status == CONVERGED and system.hook != 0:
        status = apply_hook(system, run, method, t)
    if status == RAISED:
        return _CALLBACK_RAISED
    if status != CONVERGED:
        return ending_of(status, 1 if status == SINGULAR else 0)
    update_differences(phi, k, True, floats(run.correction, run.n))
    run.t = t
    run.h_last = h
    run.degree = k
    run.steps += 1
    return 0


@part
def _solve_step(system, linear, run, method, t):
    """Newton's method with a new matrix in every iteration, until the corrections reach round-off."""
    n = run.n
    y, yp, delta, correction = floats(run.y, n), floats(run.yp, n), floats(method.delta, n), floats(run.correction, n)
    weights, max_change = floats(run.inverse_weights, n), floats(method.max_change, n)
    predict(differences(run), method.c.gamma, run.order, y, yp)
    last = differences(run)[0]
    for i in range(n):
        correction[i] = 0.0
        change = y[i] - last[i]
        if abs(change) > max_change[i]:  # a limited variable is not extrapolated further than it may move
            y[i] -= change
            yp[i] -= run.cj * change
            correction[i] = -change
    before = np.inf
    for iteration in range(_MAX_ITERATIONS):
        status = residual(system, t, y, yp, delta)
        if status == 0:
            status = prepare_matrix(system, linear, t, y, yp, delta, run.cj, run.h, weights)
        if status == 0:
            system.newton_iterations += 1
            status = solve_linear(system, linear, t, y, yp, delta, run.cj, run.cj, weights, delta)
        if status != 0:
            return status
        damping = 1.0
        for i in range(n):
            if abs(delta[i]) > max_change[i]:
                damping = min(damping, max_change[i] / abs(delta[i]))
        size, scale = 0.0, 0.0
        for i in range(n):
            scale = max(scale, abs(y[i]))
        for i in range(n):
            change = damping * delta[i]
            y[i] -= change
            correction[i] -= change
            yp[i] -= run.cj * change
            size = max(size, abs(change) / (abs(y[i]) + 1e-3 * scale + 1e-300))
        if not size < np.inf:
            return DIVERGED
        if damping == 1.0:
            if size <= _ROUNDOFF_LEVEL or (iteration > 0 and size <= _STAGNATION_LEVEL and size >= 0.3 * before):
                return CONVERGED
            before = size
    return DIVERGED


announce(_step, "the fixed-step BDF")
