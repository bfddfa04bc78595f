"""Where the equations of a reduced problem are written: a graph with its unknowns y, y' and its data."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from daedal.index.reduction.prolongation import Prolongation
from daedal.index.reduction.prolonged_constraints import arguments
from daedal.problems import ImplicitDAE
from daedal.symbolic.graph import Graph
from daedal.symbolic.graph_functions import GraphFunction, inlined
from daedal.symbolic.tracing.parameters import NAME


class Sheet:
    """The graph of one problem F(t, y, y') = 0 in unknowns that are those of a prolongation, or derivatives of such.

    Parameters
    ----------
    prolongation : Prolongation
    place : dict
        {column of u: position in y}.
    slopes : dict
        {column of u: column of which it is the derivative}, for those that stand in y' alone.
    count : int
        Parameters of the original problem; data come behind them.
    """

    def __init__(self, prolongation: Prolongation, place: dict[int, int], slopes: dict[int, int], count: int):
        self._prolongation, self._place, self._count, self._further = prolongation, place, count, len(place)
        self.graph = Graph()
        self.nodes = {column: self.y(k) for column, k in place.items()}
        self.nodes |= {high: self.rate(low) for high, low in slopes.items()}

    def y(self, k: int) -> int:
        """The node of an unknown of the problem."""
        return self.graph.argument("y", k)

    def further(self) -> int:
        """The node of the next unknown of the problem that is none of u; they stand behind the others."""
        self._further += 1
        return self.y(self._further - 1)

    def rate(self, column: int) -> int:
        """The node of the derivative of an unknown u."""
        return self.graph.argument("yp", self._place[column])

    def difference(self, low: int, high: int) -> int:
        """u_low' - u_high."""
        return self.graph.subtract(self.rate(low), self.nodes[high])

    def data(self, count: int) -> list[int]:
        """Numbers that are given when a point is known."""
        self._count += count
        return [self.graph.argument(NAME, k) for k in range(self._count - count, self._count)]

    def combination(self, terms: Sequence[int], factors: Sequence[int] | None = None) -> int:
        """The sum of terms, each times a factor: by default data."""
        total = self.graph.zero
        for factor, term in zip(self.data(len(terms)) if factors is None else factors, terms, strict=True):
            total = self.graph.add(total, self.graph.multiply(factor, term))
        return total

    def written(self, nodes: Sequence[int], others: dict[int, int] | None = None) -> list[int]:
        """Nodes of the equations of the original problem, in the unknowns of this one; `others` stand for some u."""
        known = arguments(self._prolongation, self.graph, self.nodes | (others or {}), nodes)
        return inlined(self._prolongation.equations.graph, list(nodes), self.graph, known)

    def problem(self, residual: list[int], names: list[str], numbers: np.ndarray) -> ImplicitDAE:
        """The problem, its data not yet given."""
        n, count = len(names), self._count
        function = GraphFunction("residual", self.graph, residual, {"y": n, "yp": n}, (NAME, count) if count else None)
        values = np.concatenate([numbers, np.zeros(count - numbers.size)])
        return ImplicitDAE(function, n, params=values if count else None, names=names)
