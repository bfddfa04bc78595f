"""Combination of parts into arrays, or block by block into reductions."""

from __future__ import annotations

from typing import Any

import numpy as np

from daedal.ensembles.part import EVENT, FINISHED, NOT_RUN, Part, StateLayout
from daedal.ensembles.reductions import BLOCK, Aggregator

_MOST_MESSAGES = 100_000  # maximum number of stored messages of failed members


class Collector:
    """Accepts parts in any order; each member is counted once.

    Parameters
    ----------
    count : int or None
        Number of members; None if not yet known.
    reductions : list of Aggregator
        If given, only the reductions of successful members are stored.
    """

    def __init__(self, count: int | None, reductions: list[Aggregator]):
        self.reductions = reductions
        self.layout: StateLayout | None = None
        self.messages: dict[int, str] = {}
        self.events: list[tuple[Any, ...]] = []
        self.fell_back = 0
        self.done = 0
        self.failed_members: list[int] = []
        self.arrays: dict[str, np.ndarray] = {}
        self._capacity = count or 0
        self._fixed = count is not None
        self._seen = np.zeros(self._capacity, dtype=bool)
        self._status = np.full(self._capacity, NOT_RUN, dtype=np.int8)
        self._t_final = np.full(0 if reductions else self._capacity, np.nan)
        self._blocks: dict[int, _Block] = {}
        self._summaries: dict[int, dict[str, list[Any]]] = {}
        self._merged: dict[str, list[Any]] = {}
        self._next = 0  # the next block to be merged

    @property
    def count(self) -> int:
        """The number of members, if known."""
        return self._capacity

    @property
    def seen(self) -> np.ndarray:
        """Which members have arrived."""
        return self._seen[: self._capacity]

    def first_missing(self) -> int:
        """The first member that has not arrived."""
        return int(np.argmin(self.seen)) if self.seen.size and not self.seen.all() else int(self.seen.size)

    @property
    def status(self) -> np.ndarray:
        """Codes of how each run ended, see `part.STATUS`."""
        return self._status[: self._capacity]

    @property
    def t_final(self) -> np.ndarray:
        """Time at which each run ended; None with reductions."""
        return self._t_final[: 0 if self.reductions else self._capacity]

    def add(self, part: Part) -> int:
        """Add a part; returns the number of new members in it."""
        last = part.first + part.count
        if last > self._capacity:
            self._grow(last)
        new = ~self._seen[part.first : last] & (part.status != NOT_RUN)
        rows = np.flatnonzero(new)
        if not rows.size:
            return 0
        places = part.first + rows
        self._seen[places] = True
        self._status[places] = part.status[rows]
        self.layout = self.layout or part.layout
        self.fell_back += part.fell_back
        self.done += rows.size
        if rows.size < part.count:
            kept = set(places.tolist())
            part.messages = {k: v for k, v in part.messages.items() if k in kept}
            part.events = [row for row in part.events if row[0] in kept]
        self.failed_members += sorted(part.messages)
        for member, message in part.messages.items():
            if len(self.messages) < _MOST_MESSAGES:
                self.messages[member] = message
        self.events += part.events
        if self.reductions:
            self._reduce(part, rows)
        else:
            self._store(part, rows, places)
        return int(rows.size)

    # --- arrays -----------------------------------------------------------------------------------------------------

    def _grow(self, needed: int) -> None:
        self._capacity = needed
        if needed <= self._seen.size:
            return
        size = max(needed, 2 * self._seen.size)
        self._seen = _longer(self._seen, size, False)
        self._status = _longer(self._status, size, NOT_RUN)
        if not self.reductions:
            self._t_final = _longer(self._t_final, size, np.nan)
            self.arrays = {name: _longer(array, size, np.nan) for name, array in self.arrays.items()}

    def _store(self, part: Part, rows: np.ndarray, places: np.ndarray) -> None:
        self._t_final[places] = part.t_final[rows]
        for name, values in part.arrays.items():
            array = self.arrays.get(name)
            if array is None:
                array = self.arrays[name] = np.full((self._seen.size, *values.shape[1:]), np.nan)
            if array.shape[1:] != values.shape[1:]:
                self._refuse(name, part, rows, values, array)
                continue
            array[places] = values[rows]

    def _refuse(self, name: str, part: Part, rows: np.ndarray, values: np.ndarray, array: np.ndarray) -> None:
        """Mark members as failed, since their output differs in shape from the output of earlier members."""
        for row in rows[np.isin(part.status[rows], (FINISHED, EVENT))]:
            member = part.first + int(row)
            self._status[member] = 2
            self.failed_members.append(member)
            self.messages[member] = (
                f"the output '{name.removeprefix('output:')}' has shape {values.shape[1:]}, but that of other "
                f"members {array.shape[1:]}"
            )

    def finished_arrays(self) -> dict[str, np.ndarray]:
        """The arrays of all members."""
        return {name: array[: self._capacity] for name, array in self.arrays.items()}

    # --- reductions -------------------------------------------------------------------------------------------------

    def _reduce(self, part: Part, rows: np.ndarray) -> None:
        quantities = {
            name: values
            for name, values in part.arrays.items()
            if name == _reduced_quantity(part.arrays) or name.startswith("output:")
        }
        numbers = (part.first + rows) // BLOCK  # block numbers, in order
        came_through = np.isin(part.status, (FINISHED, EVENT))
        for own in np.split(rows, np.flatnonzero(np.diff(numbers)) + 1):
            number = int(part.first + own[0]) // BLOCK
            block = self._blocks.setdefault(number, _Block())
            places = (part.first + own) % BLOCK
            block.add(places, came_through[own], {name: v[own] for name, v in quantities.items()})
            if block.filled == BLOCK:
                self._close(number)

    def _close(self, number: int) -> None:
        """Summarise a block, and merge all blocks that are next in order."""
        block = self._blocks.pop(number)
        self._summaries[number] = {
            name: [reduction.summary(values) for reduction in self.reductions]
            for name, values in block.values().items()
            if values.shape[0]
        }
        while self._next in self._summaries:
            self._merge(self._summaries.pop(self._next))
            self._next += 1

    def _merge(self, summaries: dict[str, list[Any]]) -> None:
        for name, new in summaries.items():
            old = self._merged.get(name)
            self._merged[name] = (
                new if old is None else [r.merge(a, b) for r, a, b in zip(self.reductions, old, new, strict=True)]
            )

    def reduced(self) -> dict[str, dict[str, Any]]:
        """The results of all reductions, {reduction: {quantity: value}}, including incomplete blocks."""
        for number in sorted(self._blocks):
            self._summaries[number] = {}
            block = self._blocks[number]
            self._summaries[number] = {
                name: [reduction.summary(values) for reduction in self.reductions]
                for name, values in block.values().items()
                if values.shape[0]
            }
        self._blocks = {}
        for number in sorted(self._summaries):
            self._merge(self._summaries.pop(number))
        return {
            reduction.name: {
                name.removeprefix("output:"): reduction.result(found[k]) for name, found in self._merged.items()
            }
            for k, reduction in enumerate(self.reductions)
        }


class _Block:
    """A block of members, filled as they arrive."""

    def __init__(self):
        self.filled = 0
        self._good = np.zeros(BLOCK, dtype=bool)
        self._arrays: dict[str, np.ndarray] = {}

    def add(self, places: np.ndarray, good: np.ndarray, values: dict[str, np.ndarray]) -> None:
        self.filled += places.size
        self._good[places] = good
        for name, rows in values.items():
            if name not in self._arrays:
                self._arrays[name] = np.full((BLOCK, *rows.shape[1:]), np.nan)
            self._arrays[name][places] = rows

    def values(self) -> dict[str, np.ndarray]:
        """The successful members, in order."""
        return {name: array[self._good] for name, array in self._arrays.items()}


def _reduced_quantity(arrays: dict[str, np.ndarray]) -> str:
    """Name of the array to reduce if there are no outputs: states at t_eval if available, otherwise final states."""
    if any(name.startswith("output:") for name in arrays):
        return ""
    return "y" if "y" in arrays else "final"


def _longer(array: np.ndarray, size: int, fill: Any) -> np.ndarray:
    longer = np.full((size, *array.shape[1:]), fill, dtype=array.dtype)
    longer[: array.shape[0]] = array
    return longer
