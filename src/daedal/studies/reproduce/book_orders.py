"""Brenan, Campbell and Petzold, chapter 3: orders of BDF with constant steps, and failures of implicit Euler."""

import math
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import numpy as np

import daedal
from daedal import library
from daedal.methods import DASSL, ImplicitRungeKutta, ModifiedBDF
from daedal.studies.reproduce.printed_table import PrintedTable, Row

# The methods use constant steps: BDF with exact starting values, or implicit Runge-Kutta methods, whose coefficients
# are not printed. The two-stage SIRK is determined by its properties; the five-stage DIRK is Cash's, cited in the book;
# the three-stage SIRK has free nodes, here 1/6, 1/2, 5/6; the seven stages of backward Euler are 1, 2 and 4 steps; the
# method of Houbak and Thomsen is replaced by a method with the same properties.

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
ROUND_OFF: Any = {"rtol": 1e-4, "atol": 1e-4}  # stagnating corrections below this count as round-off


def formula_of(row: Row) -> str:
    """Name of the coefficients of a row."""
    return FORMULAS[row["method"]].format(**row.parameters)


def solve_row(residual: Callable, exact: Exact, row: Row, steps: int) -> daedal.Solution:
    """Solve F(t, y, y') = 0 on [0, 1] with constant steps by the method of a row, with exact starting values."""
    problem = daedal.ImplicitDAE(residual, exact(0.0, 0).size)
    initial, h = (exact(0.0, 0), exact(0.0, 1)), 1.0 / steps
    if row.get("k") is not None:
        starting = np.array([exact(i / steps, 0) for i in range(row["k"])]).T
        method: Any = DASSL(max_order=row["k"], starting_values=starting)
        return daedal.solve(problem, (0.0, 1.0), initial, method=method, fixed_step=h)
    method = ImplicitRungeKutta(formula_of(row))
    return daedal.solve(problem, (0.0, 1.0), initial, method=method, fixed_step=h, **ROUND_OFF)


def halving(coarse: float, fine: float) -> float:
    """Order observed when the step is halved."""
    return math.log2(coarse / fine)


def observed_orders(errors: list[dict[str, float]]) -> dict[str, float]:
    """Orders observed in the last halving of the step, by variable."""
    return {name: halving(errors[-2][name], error) for name, error in errors[-1].items()}


# --- fully implicit, index 1 (4.3.33) -------------------------------------------------------------------------------


def index1(t, y, yp):
    return np.array([yp[0] - t * yp[1] + y[0] - (1.0 + t) * y[1], y[1] - np.sin(t)])


def index1_exact(t: float, derivative: int) -> np.ndarray:
    s, c = math.sin(t), math.cos(t)
    return np.array([math.exp(-t) + t * s, s] if derivative == 0 else [-math.exp(-t) + s + t * c, c])


def index1_error(row: Row, steps: int) -> float:
    """Error of x at t = 1."""
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
    """Position, velocity, lambda and mu, computed from the angle."""
    state: Any = _angle()(t)
    a, w = state.q[0], state.v[0]
    s, c = math.sin(a), math.cos(a)
    if derivative == 0:
        return np.array([c, s, -s * w, c * w, w * w - s, 0.0])[: 4 + multipliers]
    return np.array([-s * w, c * w, -c * w * w + s * c, -s * w * w - c * c, -3.0 * c * w, 0.0])[: 4 + multipliers]


def index2_errors(row: Row, steps: int) -> dict[str, float]:
    """Errors at t = 1 of the states, of lambda and of mu, and the larger of the last two."""
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
    """Error of the last component at t = 1."""

    def exact(t: float, derivative: int) -> np.ndarray:
        return canonical_exact(index, t, derivative)

    return abs(solve_row(canonical, exact, row, steps).y[-1, -1] - exact(1.0, 0)[-1])


# --- BDF with exact starting values ---------------------------------------------------------------------------------


