r"""Coordinates of joints, whatever coordinates the model is solved in.

The frames a and b of a joint have the axes A and B, :math:`R = A^T B`, and d leads from a to b. Where the joint is in
the spanning tree, its coordinate is an entry of q; x and y are not if the tree passes the joint from b to a.
Otherwise, in absolute coordinates and at joints that are cut, it is found from the frames:

=================  =================================  ===========================================
coordinate         value                              rate
=================  =================================  ===========================================
angle              atan2(R_yx, R_xx)                  a_z . (omega_b - omega_a)
angle (universal)  atan2(-R_xy, R_yy)                 a_z . (omega_b - omega_a)
second_angle       atan2(-R_zx, R_zz)                 b_y . (omega_b - omega_a)
displacement       a_z . d; x and y likewise          a_z . (v_b - v_a - omega_a x d)
=================  =================================  ===========================================
"""

from __future__ import annotations

from typing import Any, NamedTuple

from daedal.common.messages import unknown_name
from daedal.errors import InvalidProblemError
from daedal.multibody.joints import X, Y, Z
from daedal.multibody.tree import ABOUT_Z_AND_Y, ANY_ROTATION


class JointCoordinate(NamedTuple):
    """Where to find one coordinate of a joint."""

    joint: Any  # as it was stated
    turns: bool  # an angle, not a displacement
    axis: int  # x, y or z of frame a; of frame b for the second angle
    second: bool  # the second angle of a universal joint
    q: int  # entries of q and of the velocities, -1 if it is not among them
    v: int


def joint_coordinates(layout) -> dict[tuple[str, str | None], JointCoordinate]:
    """All coordinates of all joints of a layout, by the names of joint and coordinate; None stands for the only one."""
    number = {joint.name: j for j, joint in enumerate(layout.topology.joints)} if layout.is_relative else {}
    found: dict[tuple[str, str | None], JointCoordinate] = {}
    for joint in layout.stated:
        own = {which: _one(layout, joint, which, number.get(joint.name)) for which in _names(joint)}
        if len(own) == 1:
            own |= {None: next(iter(own.values()))}  # type: ignore[dict-item]
        found |= {(joint.name, which): coordinate for which, coordinate in own.items()}
    return found


def coordinate_of(layout, joint: Any, which: str | None) -> JointCoordinate:
    """One coordinate of a joint, which is given by itself or by its name."""
    name = getattr(joint, "name", joint)
    if (name, which) in layout.joint_coordinates:
        return layout.joint_coordinates[name, which]
    for stated in layout.stated:
        if stated.name == name:
            check_coordinate(stated, which)
    raise unknown_name(name, [one.name for one in layout.stated], "joint")


def check_coordinate(joint, which: str | None):
    """Whether a joint has this coordinate, or a single one if none is named."""
    names = _names(joint)
    if which in names or (which is None and len(names) == 1):
        return
    known = ", ".join(repr(one) for one in names)
    if not names:
        raise InvalidProblemError(f"{joint!r} has no angle or displacement that could be measured or driven")
    if which is None:
        raise InvalidProblemError(f"{joint!r} has several coordinates; say which={names[0]!r} or another of {known}")
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
        return unknown  # seen from b, the axes are others
    if is_reversed and joint.turn == ABOUT_Z_AND_Y:
        k = 1 - k
    q, v = int(layout.tree.first_q[j]) + k, int(layout.tree.first_v[j]) + k
    return unknown._replace(q=q, v=v)
