"""Fits as pictures: measurements and model, residuals, and bands of uncertainty."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import daedal
from daedal.messages import unknown_name
from daedal.viz.figure import WIDTH, new_figure
from daedal.viz.labels import label
from daedal.viz.style import FAINT, LINES
from daedal.viz.view import time_scale

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_PANEL = 1.9  # inches
_FINE = 400  # points of a curve


def plot_fit(
    fit: Any, *, bands: bool = True, title: str | None = None, save: str | Path | None = None, pyplot: bool = True
) -> Figure:
    """Plot measurements as points and the fitted model as curves, one panel for each measured quantity.

    Parameters
    ----------
    fit : Fit
        What :func:`daedal.fit` returned.
    bands : bool
        Shade what the uncertainty of the estimates makes of the curves (two standard deviations), for variables.
    title : str, optional
    save : path, optional
        Write the figure to this file.
    pyplot : bool
        Whether ``matplotlib.pyplot`` is to know the figure.

    Returns
    -------
    matplotlib.figure.Figure
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
    """A logarithmic axis where times are spread over decades."""
    axes.set_xlabel("t")
    axes.set_xscale(time_scale(np.unique(t[t > 0.0]) if np.any(t > 0.0) else t))


def _fine(interval: tuple[float, float], measured: np.ndarray) -> np.ndarray:
    """Times at which a curve is smooth on a linear and on a logarithmic axis."""
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
    """Plot weighted residuals over time, one panel for each measured quantity, and their distribution beside it.

    Residuals of a model that is right scatter about zero without a pattern.

    Parameters
    ----------
    fit : Fit
        What :func:`daedal.fit` returned.
    title, save, pyplot
        As for :func:`plot_fit`.

    Returns
    -------
    matplotlib.figure.Figure
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
    """Plot variables with bands in which they lie with probability `level`, to first order.

    Parameters
    ----------
    found : Uncertainty
        What :func:`daedal.uncertainty` returned.
    *names : str
        Variables; all of them by default.
    level : float
        Probability of the band.
    title, save, pyplot
        As for :func:`plot_fit`.

    Returns
    -------
    matplotlib.figure.Figure
    """
    from scipy.stats import norm

    if not 0.0 < level < 1.0:
        raise daedal.InvalidProblemError(f"level must lie between 0 and 1, got {level!r}")
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
