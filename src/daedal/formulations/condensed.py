r"""Newton's method for a formulation in its small blocks, instead of one matrix for all unknowns.

With the blocks of the iteration matrix for m = 2 (rows: kinematics, dynamics, top and lower constraints)

    cj dq - dv - D dmu                        = a          F_q dq + (cj M + F_v) dv + B dlam = b
    G dq                                      = d          E_q dq + E_v dv                   = c

the first and last rows give dq = P dv + p with P = (I - D (G D)^{-1} G) / cj, one solve of the size of the lower
constraints, and what remains is one augmented system of the size of dv and dlam,

    [ cj M + F_v + F_q P   B ] [ dv   ]   [ b - F_q p ]
    [ E_v + E_q P          0 ] [ dlam ] = [ c - E_q p ].

Without F_q, F_v and E_q these are the two systems of Wijckmans (6.53); with them stiff forces and curved constraints
are treated as Newton's method asks for.
"""

from __future__ import annotations

from daedal.formulations.residuals import (
    FORM,
    TOP_ACCELERATION,
    TOP_DYNAMICS,
    accelerate_with_levels,
    constraint_row,
    dynamic_rows,
    evaluate_needed,
    load_unknowns,
    set_direction,
)
from daedal.kernels.callbacks import UNEVALUABLE, owner
from daedal.kernels.compilation import part, pointer
from daedal.kernels.dense import SINGULAR, factor_lu, solve_lu
from daedal.kernels.linear import PREPARE, SOLVE
from daedal.kernels.matrix import JACOBIAN_UNEVALUABLE, increment
from daedal.kernels.records import floats, record_at
from daedal.kernels.system import SYSTEM
from daedal.mechanics.augmented import solve_augmented
from daedal.mechanics.constrained import BIAS, CONSTRAINED, FORCE, JACOBIAN, MASS, VELOCITY, evaluate

_WEIGHT_SHARE = 2.0**-13  # u^(1/4), as for other difference quotients


@pointer(PREPARE)
def condensed_prepare(system, linear, t, y, yp, r, cj, h, weights):
    """Form the blocks by differences and factor the two small matrices."""
    s = record_at(system, SYSTEM)
    f = record_at(owner(s.residual.block), FORM)
    c = record_at(f.system, CONSTRAINED)
    s.jacobians += 1
    s.factorisations += 1
    n = f.n
    status = _differences(s, f, c, t, floats(y, n), floats(yp, n), h, floats(weights, n))
    if status != 0:
        return status if status != UNEVALUABLE else JACOBIAN_UNEVALUABLE
    f.cj = cj
    return _assemble(f, c, cj)


@part
def _base(f, c, t, y, yp):
    load_unknowns(f, c, y, yp)
    status = evaluate_needed(f, c, t)
    if status == 0 and (f.low > 0 or f.top == TOP_ACCELERATION):
        status = set_direction(f, c, t)
    return status


