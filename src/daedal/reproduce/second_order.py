"""Wunderlich's thesis: ordinary and modified BDF with given steps, and runs with her control of the step size."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

import daedal
from daedal import DASSL, Collocation, ModifiedBDF, library
from daedal.reproduce.printed_table import PrintedTable, Row

Values = list[Mapping[str, Any] | None]
TIMES = np.linspace(0.0, 1.0, 11)


# --- coefficients of BDF --------------------------------------------------------------------------------------------


def coefficients(table: PrintedTable) -> Values:
    """One step from unit vectors: of y' = 1 from zero, h/alpha_0; of y' = 0, -alpha_i/alpha_0."""

    def step(k: int, slope: float, past: np.ndarray) -> float:
        problem = daedal.ImplicitDAE(lambda t, y, yp: [yp[0] - slope], 1)
        method = DASSL(max_order=k, starting_values=past[None])
        return daedal.solve(problem, (0.0, float(k)), ([past[0]], [slope]), method=method, fixed_step=1.0).y[0, k]

    def values(row: Row) -> Mapping[str, Any]:
        k = row["k"]
        leading = 1.0 / step(k, 1.0, np.zeros(k))
        others = {f"a{k - j}": -leading * step(k, 0.0, unit) for j, unit in enumerate(np.eye(k))}
        return {"a0": leading} | others

    return table.each(values)


# --- particle on a circle, given steps ------------------------------------------------------------------------------


def multiplier_errors(family: str, grid: np.ndarray, order: int) -> dict[float, float]:
    """Errors of lambda at the points of a grid."""
    model = library.particle_on_circle()
    method = ModifiedBDF(grid=grid, max_order=order, family=family)
    sol: Any = daedal.solve(model.problem, (1.0, grid[-1]), model.initial, method=method)
    return {round(t, 9): error for t, error in zip(sol.t, np.abs(sol.x[2] + 4.0 * sol.t**2))}


def constant_steps(table: PrintedTable) -> Values:
    """Tables 2.2 and 3.2."""
    order, runs = (1, {"h": "ordinary"}) if table.number == "2.2" else (2, {"ordinary": "ordinary", "sand": "sand"})
    errors = {}
    for key in table.columns:
        name = key.rstrip("0123456789")
        h = int(key.removeprefix(name)) * 1e-3
        errors[key] = multiplier_errors(runs[name], 1.0 + h * np.arange(round(0.05 / h) + 1), order)
    return table.each(lambda row: {key: errors[key][row["t"]] for key in row.cells})


def variable_steps(table: PrintedTable) -> Values:
    """Tables 2.3 and 3.1."""
    grid = 1.0 + np.concatenate([[0.0], np.cumsum(table.data["steps"])])
    errors = {key: list(multiplier_errors(key, grid, 1).values()) for key in table.columns}
    return table.each(lambda row: {key: errors[key][row["step"]] for key in row.cells})


def modified_bdf(table: PrintedTable) -> Values:
    """Largest errors over 320 steps of length 1/320, without the first four, which the step of order 1 spoils."""

    def values(row: Row) -> Mapping[str, Any]:
        model = library.get(row["problem"])
        method = ModifiedBDF(max_order=row["k"], family="sand")
        sol: Any = daedal.solve(model.problem, model.t_span, model.initial, method=method, fixed_step=1.0 / 320)
        exact, slopes = (np.array([model.extra["exact"](t, k) for t in sol.t]).T for k in (0, 1))
        x, xp = (np.max(np.abs(error)[:, 5:], axis=1) for error in (sol.x - exact, sol.xp - slopes))
        return {"y": max(x[:2]), "velocity": max(xp[:2]), "lam": x[2]}

    return table.each(values)


# --- body on a circle, with control of the step size ----------------------------------------------------------------


def _stabilised(t, x, xp, xpp):
    """(8.4), GGL of second order, in (q1, q2, eta, lambda), with eta' where the thesis prints lambda'."""
    q1, q2, eta, lam, slope = x[0], x[1], x[2], x[3], xp[2]
    u1, u2 = xp[0] + 2.0 * q1 * eta, xp[1] + 2.0 * q2 * eta
    return np.array(
        [
            xpp[0] + q1 + 2.0 * q1 * u1 * u2 + 2.0 * q1 * lam + 2.0 * xp[0] * eta + 2.0 * q1 * slope,
            xpp[1] + u1 - 2.0 * q1 * q2**2 + 2.0 * q2 * lam + 2.0 * xp[1] * eta + 2.0 * q2 * slope,
            q1**2 + q2**2 - 1.0,
            2.0 * q1 * u1 + 2.0 * q2 * u2,
        ]
    )


def _extended(t, x, xp, xpp):
    """(8.5), the minimal extension, in (q1, q2, w1, w2, lambda)."""
    q1, q2, w1, w2, lam, v1 = x[0], x[1], x[2], x[3], x[4], xp[0]
    f1, f2 = -q1 - 2.0 * q1 * v1 * w1 - 2.0 * q1 * lam, -v1 + 2.0 * q1 * q2**2 - 2.0 * q2 * lam
    return np.array(
        [
            xpp[0] - f1,
            w2 - f2,
            q1**2 + q2**2 - 1.0,
            2.0 * q1 * v1 + 2.0 * q2 * w1,
            2.0 * v1**2 + 2.0 * q1 * f1 + 2.0 * w1**2 + 2.0 * q2 * f2,
        ]
    )


def _setting(number: str) -> tuple[Any, Any, int, dict[str, Any]]:
    """Problem, initial values, position of lambda, tolerances and first step of the run of a table."""
    model, atol = library.body_on_circle(), [1e-4, 1e-4, 1e-2, 1e-2, 1e-2]
    options: dict[str, Any]
    if number == "8.1":
        return model.problem, model.initial, 2, {"rtol": 1e-4, "atol": atol}
    if number == "8.2":
        options = {"rtol": [1e-2, 1e-2, 1e-1, 1.0, 1.0, 1.0], "atol": [1e-3, 1e-3, 1e-2, 1.0, 1.0, 1.0]}
        initial = [0.0, 1.0, 0.0, 0.0], [1.0, 0.0, 0.0, 0.0]
        return daedal.SecondOrderDAE(_stabilised, 4), initial, 3, options | {"first_step": 1e-3}
    if number == "8.3":
        options = {"rtol": 1e-4, "atol": [1e-4, 1e-4, 1e-3, 1e-2, 1e-2, 1e-2]}
        initial = [0.0, 1.0, 0.0, -1.0, 0.0], [1.0, 0.0, 0.0, 0.0, 0.0]
        return daedal.SecondOrderDAE(_extended, 5), initial, 4, options
    # lambda of second order too, as the thesis writes it; first step as in her Table 8.1
    options = {"rtol": 1e-4, "atol": [*atol, 1e-1], "first_step": 1.39e-4}
    return model.problem.with_order([2, 2, 2]), ([0.0, 1.0, 0.0], [1.0, 0.0, 1.0]), 2, options


def controlled_run(number: str, controller: str = "thesis", scale: float = 1.0, **options: Any) -> Any:
    """The run of Table 8.1, 8.2, 8.3 (modified BDF) or 8.4 (collocation), with all tolerances times `scale`."""
    problem, initial, _, given = _setting(number)
    tolerances = {name: np.multiply(scale, given[name]) for name in ("rtol", "atol")}
    method = Collocation("radau", 2, controller=controller) if number == "8.4" else ModifiedBDF(controller=controller)
    return _run(problem, initial, method, **(given | tolerances | options))


def dassl_run(number: str) -> Any:
    """The run of DASSL beside it, on the form of first order; GGL and minimal extension are formulations."""
    if number == "8.1":
        model = library.body_on_circle()
        return _run(model.problem, model.initial, "dassl", rtol=1e-4, atol=[1e-4, 1e-4, 1.0, 1e-2, 1e-2])
    model = library.body_on_circle(form="mechanical")
    form = "ggl" if number == "8.2" else "minimal_extension"
    return _run(model.problem, model.initial, DASSL(), formulation=form, rtol=1e-4, atol=1e-4)


def _run(problem: Any, initial: Any, method: Any, **options: Any) -> Any:
    return daedal.solve(problem, (0.0, 1.0), initial, method=method, t_eval=TIMES, t_stop=math.inf, **options)


def cumulative(sol: Any) -> list[int]:
    """Steps that begin before 0.1, 0.2, ..., 1."""
    starts = sol.history.t - sol.history.h
    return [int(np.sum(starts < t - 1e-12)) for t in TIMES[1:]]


def errors(number: str, sol: Any) -> dict[str, np.ndarray]:
    """Errors of q1 and lambda at 0.1, 0.2, ..., 1."""
    mechanism = isinstance(sol, daedal.MechanicalSolution)
    q1, lam = (sol.q[0], sol.lam[0]) if mechanism else (sol.x[0], sol.x[_setting(number)[2]])
    t = sol.t
    return {"q1": np.abs(q1 - np.sin(t))[1:], "lam": np.abs(lam - np.sin(t) * np.cos(t))[1:]}


def controlled(table: PrintedTable) -> Values:
    """Tables 8.1 to 8.3."""
    modified, dassl = controlled_run(table.number), dassl_run(table.number)
    columns: dict[str, Any] = {}
    for prefix, sol in (("", modified), ("dassl_", dassl)):
        found = errors(table.number, sol) | {"steps": cumulative(sol)}
        columns |= {prefix + name: column for name, column in found.items()}
    return [{key: column[i] for key, column in columns.items()} for i in range(len(table.rows))]


def radau(table: PrintedTable) -> Values:
    """Tables 8.4 and 8.5."""
    sol, t = controlled_run("8.4"), TIMES
    others = {
        "q2": sol.x[1] - np.cos(t),
        "v1": sol.xp[0] - np.cos(t),
        "v2": sol.xp[1] + np.sin(t),
        "mu": sol.xp[2] - np.cos(2.0 * t),
    }
    columns: dict[str, Any] = errors("8.4", sol) | {key: np.abs(error)[1:] for key, error in others.items()}
    columns["steps"] = cumulative(sol)
    return [{key: columns[key][i] for key in table.columns} for i in range(len(table.rows))]


def truck(table: PrintedTable) -> Values:
    """Not computed: its data are not printed."""
    return table.each(lambda row: {})


TABLES = {
    "2.1": coefficients,
    "2.2": constant_steps,
    "3.2": constant_steps,
    "2.3": variable_steps,
    "3.1": variable_steps,
    "orders": modified_bdf,
    **dict.fromkeys(("8.1", "8.2", "8.3"), controlled),
    **dict.fromkeys(("8.4", "8.5"), radau),
    "truck": truck,
}
