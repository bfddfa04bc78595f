"""Wunderlich's thesis: ordinary and modified BDF with given steps, and runs with her control of the step size.

Coefficients are in :mod:`daedal.reproduce.second_order_coefficients`.
"""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

import daedal
from daedal import DASSL, Collocation, ModifiedBDF, library
from daedal.reproduce import second_order_coefficients
from daedal.reproduce.printed_table import PrintedTable, Row

Values = list[Mapping[str, Any] | None]
TIMES = np.linspace(0.0, 1.0, 11)


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


_OUTPUT = 0.1  # where DASSL is to stop first
_END = 1.0  # TOUT of (4.30) for the modified BDF
_LITERAL = 1e-12  # (4.20) weighs a difference v by RTOL |v| + ATOL: |v| is the difference itself, next to nothing
_NEVER = 1e6  # with RTOL = ATOL = 1 that is |v| / (|v| + 1), which never fails


def _first_step(rtol: float, atol: float) -> float:
    """(4.30): a thousandth of the way, or half of what the speed 1 of the body takes for a tolerance of q1."""
    return min(1e-3 * _END, 0.5 * (rtol + atol))


def _setting(number: str) -> tuple[Any, Any, int, dict[str, Any]]:
    """Problem, initial values, position of lambda, tolerances of the run of a table."""
    model, atol = library.body_on_circle(), [1e-4, 1e-4, 1e-2, 1e-2, 1e-2]
    options: dict[str, Any] = {"rtol": _LITERAL, "atol": atol, "first_step": _first_step(1e-4, 1e-4)}
    if number == "8.1":
        return model.problem, model.initial, 2, options
    if number == "8.2":
        initial = [0.0, 1.0, 0.0, 0.0], [1.0, 0.0, 0.0, 0.0]
        options |= {"atol": [1e-3, 1e-3, 1e-2, _NEVER, _NEVER, _NEVER], "first_step": _first_step(1e-2, 1e-3)}
        return daedal.SecondOrderDAE(_stabilised, 4), initial, 3, options
    if number == "8.3":
        options["atol"] = [1e-4, 1e-4, 1e-3, 1e-2, 1e-2, 1e-2]
        initial = [0.0, 1.0, 0.0, -1.0, 0.0], [1.0, 0.0, 0.0, 0.0, 0.0]
        return daedal.SecondOrderDAE(_extended, 5), initial, 4, options
    # lambda of second order too, as the thesis writes it
    options["atol"] = [*atol, 1e-1]
    return model.problem.with_order([2, 2, 2]), ([0.0, 1.0, 0.0], [1.0, 0.0, 1.0]), 2, options


def controlled_run(number: str, controller: str = "thesis", scale: float = 1.0, **options: Any) -> Any:
    """The run of Table 8.1, 8.2, 8.3 (modified BDF) or 8.4 (collocation), with the tolerances times `scale`."""
    problem, initial, _, given = _setting(number)
    tolerances = {"atol": np.multiply(scale, given["atol"])}
    method = Collocation("radau", 2, controller=controller) if number == "8.4" else ModifiedBDF(controller=controller)
    return _run(problem, initial, method, **(given | tolerances | options))


def _forces(q1, q2, v1, v2, lam):
    return -q1 - 2.0 * q1 * v1 * v2 - 2.0 * q1 * lam, -v1 + 2.0 * q1 * q2**2 - 2.0 * q2 * lam


def _first_order(t, y, yp):
    """(8.7) in (q1, q2, v1, v2, lambda)."""
    q1, q2, v1, v2, lam = y
    f1, f2 = _forces(q1, q2, v1, v2, lam)
    return np.array([yp[0] - v1, yp[1] - v2, yp[2] - f1, yp[3] - f2, q1**2 + q2**2 - 1.0])


def _first_order_stabilised(t, y, yp):
    """(8.8) in (q1, q2, v1, v2, lambda, eta)."""
    q1, q2, v1, v2, lam, eta = y
    f1, f2 = _forces(q1, q2, v1, v2, lam)
    slips = [yp[0] - v1 + 2.0 * q1 * eta, yp[1] - v2 + 2.0 * q2 * eta, yp[2] - f1, yp[3] - f2]
    return np.array([*slips, q1**2 + q2**2 - 1.0, 2.0 * q1 * v1 + 2.0 * q2 * v2])


