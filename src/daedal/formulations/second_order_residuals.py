r"""Mechanisms as equations of second order, F(t, x, x', x'') = 0, in one kernel.

The unknowns are x = (q | r | lam | w | extra), the equations

    M a - f(t, q, u, r, w, lam) + K^T lam              = 0
    r' - f_d                                           = 0
    sum_l alpha_l g^(l)   (velocity constraints: c)    = 0
    d                                                  = 0
    further levels of the constraints                  = 0

with u = q', a = q'' for the constraints as they stand (Wunderlich (4.5)), and

* GGL, (7.19): u = q' + G^T eta, a = q'' + (G^T eta)', extra = eta, G u + g_t = 0 as well; eta vanishes for the exact
  solution;
* MINIMAL, (7.31): the velocities and accelerations of dependent coordinates are unknowns w_1 and w_2 of their own, and
  all three levels of the constraints are equations.
"""

from __future__ import annotations

import numpy as np

from daedal.kernels.callbacks import NATIVE, UNEVALUABLE, owner
from daedal.kernels.compilation import part, pointer
from daedal.kernels.records import ADDRESS, FLOAT, INTEGER, floats, integers, record_at
from daedal.mechanics.constrained import CONSTRAINED, JACOBIAN, evaluate, load

ORIGINAL, GGL, MINIMAL = 0, 1, 2
_ALONG = 1e-6  # increment of time in the derivative of G^T eta, where eta is as small as the error itself

SECOND_ORDER_FORM = np.dtype(
    [
        ("system", ADDRESS),
        ("n", INTEGER),
        ("variant", INTEGER),
        ("needed", INTEGER),
        ("alpha", ADDRESS),  # of the levels 0, 1, 2 of holonomic constraints
        ("pivot", ADDRESS),  # 1 + number of the dependent coordinate, or 0
        ("z", ADDRESS),
        ("a", ADDRESS),
        ("work", ADDRESS),
        ("time_scale", FLOAT),
    ]
)


@pointer(NATIVE)
def second_order_residual(t, block):
    """The residual; the block is [x | x' | x'' | F]."""
    f = record_at(owner(block), SECOND_ORDER_FORM)
    c = record_at(f.system, CONSTRAINED)
    n, nx = f.n, c.nx
    x, xp, xpp = floats(block, n), floats(block + 8 * n, n), floats(block + 16 * n, n)
    r = floats(block + 24 * n, n)
    z, a = floats(f.z, 2 * nx), floats(f.a, nx)
    for i in range(nx):
        z[i] = x[i]
        z[nx + i] = xp[i]
        a[i] = xpp[i]
    status = 0
    if f.variant == GGL:
        status = _shift(f, c, t, x, xp, z, a)
    elif f.variant == MINIMAL:
        _replace(f, c, x, z, a)
    if status == 0:
        status = _evaluate(f, c, t, x, z)
    if status != 0:
        return UNEVALUABLE if status > 0 else status
    _dynamics(f, c, x, xp, a, r)
    _constraints(f, c, a, r)
    return 0


@part
def _evaluate(f, c, t, x, z):
    nx, n_r, n_c = c.nx, c.n_r, c.n_c
    load(c, z, x[nx:], x[nx + n_r + n_c :], x[nx + n_r :])
    return evaluate(c, t, f.needed)


@part
def _shift(f, c, t, x, xp, z, a):
    """u = q' + G^T eta and a = q'' + (G^T eta)' with the derivative along the motion."""
    nx, n_g, n_c = c.nx, c.n_g, c.n_c
    at = nx + c.n_r + n_c + c.n_w
    largest = 0.0
    for k in range(n_g):
        largest = max(largest, max(abs(x[at + k]), abs(xp[at + k])))
    if largest == 0.0:
        return 0
    jacobian, ahead = floats(c.jacobian, n_c * nx), floats(f.work, n_c * nx)
    step = _ALONG * f.time_scale
    for i in range(nx):
        z[i] = x[i] + step * xp[i]
    load(c, z, x[nx:], x[nx + c.n_r + n_c :], x[nx + c.n_r :])
    status = evaluate(c, t + step, JACOBIAN)
    if status != 0:
        return status
    for i in range(n_c * nx):
        ahead[i] = jacobian[i]
    for i in range(nx):
        z[i] = x[i]
    load(c, z, x[nx:], x[nx + c.n_r + n_c :], x[nx + c.n_r :])
    status = evaluate(c, t, JACOBIAN)
    if status != 0:
        return status
    for i in range(nx):
        for k in range(n_g):
            entry = jacobian[k * nx + i]
            z[nx + i] += entry * x[at + k]
            a[i] += entry * xp[at + k] + (ahead[k * nx + i] - entry) / step * x[at + k]
    return 0


@part
def _replace(f, c, x, z, a):
    """Velocities and accelerations of dependent coordinates are unknowns of their own."""
    nx, n_c = c.nx, c.n_c
    at, pivot = nx + c.n_r + n_c + c.n_w, integers(f.pivot, nx)
    for i in range(nx):
        if pivot[i] > 0:
            z[nx + i] = x[at + pivot[i] - 1]
            a[i] = x[at + n_c + pivot[i] - 1]


@part
def _dynamics(f, c, x, xp, a, r):
    nx, n_r, n_c = c.nx, c.n_r, c.n_c
    mass, force, columns = floats(c.mass, nx * nx), floats(c.force, nx), floats(c.columns, nx * n_c)
    rate, algebraic = floats(c.rate, n_r), floats(c.algebraic, c.n_w)
    for i in range(nx):
        value = -force[i]
        for j in range(nx):
            value += mass[i * nx + j] * a[j]
        for k in range(n_c):
            value += columns[i * n_c + k] * x[nx + n_r + k]
        r[i] = value
    for i in range(n_r):
        r[nx + i] = xp[nx + i] - rate[i]
    for i in range(c.n_w):
        r[nx + n_r + n_c + i] = algebraic[i]


@part
def _acceleration_level(c, a, k):
    jacobian, bias = floats(c.jacobian, c.n_c * c.nx), floats(c.bias, c.n_c)
    value = bias[k]
    for j in range(c.nx):
        value += jacobian[k * c.nx + j] * a[j]
    return value


@part
def _constraints(f, c, a, r):
    nx, n_g, n_c = c.nx, c.n_g, c.n_c
    level, alpha = floats(c.level, 2 * n_c), floats(f.alpha, 3)
    at = nx + c.n_r
    for k in range(n_c):
        if k < n_g:
            value = alpha[0] * level[k] + alpha[1] * level[n_c + k]
            if alpha[2] != 0.0:
                value += alpha[2] * _acceleration_level(c, a, k)
        else:
            value = level[n_c + k]
            if alpha[2] != 0.0:
                value = 0.5 * alpha[1] * value + alpha[2] * _acceleration_level(c, a, k)
        r[at + k] = value
    extra = at + n_c + c.n_w
    if f.variant == GGL:
        for k in range(n_g):
            r[extra + k] = level[n_c + k]
    elif f.variant == MINIMAL:
        for k in range(n_c):
            r[extra + k] = level[n_c + k]
            r[extra + n_c + k] = _acceleration_level(c, a, k)
