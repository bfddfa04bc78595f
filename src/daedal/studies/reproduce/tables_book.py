"""Brenan, Campbell and Petzold: pendulum, trajectory control and flame of chapter 6; extrapolation of section 4.6.

The tables of chapter 3 and those of implicit Runge-Kutta methods are in :mod:`daedal.studies.reproduce.book_orders`.
"""

import math
from collections.abc import Callable, Mapping
from decimal import Decimal, localcontext
from functools import cache
from typing import Any

import numpy as np

import daedal
from daedal import library
from daedal.methods import DASSL
from daedal.studies.reproduce.book_orders import ORDERS, RUNGE_KUTTA, observed_orders
from daedal.studies.reproduce.printed_table import PrintedTable, Row
from daedal.viz.figure import COLOURS

Values = list[Mapping[str, Any] | None]
FLAME_TIMES = np.linspace(0.0, 0.29, 101)  # "at time intervals of .0029"


def control_histories(table: PrintedTable) -> Values:
    """Figure 6.3.3: initial points of the curves, computed by the related system of index 1."""
    model = library.tppc2(form="index1")
    y0, _ = model.initial
    guess = np.where(model.problem.algebraic, 0.05, y0)
    start, _ = daedal.consistent_initial(model.problem, model.t_span[0], (guess, None))
    degrees = dict(zip(model.problem.names, start * 180.0 / math.pi))
    return table.each(lambda row: {"value": degrees[row["quantity"]]})


@cache
def flame_curves() -> tuple[np.ndarray, np.ndarray]:
    """Mesh and temperatures of Figure 6.5.2, with delta = 30 as printed, on a fixed mesh of 401 points."""
    model = library.flame(delta=30.0)
    sol = daedal.solve(model.problem, model.t_span, model.initial, t_eval=FLAME_TIMES, **model.options)
    return model.extra["x"], sol.y


def flame_figure(table: PrintedTable) -> Values:
    """Figure 6.5.2: levels and positions."""
    x, temperature = flame_curves()
    rising = temperature[:, (FLAME_TIMES > 0.1) & (FLAME_TIMES < 0.2)]
    last = temperature[:, -1]
    found = {
        "where T is largest while it rises": float(np.max(x[np.argmax(rising, axis=0)])),
        "T at x = 0 in the end": last[0],
        "where T is 1.5 in the end": float(np.interp(-1.5, -last, x)),
    }
    return table.each(lambda row: {"value": found[row["quantity"]]})


_LEVELS = {"fig-6.3.3": control_histories, "fig-6.5.2": flame_figure}


# --- section 4.6: orders in the extrapolation table of the linearly implicit Euler method -----------------------------

# Orders up to 8 are visible only if errors are far below floating-point round-off. Therefore, decimal numbers with many
# digits are used, for a problem of index 1 with a rational solution.

_DIGITS = 120
_STEP = Decimal(2) ** -20
_ROWS = 10


def _end(step: Decimal, n: int) -> tuple[Decimal, Decimal]:
    """n linearly implicit Euler steps for y' = -2 y z, 0 = y - z^2 from (1, 1); J = [[-2, -2], [1, -2]] is constant."""
    h, y, z = step / n, Decimal(1), Decimal(1)
    for _ in range(n):
        a, b = -2 * h * y * z, z * z - y  # [[1 + 2h, 2h], [1, -2]] (dy, dz) = (a, b)
        dy = (a + h * b) / (1 + 3 * h)
        y, z = y + dy, z + (dy - b) / 2
    return y, z


@cache
def _errors(refinement: int, component: int) -> list[list[Decimal]]:
    """Errors of all entries of the table after one basic step; the solution is y = (1 + t)^-2, z = (1 + t)^-1."""
    with localcontext() as context:
        context.prec = _DIGITS
        step = _STEP / refinement
        truth = (1 / (1 + step) ** 2, 1 / (1 + step))[component]
        table = daedal.methods.extrapolation_table(range(1, _ROWS + 1), lambda n: _end(step, n)[component])
        return [[abs(value - truth) for value in row] for row in table]


