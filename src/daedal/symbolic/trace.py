"""A user function run on symbols: all paths through its branches, merged."""

from __future__ import annotations

import dis
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any

import numpy as np

from daedal.symbolic.arrays import Array, array_of, nodes_of, plain
from daedal.symbolic.dependencies import NAME as MEMORY
from daedal.symbolic.dependencies import Dependencies, Memory
from daedal.symbolic.expression import Expression, symbol
from daedal.symbolic.graph import Graph
from daedal.symbolic.kinds import FLOAT
from daedal.symbolic.operations import CONDITIONS
from daedal.symbolic.substitution import Substitution
from daedal.symbolic.untraceable import Untraceable, is_of_user, place, refusals, texts

MOST_PATHS = 64
"""Maximum number of paths through a function; functions with more paths are called in Python."""
_MOST_DECISIONS = 200  # maximum number of decisions on a path; a loop with more is assumed not to end


@dataclass(frozen=True)
class Traced:
    """A traced function as nodes of a graph.

    Attributes
    ----------
    graph : Graph
        Graph of the nodes.
    name : str
        Name of the function.
    nodes : tuple of int
        Entries of the result, in C order.
    shape : tuple of int
        Shape of the result.
    raises : int
        The condition under which the function raises or may raise an exception; usually `graph.false`.
    paths : int
        Number of paths merged.
    dependencies : Dependencies
        External values that the function has read.
    """

    graph: Graph
    name: str
    nodes: tuple[int, ...]
    shape: tuple[int, ...]
    raises: int
    paths: int
    dependencies: Dependencies

    @property
    def is_current(self) -> bool:
        """Whether all external values that the function depends on are unchanged since the trace."""
        return self.dependencies.are_unchanged()

    @property
    def array(self) -> np.ndarray:
        """Nodes in the shape of the result."""
        return np.array(self.nodes, dtype=np.int64).reshape(self.shape)

    def __str__(self) -> str:
        n, paths = self.graph.count(self.nodes), f", {self.paths} paths" if self.paths > 1 else ""
        return f"traced, {n} operation{'s' * (n != 1)}{paths}, exact derivatives"


def scalar_argument(graph: Graph, name: str) -> Expression:
    """A scalar argument, such as the time."""
    graph.scalars.add(name)
    return Expression(graph, graph.argument(name, 0), FLOAT)


def vector_argument(graph: Graph, name: str, n: int, known: Sequence[float] | None = None) -> Array:
    """An argument that is a vector of length n.

    The numbers of `known` parameters are used where a function requires them, as in ``int(p[0])``; they are recorded in
    ``graph.fixed``, and other numbers require a new trace.
    """
    entries = [symbol(graph, name, k) for k in range(n)]
    if known is not None:
        graph.known.update({entry.node: float(number) for entry, number in zip(entries, known, strict=True)})
    return array_of(entries) if n else np.empty(0, dtype=object).view(Array)


def parameter_argument(graph: Graph, name: str, params: Any) -> Any:
    """Parameters as passed to a function: a vector of floats as symbols, other objects unchanged."""
    values = np.asarray(params) if isinstance(params, (np.ndarray, list, tuple)) else None
    if values is None or values.ndim != 1 or values.dtype.kind not in "fiu":
        return params
    return vector_argument(graph, name, values.size, values.tolist())


