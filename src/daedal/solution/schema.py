"""Schema of files: kinds of values, which are written as plain data and arrays and validated when read.

A file never names a class or a function. Its header is data that must conform to a schema defined in the code.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import inf, isfinite, nan
from typing import Any

import numpy as np

from daedal.errors import InvalidFileError
from daedal.solution.status import STATUS_NUMBERS, Status

_NOT_FINITE = {"nan": nan, "inf": inf, "-inf": -inf}
_MOST_DIMENSIONS = 4


class Arrays(ABC):
    """Destination of arrays when writing, source when reading."""

    @abstractmethod
    def put(self, path: str, array: np.ndarray) -> Any:
        """Store an array; returns its entry in the header."""

    @abstractmethod
    def get(self, path: str, data: Any) -> np.ndarray:
        """The array of the given header entry."""


class Format(ABC):
    """A kind of value."""

    @abstractmethod
    def encode(self, value: Any, path: str, arrays: Arrays) -> Any:
        """The value as plain data."""

    @abstractmethod
    def decode(self, data: Any, path: str, arrays: Arrays, sizes: dict[str, int]) -> Any:
        """Restore the value; `sizes` holds named sizes of the enclosing object."""


def refuse(path: str, why: str):
    """Raise an error about an entry of the header."""
    raise InvalidFileError(f"{path or 'the header'} {why}")


def expect(condition: bool, path: str, why: str):
    """Raise unless a condition holds."""
    if not condition:
        refuse(path, why)


@dataclass(frozen=True)
class ArrayFormat(Format):
    """An array; a dimension is a number, a name (equal sizes wherever it occurs), or None."""

    type: str
    dimensions: tuple[str | int | None, ...]

    def encode(self, value, path, arrays):
        """Store the array; returns its header entry."""
        return arrays.put(path, np.ascontiguousarray(value, dtype=self.type))

    def decode(self, data, path, arrays, sizes):
        """Read the array and check its shape."""
        array = arrays.get(path, data)
        expect(array.dtype == np.dtype(self.type), path, f"holds numbers of type {array.dtype}, not {self.type}")
        expect(array.ndim == len(self.dimensions), path, f"has {array.ndim} dimensions, not {len(self.dimensions)}")
        for found, wanted in zip(array.shape, self.dimensions, strict=True):
            if wanted is not None:
                wanted = sizes.setdefault(wanted, found) if isinstance(wanted, str) else wanted
                expect(found == wanted, path, f"has shape {array.shape}, where {wanted} was expected for {found}")
        return array


@dataclass(frozen=True)
class Text(Format):
    """Text."""

    def encode(self, value, path, arrays):
        """The text itself."""
        return str(value)

    def decode(self, data, path, arrays, sizes):
        """The text, checked."""
        expect(isinstance(data, str), path, "is not text")
        return data


@dataclass(frozen=True)
class StatusText(Text):
    """The word of a :class:`daedal.solution.status.Status`."""

    def decode(self, data, path, arrays, sizes):
        """The status with this word."""
        expect(isinstance(data, str) and data in STATUS_NUMBERS, path, f"is not one of {', '.join(STATUS_NUMBERS)}")
        return Status(data)


@dataclass(frozen=True)
class Flag(Format):
    """True or False."""

    def encode(self, value, path, arrays):
        """The value itself."""
        return bool(value)

    def decode(self, data, path, arrays, sizes):
        """The value, checked."""
        expect(isinstance(data, bool), path, "is neither true nor false")
        return data


@dataclass(frozen=True)
class Integer(Format):
    """An integer not below `least`; it may be the size of a dimension."""

    least: int = 0
    size: str | None = None

    def encode(self, value, path, arrays):
        """The integer itself."""
        return int(value)

    def decode(self, data, path, arrays, sizes):
        """The integer, which must be in the 64-bit range."""
        right = isinstance(data, int) and not isinstance(data, bool) and self.least <= data < 2**63
        expect(right, path, f"is not an integer of at least {self.least}")
        if self.size is not None:
            expect(sizes.setdefault(self.size, data) == data, path, f"is inconsistent with other sizes ({self.size})")
        return data


@dataclass(frozen=True)
class NumberFormat(Format):
    """A number; non-finite values are written as words."""

    def encode(self, value, path, arrays):
        """The number, or a word for non-finite values."""
        number = float(value)
        return number if isfinite(number) else str(number)

    def decode(self, data, path, arrays, sizes):
        """The number as a float."""
        if isinstance(data, str) and data in _NOT_FINITE:
            return _NOT_FINITE[data]
        expect(isinstance(data, (int, float)) and not isinstance(data, bool), path, "is not a number")
        return float(data)


@dataclass(frozen=True)
class Optional(Format):
    """A value of another kind, or None."""

    kind: Format

    def encode(self, value, path, arrays):
        """The value or None."""
        return None if value is None else self.kind.encode(value, path, arrays)

    def decode(self, data, path, arrays, sizes):
        """The value or None."""
        return None if data is None else self.kind.decode(data, path, arrays, sizes)


@dataclass(frozen=True)
class ListOf(Format):
    """A list of items of one kind; its length must be `size` if given."""

    kind: Format
    size: str | None = None
    make: Callable[[list[Any]], Any] = list

    def encode(self, value, path, arrays):
        """The items as plain data."""
        return [self.kind.encode(entry, f"{path}/{i}", arrays) for i, entry in enumerate(value)]

    def decode(self, data, path, arrays, sizes):
        """Restore the items."""
        expect(isinstance(data, list), path, "is not a list")
        if self.size is not None:
            wanted = sizes.setdefault(self.size, len(data))
            expect(len(data) == wanted, path, f"has {len(data)} entries, not {wanted}")
        return self.make([self.kind.decode(entry, f"{path}/{i}", arrays, sizes) for i, entry in enumerate(data)])


@dataclass(frozen=True)
class MappingOf(Format):
    """Items of one kind by name."""

    kind: Format
    make: Callable[[dict[str, Any]], Any] = dict

    def encode(self, value, path, arrays):
        """The items as plain data, by name."""
        return {str(name): self.kind.encode(entry, f"{path}/{name}", arrays) for name, entry in value.items()}

    def decode(self, data, path, arrays, sizes):
        """Restore the items, by name."""
        expect(isinstance(data, dict), path, "is not a mapping")
        return self.make(
            {name: self.kind.decode(entry, f"{path}/{name}", arrays, sizes) for name, entry in data.items()}
        )


@dataclass(frozen=True)
class RecordFormat(Format):
    """An object of a known class, by its fields; ``check(fields)`` returns an error message or None.

    Fields in `newer` may be missing from older files; the class then provides their defaults.
    """

    fields: Mapping[str, Format]
    make: Callable[..., Any]
    check: Callable[[dict[str, Any]], str | None] | None = None
    take: Callable[[Any], Mapping[str, Any]] | None = None
    newer: frozenset[str] = frozenset()

    def encode(self, value, path, arrays):
        """The fields of the object as plain data, by name."""
        given = {name: getattr(value, name) for name in self.fields} if self.take is None else self.take(value)
        return {name: kind.encode(given[name], _joined(path, name), arrays) for name, kind in self.fields.items()}

    def decode(self, data, path, arrays, sizes):
        """Restore the object; named sizes of its fields are independent of those in `sizes`."""
        expect(isinstance(data, dict), path, "is not a mapping")
        missing, further = set(self.fields) - set(data), set(data) - set(self.fields)
        expect(missing <= self.newer, path, f"lacks {', '.join(sorted(missing))}")
        expect(not further, path, f"has {', '.join(sorted(map(repr, further)))}, which is not expected")
        own: dict[str, int] = {}
        known = ((name, kind) for name, kind in self.fields.items() if name in data)
        values = {name: kind.decode(data[name], _joined(path, name), arrays, own) for name, kind in known}
        wrong = None if self.check is None else self.check(values)
        expect(wrong is None, path, str(wrong))
        return self.make(**values)


@dataclass(frozen=True)
class Plain(Format):
    """Plain data such as parameters and notes: numbers, texts, arrays, lists and mappings."""

    def encode(self, value, path, arrays):
        """The value as plain data, in which a key marks arrays and mappings."""
        if value is None or isinstance(value, (bool, str)):
            return value
        if isinstance(value, (int, np.integer)) and abs(int(value)) < 2**63:
            return int(value)
        if isinstance(value, (float, np.floating)):
            number = NumberFormat().encode(value, path, arrays)
            return {"number": number} if isinstance(number, str) else number
        if isinstance(value, np.ndarray) and value.dtype.kind in "fiub" and value.ndim <= _MOST_DIMENSIONS:
            kind = "f8" if value.dtype.kind == "f" else "i8"
            return {"array": arrays.put(f"{path}/", np.ascontiguousarray(value, dtype=kind))}
        if isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
            return {"mapping": {key: self.encode(entry, f"{path}/{key}", arrays) for key, entry in value.items()}}
        if isinstance(value, (list, tuple)):
            kind = "list" if isinstance(value, list) else "tuple"
            return {kind: [self.encode(entry, f"{path}/{i}", arrays) for i, entry in enumerate(value)]}
        raise TypeError(f"{path} holds {type(value).__name__}, which is not plain data")

    def decode(self, data, path, arrays, sizes):
        """Restore the value."""
        if data is None or isinstance(data, (bool, str, int, float)):
            return data
        expect(isinstance(data, dict) and len(data) == 1, path, "is not plain data")
        [(key, inner)] = data.items()
        if key == "number":
            return NumberFormat().decode(inner, path, arrays, sizes)
        if key == "array":
            return arrays.get(f"{path}/", inner)
        if key == "mapping" and isinstance(inner, dict):
            return {name: self.decode(entry, f"{path}/{name}", arrays, sizes) for name, entry in inner.items()}
        if key in ("list", "tuple") and isinstance(inner, list):
            entries = [self.decode(entry, f"{path}/{i}", arrays, sizes) for i, entry in enumerate(inner)]
            return entries if key == "list" else tuple(entries)
        return refuse(path, "is not plain data")


def is_plain(value: Any) -> bool:
    """Whether a file can store a value directly."""
    numbers = value.values() if type(value) is dict else value
    if value is None or (type(value) in (dict, list, tuple) and all([type(x) is float for x in numbers])):
        if type(value) is not dict or all([type(key) is str for key in value]):
            return True
    try:
        Plain().encode(value, "", _Nowhere())
    except (TypeError, RecursionError):
        return False
    return True


class _Nowhere(Arrays):
    def put(self, path, array):
        return None

    def get(self, path, data):
        raise NotImplementedError


def names(size: str) -> Format:
    """The format of a list of `size` names; whether they are distinct is not checked."""
    return ListOf(Text(), size, tuple)


def _joined(path: str, name: str) -> str:
    return f"{path}/{name}" if path else name


def finite(values: Sequence[np.ndarray]) -> bool:
    """Whether all numbers are finite."""
    return all(bool(np.isfinite(value).all()) for value in values)
