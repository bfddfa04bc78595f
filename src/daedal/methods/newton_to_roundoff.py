"""Newton's method for constant steps, in compiled code: a new matrix in every iteration, until round-off stops it."""

from __future__ import annotations

import numpy as np

from daedal.kernels.compilation import part
from daedal.kernels.linear import prepare_matrix, solve_linear
from daedal.kernels.newton import CONVERGED, DIVERGED
from daedal.kernels.system import residual

_MAX_ITERATIONS = 50
_ROUNDOFF_LEVEL = 1e-14
_STAGNATION_LEVEL = 1e-6


@part
def newton_to_roundoff(system, linear, t, y, yp, cj, h, weights, delta, correction, max_change):
    """Solve F(t, y, y') = 0 along y' = cj y + beta from the values at hand; `correction` adds up the changes of y.

    No variable changes by more than its entry of `max_change` in one iteration.
    """
    n = y.size
    before = np.inf
    for iteration in range(_MAX_ITERATIONS):
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
            change = damping * delta[i]
            y[i] -= change
            correction[i] -= change
            yp[i] -= cj * change
            size = max(size, abs(change) / (abs(y[i]) + 1e-3 * scale + 1e-300))
        if not size < np.inf:
            return DIVERGED
        if damping == 1.0:
            if size <= _ROUNDOFF_LEVEL or (iteration > 0 and size <= _STAGNATION_LEVEL and size >= 0.3 * before):
                return CONVERGED
            before = size
    return DIVERGED
