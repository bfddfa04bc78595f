"""DASSL's modified Newton iteration (BCP section 5.2.2)."""

import numpy as np

from daedal.kernels.compilation import part
from daedal.kernels.gmres import NOT_CONVERGED
from daedal.kernels.linear import solve_linear
from daedal.kernels.matrix import SINGULAR as SINGULAR
from daedal.kernels.norms import norm
from daedal.kernels.system import residual

CONVERGED, KRYLOV_FAILED, DIVERGED = 0, NOT_CONVERGED, 3

MAX_ITERATIONS = 4
SLOWEST_RATE = 0.9
TOLERANCE = 0.33
UNKNOWN_RATE = 100.0
_ROUNDOFF_LEVEL = 100.0 * np.finfo(float).eps


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
