"""What the equations of the blocks of a prolongation say of the changes of their derivatives, as machine code."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from daedal.index.reduction.prolongation import Block, Prolongation
from daedal.index.reduction.prolonged_constraints import UNKNOWNS, arguments
from daedal.symbolic.graph import Graph
from daedal.symbolic.graph_functions import inlined
from daedal.symbolic.machine import MachineFunction, compile_function
from daedal.symbolic.tracing.parameters import NAME


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
        """Machine code for their entries, of (t, u)."""
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
        """Machine code for the matrices of some blocks, row by row, of t and n unknowns y with u[c] = y[place[c]]."""
        graph, source = Graph(), self._prolongation.equations.graph
        places = {column: graph.argument("y", k) for column, k in place.items()}
        results = {}
        for number, block in enumerate(blocks):
            nodes = [row.get(column, source.zero) for row in block.rows for column in block.columns]
            known = arguments(self._prolongation, graph, places, nodes)
            results[str(number)] = inlined(source, nodes, graph, known)
        return compile_function(graph, {"y": n}, results, {NAME: self._count})
