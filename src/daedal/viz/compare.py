"""The plots of a comparison: every run in a chart of dots, work against precision, errors over time."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import daedal
from daedal.viz.solution import _new_figure
from daedal.viz.style import COLOURS, FAINT, LINES, STYLE

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MARKERS = ("o", "s", "D", "^", "v", "P", "X", "<", ">", "*")
_ROW = 0.21  # inches
_LARGE = 1e6  # errors beyond this are drawn there, as arrows
_SMALL = 1e-17


def plot_comparison(
    comparison: Any,
    *,
    kind: str = "auto",
    title: str | None = None,
    save: str | Path | None = None,
    pyplot: bool = True,
) -> Figure:
    """Plot what :func:`daedal.compare` found.

    Parameters
    ----------
    comparison : Comparison
    kind : {"auto", "runs", "work", "time"}
        A chart with errors, drift and cost of every run; errors against seconds and against calls of the functions, a
        line for every pair (the choice for several tolerances); or errors over time.
    title : str, optional
        Heading; that of the comparison by default.
    save : path, optional
        Write the figure to this file; the ending decides the format.
    pyplot : bool
        Whether ``matplotlib.pyplot`` is to know the figure.

    Returns
    -------
    matplotlib.figure.Figure
    """
    import matplotlib

    if kind not in ("auto", "runs", "work", "time"):
        raise daedal.InvalidProblemError(f"kind={kind!r} is not known; choose one of auto, runs, work, time")
    rows = [row for row in comparison.rows if row.status != "impossible"]
    if not rows:
        raise daedal.InvalidProblemError("no run of the comparison was possible; there is nothing to plot")
    if kind == "auto":
        kind = "work" if len({row.rtol for row in rows}) > 1 else "runs"
    if kind != "runs":
        rows = [row for row in rows if row.success]
        if not rows:
            raise daedal.InvalidProblemError("no run of the comparison reached the end; kind='runs' shows how far")
    size = {"runs": (9.0, 1.05 + _ROW * len(rows)), "work": (8.6, 3.6), "time": (7.6, 3.6)}[kind]
    figure = _new_figure(size, pyplot)
    with matplotlib.rc_context(STYLE):
        figure.set_layout_engine("constrained", h_pad=0.04, w_pad=0.06)
        {"runs": _chart, "work": _work, "time": _over_time}[kind](figure, rows)
        heading = comparison.title if title is None else title
        if heading:
            figure.suptitle(heading, x=0.01, ha="left", fontsize=10.0, fontweight="bold")
        figure.draw_without_rendering()
        if save is not None:
            Path(save).parent.mkdir(parents=True, exist_ok=True)
            figure.savefig(save)
    return figure


def _chart(figure: Figure, rows: list[Any]) -> None:
    """A line for every run, with its errors, drift, steps and time."""
    several = len({row.rtol for row in rows}) > 1
    names = [_name(row) + (f", {row.rtol:.0e}" if several and row.rtol else "") for row in rows]
    panels = figure.subplots(1, 4, sharey=True, gridspec_kw={"width_ratios": (1.5, 1.2, 0.8, 0.8)})
    contents = (
        ("relative error", (("q", "error_q"), ("v", "error_v"), ("λ", "error_lam"))),
        ("drift", (("g", "drift_position"), ("g'", "drift_velocity"))),
        ("steps", (("", "steps"),)),
        ("milliseconds", (("", "seconds"),)),
    )
    y = np.arange(len(rows))
    for axes, (heading, columns) in zip(panels, contents, strict=True):
        for i, (name, attribute) in enumerate(columns):
            values = np.array([float(getattr(row, attribute)) for row in rows])
            if attribute == "seconds":
                values = 1e3 * values
            _dots(axes, values, y, i, name)
        axes.set_xscale("log")
        axes.grid(axis="y", alpha=0.6)
        axes.set_title(heading, loc="left")
        axes.tick_params(axis="y", length=0)
        if len(columns) > 1:
            axes.legend(loc="lower right", bbox_to_anchor=(1.03, 0.985), ncols=3, handletextpad=0.0, columnspacing=0.6)
    for k, row in enumerate(rows):
        if not row.success:
            panels[0].annotate("failed", (0.02, k), xycoords=("axes fraction", "data"), va="center", color=FAINT)
    panels[0].set_yticks(y, names)
    panels[0].set_ylim(len(rows) - 0.4, -0.6)


def _dots(axes: Axes, values: np.ndarray, y: np.ndarray, i: int, name: str) -> None:
    known = ~np.isnan(values)
    beyond = known & (values > _LARGE) if name else np.zeros_like(known)
    inside = known & ~beyond
    options: dict[str, Any] = {"color": COLOURS[i], "linestyle": "none", "markersize": 5.0}
    if np.any(inside):
        label = name or None
        axes.plot(np.maximum(values[inside], _SMALL), y[inside], marker=_MARKERS[i], label=label, **options)
    if np.any(beyond):
        axes.plot(np.full(int(beyond.sum()), _LARGE), y[beyond], marker=">", **options)


def _work(figure: Figure, rows: list[Any]) -> None:
    """Errors against cost, one line for every pair."""
    panels = figure.subplots(1, 2, sharey=True)
    lines = list(dict.fromkeys(_name(row) for row in rows))
    for i, name in enumerate(lines):
        own = [row for row in rows if _name(row) == name]
        error = [max(_finite(row.error_q), _finite(row.error_v), _SMALL) for row in own]
        colour, dash = LINES[i % len(LINES)]
        for axes, cost in zip(panels, ([1e3 * row.seconds for row in own], [row.evaluations for row in own])):
            axes.loglog(
                cost, error, color=colour, linestyle=dash, marker=_MARKERS[i % len(_MARKERS)], markersize=4.5, label=name
            )
    panels[0].set_ylabel("relative error of q and v")
    panels[0].set_xlabel("milliseconds")
    panels[1].set_xlabel("calls of the functions")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside right upper")


def _over_time(figure: Figure, rows: list[Any]) -> None:
    axes = figure.subplots()
    for i, row in enumerate(rows):
        colour, dash = LINES[i % len(LINES)]
        error = np.clip(np.array(row.error, dtype=float), _SMALL, _LARGE)
        error[error <= _SMALL] = np.nan
        single = len(row.t) == 1
        label = _name(row) + (f", {row.rtol:.0e}" if row.rtol and len({one.rtol for one in rows}) > 1 else "")
        marks = {"marker": _MARKERS[i % len(_MARKERS)], "markersize": 4.0, "markevery": max(1, len(row.t) // 8)}
        axes.semilogy(row.t, error, color=colour, linestyle="none" if single else dash, label=label, **marks)
    axes.set_xlabel("t")
    axes.set_ylabel("relative error of q and v")
    figure.legend(*axes.get_legend_handles_labels(), loc="outside right upper")


def _name(row: Any) -> str:
    return f"{row.formulation} + {row.method}"


def _finite(value: float) -> float:
    if math.isnan(value):
        return 0.0
    return min(value, _LARGE)
