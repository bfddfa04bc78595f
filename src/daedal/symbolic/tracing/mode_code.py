"""Machine code for guards, decisions and resets of a mode of a mechanism, on the graph of its equations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from daedal.symbolic import Untraceable, trace
from daedal.symbolic.machine import RAISES, compile_function
from daedal.symbolic.tracing.function import TracedFunction
from daedal.symbolic.tracing.parameters import NAME
from daedal.symbolic.tracing.switching_functions import code_of, state_arguments, switching_nodes
from daedal.symbolic.tracing.tracer import Tracer


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
