"""Records: how kernels receive many arrays and numbers at the price of one pointer.

A kernel's data are fields of a NumPy record: numbers, nested records, and the addresses of arrays. A record travels between
compiled functions as a single pointer, without reference counting, and its fields have names on both sides.
Passing the arrays themselves, alone or in tuples, makes calls ten times slower and compilation five times.
"""

from __future__ import annotations

import numpy as np
from llvmlite import ir
from numba import carray, types
from numba.extending import intrinsic

from daedal.kernels.compilation import inlined

ADDRESS = np.int64
INTEGER = np.int64
FLOAT = np.float64


@intrinsic
def _float_pointer(typingctx, address):
    def codegen(context, builder, signature, args):
        return builder.inttoptr(args[0], ir.DoubleType().as_pointer())

    return types.CPointer(types.float64)(types.int64), codegen


@intrinsic
def _integer_pointer(typingctx, address):
    def codegen(context, builder, signature, args):
        return builder.inttoptr(args[0], ir.IntType(64).as_pointer())

    return types.CPointer(types.int64)(types.int64), codegen


@inlined
def floats(address, n):
    """The float vector of length n at an address."""
    return carray(_float_pointer(address), n)


@inlined
def float_rows(address, rows, n):
    """The float matrix with `rows` rows of length n at an address."""
    return carray(_float_pointer(address), (rows, n))


@inlined
def integers(address, n):
    """The integer vector of length n at an address."""
    return carray(_integer_pointer(address), n)


class Record:
    """A record under construction: keeps the arrays alive whose addresses it holds.

    Examples
    --------
    >>> from daedal.kernels.records import ADDRESS, INTEGER, Record
    >>> point = Record([("n", INTEGER), ("y", ADDRESS)], n=2, y=np.zeros(2))
    >>> int(point.data[0]["n"])
    2
    """

    def __init__(self, dtype, **values):
        self.data = np.zeros(1, dtype=np.dtype(dtype))
        self._alive: dict[str, object] = {}
        for name, value in values.items():
            self[name] = value

    def __setitem__(self, name: str, value):
        if isinstance(value, Record):
            self.data[0][name] = value.data[0]
            self._alive[name] = value
        elif isinstance(value, np.ndarray):
            if not value.flags.c_contiguous or value.dtype.itemsize != 8 or value.dtype.kind not in "fi":
                raise TypeError(f"{name} must be a contiguous array of 8-byte numbers")
            self.data[0][name] = value.ctypes.data
            self._alive[name] = value
        else:
            self.data[0][name] = value

    def __getitem__(self, name: str):
        return self.data[0][name]

    def array(self, name: str) -> np.ndarray:
        """The array whose address stands in the field `name`."""
        return self._alive[name]  # type: ignore[return-value]

    def nested(self, name: str) -> Record:
        """The record that was nested as field `name` (a copy of its numbers lives in this one)."""
        return self._alive[name]  # type: ignore[return-value]
