"""A second reading of emitted functions: their text in C as LLVM's assembly language, where there is no C compiler.

What is read is the text itself, statement by statement; no use is made of the graph that it was written from.
"""

from __future__ import annotations

import ast
import ctypes
import re
from functools import lru_cache

import llvmlite.binding as llvm
import numpy as np

from daedal.symbolic.instructions import Declared, number_text
from daedal.symbolic.machine import _target_machine
from daedal.symbolic.operations import FUNCTIONS

_BINARY = {ast.Add: "fadd", ast.Sub: "fsub", ast.Mult: "fmul", ast.Div: "fdiv"}
_COMPARED = {ast.Lt: "olt", ast.LtE: "ole", ast.Eq: "oeq", ast.NotEq: "une", ast.Gt: "ogt", ast.GtE: "oge"}
_LOGICAL = {ast.BitAnd: "and", ast.BitOr: "or"}
_LIBRARY = {operation.code.removeprefix("llvm."): operation.code for operation in FUNCTIONS.values() if operation.code}
_CHOSEN = {
    "SIGN": "{0} > 0.0 ? 1.0 : {0} < 0.0 ? -1.0 : {0}",
    "MAXIMUM": "({0} >= {1}) | ({0} != {0}) ? {0} : {1}",
    "MINIMUM": "({0} <= {1}) | ({0} != {0}) ? {0} : {1}",
    "RECIPROCAL": "1.0 / {0}",
}
_HEAD = re.compile(r"EMITTED int (\w+)\(real t, (.*)\) \{")
_TABLE = re.compile(r"TABLE real (\w+)\[(\d+)\] = \{(.*)\};")
_STATEMENT = re.compile(r"(?:const (?:real|int) )?(\S+) = (.*);")
_BOTH = re.compile(r"SINE_AND_COSINE\((.*), (\w+), (\w+)\);")


class _Reader:
    """The instructions of one function; values are pairs of a type and a name."""

    def __init__(self, arrays: list[str], tables: dict[str, int]):
        self.lines: list[str] = []
        self.arrays, self.tables, self.names = arrays, tables, {"t": ("double", "%t")}
        self.used: dict[str, int] = {}

    def new(self, kind: str, instruction: str) -> tuple[str, str]:
        self.lines.append(f"  %v{len(self.lines)} = {instruction}")
        return kind, f"%v{len(self.lines) - 1}"

    def statement(self, line: str):
        if line.startswith(("real ", "(void)")):
            return
        if both := _BOTH.fullmatch(line):
            angle, sine, cosine = both.groups()
            self.names[sine], self.names[cosine] = self.value(f"sin({angle})"), self.value(f"cos({angle})")
        elif line.startswith("return "):
            status = self.value(line[7:-1], "i32")
            self.lines.append(f"  ret i32 {status[1]}")
        else:
            found = _STATEMENT.fullmatch(line)
            assert found, f"a statement of another kind: {line}"
            target, value = found[1], self.value(found[2])
            if "[" in target:
                self.lines.append(f"  store double {value[1]}, ptr {self._place(target)}")
            else:
                self.names[target] = value

    def _place(self, text: str) -> str:
        name, index = text[:-1].split("[")
        assert name in self.arrays, f"an unknown array: {text}"
        return self.new("pointer", f"getelementptr double, ptr %{name}, i64 {index}")[1]

    def value(self, text: str, kind: str = "double") -> tuple[str, str]:
        """An expression: a choice, whose parts may be choices, or what Python would read as the same."""
        condition, chosen, rest = text.partition(" ? ")
        if chosen:
            a, _, b = rest.partition(" : ")
            yes, first, second = self.value(condition), self.value(a, kind), self.value(b, kind)
            assert yes[0] == "i1" and first[0] == second[0]
            return self.new(first[0], f"select i1 {yes[1]}, {first[0]} {first[1]}, {second[0]} {second[1]}")
        if text.startswith("!"):
            return self.new("i1", f"xor i1 {self.value(text[1:])[1]}, true")
        if kind == "i32":
            return kind, str(int(text))
        text = re.sub(r"NUMBER\((-?0x[^)]*)\)", lambda m: repr(float.fromhex(m[1])), text)
        return self._read(ast.parse(text, mode="eval").body)

    def _read(self, node: ast.expr) -> tuple[str, str]:
        if isinstance(node, ast.Constant):
            if isinstance(node.value, int):
                return "i1", "true" if node.value else "false"
            return "double", number_text(float(node.value))
        if isinstance(node, ast.Name):
            special = {"NOT_A_NUMBER": float("nan"), "INFINITE": float("inf")}
            return ("double", number_text(special[node.id])) if node.id in special else self.names[node.id]
        if isinstance(node, ast.Subscript):
            return self.new("double", f"load double, ptr {self._place(ast.unparse(node))}")
        if isinstance(node, ast.UnaryOp):
            assert isinstance(node.op, ast.USub)
            if isinstance(node.operand, ast.Constant):
                return "double", number_text(-float(node.operand.value))
            return self.new("double", f"fneg double {self._read(node.operand)[1]}")
        if isinstance(node, ast.BinOp):
            (kind, a), (other, b) = self._read(node.left), self._read(node.right)
            logical = type(node.op) in _LOGICAL
            assert kind == other == ("i1" if logical else "double")
            return self.new(kind, f"{(_LOGICAL if logical else _BINARY)[type(node.op)]} {kind} {a}, {b}")
        if isinstance(node, ast.Compare):
            a, b = self._read(node.left)[1], self._read(node.comparators[0])[1]
            return self.new("i1", f"fcmp {_COMPARED[type(node.ops[0])]} double {a}, {b}")
        assert isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
        return self._call(node.func.id, node.args)

    def _call(self, name: str, arguments: list[ast.expr]) -> tuple[str, str]:
        if name in _CHOSEN:
            return self.value(_CHOSEN[name].format(*map(ast.unparse, arguments)))
        operand = self._read(arguments[0])[1]
        if name in ("locate", "pick"):
            table = ast.unparse(arguments[1])
            count = int(ast.unparse(arguments[2]))
            assert count == self.tables[table]
            return self.new("double", f"call double @{name}(double {operand}, ptr @{table}, i64 {count})")
        code = _LIBRARY[name]
        full = f"{code}.f64" if code.startswith("llvm.") else code
        values = [operand, *(self._read(x)[1] for x in arguments[1:])]
        self.used[full] = len(values)
        return self.new("double", f"call double @{full}({', '.join(f'double {x}' for x in values)})")


