"""Machines from files in the Unified Robot Description Format (URDF).

The content of a file is validated and represented as plain data. Reference: the XML specification of the format, http://wiki.ros.org/urdf/XML.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np

from daedal.errors import InvalidProblemError
from daedal.multibody.body import Body, ground
from daedal.multibody.constraint import Coupling
from daedal.multibody.fields import SmoothFriction
from daedal.multibody.joints import Fixed, Free, Joint, Planar, Prismatic, Revolute
from daedal.multibody.model import Model
from daedal.multibody.spring import TorsionSpring
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
    """A reference to a mesh, which is not loaded or drawn."""

    file: str
    offset: np.ndarray

    def pieces(self, size: float) -> list[Piece]:
        return []

    @property
    def corners(self) -> np.ndarray:
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
        A file, or the text itself, which starts with ``<``.
    base : {"fixed", "free"}
        Whether the first link is fixed to the ground or moves freely.
    extra : sequence of parts, or callable
        Parts that URDF cannot describe: joints that close loops, forces, motors. A function is called with the bodies
        by name and returns parts, ``lambda link: [Revolute("loop", link["a"].at(0.1, 0, 0), link["b"])]``.
    friction_speed : float, optional
        The speed over which dry friction of joints changes sign (:class:`SmoothFriction`). Without it friction is
        omitted.
    gravity : vector
        The acceleration of gravity.
    name : str, optional
        Name of the model; by default that of the robot.

    Returns
    -------
    Model
        Bodies and joints have the names used in the file; the first link has the joint "base".

    Notes
    -----
    Joints that mimic others become constraints (:class:`Coupling`, "NAME mimics OTHER"). Damping and friction become
    forces ("damping of NAME", "friction of NAME"). Boxes, cylinders and spheres are drawn; meshes are only listed in
    ``body.shapes``. Limits, collision shapes, transmissions and sensors are ignored; add stops, and
    friction with sticking (:class:`JointFriction`), by `extra`.

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
    """The joint, followed by its coupling if it mimics another joint."""
    kind = _KINDS[stated.kind]
    axis = stated.axis if kind in (Revolute, Prismatic, Planar) else "z"
    on_parent = bodies[stated.parent].at(stated.pose.position, rotation=stated.pose.rotation)
    parts: list[Any] = [kind(stated.name, on_parent, bodies[stated.child].at(), axis=axis)]
    if stated.mimic is not None:
        other, multiplier, offset = stated.mimic
        for one in (stated.name, other):
            if one not in joints or _KINDS[joints[one].kind] not in (Revolute, Prismatic):
                raise InvalidProblemError(
                    f"joint '{stated.name}' of the URDF mimics '{other}', but '{one}' is not a joint with one "
                    "angle or displacement"
                )
        parts.append(Coupling(f"{stated.name} mimics {other}", {stated.name: 1.0, other: -multiplier}, offset=offset))
    return parts


def _resistance(stated: UrdfJoint, friction_speed: float | None) -> list[Any]:
    """The forces that represent damping and friction of a joint."""
    friction, speed = (0.0, 1.0) if friction_speed is None else (stated.friction, friction_speed)
    if (stated.damping == 0.0 and friction == 0.0) or stated.kind == "fixed":
        return []
    if _KINDS[stated.kind] not in (Revolute, Prismatic):
        raise InvalidProblemError(
            f"joint '{stated.name}' of the URDF is {stated.kind}, but damping and friction require one angle or "
            "displacement"
        )
    parts: list[Any] = []
    if stated.damping != 0.0:
        parts.append(TorsionSpring(f"damping of {stated.name}", stated.name, damping=stated.damping))
    if friction != 0.0:
        parts.append(SmoothFriction(f"friction of {stated.name}", stated.name, torque=friction, speed=speed))
    return parts


JOINT_TYPES = ("revolute", "continuous", "prismatic", "fixed", "floating", "planar")


@dataclass(frozen=True, eq=False)
class Pose:
    """``<origin xyz="..." rpy="..."/>``: a position, and the rotation of roll, pitch and yaw about fixed axes."""

    position: np.ndarray
    rotation: np.ndarray


@dataclass(frozen=True, eq=False)
class Visual:
    """Shape of a link: "box" (size), "cylinder" (radius, length), "sphere" (radius) or "mesh" (file name)."""

    kind: str
    sizes: tuple[float, ...]
    pose: Pose
    file: str = ""


@dataclass(frozen=True, eq=False)
class Link:
    """A body: its mass, its centre of mass, and its moments of inertia about this centre in the axes of the link."""

    name: str
    mass: float
    center: np.ndarray
    moments: np.ndarray
    visuals: tuple[Visual, ...]


@dataclass(frozen=True, eq=False)
class UrdfJoint:
    """A joint: its frame on the parent, its axis in this frame; `mimic` is (joint, multiplier, offset) or None."""

    name: str
    kind: str
    parent: str
    child: str
    pose: Pose
    axis: np.ndarray
    damping: float
    friction: float
    mimic: tuple[str, float, float] | None


@dataclass(frozen=True, eq=False)
class Robot:
    """The contents of a file: links and joints in file order."""

    name: str
    links: tuple[Link, ...]
    joints: tuple[UrdfJoint, ...]
    root: str


def read_urdf(source: str | Path) -> Robot:
    """Read a robot from a file, or from a text that starts with ``<``."""
    text = source if isinstance(source, str) and source.lstrip().startswith("<") else _contents(source)
    try:
        root = ElementTree.fromstring(text.lstrip() if isinstance(text, str) else text)
    except ElementTree.ParseError as error:
        raise InvalidProblemError(f"the URDF is not well-formed XML: {error}") from error
    if root.tag != "robot":
        raise InvalidProblemError(f"the first element of a URDF must be <robot>, here it is <{root.tag}>")
    if any(str(element.tag).startswith("{http://www.ros.org/wiki/xacro}") for element in root.iter()):
        raise InvalidProblemError("the file is a xacro macro, not a URDF; run `xacro file.xacro > file.urdf` first")
    links = tuple(_link(element) for element in root.findall("link"))
    joints = tuple(_joint(element) for element in root.findall("joint"))
    return Robot(root.get("name", ""), links, joints, _root(links, joints))


def _contents(source: str | Path) -> bytes:
    try:
        return Path(source).read_bytes()
    except OSError as error:
        raise InvalidProblemError(f"the URDF file '{source}' cannot be read: {error.strerror}") from error


def _root(links: tuple[Link, ...], joints: tuple[UrdfJoint, ...]) -> str:
    """The root link. Joints must form a tree of the links."""
    for what, parts in (("link", links), ("joint", joints)):
        names = [part.name for part in parts]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise InvalidProblemError(f"two {what}s of the URDF have the name '{twice}'")
    known, moved_by = {link.name for link in links}, dict[str, str]()
    for joint in joints:
        for end in (joint.parent, joint.child):
            if end not in known:
                raise InvalidProblemError(f"joint '{joint.name}' of the URDF refers to the unknown link '{end}'")
        other = moved_by.setdefault(joint.child, joint.name)
        if other != joint.name:
            raise InvalidProblemError(
                f"link '{joint.child}' of the URDF is the child of two joints, '{other}' and '{joint.name}', but a "
                "URDF must be a tree: omit one of them and close the loop with a joint in `extra`"
            )
    roots = [link.name for link in links if link.name not in moved_by]
    if len(roots) != 1:
        found = ", ".join(f"'{name}'" for name in roots) or "none"
        raise InvalidProblemError(f"a URDF must have exactly one link that is not the child of a joint; found: {found}")
    return roots[0]


def _link(element: Any) -> Link:
    name = _text(element, "name", "a link")
    what = f"link '{name}'"
    inertial = element.find("inertial")
    visuals = tuple(_visual(visual, what) for visual in element.findall("visual"))
    if inertial is None:
        return Link(name, 0.0, np.zeros(3), np.zeros((3, 3)), visuals)
    pose = _pose(inertial, f"the inertial of {what}")
    mass = _child(inertial, "mass", what)
    inertia = _child(inertial, "inertia", what)
    entry = {key: _number(inertia, key, f"the inertia of {what}") for key in ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")}
    matrix = np.array([[entry["i" + "".join(sorted(row + column))] for column in "xyz"] for row in "xyz"])
    moments = pose.rotation @ matrix @ pose.rotation.T
    return Link(name, _number(mass, "value", f"the mass of {what}"), pose.position, moments, visuals)


def _visual(element: Any, what: str) -> Visual:
    pose, geometry = _pose(element, f"the visual of {what}"), _child(element, "geometry", f"the visual of {what}")
    for kind, names in (("box", ("size",)), ("cylinder", ("radius", "length")), ("sphere", ("radius",))):
        shape = geometry.find(kind)
        if shape is not None:
            where = f"the {kind} of {what}"
            sizes = _numbers(shape, "size", 3, where) if kind == "box" else [_number(shape, n, where) for n in names]
            return Visual(kind, tuple(float(size) for size in sizes), pose)
    mesh = geometry.find("mesh")
    if mesh is None:
        raise InvalidProblemError(f"the visual of {what} must be box, cylinder, sphere or mesh")
    return Visual("mesh", (), pose, _text(mesh, "filename", f"the mesh of {what}"))


def _joint(element: Any) -> UrdfJoint:
    name = _text(element, "name", "a joint")
    what, kind = f"joint '{name}'", _text(element, "type", f"joint '{name}'")
    if kind not in JOINT_TYPES:
        raise InvalidProblemError(f"{what} of the URDF has the unknown type '{kind}'; known: {', '.join(JOINT_TYPES)}")
    axis, dynamics, mimic = (element.find(tag) for tag in ("axis", "dynamics", "mimic"))
    follows = None
    if mimic is not None:
        where = f"the mimic of {what}"
        factors = _number(mimic, "multiplier", where, 1.0), _number(mimic, "offset", where, 0.0)
        follows = (_text(mimic, "joint", where), *factors)
    return UrdfJoint(
        name,
        kind,
        _text(_child(element, "parent", what), "link", f"the parent of {what}"),
        _text(_child(element, "child", what), "link", f"the child of {what}"),
        _pose(element, what),
        np.array([1.0, 0.0, 0.0]) if axis is None else _numbers(axis, "xyz", 3, f"the axis of {what}"),
        0.0 if dynamics is None else _number(dynamics, "damping", f"the dynamics of {what}", 0.0),
        0.0 if dynamics is None else _number(dynamics, "friction", f"the dynamics of {what}", 0.0),
        follows,
    )


def _pose(element: Any, what: str) -> Pose:
    from scipy.spatial.transform import Rotation

    origin = element.find("origin")
    if origin is None:
        return Pose(np.zeros(3), np.eye(3))
    turn = _numbers(origin, "rpy", 3, f"the origin of {what}", "0 0 0")
    place = _numbers(origin, "xyz", 3, f"the origin of {what}", "0 0 0")
    return Pose(place, Rotation.from_euler("xyz", turn).as_matrix())


def _child(element: Any, tag: str, what: str) -> Any:
    found = element.find(tag)
    if found is None:
        raise InvalidProblemError(f"{what} of the URDF has no <{tag}>")
    return found


def _text(element: Any, name: str, what: str) -> str:
    value = element.get(name)
    if not value:
        raise InvalidProblemError(f"{what} of the URDF has no {name}")
    return value


def _number(element: Any, name: str, what: str, default: float | None = None) -> float:
    if default is not None and element.get(name) is None:
        return default
    return float(_numbers(element, name, 1, what)[0])


def _numbers(element: Any, name: str, count: int, what: str, default: str | None = None) -> np.ndarray:
    text = element.get(name, default)
    if text is None:
        raise InvalidProblemError(f"{what} of the URDF has no {name}")
    try:
        values = np.array([float(word) for word in text.split()])
    except ValueError:
        values = np.zeros(0)
    if values.size != count or not np.all(np.isfinite(values)):
        expected = "a finite number" if count == 1 else f"{count} finite numbers"
        raise InvalidProblemError(f"{name} of {what} of the URDF must be {expected}, got '{text}'")
    return values
