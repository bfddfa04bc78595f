"""The functions of one problem on one graph: traced, differentiated and compiled individually."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from threading import Lock
from typing import Any

import numpy as np

from daedal.kernels.functions import is_compiled
from daedal.problems import SemiExplicitDAE
from daedal.problems.compile import with_numbers
from daedal.problems.semi_explicit import adopt_stacked
from daedal.symbolic import Graph, Traced, Untraceable, scalar_argument, trace, vector_argument
from daedal.symbolic.dependencies import Dependencies
from daedal.symbolic.graph import MOST_NODES
from daedal.symbolic.graph_functions import GraphFunction, inlined
from daedal.symbolic.machine import RAISES, MachineFunction, compile_function, may_raise
from daedal.symbolic.modes import NAME as MODES
from daedal.symbolic.modes import Modes
from daedal.symbolic.substitution import DRAWN
from daedal.symbolic.switches import switches
from daedal.symbolic.trace import remembers
from daedal.symbolic.tracing.function import (
    ModalFunction,
    ModalLayout,
    ModalVector,
    SwitchedParams,
    TracedFunction,
    as_stated,
)
from daedal.symbolic.tracing.parameters import NAME, ParameterLayout

MOST_OPERATIONS = 20_000
"""Number of operations of a problem, derivatives included, above which functions are called in Python by default,
unless they are Python loops.

