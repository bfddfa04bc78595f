r"""Half-explicit Runge-Kutta steps for mechanical systems, in compiled code.

Brasey and Hairer (2.1), (5.5), and the partitioned methods of Murua and Arnold in one form: stage i has

    Q_i = q0 + h sum_{j<i} a_ij V_j,      V_i = v0 + h sum_{j<i} a_ij V'_j

and its multiplier enforces the velocity constraint at a separate point,

    Qb_i = q0 + h sum_{j<=i} ab_ij V_j,   G(Qb_i) (v0 + h sum_{j<=i} ab_ij V'_j) + g_t = 0,

so one linear system determines V'_i and Lambda_i:

    [ M_i       G_i^T ] [ V'_i     ]   [ f_i ]
    [ G(Qb_i)   0     ] [ Lambda_i ] = [ r_i ],    r_i = -(G(Qb_i) (v0 + h sum_{j<i} ab_ij V'_j) + g_t) / (h ab_ii).

A stage after a step from vb, with the velocity constraint imposed at another point, qb, solves this system with step =
h ab_ii. For the methods of Brasey and Hairer ab_i = a_{i+1}: the constraint of the next stage. A tableau is data.
"""

from __future__ import annotations

from daedal.kernels.callbacks import RAISED, UNEVALUABLE, is_given
from daedal.kernels.compilation import entry, part
from daedal.kernels.dense import factor_lu, solve_lu
from daedal.kernels.records import INTEGER, Struct, at, record_at
from daedal.kernels.signatures import f64
from daedal.kernels.system import HOOK_CHANGED
from daedal.mechanics.augmented import accelerate_coupled, accelerate_only, solve_augmented, solve_stage
from daedal.mechanics.constrained import CONSTRAINED, FORCE, JACOBIAN, MASS, RATE, VELOCITY, evaluate, load_state
from daedal.methods.explicit.runge_kutta_step import HARMLESS
from daedal.methods.one_step import (
    ATTEMPT,
    HOPELESS,
    close_polynomial,
    combine,
    count_stiff,
    give_to_owner,
    polynomial,
    size_in,
    stiffness,
)
from daedal.methods.run_record import RUN, differences

