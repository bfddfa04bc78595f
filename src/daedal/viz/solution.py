"""The plot of a solution."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import daedal
from daedal.viz.labels import label
from daedal.viz.style import FAINT, INK, LINES, STYLE
from daedal.viz.view import Block, blocks_of, logarithmic_part, multiplier_names, share_panels, time_scale

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_WIDTH = 7.0
_PANEL_HEIGHTS = (3.2, 1.8, 1.8, 1.5)  # inches, for one panel, two, three, more
_STEP_HEIGHT, _ORDER_HEIGHT, _LINE_HEIGHT = 1.05, 0.75, 0.18
_ONE_COLUMN = 4  # so many panels stand below each other, more in two columns
_LONG_NAME = 16  # characters; longer names stand above a panel, not beside it
_MARKERS = ("v", "D", "s", "o")
_MANY_EVENTS = 40
_SEE_THROUGH = (0, (4.0, 4.0))  # dashes of a curve that lies on another one


@dataclass(frozen=True)
class Panel:
    """Curves that share a panel."""

    kind: str
    labels: list[str]
    t: np.ndarray
    curves: np.ndarray


def plot_solution(
    sol: daedal.Solution,
    variables: Any = None,
    *,
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
    """Plot a solution over time, with its events and with step size and order of the integrator.

    What is shown follows from the class of the problem. Of a mechanical system: positions, velocities, multipliers and,
    on a logarithmic axis, how far the constraints were violated before the output was projected. Of a second-order DAE:
    positions, velocities, multipliers. Of a semi-explicit DAE: states, algebraic variables. Curves come from the dense
    output where it was kept, so they are smooth between the steps.

    Parameters
    ----------
    sol : daedal.Solution
        What to plot.
    variables : str, int or sequence of them, optional
        Names or row numbers, among them names of multipliers such as ``"lambda_rod"`` for the constraint ``"rod"`` or
        ``"lambda1"``. All variables by default; of more than eight of a kind a handful, evenly spread over those that
        change and differ.
    factors : dict, optional
        Factors by name with which variables are multiplied; the labels say so. ``180 / pi`` is labelled as degrees.
    panels : {"auto", "one", "each"}
        Variables of similar size share a panel; or all in one; or one for each.
    xscale : {"auto", "linear", "log"}
        The time axis; by default logarithmic when the steps say that the solution lives on many time scales.
    yscale : {"linear", "log", "symlog"}
        The axes of the variables.
    xlabel, title : str, optional
        Name of the time axis (with its unit, if there is one); heading of the figure.
    multipliers, drift : bool, optional
        Add panels with the multipliers of a mechanical system and with the residuals of its constraints before
        projection. By default if no `variables` are chosen.
    steps : bool, optional
        Add panels with step size and order. By default if they were recorded and were not constant.
    events : bool
        Mark the events.
    save : path, optional
        Write the figure to this file; the ending decides the format.
    pyplot : bool
        Whether ``matplotlib.pyplot`` is to know the figure, so that ``plt.show()`` opens it. Without, it is freed as
        soon as it is no longer used.

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
    3
    """
    _check_choice("panels", panels, ("auto", "one", "each"))
    _check_choice("xscale", xscale, ("auto", "linear", "log"))
    _check_choice("yscale", yscale, ("linear", "log", "symlog"))
    if sol.t.size == 0:
        raise daedal.InvalidProblemError("the solution holds no points; there is nothing to plot")
    import matplotlib

    if xscale == "auto":
        xscale = time_scale(sol.t)
    if xscale == "log" and not np.any(sol.t > 0.0):
        raise daedal.InvalidProblemError("a logarithmic time axis needs positive times; pass xscale='linear'")
    factors = dict(factors or {})
    for name in factors:
        if name not in sol.names and name not in multiplier_names(sol):
            raise daedal.InvalidProblemError(f"factors: the solution has no variable {name!r}")
    blocks, note = blocks_of(sol, variables, xscale, multipliers, drift)
    if xscale == "log":
        blocks = _cut(blocks)
    shown = [panel for block in blocks for panel in _panels(block, panels, yscale, factors)]
    with_steps = _steps_vary(sol) if steps is None else steps
    if with_steps and sol.history is None:
        raise daedal.InvalidProblemError("step sizes were not recorded; call solve with dense_output=True")

    columns = 1 if len(shown) <= _ONE_COLUMN else 2
    heights = _row_heights(len(shown), columns, with_steps)
    # Outside the style, whose end would undo the settings that a backend makes when the first figure loads it
    figure = _new_figure((_WIDTH, sum(heights) + 0.35), pyplot)
    with matplotlib.rc_context(STYLE):
        state_axes, step_axes = _add_panels(figure, len(shown), columns, heights, with_steps)
        mark_points = sol.dense is None and sol.t.size <= 30
        for axes, panel in zip(state_axes, shown):
            _draw_curves(axes, panel, mark_points)
            axes.set_yscale("log" if panel.kind == "drift" else yscale)
        if with_steps:
            _draw_steps(sol, *step_axes)
        all_axes = [*state_axes, *step_axes]
        if xscale == "log":
            for axes in all_axes:
                axes.set_xscale("log")
                axes.set_xlim(shown[0].t.min(), shown[0].t.max())
        if with_steps:
            _limit_step_axis(sol, step_axes[0])
        if events and sol.events:
            _mark_events(sol, state_axes)
        _name_curves(figure, state_axes, shown)
        _finish(figure, all_axes, xlabel, title, _notes(sol, note))
        figure.draw_without_rendering()  # the ticks follow from the layout and the layout from the ticks: settle both
        if save is not None:
            Path(save).parent.mkdir(parents=True, exist_ok=True)
            figure.savefig(save)
    return figure


def _check_choice(option: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise daedal.InvalidProblemError(f"{option}={value!r} is not known; choose one of {', '.join(choices)}")


def _logarithms(curves: np.ndarray) -> np.ndarray:
    with np.errstate(divide="ignore"):
        return np.log10(np.abs(curves))


def _cut(blocks: list[Block]) -> list[Block]:
    """The blocks from where a logarithmic axis begins: where something is first seen to change."""
    begin = min(np.min(block.t[logarithmic_part(block.t, block.curves)]) for block in blocks if block.kind != "drift")
    return [Block(b.kind, b.names, b.t[b.t >= begin], b.curves[:, b.t >= begin]) for b in blocks]


def _panels(
    block: Block, panels: str, yscale: str = "linear", factors: Mapping[str, float] | None = None
) -> list[Panel]:
    """The curves of a block, divided into panels."""
    scales = [(factors or {}).get(name, 1.0) for name in block.names]
    labels = [_label(name, factor) for name, factor in zip(block.names, scales)]
    curves = block.curves * np.array(scales)[:, None]
    everything = list(range(len(labels)))
    if panels == "one" or block.kind == "drift":
        groups = [everything]
    elif panels == "each":
        groups = [[row] for row in everything]
    else:
        groups = share_panels(curves if yscale == "linear" else _logarithms(curves))
    return [Panel(block.kind, [labels[i] for i in group], block.t, curves[group]) for group in groups]


def _label(name: str, factor: float) -> str:
    """The label of a variable, primes of derivatives set as in a formula."""
    symbol, primes = label(name.rstrip("'")), name[len(name.rstrip("'")) :]
    if not primes or not symbol.startswith("$"):
        return label(name, factor)
    return label(name, factor).replace(name, f"{symbol[:-1]}{primes}$")


def _steps_vary(sol: daedal.Solution) -> bool:
    history = sol.history
    if history is None or history.t.size < 2:
        return False
    return bool(np.ptp(history.order) > 0 or np.ptp(np.abs(history.h)) > 1e-9 * np.max(np.abs(history.h)))


def _row_heights(count: int, columns: int, with_steps: bool) -> list[float]:
    """Heights of the rows: `count` panels in `columns`, below them flat ones for step size and order."""
    heights = [_PANEL_HEIGHTS[min(count, len(_PANEL_HEIGHTS)) - 1]] * -(-count // columns)
    if with_steps:
        heights += [_STEP_HEIGHT, _ORDER_HEIGHT] if columns == 1 else [_STEP_HEIGHT]
    return heights


def _new_figure(size: tuple[float, float], pyplot: bool) -> Figure:
    from matplotlib.figure import Figure

    options: dict[str, Any] = {"figsize": size, "dpi": STYLE["figure.dpi"], "facecolor": STYLE["figure.facecolor"]}
    if not pyplot:
        return Figure(**options)
    import matplotlib
    import matplotlib.pyplot as plt

    if "inline" in matplotlib.get_backend():
        from daedal.viz.notebook import NotebookFigure

        return plt.figure(FigureClass=NotebookFigure, **options)
    return plt.figure(**options)


def _add_panels(
    figure: Figure, count: int, columns: int, heights: list[float], with_steps: bool
) -> tuple[list[Axes], list[Axes]]:
    """The panels for the variables, row by row, and those for step size and order in the last row or rows."""
    figure.set_layout_engine("constrained", h_pad=0.04, w_pad=0.06)
    grid = figure.add_gridspec(len(heights), columns, height_ratios=heights)
    state_axes: list[Axes] = []
    for k in range(count):
        first = state_axes[0] if state_axes else None
        state_axes.append(figure.add_subplot(grid[k // columns, k % columns], sharex=first))
    places = []
    if with_steps:
        places = [grid[-2, 0], grid[-1, 0]] if columns == 1 else [grid[-1, 0], grid[-1, 1]]
    return state_axes, [figure.add_subplot(place, sharex=state_axes[0]) for place in places]


def _draw_curves(axes: Axes, panel: Panel, mark_points: bool) -> None:
    for k, (curve, text) in enumerate(zip(panel.curves, panel.labels)):
        colour, dashes = LINES[k % len(LINES)]
        if any(_coincide(curve, earlier) for earlier in panel.curves[:k]):
            dashes = _SEE_THROUGH
        marker = "o" if mark_points else ""
        axes.plot(panel.t, curve, color=colour, linestyle=dashes, marker=marker, markersize=3, label=text)


def _coincide(curve: np.ndarray, other: np.ndarray) -> bool:
    """Whether two curves that change lie on each other, so that the later one would hide the other."""
    finite = np.isfinite(curve) & np.isfinite(other)
    if not finite.any():
        return False
    return bool(np.max(np.abs(curve[finite] - other[finite])) <= 0.01 * np.ptp(other[finite]))


def _name_curves(figure: Figure, state_axes: list[Axes], panels: list[Panel]) -> None:
    """The name of a single curve, or the kind of several, at the axis; legends beside the panels or above them."""
    legends = []
    for axes, panel in zip(state_axes, panels):
        handles, labels = axes.get_legend_handles_labels()
        if len(panel.labels) == 1:
            axes.set_ylabel(f"{labels[0]} drift" if panel.kind == "drift" else labels[0])
            handles, labels = handles[1:], labels[1:]
        else:
            axes.set_ylabel(panel.kind)
        if handles:
            legends.append((axes, handles, labels))
    longest = max((_width(text) for *_, labels in legends for text in labels), default=0)
    narrow = len(panels) > _ONE_COLUMN
    if longest <= _LONG_NAME and not narrow:
        for axes, handles, labels in legends:
            axes.legend(handles, labels, loc="upper left", bbox_to_anchor=(1.0, 1.02), borderaxespad=0.3)
        return
    lines: dict[int, int] = {}  # of text above each row of panels
    for axes, handles, labels in legends:
        width = max(_width(text) for text in labels) + 8  # with the line in front
        columns = max(1, min(len(handles), (38 if narrow else 80) // width))
        # On the right, since the power of ten of the axis stands on the left
        axes.legend(handles, labels, loc="lower right", bbox_to_anchor=(1.0, 1.03), borderaxespad=0.0, ncols=columns)
        row = _place(axes).rowspan.start
        lines[row] = max(lines.get(row, 0), -(-len(handles) // columns))
    figure.set_figheight(figure.get_figheight() + _LINE_HEIGHT * sum(lines.values()))


def _width(text: str) -> int:
    """About how many letters wide a label is."""
    if "$" in text:
        text = re.sub(r"\\[A-Za-z]+", "x", re.sub(r"\\mathrm|[${}_^]", "", text))
    return len(text)


def _draw_steps(sol: daedal.Solution, step_axes: Axes, order_axes: Axes) -> None:
    history = sol.history
    assert history is not None
    line: dict[str, Any] = {"color": FAINT, "linewidth": 0.9, "drawstyle": "steps-pre"}
    step_axes.plot(history.t, np.abs(history.h), **line)
    step_axes.set_yscale("log")
    step_axes.set_ylabel("step size")
    order_axes.plot(history.t, history.order, **line)
    order_axes.set_ylabel("order")
    highest = int(np.max(history.order))
    order_axes.set_ylim(0.5, highest + 0.5)
    order_axes.set_yticks(range(1, highest + 1))


def _limit_step_axis(sol: daedal.Solution, step_axes: Axes) -> None:
    """Scale the axis to the steps one can see: the first ones, shorter by many decades, would only squeeze them."""
    from matplotlib.ticker import LogLocator, NullFormatter

    assert sol.history is not None
    left, right = step_axes.get_xlim()
    if step_axes.get_xscale() == "linear":
        margin = 0.02 * (right - left)
        left, right = (left + margin, right) if sol.t[-1] >= sol.t[0] else (left, right - margin)
    shown = np.abs(sol.history.h)[(sol.history.t >= left) & (sol.history.t <= right)]
    if shown.size:
        low, high = 0.5 * shown.min(), 2.0 * shown.max()
        if high < 100.0 * low:  # two powers of ten to read the axis by
            low, high = 10.0 ** np.floor(np.log10(shown.min())), 10.0 ** np.ceil(np.log10(shown.max()) + 1e-9)
        step_axes.set_ylim(low, high)
    step_axes.yaxis.set_major_locator(LogLocator(numticks=5))
    step_axes.yaxis.set_minor_formatter(NullFormatter())


def _mark_events(sol: daedal.Solution, state_axes: list[Axes]) -> None:
    """A dotted line through all panels at each event, with a marker on top of the first."""
    names = list(dict.fromkeys(event.name for event in sol.events))
    if len(sol.events) <= _MANY_EVENTS:
        for axes in state_axes:
            for event in sol.events:
                axes.axvline(event.t, color=FAINT, linewidth=0.8, linestyle=":", zorder=1)
    first = state_axes[0]
    for k, name in enumerate(names):
        times = [event.t for event in sol.events if event.name == name]
        first.plot(
            times,
            np.ones(len(times)),
            transform=first.get_xaxis_transform(),
            color=INK,
            linestyle="",
            marker=_MARKERS[k % len(_MARKERS)],
            markersize=4,
            clip_on=False,
            label=" " + name if name.startswith("_") else name,
        )


def _notes(sol: daedal.Solution, note: str) -> str:
    ended = "" if sol.success else f"{sol.status} at t = {sol.t[-1]:g}"
    return "; ".join(text for text in (note, ended) if text)


def _finish(figure: Figure, all_axes: list[Axes], xlabel: str, title: str | None, note: str) -> None:
    for axes in all_axes:
        lowest = not any(_is_below(other, axes) for other in all_axes)
        axes.tick_params(labelbottom=lowest)
        if lowest:
            axes.set_xlabel(label(xlabel))
    figure.align_ylabels(all_axes)
    if title:
        figure.suptitle(title, x=0.01, ha="left", fontsize=11, fontweight="bold")
        figure.text(0.99, 0.98, note, ha="right", va="top", color=FAINT, fontsize=8)
    elif note:
        figure.suptitle(note, x=0.01, ha="left", color=FAINT, fontsize=8)


def _place(axes: Axes) -> Any:
    """The place of a panel in the grid."""
    return axes.get_subplotspec()


def _is_below(axes: Axes, other: Axes) -> bool:
    return _place(axes).colspan == _place(other).colspan and _place(axes).rowspan.start > _place(other).rowspan.start
