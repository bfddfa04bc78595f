"""Newton's method for a formulation: in small blocks, or with one matrix from exact derivatives.

With the blocks of the iteration matrix for m = 2 (rows: kinematics, dynamics, top and lower constraints)

    cj dq - dv - D dmu                        = a          F_q dq + (cj M + F_v) dv + B dlam = b
    G dq                                      = d          E_q dq + E_v dv                   = c

the first and last rows give dq = P dv + p with P = (I - D (G D)^{-1} G) / cj, which takes one solve of the size of the
lower constraints. What remains is an augmented system for dv and dlam,

    [ cj M + F_v + F_q P   B ] [ dv   ]   [ b - F_q p ]
    [ E_v + E_q P          0 ] [ dlam ] = [ c - E_q p ].

Without F_q, F_v and E_q these are the two systems of Wijckmans (6.53); including them is the full Newton method, as
needed for stiff forces and curved constraints.

Small blocks are not available with additional states r, algebraic variables w, forces that depend on multipliers,
multipliers as derivatives, the minimal extension, and the form of Fuehrer and Leimkuhler. The matrix dF/dy + cj dF/dy'
is then assembled from the exact derivatives of the mechanism. In D mu, mu vanishes for the exact solution, so the
derivative of D is neglected.
"""

from daedal.kernels.callbacks import NATIVE, UNEVALUABLE, owner
from daedal.kernels.compilation import entry, part
from daedal.kernels.dense import SINGULAR, factor_lu, solve_lu
from daedal.kernels.linear import PREPARE, SOLVE
from daedal.kernels.matrix import JACOBIAN_UNEVALUABLE, increment
from daedal.kernels.records import address_of, float_rows, floats, record_at
from daedal.kernels.system import SYSTEM
from daedal.kernels.vectors import add_product, copy, copy_matrix
from daedal.mechanics.augmented import solve_augmented
from daedal.mechanics.constrained import (
    BIAS,
    FORCE,
    JACOBIAN,
    MASS,
    VELOCITY,
    acceleration_by,
    balance_by,
    derivatives,
    evaluate,
    level_by,
    linearise,
)
from daedal.mechanics.formulations.formulation import ACCELERATION, DYNAMICS, FUEHRER_LEIMKUHLER, MINIMAL_EXTENSION
from daedal.mechanics.formulations.residuals import (
    FORM,
    accelerate_with_levels,
    combination,
    damping_of,
    dynamic_rows,
    evaluate_needed,
    load_unknowns,
    multipliers_at,
    set_direction,
    slope_of_velocity,
)

_WEIGHT_SHARE = 2.0**-13  # smallest increment as a fraction of a component's weight, u^(1/4)


@entry(PREPARE)
def condensed_prepare(equations, linear, t, y, yp, r, cj, h, weights):
    """Form the blocks, by differences if there are no exact derivatives, and factor the two small matrices."""
    counters = record_at(equations, SYSTEM)
    form = record_at(owner(counters.residual.block), FORM)
    system = form.system
    counters.jacobians += 1
    counters.factorisations += 1
    n = form.n
    point, slope = floats(y, n), floats(yp, n)
    status = _base(form, system, t, point, slope)
    if status == 0 and (address_of(form.linearisation) == 0 or _exact(form, system, t, point, slope) != 0):
        status = _differences(counters, form, system, t, point, slope, h, floats(weights, n))
    if status != 0:
        return status if status != UNEVALUABLE else JACOBIAN_UNEVALUABLE
    form.cj = cj
    if _map_positions(form, system) != 0:
        return SINGULAR
    _differentiate_levels(form, system)
    _assemble(form, system)
    _keep_geometry(form, system)
    return factor_lu(form.condensed)


@part
def _base(form, system, t, y, yp):
    load_unknowns(form, system, y, yp)
    status = evaluate_needed(form, system, t)
    if status == 0 and (form.low > 0 or form.top == ACCELERATION):
        status = set_direction(form, system, t)
    return status


