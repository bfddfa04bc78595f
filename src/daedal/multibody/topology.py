"""The graph of bodies and joints: a spanning tree and the joints that close loops (2.3), shortest loops, drawing."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from daedal.common.tabular import listing
from daedal.errors import InvalidProblemError
from daedal.multibody.body import GROUND, Body
from daedal.multibody.joints import Joint
from daedal.viz.figure import COLOURS, FAINT, INK, new_figure


@dataclass(frozen=True)
class SpanningTree:
    """A spanning tree of the bodies of a model.

    Attributes
    ----------
    bodies : tuple of Body
        In tree order: parents first, the bodies of a chain in sequence.
    joints : tuple of Joint
        The joint that moves each body, seen from its parent (``joint.a`` is on the parent).
    reversed : tuple of bool
        Whether each of `joints` has its bodies exchanged.
    parents : tuple of int
        The parent of each body, -1 for the ground.
    cut : tuple of Joint
        The joints that close loops.
    """

    bodies: tuple[Body, ...]
    joints: tuple[Joint, ...]
    reversed: tuple[bool, ...]
    parents: tuple[int, ...]
    cut: tuple[Joint, ...]

    @property
    def connection_array(self) -> tuple[int, ...]:
        """The body connection array of 2.3: the parent of each body, with bodies counted from 1 and the ground 0."""
        return tuple(parent + 1 for parent in self.parents)

    @cached_property
    def children(self) -> dict[int, tuple[int, ...]]:
        """The children of each body, and of the ground (-1)."""
        found: dict[int, list[int]] = {body: [] for body in range(-1, len(self.bodies))}
        for child, parent in enumerate(self.parents):
            found[parent].append(child)
        return {body: tuple(children) for body, children in found.items()}

    @property
    def junctions(self) -> tuple[int, ...]:
        """The bodies at which the tree branches."""
        return tuple(body for body, children in self.children.items() if body >= 0 and len(children) > 1)

    @property
    def chains(self) -> tuple[tuple[int, ...], ...]:
        """Paths from the ground or a junction to the next junction or to the end of a branch, inclusive."""
        found = []
        for start in (-1, *self.junctions):
            for child in self.children[start]:
                chain = [start, child]
                while len(self.children[chain[-1]]) == 1:
                    chain.append(self.children[chain[-1]][0])
                found.append(tuple(chain))
        return tuple(found)


def spanning_tree(
    bodies: Sequence[Body], joints: Sequence[Joint], cut: Collection[str] = (), keep: Collection[str] = ()
) -> SpanningTree:
    """The tree with the fewest freedoms, so that cut joints have the fewest conditions, and with short loops.

    Joints in `cut` are never in the tree. Those in `keep` are added first, then those with few freedoms: cutting a
    hinge adds five conditions, cutting a spherical joint three. Among equal joints the one nearer to the ground is
    chosen, as in a breadth-first search, then the first one in alphabetical order, so that the order of the parts
    affects only the numbering of bodies.
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
    best: dict[tuple[int, ...], int] = {}  # preferred joint of each pair of bodies
    for rank, joint in enumerate(ranked):
        best.setdefault(tuple(sorted(ends[joint.name])), rank)
    rows, columns = np.array(list(best), dtype=int).reshape(-1, 2).T
    graph = csr_array((1.0 + np.array(list(best.values())), (rows, columns)), shape=(len(node), len(node)))
    tree = csr_array(minimum_spanning_tree(graph))
    order, parent = depth_first_order(csr_array(tree + tree.T), 0)
    number = {int(body): i for i, body in enumerate(order, -1)}
    used, flags = [], []
    for body in order[1:]:
        pair = sorted((int(body), int(parent[body])))
        joint = ranked[best[tuple(pair)]]
        flags.append(ends[joint.name][0] == body)
        used.append(joint.swapped() if flags[-1] else joint)
    taken = {joint.name for joint in used}
    return SpanningTree(
        tuple(bodies[body - 1] for body in order[1:]),
        tuple(used),
        tuple(flags),
        tuple(number[int(parent[body])] for body in order[1:]),
        tuple(joint for joint in joints if joint.name not in taken),
    )