def assembly(text: str) -> str:
    """The functions of a text in C, as a module."""
    searches = Declared()
    for name in ("locate", "pick"):
        searches.search(name)
    for name in ("modulo", "floor_divide"):
        searches.function(name, 2)
    tables, parts, used = {}, searches.lines(), {}
    known = "\n".join(parts)
    reader, head = None, None
    for line in filter(None, map(str.strip, text.splitlines())):
        if table := _TABLE.fullmatch(line):
            reader = reader or _Reader([], {})
            values = [reader.value(x)[1] for x in table[3].split(", ")]
            tables[table[1]] = len(values)
            assert len(values) == int(table[2])
            entries = ", ".join(f"double {x}" for x in values)
            parts.append(f"@{table[1]} = private constant [{len(values)} x double] [{entries}]")
        elif found := _HEAD.fullmatch(line):
            arrays = [array.split()[-1] for array in found[2].split(", ")]
            head = f"define i32 @{found[1]}(double %t, {', '.join(f'ptr %{array}' for array in arrays)}) {{"
            reader = _Reader(arrays, tables)
        elif line == "}":
            parts.append("\n".join([head, *reader.lines, "}"]))
            used |= reader.used
        else:
            reader.statement(line)
    declared = [
        f"declare double @{name}({', '.join(['double'] * n)})" for name, n in used.items() if f"@{name}(" not in known
    ]
    return "\n".join([*declared, *parts])


@lru_cache(maxsize=4)
def _engine(text: str):
    module = llvm.parse_assembly(assembly(text))
    module.verify()
    engine = llvm.create_mcjit_compiler(module, _target_machine())
    engine.finalize_object()
    return engine


def called(text: str, name: str, arrays: list[np.ndarray], t: float) -> int:
    """Run a function of a text with arrays, results among them; its status."""
    kind = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_double, *[ctypes.c_void_p] * len(arrays))
    return kind(_engine(text).get_function_address(name))(t, *[a.ctypes.data for a in arrays])
