"""External values that a trace has read or changed: checks that they are unchanged, and that changes affect no result.

Tracing a function takes milliseconds, checking its dependencies microseconds. Traces can therefore be reused, although
globals, closures, lists, arrays and attributes may change. Some changes do not affect results, such as those of
counters and logs; changes of a state do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import chain
from operator import is_, itemgetter
from types import CellType, FunctionType
from typing import Any

import numpy as np

from daedal.symbolic.arrays import array_of
from daedal.symbolic.expression import Expression, kind_of
from daedal.symbolic.graph import Graph
from daedal.symbolic.kinds import BOOL
from daedal.symbolic.untraceable import Untraceable

_MISSING = object()


def entries(container: Any) -> list[Any]:
    """Keys and values of a container."""
    return [*container.keys(), *container.values()] if isinstance(container, Mapping) else list(container)


class Dependencies:
    """Names, cells, containers, arrays and attributes that a trace has read, each with its value.

    Objects are compared by identity, arrays by their bytes.
    """

    def __init__(self) -> None:
        self._names: dict[tuple[int, str], tuple[Mapping[str, Any], str, Any]] = {}
        self._cells: dict[int, tuple[CellType, Any]] = {}
        self._containers: dict[int, tuple[Any, list[Any]]] = {}
        self._arrays: dict[int, tuple[np.ndarray, tuple[int, ...], bytes]] = {}
        self._attributes: dict[tuple[int, str], tuple[Any, str, Any]] = {}
        self._readings: dict[int, tuple[Any, Callable[[Any], Any], Any]] = {}

    def names(self, namespace: Mapping[str, Any], names: Iterable[str]):
        """Record names of a module or of globals, whether bound or not."""
        for name in names:
            self._names[id(namespace), name] = namespace, name, namespace.get(name, _MISSING)

    def function(self, function: FunctionType):
        """Record the code and defaults of a function."""
        self.attributes(function, ("__code__", "__defaults__", "__kwdefaults__"))
        if function.__kwdefaults__:
            self.container(function.__kwdefaults__)

    def cells(self, function: FunctionType):
        """Record the cells of a function's closure."""
        for cell in function.__closure__ or ():
            self._cells[id(cell)] = cell, _contents(cell)

    def container(self, container: Any):
        self._containers[id(container)] = container, entries(container)

    def array(self, array: np.ndarray):
        self._arrays[id(array)] = array, array.shape, array.tobytes()

    def reading(self, owner: Any, read: Callable[[Any], Any]):
        """Record the result of ``read(owner)``, bytes or a list of objects."""
        self._readings[id(owner)] = owner, read, read(owner)

    def attributes(self, owner: Any, names: Iterable[str]):
        for name in names:
            self._attributes[id(owner), name] = owner, name, getattr(owner, name, _MISSING)

    def add(self, other: Dependencies):
        """Add the dependencies recorded in `other`."""
        for mine, others in zip(vars(self).values(), vars(other).values(), strict=True):
            for key, seen in others.items():
                mine.setdefault(key, seen)

    def are_unchanged(self) -> bool:
        """Whether all recorded values are unchanged."""
        return self.check()()

    def check(self) -> Callable[[], bool]:
        """A fast function that checks all recorded values, for repeated use."""
        bound: dict[int, tuple[Mapping[str, Any], list[str], list[Any]]] = {}
        absent = []
        for space, name, value in self._names.values():
            if value is _MISSING:
                absent.append((space, name))
            else:
                found = bound.setdefault(id(space), (space, [], []))
                found[1].append(name)
                found[2].append(value)
        # The extra name makes the getter return a tuple.
        getters = [(itemgetter(*names, names[0]), space, (*v, v[0])) for space, names, v in bound.values()]
        cells, attributes = tuple(self._cells.values()), tuple(self._attributes.values())
        readings = tuple(self._readings.values())
        containers, arrays = tuple(self._containers.values()), tuple(self._arrays.values())
        mappings = [(held, len(before) // 2, before) for held, before in containers if isinstance(held, Mapping)]
        others = [(held, before) for held, before in containers if not isinstance(held, Mapping)]

        def holds() -> bool:
            try:
                for getter, space, values in getters:
                    if not all(map(is_, getter(space), values)):
                        return False
            except KeyError:
                return False
            for space, name in absent:
                if name in space:
                    return False
            for cell, value in cells:
                if _contents(cell) is not value:
                    return False
            for owner, name, value in attributes:
                if getattr(owner, name, _MISSING) is not value:
                    return False
            for mapping, size, before in mappings:
                if len(mapping) != size or not all(map(is_, chain(mapping, mapping.values()), before)):
                    return False
            for container, before in others:
                if not same_entries(entries(container), before):
                    return False
            for array, shape, bits in arrays:
                if array.shape != shape or array.tobytes() != bits:
                    return False
            for owner, read, before in readings:
                now = read(owner)
                if not (same_entries(now, before) if isinstance(now, list) else now == before):
                    return False
            return True

        return holds


def same_entries(now: list[Any], before: list[Any]) -> bool:
    """Whether two lists contain identical objects."""
    return len(now) == len(before) and all(map(is_, now, before))


def _contents(cell: CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not yet bound
        return _MISSING


NAME = "memory"
"""Name of the argument of a graph that stands for values remembered from earlier calls."""
_LENGTH = object()


class Memory:
    """External places that a function changes; a second run replaces their contents by symbols."""

    def __init__(self, graph: Graph):
        self.graph = graph
        self.changed: dict[tuple[int, Any], int] = {}
        self._places: list[tuple[Any, Any, Any, Callable[[], Any]]] = []

    def begin(self, owner: Any, key: Any, value: Any, read: Callable[[], Any]) -> Any:
        """Register a place, whose value at the end of the run is ``read()``; return its value or a symbol."""
        number = self.changed.get((id(owner), key))
        if number is not None:
            value = self._symbol(number, value)
        self._places.append((owner, key, value, read))
        return value

    def container(self, owner: Any, copied: Any) -> Any:
        """Register a list or similar container that may grow."""
        if (id(owner), id(_LENGTH)) in self.changed:
            copied = _Log()
        self._places.append((owner, id(_LENGTH), len(copied), lambda: len(copied)))
        return copied

    def collect(self):
        """Record the changes made by a finished run."""
        for owner, key, before, read in self._places:
            now = read()
            same = np.array_equal(now, before) if isinstance(before, np.ndarray) else now is before or now == before
            if type(same) is Expression or not same:
                self.changed.setdefault((id(owner), key), len(self.changed))
        self._places.clear()

    def _symbol(self, number: int, value: Any) -> Any:
        if isinstance(value, np.ndarray):
            return array_of([self._symbol(number, x) for x in value.ravel().tolist()]).reshape(value.shape)
        if not isinstance(value, (bool, int, float, np.generic)):
            raise Untraceable("stores something that is not a number", "")
        node = self.graph.argument(NAME, number)
        return Expression(
            self.graph, self.graph.condition(node) if kind_of(value) & 3 == BOOL else node, kind_of(value)
        )


class _Log(list):
    """A list that can be appended to but not read."""

    def _refuse(self, *arguments):
        raise Untraceable("reads what it has stored", "")


for (
    _name
) in "__getitem__ __iter__ __setitem__ __delitem__ __contains__ __eq__ __add__ pop index count copy sort".split():
    setattr(_Log, _name, _Log._refuse)
