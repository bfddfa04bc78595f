"""What was stored of a run through modes: output points, stretches with dense output, quantities by name."""

from collections.abc import Iterator
from functools import cached_property, partial
from typing import Any

import numpy as np

from daedal.common.tabular import FunctionTable
from daedal.errors import InvalidProblemError
from daedal.events.table import EventTable
from daedal.hybrid.derived import Derived
from daedal.hybrid.segments import (
    HybridSegment,
    ModeOutput,
    add_drift,
    first_column,
    joined_rows,
    joined_states,
    padded,
    stacked,
)
from daedal.problems.checks import check_real
from daedal.solution.quantities import NamedValues, Quantity, row_named
from daedal.solution.solution import Statistics
from daedal.solution.tabulated import Tabulated


class HybridOutput(Tabulated):
    """Output points and stretches of a run through modes; see :class:`HybridSolution`."""

    def __init__(
        self,
        *,
        modes: tuple[str, ...],
        labels: list[tuple[str, ...]],
        n_q: list[int | None],
        chunks: list[ModeOutput],
        segments: list[HybridSegment],
        events: EventTable,
        n_events: int,
        success: bool,
        status: str,
        message: str,
        stats: Statistics,
        drift: dict[str, float],
        functions: dict[str, FunctionTable],
        contacts: Any = None,
        hidden: dict[str, tuple[str, ...]] | None = None,
        derived: Derived | None = None,
    ):
        self.modes, self.segments, self.events, self.n_events = modes, segments, events, n_events
        self.success, self.status, self.message = success, status, message
        self.stats, self._drift, self.functions = stats, drift, functions
        self._labels, self._n_q, self._chunks, self._contacts = labels, n_q, chunks, contacts
        self._hidden, self._derived = hidden or {}, derived

    @cached_property
    def drift(self) -> dict[str, float]:
        """The largest residuals of the constraints over all segments."""
        found = dict(self._drift)
        for segment in self.segments:
            add_drift(found, segment.solution)
        return found

    # --- the output points ------------------------------------------------------------------------------------------

    @cached_property
    def t(self) -> np.ndarray:
        """The output times."""
        return np.concatenate([chunk.t for chunk in self._chunks]) if self._chunks else np.empty(0)

    @cached_property
    def mode_index(self) -> np.ndarray:
        """The number of the mode at each output time."""
        counts = [chunk.t.size for chunk in self._chunks]
        return np.repeat(np.array([chunk.mode for chunk in self._chunks], dtype=np.int64), counts)

    @property
    def mode(self) -> np.ndarray:
        """The mode at each output time."""
        return np.array(self.modes, dtype=object)[self.mode_index]

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names of the variables of all modes that the run went through."""
        used = dict.fromkeys([chunk.mode for chunk in self._chunks] + [self.modes.index(s.mode) for s in self.segments])
        return tuple(dict.fromkeys(label for mode in used for label in self._labels[mode]))

    @cached_property
    def y(self) -> np.ndarray:
        """The variables of `names`; nan where the mode does not have one."""
        result = np.full((len(self.names), self.t.size), np.nan)
        begin = 0
        for chunk in self._chunks:
            rows = self._rows(chunk.mode)
            result[rows, begin : begin + chunk.t.size] = chunk.y[: len(rows)]
            begin += chunk.t.size
        return result

    def _rows(self, mode: int) -> list[int]:
        places = {name: i for i, name in enumerate(self.names)}
        return [places[label] for label in self._labels[mode] if label in places]

    # --- by name ----------------------------------------------------------------------------------------------------

    def quantities(self, t: Any = None) -> list[Quantity]:
        """The variables, and what the modes have beside them; nan where a mode does not have something."""
        known = set(self.names)
        if t is None:
            count, shown = self.t.size, [Quantity("y", "variable", self.names, lambda: self.y)]
        else:
            times = np.atleast_1d(self._times_of(t))
            count, shown = times.size, [Quantity("y", "variable", self.names, lambda: self.rows_at(times))]
        found: dict[str, dict[str, list[Any]]] = {}
        dimensions: dict[str, tuple[str, bool]] = {}
        for mode, quantities, taken, here in self._quantities_of_segments(t):
            hidden = {*known, *self._hidden.get(mode, ())}
            for quantity in quantities:
                dimensions.setdefault(quantity.kind, (quantity.dimension, quantity.in_tables))
                for i, name in enumerate(quantity.names):
                    if name not in hidden:
                        places = found.setdefault(quantity.kind, {})
                        places.setdefault(name, []).append((quantity, i, taken, here))
        for kind, rows in found.items():
            dimension, in_tables = dimensions[kind]
            joined = partial(joined_rows, list(rows.values()), count)
            shown.append(Quantity(kind, f"{kind} of modes" if dimension else "", tuple(rows), joined, (), in_tables))
        return shown + ([] if self._derived is None else self._derived.quantities(self, t))

    def _quantities_of_segments(self, t: Any) -> list[tuple[str, list[Quantity], slice, Any]]:
        """The mode of each stretch, what its solution has, and which points of it belong where."""
        if t is None:
            pairs = list(zip(self.segments, self._chunks)) if self.segments else []
            ends = np.cumsum([chunk.t.size for _, chunk in pairs])
            return [
                (segment.mode, segment.solution.quantities(), slice(chunk.t.size), slice(end - chunk.t.size, end))
                for (segment, chunk), end in zip(pairs, ends)
            ]
        times, found = np.atleast_1d(self._times_of(t)), []
        numbers = self._segment_numbers(times)
        for k in np.unique(numbers):
            segment, here = self.segments[k], np.flatnonzero(numbers == k)
            if segment.solution.dense is not None:
                quantities = segment.solution.quantities(segment.clipped(times[here]))
                found.append((segment.mode, quantities, slice(None), here))
        return found

    def shown_multipliers(self, segment: HybridSegment) -> list[int]:
        """The multipliers of a stretch that are not the model's own."""
        hidden = self._hidden.get(segment.mode, ())
        own: Any = segment.solution
        return [i for i, name in enumerate(own.multiplier_names) if name not in hidden]

    @property
    def derived_names(self) -> tuple[str, ...]:
        """Names of what the model computes beside the variables of its modes."""
        return () if self._derived is None else self._derived.names

    def each_segment(self, t: Any = None) -> Iterator[tuple[HybridSegment, Any, np.ndarray, Any, Any, Any]]:
        """(segment, places, times, q, v, lam) at the output points or at given times, stretch by stretch."""
        if t is None:
            ends = np.cumsum(self.points_of_segments)
            for segment, count, end in zip(self.segments, self.points_of_segments, ends, strict=True):
                own = segment.solution
                parts = (getattr(own, name)[:, :count] for name in ("q", "v", "lam"))
                yield segment, slice(end - count, end), own.t[:count], *parts
            return
        flat = np.atleast_1d(self._times_of(t))
        numbers = self._segment_numbers(flat)
        for k in np.unique(numbers):
            here = np.flatnonzero(numbers == k)
            state = self.segments[k].state(flat[here])
            yield self.segments[k], here, flat[here], state.q, state.v, state.lam

    def _further_columns(self, t: Any) -> dict[str, Any]:
        return {"mode": self.mode if t is None else self.mode_at(np.atleast_1d(np.asarray(t, dtype=float)))}

    def _fired(self) -> list[list[Any]]:
        own = [event for event in self.events if event.kind == "event"]
        return [
            [event for event in own if event.name == name or event.name.startswith(f"{name}[")]
            for name in self.event_names
        ]

    # --- mechanical systems -----------------------------------------------------------------------------------------

    def _coordinates(self) -> int:
        """The number of coordinates of all modes of the run."""
        found = {self._n_q[chunk.mode] for chunk in self._chunks}
        n_q = found.pop() if len(found) == 1 else None
        if n_q is None:
            raise AttributeError(
                "q, v, a and lam belong to runs all of whose modes are mechanical systems with as many coordinates; "
                "take sol['name'], or the solutions in sol.segments"
            )
        return n_q

    def _joined(self, rows: slice) -> np.ndarray:
        return np.concatenate([chunk.y[rows] for chunk in self._chunks], axis=1)

    @property
    def q(self) -> np.ndarray:
        """Positions."""
        return self._joined(slice(0, self._coordinates()))

    @property
    def v(self) -> np.ndarray:
        """Velocities."""
        n_q = self._coordinates()
        return self._joined(slice(n_q, 2 * n_q))

    @property
    def a(self) -> np.ndarray:
        """Accelerations."""
        return self._of_segments("a")

    @property
    def lam(self) -> np.ndarray:
        """Multipliers; nan where the mode has fewer than others."""
        return self._of_segments("lam")

    @property
    def r(self) -> np.ndarray:
        """First-order states; nan where the mode has fewer than others."""
        return self._of_segments("r")

    def _of_segments(self, name: str) -> np.ndarray:
        self._coordinates()
        if not self.segments:
            raise InvalidProblemError(f"{name} needs the solutions of the segments; call solve with dense_output=True")
        pairs = zip(self.segments, self._chunks, strict=True)
        return padded([getattr(segment.solution, name)[:, : chunk.t.size] for segment, chunk in pairs])

    # --- dense output -----------------------------------------------------------------------------------------------

    def _segment_numbers(self, times: np.ndarray) -> np.ndarray:
        """The segment at each time; at a transition the one that begins there."""
        begins = np.array([segment.t0 for segment in self.segments])
        forward = self.segments[-1].t1 >= self.segments[0].t0
        found = np.searchsorted(begins if forward else -begins, times if forward else -times, side="right") - 1
        return np.maximum(found, 0)

    def mode_at(self, t):
        """The mode at `t`, a name or an array of names; at a transition the one that begins there."""
        times = self._times_of(t)
        names = np.array([segment.mode for segment in self.segments], dtype=object)
        found = names[self._segment_numbers(np.atleast_1d(times))]
        return found[0] if times.ndim == 0 else found

    def _times_of(self, t) -> np.ndarray:
        if not self.segments:
            raise InvalidProblemError("no dense output was kept; call solve with dense_output=True")
        times = check_real(t, "t", "be a number or a vector")
        if times.ndim > 1:
            raise InvalidProblemError(f"t must be a number or a vector, got shape {times.shape}")
        low, high = sorted((self.segments[0].t0, self.segments[-1].t1))
        slack = 1e-9 * (high - low) + 1e-14 * max(abs(low), abs(high))
        if times.size and not (times.min() >= low - slack and times.max() <= high + slack):
            raise InvalidProblemError(f"t must lie in the integrated interval [{low}, {high}]")
        return times

    def __call__(self, t):
        """Dense output: the solution at `t`, at a transition after it.

        For a number that of the mode at `t`: a vector, or the :class:`~daedal.solution.mechanical_solution.State` of a
        mechanical system. For an array the same for all times if the modes are mechanical systems with as many
        coordinates, otherwise rows like those of `y`, nan where a mode does not have a variable.
        """
        times = self._times_of(t)
        flat = np.atleast_1d(times)
        numbers = self._segment_numbers(flat)
        if times.ndim == 0:
            return first_column(self.segments[numbers[0]].state(flat), float(times))
        parts = [
            (numbers == k, self.segments[k], self.segments[k].state(flat[numbers == k])) for k in np.unique(numbers)
        ]
        used = {self._n_q[self.modes.index(segment.mode)] for _, segment, _ in parts}
        if len(used) == 1 and None not in used:
            return joined_states(flat, parts)
        return NamedValues.of(self._rows_of(flat, parts), lambda name: row_named(self.quantities(flat), name))

    def rows_at(self, times: np.ndarray) -> np.ndarray:
        """Rows like those of `y` at given times."""
        numbers = self._segment_numbers(times)
        found = [(numbers == k, self.segments[k]) for k in np.unique(numbers)]
        return self._rows_of(times, [(here, segment, segment.state(times[here])) for here, segment in found])

    def _rows_of(self, times: np.ndarray, parts) -> np.ndarray:
        result = np.full((len(self.names), times.size), np.nan)
        for here, segment, state in parts:
            rows = self._rows(self.modes.index(segment.mode))
            result[np.ix_(np.array(rows, dtype=int), np.flatnonzero(here))] = stacked(state)[: len(rows)]
        return result

    @property
    def points_of_segments(self) -> list[int]:
        """How many output points each segment has."""
        return [chunk.t.size for chunk in self._chunks]

    def segment_numbers(self, t) -> np.ndarray:
        """The number of the segment at each time; at a transition that of the one which begins there."""
        return self._segment_numbers(np.atleast_1d(self._times(t)))

    def rows_of(self, mode: str) -> list[int]:
        """The rows of `y` that a mode has."""
        return self._rows(self.modes.index(mode))
