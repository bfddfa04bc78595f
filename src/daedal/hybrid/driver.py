"""The run through the modes of a hybrid problem: one call of the driver for every stretch between two transitions."""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np

from daedal.errors import InconsistentInitialError, IntegrationError, InvalidProblemError
from daedal.events.event import Event, _as_event, _as_list, _title
from daedal.hybrid import messages
from daedal.hybrid.accumulation import Watch
from daedal.hybrid.arguments import StateForm
from daedal.hybrid.guards import Before, Guards, Start
from daedal.hybrid.problem import HybridProblem, Transition
from daedal.hybrid.reset import Begin, carry_over, choose_target, make_consistent
from daedal.hybrid.solution import HybridSolution
from daedal.hybrid.store import Store
from daedal.hybrid.table import HybridEvent
from daedal.problems.checks import check_flag
from daedal.progress import Progress
from daedal.solution import Solution

_MAX_EVENTS = 10**6
_MOST_IMMEDIATE = 100  # transitions at one time
_FEWEST_SPACINGS = 1.1e4  # of floats in what is left of the interval; less cannot be integrated


def solve_hybrid(problem: HybridProblem, t_span, initial, *, progress, method_options, **options) -> HybridSolution:
    """Solve a hybrid problem; see :func:`daedal.solve` and :class:`HybridProblem`."""
    run = _Run(problem, t_span, initial, options, dict(method_options))
    run.progress = Progress(progress, run.span)
    try:
        return run.to_the_end()
    finally:
        run.progress.close()


class _Stop(Exception):
    """The run is over, with this status and message."""

    def __init__(self, success: bool, status: str, message: str):
        super().__init__(message)
        self.success, self.status = success, status


