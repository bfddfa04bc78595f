"""Equations, unknowns and time in units in which the numbers of a pencil come near 1."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

_WEIGHT_B = 0.1  # of B: the ranks of A decide, and stiff equations have entries of B that do not fit A
_NOISE = 1e-13  # entries below this part of the others in their row and column are rounding errors: they set no scale


class Scaled(NamedTuple):
    """``A * rows[:, None] * columns * time`` and ``B * rows[:, None] * columns``, with factors that are powers of 2."""

    A: np.ndarray
    B: np.ndarray
    rows: np.ndarray
    columns: np.ndarray
    time: Any  # a float, or an array of them for stacks of matrices


def scale_pencil(A: np.ndarray, B: np.ndarray) -> Scaled:
    """Scale equations, unknowns and time such that the nonzero entries of A and B come near 1.

    Least squares for the logarithms of the entries (A. R. Curtis, J. K. Reid, J. Inst. Maths Applics 10, 1972).
    Powers of 2 leave all digits of the entries as they are. Time is a unit as well, which rows and columns of one
    matrix do not have: those are scaled by :func:`daedal.structure.equilibration.equilibrate`. Of stacks of matrices
    each pair is scaled by itself.
    """
    m, n = A.shape[-2:]
    in_A, in_B = _present(A), _present(B)
    weight = in_A + _WEIGHT_B * in_B
    log_A = np.log2(np.abs(A), where=in_A > 0.0, out=np.zeros_like(A))
    log_B = np.log2(np.abs(B), where=in_B > 0.0, out=np.zeros_like(B))
    total = log_A + _WEIGHT_B * log_B
    normal = np.zeros((*A.shape[:-2], m + n + 1, m + n + 1))
    diagonal = np.arange(m + n)
    normal[..., diagonal, diagonal] = np.concatenate([weight.sum(axis=-1), weight.sum(axis=-2)], axis=-1)
    normal[..., :m, m:-1], normal[..., m:-1, :m] = weight, np.swapaxes(weight, -1, -2)
    normal[..., -1, :-1] = np.concatenate([in_A.sum(axis=-1), in_A.sum(axis=-2)], axis=-1)
    normal[..., :-1, -1] = normal[..., -1, :-1]
    normal[..., -1, -1] = in_A.sum(axis=(-1, -2))
    last = log_A.sum(axis=(-1, -2))[..., None]
    right = np.concatenate([total.sum(axis=-1), total.sum(axis=-2), last], axis=-1)
    # What the entries leave open (a common factor of rows and columns, empty rows) stays near 1.
    logs = np.linalg.solve(normal + 1e-8 * np.eye(m + n + 1), right[..., None])[..., 0]
    powers = np.exp2(-np.round(logs))
    rows, columns, time = powers[..., :m], powers[..., m : m + n], powers[..., -1]
    factors = rows[..., :, None] * columns[..., None, :]
    scaled = A * factors * time[..., None, None]
    return Scaled(scaled, B * factors, rows, columns, float(time) if time.ndim == 0 else time)


def _present(matrix: np.ndarray) -> np.ndarray:
    """1 where an entry sets a scale, 0 where it is zero or a rounding error beside the others."""
    size = np.abs(matrix)
    if size.size == 0:
        return np.zeros(size.shape)
    beside = np.minimum(size.max(axis=-1, keepdims=True), size.max(axis=-2, keepdims=True))
    return (size > _NOISE * beside).astype(float)
