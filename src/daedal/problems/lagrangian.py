r"""Mechanical systems from their energies, by Lagrange's equations."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from daedal.errors import InvalidProblemError
from daedal.problems import MechanicalSystem
from daedal.problems.checks import check_callable, check_size
from daedal.problems.symbols import parameter_values, symbol_name, time_of, with_missing
from daedal.symbolic.derivative import acceleration_bias, directional, gradient, jacobian, sparsity
from daedal.symbolic.expression import Expression
from daedal.symbolic.graph import Graph
from daedal.symbolic.graph_functions import GraphFunction
from daedal.symbolic.sympy_expressions import Symbols
from daedal.symbolic.trace import parameter_argument, scalar_argument, trace, vector_argument
from daedal.symbolic.untraceable import Untraceable


def lagrange(
    kinetic: Any,
    potential: Any,
    q: int | Sequence[Any],
    *,
    constraints: Any = None,
    velocity_constraints: Any = None,
    forces: Any = None,
    params: Any = None,
    names: Sequence[str] | None = None,
    constraint_names: Sequence[str] | None = None,
) -> MechanicalSystem:
    r"""Derive a mechanical system from its kinetic and potential energy,

    .. math::

        \frac{d}{dt} \frac{\partial T}{\partial \dot q} - \frac{\partial T}{\partial q} + \frac{\partial U}{\partial q}
        = Q - G^T \lambda - \hat G^T \hat\lambda, \qquad 0 = g(q, t), \qquad 0 = h(q, \dot q, t).

    Parameters
    ----------
    kinetic : callable or SymPy expression
        ``kinetic(q, v, t, p)``, T, quadratic in v.
    potential : callable, SymPy expression or None
        ``potential(q, t, p)``, U.
    q : int or sequence
        Number of coordinates; for SymPy the coordinates as functions of time, such as ``x(t)``.
    constraints : callable or list of SymPy expressions, optional
        ``constraints(q, t, p)``, the position constraints g.
    velocity_constraints : callable or list of SymPy expressions, optional
        ``velocity_constraints(q, v, t, p)``, the nonholonomic constraints h.
    forces : callable or list of SymPy expressions, optional
        ``forces(q, v, t, p)``, the generalised forces Q that have no potential.
    params : array or mapping, optional
        The vector p; for SymPy the values of symbols, keyed by name or symbol. They may also be given to
        :func:`daedal.solve`.
    names, constraint_names : sequence of str, optional
        Names of coordinates and constraints, as in :class:`daedal.MechanicalSystem`.

    Returns
    -------
    MechanicalSystem
        A system with M, f and all derivatives of the constraints as machine code. M is never inverted symbolically.

    Notes
    -----
    Functions may omit trailing arguments, or use some of q, v, t, p by name.
    They are plain functions, executed once on symbols; docs/tracing.md lists the supported operations. Written out, the
    equations have :math:`M = T_{vv}` and :math:`f = T_q - U_q - T_{vq} v - T_{vt} + Q`: L. Wunderlich, Numerical
    solution of second order differential-algebraic equations, diploma thesis, TU Berlin, 2005, section 1.1.

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

    The same from expressions of SymPy, with initial values and parameters by symbol:

    >>> import sympy
    >>> from sympy.physics.mechanics import dynamicsymbols
    >>> (x, angle), g = dynamicsymbols("x angle"), sympy.Symbol("g")
    >>> dx, turning = x.diff(), angle.diff()
    >>> T = dx**2 + ((dx + sympy.cos(angle) * turning) ** 2 + (sympy.sin(angle) * turning) ** 2) / 2
    >>> system = daedal.lagrange(T, -g * sympy.cos(angle), [x, angle])
    >>> same = daedal.solve(system, (0.0, 1.0), {x: 0.0, angle: 0.5}, params={g: 9.81}, rtol=1e-8)
    >>> bool(abs(same["x"][-1] - sol["x"][-1]) < 1e-7)
    True
    """
    kind: type[_Functions | _Expressions] = _Expressions if hasattr(q, "__iter__") else _Functions
    source = kind(q, params)
    [energy] = source.nodes("kinetic", kinetic, "qvtp", ())
    nodes = {
        name: [] if value is None else source.nodes(name, value, order, shape)
        for name, value, order, shape in (
            ("potential", potential, "qtp", ()),
            ("forces", forces, "qvtp", (len(source.q),)),
            ("constraints", constraints, "qtp", None),
            ("velocity_constraints", velocity_constraints, "qvtp", None),
        )
    }
    given = _equations(source, energy, nodes["potential"], nodes["forces"])
    system = source.graph, source.q, source.v, source.function
    if constraints is not None:
        given |= holonomic(nodes["constraints"], *system)
    if velocity_constraints is not None:
        given |= nonholonomic(nodes["velocity_constraints"], *system)
    given |= {"names": source.names if names is None else names, "constraint_names": constraint_names}
    return MechanicalSystem(**given, n_q=len(source.q), params=source.params)


def _equations(source: _Functions | _Expressions, energy: int, potential: list[int], forces: list[int]):
    """M = T_vv and f = T_q - U_q - T_vq v - T_vt + Q."""
    graph, q, v, t = source.graph, source.q, source.v, source.graph.argument("t", 0)
    momenta = gradient(graph, energy, v)
    mass = [[row.get(k, graph.zero) for k in range(len(v))] for row in jacobian(graph, momenta, v)]
    if any(sparsity(graph, [x for row in mass for x in row], v)):
        raise InvalidProblemError("kinetic must be quadratic in the velocities v; the mass matrix depends on them")
    along = directional(graph, momenta, {t: graph.one, **dict(zip(q, v))})
    total = [graph.subtract(a, b) for a, b in zip(gradient(graph, energy, q), along)]
    for height in potential:
        total = [graph.subtract(a, b) for a, b in zip(total, gradient(graph, height, q))]
    if forces:
        total = [graph.add(a, b) for a, b in zip(total, forces)]
    return {"mass": source.function("mass", mass, "q"), "force": source.function("force", total, "q", "v")}


class _Functions:
    """Energies and constraints as plain functions of some of q, v, t, p."""

    names = None

    def __init__(self, n_q: Any, params: Any):
        self.graph = graph = Graph()
        n_q = check_size(n_q, "q")
        self._symbols: dict[str, Any] = {
            "q": vector_argument(graph, "q", n_q),
            "v": vector_argument(graph, "v", n_q),
            "t": scalar_argument(graph, "t"),
        }
        self.params = params
        if params is not None:
            self._symbols["p"] = parameter_argument(graph, "p", params)
            if self._symbols["p"] is params:
                raise InvalidProblemError(f"params must be a vector of numbers, got {type(params).__name__}")
        self.q = [x.node for x in self._symbols["q"]]
        self.v = [x.node for x in self._symbols["v"]]

    def nodes(self, name: str, function: Any, order: str, shape: tuple[int, ...] | None) -> list[int]:
        """The nodes of a user's function."""
        check_callable(function, name)
        arguments = _arguments(function, name, [letter for letter in order if letter in self._symbols])
        used = [self._symbols[letter] for letter in arguments]
        if not any(type(x) is Expression or len(x) for x in used):
            raise InvalidProblemError(f"{name} has no arguments; expected a function of {', '.join(order)}")
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

    def function(self, name: str, nodes, *arguments: str) -> GraphFunction:
        """A function of the system."""
        params = None if self.params is None else ("p", len(self._symbols["p"]))
        return GraphFunction(name, self.graph, nodes, dict.fromkeys(arguments, len(self.q)), params)


