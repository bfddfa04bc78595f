r"""Solution of linear systems on the graph: elimination as straight-line code.

Rows are dictionaries, so that zeros and ones vanish and the order of the unknowns costs nothing at run time. Pivots are
diagonal entries, ordered by minimum degree. In an augmented system

.. math::

    \begin{pmatrix} M & B \\ K & 0 \end{pmatrix}
    \begin{pmatrix} a \\ \lambda \end{pmatrix} = \begin{pmatrix} f \\ \gamma \end{pmatrix}

a multiplier is eliminated after the coordinates of its constraint, so that its pivot is that of a Schur complement; for
positive definite M it vanishes only if constraints are redundant. The quality of a pivot is known only at run time: its
size is compared with the sizes of the terms of which it is the sum.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from daedal.symbolic.derivative import Row
from daedal.symbolic.graph import Graph


class StructurallySingular(Exception):
    """No order of diagonal pivots eliminates the matrix; a pivoted solver may still succeed."""


@dataclass(frozen=True)
class Solved:
    """Solutions of linear systems with one matrix.

    Attributes
    ----------
    solutions : list of list of int
        For each right-hand side the nodes of the unknowns.
    quality : int
        The smallest ratio of a pivot to the sum of the sizes of its terms: 1 for a diagonal matrix, near 0 after
        complete cancellation, NaN if the elimination has broken down.
    order : list of int
        The unknowns in elimination order.
    pivots : list of (int, list of int)
        The pivots in elimination order, each with its terms.
    """

    solutions: list[list[int]]
    quality: int
    order: list[int]
    pivots: list[tuple[int, list[int]]] = field(default_factory=list)


def solve(graph: Graph, matrix: Sequence[Row], right_sides: Sequence[Sequence[int]], n_first: int = 0) -> Solved:
    """Solve `matrix` x = b for each right-hand side; the other arguments are those of :func:`factor`."""
    factors = factor(graph, matrix, n_first)
    return Solved([factors.solve(b) for b in right_sides], factors.quality, factors.order, factors.pivots)


def factor(graph: Graph, matrix: Sequence[Row], n_first: int = 0) -> Factors:
    """Factor `matrix`, for right-hand sides that may depend on earlier solutions.

    Parameters
    ----------
    graph : Graph
        Graph of the entries and of the solution.
    matrix : sequence of dict
        Row i as {column: node}, without zeros.
    n_first : int
        The first unknowns, those of a mass matrix, are eliminated before those of the rows that couple them.

    Raises
    ------
    StructurallySingular
        If no diagonal entry is left as a pivot.
    """
    rows = [{j: x for j, x in row.items() if not graph.is_zero(x)} for row in matrix]
    symmetric = all(rows[j].get(i) == x for i, row in enumerate(rows) for j, x in row.items())
    return Factors(graph, rows, n_first, symmetric)


def weak_pivot(graph: Graph, pivots: Sequence[tuple[int, list[int]]], worst: float) -> int:
    """The condition that some pivot is NaN or at most `worst` times the sum of the sizes of its terms.

    Equivalent to quality <= worst, without a division.
    """
    weak = graph.false
    for pivot, terms in pivots:
        scale = graph.zero
        if len(terms) > 1:
            for term in terms:
                scale = graph.add(scale, graph.apply("absolute", term))
        limit = graph.multiply(graph.constant(worst), scale)
        good = graph.apply("less", limit, graph.apply("absolute", pivot))
        weak = graph.either(weak, graph.opposite(good))
    return weak


def augmented(n_q: int, mass: Sequence[Row], directions: Sequence[Row], constraints: Sequence[Row]) -> list[Row]:
    """The rows of [[M, B], [K, 0]] from those of M, of B^T (`directions`) and of K (`constraints`)."""
    rows = [dict(row) for row in mass]
    for i, direction in enumerate(directions):
        for j, x in direction.items():
            rows[j][n_q + i] = x
    return rows + [dict(row) for row in constraints]


def rows_of(graph: Graph, nodes: np.ndarray) -> list[Row]:
    """The rows of a matrix of nodes, without zeros."""
    return [{j: int(x) for j, x in enumerate(row) if not graph.is_zero(int(x))} for row in nodes]


def constant_rows(graph: Graph, matrix: Any) -> list[Row]:
    """The rows of a matrix of numbers, without zeros."""
    values = np.asarray(matrix, dtype=float)
    return [{j: graph.constant(row[j]) for j in np.flatnonzero(row).tolist()} for row in values]


def matching(rows: list[Row]) -> list[int]:
    """A full matching: for each column, a distinct row with an entry in it; diagonal entries are preferred."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import min_weight_full_bipartite_matching

    entries = [(i, j) for i, row in enumerate(rows) for j in row]
    if all(i in row for i, row in enumerate(rows)):
        return list(range(len(rows)))
    weights = [1.0 if i == j else 2.0 for i, j in entries]
    places = tuple(np.array(entries).T) if entries else (np.zeros(0, int), np.zeros(0, int))
    try:
        row, column = min_weight_full_bipartite_matching(csr_array((weights, places), shape=(len(rows),) * 2))
    except ValueError as error:
        raise StructurallySingular("the rows and columns have no full matching") from error
    return row[np.argsort(column)].tolist()


