"""What the runs of all one-step methods share: limits of a step, its polynomial, the way from step to step."""

from __future__ import annotations

from math import isfinite

import numpy as np

from daedal.events.roots import begin
from daedal.kernels.callbacks import RAISED
from daedal.kernels.compilation import inlined, part
from daedal.kernels.norms import set_weights
from daedal.kernels.records import float_rows, floats
from daedal.kernels.system import after_step
from daedal.methods.dassl_run import (
    BUFFER_FULL,
    FINISHED,
    HOOK_STOPPED,
    MAX_STEPS,
    ZERO_WEIGHT,
    process_step,
    step_end,
    store_step,
)
from daedal.methods.dassl_step import CALLBACK_RAISED, ERROR_TEST_FAILED, RESIDUAL_UNEVALUABLE, differences

STIFF = 8  # the reason to stop when the problem seems to have become stiff

SAFETY, SMALLEST = 0.9, 0.2
_BETA, _LARGEST = 0.04, 10.0  # Hairer, Norsett, Wanner II.4: PI step control
_LARGEST_CLASSIC = 5.0


@part
def open_run(system, w, r, roots):
    """The first values, weights and switching functions; 0 or the reason to stop."""
    phi, y = differences(w), floats(w.y, w.n)
    for i in range(w.n):
        phi[0, i] = y[i]
    r.zero_weight = set_weights(y, floats(w.rtol, w.n), floats(w.atol, w.n), floats(w.inverse_weights, w.n))
    if r.zero_weight >= 0:
        return ZERO_WEIGHT
    r.started = 1
    w.c.psi[0] = w.h
    if r.has_roots:
        if begin(system, roots, w.t, w.t, w.c.psi, phi, 0, w.h) != 0:
            return CALLBACK_RAISED
        r.t_low = w.t
    return 0


@part
def next_step(system, m, w, r, roots, taken, rows):
    """Process the last step and prepare the next one, whose polynomial has `rows` rows; 0 or the reason to stop."""
    if r.pending:
        reason = process_step(system, w, r, roots)
        if reason != 0:
            return reason
        if (m.fixed and w.steps >= m.last_step) or (not m.fixed and r.sign * (w.t - r.t_end) >= 0.0):
            return FINISHED
        if system.hook_signal != 0:
            return HOOK_STOPPED
    if w.steps >= r.max_steps and not m.fixed:
        return MAX_STEPS
    if taken >= r.slice or (r.dense and r.rows_stored + rows > r.rows):
        return BUFFER_FULL
    weights = floats(w.inverse_weights, w.n)
    r.zero_weight = set_weights(differences(w)[0], floats(w.rtol, w.n), floats(w.atol, w.n), weights)
    if r.zero_weight >= 0:
        return ZERO_WEIGHT
    w.h_min = max(4.0 * np.finfo(np.float64).eps * abs(w.t), 1e-30 * abs(r.t_end - w.t))
    return 0


@part
def close_step(w, r):
    """The step is taken: what lies inside of it will be looked at by the next call of `next_step`."""
    r.pending = 1
    r.searching = r.has_roots
    r.found = 0
    r.t_limit = step_end(w, r)
    store_step(w, r)


@part
def step_to_try(m, w, r):
    """The step size within its limits, or 0 if it has become too small."""
    h = w.h
    if m.fixed:
        return h
    if abs(h) > r.h_max:
        h = r.sign * r.h_max
    rest = r.t_stop - w.t
    if isfinite(r.t_stop) and r.sign * (h - rest) > -1e-8 * abs(rest):
        h = rest
    return 0.0 if abs(h) < w.h_min else h


@inlined
def too_small(w):
    """The failure code of a step that has become too small."""
    return RESIDUAL_UNEVALUABLE if w.attempt_newton_failures > 0 else ERROR_TEST_FAILED


@part
def end_of_step(m, w, r, h):
    """t_0 + h, exactly on t_stop where that is meant."""
    t = w.t + h
    if m.fixed:
        t = m.t0 + (w.steps + 1) * h
    elif isfinite(r.t_stop) and abs(t - r.t_stop) <= 1e-14 * (abs(t) + abs(h)):
        t = r.t_stop
    return t


