"""All equations of a prolonged system, hidden ones included, with their Jacobian: where points are brought back to."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import splu

from daedal.index_reduction.prolongation import Prolongation
from daedal.symbolic.derivative import directional, jacobian
from daedal.symbolic.functions import inlined
from daedal.symbolic.graph import Graph
from daedal.symbolic.machine import compile_function
from daedal.tracing.parameters import NAME

UNKNOWNS = "u"
"""What the unknowns of a prolonged system are called in a graph."""
_LARGEST_DENSE = 300  # unknowns up to which systems of many points are solved at once
_MOST_ITERATIONS = 8
_ROUNDOFF = 4.0 * np.finfo(float).eps


@dataclass(frozen=True)
class Values:
    """The equations at points, one row or matrix for each: f, df/du and the partial derivative of f by time."""

    f: np.ndarray
    matrix: list[sp.csr_array] | np.ndarray
    rate: np.ndarray


class Constraints:
    """f(t, u) = 0 for all equations of a prolongation.

    Parameters
    ----------
    prolongation : Prolongation
    numbers : numpy.ndarray
        The parameters.
    """

    def __init__(self, prolongation: Prolongation, numbers: np.ndarray):
        equations, n = prolongation.equations, prolongation.n
        self.n, self.numbers, self.prolongation = n, numbers, prolongation
        graph = Graph()
        places = {column: graph.argument(UNKNOWNS, column) for column in range(n)}
        nodes = [equations.equation(i, r) for i, r in prolongation.kept]
        f = inlined(equations.graph, nodes, graph, arguments(prolongation, graph, places, nodes))
        rows = jacobian(graph, f, list(places.values()))
        self._rows = np.array([i for i, row in enumerate(rows) for _ in row], dtype=np.int64)
        self._columns = np.array([j for row in rows for j in row], dtype=np.int64)
        rates = directional(graph, f, {graph.argument("t", 0): graph.one})
        results = {"f": f, "entries": [x for row in rows for x in row.values()], "rate": rates}
        self._code = compile_function(graph, {UNKNOWNS: n}, results, {NAME: numbers.size})
        self.m = len(f)

    def with_numbers(self, numbers: np.ndarray) -> Constraints:
        """The same with other parameters."""
        other = object.__new__(Constraints)
        other.__dict__.update(self.__dict__, numbers=numbers)
        return other

    def values(self, t: np.ndarray, u: np.ndarray) -> Values:
        """f, df/du and f_t at many points (t[k], u[k])."""
        count, entries = t.size, self._rows.size
        f, rate, nonzero = np.empty((count, self.m)), np.empty((count, self.m)), np.empty((count, entries))
        for k in range(count):
            found = self._code(float(t[k]), **{UNKNOWNS: u[k], NAME: self.numbers})[1]
            f[k], rate[k], nonzero[k] = found["f"], found["rate"], found["entries"]
        if self.n > _LARGEST_DENSE:
            shape = self.m, self.n
            return Values(f, [sp.csr_array((x, (self._rows, self._columns)), shape=shape) for x in nonzero], rate)
        matrix = np.zeros((count, self.m, self.n))
        matrix[:, self._rows, self._columns] = nonzero
        return Values(f, matrix, rate)

    def project(self, t: np.ndarray, u: np.ndarray, fixed: sp.csr_array) -> tuple[np.ndarray, np.ndarray]:
        """Points with f = 0 to round-off and `fixed` u as it is, and where Newton's method has found them."""
        u, scale = u.copy(), np.maximum(np.abs(u).max(axis=0), 1e-300)
        active, before = np.arange(t.size), np.full(t.size, np.inf)
        found = np.zeros(t.size, dtype=bool)
        for _ in range(_MOST_ITERATIONS):
            values = self.values(t[active], u[active])
            right = np.concatenate([values.f, np.zeros((active.size, fixed.shape[0]))], axis=1)
            delta = solve_all(values.matrix, fixed, right)
            usable = np.isfinite(delta).all(axis=1)
            u[active[usable]] -= delta[usable]
            size = np.where(usable, np.max(np.abs(delta) / scale, axis=1, initial=0.0), np.inf)
            settled = (size <= _ROUNDOFF) | ((size <= 1e-9) & (size >= 0.3 * before[active]))
            found[active[settled]] = True
            before[active] = size
            active = active[~settled & usable]
            if active.size == 0:
                break
        return u, found

    def slopes(self, t: np.ndarray, u: np.ndarray, fixed: sp.csr_array, known: np.ndarray) -> np.ndarray:
        """u' at points on f = 0, from f_t + f_u u' = 0 and `fixed` u' = known."""
        values = self.values(t, u)
        return solve_all(values.matrix, fixed, np.concatenate([-values.rate, known], axis=1))


def arguments(prolongation: Prolongation, graph: Graph, places, nodes) -> dict[tuple[str, int], int]:
    """What stands in another graph for the arguments of the equations: unknowns by their columns, time, parameters."""
    source = prolongation.equations.graph
    known: dict[tuple[str, int], int] = {}
    for i in source.needed(nodes):
        if source.operations[i] != "argument":
            continue
        name, j = source.data[i]
        if name in ("t", NAME):
            known[name, j] = graph.argument(name, j)
        else:  # derivatives beyond the highest are written and drop out
            column = prolongation.column.get((j, int(name[1:])))
            known[name, j] = graph.zero if column is None else places[column]
    return known


def solve_all(matrix, fixed: sp.csr_array, right: np.ndarray) -> np.ndarray:
    """The solutions of [matrix; fixed] x = right for many points; NaN where it is singular."""
    if isinstance(matrix, list):
        found = np.full(right.shape, np.nan)
        for k, entries in enumerate(matrix):
            try:
                found[k] = splu(sp.csc_matrix(sp.vstack([entries, fixed]))).solve(right[k])
            except RuntimeError:  # exactly singular
                continue
        return found
    below = np.broadcast_to(fixed.toarray(), (matrix.shape[0], *fixed.shape))
    whole = np.concatenate([matrix, below], axis=1)
    bad = ~np.isfinite(whole).all(axis=(1, 2))
    whole[bad] = np.eye(whole.shape[2])
    try:
        found = np.linalg.solve(whole, right[:, :, None])[:, :, 0]
    except np.linalg.LinAlgError:
        found = np.stack([_solution(a, b) for a, b in zip(whole, right, strict=True)])
    found[bad] = np.nan
    return found


def _solution(matrix: np.ndarray, right: np.ndarray) -> np.ndarray:
    try:
        return np.linalg.solve(matrix, right)
    except np.linalg.LinAlgError:
        return np.full(right.size, np.nan)
