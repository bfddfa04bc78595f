"""What comes back of a chunk: arrays with a row for each member, and how each run ended."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from daedal.ensembles.layout import StateLayout

FINISHED, EVENT, FAILED, TIMED_OUT, NOT_RUN = 0, 1, 2, 3, 4
STATUS = ("finished", "event", "failed", "timed out", "not run")
"""How a run ended, by number."""

EVENT_FIELDS = ("member", "t", "name", "direction", "terminal")


@dataclass
class Part:
    """The results of some members.

    Attributes
    ----------
    number, first, count : int
        Of the chunk, its first member, how many it has.
    status : numpy.ndarray of int8, shape (count,)
        How each run ended, see `STATUS`.
    t_final : numpy.ndarray, shape (count,)
        Where it ended.
    arrays : dict of numpy.ndarray
        ``"final"`` with shape (count, n), nan for runs that failed; ``"y"`` with shape (count, n, nt) where states are
        kept; outputs by ``"output:NAME"``. What no member has is not there.
    messages : dict of int to str
        By member, of those that did not come through.
    events : list of tuple
        (member, t, name, direction, terminal), in order.
    layout : StateLayout, optional
        Of the states.
    fell_back : int
        How many members a batch kernel handed back.
    """

    number: int
    first: int
    count: int
    status: np.ndarray
    t_final: np.ndarray
    arrays: dict[str, np.ndarray] = field(default_factory=dict)
    messages: dict[int, str] = field(default_factory=dict)
    events: list[tuple[Any, ...]] = field(default_factory=list)
    layout: StateLayout | None = None
    fell_back: int = 0

    @classmethod
    def empty(cls, chunk: Any, status: int = NOT_RUN) -> Part:
        """A part without results."""
        count = chunk.count
        return cls(chunk.number, chunk.first, count, np.full(count, status, np.int8), np.full(count, np.nan))

    def write(self, name: str, row: int, values: Any) -> None:
        """Store the values of one member; what others do not have is nan."""
        values = np.asarray(values, dtype=float)
        array = self.arrays.get(name)
        if array is None:
            array = self.arrays[name] = np.full((self.count, *values.shape), np.nan)
        if array.shape[1:] != values.shape:
            what = name.removeprefix("output:")
            raise ValueError(f"the output '{what}' has shape {values.shape}, that of other members {array.shape[1:]}")
        array[row] = values

    def fail(self, row: int, message: str, status: int = FAILED) -> None:
        """Note that a member did not come through."""
        self.status[row] = status
        self.messages[self.first + row] = message

    def take_from(self, other: Part) -> None:
        """Put the results of single members of this part in their places."""
        begin = other.first - self.first
        rows = slice(begin, begin + other.count)
        self.status[rows], self.t_final[rows] = other.status, other.t_final
        for name, values in other.arrays.items():
            for k in range(other.count):
                if not np.all(np.isnan(values[k])) or name in self.arrays:
                    self.write(name, begin + k, values[k])
        self.messages |= other.messages
        self.events += other.events
        self.layout = self.layout or other.layout
