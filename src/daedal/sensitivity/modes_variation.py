"""Sensitivities through modes: the run, followed by the variational equations of every arc, with jumps between arcs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from daedal.common.messages import warn
from daedal.driver.options import Sensitivities
from daedal.driver.plan_stages import Plan, Recent
from daedal.driver.request import Request, Settings
from daedal.errors import InvalidProblemError
from daedal.events.table import EventTable
from daedal.hybrid.hybrid_problem import ZENO, GuardOfRun, HybridProblem, Transition
from daedal.hybrid.hybrid_run import ONLY_MODE, solve_between
from daedal.hybrid.hybrid_solution import HybridSolution
from daedal.hybrid.mode_plans import ByMode, ModeSettings, RunSettings
from daedal.hybrid.mode_state import BoundTransition, StateForm, make_consistent
from daedal.hybrid.segments import HybridEvent, HybridSegment
from daedal.problems import ImplicitDAE, LinearDAE, MechanicalSystem, SemiExplicitDAE
from daedal.problems.arguments import positional_names
from daedal.problems.named_inputs import at_piece
from daedal.problems.preparable import prepared_of
from daedal.sensitivity.differentiation import Column, Differentiation, ParameterNumbers, require_known, with_floats
from daedal.sensitivity.jumps import (
    Guard,
    Point,
    SensitivityWarning,
    derivative_along,
    event_time,
    size_between,
    warn_of_switches,
)
from daedal.sensitivity.result import HybridSensitivities
from daedal.sensitivity.sensitivity_plan import SensitivityPlan, Variation
from daedal.symbolic.tracing.parameters import is_internal

_TAKEN = ("transition", "immediate")


class VariedModes:
    """A hybrid problem as a function of the varied parameters."""

    def __init__(self, problem: HybridProblem, names: tuple[str, ...]):
        self.names, self._given = names, problem
        self._parameters = ByMode(problem.modes, lambda mode: _numbers_of(problem.modes[mode].problem))
        self.positions: Mapping[str, list[int | None]] = ByMode(problem.modes, self._positions)
        numbers: dict[str, float] = {}
        for mode in problem.mode_names:
            own = self._parameters[mode]
            numbers |= dict(zip(own.labels, own.values.tolist(), strict=True))
        self.known = frozenset(numbers)
        self.theta = np.array([numbers.get(name, 0.0) for name in names])
        self._made: tuple[bytes, HybridProblem, Mapping[str, StateForm]] | None = None
        self._guards: dict[tuple[str, str], Any] = {}

    def _positions(self, mode: str) -> list[int | None]:
        labels = self._parameters[mode].labels
        return [labels.index(name) if name in labels else None for name in self.names]

    def guard(self, theta: np.ndarray, source: str, name: str) -> Any:
        """The guard of a transition as a function of (t, y, yp), with these parameter values."""
        problem, forms = self.at(theta)
        if (source, name) not in self._guards:
            own = next(x for x in problem.transitions_from(source) if x.name == name)
            guard = own.guard.make() if isinstance(own.guard, GuardOfRun) else own.guard
            self._guards[source, name] = forms[source].bind(guard, f"guard of '{name}'")
        return self._guards[source, name]

    def at(self, theta: np.ndarray) -> tuple[HybridProblem, Mapping[str, StateForm]]:
        """The problem with these parameter values, and the forms of its states."""
        key = theta.tobytes()
        if self._made is None or self._made[0] != key:
            problem = self._given if np.array_equal(theta, self.theta) else self._with(theta)
            self._made = key, problem, ByMode(problem.modes, lambda mode: StateForm(problem.modes[mode].problem))
            self._guards = {}
        return self._made[1:]

    def _with(self, theta: np.ndarray) -> HybridProblem:
        given, holder = self._given, self._given.parameter_holder
        if holder is not None:  # guards and resets that hold parameters are rebuilt
            return given.with_params(self._params(_numbers_of(holder), theta))
        modes = {
            name: replace(mode, problem=mode.problem.with_params(self._params(self._parameters[name], theta)))
            if any(position is not None for position in self.positions[name])
            else mode
            for name, mode in given.modes.items()
        }
        return HybridProblem(modes, given.transitions)

    def _params(self, numbers: ParameterNumbers, theta: np.ndarray) -> Any:
        values = zip(self.names, theta.tolist(), strict=True)
        return numbers.changed({numbers.labels.index(name): x for name, x in values if name in numbers.labels})


def _numbers_of(problem: Any) -> ParameterNumbers:
    return ParameterNumbers.of(with_floats(problem) if hasattr(problem, "with_params") else problem)


class ModesVariation(Variation):
    """Variational equations of the modes of a hybrid problem, arc by arc along its solution.

    The columns of `given` are parameters of some mode, or initial values, by name. The problem is solved segment by
    segment between `breakpoints`.
    """

    times_events = False

    def __init__(self, given: Differentiation, breakpoints: Any = None):
        self.given, self.breakpoints = given, breakpoints
        self.problem = at_piece(given.problem, -np.inf, by_samples=True)
        # plans by mode; they do not depend on parameters or on the segment between break points
        self._plans: dict[str, Any] = {}

    def with_problem(self, problem: HybridProblem, breakpoints: Any = None) -> ModesVariation:
        """A copy for other parameters."""
        primal: Any = self.given.primal.with_problem(problem)
        other = ModesVariation(replace(self.given, problem=problem, primal=primal), breakpoints)
        other._plans = self._plans
        return other

    def is_current(self) -> bool:
        return all(plan.is_current() for plan in self._plans.values())

    def base(self, request: Request) -> HybridSolution:
        """The run through modes."""
        request = request.changed(dense_output=True)
        if self.breakpoints is None:
            return self.given.primal.solve(request)
        primal: Any = self.given.primal
        return solve_between(request, self.breakpoints, primal)

    def along(self, base: HybridSolution, request: Request) -> HybridSolution:
        """Sensitivities of the arcs of a run."""
        walk = _Walk(self, request.changed(dense_output=True), base)
        base.sensitivities = walk.to_the_end()
        base.events = EventTable(walk.events)
        return base

    def mode_plan(self, mode: str, problem: Any, settings: Settings) -> Any:
        """Plan for the variational equations of this mode's problem."""
        known = self._plans.get(mode)
        shared = None if known is None else known.with_problem(problem)
        if shared is None:
            labels = _numbers_of(problem).labels
            places = {label: position for position, label in enumerate(labels)}
            columns = [Column(name, places.get(name)) for name in self.given.names]
            wanted = replace(self.given.wanted, names=columns, initial=None)
            own = replace(settings, sensitivities=wanted, events=None)
            shared = self._plans[mode] = self.given.make_plan(problem, own)
        return shared


