r"""Half-explicit Runge-Kutta steps for y' = f(t, y, z), 0 = g(t, y), in compiled code.

Brasey and Hairer (2.1), (2.2): the constraint at the point of stage i determines Z_i,

    g(t_0 + cb_i h, y_0 + h sum_{j<i} ab_ij k_j + h ab_ii f(Y_i, Z_i)) = 0,

by a simplified Newton method whose matrix g_y f_z is formed once for a step. Rows of g that do contain z (the auxiliary
equations 0 = k(y, z, u) of (1.4)) are imposed at (Y_i, Z_i) itself.
"""

from __future__ import annotations

import numpy as np

from daedal.kernels.callbacks import CALLBACK, RAISED, UNEVALUABLE, fetch, nothing
from daedal.kernels.compilation import announce, part, pointer
from daedal.kernels.dense import LU, factor_lu, solve_lu
from daedal.kernels.endings import Ending
from daedal.kernels.five_point import DIVISOR, PLACES, WEIGHTS
from daedal.kernels.records import ADDRESS, INTEGER, float_rows, floats, integers, record_at
from daedal.kernels.system import SYSTEM, after_step
from daedal.methods.half_explicit_step import NODES, TWO_ESTIMATES
from daedal.methods.one_step import ATTEMPT, close_polynomial, polynomial
from daedal.methods.run_record import RUN, STEP, differences
from daedal.methods.runge_kutta_step import combine

_CALLBACK_RAISED, _UNEVALUABLE = int(Ending.CALLBACK_RAISED), int(Ending.UNEVALUABLE)
_MAX_ITERATIONS = 25

GENERAL = np.dtype(
    [
        ("n_y", INTEGER),
        ("n_z", INTEGER),
        ("stages", INTEGER),
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
    ]
)


@pointer(STEP)
def general_begin(address):
    """z and the slope at the start."""
    run = record_at(address, RUN)
    method = record_at(run.method, GENERAL)
    n_y, n_z = method.n_y, method.n_z
    y, z_start = floats(run.y, run.n), floats(method.z_start, n_z)
    for i in range(n_z):
        z_start[i] = y[n_y + i]
    slopes = float_rows(method.k, method.stages + 2, n_y)
    first = slopes[0 if method.known_first else method.stages + 1]
    status = _evaluate(record_at(run.system, SYSTEM), method.f, run.t, y[:n_y], z_start, first)
    if status != 0:
        return _CALLBACK_RAISED if status == RAISED else _UNEVALUABLE
    return 0


@pointer(ATTEMPT)
def general_attempt(address, t, h):
    """The stages from phi_0, y_1 and its error."""
    run = record_at(address, RUN)
    return _attempt(record_at(run.system, SYSTEM), record_at(run.method, GENERAL), run, t, h)


@pointer(ATTEMPT)
def general_accept(address, t, h):
    """z at the end of the step, and its polynomial."""
    run = record_at(address, RUN)
    return _accept(record_at(run.system, SYSTEM), record_at(run.method, GENERAL), run, t, h)


@part
def _evaluate(system, callback, t, y, z, target):
    """target = f or g at (t, y, z)."""
    system.residuals += 1
    return fetch(callback, t, y, z, nothing(), target)


@part
def _stage_residual(system, method, t, h, i, t_start, start, stage, z, slope, residual):
    """Rows without z: g at the point of stage i, divided by h ab_ii; rows with z: g at the stage. `slope` becomes f."""
    n_y, n_z, s = method.n_y, method.n_z, method.stages
    ab, cb = float_rows(method.ab, s, s), floats(method.cb, s)
    k, bar, own = float_rows(method.k, s + 2, n_y), floats(method.bar, n_y), floats(method.shifted, n_z)
    contains = integers(method.contains_z, n_z)
    status = _evaluate(system, method.f, t, stage, z, slope)
    if status != 0:
        return status
    for j in range(n_y):
        value = ab[i, i] * slope[j]
        for l in range(i):
            if ab[i, l] != 0.0:
                value += ab[i, l] * k[l, j]
        bar[j] = start[j] + h * value
    status = _evaluate(system, method.g, t_start + cb[i] * h, bar, z, residual)
    if status != 0:
        return status
    mixed = False
    for row in range(n_z):
        residual[row] /= h * ab[i, i]
        mixed = mixed or contains[row] != 0
    if mixed:
        status = _evaluate(system, method.g, t, stage, z, own)
        for row in range(n_z):
            if contains[row]:
                residual[row] = own[row]
    return status


