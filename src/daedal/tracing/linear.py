"""Linear problems: exact derivatives of coefficients that are functions of time."""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np

from daedal.problems import HessenbergDAE, LinearDAE
from daedal.symbolic.derivative import directional
from daedal.tracing.tracer import TracedProblem, Tracer


def is_ready(problem: HessenbergDAE | LinearDAE) -> bool:
    """Whether no derivative of a coefficient is missing."""
    return not _missing(problem)


def traced_linear(problem: HessenbergDAE | LinearDAE, *, always: bool = False) -> TracedProblem:
    """The problem with the derivatives that were not given; coefficients are called as they are."""
    tracer, result = Tracer(problem, {}, always=always), copy(problem)
    for name, derivative in _missing(problem).items():
        count = problem.order if isinstance(problem, HessenbergDAE) else 0
        made = _derivatives(tracer, name, derivative, getattr(problem, name), problem.shapes[name], count)
        if made is not None:
            tracer.result.words.pop(name)  # coefficients are gathered in Python
            object.__setattr__(result, derivative, made)
    return tracer.finished(result)


def _missing(problem: HessenbergDAE | LinearDAE) -> dict[str, str]:
    """The coefficients that depend on time and have no derivative, each with the name of the latter."""
    pairs = {"C": "C_derivatives", "r": "r_derivatives"}
    if isinstance(problem, LinearDAE):
        pairs = {name: f"{name}_derivative" for name in ("C", "D", "q")}
    return {
        name: derivative
        for name, derivative in pairs.items()
        if callable(getattr(problem, name)) and getattr(problem, derivative) is None
    }


def _derivatives(tracer: Tracer, name: str, derivative: str, function: Any, shape: tuple[int, ...], count: int):
    """Derivatives 1 to `count`, one after the other; for 0 the first one, in the shape of the coefficient."""
    traced = tracer.function(name, function, (), None)
    if traced is None or len(traced.nodes) != int(np.prod(shape)):
        return None
    graph, along = tracer.graph, {tracer.t.node: tracer.graph.one}

    def nodes():
        rates, values = [], list(traced.nodes)
        for _ in range(max(count, 1)):
            values = directional(graph, values, along)
            rates.append(np.array(values).reshape(shape))
        return np.array(rates) if count else rates[0]

    return tracer.derivative(derivative, traced, (), nodes, ())
