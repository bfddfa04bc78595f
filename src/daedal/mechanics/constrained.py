r"""Constrained systems of order m as kernels see them, and everything that is evaluated of them.

    M(t, z) z_m' = f(t, z, r, w, lam) - B lam,   z_j' = z_{j+1} (j < m),   g(t, z_1) = 0,   c(t, z_{m-1}, z_m) = 0

A mechanism has m = 2, z = (q, v) and B = K^T; a linear Hessenberg DAE any m. The rows of K are the gradients of the
holonomic constraints g (n_g of them, which exist on all levels) and of the velocity constraints c (on the two highest
levels only). Level l of a constraint is its l-th derivative,

    g^(l) = K z_{l+1} + ...,    g^(m) = K z_m' + bias.

What the user did not supply is formed by differences that keep about ten digits.
"""

from __future__ import annotations

from math import comb

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from daedal.kernels.callbacks import CALLBACK, COMPILED_CODE_RAISED, UNEVALUABLE, call, is_given, repeat_in_python
from daedal.kernels.compilation import announce, inlined, part, pointer
from daedal.kernels.dense import LU, factor_lu, solve_lu
from daedal.kernels.records import ADDRESS, FLOAT, INTEGER, address_of, floats, integers, record_at

MECHANICAL, LINEAR = 0, 1

# What is to be evaluated.
MASS, FORCE, POSITION, JACOBIAN, VELOCITY, BIAS, RATE, ALGEBRAIC = 1, 2, 4, 8, 16, 32, 64, 128
DYNAMICS = MASS | FORCE | JACOBIAN
ACCELERATION = DYNAMICS | BIAS

FUNCTIONS = (
    "mass_function",
    "force_function",
    "constraint",
    "constraint_jacobian",
    "constraint_t",
    "acceleration_bias",
    "velocity_constraint",
    "velocity_jacobian",
    "velocity_bias",
    "state_rate",
    "algebraic_equation",
    "coefficients",
)
SIZES = ("kind", "m", "nx", "n_g", "n_c", "n_r", "n_w", "all_g", "all_v", "n_arguments", "n_coefficients")
ARRAYS = (
    "rows",
    "state",
    "shifted",
    "mass",
    "force",
    "columns",
    "jacobian",
    "level",
    "bias",
    "rate",
    "algebraic",
    "all_position",
    "all_velocity",
    "all_bias",
    "all_jacobian",
    "increments",
    "damping",
    "acceleration",
    "multipliers",
    "solution",
    "inner",
    "binomials",
)

CONSTRAINED = np.dtype(
    [
        *[(name, INTEGER) for name in SIZES],
        ("autonomous", INTEGER),
        ("constant_mass", INTEGER),
        ("uses_multipliers", INTEGER),
        ("damped", INTEGER),  # whether Baumgarte's terms are added to the bias
        ("time_increment", FLOAT),
        *[(name, CALLBACK) for name in FUNCTIONS],
        *[(name, ADDRESS) for name in ARRAYS],
        ("kkt", LU),
        ("projection", LU),
        ("inner_matrix", LU),
        ("evaluations", INTEGER),
        ("evaluator", ADDRESS),
        ("accelerator", ADDRESS),
    ]
)


def array_sizes(m: int, nx: int, n_c: int, all_g: int, all_v: int, n_r: int, n_w: int) -> dict[str, int]:
    """Lengths of the arrays of a CONSTRAINED record."""
    rows, state = all_g + all_v, m * nx + n_r + n_w + all_g + all_v
    inner = n_c + n_w
    return {
        "rows": n_c,
        "state": state,
        "shifted": state,
        "mass": nx * nx,
        "force": nx,
        "columns": nx * n_c,
        "jacobian": n_c * nx,
        "level": m * n_c,
        "bias": n_c,
        "rate": n_r,
        "algebraic": n_w,
        "all_position": all_g,
        "all_velocity": rows,
        "all_bias": rows,
        "all_jacobian": rows * nx,
        "increments": 2 * nx,
        "damping": m + 1,
        "acceleration": nx,
        "multipliers": n_c,
        "solution": nx + n_c,
        "inner": 4 * inner,
        "binomials": (m + 1) * (m + 1),
    }


def binomials(m: int) -> np.ndarray:
    """The binomial coefficients (i over j), i, j = 0..m."""
    return np.array([[comb(i, j) for j in range(m + 1)] for i in range(m + 1)], dtype=float).ravel()


