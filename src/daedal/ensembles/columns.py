"""Starts and parameters of many runs as columns, lists and streams, divided into chunks.

Varying quantities have a leading axis of length N, others an axis of length 1; they are combined by NumPy's
broadcasting rules. Iterators are read chunk by chunk, never as a whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count as numbers_from
from itertools import islice
from typing import Any

import numpy as np

from daedal.errors import InvalidProblemError
from daedal.problems.symbols import Driven, given_params, renewed

SHARED = 1  # the length of an axis shared by all members


@dataclass(frozen=True)
class MemberColumn:
    """One quantity of all members: `values` has a leading axis of length N or 1."""

    name: str  # name in messages
    values: np.ndarray

    def take(self, members: slice) -> np.ndarray:
        """The rows for some of the members."""
        return self.values if self.values.shape[0] == SHARED else self.values[members]


class Vectors:
    """Vectors such as (q0, v0): the form accepted by :func:`daedal.solve`, with a leading axis if they vary."""

    def __init__(
        self, columns: Sequence[MemberColumn | None], bare: bool = False, mode: str | None = None, scalar: bool = False
    ):
        self.columns, self.bare, self.mode, self.scalar = tuple(columns), bare, mode, scalar

    def replaced(self, columns: Sequence[MemberColumn | None]) -> Vectors:
        """A copy with other columns."""
        return Vectors(columns, self.bare, self.mode, self.scalar)

    @property
    def sizes(self) -> dict[str, int]:
        """The number of members in each column."""
        return {column.name: column.values.shape[0] for column in self.columns if column is not None}

    def take(self, members: slice) -> Vectors:
        """The vectors for some of the members."""
        return self.replaced([c if c is None else MemberColumn(c.name, c.take(members)) for c in self.columns])

    def arrays(self, count: int) -> list[np.ndarray | None]:
        """The columns with one row for each member; None for values to be computed."""
        return [None if c is None else np.broadcast_to(c.values, (count, *c.values.shape[1:])) for c in self.columns]

    def member(self, i: int) -> Any:
        """The input of one run."""
        rows = [None if c is None else c.values[0 if c.values.shape[0] == SHARED else i].copy() for c in self.columns]
        if self.scalar and rows[0] is not None:
            return float(rows[0][0])
        inner = rows[0] if self.bare else tuple(rows)
        return inner if self.mode is None else (self.mode, inner)


class Named:
    """Starts or parameters by name, each with a leading axis if it varies."""

    def __init__(self, columns: Mapping[Any, MemberColumn]):
        self.columns = dict(columns)

    @property
    def sizes(self) -> dict[str, int]:
        """The number of members in each column."""
        return {column.name: column.values.shape[0] for column in self.columns.values()}

    def take(self, members: slice) -> Named:
        """The values for some of the members."""
        return Named({key: MemberColumn(c.name, c.take(members)) for key, c in self.columns.items()})

    def member(self, i: int) -> dict[Any, Any]:
        """The input of one run."""
        return {key: _plain(c.values[0 if c.values.shape[0] == SHARED else i]) for key, c in self.columns.items()}


class Listed:
    """One object of any type for each member."""

    def __init__(self, name: str, items: Sequence[Any]):
        self.name, self.items = name, items

    @property
    def sizes(self) -> dict[str, int]:
        """The number of members."""
        return {self.name: len(self.items)}

    def take(self, members: slice) -> Listed:
        """The objects for some of the members."""
        return self if len(self.items) == SHARED else Listed(self.name, self.items[members])

    def member(self, i: int) -> Any:
        """The input of one run."""
        return self.items[0 if len(self.items) == SHARED else i]


class DrivenColumns:
    """Parameters, and inputs that are constant in each run, with a leading axis for the members.

    Parameters
    ----------
    before : Driven
        Parameters and inputs of the problem.
    inner : Vectors, Named, Listed or None
        The varying parameters; None if they are those of the problem.
    inputs : mapping
        Rows of values by name.
    """

    def __init__(self, before: Driven, inner: Any, inputs: Mapping[str, np.ndarray]):
        self.before, self.inner, self.inputs = before, inner, dict(inputs)

    @property
    def sizes(self) -> dict[str, int]:
        """The number of members."""
        others = () if self.inner is None else self.inner.sizes.values()
        return {"params and inputs": max([*(len(rows) for rows in self.inputs.values()), *others])}

    def take(self, members: Any) -> DrivenColumns:
        """Parameters and inputs of some members, given by a slice or by their numbers."""
        inner = _chosen(self.inner, members) if isinstance(members, np.ndarray) else self.inner
        inner = inner.take(members) if inner is not None and isinstance(members, slice) else inner
        cut = {name: rows if len(rows) == SHARED else rows[members] for name, rows in self.inputs.items()}
        return DrivenColumns(self.before, inner, cut)

    def member(self, i: int) -> Driven:
        """Parameters and inputs of one run."""
        given = self.before if self.inner is None else renewed(self.before, self.inner.member(i))
        own = {name: _plain(rows[0 if len(rows) == SHARED else i]) for name, rows in self.inputs.items()}
        return given._replace(inputs={**given.inputs, **own})


class Streamed:
    """An iterator, read in chunks; ``arranged(list)`` converts a list to columns."""

    def __init__(self, name: str, items: Iterator[Any], arranged: Callable[[list[Any]], Any]):
        self.name, self.items, self._arranged = name, items, arranged
        self.sizes: dict[str, int] = {}

    def read(self, count: int) -> tuple[Any, int]:
        """The next members and their number, which is smaller at the end."""
        read = list(islice(self.items, count))
        return self._arranged(read) if read else None, len(read)


@dataclass(frozen=True)
class Chunk:
    """Consecutive members: their numbers, starts and parameters."""

    number: int  # number of the chunk
    # The first member, and the number of members
    first: int
    count: int
    # ``starts.member(i)`` and ``params.member(i)`` are the input of run i of the chunk. ``starts.arrays(count)`` of
    # `Vectors` and ``params.columns`` of `Vectors` and `Named` are arrays. `params` is None if there are none.
    starts: Any
    params: Any

    def member(self, i: int) -> tuple[Any, Any]:
        """Start and parameters of one run; None instead of parameters if the problem's own parameters apply."""
        return self.starts.member(i), None if self.params is None else self.params.member(i)

    def only(self, rows: Sequence[int]) -> list[Chunk]:
        """Chunks of single members."""
        return [Chunk(self.number, self.first + i, 1, _single(self.starts, i), _single(self.params, i)) for i in rows]


