"""Machines as scenes in space: shapes of bodies, supports, springs, traces, arrows and plots."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from daedal.errors import InvalidProblemError
from daedal.multibody.body import Body, Frame
from daedal.multibody.constraints import Distance
from daedal.multibody.constraints.rolling import OnPlane
from daedal.multibody.course import MotionHistory
from daedal.multibody.forces import Contact, SoftContact, Spring
from daedal.multibody.joints import Z
from daedal.multibody.tree import ABOUT_Z, NO_ROTATION
from daedal.viz import Arrow, Line, Part, Plot, RodLine, Scene, SpringLine, Trace
from daedal.viz.shapes3d import SLIM, Cylinder, Plane, Rod, SolidShape, Sphere

POINT, PIN = 0.03, 0.021  # of the size of the machine, but no more than fits its rods: radii of point masses and hinges
GROUND_COLOR = "#8d939b"
Z_AXIS = np.array([0.0, 0.0, 1.0])
_FLOOR = 1.5  # of the size of the machine: edges of planes


def scene_of(course: MotionHistory, *, traces: Any = (), arrows=(), plots=(), title: str = "") -> Scene:
    """A machine in the course of a motion, or at one time."""
    size = size_of(course)
    unit = min(size, 6.0 * _usual_rod(course.model) or size)
    parts: list[Any] = [_part(course, body, unit) for body in course.model.bodies]
    parts += [*_supports(course, unit), *_rails(course, size), *_springs(course), *_rods(course, unit)]
    parts += _planes(course, size)
    up = "y" if _points_along_y(course) else "z"
    found = [Trace(name, course.position(frame).T) for name, frame in _traced(traces, course.model)]
    return Scene(course.t, parts, found, tuple(arrows), tuple(plots), title or course.model.name, up)


# --- bodies -----------------------------------------------------------------------------------------------------------


def _part(course: MotionHistory, body: Body, unit: float) -> Part:
    given = [replace(one, radius=SLIM * unit) if _is_slim(one) else one for one in body.shapes]
    shapes = [*(given or _skeleton(body, _attached(course.model, body), unit)), *_pins(course.model, body, unit)]
    frame = body.at()
    return Part(body.name, shapes, course.position(frame).T, course.rotation(frame))


def _is_slim(shape: SolidShape) -> bool:
    return isinstance(shape, Rod) and shape.radius is None


def _pins(model: Any, body: Body, unit: float) -> list[SolidShape]:
    """Pins of hinges and balls of ball joints, where a body is the second one of a joint."""
    own = [joint for joint in model.joints if joint.b.body.name == body.name and not joint.shifts]
    pins: list[SolidShape] = []
    for joint in own:
        place, axis = tuple(joint.b.position), tuple(joint.b.rotation[:, 2])
        if joint.turn == ABOUT_Z:
            pins.append(Cylinder(PIN * unit, 2.5 * PIN * unit, axis, place))
        elif joint.turn != NO_ROTATION:
            pins.append(Sphere(PIN * unit, place))
    return pins


def _attached(model: Any, body: Body) -> list[Frame]:
    """The frames on a body that joints and forces hold on to."""
    frames = [frame for part in (*model.joints, *model.forces) for frame in part.frames]
    return [frame for frame in frames if frame.body.name == body.name]


def _skeleton(body: Body, frames: list[Frame], unit: float) -> tuple[SolidShape, ...]:
    """Rods from the middle of the joints to each of them and to the centre of mass, where a ball is."""
    center = np.asarray(body.center)
    places = _distinct([frame.position for frame in frames], unit)
    middle = np.mean(places, axis=0) if len(places) > 1 else center
    ends = [*places, center] if np.linalg.norm(center - middle) > POINT * unit else places
    rods = [Rod(tuple(middle), tuple(end), SLIM * unit) for end in ends if np.linalg.norm(end - middle) > 1e-9 * unit]
    if len(ends) == 2:
        rods = [Rod(tuple(ends[0]), tuple(ends[1]), SLIM * unit)]
    return (Sphere(POINT * unit, tuple(center)), *rods)


def _distinct(places: Iterable[np.ndarray], unit: float) -> list[np.ndarray]:
    found: list[np.ndarray] = []
    for place in places:
        if all(np.linalg.norm(place - other) > 1e-9 * unit for other in found):
            found.append(place)
    return found


# --- what stands still ------------------------------------------------------------------------------------------------


def _supports(course: MotionHistory, unit: float) -> list[Part]:
    """Bearings about the axes of hinges on the ground, points where anything else holds on to it."""
    shapes: list[SolidShape] = []
    for joint in course.model.joints:
        frame = joint.a if joint.a.body.is_ground else joint.b
        if not frame.body.is_ground:
            continue
        if not joint.shifts:
            axis, place = tuple(frame.rotation[:, 2]), tuple(frame.position)
            bearing = Cylinder(1.1 * PIN * unit, 2.2 * PIN * unit, axis, place)
            shapes.append(bearing if joint.turn == ABOUT_Z else Sphere(1.1 * PIN * unit, place))
    for force in course.model.forces:
        shapes += [Sphere(0.7 * PIN * unit, tuple(f.position)) for f in force.frames if f.body.is_ground]
    return [Part("ground", shapes, color=GROUND_COLOR)] if shapes else []


def _rails(course: MotionHistory, size: float) -> list[Line]:
    """The ways of sliders along the ground."""
    lines = []
    for joint in course.model.joints:
        fixed, moved = (joint.a, joint.b) if joint.a.body.is_ground else (joint.b, joint.a)
        if joint.shifts != (Z,) or not fixed.body.is_ground:
            continue
        axis = fixed.rotation[:, 2]
        ways = (course.position(moved) - fixed.position) @ axis
        ends = [fixed.position + way * axis for way in _widened(ways, 0.08 * size)]
        lines.append(Line(joint.name, np.array(ends)))
    return lines


def _widened(values: np.ndarray, by: float) -> tuple[float, float]:
    return float(values.min()) - by, float(values.max()) + by


# --- forces, traces, plots --------------------------------------------------------------------------------------------


def _springs(course: MotionHistory) -> list[SpringLine]:
    springs = [force for force in course.model.forces if isinstance(force, Spring)]
    return [SpringLine(one.name, course.position(one.a).T, course.position(one.b).T) for one in springs]


def _rods(course: MotionHistory, unit: float) -> list[RodLine]:
    rods = [one for one in course.model.constraints if isinstance(one, Distance)]
    return [RodLine(one.name, course.position(one.a).T, course.position(one.b).T, SLIM * unit) for one in rods]


def _planes(course: MotionHistory, size: float) -> list[Part]:
    """What contacts and wheels touch: one square for all that touch the same plane of a body."""
    model = course.model
    found: list[tuple[Frame, np.ndarray, str]] = [
        (one.against, one.normal, one.name)
        for one in (*model.discontinuities, *model.forces)
        if isinstance(one, (Contact, SoftContact))
    ]
    found += [(one.plane, Z_AXIS, one.name) for one in model.constraints if isinstance(one, OnPlane)]
    parts: list[Part] = []
    known: list[tuple[str, np.ndarray, float]] = []
    for frame, normal, name in found:
        n = frame.rotation @ normal
        height = float(n @ frame.position)
        if any(
            body == frame.body.name and np.allclose(n, other) and abs(height - at) <= 1e-9 * size
            for body, other, at in known
        ):
            continue
        known.append((frame.body.name, n, height))
        plane, body = Plane(_FLOOR * size, tuple(n), tuple(frame.position)), frame.body.at()
        parts.append(Part(f"plane of {name}", [plane], course.position(body).T, course.rotation(body), GROUND_COLOR))
    return parts


def _traced(given: Any, model: Any) -> list[tuple[str, Frame]]:
    """Names and frames of points whose paths are drawn; bodies may be given by their names."""
    if isinstance(given, Mapping):
        pairs = list(given.items())
    else:
        every = [given] if isinstance(given, (Body, Frame, str)) else list(given)
        pairs = [(None, one) for one in every]
    result: list[tuple[str, Frame]] = []
    for name, one in pairs:
        one = model.body(one) if isinstance(one, str) else one
        if not isinstance(one, (Body, Frame)):
            raise InvalidProblemError(f"traces: {one!r} is neither a body nor a frame on a body")
        frame = one.at() if isinstance(one, Body) else one
        if not frame.body.is_ground:
            model.body(frame.body.name)
        label = name or frame.body.name
        used = sum(other.split(" (")[0] == label for other, _ in result)
        result.append((label if not used else f"{label} ({used + 1})", frame))
    return result


def reaction_arrows(joints: Iterable[Any]) -> list[Arrow]:
    """The forces of joints on their second bodies."""
    return [Arrow(f"reaction at {view.joint.name}", view.position, view.reaction.force) for view in joints]


def energy_plot(energy: Any) -> Plot:
    """Kinetic, potential and total energy."""
    return Plot("energy", {"kinetic": energy.kinetic, "potential": energy.potential, "total": energy.total})


def joint_plot(view: Any) -> Plot:
    """The coordinates of a joint."""
    rows = view.coordinates
    return Plot(view.joint.name, dict(zip(view.names, rows)))


# --- the whole --------------------------------------------------------------------------------------------------------


def size_of(course: MotionHistory) -> float:
    """The longest edge of a box about all joints and centres of mass in the course of the motion."""
    frames = [frame for joint in course.model.joints for frame in joint.frames]
    frames += [Frame(body, body.center) for body in course.model.bodies]
    points = np.concatenate([course.position(frame) for frame in frames])
    corners = [shape.corners for body in course.model.bodies for shape in body.shapes]
    own = max((float(np.ptp(corner, axis=0).max()) for corner in corners if len(corner)), default=0.0)
    return max(float(np.ptp(points, axis=0).max()), own) or 1.0


def _usual_rod(model: Any) -> float:
    """The length that half of the thin rods exceed; 0 if there are none."""
    rods = [shape for body in model.bodies for shape in body.shapes if _is_slim(shape)]
    lengths = [np.linalg.norm(np.subtract(rod.end, rod.start)) for rod in rods]
    return float(np.median(lengths)) if lengths else 0.0


def _points_along_y(course: MotionHistory) -> bool:
    gravity = course.model.gravity
    return course.model.planar or bool(np.argmax(np.abs(gravity)) == 1 and np.any(gravity))
