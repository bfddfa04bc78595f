r"""Half-explicit Runge-Kutta steps for mechanical systems, in compiled code.

Brasey and Hairer (2.1), (5.5), and the partitioned methods of Murua and Arnold, in one form: stage i has

    Q_i = q0 + h sum_{j<i} a_ij V_j,      V_i = v0 + h sum_{j<i} a_ij V'_j

and its multiplier makes the velocity constraint hold at a point of its own,

    Qb_i = q0 + h sum_{j<=i} ab_ij V_j,   G(Qb_i) (v0 + h sum_{j<=i} ab_ij V'_j) + g_t = 0,

so that one linear system gives V'_i and Lambda_i:

    [ M_i       G_i^T ] [ V'_i     ]   [ f_i ]
    [ G(Qb_i)   0     ] [ Lambda_i ] = [ r_i ],    r_i = -(G(Qb_i) (v0 + h sum_{j<i} ab_ij V'_j) + g_t) / (h ab_ii).

For the methods of Brasey and Hairer ab_i = a_{i+1}: the constraint of the next stage. A tableau is data.
"""

from __future__ import annotations

import numpy as np

from daedal.kernels.callbacks import RAISED, UNEVALUABLE
from daedal.kernels.compilation import announce, kernel, part
from daedal.kernels.dense import factor_lu, solve_lu
from daedal.kernels.records import ADDRESS, FLOAT, INTEGER, float_rows, floats, integers, record_at
from daedal.kernels.system import HOOK_CHANGED
from daedal.mechanics.augmented import accelerate_coupled, solve_augmented
from daedal.mechanics.constrained import (
    CONSTRAINED,
    FORCE,
    JACOBIAN,
    MASS,
    RATE,
    VELOCITY,
    accelerate,
    evaluate,
    load_state,
)
from daedal.methods.dassl_run import empty_buffers
from daedal.methods.dassl_step import differences
from daedal.methods.half_explicit import NODES, PROJECTED_ERROR, TWO_ESTIMATES
from daedal.methods.one_step import (
    STIFF,
    accept,
    close_step,
    end_of_step,
    give_to_owner,
    growth_by_memory,
    growth_classic,
    next_step,
    open_run,
    polynomial,
    reason_of,
    reject,
    step_to_try,
    too_small,
    watch_stiffness,
)

_STIFF_LIMIT, _STIFF_STEPS = 1.5, 15  # a low limit: suspicions are looked into
_HARMLESS = 0.1  # a projection smaller than this, in units of the tolerance, leaves the last slope usable

HALF_EXPLICIT = np.dtype(
    [
        ("system", ADDRESS),
        ("n", INTEGER),
        ("stages", INTEGER),
        ("order", INTEGER),  # of the error estimate, plus one
        ("chained", INTEGER),  # ab_i = a_{i+1}
        ("known_first", INTEGER),  # the first stage is the last one of the step before
        ("end_slope", INTEGER),  # the accelerations at the end of the step are wanted for the polynomial
        ("error_kind", INTEGER),
        ("classic", INTEGER),  # step control without memory, with ratios between 0.2 and 5
        ("maximum_norm", INTEGER),
        ("a", ADDRESS),
        ("ab", ADDRESS),
        ("c", ADDRESS),
        ("cb", ADDRESS),
        ("e", ADDRESS),
        ("e2", ADDRESS),
        ("inner", ADDRESS),
        ("k", ADDRESS),  # slopes of (q, v, r), one row for each stage, then at the start and at the end
        ("stage", ADDRESS),
        ("second", ADDRESS),
        ("fixed", INTEGER),
        ("t0", FLOAT),
        ("last_step", INTEGER),
        ("slope_known", INTEGER),
        ("error_before", FLOAT),
        ("rejected", INTEGER),
        ("stop_when_stiff", INTEGER),
        ("stiff_count", INTEGER),
        ("nonstiff_count", INTEGER),
        ("factorisations", INTEGER),
    ]
)


@kernel
def advance_half_explicit(systems, methods, integrators, runs, root_functions):
    """Integrate until the end, a failure, a terminal event, stiffness, or a full buffer; returns the reason."""
    system, m, w, r, roots = systems[0], methods[0], integrators[0], runs[0], root_functions[0]
    c = record_at(m.system, CONSTRAINED)
    empty_buffers(r)
    if not r.started:
        reason = open_run(system, w, r, roots)
        if reason != 0:
            return reason
    taken = 0
    while True:
        reason = next_step(system, m, w, r, roots, taken, NODES + 1)
        if reason != 0:
            return reason
        if m.stop_when_stiff and m.stiff_count >= _STIFF_STEPS:
            return STIFF
        reason = _step(system, m, c, w, r)
        system.factorisations = m.factorisations
        if reason != 0:
            return reason
        taken += 1
        close_step(w, r)


