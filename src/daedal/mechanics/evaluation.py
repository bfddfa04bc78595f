"""Evaluating a constrained system: the user's functions, and differences where they are missing.

Compiled once: all other kernels reach it through its address, which stands in the record of the system.
"""

from daedal.kernels.callbacks import is_given
from daedal.kernels.compilation import announce, part, pointer
from daedal.kernels.five_point import DIVISOR, PLACES, WEIGHTS
from daedal.kernels.records import float_rows, floats, integers, record_at
from daedal.mechanics.constrained import (
    ALGEBRAIC,
    BIAS,
    CONSTRAINED,
    EVALUATION,
    FORCE,
    JACOBIAN,
    LINEAR,
    MASS,
    POSITION,
    RATE,
    VELOCITY,
    fetch,
)


@pointer(EVALUATION)
def evaluator(system, t, what):
    """What :func:`evaluate` calls: compiled once, it is reached through its address by every kernel."""
    return _evaluate(record_at(system, CONSTRAINED), t, what)


@part
def _evaluate(c, t, what):
    c.evaluations += 1
    if c.kind == LINEAR:
        return _evaluate_linear(c, t, what)
    nx, n = c.nx, c.m * c.nx
    state = floats(c.state, n + c.n_r + c.n_w + c.all_g + c.all_v)
    if what & MASS and not c.constant_mass:
        status = fetch(c.mass_function, t, state, nx, nx * nx)
        if status != 0:
            return status
        by_columns, mass = float_rows(c.mass_function.block + 8 * nx, nx, nx), float_rows(c.mass, nx, nx)
        for i in range(nx):
            for j in range(nx):
                mass[i, j] = by_columns[j, i]
    if what & FORCE:
        status = _fetch_into(c.force_function, t, state, c.n_arguments, floats(c.force, nx))
        if status != 0:
            return status
    if what & RATE and c.n_r > 0:
        status = _fetch_into(c.state_rate, t, state, c.n_arguments, floats(c.rate, c.n_r))
        if status != 0:
            return status
    if what & ALGEBRAIC and c.n_w > 0:
        status = _fetch_into(c.algebraic_equation, t, state, c.n_arguments, floats(c.algebraic, c.n_w))
        if status != 0:
            return status
    if c.n_c == 0:
        return 0
    if c.all_g > 0:
        status = _evaluate_holonomic(c, t, state, what)
        if status != 0:
            return status
    if c.all_v > 0:
        status = _evaluate_nonholonomic(c, t, state, what)
        if status != 0:
            return status
    _select(c, what)
    return 0


@part
def _fetch_into(callback, t, state, n_arguments, target):
    status = fetch(callback, t, state, n_arguments, target.size)
    source = floats(callback.block, n_arguments + target.size)
    for i in range(target.size):
        target[i] = source[n_arguments + i]
    return status


@part
def _evaluate_holonomic(c, t, state, what):
    nx, rows = c.nx, c.all_g
    if what & POSITION:
        status = _fetch_into(c.constraint, t, state, nx, floats(c.all_position, rows))
        if status != 0:
            return status
    if what & JACOBIAN:
        if is_given(c.constraint_jacobian):
            status = fetch(c.constraint_jacobian, t, state, nx, rows * nx)
            if status != 0:
                return status
            _store_jacobian(c, float_rows(c.constraint_jacobian.block + 8 * nx, nx, rows), 0)
        else:
            status = _differentiate(c, c.constraint, t, state, 0, nx, rows, 0)
            if status != 0:
                return status
    if what & VELOCITY:
        status = _velocity_level(c, t, state)
        if status != 0:
            return status
    if what & BIAS:
        target = floats(c.all_bias, rows)
        if is_given(c.acceleration_bias):
            status = _fetch_into(c.acceleration_bias, t, state, 2 * nx, target)
            for i in range(rows):
                target[i] = -target[i]
            return status
        return _second_difference(c, t, state)
    return 0


@part
def _store_jacobian(c, by_columns, offset):
    jacobian = float_rows(c.all_jacobian, c.all_g + c.all_v, c.nx)
    nx, rows = by_columns.shape
    for i in range(rows):
        for j in range(nx):
            jacobian[offset + i, j] = by_columns[j, i]


