"""The graph as LLVM assembly: one instruction per node, in functions of bounded length.

All functions have the callback signature (`kernels/callbacks.py`) ``int32 f(double t, double* block)``. Code generation
time grows superlinearly with the length of a function, so long programs are split into several functions, which pass
values in the last section of the block. Instructions have no fast-math flags and products and sums are not contracted:
results are those of the same operations in Python, with the functions of the C library.

*Quick* code is for results that need not match a user function digit for digit, such as the solution of a linear
system: sines and cosines are computed four at a time (`sines.py`) and may differ from the C library in the last digit.

In *lanes* code, each number is a vector of `WIDTH`, for eight members of an ensemble at once, each bit-identical to a
separate computation. The function is ``int32 f(double* times, double* block)``, where block entries are vectors and the
statuses of the lanes, as floats, are at the end; it returns whether one of them is not 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from daedal.symbolic.graph import Graph
from daedal.symbolic.instructions import (
    ENTRY,
    LANES,
    PAIR,
    USED,
    Constants,
    Declared,
    FunctionBody,
    definition,
    number_text,
)
from daedal.symbolic.operations import ARITHMETIC, TABLES

WIDTH = 8
"""Number of lanes of code for several members."""
LONGEST, PIECE = 1000, 500
"""Number of instructions above which a program is split, and length of each resulting function."""
# number of instructions for which each stored result counts when a program is split: stores take longer to generate
_STORED = 2
_SPECIAL = (0.0, 0.5, 1.0, 2.0, -0.5, -1.0, -2.0)
"""Constants written into the text; programs that differ only in other constants share their object code."""
_TOGETHER = 100  # maximum number of results with the same value that one function stores


@dataclass(frozen=True)
class Program:
    """Assembly text and its metadata.

    Attributes
    ----------
    text : str
        The LLVM module, with the function `ENTRY`.
    workspace : int
        Number of floats needed after the rest of the block.
    operations : int
        Number of operations.
    constants : bytes
        The numbers that the text does not contain.
    """

    text: str
    workspace: int
    operations: int
    constants: bytes


def emit(
    graph: Graph,
    time: int | None,
    places: Mapping[int, int],
    results: Sequence[tuple[int, int]],
    statuses: Sequence[tuple[int, int]],
    end: int,
    *,
    quick: bool = False,
    lanes: bool = False,
) -> Program:
    """Write the program that computes results from arguments.

    Parameters
    ----------
    graph : Graph
        The graph.
    time : int or None
        Node of the time, the first argument of the function.
    places : mapping
        For argument nodes, their places in the block.
    results : sequence of (place, node)
        Places of the results; a node may occur more than once.
    statuses : sequence of (condition, code)
        The function returns the code of the first condition that holds, otherwise 0.
    end : int
        End of the block without workspace.
    quick : bool
        Whether sines and cosines may differ from those of the C library in the last digit.
    lanes : bool
        Whether numbers are vectors; the statuses of the lanes are then written to the last place before `end`.
    """
    return _Writer(graph, time, places, results, statuses, end, quick, lanes).program()


def depth_first(graph: Graph, outputs: Sequence[int]) -> list[int]:
    """All nodes needed for the outputs, operands first, and each just before its first use.

    This order keeps values short-lived, so that most stay in registers. Conditions on pivots are the first outputs, so
    that the elimination is emitted in its original order, with each input just before its first use.
    """
    order: list[int] = []
    seen: set[int] = set()
    for output in outputs:
        waiting = [(output, False)]
        while waiting:
            i, is_ready = waiting.pop()
            if is_ready:
                order.append(i)
            elif i not in seen:
                seen.add(i)
                waiting.append((i, True))
                waiting += [(k, False) for k in reversed(graph.operands[i]) if k not in seen]
    return order


def _plain_angles(graph: Graph, needed: Sequence[int]) -> list[int]:
    """Angles of sines and cosines that require only arithmetic, in order; they can be computed before other nodes."""
    plain: set[int] = set()
    for i in needed:
        if not graph.operands[i] or graph.operations[i] in ARITHMETIC:
            if all(k in plain for k in graph.operands[i]) and not graph.is_condition(i):
                plain.add(i)
    angles = dict.fromkeys(graph.operands[i][0] for i in needed if graph.operations[i] in ("sin", "cos"))
    return [i for i in angles if i in plain]


class _Writer:
    def __init__(self, graph: Graph, time, places, results, statuses, end: int, quick: bool, lanes: bool):
        self.lanes = WIDTH if lanes else 1
        self.graph, self.time, self.places, self.statuses, self.end = graph, time, places, statuses, end
        self.targets: dict[int, list[int]] = {}
        for place, node in results:
            self.targets.setdefault(node, []).append(place)
        outputs = [*(condition for condition, _ in statuses), *sorted(self.targets)]
        needed = depth_first(graph, outputs)
        self.angles: list[list[int]] = []
        if quick and len(needed) <= LONGEST:
            found = _plain_angles(graph, needed)
            self.angles = [found[k : k + LANES] for k in range(0, len(found), LANES) if len(found) > k + 1]
            needed = depth_first(graph, [*(i for four in self.angles for i in four), *outputs])
        self.order = [i for i in needed if graph.operands[i]]
        self.pieces = self._cut(needed)
        self.n_pieces = len(self.pieces)
        if self.n_pieces > 1:
            self.angles = []
        self.piece_of = {i: k for k, piece in enumerate(self.pieces) for i, _ in piece if graph.operands[i]}
        self.declared = Declared()
        self.constants = Constants()

    def program(self) -> Program:
        slots, workspace = self._slots()
        pieces = [self._piece(k, slots) for k in range(self.n_pieces)]
        entry = pieces[-1] if self.n_pieces == 1 else self._entry()
        parts = [*pieces[: self.n_pieces if self.n_pieces > 1 else 0], entry]
        if self.angles:
            self.declared.define("sines", definition(), USED)
        text = "\n".join([*self.constants.lines(), *self.declared.lines(), *parts])
        return Program(text, workspace, len(self.order), self.constants.values())

    def _cut(self, needed: Sequence[int]) -> list[list[tuple[int, list[int]]]]:
        """Split into functions: the nodes that each computes and stores, in topological order."""
        items: list[tuple[int, list[int]]] = []
        for i in needed:
            places = self.targets.get(i, [])
            if self.graph.operands[i]:
                items.append((i, places))
            else:
                items += [(i, places[k : k + _TOGETHER]) for k in range(0, len(places), _TOGETHER)]
        sizes = [1 + _STORED * len(places) for _, places in items]
        most = LONGEST if sum(sizes) <= LONGEST else PIECE
        pieces: list[list[tuple[int, list[int]]]] = [[]]
        size = 0
        for item, more in zip(items, sizes):
            if pieces[-1] and size + more > most:
                pieces.append([])
                size = 0
            pieces[-1].append(item)
            size += more
        return pieces

    # --- values used by later pieces ----------------------------------------------------------------------------------

    def _slots(self) -> tuple[dict[int, int], int]:
        """A workspace slot for each value that a later piece needs; slots are reused."""
        last = self.n_pieces - 1
        until: dict[int, int] = {}
        for i in self.order:
            for k in self.graph.operands[i]:
                if k in self.piece_of and self.piece_of[k] < self.piece_of[i]:
                    until[k] = self.piece_of[i]
        for condition, _ in self.statuses:
            if condition in self.piece_of and self.piece_of[condition] < last:
                until[condition] = last
        slots: dict[int, int] = {}
        free: list[int] = []
        ending: dict[int, list[int]] = {}
        size, current = 0, 0
        for i in self.order:
            while current < self.piece_of[i]:
                free += ending.pop(current, [])
                current += 1
            if i in until:
                if not free:
                    free.append(size)
                    size += 1
                slots[i] = free.pop()
                ending.setdefault(until[i], []).append(slots[i])
        return {i: self.end + slot for i, slot in slots.items()}, size

    # --- functions ----------------------------------------------------------------------------------------------------

    @property
    def _arguments(self) -> str:
        return f"{'double %t' if self.lanes == 1 else 'ptr %times'}, ptr %block"

    def _entry(self) -> str:
        calls = [f"  call void @piece_{k}({self._arguments})" for k in range(self.n_pieces - 1)]
        last = self.n_pieces - 1
        calls += [f"  %status = call i32 @piece_{last}({self._arguments})", "  ret i32 %status"]
        return "\n".join([f"define i32 @{ENTRY}({self._arguments}) {{", *calls, "}"])

    def _piece(self, k: int, slots: Mapping[int, int]) -> str:
        is_last = k == self.n_pieces - 1
        body = _PieceBody(self, slots)
        for i, places in self.pieces[k]:
            if self.graph.operands[i]:
                body.compute(i)
            for place in places:
                body.store(body.value(i), place)
        if is_last:
            body.finish(self.statuses)
        else:
            body.lines.append("  ret void")
        name = ENTRY if self.n_pieces == 1 else f"piece_{k}"
        kind = f"{'' if name == ENTRY else 'private '}{'i32' if is_last else 'void'}"
        return "\n".join([f"define {kind} @{name}({self._arguments}) {{", *body.lines, "}"])


class _PieceBody(FunctionBody):
    """The instructions of one piece."""

    def __init__(self, writer: _Writer, slots: Mapping[int, int]):
        super().__init__(writer.declared, writer.lanes)
        self.writer, self.graph, self.slots = writer, writer.graph, slots
        self.values: dict[int, str] = {}
        self.fours = {angle: four for four in writer.angles for angle in four}
        self.pairs: dict[int, str] = {}
        self.waves: dict[int, tuple[str, ...]] = {}

    def value(self, i: int) -> str:
        """The operand of a node: a constant, a loaded argument, or a result of this or an earlier piece."""
        if i not in self.values:
            self.values[i] = self._loaded(i)
        return self.values[i]

    def _loaded(self, i: int) -> str:
        operation = self.graph.operations[i]
        if operation == "constant":
            return self._constant(self.graph.data[i])
        if operation in ("true", "false"):
            return self.constant(operation, "i1")
        if i == self.writer.time:
            return "%t" if self.lanes == 1 else self._load("%times", 0)
        place = self.writer.places[i] if operation == "argument" else self.slots[i]
        loaded = self._load("%block", place)
        zero = self.constant(number_text(0.0))
        return self.compare("une", loaded, zero) if self.graph.is_condition(i) else loaded

    def _constant(self, value: float) -> str:
        """A constant: inline if special, otherwise loaded from the module's data."""
        if value in _SPECIAL or value != value:
            return self.constant(number_text(value))
        loaded = self.new(f"load double, ptr {self.writer.constants.pointer((value,))}, align 8, !invariant.load !0")
        if self.lanes == 1:
            return loaded
        first = self.new(f"insertelement {self.number} undef, double {loaded}, i32 0")
        same = f"<{self.lanes} x i32> zeroinitializer"
        return self.new(f"shufflevector {self.number} {first}, {self.number} undef, {same}")

    def _pointer(self, base: str, place: int) -> str:
        """A pointer to a number, with its type."""
        return f"ptr {self.new(f'getelementptr double, ptr {base}, i64 {place * self.lanes}')}"

    def _load(self, base: str, place: int) -> str:
        return self.new(f"load {self.number}, {self._pointer(base, place)}, align 8")

    def store(self, value: str, place: int):
        self.lines.append(f"  store {self.number} {value}, {self._pointer('%block', place)}, align 8")

    def compute(self, i: int):
        operation, table = self.graph.operations[i], None
        operands = [self.value(k) for k in self.graph.operands[i]]
        if operation in TABLES:
            table = self.writer.constants.pointer(self.graph.data[i]), str(len(self.graph.data[i]))
        if operation in ("sin", "cos") and self.graph.operands[i][0] in self.fours:
            self.values[i] = self._sine(self.graph.operands[i][0], operation == "cos")
        else:
            self.values[i] = self.instruction(operation, operands, table)
        if i in self.slots:
            value = self.values[i]
            if self.graph.is_condition(i):
                value = self.select(value, *(self.constant(number_text(x)) for x in (1.0, 0.0)))
            self.store(value, self.slots[i])

    def _sine(self, angle: int, is_cosine: bool) -> str:
        """Sine or cosine of an angle, from a vector of four: four angles, or one angle in four lanes."""
        if self.lanes > 1:
            return self._sine_in_lanes(angle, is_cosine)
        four, vector = self.fours[angle], f"<{LANES} x double>"
        if four[0] not in self.pairs:
            packed = "undef"
            for k in range(LANES):
                value = self.value(four[min(k, len(four) - 1)])
                packed = self.new(f"insertelement {vector} {packed}, double {value}, i32 {k}")
            self.pairs[four[0]] = self.new(f"call {PAIR} @sines({vector} {packed})")
        found = self.new(f"extractvalue {PAIR} {self.pairs[four[0]]}, {int(is_cosine)}")
        return self.new(f"extractelement {vector} {found}, i32 {four.index(angle)}")

    def _sine_in_lanes(self, angle: int, is_cosine: bool) -> str:
        vector = f"<{LANES} x double>"
        if angle not in self.waves:
            value, halves = self.value(angle), []
            for first in range(0, self.lanes, LANES):
                mask = ", ".join(f"i32 {first + k}" for k in range(LANES))
                part = self.new(f"shufflevector {self.number} {value}, {self.number} undef, <{LANES} x i32> <{mask}>")
                pair = self.new(f"call {PAIR} @sines({vector} {part})")
                halves.append([self.new(f"extractvalue {PAIR} {pair}, {which}") for which in (0, 1)])
            mask = ", ".join(f"i32 {k}" for k in range(self.lanes))
            self.waves[angle] = tuple(
                self.new(f"shufflevector {vector} {a}, {vector} {b}, <{self.lanes} x i32> <{mask}>")
                for a, b in zip(*halves, strict=True)
            )
        return self.waves[angle][int(is_cosine)]

    def finish(self, statuses: Sequence[tuple[int, int]]):
        """Return the status; with lanes, store the statuses of all lanes and return whether one of them is not 0."""
        if self.lanes > 1:
            zero = self.constant(number_text(0.0))
            value = zero
            for condition, code in reversed(statuses):
                value = self.select(self.value(condition), self.constant(number_text(float(code))), value)
            self.store(value, self.writer.end - 1)
            found = self.new(f"bitcast {self.truth} {self.compare('une', value, zero)} to i{self.lanes}")
            self.lines.append(f"  ret i32 {self.new(f'zext i{self.lanes} {found} to i32')}")
            return
        status = "0"
        for condition, code in reversed(statuses):
            status = self.new(f"select i1 {self.value(condition)}, i32 {code}, i32 {status}")
        self.lines.append(f"  ret i32 {status}")
