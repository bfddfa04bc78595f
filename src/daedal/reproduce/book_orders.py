"""Brenan, Campbell and Petzold, chapter 3: orders of BDF with constant steps, and implicit Euler in trouble."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

import daedal
from daedal import DASSL, ModifiedBDF
from daedal.reproduce.book_problems import Values, index1, index1_exact, index2_errors, index3_errors, solve_row
from daedal.reproduce.printed_table import PrintedTable, Row

# --- BDF with exact starting values ---------------------------------------------------------------------------------


def index1_bdf(table: PrintedTable) -> Values:
    """The largest error of x over the steps."""

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
    "bdf-index1": index1_bdf,
    "bdf-index2": index2_bdf,
    "bdf-index3": index3_bdf,
    "wrong-start": wrong_start,
    "step-change": step_change,
    "stiff-limit": stiff_limit,
}
