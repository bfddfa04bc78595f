"""Machines as scenes in space, pages and pictures: bodies, supports, springs, traces, arrows and plots.

Planar machines are also drawn in the plane: points as functions of the coordinates, which can be traced.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from daedal.errors import InvalidProblemError
from daedal.multibody.body import Body, Frame
from daedal.multibody.discontinuity import Contact
from daedal.multibody.fields import SoftContact
from daedal.multibody.geometric import Distance
from daedal.multibody.joints import Z
from daedal.multibody.kinematics import ABOUT_Z, NO_ROTATION, placement
from daedal.multibody.layout import Layout
from daedal.multibody.motion import Motion, MotionHistory
from daedal.multibody.rolling import OnPlane
from daedal.multibody.spring import Spring
from daedal.viz import Arrow, Drawing, Line, Part, Plot, RodLine, Scene, SpringLine, Trace
from daedal.viz.shapes3d import SLIM, Box, Cylinder, Disc, Plane, Rod, SolidShape, Sphere

# radii of point masses and hinges, as fractions of the machine's size, limited by the size of its rods
POINT, PIN = 0.03, 0.021
GROUND_COLOR = "#8d939b"
Z_AXIS = np.array([0.0, 0.0, 1.0])
_FLOOR = 1.5  # edge length of planes, relative to the machine's size


def scene_of(course: MotionHistory, *, traces: Any = (), arrows=(), plots=(), title: str = "") -> Scene:
    """Scene of a machine during a motion, or at one time."""
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
    """Pins of hinges, and balls of ball joints, whose second body is the given one."""
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
    """The frames on a body at which joints and forces are attached."""
    frames = [frame for part in (*model.joints, *model.forces) for frame in part.frames]
    return [frame for frame in frames if frame.body.name == body.name]


def _skeleton(body: Body, frames: list[Frame], unit: float) -> tuple[SolidShape, ...]:
    """Rods from the midpoint of the joints to each joint and to the centre of mass, which is drawn as a ball."""
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


# --- fixed objects ----------------------------------------------------------------------------------------------------


def _supports(course: MotionHistory, unit: float) -> list[Part]:
    """Bearings about the axes of hinges on the ground, and balls at other points attached to the ground."""
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
    """Paths of sliders along the ground."""
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
    """Planes of contacts and wheels: one square for all contacts on the same plane of a body."""
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
    """Names and frames of points whose paths are drawn; bodies may be given by name."""
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
    """Arrows for the forces of joints on their second bodies."""
    return [Arrow(f"reaction at {view.joint.name}", view.position, view.reaction.force) for view in joints]


def energy_plot(energy: Any) -> Plot:
    """Plot of kinetic, potential and total energy."""
    return Plot("energy", {"kinetic": energy.kinetic, "potential": energy.potential, "total": energy.total})


def joint_plot(view: Any) -> Plot:
    """Plot of the coordinates of a joint."""
    rows = view.coordinates
    return Plot(view.joint.name, dict(zip(view.names, rows)))


# --- scenes -----------------------------------------------------------------------------------------------------------


def size_of(course: MotionHistory) -> float:
    """The longest edge of a box around all joints and centres of mass during the motion."""
    frames = [frame for joint in course.model.joints for frame in joint.frames]
    frames += [Frame(body, body.center) for body in course.model.bodies]
    points = np.concatenate([course.position(frame) for frame in frames])
    corners = [shape.corners for body in course.model.bodies for shape in body.shapes]
    own = max((float(np.ptp(corner, axis=0).max()) for corner in corners if len(corner)), default=0.0)
    return max(float(np.ptp(points, axis=0).max()), own) or 1.0


def _usual_rod(model: Any) -> float:
    """Median length of the thin rods; 0 if there are none."""
    rods = [shape for body in model.bodies for shape in body.shapes if _is_slim(shape)]
    lengths = [np.linalg.norm(np.subtract(rod.end, rod.start)) for rod in rods]
    return float(np.median(lengths)) if lengths else 0.0


def _points_along_y(course: MotionHistory) -> bool:
    gravity = course.model.gravity
    return course.model.planar or bool(np.argmax(np.abs(gravity)) == 1 and np.any(gravity))


FEWEST, MOST = 240, 1920  # smallest and largest number of frames chosen automatically
# largest displacement (relative to the machine's size) and rotation (in radians) of a body between two frames
NEAR, TURN = 0.03, 0.2


def animate(
    results: Any,
    path: str | Path | None,
    *,
    t_span: Any,
    frames: int | None,
    seconds: float | None,
    title: str,
    traces: Any,
    reactions: Any,
    plots: Any,
) -> Scene | Path:
    """See :meth:`daedal.multibody.Results.animate`."""
    ending = None if path is None else Path(path).suffix.lower()
    if ending not in (None, ".html", ".gif", ".png", ".pdf", ".svg"):
        raise InvalidProblemError(f"path={str(path)!r} must end in .html, .gif, .png, .pdf or .svg")
    times = _times(results, t_span, frames)
    course = results.course(times)
    names = [joint.name for joint in results.model.joints] if reactions is True else several(reactions)
    scene = scene_of(
        course,
        traces=traces,
        arrows=reaction_arrows([results.joint(name, times) for name in names]),
        plots=[_plot(results, plot, times) for plot in several(plots)],
        title=title,
    )
    if path is None:
        return scene
    if ending == ".html":
        return scene.save(path, seconds=seconds)
    if ending == ".gif":
        return scene.gif(path, seconds=seconds)
    scene.stills(np.linspace(times[0], times[-1], 4), path, columns=2)
    return Path(path)


def several(given: Any) -> list:
    """A list of objects, from a list or a single object."""
    if given is None:
        return []
    return list(given) if isinstance(given, (list, tuple, set)) else [given]


def draw(model: Any, start: Any = None, path: str | Path | None = None, *, title: str = "", **options: Any):
    """Draw a machine at one time; see :meth:`Model.draw`."""
    start = model.start() if start is None else start
    layout = getattr(start, "layout", None) or model.layout()
    q, v = (np.asarray(values, dtype=float)[None] for values in start[:2])
    if q.shape != (1, layout.n_q) or v.shape != q.shape:
        raise InvalidProblemError(
            f"start has {q.size} coordinates and {v.size} velocities, but there are {layout.n_q} relative coordinates"
        )
    course = MotionHistory(model, layout, np.zeros(1), q, v, np.zeros((1, 0)), lambda: None)
    scene = scene_of(course, title=title)
    if path is not None and Path(path).suffix.lower() == ".html":
        return scene.save(path)
    return scene.still(0.0, path, **({"labels": True, "view": "front" if model.planar else None} | options))


def _plot(results: Any, plot: Any, times: np.ndarray) -> Plot:
    if isinstance(plot, Plot):
        return plot
    return energy_plot(results.energy(times)) if plot == "energy" else joint_plot(results.joint(plot, times))


def _times(results: Any, t_span: Any, frames: int | None) -> np.ndarray:
    begin, end = results.interval
    if t_span is not None:
        try:
            first, last = sorted(float(value) for value in t_span)
        except (TypeError, ValueError):
            raise InvalidProblemError(f"t_span={t_span!r} must be two numbers") from None
        if not begin <= first < last <= end:
            raise InvalidProblemError(
                f"t_span={t_span!r} must lie in the interval of the solution, [{begin:g}, {end:g}]"
            )
        begin, end = first, last
    if not begin < end:
        raise InvalidProblemError("the solution has a single time; there is nothing to animate")
    if results.output_times is not None:
        return results.output_times
    if frames is not None:
        if isinstance(frames, bool) or not isinstance(frames, (int, np.integer)) or frames < 2:
            raise InvalidProblemError(f"frames={frames!r} must be an integer, 2 or more")
        return np.linspace(begin, end, int(frames))
    count = FEWEST
    while count < MOST and not _is_smooth(results.course(np.linspace(begin, end, count))):
        count *= 2
    return np.linspace(begin, end, count)


def _is_smooth(course: MotionHistory) -> bool:
    moves = np.linalg.norm(np.diff(course.centers, axis=0), axis=2)
    turns = np.linalg.norm(np.diff(course.rotations, axis=0), axis=(2, 3)) / np.sqrt(2.0)  # valid for small angles
    return bool(moves.max() <= NEAR * size_of(course) and turns.max() <= TURN)


_SAME = 1e-9  # distance below which points coincide, relative to the size of the machine


def planar_drawing(model: Any, layout: Layout) -> Drawing | None:
    """The drawing of a planar machine; None for one in space."""
    return _Sketch(model, layout).drawing() if model.planar else None


class _Sketch:
    def __init__(self, model: Any, layout: Layout):
        self.model, self.layout = model, layout
        self.points: dict[str, Any] = {}
        self.rods, self.bodies, self.springs = list[Any](), list[Any](), list[Any]()
        self.wheels, self.masses = list[Any](), list[str]()
        self.hinges = [
            (moved, fixed)
            for joint in model.joints
            if not joint.shifts
            for fixed, moved in (joint.frames, joint.frames[::-1])
            if fixed.body.is_ground
        ]

    def drawing(self) -> Drawing:
        for body in self.model.bodies:
            self._body(body)
        for force in self.model.forces:
            if isinstance(force, Spring):
                self.springs.append(tuple(self._point(frame.body, frame.position) for frame in force.frames))
        ground = [line for joint in self.model.joints if (line := self._rail(joint)) is not None]
        return Drawing(
            self.points, rods=self.rods, wheels=self.wheels, springs=self.springs, bodies=self.bodies,
            masses=self.masses, ground=ground,
        )  # fmt: skip

    def _body(self, body: Body) -> None:
        attached = self._attached(body)
        drawn = [self._shape(body, shape, attached) for shape in body.shapes]
        if any(drawn):
            return
        names = [self._point(body, place) for place in attached]
        if len(names) > 2:
            middle = np.mean(attached, axis=0)
            order = np.argsort([np.arctan2(*(place - middle)[1::-1]) for place in attached])
            self.bodies.append(tuple(names[k] for k in order))
        elif len(names) == 2:
            self.rods.append(tuple(names))
        else:
            center = self._point(body, body.center)
            self.masses.append(center)
            if names and names[0] != center:
                self.rods.append((names[0], center))

    def _shape(self, body: Body, shape: Any, attached: list[np.ndarray]) -> bool:
        """Add a shape to the drawing; returns False if it has no counterpart in the plane."""
        if isinstance(shape, Rod):
            ends = np.asarray(shape.start, dtype=float), np.asarray(shape.end, dtype=float)
            direction = ends[1] - ends[0]
            between = sorted((*ends, *(p for p in attached if self._is_between(p, *ends))), key=lambda p: p @ direction)
            names = list(dict.fromkeys(self._point(body, place) for place in between))
            self.rods += [tuple(names)] if len(names) > 1 else []
            return len(names) > 1
        if isinstance(shape, Box):
            x, y = 0.5 * np.asarray(shape.size, dtype=float)[:2]
            rotation = np.eye(3) if shape.rotation is None else np.asarray(shape.rotation, dtype=float)
            corners = [rotation @ (a * x, b * y, 0.0) + shape.offset for a, b in ((-1, -1), (1, -1), (1, 1), (-1, 1))]
            self.bodies.append(tuple(self._point(body, corner) for corner in corners))
            return True
        if isinstance(shape, (Cylinder, Disc, Sphere)):
            axis = "z" if isinstance(shape, Sphere) else shape.axis
            if axis == "z" or (not isinstance(axis, str) and np.allclose(axis[:2], 0.0)):
                center = self._point(body, np.asarray(shape.offset, dtype=float))
                self.wheels.append((center, float(shape.radius), self._angle(body)))
                return True
        return False

    def _is_between(self, place: np.ndarray, start: np.ndarray, end: np.ndarray) -> bool:
        along, size = end - start, float(np.linalg.norm(end - start))
        share = (place - start) @ along / max(size, 1e-300) ** 2
        return bool(0.0 < share < 1.0 and np.linalg.norm(start + share * along - place) < 1e-6 * size)

    def _attached(self, body: Body) -> list[np.ndarray]:
        found: list[np.ndarray] = []
        for part in (*self.model.joints, *self.model.forces):
            for frame in part.frames:
                place = np.asarray(frame.position, dtype=float)
                if frame.body.name == body.name and not any(np.allclose(place, other) for other in found):
                    found.append(place)
        return found

    def _point(self, body: Body, place: Any) -> str:
        """The name of a point of a body, or of the ground point to which a hinge connects it."""
        for moved, fixed in self.hinges:
            if moved.body.name == body.name and np.linalg.norm(moved.position - place) <= _SAME * self.layout.length:
                return self._point(fixed.body, fixed.position)
        x, y = float(place[0]) + 0.0, float(place[1]) + 0.0
        name = f"{body.name} ({x:.6g}, {y:.6g})"
        if name not in self.points:
            self.points[name] = (x, y) if body.is_ground else _place(self.layout, body.at(x, y))
        return name

    def _angle(self, body: Body) -> Callable[[Any], Any]:
        layout, frame = self.layout, body.at(0.0, 0.0)

        def angle(q):
            R = Motion(layout, q, None, placement(layout.tree, q), None).rotation(frame)
            return np.arctan2(R[1, 0], R[0, 0])

        return angle

    def _rail(self, joint: Any) -> list[tuple[float, float]] | None:
        """The line on the ground along which a joint slides."""
        fixed = next((frame for frame in joint.frames if frame.body.is_ground), None)
        if fixed is None or len(joint.shifts) != 1:
            return None
        axis, size = fixed.rotation[:, joint.shifts[0]], self.layout.length
        ends = [fixed.position + side * size * axis for side in (-1.0, 1.0)]
        return [(float(end[0]), float(end[1])) for end in ends]


def _place(layout: Layout, frame: Frame) -> Callable[[Any], Any]:
    def place(q):
        position = Motion(layout, q, None, placement(layout.tree, q), None).position(frame)
        return position[0], position[1]

    return place