def _first_order_reduced(t, y, yp):
    """(8.10) in (q1, q2, v1, v2, lambda), for q2 not zero."""
    q1, q2, v1, v2, lam = y
    f1, f2 = _forces(q1, q2, v1, v2, lam)
    acceleration = 2.0 * v1**2 + 2.0 * q1 * f1 + 2.0 * v2**2 + 2.0 * q2 * f2
    return np.array([yp[0] - v1, yp[2] - f1, q1**2 + q2**2 - 1.0, 2.0 * q1 * v1 + 2.0 * q2 * v2, acceleration])


_BESIDE: dict[str, tuple[Any, list[float]]] = {
    "8.1": (_first_order, [1e-4, 1e-4, 1e-2, 1e-2, 1.0]),
    "8.2": (_first_order_stabilised, [1e-4] * 6),
    "8.3": (_first_order_reduced, [1e-4, 1e-4, 1e-3, 1e-2, 1e-2]),
}


def dassl_run(number: str, **changes: Any) -> Any:
    """The run of DASSL beside it, with all variables in the error test and the first step of DASSL for TOUT = 0.1."""
    residual, atol = _BESIDE[number]
    y, yp = [0.0, 1.0, 1.0, 0.0, 0.0], [1.0, 0.0, 0.0, -1.0, 1.0]
    if len(atol) == 6:
        y, yp = [*y, 0.0], [*yp, 0.0]
    slope = math.sqrt(np.mean((np.array(yp) / (1e-4 * np.abs(y) + atol)) ** 2))
    options: dict[str, Any] = {"rtol": 1e-4, "atol": atol, "first_step": min(1e-3 * _OUTPUT, 0.5 / slope)}
    method = DASSL(error_test="all", remember_rate=True)
    return _run(daedal.ImplicitDAE(residual, len(y)), (y, yp), method, formulation="none", **(options | changes))


def _run(problem: Any, initial: Any, method: Any, **options: Any) -> Any:
    output: dict[str, Any] = {"t_eval": TIMES, "t_stop": math.inf}
    return daedal.solve(problem, (0.0, 1.0), initial, method=method, **(output | options))


def cumulative(sol: Any) -> list[int]:
    """Steps that begin before 0.1, 0.2, ..., 1."""
    starts = sol.history.t - sol.history.h
    return [int(np.sum(starts < t - 1e-12)) for t in TIMES[1:]]


def returns(sol: Any) -> list[int]:
    """Returns of DASSL, which comes back after every step and once more at every point of output before the last."""
    return [steps + outputs for outputs, steps in enumerate(cumulative(sol))]


def errors(number: str, sol: Any) -> dict[str, np.ndarray]:
    """Errors of q1 and lambda at 0.1, 0.2, ..., 1; lambda is the fifth of a first-order form."""
    x, lam = (sol.x, _setting(number)[2]) if isinstance(sol, daedal.SecondOrderSolution) else (sol.y, 4)
    t = sol.t
    return {"q1": np.abs(x[0] - np.sin(t))[1:], "lam": np.abs(x[lam] - np.sin(t) * np.cos(t))[1:]}


def controlled(table: PrintedTable) -> Values:
    """Tables 8.1 to 8.3."""
    modified, dassl = controlled_run(table.number), dassl_run(table.number)
    columns: dict[str, Any] = errors(table.number, modified) | {"steps": cumulative(modified)}
    found = errors(table.number, dassl) | {"steps": returns(dassl)}
    columns |= {f"dassl_{name}": column for name, column in found.items()}
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


def multiplier_figures(table: PrintedTable) -> Values:
    """Figures 8.1 and 8.2: what the text reads off them and off Table 8.1."""
    modified, dassl = controlled_run("8.1"), dassl_run("8.1")
    ours, theirs = errors("8.1", modified), errors("8.1", dassl)
    found = {f"error of {name}": np.max(theirs[name]) / np.max(ours[name]) for name in ours}
    found["steps"] = returns(dassl)[-1] / cumulative(modified)[-1]
    return table.each(lambda row: {"value": found[row["quantity"]]})


TABLES = {
    **second_order_coefficients.TABLES,
    "2.2": constant_steps,
    "3.2": constant_steps,
    "2.3": variable_steps,
    "3.1": variable_steps,
    "orders": modified_bdf,
    **dict.fromkeys(("8.1", "8.2", "8.3"), controlled),
    "fig-8.1": multiplier_figures,
    **dict.fromkeys(("8.4", "8.5"), radau),
    "truck": truck,
}
