"""Single operations of the graph as LLVM assembly instructions.

Instructions have no fast-math flags and products and sums are not contracted: results are those of the same operations
in Python, with the functions of the C library. Numbers may be vectors, in which each *lane* is computed like a single
number.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

from daedal.symbolic.operations import ARITHMETIC, CONDITIONS, FUNCTIONS, TABLES

ENTRY = "daedal_entry"
"""Name of the entry function of a module."""
CONSTANTS = "daedal_constants"
"""Name of the constants of a module that are not inlined in its text."""
MARK = bytes.fromhex("da eda1 c057 a4f8 7f 2b91 6d0e 83c4 f97f")
"""Marker before these constants in object code: two NaNs with a unique bit pattern."""

_LOCATE = """
define private double @locate(double %x, ptr %points, i64 %n) {
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
  %place = getelementptr double, ptr %points, i64 %middle
  %point = load double, ptr %place
  %below = fcmp olt double %x, %point
  %beyond = add i64 %middle, 1
  %next_low = select i1 %below, i64 %low, i64 %beyond
  %next_high = select i1 %below, i64 %middle, i64 %high
  br label %loop
done:
  %count = uitofp i64 %low to double
  ret double %count
}
"""
_PICK = """
define private double @pick(double %index, ptr %values, i64 %n) {
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
  %place = getelementptr double, ptr %values, i64 %i
  %value = load double, ptr %place
  ret double %value
outside:
  ret double 0x7FF8000000000000
}
"""
_MODULO = """
define private double @modulo(double %a, double %b) {
  %rest = call double @fmod(double %a, double %b)
  %sum = fadd double %rest, %b
  %whole = fcmp oeq double %rest, 0.0
  %below = fcmp olt double %rest, 0.0
  %divisor_below = fcmp olt double %b, 0.0
  %same = icmp eq i1 %below, %divisor_below
  %nothing = call double @llvm.copysign.f64(double 0.0, double %b)
  %other = select i1 %same, double %rest, double %sum
  %value = select i1 %whole, double %nothing, double %other
  ret double %value
}
"""
_FLOOR_DIVIDE = """
define private double @floor_divide(double %a, double %b) {
  %rest = call double @fmod(double %a, double %b)
  %difference = fsub double %a, %rest
  %quotient = fdiv double %difference, %b
  %less = fsub double %quotient, 1.0
  %whole = fcmp oeq double %rest, 0.0
  %below = fcmp olt double %rest, 0.0
  %divisor_below = fcmp olt double %b, 0.0
  %same = icmp eq i1 %below, %divisor_below
  %kept = or i1 %whole, %same
  %near = select i1 %kept, double %quotient, double %less
  %floor = call double @llvm.floor.f64(double %near)
  %gap = fsub double %near, %floor
  %up = fcmp ogt double %gap, 0.5
  %next = fadd double %floor, 1.0
  %found = select i1 %up, double %next, double %floor
  %by_zero = fcmp oeq double %b, 0.0
  %exact = fdiv double %a, %b
  %none = fcmp oeq double %found, 0.0
  %signed = call double @llvm.copysign.f64(double %found, double %exact)
  %usual = select i1 %none, double %signed, double %found
  %value = select i1 %by_zero, double %exact, double %usual
  ret double %value
}
"""
_WRITTEN = {
    "modulo": (_MODULO, {"fmod": 2, "llvm.copysign": 2}),
    "floor_divide": (_FLOOR_DIVIDE, {"fmod": 2, "llvm.floor": 1, "llvm.copysign": 2}),
}
"""Functions of Python that C lacks, each with its dependencies and their numbers of arguments."""


class Constants:
    """Numbers of a module stored in its object code as data instead of in instructions."""

    def __init__(self) -> None:
        self._numbers: list[float] = []
        self._places: dict[bytes, int] = {}

    def pointer(self, values: Sequence[float]) -> str:
        """A pointer to consecutive numbers; equal sequences are stored once."""
        key = struct.pack(f"<{len(values)}d", *values)
        place = self._places.setdefault(key, len(self._numbers))
        if place == len(self._numbers):
            self._numbers += values
        return f"getelementptr inbounds (double, ptr @{CONSTANTS}, i64 {place + len(MARK) // 8})"

    def values(self) -> bytes:
        """The numbers in memory order."""
        return struct.pack(f"<{len(self._numbers)}d", *self._numbers)

    def lines(self) -> list[str]:
        """Assembly lines that define the data: the mark, and zeros that are later replaced by the numbers."""
        if not self._numbers:
            return []
        mark = ", ".join(f"double {number_text(x)}" for x in struct.unpack("<2d", MARK))
        kinds = f"[{len(MARK) // 8} x double]", f"[{len(self._numbers)} x double]"
        kind = f"{{{', '.join(kinds)}}}"
        return [f"@{CONSTANTS} = global {kind} {{{kinds[0]} [{mark}], {kinds[1]} zeroinitializer}}", "!0 = !{}"]


class Declared:
    """C library functions, intrinsics and table searches used by a module."""

    def __init__(self):
        self._texts: dict[str, str] = {}

    def function(self, code: str, arity: int, lanes: int = 1) -> str:
        """Name of a C library function or intrinsic; intrinsics support lanes."""
        if code in _WRITTEN:
            text, used = _WRITTEN[code]
            for called, count in used.items():
                self.function(called, count)
            self.define(code, text)
            return code
        is_intrinsic = code.startswith("llvm.")
        name = f"{code}.{'' if lanes == 1 else f'v{lanes}'}f64" if is_intrinsic else code
        if name not in self._texts:
            kind = number_kind(lanes if is_intrinsic else 1)
            self._texts[name] = f"declare {kind} @{name}({', '.join([kind] * arity)})"
        return name

    def search(self, operation: str):
        """Define a table search, ``locate`` or ``pick``, in the module."""
        self.define(operation, {"locate": _LOCATE, "pick": _PICK}[operation])

    def define(self, name: str, text: str, used: tuple[tuple[str, int], ...] = ()):
        """Define a function in the module, with the one-argument functions that it uses and their lanes."""
        for code, lanes in used:
            self.function(code, 1, lanes)
        self._texts.setdefault(name, text)

    def lines(self) -> list[str]:
        """Declarations, followed by definitions."""
        return sorted(self._texts.values(), key=lambda text: not text.startswith("declare"))


class FunctionBody:
    """Instructions of one function, on numbers or on vectors of `lanes` numbers."""

    def __init__(self, declared: Declared, lanes: int = 1):
        self.declared, self.lanes = declared, lanes
        self.number, self.truth = number_kind(lanes), "i1" if lanes == 1 else f"<{lanes} x i1>"
        self.lines: list[str] = []
        self._fresh = 0

    def new(self, instruction: str) -> str:
        """Name of a new instruction's result."""
        name = f"%x{self._fresh}"
        self._fresh += 1
        self.lines.append(f"  {name} = {instruction}")
        return name

    def constant(self, text: str, kind: str = "double") -> str:
        """A constant, in all lanes."""
        return text if self.lanes == 1 else f"<{', '.join([f'{kind} {text}'] * self.lanes)}>"

    def instruction(self, operation: str, operands: list[str], table: tuple[str, str] | None = None) -> str:
        """Result of an operation; `table` is the pointer to its table and the table's length."""
        if operation in ARITHMETIC:
            return self.new(f"{ARITHMETIC[operation].code} {self.number} {', '.join(operands)}")
        if operation == "where":
            return self.select(*operands)
        if operation in CONDITIONS:
            return self._condition(operation, operands)
        if operation in TABLES:
            assert table is not None
            self.declared.search(operation)
            pointer, length = table
            return self._by_lane(operation, operands, f", ptr {pointer}, i64 {length}")
        if operation == "sign":
            return self._sign(operands[0])
        if operation in ("maximum", "minimum"):
            return self._extreme("oge" if operation == "maximum" else "ole", *operands)
        code = FUNCTIONS[operation].code
        name = self.declared.function(code, len(operands), self.lanes)
        if not code.startswith("llvm."):
            return self._by_lane(name, operands)
        return self.new(f"call {self.number} @{name}({', '.join(f'{self.number} {x}' for x in operands)})")

    def _by_lane(self, name: str, operands: list[str], further: str = "") -> str:
        """Call a scalar function for each lane."""
        if self.lanes == 1:
            return self.new(f"call double @{name}({', '.join('double ' + x for x in operands)}{further})")
        result = "undef"
        for k in range(self.lanes):
            numbers = [self.new(f"extractelement {self.number} {x}, i32 {k}") for x in operands]
            value = self.new(f"call double @{name}({', '.join('double ' + x for x in numbers)}{further})")
            result = self.new(f"insertelement {self.number} {result}, double {value}, i32 {k}")
        return result

    def select(self, condition: str, a: str, b: str) -> str:
        """Choose one of two numbers."""
        return self.new(f"select {self.truth} {condition}, {self.number} {a}, {self.number} {b}")

    def compare(self, comparison: str, a: str, b: str) -> str:
        """Compare two numbers."""
        return self.new(f"fcmp {comparison} {self.number} {a}, {b}")

    def _condition(self, operation: str, operands: list[str]) -> str:
        if operation == "logical_not":
            return self.new(f"xor {self.truth} {operands[0]}, {self.constant('true', 'i1')}")
        kind = self.truth if operation.startswith("logical") else self.number
        return self.new(f"{CONDITIONS[operation].code} {kind} {', '.join(operands)}")

    def _sign(self, x: str) -> str:
        """1, -1 or 0; NaN for NaN."""
        zero, one, minus = (self.constant(number_text(value)) for value in (0.0, 1.0, -1.0))
        above, below = self.compare("ogt", x, zero), self.compare("olt", x, zero)
        return self.select(above, one, self.select(below, minus, x))

    def _extreme(self, comparison: str, a: str, b: str) -> str:
        """NumPy's maximum or minimum: the first of equal values, NaN if one is NaN."""
        first, is_nan = self.compare(comparison, a, b), self.compare("uno", a, a)
        return self.select(self.new(f"or {self.truth} {first}, {is_nan}"), a, b)


