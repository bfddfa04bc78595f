"""What sensitivities cost, beside IDAS, in CasADi and in sundials4py, at equal error; part of `make bench`.

``python -m benchmarks.sensitivities [--quick] [--save]`` prints it. For each problem all parameters, at the end of the
interval. Errors are the largest of all sensitivities, each row in units of its size, against a run with rtol = 1e-12
(1e-9 of large problems). Times, of the processor on one thread, are interpolated to equal error between runs; the
programs take turns.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from math import inf, nan
from typing import Any

import numpy as np

import daedal
from benchmarks.gradients import rod
from benchmarks.results import keep
from benchmarks.worker import limit_threads

RTOLS = (1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9)
AT = 1e-5
"""The error at which times are compared."""
HEADS = (
    "at error 1e-5",
    "parameters",
    "one solve ms",
    "with all ms",
    "solves each",
    "IDAS in CasADi ms",
    "IDAS in sundials4py ms",
    "best peer / Daedal",
)


@dataclass(frozen=True)
class Case:
    """A problem with its initial values, the end of its interval, absolute tolerance over rtol, and its equations in
    CasADi: f, g, x, z, p."""

    name: str
    end: float
    scale: float
    casadi: Callable[[Any], tuple[Any, ...]]
    make: Callable[[], tuple[Any, Any]] | None = None
    large: bool = False

    @property
    def problem(self) -> tuple[Any, Any]:
        """The problem and its initial values; of the library by default."""
        if self.make is not None:
            return self.make()
        model = daedal.library.get(self.name)
        return model.problem, model.initial[0]


def _robertson(ca: Any):
    x, z, p = ca.SX.sym("x", 2), ca.SX.sym("z", 1), ca.SX.sym("p", 3)
    slow, fast, last = p[0] * x[0], p[1] * x[1] * z[0], p[2] * x[1] ** 2
    return [-slow + fast, slow - fast - last], [x[0] + x[1] + z[0] - 1.0], x, z, p


def _akzo(ca: Any):
    """Chemical Akzo Nobel, as the library states it: k1, k2, k3, k4, K, klA, Ks, p, H."""
    x, z, p = ca.SX.sym("x", 5), ca.SX.sym("z", 1), ca.SX.sym("p", 9)
    root = ca.sqrt(x[1])
    r1 = p[0] * x[0] ** 4 * root
    r2 = p[1] * x[2] * x[3]
    r3 = p[1] / p[4] * x[0] * x[4]
    r4 = p[2] * x[0] * x[3] ** 2
    r5 = p[3] * z[0] ** 2 * root
    inflow = p[5] * (p[7] / p[8] - x[1])
    odes = [-2 * r1 + r2 - r3 - r4, -0.5 * r1 - r4 - 0.5 * r5 + inflow, r1 - r2 + r3, -r2 + r3 - 2 * r4, r2 - r3 + r5]
    return odes, [p[6] * x[0] * x[3] - z[0]], x, z, p


def _rod(n: int) -> Case:
    """The rod of :mod:`benchmarks.gradients` with three sources."""

    def equations(ca: Any):
        x, z, p = ca.SX.sym("x", n), ca.SX.sym("z", 0), ca.SX.sym("p", 3)
        left, right = ca.vertcat(0.0, x[:-1]), ca.vertcat(x[1:], 0.0)
        sources = ca.vertcat(*[p[k * 3 // n] for k in range(n)])
        return [0.05 * (n + 1) ** 2 * (left - 2.0 * x + right) + sources - x**3], [], x, z, p

    return Case(f"heated rod, {n}", 1.0, 1e-2, equations, lambda: (rod(n, 3)[0], np.zeros(n)), large=True)


CASES = (
    Case("robertson", 40.0, 1e-4, _robertson),
    Case("chemical_akzo_nobel", 180.0, 1e-3, _akzo),
    _rod(1000),
    _rod(10_000),
)


def errors_of(found: np.ndarray, exact: np.ndarray) -> float:
    """The largest error of the sensitivities (m, n), row by row in units of the row."""
    return float(np.max(np.abs(found - exact) / np.max(np.abs(exact), axis=1, keepdims=True)))


def at_error(points: Sequence[tuple[float, float]]) -> float:
    """The time at the error `AT`, on a line through logarithms; nan if it was not reached."""
    if not points:
        return nan
    points = sorted(points)
    errors, times = np.log([e for e, _ in points]), np.log([t for _, t in points])
    if not errors[0] <= np.log(AT) <= errors[-1]:
        return min((t for e, t in points if e <= AT), default=nan)
    return float(np.exp(np.interp(np.log(AT), errors, times)))


@dataclass
class Run:
    """A tolerance of one program: the error that it gives, the call, and its shortest time in milliseconds so far."""

    error: float
    call: Callable[[], Any]
    milliseconds: float = inf


def daedal_runs(case: Case, exact: np.ndarray, rtols: Sequence[float]) -> tuple[list[Run], list[Run]]:
    """With all sensitivities, and without, where the error of the former is told."""
    problem, y0 = case.problem
    span, end = (0.0, case.end), [case.end]
    found: list[Run] = []
    plain: list[Run] = []
    for rtol in rtols:
        tolerances = {"rtol": rtol, "atol": case.scale * rtol, "dense_output": False}
        solver = daedal.prepare(problem, sensitivities=True, **tolerances)
        bare = daedal.prepare(problem, **tolerances)
        sol = solver.solve(span, (y0, None), t_eval=end)
        error = errors_of(sol.sensitivities.values[:, :, -1], exact)
        for runs, one in ((found, solver), (plain, bare)):
            runs.append(Run(error, lambda one=one: one.solve(span, (y0, None), t_eval=end)))
    return found, plain


def casadi_runs(case: Case, exact: np.ndarray, rtols: Sequence[float]) -> list[Run]:
    """The same with the forward sensitivities of IDAS in CasADi; nothing where it is not installed."""
    if find_spec("casadi") is None:
        return []
    import casadi

    problem, y0 = case.problem
    odes, constraints, x, z, p = case.casadi(casadi)
    system = {"x": x, "z": z, "p": p, "ode": casadi.vertcat(*odes), "alg": casadi.vertcat(*constraints)}
    n = x.numel()
    runs = []
    for rtol in rtols:
        options = {"reltol": rtol, "abstol": case.scale * rtol}
        run = casadi.integrator("run", "idas", system, 0.0, case.end, options)
        derivative = run.factory("derivative", ["x0", "z0", "p"], ["jac:xf:p", "jac:zf:p"])

        def call(derivative=derivative):
            return derivative(y0[:n], y0[n:], problem.params)

        values = call()
        found = np.concatenate([np.array(values[0]), np.array(values[1])]).T
        runs.append(Run(errors_of(found, exact), call))
    return runs


def sundials_runs(case: Case, exact: np.ndarray, rtols: Sequence[float]) -> list[Run]:
    """The same with IDAS through sundials4py; nothing where it is not installed."""
    if find_spec("sundials4py") is None:
        return []
    from benchmarks.idas_sensitivities import idas_run, rod_functions, small_functions

    problem, y0 = case.problem
    functions = rod_functions(problem.n) if case.large else small_functions(problem)
    call = idas_run(problem, functions, np.asarray(y0, dtype=float), case.end, case.scale)
    return [Run(errors_of(call(rtol), exact), lambda rtol=rtol: call(rtol)) for rtol in rtols]


def exact_of(case: Case) -> np.ndarray:
    """Sensitivities at the end, (m, n), to eleven digits or so."""
    problem, y0 = case.problem
    sol = daedal.solve(
        problem,
        (0.0, case.end),
        (y0, None),
        sensitivities=True,
        method="radau",
        rtol=1e-9 if case.large else 1e-12,
        atol=(1e-9 if case.large else 1e-12) * case.scale,
        t_eval=[case.end],
    )
    return sol.sensitivities.values[:, :, -1]


def _processor_time(call: Callable[[], Any], seconds: float) -> float:
    """The shortest of some calls in milliseconds, without what other work on the machine takes."""
    best, begin = inf, time.process_time()
    while (now := time.process_time()) < begin + seconds or best == inf:
        call()
        best = min(best, time.process_time() - now)
    return 1e3 * best


def row(case: Case, rtols: Sequence[float], rounds: int) -> list[str]:
    """One line of the table; the programs take turns, in alternating order."""
    exact = exact_of(case)
    found, plain = daedal_runs(case, exact, rtols)
    programs = [found, plain, casadi_runs(case, exact, rtols), sundials_runs(case, exact, rtols)]
    for turn in range(rounds):
        for runs in programs if turn % 2 == 0 else programs[::-1]:
            for run in runs:
                run.milliseconds = min(run.milliseconds, _processor_time(run.call, 0.1))
    with_all, alone, *peers = (at_error([(r.error, r.milliseconds) for r in runs]) for runs in programs)
    best, m = min((peer for peer in peers if peer == peer), default=nan), exact.shape[0]
    cells = [f"{m}", f"{alone:.2f}", f"{with_all:.2f}", f"{(with_all - alone) / alone / m:.2f}"]
    cells += ["" if peer != peer else f"{peer:.2f}" for peer in (*peers,)]
    return [case.name, *cells, "" if best != best else f"{best / with_all:.1f}"]


def rows(quick: bool = False, say: Callable[[list[str]], None] = lambda row: None) -> list[list[str]]:
    """The table under `HEADS`; the largest problem is left out of the quick one. Lines are told as they come."""
    table = []
    for case in CASES[:-1] if quick else CASES:
        rtols = (1e-3, *RTOLS[:2]) if case.large else RTOLS[1:4] if quick else RTOLS
        table.append(row(case, rtols, 2 if quick else 3))
        say(table[-1])
    return table


def main() -> None:
    """Print the table."""
    limit_threads()

    def say(row: list[str]) -> None:
        print(f"{row[0]:22}" + "".join(f"{cell:>24}" for cell in row[1:]), flush=True)
        if "--save" in sys.argv and row[0] != HEADS[0]:
            keep(sensitivities=[row])

    say(list(HEADS))
    rows("--quick" in sys.argv, say)


if __name__ == "__main__":
    main()
