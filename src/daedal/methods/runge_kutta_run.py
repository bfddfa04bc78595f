r"""Explicit Runge-Kutta steps in compiled code, for y' = f(t, y).

    k_i = f(t + c_i h, y + h sum_{j<i} a_ij k_j),    y_1 = y + h sum_i b_i k_i,    error = h || sum_i e_i k_i ||

A tableau is data: one kernel runs them all. Every step leaves the polynomial through its values at five equidistant
points, in the Newton form that all methods share.
"""

from __future__ import annotations

import numpy as np

from daedal.kernels.callbacks import CALLBACK, COMPILED_CODE_RAISED, RAISED, UNEVALUABLE, call, repeat_in_python
from daedal.kernels.compilation import announce, kernel, part
from daedal.kernels.norms import norm
from daedal.kernels.records import ADDRESS, FLOAT, INTEGER, float_rows, floats
from daedal.kernels.system import HOOK_CHANGED
from daedal.methods.dassl_run import empty_buffers
from daedal.methods.dassl_step import differences
from daedal.methods.one_step import (
    STIFF,
    accept,
    close_step,
    end_of_step,
    give_to_owner,
    growth_by_memory,
    next_step,
    open_run,
    polynomial,
    reason_of,
    reject,
    step_to_try,
    too_small,
    watch_stiffness,
)

_NODES = 4  # intervals between the points that define the polynomial of a step
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
    empty_buffers(r)
    if not r.started:
        reason = open_run(system, w, r, roots)
        if reason != 0:
            return reason
    taken = 0
    while True:
        reason = next_step(system, m, w, r, roots, taken, _NODES + 1)
        if reason != 0:
            return reason
        if m.stop_when_stiff and m.stiff_count >= _STIFF_STEPS:
            return STIFF
        reason = _step(system, m, w, r)
        if reason != 0:
            return reason
        taken += 1
        close_step(w, r)


@part
def _stages(system, m, w, h):
    """k_2, ..., k_s and y_1."""
    n, s = w.n, m.stages
    start, k, y, stage = differences(w)[0], float_rows(m.k, s, n), floats(w.y, n), floats(m.stage, n)
    a, b, c = float_rows(m.a, s, s), floats(m.b, s), floats(m.c, s)
    for i in range(1, s):
        for j in range(n):
            value = 0.0
            for l in range(i):
                if a[i, l] != 0.0:
                    value += a[i, l] * k[l, j]
            stage[j] = start[j] + h * value
        status = rate(system, m, w.t + c[i] * h, stage, k[i])
        if status != 0:
            return status
    for j in range(n):
        value = 0.0
        for i in range(s):
            value += b[i] * k[i, j]
        y[j] = start[j] + h * value
    return 0


@part
def _error(system, m, w, h):
    """The error estimate in units of the tolerance."""
    n, s = w.n, m.stages
    start, k, y, e = differences(w)[0], float_rows(m.k, s, n), floats(w.y, n), floats(m.e, s)
    error, scale, included = floats(w.delta, n), floats(w.error_weights, n), floats(w.included, n)
    rtol, atol = floats(w.rtol, n), floats(w.atol, n)
    for j in range(n):
        value = 0.0
        for i in range(s):
            value += e[i] * k[i, j]
        error[j] = h * value
        scale[j] = included[j] / (rtol[j] * max(abs(y[j]), abs(start[j])) + atol[j])
    return norm(system, w.t, error, scale)


@part
def _step(system, m, w, r):
    """One accepted step; 0 or the reason to stop."""
    n, s = w.n, m.stages
    k, yp = float_rows(m.k, s, n), floats(w.yp, n)
    if not m.slope_known:
        status = rate(system, m, w.t, differences(w)[0], k[0])
        if status != 0:
            return reason_of(status)
        m.slope_known = 1
    while True:
        h = step_to_try(m, w, r)
        if h == 0.0:
            return too_small(w)
        t = end_of_step(m, w, r, h)
        status, size, changed = _stages(system, m, w, h), 0.0, False
        if status == 0 and not m.fixed:
            size = _error(system, m, w, h)
            if not size < np.inf:
                status = UNEVALUABLE
        if status == 0 and size <= 1.0:
            if m.stop_when_stiff:
                watch_stiffness(m, w, h, k, floats(w.scratch, n), _STIFF_LIMIT)
            if system.hook != 0:
                status = give_to_owner(system, w, t, h)
                if status == HOOK_CHANGED:
                    status = 0
                    weights = floats(w.inverse_weights, n)
                    changed = m.fixed or norm(system, t, floats(w.scratch, n), weights) > _HARMLESS
            if status == 0:
                break
        if status == RAISED or (m.fixed and status != 0):
            return reason_of(status)
        reject(m, w, h, size if status == 0 else -1.0)
    polynomial(w, h, floats(w.y, n), k, float_rows(m.inner, _NODES - 1, s), n, _NODES)
    for i in range(n):
        k[0, i] = k[s - 1, i]
        yp[i] = k[s - 1, i]
    m.slope_known = 0 if changed else 1
    accept(m, w, t, h, _NODES)
    if not m.fixed:
        w.h = h * growth_by_memory(m, size)
    return 0


announce(advance_runge_kutta, "the explicit Runge-Kutta methods")
