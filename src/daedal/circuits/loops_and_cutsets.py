"""Loops and cutsets of a circuit, from which solvability and index of its equations follow.

A *CV-loop* is a loop of capacitors and voltage sources with at least one source; the current around it contains the
derivative of a prescribed voltage. An *LI-cutset* is a set of inductors and current sources whose removal disconnects
the circuit; the voltage across it contains the derivative of a prescribed current. Modified nodal analysis of a circuit
of resistors, capacitors, inductors, diodes and independent sources has index 2 if it has one of these, otherwise at
most 1 (C. Tischendorf, Surveys Math. Indust. 8, 1999; D. Estévez Schwarz, C. Tischendorf, Int. J. Circuit Theory Appl.
28, 2000); for the sparse tableau, loops of capacitors alone also count (Brenan, Campbell and Petzold, section 6.4).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass

from daedal.circuits.elements import GROUND, Branch
from daedal.common.tabular import listing
from daedal.errors import InvalidProblemError


class Forest:
    """Spanning forest of the branches added so far, with the connected components of nodes."""

    def __init__(self, nodes: Iterable[str]):
        self._above = {node: node for node in nodes}
        self._neighbours: dict[str, list[tuple[str, Branch]]] = {node: [] for node in self._above}

    def root(self, node: str) -> str:
        """The representative of the component that contains a node."""
        while self._above[node] != node:
            self._above[node] = self._above[self._above[node]]
            node = self._above[node]
        return node

    def join(self, branch: Branch) -> bool:
        """Add a branch unless it closes a loop; returns whether it was added."""
        one, other = (self.root(node) for node in branch.nodes)
        if one == other:
            return False
        self._above[one] = other
        for here, there in (branch.nodes, branch.nodes[::-1]):
            self._neighbours[here].append((there, branch))
        return True

    def path(self, begin: str, end: str) -> list[Branch]:
        """The branches on the path between two connected nodes."""
        came: dict[str, tuple[str, Branch] | None] = {begin: None}
        queue = deque([begin])
        while end not in came:
            node = queue.popleft()
            for there, branch in self._neighbours[node]:
                if there not in came:
                    came[there] = node, branch
                    queue.append(there)
        way = []
        step = came[end]
        while step is not None:
            way.append(step[1])
            step = came[step[0]]
        return way[::-1]

    def parts(self) -> list[list[str]]:
        """The nodes by connected component; the component of the ground is first."""
        found: dict[str, list[str]] = {self.root(GROUND): []}
        for node in self._above:
            found.setdefault(self.root(node), []).append(node)
        return list(found.values())


@dataclass(frozen=True)
class Topology:
    """Loops and cutsets of a circuit, by element names.

    Attributes
    ----------
    source_loops : tuple
        Loops of capacitors and voltage sources, with at least one source.
    capacitor_loops : tuple
        Loops of capacitors alone.
    cutsets : tuple
        Cutsets of inductors and current sources.
    controlled : tuple of str
        Controlled sources and operational amplifiers, to which the theorem does not apply.
    degrees_of_freedom : int or None
        Number of free initial values; None if there are controlled sources.

    Examples
    --------
    >>> from daedal import circuits
    >>> circuit = circuits.parse("V1 a 0 SIN(0 1 50)\\nC1 a b 1u\\nC2 b 0 1u\\nR1 b 0 1k")
    >>> circuit.topology.source_loops, circuit.topology.index()
    ((('V1', 'C1', 'C2'),), 2)
    """

    source_loops: tuple[tuple[str, ...], ...]
    capacitor_loops: tuple[tuple[str, ...], ...]
    cutsets: tuple[tuple[str, ...], ...]
    controlled: tuple[str, ...]
    degrees_of_freedom: int | None
    ordinary: bool

    def index(self, form: str = "nodal") -> int | None:
        """Index of the equations in a form; None if it is undetermined due to controlled sources."""
        if self.controlled:
            return None
        if self.source_loops or self.cutsets or (form == "tableau" and self.capacitor_loops):
            return 2
        return 0 if self.ordinary and form == "nodal" else 1

    def __str__(self) -> str:
        lines = []
        for title, found in (
            ("loop of capacitors and voltage sources", self.source_loops),
            ("loop of capacitors", self.capacitor_loops),
            ("cutset of inductors and current sources", self.cutsets),
        ):
            lines += [f"{title}: {listing(names)}" for names in found]
        if self.controlled:
            lines.append(f"index not determined by loops and cutsets: {listing(self.controlled)}")
        else:
            count = self.degrees_of_freedom
            lines.append(f"index {self.index()}, {count} degree{'s' * (count != 1)} of freedom")
        return "\n".join(lines)


def topology(branches: Sequence[Branch], nodes: Sequence[str]) -> Topology:
    """Loops and cutsets of a valid circuit."""
    check(branches, nodes)
    capacitors, sources = _of(branches, "C"), _of(branches, "VE")
    by_capacitors, capacitor_loops = _loops(capacitors, nodes)
    source_loops = []
    for source in sources:
        if not by_capacitors.join(source):
            source_loops.append((source.name, *(b.name for b in by_capacitors.path(*source.nodes))))
    cutsets = _cutsets(branches, nodes, "LI")
    controlled = tuple(branch.name for branch in branches if branch.controlled)
    inductors = len(_of(branches, "L"))
    chosen = len(capacitors) - len(capacitor_loops) - len(source_loops) + inductors - len(cutsets)
    return Topology(
        tuple(source_loops),
        tuple(capacitor_loops),
        tuple(cutsets),
        controlled,
        None if controlled else chosen,
        ordinary=not sources and len(_loops(capacitors, nodes)[0].parts()) == 1 and all(b.linear for b in capacitors),
    )


def check(branches: Sequence[Branch], nodes: Sequence[str]) -> None:
    """Raise InvalidProblemError for floating parts, loops of voltage sources and cutsets of current sources."""
    if not any(GROUND in branch.nodes for branch in branches):
        raise InvalidProblemError("no element is connected to the ground; one of the nodes must be called 0")
    whole = Forest([GROUND, *nodes])
    for branch in branches:
        whole.join(branch)
    for part in whole.parts()[1:]:
        raise InvalidProblemError(
            f"{_nodes(part)} not connected to the ground, so the voltages there are undetermined; connect them, if "
            f"necessary with a large resistor"
        )
    _, loops = _loops(_of(branches, "V"), nodes)
    for loop in loops:
        raise InvalidProblemError(
            f"{listing(loop)} form a loop of voltage sources: their voltages contradict each other, or their "
            "currents are undetermined; insert a small resistor into the loop"
        )
    for cutset in _cutsets(branches, nodes, "I"):
        raise InvalidProblemError(
            f"{listing(cutset)} form a cutset of current sources: their currents contradict each other, or the "
            "voltage across them is undetermined; connect a large resistor parallel to one of them"
        )


def check_at_rest(branches: Sequence[Branch], resting: Sequence[Branch], nodes: Sequence[str]) -> None:
    """Raise InvalidProblemError for circuits without a unique operating point.

    These have cutsets of capacitors and current sources, or loops of inductors and voltage sources. `resting` are the
    branches that remain at rest.
    """
    remedy = (
        "give initial voltages and currents (initial={'C1': 0.0, 'L1': 0.0}, ic=0 in the netlist, or empty=True), or a "
    )
    for part in _parts(resting, nodes, "I")[1:]:
        raise InvalidProblemError(
            f"{_nodes(part)} connected to the ground only by capacitors and current sources, so the voltage at "
            f"rest is undetermined there; {remedy}large resistor to the ground"
        )
    sources = {branch.name for branch in branches if branch.kind == "V"}
    for loop in _loops(_of(resting, "V"), nodes)[1]:
        given = [name for name in loop if name not in sources]
        raise InvalidProblemError(
            f"{listing(loop)} form a loop of voltage sources, of inductors at rest and of given voltages "
            f"({listing(given)}): they contradict each other, or the current is undetermined; omit one of the given "
            f"voltages, {remedy}small resistor in the loop"
        )


def independent_states(branches: Sequence[Branch], nodes: Sequence[str], held: Container[str]) -> list[str]:
    """Capacitors and inductors, except those `held`, whose voltages and currents can all be chosen freely."""
    chosen = []
    loops = Forest([GROUND, *nodes])
    for branch in branches:
        if branch.kind in "VE" or (branch.kind == "C" and branch.name in held):
            loops.join(branch)
    for branch in _of(branches, "C"):
        if branch.name not in held and loops.join(branch):
            chosen.append(branch.name)
    whole = Forest([GROUND, *nodes])
    for branch in branches:
        if branch.kind not in "CLI" or (branch.kind == "C" and (branch.name in chosen or branch.name in held)):
            whole.join(branch)
    for branch in _of(branches, "L"):
        if branch.name not in held and not whole.join(branch):
            chosen.append(branch.name)
    return chosen


def _of(branches: Iterable[Branch], kinds: str) -> list[Branch]:
    return [branch for branch in branches if branch.kind in kinds]


def _loops(branches: Iterable[Branch], nodes: Sequence[str]) -> tuple[Forest, list[tuple[str, ...]]]:
    """A spanning forest of branches, and the loops closed by the other branches."""
    forest, loops = Forest([GROUND, *nodes]), []
    for branch in branches:
        if not forest.join(branch):
            loops.append((branch.name, *(b.name for b in forest.path(*branch.nodes))))
    return forest, loops


def _parts(branches: Iterable[Branch], nodes: Sequence[str], without: str) -> list[list[str]]:
    forest = Forest([GROUND, *nodes])
    for branch in branches:
        if branch.kind not in without:
            forest.join(branch)
    return forest.parts()


def _cutsets(branches: Sequence[Branch], nodes: Sequence[str], kinds: str) -> list[tuple[str, ...]]:
    """Cutsets that separate components from the ground when all branches of `kinds` are removed: for each component,
    the removed branches that connect it to others."""
    cutsets = []
    for part in _parts(branches, nodes, kinds)[1:]:
        inside = set(part)
        leading = [b.name for b in _of(branches, kinds) if (b.positive in inside) != (b.negative in inside)]
        cutsets.append(tuple(leading))
    return cutsets


def _nodes(part: Sequence[str]) -> str:
    return f"node {part[0]} is" if len(part) == 1 else f"nodes {listing(part)} are"
