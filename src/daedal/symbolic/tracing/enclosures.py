"""Switching functions and their rates along a motion as programs with interval bounds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import itemgetter
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from daedal.kernels.functions import is_compiled
from daedal.kernels.intervals import CODES
from daedal.symbolic import Graph, Untraceable, scalar_argument, trace, vector_argument
from daedal.symbolic.derivative import directional
from daedal.symbolic.operations import TABLES
from daedal.symbolic.tracing.parameters import NAME, ParameterLayout

_ALONG = "along"  # argument name for derivatives
MOST_NODES = 4000
"""Maximum number of operations, rates included, of functions that are enclosed. Chosen: bounds take 20 to 40 us per
evaluation."""


class Enclosure:
    """A program for some of the switching functions of a run.

    Parameters
    ----------
    graph : Graph
    functions : sequence of int
        The nodes of all of them; constants are omitted.
    arguments : mapping
        Names of the vectors in [y | y'], in order, with their lengths.
    n : int
        Length of y.
    parameters : mapping
        Names and lengths of the vectors that are constant during a step.
    time : str
        Name of the time.
    """

    def __init__(
        self,
        graph: Graph,
        functions: Sequence[int],
        arguments: Mapping[str, int],
        n: int,
        parameters: Mapping[str, int],
        time: str = "t",
    ):
        self.index = np.array([k for k, i in enumerate(functions) if not graph.is_constant(i)], dtype=np.int64)
        functions = [functions[k] for k in self.index]
        self.n, begins, end = n, {}, 0
        for name, size in arguments.items():
            begins[name], end = end, end + size
        t, direction = graph.argument(time, 0), {}
        for i in graph.needed(functions):
            name, k = graph.data[i] if graph.operations[i] == "argument" else ("", 0)
            if name in begins:
                direction[i] = graph.argument(_ALONG, begins[name] + k + n)
        rates = directional(graph, functions, {t: graph.one, **direction})
        offsets, end = {}, 0
        for name, size in parameters.items():
            offsets[name], end = end, end + size
        self._read(graph, [*functions, *rates], {**begins, time: -1, _ALONG: 0}, offsets)
        self.values = np.array([self._positions[i] for i in functions], dtype=np.int64)
        self.rates = np.array([self._positions[i] for i in rates], dtype=np.int64)

    def _read(self, graph: Graph, outputs: Sequence[int], begins: Mapping[str, int], offsets: Mapping[str, int]):
        """The program that computes nodes; begins and offsets are the places of arguments and parameters."""
        needed = graph.needed(outputs)
        given = [i for i in needed if graph.operations[i] in _GIVEN]
        made = [i for i in needed if graph.operations[i] not in _GIVEN]
        self._positions = {i: k for k, i in enumerate([*given, *made])}
        self.size, self.given = len(needed), len(given)
        self.bounds = np.zeros(self.size)
        inputs, known, rows = [], [], []
        numbers: list[float] = []
        for i in given:
            place, operation, datum = self._positions[i], graph.operations[i], graph.data[i]
            if operation != "argument":
                self.bounds[place] = float(datum if operation == "constant" else operation == "true")
            elif datum[0] in begins:
                inputs.append((place, begins[datum[0]] + datum[1]))
            else:
                known.append((place, offsets[datum[0]] + datum[1]))
        for i in made:
            operation, operands = graph.operations[i], [self._positions[k] for k in graph.operands[i]]
            first, second, third = (*operands, operands[-1], operands[-1])[:3]
            if operation in TABLES:
                second, third = len(numbers), len(graph.data[i])
                numbers += graph.data[i]
            if operation == "multiply" and first == second:
                operation = "square"
            rows.append((CODES.get(operation, CODES["unknown"]), first, second, third))
        known.sort(key=itemgetter(1))
        columns = np.array([(0, 0, 0, 0)] * len(given) + rows, dtype=np.int64).reshape(-1, 4).T
        self.columns = dict(zip(("codes", "first", "second", "third"), map(np.ascontiguousarray, columns)))
        self.nodes, self.places = _columns(inputs)
        self.parameter_nodes, self.parameter_places = _columns(known)
        self.numbers = np.array(numbers, dtype=float)

    @property
    def is_worthwhile(self) -> bool:
        """Whether there are functions to enclose and bounds are cheap enough."""
        return 0 < self.index.size and self.size <= MOST_NODES


def _columns(pairs: list[tuple[int, int]]) -> list[np.ndarray]:
    return [np.array([pair[k] for pair in pairs], dtype=np.int64) for k in (0, 1)]


class EnclosedEvent:
    """A user's switching function as a program.

    Parameters
    ----------
    function : callable
        ``f(t, y)``, ``f(t, first, second)`` or ``f(t, first, second, params)``; `count` is its number of arguments.
    sizes : mapping
        Names and lengths of the vectors in y and of those that follow it.
    n : int
        Length of the state.
    params : object

    Raises
    ------
    Untraceable
    """

    def __init__(self, function: Callable[..., Any], count: int, sizes: Mapping[str, int], n: int, params: Any):
        graph = Graph(MOST_NODES)
        symbols: list[Any] = [scalar_argument(graph, "t"), *(vector_argument(graph, *item) for item in sizes.items())]
        self._layout = None
        if count == 4:
            self._layout = ParameterLayout(params, is_compiled(function))
            symbols.append(self._layout.symbols(graph, params)[is_compiled(function)])
        traced = trace(function, symbols[:count], None)
        parameters = {} if self._layout is None else {NAME: self._layout.count}
        if self._layout is not None:
            self._layout.fixed = {graph.data[i][1]: value for i, value in graph.fixed.items()}
        self._is_unchanged = traced.dependencies.check()
        self.program = Enclosure(graph, [graph.number(i) for i in traced.nodes], sizes, n, parameters)
        self.read = None if self._layout is None else self._layout.numbers

    def is_current(self, params: Any) -> bool:
        """Whether its external values are unchanged and parameters have the same structure."""
        return self._is_unchanged() and (self._layout is None or self._layout.fits(params))


_known: WeakKeyDictionary[Any, dict[Any, EnclosedEvent | None]] = WeakKeyDictionary()


def enclosed_event(
    original: Any, function: Callable[..., Any], count: int, sizes: Mapping[str, int], n: int, params: Any
) -> EnclosedEvent | None:
    """A switching function as a program, created once; None if this is impossible or bounds would be too expensive.

    `original` is the user's function.
    """
    try:
        known = _known.setdefault(original, {})
    except TypeError:
        known = {}
    key = count, tuple(sizes.items()), n
    found = known.get(key)
    if key not in known or (found is not None and not found.is_current(params)):
        try:
            found = EnclosedEvent(function, count, sizes, n, params)
        except Untraceable:
            found = None
        known[key] = found
    return found if found is not None and found.program.is_worthwhile else None


_GIVEN = ("constant", "argument", "true", "false")
