"""Whole simulations of machines beside Exudyn and MuJoCo: ``python -m benchmarks.machines``; part of `make bench`.

The mechanisms of the IFToMM library, from bodies and joints to the end time. The error is that of the centres of mass
of all bodies at the end, in metres, against the closed solution or the reference of the library. The shortest of a few
simulations counts, after a first one; building the model and compiling are not timed. Times at an error are
interpolated (log-log) on the line of the best runs of each program.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout, suppress
from io import StringIO
from typing import Any

import numpy as np

from benchmarks.compare import Line, number_text, ratio_text
from benchmarks.measure import TURN_SECONDS, Point
from benchmarks.solvers.base import Level
from benchmarks.worker import limit_threads

CASES = {
    "A01 pendulum": ("point_pendulum", {}),
    "A01, one angle": ("point_pendulum", {"coordinates": "relative"}),
    "A02 four-bars": ("four_bars", {}),
    "A03 Andrews": ("andrews_machine", {}),
    "A04 Bricard": ("bricard", {}),
    "A05 governor": ("flyball_governor", {}),
}
ERRORS = (1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7)
HEADS = ("machine", "program", *(f"{error:.0e} m" for error in ERRORS), "best error [m]", "failed runs")
LOOSE = ("P3",)  # hinge of Bricard's mechanism; without one condition less, Exudyn cannot solve it
PROGRAMS = ("Daedal", "Exudyn", "MuJoCo")
TOO_LONG = "not tried"
_RTOLS = tuple(10.0**-k for k in range(2, 12))
_STEPS = (251, 501, 1001, 2003, 4001, 8009, 16001, 32003)
_LONG = 1.0  # seconds after which finer steps are left out
_ROUNDS = 3
_REPEATS = 3  # of short runs in each round

Run = tuple[str, float, Callable[[], Any], Callable[[], np.ndarray]]


def in_daedal(model: Any) -> Iterator[Run]:
    """Simulations by Daedal, the way it chooses by itself, or the library for this machine."""
    import daedal
    from daedal.multibody.kinematics import placement

    tree, t1 = model.problem.layout.tree, model.t_span[1]
    for rtol in _RTOLS:
        options = {**model.options, "rtol": rtol, "atol": rtol, "t_eval": [t1], "dense_output": False}
        last: list[Any] = []

        def simulate(options=options, last=last) -> None:
            last[:] = [daedal.solve(model.problem, model.t_span, model.initial, **options)]

        yield "Daedal", rtol, simulate, lambda last=last: placement(tree, last[0].q[:, -1]).r


def in_exudyn(model: Any) -> Iterator[Run]:
    """Simulations by Exudyn, with two methods and two linear solvers."""
    from benchmarks.machine_exudyn import SOLVERS, InExudyn

    made = InExudyn(model.problem.model, model.problem.layout, *model.initial, model.t_span[1], LOOSE)
    for solver in SOLVERS:
        for linear in ("EXUdense", "EigenSparse"):
            for steps in _STEPS:
                yield f"Exudyn {solver} {linear}", steps, made.run(solver, linear, steps), made.centres


def in_mujoco(model: Any) -> Iterator[Run]:
    """Simulations by MuJoCo, with two methods; its constraints are soft, and stiffer with smaller steps."""
    from benchmarks.machine_mujoco import INTEGRATORS, InMujoco

    problem = model.problem
    for integrator in INTEGRATORS:
        for steps in _STEPS:
            made = InMujoco(problem.model, problem.layout, *model.initial, model.t_span[1])
            yield f"MuJoCo {integrator}", steps, made.run(integrator, steps), made.centres


def points(case: str, quick: bool = False) -> list[Point]:
    """All simulations of a machine; a program that is not installed has none."""
    import daedal
    from daedal.multibody.kinematics import placement

    name, parameters = CASES[case]
    model = daedal.library.get(name, **parameters)
    joints = daedal.library.get(name, coordinates="relative")
    exact = placement(joints.problem.layout.tree, joints.reference.y[: joints.problem.n_q]).r
    runs = []
    with redirect_stdout(StringIO()):  # Exudyn prints its failures
        for start, of in ((in_daedal, model), (in_exudyn, joints), (in_mujoco, joints)):
            with suppress(ImportError):
                runs += [(Point(case, run[0], Level(run[1], run[1])), *run[2:]) for run in start(of)]
        runs = [run for run in runs if not (quick and run[0].level.rtol in _STEPS[4:])]
        return measured_in_turns(runs, lambda centres: float(np.max(np.abs(centres - exact))))


def measured_in_turns(
    runs: list[tuple[Point, Callable[[], Any], Callable[[], Any]]], error_of: Callable[[Any], float]
) -> list[Point]:
    """The points of all runs, with errors and times; after a slow run of a program its sharper ones are left out."""
    slow: set[str] = set()
    for point, simulate, result in runs:
        if point.solver in slow:
            point.failure = TOO_LONG
            continue
        try:
            point.spent = _timed(simulate)
            point.error = error_of(result())
        except Exception as error:
            point.failure = str(error)
        if point.spent > _LONG and point.solver != "Daedal":  # whose first run compiles
            slow.add(point.solver)
    for _ in range(_ROUNDS):  # in turns, so that a slow moment of the machine hits all of them
        for point, simulate, _ in runs:
            if point.worked:
                turn = [_timed(simulate) for _ in range(_REPEATS if point.seconds < TURN_SECONDS else 1)]
                point.seconds = min([point.seconds, *turn])
    return [point for point, _, _ in runs if point.failure != TOO_LONG]


def _timed(simulate: Callable[[], Any]) -> float:
    began = time.perf_counter()
    simulate()
    return time.perf_counter() - began


def table(measured: list[Point]) -> list[list[str]]:
    """The rows under `HEADS`."""
    return figures(measured, PROGRAMS, ERRORS)


def figures(measured: list[Point], programs: tuple[str, ...], wanted: tuple[float, ...]) -> list[list[str]]:
    """Milliseconds of each program at equal errors, and in brackets how many times longer than Daedal."""
    found = []
    for case in dict.fromkeys(point.case for point in measured):
        runs = {name: [p for p in measured if p.case == case and p.solver.startswith(name)] for name in programs}
        ours = Line.through(runs["Daedal"])
        for name, group in runs.items():
            if group:
                line = Line.through(group)
                cells = [_cell(line, ours if name != "Daedal" else None, error) for error in wanted]
                best = f"{line.errors[-1]:.0e}" if line.errors else ""
                failed = sum(not point.worked for point in group)
                found.append([case, name, *cells, best, f"{failed} of {len(group)}" if failed else ""])
    return found


def _cell(line: Line, ours: Line | None, error: float) -> str:
    """Milliseconds and ratio; "more than" where the loosest run of Daedal is more accurate than asked for."""
    seconds = line.seconds_at(error)
    if seconds is None:
        return ""
    text = number_text(1e3 * seconds)
    if ours is None or not ours.errors:
        return text
    own = ours.seconds_at(error)
    if own is None:
        return f"{text} (> {ratio_text(seconds / ours.seconds[0])})" if error > ours.loosest else text
    return f"{text} ({ratio_text(seconds / own)})"


def rows(quick: bool = False) -> list[list[str]]:
    """The table under `HEADS`."""
    return table([point for case in CASES for point in points(case, quick)])


def main() -> None:
    """Print the table."""
    limit_threads()
    verbose = "--all" in sys.argv
    print("".join(f"{head:>18}" for head in HEADS))
    for case in CASES:
        measured = points(case, "--quick" in sys.argv)
        for point in measured if verbose else ():
            figures = f"{1e3 * point.seconds:10.3f} ms {point.error:.1e} {point.failure[:60]}"
            print(f"{point.solver:38} {point.level.rtol:8g} {figures}")
        for row in table(measured):
            print("".join(f"{cell:>18}" for cell in row), flush=True)


if __name__ == "__main__":
    main()
