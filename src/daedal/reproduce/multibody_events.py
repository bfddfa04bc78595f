"""Wijckmans' thesis, chapter 7: switching functions, an impact that takes time, dry friction."""

import math
from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np

import daedal
from daedal import Event, library
from daedal.reproduce.printed_table import PrintedTable, Row

Values = list[Mapping[str, Any] | None]


# --- a degenerate switch, Tables 7.1 and 7.3 ------------------------------------------------------------------------


def degenerate_switch(table: PrintedTable) -> Values:
    """The event loop (7.4) with the location that the table is about."""
    location = {"7.1": "roots", "7.3": "monitoring"}[table.number]
    model = library.degenerate_switch()
    assert model.reference is not None
    truth, modes, sides, t_end = model.reference.y[0], model.extra["modes"], model.extra["sides"], model.t_span[1]

    def values(row: Row) -> Mapping[str, Any]:
        options: dict[str, Any] = {"method": "dassl", "rtol": row["Tol"], "atol": row["Tol"]}
        surface = Event(model.extra["switching"], terminal=True, direction=-1, location=location)
        sol = daedal.solve(modes["cubic"], model.t_span, model.initial[1], events=surface, **options)
        t, x, steps = sol.t[-1], sol.y[:, -1], sol.stats.steps
        if sides(t)[1] > 0.0:  # found too early: it slides
            leave = Event(lambda t, x: sides(t)[1], terminal=True, location=location)
            sol = daedal.solve(modes["sliding"], (t, t_end), (x, [0.0]), events=leave, **options)
            t, x, steps = sol.t[-1], sol.y[:, -1], steps + sol.stats.steps
        sol = daedal.solve(modes["sine"], (t, t_end), (x, None), **options)
        return {"steps": steps + sol.stats.steps, "error": abs(sol.y[0, -1] - truth)}

    return table.each(values)


# --- a pulse, Table 7.2 ---------------------------------------------------------------------------------------------


def pulse(table: PrintedTable) -> Values:
    """Ignored, and with its times as roots and as monitored functions."""
    model = library.switched_pulse()
    assert model.reference is not None
    truth = model.reference.y[0]

    def ignored(tol: float) -> tuple[int, float]:
        options = {"method": "dassl", "rtol": tol, "atol": tol, "switches": "never"}
        sol = daedal.solve(model.extra["ignoring"], model.t_span, ([0.0], [5.0]), **options)
        return sol.stats.steps, abs(sol.y[0, -1] - truth)

    def switched(tol: float, location: str) -> tuple[int, float]:
        t, x, steps = model.t_span[0], model.extra["exact"](0.0), 0
        for rate, instant in zip(model.extra["modes"], (*model.extra["switches"], math.inf), strict=True):
            problem = daedal.ImplicitDAE(lambda t, x, xp, rate=rate: [xp[0] - rate], 1)
            event = Event(lambda t, x, instant=instant: t - min(instant, 1e3), terminal=True, location=location)
            options = {"method": "dassl", "rtol": tol, "atol": tol}
            sol = daedal.solve(problem, (t, model.t_span[1]), (x, [rate]), events=event, **options)
            t, x, steps = sol.t[-1], sol.y[:, -1], steps + sol.stats.steps
        return steps, abs(x[0] - truth)

    def values(row: Row) -> Mapping[str, Any]:
        tol = row["Tol"]
        runs = (ignored(tol), switched(tol, "roots"), switched(tol, "monitoring"))
        return {f"{name}{i}": value for i, run in enumerate(runs) for name, value in zip(("steps", "e"), run)}

    return table.each(values)


# --- impact and friction --------------------------------------------------------------------------------------------


@cache
def solved(name: str, t1: float) -> Any:
    model = library.get(name, t1=t1)
    return daedal.solve(model.problem, model.t_span, model.initial, **model.options)


def crash_pendulum(table: PrintedTable) -> Values:
    """Example 7.9."""
    sol = solved("crash_pendulum", 2.0)
    at = {event.name: event for event in sol.events}
    t, phi = _apex(sol, at["separates"].t)
    found = {f"{name}, t": event.t for name, event in at.items()} | {
        "touches, phi'": at["touches"].y[6],
        "deepest indentation": at["separates"].y[3],
        "apex, t": t,
        "apex, phi": phi,
        "Figure 7.7, least phi'": min(sol(s).v[2] for s in np.linspace(0.0, 2.0, 2001)),
    }
    return table.each(lambda row: {"value": found[row["quantity"]]})


def _apex(sol: Any, after: float) -> tuple[float, float]:
    """Where phi' vanishes after the impact, by bisection of the dense output."""
    low, high = after, 1.6
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if sol(middle).v[2] > 0.0 else (low, middle)
    return low, sol(low).q[2]


def friction_oscillator(table: PrintedTable) -> Values:
    """Example 7.10."""
    times = dict(enumerate((event.t for event in solved("friction_oscillator", 9.0).events), 1))
    return table.each(lambda row: {"t": times.get(row["nr"])})


def friction_crank_slider(table: PrintedTable) -> Values:
    """Example 7.11: the moments at which the slider stands still."""
    events = solved("friction_crank_slider", 4.0).events
    stops = (event.t for event in events if event.source[:5] != (event.target or "")[:5])
    times = dict(enumerate(stops, 1))
    return table.each(lambda row: {"t": times.get(row["nr"])})


TABLES = {
    **dict.fromkeys(("7.1", "7.3"), degenerate_switch),
    "7.2": pulse,
    "7.9": crash_pendulum,
    "7.10": friction_oscillator,
    "7.11": friction_crank_slider,
}
