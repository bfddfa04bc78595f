r"""One stage of half-explicit methods for mechanical systems, in compiled code.

At the point (q, v) of the stage, with the velocity constraint imposed at another point, qb, after a step from vb,

    [ M(q)   G(q)^T ] [ a      ]   [ f ]
    [ G(qb)  0      ] [ lambda ] = [ -(G(qb) vb + g_t) / step ].
"""

from __future__ import annotations

from daedal.kernels.callbacks import UNEVALUABLE
from daedal.kernels.compilation import part
from daedal.kernels.dense import factor_lu
from daedal.mechanics.augmented import accelerate_coupled, accelerate_only, solve_augmented, solve_stage
from daedal.mechanics.constrained import FORCE, JACOBIAN, MASS, RATE, VELOCITY, evaluate, load_state


@part
def slope_at(system, c, t, y, target):
    """(v, a, r') of the augmented system at a consistent point, Brasey and Hairer (3.6)."""
    nx, n_r = c.nx, c.n_r
    load_state(c, y, y[2 * nx :])
    system.residuals += 1
    system.factorisations += 1
    status = accelerate_only(c, t)
    if status == 0 and n_r > 0:
        status = evaluate(c, t, RATE)
    if status != 0:
        return UNEVALUABLE if status > 0 else status
    acceleration, rate = c.acceleration, c.rate
    for i in range(nx):
        target[i] = y[nx + i]
        target[nx + i] = acceleration[i]
    for i in range(n_r):
        target[2 * nx + i] = rate[i]
    return 0


@part
def stage_slope(system, c, t, stage, t_bar, bar, step, known, straight, slope):
    """V' and r' of a stage in `slope`, whose positions already contain V.

    `known`: the constraint gradients at the stage are available; `straight`: straight-line code may be used.
    """
    nx = c.nx
    load_state(c, stage, stage[2 * nx :])
    system.residuals += 1
    if straight and solve_stage(c, t, t_bar, bar, 1.0 / step) == 0:
        return _keep_slope(c, t, slope)
    status = evaluate(c, t, MASS | FORCE | (0 if known else JACOBIAN))
    if status != 0:
        return status
    _write_dynamics(c)
    if c.n_c > 0:
        status = _impose_constraint(c, t_bar, stage, bar, step)
        if status != 0:
            return status
    system.factorisations += 1
    if factor_lu(c.kkt) != 0:
        return UNEVALUABLE
    load_state(c, stage, stage[2 * nx :])
    if c.uses_multipliers or c.n_w > 0:
        status = accelerate_coupled(c, t)
        if status != 0:
            return UNEVALUABLE if status > 0 else status
    else:
        solve_augmented(c)
    return _keep_slope(c, t, slope)


@part
def _write_dynamics(c):
    """Write M and G^T at the stage to the stage matrix, stored by columns."""
    nx, n_c = c.nx, c.n_c
    matrix, mass, forces = c.kkt.data, c.mass, c.columns
    for j in range(nx):
        for l in range(nx):
            matrix[j, l] = mass[l, j]
    for j in range(n_c):
        for l in range(nx):
            matrix[nx + j, l] = forces[l, j]
        for l in range(n_c):
            matrix[nx + j, nx + l] = 0.0


@part
def _impose_constraint(c, t_bar, stage, bar, step):
    """Write G at the constraint point to the lower rows of the matrix, and the constraint to the bias."""
    nx, n_c = c.nx, c.n_c
    load_state(c, bar, stage[2 * nx :])
    status = evaluate(c, t_bar, JACOBIAN | VELOCITY)
    if status != 0:
        return status
    matrix, jacobian = c.kkt.data, c.jacobian
    for j in range(nx):
        for l in range(n_c):
            matrix[j, nx + l] = jacobian[l, j]
    velocity_level, bias = c.level[1], c.bias
    for l in range(n_c):
        bias[l] = velocity_level[l] / step
    return 0


@part
def _keep_slope(c, t, slope):
    """V'_i, and the rate of the first-order states, which may depend on the multipliers."""
    nx, n_c, n_r = c.nx, c.n_c, c.n_r
    acceleration, check = c.acceleration, 0.0
    for j in range(nx):
        slope[nx + j] = acceleration[j]
        check += acceleration[j] * 0.0
    if check != 0.0:
        return UNEVALUABLE
    if n_r == 0:
        return 0
    if c.uses_multipliers:
        first = 2 * nx + n_r + c.n_w
        state, multipliers = c.state, c.multipliers
        rows = c.rows
        for l in range(n_c):
            state[first + rows[l]] = multipliers[l]
    status = evaluate(c, t, RATE)
    rate = c.rate
    for j in range(n_r):
        slope[2 * nx + j] = rate[j]
    return status