def index1_bdf(table: PrintedTable) -> Values:
    """Largest errors of x over the steps."""

    def error(row: Row, steps: int) -> float:
        sol = solve_row(index1, index1_exact, row, steps)
        return np.max(np.abs(sol.y[0] - np.exp(-sol.t) - sol.t * np.sin(sol.t)))

    return table.each(lambda row: {key: error(row, int(key[1:])) for key in row.cells})


def index2_bdf(table: PrintedTable) -> Values:
    """Errors after 160 steps."""
    return table.each(lambda row: index2_errors(row, 160))


def index3_bdf(table: PrintedTable) -> Values:
    """Errors after 160 steps."""
    return table.each(lambda row: index3_errors(row, 160))


# --- wrong starting values (theorem 3.1.1) ----------------------------------------------------------------------------


def wrong_start(table: PrintedTable) -> Values:
    """Number of steps, after the k starting values, until the error of a variable is below 0.2."""

    def residual(t, y, yp):
        return [yp[0] - y[1], yp[1] - y[2], y[0] - math.sin(t)]

    problem, h = daedal.ImplicitDAE(residual, 3), 0.05

    def values(row: Row) -> Mapping[str, Any]:
        k = row["k"]
        start = np.full((3, k), 7.0)
        method = DASSL(max_order=k, starting_values=start)
        t_span = (0.0, h * (3 * k + 3))  # step 2k + 4
        sol = daedal.solve(problem, t_span, (start[:, 0], np.zeros(3)), method=method, fixed_step=h)
        errors = np.abs(sol.y - [np.sin(sol.t), np.cos(sol.t), -np.sin(sol.t)])
        steps = [int(np.argmax(error < 0.2)) - k + 1 for error in errors]
        return dict(zip(("x1", "x2", "x3"), steps)) | {"error": errors[2, -1]}

    return table.each(values)


# --- implicit Euler -------------------------------------------------------------------------------------------------


def step_change(table: PrintedTable) -> Values:
    """Computed x3 = x1'' at t = 1, relative to the exact g'' (g = sin t), if the last step is shorter or longer."""

    def residual(t, x, xp, xpp):
        return np.array([xpp[0] - x[1], x[0] - math.sin(t)])

    problem = daedal.SecondOrderDAE(residual, 2, order=[2, 0])

    def ratio(row: Row, h: float) -> float:
        grid = np.append(1.0 - h - row["ratio"] * h * np.arange(4.0, -1.0, -1.0), 1.0)
        t0 = grid[0]
        initial = [math.sin(t0), -math.sin(t0)], [math.cos(t0), 0.0]
        method = ModifiedBDF(grid=grid, max_order=1, family="ordinary")
        sol: Any = daedal.solve(problem, (t0, 1.0), initial, method=method)
        return sol.x[1, -1] / -math.sin(1.0)

    return table.each(lambda row: {f"h{i}": ratio(row, 0.2 / 2**i) for i in (1, 2, 3, 4)})


def stiff_limit(table: PrintedTable) -> Values:
    """Differences between implicit Euler for the stiff equation and for the DAE."""

    def run(eps: float) -> np.ndarray:
        def residual(t, y, yp):
            return [yp[0] + y[0] - 0.5 * y[1], eps * yp[1] + y[1] - math.cos(t) - 0.1 * y[0]]

        problem = daedal.ImplicitDAE(residual, 2)
        slope = 0.0 if eps == 0.0 else (math.cos(0.0) + 0.1 - 2.0) / eps
        start = np.array([1.0, 2.0 if eps else 1.1])
        method = DASSL(max_order=1)
        slopes = [-start[0] + 0.5 * start[1], slope]
        return daedal.solve(problem, (0.0, 1.0), (start, slopes), method=method, fixed_step=0.1).y

    limit = run(0.0)
    return table.each(lambda row: {f"e{i}": np.max(np.abs(run(10.0**-i) - limit)[:, 6:]) for i in (2, 3, 4, 5)})