@part
def _exact(form, system, t, y, yp):
    """F_q, F_v and E_q, E_v from exact derivatives, without the contributions of K and M; returns a status."""
    nx, n_c, n_top, at = system.nx, system.n_c, form.n_top, multipliers_at(system)
    lin, accelerated = form.linearisation, form.top == ACCELERATION
    slope, lam = yp[nx:], y[at:]
    if accelerated:
        slope, lam = system.acceleration, system.multipliers
    status = linearise(lin, system, t, slope, lam)
    if status != 0:
        return status
    found, column, alpha = derivatives(lin), form.scratch[0, :nx], form.alpha
    force_q, force_v, rows_q, rows_v = form.force_q, form.force_v, form.rows_q, form.rows_v
    for j in range(nx):
        if accelerated:
            acceleration_by(system, found, damping_of(form), j, column)
            copy(force_q[:, j], column)
            acceleration_by(system, found, damping_of(form), nx + j, column)
            copy(force_v[:, j], column)
        else:
            copy(force_q[:, j], found[j, :nx])
            copy(force_v[:, j], found[nx + j, :nx])
        for k in range(n_top):
            row = n_c - n_top + k
            rows_q[k, j] = level_by(system, found, 1, row, j, alpha[1] if row < system.n_g else 1.0, 0.0, 0.0)
            rows_v[k, j] = 0.0
    return 0


@part
def _differences(counters, form, system, t, y, yp, h, weights):
    """F_q, F_v and E_q, E_v; the contributions of K and M are added when the matrix is assembled."""
    nx, n_c, n_top = system.nx, system.n_c, form.n_top
    accelerated = form.top == ACCELERATION
    base, state = form.scratch[0], system.state
    dynamic_rows(form, system, y, yp, base)
    for k in range(n_top):
        base[nx + k] = combination(form, system, n_c - n_top + k)
    force, rows = form.force_v, form.rows_v
    for j in range(nx):
        kept = state[nx + j]
        delta = increment(y[nx + j], yp[nx + j], h, weights[nx + j], _WEIGHT_SHARE)
        state[nx + j] = kept + delta
        counters.jacobian_residuals += 1
        status = evaluate(system, t, FORCE | BIAS | VELOCITY if accelerated else FORCE)
        if status == 0 and accelerated:
            solve_augmented(system, damping_of(form))
        state[nx + j] = kept
        if status != 0:
            return status
        _quotients(form, system, y, yp, delta, j, force, rows, not accelerated)
    force, rows = form.force_q, form.rows_q
    what = form.needed & (MASS | FORCE | JACOBIAN | VELOCITY | BIAS)
    for j in range(nx):
        kept = state[j]
        delta = increment(y[j], yp[j], h, weights[j], _WEIGHT_SHARE)
        state[j] = kept + delta
        counters.jacobian_residuals += 1
        status = accelerate_with_levels(form, system, t) if accelerated else evaluate(system, t, what)
        state[j] = kept
        if status != 0:
            return status
        _quotients(form, system, y, yp, delta, j, force, rows, True)
    return _base(form, system, t, y, yp)


@part
def _quotients(form, system, y, yp, delta, j, force, rows, with_rows):
    """Compute column j of the difference quotients of the dynamics and, if `with_rows`, of the top rows."""
    nx, n_c, n_top = system.nx, system.n_c, form.n_top
    base, value = form.scratch[0], form.scratch[1]
    dynamic_rows(form, system, y, yp, value)
    for i in range(nx):
        force[i, j] = (value[i] - base[i]) / delta
    for k in range(n_top):
        rows[k, j] = 0.0
        if with_rows:
            rows[k, j] = (combination(form, system, n_c - n_top + k) - base[nx + k]) / delta


