"""Simulation of a hybrid problem: one call of the driver for every arc.

An arc ends at a transition, a break point, a terminal event or the end of the interval.
"""

from __future__ import annotations

import difflib
import itertools
import time
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np

from daedal.common.progress import Progress
from daedal.driver.request import Request
from daedal.errors import InconsistentInitialError, IntegrationError, InvalidProblemError
from daedal.events.accumulation import AccumulationWatch
from daedal.hybrid import hybrid_messages as messages
from daedal.hybrid.guards import Guards, GuardsAtStart, Instant, ModeEnd, events_by_mode, names_of
from daedal.hybrid.hybrid_constants import IDLE, MOST_IMMEDIATE, SHORT
from daedal.hybrid.hybrid_problem import HybridProblem
from daedal.hybrid.hybrid_solution import HybridSolution, OutputStore
from daedal.hybrid.mode_plans import ByMode, HybridPlan, ModeSettings, RunSettings
from daedal.hybrid.mode_state import BoundTransition, ModeInitial, StateForm, make_consistent, some, values_by_name
from daedal.hybrid.segments import HybridEvent
from daedal.problems import ImplicitDAE, SemiExplicitDAE
from daedal.problems.checks import check_real
from daedal.problems.named_inputs import at_piece
from daedal.solution.solution import Solution

_MOST_COMPARED = 1000  # number of modes up to which an unknown name is compared with all mode names
ONLY_MODE = "problem"  # name of the mode of a problem without modes


def solve_hybrid(request: Request, plan: HybridPlan | None = None) -> HybridSolution:
    """Solve a hybrid problem; see :func:`daedal.solve` and :class:`HybridProblem`."""
    if request.settings.fixed_step is not None:
        raise InvalidProblemError("fixed_step: transitions cannot be located with constant steps; omit it")
    return _run(request, [request.span], plan or HybridPlan(request.problem))


def solve_between(request: Request, breakpoints, plan: HybridPlan | None = None) -> HybridSolution:
    """Solve a problem of any class segment by segment, between break points; see `breakpoints` of :func:`daedal.solve`.

    The method restarts with every segment, at order 1.
    """
    request, pieces = in_pieces(request, breakpoints)
    return _run(request, pieces, plan or HybridPlan(request.problem))


def in_pieces(request: Request, breakpoints, option: str = "breakpoints") -> tuple[Request, list[Piece]]:
    """Return the request in hybrid form, and the intervals between its break points, which `option` contains."""
    for name, given in (
        ("t_stop", request.t_stop != request.span[1]),
        ("fixed_step", request.settings.fixed_step is not None),
    ):
        if given:
            raise InvalidProblemError(f"{name} and {option} exclude each other; omit one of them")
    pieces = pieces_between(request.span, checked_breakpoints(breakpoints, request.span))
    if not isinstance(request.problem, HybridProblem):
        only = HybridProblem({ONLY_MODE: request.problem})
        request = request.changed(problem=only, initial=(ONLY_MODE, request.initial))
    return request, pieces


def _run(request: Request, pieces: list[Piece], plan: HybridPlan) -> HybridSolution:
    progress = Progress(request.progress, request.span)
    try:
        return HybridRun(request, pieces, progress, plan).to_the_end()
    finally:
        progress.close()


class RunStopped(Exception):
    """Raised to end the run with a status and a message."""

    def __init__(self, success: bool, status: str, message: str):
        super().__init__(message)
        self.success, self.status = success, status


