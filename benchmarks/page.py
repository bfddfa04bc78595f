"""What `make bench` has measured in the documentation: ``python -m benchmarks.page`` fills ``docs/benchmarks.md``.

A page has places for tables between two comments, ``<!-- table: NAME -->`` and ``<!-- end -->``. What stands between is
written anew from ``out/bench/results.json``; a table without results stays as it is. The figure of evaluations is drawn
anew, too.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Iterable
from pathlib import Path

from benchmarks import (
    cases,
    ensembles,
    evaluation,
    fixed_cost,
    gradients,
    machines,
    multibody,
    plain,
    report,
    sensitivities,
)
from benchmarks.compare import Standing, nearest, number_text, quickest_forms, ratio_text, standings
from benchmarks.mechanisms import FORMS
from benchmarks.report import drift_and_failures, markdown
from benchmarks.results import Results
from benchmarks.solvers import SOLVERS, baseline

PLACE = re.compile(r"(<!-- table: (?P<name>[\w-]+) -->\n).*?(<!-- end -->)", re.DOTALL)
FIGURE = Path("docs/figures/evaluation.png")
SHOWN_ERRORS = (1e-3, 1e-5, 1e-7)


def peers(results: Results, group: Iterable[str], callbacks: str) -> list[Standing]:
    """All solvers but Daedal's own choice, in their quickest forms, on a group of cases."""
    chosen = (s for s in standings(results.points) if s.case in group and s.solver != baseline(s.solver))
    return quickest_forms(s for s in chosen if SOLVERS[s.solver].callbacks == callbacks)


def session(results: Results) -> list[str]:
    """When and on what it was measured."""
    facts = results.machine
    releases = ", ".join(f"{package} {number}" for package, number in sorted(results.releases.items()))
    host = f"{facts['processor']}, {facts['cores']} cores, Python {facts['python']}"
    left_out = [f"Left out: {name} ({reason})." for name, reason in results.left_out.items()]
    quick = ["Quick mode: three tolerances, two rounds."] if results.quick else []
    return [f"Measured on {facts['date']}: {host}, {releases}.", *quick, *left_out]


def closest(results: Results) -> list[str]:
    """For each problem the peers that come nearest to Daedal."""
    kinds: dict[str, Callable[[Standing], bool]] = {
        "plain Python functions": lambda s: SOLVERS[s.solver].callbacks == "python",
        "compiled, the DAE": lambda s: SOLVERS[s.solver].callbacks == "compiled" and SOLVERS[s.solver].form != "ode",
        "compiled, reduced by hand to an ODE": lambda s: (
            SOLVERS[s.solver].callbacks == "compiled" and SOLVERS[s.solver].form == "ode"
        ),
    }
    others = [s for s in standings(results.points) if SOLVERS[s.solver].package != "daedal" and s.mean is not None]
    rows = []
    for case in dict.fromkeys(s.case for s in others):
        row = [case]
        for belongs in kinds.values():
            found = min((s for s in others if s.case == case and belongs(s)), key=_mean, default=None)
            row.append("" if found is None else f"{ratio_text(found.mean)} ({SOLVERS[found.solver].label})")
        rows.append(row)
    return markdown(["problem", *kinds], rows)


def _mean(standing: Standing) -> float:
    return standing.mean if standing.mean is not None else float("inf")


def matrix(results: Results, group: Iterable[str], callbacks: str) -> list[str]:
    """A row for each solver, a column for each case, the mean ratio in its quickest form in each cell."""
    columns = [case for case in group if any(point.case == case for point in results.points)]
    cells: dict[str, dict[str, str]] = {}
    for standing in peers(results, columns, callbacks):
        solver = SOLVERS[standing.solver]
        label = solver.label if solver.form == "ode" else solver.label.removesuffix(f", {FORMS.get(solver.form)}")
        failed = f"{standing.failed} of {standing.runs} failed" if standing.failed else ""
        cells.setdefault(label, {})[standing.case] = ", ".join(filter(None, [ratio_text(standing.mean), failed]))
    return markdown(["", *columns], [[label, *(found.get(c, "") for c in columns)] for label, found in cells.items()])


