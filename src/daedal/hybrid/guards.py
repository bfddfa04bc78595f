"""Guards and events: functions whose sign changes end a mode, stop a run, or are recorded."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from daedal.errors import InvalidProblemError, Unevaluable
from daedal.events.event import (
    Enclosed,
    Event,
    GuardEvent,
    SwitchingFunctions,
    functions_of,
    named_events,
    no_functions,
)
from daedal.hybrid.hybrid_constants import BAND, LOOK, NOISE, TINY
from daedal.hybrid.hybrid_problem import GuardOfRun, HybridProblem, Transition
from daedal.hybrid.mode_plans import ByMode
from daedal.hybrid.mode_state import BoundTransition, ModeInitial, StateForm, some
from daedal.kernels.functions import is_compiled
from daedal.problems.arguments import FIRST, PARAMS, SECOND, TIME, WHOLE, in_standard_form
from daedal.problems.named_inputs import in_driven_form
from daedal.symbolic.tracing.switching_functions import TracedGuards

_SAME = 1e-3  # relative difference of rates up to which they count as equal


@dataclass
class GuardsAtStart:
    """The guards at the start of an arc.

    Attributes
    ----------
    immediate : int or None
        Index of the first guard that fires immediately.
    direction : numpy.ndarray
        Sign changes that end the mode.
    leaving : dict
        Guards that are zero at the start, by index: the side to which they move, and the time after which their value
        exceeds rounding errors.
    crossed : list
        Guards that changed sign at the break point where the arc begins: (index, direction).
    """

    immediate: int | None
    direction: np.ndarray
    leaving: dict[int, tuple[int, float]] = field(default_factory=dict)
    crossed: list[tuple[int, int]] = field(default_factory=list)


@dataclass
class ModeEnd:
    """The state in which a mode ended.

    Attributes
    ----------
    mode, y, yp
        The mode, its vector and, for an implicit problem, its derivative.
    fired : dict
        Values of the guards that fired, by name.
    crossed : str or None
        The transition taken, if its guard changed sign.
    """

    mode: str
    y: np.ndarray
    yp: np.ndarray | None
    fired: dict[str, float]
    crossed: str | None


_MOST_STARTS = 100
_WORTH_CODE = 4  # number of arcs in a mode above which machine code is worth compiling


@dataclass(frozen=True)
class GuardCode:
    """Machine code of guards for methods with any number of unknowns; `original` is the Python version."""

    traced: TracedGuards
    original: Callable[..., Any]

    def of_length(self, n: int) -> Any:
        """The code for a method of n unknowns."""
        if self.traced.read is None:
            return self.traced.code(n, self.original)
        return self.traced.code(n, lambda t, y, yp, p: self.original(t, y, yp))


class Guards:
    """All guards of a mode, stacked."""

    def __init__(
        self,
        mode: str,
        forms: Mapping[str, StateForm],
        transitions: list[Transition],
        kept: dict[Any, tuple[tuple, TracedGuards]] | None = None,
    ):
        self.mode, self.form, self._kept = mode, forms[mode], {} if kept is None else kept
        # the traced guards, and the parameters with which they were traced
        self._traced: list[tuple[Any, TracedGuards | None]] = []
        self._functions: SwitchingFunctions | None = None
        self._known: dict[Any, SwitchingFunctions] = {}  # switching functions of earlier arcs, for equal starts
        self._stretches = 0
        self.transitions = [BoundTransition(t, mode, forms) for t in transitions]
        self._calls = [self._bound(t) for t in transitions]
        self._places: list[tuple[int, int, int]] = []  # transition, first and last index of its guard
        self.owner: list[int] = []  # entry -> transition
        self.names: list[str] = []
        self.direction = np.empty(0, dtype=np.int64)
        self.immediate = np.empty(0, dtype=bool)

    def _bound(self, transition: Transition) -> Callable[..., Any]:
        guard = transition.guard.make() if isinstance(transition.guard, GuardOfRun) else transition.guard
        return self.form.bind(guard, f"guard of '{transition.name}'", sees_all=False)

    def __len__(self) -> int:
        return len(self.owner)

    def prepare(self, t: float, y: np.ndarray, yp: np.ndarray | None):
        """Determine the number of entries of each guard; done once, at the first state of the mode."""
        if self._places or not self.transitions:
            return
        directions: list[int] = []
        for i, bound in enumerate(self.transitions):
            size = self._checked(i, self._call(i, t, y, yp), t, None).size
            self._places.append((i, len(self.owner), len(self.owner) + size))
            self.owner += [i] * size
            self.names += [bound.name] if size == 1 else [f"{bound.name}[{j}]" for j in range(size)]
            directions += _spread(bound.transition.direction, size, bound.name)
        self.direction = np.array(directions, dtype=np.int64)
        self.immediate = np.array([self.transitions[i].transition.immediate for i in self.owner])

    def evaluate(self, t: float, y: np.ndarray, yp: np.ndarray | None) -> np.ndarray:
        """The values of all guards."""
        values = np.empty(len(self.owner))
        for i, begin, end in self._places:
            value = self._call(i, t, y, yp)
            kind = type(value)
            if kind in (float, np.float64) and end - begin == 1:
                values[begin] = value
            elif kind is np.ndarray and value.dtype == float and value.shape == (end - begin,):
                values[begin:end] = value
            else:
                values[begin:end] = self._checked(i, value, t, end - begin)
        for entry, value in enumerate(values.tolist()):
            if value != value:
                self._checked(self.owner[entry], np.nan, t, None)
        return values

    def _call(self, i: int, t: float, y, yp):
        try:
            return self._calls[i](t, y, yp)
        except Unevaluable as error:
            name = self.transitions[i].name
            message = f"the guard of '{name}' cannot be evaluated at t = {t:g}: {error}".rstrip(": ")
            raise InvalidProblemError(message) from error

    def _checked(self, i: int, value, t: float, size: int | None) -> np.ndarray:
        """Check the value of a guard, and its size if known, and return it as a vector."""
        try:
            array = np.atleast_1d(np.asarray(value))
        except ValueError:  # nested sequences of different lengths
            array = np.empty(0)
        name = self.transitions[i].name
        if array.dtype.kind not in "fiub" or array.ndim > 1 or array.size == 0 or np.isnan(array).any():
            raise InvalidProblemError(
                f"the guard of '{name}' must return a number other than NaN, or a vector of them; it returned {value!r}"
                f" at t = {t:g} in mode '{self.mode}'"
            )
        if size is not None and array.size != size:
            raise InvalidProblemError(
                f"the guard of '{name}' returned {array.size} values at t = {t:g}; at its first call it returned {size}"
            )
        return array

    def event(self, start: GuardsAtStart) -> GuardEvent:
        """The terminal event that ends the mode."""
        held = tuple((i, side, wait) for i, (side, wait) in start.leaving.items())
        function = self.form.event_function(self.evaluate)
        options: dict[str, Any] = {"terminal": True, "direction": start.direction.tolist(), "name": self.names}
        return GuardEvent(function, **options, guards=self, held=held, own=function)

    # --- guards in the form used by the driver ------------------------------------------------------------------------

    def switching(self, event: GuardEvent, sizes: Mapping[str, int], n: int, params: Any) -> SwitchingFunctions | None:
        """The guards as switching functions, which are reused between arcs; None if a method integrates other unknowns.

        A method integrates other unknowns if their number `n` differs from the length of the state of the mode.
        """
        if self.form.second_order or n != (2 * self.form.problem.n_q if self.form.mechanical else self.form.n):
            return None
        self._stretches += 1
        if self._functions is None or self._stretches == _WORTH_CODE or params is not self._traced[0][0]:
            coded = self._stretches >= _WORTH_CODE
            self._functions, self._known = self._made(self.traced(sizes, n, params), n, params, coded), {}
        key = *event.direction, event.held
        if key not in self._known:
            if len(self._known) >= _MOST_STARTS:
                self._known.clear()
            self._known[key] = replace(self._functions, direction=np.array(event.direction), held=event.held)
        return self._known[key]

    def _made(self, traced: TracedGuards | None, n: int, params: Any, coded: bool) -> SwitchingFunctions:
        def evaluate(t, y, yp):
            return self.evaluate(t, y[:n], yp[:n])

        functions = no_functions().extended(evaluate, tuple(self.names))
        if traced is None:
            return functions
        if coded and traced.is_complete:
            code = GuardCode(traced, evaluate)
            functions = replace(functions, compiled=code, params=params if traced.read is not None else None)
        if traced.program is not None:
            functions = functions.with_enclosed(Enclosed(traced.program, 0, traced.read, params))
        return functions

    def traced(self, sizes: Mapping[str, int], n: int, params: Any) -> TracedGuards | None:
        """The guards on a graph; None if none of them can be traced."""
        if not self._traced or self._traced[0][0] is not params:
            self._traced = [(params, self._found(sizes, n, params))]
        return self._traced[0][1]

    def _found(self, sizes: Mapping[str, int], n: int, params: Any) -> TracedGuards | None:
        stateful = [self.transitions[i].transition.guard for i, _, _ in self._places]
        guards = tuple(one.formula if isinstance(one, GuardOfRun) else one for one in stateful)
        stated = [self._standard(guard, params) for guard in guards]
        if all(function is None for function, _ in stated):
            return None
        key = self.mode, n, *sizes.items()
        of, known = self._kept.get(key, ((), None))
        same = len(of) == len(guards) and all(a is b for a, b in zip(of, guards))
        if known is None or not same or not known.is_current(params):
            counts = [end - begin for _, begin, end in self._places]
            known = TracedGuards(stated, counts, sizes, n, params)
            self._kept[key] = guards, known
        return known

    def _standard(self, guard: Any, params: Any) -> tuple[Any, int]:
        """A guard in the form for tracing, with its number of arguments; None if it has no formula, or unsupported
        arguments."""
        if guard is None or is_compiled(guard):
            return None, 0
        function = in_driven_form(guard, params)
        places = self.form.arguments.of(function, "guard")
        if not {TIME, WHOLE, FIRST, SECOND, PARAMS}.issuperset(places):
            return None, 0
        return in_standard_form(function, places, self.form.split is not None)

    def at_start(self, t: float, begin: ModeInitial, weights, step: float, before: ModeEnd | None, ended=None):
        """Evaluate the guards at the start of an arc.

        Parameters
        ----------
        weights : numpy.ndarray
            rtol |y| + atol.
        step : float
            A typical step, with the sign of the direction of integration.
        before : ModeEnd or None
            End of the previous mode.
        ended : numpy.ndarray or None
            Guard values one float before `t`, if the arc begins at a break point.

        Returns
        -------
        GuardsAtStart
        """
        y, yp = begin.y, begin.yp
        values, direction = self.evaluate(t, y, yp), self.direction.copy()
        wrong = direction * values > 0.0
        doubtful = np.flatnonzero(wrong | (values == 0.0) | (direction == 0))
        pattern = np.cos(0.7 + 1.3 * np.arange(y.size))  # few entries do not cancel
        rounded = self.evaluate(t + NOISE * t, y + NOISE * np.abs(y) * pattern, yp)
        noise = 2.0 * np.abs(rounded - values) + TINY
        near = [i for i in np.flatnonzero(np.abs(values) <= noise).tolist() if i not in doubtful]
        if doubtful.size == 0 and not near:
            return GuardsAtStart(None, direction)
        band = 2.0 * np.abs(self.evaluate(t, y + BAND * weights * pattern, yp) - values)
        fired = before.fired if before is not None else {}
        zero = [int(i) for i in doubtful if abs(values[i]) <= max(band[i], 4.0 * abs(fired.get(self.names[i], 0.0)))]
        sides, waits, rates = self._leave(t, y, yp, values, noise, step, zero + near)
        went = np.sign(values)
        went[zero] = sides[zero]
        crossed = [] if ended is None else self._crossed(ended, went)
        firing = (went != 0.0) & (went == direction) & self.immediate
        for i in zero:
            firing[i] = firing[i] and not self._passes(i, t, before, rates[i], step)
        direction = np.where(direction == 0, -went, direction).astype(np.int64)
        leaving: dict[int, tuple[int, float]] = {}
        for i in zero:
            if sides[i] != 0 and waits[i] > 0.0:
                leaving[i] = int(sides[i]), float(waits[i])
            elif sides[i] == 0 and direction[i] != 0 and values[i] != 0.0:
                # undecided: assumed to be on the correct side, so that it fires if the first step shows otherwise
                leaving[i] = -int(direction[i]), 0.0
        # on the correct side only by round-off, and moving away from it
        leaving |= {i: (int(sides[i]), float(waits[i])) for i in near if sides[i] == -direction[i] and waits[i] > 0.0}
        hit = np.flatnonzero(firing)
        return GuardsAtStart(int(hit[0]) if hit.size else None, direction, leaving, crossed)

    def _crossed(self, ended: np.ndarray, went: np.ndarray) -> list[tuple[int, int]]:
        """(index, direction) of the guards that changed sign at a break point, in a direction that ends the mode."""
        changed = (ended * went < 0.0) & ((self.direction == 0) | (self.direction * went > 0.0))
        return [(i, int(went[i])) for i in np.flatnonzero(changed).tolist()]

    def _leave(self, t, y, yp, values, noise, step: float, entries: list[int]) -> tuple[np.ndarray, ...]:
        """Sides to which some guards move (0 if undecided), times until they exceed round-off, and their rates."""
        sides, waits, rates = np.zeros(values.size, dtype=np.int64), np.zeros(values.size), np.zeros(values.size)
        if not entries:
            return sides, waits, rates
        motion = self.form.motion(t, y, yp)
        for part in LOOK:
            ahead = motion(part * step)
            if ahead is None:
                continue
            found = self.evaluate(t + part * step, *ahead)
            change = found - values
            new = (sides == 0) & (np.abs(change) > noise)
            sides[new], rates[new] = np.sign(change[new]).astype(np.int64), change[new] / (part * step)
            arrived = (waits == 0.0) & (sides != 0) & (found * sides > noise)
            waits[arrived] = part * abs(step)
            if waits[entries].all():
                break
        return sides, waits, rates

    def _passes(self, i: int, t: float, before: ModeEnd | None, rate: float, step: float) -> bool:
        """Whether a guard of the transition just taken has the same rate as before the transition.

        Such a guard marks an instant; it is not a limit of the state.
        """
        if before is None or before.mode != self.mode or self.transitions[self.owner[i]].name != before.crossed:
            return False
        values = self.evaluate(t, before.y, before.yp)
        came = self._leave(t, before.y, before.yp, values, np.full(values.size, TINY), step, [i])[2][i]
        return bool(abs(came - rate) <= _SAME * abs(rate))


def _spread(direction, size: int, name) -> list[int]:
    values = list(direction) if np.iterable(direction) else [direction] * size
    if len(values) != size or not all(v in (-1, 0, 1) for v in values):
        raise InvalidProblemError(
            f"direction of '{name}' must be -1, 0 or 1, or one of them for each entry of its guard ({size}), "
            f"got {direction!r}"
        )
    return [int(v) for v in values]


# --- user events in runs through modes: counted over all arcs, and checked at break points ----------------------------


_AHEAD = (1e-6, 1e-4, 1e-2, 1e-1)  # fractions of a step at which the direction of a function leaving zero is determined


@dataclass(frozen=True)
class Fired:
    """A function that changed sign: its name, the direction, and whether it ends the run."""

    name: str
    direction: int
    terminal: bool


@dataclass(frozen=True)
class Instant:
    """A time with its state: the stacked vector, and y' of an implicit problem."""

    t: float
    y: np.ndarray
    yp: np.ndarray | None


