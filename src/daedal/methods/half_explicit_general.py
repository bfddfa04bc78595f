r"""Half-explicit Runge-Kutta steps for y' = f(t, y, z), 0 = g(t, y), in compiled code.

Brasey and Hairer (2.1), (2.2): the constraint at the point of stage i determines Z_i,

    g(t_0 + cb_i h, y_0 + h sum_{j<i} ab_ij k_j + h ab_ii f(Y_i, Z_i)) = 0,

by a simplified Newton method whose matrix g_y f_z is formed once for a step. Rows of g that do contain z (the auxiliary
equations 0 = k(y, z, u) of (1.4)) are imposed at (Y_i, Z_i) itself.
"""

from __future__ import annotations

import numpy as np

from daedal.kernels.callbacks import (
    CALLBACK,
    COMPILED_CODE_RAISED,
    RAISED,
    UNEVALUABLE,
    call,
    repeat_in_python,
)
from daedal.kernels.compilation import announce, kernel, part
from daedal.kernels.dense import LU, factor_lu, solve_lu
from daedal.kernels.records import ADDRESS, FLOAT, INTEGER, float_rows, floats, integers
from daedal.kernels.system import after_step
from daedal.methods.dassl_run import empty_buffers
from daedal.methods.dassl_step import differences
from daedal.methods.half_explicit import NODES, TWO_ESTIMATES
from daedal.methods.one_step import (
    accept,
    backward_differences,
    close_step,
    end_of_step,
    growth_by_memory,
    growth_classic,
    next_step,
    open_run,
    polynomial,
    reason_of,
    reject,
    step_to_try,
    too_small,
)

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
        ("classic", INTEGER),
        ("error_before", FLOAT),
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
    empty_buffers(r)
    if not r.started:
        reason = open_run(system, w, r, roots)
        if reason != 0:
            return reason
        y, z_start = floats(w.y, w.n), floats(m.z_start, n_z)
        for i in range(n_z):
            z_start[i] = y[n_y + i]
        slopes = float_rows(m.k, m.stages + 2, n_y)
        status = _call(system, m.f, w.t, y[:n_y], z_start, slopes[0 if m.known_first else m.stages + 1])
        if status != 0:
            return reason_of(status)
    taken = 0
    while True:
        reason = next_step(system, m, w, r, roots, taken, NODES + 1)
        if reason != 0:
            return reason
        reason = _step(system, m, w, r)
        if reason != 0:
            return reason
        taken += 1
        close_step(w, r)


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
def _error(m, w, h):
    """The error of the step in units of the tolerance."""
    s, start, y = m.stages, differences(w)[0], floats(w.y, w.n)
    size = _size(m, w, h, floats(m.e, s), start, y)
    if m.error_kind == TWO_ESTIMATES and size > 0.0:
        size = size * size / (size + 0.01 * _size(m, w, h, floats(m.e2, s), start, y))
    return size


@part
def _step(system, m, w, r):
    """One accepted step; 0 or the reason to stop."""
    n_y, n_z, s = m.n_y, m.n_z, m.stages
    y, yp, k = floats(w.y, w.n), floats(w.yp, w.n), float_rows(m.k, s + 2, n_y)
    z, z_start, slope = floats(m.z, n_z), floats(m.z_start, n_z), floats(m.slope, n_y)
    m.matrix_known = 0
    while True:
        h = step_to_try(m, w, r)
        if h == 0.0:
            return too_small(w)
        t = end_of_step(m, w, r, h)
        status, size = _attempt(system, m, w, h), 0.0
        if status == 0 and not m.fixed:
            size = _error(m, w, h)
            if not size < np.inf:
                status = UNEVALUABLE
        if status == 0 and size <= 1.0:
            if not m.known_first:
                status = _hidden(system, m, t, y[:n_y], z, slope)
            if status == 0 and system.hook != 0:
                for i in range(n_z):
                    y[n_y + i] = z[i]
                status = after_step(system, t, h, y)
            if status == 0:
                break
        if status == RAISED or (m.fixed and status != 0):
            return reason_of(status)
        reject(m, w, h, size if status == 0 else -1.0)
        m.matrix_known = 0
    for j in range(n_y):
        if not m.known_first:
            k[s, j] = k[s + 1, j]
            k[s + 1, j] = slope[j]
        yp[j] = k[s - 1, j] if m.known_first else slope[j]
    for i in range(n_z):
        y[n_y + i] = z[i]
        yp[n_y + i] = (z[i] - z_start[i]) / h
    polynomial(w, h, y, k, float_rows(m.inner, NODES - 1, s + 2), n_y, NODES)
    _chord(m, w, y, z_start)
    for j in range(n_y):
        if m.known_first:
            k[0, j] = k[s - 1, j]
    for i in range(n_z):
        z_start[i] = z[i]
    accept(m, w, t, h, NODES)
    if not m.fixed:
        w.h = h * (growth_classic(m, size) if m.classic else growth_by_memory(m, size))
    return 0


@part
def _chord(m, w, y, z_start):
    """z between the ends of the step: linear."""
    phi, n_y = differences(w), m.n_y
    for i in range(m.n_z):
        j = n_y + i
        for q in range(NODES + 1):
            theta = 1.0 - q / NODES
            phi[q, j] = (1.0 - theta) * z_start[i] + theta * y[j]
        backward_differences(phi, j, NODES)


announce(advance_general, "the half-explicit methods for semi-explicit problems")
