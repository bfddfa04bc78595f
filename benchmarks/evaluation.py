"""Operations and time of one evaluation: ``python -m benchmarks.evaluation --figure docs/figures/evaluation.png``.

The seven-body mechanism and chains of bodies, M, f, G and gamma together and the accelerations with the multipliers, by
the engines of ``benchmarks.engines``. It is part of `make bench`.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.worker import limit_threads

if TYPE_CHECKING:
    from daedal import MechanicalSystem

BODIES, QUICK_BODIES = (5, 10, 20, 50, 100, 200), (5, 20)
SEVEN_BODY, CHAIN = "seven-body", "chain"
TITLES = {"functions": "M, f, G and γ", "accelerations": "accelerations and multipliers"}
COLOURS = {"Daedal": "#000000", "Numba": "#0072B2", "CasADi, virtual machine": "#E69F00", "CasADi, C": "#D55E00"}
MARKERS = {"Daedal": "o", "Numba": "s", "CasADi, virtual machine": "v", "CasADi, C": "^"}


def measure(bodies: tuple[int, ...] = BODIES) -> list[dict[str, Any]]:
    """A row for each mechanism, engine and thing evaluated."""
    import numpy as np

    from benchmarks.engines import ENGINES
    from benchmarks.mechanisms import Mechanism

    random = np.random.default_rng(0)
    q0, v0 = Mechanism("seven_body").model(False).initial
    systems = [(SEVEN_BODY, 7, q0, v0)]
    systems += [(CHAIN, n, random.random(3 * n), random.random(3 * n)) for n in bodies]
    rows: list[dict[str, Any]] = []
    for name, n, q, v in systems:
        system = _system(name, n)
        for engine, evaluated in ENGINES.items():
            for what, evaluation in evaluated(system, np.array(q, float), np.array(v, float)).items():
                rows.append({"mechanism": name, "bodies": n, "engine": engine, "what": what, **asdict(evaluation)})
        mine = [row for row in rows if row["bodies"] == n and row["engine"] == "Daedal"]
        for row, seconds in zip(mine, preparations(name, n), strict=True):
            row["preparing_seconds"], row["cached_seconds"] = seconds
        for row in rows[-2 * len(ENGINES) :]:
            print(_line(row), flush=True)
    return rows


def preparations(name: str, bodies: int) -> list[tuple[float, float]]:
    """Seconds from plain functions to Daedal's code in a new process: generated, and then found on disk."""
    with tempfile.TemporaryDirectory(prefix="daedal-bench-") as folder:
        environment = {**os.environ, "DAEDAL_CACHE_DIR": folder}
        command = [sys.executable, "-c", f"from {__name__} import prepare; prepare({name!r}, {bodies})"]
        runs = [subprocess.run(command, env=environment, capture_output=True, text=True, check=True) for _ in range(2)]
    return list(zip(*(json.loads(run.stdout) for run in runs), strict=True))


def prepare(name: str, bodies: int) -> None:
    """Print the seconds that Daedal takes for its functions, once everything is loaded."""
    from benchmarks.engines import PREPARED

    system, seconds = _system(name, bodies), []
    for make in PREPARED.values():
        make(_system(CHAIN, 1))
        began = time.perf_counter()
        make(system)
        seconds.append(time.perf_counter() - began)
    print(json.dumps(seconds))


def _system(name: str, bodies: int) -> MechanicalSystem:
    from benchmarks.chains import chain
    from benchmarks.mechanisms import Mechanism

    return Mechanism("seven_body").model(False).problem if name == SEVEN_BODY else chain(bodies)


def _line(row: dict[str, Any]) -> str:
    size = "-" if row["operations"] is None else str(row["operations"])
    head = f"{row['mechanism']:10} {row['bodies']:4} {row['engine']:24} {row['what']:14}"
    return f"{head} {size:>7} operations {row['microseconds']:10.3f} us, prepared in {row['preparing_seconds']:.3f} s"


