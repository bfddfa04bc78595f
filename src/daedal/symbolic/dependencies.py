"""What a trace has read outside of its arguments, and whether it is still the same.

Tracing a function takes milliseconds, looking at what it depends on microseconds: so a trace can be kept although
globals, closures, lists, arrays and attributes may change.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import CellType, FunctionType
from typing import Any

import numpy as np

_MISSING = object()


def entries(container: Any) -> list[Any]:
    """What is in a container, keys and values."""
    return [*container.keys(), *container.values()] if isinstance(container, Mapping) else list(container)


class Dependencies:
    """The names, cells, containers, arrays and attributes that were read, each with what was found there.

    Objects count as the same if they are identical, arrays if they have the same bytes.
    """

    def __init__(self) -> None:
        self._names: dict[tuple[int, str], tuple[Mapping[str, Any], str, Any]] = {}
        self._cells: dict[int, tuple[CellType, Any]] = {}
        self._containers: dict[int, tuple[Any, list[Any]]] = {}
        self._arrays: dict[int, tuple[np.ndarray, bytes]] = {}
        self._attributes: dict[tuple[int, str], tuple[Any, str, Any]] = {}

    def names(self, namespace: Mapping[str, Any], names: Iterable[str]):
        """Names of a module or of globals, whether they are bound or not."""
        for name in names:
            self._names[id(namespace), name] = namespace, name, namespace.get(name, _MISSING)

    def function(self, function: FunctionType):
        """The code of a function, its defaults, and what its closure holds."""
        self.attributes(function, ("__code__", "__defaults__", "__kwdefaults__"))
        for cell in function.__closure__ or ():
            self._cells[id(cell)] = cell, _contents(cell)

    def container(self, container: Any):
        self._containers[id(container)] = container, entries(container)

    def array(self, array: np.ndarray):
        self._arrays[id(array)] = array, array.tobytes()

    def attributes(self, owner: Any, names: Iterable[str]):
        for name in names:
            self._attributes[id(owner), name] = owner, name, getattr(owner, name, _MISSING)

    def are_unchanged(self) -> bool:
        """Whether all of it is as it was."""
        return (
            all(space.get(name, _MISSING) is value for space, name, value in self._names.values())
            and all(_contents(cell) is value for cell, value in self._cells.values())
            and all(getattr(owner, name, _MISSING) is value for owner, name, value in self._attributes.values())
            and all(same_entries(entries(container), before) for container, before in self._containers.values())
            and all(array.tobytes() == before for array, before in self._arrays.values())
        )


def same_entries(now: list[Any], before: list[Any]) -> bool:
    """Whether two lists hold the same objects."""
    return len(now) == len(before) and all(a is b for a, b in zip(now, before))


def _contents(cell: CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not bound yet
        return _MISSING
