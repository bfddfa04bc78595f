"""Which derivatives are integrated: pivots of the system Jacobian, block by block."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp
from scipy.linalg import qr

from daedal.index_reduction.prolongation import Block

_SINGULAR = 1e-11  # ratio of pivots below which equations no longer determine as many derivatives as there are of them


class SingularBlock(Exception):
    """The equations of a block do not determine as many derivatives as there are of them at this point."""

    def __init__(self, block: Block):
        super().__init__("singular")
        self.block = block


def choose(blocks: Sequence[Block], matrices: Sequence[np.ndarray], scale: np.ndarray) -> list[np.ndarray]:
    """For each block the rows S that say what is integrated, S u' = S (next derivatives): unit vectors.

    The others, the dummy derivatives, are those whose columns QR with column pivoting takes first from the matrix of
    the equations, in units of the sizes `scale` of u (Mattsson and Soederlind, section 3, with numerical pivots).
    """
    return [_rows(block, matrix * scale[block.columns]) for block, matrix in zip(blocks, matrices, strict=True)]


def _rows(block: Block, matrix: np.ndarray) -> np.ndarray:
    count, n = matrix.shape
    if count == 0:
        return np.eye(n)
    norms = np.abs(matrix).max(axis=1, keepdims=True)
    if not np.isfinite(matrix).all() or np.any(norms == 0.0):
        raise SingularBlock(block)
    triangle, order = qr(matrix / norms, mode="r", pivoting=True)
    pivots = np.abs(np.diag(triangle))
    if pivots[count - 1] <= _SINGULAR * pivots[0]:
        raise SingularBlock(block)
    return np.eye(n)[np.sort(order[count:])]


def amplification(
    blocks: Sequence[Block], matrices: Sequence[np.ndarray], chosen: Sequence[np.ndarray], scale: np.ndarray
) -> float:
    """The largest change of a dependent derivative by a change of an integrated one, both in units of their sizes.

    It is at most of the order of 1 for the best choice, and infinite where the choice is no longer possible.
    """
    largest = 0.0
    for block, matrix, rows in zip(blocks, matrices, chosen, strict=True):
        if 0 < len(rows) < len(block.columns):
            size = scale[block.columns]
            whole = np.concatenate([matrix, rows]) * size
            right = np.concatenate([np.zeros((len(matrix), len(rows))), np.diag(rows @ size)])
            try:
                largest = max(largest, float(np.abs(np.linalg.solve(whole, right)).max()))
            except np.linalg.LinAlgError:
                return np.inf
    return largest


def stacked(blocks: Sequence[Block], chosen: Sequence[np.ndarray], n: int) -> tuple[sp.csr_array, sp.csr_array]:
    """The rows S of all blocks as one matrix on u, and the same rows on the derivatives of what they select."""
    count = sum(map(len, chosen))
    data, rows, columns, targets = [], [], [], []
    first = 0
    for block, own in zip(blocks, chosen, strict=True):
        i, k = np.nonzero(own)
        data.append(own[i, k])
        rows.append(first + i)
        columns.append(np.asarray(block.columns, dtype=np.int64)[k])
        targets.append(np.asarray(block.targets, dtype=np.int64)[k])
        first += len(own)
    if not count:
        return sp.csr_array((0, n)), sp.csr_array((0, n))
    values, at = np.concatenate(data), np.concatenate(rows)
    return tuple(  # type: ignore[return-value]
        sp.csr_array((values, (at, np.concatenate(where))), shape=(count, n)) for where in (columns, targets)
    )
