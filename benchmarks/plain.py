"""Plain differential equations beside SciPy: ``python -m benchmarks.plain``; part of `make bench`.

Lorenz, Arenstorf, Pleiades and van der Pol with mu = 1000, to the end point. Daedal gets a plain function, and solves
with its automatic choice; SciPy gets the same function plain or through Numba, with every method that suits. The
shortest of a few runs counts, after a first one, in which functions are traced and compiled. Times at an error are
interpolated (log-log) on the line of the best runs.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from benchmarks.machines import Run, figures, measured_in_turns
from benchmarks.measure import Point
from benchmarks.solvers.base import Level
from benchmarks.worker import limit_threads

ERRORS = (1e-3, 1e-5, 1e-7, 1e-9)
HEADS = ("problem", "program", *(f"{error:.0e}" for error in ERRORS), "best error", "failed runs")
PROGRAMS = ("Daedal", "SciPy, plain", "SciPy, Numba")
_RTOLS = tuple(10.0**-k for k in range(3, 13))
_MU = 0.012277471  # of the moon


def lorenz(t, y):
    return np.array([10.0 * (y[1] - y[0]), y[0] * (28.0 - y[2]) - y[1], y[0] * y[1] - 8.0 / 3.0 * y[2]])


def arenstorf(t, y):
    earth = ((y[0] + _MU) ** 2 + y[1] ** 2) ** 1.5
    moon = ((y[0] - 1.0 + _MU) ** 2 + y[1] ** 2) ** 1.5
    pull = (1.0 - _MU) / earth, _MU / moon
    return np.array(
        [
            y[2],
            y[3],
            y[0] + 2.0 * y[3] - pull[0] * (y[0] + _MU) - pull[1] * (y[0] - 1.0 + _MU),
            y[1] - 2.0 * y[2] - pull[0] * y[1] - pull[1] * y[1],
        ]
    )


def pleiades(t, y):
    r = np.empty(28)
    for i in range(14):
        r[i] = y[14 + i]
        r[14 + i] = 0.0
    for i in range(7):
        for j in range(i):
            dx, dy = y[j] - y[i], y[7 + j] - y[7 + i]
            cubed = (dx * dx + dy * dy) ** 1.5
            r[14 + i] = r[14 + i] + (j + 1) * dx / cubed
            r[21 + i] = r[21 + i] + (j + 1) * dy / cubed
            r[14 + j] = r[14 + j] - (i + 1) * dx / cubed
            r[21 + j] = r[21 + j] - (i + 1) * dy / cubed
    return r


def van_der_pol(t, y):
    return np.array([y[1], 1000.0 * (1.0 - y[0] * y[0]) * y[1] - y[0]])


def cases() -> dict[str, tuple[Callable[..., Any], float, np.ndarray, np.ndarray, tuple[str, ...]]]:
    """Right-hand side, end, start, the components that are known there, and the methods of SciPy, by name.

    HNW I, sections I.16, II.0 and II.10; F. Mazzia, C. Magherini, Test Set for Initial Value Problem Solvers (2008).
    """
    import daedal

    stars = daedal.library.get("pleiades")
    satellite = np.array([0.994, 0.0, 0.0, -2.00158510637908252240537862224])
    explicit, stiff = ("RK45", "DOP853", "LSODA"), ("LSODA", "Radau", "BDF")
    butterfly = daedal.solve(
        daedal.ODE(lorenz, 3), (0.0, 10.0), [1.0, 1.0, 1.0], method="radau", rtol=1e-13, atol=1e-14
    )
    return {
        "Lorenz": (lorenz, 10.0, np.ones(3), butterfly.y[:, -1], explicit),
        "Arenstorf": (arenstorf, 17.0652165601579625588917206249, satellite, satellite, explicit),
        "Pleiades": (pleiades, 3.0, stars.initial[0], stars.reference.y[:14], explicit),
        "van der Pol": (
            van_der_pol,
            2000.0,
            np.array([2.0, 0.0]),
            np.array([1.706167732170469, -0.8928097010248125e-3]),
            stiff,
        ),
    }


def in_daedal(f, t1: float, y0: np.ndarray) -> Iterator[Run]:
    """Runs of prepared solvers, with the automatic choice."""
    import daedal

    problem = daedal.ODE(f, y0.size)
    for rtol in _RTOLS:
        solver = daedal.prepare(problem, rtol=rtol, atol=rtol, dense_output=False)
        last: list[Any] = []

        def simulate(solver=solver, last=last) -> None:
            last[:] = [solver.solve((0.0, t1), y0, t_eval=[t1]).y[:, -1]]

        yield "Daedal", rtol, simulate, lambda last=last: last[0]


def in_scipy(f, t1: float, y0: np.ndarray, methods: tuple[str, ...]) -> Iterator[Run]:
    """Runs of SciPy's solve_ivp, with the function as it is and through Numba."""
    import numba
    from scipy.integrate import solve_ivp

    for program, function in (("SciPy, plain", f), ("SciPy, Numba", numba.njit(f))):
        for method in methods:
            for rtol in _RTOLS:
                last: list[Any] = []

                def simulate(function=function, method=method, rtol=rtol, last=last) -> None:
                    found = solve_ivp(function, (0.0, t1), y0, method=method, rtol=rtol, atol=rtol, t_eval=[t1])
                    last[:] = [found.y[:, -1]]

                yield f"{program} {method}", rtol, simulate, lambda last=last: last[0]


def points(name: str, quick: bool = False) -> list[Point]:
    """All runs of a problem."""
    f, t1, y0, known, methods = cases()[name]
    runs = [*in_daedal(f, t1, y0), *in_scipy(f, t1, y0, methods)]
    runs = [run for run in runs if not quick or run[1] in _RTOLS[::3]]
    return measured_in_turns(
        [(Point(name, run[0], Level(run[1], run[1])), *run[2:]) for run in runs],
        lambda y: float(np.max(np.abs(y[: known.size] - known))),
    )


def table(measured: list[Point]) -> list[list[str]]:
    """The rows under `HEADS`: milliseconds at equal errors, and in brackets how many times longer than Daedal."""
    return figures(measured, PROGRAMS, ERRORS)


def rows(quick: bool = False) -> list[list[str]]:
    """The table under `HEADS`."""
    return table([point for name in cases() for point in points(name, quick)])


def main() -> None:
    """Print the table."""
    limit_threads()
    print("".join(f"{head:>18}" for head in HEADS))
    for name in cases():
        for row in table(points(name, "--quick" in sys.argv)):
            print("".join(f"{cell:>18}" for cell in row), flush=True)


if __name__ == "__main__":
    main()