@part
def _map_positions(form, system):
    """Compute P = (I - D (G D)^{-1} G) / cj and the factors of G D; returns a status."""
    nx, n_g, cj, positions = system.nx, system.n_g, form.cj, form.map
    for i in range(nx):
        for j in range(nx):
            positions[i, j] = 1.0 / cj if i == j else 0.0
    if form.low == 0:
        return 0
    jacobian, direction = system.jacobian, form.direction
    by_columns, column = form.low_rows.data, form.scratch[0, :n_g]
    for i in range(n_g):
        for k in range(n_g):
            by_columns[k, i] = add_product(0.0, jacobian[i], direction[:, k])
    if factor_lu(form.low_rows) != 0:
        return SINGULAR
    for j in range(nx):
        copy(column, jacobian[:n_g, j])
        solve_lu(form.low_rows, column)
        for i in range(nx):
            positions[i, j] -= add_product(0.0, direction[i], column) / cj
    return 0


@part
def _differentiate_levels(form, system):
    """Add to E_q and E_v the contributions of K: alpha_0 K and alpha_1 K (alpha_1 = 1 for velocity constraints)."""
    nx, n_c, n_top = system.nx, system.n_c, form.n_top
    rows_q, rows_v, jacobian, alpha = form.rows_q, form.rows_v, system.jacobian, form.alpha
    for k in range(n_top):
        row = n_c - n_top + k
        holonomic = row < system.n_g
        for j in range(nx):
            if holonomic:
                rows_q[k, j] += alpha[0] * jacobian[row, j]
            rows_v[k, j] += (alpha[1] if holonomic else 1.0) * jacobian[row, j]


@part
def _assemble(form, system):
    """Fill the matrix of the condensed system for dv and dlam, column by column."""
    nx, n_c, n_top = system.nx, system.n_c, form.n_top
    dynamic, by_columns, positions = form.top == DYNAMICS, form.condensed.data, form.map
    mass, columns, direction = system.mass, system.columns, form.direction
    force_q, force_v, rows_q, rows_v = form.force_q, form.force_v, form.rows_q, form.rows_v
    for i in range(nx):
        for j in range(nx):
            leading = mass[i, j] if dynamic else (1.0 if i == j else 0.0)
            by_columns[j, i] = add_product(form.cj * leading + force_v[i, j], force_q[i], positions[:, j])
        for k in range(n_top):
            by_columns[nx + k, i] = columns[i, k] if dynamic else -direction[i, n_c - n_top + k]
    for k in range(n_top):
        for j in range(nx):
            by_columns[j, nx + k] = add_product(rows_v[k, j], rows_q[k], positions[:, j])
        for i in range(n_top):
            by_columns[nx + i, nx + k] = 0.0


@part
def _keep_geometry(form, system):
    """Save the G and D that belong to the factored matrix, since later residuals overwrite the current ones."""
    copy_matrix(form.kept_jacobian, system.jacobian)
    copy_matrix(form.kept_direction, form.direction)


@entry(SOLVE)
def condensed_solve(equations, linear, t, y, yp, r, cj, cj_matrix, weights, b):
    """b := c G^{-1} b, with the correction c = 2 / (1 + cj / cj_matrix) of BCP (5.2.12) for an old matrix."""
    form = record_at(owner(record_at(equations, SYSTEM).residual.block), FORM)
    rhs = floats(b, form.n)
    correction = 2.0 / (1.0 + cj / cj_matrix)
    for i in range(form.n):
        rhs[i] *= correction
    _back_substitute(form, form.system, rhs)
    return 0


@part
def _back_substitute(form, system, b):
    """Solve the condensed system for dv and dlam, then compute dq = P dv + p and dmu, all in place of `b`."""
    nx, n_g, n_top, at = system.nx, system.n_g, form.n_top, multipliers_at(system)
    positions, rows_q, force_q = form.map, form.rows_q, form.force_q
    rhs, shift = form.scratch[0, : nx + n_top], form.scratch[1]
    _shift_positions(form, system, b, shift)
    for i in range(nx):
        value = b[nx + i]
        for j in range(nx):
            value -= force_q[i, j] * shift[j]
        rhs[i] = value
    for k in range(n_top):
        value = b[at + k]
        for j in range(nx):
            value -= rows_q[k, j] * shift[j]
        rhs[nx + k] = value
    solve_lu(form.condensed, rhs)
    if form.low > 0:
        low, kept_jacobian = b[at + n_top : at + n_top + n_g], form.kept_jacobian
        for k in range(n_g):
            value = form.cj * low[k]
            for j in range(nx):
                value -= kept_jacobian[k, j] * (rhs[j] + b[j])
            low[k] = value
        solve_lu(form.low_rows, low)
    for i in range(nx):
        b[i] = add_product(shift[i], positions[i], rhs[:nx])
    copy(b[nx:], rhs[:nx])
    copy(b[at:], rhs[nx:])


