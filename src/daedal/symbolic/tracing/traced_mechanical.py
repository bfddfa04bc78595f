r"""Mechanical systems as machine code: given functions, missing derivatives, and matrices for Newton's method.

For implicit formulations, one function computes the derivatives of

.. math::

    M a + K^T \lambda - f, \qquad -f_d, \qquad d, \qquad (G v + g_t,\ c), \qquad
    (G v + g_t,\ c)^{\boldsymbol\cdot}

(the rows; the last group on demand) with respect to q, v, r, w and, if forces depend on them, the multipliers (the
columns), for given a and :math:`\lambda`. Those with respect to a and to the multipliers of :math:`K^T \lambda` are M
and K. The constraint curvature :math:`(K^T \lambda)_q` and :math:`(G v)_q` are included.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from typing import Any

import numpy as np

from daedal.kernels.functions import CodedFunction
from daedal.problems import MechanicalSystem
from daedal.problems.compile import last_argument
from daedal.problems.mechanical import FUNCTIONS
from daedal.symbolic import Traced
from daedal.symbolic.dependencies import Dependencies
from daedal.symbolic.derivative import Row, acceleration_bias, directional, jacobian
from daedal.symbolic.tracing.function import TracedFunction
from daedal.symbolic.tracing.straight_line_code import dynamics, has_parts, parts_of, straight_line
from daedal.symbolic.tracing.tracer import TracedProblem, Tracer

NAME = "linearisation"
_PARTS = ("mass", "force", "state_rate", "algebraic", "constraint", "velocity_constraint")


class Linearisation:
    """The derivatives of a traced mechanism, created on demand.

    Parameters
    ----------
    tracer : Tracer
        Tracer with the functions of the system on its graph.
    system : MechanicalSystem
        The original system.
    traces : mapping
        Traces of its functions by name.
    """

    def __init__(self, tracer: Tracer, system: MechanicalSystem, traces: dict[str, Traced | None]):
        self._tracer, self._system = tracer, system
        self._traces = {name: trace for name, trace in traces.items() if trace is not None}
        self._made: dict[int, TracedFunction | None] = {}
        self._parts = parts_of(tracer, system, _PARTS)

    def belongs_to(self, system: MechanicalSystem) -> bool:
        """Whether `system` has the functions from which this was built."""
        return has_parts(system, self._parts)

    def function(self, levels: int) -> TracedFunction | None:
        """Derivatives with the constraints on velocity level (1), or also on acceleration level (2).

        None if a function of the system could not be traced, or there are too many operations.
        """
        with self._tracer.lock:
            if levels not in self._made:
                self._made[levels] = self._make(levels) if self._is_complete() else None
            return self._made[levels]

    def _is_complete(self) -> bool:
        return all(name in self._traces for name in _PARTS if callable(getattr(self._system, name)))

    def _make(self, levels: int) -> TracedFunction | None:
        tracer, system = self._tracer, self._system
        sizes = {"q": system.n_q, "v": system.n_q, "r": system.n_r, "w": system.n_w}
        sizes |= {"lam": system.n_lambda, "a": system.n_q}
        arguments = tuple(name for name, size in sizes.items() if size)
        for name in arguments:
            tracer.sizes.setdefault(name, sizes[name])
        parts = [self._traces[name] for name in _PARTS if name in self._traces]
        raises = tracer.graph.false
        for part in parts:
            raises = tracer.graph.either(raises, part.raises)
        of = Traced(tracer.graph, NAME, (), (0,), raises, 1, Dependencies())
        shared, original = tuple(range(len(arguments))), _functions(system, arguments)
        return tracer.derivative(NAME, of, arguments, lambda: self._matrix(levels), shared, original)

    def _matrix(self, levels: int) -> np.ndarray:
        tracer, system, graph = self._tracer, self._system, self._tracer.graph
        t, q, v = tracer.t.node, tracer.nodes("q"), tracer.nodes("v")
        rates = [*directional(graph, self._nodes("constraint"), {t: graph.one, **dict(zip(q, v))})]
        rates += self._nodes("velocity_constraint")
        rows = [*self._balance(), *map(graph.negative, self._nodes("state_rate")), *self._nodes("algebraic"), *rates]
        if levels == 2:
            along = {t: graph.one, **dict(zip(q, v)), **dict(zip(v, tracer.nodes("a")))}
            rows += directional(graph, rates, along)
        columns = [*q, *v]
        columns += [node for name, n in (("r", system.n_r), ("w", system.n_w)) if n for node in tracer.nodes(name)]
        found = jacobian(graph, rows, columns)
        if system.force_uses_multipliers:
            for row, further in zip(found, self._by_multipliers()):
                row.update({len(columns) + k: node for k, node in further.items()})
        width = len(columns) + (system.n_lambda if system.force_uses_multipliers else 0)
        return np.array([[row.get(k, graph.zero) for k in range(width)] for row in found], dtype=np.int64)

    def _balance(self) -> list[int]:
        """M a + K^T lam - f."""
        tracer = self._tracer
        multipliers = tracer.nodes("lam") if self._system.n_lambda else []
        return dynamics(tracer, self._system, self._traces).balance(tracer.nodes("a"), multipliers)

    def _by_multipliers(self) -> list[Row]:
        """Derivatives of -f, -f_d and d with respect to the multipliers on which they depend."""
        graph, variables = self._tracer.graph, self._tracer.nodes("lam")
        nodes = [*map(graph.negative, self._nodes("force")), *map(graph.negative, self._nodes("state_rate"))]
        return jacobian(graph, [*nodes, *self._nodes("algebraic")], variables)

    def _nodes(self, name: str) -> Sequence[int]:
        return self._traces[name].nodes if name in self._traces else ()

    def __reduce__(self):
        """Machine code is not pickled."""
        return type(None), ()


def _functions(system: MechanicalSystem, names: tuple[str, ...]) -> Callable[..., Any]:
    """A function that calls all functions of the system, so that one of them can raise a specific error."""

    def call(t: float, *arguments):
        given, params = dict(zip(names, arguments)), arguments[len(names) :]
        uses = ("lam",) if system.force_uses_multipliers else ()
        every = [given[name] for name in ("q", "v", "r", "w", *uses) if name in given]
        for name in _PARTS:
            function = getattr(system, name)
            if callable(function):
                of_q = name in ("mass", "constraint")
                values = every[:1] if of_q else every[:2] if name == "velocity_constraint" else every
                function(t, *[x.copy() for x in values], *(last_argument(function, params[0]) if params else ()))

    return call


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