class _Expressions:
    """Energies and constraints as SymPy expressions in coordinates x(t) and their derivatives."""

    def __init__(self, q: Any, params: Any):
        coordinates = list(q)
        time = time_of(coordinates)
        self._values = parameter_values(params)
        self._symbols = Symbols(time, self._values)
        self.graph, self.names = self._symbols.graph, [symbol_name(x) for x in coordinates]
        self.q = self._symbols.vector("q", coordinates)
        self.v = self._symbols.vector("v", [x.diff(time) for x in coordinates])

    def nodes(self, name: str, expressions: Any, order: str, shape: tuple[int, ...] | None) -> list[int]:
        """The nodes of expressions."""
        listed = [expressions] if shape == () else list(expressions)
        if shape and len(listed) != shape[0]:
            raise InvalidProblemError(f"{name} has {len(listed)} expressions for {shape[0]} coordinates")
        try:
            return self._symbols.translated(listed)
        except (TypeError, ValueError, SyntaxError) as error:  # raised by sympify
            raise InvalidProblemError(f"{name} must be made of SymPy expressions, got {expressions!r}") from error

    def function(self, name: str, nodes, *arguments: str) -> GraphFunction:
        """A function of the system."""
        return self._symbols.function(name, nodes, dict.fromkeys(arguments, len(self.q)))

    @property
    def params(self) -> dict[str, float] | None:
        """Values of all known parameters."""
        return with_missing(self._values, self._symbols.parameters)


Make = Callable[..., GraphFunction]
"""``make(name, nodes, *arguments)`` creates a function from nodes."""


def holonomic(g: list[int], graph: Graph, q: list[int], v: list[int], make: Make) -> dict[str, Any]:
    """Arguments of MechanicalSystem for position constraints with all their derivatives."""
    t = graph.argument("t", 0)
    rows = [[row.get(k, graph.zero) for k in range(len(q))] for row in jacobian(graph, g, q)]
    return {
        "n_constraints": len(g),
        "constraint": make("constraint", g, "q"),
        "constraint_jacobian": make("constraint_jacobian", rows, "q"),
        "constraint_t": make("constraint_t", directional(graph, g, {t: graph.one}), "q"),
        "acceleration_bias": make("acceleration_bias", acceleration_bias(graph, g, t, q, v), "q", "v"),
    }


def nonholonomic(h: list[int], graph: Graph, q: list[int], v: list[int], make: Make) -> dict[str, Any]:
    """Arguments of MechanicalSystem for velocity constraints with all their derivatives."""
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
    """The arguments of a function among q, v, t, p, recognised by name, otherwise by position."""
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
            f"{name} has the arguments {signature}, but it is called as {name}({', '.join(order)}); it may omit "
            "trailing arguments"
        )
    return order[: len(needed)]
