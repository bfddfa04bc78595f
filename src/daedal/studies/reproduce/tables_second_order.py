"""Wunderlich's thesis: coefficients, ordinary and modified BDF with given steps, and its step size control."""

import ast
import math
import operator
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

import daedal
from daedal import library
from daedal.methods import DASSL, Collocation, ModifiedBDF
from daedal.studies.reproduce.printed_table import PrintedTable, Row
from daedal.viz.figure import COLOURS, FAINT

_OPERATIONS: dict[type, Any] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
}


def value_of(text: str, names: Mapping[str, float] | None = None) -> float:
    """Evaluate a printed formula of numbers, names, + - * / ** and sqrt.

    Examples
    --------
    >>> value_of("(t - t1)/2", {"t": 3.0, "t1": 1.0}), value_of("sqrt(4)")
    (1.0, 2.0)
    """
    return _value(ast.parse(text, mode="eval").body, names or {})


def _value(node: Any, names: Mapping[str, float]) -> float:
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        return float(node.value)
    if isinstance(node, ast.Name):
        return names[node.id]
    if isinstance(node, ast.BinOp):
        return _OPERATIONS[type(node.op)](_value(node.left, names), _value(node.right, names))
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_value(node.operand, names)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "sqrt":
        return math.sqrt(_value(node.args[0], names))
    raise ValueError(f"not a formula: {ast.dump(node)}")


def formula_for(
    entry: Mapping[str, Any], computed: float, names: Mapping[str, float] | None = None, tolerance: float = 1e-9
) -> str:
    """The printed or the corrected formula of a cell if it agrees with the computed value, otherwise this value.

    Examples
    --------
    >>> formula_for({"printed": "1/3"}, 1.0 / 3.0), formula_for({"printed": "1/3", "recomputed": "2/3"}, 2.0 / 3.0)
    ('1/3', '2/3')
    >>> formula_for({"printed": "1/3"}, 0.5)
    '0.5'
    """
    for text in (entry["printed"], entry.get("recomputed", entry["printed"])):
        if math.isclose(value_of(text, names), computed, rel_tol=tolerance, abs_tol=tolerance):
            return text
    return repr(float(computed))


# --- coefficients of Tables 2.1, 3.3 and 6.1, determined from steps of the integrators --------------------------------

Values = list[Mapping[str, Any] | None]


def bdf(table: PrintedTable) -> Values:
    """Table 2.1: one step for y' = 1 from zero gives h/alpha_0, for y' = 0 from unit vectors -alpha_i/alpha_0."""

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


# --- modified BDF on a grid, Table 3.3 ------------------------------------------------------------------------------

_FORCES: tuple[Callable[[float], float], ...] = (np.cos, lambda t: 1.0 + t * t)


def _velocities(grid: np.ndarray, orders: list[int], force: Callable[[float], float]) -> np.ndarray:
    """Velocities of x'' = force(t) at the points of a grid."""
    problem = daedal.SecondOrderDAE(lambda t, x, xp, xpp: [xpp[0] - force(t)], 1)
    method = ModifiedBDF(grid=grid, max_order=2, orders=orders, family="sand")
    sol: Any = daedal.solve(problem, (grid[0], grid[-1]), ([1.0], [0.5]), method=method)
    return sol.xp[0]


def _alpha(t: np.ndarray, velocities: list[np.ndarray], n: int, order: int) -> list[float]:
    """alpha_1 v[t_n, t_n-1] + alpha_2 v[t_n, t_n-1, t_n-2] = f(t_n) in step n, solved for two forces f."""
    equations = []
    for v in velocities:
        differences = [(v[n] - v[n - 1]) / (t[n] - t[n - 1])]
        if order == 2:
            before = (v[n - 1] - v[n - 2]) / (t[n - 1] - t[n - 2])
            differences.append((differences[0] - before) / (t[n] - t[n - 2]))
        equations.append(differences)
    return list(np.linalg.solve(equations[:order], [force(t[n]) for force in _FORCES[:order]]))


