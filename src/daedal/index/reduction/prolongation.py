"""The equations with all derivatives that the structure requires, where derivatives are separate unknowns.

Pryce's offsets c, d mean that equation f_i is differentiated c_i times, and that this determines x_j^(d_j). All these
equations f_i^(r), r <= c_i, are relations between the unknowns u = (x_j^(k), k <= d_j), treated as independent. At
distance s below the highest level the linearised equations are again those of the system Jacobian J,

    d f_i^(c_i - s) / d x_j^(d_j - s) = J_ij    for c_i >= s, d_j >= s

(A. Griewank's lemma; Mattsson and Soederlind, SIAM J. Sci. Comput. 14, 1993, section 3), so that mu_s equations with
full row rank leave nu_s - mu_s of the nu_s derivatives on this level to be selected. Derivatives with a second name in
the equations, as in x' = v, are one unknown.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import splu

from daedal.common.tabular import derivative_name
from daedal.index.structure.signature import StructuralSignature
from daedal.index.structure.system_equations import SystemEquations
from daedal.symbolic.derivative import directional, jacobian
from daedal.symbolic.graph import Graph
from daedal.symbolic.graph_functions import inlined
from daedal.symbolic.machine import MachineFunction, compile_function
from daedal.symbolic.tracing.parameters import NAME

Derivative = tuple[int, int]
"""(j, k): the derivative of order k of unknown j."""


@dataclass(frozen=True)
class Block:
    """Derivatives on one level that are coupled by equations, and these equations."""

    columns: list[int]  # the columns of u that contain the derivatives
    targets: list[int]  # the columns of u that contain the time derivatives of `columns`
    # the linear relations between their changes: {column: node of the partial derivative}, at most as many as columns
    rows: list[dict[int, int]]
    equations: list[tuple[int, int]]  # the corresponding equations: equation i, differentiated r times

    @cached_property
    def places(self) -> np.ndarray:
        """`columns` as an array."""
        return np.array(self.columns, dtype=np.int64)

    @cached_property
    def next_places(self) -> np.ndarray:
        """`targets` as an array."""
        return np.array(self.targets, dtype=np.int64)

    @cached_property
    def entries(self) -> tuple[np.ndarray, np.ndarray]:
        """Rows and columns, within the block, of the entries of `rows`."""
        at = {column: k for k, column in enumerate(self.columns)}
        i = np.repeat(np.arange(len(self.rows)), [len(row) for row in self.rows])
        return i, np.array([at[column] for row in self.rows for column in row], dtype=np.int64)

    @property
    def free(self) -> int:
        """The number of derivatives that remain to be selected."""
        return len(self.columns) - len(self.rows)


class Prolongation:
    """The equations f_i^(r), r <= c_i, in the unknowns u = (x_j^(k), k <= d_j).

    `leading` are the first unknowns in u: those of the problem, or of its first-order form; `column` maps (j, k) to the
    position of x_j^(k) in u. `kept` are the remaining equations (i, r), `differentiated` the pairs (i, c_i) of
    equations that were differentiated, and `blocks` the sets of derivatives to select from, level by level.

    Examples
    --------
    >>> import daedal
    >>> from daedal.index.reduction.prolongation import Prolongation
    >>> from daedal.index.structure.system_equations import SystemEquations
    >>> from daedal.index.structure.signature import StructuralSignature
    >>> def pendulum(t, y, yp):
    ...     x, z, u, w, lam = y
    ...     return [yp[0] - u, yp[1] - w, yp[2] + x * lam, yp[3] + z * lam + 1, x**2 + z**2 - 1]
    >>> equations = SystemEquations(daedal.ImplicitDAE(pendulum, 5, names=["x", "z", "u", "w", "lam"]))
    >>> prolongation = Prolongation(equations, StructuralSignature.of(equations))
    >>> prolongation.names
    ['x', 'z', 'u', 'w', 'lam', "u'", "w'"]
    >>> [(block.columns, block.targets) for block in prolongation.blocks]
    [([2, 3], [5, 6]), ([0, 1], [2, 3])]
    """

    def __init__(
        self, equations: SystemEquations, signature: StructuralSignature, leading: list[Derivative] | None = None
    ):
        self.equations, self.c, self.d = equations, signature.c.tolist(), signature.d.tolist()
        self.leading = [(j, 0) for j in range(equations.n)] if leading is None else leading
        self._leading = signature.leading()
        self.same, aliases = self._aliases()
        self.column = self._columns()
        self.n = 1 + max(self.column.values())
        self.kept = [(i, r) for i, c in enumerate(self.c) if i not in aliases for r in range(c + 1)]
        self.differentiated = [(i, c) for i, c in enumerate(self.c) if c]
        self.blocks = [block for s in range(1, max(self.d) + 1) for block in self._blocks(s, aliases)]

    @cached_property
    def names(self) -> list[str]:
        """Names of u."""
        found = [""] * self.n
        for (j, k), column in sorted(self.column.items(), key=lambda item: -item[0][1]):  # the lowest derivative last
            found[column] = derivative_name(self.equations.names[j], k)
        seen: set[str] = set()
        for column in range(self.n):
            while found[column] in seen:  # a velocity may be named x', like a derivative
                found[column] = f"({found[column]})"
            seen.add(found[column])
        return found

    def is_highest(self) -> np.ndarray:
        """Mask of the derivatives x_j^(d_j) in u, whose own derivatives do not occur in the equations."""
        highest = np.ones(self.n, dtype=bool)
        for (j, k), column in self.column.items():
            highest[column] &= k == self.d[j]
        return highest

    # --- one unknown with two names -----------------------------------------------------------------------------------

    def _aliases(self) -> tuple[dict[Derivative, Derivative], set[int]]:
        """Derivatives that equal others, {(j, k): (l, m)}, and the equations that only express this, such as x' = v."""
        same: dict[Derivative, Derivative] = {}

        def root(place: Derivative) -> Derivative:
            while place in same:
                place = same[place]
            return place

        found, first = set[int](), set(self.leading)
        for i, c in enumerate(self.c):
            pair = self._alias(i)
            if pair is None:
                continue
            (j, k), (l, m) = pair
            pairs = [(root((j, k + r)), root((l, m + r))) for r in range(c + 1)]
            if any(a == b or (a in first and b in first) for a, b in pairs):
                continue  # two unknowns of the problem remain separate
            for a, b in pairs:
                low = min(a, b, key=lambda place: (place not in first, place[1]))
                same[a if low == b else b] = low
            found.add(i)
        return {place: root(place) for place in same}, found

    def _alias(self, i: int) -> tuple[Derivative, Derivative] | None:
        """The two derivatives of different unknowns whose difference is equation i, the higher one first; or None."""
        graph, node = self.equations.graph, self.equations.nodes[i]
        if graph.operations[node] != "subtract":
            return None
        places = []
        for operand in graph.operands[node]:
            if graph.operations[operand] != "argument" or not graph.data[operand][0].startswith("x"):
                return None
            name, j = graph.data[operand]
            places.append((j, int(name[1:])))
        places.sort(key=lambda place: -place[1])
        return (places[0], places[1]) if places[0][1] > places[1][1] and places[0][0] != places[1][0] else None

    def _columns(self) -> dict[Derivative, int]:
        column = {place: k for k, place in enumerate(self.leading)}
        for k in range(max(self.d) + 1):
            for j, d in enumerate(self.d):
                if k <= d and (j, k) not in self.same:
                    column.setdefault((j, k), len(column))
        for place, other in self.same.items():
            if place[1] <= self.d[place[0]]:
                column[place] = column[other]
        return column

    # --- choices ------------------------------------------------------------------------------------------------------

    def _blocks(self, s: int, aliases: set[int]) -> list[Block]:
        """The derivatives at distance s below the highest, in groups coupled by the equations on this level."""
        targets = {
            self.column[j, d - s]: self.column[j, d - s + 1]
            for j, d in enumerate(self.d)
            if d >= s  # if an unknown has two names, either one may be used
        }
        rows: list[dict[int, int]] = []
        which = [(i, c - s) for i, c in enumerate(self.c) if c >= s and i not in aliases]
        for i, _ in which:
            row: dict[int, int] = {}
            for j, k in self._leading[i].items():
                at, node = self.column[j, self.d[j] - s], self.equations.partials[i][j, k]
                with self.equations.lock:
                    row[at] = self.equations.graph.add(row[at], node) if at in row else node
            rows.append(row)
        return [
            Block(columns, [targets[column] for column in columns], [rows[k] for k in own], [which[k] for k in own])
            for columns, own in _connected(list(targets), rows)
        ]


