r"""Times of events as functions of parameters, and the resulting jumps of sensitivities.

A guard :math:`g(t, y, p)` ends a mode at :math:`t^*(p)`, and a reset map R maps the state:

.. math::

    \tau = \frac{d t^*}{d p} = -\frac{g_y s^- + g_p}{g_t + g_y y'^-}, \qquad
    \frac{d y^+}{d p} = R_t \tau + R_y (s^- + y'^- \tau) + R_p, \qquad
    s^+ = \frac{d y^+}{d p} - y'^+ \tau

(the saltation matrix; Leine and Nijmeijer: Dynamics and Bifurcations of Non-Smooth Mechanical Systems, Springer 2004,
chapter 7). If the solution only touches the guard, :math:`g_t + g_y y' = 0`, there is no derivative. The formula for
:math:`\tau` also holds for events that do not affect the state.

Guards and reset maps are user functions; they are differentiated along one direction each, by the central formula of
order 4.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from daedal.common.messages import warn
from daedal.driver.finish import joined_dense_output
from daedal.driver.request import Request
from daedal.errors import InvalidProblemError, SensitivityWarning
from daedal.events.event import EventRecord, named_events
from daedal.hybrid.mode_state import StateForm
from daedal.sensitivity.differentiation import Differentiation, ParameterNumbers
from daedal.sensitivity.result import FirstOrderSensitivities
from daedal.solution.solution import Solution

Guard = Callable[["Point"], np.ndarray]
SHARE = float(np.finfo(float).eps) ** 0.2
_FASTER = 1e3  # maximum ratio of the rate of the state to those of time and parameters in the choice of the increment
CENTRAL_4 = ((1.0, 2.0 / 3.0), (-1.0, -2.0 / 3.0), (2.0, -1.0 / 12.0), (-2.0, 1.0 / 12.0))
GRAZING = 1e-4
"""Rate of a guard, as a fraction of its size over the arc, below which the solution counts as only touching it."""
_SAMPLES = 9  # number of points of an arc at which the size of a guard is evaluated


@dataclass(frozen=True)
class Point:
    """A time, a state and parameters, or a direction of change of these."""

    t: float
    y: np.ndarray
    theta: np.ndarray

    def moved(self, along: Point, length: float) -> Point:
        """The point displaced by an amount along a direction."""
        return Point(self.t + length * along.t, self.y + length * along.y, self.theta + length * along.theta)


def derivative_along(function: Callable[[Point], np.ndarray], at: Point, along: Point, time_scale: float) -> np.ndarray:
    """The derivative of a function of a point along a direction."""
    changes = [abs(along.t) / time_scale]
    changes += [abs(d) / (abs(x) or 1.0) for d, x in zip(along.theta, at.theta, strict=True)]
    of_state, fastest = _largest(along.y) / (_largest(at.y) or 1.0), max(changes)
    # a component of the state may pass through zero
    fastest = max(fastest, min(of_state, _FASTER * fastest) if fastest else of_state)
    if fastest == 0.0:
        return np.zeros_like(np.atleast_1d(np.asarray(function(at), dtype=float)))
    delta = SHARE / fastest
    total = 0.0
    for multiple, weight in CENTRAL_4:
        total = total + weight / delta * np.atleast_1d(np.asarray(function(at.moved(along, multiple * delta)), float))
    return np.asarray(total)


def event_time(
    guard: Guard, at: Point, slope: np.ndarray, s: np.ndarray, time_scale: float, size: float
) -> tuple[np.ndarray, bool]:
    """Derivatives of the time of an event, one per row of `s`, and whether the solution only touches the guard.

    `size` is the size of the guard over the arc of length `time_scale` that it ends.
    """
    none = np.zeros_like(at.theta)
    rates = derivative_along(guard, at, Point(1.0, slope, none), time_scale)
    values = np.atleast_1d(np.asarray(guard(at), dtype=float))
    fired = int(np.argmin(np.abs(values) / np.maximum(np.abs(rates), 1e-300)))
    rate = float(rates[fired])
    if abs(rate) * time_scale <= GRAZING * size:
        return np.full(s.shape[0], np.nan), True
    changes = [
        derivative_along(guard, at, Point(0.0, row, np.eye(s.shape[0])[k]), time_scale)[fired]
        for k, row in enumerate(s)
    ]
    return -np.array(changes) / rate, False


def _largest(values: np.ndarray) -> float:
    return float(np.max(np.abs(values), initial=0.0))


def refuse_sliding(solution: Any):
    """Raise for sliding along hidden surfaces, where sensitivities obey the equations of the surface."""
    found = getattr(solution, "slides_from", None)
    if found is not None:
        raise InvalidProblemError(
            f"sensitivities are not computed along hidden surfaces, and from t = {found[0]:.6g} on the solution slides "
            f"along that of '{found[1]}'. Remedy: state the branches as daedal.hybrid.Filippov or "
            "daedal.hybrid.Friction, whose sensitivities follow sliding and sticking"
        )


def warn_of_switches(events: Sequence[Any]):
    """Warn if the equations have changed branch: jumps of sensitivities there are not followed."""
    passed = [event for event in events if event.kind != "event"]
    if passed:
        warn(
            f"the equations change branch at t = {passed[0].t:.6g}, "
            f"'{passed[0].name}'{f' and {len(passed) - 1} more times' if len(passed) > 1 else ''}. If their "
            "right-hand sides jump there, sensitivities jump as well, which is not computed. Remedy: define the "
            "branches as modes of a HybridProblem",
            SensitivityWarning,
        )


def size_between(guard: Guard, state: Callable[[float], np.ndarray], a: float, b: float, theta: np.ndarray) -> float:
    """The largest absolute value of a guard along a solution between two times."""
    times = np.linspace(a, b, _SAMPLES).tolist()
    return float(max(np.max(np.abs(guard(Point(t, state(t), theta)))) for t in times))


def timed_events(
    given: Differentiation, slope: Callable[[float, np.ndarray, float], np.ndarray], request: Request, solution: Any
) -> list[EventRecord]:
    """Events of a solution with the derivatives of their times; ``slope(t, y, sign)`` is y' of a state."""
    view, found = _View(given), []
    for record in solution.events:
        guard = None if record.kind != "event" else _function(view, request.settings.events, record)
        if guard is None:
            found.append(record)
            continue
        t, t0 = record.t, request.span[0]
        size = size_between(guard, lambda t: _state(solution, t), t0, t, view.theta)
        at, rate = Point(t, record.y, view.theta), slope(t, record.y, request.sign)
        s = solution.sensitivities.all_at(np.array([t]))[:, :, 0]
        tau, grazing = event_time(guard, at, rate, s, abs(t - t0), size)
        if grazing:
            warn(
                f"the time of event '{record.name}' at t = {t:.6g} has no derivative: its function only touches zero "
                "there",
                SensitivityWarning,
            )
        found.append(replace(record, sensitivity=dict(zip(given.names, tau.tolist(), strict=True))))
    return found


