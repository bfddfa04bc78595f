"""BDF of constant order and step size, without error control: for order studies and printed tables.

At constant step size the fixed-leading-coefficient formula is the classical k-step BDF, so DASSL's kernels are used.
Every Newton iteration uses a new matrix; iteration continues until round-off dominates.
"""

from __future__ import annotations

from daedal.kernels.callbacks import RAISED
from daedal.kernels.compilation import entry, part
from daedal.kernels.convergence import CONVERGED
from daedal.kernels.differences import leading_coefficient, predict, update_coefficients, update_differences
from daedal.kernels.endings import Ending
from daedal.kernels.newton import SINGULAR, newton_to_roundoff
from daedal.kernels.records import record_at
from daedal.methods.bdf.dassl_step import DASSL, apply_hook
from daedal.methods.one_step import ending_of
from daedal.methods.run_record import RUN, STEP
from daedal.methods.step_size import step_to_try

_CALLBACK_RAISED = int(Ending.CALLBACK_RAISED)


@entry(STEP)
def fixed_bdf_step(address):
    """Take one step of order ``run.order``; return 0 or the reason to stop."""
    run = record_at(address, RUN)
    method = record_at(run.method, DASSL)
    return _step(run.system, method.linear, run, method)


@part
def _step(system, linear, run, method):
    k, phi = run.order, run.phi
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
    update_differences(phi, k, True, run.correction)
    run.t = t
    run.h_last = h
    run.degree = k
    run.steps += 1
    return 0


@part
def _solve_step(system, linear, run, method, t):
    n = run.n
    y, yp, delta, correction = run.y, run.yp, method.delta, run.correction
    weights, max_change = run.inverse_weights, method.max_change
    predict(run.phi, method.c.gamma, run.order, y, yp)
    last = run.phi[0]
    for i in range(n):
        correction[i] = 0.0
        change = y[i] - last[i]
        if abs(change) > max_change[i]:  # extrapolations of limited variables are limited too
            y[i] -= change
            yp[i] -= run.cj * change
            correction[i] = -change
    progress, h = run.newton, run.h
    return newton_to_roundoff(system, linear, progress, t, y, yp, run.cj, h, weights, delta, correction, max_change)
