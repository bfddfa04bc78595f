"""Functions given by a graph, and machine code shared by small functions with the same operations.

A graph function is machine code if called with numbers, and inlined if called with symbols.

A thousand springs are a thousand functions that differ only in their constants and attachment points. The structure of
a function is its graph with constants and arguments numbered in order of appearance; functions of the same structure
share machine code, which takes the constants as parameters.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from daedal.errors import InvalidProblemError
from daedal.symbolic.arrays import array_of, nodes_of
from daedal.symbolic.expression import Expression
from daedal.symbolic.graph import Graph
from daedal.symbolic.machine import RAISES, MachineFunction, compile_function, may_raise
from daedal.symbolic.operations import ARITHMETIC
from daedal.symbolic.trace import Traced


class GraphFunction:
    """A function ``f(t, *vectors[, p])`` whose values are nodes of a graph.

    Parameters
    ----------
    name : str
        Name for messages.
    graph : Graph
        Graph of the nodes.
    nodes : array of int
        A vector or a matrix of nodes.
    arguments : mapping
        Names and lengths of the vectors, in order, after the time ``t``.
    params : tuple of (str, int), optional
        Name and length of the parameters.
    names : sequence of str, optional
        Names of single parameters, which are then given as a mapping.
    """

    def __init__(
        self,
        name: str,
        graph: Graph,
        nodes: Any,
        arguments: Mapping[str, int],
        params: tuple[str, int] | None = None,
        names: Sequence[str] | None = None,
    ):
        self.__name__, self.graph, self.nodes = name, graph, np.asarray(nodes, dtype=np.int64)
        self.arguments, self.params = dict(arguments), params
        self.names = None if names is None else tuple(names)
        self._code: MachineFunction | None = None

    def __call__(self, t: float, *values):
        """Evaluate at a point by machine code."""
        if self._code is None:
            own = dict([self.params]) if self.params else {}
            self._code = compile_function(self.graph, self.arguments, {"": self.nodes}, own)
        given = self._given(values)
        self._check_fixed(given)
        return self._code(float(t), **given)[1][""]

    def with_constants(self, count: int, values: Sequence[float]) -> GraphFunction:
        """The function with the parameters after the first `count` replaced by constants with the given values."""
        assert self.params is not None
        name, graph = self.params[0], Graph()
        nodes = self.nodes.ravel().tolist()
        known = {
            self.graph.data[i]: graph.argument(*self.graph.data[i])
            for i in self.graph.needed(nodes)
            if self.graph.operations[i] == "argument"
        }
        known |= {(name, count + k): graph.constant(float(value)) for k, value in enumerate(values)}
        made = np.array(inlined(self.graph, nodes, graph, known)).reshape(self.nodes.shape)
        return GraphFunction(self.__name__, graph, made, self.arguments, (name, count) if count else None)

    def in_order(self, order: Sequence[int]) -> GraphFunction:
        """The same function with its values in a different order."""
        return GraphFunction(self.__name__, self.graph, self.nodes[order], self.arguments, self.params, self.names)

    def on_symbols(self, t, *values):
        """Evaluate on symbols: copy the nodes into the graph of the arguments."""
        given = self._given(values)
        entries = {("t", 0): t}
        for name, vector in given.items():
            entries |= {(name, k): x for k, x in enumerate(vector if np.ndim(vector) else [vector])}
        graph = next((x.graph for x in entries.values() if type(x) is Expression), None)
        if graph is None:
            return self(t, *values)
        self._check_fixed({name: vector for name, vector in given.items() if self.params and name == self.params[0]})
        known = {key: nodes_of(graph, x)[0] for key, x in entries.items()}
        found = [Expression(graph, i) for i in inlined(self.graph, self.nodes.ravel().tolist(), graph, known)]
        return array_of(found).reshape(self.nodes.shape)

    def _given(self, values: Sequence[Any]) -> dict[str, Any]:
        """The arguments after the time by name; parameters as a vector."""
        names = [*self.arguments, *([self.params[0]] if self.params else [])]
        given = dict(zip(names, values, strict=True))
        if self.params and self.names is not None and isinstance(given[self.params[0]], Mapping):
            given[self.params[0]] = self._in_order(given[self.params[0]])
        return given

    def _in_order(self, params: Mapping[str, Any]) -> list[Any]:
        assert self.names is not None
        wrong = [*(name for name in self.names if name not in params), *(n for n in params if n not in self.names)]
        if wrong:
            raise InvalidProblemError(
                f"params must hold {', '.join(self.names)}; missing or unknown: {', '.join(map(str, wrong))}"
            )
        return [params[name] for name in self.names]

    def _check_fixed(self, given: Mapping[str, Any]):
        for i, number in self.graph.fixed.items():
            name, k = self.graph.data[i]
            if name in given and type(given[name][k]) is not Expression and given[name][k] != number:
                raise InvalidProblemError(
                    f"{self.__name__} was built for {name}[{k}] = {number:g}, which determines its structure; "
                    "create a new problem for other values"
                )

    def __getstate__(self):
        return self.__dict__ | {"_code": None}

    def __repr__(self) -> str:
        return f"<{self.__name__}, {self.graph.count(self.nodes.ravel().tolist())} operations>"


def inlined(source: Graph, nodes: Sequence[int], target: Graph, arguments: Mapping[tuple[str, int], int]) -> list[int]:
    """Copy nodes of one graph into another, replacing arguments by nodes: {(name, index): node}."""
    made: dict[int, int] = {}
    for i in source.needed(nodes):
        operation, datum = source.operations[i], source.data[i]
        operands = [made[k] for k in source.operands[i]]
        if operation == "argument":
            made[i] = arguments[datum]
        elif operation == "constant":
            made[i] = target.constant(datum)
        elif operation in ARITHMETIC:
            made[i] = getattr(target, operation)(*operands)
        elif operation in ("where", "locate", "pick"):
            made[i] = getattr(target, operation)(*operands, *([] if datum is None else [datum]))
        else:
            made[i] = target.apply(operation, *operands) if operands else target.node(operation)
        if i in source.sites:
            target.sites.setdefault(made[i], source.sites[i])
    return [made[i] for i in nodes]


ARGUMENT, CONSTANT, RESULT = "x", "c", "y"
"""Names of the arrays that the code reads and writes; its block is [x | y | c | workspace]."""


class Alike(NamedTuple):
    """Functions with the same structure."""

    code: MachineFunction
    members: list[int]  # indices of the functions
    arguments: np.ndarray  # (members, n) index in the arguments of each entry of x
    constants: np.ndarray  # (members, m) constants of each member


def alike(functions: Sequence[Traced]) -> list[Alike]:
    """Group functions of time and of entries of one argument vector by structure.

    Examples
    --------
    >>> from daedal.symbolic import Graph, scalar_argument, trace
    >>> from daedal.symbolic.expression import symbol
    >>> from daedal.symbolic.graph_functions import alike
    >>> def spring(stiffness, k):
    ...     graph = Graph()
    ...     x = symbol(graph, "x", k)
    ...     return trace(lambda t, x: [-stiffness * x], (scalar_argument(graph, "t"), x))
    >>> [group] = alike([spring(2.0, 7), spring(3.0, 9)])
    >>> group.arguments.tolist(), group.constants.tolist()
    ([[7], [9]], [[-2.0], [-3.0]])
    """
    found: dict[Any, list[tuple[int, _Structure]]] = {}
    for i, function in enumerate(functions):
        structure = _structure(function)
        found.setdefault(structure.key, []).append((i, structure))
    groups = []
    for own in found.values():
        structures = [structure for _, structure in own]
        arguments = np.array([structure.arguments for structure in structures], dtype=np.int64)
        constants = np.array([structure.constants for structure in structures], dtype=float)
        groups.append(Alike(_code(structures[0].key), [i for i, _ in own], arguments, constants))
    return groups


class _Structure(NamedTuple):
    key: tuple  # (nodes, results, condition for a fallback to Python)
    arguments: list[int]
    constants: list[float]


def _structure(function: Traced) -> _Structure:
    graph = function.graph
    number: dict[int, int] = {}
    nodes: list[tuple] = []
    arguments: list[int] = []
    constants: list[float] = []
    for i in graph.needed([*function.nodes, function.raises]):
        operation, datum = graph.operations[i], graph.data[i]
        if operation == "constant":
            datum = len(constants)
            constants.append(graph.data[i])
        elif operation == "argument" and datum[0] not in graph.scalars:
            arguments.append(datum[1])
            datum = (ARGUMENT, len(arguments) - 1)
        number[i] = len(nodes)
        nodes.append((operation, tuple(number[k] for k in graph.operands[i]), datum))
    results = tuple(number[i] for i in function.nodes)
    return _Structure((tuple(nodes), results, number[function.raises]), arguments, constants)


def _code(key: tuple) -> MachineFunction:
    nodes, results, raises = key
    graph, made = Graph(), []
    sizes = {ARGUMENT: 0, CONSTANT: 0}
    for operation, operands, datum in nodes:
        if operation in ("constant", "argument"):
            name, index = (CONSTANT, datum) if operation == "constant" else datum
            made.append(graph.argument(name, index))
            if name in sizes:
                sizes[name] += 1
        else:
            made.append(graph.node(operation, tuple(made[k] for k in operands), datum))
    entries = [made[i] for i in results]
    asked = may_raise(graph, entries, made[raises])
    return compile_function(
        graph,
        {ARGUMENT: sizes[ARGUMENT]},
        {RESULT: entries},
        {CONSTANT: sizes[CONSTANT]},
        [(asked, RAISES)],
    )
