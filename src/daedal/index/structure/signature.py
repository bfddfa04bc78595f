"""Structure from orders of derivatives: cancellation, Pryce's signature method, Dulmage-Mendelsohn decomposition."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import reduce
from heapq import heapify, heappop, heappush
from typing import Any

import numpy as np
import scipy.sparse as sparse
from scipy.sparse.csgraph import connected_components, maximum_bipartite_matching, min_weight_full_bipartite_matching

from daedal.common.tabular import derivative_name, listing
from daedal.errors import StructurallySingularError
from daedal.index.structure.system_equations import SystemEquations
from daedal.symbolic.graph import Graph, evaluate
from daedal.symbolic.operations import ARITHMETIC, FUNCTIONS
from daedal.symbolic.tracing.parameters import NAME

_POINTS = 6
CANCELLATION = 1e-11
"""Relative remainder of a sum whose terms cancel: round-off of a few dozen operations."""

Probe = tuple[np.ndarray, np.ndarray]
"""Values at the random points, and their sizes without cancellation."""


def random_points(equations: SystemEquations, orders: int, count: int = _POINTS) -> dict[str, np.ndarray]:
    """Arguments of the graph at random points, some of them positive, all of moderate size; the same in every call.

    The parameters are those of the problem.
    """
    random = np.random.default_rng(20010101)
    lowest = np.where(np.arange(count) % 2, -0.9, 0.1)
    points = {"t": random.uniform(0.1, 0.9, (1, count))}
    for k in range(orders + 1):
        points[f"x{k}"] = lowest + (0.9 - lowest) * random.random((equations.n, count))
    if equations.params is not None:
        points[NAME] = np.repeat(np.asarray(equations.params, dtype=float)[:, None], count, axis=1)
    return points


def vanishing(equations: SystemEquations, nodes: Sequence[int]) -> set[int]:
    """The nodes that are zero at every random point at which they are defined.

    A node counts as zero if its value is below 1e-11 of its terms. Nodes that contain a switch (``np.where``, a
    maximum, a table) or are undefined at all points are never included.

    Examples
    --------
    >>> import daedal
    >>> import numpy as np
    >>> from daedal.index.structure.system_equations import SystemEquations
    >>> from daedal.index.structure.signature import vanishing
    >>> problem = daedal.ImplicitDAE(lambda t, y, yp: [(np.cos(t) ** 2 + np.sin(t) ** 2 - 1) * yp[0] + y[0]], 1)
    >>> equations = SystemEquations(problem)
    >>> (row,) = equations.jacobian(equations.nodes, equations.unknowns([0, 1]))
    >>> vanishing(equations, list(row.values())) == {row[1]}
    True
    """
    graph = equations.graph
    candidates = [i for i in nodes if not graph.is_constant(i)]
    found = {i for i in nodes if graph.is_zero(i)}
    if not candidates:
        return found
    points = random_points(equations, max(equations.order, equations.highest(candidates)))
    probes = _sweep(graph, candidates, points)
    for i in candidates:
        probe = probes[i]
        if probe is None:
            continue
        value, magnitude = probe
        defined = np.isfinite(value) & np.isfinite(magnitude)
        if defined.any() and np.all(np.abs(value[defined]) <= CANCELLATION * magnitude[defined]):
            found.add(i)
    return found


def cancel(equations: SystemEquations, terms: Sequence[int]) -> bool:
    """Whether the sum of terms is zero, relative to them, at every random point at which they are defined."""
    points = random_points(equations, max(equations.order, equations.highest(terms)))
    seen = False
    for k in range(_POINTS):
        here = {name: vector[:, k] for name, vector in points.items()}
        values = np.array(evaluate(equations.graph, terms, here), dtype=float)
        if np.all(np.isfinite(values)):
            seen = True
            if abs(values.sum()) > CANCELLATION * np.abs(values).sum():
                return False
    return seen


def _sweep(graph: Graph, nodes: Sequence[int], points: dict[str, np.ndarray]) -> dict[int, Probe | None]:
    probes: dict[int, Probe | None] = {}
    with np.errstate(all="ignore"):
        for i in graph.needed(nodes):
            operands = [probes[k] for k in graph.operands[i]]
            operation, datum = graph.operations[i], graph.data[i]
            if operation == "argument":
                known = points.get(datum[0])
                probes[i] = None if known is None else (known[datum[1]], np.abs(known[datum[1]]))
            elif operation == "constant":
                probes[i] = np.asarray(datum), np.abs(np.asarray(datum))
            elif any(probe is None for probe in operands) or not (operation in ARITHMETIC or operation in _SMOOTH):
                probes[i] = None
            else:
                probes[i] = _probe(operation, operands)
    return probes


def _probe(operation: str, operands: Sequence[Any]) -> Probe:
    values, magnitudes = zip(*operands, strict=True)
    if operation not in ARITHMETIC:
        value = FUNCTIONS[operation].evaluate(*values)
        return value, np.abs(value)
    value = ARITHMETIC[operation].evaluate(*values)
    if operation == "divide":
        return value, magnitudes[0] / np.abs(values[1])
    combine = np.multiply if operation == "multiply" else np.add
    return value, reduce(combine, magnitudes)


_SMOOTH = {name for name, operation in FUNCTIONS.items() if not operation.kink} - {"erf", "erfc"}


# --- Pryce's signature method: how often each equation must be differentiated, from the orders of derivatives alone --

# The signature matrix Sigma has sigma_ij, the order of the highest derivative of unknown x_j in equation f_i, or minus
# infinity where x_j does not occur. A transversal, one entry in each row and column, of the highest value and the
# smallest numbers c_i, d_j >= 0 with
#
#     d_j - c_i >= sigma_ij for all i, j,   with equality on the transversal,
#
# mean that f_i is to be differentiated c_i times and that this determines x_j^(d_j). They are correct if the system
# Jacobian
#
#     J_ij = d f_i / d x_j^(sigma_ij) where d_j - c_i = sigma_ij, otherwise 0,
#
# is nonsingular at a consistent point; then the structural index is max c_i, plus 1 if some d_j = 0, it bounds the
# differentiation index, and sum d_j - sum c_i initial values are free (J. D. Pryce, A simple structural analysis method
# for DAEs, BIT 41, 2001, 364-394: sections 3 and 4, equation (9) for J, algorithm 3.1 for the offsets).

Orders = list[dict[int, int]]
"""For each equation, {unknown: order of its highest derivative}."""


@dataclass(frozen=True)
class StructuralSignature:
    """The structure of a system of equations, from the orders of derivatives.

    Examples
    --------
    The pendulum x'' = -x lam, y'' = -y lam - 1, x^2 + y^2 = 1 as first-order equations:

    >>> import daedal
    >>> from daedal.index.structure.system_equations import SystemEquations
    >>> from daedal.index.structure.signature import StructuralSignature
    >>> def pendulum(t, y, yp):
    ...     x, z, u, w, lam = y
    ...     return [yp[0] - u, yp[1] - w, yp[2] + x * lam, yp[3] + z * lam + 1, x**2 + z**2 - 1]
    >>> signature = StructuralSignature.of(SystemEquations(daedal.ImplicitDAE(pendulum, 5)))
    >>> signature.index, signature.degrees_of_freedom
    (3, 2)
    >>> signature.c.tolist(), signature.d.tolist()
    ([1, 1, 0, 0, 2], [2, 2, 1, 1, 0])
    """

    sigma: Orders  # for each equation: its unknowns with their highest derivatives
    transversal: np.ndarray  # a transversal of the highest value: equation i determines unknown ``transversal[i]``
    c: np.ndarray  # number of differentiations of each equation
    d: np.ndarray  # the derivative of each unknown determined by the differentiated equations
    # The structural index: the index itself if the system Jacobian is nonsingular, except for the few problems whose
    # structural index is too high
    index: int
    degrees_of_freedom: int  # number of free initial values: the value of the transversal
    # (i, j, order) of derivatives that occur in equation i but cancel
    vanished: list[tuple[int, int, int]] = field(default_factory=list)

    @classmethod
    def of(cls, equations: SystemEquations) -> StructuralSignature:
        """The signature of the equations of a problem, cached for the latest parameters.

        Raises StructurallySingularError if a set of equations contains fewer unknowns than equations.
        """
        numbers = None if equations.params is None else equations.params.tobytes()
        known = equations.levels.get(cls)
        if known is not None and known[0] == numbers:
            return known[1]
        sigma, vanished = true_orders(equations)
        refuse_singular(DulmageMendelsohn.of(sigma, equations.n), equations.names, vanished)
        found = cls.of_orders(sigma, vanished)
        equations.levels[cls] = numbers, found
        return found

    @classmethod
    def of_orders(cls, sigma: Orders, vanished: Sequence[tuple[int, int, int]] = ()) -> StructuralSignature:
        """The signature of equations given by the orders of the derivatives in them."""
        transversal = highest_value_transversal(sigma)
        c, d = canonical_offsets(sigma, transversal)
        index = int(c.max(initial=0)) + int(bool(np.any(d == 0)))
        return cls(sigma, transversal, c, d, index, int(d.sum() - c.sum()), list(vanished))

    def leading(self) -> Orders:
        """The entries of sigma with d_j - c_i = sigma_ij: the pattern of the system Jacobian."""
        c, d = self.c.tolist(), self.d.tolist()
        return [{j: k for j, k in row.items() if d[j] - c[i] == k} for i, row in enumerate(self.sigma)]


def true_orders(equations: SystemEquations) -> tuple[Orders, list[tuple[int, int, int]]]:
    """The highest derivative of each unknown on which each equation depends, and (i, j, order) of those that cancel.

    A derivative that occurs but cancels, such as x' in (x' + y') - x', would make the orders too high: the graph
    detects most of these derivatives, random points the rest.
    """
    partials, sigma = equations.partials, list[dict[int, int]]()
    zeros = vanishing(equations, [node for row in partials for node in row.values()])
    for row in partials:
        orders: dict[int, int] = {}
        for (j, k), node in row.items():
            if node not in zeros:
                orders[j] = max(k, orders.get(j, 0))
        sigma.append(dict(sorted(orders.items())))
    written = equations.signature()
    dropped = [(i, j, k) for i, row in enumerate(written) for j, k in row.items() if sigma[i].get(j) != k]
    return sigma, dropped


def highest_value_transversal(sigma: Orders) -> np.ndarray:
    """For each equation a distinct unknown, such that the sum of the orders is maximal.

    It must exist: see :func:`daedal.index.structure.signature.refuse_singular`.
    """
    return best_transversal(*triplets(sigma), len(sigma))


def best_transversal(rows: np.ndarray, columns: np.ndarray, values: np.ndarray, n: int) -> np.ndarray:
    """For each row a distinct column, such that the sum of the values (integers) is maximal.

    Raises ValueError if there is none.
    """
    weights = 1.0 + values.max(initial=0) - values  # positive, since the matching removes explicit zeros
    matrix = sparse.csr_array((weights, (rows, columns)), shape=(n, n))
    matched, transversal = min_weight_full_bipartite_matching(matrix)
    return transversal[np.argsort(matched)]


def canonical_offsets(sigma: Orders, transversal: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The smallest c, d >= 0 of a transversal of highest value, by Pryce's fixed-point iteration (algorithm 3.1)."""
    rows, columns, orders = triplets(sigma)
    return smallest_duals(rows, columns, orders, transversal)


