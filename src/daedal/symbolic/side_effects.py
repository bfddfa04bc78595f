"""Whether what a function changes outside of itself comes back in its results: counters and logs do not, states do."""

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
"""What is remembered is called in a graph."""
_LENGTH = object()


class Memory:
    """The places outside of a function that it changes; on a second run there are symbols in them."""

    def __init__(self, graph: Graph):
        self.graph = graph
        self.changed: dict[tuple[int, Any], int] = {}
        self._places: list[tuple[Any, Any, Any, Callable[[], Any]]] = []

    def begin(self, owner: Any, key: Any, value: Any, read: Callable[[], Any]) -> Any:
        """What a place holds at the beginning of a run; ``read()`` gives it at the end."""
        number = self.changed.get((id(owner), key))
        if number is not None:
            value = self._symbol(number, value)
        self._places.append((owner, key, value, read))
        return value

    def container(self, owner: Any, copied: Any) -> Any:
        """A list or the like that may become longer."""
        if (id(owner), id(_LENGTH)) in self.changed:
            copied = _Log()
        self._places.append((owner, id(_LENGTH), len(copied), lambda: len(copied)))
        return copied

    def collect(self):
        """A run is over: what it has changed is noted."""
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
            raise Untraceable("remembers something that is no number", "")
        node = self.graph.argument(NAME, number)
        return Expression(
            self.graph, self.graph.condition(node) if kind_of(value) & 3 == BOOL else node, kind_of(value)
        )


class _Log(list):
    """A list that can be appended to, and not read."""

    def _refuse(self, *arguments):
        raise Untraceable("reads what it has remembered", "")


for (
    _name
) in "__getitem__ __iter__ __setitem__ __delitem__ __contains__ __eq__ __add__ pop index count copy sort".split():
    setattr(_Log, _name, _Log._refuse)
