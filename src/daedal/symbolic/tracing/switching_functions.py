"""Switching functions of the user's on the graph of a traced problem, and as machine code."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from daedal.problems import MechanicalSystem, SemiExplicitDAE
from daedal.symbolic import Untraceable, trace
from daedal.symbolic.machine import RAISES
from daedal.symbolic.tracing.function import TracedFunction
from daedal.symbolic.tracing.tracer import Tracer

_SLOPES = "slopes"  # the name of y' of a mechanism, which switching functions do not have


def code_of(problem: Any) -> Any:
    """Straight-line code of a mechanism, or what linearly implicit methods need; None where there is none."""
    if isinstance(problem, MechanicalSystem):
        return problem.straight_line
    stated = problem.implicit() if isinstance(problem, SemiExplicitDAE) else problem
    return getattr(stated, "linearly_implicit", None)


def switching_nodes(
    tracer: Tracer, problem: Any, functions: Sequence[tuple[Any, int]]
) -> tuple[list[int], list[int], int]:
    """The values of all functions, how many each of them has, and where one raises.

    Parameters
    ----------
    tracer : Tracer
        Of the problem; the caller holds its lock.
    problem : object
    functions : sequence of (callable, int)
        Functions ``f(t, y)``, ``f(t, y, yp)``, ``f(t, q, v)`` or ``f(t, y, z)``, with the parameters last if there is
        one more argument; and how many arguments each of them takes.
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

    Raises Untraceable where that is not possible. `original` computes the same in Python.
    """
    code = code_of(problem)
    if code is None:
        raise Untraceable("belongs to a problem that is not machine code as a whole", "")
    tracer, mechanism = code.tracer, isinstance(problem, MechanicalSystem)
    with tracer.lock:
        nodes, _, raises = switching_nodes(tracer, problem, functions)
        state, slopes = state_arguments(problem, tracer)
        if mechanism:
            tracer.sizes[slopes] = sum(tracer.sizes[name] for name in state)
        arguments = (*state, slopes)
        if not set(arguments) <= set(tracer.sizes) or tracer.foreign(nodes, arguments) is not None:
            raise Untraceable("depends on other variables than those that are integrated", "")
        made = tracer.code(arguments, np.array(nodes), [(raises, RAISES)])
        return tracer.made("events", made, original)


def state_arguments(problem: Any, tracer: Tracer) -> tuple[tuple[str, ...], str]:
    """The parts of y, and the name of y', as the functions of a problem have them for arguments."""
    if isinstance(problem, MechanicalSystem):
        return ("q", "v", "r") if problem.n_r else ("q", "v"), _SLOPES
    return (("y", "z"), "xp") if "z" in tracer.sizes else (("y",), "yp")