@part
def _differences(s, f, c, t, y, yp, h, weights):
    """F_q, F_v and E_q, E_v; the parts that K and M give are added when the matrix is assembled."""
    nx, n_c, n_top = c.nx, c.n_c, f.n_top
    scratch = floats(f.scratch, 4 * (nx + n_c))
    base, value = scratch[: nx + n_c], scratch[nx + n_c : 2 * (nx + n_c)]
    state, skipped = floats(c.state, 2 * nx), n_c - n_top
    status = _base(f, c, t, y, yp)
    if status != 0:
        return status
    dynamic_rows(f, c, y, yp, base)
    for k in range(n_top):
        base[nx + k] = constraint_row(f, c, y, yp, skipped + k)
    force, rows = floats(f.force_v, nx * nx), floats(f.rows_v, n_c * nx)
    highest = floats(f.alpha, 5)
    what = FORCE
    if f.top == TOP_ACCELERATION:
        what = FORCE | BIAS | VELOCITY
    elif highest[2] != 0.0 or highest[4] != 0.0:
        what = FORCE | BIAS
    for j in range(nx):
        kept = state[nx + j]
        delta = increment(y[nx + j], yp[nx + j], h, weights[nx + j], _WEIGHT_SHARE)
        state[nx + j] = kept + delta
        s.jacobian_residuals += 1
        status = evaluate(c, t, what)
        if status == 0 and f.top == TOP_ACCELERATION:
            solve_augmented(c)
        state[nx + j] = kept
        if status != 0:
            return status
        _quotients(f, c, y, yp, base, value, delta, j, force, rows, f.top == TOP_DYNAMICS)
    force, rows = floats(f.force_q, nx * nx), floats(f.rows_q, n_c * nx)
    what = f.needed & (MASS | FORCE | JACOBIAN | VELOCITY | BIAS)
    for j in range(nx):
        kept = state[j]
        delta = increment(y[j], yp[j], h, weights[j], _WEIGHT_SHARE)
        state[j] = kept + delta
        s.jacobian_residuals += 1
        status = accelerate_with_levels(f, c, t) if f.top == TOP_ACCELERATION else evaluate(c, t, what)
        state[j] = kept
        if status != 0:
            return status
        _quotients(f, c, y, yp, base, value, delta, j, force, rows, True)
    return _base(f, c, t, y, yp)


@part
def _quotients(f, c, y, yp, base, value, delta, j, force, rows, with_rows):
    nx, n_top = c.nx, f.n_top
    dynamic_rows(f, c, y, yp, value)
    for i in range(nx):
        force[i * nx + j] = (value[i] - base[i]) / delta
    skipped = c.n_c - n_top
    for k in range(n_top):
        rows[k * nx + j] = 0.0
        if with_rows:
            rows[k * nx + j] = (constraint_row(f, c, y, yp, skipped + k) - base[nx + k]) / delta


@part
def _assemble(f, c, cj):
    nx, n_c, n_g, n_top = c.nx, c.n_c, c.n_g, f.n_top
    jacobian, direction = floats(c.jacobian, n_c * nx), floats(f.direction, nx * n_c)
    p = floats(f.map, nx * nx)
    for i in range(nx):
        for j in range(nx):
            p[i * nx + j] = 1.0 / cj if i == j else 0.0
    if f.low > 0:
        small, work = floats(f.low_rows.data, n_g * n_g), floats(f.scratch, n_g)
        for i in range(n_g):
            for k in range(n_g):
                value = 0.0
                for j in range(nx):
                    value += jacobian[i * nx + j] * direction[j * n_c + k]
                small[k * n_g + i] = value
        if factor_lu(f.low_rows) != 0:
            return SINGULAR
        for j in range(nx):
            for i in range(n_g):
                work[i] = jacobian[i * nx + j]
            solve_lu(f.low_rows, work)
            for i in range(nx):
                value = 0.0
                for k in range(n_g):
                    value += direction[i * n_c + k] * work[k]
                p[i * nx + j] -= value / cj
    n = nx + n_top
    data, mass, columns = floats(f.condensed.data, n * n), floats(c.mass, nx * nx), floats(c.columns, nx * n_c)
    force_q, force_v = floats(f.force_q, nx * nx), floats(f.force_v, nx * nx)
    rows_q, rows_v, alpha = floats(f.rows_q, n_c * nx), floats(f.rows_v, n_c * nx), floats(f.alpha, 5)
    skipped = n_c - n_top
    for k in range(n_top):
        holonomic = skipped + k < n_g
        for j in range(nx):
            if holonomic:
                rows_q[k * nx + j] += alpha[0] * jacobian[(skipped + k) * nx + j]
            at_velocity = alpha[1] + cj * alpha[2] if holonomic else alpha[3] + cj * alpha[4]
            rows_v[k * nx + j] += at_velocity * jacobian[(skipped + k) * nx + j]
    for i in range(nx):
        for j in range(nx):
            leading = 1.0 if i == j else 0.0
            if f.top == TOP_DYNAMICS:
                leading = mass[i * nx + j]
            value = cj * leading + force_v[i * nx + j]
            for k in range(nx):
                value += force_q[i * nx + k] * p[k * nx + j]
            data[j * n + i] = value
        for k in range(n_top):
            data[(nx + k) * n + i] = (
                columns[i * n_c + k] if f.top == TOP_DYNAMICS else -direction[i * n_c + skipped + k]
            )
    for k in range(n_top):
        for j in range(nx):
            value = rows_v[k * nx + j]
            for i in range(nx):
                value += rows_q[k * nx + i] * p[i * nx + j]
            data[j * n + nx + k] = value
        for i in range(n_top):
            data[(nx + i) * n + nx + k] = 0.0
    _keep_geometry(f, c)
    return factor_lu(f.condensed)