class _Run:
    """Where the run is: the time, the mode and its initial values."""

    progress: Progress

    def __init__(self, problem: HybridProblem, t_span, initial, options: dict[str, Any], extra: dict[str, Any]):
        from daedal.solve import _check_span, _check_times

        self.began = time.perf_counter()
        self.problem = problem
        self.span = _check_span(t_span)
        self.sign = 1.0 if self.span[1] > self.span[0] else -1.0
        self.max_events = _check_count(extra.pop("max_events", _MAX_EVENTS))
        records_events = check_flag(extra.pop("record_events", True), "record_events")
        if options.pop("fixed_step") is not None:
            raise InvalidProblemError("fixed_step: transitions cannot be located with constant steps; leave it out")
        self.times = _check_times(options.pop("t_eval"), self.span)
        self.first_step = options.pop("first_step")
        correct = check_flag(options.pop("correct_initial"), "correct_initial")
        self.events = _events_by_mode(options.pop("events"), problem)
        common = options | extra
        self.options = {name: common | mode.options for name, mode in problem.modes.items()}
        self.forms = {name: StateForm(mode.problem) for name, mode in problem.modes.items()}
        self.guards = {name: Guards(name, self.forms[name], problem.transitions_from(name)) for name in problem.modes}
        keeps_segments = self.times is None or options["dense_output"] is not False
        self.store = Store(problem, self.forms, keeps_segments, records_events)
        self.watch = Watch(self.span, _smallest(common["rtol"]), self.max_events)
        self.t = self.span[0]
        self.next_time = 0  # of t_eval
        self.typical_step = 1e-3 * abs(self.span[1] - self.span[0])
        self.steps: dict[str, float] = {}  # typical steps of one-step methods, by mode
        self.before: Before | None = None
        self.occurred: dict[str, int] = {}  # events of the user, by name
        self.came_by: tuple[str | None, str] | None = None  # the last transition and its source
        self._begin(problem.entry(self.span, initial), correct)

    def _begin(self, initial, correct: bool):
        """The mode in which the run begins; its initial values are kept as they were given."""
        if not isinstance(initial, (tuple, list)) or len(initial) != 2 or not isinstance(initial[0], str):
            raise InvalidProblemError(
                "initial of a hybrid problem must be (mode, initial values), for example ('flight', (q0, v0))"
            )
        self.mode, given = initial
        if self.mode not in self.problem.modes:
            raise InvalidProblemError(
                f"initial: '{self.mode}' is not a mode; there are {', '.join(self.problem.modes)}"
            )
        form = self.forms[self.mode]
        self.given = form.completed(given)
        y, yp, incomplete = form.stack(self.given, f"initial of mode '{self.mode}': ")
        self.begin = Begin(y, yp, correct)
        if correct or incomplete:
            found = make_consistent(form, self.t, Begin(y, yp, True), self._weights(self.mode, y))
            self.begin = Begin(found.y, found.yp, correct)

    # --- the loop ---------------------------------------------------------------------------------------------------

    def to_the_end(self) -> HybridSolution:
        """Stretch by stretch, until something ends the run."""
        success, status = False, "failed"
        cause: BaseException | None = None
        try:
            while True:
                self._stretch()
        except _Stop as stop:
            success, status, message, cause = stop.success, stop.status, str(stop), stop.__cause__
        except KeyboardInterrupt:
            if self.store.is_empty:
                raise
            status, message = "interrupted", messages.interrupted(self.t)
        except IntegrationError as error:
            cause, message = error, f"In mode '{self.mode}', which began at t = {self.t:.10g}: {error}"
            self._keep(error.solution, float(error.solution.t[-1]) if error.solution.t.size else self.t)
        except Exception as error:
            message = f"Stopped in mode '{self.mode}' by {type(error).__name__}: {error}"
            with suppress(AttributeError, TypeError):  # exceptions with slots take no attributes
                error.solution = self._finish(False, "failed", message)  # type: ignore[attr-defined]
            raise
        solution: Any = self._finish(success, status, message)
        if status in ("failed", "chattering"):
            raise IntegrationError(message, solution) from cause
        return solution

    def _finish(self, success: bool, status: str, message: str) -> HybridSolution:
        return self.store.finish(success, status, message, time.perf_counter() - self.began)

    def _stretch(self):
        """Immediate transitions, then the integration to the next one."""
        if self._left() < _FEWEST_SPACINGS * np.spacing(max(abs(self.span[0]), abs(self.span[1]))):
            raise _Stop(True, "finished", messages.end_reached(self.span[1]))
        start = self._enter()
        guards = self.guards[self.mode]
        events = [guards.event(self.t, start)] if len(guards) else []
        solution = self._integrate([*events, *map(self._still_to_come, self.events[self.mode])] or None)
        for event in solution.events:
            if event.index >= len(guards):
                y = self.forms[self.mode].at_event(solution, event)[0]
                self.occurred[event.name] = self.occurred.get(event.name, 0) + 1
                self._note(event.t, event.name, "event", None, y, None, event.direction)
        fired = [event for event in solution.events if event.terminal] if solution.status == "event" else []
        if not fired:
            reached = float(solution.t[-1]) if solution.t.size else self.t
            interrupted = solution.status == "interrupted"
            self._keep(solution, reached if interrupted else self.span[1])
            self.t = reached if interrupted else self.span[1]
            if interrupted:
                raise KeyboardInterrupt
            raise _Stop(True, "finished", messages.end_reached(self.span[1]))
        t = fired[-1].t
        stopping = next((event.name for event in fired if event.index >= len(guards)), None)
        self._keep(solution, t)
        self.t = t
        self.progress.update(t)
        if stopping is not None:
            raise _Stop(True, "event", f"The event '{stopping}' stopped the integration at t = {t:.10g}.")
        self._take_first(solution, guards, fired)

    def _still_to_come(self, event: Event) -> Event:
        """An event that ends the run at its k-th occurrence, with those before this stretch taken off."""
        k = event.terminal
        if isinstance(k, bool) or not isinstance(k, int) or k < 2:
            return event
        return replace(event, terminal=max(1, k - self.occurred.get(event.name, 0)))

    def _left(self) -> float:
        return abs(self.span[1] - self.t)

    def _enter(self) -> Start:
        """Take the transitions that fire at once; returns what the guards say at the start of the mode that lasts."""
        passed: list[tuple[str, str, np.ndarray]] = []
        while True:
            form, guards, y, yp = self.forms[self.mode], self.guards[self.mode], self.begin.y, self.begin.yp
            guards.prepare(self.t, y, yp)
            step = self.sign * min(self.typical_step, self._left())
            start = guards.start(self.t, y, yp, self._weights(self.mode, y), self.before, step)
            if start.immediate is None:
                return start
            seen = any(mode == self.mode and np.array_equal(y, state) for mode, _, state in passed)
            if seen or len(passed) >= _MOST_IMMEDIATE:
                raise _Stop(False, "failed", messages.loop(passed, self.mode, form, y, self.t))
            transition = guards.transitions[guards.owner[start.immediate]]
            passed.append((self.mode, str(transition.name), y))
            self._take(transition, "immediate", y, yp, int(guards.direction[start.immediate]), {})

    def _take_first(self, solution: Solution, guards: Guards, fired):
        """Take the first of the transitions whose guards changed their sign; the others are recorded."""
        first = min(fired, key=lambda event: event.index)
        chosen = guards.transitions[guards.owner[first.index]]
        y, yp = self.forms[self.mode].at_event(solution, first)
        for event in fired:
            other = guards.transitions[guards.owner[event.index]]
            if other is not chosen:
                self._note(self.t, str(other.name), "not taken", None, y, None, event.direction)
        values = guards.evaluate(self.t, y, yp)
        self._take(
            chosen, "transition", y, yp, first.direction, {guards.names[e.index]: values[e.index] for e in fired}
        )
        self._look_out(chosen)

    def _take(self, transition: Transition, kind: str, y, yp, direction: int, fired: dict[str, float], at=None):
        """Change the mode."""
        source, t = self.mode, self.t
        target = choose_target(transition, self.forms[source], t, y, yp, self.problem.modes)
        if target is None:
            self._note(t if at is None else at, transition.name, kind, None, y, None, direction)
            raise _Stop(True, "event", f"The transition '{transition.name}' ended the run at t = {t:.10g}.")
        begin = carry_over(transition, source, target, self.forms, t, y, yp)
        try:
            begin = self._consistent(target, begin)
        except InconsistentInitialError as error:
            raise _Stop(False, "failed", messages.refused(transition.name, source, target, t, str(error))) from error
        self._note(t if at is None else at, transition.name, kind, target, y, begin.y, direction)
        crossed = transition.name if kind == "transition" else None
        self.mode, self.begin, self.before = target, begin, Before(source, y, yp, fired, crossed)
        self.came_by = (transition.name, source)
        if self.store.n_events >= self.max_events:
            raise _Stop(False, "failed", messages.too_many(self.store.n_events, t))

    def _note(self, t: float, name, kind: str, target: str | None, before, after, direction: int):
        self.store.record(HybridEvent(t, str(name), kind, self.mode, target, before, after, direction))

    def _look_out(self, transition: Transition):
        """See whether transitions accumulate or chatter."""
        point = self.watch.add(str(transition.name), self.t)
        if point is not None:
            leaving = self.problem.accumulation_from(self.mode)
            if leaving is None:
                message = messages.zeno(transition.name, point, self.mode, self.store.n_events)
                raise _Stop(False, "zeno", message)
            self.watch.forget()
            self._take(leaving, "zeno", self.begin.y, self.begin.yp, 0, {}, at=point)
        elif self.watch.is_chattering(self.t):
            names = list(dict.fromkeys(event.name for event in self.store.events[-20:])) or [str(transition.name)]
            raise _Stop(False, "chattering", messages.chattering(names, self.t, self.store.n_events))

    # --- one stretch ------------------------------------------------------------------------------------------------

    def _consistent(self, mode: str, begin: Begin) -> Begin:
        """What has to be known before the integration: projections that were asked for, y' of implicit problems."""
        form = self.forms[mode]
        needed = begin.yp is None if form.implicit else begin.correct
        return make_consistent(form, self.t, begin, self._weights(mode, begin.y)) if needed else begin

    def _weights(self, mode: str, y: np.ndarray) -> np.ndarray:
        """rtol |y| + atol; tolerances that are given for other unknowns count with their extremes."""
        options = self.options[mode]
        rtol, atol = np.asarray(options["rtol"], dtype=float), np.asarray(options["atol"], dtype=float)
        rtol = rtol if rtol.shape in ((), y.shape) else rtol.min()
        atol = atol if atol.shape in ((), y.shape) else atol.max()
        return np.maximum(rtol * np.abs(y) + atol, 1e-300)

    def _integrate(self, events) -> Solution:
        from daedal.solve import solve

        form, begin, first = self.forms[self.mode], self.begin, self.came_by is None
        span = (self.t, self.span[1])
        if self.next_time and self.times is not None and self.times[self.next_time - 1] == self.t:
            self.store.drop_last_point()  # a time of t_eval at a transition gets the state after it
            self.next_time -= 1
        options = dict(
            self.options[self.mode],
            t_eval=None if self.times is None else self.times[self.next_time :],
            events=events,
            first_step=self.first_step if first else self._first_step(),
        )
        initial = self.given if first else form.initial(begin.y, begin.yp)
        try:
            return solve(form.problem, span, initial, correct_initial=begin.correct, **options)
        except InconsistentInitialError as error:
            if self.came_by is None:
                raise
            try:
                self.begin = make_consistent(form, self.t, begin, self._weights(self.mode, begin.y))
            except InconsistentInitialError:
                message = messages.refused(*self.came_by, self.mode, self.t, str(error))
                raise _Stop(False, "failed", message) from error
        return solve(form.problem, span, form.initial(self.begin.y, self.begin.yp), correct_initial=True, **options)

    def _first_step(self) -> float | None:
        step = self.steps.get(self.mode)
        return None if step is None else min(step, 0.5 * self._left())

    def _keep(self, solution: Solution, t: float):
        """Store a stretch that ended at `t`, and learn from its steps."""
        steps, length = solution.stats.steps, abs(t - self.t)
        if steps and length > 0.0:
            self.typical_step = length / steps
            if "DASSL" not in solution.method:
                self.steps[self.mode] = self.typical_step
        self.store.add(self.mode, self.t, t, solution)
        if self.times is not None:
            self.next_time += solution.t.size


def _check_count(value) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 1:
        raise InvalidProblemError(f"max_events must be a positive integer, got {value!r}")
    return int(value)


def _smallest(rtol) -> float:
    try:
        return float(np.min(rtol))
    except (TypeError, ValueError):
        raise InvalidProblemError(f"rtol must be a number or a vector of numbers, got {rtol!r}") from None


def _events_by_mode(events, problem: HybridProblem) -> dict[str, list[Event]]:
    """The user's events for each mode: the same for all, or given in a dict."""
    if not isinstance(events, dict):
        return dict.fromkeys(problem.modes, _named(events))
    for name in events:
        if name not in problem.modes:
            raise InvalidProblemError(f"events: {name!r} is not a mode; there are {', '.join(problem.modes)}")
    return {name: _named(events.get(name)) for name in problem.modes}


def _named(events) -> list[Event]:
    """Events with names that do not depend on how many guards stand before them."""
    checked = [_as_event(event, i) for i, event in enumerate(_as_list(events))]
    return [event if event.name else replace(event, name=_title(event, i)) for i, event in enumerate(checked)]
