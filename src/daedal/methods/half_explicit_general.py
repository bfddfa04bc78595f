r"""Half-explicit Runge-Kutta steps for y' = f(t, y, z), 0 = g(t, y), in compiled code.

Brasey and Hairer (2.1), (2.2): the constraint at the point of stage i determines Z_i,

    g(t_0 + cb_i h, y_0 + h sum_{j<i} ab_ij k_j + h ab_ii f(Y_i, Z_i)) = 0,

by a simplified Newton method whose matrix g_y f_z is formed once for a step. Rows of g that do contain z (the auxiliary
equations 0 = k(y, z, u) of (1.4)) are imposed at (Y_i, Z_i) itself.
"""

from __future__ import annotations

from math import isfinite

import numpy as np

from daedal.events.roots import begin
from daedal.kernels.callbacks import (
    CALLBACK,
    COMPILED_CODE_RAISED,
    RAISED,
    UNEVALUABLE,
    call,
    repeat_in_python,
)
from daedal.kernels.compilation import announce, inlined, kernel, part
from daedal.kernels.dense import LU, factor_lu, solve_lu
from daedal.kernels.norms import set_weights
from daedal.kernels.records import ADDRESS, FLOAT, INTEGER, float_rows, floats, integers
from daedal.methods.dassl_run import (
    BUFFER_FULL,
    FINISHED,
    MAX_STEPS,
    ZERO_WEIGHT,
    empty_buffers,
    process_step,
    step_end,
    store_step,
)
from daedal.methods.dassl_step import CALLBACK_RAISED, ERROR_TEST_FAILED, RESIDUAL_UNEVALUABLE, differences
from daedal.methods.half_explicit import NODES, TWO_ESTIMATES

_SAFETY, _SMALLEST, _LARGEST = 0.9, 0.2, 5.0
_MAX_ITERATIONS = 25

GENERAL = np.dtype(
    [
        ("n_y", INTEGER),
        ("n_z", INTEGER),
        ("stages", INTEGER),
        ("order", INTEGER),
        ("known_first", INTEGER),
        ("error_kind", INTEGER),
        ("maximum_norm", INTEGER),
        ("a", ADDRESS),
        ("ab", ADDRESS),
        ("c", ADDRESS),
        ("cb", ADDRESS),
        ("e", ADDRESS),
        ("e2", ADDRESS),
        ("inner", ADDRESS),
        ("f", CALLBACK),
        ("g", CALLBACK),
        ("contains_z", ADDRESS),  # 1 for the rows of g that depend on z
        ("k", ADDRESS),
        ("stage", ADDRESS),
        ("bar", ADDRESS),
        ("z", ADDRESS),
        ("z_start", ADDRESS),
        ("residual", ADDRESS),
        ("shifted", ADDRESS),
        ("slope", ADDRESS),
        ("matrix", LU),
        ("matrix_known", INTEGER),
        ("fixed", INTEGER),
        ("t0", FLOAT),
        ("last_step", INTEGER),
        ("rejected", INTEGER),
    ]
)


@part
def _call(system, callback, t, y, z, target):
    """target = f or g at (t, y, z)."""
    n_y, n_z, size = y.size, z.size, target.size
    block = floats(callback.block, n_y + n_z + size)
    for i in range(n_y):
        block[i] = y[i]
    for i in range(n_z):
        block[n_y + i] = z[i]
    system.residuals += 1
    status = call(callback, t)
    if status == COMPILED_CODE_RAISED:
        for i in range(n_y):
            block[i] = y[i]
        for i in range(n_z):
            block[n_y + i] = z[i]
        status = repeat_in_python(callback, t)
    if status != 0:
        return status
    check = 0.0
    for i in range(size):
        target[i] = block[n_y + n_z + i]
        check += target[i] * 0.0
    return 0 if check == 0.0 else UNEVALUABLE