@part
def _form_matrix(system, method, t, h, i, t_start, start, stage, z, slope, residual):
    """The derivative of the residual with respect to z, by differences; the residual is left in `residual`."""
    n_z = method.n_z
    columns = float_rows(method.matrix.data, n_z, n_z)
    status = _stage_residual(system, method, t, h, i, t_start, start, stage, z, slope, residual)
    if status != 0:
        return status
    base = residual.copy()
    largest = 1e-3
    for j in range(n_z):
        largest = max(largest, abs(z[j]))
    for j in range(n_z):
        kept, delta = z[j], 1e-7 * max(abs(z[j]), 1e-3 * largest)
        z[j] = kept + delta
        status = _stage_residual(system, method, t, h, i, t_start, start, stage, z, slope, residual)
        z[j] = kept
        if status != 0:
            return status
        for row in range(n_z):
            columns[j, row] = (residual[row] - base[row]) / delta
    method.matrix_known = 1
    system.jacobians += 1
    system.factorisations += 1
    return UNEVALUABLE if factor_lu(method.matrix) != 0 else 0


@part
def _solve_stage(system, method, t, h, i, t_start, start, stage, z, slope):
    """Z_i by simplified Newton iterations; a new matrix when they converge slowly."""
    n_z = method.n_z
    residual = floats(method.residual, n_z)
    before, fresh = np.inf, False
    for iteration in range(_MAX_ITERATIONS):
        if not method.matrix_known:
            status = _form_matrix(system, method, t, h, i, t_start, start, stage, z, slope, residual)
            if status != 0:
                return status
            fresh = True
        status = _stage_residual(system, method, t, h, i, t_start, start, stage, z, slope, residual)
        if status != 0:
            return status
        system.newton_iterations += 1
        solve_lu(method.matrix, residual)
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
            return _stage_residual(system, method, t, h, i, t_start, start, stage, z, slope, residual)
        if iteration > 0 and change > 0.2 * before:
            if fresh and change > 2.0 * before:
                return UNEVALUABLE
            method.matrix_known = 0
        before = change
    return UNEVALUABLE


@part
def _hidden(system, method, t, y, z, slope):
    """z at a mesh point from g_y f + g_t = 0 (3.6), by a difference along the flow; rows with z as they stand."""
    n_y, n_z = method.n_y, method.n_z
    residual, own, bar = floats(method.residual, n_z), floats(method.shifted, n_z), floats(method.bar, n_y)
    contains = integers(method.contains_z, n_z)
    before = np.inf
    for iteration in range(_MAX_ITERATIONS):
        status = _evaluate(system, method.f, t, y, z, slope)
        if status != 0:
            return status
        fastest = 1e-300
        for j in range(n_y):
            fastest = max(fastest, abs(slope[j]) / (abs(y[j]) + 1e-3))
        delta = 1e-4 / fastest
        for row in range(n_z):
            residual[row] = 0.0
        for side in range(4):
            move = PLACES[side] * delta
            weight = WEIGHTS[side] / (DIVISOR * delta)
            for j in range(n_y):
                bar[j] = y[j] + move * slope[j]
            status = _evaluate(system, method.g, t + move, bar, z, own)
            if status != 0:
                return status
            for row in range(n_z):
                residual[row] += weight * own[row]
        status = _evaluate(system, method.g, t, y, z, own)
        if status != 0:
            return status
        for row in range(n_z):
            if contains[row]:
                residual[row] = own[row]
        solve_lu(method.matrix, residual)
        size, change = 1e-300, 0.0
        for j in range(n_z):
            z[j] -= residual[j]
            size = max(size, abs(z[j]))
            change = max(change, abs(residual[j]))
        if change <= 1e-12 * size or (iteration > 0 and change >= 0.5 * before):
            return _evaluate(system, method.f, t, y, z, slope)
        before = change
    return _evaluate(system, method.f, t, y, z, slope)


