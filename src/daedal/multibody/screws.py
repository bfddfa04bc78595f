r"""The joints of one loop as screws: how it moves by itself, and the family of linkages that it belongs to.

A loop closes if the twists of its joints add up to zero, six equations. With twists that span r dimensions,
:math:`6 - r` of them say nothing new, and a loop with F freedoms in its joints has the mobility F - r (K. H. Hunt,
Kinematic Geometry of Mechanisms, Oxford 1978, chapter 12).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from daedal.multibody.body import Frame
from daedal.multibody.joints import Joint
from daedal.multibody.loops import Loop
from daedal.multibody.mobility import decided
from daedal.multibody.tree import ABOUT_Z, ABOUT_Z_AND_Y, ANY_ROTATION

_SMALL = 1e-7
PLANAR_IN_SPACE = "a planar linkage in space"
_PLANE = [0, 1, 5]  # components of a twist in the xy plane


@dataclass(frozen=True)
class LoopMobility:
    """A loop by itself.

    Attributes
    ----------
    loop : Loop
    freedoms : int
        Of its joints together.
    mobility : int
        How many motions the loop has if the rest of the machine is taken away.
    redundant : int
        Conditions of closure that say nothing new.
    family : str
        What linkages are called that move in spite of redundant conditions; empty if there are none.
    """

    loop: Loop
    freedoms: int
    mobility: int
    redundant: int
    family: str


def _world(frame: Frame, layout, placed) -> tuple[np.ndarray, np.ndarray]:
    """Where a frame is and how it is turned."""
    body = layout.index[frame.body.name]
    if body < 0:
        return frame.position, frame.rotation
    arm = placed.rotation[body] @ (frame.position - frame.body.center)
    return placed.r[body] + arm, placed.rotation[body] @ frame.rotation


def twists(joint: Joint, layout, placed, origin: np.ndarray) -> np.ndarray:
    """Velocities (of the point at `origin`, angular) for each freedom of a joint, as columns."""
    (_, a), (point, b) = (_world(frame, layout, placed) for frame in joint.frames)
    slides = joint.slides @ a.T
    axes = {ABOUT_Z: a[:, [2]], ABOUT_Z_AND_Y: np.column_stack([a[:, 2], b[:, 1]]), ANY_ROTATION: np.eye(3)}
    turns = axes.get(joint.turn, np.zeros((3, 0))).T
    angular = np.zeros_like(slides)
    if len(turns):
        angular[-len(turns) :] = turns
    return np.vstack([(slides + np.cross(point - origin, angular)).T, angular.T])


def loop_mobility(loop: Loop, joints: dict[str, Joint], layout, placed) -> LoopMobility:
    """Mobility and redundancy of a loop at a configuration in which it is closed."""
    parts = [joints[name] for name in loop.joints]
    points = np.array([_world(joint.b, layout, placed)[0] for joint in parts])
    middle = points.mean(axis=0)
    size = float(np.linalg.norm(points - middle, axis=1).max()) or 1.0
    matrix = np.hstack([np.zeros((6, 0)), *(twists(joint, layout, placed, middle) for joint in parts)])
    matrix[:3] /= size
    rows = matrix[_PLANE] if layout.planar else matrix
    rank = decided(rows.T / np.linalg.norm(rows.T, axis=1, keepdims=True)).rank
    redundant = len(rows) - rank
    family = _family(matrix, rank, {type(joint).__name__ for joint in parts}) if redundant else ""
    return LoopMobility(loop, matrix.shape[1], matrix.shape[1] - rank, redundant, family)


def _family(matrix: np.ndarray, rank: int, kinds: set[str]) -> str:
    linear, angular = matrix[:3].T, matrix[3:].T
    turning = angular[np.linalg.norm(angular, axis=1) > _SMALL]
    if matrix.shape[1] == rank:
        return "a rigid frame"
    if not len(turning):
        return "a linkage of sliders"
    normal = turning[0]
    parallel = np.linalg.norm(np.cross(turning, normal), axis=1).max() < _SMALL
    if parallel and np.abs(linear @ normal).max() < _SMALL:
        return PLANAR_IN_SPACE if rank == 3 else "a linkage about one axis"
    if _has_common_point(linear, angular):
        return "a spherical linkage"
    if kinds == {"Revolute"}:
        known = {(4, 3): "a Bennett linkage", (5, 4): "a five-bar linkage of Goldberg or Myard"}
        known[6, 5] = "a six-bar linkage such as Bricard's or Sarrus's"
        return known.get((matrix.shape[1], rank), "a linkage of special dimensions")
    return "a linkage of special dimensions"


def _has_common_point(linear: np.ndarray, angular: np.ndarray) -> bool:
    """Whether there is a point p with v = p x w for all twists."""
    rows = np.vstack([[[0.0, w[2], -w[1]], [-w[2], 0.0, w[0]], [w[1], -w[0], 0.0]] for w in angular])
    right = linear.reshape(-1)
    point = np.linalg.lstsq(rows, right, rcond=None)[0]
    return bool(np.abs(rows @ point - right).max() < _SMALL * max(1.0, float(np.abs(point).max())))
