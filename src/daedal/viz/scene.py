"""A motion in space as plain data: parts with shapes, traces, arrows and plots; and its views."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import daedal
from daedal.common.tabular import plural
from daedal.viz.scene_parts import Arrow, Line, Part, Plot, RodLine, SpringLine, Trace
from daedal.viz.shapes3d import Plane

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_KINDS: dict[str, tuple[type, ...]] = {
    "parts": (Part, RodLine, SpringLine, Line),
    "traces": (Trace,),
    "arrows": (Arrow,),
    "plots": (Plot,),
}


@dataclass(frozen=True, eq=False, repr=False)
class Scene:
    """A motion in space that can be exported as a page, stills or a GIF.

    Parameters
    ----------
    t : array (nt,)
        Increasing times. A single time gives a still picture.
    parts : sequence of Part, RodLine, SpringLine and Line
        Bodies, rods, springs and lines.
    traces : sequence of Trace
        Paths of points.
    arrows : sequence of Arrow
        Vectors such as forces.
    plots : sequence of Plot
        Curves next to the picture.
    title : str
        Heading of the page.
    up : {"z", "y"}
        The axis that points upwards.

    Examples
    --------
    >>> import numpy as np
    >>> from daedal.viz import Part, Rod, Scene, Sphere, Trace
    >>> t = np.linspace(0.0, 6.0, 361)
    >>> angle = 0.7 * np.cos(3.13 * t)
    >>> bob = np.array([np.sin(angle), 0.0 * t, -np.cos(angle)])
    >>> c, s, o = np.cos(angle), np.sin(angle), 0.0 * t
    >>> turned = np.array([[c, o, -s], [o, o + 1.0, o], [s, o, c]]).transpose(2, 0, 1)
    >>> pendulum = Part("pendulum", [Rod((0, 0, 0), (0, 0, -1)), Sphere(0.1, (0, 0, -1))], (0, 0, 0), turned)
    >>> scene = Scene(t, [pendulum], traces=[Trace("bob", bob)], title="Pendulum")
    >>> scene.save("pendulum.html").name
    'pendulum.html'
    """

    t: Any
    parts: Sequence[Part | RodLine | SpringLine | Line]
    traces: Sequence[Trace] = ()
    arrows: Sequence[Arrow] = ()
    plots: Sequence[Plot] = ()
    title: str = ""
    up: str = "z"

    def __post_init__(self):
        t = np.array(self.t, dtype=float)
        if t.ndim != 1 or not t.size or not np.all(np.isfinite(t)):
            raise daedal.InvalidProblemError(f"t must be finite times of shape (nt,), got shape {t.shape}")
        if np.any(np.diff(t) <= 0.0):
            k = int(np.argmax(np.diff(t) <= 0.0))
            raise daedal.InvalidProblemError(
                f"t must be increasing, but t[{k}] = {t[k]:g} and t[{k + 1}] = {t[k + 1]:g}"
            )
        if self.up not in ("y", "z"):
            raise daedal.InvalidProblemError(f"up={self.up!r} must be 'y' or 'z'")
        object.__setattr__(self, "t", t)
        for name, classes in _KINDS.items():
            object.__setattr__(self, name, tuple(getattr(self, name)))
            self._check(name, classes)
        if not self.parts:
            raise daedal.InvalidProblemError("parts is empty; there is nothing to show")

    def _check(self, kind: str, classes: tuple[type, ...]) -> None:
        members: tuple[Any, ...] = getattr(self, kind)
        wrong = next((member for member in members if not isinstance(member, classes)), None)
        if wrong is not None:
            wanted = " or ".join(one.__name__ for one in classes)
            raise daedal.InvalidProblemError(f"{kind}: {wrong!r} is not a {wanted}")
        for member in members:
            for name, count in member.counts().items():
                if count not in (1, self.t.size):
                    raise daedal.InvalidProblemError(
                        f"{member.owner}: {name} is given at {count} times, but t of the scene has {self.t.size}"
                    )
        owners = Counter(member.owner for member in members)
        for owner, count in owners.items():
            if count > 1:
                raise daedal.InvalidProblemError(f"{kind}: {owner} occurs {count} times; names must be distinct")

    def __repr__(self) -> str:
        parts, t = plural(len(self.parts), "part"), self.t
        return f"Scene({self.title!r}, {parts}, t = {t[0]:g} to {t[-1]:g} at {t.size} times)"

    # --- content ------------------------------------------------------------------------------------------------------

    @cached_property
    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """Smallest and largest x, y, z of parts and traces over all times."""
        points = np.concatenate([member.cloud() for member in (*self.parts, *self.traces)], axis=1)
        return (points.min(axis=1), points.max(axis=1)) if points.size else (np.zeros(3), np.zeros(3))

    @property
    def size(self) -> float:
        """Longest edge of the bounds; 1 if the bounds are a single point."""
        low, high = self.bounds
        return float(np.max(high - low)) or 1.0

    @cached_property
    def plane(self) -> str | None:
        """The axis ("x", "y" or "z") along which nothing moves, preferably of the front view; None if there is none."""
        if self.t.size < 2:
            return None
        tolerance = 1e-9 * self.size
        for k in (2, 1, 0) if self.up == "y" else (1, 2, 0):
            if all(member.stays_level(k, tolerance) for member in (*self.parts, *self.traces)):
                return "xyz"[k]
        return None

    def resampled(self, t: np.ndarray) -> Scene:
        """Interpolate to other times: positions linearly, rotations about fixed axes."""
        if np.array_equal(t, self.t):
            return self
        others: dict[str, Any] = {
            name: tuple(one.resampled(self.t, t) for one in getattr(self, name)) for name in _KINDS
        }
        return replace(self, t=t, **others)

    # --- pages and pictures -------------------------------------------------------------------------------------------

    def html(self, *, seconds: float | None = None) -> str:
        """Create a self-contained page; `seconds` is the duration at normal speed."""
        from daedal.viz.scene_page import scene_page

        return scene_page(self, seconds)

    def save(self, path: str | Path, *, seconds: float | None = None) -> Path:
        """Write the page to a file."""
        path = Path(path)
        if path.suffix.lower() != ".html":
            raise daedal.InvalidProblemError(
                f"path={str(path)!r} must end in .html; use scene.gif and scene.still for other formats"
            )
        page = self.html(seconds=seconds)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(page, encoding="utf-8")
        return path

    def _repr_html_(self) -> str:
        from daedal.viz.scene_page import scene_frame

        return scene_frame(self)

    def still(self, t: float, path: str | Path | None = None, **options: Any) -> Figure:
        """Draw the scene at one time, for print; options as for :meth:`stills`."""
        return self.stills([t], path, **options)

    def stills(self, times: Any, path: str | Path | None = None, **options: Any) -> Figure:
        """Draw the scene at several times, side by side in one figure.

        Parameters
        ----------
        times : sequence of float
            Times of the pictures.
        path : path, optional
            File to write, in any format of Matplotlib.
        view : str or (float, float), optional
            "front", "side", "top", "space", or azimuth and elevation of the viewer in degrees.
        columns : int, optional
            Number of pictures per row.
        labels : bool
            Whether to label the parts.
        arrows : bool
            Whether to draw arrows.

        Returns
        -------
        matplotlib.figure.Figure
        """
        from daedal.viz.scene_still import stills

        return stills(self, times, path, **options)

    def gif(self, path: str | Path, *, seconds: float | None = None, frames: int | None = None) -> Path:
        """Write the motion to a GIF; by default with a frame for each time of the scene, at most 80."""
        from daedal.viz.scene_still import write_gif

        return write_gif(self, Path(path), seconds, frames)


# --- views and backdrop, common to pages and stills -------------------------------------------------------------------

# Directions from the scene to the viewer, by upward axis
EYES = {
    "z": {"space": (0.55, -0.78, 0.42), "front": (0.0, -1.0, 0.0), "side": (1.0, 0.0, 0.0), "top": (0.0, 0.0, 1.0)},
    "y": {"space": (0.55, 0.42, 0.78), "front": (0.0, 0.0, 1.0), "side": (1.0, 0.0, 0.0), "top": (0.0, 1.0, 0.0)},
}
_GAP = 0.03  # gap between the scene and the floor, as a fraction of the scene size
_LINES = 8.0  # approximate number of grid lines along the scene


@dataclass(frozen=True, eq=False)
class Backdrop:
    """A grid below the scene, or behind the scene in frontal views: a point, the normal, and the grid spacing."""

    point: np.ndarray
    normal: np.ndarray
    spacing: float


def first_view(scene: Scene) -> str:
    """The default view: frontal for planar motion, otherwise "space"."""
    if scene.plane is None:
        return "space"
    axis = "xyz".index(scene.plane)
    return next(name for name, eye in EYES[scene.up].items() if name != "space" and eye[axis])


def eye_direction(scene: Scene, view: Any = None) -> np.ndarray:
    """Unit vector towards the viewer for a named view, or for azimuth and elevation in degrees."""
    eyes = EYES[scene.up]
    if view is None:
        view = first_view(scene)
    if isinstance(view, str):
        if view not in eyes:
            raise daedal.InvalidProblemError(f"view={view!r} is not known; choose one of {', '.join(eyes)}")
        eye = np.array(eyes[view])
        return eye / np.linalg.norm(eye)
    try:
        azimuth, elevation = (math.radians(float(angle)) for angle in view)
    except (TypeError, ValueError):
        raise daedal.InvalidProblemError(
            f"view={view!r} must be a name such as 'front', or azimuth and elevation in degrees"
        ) from None
    along, across, upwards = math.cos(azimuth), math.sin(azimuth), math.sin(elevation)
    level = math.cos(elevation)
    return np.array(
        [level * along, level * across, upwards] if scene.up == "z" else [level * across, upwards, level * along]
    )


def camera_axes(scene: Scene, eye: np.ndarray) -> np.ndarray:
    """Matrix with rows to the right, upwards in the picture, and towards the viewer."""
    up = np.eye(3)["xyz".index(scene.up)]
    right = np.cross(up, eye)
    if np.linalg.norm(right) < 1e-6:  # view from above: x to the right
        right = np.array([1.0, 0.0, 0.0])
    right = right / np.linalg.norm(right)
    return np.array([right, np.cross(eye, right), eye])


def floor(scene: Scene) -> tuple[Plane, np.ndarray] | None:
    """The first fixed horizontal plane and a point of this plane; None in frontal views."""
    if first_view(scene) != "space":
        return None
    upwards = np.array(EYES[scene.up]["top"])
    for part in scene.parts:
        if isinstance(part, Part) and not part.moves:
            for shape in part.shapes:
                if isinstance(shape, Plane) and part.rotation[0] @ shape.direction @ upwards > 1.0 - 1e-9:
                    return shape, part.position[:, 0] + part.rotation[0] @ np.asarray(shape.offset)
    return None


def backdrop(scene: Scene) -> Backdrop:
    """The grid on the floor, or on the wall behind a planar motion."""
    low, high = scene.bounds
    view = first_view(scene)
    normal = np.array(EYES[scene.up]["top" if view == "space" else view])
    given = floor(scene)
    behind = np.where(normal > 0.0, low, high) - _GAP * scene.size * normal if given is None else given[1]
    point = np.where(normal != 0.0, behind, 0.5 * (low + high))
    rough = scene.size / _LINES
    unit = 10.0 ** math.floor(math.log10(rough))
    return Backdrop(point, normal, unit * next(m for m in (1.0, 2.0, 5.0, 10.0) if m * unit >= 0.999 * rough))
