"""DASSL's modified Newton iteration (BCP section 5.2.2), and Newton's method with a new matrix in every iteration."""

from __future__ import annotations

import numpy as np

from daedal.kernels.compilation import part
from daedal.kernels.convergence import (
    CONTINUE,
    CONVERGED,
    DIVERGED,
    MEAN_RATE,
    ROUND_OFF,
    UNKNOWN,
    expect,
    expect_full,
    judge,
    start,
)
from daedal.kernels.gmres import NOT_CONVERGED
from daedal.kernels.linear import prepare_matrix, solve_linear
from daedal.kernels.matrix import SINGULAR as SINGULAR
from daedal.kernels.norms import norm, wrms
from daedal.kernels.system import residual

KRYLOV_FAILED = NOT_CONVERGED
MAX_ITERATIONS = 4
TOLERANCE = 0.33
UNKNOWN_RATE = 100.0
_ROUNDOFF_LEVEL = 100.0 * np.finfo(float).eps


@part
def expect_mean_rate(progress):
    """Set the stopping criteria of :func:`newton` for a whole run."""
    expect(progress, MEAN_RATE, MAX_ITERATIONS, TOLERANCE, 0.0, 0.0)
    progress.factor = UNKNOWN_RATE


@part
def newton(system, linear, progress, t, y, yp, r, correction, cj, cj_matrix, inverse_weights, first, last):
    """Iterate on F(t, y, y') = 0 along y' = cj y + beta from the prediction in (y, yp), with its residual in `r`.

    The unknowns are those from `first` to `last`, whose corrections are accumulated in `correction`; the others are
    fixed. The staggered corrector thus solves for a solution first and its sensitivities next (W. F. Feehery, J. E.
    Tolsma, P. I. Barton, Appl. Numer. Math. 25, 1997).
    """
    progress.iterations = 0
    for i in range(first, last):
        correction[i] = 0.0
    while True:
        system.newton_iterations += 1
        status = solve_linear(system, linear, t, y, yp, r, cj, cj_matrix, inverse_weights, r)
        if status != 0:
            return status
        apply_correction(y, yp, r, correction, cj, first, last)
        size = size_of(system, t, r, inverse_weights, first, last)
        if size < 0.0:
            return -2
        progress.noise = _ROUNDOFF_LEVEL * size_of(system, t, y, inverse_weights, first, last)
        verdict = judge(progress, size, 0.0)
        if verdict == CONTINUE and progress.iterations == 1 and linear.use_krylov and size <= linear.krylov.tolerance:
            return CONVERGED
        if verdict != CONTINUE:
            return verdict
        status = residual(system, t, y, yp, r)
        if status != 0:
            return status


@part
def size_of(system, t, v, inverse_weights, first, last):
    """The norm of the entries of v from `first` to `last`: the user's norm if these are all, otherwise weighted RMS."""
    if last - first == v.size:
        return norm(system, t, v, inverse_weights)
    return wrms(v[first:last], inverse_weights[first:last])


@part
def apply_correction(y, yp, r, correction, cj, first, last):
    """Subtract a correction from some of the unknowns."""
    for i in range(first, last):
        y[i] -= r[i]
        correction[i] -= r[i]
        yp[i] -= cj * r[i]


@part
def newton_to_roundoff(system, linear, progress, t, y, yp, cj, h, weights, delta, correction, max_change):
    """Solve F(t, y, y') = 0 along y' = cj y + beta from the current values, with a new matrix in every iteration.

    The changes of y are accumulated in `correction`. No variable changes by more than its entry of `max_change` in one
    iteration.
    """
    n = y.size
    expect_full(progress, 50, 1e-14, 1e-6, 0.3)
    start(progress, UNKNOWN)
    for _ in range(progress.most):
        status = residual(system, t, y, yp, delta)
        if status == 0:
            status = prepare_matrix(system, linear, t, y, yp, delta, cj, h, weights)
        if status == 0:
            system.newton_iterations += 1
            status = solve_linear(system, linear, t, y, yp, delta, cj, cj, weights, delta)
        if status != 0:
            return status
        damping = 1.0
        for i in range(n):
            if abs(delta[i]) > max_change[i]:
                damping = min(damping, max_change[i] / abs(delta[i]))
        size, scale = 0.0, 0.0
        for i in range(n):
            scale = max(scale, abs(y[i]))
        for i in range(n):
            delta[i] *= damping
        apply_correction(y, yp, delta, correction, cj, 0, n)
        for i in range(n):
            size = max(size, abs(delta[i]) / (abs(y[i]) + 1e-3 * scale + 1e-300))
        if not size < np.inf:
            return DIVERGED
        if damping == 1.0:
            verdict = judge(progress, size, 0.0)
            if verdict != CONTINUE:
                return CONVERGED if verdict == ROUND_OFF else verdict
    return DIVERGED
