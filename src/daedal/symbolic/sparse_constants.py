"""Sparse matrices of known numbers in a trace: products with vectors of symbols, entry by entry."""

from __future__ import annotations

from typing import Any

import numpy as np

from daedal.symbolic.arrays import Array, array_of, is_symbolic, numbers, plain, wrapped
from daedal.symbolic.untraceable import Untraceable


class SparseConstant:
    """A scipy.sparse matrix defined outside a traced function; it can be multiplied and read but not changed."""

    __array_ufunc__ = None  # products with arrays call this class

    def __init__(self, matrix: Any):
        self._matrix = matrix

    def __matmul__(self, other):
        if isinstance(other, SparseConstant):
            return SparseConstant(self._matrix @ other._matrix)
        if not is_symbolic(other):
            return wrapped(self._matrix @ numbers(plain(other)))
        vectors = array_of(other) if isinstance(other, (list, tuple)) else other
        columns = vectors.reshape(len(vectors), -1)
        rows = self._matrix.tocsr()
        entries = [
            [_product(rows.data[a:b], columns[rows.indices[a:b], k]) for k in range(columns.shape[1])]
            for a, b in zip(rows.indptr[:-1].tolist(), rows.indptr[1:].tolist())
        ]
        return array_of(entries).reshape(len(entries), *vectors.shape[1:])

    dot = __matmul__

    def __rmatmul__(self, other):
        return (self.T @ other.T).T if isinstance(other, Array) else wrapped(other @ self._matrix)

    def __mul__(self, other):
        if np.isscalar(other) and not is_symbolic(other):
            return SparseConstant(self._matrix * other)
        if type(self._matrix).__name__.endswith("_matrix"):  # for spmatrix, * is the matrix product
            return self @ other
        raise Untraceable("multiplies a sparse matrix by values, entry by entry", remedy="use @, or a dense matrix")

    def __rmul__(self, other):
        if np.isscalar(other) and not is_symbolic(other):
            return SparseConstant(self._matrix * other)
        raise Untraceable("multiplies a sparse matrix by a value", remedy="multiply the product with the vector")

    def __add__(self, other):
        if isinstance(other, SparseConstant):
            return SparseConstant(self._matrix + other._matrix)
        raise Untraceable("adds values to a sparse matrix", remedy="use a dense matrix")

    def __sub__(self, other):
        return self + -other

    def __neg__(self):
        return SparseConstant(-self._matrix)

    @property
    def T(self) -> SparseConstant:
        return SparseConstant(self._matrix.T)

    def transpose(self) -> SparseConstant:
        return self.T

    @property
    def shape(self) -> tuple[int, ...]:
        return self._matrix.shape

    def toarray(self):
        return wrapped(self._matrix.toarray())

    def __getattr__(self, name: str):
        raise Untraceable(f"uses '{name}' of a sparse matrix")


def _product(data: np.ndarray, values: np.ndarray):
    """Products with the rows, summed in the order of the entries; 0 for an empty row."""
    return sum((float(a) * x for a, x in zip(data, values.tolist())), start=0.0)
