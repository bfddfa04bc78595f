"""Compiled equations of a prolonged system, including hidden ones, and matrices of its blocks."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import splu

from daedal.index.reduction.prolongation import Block, Prolongation
from daedal.symbolic.derivative import directional, jacobian
from daedal.symbolic.graph import Graph
from daedal.symbolic.graph_functions import inlined
from daedal.symbolic.machine import MachineFunction, compile_function
from daedal.symbolic.tracing.parameters import NAME

UNKNOWNS = "u"
"""Name of the unknowns of a prolonged system in a graph."""
LARGEST_DENSE = 400
"""Largest number of unknowns with dense matrices."""
_MOST_ITERATIONS, _SMALL = 8, 1e-9


class Constraints:
    """f(t, u) = 0 for all equations of a prolongation.

    Parameters
    ----------
    prolongation : Prolongation
    numbers : numpy.ndarray
        The parameters.
    full : bool
        Whether the code computes all entries of the Jacobian, row by row; otherwise only those not identically zero.
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
        """A copy with other parameters."""
        other = object.__new__(Constraints)
        other.__dict__.update(self.__dict__, numbers=numbers)
        return other

    def values(self, t: float, u: np.ndarray) -> tuple[np.ndarray, sp.csr_array, np.ndarray]:
        """f, df/du and the partial derivative of f with respect to time at a point."""
        found = self.code(float(t), **{UNKNOWNS: u, NAME: self.numbers})[1]
        matrix = sp.csr_array((found["entries"], (self._rows, self._columns)), shape=(self.m, self.n))
        return found["f"], matrix, found["rate"]

    def dense_values(self, t: float, u: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Like :meth:`values`, with a dense matrix."""
        found = self.code(float(t), **{UNKNOWNS: u, NAME: self.numbers})[1]
        matrix = np.zeros((self.m, self.n))
        matrix[self._rows, self._columns] = found["entries"]
        return found["f"], matrix, found["rate"]

    def containing(self, unknowns: np.ndarray) -> np.ndarray:
        """The equations that contain any of the unknowns given by a mask."""
        found = np.zeros(self.m, dtype=bool)
        found[self._rows[unknowns[self._columns]]] = True
        return found

    def record(self) -> Any:
        """The data for compiled code, in separate memory."""
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
        """Write the parameters to a record created by :meth:`record`."""
        record.array("block")[self.code.slices[NAME]] = self.numbers

    def projector(self) -> Projector:
        """A projector onto f = 0, for one thread."""
        return Projector(self)


class Projector:
    """Project points onto f = 0 with some combinations of the unknowns fixed.

    Parameters
    ----------
    constraints : Constraints
    """

    def __init__(self, constraints: Constraints):
        self.constraints, self.n = constraints, constraints.n
        self._system = constraints.record() if self.n <= LARGEST_DENSE else None

    def project(self, t: np.ndarray, u: np.ndarray, fixed: Any, following: Any, scale: np.ndarray):
        """Points with f = 0 to round-off and `fixed` u unchanged, their slopes, and whether each was found.

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
        """:meth:`project` for one point, with sparse matrices."""
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
    """Nodes for the arguments of the equations in another graph: unknowns by their columns, time, parameters."""
    source = prolongation.equations.graph
    known: dict[tuple[str, int], int] = {}
    for i in source.needed(nodes):
        if source.operations[i] != "argument":
            continue
        name, j = source.data[i]
        if name in ("t", NAME):
            known[name, j] = graph.argument(name, j)
        else:  # derivatives beyond the highest occur but cancel
            column = prolongation.column.get((j, int(name[1:])))
            known[name, j] = graph.zero if column is None else places[column]
    return known


# --- Compiled matrices of the blocks of a prolongation ---------------------------------------------------------------


class BlockMatrices:
    """The matrices of all blocks.

    Parameters
    ----------
    prolongation : Prolongation
    count : int
        Number of parameters.
    """

    def __init__(self, prolongation: Prolongation, count: int):
        self._prolongation, self._count = prolongation, count

    @cached_property
    def _code(self) -> MachineFunction:
        """Machine code for the entries of the matrices, as functions of (t, u)."""
        prolongation, graph = self._prolongation, Graph()
        nodes = [node for block in prolongation.blocks for row in block.rows for node in row.values()]
        places = {column: graph.argument(UNKNOWNS, column) for column in range(prolongation.n)}
        made = inlined(prolongation.equations.graph, nodes, graph, arguments(prolongation, graph, places, nodes))
        return compile_function(graph, {UNKNOWNS: prolongation.n}, {"": made}, {NAME: self._count})

    def values(self, t: float, u: np.ndarray, numbers: np.ndarray) -> list[np.ndarray]:
        """The matrices at a point, one for each block."""
        values = self._code(float(t), **{UNKNOWNS: u, NAME: numbers})[1][""]
        found, first = [], 0
        for block in self._prolongation.blocks:
            i, k = block.entries
            matrix = np.zeros((len(block.rows), len(block.columns)))
            matrix[i, k] = values[first : first + i.size]
            found.append(matrix)
            first += i.size
        return found

    def of_unknowns(self, blocks: Sequence[Block], place: dict[int, int], n: int) -> MachineFunction:
        """Machine code for matrices of blocks, row by row, as functions of t and n unknowns y, u[c] = y[place[c]]."""
        graph, source = Graph(), self._prolongation.equations.graph
        places = {column: graph.argument("y", k) for column, k in place.items()}
        results = {}
        for number, block in enumerate(blocks):
            nodes = [row.get(column, source.zero) for row in block.rows for column in block.columns]
            known = arguments(self._prolongation, graph, places, nodes)
            results[str(number)] = inlined(source, nodes, graph, known)
        return compile_function(graph, {"y": n}, results, {NAME: self._count})