@part
def _keep_geometry(f, c):
    """G and D as they stand in the factored matrix: later residuals overwrite those of the system."""
    nx, n_c, n_g = c.nx, c.n_c, c.n_g
    kept, jacobian, direction = (
        floats(f.columns, 2 * nx * n_c),
        floats(c.jacobian, n_c * nx),
        floats(f.direction, nx * n_c),
    )
    for i in range(n_g * nx):
        kept[i] = jacobian[i]
    for i in range(nx * n_c):
        kept[nx * n_c + i] = direction[i]


@pointer(SOLVE)
def condensed_solve(system, linear, t, y, yp, r, cj, cj_matrix, weights, b):
    """b := c G^{-1} b, with the correction c = 2 / (1 + cj / cj_matrix) of BCP (5.2.12) for an old matrix."""
    s = record_at(system, SYSTEM)
    f = record_at(owner(s.residual.block), FORM)
    system_record = record_at(f.system, CONSTRAINED)
    rhs = floats(b, f.n)
    correction = 2.0 / (1.0 + cj / cj_matrix)
    for i in range(f.n):
        rhs[i] *= correction
    _back_substitute(f, system_record, rhs)
    return 0


@part
def _back_substitute(f, c, b):
    nx, n_c, n_g, n_top, cj = c.nx, c.n_c, c.n_g, f.n_top, f.cj
    p, force_q, rows_q = floats(f.map, nx * nx), floats(f.force_q, nx * nx), floats(f.rows_q, n_c * nx)
    kept = floats(f.columns, 2 * nx * n_c)
    scratch = floats(f.scratch, 4 * (nx + n_c))
    at, low_at = 2 * nx, 2 * nx + n_top
    rhs, shift = scratch[: nx + n_top], scratch[nx + n_c : 2 * nx + n_c]
    low = scratch[2 * (nx + n_c) : 2 * (nx + n_c) + n_g]
    for i in range(nx):
        value = 0.0
        for j in range(nx):
            value += p[i * nx + j] * b[j]
        shift[i] = value
    if f.low > 0:
        for k in range(n_g):
            low[k] = b[low_at + k]
        solve_lu(f.low_rows, low)
        for i in range(nx):
            for k in range(n_g):
                shift[i] += kept[nx * n_c + i * n_c + k] * low[k]
    for i in range(nx):
        value = b[nx + i]
        for j in range(nx):
            value -= force_q[i * nx + j] * shift[j]
        rhs[i] = value
    for k in range(n_top):
        value = b[at + k]
        for j in range(nx):
            value -= rows_q[k * nx + j] * shift[j]
        rhs[nx + k] = value
    solve_lu(f.condensed, rhs)
    if f.low > 0:
        for k in range(n_g):
            value = cj * b[low_at + k]
            for j in range(nx):
                value -= kept[k * nx + j] * (rhs[j] + b[j])
            low[k] = value
        solve_lu(f.low_rows, low)
        for k in range(n_g):
            b[low_at + k] = low[k]
    for i in range(nx):
        value = shift[i]
        for j in range(nx):
            value += p[i * nx + j] * rhs[j]
        b[i] = value
    for i in range(nx):
        b[nx + i] = rhs[i]
    for k in range(n_top):
        b[at + k] = rhs[nx + k]
