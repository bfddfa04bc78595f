"""Equations combined so that hidden cancellations become visible: the linear combination method.

Where the system Jacobian J is singular identically, u^T J = 0 for some u(t, x, ...). With L = {i: u_i != 0} and
c_min = min c_i over L, the combination

    f = sum over L of u_i f_i^(c_i - c_min)

may take the place of an f_l with l in L and c_l = c_min: it contains lower derivatives than the structure of its parts
suggests, so that the value of the signature matrix goes down, provided that u contains derivatives of x_j of orders
below d_j - c_min alone (G. Tan, N. S. Nedialkov and J. D. Pryce, Conversion methods for improving structural analysis
of differential-algebraic equation systems, BIT 57, 2017, 845-865: theorem 4.1).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import scipy.linalg

from daedal.structure.equations import Equations
from daedal.structure.system_jacobian import SINGULAR, SystemJacobian
from daedal.structure.vanishing import vanishing
from daedal.symbolic.derivative import sparsity

_MOST_ROWS = 300
_MOST_COMBINED = 6
_COMMON = 1000
"""Coefficients that are fractions of such denominators are taken for them."""


@dataclass(frozen=True)
class Combination:
    """One step of the method.

    Attributes
    ----------
    replaced : int
        The equation in whose place the combination stands.
    members : list of tuple
        (i, k) for the k-th derivative of equation i in it.
    coefficients : list of int
        The nodes of the factors u_i.
    node : int
        The node of the combination.
    """

    replaced: int
    members: list[tuple[int, int]]
    coefficients: list[int]
    node: int


def combination(equations: Equations, jacobian: SystemJacobian) -> Combination | None:
    """A combination that lowers the value of the signature matrix; None if none is found.

    Examples
    --------
    >>> import daedal
    >>> from daedal.structure.equations import Equations
    >>> from daedal.structure.linear_combination import combination
    >>> from daedal.structure.signature import Signature
    >>> from daedal.structure.system_jacobian import SystemJacobian
    >>> problem = daedal.ImplicitDAE(lambda t, y, yp: [yp[0] + yp[1] - y[0], 2 * yp[0] + 2 * yp[1] + y[1]], 2)
    >>> equations = Equations(problem)
    >>> found = combination(equations, SystemJacobian(equations, Signature.of(equations)))
    >>> found.replaced, found.members
    (0, [(0, 0), (1, 0)])
    """
    rows = _dependent_rows(jacobian)
    if rows is None:
        return None
    coefficients = _constant_factors(equations, jacobian, rows) or _cofactors(equations, jacobian, rows)
    if coefficients is None or not _cancel(equations, jacobian, rows, coefficients):
        return None
    graph, signature = equations.graph, jacobian.signature
    lowest = min(int(signature.c[i]) for i in rows)
    if not _lower_orders(equations, coefficients, signature.d - lowest):
        return None
    members = [(i, int(signature.c[i]) - lowest) for i in rows]
    total = graph.zero
    for (i, times), factor in zip(members, coefficients, strict=True):
        total = graph.add(total, graph.multiply(factor, equations.equation(i, times)))
    places = [k for k, (_, times) in enumerate(members) if not times]
    replaced = next((k for k in places if graph.is_constant(coefficients[k])), places[0])
    return Combination(rows[replaced], members, coefficients, total)


def _dependent_rows(jacobian: SystemJacobian) -> list[int] | None:
    """The fewest rows that can be found which are linearly dependent at a random point."""
    if not jacobian.samples:
        return None
    rows = _needed_blocks(jacobian)
    if len(rows) > _MOST_ROWS:
        return None
    matrix = jacobian.samples[0][rows].toarray()
    matrix = matrix[:, np.any(matrix != 0.0, axis=0)]
    sizes = np.abs(matrix).max(axis=1, initial=0.0)
    matrix /= np.where(sizes > 0.0, sizes, 1.0)[:, None]
    kept = list(range(len(rows)))
    for k in range(len(rows)):
        fewer = [i for i in kept if i != k]
        if fewer and _rank(matrix[fewer]) < len(fewer):
            kept = fewer
    return [rows[k] for k in kept] if _rank(matrix[kept]) < len(kept) else None


def _needed_blocks(jacobian: SystemJacobian) -> list[int]:
    """The rows of the first singular diagonal block and of all blocks whose columns it needs, directly or not."""
    decomposition, bad = jacobian.decomposition, set(jacobian.generic.equations)
    row_of = {int(j): i for i, j in enumerate(decomposition.matching)}
    waiting = next((list(block.rows) for block in decomposition.blocks if bad & set(block.rows)), [])
    seen = set(waiting)
    while waiting:
        for j in jacobian.rows[waiting.pop()]:
            if row_of[j] not in seen:
                seen.add(row_of[j])
                waiting.append(row_of[j])
    return sorted(seen)


def _rank(matrix: np.ndarray) -> int:
    values = np.linalg.svd(matrix, compute_uv=False)
    return int(np.sum(values > SINGULAR * values[0])) if values.size and values[0] > 0.0 else 0


def _constant_factors(equations: Equations, jacobian: SystemJacobian, rows: list[int]) -> list[int] | None:
    """The factors if they are the same at all random points."""
    found = []
    for sample in jacobian.samples:
        left, _, _ = np.linalg.svd(sample[rows].toarray())
        vector = left[:, -1]
        found.append(vector / vector[np.argmax(np.abs(vector))])
    if np.abs(np.array(found) - found[0]).max() > 1e-9:
        return None
    nodes = []
    for value in found[0]:
        near = float(Fraction(value).limit_denominator(_COMMON))
        nodes.append(equations.graph.constant(near if abs(near - value) < 1e-11 else value))
    return nodes


def _cofactors(equations: Equations, jacobian: SystemJacobian, rows: list[int]) -> list[int] | None:
    """The factors as determinants, u_i = (-1)^i det(J without row i), in columns of full rank."""
    if len(rows) > _MOST_COMBINED:
        return None
    _, _, order = scipy.linalg.qr(jacobian.samples[0][rows].toarray(), mode="economic", pivoting=True)
    columns = sorted(int(j) for j in order[: len(rows) - 1])
    nodes = []
    for k in range(len(rows)):
        minor = [jacobian.rows[i] for i in rows if i != rows[k]]
        value = _determinant(equations, minor, columns)
        nodes.append(equations.graph.negative(value) if k % 2 else value)
    return nodes


def _determinant(equations: Equations, rows: Sequence[dict[int, int]], columns: list[int]) -> int:
    """By expansion along the first row."""
    graph = equations.graph
    if not rows:
        return graph.one
    total = graph.zero
    for k, j in enumerate(columns):
        if j in rows[0]:
            term = graph.multiply(rows[0][j], _determinant(equations, rows[1:], columns[:k] + columns[k + 1 :]))
            total = graph.subtract(total, term) if k % 2 else graph.add(total, term)
    return total


def _cancel(equations: Equations, jacobian: SystemJacobian, rows: list[int], factors: list[int]) -> bool:
    """Whether u^T J = 0 at all random points, and no u_i."""
    graph, sums = equations.graph, dict[int, int]()
    for i, factor in zip(rows, factors, strict=True):
        for j, node in jacobian.rows[i].items():
            sums[j] = graph.add(sums.get(j, graph.zero), graph.multiply(factor, node))
    zeros = vanishing(equations, [*sums.values(), *factors])
    return zeros.issuperset(sums.values()) and zeros.isdisjoint(factors)


def _lower_orders(equations: Equations, factors: list[int], limit: np.ndarray) -> bool:
    """Whether the factors contain derivatives of x_j of orders below limit_j alone."""
    n, highest = equations.n, equations.highest(factors)
    found = sparsity(equations.graph, factors, equations.unknowns(range(highest + 1)))
    return all(place // n < limit[place % n] for places in found for place in places)