@part
def _shift_positions(form, system, b, shift):
    """Write p = P a + D (G D)^{-1} d to `shift`."""
    nx, n_g, positions = system.nx, system.n_g, form.map
    for i in range(nx):
        shift[i] = add_product(0.0, positions[i], b[:nx])
    if form.low == 0:
        return
    low, kept_direction = form.scratch[2, :n_g], form.kept_direction
    at = multipliers_at(system) + form.n_top
    copy(low, b[at : at + n_g])
    solve_lu(form.low_rows, low)
    for i in range(nx):
        shift[i] = add_product(shift[i], kept_direction[i], low)


@entry(NATIVE)
def form_jacobian(t, block):
    """The matrix of a formulation; the block is [y | y' | cj | matrix, column by column]."""
    form = record_at(owner(block), FORM)
    system = form.system
    n = form.n
    y, yp, cj = floats(block, n), floats(block + 8 * n, n), floats(block + 16 * n, 1)[0]
    matrix = float_rows(block + 16 * n + 8, n, n)
    load_unknowns(form, system, y, yp)
    status = evaluate_needed(form, system, t)
    if status == 0 and (form.low > 0 or form.top == ACCELERATION):
        status = set_direction(form, system, t)
    if status == 0:
        status = _linearise(form, system, t, y, yp)
    if status != 0:
        return UNEVALUABLE if status > 0 else status
    matrix[:, :] = 0.0
    found = derivatives(form.linearisation)
    for j in range(system.nx):
        _coordinate(form, system, found, matrix, j, cj)
    _further(form, system, found, matrix, cj)
    _multipliers(form, system, found, matrix, cj)
    return 0


@part
def _linearise(form, system, t, y, yp):
    lin, slope = form.linearisation, form.scratch[0]
    if form.top == ACCELERATION:
        return linearise(lin, system, t, system.acceleration, system.multipliers)
    top = (yp if form.lowered else y)[multipliers_at(system) :]
    for j in range(system.nx):
        slope[j] = slope_of_velocity(form, system, y, yp, j)
    return linearise(lin, system, t, slope, top)


@part
def _coordinate(form, system, found, matrix, j, cj):
    """Fill the columns of q_j and v_j, and the column of v_j' if v_j' is a separate unknown."""
    nx = system.nx
    matrix[j, j] = cj
    matrix[nx + j, j] = -1.0
    _column(form, system, found, j, 1.0, 0.0, 0.0, matrix[j])
    place = form.pivot[1, j] if form.variant == MINIMAL_EXTENSION else 0
    if place > 0:
        _column(form, system, found, j, 0.0, 1.0, 0.0, matrix[nx + j])
        _column(form, system, found, j, 0.0, 0.0, 1.0, matrix[form.n - system.n_c + place - 1])
    else:
        _column(form, system, found, j, 0.0, 1.0, cj, matrix[nx + j])
    if form.top == ACCELERATION:
        matrix[nx + j, nx + j] += cj


