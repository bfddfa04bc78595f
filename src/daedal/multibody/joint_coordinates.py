r"""Coordinates of joints, independent of the coordinates in which the model is solved.

The frames a and b of a joint have the axes A and B, :math:`R = A^T B`, and d is the vector from a to b. If the joint is
in the spanning tree, its coordinate is an entry of q, except for x and y if the tree traverses the joint from b to a.
Otherwise, in absolute coordinates and at cut joints, it is computed from the frames:

=================  =================================  ===========================================
coordinate         value                              rate
=================  =================================  ===========================================
angle              atan2(R_yx, R_xx)                  a_z . (omega_b - omega_a)
angle (universal)  atan2(-R_xy, R_yy)                 a_z . (omega_b - omega_a)
second_angle       atan2(-R_zx, R_zz)                 b_y . (omega_b - omega_a)
displacement       a_z . d; x and y likewise          a_z . (v_b - v_a - omega_a x d)
=================  =================================  ===========================================

The positions of two bodies do not determine the number of turns of an angle. In the plane, every angle is a sum of
coordinates, which determine it. In space, a cut joint gets an additional coordinate, that of a massless body that is
hinged to the first frame of the joint and rotates with the second, :math:`m_x \cdot b_y = 0`. The mass matrix is then
singular, but positive definite on all admissible motions.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from daedal.common.messages import unknown_name
from daedal.errors import InvalidProblemError
from daedal.multibody.body import Body, Frame, ground
from daedal.multibody.joints import Joint, Prismatic, Revolute, X, Y, Z
from daedal.multibody.kinematics import ABOUT_Z_AND_Y, ANY_ROTATION, placement


class JointCoordinate(NamedTuple):
    """Location of one coordinate of a joint."""

    joint: Any  # the original joint
    turns: bool  # whether it is an angle instead of a displacement
    axis: int  # x, y or z of frame a; of frame b for the second angle
    second: bool  # whether it is the second angle of a universal joint
    q: int  # indices in q and in the velocities, -1 if it is not among them
    v: int


def joint_coordinates(layout) -> dict[tuple[str, str | None], JointCoordinate]:
    """All coordinates of all joints of a layout, by the names of joint and coordinate; None denotes the only one."""
    number = {joint.name: j for j, joint in enumerate(layout.topology.joints)} if layout.is_relative else {}
    found: dict[tuple[str, str | None], JointCoordinate] = {}
    for joint in layout.stated:
        own = {which: _one(layout, joint, which, number.get(joint.name)) for which in _names(joint)}
        if len(own) == 1:
            own |= {None: next(iter(own.values()))}  # type: ignore[dict-item]
        found |= {(joint.name, which): coordinate for which, coordinate in own.items()}
    return found


def coordinate_of(layout, joint: Any, which: str | None) -> JointCoordinate:
    """One coordinate of a joint, given as an object or by name."""
    name = getattr(joint, "name", joint)
    if (name, which) in layout.joint_coordinates:
        return layout.joint_coordinates[name, which]
    for stated in layout.stated:
        if stated.name == name:
            check_coordinate(stated, which)
    raise unknown_name(name, [one.name for one in layout.stated], "joint")


def check_coordinate(joint, which: str | None):
    """Check that a joint has the coordinate `which`, or only one coordinate if `which` is None."""
    names = _names(joint)
    if which in names or (which is None and len(names) == 1):
        return
    known = ", ".join(repr(one) for one in names)
    if not names:
        raise InvalidProblemError(f"{joint!r} has no angle or displacement that can be measured or driven")
    if which is None:
        raise InvalidProblemError(
            f"{joint!r} has several coordinates; specify which={names[0]!r} or another of {known}"
        )
    raise InvalidProblemError(f"{joint!r} has no coordinate {which!r}; it has {known}")


def _names(joint) -> tuple[str, ...]:
    return joint.coordinates[:-3] if joint.turn == ANY_ROTATION else joint.coordinates


def _one(layout, joint, which: str, j: int | None) -> JointCoordinate:
    k = joint.coordinates.index(which)
    turns = k >= len(joint.shifts)
    second = turns and joint.turn == ABOUT_Z_AND_Y and k == len(joint.coordinates) - 1
    axis = (Y if second else Z) if turns else joint.shifts[k]
    unknown = JointCoordinate(joint, turns, axis, second, -1, -1)
    if j is None:
        return unknown
    is_reversed = layout.topology.reversed[j]
    if is_reversed and not turns and (axis in (X, Y) or joint.turn == ANY_ROTATION):
        return unknown  # seen from b, the coordinate refers to other axes
    if is_reversed and joint.turn == ABOUT_Z_AND_Y:
        k = 1 - k
    q, v = int(layout.tree.first_q[j]) + k, int(layout.tree.first_v[j]) + k
    return unknown._replace(q=q, v=v)


class Sum(NamedTuple):
    """A sum of tree coordinates: factor times q for some columns, plus a constant."""

    columns: tuple[int, ...]
    factors: tuple[float, ...]
    constant: float

    def value(self, q):
        """The sum for coordinates q."""
        total = self.constant
        for column, factor in zip(self.columns, self.factors):
            total = total + factor * q[column]
        return total


def angle_between(layout, a: Frame, b: Frame) -> Sum:
    """The angle from frame a to frame b in a planar model, about the z axis of a."""
    placed = placement(layout.tree, layout.zero)
    factors = np.zeros(layout.n_q)
    turns = []
    for frame, sign in ((a, -1.0), (b, 1.0)):
        body = layout.index[frame.body.name]
        turns.append(frame.rotation if body < 0 else placed.rotation[body] @ frame.rotation)
        while body >= 0:
            first, end = layout.tree.first_v[body], layout.tree.first_v[body + 1]
            factors[first:end] += sign * placed.angular[first:end, 2]
            body = layout.tree.parent[body]
    about = turns[0][2, 2]  # in the direction of z or opposite to it
    turn = turns[0].T @ turns[1]
    columns = tuple(int(k) for k in np.flatnonzero(factors))
    constant = float(np.arctan2(turn[1, 0], turn[0, 0]))
    return Sum(columns, tuple(float(about * factors[k]) for k in columns), constant)


def counted_angles(layout) -> dict[str, Sum]:
    """Angles of joints outside the tree that the coordinates of a layout determine, by name."""
    found: dict[str, Sum] = {}
    for one in layout.joint_coordinates.values():
        if one.q >= 0 or not one.turns:
            continue
        name = angle_name(one)
        if name in layout.pointers:
            found[name] = Sum((layout.massless[name],), (1.0,), 0.0)
        elif layout.planar:
            found[name] = angle_between(layout, one.joint.a, one.joint.b)
    return found


def near_angles(layout, motion) -> np.ndarray:
    """Coordinates of a layout, with the angles of a motion known in another layout; other entries are zero."""
    near = np.zeros(layout.n_q)
    for (joint, which), one in layout.joint_coordinates.items():
        if one.q >= 0 and one.turns:
            near[one.q] = motion.coordinate(joint, which)
    if layout.planar and not layout.is_relative:
        for body in layout.topology.bodies[: layout.n_bodies]:
            turned = angle_between(motion.layout, Frame(ground), Frame(body)).value(motion.q)
            near[layout.tree.first_q[layout.index[body.name] + 1] - 1] = turned
    return near


def massless_state(layout, motion) -> list[tuple[int, float, float]]:
    """Coordinates of massless bodies: indices, values and rates, for a motion known in another layout."""
    found = []
    for name, column in layout.massless.items():
        there = motion.layout.massless.get(name)
        if there is not None:
            found.append(
                (column, motion.q[there], motion.speeds[motion.layout.tree.first_v[motion.layout.index[name]]])
            )
    for (joint, which), one in layout.joint_coordinates.items():
        name = angle_name(one)
        if which is not None and name in layout.pointers and name not in motion.layout.massless:
            values = motion.coordinate(joint, which), motion.rate(joint, which)
            found.append((layout.massless[name], *values))
    return found


def angle_name(one: JointCoordinate) -> str:
    """Name of the coordinate for an angle."""
    return f"{'second ' if one.second else ''}angle of {one.joint.name}"


def pointer(one: JointCoordinate) -> tuple[Body, Joint, Joint]:
    """A massless body whose hinge angle equals an angle of a joint, its hinge, and the joint that aligns the body."""
    side = one.joint.swapped() if one.second else one.joint
    body = Body(angle_name(one))
    return body, Revolute(body.name, side.a, body), Revolute(body.name, body, side.b)


def runner(name: str) -> tuple[Body, Joint]:
    """A massless body on a slider whose displacement is a coordinate required by a constraint."""
    body = Body(name)
    return body, Prismatic(name, ground, body, axis="x")