@part
def _stage_residual(system, m, t, h, i, t_start, start, stage, z, slope, residual):
    """Rows without z: g at the point of stage i, divided by h ab_ii; rows with z: g at the stage. `slope` becomes f."""
    n_y, n_z, s = m.n_y, m.n_z, m.stages
    ab, cb = float_rows(m.ab, s, s), floats(m.cb, s)
    k, bar, own = float_rows(m.k, s + 2, n_y), floats(m.bar, n_y), floats(m.shifted, n_z)
    contains = integers(m.contains_z, n_z)
    status = _call(system, m.f, t, stage, z, slope)
    if status != 0:
        return status
    for j in range(n_y):
        value = ab[i, i] * slope[j]
        for l in range(i):
            if ab[i, l] != 0.0:
                value += ab[i, l] * k[l, j]
        bar[j] = start[j] + h * value
    status = _call(system, m.g, t_start + cb[i] * h, bar, z, residual)
    if status != 0:
        return status
    mixed = False
    for r in range(n_z):
        residual[r] /= h * ab[i, i]
        mixed = mixed or contains[r] != 0
    if mixed:
        status = _call(system, m.g, t, stage, z, own)
        for r in range(n_z):
            if contains[r]:
                residual[r] = own[r]
    return status


@part
def _form_matrix(system, m, t, h, i, t_start, start, stage, z, slope, residual):
    """The derivative of the residual with respect to z, by differences; the residual is left in `residual`."""
    n_z = m.n_z
    data = floats(m.matrix.data, n_z * n_z)
    status = _stage_residual(system, m, t, h, i, t_start, start, stage, z, slope, residual)
    if status != 0:
        return status
    base = residual.copy()
    largest = 1e-3
    for j in range(n_z):
        largest = max(largest, abs(z[j]))
    for j in range(n_z):
        kept, delta = z[j], 1e-7 * max(abs(z[j]), 1e-3 * largest)
        z[j] = kept + delta
        status = _stage_residual(system, m, t, h, i, t_start, start, stage, z, slope, residual)
        z[j] = kept
        if status != 0:
            return status
        for r in range(n_z):
            data[j * n_z + r] = (residual[r] - base[r]) / delta
    m.matrix_known = 1
    system.jacobians += 1
    system.factorisations += 1
    return UNEVALUABLE if factor_lu(m.matrix) != 0 else 0


@part
def _solve_stage(system, m, t, h, i, t_start, start, stage, z, slope):
    """Z_i by simplified Newton iterations; a new matrix when they converge slowly."""
    n_z = m.n_z
    residual = floats(m.residual, n_z)
    before, fresh = np.inf, False
    for iteration in range(_MAX_ITERATIONS):
        if not m.matrix_known:
            status = _form_matrix(system, m, t, h, i, t_start, start, stage, z, slope, residual)
            if status != 0:
                return status
            fresh = True
        status = _stage_residual(system, m, t, h, i, t_start, start, stage, z, slope, residual)
        if status != 0:
            return status
        system.newton_iterations += 1
        solve_lu(m.matrix, residual)
        size, change = 1e-300, 0.0
        for j in range(n_z):
            z[j] -= residual[j]
            size = max(size, abs(z[j]))
            change = max(change, abs(residual[j]))
        if not change < np.inf:
            return UNEVALUABLE
        # Rounding errors of g appear in z divided by h: the iteration cannot do better than that.
        stalled = iteration > 0 and change >= 0.3 * before and abs(h) * change <= 1e-12 * max(size, 1.0)
        if change <= 1e-14 * size or stalled:
            return _stage_residual(system, m, t, h, i, t_start, start, stage, z, slope, residual)
        if iteration > 0 and change > 0.2 * before:
            if fresh and change > 2.0 * before:
                return UNEVALUABLE
            m.matrix_known = 0
        before = change
    return UNEVALUABLE


