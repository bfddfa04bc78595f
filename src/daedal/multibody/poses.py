r"""From where bodies are to the coordinates of joints, and back.

Frame B of a joint is seen from frame A at the shift :math:`s = A^T (p_B - p_A)` with the turn :math:`R = A^T B`. The
coordinates of a joint give both (2.16), (2.17); here they are found from them, as well as they fit.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from daedal.multibody.coordinates import coordinate_rates, joint_velocities
from daedal.multibody.joints import Joint
from daedal.multibody.kinematics import placement, velocities
from daedal.multibody.rotation import about_y, about_z, of_parameters, parameters_of
from daedal.multibody.tree import ABOUT_Z, ABOUT_Z_AND_Y, ANY_ROTATION

_ROTATIONS = {0: 0, ABOUT_Z: 1, ABOUT_Z_AND_Y: 2, ANY_ROTATION: 3}


class BodyStates(NamedTuple):
    """Where bodies are and how they move: centres of mass and rotations in the axes of the ground."""

    rows: dict[str, int]  # the row of each body; -1 is the ground
    r: np.ndarray  # (n, 3)
    rotation: np.ndarray  # (n, 3, 3)
    linear: np.ndarray  # (n, 3)
    angular: np.ndarray  # (n, 3)

    def frame(self, frame) -> tuple[np.ndarray, np.ndarray]:
        """Position and axes of a frame on a body."""
        body = self.rows[frame.body.name]
        if body < 0:
            return frame.position, frame.rotation
        turn = self.rotation[body]
        return self.r[body] + turn @ (frame.position - frame.body.center), turn @ frame.rotation

    def twist(self, frame) -> tuple[np.ndarray, np.ndarray]:
        """Velocity of the origin of a frame, and its angular velocity."""
        body = self.rows[frame.body.name]
        if body < 0:
            return np.zeros(3), np.zeros(3)
        arm = self.rotation[body] @ (frame.position - frame.body.center)
        return self.linear[body] + np.cross(self.angular[body], arm), self.angular[body]


def states_of(layout: Any, q: np.ndarray, v: np.ndarray) -> BodyStates:
    """The bodies of a layout at the coordinates q with the rates v."""
    tree = layout.tree
    placed = placement(tree, q)
    moving = velocities(tree, placed, joint_velocities(tree, q, v))
    return BodyStates(layout.index, placed.r, placed.rotation, moving.linear, moving.angular)


def pose_of(joint: Joint, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Shift and turn of a joint at given coordinates."""
    n = len(joint.slides)
    if joint.turn == ANY_ROTATION:
        return joint.slides[: n - 3].T @ values[: n - 3], np.asarray(of_parameters(values[n - 3 :]))
    shift = joint.slides.T @ values
    if joint.turn == ABOUT_Z:
        return shift, np.asarray(about_z(values[-1]))
    if joint.turn == ABOUT_Z_AND_Y:
        return shift, np.asarray(about_z(values[-2]) @ about_y(values[-1]))
    return shift, np.eye(3)


def relative_pose(states: BodyStates, joint: Joint) -> tuple[np.ndarray, np.ndarray]:
    """Shift and turn of a joint for given bodies."""
    (at_a, a), (at_b, b) = states.frame(joint.a), states.frame(joint.b)
    return a.T @ (at_b - at_a), a.T @ b


def coordinates_of(joint: Joint, shift: np.ndarray, turn: np.ndarray, near: np.ndarray | None = None) -> np.ndarray:
    """The coordinates of a joint whose frames are so to each other; angles within half a turn of `near`."""
    slides = joint.slides
    n = len(slides) - _ROTATIONS[joint.turn]
    values = slides[:n] @ shift
    if joint.turn == ANY_ROTATION:
        p = parameters_of(turn)
        return np.concatenate([values, -p if near is not None and p @ near[n:] < 0 else p])
    if joint.turn == ABOUT_Z:
        angles = np.array([np.arctan2(turn[1, 0] - turn[0, 1], turn[0, 0] + turn[1, 1])])
        lead = slides[-1]
        if lead @ lead > 0.0:  # the displacement of a screw tells how often it has turned
            near = np.array([lead @ shift / (lead @ lead)])
    elif joint.turn == ABOUT_Z_AND_Y:
        angles = np.array([np.arctan2(-turn[0, 1], turn[1, 1]), np.arctan2(-turn[2, 0], turn[2, 2])])
    else:
        return values
    if near is not None:
        angles = angles + 2.0 * np.pi * np.round((near[-angles.size :] - angles) / (2.0 * np.pi))
    return np.concatenate([values, angles])


def motions_of(joint: Joint, values: np.ndarray) -> np.ndarray:
    """The columns (slip, spin) of unit velocities of a joint, shape (6, n), in the axes of its first frame."""
    slides = joint.slides
    columns = np.zeros((6, len(slides)))
    columns[:3] = slides.T
    if joint.turn == ABOUT_Z:
        columns[5, -1] = 1.0
    elif joint.turn == ABOUT_Z_AND_Y:
        columns[5, -2] = 1.0
        columns[3:, -1] = about_z(values[-2])[:, 1]
    elif joint.turn == ANY_ROTATION:
        columns[3:, -3:] = of_parameters(values[-4:])
    return columns


def velocities_of(states: BodyStates, joint: Joint, values: np.ndarray) -> np.ndarray:
    """The velocities of a joint between moving bodies, at its coordinates `values`."""
    (at_a, a), (at_b, _) = states.frame(joint.a), states.frame(joint.b)
    (speed_a, spin_a), (speed_b, spin_b) = states.twist(joint.a), states.twist(joint.b)
    slip = a.T @ (speed_b - speed_a - np.cross(spin_a, at_b - at_a))
    twist = np.concatenate([slip, a.T @ (spin_b - spin_a)])
    return np.linalg.lstsq(motions_of(joint, values), twist, rcond=None)[0]


def gap_of(joint: Joint, shift: np.ndarray, turn: np.ndarray) -> tuple[float, float]:
    """Distance and angle by which the frames of a joint are away from what it allows."""
    fitted, turned = pose_of(joint, coordinates_of(joint, shift, turn))
    p = parameters_of(turned.T @ turn)
    return float(np.linalg.norm(shift - fitted)), float(2.0 * np.arctan2(np.linalg.norm(p[1:]), p[0]))


def length_flags(layout: Any) -> np.ndarray:
    """Which coordinates are displacements; the others are angles and Euler parameters."""
    flags: list[bool] = []
    for joint in layout.topology.joints:
        turning = _ROTATIONS[joint.turn]
        flags += [True] * (len(joint.slides) - turning) + [False] * (turning + (joint.turn == ANY_ROTATION))
    return np.array(flags, dtype=bool)


def coordinates_in(layout: Any, states: BodyStates, near: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
    """The coordinates and rates of a layout for bodies that are where its joints allow them to be."""
    tree = layout.tree
    q, u = np.zeros(layout.n_q), np.zeros(layout.n_v)
    for j, joint in enumerate(layout.topology.joints[: layout.n_bodies]):
        place = slice(tree.first_q[j], tree.first_q[j + 1])
        q[place] = coordinates_of(joint, *relative_pose(states, joint), None if near is None else near[place])
        u[tree.first_v[j] : tree.first_v[j + 1]] = velocities_of(states, joint, q[place])
    return q, np.asarray(coordinate_rates(tree, q, u))
