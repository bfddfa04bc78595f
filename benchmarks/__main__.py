"""``python -m benchmarks``: measure Daedal and its peers, print the tables, save JSON, report and plots."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from benchmarks.worker import limit_threads

QUICK_RTOLS = (1e-4, 1e-6, 1e-8)


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument(
        "--problems", nargs="+", metavar="NAME", help="only these; a part of a name will do ('pendulum')"
    )
    parser.add_argument(
        "--peers", nargs="+", metavar="NAME", help="only these besides Daedal; a part of a name will do"
    )
    parser.add_argument("--quick", action="store_true", help="three tolerances, no large problems, two rounds")
    parser.add_argument("--repeats", type=int, metavar="N", help="rounds of timing (default 7)")
    parser.add_argument(
        "--limit",
        type=float,
        default=10.0,
        metavar="S",
        help="stop a run after so many seconds (default 10; ten times that for the large problems)",
    )
    parser.add_argument(
        "--output", type=Path, default=Path("out/bench"), help="folder for the results (default out/bench)"
    )
    return parser.parse_args(arguments)


def chosen(wanted: list[str] | None, names: list[str], what: str) -> list[str]:
    """The names that contain one of the wanted parts; all without a wish."""
    if wanted is None:
        return names
    for part in wanted:
        if not any(part in name for name in names):
            raise SystemExit(f"no {what} is called '{part}'; there are {', '.join(names)}")
    return [name for name in names if any(part in name for part in wanted)]


def main() -> None:
    options = parse()
    limit_threads()
    from benchmarks import (
        cases,
        ensembles,
        evaluation,
        first_call,
        fixed_cost,
        gradients,
        machines,
        multibody,
        plain,
        plots,
        report,
        sensitivities,
    )
    from benchmarks.measure import measure
    from benchmarks.results import Results
    from benchmarks.solvers import BASELINES, SOLVERS, installed

    problems = chosen(
        options.problems,
        list(cases.SMALL | cases.MECHANICAL if options.quick and not options.problems else cases.CASES),
        "problem",
    )
    peers = chosen(options.peers, [name for name in SOLVERS if name not in BASELINES.values()], "peer")
    solvers = [solver for name, solver in SOLVERS.items() if name in BASELINES.values() or name in peers]
    skipped = {solver.label: f"{solver.package} is not installed" for solver in solvers if not installed(solver)}
    repeats = options.repeats or (2 if options.quick else 7)
    options.output.mkdir(parents=True, exist_ok=True)
    measured = measure(
        problems,
        [solver for solver in solvers if solver.label not in skipped],
        rtols=QUICK_RTOLS if options.quick else None,
        repeats=repeats,
        limit=options.limit,
        logs=options.output / "logs",
        say=lambda text: print(text, file=sys.stderr, flush=True),
    )
    results = Results(skipped, options.quick)
    figures: list[Path] = []

    def save() -> None:
        results.write(options.output / "results.json")
        report.write_markdown(options.output / "report.md", results, figures)

    for ladder in measured:
        # Written after every problem: a run that is stopped has not been in vain.
        results.points += ladder
        figures += plots.draw(ladder, options.output)
        interpreted = [p for p in ladder if cases.get(p.case).interpreted]
        results.first_calls += first_call.measure(interpreted, 1 if options.quick else 3)
        save()
    results.fixed_cost = fixed_cost.rows()
    results.multibody = multibody.rows(options.quick)
    results.machines = machines.rows(options.quick)
    results.plain = plain.rows(options.quick)
    for table, lines in ensembles.tables(options.quick).items():
        setattr(results, table, lines)
    results.sensitivities = sensitivities.rows(options.quick)
    results.gradients = gradients.rows(options.quick)
    results.evaluations = evaluation.measure(evaluation.QUICK_BODIES if options.quick else evaluation.BODIES)
    save()
    report.show(results)
    print(f"\nsaved in {options.output}: results.json, report.md and {len(figures)} plots")


if __name__ == "__main__":
    main()
