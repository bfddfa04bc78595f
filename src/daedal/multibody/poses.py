r"""Conversion between positions of bodies and coordinates of joints, and starts.

Seen from frame A, frame B of a joint has the shift :math:`s = A^T (p_B - p_A)` and the rotation :math:`R = A^T B`. The
coordinates of a joint determine both (2.16), (2.17); this module computes the coordinates from both, by the best fit.

It also reads user-specified joint values by name (one number, several numbers, or an orientation), and computes the
coordinates from which assembly starts: those of the drawn bodies, and zero for other joints.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from daedal.common.messages import unknown_name
from daedal.errors import InvalidProblemError
from daedal.multibody.body import Body, about_y, about_z, matrix_of, of_parameters, parameters_of
from daedal.multibody.joint_coordinates import angle_name, massless_state, near_angles
from daedal.multibody.joints import Joint
from daedal.multibody.kinematics import (
    ABOUT_Z,
    ABOUT_Z_AND_Y,
    ANY_ROTATION,
    coordinate_rates,
    joint_velocities,
    placement,
    velocities,
)
from daedal.multibody.motion import Motion
from daedal.problems.checks import check_real

_ROTATIONS = {0: 0, ABOUT_Z: 1, ABOUT_Z_AND_Y: 2, ANY_ROTATION: 3}


class BodyStates(NamedTuple):
    """Positions and velocities of bodies: centres of mass and rotations in the axes of the ground."""

    rows: dict[str, int]  # row index of each body; -1 is the ground
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
    """Shift and rotation of a joint at given coordinates."""
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
    """Shift and rotation of a joint for given bodies."""
    (at_a, a), (at_b, b) = states.frame(joint.a), states.frame(joint.b)
    return a.T @ (at_b - at_a), a.T @ b


def coordinates_of(joint: Joint, shift: np.ndarray, turn: np.ndarray, near: np.ndarray | None = None) -> np.ndarray:
    """Coordinates of a joint from the relative pose of its frames; angles within half a turn of `near`."""
    slides = joint.slides
    n = len(slides) - _ROTATIONS[joint.turn]
    values = slides[:n] @ shift
    if joint.turn == ANY_ROTATION:
        p = parameters_of(turn)
        return np.concatenate([values, -p if near is not None and p @ near[n:] < 0 else p])
    if joint.turn == ABOUT_Z:
        angles = np.array([np.arctan2(turn[1, 0] - turn[0, 1], turn[0, 0] + turn[1, 1])])
        lead = slides[-1]
        if lead @ lead > 0.0:  # the displacement of a screw determines its number of turns
            near = np.array([lead @ shift / (lead @ lead)])
    elif joint.turn == ABOUT_Z_AND_Y:
        angles = np.array([np.arctan2(-turn[0, 1], turn[1, 1]), np.arctan2(-turn[2, 0], turn[2, 2])])
    else:
        return values
    if near is not None:
        angles = angles + 2.0 * np.pi * np.round((near[-angles.size :] - angles) / (2.0 * np.pi))
    return np.concatenate([values, angles])


def motions_of(joint: Joint, values: np.ndarray) -> np.ndarray:
    """Columns (translation, rotation) of unit velocities of a joint, shape (6, n), in the axes of its first frame."""
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
    """Distance and angle between the frames of a joint and the nearest admissible pose."""
    fitted, turned = pose_of(joint, coordinates_of(joint, shift, turn))
    p = parameters_of(turned.T @ turn)
    return float(np.linalg.norm(shift - fitted)), float(2.0 * np.arctan2(np.linalg.norm(p[1:]), p[0]))


def length_flags(layout: Any) -> np.ndarray:
    """Mask of the coordinates that are displacements; the others are angles and Euler parameters."""
    flags: list[bool] = []
    for joint in layout.topology.joints:
        turning = _ROTATIONS[joint.turn]
        flags += [True] * (len(joint.slides) - turning) + [False] * (turning + (joint.turn == ANY_ROTATION))
    return np.array(flags, dtype=bool)


def coordinates_in(layout: Any, states: BodyStates, near: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Coordinates and rates of a layout for bodies whose positions satisfy its joints."""
    tree = layout.tree
    q, u = np.zeros(layout.n_q), np.zeros(layout.n_v)
    for j, joint in enumerate(layout.topology.joints[: layout.n_bodies]):
        place = slice(tree.first_q[j], tree.first_q[j + 1])
        q[place] = coordinates_of(joint, *relative_pose(states, joint), None if near is None else near[place])
        u[tree.first_v[j] : tree.first_v[j + 1]] = velocities_of(states, joint, q[place])
    return q, np.asarray(coordinate_rates(tree, q, u))


