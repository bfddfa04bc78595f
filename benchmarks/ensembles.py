"""Runs a second of ensembles: ``python -m benchmarks.ensembles [--quick]``; it is part of `make bench`.

``python -m benchmarks.ensembles --threads [2 4 ...]`` shows what threads gain, without what a start costs.

One problem with many values of its parameters, on one thread, on two, and on processes; beside SciPy in a pool of as
many processes, which gets mechanisms as ordinary differential equations, solved for the accelerations in NumPy, since
it has nothing for constraints. Both run at the tolerances at which they reach about the same error; it is that of the
final state against a run with rtol = 1e-10, in the worst of some members: of mechanisms relative to the largest entry,
of reactions in each component.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np

import daedal
from benchmarks.worker import limit_threads

HEADS = (
    "problem",
    "members",
    "error",
    "1 thread [runs/s]",
    "2 threads [runs/s]",
    "2 processes [runs/s]",
    "SciPy, 2 processes [runs/s]",
    "its error",
)
_WORKERS = 2
_JUDGED = 5  # members whose error is looked at


@dataclass(frozen=True)
class Case:
    """A problem of the library with parameters that vary."""

    name: str
    members: int
    params: Callable[[Any, np.ndarray], Any]  # of the model and numbers between 0.9 and 1.1
    rtol: float
    scipy_rtol: float | None  # None where SciPy cannot state it
    slopes: Callable[[np.ndarray], np.ndarray] | None = None  # y' that belongs to parameters
    builds: bool = False  # whether each member builds its problem
    t1: float | None = None


def _weights(model: Any, factors: np.ndarray) -> np.ndarray:
    """Other weights; the lengths stay, so that the start is consistent."""
    rows = np.tile(np.asarray(model.problem.params, dtype=float), (factors.size, 1))
    rows[:, -2:] *= factors[:, None]
    return rows


def _rates(model: Any, factors: np.ndarray) -> np.ndarray:
    return np.asarray(model.problem.params) * np.column_stack([factors, factors[::-1], np.ones(factors.size)])


def _robertson_slopes(rates: np.ndarray) -> np.ndarray:
    return np.column_stack([-rates[:, 0], rates[:, 0], np.zeros(len(rates))])


CASES = (
    Case("planar_pendulum", 20_000, lambda m, f: np.column_stack([np.ones(f.size), f]) * m.problem.params, 1e-5, 1e-6),
    Case("double_pendulum", 10_000, _weights, 1e-5, 1e-6),
    Case("crank_slider", 10_000, _weights, 1e-5, 1e-6),
    Case("seven_body", 4_000, lambda m, f: 0.033 * f[:, None], 1e-5, 1e-6),
    Case("robertson", 10_000, _rates, 1e-5, 1e-5, _robertson_slopes),
    Case("stick_slip_block", 40, lambda m, f: {"mu": 0.3 * f}, 1e-5, None, builds=True),
)


class Builder:
    """Builds a problem of the library; it pickles."""

    def __init__(self, name: str):
        self.name = name

    def __call__(self, **parameters: float) -> tuple[Any, Any]:
        model = daedal.library.get(self.name, **parameters)
        return model.problem, model.initial


def ensemble_of(case: Case, members: int, rtol: float, on: str, workers: int) -> Any:
    """Daedal's ensemble; every member has the tolerances that suit its problem beside rtol."""
    model = daedal.library.get(case.name)
    factors = np.linspace(0.9, 1.1, members)
    params, options = case.params(model, factors), dict(model.options) | {"rtol": rtol}
    if "atol" not in model.options:
        options["atol"] = 1e-2 * rtol
    options = {name: options[name] for name in ("rtol", "atol")}
    where = {"on": on, "workers": workers}
    if case.builds:
        return daedal.solve_many(Builder(case.name), model.t_span, None, params=params, **options, **where)
    initials = model.initial if case.slopes is None else (model.initial[0], case.slopes(params))
    return daedal.solve_many(model.problem, model.t_span, initials, params=params, **options, **where)


def rate(case: Case, members: int, on: str, workers: int) -> float:
    """Runs a second, without the first member, which loads and compiles."""
    ensemble_of(case, 2, case.rtol, on, 1)
    ensemble = ensemble_of(case, members, case.rtol, on, workers)
    return members / ensemble.seconds


def error(case: Case, values: np.ndarray, right: np.ndarray) -> float:
    """The largest error beside the largest entry, of reactions beside the largest of its component.

    Variables that a mode does not have are nan in both; where only one of them has a variable, the error is infinite.
    """
    sizes = np.nanmax(np.abs(right), axis=0) if case.name == "robertson" else np.nanmax(np.abs(right))
    one, other = np.isnan(values), np.isnan(right)
    errors = np.where(one & other, 0.0, np.where(one != other, np.inf, np.abs(values - right) / sizes))
    return float(np.max(errors))


