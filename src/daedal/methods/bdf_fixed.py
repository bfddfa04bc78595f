"""BDF of constant order and step size, without error control: for order studies and printed tables.

At constant step the fixed-leading-coefficient formula is the classical k-step BDF, so the kernels of DASSL serve here
too. Every Newton iteration uses a new matrix and goes on until round-off stops it.
"""

from __future__ import annotations

import numpy as np

from daedal.events.roots import begin
from daedal.kernels.callbacks import RAISED, UNEVALUABLE
from daedal.kernels.compilation import announce, kernel, part
from daedal.kernels.differences import ROWS, leading_coefficient, predict, update_coefficients, update_differences
from daedal.kernels.linear import prepare_matrix, solve_linear
from daedal.kernels.matrix import JACOBIAN_UNEVALUABLE
from daedal.kernels.newton import CONVERGED, DIVERGED, SINGULAR
from daedal.kernels.norms import set_weights
from daedal.kernels.records import floats
from daedal.kernels.system import residual
from daedal.methods.dassl_run import (
    BUFFER_FULL,
    FINISHED,
    HOOK_STOPPED,
    ZERO_WEIGHT,
    empty_buffers,
    process_step,
    store_step,
)
from daedal.methods.dassl_step import (
    CALLBACK_RAISED,
    MATRIX_SINGULAR,
    NEWTON_FAILED,
    RESIDUAL_UNEVALUABLE,
    apply_hook,
    differences,
)

_MAX_ITERATIONS = 50
_ROUNDOFF_LEVEL = 1e-14
_STAGNATION_LEVEL = 1e-6


@kernel
def advance_fixed(systems, linears, integrators, runs, root_functions, max_change, last_step, t0):
    """Take constant steps until `last_step`, a failure, a terminal event, or a full buffer."""
    system, linear, w, r, roots = systems[0], linears[0], integrators[0], runs[0], root_functions[0]
    weights, rtol, atol = floats(w.inverse_weights, w.n), floats(w.rtol, w.n), floats(w.atol, w.n)
    phi, k = differences(w), w.k
    empty_buffers(r)
    if not r.started:
        r.started = 1
        r.t_low = w.t
        for i in range(k + 1):
            w.c.psi[i] = (i + 1) * w.h
        if r.has_roots and begin(system, roots, w.t, w.t, w.c.psi, phi, k, w.h) != 0:
            return CALLBACK_RAISED
    taken = 0
    while True:
        if r.pending:
            reason = process_step(system, w, r, roots)
            if reason != 0:
                return reason
            if system.hook_signal != 0 and w.steps < last_step:
                return HOOK_STOPPED
        if w.steps >= last_step:
            return FINISHED
        if taken >= r.slice or (r.dense and r.rows_stored + ROWS > r.rows):
            return BUFFER_FULL
        r.zero_weight = set_weights(phi[0], rtol, atol, weights)
        if r.zero_weight >= 0:
            return ZERO_WEIGHT
        for i in range(k + 1):
            w.c.psi[i] = (i + 1) * w.h
        update_coefficients(w.c, w.h, k)
        w.cj = leading_coefficient(k) / w.h
        t = t0 + (w.steps + 1) * w.h
        status = _solve_step(system, linear, w, t, max_change)
        if status == CONVERGED and system.hook != 0:
            status = apply_hook(system, w, t)
        if status == RAISED:
            return CALLBACK_RAISED
        if status == UNEVALUABLE or status == JACOBIAN_UNEVALUABLE:
            return RESIDUAL_UNEVALUABLE
        if status == SINGULAR:
            return MATRIX_SINGULAR
        if status != CONVERGED:
            return NEWTON_FAILED
        update_differences(phi, k, True, floats(w.correction, w.n))
        w.t = t
        w.h_last = w.h
        w.k_last = k
        w.steps += 1
        taken += 1
        r.pending = 1
        r.searching = r.has_roots
        r.found = 0
        r.t_limit = t
        store_step(w, r)


@part
def _solve_step(system, linear, w, t, max_change):
    """Newton's method with a new matrix in every iteration, until the corrections reach round-off."""
    n = w.n
    y, yp, delta, correction = floats(w.y, n), floats(w.yp, n), floats(w.delta, n), floats(w.correction, n)
    weights = floats(w.inverse_weights, n)
    predict(differences(w), w.c.gamma, w.k, y, yp)
    last = differences(w)[0]
    for i in range(n):
        correction[i] = 0.0
        change = y[i] - last[i]
        if abs(change) > max_change[i]:  # a limited variable is not extrapolated further than it may move
            y[i] -= change
            yp[i] -= w.cj * change
            correction[i] = -change
    before = np.inf
    for m in range(_MAX_ITERATIONS):
        status = residual(system, t, y, yp, delta)
        if status == 0:
            status = prepare_matrix(system, linear, t, y, yp, delta, w.cj, w.h, weights)
        if status == 0:
            system.newton_iterations += 1
            status = solve_linear(system, linear, t, y, yp, delta, w.cj, w.cj, weights, delta)
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
            yp[i] -= w.cj * change
            size = max(size, abs(change) / (abs(y[i]) + 1e-3 * scale + 1e-300))
        if not size < np.inf:
            return DIVERGED
        if damping == 1.0:
            if size <= _ROUNDOFF_LEVEL or (m > 0 and size <= _STAGNATION_LEVEL and size >= 0.3 * before):
                return CONVERGED
            before = size
    return DIVERGED


announce(advance_fixed, "the fixed-step BDF")
