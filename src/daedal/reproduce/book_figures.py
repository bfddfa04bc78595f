"""Figures of sections 6.3 and 6.5 of Brenan, Campbell and Petzold."""

import math
from typing import Any

import numpy as np

import daedal
from daedal import library
from daedal.reproduce.book import solve_tppc2
from daedal.reproduce.book_levels import flame_curves
from daedal.viz.style import COLOURS


def draw_controls(figure: Any, result: Any) -> None:
    """Figures 6.3.3 and 6.3.4: the controls of the trajectory of index 2, and the prescribed paths."""
    sol, _ = solve_tppc2("relative", 1, 1e-8)
    state = dict(zip(sol.names, sol.y * 180.0 / math.pi))
    places = figure.subplots(1, 2)
    for place, names in zip(places, ((("alpha", "α"), ("beta", "β")), (("gamma", "γ"), ("A", "azimuth A")))):
        for i, (name, label) in enumerate(names):
            place.plot(sol.t, state[name], color=COLOURS[2 * i], label=label)
        place.set(xlabel="$t$ (s)", ylabel="degrees")
        place.legend()


def draw_drag(figure: Any, result: Any) -> None:
    """Figures 6.3.5 and 6.3.6: the drag acceleration over the speed, and the bank angle."""
    model = library.tppc3()
    sol = daedal.solve(model.problem, model.t_span, model.initial, method="dassl", rtol=1e-9, atol=1e-9)
    state = dict(zip(model.problem.names, sol.y))
    left, right = figure.subplots(1, 2)
    *_, c0, c1, c2, c3, start = model.problem.params
    w = state["V"] - start
    left.plot(state["V"], c0 + w * (c1 + w * (c2 + w * c3)), color=COLOURS[0])
    left.set(xlabel="$V$ (ft/s)", ylabel="drag acceleration (ft/s²)")
    right.plot(sol.t, np.degrees(state["beta"]), color=COLOURS[2])
    right.set(xlabel="$t$ (s)", ylabel="bank angle (degrees)")


def draw_flame(figure: Any, result: Any) -> None:
    """Figure 6.5.2: the temperature at intervals of 0.0029."""
    x, temperature = flame_curves()
    axes = figure.add_subplot()
    axes.plot(x, temperature, color=COLOURS[0], linewidth=0.5)
    axes.set(xlabel="$x$", ylabel="$T$")


FIGURES = {
    "fig-6.3.3": ("Figures 6.3.3 and 6.3.4: control histories, prescribed paths", draw_controls),
    "6.3.3": ("Figures 6.3.5 and 6.3.6: drag acceleration profile, bank angle", draw_drag),
    "fig-6.5.2": ("Figure 6.5.2: the temperature at intervals of 0.0029", draw_flame),
}
