"""Entry points into the kernels for single evaluations from Python; records come by their addresses."""

from __future__ import annotations

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
