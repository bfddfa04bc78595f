"""The matrix dF/dy + cj dF/dy' of a formulation, from the exact derivatives of the mechanism.

For formulations without small-block Newton iteration: with additional states r, algebraic variables w, forces that
depend on multipliers, multipliers as derivatives, the minimal extension, and the form of Fuehrer and Leimkuhler
(equations in :mod:`daedal.mechanics.formulations.residuals` and :mod:`daedal.mechanics.formulations.variants`). In D
mu, mu vanishes for the exact solution, so the derivative of D is neglected.
"""

from daedal.kernels.callbacks import NATIVE, UNEVALUABLE, owner
from daedal.kernels.compilation import entry, part
from daedal.kernels.records import float_rows, floats, record_at
from daedal.mechanics.formulations.formulation import ACCELERATION, FUEHRER_LEIMKUHLER, MINIMAL_EXTENSION
from daedal.mechanics.formulations.residuals import (
    FORM,
    damping_of,
    evaluate_needed,
    load_unknowns,
    multipliers_at,
    set_direction,
)
from daedal.mechanics.formulations.variants import slope_of_velocity
from daedal.mechanics.linearisation import acceleration_by, balance_by, derivatives, level_by, linearise


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
    """The columns of q_j and v_j, and that of v_j' if it is a separate unknown."""
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
    """The minimal extension replaces q_i' = v_i by g = 0 and has separate rows for the acceleration level."""
    nx, n_c = system.nx, system.n_c
    pivot, extra = form.pivot[0], form.n - n_c
    for i in range(nx):
        if pivot[i] > 0:
            target[i] = level_by(system, found, 0, pivot[i] - 1, j, fq, fv, fa)
    for k in range(n_c):
        target[extra + k] += level_by(system, found, 2, k, j, fq, fv, fa)


@part
def _further(form, system, found, matrix, cj):
    """The columns of r and w."""
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
    """The columns of lam and mu, or of the unknowns whose derivatives they are."""
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
