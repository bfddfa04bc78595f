"""Results of a chunk: arrays with a row for each member, and how each run ended."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from daedal.hybrid.hybrid_problem import HybridProblem
from daedal.problems import MechanicalSystem


@dataclass(frozen=True)
class StateLayout:
    """Names of the entries of a state."""

    names: tuple[str, ...]
    n_q: int | None = None  # number of coordinates of a mechanism: y holds q, then v

    @property
    def n(self) -> int:
        """Length of a state."""
        return len(self.names)

    def without(self, hidden: tuple[str, ...]) -> StateLayout:
        """The layout without hidden names."""
        return StateLayout(tuple(name for name in self.names if name not in hidden), self.n_q)

    def parts(self, values: np.ndarray) -> dict[str, np.ndarray]:
        """Views of states with the axis of variables second: y, and q and v of a mechanism."""
        found = {"y": values}
        if self.n_q is not None:
            found |= {"q": values[:, : self.n_q], "v": values[:, self.n_q : 2 * self.n_q]}
        return found

    def rows(self, solution: Any) -> np.ndarray:
        """The values of a solution in this order, shape (n, nt); NaN for variables that a run did not have."""
        if tuple(solution.names) == self.names:
            return solution.y
        result = np.full((self.n, solution.t.size), np.nan)
        places = {name: i for i, name in enumerate(self.names)}
        for row, name in zip(solution.y, solution.names):
            result[places[name]] = row
        return result

    def state(self, solution: Any, record: Any) -> np.ndarray:
        """The state at which an event ended a run."""
        if not hasattr(record, "source"):
            return np.asarray(record.y)[: self.n]
        names, values = solution.names, np.asarray(record.y if record.y_after is None else record.y_after)
        if values.size != len(names):
            names = _mode_names(solution, record)
        result = np.full(self.n, np.nan)
        for name, value in zip(names, values):
            if name in self.names:
                result[self.names.index(name)] = value
        return result


def _mode_names(solution: Any, record: Any) -> tuple[str, ...]:
    last = solution.segments[-1].solution if solution.segments else None
    return () if last is None else tuple(last.names)


def layout_of(problem: Any) -> StateLayout | None:
    """The layout, if known before the first run."""
    if isinstance(problem, HybridProblem):
        inner = {name: layout_of(mode.problem) for name, mode in problem.modes.items()}
        if any(part is None for part in inner.values()):
            return None
        known = [part.without(problem.hidden_names(name)) for name, part in inner.items() if part is not None]
        coordinates = {part.n_q for part in known}
        names = tuple(dict.fromkeys(name for part in known for name in part.names))
        same = len(coordinates) == 1 and all(names[: part.n] == part.names for part in known)
        return StateLayout(names, coordinates.pop() if same else None)
    if isinstance(problem, MechanicalSystem):
        return StateLayout(tuple(problem.label(i) for i in range(problem.n)), problem.n_q)
    return None


def layout_of_solution(problem: Any, solution: Any) -> StateLayout:
    """The layout of a solution."""
    known = layout_of(problem)
    return StateLayout(tuple(solution.names), _coordinates(solution)) if known is None else known


def _coordinates(solution: Any) -> int | None:
    """The number of positions in a state, if all of the solution belongs to a mechanism, otherwise None."""
    parts = [segment.solution for segment in getattr(solution, "segments", ())] or [solution]
    found = {getattr(part, "n_q", None) for part in parts if part is not None}
    same = all(tuple(solution.names)[: len(part.names)] == tuple(part.names) for part in parts if part is not None)
    return found.pop() if len(found) == 1 and same else None


# --- results of a chunk -----------------------------------------------------------------------------------------------

FINISHED, EVENT, FAILED, TIMED_OUT, NOT_RUN = 0, 1, 2, 3, 4
STATUS = ("finished", "event", "failed", "timed out", "not run")
"""Codes of how a run ended."""

EVENT_FIELDS = ("member", "t", "name", "direction", "terminal")


@dataclass
class Part:
    """The results of some members.

    Attributes
    ----------
    number, first, count : int
        Number of the chunk, its first member, its number of members.
    status : numpy.ndarray of int8, shape (count,)
        How each run ended, see `STATUS`.
    t_final : numpy.ndarray, shape (count,)
        The final times.
    arrays : dict of numpy.ndarray
        ``"final"`` with shape (count, n), NaN for failed runs; ``"y"`` with shape (count, n, nt) if states are stored;
        outputs by ``"output:NAME"``. Quantities without any values are omitted.
    messages : dict of int to str
        Messages of unsuccessful members.
    events : list of tuple
        (member, t, name, direction, terminal), in order.
    layout : StateLayout, optional
        Layout of the states.
    fell_back : int
        Number of members that a batch kernel left to the driver.
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
        """Store the values of one member; values missing for other members are NaN."""
        values = np.asarray(values, dtype=float)
        array = self.arrays.get(name)
        if array is None:
            array = self.arrays[name] = np.full((self.count, *values.shape), np.nan)
        if array.shape[1:] != values.shape:
            what = name.removeprefix("output:")
            raise ValueError(
                f"the output '{what}' has shape {values.shape}, but that of other members {array.shape[1:]}"
            )
        array[row] = values

    def fail(self, row: int, message: str, status: int = FAILED) -> None:
        """Record that a member failed."""
        self.status[row] = status
        self.messages[self.first + row] = message

    def take_from(self, other: Part) -> None:
        """Insert the results of other runs of members of this part."""
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
