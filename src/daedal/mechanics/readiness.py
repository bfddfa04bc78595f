r"""Checks that a mechanism may start at given values, or at values projected onto the constraints, in compiled code.

A start must be consistent to round-off and clearly regular. Most starts pass, and need no search for consistent values
and redundant constraints. The conditions are

    |g_i| <= u |G_i| |q|,   |(G v + g_t)_i| <= u |G_i| |v|,   rows of K that are far from dependent,   M = M^T > 0,

where it suffices that M is positive definite on the kernel of K, which follows from M + K^T K > 0. M and K also
determine the norm of output projections: the norm of M, unless the displacement F g with
F = M^{-1} K^T (K M^{-1} K^T)^{-1} is much longer than the shortest displacement, K^+ g.

Mechanisms with recursive elimination are checked without the mass matrix: if the result is finite, elimination from the
tips to the base has found a positive pivot for every joint, and multipliers for all constraints.

Transitions to another mode lead to correct positions and nearly correct velocities, or remove a constraint. The nearest
velocity in the norm of M is then the result of the output projection, so :func:`settle` tries this projection first.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from daedal.kernels.compilation import entry, part
from daedal.kernels.records import floats, record_at
from daedal.kernels.signatures import boolean, f64, i64
from daedal.kernels.vectors import add_product, copy, copy_matrix, largest, squares
from daedal.mechanics.augmented import accelerate_only
from daedal.mechanics.constrained import CONSTRAINED, RATE, evaluate, fetch, load
from daedal.mechanics.manifold import PROJECTOR, project_point
from daedal.mechanics.setting import ConsistentStart

NOT_READY, READY, READY_IN_MASS_NORM = 0, 1, 2
_EVERYTHING = 255
_CONSISTENT = 1e-13
_INDEPENDENT = 1e-3  # smallest independent component of a unit row of K
_SYMMETRIC = 1e-9  # largest asymmetry of M, relative to its largest entry
_DEFINITE = 1e-6  # smallest pivot of the Cholesky factorisation, relative to the diagonal entry
_LONGEST_MOVE = 10.0


@entry(i64(i64, f64, f64[:], f64[:]))
def is_ready(system, t, z, r):
    """NOT_READY, READY or READY_IN_MASS_NORM; accelerations, multipliers and r' remain in the arrays of the system."""
    c = record_at(system, CONSTRAINED)
    guesses = c.guesses
    guesses[:] = 0.0
    load(c, z, r, guesses[: c.n_w], guesses[c.n_w :])
    if evaluate(c, t, _EVERYTHING) != 0:
        return NOT_READY
    n_c = c.n_c
    if n_c > 0 and not (_is_consistent(c, z) and _is_independent(c)):
        return NOT_READY
    mass = c.factors[0]
    copy_matrix(mass, c.mass)
    if not _is_symmetric(mass):
        return NOT_READY
    answer = READY
    if _cholesky(mass, _DEFINITE):
        answer = READY_IN_MASS_NORM if n_c > 0 and _mass_norm_is_short(c, mass) else READY
    elif not _is_definite_on_kernel(c):
        return NOT_READY
    status = accelerate_only(c, t)
    if status == 0 and c.n_r > 0:
        status = evaluate(c, t, RATE)
    if status != 0:
        return NOT_READY
    for value in c.acceleration:
        if not np.isfinite(value):
            return NOT_READY
    return answer


@part
def _is_consistent(c, z):
    nx, n_c = c.nx, c.n_c
    jacobian, level = c.jacobian, c.level
    for order in range(c.m):
        size = max(largest(z[order * nx : (order + 1) * nx]), c.length if order == 0 else 0.0)
        for i in range(n_c):
            norm = squares(jacobian[i])
            limit = _CONSISTENT * np.sqrt(norm) * size
            used = order > 0 or i < c.n_g
            if not norm > 0.0 or (used and not abs(level[order, i]) <= limit):
                return False
    return True


