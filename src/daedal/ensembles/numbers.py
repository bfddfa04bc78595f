"""Parameters of many members as a matrix of the numbers that machine code takes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from daedal.ensembles.columns import Chunk, Named, Vectors
from daedal.problems.symbols import renewed


class NumbersOf:
    """The numbers of members, whatever the structure of their parameters.

    Parameters
    ----------
    params : object
        Those of the problem.
    read : callable or None
        ``read(params)``, the vector of numbers of parameters; None if no function has any.
    """

    def __init__(self, params: Any, read: Callable[[Any], np.ndarray] | None):
        self._params, self._read = params, read
        self._base = np.zeros(0) if read is None else np.array(read(params), dtype=float)
        self._places: dict[Any, np.ndarray | None] = {}

    def rows(self, chunk: Chunk) -> np.ndarray | None:
        """A row of numbers for each member; None where that is not possible."""
        if self._read is None or chunk.params is None:
            return np.ascontiguousarray(np.broadcast_to(self._base, (chunk.count, self._base.size)))
        if isinstance(chunk.params, Vectors):
            return self._vectors(chunk)
        if isinstance(chunk.params, Named):
            return self._named(chunk)
        return None

    def _vectors(self, chunk: Chunk) -> np.ndarray | None:
        rows = np.ascontiguousarray(chunk.params.arrays(chunk.count)[0])
        first = self._read(chunk.params.member(0))  # type: ignore[misc]
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
        """Where the number of a name stands: found by changing it; None if it is not one number as it is."""
        if key not in self._places:
            old = self._params[key]
            new = (old if isinstance(old, float) else 0.0) * 1.25 + 0.7310585786300049
            changed = self._read(renewed(self._params, {key: new}))  # type: ignore[misc]
            same = changed.size == self._base.size and isinstance(old, float)
            places = np.flatnonzero(changed != self._base) if same else np.zeros(0, dtype=np.int64)
            fits = places.size == 1 and changed[places[0]] == new
            self._places[key] = places if fits else None
        return self._places[key]
