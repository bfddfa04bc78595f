"""Plots of comparisons: dot chart of runs, work-precision diagram, errors over time."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import daedal
from daedal.viz.figure import COLOURS, FAINT, check_choice, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MARKERS = ("o", "s", "D", "^", "v", "P", "X", "<", ">", "*")
_DASHES: tuple[Any, ...] = ("-", (0, (4.5, 1.6)), (0, (1.2, 1.4)), (0, (6.0, 1.5, 1.2, 1.5)))
_ROW = 0.21  # height of a row in inches
_LARGE = 1e6  # errors above this value are drawn as arrows at this value
_SMALL = 1e-17  # errors below this value are drawn at this value


def plot_comparison(
    comparison: Any,
    *,
    kind: str = "auto",
    title: str | None = None,
    save: str | Path | None = None,
    pyplot: bool = True,
) -> Figure:
    """Plot the result of :func:`daedal.compare`.

    Parameters
    ----------
    comparison : Comparison
        Result of :func:`daedal.compare`.
    kind : {"auto", "runs", "work", "time"}
        "runs" is a chart with the errors, drift and cost of every run (default for one tolerance), "work" a
        work-precision diagram of errors against seconds and function calls with a line for every formulation and
        method (default for several tolerances), "time" shows errors over time.
    title : str, optional
        Heading; by default that of the comparison.
    save, pyplot
        As for :func:`daedal.viz.plot_solution`.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> import daedal
    >>> pendulum = daedal.MechanicalSystem(
    ...     1.0, lambda t, q, v: [0.0, -9.81], lambda t, q: [q[0] ** 2 + q[1] ** 2 - 1.0], n_q=2, n_constraints=1
    ... )
    >>> found = daedal.compare(
    ...     pendulum, (0.0, 0.5), ([1.0, 0.0], [0.0, 0.0]), formulations=["ggl"], methods=["dassl"], rtol=[1e-4, 1e-6]
    ... )
    >>> figure = daedal.viz.plot_comparison(found, pyplot=False)
    >>> len(figure.axes) > 0
    True
    """
    check_choice("kind", kind, ("auto", "runs", "work", "time"))
    rows = [row for row in comparison.rows if row.status != "impossible"]
    if not rows:
        raise daedal.InvalidProblemError("no run of the comparison was possible; there is nothing to plot")
    if kind == "auto":
        kind = "work" if len({row.rtol for row in rows}) > 1 else "runs"
    if kind != "runs":
        rows = [row for row in rows if row.success]
        if not rows:
            raise daedal.InvalidProblemError(
                "no run of the comparison reached the end; use kind='runs' to show the failed runs"
            )
    size = {"runs": (9.0, 1.05 + _ROW * len(rows)), "work": (8.6, 3.6), "time": (7.6, 3.6)}[kind]
    with new_figure(size, pyplot, save, comparison.title if title is None else title) as figure:
        {"runs": _chart, "work": _work, "time": _over_time}[kind](figure, rows)
    return figure


def plot_work_precision(comparison: Any, **options: Any) -> Figure:
    """Plot errors against seconds and against function calls, with a line for every formulation and method.

    Parameters
    ----------
    comparison : Comparison
        Result of :func:`daedal.compare` with several tolerances.
    **options
        Options of :func:`daedal.viz.plot_comparison`.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> import daedal
    >>> model = daedal.library.planar_pendulum()
    >>> found = daedal.compare(
    ...     model.problem, (0.0, 1.0), model.initial, formulations=["ggl"], methods=["dassl"], rtol=[1e-4, 1e-6]
    ... )
    >>> len(daedal.viz.plot_work_precision(found).axes)
    2
    """
    return plot_comparison(comparison, kind="work", **options)


def _chart(figure: Figure, rows: list[Any]) -> None:
    """Plot one row per run, with errors, drift, steps and time."""
    several = len({row.rtol for row in rows}) > 1
    names = [_name(row) + (f", {row.rtol:.0e}" if several and row.rtol else "") for row in rows]
    panels = figure.subplots(1, 4, sharey=True, gridspec_kw={"width_ratios": (1.5, 1.2, 0.8, 0.8)})
    contents = (
        ("relative error", (("q", "error_q"), ("v", "error_v"), ("λ", "error_lam"))),
        ("drift", (("g", "drift_position"), ("g'", "drift_velocity"))),
        ("steps", (("", "steps"),)),
        ("milliseconds", (("", "seconds"),)),
    )
    for axes, (heading, columns) in zip(panels, contents, strict=True):
        values = np.array([[float(getattr(row, attribute)) for row in rows] for _, attribute in columns])
        _dots(axes, 1e3 * values if heading == "milliseconds" else values, [name for name, _ in columns])
        axes.set_title(heading, loc="left")
        axes.tick_params(axis="y", length=0)
    for k, row in enumerate(rows):
        if not row.success:
            where = {"xycoords": ("axes fraction", "data"), "va": "center", "color": FAINT, "fontsize": 8.0}
            panels[0].annotate("failed", (0.02, k), **where)
    panels[0].set_yticks(np.arange(len(rows)), names)
    panels[0].set_ylim(len(rows) - 0.4, -0.6)


def _dots(axes: Axes, values: np.ndarray, names: list[str]) -> None:
    """Plot the columns of a panel as dots, slightly offset; values out of range as arrows at the edge."""
    count, lines = values.shape
    errors = bool(names[0])
    shown = np.clip(values, _SMALL, _LARGE) if errors else values
    for i, name in enumerate(names):
        y = np.arange(lines) + 0.2 * (i - 0.5 * (count - 1))
        beyond = values[i] > _LARGE if errors else np.zeros(lines, dtype=bool)
        known = ~np.isnan(values[i])
        options: dict[str, Any] = {"color": COLOURS[i], "linestyle": "none", "markersize": 4.6}
        if np.any(known):
            inside = known & ~beyond
            axes.plot(shown[i][inside], y[inside], marker=_MARKERS[i], label=name, **options)
            axes.plot(shown[i][beyond], y[beyond], marker=">", **options)
    known_values = shown[~np.isnan(shown)]
    if errors:
        axes.set_xscale("log")
        _decades(axes, known_values)
        if axes.get_legend_handles_labels()[1]:
            place: dict[str, Any] = {"loc": "lower right", "bbox_to_anchor": (1.03, 0.985)}
            axes.legend(**place, ncols=3, handletextpad=0.0, columnspacing=0.6)
    elif known_values.size:
        axes.set_xlim(0.0, 1.05 * (known_values.max() or 1.0))


def _decades(axes: Axes, values: np.ndarray) -> None:
    """Set the limits of a logarithmic axis to powers of ten, with few ticks."""
    from matplotlib.ticker import LogLocator, NullFormatter

    positive = values[values > 0.0]
    if positive.size:
        low, high = math.floor(math.log10(positive.min()) - 0.1), math.ceil(math.log10(positive.max()) + 0.1)
        axes.set_xlim(10.0**low, 10.0**high)
    axes.xaxis.set_major_locator(LogLocator(numticks=4))
    axes.xaxis.set_minor_formatter(NullFormatter())


def _work(figure: Figure, rows: list[Any]) -> None:
    """Plot errors against cost, with one line per formulation and method."""
    from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

    panels = figure.subplots(1, 2, sharey=True)
    pairs = list(dict.fromkeys((row.formulation, row.method) for row in rows))
    for pair in pairs:
        own = [row for row in rows if (row.formulation, row.method) == pair]
        error = [max(_finite(row.error_q), _finite(row.error_v), _SMALL) for row in own]
        costs = ([1e3 * row.seconds for row in own], [row.evaluations for row in own])
        for axes, cost in zip(panels, costs, strict=True):
            axes.loglog(cost, error, label=_name(own[0]), markersize=4.5, **_style(rows, own[0]))
    for axes, name in zip(panels, ("milliseconds", "calls of the functions"), strict=True):
        axes.set_xlabel(name)
        axes.margins(x=0.06)
        low, high = axes.get_xlim()
        if high < 300.0 * low:
            axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if high < 60.0 * low else (1.0, 3.0)))
        axes.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
        axes.xaxis.set_minor_formatter(NullFormatter())
    panels[0].set_ylabel("relative error of q and v")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside right upper", handlelength=3.0)


def _over_time(figure: Figure, rows: list[Any]) -> None:
    axes = figure.subplots()
    several = len({row.rtol for row in rows}) > 1
    for row in rows:
        error = np.clip(np.array(row.error, dtype=float), _SMALL, _LARGE)
        error[error <= _SMALL] = np.nan
        marks = _style(rows, row) | {"markersize": 4.0, "markevery": max(1, len(row.t) // 8)}
        label = _name(row) + (f", {row.rtol:.0e}" if row.rtol and several else "")
        axes.semilogy(row.t, error, label=label, **marks)
    axes.set_xlabel("t")
    axes.set_ylabel("relative error of q and v")
    figure.legend(*axes.get_legend_handles_labels(), loc="outside right upper", handlelength=3.0)


def _style(rows: list[Any], row: Any) -> dict[str, Any]:
    """Colour and marker by formulation, line style by method."""
    formulation = list(dict.fromkeys(one.formulation for one in rows)).index(row.formulation)
    method = list(dict.fromkeys(one.method for one in rows)).index(row.method)
    return {
        "color": (*COLOURS, FAINT)[formulation % (len(COLOURS) + 1)],
        "marker": _MARKERS[formulation % len(_MARKERS)],
        "linestyle": _DASHES[method % len(_DASHES)],
    }


def _name(row: Any) -> str:
    return f"{row.formulation} + {row.method}"


def _finite(value: float) -> float:
    if math.isnan(value):
        return 0.0
    return min(value, _LARGE)
