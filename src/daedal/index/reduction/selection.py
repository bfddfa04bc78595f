"""Selection of the integrated derivatives: pivots of the system Jacobian, block by block."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.linalg import qr

from daedal.index.reduction.prolongation import Block

_SINGULAR = 1e-11  # ratio of pivots below which the equations of a block are rank deficient


class SingularBlock(Exception):
    """The equations of a block are rank deficient at this point."""

    def __init__(self, block: Block):
        super().__init__("singular")
        self.block = block


Choice = Callable[[np.ndarray], np.ndarray | None]
"""Rows S for the matrix of the equations of a block, in units of the sizes of its unknowns; None if impossible."""


def choose(
    blocks: Sequence[Block], matrices: Sequence[np.ndarray], scale: np.ndarray, choice: Choice
) -> list[np.ndarray]:
    """For each block, the rows S that define S u' = S (next derivatives); `scale` are the sizes of u."""
    return [_rows(block, matrix, scale[block.places], choice) for block, matrix in zip(blocks, matrices, strict=True)]


def _rows(block: Block, matrix: np.ndarray, scale: np.ndarray, choice: Choice) -> np.ndarray:
    if not block.rows:
        return np.eye(len(block.columns))
    matrix = matrix * scale
    norms = np.abs(matrix).max(axis=1, keepdims=True)
    if not np.isfinite(matrix).all() or np.any(norms == 0.0):
        raise SingularBlock(block)
    rows = choice(matrix / norms)
    if rows is None:
        raise SingularBlock(block)
    rows = rows / scale
    return rows / np.abs(rows).max(axis=1, keepdims=True, initial=0.0)


def unit_vectors(matrix: np.ndarray) -> np.ndarray | None:
    """Select derivatives: all except the dummy derivatives, which QR with column pivoting takes first.

    Mattsson and Soederlind, section 3, with numerical pivots.
    """
    count, n = matrix.shape
    triangle, order = qr(matrix, mode="r", pivoting=True)
    pivots = np.abs(np.diag(triangle))
    return None if pivots[count - 1] <= _SINGULAR * pivots[0] else np.eye(n)[np.sort(order[count:])]


def tangents(matrix: np.ndarray) -> np.ndarray | None:
    """Combinations of derivatives: coordinates in the tangent space of the equations, its orthonormal basis."""
    return kernel(matrix, len(matrix))


def kernel(matrix: np.ndarray, rank: int) -> np.ndarray | None:
    """Orthonormal rows N with `matrix` N^T = 0, for a matrix of this rank; None if its rank is smaller."""
    found = _decomposed(matrix, rank)
    return None if found is None else found[rank:]


def row_space(matrix: np.ndarray, rank: int) -> np.ndarray | None:
    """Orthonormal rows that span the row space of a matrix of this rank; None if its rank is smaller."""
    found = _decomposed(matrix, rank)
    return None if found is None else found[:rank]


def _decomposed(matrix: np.ndarray, rank: int) -> np.ndarray | None:
    if rank == 0:
        return np.eye(matrix.shape[1])
    _, values, right = np.linalg.svd(matrix)
    return right if values[rank - 1] > _SINGULAR * values[0] else None


def amplification(
    blocks: Sequence[Block], matrices: Sequence[np.ndarray], chosen: Sequence[np.ndarray], scale: np.ndarray
) -> float:
    """The largest change of a dependent derivative with an integrated one, both in units of their sizes.

    It is at most of order 1 for the best selection, and infinite for a singular one.
    """
    largest = 0.0
    for block, matrix, rows in zip(blocks, matrices, chosen, strict=True):
        if 0 < len(rows) < len(block.columns):
            size = scale[block.places]
            whole = np.concatenate([matrix, rows]) * size
            right = np.concatenate([np.zeros((len(matrix), len(rows))), np.diag(np.abs(rows * size).max(axis=1))])
            try:
                largest = max(largest, float(np.abs(np.linalg.solve(whole, right)).max()))
            except np.linalg.LinAlgError:
                return np.inf
    return largest


def stacked(blocks: Sequence[Block], chosen: Sequence[np.ndarray], n: int, dense: bool) -> tuple[Any, Any]:
    """The rows S of all blocks as one matrix on u, and the same rows on the derivatives of the selected unknowns."""
    count, first = sum(map(len, chosen)), 0
    kind = np.zeros if dense else sp.lil_array
    fixed, following = kind((count, n)), kind((count, n))
    for block, rows in zip(blocks, chosen, strict=True):
        i, k = np.nonzero(rows)
        fixed[first + i, block.places[k]] = rows[i, k]
        following[first + i, block.next_places[k]] = rows[i, k]
        first += len(rows)
    return (fixed, following) if dense else (sp.csr_array(fixed), sp.csr_array(following))
