"""A run through modes that continues from call to call: a continued run for each arc, and the transitions."""

from __future__ import annotations

import time
from collections.abc import Callable
from math import inf
from typing import Any

import numpy as np

from daedal.common.progress import Progress
from daedal.driver.request import Request
from daedal.errors import IntegrationError, InvalidProblemError
from daedal.hybrid.guards import GuardsAtStart
from daedal.hybrid.hybrid_run import FEWEST_SPACINGS, HybridRun, RunStopped
from daedal.hybrid.mode_plans import HybridPlan
from daedal.hybrid.mode_state import ModeInitial
from daedal.simulation.continued_run import ContinuedRun
from daedal.simulation.held_inputs import HeldInputs


class ContinuedModes(HybridRun):
    """A run through the modes of a hybrid problem, continued to increasing times.

    The parameters are those of a :class:`~daedal.simulation.continued_run.ContinuedRun`.
    """

    is_quick = False

    def __init__(self, request: Request, held: HeldInputs, stated: Any, *, exact: bool):
        if request.settings.fixed_step is not None:
            raise InvalidProblemError("fixed_step: transitions cannot be located with constant steps; omit it")
        self._held, self._exact, self.exact = held, exact, exact
        self.inner: ContinuedRun | None = None
        self._start: GuardsAtStart | None = None
        self._last: Any = None  # the point before the last transition
        self.finished = ""
        never = Progress(False, request.span)
        super().__init__(request, [(request.span[0], inf * request.sign)], never, HybridPlan(request.problem))

    def _take_inputs(self):
        pass  # inputs are stored in the problem

    # --- onwards ------------------------------------------------------------------------------------------------------

    def go_to(self, t: float, most_steps: int = 0) -> bool:
        """Integrate to t; return False if a terminal event or transition has stopped the run before t."""
        return self._onwards(lambda inner: inner.go_to(t, most_steps), t)

    def internal_step(self) -> bool:
        """Take one step of the method, or the rest of the last one, at most to the next transition."""
        return self._onwards(lambda inner: inner.internal_step(), None)

    def _onwards(self, advance, end: float | None) -> bool:
        if self.finished:
            message = f"{self.finished} The simulation has ended. Remedy: call reset()"
            raise IntegrationError(message, self._entered().solution())
        sign = self.request.sign
        while end is None or sign * (end - self.t) > 0.0:
            try:
                inner = self._entered()
                reached = advance(inner)
            except RunStopped as stop:
                return self._end(stop)
            self.t = inner.t
            self._note_events(inner)
            if reached:
                return True
            try:
                if not self._passes(inner):
                    return False
            except RunStopped as stop:
                return self._end(stop)
            if end is None:
                return True
        return True

    def _end(self, stop: RunStopped) -> bool:
        if not stop.success:
            raise IntegrationError(str(stop), self._last) from stop.__cause__
        self.finished = str(stop)
        return False

    def _entered(self) -> ContinuedRun:
        """The continued run of the arc, created after immediate transitions."""
        if self.inner is not None:
            return self.inner
        self.shortest = FEWEST_SPACINGS * abs(self.t) * 2.3e-16
        start, guards = self._enter(), self.guards[self.mode]
        own = self.events[self.mode].still_to_come(self._now())
        events = [guards.event(start), *own] if len(guards) else own
        length = self.request.span[1] - self.request.span[0]
        request = self._request_of(self.mode).changed(
            span=(self.t, self.t + length),
            initial=self._initial(),
            began=time.perf_counter(),
            events=events or None,
            first_step=self._first_step(self.given is not None and self.came_by is None),
            correct_initial=self.begin.correct or self.came_by is not None,
            dense_output=False,
        )
        self.given = None
        self.inner = ContinuedRun(request, self._held, request.problem, exact=self._exact)
        return self.inner

    def _initial(self) -> Any:
        is_first = self.came_by is None and self.given is not None
        return self.given if is_first else self.forms[self.mode].initial(self.begin.y, self.begin.yp)

    def _note_events(self, inner: ContinuedRun):
        """Record the events of a mode, except its guards."""
        guards, form = self.guards[self.mode], self.forms[self.mode]
        for event in inner.events:
            if event.kind != "event" or event.index >= len(guards):
                if event.kind == "event":
                    self.events[self.mode].count(event.name)
                y, direction, located = event.y[: form.n], event.direction, event.located
                self._note(event.t, event.name, event.kind, None, y, None, direction, located)
        self._fired = [event for event in inner.events if event.terminal]
        inner.events.clear()

    def _passes(self, inner: ContinuedRun) -> bool:
        """Take the transition that has stopped the arc; return False if a user-defined event has stopped it."""
        guards, form = self.guards[self.mode], self.forms[self.mode]
        last = self._fired[-1].t
        fired = [event for event in self._fired if event.t == last]
        if any(event.index >= len(guards) for event in fired):
            return False
        self._last = inner.solution()
        y, yp = form.at_end(self._last)
        steps = max(int(inner._record["steps"]), 1)
        self.typical_step = abs(inner.t - inner.request.span[0]) / steps or self.typical_step
        self.inner = None
        self._take_first([(event.index, event.direction) for event in fired], y, yp, fired[0].located)
        return True

    # --- points -------------------------------------------------------------------------------------------------------

    @property
    def is_plain(self) -> bool:
        """Whether the unknowns of the method are those of the problem."""
        return self.inner is not None and self.inner.is_plain

    def unknowns(self) -> Any:
        """The unknowns of the method at t."""
        return self._entered().unknowns()

    def solution(self) -> Any:
        """The point at t as a solution of the problem of the mode."""
        return self._entered().solution()

    @property
    def events_so_far(self) -> list[Any]:
        """Events so far; the caller may clear the list."""
        return self.store.events

    follows_time = False

    def change(self, write: Callable[[], None], at: float | None = None):
        """Continue with the inputs set by `write`, and take transitions whose guards change sign with them."""
        guards, form = self.guards[self.mode], self.forms[self.mode]
        self.t = self.t if at is None else at
        if self.inner is None:
            write()
            return
        if not len(guards):
            self.inner.change(write, at)
            return
        y, yp = form.at_end(self.inner.solution())
        before = guards.evaluate(self.t, form.seen(y), yp)
        write()
        after = guards.evaluate(self.t, form.seen(y), yp)
        if np.all(before * after > 0.0):
            self.inner.t = self.t
            self.inner.restart()
            return
        self.inner, self.came_by, self.before, self.ended = None, None, None, before
        self.begin = self._consistent(self.mode, ModeInitial(y, None, not form.mechanical))
