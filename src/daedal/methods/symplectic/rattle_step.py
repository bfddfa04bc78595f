r"""Steps of RATTLE and SHAKE, in compiled code.

Hairer, Lubich, Wanner: Geometric Numerical Integration (2006), (VII.1.26), written with velocities. With
F = f + (dM/dt) v, which is -H_q of a conservative mechanism,

    M_0 u = M_0 v_0 + h/2 (F(t_0, q_0, u) - G_0^T lambda),      M_1 u_1 = M_0 u,
    q_1 = q_0 + h/2 (u + u_1),                                  g(t_1, q_1) = 0,
    M_1 v_1 = M_1 u_1 + h/2 (F(t_1, q_1, u_1) - G_1^T mu),      G_1 v_1 + g_t = 0.

If M is constant and forces depend only on positions, only lambda is iterated: the explicit RATTLE (VII.1.22).

SHAKE computes the velocities from the positions, v_n = (q_{n+1} - q_{n-1}) / (2 h): the increment of the second half of
a step equals that of the first half of the next one, and both are determined by g(t_2, q_2) = 0.

The equations of both halves are those of :mod:`daedal.symbolic.mechanism_dynamics`, which generates straight-line code
from them; if functions are called, matrices are evaluated and factorised with pivoting.
"""

from __future__ import annotations

import numpy as np

from daedal.kernels.callbacks import CALLBACK, UNEVALUABLE, call, is_given
from daedal.kernels.compilation import entry, part
from daedal.kernels.dense import LU, factor_lu, solve_lu
from daedal.kernels.newton import DIVERGED
from daedal.kernels.records import FLOAT, INTEGER, Struct, at, floats, record_at
from daedal.kernels.signatures import f64
from daedal.kernels.vectors import add_product, copy, copy_matrix, largest, transpose
from daedal.mechanics.augmented import accelerate_only
from daedal.mechanics.constrained import CONSTRAINED, FORCE, JACOBIAN, MASS, POSITION, VELOCITY, evaluate, load_state
from daedal.methods.one_step import ATTEMPT, HOPELESS
from daedal.methods.run_record import RUN, differences

# --- the two halves of a step, if functions are called ----------------------------------------------------------------

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


# --- steps ------------------------------------------------------------------------------------------------------------


_MOST_ITERATIONS = 50
_ROUNDOFF = 2.0 * np.finfo(float).eps
_NEGLIGIBLE = 1e-9  # relative size of the last Newton correction: the next one would be about its square
_CLOSE = 1e-10  # corrections below this that no longer decrease are rounding errors

RATTLE = Struct(
    "RATTLE",
    [
        ("mechanism", at(CONSTRAINED)),
        ("stages", INTEGER),
        ("weights", f64["stages"]),  # gamma_i of the composition
        ("nodes", f64["stages"]),  # gamma_1 + ... + gamma_i
        ("shake", INTEGER),
        ("separable", INTEGER),  # whether M is constant and forces depend only on positions
        ("positions", CALLBACK),  # straight-line code, if available
        ("velocities", CALLBACK),
        ("dense", DENSE),
        ("q", f64["mechanism.nx"]),
        ("v", f64["mechanism.nx"]),
        ("x", f64["mechanism.nx"]),  # q_1
        ("u", f64["mechanism.nx"]),
        ("w", f64["mechanism.nx"]),  # increment of v in one half
        ("d", f64["mechanism.nx"]),  # u_1 - u
        ("push", f64["mechanism.nx"]),  # w / (h/2) of the last half step, the initial guess for the next one
        ("turn", f64["mechanism.nx"]),  # d / h of the last step, the initial guess for the next one
        ("ahead", INTEGER),  # whether SHAKE already has u of the step
        ("h_before", FLOAT),
    ],
)


@entry(ATTEMPT)
def rattle_attempt(address, t, h):
    """Compute the stages of the composition from phi_0, each a step of RATTLE or SHAKE."""
    run = record_at(address, RUN)
    method = record_at(run.method, RATTLE)
    return _attempt(run.system, method, method.mechanism, run, t, h)


@part
def _attempt(system, method, c, run, t, h):
    nx = c.nx
    start, y, q, v = differences(run)[0], run.y, method.q, method.v
    weights, nodes = method.weights, method.nodes
    copy(q, start[:nx])
    copy(v, start[nx:])
    wanted = _wants_slope(run, t)
    if wanted and not run.slope_known:
        status = _slope_at(system, c, run.t, start, run.yp)
        if status != 0:
            return HOPELESS if status == UNEVALUABLE else status
    t_0 = run.t
    for i in range(method.stages):
        t_1 = t if i == method.stages - 1 else run.t + nodes[i] * h
        status = (
            _shake(system, method, c, t_0, t_1, h)
            if method.shake
            else (_rattle(system, method, c, t_0, t_1, weights[i] * h))
        )
        if status != 0:
            return status
        t_0 = t_1
    copy(y, q)
    copy(y[nx:], v)
    slope, push = run.slope, method.push
    run.slope_known = wanted
    if wanted:
        return _slope_at(system, c, t, y, slope)
    copy(slope, v)
    copy(slope[nx:], push)
    return 0


@part
def _wants_slope(run, t):
    """Whether values inside the step that ends at t may be needed."""
    if run.dense or run.has_roots or run.each_step:
        return 1
    if run.next_time >= run.n_times:
        return 0
    return 1 if run.sign * (floats(run.times, run.n_times)[run.next_time] - t) <= 0.0 else 0