def _single(values: Any, i: int) -> Any:
    return None if values is None else values.take(slice(i, i + 1))


class Members:
    """The starts and parameters of all members.

    Attributes
    ----------
    count : int or None
        Number of members; None for iterators, until they have ended.
    """

    def __init__(self, starts: Any, params: Any):
        self.starts, self.params = starts, params
        self.streamed = isinstance(starts, Streamed) or isinstance(params, Streamed)
        self.count = _common_count(starts, params, self.streamed)

    def chunks(self, size: int, first: int = 0) -> Iterator[Chunk]:
        """The members from `first` onwards in chunks of `size`, the last of which may be shorter; streams continue at
        their position."""
        for number in numbers_from():
            wanted = size if self.count is None else min(size, self.count - first)
            if wanted <= 0:
                return
            starts, has = self._read(self.starts, first, wanted)
            params, have = self._read(self.params, first, wanted)
            count = min(has, have)
            if count == 0:
                return
            yield Chunk(number, first, count, starts, params)
            first += count
            if count < wanted:
                return

    def _read(self, values: Any, first: int, wanted: int) -> tuple[Any, int]:
        """Some members, and their number, which is less than `wanted` if an iterator ended."""
        if isinstance(values, Streamed):
            return values.read(wanted)
        return None if values is None else values.take(slice(first, first + wanted)), wanted

    def chosen(self, rows: np.ndarray) -> Members:
        """Some of the members, by number."""
        return Members(_chosen(self.starts, rows), _chosen(self.params, rows))


def _chosen(values: Any, rows: np.ndarray) -> Any:
    if values is None or not any(size != SHARED for size in values.sizes.values()):
        return values
    if isinstance(values, Listed):
        return Listed(values.name, [values.items[i] for i in rows])
    if isinstance(values, DrivenColumns):
        return values.take(rows)
    cut = {
        id(c): c if c.values.shape[0] == SHARED else MemberColumn(c.name, c.values[rows]) for c in _columns(values) if c
    }
    if isinstance(values, Named):
        return Named({key: cut[id(c)] for key, c in values.columns.items()})
    return values.replaced([None if c is None else cut[id(c)] for c in values.columns])


def _columns(values: Any) -> list[Any]:
    return list(values.columns.values() if isinstance(values, Named) else values.columns)


