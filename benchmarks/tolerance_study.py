"""How far errors are from the tolerance with the default control, over all problems with known solutions.

    python -m benchmarks.tolerance_study                      # the table
    python -m benchmarks.tolerance_study --problems Pleiades seven_body
    python -m benchmarks.tolerance_study --figure docs/figures/tolerance_study.png

The tolerances are rtol = atol; an error is the largest of |y - y*| / (rtol |y*| + atol) over the components at the end.
The conditioning is how much the solution itself enlarges a perturbation until the end: of a relative change of 1e-6 of
the state, made consistent with the constraints, at the start and at four later times, the largest of two random
directions each. A method that errs by one tolerance in one step has this error at the end.
"""

from __future__ import annotations

import argparse
import json
import warnings
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

import daedal
from benchmarks.tolerance_problems import Study, problems

TOLERANCES = (1e-4, 1e-6, 1e-8)


@dataclass(frozen=True)
class Row:
    """One run: nan stands for a run that failed."""

    problem: str
    kind: str
    method: str
    tolerance: float
    ratio: float
    steps: int
    evaluations: int
    conditioning: float = np.nan


def measured(study: Study, tolerance: float, condition: float = np.nan) -> Row:
    """Solve with the defaults and compare."""
    try:
        sol = daedal.solve(study.problem, study.t_span, study.start, rtol=tolerance, atol=tolerance, **study.options)
    except daedal.IntegrationError as error:
        failed = error.solution.stats
        return Row(study.name, study.kind, "failed", tolerance, np.nan, failed.steps, failed.residual_evaluations)
    stats = sol.stats
    error = np.abs(study.state(sol) - study.known) / (tolerance * np.abs(study.known) + tolerance)
    evaluations = stats.residual_evaluations + stats.jacobian_residual_evaluations
    ratio = float(np.nanmax(error))
    method = getattr(sol, "method", "")
    return Row(study.name, study.kind, method, tolerance, ratio, stats.steps, evaluations, condition)


def conditioning(study: Study) -> float:
    """The largest factor by which perturbations grow; nan where it cannot be measured in this way."""
    if study.kind not in ("MechanicalSystem", "ImplicitDAE"):
        return np.nan
    options = {key: value for key, value in study.options.items() if key != "correct_initial"}
    sharp, generator, (t0, t1) = {"rtol": 1e-10, "atol": 1e-10}, np.random.default_rng(0), study.t_span
    try:
        sol = daedal.solve(study.problem, study.t_span, study.start, **sharp, **study.options)
        factors = []
        for share in (0.0, 0.2, 0.4, 0.6, 0.8):
            t = t0 + share * (t1 - t0)
            state = sol(t)
            y = np.concatenate([state.q, state.v]) if study.kind == "MechanicalSystem" else np.asarray(state)
            for _ in range(2):
                moved = y + 1e-6 * (1.0 + np.abs(y)) * generator.uniform(-1.0, 1.0, y.size)
                start = np.split(moved, 2) if study.kind == "MechanicalSystem" else (moved, None)
                other = daedal.solve(study.problem, (t, t1), tuple(start), correct_initial=True, **sharp, **options)
                before, after = other.y[: y.size, 0] - y, other.y[:, -1] - sol.y[:, -1]
                scaled = np.max(np.abs(before) / (1.0 + np.abs(y)))
                factors.append(np.max(np.abs(after) / (1.0 + np.abs(sol.y[:, -1]))) / scaled)
    except (daedal.DaedalError, ValueError):
        return np.nan
    return float(max(factors))


