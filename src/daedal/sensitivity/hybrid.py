"""Sensitivities through modes: the run first, then the variational equations of every stretch, with jumps between."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from daedal.drive.request import Request, Settings
from daedal.errors import InvalidProblemError
from daedal.events.table import EventTable
from daedal.hybrid.hybrid_event import HybridEvent
from daedal.hybrid.mode_settings import ModeSettings, RunSettings
from daedal.hybrid.models.filippov import Filippov
from daedal.hybrid.models.friction import Friction
from daedal.hybrid.problem import ZENO, HybridProblem, Transition
from daedal.hybrid.reset import BoundTransition, make_consistent
from daedal.hybrid.run import solve_hybrid
from daedal.hybrid.segments import HybridSegment
from daedal.hybrid.solution import HybridSolution
from daedal.hybrid.state_form import StateForm, positional_names
from daedal.messages import warn
from daedal.problems import ImplicitDAE, LinearDAE, MechanicalSystem, SemiExplicitDAE
from daedal.sensitivity.events import SensitivityWarning, warn_of_switches
from daedal.sensitivity.first_order import FirstOrderSensitivity
from daedal.sensitivity.hybrid_result import HybridSensitivities
from daedal.sensitivity.mechanism import MechanismSensitivity
from daedal.sensitivity.parameters import Column, layout_of, require_known, with_floats
from daedal.sensitivity.saltation import Point, derivative_along, event_time

_TAKEN = ("transition", "immediate")


class Modes:
    """A hybrid problem as a function of the parameters that are varied."""

    def __init__(self, problem: HybridProblem, names: tuple[str, ...]):
        self.names, self._given = names, problem
        self._layouts = {mode: layout_of(with_floats(m.problem)) for mode, m in problem.modes.items()}
        self.positions: dict[str, list[int | None]] = {}
        numbers: dict[str, float] = {}
        for mode, layout in self._layouts.items():
            params = with_floats(problem.modes[mode].problem).params
            labels = [] if layout is None else layout.labels(params)
            self.positions[mode] = [labels.index(name) if name in labels else None for name in names]
            values = [] if layout is None else layout.numbers(params).tolist()
            numbers |= {label: value for label, value in zip(labels, values, strict=True) if label in names}
        self.theta = np.array([numbers.get(name, 0.0) for name in names])
        self._made: tuple[bytes, HybridProblem, dict[str, StateForm]] | None = None

    def at(self, theta: np.ndarray) -> tuple[HybridProblem, dict[str, StateForm]]:
        """The problem with these values of the parameters, and the forms of its states."""
        key = theta.tobytes()
        if self._made is None or self._made[0] != key:
            problem = self._given if np.array_equal(theta, self.theta) else self._with(theta)
            self._made = key, problem, {name: StateForm(mode.problem) for name, mode in problem.modes.items()}
        return self._made[1:]

    def _with(self, theta: np.ndarray) -> HybridProblem:
        given: Any = self._given
        if isinstance(given, Filippov):
            return Filippov(**{**given.given, "params": self._params("", given, theta)})
        if isinstance(given, Friction):
            system = with_floats(given.given["system"])
            rest = {**given.given, "system": system.with_params(self._params("", system, theta))}
            return Friction(rest.pop("system"), rest.pop("direction"), rest.pop("mu"), **rest)
        modes = {
            name: replace(mode, problem=mode.problem.with_params(self._params(name, mode.problem, theta)))
            if any(position is not None for position in self.positions[name])
            else mode
            for name, mode in given.modes.items()
        }
        return HybridProblem(modes, given.transitions)

    def _params(self, mode: str, holder: Any, theta: np.ndarray) -> Any:
        params = with_floats(holder).params if hasattr(holder, "with_params") else holder.params
        layout = self._layouts.get(mode) or layout_of(holder)
        assert layout is not None
        numbers, labels = layout.numbers(params).copy(), layout.labels(params)
        for name, value in zip(self.names, theta, strict=True):
            if name in labels:
                numbers[labels.index(name)] = value
        return layout.rebuilt(params, numbers.tolist())


class HybridSensitivity:
    """A plan for a hybrid problem with sensitivities.

    Parameters
    ----------
    problem : HybridProblem
    settings : Settings
        With what is wanted as `sensitivities`.
    make_plan : callable
        ``make_plan(problem, settings)``, for the problem of a mode without sensitivities.
    """

    def __init__(self, problem: HybridProblem, settings: Settings, make_plan: Any):
        assert settings.sensitivities is not None
        self.problem, self.wanted, self._make_plan = problem, settings.sensitivities, make_plan
        for name, mode in problem.modes.items():
            if not isinstance(mode.problem, (ImplicitDAE, SemiExplicitDAE, LinearDAE, MechanicalSystem)):
                raise InvalidProblemError(
                    f"sensitivities through modes are computed for an ImplicitDAE, a SemiExplicitDAE and a "
                    f"MechanicalSystem; mode '{name}' is a {type(mode.problem).__name__}"
                )
        self.names = self._names()
        self._check_models()
        self.modes = Modes(problem, self.names)
        self._plans: dict[Any, Any] = {}

    def _names(self) -> tuple[str, ...]:
        known: dict[str, None] = {}
        for mode in self.problem.modes.values():
            holder = with_floats(mode.problem)
            layout = layout_of(holder)
            known |= dict.fromkeys([] if layout is None else layout.labels(holder.params))
        wanted = self.wanted.names
        if wanted is True:
            wanted = tuple(known)
        return require_known([wanted] if isinstance(wanted, (str, int)) else list(wanted), list(known))

    def _check_models(self):
        """Functions that Daedal has made of a model and that hold its parameters inside cannot be differentiated."""
        if isinstance(self.problem, (Filippov, Friction)):
            return
        for transition in self.problem.transitions:
            for function in (transition.guard, transition.reset):
                module = getattr(function, "__module__", "") or ""
                names = positional_names(function) if callable(function) else None
                if callable(function) and module.startswith("daedal.") and len(names or ()) < 4:
                    raise InvalidProblemError(
                        f"sensitivities through '{transition.name}', which was made by {module.split('.')[-1]}, are "
                        "not known: state guard and reset as functions of the parameters, Transition(..., "
                        "guard=lambda t, q, v, p: ..., reset=lambda t, q, v, p: ...)"
                    )

    # --- a run ------------------------------------------------------------------------------------------------------

    def solve(self, request: Request) -> HybridSolution:
        """The run through modes, then its sensitivities."""
        bare = request.changed(sensitivities=None, dense_output=True)
        solution = solve_hybrid(bare)
        walk = _Walk(self, bare, solution)
        solution.sensitivities = walk.to_the_end()
        solution.events = EventTable(walk.events)
        return solution

    def mode_plan(self, request: Request, mode: str, settings: Settings) -> Any:
        """The plan for the variational equations of a mode."""
        if mode not in self._plans:
            problem = self.problem.modes[mode].problem
            problem = problem.semi_explicit() if isinstance(problem, LinearDAE) else problem
            columns = [
                Column(name, position) for name, position in zip(self.names, self.modes.positions[mode], strict=True)
            ]
            kind: Any = MechanismSensitivity if isinstance(problem, MechanicalSystem) else FirstOrderSensitivity
            own = replace(settings, sensitivities=self.wanted, events=None)
            self._plans[mode] = kind(problem, own, self._make_plan, columns)
        return self._plans[mode]


class _Walk:
    """From stretch to stretch: where the sensitivities are."""

    def __init__(self, plan: HybridSensitivity, request: Request, solution: HybridSolution):
        self.plan, self.request, self.solution = plan, request, solution
        common = RunSettings.of(request.settings).common
        self.settings = {name: ModeSettings(request, common, name) for name in plan.problem.modes}
        self.events: list[HybridEvent] = list(solution.events)
        self._next = 0  # event
        self.parts: list[Any] = []
        self.tau = np.zeros(len(plan.names))

    def to_the_end(self) -> HybridSensitivities:
        """The sensitivities of all stretches."""
        segments = self.solution.segments
        total = None  # d(state)/dp at the time of the last transition, which depends on p as well
        if segments:
            form = self.plan.modes.at(self.plan.modes.theta)[1][segments[0].mode]
            total = self._given(form)
        for k, segment in enumerate(segments):
            if total is None or segment.t0 == segment.t1:
                self.parts.append(None)
                continue
            s, part = self._stretch(segment, total)
            self.parts.append(part)
            total = s
            self.tau = np.zeros(len(self.plan.names))
            if k + 1 < len(segments) or self._next < len(self.events):
                total = self._through(segment, s)
        return HybridSensitivities(self.plan.names, self.solution, self.parts)

    def _given(self, form: StateForm) -> np.ndarray:
        start = np.zeros((len(self.plan.names), form.n))
        for name, value in (self.plan.wanted.initial or {}).items():
            if name not in self.plan.names:
                raise InvalidProblemError(f"initial_sensitivities: '{name}' is not among the sensitivities")
            stacked = np.concatenate([np.atleast_1d(x) for x in value]) if isinstance(value, tuple) else value
            start[self.plan.names.index(name)] = np.asarray(stacked, dtype=float)
        return start

    def _stretch(self, segment: HybridSegment, total: np.ndarray) -> tuple[np.ndarray, Any]:
        """Integrate the sensitivities over a stretch; those at its end, and what came out."""
        settings = self.settings[segment.mode]
        plan = self.plan.mode_plan(self.request, segment.mode, settings.request.settings)
        form, (t0, t1) = StateForm(plan.problem), (segment.t0, segment.t1)
        solution = segment.solution
        y0 = form.output(solution)[:, 0] if solution.t.size and solution.t[0] == t0 else _state(segment, t0)
        inside = solution.t[(solution.t >= min(t0, t1)) & (solution.t <= max(t0, t1))]
        times = np.unique(np.concatenate([inside, [t1]]))
        times = times if t1 > t0 else times[::-1]
        request = settings.request.changed(
            problem=plan.problem, span=(t0, t1), initial=form.initial(y0, None), times=times, t_stop=t1, events=None,
            first_step=None, switches="never", began=self.request.began, dense_output=True, correct_initial=True,
        )  # fmt: skip
        found = plan.from_total(request, y0, total, self.tau)
        return plan.stacked(found)[:, :, -1], found

    def _through(self, segment: HybridSegment, s: np.ndarray) -> np.ndarray | None:
        """d(state)/dp behind the transitions at the end of a stretch; None where that does not exist."""
        t, mode = segment.t1, segment.mode
        problem, _ = self.plan.modes.at(self.plan.modes.theta)
        plan = self.plan.mode_plan(self.request, mode, self.settings[mode].request.settings)
        total: np.ndarray | None = s
        first = True
        while self._next < len(self.events):
            event = self.events[self._next]
            if self.request.sign * (event.t - t) > 0.0:
                break
            self._next += 1
            if event.kind == ZENO:
                self._say(event, "where infinitely many transitions accumulate")
                return None
            if event.kind in ("switch", "slides", "leaves"):
                warn_of_switches([event])
            if event.kind not in _TAKEN or total is None:
                continue
            if not first and event.kind != "immediate":
                self._next -= 1
                break
            transition = next(x for x in problem.transitions_from(event.source) if x.name == event.name)
            if first:
                slope = plan.slope(t, event.y, self.request.sign)
                guard = self._guard(transition, event.source, slope)
                at = Point(t, event.y, self.plan.modes.theta)
                length = abs(segment.t1 - segment.t0)
                size = self._size_of(guard, segment)
                self.tau, grazing = event_time(guard, at, slope, s, length, size)
                if grazing:
                    self._say(event, "which its guard only touches")
                    return None
                total = s + np.outer(self.tau, slope)
                names = dict(zip(self.plan.names, self.tau.tolist(), strict=True))
                self.events[self._next - 1] = replace(event, sensitivity=names)
                first = False
            if event.target is None:
                return None
            total = self._reset(transition, event, t, total)
        return total

    def _guard(self, transition: Transition, source: str, slope: np.ndarray):
        def guard(point: Point) -> np.ndarray:
            problem, forms = self.plan.modes.at(point.theta)
            own = next(x for x in problem.transitions_from(source) if x.name == transition.name)
            return forms[source].bind(own.guard, f"guard of '{own.name}'")(point.t, point.y, slope)

        return guard

    def _size_of(self, guard, segment: HybridSegment) -> float:
        """The largest value of a guard over a stretch."""
        times = np.linspace(segment.t0, segment.t1, 9)
        theta = self.plan.modes.theta
        values = [np.max(np.abs(guard(Point(float(t), _state(segment, float(t)), theta)))) for t in times]
        return float(np.max(values))

    def _reset(self, transition: Transition, event: HybridEvent, t: float, total: np.ndarray) -> np.ndarray:
        target = event.target
        assert target is not None

        def reset(point: Point) -> np.ndarray:
            problem, forms = self.plan.modes.at(point.theta)
            own = next(x for x in problem.transitions_from(event.source) if x.name == transition.name)
            begin = BoundTransition(own, event.source, forms).carry_over(target, point.t, point.y, None)
            if begin.correct:
                begin = make_consistent(forms[target], point.t, begin, self.settings[target].weights(begin.y))
            return begin.y

        at, length = Point(t, event.y, self.plan.modes.theta), abs(self.request.span[1] - self.request.span[0])
        unit = np.eye(len(self.plan.names))
        return np.array(
            [derivative_along(reset, at, Point(self.tau[k], row, unit[k]), length) for k, row in enumerate(total)]
        )

    def _say(self, event: HybridEvent, why: str):
        warn(
            f"sensitivities do not exist behind the transition '{event.name}' at t = {event.t:.6g}, {why}: they are "
            "nan from there on",
            SensitivityWarning,
        )


def _state(segment: HybridSegment, t: float) -> np.ndarray:
    return segment.values(np.array([t]))[:, 0]