class ModesPlan(SensitivityPlan):
    """The plan of a hybrid problem with sensitivities, which is valid for all parameters."""

    variation: ModesVariation

    def with_problem(self, problem: Any) -> ModesPlan:
        return ModesPlan(self.variation.with_problem(problem))


_ONLY_PLAN = "pieces with sensitivities"


def solve_pieces(request: Request, breakpoints: Any, make_plan: Callable[[Any, Settings], Plan], stated: Any) -> Any:
    """The solution of a problem of any class between break points, with the sensitivities of its settings.

    Plans are cached with `stated`, the problem with its original parameters and inputs.
    """
    if not isinstance(request.problem, HybridProblem):
        only = HybridProblem({ONLY_MODE: request.problem})
        request = request.changed(problem=only, initial=(ONLY_MODE, request.initial))
    plans = prepared_of(stated).setdefault(_ONLY_PLAN, Recent(_MOST_PLANS))
    known = plans.get(request.settings.key)
    if known is None or not known.is_current():
        known = modes_plan(request.problem, request.settings, make_plan)
        plans.keep(request.settings.key, known)
    return ModesPlan(known.variation.with_problem(request.problem, breakpoints)).solve(request)


_MOST_PLANS = 4


def modes_plan(problem: HybridProblem, settings: Settings, make_plan: Callable[[Any, Settings], Plan]) -> ModesPlan:
    """The plan of a hybrid problem with the sensitivities requested in `settings`."""
    wanted = settings.sensitivities
    assert wanted is not None
    for name in problem.mode_names:
        mode = problem.modes[name]
        if not isinstance(mode.problem, (ImplicitDAE, SemiExplicitDAE, LinearDAE, MechanicalSystem)):
            raise InvalidProblemError(
                f"sensitivities through modes are computed for an ImplicitDAE, a SemiExplicitDAE and a "
                f"MechanicalSystem; mode '{name}' is a {type(mode.problem).__name__}"
            )
    columns = tuple(Column(name) for name in _names(at_piece(problem, -np.inf, by_samples=True), wanted))
    _check_models(problem)
    bare = replace(settings, sensitivities=None)
    primal, starts = make_plan(problem, bare), np.zeros((0, 0))
    return ModesPlan(ModesVariation(Differentiation(problem, wanted, bare, make_plan, primal, columns, starts)))