# --- SciPy ------------------------------------------------------------------------------------------------------------


def scipy_run(name: str, params: np.ndarray, rtol: float) -> np.ndarray:
    """The final state of one member."""
    from scipy.integrate import solve_ivp

    model = daedal.library.get(name)
    t, atol = model.t_span, model.options.get("atol", 1e-2 * rtol)
    if name == "robertson":
        k1, k2, k3 = params

        def reaction(t, y):
            forward, back, third = k1 * y[0], k2 * y[1] * y[2], k3 * y[1] ** 2
            return [-forward + back, forward - back - third, third]

        return solve_ivp(reaction, t, model.initial[0], "Radau", [t[1]], rtol=rtol, atol=atol).y[:, -1]
    system, q0 = model.problem, np.concatenate(model.initial)
    n, m = system.n_q, system.n_constraints

    def motion(t, x):
        q, v = x[:n], x[n:]
        mass = system.mass(t, q, params) if callable(system.mass) else np.asarray(system.mass)
        jacobian = np.asarray(system.constraint_jacobian(t, q, params)).reshape(m, n)
        matrix = np.block([[mass * np.eye(n) if mass.ndim == 0 else mass, jacobian.T], [jacobian, np.zeros((m, m))]])
        right = np.concatenate([system.force(t, q, v, params), system.acceleration_bias(t, q, v, params)])
        return np.concatenate([v, np.linalg.solve(matrix, right)[:n]])

    return solve_ivp(motion, t, q0, "DOP853", [t[1]], rtol=rtol, atol=atol).y[:, -1]


def scipy_rate(case: Case, members: int) -> tuple[float, float]:
    """Runs a second in a pool of processes, and the error."""
    assert case.scipy_rtol is not None
    model = daedal.library.get(case.name)
    rows = case.params(model, np.linspace(0.9, 1.1, members))
    with ProcessPoolExecutor(_WORKERS) as pool:
        list(pool.map(scipy_run, [case.name] * _WORKERS, rows[:_WORKERS], [case.scipy_rtol] * _WORKERS))
        began = time.perf_counter()
        values = list(pool.map(scipy_run, [case.name] * members, rows, [case.scipy_rtol] * members, chunksize=4))
        seconds = time.perf_counter() - began
    right = ensemble_of(case, members, 1e-10, "threads", 1).final.y
    return members / seconds, error(case, np.array(values)[:_JUDGED], right[:_JUDGED])


def rows(quick: bool = False) -> list[list[str]]:
    """The table under `HEADS`."""
    found = []
    for case in CASES:
        members = max(_JUDGED, case.members // (20 if quick else 1))
        own = error(
            case,
            ensemble_of(case, _JUDGED, case.rtol, "threads", 1).final.y,
            ensemble_of(case, _JUDGED, 1e-10, "threads", 1).final.y,
        )
        places = [("threads", 1), ("threads", _WORKERS), ("processes", _WORKERS)]
        rates = [rate(case, members, on, workers) for on, workers in places]
        peer = ["", ""]
        if case.scipy_rtol is not None:
            speed, theirs = scipy_rate(case, 20 if quick else 100)
            peer = [f"{speed:.4g}", f"{theirs:.0e}"]
        found.append([case.name, str(members), f"{own:.0e}", *[f"{r:.4g}" for r in rates], *peer])
    return found


def rate_of_threads(case: Case, workers: int, each: int, repeats: int = 5) -> float:
    """Runs a second on threads, `each` and twice as many members for each of them: the difference has no start."""
    best = {
        count: min(ensemble_of(case, count, case.rtol, "threads", workers).seconds for _ in range(repeats))
        for count in (each * workers, 2 * each * workers)
    }
    (few, short), (many, long) = best.items()
    return (many - few) / (long - short)


def show_threads(workers: list[int], each: int = 2000) -> None:
    """How many times as many runs a second threads give as one thread; the machine should have nothing else to do."""
    for case in CASES:
        if not case.builds:
            ensemble_of(case, 2, case.rtol, "threads", 1)
            one, *more = [rate_of_threads(case, count, each) for count in (1, *workers)]
            gains = "".join(f"   {count} threads: {rate / one:.2f} times" for count, rate in zip(workers, more))
            print(f"{case.name:>18}   1 thread: {one:.4g} runs/s{gains}", flush=True)


def main() -> None:
    """Print the table."""
    limit_threads()
    if "--threads" in sys.argv:
        show_threads([int(word) for word in sys.argv[1:] if word.isdigit()] or [_WORKERS])
        return
    for row in (HEADS, *rows("--quick" in sys.argv)):
        print("".join(f"{cell:>28}" for cell in row))


if __name__ == "__main__":
    main()
