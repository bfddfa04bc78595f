"""Matrices that place things in space: moved, turned, scaled."""

from collections.abc import Sequence
from typing import Any

import numpy as np

import daedal

Vector = Sequence[float] | np.ndarray


def placed(offset: Vector, rotation: np.ndarray, scale: Vector) -> np.ndarray:
    """The matrix (3, 4) that scales, then turns, then moves."""
    return np.column_stack([rotation * np.asarray(scale, dtype=float), np.asarray(offset, dtype=float)])


def turned_to(direction: np.ndarray) -> np.ndarray:
    """The rotation by the shortest way that takes z to a direction (3,)."""
    z = direction / np.linalg.norm(direction)
    if z[2] < -1.0 + 1e-12:
        return np.diag([1.0, -1.0, -1.0])
    cross = np.array([[0.0, 0.0, z[0]], [0.0, 0.0, z[1]], [-z[0], -z[1], 0.0]])
    return np.eye(3) + cross + cross @ cross / (1.0 + z[2])  # Rodrigues' formula


def rotation_matrices(value: Any, owner: str, tolerance: float = 1e-6) -> np.ndarray:
    """Matrices (..., 3, 3), checked to be rotations."""
    try:
        matrices = np.asarray(value, dtype=float)
    except (TypeError, ValueError):
        matrices = np.empty(0)
    if matrices.shape[-2:] != (3, 3):
        raise daedal.InvalidProblemError(f"{owner}: rotation must be a matrix (3, 3), got {np.shape(value)}")
    gap = np.abs(np.swapaxes(matrices, -1, -2) @ matrices - np.eye(3)).max(axis=(-1, -2))
    proper = (gap <= tolerance) & (np.linalg.det(matrices) > 0.0)
    if not np.all(proper):
        k = int(np.argmin(np.atleast_1d(proper)))
        at = f" number {k}" if matrices.ndim > 2 else ""
        why = "its determinant is -1" if np.atleast_1d(gap)[k] <= tolerance else "its columns are not orthonormal"
        raise daedal.InvalidProblemError(f"{owner}: rotation{at} is no rotation matrix; {why}")
    return matrices
