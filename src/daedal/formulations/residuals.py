r"""The formulations as residuals F(t, y, y') = 0, in one kernel.

All of them share the unknowns and the shape

    y = ( z_1 .. z_m | r | top multipliers | lower multipliers mu_1 .. mu_low | w | extra )

    z_j' - z_{j+1} - D mu_j           = 0      j < m                      (mu_j = 0 for the exact solution)
    M z_m' - f + B lam                = 0      top = DYNAMICS, lam the top multipliers, or
    z_m' - a(t, z) - D mu_m           = 0      top = ACCELERATION, a from the augmented system
    r' - f_d                          = 0
    sum_l alpha_l g^(l)               = 0      for the rows of the top multipliers
    g^(j-1)                           = 0      j = 1 .. low
    d                                 = 0

and differ in the choices below. Equations of Ascher and Petzold: index reduction (3.3) and (3.11) by the alpha_l,
stabilised index 2 (2.18), (4.15), projected invariants (3.25), (3.27).
"""

from __future__ import annotations

import numpy as np

from daedal.kernels.callbacks import CALLBACK, NATIVE, UNEVALUABLE, is_given, owner
from daedal.kernels.compilation import inlined, part, pointer
from daedal.kernels.dense import LU, factor_lu, solve_lu
from daedal.kernels.records import ADDRESS, FLOAT, INTEGER, floats, integers, record_at
from daedal.mechanics.constrained import (
    CONSTRAINED,
    JACOBIAN,
    POSITION,
    RATE,
    VELOCITY,
    accelerate,
    evaluate,
    fetch,
    load,
    load_state,
)

TOP_DYNAMICS, TOP_ACCELERATION = 0, 1
PLAIN, MINIMAL_EXTENSION, FUEHRER_LEIMKUHLER, KNORRENSCHILD, HANKE, PENALTY = 0, 1, 2, 3, 4, 5
PROJECT_TRANSPOSE, PROJECT_B, PROJECT_GIVEN = 0, 1, 2

FORM = np.dtype(
    [
        ("system", ADDRESS),
        ("n", INTEGER),
        ("top", INTEGER),
        ("variant", INTEGER),
        ("n_top", INTEGER),  # top multipliers, those of the last rows of K
        ("low", INTEGER),  # levels with a multiplier of their own
        ("lowered", INTEGER),  # multipliers are derivatives of unknowns
        ("projection", INTEGER),
        ("needed", INTEGER),  # what has to be evaluated
        ("epsilon", FLOAT),
        ("mu", FLOAT),
        ("alpha", ADDRESS),  # alpha_0 .. alpha_m for holonomic rows, then the last two for velocity constraints
        ("direction", ADDRESS),  # D, nx by n_c
        ("direction_function", CALLBACK),
        ("pivot", ADDRESS),  # minimal extension: 1 where a position, then where a velocity is dependent
        ("scratch", ADDRESS),
        ("mass_lu", LU),
        # the structured Newton matrix
        ("force_q", ADDRESS),
        ("force_v", ADDRESS),
        ("rows_q", ADDRESS),
        ("rows_v", ADDRESS),
        ("map", ADDRESS),
        ("columns", ADDRESS),
        ("low_rows", LU),
        ("condensed", LU),
        ("cj", FLOAT),
    ]
)


def scratch_size(m: int, nx: int, n_c: int) -> int:
    """Length of the array `scratch`."""
    return 6 * (nx + n_c) + nx * n_c + m * nx


@part
def set_direction(f, c, t):
    """D of the projection: K^T, M^{-1} B, a given matrix, or a function of (t, q)."""
    nx, n_c = c.nx, c.n_c
    direction = floats(f.direction, nx * n_c)
    if f.variant == FUEHRER_LEIMKUHLER:
        status = _inverse_mass_times_columns(f, c, floats(f.columns, nx * n_c))
        if status != 0:
            return status
    if f.projection == PROJECT_TRANSPOSE:
        jacobian = floats(c.jacobian, n_c * nx)
        for i in range(n_c):
            for j in range(nx):
                direction[j * n_c + i] = jacobian[i * nx + j]
    elif f.projection == PROJECT_B:
        return _inverse_mass_times_columns(f, c, direction)
    elif is_given(f.direction_function):
        state = floats(c.state, c.m * nx)
        return _fetch_direction(f, c, t, state, direction)
    return 0


