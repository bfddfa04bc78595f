"""The same state of a machine in other coordinates."""

from __future__ import annotations

from typing import Any

import numpy as np

from daedal.multibody.coordinates import coordinate_rates, joint_velocities
from daedal.multibody.counted_angles import angle_between
from daedal.multibody.kinematics import placement, velocities
from daedal.multibody.motion import Motion
from daedal.multibody.poses import BodyStates, coordinates_of, relative_pose, velocities_of
from daedal.multibody.tree import ANY_ROTATION


def converted(source: Any, target: Any, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Coordinates and rates in the layout `target` of a state (q, v) in the layout `source`.

    In the plane, and where constraints count them, turns are kept.
    """
    tree = source.tree
    placed = placement(tree, q)
    u = joint_velocities(tree, q, v)
    moving = velocities(tree, placed, u)
    states = BodyStates(source.index, placed.r, placed.rotation, moving.linear, moving.angular)
    found, speeds = target.zero.copy(), np.zeros(target.n_v)
    for j, joint in enumerate(target.topology.joints):
        if joint.name in target.guesses:
            continue
        place = slice(target.tree.first_q[j], target.tree.first_q[j + 1])
        near = None
        if source.planar and joint.turn:
            near = np.array([angle_between(source, joint.a, joint.b).value(q)])
        found[place] = coordinates_of(joint, *relative_pose(states, joint), near)
        own = slice(target.tree.first_v[j], target.tree.first_v[j + 1])
        speeds[own] = velocities_of(states, joint, found[place])
    _copy_massless(source, target, q, u, Motion(source, q, u, placed, moving), found, speeds)
    if source.planar and source.is_relative and not target.is_relative:
        _count_turns(source, target, q, found)
    return found, np.asarray(coordinate_rates(target.tree, found, speeds))


def _copy_massless(source: Any, target: Any, q, u, motion: Motion, found: np.ndarray, speeds: np.ndarray):
    """Coordinates of bodies without mass: parameters of curves, and angles of joints that count turns."""
    for name in target.massless.keys() & source.massless.keys():
        body, own = source.index[name], target.index[name]
        found[target.tree.first_q[own]] = q[source.tree.first_q[body]]
        speeds[target.tree.first_v[own]] = u[source.tree.first_v[body]]
    for one in target.pointers:
        [column], [sign] = target.counted_angles[one].columns, target.counted_angles[one].factors
        which = one.joint.coordinates[-1 if one.second or len(one.joint.coordinates) == 1 else _first_angle(one.joint)]
        found[column] = sign * motion.coordinate(one.joint, which)
        body = int(np.searchsorted(target.tree.first_q, column, side="right")) - 1
        speeds[target.tree.first_v[body]] = sign * motion.rate(one.joint, which)


def _first_angle(joint: Any) -> int:
    return len(joint.shifts) if joint.turn != ANY_ROTATION else -1


def _count_turns(source: Any, target: Any, q: np.ndarray, found: np.ndarray):
    """Add whole turns to the angles of bodies in the plane until the joints have turned as often as before."""
    for body, joint in zip(source.topology.bodies, source.topology.joints):
        if body.name in source.guesses:
            continue
        wanted = angle_between(source, joint.a, joint.b).value(q)
        now = angle_between(target, joint.a, joint.b)
        angle = target.tree.first_q[target.index[body.name] + 1] - 1
        sign = now.factors[now.columns.index(angle)]
        found[angle] += sign * 2.0 * np.pi * np.round((wanted - now.value(found)) / (2.0 * np.pi))
