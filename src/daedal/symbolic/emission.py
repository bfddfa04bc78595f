"""The graph as LLVM's assembly language: one instruction a node, in pieces of bounded length.

All functions have the signature of callbacks (`kernels/callbacks.py`), ``int32 f(double t, double* block)``. Code
generation for one function takes more than linear time, so that long programs become several functions, which hand
values on in the last part of the block. No instruction has a fast-math flag and no product and sum are contracted:
results are those of the same operations in Python, with the functions of the C library.

*Quick* code is for what no user's function says digit by digit, such as the solution of a linear system: sines and
cosines are computed four at a time (`sines.py`), and may differ from those of the C library in the last digit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import llvmlite.binding as llvm

from daedal.symbolic.graph import Graph
from daedal.symbolic.operations import ARITHMETIC, CONDITIONS, FUNCTIONS, TABLES
from daedal.symbolic.sines import LANES, PAIR, definition
from daedal.symbolic.sines import hexadecimal as _hex

LONGEST, PIECE = 1000, 500
"""Instructions up to which a program is one function, and in each function of a longer one."""
_STORED = 2  # instructions that a stored result counts for: their order is what code generation spends its time on
_TOGETHER = 100  # results that are the same constant, in one function
ENTRY = "daedal_entry"
_TYPED_POINTERS = llvm.llvm_version_info[0] < 17
_POINTER = "double*" if _TYPED_POINTERS else "ptr"

_LOCATE = f"""
define private double @locate(double %x, {_POINTER} %points, i64 %n) {{
entry:
  br label %loop
loop:
  %low = phi i64 [0, %entry], [%next_low, %body]
  %high = phi i64 [%n, %entry], [%next_high, %body]
  %more = icmp ult i64 %low, %high
  br i1 %more, label %body, label %done
body:
  %sum = add i64 %low, %high
  %middle = lshr i64 %sum, 1
  %place = getelementptr double, {_POINTER} %points, i64 %middle
  %point = load double, {_POINTER} %place
  %below = fcmp olt double %x, %point
  %beyond = add i64 %middle, 1
  %next_low = select i1 %below, i64 %low, i64 %beyond
  %next_high = select i1 %below, i64 %middle, i64 %high
  br label %loop
done:
  %count = uitofp i64 %low to double
  ret double %count
}}
"""
_PICK = f"""
define private double @pick(double %index, {_POINTER} %values, i64 %n) {{
entry:
  %size = sitofp i64 %n to double
  %minus = fneg double %size
  %not_low = fcmp oge double %index, %minus
  %not_high = fcmp olt double %index, %size
  %inside = and i1 %not_low, %not_high
  br i1 %inside, label %read, label %outside
read:
  %whole = fptosi double %index to i64
  %from_end = icmp slt i64 %whole, 0
  %shifted = add i64 %whole, %n
  %i = select i1 %from_end, i64 %shifted, i64 %whole
  %place = getelementptr double, {_POINTER} %values, i64 %i
  %value = load double, {_POINTER} %place
  ret double %value
outside:
  ret double 0x7FF8000000000000
}}
"""


@dataclass(frozen=True)
class Program:
    """Assembly text and what its caller has to know.

    Attributes
    ----------
    text : str
        The module, with the function `ENTRY`.
    workspace : int
        How many floats it needs behind the rest of the block.
    operations : int
        How many operations it takes.
    """

    text: str
    workspace: int
    operations: int


def emit(
    graph: Graph,
    time: int | None,
    places: Mapping[int, int],
    results: Sequence[tuple[int, int]],
    statuses: Sequence[tuple[int, int]],
    end: int,
    *,
    quick: bool = False,
) -> Program:
    """Write the program that computes results from arguments.

    Parameters
    ----------
    graph : Graph
        The graph.
    time : int or None
        The node of the time, the first argument of the function.
    places : mapping
        For nodes of arguments, where they stand in the block.
    results : sequence of (place, node)
        Where results are written; a node may stand more than once.
    statuses : sequence of (condition, code)
        The function returns the code of the first condition that holds, otherwise 0.
    end : int
        Where the block ends without workspace.
    quick : bool
        Whether sines and cosines may differ from those of the C library in the last digit.
    """
    return _Writer(graph, time, places, results, statuses, end, quick).program()


def depth_first(graph: Graph, outputs: Sequence[int]) -> list[int]:
    """What the outputs are computed from, operands first and each just before its first use.

    Values live shortly, so that most stay in registers. The conditions of pivots come first among the outputs: they
    call for the elimination in its order, and for what enters it in the order in which it does.
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
    """Operands of sines and cosines that are made of arithmetic alone, in order; all can be computed first."""
    plain: set[int] = set()
    for i in needed:
        if not graph.operands[i] or graph.operations[i] in ARITHMETIC:
            if all(k in plain for k in graph.operands[i]) and not graph.is_condition(i):
                plain.add(i)
    angles = dict.fromkeys(graph.operands[i][0] for i in needed if graph.operations[i] in ("sin", "cos"))
    return [i for i in angles if i in plain]


