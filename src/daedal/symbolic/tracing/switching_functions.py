"""User-defined switching functions on the graph of a traced problem, and as machine code."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from daedal.problems import MechanicalSystem, SemiExplicitDAE
from daedal.symbolic import Untraceable, trace
from daedal.symbolic.machine import RAISES
from daedal.symbolic.tracing.function import TracedFunction
from daedal.symbolic.tracing.tracer import Tracer

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
