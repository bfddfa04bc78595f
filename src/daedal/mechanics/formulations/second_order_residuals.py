"""Mechanisms as equations of second order, F(t, x, x', x'') = 0, in one kernel.

The unknowns are x = (q | r | lam | w | extra), the equations

    M a - f(t, q, u, r, w, lam) + K^T lam              = 0
    r' - f_d                                           = 0
    sum_l alpha_l g^(l)   (velocity constraints: c)    = 0
    d                                                  = 0
    further levels of the constraints                  = 0

with u = q', a = q'' for the original constraints (Wunderlich (4.5)), and

* STABILISED (GGL), (7.19): u = q' + G^T eta, a = q'' + (G^T eta)', extra = eta, G u + g_t = 0 as well; eta vanishes
  for the exact solution;
* EXTENDED (minimal extension), (7.31): the velocities and accelerations of dependent coordinates are separate unknowns
  w_1 and w_2, and all three levels of the constraints are equations.

The matrix dF/dx + c1 dF/dx' + c2 dF/dx'' is formed from the exact derivatives of the mechanism; since eta vanishes for
the exact solution, the derivative of G^T in G^T eta is neglected.
"""

from daedal.kernels.callbacks import NATIVE, UNEVALUABLE, owner
from daedal.kernels.compilation import entry, inlined, part
from daedal.kernels.records import FLOAT, INTEGER, Struct, at, float_rows, floats, record_at
from daedal.kernels.signatures import f64, i64
from daedal.kernels.vectors import add_product, copy, copy_matrix, largest
from daedal.mechanics.constrained import (
    CONSTRAINED,
    JACOBIAN,
    LINEARISATION,
    balance_by,
    derivatives,
    evaluate,
    level_by,
    linearise,
    load,
)
from daedal.mechanics.formulations.second_order_forms import EXTENDED, STABILISED

_ALONG = 1e-6  # time increment for the derivative of G^T eta, in units of the time scale; eta is as small as the error

SECOND_ORDER_FORM = Struct(
    "SECOND_ORDER_FORM",
    [
        ("system", at(CONSTRAINED)),
        ("n", INTEGER),
        ("variant", INTEGER),
        ("needed", INTEGER),
        ("alpha", f64[3]),  # coefficients of the levels 0, 1, 2 of holonomic constraints
        ("pivot", i64["system.nx"]),  # 1 + number of the dependent coordinate; 0 if independent
        ("z", f64["2 * system.nx"]),
        ("a", f64["system.nx"]),
        ("work", f64["system.n_c", "system.nx"]),
        ("time_scale", FLOAT),
        ("linearisation", at(LINEARISATION)),  # exact derivatives, if available
    ],
)


@entry(NATIVE)
def second_order_residual(t, block):
    """The residual; the block is [x | x' | x'' | F]."""
    form = record_at(owner(block), SECOND_ORDER_FORM)
    system = form.system
    n = form.n
    x, xp, xpp = floats(block, n), floats(block + 8 * n, n), floats(block + 16 * n, n)
    residual = floats(block + 24 * n, n)
    status = evaluate_form(form, system, t, x, xp, xpp)
    if status != 0:
        return UNEVALUABLE if status > 0 else status
    _dynamics(system, x, xp, form.a, residual)
    _constraints(form, system, form.a, residual)
    return 0


@part
def evaluate_form(form, system, t, x, xp, xpp):
    """Evaluate all quantities of the system that the residual needs, at z = (q, u) and a of the form."""
    nx, z, a = system.nx, form.z, form.a
    copy(z, x[:nx])
    copy(z[nx:], xp[:nx])
    copy(a, xpp[:nx])
    status = 0
    if form.variant == STABILISED:
        status = _shift(form, system, t, x, xp, z, a)
    elif form.variant == EXTENDED:
        _replace(form, system, x, z, a)
    return status if status != 0 else _evaluate_at(system, t, x, z, form.needed)