class _Writer:
    def __init__(self, graph: Graph, time, places, results, statuses, end: int, quick: bool):
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
        self.declared: dict[str, str] = {}
        self.tables: dict[tuple[float, ...], str] = {}

    def program(self) -> Program:
        slots, workspace = self._slots()
        pieces = [self._piece(k, slots) for k in range(self.n_pieces)]
        entry = pieces[-1] if self.n_pieces == 1 else self._entry()
        parts = [*pieces[: self.n_pieces if self.n_pieces > 1 else 0], entry]
        helpers = [text for name, text in (("locate", _LOCATE), ("pick", _PICK)) if name in self.declared]
        if self.angles:
            self.function("llvm.sin", 1), self.function("llvm.cos", 1)
            helpers.append(definition())
        declarations = [text for text in self.declared.values() if text]
        return Program("\n".join([*self._table_lines(), *declarations, *helpers, *parts]), workspace, len(self.order))

    def _cut(self, needed: Sequence[int]) -> list[list[tuple[int, list[int]]]]:
        """What each function computes and where it stores it, in an order that is operands first."""
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

    # --- values that outlive their piece ------------------------------------------------------------------------------

    def _slots(self) -> tuple[dict[int, int], int]:
        """A place in the workspace for each value that a later piece needs; places are used again."""
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

    def _entry(self) -> str:
        calls = [f"  call void @piece_{k}(double %t, {_POINTER} %block)" for k in range(self.n_pieces - 1)]
        last = self.n_pieces - 1
        calls += [f"  %status = call i32 @piece_{last}(double %t, {_POINTER} %block)", "  ret i32 %status"]
        return "\n".join([f"define i32 @{ENTRY}(double %t, {_POINTER} %block) {{", *calls, "}"])

    def _piece(self, k: int, slots: Mapping[int, int]) -> str:
        is_last = k == self.n_pieces - 1
        body = _Body(self, slots)
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
        return "\n".join([f"define {kind} @{name}(double %t, {_POINTER} %block) {{", *body.lines, "}"])

    def function(self, code: str, arity: int) -> str:
        """The name by which a function of the C library or an intrinsic is called."""
        name = f"{code}.f64" if code.startswith("llvm.") else code
        if name not in self.declared:
            self.declared[name] = f"declare double @{name}({', '.join(['double'] * arity)})"
        return name

    def table(self, values: tuple[float, ...]) -> str:
        """A pointer to a table of constants."""
        if values not in self.tables:
            self.tables[values] = f"@table_{len(self.tables)}"
        if not _TYPED_POINTERS:
            return self.tables[values]
        array = f"[{len(values)} x double]"
        return f"getelementptr inbounds ({array}, {array}* {self.tables[values]}, i64 0, i64 0)"

    def _table_lines(self) -> list[str]:
        return [
            f"{name} = private constant [{len(values)} x double] [{', '.join('double ' + _hex(x) for x in values)}]"
            for values, name in self.tables.items()
        ]


