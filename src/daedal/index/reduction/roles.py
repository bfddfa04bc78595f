"""Detect, from structure alone, which unknowns resemble positions, velocities, states and multipliers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from daedal.index.structure.system_equations import SystemEquations, argument_name
from daedal.symbolic.derivative import jacobian, sparsity
from daedal.symbolic.graph import Graph
from daedal.symbolic.graph_functions import inlined

Places = set[tuple[int, int]]
"""The structure of an equation: pairs of an unknown and the order of its derivative."""


@dataclass(frozen=True)
class Roles:
    """The roles of the unknowns in a mechanism.

    Attributes
    ----------
    positions : tuple of int
        Unknowns q.
    velocities : tuple of int
        For each position the unknown u with q' = c u.
    factors : tuple of float
        The constants c.
    states : tuple of int
        Unknowns with a first derivative that are neither positions nor velocities.
    multipliers : tuple of int
        Unknowns without any derivative.
    stabilisers : tuple of int
        Multipliers that occur in the equations q' = c u.
    kinematic : tuple of int
        The equations q' = c u, which may also contain stabilisers.
    others : tuple of int
        All other equations.
    """

    positions: tuple[int, ...]
    velocities: tuple[int, ...]
    factors: tuple[float, ...]
    states: tuple[int, ...]
    multipliers: tuple[int, ...]
    stabilisers: tuple[int, ...]
    kinematic: tuple[int, ...]
    others: tuple[int, ...]


def find_roles(equations: SystemEquations) -> Roles | None:
    """The roles of the unknowns; None if the equations do not resemble those of a mechanism with constraints.

    Equations with second derivatives are excluded: methods solve them directly.
    """
    if equations.order > 1:
        return None
    found = sparsity(equations.graph, equations.nodes, equations.unknowns([0, 1]))
    rows: list[Places] = [{(k % equations.n, k // equations.n) for k in row} for row in found]
    moving = {j for row in rows for j, order in row if order}
    multipliers = [j for j in range(equations.n) if j not in moving]
    if not multipliers or not moving:
        return None
    roles = _assigned(equations, rows, moving, multipliers)
    if roles is None or not roles.positions:
        return None
    constraints = [i for i in roles.others if _is_constraint(rows[i], roles)]
    if len(constraints) != len(multipliers) or any(j in roles.stabilisers for i in roles.others for j, _ in rows[i]):
        return None
    return roles


def _is_constraint(row: Places, roles: Roles) -> bool:
    """Whether an equation is a constraint on positions or velocities, in any variables."""
    positions, velocities = set(roles.positions), set(roles.velocities)
    known = {(j, 0) for j in positions | velocities} | {(j, 1) for j in positions}
    return row <= known


def _assigned(equations: SystemEquations, rows: list[Places], moving: set[int], multipliers: list[int]) -> Roles | None:
    following = _kinematic(equations, rows, moving)
    if not following:
        return None
    constrained = {j for row in rows if all(k in moving and not order for k, order in row) for j, _ in row}
    pairs = _pairs({i: j for i, (_, j, _) in following.items()}, constrained)
    taken = {j for pair in pairs for j in pair}
    states = [j for j in sorted(moving) if j not in taken]
    kinematic = [following[i][0] for i, _ in pairs]
    others = [i for i in range(equations.n) if i not in kinematic]
    stabilisers = sorted({j for i in kinematic for j, _ in rows[i] if j not in moving})
    return Roles(
        tuple(i for i, _ in pairs),
        tuple(j for _, j in pairs),
        tuple(following[i][2] for i, _ in pairs),
        tuple(states),
        tuple(j for j in multipliers if j not in stabilisers),
        tuple(stabilisers),
        tuple(kinematic),
        tuple(others),
    )


def _kinematic(equations: SystemEquations, rows: list[Places], moving: set[int]) -> dict[int, tuple[int, int, float]]:
    """All equations a x_i' + b x_j = 0 with numbers a and b: {i: (equation, j, -b/a)}.

    They may contain additional unknowns without derivatives.
    """
    found: dict[int, tuple[int, int, float]] = {}
    for row, places in sorted(enumerate(rows), key=lambda item: len(item[1])):
        slopes = [j for j, order in places if order]
        if len(slopes) != 1 or slopes[0] in found or (len(places) > 2 and all(j in moving for j, _ in places)):
            continue
        relation = _relation(equations, equations.nodes[row], slopes[0], moving)
        if relation is not None:
            found[slopes[0]] = row, *relation
    return found


def _relation(equations: SystemEquations, equation: int, i: int, moving: set[int]) -> tuple[int, float] | None:
    """j and c if an equation reads x_i' = c x_j with the unknowns without derivatives set to zero."""
    source, graph = equations.graph, _Bounded()
    read = [source.data[k] for k in source.needed([equation]) if source.operations[k] == "argument"]
    known = {datum: graph.argument(*datum) for datum in read}
    known |= {datum: graph.zero for datum in read if datum[0].startswith("x") and datum[1] not in moving}
    node = inlined(source, [equation], graph, known)[0]
    variables = [node for (name, _), node in known.items() if name.startswith("x") and node != graph.zero]
    (places,) = sparsity(graph, [node], variables)
    named = sorted(graph.data[variables[k]] for k in places)
    if len(named) != 2 or named[0][0] != argument_name(0) or named[1] != (argument_name(1), i):
        return None
    j = named[0][1]
    pair = [graph.argument(*datum) for datum in named]
    (partials,) = jacobian(graph, [node], pair)
    b, a = (partials.get(k, graph.zero) for k in range(2))
    if not (graph.is_constant(a) and graph.is_constant(b)) or graph.is_zero(a) or graph.is_zero(b) or i == j:
        return None
    rest = inlined(graph, [node], graph, {datum: graph.zero if datum in named else known[datum] for datum in known})[0]
    return (j, -graph.data[b] / graph.data[a]) if graph.is_zero(rest) else None


class _Bounded(Graph):
    """A graph in which products with zero vanish even if the other factor is unbounded; for structural checks."""

    def _append(self, key, operation: str, operands: tuple[int, ...], datum: Any) -> int:
        made = super()._append(key, operation, operands, datum)
        self.regular[made] = True
        return made


def _pairs(following: Mapping[int, int], constrained: set[int]) -> list[tuple[int, int]]:
    """Pairs (position, velocity) in the chains x_i' = x_j, x_j' = x_k, ...

    A pair starts with the first unknown of a chain that occurs in the constraints, or with the first of all.
    """
    starts = [i for i in following if i not in set(following.values())]
    pairs: list[tuple[int, int]] = []
    taken: set[int] = set()
    for start in [*_preferred(starts, constrained), *_preferred(following, constrained)]:
        chain = _chain(start, following, taken)
        first = next((k for k, j in enumerate(chain[:-1]) if j in constrained), 0)
        for k in range(first, len(chain) - 1, 2):
            pairs.append((chain[k], chain[k + 1]))
            taken |= set(pairs[-1])
    return sorted(pairs)


def _preferred(unknowns: Iterable[int], constrained: set[int]) -> list[int]:
    return sorted(unknowns, key=lambda j: (j not in constrained, j))


def _chain(start: int, following: Mapping[int, int], taken: set[int]) -> list[int]:
    chain: list[int] = []
    i: int | None = start
    while i is not None and i not in taken and i not in chain:
        chain.append(i)
        i = following.get(i)
    return chain
