"""The results as tables (Markdown, and the same on the terminal) and as JSON."""

from __future__ import annotations

import json
import math
import os
import platform
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks import cases
from benchmarks.compare import SMALLEST_ERROR, Line, compare, ratio_at
from benchmarks.measure import Point
from benchmarks.solvers import SOLVERS, baseline, belongs, release

CALLBACKS = {"python": "plain Python functions", "compiled": "compiled"}
TARGET_ERRORS = tuple(10.0**-k for k in range(2, 11))
DRIFT_AT_ERROR = 1e-5
LONGEST_NOTE = 110

Table = tuple[str, list[str], list[list[str]]]


def machine() -> dict[str, Any]:
    """What the numbers were measured on and with."""
    model = platform.processor() or platform.machine()
    if Path("/proc/cpuinfo").exists():
        names = [
            line.split(":", 1)[1].strip()
            for line in Path("/proc/cpuinfo").read_text().splitlines()
            if "model name" in line
        ]
        model = names[0] if names else model
    return {
        "processor": model,
        "cores": os.cpu_count(),
        "system": platform.system(),
        "python": platform.python_version(),
    }


def results(points: Iterable[Point], skipped: dict[str, str]) -> dict[str, Any]:
    """Everything measured, ready for JSON."""
    points = list(points)
    lines = _lines(points)
    rows = []
    for point in points:
        row = asdict(point)
        del row["spent"]
        comparison = compare(point, _baseline(lines, point))
        row |= {
            "callbacks": SOLVERS[point.solver].callbacks,
            "ratio_to_daedal": comparison.ratio,
            "note": comparison.note,
        }
        rows.append(
            {key: value if not isinstance(value, float) or math.isfinite(value) else None for key, value in row.items()}
        )
    used = dict.fromkeys(point.solver for point in points)
    return {
        "machine": machine(),
        "releases": {SOLVERS[name].package: release(SOLVERS[name]) for name in used},
        "left_out": skipped,
        "points": rows,
    }


def write_json(path: Path, points: Iterable[Point], skipped: dict[str, str]) -> None:
    path.write_text(json.dumps(results(points, skipped), indent=1) + "\n")


def tables(points: list[Point]) -> list[Table]:
    """One table for every case and kind of callbacks."""
    lines = _lines(points)
    found = []
    for case_name in dict.fromkeys(point.case for point in points):
        for callbacks, title in CALLBACKS.items():
            chosen = [p for p in points if p.case == case_name and belongs(p.solver, callbacks)]
            if not chosen:
                continue
            heads = ["solver", "tolerance", "ms", "error", "drift", "evaluations", "steps"]
            heads += ["time / Daedal's at this error", ""]
            rows = [_row(point, lines) for point in chosen]
            if cases.get(case_name).mechanism is None:
                heads.remove("drift")
                rows = [row[:4] + row[5:] for row in rows]
            found.append((f"{cases.get(case_name).title}: {title}", heads, rows))
    return found


def summary(points: list[Point]) -> list[Table]:
    """For both kinds of callbacks, the time of every solver over Daedal's at fixed errors."""
    lines = _lines(points)
    found = []
    for callbacks, title in CALLBACKS.items():
        rows = []
        for (case_name, solver), line in lines.items():
            if SOLVERS[solver].callbacks != callbacks or solver == baseline(solver):
                continue
            ours = lines.get((case_name, baseline(solver)), Line())
            ratios = [ratio_at(error, line, ours) for error in TARGET_ERRORS]
            known = [r for r in ratios if r is not None]
            mean = math.exp(sum(map(math.log, known)) / len(known)) if known else None
            cells = [_ratio(r) for r in ratios]
            runs = [p.worked for p in points if (p.case, p.solver) == (case_name, solver)]
            failed = f"{runs.count(False)} of {len(runs)}" if False in runs else ""
            drift = _drift([p for p in points if (p.case, p.solver) == (case_name, solver)])
            rows.append([case_name, SOLVERS[solver].label, SOLVERS[solver].family, *cells, _ratio(mean), drift, failed])
        heads = ["problem", "solver", "family", *(f"{error:.0e}" for error in TARGET_ERRORS)]
        heads += ["mean", f"drift at {DRIFT_AT_ERROR:.0e}", "failed"]
        if rows:
            found.append((f"Time over Daedal's at equal error: {title} (above 1: Daedal is faster)", heads, rows))
    return found


