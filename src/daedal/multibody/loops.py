"""Independent loops of a graph of bodies and joints, as short as they can be."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from daedal.multibody.body import GROUND
from daedal.multibody.joints import Joint


@dataclass(frozen=True)
class Loop:
    """A closed loop: joint k is between body k and the next one, the last leads back to the first.

    Attributes
    ----------
    bodies, joints : tuple of str
        Their names, in the order in which one meets them; the ground first where it takes part.
    """

    bodies: tuple[str, ...]
    joints: tuple[str, ...]

    def __str__(self) -> str:
        around = " ".join(f"{body} -{joint}-" for body, joint in zip(self.bodies, self.joints))
        return f"{around} {self.bodies[0]}"


def independent_loops(joints: Sequence[Joint], cut: Collection[str]) -> tuple[Loop, ...]:
    """A minimal cycle basis by Horton's algorithm: as many loops as joints in `cut`, with the fewest joints in all.

    Every loop contains a joint that is cut. So it is enough to look at the shortest paths from one end of each of
    these to the two ends of any joint: J. D. Horton, A polynomial-time algorithm to find the shortest cycle basis of a
    graph, SIAM J. Comput. 16 (1987). A loop is taken if it is independent of those before it over the field of two
    elements; its entries for the cut joints decide that.
    """
    bit = {name: 1 << k for k, name in enumerate(sorted(cut))}
    paths = _Paths(joints, [joint.bodies[0] for joint in joints if joint.name in bit])
    found: list[Loop] = []
    reduced: dict[int, int] = {}  # by the highest entry
    for root, joint in paths.candidates():
        if len(found) == len(bit):
            break
        loop = paths.loop(root, joint)
        if loop is None:
            continue
        entries = 0
        for name in loop.joints:
            entries ^= bit.get(name, 0)
        while entries and entries.bit_length() in reduced:
            entries ^= reduced[entries.bit_length()]
        if entries:
            reduced[entries.bit_length()] = entries
            found.append(loop)
    return tuple(found)


class _Paths:
    """Shortest paths from some bodies to all others, no two of the same length."""

    def __init__(self, joints: Sequence[Joint], roots: Sequence[str]):
        from scipy.sparse import csr_array
        from scipy.sparse.csgraph import dijkstra

        self.joints = sorted(joints, key=lambda joint: joint.name)
        names = sorted({name for joint in joints for name in joint.bodies}, key=lambda name: (name != GROUND, name))
        self.names, node = names, {name: i for i, name in enumerate(names)}
        self.ends = np.array([[node[name] for name in joint.bodies] for joint in self.joints], dtype=int).reshape(-1, 2)
        # Lengths are one, but for what decides between paths with equally many joints, always in the same way.
        lengths = 1.0 + 1e-3 * np.random.default_rng(1).uniform(size=len(joints)) / max(1, len(joints))
        self.joint_of: dict[tuple[int, int], int] = {}
        for k in np.argsort(lengths):
            self.joint_of.setdefault(self._pair(*self.ends[k]), int(k))
        pairs = np.array(list(self.joint_of), dtype=int).reshape(-1, 2)
        size = len(names), len(names)
        graph = csr_array((lengths[list(self.joint_of.values())], (pairs[:, 0], pairs[:, 1])), shape=size)
        self.roots = sorted({node[name] for name in roots})
        self.lengths = lengths
        self.distance, self.before = dijkstra(graph, directed=False, indices=self.roots, return_predecessors=True)

    @staticmethod
    def _pair(a, b) -> tuple[int, int]:
        return (int(a), int(b)) if a < b else (int(b), int(a))

    def candidates(self):
        """Pairs (root, joint), those with short loops first."""
        around = self.distance[:, self.ends[:, 0]] + self.distance[:, self.ends[:, 1]] + self.lengths
        order = np.argsort(around, axis=None, kind="stable")
        yield from zip(*(part.tolist() for part in np.unravel_index(order, around.shape)))

    def loop(self, root: int, joint: int) -> Loop | None:
        """From the root to one end of the joint and from the other back; None if the two ways meet."""
        (to, first), (back, last) = (self._path(root, int(end)) for end in self.ends[joint])
        if set(to) & set(back) != {self.roots[root]} or joint in first + last:
            return None
        bodies, joints = [*to, *back[:0:-1]], [*first, joint, *last[::-1]]
        start = min(range(len(bodies)), key=lambda k: bodies[k])
        bodies, joints = bodies[start:] + bodies[:start], joints[start:] + joints[:start]
        if joints[0] > joints[-1]:
            bodies, joints = bodies[:1] + bodies[:0:-1], joints[::-1]
        return Loop(tuple(self.names[b] for b in bodies), tuple(self.joints[j].name for j in joints))

    def _path(self, root: int, end: int) -> tuple[list[int], list[int]]:
        bodies, joints = [end], []
        while bodies[-1] != self.roots[root]:
            before = int(self.before[root, bodies[-1]])
            joints.append(self.joint_of[self._pair(before, bodies[-1])])
            bodies.append(before)
        return bodies[::-1], joints[::-1]
