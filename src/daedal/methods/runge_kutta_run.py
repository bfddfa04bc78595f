r"""Explicit Runge-Kutta steps in compiled code, for y' = f(t, y).

    k_i = f(t + c_i h, y + h sum_{j<i} a_ij k_j),    y_1 = y + h sum_i b_i k_i,    error = h || sum_i e_i k_i ||

A tableau is data: one kernel runs them all. Every step leaves the polynomial through its values at five equidistant
points, in the Newton form that all methods share.
"""

from __future__ import annotations

from math import isfinite

import numpy as np

from daedal.events.roots import begin
from daedal.kernels.callbacks import CALLBACK, COMPILED_CODE_RAISED, RAISED, UNEVALUABLE, call, repeat_in_python
from daedal.kernels.compilation import announce, inlined, kernel, part
from daedal.kernels.norms import norm, set_weights
from daedal.kernels.records import ADDRESS, FLOAT, INTEGER, float_rows, floats
from daedal.kernels.system import HOOK_CHANGED, after_step
from daedal.methods.dassl_run import (
    BUFFER_FULL,
    FINISHED,
    HOOK_STOPPED,
    MAX_STEPS,
    ZERO_WEIGHT,
    empty_buffers,
    process_step,
    step_end,
    store_step,
)
from daedal.methods.dassl_step import CALLBACK_RAISED, ERROR_TEST_FAILED, RESIDUAL_UNEVALUABLE, differences

STIFF = 8  # the reason to stop when the problem has become stiff

_NODES = 4  # intervals between the points that define the polynomial of a step
_BETA, _SAFETY, _SMALLEST, _LARGEST = 0.04, 0.9, 0.2, 10.0  # Hairer, Norsett, Wanner II.4: PI step control
_STIFF_LIMIT, _STIFF_STEPS = 3.25, 15  # DOPRI5's test: |h lambda| beyond the stability interval, 15 times
_HARMLESS = 0.1  # a projection smaller than this, in units of the tolerance, leaves the last slope usable

TABLEAU = np.dtype(
    [
        ("n", INTEGER),
        ("stages", INTEGER),
        ("order", INTEGER),  # of the error estimate, plus one
        ("a", ADDRESS),
        ("b", ADDRESS),
        ("c", ADDRESS),
        ("e", ADDRESS),
        ("inner", ADDRESS),  # weights of the slopes at the inner points of the polynomial
        ("rate", CALLBACK),
        ("k", ADDRESS),
        ("stage", ADDRESS),
        ("fixed", INTEGER),
        ("t0", FLOAT),
        ("last_step", INTEGER),
        ("slope_known", INTEGER),
        ("error_before", FLOAT),
        ("rejected", INTEGER),
        ("stop_when_stiff", INTEGER),
        ("stiff_count", INTEGER),
        ("nonstiff_count", INTEGER),
    ]
)


@part
def rate(system, m, t, y, target):
    """target = f(t, y)."""
    n = m.n
    block = floats(m.rate.block, 2 * n)
    for i in range(n):
        block[i] = y[i]
    system.residuals += 1
    status = call(m.rate, t)
    if status == COMPILED_CODE_RAISED:
        for i in range(n):
            block[i] = y[i]
        status = repeat_in_python(m.rate, t)
    if status != 0:
        return status
    check = 0.0
    for i in range(n):
        target[i] = block[n + i]
        check += target[i] * 0.0
    return 0 if check == 0.0 else UNEVALUABLE


