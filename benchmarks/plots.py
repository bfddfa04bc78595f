"""Work-precision plots: time against achieved error, one figure for each problem."""

from __future__ import annotations

from pathlib import Path

from benchmarks import cases
from benchmarks.compare import Line
from benchmarks.measure import Point
from benchmarks.report import CALLBACKS
from benchmarks.solvers import SOLVERS, belongs

# Okabe and Ito's colours, which readers with any colour vision can tell apart: one for each package. The marker shows
# the method; a full one says that the functions are compiled.
COLOURS = {
    "daedal": "#000000",
    "sundials4py": "#0072B2",
    "sksundae": "#56B4E9",
    "scikits_odes_daepack": "#009E73",
    "solve_dae": "#CC79A7",
    "casadi": "#D55E00",
    "pydiffsol": "#E69F00",
    "scipy": "#999999",
}
MARKERS = {
    "BDF": "o",
    "Radau": "s",
    "Rosenbrock": "D",
    "ESDIRK": "^",
    "SDIRK": "v",
    "collocation": "P",
    "Runge-Kutta": "p",
    "Adams and BDF": "h",
}


def draw(points: list[Point], folder: Path) -> list[Path]:
    """A figure for every case; its files."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    files = []
    for name in dict.fromkeys(point.case for point in points):
        panels = {
            callbacks: [p for p in points if p.case == name and belongs(p.solver, callbacks) and p.worked]
            for callbacks in CALLBACKS
        }
        panels = {callbacks: chosen for callbacks, chosen in panels.items() if chosen}
        if not panels:
            continue
        figure, axes = pyplot.subplots(
            1, len(panels), figsize=(1.0 + 5.8 * len(panels), 6.4), sharey=True, squeeze=False
        )
        for ax, (callbacks, chosen) in zip(axes[0], panels.items(), strict=True):
            _panel(ax, chosen)
            ax.set_title(CALLBACKS[callbacks], fontsize=11)
        axes[0, 0].set_ylabel("time of one solve [ms]")
        figure.suptitle(cases.get(name).title + " (down and to the right is better)", fontsize=12)
        figure.tight_layout()
        files.append(folder / f"{name}.png")
        figure.savefig(files[-1], dpi=130)
        pyplot.close(figure)
    return files


def _panel(ax, points: list[Point]) -> None:
    for name in dict.fromkeys(point.solver for point in points):
        solver = SOLVERS[name]
        mine = sorted((p for p in points if p.solver == name), key=lambda p: -p.level.rtol)
        ours = solver.package == "daedal"
        compiled = "jit" in name or "numba" in name or name.startswith("ida-c")
        style = {"color": COLOURS[solver.package], "linestyle": "-" if ours else "--" if compiled else ":"}
        line = Line.through(mine)
        ax.plot(
            line.errors,
            [1e3 * s for s in line.seconds],
            linewidth=2.4 if ours else 1.2,
            zorder=3 if ours else 2,
            **style,
        )
        ax.plot(
            [max(p.error, 1e-16) for p in mine],
            [1e3 * p.seconds for p in mine],
            marker=solver.marker or ("*" if name.startswith("ida-c") else MARKERS[solver.family]),
            markersize=9 if name.startswith("ida-c") else 7 if ours else 5.5,
            markerfacecolor=style["color"] if ours or compiled else "white",
            color=style["color"],
            linestyle="none",
            zorder=4 if ours else 3,
            label=solver.label,
        )
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.invert_xaxis()
    ax.set_xlabel("achieved error at the end point")
    ax.grid(True, which="major", color="0.85", linewidth=0.8)
    ax.set_axisbelow(True)
    columns = 2 if len(ax.get_legend_handles_labels()[0]) > 5 else 1
    ax.legend(fontsize=7.5, loc="upper center", bbox_to_anchor=(0.5, -0.1), ncols=columns, frameon=False)
