"""Enclosures: bounds for the values of a program if its inputs lie between bounds.

A program is a list of operations, each on results of earlier ones. Its *given* nodes, which come first, are constants,
parameters and inputs; the caller sets their bounds. Every operation widens its result by more than the rounding errors
of its evaluation. If it is not defined for all of its operands the result is the whole real line.

A node is *steady* if nothing in it can jump between the bounds: no condition, step function or table lookup changes its
value, and no denominator vanishes. The mean value theorem holds for steady nodes, even if they have kinks like ``abs``,
and for no others.
"""

from math import erf, erfc

import numpy as np

from daedal.kernels.compilation import entry, inlined, part
from daedal.kernels.records import INTEGER, Struct, record_at
from daedal.kernels.signatures import f64, i64

OPERATIONS = (
    "given add subtract multiply divide negative sqrt cbrt exp exp2 expm1 log log2 log10 log1p sin cos tan arcsin "
    "arccos arctan sinh cosh tanh arcsinh arccosh arctanh erf erfc absolute sign floor ceil trunc rint power arctan2 "
    "hypot copysign fmod remainder floor_divide minimum maximum less less_equal equal not_equal logical_and logical_or "
    "logical_not locate pick where square unknown"
).split()
CODES = {name: code for code, name in enumerate(OPERATIONS)}

PROGRAM = Struct(
    "PROGRAM",
    [
        ("n", INTEGER),
        ("given", INTEGER),  # number of given nodes, at the beginning
        *[(name, i64["n"]) for name in ("codes", "first", "second", "third")],
        ("length", INTEGER),
        ("numbers", f64["length"]),  # concatenated tables
        *[(name, f64["n"]) for name in ("lower", "upper")],
        ("steady", i64["n"]),
    ],
)
"""A program with the bounds of its nodes. For tables, `second` is the offset in `numbers` and `third` the length."""

_ADD, _SUBTRACT, _MULTIPLY, _DIVIDE, _NEGATIVE = (
    CODES[name] for name in ("add", "subtract", "multiply", "divide", "negative")
)
_SQRT, _CBRT, _EXP, _EXP2, _EXPM1 = (CODES[name] for name in ("sqrt", "cbrt", "exp", "exp2", "expm1"))
_LOG, _LOG2, _LOG10, _LOG1P = (CODES[name] for name in ("log", "log2", "log10", "log1p"))
_SIN, _COS, _TAN, _ARCSIN, _ARCCOS, _ARCTAN = (
    CODES[name] for name in ("sin", "cos", "tan", "arcsin", "arccos", "arctan")
)
_SINH, _COSH, _TANH, _ARCSINH, _ARCCOSH, _ARCTANH = (
    CODES[name] for name in ("sinh", "cosh", "tanh", "arcsinh", "arccosh", "arctanh")
)
_ERF, _ERFC, _ABSOLUTE, _SIGN = (CODES[name] for name in ("erf", "erfc", "absolute", "sign"))
_FLOOR, _CEIL, _TRUNC, _RINT = (CODES[name] for name in ("floor", "ceil", "trunc", "rint"))
_POWER, _ARCTAN2, _HYPOT, _COPYSIGN = (CODES[name] for name in ("power", "arctan2", "hypot", "copysign"))
_FMOD, _REMAINDER, _FLOOR_DIVIDE = (CODES[name] for name in ("fmod", "remainder", "floor_divide"))
_MINIMUM, _MAXIMUM, _LESS, _LESS_EQUAL = (CODES[name] for name in ("minimum", "maximum", "less", "less_equal"))
_EQUAL, _NOT_EQUAL, _AND, _OR, _NOT = (
    CODES[name] for name in ("equal", "not_equal", "logical_and", "logical_or", "logical_not")
)
_LOCATE, _PICK, _WHERE, _SQUARE = (CODES[name] for name in ("locate", "pick", "where", "square"))

_ROUNDED = 2.3e-16  # relative, larger than the error of one operation
_COMPUTED = 2e-15  # relative error of functions of the C library
_LARGEST = float(np.finfo(float).max)
_TAU, _QUARTER = 2.0 * np.pi, 0.5 * np.pi
_MOST_PICKED = 256  # number of table entries that are searched
_FIRST_STEP, _LAST_STEP = _FLOOR, _RINT


