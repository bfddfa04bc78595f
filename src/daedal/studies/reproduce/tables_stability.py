"""Ascher and Petzold (1991): Tables 4.1 to 4.8, and further formulations of their Example 3.

Backward Euler with h = 0.01 throughout; all three examples have the solution x = e^t (1, ..., 1) and end at t = 1.
"""

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

import daedal
from daedal import library
from daedal.formulations import (
    GGL,
    Baumgarte,
    CoordinateProjection,
    EssentialODE,
    Index2,
    Index3,
    ProjectedInvariants,
    StateSpace,
)
from daedal.methods import DASSL
from daedal.studies.reproduce.printed_table import PrintedTable, Row

DIRECTIONS: dict[str, Any] = {"B": "B", "C^T": "CT", "unit": [[0.0], [1.0]]}


def backward_euler(problem: Any, initial: Any, formulation: Any) -> daedal.Solution:
    """Solve up to t = 1, or up to a step whose matrix is numerically singular."""
    options: dict[str, Any] = {"method": DASSL(max_order=1), "fixed_step": 0.01}
    try:
        return daedal.solve(problem, (0.0, 1.0), initial, formulation=formulation, **options)
    except daedal.IntegrationError as failure:
        return failure.solution


def states(sol: Any) -> np.ndarray:
    """z at all steps, before projection of the output if there is a projection."""
    n = sol.y.shape[0]
    return sol.raw.y[:n] if sol.raw.y.shape[0] >= n else sol.y


def _multiplier(sol: Any, name: str) -> float:
    (row,) = [i for i, label in enumerate(sol.raw.names) if label.startswith(name)]
    return abs(sol.raw.y[row, -1])


# --- Examples 1 and 2 -----------------------------------------------------------------------------------------------

FIRST_ORDER: dict[str, Callable[[Row], Any]] = {
    "Baumgarte": lambda row: Baumgarte(gamma=row["gamma"]),
    "direct": lambda row: Index2(),
    "projected invariants": lambda row: ProjectedInvariants(),
    "state space": lambda row: StateSpace([[1.0, 0.0]]),
}


def first_order_examples(table: PrintedTable) -> list[Mapping[str, Any] | None]:
    """Tables 4.1 and 4.2; the errors in Table 4.2 are errors of x_1."""
    model = library.get(f"stability_example{table.data['example']}")

    def values(row: Row) -> Mapping[str, float]:
        x = states(backward_euler(model.problem, model.initial, FIRST_ORDER[row["method"]](row)))[:, -1]
        error = np.abs(x - math.e)
        drift = abs((model.problem.C(1.0) @ x + model.problem.r(1.0))[0])
        largest = np.max(error)
        return {"error": largest if table.data["example"] == 1 else error[0], "max_norm": largest, "drift": drift}

    return table.each(values)


# --- Example 3 ------------------------------------------------------------------------------------------------------


def _errors(state: np.ndarray) -> dict[str, Any]:
    error = np.abs(state - math.e)
    return {"position": np.max(error[:2]), "velocity": np.max(error[2:])}


def projected_invariants(table: PrintedTable) -> list[Mapping[str, Any] | None]:
    """Tables 4.3, 4.5, 4.7: projected invariants with k = 1, and the unstabilised form of index 2."""

    def values(row: Row) -> Mapping[str, Any]:
        model = library.stability_example3(row["nu"], table.data["kappa"])
        if row["form"] == "index 2":
            state = states(backward_euler(model.problem, model.initial, Index2()))[:, -1]
            error = state - math.e
            # with C(0), as printed, and with C(1)
            drift, true_drift = (abs(error[0] - c * error[1]) for c in (2.0, 1.0))
            return _errors(state) | {"drift": drift, "true_drift": true_drift}
        sol = backward_euler(model.problem, model.initial, ProjectedInvariants(1, DIRECTIONS[row["D"]]))
        state = states(sol)[:, -1]
        p, v = state[:2], state[2:]
        drift = abs(v[0] - v[1] + p[1] - math.e)  # C v + C' p + r' at t = 1
        return _errors(state) | {"drift": drift, "mu": _multiplier(sol, "mu1")}

    return table.each(values)


