"""Triangles of basic solids, of unit size and computed once."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import pairwise
from typing import Any

import numpy as np

import daedal

Vector = Sequence[float] | np.ndarray


def placement(offset: Vector, rotation: np.ndarray, scale: Vector) -> np.ndarray:
    """Matrix (3, 4) that scales, then rotates, then translates."""
    return np.column_stack([rotation * np.asarray(scale, dtype=float), np.asarray(offset, dtype=float)])


def rotation_to(direction: np.ndarray) -> np.ndarray:
    """Rotation by the smallest angle that maps z to a direction (3,)."""
    z = direction / np.linalg.norm(direction)
    if z[2] < -1.0 + 1e-12:
        return np.diag([1.0, -1.0, -1.0])
    cross = np.array([[0.0, 0.0, z[0]], [0.0, 0.0, z[1]], [-z[0], -z[1], 0.0]])
    return np.eye(3) + cross + cross @ cross / (1.0 + z[2])  # Rodrigues' formula


def rotation_matrices(value: Any, owner: str, tolerance: float = 1e-6) -> np.ndarray:
    """Validate rotation matrices (..., 3, 3)."""
    try:
        matrices = np.asarray(value, dtype=float)
    except (TypeError, ValueError):
        matrices = np.empty(0)
    if matrices.shape[-2:] != (3, 3):
        raise daedal.InvalidProblemError(f"{owner}: rotation must be a matrix (3, 3), got {np.shape(value)}")
    gap = np.abs(np.swapaxes(matrices, -1, -2) @ matrices - np.eye(3)).max(axis=(-1, -2))
    proper = (gap <= tolerance) & (np.linalg.det(matrices) > 0.0)
    if not np.all(proper):
        k = int(np.argmin(np.atleast_1d(proper)))
        at = f" number {k}" if matrices.ndim > 2 else ""
        why = "its determinant is -1" if np.atleast_1d(gap)[k] <= tolerance else "its columns are not orthonormal"
        raise daedal.InvalidProblemError(f"{owner}: rotation{at} is not a rotation matrix; {why}")
    return matrices


# --- solids -----------------------------------------------------------------------------------------------------------

ROUND = 40  # number of vertices of a circle


@dataclass(frozen=True, eq=False)
class Triangles:
    """A surface: vertices (n, 3) and faces (m, 3), counterclockwise seen from outside.

    Faces that share a vertex have common normals there; sides of a visible edge have separate vertices. The inner side
    of a `closed` surface is not drawn.
    """

    vertices: np.ndarray
    faces: np.ndarray
    closed: bool = True

    @cached_property
    def normals(self) -> np.ndarray:
        """Unit normals at the vertices: area-weighted means of the face normals."""
        a, b, c = (self.vertices[self.faces[:, k]] for k in range(3))
        areas = np.cross(b - a, c - a)
        sums = np.zeros_like(self.vertices)
        for k in range(3):
            np.add.at(sums, self.faces[:, k], areas)
        return sums / np.maximum(np.linalg.norm(sums, axis=1), 1e-300)[:, None]


def _joined(parts: list[Triangles]) -> Triangles:
    starts = np.cumsum([0, *(len(part.vertices) for part in parts)])
    return Triangles(
        np.concatenate([part.vertices for part in parts]),
        np.concatenate([part.faces + start for part, start in zip(parts, starts)]),
    )


def _strip(first: np.ndarray, second: np.ndarray, sharp: bool = False) -> Triangles:
    """The band between two closed lines with equal numbers of points; if `sharp`, quadrangles share no vertices."""
    n = len(first)
    if sharp:
        corners = np.stack([first, np.roll(first, -1, 0), np.roll(second, -1, 0), second], axis=1).reshape(-1, 3)
        start = 4 * np.arange(n)[:, None]
        return Triangles(corners, np.concatenate([start + [0, 1, 2], start + [0, 2, 3]]))
    i = np.arange(n)
    j = np.roll(i, -1)
    faces = np.concatenate([np.stack([i, j, n + j], axis=1), np.stack([i, n + j, n + i], axis=1)])
    return Triangles(np.concatenate([first, second]), faces)


def _circle(radius: float, z: float, corners: int = ROUND) -> np.ndarray:
    angle = 2.0 * np.pi * np.arange(corners) / corners
    return np.stack([radius * np.cos(angle), radius * np.sin(angle), np.full(corners, z)], axis=1)


@cache
def cube() -> Triangles:
    """A cube with edges of length 1 about the origin."""
    sides = []
    for axis in range(3):
        for side in (-1.0, 1.0):
            u, v, w = np.roll(np.eye(3), -axis, axis=0) * [[side], [1.0], [1.0]]
            sides.append(0.5 * np.array([u - side * v - w, u + side * v - w, u + side * v + w, u - side * v + w]))
    start = 4 * np.arange(6)[:, None]
    return Triangles(np.concatenate(sides), np.concatenate([start + [0, 1, 2], start + [0, 2, 3]]))


@cache
def cylinder(corners: int = ROUND) -> Triangles:
    """A cylinder of radius 1 and length 1 along z, about the origin."""
    bottom, top = _circle(1.0, -0.5, corners), _circle(1.0, 0.5, corners)
    axis = np.zeros((corners, 3))
    lid, floor = _strip(top, axis + [0.0, 0.0, 0.5]), _strip(axis - [0.0, 0.0, 0.5], bottom)
    return _joined([_strip(bottom, top), lid, floor])


@cache
def cone() -> Triangles:
    """A cone of radius 1 at z = 0, with its tip at z = 1."""
    bottom = _circle(1.0, 0.0, 24)
    tip = np.tile([0.0, 0.0, 1.0], (24, 1))
    return _joined([_strip(bottom, tip), _strip(0.0 * bottom, bottom)])


@cache
def sphere(rows: int = 13, columns: int = 24) -> Triangles:
    """A sphere of radius 1 about the origin."""
    polar = np.pi * np.arange(rows) / (rows - 1)
    circles = [_circle(np.sin(p), np.cos(p), columns) for p in polar]
    vertices = np.concatenate(circles)
    bands = [_strip(lower, upper).faces for upper, lower in pairwise(circles)]
    faces = []
    for row, band in enumerate(bands):  # of two consecutive bands, the first one is lower
        faces.append(np.where(band < columns, band + (row + 1) * columns, band - columns + row * columns))
    return Triangles(vertices, np.concatenate(faces))


@cache
def ring(inner: float, teeth: int = 0, phase: float = 0.0) -> Triangles:
    """A ring of length 1 along z between the radii `inner` and 1, or a gear with pitch radius 1 and `teeth` teeth.

    The teeth have the addendum m and the dedendum 1.25 m for the module m = 2/teeth, and straight flanks at 20 degrees
    to the radius, like a rack. The centre of the first tooth is at the angle `phase`.
    """
    if not teeth:
        angle, radius = 2.0 * np.pi * np.arange(ROUND) / ROUND, np.ones(ROUND)
    else:
        m = 2.0 / teeth
        tip, root = 1.0 + m, 1.0 - 1.25 * m
        flank = np.tan(np.radians(20.0))
        half_tip, half_root = m * (0.25 * np.pi - flank) / tip, m * (0.25 * np.pi + 1.25 * flank) / root
        one = np.array([-half_root, -half_tip, half_tip, half_root])
        angle = (2.0 * np.pi * np.arange(teeth)[:, None] / teeth + one).ravel() + phase
        radius = np.tile([root, tip, tip, root], teeth)
    around = np.stack([np.cos(angle), np.sin(angle)], axis=1)

    def line(r, z):
        return np.column_stack([around * np.broadcast_to(r, angle.shape)[:, None], np.full(angle.size, z)])

    low, high = -0.5, 0.5
    return _joined(
        [
            _strip(line(radius, low), line(radius, high), sharp=teeth > 0),
            _strip(line(inner, high), line(inner, low)),
            _strip(line(radius, high), line(inner, high)),
            _strip(line(inner, low), line(radius, low)),
        ]
    )


@cache
def coil(turns: int, slenderness: float) -> Triangles:
    """A helix of radius 1 from z = 0 to z = 1 with straight ends on the axis, for springs.

    The wire is round if the spring is `slenderness` times as long as its radius.
    """
    wire, sides, per_turn = 0.13, 6, 16
    count = turns * per_turn + 1
    turn = np.linspace(0.0, 2.0 * np.pi * turns, count)
    height = np.linspace(0.12, 0.88, count) * slenderness
    centre = np.stack([np.cos(turn), np.sin(turn), height], axis=1)
    ends = np.array([[0.0, 0.0, 0.0], [0.0, 0.0, 0.1 * slenderness]])
    centre = np.concatenate([ends, centre, [0.0, 0.0, slenderness] - ends[::-1]])
    along = np.gradient(centre, axis=0)
    along /= np.linalg.norm(along, axis=1)[:, None]
    outward = np.column_stack([centre[:, :2], np.zeros(len(centre))])
    outward[:2], outward[-2:] = outward[2], outward[-3]
    second = np.cross(along, outward)
    second /= np.linalg.norm(second, axis=1)[:, None]
    first = np.cross(second, along)
    angle = 2.0 * np.pi * np.arange(sides) / sides
    tube = centre[:, None] + wire * (np.cos(angle)[:, None] * first[:, None] + np.sin(angle)[:, None] * second[:, None])
    bands = [_strip(tube[0], tube[1]).faces + sides * k for k in range(len(centre) - 1)]
    return Triangles(tube.reshape(-1, 3) / [1.0, 1.0, slenderness], np.concatenate(bands))


def coarser(triangles: Triangles) -> Triangles:
    """A coarser sphere or cylinder, for scenes with many parts; other surfaces are unchanged."""
    return {sphere(): sphere(7, 10), cylinder(): cylinder(12)}.get(triangles, triangles)


def surface(vertices: np.ndarray, faces: np.ndarray, smooth: bool) -> Triangles:
    """A user-defined surface; unless it is smooth, each face has separate vertices."""
    if smooth:
        return Triangles(vertices, faces, False)
    return Triangles(vertices[faces].reshape(-1, 3), np.arange(faces.size).reshape(-1, 3), False)
