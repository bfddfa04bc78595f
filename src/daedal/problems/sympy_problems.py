"""Problems from SymPy: general differential equations, and Lagrange's and Kane's methods of sympy.physics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from daedal.errors import InvalidProblemError
from daedal.problems import ImplicitDAE, MechanicalSystem, SecondOrderDAE
from daedal.problems.lagrangian import holonomic, nonholonomic
from daedal.problems.symbols import parameter_values, symbol_name, time_of, with_missing
from daedal.symbolic.derivative import jacobian
from daedal.symbolic.graph_functions import GraphFunction
from daedal.symbolic.sympy_expressions import Symbols


def from_sympy(system: Any, unknowns: Sequence[Any] | None = None, *, params: Mapping[Any, float] | None = None) -> Any:
    """Convert SymPy equations or methods to a problem.

    Parameters
    ----------
    system : sequence of expressions or Eq, System, LagrangesMethod, or KanesMethod
        Equations, each an ``Eq`` or an expression that vanishes, in which derivatives of the unknowns may occur
        anywhere; or a method of :mod:`sympy.physics.mechanics` whose equations have been formed, or its ``System``
        after ``form_eoms``.
    unknowns : sequence, optional
        The unknown functions of time, such as ``x(t)``, in order; needed for equations.
    params : mapping, optional
        Values of the other symbols, by symbol or name. Missing values must be passed to :func:`daedal.solve`.

    Returns
    -------
    ImplicitDAE, SecondOrderDAE or MechanicalSystem
        For first-order equations, second-order equations, and Lagrange's method, respectively. Names are those of the
        unknowns; with Kane's method the unknowns are coordinates and speeds. `params` of the problem is a dictionary by
        name. :func:`daedal.solve` accepts initial values and parameters by name or symbol.

    Notes
    -----
    Functions are machine code with exact derivatives: SymPy's expressions are converted to one graph and differentiated
    there. Kane's equations are Fr + Fr* = 0 for the independent speeds (T. R. Kane and D. A. Levinson, Dynamics: Theory
    and Applications, McGraw-Hill, 1985, section 6.1), the kinematic equations of the independent coordinates, and the
    constraints themselves on position and on velocity level for the dependent coordinates and speeds: a problem of
    index 1 whose constraints hold at all times, without drift.

    Examples
    --------
    >>> import daedal
    >>> import sympy
    >>> t, a = sympy.symbols("t a")
    >>> x, y = sympy.Function("x")(t), sympy.Function("y")(t)
    >>> problem = daedal.from_sympy([sympy.Eq(x.diff(t), -a * x), y - x**2], [x, y])
    >>> sol = daedal.solve(problem, (0.0, 1.0), {x: 1.0}, params={a: 2.0}, rtol=1e-8)
    >>> print(problem.names, f"{sol['y'][-1]:.5f}")
    ('x', 'y') 0.01832
    """
    values = parameter_values(params)
    kind = type(system).__name__
    if kind == "System":
        if system.eom_method is None:
            raise InvalidProblemError("call form_eoms() of the System first")
        return from_sympy(system.eom_method, unknowns, params=params)
    if kind == "LagrangesMethod":
        return _from_lagrange(system, values)
    if kind == "KanesMethod":
        return _from_kane(system, values)
    if unknowns is None:
        raise InvalidProblemError("unknowns must list the unknown functions of time, such as x(t)")
    return _from_equations([_left_side(equation, i) for i, equation in enumerate(system)], list(unknowns), values)


def _left_side(equation: Any, i: int) -> Any:
    """An equation, or an expression that must vanish, as an expression."""
    from sympy import Eq, Expr, sympify

    equation = sympify(equation)
    if isinstance(equation, Eq):
        return equation.lhs - equation.rhs
    if isinstance(equation, Expr):
        return equation
    raise InvalidProblemError(
        f"equation {i} must be sympy.Eq(left, right) or an expression that vanishes, got {equation}"
    )


def _from_equations(equations: list[Any], unknowns: list[Any], values: dict[str, float]):
    n = len(unknowns)
    if len(equations) != n:
        raise InvalidProblemError(f"there are {len(equations)} equations for {n} unknowns")
    time = time_of(unknowns)
    order = max((_order(equation, unknowns) for equation in equations), default=0)
    if order > 2:
        raise InvalidProblemError("the equations have derivatives beyond the second; introduce unknowns for them")
    symbols = Symbols(time, values)
    names = [symbol_name(unknown) for unknown in unknowns]
    vectors = ("y", "yp") if order < 2 else ("x", "xp", "xpp")
    made = [symbols.vector(name, [u.diff(time, k) if k else u for u in unknowns]) for k, name in enumerate(vectors)]
    residual = symbols.translated(equations)
    if order < 2:
        return _implicit(symbols, residual, made[0], made[1], names, values)
    function = symbols.function("residual", residual, dict.fromkeys(vectors, n))
    return SecondOrderDAE(function, n, params=with_missing(values, symbols.parameters), names=names)


def _implicit(symbols: Symbols, residual: list[int], y: list[int], yp: list[int], names, values) -> ImplicitDAE:
    """F(t, y, y') = 0 with the matrix dF/dy + cj dF/dy', and the variables whose derivative does not occur."""
    n, graph, cj = len(y), symbols.graph, symbols.graph.argument("cj", 0)
    rows, rates = jacobian(graph, residual, y), jacobian(graph, residual, yp)
    for row, by_rate in zip(rows, rates):
        for k, x in by_rate.items():
            row[k] = graph.add(row.get(k, graph.zero), graph.multiply(cj, x))
    full = [[row.get(k, graph.zero) for k in range(n)] for row in rows]
    sizes = {"y": n, "yp": n}
    differential = {k for row in rates for k in row}
    return ImplicitDAE(
        symbols.function("residual", residual, sizes),
        n,
        jacobian=symbols.function("jacobian", full, {**sizes, "cj": 1}),
        params=with_missing(values, symbols.parameters),
        algebraic=[k not in differential for k in range(n)],
        names=names,
    )


def _order(equation: Any, unknowns: Sequence[Any]) -> int:
    from sympy import Derivative

    found = [d.derivative_count for d in equation.atoms(Derivative) if d.expr in unknowns]
    return max((int(count) for count in found), default=0)


def _from_lagrange(method: Any, values: dict[str, float]) -> MechanicalSystem:
    """M a = f - (coefficients of the constraints)^T lam, as computed by ``form_lagranges_equations``."""
    if method.eom is None:
        raise InvalidProblemError("call form_lagranges_equations() of the LagrangesMethod first")
    coordinates = list(method.q)
    time, n, n_holonomic = time_of(coordinates), len(coordinates), len(method._hol_coneqs)
    symbols = Symbols(time, values)
    q, v = symbols.vector("q", coordinates), symbols.vector("v", [x.diff(time) for x in coordinates])
    mass = np.array(symbols.translated(list(method.mass_matrix[:n, :n]))).reshape(n, n)
    force = symbols.translated(list(method.forcing))
    g = symbols.translated(list(method._hol_coneqs))
    h = symbols.translated(list(method.coneqs)[n_holonomic:])

    def make(name: str, nodes, *arguments: str) -> GraphFunction:
        return symbols.function(name, nodes, dict.fromkeys(arguments, n))

    given: dict[str, Any] = {"mass": make("mass", mass, "q"), "force": make("force", force, "q", "v")}
    if g:
        given |= holonomic(g, symbols.graph, q, v, make)
    if h:
        given |= nonholonomic(h, symbols.graph, q, v, make)
    names = [symbol_name(x) for x in coordinates]
    return MechanicalSystem(**given, n_q=n, params=with_missing(values, symbols.parameters), names=names)


def _from_kane(method: Any, values: dict[str, float]) -> ImplicitDAE:
    """Kinematic equations, Fr + Fr* = 0 and the constraints; dependent coordinates and speeds are last."""
    if not hasattr(method, "_k_d"):
        raise InvalidProblemError("call kanes_equations() of the KanesMethod first")
    unknowns = [*method.q, *method.u]
    time, n_q, n_u = time_of(unknowns), len(method.q), len(method.u)
    symbols = Symbols(time, values)
    graph = symbols.graph
    y, yp = symbols.vector("y", unknowns), symbols.vector("yp", [x.diff(time) for x in unknowns])
    speeds = method.kindiffdict()
    independent = list(method.q)[: n_q - len(method._f_h)]
    rates = symbols.translated([speeds[q.diff(time)] for q in independent])
    residual = [graph.subtract(yp[k], rate) for k, rate in enumerate(rates)]

    def affine(matrix: Any, vector: list[int], rest: Any) -> list[int]:
        """matrix @ vector + rest, row by row."""
        entries = symbols.translated(list(matrix))
        rows = symbols.translated(list(rest))
        for i, k in np.ndindex(len(rows), n_u):
            rows[i] = graph.add(rows[i], graph.multiply(entries[i * n_u + k], vector[k]))
        return rows

    residual += affine(method._k_d, yp[n_q:], method._f_d)
    residual += symbols.translated(list(method._f_h))
    residual += affine(method._k_nh, y[n_q:], method._f_nh)
    return _implicit(symbols, residual, y, yp, [symbol_name(x) for x in unknowns], values)
