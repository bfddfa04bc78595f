"""Figures of Wunderlich's thesis."""

from typing import Any

import numpy as np

from daedal.reproduce.second_order import controlled_run, dassl_run
from daedal.viz.style import COLOURS, FAINT


def draw_multipliers(figure: Any, result: Any) -> None:
    """Figures 8.1 and 8.2: lambda of modified BDF and of DASSL at their steps, and the errors."""
    left, right = figure.subplots(1, 2)
    t = np.linspace(0.0, 1.0, 201)
    left.plot(t, np.sin(t) * np.cos(t), color=FAINT, label="exact")
    every: dict[str, Any] = {"t_eval": None}
    for i, (label, sol, row) in enumerate(
        (("modified BDF", controlled_run("8.1", **every), 2), ("DASSL", dassl_run("8.1", **every), 4))
    ):
        values = (sol.x if i == 0 else sol.y)[row]
        style = {"color": COLOURS[2 * i], "marker": "os"[i], "markersize": 3.0, "linewidth": 0.9, "label": label}
        left.plot(sol.t, values, **style)
        right.semilogy(sol.t[1:], np.abs(values - np.sin(sol.t) * np.cos(sol.t))[1:], **style)
    left.set(xlabel="$t$", ylabel=r"$\lambda$")
    right.set(xlabel="$t$", ylabel=r"error of $\lambda$")
    left.legend()


FIGURES = {"fig-8.1": ("Figures 8.1 and 8.2: the multiplier and its error, at all steps", draw_multipliers)}
