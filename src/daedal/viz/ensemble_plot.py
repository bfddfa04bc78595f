"""Plots of ensembles: bands of quantiles, all runs as lines, outputs against parameters."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import daedal
from daedal.messages import unknown_name
from daedal.tabular import plural
from daedal.viz.figure import WIDTH, check_choice, new_figure
from daedal.viz.labels import label
from daedal.viz.style import COLOURS, FAINT

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_KINDS = ("auto", "bands", "lines", "scatter")
_MOST_LINES = 200
_MOST_PANELS = 8
_MOST_POINTS = 5000
_HEIGHT = 1.6  # inches, of a panel


def plot_ensemble(
    ensemble: Any,
    kind: str = "auto",
    *,
    variables: Sequence[str] | None = None,
    against: Sequence[str] | None = None,
    title: str | None = None,
    save: str | Path | None = None,
    pyplot: bool = True,
) -> Figure:
    """Plot what :func:`daedal.solve_many` returned.

    Parameters
    ----------
    ensemble : Ensemble
    kind : {"auto", "bands", "lines", "scatter"}
        Quantiles over time (5 to 95 and 25 to 75 per cent, and the median), at most 200 runs as lines, or final values
        and outputs against what varies, a panel for each pair. "auto" is bands where there are output times.
    variables : sequence of str, optional
        Names of variables or outputs; the first eight by default.
    against : sequence of str, optional
        Names of what varies, for "scatter"; all of it by default, at most eight.
    title, save, pyplot
        As in :func:`daedal.viz.plot_solution`.

    Returns
    -------
    matplotlib.figure.Figure
    """
    check_choice("kind", kind, _KINDS)
    over_time = _series(ensemble)
    if kind == "auto":
        kind = "bands" if over_time else "scatter"
    if kind == "scatter":
        return _scatter(ensemble, variables, against, title, save, pyplot)
    if not over_time:
        raise daedal.InvalidProblemError(f"kind={kind!r} needs values over time: call solve_many with t_eval")
    names = _chosen(over_time, variables, "variables")
    size = (WIDTH, _HEIGHT * len(names) + 0.5)
    with new_figure(size, pyplot, save, title) as figure:
        axes = figure.subplots(len(names), 1, sharex=True, squeeze=False)[:, 0]
        for axis, name in zip(axes, names):
            (_bands if kind == "bands" else _lines)(axis, ensemble.t, over_time[name])
            axis.set_ylabel(label(name))
        if kind == "bands":
            axes[0].legend(loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=3)
        axes[-1].set_xlabel("t")
        _tell(figure, ensemble)
    return figure


def _series(ensemble: Any) -> dict[str, np.ndarray]:
    """What has values over time, by name: shape (members, nt)."""
    if ensemble.t is None:
        return {}
    found = (
        {name: ensemble.arrays["y"][:, k] for k, name in enumerate(ensemble.names)} if "y" in ensemble.arrays else {}
    )
    timed = {n: v for n, v in ensemble.outputs.items() if v.ndim == 2 and v.shape[1] == ensemble.t.size}
    return _of_those_that_came_through(ensemble, found | timed)


def _of_those_that_came_through(ensemble: Any, rows: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The same with nan for members that failed: what they had reached is no result."""
    good = np.isin(ensemble.status, ("finished", "event"))
    if good.all():
        return rows
    return {name: np.where(good.reshape(-1, *[1] * (values.ndim - 1)), values, np.nan) for name, values in rows.items()}


def _tell(figure: Figure, ensemble: Any) -> None:
    """How many members are not shown, and why."""
    missing = int(np.sum(~np.isin(ensemble.status, ("finished", "event"))))
    if missing:
        words = (
            f"{missing} of {plural(ensemble.members, 'member')} failed and {'is' if missing == 1 else 'are'} not shown"
        )
        figure.text(0.995, 0.002, words, ha="right", va="bottom", fontsize="small", color=FAINT)


