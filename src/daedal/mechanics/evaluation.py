"""Evaluation of a constrained system: the user's functions, and differences for missing derivatives.

Differences are checked with values that are computed anyway. If quotients disagree, new increments are chosen. All
kernels call the evaluator through its address in the record of the system, so that it is compiled once.
"""

from daedal.kernels.callbacks import is_given
from daedal.kernels.compilation import entry, part
from daedal.kernels.records import data_of, float_rows, floats, record_at
from daedal.kernels.vectors import add_product, copy, copy_matrix, transpose
from daedal.mechanics.constrained import (
    ACCURATE,
    ALGEBRAIC,
    BIAS,
    CONSTRAINED,
    EVALUATION,
    FORCE,
    JACOBIAN,
    LINEAR,
    MASS,
    POSITION,
    PROBES,
    RATE,
    VELOCITY,
    fetch,
)
from daedal.mechanics.differences import (
    along_line,
    contradicts,
    did_not_help,
    differentiate,
    differentiate_accurately,
    may_search,
    search,
)


@entry(EVALUATION)
def evaluator(system, t, what):
    """The kernel called by :func:`evaluate`."""
    return _evaluate(record_at(system, CONSTRAINED), t, what)


@part
def _evaluate(c, t, what):
    c.evaluations += 1
    if c.kind == LINEAR:
        return _evaluate_linear(c, t, what)
    nx, state = c.nx, c.state
    if what & MASS and not c.constant_mass:
        status = fetch(c.mass_function, t, state, nx, nx * nx)
        if status != 0:
            return status
        transpose(c.mass, float_rows(c.mass_function.block + 8 * nx, nx, nx))
    status = 0
    if what & FORCE:
        status = _fetch_into(c.force_function, t, state, c.n_arguments, c.force)
    if status == 0 and what & RATE and c.n_r > 0:
        status = _fetch_into(c.state_rate, t, state, c.n_arguments, c.rate)
    if status == 0 and what & ALGEBRAIC and c.n_w > 0:
        status = _fetch_into(c.algebraic_equation, t, state, c.n_arguments, c.algebraic)
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
    status = 0
    if what & POSITION:
        status = _fetch_into(c.constraint, t, state, c.nx, c.all_position)
    if status == 0:
        status, doubtful = _derivatives(c, t, state, what)
    if status == 0 and doubtful and may_search(c):
        status = search(c, t, False)
        if status == 0:
            status, doubtful = _derivatives(c, t, state, what)
            if doubtful:
                did_not_help(c)
    if status == 0 and what & BIAS and is_given(c.acceleration_bias):
        status = _fetch_bias(c.acceleration_bias, t, state, 2 * c.nx, c.all_bias[: c.all_g])
    return status


@part
def _derivatives(c, t, state, what):
    """Compute G, G v + g_t and, unless given, the bias; returns a status, and whether quotients disagree.

    For constraints independent of time, G v is the derivative along the motion, which is checked as well.
    """
    nx, rows, doubtful = c.nx, c.all_g, False
    status = 0
    if what & JACOBIAN:
        jacobian = c.all_jacobian[:rows]
        if is_given(c.constraint_jacobian):
            status = _fetch_jacobian(c.constraint_jacobian, t, state, jacobian)
        elif what & ACCURATE:
            status = differentiate_accurately(c, c.constraint, t, state, jacobian)
        else:
            status, doubtful = differentiate(c, c.constraint, t, state, 0, jacobian)
        if status != 0:
            return status, False
    direct = is_given(c.constraint_t) or what & ACCURATE or (c.autonomous and is_given(c.constraint_jacobian))
    if what & VELOCITY and direct:
        status = _velocity_level(c, t, state)
    if status == 0 and ((what & VELOCITY and not direct) or (what & BIAS and not is_given(c.acceleration_bias))):
        rate = c.probes[PROBES - 1, :rows] if direct else c.all_velocity[:rows]
        status, disagree = along_line(c, c.constraint, t, state, nx, rows, rate, c.all_bias[:rows], 1)
        doubtful = doubtful or disagree
        if status == 0 and what & JACOBIAN and c.autonomous and not is_given(c.constraint_jacobian):
            doubtful = doubtful or contradicts(c, state, rate)
    return status, doubtful


