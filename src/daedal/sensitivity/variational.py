r"""The variational equations of a first-order problem on a graph, beside the equations themselves.

For :math:`F(t, y, y', p) = 0` the sensitivities :math:`s_i = \partial y / \partial p_i` satisfy

.. math::

    F_y s_i + F_{y'} s_i' + F_{p_i} = 0

(Brenan, Campbell, Petzold, section 7.5), with exact partial derivatives along the direction :math:`(s_i, s_i', e_i)`.
Initial values have sensitivities that differ in their start alone, with :math:`F_p = 0`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from daedal.problems import ImplicitDAE, SemiExplicitDAE
from daedal.sensitivity.parameters import Column
from daedal.symbolic.dependencies import Dependencies
from daedal.symbolic.derivative import directional
from daedal.symbolic.functions import GraphFunction
from daedal.symbolic.modes import NAME as MODES
from daedal.symbolic.modes import replaced
from daedal.symbolic.tracing.parameters import NAME, ParameterLayout
from daedal.symbolic.tracing.tracer import Tracer


@dataclass(frozen=True)
class Variational:
    """A problem with the variational equations for its parameters.

    Attributes
    ----------
    problem : ImplicitDAE
        In the unknowns (y, s_1, s_2, ...), its parameters a vector.
    layout : ParameterLayout or None
        Of the parameters of the problem that it was made of.
    idle : tuple of int
        Columns whose parameter does not occur in the equations.
    dependencies : Dependencies
        What the functions have read outside of their arguments.
    switches : tuple of Followed
        Those that are set by data: modes, which stand behind the parameters.
    switch_values : GraphFunction or None
        The switching functions.
    """

    problem: ImplicitDAE
    layout: ParameterLayout | None
    idle: tuple[int, ...]
    dependencies: Dependencies
    switches: tuple[Any, ...] = ()
    switch_values: GraphFunction | None = None

    @property
    def is_exact(self) -> bool:
        """Whether derivatives are exact, not differences."""
        return isinstance(self.problem.residual, GraphFunction)

    def numbers(self, params: Any) -> np.ndarray | None:
        """Parameters as the variational problem takes them."""
        return None if self.layout is None or not self.layout.count else self.layout.numbers(params)


class VariationalFunction(GraphFunction):
    """F beside its derivatives; called from Python it asks the user's functions first, which may raise."""

    def __init__(self, problem: ImplicitDAE | SemiExplicitDAE, layout: ParameterLayout | None, *graph: Any):
        super().__init__("residual", *graph)
        self._problem, self._layout = problem, layout

    def __call__(self, t: float, y: np.ndarray, yp: np.ndarray, *params: Any) -> np.ndarray:
        n, problem = self._problem.n, self._problem
        if params and self._layout is not None:
            numbers = list(map(float, params[0]))[: self._layout.count]  # modes stand behind
            problem = problem.with_params(self._layout.rebuilt(problem.params, numbers))
        problem.implicit().evaluate(t, y[:n], yp[:n])
        return super().__call__(t, y, yp, *params)


def variational_problem(
    problem: ImplicitDAE | SemiExplicitDAE, columns: Sequence[Column], follow: int = 0
) -> Variational:
    """The problem with its variational equations; raises Untraceable where its functions cannot be traced.

    With `follow`, up to so many switches are set by data.
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
        behind = {graph.argument(MODES, j): graph.argument(NAME, count + j) for j in range(len(switches))}
        params = np.concatenate([np.zeros(0) if params is None else params, np.full(len(switches), np.nan)])
        every = replaced(graph, [*nodes, *(switch.function for switch in switches)], behind)
        nodes, surfaces = every[: len(nodes)], every[len(nodes) :]
    if layout is not None and layout.count:
        layout.fixed = {graph.data[i][1]: value for i, value in graph.fixed.items() if graph.data[i][0] == NAME}
    own_params = None if params is None else (NAME, params.size)
    if raises != graph.false:  # there the function itself is asked
        nodes = [graph.where(raises, graph.constant(np.nan), x) for x in nodes]
    function = VariationalFunction(problem, layout, graph, nodes, {"y": total, "yp": total}, own_params)
    names = [problem.label(i) for i in range(n)]
    names += [f"d {name} / d {column.name}" for column in columns for name in names]
    algebraic = problem.implicit().algebraic
    tiled = None if algebraic is None else np.tile(algebraic, 1 + len(columns))
    made = ImplicitDAE(function, total, params=params, names=names, algebraic=tiled)
    values = GraphFunction("switches", graph, surfaces, {"y": total, "yp": total}, own_params) if switches else None
    return Variational(made, layout, tuple(idle), dependencies, tuple(switches), values)


def equations_of(tracer: Tracer, problem: ImplicitDAE | SemiExplicitDAE) -> tuple[list[int], Dependencies, int]:
    """F of the leading unknowns, what its functions depend on, and the condition under which they raise."""
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
    """A function as the user wrote it, also where it is machine code."""
    return getattr(function, "original", function)