@kernel
def advance_runge_kutta(systems, tableaus, integrators, runs, root_functions):
    """Integrate until the end, a failure, a terminal event, stiffness, or a full buffer; returns the reason."""
    system, m, w, r, roots = systems[0], tableaus[0], integrators[0], runs[0], root_functions[0]
    phi = differences(w)
    rtol, atol, weights = floats(w.rtol, w.n), floats(w.atol, w.n), floats(w.inverse_weights, w.n)
    empty_buffers(r)
    if not r.started:
        y = floats(w.y, w.n)
        for i in range(w.n):
            phi[0, i] = y[i]
        r.zero_weight = set_weights(y, rtol, atol, weights)
        if r.zero_weight >= 0:
            return ZERO_WEIGHT
        r.started = 1
        w.c.psi[0] = w.h
        if r.has_roots:
            if begin(system, roots, w.t, w.t, w.c.psi, phi, 0, w.h) != 0:
                return CALLBACK_RAISED
            r.t_low = w.t
    taken = 0
    while True:
        if r.pending:
            reason = process_step(system, w, r, roots)
            if reason != 0:
                return reason
            if (m.fixed and w.steps >= m.last_step) or (not m.fixed and r.sign * (w.t - r.t_end) >= 0.0):
                return FINISHED
            if system.hook_signal != 0:
                return HOOK_STOPPED
            if m.stop_when_stiff and m.stiff_count >= _STIFF_STEPS:
                return STIFF
        if w.steps >= r.max_steps and not m.fixed:
            return MAX_STEPS
        if taken >= r.slice or (r.dense and r.rows_stored + _NODES + 1 > r.rows):
            return BUFFER_FULL
        r.zero_weight = set_weights(phi[0], rtol, atol, weights)
        if r.zero_weight >= 0:
            return ZERO_WEIGHT
        w.h_min = max(4.0 * np.finfo(np.float64).eps * abs(w.t), 1e-30 * abs(r.t_end - w.t))
        status = _step(system, m, w, r)
        if status != 0:
            return status
        taken += 1
        r.pending = 1
        r.searching = r.has_roots
        r.found = 0
        r.t_limit = step_end(w, r)
        store_step(w, r)


@part
def _step(system, m, w, r):
    """One accepted step."""
    n, s = w.n, m.stages
    phi, k = differences(w), float_rows(m.k, s, n)
    y, stage, error = floats(w.y, n), floats(m.stage, n), floats(w.delta, n)
    a, b, c, e = float_rows(m.a, s, s), floats(m.b, s), floats(m.c, s), floats(m.e, s)
    scale = floats(w.error_weights, n)
    rtol, atol = floats(w.rtol, n), floats(w.atol, n)
    included = floats(w.included, n)
    if not m.slope_known:
        status = rate(system, m, w.t, phi[0], k[0])
        if status != 0:
            return _reason(status)
        m.slope_known = 1
    failures = 0
    while True:
        h = w.h
        if not m.fixed:
            if abs(h) > r.h_max:
                h = r.sign * r.h_max
            rest = r.t_stop - w.t
            if isfinite(r.t_stop) and r.sign * (h - rest) > -1e-8 * abs(rest):
                h = rest
            if abs(h) < w.h_min:
                return ERROR_TEST_FAILED if failures == 0 or w.attempt_newton_failures == 0 else RESIDUAL_UNEVALUABLE
        status = 0
        for i in range(1, s):
            for j in range(n):
                value = 0.0
                for l in range(i):
                    if a[i, l] != 0.0:
                        value += a[i, l] * k[l, j]
                stage[j] = phi[0, j] + h * value
            status = rate(system, m, w.t + c[i] * h, stage, k[i])
            if status != 0:
                break
        if status == RAISED:
            return CALLBACK_RAISED
        size = 0.0
        if status == 0:
            for j in range(n):
                value, estimate = 0.0, 0.0
                for i in range(s):
                    value += b[i] * k[i, j]
                    estimate += e[i] * k[i, j]
                y[j] = phi[0, j] + h * value
                error[j] = h * estimate
                scale[j] = included[j] / (rtol[j] * max(abs(y[j]), abs(phi[0, j])) + atol[j])
            size = 0.0 if m.fixed else norm(system, w.t, error, scale)
        if status != 0 or not size < np.inf:
            if m.fixed:
                return _reason(status if status != 0 else UNEVALUABLE)
            w.newton_failures += 1
            w.attempt_newton_failures += 1
            failures += 1
            w.h = 0.25 * h
            m.rejected = 1
            continue
        changed = False
        if size <= 1.0:
            status, changed = _hook(system, m, w, r, h)
            if status == RAISED:
                return CALLBACK_RAISED
            if status == 0:
                break
            if m.fixed:
                return RESIDUAL_UNEVALUABLE
            w.newton_failures += 1
            w.attempt_newton_failures += 1
            failures += 1
            w.h = 0.25 * h
            m.rejected = 1
            continue
        w.error_test_failures += 1
        w.attempt_error_failures += 1
        failures += 1
        m.rejected = 1
        w.h = h * max(_SMALLEST, _SAFETY * size ** (-1.0 / m.order))
    w.attempt_newton_failures = 0
    w.attempt_error_failures = 0
    return _accept(system, m, w, r, h, size, changed)


