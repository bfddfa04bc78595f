"""A motion as a GIF, drawn by Matplotlib."""

from itertools import chain
from pathlib import Path

import numpy as np

from daedal.viz.animate import FLATTEST, STEEPEST
from daedal.viz.drawing import MovingDrawing
from daedal.viz.style import COLOURS, FAINT, INK, STYLE

_WIDTH, _DPI = 5.0, 90
_COILS, _SPRING_WIDTH = 7, 0.02  # of the extent


def write_gif(scene: MovingDrawing, path: Path, seconds: float, title: str) -> None:
    """Write the scene to a file, one picture for each of its times."""
    import matplotlib
    from matplotlib.animation import PillowWriter
    from matplotlib.figure import Figure

    left, right, bottom, top = scene.window(FLATTEST, STEEPEST)
    height = _WIDTH * (top - bottom) / (right - left)
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(_WIDTH, height + 0.35), dpi=_DPI)
        axes = figure.add_axes((0.0, 0.0, 1.0, height / (height + 0.35)))
        axes.set(xlim=(left, right), ylim=(bottom, top), aspect="equal")
        axes.set_axis_off()
        heading = figure.text(0.02, 0.985, "", va="top", fontsize=9)
        writer = PillowWriter(fps=max(1, min(50, round(scene.t.size / seconds))))
        with writer.saving(figure, str(path), _DPI):
            for k, t in enumerate(scene.t):
                for artist in [*axes.lines, *axes.patches]:
                    artist.remove()
                _draw(axes, scene, k)
                heading.set_text("   ".join(part for part in (title, f"t = {t:.4g}", scene.captions[k]) if part))
                writer.grab_frame(facecolor="white")


def _draw(axes, scene: MovingDrawing, k: int) -> None:
    from matplotlib.patches import Circle, Polygon

    drawing, places = scene.drawing, scene.places

    def line(names):
        return np.array([places[name][:, k] for name in names]).T

    for part in drawing.ground:
        axes.plot(*np.array(part, dtype=float).T, color=FAINT, lw=1.5, zorder=1)
    for name in set(drawing.fixed).intersection(chain(*drawing.rods, *drawing.springs, *drawing.bodies)):
        axes.plot(*places[name][:, :1], "^", color=FAINT, ms=8, zorder=1)
    for i, name in enumerate(drawing.traces):
        axes.plot(*places[name][:, : k + 1], color=COLOURS[(2, 4, 5)[i % 3]], lw=1.1, alpha=0.8, zorder=2)
    for names in drawing.curves:
        axes.plot(*line(names), color=COLOURS[0], lw=1.6, zorder=3)
    for names in drawing.springs:
        a, b = line(names).T
        axes.plot(*_spring(a, b, _SPRING_WIDTH * scene.extent), color=FAINT, lw=1.3, zorder=3)
    for (name, radius, _), angle in zip(drawing.wheels, scene.angles):
        x, y = places[name][:, k]
        axes.add_patch(Circle((x, y), radius, fill=False, edgecolor=INK, lw=2.0, zorder=4))
        a = 0.0 if angle is None else angle[k]
        for turn in (a, a + 0.5 * np.pi):
            c, s = radius * np.cos(turn), radius * np.sin(turn)
            axes.plot([x - c, x + c], [y - s, y + s], color=FAINT, lw=1.0, zorder=4)
    for names in drawing.bodies:
        axes.add_patch(Polygon(line(names).T, facecolor="#DDAA3399", edgecolor=INK, lw=1.2, zorder=5))
    for names in drawing.rods:
        axes.plot(*line(names), color=COLOURS[0], lw=3.0, solid_capstyle="round", zorder=6)
        axes.plot(*line(names), "o", color="white", mec=INK, ms=4.5, zorder=7)
    for name in drawing.masses:
        axes.plot(*places[name][:, k : k + 1], "o", color=COLOURS[2], mec=INK, ms=9, zorder=8)


def _spring(a: np.ndarray, b: np.ndarray, width: float) -> tuple[np.ndarray, np.ndarray]:
    """A zigzag from a to b."""
    along = np.concatenate([[0.0, 0.12], np.linspace(0.12, 0.88, 2 * _COILS + 2)[1:-1], [0.88, 1.0]])
    across = np.zeros(along.size)
    d = b - a
    length = np.hypot(*d) or 1.0
    across[2:-2] = min(width, 0.3 * length) * (-1.0) ** np.arange(2 * _COILS)
    normal = np.array([-d[1], d[0]]) / length
    x, y = a[:, None] + d[:, None] * along + normal[:, None] * across
    return x, y
