r"""The shortest solution of a system with a positive semidefinite matrix."""

import numpy as np

from daedal.kernels.compilation import part
from daedal.kernels.vectors import copy
from daedal.multibody.room import matrix as room_for_matrix
from daedal.multibody.room import numbers, vector

DEPENDENT = 1e-12
"""A row follows from others where this part of its diagonal entry is left when they are eliminated."""


def floats_for_solutions(total: int, entries: int) -> int:
    """How many words of room systems need that have so many unknowns and entries in all."""
    return 3 * total + 2 * entries


@part
def least_norm_solution(matrix, right, x, room):
    """The shortest x with A x = b for a positive semidefinite matrix A, of which the lower half is read; its rank.

    Cholesky's factorisation with diagonal pivoting, A = L L^T with as many columns as the rank is; where that is not
    full, L = Q R and x = Q R^{-T} R^{-1} Q^T b.
    """
    n = right.size
    factor, order, left = room_for_matrix(room, n, n), numbers(room, n), vector(room, n)
    factor[:, :] = 0.0
    left[:] = 1.0  # what remains of the diagonal, as a share
    for i in range(n):
        order[i] = i
    rank = 0
    while rank < n:
        best = rank
        for i in range(rank + 1, n):
            if left[order[i]] > left[order[best]]:
                best = i
        order[rank], order[best] = order[best], order[rank]
        p = order[rank]
        if not left[p] * matrix[p, p] > 0.0 or not left[p] > DEPENDENT:
            break
        pivot = np.sqrt(left[p] * matrix[p, p])
        factor[p, rank] = pivot
        for i in range(rank + 1, n):
            r = order[i]
            value = matrix[max(r, p), min(r, p)]
            for k in range(rank):
                value -= factor[r, k] * factor[p, k]
            factor[r, rank] = value / pivot
            rest = matrix[r, r]
            for k in range(rank + 1):
                rest -= factor[r, k] * factor[r, k]
            left[r] = rest / matrix[r, r] if matrix[r, r] > 0.0 else 0.0
        rank += 1
    if rank < n:
        _by_orthogonal_factor(factor, rank, right, x, room)
        return rank
    copy(x, right)
    for i in range(n):
        for k in range(i):
            x[order[i]] -= factor[order[i], k] * x[order[k]]
        x[order[i]] /= factor[order[i], i]
    for i in range(n - 1, -1, -1):
        for k in range(i + 1, n):
            x[order[i]] -= factor[order[k], i] * x[order[k]]
        x[order[i]] /= factor[order[i], i]
    return rank


@part
def _by_orthogonal_factor(factor, rank, right, x, room):
    """Q R^{-T} R^{-1} Q^T b for L = Q R, which has `rank` columns: modified Gram-Schmidt, twice."""
    n = right.size
    r, y = room_for_matrix(room, rank, rank), vector(room, rank)
    r[:, :] = 0.0
    x[:] = 0.0
    for k in range(rank):
        for _ in range(2):
            for l in range(k):
                share = _product(factor, l, factor[:, k])
                r[l, k] += share
                for i in range(n):
                    factor[i, k] -= share * factor[i, l]
        r[k, k] = np.sqrt(_product(factor, k, factor[:, k]))
        for i in range(n):
            factor[i, k] /= r[k, k]
        y[k] = _product(factor, k, right)
    for k in range(rank - 1, -1, -1):
        for l in range(k + 1, rank):
            y[k] -= r[k, l] * y[l]
        y[k] /= r[k, k]
    for k in range(rank):
        for l in range(k):
            y[k] -= r[l, k] * y[l]
        y[k] /= r[k, k]
        for i in range(n):
            x[i] += factor[i, k] * y[k]


@part
def _product(matrix, k, v):
    """Column k of the matrix times a vector."""
    value = 0.0
    for i in range(v.size):
        value += matrix[i, k] * v[i]
    return value
