r"""Variational equations of a first-order problem, together with the equations themselves.

For :math:`F(t, y, y', p) = 0` the sensitivities :math:`s_i = \partial y / \partial p_i` satisfy

.. math::

    F_y s_i + F_{y'} s_i' + F_{p_i} = 0

(Brenan, Campbell, Petzold, section 7.5). Sensitivities with respect to initial values have other initial values and
:math:`F_p = 0`. There are three forms:

* on a graph, with exact partial derivatives along the direction :math:`(s_i, s_i', e_i)`: `variational_problem`;
* by differences, for functions that cannot be traced: `differenced_problem`;
* for explicit and half-explicit methods, from one of these two: `ExplicitForm`.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from daedal.errors import Unevaluable
from daedal.problems import ODE, ImplicitDAE, SemiExplicitDAE
from daedal.sensitivity.differentiation import Column, ParameterNumbers
from daedal.sensitivity.jumps import CENTRAL_4, SHARE
from daedal.solution.solution import Solution
from daedal.symbolic.dependencies import Dependencies
from daedal.symbolic.derivative import directional
from daedal.symbolic.graph import Graph
from daedal.symbolic.graph_functions import GraphFunction, inlined
from daedal.symbolic.modes import NAME as MODES
from daedal.symbolic.modes import replaced
from daedal.symbolic.tracing.parameters import NAME, ParameterLayout
from daedal.symbolic.tracing.tracer import Tracer


@dataclass(frozen=True)
class Variational:
    """A problem with the variational equations for its parameters."""

    problem: ImplicitDAE  # in the unknowns (y, s_1, s_2, ...), with a parameter vector
    layout: ParameterLayout | None  # layout of the parameters of the original problem
    idle: tuple[int, ...]  # columns whose parameter does not occur in the equations
    dependencies: Dependencies  # external values read by the functions
    switches: tuple[Any, ...] = ()  # switches set by data: modes, stored after the parameters
    switch_values: GraphFunction | None = None  # the switching functions

    @property
    def is_exact(self) -> bool:
        """Whether derivatives are exact instead of differences."""
        return isinstance(self.problem.residual, GraphFunction)

    def numbers(self, params: Any) -> np.ndarray | None:
        """Parameters as passed to the variational problem."""
        return None if self.layout is None or not self.layout.count else self.layout.numbers(params)


class VariationalFunction(GraphFunction):
    """F and its derivatives along the sensitivities; calls from Python first call the user's functions, which may
    raise."""

    def __init__(self, problem: ImplicitDAE | SemiExplicitDAE, layout: ParameterLayout | None, *graph: Any):
        super().__init__("residual", *graph)
        self._problem, self._layout = problem, layout

    def __call__(self, t: float, y: np.ndarray, yp: np.ndarray, *params: Any) -> np.ndarray:
        n, problem = self._problem.n, self._problem
        if params and self._layout is not None:
            numbers = list(map(float, params[0]))[: self._layout.count]  # followed by modes
            problem = problem.with_params(self._layout.rebuilt(problem.params, numbers))
        problem.implicit().evaluate(t, y[:n], yp[:n])
        return super().__call__(t, y, yp, *params)


def variational_problem(
    problem: ImplicitDAE | SemiExplicitDAE, columns: Sequence[Column], follow: int = 0
) -> Variational:
    """The problem with its variational equations; raises Untraceable if its functions cannot be traced.

    At most `follow` switches are set by data.
    """
    n, total = problem.n, problem.n * (1 + len(columns))
    tracer = Tracer(problem, {"y": total, "yp": total}, always=True, follow=follow)
    graph, y, yp = tracer.graph, tracer.nodes("y"), tracer.nodes("yp")
    equations, dependencies, raises = equations_of(tracer, problem)
    if tracer.modes is not None:
        equations = tracer.modes.nodes(equations)
    nodes, idle = list(equations), []
    read = {graph.data[i] for i in graph.needed(equations) if graph.operations[i] == "argument"}
    for k, column in enumerate(columns):
        own = slice((k + 1) * n, (k + 2) * n)
        along = {**dict(zip(y[:n], y[own], strict=True)), **dict(zip(yp[:n], yp[own], strict=True))}
        if column.position is not None:
            along |= {graph.argument(NAME, column.position): graph.one}
            if (NAME, column.position) not in read:
                idle.append(k)
        nodes += directional(graph, equations, along)
    layout, params = tracer.layout, None
    if layout is not None and layout.count:
        params = layout.numbers(problem.params)
    switches, surfaces = [] if tracer.modes is None else tracer.modes.switches, []
    if switches:
        count = 0 if params is None else params.size
        modes = {graph.argument(MODES, j): graph.argument(NAME, count + j) for j in range(len(switches))}
        params = np.concatenate([np.zeros(0) if params is None else params, np.full(len(switches), np.nan)])
        every = replaced(graph, [*nodes, *(switch.function for switch in switches)], modes)
        nodes, surfaces = every[: len(nodes)], every[len(nodes) :]
    if layout is not None and layout.count:
        layout.fixed = {graph.data[i][1]: value for i, value in graph.fixed.items() if graph.data[i][0] == NAME}
    own_params = None if params is None else (NAME, params.size)
    if raises != graph.false:  # NaN where the function raises, so that the function itself is called there
        nodes = [graph.where(raises, graph.constant(np.nan), x) for x in nodes]
    function = VariationalFunction(problem, layout, graph, nodes, {"y": total, "yp": total}, own_params)
    made = _enlarged(problem, columns, function, params)
    values = GraphFunction("switches", graph, surfaces, {"y": total, "yp": total}, own_params) if switches else None
    return Variational(made, layout, tuple(idle), dependencies, tuple(switches), values)


def _enlarged(
    problem: ImplicitDAE | SemiExplicitDAE, columns: Sequence[Column], residual: Any, params: np.ndarray | None
) -> ImplicitDAE:
    """The problem in the unknowns (y, s_1, s_2, ...) with this residual."""
    copies, algebraic = 1 + len(columns), problem.implicit().algebraic
    names = [problem.label(i) for i in range(problem.n)]
    names += [f"d {name} / d {column.name}" for column in columns for name in names]
    tiled = None if algebraic is None else np.tile(algebraic, copies)
    return ImplicitDAE(residual, problem.n * copies, params=params, names=names, algebraic=tiled)


def equations_of(tracer: Tracer, problem: ImplicitDAE | SemiExplicitDAE) -> tuple[list[int], Dependencies, int]:
    """F for the leading unknowns, the dependencies of its functions, and the condition under which they raise."""
    n, dependencies = problem.n, Dependencies()
    y, yp = tracer.symbols("y")[:n], tracer.symbols("yp")[:n]
    if isinstance(problem, SemiExplicitDAE):
        split = problem.n_y
        f = tracer.trace(_as_stated(problem.f), [y[:split], y[split:]], (split,))
        g = tracer.trace(_as_stated(problem.g), [y[:split], y[split:]], (problem.n_z,))
        dependencies.add(f.dependencies)
        dependencies.add(g.dependencies)
        rates = tracer.nodes("yp")[:split]
        raises = tracer.graph.either(f.raises, g.raises)
        return [*map(tracer.graph.subtract, rates, f.nodes), *g.nodes], dependencies, raises
    traced = tracer.trace(_as_stated(problem.residual), [y, yp], (n,))
    dependencies.add(traced.dependencies)
    return list(traced.nodes), dependencies, traced.raises


def _as_stated(function: Any) -> Any:
    """A function as written by the user, even if it is now machine code."""
    return getattr(function, "original", function)


# --- by differences ---------------------------------------------------------------------------------------------------

# .. math::
#
#     F_y s + F_{y'} s' + F_p \approx \frac{8 (D(\delta) - D(-\delta)) - (D(2 \delta) - D(-2 \delta))}{12 \delta},
#     \qquad D(\delta) = F(t, y + \delta s, y' + \delta s', p + \delta)
#
# with an increment that changes parameter and variables by only a small fraction of their sizes (Brenan, Campbell,
# Petzold, section 7.5, have quotients of orders 1 and 2). Order 4 allows an increment of 1e-3, for which the effect of
# round-off is 1e-13. Near the boundary of the domain of F, a shorter increment of order 2 is used.

_STENCILS = (  # step as a fraction of the sizes of variables and parameter, and weights of F at multiples of it
    (SHARE, CENTRAL_4),
    (float(np.finfo(float).eps) ** (1.0 / 3.0), ((1.0, 0.5), (-1.0, -0.5))),
)


class DifferencedResidual:
    """F with its derivatives along the sensitivities, in Python."""

    def __init__(self, problem: ImplicitDAE | SemiExplicitDAE, columns: Sequence[Column]):
        self._implicit, self._columns, self._n = problem.implicit(), tuple(columns), problem.n
        self._parameters = ParameterNumbers.of(problem)
        self._shifted: dict[tuple[int, float], Any] = {}

    def __call__(self, t: float, y: np.ndarray, yp: np.ndarray) -> np.ndarray:
        n, implicit = self._n, self._implicit
        result = [implicit.evaluate(t, y[:n], yp[:n])]
        for k, column in enumerate(self._columns, start=1):
            s, sp = y[k * n : (k + 1) * n], yp[k * n : (k + 1) * n]
            for share, stencil in _STENCILS:
                delta = share * self._size(column, y[:n], yp[:n], s, sp)
                # rounded to a power of 2, so that few different parameter values occur, which are cached
                delta = float(2.0 ** np.floor(np.log2(delta)))
                quotient = self._quotient(t, (y[:n], yp[:n], s, sp), column, delta, stencil)
                if np.isfinite(quotient).all():
                    break
            result.append(quotient)
        return np.concatenate(result)

    def _quotient(self, t: float, point, column: Column, delta: float, stencil) -> np.ndarray:
        y, yp, s, sp = point
        total = np.zeros(self._n)
        for multiple, weight in stencil:
            change = multiple * delta
            try:
                value = self._with(column, change).evaluate(t, y + change * s, yp + change * sp)
            except (ArithmeticError, ValueError, Unevaluable):
                return np.full(self._n, np.nan)
            total += weight / delta * value
        return total

    def _size(self, column: Column, y, yp, s, sp) -> float:
        """The smallest change of the parameter with which the parameter or the variables change by their own size."""
        sizes = [] if column.position is None else [abs(self._parameters.values[column.position]) or 1.0]
        largest = max(float(np.max(np.abs(s), initial=0.0)), 1e-300)
        sizes.append((float(np.max(np.abs(y), initial=0.0)) or 1.0) / largest)
        slope = float(np.max(np.abs(yp), initial=0.0))
        if slope > 0.0:
            sizes.append(slope / max(float(np.max(np.abs(sp), initial=0.0)), 1e-300))
        return min(sizes)

    def _with(self, column: Column, change: float) -> Any:
        if column.position is None:
            return self._implicit
        key = column.position, change
        if key not in self._shifted:
            params = self._parameters.changed({column.position: self._parameters.values[column.position] + change})
            self._shifted[key] = self._implicit.with_params(params)
        return self._shifted[key]


def differenced_problem(problem: ImplicitDAE | SemiExplicitDAE, columns: Sequence[Column]) -> Variational:
    """The problem with variational equations by differences."""
    made = _enlarged(problem, columns, DifferencedResidual(problem, columns), None)
    return Variational(made, ParameterNumbers.of(problem).layout, (), Dependencies())


# --- for explicit and half-explicit methods ---------------------------------------------------------------------------

# The variational equations of y' = f(t, y, p) are an ordinary differential equation, and those of y' = f(t, y, z, p), 0
# = g(t, y, z, p) are semi-explicit of the same index,
#
# .. math::
#
#     s' = f_y s + f_z \sigma + f_p, \qquad 0 = g_y s + g_z \sigma + g_p ,
#
# so that a method is applied to both together; each stage satisfies the constraint and the differentiated constraint.
# The matrix g_y f_z of a half-explicit stage is the same for z and for every sigma.


class ExplicitForm:
    """The variational equations of a problem as an ODE or a SemiExplicitDAE, from their residual (y' - f, g).

    The unknowns of `problem` are y, its sensitivities, and then z and its sensitivities; `place` has the position of
    each of the unknowns (y, z, s_1, s_2, ...) of the residual in them.
    """

    def __init__(self, problem: ODE | SemiExplicitDAE, variational: Variational):
        residual = variational.problem
        n, total = problem.n, residual.n
        n_y = problem.n_y if isinstance(problem, SemiExplicitDAE) else n
        algebraic = np.arange(total) % n >= n_y
        order = np.concatenate([np.flatnonzero(~algebraic), np.flatnonzero(algebraic)])
        self.place = np.argsort(order)
        names, count = [residual.label(int(i)) for i in order], int(np.sum(~algebraic))
        make = _graph_function if variational.is_exact else _Differenced
        f = make("f", residual, order, slice(0, count))
        if n_y == n:
            self.problem: Any = ODE(f, total, params=residual.params, names=names)
            return
        g = make("g", residual, order, slice(count, total))
        self.problem = SemiExplicitDAE(f, g, count, total - count, params=residual.params, names=names)
        object.__setattr__(self.problem, "copies", total // n)

    def own(self, values: np.ndarray) -> np.ndarray:
        """Values of the residual's unknowns in the order of this form."""
        return values[np.argsort(self.place)]

    def started(self, values: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
        """Initial values of this form."""
        values = self.own(values)
        if isinstance(self.problem, ODE):
            return values, None
        return values[: self.problem.n_y], values[self.problem.n_y :]

    def in_order(self, found: Solution) -> Solution:
        """A solution of this form in the unknowns of the residual."""
        dense = found.dense
        if dense is not None:
            dense = replace(dense, coefficients=dense.coefficients[:, self.place])
        ordered = copy(found)
        ordered.y, ordered.yp, ordered.dense = found.y[self.place], found.yp[self.place], dense
        return ordered


class _Asking(GraphFunction):
    """f or g and its derivatives; calls from Python first call the user's functions, which may raise."""

    def __init__(self, name: str, residual: ImplicitDAE, order: np.ndarray, *graph: Any):
        super().__init__(name, *graph)
        self._residual, self._place = residual.residual, np.argsort(order)

    def __call__(self, t: float, *values: Any) -> np.ndarray:
        count = len(self.arguments)
        stacked = np.concatenate(values[:count])[self._place]
        self._residual(t, stacked, np.zeros(stacked.size), *values[count:])
        return super().__call__(t, *values)


def _graph_function(name: str, residual: ImplicitDAE, order: np.ndarray, rows: slice) -> GraphFunction:
    """f or g as functions of (t, y, z): rows of the residual with zero slopes, with opposite sign for f."""
    source: Any = residual.residual
    total, count = residual.n, rows.stop if rows.start == 0 else rows.start
    sizes = {"y": count} | ({"z": total - count} if count < total else {})
    graph, known = Graph(), {}
    known["t", 0] = graph.argument("t", 0)
    for k, i in enumerate(order.tolist()):
        known["y", i] = graph.argument("y", k) if k < count else graph.argument("z", k - count)
        known["yp", i] = graph.zero
    if source.params is not None:
        parameters, length = source.params
        known |= {(parameters, k): graph.argument(parameters, k) for k in range(length)}
    nodes = inlined(source.graph, source.nodes[order[rows]].tolist(), graph, known)
    if rows.start == 0:
        nodes = [graph.negative(node) for node in nodes]
    return _Asking(name, residual, order, graph, nodes, sizes, source.params)


class _Differenced:
    """f or g with difference quotients as derivatives."""

    def __init__(self, name: str, residual: ImplicitDAE, order: np.ndarray, rows: slice):
        self.__name__, self._residual, self._rows = name, residual.residual, order[rows]
        self._place, self._sign = np.argsort(order), -1.0 if rows.start == 0 else 1.0

    def __call__(self, t: float, *values: np.ndarray) -> np.ndarray:
        stacked = np.concatenate(values)[self._place]
        return self._sign * self._residual(t, stacked, np.zeros(stacked.size))[self._rows]
