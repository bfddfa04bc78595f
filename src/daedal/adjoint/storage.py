"""Matrices whose entries come as a vector, in the storage that suits their pattern: dense, banded, or sparse."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import linalg, sparse
from scipy.linalg import lapack
from scipy.sparse import linalg as sparse_linalg

from daedal.errors import DaedalError

DENSE = 60
"""Unknowns up to which matrices are dense."""
_NARROW = 0.1  # width of a band, in parts of the unknowns, up to which it is stored as such

Places = tuple[np.ndarray, np.ndarray]


def storage_for(places: list[Places], n: int) -> Any:
    """One storage for several matrices, by the rows and columns of their entries."""
    if n <= DENSE:
        return DenseStorage(places, n)
    below, above = bandwidth(places)
    if 2 * below + above + 1 <= _NARROW * n:
        return BandedStorage(places, n, below, above)
    return SparseStorage(places, n)


def bandwidth(places: list[Places]) -> tuple[int, int]:
    """How many diagonals below and above the main one there are."""
    offsets = np.concatenate([rows - columns for rows, columns in places])
    return max(int(offsets.max(initial=0)), 0), max(int(-offsets.min(initial=0)), 0)


class DenseStorage:
    """Square arrays."""

    def __init__(self, places: list[Places], n: int):
        self._places, self._n = places, n

    def matrix(self, k: int, entries: np.ndarray) -> Any:
        """The matrix of the pattern k with these entries."""
        found = np.zeros((self._n, self._n))
        found[self._places[k]] = entries
        return found

    def product(self, matrix: Any, x: np.ndarray) -> np.ndarray:
        """A matrix times a vector."""
        return matrix @ x

    def factored(self, matrix: Any) -> Callable[[np.ndarray], np.ndarray]:
        """The function that solves with a matrix."""
        factor, solve = linalg.get_lapack_funcs(("getrf", "getrs"), (matrix,))
        lu, pivots, info = factor(matrix)
        check_regular(info)
        return lambda right: solve(lu, pivots, right)[0]

    def as_sparse(self, matrix: Any) -> Any:
        """The matrix for SciPy."""
        return sparse.csc_array(matrix)


class BandedStorage(DenseStorage):
    """Diagonals, as LAPACK has them: entry (i, j) in row above + i - j of column j."""

    def __init__(self, places: list[Places], n: int, below: int, above: int):
        self._below, self._above = below, above
        super().__init__([(above + rows - columns, columns) for rows, columns in places], n)

    def matrix(self, k: int, entries: np.ndarray) -> Any:
        """The matrix of the pattern k with these entries."""
        found = np.zeros((self._below + self._above + 1, self._n))
        found[self._places[k]] = entries
        return found

    def product(self, matrix: Any, x: np.ndarray) -> np.ndarray:
        """A matrix times a vector."""
        n, result = self._n, matrix[self._above] * x
        for shift in range(1, self._above + 1):
            result[: n - shift] += matrix[self._above - shift, shift:] * x[shift:]
        for shift in range(1, self._below + 1):
            result[shift:] += matrix[self._above + shift, : n - shift] * x[: n - shift]
        return result

    def factored(self, matrix: Any) -> Callable[[np.ndarray], np.ndarray]:
        """The function that solves with a matrix."""
        below, above = self._below, self._above
        factor, solve = (lapack.dgbtrf, lapack.dgbtrs) if np.isrealobj(matrix) else (lapack.zgbtrf, lapack.zgbtrs)
        room = np.zeros((below, self._n), dtype=matrix.dtype)
        lu, pivots, info = factor(np.concatenate([room, matrix]), below, above)
        check_regular(info)
        return lambda right: solve(lu, below, above, right, pivots)[0]

    def as_sparse(self, matrix: Any) -> Any:
        """The matrix for SciPy."""
        offsets = np.arange(self._above, -self._below - 1, -1)
        return sparse.csc_array(sparse.dia_array((matrix, offsets), shape=(self._n, self._n)))


class SparseStorage(DenseStorage):
    """Compressed rows, factored by SuperLU."""

    def __init__(self, places: list[Places], n: int):
        super().__init__(places, n)
        self._order = [np.lexsort((columns, rows)) for rows, columns in places]
        self._indices = [
            columns[order].astype(np.int32) for (_, columns), order in zip(places, self._order, strict=True)
        ]
        counts = [np.bincount(rows, minlength=n) for rows, _ in places]
        self._starts = [np.concatenate([[0], np.cumsum(count)]).astype(np.int32) for count in counts]

    def matrix(self, k: int, entries: np.ndarray) -> Any:
        """The matrix of the pattern k with these entries."""
        parts = entries[self._order[k]], self._indices[k], self._starts[k]
        return sparse.csr_array(parts, shape=(self._n, self._n))

    def factored(self, matrix: Any) -> Callable[[np.ndarray], np.ndarray]:
        """The function that solves with a matrix."""
        return sparse_solver(matrix)

    def as_sparse(self, matrix: Any) -> Any:
        """The matrix for SciPy."""
        return matrix


def sparse_solver(matrix: Any) -> Callable[[np.ndarray], np.ndarray]:
    """The function that solves with a sparse matrix."""
    try:
        return sparse_linalg.splu(matrix.tocsc()).solve
    except RuntimeError:
        check_regular(1)
        raise


def check_regular(info: int) -> None:
    """Refuse what LAPACK says of a matrix that is singular."""
    if info > 0:
        raise DaedalError("gradient: the matrix of the adjoint equations is singular")
