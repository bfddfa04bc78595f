"""Wunderlich's thesis: the coefficients of Tables 2.1, 3.3 and 6.1, found by steps of the integrators."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

import daedal
from daedal import DASSL, Collocation, ModifiedBDF
from daedal.reproduce.printed_formula import formula_for, value_of
from daedal.reproduce.printed_table import PrintedTable, Row

Values = list[Mapping[str, Any] | None]


def bdf(table: PrintedTable) -> Values:
    """Table 2.1. One step from unit vectors: of y' = 1 from zero, h/alpha_0; of y' = 0, -alpha_i/alpha_0."""

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
    """The velocities of x'' = force(t) at the points of a grid."""
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


def modified_bdf(table: PrintedTable) -> Values:
    """Table 3.3: the printed formulas at the points of the steps in which they are used."""
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
    ends with the velocity b_j + b_i X_i, where the stage X_i = a~_ij + a~_ii X_i is not seen otherwise.
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


TABLES = {"2.1": bdf, "3.3": modified_bdf, "6.1": collocation}