@part
def reject(m, w, h, size):
    """Shorten a step whose error was too large, or (size < 0) which could not be evaluated."""
    m.rejected = 1
    if size < 0.0:
        w.newton_failures += 1
        w.attempt_newton_failures += 1
        w.h = 0.25 * h
    else:
        w.error_test_failures += 1
        w.attempt_error_failures += 1
        w.h = h * max(SMALLEST, SAFETY * size ** (-1.0 / m.order))


@part
def accept(m, w, t, h, nodes):
    """Count the step."""
    w.attempt_newton_failures = 0
    w.attempt_error_failures = 0
    w.t = t
    w.h_last = h
    w.k_last = nodes
    w.steps += 1


@part
def growth_by_memory(m, size):
    """The ratio of the next step to this one by a PI controller."""
    factor = max(size, 1e-12) ** (1.0 / m.order - 0.75 * _BETA) / max(m.error_before, 1e-4) ** _BETA / SAFETY
    m.error_before = max(size, 1e-4)
    return _bounded(m, 1.0 / max(factor, 1.0 / _LARGEST))


@part
def growth_classic(m, size):
    """The ratio of the next step to this one by the classical rule, at most 5."""
    return _bounded(m, min(_LARGEST_CLASSIC, SAFETY * max(size, 1e-12) ** (-1.0 / m.order)))


@part
def _bounded(m, grow):
    if m.rejected:
        grow = min(grow, 1.0)
    m.rejected = 0
    return max(grow, SMALLEST)


@part
def polynomial(w, h, y, k, inner, n, nodes):
    """Backward differences of the values at t_1, t_1 - h/nodes, ..., t_0: the step's polynomial in Newton form.

    The values inside are y_0 + h sum_i inner_qi k_i for the first n components.
    """
    phi = differences(w)
    for i in range(nodes):
        w.c.psi[i] = h * (i + 1) / nodes
    w.c.psi[nodes] = 2.0 * h
    for j in range(n):
        start = phi[0, j]
        phi[nodes, j] = start
        phi[0, j] = y[j]
        for q in range(nodes - 1):
            value = 0.0
            for i in range(k.shape[0]):
                if inner[q, i] != 0.0:
                    value += inner[q, i] * k[i, j]
            phi[q + 1, j] = start + h * value
        backward_differences(phi, j, nodes)


@part
def backward_differences(phi, j, nodes):
    """Turn the values in column j into their backward differences."""
    for order in range(1, nodes + 1):
        for q in range(nodes, order - 1, -1):
            phi[q, j] = phi[q - 1, j] - phi[q, j]


@inlined
def reason_of(status):
    """The failure code for the status of a callback."""
    return CALLBACK_RAISED if status == RAISED else RESIDUAL_UNEVALUABLE


@part
def give_to_owner(system, w, t, h):
    """Let the hook look at the step; the change that it made to y is left in ``w.scratch``."""
    n = w.n
    y, change = floats(w.y, n), floats(w.scratch, n)
    for i in range(n):
        change[i] = y[i]
    signal = after_step(system, t, h, y)
    for i in range(n):
        change[i] -= y[i]
    return signal


@part
def watch_stiffness(m, w, h, k, stage, limit):
    """|h lambda| from the last two stages, both at t_1, by DOPRI5's recipe; counts steps beyond the limit."""
    n, s = w.n, m.stages
    y, start, a = floats(w.y, n), differences(w)[0], float_rows(m.a, s, s)
    top, bottom = 0.0, 0.0
    for j in range(n):
        value = 0.0
        for i in range(s - 2):
            value += a[s - 2, i] * k[i, j]
        stage[j] = start[j] + h * value
        top += (k[s - 1, j] - k[s - 2, j]) ** 2
        bottom += (y[j] - stage[j]) ** 2
    if bottom <= 0.0:
        return
    if abs(h) * np.sqrt(top / bottom) > limit:
        m.nonstiff_count = 0
        m.stiff_count += 1
    else:
        m.nonstiff_count += 1
        if m.nonstiff_count >= 6 and m.stiff_count > 0:
            m.stiff_count = 0
