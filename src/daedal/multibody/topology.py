"""The graph of bodies and joints: a spanning tree, and the joints that close loops (2.3)."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from daedal.common.tabular import listing
from daedal.errors import InvalidProblemError
from daedal.multibody.body import GROUND, Body
from daedal.multibody.joints import Joint


@dataclass(frozen=True)
class SpanningTree:
    """A spanning tree of the bodies of a model.

    Attributes
    ----------
    bodies : tuple of Body
        In the order of the tree: fathers first, the bodies of a chain one after the other.
    joints : tuple of Joint
        The joint that moves each body, seen from its father (``joint.a`` is on the father).
    reversed : tuple of bool
        Which of them were stated the other way round.
    fathers : tuple of int
        The father of each body, -1 for the ground.
    cut : tuple of Joint
        The joints that close loops.
    """

    bodies: tuple[Body, ...]
    joints: tuple[Joint, ...]
    reversed: tuple[bool, ...]
    fathers: tuple[int, ...]
    cut: tuple[Joint, ...]

    @property
    def connection_array(self) -> tuple[int, ...]:
        """The body connection array of 2.3: the father of each body, with bodies counted from 1 and the ground 0."""
        return tuple(father + 1 for father in self.fathers)

    @cached_property
    def sons(self) -> dict[int, tuple[int, ...]]:
        """The sons of each body, and of the ground (-1)."""
        found: dict[int, list[int]] = {body: [] for body in range(-1, len(self.bodies))}
        for son, father in enumerate(self.fathers):
            found[father].append(son)
        return {body: tuple(sons) for body, sons in found.items()}

    @property
    def junctions(self) -> tuple[int, ...]:
        """The bodies at which the tree branches."""
        return tuple(body for body, sons in self.sons.items() if body >= 0 and len(sons) > 1)

    @property
    def chains(self) -> tuple[tuple[int, ...], ...]:
        """Paths from the ground or a junction to the next junction or to the end of a branch, both ends included."""
        found = []
        for start in (-1, *self.junctions):
            for son in self.sons[start]:
                chain = [start, son]
                while len(self.sons[chain[-1]]) == 1:
                    chain.append(self.sons[chain[-1]][0])
                found.append(tuple(chain))
        return tuple(found)


def spanning_tree(
    bodies: Sequence[Body], joints: Sequence[Joint], cut: Collection[str] = (), keep: Collection[str] = ()
) -> SpanningTree:
    """The tree with the fewest freedoms, so that cut joints have the fewest conditions, and with short loops.

    Joints in `cut` are never in the tree. Those in `keep` go into it first, then those with few freedoms: to cut a
    hinge costs five conditions, a spherical joint three. Of joints with equally many the one nearer to the ground is
    taken, as in a search breadth first, then the one whose name comes first in the alphabet, so that the order in
    which parts are stated does not decide. It only numbers the bodies.
    """
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import depth_first_order, minimum_spanning_tree

    node = {GROUND: 0} | {body.name: i for i, body in enumerate(bodies, 1)}
    ends = {joint.name: tuple(node[name] for name in joint.bodies) for joint in joints}
    depth = _depths(len(node), [ends[joint.name] for joint in joints if joint.name not in cut])
    _check_reached(bodies, joints, cut, ends, depth)

    def preference(joint: Joint):
        near, far = sorted(depth[list(ends[joint.name])])
        return joint.name not in keep, joint.n_free, far, near, joint.name

    ranked = sorted((joint for joint in joints if joint.name not in cut), key=preference)
    best: dict[tuple[int, ...], int] = {}  # of several joints between two bodies
    for rank, joint in enumerate(ranked):
        best.setdefault(tuple(sorted(ends[joint.name])), rank)
    rows, columns = np.array(list(best), dtype=int).reshape(-1, 2).T
    graph = csr_array((1.0 + np.array(list(best.values())), (rows, columns)), shape=(len(node), len(node)))
    tree = csr_array(minimum_spanning_tree(graph))
    order, father = depth_first_order(csr_array(tree + tree.T), 0)
    number = {int(body): i for i, body in enumerate(order, -1)}
    used, flags = [], []
    for body in order[1:]:
        pair = sorted((int(body), int(father[body])))
        joint = ranked[best[tuple(pair)]]
        flags.append(ends[joint.name][0] == body)
        used.append(joint.swapped() if flags[-1] else joint)
    taken = {joint.name for joint in used}
    return SpanningTree(
        tuple(bodies[body - 1] for body in order[1:]),
        tuple(used),
        tuple(flags),
        tuple(number[int(father[body])] for body in order[1:]),
        tuple(joint for joint in joints if joint.name not in taken),
    )


def _depths(n: int, ends) -> np.ndarray:
    """How many joints each body is from the ground; infinite if none lead there."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import shortest_path

    pairs = np.array(ends, dtype=int).reshape(-1, 2)
    graph = coo_array((np.ones(len(pairs)), (pairs[:, 0], pairs[:, 1])), shape=(n, n)).tocsr()
    return np.asarray(shortest_path(graph, directed=False, unweighted=True, indices=0))


def _check_reached(bodies, joints, cut, ends, depth):
    if np.all(np.isfinite(depth)):
        return
    anyway = _depths(len(depth), list(ends.values()))
    apart = np.isinf(anyway if np.any(np.isinf(anyway)) else depth)
    named = listing(f"'{body.name}'" for body, far in zip(bodies, apart[1:]) if far)
    if np.any(np.isinf(anyway)):
        raise InvalidProblemError(f"no joint leads from the ground to {named}; add one, Free(...) if they move freely")
    bridges = [joint.name for joint in joints if np.isinf(depth[list(ends[joint.name])]).sum() == 1]
    kept = listing(f"'{name}'" for name in bridges)
    raise InvalidProblemError(
        f"without the joints in cut no joint leads from the ground to {named}; "
        f"leave {'one of ' * (len(bridges) > 1)}{kept} out of cut"
    )
