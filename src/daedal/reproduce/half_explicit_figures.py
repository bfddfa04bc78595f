"""Figures of Brasey and Hairer."""

from contextlib import suppress
from typing import Any

import numpy as np

import daedal
from daedal import HEM4
from daedal.reproduce.half_explicit_runs import (
    SOURCE_CONTROL,
    played,
    solve_pendulum,
    solve_squeezer,
    squeezer_errors,
    swing,
)
from daedal.viz.style import COLOURS, GRID

_TOLERANCES = 10.0 ** -np.arange(2.0, 9.0)


def draw_violin(figure: Any, result: Any) -> None:
    """Figure 3: the middle of the string, and the friction that holds it."""
    run = played()
    upper, lower = figure.subplots(2, 1, sharex=True)
    upper.plot(run.t, run.middle, color=COLOURS[0])
    upper.set_ylabel("$u$ of the middle")
    lower.plot(run.t, run.z, color=COLOURS[2])
    lower.set(ylabel="friction $z$", xlabel="$t$")
    for switch in run.switches[::2]:
        upper.axvline(switch.t, color=GRID, linewidth=0.8)
        lower.axvline(switch.t, color=GRID, linewidth=0.8)


def _pendulum(method: Any, tol: float, first_step: float) -> tuple[int, float]:
    sol = solve_pendulum(method, rtol=tol, atol=tol, first_step=first_step, dense_output=False)
    return sol.stats.residual_evaluations, np.abs(sol.raw.y[:2, -1] - swing(10.0)[0]).max()


def _squeezer(method: Any, tol: float, first_step: float) -> tuple[int, float]:
    sol = solve_squeezer(0.025, method, rtol=tol, atol=tol, first_step=first_step, dense_output=False)
    return sol.stats.residual_evaluations, squeezer_errors(sol, 0.025)["q"]


def _finished(run: Any, method: Any, first_step: float) -> list[tuple[int, float]]:
    found = []
    for tol in _TOLERANCES:
        with suppress(daedal.IntegrationError):
            found.append(run(method, tol, first_step))
    return found


def draw_work(figure: Any, result: Any) -> None:
    """Figure 2: error against work, of HEM4 and of Lubich's extrapolation code MEXX; runs that stop are left out."""
    cases = {"pendulum": (_pendulum, 0.01), "seven-body mechanism": (_squeezer, 1e-5)}
    for axes, (title, (run, first_step)) in zip(figure.subplots(1, 2), cases.items()):
        for i, (label, method) in enumerate((("HEM4", HEM4(**SOURCE_CONTROL)), ("MEXX", "mexx"))):
            work, error = zip(*_finished(run, method, first_step))
            axes.loglog(error, work, "os"[i] + "-", markersize=3.5, label=label, color=COLOURS[2 * i])
        axes.set(xlabel="error of q at the end", ylabel="evaluations of f", title=title)
        axes.invert_xaxis()
        axes.legend()


FIGURES = {
    "violin": ("Figure 3: the middle of the string", draw_violin),
    "squeezer": ("Figure 2: work and precision, with evaluations for the seconds of the print", draw_work),
}
