"""The Dulmage-Mendelsohn decomposition: over-, under- and well-determined parts of a pattern, in solution order.

A maximum matching leaves some rows and columns unmatched. The part reached by alternating paths from an unmatched row
has more rows than columns (overdetermined), from an unmatched column more columns than rows (underdetermined); the rest
is square with a full matching, and the strongly connected components of its graph are the diagonal blocks of its
block-triangular form (A. L. Dulmage and N. S. Mendelsohn, Canad. J. Math. 10, 1958, 517-534; A. Pothen and C.-J. Fan,
ACM Trans. Math. Softw. 16, 1990, 303-324).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush

import numpy as np
import scipy.sparse as sparse
from scipy.sparse.csgraph import connected_components, maximum_bipartite_matching

from daedal.common.tabular import derivative_name, listing
from daedal.errors import StructurallySingularError


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
    >>> from daedal.index.structure.dulmage_mendelsohn import DulmageMendelsohn
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
    """A topological order, b before a for each (a, b), with ties broken by lowest priority."""
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
