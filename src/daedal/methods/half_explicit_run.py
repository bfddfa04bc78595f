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

from math import isfinite

import numpy as np

from daedal.events.roots import begin
from daedal.kernels.callbacks import RAISED, UNEVALUABLE
from daedal.kernels.compilation import announce, inlined, kernel, part
from daedal.kernels.dense import factor_lu, solve_lu
from daedal.kernels.norms import set_weights
from daedal.kernels.records import ADDRESS, FLOAT, INTEGER, float_rows, floats, integers, record_at
from daedal.kernels.system import HOOK_CHANGED, after_step
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
from daedal.methods.half_explicit import NODES, PROJECTED_ERROR, TWO_ESTIMATES
from daedal.methods.runge_kutta_run import STIFF

_BETA, _SAFETY, _SMALLEST, _LARGEST = 0.04, 0.9, 0.2, 10.0
_LARGEST_CLASSIC = 5.0
_STIFF_LIMIT, _STIFF_STEPS = 1.5, 15  # a low limit: suspicions are looked into
_HARMLESS = 0.1

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
        if taken >= r.slice or (r.dense and r.rows_stored + NODES + 1 > r.rows):
            return BUFFER_FULL
        r.zero_weight = set_weights(phi[0], rtol, atol, weights)
        if r.zero_weight >= 0:
            return ZERO_WEIGHT
        w.h_min = max(4.0 * np.finfo(np.float64).eps * abs(w.t), 1e-30 * abs(r.t_end - w.t))
        status = _step(system, m, c, w, r)
        system.factorisations = m.factorisations
        if status != 0:
            return status
        taken += 1
        r.pending = 1
        r.searching = r.has_roots
        r.found = 0
        r.t_limit = step_end(w, r)
        store_step(w, r)


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
    """One accepted step."""
    n, s = w.n, m.stages
    phi, k = differences(w), float_rows(m.k, s + 2, n)
    if not m.slope_known and (m.known_first or m.end_slope):
        status = _slope_at(system, m, c, w.t, phi[0], k[0] if m.known_first else k[s + 1])
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
        status = _stages(system, m, c, w, h)
        if status == RAISED:
            return CALLBACK_RAISED
        size = 0.0
        if status == 0 and not m.fixed:
            size = _error(m, c, w, h)
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
    return _accept(system, m, c, w, r, h, size, changed)


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
    if m.stop_when_stiff and m.known_first:
        _watch_stiffness(m, w, h)
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
    return 0, m.fixed or _size(m, before, floats(w.inverse_weights, n)) > _HARMLESS


@part
def _accept(system, m, c, w, r, h, size, changed):
    n, s = w.n, m.stages
    k = float_rows(m.k, s + 2, n)
    y, yp = floats(w.y, n), floats(w.yp, n)
    t = _end_of_step(m, w, r, h)
    if m.end_slope:
        for i in range(n):
            k[s, i] = k[s + 1, i]
        status = _slope_at(system, m, c, t, y, k[s + 1])
        if status != 0:
            return _reason(status)
    _polynomial(m, w, h)
    for i in range(n):
        yp[i] = k[s + 1, i] if m.end_slope else k[s - 1, i]
        if m.known_first:
            k[0, i] = k[s - 1, i]
    m.slope_known = 0 if changed and m.known_first else 1
    w.t = t
    w.h_last = h
    w.k_last = NODES
    w.steps += 1
    if not m.fixed:
        w.h = h * _growth(m, size)
        m.error_before = max(size, 1e-4)
        m.rejected = 0
    return 0


@part
def _growth(m, size):
    """The ratio of the next step to this one: by a PI controller, or the classical rule."""
    if m.classic:
        grow = min(_LARGEST_CLASSIC, _SAFETY * max(size, 1e-12) ** (-1.0 / m.order))
    else:
        factor = max(size, 1e-12) ** (1.0 / m.order - 0.75 * _BETA) / max(m.error_before, 1e-4) ** _BETA / _SAFETY
        grow = 1.0 / max(factor, 1.0 / _LARGEST)
    if m.rejected:
        grow = min(grow, 1.0)
    return max(grow, _SMALLEST)


@part
def _polynomial(m, w, h):
    """Backward differences of the values at t_1, t_1 - h/5, ..., t_0: the polynomial of the step in Newton form."""
    n, s = w.n, m.stages
    phi, k, y = differences(w), float_rows(m.k, s + 2, n), floats(w.y, n)
    inner = float_rows(m.inner, NODES - 1, s + 2)
    for i in range(NODES):
        w.c.psi[i] = h * (i + 1) / NODES
    w.c.psi[NODES] = 2.0 * h
    for j in range(n):
        start = phi[0, j]
        phi[NODES, j] = start
        phi[0, j] = y[j]
        for q in range(NODES - 1):
            value = 0.0
            for i in range(s + 2):
                if inner[q, i] != 0.0:
                    value += inner[q, i] * k[i, j]
            phi[q + 1, j] = start + h * value
        for order in range(1, NODES + 1):
            for q in range(NODES, order - 1, -1):
                phi[q, j] = phi[q - 1, j] - phi[q, j]


@part
def _watch_stiffness(m, w, h):
    """|h lambda| from the last two stages, both at t_1, as DOPRI5 does; a suspicion, which is looked into elsewhere."""
    n, s = w.n, m.stages
    k, y, stage = float_rows(m.k, s + 2, n), floats(w.y, n), floats(m.second, n)
    a = float_rows(m.a, s, s)
    _combine(a[s - 2], s - 2, k, differences(w)[0], h, 0, n, stage)
    top, bottom = 0.0, 0.0
    for i in range(n):
        top += (k[s - 1, i] - k[s - 2, i]) ** 2
        bottom += (y[i] - stage[i]) ** 2
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


announce(advance_half_explicit, "the half-explicit Runge-Kutta methods")