class _Body:
    """The instructions of one function."""

    def __init__(self, writer: _Writer, slots: Mapping[int, int]):
        self.writer, self.graph, self.slots = writer, writer.graph, slots
        self.lines: list[str] = []
        self.values: dict[int, str] = {}
        self.fresh = 0
        self.fours = {angle: four for four in writer.angles for angle in four}
        self.pairs: dict[int, str] = {}

    def value(self, i: int) -> str:
        """The operand that stands for a node: a constant, a loaded argument, a result of this or an earlier piece."""
        if i not in self.values:
            self.values[i] = self._loaded(i)
        return self.values[i]

    def _loaded(self, i: int) -> str:
        operation = self.graph.operations[i]
        if operation == "constant":
            return _hex(self.graph.data[i])
        if operation in ("true", "false"):
            return operation
        if i == self.writer.time:
            return "%t"
        place = self.writer.places[i] if operation == "argument" else self.slots[i]
        loaded = self._new(f"load double, {_POINTER} {self._pointer(place)}")
        return self._new(f"fcmp une double {loaded}, {_hex(0.0)}") if self.graph.is_condition(i) else loaded

    def _new(self, instruction: str) -> str:
        name = f"%x{self.fresh}"
        self.fresh += 1
        self.lines.append(f"  {name} = {instruction}")
        return name

    def _pointer(self, place: int) -> str:
        return self._new(f"getelementptr double, {_POINTER} %block, i64 {place}")

    def store(self, value: str, place: int):
        self.lines.append(f"  store double {value}, {_POINTER} {self._pointer(place)}")

    def compute(self, i: int):
        self.values[i] = self._instruction(i, [self.value(k) for k in self.graph.operands[i]])
        if i in self.slots:
            value = self.values[i]
            if self.graph.is_condition(i):
                value = self._new(f"select i1 {value}, double {_hex(1.0)}, double {_hex(0.0)}")
            self.store(value, self.slots[i])

    def _instruction(self, i: int, operands: list[str]) -> str:
        operation = self.graph.operations[i]
        if operation in ARITHMETIC:
            return self._new(f"{ARITHMETIC[operation].code} double {', '.join(operands)}")
        if operation in ("sin", "cos") and self.graph.operands[i][0] in self.fours:
            return self._sine(self.graph.operands[i][0], operation == "cos")
        if operation == "where":
            return self._select(*operands)
        if operation in CONDITIONS:
            return self._condition(operation, operands)
        if operation in TABLES:
            table = self.graph.data[i]
            self.writer.declared.setdefault(operation, "")
            pointer = self.writer.table(table)
            return self._new(f"call double @{operation}(double {operands[0]}, {_POINTER} {pointer}, i64 {len(table)})")
        if operation == "sign":
            return self._sign(operands[0])
        if operation in ("maximum", "minimum"):
            return self._extreme("oge" if operation == "maximum" else "ole", *operands)
        name = self.writer.function(FUNCTIONS[operation].code, len(operands))
        return self._new(f"call double @{name}({', '.join('double ' + x for x in operands)})")

    def _sine(self, angle: int, is_cosine: bool) -> str:
        """One of the sines and cosines of four angles, which are computed when the first of them is asked for."""
        four, vector = self.fours[angle], f"<{LANES} x double>"
        if four[0] not in self.pairs:
            packed = "undef"
            for k in range(LANES):
                value = self.value(four[min(k, len(four) - 1)])
                packed = self._new(f"insertelement {vector} {packed}, double {value}, i32 {k}")
            self.pairs[four[0]] = self._new(f"call {PAIR} @sines({vector} {packed})")
        found = self._new(f"extractvalue {PAIR} {self.pairs[four[0]]}, {int(is_cosine)}")
        return self._new(f"extractelement {vector} {found}, i32 {four.index(angle)}")

    def _select(self, condition: str, a: str, b: str) -> str:
        return self._new(f"select i1 {condition}, double {a}, double {b}")

    def _condition(self, operation: str, operands: list[str]) -> str:
        if operation == "logical_not":
            return self._new(f"xor i1 {operands[0]}, true")
        kind = "i1" if operation.startswith("logical") else "double"
        return self._new(f"{CONDITIONS[operation].code} {kind} {', '.join(operands)}")

    def _sign(self, x: str) -> str:
        """1, -1 or 0, and NaN of NaN."""
        zero = _hex(0.0)
        above, below = self._new(f"fcmp ogt double {x}, {zero}"), self._new(f"fcmp olt double {x}, {zero}")
        return self._select(above, _hex(1.0), self._select(below, _hex(-1.0), x))

    def _extreme(self, comparison: str, a: str, b: str) -> str:
        """NumPy's maximum and minimum: the first of equals, NaN if one is NaN."""
        first = self._new(f"fcmp {comparison} double {a}, {b}")
        is_nan = self._new(f"fcmp uno double {a}, {a}")
        return self._select(self._new(f"or i1 {first}, {is_nan}"), a, b)

    def finish(self, statuses: Sequence[tuple[int, int]]):
        status = "0"
        for condition, code in reversed(statuses):
            status = self._new(f"select i1 {self.value(condition)}, i32 {code}, i32 {status}")
        self.lines.append(f"  ret i32 {status}")
