"""Operations of the graph: numerical evaluation, machine code, and whether results are finite.

Names are those of NumPy's universal functions. An operation is *regular* if finite operands of moderate size give a
finite result, so that only overflow can produce infinities. A product with zero is folded to zero if the other factor
consists only of regular operations; otherwise 0 * inf = NaN is kept, as in Python.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation on real numbers.

    Attributes
    ----------
    evaluate : callable
        The operation on floats, with NumPy's conventions for NaN and infinities.
    code : str
        An LLVM instruction, an intrinsic (``llvm.``...), a function of the C library or of `instructions.py`.
    regular : bool
        Whether it is finite for all finite operands, except for overflow.
    kink : bool
        Whether it or its derivative jumps: a potentially hidden switching function.
    """

    evaluate: Callable[..., Any]
    code: str
    regular: bool = False
    kink: bool = False


ARITHMETIC = {
    "add": Operation(np.add, "fadd", regular=True),
    "subtract": Operation(np.subtract, "fsub", regular=True),
    "multiply": Operation(np.multiply, "fmul", regular=True),
    "divide": Operation(np.divide, "fdiv"),
    "negative": Operation(np.negative, "fneg", regular=True),
}

FUNCTIONS = {
    "sqrt": Operation(np.sqrt, "llvm.sqrt"),
    "cbrt": Operation(np.cbrt, "cbrt", regular=True),
    "exp": Operation(np.exp, "llvm.exp"),
    "exp2": Operation(np.exp2, "llvm.exp2"),
    "expm1": Operation(np.expm1, "expm1"),
    "log": Operation(np.log, "llvm.log"),
    "log2": Operation(np.log2, "llvm.log2"),
    "log10": Operation(np.log10, "llvm.log10"),
    "log1p": Operation(np.log1p, "log1p"),
    "sin": Operation(np.sin, "llvm.sin", regular=True),
    "cos": Operation(np.cos, "llvm.cos", regular=True),
    "tan": Operation(np.tan, "tan"),
    "arcsin": Operation(np.arcsin, "asin"),
    "arccos": Operation(np.arccos, "acos"),
    "arctan": Operation(np.arctan, "atan", regular=True),
    "sinh": Operation(np.sinh, "sinh"),
    "cosh": Operation(np.cosh, "cosh"),
    "tanh": Operation(np.tanh, "tanh", regular=True),
    "arcsinh": Operation(np.arcsinh, "asinh", regular=True),
    "arccosh": Operation(np.arccosh, "acosh"),
    "arctanh": Operation(np.arctanh, "atanh"),
    "erf": Operation(math.erf, "erf", regular=True),
    "erfc": Operation(math.erfc, "erfc", regular=True),
    "absolute": Operation(np.absolute, "llvm.fabs", regular=True, kink=True),
    "sign": Operation(np.sign, "", regular=True, kink=True),
    "floor": Operation(np.floor, "llvm.floor", regular=True, kink=True),
    "ceil": Operation(np.ceil, "llvm.ceil", regular=True, kink=True),
    "trunc": Operation(np.trunc, "llvm.trunc", regular=True, kink=True),
    "rint": Operation(np.rint, "llvm.rint", regular=True, kink=True),
    "power": Operation(np.power, "llvm.pow"),
    "arctan2": Operation(np.arctan2, "atan2", regular=True),
    "hypot": Operation(np.hypot, "hypot", regular=True),
    "copysign": Operation(np.copysign, "llvm.copysign", regular=True, kink=True),
    "fmod": Operation(np.fmod, "fmod", kink=True),
    "remainder": Operation(np.remainder, "modulo", kink=True),
    "floor_divide": Operation(np.floor_divide, "floor_divide", kink=True),
    "minimum": Operation(np.minimum, "", regular=True, kink=True),
    "maximum": Operation(np.maximum, "", regular=True, kink=True),
}

CONDITIONS = {
    "less": Operation(np.less, "fcmp olt", regular=True, kink=True),
    "less_equal": Operation(np.less_equal, "fcmp ole", regular=True, kink=True),
    "equal": Operation(np.equal, "fcmp oeq", regular=True, kink=True),
    "not_equal": Operation(np.not_equal, "fcmp une", regular=True, kink=True),
    "logical_and": Operation(np.logical_and, "and", regular=True),
    "logical_or": Operation(np.logical_or, "or", regular=True),
    "logical_not": Operation(np.logical_not, "", regular=True),
    "true": Operation(lambda: True, "", regular=True),
    "false": Operation(lambda: False, "", regular=True),
}


def _locate(x: float, points: tuple[float, ...]) -> float:
    """Number of increasing points that are not greater than x; NaN sorts last, as in ``np.searchsorted``."""
    return float(np.searchsorted(points, x, side="right"))


def _pick(index: float, values: tuple[float, ...]) -> float:
    """values[index] with Python's negative indices; NaN where Python raises IndexError."""
    return values[int(index)] if -len(values) <= index < len(values) else math.nan


TABLES = {
    "locate": Operation(_locate, "locate", regular=True, kink=True),
    "pick": Operation(_pick, "pick"),
}
"""Operations on a table of constants, which is stored as the datum of their node."""

OPERATIONS = {
    **ARITHMETIC,
    **FUNCTIONS,
    **CONDITIONS,
    **TABLES,
    "where": Operation(np.where, "select", regular=True),
}
