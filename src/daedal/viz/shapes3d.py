"""Shapes of bodies in body-fixed frames, converted to triangles for drawing."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

import daedal
from daedal.viz import tessellation
from daedal.viz.tessellation import Triangles, Vector, placement, rotation_matrices, rotation_to

ORIGIN = (0.0, 0.0, 0.0)
AXES = {"x": (1.0, 0.0, 0.0), "y": (0.0, 1.0, 0.0), "z": (0.0, 0.0, 1.0)}
SLIM = 0.012  # default radius of a rod, relative to the size of the scene
_AROUND = np.array([p for p in np.ndindex(3, 3, 3) if p != (1, 1, 1)]) - 1.0
_AROUND /= np.linalg.norm(_AROUND, axis=1)[:, None]  # 26 directions, for the extent of spheres
_ABOUT = np.array([(x, y, z) for x in (-1.0, 1.0) for y in (-1.0, 1.0) for z in (-1.0, 1.0)])


@dataclass(frozen=True, eq=False)
class Piece:
    """Triangles placed in a body-fixed frame by a matrix (3, 4); without `color`, the colour of the body is used."""

    triangles: Triangles
    matrix: np.ndarray
    color: str | None = None


@dataclass(frozen=True, eq=False)
class SolidShape:
    """Base class of shapes: `pieces` to draw, and `corners`, points (n, 3) whose convex hull contains the shape."""

    def pieces(self, size: float) -> list[Piece]:
        """Triangles for the scene size `size`."""
        raise NotImplementedError

    @property
    def corners(self) -> np.ndarray:
        raise NotImplementedError


@dataclass(frozen=True, eq=False)
class Box(SolidShape):
    """A cuboid with edges of lengths `size` about `offset`, rotated by `rotation` (3, 3).

    Examples
    --------
    >>> from daedal.viz import Box
    >>> Box((0.4, 0.1, 0.1), offset=(0.2, 0.0, 0.0)).corners.max(axis=0)
    array([0.4 , 0.05, 0.05])
    """

    size: Vector
    offset: Vector = ORIGIN
    rotation: Any = None

    def __post_init__(self):
        _check(self, "size", _vector(self, "size", self.size))
        _vector(self, "offset", self.offset)
        _rotation(self, self.rotation)

    def pieces(self, size: float) -> list[Piece]:
        return [Piece(tessellation.cube(), placement(self.offset, _rotation(self, self.rotation), self.size))]

    @property
    def corners(self) -> np.ndarray:
        return 0.5 * (_ABOUT * np.asarray(self.size)) @ _rotation(self, self.rotation).T + np.asarray(self.offset)


@dataclass(frozen=True, eq=False)
class Sphere(SolidShape):
    """A ball about `offset`.

    Examples
    --------
    >>> from daedal.viz import Sphere
    >>> Sphere(0.5).corners.max(axis=0).round(3)
    array([0.5, 0.5, 0.5])
    """

    radius: float
    offset: Vector = ORIGIN

    def __post_init__(self):
        _check(self, "radius", self.radius)
        _vector(self, "offset", self.offset)

    def pieces(self, size: float) -> list[Piece]:
        return [Piece(tessellation.sphere(), placement(self.offset, np.eye(3), 3 * [self.radius]))]

    @property
    def corners(self) -> np.ndarray:
        return self.radius * _AROUND + np.asarray(self.offset)


@dataclass(frozen=True, eq=False)
class Ellipsoid(SolidShape):
    """An ellipsoid with the semi-axes `radii` about `offset`, rotated by `rotation` (3, 3).

    Examples
    --------
    >>> from daedal.viz import Ellipsoid
    >>> Ellipsoid((0.3, 0.2, 0.1)).corners.max(axis=0).round(3)
    array([0.3, 0.2, 0.1])
    """

    radii: Vector
    offset: Vector = ORIGIN
    rotation: Any = None

    def __post_init__(self):
        _check(self, "radii", _vector(self, "radii", self.radii))
        _vector(self, "offset", self.offset)
        _rotation(self, self.rotation)

    def pieces(self, size: float) -> list[Piece]:
        return [Piece(tessellation.sphere(), placement(self.offset, _rotation(self, self.rotation), self.radii))]

    @property
    def corners(self) -> np.ndarray:
        return (_AROUND * np.asarray(self.radii)) @ _rotation(self, self.rotation).T + np.asarray(self.offset)


@dataclass(frozen=True, eq=False)
class Cylinder(SolidShape):
    """A cylinder about `offset`; `axis` is "x", "y", "z" or a vector.

    Examples
    --------
    >>> from daedal.viz import Cylinder
    >>> Cylinder(radius=0.1, length=0.5).corners.max(axis=0).round(3)
    array([0.1 , 0.1 , 0.25])
    """

    radius: float
    length: float
    axis: str | Vector = "z"
    offset: Vector = ORIGIN

    def __post_init__(self):
        _check(self, "radius", self.radius)
        _check(self, "length", self.length)
        _axis(self, self.axis)
        _vector(self, "offset", self.offset)

    def pieces(self, size: float) -> list[Piece]:
        scale = (self.radius, self.radius, self.length)
        return [Piece(tessellation.cylinder(), placement(self.offset, _along(self, self.axis), scale))]

    @property
    def corners(self) -> np.ndarray:
        half = np.array([self.radius, self.radius, 0.5 * self.length])
        return (_ABOUT * half) @ _along(self, self.axis).T + np.asarray(self.offset)


@dataclass(frozen=True, eq=False)
class Rod(SolidShape):
    """A link between two points of a body, with knuckles at its ends; by default the radius depends on the scene size.

    Examples
    --------
    >>> from daedal.viz import Rod
    >>> Rod((0.0, 0.0, 0.0), (1.0, 0.0, 0.0), radius=0.05).corners.max(axis=0).round(3)
    array([1., 0., 0.])
    """

    start: Vector
    end: Vector
    radius: float | None = None

    def __post_init__(self):
        start, end = _vector(self, "start", self.start), _vector(self, "end", self.end)
        if np.array_equal(start, end):
            raise daedal.InvalidProblemError(f"Rod: start and end are equal, {tuple(start.tolist())}")
        if self.radius is not None:
            _check(self, "radius", self.radius)

    def pieces(self, size: float) -> list[Piece]:
        radius = SLIM * size if self.radius is None else self.radius
        start, end = np.asarray(self.start, dtype=float), np.asarray(self.end, dtype=float)
        bar = (radius, radius, float(np.linalg.norm(end - start)))
        pieces = [Piece(tessellation.cylinder(), placement(0.5 * (start + end), _along(self, end - start), bar))]
        return [*pieces, knuckle(start, radius), knuckle(end, radius)]

    @property
    def corners(self) -> np.ndarray:
        return np.array([self.start, self.end], dtype=float)


@dataclass(frozen=True, eq=False)
class Disc(SolidShape):
    """A flywheel about `offset`: a rim, a thinner web, a hub, and bolts that make the rotation visible.

    Examples
    --------
    >>> from daedal.viz import Disc
    >>> Disc(radius=0.5, thickness=0.1).corners.max(axis=0).round(3)
    array([0.5 , 0.5 , 0.05])
    """

    radius: float
    thickness: float
    axis: str | Vector = "z"
    offset: Vector = ORIGIN

    def __post_init__(self):
        _check(self, "radius", self.radius)
        _check(self, "thickness", self.thickness)
        _axis(self, self.axis)
        _vector(self, "offset", self.offset)

    def pieces(self, size: float) -> list[Piece]:
        turned = _along(self, self.axis)
        return _wheel(tessellation.ring(0.82), 0.83, self.radius, self.thickness, turned, self.offset)

    @property
    def corners(self) -> np.ndarray:
        return Cylinder(self.radius, self.thickness, self.axis, self.offset).corners


@dataclass(frozen=True, eq=False)
class Gear(SolidShape):
    """A spur gear with the pitch radius `radius`.

    If the axis is z, the first tooth is centred at the angle `phase` from the x axis; for other axes, the gear is
    rotated from this position by the smallest angle.

    Examples
    --------
    >>> from daedal.viz import Gear
    >>> Gear(radius=0.5, teeth=20, thickness=0.1).corners.max(axis=0).round(3)
    array([0.55, 0.55, 0.05])
    """

    radius: float
    teeth: int
    thickness: float
    axis: str | Vector = "z"
    offset: Vector = ORIGIN
    phase: float = 0.0

    def __post_init__(self):
        _check(self, "radius", self.radius)
        _check(self, "thickness", self.thickness)
        _axis(self, self.axis)
        _vector(self, "offset", self.offset)
        if isinstance(self.teeth, bool) or not isinstance(self.teeth, (int, np.integer)) or self.teeth < 6:
            raise daedal.InvalidProblemError(f"Gear: teeth={self.teeth!r} must be an integer, 6 or more")

    def pieces(self, size: float) -> list[Piece]:
        inner = 0.92 * (1.0 - 2.5 / self.teeth)
        rim = tessellation.ring(inner, int(self.teeth), float(self.phase))
        return _wheel(rim, 1.01 * inner, self.radius, self.thickness, _along(self, self.axis), self.offset)

    @property
    def corners(self) -> np.ndarray:
        return Cylinder(self.radius * (1.0 + 2.0 / self.teeth), self.thickness, self.axis, self.offset).corners


@dataclass(frozen=True, eq=False)
class Plane(SolidShape):
    """A square with edges of length `size` about `offset`, such as a floor or wall; it does not extend the view.

    In a scene in space, the first fixed horizontal plane is the floor, which is drawn as an infinite grid.

    Examples
    --------
    >>> from daedal.viz import Plane
    >>> Plane(2.0, normal="y").normal
    'y'
    """

    size: float
    normal: str | Vector = "z"
    offset: Vector = ORIGIN

    def __post_init__(self):
        _check(self, "size", self.size)
        _axis(self, self.normal)
        _vector(self, "offset", self.offset)

    def pieces(self, size: float) -> list[Piece]:
        turned = _along(self, self.normal)
        thickness = 0.004 * size
        below = np.asarray(self.offset) - 0.5 * thickness * turned[:, 2]
        return [Piece(tessellation.cube(), placement(below, turned, (self.size, self.size, thickness)))]

    @property
    def corners(self) -> np.ndarray:
        return np.empty((0, 3))

    @property
    def direction(self) -> np.ndarray:
        """The unit normal."""
        return _along(self, self.normal)[:, 2]


@dataclass(frozen=True, eq=False)
class Mesh(SolidShape):
    """User-defined triangles: vertices (n, 3) and faces (m, 3), indices of vertices counterclockwise from outside.

    Faces are flat; with ``smooth=True``, faces that share a vertex have common normals there.

    Examples
    --------
    >>> from daedal.viz import Mesh
    >>> sail = Mesh([(0.0, 0.0, 0.0), (1.0, 0.0, 0.0), (0.0, 0.0, 2.0)], [(0, 1, 2)])
    >>> sail.corners.max(axis=0)
    array([1., 0., 2.])
    """

    vertices: Any
    faces: Any
    smooth: bool = False
    _arrays: tuple[np.ndarray, np.ndarray] = field(init=False, repr=False)

    def __post_init__(self):
        vertices = np.array(self.vertices, dtype=float)
        faces = np.array(self.faces)
        if vertices.ndim != 2 or vertices.shape[1] != 3 or not len(vertices) or not np.all(np.isfinite(vertices)):
            raise daedal.InvalidProblemError(
                f"Mesh: vertices must be finite numbers of shape (n, 3), got {vertices.shape}"
            )
        if faces.ndim != 2 or faces.shape[1] != 3 or faces.dtype.kind not in "iu":
            raise daedal.InvalidProblemError(
                f"Mesh: faces must be integers of shape (m, 3), got {faces.dtype} {faces.shape}"
            )
        if faces.size and (faces.min() < 0 or faces.max() >= len(vertices)):
            raise daedal.InvalidProblemError(
                f"Mesh: faces refer to vertices {faces.min()} to {faces.max()}, but the last is {len(vertices) - 1}"
            )
        object.__setattr__(self, "_arrays", (vertices, faces))

    @cached_property
    def _triangles(self) -> Triangles:
        return tessellation.surface(*self._arrays, bool(self.smooth))

    def pieces(self, size: float) -> list[Piece]:
        return [Piece(self._triangles, np.eye(3, 4))]

    @property
    def corners(self) -> np.ndarray:
        low, high = self._arrays[0].min(axis=0), self._arrays[0].max(axis=0)
        return np.where(_ABOUT > 0.0, high, low)


# --- placement and checks ---------------------------------------------------------------------------------------------


def knuckle(place: Vector, radius: float) -> Piece:
    """The ball at the end of a rod with the given radius."""
    return Piece(tessellation.sphere(), placement(place, np.eye(3), 3 * [1.45 * radius]))


def _wheel(rim: Triangles, web: float, radius: float, thickness: float, turned: np.ndarray, offset: Vector):
    """A rim, and inside it a web, a hub and five bolts."""

    def part(triangles, r, length, place=ORIGIN):
        centre = np.asarray(offset) + turned @ (radius * np.asarray(place))
        return Piece(triangles, placement(centre, turned, (r * radius, r * radius, length * thickness)))

    solid = tessellation.cylinder()
    turn = 2.0 * np.pi * np.arange(5) / 5
    bolts = [part(solid, 0.09, 0.9, (0.5 * web * np.cos(a), 0.5 * web * np.sin(a), 0.0)) for a in turn]
    return [part(rim, 1.0, 1.0), part(solid, web, 0.5), part(solid, 0.2, 1.2), *bolts]


def _check(shape: SolidShape, name: str, value: Any) -> None:
    try:
        numbers = np.asarray(value, dtype=float)
    except (TypeError, ValueError):
        numbers = np.array(np.nan)
    if not (np.all(np.isfinite(numbers)) and np.all(numbers > 0.0)) or (numbers.ndim and np.ndim(value) != 1):
        raise daedal.InvalidProblemError(f"{type(shape).__name__}: {name}={value!r} must be positive")


def _vector(shape: SolidShape, name: str, value: Any) -> np.ndarray:
    try:
        vector = np.asarray(value, dtype=float)
    except (TypeError, ValueError):
        vector = np.empty(0)
    if vector.shape != (3,) or not np.all(np.isfinite(vector)):
        raise daedal.InvalidProblemError(f"{type(shape).__name__}: {name}={value!r} must be three finite numbers")
    return vector


def _axis(shape: SolidShape, value: Any) -> np.ndarray:
    if isinstance(value, str):
        if value not in AXES:
            raise daedal.InvalidProblemError(
                f"{type(shape).__name__}: axis={value!r} must be 'x', 'y', 'z' or a vector"
            )
        return np.array(AXES[value])
    axis = _vector(shape, "axis", value)
    if not np.any(axis):
        raise daedal.InvalidProblemError(f"{type(shape).__name__}: axis={value!r} must not be the zero vector")
    return axis


def _along(shape: SolidShape, axis: Any) -> np.ndarray:
    return rotation_to(_axis(shape, axis))


def _rotation(shape: SolidShape, value: Any) -> np.ndarray:
    return np.eye(3) if value is None else rotation_matrices(value, type(shape).__name__)
