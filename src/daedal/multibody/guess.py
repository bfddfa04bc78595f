"""Where the assembly starts: the bodies as they are drawn, and otherwise joints at zero."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from daedal.multibody.body import Body
from daedal.multibody.counted_angles import angle_name
from daedal.multibody.held import Held, StatedJoint, seen_from_the_father
from daedal.multibody.poses import BodyStates, coordinates_of, pose_of, relative_pose
from daedal.multibody.tree import ABOUT_Z_AND_Y


def characteristic_length(layout: Any) -> float:
    """The size of the bodies and of the distances between them: what displacements are compared with."""
    every = [*layout.topology.joints, *layout.topology.cut]
    arms = [np.linalg.norm(frame.position - frame.body.center) for joint in every for frame in joint.frames]
    places = [np.linalg.norm(body.position) for body in layout.topology.bodies]
    return float(max([*arms, *places], default=0.0)) or 1.0


def first_guess(layout: Any, values: Sequence[Held], joints: Mapping[str, StatedJoint]) -> np.ndarray:
    """Coordinates of the tree with given values of joints and bodies elsewhere as near to their drawing as they get."""
    tree, topology = layout.tree, layout.topology
    given: dict[str, list[Held]] = {}
    for one in values:
        given.setdefault(one.joint.name, []).append(one)
    n = len(topology.bodies)
    q, nothing = layout.zero.copy(), np.zeros((n, 3))
    states = BodyStates(layout.index, np.zeros((n, 3)), np.zeros((n, 3, 3)), nothing, nothing)
    for j, (body, joint) in enumerate(zip(topology.bodies, topology.joints)):
        place = slice(tree.first_q[j], tree.first_q[j + 1])
        if _is_drawn(body):
            states.r[j] = body.position + body.orientation @ body.center
            states.rotation[j] = body.orientation
            q[place] = coordinates_of(joint, *relative_pose(states, joint))
        for one in given.get(joint.name, []):
            q[place] = _with(one, joints[joint.name], q[place])
        _put(states, joint, j, q[place])
    point_along(layout, q, states)
    return q


def point_along(layout: Any, q: np.ndarray, states: BodyStates):
    """Turn the bodies without mass that measure angles of joints to these angles."""
    for one in layout.joint_coordinates.values():
        if one.turns and one.q < 0 and angle_name(one) in layout.pointers:
            column = layout.massless[angle_name(one)]
            values = coordinates_of(one.joint, *relative_pose(states, one.joint))
            angle = values[-1 if one.second or one.joint.turn != ABOUT_Z_AND_Y else -2]
            q[column] = angle + 2.0 * np.pi * np.round((q[column] - angle) / (2.0 * np.pi))


def _is_drawn(body: Body) -> bool:
    return bool(np.any(body.position) or np.any(body.orientation != np.eye(3)))


def _with(one: Held, stated: StatedJoint, present: np.ndarray) -> np.ndarray:
    """The coordinates of a joint in the tree with some of those that the user stated replaced."""
    joint, seen = stated.joint, stated.seen
    straight = seen.a.body.name == joint.a.body.name
    if one.is_whole:
        values = one.values
    else:
        values = present.copy() if straight else coordinates_of(joint, *_from_the_other(stated, present))
        values[one.which] = one.values[one.which]
    return values if straight else coordinates_of(seen, *seen_from_the_father(stated, values))


def _from_the_other(stated: StatedJoint, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return seen_from_the_father(StatedJoint(stated.seen, stated.number, stated.joint), values)


def _put(states: BodyStates, joint: Any, j: int, values: np.ndarray):
    """Place body j where its joint has it."""
    at, axes = states.frame(joint.a)
    shift, turn = pose_of(joint, values)
    own = joint.b
    states.rotation[j] = axes @ turn @ own.rotation.T
    states.r[j] = at + axes @ shift - states.rotation[j] @ (own.position - own.body.center)