class UserEvents:
    """Events of one mode; `occurred` counts those of all modes, by name."""

    def __init__(self, events: Sequence[Event], form: StateForm, occurred: dict[str, int]):
        self.events, self._form, self._occurred = tuple(events), form, occurred
        self._calls: list[Callable[..., Any]] | None = None

    def count(self, name: str):
        """Count an occurrence."""
        self._occurred[name] = self._occurred.get(name, 0) + 1

    def still_to_come(self, now: Instant) -> list[Event]:
        """Events for the next arc; if `terminal` is the number of an occurrence, earlier occurrences are subtracted."""
        if not self._occurred:
            return list(self.events)
        return [self._rest(i, now) if _counts(event) else event for i, event in enumerate(self.events)]

    def _rest(self, i: int, now: Instant) -> Event:
        functions = functions_of(self.events[i], i, self._values(i, now).size)
        left = [k if k < 2 else max(1, k - self._occurred.get(name, 0)) for name, _, k in functions]
        return replace(self.events[i], terminal=left)

    def across(self, end: Instant, begin: Instant, step: float) -> list[Fired]:
        """Events at a break point: functions with different signs before and after it.

        Functions that are zero after it are evaluated after a small fraction of `step`; if they remain zero, they count
        as having reached zero.
        """
        found = []
        for i, event in enumerate(self.events):
            before, after = self._values(i, end), self._values(i, begin)
            for j, (name, direction, terminal) in enumerate(functions_of(event, i, before.size)):
                if before[j] == 0.0 or before[j] * after[j] > 0.0:
                    continue
                side = 1 if before[j] < 0.0 else -1
                if direction in (0, side) and (after[j] != 0.0 or self._leaves_to(side, i, j, begin, step)):
                    self.count(name)
                    found.append(Fired(name, side, 0 < terminal <= self._occurred[name]))
        return found

    def _leaves_to(self, side: int, i: int, j: int, begin: Instant, step: float) -> bool:
        """Whether function j of event i, which is zero, stays at zero or moves to the given side.

        Near a zero the sign of the function may be round-off: it counts if two points agree.
        """
        motion, seen = self._form.motion(begin.t, begin.y, begin.yp), 0.0
        for part in _AHEAD:
            ahead = motion(part * step)
            value = 0.0 if ahead is None else self._values(i, Instant(begin.t + part * step, *ahead))[j]
            if value * seen > 0.0:
                break
            seen = value or seen
        return bool(seen * side >= 0.0)

    def _values(self, i: int, at: Instant) -> np.ndarray:
        if self._calls is None:
            self._calls = [
                self._form.bind(e.function, f"events[{k}]", sees_all=False) for k, e in enumerate(self.events)
            ]
        return np.atleast_1d(np.asarray(self._calls[i](at.t, self._form.seen(at.y), at.yp), dtype=float))