@part
def _slope_at(system, m, c, t, y, target):
    """(v, a, r') of the augmented system at a consistent point, Brasey and Hairer (3.6)."""
    nx, n_r = c.nx, c.n_r
    load_state(c, y, y[2 * nx :])
    system.residuals += 1
    m.factorisations += 1
    status = accelerate(c, t)
    if status == 0 and n_r > 0:
        status = evaluate(c, t, RATE)
    if status != 0:
        return UNEVALUABLE if status > 0 else status
    acceleration, rate = floats(c.acceleration, nx), floats(c.rate, n_r)
    for i in range(nx):
        target[i] = y[nx + i]
        target[nx + i] = acceleration[i]
    for i in range(n_r):
        target[2 * nx + i] = rate[i]
    return 0


@part
def _combine(row, count, k, start, h, first, last, target):
    """target = start + h sum_j row_j k_j for the components from `first` to `last`."""
    for i in range(first, last):
        value = 0.0
        for j in range(count):
            if row[j] != 0.0:
                value += row[j] * k[j, i]
        target[i] = start[i] + h * value


@part
def _stages(system, m, c, w, h):
    """All stages of a step from phi_0; the end of the step in w.y."""
    n, s, nx, n_c, n_r = w.n, m.stages, c.nx, c.n_c, c.n_r
    start, y = differences(w)[0], floats(w.y, n)
    k, a, ab = float_rows(m.k, s + 2, n), float_rows(m.a, s, s), float_rows(m.ab, s, s)
    times, bar_times = floats(m.c, s), floats(m.cb, s)
    stage, bar = floats(m.stage, n), floats(m.second, n)
    size = nx + n_c
    matrix, mass = floats(c.kkt.data, size * size), floats(c.mass, nx * nx)
    columns, jacobian = floats(c.columns, nx * n_c), floats(c.jacobian, n_c * nx)
    level, bias = floats(c.level + 8 * n_c, n_c), floats(c.bias, n_c)
    multipliers, rows = floats(c.multipliers, n_c), integers(c.rows, n_c)
    acceleration, rate = floats(c.acceleration, nx), floats(c.rate, n_r)
    coupled = c.uses_multipliers or c.n_w > 0
    for i in range(m.known_first, s):
        _combine(a[i], i, k, start, h, 0, n, stage)
        load_state(c, stage, stage[2 * nx :])
        system.residuals += 1
        status = evaluate(c, w.t + times[i] * h, MASS | FORCE | (0 if m.chained and i > m.known_first else JACOBIAN))
        if status != 0:
            return status
        for j in range(nx):
            for l in range(nx):
                matrix[j * size + l] = mass[l * nx + j]
        for j in range(n_c):
            for l in range(nx):
                matrix[(nx + j) * size + l] = columns[l * n_c + j]
            for l in range(n_c):
                matrix[(nx + j) * size + nx + l] = 0.0
        for j in range(nx):
            k[i, j] = stage[nx + j]
        if n_c > 0:
            _combine(ab[i], i + 1, k, start, h, 0, nx, bar)
            _combine(ab[i], i, k, start, h, nx, 2 * nx, bar)
            load_state(c, bar, stage[2 * nx :])
            status = evaluate(c, w.t + bar_times[i] * h, JACOBIAN | VELOCITY)
            if status != 0:
                return status
            for j in range(nx):
                for l in range(n_c):
                    matrix[j * size + nx + l] = jacobian[l * nx + j]
            for l in range(n_c):
                bias[l] = level[l] / (h * ab[i, i])
        m.factorisations += 1
        if factor_lu(c.kkt) != 0:
            return UNEVALUABLE
        load_state(c, stage, stage[2 * nx :])
        if coupled:
            status = accelerate_coupled(c, w.t + times[i] * h)
            if status != 0:
                return UNEVALUABLE if status > 0 else status
        else:
            solve_augmented(c)
        check = 0.0
        for j in range(nx):
            k[i, nx + j] = acceleration[j]
            check += acceleration[j] * 0.0
        if check != 0.0:
            return UNEVALUABLE
        if n_r > 0:
            if c.uses_multipliers:
                state = floats(c.state, 2 * nx + n_r + c.n_w + c.all_g + c.all_v)
                for l in range(n_c):
                    state[2 * nx + n_r + c.n_w + rows[l]] = multipliers[l]
            status = evaluate(c, w.t + times[i] * h, RATE)
            if status != 0:
                return status
            for j in range(n_r):
                k[i, 2 * nx + j] = rate[j]
    if m.known_first:
        for i in range(n):
            y[i] = stage[i]
    else:
        _combine(ab[s - 1], s, k, start, h, 0, n, y)
    return 0


