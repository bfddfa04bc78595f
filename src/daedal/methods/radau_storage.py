"""Where the entries of F_y stand in the matrices of Radau IIA: one of n unknowns, and those of pairs with 2n."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from daedal.linear_solvers import sparse_direct


@dataclass(frozen=True)
class Storage:
    """Rows and columns of the entries of a matrix, and their places in its storage and in that of a pair's matrix.

    The unknowns of a pair stand in turn, so that entry (i, j) becomes the block of rows 2i, 2i + 1 and columns 2j,
    2j + 1. `pair_place` is the place of its upper left entry, `pair_next` that of the upper right one; the lower ones
    follow them.
    """

    rows: np.ndarray
    columns: np.ndarray
    place: np.ndarray
    pair_place: np.ndarray
    pair_next: np.ndarray
    n: int
    bandwidth: tuple[int, int] | None = None
    pattern: Any = None

    def pair(self, bridge) -> Any:
        """A matrix for one pair."""
        from daedal.kernels import builders

        if self.pattern is not None:
            return sparse_direct(bridge, self.pattern)
        if self.bandwidth is not None:
            return builders.banded_matrix(bridge, 2 * self.n, *self.bandwidth)
        return builders.dense_matrix(bridge, 2 * self.n)


def storage(n: int, kind: str, bandwidth=None, sparsity=None) -> Storage:
    """The storage of a problem with n unknowns, by the name of its linear solver."""
    if kind == "sparse":
        return _sparse(n, sparsity)
    if kind == "banded":
        return _banded(n, *bandwidth)
    columns, rows = (index.ravel() for index in np.divmod(np.arange(n * n), n))
    pair_place = 4 * n * columns + 2 * rows
    return Storage(rows, columns, np.arange(n * n), pair_place, pair_place + 2 * n, n)


def _banded(n: int, ml: int, mu: int) -> Storage:
    from daedal.kernels.patterns import band_pattern, band_position

    start, rows = band_pattern(n, ml, mu)
    columns = np.repeat(np.arange(n), np.diff(start))
    lower, upper = 2 * ml + 1, 2 * mu + 1
    depth = 2 * lower + upper + 1
    pair_place = 2 * columns * depth + lower + upper + 2 * (rows - columns)
    place = band_position(start, rows, ml, mu)
    return Storage(rows, columns, place, pair_place, pair_place + depth - 1, n, bandwidth=(lower, upper))


def _sparse(n: int, pattern) -> Storage:
    from scipy.sparse import csc_array

    start, rows = pattern.indptr.astype(np.int64), pattern.indices.astype(np.int64)
    counts = np.diff(start)
    columns, entries = np.repeat(np.arange(n), counts), np.arange(rows.size)
    pair_place = 4 * start[columns] + 2 * (entries - start[columns])
    pair_next = pair_place + 2 * counts[columns]
    indices = np.empty(4 * rows.size, dtype=np.int32)
    for places in (pair_place, pair_next):
        indices[places], indices[places + 1] = 2 * rows, 2 * rows + 1
    indptr = np.append(np.column_stack([4 * start[:-1], 4 * start[:-1] + 2 * counts]).ravel(), 4 * rows.size)
    pairs = csc_array((np.ones(indices.size), indices, indptr.astype(np.int32)), shape=(2 * n, 2 * n))
    return Storage(rows, columns, entries, pair_place, pair_next, n, pattern=pairs)