@part
def _hidden(system, m, t, y, z, slope):
    """z at a mesh point from g_y f + g_t = 0 (3.6), by a difference along the flow; rows with z as they stand."""
    n_y, n_z = m.n_y, m.n_z
    residual, own, bar = floats(m.residual, n_z), floats(m.shifted, n_z), floats(m.bar, n_y)
    contains = integers(m.contains_z, n_z)
    before = np.inf
    for iteration in range(_MAX_ITERATIONS):
        status = _call(system, m.f, t, y, z, slope)
        if status != 0:
            return status
        fastest = 1e-300
        for j in range(n_y):
            fastest = max(fastest, abs(slope[j]) / (abs(y[j]) + 1e-3))
        delta = 1e-4 / fastest
        for r in range(n_z):
            residual[r] = 0.0
        for side in range(4):
            move = (-2.0, -1.0, 1.0, 2.0)[side] * delta
            weight = (1.0, -8.0, 8.0, -1.0)[side] / (12.0 * delta)
            for j in range(n_y):
                bar[j] = y[j] + move * slope[j]
            status = _call(system, m.g, t + move, bar, z, own)
            if status != 0:
                return status
            for r in range(n_z):
                residual[r] += weight * own[r]
        status = _call(system, m.g, t, y, z, own)
        if status != 0:
            return status
        for r in range(n_z):
            if contains[r]:
                residual[r] = own[r]
        solve_lu(m.matrix, residual)
        size, change = 1e-300, 0.0
        for j in range(n_z):
            z[j] -= residual[j]
            size = max(size, abs(z[j]))
            change = max(change, abs(residual[j]))
        if change <= 1e-12 * size or (iteration > 0 and change >= 0.5 * before):
            return _call(system, m.f, t, y, z, slope)
        before = change
    return _call(system, m.f, t, y, z, slope)


@kernel
def advance_general(systems, methods, integrators, runs, root_functions):
    """Integrate until the end, a failure, a terminal event, or a full buffer; returns the reason."""
    system, m, w, r, roots = systems[0], methods[0], integrators[0], runs[0], root_functions[0]
    n_y, n_z = m.n_y, m.n_z
    phi = differences(w)
    rtol, atol, weights = floats(w.rtol, w.n), floats(w.atol, w.n), floats(w.inverse_weights, w.n)
    empty_buffers(r)
    if not r.started:
        y, z_start = floats(w.y, w.n), floats(m.z_start, n_z)
        for i in range(w.n):
            phi[0, i] = y[i]
        for i in range(n_z):
            z_start[i] = y[n_y + i]
        r.zero_weight = set_weights(y, rtol, atol, weights)
        if r.zero_weight >= 0:
            return ZERO_WEIGHT
        r.started = 1
        w.c.psi[0] = w.h
        if r.has_roots:
            if begin(system, roots, w.t, w.t, w.c.psi, phi, 0, w.h) != 0:
                return CALLBACK_RAISED
            r.t_low = w.t
        slopes = float_rows(m.k, m.stages + 2, n_y)
        status = _call(system, m.f, w.t, y[:n_y], z_start, slopes[0 if m.known_first else m.stages + 1])
        if status != 0:
            return _reason(status)
    taken = 0
    while True:
        if r.pending:
            reason = process_step(system, w, r, roots)
            if reason != 0:
                return reason
            if (m.fixed and w.steps >= m.last_step) or (not m.fixed and r.sign * (w.t - r.t_end) >= 0.0):
                return FINISHED
        if w.steps >= r.max_steps and not m.fixed:
            return MAX_STEPS
        if taken >= r.slice or (r.dense and r.rows_stored + NODES + 1 > r.rows):
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
def _attempt(system, m, w, h):
    """All stages from phi_0; y_1 in w.y and the multiplier of the last stage in m.z."""
    n_y, n_z, s = m.n_y, m.n_z, m.stages
    start, y = differences(w)[0], floats(w.y, w.n)
    k, a, c = float_rows(m.k, s + 2, n_y), float_rows(m.a, s, s), floats(m.c, s)
    stage, z, z_start = floats(m.stage, n_y), floats(m.z, n_z), floats(m.z_start, n_z)
    for i in range(n_z):
        z[i] = z_start[i]
    for i in range(m.known_first, s):
        for j in range(n_y):
            value = 0.0
            for l in range(i):
                if a[i, l] != 0.0:
                    value += a[i, l] * k[l, j]
            stage[j] = start[j] + h * value
        status = _solve_stage(system, m, w.t + c[i] * h, h, i, w.t, start, stage, z, k[i])
        if status != 0:
            return status
    bar = floats(m.bar, n_y)
    for j in range(n_y):
        y[j] = stage[j] if m.known_first else bar[j]
    return 0


@part
def _size(m, w, h, weights_of, start, y):
    n_y, s = m.n_y, m.stages
    k, rtol, atol = float_rows(m.k, s + 2, n_y), floats(w.rtol, w.n), floats(w.atol, w.n)
    total = 0.0
    for j in range(n_y):
        value = 0.0
        for i in range(s):
            value += weights_of[i] * k[i, j]
        value = abs(h * value) / (rtol[j] * max(abs(y[j]), abs(start[j])) + atol[j])
        total = max(total, value) if m.maximum_norm else total + value * value
    return total if m.maximum_norm else np.sqrt(total / n_y)


