"""Eigenvalues in the complex plane."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from daedal.viz.figure import new_figure
from daedal.viz.style import FAINT, LINES

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def plot_eigenvalues(
    eigenvalues: Any, *, title: str | None = None, save: str | Path | None = None, pyplot: bool = True
) -> Figure:
    """Plot eigenvalues: those to the right of the vertical line belong to motions that grow.

    Parameters
    ----------
    eigenvalues : array of complex
        The eigenvalues.
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
    >>> [axes.get_xlabel() for axes in daedal.viz.plot_eigenvalues([1j, -1j, -0.5]).axes]
    ['real part']
    """
    values = np.asarray(eigenvalues, dtype=complex)
    size = max(float(np.max(np.abs(values), initial=0.0)), 1e-300)
    growing = values.real > 1e-7 * size
    with new_figure((4.5, 3.6), pyplot, save, title) as figure:
        axes = figure.add_subplot()
        axes.axvline(0.0, color=FAINT)
        axes.axhline(0.0, color=FAINT)
        for chosen, (colour, _), marker, label in (
            (~growing, LINES[0], "o", "fades or stays"),
            (growing, LINES[1], "D", "grows"),
        ):
            if np.any(chosen):
                axes.plot(values.real[chosen], values.imag[chosen], marker, color=colour, label=label)
        low, high = axes.get_xlim()
        reach = 0.05 * size
        axes.set_xlim(min(low, -reach), max(high, reach))
        axes.set_xlabel("real part")
        axes.set_ylabel("imaginary part")
        if np.any(growing):
            axes.legend(loc="best")
    return figure
