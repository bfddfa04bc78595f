"""Norms, projectors and derivatives of matrices that are known at a few nodes of an interval."""

from __future__ import annotations

import numpy as np

# Chebyshev-Lobatto nodes of [0, 1], at which matrices are sampled; derivatives are those of the polynomial through them
NODES = 0.5 * (1.0 - np.cos(np.pi * np.arange(5) / 4.0))
_POWERS = np.vander(NODES, increasing=True)
_RATES = np.column_stack([np.zeros(5), *(k * NODES ** (k - 1) for k in range(1, 5))])
_DIFFERENTIATION = _RATES @ np.linalg.inv(_POWERS)
_HIGHEST = np.linalg.inv(_POWERS)[-1] / 128.0  # times the Chebyshev polynomial of degree 4 on [0, 1]
_GAUSS = 0.5 + np.array([-1.0, 1.0]) * np.sqrt(3.0) / 6.0
_INTERPOLATION = np.vander(_GAUSS, 5, increasing=True) @ np.linalg.inv(_POWERS)


def norm(matrix: np.ndarray) -> np.ndarray:
    """The spectral norms of a stack of matrices; 0 for empty ones, infinity where entries are not finite."""
    *stack, rows, columns = matrix.shape
    if rows == 0 or columns == 0:
        return np.zeros(stack)
    finite = np.isfinite(matrix).all(axis=(-2, -1))
    values = np.linalg.norm(np.where(finite[..., None, None], matrix, 0.0), 2, axis=(-2, -1))
    return np.where(finite, values, np.inf)


def rate(samples: np.ndarray, h: float) -> np.ndarray:
    """The time derivative at the nodes of an interval of length h, from samples at the nodes."""
    return np.tensordot(_DIFFERENTIATION / h, samples - samples[0], axes=1)  # exactly 0 for constants


def highest_term(samples: np.ndarray) -> np.ndarray:
    """The size of the term of degree 4 in the polynomial through samples at the nodes."""
    return np.tensordot(_HIGHEST, samples - samples[0], axes=1)


def at_gauss_points(samples: np.ndarray) -> np.ndarray:
    """Values at the two Gauss points of an interval, from samples at the nodes."""
    return np.tensordot(_INTERPOLATION, samples, axes=1)


def inverse(matrix: np.ndarray) -> np.ndarray:
    """The inverses of a stack of matrices; NaN where a matrix is singular."""
    try:
        return np.linalg.inv(matrix)
    except np.linalg.LinAlgError:
        pass
    result = np.full_like(matrix, np.nan)
    for place in np.ndindex(*matrix.shape[:-2]):
        try:
            result[place] = np.linalg.inv(matrix[place])
        except np.linalg.LinAlgError:
            continue
    return result


def transposed(matrix: np.ndarray) -> np.ndarray:
    """The transposes of a stack of matrices."""
    return np.swapaxes(matrix, -1, -2)


def aligned(basis: np.ndarray, reference: np.ndarray) -> np.ndarray:
    """Another orthonormal basis of the same space, turned so that it is nearest to a reference basis (Procrustes)."""
    if basis.shape[1] == 0:
        return basis
    u, _, vt = np.linalg.svd(basis.T @ reference)
    return basis @ (u @ vt)
