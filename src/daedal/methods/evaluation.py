"""Entry points into the kernels for single evaluations from Python; records come by their addresses."""

from __future__ import annotations

import numpy as np

from daedal.kernels.compilation import kernel
from daedal.kernels.linear import LINEAR, prepare_matrix, solve_linear
from daedal.kernels.records import record_at
from daedal.kernels.system import SYSTEM, residual


@kernel
def evaluate_residual(system, t, y, yp, result):
    """result = F(t, y, y'); returns the status."""
    return residual(record_at(system, SYSTEM), t, y, yp, result)


@kernel
def form_matrix(system, linear, t, y, yp, r, cj, h, inverse_weights):
    """Form and factor G (or set up the preconditioner) at (t, y, y')."""
    equations, solver = record_at(system, SYSTEM), record_at(linear, LINEAR)
    return prepare_matrix(equations, solver, t, y, yp, r, cj, h, inverse_weights)


@kernel
def apply_inverse(system, linear, t, y, yp, r, cj, inverse_weights, b):
    """b := G^{-1} b with a current matrix."""
    return solve_linear(record_at(system, SYSTEM), record_at(linear, LINEAR), t, y, yp, r, cj, cj, inverse_weights, b)


@kernel
def residual_is_roundoff(system, t, y, yp):
    """Whether F(t, y, y') is no more than round-off of its terms, whose size a small relative change shows."""
    s = record_at(system, SYSTEM)
    n, small = y.size, np.sqrt(np.finfo(np.float64).eps)
    result, changed = np.empty(n), np.empty(n)
    if residual(s, t, y, yp, result) != 0:
        return False
    vanishes = True
    for i in range(n):
        vanishes = vanishes and result[i] == 0.0
    if vanishes:
        return True
    if residual(s, t, y * (1.0 + small), yp * (1.0 - 2.0 * small), changed) != 0:
        return False
    for i in range(n):
        if not abs(result[i]) <= 100.0 * small * abs(changed[i] - result[i]):
            return False
    return True