@entry(i64(i64))
def enclose(address):
    """The bounds of all nodes of the program at an address, from the given ones."""
    program = record_at(address, PROGRAM)
    codes, first, second, third = program.codes, program.first, program.second, program.third
    lower, upper, steady = program.lower, program.upper, program.steady
    for i in range(program.given, program.n):
        code, a, b = codes[i], first[i], second[i]
        al, au, fixed = lower[a], upper[a], steady[a]
        if code <= _DIVIDE or code >= _SQUARE:
            lo, hi, sure = _arithmetic(code, al, au, lower[b], upper[b])
            fixed = fixed * steady[b] * sure
        elif code == _NEGATIVE:
            lo, hi = -au, -al
        elif code == _ABSOLUTE:
            hi = max(-al, au)
            lo = al if al > 0.0 else -au if au < 0.0 else 0.0
        elif code == _WHERE:
            c = third[i]
            if al == au:  # the operand with known bounds
                kept = b if al != 0.0 else c
                lo, hi, fixed = lower[kept], upper[kept], steady[kept]
            else:
                lo, hi, fixed = min(lower[b], lower[c]), max(upper[b], upper[c]), 0
        elif code == _MINIMUM:
            lo, hi, fixed = min(al, lower[b]), min(au, upper[b]), fixed * steady[b]
        elif code == _MAXIMUM:
            lo, hi, fixed = max(al, lower[b]), max(au, upper[b]), fixed * steady[b]
        elif _LESS <= code <= _NOT:
            lo, hi = _condition(code, a == b, al, au, lower[b], upper[b])
            fixed = 1 if lo == hi else 0
        elif code == _LOCATE or code == _PICK:
            lo, hi = _from_table(code, al, au, program.numbers[b : b + third[i]])
            fixed = 1 if (lo == hi if code == _LOCATE else al == au) else 0
        elif code < _POWER:
            lo, hi, sure = _function(code, al, au)
            fixed = sure if _FIRST_STEP <= code <= _LAST_STEP or code == _SIGN else fixed * sure
        else:
            lo, hi, sure = _of_two(code, al, au, lower[b], upper[b])
            fixed = sure if code == _FLOOR_DIVIDE else fixed * steady[b] * sure
        lower[i] = lo if lo == lo else -np.inf
        upper[i] = hi if hi == hi else np.inf
        steady[i] = fixed
    return 0


@inlined
def _times(x, y):
    """x y, or 0 if one factor is 0, even if the other is infinite."""
    return 0.0 if x == 0.0 or y == 0.0 else x * y


@inlined
def _below(x, share):
    """A number less than x by the fraction `share`; the largest finite number if x has overflowed."""
    return _LARGEST if x == np.inf else x - abs(x) * share


@inlined
def _above(x, share):
    return -_LARGEST if x == -np.inf else x + abs(x) * share


@part
def _arithmetic(code, al, au, bl, bu):
    """Sum, difference, product, quotient or square: bounds, and whether it is defined everywhere."""
    lo, hi, sure = -np.inf, np.inf, 1
    if code == _ADD:
        lo, hi = al + bl, au + bu
    elif code == _SUBTRACT:
        lo, hi = al - bu, au - bl
    elif code == _SQUARE:
        lo, hi = min(al * al, au * au), max(al * al, au * au)
        if al <= 0.0 <= au:
            lo = 0.0
    elif code == _MULTIPLY:
        p, q, r, s = _times(al, bl), _times(al, bu), _times(au, bl), _times(au, bu)
        lo, hi = min(min(p, q), min(r, s)), max(max(p, q), max(r, s))
    elif code == _DIVIDE and (bl > 0.0 or bu < 0.0):
        p, q, r, s = al / bl, al / bu, au / bl, au / bu
        lo, hi = min(min(p, q), min(r, s)), max(max(p, q), max(r, s))
        if not (lo == lo and hi == hi):
            lo, hi = -np.inf, np.inf
    else:
        sure = 0
    return _below(lo, _ROUNDED), _above(hi, _ROUNDED), sure


