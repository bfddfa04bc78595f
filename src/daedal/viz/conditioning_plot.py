"""Conditioning over time: how much perturbations grow, and which index the problem has in effect."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

import daedal
from daedal.viz.figure import WIDTH, new_figure
from daedal.viz.style import FAINT, LINES

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_HEIGHTS = (2.0, 1.1)  # inches, of a panel with factors and of the one with indices
_SOURCES = {"x(0)": "initial values", "p": "p, forces", "q": "q, constraints", "q'": "q', their rate"}
_DECADES = 12  # below the largest factor; smaller ones do not matter


def plot_conditioning(
    found: daedal.Conditioning, *, title: str | None = None, save: str | Path | None = None, pyplot: bool = True
) -> Figure:
    """Plot how much perturbations that act up to time t have grown, and the index along the solution.

    Parameters
    ----------
    found : Conditioning
        What :func:`daedal.conditioning` returned.
    title : str, optional
        Heading of the figure.
    save : path, optional
        Write the figure to this file; the ending decides the format.
    pyplot : bool
        Whether ``matplotlib.pyplot`` is to know the figure.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> import daedal
    >>> found = daedal.conditioning(daedal.library.nearly_index2().problem, (0.0, 1.0), points=11)
    >>> [axes.get_ylabel() for axes in daedal.viz.plot_conditioning(found).axes]
    ['moves x by', 'moves y by', 'index']
    """
    effects = [effect for effect in ("x", "y") if any(own == effect for own, _ in found.amplification)]
    heights = [_HEIGHTS[0]] * len(effects) + [_HEIGHTS[1]]
    with new_figure((WIDTH, sum(heights)), pyplot, save, title) as figure:
        grid = figure.add_gridspec(len(heights), 1, height_ratios=heights)
        panels: list[Axes] = []
        for k in range(len(heights)):
            panels.append(figure.add_subplot(grid[k], sharex=panels[0] if panels else None))
        for axes, effect in zip(panels, effects, strict=False):
            _factors(axes, found, effect)
            axes.tick_params(labelbottom=False)
        _indices(panels[-1], found)
        if effects:
            panels[0].legend(loc="upper left", bbox_to_anchor=(1.0, 1.02), title="perturbation of size 1 in")
        figure.align_ylabels(panels)
    return figure


def _factors(axes: Axes, found: daedal.Conditioning, effect: str) -> None:
    curves = {source: found.amplification.get((effect, source)) for source in _SOURCES}
    known = [curve[np.isfinite(curve)] for curve in curves.values() if curve is not None]
    largest = max((float(np.max(curve, initial=0.0)) for curve in known), default=0.0)
    for (colour, dashes), (source, curve) in zip(LINES, curves.items(), strict=False):
        if curve is None:
            continue
        shown = np.where(np.isfinite(curve) & (curve > largest * 10.0**-_DECADES), curve, np.nan)
        axes.plot(found.t, shown, color=colour, linestyle=dashes, label=_SOURCES[source])
    axes.set_ylabel(f"moves {effect} by")
    if largest > 0.0:
        axes.set_yscale("log")


def _indices(axes: Axes, found: daedal.Conditioning) -> None:
    axes.step(found.t, found.formal_indices, where="mid", color=FAINT, linewidth=2.5, label="as it stands")
    axes.step(found.t, found.indices, where="mid", color=LINES[0][0], label="in effect")
    highest = np.nanmax(np.concatenate([found.indices, found.formal_indices, [1.0]]))
    axes.set_ylim(-0.3, highest + 0.5)
    axes.set_yticks(range(int(highest) + 1))
    axes.set_ylabel("index")
    axes.set_xlabel("t")
    axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.02))
