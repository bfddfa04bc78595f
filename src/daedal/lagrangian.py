r"""Mechanical systems from their energies, by the equations of Lagrange."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from daedal.errors import InvalidProblemError
from daedal.problems import MechanicalSystem
from daedal.problems.checks import check_callable, check_size
from daedal.symbolic.derivative import acceleration_bias, directional, gradient, jacobian, sparsity
from daedal.symbolic.expression import Expression
from daedal.symbolic.functions import GraphFunction
from daedal.symbolic.graph import Graph
from daedal.symbolic.trace import parameter_argument, scalar_argument, trace, vector_argument
from daedal.symbolic.untraceable import Untraceable


def lagrange(
    kinetic: Callable[..., Any],
    potential: Callable[..., Any] | None,
    n_q: int,
    *,
    constraints: Callable[..., Any] | None = None,
    velocity_constraints: Callable[..., Any] | None = None,
    forces: Callable[..., Any] | None = None,
    params: Any = None,
    names: Sequence[str] | None = None,
    constraint_names: Sequence[str] | None = None,
) -> MechanicalSystem:
    r"""A mechanical system from its kinetic and potential energy,

    .. math::

        \frac{d}{dt} \frac{\partial T}{\partial \dot q} - \frac{\partial T}{\partial q} + \frac{\partial U}{\partial q}
        = Q - G^T \lambda - \hat G^T \hat\lambda, \qquad 0 = g(q, t), \qquad 0 = h(q, \dot q, t).

    Parameters
    ----------
    kinetic : callable
        ``kinetic(q, v, t, p)``, T; quadratic in v.
    potential : callable or None
        ``potential(q, t, p)``, U.
    n_q : int
        Number of coordinates.
    constraints : callable, optional
        ``constraints(q, t, p)``, the position constraints g.
    velocity_constraints : callable, optional
        ``velocity_constraints(q, v, t, p)``, the nonholonomic constraints h.
    forces : callable, optional
        ``forces(q, v, t, p)``, the generalised forces Q that have no potential.
    params : array, optional
        The vector p.
    names, constraint_names : sequence of str, optional
        Of coordinates and constraints, as in :class:`daedal.MechanicalSystem`.

    Returns
    -------
    MechanicalSystem
        With M, f and all derivatives of the constraints as machine code. M is never inverted symbolically.

    Notes
    -----
    Functions may leave out arguments that they do not need, from the end, or take some of q, v, t, p under these names.
    They are plain functions, run once on symbols; docs/tracing.md says what they may do. Written out, the equations
    have :math:`M = T_{vv}` and :math:`f = T_q - U_q - T_{vq} v - T_{vt} + Q`: L. Wunderlich, Numerical solution of
    second order differential-algebraic equations, diploma thesis, TU Berlin, 2005, section 1.1.

    Examples
    --------
    A pendulum of length 1 on a slider:

    >>> import numpy as np
    >>> import daedal
    >>> def kinetic(q, v):
    ...     return 0.5 * 2.0 * v[0] ** 2 + 0.5 * ((v[0] + np.cos(q[1]) * v[1]) ** 2 + (np.sin(q[1]) * v[1]) ** 2)
    >>> system = daedal.lagrange(kinetic, lambda q: -9.81 * np.cos(q[1]), 2, names=["x", "angle"])
    >>> system.mass(0.0, np.array([0.0, 0.0]))
    array([[3., 1.],
           [1., 1.]])
    >>> sol = daedal.solve(system, (0.0, 1.0), ([0.0, 0.5], [0.0, 0.0]), rtol=1e-8)
    >>> sol.success
    True
    """
    equations = _Equations(check_size(n_q, "n_q"), params)
    equations.energies(kinetic, potential, forces)
    given: dict[str, Any] = {"mass": equations.mass(), "force": equations.force()}
    if constraints is not None:
        given |= equations.holonomic(constraints)
    if velocity_constraints is not None:
        given |= equations.nonholonomic(velocity_constraints)
    return MechanicalSystem(**given, n_q=n_q, params=params, names=names, constraint_names=constraint_names)


class _Equations:
    """The graph of a system, and its functions."""

    def __init__(self, n_q: int, params: Any):
        self.graph = graph = Graph()
        self.n_q = n_q
        self.symbols: dict[str, Any] = {
            "q": vector_argument(graph, "q", n_q),
            "v": vector_argument(graph, "v", n_q),
            "t": scalar_argument(graph, "t"),
        }
        self.params: tuple[str, int] | None = None
        if params is not None:
            self.symbols["p"] = parameter_argument(graph, "p", params)
            if self.symbols["p"] is params:
                raise InvalidProblemError("params must be a vector of numbers for lagrange, so that it can be changed")
            self.params = ("p", len(self.symbols["p"]))
        self.q = [x.node for x in self.symbols["q"]]
        self.v = [x.node for x in self.symbols["v"]]
        self.t = self.symbols["t"].node

    def traced(self, function: Callable[..., Any], name: str, order: str, shape: tuple[int, ...] | None) -> list[int]:
        """The nodes of a user's function of some of q, v, t, p."""
        check_callable(function, name)
        arguments = _arguments(function, name, [letter for letter in order if letter in self.symbols])
        used = [self.symbols[letter] for letter in arguments]
        if not any(type(x) is Expression or len(x) for x in used):
            raise InvalidProblemError(f"{name} has no arguments; it is a function of {', '.join(order)}")
        try:
            result = trace(function, used)
        except Untraceable as reason:
            raise InvalidProblemError(f"{name} cannot be differentiated: it {reason}") from reason
        if shape is not None and result.shape != shape and not (shape == () and result.shape == (1,)):
            raise InvalidProblemError(
                f"{name} returned an array of shape {result.shape}; expected {shape or 'a number'}"
            )
        if shape is None and len(result.shape) != 1:
            raise InvalidProblemError(f"{name} returned an array of shape {result.shape}; expected a vector")
        return list(result.nodes)

    def energies(self, kinetic, potential, forces):
        graph, n = self.graph, self.n_q
        [energy] = self.traced(kinetic, "kinetic", "qvtp", ())
        self.momenta = gradient(graph, energy, self.v)
        rows = jacobian(graph, self.momenta, self.v)
        self.mass_nodes = [[row.get(k, graph.zero) for k in range(n)] for row in rows]
        if any(sparsity(graph, [x for row in self.mass_nodes for x in row], self.v)):
            raise InvalidProblemError("kinetic must be quadratic in the velocities v; the mass matrix depends on them")
        along = directional(graph, self.momenta, {self.t: graph.one, **dict(zip(self.q, self.v))})
        self.forces = [graph.subtract(a, b) for a, b in zip(gradient(graph, energy, self.q), along)]
        if potential is not None:
            [height] = self.traced(potential, "potential", "qtp", ())
            self.forces = [graph.subtract(a, b) for a, b in zip(self.forces, gradient(graph, height, self.q))]
        if forces is not None:
            applied = self.traced(forces, "forces", "qvtp", (n,))
            self.forces = [graph.add(a, b) for a, b in zip(self.forces, applied)]

    def function(self, name: str, nodes, *arguments: str) -> GraphFunction:
        return GraphFunction(name, self.graph, nodes, dict.fromkeys(arguments, self.n_q), self.params)

    def mass(self) -> GraphFunction:
        return self.function("mass", self.mass_nodes, "q")

    def force(self) -> GraphFunction:
        return self.function("force", self.forces, "q", "v")

    def holonomic(self, constraints) -> dict[str, Any]:
        g = self.traced(constraints, "constraints", "qtp", None)
        return holonomic(self.graph, g, self.q, self.v, self.function)

    def nonholonomic(self, constraints) -> dict[str, Any]:
        h = self.traced(constraints, "velocity_constraints", "qvtp", None)
        return nonholonomic(self.graph, h, self.q, self.v, self.function)


