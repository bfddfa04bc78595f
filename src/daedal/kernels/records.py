"""Records: how kernels receive many arrays and numbers at the price of one pointer.

A kernel's data are fields of a NumPy record: numbers, nested records, and the addresses of arrays. A record travels
between compiled functions as a single pointer, without reference counting, and its fields have names on both sides.
Passing the arrays themselves, alone or in tuples, makes calls ten times slower and compilation five times.
"""

from collections.abc import Mapping
from functools import cache
from math import prod
from typing import Any

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


@intrinsic
def record_at(typingctx, address, dtype):
    """The record of type `dtype` at an address."""
    record = dtype.dtype

    def codegen(context, builder, signature, args):
        return builder.inttoptr(args[0], context.get_value_type(record))

    return record(types.int64, dtype), codegen


@intrinsic
def address_of(typingctx, record):
    """Where a record stands in memory."""

    def codegen(context, builder, signature, args):
        return builder.ptrtoint(args[0], ir.IntType(64))

    return types.int64(record), codegen


@intrinsic
def data_of(typingctx, array):
    """Where the entries of a contiguous array stand in memory."""

    def codegen(context, builder, signature, args):
        view = context.make_array(array)(context, builder, args[0])
        return builder.ptrtoint(view.data, ir.IntType(64))

    return types.int64(array), codegen


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


@inlined
def integer_rows(address, rows, n):
    """The integer matrix with `rows` rows of length n at an address."""
    return carray(_integer_pointer(address), (rows, n))


class Arena:
    """Named arrays cut from one block of memory, zero at first; integer arrays by ``integers=("name", ...)``."""

    def __init__(self, shapes: Mapping[str, int | tuple[int, ...]], integers: tuple[str, ...] = ()):
        sizes = [shape if isinstance(shape, int) else prod(shape) for shape in shapes.values()]
        self.block = block = np.zeros(sum(sizes))
        self.arrays: dict[str, np.ndarray] = {}
        self.addresses: dict[str, int] = {}
        address, begin = block.ctypes.data, 0
        for (name, shape), size in zip(shapes.items(), sizes, strict=True):
            view = block[begin : begin + size]
            if name in integers:
                view = view.view(np.int64)
            self.arrays[name] = view if isinstance(shape, int) else view.reshape(shape)
            self.addresses[name] = address + 8 * begin
            begin += size


class Record:
    """A record under construction: keeps the arrays alive whose addresses it holds.

    Examples
    --------
    >>> from daedal.kernels.records import ADDRESS, INTEGER, Record
    >>> point = Record(np.dtype([("n", INTEGER), ("y", ADDRESS)]), n=2, y=np.zeros(2))
    >>> int(point["n"])
    2
    """

    def __init__(self, dtype: np.dtype, arena: Arena | None = None, **values):
        self._alive: dict[str, Any] = {}
        numbers = dict(_zeros(dtype))
        if arena is not None:
            numbers.update(arena.addresses)
            self._alive.update(arena.arrays)
        for name, value in values.items():
            if isinstance(value, Record):
                self._alive[name] = value
                numbers[name] = value.data[0].item()
            elif isinstance(value, np.ndarray):
                numbers[name] = self._address(name, value)
            else:
                numbers[name] = value
        self.data: np.ndarray = np.array([tuple(numbers[name] for name in _names(dtype))], dtype=dtype)
        self.address: int = self.data.ctypes.data

    def _address(self, name: str, array: np.ndarray) -> int:
        if not array.flags.c_contiguous or array.dtype.itemsize != 8 or array.dtype.kind not in "fi":
            raise TypeError(f"{name} must be a contiguous array of 8-byte numbers")
        self._alive[name] = array
        return array.ctypes.data

    def __setitem__(self, name: str, value):
        self.data[0][name] = value

    def __getitem__(self, name: str):
        return self.data[0][name]

    def array(self, name: str) -> np.ndarray:
        """The array whose address stands in the field `name`."""
        return self._alive[name]


@cache
def _zeros(dtype: np.dtype) -> tuple[tuple[str, object], ...]:
    """Field names and zeros of their shape, nested records as nested tuples."""
    return tuple((name, _zero(dtype[name])) for name in _names(dtype))


def _zero(dtype: np.dtype):
    if dtype.subdtype is None:
        return np.zeros((), dtype=dtype).item()
    return np.zeros(dtype.shape, dtype=dtype.base).tolist()


def _names(dtype: np.dtype) -> tuple[str, ...]:
    return dtype.names or ()
