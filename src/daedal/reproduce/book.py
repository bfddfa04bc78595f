"""Brenan, Campbell and Petzold: the pendulum and trajectory control of chapter 6 by DASSL and by constant steps.

The tables of chapter 3 are in :mod:`daedal.reproduce.book_orders`, those of implicit Runge-Kutta methods in
:mod:`daedal.reproduce.book_runge_kutta`.
"""

import math
from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np

import daedal
from daedal import DASSL, library
from daedal.reproduce import book_extrapolation, book_levels, book_orders, book_runge_kutta
from daedal.reproduce.book_problems import Values, observed_orders
from daedal.reproduce.printed_table import PrintedTable, Row


def _residuals(sol: daedal.Solution) -> int:
    """Residual evaluations without those for difference Jacobians, as DASSL counts them."""
    return sol.stats.residual_evaluations - sol.stats.jacobian_residual_evaluations


# --- pendulum -------------------------------------------------------------------------------------------------------


def pendulum_of_index_3(table: PrintedTable) -> Values:
    """Table 6.2.1: BDF2 with constant steps; three accurate starting values."""
    model = library.pendulum(form="index3")
    assert model.reference is not None
    start = daedal.solve(*_pendulum_start(), rtol=1e-13, atol=1e-13, method="dassl")
    errors = []
    for h in table.data["step_sizes"]:
        values = np.array([_pendulum_state(*start(i * h)) for i in range(3)]).T
        sol = daedal.solve(
            model.problem, model.t_span, model.initial, fixed_step=h, max_order=2, starting_values=values
        )
        errors.append(dict(zip(sol.names, np.abs(sol.y[:, -1] / model.reference.y - 1.0))))
    fine, _ = solve_pendulum("index1", 1e-12)
    return table.by_column([dict(zip(fine.names, fine.y[:, -1])), *errors])


def _pendulum_start() -> tuple[Any, tuple[float, float], tuple[Any, Any]]:
    """The angle equation a'' = cos a on a short interval."""

    def residual(t, y, yp):
        return [yp[0] - y[1], yp[1] - math.cos(y[0])]

    return daedal.ImplicitDAE(residual, 2), (0.0, 0.02), ([0.0, 1.0], [1.0, 1.0])


def _pendulum_state(a: float, w: float) -> list[float]:
    s, c = math.sin(a), math.cos(a)
    return [c, s, -s * w, c * w, w * w + s]


def solve_pendulum(form: str, rtol: float, **options: Any) -> tuple[daedal.Solution, library.Model]:
    model = library.pendulum(form=form)
    method = DASSL(remember_rate=False, **options)
    return daedal.solve(model.problem, model.t_span, model.initial, rtol=rtol, atol=rtol, method=method), model


def drift_of_the_pendulum(table: PrintedTable) -> Values:
    """Table 6.2.2."""

    def values(row: Row) -> Mapping[str, Any]:
        sol, model = solve_pendulum("index1", row["rtol"])
        return _constraints(model, sol)

    return table.each(values)


def _constraints(model: library.Model, sol: daedal.Solution) -> dict[str, Any]:
    position, velocity, acceleration = np.ravel(model.extra["constraints"](sol.y[:, -1]))
    names = {"G1": position, "G2": velocity, "G3": acceleration}
    return names | {"steps": sol.stats.steps, "residuals": _residuals(sol)}


def stabilised_pendulum(table: PrintedTable) -> Values:
    """Tables 6.2.3 and 6.2.4."""

    def values(row: Row) -> Mapping[str, Any]:
        sol, model = solve_pendulum("ggl", row["rtol"], error_test="differential")
        assert model.reference is not None
        truth = model.reference.y
        error = np.abs(sol.y[:, -1] - truth) / np.where(truth == 0.0, 1.0, np.abs(truth))
        return _constraints(model, sol) | dict(zip(("z1", "z2", "z3", "z4", "lambda", "mu"), error))

    return table.each(values)


# --- trajectory control ---------------------------------------------------------------------------------------------