@part
def _is_independent(c):
    """Whether the independent component of every normalised row of K is large enough: modified Gram-Schmidt."""
    count, n = c.n_c, c.nx
    rows = c.gradients
    copy_matrix(rows, c.jacobian)
    for i in range(count):
        norm = np.sqrt(squares(rows[i]))
        for j in range(n):
            rows[i, j] /= norm
    for i in range(count):
        norm = np.sqrt(squares(rows[i]))
        if not norm >= _INDEPENDENT:
            return False
        for k in range(i + 1, count):
            product = add_product(0.0, rows[i], rows[k])
            for j in range(n):
                rows[k, j] -= product / (norm * norm) * rows[i, j]
    return True


@part
def _is_symmetric(a):
    n = a.shape[0]
    size, difference = 0.0, 0.0
    for i in range(n):
        size = max(size, abs(a[i, i]))
        for k in range(i):
            size = max(size, abs(a[i, k]))
            difference = max(difference, abs(a[i, k] - a[k, i]))
    return difference <= _SYMMETRIC * size


@part
def _cholesky(a, smallest):
    """Factor a = L L^T in its lower triangle; False unless each pivot exceeds `smallest` times its diagonal entry."""
    n = a.shape[0]
    for j in range(n):
        pivot = a[j, j]
        for k in range(j):
            pivot -= a[j, k] * a[j, k]
        if not pivot > smallest * a[j, j]:
            return False
        a[j, j] = np.sqrt(pivot)
        for i in range(j + 1, n):
            value = a[i, j]
            for k in range(j):
                value -= a[i, k] * a[j, k]
            a[i, j] = value / a[j, j]
    return True


@part
def _is_definite_on_kernel(c):
    """Whether M is clearly positive definite on the kernel of K, which follows if M + sum_i m K_i^T K_i / |K_i|^2 is,
    with the largest diagonal entry m of M."""
    nx, n_c = c.nx, c.n_c
    mass, jacobian = c.mass, c.jacobian
    heaviest = 0.0
    for j in range(nx):
        heaviest = max(heaviest, mass[j, j])
    total = c.factors[1]
    copy_matrix(total, mass)
    for i in range(n_c):
        weight = heaviest / squares(jacobian[i])
        for j in range(nx):
            for k in range(j + 1):
                total[j, k] += weight * jacobian[i, j] * jacobian[i, k]
    return heaviest > 0.0 and _cholesky(total, _DEFINITE)


@part
def _solve_cholesky(factor, x):
    """Solve L L^T x = b in place, with b in `x`."""
    n = x.size
    for i in range(n):
        for k in range(i):
            x[i] -= factor[i, k] * x[k]
        x[i] /= factor[i, i]
    for i in range(n - 1, -1, -1):
        for k in range(i + 1, n):
            x[i] -= factor[k, i] * x[k]
        x[i] /= factor[i, i]


@part
def _mass_norm_is_short(c, mass):
    """Whether ||F||^2 <= 100 ||K^+||^2 in the Frobenius norm; `mass` holds the Cholesky factor of M."""
    nx, n_c = c.nx, c.n_c
    jacobian, b, schur, gram = c.jacobian, c.gradients, c.products[0], c.products[1]
    for i in range(n_c):
        copy(b[i], jacobian[i])
        _solve_cholesky(mass, b[i])
    for i in range(n_c):
        for k in range(n_c):
            schur[i, k] = add_product(0.0, jacobian[i], b[k])
            gram[i, k] = add_product(0.0, jacobian[i], jacobian[k])
    if not (_cholesky(schur, 0.0) and _cholesky(gram, 0.0)):
        return False
    shortest, move = 0.0, 0.0
    unit = c.unit
    for i in range(n_c):
        unit[:] = 0.0
        unit[i] = 1.0
        _solve_cholesky(gram, unit)
        shortest += unit[i]
        unit[:] = 0.0
        unit[i] = 1.0
        _solve_cholesky(schur, unit)
        for j in range(nx):
            move += add_product(0.0, b[:, j], unit) ** 2
    return move <= _LONGEST_MOVE * _LONGEST_MOVE * shortest