@part
def _fetch_direction(f, c, t, state, direction):
    nx, n_c = c.nx, c.n_c
    from_function = fetch(f.direction_function, t, state, nx, nx * n_c)
    source = floats(f.direction_function.block, nx + nx * n_c)
    for i in range(n_c):
        for j in range(nx):
            direction[j * n_c + i] = source[nx + i * nx + j]
    return from_function


@part
def _inverse_mass_times_columns(f, c, direction):
    nx, n_c = c.nx, c.n_c
    mass, data, columns = floats(c.mass, nx * nx), floats(f.mass_lu.data, nx * nx), floats(c.columns, nx * n_c)
    for i in range(nx):
        for j in range(nx):
            data[j * nx + i] = mass[i * nx + j]
    if factor_lu(f.mass_lu) != 0:
        return UNEVALUABLE
    work = floats(f.scratch, nx)
    for k in range(n_c):
        for i in range(nx):
            work[i] = columns[i * n_c + k]
        solve_lu(f.mass_lu, work)
        for i in range(nx):
            direction[i * n_c + k] = work[i]
    return 0


@pointer(NATIVE)
def form_residual(t, block):
    """The residual of a formulation; the block is [y | y' | F]."""
    f = record_at(owner(block), FORM)
    c = record_at(f.system, CONSTRAINED)
    n = f.n
    y, yp, r = floats(block, n), floats(block + 8 * n, n), floats(block + 16 * n, n)
    load_unknowns(f, c, y, yp)
    status = evaluate_needed(f, c, t)
    if status != 0:
        return UNEVALUABLE if status > 0 else status
    if f.low > 0 or f.top == TOP_ACCELERATION:
        status = set_direction(f, c, t)
        if status != 0:
            return status
    _kinematics(f, c, y, yp, r)
    _top_rows(f, c, y, yp, r)
    status = _lower_rows(f, c, t, y, yp, r)
    return status


@pointer(NATIVE)
def form_rate(t, block):
    """y' of a formulation that is an ordinary differential equation in (z, r); the block is [y | y']."""
    f = record_at(owner(block), FORM)
    c = record_at(f.system, CONSTRAINED)
    n, nx, m = f.n, c.nx, c.m
    y, rate = floats(block, n), floats(block + 8 * n, n)
    load_unknowns(f, c, y, y)
    status = evaluate_needed(f, c, t)
    if status == 0 and f.variant == PENALTY:
        status = _accelerate_penalty(f, c)
    if status != 0:
        return UNEVALUABLE if status > 0 else status
    for i in range((m - 1) * nx):
        rate[i] = y[nx + i]
    acceleration, further = floats(c.acceleration, nx), floats(c.rate, c.n_r)
    for i in range(nx):
        rate[(m - 1) * nx + i] = acceleration[i]
    for i in range(c.n_r):
        rate[m * nx + i] = further[i]
    return 0


@part
def _accelerate_penalty(f, c):
    nx = c.nx
    acceleration, force = floats(c.acceleration, nx), floats(c.force, nx)
    mass, data = floats(c.mass, nx * nx), floats(f.mass_lu.data, nx * nx)
    work = floats(f.scratch, 2 * nx)
    for i in range(2 * nx):
        work[i] = 0.0
    _penalty(f, c, work)
    for i in range(nx):
        acceleration[i] = force[i] - work[nx + i]
        for j in range(nx):
            data[j * nx + i] = mass[i * nx + j]
    status = factor_lu(f.mass_lu)
    solve_lu(f.mass_lu, acceleration)
    return status


@inlined
def multipliers_at(f, c):
    """Where the top multipliers begin."""
    return c.m * c.nx + c.n_r


@part
def load_unknowns(f, c, y, yp):
    """Hand z, r, w and lam over to the system; where the system computes w and lam, its last ones are the guess."""
    at = c.m * c.nx + c.n_r
    if f.top == TOP_ACCELERATION:
        load_state(c, y, y[c.m * c.nx :])
    else:
        w = at + f.n_top + f.low * c.n_g
        load(c, y, y[c.m * c.nx :], y[w:], yp[at:] if f.lowered else y[at:])


@part
def evaluate_needed(f, c, t):
    """Everything the residual takes from the system."""
    if f.top == TOP_ACCELERATION:
        status = accelerate_with_levels(f, c, t)
        if status == 0 and c.n_r > 0:
            status = evaluate(c, t, RATE)
        return status
    return evaluate(c, t, f.needed)


@part
def accelerate_with_levels(f, c, t):
    """The accelerations, and the levels of the constraints where they are imposed."""
    status = accelerate(c, t)
    if status == 0 and (f.n_top > 0 or f.low > 0):
        status = evaluate(c, t, POSITION | VELOCITY)
    return status


