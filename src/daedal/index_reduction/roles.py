"""Which unknowns of a problem look like positions, velocities, states and multipliers, by structure alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from daedal.structure.equations import Equations
from daedal.symbolic.derivative import sparsity
from daedal.symbolic.functions import inlined

Places = set[tuple[int, int]]
"""What an equation depends on: pairs of an unknown and the order of its derivative."""


@dataclass(frozen=True)
class Roles:
    """The parts that unknowns would play in a mechanism.

    Attributes
    ----------
    positions : tuple of int
        Unknowns q.
    velocities : tuple of int
        For each of them the unknown u with q' = c u; empty if the equations contain q''.
    factors : tuple of float
        The constants c.
    states : tuple of int
        Unknowns with a first derivative that are neither.
    multipliers : tuple of int
        Unknowns without any derivative.
    kinematic : tuple of int
        The equations q' = c u.
    others : tuple of int
        All other equations.
    """

    positions: tuple[int, ...]
    velocities: tuple[int, ...]
    factors: tuple[float, ...]
    states: tuple[int, ...]
    multipliers: tuple[int, ...]
    kinematic: tuple[int, ...]
    others: tuple[int, ...]


def find_roles(equations: Equations) -> Roles | None:
    """The roles of the unknowns; None if the equations do not look like those of a mechanism with constraints."""
    orders = range(equations.order + 1)
    found = sparsity(equations.graph, equations.nodes, equations.unknowns(orders))
    rows: list[Places] = [{(k % equations.n, k // equations.n) for k in row} for row in found]
    moving = {j for row in rows for j, order in row if order}
    multipliers = [j for j in range(equations.n) if j not in moving]
    if not multipliers or not moving:
        return None
    find = _of_second_order if equations.order == 2 else _of_first_order
    roles = find(equations, rows, moving, multipliers)
    if roles is None or not roles.positions:
        return None
    constraints = [i for i in roles.others if _is_constraint(rows[i], roles)]
    return roles if len(constraints) == len(multipliers) else None


def _is_constraint(row: Places, roles: Roles) -> bool:
    """Whether an equation is one for positions and velocities, whichever way these are written."""
    positions, velocities = set(roles.positions), set(roles.velocities)
    known = {(j, 0) for j in positions | velocities} | {(j, 1) for j in positions}
    return row <= known


def _of_second_order(equations: Equations, rows: list[Places], moving: set[int], multipliers: list[int]) -> Roles:
    positions = sorted({j for row in rows for j, order in row if order == 2})
    states = [j for j in sorted(moving) if j not in positions]
    every = range(equations.n)
    return Roles(tuple(positions), (), (), tuple(states), tuple(multipliers), (), tuple(every))


def _of_first_order(equations: Equations, rows: list[Places], moving: set[int], multipliers: list[int]) -> Roles | None:
    following = _kinematic(equations, rows, moving)
    if not following:
        return None
    constrained = {j for row in rows if all(k in moving and not order for k, order in row) for j, _ in row}
    pairs = _pairs({i: j for i, (_, j, _) in following.items()}, constrained)
    taken = {j for pair in pairs for j in pair}
    states = [j for j in sorted(moving) if j not in taken]
    kinematic = [following[i][0] for i, _ in pairs]
    others = [i for i in range(equations.n) if i not in kinematic]
    return Roles(
        tuple(i for i, _ in pairs),
        tuple(j for _, j in pairs),
        tuple(following[i][2] for i, _ in pairs),
        tuple(states),
        tuple(multipliers),
        tuple(kinematic),
        tuple(others),
    )


def _kinematic(equations: Equations, rows: list[Places], moving: set[int]) -> dict[int, tuple[int, int, float]]:
    """All equations a x_i' + b x_j = 0 with numbers a and b: {i: (equation, j, -b/a)}."""
    graph, found = equations.graph, dict[int, tuple[int, int, float]]()
    for row, places in enumerate(rows):
        if len(places) != 2 or sorted(order for _, order in places) != [0, 1]:
            continue
        (j, _), (i, _) = sorted(places, key=lambda place: place[1])
        if j not in moving or i == j or i in found:
            continue
        node = equations.nodes[row]
        (partials,) = equations.jacobian([node], [equations.unknown(i, 1), equations.unknown(j)])
        a, b = partials.get(0, graph.zero), partials.get(1, graph.zero)
        if not (graph.is_constant(a) and graph.is_constant(b)) or graph.is_zero(a) or graph.is_zero(b):
            continue
        if graph.is_zero(_at_rest(equations, node)):
            found[i] = row, j, -graph.data[b] / graph.data[a]
    return found


def _at_rest(equations: Equations, node: int) -> int:
    """A node with zeros for the unknowns."""
    graph = equations.graph
    arguments = {
        graph.data[i]: graph.zero if graph.data[i][0].startswith("x") else i
        for i in graph.needed([node])
        if graph.operations[i] == "argument"
    }
    return inlined(graph, [node], graph, arguments)[0]


def _pairs(following: Mapping[int, int], constrained: set[int]) -> list[tuple[int, int]]:
    """Pairs (position, velocity) along the chains x_i' = x_j, x_j' = x_k, ...

    A pair begins with the first unknown of a chain that the constraints contain, or with the first of all.
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
