"""A linear problem, in whatever form it was stated, as A(t) x' + B(t) x = f(t) with exact derivatives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from daedal.errors import InvalidProblemError
from daedal.linear.time_varying import TimeVarying
from daedal.problems import LinearDAE
from daedal.structure.equations import Equations


def linear_system(problem: Any) -> TimeVarying:
    """The system A(t) x' + B(t) x = f(t) of a problem whose equations are linear.

    Coefficients and right-hand side are taken from the traced equations, with exact derivatives with respect to time.

    Parameters
    ----------
    problem : ImplicitDAE, SemiExplicitDAE or LinearDAE

    Returns
    -------
    daedal.linear.TimeVarying

    Raises
    ------
    InvalidProblemError
        If an equation is not linear in the unknowns and their derivatives; it is named.

    Examples
    --------
    >>> import daedal, numpy as np
    >>> problem = daedal.ImplicitDAE(lambda t, y, yp: [yp[0] - y[1], y[0] - np.sin(t)], 2, names=["x", "v"])
    >>> system = daedal.linear_system(problem)
    >>> system.index(0.0), system.consistent([1.0, 0.0], 0.0).x
    (2, array([0., 1.]))
    """
    equations = Equations(problem.semi_explicit() if isinstance(problem, LinearDAE) else problem)
    if equations.order != 1:
        raise InvalidProblemError("a SecondOrderDAE has no system of first order; give an ImplicitDAE")
    n = equations.n
    rows = equations.jacobian(equations.nodes, equations.unknowns([0, 1]))
    graph = equations.graph
    for i, row in enumerate(rows):
        if any(
            graph.operations[k] == "argument" and graph.data[k][0].startswith("x") for k in graph.needed(row.values())
        ):
            raise InvalidProblemError(f"equation {i} is not linear in the unknowns and their derivatives")
    zero = graph.constant(0.0)
    table = [[row.get(j, zero) for j in range(2 * n)] for row in rows]
    B = _levels(equations, [node for row in table for node in row[:n]])
    A = _levels(equations, [node for row in table for node in row[n:]])

    def matrix(level: Callable[[float, int], np.ndarray]) -> Callable[[float, int], np.ndarray]:
        return lambda t, order: level(t, order).reshape(n, n)

    f = _levels(equations, equations.nodes)
    at_A, at_B = matrix(A), matrix(B)
    return TimeVarying(
        lambda t: at_A(t, 0),
        lambda t: at_B(t, 0),
        lambda t: -f(t, 0),
        n=n,
        names=equations.names,
        A_derivatives=at_A,
        B_derivatives=at_B,
        f_derivatives=lambda t, order: -f(t, order),
    )


def _levels(equations: Equations, nodes: list[int]) -> Callable[[float, int], np.ndarray]:
    """Nodes and their total derivatives, with all unknowns and their derivatives set to zero."""
    derivatives, codes = [nodes], [equations.evaluator(nodes)]

    def value(t: float, order: int) -> np.ndarray:
        while len(codes) <= order:
            derivatives.append(equations.rates(derivatives[-1]))
            codes.append(equations.evaluator(derivatives[-1]))
        return codes[order](t, np.zeros((order + 2, equations.n)))

    return value
