r"""Transformation of the matrix A of an implicit Runge-Kutta method, and memory for the matrices of its stages.

The eigenvalues of A decouple the systems of the stages: a real one of n unknowns for each real eigenvalue, a complex
one for each pair (Butcher, BIT 16, 1976; Hairer and Wanner II, IV.8). If A has too few eigenvectors, as in singly
implicit methods, which have a single eigenvalue, a triangular form is used (Burrage, BIT 18, 1978).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from daedal.kernels.records import Record
from daedal.methods.iterative_solvers import sparse_direct

_CONDITION = 1e6  # condition number above which eigenvectors count as dependent
_CLUSTERED = 1e-3  # eigenvalues closer than this are one multiple eigenvalue, split by round-off


@dataclass(frozen=True)
class Transformation:
    r"""T with :math:`T^{-1} A T` block triangular.

    Attributes
    ----------
    eigenvalues : tuple of complex
        One for each block; those with an imaginary part have two rows, :math:`(re, -im; im, re)`.
    transform, inverse : array
        T and its inverse.
    coupling : array or None
        The entries above the blocks.
    """

    eigenvalues: tuple[complex, ...]
    transform: np.ndarray
    inverse: np.ndarray
    coupling: np.ndarray | None = None

    @property
    def widths(self) -> list[int]:
        """The number of rows of each block."""
        return [2 if x.imag else 1 for x in self.eigenvalues]

    @property
    def real(self) -> list[float]:
        """The real eigenvalues."""
        return [x.real for x in self.eigenvalues if not x.imag]

    @property
    def pairs(self) -> np.ndarray:
        """Real and imaginary parts of the complex eigenvalues."""
        return np.array([[x.real, x.imag] for x in self.eigenvalues if x.imag]).reshape(-1, 2)


def transformation(a: np.ndarray) -> Transformation:
    """The transformation of a matrix.

    Examples
    --------
    >>> transformation(np.array([[5.0, -1.0], [9.0, 3.0]]) / 12.0).widths
    [2]
    >>> transformation(np.array([[1.0, 0.0], [1.0, 1.0]])).coupling is None
    False
    """
    values, vectors = np.linalg.eig(a)
    reals = [i for i in range(values.size) if abs(values[i].imag) < 1e-9 * abs(values[i]) or values[i].imag == 0.0]
    uppers = sorted(
        (i for i in range(values.size) if i not in reals and values[i].imag > 0.0), key=lambda i: values[i].imag
    )
    columns = [np.real(vectors[:, i]) for i in reals]
    for i in uppers:
        columns += [np.real(vectors[:, i]), -np.imag(vectors[:, i])]
    transform = np.ascontiguousarray(np.array(columns).T)
    if np.linalg.cond(transform) > _CONDITION:
        center = float(np.trace(a)) / len(a)
        clustered = np.max(np.abs(values - center)) <= _CLUSTERED * abs(center)
        return _deflated(a, center) if clustered else _schur(a)
    found = [*(complex(values[i].real) for i in reals), *(complex(values[i]) for i in uppers)]
    return Transformation(tuple(found), transform, np.linalg.inv(transform))


def _deflated(a: np.ndarray, eigenvalue: float) -> Transformation:
    """Triangular form for a single eigenvalue, by an orthogonal T built from successive null vectors of A - lambda."""
    n = len(a)
    q, rest = np.eye(n), a - eigenvalue * np.eye(n)
    for k in range(n - 1):
        vectors = np.linalg.svd(rest[k:, k:])[2]
        step = np.eye(n)
        step[k:, k:] = vectors[::-1].T
        q, rest = q @ step, step.T @ rest @ step
    return Transformation((complex(eigenvalue),) * n, q, q.T.copy(), np.triu(rest, 1))


def _schur(a: np.ndarray) -> Transformation:
    """The real Schur form, with its 2 x 2 blocks scaled to (re, -im; im, re)."""
    from scipy.linalg import schur

    form, q = schur(a)
    scale, eigenvalues, i = np.ones(len(a)), [], 0
    while i < len(a):
        if i + 1 < len(a) and form[i + 1, i] != 0.0:
            scale[i + 1] = np.copysign(np.sqrt(-form[i + 1, i] / form[i, i + 1]), form[i + 1, i])
            eigenvalues.append(complex(form[i, i], abs(form[i + 1, i] / scale[i + 1])))
            i += 2
        else:
            eigenvalues.append(complex(form[i, i]))
            i += 1
    form = form / scale[:, None] * scale
    found = Transformation(tuple(eigenvalues), q * scale, (q / scale).T.copy(), form)
    first = 0
    for width in found.widths:  # entries inside blocks are no coupling
        form[first : first + width, : first + width] = 0.0
        first += width
    return found


def in_deviations(found: Transformation, levels: int = 2) -> np.ndarray:
    r"""Weights of :math:`F_k / h^k` if the unknowns are deviations, with A replaced by its inverse: powers of the
    eigenvalue."""
    return np.array([[[(x**k).real, (x**k).imag] for k in range(levels)] for x in found.eigenvalues])


def in_slopes(found: Transformation) -> np.ndarray:
    """Weights of :math:`F_k / h^k` if the unknowns are slopes: the eigenvalue, and 1."""
    return np.array([[[x.real, x.imag], [1.0, 0.0]] for x in found.eigenvalues])


class StageMatrices:
    """Matrices of the stage systems, which may share them; the first real matrix may be given."""

    def __init__(self, places: Storage, bridge: Any, copies: int = 1):
        self._places, self._bridge, self._copies = places, bridge, copies
        self._kept: dict[tuple[int, int], int] = {}
        self._alive: list[Record] = []

    def give(self, address: int) -> None:
        """Use the matrix at this address for the first real block."""
        self._kept[1, 0] = address

    def _address(self, width: int, number: int) -> int:
        if (width, number) not in self._kept:
            make = self._places.complex_matrix if width == 2 else self._places.matrix
            self._alive.append(make(self._bridge, self._copies))
            self._kept[width, number] = self._alive[-1].address
        return self._kept[width, number]

    def system(self, found: Transformation, weights: np.ndarray, extra: np.ndarray | None = None) -> Record:
        """The record of a system of stages; `extra` are weights of an additional real matrix to factor."""
        from daedal.methods.implicit_rk.stages import STAGE_SYSTEM

        firsts = np.concatenate([[0], np.cumsum(found.widths)[:-1]]).tolist()
        rows = [(f, w, weights[b]) for b, (f, w) in enumerate(zip(firsts, found.widths, strict=True))]
        rows += [] if extra is None else [(-1, 1, extra)]
        addresses: list[int] = []
        factors: list[bool] = []
        seen: list[np.ndarray] = []
        used = {1: 0, 2: 0}
        for _, width, weight in rows:
            equal = [k for k, other in enumerate(seen) if np.array_equal(other, weight)]
            factors.append(not equal)
            seen.append(weight)
            if equal:
                addresses.append(addresses[equal[0]])
            else:
                addresses.append(self._address(width, used[width]))
                used[width] += 1
        coupling = {} if found.coupling is None else {"coupling": np.ascontiguousarray(found.coupling)}
        record = Record(
            STAGE_SYSTEM,
            m=len(found.transform),
            levels=weights.shape[1],
            blocks=len(rows),
            first=np.array([row[0] for row in rows]),
            width=np.array([row[1] for row in rows]),
            matrix=np.array(addresses),
            factors=np.array(factors, dtype=np.int64),
            weights=np.ascontiguousarray([row[2] for row in rows]),
            transform=np.ascontiguousarray(found.transform),
            inverse=np.ascontiguousarray(found.inverse),
            coupled=found.coupling is not None,
            **coupling,
        )
        self._alive.append(record)
        return record


@dataclass(frozen=True)
class Storage:
    """Rows and columns of the entries of a matrix, and their positions in its storage and in block storage.

    The unknowns of m stages are interleaved, so that entry (i, j) becomes the block of rows m i, ..., m i + m - 1 and
    columns m j, ..., m j + m - 1: a band remains a band, and a sparse matrix has the same structure with blocks.
    """

    rows: np.ndarray
    columns: np.ndarray
    place: np.ndarray
    n: int
    bandwidth: tuple[int, int] | None = None
    pattern: Any = None

    def block_places(self, m: int) -> np.ndarray:
        """The positions of the first rows of all blocks, for each of their m columns; the other rows follow."""
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

    def matrix(self, bridge, copies: int = 1, m: int = 1) -> Record:
        """A matrix with blocks of m x m, for this many copies of the unknowns."""
        from daedal.kernels import builders

        if self.pattern is not None:
            return sparse_direct(bridge, self._block_pattern(m), copies=copies)
        if self.bandwidth is not None:
            return builders.banded_matrix(bridge, m * self.n, *self._block_bandwidth(m), copies=copies)
        return builders.dense_matrix(bridge, m * self.n, copies=copies)

    def complex_matrix(self, bridge, copies: int = 1) -> Record:
        """A complex matrix of this structure, with the positions of the real one."""
        from daedal.kernels import builders

        if self.pattern is not None:
            return sparse_direct(bridge, self.pattern, copies=copies, is_complex=True)
        return builders.complex_matrix(self.n, self.bandwidth, copies)

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