def _orders(component: int, loss: int) -> Callable[[PrintedTable], Any]:
    """Exponents of H in the local error, minus `loss`."""

    def values(row: Row) -> Mapping[str, float]:
        coarse, fine = (_errors(refinement, component)[row["j"] - 1] for refinement in (1, 2))
        return {f"k{k + 1}": math.log2(coarse[k] / fine[k]) - loss for k in range(len(fine))}

    return lambda table: table.each(values)


_EXTRAPOLATION = {"4.6.1": _orders(0, 1), "4.6.2": _orders(1, 0)}


def _residuals(sol: daedal.Solution) -> int:
    """Residual evaluations, excluding those for difference Jacobians, as counted by DASSL."""
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
            model.problem,
            model.t_span,
            model.initial,
            fixed_step=h,
            method="dassl",
            max_order=2,
            starting_values=values,
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
    """Solve with the settings of the book: zero initial derivatives of the controls, and ``remember_rate=True``."""
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
    """The solution at t = 300, by the index-1 form with tight tolerances."""
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
    """Solve index 3; changes of the bank angle per Newton iteration are limited, to obtain the branch of the book."""
    model = library.tppc3()
    method = DASSL(max_order=1, max_newton_change=[math.inf] * 6 + [0.3])
    return daedal.solve(model.problem, (model.t_span[0], t1), model.initial, fixed_step=h, method=method)


@cache
def tppc3_truth(t1: float) -> np.ndarray:
    """The trajectory of index 3 at t1, by index reduction with tight tolerances."""
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
    """No values: the methods of the table are not available in Daedal."""
    return table.each(lambda row: {})


TABLES = {
    **ORDERS,
    **RUNGE_KUTTA,
    **_EXTRAPOLATION,
    **_LEVELS,
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


# --- figures of sections 6.3 and 6.5 of Brenan, Campbell and Petzold --------------------------------------------------


def draw_controls(figure: Any, result: Any) -> None:
    """Figures 6.3.3 and 6.3.4: the controls of the trajectory of index 2, and the prescribed paths."""
    sol, _ = solve_tppc2("relative", 1, 1e-8)
    state = dict(zip(sol.names, sol.y * 180.0 / math.pi))
    places = figure.subplots(1, 2)
    for place, names in zip(places, ((("alpha", "α"), ("beta", "β")), (("gamma", "γ"), ("A", "azimuth A")))):
        for i, (name, label) in enumerate(names):
            place.plot(sol.t, state[name], color=COLOURS[2 * i], label=label)
        place.set(xlabel="$t$ (s)", ylabel="degrees")
        place.legend()


def draw_drag(figure: Any, result: Any) -> None:
    """Figures 6.3.5 and 6.3.6: drag acceleration over speed, and bank angle over time."""
    model = library.tppc3()
    sol = daedal.solve(model.problem, model.t_span, model.initial, method="dassl", rtol=1e-9, atol=1e-9)
    state = dict(zip(model.problem.names, sol.y))
    left, right = figure.subplots(1, 2)
    *_, c0, c1, c2, c3, start = model.problem.params
    w = state["V"] - start
    left.plot(state["V"], c0 + w * (c1 + w * (c2 + w * c3)), color=COLOURS[0])
    left.set(xlabel="$V$ (ft/s)", ylabel="drag acceleration (ft/s²)")
    right.plot(sol.t, np.degrees(state["beta"]), color=COLOURS[2])
    right.set(xlabel="$t$ (s)", ylabel="bank angle (degrees)")


def draw_flame(figure: Any, result: Any) -> None:
    """Figure 6.5.2: the temperature at intervals of 0.0029."""
    x, temperature = flame_curves()
    axes = figure.add_subplot()
    axes.plot(x, temperature, color=COLOURS[0], linewidth=0.5)
    axes.set(xlabel="$x$", ylabel="$T$")


FIGURES = {
    "fig-6.3.3": ("Figures 6.3.3 and 6.3.4: control histories, prescribed paths", draw_controls),
    "6.3.3": ("Figures 6.3.5 and 6.3.6: drag acceleration profile, bank angle", draw_drag),
    "fig-6.5.2": ("Figure 6.5.2: the temperature at intervals of 0.0029", draw_flame),
}
