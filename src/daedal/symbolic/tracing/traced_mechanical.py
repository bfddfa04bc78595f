"""Mechanical systems as machine code: the given functions, and G, g_t, gamma and others if they are not given."""

from __future__ import annotations

from copy import copy

import numpy as np

from daedal.kernels.functions import CodedFunction
from daedal.problems import MechanicalSystem
from daedal.problems.mechanical import FUNCTIONS
from daedal.symbolic import Traced
from daedal.symbolic.derivative import acceleration_bias, directional, jacobian
from daedal.symbolic.tracing.straight_line_code import straight_line
from daedal.symbolic.tracing.traced_linearisation import Linearisation
from daedal.symbolic.tracing.tracer import TracedProblem, Tracer


def is_ready(system: MechanicalSystem) -> bool:
    """Whether all functions are already machine code, so that tracing has no benefit."""
    given = [getattr(system, name) for name in FUNCTIONS]
    return all(isinstance(f, CodedFunction) for f in given if callable(f))


def traced_system(system: MechanicalSystem, *, always: bool = False, follow: int = 0) -> TracedProblem:
    """The system with each of its functions traced."""
    n, further = system.n_q, {"r": system.n_r, "w": system.n_w}
    further |= {"lam": system.n_lambda if system.force_uses_multipliers else 0}
    sizes = {"q": n, "v": n, **{name: size for name, size in further.items() if size}}
    tracer = Tracer(system, sizes, always=always, follow=follow)
    every = tuple(sizes)
    shapes = {
        "mass": (("q",), (n, n)),
        "force": (every, (n,)),
        "state_rate": (every, (system.n_r,)),
        "algebraic": (every, (system.n_w,)),
        "constraint": (("q",), (system.n_constraints,)),
        "velocity_constraint": (("q", "v"), (system.n_velocity_constraints,)),
        "constraint_jacobian": (("q",), (system.n_constraints, n)),
        "constraint_t": (("q",), (system.n_constraints,)),
        "acceleration_bias": (("q", "v"), (system.n_constraints,)),
        "velocity_jacobian": (("q",), (system.n_velocity_constraints, n)),
        "velocity_bias": (("q", "v"), (system.n_velocity_constraints,)),
    }
    traces = {name: tracer.function(name, getattr(system, name), *shape) for name, shape in shapes.items()}
    _derive(tracer, system, traces)
    result = copy(system)
    for name, function in (tracer.result.functions | tracer.result.derivatives).items():
        object.__setattr__(result, name, function)
    if system.linearisation is None:
        object.__setattr__(result, "linearisation", Linearisation(tracer, system, traces))
        object.__setattr__(result, "straight_line", straight_line(tracer, system, traces))
    return tracer.finished(result)


def _derive(tracer: Tracer, system: MechanicalSystem, traces: dict[str, Traced | None]):
    """The missing derivatives of traced constraints."""
    graph, t, q, v = tracer.graph, tracer.t.node, tracer.nodes("q"), tracer.nodes("v")
    motion = {t: graph.one, **dict(zip(q, v, strict=True))}

    def matrix(nodes, variables):
        rows = jacobian(graph, nodes, variables)
        return np.array([[row.get(k, graph.zero) for k in range(len(variables))] for row in rows])

    def derive(name: str, of: Traced, arguments: tuple[str, ...], nodes, shared: tuple):
        if getattr(system, name) is None:
            tracer.derivative(name, of, arguments, nodes, shared)

    g, velocity = traces["constraint"], traces["velocity_constraint"]
    if g is not None:
        derive("constraint_jacobian", g, ("q",), lambda: matrix(g.nodes, q), (0,))
        derive("constraint_t", g, ("q",), lambda: directional(graph, g.nodes, {t: graph.one}), (0,))
        derive("acceleration_bias", g, ("q", "v"), lambda: acceleration_bias(graph, g.nodes, t, q, v), (0,))
    if velocity is not None:
        rest = np.zeros(system.n_q)
        derive("velocity_jacobian", velocity, ("q",), lambda: matrix(velocity.nodes, v), (0, rest))
        bias = [graph.negative(x) for x in directional(graph, velocity.nodes, motion)]
        derive("velocity_bias", velocity, ("q", "v"), lambda: bias, (0, 1))
