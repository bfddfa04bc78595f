"""Records: passing many arrays and numbers to kernels at the cost of one pointer.

A kernel's data are fields of a record declared by a struct (:mod:`daedal.kernels.structures`). A record is passed
between compiled functions as a single pointer, without reference counting, and its fields have names on both sides.
Passing the arrays themselves, alone or in tuples, makes calls ten times slower and compilation five times.
"""

from functools import cache
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from daedal.kernels.compilation import MODE
from daedal.kernels.memory import RecordView, length_of, shape_of, watch
from daedal.kernels.signatures import f64, i64
from daedal.kernels.structures import ADDRESS, NUMPY, Reference, Struct, at, inline, is_view, optional

if not TYPE_CHECKING and MODE == "build":
    from daedal.kernels.compiler_memory import (
        address_of,
        data_of,
        float_blocks,
        float_rows,
        floats,
        integer_rows,
        integers,
        letters_at,
        local_words,
        record_at,
        words,
    )
else:
    from daedal.kernels.memory import (
        address_of,
        data_of,
        float_blocks,
        float_rows,
        floats,
        integer_rows,
        integers,
        letters_at,
        local_words,
        record_at,
        words,
    )

__all__ = [
    "ADDRESS",
    "FLOAT",
    "INTEGER",
    "Record",
    "Struct",
    "address_of",
    "at",
    "data_of",
    "float_blocks",
    "float_rows",
    "floats",
    "inline",
    "integer_rows",
    "integers",
    "letters_at",
    "local_words",
    "optional",
    "record_at",
    "words",
]


INTEGER, FLOAT = i64, f64


class Record:
    """A record under construction, which keeps alive the arrays whose addresses it holds.

    Parameters
    ----------
    struct : Struct
        The structure of the record.
    **values
        Fields by name: numbers, arrays, and records, which are copied if the struct contains the record itself and
        referenced if it contains an address. Omitted fields are 0.

    Examples
    --------
    >>> from daedal.kernels.records import Record, Struct
    >>> from daedal.kernels.signatures import f64, i64
    >>> POINT = Struct("POINT", [("n", i64), ("y", f64["n"]), ("speeds", f64["2 * n"])])
    >>> point = Record(POINT, n=2, y=np.ones(2))
    >>> int(point["n"])
    2
    >>> Record.allocated(POINT, n=2, y=np.ones(2)).array("speeds")
    array([0., 0., 0., 0.])
    """

    block = np.zeros(0)
    """The memory of the arrays created by :meth:`allocated`, in one vector."""
    made: tuple[str, ...] = ()
    """The names of the arrays in this memory."""

    def __init__(self, struct: Struct, **values):
        self._alive: dict[str, Any] = {}
        self._struct = struct
        numbers = dict(_zeros(struct))
        for name, value in values.items():
            if isinstance(value, Record):
                self._alive[name] = value
                refers = isinstance(struct.kinds[name], Reference)
                numbers[name] = value.address if refers else value.data[0].item()
            elif isinstance(value, np.ndarray):
                numbers[name] = self._address(name, value)
            else:
                numbers[name] = value
        self.data: np.ndarray = np.array([tuple(numbers[name] for name in struct.kinds)], dtype=struct.dtype)
        self.address: int = self.data.ctypes.data

    @classmethod
    def allocated(cls, struct: Struct, **values) -> "Record":
        """A record with all its arrays, initially zero unless given in `values`; optional ones are omitted."""
        record = cls(struct, **values)
        missing, view = _required(struct), RecordView(record.address, struct)
        value_of = cache(lambda length: length_of(length, view))
        shapes = {name: tuple(map(value_of, kind.shape)) for name, kind in missing.items() if name not in values}
        sizes = list(map(prod, shapes.values()))
        record.block, begin, fields = np.zeros(sum(sizes)), 0, record.data[0]
        address, memory = record.block.ctypes.data, {name: record.block.view(kind) for name, kind in NUMPY.items()}
        for (name, shape), size in zip(shapes.items(), sizes, strict=True):
            record._alive[name] = memory[missing[name].name][begin : begin + size].reshape(shape)
            if MODE == "python":
                watch(record._alive[name])
            fields[name] = address + 8 * begin
            begin += size
        record.made = tuple(shapes)
        return record

    def shape(self, name: str) -> tuple[int, ...]:
        """The declared shape of an array, from the numbers in the record."""
        return shape_of(self._struct.kinds[name], RecordView(self.address, self._struct))

    def _address(self, name: str, array: np.ndarray) -> int:
        if not array.flags.c_contiguous or array.dtype.itemsize != 8 or array.dtype.kind not in "fi":
            raise TypeError(f"{name} must be a contiguous array of 8-byte numbers")
        self._alive[name] = array
        if MODE == "python":
            watch(array)
        return array.ctypes.data

    def __setitem__(self, name: str, value):
        self.data[0][name] = value

    def __getitem__(self, name: str):
        return self.data[0][name]

    def array(self, name: str) -> np.ndarray:
        """The array whose address is stored in the field `name`."""
        return self._alive[name]


@cache
def _zeros(struct: Struct) -> tuple[tuple[str, object], ...]:
    """Field names and zeros of their shape, nested records as nested tuples."""
    return tuple((name, _zero(struct[name])) for name in struct.kinds)


@cache
def _required(struct: Struct) -> dict[str, Any]:
    """The kinds of the arrays that are not optional."""
    return {name: kind for name, kind in struct.kinds.items() if is_view(kind) and not kind.optional}


def _zero(dtype: np.dtype):
    if dtype.subdtype is None:
        return np.zeros((), dtype=dtype).item()
    return np.zeros(dtype.shape, dtype=dtype.base).tolist()