def trace(
    function: Callable[..., Any],
    arguments: Sequence[Any],
    shape: tuple[int, ...] | None = None,
    memory: Memory | None = None,
) -> Traced:
    """Run a user function on symbols.

    Parameters
    ----------
    function : callable
        A plain function, one compiled with Numba, a method, a partial function or a callable object.
    arguments : sequence
        Its arguments: expressions, arrays of them (:func:`vector_argument`), and any other objects, which are constants
        of the trace. At least one must be symbolic.
    shape : tuple of int, optional
        Required shape of the result.
    memory : Memory, optional
        Records external changes made by the function, which are refused otherwise.

    Raises
    ------
    Untraceable
        With the reason and the line of the user code.

    Examples
    --------
    >>> import numpy as np
    >>> from daedal.symbolic import Graph, scalar_argument, trace, vector_argument
    >>> graph = Graph()
    >>> t, q = scalar_argument(graph, "t"), vector_argument(graph, "q", 2)
    >>> print(trace(lambda t, q: np.array([q @ q - 1.0]), (t, q)))
    traced, 4 operations, exact derivatives
    """
    graph = _graph_of(arguments)
    dependencies = Dependencies()
    try:
        paths = _explore(graph, function, arguments, dependencies, memory)
    except _AsksTruths:  # comparisons then give True or False, each on a separate path
        graph.asks_truths = True
        try:
            paths = _explore(graph, function, arguments, dependencies, memory)
        finally:
            graph.asks_truths = False
    shapes = {values.shape for _, values, _ in paths if values is not None}
    if not shapes:
        raise Untraceable("raises an exception on every path", "")
    if len(shapes) > 1:
        raise Untraceable(f"returns results of different shapes, {' and '.join(map(str, sorted(shapes)))}", "")
    [found] = shapes
    if shape is not None and found != shape:
        raise Untraceable(f"returns an array of shape {found}; expected {shape}", "")
    size = int(np.prod(found))
    leaves = [(d, [*nodes_of(graph, v), r] if v is not None else None) for d, v, r in paths]
    joined = _join(graph, leaves, 0) or []
    name = getattr(function, "__name__", type(function).__name__)
    return Traced(graph, name, tuple(joined[:size]), found, joined[size], len(paths), dependencies)


def _graph_of(arguments: Sequence[Any]) -> Graph:
    for value in arguments:
        entries = value.flat if isinstance(value, np.ndarray) and value.dtype == object else (value,)
        for entry in entries:
            if type(entry) is Expression:
                return entry.graph
    raise ValueError("none of the arguments is symbolic")


def remembers(function: Callable[..., Any], arguments: Sequence[Any]) -> bool:
    """Whether the result of a function depends on external state that it changes; True if undecidable."""
    graph = _graph_of(arguments)
    memory = Memory(graph)
    try:
        for _ in range(_MOST_ROUNDS):
            known = len(memory.changed)
            found = trace(function, arguments, None, memory)
            if known and known == len(memory.changed):
                needed = graph.needed([*found.nodes, found.raises])
                return any(graph.operations[i] == "argument" and graph.data[i][0] == MEMORY for i in needed)
    except Untraceable:
        return True
    return True


_MOST_ROUNDS = 4  # maximum number of traces that detect which external places a function changes


class _AsksTruths(Untraceable):
    """A function compares by identity with True or False, which requires real truth values."""


# --- paths ------------------------------------------------------------------------------------------------------------

_Decisions = tuple[tuple[int, bool], ...]
_Path = tuple[_Decisions, Any, int]


def _explore(
    graph: Graph, function: Callable[..., Any], arguments: Sequence[Any], dependencies, memory: Memory | None
) -> list[_Path]:
    """All paths through the function, as (decisions, result or None if it raises, condition under which it raises)."""
    waiting: list[_Decisions] = [()]
    paths: list[_Path] = []
    while waiting:
        prefix = waiting.pop()
        taken: dict[int, bool] = {}

        def decide(condition: int, prefix=prefix, taken=taken) -> bool:
            if condition not in taken:
                if len(taken) >= _MOST_DECISIONS or len(paths) + len(waiting) + 1 >= MOST_PATHS:
                    raise Untraceable(
                        f"branches on {graph.origin(condition)}, with more than {MOST_PATHS} paths in all",
                        remedy="use np.where, or an event",
                        jumps=True,
                    )
                graph.note_site(condition)
                if len(taken) < len(prefix):
                    taken[condition] = prefix[len(taken)][1]
                else:
                    waiting.append((*taken.items(), (condition, False)))
                    taken[condition] = True
            return taken[condition]

        values, raises = _run(graph, function, arguments, decide, dependencies, memory)
        paths.append((tuple(taken.items()), values, raises))
    return paths