@part
def _kinematics(f, c, y, yp, r):
    """z_j' = z_{j+1} + D mu_j, and r' = f_d."""
    nx, n_c, m = c.nx, c.n_c, c.m
    direction = floats(f.direction, nx * n_c)
    low_at = m * nx + c.n_r + f.n_top
    mu = yp if f.lowered else y
    for j in range(m - 1):
        for i in range(nx):
            value = yp[j * nx + i] - y[(j + 1) * nx + i]
            if j < f.low:
                for k in range(c.n_g):
                    value -= direction[i * n_c + k] * mu[low_at + j * c.n_g + k]
            if f.variant == HANKE:
                value -= f.mu * yp[(j + 1) * nx + i]
            r[j * nx + i] = value
    rate = floats(c.rate, c.n_r)
    for i in range(c.n_r):
        r[m * nx + i] = yp[m * nx + i] - rate[i]


@part
def dynamic_rows(f, c, y, yp, target):
    """M z_m' - f + B lam, or z_m' - a - D mu_m, from what was evaluated last."""
    nx, n_c = c.nx, c.n_c
    first = (c.m - 1) * nx
    top = (yp if f.lowered else y)[multipliers_at(f, c) :]
    skipped = n_c - f.n_top
    if f.top == TOP_DYNAMICS:
        mass, force, columns = floats(c.mass, nx * nx), floats(c.force, nx), floats(c.columns, nx * n_c)
        for i in range(nx):
            value = -force[i]
            for j in range(nx):
                value += mass[i * nx + j] * slope_of_velocity(f, c, y, yp, first, j)
            for k in range(f.n_top):
                value += columns[i * n_c + k] * top[k]
            target[i] = value
    else:
        acceleration, direction = floats(c.acceleration, nx), floats(f.direction, nx * n_c)
        if f.variant == FUEHRER_LEIMKUHLER:  # velocities are corrected along M^{-1} G^T, positions along G^T
            direction = floats(f.columns, nx * n_c)
        for i in range(nx):
            value = yp[first + i] - acceleration[i]
            for k in range(f.n_top):
                value -= direction[i * n_c + skipped + k] * top[k]
            target[i] = value


@inlined
def slope_of_velocity(f, c, y, yp, first, j):
    """z_m', of which the minimal extension takes the dependent components from unknowns of their own."""
    if f.variant == MINIMAL_EXTENSION:
        place = integers(f.pivot, 2 * c.nx)[c.nx + j]
        if place > 0:
            return y[f.n - c.n_c + place - 1]
    return yp[first + j]


@part
def constraint_row(f, c, y, yp, i):
    """sum_l alpha_l g^(l) for row i of K."""
    nx, n_c, m = c.nx, c.n_c, c.m
    alpha, level, bias = floats(f.alpha, m + 3), floats(c.level, m * n_c), floats(c.bias, n_c)
    holonomic = i < c.n_g
    value = 0.0
    if holonomic:
        for order in range(m):
            if alpha[order] != 0.0:
                value += alpha[order] * level[order * n_c + i]
    else:
        value += alpha[m + 1] * level[(m - 1) * n_c + i]
    highest = alpha[m] if holonomic else alpha[m + 2]
    if highest != 0.0:
        jacobian = floats(c.jacobian, n_c * nx)
        total = bias[i]
        for j in range(nx):
            total += jacobian[i * nx + j] * yp[(m - 1) * nx + j]
        value += highest * total
    return value


@part
def _top_rows(f, c, y, yp, r):
    m, nx, n_c = c.m, c.nx, c.n_c
    dynamic_rows(f, c, y, yp, r[(m - 1) * nx :])
    at, skipped = multipliers_at(f, c), n_c - f.n_top
    for k in range(f.n_top):
        r[at + k] = constraint_row(f, c, y, yp, skipped + k)