def number_kind(lanes: int) -> str:
    """LLVM type of a number or of a vector of numbers."""
    return "double" if lanes == 1 else f"<{lanes} x double>"


def number_text(value: float) -> str:
    """LLVM literal that reproduces a float exactly."""
    return f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"


LANES = 4
LIMIT = 1e5
"""Largest |x| for which quick code is used: n = round(2 x / pi) is then below 2^20, and n P1 and n P2 are exact."""

# pi/2 = P1 + P2 + P2_TAIL: 33 bits, 33 bits and the remainder
_TWO_OVER_PI = 6.36619772367581382433e-01
_P1, _P2, _P2_TAIL = 1.57079632673412561417e00, 6.07710050630396597660e-11, 2.02226624879595063154e-21
_TO_INTEGER = 6755399441055744.0  # 1.5 * 2^52: adding it rounds to an integer, held in the lowest bits
_SINE = (
    -1.66666666666666324348e-01,
    8.33333333332248946124e-03,
    -1.98412698298579493134e-04,
    2.75573137070700676789e-06,
    -2.50507602534068634195e-08,
    1.58969099521155010221e-10,
)
_COSINE = (
    4.16666666666666019037e-02,
    -1.38888888888741095749e-03,
    2.48015872894767294178e-05,
    -2.75573143513906633035e-07,
    2.08757232129817482790e-09,
    -1.13596475577881948265e-11,
)

