"""Contents of a scene in space: parts, springs, lines, traces, arrows and plots, at the times of the scene."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

import daedal
from daedal.viz.shapes3d import SolidShape
from daedal.viz.tessellation import rotation_matrices

_SAMPLES = 60  # largest number of times at which the bounds of a part are computed


@dataclass(frozen=True, eq=False, repr=False)
class Member:
    """Base class; time-dependent arrays have time as the last axis, of length 1 for constants."""

    kind: ClassVar[str] = ""
    follow: ClassVar[tuple[str, ...]] = ()  # names of the time-dependent arrays

    name: str

    @property
    def owner(self) -> str:
        """Kind and name, for messages."""
        return f"{self.kind} {self.name!r}"

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"

    def counts(self) -> dict[str, int]:
        """Number of times of each time-dependent array."""
        return {name: getattr(self, name).shape[-1] for name in self.follow}

    def resampled(self, old: np.ndarray, new: np.ndarray) -> Self:
        """Interpolate linearly to other times."""
        moved: dict[str, Any] = {name: _between(getattr(self, name), old, new) for name in self.follow}
        return replace(self, **moved)

    def cloud(self) -> np.ndarray:
        """Points (3, n) whose convex hull contains the member at all times."""
        return np.concatenate([np.moveaxis(getattr(self, name), -2, 0).reshape(3, -1) for name in self.follow], axis=1)

    def stays_level(self, axis: int, tolerance: float) -> bool:
        """Whether the motion is perpendicular to an axis."""
        return all(np.all(np.ptp(getattr(self, name)[..., axis, :], axis=-1) <= tolerance) for name in self.follow)


@dataclass(frozen=True, eq=False, repr=False)
class Part(Member):
    """A rigid body: shapes in its frame, and the motion of that frame.

    Parameters
    ----------
    name : str
        Unique name of the part.
    shapes : sequence of shapes
        Shapes of :mod:`daedal.viz`: Box, Cylinder, Sphere, Ellipsoid, Rod, Disc, Gear, Mesh, Plane.
    position : array (3, nt) or (3,)
        Origin of the frame; three numbers if fixed.
    rotation : array (nt, 3, 3) or (3, 3), optional
        Rotation matrices from body to world coordinates.
    color : str, optional
        Any Matplotlib colour; by default the next one of the palette, or grey for fixed parts.
    frame : bool
        Whether to draw the axes of the frame.

    Examples
    --------
    >>> import numpy as np
    >>> from daedal.viz import Part, Sphere
    >>> t = np.linspace(0.0, 1.0, 61)
    >>> ball = Part("ball", [Sphere(0.1)], np.array([t, 0.0 * t, 1.0 - t**2]))
    >>> ball.moves
    True
    """

    kind: ClassVar[str] = "part"
    follow: ClassVar[tuple[str, ...]] = ("position",)

    shapes: Sequence[SolidShape] = ()
    position: Any = (0.0, 0.0, 0.0)
    rotation: Any = None
    color: str | None = None
    frame: bool = False

    def __post_init__(self):
        shapes = (self.shapes,) if isinstance(self.shapes, SolidShape) else tuple(self.shapes)
        for shape in shapes:
            if not isinstance(shape, SolidShape):
                raise daedal.InvalidProblemError(f"{self.owner}: {shape!r} is not a shape such as daedal.viz.Box")
        rotation = rotation_matrices(np.eye(3) if self.rotation is None else self.rotation, self.owner)
        if rotation.ndim not in (2, 3):
            raise daedal.InvalidProblemError(
                f"{self.owner}: rotation has shape {rotation.shape}, not (nt, 3, 3) or (3, 3)"
            )
        position = _points(self.position, self.owner, "position")
        _set(self, shapes=shapes, position=position, rotation=rotation.reshape(-1, 3, 3))
        _set(self, color=_color(self.color, self.owner))

    def counts(self) -> dict[str, int]:
        return {**super().counts(), "rotation": len(self.rotation)}

    @property
    def moves(self) -> bool:
        """Whether position or rotation changes."""
        return bool(np.any(np.ptp(self.position, axis=1)) or np.any(np.ptp(self.rotation, axis=0)))

    def resampled(self, old: np.ndarray, new: np.ndarray) -> Self:
        rotation = self.rotation
        if len(rotation) > 1:
            from scipy.spatial.transform import Rotation, Slerp

            rotation = Slerp(old, Rotation.from_matrix(rotation))(np.clip(new, old[0], old[-1])).as_matrix()
        return replace(self, position=_between(self.position, old, new), rotation=rotation)

    def cloud(self) -> np.ndarray:
        corners = np.concatenate([np.zeros((0 if self.shapes else 1, 3)), *(shape.corners for shape in self.shapes)])
        count = max(self.position.shape[1], len(self.rotation))
        some = np.unique(np.linspace(0, count - 1, _SAMPLES).astype(int))
        position = np.broadcast_to(self.position, (3, count))[:, some]
        rotation = np.broadcast_to(self.rotation, (count, 3, 3))[some]
        return (np.einsum("tij,cj->itc", rotation, corners) + position[:, :, None]).reshape(3, -1)

    def stays_level(self, axis: int, tolerance: float) -> bool:
        turns = np.ptp(self.rotation[:, axis, :], axis=0).max()
        return bool(turns <= 1e-9) and super().stays_level(axis, tolerance)


@dataclass(frozen=True, eq=False, repr=False)
class RodLine(Member):
    """A rod that is not a body, between two moving points, `start` and `end` (3, nt) or (3,).

    Examples
    --------
    >>> import numpy as np
    >>> from daedal.viz import RodLine, Scene
    >>> t = np.linspace(0.0, 1.0, 5)
    >>> end = np.array([np.cos(t), np.sin(t), 0.0 * t])
    >>> scene = Scene(t, [RodLine("rod", (0.0, 0.0, 0.0), end)])
    >>> scene.t.size
    5
    """

    kind: ClassVar[str] = "rod"
    follow: ClassVar[tuple[str, ...]] = ("start", "end")

    start: Any
    end: Any
    radius: float | None = None
    color: str | None = None

    def __post_init__(self):
        _check_radius(self)
        _set(self, start=_points(self.start, self.owner, "start"), end=_points(self.end, self.owner, "end"))
        _set(self, color=_color(self.color, self.owner))


@dataclass(frozen=True, eq=False, repr=False)
class SpringLine(Member):
    """A coil spring between two moving points, `start` and `end` (3, nt) or (3,).

    By default the radius depends on the scene size, and the number of coils on the mean length.

    Examples
    --------
    >>> import numpy as np
    >>> from daedal.viz import SpringLine
    >>> t = np.linspace(0.0, 1.0, 61)
    >>> SpringLine("spring", (0.0, 0.0, 0.0), np.array([1.0 + 0.2 * np.sin(9.0 * t), 0.0 * t, 0.0 * t]), coils=9)
    SpringLine('spring')
    """

    kind: ClassVar[str] = "spring"
    follow: ClassVar[tuple[str, ...]] = ("start", "end")

    start: Any
    end: Any
    radius: float | None = None
    coils: int | None = None
    color: str | None = None

    def __post_init__(self):
        _check_radius(self)
        whole = isinstance(self.coils, (int, np.integer)) and not isinstance(self.coils, bool)
        if self.coils is not None and not (whole and self.coils >= 1):
            raise daedal.InvalidProblemError(f"{self.owner}: coils={self.coils!r} must be a positive integer")
        _set(self, start=_points(self.start, self.owner, "start"), end=_points(self.end, self.owner, "end"))
        _set(self, color=_color(self.color, self.owner))


@dataclass(frozen=True, eq=False, repr=False)
class Line(Member):
    """A line through moving points, `points` (n, 3, nt) or (n, 3): a cable, a belt, a beam.

    Examples
    --------
    >>> from daedal.viz import Line
    >>> Line("belt", [(0.0, 0.0, 0.0), (1.0, 0.0, 0.0), (1.0, 0.0, 1.0)], closed=True)
    Line('belt')
    """

    kind: ClassVar[str] = "line"
    follow: ClassVar[tuple[str, ...]] = ("points",)

    points: Any
    closed: bool = False
    color: str | None = None

    def __post_init__(self):
        points = _finite(self.points, self.owner, "points")
        if points.ndim not in (2, 3) or points.shape[0] < 2 or points.shape[1] != 3:
            raise daedal.InvalidProblemError(
                f"{self.owner}: points has shape {points.shape}, not (n, 3, nt) or (n, 3) with n of at least 2"
            )
        _set(self, points=points.reshape(*points.shape[:2], -1), color=_color(self.color, self.owner))


@dataclass(frozen=True, eq=False, repr=False)
class Trace(Member):
    """The path of a point (3, nt), drawn up to the current time.

    Examples
    --------
    >>> import numpy as np
    >>> from daedal.viz import Part, Scene, Sphere, Trace
    >>> t = np.linspace(0.0, 1.0, 5)
    >>> path = np.array([np.cos(t), np.sin(t), 0.0 * t])
    >>> scene = Scene(t, [Part("ball", Sphere(0.1), path)], traces=[Trace("path", path)])
    >>> scene.t.size
    5
    """

    kind: ClassVar[str] = "trace"
    follow: ClassVar[tuple[str, ...]] = ("points",)

    points: Any
    color: str | None = None

    def __post_init__(self):
        _set(self, points=_points(self.points, self.owner, "points"), color=_color(self.color, self.owner))


@dataclass(frozen=True, eq=False, repr=False)
class Arrow(Member):
    """A vector (3, nt) at a moving point: a force, a torque, a velocity.

    Arrows with equal `unit` share a scale: the length of the longest is about a quarter of the scene size.

    Examples
    --------
    >>> from daedal.viz import Arrow
    >>> Arrow("weight", origin=(0.0, 0.0, 1.0), vector=(0.0, 0.0, -9.81), unit="N")
    Arrow('weight')
    """

    kind: ClassVar[str] = "arrow"
    follow: ClassVar[tuple[str, ...]] = ("origin", "vector")

    origin: Any
    vector: Any
    unit: str = "N"
    color: str | None = None

    def __post_init__(self):
        _set(self, origin=_points(self.origin, self.owner, "origin"))
        _set(self, vector=_points(self.vector, self.owner, "vector"), color=_color(self.color, self.owner))


@dataclass(frozen=True, eq=False, repr=False)
class Plot:
    """Curves over time next to the picture: `series` maps labels to values (nt,).

    Examples
    --------
    >>> import numpy as np
    >>> from daedal.viz import Plot
    >>> t = np.linspace(0.0, 1.0, 61)
    >>> Plot("Position", {"x": np.cos(t), "y": np.sin(t)}, ylabel="m")
    Plot('Position')
    """

    title: str
    series: Mapping[str, Any]
    ylabel: str = ""

    def __post_init__(self):
        if not isinstance(self.series, Mapping) or not self.series:
            raise daedal.InvalidProblemError(f"{self.owner}: series must be a dict of values (nt,) by label")
        series = {str(label): np.array(values, dtype=float) for label, values in self.series.items()}
        for label, values in series.items():
            if values.ndim != 1:
                raise daedal.InvalidProblemError(f"{self.owner}: {label!r} has shape {values.shape}, not (nt,)")
        _set(self, series=series)

    def __repr__(self) -> str:
        return f"Plot({self.title!r})"

    @property
    def owner(self) -> str:
        return f"plot {self.title!r}"

    def counts(self) -> dict[str, int]:
        """Number of times of each curve, by label."""
        return {repr(label): values.size for label, values in self.series.items()}

    def resampled(self, old: np.ndarray, new: np.ndarray) -> Self:
        """Interpolate linearly to other times."""
        return replace(self, series={label: _between(values, old, new) for label, values in self.series.items()})


def _between(array: np.ndarray, old: np.ndarray, new: np.ndarray) -> np.ndarray:
    """Interpolate linearly along the last axis; arrays of length 1 are unchanged."""
    if array.shape[-1] == 1:
        return array
    rows = array.reshape(-1, old.size)
    return np.array([np.interp(new, old, row) for row in rows]).reshape(*array.shape[:-1], new.size)


# --- checks -----------------------------------------------------------------------------------------------------------


def _set(member: Any, **values: Any) -> None:
    """Set attributes of a frozen dataclass during initialisation."""
    for name, value in values.items():
        object.__setattr__(member, name, value)


def _check_radius(member: Any) -> None:
    radius = member.radius
    if radius is not None and not (isinstance(radius, (int, float)) and 0.0 < radius < np.inf):
        raise daedal.InvalidProblemError(f"{member.owner}: radius={radius!r} must be a positive number")


def _finite(value: Any, owner: str, name: str) -> np.ndarray:
    try:
        array = np.array(value, dtype=float)
    except (TypeError, ValueError):
        raise daedal.InvalidProblemError(f"{owner}: {name} must be an array of numbers, got {value!r}") from None
    if not np.all(np.isfinite(array)):
        raise daedal.InvalidProblemError(f"{owner}: {name} is not finite everywhere")
    return array


def _points(value: Any, owner: str, name: str) -> np.ndarray:
    """Positions (3, nt); (3, 1) for a fixed point."""
    array = _finite(value, owner, name)
    if array.shape == (3,):
        return array[:, None]
    if array.ndim != 2 or array.shape[0] != 3:
        hint = "; transpose it" if array.ndim == 2 and array.shape[1] == 3 else ""
        raise daedal.InvalidProblemError(f"{owner}: {name} has shape {array.shape}, not (3, nt) or (3,){hint}")
    return array


def _color(value: str | None, owner: str) -> str | None:
    if value is None:
        return None
    from matplotlib.colors import to_hex

    try:
        return to_hex(value)
    except ValueError:
        raise daedal.InvalidProblemError(f"{owner}: color={value!r} is not a Matplotlib colour") from None