def draw(rows: list[Row], path: Path) -> None:
    """The distribution: a point for each run, problems in the order of their largest error."""
    import matplotlib.pyplot as plt

    from daedal.viz.figure import STYLE

    largest = {name: max(row.ratio for row in rows if row.problem == name) for name in {row.problem for row in rows}}
    order = sorted(largest, key=lambda name: largest[name])
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(figsize=(8.0, 11.0), layout="constrained")
        axes.axvspan(0.3, 10.0, color="0.92", zorder=0)
        axes.axvline(100.0, color="0.6", linewidth=1.0, zorder=0)
        for tolerance, marker in zip(TOLERANCES, "osD", strict=True):
            own = [row for row in rows if row.tolerance == tolerance]
            axes.plot(
                [max(row.ratio, 1e-3) for row in own],
                [order.index(row.problem) for row in own],
                marker,
                markersize=4.5,
                label=f"rtol = atol = {tolerance:.0e}",
            )
        known = {row.problem: row.conditioning for row in rows if np.isfinite(row.conditioning)}
        places = [order.index(name) for name in known]
        axes.plot(
            [max(value, 1e-3) for value in known.values()], places, "|", color="0.2", markersize=9, label="conditioning"
        )
        axes.set(xscale="log", xlim=(7e-4, 1e5), ylim=(-1, len(order)), xlabel="error at the end / tolerance")
        axes.set_yticks(range(len(order)), order, fontsize=7)
        axes.legend(loc="lower right")
        figure.savefig(path, dpi=110)


def table(rows: list[Row], tolerances) -> str:
    """One line for each problem."""
    titles = " ".join(f"{f'{tolerance:.0e}':>9s} {'steps':>7s} {'calls':>8s}" for tolerance in tolerances)
    lines = [f"{'problem':34s} {'method':26s} {titles} {'conditioning':>12s}"]
    for name in dict.fromkeys(row.problem for row in rows):
        own = [row for row in rows if row.problem == name]
        numbers = " ".join(f"{row.ratio:9.3g} {row.steps:7d} {row.evaluations:8d}" for row in own)
        lines.append(f"{name:34s} {own[0].method[:26]:26s} {numbers} {own[0].conditioning:12.3g}")
    return "\n".join(lines)


def summary(rows: list[Row]) -> str:
    """Median and worst, and the whole cost."""
    found = np.array([row.ratio for row in rows])
    known = found[np.isfinite(found)]
    return (
        f"{len(rows)} runs, {np.sum(~np.isfinite(found))} failed; error / tolerance: median {np.median(known):.2g}, "
        f"quartiles {np.quantile(known, 0.25):.2g} and {np.quantile(known, 0.75):.2g}, "
        f"above 10: {np.mean(known > 10.0):.0%}, above 100: {np.mean(known > 100.0):.0%}, worst {known.max():.3g}; "
        f"{sum(row.steps for row in rows)} steps, {sum(row.evaluations for row in rows)} evaluations"
    )


def main() -> None:
    """Run the study."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--problems", nargs="*", help="only these")
    parser.add_argument("--tolerances", nargs="*", type=float, default=TOLERANCES)
    parser.add_argument("--conditioning", action="store_true", help="measure it as well (minutes)")
    parser.add_argument("--json", type=Path, help="where to leave all numbers")
    parser.add_argument("--figure", type=Path, help="where to draw the distribution")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    rows: list[Row] = []
    conditions: dict[str, float] = {}
    for study in problems():
        if arguments.problems and study.name not in arguments.problems:
            continue
        motion = study.name.split(",")[0]  # the same in other forms
        if motion not in conditions:
            conditions[motion] = conditioning(study) if arguments.conditioning or arguments.figure else np.nan
        condition = conditions[motion]
        own = [measured(study, tolerance, condition) for tolerance in arguments.tolerances]
        print(table(own, arguments.tolerances).splitlines()[1], flush=True)
        rows += own
    for kind in dict.fromkeys(row.kind for row in rows):
        print(f"{kind}: {summary([row for row in rows if row.kind == kind])}")
    print(summary(rows))
    if arguments.json:
        arguments.json.write_text(json.dumps([asdict(row) for row in rows], indent=1))
    if arguments.figure:
        draw(rows, arguments.figure)


if __name__ == "__main__":
    main()
