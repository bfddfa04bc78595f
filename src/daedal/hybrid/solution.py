"""What came out of a run through modes."""

from dataclasses import dataclass, field, fields
from functools import cached_property, partial
from typing import Any

import numpy as np

from daedal.errors import InvalidProblemError
from daedal.events.table import EventTable
from daedal.mechanical_state import PARTS, State
from daedal.problems.checks import check_real
from daedal.results.quantities import NamedValues, Quantity, row_named
from daedal.results.tabulated import Tabulated
from daedal.solution import Solution, Statistics
from daedal.tabular import FunctionTable, Tabular


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
class Chunk:
    """Output points of one mode: times, and the stacked states in columns."""

    mode: int
    t: np.ndarray
    y: np.ndarray


class HybridSolution(Tabulated):
    r"""The solution of a :class:`HybridProblem`.

    Attributes
    ----------
    t : numpy.ndarray, shape (nt,)
        The output times. Without `t_eval` those of transitions stand twice: before and after.
    mode : numpy.ndarray of str, shape (nt,)
        The mode at each of them; ``mode_index`` is its number in `modes`.
    y : numpy.ndarray, shape (n, nt)
        The variables, named by `names`; nan where the mode does not have a variable.
    q, v, a, lam : numpy.ndarray
        Positions, velocities, accelerations and multipliers, if all modes are mechanical systems with as many
        coordinates; multipliers that a mode does not have are nan.
    segments : list of HybridSegment
        The stretches between transitions, each with the solution of its mode. Not kept with `t_eval` and
        ``dense_output=False``.
    events : EventTable
        What happened, in order.
    n_events : int
        How many transitions were taken, recorded or not.
    success : bool
        Whether the end of the interval or a terminal event was reached.
    status : str
        ``"finished"``, ``"event"``, ``"interrupted"``, ``"zeno"``, ``"chattering"`` or ``"failed"``.
    message : str
        How it ended, in words.
    stats : Statistics
        Sums over all segments.
    drift : dict
        The largest residuals of the constraints over all segments.
    functions : dict
        For each mode that the run went through how its functions were evaluated.
    """

    def __init__(
        self,
        *,
        modes: tuple[str, ...],
        labels: list[tuple[str, ...]],
        n_q: list[int | None],
        chunks: list[Chunk],
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
    ):
        self.modes, self.segments, self.events, self.n_events = modes, segments, events, n_events
        self.success, self.status, self.message = success, status, message
        self.stats, self._drift, self.functions = stats, drift, functions
        self._labels, self._n_q, self._chunks, self._contacts = labels, n_q, chunks, contacts

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
            pairs = list(zip(self.segments, self._chunks)) if self.segments else []
            ends = np.cumsum([chunk.t.size for _, chunk in pairs])
            parts: list[tuple[list[Quantity], slice, Any]] = [
                (segment.solution.quantities(), slice(0, chunk.t.size), slice(end - chunk.t.size, end))
                for (segment, chunk), end in zip(pairs, ends)
            ]
        else:
            times = np.atleast_1d(self._times_of(t))
            count, numbers, parts = times.size, self._segment_numbers(times), []
            shown = [Quantity("y", "variable", self.names, lambda: self.rows_at(times))]
            for k in np.unique(numbers):
                segment, here = self.segments[k], np.flatnonzero(numbers == k)
                if segment.solution.dense is not None:
                    parts.append((segment.solution.quantities(segment.clipped(times[here])), slice(None), here))
        found: dict[str, dict[str, list[Any]]] = {}
        dimensions: dict[str, tuple[str, bool]] = {}
        for quantities, taken, here in parts:
            for quantity in quantities:
                dimensions.setdefault(quantity.kind, (quantity.dimension, quantity.in_tables))
                for i, name in enumerate(quantity.names):
                    if name not in known:
                        places = found.setdefault(quantity.kind, {})
                        places.setdefault(name, []).append((quantity, i, taken, here))
        for kind, rows in found.items():
            dimension, in_tables = dimensions[kind]
            joined = partial(_joined_rows, list(rows.values()), count)
            shown.append(Quantity(kind, f"{kind} of modes" if dimension else "", tuple(rows), joined, (), in_tables))
        return shown

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
        return _padded([getattr(segment.solution, name)[:, : chunk.t.size] for segment, chunk in pairs])

    sensitivities: Any = None

    def sensitivity(self, parameter, t=None) -> np.ndarray:
        """The derivative of `y` with respect to a parameter, (n, nt), or at the times `t`; see the guide."""
        if self.sensitivities is None:
            raise InvalidProblemError("no sensitivities were computed; call solve with sensitivities=[...]")
        return self.sensitivities.at(parameter, t)

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

        For a number that of the mode at `t`: a vector, or the :class:`~daedal.mechanical_solution.State` of a
        mechanical system. For an array the same for all times if the modes are mechanical systems with as many
        coordinates, otherwise rows like those of `y`, nan where a mode does not have a variable.
        """
        times = self._times_of(t)
        flat = np.atleast_1d(times)
        numbers = self._segment_numbers(flat)
        if times.ndim == 0:
            return _first(self.segments[numbers[0]].state(flat), float(times))
        parts = [
            (numbers == k, self.segments[k], self.segments[k].state(flat[numbers == k])) for k in np.unique(numbers)
        ]
        used = {self._n_q[self.modes.index(segment.mode)] for _, segment, _ in parts}
        if len(used) == 1 and None not in used:
            return _joined_states(flat, parts)
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

    # --- contacts ---------------------------------------------------------------------------------------------------

    def contact(self, name: str, t: Any = None):
        """Gap, forces and state of a contact of :func:`daedal.unilateral`, at the output points or at the times `t`.

        Parameters
        ----------
        name : str
            Of the contact.
        t : array, optional
            Times in increasing order.

        Returns
        -------
        ContactHistory
            With `t`, `state` ("open", "closed", "stick", "slip+", "slip-"), `gap`, `normal`, `friction` and `slip`.
        """
        if self._contacts is None:
            raise InvalidProblemError("contact: the problem was not made by daedal.unilateral; it has no contacts")
        return self._contacts.history(self, name, t)

    @property
    def contact_lanes(self) -> dict[str, list[tuple[float, float, str]]]:
        """For each contact the stretches in which it is not open, with its state; empty without contacts."""
        return {} if self._contacts is None else self._contacts.lanes(self.segments)

    @property
    def counts(self) -> list[int]:
        """How many output points each segment has."""
        return [chunk.t.size for chunk in self._chunks]

    def by_segment(self, t):
        """(segment, times, state) for the segments in which the times lie."""
        flat = np.atleast_1d(self._times(t))
        numbers = self._segment_numbers(flat)
        found = [(self.segments[k], flat[numbers == k]) for k in np.unique(numbers)]
        return [(segment, times, segment.state(times)) for segment, times in found]

    # --- of a machine made of bodies and joints ---------------------------------------------------------------------

    @cached_property
    def _results(self) -> Any:
        found: list[Any] = [getattr(segment.solution, "machine", None) for segment in self.segments]
        if not found or None in found:
            raise InvalidProblemError(
                "the solved modes were not made of bodies and joints, so nothing is known of them (see "
                "daedal.multibody), or the segments were not kept; call solve with dense_output=True"
            )
        return found[0].results(self)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_results"}

    @property
    def ends(self) -> np.ndarray:
        """The beginning of the run and the ends of all steps."""
        steps = [segment.solution.dense.ends for segment in self.segments if segment.solution.dense is not None]
        return np.concatenate([[self.segments[0].t0], *steps])

    def states(self, times: np.ndarray) -> np.ndarray:
        """(q, v, r) at `times`, in columns, if all modes are mechanical systems with as many coordinates."""
        return self(times).y

    def body(self, name: str, t: Any = None):
        """The motion of a body of a :class:`daedal.multibody.Model`, at the output points or at the times `t`."""
        return self._results.body(name, t)

    def joint(self, name: str, t: Any = None):
        """The motion of a joint of a :class:`daedal.multibody.Model`."""
        return self._results.joint(name, t)

    @property
    def energy(self):
        """Kinetic, potential and total energy of a :class:`daedal.multibody.Model` at the output points."""
        return self._results.energy()

    # --- how it is shown --------------------------------------------------------------------------------------------

    def plot(self, *args: Any, **options: Any):
        """Plot the solution with its events and modes; see :func:`daedal.viz.plot_hybrid`."""
        from daedal.viz import plot_hybrid

        return plot_hybrid(self, *args, **options)

    def animate(self, path=None, drawing=None, **options: Any):
        """The motion as a player, which a notebook shows, or written to a page (.html) or a picture (.gif).

        See :func:`daedal.viz.animate`.
        The motion of a :class:`daedal.multibody.Model` is shown in space: see :meth:`daedal.multibody.Results.animate`.
        """
        if drawing is None and self.segments and getattr(self.segments[0].solution, "machine", None) is not None:
            return self._results.animate(path, **options)
        from daedal.viz import animate

        return animate(self, path, drawing, **options)

    def summary(self) -> list[tuple[str, str]]:
        """The rows of the small table shown for a solution."""
        stats = self.stats
        interval = f"{self.t[0]:g} to {self.t[-1]:g}" if self.t.size else "nothing stored"
        visited = dict.fromkeys(self.mode.tolist())
        return [
            ("status", self.status),
            ("time", f"{interval} ({self.t.size} points)"),
            ("modes", ", ".join(visited)),
            ("transitions", f"{self.n_events}"),
            ("steps", f"{stats.steps} accepted, {stats.rejected} rejected"),
            ("evaluations", f"{stats.residual_evaluations} ({stats.jacobian_residual_evaluations} for Jacobians)"),
            ("seconds", f"{stats.seconds:.4g}"),
            *self._functions_in_short(),
        ]

    def _functions_in_short(self) -> list[tuple[str, str]]:
        """How functions were evaluated; mode by mode, where it is not the same in all of them."""
        short = {mode: "; ".join(words for _, words in table.summary()) for mode, table in self.functions.items()}
        if len(set(short.values())) == 1:
            return [("functions", next(iter(short.values())))]
        return [("functions" if k == 0 else "", f"{mode}: {words}") for k, (mode, words) in enumerate(short.items())]

    def __repr__(self) -> str:
        rows = Tabular("ll", self.summary(), indent=2)
        return f"Solution of a hybrid problem with {len(self.modes)} modes\n{rows}\n  {self.message}"

    def _repr_html_(self) -> str:
        from daedal.viz import solution_html

        return solution_html(self)


def _first(state: Any, t: float):
    """The only column of a state."""
    if isinstance(state, np.ndarray):
        return state[:, 0].copy()
    parts = {f.name: getattr(state, f.name) for f in fields(state) if f.name != "t"}
    return type(state)(t=t, **{k: v[:, 0].copy() if isinstance(v, np.ndarray) else v for k, v in parts.items()})


def _joined_states(times: np.ndarray, parts) -> State:
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


def _padded(parts: list[np.ndarray]) -> np.ndarray:
    """Arrays side by side, nan below those with fewer rows."""
    height = max((part.shape[0] for part in parts), default=0)
    result = np.full((height, sum(part.shape[1] for part in parts)), np.nan)
    begin = 0
    for part in parts:
        result[: part.shape[0], begin : begin + part.shape[1]] = part
        begin += part.shape[1]
    return result


def _joined_rows(rows: list[list[Any]], count: int) -> np.ndarray:
    """Rows of several segments as one each, nan where there is none."""
    result = np.full((len(rows), count), np.nan)
    for row, parts in zip(result, rows, strict=True):
        for quantity, i, taken, here in parts:
            row[here] = np.asarray(quantity.rows())[i, taken]
    return result
