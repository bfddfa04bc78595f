"""Machine code shared by small functions that have the same operations but different arguments and constants.

A thousand springs are a thousand functions that differ only in their constants and attachment points. The structure of
a function is its graph with constants and arguments numbered in order of appearance; functions of the same structure
share machine code, which takes the constants as parameters.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from daedal.symbolic.graph import Graph
from daedal.symbolic.machine import RAISES, MachineFunction, compile_function, may_raise
from daedal.symbolic.trace import Traced

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
    >>> from daedal.symbolic.alike import alike
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
