"""Sensitivities through modes: the run first, then the variational equations of every stretch, with jumps between."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from daedal.common.messages import warn
from daedal.driver.request import Request, Settings
from daedal.errors import InvalidProblemError
from daedal.events.table import EventTable
from daedal.hybrid.by_mode import ByMode
from daedal.hybrid.hybrid_event import HybridEvent
from daedal.hybrid.mode_settings import ModeSettings, RunSettings
from daedal.hybrid.models.filippov import Filippov
from daedal.hybrid.models.friction import Friction
from daedal.hybrid.models.unilateral import UnilateralProblem
from daedal.hybrid.problem import ZENO, GuardOfRun, HybridProblem, Transition
from daedal.hybrid.reset import BoundTransition, make_consistent
from daedal.hybrid.run import solve_hybrid
from daedal.hybrid.segments import HybridSegment
from daedal.hybrid.solution import HybridSolution
from daedal.hybrid.state_form import StateForm
from daedal.problems import ImplicitDAE, LinearDAE, MechanicalSystem, SemiExplicitDAE
from daedal.problems.arguments import positional_names
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
        self._layouts = ByMode(problem.modes, lambda mode: layout_of(with_floats(problem.modes[mode].problem)))
        self.positions: Mapping[str, list[int | None]] = ByMode(problem.modes, self._positions)
        numbers: dict[str, float] = {}
        for mode in problem.mode_names:
            layout, params = self._layouts[mode], with_floats(problem.modes[mode].problem).params
            values = (
                {} if layout is None else dict(zip(layout.labels(params), layout.numbers(params).tolist(), strict=True))
            )
            numbers |= {label: value for label, value in values.items() if label in names}
        self.theta = np.array([numbers.get(name, 0.0) for name in names])
        self._made: tuple[bytes, HybridProblem, Mapping[str, StateForm]] | None = None
        self._guards: dict[tuple[str, str], Any] = {}

    def _positions(self, mode: str) -> list[int | None]:
        layout = self._layouts[mode]
        labels = [] if layout is None else layout.labels(with_floats(self._given.modes[mode].problem).params)
        return [labels.index(name) if name in labels else None for name in self.names]

    def guard(self, theta: np.ndarray, source: str, name: str) -> Any:
        """The guard of a transition as a function of (t, y, yp), with these values of the parameters."""
        problem, forms = self.at(theta)
        if (source, name) not in self._guards:
            own = next(x for x in problem.transitions_from(source) if x.name == name)
            guard = own.guard.make() if isinstance(own.guard, GuardOfRun) else own.guard
            self._guards[source, name] = forms[source].bind(guard, f"guard of '{name}'")
        return self._guards[source, name]

    def at(self, theta: np.ndarray) -> tuple[HybridProblem, Mapping[str, StateForm]]:
        """The problem with these values of the parameters, and the forms of its states."""
        key = theta.tobytes()
        if self._made is None or self._made[0] != key:
            problem = self._given if np.array_equal(theta, self.theta) else self._with(theta)
            self._made = key, problem, ByMode(problem.modes, lambda mode: StateForm(problem.modes[mode].problem))
            self._guards = {}
        return self._made[1:]

    def _with(self, theta: np.ndarray) -> HybridProblem:
        given: Any = self._given
        if isinstance(given, Filippov):
            return Filippov(**{**given.given, "params": self._params("", given, theta)})
        if isinstance(given, Friction):
            system = with_floats(given.given["system"])
            rest = {**given.given, "system": system.with_params(self._params("", system, theta))}
            return Friction(rest.pop("system"), rest.pop("direction"), rest.pop("mu"), **rest)
        if isinstance(given, UnilateralProblem):
            return given.with_params(self._params("", given.system, theta))
        if given._source is not None:  # guards and resets hold parameters inside, and are made anew
            return given.with_params(self._params("", given._source[0], theta))
        modes = {
            name: replace(mode, problem=mode.problem.with_params(self._params(name, mode.problem, theta)))
            if any(position is not None for position in self.positions[name])
            else mode
            for name, mode in given.modes.items()
        }
        return HybridProblem(modes, given.transitions)

    def _params(self, mode: str, holder: Any, theta: np.ndarray) -> Any:
        params = with_floats(holder).params if hasattr(holder, "with_params") else holder.params
        layout = (
            self._layouts[mode]
            if mode
            else layout_of(with_floats(holder) if hasattr(holder, "with_params") else holder)
        )
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
        for name in problem.mode_names:
            mode = problem.modes[name]
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
        for mode in self.problem.mode_names:
            holder = with_floats(self.problem.modes[mode].problem)
            layout = layout_of(holder)
            known |= dict.fromkeys([] if layout is None else layout.labels(holder.params))
        wanted = self.wanted.names
        if wanted is True:
            wanted = tuple(known)
        return require_known([wanted] if isinstance(wanted, (str, int)) else list(wanted), list(known))

    def _check_models(self):
        """Functions that Daedal has made of a model and that hold its parameters inside cannot be differentiated."""
        if isinstance(self.problem, (Filippov, Friction)) or self.problem._source is not None:
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
        if solution.status == "interrupted":
            return solution
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
        self.settings = ByMode(plan.problem.modes, lambda name: ModeSettings(request, common, name))
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
                total = self._through(segment, s, segments[k + 1].mode if k + 1 < len(segments) else None)
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

    def _through(self, segment: HybridSegment, s: np.ndarray, follows: str | None) -> np.ndarray | None:
        """d(state)/dp behind the transitions at the end of a stretch, in the mode that follows; None if there is none.

        Where transitions accumulate, the stretch behind begins before the time at which they do.
        """
        t, mode = segment.t1, segment.mode
        problem, _ = self.plan.modes.at(self.plan.modes.theta)
        plan = self.plan.mode_plan(self.request, mode, self.settings[mode].request.settings)
        total: np.ndarray | None = s
        first, arrived = True, mode
        while self._next < len(self.events):
            event = self.events[self._next]
            accumulates = event.kind == ZENO and follows == event.target != arrived
            if self.request.sign * (event.t - t) > 0.0 and not accumulates:
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
            total, arrived = self._reset(transition, event, t, total), event.target
        return total

    def _guard(self, transition: Transition, source: str, slope: np.ndarray):
        def guard(point: Point) -> np.ndarray:
            return self.plan.modes.guard(point.theta, source, str(transition.name))(point.t, point.y, slope)

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