def _depths(n: int, ends) -> np.ndarray:
    """Number of joints between each body and the ground; infinite if unconnected."""
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
        raise InvalidProblemError(f"no joint connects {named} to the ground; add one, Free(...) for free motion")
    bridges = [joint.name for joint in joints if np.isinf(depth[list(ends[joint.name])]).sum() == 1]
    kept = listing(f"'{name}'" for name in bridges)
    raise InvalidProblemError(
        f"the joints in cut are the only connection of {named} to the ground; remove "
        f"{'one of ' * (len(bridges) > 1)}{kept} from cut"
    )


@dataclass(frozen=True)
class Loop:
    """A closed loop: joint k is between body k and the next body; the last body is connected to the first.

    Attributes
    ----------
    bodies, joints : tuple of str
        Names in cyclic order, starting with the ground if it is part of the loop.
    """

    bodies: tuple[str, ...]
    joints: tuple[str, ...]

    def __str__(self) -> str:
        around = " ".join(f"{body} -{joint}-" for body, joint in zip(self.bodies, self.joints))
        return f"{around} {self.bodies[0]}"


def independent_loops(joints: Sequence[Joint], cut: Collection[str]) -> tuple[Loop, ...]:
    """A minimal cycle basis by Horton's algorithm: as many loops as joints in `cut`, with the fewest joints in total.

    Every loop contains a cut joint. It therefore suffices to consider the shortest paths from one end of each cut joint
    to the two ends of any joint: J. D. Horton, A polynomial-time algorithm to find the shortest cycle basis of a graph,
    SIAM J. Comput. 16 (1987). A loop is accepted if it is independent of previous ones over the field of two elements,
    which its entries for the cut joints determine.
    """
    bit = {name: 1 << k for k, name in enumerate(sorted(cut))}
    paths = _Paths(joints, [joint.bodies[0] for joint in joints if joint.name in bit])
    found: list[Loop] = []
    reduced: dict[int, int] = {}  # vectors by their highest entry
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
    """Shortest paths from some bodies to all others, with distinct lengths."""

    def __init__(self, joints: Sequence[Joint], roots: Sequence[str]):
        from scipy.sparse import csr_array
        from scipy.sparse.csgraph import dijkstra

        self.joints = sorted(joints, key=lambda joint: joint.name)
        names = sorted({name for joint in joints for name in joint.bodies}, key=lambda name: (name != GROUND, name))
        self.names, node = names, {name: i for i, name in enumerate(names)}
        self.ends = np.array([[node[name] for name in joint.bodies] for joint in self.joints], dtype=int).reshape(-1, 2)
        # Lengths are one, plus small fixed perturbations that break ties reproducibly.
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
        """Pairs (root, joint), in order of increasing loop length."""
        around = self.distance[:, self.ends[:, 0]] + self.distance[:, self.ends[:, 1]] + self.lengths
        order = np.argsort(around, axis=None, kind="stable")
        yield from zip(*(part.tolist() for part in np.unravel_index(order, around.shape)))

    def loop(self, root: int, joint: int) -> Loop | None:
        """The loop of a joint and the shortest paths from its ends to the root; None if they meet or one is missing."""
        if any(end != self.roots[root] and self.before[root, end] < 0 for end in self.ends[joint]):
            return None  # bodies that move freely
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


_TREE, _CUT = COLOURS[0], COLOURS[2]
_ACROSS, _UP = 1.9, 1.3  # spacing of bodies in a small graph, in inches
_LARGEST = 16.0  # maximum size of a drawing, in inches; larger graphs are scaled down
_BEND = 0.35


def places(topology: SpanningTree) -> dict[int, tuple[float, float]]:
    """Positions of bodies in the drawing: height by distance from the ground, parents centred above their children."""
    found: dict[int, tuple[float, float]] = {}
    depth = {-1: 0}
    for body, parent in enumerate(topology.parents):
        depth[body] = depth[parent] + 1
    ends = 0
    # children are placed before their parents, branches from the right
    for body in reversed(range(len(topology.bodies))):
        children = topology.children[body]
        if children:
            x = sum(found[child][0] for child in children) / len(children)
        else:
            x, ends = -ends * _ACROSS, ends + 1
        found[body] = x, depth[body] * _UP
    return found