def _state(solution: Any, t: float) -> np.ndarray:
    state = solution(t)
    return state if isinstance(state, np.ndarray) else state.y


class _View:
    """A problem as a function of the varied parameters, for the evaluation of event functions."""

    def __init__(self, given: Differentiation):
        self._problem, self._columns = given.problem, given.columns
        self._parameters = numbers = ParameterNumbers.of(given.problem)
        self.theta = np.array([0.0 if c.position is None else numbers.values[c.position] for c in given.columns])
        self._made: tuple[bytes, StateForm] = self.theta.tobytes(), StateForm(given.problem)

    def form(self, theta: np.ndarray) -> StateForm:
        if self._made[0] != theta.tobytes():
            values = zip(self._columns, theta.tolist(), strict=True)
            params = self._parameters.changed({c.position: x for c, x in values if c.position is not None})
            problem = self._problem if params is None else self._problem.with_params(params)
            self._made = theta.tobytes(), StateForm(problem)
        return self._made[1]


def _function(view: _View, events: Any, record: EventRecord) -> Guard | None:
    """The function of a recorded event as a function of a point; None if it cannot be identified."""
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


# --- sensitivities of first-order problems through hidden switches: arc by arc, with the equations of each branch -----

# Between two switches the equations are those of one branch, set by data (:mod:`daedal.symbolic.modes`); at a switch
# the state is continuous, and sensitivities jump by :math:`(y'^- - y'^+)\, dt^*/dp` (:mod:`daedal.sensitivity.jumps`).


class Unfollowed(Exception):
    """Raised if the branches of a run cannot be identified, or their index is not 0 or 1."""


def solve_through_switches(moded: Any, request: Request, base: Solution) -> Solution:
    """The solution `base` with sensitivities that jump at its switches; `moded` are the sensitivities on fixed
    branches."""
    walk = _SwitchWalk(moded, request, base)
    pieces = walk.pieces()
    values, slopes = walk.at_output(pieces)
    parts = [piece.sensitivities.dense for piece in pieces]
    dense = None if base.dense is None else joined_dense_output([part for part in parts if part is not None])
    starts = pieces[0].sensitivities.starts
    base.sensitivities = FirstOrderSensitivities(moded.given.names, base.t, values, slopes, dense, starts)
    base.message, base.functions = " ".join([base.message, *moded.notes]), moded.words
    return base