# --- one stage --------------------------------------------------------------------------------------------------------


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
    """Compute V' and r' of a stage in `slope`, whose position entries already hold V.

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


# --- steps ------------------------------------------------------------------------------------------------------------


NODES = 5  # intervals between the points that define the polynomial of a step
PLAIN_ERROR, PROJECTED_ERROR, TWO_ESTIMATES = 0, 1, 2
_STIFF_LIMIT = 1.2  # limit of |h lambda|, as for DOPRI5, whose stages these methods use; `Method.stiffness_check`

HALF_EXPLICIT = Struct(
    "HALF_EXPLICIT",
    [
        ("mechanism", at(CONSTRAINED)),
        ("n", INTEGER),
        ("stages", INTEGER),
        ("chained", INTEGER),  # ab_i = a_{i+1}
        ("known_first", INTEGER),  # the first stage is the last one of the previous step
        ("end_slope", INTEGER),  # the accelerations at the end of the step are needed for the polynomial
        ("error_kind", INTEGER),
        ("maximum_norm", INTEGER),
        ("a", f64["stages", "stages"]),
        ("ab", f64["stages", "stages"]),
        ("c", f64["stages"]),
        ("cb", f64["stages"]),
        ("e", f64["stages"]),
        ("e2", f64["stages"]),
        ("inner", f64[NODES - 1, "stages + 2"]),
        ("k", f64["stages + 2", "n"]),  # slopes of (q, v, r), one row per stage, then at the start and at the end
        ("stage", f64["n"]),
        ("bar", f64["n"]),
    ],
)


@entry(ATTEMPT)
def half_explicit_attempt(address, t, h):
    """Compute the stages from phi_0, y_1 and its error."""
    run = record_at(address, RUN)
    method = record_at(run.method, HALF_EXPLICIT)
    return _attempt(run.system, method, method.mechanism, run, h)


@entry(ATTEMPT)
def half_explicit_accept(address, t, h):
    """Store the polynomial of the step, and the initial slope of the next one."""
    run = record_at(address, RUN)
    method = record_at(run.method, HALF_EXPLICIT)
    return _accept(run.system, method, method.mechanism, run, t, h)


@part
def _attempt(system, method, c, run, h):
    n, s = run.n, method.stages
    start, y, k = differences(run)[0], run.y, method.k
    if not run.slope_known and (method.known_first or method.end_slope):
        status = slope_at(system, c, run.t, start, k[0] if method.known_first else k[s + 1])
        if status != 0:
            return status if status == RAISED else HOPELESS
        run.slope_known = 1
    for i in range(method.known_first, s):
        status = _stage(system, method, c, run, i, h)
        if status != 0:
            return status
    if method.known_first:
        stage = method.stage
        for i in range(n):
            y[i] = stage[i]
    else:
        combine(method.ab[s - 1], s, k, start, h, 0, n, y)
    if not run.fixed:
        run.error_of_step = _error(method, c, run, h)
    return 0


@part
def _stage(system, method, c, run, i, h):
    """Stage i: its slope in row i of k."""
    n, s, nx = run.n, method.stages, c.nx
    start, k, stage = differences(run)[0], method.k, method.stage
    ab, bar = method.ab, method.bar
    combine(method.a[i], i, k, start, h, 0, n, stage)
    for j in range(nx):
        k[i, j] = stage[nx + j]
    if c.n_c > 0:
        combine(ab[i], i + 1, k, start, h, 0, nx, bar)
        combine(ab[i], i, k, start, h, nx, 2 * nx, bar)
    t, t_bar = run.t + method.c[i] * h, run.t + method.cb[i] * h
    straight = c.n_c > 0 and is_given(c.stage)
    leaves_matrix = method.error_kind == PROJECTED_ERROR and i == s - 1  # the error estimate reuses the matrix
    # the constraint gradients of a chained stage are those at the point of the previous one
    known = method.chained and i > method.known_first and not straight
    return stage_slope(system, c, t, stage, t_bar, bar, h * ab[i, i], known, straight and not leaves_matrix, k[i])


@part
def _estimate(weights, k, h, error):
    """error = h sum_j weights_j k_j."""
    for i in range(error.size):
        value = 0.0
        for j in range(weights.size):
            value += weights[j] * k[j, i]
        error[i] = h * value


@part
def _error(method, c, run, h):
    """The error of the step in units of the tolerance."""
    n = run.n
    start, y, error, k = differences(run)[0], run.y, run.error, method.k
    rtol, atol, scale = run.rtol, run.atol, run.scale
    _estimate(method.e, k, h, error)
    for i in range(n):
        scale[i] = 1.0 / (rtol[i] * max(abs(y[i]), abs(start[i])) + atol[i])
    if method.error_kind == PROJECTED_ERROR and c.n_c > 0:
        _project_error(c, error)
    size = size_in(method.maximum_norm, error, scale)
    if method.error_kind != TWO_ESTIMATES or size == 0.0:
        return size
    _estimate(method.e2, k, h, error)
    return size * size / (size + 0.01 * size_in(method.maximum_norm, error, scale))


@part
def _project_error(c, error):
    """Remove the velocity error that violates the velocity constraints."""
    nx, n_c = c.nx, c.n_c
    solution, jacobian = c.solution, c.jacobian
    for i in range(nx):
        solution[i] = 0.0
    for l in range(n_c):
        solution[nx + l] = 0.0
        for i in range(nx):
            solution[nx + l] -= jacobian[l, i] * error[nx + i]
    solve_lu(c.kkt, solution)
    for i in range(nx):
        error[nx + i] += solution[i]


@part
def _accept(system, method, c, run, t, h):
    n, s = run.n, method.stages
    k, y, yp = method.k, run.y, run.yp
    changed = False
    if run.stop_when_stiff and method.known_first:
        count_stiff(run, h, stiffness(run, h, k, method.a, method.bar), _STIFF_LIMIT)
    if system.hook != 0:
        status = give_to_owner(system, run, t, h)
        if status == HOOK_CHANGED:
            change = size_in(method.maximum_norm, run.scratch, run.inverse_weights)
            changed = run.fixed != 0 or change > HARMLESS
        elif status != 0:
            return status
    if method.end_slope:
        status = slope_at(system, c, t, y, run.slope)
        if status != 0:
            return status
    slope = run.slope
    for i in range(n):
        if method.end_slope:
            yp[i] = slope[i]
            k[s, i] = k[s + 1, i]
            k[s + 1, i] = yp[i]
        else:
            yp[i] = k[s - 1, i]
    polynomial(run, h, y, k, method.inner, n, NODES)
    close_polynomial(run, h, NODES)
    if method.known_first:
        for i in range(n):
            k[0, i] = k[s - 1, i]
    run.slope_known = 0 if changed and method.known_first else 1
    return 0
