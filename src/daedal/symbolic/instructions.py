"""Single operations of the graph as instructions of LLVM's assembly language.

No instruction has a fast-math flag and no product and sum are contracted: results are those of the same operations in
Python, with the functions of the C library.
"""

from __future__ import annotations

import struct

import llvmlite.binding as llvm

from daedal.symbolic.operations import ARITHMETIC, CONDITIONS, FUNCTIONS, TABLES

ENTRY = "daedal_entry"
"""The function of a module that callers look for."""
TYPED_POINTERS = llvm.llvm_version_info[0] < 17
POINTER, INTEGERS = ("double*", "i32*") if TYPED_POINTERS else ("ptr", "ptr")
"""Pointers to floats and to 32-bit integers."""

_LOCATE = f"""
define private double @locate(double %x, {POINTER} %points, i64 %n) {{
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
  %place = getelementptr double, {POINTER} %points, i64 %middle
  %point = load double, {POINTER} %place
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
define private double @pick(double %index, {POINTER} %values, i64 %n) {{
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
  %place = getelementptr double, {POINTER} %values, i64 %i
  %value = load double, {POINTER} %place
  ret double %value
outside:
  ret double 0x7FF8000000000000
}}
"""


class Declared:
    """Functions of the C library, intrinsics and searches in tables that a module makes use of."""

    def __init__(self):
        self._texts: dict[str, str] = {}

    def function(self, code: str, arity: int) -> str:
        """The name by which a function of the C library or an intrinsic is called."""
        name = f"{code}.f64" if code.startswith("llvm.") else code
        if name not in self._texts:
            self._texts[name] = f"declare double @{name}({', '.join(['double'] * arity)})"
        return name

    def search(self, operation: str):
        """A search in a table, ``locate`` or ``pick``."""
        self.define(operation, {"locate": _LOCATE, "pick": _PICK}[operation])

    def define(self, name: str, text: str, used: tuple[str, ...] = ()):
        """A function of the module itself, which makes use of these of one argument."""
        for code in used:
            self.function(code, 1)
        self._texts.setdefault(name, text)

    def lines(self) -> list[str]:
        """Declarations, and what is defined behind them."""
        return sorted(self._texts.values(), key=lambda text: not text.startswith("declare"))


class Body:
    """The instructions of one function."""

    def __init__(self, declared: Declared):
        self.declared = declared
        self.lines: list[str] = []
        self._fresh = 0

    def new(self, instruction: str) -> str:
        """The name of the result of an instruction."""
        name = f"%x{self._fresh}"
        self._fresh += 1
        self.lines.append(f"  {name} = {instruction}")
        return name

    def instruction(self, operation: str, operands: list[str], table: tuple[str, str] | None = None) -> str:
        """The result of an operation; `table` is a pointer to its table, and how long that is."""
        if operation in ARITHMETIC:
            return self.new(f"{ARITHMETIC[operation].code} double {', '.join(operands)}")
        if operation == "where":
            return self._select(*operands)
        if operation in CONDITIONS:
            return self._condition(operation, operands)
        if operation in TABLES:
            assert table is not None
            self.declared.search(operation)
            pointer, length = table
            return self.new(f"call double @{operation}(double {operands[0]}, {POINTER} {pointer}, i64 {length})")
        if operation == "sign":
            return self._sign(operands[0])
        if operation in ("maximum", "minimum"):
            return self._extreme("oge" if operation == "maximum" else "ole", *operands)
        name = self.declared.function(FUNCTIONS[operation].code, len(operands))
        return self.new(f"call double @{name}({', '.join('double ' + x for x in operands)})")

    def _select(self, condition: str, a: str, b: str) -> str:
        return self.new(f"select i1 {condition}, double {a}, double {b}")

    def _condition(self, operation: str, operands: list[str]) -> str:
        if operation == "logical_not":
            return self.new(f"xor i1 {operands[0]}, true")
        kind = "i1" if operation.startswith("logical") else "double"
        return self.new(f"{CONDITIONS[operation].code} {kind} {', '.join(operands)}")

    def _sign(self, x: str) -> str:
        """1, -1 or 0, and NaN of NaN."""
        zero = number_text(0.0)
        above, below = self.new(f"fcmp ogt double {x}, {zero}"), self.new(f"fcmp olt double {x}, {zero}")
        return self._select(above, number_text(1.0), self._select(below, number_text(-1.0), x))

    def _extreme(self, comparison: str, a: str, b: str) -> str:
        """NumPy's maximum and minimum: the first of equals, NaN if one is NaN."""
        first = self.new(f"fcmp {comparison} double {a}, {b}")
        is_nan = self.new(f"fcmp uno double {a}, {a}")
        return self._select(self.new(f"or i1 {first}, {is_nan}"), a, b)


def number_text(value: float) -> str:
    """A float as LLVM reads it exactly."""
    return f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"