class _SwitchWalk:
    """Integration from one switch to the next."""

    def __init__(self, plan: Any, request: Request, base: Solution):
        self.plan, self.request, self.base = plan, request, base
        switched = {event.t for event in base.events if event.kind == "switch"}
        end = float(base.t[-1]) if base.status == "event" else request.span[1]
        inside = sorted(t for t in switched if request.sign * (end - t) > 0.0)
        self.edges = [request.span[0], *(inside if request.sign > 0.0 else inside[::-1]), end]

    def pieces(self) -> list[Solution]:
        plan, sign, found = self.plan, self.request.sign, []
        y, yp = plan.start(self.request)
        total, tau = plan.given.starts, np.zeros(plan.m)
        for k, (a, b) in enumerate(zip(self.edges, self.edges[1:])):
            plan.set_between(self.base, a, b)
            y, yp = plan.completed(a, y, yp)
            own = self.base.t[(sign * (self.base.t - a) >= 0.0) & (sign * (self.base.t - b) <= 0.0)]
            times = np.unique(np.concatenate([own, [b]]))[:: int(sign)]
            bare = replace(
                self.request.settings, events=None, first_step=None if k else self.request.settings.first_step
            )
            request = replace(self.request, span=(a, b), times=times, t_stop=b, settings=bare)
            piece = plan.from_start(request, y, yp, total - np.outer(tau, yp))
            found.append(piece)
            if b != self.edges[-1]:
                s = piece.sensitivities.values[:, :, -1]
                y, yp = plan.completed(b, piece.y[:, -1], piece.yp[:, -1])
                tau = self._time(a, b, y, yp, s)
                if np.isnan(tau).any():
                    break
                total = s + np.outer(tau, yp)
        return found

    def _time(self, a: float, b: float, y: np.ndarray, yp: np.ndarray, s: np.ndarray) -> np.ndarray:
        """The derivatives dt/dp of the time of the switch that ends the arc from a to b."""
        plan = self.plan
        numbers = plan.variational.numbers(plan.given.problem.params)
        positions = [column.position for column in plan.given.columns]
        theta = np.array([0.0 if k is None or numbers is None else numbers[k] for k in positions])
        u = plan.values(b, y, yp)
        bounds = [
            _nearer(switch.bounds(mode), float(x))
            for switch, mode, x in zip(plan.variational.switches, plan.modes, u, strict=True)
        ]

        def guard(point: Point) -> np.ndarray:
            varied = None if numbers is None else numbers.copy()
            for k, value in zip(positions, point.theta, strict=True):
                if k is not None and varied is not None:
                    varied[k] = value
            return plan.values(point.t, point.y, yp, varied) - np.array(bounds)

        far = [np.abs(guard(Point(t, self.base(t), theta))) for t in np.linspace(a, b, 5)]
        fired = int(np.argmin(np.abs(u - np.array(bounds))))
        size = float(np.max([values[fired] for values in far]))
        tau, grazing = event_time(guard, Point(b, y, theta), yp, s, abs(b - a), size)
        if grazing:
            name = plan.variational.switches[fired].name
            warn(
                f"sensitivities do not exist after t = {b:.6g}, where the solution only touches the surface of "
                f"'{name}': they are NaN from there on",
                SensitivityWarning,
            )
        return tau

    def at_output(self, pieces: list[Solution]) -> tuple[np.ndarray, np.ndarray]:
        """Values and slopes at the output points; at switches, values from the left."""
        sign, t = self.request.sign, self.base.t
        which = np.searchsorted(sign * np.array(self.edges[1:-1]), sign * t, side="left")
        n, m = self.plan.given.problem.n, self.plan.m
        values, slopes = np.full((m, n, t.size), np.nan), np.full((m, n, t.size), np.nan)
        for i in np.flatnonzero(which < len(pieces)):
            piece = pieces[which[i]]
            j = int(np.argmin(np.abs(piece.t - t[i])))
            values[:, :, i] = piece.sensitivities.values[:, :, j]
            slopes[:, :, i] = piece.sensitivities.slopes[:, :, j]
        return values, slopes


def _nearer(bounds: tuple[float, float], x: float) -> float:
    return bounds[0] if abs(bounds[0] - x) <= abs(bounds[1] - x) else bounds[1]