@part
def _differentiate(c, function, t, state, variable, n_arguments, rows, offset):
    """d function / d z_j for nx variables from `variable` on: central differences of fourth order."""
    nx = c.nx
    shifted, increments = floats(c.shifted, state.size), floats(c.increments, 2 * nx)
    jacobian = float_rows(c.all_jacobian, c.all_g + c.all_v, nx)
    for i in range(n_arguments):
        shifted[i] = state[i]
    values = floats(function.block, n_arguments + rows)
    for j in range(nx):
        h = increments[j] if variable == 0 else max(abs(state[variable + j]), 1.0)
        for i in range(rows):
            jacobian[offset + i, j] = 0.0
        for side in range(4):
            move = PLACES[side]
            weight = WEIGHTS[side] / (DIVISOR * h)
            shifted[variable + j] = state[variable + j] + move * h
            status = fetch(function, t, shifted, n_arguments, rows)
            if status != 0:
                return status
            for i in range(rows):
                jacobian[offset + i, j] += weight * values[n_arguments + i]
        shifted[variable + j] = state[variable + j]
    return 0


@part
def _velocity_level(c, t, state):
    """g' = G v + g_t."""
    nx, rows = c.nx, c.all_g
    velocity, jacobian = floats(c.all_velocity, rows), float_rows(c.all_jacobian, rows, nx)
    for i in range(rows):
        velocity[i] = 0.0
        for j in range(nx):
            velocity[i] += jacobian[i, j] * state[nx + j]
    if is_given(c.constraint_t):
        status = fetch(c.constraint_t, t, state, nx, rows)
        source = floats(c.constraint_t.block, nx + rows)
        for i in range(rows):
            velocity[i] += source[nx + i]
        return status
    if c.autonomous:
        return 0
    h, source = c.time_increment, floats(c.constraint.block, nx + rows)
    for side in range(4):
        move = PLACES[side]
        weight = WEIGHTS[side] / (DIVISOR * h)
        status = fetch(c.constraint, t + move * h, state, nx, rows)
        if status != 0:
            return status
        for i in range(rows):
            velocity[i] += weight * source[nx + i]
    return 0


@part
def _line_increment(c, state):
    """The parameter step along (1, v) that moves no coordinate, and not the time, by more than its increment allows."""
    increments = floats(c.increments, 2 * c.nx)
    speed = 0.0 if c.autonomous else 1.0 / c.time_increment
    for j in range(c.nx):
        speed = max(speed, abs(state[c.nx + j]) / increments[j])
    return speed


@part
def _second_difference(c, t, state):
    """bias = (G v)_q v + 2 G_t v + g_tt = d^2/ds^2 g(t + s, q + s v) at s = 0, to sixth order."""
    nx, rows = c.nx, c.all_g
    bias, source = floats(c.all_bias, rows), floats(c.constraint.block, nx + rows)
    shifted = floats(c.shifted, state.size)
    for i in range(rows):
        bias[i] = 0.0
    speed = _line_increment(c, state)
    if speed == 0.0:
        return 0
    s = 4.0 / speed
    for side in range(-3, 4):
        weight = (-490.0, 270.0, -27.0, 2.0)[abs(side)] / (180.0 * s * s)
        for j in range(nx):
            shifted[j] = state[j] + side * s * state[nx + j]
        status = fetch(c.constraint, t if c.autonomous else t + side * s, shifted, nx, rows)
        if status != 0:
            return status
        for i in range(rows):
            bias[i] += weight * source[nx + i]
    return 0


@part
def _evaluate_nonholonomic(c, t, state, what):
    nx, rows, first = c.nx, c.all_v, c.all_g
    if what & VELOCITY:
        status = fetch(c.velocity_constraint, t, state, 2 * nx, rows)
        if status != 0:
            return status
        source, target = floats(c.velocity_constraint.block, 2 * nx + rows), floats(c.all_velocity, first + rows)
        for i in range(rows):
            target[first + i] = source[2 * nx + i]
    if what & JACOBIAN:
        if is_given(c.velocity_jacobian):
            status = fetch(c.velocity_jacobian, t, state, nx, rows * nx)
            if status != 0:
                return status
            _store_jacobian(c, float_rows(c.velocity_jacobian.block + 8 * nx, nx, rows), first)
        else:
            status = _differentiate(c, c.velocity_constraint, t, state, nx, 2 * nx, rows, first)
            if status != 0:
                return status
    if what & BIAS:
        target = floats(c.all_bias, first + rows)
        if is_given(c.velocity_bias):
            status = fetch(c.velocity_bias, t, state, 2 * nx, rows)
            source = floats(c.velocity_bias.block, 2 * nx + rows)
            for i in range(rows):
                target[first + i] = -source[2 * nx + i]
            return status
        return _line_derivative(c, t, state, target)
    return 0