class _Line(NamedTuple):
    joint: Joint
    start: tuple[float, float]
    end: tuple[float, float]
    bend: float  # curvature as in matplotlib's arc3, to the left of the path

    @property
    def middle(self) -> tuple[float, float]:
        (a, b), (c, d) = self.start, self.end
        return 0.5 * (a + c) - 0.5 * self.bend * (d - b), 0.5 * (b + d) + 0.5 * self.bend * (c - a)


def _lines(topology: SpanningTree, at) -> tuple[list[_Line], list[_Line]]:
    """Straight lines for the tree, and curved ones that avoid it for the cut joints."""
    tree = [
        _Line(joint, (at[body][0], 0.0) if parent < 0 else at[parent], at[body], 0.0)
        for body, (joint, parent) in enumerate(zip(topology.joints, topology.parents))
    ]
    index = {body.name: i for i, body in enumerate(topology.bodies)} | {"ground": -1}
    xs = [x for x, _ in at.values()]
    cut = []
    for joint in topology.cut:
        one, two = sorted((index[name] for name in joint.bodies), key=lambda body: at.get(body, (0.0, 0.0))[1])
        end = at[two]
        is_left = 2.0 * end[0] < min(xs) + max(xs)
        side = min(xs) - 0.6 * _ACROSS if is_left else max(xs) + 0.6 * _ACROSS
        start = (side, 0.0) if one < 0 else at[one]
        outwards = one < 0 and not is_left
        cut.append(_Line(joint, start, end, _BEND if end[0] >= start[0] and not outwards else -_BEND))
    return tree, cut


def draw_graph(topology: SpanningTree, title: str = "", *, pyplot: bool = True, save=None):
    """Bodies as boxes, joints of the tree as lines, cut joints dashed; see Model.draw_graph."""
    at = places(topology)
    tree, cut = _lines(topology, at)
    corners = [*at.values(), *(line.middle for line in cut)]
    left, right = min(x for x, _ in corners) - 0.6 * _ACROSS, max(x for x, _ in corners) + 0.6 * _ACROSS
    top = max(y for _, y in corners) + 0.35 * _UP
    scale = min(1.0, _LARGEST / max(right - left, top + 0.5))
    with new_figure((scale * (right - left), scale * (top + 0.8)), pyplot, save, title or None) as figure:
        axes = figure.add_subplot()
        axes.set_aspect("equal")
        axes.axis("off")
        axes.set_xlim(left, right)
        axes.set_ylim(-0.5, top)
        axes.fill_between([left, right], -0.22, 0.0, facecolor="white", edgecolor=FAINT, hatch="////", linewidth=0.0)
        axes.plot([left, right], [0.0, 0.0], color=INK, linewidth=1.2)
        axes.text(left + 0.1, -0.27, "ground", fontsize=9.0 * scale, va="top", color=INK)
        for lines, is_cut in ((tree, False), (cut, True)):
            for line in lines:
                _draw(axes, line, scale, is_cut)
        box = {"boxstyle": "round,pad=0.35", "facecolor": "white", "edgecolor": INK, "linewidth": 1.0}
        for body, place in at.items():
            name = topology.bodies[body].name
            axes.text(*place, name, ha="center", va="center", fontsize=9.5 * scale, bbox=box, zorder=5)
    return figure


def _draw(axes, line: _Line, scale: float, is_cut: bool):
    from matplotlib.patches import FancyArrowPatch

    colour, dashes = (_CUT, (0, (4.0, 2.5))) if is_cut else (_TREE, "-")
    bent = f"arc3,rad={-line.bend}"
    way = FancyArrowPatch(line.start, line.end, arrowstyle="-", connectionstyle=bent, shrinkA=0.0, shrinkB=0.0)
    way.set(linestyle=dashes, color=colour, linewidth=1.4)
    axes.add_patch(way)
    label = f"{line.joint.name}\n{type(line.joint).__name__}" + "\n(cut)" * is_cut
    text = axes.text(*line.middle, label, ha="center", va="center", color=colour, fontsize=7.5 * scale, zorder=4)
    text.set(linespacing=1.05, bbox={"facecolor": "white", "edgecolor": "none", "pad": 1.0})
