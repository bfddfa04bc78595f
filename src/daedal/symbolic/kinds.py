"""Kinds of numbers that Python and NumPy distinguish: truth values, integers and floats, each of Python and of
NumPy."""

from __future__ import annotations

import numpy as np

BOOL, INT, FLOAT, NUMPY, UNKNOWN = 0, 1, 2, 4, 14
"""Kind of a value in Python: a rank, plus `NUMPY` for NumPy scalars; `UNKNOWN` if it differs between paths."""
FLOAT64 = NUMPY + FLOAT
TYPES: dict[int, type] = {
    BOOL: bool,
    INT: int,
    FLOAT: float,
    NUMPY: np.bool_,
    NUMPY + INT: np.int64,
    FLOAT64: np.float64,
}
KINDS: dict[type, int] = {
    **{kind: number for number, kind in TYPES.items()},
    **dict.fromkeys((np.float32, np.float16, np.longdouble), FLOAT64),
}


def joined(a: int, b: int) -> int:
    """Kind of a sum or a product."""
    if a == FLOAT64 or b == FLOAT64:
        return FLOAT64
    return max(a & 3, b & 3) | (a | b) & ~3


class Number(float):
    """A number read from an array: behaves like np.float64, with fast operations on expressions."""

    __slots__ = ()
    __class__ = property(lambda self: np.float64)
    dtype = np.dtype(float)

    def item(self) -> float:
        return float(self)

    def __getattr__(self, name: str):
        return getattr(np.float64(self), name)


def _as_numpy(name: str):
    operation = getattr(np.float64, name)

    def call(self, *others):
        if others and hasattr(others[0], "graph"):  # an expression
            return NotImplemented
        result = operation(np.float64(self), *others)
        return Number(result) if isinstance(result, float) else result

    return call


for _name in "add sub mul truediv floordiv mod pow".split():
    setattr(Number, f"__{_name}__", _as_numpy(f"__{_name}__"))
    setattr(Number, f"__r{_name}__", _as_numpy(f"__r{_name}__"))
for _name in "neg pos abs lt le gt ge eq ne".split():
    setattr(Number, f"__{_name}__", _as_numpy(f"__{_name}__"))
Number.__hash__ = float.__hash__  # type: ignore[method-assign]