def coefficients_of_modified_bdf(table: PrintedTable) -> Values:
    """Table 3.3: printed formulas, evaluated for the steps that use them."""
    grid, orders = np.array(table.data["grid"]), table.data["orders"]
    velocities = [_velocities(grid, orders, force) for force in _FORCES]

    def values(row: Row) -> Mapping[str, Any]:
        n = row["step"]
        names = {"t": grid[n]} | {f"t{i}": grid[n - i] for i in range(1, min(n, 4) + 1)}
        found = _alpha(grid, velocities, n, orders[n - 1])
        cells = zip(("alpha1", "alpha2"), found)
        return {key: formula_for(row.cells[key], alpha, names) for key, alpha in cells if key in row.cells}

    return table.each(values)


# --- collocation, Table 6.1 -----------------------------------------------------------------------------------------


def collocation(table: PrintedTable) -> Values:
    """Table 6.1."""
    nodes = {kind: [value_of(text) for text in texts] for kind, texts in table.data["nodes"].items()}
    found = {kind: _collocation(kind, c) for kind, c in nodes.items()}
    return table.each(
        lambda row: {key: formula_for(row.cells[key], found[key][row["entry"]], tolerance=1e-11) for key in row.cells}
    )


def _collocation(kind: str, c: list[float]) -> dict[str, float]:
    """Coefficients of two stages, from one step of length 1 from rest; l_j is the Lagrange polynomial of node j.

    x'' = l_j(t) has the velocities a_ij at the nodes and b_j at the end, and the position b~_j there. x'' = l_j + l_i x
    ends with the velocity b_j + b_i X_i, which reveals the stage X_i = a~_ij + a~_ii X_i.
    """
    entries: dict[str, float] = {}
    stages = {}
    for j in range(2):
        sol = _one_step(kind, c, [1.0 if k == j else 0.0 for k in range(2)], [0.0, 0.0])
        entries |= {f"A{i + 1}{j + 1}": sol(c[i])[1] for i in range(2)}
        entries |= {f"b{j + 1}": sol.xp[0, -1], f"b~{j + 1}": sol.x[0, -1]}
    for i in range(2):
        for j in range(2):
            unit = np.eye(2)
            end = _one_step(kind, c, list(unit[j]), list(unit[i])).xp[0, -1]
            stages[i, j] = (end - entries[f"b{j + 1}"]) / entries[f"b{i + 1}"]
        own = stages[i, i] / (1.0 + stages[i, i])
        entries |= {f"A~{i + 1}{j + 1}": own if j == i else stages[i, j] * (1.0 - own) for j in range(2)}
    return entries


def _one_step(kind: str, c: list[float], constant: list[float], factor: list[float]) -> Any:
    """x'' = p(t) + q(t) x, with linear p and q by their values at the nodes."""

    def residual(t, x, xp, xpp):
        share = (t - c[0]) / (c[1] - c[0])
        p, q = ((1.0 - share) * values[0] + share * values[1] for values in (constant, factor))
        return [xpp[0] - p - q * x[0]]

    options: dict[str, Any] = {"method": Collocation(kind, 2), "fixed_step": 1.0}
    return daedal.solve(daedal.SecondOrderDAE(residual, 1), (0.0, 1.0), ([0.0], [0.0]), **options)


_COEFFICIENTS = {"2.1": bdf, "3.3": coefficients_of_modified_bdf, "6.1": collocation}


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
    """Largest errors over 320 steps of length 1/320, except the first four, which are affected by a step of order 1."""

    def values(row: Row) -> Mapping[str, Any]:
        model = library.get(row["problem"])
        method = ModifiedBDF(max_order=row["k"], family="sand")
        sol: Any = daedal.solve(model.problem, model.t_span, model.initial, method=method, fixed_step=1.0 / 320)
        exact, slopes = (np.array([model.extra["exact"](t, k) for t in sol.t]).T for k in (0, 1))
        x, xp = (np.max(np.abs(error)[:, 5:], axis=1) for error in (sol.x - exact, sol.xp - slopes))
        return {"y": max(x[:2]), "velocity": max(xp[:2]), "lam": x[2]}

    return table.each(values)


# --- body on a circle, with step size control -------------------------------------------------------------------------


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


_OUTPUT = 0.1  # first output time of DASSL
_END = 1.0  # TOUT of (4.30) for the modified BDF
_LITERAL = 1e-12  # rtol: (4.20) weights a difference v by RTOL |v| + ATOL, where |v| is practically zero
_NEVER = 1e6  # atol for RTOL = ATOL = 1: the ratio |v| / (|v| + 1) never fails the test


