"""Plots of ensembles and fits: quantile bands, outputs against parameters, residuals, uncertainty."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import daedal
from daedal.common.messages import unknown_name
from daedal.common.tabular import plural
from daedal.viz.figure import COLOURS, FAINT, LINES, WIDTH, check_choice, label, new_figure
from daedal.viz.view import time_scale

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_KINDS = ("auto", "bands", "lines", "scatter")
_MOST_LINES = 200  # largest number of runs drawn as lines
_MOST_PANELS = 8
_MOST_POINTS = 5000  # largest number of dots in a panel
_HEIGHT = 1.6  # panel height in inches


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
    """Plot the result of :func:`daedal.solve_many`.

    Parameters
    ----------
    ensemble : Ensemble
        Result of :func:`daedal.solve_many`.
    kind : {"auto", "bands", "lines", "scatter"}
        "bands" shows quantiles over time (5 to 95 %, 25 to 75 %, median), "lines" up to 200 runs, "scatter" final
        values and outputs against varied parameters, with a panel for each pair. "auto" selects bands if there are
        output times, otherwise scatter.
    variables : sequence of str, optional
        Names of variables or outputs; by default the first eight.
    against : sequence of str, optional
        Names of varied parameters and initial values, for "scatter"; by default the first eight.
    title, save, pyplot
        As for :func:`daedal.viz.plot_solution`.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> import numpy as np
    >>> import daedal
    >>> decay = daedal.ImplicitDAE(lambda t, y, yp, p: [yp[0] + p["k"] * y[0]], 1, params={"k": 1.0})
    >>> runs = daedal.solve_many(decay, (0.0, 1.0), ([1.0], None), params={"k": np.linspace(0.5, 2.0, 20)})
    >>> figure = daedal.viz.plot_ensemble(runs, pyplot=False)
    >>> len(figure.axes) > 0
    True
    """
    check_choice("kind", kind, _KINDS)
    over_time = _series(ensemble)
    if kind == "auto":
        kind = "bands" if over_time else "scatter"
    if kind == "scatter":
        return _scatter(ensemble, variables, against, title, save, pyplot)
    if not over_time:
        raise daedal.InvalidProblemError(f"kind={kind!r} requires values over time. Remedy: pass t_eval to solve_many")
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
        _note_failed(figure, ensemble)
    return figure


def _series(ensemble: Any) -> dict[str, np.ndarray]:
    """Values over time by name, with shape (members, nt)."""
    if ensemble.t is None:
        return {}
    found = (
        {name: ensemble.arrays["y"][:, k] for k, name in enumerate(ensemble.names)} if "y" in ensemble.arrays else {}
    )
    timed = {n: v for n, v in ensemble.outputs.items() if v.ndim == 2 and v.shape[1] == ensemble.t.size}
    return _without_failed(ensemble, found | timed)


def _without_failed(ensemble: Any, rows: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Replace values of failed members by NaN."""
    good = np.isin(ensemble.status, ("finished", "event"))
    if good.all():
        return rows
    return {name: np.where(good.reshape(-1, *[1] * (values.ndim - 1)), values, np.nan) for name, values in rows.items()}


def _note_failed(figure: Figure, ensemble: Any) -> None:
    """Add a note on the number of failed members."""
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
    """Plot a matrix of panels: rows are outputs or final values, columns are varied parameters."""
    numbers = {name: values for name, values in ensemble.outputs.items() if values.ndim == 1}
    if not numbers and "final" in ensemble.arrays:
        numbers = {name: ensemble.arrays["final"][:, k] for k, name in enumerate(ensemble.names)}
    numbers = _without_failed(ensemble, numbers)
    varying = ensemble.parameters()
    if not numbers or not varying:
        missing = "scalar results of each member" if not numbers else "varying initial values or parameters"
        raise daedal.InvalidProblemError(f"kind='scatter' requires {missing}")
    rows, columns = _chosen(numbers, variables, "variables"), _chosen(varying, against, "against")
    places = np.unique(np.linspace(0, ensemble.members - 1, min(ensemble.members, _MOST_POINTS)).astype(int))
    pairs = [[(name, other) for other in columns] for name in rows]
    if len(columns) == 1 and len(rows) > 3:  # two columns of panels instead of a single tall one
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
                if (
                    len(columns) > 1
                ):  # all panels have one scale, so that the influence of the parameters can be compared
                    axis.axhline(np.nanmean(numbers[name]), color=FAINT, lw=0.6, zorder=0)
                if k == 0 or not shared:
                    axis.set_ylabel(label(name))
        for axis, (_, other) in zip(axes[-1], pairs[-1]):
            axis.set_xlabel(label(other))
        _note_failed(figure, ensemble)
    return figure


