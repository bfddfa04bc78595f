"""Guards of a mode on one graph: bounds for those that can be traced, and machine code if all can be traced."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from daedal.symbolic import Graph, Untraceable, scalar_argument, trace, vector_argument
from daedal.symbolic.machine import RAISES, MachineFunction, compile_function
from daedal.symbolic.tracing.enclosures import MOST_NODES, Enclosure
from daedal.symbolic.tracing.function import TracedFunction
from daedal.symbolic.tracing.parameters import NAME, ParameterLayout


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
