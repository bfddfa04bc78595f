"""Sparse matrices with a fixed structure, and factorisations that are reused while accurate enough."""

from typing import Any

import numpy as np

from daedal.errors import InvalidProblemError
from daedal.kernels.functions import real_array

_ROUNDOFF = float(np.finfo(float).eps)
_REFINEMENTS = 12
_NEGLIGIBLE = 1e-10
_CONTRACTION = 0.2  # ratio of successive errors of refinement above which old factors are discarded
_SMALLEST_PIVOT = 1e-13  # 1/|A^{-1}| of the equilibrated matrix below which it counts as singular


class SingularMatrix(Exception):
    """A matrix without usable factorisation; the vector `null` is nearly in its kernel."""

    def __init__(self, null: np.ndarray):
        super().__init__("singular matrix")
        self.null = null


class Structure:
    """Positions of the entries of a matrix, row by row; every function result is reordered accordingly."""

    def __init__(self, pattern):
        from scipy.sparse import csr_array

        matrix = csr_array(pattern, copy=True)
        matrix.sum_duplicates()
        matrix.sort_indices()
        self.shape = matrix.shape
        self.indptr, self.indices = matrix.indptr, matrix.indices
        self.rows = np.repeat(np.arange(self.shape[0]), np.diff(self.indptr))
        self._keys = np.append(self.rows * self.shape[1] + self.indices, self.shape[0] * self.shape[1])

    @property
    def nnz(self) -> int:
        """Number of entries."""
        return self.indices.size

    def matrix(self, data: np.ndarray):
        """The CSR matrix with these entries."""
        from scipy.sparse import csr_array

        return csr_array((data, self.indices, self.indptr), shape=self.shape)

    def aligned(self, matrix, name: str):
        """`matrix` as a CSR matrix with exactly this structure; missing entries are zero."""
        from scipy.sparse import csr_array

        matrix = checked(matrix, name, self.shape)
        if not hasattr(matrix, "tocsr") or matrix.format != "csr":
            matrix = csr_array(matrix)
        if self._is_same(matrix):
            return matrix
        matrix = csr_array(matrix, copy=True)
        matrix.sum_duplicates()
        matrix.sort_indices()
        if self._is_same(matrix):
            return matrix
        rows = np.repeat(np.arange(self.shape[0]), np.diff(matrix.indptr))
        keys = rows * self.shape[1] + matrix.indices
        place, kept = np.searchsorted(self._keys, keys), matrix.data != 0.0
        outside = kept & (self._keys[place] != keys)
        if np.any(outside):
            row, column = divmod(int(keys[np.flatnonzero(outside)[0]]), self.shape[1])
            raise InvalidProblemError(
                f"{name} has an entry in row {row}, column {column}, but had none near the start; always store this "
                f"entry, even if it is zero"
            )
        data = np.zeros(self.nnz)
        data[place[kept]] = matrix.data[kept]
        return self.matrix(data)

    def _is_same(self, matrix) -> bool:
        return (
            matrix.nnz == self.nnz
            and np.array_equal(matrix.indptr, self.indptr)
            and np.array_equal(matrix.indices, self.indices)
        )


def checked(matrix, name: str, shape: tuple[int, int]):
    """Check that a matrix, sparse or dense, is real and of the right shape; returns it with float entries."""
    if matrix is None:
        raise InvalidProblemError(f"{name} returned None; it must return a {shape} matrix")
    real_array(matrix.data if hasattr(matrix, "tocsr") else matrix, name, f"a real {shape} matrix")
    if not hasattr(matrix, "tocsr"):
        matrix = np.asarray(matrix, dtype=float)
    if matrix.shape != shape:
        raise InvalidProblemError(f"{name} returned a matrix of shape {matrix.shape}; expected {shape}")
    return matrix.astype(float) if matrix.dtype != float else matrix


class BlockStructure:
    """A square matrix of blocks with fixed structures; entries are written directly into its CSC storage.

    Parameters
    ----------
    n : int
        Size of the matrix.
    blocks : dict
        Name of a block: (first row, first column, rows of its entries, columns of its entries).
    """

    def __init__(self, n: int, blocks: dict[str, tuple[int, int, np.ndarray, np.ndarray]]):
        from scipy.sparse import csc_array

        keys = {
            name: (first_column + columns.astype(np.int64)) * n + first_row + rows
            for name, (first_row, first_column, rows, columns) in blocks.items()
        }
        union = np.unique(np.concatenate(list(keys.values())))
        columns, rows = np.divmod(union, n)
        start = np.searchsorted(columns, np.arange(n + 1))
        self.pattern = csc_array((np.ones(union.size), rows, start), shape=(n, n))
        self._places = {name: np.searchsorted(union, key) for name, key in keys.items()}

    def assemble(self, values: dict[str, Any]) -> np.ndarray:
        """Entries of the CSC matrix from those of the blocks; overlapping blocks are added."""
        data = np.zeros(self.pattern.nnz)
        for name, entries in values.items():
            data[self._places[name]] += entries
        return data


