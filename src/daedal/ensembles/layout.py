"""How the state of a run stands in a row: the names of its entries, and where positions and velocities are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from daedal.hybrid.problem import HybridProblem
from daedal.problems import MechanicalSystem


@dataclass(frozen=True)
class StateLayout:
    """Names of the entries of a state.

    Attributes
    ----------
    names : tuple of str
    n_q : int or None
        Of a mechanism: q stands first, then v.
    """

    names: tuple[str, ...]
    n_q: int | None = None

    @property
    def n(self) -> int:
        """Length of a state."""
        return len(self.names)

    def without(self, hidden: tuple[str, ...]) -> StateLayout:
        """The same without names that no output shows."""
        return StateLayout(tuple(name for name in self.names if name not in hidden), self.n_q)

    def parts(self, values: np.ndarray) -> dict[str, np.ndarray]:
        """Views of states with the axis of variables second: y, and q and v of a mechanism."""
        found = {"y": values}
        if self.n_q is not None:
            found |= {"q": values[:, : self.n_q], "v": values[:, self.n_q : 2 * self.n_q]}
        return found

    def rows(self, solution: Any) -> np.ndarray:
        """The values of a solution, shape (n, nt), in this order; nan for variables that a run did not have."""
        if tuple(solution.names) == self.names:
            return solution.y
        result = np.full((self.n, solution.t.size), np.nan)
        places = {name: i for i, name in enumerate(self.names)}
        for row, name in zip(solution.y, solution.names):
            result[places[name]] = row
        return result

    def state(self, solution: Any, record: Any) -> np.ndarray:
        """The state with which an event ended a run."""
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
    """The layout, where it is known before the first run."""
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
    """The layout that a solution shows."""
    known = layout_of(problem)
    return StateLayout(tuple(solution.names)) if known is None else known
