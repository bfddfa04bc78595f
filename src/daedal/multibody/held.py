"""Values of joints as a user gives them: by name, one number, several, or an orientation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from daedal.common.messages import unknown_name
from daedal.errors import InvalidProblemError
from daedal.multibody.joints import Joint
from daedal.multibody.poses import pose_of
from daedal.multibody.rotation import matrix_of, parameters_of
from daedal.multibody.tree import ANY_ROTATION
from daedal.problems.checks import check_real


class StatedJoint(NamedTuple):
    """A joint as the user stated it, and where it is in the tree."""

    joint: Joint
    number: int  # of the body that it moves; -1 if it closes a loop
    seen: Joint  # the same joint seen from the father


class Held(NamedTuple):
    """Some coordinates of a joint that are to have given values."""

    key: str  # as the user wrote it
    joint: Joint
    which: np.ndarray  # of its velocities
    values: np.ndarray  # all coordinates of the joint; those that are not in `which` do not count

    @property
    def is_whole(self) -> bool:
        """Whether all coordinates of the joint are given."""
        return self.which.size == len(self.joint.slides)


def stated_joints(layout: Any) -> dict[str, StatedJoint]:
    """The joints of a layout in relative coordinates, by name."""
    topology = layout.topology
    found = {}
    for j, (joint, swapped) in enumerate(zip(topology.joints, topology.reversed)):
        found[joint.name] = StatedJoint(joint.swapped() if swapped else joint, j, joint)
    found |= {joint.name: StatedJoint(joint, -1, joint) for joint in topology.cut}
    return found


def held_values(joints: Mapping[str, StatedJoint], given: Mapping[str, Any]) -> list[Held]:
    """Positions of joints, by the name of the joint or "joint.coordinate"."""
    return [_value(*named_coordinates(joints, key), key, value) for key, value in given.items()]


def held_rates(joints: Mapping[str, StatedJoint], given: Mapping[str, Any]) -> list[Held]:
    """Velocities of joints; those of a rotation in space are angular velocities in the axes of the second frame."""
    found = []
    for key, value in given.items():
        joint, which = named_coordinates(joints, key)
        rates = np.zeros(len(joint.slides))
        rates[which] = _numbers(value, which.size, f"the velocity of '{key}'", joint)
        found.append(Held(key, joint, which, rates))
    return found


def named_coordinates(joints: Mapping[str, StatedJoint], key: Any) -> tuple[Joint, np.ndarray]:
    if key in joints:
        joint = joints[key].joint
        if not len(joint.slides):
            raise InvalidProblemError(f"joint '{key}' does not move, so it has no value")
        return joint, np.arange(len(joint.slides))
    name, _, part = str(key).rpartition(".")
    if name in joints and part in joints[name].joint.coordinates:
        joint = joints[name].joint
        return joint, np.array([joint.coordinates.index(part)])
    if name in joints:
        known = ", ".join(f"'{name}.{part}'" for part in joints[name].joint.coordinates)
        raise InvalidProblemError(f"joint '{name}' has no coordinate '{part}'; it has {known}")
    raise unknown_name(key, joints, "joint")


def _value(joint: Joint, which: np.ndarray, key: str, value: Any) -> Held:
    what, n = f"the value of '{key}'", len(joint.slides)
    if joint.turn != ANY_ROTATION:
        values = np.zeros(n)
        values[which] = _numbers(value, which.size, what, joint)
        return Held(key, joint, which, values)
    values = np.concatenate([np.zeros(n - 3), [1.0, 0.0, 0.0, 0.0]])
    if which.size == n:
        values[: n - 3], values[n - 3 :] = _placed(value, n - 3, what)
    elif which[0] < n - 3:
        values[which] = _numbers(value, 1, what, joint)
    else:
        raise InvalidProblemError(f"'{key}' is a component of an angular velocity; give the orientation of the joint")
    return Held(key, joint, which, values)


def _placed(value: Any, n_shift: int, what: str) -> tuple[np.ndarray, np.ndarray]:
    """Displacements and Euler parameters, of an orientation or of a pair (position, orientation)."""
    if n_shift == 0:
        return np.zeros(0), parameters_of(matrix_of(value, what))
    if isinstance(value, (tuple, list)) and len(value) == 2:
        position, orientation = value
    else:
        numbers = _numbers(value, n_shift + 4, what, None)
        position, orientation = numbers[:n_shift], numbers[n_shift:]
    return _numbers(position, n_shift, f"the position in {what}", None), parameters_of(matrix_of(orientation, what))


def _numbers(value: Any, n: int, what: str, joint: Joint | None) -> np.ndarray:
    numbers = np.atleast_1d(check_real(value, what, f"be {n} number{'s' * (n > 1)}"))
    if numbers.shape != (n,) or not np.all(np.isfinite(numbers)):
        order = f" ({', '.join(joint.coordinates)})" if joint is not None and n > 1 else ""
        raise InvalidProblemError(f"{what} must be {n} finite number{'s' * (n > 1)}{order}, got {value!r}")
    return numbers


def seen_from_the_father(stated: StatedJoint, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Shift and turn of the joint in the tree for coordinates of the joint as it is stated."""
    shift, turn = pose_of(stated.joint, values)
    if stated.seen.a.body.name == stated.joint.a.body.name:
        return shift, turn
    one = stated.joint.b.rotation.T @ stated.seen.a.rotation
    two = stated.joint.a.rotation.T @ stated.seen.b.rotation
    return -one.T @ turn.T @ shift, one.T @ turn.T @ two
