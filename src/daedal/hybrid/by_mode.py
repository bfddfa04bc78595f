"""One thing for each mode of a run, made when it is first asked for: there may be thousands of modes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

T = TypeVar("T")


class ByMode(Mapping[str, T]):
    """A mapping over the modes of a problem whose values are made by a function of their names, once."""

    def __init__(self, modes: Mapping[str, Any], make: Callable[[str], T]):
        self._modes, self._make = modes, make
        self._made: dict[str, T] = {}

    def __getitem__(self, name: str) -> T:
        if name not in self._made:
            if name not in self._modes:
                raise KeyError(name)
            self._made[name] = self._make(name)
        return self._made[name]

    def __contains__(self, name: object) -> bool:
        return name in self._modes

    def __iter__(self) -> Iterator[str]:
        return iter(self._modes)

    def __len__(self) -> int:
        return len(self._modes)
