r"""Accelerations, multipliers and projections: by the augmented system, or by straight-line code.

The augmented system is [[M, B], [K, 0]] (z_m', lam) = (f, -bias). Straight-line code generated for one mechanism
eliminates [[M, K^T], [K, 0]] without pivoting at run time. If a pivot is bad, a function raises or a result is not
finite, the matrices are evaluated and factored with pivoting as for any other system.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from daedal.kernels.arithmetic import ONE, NumberOperations
from daedal.kernels.callbacks import UNEVALUABLE, call, is_given
from daedal.kernels.compilation import entry, part
from daedal.kernels.dense import factor_lu, solve_lu
from daedal.kernels.records import float_rows, floats, record_at
from daedal.kernels.vectors import copy, transpose
from daedal.mechanics.constrained import (
    ACCELERATION,
    ALGEBRAIC,
    CONSTRAINED,
    EVALUATION,
    FORCE,
    LEVELS,
    accelerate,
    evaluate,
)


@part
def _damped_bias(c, damping, i):
    """bias + sum_l alpha_l g^(l): the acceleration level without K z_m', including Baumgarte's terms.

    The polynomial of a velocity constraint is tau + alpha, where alpha is the last of the coefficients.
    """
    value = c.bias[i]
    if damping == 0:
        return value
    alpha, level = floats(damping, c.m + 1), c.level
    if i < c.n_g:
        for order in range(c.m):
            value += alpha[order] * level[order, i]
    else:
        value += alpha[c.m] * level[c.m - 1, i]
    return value


@part
def factor_augmented(c):
    """Factor [[M, B], [K, 0]] with the latest values; nonzero if the matrix is singular."""
    nx, by_columns = c.nx, c.kkt.data
    transpose(by_columns, c.mass)
    transpose(by_columns[:, nx:], c.jacobian)
    transpose(by_columns[nx:], c.columns)
    by_columns[nx:, nx:] = 0.0
    return factor_lu(c.kkt)


@part
def solve_augmented(c, damping=0):
    """Solve [[M, B], [K, 0]] (z_m', lam) = (f, -bias - sum alpha_l g^(l)) with existing factors."""
    nx, solution = c.nx, c.solution
    copy(solution, c.force)
    for i in range(c.n_c):
        solution[nx + i] = -_damped_bias(c, damping, i)
    solve_lu(c.kkt, solution)
    copy(c.acceleration, solution[:nx])
    copy(c.multipliers, solution[nx:])


@entry(EVALUATION)
def accelerator(system, t, damping):
    """Compute accelerations and multipliers: the kernel called by :func:`accelerate`.

    Forces that depend on lam, and algebraic variables w, make the augmented system nonlinear; it is solved by
    Newton's method for (lam, w). The matrix is that of the index test, G M^{-1} (G^T - f_lam + f_w d_w^{-1} d_lam).
    """
    c = record_at(system, CONSTRAINED)
    status = evaluate(c, t, ACCELERATION | (LEVELS if damping != 0 else 0)) or factor_augmented(c)
    if status != 0:
        return status
    if c.uses_multipliers or c.n_w > 0:
        return accelerate_coupled(c, t, damping)
    solve_augmented(c, damping)
    return 0


@part
def _coupled_residual(c, t, damping, u, residual):
    """Write lam_augmented(lam, w) - lam and d(lam, w) for u = (lam, w) to `residual`; returns a status."""
    n, n_c = c.m * c.nx + c.n_r, c.n_c
    state, rows = c.state, c.rows
    copy(state[n:], u[n_c : n_c + c.n_w])
    if c.uses_multipliers:
        for i in range(n_c):
            state[n + c.n_w + rows[i]] = u[i]
    status = evaluate(c, t, FORCE | ALGEBRAIC)
    if status != 0:
        return status
    solve_augmented(c, damping)
    multipliers = c.multipliers
    for i in range(n_c):
        residual[i] = multipliers[i] - u[i]
    copy(residual[n_c:], c.algebraic)
    return 0


@part
def accelerate_coupled(c, t, damping=0):
    """Solve for (lam, w) by Newton's method, with existing factors of the augmented matrix; returns a status."""
    n, n_c, size = c.m * c.nx + c.n_r, c.n_c, c.n_c + c.n_w
    state, rows = c.state, c.rows
    u, residual, shifted = c.inner[0], c.inner[1], c.inner[2]
    matrix = c.inner_matrix.data
    for i in range(n_c):
        u[i] = state[n + c.n_w + rows[i]] if c.uses_multipliers else c.multipliers[i]
    copy(u[n_c:], state[n : n + c.n_w])
    for _ in range(25):
        status = _coupled_residual(c, t, damping, u, residual)
        if status != 0:
            return status
        largest = 0.0
        for i in range(size):
            largest = max(largest, abs(u[i]), abs(residual[i]))
        for j in range(size):
            kept, delta = u[j], 1e-7 * max(abs(u[j]), 1e-3 * largest, 1e-8)
            u[j] = kept + delta
            status = _coupled_residual(c, t, damping, u, shifted)
            u[j] = kept
            if status != 0:
                return status
            for i in range(size):
                matrix[j, i] = (shifted[i] - residual[i]) / delta
        if factor_lu(c.inner_matrix) != 0:
            return 1
        solve_lu(c.inner_matrix, residual)
        change = 0.0
        for i in range(size):
            u[i] -= residual[i]
            change = max(change, abs(residual[i]))
        if change <= 1e-13 * (largest + 1e-300):
            return _coupled_residual(c, t, damping, u, shifted)
    return UNEVALUABLE


NEGLIGIBLE = 1e-9  # relative size of a Newton correction below which the next one, about its square, is omitted
MOST_CORRECTIONS = 5
_FAILED = 1


@part
def _is_finite(values):
    strange = 0
    for i in range(values.size):
        strange += 0 if abs(values[i]) < np.inf else 1
    return strange == 0


@part
def _run(callback, t, state, n_arguments, n_result):
    """Call straight-line code with the first entries of the state; nonzero if the result is unusable."""
    copy(floats(callback.block, n_arguments), state[:n_arguments])
    status = call(callback, t)
    if status == 0 and not _is_finite(floats(callback.block + 8 * n_arguments, n_result)):
        return _FAILED
    return status


@part
def accelerate_only(c, t):
    """Compute accelerations and multipliers at ``c.state``; the matrices in the record are not always updated."""
    nx, n_c, n = c.nx, c.n_c, c.n_arguments
    if is_given(c.accelerations) and _run(c.accelerations, t, c.state, n, nx + n_c) == 0:
        _keep(c, c.accelerations.block + 8 * n)
        return 0
    return accelerate(c, t)


@part
def straight_slope(c, t, y, slope):
    """slope = (v, a) of y = (q, v), without writing to the record; nonzero if there is no code or it has failed."""
    if not is_given(c.accelerations):
        return _FAILED
    nx, arguments = c.nx, floats(c.accelerations.block, 2 * c.nx)
    for i in range(2 * nx):
        arguments[i] = y[i]
    status, strange = call(c.accelerations, t), 0
    result = floats(c.accelerations.block + 16 * nx, nx + c.n_c)
    for i in range(nx):
        slope[i] = y[nx + i]
        slope[nx + i] = result[i]
    for i in range(nx + c.n_c):
        strange += 0 if abs(result[i]) < np.inf else 1
    return status if status != 0 or strange == 0 else _FAILED


@part
def _keep(c, result):
    copy(c.acceleration, floats(result, c.nx))
    copy(c.multipliers, floats(result + 8 * c.nx, c.n_c))


@part
def solve_stage(c, t, t_bar, bar, factor):
    """The half-explicit stage at ``c.state`` with constraints at (t_bar, bar); nonzero on failure."""
    nx, n_c, n = c.nx, c.n_c, c.n_arguments
    further = floats(c.stage.block + 8 * n, 2 * nx + 2)
    copy(further, bar[: 2 * nx])
    further[2 * nx], further[2 * nx + 1] = t_bar, factor
    copy(floats(c.stage.block, n), c.state[:n])
    status = call(c.stage, t)
    result = c.stage.block + 8 * (n + 2 * nx + 2)
    if status == 0 and not _is_finite(floats(result, nx + n_c)):
        return _FAILED
    if status == 0:
        _keep(c, result)
    return status


def position_projection(number: NumberOperations, correct: Callable) -> Any:
    """Newton's method for g(t, q) = 0 with a new matrix in every step, for one run or for eight runs in lanes.

    ``correct(owner, t, q)`` returns the status of failures, 0 or more, and the correction of q.
    """
    _, _, get, put, spread, absolute, _, larger, where_less, all_less = number

    @part
    def project_positions(owner, t, q, length, moving):
        """Correct q in the lanes with `moving` = 1; nonzero on failure."""
        half, zero, failed = spread(0.5), spread(0.0), spread(0.0)
        for _ in range(MOST_CORRECTIONS):
            found, correction = correct(owner, t, q)
            failed = where_less(half, moving, larger(failed, found), failed)
            moving = where_less(half, failed, zero, moving)
            size, moved = spread(length), zero
            for i in range(q.shape[0]):
                here, change = get(q, i), get(correction, i)
                size, moved = larger(size, absolute(here)), larger(moved, absolute(change))
                put(q, i, where_less(half, moving, here + change, here))
            moving = where_less(NEGLIGIBLE * size, moved, moving, zero)
            if all_less(moving, half):
                break
        return larger(failed, moving)

    return project_positions


@part
def _correct(c, t, q):
    status = _run(c.position_correction, t, q, c.nx, c.nx)
    return (0.0 if status == 0 else 1.0), floats(c.position_correction.block + 8 * c.nx, c.nx)


_project_positions = position_projection(ONE, _correct)


@part
def project_straight(c, t):
    """Project positions and velocities in ``c.state`` in the norm of M, and store K; nonzero on failure.

    Newton's method for the positions, then the smallest correction to K v + k_t = 0.
    """
    nx, n_c = c.nx, c.n_c
    v = c.state[nx : 2 * nx]
    if c.n_g > 0 and _project_positions(c, t, c.state[:nx], c.length, 1.0) != 0.0:
        return _FAILED
    status = _run(c.velocity_correction, t, c.state, 2 * nx, nx + n_c * nx)
    if status != 0:
        return status
    result = c.velocity_correction.block + 16 * nx
    change, gradients = floats(result, nx), float_rows(result + 8 * nx, n_c, nx)
    for i in range(nx):
        v[i] += change[i]
    jacobian, columns = c.jacobian, c.columns
    for i in range(n_c):
        for j in range(nx):
            jacobian[i, j] = gradients[i, j]
            columns[j, i] = gradients[i, j]
    return 0
