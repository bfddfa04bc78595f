r"""The two halves of a RATTLE step for functions that are called: matrices are evaluated and factorised with pivoting.

The equations are those of :mod:`daedal.symbolic.mechanism_dynamics`, which generates straight-line code from them.
"""

from __future__ import annotations

import numpy as np

from daedal.kernels.callbacks import UNEVALUABLE
from daedal.kernels.compilation import part
from daedal.kernels.dense import LU, factor_lu, solve_lu
from daedal.kernels.records import INTEGER, Struct
from daedal.kernels.signatures import f64
from daedal.kernels.vectors import add_product, copy, copy_matrix, transpose
from daedal.mechanics.constrained import FORCE, JACOBIAN, MASS, POSITION, VELOCITY, evaluate, load_state

_WEIGHTS = np.array([0.75, -0.15, 1.0 / 60.0])  # weights of central differences at distances s, 2 s, 3 s, divided by s

DENSE = Struct(
    "DENSE",
    [
        ("nx", INTEGER),
        ("n_c", INTEGER),
        ("mass", f64["nx", "nx"]),  # M and G^T at the start of the step
        ("columns", f64["nx", "n_c"]),
        ("state", f64["2 * nx"]),
        ("force", f64["nx"]),  # F
        ("product", f64["nx"]),
        ("lu", LU),
    ],
)


@part
def _load(dense, c, q, v):
    state = dense.state
    copy(state, q)
    copy(state[c.nx :], v)
    load_state(c, state, state[:0])


@part
def keep_start(dense, c, t, q, v):
    """Store M and G^T at the start of the step."""
    _load(dense, c, q, v)
    status = evaluate(c, t, MASS | JACOBIAN)
    copy_matrix(dense.mass, c.mass)
    copy_matrix(dense.columns, c.columns)
    return status


@part
def _momentum_force(dense, c, t, q, v):
    """F = f + (dM/dt along v) v, with the derivative by differences of sixth order; M and the state are modified."""
    nx = c.nx
    force, product, mass = dense.force, dense.product, c.mass
    _load(dense, c, q, v)
    status = evaluate(c, t, FORCE)
    copy(force, c.force)
    if status != 0 or c.constant_mass:
        return status
    increments, state, speed = c.increments[0], c.state, 0.0
    for j in range(nx):
        speed = max(speed, abs(v[j]) / increments[j])
    if speed == 0.0:
        return 0
    s = 1.0 / speed
    for k in range(-3, 4):
        if k == 0:
            continue
        for j in range(nx):
            state[j] = q[j] + k * s * v[j]
        status = evaluate(c, t + k * s, MASS)
        if status != 0:
            return status
        weight = (_WEIGHTS[abs(k) - 1] if k > 0 else -_WEIGHTS[abs(k) - 1]) / s
        for i in range(nx):
            product[i] = add_product(0.0, mass[i], v)
            force[i] += weight * product[i]
    return 0


@part
def _factor(c, mass, columns):
    """Factor [[mass, columns], [K, 0]] with K as evaluated last."""
    nx, by_columns = c.nx, c.kkt.data
    transpose(by_columns, mass)
    transpose(by_columns[:, nx:], c.jacobian)
    transpose(by_columns[nx:], columns)
    by_columns[nx:, nx:] = 0.0
    return factor_lu(c.kkt)


@part
def first_half(dense, c, t_0, t_1, h, factor, q, v, x, u, w, d):
    """w and d of one iteration for x and u, from (q, v)."""
    nx, n_c = c.nx, c.n_c
    mass, product, solution, force = dense.mass, dense.product, c.solution, dense.force
    status = _momentum_force(dense, c, t_0, q, u)
    if status != 0:
        return status
    _load(dense, c, x, u)
    status = evaluate(c, t_1, MASS | JACOBIAN | POSITION)
    if status != 0:
        return status
    if not c.constant_mass:
        for i in range(nx):
            product[i] = add_product(0.0, mass[i], u)
        transpose(dense.lu.data, c.mass)
        if factor_lu(dense.lu) != 0:
            return UNEVALUABLE
        solve_lu(dense.lu, product)
        for i in range(nx):
            d[i] = product[i] - u[i]
    jacobian, level = c.jacobian, c.level[0]
    for i in range(nx):
        solution[i] = factor * force[i]
        product[i] = q[i] + h * v[i] + 0.5 * h * d[i] - x[i]
    for l in range(n_c):
        solution[nx + l] = -add_product(level[l], jacobian[l], product) / h
    if _factor(c, mass, dense.columns) != 0:
        return UNEVALUABLE
    solve_lu(c.kkt, solution)
    copy(w, solution[:nx])
    return 0


@part
def second_half(dense, c, t, factor, q, v, w):
    """w from (q, v), so that the velocity constraints hold for v + w."""
    nx, n_c = c.nx, c.n_c
    solution, force = c.solution, dense.force
    status = _momentum_force(dense, c, t, q, v)
    if status != 0:
        return status
    _load(dense, c, q, v)
    status = evaluate(c, t, MASS | JACOBIAN | VELOCITY)
    if status != 0:
        return status
    rate = c.level[1]
    for i in range(nx):
        solution[i] = factor * force[i]
    for l in range(n_c):
        solution[nx + l] = -rate[l]
    if _factor(c, c.mass, c.columns) != 0:
        return UNEVALUABLE
    solve_lu(c.kkt, solution)
    copy(w, solution[:nx])
    return 0