def _first_step(rtol: float, atol: float) -> float:
    """(4.30): 1/1000 of the interval, or half the time in which q1, with speed 1, changes by its tolerance."""
    return min(1e-3 * _END, 0.5 * (rtol + atol))


def _setting(number: str) -> tuple[Any, Any, int, dict[str, Any]]:
    """Problem, initial values, row of lambda, and tolerances for a table."""
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
    # here lambda has second order too, as in the thesis
    options["atol"] = [*atol, 1e-1]
    return model.problem.with_order([2, 2, 2]), ([0.0, 1.0, 0.0], [1.0, 0.0, 1.0]), 2, options


def controlled_run(number: str, controller: str = "thesis", scale: float = 1.0, **options: Any) -> Any:
    """Run of Table 8.1, 8.2, 8.3 (modified BDF) or 8.4 (collocation), with tolerances multiplied by `scale`."""
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


_BY_DASSL: dict[str, tuple[Any, list[float]]] = {
    "8.1": (_first_order, [1e-4, 1e-4, 1e-2, 1e-2, 1.0]),
    "8.2": (_first_order_stabilised, [1e-4] * 6),
    "8.3": (_first_order_reduced, [1e-4, 1e-4, 1e-3, 1e-2, 1e-2]),
}


def dassl_run(number: str, **changes: Any) -> Any:
    """Corresponding DASSL run, with all variables in the error test and DASSL's first step for TOUT = 0.1."""
    residual, atol = _BY_DASSL[number]
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
    """Numbers of steps that start before 0.1, 0.2, ..., 1."""
    starts = sol.history.t - sol.history.h
    return [int(np.sum(starts < t - 1e-12)) for t in TIMES[1:]]


def returns(sol: Any) -> list[int]:
    """Numbers of returns of DASSL: after every step, and at every output time except the last."""
    return [steps + outputs for outputs, steps in enumerate(cumulative(sol))]


def errors(number: str, sol: Any) -> dict[str, np.ndarray]:
    """Errors of q1 and lambda at 0.1, 0.2, ..., 1; lambda is the fifth component of a first-order form."""
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
    """Results for statements about Figures 8.1 and 8.2 and Table 8.1 in the text of the thesis."""
    modified, dassl = controlled_run("8.1"), dassl_run("8.1")
    ours, theirs = errors("8.1", modified), errors("8.1", dassl)
    found = {f"error of {name}": np.max(theirs[name]) / np.max(ours[name]) for name in ours}
    found["steps"] = returns(dassl)[-1] / cumulative(modified)[-1]
    return table.each(lambda row: {"value": found[row["quantity"]]})


TABLES = {
    **_COEFFICIENTS,
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


# --- figures of Wunderlich's thesis -----------------------------------------------------------------------------------


def draw_multipliers(figure: Any, result: Any) -> None:
    """Figures 8.1 and 8.2: lambda of modified BDF and DASSL at the steps, and errors."""
    left, right = figure.subplots(1, 2)
    t = np.linspace(0.0, 1.0, 201)
    left.plot(t, np.sin(t) * np.cos(t), color=FAINT, label="exact")
    every: dict[str, Any] = {"t_eval": None}
    for i, (label, sol, row) in enumerate(
        (("modified BDF", controlled_run("8.1", **every), 2), ("DASSL", dassl_run("8.1", **every), 4))
    ):
        values = (sol.x if i == 0 else sol.y)[row]
        style = {"color": COLOURS[2 * i], "marker": "os"[i], "markersize": 3.0, "linewidth": 0.9, "label": label}
        left.plot(sol.t, values, **style)
        right.semilogy(sol.t[1:], np.abs(values - np.sin(sol.t) * np.cos(sol.t))[1:], **style)
    left.set(xlabel="$t$", ylabel=r"$\lambda$")
    right.set(xlabel="$t$", ylabel=r"error of $\lambda$")
    left.legend()


FIGURES = {"fig-8.1": ("Figures 8.1 and 8.2: the multiplier and its error, at all steps", draw_multipliers)}