@part
def _column(form, system, found, j, fq, fv, fa, target):
    """Add the derivatives with respect to coordinate j, on which q, v and v' depend with the factors fq, fv, fa."""
    nx, n_c, n_g, n_r = system.nx, system.n_c, system.n_g, system.n_r
    if form.top == ACCELERATION:
        acceleration_by(system, found, damping_of(form), j if fq != 0.0 else nx + j, target[nx : 2 * nx])
    else:
        for i in range(nx):
            target[nx + i] += balance_by(system, found, i, j, fq, fv, fa)
    for i in range(n_r):
        target[2 * nx + i] += fq * found[j, nx + i] + fv * found[nx + j, nx + i]
    at, alpha = multipliers_at(system), form.alpha
    for k in range(form.n_top):
        row = n_c - form.n_top + k
        if row < n_g:
            target[at + k] += alpha[0] * level_by(system, found, 0, row, j, fq, fv, fa)
            target[at + k] += alpha[1] * level_by(system, found, 1, row, j, fq, fv, fa)
        else:
            target[at + k] += level_by(system, found, 1, row, j, fq, fv, fa)
    at += form.n_top
    for level in range(form.low):
        for k in range(n_g):
            target[at + level * n_g + k] += level_by(system, found, level, k, j, fq, fv, fa)
    at += form.low * n_g
    if form.top != ACCELERATION:
        for i in range(system.n_w):
            target[at + i] += fq * found[j, nx + n_r + i] + fv * found[nx + j, nx + n_r + i]
    if form.variant == MINIMAL_EXTENSION:
        _replaced_rows(form, system, found, j, fq, fv, fa, target)


@part
def _replaced_rows(form, system, found, j, fq, fv, fa, target):
    """Rows of the minimal extension: g = 0 replaces q_i' = v_i, and the acceleration level has separate rows."""
    nx, n_c = system.nx, system.n_c
    pivot, extra = form.pivot[0], form.n - n_c
    for i in range(nx):
        if pivot[i] > 0:
            target[i] = level_by(system, found, 0, pivot[i] - 1, j, fq, fv, fa)
    for k in range(n_c):
        target[extra + k] += level_by(system, found, 2, k, j, fq, fv, fa)


@part
def _further(form, system, found, matrix, cj):
    """Fill the columns of r and w."""
    nx, n_r = system.nx, system.n_r
    w_at = multipliers_at(system) + form.n_top + form.low * system.n_g
    for j in range(n_r):
        target = matrix[2 * nx + j]
        if form.top == ACCELERATION:
            acceleration_by(system, found, damping_of(form), 2 * nx + j, target[nx : 2 * nx])
            for i in range(n_r):
                target[2 * nx + i] += found[2 * nx + j, nx + i]
        else:
            _add(system, found[2 * nx + j], 1.0, w_at, target)
        target[2 * nx + j] += cj
    if form.top != ACCELERATION:
        for j in range(system.n_w):
            _add(system, found[2 * nx + n_r + j], 1.0, w_at, matrix[w_at + j])


@part
def _add(system, column, factor, w_at, target):
    """Add the derivatives of dynamics, r' - f_d and d with respect to an unknown other than a coordinate."""
    nx, n_r = system.nx, system.n_r
    for i in range(nx):
        target[nx + i] += factor * column[i]
    for i in range(n_r):
        target[2 * nx + i] += factor * column[nx + i]
    for i in range(system.n_w):
        target[w_at + i] += factor * column[nx + n_r + i]


@part
def _multipliers(form, system, found, matrix, cj):
    """Fill the columns of lam and mu, or of the unknowns whose derivatives are lam and mu."""
    nx, n_c, n_g = system.nx, system.n_c, system.n_g
    at, factor = multipliers_at(system), cj if form.lowered else 1.0
    w_at, first = at + form.n_top + form.low * n_g, 2 * nx + system.n_r + system.n_w
    columns, direction = system.columns, form.direction
    rows, turning = system.rows, form.variant == FUEHRER_LEIMKUHLER
    top = form.kept_direction if turning else direction
    for k in range(form.n_top):
        target = matrix[at + k]
        if form.top == ACCELERATION:
            for i in range(nx):
                target[nx + i] = -factor * top[i, n_c - form.n_top + k]
                if turning:
                    target[i] = -factor * level_by(system, found, 1, k, i, 1.0, 0.0, 0.0)
            continue
        for i in range(nx):
            target[nx + i] = factor * columns[i, k]
        if system.uses_multipliers:
            _add(system, found[first + rows[k]], factor, w_at, target)
    at += form.n_top
    for level in range(form.low):
        for k in range(n_g):
            for i in range(nx):
                matrix[at + level * n_g + k, level * nx + i] = -factor * direction[i, k]
