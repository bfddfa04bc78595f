"""A solution as a scene in space, made by a function of its states."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

import daedal
from daedal.viz.animate import FEWEST, checked_frames, coordinates, interval, playing_time
from daedal.viz.scene import Scene
from daedal.viz.scene_page import MOST, RATE


def solution_scene(
    sol: Any,
    drawing: Callable[[np.ndarray, np.ndarray], Scene],
    *,
    t_span: tuple[float, float] | None = None,
    frames: int | None = None,
    seconds: float | None = None,
    title: str = "",
) -> Scene:
    """The scene that `drawing` makes of times (nt,) and states (n, nt), evenly spread, earliest first."""
    t = np.array(sorted(interval(sol, t_span)))
    smooth = int(np.clip(round(RATE * playing_time(t, seconds)), FEWEST, MOST))
    t = np.linspace(t[0], t[1], smooth if frames is None else checked_frames(frames))
    scene = drawing(t, coordinates(sol, t))
    if not isinstance(scene, Scene):
        raise daedal.InvalidProblemError(
            f"the drawing returned {type(scene).__name__}; a function (t, q) -> daedal.viz.Scene draws in space"
        )
    return replace(scene, title=title) if title else scene
