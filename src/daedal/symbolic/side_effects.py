"""Checks whether external changes made by a function affect its results: counters and logs do not, states do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from daedal.symbolic.arrays import array_of
from daedal.symbolic.expression import Expression, kind_of
from daedal.symbolic.graph import Graph
from daedal.symbolic.kinds import BOOL
from daedal.symbolic.untraceable import Untraceable

NAME = "memory"
"""Name of remembered values in a graph."""
_LENGTH = object()


class Memory:
    """External places that a function changes; a second run replaces their contents by symbols."""

    def __init__(self, graph: Graph):
        self.graph = graph
        self.changed: dict[tuple[int, Any], int] = {}
        self._places: list[tuple[Any, Any, Any, Callable[[], Any]]] = []

    def begin(self, owner: Any, key: Any, value: Any, read: Callable[[], Any]) -> Any:
        """Contents of a place at the start of a run; ``read()`` returns them at the end."""
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