def write_markdown(path: Path, points: list[Point], skipped: dict[str, str], figures: list[Path]) -> None:
    facts = machine()
    text = [
        "# Benchmark",
        "",
        f"{facts['processor']}, {facts['cores']} cores, Python {facts['python']}; one thread for linear algebra.",
        "Times are the shortest of several runs of the solve call alone; all solvers took turns. The error is that at",
        "the end point. A ratio compares with Daedal at the same achieved error, interpolated on its work-precision",
        "line; outside this line there is no ratio but a note. Differences below a factor of about 1.3 are noise.",
        "",
    ]
    text += [f"- {name}: left out, {reason}" for name, reason in skipped.items()]
    for title, heads, rows in summary(points) + tables(points):
        text += ["", f"## {title}", "", "| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
        text += ["| " + " | ".join(cell.replace("|", "/") for cell in row) + " |" for row in rows]
    text += ["", *(f"![{figure.stem}]({figure.name})" for figure in figures)]
    path.write_text("\n".join(text) + "\n")


def show(points: list[Point], skipped: dict[str, str]) -> None:
    """Print the tables."""
    from rich.console import Console
    from rich.table import Table as RichTable

    console = Console(width=None if os.isatty(1) else 180)
    for title, heads, rows in tables(points) + summary(points):
        table = RichTable(title=title, title_justify="left", header_style="bold")
        for k, head in enumerate(heads):
            table.add_column(head, justify="left" if k == 0 or not head else "right", overflow="fold")
        for row in rows:
            table.add_row(*row, style="bold" if row[0].startswith("Daedal") else "")
        console.print(table)
    for name, reason in skipped.items():
        console.print(f"{name}: left out, {reason}")


def _lines(points: list[Point]) -> dict[tuple[str, str], Line]:
    keys = dict.fromkeys((point.case, point.solver) for point in points)
    return {key: Line.through(p for p in points if (p.case, p.solver) == key) for key in keys}


def _baseline(lines: dict[tuple[str, str], Line], point: Point) -> Line:
    return lines.get((point.case, baseline(point.solver)), Line())


def _drift(points: list[Point]) -> str:
    """The residual of the constraints in the run with an error nearest to ``DRIFT_AT_ERROR``."""
    known = [p for p in points if p.worked and math.isfinite(p.drift)]
    if not known:
        return ""
    nearest = min(known, key=lambda p: abs(math.log(max(p.error, SMALLEST_ERROR) / DRIFT_AT_ERROR)))
    return f"{nearest.drift:.0e}"


def _row(point: Point, lines: dict[tuple[str, str], Line]) -> list[str]:
    solver = SOLVERS[point.solver]
    note, ratio = point.failure, ""
    if point.solver != baseline(point.solver):
        comparison = compare(point, _baseline(lines, point))
        note, ratio = comparison.note, _ratio(comparison.ratio)
    note = note if len(note) <= LONGEST_NOTE else note[: LONGEST_NOTE - 3] + "..."
    if point.failure:
        return [solver.label, point.level.label, "-", "-", "-", "-", "-", "", note]
    counts = ["" if count is None else str(count) for count in (point.evaluations, point.steps)]
    figures = [f"{1e3 * point.seconds:.4g}", f"{point.error:.1e}", f"{point.drift:.0e}"]
    return [solver.label, point.level.label, *figures, *counts, ratio, note]


def _ratio(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}" if value < 10.0 else f"{value:.0f}"
