"""Coordinates of chosen joints as functions of those of a layout, with exact derivatives; and functions of time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from daedal.errors import InvalidProblemError
from daedal.multibody.conditions import Conditions
from daedal.multibody.counted_angles import angle_name
from daedal.multibody.held import StatedJoint, named_coordinates
from daedal.multibody.joint_coordinates import coordinate_of
from daedal.multibody.kinematics import placement
from daedal.multibody.motion import Motion
from daedal.multibody.tree import ANY_ROTATION
from daedal.problems import MechanicalSystem


class MeasuredCoordinates:
    r"""Coordinates c(q) of joints, by the name of the joint or "joint.coordinate".

    Parameters
    ----------
    model, layout : Model, Layout
        The layout in relative coordinates.
    joints : mapping
        Of :func:`daedal.multibody.held.stated_joints`.
    keys : sequence of str
        Which of them.
    turned : mapping of str to matrix
        For joints that turn in space, an orientation near which rotations are three small angles from it.
    """

    def __init__(
        self,
        model: Any,
        layout: Any,
        joints: Mapping[str, StatedJoint],
        keys: Sequence[str],
        turned: Mapping[str, np.ndarray] | None = None,
    ):
        self.rows = [row for key in keys for row in _rows(joints, key, turned or {})]
        self.sizes = {key: sum(row.key == key for row in self.rows) for key in keys}
        tree, rows = layout.tree, self.rows

        def constraint(t, q):
            motion = Motion(layout, q, None, placement(tree, q), None)
            return [
                motion.coordinate(row.joint, row.which)
                if row.turn is None
                else _small_angle(motion, joints[row.key].joint, row.turn, "xyz".index(row.which))
                for row in rows
            ]

        self._conditions = Conditions(
            MechanicalSystem(
                1.0,
                lambda t, q, v: 0.0 * q,
                constraint if rows else None,
                n_q=layout.n_q,
                n_constraints=len(rows),
            )
        )
        found = [None if row.turn is not None else coordinate_of(layout, row.joint, row.which) for row in rows]
        self._in_tree = all(one is not None and one.q >= 0 for one in found)
        self._wraps = np.array(
            [
                one is not None and one.turns and one.q < 0 and angle_name(one) not in layout.counted_angles
                for one in found
            ],
            bool,
        )

    def values(self, q: np.ndarray, near: np.ndarray) -> np.ndarray:
        """c, with angles that are known up to turns within half a turn of `near`."""
        values = self._conditions.value(0.0, q)
        return np.where(self._wraps, values + 2.0 * np.pi * np.round((near - values) / (2.0 * np.pi)), values)

    def jacobian(self, q: np.ndarray) -> np.ndarray:
        r""":math:`c_q`."""
        return self._conditions.jacobian(0.0, q)

    def bias(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        r""":math:`-(c_q v)_q v`, with :math:`c_q \ddot q = \ddot c +` this."""
        return self._conditions.bias(0.0, q, v)

    def curvature(self, q: np.ndarray, lam: np.ndarray) -> np.ndarray:
        r""":math:`(c_q^T \lambda)_q`, by differences of the exact :math:`c_q`; zero for joints of the tree."""
        matrix = np.zeros((q.size, q.size))
        if np.any(lam) and not self._in_tree:
            for k in range(q.size):
                h = np.zeros(q.size)
                h[k] = 6e-6 * max(1.0, abs(q[k]))
                matrix[:, k] = (self.jacobian(q + h) - self.jacobian(q - h)).T @ lam / (2.0 * h[k])
        return matrix


class _Row(NamedTuple):
    key: str
    joint: str
    which: str
    turn: np.ndarray | None = None  # the orientation from which a small angle about this axis is measured


def _rows(joints: Mapping[str, StatedJoint], key: str, turned: Mapping[str, np.ndarray]) -> list[_Row]:
    joint, which = named_coordinates(joints, key)
    if joint.turn == ANY_ROTATION and key in turned:
        shifts = [_Row(key, joint.name, joint.coordinates[k]) for k in map(int, which[:-3])]
        return [*shifts, *(_Row(key, joint.name, axis, turned[key]) for axis in "xyz")]
    if joint.turn == ANY_ROTATION and int(which[-1]) >= len(joint.slides) - 3:
        raise InvalidProblemError(
            f"'{key}' is a rotation in space, which is not given by numbers over time; "
            "name its displacements one by one, or take other joints"
        )
    return [_Row(key, joint.name, joint.coordinates[k]) for k in map(int, which)]


def _small_angle(motion: Motion, joint: Any, turn: np.ndarray, k: int):
    """The sine of the rotation of the second frame of a joint from `turn`, about axis k of that."""
    first, second = motion.rotation(joint.a) @ turn, motion.rotation(joint.b)
    i, j = (k + 1) % 3, (k + 2) % 3
    return 0.5 * (np.dot(first[:, j], second[:, i]) - np.dot(first[:, i], second[:, j]))


Course = Callable[[float], tuple[np.ndarray, np.ndarray, np.ndarray]]
"""Value, rate and second derivative at a time."""


def course_of(key: str, given: Any, n: int, t: np.ndarray) -> Course:
    """The course of `n` coordinates: a function that is traced, a table over `t` (a quintic spline), or constants."""
    if callable(given):
        return _of_function(given, n)
    values = np.asarray(given, dtype=float)
    if values.shape in ((), (n,)) and not (n == 1 and values.shape == (t.size,)):
        still = np.zeros(n)
        return lambda t: (np.broadcast_to(values, (n,)), still, still)
    if n == 1 and values.shape == (t.size,):
        values = values.reshape(1, -1)
    if values.shape != (n, t.size) or not np.all(np.isfinite(values)):
        raise InvalidProblemError(
            f"the motion of '{key}' must be a function of time, a number, or one finite value for each of the "
            f"{t.size} times; got an array of shape {np.shape(given)}"
        )
    from scipy.interpolate import make_interp_spline

    spline = make_interp_spline(t, values, k=min(5, t.size - 1), axis=1)
    return lambda t: (spline(t), spline(t, 1), spline(t, 2))


def _of_function(function: Any, n: int) -> Course:
    def constraint(t, q):
        value = function(t)
        return [value] if np.ndim(value) == 0 else [value[k] for k in range(n)]

    conditions = Conditions(MechanicalSystem(1.0, lambda t, q, v: 0.0 * q, constraint, n_q=1, n_constraints=n))
    q = np.zeros(1)
    return lambda t: (conditions.value(t, q), conditions.speed(t, q), -conditions.bias(t, q, q))