@part
def _attempt(system, method, run, t, h):
    """All stages from phi_0; y_1 in run.y and the multiplier of the last stage in method.z."""
    n_y, n_z, s = method.n_y, method.n_z, method.stages
    start, y, k = differences(run)[0], floats(run.y, run.n), float_rows(method.k, s + 2, n_y)
    a, c, stage = float_rows(method.a, s, s), floats(method.c, s), floats(method.stage, n_y)
    z, z_start, bar = floats(method.z, n_z), floats(method.z_start, n_z), floats(method.bar, n_y)
    method.matrix_known = 0
    for i in range(n_z):
        z[i] = z_start[i]
    for i in range(method.known_first, s):
        combine(a[i], i, k, start, h, 0, n_y, stage)
        status = _solve_stage(system, method, run.t + c[i] * h, h, i, run.t, start, stage, z, k[i])
        if status != 0:
            return status
    for j in range(n_y):
        y[j] = stage[j] if method.known_first else bar[j]
    if not run.fixed:
        run.error_of_step = _error(method, run, h)
    return 0


@part
def _size(method, run, h, weights, start, y):
    n_y, s = method.n_y, method.stages
    k, rtol, atol = float_rows(method.k, s + 2, n_y), floats(run.rtol, run.n), floats(run.atol, run.n)
    total = 0.0
    for j in range(n_y):
        value = 0.0
        for i in range(s):
            value += weights[i] * k[i, j]
        value = abs(h * value) / (rtol[j] * max(abs(y[j]), abs(start[j])) + atol[j])
        total = max(total, value) if method.maximum_norm else total + value * value
    return total if method.maximum_norm else np.sqrt(total / n_y)


@part
def _error(method, run, h):
    """The error of the step in units of the tolerance."""
    s, start, y = method.stages, differences(run)[0], floats(run.y, run.n)
    size = _size(method, run, h, floats(method.e, s), start, y)
    if method.error_kind == TWO_ESTIMATES and size > 0.0:
        size = size * size / (size + 0.01 * _size(method, run, h, floats(method.e2, s), start, y))
    return size


@part
def _accept(system, method, run, t, h):
    n_y, n_z, s = method.n_y, method.n_z, method.stages
    y, yp, k = floats(run.y, run.n), floats(run.yp, run.n), float_rows(method.k, s + 2, n_y)
    z, z_start, slope = floats(method.z, n_z), floats(method.z_start, n_z), floats(method.slope, n_y)
    if not method.known_first:
        status = _hidden(system, method, t, y[:n_y], z, slope)
        if status != 0:
            return status
    for i in range(n_z):
        y[n_y + i] = z[i]
    if system.hook != 0:
        status = after_step(system, t, h, y)
        if status != 0:
            return status
    for j in range(n_y):
        if not method.known_first:
            k[s, j] = k[s + 1, j]
            k[s + 1, j] = slope[j]
        yp[j] = k[s - 1, j] if method.known_first else slope[j]
    for i in range(n_z):
        y[n_y + i] = z[i]
        yp[n_y + i] = (z[i] - z_start[i]) / h
    polynomial(run, h, y, k, float_rows(method.inner, NODES - 1, s + 2), n_y, NODES)
    _chord(method, run, y, z_start)
    close_polynomial(run, h, NODES)
    for j in range(n_y):
        if method.known_first:
            k[0, j] = k[s - 1, j]
    for i in range(n_z):
        z_start[i] = z[i]
    return 0


@part
def _chord(method, run, y, z_start):
    """z between the ends of the step: linear."""
    phi, n_y = differences(run), method.n_y
    for i in range(method.n_z):
        j = n_y + i
        for q in range(NODES + 1):
            theta = 1.0 - q / NODES
            phi[q, j] = (1.0 - theta) * z_start[i] + theta * y[j]


announce(_attempt, "the half-explicit methods for semi-explicit problems")