@part
def _end_of_step(m, w, r, h):
    t = w.t + h
    if m.fixed:
        t = m.t0 + (w.steps + 1) * h
    elif isfinite(r.t_stop) and abs(t - r.t_stop) <= 1e-14 * (abs(t) + abs(h)):
        t = r.t_stop
    return t


@part
def _hook(system, m, w, r, h):
    """Watch for stiffness, and give the step to the owner of the problem; its status, and whether it changed y much."""
    n = w.n
    _watch_stiffness(system, m, w, h)
    if system.hook == 0:
        return 0, False
    y, before, t = floats(w.y, n), floats(w.scratch, n), _end_of_step(m, w, r, h)
    for i in range(n):
        before[i] = y[i]
    signal = after_step(system, t, h, y)
    if signal != HOOK_CHANGED:
        return signal, False
    for i in range(n):
        before[i] -= y[i]
    return 0, m.fixed or norm(system, t, before, floats(w.inverse_weights, n)) > _HARMLESS


@part
def _accept(system, m, w, r, h, size, changed):
    n, s = w.n, m.stages
    k = float_rows(m.k, s, n)
    yp = floats(w.yp, n)
    t = _end_of_step(m, w, r, h)
    _polynomial(m, w, h)
    for i in range(n):
        k[0, i] = k[s - 1, i]
        yp[i] = k[s - 1, i]
    m.slope_known = 0 if changed else 1
    w.t = t
    w.h_last = h
    w.k_last = _NODES
    w.steps += 1
    if not m.fixed:
        factor = size ** (1.0 / m.order - 0.75 * _BETA) / max(m.error_before, 1e-4) ** _BETA / _SAFETY
        grow = 1.0 / max(factor, 1.0 / _LARGEST)
        if m.rejected:
            grow = min(grow, 1.0)
        w.h = h * max(grow, _SMALLEST)
        m.error_before = max(size, 1e-4)
        m.rejected = 0
    return 0


@part
def _polynomial(m, w, h):
    """Backward differences of the values at t_1, t_1 - h/4, ..., t_0: the polynomial of the step in Newton form."""
    n, s = w.n, m.stages
    phi, k, y = differences(w), float_rows(m.k, s, n), floats(w.y, n)
    inner = float_rows(m.inner, _NODES - 1, s)
    for i in range(_NODES):
        w.c.psi[i] = h * (i + 1) / _NODES
    w.c.psi[_NODES] = 2.0 * h
    for j in range(n):
        start = phi[0, j]
        phi[_NODES, j] = start
        phi[0, j] = y[j]
        for q in range(_NODES - 1):
            value = 0.0
            for i in range(s):
                value += inner[q, i] * k[i, j]
            phi[q + 1, j] = start + h * value
        for order in range(1, _NODES + 1):
            for q in range(_NODES, order - 1, -1):
                phi[q, j] = phi[q - 1, j] - phi[q, j]


@part
def _watch_stiffness(system, m, w, h):
    """|h lambda| from the last two stages, both at t_1, by DOPRI5's recipe."""
    n, s = w.n, m.stages
    if not m.stop_when_stiff:
        return
    k, y, stage = float_rows(m.k, s, n), floats(w.y, n), floats(w.scratch, n)
    a, phi = float_rows(m.a, s, s), differences(w)
    top, bottom = 0.0, 0.0
    for j in range(n):
        value = 0.0
        for i in range(s - 2):
            value += a[s - 2, i] * k[i, j]
        stage[j] = phi[0, j] + h * value
        top += (k[s - 1, j] - k[s - 2, j]) ** 2
        bottom += (y[j] - stage[j]) ** 2
    if bottom <= 0.0:
        return
    if abs(h) * np.sqrt(top / bottom) > _STIFF_LIMIT:
        m.nonstiff_count = 0
        m.stiff_count += 1
    else:
        m.nonstiff_count += 1
        if m.nonstiff_count >= 6 and m.stiff_count > 0:
            m.stiff_count = 0


@inlined
def _reason(status):
    return CALLBACK_RAISED if status == RAISED else RESIDUAL_UNEVALUABLE


announce(advance_runge_kutta, "the explicit Runge-Kutta methods")