class HybridRun:
    """State of a run: the time, the segment between break points, the mode and its initial values."""

    def __init__(self, request: Request, pieces: list[Piece], progress: Progress, plan: HybridPlan):
        problem, settings = request.problem, RunSettings.of(request.settings)
        self.request, self.problem, self.progress, self.plan = request, problem, progress, plan
        self.max_events = settings.max_events
        modes = problem.modes
        self.settings = ByMode(modes, lambda name: ModeSettings(request, settings.common, name))
        self.forms = ByMode(modes, lambda name: StateForm(modes[name].problem))
        self.events = events_by_mode(request.settings.events, self.forms)
        self.guards = ByMode(modes, lambda name: Guards(name, self.forms, problem.transitions_from(name), plan.guards))
        for name in problem.mode_names:  # report errors of all modes at the start
            _ = self.settings[name], self.events[name], self.guards[name]
        request.event_names[:] = names_of(self.events[name] for name in problem.mode_names)
        keeps_segments = request.times is None or settings.common.dense_output is not False
        self.store = OutputStore(problem, self.forms, keeps_segments, settings.record_events)
        self.watch = AccumulationWatch(request.span, settings.rtol, self.max_events)
        self.shortest = FEWEST_SPACINGS * float(np.spacing(max(map(abs, request.span))))
        self.pieces = pieces
        self.forms_here = self.forms  # forms with the inputs of the current segment
        self.piece = 0
        self.t = request.span[0]
        self.next_time = 0  # index of the next time in t_eval
        self.adds_end = False  # whether the end of the segment is computed although it is not in t_eval
        self.typical_step = 1e-3 * abs(request.span[1] - request.span[0])
        self.steps: dict[str, float] = {}  # typical steps of one-step methods, by mode
        self.before: ModeEnd | None = None
        self.ended: np.ndarray | None = None  # values of the guards one float before a break point
        self.came_by: BoundTransition | None = None  # the last transition in this segment
        self._take_inputs()
        initial = values_by_name(problem, request.span[0], request.initial)
        self._begin(problem.entry(request.span, initial), settings.common.correct_initial)

    def _begin(self, initial, correct: bool):
        """Set the initial mode, and store its initial values as given."""
        if not isinstance(initial, (tuple, list)) or len(initial) != 2 or not isinstance(initial[0], str):
            raise InvalidProblemError(
                "initial of a hybrid problem must be (mode, initial values), for example "
                f"({next(iter(self.problem.modes))!r}, ...); the modes are {some(self.problem.modes)}"
            )
        self.mode, given = initial
        if self.mode not in self.problem.modes:
            known = list(itertools.islice(self.problem.modes, _MOST_COMPARED))
            close = difflib.get_close_matches(self.mode, known, n=1, cutoff=0.6)
            hint = f"did you mean '{close[0]}'? " if close else ""
            raise InvalidProblemError(
                f"initial: '{self.mode}' is not a mode; {hint}the modes are {some(self.problem.modes)}"
            )
        form = self.forms[self.mode]
        self.given: Any = form.completed(given)
        y, yp, incomplete = form.stack(self.given, f"initial of mode '{self.mode}': ")
        self.begin = ModeInitial(y, yp, correct)
        if correct or incomplete:
            here, weights = self.forms_here[self.mode], self.settings[self.mode].weights(y)
            found = make_consistent(here, self.t, ModeInitial(y, yp, True), weights)
            self.begin = ModeInitial(found.y, found.yp, correct)

    # --- the loop ---------------------------------------------------------------------------------------------------

    def to_the_end(self) -> HybridSolution:
        """Compute arc by arc, until an event or a failure ends the run."""
        success, status = False, "failed"
        cause: BaseException | None = None
        try:
            while True:
                self._stretch()
        except RunStopped as stop:
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
            with suppress(AttributeError, TypeError):  # exceptions with slots accept no attributes
                error.solution = self._finish(False, "failed", message)  # type: ignore[attr-defined]
            raise
        solution: Any = self._finish(success, status, message)
        if status in ("failed", "chattering"):
            raise IntegrationError(message, solution) from cause
        return solution

    def _finish(self, success: bool, status: str, message: str) -> HybridSolution:
        return self.store.finish(success, status, message, time.perf_counter() - self.request.began)

    def _stretch(self):
        """Take immediate transitions, then integrate to the next transition or to the end of the segment."""
        if self._left() < self.shortest:
            self._end_piece(Instant(self.t, self.begin.y, self.begin.yp))
            return
        start, guards, form = self._enter(), self.guards[self.mode], self.forms[self.mode]
        own = self.events[self.mode].still_to_come(self._now())
        solution = self._integrate([guards.event(start), *own] if len(guards) else own)
        for event in solution.events:
            if event.index >= len(guards):
                if event.kind == "event":
                    self.events[self.mode].count(event.name)
                before = form.at_event(solution, event)[0]
                self._note(event.t, event.name, event.kind, None, before, None, event.direction, event.located)
        fired = [event for event in solution.events if event.terminal] if solution.status == "event" else []
        if not fired:
            self._reach_end(solution)
            return
        t = fired[-1].t
        self._keep(solution, t)
        self.t = t
        self.progress.update(t)
        stopping = next((event.name for event in fired if event.index >= len(guards)), None)
        if stopping is not None:
            raise RunStopped(True, "event", messages.event_stopped(stopping, t))
        first = min(fired, key=lambda event: event.index)
        crossed = [(event.index, event.direction) for event in fired]
        self._take_first(crossed, *form.at_event(solution, first), first.located)

    def _left(self) -> float:
        return abs(self.pieces[self.piece][1] - self.t)

    def _now(self) -> Instant:
        return Instant(self.t, self.begin.y, self.begin.yp)

    def _look_ahead(self) -> float:
        """A typical step within the segment, with the sign of the direction of integration."""
        return self.request.sign * min(self.typical_step, self._left())

    # --- transitions ------------------------------------------------------------------------------------------------

    def _enter(self) -> GuardsAtStart:
        """Take the transitions that fire immediately; returns the guards at the start of the lasting mode."""
        passed: list[tuple[str, str, np.ndarray]] = []
        while True:
            guards, y, yp = self.guards[self.mode], self.begin.y, self.begin.yp
            guards.prepare(self.t, y, yp)
            weights = self.settings[self.mode].weights(y)
            start = guards.at_start(self.t, self.begin, weights, self._look_ahead(), self.before, self.ended)
            self.ended = None
            if start.crossed:
                self._take_first(start.crossed, y, yp, "known")
                continue
            if start.immediate is None:
                return start
            seen = any(mode == self.mode and np.array_equal(y, state) for mode, _, state in passed)
            if seen or len(passed) >= MOST_IMMEDIATE:
                raise RunStopped(False, "failed", messages.loop(passed, self.mode, self.forms[self.mode], y, self.t))
            transition = guards.transitions[guards.owner[start.immediate]]
            passed.append((self.mode, transition.name, y))
            self._take(transition, "immediate", y, yp, int(guards.direction[start.immediate]), {})

    def _take_first(self, fired: list[tuple[int, int]], y: np.ndarray, yp: np.ndarray | None, located: str):
        """Take the first of the transitions whose guards (entry, direction) changed sign; record the others."""
        guards = self.guards[self.mode]
        entry, direction = min(fired)
        chosen = guards.transitions[guards.owner[entry]]
        for i, side in fired:
            other = guards.transitions[guards.owner[i]]
            if other is not chosen:
                self._note(self.t, other.name, "not taken", None, y, None, side, located)
        values = guards.evaluate(self.t, y, yp)
        at_zero = {guards.names[i]: values[i] for i, _ in fired}
        self._take(chosen, "transition", y, yp, direction, at_zero, located=located)
        self._look_out(chosen)

    def _take(
        self,
        transition: BoundTransition,
        kind: str,
        y,
        yp,
        direction: int,
        fired: dict[str, float],
        at=None,
        located="known",
    ):
        source, t = self.mode, self.t
        target = transition.target(t, y, yp)
        if target is None:
            self._note(t if at is None else at, transition.name, kind, None, y, None, direction, located)
            raise RunStopped(True, "event", messages.transition_ended(transition.name, t))
        begin = transition.carry_over(target, t, y, yp)
        try:
            begin = self._consistent(target, begin)
        except InconsistentInitialError as error:
            raise self._refused(transition.name, source, target, error) from error
        idle = target == source and np.max(np.abs(begin.y - y)) <= IDLE * np.max(np.abs(y))
        if not idle or self.problem.records_idle:
            self._note(t if at is None else at, transition.name, kind, target, y, begin.y, direction, located)
        else:
            self.store.n_events += 1
        crossed = transition.name if kind == "transition" else None
        self.mode, self.begin, self.before = target, begin, ModeEnd(source, y, yp, fired, crossed)
        self.came_by = transition
        if idle:
            # round-off may have ended the arc, so that its step sizes are unsuitable for the next first step
            self.steps.pop(target, None)
        if self.store.n_events >= self.max_events:
            raise RunStopped(False, "failed", messages.too_many(self.store.n_events, t))

    def _note(self, t: float, name: str, kind: str, target, before, after, direction: int, located="known"):
        self.store.record(HybridEvent(t, name, kind, self.mode, target, before, after, direction, located=located))

    def _look_out(self, transition: BoundTransition):
        """If transitions accumulate, take the one defined for that or stop the run; stop it if they chatter."""
        point = self.watch.add(transition.name, self.t)
        if point is not None:
            leaving = self.problem.accumulation_from(self.mode)
            if leaving is None and self.problem.accumulation_from(transition.source) is not None:
                self.watch.forget()  # the last transition has left the modes in which transitions accumulate
                return
            if leaving is None:
                message = messages.zeno(transition.name, point, self.mode, self.store.n_events)
                raise RunStopped(False, "zeno", message)
            self.watch.forget()
            bound = BoundTransition(leaving, self.mode, self.forms)
            self._take(bound, "zeno", self.begin.y, self.begin.yp, 0, {}, at=point)
        elif self.watch.is_chattering(self.t):
            names = list(dict.fromkeys(event.name for event in self.store.events[-20:])) or [transition.name]
            raise RunStopped(False, "chattering", messages.chattering(names, self.t, self.store.n_events))

    # --- break points -----------------------------------------------------------------------------------------------

    def _reach_end(self, solution: Solution):
        """Store an arc that ended with its segment, or by an interrupt of the user, which is then raised."""
        interrupted = solution.status == "interrupted"
        t = self.pieces[self.piece][1]
        if interrupted:
            t = float(solution.t[-1]) if solution.t.size else self.t
        self._keep(solution, t)
        self.t = t
        if interrupted:
            raise KeyboardInterrupt
        self._end_piece(None if self._is_last() else Instant(t, *self.forms[self.mode].at_end(solution)))

    def _take_inputs(self):
        """Set the inputs of the equations to those of the segment."""
        problem = at_piece(self.problem, min(self.pieces[self.piece]))
        if problem is not self.problem:
            modes = problem.modes
            self.forms_here = ByMode(modes, lambda name: StateForm(modes[name].problem))
            self.plan = self.plan.with_problem(problem)

    def _request_of(self, mode: str) -> Request:
        """Request of arcs in a mode, with the inputs of this segment."""
        return replace(self.settings[mode].request, problem=self.forms_here[mode].problem)

    def _is_last(self) -> bool:
        return self.piece == len(self.pieces) - 1

    def _end_piece(self, end: Instant | None):
        """End the run, or continue after the break point, with the events whose functions change sign across it."""
        if end is None or self._is_last():
            raise RunStopped(True, "finished", messages.end_reached(self.request.span[1]))
        form, guards = self.forms[self.mode], self.guards[self.mode]
        self.piece += 1
        self._take_inputs()
        self.t = self.pieces[self.piece][0]
        self.progress.update(self.t)
        self.before = self.came_by = None
        self.ended = guards.evaluate(end.t, form.seen(end.y), end.yp) if len(guards) else None
        self.begin = self._after(end.y)
        fired = self.events[self.mode].across(end, self._now(), self._look_ahead())
        for event in fired:
            self._note(self.t, event.name, "event", None, self.begin.y, None, event.direction)
        stopping = next((event.name for event in fired if event.terminal), None)
        if stopping is not None:
            times = self.request.times
            if times is None or (self.next_time < times.size and times[self.next_time] == self.t):
                self.store.add_point(self.mode, self.t, self.begin.y)
            raise RunStopped(True, "event", messages.event_stopped(stopping, self.t))

    def _after(self, y: np.ndarray) -> ModeInitial:
        """Consistent values at a break point, extrapolated from just after it, where conditions on t have changed."""
        form = self.forms_here[self.mode]
        if form.mechanical or form.ordinary:
            return self._consistent(self.mode, ModeInitial(y, None, not form.mechanical))
        ahead = self.request.sign * _BEYOND * float(np.spacing(max(map(abs, self.request.span))))
        form, weights = self._in_machine_code(self.mode, y), self.settings[self.mode].weights(y)
        found = make_consistent(form, self.t + ahead, ModeInitial(y, None, True), weights)
        if found.yp is None:
            return found
        return replace(found, y=np.where(found.y == y, y, found.y - ahead * found.yp))

    def _in_machine_code(self, mode: str, y: np.ndarray) -> StateForm:
        """The form of a mode, with machine code and exact derivatives if available."""
        form = self.forms_here[mode]
        if form.ordinary or not isinstance(form.problem, (ImplicitDAE, SemiExplicitDAE)):
            return form
        return StateForm(self.plan.in_machine_code(mode, self._request_of(mode), self.t, y))

    # --- one stretch ------------------------------------------------------------------------------------------------

    def _consistent(self, mode: str, begin: ModeInitial) -> ModeInitial:
        """Complete the initial values: project them if requested, and compute y' of implicit problems."""
        form = self.forms_here[mode]
        needed = begin.yp is None if form.implicit else begin.correct
        if needed and form.mechanical:
            moved = self.plan.settled(mode, self._request_of(mode), self.t, begin.y)
            if moved is not None:
                return ModeInitial(moved, None, True, found=True)
        if not needed:
            return begin
        return make_consistent(
            self._in_machine_code(mode, begin.y), self.t, begin, self.settings[mode].weights(begin.y)
        )

    def _integrate(self, events) -> Solution:
        form, begin = self.forms[self.mode], self.begin
        if self.next_time and self.request.times is not None and self.request.times[self.next_time - 1] == self.t:
            self.store.drop_last_point()  # at a transition, an output time gets the state after it
            self.next_time -= 1
        is_first = self.came_by is None and self.given is not None
        initial = self.given if is_first else form.initial(begin.y, begin.yp)
        self.given = None
        request = self.settings[self.mode].request.changed(
            problem=self.forms_here[self.mode].problem,
            span=(self.t, self.pieces[self.piece][1]),
            initial=initial,
            times=self._times(),
            t_stop=self.request.t_stop if self._is_last() else self.pieces[self.piece][1],
            began=time.perf_counter(),
            events=events or None,
            first_step=self._first_step(is_first),
            correct_initial=begin.correct and not (begin.found and form.implicit),
        )
        try:
            return self.plan.stretch(self.mode, request)
        except InconsistentInitialError as error:
            if self.came_by is None and not begin.found:
                raise
            self.begin = self._corrected(error)
        initial = form.initial(self.begin.y, self.begin.yp)
        return self.plan.stretch(self.mode, request.changed(initial=initial, correct_initial=True))

    def _corrected(self, refusal: InconsistentInitialError) -> ModeInitial:
        """Correct initial values that the driver rejected, if the tolerances explain the violation."""
        begin, came = self.begin, self.came_by
        try:
            return make_consistent(self.forms_here[self.mode], self.t, begin, self.settings[self.mode].weights(begin.y))
        except InconsistentInitialError:
            if came is None:
                raise refusal from None
            raise self._refused(came.name, came.source, self.mode, refusal) from refusal

    def _refused(self, name: str | None, source: str, target: str, refusal: InconsistentInitialError) -> RunStopped:
        """End of a run whose transition leads to a state that violates the next mode's equations."""
        at_start = self.t == self.request.span[0]
        message = messages.refused(name, source, target, self.t, str(refusal), at_start=at_start)
        return RunStopped(False, "failed", message)

    def _times(self) -> np.ndarray | None:
        """Times of t_eval in the rest of the segment, and the end of the segment."""
        if self.request.times is None:
            return None
        times, end = self.request.times[self.next_time :], self.pieces[self.piece][1]
        self.adds_end = False
        if self._is_last():
            return times
        inside = times[self.request.sign * times <= self.request.sign * end]
        self.adds_end = not inside.size or bool(inside[-1] != end)
        return np.append(inside, end) if self.adds_end else inside

    def _first_step(self, is_first: bool) -> float | None:
        """The given first step for the first arc; after a transition, the mean step of the last arc in this mode."""
        given = self.request.settings.first_step
        if is_first:
            return None if given is None else min(given, self._left())
        step = None if self.came_by is None else self.steps.get(self.mode)
        return None if step is None else min(max(step, SHORT * abs(self.t)), 0.5 * self._left())

    def _keep(self, solution: Solution, t: float):
        """Store an arc that ended at `t`, and record its step sizes."""
        steps, length = solution.stats.steps, abs(t - self.t)
        if steps and length > 0.0:
            self.typical_step = length / steps
            if "DASSL" not in solution.method:
                self.steps[self.mode] = self.typical_step
        count = solution.t.size
        if self.adds_end and count and solution.t[-1] == self.pieces[self.piece][1]:
            count -= 1
        self.next_time += count
        self.store.add(self.mode, self.t, t, solution, count)


