"""Brenan, Campbell and Petzold, chapters 3 and 4: orders of constant-step methods on DAEs of index 1, 2 and 3.

Collocation is applied to first-order equations with every variable, the algebraic ones too, integrated from stage
derivatives, as implicit Runge-Kutta methods are written there.
"""

import math
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import numpy as np

import daedal
from daedal import DASSL, Collocation, ModifiedBDF
from daedal.reproduce.printed_table import PrintedTable, Row

Values = list[Mapping[str, Any] | None]
KINDS = {"Gauss": "gauss", "Radau IIA": "radau"}


def _solve(residual: Callable, exact: Callable[[float, int], np.ndarray], row: Row, steps: int) -> daedal.Solution:
    """F(t, y, y') = 0 on [0, 1] with constant steps by the method of a row; exact values to start with."""
    n, options = exact(0.0, 0).size, {"fixed_step": 1.0 / steps}
    initial = exact(0.0, 0), exact(0.0, 1)
    method: Any
    if row.get("k") is not None:
        starting = np.array([exact(i / steps, 0) for i in range(row["k"])]).T
        method = DASSL(max_order=row["k"], starting_values=starting)
        return daedal.solve(daedal.ImplicitDAE(residual, n), (0.0, 1.0), initial, method=method, **options)
    problem = daedal.SecondOrderDAE(lambda t, x, xp, xpp: residual(t, x, xp), n, order=[1] * n)
    method = Collocation(KINDS[row["method"]], row["stages"])
    return daedal.solve(problem, (0.0, 1.0), initial, method=method, **options)


def _order(coarse: float, fine: float) -> float:
    return math.log2(coarse / fine)


# --- fully implicit, index 1 (4.3.33) -------------------------------------------------------------------------------


def _index1(t, y, yp):
    return np.array([yp[0] - t * yp[1] + y[0] - (1.0 + t) * y[1], y[1] - np.sin(t)])


def _index1_exact(t: float, derivative: int) -> np.ndarray:
    s, c = math.sin(t), math.cos(t)
    return np.array([math.exp(-t) + t * s, s] if derivative == 0 else [-math.exp(-t) + s + t * c, c])


def _index1_error(row: Row, steps: int) -> float:
    sol = _solve(_index1, _index1_exact, row, steps)
    return abs(sol.y[0, -1] - _index1_exact(1.0, 0)[0])


def index1_orders(table: PrintedTable) -> Values:
    """Table 4.3.1, for the methods that Daedal has."""

    def values(row: Row) -> Mapping[str, Any]:
        coarse, fine = (_index1_error(row, steps) for steps in (80, 160))
        return {"kd": Collocation(KINDS[row["method"]], row["stages"]).max_order, "kg": _order(coarse, fine)}

    return table.each(values)


def index1_errors(table: PrintedTable) -> Values:
    """Errors of x, and the order of the last halving whose errors are listed."""

    def values(row: Row) -> Mapping[str, Any]:
        errors = {key: _index1_error(row, int(key[1:])) for key in row.cells if key != "order"}
        *_, coarse, fine = (error for error in errors.values() if error > 1e-12)
        return errors | {"order": _order(coarse, fine)}

    return table.each(values)


def index1_bdf(table: PrintedTable) -> Values:
    """BDF with exact starting values: the largest error of x over the steps."""

    def error(row: Row, steps: int) -> float:
        sol = _solve(_index1, _index1_exact, row, steps)
        return np.max(np.abs(sol.y[0] - np.exp(-sol.t) - sol.t * np.sin(sol.t)))

    return table.each(lambda row: {key: error(row, int(key[1:])) for key in row.cells})


# --- the pendulum (4.4.9) -------------------------------------------------------------------------------------------


def _index2(t, y, yp):
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


def _index3(t, y, yp):
    x1, x2, x3, x4, lam = y
    return np.array([yp[0] - x3, yp[1] - x4, yp[2] + lam * x1, yp[3] + lam * x2 + 1.0, 0.5 * (1.0 - x1 * x1 - x2 * x2)])


@cache
def _angle() -> daedal.Solution:
    """The angle equation a'' = -cos a, a(0) = a'(0) = 0."""
    system = daedal.MechanicalSystem(1.0, lambda t, q, v: [-math.cos(q[0])], n_q=1)
    return daedal.solve(system, (0.0, 1.0), ([0.0], [0.0]), method="dopri5", rtol=1e-14, atol=1e-15, max_step=2e-3)


def _pendulum(t: float, derivative: int, multipliers: int = 2) -> np.ndarray:
    state: Any = _angle()(t)
    a, w = state.q[0], state.v[0]
    s, c = math.sin(a), math.cos(a)
    if derivative == 0:
        return np.array([c, s, -s * w, c * w, w * w - s, 0.0])[: 4 + multipliers]
    return np.array([-s * w, c * w, -c * w * w + s * c, -s * w * w - c * c, -3.0 * c * w, 0.0])[: 4 + multipliers]


