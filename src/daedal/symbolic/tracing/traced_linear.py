"""Linear problems: coefficients that are functions of time, and their exact derivatives."""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np

from daedal.problems import HessenbergDAE, LinearDAE
from daedal.problems.coefficients import coefficient_at
from daedal.symbolic import Traced
from daedal.symbolic.derivative import directional
from daedal.symbolic.tracing.tracer import TracedProblem, Tracer


def is_ready(problem: HessenbergDAE | LinearDAE) -> bool:
    """Whether nothing depends on time, or all derivatives are given and may be called separately."""
    return not (_on_time(problem) if isinstance(problem, HessenbergDAE) else _missing(problem))


def traced_linear(problem: HessenbergDAE | LinearDAE, *, always: bool = False) -> TracedProblem:
    """The problem with missing derivatives added; a Hessenberg problem evaluates all coefficients in one call."""
    tracer, result = Tracer(problem, {}, always=always), copy(problem)
    missing = _missing(problem)
    names = _on_time(problem) if isinstance(problem, HessenbergDAE) else list(missing)
    traces = {name: _coefficient(tracer, problem, name) for name in names}
    count = problem.order if isinstance(problem, HessenbergDAE) else 0
    for name, derivative in missing.items():
        made = _derivatives(tracer, derivative, traces[name], problem.shapes[name], count)
        if made is not None:
            object.__setattr__(result, derivative, made)
    if isinstance(problem, HessenbergDAE) and all(traces.values()) and _gather(tracer, problem, result, traces):
        return tracer.finished(result)
    for name in (name for name, traced in traces.items() if traced is not None):
        tracer.result.words.pop(name)  # coefficients without machine code are evaluated in Python
    return tracer.finished(result)


def _missing(problem: HessenbergDAE | LinearDAE) -> dict[str, str]:
    """Time-dependent coefficients without a derivative, each with the name of the derivative."""
    pairs = {"C": "C_derivatives", "r": "r_derivatives"}
    if isinstance(problem, LinearDAE):
        pairs = {name: f"{name}_derivative" for name in ("C", "D", "q")}
    return {
        name: derivative
        for name, derivative in pairs.items()
        if callable(getattr(problem, name)) and getattr(problem, derivative) is None
    }


def _on_time(problem: HessenbergDAE) -> list[str]:
    """Functions of time: coefficients and given derivatives."""
    return [name for name in (*problem.shapes, "C_derivatives", "r_derivatives") if callable(getattr(problem, name))]


def _shape(problem: HessenbergDAE | LinearDAE, name: str) -> tuple[int, ...]:
    if name in problem.shapes:
        return problem.shapes[name]
    assert isinstance(problem, HessenbergDAE)
    return problem.order, *problem.shapes[name[0]]


def _coefficient(tracer: Tracer, problem: HessenbergDAE | LinearDAE, name: str) -> Traced | None:
    """A coefficient on the graph; None if it cannot be traced or has an invalid shape."""
    traced = tracer.function(name, getattr(problem, name), (), None)
    wanted = [k for k in _shape(problem, name) if k != 1]
    return traced if traced is not None and [k for k in traced.shape if k != 1] == wanted else None


def _rates(tracer: Tracer, nodes: list[int], count: int) -> list[list[int]]:
    """Time derivatives 1 to `count`."""
    rates = [nodes]
    for _ in range(count):
        rates.append(directional(tracer.graph, rates[-1], {tracer.t.node: tracer.graph.one}))
    return rates[1:]


def _derivatives(tracer: Tracer, name: str, traced: Traced | None, shape: tuple[int, ...], count: int):
    """Derivatives 1 to `count` in sequence; for `count` = 0 only the first, in the shape of the coefficient."""
    if traced is None:
        return None

    def nodes():
        rates = np.array(_rates(tracer, list(traced.nodes), max(count, 1)))
        return rates.reshape(count, *shape) if count else rates.reshape(shape)

    return tracer.derivative(name, traced, (), nodes, ())


def _gather(tracer: Tracer, problem: HessenbergDAE, result: Any, traces: dict[str, Any]) -> bool:
    """Convert ``coefficients(t)`` of `result` to machine code; False if there are too many operations."""
    graph, entries = tracer.graph, []
    for name in ("A", "B", "q", "C", "r"):
        if name in traces:
            nodes = list(traces[name].nodes)
        else:
            constant = coefficient_at(name, getattr(problem, name), 0.0, problem.shapes[name])
            nodes = [graph.constant(float(x)) for x in constant.ravel()]
        entries += nodes
        if f"{name}_derivatives" in traces:
            entries += traces[f"{name}_derivatives"].nodes
        elif name in ("C", "r"):
            entries += [i for rate in _rates(tracer, nodes, problem.order) for i in rate]
    if tracer.stacked("coefficients", problem.coefficients, (), entries, list(traces.values())) is None:
        return False
    machine = tracer.combined["coefficients"]

    def coefficients(t: float) -> np.ndarray:
        status, values = machine.evaluate(t)
        return values if status == 0 else problem.coefficients(t)

    object.__setattr__(result, "coefficients", coefficients)
    return True