@part
def _condition(code, same, al, au, bl, bu):
    """Bounds of a truth value: (1, 1), (0, 0), or (0, 1) if undecided."""
    holds, fails = False, False
    if (al != al or bl != bl) and _LESS <= code <= _NOT_EQUAL:  # NaN as a given value
        holds, fails = code == _NOT_EQUAL, code != _NOT_EQUAL
    elif code == _LESS:
        holds, fails = au < bl, al >= bu
    elif code == _LESS_EQUAL:
        holds, fails = au <= bl, al > bu
    elif code == _EQUAL or code == _NOT_EQUAL:  # comparison of a node with itself, to test whether it is a number
        if same:
            holds = al > -np.inf or au < np.inf
        else:
            holds, fails = al == au == bl == bu, au < bl or al > bu
        if code == _NOT_EQUAL:
            holds, fails = fails, holds
    elif code == _AND:
        holds, fails = al != 0.0 and bl != 0.0, au == 0.0 or bu == 0.0
    elif code == _OR:
        holds, fails = al != 0.0 or bl != 0.0, au == 0.0 and bu == 0.0
    else:
        holds, fails = au == 0.0, al != 0.0
    return (1.0 if holds else 0.0), (0.0 if fails else 1.0)


@part
def _from_table(code, al, au, numbers):
    """Bounds of the number of points that do not exceed the operand, or of the table entries that it may select."""
    if code == _LOCATE:
        return np.searchsorted(numbers, al, side="right") * 1.0, np.searchsorted(numbers, au, side="right") * 1.0
    n, lo, hi = numbers.size, np.inf, -np.inf
    if not (-n <= al and au < n and np.floor(au) - np.floor(al) < _MOST_PICKED):
        return -np.inf, np.inf
    for i in range(int(np.trunc(al)), int(np.trunc(au)) + 1):
        value = numbers[i + n if i < 0 else i]
        lo, hi = min(lo, value), max(hi, value)
    return lo, hi


@part
def _value(code, x):
    """The value at x of a function that is increasing on its domain."""
    y = x
    if code == _SQRT:
        y = np.sqrt(x)
    elif code == _CBRT:
        y = np.cbrt(x)
    elif code == _EXP:
        y = np.exp(x)
    elif code == _EXP2:
        y = np.exp2(x)
    elif code == _EXPM1:
        y = np.expm1(x)
    elif code == _LOG:
        y = np.log(x)
    elif code == _LOG2:
        y = np.log2(x)
    elif code == _LOG10:
        y = np.log10(x)
    elif code == _LOG1P:
        y = np.log1p(x)
    elif code == _TAN:
        y = np.tan(x)
    elif code == _ARCSIN:
        y = np.arcsin(x)
    elif code == _ARCCOS:
        y = np.arccos(x)
    elif code == _ARCTAN:
        y = np.arctan(x)
    elif code == _SINH:
        y = np.sinh(x)
    elif code == _COSH:
        y = np.cosh(x)
    elif code == _TANH:
        y = np.tanh(x)
    elif code == _ARCSINH:
        y = np.arcsinh(x)
    elif code == _ARCCOSH:
        y = np.arccosh(x)
    elif code == _ARCTANH:
        y = np.arctanh(x)
    elif code == _ERF:
        y = erf(x)
    elif code == _ERFC:
        y = erfc(x)
    elif code == _FLOOR:
        y = np.floor(x)
    elif code == _CEIL:
        y = np.ceil(x)
    elif code == _TRUNC:
        y = np.trunc(x)
    elif code == _RINT:
        y = np.rint(x)
    return y


@part
def _function(code, al, au):
    """Bounds of a function of one operand, and whether it neither jumps nor leaves its domain."""
    if _FIRST_STEP <= code <= _LAST_STEP:
        lo, hi = _value(code, al), _value(code, au)
        return lo, hi, (1 if lo == hi else 0)
    if code == _SIGN:
        lo = 1.0 if al > 0.0 else 0.0 if al == 0.0 else -1.0
        hi = -1.0 if au < 0.0 else 0.0 if au == 0.0 else 1.0
        return lo, hi, (1 if lo == hi else 0)
    if code == _SIN or code == _COS:
        shift = _QUARTER if code == _COS else 0.0
        lo, hi = _wave(code, al, au, shift)
        return lo, hi, 1
    inside = _begin(code) <= al and au <= _end(code)
    if code == _TAN:
        slack = 1e-15 * (1.0 + abs(al) + abs(au))
        inside = np.floor((al - slack) / np.pi + 0.5) == np.floor((au + slack) / np.pi + 0.5)
    if not inside:
        return -np.inf, np.inf, 0
    if code == _COSH:
        far = np.cosh(max(-al, au))
        return (np.cosh(max(al, -au)) if al > 0.0 or au < 0.0 else 1.0) * (1.0 - _COMPUTED), _above(far, _COMPUTED), 1
    if code == _ERFC or code == _ARCCOS:
        al, au = au, al
    return _below(_value(code, al), _COMPUTED), _above(_value(code, au), _COMPUTED), 1


