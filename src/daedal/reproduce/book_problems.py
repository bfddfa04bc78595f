"""Brenan, Campbell and Petzold, chapters 3 and 4: the problems of index 1, 2 and 3 with their exact solutions.

A method of a table is one of constant steps: BDF with exact starting values, or an implicit Runge-Kutta method. The
book prints no coefficients of the latter. The two-stage SIRK is fixed by its properties; the five-stage DIRK is that
of Cash, to which the book refers; the three-stage SIRK has free nodes, here 1/6, 1/2, 5/6; seven stages of backward
Euler are 1, 2 and 4 steps; in place of the method of Houbak and Thomsen stands one with the same properties.
"""

import math
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import numpy as np

import daedal
from daedal import DASSL, ImplicitRungeKutta
from daedal.reproduce.printed_table import Row

Values = list[Mapping[str, Any] | None]
Exact = Callable[[float, int], np.ndarray]
FORMULAS = {
    "two-stage SIRK": "sirk2",
    "five-stage DIRK": "dirk5",
    "SDIRK4": "sdirk4",
    "three-stage SIRK": "sirk3",
    "three-stage SIRK, collocation": "sirk3_collocation",
    "seven-stage extrapolation": "extrapolation_124",
    "Houbak-Thomsen": "sdirk2",
    "Lobatto IIIC": "lobatto_iiic3",
    "midpoint": "implicit_midpoint",
    "Gauss": "gauss{stages}",
    "Radau IIA": "radau_iia{stages}",
}
ROUND_OFF = {"rtol": 1e-4, "atol": 1e-4}  # corrections that do not fall any more are round-off, if they are below it


def formula_of(row: Row) -> str:
    """The name of the coefficients of a row."""
    return FORMULAS[row["method"]].format(**row.parameters)


def solve_row(residual: Callable, exact: Exact, row: Row, steps: int) -> daedal.Solution:
    """F(t, y, y') = 0 on [0, 1] with constant steps by the method of a row; exact values to start with."""
    problem = daedal.ImplicitDAE(residual, exact(0.0, 0).size)
    initial, h = (exact(0.0, 0), exact(0.0, 1)), 1.0 / steps
    if row.get("k") is not None:
        starting = np.array([exact(i / steps, 0) for i in range(row["k"])]).T
        method: Any = DASSL(max_order=row["k"], starting_values=starting)
        return daedal.solve(problem, (0.0, 1.0), initial, method=method, fixed_step=h)
    method = ImplicitRungeKutta(formula_of(row))
    return daedal.solve(problem, (0.0, 1.0), initial, method=method, fixed_step=h, **ROUND_OFF)


def halving(coarse: float, fine: float) -> float:
    """The order that is observed when the steps are halved."""
    return math.log2(coarse / fine)


def observed_orders(errors: list[dict[str, float]]) -> dict[str, float]:
    """The orders of the last halving of the step, by variable."""
    return {name: halving(errors[-2][name], error) for name, error in errors[-1].items()}


# --- fully implicit, index 1 (4.3.33) -------------------------------------------------------------------------------


def index1(t, y, yp):
    return np.array([yp[0] - t * yp[1] + y[0] - (1.0 + t) * y[1], y[1] - np.sin(t)])


def index1_exact(t: float, derivative: int) -> np.ndarray:
    s, c = math.sin(t), math.cos(t)
    return np.array([math.exp(-t) + t * s, s] if derivative == 0 else [-math.exp(-t) + s + t * c, c])


def index1_error(row: Row, steps: int) -> float:
    """The error of x at t = 1."""
    sol = solve_row(index1, index1_exact, row, steps)
    return abs(sol.y[0, -1] - index1_exact(1.0, 0)[0])


# --- the pendulum (4.4.9) -------------------------------------------------------------------------------------------


def index2(t, y, yp):
    x1, x2, x3, x4, lam, mu = y
    return np.array(
        [
            yp[0] - x3 + x1 * mu,
            yp[1] - x4 + x2 * mu,
            yp[2] + lam * x1,
            yp[3] + lam * x2 + 1.0,
            0.5 * (1.0 - x1 * x1 - x2 * x2),
            x1 * x3 + x2 * x4,
        ]
    )


def index3(t, y, yp):
    x1, x2, x3, x4, lam = y
    return np.array([yp[0] - x3, yp[1] - x4, yp[2] + lam * x1, yp[3] + lam * x2 + 1.0, 0.5 * (1.0 - x1 * x1 - x2 * x2)])


@cache
def _angle() -> daedal.Solution:
    """The angle equation a'' = -cos a, a(0) = a'(0) = 0."""
    system = daedal.MechanicalSystem(1.0, lambda t, q, v: [-math.cos(q[0])], n_q=1)
    return daedal.solve(system, (0.0, 1.0), ([0.0], [0.0]), method="dopri5", rtol=1e-14, atol=1e-15, max_step=2e-3)


def pendulum_exact(t: float, derivative: int, multipliers: int = 2) -> np.ndarray:
    """Position, velocity, lambda and mu, from the angle."""
    state: Any = _angle()(t)
    a, w = state.q[0], state.v[0]
    s, c = math.sin(a), math.cos(a)
    if derivative == 0:
        return np.array([c, s, -s * w, c * w, w * w - s, 0.0])[: 4 + multipliers]
    return np.array([-s * w, c * w, -c * w * w + s * c, -s * w * w - c * c, -3.0 * c * w, 0.0])[: 4 + multipliers]


def index2_errors(row: Row, steps: int) -> dict[str, float]:
    """Errors at t = 1: of the states, and of the multipliers, one by one and together."""
    sol = solve_row(index2, pendulum_exact, row, steps)
    error = np.abs(sol.y[:, -1] - pendulum_exact(1.0, 0))
    return {"x": np.max(error[:4]), "lam": error[4], "mu": error[5], "y": np.max(error[4:])}


def index3_errors(row: Row, steps: int) -> dict[str, float]:
    """Errors at t = 1 of positions, velocities and the multiplier."""

    def exact(t: float, derivative: int) -> np.ndarray:
        return pendulum_exact(t, derivative, 1)

    error = np.abs(solve_row(index3, exact, row, steps).y[:, -1] - exact(1.0, 0))
    return {"position": np.max(error[:2]), "velocity": np.max(error[2:4]), "lam": error[4]}


# --- canonical systems N y' + y = g ---------------------------------------------------------------------------------


def canonical(t, y, yp):
    r = y - np.array([math.sin(t), math.cos(2.0 * t), math.exp(-t)])[: y.size]
    r[1:] += yp[:-1]
    return r


def canonical_exact(index: int, t: float, derivative: int) -> np.ndarray:
    s, c, e = (math.sin(t), math.cos(t)), (math.sin(2.0 * t), math.cos(2.0 * t)), math.exp(-t)
    if derivative == 0:
        return np.array([s[0], c[1] - s[1], e + 2.0 * c[0] - s[0]])[:index]
    return np.array([s[1], -2.0 * c[0] + s[0], -e + 4.0 * c[1] - s[1]])[:index]


def canonical_error(row: Row, index: int, steps: int) -> float:
    """The error of the last component at t = 1."""

    def exact(t: float, derivative: int) -> np.ndarray:
        return canonical_exact(index, t, derivative)

    return abs(solve_row(canonical, exact, row, steps).y[-1, -1] - exact(1.0, 0)[-1])
