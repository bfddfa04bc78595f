"""The linear solves behind Newton's method, and DASSL's modified Newton iteration (BCP section 5.2.2)."""

from __future__ import annotations

import numpy as np

from daedal.kernels import gmres as krylov_solver
from daedal.kernels import matrix as iteration_matrix
from daedal.kernels.compilation import part
from daedal.kernels.norms import norm
from daedal.kernels.records import ADDRESS, INTEGER, floats
from daedal.kernels.system import residual

CONVERGED, SINGULAR, KRYLOV_FAILED, DIVERGED = 0, iteration_matrix.SINGULAR, krylov_solver.NOT_CONVERGED, 3

MAX_ITERATIONS = 4
SLOWEST_RATE = 0.9
TOLERANCE = 0.33
UNKNOWN_RATE = 100.0
_ROUNDOFF_LEVEL = 100.0 * np.finfo(float).eps

LINEAR = np.dtype(
    [
        ("use_krylov", INTEGER),
        ("matrix", iteration_matrix.MATRIX),
        ("krylov", krylov_solver.KRYLOV),
        ("solution", ADDRESS),
    ]
)
"""A direct solver, or GMRES with the direct solver as its preconditioner."""


@part
def prepare_matrix(system, linear, t, y, yp, r, cj, h, inverse_weights):
    """Form and factor the iteration matrix, or set up the preconditioner, at (t, y, y')."""
    if linear.use_krylov:
        return krylov_solver.prepare(system, linear.krylov, linear.matrix, t, y, yp, r, cj, h, inverse_weights)
    return iteration_matrix.form(system, linear.matrix, t, y, yp, r, cj, h, inverse_weights)


@part
def solve_linear(system, linear, t, y, yp, r, cj, cj_matrix, inverse_weights, b):
    """b := G^{-1} b. An old matrix is corrected by c = 2 / (1 + cj / cj_matrix), BCP (5.2.12); GMRES needs no c."""
    if not linear.use_krylov:
        correction = 2.0 / (1.0 + cj / cj_matrix)
        for i in range(b.size):
            b[i] *= correction
        return iteration_matrix.solve(linear.matrix, t, b)
    solution = floats(linear.solution, b.size)
    status = krylov_solver.gmres(system, linear.krylov, linear.matrix, t, y, yp, r, cj, inverse_weights, b, solution)
    if status == krylov_solver.NOT_CONVERGED:
        system.linear_failures += 1
    for i in range(b.size):
        b[i] = solution[i]
    return status


@part
def newton(system, linear, t, y, yp, r, correction, cj, cj_matrix, rate_factor, inverse_weights):
    """Iterate on F(t, y, y') = 0 along y' = cj y + beta from the prediction in (y, yp), with its residual in `r`.

    `correction` accumulates y - y(0). Returns the status and the factor rho / (1 - rho) of the last observed rate.
    """
    n = y.size
    first = 0.0
    for i in range(n):
        correction[i] = 0.0
    for m in range(MAX_ITERATIONS):
        if m > 0:
            status = residual(system, t, y, yp, r)
            if status != 0:
                return status, rate_factor
        system.newton_iterations += 1
        status = solve_linear(system, linear, t, y, yp, r, cj, cj_matrix, inverse_weights, r)
        if status != 0:
            return status, rate_factor
        for i in range(n):
            y[i] -= r[i]
            correction[i] -= r[i]
            yp[i] -= cj * r[i]
        size = norm(system, t, r, inverse_weights)
        if size < 0.0:
            return -2, rate_factor
        if not size < np.inf:
            return DIVERGED, rate_factor
        if size <= _ROUNDOFF_LEVEL * norm(system, t, y, inverse_weights):
            return CONVERGED, rate_factor
        if m == 0:
            first = size
            if linear.use_krylov and size <= linear.krylov.tolerance:
                return CONVERGED, rate_factor
        else:
            rate = size / first if m == 1 else (size / first) ** (1.0 / m)
            if rate > SLOWEST_RATE:
                return DIVERGED, rate_factor
            rate_factor = rate / (1.0 - rate)
        if rate_factor * size <= TOLERANCE:
            return CONVERGED, rate_factor
    return DIVERGED, rate_factor
