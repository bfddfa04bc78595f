"""Where the entries of F_y stand in matrices with blocks: one of n unknowns, and those of m stages, or of pairs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from daedal.methods.linear_solvers import sparse_direct


@dataclass(frozen=True)
class Storage:
    """Rows and columns of the entries of a matrix, and their places in its storage and in those with blocks.

    The unknowns of m stages stand in turn, so that entry (i, j) becomes the block of rows m i, ..., m i + m - 1 and
    columns m j, ..., m j + m - 1: a band stays a band, and what is sparse has the same structure with blocks.
    """

    rows: np.ndarray
    columns: np.ndarray
    place: np.ndarray
    n: int
    bandwidth: tuple[int, int] | None = None
    pattern: Any = None

    def block_places(self, m: int) -> np.ndarray:
        """The places of the first rows of all blocks, for each of their m columns; the other rows follow."""
        rows, columns = m * self.rows, m * self.columns + np.arange(m)[:, None]
        if self.pattern is not None:
            start = self.pattern.indptr.astype(np.int64)
            begin, count = start[self.columns], np.diff(start)[self.columns]
            return m * m * begin + np.arange(m)[:, None] * m * count + m * (np.arange(self.rows.size) - begin)
        if self.bandwidth is not None:
            lower, upper = self._block_bandwidth(m)
            return columns * (2 * lower + upper) + lower + upper + rows
        return columns * m * self.n + rows

    def _block_bandwidth(self, m: int) -> tuple[int, int]:
        assert self.bandwidth is not None
        ml, mu = self.bandwidth
        return m * ml + m - 1, m * mu + m - 1

    def block_matrix(self, bridge, m: int, copies: int = 1) -> Any:
        """A matrix with these blocks, for so many copies of the unknowns."""
        from daedal.kernels import builders

        if self.pattern is not None:
            return sparse_direct(bridge, self._block_pattern(m), copies=copies)
        if self.bandwidth is not None:
            return builders.banded_matrix(bridge, m * self.n, *self._block_bandwidth(m), copies=copies)
        return builders.dense_matrix(bridge, m * self.n, copies=copies)

    def _block_pattern(self, m: int):
        from scipy.sparse import csc_array

        places = self.block_places(m)
        indices = np.empty(m * m * self.rows.size, dtype=np.int32)
        for row in range(m):
            indices[places + row] = m * self.rows + row
        count = m * np.repeat(np.diff(self.pattern.indptr), m)
        indptr = np.concatenate([[0], np.cumsum(count)]).astype(np.int32)
        return csc_array((np.ones(indices.size), indices, indptr), shape=(m * self.n, m * self.n))


def storage(n: int, kind: str, bandwidth=None, sparsity=None) -> Storage:
    """The storage of a problem with n unknowns, by the name of its linear solver."""
    if kind == "sparse":
        start, rows = sparsity.indptr.astype(np.int64), sparsity.indices.astype(np.int64)
        columns = np.repeat(np.arange(n), np.diff(start))
        return Storage(rows, columns, np.arange(rows.size), n, pattern=sparsity)
    if kind == "banded":
        from daedal.kernels.patterns import band_pattern, band_position

        start, rows = band_pattern(n, *bandwidth)
        columns = np.repeat(np.arange(n), np.diff(start))
        return Storage(rows, columns, band_position(start, rows, *bandwidth), n, bandwidth=bandwidth)
    columns, rows = (index.ravel() for index in np.divmod(np.arange(n * n), n))
    return Storage(rows, columns, np.arange(n * n), n)
