r"""Accelerations, multipliers and projections by straight-line code generated for one mechanism.

The code eliminates [[M, K^T], [K, 0]] without pivoting at run time. If a pivot is bad, a function raises or a result is
not finite, the matrices are evaluated and factored with pivoting as for any other system.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from daedal.kernels.arithmetic import ONE, NumberOperations
from daedal.kernels.callbacks import call, is_given
from daedal.kernels.compilation import part
from daedal.kernels.records import float_rows, floats
from daedal.kernels.vectors import copy
from daedal.mechanics.constrained import accelerate

NEGLIGIBLE = 1e-9  # relative size of a Newton correction after which the next, about its square, is not needed
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
    """Accelerations and multipliers at the variables in ``c.state``; the record need not contain the matrices."""
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
