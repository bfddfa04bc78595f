"""Nilpotency that follows from the places of the zeros alone."""

from __future__ import annotations

from typing import Any

import numpy as np

from daedal.errors import InvalidProblemError
from daedal.linear.words import check_matrix


def triangular_order(N: Any) -> np.ndarray | None:
    """The order of rows and columns in which a structurally nilpotent matrix is strictly upper triangular.

    A matrix is structurally nilpotent if it remains nilpotent whatever its nonzero entries are changed to; that is
    the case exactly if a permutation makes it strictly triangular (Brenan, Campbell and Petzold, theorem 2.3.6),
    which means that its graph has no cycle.

    Parameters
    ----------
    N : array_like, shape (n, n)

    Returns
    -------
    numpy.ndarray or None
        ``N[np.ix_(order, order)]`` is strictly upper triangular; None if there is no such order.

    Examples
    --------
    >>> from daedal import linear
    >>> linear.triangular_order([[0, 0, 0], [2, 0, 0], [3, 4, 0]]).tolist()
    [2, 1, 0]
    >>> linear.triangular_order([[1, -1], [1, -1]]) is None  # nilpotent, but not by its structure
    True
    """
    matrix = check_matrix(N, "N")
    n = len(matrix)
    if matrix.shape != (n, n):
        raise InvalidProblemError(f"N must be square, but its shape is {matrix.shape}")
    waiting = np.count_nonzero(matrix, axis=0)  # entries above a row that has not been placed yet
    order: list[int] = []
    ready = [int(j) for j in np.flatnonzero(waiting == 0)]
    while ready:
        i = ready.pop()
        order.append(i)
        for j in np.flatnonzero(matrix[i]):
            waiting[j] -= 1
            if waiting[j] == 0:
                ready.append(int(j))
    return np.array(order) if len(order) == n else None  # a cycle is never ready