# --- fits: measurements and model, residuals, and bands of uncertainty ------------------------------------------------

_PANEL = 1.9  # panel height in inches
_FINE = 400  # number of points of a curve


def plot_fit(
    fit: Any, *, bands: bool = True, title: str | None = None, save: str | Path | None = None, pyplot: bool = True
) -> Figure:
    """Plot measurements as points and the fitted model as curves, one panel for each measured quantity.

    Parameters
    ----------
    fit : Fit
        Result of :func:`daedal.fit`.
    bands : bool
        Whether to shade two standard deviations of the variables due to the uncertainty of the estimates.
    title, save, pyplot
        As for :func:`daedal.viz.plot_solution`.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> import daedal
    >>> decay = daedal.ImplicitDAE(lambda t, y, yp, p: [yp[0] + p["k"] * y[0]], 1, params={"k": 1.0}, names=["x"])
    >>> data = {"t": [0.0, 0.5, 1.0, 1.5], "x": [1.0, 0.71, 0.49, 0.36]}
    >>> found = daedal.fit(decay, data, ["k"], initial=([1.0], None))
    >>> figure = daedal.viz.plot_fit(found, pyplot=False)
    >>> len(figure.axes)
    1
    """
    columns = list(dict.fromkeys(column for run in fit.experiments for column in run.columns))
    with new_figure((WIDTH, _PANEL * len(columns) + 0.4), pyplot, save, title) as figure:
        axes = figure.subplots(len(columns), 1, sharex=True, squeeze=False)[:, 0]
        for own, column in zip(axes, columns, strict=True):
            for k, run in enumerate(fit.experiments):
                if column in run.columns:
                    _draw_run(own, fit, k, run, column, LINES[k % len(LINES)][0], bands)
            own.set_ylabel(label(column))
        if len(fit.experiments) > 1:
            axes[0].legend(loc="best", fontsize="small")
        _scale_time(axes[-1], np.concatenate([run.t for run in fit.experiments]))
    return figure


def _scale_time(axes: Any, t: np.ndarray) -> None:
    """Label the time axis; it is logarithmic if times span decades."""
    axes.set_xlabel("t")
    axes.set_xscale(time_scale(np.unique(t[t > 0.0]) if np.any(t > 0.0) else t))


def _fine(interval: tuple[float, float], measured: np.ndarray) -> np.ndarray:
    """Times for a smooth curve on a linear or logarithmic axis."""
    low, high = interval
    times = [np.linspace(low, high, _FINE), measured]
    if np.any(measured > 0.0) and low >= 0.0:
        times.append(np.geomspace(measured[measured > 0.0].min(), high, _FINE))
    return np.unique(np.clip(np.concatenate(times), low, high))


def _draw_run(own: Any, fit: Any, k: int, run: Any, column: str, color: str, bands: bool) -> None:
    row = run.columns.index(column)
    seen = run.weights[row] > 0.0
    own.plot(run.t[seen], run.values[row][seen], "o", color=color, markersize=3.0, alpha=0.7, linestyle="none")
    sol = fit.solutions[k]
    if column in sol.names and sol.dense is not None:
        t = _fine(sol.dense.interval, run.t)
        place = list(sol.names).index(column)
        state = sol(t)
        curve = np.asarray(getattr(state, "y", state))[place]
    else:
        order = np.argsort(run.t)
        t, curve = run.t[order], fit.models[k][row][order]
    own.plot(t, curve, color=color, linewidth=1.2, label=run.name)
    if bands and column in sol.names and np.all(np.isfinite(fit.covariance)):
        reach = 2.0 * fit.uncertainty(k)[column]
        own.fill_between(sol.t, sol[column] - reach, sol[column] + reach, color=color, alpha=0.18, linewidth=0.0)