def _run(
    graph: Graph, function, arguments, decide, dependencies: Dependencies, memory: Memory | None
) -> tuple[Any, int]:
    """Run the function once with given decisions."""
    substitution = Substitution(Dependencies(), memory)  # independent of settings of the caller
    graph.hazards, graph.decide, usual = [], decide, graph.decide
    refused: list[Untraceable] = []
    written: list[tuple[str, str, str, str, bool]] = []
    token, other_token = refusals.set(refused), texts.set(written)
    given = [plain(a).copy().view(Array) if isinstance(a, Array) else substitution.of(a) for a in arguments]
    substitution.dependencies = dependencies
    try:
        result = substitution.of(function)(*given)
        values = None if result is None else _as_values(result)
    except Untraceable:
        raise
    except BaseException as error:
        if not refused and _is_raised_by_user(error.__traceback__):
            return None, graph.true
        if not isinstance(error, Exception):
            raise
        raise (refused[0] if refused else _said(error)) from error
    finally:
        graph.decide = usual
        refusals.reset(token)
        texts.reset(other_token)
    if refused:  # the refusal was raised and caught by the function
        raise refused[0]
    if written:
        raise Untraceable(*written[0])
    for argument, passed in zip(arguments, given):
        if isinstance(argument, Array) and not all(a is b for a, b in zip(argument.flat, passed.flat)):
            raise Untraceable("changes its arguments", "")
    substitution.check_unchanged()
    if substitution.by_identity and not graph.asks_truths and any(o in CONDITIONS for o in graph.operations):
        raise _AsksTruths("tests by 'is' or 'case' whether a value is True", substitution.by_identity)
    if values is None:
        raise Untraceable("returns None", "")
    raises = graph.false
    for i in graph.hazards:
        raises = graph.either(raises, graph.opposite(graph.is_finite(i)))
    return values, raises


def _as_values(result: Any) -> np.ndarray:
    """The result as an object array, with the shape that NumPy would give it."""
    if hasattr(result, "toarray"):
        result = result.toarray()
    values = np.asarray(plain(array_of(result) if isinstance(result, (list, tuple)) else result), dtype=object)
    if any(isinstance(entry, (list, tuple, np.ndarray)) for entry in values.flat):
        raise Untraceable("returns rows of different lengths", "")
    return values


def _is_raised_by_user(traceback: TracebackType | None) -> bool:
    """Whether an exception comes from a ``raise`` in user code, for example for arguments out of bounds."""
    while traceback is not None and traceback.tb_next is not None:
        traceback = traceback.tb_next
    if traceback is None:
        return False
    code = traceback.tb_frame.f_code
    at = {instruction.offset: instruction.opname for instruction in dis.get_instructions(code)}
    return is_of_user(code) and at.get(traceback.tb_lasti) == "RAISE_VARARGS"


def _said(error: Exception) -> Untraceable:
    """Convert an exception that is not a refusal to a reason, with the last line of user code."""
    traceback, site = error.__traceback__, ""
    while traceback is not None:
        code = traceback.tb_frame.f_code
        if is_of_user(code):
            site = place(code.co_filename, traceback.tb_lineno)
        traceback = traceback.tb_next
    text = " ".join(str(error).split())[:200]
    return Untraceable(
        f"applies an unsupported operation to a value that is not known ({type(error).__name__}: {text})", site
    )


def _join(graph: Graph, leaves: list[tuple[_Decisions, list[int] | None]], depth: int) -> list[int] | None:
    """Merge the results of all paths with a common beginning, by the condition at which they separated."""
    if len(leaves) == 1 and len(leaves[0][0]) == depth:
        return leaves[0][1]
    condition = leaves[0][0][depth][0]
    sides = [
        _join(graph, [leaf for leaf in leaves if leaf[0][depth] == (condition, answer)], depth + 1)
        for answer in (True, False)
    ]
    holds, fails = sides
    if holds is None or fails is None:
        kept, raised = (fails, condition) if holds is None else (holds, graph.opposite(condition))
        if kept is None:
            return None
        return [*kept[:-1], graph.either(raised, kept[-1])]
    raises = graph.either(graph.both(condition, holds[-1]), graph.both(graph.opposite(condition), fails[-1]))
    return [*(graph.where(condition, a, b) for a, b in zip(holds[:-1], fails[:-1])), raises]