class StatedJoint(NamedTuple):
    """A joint of the user, with its place in the tree."""

    joint: Joint
    number: int  # index of the body that it moves; -1 if it closes a loop
    seen: Joint  # the same joint seen from the parent


class Held(NamedTuple):
    """Prescribed coordinates of a joint."""

    key: str  # key as given by the user
    joint: Joint
    which: np.ndarray  # indices of its velocities with prescribed values
    values: np.ndarray  # all coordinates of the joint; entries not in `which` are ignored

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
    """Prescribed positions of joints, from values by the name of the joint or "joint.coordinate"."""
    return [_value(*named_coordinates(joints, key), key, value) for key, value in given.items()]


def held_rates(joints: Mapping[str, StatedJoint], given: Mapping[str, Any]) -> list[Held]:
    """Prescribed velocities of joints; for spatial rotations, angular velocities in the axes of the second frame."""
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
    """Displacements and Euler parameters, from an orientation or a pair (position, orientation)."""
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


def seen_from_the_parent(stated: StatedJoint, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Shift and rotation of the joint in the tree for coordinates of the user's joint."""
    shift, turn = pose_of(stated.joint, values)
    if stated.seen.a.body.name == stated.joint.a.body.name:
        return shift, turn
    one = stated.joint.b.rotation.T @ stated.seen.a.rotation
    two = stated.joint.a.rotation.T @ stated.seen.b.rotation
    return -one.T @ turn.T @ shift, one.T @ turn.T @ two


def characteristic_length(layout: Any) -> float:
    """Size of the bodies and of their distances, the scale of displacements."""
    every = [*layout.topology.joints, *layout.topology.cut]
    arms = [np.linalg.norm(frame.position - frame.body.center) for joint in every for frame in joint.frames]
    places = [np.linalg.norm(body.position) for body in layout.topology.bodies]
    return float(max([*arms, *places], default=0.0)) or 1.0


def first_guess(layout: Any, values: Sequence[Held], joints: Mapping[str, StatedJoint]) -> np.ndarray:
    """Coordinates of the tree with given values of joints; other bodies are as close as possible to their drawn
    positions."""
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
    """Set the coordinates in `q` of massless bodies that measure joint angles to these angles."""
    for one in layout.joint_coordinates.values():
        if one.turns and one.q < 0 and angle_name(one) in layout.pointers:
            column = layout.massless[angle_name(one)]
            values = coordinates_of(one.joint, *relative_pose(states, one.joint))
            angle = values[-1 if one.second or one.joint.turn != ABOUT_Z_AND_Y else -2]
            q[column] = angle + 2.0 * np.pi * np.round((q[column] - angle) / (2.0 * np.pi))


def _is_drawn(body: Body) -> bool:
    return bool(np.any(body.position) or np.any(body.orientation != np.eye(3)))


def _with(one: Held, stated: StatedJoint, present: np.ndarray) -> np.ndarray:
    """Coordinates of a joint in the tree, some of which are replaced by the held values of the user's joint."""
    joint, seen = stated.joint, stated.seen
    straight = seen.a.body.name == joint.a.body.name
    if one.is_whole:
        values = one.values
    else:
        values = present.copy() if straight else coordinates_of(joint, *_from_the_other(stated, present))
        values[one.which] = one.values[one.which]
    return values if straight else coordinates_of(seen, *seen_from_the_parent(stated, values))


def _from_the_other(stated: StatedJoint, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return seen_from_the_parent(StatedJoint(stated.seen, stated.number, stated.joint), values)


def _put(states: BodyStates, joint: Any, j: int, values: np.ndarray):
    """Place body j according to its joint."""
    at, axes = states.frame(joint.a)
    shift, turn = pose_of(joint, values)
    own = joint.b
    states.rotation[j] = axes @ turn @ own.rotation.T
    states.r[j] = at + axes @ shift - states.rotation[j] @ (own.position - own.body.center)


class Start(tuple):
    """Coordinates and velocities of a model: the pair (q, v) for :func:`daedal.solve`.

    For forces with states (controllers), a start has these states as a third entry.

    Attributes
    ----------
    q, v : numpy.ndarray
        Coordinates and their rates.
    model : Model
        The model.
    layout : Layout
        The coordinates that q and v belong to.
    t : float
        The time.

    Examples
    --------
    >>> from daedal.multibody import Body, Model, Revolute, ground
    >>> rod = Body.rod("rod", length=2.0, mass=1.0)
    >>> pendulum = Model(Revolute("pivot", ground, rod.start), planar=True)
    >>> start = pendulum.assemble(pivot=0.5, velocities={"pivot": 2.0})
    >>> q, v = start
    >>> print(q, v, start.joint("pivot"), start.position("rod").round(4))
    [0.5] [2.] 0.5 [0.8776 0.4794 0.    ]
    """

    model: Any
    layout: Any
    t: float

    def __new__(cls, q, v, model, layout, t: float = 0.0, r=None):
        """Create the pair (q, v) of `model` in the coordinates of `layout`, followed by the force states r, if any."""
        states = model.initial_states if r is None else r
        parts = [q, v, states] if len(states) else [q, v]
        self = super().__new__(cls, [np.asarray(part, dtype=float) for part in parts])
        self.model, self.layout, self.t = model, layout, float(t)
        return self

    def __reduce__(self):
        return type(self), (self.q, self.v, self.model, self.layout, self.t, self.r), self.__dict__

    @property
    def r(self) -> np.ndarray:
        """The force states."""
        return self[2] if len(self) > 2 else np.zeros(0)

    @property
    def q(self) -> np.ndarray:
        """The coordinates."""
        return self[0]

    @property
    def v(self) -> np.ndarray:
        """Rates of the coordinates."""
        return self[1]

    @property
    def layout_length(self) -> float:
        """Size of the machine, the scale of displacements."""
        return characteristic_length(self.model.layout())

    @property
    def bodies(self) -> BodyStates:
        """Positions and velocities of the bodies."""
        return states_of(self.layout, self.q, self.v)

    def position(self, body: str) -> np.ndarray:
        """Position of the origin of a body's frame."""
        return self.bodies.frame(self._body(body).at())[0]

    def orientation(self, body: str) -> np.ndarray:
        """The rotation from the axes of a body to those of the ground."""
        return self.bodies.frame(self._body(body).at())[1]

    def joint(self, name: str):
        """The coordinate of a joint as a float, or several coordinates as an array."""
        stated = self._stated(name)
        return _plain(coordinates_of(stated, *relative_pose(self.bodies, stated), self._turned(stated)))

    def rate(self, name: str):
        """The velocity of a joint as a float, or several velocities as an array."""
        stated, states = self._stated(name), self.bodies
        values = coordinates_of(stated, *relative_pose(states, stated))
        return _plain(velocities_of(states, stated, values))

    def in_coordinates(self, coordinates: str = "relative", *, cut: Sequence[str] = ()) -> Start:
        """This state of the machine in other coordinates, "relative" or "absolute"."""
        layout = self.model.layout(coordinates, cut)
        if layout is self.layout:
            return self
        q, v = coordinates_in(layout, self.bodies, near_angles(layout, self._motion))
        for column, value, rate in massless_state(layout, self._motion):
            q[column], v[column] = value, rate
        return Start(q, v, self.model, layout, self.t, self.r)

    @property
    def _motion(self) -> Motion:
        tree = self.layout.tree
        u, placed = joint_velocities(tree, self.q, self.v), placement(tree, self.q)
        return Motion(self.layout, self.q, u, placed, velocities(tree, placed, u))

    def _body(self, name: str):
        return self.model.body(name)

    def _stated(self, name: str):
        self.model.joint(name)
        found = stated_joints(self.model.layout())
        if name not in found:
            raise InvalidProblemError(f"'{name}' is not a joint with coordinates")
        return found[name].joint

    def _turned(self, joint):
        """The angles of a joint; turns are counted if known."""
        if joint.turn in (ABOUT_Z, ABOUT_Z_AND_Y):
            return np.array([self._motion.coordinate(joint, which) for which in joint.coordinates[-joint.turn :]])
        return None

    def __repr__(self):
        names = self.layout.names
        values = ", ".join(f"{name}={value:.6g}" for name, value in zip(names, self.q))
        rates = ", ".join(f"{name}'={value:.6g}" for name, value in zip(names, self.v) if value != 0.0)
        return f"Start({values}{'; ' + rates if rates else ''})"


def _plain(values: np.ndarray):
    return float(values[0]) if values.size == 1 else values