def _index2_errors(row: Row, steps: int) -> dict[str, float]:
    sol = _solve(_index2, _pendulum, row, steps)
    error = np.abs(sol.y[:6, -1] - _pendulum(1.0, 0))
    return {"x": np.max(error[:4]), "lam": error[4], "mu": error[5]}


def index2_errors(table: PrintedTable) -> Values:
    """Errors after 80 steps and the orders of the last halving."""

    def values(row: Row) -> Mapping[str, Any]:
        coarse, fine = (_index2_errors(row, steps) for steps in (40, 80))
        orders = {f"order_{name}": _order(coarse[name], fine[name]) for name in ("x", "lam")}
        return fine | {key: abs(value) if abs(value) < 1e-2 else value for key, value in orders.items()}

    return table.each(values)


def index2_bdf(table: PrintedTable) -> Values:
    """Errors after 160 steps of BDF."""
    return table.each(lambda row: _index2_errors(row, 160))


def _index3_errors(row: Row, steps: int) -> Mapping[str, float]:
    def exact(t: float, derivative: int) -> np.ndarray:
        return _pendulum(t, derivative, 1)

    if row.get("k") is not None:
        y = _solve(_index3, exact, row, steps).y[:, -1]
    else:  # the same collocation method, written for the equation of second order
        problem = daedal.SecondOrderDAE(
            lambda t, x, xp, xpp: _index3(t, [*x[:2], *xp[:2], x[2]], [*xp[:2], *xpp[:2]])[2:], 3, order=[2, 2, 1]
        )
        initial = [1.0, 0.0, 0.0], [0.0, 0.0, 0.0]
        method = Collocation(KINDS[row["method"]], row["stages"])
        sol: Any = daedal.solve(problem, (0.0, 1.0), initial, method=method, fixed_step=1.0 / steps)
        y = np.concatenate([sol.x[:2, -1], sol.xp[:2, -1], sol.x[2:, -1]])
    error = np.abs(y - exact(1.0, 0))
    return {"position": np.max(error[:2]), "velocity": np.max(error[2:4]), "lam": error[4]}


def index3_bdf(table: PrintedTable) -> Values:
    """Errors after 160 steps of BDF."""
    return table.each(lambda row: _index3_errors(row, 160))


def index3_errors(table: PrintedTable) -> Values:
    """Errors after 80 steps."""
    return table.each(lambda row: _index3_errors(row, 80))


# --- canonical systems N y' + y = g ---------------------------------------------------------------------------------


def canonical(table: PrintedTable) -> Values:
    """Order of the last component; its error where that is round-off."""

    def residual(t, y, yp):
        r = y - np.array([math.sin(t), math.cos(2.0 * t), math.exp(-t)])[: y.size]
        r[1:] += yp[:-1]
        return r

    def exact(index: int, t: float, derivative: int) -> np.ndarray:
        s, c, e = (math.sin(t), math.cos(t)), (math.sin(2.0 * t), math.cos(2.0 * t)), math.exp(-t)
        if derivative == 0:
            return np.array([s[0], c[1] - s[1], e + 2.0 * c[0] - s[0]])[:index]
        return np.array([s[1], -2.0 * c[0] + s[0], -e + 4.0 * c[1] - s[1]])[:index]

    def order(row: Row, index: int) -> float:
        errors = []
        for steps in (80, 160):
            sol = _solve(residual, lambda t, k: exact(index, t, k), row, steps)
            errors.append(abs(sol.y[index - 1, -1] - exact(index, 1.0, 0)[-1]))
        return errors[1] if errors[1] < 1e-12 else _order(*errors)

    return table.each(lambda row: {f"nu{index}": order(row, index) for index in (1, 2, 3)})


# --- senseless starting values (theorem 3.1.1) ----------------------------------------------------------------------


def wrong_start(table: PrintedTable) -> Values:
    """Step numbers begin behind the k starting values; a variable is accurate when its error is below 0.2."""

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
    """x3/g'' where the last step has another length than those before it."""

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
    """How far implicit Euler on the stiff equation is from implicit Euler on the DAE."""

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


TABLES = {
    "4.3.1": index1_orders,
    "index1-steps": index1_errors,
    "index2-steps": index2_errors,
    "index3-steps": index3_errors,
    "canonical": canonical,
    "bdf-index1": index1_bdf,
    "bdf-index2": index2_bdf,
    "bdf-index3": index3_bdf,
    "wrong-start": wrong_start,
    "step-change": step_change,
    "stiff-limit": stiff_limit,
}
