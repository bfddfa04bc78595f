"""Sines and cosines of four angles at once, in LLVM assembly.

After Cody and Waite, x = n pi/2 + r with pi/2 in three parts, where the products of the first two with n are exact;
then the polynomials of fdlibm (Sun Microsystems, 1993, ``__kernel_sin`` and ``__kernel_cos``), with an error below one
unit in the last place. Angles beyond `LIMIT`, infinities and NaN are passed to the C library one by one.
"""

from daedal.symbolic.instructions import number_text

LANES = 4
LIMIT = 1e5
"""Largest size for which n < 2^20 and the products are exact."""

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
    """n, in the lowest bits of integers, and r with its tail."""
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
    """Instructions, and the names of sines and cosines."""
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
