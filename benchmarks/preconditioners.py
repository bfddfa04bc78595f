"""The preconditioners of the GMRES cases, as the IDA bindings take them and as Daedal does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Array = np.ndarray

DROP_TOLERANCE, FILL_FACTOR = 1e-4, 5.0


class ILU:
    """SuperLU's incomplete factorisation of the iteration matrix.

    The IDA bindings get the matrix as a formula, ``matrix(cj)``; Daedal forms it by differences of the residual.
    """

    def __init__(self, matrix: Callable[[float], Any]) -> None:
        self.matrix = matrix

    def setup(self, t: float, y: Array, yp: Array, cj: float) -> Any:
        from scipy.sparse.linalg import spilu

        return spilu(self.matrix(cj), drop_tol=DROP_TOLERANCE, fill_factor=FILL_FACTOR)

    def solve(self, factors: Any, right: Array) -> Array:
        return factors.solve(right)

    def daedal(self) -> Any:
        import daedal

        return daedal.ILUPreconditioner(DROP_TOLERANCE, FILL_FACTOR)


class Blocks:
    """The 2 x 2 diagonal blocks of a reaction, inverted.

    The IDA bindings get the blocks as a formula, ``blocks(t, y, yp, cj)`` of shape (points, 2, 2); Daedal forms them by
    differences of ``residual``.
    """

    def __init__(self, blocks: Callable[..., Array], residual: Callable[..., Array]) -> None:
        self.blocks, self.residual = blocks, residual

    def setup(self, t: float, y: Array, yp: Array, cj: float) -> Any:
        return np.linalg.inv(self.blocks(t, y, yp, cj))

    def solve(self, inverse: Any, right: Array) -> Array:
        return np.matmul(inverse, right.reshape(-1, 2, 1)).ravel()

    def daedal(self) -> Any:
        import daedal

        return daedal.BlockDiagonalPreconditioner(2, self.residual)
