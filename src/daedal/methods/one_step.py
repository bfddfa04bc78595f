"""Steps of one-step methods in compiled code: attempts, errors, step size control, the polynomial of a step.

A one-step method is one function, called through a pointer: `attempt(run, t, h)` computes y at t, the end of the step,
from phi_0, the values at its start, stores it in ``run.y`` and its slope in ``run.slope``, and sets
``run.error_of_step``, the error in units of the tolerance (0 with constant steps). It returns 0 or an error status.

An `accept(run, t, h)` is optional. It is called after a step whose error is small enough, passes it to the hook
(:func:`give_to_owner`), and sets y' and the polynomial of the step. The default is cubic Hermite interpolation.
"""

from __future__ import annotations

import numpy as np

from daedal.kernels.arithmetic import ONE
from daedal.kernels.callbacks import RAISED, UNEVALUABLE
from daedal.kernels.compilation import caller, entry, part
from daedal.kernels.endings import Ending
from daedal.kernels.matrix import JACOBIAN_UNEVALUABLE, SINGULAR
from daedal.kernels.norms import norm
from daedal.kernels.records import record_at
from daedal.kernels.signatures import f64, i64
from daedal.kernels.system import HOOK_CHANGED, after_step
from daedal.methods.run_record import RUN, STEP
from daedal.methods.step_size import FAILED, LEAST_BEFORE, classic_growth, growth, shrinkage, step_to_try
from daedal.methods.sums import sums_of

_STIFF, _CALLBACK_RAISED, _UNEVALUABLE = int(Ending.STIFF), int(Ending.CALLBACK_RAISED), int(Ending.UNEVALUABLE)
_ERROR_TEST_FAILED, _NEWTON_FAILED = int(Ending.ERROR_TEST_FAILED), int(Ending.NEWTON_FAILED)
_MATRIX_SINGULAR = int(Ending.MATRIX_SINGULAR)

ATTEMPT = i64(i64, f64, f64)
"""The C signature of `attempt` and `accept`: status = attempt(run, t, h), with t the end of the step."""

HOPELESS = -4  # status: a shorter step would not help, since the slopes at the start are unavailable

MEMORY, CLASSIC, OWN = 0, 1, 2  # controllers; with OWN the method chooses ``run.h`` itself
STIFF_STEPS = 15  # consecutive steps at the limit of stability that indicate stiffness
_HERMITE_NODES = 3

_call_attempt = caller(ATTEMPT)
combine, weighted_sum, size_in, set_scales, stiffness = sums_of(ONE)


@entry(STEP)
def one_step(run):
    """Take one accepted step; return 0 or the reason to stop."""
    return _step(record_at(run, RUN), run)


@part
def _step(run, address):
    """Attempt successively shorter steps until one is accepted."""
    if run.stop_when_stiff and run.stiff_count >= STIFF_STEPS:
        return _STIFF
    failures, errors, singular, unevaluable, status = 0, 0, 0, False, 0
    while True:
        h, t = step_to_try(run)
        if h == 0.0:
            return ending_of(UNEVALUABLE if unevaluable else status, singular)
        run.error_of_step = 0.0
        status = _call_attempt(run.attempt, address, t, h)
        if status == 0 and not run.error_of_step < np.inf:
            status = UNEVALUABLE
        if status == 0 and run.error_of_step <= 1.0:
            status = _call_attempt(run.accept, address, t, h)
            if status == 0:
                _count(run, t, h)
                next_step_size(run, h)
                return 0
        if status == RAISED:
            return _CALLBACK_RAISED
        if status == HOPELESS:
            return _UNEVALUABLE
        reject(run, h, status)
        errors += 1 if status == 0 else 0
        failures += 1 if status != 0 else 0
        singular += 1 if status == SINGULAR else 0
        unevaluable = unevaluable or status == UNEVALUABLE
        most = run.most_failures
        if run.fixed or (most > 0 and (failures >= most or errors >= 2 * most or singular >= 4)):
            return ending_of(status, singular)


@part
def ending_of(status, singular):
    """The reason to stop, from the status of the last attempt and the number of singular matrices."""
    if status == 0:
        return _ERROR_TEST_FAILED
    if status == UNEVALUABLE or status == JACOBIAN_UNEVALUABLE:
        return _UNEVALUABLE
    return _MATRIX_SINGULAR if singular > 0 else _NEWTON_FAILED