@part
def _slope_at(system, c, t, y, target):
    """(v, a) of the augmented system."""
    nx = c.nx
    load_state(c, y, y[2 * nx :])
    system.factorisations += 1
    status = accelerate_only(c, t)
    if status != 0:
        return UNEVALUABLE if status > 0 else status
    copy(target, y[nx : 2 * nx])
    copy(target[nx:], c.acceleration)
    return 0


@part
def _rattle(system, method, c, t_0, t_1, h):
    """One step of RATTLE from (q, v), in place."""
    nx, q, v, x, u, w, d = c.nx, method.q, method.v, method.x, method.u, method.w, method.d
    status = _find_positions(system, method, c, t_0, t_1, h, 0.5 * h)
    if status != 0:
        return status
    for i in range(nx):
        q[i] = x[i]
        v[i] = u[i] + d[i]
    status = _push_velocities(system, method, c, t_1, h)
    if status != 0:
        return status
    push = method.push
    for i in range(nx):
        v[i] += w[i]
        push[i] = 2.0 * w[i] / h
    return 0


@part
def _shake(system, method, c, t_0, t_1, h):
    """One step of SHAKE from (q, v), in place; the positions of the next one are already known."""
    q, v, x, u, w, push = method.q, method.v, method.x, method.u, method.w, method.push
    if not (method.ahead and method.h_before == h):
        status = _find_positions(system, method, c, t_0, t_1, h, 0.5 * h)
        if status != 0:
            return status
    copy(q, x)
    copy(v, u)
    status = _find_positions(system, method, c, t_1, t_1 + h, h, h)
    if status != 0:
        return status
    for i in range(c.nx):
        v[i] += 0.5 * w[i]
        push[i] = w[i] / h
    method.ahead, method.h_before = 1, h
    return 0


@part
def _find_positions(system, method, c, t_0, t_1, h, factor):
    """x, u = v + w and d from (q, v), by iteration to round-off; the increment is `factor` times F - G^T lambda."""
    nx, q, v, x, u, w, d = c.nx, method.q, method.v, method.x, method.u, method.w, method.d
    push, turn = method.push, method.turn
    for i in range(nx):
        w[i] = factor * push[i]
        d[i] = h * turn[i]
        u[i] = v[i] + w[i]
        x[i] = q[i] + h * u[i] + 0.5 * h * d[i]
    straight, before = is_given(method.positions), np.inf
    kept = False
    for iteration in range(_MOST_ITERATIONS):
        system.newton_iterations += 1
        if straight and _straight_positions(method, c, t_0, t_1, h, factor) != 0:
            straight = False
        if not straight:
            status = 0 if kept else keep_start(method.dense, c, t_0, q, v)
            kept = True
            if status == 0:
                system.factorisations += 1
                status = first_half(method.dense, c, t_0, t_1, h, factor, q, v, x, u, w, d)
            if status != 0:
                return status
        size, change = largest(q) + abs(h) * largest(v), 0.0
        for i in range(nx):
            velocity = v[i] + w[i]
            place = q[i] + h * velocity + 0.5 * h * d[i]
            change = max(change, abs(place - x[i]), abs(h * (velocity - u[i])))
            x[i] = place
            u[i] = velocity
        if not change < np.inf:
            return UNEVALUABLE
        small = method.separable and change <= _NEGLIGIBLE * size
        slow = change <= _CLOSE * size and change >= 0.3 * before
        last = iteration > 0 and change * change <= _ROUNDOFF * size * before
        if small or slow or last or change <= _ROUNDOFF * size:
            for i in range(nx):
                turn[i] = d[i] / h
            return 0
        before = change
    return DIVERGED


@part
def _is_finite(values):
    check = 0.0
    for i in range(values.size):
        check += values[i] * 0.0
    return check == 0.0


@part
def _straight_positions(method, c, t_0, t_1, h, factor):
    """w and d of one iteration by straight-line code; nonzero if its result is unusable."""
    nx, block = c.nx, method.positions.block
    arguments = floats(block, 4 * nx + 3)
    copy(arguments, method.q)
    copy(arguments[nx:], method.v)
    copy(arguments[2 * nx :], method.x)
    copy(arguments[3 * nx :], method.u)
    arguments[4 * nx], arguments[4 * nx + 1], arguments[4 * nx + 2] = t_1, h, factor
    status = call(method.positions, t_0)
    result = floats(block + 8 * (4 * nx + 3), 2 * nx)
    if status != 0 or not _is_finite(result):
        return UNEVALUABLE
    copy(method.w, result[:nx])
    copy(method.d, result[nx:])
    return 0


@part
def _push_velocities(system, method, c, t, h):
    """w of the second half at (q, v), so that the velocity constraints hold."""
    nx, block, q, v, w = c.nx, method.velocities.block, method.q, method.v, method.w
    system.residuals += 1
    if is_given(method.velocities):
        arguments, result = floats(block, 2 * nx + 1), floats(block + 8 * (2 * nx + 1), nx)
        copy(arguments, q)
        copy(arguments[nx:], v)
        arguments[2 * nx] = 0.5 * h
        if call(method.velocities, t) == 0 and _is_finite(result):
            copy(w, result)
            return 0
    system.factorisations += 1
    return second_half(method.dense, c, t, 0.5 * h, q, v, w)
