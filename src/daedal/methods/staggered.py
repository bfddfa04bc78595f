"""Newton's method for a solution first and its sensitivities next, in compiled code: part of the unknowns at a time.

The sensitivities of a step are the solution of linear equations once the solution itself is known. The staggered
corrector finds them by iteration with the matrix at hand (W. F. Feehery, J. E. Tolsma, P. I. Barton, Appl. Numer. Math.
25, 1997); the staggered direct method, of DASSAC, forms and factors a matrix in every step and needs one solve (M.
Caracotsios, W. E. Stewart, Comput. Chem. Eng. 9, 1985).
"""

from __future__ import annotations

import numpy as np

from daedal.kernels.compilation import part
from daedal.kernels.linear import solve_linear
from daedal.kernels.newton import CONVERGED, DIVERGED, MAX_ITERATIONS, SLOWEST_RATE, TOLERANCE
from daedal.kernels.norms import wrms
from daedal.kernels.system import residual

_ROUNDOFF_LEVEL = 100.0 * np.finfo(float).eps


@part
def newton_on(system, linear, t, y, yp, r, correction, cj, cj_matrix, rate_factor, inverse_weights, first, last):
    """:func:`newton` for the unknowns from `first` to `last`, the others held; `r` is the residual at the start."""
    start = 0.0
    weights = inverse_weights[first:last]
    for m in range(MAX_ITERATIONS):
        if m > 0:
            status = residual(system, t, y, yp, r)
            if status != 0:
                return status, rate_factor
        system.newton_iterations += 1
        status = solve_linear(system, linear, t, y, yp, r, cj, cj_matrix, inverse_weights, r)
        if status != 0:
            return status, rate_factor
        apply_correction(y, yp, r, correction, cj, first, last)
        size = wrms(r[first:last], weights)
        if not size < np.inf:
            return DIVERGED, rate_factor
        if size <= _ROUNDOFF_LEVEL * wrms(y[first:last], weights):
            return CONVERGED, rate_factor
        if m == 0:
            start = size
        else:
            rate = size / start if m == 1 else (size / start) ** (1.0 / m)
            if rate > SLOWEST_RATE:
                return DIVERGED, rate_factor
            rate_factor = rate / (1.0 - rate)
        if rate_factor * size <= TOLERANCE:
            return CONVERGED, rate_factor
    return DIVERGED, rate_factor


@part
def apply_correction(y, yp, r, correction, cj, first, last):
    """Take a correction from part of the unknowns."""
    for i in range(first, last):
        y[i] -= r[i]
        correction[i] -= r[i]
        yp[i] -= cj * r[i]