class Factors:
    """A factored matrix, created by :func:`factor`.

    Attributes
    ----------
    quality, order, pivots
        As in :class:`Solved`.
    """

    def __init__(self, graph: Graph, rows: list[Row], n_first: int, symmetric: bool):
        self.graph, self.rows, self.symmetric = graph, rows, symmetric
        n = len(rows)
        self.columns: list[set[int]] = [set() for _ in range(n)]  # for each column, the rows with an entry in it
        for i, row in enumerate(rows):
            for j in row:
                self.columns[j].add(i)
        self.left = set(range(n))
        self.before = [
            {j for j in rows[i] if j < n_first and j in rows[j]} if i >= n_first else set() for i in range(n)
        ]
        self.terms: list[list[int]] = [[rows[i][i]] if i in rows[i] else [] for i in range(n)]
        self.order: list[int] = []
        self.pivots: list[tuple[int, list[int]]] = []
        # for each pivot row k, the rows from which multiples of it are subtracted, with their multipliers
        self.multipliers: dict[int, list[tuple[int, int]]] = {}
        self.reciprocals: dict[int, int] = {}
        self.quality = self._eliminated()

    def _eliminated(self) -> int:
        """Eliminate all rows and return the quality of the pivots."""
        graph = self.graph
        heap = [(self._degree(i), i) for i in range(len(self.rows)) if i in self.rows[i]]
        heapq.heapify(heap)
        while self.left:
            k = self._next(heap)
            self.left.discard(k)
            self.order.append(k)
            self.pivots.append((self.rows[k][k], self.terms[k]))
            self.reciprocals[k] = graph.divide(graph.one, self.rows[k][k])
            for i in self._eliminate(k):
                if i in self.left and i in self.rows[i]:
                    heapq.heappush(heap, (self._degree(i), i))
        quality = graph.one
        for pivot, terms in self.pivots:
            quality = self._worse(quality, pivot, terms)
        return quality

    def solve(self, right_side: Sequence[int]) -> list[int]:
        """Nodes of the unknowns for a right-hand side."""
        graph, b = self.graph, list(right_side)
        for k in self.order:
            for i, multiplier in self.multipliers[k]:
                b[i] = graph.subtract(b[i], graph.multiply(multiplier, b[k]))
        x = [graph.zero] * len(b)
        behind: set[int] = set()
        for k in reversed(self.order):
            value = b[k]
            for j, entry in self.rows[k].items():
                if j in behind:
                    value = graph.subtract(value, graph.multiply(entry, x[j]))
            x[k] = graph.multiply(value, self.reciprocals[k])
            behind.add(k)
        return x

    def _degree(self, i: int) -> int:
        """Number of products for a pivot: (rows below) * (entries to the right)."""
        row = sum(j in self.left for j in self.rows[i]) - 1
        column = row if self.symmetric else sum(j in self.left for j in self.columns[i]) - 1
        return row * column

    def _next(self, heap: list[tuple[int, int]]) -> int:
        waiting = []
        found = -1
        while heap:
            degree, i = heapq.heappop(heap)
            if i not in self.left or i not in self.rows[i]:  # eliminated already, or structurally zero at present
                continue
            now = self._degree(i)
            if now != degree:
                heapq.heappush(heap, (now, i))
            elif not self.before[i].isdisjoint(self.left):
                waiting.append((degree, i))
            else:
                found = i
                break
        for entry in waiting:
            heapq.heappush(heap, entry)
        if found < 0:
            raise StructurallySingular(f"{len(self.left)} unknowns are left without a pivot on the diagonal")
        return found

    def _eliminate(self, k: int) -> list[int]:
        """Subtract multiples of row k from the rows below, and return these rows."""
        graph, row = self.graph, self.rows[k]
        right = [j for j in row if j in self.left]
        below = [i for i in self.columns[k] if i in self.left] if not self.symmetric else right
        done: set[int] = set()
        multipliers = self.multipliers[k] = []
        for i in below:
            multiplier = graph.multiply(self.rows[i][k], self.reciprocals[k])
            multipliers.append((i, multiplier))
            for j in right:
                if self.symmetric and j in done:
                    continue
                product = graph.multiply(multiplier, row[j])
                self._subtract(i, j, product)
                if self.symmetric and i != j:
                    self._put(j, i, self.rows[i].get(j, graph.zero))
            done.add(i)
        return below

    def _subtract(self, i: int, j: int, product: int):
        before = self.rows[i].get(j)
        if i == j:
            self.terms[i].append(product)
        self._put(i, j, self.graph.negative(product) if before is None else self.graph.subtract(before, product))

    def _put(self, i: int, j: int, x: int):
        if self.graph.is_zero(x):
            self.rows[i].pop(j, None)
            self.columns[j].discard(i)
        else:
            self.rows[i][j] = x
            self.columns[j].add(i)

    def _worse(self, quality: int, pivot: int, terms: list[int]) -> int:
        """min(quality, |pivot| / sum of |terms|); a pivot of a single term has ratio 1."""
        graph = self.graph
        if len(terms) == 1 and not graph.is_constant(pivot):
            ratio = graph.where(graph.apply("equal", pivot, graph.zero), graph.zero, graph.one)
        else:
            scale = graph.zero
            for term in terms:
                scale = graph.add(scale, graph.apply("absolute", term))
            ratio = graph.divide(graph.apply("absolute", pivot), scale)
        return graph.apply("minimum", quality, ratio)
