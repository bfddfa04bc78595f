"""Stills of a scene for print, and its motion as a GIF."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import daedal
from daedal.viz.animate import playing_time
from daedal.viz.figure import new_figure
from daedal.viz.scene import Scene
from daedal.viz.scene_camera import eye_direction
from daedal.viz.scene_parts import Part
from daedal.viz.scene_picture import make_camera, picture
from daedal.viz.style import INK

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_WIDTHS = (5.0, 7.0)  # inches, of a figure with one picture and with more
_DPI, _SHAPE = 200, 0.75  # height over width of a picture
_GIF_WIDTH, _GIF_FRAMES, _GIF_MOST = 480, 80, 400


def stills(
    scene: Scene,
    times: Any,
    path: str | Path | None = None,
    *,
    view: Any = None,
    columns: int | None = None,
    labels: bool = False,
    arrows: bool = True,
) -> Figure:
    """The scene at several times, side by side; see :meth:`Scene.stills`."""
    t = _checked(scene, times)
    if columns is None:
        columns = t.size if t.size <= 3 else int(np.ceil(np.sqrt(t.size)))
    if isinstance(columns, bool) or not isinstance(columns, (int, np.integer)) or columns < 1:
        raise daedal.InvalidProblemError(f"columns={columns!r} must be a positive integer")
    eye = eye_direction(scene, view)
    rows = -(-t.size // columns)
    inches = _WIDTHS[min(t.size, 2) - 1]
    width = round(_DPI * inches / columns)
    height = round(_SHAPE * width)
    everything = np.union1d(scene.t, t) if scene.t.size > 1 else scene.t  # traces need the times before
    whole = scene.resampled(everything)
    with new_figure((inches, rows * (_SHAPE * inches / columns + 0.22)), False, path, scene.title) as figure:
        for number, time in enumerate(t):
            axes = figure.add_subplot(rows, columns, number + 1)
            k = int(np.searchsorted(everything, time))
            axes.imshow(picture(whole, k, eye, height, width, arrows), interpolation="lanczos")
            axes.set_axis_off()
            axes.set_title(f"$t = {time:.4g}$", fontsize=8.5)
            if labels:
                _name_parts(axes, whole, k, eye, height, width)
    return figure


def _checked(scene: Scene, times: Any) -> np.ndarray:
    try:
        t = np.atleast_1d(np.array(times, dtype=float))
    except (TypeError, ValueError):
        t = np.empty(0)
    first, last = scene.t[0], scene.t[-1]
    if t.ndim != 1 or not t.size or not np.all((t >= first) & (t <= last)):
        raise daedal.InvalidProblemError(f"times={times!r} must be times of the scene, between {first:g} and {last:g}")
    return t


def _name_parts(axes: Any, scene: Scene, k: int, eye: np.ndarray, height: int, width: int) -> None:
    camera = make_camera(scene, eye, height, width)
    for part in scene.parts:
        if isinstance(part, Part):
            place = part.position[:, min(k, part.position.shape[1] - 1)]
            x, y, _ = camera.project(place[None])[0]
            box = {"facecolor": "white", "alpha": 0.75, "edgecolor": "none", "pad": 1.0}
            axes.annotate(part.name, (x, y), (4, 5), textcoords="offset points", fontsize=7.5, color=INK, bbox=box)


def write_gif(scene: Scene, path: Path, seconds: float | None, frames: int | None) -> Path:
    """The motion as a GIF; see :meth:`Scene.gif`."""
    from PIL import Image

    if path.suffix.lower() != ".gif":
        raise daedal.InvalidProblemError(f"path={str(path)!r} must end in .gif")
    if frames is None:
        frames = max(2, min(scene.t.size, _GIF_FRAMES))
    if isinstance(frames, bool) or not isinstance(frames, (int, np.integer)) or not 2 <= frames <= _GIF_MOST:
        raise daedal.InvalidProblemError(f"frames={frames!r} must be an integer from 2 to {_GIF_MOST}")
    if scene.t.size < 2:
        raise daedal.InvalidProblemError("the scene has one time only; there is nothing to animate")
    shown = playing_time(scene.t, seconds)
    scene = scene.resampled(np.linspace(scene.t[0], scene.t[-1], int(frames)))
    eye = eye_direction(scene)
    pictures = []
    for k in range(int(frames)):
        image = picture(scene, k, eye, round(_SHAPE * _GIF_WIDTH), _GIF_WIDTH)
        pictures.append(Image.fromarray((255.0 * image).astype(np.uint8)).quantize(128))
    path.parent.mkdir(parents=True, exist_ok=True)
    pause = max(20, round(1000.0 * shown / frames))
    pictures[0].save(path, save_all=True, append_images=pictures[1:], duration=pause, loop=0)
    return path
