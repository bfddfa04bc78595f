"""Derivatives for which equations can be solved on the graph, and the constraints that stand in them.

An equation that is linear in the highest derivatives of the unknowns, with constant coefficients, can be combined with
others of its kind until each has a derivative of its own, x' = ..., or none, and then is a constraint. An equation with
one derivative left whose coefficient depends on x is divided by it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from daedal.structure.equations import Equations
from daedal.symbolic.modes import replaced

_ZERO = 1e-12  # what is left of coefficients that cancel
_ROUNDS = 8  # of substitution, for derivatives that are given by others


@dataclass
class Combined:
    """A combination of equations: its node, and {equation: factor}."""

    node: int
    members: dict[int, float]


@dataclass
class ExplicitRates:
    """What the equations say of derivatives without being differentiated.

    Attributes
    ----------
    solved : dict
        From the node of a derivative to that of the expression for it.
    constraints : list of Combined
        Equations, or combinations of them, without the highest derivatives.
    """

    equations: Equations
    solved: dict[int, int] = field(default_factory=dict)
    constraints: list[Combined] = field(default_factory=list)

    @classmethod
    def of(cls, equations: Equations, t: float, jet: np.ndarray) -> ExplicitRates:
        """For the equations of a problem; coefficients that depend on x are judged at the point t, `jet`."""
        found = cls(equations)
        graph, orders = equations.graph, np.maximum(equations.orders, 1)
        tops = [equations.unknown(j, int(orders[j])) for j in range(equations.n)]
        rows = [{j: node for (j, k), node in row.items() if k == orders[j]} for row in equations.partials]
        constant = [i for i, row in enumerate(rows) if all(graph.is_constant(node) for node in row.values())]
        found._reduce(constant, [{j: graph.data[node] for j, node in rows[i].items()} for i in constant], tops)
        found._divide({i: row for i, row in enumerate(rows) if i not in set(constant)}, tops, t, jet)
        return found

    def substituted(self, node: int) -> int:
        """A node in which all derivatives that are known stand as what they are."""
        for _ in range(_ROUNDS):
            (made,) = replaced(self.equations.graph, [node], self.solved)
            if made == node:
                break
            node = made
        return node

    def _reduce(self, numbers: list[int], rows: list[dict[int, float]], tops: list[int]):
        """Gauss-Jordan elimination of equations whose coefficients are numbers; shortest rows first."""
        graph = self.equations.graph
        waiting = [(row, {i: 1.0}) for i, row in zip(numbers, rows, strict=True)]
        done: list[tuple[int, dict[int, float], dict[int, float]]] = []
        while waiting:
            waiting.sort(key=lambda entry: len(entry[0]))
            row, members = waiting.pop(0)
            if not row:
                (node,) = replaced(graph, [self._combination(members)], dict.fromkeys(tops, graph.zero))
                self.constraints.append(Combined(node, members))
                continue
            pivot = max(row, key=lambda j: (abs(row[j]), -j))
            done = [_eliminated(pivot, row, members, entry) for entry in done]
            waiting = [_eliminated(pivot, row, members, (-1, *entry))[1:] for entry in waiting]
            done.append((pivot, row, members))
        for pivot, row, members in done:  # row[pivot] x' + the rest = 0
            (rest,) = replaced(graph, [self._combination(members)], {tops[pivot]: graph.zero})
            self.solved[tops[pivot]] = graph.divide(rest, graph.constant(-row[pivot]))

    def _divide(self, rows: dict[int, dict[int, int]], tops: list[int], t: float, jet: np.ndarray):
        """Equations with one derivative that is not known yet, one after the other."""
        progress = True
        while progress and rows:
            progress = False
            for i, row in list(rows.items()):
                left = [tops[j] for j in row if tops[j] not in self.solved]
                if len(left) == 1 and self.solve_for(left[0], self.equations.equation(i), t, jet):
                    del rows[i]
                    progress = True

    def solve_for(self, derivative: int, node: int, t: float, jet: np.ndarray) -> bool:
        """Solve an equation, given as a node, for a derivative; False where it is not linear in it, or singular."""
        graph, equations = self.equations.graph, self.equations
        (row,) = equations.jacobian([node], [derivative])
        coefficient = row.get(0, graph.zero)
        if derivative in graph.needed([coefficient]):
            return False
        size = equations.values([coefficient], t, jet)[0]
        if not np.isfinite(size) or size == 0.0:
            return False
        (rest,) = replaced(graph, [node], {derivative: graph.zero})
        self.solved[derivative] = graph.negative(graph.divide(rest, coefficient))
        return True

    def _combination(self, members: dict[int, float]) -> int:
        graph, total = self.equations.graph, self.equations.graph.zero
        for i, factor in members.items():
            total = graph.add(total, graph.multiply(graph.constant(factor), self.equations.equation(i)))
        return total


def _eliminated(pivot: int, row: dict[int, float], members: dict[int, float], entry):
    """An equation from which the derivative `pivot` is removed by means of another."""
    own, target, combined = entry
    if pivot not in target:
        return entry
    factor = target[pivot] / row[pivot]
    return own, _less(target, row, factor), _less(combined, members, factor)


def _less(target: dict[int, float], row: dict[int, float], factor: float) -> dict[int, float]:
    found = dict(target)
    for j, value in row.items():
        total = found.get(j, 0.0) - factor * value
        if abs(total) <= _ZERO * max(abs(found.get(j, 0.0)), abs(factor * value)):
            found.pop(j, None)
        else:
            found[j] = total
    return found