def plot_fit_residuals(
    fit: Any, *, title: str | None = None, save: str | Path | None = None, pyplot: bool = True
) -> Figure:
    """Plot weighted residuals over time, one panel for each measured quantity, with their distribution.

    Residuals of a correct model scatter about zero without a pattern.

    Parameters
    ----------
    fit : Fit
        Result of :func:`daedal.fit`.
    title, save, pyplot
        As for :func:`daedal.viz.plot_solution`.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> import daedal
    >>> decay = daedal.ImplicitDAE(lambda t, y, yp, p: [yp[0] + p["k"] * y[0]], 1, params={"k": 1.0}, names=["x"])
    >>> data = {"t": [0.0, 0.5, 1.0, 1.5], "x": [1.0, 0.71, 0.49, 0.36]}
    >>> found = daedal.fit(decay, data, ["k"], initial=([1.0], None))
    >>> figure = daedal.viz.plot_fit_residuals(found, pyplot=False)
    >>> len(figure.axes) > 0
    True
    """
    columns = list(dict.fromkeys(column for run in fit.experiments for column in run.columns))
    with new_figure((WIDTH, _PANEL * len(columns) + 0.4), pyplot, save, title) as figure:
        axes = figure.subplots(len(columns), 2, squeeze=False, width_ratios=(3.0, 1.0), sharey="row")
        for (own, side), column in zip(axes, columns, strict=True):
            found = []
            for k, run in enumerate(fit.experiments):
                if column in run.columns:
                    row = run.columns.index(column)
                    seen = run.weights[row] > 0.0
                    scaled = ((fit.models[k][row] - run.values[row]) * run.weights[row])[seen]
                    own.plot(run.t[seen], scaled, "o", color=LINES[k % len(LINES)][0], markersize=3.0, label=run.name)
                    found.append(scaled)
            own.axhline(0.0, color=FAINT, linewidth=0.8)
            own.set_ylabel(label(column))
            side.hist(np.concatenate(found), bins="auto", orientation="horizontal", color=FAINT, alpha=0.6)
            side.tick_params(labelbottom=False)
            if own is not axes[0, 0]:
                own.sharex(axes[0, 0])
        _scale_time(axes[-1, 0], np.concatenate([run.t for run in fit.experiments]))
    return figure


def plot_uncertainty(
    found: Any,
    *names: str,
    level: float = 0.95,
    title: str | None = None,
    save: str | Path | None = None,
    pyplot: bool = True,
) -> Figure:
    """Plot variables with bands that contain the true values with probability `level`, to first order.

    Parameters
    ----------
    found : Uncertainty
        Result of :func:`daedal.sensitivity.uncertainty`.
    *names : str
        Names of variables; by default all.
    level : float
        Probability that the bands contain the true values.
    title, save, pyplot
        As for :func:`daedal.viz.plot_solution`.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> import daedal
    >>> decay = daedal.ImplicitDAE(lambda t, y, yp, p: [yp[0] + p["k"] * y[0]], 1, params={"k": 1.0}, names=["x"])
    >>> data = {"t": [0.0, 0.5, 1.0, 1.5], "x": [1.0, 0.71, 0.49, 0.36]}
    >>> found = daedal.fit(decay, data, ["k"], initial=([1.0], None))
    >>> figure = daedal.viz.plot_uncertainty(found.uncertainty(), pyplot=False)
    >>> len(figure.axes)
    1
    """
    from scipy.stats import norm

    if not 0.0 < level < 1.0:
        raise daedal.InvalidProblemError(f"level={level!r} must lie between 0 and 1")
    sol = found.solution
    unknown = [name for name in names if name not in sol.names]
    if unknown:
        raise unknown_name(unknown[0], sol.names)
    shown, factor = list(names) or list(sol.names), float(norm.ppf(0.5 + 0.5 * level))
    with new_figure((WIDTH, _PANEL * len(shown) + 0.4), pyplot, save, title) as figure:
        axes = figure.subplots(len(shown), 1, sharex=True, squeeze=False)[:, 0]
        for own, name in zip(axes, shown, strict=True):
            middle, reach = sol[name], factor * found[name]
            own.fill_between(sol.t, middle - reach, middle + reach, color=LINES[0][0], alpha=0.2, linewidth=0.0)
            own.plot(sol.t, middle, color=LINES[0][0], linewidth=1.2)
            own.set_ylabel(label(name))
        _scale_time(axes[-1], sol.t)
    return figure
