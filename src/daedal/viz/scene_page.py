"""A scene in space as an interactive page, with three.js included."""

import base64
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

import daedal
from daedal.viz.animate import FEWEST, checked_frames, coordinates, interval, playing_time
from daedal.viz.pages import framed, render
from daedal.viz.scene import EYES, Scene, backdrop, eye_direction, first_view
from daedal.viz.scene_items import HEAD, Curve, Item, curves, items
from daedal.viz.scene_parts import Part
from daedal.viz.svg_plot import series_svg
from daedal.viz.tessellation import Triangles

MOST = 2000  # largest number of frames
RATE = 60.0  # frames per second
LARGEST = 500_000  # number of time-dependent numbers above which the number of frames is reduced
_FRAME_HEIGHT = 620  # height in a notebook, in pixels


def scene_page(scene: Scene, seconds: float | None = None) -> str:
    return str(
        render(
            "scene_page.html",
            title=scene.title,
            wide=bool(scene.plots),
            scene=scene_element(scene, seconds, scene.title or "mechanism in space"),
        )
    )


def scene_frame(scene: Scene) -> str:
    return framed(scene_page(scene), scene.title or "scene", _FRAME_HEIGHT)


def scene_element(scene: Scene, seconds: float | None, label: str) -> str:
    """HTML element for the player scripts."""
    from markupsafe import Markup

    plots = [(plot, Markup(series_svg(scene.t, plot.series, plot.title))) for plot in scene.plots]
    return render("scene.html", data=page_data(scene, seconds), label=label, plots=plots)


def page_data(scene: Scene, seconds: float | None = None) -> dict[str, Any]:
    """Data of the player; arrays are 32-bit numbers in base64, with one row if constant."""
    shown = playing_time(scene.t, seconds) if scene.t.size > 1 else 1.0
    scene = scene.resampled(frame_times(scene, shown))
    tables = _Tables()
    bodies = [_item(item, tables) for item in items(scene)]
    lines = [_line(curve, tables) for curve in curves(scene)]
    low, high = scene.bounds
    behind = backdrop(scene)
    return {
        "t": [float(scene.t[0]), float(scene.t[-1])],
        "frames": int(scene.t.size),
        "seconds": round(shown, 3),
        "up": scene.up,
        "low": _rounded(low),
        "high": _rounded(high),
        "size": float(scene.size),
        "eyes": {name: _rounded(eye_direction(scene, name)) for name in EYES[scene.up]},
        "view": first_view(scene),
        "backdrop": [_rounded(behind.point), _rounded(behind.normal), behind.spacing],
        "head": 0.5 * HEAD * float(scene.size),
        "framesOn": any(isinstance(part, Part) and part.frame for part in scene.parts),
        "meshes": [[_floats(mesh.vertices), _numbers(mesh.faces)] for mesh in tables.meshes],
        "looks": list(tables.looks),
        "arrays": list(tables.arrays),
        "items": bodies,
        "lines": lines,
        "plots": [[[label, _floats(values)] for label, values in plot.series.items()] for plot in scene.plots],
    }


def frame_times(scene: Scene, seconds: float) -> np.ndarray:
    """Evenly spaced times: the times of the scene if possible, otherwise enough for smooth motion."""
    n = scene.t.size
    members = (*scene.parts, *scene.traces, *scene.arrows)
    follow = sum(
        np.size(getattr(member, name)) // count * (7 if isinstance(member, Part) else 3) // 3
        for member in members
        for name, count in member.counts().items()
        if count > 1 and name != "rotation"
    )
    most = int(np.clip(LARGEST // max(follow, 1), FEWEST, MOST))
    even = n < 3 or np.ptp(np.diff(scene.t)) <= 1e-6 * (scene.t[-1] - scene.t[0])
    if even and n <= most:
        return scene.t
    return np.linspace(scene.t[0], scene.t[-1], min(most, max(n, round(RATE * seconds), FEWEST)))


class _Tables:
    """Tables shared by items (triangles, sets of pieces, arrays), as maps from content to indices."""

    def __init__(self) -> None:
        self.meshes: dict[Triangles, int] = {}
        self.looks: dict[tuple[Any, ...], int] = {}
        self.arrays: dict[str, int] = {}

    def mesh(self, triangles: Triangles) -> int:
        return self.meshes.setdefault(triangles, len(self.meshes))

    def look(self, item: Item) -> int:
        look = tuple(
            (self.mesh(piece.triangles), tuple(_rounded(piece.matrix.ravel())), mode, piece.color)
            for piece, mode in item.pieces
        )
        return self.looks.setdefault(look, len(self.looks))

    def array(self, rows: np.ndarray) -> int:
        """Index of an array with time as its first axis; constant arrays are stored as one row."""
        constant = len(rows) > 1 and np.all(rows == rows[0])
        return self.arrays.setdefault(_floats(rows[:1] if constant else rows), len(self.arrays))


def _item(item: Item, tables: _Tables) -> dict[str, Any]:
    data: dict[str, Any] = {
        "name": item.name,
        "kind": item.kind,
        "color": item.color,
        "look": tables.look(item),
        "p": tables.array(item.position),
        "q": tables.array(item.quaternion),
    }
    if item.stretch is not None:
        data["s"] = tables.array(item.stretch)
    if item.value is not None:
        data["value"], data["unit"] = tables.array(item.value), item.unit
    return data


def _line(curve: Curve, tables: _Tables) -> dict[str, Any]:
    points = np.moveaxis(curve.points, -1, 0)
    width = int(np.prod(points.shape[1:]))
    return {"kind": curve.kind, "color": curve.color, "width": width, "points": tables.array(points)}


def _rounded(values: np.ndarray) -> list[float]:
    return [float(f"{value:.6g}") for value in values]


def _floats(values: np.ndarray) -> str:
    numbers = np.ascontiguousarray(values, dtype="<f4")
    if not np.all(np.isfinite(numbers)) and np.all(np.isfinite(values)):
        raise daedal.InvalidProblemError("positions of the scene exceed 32-bit numbers; use larger units of length")
    return base64.b64encode(numbers.tobytes()).decode("ascii")


def _numbers(values: np.ndarray) -> str:
    return base64.b64encode(np.ascontiguousarray(values, dtype="<u4").tobytes()).decode("ascii")


# --- a solution as a scene in space, created by a function of its states ----------------------------------------------


def solution_scene(
    sol: Any,
    drawing: Callable[[np.ndarray, np.ndarray], Scene],
    *,
    t_span: tuple[float, float] | None = None,
    frames: int | None = None,
    seconds: float | None = None,
    title: str = "",
) -> Scene:
    """Call `drawing` with evenly spaced, increasing times (nt,) and states (n, nt) to create a scene."""
    t = np.array(sorted(interval(sol, t_span)))
    smooth = int(np.clip(round(RATE * playing_time(t, seconds)), FEWEST, MOST))
    t = np.linspace(t[0], t[1], smooth if frames is None else checked_frames(frames))
    scene = drawing(t, coordinates(sol, t))
    if not isinstance(scene, Scene):
        raise daedal.InvalidProblemError(
            f"the drawing returned {type(scene).__name__}; for a motion in space it must be a function (t, q) "
            "-> daedal.viz.Scene"
        )
    return replace(scene, title=title) if title else scene