class SparseFactors:
    """LU factors of an equilibrated CSC matrix."""

    def __init__(self, data: np.ndarray, pattern):
        from scipy.sparse import csc_array
        from scipy.sparse.linalg import splu

        from daedal.kernels.patterns import equilibrate

        n = pattern.shape[0]
        scaled, self._rows, self._columns = data.copy(), np.ones(n), np.ones(n)
        equilibrate(scaled, pattern.indices, pattern.indptr, self._rows, self._columns)
        try:
            self._lu = splu(csc_array((scaled, pattern.indices, pattern.indptr), shape=(n, n)))
        except RuntimeError as error:  # raised by SuperLU for a singular matrix
            if "singular" not in str(error):
                raise
            raise SingularMatrix(self._null_vector(scaled, pattern)) from None
        null, size = self._inverse_iteration(self._lu)
        if not size <= 1.0 / _SMALLEST_PIVOT:
            raise SingularMatrix(null)

    def solve(self, b: np.ndarray) -> np.ndarray:
        """A^{-1} b."""
        return self._columns * self._lu.solve(self._rows * b)

    def _inverse_iteration(self, lu) -> tuple[np.ndarray, float]:
        """A vector nearly in the kernel of A, and an estimate of |A^{-1}| for the equilibrated A."""
        x, size = np.cos(0.4 + 1.9 * np.arange(self._rows.size)), 1.0
        for _ in range(3):
            x = lu.solve(x / np.max(np.abs(x)))
            size = float(np.max(np.abs(x)))
            if not np.isfinite(size):
                break
        return self._columns * x, size

    def _null_vector(self, scaled: np.ndarray, pattern) -> np.ndarray:
        """Kernel vector of a singular matrix, computed from a slightly shifted matrix."""
        from scipy.sparse import csc_array, eye_array
        from scipy.sparse.linalg import splu

        shifted = csc_array((scaled, pattern.indices, pattern.indptr), shape=pattern.shape) - 1e-10 * eye_array(
            pattern.shape[0]
        )
        try:
            return self._inverse_iteration(splu(shifted.tocsc()))[0]
        except RuntimeError:
            return np.full(pattern.shape[0], np.nan)


class AugmentedSystem:
    r"""Solves :math:`\begin{pmatrix} M & G^T \\ G & 0 \end{pmatrix} x = b` for slowly changing matrices.

    The factors of an earlier matrix are reused while iterative refinement with them converges fast.
    """

    def __init__(self, mass: Structure, jacobian: Structure):
        n_q, n_c = mass.shape[0], jacobian.shape[0]
        self.n_q = n_q
        self._blocks = BlockStructure(
            n_q + n_c,
            {
                "mass": (0, 0, mass.rows, mass.indices),
                "jacobian": (n_q, 0, jacobian.rows, jacobian.indices),
                "transpose": (0, n_q, jacobian.indices, jacobian.rows),
            },
        )
        self.factors: SparseFactors | None = None

    def factor(self, mass: np.ndarray, jacobian: np.ndarray) -> SparseFactors:
        """Factor the matrix with these entries of M and G."""
        self.factors = None
        data = self._blocks.assemble({"mass": mass, "jacobian": jacobian, "transpose": jacobian})
        self.factors = SparseFactors(data, self._blocks.pattern)
        return self.factors

    def solve(self, mass, jacobian, top: np.ndarray, bottom: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The two parts of x, to round-off, for the CSR matrices M and G."""
        b = np.concatenate([top, bottom])
        x = None if self.factors is None else self._refined(self.factors, mass, jacobian, b)
        if x is None:
            x = self._refined(self.factor(mass.data, jacobian.data), mass, jacobian, b)
        if x is None:
            raise SingularMatrix(np.full(b.size, np.nan))
        return x[: self.n_q], x[self.n_q :]

    def _refined(self, factors: SparseFactors, mass, jacobian, b: np.ndarray) -> np.ndarray | None:
        """Iterative refinement down to round-off; None if the factors are too far from the matrix."""
        transpose, sizes = jacobian.T, (abs(mass), abs(jacobian))
        x, residual, last = np.zeros_like(b), b, np.inf
        for _ in range(_REFINEMENTS):
            x = x + factors.solve(residual)
            top, bottom = x[: self.n_q], x[self.n_q :]
            residual = b - np.concatenate([mass @ top + transpose @ bottom, jacobian @ top])
            error = float(np.max(np.abs(residual) / self._terms(sizes, top, bottom, b), initial=0.0))
            if error <= 4.0 * _ROUNDOFF:
                return x
            if not error <= _CONTRACTION * last:
                return x if error <= 1e3 * _ROUNDOFF else None
            last = error
        return None

    def _terms(self, sizes, top: np.ndarray, bottom: np.ndarray, b: np.ndarray) -> np.ndarray:
        """|A| |x| + |b|, with an upper bound in rows where all terms vanish (Arioli, Demmel and Duff 1989)."""
        mass, jacobian = sizes

        def terms(top, bottom):
            return np.concatenate([mass @ top + jacobian.T @ bottom, jacobian @ top]) + np.abs(b)

        exact = terms(np.abs(top), np.abs(bottom))
        largest = terms(*[np.full(part.size, np.max(np.abs(part), initial=0.0)) for part in (top, bottom)])
        return np.maximum(np.where(exact > _NEGLIGIBLE * largest, exact, largest), np.finfo(float).tiny)


def coloured_entries(structure: Structure, colours: np.ndarray, count: int) -> list[np.ndarray]:
    """For every colour the entries of `structure` in columns of that colour."""
    of_entries = colours[structure.indices]
    order = np.argsort(of_entries, kind="stable")
    ends = np.searchsorted(of_entries[order], np.arange(count + 1))
    return [order[ends[c] : ends[c + 1]] for c in range(count)]


def column_colours(structure: Structure) -> tuple[np.ndarray, int]:
    """Colours of the columns such that columns with a common row differ (Curtis, Powell and Reid)."""
    from scipy.sparse import csc_array

    from daedal.kernels.patterns import sparse_groups

    start, columns = sparse_groups(csc_array(structure.matrix(np.ones(structure.nnz))))
    colours = np.empty(structure.shape[1], dtype=np.int64)
    colours[columns] = np.repeat(np.arange(start.size - 1), np.diff(start))
    return colours, start.size - 1
