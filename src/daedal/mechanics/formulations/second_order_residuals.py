r"""Mechanisms as equations of second order, F(t, x, x', x'') = 0, in one kernel.

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
"""

from daedal.kernels.callbacks import NATIVE, UNEVALUABLE, owner
from daedal.kernels.compilation import entry, inlined, part
from daedal.kernels.records import FLOAT, INTEGER, Struct, at, floats, record_at
from daedal.kernels.signatures import f64, i64
from daedal.kernels.vectors import add_product, copy, copy_matrix, largest
from daedal.mechanics.constrained import CONSTRAINED, JACOBIAN, evaluate, load
from daedal.mechanics.formulations.second_order_forms import EXTENDED, STABILISED
from daedal.mechanics.linearisation import LINEARISATION

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
