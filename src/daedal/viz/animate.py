"""Animation of motions as interactive pages or GIFs."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

import daedal
from daedal.viz.default_drawing import default_drawing
from daedal.viz.drawing import Drawing, MovingDrawing
from daedal.viz.figure import COLOURS, FAINT, INK, STYLE
from daedal.viz.pages import framed, render

FEWEST, MOST = 120, 960  # limits of the number of frames
LARGEST = 60000  # largest total number of point positions, over all frames
NEAR = 0.025  # frames are added until no point moves further than this between two frames, relative to the extent
UNITS = 2000  # number of units along the longer side of the picture; positions are rounded to these
RADIAN = 200  # number of units per radian
FLATTEST, STEEPEST = 0.55, 0.75  # aspect ratio, height over width, of the picture
SECONDS = (4.0, 20.0)  # range of durations that are shown in real time
SHOWN = 10.0  # duration of other animations, in seconds
FRAME_HEIGHT = 560  # height in a notebook, in pixels


@dataclass(frozen=True)
class Player:
    """A planar motion as an interactive player, displayed by notebooks; ``player.save(path)`` writes a page."""

    html: str = field(repr=False)  # the self-contained page
    title: str = ""  # heading of the player

    def save(self, path: str | Path) -> Path:
        """Write the page to a file, whose name must end in ``.html``."""
        target = _checked_path(path, (".html",))
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(self.html, encoding="utf-8")
        return target

    def _repr_html_(self) -> str:
        return framed(self.html, self.title or "animation", FRAME_HEIGHT)


def animate(
    sol: Any,
    path: str | Path | None = None,
    drawing: Any = None,
    *,
    t_span: tuple[float, float] | None = None,
    frames: int | None = None,
    seconds: float | None = None,
    title: str = "",
) -> Any:
    """Animate the motion of a mechanism: as a player for notebooks, an ``.html`` page with the player, or a ``.gif``.

    The page is self-contained: play, pause, speed and a time slider work offline, with mouse, touch and keyboard.

    Parameters
    ----------
    sol : daedal.Solution, daedal.MechanicalSolution, daedal.SecondOrderSolution or daedal.HybridSolution
        The motion. Dense output is sampled evenly; without it, stored points are interpolated linearly.
    path : path, optional
        The file, ending in ``.html`` or ``.gif``.
    drawing : daedal.viz.Drawing, callable, daedal.library.Model or problem, optional
        For planar motion a Drawing; in space a function ``(t, q) -> daedal.viz.Scene`` of times (nt,) and
        states (n, nt). Models of the library include a drawing. For other mechanical systems a drawing is
        inferred: points or bodies from the coordinates; rods, pins, anchors and guides from the constraints.
        Coordinates are recognised by names such as x and y, or x1, y1, x2, y2, ..., and angles; with other names, if
        they are consistent with such constraints.
    t_span : tuple of float, optional
        Time interval to show.
    frames : int, optional
        Number of frames; by default as many as needed for smooth motion, 120 to 960 (in a GIF at most 200).
    seconds : float, optional
        Duration at normal speed; by default real time if that is between 4 and 20 s, otherwise 10 s.
    title : str
        Heading of the page.

    Returns
    -------
    pathlib.Path, daedal.viz.animate.Player or daedal.viz.Scene
        The path of the file, or if `path` is None an object for notebooks: a player, or a scene in space.

    Examples
    --------
    >>> import daedal
    >>> model = daedal.library.crank_slider()
    >>> sol = daedal.solve(model.problem, model.t_span, model.initial, **model.options)
    >>> sol.animate("crank.html", title=model.title).name
    'crank.html'
    """
    target = None if path is None else _checked_path(path, (".html", ".gif"))
    ending = ".html" if target is None else target.suffix.lower()
    _check_motion(sol)
    chosen = _chosen(sol, drawing)
    if callable(chosen):
        from daedal.viz.scene_page import solution_scene

        in_space = solution_scene(sol, chosen, t_span=t_span, frames=frames, seconds=seconds, title=title)
        if target is None:
            return in_space
        return in_space.save(target, seconds=seconds) if ending == ".html" else in_space.gif(target, seconds=seconds)
    most = MOST if ending == ".html" else 200
    scene = make_scene(sol, chosen, t_span=t_span, frames=frames, most=most)
    shown = playing_time(scene.t, seconds)
    if ending == ".html":
        player = Player(player_page(scene, shown, title), title)
        return player if target is None else player.save(target)

    assert target is not None
    target.parent.mkdir(parents=True, exist_ok=True)
    write_gif(scene, target, shown, title)
    return target


def _checked_path(path: str | Path, endings: Sequence[str]) -> Path:
    target = Path(path)
    if target.suffix.lower() not in endings:
        raise daedal.InvalidProblemError(f"path={str(path)!r} must end in {' or '.join(endings)}")
    return target


# --- from a solution to a scene ---------------------------------------------------------------------------------------


def make_scene(
    sol: Any, drawing: Any = None, *, t_span: Any = None, frames: int | None = None, most: int = MOST
) -> MovingDrawing:
    """Evaluate the drawing of a solution at up to `most` evenly spaced times."""
    _check_motion(sol)
    chosen = _chosen(sol, drawing)
    if isinstance(sol, daedal.HybridSolution) and sol.segments and isinstance(chosen.text, str):
        note = f"{chosen.text}; " if chosen.text else ""
        chosen = replace(chosen, text=lambda t, q: f"{note}mode: {sol.mode_at(t)}")
    begin, end = interval(sol, t_span)
    if frames is not None:
        return _scene(sol, chosen, begin, end, checked_frames(frames))
    moving = len(chosen.points) - len(chosen.fixed)
    most = min(most, max(FEWEST, LARGEST // max(moving, 1)))
    count = FEWEST
    while True:
        scene = _scene(sol, chosen, begin, end, count)
        if scene.longest_move <= NEAR or count >= most:
            return scene
        count = min(2 * count, most)


def planar_scene(sol: Any, drawing: Any, problem: Any, fewest: int) -> MovingDrawing | None:
    """Evaluate the planar drawing of a solution at `fewest` or more times; None if no drawing can be inferred."""
    if drawing is None:
        return None
    is_known = not (isinstance(drawing, str) and drawing == "auto")
    if not is_known and hasattr(problem, "planar_drawing"):  # a machine
        drawing = problem.planar_drawing()
        return None if drawing is None else _at_least(sol, drawing, fewest)
    try:
        chosen = _chosen(
            sol, drawing if is_known else problem if isinstance(problem, daedal.MechanicalSystem) else None
        )
    except daedal.InvalidProblemError:
        if is_known:
            raise
        return None
    if not isinstance(chosen, Drawing):
        return None
    return _at_least(sol, replace(chosen, text="") if callable(chosen.text) else chosen, fewest)


def _at_least(sol: Any, drawing: Drawing, fewest: int) -> MovingDrawing:
    scene = make_scene(sol, drawing)
    return scene if scene.t.size >= fewest else make_scene(sol, drawing, frames=fewest)


def _check_motion(sol: Any) -> None:
    if sol.t.size < 2 or sol.t[0] == sol.t[-1]:
        raise daedal.InvalidProblemError("the solution has only one time point; there is nothing to animate")


def checked_frames(frames: int) -> int:
    """Validate a number of frames."""
    if isinstance(frames, bool) or not isinstance(frames, (int, np.integer)) or frames < 2:
        raise daedal.InvalidProblemError(f"frames={frames!r} must be an integer, 2 or more")
    return int(frames)


def _scene(sol: Any, drawing: Drawing, begin: float, end: float, count: int) -> MovingDrawing:
    t = np.linspace(begin, end, count)
    if drawing.params is None:
        params = getattr(getattr(sol, "system", None), "params", None)
        drawing = replace(drawing, params=getattr(params, "given", params))  # without inputs
    return MovingDrawing(drawing, t, coordinates(sol, t))


def coordinates(sol: Any, t: np.ndarray) -> np.ndarray:
    """Arguments of the functions of a drawing, in columns: positions, or all variables of a first-order problem."""
    has_dense = bool(sol.segments) if isinstance(sol, daedal.HybridSolution) else sol.dense is not None
    if not has_dense:
        stored = sol.q if isinstance(sol, daedal.MechanicalSolution) else sol.y
        order = np.argsort(sol.t, kind="stable")
        return np.array([np.interp(t, sol.t[order], row[order]) for row in stored])
    if isinstance(sol, daedal.SecondOrderSolution):
        return sol.at(t).x
    state = sol(t)
    return state if isinstance(state, np.ndarray) else state.q


def interval(sol: Any, t_span: Any) -> tuple[float, float]:
    """Time interval to show; by default that of the solution."""
    begin, end = float(sol.t[0]), float(sol.t[-1])
    if t_span is None:
        return begin, end
    try:
        first, last = (float(value) for value in t_span)
    except (TypeError, ValueError):
        raise daedal.InvalidProblemError(f"t_span={t_span!r} must be two numbers") from None
    low, high = min(begin, end), max(begin, end)
    if not (low <= first <= high and low <= last <= high) or first == last:
        raise daedal.InvalidProblemError(
            f"t_span={t_span!r} must lie in the interval of the solution, [{low:g}, {high:g}]"
        )
    return first, last


def _chosen(sol: Any, drawing: Any) -> Any:
    """The given drawing, or the drawing of a library model or system, or an inferred drawing.

    Returns a Drawing, or a function (t, q) -> Scene.
    """
    if isinstance(drawing, Drawing) or callable(drawing):
        return drawing
    if drawing is not None:
        from daedal.library.drawings import drawing_of

        if (found := drawing_of(drawing)) is not None:
            return found
        if isinstance(drawing, dict):
            raise daedal.InvalidProblemError("drawing is a dict; pass daedal.viz.Drawing(points=..., rods=...)")
    names = tuple(sol.names)
    own = sol.segments[0].solution if isinstance(sol, daedal.HybridSolution) and sol.segments else sol
    if isinstance(own, daedal.MechanicalSolution):
        names = own.names[: own.n_q]
        if (found := default_drawing(names, own.system, own.t, own.q)) is not None:
            return found
    shown = ", ".join(names[:8]) + (", ..." if len(names) > 8 else "")
    raise daedal.InvalidProblemError(
        f"no drawing is available for this solution, whose coordinates are {shown}. Remedy: pass, for example, drawing="
        "daedal.viz.Drawing(points={'pivot': (0, 0), 'bob': lambda q: (q[0], q[1])}, rods=[('pivot', 'bob')]), "
        "or drawing=model for a mechanical model of the library"
    )


def playing_time(t: np.ndarray, seconds: float | None) -> float:
    """Duration in seconds for a motion over the times `t`."""
    if seconds is not None:
        if not (isinstance(seconds, (int, float)) and np.isfinite(seconds) and seconds > 0.0):
            raise daedal.InvalidProblemError(f"seconds={seconds!r} must be a positive number")
        return float(seconds)
    length = abs(float(t[-1] - t[0]))
    return length if SECONDS[0] <= length <= SECONDS[1] else SHOWN


# --- from a scene to a page -------------------------------------------------------------------------------------------


def scene_data(scene: MovingDrawing, seconds: float) -> dict[str, Any]:
    """Data of the player as integers: x to the right, y downwards; rows as first values and differences."""
    left, right, bottom, top = scene.window(FLATTEST, STEEPEST)
    scale = UNITS / max(right - left, top - bottom)

    def x(values):
        return np.rint(scale * (np.asarray(values) - left)).astype(int)

    def y(values):
        return np.rint(scale * (top - np.asarray(values))).astype(int)

    drawing = scene.drawing
    number = {name: k for k, name in enumerate(drawing.points)}
    places = scene.places

    def numbers(parts):
        return [[number[name] for name in part] for part in parts]

    return {
        "size": [int(np.ceil(scale * (right - left))), int(np.ceil(scale * (top - bottom)))],
        "t": [float(scene.t[0]), float(scene.t[-1])],
        "frames": int(scene.t.size),
        "seconds": round(seconds, 3),
        "radian": RADIAN,
        "points": [[_differences(x(place[0])), _differences(y(place[1]))] for place in places.values()],
        "fixed": [number[name] for name in drawing.fixed],
        "rods": numbers(drawing.rods),
        "springs": numbers(drawing.springs),
        "bodies": numbers(drawing.bodies),
        "curves": numbers(drawing.curves),
        "masses": [number[name] for name in drawing.masses],
        "traces": [number[name] for name in drawing.traces],
        "wheels": [
            [number[name], max(1, round(scale * radius)), _differences(_turns(angle))]
            for (name, radius, _), angle in zip(drawing.wheels, scene.angles)
        ],
        "ground": [
            list(chain.from_iterable(zip(x(line[0]).tolist(), y(line[1]).tolist())))
            for line in (np.array(part, dtype=float).T for part in drawing.ground if len(part))
        ],
        "text": _changes(scene.captions),
    }


def scene_frame(scene: MovingDrawing) -> dict[str, float]:
    """Left and top edge of the picture, and picture units per unit of length, as in :func:`scene_data`."""
    left, right, bottom, top = scene.window(FLATTEST, STEEPEST)
    return {"left": left, "top": top, "scale": UNITS / max(right - left, top - bottom)}


def _turns(angle: np.ndarray | None) -> np.ndarray:
    return np.zeros(1, dtype=int) if angle is None else np.rint(-RADIAN * angle).astype(int)


def _differences(values: np.ndarray) -> list[int]:
    """First value, followed by differences; only the first value if all are equal."""
    steps = np.diff(values, prepend=0)
    return steps.tolist() if np.any(steps[1:]) else [int(values[0])]


def _changes(captions: list[str]) -> list[list[Any]]:
    """Pairs [frame, caption], one for each change of the caption."""
    return [[k, text] for k, text in enumerate(captions) if k == 0 or text != captions[k - 1]]


def player_element(scene: MovingDrawing, seconds: float, label: str) -> str:
    """HTML element for the player script."""
    return render("player.html", data=scene_data(scene, seconds), label=label)


def player_page(scene: MovingDrawing, seconds: float, title: str) -> str:
    """A page with a single player."""
    player = player_element(scene, seconds, title or "animation of a mechanism")
    return render("animation.html", title=title, player=player)


# --- a motion as a GIF, drawn by Matplotlib ---------------------------------------------------------------------------

_WIDTH, _DPI = 5.0, 90
_COILS, _SPRING_WIDTH = 7, 0.02  # number of coils; width relative to the extent


def write_gif(scene: MovingDrawing, path: Path, seconds: float, title: str) -> None:
    """Write a GIF file with one frame per time."""
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
