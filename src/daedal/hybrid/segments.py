"""The stretches of a run through modes, and arrays of several of them side by side."""

from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np

from daedal.solution.mechanical_state import PARTS, State
from daedal.solution.solution import Solution


@dataclass(frozen=True)
class HybridSegment:
    """A stretch of the run in one mode, from `t0` to `t1`, its solution, and the names of its variables."""

    mode: str
    t0: float
    t1: float
    solution: Solution = field(repr=False)
    names: tuple[str, ...] = field(repr=False)

    def state(self, times: np.ndarray) -> Any:
        """Dense output of this stretch: rows of values, or the state of a mechanical system."""
        if self.solution.dense is None and self.t0 == self.t1 and self.solution.t.size:
            return self.solution.y[:, :1].repeat(times.size, axis=1)
        return self.solution(self.clipped(times))

    def clipped(self, times: np.ndarray) -> np.ndarray:
        """Times within this stretch."""
        return np.clip(times, min(self.t0, self.t1), max(self.t0, self.t1))

    def values(self, times: np.ndarray) -> np.ndarray:
        """The variables of `names` at `times`, shape (n, len(times))."""
        return stacked(self.state(times))[: len(self.names)]


def stacked(state: Any) -> np.ndarray:
    """The variables of a state in one array."""
    if isinstance(state, np.ndarray):
        return np.asarray(state)
    return state.y if isinstance(state, State) else np.concatenate([state.x, state.xp])


def add_drift(found: dict[str, float], solution: Solution):
    """Let `found` hold the largest residuals of the constraints, those of one more solution among them."""
    for name, value in (solution.drift or {}).items():
        found[name] = max(found.get(name, 0.0), value)


@dataclass(frozen=True)
class ModeOutput:
    """Output points of one mode: times, and the stacked states in columns."""

    mode: int
    t: np.ndarray
    y: np.ndarray


def first_column(state: Any, t: float):
    """The only column of a state."""
    if isinstance(state, np.ndarray):
        return state[:, 0].copy()
    parts = {f.name: getattr(state, f.name) for f in fields(state) if f.name != "t"}
    return type(state)(t=t, **{k: v[:, 0].copy() if isinstance(v, np.ndarray) else v for k, v in parts.items()})


def joined_states(times: np.ndarray, parts) -> State:
    """States of several segments in one; multipliers and variables that a mode does not have are nan."""
    columns = []
    for name in PARTS:
        height = max(getattr(values, name).shape[0] for _, _, values in parts)
        joined = np.full((height, times.size), np.nan)
        for here, _, values in parts:
            rows = getattr(values, name)
            joined[: rows.shape[0], here] = rows
        columns.append(joined)
    longest = max((values for _, _, values in parts), key=lambda values: values.lam.shape[0])
    return State(times, *columns, names=longest.names)


def padded(parts: list[np.ndarray]) -> np.ndarray:
    """Arrays side by side, nan below those with fewer rows."""
    height = max((part.shape[0] for part in parts), default=0)
    result = np.full((height, sum(part.shape[1] for part in parts)), np.nan)
    begin = 0
    for part in parts:
        result[: part.shape[0], begin : begin + part.shape[1]] = part
        begin += part.shape[1]
    return result


def joined_rows(rows: list[list[Any]], count: int) -> np.ndarray:
    """Rows of several segments as one each, nan where there is none."""
    result = np.full((len(rows), count), np.nan)
    for row, parts in zip(result, rows, strict=True):
        for quantity, i, taken, here in parts:
            row[here] = np.asarray(quantity.rows())[i, taken]
    return result