def _names(problem: HybridProblem, wanted: Sensitivities) -> tuple[str, ...]:
    """The requested quantities: parameters and initial values of some mode."""
    labels = (_numbers_of(problem.modes[mode].problem).labels for mode in problem.mode_names)
    known = list(dict.fromkeys(label for mode in labels for label in mode if not is_internal(label)))
    names = tuple(known) if wanted.names is True else wanted.names
    variables = (StateForm(problem.modes[mode].problem).labels for mode in problem.mode_names)
    starts = list(dict.fromkeys(f"{name}(0)" for mode in variables for name in mode))
    return require_known([names] if isinstance(names, (str, int)) else list(names), known, starts)


def _check_models(problem: HybridProblem):
    """Raise for functions created from a model that hold its parameters, since these cannot be differentiated."""
    if problem.parameter_holder is not None:
        return
    for transition in problem.transitions:
        for function in (transition.guard, transition.reset):
            module = getattr(function, "__module__", "") or ""
            names = positional_names(function) if callable(function) else None
            if callable(function) and module.startswith("daedal.") and len(names or ()) < 4:
                raise InvalidProblemError(
                    f"sensitivities through '{transition.name}', which was created by {module.split('.')[-1]}, are "
                    f"not supported: define guard and reset as functions of the parameters, Transition(..., "
                    "guard=lambda t, q, v, p: ..., reset=lambda t, q, v, p: ...)"
                )


