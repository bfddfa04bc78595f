"""Equations, unknowns and time in units in which the numbers of a pencil come near 1."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

_WEIGHT_B = 0.1  # of B: the ranks of A decide, and stiff equations have entries of B that do not fit A
_NOISE = 1e-13  # entries below this part of the others in their row and column are rounding errors: they set no scale


class Scaled(NamedTuple):
    """``A * rows[:, None] * columns * time`` and ``B * rows[:, None] * columns``, with factors that are powers of 2."""

    A: np.ndarray
    B: np.ndarray
    rows: np.ndarray
    columns: np.ndarray
    time: float


def scale_pencil(A: np.ndarray, B: np.ndarray) -> Scaled:
    """Scale equations, unknowns and time such that the nonzero entries of A and B come near 1.

    Least squares for the logarithms of the entries (A. R. Curtis, J. K. Reid, J. Inst. Maths Applics 10, 1972).
    Powers of 2 leave all digits of the entries as they are. Time is a unit as well, which rows and columns of one
    matrix do not have: those are scaled by :func:`daedal.structure.equilibration.equilibrate`.
    """
    m, n = A.shape
    in_A, in_B = _present(A), _present(B)
    weight = in_A + _WEIGHT_B * in_B
    log_A = np.log2(np.abs(A), where=in_A > 0.0, out=np.zeros_like(A))
    log_B = np.log2(np.abs(B), where=in_B > 0.0, out=np.zeros_like(B))
    total = log_A + _WEIGHT_B * log_B
    normal = np.block(
        [
            [np.diag(weight.sum(axis=1)), weight, in_A.sum(axis=1)[:, None]],
            [weight.T, np.diag(weight.sum(axis=0)), in_A.sum(axis=0)[:, None]],
            [in_A.sum(axis=1), in_A.sum(axis=0), np.atleast_1d(in_A.sum())],
        ]
    )
    right = np.concatenate([total.sum(axis=1), total.sum(axis=0), [log_A.sum()]])
    # What the entries leave open (a common factor of rows and columns, empty rows) stays near 1.
    logs = np.linalg.solve(normal + 1e-8 * np.eye(m + n + 1), right)
    powers = np.exp2(-np.round(logs))
    rows, columns, time = powers[:m], powers[m : m + n], float(powers[-1])
    factors = rows[:, None] * columns
    return Scaled(A * factors * time, B * factors, rows, columns, time)


def _present(matrix: np.ndarray) -> np.ndarray:
    """1 where an entry sets a scale, 0 where it is zero or a rounding error beside the others."""
    size = np.abs(matrix)
    if size.size == 0:
        return np.zeros(size.shape)
    beside = np.minimum(size.max(axis=1, keepdims=True), size.max(axis=0, keepdims=True))
    return (size > _NOISE * beside).astype(float)
