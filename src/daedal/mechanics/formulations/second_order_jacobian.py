"""The matrix dF/dx + c1 dF/dx' + c2 dF/dx'' of a mechanism of second order, from its exact derivatives.

In the form of GGL the multipliers eta vanish for the exact solution, so the derivative of G^T in G^T eta is neglected.
"""

from daedal.kernels.callbacks import NATIVE, UNEVALUABLE, owner
from daedal.kernels.compilation import entry, part
from daedal.kernels.records import float_rows, floats, record_at
from daedal.mechanics.formulations.second_order_forms import EXTENDED, STABILISED
from daedal.mechanics.formulations.second_order_residuals import SECOND_ORDER_FORM, evaluate_form, extra_at
from daedal.mechanics.linearisation import balance_by, derivatives, level_by, linearise


@entry(NATIVE)
def second_order_jacobian(t, block):
    """The matrix; the block is [x | x' | x'' | c1 | c2 | matrix, column by column]."""
    form = record_at(owner(block), SECOND_ORDER_FORM)
    system, lin = form.system, form.linearisation
    n, nx = form.n, system.nx
    x, xp, xpp = floats(block, n), floats(block + 8 * n, n), floats(block + 16 * n, n)
    factors, matrix = floats(block + 24 * n, 2), float_rows(block + 24 * n + 16, n, n)
    status = evaluate_form(form, system, t, x, xp, xpp)
    if status == 0:
        status = linearise(lin, system, t, form.a, x[nx + system.n_r :])
    if status != 0:
        return UNEVALUABLE if status > 0 else status
    found, c1, c2 = derivatives(lin), factors[0], factors[1]
    matrix[:, :] = 0.0
    for j in range(nx):
        _coordinate(form, system, found, matrix, j, c1, c2)
    if form.variant == STABILISED:
        _stabilising(form, system, found, matrix, c1)
    _others(system, found, matrix, c1)
    return 0


@part
def _coordinate(form, system, found, matrix, j, c1, c2):
    """The column of q_j; velocity and acceleration of a dependent coordinate have separate columns."""
    place = form.pivot[j] if form.variant == EXTENDED else 0
    if place == 0:
        _add(form, system, found, j, 1.0, c1, c2, matrix[j])
        return
    first = extra_at(system) + place - 1
    _add(form, system, found, j, 1.0, 0.0, 0.0, matrix[j])
    _add(form, system, found, j, 0.0, 1.0, 0.0, matrix[first])
    _add(form, system, found, j, 0.0, 0.0, 1.0, matrix[first + system.n_c])


@part
def _stabilising(form, system, found, matrix, c1):
    """The columns of eta, on which u = q' + G^T eta and a = q'' + (G^T eta)' depend; G' is (G v + g_t)_q."""
    at, jacobian = extra_at(system), system.jacobian
    for k in range(system.n_g):
        for j in range(system.nx):
            turning = level_by(system, found, 1, k, j, 1.0, 0.0, 0.0)
            _add(form, system, found, j, 0.0, jacobian[k, j], turning + c1 * jacobian[k, j], matrix[at + k])


@part
def _add(form, system, found, j, fq, fv, fa, target):
    """Add the derivatives with respect to coordinate j, on which q, u and a depend with the factors fq, fv, fa."""
    nx, n_r, n_c, n_w, n_g = system.nx, system.n_r, system.n_c, system.n_w, system.n_g
    alpha, at = form.alpha, nx + n_r
    for i in range(nx):
        target[i] += balance_by(system, found, i, j, fq, fv, fa)
    for i in range(n_r):
        target[nx + i] += fq * found[j, nx + i] + fv * found[nx + j, nx + i]
    for k in range(n_c):
        value = 0.0
        if k < n_g:
            value = alpha[0] * level_by(system, found, 0, k, j, fq, fv, fa)
            if alpha[1] != 0.0:
                value += alpha[1] * level_by(system, found, 1, k, j, fq, fv, fa)
        else:
            value = level_by(system, found, 1, k, j, fq, fv, fa)
            if alpha[2] != 0.0:
                value *= 0.5 * alpha[1]
        if alpha[2] != 0.0:
            value += alpha[2] * level_by(system, found, 2, k, j, fq, fv, fa)
        target[at + k] += value
    for i in range(n_w):
        target[at + n_c + i] += fq * found[j, nx + n_r + i] + fv * found[nx + j, nx + n_r + i]
    extra = extra_at(system)
    if form.variant == STABILISED:
        for k in range(n_g):
            target[extra + k] += level_by(system, found, 1, k, j, fq, fv, fa)
    elif form.variant == EXTENDED:
        for k in range(n_c):
            target[extra + k] += level_by(system, found, 1, k, j, fq, fv, fa)
            target[extra + n_c + k] += level_by(system, found, 2, k, j, fq, fv, fa)


@part
def _others(system, found, matrix, c1):
    """The columns of r, lam and w."""
    nx, n_r, n_c = system.nx, system.n_r, system.n_c
    columns, rows = system.columns, system.rows
    for j in range(n_r):
        _copy(system, found[2 * nx + j], matrix[nx + j])
        matrix[nx + j, nx + j] += c1
    for j in range(system.n_w):
        _copy(system, found[2 * nx + n_r + j], matrix[nx + n_r + n_c + j])
    for k in range(n_c):
        target = matrix[nx + n_r + k]
        if system.uses_multipliers:
            _copy(system, found[2 * nx + n_r + system.n_w + rows[k]], target)
        for i in range(nx):
            target[i] += columns[i, k]


@part
def _copy(system, column, target):
    """The derivatives of dynamics, r' - f_d and d with respect to an unknown other than a coordinate."""
    n, first = system.nx + system.n_r, system.nx + system.n_r + system.n_c
    for i in range(n):
        target[i] = column[i]
    for i in range(system.n_w):
        target[first + i] = column[n + i]
