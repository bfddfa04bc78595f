"""Figures of chapters 6 and 7 of Wijckmans' thesis."""

import math
from typing import Any

import numpy as np

import daedal
from daedal.reproduce.multibody_events import solved
from daedal.reproduce.multibody_levels import (
    FORMS,
    PARAMETERS,
    deviations,
    ignoring,
    sliding,
    steps_with_baumgarte,
    swinging,
)
from daedal.viz.style import COLOURS, FAINT, GRID


def draw_drift(figure: Any, result: Any) -> None:
    """Figures 6.1 to 6.3: deviations from both constraints, and the price of Baumgarte's parameter."""
    axes = figure.subplots(1, 3)
    for place, name in zip(axes, list(FORMS)[:2]):
        sol = swinging(name)
        for i, (label, error) in enumerate(zip(("x - cos φ", "y - sin φ"), deviations(sol))):
            place.semilogy(sol.t[1:], error[1:] + 1e-17, color=COLOURS[2 * i], linewidth=0.6, label=label)
        place.set(xlabel="$t$", title=name.replace(", alpha = beta = 6", " 6").replace(", not stabilised", ""))
        place.set_ylim(1e-9, 20.0)
    axes[0].legend(loc="lower right")
    steps = steps_with_baumgarte()
    axes[2].loglog(PARAMETERS, steps, "o-", color=COLOURS[0], markersize=3.5)
    ggl = swinging("GGL").stats.steps
    axes[2].axhline(ggl, color=FAINT, linewidth=0.9)
    axes[2].annotate("GGL", (PARAMETERS[0], ggl), textcoords="offset points", xytext=(0, 4), fontsize=7.5)
    axes[2].set(xlabel="Baumgarte, α = β", title="steps")
    axes[2].minorticks_off()
    axes[2].set_xticks(PARAMETERS, [f"{a:g}" for a in PARAMETERS])
    ticks = [t for t in (2000, 4000, 8000, 16000, 32000) if min(*steps, ggl) / 2 < t < 2 * max(steps)]
    axes[2].set_yticks(ticks, [str(t) for t in ticks])


def draw_ignored(figure: Any, result: Any) -> None:
    """Figure 7.1: a step in the right-hand side, which nobody announces."""
    sol = ignoring()
    assert sol.history is not None
    left, right = figure.subplots(1, 2)
    left.plot(sol.t, sol.y[0], "o-", color=COLOURS[0], markersize=3.0)
    left.set(xlabel="$t$", ylabel="$x$")
    right.semilogy(sol.history.t, sol.history.h, "o-", color=COLOURS[2], markersize=3.0)
    shortest, failures = math.log10(np.min(sol.history.h)), sol.stats.error_test_failures
    right.set(xlabel="$t$", ylabel="step size", title=f"{failures} rejected steps, shortest 1e{shortest:.0f}")


def draw_crank_slider(figure: Any, result: Any) -> None:
    """Figure 6.4: the coordinates of both bodies."""
    sol = sliding()
    for place, name in zip(figure.subplots(1, 3), ("x", "y", "phi")):
        for i, body in enumerate("12"):
            style: dict[str, Any] = {"color": COLOURS[2 * i], "linestyle": ("-", ":")[i], "label": f"body {body}"}
            place.plot(sol.t, sol[name + body], **style)
        place.set(xlabel="$t$", ylabel=name.replace("phi", "φ"))
    figure.axes[0].legend()


def draw_crash(figure: Any, result: Any) -> None:
    """The angle over time; the force of the wall over the indentation."""
    sol = solved("crash_pendulum", 2.0)
    law = daedal.ElastoPlastic(c1=8e5, c2=1e3, c3=2e6, p1=5e-3)
    left, right = figure.subplots(1, 2)
    t = np.linspace(0.0, 2.0, 801)
    left.plot(t, [sol(s).q[2] for s in t], color=COLOURS[0])
    left.set(xlabel="$t$", ylabel=r"$\varphi$")
    events = {event.name: event for event in sol.events}
    touches, turns, separates = (events[name].t for name in ("touches", "turns back", "separates"))
    for i, (begin, end, label) in enumerate(((touches, turns, "loading"), (turns, separates, "unloading"))):
        depth = [-2.0 * 0.9 * math.sin(sol(s).q[2]) for s in np.linspace(begin, end, 200)]
        deepest = max(depth)
        force = [_wall(law, p, deepest, label == "loading") for p in depth]
        right.plot(np.multiply(depth, 1e3), np.multiply(force, 1e-3), color=COLOURS[2 * i], label=label)
    right.set(xlabel="indentation (mm)", ylabel="force (kN)")
    right.legend()


def _wall(law: Any, p: float, deepest: float, loading: bool) -> float:
    """The force law of example 7.9."""
    top = law.c1 * law.p1 + law.c2 * (deepest - law.p1)
    if not loading:
        return max(top + law.c3 * (p - deepest), 0.0)
    return law.c1 * p if p <= law.p1 else law.c1 * law.p1 + law.c2 * (p - law.p1)


def draw_oscillator(figure: Any, result: Any) -> None:
    """Position and velocity; the phases of adhesion are shaded."""
    sol = solved("friction_oscillator", 9.0)
    axes = figure.add_subplot()
    t = np.linspace(0.0, 9.0, 1201)
    axes.plot(t, [sol(s).q[0] for s in t], color=COLOURS[0], label="$x$")
    axes.plot(t, [sol(s).v[0] for s in t], color=COLOURS[2], label="$x'$")
    times = [event.t for event in sol.events]
    for begin, end in zip(times[1::2], times[2::2]):
        axes.axvspan(begin, end, color=GRID, zorder=0)
    axes.set_xlabel("$t$ (shaded: it sticks)")
    axes.legend()


FIGURES = {
    "fig-6.1": ("Figures 6.1 to 6.3: drift without and with stabilisation, and its price", draw_drift),
    "fig-6.4": ("Figure 6.4: crank-slider, TOL = 1e-6", draw_crank_slider),
    "fig-7.1": ("Figure 7.1: a jump that is ignored (x' = 0, then 5 from t = 10 on)", draw_ignored),
    "7.9": ("Figures 7.6 and 7.7: the angle, and the force of the wall", draw_crash),
    "7.10": ("Figure 7.9: the motion", draw_oscillator),
}
