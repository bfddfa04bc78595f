"""Problems from SymPy: equations with derivatives anywhere, and the methods of Lagrange and Kane of sympy.physics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from daedal.errors import InvalidProblemError
from daedal.lagrangian import holonomic, nonholonomic
from daedal.problems import ImplicitDAE, MechanicalSystem, SecondOrderDAE
from daedal.symbolic.derivative import jacobian
from daedal.symbolic.functions import GraphFunction
from daedal.symbolic.graph import Graph
from daedal.symbolic.sympy_expressions import nodes_from_sympy


def from_sympy(system, unknowns: Sequence[Any] | None = None, *, params: Mapping[Any, float] | None = None):
    """A problem from SymPy.

    Parameters
    ----------
    system : sequence of expressions or Eq, LagrangesMethod, or KanesMethod
        Equations, each an ``Eq`` or an expression that is zero, with derivatives of the unknowns anywhere; or a method
        of :mod:`sympy.physics.mechanics` whose equations have been formed.
    unknowns : sequence, optional
        The unknown functions of time, such as ``x(t)``, in order; needed for equations.
    params : mapping, optional
        The numbers of all other symbols; they become the vector `params` of the problem, in this order.

    Returns
    -------
    ImplicitDAE, SecondOrderDAE or MechanicalSystem
        Equations of first order, of second order, and those of Lagrange. Names are those of the unknowns; with Kane's
        method the unknowns are coordinates and speeds. Functions are machine code with exact derivatives: SymPy's
        expressions become one graph, and are differentiated there.

    Examples
    --------
    >>> import daedal
    >>> import sympy
    >>> t, a = sympy.symbols("t a")
    >>> x, y = sympy.Function("x")(t), sympy.Function("y")(t)
    >>> problem = daedal.from_sympy([sympy.Eq(x.diff(t), -a * x), y - x**2], [x, y], params={a: 2.0})
    >>> sol = daedal.solve(problem, (0.0, 1.0), ([1.0, 1.0], None), rtol=1e-8)
    >>> print(problem.names, f"{sol.y[1, -1]:.5f}")
    ('x', 'y') 0.01832
    """
    values = dict(params or {})
    kind = type(system).__name__
    if kind == "LagrangesMethod":
        return _from_lagrange(system, values)
    if kind == "KanesMethod":
        rows = system.mass_matrix_full * system.q.col_join(system.u).diff(_time()) - system.forcing_full
        return from_sympy(list(rows), [*system.q, *system.u], params=values)
    if unknowns is None:
        raise InvalidProblemError("unknowns must list the unknown functions of time, such as x(t)")
    equations = [equation.lhs - equation.rhs if hasattr(equation, "lhs") else equation for equation in system]
    return _from_equations(equations, list(unknowns), values)


def _time():
    from sympy.physics.mechanics import dynamicsymbols

    return dynamicsymbols._t


class _Symbols:
    """A graph with nodes for the unknowns, their derivatives, the time and the parameters."""

    def __init__(self, time: Any, params: dict[Any, float]):
        self.graph = Graph()
        self.nodes: dict[Any, int] = {time: self.graph.argument("t", 0)}
        for k, symbol in enumerate(params):
            self.nodes[symbol] = self.graph.argument("p", k)
        self.params = np.array([float(x) for x in params.values()]) if params else None

    def vector(self, name: str, symbols: Sequence[Any]) -> list[int]:
        made = [self.graph.argument(name, k) for k in range(len(symbols))]
        self.nodes |= dict(zip(symbols, made))
        return made

    def function(self, name: str, nodes, arguments: Mapping[str, int]) -> GraphFunction:
        params = None if self.params is None else ("p", self.params.size)
        return GraphFunction(name, self.graph, nodes, arguments, params)

    def translated(self, expressions: Sequence[Any]) -> list[int]:
        return nodes_from_sympy(self.graph, expressions, self.nodes)


def _from_equations(equations: list[Any], unknowns: list[Any], params: dict[Any, float]):
    n = len(unknowns)
    if len(equations) != n:
        raise InvalidProblemError(f"there are {len(equations)} equations for {n} unknowns")
    if any(len(getattr(unknown, "args", ())) != 1 for unknown in unknowns):
        raise InvalidProblemError("unknowns must be functions of time, such as x(t)")
    [time] = {unknown.args[0] for unknown in unknowns}
    order = max((_order(equation, unknowns) for equation in equations), default=0)
    if order > 2:
        raise InvalidProblemError("the equations have derivatives beyond the second; introduce unknowns for them")
    symbols = _Symbols(time, params)
    names = [unknown.func.__name__ for unknown in unknowns]
    vectors = ("y", "yp") if order < 2 else ("x", "xp", "xpp")
    made = [symbols.vector(name, [u.diff(time, k) if k else u for u in unknowns]) for k, name in enumerate(vectors)]
    residual = symbols.translated(equations)
    sizes = dict.fromkeys(vectors, n)
    function = symbols.function("residual", residual, sizes)
    if order == 2:
        return SecondOrderDAE(function, n, params=symbols.params, names=names)
    graph, cj = symbols.graph, symbols.graph.argument("cj", 0)
    rows = jacobian(graph, residual, made[0])
    for row, by_rate in zip(rows, jacobian(graph, residual, made[1])):
        for k, x in by_rate.items():
            row[k] = graph.add(row.get(k, graph.zero), graph.multiply(cj, x))
    full = [[row.get(k, graph.zero) for k in range(n)] for row in rows]
    matrix = symbols.function("jacobian", full, {**sizes, "cj": 1})
    return ImplicitDAE(function, n, jacobian=matrix, params=symbols.params, names=names)


def _order(equation: Any, unknowns: Sequence[Any]) -> int:
    from sympy import Derivative

    found = [d.derivative_count for d in equation.atoms(Derivative) if d.expr in unknowns]
    return max((int(count) for count in found), default=0)


def _from_lagrange(method: Any, params: dict[Any, float]) -> MechanicalSystem:
    """M a = f - (coefficients of the constraints)^T lam, as ``form_lagranges_equations`` has left it."""
    if method.eom is None:
        raise InvalidProblemError("call form_lagranges_equations() of the LagrangesMethod first")
    time, coordinates = _time(), list(method.q)
    n, n_holonomic = len(coordinates), len(method._hol_coneqs)
    symbols = _Symbols(time, params)
    graph = symbols.graph
    q, v = symbols.vector("q", coordinates), symbols.vector("v", [x.diff(time) for x in coordinates])

    def make(name: str, nodes, *arguments: str) -> GraphFunction:
        return symbols.function(name, nodes, dict.fromkeys(arguments, n))

    mass = np.array(symbols.translated(list(method.mass_matrix[:n, :n]))).reshape(n, n)
    given: dict[str, Any] = {
        "mass": make("mass", mass, "q"),
        "force": make("force", symbols.translated(list(method.forcing)), "q", "v"),
    }
    if n_holonomic:
        given |= holonomic(graph, symbols.translated(list(method._hol_coneqs)), q, v, make)
    if len(method.coneqs) > n_holonomic:
        given |= nonholonomic(graph, symbols.translated(list(method.coneqs)[n_holonomic:]), q, v, make)
    names = [x.func.__name__ for x in coordinates]
    return MechanicalSystem(**given, n_q=n, params=symbols.params, names=names)