def smallest_duals(
    rows: np.ndarray, columns: np.ndarray, values: np.ndarray, transversal: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The smallest c >= 0, with d, such that d_j - c_i >= value_ij, with equality on a transversal of highest value."""
    on_transversal = np.zeros(transversal.size, dtype=values.dtype)
    here = transversal[rows] == columns
    on_transversal[rows[here]] = values[here]
    c = np.zeros_like(on_transversal)
    while True:
        d = np.full_like(c, values.min(initial=0))  # every column has an entry
        np.maximum.at(d, columns, values + c[rows])
        following = d[transversal] - on_transversal
        if np.array_equal(following, c):
            return c, d
        c = following


def triplets(sigma: Orders) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows, columns and orders of the entries of a signature matrix."""
    rows = np.repeat(np.arange(len(sigma)), [len(row) for row in sigma])
    columns = np.fromiter((j for row in sigma for j in row), np.int64, rows.size)
    orders = np.fromiter((k for row in sigma for k in row.values()), np.int64, rows.size)
    return rows, columns, orders


# --- the Dulmage-Mendelsohn decomposition: over-, under- and well-determined parts of a pattern, in solution order ----

# A maximum matching leaves some rows and columns unmatched. The part reached by alternating paths from an unmatched row
# has more rows than columns (overdetermined), from an unmatched column more columns than rows (underdetermined); the
# rest is square with a full matching, and the strongly connected components of its graph are the diagonal blocks of its
# block-triangular form (A. L. Dulmage and N. S. Mendelsohn, Canad. J. Math. 10, 1958, 517-534; A. Pothen and C.-J. Fan,
# ACM Trans. Math. Softw. 16, 1990, 303-324).


@dataclass(frozen=True)
class SystemPart:
    """Rows and columns of one part."""

    rows: list[int]
    columns: list[int]


@dataclass(frozen=True)
class DulmageMendelsohn:
    """The parts of a pattern.

    Examples
    --------
    >>> from daedal.index.structure.signature import DulmageMendelsohn
    >>> parts = DulmageMendelsohn.of([[0, 1], [0, 1], [1, 2]], 3)
    >>> parts.blocks
    [SystemPart(rows=[0, 1], columns=[0, 1]), SystemPart(rows=[2], columns=[2])]
    >>> DulmageMendelsohn.of([[0], [0], [1, 2]], 3).over
    SystemPart(rows=[0, 1], columns=[0])
    """

    matching: np.ndarray  # the column matched with each row, -1 for unmatched rows
    over: SystemPart  # the rows and columns of the overdetermined part: more rows than columns, or empty
    under: SystemPart  # the rows and columns of the underdetermined part
    # The diagonal blocks of the well-determined part, each as small as possible. A row of a block contains columns of
    # this block and of previous blocks (and overdetermined columns): they can be solved in sequence.
    blocks: list[SystemPart]

    @classmethod
    def of(cls, pattern: Sequence[Iterable[int]], columns: int) -> DulmageMendelsohn:
        """The decomposition of a pattern given by the columns in each row."""
        rows = [list(row) for row in pattern]
        indptr = np.cumsum([0, *map(len, rows)])
        indices = np.fromiter((j for row in rows for j in row), np.int64, int(indptr[-1]))
        matrix = sparse.csr_array((np.ones(indices.size, np.int8), indices, indptr), shape=(len(rows), columns))
        matching = maximum_bipartite_matching(matrix, perm_type="column") if indices.size else np.full(len(rows), -1)
        partner = {int(j): i for i, j in enumerate(matching) if j >= 0}
        over = _reached([i for i, j in enumerate(matching) if j < 0], rows, partner)
        transposed = matrix.T.tocsr()
        by_column = np.split(transposed.indices, transposed.indptr[1:-1])
        left_out = [j for j in range(columns) if j not in partner]
        under = _reached(left_out, by_column, dict(enumerate(map(int, matching))))
        taken = {*over.rows, *under.columns}
        rest = [i for i in range(len(rows)) if i not in taken]
        return cls(matching, over, SystemPart(under.columns, under.rows), _blocks(rest, rows, matching, partner))

    @property
    def is_square(self) -> bool:
        """Whether a full matching exists, so that the pattern is not structurally singular."""
        return not (self.over.rows or self.under.columns)


def _reached(start: list[int], neighbours: Sequence[Iterable[int]], partner: dict[int, int]) -> SystemPart:
    """Nodes reached by alternating paths from unmatched nodes: forward on any edge, back on matched edges."""
    rows, columns, waiting = set(start), set[int](), list(start)
    while waiting:
        for j in map(int, neighbours[waiting.pop()]):
            if j not in columns:
                columns.add(j)
                if partner[j] not in rows:
                    rows.add(partner[j])
                    waiting.append(partner[j])
    return SystemPart(sorted(rows), sorted(columns))


def _blocks(rest: list[int], rows: list[list[int]], matching: np.ndarray, partner: dict[int, int]) -> list[SystemPart]:
    """The strongly connected components of the well-determined part, in the order of dependence."""
    if not rest:
        return []
    place = {i: k for k, i in enumerate(rest)}
    links = [(k, place[partner[j]]) for k, i in enumerate(rest) for j in rows[i] if partner.get(j) in place]
    start, end = np.array(links, dtype=np.int64).T
    graph = sparse.csr_array((np.ones(start.size, np.int8), (start, end)), shape=(len(rest), len(rest)))
    count, labels = connected_components(graph, connection="strong")
    between = {(int(labels[a]), int(labels[b])) for a, b in links if labels[a] != labels[b]}
    members: list[list[int]] = [[] for _ in range(count)]
    for k, i in enumerate(rest):
        members[labels[k]].append(i)
    order = _needed_first([rows[0] for rows in members], between)
    return [SystemPart(members[label], sorted(int(matching[i]) for i in members[label])) for label in order]


def _needed_first(priority: list[int], needs: set[tuple[int, int]]) -> list[int]:
    """A topological order in which b precedes a for each (a, b) in `needs`; ties are broken by the lowest priority."""
    needed_by: list[list[int]] = [[] for _ in priority]
    missing = [0] * len(priority)
    for a, b in needs:
        needed_by[b].append(a)
        missing[a] += 1
    ready = [(p, k) for k, p in enumerate(priority) if not missing[k]]
    heapify(ready)
    order = []
    while ready:
        order.append(heappop(ready)[1])
        for a in needed_by[order[-1]]:
            missing[a] -= 1
            if not missing[a]:
                heappush(ready, (priority[a], a))
    return order


# --- messages for singular structures ---------------------------------------------------------------------------------

_MOST_NAMED = 8


def refuse_singular(
    parts: DulmageMendelsohn, names: Sequence[str], vanished: Sequence[tuple[int, int, int]] = ()
) -> None:
    """Raise :class:`daedal.errors.StructurallySingularError` if the equations are structurally singular.

    Then some k of them contain fewer than k unknowns and their derivatives, so that they are contradictory or
    redundant, and other unknowns remain undetermined.
    """
    if parts.is_square:
        return
    over, under = parts.over, parts.under
    sentences = ["the equations are structurally singular"]
    if over.rows and not over.columns:
        sentences.append(f"{equations_named(over.rows)} contain{_s(over.rows)} no unknown")
    elif over.rows:
        only = f"only {unknowns_named(over.columns, names)}"
        sentences.append(
            f"{equations_named(over.rows)} contain {only}: {len(over.rows)} equations for {len(over.columns)} "
            f"unknown{'s' * (len(over.columns) != 1)}, which are redundant or contradictory"
        )
    if under.columns:
        occur = f"{unknowns_named(under.columns, names)} occur{_s(under.columns)}"
        fewer = f"only in {equations_named(under.rows)}, not enough to determine them all"
        sentences.append(f"{occur} {fewer if under.rows else 'in no equation'}")
    if vanished:
        lost = listing((f"{derivative_name(names[j], k)} from equation {i}" for i, j, k in vanished[:3]), len(vanished))
        sentences.append(f"derivatives that occur but cancel: {lost}")
    remedy = "Remedy: replace a superfluous equation by the missing one."
    message = f"{sentences[0]} (equations are numbered from 0): {'; '.join(sentences[1:])}. {remedy}"
    raise StructurallySingularError(message, over.rows, under.columns)


def equations_named(which: Sequence[int]) -> str:
    """``equation 3``, ``equations 3, 4 and 7``."""
    return f"equation{'s' * (len(which) != 1)} {listing(map(str, which[:_MOST_NAMED]), len(which))}"


def unknowns_named(which: Sequence[int], names: Sequence[str]) -> str:
    """``x``, ``x, y and z``."""
    return listing((names[j] for j in which[:_MOST_NAMED]), len(which))


def _s(which: Sequence[int]) -> str:
    return "s" * (len(which) == 1)