def _connected(columns: list[int], rows: list[dict[int, int]]) -> list[tuple[list[int], list[int]]]:
    place = {column: k for k, column in enumerate(columns)}
    i = [k for k, row in enumerate(rows) for _ in row]
    j = [len(rows) + place[column] for row in rows for column in row]
    size = len(rows) + len(columns)
    count, label = connected_components(sp.coo_array((np.ones(len(i)), (i, j)), shape=(size, size)), directed=False)
    parts: list[tuple[list[int], list[int]]] = [([], []) for _ in range(count)]
    for k in range(size):
        part = parts[label[k]]
        if k < len(rows):
            part[1].append(k)
        else:
            part[0].append(columns[k - len(rows)])
    return parts


# --- compiled equations of a prolonged system, including hidden ones --------------------------------------------------

UNKNOWNS = "u"
"""Name of the unknowns of a prolonged system in a graph."""
LARGEST_DENSE = 400
"""Largest number of unknowns with dense matrices."""
_MOST_ITERATIONS, _SMALL = 8, 1e-9


class Constraints:
    """f(t, u) = 0 for all equations of a prolongation, with the parameters `numbers`.

    The code computes the entries of the Jacobian that are not identically zero; if `full`, all of them, row by row.
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
        from daedal.index.reduction.step_hooks import EQUATIONS
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
    """Project points onto f = 0 with some combinations of the unknowns fixed."""

    def __init__(self, constraints: Constraints):
        self.constraints, self.n = constraints, constraints.n
        self._system = constraints.record() if self.n <= LARGEST_DENSE else None

    def project(self, t: np.ndarray, u: np.ndarray, fixed: Any, following: Any, scale: np.ndarray):
        """Points with f = 0 to round-off and `fixed` u unchanged, their slopes, and whether each was found.

        The slopes satisfy f_t + f_u u' = 0 and `fixed` u' = `following` u. `scale` are the sizes of u.
        """
        u, slopes, found = np.ascontiguousarray(u).copy(), np.empty(u.shape), np.zeros(t.size, dtype=bool)
        if self._system is not None:
            from daedal.index.reduction.step_hooks import project_points

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
    """The matrices of all blocks of a prolongation, with `count` parameters."""

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
