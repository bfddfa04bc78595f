"""Machines from URDF, the format in which robots are described."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from daedal.errors import InvalidProblemError
from daedal.multibody.body import Body, ground
from daedal.multibody.constraints import Coupling
from daedal.multibody.forces import SmoothFriction, TorsionSpring
from daedal.multibody.joints import Fixed, Free, Joint, Planar, Prismatic, Revolute
from daedal.multibody.model import Model
from daedal.multibody.urdf_file import Link, UrdfJoint, Visual, read_urdf
from daedal.viz.shapes3d import Box, Cylinder, Piece, SolidShape, Sphere

_KINDS: dict[str, type[Joint]] = {
    "revolute": Revolute,
    "continuous": Revolute,
    "prismatic": Prismatic,
    "fixed": Fixed,
    "floating": Free,
    "planar": Planar,
}
BASES: dict[str, type[Joint]] = {"fixed": Fixed, "free": Free}


@dataclass(frozen=True, eq=False)
class MeshFile(SolidShape):
    """A mesh that is named and not loaded: nothing is drawn of it."""

    file: str
    offset: np.ndarray

    def pieces(self, size: float) -> list[Piece]:
        """None."""
        return []

    @property
    def corners(self) -> np.ndarray:
        """Its origin."""
        return self.offset[None]


def from_urdf(
    source: str | Path,
    *,
    base: str = "fixed",
    extra: Sequence[Any] | Callable[[Mapping[str, Body]], Sequence[Any]] = (),
    friction_speed: float | None = None,
    gravity=(0.0, 0.0, -9.81),
    name: str | None = None,
) -> Model:
    """A machine from a URDF file or text.

    Parameters
    ----------
    source : path or str
        A file, or the text itself, which begins with ``<``.
    base : {"fixed", "free"}
        Whether the first link stands on the ground or moves freely.
    extra : sequence of parts, or callable
        What a URDF cannot say: joints that close loops, forces, motors. A function is called with the bodies by their
        names and returns parts, ``lambda link: [Revolute("loop", link["a"].at(0.1, 0, 0), link["b"])]``.
    friction_speed : float, optional
        The speed over which dry friction of joints changes its sign (:class:`SmoothFriction`). Without it friction is
        left out.
    gravity : vector
        The acceleration of gravity.
    name : str, optional
        By default that of the robot.

    Returns
    -------
    Model
        Bodies and joints have the names of the file; the first link has the joint "base".

    Notes
    -----
    Joints that mimic others become constraints (:class:`Coupling`, "NAME mimics OTHER"). Damping becomes a force
    ("damping of NAME"), and so does friction ("friction of NAME"). Boxes, cylinders and spheres are drawn; meshes are
    named in ``body.shapes``. Limits, collision shapes, transmissions and sensors are left out; stops, and friction that
    sticks (:class:`JointFriction`), are parts for `extra`.

    Examples
    --------
    >>> from daedal.multibody import from_urdf
    >>> robot = from_urdf('''
    ... <robot name="pendulum">
    ...   <link name="stand"/>
    ...   <link name="arm">
    ...     <inertial> <origin xyz="0 0 -0.5"/> <mass value="1"/>
    ...       <inertia ixx="0.1" ixy="0" ixz="0" iyy="0.1" iyz="0" izz="0.01"/> </inertial>
    ...   </link>
    ...   <joint name="pivot" type="continuous">
    ...     <parent link="stand"/> <child link="arm"/> <axis xyz="0 1 0"/>
    ...   </joint>
    ... </robot>''')
    >>> robot.system().names, robot.report().degrees_of_freedom
    (('pivot',), 1)
    """
    if base not in BASES:
        raise InvalidProblemError(f"base={base!r} must be 'fixed' or 'free'")
    robot = read_urdf(source)
    bodies = {link.name: _body(link) for link in robot.links}
    joints = {joint.name: joint for joint in robot.joints}
    parts: list[Any] = [BASES[base]("base", ground, bodies[robot.root])]
    for stated in robot.joints:
        parts += [*_joint_parts(stated, bodies, joints), *_resistance(stated, friction_speed)]
    parts += extra(bodies) if callable(extra) else extra
    return Model(*parts, gravity=gravity, name=robot.name if name is None else name)


def _body(link: Link) -> Body:
    shapes = tuple(_shape(visual) for visual in link.visuals)
    return Body(link.name, mass=link.mass, inertia=link.moments, center=link.center, shapes=shapes)


def _shape(visual: Visual) -> SolidShape:
    place, turn = visual.pose.position, visual.pose.rotation
    if visual.kind == "box":
        return Box(visual.sizes, place, turn)
    if visual.kind == "cylinder":
        radius, length = visual.sizes
        return Cylinder(radius, length, turn[:, 2], place)
    if visual.kind == "sphere":
        return Sphere(visual.sizes[0], place)
    return MeshFile(visual.file, place)


def _joint_parts(stated: UrdfJoint, bodies: Mapping[str, Body], joints: Mapping[str, UrdfJoint]) -> list[Any]:
    """The joint, and what couples it to another one."""
    kind = _KINDS[stated.kind]
    axis = stated.axis if kind in (Revolute, Prismatic, Planar) else "z"
    on_parent = bodies[stated.parent].at(stated.pose.position, rotation=stated.pose.rotation)
    parts: list[Any] = [kind(stated.name, on_parent, bodies[stated.child].at(), axis=axis)]
    if stated.mimic is not None:
        other, multiplier, offset = stated.mimic
        for one in (stated.name, other):
            if one not in joints or _KINDS[joints[one].kind] not in (Revolute, Prismatic):
                raise InvalidProblemError(
                    f"joint '{stated.name}' of the URDF mimics '{other}'; '{one}' is no joint with one angle or "
                    "displacement"
                )
        parts.append(Coupling(f"{stated.name} mimics {other}", {stated.name: 1.0, other: -multiplier}, offset=offset))
    return parts


def _resistance(stated: UrdfJoint, friction_speed: float | None) -> list[Any]:
    """Damping and friction of a joint."""
    friction, speed = (0.0, 1.0) if friction_speed is None else (stated.friction, friction_speed)
    if (stated.damping == 0.0 and friction == 0.0) or stated.kind == "fixed":
        return []
    if _KINDS[stated.kind] not in (Revolute, Prismatic):
        raise InvalidProblemError(
            f"joint '{stated.name}' of the URDF is {stated.kind}; "
            "damping and friction are for joints with one angle or displacement"
        )
    parts: list[Any] = []
    if stated.damping != 0.0:
        parts.append(TorsionSpring(f"damping of {stated.name}", stated.name, damping=stated.damping))
    if friction != 0.0:
        parts.append(SmoothFriction(f"friction of {stated.name}", stated.name, torque=friction, speed=speed))
    return parts