@part
def _size(m, vector, scale):
    """The weighted norm of an error."""
    total, n = 0.0, vector.size
    for i in range(n):
        value = abs(vector[i] * scale[i])
        total = max(total, value) if m.maximum_norm else total + value * value
    return total if m.maximum_norm else np.sqrt(total / n)


@part
def _error(m, c, w, h):
    """The error of the step in units of the tolerance."""
    n, s, nx, n_c = w.n, m.stages, c.nx, c.n_c
    start, y, error = differences(w)[0], floats(w.y, n), floats(w.delta, n)
    k, e, e2 = float_rows(m.k, s + 2, n), floats(m.e, s), floats(m.e2, s)
    rtol, atol, scale = floats(w.rtol, n), floats(w.atol, n), floats(w.error_weights, n)
    for i in range(n):
        value = 0.0
        for j in range(s):
            value += e[j] * k[j, i]
        error[i] = h * value
        scale[i] = 1.0 / (rtol[i] * max(abs(y[i]), abs(start[i])) + atol[i])
    if m.error_kind == PROJECTED_ERROR and n_c > 0:
        solution, jacobian = floats(c.solution, nx + n_c), floats(c.jacobian, n_c * nx)
        for i in range(nx):
            solution[i] = 0.0
        for l in range(n_c):
            solution[nx + l] = 0.0
            for i in range(nx):
                solution[nx + l] -= jacobian[l * nx + i] * error[nx + i]
        solve_lu(c.kkt, solution)
        for i in range(nx):
            error[nx + i] += solution[i]
    size = _size(m, error, scale)
    if m.error_kind != TWO_ESTIMATES or size == 0.0:
        return size
    for i in range(n):
        value = 0.0
        for j in range(s):
            value += e2[j] * k[j, i]
        error[i] = h * value
    return size * size / (size + 0.01 * _size(m, error, scale))


@part
def _step(system, m, c, w, r):
    """One accepted step; 0 or the reason to stop."""
    n, s = w.n, m.stages
    k, y, yp = float_rows(m.k, s + 2, n), floats(w.y, n), floats(w.yp, n)
    if not m.slope_known and (m.known_first or m.end_slope):
        status = _slope_at(system, m, c, w.t, differences(w)[0], k[0] if m.known_first else k[s + 1])
        if status != 0:
            return reason_of(status)
        m.slope_known = 1
    while True:
        h = step_to_try(m, w, r)
        if h == 0.0:
            return too_small(w)
        t = end_of_step(m, w, r, h)
        status, size, changed = _stages(system, m, c, w, h), 0.0, False
        if status == 0 and not m.fixed:
            size = _error(m, c, w, h)
            if not size < np.inf:
                status = UNEVALUABLE
        if status == 0 and size <= 1.0:
            if m.stop_when_stiff and m.known_first:
                watch_stiffness(m, w, h, k, floats(m.second, n), _STIFF_LIMIT)
            if system.hook != 0:
                status = give_to_owner(system, w, t, h)
                if status == HOOK_CHANGED:
                    status = 0
                    changed = m.fixed or _size(m, floats(w.scratch, n), floats(w.inverse_weights, n)) > _HARMLESS
            if status == 0 and m.end_slope:
                status = _slope_at(system, m, c, t, y, yp)
            if status == 0:
                break
        if status == RAISED or (m.fixed and status != 0):
            return reason_of(status)
        reject(m, w, h, size if status == 0 else -1.0)
    for i in range(n):
        if m.end_slope:
            k[s, i] = k[s + 1, i]
            k[s + 1, i] = yp[i]
        else:
            yp[i] = k[s - 1, i]
    polynomial(w, h, y, k, float_rows(m.inner, NODES - 1, s + 2), n, NODES)
    if m.known_first:
        for i in range(n):
            k[0, i] = k[s - 1, i]
    m.slope_known = 0 if changed and m.known_first else 1
    accept(m, w, t, h, NODES)
    if not m.fixed:
        w.h = h * (growth_classic(m, size) if m.classic else growth_by_memory(m, size))
    return 0


announce(advance_half_explicit, "the half-explicit Runge-Kutta methods")
