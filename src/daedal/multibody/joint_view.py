"""A joint over time: its coordinates from the motion of its frames, and what it carries."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from daedal.multibody.counted_angles import angle_name
from daedal.multibody.course import MotionHistory
from daedal.multibody.joint_coordinates import coordinate_of
from daedal.multibody.joints import Joint
from daedal.multibody.reactions import JointForces
from daedal.multibody.tree import ABOUT_Z, ABOUT_Z_AND_Y, ANY_ROTATION
from daedal.multibody.views import ForceAndTorque
from daedal.solution.machine_record import NamedCoordinates


class JointView(NamedCoordinates):
    """The relative motion of the two bodies of a joint, and what it carries."""

    def __init__(
        self,
        course: MotionHistory,
        joint: Joint,
        forces: Callable[[], JointForces],
        counting: Callable[[], MotionHistory],
    ):
        self._course, self.joint, self._forces, self._counting = course, joint, forces, counting

    @property
    def name(self) -> str:  # type: ignore[override]
        """The name of the joint."""
        return self.joint.name

    @property
    def t(self) -> Any:
        """The times."""
        return self._course.values(self._course.t)

    @property
    def names(self) -> tuple[str, ...]:  # type: ignore[override]
        """Names of the coordinates."""
        if self.joint.turn == ANY_ROTATION:
            return (*self.joint.coordinates[:-3], "p0", "p1", "p2", "p3")
        return self.joint.coordinates

    @property
    def coordinates(self) -> np.ndarray:  # type: ignore[override]
        """The coordinates of the joint as it was stated, (n, nt); angles count turns."""
        return self._course.columns(coordinates_of(self._course, self.joint, self._counting))

    @property
    def rates(self) -> np.ndarray:  # type: ignore[override]
        """Their rates; of Euler parameters, the angular velocity in the axes of the second frame."""
        return self._course.columns(rates_of(self._course, self.joint))

    @property
    def position(self) -> np.ndarray:
        """Where the joint is, on its second body."""
        return self._course.columns(self._course.position(self.joint.b))

    @property
    def reaction(self) -> ForceAndTorque:
        """What the joint exerts on its second body: force, and torque about the joint, in the axes of the ground."""
        return ForceAndTorque(self._course, self._forces().of(self.joint), self._course.model)

    def __repr__(self):
        return f"<motion of joint '{self.joint.name}'>"


# --- coordinates of joints from the motion of their frames ------------------------------------------------------------


def _relative_rotation(course: MotionHistory, joint: Joint) -> np.ndarray:
    return np.swapaxes(course.rotation(joint.a), -1, -2) @ course.rotation(joint.b)


def _angles(turn: int, matrices: np.ndarray) -> np.ndarray:
    """The angles of a joint from its rotation, (nt, n), without turns."""
    if turn == ABOUT_Z:
        return np.arctan2(matrices[:, 1, 0], matrices[:, 0, 0])[:, None]
    if turn == ABOUT_Z_AND_Y:
        first = np.arctan2(-matrices[:, 0, 1], matrices[:, 1, 1])
        return np.column_stack([first, np.arctan2(-matrices[:, 2, 0], matrices[:, 2, 2])])
    return np.zeros((len(matrices), 0))


def coordinates_of(course: MotionHistory, joint: Joint, counting: Callable[[], MotionHistory]) -> np.ndarray:
    """The coordinates of a joint, (nt, n); `counting` gives a motion in which no step exceeds half a turn."""
    distance = course.position(joint.b) - course.position(joint.a)
    shifts = np.einsum("tji,tj->ti", course.rotation(joint.a), distance)[:, list(joint.shifts)]
    if joint.turn == ANY_ROTATION:
        return np.column_stack([shifts, _parameters(_relative_rotation(course, joint))])
    angles = _angles(joint.turn, _relative_rotation(course, joint))
    if angles.shape[1]:
        angles = angles + 2.0 * np.pi * np.round((_counted(course, joint, counting) - angles) / (2.0 * np.pi))
    return np.column_stack([shifts, angles])


def _counted(course: MotionHistory, joint: Joint, counting: Callable[[], MotionHistory]) -> np.ndarray:
    """The angles of a joint up to rounding, turns included."""
    number = course.layout.number_in_tree(joint)
    if number is not None:
        end = course.layout.tree.first_q[number + 1]
        angles = course.q[:, end - (2 if joint.turn == ABOUT_Z_AND_Y else 1) : end]
        return angles[:, ::-1] if course.layout.topology.reversed[number] else angles
    if joint.turn == ABOUT_Z:
        sums, name = course.layout.counted_angles, angle_name(coordinate_of(course.layout, joint.name, "angle"))
        if name in sums:
            return np.array(sums[name].value(course.q.T))[:, None]
    fine = counting()
    wrapped = _angles(joint.turn, _relative_rotation(fine, joint))
    rates = rates_of(fine, joint)[:, -wrapped.shape[1] :]
    expected = 0.5 * (rates[1:] + rates[:-1]) * np.diff(fine.t)[:, None]
    turns = np.round((expected - np.diff(wrapped, axis=0)) / (2.0 * np.pi))
    counted = wrapped + 2.0 * np.pi * np.concatenate([np.zeros((1, wrapped.shape[1])), np.cumsum(turns, axis=0)])
    order = np.argsort(fine.t)
    return counted[order[np.searchsorted(fine.t[order], course.t)]]


def _parameters(matrices: np.ndarray) -> np.ndarray:
    """Euler parameters that do not jump, the first of the first not negative."""
    from scipy.spatial.transform import Rotation

    p = Rotation.from_matrix(matrices).as_quat()[:, [3, 0, 1, 2]]
    signs = np.where(np.sum(p[1:] * p[:-1], axis=1) < 0, -1.0, 1.0)
    first = -1.0 if p[0, 0] < 0 else 1.0
    return p * (first * np.concatenate([[1.0], np.cumprod(signs)]))[:, None]


def rates_of(course: MotionHistory, joint: Joint) -> np.ndarray:
    """The velocities of a joint, (nt, n)."""
    axes, spin = course.rotation(joint.a), course.angular_velocity(joint.a)
    distance = course.position(joint.b) - course.position(joint.a)
    speed = course.velocity(joint.b) - course.velocity(joint.a) - np.cross(spin, distance)
    slips = np.einsum("tji,tj->ti", axes, speed)[:, list(joint.shifts)]
    turning = course.angular_velocity(joint.b) - spin
    if joint.turn == ABOUT_Z:
        turns = np.einsum("ti,ti->t", axes[:, :, 2], turning)[:, None]
    elif joint.turn == ABOUT_Z_AND_Y:  # the second axis is y of the second frame
        both = np.stack([axes[:, :, 2], course.rotation(joint.b)[:, :, 1]], axis=1)
        turns = np.einsum("tki,ti->tk", both, turning)
    elif joint.turn == ANY_ROTATION:
        turns = np.einsum("tji,tj->ti", course.rotation(joint.b), turning)
    else:
        turns = np.zeros((course.t.size, 0))
    return np.column_stack([slips, turns])
