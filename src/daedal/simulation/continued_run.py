"""A run that continues from call to call: the method keeps its history, its step size and its matrices.

The driver prepares the run as for :func:`daedal.solve` and passes it on before its first step
(:class:`daedal.driver.run_segments.Begun`). From then on this module replaces the loop over segments: it sets a new end
for every call, and starts the next segment after a switch, a change of method or a jump of an input.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from math import inf
from typing import Any

import numpy as np

from daedal.common.progress import Progress
from daedal.driver.mechanism import learned
from daedal.driver.reduced_plan import ReducedRunState
from daedal.driver.request import Request
from daedal.driver.run_segments import Begun, PreparedSegment, RunState, Segment, blas_threads
from daedal.driver.solver import plan_for
from daedal.errors import InconsistentInitialError, IntegrationError, InvalidProblemError
from daedal.events.event import EventRecord
from daedal.hybrid.mode_state import ModeInitial, StateForm, make_consistent
from daedal.kernels.endings import Ending
from daedal.methods.advance import go_on, pass_event, read_point, set_end
from daedal.methods.explicit.runge_kutta import ExplicitRungeKutta
from daedal.methods.task import Outcome
from daedal.problems import ImplicitDAE, SemiExplicitDAE
from daedal.problems.symbols import Driven
from daedal.simulation.held_inputs import HeldInputs
from daedal.solution.constrained_solution import ConstrainedSolution

_FINISHED, _EVENT_STOP, _MAX_STEPS = int(Ending.FINISHED), int(Ending.EVENT_STOP), int(Ending.MAX_STEPS)
_NO_TIMES = np.empty(0)
# distance to the end of the interval of the request, as a fraction of its length, below which an input jump restarts
# the run
_CLOSE = 1e-6


class ContinuedRun:
    """A run of one problem, continued to increasing times.

    Parameters
    ----------
    request : Request
        The start, and an interval that only sets scales, since the run has no end.
    held : HeldInputs
        The numbers of the problem that change between calls.
    stated : object
        The problem with its original parameters, whose plan is used for all values of inputs.
    exact : bool
        Whether steps end where calls do; otherwise the method chooses its steps, and values between them are
        interpolated.
    """

    def __init__(self, request: Request, held: HeldInputs, stated: Any, *, exact: bool):
        self.request, self._held, self._stated, self.exact = request.changed(dense_output=False), held, stated, exact
        self.sign, self.problem = request.sign, request.problem
        self.fixed = request.settings.fixed_step
        self.t = request.span[0]
        self.events: list[EventRecord] = []
        self.plan: Any = None
        self._threads = blas_threads(getattr(request.problem, "n", 0))
        self._begin(self.request)

    # --- the start of a run and of its segments -----------------------------------------------------------------------

    def _begin(self, request: Request):
        plan = self._plan(request)
        try:
            plan.solve(replace(request, times=_NO_TIMES, begins_only=True, t_stop=request.span[1]))
        except Begun as begun:
            self.plan, self._carried_back = plan, begun.carried_back
            self._take(begun.run_state, begun.request)
            return
        raise InvalidProblemError(f"a {type(request.problem).__name__} with these options cannot be simulated by steps")

    def _plan(self, request: Request) -> Any:
        """The plan of the problem; a problem with inputs uses the plan of the original problem with changed values."""
        if self.plan is not None and self.plan.is_current():
            return self.plan
        plan = None
        if self._stated is not request.problem and isinstance(request.problem.params, Driven):
            plan = plan_for(self._stated, request.settings).with_problem(request.problem)
        return plan or plan_for(request.problem, request.settings)

    def _take(self, run_state: RunState, request: Request):
        self.run_state, self._inner_request = run_state, request
        self._earlier: list[Segment] = []
        self._open()

    def _open(self, first_step: float | None = None):
        """Start the next segment."""
        tracker = getattr(self.run_state, "tracker", None)
        if tracker is None:  # the run has no end, so one is set ahead
            length = self.request.span[1] - self.request.span[0]
            state: Any = self.run_state
            state.request = state.request.changed(span=(self.t, self.t + length))
        with self._threads:
            prepared: PreparedSegment = self.run_state.prepared(self._earlier, Progress(False, self.request.span))
            task = prepared.task
            if first_step is not None and task.fixed_step is None and prepared.ready.constant_order is not None:
                task.first_step = first_step
            task.t_eval = np.full(1, self.t)
            prepared.ready.reusable = False  # saved states refer to this memory
            prepared.ready.open(task)
        self._prepared, self._ready, self._task, self.t = prepared, prepared.ready, task, task.t_span[0]
        ready, n = prepared.ready, prepared.ready.equations.n
        self._address, self._record = ready.address, ready.record
        self._has_events = task.switching is not None
        self._y, self._yp = task.y0[:n].copy(), task.yp0[:n].copy()
        self._y_address, self._yp_address = self._y.ctypes.data, self._yp.ctypes.data
        # An explicit method applies other inputs by evaluating its first slope again.
        self._explicit = isinstance(ready.method, ExplicitRungeKutta)
        fields = ready.record.data.dtype.fields
        self._slope_known = ready.record.data.view(np.int64)[fields["slope_known"][1] // 8 :][:1]
        self._reached = ready.record.data.view(np.float64)[fields["t"][1] // 8 :][:1]
        self._held.bind([ready.bridge, *(x.bridge for x in (ready.switching, ready.projection) if x is not None)])
        # Switches are tracked up to the end of the interval of the request, where the run restarts.
        self._limit = inf * self.sign if tracker is None else task.t_span[1]
        self._own_steps, self._slope_is_old, self.over = task.max_steps, False, False
        own = getattr(self.run_state, "_n_own", None)
        self._n_own = own if tracker is not None and own is not None else 1 << 60
        recovers = getattr(prepared.equations, "recover", None) is not None
        foreign = self._carried_back is not None or isinstance(self.run_state, ReducedRunState)
        projected = ready.projection is not None
        # whether the leading unknowns are those of the problem, in order
        self.is_plain = not (recovers or foreign or projected)
        # whether compiled code alone can handle a call, since no events, limits or fixed steps interrupt it
        self.is_quick = self._limit in (inf, -inf) and self._own_steps is None and not self._has_events
        self.is_quick = self.is_quick and self.fixed is None and isinstance(self._threads, nullcontext)

    # --- onwards ------------------------------------------------------------------------------------------------------

    def go_to(self, t: float, most_steps: int = 0) -> bool:
        """Integrate to t; return False if a terminal event has stopped the run before t.

        Calls without events or segment changes use only compiled code.
        """
        if self.is_quick:
            stop = t if self.exact else self._limit
            reason = go_on(self._address, t, stop, most_steps, self._y_address, self._yp_address)
            if reason == _FINISHED:
                self.t, self._slope_is_old = t, False
                return True
            with self._threads:
                reached = self._go(t, most_steps, int(reason))
        else:
            with self._threads:
                reached = self._go(t, most_steps, None)
        if reached is None:
            raise IntegrationError(
                f"max_steps = {most_steps} steps reached t = {self.t:.10g}, not {t:.10g}. The next call continues from "
                "there. Remedy: increase max_steps, loosen the tolerances, or make shorter calls",
                self.solution(),
            )
        return reached

    def _go(self, t: float, most_steps: int, reason: int | None) -> bool | None:
        """Integrate to t after a call of compiled code that returned `reason`, or None before the first call.

        False if a terminal event has stopped the run before t, None if `most_steps` steps did not suffice.
        """
        left, own = most_steps, False
        while True:
            if self.over:
                self._begin_again()
                reason = None
            end = t if self.sign * (t - self._limit) < 0.0 else self._limit
            ready, task, began = self._ready, self._task, self._steps_taken()
            if reason is None:
                own = self._set_end(end, left)
            task.t_span = task.t_span[0], end
            task.t_stop = end if self.exact else self._limit
            reason, interrupted = ready.proceed(task, reason)
            if self._has_events and reason == _EVENT_STOP and self._is_stopped_by_user():
                return False
            if reason == _FINISHED and not interrupted:
                self._collect()
                self._read(end)
                if end == t:
                    return True
            if reason == _MAX_STEPS and not interrupted and not own:
                self._collect()
                self._read(float(self._reached[0]))
                return None
            if most_steps:
                left = max(1, left - (self._steps_taken() - began))
            self._next_segment(reason, interrupted)
            reason = None

    def _set_end(self, end: float, most_steps: int) -> bool:
        """Set the end of a call; return whether the driver limits the steps more than the caller."""
        if self.fixed is not None:
            steps = (end - self._task.t_span[0]) / (self.sign * self.fixed)
            if abs(steps - round(steps)) > 1e-6:
                raise InvalidProblemError(
                    f"t = {end:.10g} is not a whole number of steps of fixed_step = {self.fixed:g} after "
                    f"t = {self._task.t_span[0]:.10g}"
                )
            self._record["last_step"] = round(steps)
        own = False
        if self._own_steps is not None:
            left = max(self._own_steps - self._steps_taken(), 1)
            own = not most_steps or left < most_steps
            most_steps = left if own else most_steps
        set_end(self._address, end, end if self.exact else self._limit, most_steps)
        return own

    def internal_step(self) -> bool:
        """Take one step of the method, or the rest of the last one; return False if a terminal event has stopped the
        run.
        """
        if self.sign * (float(self._reached[0]) - self.t) > 0.0:
            return self.go_to(float(self._reached[0]))
        exact, self.exact = self.exact, False
        t0, t1 = self.request.span
        far = self.t + (t1 - t0) if self._limit in (inf, -inf) else self._limit
        try:
            with self._threads:
                return self._go(far, 1, None) is not False
        finally:
            self.exact = exact

    def _steps_taken(self) -> int:
        return int(self._record["steps"])

    # --- points -------------------------------------------------------------------------------------------------------

    def _read(self, t: float):
        read_point(self._address, t, self._y_address, self._yp_address)
        self.t, self._slope_is_old = t, False

    def _collect(self):
        if self._has_events:
            for event in self._ready.take_events(self._task):
                self._note(event)

    def _note(self, event: EventRecord):
        if event.kind == "event" and event.index >= self._n_own:
            return
        self.events.append(replace(event, y=self._users(event.t, event.y), yp=event.yp.copy()))

    def _is_stopped_by_user(self) -> bool:
        """Whether one of the user's terminal events has stopped the run; the run can continue after it."""
        found = self._ready.take_events(self._task)
        last = found[-1] if found else None
        if last is None or not any(e.terminal and e.index < self._n_own and e.t == last.t for e in found):
            self._ready.return_events(found)
            return False
        for event in found:
            self._note(event)
        self._read(last.t)
        if pass_event(self._address) != 0:
            self.over = True
        return True

    def _users(self, t: float, y: np.ndarray) -> np.ndarray:
        """The state of the problem, or the unknowns of the method if these differ."""
        states = getattr(self._prepared.equations, "states", None)
        return y.copy() if states is None else states(np.array([t]), np.ascontiguousarray(y[:, None]))[0].copy()

    def unknowns(self) -> np.ndarray:
        """The unknowns of the method at t; valid up to the next call."""
        return self._y

    def outcome(self) -> Outcome:
        """The point at t in the form of a task's result."""
        t, y, yp, counts = self.t, self._y.copy(), self._yp.copy(), self._ready.counts()
        ordinary = getattr(getattr(self.run_state, "plan", None), "ordinary", None)
        if self._slope_is_old and ordinary is not None:
            yp = ordinary.slope(t, y)
        return Outcome(
            reason=Ending.FINISHED,
            t=np.array([t]),
            y=y[:, None],
            yp=yp[:, None],
            history=None,
            dense=None,
            events=[],
            interrupted=False,
            failure=None,
            t_reached=t,
            y_reached=y,
            h_last=float(self._record["h_last"]),
            steps=self._steps_taken(),
            error_test_failures=int(self._record["error_test_failures"]),
            newton_failures=int(self._record["newton_failures"]),
            signal=0,
            counts=counts,
        )

    def solution(self) -> Any:
        """The point at t as a solution of the problem, with all its quantities."""
        followed = getattr(self.run_state, "_earlier", None)
        kept = None if followed is None else list(followed)
        segment = self._prepared.finish(self.outcome())
        solution = self.run_state.delivered([segment])
        if followed is not None and kept is not None:
            followed[:] = kept
        if self._carried_back is not None:
            solution = self._carried_back(solution)
        if isinstance(solution, ConstrainedSolution):
            solution.as_stated(self.problem)
        return solution

    # --- from segment to segment --------------------------------------------------------------------------------------

    @property
    def follows_time(self) -> bool:
        """Whether the interval of the request matters, because switches are tracked up to its end."""
        return self._limit not in (inf, -inf)

    @property
    def events_so_far(self) -> list[EventRecord]:
        """Events so far; the caller may clear the list."""
        return self.events

    def change(self, write: Callable[[], None], at: float | None = None):
        """Continue with the inputs set by `write`: without a restart in an explicit method, otherwise with a restart at
        t.

        If `at` is given, it becomes the time.
        """
        write()
        if at is not None:
            self.t = at
        self.restart()

    def restart(self):
        """Restart at t, where functions have jumped; if this raises an error, the next call tries again."""
        try:
            self._restart()
        except BaseException as error:
            self.over = True
            if isinstance(error, InconsistentInitialError):
                error.args = (f"The inputs jump at t = {self.t:.10g}, where {error}", *error.args[1:])
            raise

    def _restart(self):
        layout = None if self.plan.traced is None else self.plan.traced.layout
        branches = layout is not None and layout.fixed
        # The trace may be valid for some values of inputs only, as with `a[int(u)]`.
        # If the method solves another form of the problem, its values of the inputs are created with a new plan.
        if not self.is_plain or (branches and not self._is_current()):
            request = self._again(jumped=True)
            self.plan = None
            self._begin(request)
            return
        if self.over:
            return
        if self._explicit and (float(self._reached[0]) == self.t or self._set_back()):
            self._slope_known[0], self._slope_is_old = 0, True
            return
        close_to_end = abs(self._limit - self.t) < _CLOSE * (self.request.span[1] - self.request.span[0])
        if self._steps_taken() == 0 or close_to_end:
            self._begin(self._again(jumped=True))
            return
        step = abs(float(self._record["h_last"]))
        with self._threads:
            segment = self._ended(_FINISHED, False)
            segment = replace(segment, outcome=replace(segment.outcome, t_reached=self.t, y_reached=self._y.copy()))
            if not self._is_current() or not self.run_state.restarts(self.t, segment):
                self._begin(self._again(jumped=True))
                return
        self._keep(segment)
        self._open(step)

    def _set_back(self) -> bool:
        """Truncate the last step at t, unless a projection or events belong to its end; return whether that was
        possible.
        """
        if self._has_events or not self.is_quick or getattr(self.plan.problem, "n_lambda", 0) > 0:
            return False
        record = self._record
        record.array("phi")[0], record.array("yp")[:] = self._y, self._yp
        record["t"] = record["t_low"] = self.t
        record["degree"] = record["pending"] = 0
        return True

    def _is_current(self) -> bool:
        traced = self.plan.traced
        return traced is None or traced.is_current(self.problem.params)

    def _ended(self, reason: int, interrupted: bool) -> Segment:
        self._ready.leave()
        return self._prepared.finish(self._ready.close(self._task, reason, interrupted))

    def _keep(self, segment: Segment):
        """Store the data of a segment that the next one requires, for any number of segments."""
        self._earlier = [segment]
        for name in ("stretches", "_earlier"):
            if hasattr(self.run_state, name):
                del getattr(self.run_state, name)[:-1]
        tracker = getattr(self.run_state, "tracker", None)
        if tracker is not None:
            del tracker.history[:-2]

    def _next_segment(self, reason: int, interrupted: bool):
        """Continue after a method has stopped: with another method, other equations, or an error."""
        segment = self._ended(reason, interrupted)
        outcome = segment.outcome
        exception = outcome.exception
        if interrupted or exception is not None:
            self._stay(outcome)
            raise KeyboardInterrupt if exception is None else exception
        if not self.run_state.continues(segment):
            self._stay(outcome)
            found = learned(segment)
            if found and hasattr(self.run_state, "plan"):
                request = self._again()
                self._take(self.run_state.plan.begin(request, found), request)
                return
            # the end of the interval for which switches in time have been computed
            if outcome.reason == Ending.FINISHED:
                self._note_all(outcome)
                return
            self.run_state.delivered([segment])  # raises an error that states the cause
            raise IntegrationError(f"Stopped at t = {self.t:.10g}.", self.solution())
        self._note_all(outcome)
        self._keep(segment)
        self._open()

    def _note_all(self, outcome: Outcome):
        for event in outcome.events:
            self._note(event)

    def _stay(self, outcome: Outcome):
        """Stop at the end of the last step; the next call continues from there."""
        self.over = True
        if outcome.steps and self.sign * (outcome.t_reached - self.t) > 0.0:
            self.t = outcome.t_reached
            self._y[:] = outcome.y_reached[: self._y.size]
            self._yp[:] = self._ready.slope()[: self._yp.size]

    def _begin_again(self):
        """Begin a run at t as the driver does."""
        self._begin(self._again())

    def _again(self, *, jumped: bool = False) -> Request:
        """The request of a run that begins at t; if functions have jumped there, differential variables keep their
        values."""
        form, solution = StateForm(self.problem), self.solution()
        y, yp = form.at_end(solution)[0], None
        if jumped and isinstance(self.problem, (ImplicitDAE, SemiExplicitDAE)) and not form.ordinary:
            settings = self.request.settings
            weights = np.asarray(settings.rtol) * np.abs(y) + np.asarray(settings.atol)
            found = make_consistent(form, self.t, ModeInitial(y, None, True), weights)
            y, yp = found.y, found.yp
        length = self.request.span[1] - self.request.span[0]
        last = abs(float(self._record["h_last"]))
        self.request = self.request.changed(
            span=(self.t, self.t + length),
            initial=form.initial(y, yp),
            correct_initial=True,
            dense_output=False,
            first_step=last or None if self.fixed is None else None,
        )
        return self.request