@part
def _evaluate_at(system, t, x, z, what):
    nx, n_r, n_c = system.nx, system.n_r, system.n_c
    load(system, z, x[nx:], x[nx + n_r + n_c :], x[nx + n_r :])
    return evaluate(system, t, what)


@inlined
def extra_at(system):
    """Index of the first unknown and equation added by a variant."""
    return system.nx + system.n_r + system.n_c + system.n_w


@part
def _shift(form, system, t, x, xp, z, a):
    """u = q' + G^T eta and a = q'' + (G^T eta)' with the derivative along the motion."""
    nx, n_g, at = system.nx, system.n_g, extra_at(system)
    eta, eta_rate = x[at : at + n_g], xp[at : at + n_g]
    if largest(eta) == 0.0 and largest(eta_rate) == 0.0:
        return 0
    jacobian, ahead = system.jacobian, form.work
    step = _ALONG * form.time_scale
    for i in range(nx):
        z[i] = x[i] + step * xp[i]
    status = _evaluate_at(system, t + step, x, z, JACOBIAN)
    if status != 0:
        return status
    copy_matrix(ahead, jacobian)
    copy(z, x[:nx])
    status = _evaluate_at(system, t, x, z, JACOBIAN)
    if status != 0:
        return status
    for i in range(nx):
        for k in range(n_g):
            entry = jacobian[k, i]
            z[nx + i] += entry * eta[k]
            a[i] += entry * eta_rate[k] + (ahead[k, i] - entry) / step * eta[k]
    return 0


@part
def _replace(form, system, x, z, a):
    """Velocities and accelerations of dependent coordinates are separate unknowns."""
    nx, n_c = system.nx, system.n_c
    at, pivot = extra_at(system), form.pivot
    for i in range(nx):
        if pivot[i] > 0:
            z[nx + i] = x[at + pivot[i] - 1]
            a[i] = x[at + n_c + pivot[i] - 1]


@part
def _dynamics(system, x, xp, a, residual):
    nx, n_r, n_c = system.nx, system.n_r, system.n_c
    mass, columns = system.mass, system.columns
    force, rate, lam = system.force, system.rate, x[nx + n_r : nx + n_r + n_c]
    for i in range(nx):
        residual[i] = add_product(add_product(-force[i], mass[i], a), columns[i], lam)
    for i in range(n_r):
        residual[nx + i] = xp[nx + i] - rate[i]
    copy(residual[nx + n_r + n_c :], system.algebraic)


@part
def _acceleration_level(system, a, k):
    jacobian, bias = system.jacobian, system.bias
    return add_product(bias[k], jacobian[k], a)


@part
def _constraints(form, system, a, residual):
    n_g, n_c = system.n_g, system.n_c
    level, alpha = system.level, form.alpha
    at = system.nx + system.n_r
    for k in range(n_c):
        if k < n_g:
            value = alpha[0] * level[0, k] + alpha[1] * level[1, k]
            if alpha[2] != 0.0:
                value += alpha[2] * _acceleration_level(system, a, k)
        else:
            value = level[1, k]
            if alpha[2] != 0.0:
                value = 0.5 * alpha[1] * value + alpha[2] * _acceleration_level(system, a, k)
        residual[at + k] = value
    extra = extra_at(system)
    if form.variant == STABILISED:
        copy(residual[extra:], level[1, :n_g])
    elif form.variant == EXTENDED:
        for k in range(n_c):
            residual[extra + k] = level[1, k]
            residual[extra + n_c + k] = _acceleration_level(system, a, k)


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
    """Fill the column of q_j; velocity and acceleration of a dependent coordinate have separate columns."""
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
    """Fill the columns of eta, on which u = q' + G^T eta and a = q'' + (G^T eta)' depend; G' is (G v + g_t)_q."""
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
    """Fill the columns of r, lam and w."""
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
    """Copy the derivatives of dynamics, r' - f_d and d with respect to an unknown other than a coordinate."""
    n, first = system.nx + system.n_r, system.nx + system.n_r + system.n_c
    for i in range(n):
        target[i] = column[i]
    for i in range(system.n_w):
        target[first + i] = column[n + i]
