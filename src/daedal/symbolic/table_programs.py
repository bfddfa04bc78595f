"""Large graphs as tables for a few loops instead of one instruction per node.

Code generation takes 40 microseconds per instruction, which is too slow for large problems. However, these are
repetitive: ten thousand pipes repeat the same operations ten thousand times. Nodes are sorted by depth and operation;
all nodes of a group are independent, and one loop computes them from a table of operand places. The loops, one per
operation, are the same for all programs and are generated once.

Values are stored in the workspace of the block: the time, constants, then the nodes in order of computation; conditions
are 1 or 0. Operations are those of `emission.py`, so results are bit-identical. A program consists of

    [groups, place of the time, statuses | place, code of each status | groups]

of 32-bit integers, a group being

    [operation, nodes, first place, begin and length of its table of floats, entries | operands of all nodes].
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from daedal.symbolic.graph import Graph
from daedal.symbolic.instructions import ENTRY, Declared, FunctionBody, number_text
from daedal.symbolic.operations import ARITHMETIC, CONDITIONS, FUNCTIONS, OPERATIONS, TABLES

CONSTANTS, RESULTS = "constants", "results"
_KINDS = [CONSTANTS, RESULTS, *(name for name in OPERATIONS if name not in ("true", "false"))]
_NUMBER = {name: k for k, name in enumerate(_KINDS)}
_ARITY = {
    **dict.fromkeys([*FUNCTIONS, *TABLES, "negative", "logical_not", RESULTS], 1),
    **dict.fromkeys([*ARITHMETIC.keys() - {"negative"}, *CONDITIONS.keys() - {"logical_not", "true", "false"}], 2),
    **dict.fromkeys(["power", "arctan2", "hypot", "copysign", "fmod", "minimum", "maximum"], 2),
    **dict.fromkeys(["remainder", "floor_divide"], 2),
    "where": 3,
    CONSTANTS: 0,
}
_HEADER = 6


class TableProgram(NamedTuple):
    """Tables read by the loops.

    Attributes
    ----------
    integers, floats : numpy.ndarray
        The program, and its constants and tables.
    workspace : int
        Number of floats needed after the rest of the block.
    operations : int
        Number of operations.
    """

    integers: np.ndarray
    floats: np.ndarray
    workspace: int
    operations: int


def table_program(
    graph: Graph,
    time: int | None,
    places: Mapping[int, int],
    results: Sequence[tuple[int, int]],
    statuses: Sequence[tuple[int, int]],
    end: int,
) -> TableProgram:
    """The tables of a program; the arguments are those of :func:`daedal.symbolic.emission.emit`."""
    needed = graph.needed([*(condition for condition, _ in statuses), *(node for _, node in results)])
    place = np.full(len(graph), -1, dtype=np.int32)
    for node, where in places.items():
        place[node] = where
    if time is not None:
        place[time] = end
    writer, free = _GroupWriter(place), end + 1
    constants = [i for i in needed if not graph.operands[i] and graph.operations[i] != "argument"]
    writer.group(CONSTANTS, free, constants, (), [_constant(graph, i) for i in constants])
    free += len(constants)
    for (_, operation, _), nodes in sorted(_groups(graph, needed).items(), key=lambda item: item[0][:2]):
        table = graph.data[nodes[0]] if operation in TABLES else ()
        writer.group(operation, free, nodes, [graph.operands[i] for i in nodes], table)
        free += len(nodes)
    if results:
        writer.copies(results)
    pairs = [entry for condition, code in statuses for entry in (int(place[condition]), code)]
    integers = np.concatenate([np.array([writer.count, end, len(statuses), *pairs], dtype=np.int32), *writer.parts])
    operations = sum(bool(graph.operands[i]) for i in needed)
    return TableProgram(integers, np.array(writer.floats, dtype=float), free - end, operations)


def _constant(graph: Graph, i: int) -> float:
    return graph.data[i] if graph.is_constant(i) else float(graph.operations[i] == "true")


def _groups(graph: Graph, needed: Sequence[int]) -> dict[tuple[int, str, Any], list[int]]:
    """Nodes of the same depth, operation and table, which are mutually independent."""
    depth: dict[int, int] = {}
    groups: dict[tuple[int, str, Any], list[int]] = {}
    for i in needed:
        operands, operation = graph.operands[i], graph.operations[i]
        depth[i] = level = 1 + max(depth[k] for k in operands) if operands else 0
        if operands:
            groups.setdefault((level, operation, graph.data[i] if operation in TABLES else None), []).append(i)
    return groups


class _GroupWriter:
    """Writes groups and assigns places to nodes."""

    def __init__(self, place: np.ndarray):
        self.place, self.count = place, 0
        self.parts: list[np.ndarray] = []
        self.floats: list[float] = []

    def group(self, kind: str, first: int, nodes: Sequence[int], operands: Sequence, table: Iterable[float]):
        """Write a group of nodes that are stored from place `first` onwards."""
        if not nodes:
            return
        self.place[nodes] = np.arange(first, first + len(nodes))
        entries = self.place[np.array(operands, dtype=np.int64).ravel()]
        self._append(kind, len(nodes), first, entries, table)

    def copies(self, results: Sequence[tuple[int, int]]):
        """Copy results to their places; the operands are pairs of target and source."""
        pairs = np.array(results, dtype=np.int64)
        entries = np.column_stack([pairs[:, 0], self.place[pairs[:, 1]]]).astype(np.int32).ravel()
        self._append(RESULTS, len(pairs), 0, entries, ())

    def _append(self, kind: str, count: int, first: int, entries: np.ndarray, table: Iterable[float]):
        begin = len(self.floats)
        self.floats += table
        header = [_NUMBER[kind], count, first, begin, len(self.floats) - begin, entries.size]
        self.parts += [np.array(header, dtype=np.int32), entries.astype(np.int32)]
        self.count += 1


# --- the loops in LLVM assembly ---------------------------------------------------------------------------------------

_LOOP_ARGUMENTS = "ptr %block, ptr %entries, i64 %first, i64 %n, ptr %table, i64 %length"


def loops() -> str:
    """The module with the function ``ENTRY(t, block, integers, floats)`` that runs any program."""
    declared = Declared()
    parts = [_loop(kind, declared) for kind in _KINDS]
    return "\n".join([*declared.lines(), *parts, _entry()])


def _loop(kind: str, declared: Declared) -> str:
    """One loop over all nodes of a group."""
    body = _LoopBody(declared)
    if kind == CONSTANTS:
        target, value = body.add("%first", "%k"), body.float_at("%table", "%k")
    elif kind == RESULTS:
        target, value = body.entry(2, 0), body.float_at("%block", body.entry(2, 1))
    else:
        target = body.add("%first", "%k")
        value = body.result(kind)
    body.put(target, value)
    return "\n".join(
        [
            f"define private void @loop_{kind}({_LOOP_ARGUMENTS}) {{",
            "entry:\n  br label %loop",
            "loop:\n  %k = phi i64 [0, %entry], [%next, %loop]",
            *body.lines,
            "  %next = add i64 %k, 1",
            "  %more = icmp ult i64 %next, %n",
            "  br i1 %more, label %loop, label %done",
            "done:\n  ret void\n}",
        ]
    )


class _LoopBody(FunctionBody):
    """Instructions of the body of a loop."""

    def add(self, a: str, b: str) -> str:
        return self.new(f"add i64 {a}, {b}")

    def entry(self, width: int, r: int) -> str:
        """Place of operand r of node k, for nodes with `width` operands each."""
        place = self.add(self.new(f"mul i64 %k, {width}"), str(r))
        pointer = self.new(f"getelementptr i32, ptr %entries, i64 {place}")
        return self.new(f"sext i32 {self.new(f'load i32, ptr {pointer}')} to i64")

    def float_at(self, base: str, place: str) -> str:
        pointer = self.new(f"getelementptr double, ptr {base}, i64 {place}")
        return self.new(f"load double, ptr {pointer}")

    def put(self, place: str, value: str):
        pointer = self.new(f"getelementptr double, ptr %block, i64 {place}")
        self.lines.append(f"  store double {value}, ptr {pointer}")

    def result(self, operation: str) -> str:
        """Value of one node from its operands."""
        operands = []
        for r in range(_ARITY[operation]):
            value = self.float_at("%block", self.entry(_ARITY[operation], r))
            if operation.startswith("logical") or (operation == "where" and r == 0):
                value = self.new(f"fcmp une double {value}, {number_text(0.0)}")
            operands.append(value)
        value = self.instruction(operation, operands, ("%table", "%length"))
        if operation in CONDITIONS:
            return self.new(f"select i1 {value}, double {number_text(1.0)}, double {number_text(0.0)}")
        return value


def _entry() -> str:
    calls, cases = [], []
    for k, kind in enumerate(_KINDS):
        cases.append(f"i32 {k}, label %run_{kind}")
        calls.append(
            f"run_{kind}:\n  call void @loop_{kind}(ptr %block, ptr %entries, i64 %h2, i64 %h1, "
            f"ptr %table, i64 %h4)\n  br label %ran"
        )
    headers = []
    for k in range(_HEADER):
        headers += [
            f"  %a{k} = add i64 %at, {k}",
            f"  %p{k} = getelementptr i32, ptr %code, i64 %a{k}",
            f"  %i{k} = load i32, ptr %p{k}",
            f"  %h{k} = sext i32 %i{k} to i64",
        ]
    return f"""
