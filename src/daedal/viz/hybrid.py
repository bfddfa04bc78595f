"""The plot of a run through modes: the variables with event marks, and below them the modes over time."""

from __future__ import annotations

import base64
import html
import io
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import daedal
from daedal.viz.solution import (
    _ONE_COLUMN,
    _draw_curves,
    _finish,
    _mark_events,
    _name_curves,
    _new_figure,
    _notes,
    _panels,
    _row_heights,
)
from daedal.viz.style import LINES, STYLE
from daedal.viz.view import HANDFUL, SMOOTH, Block, kinds_of, multiplier_names, select_variables

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_WIDTH = 7.0
_STRIP, _LANE = 0.35, 0.22  # inches: the panel of the modes, and what each of them adds
_MOST_SEGMENTS = 2000  # of more, the stored points are joined
_NO_JUMP = 1e-3  # of the range of a curve
_CELL = "text-align: left; padding: 1px 12px 1px 0"


def plot_hybrid(
    sol: daedal.HybridSolution,
    variables: Any = None,
    *,
    panels: str = "auto",
    xlabel: str = "t",
    title: str | None = None,
    multipliers: bool | None = None,
    events: bool = True,
    modes: bool | None = None,
    save: str | Path | None = None,
    pyplot: bool = True,
) -> Figure:
    """Plot the variables of a run through modes, with marks at the events, and the modes over time.

    Positions, velocities and other states have panels of their own, and so have the multipliers of the constraints, in
    the modes that have them: the forces of contacts and joints. Curves are broken where a transition makes them jump.

    Parameters
    ----------
    sol : daedal.HybridSolution
        What to plot.
    variables : str, int or sequence of them, optional
        Names or row numbers of ``sol.y``.
    panels : {"auto", "one", "each"}
        Variables of similar size share a panel; or all in one; or one for each.
    xlabel, title : str, optional
        Name of the time axis; heading of the figure.
    multipliers : bool, optional
        Add panels with the multipliers of the modes that are mechanical systems. By default if no `variables` are
        chosen.
    events : bool
        Mark the events.
    modes : bool, optional
        Add a panel with the modes. By default if the run went through more than one.
    save : path, optional
        Write the figure to this file; the ending decides the format.
    pyplot : bool
        Whether ``matplotlib.pyplot`` is to know the figure.

    Returns
    -------
    matplotlib.figure.Figure
    """
    if panels not in ("auto", "one", "each"):
        raise daedal.InvalidProblemError(f"panels={panels!r} is not known; choose one of auto, one, each")
    if sol.t.size == 0:
        raise daedal.InvalidProblemError("the solution holds no points; there is nothing to plot")
    import matplotlib

    view: Any = sol
    chosen, notes = [], []
    for kind, among in kinds_of(sol) if variables is None else [("", None)]:
        rows, note = select_variables(view, variables, among)
        chosen.append(Block(kind, [sol.names[row] for row in rows], *_curves(sol, rows)))
        notes += [note.replace("variables", kind or "variables")] * bool(note)
    if multipliers or (multipliers is None and variables is None):
        chosen += _multipliers(sol)
    shown = [panel for block in chosen for panel in _panels(block, panels)]
    with_modes = len(set(sol.mode_index.tolist())) > 1 if modes is None else modes
    columns = 1 if len(shown) <= _ONE_COLUMN else 2
    heights = _row_heights(len(shown), columns, with_steps=False)
    if with_modes:
        heights.append(_STRIP + _LANE * len(_visited(sol)))
    figure = _new_figure((_WIDTH, sum(heights) + 0.35), pyplot)
    with matplotlib.rc_context(STYLE):
        figure.set_layout_engine("constrained", h_pad=0.04, w_pad=0.06)
        grid = figure.add_gridspec(len(heights), columns, height_ratios=heights)
        places: list[Any] = [grid[k // columns, k % columns] for k in range(len(shown))]
        axes: list[Axes] = []
        for place in [*places, grid[-1, :]] if with_modes else places:
            axes.append(figure.add_subplot(place, sharex=axes[0] if axes else None))
        for own, panel in zip(axes, shown):
            _draw_curves(own, panel, sol.t.size <= 30 and not sol.segments)
        if with_modes:
            _draw_modes(sol, axes[-1])
        if events and len(sol.events):
            _mark_events(view, axes[: len(shown)])
        _name_curves(figure, axes[: len(shown)], shown)
        _finish(figure, axes, xlabel, title, _notes(view, "; ".join(notes)))
        figure.draw_without_rendering()
        if save is not None:
            Path(save).parent.mkdir(parents=True, exist_ok=True)
            figure.savefig(save)
    return figure


def plot_modes(
    sol: daedal.HybridSolution, *, xlabel: str = "t", title: str | None = None, pyplot: bool = True
) -> Figure:
    """Plot the modes of a run over time, one lane for each.

    Parameters
    ----------
    sol : daedal.HybridSolution
    xlabel, title : str, optional
    pyplot : bool
        Whether ``matplotlib.pyplot`` is to know the figure.

    Returns
    -------
    matplotlib.figure.Figure
    """
    import matplotlib

    figure = _new_figure((_WIDTH, 0.7 + _STRIP + _LANE * len(_visited(sol))), pyplot)
    with matplotlib.rc_context(STYLE):
        figure.set_layout_engine("constrained")
        axes = figure.add_subplot()
        _draw_modes(sol, axes)
        _finish(figure, [axes], xlabel, title, "")
    return figure


def _visited(sol: daedal.HybridSolution) -> list[int]:
    """The modes of the run, in the order in which they were declared."""
    found = {sol.modes.index(segment.mode) for segment in sol.segments} | set(sol.mode_index.tolist())
    return sorted(found)


def _stretches(sol: daedal.HybridSolution) -> list[tuple[int, float, float]]:
    """(mode, begin, end), neighbours with the same mode joined."""
    if sol.segments:
        pieces = [(sol.modes.index(s.mode), s.t0, s.t1) for s in sol.segments]
    else:
        ends = np.append(sol.t[1:], sol.t[-1:])
        pieces = [(int(m), float(a), float(b)) for m, a, b in zip(sol.mode_index, sol.t, ends)]
    joined: list[tuple[int, float, float]] = []
    for mode, begin, end in pieces:
        if joined and joined[-1][0] == mode:
            joined[-1] = (mode, joined[-1][1], end)
        else:
            joined.append((mode, begin, end))
    return joined


def _draw_modes(sol: daedal.HybridSolution, axes: Axes) -> None:
    visited = _visited(sol)
    stretches = _stretches(sol)
    for lane, mode in enumerate(visited):
        bars: Sequence[tuple[float, float]] = [(begin, end - begin) for m, begin, end in stretches if m == mode]
        axes.broken_barh(bars, (lane - 0.35, 0.7), facecolor=LINES[lane % len(LINES)][0], linewidth=0)
    axes.set_yticks(range(len(visited)), [sol.modes[mode] for mode in visited])
    axes.set_ylim(len(visited) - 0.5, -0.5)
    axes.grid(visible=False, axis="y")


def _curves(sol: daedal.HybridSolution, rows: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
    """Times and values of smooth curves, nan between the segments."""
    dense = [segment for segment in sol.segments if segment.solution.dense is not None and segment.t0 != segment.t1]
    if not dense or len(dense) > _MOST_SEGMENTS:
        return sol.t, sol.y[list(rows)]
    length = abs(sol.segments[-1].t1 - sol.segments[0].t0)
    times, values, gaps = [], [], []
    for segment in dense:
        share = abs(segment.t1 - segment.t0) / length
        t = np.linspace(segment.t0, segment.t1, max(8, round(SMOOTH * share)))
        found = segment.values(t)
        block = np.full((len(rows), t.size + 1), np.nan)
        for k, row in enumerate(rows):
            if sol.names[row] in segment.names:
                block[k, :-1] = found[segment.names.index(sol.names[row])]
        times.append(np.append(t, t[-1]))
        values.append(block)
        gaps.append(t.size + 1)
    joined = np.concatenate(values, axis=1)
    _close(joined, np.cumsum(gaps)[:-1] - 1)
    return np.concatenate(times), joined


def _multipliers(sol: daedal.HybridSolution) -> list[Block]:
    """The multipliers of all segments by name, nan where the mode does not have them; nothing if there are none."""
    pairs = [(segment, segment.solution) for segment in sol.segments if segment.t0 != segment.t1]
    segments = [(segment, own) for segment, own in pairs if isinstance(own, daedal.MechanicalSolution)]
    if not segments or len(segments) > _MOST_SEGMENTS:
        return []
    parts = []
    length = abs(sol.segments[-1].t1 - sol.segments[0].t0)
    for segment, own in segments:
        low, high = sorted((segment.t0, segment.t1))
        t, lam = own.t[(own.t >= low) & (own.t <= high)], own.lam[:, (own.t >= low) & (own.t <= high)]
        if own.dense is not None and t.size < (smooth := max(8, round(0.5 * SMOOTH * (high - low) / length))):
            t = np.linspace(segment.t0, segment.t1, smooth)
            lam = own(t).lam
        parts.append((t, dict(zip(multiplier_names(own), lam))))
    names = list(dict.fromkeys(name for _, rows in parts for name in rows))[:HANDFUL]
    if not names:
        return []
    t = np.concatenate([np.append(times, np.nan) for times, _ in parts])
    curves = [
        np.concatenate([np.append(rows.get(name, np.full(times.size, np.nan)), np.nan) for times, rows in parts])
        for name in names
    ]
    return [Block("multipliers", names, t, np.array(curves))]


def _close(curves: np.ndarray, gaps: np.ndarray) -> None:
    """Fill the gaps between segments where a curve does not jump."""
    before, after = curves[:, gaps - 1], curves[:, gaps + 1]
    with np.errstate(invalid="ignore"):
        joined = np.abs(after - before) <= _NO_JUMP * (np.nanmax(curves, axis=1) - np.nanmin(curves, axis=1))[:, None]
    curves[:, gaps] = np.where(joined, before, np.nan)


def hybrid_html(sol: daedal.HybridSolution) -> str:
    """HTML for notebooks: how the run ended, its events, and a plot as an embedded image."""
    rows = "".join(
        f'<tr><th style="{_CELL}">{html.escape(name)}</th><td style="{_CELL}">{html.escape(value)}</td></tr>'
        for name, value in sol.summary()
    )
    message = html.escape(sol.message).replace("\n", "<br>")
    table = sol.events[:10]._repr_html_() if len(sol.events) else ""
    picture = ""
    if sol.t.size > 1:
        stream = io.BytesIO()
        plot_hybrid(sol, pyplot=False).savefig(stream, format="png", dpi=90)
        picture = base64.b64encode(stream.getvalue()).decode("ascii")
        picture = f'<img alt="plot of the solution" src="data:image/png;base64,{picture}">'
    return f'<div><table style="margin: 0">{rows}</table><p>{message}</p>{table}{picture}</div>'
