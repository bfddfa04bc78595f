"""Sensitivities of runs with events, which change nothing but happen at times that depend on the parameters.

First-order problems are solved with their events first; the sensitivities follow over the same interval. At an event
:math:`g(t^*, y(t^*), p) = 0` holds for all p, which gives :math:`d t^* / d p` (:mod:`daedal.sensitivity.saltation`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np

from daedal.common.messages import warn
from daedal.driver.request import Request
from daedal.errors import InvalidProblemError
from daedal.events.event import EventRecord, named_events
from daedal.hybrid.state_form import StateForm
from daedal.sensitivity.parameters import layout_of
from daedal.sensitivity.saltation import Point, event_time
from daedal.solution.solution import Solution
from daedal.symbolic import Untraceable


class SensitivityWarning(UserWarning):
    """A sensitivity does not exist, or is not known, from some time on."""


def solve_through_events(plan: Any, request: Request) -> Solution:
    """The solution with its events, and sensitivities at its output points."""
    base = plan.primal.solve(request)
    if base.status == "interrupted":
        return base
    refuse_sliding(base)
    kinds = {event.kind for event in base.events}
    if "switch" in kinds and plan.variational.is_exact and plan.stands:
        from daedal.sensitivity.switches import Unfollowed, solve_through_switches

        with suppress(Unfollowed, Untraceable):
            return _timed(plan, request, solve_through_switches(plan, request, base))
    warn_of_switches(base.events)
    end = float(base.t[-1]) if base.status == "event" and base.t.size else request.span[1]
    times = None if request.times is None else base.t
    bare = replace(request.settings, events=None)
    inner = replace(request, span=(request.span[0], end), times=times, t_stop=end, settings=bare)
    found = plan.stretch(inner, *plan.start(inner), plan.starts)
    kept = {name: getattr(base, name) for name in ("success", "status", "events", "drift")}
    found = replace(found, **kept, message=" ".join([base.message, *plan.notes]))
    return _timed(plan, request, found)


def _timed(plan: Any, request: Request, found: Solution) -> Solution:
    if found.dense is not None and request.settings.events is not None:
        found.events = timed_events(plan, request, found, lambda t: found.sensitivities.all_at(np.array([t]))[:, :, 0])
    return found


def refuse_sliding(solution: Any):
    """Sensitivities follow no motion along hidden surfaces, on which they obey the equations of the surface."""
    found = getattr(solution, "slides_from", None)
    if found is not None:
        raise InvalidProblemError(
            f"sensitivities are not computed along hidden surfaces, and from t = {found[0]:.6g} on the solution slides "
            f"along that of '{found[1]}'. Remedy: state the branches as daedal.Filippov or daedal.Friction, whose "
            "sensitivities follow sliding and sticking"
        )


def warn_of_switches(events: Sequence[Any]):
    """Say so where the equations have passed to another branch: sensitivities may jump there, which is not followed."""
    passed = [event for event in events if event.kind != "event"]
    if passed:
        warn(
            f"the equations pass to another branch at t = {passed[0].t:.6g}, '{passed[0].name}'"
            f"{f' and {len(passed) - 1} times more' if len(passed) > 1 else ''}. Where their right sides jump there, "
            "sensitivities jump as well, and that is not computed. Remedy: state the branches as modes of a "
            "HybridProblem",
            SensitivityWarning,
        )


def timed_events(
    plan: Any, request: Request, solution: Any, sensitivities: Callable[[float], np.ndarray]
) -> list[EventRecord]:
    """The events with the derivatives of their times; ``sensitivities(t)`` gives the rows s at a time."""
    view = _View(plan.problem, plan.columns)
    found = []
    for record in solution.events:
        guard = None if record.kind != "event" else _function(view, request.settings.events, record)
        if guard is None:
            found.append(record)
            continue
        at = Point(record.t, record.y, view.theta)
        slope = plan.slope(record.t, record.y, request.sign)
        length = abs(record.t - request.span[0])
        times = np.linspace(request.span[0], record.t, 9)
        size = max(float(np.max(np.abs(guard(Point(float(t), _state(solution, t), view.theta))))) for t in times)
        tau, grazing = event_time(guard, at, slope, sensitivities(record.t), length, size)
        if grazing:
            warn(
                f"the time of event '{record.name}' at t = {record.t:.6g} has no derivative: its function only touches "
                "zero there",
                SensitivityWarning,
            )
        names = [column.name for column in plan.columns]
        found.append(replace(record, sensitivity=dict(zip(names, tau.tolist(), strict=True))))
    return found


def _state(solution: Any, t: float) -> np.ndarray:
    state = solution(float(t))
    return state if isinstance(state, np.ndarray) else state.y


class _View:
    """Functions of the state and of the parameters that are varied."""

    def __init__(self, problem: Any, columns: Any):
        self._problem, self._columns, self._layout = problem, columns, layout_of(problem)
        numbers = np.zeros(0) if self._layout is None else self._layout.numbers(problem.params)
        self._numbers = numbers
        self.theta = np.array([0.0 if c.position is None else numbers[c.position] for c in columns])
        self._made: tuple[bytes, StateForm] = self.theta.tobytes(), StateForm(problem)

    def form(self, theta: np.ndarray) -> StateForm:
        """How functions are called with these parameters."""
        if self._made[0] != theta.tobytes():
            numbers = self._numbers.copy()
            for column, value in zip(self._columns, theta, strict=True):
                if column.position is not None:
                    numbers[column.position] = value
            problem = self._problem
            if self._layout is not None:
                problem = problem.with_params(self._layout.rebuilt(problem.params, numbers.tolist()))
            self._made = theta.tobytes(), StateForm(problem)
        return self._made[1]


def _function(view: _View, events: Any, record: EventRecord) -> Callable[[Point], np.ndarray] | None:
    """The function of an event that has happened, as one of a point; None if it cannot be told which it was."""
    first = 0
    for event in named_events(events):

        def values(point: Point, event=event) -> np.ndarray:
            bound = view.form(point.theta).bind(event.function, f"event '{event.name}'")
            return np.atleast_1d(np.asarray(bound(point.t, point.y, record.yp), dtype=float))

        count = values(Point(record.t, record.y, view.theta)).size
        if record.index < first + count:
            place = record.index - first
            return lambda point: values(point)[place : place + 1]
        first += count
    return None
