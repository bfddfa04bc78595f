"""The plot of a run through modes: the variables with event marks, and below them the modes over time."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import daedal
from daedal.viz.figure import (
    WIDTH,
    add_panels,
    check_choice,
    draw_curves,
    finish,
    mark_events,
    name_curves,
    new_figure,
    notes,
    panels_of,
    row_heights,
)
from daedal.viz.labels import plain
from daedal.viz.style import LINES
from daedal.viz.view import (
    Block,
    derived_quantities,
    kinds_of,
    quantity_names,
    quantity_rows,
    sample_segments,
    segment_multipliers,
    select_variables,
    wishes,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_STATES = {"closed": LINES[0][0], "stick": LINES[0][0], "slip": LINES[1][0]}  # of contacts
_STRIP, _LANE = 0.35, 0.22  # inches: the panel of the modes, and what each of them adds


def plot_hybrid(
    sol: daedal.HybridSolution,
    variables: Any = None,
    *further: Any,
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
        Names or row numbers of ``sol.y``, as a list or one after the other: ``sol.plot("x", "y")``; also other names
        that ``sol[name]`` knows.
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
    check_choice("panels", panels, ("auto", "one", "each"))
    if sol.t.size == 0:
        raise daedal.InvalidProblemError("the solution holds no points; there is nothing to plot")
    view: Any = sol
    blocks, left_out = [], []
    wanted = wishes(variables, further)
    others = [] if wanted is None else quantity_names(sol, wanted)
    states = None if wanted is None else [name for name in wanted if name not in others]
    for kind, among in kinds_of(sol) if states is None else [("", None)] if states or not others else []:
        rows, note = select_variables(view, states, among)
        blocks.append(Block(kind, [sol.names[row] for row in rows], *sample_segments(sol, rows)))
        left_out += [note.replace("variables", kind or "variables")] * bool(note)
    if others:
        blocks.append(Block("", others, sol.t, quantity_rows(sol.quantities(), others)))
    if multipliers or (multipliers is None and wanted is None):
        blocks += segment_multipliers(sol)
        blocks += derived_quantities(sol)
    shown = [panel for block in blocks for panel in panels_of(block, panels)]
    with_modes = len(set(sol.mode_index.tolist())) > 1 if modes is None else modes
    columns, heights = row_heights(len(shown))
    if with_modes:
        heights.append(_strip_height(sol))
    with new_figure((WIDTH, sum(heights) + 0.35), pyplot, save) as figure:
        axes, grid = add_panels(figure, len(shown), columns, heights)
        for own, panel in zip(axes, shown):
            draw_curves(own, panel, sol.t.size <= 30 and not sol.segments)
        below = [figure.add_subplot(grid[-1, :], sharex=axes[0])] if with_modes else []
        for strip in below:
            _draw_modes(sol, strip)
        if events and len(sol.events):
            mark_events(view, axes)
        name_curves(figure, axes, shown)
        finish(figure, [*axes, *below], xlabel, title, notes(view, "; ".join(left_out)))
    return figure


def plot_modes(
    sol: daedal.HybridSolution, *, xlabel: str = "t", title: str | None = None, pyplot: bool = True
) -> Figure:
    """Plot the modes of a run over time, one lane for each; of contacts, one lane for each contact.

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
    with new_figure((WIDTH, 0.7 + _strip_height(sol)), pyplot) as figure:
        axes = figure.add_subplot()
        _draw_modes(sol, axes)
        finish(figure, [axes], xlabel, title, "")
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


def _strip_height(sol: daedal.HybridSolution) -> float:
    """In inches: that of the panel with modes, or with what contacts do."""
    lanes = sol.contact_lanes
    return _STRIP + _LANE * (len(lanes) + 1 if lanes else len(_visited(sol)))


def _draw_contacts(lanes: dict[str, list[tuple[float, float, str]]], axes: Axes) -> None:
    """One lane for each contact, coloured by what it does, with a legend above."""
    for lane, stretches in enumerate(lanes.values()):
        for state, colour in _STATES.items():
            bars = [(begin, end - begin) for begin, end, found in stretches if found.rstrip("+-") == state]
            axes.broken_barh(bars, (lane - 0.35, 0.7), facecolor=colour, linewidth=0)
    seen = {found.rstrip("+-") for stretches in lanes.values() for _, _, found in stretches}
    for state in [state for state in _STATES if state in seen]:
        axes.fill_between([], [], [], color=_STATES[state], label=state)
    if seen:
        axes.legend(frameon=False, ncols=3, loc="lower right", bbox_to_anchor=(1.0, 0.95), borderpad=0.0)
    axes.set_yticks(range(len(lanes)), [plain(name) for name in lanes])
    axes.set_ylim(len(lanes) - 0.5, -0.5)
    axes.grid(visible=False, axis="y")


def _draw_modes(sol: daedal.HybridSolution, axes: Axes) -> None:
    if sol.contact_lanes:
        _draw_contacts(sol.contact_lanes, axes)
        return
    visited = _visited(sol)
    stretches = _stretches(sol)
    for lane, mode in enumerate(visited):
        bars: Sequence[tuple[float, float]] = [(begin, end - begin) for m, begin, end in stretches if m == mode]
        axes.broken_barh(bars, (lane - 0.35, 0.7), facecolor=LINES[lane % len(LINES)][0], linewidth=0)
    axes.set_yticks(range(len(visited)), [plain(sol.modes[mode]) for mode in visited])
    axes.set_ylim(len(visited) - 0.5, -0.5)
    axes.grid(visible=False, axis="y")