def _counts(event: Event) -> bool:
    """Whether an event ends the run at an occurrence after the first."""
    return bool(np.max(event.terminal) > 1)


def events_by_mode(events, forms: Mapping[str, StateForm]) -> ByMode[UserEvents]:
    """The user's events for each mode: the same for all modes, or given as a dict."""
    occurred: dict[str, int] = {}
    if not isinstance(events, dict):
        named = named_events(events)
        return ByMode(forms, lambda name: UserEvents(named, forms[name], occurred))
    for name in events:
        if name not in forms:
            raise InvalidProblemError(f"events: {name!r} is not a mode; the modes are {some(forms)}")
    return ByMode(forms, lambda name: UserEvents(named_events(events.get(name)), forms[name], occurred))


def names_of(events: Iterable[UserEvents]) -> list[str]:
    """Distinct names of the events of all modes; the functions of a vector have the same name."""
    given: list[Any] = [event.name for mode in events for event in mode.events]
    return list(dict.fromkeys(name for one in given for name in ([one] if isinstance(one, str) else one)))


# --- validation of a hybrid model before it is run --------------------------------------------------------------------


_SHIFTS = (1e-3, 1e-1, 1.0)  # offsets of the state, relative to its size, at which a zero guard is evaluated again


@dataclass(frozen=True)
class HybridReport:
    """Result of :meth:`HybridProblem.check`.

    Attributes
    ----------
    guards : dict
        Values of the guards of the initial mode at the state, by name.
    reachable : tuple of str
        Modes reachable from the initial mode; all modes if a target is a function.
    notes : tuple of str
        Possible mistakes.
    """

    guards: dict[str, float]
    reachable: tuple[str, ...]
    notes: tuple[str, ...] = field(default=())

    def __str__(self) -> str:
        lines = [f"guard of '{name}': {value:.6g}" for name, value in self.guards.items()]
        return "\n".join([*lines, f"reachable: {', '.join(self.reachable)}", *self.notes])