@part
def _lower_rows(f, c, t, y, yp, r):
    """g^(0), ..., of the lower multipliers, d = 0, and what single variants change."""
    m, n_c, n_g = c.m, c.n_c, c.n_g
    level, algebraic = floats(c.level, m * n_c), floats(c.algebraic, c.n_w)
    at = multipliers_at(f, c) + f.n_top
    for j in range(f.low):
        for k in range(n_g):
            r[at + j * n_g + k] = level[j * n_c + k]
    if f.top == TOP_DYNAMICS:
        for i in range(c.n_w):
            r[at + f.low * n_g + i] = algebraic[i]
    if f.variant == MINIMAL_EXTENSION:
        _minimal_extension(f, c, y, yp, r)
    elif f.variant == FUEHRER_LEIMKUHLER:
        return _fuehrer_leimkuhler(f, c, t, y, yp, r)
    elif f.variant == KNORRENSCHILD or f.variant == HANKE:
        return _regularised(f, c, t, y, yp, r)
    elif f.variant == PENALTY:
        _penalty(f, c, r)
    return 0


@part
def _minimal_extension(f, c, y, yp, r):
    """Wunderlich (7.13): for dependent coordinates q_i' = v_i gives way to g = 0, and v_i' is an unknown w_2.

    The velocity level stands in the rows of lam, the acceleration level in those of the extra unknowns.
    """
    nx, n_c = c.nx, c.n_c
    pivot = integers(f.pivot, 2 * nx)
    level, bias, jacobian = floats(c.level, 2 * n_c), floats(c.bias, n_c), floats(c.jacobian, n_c * nx)
    for i in range(nx):
        if pivot[i] > 0:
            r[i] = level[pivot[i] - 1]
    extra = f.n - n_c
    for k in range(n_c):
        value = bias[k]
        for j in range(nx):
            value += jacobian[k * nx + j] * slope_of_velocity(f, c, y, yp, nx, j)
        r[extra + k] = value


@part
def _fuehrer_leimkuhler(f, c, t, y, yp, r):
    """Wijckmans (6.13): q' gains the part [(G v)_q]^T tau of the normal to {g = 0, G v = 0}; tau is on top."""
    nx, n_c = c.nx, c.n_c
    work = floats(f.scratch, scratch_length(c))
    before, state = work[:n_c], floats(c.state, 2 * nx)
    level = floats(c.level, 2 * n_c)
    increments = floats(c.increments, 2 * nx)
    tau = (yp if f.lowered else y)[2 * nx + c.n_r :]
    largest = 0.0
    for k in range(n_c):
        before[k] = level[n_c + k]
        largest = max(largest, abs(tau[k]))
    if largest == 0.0:
        return 0
    for j in range(nx):
        kept, h = state[j], 1e-3 * increments[j]
        state[j] = kept + h
        status = evaluate(c, t, JACOBIAN | VELOCITY)
        state[j] = kept
        if status != 0:
            return status
        for k in range(n_c):
            r[j] -= (level[n_c + k] - before[k]) / h * tau[k]
    return 0


@inlined
def scratch_length(c):
    return 6 * (c.nx + c.n_c) + c.nx * c.n_c + c.m * c.nx


@part
def _regularised(f, c, t, y, yp, r):
    """Wijckmans (6.4), (6.5): 0 = g(q + (eps + mu) v + mu eps v') or 0 = g(q + eps q' + mu eps v').

    Velocity constraints become 0 = c(q, v + eps v').
    """
    nx, n_c = c.nx, c.n_c
    state = floats(c.state, 2 * nx)
    for i in range(nx):
        q, v, a = y[i], y[nx + i], yp[nx + i]
        if f.variant == KNORRENSCHILD:
            state[i] = q + (f.epsilon + f.mu) * v + f.mu * f.epsilon * a
        else:
            state[i] = q + f.epsilon * yp[i] + f.mu * f.epsilon * a
    at, level = 2 * nx + c.n_r, floats(c.level, 2 * n_c)
    if c.n_g > 0:
        status = evaluate(c, t, POSITION)
        if status != 0:
            return status
        for k in range(c.n_g):
            r[at + k] = level[k]
    if c.n_g == n_c:
        return 0
    for i in range(nx):
        state[i] = y[i]
        state[nx + i] = y[nx + i] + f.epsilon * yp[nx + i]
    status = evaluate(c, t, POSITION | JACOBIAN | VELOCITY)
    for k in range(c.n_g, n_c):
        r[at + k] = level[n_c + k]
    return status


@part
def _penalty(f, c, r):
    """Loetstedt, Wijckmans (6.3): M v' = f - G^T g / eps; a velocity constraint becomes a damper."""
    nx, n_c = c.nx, c.n_c
    columns, level = floats(c.columns, nx * n_c), floats(c.level, 2 * n_c)
    for k in range(n_c):
        stretch = level[k] if k < c.n_g else level[n_c + k]
        for i in range(nx):
            r[nx + i] += columns[i * n_c + k] * stretch / f.epsilon
