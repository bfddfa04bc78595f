"""Wijckmans' thesis: what the text and the axes that are left say about Figures 6.1 to 6.4 and 7.1."""

from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np

import daedal
from daedal import DASSL, GGL, Baumgarte, Index1, library
from daedal.reproduce.printed_table import PrintedTable

Values = list[Mapping[str, Any] | None]
FORMS = {
    "index 1, not stabilised": Index1(),
    "Baumgarte, alpha = beta = 6": Baumgarte(alpha=6.0, beta=6.0),
    "GGL": GGL(),
}
PARAMETERS = (1.0, 2.0, 4.0, 6.0, 10.0, 20.0, 40.0)
"""Baumgarte's parameters of Figure 6.3."""
_CLEARLY = 3.0  # a factor that the eye sees on a logarithmic axis


def solve_with_dassl(model: library.Model, tol: float, formulation: Any, method: DASSL) -> Any:
    """A mechanism by DASSL with RTOL = ATOL = TOL."""
    options: dict[str, Any] = {"rtol": tol, "atol": tol, "dense_output": False}
    return daedal.solve(model.problem, model.t_span, model.initial, formulation=formulation, method=method, **options)


@cache
def swinging(form: str) -> Any:
    """The rod pendulum of examples 6.1 to 6.3 over fifty periods."""
    return solve_with_dassl(library.rod_pendulum(), 1e-4, FORMS[form], DASSL())


@cache
def steps_with_baumgarte() -> tuple[int, ...]:
    """The curve of Figure 6.3."""
    model = library.rod_pendulum()
    forms = [Baumgarte(alpha=a, beta=a) for a in PARAMETERS]
    return tuple(solve_with_dassl(model, 1e-4, form, DASSL()).stats.steps for form in forms)


def deviations(sol: Any) -> np.ndarray:
    """x - cos phi and y - sin phi of the rod at all steps."""
    x, y, phi = sol.raw.y[:3]
    return np.abs([x - np.cos(phi), y - np.sin(phi)])


def drift_figures(table: PrintedTable) -> Values:
    """Figures 6.1 to 6.3, in the words of the text."""
    free, damped, _ = (deviations(swinging(form)).max(axis=0) for form in FORMS)
    tenth = free.size // 10
    curve = dict(zip(PARAMETERS, steps_with_baumgarte()))
    above = [steps for parameter, steps in curve.items() if parameter >= 6.0]
    projected = swinging("GGL").stats.steps
    found = {
        "deviation over time": "grows" if free[-tenth:].max() > _CLEARLY * free[:tenth].max() else "does not grow",
        "deviation against 6.1": "smaller" if _CLEARLY * damped.max() < free.max() else "not smaller",
        "steps from alpha = 6 on": "grow" if above == sorted(set(above)) else "do not grow",
        "steps of GGL against the curve": "fewer" if projected < min(above) else "not fewer",
    }
    return table.each(lambda row: {"value": found[row["quantity"]]})


@cache
def sliding() -> Any:
    """The crank-slider mechanism of Figure 6.4, TOL = 1e-6."""
    return solve_with_dassl(library.crank_slider(), 1e-6, "ggl", DASSL())


def crank_slider_figure(table: PrintedTable) -> Values:
    """Figure 6.4."""
    sol = sliding()
    y1, y2 = sol["y1"], sol["y2"]
    same = "y1 = y2" if np.max(np.abs(y1 - y2)) < 1e-6 else "they differ"
    found = {"y1 and y2": same, "least y1": float(np.min(y1)), "largest y1": float(np.max(y1))}
    return table.each(lambda row: {"value": found[row["quantity"]]})


@cache
def ignoring() -> daedal.Solution:
    """Example 7.1: x' = 0, then 5 from t = 10 on, which nobody announces."""
    problem = daedal.ImplicitDAE(lambda t, x, xp: [xp[0] - (5.0 if t > 10.0 else 0.0)], 1)
    options: dict[str, Any] = {"method": "dassl", "rtol": 1e-4, "atol": 1e-4, "switches": "never", "compile": "never"}
    return daedal.solve(problem, (0.0, 20.0), ([10.0], [0.0]), **options)


def ignored_jump(table: PrintedTable) -> Values:
    """Figure 7.1: where the steps are shortest, once the first ones are behind."""
    sol = ignoring()
    assert sol.history is not None
    later = sol.history.t > 1.0
    shortest = sol.history.t[later][np.argmin(sol.history.h[later])]
    rejected = "several" if sol.stats.error_test_failures > 2 else "hardly any"
    found = {"shortest steps, t": float(shortest), "rejected steps": rejected}
    return table.each(lambda row: {"value": found[row["quantity"]]})


TABLES = {"fig-6.1": drift_figures, "fig-6.4": crank_slider_figure, "fig-7.1": ignored_jump}
