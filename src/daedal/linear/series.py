"""Matrices that are truncated power series in time: arrays of coefficients, one after the other.

Smooth transformations of time-varying systems exist near every point at which ranks are constant. As power series they
are computed from the coefficients at one point, and whether a rank is constant near it can be seen: the Schur
complement that vanishes at the point must vanish as a series.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from daedal.errors import DaedalError
from daedal.linear.rank import RankDecision, rank_decision


class RankChangeError(DaedalError, ValueError):
    """The rank of a matrix is not constant near the given time, and the theory needs that it is."""


def product(X: np.ndarray, Y: np.ndarray) -> np.ndarray:
    """X Y; as many coefficients as both have."""
    count = min(len(X), len(Y))
    return np.stack([sum(X[i] @ Y[k - i] for i in range(k + 1)) for k in range(count)])


def inverse(X: np.ndarray) -> np.ndarray:
    """The inverse of a series whose first coefficient is regular."""
    first = np.linalg.inv(X[0])
    result = np.zeros_like(X)
    result[0] = first
    for k in range(1, len(X)):
        result[k] = -first @ sum(X[i] @ result[k - i] for i in range(1, k + 1))
    return result


def rate(X: np.ndarray) -> np.ndarray:
    """The derivative with respect to time; one coefficient less."""
    factors = np.arange(1.0, len(X))
    return X[1:] * factors.reshape(-1, *[1] * (X.ndim - 1))


def constant(matrix: np.ndarray, count: int) -> np.ndarray:
    """A constant matrix as a series."""
    return np.concatenate([matrix[None], np.zeros((count - 1, *matrix.shape))])


class Compression(NamedTuple):
    """``left @ X = [R; 0]`` with R of full row rank, and ``R @ kernel = 0``, as series.

    ``inverse`` has ``R @ inverse = I``.
    """

    rank: int
    left: np.ndarray
    rows: np.ndarray
    kernel: np.ndarray
    inverse: np.ndarray
    decisions: tuple[RankDecision, ...]


def compress(X: np.ndarray, tolerance: float, scale: float, what: str) -> Compression:
    """Compress the rows of a series of constant rank.

    Raises
    ------
    RankChangeError
        If the rank is lower at the point than near it.
    """
    count, m, n = X.shape
    U, s, Vt = np.linalg.svd(X[0])
    decision = rank_decision(s, scale=scale, tolerance=tolerance, what=what)
    r = decision.rank
    W = np.einsum("ji,kjl,ml->kim", U, X, Vt)  # U^T X V
    first = inverse(W[:, :r, :r])
    lower, upper = product(W[:, r:, :r], first), product(first, W[:, :r, r:])
    rest = (W[:, r:, r:] - product(W[:, r:, :r], upper))[1:]
    change = rank_decision(
        np.concatenate([*rest, np.zeros((1, n - r))]), scale=scale, tolerance=tolerance, what=f"change of {what}"
    )
    if change.rank:
        raise RankChangeError(
            f"the rank of {what} is {r} at this time and larger near it; canonical forms and the strangeness index "
            "need ranks that are constant"
        )
    left = np.zeros((count, m, m))
    left[0] = np.eye(m)
    left[:, r:, :r] -= lower
    left = left @ U.T
    kernel = np.zeros((count, n, n - r))
    kernel[:, :r], kernel[0, r:] = -upper, np.eye(n - r)
    right = np.concatenate([first, np.zeros((count, n - r, r))], axis=1)
    return Compression(r, left, W[:, :r] @ Vt, Vt.T @ kernel, Vt.T @ right, (decision, change))