ORDERS = {
    "bdf-index1": index1_bdf,
    "bdf-index2": index2_bdf,
    "bdf-index3": index3_bdf,
    "wrong-start": wrong_start,
    "step-change": step_change,
    "stiff-limit": stiff_limit,
}


# --- Brenan, Campbell and Petzold, chapters 4 and 6: implicit Runge-Kutta methods with constant steps on DAEs ---------

_FULLY_IMPLICIT = "F(t, y, y') = 0"
_SEMI_EXPLICIT = "f(t, x, x', y) = 0, 0 = g(t, x, y)"
_CONVERGED = 0.01  # size of an observed order below which it counts as zero and its sign is omitted
_ROUND_OFF = 1e-12  # error below which no order is computed, since it is due to round-off


# --- properties of the coefficients -----------------------------------------------------------------------------------


@cache
def _analysis(formula: str) -> Any:
    return daedal.analysis.analyse_method(formula)


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
    """Table 4.3.1: predicted by theorem 4.3.1, and observed between 80 and 160 steps."""

    def values(row: Row) -> Mapping[str, Any]:
        observed = halving(*(index1_error(row, steps) for steps in (80, 160)))
        return _properties(row) | {"kG": _predicted(row, _FULLY_IMPLICIT, "y"), "kg": observed}

    return table.each(values)


def index1_steps(table: PrintedTable) -> Values:
    """Errors of x, and the order in the last halving above round-off."""

    def values(row: Row) -> Mapping[str, Any]:
        errors = {key: index1_error(row, int(key[1:])) for key in row.cells if key != "order"}
        *_, coarse, fine = (error for error in errors.values() if error > _ROUND_OFF)
        return errors | {"order": halving(coarse, fine)}

    return table.each(values)


# --- index 2 and 3 --------------------------------------------------------------------------------------------------


def _index2_orders(row: Row, coarse: Mapping[str, float], fine: Mapping[str, float]) -> dict[str, Any]:
    """Orders of differential variables x and algebraic variables y, by theorem 4.4.1 and observed."""
    predicted = {f"kG{name}": _predicted(row, _SEMI_EXPLICIT, name) for name in ("x", "y")}
    return _properties(row) | predicted | {f"kg{name}": halving(coarse[name], fine[name]) for name in ("x", "y")}


def pendulum_orders(table: PrintedTable) -> Values:
    """Table 4.4.1, from 40 to 80 steps."""
    return table.each(lambda row: _index2_orders(row, index2_errors(row, 40), index2_errors(row, 80)))


def trajectory_orders(table: PrintedTable) -> Values:
    """Table 4.4.2, from h = 1 to h = 0.5, with relative errors."""
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
    """Errors after 80 steps, and orders observed between 40 and 80 steps."""

    def values(row: Row) -> Mapping[str, Any]:
        coarse, fine = (index2_errors(row, steps) for steps in (40, 80))
        orders = {f"order_{name}": halving(coarse[name], fine[name]) for name in ("x", "lam")}
        return fine | {key: abs(value) if abs(value) < _CONVERGED else value for key, value in orders.items()}

    return table.each(values)


def index3_steps(table: PrintedTable) -> Values:
    """Errors after 80 steps."""
    return table.each(lambda row: index3_errors(row, 80))


def _canonical(table: PrintedTable) -> Values:
    """Observed order of the last component, or its error if at round-off level."""

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


RUNGE_KUTTA = {
    "4.2.1": consistency,
    "4.3.1": index1_orders,
    "index1-steps": index1_steps,
    "4.4.1": pendulum_orders,
    "index2-steps": index2_steps,
    "index3-steps": index3_steps,
    "4.4.2": trajectory_orders,
    "canonical": _canonical,
    "6.3.5": trajectory_of_index_3,
    "6.3.6": trajectory_of_index_3,
}
