"""Planar machines as drawings in the plane: points as functions of the coordinates, which can be traced."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from daedal.multibody.body import Body, Frame
from daedal.multibody.forces import Spring
from daedal.multibody.kinematics import placement
from daedal.multibody.layout import Layout
from daedal.multibody.motion import Motion
from daedal.viz import Box, Cylinder, Disc, Drawing, Rod, Sphere

_SAME = 1e-9  # distance below which points coincide, relative to the size of the machine


def planar_drawing(model: Any, layout: Layout) -> Drawing | None:
    """The drawing of a planar machine; None for one in space.

    Examples
    --------
    >>> from daedal.multibody import Body, Model, Revolute, ground
    >>> from daedal.multibody.planar_drawing import planar_drawing
    >>> rod = Body.rod("rod", length=2.0, mass=1.0)
    >>> model = Model(Revolute("pivot", ground, rod.start), planar=True)
    >>> planar_drawing(model, model.layout()).rods
    [('ground (0, 0)', 'rod (1, 0)')]
    """
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
        """Draw a shape; False if it has no counterpart in the plane."""
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
