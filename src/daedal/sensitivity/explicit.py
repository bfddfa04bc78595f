r"""Variational equations in the form that explicit and half-explicit methods take.

Those of :math:`y' = f(t, y, p)` are an ordinary differential equation again, and those of
:math:`y' = f(t, y, z, p),\; 0 = g(t, y, z, p)` are semi-explicit of the same index,

.. math::

    s' = f_y s + f_z \sigma + f_p, \qquad 0 = g_y s + g_z \sigma + g_p ,

so that a method is applied to both together: its stages contain their own derivatives, and each of them satisfies the
differentiated constraint as it does the constraint. The matrix :math:`g_y f_z` of a half-explicit stage is that of z
and of every :math:`\sigma`.
"""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np

from daedal.problems import ODE, ImplicitDAE, SemiExplicitDAE
from daedal.sensitivity.variational import Variational
from daedal.solution.solution import Solution
from daedal.symbolic.functions import GraphFunction, inlined
from daedal.symbolic.graph import Graph


class ExplicitForm:
    """The variational equations of a problem as an ODE or a SemiExplicitDAE.

    Parameters
    ----------
    problem : ODE or SemiExplicitDAE
        As it was stated.
    variational : Variational
        Its variational equations as a residual, which is (y' - f, g) for every column.

    Attributes
    ----------
    problem : ODE or SemiExplicitDAE
        In the unknowns y, its sensitivities, and then z and its sensitivities.
    place : numpy.ndarray
        Where the unknowns (y, z, s_1, s_2, ...) of the residual stand in them.
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
        """Values of the unknowns of the residual in the order of this form."""
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
    """f or g beside their derivatives; called from Python it asks the user's functions first, which may raise."""

    def __init__(self, name: str, residual: ImplicitDAE, order: np.ndarray, *graph: Any):
        super().__init__(name, *graph)
        self._residual, self._place = residual.residual, np.argsort(order)

    def __call__(self, t: float, *values: Any) -> np.ndarray:
        count = len(self.arguments)
        stacked = np.concatenate(values[:count])[self._place]
        self._residual(t, stacked, np.zeros(stacked.size), *values[count:])
        return super().__call__(t, *values)


def _graph_function(name: str, residual: ImplicitDAE, order: np.ndarray, rows: slice) -> GraphFunction:
    """f as minus the residual without slopes, or g."""
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
    """f or g beside difference quotients of them."""

    def __init__(self, name: str, residual: ImplicitDAE, order: np.ndarray, rows: slice):
        self.__name__, self._residual, self._rows = name, residual.residual, order[rows]
        self._place, self._sign = np.argsort(order), -1.0 if rows.start == 0 else 1.0

    def __call__(self, t: float, *values: np.ndarray) -> np.ndarray:
        stacked = np.concatenate(values)[self._place]
        return self._sign * self._residual(t, stacked, np.zeros(stacked.size))[self._rows]