class _Walk:
    """The sensitivities along a run through modes, integrated arc by arc."""

    def __init__(self, variation: ModesVariation, request: Request, solution: HybridSolution):
        self.variation, self.request, self.solution = variation, request, solution
        self.names = variation.given.names
        common = RunSettings.of(request.settings).common
        self.settings = ByMode(variation.given.problem.modes, lambda name: ModeSettings(request, common, name))
        self.events: list[HybridEvent] = list(solution.events)
        self.modes = VariedModes(variation.problem, self.names)
        self._plans: dict[str, Any] = {}
        self._since: float | None = None  # start of the segment whose inputs `modes` has
        self._next = 0  # index of the next event
        self.parts: list[Any] = []
        self.tau = np.zeros(len(self.names))

    def to_the_end(self) -> HybridSensitivities:
        segments = self.solution.segments
        total = None  # d(state)/dp at the time of the last transition, including its dependence on p
        if segments:
            form = self.modes.at(self.modes.theta)[1][segments[0].mode]
            total = self._given(form)
        for k, segment in enumerate(segments):
            self._take_inputs(min(segment.t0, segment.t1))
            if total is None or segment.t0 == segment.t1:
                self.parts.append(None)
                continue
            s, part = self._over_arc(segment, total)
            self.parts.append(part)
            total = s
            self.tau = np.zeros(len(self.names))
            if k + 1 < len(segments) or self._next < len(self.events):
                total = self._through(segment, s, segments[k + 1].mode if k + 1 < len(segments) else None)
        return HybridSensitivities(self.names, self.solution, self.parts)

    def _take_inputs(self, low: float) -> None:
        """Set the inputs of the equations to those between `low` and the next break point."""
        if self.variation.problem is not self.variation.given.problem and low != self._since:
            problem = at_piece(self.variation.given.problem, low, by_samples=True)
            self.modes, self._plans, self._since = VariedModes(problem, self.names), {}, low

    def _plan(self, mode: str) -> Any:
        """The plan for the variational equations of a mode, with the inputs of the current segment."""
        if mode not in self._plans:
            problem = self.modes.at(self.modes.theta)[0].modes[mode].problem
            self._plans[mode] = self.variation.mode_plan(mode, problem, self.settings[mode].request.settings)
        return self._plans[mode]

    def _given(self, form: StateForm) -> np.ndarray:
        start = np.zeros((len(self.names), form.n))
        for k, name in enumerate(self.names):
            if name.endswith("(0)") and name not in self.modes.known:
                variable = name.removesuffix("(0)")
                if variable not in form.labels:
                    raise InvalidProblemError(
                        f"sensitivities: '{name}' is not an initial value of the initial mode, which has "
                        f"{', '.join(form.labels)}"
                    )
                start[k, form.labels.index(variable)] = 1.0
        for name, value in (self.variation.given.wanted.initial or {}).items():
            if name not in self.names:
                raise InvalidProblemError(f"initial_sensitivities: '{name}' is not among the sensitivities")
            stacked = np.concatenate([np.atleast_1d(x) for x in value]) if isinstance(value, tuple) else value
            start[self.names.index(name)] = np.asarray(stacked, dtype=float)
        return start

    def _over_arc(self, segment: HybridSegment, total: np.ndarray) -> tuple[np.ndarray, Any]:
        """Integrate the sensitivities over an arc; returns their final values and the result."""
        settings = self.settings[segment.mode]
        plan = self._plan(segment.mode)
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
        found = plan.variation.run(request, total, self.tau)
        return found.sensitivities.values[:, :, -1], found

    def _through(self, segment: HybridSegment, s: np.ndarray, follows: str | None) -> np.ndarray | None:
        """d(state)/dp after the transitions at the end of an arc, in the next mode; None if it does not exist.

        After an accumulation of transitions, the next arc begins before the accumulation time.
        """
        t, mode = segment.t1, segment.mode
        problem, _ = self.modes.at(self.modes.theta)
        plan = self._plan(mode)
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
                slope = plan.variation.slope(t, event.y, self.request.sign)
                guard = self._guard(transition, event.source, slope)
                at = Point(t, event.y, self.modes.theta)
                length = abs(segment.t1 - segment.t0)
                size = size_between(guard, lambda t: _state(segment, t), segment.t0, segment.t1, at.theta)
                self.tau, grazing = event_time(guard, at, slope, s, length, size)
                if grazing:
                    self._say(event, "whose guard is only touched")
                    return None
                total = s + np.outer(self.tau, slope)
                names = dict(zip(self.names, self.tau.tolist(), strict=True))
                self.events[self._next - 1] = replace(event, sensitivity=names)
                first = False
            if event.target is None:
                return None
            total, arrived = self._reset(transition, event, t, total), event.target
        return total

    def _guard(self, transition: Transition, source: str, slope: np.ndarray) -> Guard:
        def guard(point: Point) -> np.ndarray:
            return self.modes.guard(point.theta, source, str(transition.name))(point.t, point.y, slope)

        return guard

    def _reset(self, transition: Transition, event: HybridEvent, t: float, total: np.ndarray) -> np.ndarray:
        target = event.target
        assert target is not None

        def reset(point: Point) -> np.ndarray:
            problem, forms = self.modes.at(point.theta)
            own = next(x for x in problem.transitions_from(event.source) if x.name == transition.name)
            begin = BoundTransition(own, event.source, forms).carry_over(target, point.t, point.y, None)
            if begin.correct:
                begin = make_consistent(forms[target], point.t, begin, self.settings[target].weights(begin.y))
            return begin.y

        at, length = Point(t, event.y, self.modes.theta), abs(self.request.span[1] - self.request.span[0])
        unit = np.eye(len(self.names))
        return np.array(
            [derivative_along(reset, at, Point(self.tau[k], row, unit[k]), length) for k, row in enumerate(total)]
        )

    def _say(self, event: HybridEvent, why: str):
        warn(
            f"sensitivities do not exist after the transition '{event.name}' at t = {event.t:.6g}, {why}: they are "
            "NaN from there on",
            SensitivityWarning,
        )


def _state(segment: HybridSegment, t: float) -> np.ndarray:
    return segment.values(np.array([t]))[:, 0]