@part
def _line_derivative(c, t, state, target):
    """d/ds c(t + s, q + s v, v) at s = 0, to fourth order."""
    nx, rows, first = c.nx, c.all_v, c.all_g
    shifted, source = floats(c.shifted, state.size), floats(c.velocity_constraint.block, 2 * nx + rows)
    for i in range(rows):
        target[first + i] = 0.0
    for j in range(nx):
        shifted[nx + j] = state[nx + j]
    speed = _line_increment(c, state)
    if speed == 0.0:
        return 0
    for side in range(4):
        move = PLACES[side] / speed
        weight = WEIGHTS[side] / DIVISOR * speed
        for j in range(nx):
            shifted[j] = state[j] + move * state[nx + j]
        status = fetch(c.velocity_constraint, t if c.autonomous else t + move, shifted, 2 * nx, rows)
        if status != 0:
            return status
        for i in range(rows):
            target[first + i] += weight * source[2 * nx + i]
    return 0


@part
def _select(c, what):
    """Copy the rows that are in use."""
    nx, n_c = c.nx, c.n_c
    rows, total = integers(c.rows, n_c), c.all_g + c.all_v
    level, bias = float_rows(c.level, c.m, n_c), floats(c.bias, n_c)
    position, velocity = floats(c.all_position, c.all_g), floats(c.all_velocity, total)
    all_bias, all_jacobian = floats(c.all_bias, total), float_rows(c.all_jacobian, total, nx)
    jacobian, columns = float_rows(c.jacobian, n_c, nx), float_rows(c.columns, nx, n_c)
    for i in range(n_c):
        row = rows[i]
        if i < c.n_g and what & POSITION:
            level[0, i] = position[row]
        if what & VELOCITY:
            level[1, i] = velocity[row]
        if what & BIAS:
            bias[i] = all_bias[row]
        if what & JACOBIAN:
            for j in range(nx):
                jacobian[i, j] = all_jacobian[row, j]
                columns[j, i] = all_jacobian[row, j]


@part
def _evaluate_linear(c, t, what):
    """A linear Hessenberg DAE; the block holds A_1..A_m, B, q, C, C', ..., C^(m), r, ..., r^(m), all by rows.

    g^(l) = sum_{j=1}^{l+1} (l over j-1) C^(l-j+1) z_j + r^(l), Ascher and Petzold (3.5b).
    """
    m, nx, ny = c.m, c.nx, c.n_c
    state, size = floats(c.state, m * nx + ny), c.n_coefficients
    status = fetch(c.coefficients, t, state, 1, size)
    if status != 0:
        return status
    block, first_b, first_q = c.coefficients.block + 8, m * nx * nx, m * nx * nx + nx * ny
    first_c, first_r = first_q + nx, first_q + nx + (m + 1) * ny * nx
    force, drive = floats(c.force, nx), floats(block + 8 * first_q, nx)
    columns, b_rows = float_rows(c.columns, nx, ny), float_rows(block + 8 * first_b, nx, ny)
    jacobian, c_rows = float_rows(c.jacobian, ny, nx), float_rows(block + 8 * first_c, (m + 1) * ny, nx)
    r_rows, z = float_rows(block + 8 * first_r, m + 1, ny), float_rows(c.state, m, nx)
    for i in range(nx):
        force[i] = drive[i]
        for j in range(m):
            a_rows = float_rows(block + 8 * j * nx * nx, nx, nx)
            for k in range(nx):
                force[i] += a_rows[i, k] * z[j, k]
        for k in range(ny):
            columns[i, k] = -b_rows[i, k]
    for i in range(ny):
        for k in range(nx):
            jacobian[i, k] = c_rows[i, k]
    level, bias, binomial = float_rows(c.level, m, ny), floats(c.bias, ny), float_rows(c.binomials, m + 1, m + 1)
    for order in range(m + 1):
        if m == 2 and not what & (POSITION, VELOCITY, BIAS)[order]:
            continue  # who does not ask for a level must find it unchanged
        for i in range(ny):
            value = r_rows[order, i]
            for j in range(min(order + 1, m)):
                for k in range(nx):
                    value += binomial[order, j] * c_rows[(order - j) * ny + i, k] * z[j, k]
            if order < m:
                level[order, i] = value
            else:
                bias[i] = value
    return 0


announce(_evaluate, "the evaluation of mechanical systems")