define i32 @{ENTRY}(double %t, ptr %block, ptr %code, ptr %floats) {{
entry:
  %groups = load i32, ptr %code
  %time_at = getelementptr i32, ptr %code, i64 1
  %time_place = load i32, ptr %time_at
  %time = getelementptr double, ptr %block, i32 %time_place
  store double %t, ptr %time
  %told_at = getelementptr i32, ptr %code, i64 2
  %told = load i32, ptr %told_at
  %told_long = sext i32 %told to i64
  %twice = mul i64 %told_long, 2
  %begin = add i64 %twice, 3
  br label %next
next:
  %g = phi i32 [0, %entry], [%g_next, %ran]
  %at = phi i64 [%begin, %entry], [%at_next, %ran]
  %more = icmp ult i32 %g, %groups
  br i1 %more, label %read, label %statuses
read:
{chr(10).join(headers)}
  %behind = add i64 %at, {_HEADER}
  %entries = getelementptr i32, ptr %code, i64 %behind
  %table = getelementptr double, ptr %floats, i64 %h3
  switch i32 %i0, label %ran [{" ".join(cases)}]
{chr(10).join(calls)}
ran:
  %g_next = add i32 %g, 1
  %at_next = add i64 %behind, %h5
  br label %next
statuses:
  %s = phi i64 [0, %next], [%s_next, %not_told]
  %left = icmp ult i64 %s, %told_long
  br i1 %left, label %look, label %fine
look:
  %pair = mul i64 %s, 2
  %where_at = add i64 %pair, 3
  %where_pointer = getelementptr i32, ptr %code, i64 %where_at
  %where = load i32, ptr %where_pointer
  %condition_pointer = getelementptr double, ptr %block, i32 %where
  %condition = load double, ptr %condition_pointer
  %holds = fcmp une double %condition, {number_text(0.0)}
  br i1 %holds, label %tell, label %not_told
tell:
  %code_at = add i64 %pair, 4
  %code_pointer = getelementptr i32, ptr %code, i64 %code_at
  %status = load i32, ptr %code_pointer
  ret i32 %status
not_told:
  %s_next = add i64 %s, 1
  br label %statuses
fine:
  ret i32 0
}}
"""
