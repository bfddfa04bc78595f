"""Brenan, Campbell and Petzold, chapters 4 and 6: implicit Runge-Kutta methods with constant steps on DAEs.

What follows from the coefficients is said by :func:`daedal.analyse_method`.
"""

from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np

import daedal
from daedal import ImplicitRungeKutta, library
from daedal.reproduce.book_problems import (
    ROUND_OFF,
    Values,
    canonical_error,
    formula_of,
    halving,
    index1_error,
    index2_errors,
    index3_errors,
    observed_orders,
)
from daedal.reproduce.printed_table import PrintedTable, Row

_FULLY_IMPLICIT = "F(t, y, y') = 0"
_SEMI_EXPLICIT = "f(t, x, x', y) = 0, 0 = g(t, x, y)"
_CONVERGED = 0.01  # orders below it are zero
_ROUND_OFF = 1e-12


# --- what follows from the coefficients -----------------------------------------------------------------------------


@cache
def _analysis(formula: str) -> Any:
    return daedal.analyse_method(formula)


def _properties(row: Row) -> dict[str, Any]:
    found = _analysis(formula_of(row))
    k_a1, k_a2, _ = found.k_a
    return {"r": round(float(found.r), 12), "kd": found.k_d, "ka1": k_a1, "ka2": k_a2, "kI": found.k_I}


def _predicted(row: Row, problem: str, variables: str) -> Any:
    (order,) = (
        p.order for p in _analysis(formula_of(row)).predictions if (p.problem, p.variables) == (problem, variables)
    )
    return order


def consistency(table: PrintedTable) -> Values:
    """Table 4.2.1."""
    return table.each(_properties)


# --- index 1 --------------------------------------------------------------------------------------------------------


def index1_orders(table: PrintedTable) -> Values:
    """Table 4.3.1: predicted by theorem 4.3.1, and observed when 80 steps become 160."""

    def values(row: Row) -> Mapping[str, Any]:
        observed = halving(*(index1_error(row, steps) for steps in (80, 160)))
        return _properties(row) | {"kG": _predicted(row, _FULLY_IMPLICIT, "y"), "kg": observed}

    return table.each(values)


def index1_steps(table: PrintedTable) -> Values:
    """Errors of x, and the order of the last halving whose errors are listed."""

    def values(row: Row) -> Mapping[str, Any]:
        errors = {key: index1_error(row, int(key[1:])) for key in row.cells if key != "order"}
        *_, coarse, fine = (error for error in errors.values() if error > _ROUND_OFF)
        return errors | {"order": halving(coarse, fine)}

    return table.each(values)


# --- index 2 and 3 --------------------------------------------------------------------------------------------------


def _index2_orders(row: Row, coarse: Mapping[str, float], fine: Mapping[str, float]) -> dict[str, Any]:
    """Orders of differential variables x and algebraic variables y: by theorem 4.4.1, and observed."""
    predicted = {f"kG{name}": _predicted(row, _SEMI_EXPLICIT, name) for name in ("x", "y")}
    return _properties(row) | predicted | {f"kg{name}": halving(coarse[name], fine[name]) for name in ("x", "y")}


def pendulum_orders(table: PrintedTable) -> Values:
    """Table 4.4.1: the step from 40 to 80 steps."""
    return table.each(lambda row: _index2_orders(row, index2_errors(row, 40), index2_errors(row, 80)))


def trajectory_orders(table: PrintedTable) -> Values:
    """Table 4.4.2: the step from h = 1 to h = 0.5; relative errors."""
    model = library.tppc2()
    assert model.reference is not None
    truth = model.reference.y

    def errors(row: Row, h: float) -> Mapping[str, float]:
        method = ImplicitRungeKutta(formula_of(row))
        sol = daedal.solve(model.problem, model.t_span, model.initial, method=method, fixed_step=h, **ROUND_OFF)
        error = np.abs(sol.y[:, -1] / truth - 1.0)
        return {"x": np.max(error[~model.problem.algebraic]), "y": np.max(error[model.problem.algebraic])}

    return table.each(lambda row: _index2_orders(row, errors(row, 1.0), errors(row, 0.5)))


def index2_steps(table: PrintedTable) -> Values:
    """Errors after 80 steps and the orders of the last halving."""

    def values(row: Row) -> Mapping[str, Any]:
        coarse, fine = (index2_errors(row, steps) for steps in (40, 80))
        orders = {f"order_{name}": halving(coarse[name], fine[name]) for name in ("x", "lam")}
        return fine | {key: abs(value) if abs(value) < _CONVERGED else value for key, value in orders.items()}

    return table.each(values)


def index3_steps(table: PrintedTable) -> Values:
    """Errors after 80 steps."""
    return table.each(lambda row: index3_errors(row, 80))


def canonical(table: PrintedTable) -> Values:
    """Order of the last component; its error where that is round-off."""

    def order(row: Row, index: int) -> float:
        coarse, fine = (canonical_error(row, index, steps) for steps in (80, 160))
        return fine if fine < _ROUND_OFF else halving(coarse, fine)

    return table.each(lambda row: {f"nu{index}": order(row, index) for index in (1, 2, 3)})


def trajectory_of_index_3(table: PrintedTable) -> Values:
    """Tables 6.3.5 and 6.3.6."""
    model = library.tppc3(t1=table.data["end"])
    assert model.reference is not None
    errors, method = [], ImplicitRungeKutta(table.data["formula"])
    for h in table.data["step_sizes"]:
        sol = daedal.solve(model.problem, model.t_span, model.initial, method=method, fixed_step=h, **ROUND_OFF)
        errors.append(dict(zip(sol.names, np.abs(sol.y[:, -1] / model.reference.y - 1.0))))
    return table.by_column([*errors, observed_orders(errors)])


TABLES = {
    "4.2.1": consistency,
    "4.3.1": index1_orders,
    "index1-steps": index1_steps,
    "4.4.1": pendulum_orders,
    "index2-steps": index2_steps,
    "index3-steps": index3_steps,
    "4.4.2": trajectory_orders,
    "canonical": canonical,
    "6.3.5": trajectory_of_index_3,
    "6.3.6": trajectory_of_index_3,
}
