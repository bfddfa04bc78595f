r"""Rotations: matrices, Euler parameters, and frames with a given z axis.

Euler parameters :math:`p = (p_0, p_1, p_2, p_3)` with :math:`|p| = 1` describe the rotation by the angle :math:`2
\arccos p_0` about the axis along :math:`(p_1, p_2, p_3)`. The functions for kernels are in
:mod:`daedal.multibody.vectors`.

The module also validates numbers given to parts of a machine; messages name the part.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from daedal.errors import InvalidProblemError
from daedal.multibody.vectors import rows_of_parameters, rows_of_rates
from daedal.problems.checks import check_finite, check_positive, check_real

AXES = {"x": (1.0, 0.0, 0.0), "y": (0.0, 1.0, 0.0), "z": (0.0, 0.0, 1.0)}
"""Axes by name; with a minus sign, the opposite direction."""


def about_z(angle):
    """The matrix of a rotation about the z axis."""
    matrix = np.zeros((3, 3))
    c, s = math.cos(angle), math.sin(angle)
    matrix[0, 0], matrix[0, 1] = c, -s
    matrix[1, 0], matrix[1, 1] = s, c
    matrix[2, 2] = 1.0
    return matrix


def about_y(angle):
    """The matrix of a rotation about the y axis."""
    matrix = np.zeros((3, 3))
    c, s = math.cos(angle), math.sin(angle)
    matrix[0, 0], matrix[0, 2] = c, s
    matrix[2, 0], matrix[2, 2] = -s, c
    matrix[1, 1] = 1.0
    return matrix


def of_parameters(p):
    """The rotation matrix of Euler parameters."""
    matrix = np.zeros((3, 3))
    rows = rows_of_parameters(p[0], p[1], p[2], p[3])
    for k in range(3):
        matrix[0, k], matrix[1, k], matrix[2, k] = rows[0][k], rows[1][k], rows[2][k]
    return matrix


def rates(p):
    r"""The matrix 2 L(p), 3 by 4, with :math:`\omega = 2 L(p) \dot p` in the axes of the rotating body.

    L is linear in p and :math:`L(\dot p) \dot p = 0`, so that :math:`\dot\omega = 2 L(p) \ddot p`.
    """
    matrix = np.zeros((3, 4))
    for k, row in enumerate(rows_of_rates(p, 0)):
        matrix[k, 0], matrix[k, 1], matrix[k, 2], matrix[k, 3] = row
    return matrix


def parameters_of(matrix) -> np.ndarray:
    """Euler parameters of a rotation matrix, with nonnegative first component."""
    from scipy.spatial.transform import Rotation

    x, y, z, w = Rotation.from_matrix(np.asarray(matrix)).as_quat()
    p = np.array([w, x, y, z])
    return -p if w < 0 else p


def direction(axis, argument: str = "axis") -> np.ndarray:
    """A unit vector from three numbers (two in the plane), or from a name such as "x" or "-z"."""
    if isinstance(axis, str):
        sign, name = (-1.0, axis[1:]) if axis.startswith("-") else (1.0, axis)
        if name not in AXES:
            raise InvalidProblemError(
                f"{argument}={axis!r} is not an axis; use 'x', 'y', 'z', '-x', '-y', '-z' or a vector"
            )
        return sign * np.array(AXES[name])
    vector = point(axis, argument)
    length = float(np.linalg.norm(vector))
    if length == 0.0:
        raise InvalidProblemError(f"{argument} has length zero; give a nonzero vector")
    return vector / length


def point(values, argument: str) -> np.ndarray:
    """Three coordinates; if two are given, the third is zero."""
    vector = check_real(values, argument, "be two or three numbers")
    if vector.shape not in ((2,), (3,)) or not np.all(np.isfinite(vector)):
        raise InvalidProblemError(f"{argument} must be two or three finite numbers, got {values!r}")
    return np.concatenate([vector, np.zeros(3 - vector.size)])


def matrix_of(rotation, argument: str = "orientation") -> np.ndarray:
    """A rotation matrix from a matrix, an angle about z, Euler parameters or a ``scipy`` rotation."""
    if rotation is None:
        return np.eye(3)
    if hasattr(rotation, "as_matrix"):
        return np.asarray(rotation.as_matrix(), dtype=float)
    values = check_real(rotation, argument, "be an angle about z, Euler parameters or a rotation matrix")
    if not np.all(np.isfinite(values)):
        raise InvalidProblemError(f"{argument} holds values that are not finite")
    if values.ndim == 0:
        return np.asarray(about_z(float(values)))
    if values.shape == (4,):
        length = float(np.linalg.norm(values))
        if not length > 0.0:
            raise InvalidProblemError(f"{argument} has Euler parameters of length zero")
        return np.asarray(of_parameters(values / length))
    if values.shape != (3, 3):
        raise InvalidProblemError(
            f"{argument} has shape {values.shape}; expected an angle about z, four Euler parameters or a 3 by 3 matrix"
        )
    if not np.allclose(values @ values.T, np.eye(3), atol=1e-8) or np.linalg.det(values) < 0:
        raise InvalidProblemError(f"{argument} is not a rotation: its rows must be orthonormal and right-handed")
    return values


def frame_along(axis) -> np.ndarray:
    """A rotation that maps the z axis to the unit vector `axis`; for an axis in the xy plane, y becomes the normal."""
    z = np.asarray(axis, dtype=float)
    up = np.array([0.0, 0.0, 1.0]) - z[2] * z
    length = float(np.linalg.norm(up))
    if length < 1e-12:
        return np.diag([1.0, np.sign(z[2]), np.sign(z[2])])
    y = up / length
    return np.column_stack([np.cross(y, z), y, z])


def positive(value: Any, what: str) -> float:
    """A positive, finite number."""
    return check_positive(check_finite(value, what), what)


def of_shape(values: Any, shape: tuple[int, ...], what: str):
    """Check the shape of the result of a user function."""
    found = np.shape(values)
    if found != shape or values is None or isinstance(values, str):
        expected = "a number" if shape == () else f"numbers of shape {shape}"
        raise InvalidProblemError(f"{what} returned {values!r}; expected {expected}")
    return values
