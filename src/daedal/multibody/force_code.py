"""Forces of large machines as machine code: each is traced with the motion of the few bodies that it affects.

Forces that differ only in numbers and attachment share code (:mod:`daedal.symbolic.graph_functions`); a compiled loop
(:mod:`daedal.multibody.loops_compiled`) evaluates them. The evaluation time is proportional to their number, and so is
the preparation time.

Forces of this package that differ only in their attachment are traced once, such as the thousand equal springs of a
beam of a thousand segments. The inputs and outputs of a force belong to the bodies of its frames and to the coordinates
of its joints; for another force of the same kind, these are exchanged.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from daedal.kernels.records import Record
from daedal.multibody.body import Frame
from daedal.multibody.force import Force
from daedal.multibody.joint_coordinates import coordinate_of
from daedal.multibody.layout import Layout
from daedal.multibody.loops_compiled import Places
from daedal.multibody.motion import Loads, Motion
from daedal.multibody.packed import FORCES
from daedal.symbolic import Graph, Traced, Untraceable, scalar_argument, trace
from daedal.symbolic.arrays import Array, array_of
from daedal.symbolic.dependencies import Dependencies
from daedal.symbolic.expression import symbol
from daedal.symbolic.graph_functions import ARGUMENT, Alike, alike
from daedal.symbolic.machine import MachineFunction
from daedal.symbolic.substitution import Substitution

_SYMBOLIC = Substitution(Dependencies())
_OWN = "daedal."  # prefix of modules of this package, whose objects are constant
_IN_THE_PLANE = {
    "r": frozenset({2}),
    "rotation": frozenset({2, 5, 6, 7}),
    "linear": frozenset({2}),
    "angular": frozenset({0, 1}),
}
"""Entries that vanish in models of the plane."""


class _Local:
    """Base class of objects that a trace uses without conversion to symbols."""

    @property
    def on_symbols(self):
        return self


class _SymbolicMotion(_Local, _SYMBOLIC.of(Motion)):  # type: ignore[misc]
    """A motion that consists of symbols."""


class _SymbolicLoads(_Local, _SYMBOLIC.of(Loads)):  # type: ignore[misc]
    """Loads whose entries are created on first use."""

    def __init__(self, layout, placed, shapes):
        self._layout, self._placed = layout, placed
        self.forces, self.torques, self.joint_forces = shapes


class _Symbols:
    """Rows of an array, as symbols created on access."""

    def __init__(self, graph: Graph, first: int, size: int, shape: tuple[int, ...], zeros: frozenset[int]):
        self._graph, self._first, self._size, self._shape, self._zeros = graph, first, size, shape, zeros

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, index: int | slice):
        if isinstance(index, slice):
            return array_of([self[k] for k in range(self._size)[index]])
        k = range(self._size)[index]
        n = int(np.prod(self._shape, dtype=int))
        entries: list[Any] = [
            0.0 if i in self._zeros else symbol(self._graph, ARGUMENT, self._first + n * k + i) for i in range(n)
        ]
        return array_of(entries).reshape(self._shape) if self._shape else entries[0]


class _Sums(dict):
    """Rows of an array that are zero until something is added."""

    def __init__(self, shape: tuple[int, ...]):
        super().__init__()
        self._shape = shape

    def __missing__(self, index: int):
        return np.zeros(self._shape, dtype=object).view(Array) if self._shape else 0.0


class _States:
    """The states of forces, by name."""

    def __init__(self, symbols: _Symbols, first: dict[str, slice]):
        self._symbols, self._first = symbols, first

    def __getitem__(self, name: str):
        return self._symbols[self._first[name]]


class _Element(_Local):
    """One force, with the motion of the bodies it affects."""

    def __init__(self, code: ForceCode, force: Force):
        self.force, self.graph, self._code = force, Graph(), code
        self._is_own = type(force).__module__.startswith(_OWN)
        functions = {name: value for name, value in vars(force).items() if callable(value)} if self._is_own else {}
        self._given = functions if self._is_own else force  # objects whose code and external values the trace records
        self.may_change = bool(functions) or not self._is_own
        self.targets: list[int] = []  # entries of the loads, in the order of the results
        zeros = _IN_THE_PLANE if code.layout.planar else {}
        symbols = {
            name: _Symbols(self.graph, first, size, shape, zeros.get(name, frozenset()))
            for name, (first, size, shape) in code.places.arrays.items()
        }
        placed = SimpleNamespace(r=symbols["r"], rotation=symbols["rotation"])
        moving = SimpleNamespace(linear=symbols["linear"], angular=symbols["angular"])
        states = _States(symbols["states"], code.states)
        self._placed = placed
        self.motion = _SymbolicMotion(code.layout, symbols["q"], symbols["u"], placed, moving, states)

    def on_symbols_with(self, given: Any) -> Any:
        """The force to call in a trace: `given`, or a force of this package whose functions are replaced by `given`."""
        if not self._is_own:
            return given
        force = object.__new__(_SYMBOLIC.of(type(self.force)))
        force.__dict__.update(vars(self.force) | given)
        return force

    def loads(self) -> Any:
        """New loads, all zero."""
        return _SymbolicLoads(self._code.layout, self._placed, (_Sums((3,)), _Sums((3,)), _Sums(())))

    def results(self, loads: Any, rates: Sequence[Any]) -> list[Any]:
        """Values of the loads and rates at the entries `targets`, to which entries not yet listed are appended."""
        n, n_v = self._code.layout.tree.parent.size, self._code.layout.n_v
        found = {3 * body + k: value for body, vector in loads.forces.items() for k, value in enumerate(vector)}
        found |= {3 * (n + body) + k: value for body, vector in loads.torques.items() for k, value in enumerate(vector)}
        found |= {6 * n + int(k): value for k, value in loads.joint_forces.items()}
        first = self._code.states[self.force.name].start if rates else 0
        found |= {6 * n + n_v + first + k: value for k, value in enumerate(rates)}
        self.targets += [target for target in found if target not in self.targets]
        return [found.get(target, 0.0) for target in self.targets]

    def traced(self) -> Traced:
        """Trace of all results of the force that do not vanish identically; `targets` is reduced to these."""
        while True:
            known = len(self.targets)
            try:
                made = trace(partial(_applied, given=self._given), (scalar_argument(self.graph, "t"), self))
                break
            except Untraceable:
                if len(self.targets) == known:
                    raise  # otherwise another branch affects further entries: repeat the trace with these included
        felt = [i for i, node in enumerate(made.nodes) if not self.graph.is_zero(node)]
        self.targets = [self.targets[i] for i in felt]
        return replace(made, nodes=tuple(made.nodes[i] for i in felt), shape=(len(felt),))


def _applied(t, element, given):
    force = element.on_symbols_with(given)
    loads = element.loads()
    force.apply(t, element.motion, loads)
    rates = force.state_rate(t, element.motion) if force.initial else ()
    return element.results(loads, rates)


class ForceCode:
    """The forces of a machine as machine code; raises Untraceable if one of them cannot be traced."""

    def __init__(self, forces: Sequence[Force], layout: Layout):
        self.layout, self.places = layout, Places(layout, sum(len(force.initial) for force in forces))
        self.states: dict[str, slice] = {}
        first = 0
        for force in forces:
            self.states[force.name] = slice(first, first + len(force.initial))
            first += len(force.initial)
        self._dependencies = Dependencies()
        traced = self._traced(forces)
        self.groups = [
            _group(found, [traced[i] for i in found.members]) for found in alike([one.trace for one in traced])
        ]

    def _traced(self, forces: Sequence[Force]) -> list[_Traced]:
        """Traces of the forces, one for each set of equal forces."""
        found: list[_Traced] = []
        known: dict[tuple, _Traced] = {}
        n = self.layout.tree.parent.size
        targets = [("body", 0, n, 3), ("body", 3 * n, n, 3), ("v", 6 * n, self.layout.n_v, 1)]
        for force in forces:
            element = _Element(self, force)
            like = None if element.may_change else likeness(force, self.layout)
            if like is not None and like.key in known:
                known[like.key].equals.append(like)
                continue
            trace = element.traced()
            if element.may_change:
                self._dependencies.add(trace.dependencies)
            one = _Traced(trace, np.array(element.targets, dtype=np.int64), [])
            found.append(one)
            if like is not None:
                read = [trace.graph.data[i][1] for i in _arguments(trace)]
                one.arguments = entries(read, self.places.rows, like.rows)
                one.driven = entries(element.targets, targets, like.rows)
                if one.arguments is not None and one.driven is not None:
                    one.equals.append(like)
                    known[like.key] = one
        return found

    @cached_property
    def is_current(self) -> Callable[[], bool]:
        """Whether external values read by user functions are unchanged since the trace."""
        return self._dependencies.check()

    @cached_property
    def record(self) -> Record:
        """The record from which the compiled loop reads the forces."""
        groups = self.groups
        arrays: dict[str, Any] = {
            "arguments": _joined([group.arguments for group in groups], np.int64),
            "constants": _joined([group.constants for group in groups], float),
            "targets": _joined([group.targets for group in groups], np.int64),
        }
        sizes: dict[str, Any] = {f"n_{name}": array.size for name, array in arrays.items()}
        return Record(
            FORCES,
            groups=len(groups),
            n_loads=self.places.n_loads,
            longest=max((group.code.size for group in groups), default=0),
            sizes=np.array([_sizes(group) for group in groups], dtype=np.int64),
            **arrays,
            **sizes,
        )


@dataclass
class _Traced:
    """The trace of a force, and the indices to exchange for equal forces."""

    trace: Traced
    targets: np.ndarray
    equals: list[Likeness]  # indices of the force and its equals; empty if there are none
    arguments: list[ForceEntry] | None = None
    driven: list[ForceEntry] | None = None


class Group(NamedTuple):
    """Forces with the same code, in rows."""

    code: MachineFunction
    arguments: np.ndarray
    constants: np.ndarray
    targets: np.ndarray


def _group(found: Alike, traced: Sequence[_Traced]) -> Group:
    arguments, constants, targets = [], [], []
    for one, own, numbers in zip(traced, found.arguments, found.constants):
        several = max(len(one.equals), 1)
        arguments.append(own[None] if one.arguments is None or not one.equals else exchanged(one.arguments, one.equals))
        targets.append(one.targets[None] if one.driven is None or not one.equals else exchanged(one.driven, one.equals))
        constants.append(np.repeat(numbers[None], several, axis=0))
    return Group(found.code, np.concatenate(arguments), np.concatenate(constants), np.concatenate(targets))


def _arguments(trace: Traced) -> list[int]:
    """Argument nodes that a trace reads, except time, in the order in which its structure lists them."""
    graph = trace.graph
    read = graph.needed([*trace.nodes, trace.raises])
    return [i for i in read if graph.operations[i] == "argument" and graph.data[i][0] == ARGUMENT]


def _sizes(group: Group) -> list[int]:
    members, n_x = group.arguments.shape
    return [group.code.address, members, n_x, group.targets.shape[1], group.constants.shape[1], group.code.size]


def _joined(arrays: Sequence[np.ndarray], kind: Any) -> np.ndarray:
    return np.concatenate([np.zeros(0), *(array.ravel() for array in arrays)]).astype(kind)


_NAMES = ("name", "joint", "joints")  # attributes that only identify the force, without effect on the result


class Likeness(NamedTuple):
    """Key for comparing a force with others, and its rows in arrays."""

    key: tuple
    rows: dict[str, list[int]]  # indices of bodies, coordinates and velocities


def likeness(force: Force, layout: Any) -> Likeness | None:
    """Likeness of a force; None if it has functions or states, or joints whose coordinates are computed from frames."""
    rows: dict[str, list[int]] = {"body": [], "q": [], "v": []}
    key: list[Any] = [type(force)]
    if force.initial:
        return None
    for joint in force.joints:
        one = coordinate_of(layout, joint, force.which)
        if one.q < 0 or one.v < 0:
            return None
        rows["q"].append(one.q)
        rows["v"].append(one.v)
    for name, value in vars(force).items():
        if name in _NAMES:
            continue
        for part in value if isinstance(value, tuple) else (value,):
            if isinstance(part, Frame):
                body = layout.index[part.body.name]
                if body >= 0 and body not in rows["body"]:
                    rows["body"].append(body)
                place = rows["body"].index(body) if body >= 0 else -1
                key.append((name, place, part.body.mass, (part.position - part.body.center).tobytes()))
                key.append(part.rotation.tobytes())
            elif part is None or isinstance(part, (bool, int, float, str)):
                key.append((name, part))
            elif isinstance(part, np.ndarray):
                key.append((name, part.shape, part.tobytes()))
            else:
                return None
    return Likeness(tuple(key), rows)


class ForceEntry(NamedTuple):
    """An entry of an array, relative to the rows of a force: first + width * row + component."""

    kind: str
    place: int  # index among the rows of this kind
    first: int
    width: int
    component: int


def entries(
    indices: Sequence[int], arrays: Sequence[tuple[str, int, int, int]], rows: Mapping[str, list[int]]
) -> list[ForceEntry] | None:
    """Entries for given indices; None if one of them is not in any row.

    `arrays` gives for each array the kind of its rows, its start, the number of rows and their length.
    """
    found = [_entry(index, arrays, rows) for index in indices]
    known = [one for one in found if one is not None]
    return known if len(known) == len(found) else None


def _entry(index: int, arrays, rows: Mapping[str, list[int]]) -> ForceEntry | None:
    for kind, first, count, width in arrays:
        row, component = divmod(index - first, width)
        if 0 <= row < count:
            return ForceEntry(kind, rows[kind].index(row), first, width, component) if row in rows[kind] else None
    return None


def exchanged(found: list[ForceEntry], likenesses: Sequence[Likeness]) -> np.ndarray:
    """The indices of these entries for each of several equal forces, in rows."""
    columns = [
        [one.first + one.width * like.rows[one.kind][one.place] + one.component for like in likenesses] for one in found
    ]
    return np.array(columns, dtype=np.int64).reshape(len(found), len(likenesses)).T