@part
def _velocity_level(c, t, state):
    """Compute g' as the sum G v + g_t, for which g_t is given or formed by differences; returns a status."""
    nx, rows = c.nx, c.all_g
    velocity, jacobian = c.all_velocity[:rows], c.all_jacobian
    status, partial_t = 0, c.probes[PROBES - 1, :rows]
    partial_t[:] = 0.0
    if is_given(c.constraint_t):
        status = _fetch_into(c.constraint_t, t, state, nx, partial_t)
    elif not c.autonomous:
        status, _ = along_line(c, c.constraint, t, state, nx, rows, partial_t, velocity, 0)
    for i in range(rows):
        velocity[i] = add_product(partial_t[i], jacobian[i], state[nx : 2 * nx])
    return status


@part
def _fetch_bias(callback, t, state, n_arguments, target):
    """Store the bias, the negative of the user's gamma; returns a status."""
    status = _fetch_into(callback, t, state, n_arguments, target)
    for i in range(target.size):
        target[i] = -target[i]
    return status


@part
def _fetch_jacobian(given, t, state, jacobian):
    rows, nx = jacobian.shape
    status = fetch(given, t, state, nx, rows * nx)
    if status == 0:
        transpose(jacobian, float_rows(given.block + 8 * nx, nx, rows))
    return status


@part
def _evaluate_nonholonomic(c, t, state, what):
    nx, first = c.nx, c.all_g
    status = 0
    if what & VELOCITY:
        status = _fetch_into(c.velocity_constraint, t, state, 2 * nx, c.all_velocity[first:])
    if status == 0 and what & JACOBIAN:
        jacobian = c.all_jacobian[first:]
        if is_given(c.velocity_jacobian):
            status = _fetch_jacobian(c.velocity_jacobian, t, state, jacobian)
        else:
            status, _ = differentiate(c, c.velocity_constraint, t, state, nx, jacobian)
    if status == 0 and what & BIAS:
        target = c.all_bias[first:]
        if is_given(c.velocity_bias):
            return _fetch_bias(c.velocity_bias, t, state, 2 * nx, target)
        status, doubtful = _line_derivative(c, t, state, target)
        if status == 0 and doubtful and may_search(c):
            status = search(c, t, False)
            if status == 0:
                status, doubtful = _line_derivative(c, t, state, target)
                if doubtful:
                    did_not_help(c)
    return status


@part
def _line_derivative(c, t, state, target):
    """d/ds c(t + s, q + s v, v) at s = 0; returns a status, and whether the result is doubtful."""
    unused = c.probes[PROBES - 1, : c.all_v]
    return along_line(c, c.velocity_constraint, t, state, 2 * c.nx, c.all_v, target, unused, 1)


@part
def _select(c, what):
    """Copy the quantities `what` of the constraints in use from the arrays of all constraints."""
    nx, rows, level, bias = c.nx, c.rows, c.level, c.bias
    position, velocity = c.all_position, c.all_velocity
    all_bias, all_jacobian = c.all_bias, c.all_jacobian
    jacobian, columns = c.jacobian, c.columns
    for i in range(c.n_c):
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
    """Evaluate a linear Hessenberg DAE; the block holds A_1..A_m, B, q, C, C', ..., C^(m), r, ..., r^(m), all by rows.

    g^(l) = sum_{j=1}^{l+1} (l over j-1) C^(l-j+1) z_j + r^(l), Ascher and Petzold (3.5b).
    """
    m, nx, ny = c.m, c.nx, c.n_c
    status = fetch(c.coefficients, t, c.state, 1, c.n_coefficients)
    if status != 0:
        return status
    block, first_b, first_q = c.coefficients.block + 8, m * nx * nx, m * nx * nx + nx * ny
    first_c, first_r = first_q + nx, first_q + nx + (m + 1) * ny * nx
    force, drive = c.force, floats(block + 8 * first_q, nx)
    columns, b_rows = c.columns, float_rows(block + 8 * first_b, nx, ny)
    c_rows = float_rows(block + 8 * first_c, (m + 1) * ny, nx)
    r_rows, z = float_rows(block + 8 * first_r, m + 1, ny), float_rows(data_of(c.state), m, nx)
    for i in range(nx):
        force[i] = drive[i]
        for j in range(m):
            force[i] = add_product(force[i], floats(block + 8 * (j * nx + i) * nx, nx), z[j])
        for k in range(ny):
            columns[i, k] = -b_rows[i, k]
    copy_matrix(c.jacobian, c_rows[:ny])
    level, bias, binomial = c.level, c.bias, c.binomials
    for order in range(m + 1):
        if m == 2 and not what & (POSITION if order == 0 else VELOCITY if order == 1 else BIAS):
            continue  # levels not requested must remain unchanged
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
