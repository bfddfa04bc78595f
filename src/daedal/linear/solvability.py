"""Whether a time-varying system is solvable, which the pencils at each time do not say."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from daedal.linear.derivative_array import determine_rates
from daedal.linear.rank import RankDecision
from daedal.linear.words import Shown
from daedal.tabular import Tabular, plural

if TYPE_CHECKING:
    from daedal.linear.time_varying import TimeVarying


@dataclass(frozen=True, repr=False)
class Solvability(Shown):
    """What derivative arrays and pencils say at some times.

    Attributes
    ----------
    times : numpy.ndarray
    local_indices : tuple of (int or None)
        The index of the pencil at each time; None where it is singular.
    ranks : tuple of int
        The rank of the array of n + 1 at each time.
    one_full : tuple of bool
        Whether that array determines x'.
    full_row_rank : tuple of bool
        Whether the arrays of 1 to n + 1 contain no equation without unknowns.
    index : int or None
        The index over all times.
    decisions : tuple of RankDecision
        Those that are not clear.
    """

    times: np.ndarray
    local_indices: tuple[int | None, ...]
    ranks: tuple[int, ...]
    one_full: tuple[bool, ...]
    full_row_rank: tuple[bool, ...]
    index: int | None
    decisions: tuple[RankDecision, ...]

    @property
    def regular(self) -> bool:
        """Whether the pencil is regular at all times: whether implicit methods can make steps at all."""
        return all(index is not None for index in self.local_indices)

    @property
    def solvable(self) -> bool:
        """Whether all conditions hold: the array is 1-full with a constant rank, with x it has full row rank."""
        return all(self.one_full) and all(self.full_row_rank) and len(set(self.ranks)) == 1

    @property
    def clear(self) -> bool:
        """Whether the numbers decide all ranks."""
        return not self.decisions

    def title(self) -> str:
        verdict = f"solvable, index {self.index}" if self.solvable else "not solvable"
        singular = sum(index is None for index in self.local_indices)
        pencil = (
            "regular" if singular == 0 else f"singular at {'all' if singular == self.times.size else singular} of them"
        )
        doubt = "" if self.clear else f"; unclear: {self.decisions[0]}"
        return f"At {plural(self.times.size, 'time')}: {verdict}; the pencil is {pencil}{doubt}"

    def tables(self) -> list[Tabular]:
        rows = [
            (f"{t:g}", "singular" if local is None else local, rank, "yes" if full else "no", "yes" if rows else "no")
            for t, local, rank, full, rows in zip(
                self.times, self.local_indices, self.ranks, self.one_full, self.full_row_rank
            )
        ]
        return [Tabular("rrrrr", rows, ("t", "local index", "rank of array", "determines x'", "no equation too many"))]

    def __repr__(self) -> str:
        return f"<{self.title()}>"


def solvability(system: TimeVarying, times: np.ndarray) -> Solvability:
    """The conditions of theorems 2.4.6 and 2.4.7, at the given times."""
    largest = system.n + 1
    pencils = [system.pencil(t) for t in times]
    arrays = [[system.array(t, j) for j in range(1, largest + 1)] for t in times]
    last = [row[-1] for row in arrays]
    unclear = [d for pencil in pencils for d in pencil.decisions if not d.clear]
    unclear += [d for array in last for d in array.decisions if not d.clear]
    return Solvability(
        times,
        tuple(pencil.index for pencil in pencils),
        tuple(array.rank.rank for array in last),
        tuple(array.one_full for array in last),
        tuple(all(array.full_row_rank for array in row) for row in arrays),
        next((j for j in range(largest) if determine_rates([row[j] for row in arrays])), None),
        tuple(unclear),
    )