def details(results: Results, group: Iterable[str], callbacks: str) -> list[str]:
    """Ratios at several errors, the drift and the failures."""
    heads = ["problem", "solver", *(f"error {error:.0e}" for error in SHOWN_ERRORS), "mean", "drift", "failed runs"]
    rows = []
    for standing in peers(results, group, callbacks):
        ratios = [standing.at(error) for error in SHOWN_ERRORS]
        cells = [ratio_text(ratio) for ratio in (*ratios, standing.mean)]
        rows.append([standing.case, SOLVERS[standing.solver].label, *cells, *drift_and_failures(standing)])
    return markdown(heads, rows)


def own_times(results: Results) -> list[str]:
    """Milliseconds of Daedal's own choice, by the runs nearest to some errors."""
    heads = ["problem", *(f"about {error:.0e}" for error in SHOWN_ERRORS)]
    own = [p for p in results.points if p.solver == baseline(p.solver)]
    rows = []
    for case in dict.fromkeys(point.case for point in own):
        runs = [p for error in SHOWN_ERRORS for p in nearest((p for p in own if p.case == case), error)]
        rows.append([case, *(f"{number_text(1e3 * p.seconds)} ms ({p.error:.0e})" for p in runs)])
    return markdown(heads, rows)


def first_calls(results: Results) -> list[str]:
    _, heads, rows = report.first_call_table(results.first_calls)
    return markdown(heads, rows)


TABLES: dict[str, Callable[[Results], list[str]]] = {
    "session": session,
    "closest": closest,
    "mechanisms-python": lambda results: matrix(results, cases.MECHANICAL, "python"),
    "mechanisms-compiled": lambda results: matrix(results, cases.MECHANICAL, "compiled"),
    "first-order-python": lambda results: matrix(results, cases.SMALL, "python"),
    "first-order-compiled": lambda results: matrix(results, cases.SMALL, "compiled"),
    "large": lambda results: matrix(results, cases.LARGE, "compiled"),
    "details-python": lambda results: details(results, cases.MECHANICAL | cases.SMALL, "python"),
    "details-compiled": lambda results: details(results, cases.MECHANICAL | cases.SMALL, "compiled"),
    "own-times": own_times,
    "first-calls": first_calls,
    "fixed-cost": lambda results: markdown(list(fixed_cost.HEADS), results.fixed_cost),
    "multibody": lambda results: markdown(list(multibody.HEADS), results.multibody),
    "machines": lambda results: markdown(list(machines.HEADS), results.machines),
    "ensembles": lambda results: markdown(list(ensembles.HEADS), results.ensembles),
    "ensembles-generated": lambda results: markdown(list(ensembles.GENERATED_HEADS), results.ensembles_generated),
    "sensitivities": lambda results: markdown(list(sensitivities.HEADS), results.sensitivities),
    "gradients": lambda results: markdown(list(gradients.HEADS), results.gradients),
    "plain": lambda results: markdown(list(plain.HEADS), results.plain),
    "evaluation": lambda results: markdown(*evaluation.table(results.evaluations)),
}


def filled(text: str, results: Results) -> str:
    """A page with its tables written anew."""

    def table(place: re.Match[str]) -> str:
        lines = TABLES[place["name"]](results)
        has_rows = bool(results.points) if place["name"] == "session" else len(lines) > 2
        return "\n".join([place[1], *lines, "", place[3]]) if has_rows else place[0]

    return PLACE.sub(table, text)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.page", description=__doc__)
    parser.add_argument("pages", nargs="*", type=Path, default=[Path("docs/benchmarks.md")], help="the pages to fill")
    parser.add_argument("--results", type=Path, default=Path("out/bench"), help="folder with the results")
    options = parser.parse_args()
    results = Results.read(options.results / "results.json")
    if results.evaluations:
        evaluation.draw(results.evaluations, FIGURE)
    for page in options.pages:
        page.write_text(filled(page.read_text(), results))
        print(f"written: {page}")


if __name__ == "__main__":
    main()
