r"""Projection onto the constraint manifolds, and checks of their geometry.

The weighted projection of Ascher and Petzold (4.20): the nearest point with g(t, q) = 0 in the norm of W, then the
nearest velocity with G v + g_t = 0 (and satisfying the velocity constraints),

    [ W  G^T ] [ dq ]   [  0 ]          [ W  K^T ] [ dv ]   [     0     ]
    [ G   0  ] [ nu ] = [ -g ],         [ K   0  ] [ nu ] = [ -(K v + k_t) ].
"""

import numpy as np

from daedal.kernels.callbacks import UNEVALUABLE, is_given
from daedal.kernels.compilation import entry, part
from daedal.kernels.dense import SINGULAR, N, factor_lu, solve_lu
from daedal.kernels.records import FLOAT, INTEGER, Struct, at, floats, record_at
from daedal.kernels.signatures import f64, i64, void
from daedal.kernels.system import HOOK, HOOK_CHANGED, HOOK_DONE
from daedal.kernels.vectors import copy, largest, squares, transpose
from daedal.mechanics.augmented import accelerate_only, project_straight
from daedal.mechanics.constrained import (
    CONSTRAINED,
    JACOBIAN,
    LEVELS,
    MASS,
    POSITION,
    RATE,
    evaluate,
    load,
    load_start,
    load_state,
)

IDENTITY_WEIGHT, MASS_WEIGHT, GIVEN_WEIGHT = 0, 1, 2
_MAX_ITERATIONS = 30
_ROUNDOFF = 4.0 * np.finfo(float).eps
_NEGLIGIBLE = 1e-9  # relative size of a Newton correction below which the next one, about its square, is omitted

PROJECTOR = Struct(
    "PROJECTOR",
    [
        ("system", at(CONSTRAINED)),
        ("weight_kind", INTEGER),
        ("weight", f64["system.nx", "system.nx"]),
        ("levels", INTEGER),
        ("rtol", FLOAT),  # a drift below this fraction of the size of q, plus atol, is tolerated
        ("atol", FLOAT),
    ],
)
"""Projection settings: the CONSTRAINED system, W, and the levels (1: positions only, m: all)."""


@part
def _factor_projection(p, c, n_rows):
    """Factor [[W, K^T], [K, 0]] with the first `n_rows` rows of K."""
    nx = c.nx
    n = nx + n_rows
    c.projection.n = n
    by_columns, jacobian = c.projection.data, c.jacobian[:n_rows]
    by_columns[:] = 0.0
    if p.weight_kind == IDENTITY_WEIGHT:
        for i in range(nx):
            by_columns[i, i] = 1.0
    else:
        transpose(by_columns, c.mass if p.weight_kind == MASS_WEIGHT else p.weight)
    transpose(by_columns[:, nx:], jacobian)
    for k in range(n_rows):
        copy(by_columns[nx + k], jacobian[k])
    c.projection.lapack[N] = n
    return factor_lu(c.projection)


@part
def project(p, c, t):
    """Project the variables in ``c.state``: lower levels in turn, then velocities. Returns 0, SINGULAR or a status."""
    top = c.m - 1
    if p.weight_kind == MASS_WEIGHT and p.levels > top and is_given(c.velocity_correction):
        if project_straight(c, t) == 0:
            return 0
    status = evaluate(c, t, JACOBIAN | POSITION | (MASS if p.weight_kind == MASS_WEIGHT else 0))
    if status != 0:
        return status
    if c.n_g == c.n_c or top == 0:  # all levels have the same matrix
        if _factor_projection(p, c, c.n_c) != 0:
            return SINGULAR
    elif c.n_g > 0 and _factor_projection(p, c, c.n_g) != 0:
        return SINGULAR
    for level in range(min(p.levels, top)):
        status = _project_below(p, c, t, level)
        if status != 0:
            return status
    return _project_top(p, c, t) if p.levels > top else 0


@part
def _correct(c, level, rows):
    """Correct z_{level+1} for the residuals of its level; returns the sizes of z_{level+1} and of the correction."""
    nx = c.nx
    z, values, solution = c.state[level * nx : (level + 1) * nx], c.level[level], c.solution
    solution[:nx] = 0.0
    for i in range(rows):
        solution[nx + i] = -values[i]
    solve_lu(c.projection, solution)
    size, change = max(largest(z), c.length if level == 0 else 0.0), largest(solution[:nx])
    for i in range(nx):
        z[i] += solution[i]
    return size, change


@part
def _project_below(p, c, t, level):
    """Newton's method for g^(level) = 0 in z_{level+1}; the matrix is reused while convergence is fast."""
    if c.n_g == 0:
        return 0
    before = np.inf
    for iteration in range(_MAX_ITERATIONS):
        if iteration > 0 or level > 0:
            status = evaluate(c, t, LEVELS | JACOBIAN if level > 0 else POSITION)
            if status != 0:
                return status
        size, change = _correct(c, level, c.n_g)
        if not change < np.inf:
            return UNEVALUABLE
        close = iteration == 0 and change <= _NEGLIGIBLE * size
        if close or change <= _ROUNDOFF * size:
            return 0
        if change <= 1e-10 * max(size, 1.0) and change >= 0.3 * before:
            return 0  # stagnation at the round-off of constraints, which may exceed that of small coordinates
        if iteration > 0 and change * change <= _ROUNDOFF * size * before:
            return 0  # the next correction would be below round-off
        if change > 0.05 * before:
            status = evaluate(c, t, JACOBIAN | (MASS if p.weight_kind == MASS_WEIGHT else 0))
            if status != 0:
                return status
            if _factor_projection(p, c, c.n_g) != 0:
                return SINGULAR
        before = change
    return UNEVALUABLE