@part
def fetch(callback, t, state, n_arguments, n_result):
    """Call a function of the user with the first entries of `state`; the result stands behind them in the block."""
    block = floats(callback.block, n_arguments + n_result)
    for i in range(n_arguments):
        block[i] = state[i]
    status = call(callback, t)
    if status == COMPILED_CODE_RAISED:
        for i in range(n_arguments):
            block[i] = state[i]
        status = repeat_in_python(callback, t)
    if status != 0:
        return status
    check = 0.0
    for i in range(n_arguments, n_arguments + n_result):
        check += block[i] * 0.0
    return 0 if check == 0.0 else UNEVALUABLE


@part
def load_state(c, z, r):
    """Write z and r to ``c.state``; w and lam stay as they are, as a guess."""
    n = c.m * c.nx
    state = floats(c.state, n + c.n_r)
    for i in range(n):
        state[i] = z[i]
    for i in range(c.n_r):
        state[n + i] = r[i]


@part
def load(c, z, r, w, lam):
    """Write the variables to ``c.state``; multipliers of rows that were left out as redundant are zero."""
    load_state(c, z, r)
    n = c.m * c.nx
    state, rows = floats(c.state, n + c.n_r + c.n_w + c.all_g + c.all_v), integers(c.rows, c.n_c)
    for i in range(c.n_w):
        state[n + c.n_r + i] = w[i]
    if c.uses_multipliers:
        for i in range(c.n_c):
            state[n + c.n_r + c.n_w + rows[i]] = lam[i]


@intrinsic
def _call_evaluator(typingctx, address, system, t, what):
    def codegen(context, builder, signature, args):
        function_type = ir.FunctionType(ir.IntType(64), [ir.IntType(64), ir.DoubleType(), ir.IntType(64)])
        return builder.call(builder.inttoptr(args[0], function_type.as_pointer()), args[1:])

    return types.int64(types.int64, types.int64, types.float64, types.int64), codegen


@inlined
def evaluate(c, t, what):
    """Evaluate `what` at the variables in ``c.state``; returns 0 or the status of a user's function."""
    return _call_evaluator(c.evaluator, address_of(c), t, what)


@inlined
def accelerate(c, t):
    """Accelerations and multipliers at the variables in ``c.state``, with everything they need evaluated."""
    return _call_evaluator(c.accelerator, address_of(c), t, 0)


@pointer(types.int64(types.int64, types.float64, types.int64))
def evaluator(system, t, what):
    """What :func:`evaluate` calls: compiled once, it is reached through its address by every kernel."""
    return _evaluate(record_at(system, CONSTRAINED), t, what)


@pointer(types.int64(types.int64, types.float64, types.int64))
def accelerator(system, t, what):
    """What :func:`accelerate` calls."""
    return _accelerate(record_at(system, CONSTRAINED), t)


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
        source, mass = floats(c.mass_function.block, nx + nx * nx), floats(c.mass, nx * nx)
        for i in range(nx):
            for j in range(nx):
                mass[i * nx + j] = source[nx + j * nx + i]
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
            _store_jacobian(c, floats(c.constraint_jacobian.block, nx + rows * nx), nx, rows, 0)
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
def _store_jacobian(c, source, first, rows, offset):
    jacobian = floats(c.all_jacobian, (c.all_g + c.all_v) * c.nx)
    for i in range(rows):
        for j in range(c.nx):
            jacobian[(offset + i) * c.nx + j] = source[first + j * rows + i]


@part
def _differentiate(c, function, t, state, variable, n_arguments, rows, offset):
    """d function / d z_j for nx variables from `variable` on: central differences of fourth order."""
    nx = c.nx
    shifted, increments = floats(c.shifted, state.size), floats(c.increments, 2 * nx)
    jacobian = floats(c.all_jacobian, (c.all_g + c.all_v) * nx)
    for i in range(n_arguments):
        shifted[i] = state[i]
    values = floats(function.block, n_arguments + rows)
    for j in range(nx):
        h = increments[j] if variable == 0 else max(abs(state[variable + j]), 1.0)
        for i in range(rows):
            jacobian[(offset + i) * nx + j] = 0.0
        for side in range(4):
            move = (-2.0, -1.0, 1.0, 2.0)[side]
            weight = (1.0, -8.0, 8.0, -1.0)[side] / (12.0 * h)
            shifted[variable + j] = state[variable + j] + move * h
            status = fetch(function, t, shifted, n_arguments, rows)
            if status != 0:
                return status
            for i in range(rows):
                jacobian[(offset + i) * nx + j] += weight * values[n_arguments + i]
        shifted[variable + j] = state[variable + j]
    return 0


