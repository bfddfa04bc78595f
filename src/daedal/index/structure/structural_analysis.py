"""The structural index of a problem, with the required check and a remedy if the check fails."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import reduce
from typing import Any

import numpy as np
import scipy.linalg

from daedal.common.tabular import listing
from daedal.errors import StructurallySingularError
from daedal.index.structure.equilibration import equilibrate
from daedal.index.structure.signature import (
    CANCELLATION,
    DulmageMendelsohn,
    StructuralSignature,
    cancel,
    equations_named,
    refuse_singular,
    true_orders,
    unknowns_named,
    vanishing,
)
from daedal.index.structure.system_equations import SystemEquations
from daedal.index.structure.system_jacobian import Regularity, SystemJacobian
from daedal.symbolic.derivative import sparsity
from daedal.symbolic.graph import evaluate
from daedal.symbolic.modes import replaced as substituted

# If the system Jacobian J is identically singular, u^T J = 0 for some u(t, x, ...). With L = {i: u_i != 0} and c_min =
# min c_i over L, the combination
#
#     f = sum over L of u_i f_i^(c_i - c_min)
#
# may replace an f_l with l in L and c_l = c_min: it contains lower derivatives than the structure of its parts
# suggests, so that the value of the signature matrix goes down, provided that u contains only derivatives of x_j of
# orders below d_j - c_min (G. Tan, N. S. Nedialkov and J. D. Pryce, Conversion methods for improving structural
# analysis of differential-algebraic equation systems, BIT 57, 2017, 845-865: theorem 4.1).

_MOST_ROWS = 1500
_MOST_COMBINED = 6
_DEPENDENT = 1e-10  # norm of the component of a row orthogonal to others below which the row depends on them
_TAKES_PART = 1e-7  # equations with a smaller fraction of the largest coefficient are omitted from a combination
_COMMON = 1000
"""Coefficients are rounded to fractions with denominators up to this."""


@dataclass(frozen=True)
class Combination:
    """The replacement of an equation by a combination of equations: one step of the method."""

    replaced: int  # the equation replaced by the combination
    members: list[tuple[int, int]]  # (i, k) for the k-th derivative of equation i in it
    coefficients: list[int]  # the nodes of the factors u_i
    terms: list[int]  # the nodes of the products of u_i with the differentiated equations, before terms cancel
    node: int  # the node of the combination


def combinations(equations: SystemEquations, jacobian: SystemJacobian) -> list[Combination]:
    """Combinations that lower the value of the signature matrix, each replacing another equation; possibly none.

    Examples
    --------
    >>> import daedal
    >>> from daedal.index.structure.system_equations import SystemEquations
    >>> from daedal.index.structure.structural_analysis import combinations
    >>> from daedal.index.structure.signature import StructuralSignature
    >>> from daedal.index.structure.system_jacobian import SystemJacobian
    >>> problem = daedal.ImplicitDAE(lambda t, y, yp: [yp[0] + yp[1] - y[0], 2 * yp[0] + 2 * yp[1] + y[1]], 2)
    >>> equations = SystemEquations(problem)
    >>> (found,) = combinations(equations, SystemJacobian(equations, StructuralSignature.of(equations)))
    >>> found.replaced, found.members
    (1, [(0, 0), (1, 0)])
    """
    rows = _concerned(jacobian)
    if not jacobian.samples or len(rows) > _MOST_ROWS:
        return []
    with equations.lock:
        found = [_combination(equations, jacobian, *circuit) for circuit in _circuits(jacobian, rows)]
    return [step for step in found if step is not None]


def _combination(
    equations: SystemEquations, jacobian: SystemJacobian, replaced: int, circuit: list[int]
) -> Combination | None:
    """The combination of a minimal set of dependent equations, if allowed."""
    factors = _constant_factors(equations, jacobian, circuit) or _cofactors(equations, jacobian, circuit)
    if factors is None or not _cancel(equations, jacobian, circuit, factors):
        return None
    graph, c = equations.graph, jacobian.signature.c
    lowest = min(int(c[i]) for i in circuit)
    if not _lower_orders(equations, factors, jacobian.signature.d - lowest):
        return None
    members = [(i, int(c[i]) - lowest) for i in circuit]
    parts = [equations.equation(i, times) for i, times in members]
    parts = substituted(graph, parts, dict.fromkeys(_cancelling(equations, parts, factors), graph.zero))
    terms = [graph.multiply(factor, part) for factor, part in zip(factors, parts, strict=True)]
    return Combination(replaced, members, factors, terms, reduce(graph.add, terms))


def _cancelling(equations: SystemEquations, parts: Sequence[int], factors: Sequence[int]) -> list[int]:
    """The unknowns and derivatives that cancel between parts of a combination with constant factors.

    The caller removes them from the parts, since sums such as 0.1 + 0.2 - 0.3 would leave round-off.
    """
    graph = equations.graph
    read = (graph.data[k] for k in graph.needed(parts) if graph.operations[k] == "argument")
    variables = sorted((int(name[1:]), j) for name, j in read if name.startswith("x"))
    nodes = [equations.unknown(j, order) for order, j in variables]
    sums: dict[int, list[float]] = {}
    varying = set[int]()
    for row, factor in zip(equations.jacobian(parts, nodes), factors, strict=True):
        for place, node in row.items():
            if graph.is_constant(node) and graph.is_constant(factor):
                sums.setdefault(place, []).append(graph.data[node] * graph.data[factor])
            else:
                varying.add(place)
    return [
        nodes[place]
        for place, values in sums.items()
        if place not in varying and abs(sum(values)) <= CANCELLATION * sum(map(abs, values))
    ]


def _concerned(jacobian: SystemJacobian) -> list[int]:
    """The rows of singular diagonal blocks and of all blocks whose columns they need, directly or indirectly."""
    row_of = {int(j): i for i, j in enumerate(jacobian.decomposition.matching)}
    waiting = [i for block in jacobian.generic.singular_blocks for i in block.rows]
    seen = set(waiting)
    while waiting:
        for j in jacobian.rows[waiting.pop()]:
            if row_of[j] not in seen:
                seen.add(row_of[j])
                waiting.append(row_of[j])
    return sorted(seen)


def _circuits(jacobian: SystemJacobian, rows: list[int]) -> list[tuple[int, list[int]]]:
    """Minimal sets of rows that are dependent at a random point, each with a row contained in no other set.

    Rows are added to a basis in the order of decreasing c; a row that depends on the basis, together with the rows
    needed to express it, is a minimal set in which it has the lowest c.
    """
    c = jacobian.signature.c
    order = sorted(rows, key=lambda i: (-c[i], i))
    matrix = jacobian.samples[0][order].toarray()
    matrix = matrix[:, np.any(matrix != 0.0, axis=0)]
    by_row, by_column = equilibrate(matrix)
    matrix = by_row[:, None] * matrix * by_column
    directions = np.zeros((min(matrix.shape), matrix.shape[1]))
    basis, dependent = list[int](), list[int]()
    for k, row in enumerate(matrix):
        known, rest = directions[: len(basis)], row
        for _ in range(2):  # two passes of Gram-Schmidt suffice
            rest = rest - (known @ rest) @ known
        size = np.linalg.norm(rest)
        if size <= _DEPENDENT * np.linalg.norm(row) or len(basis) == len(directions):
            dependent.append(k)
        else:
            directions[len(basis)] = rest / size
            basis.append(k)
    if not dependent:
        return []
    shares = scipy.linalg.lstsq(matrix[basis].T, matrix[dependent].T)[0].T
    found = []
    for k, share in zip(dependent, np.abs(shares), strict=True):
        others = [basis[place] for place in np.flatnonzero(share > _TAKES_PART * share.max(initial=0.0))]
        found.append((order[k], sorted(order[place] for place in (k, *others))))
    return found


def _constant_factors(equations: SystemEquations, jacobian: SystemJacobian, rows: list[int]) -> list[int] | None:
    """The factors as constants if they are equal at all random points, otherwise None."""
    graph = equations.graph
    columns = sorted({j for i in rows for j in jacobian.rows[i]})
    constant = all(graph.is_constant(node) for i in rows for node in jacobian.rows[i].values())
    by_row, by_column = equilibrate(_part(jacobian, 0, rows, columns))
    found = []
    for k in range(1 if constant else len(jacobian.samples)):
        scaled = by_row[:, None] * _part(jacobian, k, rows, columns) * by_column
        vector = np.linalg.svd(scaled, full_matrices=len(columns) < len(rows))[0][:, -1] * by_row
        found.append(vector / vector[np.argmax(np.abs(vector))])
    if np.abs(np.array(found) - found[0]).max() > 1e-9:
        return None
    nodes = []
    for value in found[0]:
        near = float(Fraction(value).limit_denominator(_COMMON))
        nodes.append(graph.constant(near if abs(near - value) < 1e-11 else value))
    return nodes


def _part(jacobian: SystemJacobian, sample: int, rows: list[int], columns: list[int]) -> np.ndarray:
    return jacobian.samples[sample][rows][:, columns].toarray()


def _cofactors(equations: SystemEquations, jacobian: SystemJacobian, rows: list[int]) -> list[int] | None:
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


def _determinant(equations: SystemEquations, rows: Sequence[dict[int, int]], columns: list[int]) -> int:
    graph = equations.graph
    if not rows:
        return graph.one
    total = graph.zero
    for k, j in enumerate(columns):
        if j in rows[0]:
            term = graph.multiply(rows[0][j], _determinant(equations, rows[1:], columns[:k] + columns[k + 1 :]))
            total = graph.subtract(total, term) if k % 2 else graph.add(total, term)
    return total


def _cancel(equations: SystemEquations, jacobian: SystemJacobian, rows: list[int], factors: list[int]) -> bool:
    """Whether u^T J = 0 at all random points, and u_i = 0 at none."""
    if not vanishing(equations, factors).isdisjoint(factors):
        return False
    columns = sorted({j for i in rows for j in jacobian.rows[i]})
    for k, point in enumerate(jacobian.points):
        u = np.array(evaluate(equations.graph, factors, point), dtype=float)
        terms = u[:, None] * _part(jacobian, k, rows, columns)
        if np.any(np.abs(terms.sum(axis=0)) > CANCELLATION * np.abs(terms).sum(axis=0)):
            return False
    return True


def _lower_orders(equations: SystemEquations, factors: list[int], limit: np.ndarray) -> bool:
    """Whether the factors contain only derivatives of x_j of orders below limit_j."""
    n, highest = equations.n, equations.highest(factors)
    found = sparsity(equations.graph, factors, equations.unknowns(range(highest + 1)))
    return all(place // n < limit[place % n] for places in found for place in places)


# --- the analysis -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class StructuralAnalysis:
    """The structural analysis of a problem, and whether it is reliable."""

    given: SystemEquations  # the equations of the problem
    # the equations finally analysed: the given equations, some of them replaced by combinations
    equations: SystemEquations
    signature: StructuralSignature  # structural signature
    jacobian: SystemJacobian  # system Jacobian
    combinations: list[Combination]  # the replacements, in order
    regularity: Regularity  # whether the system Jacobian is nonsingular: at the given point, otherwise at random points
    at_point: bool = False  # whether `regularity` is that of a given point

    @classmethod
    def of(cls, equations: SystemEquations) -> StructuralAnalysis:
        """Analyse equations, with their system Jacobian at random points; see :meth:`at` for a given point.

        Raises StructurallySingularError if a set of equations has too few unknowns, or is redundant or contradictory.

        Examples
        --------
        The structure of these equations suggests two states; this is wrong, since the derivatives only occur as a sum:

        >>> import daedal
        >>> from daedal.index.structure.system_equations import SystemEquations
        >>> from daedal.index.structure.structural_analysis import StructuralAnalysis
        >>> def residual(t, y, yp):
        ...     return [yp[0] + yp[1] - y[0], 2 * yp[0] + 2 * yp[1] + y[1]]
        >>> found = StructuralAnalysis.of(SystemEquations(daedal.ImplicitDAE(residual, 2)))
        >>> found.index, found.degrees_of_freedom, len(found.combinations)
        (1, 1, 1)
        """
        current, steps, last, before = equations, list[Combination](), list[Combination](), None
        while True:
            sigma, vanished = true_orders(current)
            for step in last:
                if not sigma[step.replaced]:
                    _refuse_dependent(equations, [*steps, *last], step)
            refuse_singular(DulmageMendelsohn.of(sigma, current.n), equations.names, vanished)
            signature = StructuralSignature.of_orders(sigma, vanished)
            jacobian = SystemJacobian(current, signature)
            if before is not None and signature.degrees_of_freedom >= before[2].degrees_of_freedom:
                # The equations are dependent at the random points, but not everywhere: a suitable step lowers the
                # value.
                current, jacobian, signature = before
                break
            steps += last
            last = combinations(current, jacobian) if jacobian.generic.verdict == "singular" else []
            if not last:
                break
            before = current, jacobian, signature
            current = current.replaced({step.replaced: step.node for step in last})
        return cls(equations, current, signature, jacobian, steps, jacobian.generic)

    def at(self, t: float, derivatives: Any) -> StructuralAnalysis:
        """A copy with the system Jacobian at a point: t and x, x', ... (one row for each derivative).

        The result is unchanged if combinations contain higher derivatives than given.
        """
        rows = np.atleast_2d(np.asarray(derivatives, dtype=float))
        if len(rows) <= self.equations.highest(self.jacobian.nodes):
            return self
        return replace(self, regularity=self.jacobian.regularity(t, rows), at_point=True)

    @property
    def succeeds(self) -> bool:
        """Whether the system Jacobian is nonsingular, so that index and degrees of freedom are reliable."""
        return bool(self.regularity)

    @property
    def differentiations(self) -> np.ndarray:
        """The number of differentiations of each given equation, including those inside combinations."""
        times = self.signature.c.tolist()
        for step in reversed(self.combinations):
            outer, times[step.replaced] = times[step.replaced], 0
            for i, inner in step.members:
                times[i] = max(times[i], outer + inner)
        return np.array(times)

    @property
    def index(self) -> int | None:
        """The structural index of the given equations; None if the method fails."""
        if not self.succeeds:
            return None
        return int(self.differentiations.max(initial=0)) + int(bool(np.any(self.signature.d == 0)))

    @property
    def degrees_of_freedom(self) -> int | None:
        """The number of free initial values; None if the method fails."""
        return self.signature.degrees_of_freedom if self.succeeds else None

    @property
    def blocks(self) -> DulmageMendelsohn:
        """The fine block-triangular form, which is that of the system Jacobian."""
        return self.jacobian.decomposition

    def __str__(self) -> str:
        steps = [
            f"Equation {step.replaced} was replaced by a combination: {_combined(step)}." for step in self.combinations
        ]
        return " ".join([*steps, f"{self.verdict}."])

    @property
    def verdict(self) -> str:
        """A description of the result for the system Jacobian."""
        regularity = self.regularity
        where = "at the point" if self.at_point else "at random points"
        measure = f"smallest singular value {regularity.smallest:.1e} of the largest, {where}"
        if self.succeeds:
            return f"The system Jacobian is nonsingular ({measure})"
        if regularity.verdict == "unclear":
            return (
                f"Whether the system Jacobian is singular is unclear ({measure}): the structure does not give the index"
            )
        identically = "" if self.at_point and self.jacobian.generic else "identically "
        parts = f"{equations_named(regularity.equations)}, {unknowns_named(regularity.unknowns, self.given.names)}"
        return (
            f"The signature method fails: the system Jacobian is {identically}singular ({measure}), in {parts}. "
            f"The index suggested by the structure, {self.signature.index}, is not reliable"
        )


_OFTEN = {1: "the first derivative", 2: "the second derivative", 3: "the third derivative"}


def _combined(step: Combination) -> str:
    parts = (f"{_OFTEN.get(k, f'derivative {k}')} of equation {i}" if k else f"equation {i}" for i, k in step.members)
    return listing(parts)


def _refuse_dependent(equations: SystemEquations, steps: Sequence[Combination], last: Combination) -> None:
    """Raise an error: the last combination contains no unknown, so its equations are redundant or contradictory."""
    involved = {last.replaced}
    for step in reversed(steps):  # trace combinations back to the original equations
        if step.replaced in involved:
            involved |= {i for i, _ in step.members}
    named = equations_named(sorted(involved))
    if cancel(equations, last.terms):
        cause = f"{named} are dependent: a combination of them is 0 = 0. One of them is redundant"
    else:
        cause = f"{named} contradict each other: a combination of them contains no unknown and does not vanish"
    remedy = "Remedy: replace one of them by the missing equation."
    message = f"the equations do not determine the unknowns (equations are numbered from 0): {cause}. {remedy}"
    raise StructurallySingularError(message, sorted(involved))