def _common_count(starts: Any, params: Any, streamed: bool) -> int | None:
    """N, the common value of all lengths other than 1."""
    sizes = dict(starts.sizes) | ({} if params is None else params.sizes)
    longer = {name: size for name, size in sizes.items() if size != SHARED}
    if len(set(longer.values())) > 1:
        (first, one), *others = longer.items()
        second, other = next(item for item in others if item[1] != one)
        raise InvalidProblemError(
            f"{first} has {one} members and {second} has {other}: their lengths must be equal, or 1 for a value "
            "shared by all members"
        )
    if longer:
        return next(iter(longer.values()))
    return None if streamed else SHARED


def _plain(value: Any) -> Any:
    """A number as a Python object."""
    return value.item() if isinstance(value, np.generic) else value.copy() if isinstance(value, np.ndarray) else value


# --- parameters of many members as a matrix of the numbers used by machine code ---------------------------------------


class NumbersOf:
    """The parameter values of members, for any structure of their parameters.

    Parameters
    ----------
    params : object
        The parameters of the problem.
    read : callable or None
        ``read(params)`` returns the numbers of the parameters as a vector; None if no function has parameters.
    """

    def __init__(self, params: Any, read: Callable[[Any], np.ndarray] | None):
        self._params, self._read = params, read
        self._base = np.zeros(0) if read is None else np.array(read(params), dtype=float)
        self._places: dict[Any, np.ndarray | None] = {}

    def rows(self, chunk: Chunk) -> np.ndarray | None:
        """A row of numbers for each member; None if impossible."""
        if self._read is None or chunk.params is None:
            return np.ascontiguousarray(np.broadcast_to(self._base, (chunk.count, self._base.size)))
        if isinstance(chunk.params, Vectors):
            return self._vectors(chunk)
        if isinstance(chunk.params, Named):
            return self._named(chunk)
        return self._driven(chunk) if isinstance(chunk.params, DrivenColumns) else None

    def _driven(self, chunk: Chunk) -> np.ndarray | None:
        rows = self.rows(replace(chunk, params=chunk.params.inner))
        if rows is None or self._read is None:
            return rows
        rows = rows.copy()
        for name, values in chunk.params.inputs.items():
            place = self._input_place(name, values.shape[1:])
            if place is None:
                return None
            rows[:, place] = values.reshape(len(values), -1)
        return rows

    def _input_place(self, name: str, shape: tuple[int, ...]) -> np.ndarray | None:
        """The positions of an input's numbers, found by changing the input; None if the numbers are modified."""
        if ("input", name) not in self._places:
            markers = 0.7310585786300049 * (1.0 + np.arange(int(np.prod(shape, dtype=int))))
            value = float(markers[0]) if not shape else markers.reshape(shape)
            changed = self._read(self._params._replace(inputs={**self._params.inputs, name: value}))  # type: ignore[misc]
            places = [np.flatnonzero(changed == marker) for marker in markers]
            fits = changed.size == self._base.size and all(len(place) == 1 for place in places)
            self._places["input", name] = np.concatenate(places) if fits else None
        return self._places["input", name]

    def _vectors(self, chunk: Chunk) -> np.ndarray | None:
        given = np.ascontiguousarray(chunk.params.arrays(chunk.count)[0])
        rows = given
        if isinstance(self._params, Driven):  # the numbers of inputs follow those of the parameters
            rows = np.tile(self._base, (chunk.count, 1))
            rows[:, : given.shape[1]] = given[:, : self._base.size]
        first = self._read(renewed(self._params, chunk.params.member(0)))  # type: ignore[misc]
        return rows if rows.shape[1] == self._base.size and np.array_equal(first, rows[0]) else None

    def _named(self, chunk: Chunk) -> np.ndarray | None:
        rows = np.tile(self._base, (chunk.count, 1))
        for key, column in chunk.params.columns.items():
            if column.values.dtype != float or column.values.ndim != 1:
                return None
            place = self._place(key)
            if place is None:
                return None
            rows[:, place] = column.values[:, None]
        return rows

    def _place(self, key: Any) -> np.ndarray | None:
        """The position of a name's value, found by changing it; None if it is not a single unmodified number."""
        if key not in self._places:
            old = given_params(self._params)[key]
            new = (old if isinstance(old, float) else 0.0) * 1.25 + 0.7310585786300049
            changed = self._read(renewed(self._params, {key: new}))  # type: ignore[misc]
            same = changed.size == self._base.size and isinstance(old, float)
            places = np.flatnonzero(changed != self._base) if same else np.zeros(0, dtype=np.int64)
            fits = places.size == 1 and changed[places[0]] == new
            self._places[key] = places if fits else None
        return self._places[key]
