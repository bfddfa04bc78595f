"""The results as tables, in Markdown and on the terminal."""

from __future__ import annotations

import math
import os
from pathlib import Path

from benchmarks import cases, ensembles, fixed_cost, gradients, machines, multibody, plain, sensitivities
from benchmarks.compare import TARGET_ERRORS, TYPICAL_ERROR, Line, Standing, compare, number_text, ratio_text, standings
from benchmarks.first_call import FirstCall
from benchmarks.measure import Point
from benchmarks.results import Results
from benchmarks.solvers import SOLVERS, baseline, belongs

CALLBACKS = {"python": "plain Python functions", "compiled": "compiled"}
LONGEST_NOTE = 110

Table = tuple[str, list[str], list[list[str]]]


def tables(results: Results) -> list[Table]:
    """One table for every case and kind of callbacks."""
    lines, points = results.lines(), results.points
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


def summary(results: Results) -> list[Table]:
    """For both kinds of callbacks, the time of every solver over Daedal's at fixed errors."""
    found = []
    everyone = [s for s in standings(results.points) if s.solver != baseline(s.solver)]
    for callbacks, title in CALLBACKS.items():
        rows = []
        for standing in everyone:
            solver = SOLVERS[standing.solver]
            if solver.callbacks == callbacks:
                cells = [ratio_text(ratio) for ratio in (*standing.ratios, standing.mean)]
                rows.append([standing.case, solver.label, solver.family, *cells, *drift_and_failures(standing)])
        heads = ["problem", "solver", "family", *(f"{error:.0e}" for error in TARGET_ERRORS)]
        heads += ["mean", f"drift at {TYPICAL_ERROR:.0e}", "failed"]
        if rows:
            found.append((f"Time over Daedal's at equal error: {title} (above 1: Daedal is faster)", heads, rows))
    return found


def first_call_table(calls: list[FirstCall]) -> Table:
    """First calls, without and with the import; ratios to Daedal's."""
    heads = [
        "problem",
        "solver",
        "error",
        "first call [ms]",
        "with import [ms]",
        "/ Daedal's",
        "with import / Daedal's",
    ]
    rows = []
    ours = {call.case: call for call in calls if call.solver == baseline(call.solver)}
    for call in calls:
        whole, base = call.seconds + call.import_seconds, ours.get(call.case)
        times = [number_text(1e3 * seconds) for seconds in (call.seconds, whole)]
        ratios = ["", ""]
        if base is not None and base is not call:
            ratios = [ratio_text(call.seconds / base.seconds), ratio_text(whole / (base.seconds + base.import_seconds))]
        rows.append([call.case, SOLVERS[call.solver].label, f"{call.error:.0e}", *times, *ratios])
    return "First call in a new process", heads, rows


def fixed_cost_table(results: Results) -> Table:
    return "What a call costs besides its steps", list(fixed_cost.HEADS), results.fixed_cost


def multibody_table(results: Results) -> Table:
    return "Recursive algorithms of trees of rigid bodies", list(multibody.HEADS), results.multibody


def plain_table(results: Results) -> Table:
    return "Plain differential equations, in milliseconds (and times Daedal's)", list(plain.HEADS), results.plain


def machines_table(results: Results) -> Table:
    return "Whole simulations of machines, in milliseconds (and times Daedal's)", list(machines.HEADS), results.machines


def ensembles_table(results: Results) -> Table:
    return "Many runs of one problem", list(ensembles.HEADS), results.ensembles


def generated_table(results: Results) -> Table:
    return "Peers with Daedal's code", list(ensembles.GENERATED_HEADS), results.ensembles_generated


def sensitivities_table(results: Results) -> Table:
    return "Sensitivities to all parameters, beside IDAS", list(sensitivities.HEADS), results.sensitivities


def gradients_table(results: Results) -> Table:
    return "Gradients by adjoint equations", list(gradients.HEADS), results.gradients


def write_markdown(path: Path, results: Results, figures: list[Path]) -> None:
    facts = results.machine
    text = [
        "# Benchmark",
        "",
        f"{facts['processor']}, {facts['cores']} cores, Python {facts['python']}; one thread for linear algebra.",
        "Times are the shortest of several runs of the solve call alone; all solvers took turns. The error is that at",
        "the end point. A ratio compares with Daedal at the same achieved error, interpolated on its work-precision",
        "line; outside this line there is no ratio but a note. Differences below a factor of about 1.3 are noise.",
        "",
    ]
    text += [f"- {name}: left out, {reason}" for name, reason in results.left_out.items()]
    for title, heads, rows in [*summary(results), first_call_table(results.first_calls), *tables(results)]:
        text += ["", f"## {title}", "", *markdown(heads, rows)]
    text += ["", *(f"![{figure.stem}]({figure.name})" for figure in figures)]
    path.write_text("\n".join(text) + "\n")


def markdown(heads: list[str], rows: list[list[str]]) -> list[str]:
    """The lines of a table."""
    lines = [heads, ["---"] * len(heads), *rows]
    return ["| " + " | ".join(cell.replace("|", "/") for cell in line) + " |" for line in lines]


def show(results: Results) -> None:
    """Print the tables."""
    from rich.console import Console
    from rich.table import Table as RichTable

    console = Console(width=None if os.isatty(1) else 180)
    for title, heads, rows in [
        *tables(results),
        *summary(results),
        first_call_table(results.first_calls),
        fixed_cost_table(results),
        multibody_table(results),
        machines_table(results),
        plain_table(results),
        ensembles_table(results),
        generated_table(results),
        sensitivities_table(results),
        gradients_table(results),
    ]:
        table = RichTable(title=title, title_justify="left", header_style="bold")
        for k, head in enumerate(heads):
            table.add_column(head, justify="left" if k == 0 or not head else "right", overflow="fold")
        for row in rows:
            table.add_row(*row, style="bold" if row[0].startswith("Daedal") else "")
        console.print(table)
    for name, reason in results.left_out.items():
        console.print(f"{name}: left out, {reason}")


def drift_and_failures(standing: Standing) -> list[str]:
    drift = f"{standing.drift:.0e}" if math.isfinite(standing.drift) else ""
    return [drift, f"{standing.failed} of {standing.runs}" if standing.failed else ""]


def _row(point: Point, lines: dict[tuple[str, str], Line]) -> list[str]:
    solver = SOLVERS[point.solver]
    note, ratio = point.failure, ""
    if point.solver != baseline(point.solver):
        comparison = compare(point, lines.get((point.case, baseline(point.solver)), Line()))
        note, ratio = comparison.note, ratio_text(comparison.ratio)
    note = note if len(note) <= LONGEST_NOTE else note[: LONGEST_NOTE - 3] + "..."
    if point.failure:
        return [solver.label, point.level.label, "-", "-", "-", "-", "-", "", note]
    counts = ["" if count is None else str(count) for count in (point.evaluations, point.steps)]
    figures = [f"{1e3 * point.seconds:.4g}", f"{point.error:.1e}", f"{point.drift:.0e}"]
    return [solver.label, point.level.label, *figures, *counts, ratio, note]