@part
def _project_top(p, c, t):
    """g^(m-1) = 0 is linear in z_m: K is evaluated once; iteration compensates for an older matrix."""
    nx, n_c, top = c.nx, c.n_c, c.m - 1
    fresh = top == 0
    status = evaluate(c, t, LEVELS | JACOBIAN)
    if status != 0:
        return status
    if c.n_g != n_c and not fresh:
        if _factor_projection(p, c, n_c) != 0:
            return SINGULAR
        fresh = True
    jacobian, values, solution, before = c.jacobian, c.level[top], c.solution, np.inf
    for _ in range(_MAX_ITERATIONS):
        size, change = _correct(c, top, n_c)
        if not change < np.inf:
            return UNEVALUABLE
        if (
            (fresh and before < np.inf)
            or change <= _ROUNDOFF * size
            or (change <= 1e-10 * size and change >= 0.3 * before)
        ):
            return 0
        if not fresh and change > 0.05 * before:
            if _factor_projection(p, c, n_c) != 0:
                return SINGULAR
            fresh = True
        for i in range(n_c):
            for j in range(nx):
                values[i] += jacobian[i, j] * solution[j]
        before = change
    return 0


@part
def _drift_is_small(p, c):
    """Whether all |g_i| / |G_i|, distances from the constraints, are below the limit, with the latest G."""
    level, jacobian = c.level[0], c.jacobian
    limit = p.atol + p.rtol * largest(c.state[: c.nx])
    for i in range(c.n_g):
        if not abs(level[i]) <= limit * np.sqrt(squares(jacobian[i])):
            return False
    return True


@entry(HOOK)
def projection_hook(record, t, h, y):
    """Project the state at the beginning of y after an accepted step."""
    p = record_at(record, PROJECTOR)
    c = p.system
    n = c.m * c.nx
    z = floats(y, n)
    load_state(c, z, floats(y + 8 * n, c.n_r))
    if p.atol > 0.0:
        status = evaluate(c, t, POSITION | JACOBIAN)
        if status != 0:
            return status
        if _drift_is_small(p, c):
            return HOOK_DONE
    status = project(p, c, t)
    if status > 0:
        return UNEVALUABLE
    if status < 0:
        return status
    state, changed = c.state, HOOK_DONE
    for i in range(n):
        if z[i] != state[i]:
            z[i] = state[i]
            changed = HOOK_CHANGED
    return changed


@entry(void(i64, i64, f64[:], f64[:, :], i64[:]))
def project_points(projector, system, times, states, statuses):
    """Project the rows of `states` (z, r), one per time, in place."""
    p, c = record_at(projector, PROJECTOR), record_at(system, CONSTRAINED)
    for k in range(times.size):
        statuses[k] = project_point(p, c, times[k], states[k])


@part
def project_point(p, c, t, y):
    """Project y = (z, r) in place and return 0; if this fails, return a status and leave y unchanged."""
    n = c.m * c.nx
    load_state(c, y[:n], y[n : n + c.n_r])
    status = project(p, c, t)
    if status == 0:
        copy(y, c.state[:n])
    return status


@entry(void(i64, f64[:], f64[:, :], f64[:, :], f64[:, :], f64[:, :], f64[:, :], f64[:, :], i64[:]))
def accelerate_points(system, times, states, guesses, accelerations, multipliers, rates, algebraic, statuses):
    """Compute accelerations, multipliers, r' and w at the rows of `states` (z, r); `guesses` holds (w, lam)."""
    c = record_at(system, CONSTRAINED)
    n, n_w, w_at = c.m * c.nx, c.n_w, c.m * c.nx + c.n_r
    for k in range(times.size):
        y = states[k]
        load(c, y[:n], y[n:w_at], guesses[k, :n_w], guesses[k, n_w:])
        statuses[k] = accelerate_only(c, times[k])
        if statuses[k] == 0 and c.n_r > 0:
            statuses[k] = evaluate(c, times[k], RATE)
        if statuses[k] != 0:
            continue
        copy(accelerations[k], c.acceleration)
        copy(multipliers[k], c.multipliers)
        copy(rates[k], c.rate)
        copy(algebraic[k], c.state[w_at : w_at + n_w])


@entry(void(i64, f64[:], f64[:, :], f64[:, :]))
def residual_points(system, times, states, sizes):
    """Write to `sizes` the largest residuals below and on the highest level, at the rows of `states` (z, r)."""
    c = record_at(system, CONSTRAINED)
    n = c.m * c.nx
    for k in range(times.size):
        y = states[k]
        load_state(c, y[:n], y[n : n + c.n_r])
        if evaluate(c, times[k], LEVELS | JACOBIAN) != 0:
            sizes[k, 0], sizes[k, 1] = np.nan, np.nan
            continue
        level, top = c.level, c.m - 1
        for order in range(top):
            sizes[k, 0] = max(sizes[k, 0], largest(level[order, : c.n_g]))
        sizes[k, 1] = largest(level[top])


@entry(void(i64, f64[:], f64[:], f64[:], f64[:]))
def load_point(system, z, r, w, lam):
    """Write the variables of a start to the record of the system, from which kernels take initial guesses."""
    load_start(record_at(system, CONSTRAINED), z, r, w, lam)


@entry(i64(i64, f64, f64[:], f64[:], f64[:], f64[:], i64))
def evaluate_point(system, t, z, r, w, lam, what):
    """Evaluate `what` at one point, into the arrays of the system."""
    c = record_at(system, CONSTRAINED)
    load(c, z, r, w, lam)
    return evaluate(c, t, what)
