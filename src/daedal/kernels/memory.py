"""Memory at addresses in kernels: vectors, matrices and records.

Compiled kernels use the functions of :mod:`daedal.kernels.compiler_memory`; these are the versions for interpreted
kernels, with bounds checked by NumPy.
"""

from __future__ import annotations

import ctypes
import weakref
from bisect import bisect_left, bisect_right, insort
from collections import deque
from math import prod
from typing import Any

import numpy as np

from daedal.kernels.structures import NUMPY, Inline, Reference, Struct, evaluate, is_view

_begins: list[int] = []  # sorted start addresses of arrays referenced by records
_sizes: dict[int, int] = {}  # sizes in bytes, by start address


def watch(array: np.ndarray):
    """Make views that start within an array and end beyond it an error, while the array is alive."""
    begin = array.ctypes.data
    if array.nbytes == 0:
        return
    if begin not in _sizes:
        insort(_begins, begin)
    _sizes[begin] = array.nbytes
    weakref.finalize(array, _forget, begin)


def _forget(begin: int):
    if _sizes.pop(begin, None) is not None:
        del _begins[bisect_left(_begins, begin)]


def _check(address: int, size: int):
    k = bisect_right(_begins, address) - 1
    if k >= 0:
        end = _begins[k] + _sizes[_begins[k]]
        if address < end < address + 8 * size:
            raise IndexError(f"a view of {size} numbers ends {address + 8 * size - end} bytes beyond its memory")


def _array(address: int, shape: tuple[int, ...], dtype) -> np.ndarray:
    size = prod(shape)
    if size == 0:
        return np.zeros(shape, dtype)
    if _begins:
        _check(int(address), int(size))
    memory: Any = (ctypes.c_int64 * int(size)).from_address(int(address))
    return np.frombuffer(memory, dtype=dtype).reshape(tuple(map(int, shape)))


def floats(address, n):
    """The float vector of length n at an address."""
    return _array(address, (n,), np.float64)


def float_rows(address, rows, n):
    """The float matrix with `rows` rows of length n at an address."""
    return _array(address, (rows, n), np.float64)


def float_blocks(address, count, rows, n):
    """`count` float matrices with `rows` rows of length n, contiguous at an address."""
    return _array(address, (count, rows, n), np.float64)


def integers(address, n):
    """The integer vector of length n at an address."""
    return _array(address, (n,), np.int64)


def words(address, n):
    """n untyped words at an address: memory that is copied as a whole, or several arrays."""
    return np.frombuffer((ctypes.c_int64 * int(n)).from_address(int(address)), dtype=np.int64)


def integer_rows(address, rows, n):
    """The integer matrix with `rows` rows of length n at an address."""
    return _array(address, (rows, n), np.int64)


def record_at(address, structure):
    """The record of a structure at an address."""
    return RecordView(int(address), structure)


def letters_at(address):
    """The two bytes at an address, as a number."""
    return int.from_bytes(ctypes.string_at(int(address), 2), "little")


def address_of(record):
    """The address of a record."""
    return record._address


def data_of(array):
    """The address of the entries of a contiguous array; 0 for one without entries."""
    return array.ctypes.data if array.size else 0


def local_words(n: int):
    """A function for kernels: the address of n words that are valid during the call; here, until 64 further
    calls."""
    kept: deque[np.ndarray] = deque(maxlen=64)

    def words():
        kept.append(np.zeros(n, dtype=np.int64))
        return kept[-1].ctypes.data

    return words


class RecordView:
    """A record at an address, with its fields as attributes: numbers, views of arrays, other records."""

    __slots__ = ("_address", "_structure")

    def __init__(self, address: int, structure: Struct):
        object.__setattr__(self, "_address", address)
        object.__setattr__(self, "_structure", structure)

    def __getattr__(self, name: str) -> Any:
        kind, address = self._field(name)
        if isinstance(kind, Struct):
            return RecordView(address, kind)
        if isinstance(kind, Inline):
            return _array(address, kind.shape, self._structure[name].base)
        number = _array(address, (1,), self._structure[name])[0]
        if isinstance(kind, Reference):
            return RecordView(int(number), kind.target)
        if not is_view(kind):
            return number
        shape = shape_of(kind, self)
        return _array(number, shape if number else (0,) * len(shape), NUMPY[kind.name])

    def __setattr__(self, name: str, value):
        kind, address = self._field(name)
        if is_view(kind) or isinstance(kind, (Struct, Inline, Reference)):
            raise AttributeError(f"{self._structure.name}.{name} is not a number")
        _array(address, (1,), self._structure[name])[0] = value

    def _field(self, name: str) -> tuple[Any, int]:
        try:
            return self._structure.kinds[name], self._address + self._structure.offset(name)
        except KeyError:
            raise AttributeError(f"{self._structure.name} has no field {name!r}") from None


def shape_of(kind: Any, record: RecordView) -> tuple[int, ...]:
    """The declared shape of an array, from the numbers in a record."""
    return tuple(length_of(length, record) for length in kind.shape)


def length_of(length: int | str, record: RecordView) -> int:
    """The value of a declared length, from the numbers in a record."""

    def field(path: tuple[str, ...]) -> int:
        address, structure = record._address, record._structure
        for name in path:
            address, kind = address + structure.offset(name), structure.kinds[name]
            if isinstance(kind, Reference):
                address, structure = ctypes.c_int64.from_address(address).value, kind.target
            elif isinstance(kind, Struct):
                structure = kind
        return ctypes.c_int64.from_address(address).value

    return evaluate(length, field, int, _combine)


def _combine(name: str, left: int, right: int) -> int:
    return {"add": left + right, "sub": left - right, "mul": left * right}[name]
