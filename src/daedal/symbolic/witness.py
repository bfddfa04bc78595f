"""What a trace has read from outside, so that one can ask later, in microseconds, whether it is still the same."""

from __future__ import annotations

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

    def holds(self) -> bool:
        """Whether everything is as it was."""
        return (
            all(namespace.get(name, _MISSING) is value for namespace, name, value in self._names.values())
            and all(_content(cell) is value for cell, value in self._cells.values())
            and all(getattr(owner, name, _MISSING) is value for owner, name, value in self._attributes.values())
            and all(_same(_entries(container), kept) for container, kept in self._containers.values())
            and all(a.shape == shape and a.tobytes() == kept for a, shape, kept in self._arrays.values())
        )


def _content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # a name that has not been bound yet
        return _MISSING


def _entries(container: Any) -> tuple:
    return (*container, *container.values()) if isinstance(container, dict) else tuple(container)


def _same(now: tuple, then: tuple) -> bool:
    return len(now) == len(then) and all(a is b for a, b in zip(now, then))
