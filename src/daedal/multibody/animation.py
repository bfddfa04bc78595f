"""Motions of machines as pages to play and pictures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from daedal.errors import InvalidProblemError
from daedal.multibody.course import MotionHistory
from daedal.multibody.picture import energy_plot, joint_plot, reaction_arrows, scene_of, size_of
from daedal.viz import Plot, Scene

FEWEST, MOST = 240, 1920  # frames
NEAR, TURN = 0.03, 0.2  # no body moves farther (of the size of the machine) or turns more between two frames


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
    """A list of what may be given alone."""
    if given is None:
        return []
    return list(given) if isinstance(given, (list, tuple, set)) else [given]


def draw(model: Any, start: Any = None, path: str | Path | None = None, *, title: str = "", **options: Any):
    """A machine at one time; see :meth:`Model.draw`."""
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
            raise InvalidProblemError(f"t_span={t_span!r} must be a part of the solution, [{begin:g}, {end:g}]")
        begin, end = first, last
    if not begin < end:
        raise InvalidProblemError("the solution holds no stretch of time; there is nothing to animate")
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
    turns = np.linalg.norm(np.diff(course.rotations, axis=0), axis=(2, 3)) / np.sqrt(2.0)  # for small angles
    return bool(moves.max() <= NEAR * size_of(course) and turns.max() <= TURN)
