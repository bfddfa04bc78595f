"""The solution of a run through modes, its output by mode, and the storage used during a run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from daedal.common.tabular import FunctionTable, plural
from daedal.errors import InvalidProblemError
from daedal.events.table import EventTable
from daedal.hybrid.hybrid_problem import HybridProblem
from daedal.hybrid.mode_state import StateForm
from daedal.hybrid.segments import (
    Derived,
    HybridEvent,
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
from daedal.solution.machine_record import PartsOfMachine, RecordedMachine, joined
from daedal.solution.quantities import NamedValues, Quantity, Tabulated, check_within, no_dense_output, row_named
from daedal.solution.solution import History, Solution, Statistics
from daedal.solution.status import Status

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import ArrayLike


class HybridOutput(Tabulated):
    """Output points and arcs of a run through modes; see :class:`HybridSolution`."""

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
        self.success, self.status, self.message = success, Status(status), message
        self.stats, self._drift, self.functions = stats, drift, functions
        self._labels, self._n_q, self._chunks, self._contacts = labels, n_q, chunks, contacts
        self._hidden, self._derived = hidden or {}, derived
        self.sampled: Any = None  # the :class:`Recording` of a controller in discrete time

    @cached_property
    def drift(self) -> dict[str, float]:
        """Largest residuals of the constraints over all segments."""
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
        """Index of the mode at each output time."""
        counts = [chunk.t.size for chunk in self._chunks]
        return np.repeat(np.array([chunk.mode for chunk in self._chunks], dtype=np.int64), counts)

    @property
    def mode(self) -> np.ndarray:
        """The mode at each output time."""
        return np.array(self.modes, dtype=object)[self.mode_index]

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the variables of all modes visited."""
        used = dict.fromkeys([chunk.mode for chunk in self._chunks] + [self.modes.index(s.mode) for s in self.segments])
        return tuple(dict.fromkeys(label for mode in used for label in self._labels[mode]))

    @cached_property
    def y(self) -> np.ndarray:
        """The variables in `names`; NaN if the mode does not have such a variable."""
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
        """The variables, and additional quantities of the modes; NaN if a mode does not have them."""
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
        """The mode of each arc, the quantities of its solution, and the positions of its points."""
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
        """The multipliers of an arc, without those internal to the model."""
        hidden = self._hidden.get(segment.mode, ())
        own: Any = segment.solution
        return [i for i, name in enumerate(own.multiplier_names) if name not in hidden]

    @property
    def derived_names(self) -> tuple[str, ...]:
        """Names of the additional quantities computed by the model."""
        return () if self._derived is None else self._derived.names

    def each_segment(self, t: Any = None) -> Iterator[tuple[HybridSegment, Any, np.ndarray, Any, Any, Any]]:
        """(segment, places, times, q, v, lam) at the output points or at given times, arc by arc."""
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
        """Common number of coordinates of all modes of the run."""
        found = {self._n_q[chunk.mode] for chunk in self._chunks}
        n_q = found.pop() if len(found) == 1 else None
        if n_q is None:
            raise AttributeError(
                "q, v, a and lam require that all modes of the run are mechanical systems with equally many "
                "coordinates; use sol['name'], or the solutions in sol.segments"
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
        """Multipliers; NaN if the mode has fewer than other modes."""
        return self._of_segments("lam")

    @property
    def r(self) -> np.ndarray:
        """First-order states; NaN if the mode has fewer than other modes."""
        return self._of_segments("r")

    def _of_segments(self, name: str) -> np.ndarray:
        self._coordinates()
        if not self.segments:
            raise InvalidProblemError(f"{name} needs the solutions of the segments; call solve with dense_output=True")
        pairs = zip(self.segments, self._chunks, strict=True)
        return padded([getattr(segment.solution, name)[:, : chunk.t.size] for segment, chunk in pairs])

    # --- dense output -----------------------------------------------------------------------------------------------

    def _segment_numbers(self, times: np.ndarray) -> np.ndarray:
        """The segment at each time; at a transition, the segment that begins there."""
        begins = np.array([segment.t0 for segment in self.segments])
        forward = self.segments[-1].t1 >= self.segments[0].t0
        found = np.searchsorted(begins if forward else -begins, times if forward else -times, side="right") - 1
        return np.maximum(found, 0)

    def segment_at(self, t: float) -> Any:
        """The segment at `t`; at a transition, the segment that begins there."""
        return self.segments[int(self._segment_numbers(np.atleast_1d(self._times_of(t)))[0])]

    def mode_at(self, t: ArrayLike) -> Any:
        """The mode at `t`, a name or an array of names; at a transition, the mode that begins there."""
        times = self._times_of(t)
        names = np.array([segment.mode for segment in self.segments], dtype=object)
        found = names[self._segment_numbers(np.atleast_1d(times))]
        return found[0] if times.ndim == 0 else found

    def _times_of(self, t) -> np.ndarray:
        if not self.segments:
            raise no_dense_output()
        times = check_real(t, "t", "be a number or a vector")
        if times.ndim > 1:
            raise InvalidProblemError(f"t must be a number or a vector, got shape {times.shape}")
        low, high = sorted((self.segments[0].t0, self.segments[-1].t1))
        check_within(times, (low, high))
        return times

    def __call__(self, t: ArrayLike) -> Any:
        """Dense output: the solution at `t`; at the time of a transition, the state after it.

        For a number, the result has the form of the mode at `t`: a vector, or the
        :class:`~daedal.solution.MechanicalState` of a mechanical system. For an array, it is one such state for all
        times if the modes are mechanical systems with equally many coordinates, otherwise an array with rows like those
        of `y`, NaN if a mode does not have a variable.
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
        """Number of output points of each segment."""
        return [chunk.t.size for chunk in self._chunks]

    def segment_numbers(self, t) -> np.ndarray:
        """Index of the segment at each time; at a transition, that of the segment that begins there."""
        return self._segment_numbers(np.atleast_1d(self._times(t)))

    def rows_of(self, mode: str) -> list[int]:
        """The rows of `y` that a mode has."""
        return self._rows(self.modes.index(mode))


# --- solutions of runs through modes
# -----------------------------------------------------------------------------------


class HybridSolution(PartsOfMachine, HybridOutput):
    r"""The solution of a :class:`HybridProblem`.

    Attributes
    ----------
    t : numpy.ndarray, shape (nt,)
        Output times. Without `t_eval`, transition times occur twice: before and after.
    mode : numpy.ndarray of str, shape (nt,)
        The mode at each output time; ``mode_index`` is its index in `modes`.
    y : numpy.ndarray, shape (n, nt)
        The variables listed in `names`; NaN if the mode does not have the variable.
    q, v, a, lam : numpy.ndarray
        Positions, velocities, accelerations and multipliers, if all modes are mechanical systems with equally many
        coordinates; multipliers that a mode does not have are NaN.
    segments : list of HybridSegment
        The arcs between transitions, each with the solution of its mode. Not kept with `t_eval` and
        ``dense_output=False``.
    events : EventTable
        Events, in order.
    n_events : int
        Number of transitions taken, recorded or not.
    success : bool
        Whether the end of the interval or a terminal event was reached.
    status : Status
        0 ``"finished"``, 1 ``"event"``, -1 ``"failed"``, -2 ``"interrupted"``, -3 ``"zeno"`` or -4 ``"chattering"``:
        compares equal to the number and to the word.
    message : str
        Description of the end of the run.
    stats : Statistics
        Sums over all segments.
    drift : dict
        Largest residuals of the constraints over all segments.
    functions : dict
        How functions were evaluated, for each mode visited.

    Examples
    --------
    >>> import daedal
    >>> ball = daedal.MechanicalSystem(1.0, lambda t, q, v: [-9.81], n_q=1)
    >>> floor = daedal.hybrid.Contact(lambda t, q: q[0], restitution=0.5, name="floor")
    >>> sol = daedal.solve(daedal.hybrid.UnilateralProblem(ball, floor), (0.0, 1.0), ([1.0], [0.0]))
    >>> print(sol.mode[-1], len(sol.events), f"{sol.events[0].t:.4f} {sol.q[0, -1]:.4f}")
    free 2 0.4515 0.0613
    """

    @property
    def method(self) -> str:
        """Distinct methods of all segments; empty if the segments were not kept (``dense_output=False``)."""
        return ", then ".join(dict.fromkeys(segment.solution.method for segment in self.segments))

    @property
    def history(self) -> History | None:
        """Steps of all segments; None if these were not kept."""
        parts = [one for segment in self.segments if (one := segment.solution.history) is not None]
        if not parts:
            return None
        return History(*(np.concatenate([getattr(part, name) for part in parts]) for name in ("t", "h", "order")))

    # --- contacts ---------------------------------------------------------------------------------------------------

    def contact(self, name: str, t: ArrayLike | None = None) -> Any:
        """Gap, forces and state of a contact of :class:`daedal.hybrid.UnilateralProblem`, at the output points or at
        the times `t`.

        Parameters
        ----------
        name : str
            Name of the contact.
        t : array, optional
            Times in increasing order.

        Returns
        -------
        ContactHistory
            With `t`, `state` ("open", "closed", "stick", "slip+", "slip-"), `gap`, `normal`, `friction` and `slip`.
        """
        if self._contacts is None:
            raise InvalidProblemError(
                "contact: the problem has no contacts; only a daedal.hybrid.UnilateralProblem has"
            )
        return self._contacts.history(self, name, t)

    @property
    def contact_lanes(self) -> dict[str, list[tuple[float, float, str]]]:
        """For each contact, the intervals in which it is not open, with its state; empty without contacts."""
        return {} if self._contacts is None else self._contacts.lanes(self.segments)

    # --- machines made of bodies and joints --------------------------------------------------------------------------

    @cached_property
    def _results(self) -> Any:
        found: list[Any] = [getattr(segment.solution, "machine", None) for segment in self.segments]
        if not found or None in found:
            raise InvalidProblemError(
                "bodies and joints are not available: the modes were not created by daedal.multibody, or the "
                "segments were not kept; call solve with dense_output=True"
            )
        if isinstance(found[0], RecordedMachine):
            return joined(found, self.points_of_segments)
        return found[0].results(self)

    def __getstate__(self) -> dict[str, Any]:
        kept = {name: value for name, value in self.__dict__.items() if name != "_results"}
        return kept | {"_contacts": self.stored_contacts(), "_derived": self.stored_derived()}

    def stored_contacts(self) -> Any:
        """Contacts without the functions of their gaps; None without contacts."""
        return None if self._contacts is None else self._contacts.stored(self)

    def stored_derived(self) -> Any:
        """Additional quantities without their functions."""
        return None if self._derived is None else self._derived.stored(self)

    @property
    def ends(self) -> np.ndarray:
        """The start of the run and the ends of all steps."""
        steps = [segment.solution.dense.ends for segment in self.segments if segment.solution.dense is not None]
        return np.concatenate([[self.segments[0].t0], *steps])

    def states(self, times: np.ndarray) -> np.ndarray:
        """(q, v, r) at `times`, in columns, if all modes are mechanical systems with equally many coordinates."""
        return self(times).y

    @property
    def parts(self) -> Any:
        """Bodies, joints and forces of a machine."""
        return self._results

    # --- display ------------------------------------------------------------------------------------------------------

    def plot(self, *args: Any, **options: Any) -> Any:
        """Plot the solution with its events and modes; see :func:`daedal.viz.plot_hybrid`."""
        from daedal.viz import plot_hybrid

        return plot_hybrid(self, *args, **options)

    def animate(self, path: str | Path | None = None, drawing: Any = None, **options: Any) -> Any:
        """Animate the motion as a player, which a notebook shows, or write it to a page (.html) or a picture (.gif).

        See :func:`daedal.viz.animate`.
        The motion of a :class:`daedal.multibody.Model` is shown in space: see :meth:`daedal.multibody.Results.animate`.
        """
        if drawing is None and self.segments and getattr(self.segments[0].solution, "machine", None) is not None:
            return self._results.animate(path, **options)
        from daedal.viz import animate

        return animate(self, path, drawing, **options)

    def summary(self) -> list[tuple[str, str]]:
        """Rows of the summary table."""
        run = self._run_in_words()
        return [
            ("status", str(self.status)),
            ("time", run["time"]),
            ("modes", ", ".join(dict.fromkeys(self.mode.tolist()))),
            ("transitions", f"{self.n_events}"),
            *((name, run[name]) for name in ("steps", "evaluations", "seconds")),
            *self._functions_in_short(),
        ]

    def _functions_in_short(self) -> list[tuple[str, str]]:
        """How functions were evaluated; by mode, if it differs."""
        short = {mode: "; ".join(words for _, words in table.summary()) for mode, table in self.functions.items()}
        if len(set(short.values())) == 1:
            return [("functions", next(iter(short.values())))]
        return [("functions" if k == 0 else "", f"{mode}: {words}") for k, (mode, words) in enumerate(short.items())]

    @property
    def title(self) -> str:
        """Title of the summary."""
        return f"Solution of a hybrid problem with {plural(len(self.modes), 'mode')}"


# --- storage of a run -------------------------------------------------------------------------------------------------


_COUNTERS = tuple(f.name for f in fields(Statistics) if f.name not in ("seconds", "first_use"))


class OutputStore:
    """Storage for output points, solutions of the segments and events; only totals of data that were not requested."""

    def __init__(
        self, problem: HybridProblem, forms: Mapping[str, StateForm], keeps_segments: bool, records_events: bool
    ):
        self._forms, self._contacts, self._derived = forms, problem.contact_record(), problem.derived()
        self._hidden = problem.hidden_names
        self._keeps_segments, self._records_events = keeps_segments, records_events
        self._index = {name: i for i, name in enumerate(problem.mode_names)}  # extended when new modes are visited
        self.segments: list[HybridSegment] = []
        self.chunks: list[ModeOutput] = []
        self.events: list[HybridEvent] = []
        self.n_events = 0
        self._counts = dict.fromkeys(_COUNTERS, 0)
        self._drift: dict[str, float] = {}
        self._functions: dict[str, FunctionTable] = {}

    @property
    def is_empty(self) -> bool:
        return not self.chunks and not self.n_events

    def record(self, event: HybridEvent):
        """Record an event."""
        self.n_events += event.kind in ("transition", "immediate", "zeno")
        if self._records_events:
            self.events.append(event)

    def add(self, mode: str, t0: float, t1: float, solution: Solution, count: int):
        """Store an arc in one mode, with the first `count` of its points as output."""
        for name in _COUNTERS:
            self._counts[name] += getattr(solution.stats, name)
        form = self._forms[mode]
        self._functions[mode] = solution.functions
        if self._keeps_segments:
            self.segments.append(HybridSegment(mode, t0, t1, solution, self._labels(mode)))
        else:
            add_drift(self._drift, solution)
        if count or self._keeps_segments:
            index = self._index.setdefault(mode, len(self._index))
            self.chunks.append(ModeOutput(index, solution.t[:count], form.output(solution)[:, :count]))

    def add_point(self, mode: str, t: float, y: np.ndarray):
        """Store a single output point, for a run that ends just after a break point."""
        index = self._index.setdefault(mode, len(self._index))
        self.chunks.append(ModeOutput(index, np.array([t]), y[:, None].copy()))

    def _labels(self, mode: str) -> tuple[str, ...]:
        """Names of the variables of a mode, without internal ones at the end."""
        hidden = self._hidden(mode)
        return tuple(label for label in self._forms[mode].labels if label not in hidden)

    def drop_last_point(self):
        """Remove the last output point, which a later state replaces."""
        last = next(i for i in reversed(range(len(self.chunks))) if self.chunks[i].t.size)
        chunk = self.chunks[last]
        self.chunks[last] = ModeOutput(chunk.mode, chunk.t[:-1], chunk.y[:, :-1])

    def finish(self, success: bool, status: str, message: str, seconds: float) -> HybridSolution:
        """Create the solution from the stored data."""
        forms = [self._forms[name] for name in self._index]
        named = dict.fromkeys([*self._index, *(event.source for event in self.events)])
        return HybridSolution(
            modes=tuple(self._index),
            labels=[self._labels(name) for name in self._index],
            n_q=[getattr(form.problem, "n_q", None) for form in forms],
            chunks=self.chunks,
            segments=self.segments,
            events=EventTable(self.events, {name: self._labels(name) for name in named}),
            n_events=self.n_events,
            success=success,
            status=status,
            message=message,
            stats=Statistics(**self._counts, seconds=seconds),
            drift=self._drift,
            functions=self._functions,
            contacts=self._contacts,
            hidden={name: hidden for name in self._index if (hidden := self._hidden(name))},
            derived=self._derived,
        )
