"""Entry points into the kernels for single evaluations from Python; records come as arrays of one."""

from __future__ import annotations

from daedal.kernels.compilation import kernel
from daedal.kernels.linear import prepare_matrix, solve_linear
from daedal.kernels.system import residual


@kernel
def evaluate_residual(systems, t, y, yp, result):
    """result = F(t, y, y'); returns the status."""
    return residual(systems[0], t, y, yp, result)


@kernel
def form_matrix(systems, linears, t, y, yp, r, cj, h, inverse_weights):
    """Form and factor G (or set up the preconditioner) at (t, y, y')."""
    return prepare_matrix(systems[0], linears[0], t, y, yp, r, cj, h, inverse_weights)


@kernel
def apply_inverse(systems, linears, t, y, yp, r, cj, inverse_weights, b):
    """b := G^{-1} b with a current matrix."""
    return solve_linear(systems[0], linears[0], t, y, yp, r, cj, cj, inverse_weights, b)