@part
def _wave(code, a, b, shift):
    """Bounds of the sine of x + shift for x between a and b; the code identifies the function."""
    if not b - a < _TAU:
        return -1.0, 1.0
    slack = 1e-15 * (1.0 + abs(a) + abs(b))
    p, q = (np.sin(a), np.sin(b)) if code == _SIN else (np.cos(a), np.cos(b))
    lo, hi = max(min(p, q) - _COMPUTED, -1.0), min(max(p, q) + _COMPUTED, 1.0)
    if np.ceil((a - slack + shift - _QUARTER) / _TAU) <= (b + slack + shift - _QUARTER) / _TAU:
        hi = 1.0
    if np.ceil((a - slack + shift + _QUARTER) / _TAU) <= (b + slack + shift + _QUARTER) / _TAU:
        lo = -1.0
    return lo, hi


@inlined
def _begin(code):
    """Lower end of the domain of a function; excluded if the function is infinite there."""
    begin = -np.inf
    if code == _SQRT:
        begin = 0.0
    elif code == _LOG or code == _LOG2 or code == _LOG10:
        begin = 5e-324
    elif code == _LOG1P or code == _ARCTANH:
        begin = -1.0 + 1.2e-16
    elif code == _ARCSIN or code == _ARCCOS:
        begin = -1.0
    elif code == _ARCCOSH:
        begin = 1.0
    return begin


@inlined
def _end(code):
    """Upper end of the domain of a function."""
    end = np.inf
    if code == _ARCSIN or code == _ARCCOS:
        end = 1.0
    elif code == _ARCTANH:
        end = 1.0 - 1.2e-16
    return end


@part
def _of_two(code, al, au, bl, bu):
    """Bounds of a nonarithmetic function of two operands, and whether it neither jumps nor leaves its domain."""
    lo, hi, sure = -np.inf, np.inf, 0
    if code == _POWER:
        if al > 0.0 or (al == 0.0 and bl > 0.0) or (bl == bu and bl == np.floor(bl) and (bl > 0.0 or au < 0.0)):
            p, q, r, s = al**bl, al**bu, au**bl, au**bu
            lo, hi, sure = min(min(p, q), min(r, s)), max(max(p, q), max(r, s)), 1
            if al < 0.0 < au:
                lo = min(lo, 0.0)
    elif code == _HYPOT:
        near = np.hypot(max(al, max(-au, 0.0)), max(bl, max(-bu, 0.0)))
        lo, hi, sure = near, np.hypot(max(-al, au), max(-bl, bu)), 1
    elif code == _ARCTAN2:
        lo, hi = -np.pi, np.pi
        if bl > 0.0 or al > 0.0 or au < 0.0:
            p, q = np.arctan2(al, bl), np.arctan2(al, bu)
            r, s = np.arctan2(au, bl), np.arctan2(au, bu)
            lo, hi, sure = min(min(p, q), min(r, s)), max(max(p, q), max(r, s)), 1
    elif code == _COPYSIGN:
        far = max(-al, au)
        near = al if al > 0.0 else -au if au < 0.0 else 0.0
        lo, hi = (near if bl > 0.0 else -far), (-near if bu < 0.0 else far)
        return lo, hi, (1 if bl > 0.0 or bu < 0.0 else 0)
    elif bl > 0.0 or bu < 0.0:  # quotients and remainders
        ql, qu, _ = _arithmetic(_DIVIDE, al, au, bl, bu)
        if al == au == np.floor(al) and bl == bu == np.floor(bl):  # whole numbers, such as modes: no rounding
            ql = qu = al / bl
        ql, qu = (np.trunc(ql), np.trunc(qu)) if code == _FMOD else (np.floor(ql), np.floor(qu))
        if code == _FLOOR_DIVIDE:
            return ql, qu, (1 if ql == qu else 0)
        far = max(-bl, bu)
        if code == _FMOD:
            lo, hi = (-far if al < 0.0 else 0.0), (far if au > 0.0 else 0.0)
        else:
            lo, hi = (0.0 if bl > 0.0 else -far), (far if bl > 0.0 else 0.0)
        if ql == qu:
            pl, pu, _ = _arithmetic(_MULTIPLY, bl, bu, ql, ql)
            rl, ru, _ = _arithmetic(_SUBTRACT, al, au, pl, pu)
            return max(lo, rl), min(hi, ru), 1
        return lo, hi, 0
    return _below(lo, _COMPUTED), _above(hi, _COMPUTED), sure