An operation costs 10 us for every new problem object and 40 us of code generation once: together one second at this
limit. A plain loop over 1000 grid points becomes hundreds of times faster; vector operations of NumPy gain nothing.
"""
FOR_EACH_READ = 50
"""Additional operations allowed for each array entry that is read individually, in a Python loop."""
MOST_ARGUMENTS = 100_000
"""Number of argument entries above which problems are not traced."""
STATE = ("q", "v", "r", "y", "z", "yp")
"""Arguments on which switching functions of a run may depend, in addition to time and parameters."""


@dataclass(eq=False)
class TracedProblem:
    """A problem whose functions are machine code if possible.

    Attributes
    ----------
    problem : object
        The problem with machine code, of the same class as the original.
    words : dict
        Description of how each function is evaluated.
    functions : dict
        User functions compiled to machine code.
    derivatives : dict
        Derivatives as machine code.
    refused : dict
        Functions that cannot be traced, with the reason.
    arguments : dict
        For each function the names of its arguments after the time, without the parameters.
    exact_matrix : callable, optional
        If the user gave the Newton matrix: ``exact_matrix(values)``, the exact one at values of all arguments.
    orders : callable, optional
        If the residual was traced: ``orders()``, for each equation its unknowns with their highest derivative.
    structure : dict
        Sparsity or bandwidth of a residual with too many operations for machine code.
    n_switches : int
        Upper bound of the number of switching functions, counted per function.
    modes : Modes or None
        The switches set by data; None if all functions are as written.
    tracer : Tracer or None
        The tracer if `modes` is not None, for further problems built from its nodes.
    """

    problem: Any
    layout: ParameterLayout | None
    dependencies: Dependencies = field(default_factory=Dependencies)
    words: dict[str, str] = field(default_factory=dict)
    functions: dict[str, TracedFunction] = field(default_factory=dict)
    derivatives: dict[str, TracedFunction] = field(default_factory=dict)
    refused: dict[str, Untraceable] = field(default_factory=dict)
    arguments: dict[str, tuple[str, ...]] = field(default_factory=dict)
    exact_matrix: Callable[[Mapping[str, Any]], np.ndarray] | None = None
    orders: Callable[[], list[dict[int, int]]] | None = None
    structure: dict[str, Any] = field(default_factory=dict)
    n_switches: int = 0
    modes: Modes | None = None
    tracer: Tracer | None = None

    def is_current(self, params: Any) -> bool:
        """Whether external values are unchanged and parameters have the same structure."""
        if self.layout is not None and not self.layout.fits(params):
            return False
        return self._holds()

    @cached_property
    def plain(self) -> dict[str, TracedFunction]:
        """The traced functions whose originals are plain Python."""
        return {name: f for name, f in self.functions.items() if not is_compiled(f.original)}

    @cached_property
    def _holds(self) -> Callable[[], bool]:
        return self.dependencies.check()


class Tracer:
    """Traces the functions of a problem with given arguments.

    Parameters
    ----------
    problem : object
        Problem to trace.
    sizes : mapping
        Names and lengths of the vector arguments of functions.
    scalars : sequence of str
        Names of the scalar arguments.
    always : bool
        Whether to allow more operations than are worthwhile.
    follow : int
        Maximum number of switches set by data; 0 leaves all functions as written.
    """

    def __init__(
        self,
        problem: Any,
        sizes: Mapping[str, int],
        scalars: Sequence[str] = (),
        *,
        always: bool = False,
        follow: int = 0,
    ):
        # graph functions exist only as machine code, so the usual limit does not apply
        graphs = any(isinstance(value, GraphFunction) for value in vars(problem).values())
        most = MOST_NODES if always or graphs else MOST_OPERATIONS
        if sum(sizes.values()) > max(most, MOST_ARGUMENTS):
            raise Untraceable(f"needs more than {most} operations", "")
        self.graph = Graph()
        self.sizes = {**sizes, **dict.fromkeys(scalars, 1)}
        self.t = scalar_argument(self.graph, "t")
        self._symbols: dict[str, Any] = {name: vector_argument(self.graph, name, n) for name, n in sizes.items()}
        self._symbols |= {name: scalar_argument(self.graph, name) for name in scalars}
        params = problem.params
        self.layout: Any = None
        if isinstance(params, SwitchedParams):
            self.layout = ModalVector(_modal_layout(problem))
        elif params is not None:
            self.layout = ParameterLayout(params, any(map(_takes_vector, vars(problem).values())))
        self._params: tuple[Any, ...] = () if self.layout is None else self.layout.symbols(self.graph, params)
        self.graph.most_nodes, self.graph.for_each_read, self.graph.n_arguments = most, FOR_EACH_READ, len(self.graph)
        self.modes = Modes(self.graph, ("t", *STATE), (NAME,)) if follow else None
        self.modal = ModalLayout(self.layout, follow + 1) if follow else None
        self.traces: dict[str, Traced] = {}
        self.combined: dict[str, TracedFunction] = {}
        self._wide: dict[str, MachineFunction | None] = {}
        self.lock = Lock()  # for objects created on demand: a graph is not thread-safe
        self.result = TracedProblem(problem, self.layout)
        self.asks_user = False  # whether user functions were run, which may have external dependencies

    def nodes(self, name: str) -> list[int]:
        """Nodes of an argument."""
        return [self.graph.argument(name, k) for k in range(self.sizes[name])]

    def function(
        self, name: str, function: Any, arguments: Sequence[str], shape: tuple[int, ...] | None
    ) -> Traced | None:
        """Trace a user function and store its machine code; None if impossible."""
        if not callable(function):
            return None
        if isinstance(function, TracedFunction):
            self.result.words[name] = f"traced, {_count(function.operations)}"
            return None
        self.result.arguments[name] = tuple(arguments)
        try:
            traced = replace(self.trace(function, [self._symbols[name] for name in arguments], shape), name=name)
            found = len(switches(self.graph, traced.nodes))
            if self.modes is not None:
                traced = replace(traced, nodes=tuple(self._followed(traced.nodes)))
            raises = may_raise(self.graph, traced.nodes, traced.raises)
            code = self.code(arguments, traced.array, [(raises, RAISES)])
        except Untraceable as reason:
            drawn = reason.memory in DRAWN or "random" in reason.reason
            if reason.memory and not drawn and not self._remembers(function, arguments):
                reason.memory = ""
            self._refuse(name, function, reason)
            return None
        self.result.dependencies.add(traced.dependencies)
        self.result.n_switches += found
        self.traces[name] = traced
        made = self.made(name, code, function, is_smooth=found == 0)
        made.trace = traced, {name: self.sizes[name] for name in arguments}
        made.in_lanes = partial(self._in_lanes, name, tuple(arguments), traced.array, raises)
        self.result.functions[name] = made
        self.result.words[name] = f"traced, {_count(code.operations)}"
        return traced

    def _followed(self, plain: Sequence[int]) -> list[int]:
        """Nodes on the branches selected by the modes; unmodified if a branch is undefined beyond its end, as sqrt(y)
        for y < 0.
        """
        graph = self.graph
        assert self.modes is not None
        moded = self.modes.nodes(plain)
        return [
            a if a == b or graph.regular[a] else graph.where(graph.is_finite(a), a, b)
            for a, b in zip(moded, plain, strict=True)
        ]

    def stacked(self, name: str, function: Callable, arguments: Sequence[str], nodes, parts: Sequence[Traced]):
        """Compile nodes built from several functions into one function, whose Python version is `function`."""
        raises = self.graph.false
        for part in parts:
            raises = self.graph.either(raises, part.raises)
        try:
            array = np.array(nodes)
            flat = array.ravel().tolist()
            code = self.code(arguments, array, [(may_raise(self.graph, flat, raises), RAISES)])
        except Untraceable as reason:
            self.result.refused[name] = reason.forgetting()
            return None
        traced = Traced(self.graph, name, tuple(flat), array.shape, raises, 1, Dependencies())
        self.combined[name] = self.made(name, code, function)
        self.combined[name].trace = traced, {name: self.sizes[name] for name in arguments}
        return traced

    def derivative(
        self,
        name: str,
        of: Traced,
        arguments: Sequence[str],
        nodes: Callable[[], Any],
        shared: Sequence[int | np.ndarray],
        original: Callable[..., Any] | None = None,
    ) -> TracedFunction | None:
        """Machine code for a derivative of a traced function, in the form of ``nodes()``.

        `shared` selects the arguments of the function itself, if it must be called; `original` is called if it was
        built from several functions. If a derivative needs too many operations, they do not count towards the limit for
        later functions, such as switching functions.
        """
        before = len(self.graph)
        try:
            array = np.asarray(nodes(), dtype=np.int64)
            self._check_arguments(array, arguments)
            raises = self._raises(of, array, arguments)
            code = self.code(arguments, array, [(raises, RAISES)], skip_zeros=True)
        except Untraceable as reason:
            self.result.refused[name] = reason.forgetting()
            self.graph.most_nodes += len(self.graph) - before
            return None
        if original is None:
            original = (self.result.functions | self.combined)[of.name].original
        regular = all(self.graph.regular[i] for i in array.flat)
        made = self.made(name, code, original, arguments=tuple(shared), is_regular=regular)
        self.result.derivatives[name] = made
        self.result.arguments[name] = tuple(arguments)
        self.result.words[name] = f"exact derivative, {_count(code.operations)}"
        return made

    def finished(self, problem: Any) -> TracedProblem:
        """The result, with the problem built from the traced functions."""
        if self.layout is not None:
            graph, layout = self.graph, self.layout
            layout.fixed = {graph.data[i][1]: value for i, value in graph.fixed.items() if graph.data[i][0] == NAME}
        self.result.problem = problem
        if self.modes is not None and self.modal is not None:
            self.result.modes, self.result.tracer = self.modes, self
            moded = SwitchedParams(problem.params, self.modal.count)
            self.result.problem = with_numbers(problem, moded)
            if isinstance(problem, SemiExplicitDAE):
                adopt_stacked(self.result.problem, with_numbers(problem.implicit(), moded))
        return self.result

    def made(self, name: str, code, function, **options) -> TracedFunction:
        """The callable for kernels: the code, with the parameters and, if switches are set by data, their modes."""
        if self.modal is not None:
            return ModalFunction(name, code, self.modal, function, **options)
        return TracedFunction(name, code, self.layout, function, **options)

    def symbols(self, name: str) -> Any:
        """Symbols of an argument as passed to functions: a scalar or a vector."""
        return self._symbols[name]

    def _remembers(self, function, arguments: Sequence[str]) -> bool:
        last = self._params[1:] if is_compiled(function) else self._params[:1]
        return remembers(function, [self.t, *(self._symbols[name] for name in arguments), *last])

    def trace(self, function, symbols: Sequence[Any], shape: tuple[int, ...] | None) -> Traced:
        """Run a function on symbols, with time before and parameters after them; raises Untraceable if impossible."""
        if isinstance(function, TracedFunction) and function.trace is not None:
            copied = self._copied(*function.trace, symbols, shape)
            if copied is not None:
                return copied
        if isinstance(self.layout, ModalVector):
            raise Untraceable("has switches that are set by data", "")
        self.asks_user = True
        function = as_stated(function)
        last = self._params[1:] if is_compiled(function) else self._params[:1]
        return trace(function, [self.t, *symbols, *last], shape)

    def _copied(
        self, known: Traced, sizes: Mapping[str, int], symbols: Sequence[Any], shape: tuple[int, ...] | None
    ) -> Traced | None:
        """Nodes of another trace, copied to this graph; None if arguments, parameters or shape differ."""
        entries = [x.node for vector in symbols for x in (vector if np.ndim(vector) else [vector])]
        places = [(name, k) for name, size in sizes.items() for k in range(size)]
        given = {("t", 0): self.t.node, **dict(zip(places, entries, strict=False))}
        parameters = [x.node for x in self._params[1]] if self.layout is not None else []
        if isinstance(self.layout, ModalVector):
            given |= self.layout.arguments(parameters)
        else:
            given |= {(NAME, k): node for k, node in enumerate(parameters)}
        source, wanted = known.graph, [*known.nodes, known.raises]
        read = {source.data[i] for i in source.needed(wanted) if source.operations[i] == "argument"}
        if len(places) != len(entries) or not read <= set(given) or (shape is not None and shape != known.shape):
            return None
        if any(source.data[i][0] == NAME for i in source.fixed):
            return None  # with other numbers, the function may take other branches
        *nodes, raises = inlined(source, wanted, self.graph, given)
        return replace(known, graph=self.graph, nodes=tuple(nodes), raises=raises)

    def code(
        self,
        arguments: Sequence[str],
        nodes: np.ndarray,
        statuses: Sequence[tuple[int, int]],
        *,
        skip_zeros: bool = False,
        quick: bool = False,
        lanes: bool = False,
    ):
        """Machine code for nodes, returning the status of the first condition that holds.

        Options are those of :func:`daedal.symbolic.machine.compile_function`.
        """
        written = np.count_nonzero(nodes != self.graph.zero) if skip_zeros else nodes.size
        if written > self.graph.most:  # for example a dense matrix: every entry is an instruction
            raise Untraceable(f"has {written} results, more than {self.graph.most}", "")
        sizes = {name: self.sizes[name] for name in arguments}
        parameters = {} if self.layout is None else {NAME: self.layout.count}
        parameters = parameters if self.modal is None else self.modal.sizes
        return compile_function(
            self.graph, sizes, {"result": nodes}, parameters, statuses, skip_zeros=skip_zeros, quick=quick, lanes=lanes
        )

    def _in_lanes(self, name: str, arguments: tuple[str, ...], nodes: np.ndarray, raises: int):
        """The code of a function with eight members in lanes, created once; None if unavailable."""
        with self.lock:
            if name not in self._wide:
                try:
                    self._wide[name] = self.code(arguments, nodes, [(raises, RAISES)], lanes=True)
                except Untraceable:
                    self._wide[name] = None
            return self._wide[name]

    def _raises(self, of: Traced, nodes: np.ndarray, arguments: Sequence[str]) -> int:
        """Condition for falling back to Python for a derivative: the function is not finite, or, if that depends on
        other arguments (velocities, in which it is linear), the derivative is not."""
        raises = may_raise(self.graph, of.nodes, of.raises)
        if self.foreign([raises], arguments) is not None:
            raises = may_raise(self.graph, nodes.ravel().tolist(), of.raises)
            self._check_arguments(np.array([raises]), arguments)
        return raises

    def _check_arguments(self, nodes: np.ndarray, arguments: Sequence[str]):
        """Raise if a derivative depends on quantities other than its arguments."""
        other = self.foreign(nodes.ravel().tolist(), arguments)
        if other is not None:
            raise Untraceable(f"has a derivative that depends on {other}", "")

    def foreign(self, nodes: Sequence[int], arguments: Sequence[str]) -> str | None:
        """An argument on which nodes depend, other than the given ones, time and parameters; None if there is none."""
        allowed = {"t", NAME, MODES, *arguments}
        for i in self.graph.needed(nodes):
            if self.graph.operations[i] == "argument" and self.graph.data[i][0] not in allowed:
                return self.graph.data[i][0]
        return None

    def _refuse(self, name: str, function, reason: Untraceable):
        kind = "Numba" if hasattr(function, "py_func") else "Python"
        self.result.refused[name] = reason.forgetting()
        self.result.words[name] = f"{kind}: {str(reason).split('. Remedy')[0]}"


def _modal_layout(problem: Any) -> ModalLayout:
    """Layout of parameters and modes for the functions of a problem."""
    found = next((f.layout for f in vars(problem).values() if isinstance(f, ModalFunction)), None)
    if found is None:
        raise Untraceable("has switches that are set by data", "")
    return found


def _takes_vector(function: Any) -> bool:
    """Whether a function receives its parameters as one float vector; derivatives may have either form."""
    stated = as_stated(function)
    return is_compiled(stated) and not isinstance(stated, TracedFunction)


def _count(operations: int) -> str:
    return f"{operations} operation{'s' * (operations != 1)}"
