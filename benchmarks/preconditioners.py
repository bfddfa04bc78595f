"""The preconditioners of the GMRES cases, as the IDA bindings take them and as Daedal does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Array = np.ndarray

DROP_TOLERANCE, FILL_FACTOR = 1e-4, 5.0


class ILU:
    """SuperLU's incomplete factorisation of the iteration matrix with scaled rows.

    The IDA bindings get the matrix as a formula, ``matrix(cj)``; Daedal forms it by differences of the residual.
    """

    def __init__(self, matrix: Callable[[float], Any]) -> None:
        self.matrix = matrix

    def setup(self, t: float, y: Array, yp: Array, cj: float) -> Any:
        from scipy.sparse import diags_array
        from scipy.sparse.linalg import spilu

        matrix = self.matrix(cj)
        scale = 1.0 / abs(matrix).max(axis=1).toarray().ravel()
        return spilu((diags_array(scale) @ matrix).tocsc(), drop_tol=DROP_TOLERANCE, fill_factor=FILL_FACTOR), scale

    def solve(self, factors: Any, right: Array) -> Array:
        incomplete, scale = factors
        return incomplete.solve(scale * right)

    def daedal(self) -> Any:
        import daedal

        return daedal.linear_solvers.ILUPreconditioner(DROP_TOLERANCE, FILL_FACTOR)


class Blocks:
    """The diagonal blocks of a simpler residual, the reaction without the diffusion, by differences, inverted."""

    def __init__(self, residual: Callable[..., Array], params: Array, size: int) -> None:
        self.residual, self.params, self.size = residual, params, size

    def setup(self, t: float, y: Array, yp: Array, cj: float) -> Any:
        base = self.residual(t, y, yp, self.params)
        blocks = np.empty((y.size // self.size, self.size, self.size))
        for k in range(self.size):
            moved, slope = y.copy(), yp.copy()
            step = 1e-8 * np.maximum(1.0, np.abs(y[k :: self.size]))
            moved[k :: self.size] += step
            slope[k :: self.size] += cj * step
            change = (self.residual(t, moved, slope, self.params) - base).reshape(-1, self.size)
            blocks[:, :, k] = change / step[:, None]
        return np.linalg.inv(blocks)

    def solve(self, inverse: Any, right: Array) -> Array:
        return np.matmul(inverse, right.reshape(-1, self.size, 1)).ravel()

    def daedal(self) -> Any:
        import daedal

        return daedal.linear_solvers.BlockDiagonalPreconditioner(self.size, self.residual)