@cache
def solve_tppc2(coordinates: str, index: int, rtol: float) -> tuple[daedal.Solution, dict[str, float]]:
    """As in the book: angles in radians, the unknown derivatives of the controls set to zero, rate remembered."""
    relative = library.tppc2(form=f"index{index}")
    model = library.tppc2(form="inertial") if coordinates == "inertial" else relative
    assert relative.reference is not None
    y0, yp0 = model.initial
    slopes = np.where(model.problem.algebraic, 0.0, yp0)
    method = DASSL(error_test="differential" if index == 2 else "all", remember_rate=True)
    first = model.options.get("first_step")
    sol = daedal.solve(model.problem, model.t_span, (y0, slopes), rtol=rtol, atol=rtol, method=method, first_step=first)
    y = sol.y[:, -1] if model is relative else model.extra["relative"](sol.t[-1], sol.y[:, -1])
    return sol, dict(zip(relative.problem.names, np.abs(y / relative.reference.y - 1.0)))


def truth(table: PrintedTable) -> Values:
    """The solution at t = 300 by the index-1 form with sharp tolerances."""
    sol, _ = solve_tppc2("relative", 1, 1e-12)
    scale = dict.fromkeys(sol.names, 180.0 / math.pi) | {"H": 1.0, "V": 1.0}
    values = dict(zip(sol.names, sol.y[:, -1]))
    return table.each(lambda row: {"value": scale[row["variable"]] * values[row["variable"]]})


def trajectory_errors(table: PrintedTable) -> Values:
    """Table 6.3.1."""
    return table.each(lambda row: solve_tppc2(row["coordinates"], row["index"], row["rtol"])[1])


def trajectory_statistics(table: PrintedTable) -> Values:
    """Table 6.3.2."""

    def values(row: Row) -> Mapping[str, Any]:
        sol, _ = solve_tppc2(row["coordinates"], row["index"], row["rtol"])
        return {
            "steps": sol.stats.steps,
            "residuals": _residuals(sol),
            "jacobians": sol.stats.jacobian_evaluations,
            "etf": sol.stats.error_test_failures,
            "ctf": sol.stats.newton_failures,
        }

    return table.each(values)


def solve_tppc3(h: float, t1: float) -> daedal.Solution:
    """Index 3; changes of the bank angle in one Newton iteration are limited, to stay on the branch of the book."""
    model = library.tppc3()
    method = DASSL(max_order=1, max_newton_change=[math.inf] * 6 + [0.3])
    return daedal.solve(model.problem, (model.t_span[0], t1), model.initial, fixed_step=h, method=method)


@cache
def tppc3_truth(t1: float) -> np.ndarray:
    """The trajectory of index 3 at a time, by its form of index 1 with sharp tolerances."""
    model = library.tppc3()
    options: dict[str, Any] = {"method": "dassl", "rtol": 1e-13, "atol": 1e-13, "dense_output": False}
    sol = daedal.solve(model.problem, (model.t_span[0], t1), model.initial, **options)
    return sol.y[: model.problem.n, -1]


def implicit_euler(table: PrintedTable) -> Values:
    """Table 6.3.3."""
    model = library.tppc3()
    truth = tppc3_truth(model.t_span[1])
    errors = []
    for h in table.data["step_sizes"]:
        sol = solve_tppc3(h, model.t_span[1])
        errors.append(dict(zip(sol.names, np.abs(sol.y[:, -1] / truth - 1.0))))
    scale = dict.fromkeys(model.problem.names, 180.0 / math.pi) | {"H": 1.0, "V": 1.0}
    solution = {name: scale[name] * value for name, value in zip(model.problem.names, truth)}
    return table.by_column([solution, *errors])


def one_step_of_implicit_euler(table: PrintedTable) -> Values:
    """Table 6.3.4, with the orders in h."""
    t0 = library.tppc3().t_span[0]
    errors = []
    for h in table.data["step_sizes"]:
        sol = solve_tppc3(h, t0 + 2.0 * h)
        errors.append(dict(zip(sol.names, np.abs(sol.y[:, 1] / tppc3_truth(t0 + h) - 1.0))))
    return table.by_column([*errors, observed_orders(errors)])


def nothing(table: PrintedTable) -> Values:
    """A table of methods that Daedal does not have."""
    return table.each(lambda row: {})


TABLES = {
    **book_orders.TABLES,
    **book_runge_kutta.TABLES,
    **book_extrapolation.TABLES,
    **book_levels.TABLES,
    "6.2.1": pendulum_of_index_3,
    "6.2.2": drift_of_the_pendulum,
    "6.2.3": stabilised_pendulum,
    "6.2.4": stabilised_pendulum,
    "6.3-truth": truth,
    "6.3.1": trajectory_errors,
    "6.3.2": trajectory_statistics,
    "6.3.3": implicit_euler,
    "6.3.4": one_step_of_implicit_euler,
    "6.5.1": nothing,
}
