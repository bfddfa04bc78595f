"""Evaluating a constrained system: the user's functions, and differences where they are missing.

Compiled once: all other kernels reach it through its address, which stands in the record of the system.
"""

from daedal.kernels.callbacks import is_given
from daedal.kernels.compilation import announce, part, pointer
from daedal.kernels.five_point import DIVISOR, PLACES, WEIGHTS
from daedal.kernels.records import float_rows, floats, integers, record_at
from daedal.kernels.vectors import add_product, copy, transpose
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
        transpose(float_rows(c.mass, nx, nx), float_rows(c.mass_function.block + 8 * nx, nx, nx))
    status = 0
    if what & FORCE:
        status = _fetch_into(c.force_function, t, state, c.n_arguments, floats(c.force, nx))
    if status == 0 and what & RATE and c.n_r > 0:
        status = _fetch_into(c.state_rate, t, state, c.n_arguments, floats(c.rate, c.n_r))
    if status == 0 and what & ALGEBRAIC and c.n_w > 0:
        status = _fetch_into(c.algebraic_equation, t, state, c.n_arguments, floats(c.algebraic, c.n_w))
    if status == 0 and c.n_c > 0:
        if c.all_g > 0:
            status = _evaluate_holonomic(c, t, state, what)
        if status == 0 and c.all_v > 0:
            status = _evaluate_nonholonomic(c, t, state, what)
        if status == 0:
            _select(c, what)
    return status


@part
def _fetch_into(callback, t, state, n_arguments, target):
    status = fetch(callback, t, state, n_arguments, target.size)
    copy(target, floats(callback.block + 8 * n_arguments, target.size))
    return status


@part
def _evaluate_holonomic(c, t, state, what):
    nx, rows = c.nx, c.all_g
    status = 0
    if what & POSITION:
        status = _fetch_into(c.constraint, t, state, nx, floats(c.all_position, rows))
    if status == 0 and what & JACOBIAN:
        status = _evaluate_jacobian(c, c.constraint_jacobian, c.constraint, t, state, 0, rows, 0)
    if status == 0 and what & VELOCITY:
        status = _velocity_level(c, t, state)
    if status == 0 and what & BIAS:
        if not is_given(c.acceleration_bias):
            return _second_difference(c, t, state)
        status = _fetch_bias(c.acceleration_bias, t, state, 2 * nx, floats(c.all_bias, rows))
    return status


@part
def _fetch_bias(callback, t, state, n_arguments, target):
    """The user's gamma = -bias."""
    status = _fetch_into(callback, t, state, n_arguments, target)
    for i in range(target.size):
        target[i] = -target[i]
    return status


@part
def _evaluate_jacobian(c, given, function, t, state, variable, rows, offset):
    """The derivative of a constraint, as it is `given` or by differences with respect to z from `variable` on."""
    nx = c.nx
    jacobian = float_rows(c.all_jacobian + 8 * offset * nx, rows, nx)
    if not is_given(given):
        return _differentiate(c, function, t, state, variable, jacobian)
    status = fetch(given, t, state, nx, rows * nx)
    if status == 0:
        transpose(jacobian, float_rows(given.block + 8 * nx, nx, rows))
    return status


@part
def _differentiate(c, function, t, state, variable, jacobian):
    """d function / d z_j for nx variables from `variable` on: central differences of fourth order."""
    nx, rows, n_arguments = c.nx, jacobian.shape[0], variable + c.nx
    shifted, increments = floats(c.shifted, state.size), floats(c.increments, 2 * nx)
    copy(shifted, state[:n_arguments])
    values = floats(function.block, n_arguments + rows)
    for j in range(nx):
        h = increments[j] if variable == 0 else max(abs(state[variable + j]), 1.0)
        jacobian[:, j] = 0.0
        for side in range(4):
            move = PLACES[side]
            weight = WEIGHTS[side] / (DIVISOR * h)
            shifted[variable + j] = state[variable + j] + move * h
            status = fetch(function, t, shifted, n_arguments, rows)
            if status != 0:
                return status
            for i in range(rows):
                jacobian[i, j] += weight * values[n_arguments + i]
        shifted[variable + j] = state[variable + j]
    return 0


@part
def _velocity_level(c, t, state):
    """g' = G v + g_t."""
    nx, rows = c.nx, c.all_g
    velocity, jacobian = floats(c.all_velocity, rows), float_rows(c.all_jacobian, rows, nx)
    for i in range(rows):
        velocity[i] = add_product(0.0, jacobian[i], state[nx : 2 * nx])
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
    bias[:] = 0.0
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
    status = 0
    if what & VELOCITY:
        status = _fetch_into(c.velocity_constraint, t, state, 2 * nx, floats(c.all_velocity + 8 * first, rows))
    if status == 0 and what & JACOBIAN:
        status = _evaluate_jacobian(c, c.velocity_jacobian, c.velocity_constraint, t, state, nx, rows, first)
    if status == 0 and what & BIAS:
        target = floats(c.all_bias + 8 * first, rows)
        if not is_given(c.velocity_bias):
            return _line_derivative(c, t, state, target)
        status = _fetch_bias(c.velocity_bias, t, state, 2 * nx, target)
    return status


@part
def _line_derivative(c, t, state, target):
    """d/ds c(t + s, q + s v, v) at s = 0, to fourth order."""
    nx, rows = c.nx, c.all_v
    shifted, source = floats(c.shifted, state.size), floats(c.velocity_constraint.block, 2 * nx + rows)
    target[:] = 0.0
    copy(shifted[nx:], state[nx : 2 * nx])
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
            target[i] += weight * source[2 * nx + i]
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
    c_rows = float_rows(block + 8 * first_c, (m + 1) * ny, nx)
    r_rows, z = float_rows(block + 8 * first_r, m + 1, ny), float_rows(c.state, m, nx)
    for i in range(nx):
        force[i] = drive[i]
        for j in range(m):
            force[i] = add_product(force[i], floats(block + 8 * (j * nx + i) * nx, nx), z[j])
        for k in range(ny):
            columns[i, k] = -b_rows[i, k]
    copy(floats(c.jacobian, ny * nx), floats(block + 8 * first_c, ny * nx))
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