def check_hybrid(problem: HybridProblem, t: float, initial) -> HybridReport:
    """Check guards and resets of the initial mode; see :meth:`HybridProblem.check`."""
    initial = problem.entry((t, t), initial)
    named = isinstance(initial, (tuple, list)) and len(initial) == 2 and isinstance(initial[0], str)
    if not named or initial[0] not in problem.modes:
        raise InvalidProblemError(f"initial must be (mode, initial values), with a mode of {some(problem.modes)}")
    mode, given = initial
    forms = ByMode(problem.modes, lambda name: StateForm(problem.modes[name].problem))
    form, notes = forms[mode], []
    guards = Guards(mode, forms, problem.transitions_from(mode))
    y, yp, _ = form.stack(given, f"initial of mode '{mode}': ")
    yp = np.zeros(form.n) if form.implicit and yp is None else yp
    guards.prepare(t, y, yp)
    values = guards.evaluate(t, y, yp)
    for i in np.flatnonzero(values == 0.0):
        if _vanishes(guards, int(i), t, y, yp):
            raise InvalidProblemError(
                f"the guard of '{guards.names[i]}' is zero wherever it was evaluated, so it never changes sign"
            )
    for i in np.flatnonzero(guards.direction * values > 0.0):
        notes.append(f"The state is on the wrong side of guard '{guards.names[i]}', which would fire immediately.")
    for transition in guards.transitions:
        target = transition.target(t, y, yp)
        if target is not None:
            transition.carry_over(target, t, y, yp)
    reachable = _reachable(problem, mode)
    missed = [name for name in problem.mode_names if name not in reachable]
    if missed:
        notes.append(f"No transition leads to {', '.join(missed)}.")
    return HybridReport(dict(zip(guards.names, values.tolist(), strict=True)), reachable, tuple(notes))


def _vanishes(guards: Guards, i: int, t: float, y: np.ndarray, yp) -> bool:
    """Whether a guard is also zero at nearby states."""
    pattern = np.cos(0.7 + 1.3 * np.arange(y.size))
    for shift in _SHIFTS:
        moved = y + shift * np.maximum(np.abs(y), 1.0) * pattern
        try:
            if guards.evaluate(t + shift, moved, None if yp is None else yp + shift * pattern)[i] != 0.0:
                return False
        except InvalidProblemError:  # undefined there
            return False
    return True


def _reachable(problem: HybridProblem, mode: str) -> tuple[str, ...]:
    found, open_ = [mode], [mode]
    while open_:
        here = open_.pop()
        last = problem.accumulation_from(here)
        for transition in [*problem.transitions_from(here), *([] if last is None else [last])]:
            if transition.target is None:
                continue
            targets = problem.mode_names if callable(transition.target) else (transition.target,)
            new = [name for name in targets if name not in found]
            found += new
            open_ += new
    return tuple(name for name in problem.mode_names if name in found) + tuple(
        name for name in found if name not in problem.mode_names
    )