def table(rows: list[dict[str, Any]]) -> tuple[list[str], list[list[str]]]:
    """Heads and rows: operations and microseconds of every engine."""
    from benchmarks.compare import number_text

    heads = ["mechanism", "evaluated", *(f"{engine} [us]" for engine in COLOURS), "operations", "CasADi's operations"]
    heads += ["Daedal prepared [ms]", "from disk [ms]", "CasADi, C prepared [ms]"]
    found = []
    for name, n, what in dict.fromkeys((r["mechanism"], r["bodies"], r["what"]) for r in rows):
        chosen = {r["engine"]: r for r in rows if (r["mechanism"], r["bodies"], r["what"]) == (name, n, what)}
        times = [number_text(chosen[e]["microseconds"]) if e in chosen else "-" for e in COLOURS]
        sizes = [str(chosen[e]["operations"]) if e in chosen else "-" for e in ("Daedal", "CasADi, virtual machine")]
        prepared = [("Daedal", "preparing_seconds"), ("Daedal", "cached_seconds"), ("CasADi, C", "preparing_seconds")]
        times_before = [number_text(1e3 * chosen[e][key]) if e in chosen else "-" for e, key in prepared]
        found.append([name if name == SEVEN_BODY else f"chain of {n}", TITLES[what], *times, *sizes, *times_before])
    return heads, found


def draw(rows: list[dict[str, Any]], file: Path) -> None:
    """Operations above, time below, against the number of bodies."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(2, 2, figsize=(10.0, 7.6), sharex=True, sharey="row")
    for column, what in enumerate(TITLES):
        for row, quantity in enumerate(("operations", "microseconds")):
            ax = axes[row, column]
            for engine in COLOURS:
                mine = [r for r in rows if r["engine"] == engine and r["what"] == what and r[quantity] is not None]
                if not mine or (row == 0 and engine == "CasADi, C"):  # the same operations as in the virtual machine
                    continue
                _line_of(ax, engine, mine, quantity)
            ax.set_xscale("log")
            ax.set_yscale("log")
            ax.grid(True, which="major", color="0.85", linewidth=0.8)
            ax.set_axisbelow(True)
        axes[0, column].set_title(TITLES[what])
        axes[1, column].set_xlabel("bodies")
        axes[1, column].set_xticks([5, 10, 20, 50, 100, 200], ["5", "10", "20", "50", "100", "200"])
        axes[1, column].minorticks_off()
    axes[0, 0].set_ylabel("operations")
    axes[1, 0].set_ylabel("time of one evaluation [µs]")
    handles, labels = axes[1, 1].get_legend_handles_labels()
    figure.legend(handles, labels, loc="lower center", ncols=5, frameon=False)
    figure.suptitle(
        "Chains of planar bodies in absolute coordinates; the star is the seven-body mechanism", fontsize=11
    )
    figure.tight_layout(rect=(0.0, 0.04, 1.0, 1.0))
    figure.savefig(file, dpi=130)
    pyplot.close(figure)


def _line_of(ax: Any, engine: str, rows: list[dict[str, Any]], quantity: str) -> None:
    style: dict[str, Any] = {"color": COLOURS[engine], "zorder": 3 if engine == "Daedal" else 2}
    chains = [r for r in rows if r["mechanism"] == CHAIN]
    bodies, values = [r["bodies"] for r in chains], [r[quantity] for r in chains]
    width = 2.4 if engine == "Daedal" else 1.4
    ax.plot(bodies, values, marker=MARKERS[engine], linewidth=width, markersize=5.5, label=engine, **style)
    stars = [r for r in rows if r["mechanism"] == SEVEN_BODY]
    ax.plot([r["bodies"] for r in stars], [r[quantity] for r in stars], "*", markersize=12, **style)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.evaluation", description=__doc__)
    parser.add_argument("--figure", type=Path, metavar="FILE", help="draw the figure into this file")
    parser.add_argument(
        "--bodies", type=int, nargs="+", default=list(BODIES), metavar="N", help="lengths of the chains"
    )
    options = parser.parse_args()
    limit_threads()
    rows = measure(tuple(options.bodies))
    if options.figure is not None:
        draw(rows, options.figure)
        print(f"drawn: {options.figure}")


if __name__ == "__main__":
    main()