def _chosen(known: dict[str, np.ndarray], names: Sequence[str] | None, option: str) -> list[str]:
    if names is None:
        return list(known)[:_MOST_PANELS]
    unknown = [name for name in ([names] if isinstance(names, str) else names) if name not in known]
    if unknown:
        raise unknown_name(unknown[0], known, "quantity", option)
    return [names] if isinstance(names, str) else list(names)


def _bands(axis: Axes, t: np.ndarray, values: np.ndarray) -> None:
    with np.errstate(invalid="ignore"):
        known = np.isfinite(values).any(axis=0)
        levels = np.full((5, t.size), np.nan)
        levels[:, known] = np.nanquantile(values[:, known], [0.05, 0.25, 0.5, 0.75, 0.95], axis=0)
    axis.fill_between(t, levels[0], levels[4], color=COLOURS[0], alpha=0.18, lw=0, label="5 to 95 %")
    axis.fill_between(t, levels[1], levels[3], color=COLOURS[0], alpha=0.35, lw=0, label="25 to 75 %")
    axis.plot(t, levels[2], color=COLOURS[0], label="median")


def _lines(axis: Axes, t: np.ndarray, values: np.ndarray) -> None:
    rows = np.unique(np.linspace(0, values.shape[0] - 1, min(values.shape[0], _MOST_LINES)).astype(int))
    alpha = max(0.08, min(1.0, 12.0 / rows.size))
    axis.plot(t, values[rows].T, color=COLOURS[0], lw=0.7, alpha=alpha)


def _scatter(ensemble: Any, variables, against, title, save, pyplot) -> Figure:
    """A matrix of panels: rows are outputs or final values, columns what varies."""
    numbers = {name: values for name, values in ensemble.outputs.items() if values.ndim == 1}
    if not numbers and "final" in ensemble.arrays:
        numbers = {name: ensemble.arrays["final"][:, k] for k, name in enumerate(ensemble.names)}
    numbers = _of_those_that_came_through(ensemble, numbers)
    varying = ensemble.parameters()
    if not numbers or not varying:
        missing = "numbers of each member" if not numbers else "starts or parameters that vary"
        raise daedal.InvalidProblemError(f"kind='scatter' needs {missing}")
    rows, columns = _chosen(numbers, variables, "variables"), _chosen(varying, against, "against")
    places = np.unique(np.linspace(0, ensemble.members - 1, min(ensemble.members, _MOST_POINTS)).astype(int))
    pairs = [[(name, other) for other in columns] for name in rows]
    if len(columns) == 1 and len(rows) > 3:  # two columns of panels in place of a tower
        flat = [pair for line in pairs for pair in line]
        pairs = [flat[k : k + 2] for k in range(0, len(flat), 2)]
    wide = len(pairs[0])
    size = (max(1.9 * wide + 0.8, 6.0), max(_HEIGHT * len(pairs) + 0.5, 3.0))
    with new_figure(size, pyplot, save, title) as figure:
        shared: Any = "row" if len(columns) > 1 else False
        axes = figure.subplots(len(pairs), wide, sharex="col", sharey=shared, squeeze=False)
        for line, panels in zip(pairs, axes):
            for k, axis in enumerate(panels):
                if k >= len(line):
                    axis.set_visible(False)
                    continue
                name, other = line[k]
                alpha = max(0.15, min(0.8, 400.0 / places.size))
                points = {"s": 6, "lw": 0, "alpha": alpha, "color": COLOURS[0]}
                axis.scatter(varying[other][places], numbers[name][places], **points)
                if len(columns) > 1:  # the mean, to compare what the columns do to it
                    axis.axhline(np.nanmean(numbers[name]), color=FAINT, lw=0.6, zorder=0)
                if k == 0 or not shared:
                    axis.set_ylabel(label(name))
        for axis, (_, other) in zip(axes[-1], pairs[-1]):
            axis.set_xlabel(label(other))
        _tell(figure, ensemble)
    return figure