def slipped(table: PrintedTable) -> list[Mapping[str, Any] | None]:
    """Table 4.7 with H M^-1 f = (0, 2 v_2/(2 - t)) instead of 2 nu (1, 1/(2 - t)) v_2: p' = v + D mu, 0 = C p + r."""

    def values(row: Row) -> Mapping[str, Any]:
        nu, direction = row["nu"], row["D"]

        def residual(t, y, yp):
            p1, p2, v1, v2, mu = y
            b = [(4.0 - t * t) * nu, (nu - 1.0) * (t + 2.0)]
            d = {"B": b, "C^T": [1.0, t - 2.0], "unit": [0.0, 1.0]}[direction]
            e, slip = np.exp(t), 2.0 / (2.0 - t)
            f1, f2 = -2.0 * nu, slip - 2.0 * (nu - 1.0) / (2.0 - t)  # slip - 2 F, F = B (C B)^-1
            return np.array(
                [
                    yp[0] - v1 - d[0] * mu,
                    yp[1] - v2 - d[1] * mu,
                    yp[2] - f1 * (v2 - e) - e,
                    yp[3] - f2 * (v2 - e) - e,
                    p1 + (t - 2.0) * p2 + (1.0 - t) * e,
                ]
            )

        start = [1.0, 1.0, 1.0, 1.0, 0.0], [1.0, 1.0, 1.0, 1.0, 0.0]
        sol = backward_euler(daedal.ImplicitDAE(residual, 5), start, "none")
        _, p2, v1, v2, mu = sol.y[:, -1]
        return _errors(sol.y[:4, -1]) | {"drift": abs(v1 - v2 + p2 - math.e), "mu": abs(mu)}

    return table.each(values)


def stabilised(table: PrintedTable) -> list[Mapping[str, Any] | None]:
    """Tables 4.4, 4.6, 4.8: the stabilised form of index 2 (4.15)."""

    def values(row: Row) -> Mapping[str, Any]:
        model = library.stability_example3(row["nu"], table.data["kappa"])
        direction = "GT" if row["D"] == "C^T" else DIRECTIONS[row["D"]]
        sol = backward_euler(model.problem, model.initial, GGL(direction))
        return _errors(states(sol)[:, -1]) | {"mu": _multiplier(sol, "mu1")}

    return table.each(values)


FORMULATIONS: dict[str, Callable[[Row], Any]] = {
    "projected invariants": lambda row: ProjectedInvariants(row["k"], DIRECTIONS[row["D"]]),
    "step and projection": lambda row: CoordinateProjection(row["W"], row["levels"]),
    "index 3": lambda row: Index3(),
    "index 2": lambda row: Index2(row["gamma"]),
    "Baumgarte": lambda row: Baumgarte(gamma=row["gamma"]),
    "state space": lambda row: StateSpace(row["R"]),
    "essential ODE": lambda row: EssentialODE(
        lambda t: np.array([[1.0 / row["nu"] - 1.0, 2.0 - t]]), lambda t: np.array([[0.0, -1.0]])
    ),
}


def formulations(table: PrintedTable) -> list[Mapping[str, Any] | None]:
    """Example 3 by all formulations that are described in the paper and available."""

    def values(row: Row) -> Mapping[str, Any]:
        model = library.stability_example3(row["nu"], table.data["kappa"])
        problem: Any = model.problem
        initial: Any = model.initial
        if row["formulation"] == "essential ODE":  # only for linear problems
            problem, initial = _as_linear_problem(row["nu"], table.data["kappa"]), np.ones(4)
        return _errors(states(backward_euler(problem, initial, FORMULATIONS[row["formulation"]](row)))[:, -1])

    return table.each(values)


def _as_linear_problem(nu: float, kappa: float) -> daedal.HessenbergDAE:
    """Example 3 with its mass matrix inverted: x'' = A_2 x' + B y + q, 0 = C x + r."""
    off = nu * (2.0 * nu - 1.0)

    def inverse_mass(t: float) -> np.ndarray:
        return (2.0 + t) * np.array([[2.0 * (2.0 - t) * nu * nu, off], [off, (nu * nu + (nu - 1.0) ** 2) / (2.0 - t)]])

    def damping(t: float) -> np.ndarray:
        return inverse_mass(t) @ np.diag([0.0, kappa / (nu * (2.0 + t))])

    def b(t: float) -> np.ndarray:
        return np.array([[(4.0 - t * t) * nu], [(nu - 1.0) * (t + 2.0)]])

    return daedal.HessenbergDAE(
        lambda t: np.array([np.zeros((2, 2)), damping(t)]),
        b,
        lambda t: np.array([[1.0, t - 2.0]]),
        lambda t: math.exp(t) * (1.0 - np.sum(damping(t), axis=1) + b(t)[:, 0] / (2.0 - t)),
        lambda t: np.array([(1.0 - t) * math.exp(t)]),
        n_x=2,
        n_y=1,
        order=2,
        C_derivatives=lambda t: np.array([[[0.0, 1.0]], [[0.0, 0.0]]]),
        r_derivatives=lambda t: -math.exp(t) * np.array([[t], [1.0 + t]]),
    )


TABLES = {
    "4.1": first_order_examples,
    "4.2": first_order_examples,
    **dict.fromkeys(("4.3", "4.5", "4.7"), projected_invariants),
    "4.7-slip": slipped,
    **dict.fromkeys(("4.4", "4.6", "4.8"), stabilised),
    **dict.fromkeys(("kappa-0", "kappa-1", "kappa-2"), formulations),
}
