"""Entry points into the kernels for single evaluations from Python; records are passed by address."""

from __future__ import annotations

import numpy as np

from daedal.kernels.compilation import entry
from daedal.kernels.linear import LINEAR, prepare_matrix, solve_linear
from daedal.kernels.records import record_at
from daedal.kernels.signatures import boolean, f64, i64
from daedal.kernels.system import SYSTEM, residual


@entry(i64(i64, f64, f64[:], f64[:], f64[:]))
def evaluate_residual(system, t, y, yp, result):
    """result = F(t, y, y'); returns the status."""
    return residual(record_at(system, SYSTEM), t, y, yp, result)


@entry(i64(i64, i64, f64, f64[:], f64[:], f64[:], f64, f64, f64[:]))
def form_matrix(system, linear, t, y, yp, r, cj, h, inverse_weights):
    """Form and factor G (or set up the preconditioner) at (t, y, y')."""
    equations, solver = record_at(system, SYSTEM), record_at(linear, LINEAR)
    return prepare_matrix(equations, solver, t, y, yp, r, cj, h, inverse_weights)


@entry(i64(i64, i64, f64, f64[:], f64[:], f64[:], f64, f64[:], f64[:]))
def apply_inverse(system, linear, t, y, yp, r, cj, inverse_weights, b):
    """b := G^{-1} b with a current matrix."""
    return solve_linear(record_at(system, SYSTEM), record_at(linear, LINEAR), t, y, yp, r, cj, cj, inverse_weights, b)


@entry(boolean(i64, f64, f64[:], f64[:], f64[:, :]))
def residual_is_roundoff(system, t, y, yp, memory):
    """Whether F(t, y, y') is within the round-off of its terms, whose size is estimated by a small relative change.

    `memory` has four rows of n numbers.
    """
    s = record_at(system, SYSTEM)
    n, small = y.size, np.sqrt(np.finfo(np.float64).eps)
    result, changed, near_y, near_yp = memory[0], memory[1], memory[2], memory[3]
    if residual(s, t, y, yp, result) != 0:
        return False
    vanishes = True
    for i in range(n):
        vanishes = vanishes and result[i] == 0.0
    if vanishes:
        return True
    for i in range(n):
        near_y[i], near_yp[i] = y[i] * (1.0 + small), yp[i] * (1.0 - 2.0 * small)
    if residual(s, t, near_y, near_yp, changed) != 0:
        return False
    for i in range(n):
        if not abs(result[i]) <= 100.0 * small * abs(changed[i] - result[i]):
            return False
    return True
