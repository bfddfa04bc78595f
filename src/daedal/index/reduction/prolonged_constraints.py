"""All equations of a prolonged system, hidden ones included, with their Jacobian: where points are brought back to."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import splu

from daedal.index.reduction.prolongation import Prolongation
from daedal.symbolic.derivative import directional, jacobian
from daedal.symbolic.graph import Graph
from daedal.symbolic.graph_functions import inlined
from daedal.symbolic.machine import compile_function
from daedal.symbolic.tracing.parameters import NAME

UNKNOWNS = "u"
"""What the unknowns of a prolonged system are called in a graph."""
LARGEST_DENSE = 400
"""Unknowns up to which matrices are dense."""
_MOST_ITERATIONS, _SMALL = 8, 1e-9


class Constraints:
    """f(t, u) = 0 for all equations of a prolongation.

    Parameters
    ----------
    prolongation : Prolongation
    numbers : numpy.ndarray
        The parameters.
    full : bool
        Whether the code computes all entries of the Jacobian, row by row; else those that are not zero everywhere.
    """

    def __init__(self, prolongation: Prolongation, numbers: np.ndarray, full: bool = False):
        equations, n = prolongation.equations, prolongation.n
        self.n, self.numbers, self.prolongation = n, numbers, prolongation
        graph = Graph()
        places = {column: graph.argument(UNKNOWNS, column) for column in range(n)}
        nodes = [equations.equation(i, r) for i, r in prolongation.kept]
        f = inlined(equations.graph, nodes, graph, arguments(prolongation, graph, places, nodes))
        rows = jacobian(graph, f, list(places.values()))
        if full:
            rows = [{j: row.get(j, graph.zero) for j in range(n)} for row in rows]
        self._rows = np.array([i for i, row in enumerate(rows) for _ in row], dtype=np.int64)
        self._columns = np.array([j for row in rows for j in row], dtype=np.int64)
        rates = directional(graph, f, {graph.argument("t", 0): graph.one})
        results = {"f": f, "entries": [x for row in rows for x in row.values()], "rate": rates}
        self.code = compile_function(graph, {UNKNOWNS: n}, results, {NAME: numbers.size})
        self.m = len(f)

    def with_numbers(self, numbers: np.ndarray) -> Constraints:
        """The same with other parameters."""
        other = object.__new__(Constraints)
        other.__dict__.update(self.__dict__, numbers=numbers)
        return other

    def values(self, t: float, u: np.ndarray) -> tuple[np.ndarray, sp.csr_array, np.ndarray]:
        """f, df/du and the partial derivative of f by time at a point."""
        found = self.code(float(t), **{UNKNOWNS: u, NAME: self.numbers})[1]
        matrix = sp.csr_array((found["entries"], (self._rows, self._columns)), shape=(self.m, self.n))
        return found["f"], matrix, found["rate"]

    def dense_values(self, t: float, u: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The same with a dense matrix."""
        found = self.code(float(t), **{UNKNOWNS: u, NAME: self.numbers})[1]
        matrix = np.zeros((self.m, self.n))
        matrix[self._rows, self._columns] = found["entries"]
        return found["f"], matrix, found["rate"]

    def containing(self, unknowns: np.ndarray) -> np.ndarray:
        """Which equations contain one of these unknowns, given as a mask."""
        found = np.zeros(self.m, dtype=bool)
        found[self._rows[unknowns[self._columns]]] = True
        return found

    def record(self) -> Any:
        """What compiled code needs, with memory of its own."""
        from daedal.index.reduction.points import EQUATIONS
        from daedal.kernels.dense import dense_lu
        from daedal.kernels.records import Record

        code, memory = self.code, np.zeros(self.code.size)
        record = Record.allocated(
            EQUATIONS,
            n=self.n,
            m=self.m,
            code=code.address,
            block=memory,
            f=memory[code.slices["f"]],
            entries=memory[code.slices["entries"]],
            rate=memory[code.slices["rate"]],
            count=self._rows.size,
            entry_rows=self._rows,
            entry_columns=self._columns,
            matrix=dense_lu(self.n),
        )
        self.give_numbers(record)
        return record

    def give_numbers(self, record: Any) -> None:
        """Write the parameters into such a record."""
        record.array("block")[self.code.slices[NAME]] = self.numbers

    def projector(self) -> Projector:
        """What brings points back to f = 0, for one thread."""
        return Projector(self)


class Projector:
    """Brings points back to f = 0 with some combinations of the unknowns as they are.

    Parameters
    ----------
    constraints : Constraints
    """

    def __init__(self, constraints: Constraints):
        self.constraints, self.n = constraints, constraints.n
        self._system = constraints.record() if self.n <= LARGEST_DENSE else None

    def project(self, t: np.ndarray, u: np.ndarray, fixed: Any, following: Any, scale: np.ndarray):
        """Points with f = 0 to round-off and `fixed` u as it is, their slopes, and which were found.

        The slopes satisfy f_t + f_u u' = 0 and `fixed` u' = `following` u. `scale` are the sizes of u.
        """
        u, slopes, found = np.ascontiguousarray(u).copy(), np.empty(u.shape), np.zeros(t.size, dtype=bool)
        if self._system is not None:
            from daedal.index.reduction.points import project_points

            project_points(self._system.address, t, u, fixed, following, scale, slopes, found)
            return u, slopes, found
        for k in range(t.size):
            u[k], slopes[k], found[k] = self._project(float(t[k]), u[k], fixed, following, scale)
        return u, slopes, found

    def _project(self, t: float, u: np.ndarray, fixed, following, scale) -> tuple[np.ndarray, np.ndarray, bool]:
        """One point, with sparse matrices."""
        start, held, before = u, fixed @ u, np.inf
        for _ in range(_MOST_ITERATIONS):
            f, matrix, rate = self.constraints.values(t, u)
            try:
                factors = splu(sp.csc_matrix(sp.vstack([matrix, fixed])))
            except (RuntimeError, ValueError):  # exactly singular, or not finite
                break
            if before <= _SMALL:
                return u, factors.solve(np.concatenate([-rate, following @ u])), True
            delta = factors.solve(np.concatenate([f, fixed @ u - held]))
            before = float(np.max(np.abs(delta) / scale))
            u = u - delta
        return start, np.full(u.size, np.nan), False


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