Make = Callable[..., GraphFunction]
"""``make(name, nodes, *arguments)`` makes a function of nodes."""


def holonomic(graph: Graph, g: list[int], q: list[int], v: list[int], make: Make) -> dict[str, Any]:
    """The arguments of a mechanical system for position constraints, with all of their derivatives."""
    t = graph.argument("t", 0)
    rows = [[row.get(k, graph.zero) for k in range(len(q))] for row in jacobian(graph, g, q)]
    return {
        "n_constraints": len(g),
        "constraint": make("constraint", g, "q"),
        "constraint_jacobian": make("constraint_jacobian", rows, "q"),
        "constraint_t": make("constraint_t", directional(graph, g, {t: graph.one}), "q"),
        "acceleration_bias": make("acceleration_bias", acceleration_bias(graph, g, t, q, v), "q", "v"),
    }


def nonholonomic(graph: Graph, h: list[int], q: list[int], v: list[int], make: Make) -> dict[str, Any]:
    """The arguments of a mechanical system for velocity constraints, with all of their derivatives."""
    rows = [[row.get(k, graph.zero) for k in range(len(v))] for row in jacobian(graph, h, v)]
    if any(sparsity(graph, [x for row in rows for x in row], v)):
        raise InvalidProblemError("velocity_constraints must be linear in the velocities v")
    along = directional(graph, h, {graph.argument("t", 0): graph.one, **dict(zip(q, v))})
    return {
        "n_velocity_constraints": len(h),
        "velocity_constraint": make("velocity_constraint", h, "q", "v"),
        "velocity_jacobian": make("velocity_jacobian", rows, "q"),
        "velocity_bias": make("velocity_bias", [graph.negative(x) for x in along], "q", "v"),
    }


def _arguments(function: Callable[..., Any], name: str, order: list[str]) -> list[str]:
    """Which of q, v, t, p a function takes: by these names, otherwise in this order from the beginning."""
    try:
        signature = inspect.signature(getattr(function, "py_func", function))
    except (TypeError, ValueError):
        return order
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    needed = [x.name for x in signature.parameters.values() if x.kind in kinds and x.default is x.empty]
    if any(x.kind is x.VAR_POSITIONAL for x in signature.parameters.values()):
        return order
    if set(needed) <= set(order):
        return needed
    if len(needed) > len(order):
        raise InvalidProblemError(
            f"{name} has the arguments {signature}, but it is called as {name}({', '.join(order)}); it may leave out "
            "some from the end"
        )
    return order[: len(needed)]