@entry(boolean(i64, f64, f64[:], f64[:, :]))
def same_in_time(system, t0, times, states):
    """Whether the constraints at `times` equal those at t0, at all points at which both can be evaluated.

    `states` has one row (q, v, ...) for all times, or one for each.
    """
    c = record_at(system, CONSTRAINED)
    count, known = states.shape[0], False
    reference, values = c.compared[0], c.compared[1]
    for k in range(times.size):
        state = states[min(k, count - 1)]
        if k < count:
            known = _constraints(c, t0, state, reference)
        if known and _constraints(c, times[k], state, values):
            for i in range(values.size):
                if values[i] != reference[i]:
                    return False
    return True


@part
def _constraints(c, t, state, target):
    """Write all constraints to `target`; returns False if they cannot be evaluated."""
    nx = c.nx
    if c.all_g > 0 and fetch(c.constraint, t, state, nx, c.all_g) != 0:
        return False
    if c.all_v > 0 and fetch(c.velocity_constraint, t, state, 2 * nx, c.all_v) != 0:
        return False
    copy(target, floats(c.constraint.block + 8 * nx, c.all_g))
    copy(target[c.all_g :], floats(c.velocity_constraint.block + 16 * nx, c.all_v))
    return True


def starts_recursively(system: Any) -> bool:
    """Whether recursive code exists and covers all functions and constraints of the system."""
    code = system.straight_line
    if not getattr(code, "is_recursive", False) or not code.belongs_to(system):
        return False
    others = system.n_velocity_constraints or system.n_w or system.n_s or system.force_uses_multipliers
    return not others


def recursive_start(system: Any, t: float, z: np.ndarray, r: np.ndarray) -> ConsistentStart | None:
    """The start at z = (q, v) and r; None unless it is consistent to round-off and clearly regular."""
    q, v = np.split(z, 2)
    given = (q, v, r) if system.n_r else (q, v)
    if system.n_constraints and not _is_regular(system, t, q, v):
        return None
    status, values = system.straight_line.function("accelerations").evaluate(t, *given)
    if status != 0 or not np.all(np.isfinite(values)):
        return None
    rate = np.asarray(system.state_rate(t, *given), dtype=float) if system.n_r else np.zeros(0)
    return ConsistentStart(t, z.copy(), values[: q.size].copy(), values[q.size :].copy(), r.copy(), rate)


def _is_regular(system: Any, t: float, q: np.ndarray, v: np.ndarray) -> bool:
    """Whether the constraints are satisfied at both levels and clearly independent."""
    from scipy.linalg import qr

    residual, rows = system.constraint(t, q), system.constraint_jacobian(t, q)
    norms = np.linalg.norm(rows, axis=1)
    if not np.all(norms > 0.0) or rows.shape[0] > rows.shape[1]:
        return False
    rates = rows @ v + system.constraint_t(t, q)
    lengths = np.maximum(np.abs(q), system.typical_sizes).max()
    if np.any(np.abs(residual) > _CONSISTENT * norms * lengths) or np.any(
        np.abs(rates) > _CONSISTENT * norms * np.max(np.abs(v))
    ):
        return False
    factor = qr((rows / norms[:, None]).T, mode="r", pivoting=True, check_finite=False)[0]
    return bool(np.abs(factor[norms.size - 1, norms.size - 1]) >= _INDEPENDENT)


_ATTEMPTS = 4  # maximum number of projections
_STAYS = 1e-9  # largest change of q by a projection, as a fraction of its size


@entry(boolean(i64, i64, f64, f64[:]))
def settle(system, projector, t, y):
    """Project y = (q, v, r) onto the constraints; False unless it is near them and they are clearly regular."""
    c, p = record_at(system, CONSTRAINED), record_at(projector, PROJECTOR)
    nx = c.nx
    given = c.given
    copy(given, y[:nx])
    for _ in range(_ATTEMPTS):
        if is_ready(system, t, y[: 2 * nx], y[2 * nx :]) != 0:
            return True
        if project_point(p, c, t, y) != 0:
            break
        size = _STAYS * largest(given)
        for i in range(nx):
            if not abs(y[i] - given[i]) <= size:
                copy(y, given)
                return False
    return is_ready(system, t, y[: 2 * nx], y[2 * nx :]) != 0