_VECTOR = f"<{LANES} x double>"
PAIR = f"{{{_VECTOR}, {_VECTOR}}}"
"""Return type of `sines`: sines, then cosines."""

USED = (("llvm.sin", 1), ("llvm.cos", 1), ("llvm.fabs", LANES))
"""One-argument functions that `sines` calls, with their lanes."""


def _constant(value: float) -> str:
    return f"<{', '.join([f'double {number_text(value)}'] * LANES)}>"


class _Lines:
    """Vector instructions, without contraction, so that results are bit-identical on all processors."""

    def __init__(self) -> None:
        self.text: list[str] = []

    def new(self, instruction: str) -> str:
        self.text.append(f"  %v{len(self.text)} = {instruction}")
        return f"%v{len(self.text) - 1}"

    def times(self, a: str, b: str) -> str:
        return self.new(f"fmul {_VECTOR} {a}, {b}")

    def plus(self, a: str, b: str) -> str:
        return self.new(f"fadd {_VECTOR} {a}, {b}")

    def minus(self, a: str, b: str) -> str:
        return self.new(f"fsub {_VECTOR} {a}, {b}")

    def polynomial(self, z: str, coefficients: tuple[float, ...]) -> str:
        value = _constant(coefficients[-1])
        for c in reversed(coefficients[:-1]):
            value = self.plus(_constant(c), self.times(z, value))
        return value

    def signed(self, value: str, quarter: str) -> str:
        """The value, with its sign flipped if the second bit of `quarter` is set."""
        integers = f"<{LANES} x i64>"
        two, up = (f"<{', '.join([f'i64 {k}'] * LANES)}>" for k in (2, 62))
        bits = self.new(f"shl {integers} {self.new(f'and {integers} {quarter}, {two}')}, {up}")
        flipped = self.new(f"xor {integers} {self.new(f'bitcast {_VECTOR} {value} to {integers}')}, {bits}")
        return self.new(f"bitcast {integers} {flipped} to {_VECTOR}")