@part
def reject(run, h, status):
    """Shorten a step whose error was too large or that could not be computed."""
    run.rejected = 1
    if status != 0:
        run.newton_failures += 1
        run.attempt_newton_failures += 1
        if run.controller != OWN or abs(run.h) >= abs(h):  # the method itself has not chosen a shorter step
            run.h = FAILED * h
        return
    run.error_test_failures += 1
    run.attempt_error_failures += 1
    if run.controller != OWN:
        run.h = h * shrinkage(run.error_of_step, run.control_order)


@part
def _count(run, t, h):
    run.attempt_newton_failures = 0
    run.attempt_error_failures = 0
    run.t = t
    run.h_last = h
    run.steps += 1


@part
def next_step_size(run, h):
    """The step size after an accepted step, by a PI controller or by the classical rule."""
    if run.fixed or run.controller == OWN:
        run.rejected = 0
        return
    size, order = max(run.error_of_step, run.least_error), run.control_order
    if run.controller == CLASSIC:
        grow = classic_growth(size, order, run.rejected)
    else:
        grow = growth(size, run.error_before, order, run.rejected)
        run.error_before = max(size, LEAST_BEFORE)
    run.rejected = 0
    run.h = h if 1.0 <= grow <= run.kept_ratio else h * grow


@part
def size_of_error(system, run, maximum=0):
    """The norm of ``run.error`` in units of the tolerance, based on the larger of |y| at both ends of the step."""
    error, scale = run.error, run.scale
    set_scales(run)
    return size_in(1, error, scale) if maximum else norm(system, run.t, error, scale)


@part
def give_to_owner(system, run, t, h):
    """Call the hook with the step; its change of y is stored in ``run.scratch``."""
    n = run.n
    y, change = run.y, run.scratch
    for i in range(n):
        change[i] = y[i]
    signal = after_step(system, t, h, y)
    for i in range(n):
        change[i] -= y[i]
    return signal


@entry(ATTEMPT)
def accept_with_hermite(address, t, h):
    """Store the polynomial through the values and slopes at both ends of the step."""
    return _accept_with_hermite(record_at(address, RUN), t, h)


@part
def _accept_with_hermite(run, t, h):
    system, n = run.system, run.n
    yp, slope = run.yp, run.slope
    if system.hook != 0:
        status = give_to_owner(system, run, t, h)
        if status != 0 and status != HOOK_CHANGED:
            return status
    hermite_polynomial(run, h, yp, slope)
    for i in range(n):
        yp[i] = slope[i]
    return 0


@part
def hermite_polynomial(run, h, first, last):
    """The polynomial through the values at both ends of the step, phi_0 and y, and the slopes there."""
    y, phi = run.y, run.phi
    for i in range(run.n):
        start, change = phi[0, i], y[i] - phi[0, i]
        for q in range(1, _HERMITE_NODES):
            a = 1.0 - q / _HERMITE_NODES
            bulge = (1.0 - 2.0 * a) * change + h * ((a - 1.0) * first[i] + a * last[i])
            phi[q, i] = start + a * change + a * (a - 1.0) * bulge
        phi[0, i], phi[_HERMITE_NODES, i] = y[i], start
    close_polynomial(run, h, _HERMITE_NODES)


@part
def polynomial(run, h, y, k, inner, n, nodes):
    """The polynomial of a step from its interior values y_0 + h sum_i inner_qi k_i, for the first n components."""
    phi = run.phi
    for q in range(nodes - 1):
        combine(inner[q], k.shape[0], k, phi[0], h, 0, n, phi[q + 1])
    for j in range(n):
        phi[nodes, j] = phi[0, j]
        phi[0, j] = y[j]


@part
def close_polynomial(run, h, nodes):
    """Convert the values at t_1, t_1 - h/nodes, ..., t_0 in phi to their backward differences: the Newton form."""
    phi = run.phi
    for i in range(nodes):
        run.psi[i] = h * (i + 1) / nodes
    run.psi[nodes] = 2.0 * h
    run.degree = nodes
    for order in range(1, nodes + 1):
        for q in range(nodes, order - 1, -1):
            for j in range(run.n):
                phi[q, j] = phi[q - 1, j] - phi[q, j]


@part
def count_stiff(run, h, largest, limit):
    """Count a step by h |lambda|; negative values mean unknown."""
    if largest < 0.0:
        return
    if abs(h) * largest > limit:
        run.nonstiff_count = 0
        run.stiff_count += 1
    else:
        run.nonstiff_count += 1
        if run.nonstiff_count >= 6 and run.stiff_count > 0:
            run.stiff_count = 0