@part
def _step(system, m, w, r):
    n_y, n_z, s = m.n_y, m.n_z, m.stages
    phi, y = differences(w), floats(w.y, w.n)
    k, z, z_start = float_rows(m.k, s + 2, n_y), floats(m.z, n_z), floats(m.z_start, n_z)
    failures = 0
    m.matrix_known = 0
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
        status = _attempt(system, m, w, h)
        size = 0.0
        if status == 0 and not m.fixed:
            size = _size(m, w, h, floats(m.e, s), phi[0], y)
            if m.error_kind == TWO_ESTIMATES and size > 0.0:
                size = size * size / (size + 0.01 * _size(m, w, h, floats(m.e2, s), phi[0], y))
        t = m.t0 + (w.steps + 1) * h if m.fixed else w.t + h
        if status == 0 and size <= 1.0:
            if isfinite(r.t_stop) and abs(t - r.t_stop) <= 1e-14 * (abs(t) + abs(h)):
                t = r.t_stop
            if not m.known_first:
                for j in range(n_y):
                    k[s, j] = k[s + 1, j]
                status = _hidden(system, m, t, y[:n_y], z, k[s + 1])
            if status == 0:
                break
        if status == RAISED:
            return CALLBACK_RAISED
        failures += 1
        m.rejected = 1
        if status != 0 or not size < np.inf:
            if m.fixed:
                return _reason(status if status != 0 else UNEVALUABLE)
            w.newton_failures += 1
            w.attempt_newton_failures += 1
            w.h = 0.25 * h
            m.matrix_known = 0
            continue
        w.error_test_failures += 1
        w.attempt_error_failures += 1
        w.h = h * max(_SMALLEST, _SAFETY * size ** (-1.0 / m.order))
    w.attempt_newton_failures = 0
    w.attempt_error_failures = 0
    for i in range(n_z):
        y[n_y + i] = z[i]
    _polynomial(m, w, h)
    yp = floats(w.yp, w.n)
    for j in range(n_y):
        yp[j] = k[s - 1, j] if m.known_first else k[s + 1, j]
        if m.known_first:
            k[0, j] = k[s - 1, j]
    for i in range(n_z):
        yp[n_y + i] = (z[i] - z_start[i]) / h
        z_start[i] = z[i]
    w.t = t
    w.h_last = h
    w.k_last = NODES
    w.steps += 1
    if not m.fixed:
        grow = min(_LARGEST, _SAFETY * max(size, 1e-12) ** (-1.0 / m.order))
        w.h = h * max(_SMALLEST, min(grow, 1.0) if m.rejected else grow)
        m.rejected = 0
    return 0


@part
def _polynomial(m, w, h):
    """The polynomial of the step in Newton form: y by the dense output of the method, z linear between the ends."""
    n_y, n_z, s = m.n_y, m.n_z, m.stages
    phi, k, y = differences(w), float_rows(m.k, s + 2, n_y), floats(w.y, w.n)
    inner, z_start = float_rows(m.inner, NODES - 1, s + 2), floats(m.z_start, n_z)
    for i in range(NODES):
        w.c.psi[i] = h * (i + 1) / NODES
    w.c.psi[NODES] = 2.0 * h
    for j in range(n_y + n_z):
        start = phi[0, j] if j < n_y else z_start[j - n_y]
        phi[NODES, j] = start
        phi[0, j] = y[j]
        for q in range(NODES - 1):
            if j < n_y:
                value = 0.0
                for i in range(s + 2):
                    if inner[q, i] != 0.0:
                        value += inner[q, i] * k[i, j]
                phi[q + 1, j] = start + h * value
            else:
                theta = 1.0 - (q + 1.0) / NODES
                phi[q + 1, j] = (1.0 - theta) * start + theta * y[j]
        for order in range(1, NODES + 1):
            for q in range(NODES, order - 1, -1):
                phi[q, j] = phi[q - 1, j] - phi[q, j]


@inlined
def _reason(status):
    return CALLBACK_RAISED if status == RAISED else RESIDUAL_UNEVALUABLE


announce(advance_general, "the half-explicit methods for semi-explicit problems")