# --- known break points: the segments of the interval between them ---------------------------------------------------


_BEYOND = 64.0  # in floating-point spacings, distance after a break point at which conditions on t have their new value
FEWEST_SPACINGS = 1.1e4  # segments shorter than this, in floating-point spacings, cannot be integrated

Piece = tuple[float, float]


def checked_breakpoints(breakpoints, span: Piece) -> list[float]:
    """All break points inside the interval, in increasing order."""
    given = breakpoints if isinstance(breakpoints, (list, tuple)) else [breakpoints]
    found = [np.empty(0)]
    for item in given:
        points = check_real(getattr(item, "times", item), "breakpoints", "be tables or times")
        if not np.isfinite(points).all():
            raise InvalidProblemError("breakpoints holds values that are not finite")
        found.append(points.reshape(-1))
    points = np.unique(np.concatenate(found))
    return points[(points > min(span)) & (points < max(span))].tolist()


def pieces_between(span: Piece, points: list[float]) -> list[Piece]:
    """The intervals between break points, in run order; points that are too close are merged.

    Each segment ends one float before a break point, and the next begins on it: right-continuous functions, such as
    tables, are never evaluated on the wrong side.
    """
    low, high = min(span), max(span)
    shortest = FEWEST_SPACINGS * float(np.spacing(max(abs(low), abs(high))))
    begins = [low]
    for point in points:
        if point - begins[-1] > shortest and high - point > shortest:
            begins.append(point)
    ends = [float(np.nextafter(point, -np.inf)) for point in begins[1:]] + [high]
    pieces = list(zip(begins, ends, strict=True))
    return pieces if span[1] > span[0] else [(b, a) for a, b in reversed(pieces)]
