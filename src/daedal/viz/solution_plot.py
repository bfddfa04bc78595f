"""Plots of solutions, with or without modes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import daedal
from daedal.common.messages import unknown_name
from daedal.viz.figure import (
    FAINT,
    LINES,
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
    plain,
    row_heights,
)
from daedal.viz.view import (
    CurveGroup,
    blocks_of,
    derived_quantities,
    kinds_of,
    logarithmic_part,
    multiplier_names,
    quantity_names,
    quantity_rows,
    sample_segments,
    segment_multipliers,
    select_variables,
    time_scale,
    wishes,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_STEP_HEIGHT, _ORDER_HEIGHT = 1.05, 0.75  # panel heights in inches

_MOST_ORDERS = 7  # highest order up to which every order has a tick; the orders of Radau are 5, 9 and 13


def plot_solution(
    sol: daedal.Solution,
    variables: Any = None,
    *further: Any,
    factors: Mapping[str, float] | None = None,
    panels: str = "auto",
    xscale: str = "auto",
    yscale: str = "linear",
    xlabel: str = "t",
    title: str | None = None,
    multipliers: bool | None = None,
    drift: bool | None = None,
    steps: bool | None = None,
    events: bool = True,
    save: str | Path | None = None,
    pyplot: bool = True,
) -> Figure:
    """Plot a solution over time, with events and with step size and order of the integrator.

    The content depends on the problem class: for mechanical systems positions, velocities, multipliers and, on a
    logarithmic axis, the constraint residuals before projection; for second-order DAEs positions, velocities and
    multipliers; for semi-explicit DAEs states and algebraic variables. Curves are smooth between steps if the solution
    has dense output.

    Parameters
    ----------
    sol : daedal.Solution
        The solution.
    variables : str, int or sequence of them, optional
        Names or row indices, as a list or as separate arguments: ``sol.plot("x", "y")``. All names that ``sol[name]``
        accepts are possible: derivatives, energies, multipliers such as ``"lambda_rod"`` for the constraint ``"rod"``.
        By default all variables; if there are more than eight of a kind, a selection of those that change and differ.
    factors : dict, optional
        Factors for variables, by name, which are shown in labels; ``180 / pi`` is labelled as degrees.
    panels : {"auto", "one", "each"}
        "auto": variables of similar size share a panel; "one": all share a panel; "each": one panel each.
    xscale : {"auto", "linear", "log"}
        Scale of the time axis; "auto" is logarithmic if the steps indicate many time scales.
    yscale : {"linear", "log", "symlog"}
        Scale of the vertical axes.
    xlabel, title : str, optional
        Name of the time axis, with its unit if any; heading of the figure.
    multipliers, drift : bool, optional
        Whether to add panels with the multipliers and the constraint residuals before projection of a mechanical
        system; by default if no `variables` are selected.
    steps : bool, optional
        Whether to add panels with step size and order (if variable); by default if recorded and variable.
    events : bool
        Whether to mark the events.
    save : path, optional
        File to write; the suffix determines the format.
    pyplot : bool
        Whether to create the figure with ``matplotlib.pyplot``, so that ``plt.show()`` displays it. Otherwise the
        figure is freed when no longer used.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> import daedal
    >>> model = daedal.library.robertson()
    >>> sol = daedal.solve(model.problem, model.t_span, model.initial, **model.options)
    >>> figure = sol.plot(title=model.title, **model.plot)
    >>> len(figure.axes)
    2
    """
    check_choice("panels", panels, ("auto", "one", "each"))
    check_choice("xscale", xscale, ("auto", "linear", "log"))
    check_choice("yscale", yscale, ("linear", "log", "symlog"))
    if sol.t.size == 0:
        raise daedal.InvalidProblemError("the solution has no points; there is nothing to plot")
    if xscale == "auto":
        xscale = time_scale(sol.t)
    if xscale == "log" and not np.any(sol.t > 0.0):
        raise daedal.InvalidProblemError(
            "a logarithmic time axis requires positive times. Remedy: pass xscale='linear'"
        )
    variables = wishes(variables, further)
    factors = dict(factors or {})
    for name in factors:
        if name not in sol.names and name not in multiplier_names(sol):
            raise unknown_name(name, [*sol.names, *multiplier_names(sol)], where="factors")
    blocks, note = blocks_of(sol, variables, xscale, multipliers, drift)
    if xscale == "log":
        blocks = _cut(blocks)
    shown = [panel for block in blocks for panel in panels_of(block, panels, yscale, factors)]
    with_steps = _steps_vary(sol) if steps is None else steps
    if with_steps and sol.history is None:
        raise daedal.InvalidProblemError("step sizes were not recorded; call solve with dense_output=True")

    columns, heights = row_heights(len(shown))
    with_order = with_steps and sol.history is not None and bool(np.ptp(sol.history.order) > 0)
    if with_steps:
        heights += [_STEP_HEIGHT, _ORDER_HEIGHT] if columns == 1 and with_order else [_STEP_HEIGHT]
    with new_figure((WIDTH, sum(heights) + 0.35), pyplot, save) as figure:
        axes, grid = add_panels(figure, len(shown), columns, heights)
        mark_points = sol.dense is None and sol.t.size <= 30
        for own, panel in zip(axes, shown):
            draw_curves(own, panel, mark_points)
            own.set_yscale("log" if panel.kind == "drift" else yscale)
        step_axes = []
        if with_steps:
            places = [grid[-1, :]]
            if with_order:
                places = [grid[-2, 0], grid[-1, 0]] if columns == 1 else [grid[-1, 0], grid[-1, 1]]
            step_axes = [figure.add_subplot(place, sharex=axes[0]) for place in places]
            _draw_steps(sol, step_axes[0])
            if with_order:
                _draw_order(sol, step_axes[1])
        if xscale == "log":
            for own in (*axes, *step_axes):
                own.set_xscale("log")
                own.set_xlim(shown[0].t.min(), shown[0].t.max())
        if with_steps:
            _limit_step_axis(sol, step_axes[0])
        if events and sol.events:
            mark_events(sol, axes)
        name_curves(figure, axes, shown)
        finish(figure, [*axes, *step_axes], xlabel, title, notes(sol, note))
    return figure


def _cut(blocks: list[CurveGroup]) -> list[CurveGroup]:
    """Restrict the blocks to a logarithmic axis, which starts before the first visible change."""
    begin = min(np.min(block.t[logarithmic_part(block.t, block.curves)]) for block in blocks if block.kind != "drift")
    return [CurveGroup(b.kind, b.names, b.t[b.t >= begin], b.curves[:, b.t >= begin]) for b in blocks]


def _steps_vary(sol: daedal.Solution) -> bool:
    history = sol.history
    if history is None or history.t.size < 2:
        return False
    return bool(np.ptp(history.order) > 0 or np.ptp(np.abs(history.h)) > 1e-9 * np.max(np.abs(history.h)))


_STEPS: dict[str, Any] = {"color": FAINT, "linewidth": 0.9, "drawstyle": "steps-pre"}


def _draw_steps(sol: daedal.Solution, step_axes: Axes) -> None:
    history = sol.history
    assert history is not None
    step_axes.plot(_within(sol, history.t), np.abs(history.h), **_STEPS)
    step_axes.set_yscale("log")
    step_axes.set_ylabel("step size")


def _within(sol: daedal.Solution, t: np.ndarray) -> np.ndarray:
    """Limit ends of steps to the end of the run, since a terminal event lies inside the last step."""
    return np.minimum(t, sol.t[-1]) if sol.t[-1] >= sol.t[0] else np.maximum(t, sol.t[-1])


def _draw_order(sol: daedal.Solution, order_axes: Axes) -> None:
    history = sol.history
    assert history is not None
    order_axes.plot(_within(sol, history.t), history.order, **_STEPS)
    order_axes.set_ylabel("order")
    highest = int(np.max(history.order))
    order_axes.set_ylim(0.5, highest + 0.5)
    order_axes.set_yticks(range(1, highest + 1, 1 if highest <= _MOST_ORDERS else 4))


def _limit_step_axis(sol: daedal.Solution, step_axes: Axes) -> None:
    """Limit the axis to visible steps, since very short first steps would compress it."""
    from matplotlib.ticker import LogLocator, NullFormatter

    assert sol.history is not None
    left, right = step_axes.get_xlim()
    if step_axes.get_xscale() == "linear":
        margin = 0.02 * (right - left)
        left, right = (left + margin, right) if sol.t[-1] >= sol.t[0] else (left, right - margin)
    shown = np.abs(sol.history.h)[(sol.history.t >= left) & (sol.history.t <= right)]
    if shown.size:
        low, high = 0.5 * shown.min(), 2.0 * shown.max()
        if high < 100.0 * low:  # at least two powers of ten for readability
            low, high = 10.0 ** np.floor(np.log10(shown.min())), 10.0 ** np.ceil(np.log10(shown.max()) + 1e-9)
        step_axes.set_ylim(low, high)
    step_axes.yaxis.set_major_locator(LogLocator(numticks=5))
    step_axes.yaxis.set_minor_formatter(NullFormatter())


# --- hybrid solutions: variables with event marks, and the modes over time below --------------------------------------

_STATES = {"closed": LINES[0][0], "stick": LINES[0][0], "slip": LINES[1][0]}  # colours of the states of contacts
_STRIP, _LANE = 0.35, 0.22  # inches: height of the mode panel, and of each mode in it


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
    """Plot the variables of a hybrid solution with marks at events, and the modes over time.

    Positions, velocities, other states, and the multipliers (contact and joint forces) of modes with constraints have
    separate panels. Curves are interrupted at jumps.

    Parameters
    ----------
    sol : daedal.HybridSolution
        The solution.
    variables : str, int or sequence of them, optional
        Names or row indices of ``sol.y``, as a list or as separate arguments: ``sol.plot("x", "y")``; or other names
        that ``sol[name]`` accepts.
    panels : {"auto", "one", "each"}
        "auto": variables of similar size share a panel; "one": all share a panel; "each": one panel each.
    xlabel, title : str, optional
        Name of the time axis; heading of the figure.
    multipliers : bool, optional
        Whether to add panels with the multipliers of mechanical modes; by default if no `variables` are selected.
    events : bool
        Whether to mark the events.
    modes : bool, optional
        Whether to add a panel with the modes; by default if there is more than one.
    save, pyplot
        As for :func:`plot_solution`.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> import daedal
    >>> ball = daedal.MechanicalSystem(1.0, lambda t, q, v: [-9.81], n_q=1)
    >>> floor = daedal.hybrid.Contact(lambda t, q: q[0], restitution=0.5)
    >>> sol = daedal.solve(daedal.hybrid.UnilateralProblem(ball, floor), (0.0, 1.0), ([1.0], [0.0]))
    >>> figure = daedal.viz.plot_hybrid(sol, pyplot=False)
    >>> len(figure.axes) > 0
    True
    """
    check_choice("panels", panels, ("auto", "one", "each"))
    if sol.t.size == 0:
        raise daedal.InvalidProblemError("the solution has no points; there is nothing to plot")
    view: Any = sol
    blocks, left_out = [], []
    wanted = wishes(variables, further)
    others = [] if wanted is None else quantity_names(sol, wanted)
    states = None if wanted is None else [name for name in wanted if name not in others]
    for kind, among in kinds_of(sol) if states is None else [("", None)] if states or not others else []:
        rows, note = select_variables(view, states, among)
        blocks.append(CurveGroup(kind, [sol.names[row] for row in rows], *sample_segments(sol, rows)))
        left_out += [note.replace("variables", kind or "variables")] * bool(note)
    if others:
        blocks.append(CurveGroup("", others, sol.t, quantity_rows(sol.quantities(), others)))
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
    """Plot the modes over time, with a lane for each mode; with contacts, a lane for each contact.

    Parameters
    ----------
    sol : daedal.HybridSolution
        The solution.
    xlabel, title : str, optional
        Name of the time axis; heading of the figure.
    pyplot : bool
        As for :func:`plot_solution`.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> import daedal
    >>> ball = daedal.MechanicalSystem(1.0, lambda t, q, v: [-9.81], n_q=1)
    >>> floor = daedal.hybrid.Contact(lambda t, q: q[0], restitution=0.5)
    >>> sol = daedal.solve(daedal.hybrid.UnilateralProblem(ball, floor), (0.0, 1.0), ([1.0], [0.0]))
    >>> figure = daedal.viz.plot_modes(sol, pyplot=False)
    >>> len(figure.axes) > 0
    True
    """
    with new_figure((WIDTH, 0.7 + _strip_height(sol)), pyplot) as figure:
        axes = figure.add_subplot()
        _draw_modes(sol, axes)
        finish(figure, [axes], xlabel, title, "")
    return figure


def _visited(sol: daedal.HybridSolution) -> list[int]:
    """Indices of the modes of a run, in order of declaration."""
    found = {sol.modes.index(segment.mode) for segment in sol.segments} | set(sol.mode_index.tolist())
    return sorted(found)


def _arcs(sol: daedal.HybridSolution) -> list[tuple[int, float, float]]:
    """(mode, begin, end), with consecutive arcs of the same mode joined."""
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
    """Height in inches of the panel with modes or contact states."""
    lanes = sol.contact_lanes
    return _STRIP + _LANE * (len(lanes) + 1 if lanes else len(_visited(sol)))


def _draw_contacts(lanes: dict[str, list[tuple[float, float, str]]], axes: Axes) -> None:
    """One lane for each contact, coloured by its state, with a legend above."""
    for lane, arcs in enumerate(lanes.values()):
        for state, colour in _STATES.items():
            bars = [(begin, end - begin) for begin, end, found in arcs if found.rstrip("+-") == state]
            axes.broken_barh(bars, (lane - 0.35, 0.7), facecolor=colour, linewidth=0)
    seen = {found.rstrip("+-") for arcs in lanes.values() for _, _, found in arcs}
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
    arcs = _arcs(sol)
    for lane, mode in enumerate(visited):
        bars: Sequence[tuple[float, float]] = [(begin, end - begin) for m, begin, end in arcs if m == mode]
        axes.broken_barh(bars, (lane - 0.35, 0.7), facecolor=LINES[lane % len(LINES)][0], linewidth=0)
    axes.set_yticks(range(len(visited)), [plain(sol.modes[mode]) for mode in visited])
    axes.set_ylim(len(visited) - 0.5, -0.5)
    axes.grid(visible=False, axis="y")