@part
def _velocity_level(c, t, state):
    """g' = G v + g_t."""
    nx, rows = c.nx, c.all_g
    velocity, jacobian = floats(c.all_velocity, rows), floats(c.all_jacobian, rows * nx)
    for i in range(rows):
        velocity[i] = 0.0
        for j in range(nx):
            velocity[i] += jacobian[i * nx + j] * state[nx + j]
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
        move = (-2.0, -1.0, 1.0, 2.0)[side]
        weight = (1.0, -8.0, 8.0, -1.0)[side] / (12.0 * h)
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
        status = fetch(c.constraint, t + side * s, shifted, nx, rows)
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
            _store_jacobian(c, floats(c.velocity_jacobian.block, nx + rows * nx), nx, rows, first)
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
        move = (-2.0, -1.0, 1.0, 2.0)[side] / speed
        weight = (1.0, -8.0, 8.0, -1.0)[side] / 12.0 * speed
        for j in range(nx):
            shifted[j] = state[j] + move * state[nx + j]
        status = fetch(c.velocity_constraint, t + move, shifted, 2 * nx, rows)
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
    level, bias = floats(c.level, c.m * n_c), floats(c.bias, n_c)
    position, velocity = floats(c.all_position, c.all_g), floats(c.all_velocity, total)
    all_bias, all_jacobian = floats(c.all_bias, total), floats(c.all_jacobian, total * nx)
    jacobian, columns = floats(c.jacobian, n_c * nx), floats(c.columns, nx * n_c)
    for i in range(n_c):
        row = rows[i]
        if i < c.n_g and what & POSITION:
            level[i] = position[row]
        if what & VELOCITY:
            level[n_c + i] = velocity[row]
        if what & BIAS:
            bias[i] = all_bias[row]
        if what & JACOBIAN:
            for j in range(nx):
                jacobian[i * nx + j] = all_jacobian[row * nx + j]
                columns[j * n_c + i] = all_jacobian[row * nx + j]


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
    data = floats(c.coefficients.block + 8, size)
    force, columns, jacobian = floats(c.force, nx), floats(c.columns, nx * ny), floats(c.jacobian, ny * nx)
    b, q = m * nx * nx, m * nx * nx + nx * ny
    first_c = q + nx
    first_r = first_c + (m + 1) * ny * nx
    for i in range(nx):
        force[i] = data[q + i]
        for j in range(m * nx):
            force[i] += data[(j // nx) * nx * nx + i * nx + j % nx] * state[j]
        for k in range(ny):
            columns[i * ny + k] = -data[b + i * ny + k]
    for k in range(ny * nx):
        jacobian[k] = data[first_c + k]
    level, bias, binomial = floats(c.level, m * ny), floats(c.bias, ny), floats(c.binomials, (m + 1) * (m + 1))
    for order in range(m + 1):
        if m == 2 and not what & (POSITION, VELOCITY, BIAS)[order]:
            continue  # who does not ask for a level must find it unchanged
        for i in range(ny):
            value = data[first_r + order * ny + i]
            for j in range(min(order + 1, m)):
                factor = binomial[order * (m + 1) + j]
                at = first_c + ((order - j) * ny + i) * nx
                for k in range(nx):
                    value += factor * data[at + k] * state[j * nx + k]
            if order < m:
                level[order * ny + i] = value
            else:
                bias[i] = value
    return 0


@inlined
def rows_at(c, level):
    """How many constraints exist on a level: the holonomic ones below m - 1, all of them from there on."""
    return c.n_g if level < c.m - 1 else c.n_c


@part
def damped_bias(c, i):
    """bias + sum_l alpha_l g^(l): what is added to K z_m' on the acceleration level, with Baumgarte's terms.

    The polynomial of a velocity constraint is tau + alpha, with alpha the last entry of `damping`.
    """
    damping, level = floats(c.damping, c.m + 1), floats(c.level, c.m * c.n_c)
    value = floats(c.bias, c.n_c)[i]
    if not c.damped:
        return value
    if i < c.n_g:
        for order in range(c.m):
            value += damping[order] * level[order * c.n_c + i]
    else:
        value += damping[c.m] * level[(c.m - 1) * c.n_c + i]
    return value


@part
def factor_augmented(c):
    """Factor [[M, B], [K, 0]] as evaluated last."""
    nx, n_c = c.nx, c.n_c
    n = nx + n_c
    data, mass = floats(c.kkt.data, n * n), floats(c.mass, nx * nx)
    jacobian, columns = floats(c.jacobian, n_c * nx), floats(c.columns, nx * n_c)
    for j in range(nx):
        for i in range(nx):
            data[j * n + i] = mass[i * nx + j]
        for i in range(n_c):
            data[j * n + nx + i] = jacobian[i * nx + j]
    for j in range(n_c):
        for i in range(nx):
            data[(nx + j) * n + i] = columns[i * n_c + j]
        for i in range(n_c):
            data[(nx + j) * n + nx + i] = 0.0
    return factor_lu(c.kkt)


@part
def solve_augmented(c):
    """z_m' and lam from [[M, B], [K, 0]] (z_m', lam) = (f, -bias - sum alpha_l g^(l)) with the factors at hand."""
    nx, n_c = c.nx, c.n_c
    solution, force = floats(c.solution, nx + n_c), floats(c.force, nx)
    for i in range(nx):
        solution[i] = force[i]
    for i in range(n_c):
        solution[nx + i] = -damped_bias(c, i)
    solve_lu(c.kkt, solution)
    acceleration, multipliers = floats(c.acceleration, nx), floats(c.multipliers, n_c)
    for i in range(nx):
        acceleration[i] = solution[i]
    for i in range(n_c):
        multipliers[i] = solution[nx + i]


@part
def _accelerate(c, t):
    """Accelerations and multipliers.

    Forces that depend on lam, and algebraic variables w, make the augmented system nonlinear: Newton's method on
    (lam, w). Its matrix is that of the index test, G M^{-1} (G^T - f_lam + f_w d_w^{-1} d_lam).
    """
    status = evaluate(c, t, ACCELERATION | (POSITION | VELOCITY if c.damped else 0))
    if status == 0:
        status = factor_augmented(c)
    if status != 0:
        return status
    if c.uses_multipliers or c.n_w > 0:
        return accelerate_coupled(c, t)
    solve_augmented(c)
    return 0


@part
def _coupled_residual(c, t, u, residual):
    """lam_augmented(lam, w) - lam and d(lam, w) for u = (lam, w)."""
    n, n_c = c.m * c.nx + c.n_r, c.n_c
    state, rows = floats(c.state, n + c.n_w + c.all_g + c.all_v), integers(c.rows, n_c)
    for i in range(c.n_w):
        state[n + i] = u[n_c + i]
    if c.uses_multipliers:
        for i in range(n_c):
            state[n + c.n_w + rows[i]] = u[i]
    status = evaluate(c, t, FORCE | ALGEBRAIC)
    if status != 0:
        return status
    solve_augmented(c)
    multipliers, algebraic = floats(c.multipliers, n_c), floats(c.algebraic, c.n_w)
    for i in range(n_c):
        residual[i] = multipliers[i] - u[i]
    for i in range(c.n_w):
        residual[n_c + i] = algebraic[i]
    return 0


@part
def accelerate_coupled(c, t):
    """Newton's method on (lam, w) with the factors of the augmented matrix at hand."""
    n, n_c, size = c.m * c.nx + c.n_r, c.n_c, c.n_c + c.n_w
    state, rows = floats(c.state, n + c.n_w + c.all_g + c.all_v), integers(c.rows, n_c)
    inner = floats(c.inner, 4 * size)
    u, residual, shifted = inner[:size], inner[size : 2 * size], inner[2 * size : 3 * size]
    matrix = floats(c.inner_matrix.data, size * size)
    for i in range(n_c):
        u[i] = state[n + c.n_w + rows[i]] if c.uses_multipliers else floats(c.multipliers, n_c)[i]
    for i in range(c.n_w):
        u[n_c + i] = state[n + i]
    for _ in range(25):
        status = _coupled_residual(c, t, u, residual)
        if status != 0:
            return status
        largest = 0.0
        for i in range(size):
            largest = max(largest, abs(u[i]), abs(residual[i]))
        for j in range(size):
            kept, delta = u[j], 1e-7 * max(abs(u[j]), 1e-3 * largest, 1e-8)
            u[j] = kept + delta
            status = _coupled_residual(c, t, u, shifted)
            u[j] = kept
            if status != 0:
                return status
            for i in range(size):
                matrix[j * size + i] = (shifted[i] - residual[i]) / delta
        if factor_lu(c.inner_matrix) != 0:
            return 1
        solve_lu(c.inner_matrix, residual)
        change = 0.0
        for i in range(size):
            u[i] -= residual[i]
            change = max(change, abs(residual[i]))
        if change <= 1e-13 * (largest + 1e-300):
            return _coupled_residual(c, t, u, shifted)
    return UNEVALUABLE


announce(_evaluate, "the evaluation of mechanical systems")
