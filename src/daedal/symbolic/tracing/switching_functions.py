"""Switching functions, guards, decisions and resets on the graph of a problem: machine code, and interval bounds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import itemgetter
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from daedal.kernels.functions import is_compiled
from daedal.kernels.intervals import CODES
from daedal.problems import MechanicalSystem, SemiExplicitDAE
from daedal.symbolic import Graph, Untraceable, scalar_argument, trace, vector_argument
from daedal.symbolic.derivative import directional
from daedal.symbolic.machine import RAISES, MachineFunction, compile_function
from daedal.symbolic.operations import TABLES
from daedal.symbolic.tracing.function import TracedFunction
from daedal.symbolic.tracing.parameters import NAME, ParameterLayout
from daedal.symbolic.tracing.tracer import Tracer

_ALONG = "along"  # argument name for derivatives
MOST_NODES = 4000
"""Maximum number of operations, rates included, of functions that are enclosed; at this limit bounds take 20 to 40 us
per evaluation."""


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
        """Store the program that computes `outputs`; `begins` and `offsets` are places of arguments and parameters."""
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


_SLOPES = "slopes"  # name of y' for a mechanism, which switching functions cannot use


def code_of(problem: Any) -> Any:
    """Straight-line code of a mechanism, or the functions of linearly implicit methods; None if unavailable."""
    if isinstance(problem, MechanicalSystem):
        return problem.straight_line
    stated = problem.implicit() if isinstance(problem, SemiExplicitDAE) else problem
    return getattr(stated, "linearly_implicit", None)


def switching_nodes(
    tracer: Tracer, problem: Any, functions: Sequence[tuple[Any, int]]
) -> tuple[list[int], list[int], int]:
    """Values of all functions, the number of values of each, and the condition under which any of them raises.

    Parameters
    ----------
    tracer : Tracer
        The problem's tracer; the caller holds its lock.
    problem : object
    functions : sequence of (callable, int)
        Functions ``f(t, y)``, ``f(t, y, yp)``, ``f(t, q, v)`` or ``f(t, y, z)``, with the parameters as an optional
        last argument; and their numbers of arguments.
    """
    names = ("q", "v") if isinstance(problem, MechanicalSystem) else tuple(tracer.sizes)[:2]
    nodes: list[int] = []
    sizes, raises = [], tracer.graph.false
    for function, count in functions:
        symbols = [tracer.symbols(name) for name in names[: min(count, 3) - 1]]
        made = tracer.trace(function, symbols, None) if count == 4 else trace(function, [tracer.t, *symbols], None)
        nodes += made.nodes
        sizes.append(len(made.nodes))
        raises = tracer.graph.either(raises, made.raises)
    return nodes, sizes, raises


def switching_code(problem: Any, functions: Sequence[tuple[Any, int]], original: Callable[..., Any]) -> TracedFunction:
    """All functions as machine code of (t, y, y'), with y the state and y' its derivative.

    Raises Untraceable if impossible. `original` computes the same values in Python.
    """
    code = code_of(problem)
    if code is None:
        raise Untraceable("belongs to a problem that is not entirely machine code", "")
    tracer, mechanism = code.tracer, isinstance(problem, MechanicalSystem)
    with tracer.lock:
        nodes, _, raises = switching_nodes(tracer, problem, functions)
        state, slopes = state_arguments(problem, tracer)
        if mechanism:
            tracer.sizes[slopes] = sum(tracer.sizes[name] for name in state)
        arguments = (*state, slopes)
        if not set(arguments) <= set(tracer.sizes) or tracer.foreign(nodes, arguments) is not None:
            raise Untraceable("depends on variables other than the integrated ones", "")
        made = tracer.code(arguments, np.array(nodes), [(raises, RAISES)])
        return tracer.made("events", made, original)


def state_arguments(problem: Any, tracer: Tracer) -> tuple[tuple[str, ...], str]:
    """Names of the parts of y and y' as arguments of the problem's functions."""
    if isinstance(problem, MechanicalSystem):
        return ("q", "v", "r") if problem.n_r else ("q", "v"), _SLOPES
    return (("y", "z"), "xp") if "z" in tracer.sizes else (("y",), "yp")


def guard_code(problem: Any, functions: Sequence[tuple[Any, int]], original: Callable[..., Any]) -> TracedFunction:
    """All guards as machine code of (t, y, y').

    `functions` are the results of :func:`daedal.symbolic.tracing.switching_functions.switching_nodes`.
    """
    tracer = _tracer(problem)
    with tracer.lock:
        nodes, _, raises = switching_nodes(tracer, problem, functions)
        state, slopes = state_arguments(problem, tracer)
        tracer.sizes[slopes] = sum(tracer.sizes[name] for name in state)
        _check(tracer, nodes, state)
        code = compile_function(
            tracer.graph,
            {name: tracer.sizes[name] for name in (*state, slopes)},
            {"result": np.array(nodes)},
            {} if tracer.layout is None else {NAME: tracer.layout.count},
            [(raises, RAISES)],
        )
        return tracer.made("guards", code, original)


def state_code(problem: Any, name: str, function: Callable[..., Any], count: int) -> tuple[TracedFunction, int]:
    """Machine code of a function of (t, q, v) and optional parameters, and its number of results."""
    tracer = _tracer(problem)
    with tracer.lock:
        symbols = [tracer.symbols("q"), tracer.symbols("v")]
        made = tracer.trace(function, symbols, None) if count == 4 else trace(function, [tracer.t, *symbols], None)
        state, _ = state_arguments(problem, tracer)
        _check(tracer, made.nodes, state)
        code = tracer.code(state, np.array(made.nodes), [(made.raises, RAISES)])
        return tracer.made(name, code, function), len(made.nodes)


def _tracer(problem: Any) -> Tracer:
    code = code_of(problem)
    if code is None:
        raise Untraceable("belongs to a problem that is not entirely machine code", "")
    return code.tracer


def _check(tracer: Tracer, nodes: Sequence[int], state: Sequence[str]):
    if tracer.foreign(nodes, state) is not None:
        raise Untraceable("depends on variables other than the integrated ones", "")


class TracedGuards:
    """Guards of a mode as one program for bounds, and as machine code.

    Parameters
    ----------
    functions : sequence of (callable or None, int)
        ``f(t, y)``, ``f(t, first, second)`` or ``f(t, first, second, params)``, with the number of arguments; None for
        a guard that must not be traced.
    counts : sequence of int
        Number of values of each guard.
    sizes : mapping
        Names and lengths of y and of the vectors that follow it.
    n : int
        Length of the state.
    params : object

    Attributes
    ----------
    program : Enclosure or None
        Bounds of the guards that can be traced; None if there are none, or if bounds would be too expensive.
    is_complete : bool
        Whether all guards can be traced, so that there is machine code.
    """

    def __init__(
        self,
        functions: Sequence[tuple[Callable[..., Any] | None, int]],
        counts: Sequence[int],
        sizes: Mapping[str, int],
        n: int,
        params: Any,
    ):
        self._graph, self._sizes, self._n = Graph(MOST_NODES), dict(sizes), n
        graph = self._graph
        symbols = [scalar_argument(graph, "t"), *(vector_argument(graph, *item) for item in sizes.items())]
        self._layout = None
        if any(count == 4 for _, count in functions):
            self._layout = ParameterLayout(params)
            symbols.append(self._layout.symbols(graph, params)[0])
        self._nodes: list[int] = []
        self._raises, self._checks = graph.false, []
        self._codes: dict[int, MachineFunction] = {}
        self.is_complete = True
        for (function, count), size in zip(functions, counts, strict=True):
            made = None if function is None else self._traced(function, symbols[:count])
            if made is None or len(made.nodes) != size:
                self.is_complete = False
                self._nodes += size * [graph.one]  # constants are not enclosed
                continue
            self._nodes += [graph.number(i) for i in made.nodes]
            self._raises = graph.either(self._raises, made.raises)
            self._checks.append(made.dependencies.check())
        if self._layout is not None:
            self._layout.fixed = {graph.data[i][1]: value for i, value in graph.fixed.items()}
        self._parameters = {} if self._layout is None else {NAME: self._layout.count}
        program = Enclosure(graph, self._nodes, sizes, n, self._parameters)
        self.program = program if program.is_worthwhile else None

    @staticmethod
    def _traced(function: Callable[..., Any], symbols: Sequence[Any]) -> Any:
        try:
            return trace(function, symbols, None)
        except Untraceable:
            return None

    @property
    def read(self) -> Callable[[Any], np.ndarray] | None:
        """Reader of the numbers of the parameters."""
        return None if self._layout is None else self._layout.numbers

    def is_current(self, params: Any) -> bool:
        """Whether external values are unchanged and parameters have the same structure."""
        return all(check() for check in self._checks) and (self._layout is None or self._layout.fits(params))

    def code(self, n: int, original: Callable[..., Any]) -> TracedFunction:
        """Machine code of (t, y, y') for n unknowns, the first of which are the state; `original` is the Python
        version."""
        if n not in self._codes:
            sizes = self._sizes | {"behind": 2 * n - sum(self._sizes.values())}
            results = {"guards": np.array(self._nodes)}
            self._codes[n] = compile_function(self._graph, sizes, results, self._parameters, [(self._raises, RAISES)])
        return TracedFunction("guards", self._codes[n], self._layout, original)
