"""Parts of a run through modes: arcs, events, and quantities computed from states."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from functools import partial
from typing import Any, ClassVar

import numpy as np

from daedal.errors import InvalidProblemError
from daedal.solution.mechanical_solution import PARTS, MechanicalState
from daedal.solution.quantities import Quantity
from daedal.solution.solution import Solution


@dataclass(frozen=True)
class HybridEvent:
    """An event of a run through modes.

    Attributes
    ----------
    t : float
        Time of the event.
    name : str
        Name of the transition, or of the event.
    kind : str
        ``"transition"``; ``"immediate"``, a transition at the start of its mode; ``"zeno"``, a transition at a point of
        accumulation; ``"not taken"``, a transition that fired together with another one of higher priority;
        ``"event"``, an event given to :func:`daedal.solve`; ``"switch"``, ``"slides"`` and ``"leaves"``, a hidden
        switch of the mode's equations.
    source, target : str or None
        The mode that ended and the next one; None if the run ended, or nothing changed.
    y, y_after : numpy.ndarray
        The stacked state before and after: (q, v, r) of a mechanical system, (y, z) of a semi-explicit problem.
    direction : int
        Direction of the guard's sign change.
    sensitivity : dict or None
        Derivatives of the time of a transition {parameter: dt/dp}, in a run with sensitivities.
    located : str
        How the event was found: ``"enclosed"``, so that no change of sign is missed; ``"sampled"`` at a few points of
        every step; ``"known"`` beforehand, at the start of a mode, at a break point or at a point of accumulation.

    Examples
    --------
    >>> import daedal
    >>> ball = daedal.MechanicalSystem(1.0, lambda t, q, v: [-9.81], n_q=1)
    >>> floor = daedal.hybrid.Contact(lambda t, q: q[0], restitution=0.5, name="floor")
    >>> event = daedal.solve(daedal.hybrid.UnilateralProblem(ball, floor), (0.0, 0.6), ([1.0], [0.0])).events[0]
    >>> print(f"{event.t:.4f}", event.name, event.source, event.target, event.y[1].round(3), event.y_after[1].round(3))
    0.4515 floor closes free free -4.429 2.215
    """

    t: float
    name: str
    kind: str
    source: str
    target: str | None
    y: np.ndarray
    y_after: np.ndarray | None = None
    direction: int = 0
    sensitivity: Any = None
    located: str = "sampled"
    columns: ClassVar[tuple[str, ...]] = ("t", "name", "kind", "source", "target", "located")  # columns of a table


# --- arcs of a run through modes, and joined arrays of several arcs ---------------------------------------------------


@dataclass(frozen=True)
class HybridSegment:
    """An arc of the run in one mode, from `t0` to `t1`, its solution, and the names of its variables."""

    mode: str
    t0: float
    t1: float
    solution: Solution = field(repr=False)
    names: tuple[str, ...] = field(repr=False)

    def state(self, times: np.ndarray) -> Any:
        """Dense output of this arc: rows of values, or the state of a mechanical system."""
        if self.solution.dense is None and self.t0 == self.t1 and self.solution.t.size:
            return self.solution.y[:, :1].repeat(times.size, axis=1)
        return self.solution(self.clipped(times))

    def clipped(self, times: np.ndarray) -> np.ndarray:
        """Times, limited to this arc."""
        return np.clip(times, min(self.t0, self.t1), max(self.t0, self.t1))

    def values(self, times: np.ndarray) -> np.ndarray:
        """The variables of `names` at `times`, shape (n, len(times))."""
        return stacked(self.state(times))[: len(self.names)]


def stacked(state: Any) -> np.ndarray:
    """The variables of a state in one array."""
    if isinstance(state, np.ndarray):
        return np.asarray(state)
    return state.y if isinstance(state, MechanicalState) else np.concatenate([state.x, state.xp])


def add_drift(found: dict[str, float], solution: Solution):
    """Update the largest constraint residuals `found` with those of another solution."""
    for name, value in (solution.drift or {}).items():
        found[name] = max(found.get(name, 0.0), value)


@dataclass(frozen=True)
class ModeOutput:
    """Output points of one mode: times, and the stacked states in columns."""

    mode: int
    t: np.ndarray
    y: np.ndarray


def first_column(state: Any, t: float):
    """The single column of a state."""
    if isinstance(state, np.ndarray):
        return state[:, 0].copy()
    parts = {f.name: getattr(state, f.name) for f in fields(state) if f.name != "t"}
    return type(state)(t=t, **{k: v[:, 0].copy() if isinstance(v, np.ndarray) else v for k, v in parts.items()})


def joined_states(times: np.ndarray, parts) -> MechanicalState:
    """States of several segments combined; multipliers and variables that a mode lacks are NaN."""
    columns = []
    for name in PARTS:
        height = max(getattr(values, name).shape[0] for _, _, values in parts)
        joined = np.full((height, times.size), np.nan)
        for here, _, values in parts:
            rows = getattr(values, name)
            joined[: rows.shape[0], here] = rows
        columns.append(joined)
    longest = max((values for _, _, values in parts), key=lambda values: values.lam.shape[0])
    return MechanicalState(times, *columns, names=longest.names)


def padded(parts: list[np.ndarray]) -> np.ndarray:
    """Arrays side by side, padded with NaN rows."""
    height = max((part.shape[0] for part in parts), default=0)
    result = np.full((height, sum(part.shape[1] for part in parts)), np.nan)
    begin = 0
    for part in parts:
        result[: part.shape[0], begin : begin + part.shape[1]] = part
        begin += part.shape[1]
    return result


def joined_rows(rows: list[list[Any]], count: int) -> np.ndarray:
    """Rows of several segments joined, NaN if missing."""
    result = np.full((len(rows), count), np.nan)
    for row, parts in zip(result, rows, strict=True):
        for quantity, i, taken, here in parts:
            row[here] = np.asarray(quantity.rows())[i, taken]
    return result


# --- quantities computed from the states of modes, such as friction forces --------------------------------------------


@dataclass(frozen=True)
class Derived:
    """Additional quantities available as ``sol[name]`` in all modes.

    Attributes
    ----------
    names : tuple of str
    function : callable or None
        ``function(mode, t, q, v, lam)`` returns their values; None in a stored solution.
    values : numpy.ndarray or None
        Their values at the output points, in a stored solution.
    """

    names: tuple[str, ...]
    function: Callable[..., Sequence[float]] | None = None
    values: np.ndarray | None = None

    def quantities(self, solution: Any, t: Any = None) -> list[Quantity]:
        """The quantities at the output points or at given times; empty if too little was stored to compute them."""
        if self.values is None and (self.function is None or not solution.segments):
            return []
        known = t is None or self.function is not None
        return [Quantity("derived", "quantity", self.names, partial(self._rows, solution, t), (), known)]

    def _rows(self, solution: Any, t: Any) -> np.ndarray:
        if t is None and self.values is not None:
            return self.values
        if self.function is None:
            raise InvalidProblemError(
                f"{', '.join(self.names)}: the functions of the model were not stored, so they are known only at the "
                f"output points"
            )
        count = solution.t.size if t is None else np.size(t)
        rows = np.full((len(self.names), count), np.nan)
        for segment, here, times, q, v, lam in solution.each_segment(t):
            found = [self.function(segment.mode, *point) for point in zip(times.tolist(), q.T, v.T, lam.T)]
            rows[:, here] = np.array(found, dtype=float).reshape(len(found), len(self.names)).T
        return rows

    def stored(self, solution: Any) -> Derived:
        """The quantities without the function."""
        if self.function is None:
            return self
        return Derived(self.names, None, self._rows(solution, None) if solution.segments else None)