def _reduced(lines: _Lines) -> tuple[str, str, str]:
    """Reduce x to r + n pi/2: n, in the lowest bits of integers, r, and the rounding error of r."""
    large = lines.new(f"fadd {_VECTOR} {lines.times('%x', _constant(_TWO_OVER_PI))}, {_constant(_TO_INTEGER)}")
    n = lines.new(f"fsub {_VECTOR} {large}, {_constant(_TO_INTEGER)}")
    first = lines.minus("%x", lines.times(n, _constant(_P1)))
    taken = lines.times(n, _constant(_P2))
    second = lines.minus(first, taken)
    lost = lines.minus(lines.minus(first, second), taken)
    rest = lines.minus(lines.times(n, _constant(_P2_TAIL)), lost)
    r = lines.minus(second, rest)
    tail = lines.minus(lines.minus(second, r), rest)
    return lines.new(f"bitcast {_VECTOR} {large} to <{LANES} x i64>"), r, tail


def _quick() -> tuple[list[str], str, str]:
    """Instructions for angles of size up to `LIMIT`, and the registers of their sines and cosines."""
    lines = _Lines()
    n, r, tail = _reduced(lines)
    half, one = _constant(0.5), _constant(1.0)
    z = lines.times(r, r)
    cube = lines.times(z, r)
    inner = lines.minus(lines.times(half, tail), lines.times(cube, lines.polynomial(z, _SINE[1:])))
    inner = lines.minus(lines.times(z, inner), tail)
    sine = lines.minus(r, lines.minus(inner, lines.times(cube, _constant(_SINE[0]))))
    fourth = lines.times(z, lines.polynomial(z, _COSINE))
    small = lines.minus(lines.times(z, fourth), lines.times(r, tail))
    halved = lines.times(half, z)
    rounded = lines.minus(one, halved)
    cosine = lines.plus(rounded, lines.plus(lines.minus(lines.minus(one, rounded), halved), small))
    integers = f"<{LANES} x i64>"
    ones = f"<{', '.join(['i64 1'] * LANES)}>"
    odd = lines.new(f"trunc {integers} {n} to <{LANES} x i1>")
    swapped = [
        lines.new(f"select <{LANES} x i1> {odd}, {_VECTOR} {a}, {_VECTOR} {b}")
        for a, b in ((cosine, sine), (sine, cosine))
    ]
    return (
        lines.text,
        lines.signed(swapped[0], n),
        lines.signed(swapped[1], lines.new(f"add {integers} {n}, {ones}")),
    )


def _slow() -> tuple[list[str], str, str]:
    """Sines and cosines by the C library, lane by lane."""
    text, results = [], []
    for name in ("sin", "cos"):
        vector = "zeroinitializer"
        for k in range(LANES):
            text += [
                f"  %{name}_of_{k} = extractelement {_VECTOR} %x, i32 {k}",
                f"  %{name}_{k} = call double @llvm.{name}.f64(double %{name}_of_{k})",
                f"  %{name}_to_{k} = insertelement {_VECTOR} {vector}, double %{name}_{k}, i32 {k}",
            ]
            vector = f"%{name}_to_{k}"
        results.append(vector)
    return text, results[0], results[1]


def _returned(name: str, sines: str, cosines: str) -> list[str]:
    return [
        f"  %{name}_first = insertvalue {PAIR} undef, {_VECTOR} {sines}, 0",
        f"  %{name} = insertvalue {PAIR} %{name}_first, {_VECTOR} {cosines}, 1",
        f"  ret {PAIR} %{name}",
    ]


def definition() -> str:
    """The function ``sines``; the module that uses it declares the functions in `USED`."""
    quick, slow = _quick(), _slow()
    chosen = [
        f"  %{name} = select <{LANES} x i1> %small, {_VECTOR} {near}, {_VECTOR} {far}"
        for name, near, far in zip(("sines", "cosines"), quick[1:], slow[1:])
    ]
    lines = [
        f"define private {PAIR} @sines({_VECTOR} %x) {{",
        "entry:",
        f"  %sizes = call {_VECTOR} @llvm.fabs.v{LANES}f64({_VECTOR} %x)",
        f"  %small = fcmp ole {_VECTOR} %sizes, {_constant(LIMIT)}",
        f"  %bits = bitcast <{LANES} x i1> %small to i{LANES}",
        f"  %all = icmp eq i{LANES} %bits, -1",
        *quick[0],
        "  br i1 %all, label %quick, label %slow",
        "quick:",
        *_returned("near", *quick[1:]),
        "slow:",
        *slow[0],
        *chosen,
        *_returned("far", "%sines", "%cosines"),
        "}",
    ]
    return "\n".join(lines)
