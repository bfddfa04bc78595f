"""Equations in terms of positions, velocities, states and multipliers, on a graph of their own."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from daedal.index.reduction.balance import Balance
from daedal.index.reduction.roles import Roles
from daedal.index.structure.equations import SystemEquations, argument_name
from daedal.symbolic.derivative import Row, directional, jacobian, sparsity
from daedal.symbolic.evaluate import evaluate
from daedal.symbolic.functions import inlined
from daedal.symbolic.graph import Graph
from daedal.symbolic.operations import OPERATIONS
from daedal.symbolic.tracing.parameters import NAME

_POINTS = 4  # in general position
_VARIATION = 0.3  # largest relative change of parameters
_MOST_ATTEMPTS = 40  # to find them, where functions are defined only somewhere
_KINKS = {name for name, operation in OPERATIONS.items() if operation.kink}


class MechanismGraph:
    """The equations with positions, velocities and the like for the unknowns, on a graph of their own."""

    def __init__(self, equations: SystemEquations, roles: Roles):
        self.equations, self.roles, self.graph = equations, roles, Graph(equations.graph.most_nodes)
        graph, n = self.graph, len(roles.positions)
        self.t = graph.argument("t", 0)
        sizes = {"q": n, "v": n, "a": n, "r": len(roles.states), "s": len(roles.states)}
        sizes |= {"lam": len(roles.multipliers), "mu": len(roles.stabilisers)}
        self.sizes = sizes
        self.nodes = {name: [graph.argument(name, k) for k in range(size)] for name, size in sizes.items()}
        every = [equations.nodes[i] for i in (*roles.others, *roles.kinematic)]
        rows = inlined(equations.graph, every, graph, self._arguments())
        rows, self.kinematic = rows[: len(roles.others)], rows[len(roles.others) :]
        for i, number in equations.graph.fixed.items():
            graph.fixed[graph.argument(*equations.graph.data[i])] = number
        names = ("q", "v", "a", "r", "s", "lam")
        found = sparsity(graph, rows, [node for name in names for node in self.nodes[name]])
        places = [name for name in names for _ in range(sizes[name])]
        contents = [{places[k] for k in row} for row in found]
        self.dynamics = [i for i, row in zip(rows, contents) if "a" in row]
        self.state_rows = [i for i, row in zip(rows, contents) if "s" in row and "a" not in row]
        still = [(i, row, k) for i, row, k in zip(rows, contents, roles.others) if not row & {"a", "s"}]
        self.position = [(i, k) for i, row, k in still if row == {"q"}]
        self.velocity = [(i, k) for i, row, k in still if row in ({"v"}, {"q", "v"})]
        self.is_complete = len(self.position) + len(self.velocity) == len(still) == sizes["lam"] + sizes["mu"]

    def _arguments(self) -> dict[tuple[str, int], int]:
        """What stands for the arguments of the equations."""
        graph, roles, nodes = self.graph, self.roles, self.nodes
        known = {("t", 0): self.t}
        if self.equations.params is not None:
            known |= {(NAME, k): graph.argument(NAME, k) for k in range(self.equations.params.size)}
        for k, j in enumerate(roles.positions):
            known |= {(argument_name(0), j): nodes["q"][k], (argument_name(1), j): nodes["v"][k]}
        for k, (j, factor) in enumerate(zip(roles.velocities, roles.factors)):
            for order, name in ((0, "v"), (1, "a")):
                known[argument_name(order), j] = graph.divide(nodes[name][k], graph.constant(factor))
        for k, j in enumerate(roles.states):
            known |= {(argument_name(0), j): nodes["r"][k], (argument_name(1), j): nodes["s"][k]}
        known |= {(argument_name(0), j): nodes["mu"][k] for k, j in enumerate(roles.stabilisers)}
        return known | {(argument_name(0), j): nodes["lam"][k] for k, j in enumerate(roles.multipliers)}

    # --- structure --------------------------------------------------------------------------------------------------

    def is_mechanical(self) -> bool:
        """Whether all equations have the form of mechanics, as far as the graph tells."""
        n, n_r = self.sizes["q"], self.sizes["r"]
        if not self.is_complete or len(self.dynamics) != n or len(self.state_rows) != n_r:
            return False
        by_velocity = [i for i, _ in self.velocity]
        return (
            self.is_affine(self.dynamics, ("a", "lam"), {"q"})
            and self.is_affine(by_velocity, ("v",), {"q"})
            and self.is_affine(self.state_rows, ("s",), set())
            and not self._reads(self.state_rows, ("lam",))
            and not self._reads(self.dynamics, ("s",))
            and not self._switches([*self._motion_rows, *self._constraint_rows])
            and sorted(tuple(row) for row in self.by(self.state_rows, ("s",))) == [(k,) for k in range(n_r)]
        )

    def by(self, nodes: Sequence[int], names: Iterable[str]) -> list[Row]:
        """The derivatives of nodes with respect to arguments."""
        return jacobian(self.graph, nodes, [node for name in names for node in self.nodes[name]])

    def _reads(self, nodes: Sequence[int], names: Iterable[str]) -> bool:
        """Whether nodes depend on any of these arguments, in their conditions too."""
        return any(sparsity(self.graph, nodes, [node for name in names for node in self.nodes[name]]))

    def _switches(self, rows: Sequence[Row]) -> bool:
        """Whether there are kinks or jumps in matrices, which points on one side do not show."""
        needed = self.graph.needed([node for row in rows for node in row.values()])
        return any(self.graph.operations[i] in _KINKS for i in needed)

    def is_affine(self, nodes: Sequence[int], names: tuple[str, ...], allowed: set[str]) -> bool:
        """Whether nodes are affine in some arguments, with coefficients that depend on others only where allowed."""
        coefficients = [entry for row in self.by(nodes, names) for entry in row.values()]
        if self._reads(coefficients, [name for name in self.sizes if name not in allowed]):
            return False
        kinks = [i for i in self.graph.needed(nodes) if self.graph.operations[i] in _KINKS]
        return not self._reads(kinks, names)

    # --- numbers ----------------------------------------------------------------------------------------------------

    def matrices(self, *, vary: bool = False) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
        """A, B and the Jacobian K of the constraints at some points; None if they are defined at too few.

        Parameters are as they are given, or `vary` from point to point.
        """
        n = self.sizes["q"]
        every = self.sampled([*self._motion_rows, *self._constraint_rows], n + self.sizes["lam"], vary=vary)
        return None if every is None else (every[:, :n, :n], every[:, :n, n:], every[:, n:, :n])

    def sampled(self, rows: Sequence[Row], width: int, *, vary: bool = False) -> np.ndarray | None:
        """A matrix of functions of time and positions at some points; None if it is defined at too few."""
        places = [(i, j, node) for i, row in enumerate(rows) for j, node in row.items()]
        found: list[np.ndarray] = []
        generator = np.random.default_rng(0)
        for _ in range(_MOST_ATTEMPTS):
            point: dict[str, Any] = {"t": generator.uniform(0.1, 1.0)}
            point["q"] = generator.uniform(-1.0, 1.0, self.sizes["q"])
            if self.equations.params is not None:
                point[NAME] = self._varied(generator) if vary else self.equations.params
            full = np.zeros((len(rows), width))
            values = evaluate(self.graph, [node for _, _, node in places], point)
            for (i, j, _), value in zip(places, values, strict=True):
                full[i, j] = value
            if np.isfinite(full).all():
                found.append(full)
            if len(found) == _POINTS:
                return np.array(found)
        return None

    def _varied(self, generator: np.random.Generator) -> np.ndarray:
        """Numbers of parameters near the given ones, but for those that decide on the structure."""
        given = np.asarray(self.equations.params, dtype=float)
        varied = given + np.where(given == 0.0, 1.0, given) * generator.uniform(0.05, _VARIATION, given.size)
        for node, number in self.graph.fixed.items():
            name, k = self.graph.data[node]
            if name == NAME:
                varied[k] = number
        return varied

    @cached_property
    def _motion_rows(self) -> list[Row]:
        """The rows of [A, B]."""
        return self.by(self.dynamics, ("a", "lam"))

    @cached_property
    def _constraint_rows(self) -> list[Row]:
        """The rows of K."""
        position, velocity = ([i for i, _ in rows] for rows in (self.position, self.velocity))
        return [*self.by(position, ("q",)), *self.by(velocity, ("v",))]

    # --- the parts of the mechanism -----------------------------------------------------------------------------------

    def mass(self, balance: Balance) -> np.ndarray:
        """The nodes of M; what is below the diagonal is taken from above."""
        graph, n = self.graph, self.sizes["q"]
        result = np.full((n, n), graph.zero)
        for i, (row, factor) in enumerate(zip(balance.order, balance.factors, strict=True)):
            for j, node in self._motion_rows[row].items():
                if i <= j < n:
                    result[i, j] = result[j, i] = self._times(factor, node)
        return result

    def force(self, balance: Balance) -> list[int]:
        """The nodes of f."""
        nodes = self.without([self.dynamics[row] for row in balance.order], ("a", "lam"))
        return [self._times(-factor, node) for factor, node in zip(balance.factors, nodes, strict=True)]

    def state_rate(self) -> list[int]:
        """The nodes of r'."""
        result = [self.graph.zero] * self.sizes["r"]
        free = self.without(self.state_rows, ("s",))
        for row, node in zip(self.by(self.state_rows, ("s",)), free, strict=True):
            ((k, coefficient),) = row.items()
            result[k] = self.graph.negative(self.graph.divide(node, coefficient))
        return result

    # --- accelerations, multipliers and their rates -----------------------------------------------------------------

    def accelerations(self) -> list[int]:
        """The matrix [A, B; K, 0], row by row, and the right side of its equation for (a, lam), of the state.

        The second block row is the second derivative of position constraints and the first one of velocity constraints.
        """
        still = self.without(self.dynamics, ("a", "lam"))
        hidden = self.without(self._hidden(), ("a",))
        return [*self._matrix(), *(self.graph.negative(node) for node in [*still, *hidden])]

    def rates(self) -> list[int]:
        """The same for (a', lam'), as functions of the state, its derivative, a and lam."""
        rows = self.along([*self.dynamics, *self._hidden()])
        return [*self._matrix(), *(self.graph.negative(node) for node in rows)]

    def _matrix(self) -> list[int]:
        size = self.sizes["q"] + self.sizes["lam"]
        rows = [*self._motion_rows, *self._constraint_rows]
        return [row.get(k, self.graph.zero) for row in rows for k in range(size)]

    def _hidden(self) -> list[int]:
        """The constraints on the level of accelerations."""
        position = self.along([i for i, _ in self.position])
        return self.along([*position, *(i for i, _ in self.velocity)])

    def along(self, nodes: Sequence[int]) -> list[int]:
        """Derivatives along a motion, with a and lam as they are."""
        direction = {self.t: self.graph.one}
        for of, rate in (("q", "v"), ("v", "a"), ("r", "s")):
            direction |= dict(zip(self.nodes[of], self.nodes[rate], strict=True))
        return directional(self.graph, nodes, direction)

    def _times(self, factor: float, node: int) -> int:
        return self.graph.multiply(self.graph.constant(factor), node)

    def without(self, nodes: Sequence[int], names: Iterable[str]) -> list[int]:
        """Nodes with zeros for some arguments."""
        graph = self.graph
        zeros = {node for name in names for node in self.nodes[name]}
        arguments = {
            graph.data[i]: graph.zero if i in zeros else i
            for i in graph.needed(nodes)
            if graph.operations[i] == "argument"
        }
        return inlined(graph, nodes, graph, arguments)
