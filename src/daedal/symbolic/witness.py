"""What a trace has read from outside, so that one can ask later, in microseconds, whether it is still the same."""

from __future__ import annotations

from collections.abc import Callable
from operator import is_, itemgetter
from typing import Any

import numpy as np

_MISSING = object()


class Witness:
    """Names, cells, containers, arrays and attributes that traced functions reached, as they were then.

    Objects are compared by identity, arrays by their bytes.
    """

    def __init__(self) -> None:
        self._names: dict[tuple[int, str], tuple[dict, str, Any]] = {}
        self._cells: dict[int, tuple[Any, Any]] = {}
        self._containers: dict[int, tuple[Any, tuple]] = {}
        self._arrays: dict[int, tuple[np.ndarray, tuple[int, ...], bytes]] = {}
        self._attributes: dict[tuple[int, str], tuple[Any, str, Any]] = {}

    def name(self, namespace: dict[str, Any], name: str):
        """A global variable, or that there is none of this name."""
        self._names.setdefault((id(namespace), name), (namespace, name, namespace.get(name, _MISSING)))

    def cell(self, cell: Any):
        """A variable of an outer function."""
        self._cells.setdefault(id(cell), (cell, _content(cell)))

    def entries(self, container: Any):
        """A list, a set, or a dictionary, such as that of the attributes of an object."""
        self._containers.setdefault(id(container), (container, _entries(container)))

    def numbers(self, array: np.ndarray):
        """An array."""
        self._arrays.setdefault(id(array), (array, array.shape, array.tobytes()))

    def attribute(self, owner: Any, name: str):
        """An attribute of a module, a function or an object with slots."""
        self._attributes.setdefault((id(owner), name), (owner, name, getattr(owner, name, _MISSING)))

    def add(self, other: Witness):
        """See to what another has seen as well."""
        for mine, others in zip(vars(self).values(), vars(other).values(), strict=True):
            for key, seen in others.items():
                mine.setdefault(key, seen)

    def check(self) -> Callable[[], bool]:
        """A quick function that tells whether everything is as it was."""
        names: dict[int, tuple[dict, list[str], list[Any]]] = {}
        absent = []
        for namespace, name, value in self._names.values():
            if value is _MISSING:
                absent.append((namespace, name))
            else:
                found = names.setdefault(id(namespace), (namespace, [], []))
                found[1].append(name)
                found[2].append(value)
        # An entry more makes sure that the getter returns a tuple.
        getters = [(itemgetter(*n, n[0]), space, (*v, v[0])) for space, n, v in names.values()]
        cells, attributes = tuple(self._cells.values()), tuple(self._attributes.values())
        containers, arrays = tuple(self._containers.values()), tuple(self._arrays.values())

        def holds() -> bool:
            for getter, namespace, values in getters:
                try:
                    if not all(map(is_, getter(namespace), values)):
                        return False
                except KeyError:
                    return False
            for namespace, name in absent:
                if name in namespace:
                    return False
            for cell, value in cells:
                if _content(cell) is not value:
                    return False
            for owner, name, value in attributes:
                if getattr(owner, name, _MISSING) is not value:
                    return False
            for container, kept in containers:
                now = _entries(container)
                if len(now) != len(kept) or not all(map(is_, now, kept)):
                    return False
            for array, shape, content in arrays:
                if array.shape != shape or array.tobytes() != content:
                    return False
            return True

        return holds


def _content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # a name that has not been bound yet
        return _MISSING


def _entries(container: Any) -> tuple:
    return (*container, *container.values()) if isinstance(container, dict) else tuple(container)
