"""Sensitivities of mechanisms: positions, velocities and their sensitivities by a method with projection.

Explicit and implicit methods integrate the accelerations. Half-explicit methods impose the velocity constraints and
their derivatives in every stage, with the multipliers and their sensitivities as algebraic variables.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from daedal.analysis.measures import measure
from daedal.analysis.thresholds import STABILITY_BOUND, STIFF_GAIN
from daedal.common.tabular import FunctionTable
from daedal.driver.finish import delivered, joined_dense_output, until_the_end
from daedal.driver.first_order_choice import is_automatic
from daedal.driver.mechanism import MechanismPlan
from daedal.driver.mechanism_output import PostprocessGuard, finished, outputs
from daedal.driver.plan_stages import Plan
from daedal.driver.request import Request, Settings
from daedal.driver.run_segments import run
from daedal.errors import InvalidProblemError
from daedal.kernels.functions import store_vector
from daedal.mechanics.constrained import JACOBIAN, MASS
from daedal.mechanics.formulations.formulation import ACCELERATION, Formulation, Shape, level
from daedal.mechanics.formulations.reformulation import Reformulation
from daedal.mechanics.setting import ConsistentStart
from daedal.methods.named_methods import named_method
from daedal.problems import ImplicitDAE, MechanicalSystem, SemiExplicitDAE
from daedal.sensitivity.differentiation import Differentiation, scales
from daedal.sensitivity.first_order_variation import UNTESTED, with_corrector
from daedal.sensitivity.jumps import refuse_sliding, warn_of_switches
from daedal.sensitivity.result import MechanicalSensitivities
from daedal.sensitivity.sensitivity_plan import SensitivityPlan, Variation
from daedal.sensitivity.variational_motion import VariationalMotion, evaluated, projected
from daedal.symbolic import Untraceable
from daedal.symbolic.dependencies import Dependencies
from daedal.symbolic.tracing.parameters import ParameterLayout

# ratio of M_ii to the smallest mass that moves with coordinate i, below which constraints determine the coordinate
_DETERMINED = 1e-12
_SHORTEST = 1e-4  # fraction of the interval to which steps are limited so that they do not pass two switches
# number of explicit steps required by stability, above which an implicit method is faster
_MOST_EXPLICIT_STEPS = 2000.0


class VariationalReduction(Reformulation):
    """The motion with its sensitivities as an ordinary differential equation with projection after every step."""

    formulation: VariationalProjection

    def __init__(self, formulation: VariationalProjection, shape: Shape, assembly, start: ConsistentStart):
        motion = self._motion = formulation.motion
        self._n_z = motion.system.n_lambda * (1 + len(motion.columns)) if formulation.half_explicit else 0
        super().__init__(formulation, shape, assembly, motion.total + self._n_z, motion.n, self._make_hook(assembly))
        self.begin(start)

    def _make_hook(self, assembly):
        if not self._motion.corrections:
            return None
        from daedal.kernels.records import Record
        from daedal.sensitivity.motion_corrections import CORRECTIONS, correct_all

        names = ("positions", "velocities", "sensitivities")[-len(self._motion.corrections) :]
        callbacks = {
            name: self._callback(assembly, function)
            for name, function in zip(names, self._motion.corrections, strict=True)
        }
        if "positions" not in callbacks:
            callbacks["positions"] = assembly.bridge.absent()
        n_q, total = self._motion.system.n_q, self._motion.total
        return correct_all, Record.allocated(CORRECTIONS, n=total, leading=n_q, **callbacks)

    def _callback(self, assembly, function):
        total = self._motion.total
        return assembly.bridge.function(
            function, (total,), (total,), store_vector(function.__name__, total), assembly.given.params
        )

    @cached_property
    def rate(self) -> Any:
        """Y'."""
        return self._motion.rate

    @cached_property
    def problem(self) -> ImplicitDAE:
        """Y' - rate(t, Y) = 0, for implicit methods; the motion and its sensitivities share one matrix."""
        residual, matrix = self._motion.implicit()
        problem = ImplicitDAE(residual, self.n, jacobian=matrix, params=self.assembly.given.params)
        object.__setattr__(problem, "copies", 1 + len(self._motion.columns))
        return problem

    @cached_property
    def semi_explicit(self) -> SemiExplicitDAE | None:
        """Y' = f(t, Y, Z), 0 = g(t, Y), with the multipliers and their sensitivities Z."""
        if not self.formulation.half_explicit:
            return None
        f, g = self._motion.half_explicit()
        problem = SemiExplicitDAE(f, g, self._motion.total, self._n_z, params=self.assembly.given.params)
        object.__setattr__(problem, "copies", 1 + len(self._motion.columns))
        return problem

    @cached_property
    def options(self) -> dict[str, Any]:
        """Empty, since this is an ordinary differential equation."""
        return {}

    @property
    def excluded(self) -> np.ndarray | None:
        """Mask of the sensitivities if they are excluded from error control, otherwise None."""
        if self.formulation.control or self.formulation.half_explicit:
            return None
        return np.arange(self.n) >= self.n_state

    def tolerances(self, rtol: np.ndarray, atol: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Tolerances of the state; for sensitivities, absolute tolerances are divided by the size of the parameter."""
        sizes = self.formulation.sizes(self.assembly.given.params, self.y0[: self.n_state])
        own = (atol / sizes[:, None]).ravel()
        if not self.formulation.half_explicit:
            return np.tile(rtol, 1 + sizes.size), np.concatenate([atol, own])
        share = 1.0
        if not self.formulation.control:
            own, share = np.full(own.size, UNTESTED), 1.0 / np.sqrt(1.0 + sizes.size)
        of_z = np.full(self._n_z, float(np.min(rtol))), np.full(self._n_z, float(np.min(atol)))
        return (
            np.concatenate([share * rtol, np.tile(rtol, sizes.size), of_z[0]]),
            np.concatenate([share * atol, own, of_z[1]]),
        )

    def unknowns(self, start: ConsistentStart) -> tuple[np.ndarray, np.ndarray]:
        """The start with consistent sensitivities, and all derivatives."""
        motion, params = self._motion, self.assembly.given.params
        y = self._consistent(start, *self.assembly.sensitivities_at_start)
        slope = evaluated(motion.rate, params, start.t, y)
        if not self.formulation.half_explicit:
            return y, slope
        n_q, n_c, m = motion.system.n_q, motion.system.n_lambda, len(motion.columns)
        found = evaluated(motion.dynamics, params, start.t, y).reshape(m, -1)[:, n_q : n_q + n_c]
        return np.concatenate([y, start.lam, found.ravel()]), np.concatenate([slope, np.zeros(self._n_z)])

    def _consistent(self, start: ConsistentStart, given: np.ndarray, hold: bool) -> np.ndarray:
        """The start with sensitivities projected onto the differentiated constraints, as close as possible to the given
        ones.

        If `hold`, a coordinate whose initial value is a column keeps its sensitivities of position and velocity, unless
        the constraints determine it; the others adapt. If initial values are corrected, sensitivities are projected as
        given.
        """
        motion, params = self._motion, self.assembly.given.params
        n, n_q = motion.n, motion.system.n_q
        state = np.concatenate([start.z, start.r])
        y = projected(motion, params, start.t, np.concatenate([state, given.ravel()]))
        named = {k: c.variable for k, c in enumerate(motion.columns) if c.variable is not None and c.variable < 2 * n_q}
        values = None
        if hold and named and motion.system.n_lambda:
            values = self.assembly.evaluate(start.t, start.z, what=MASS | JACOBIAN)
        if values is None:
            return y
        mass, rows, places = values["mass"], values["jacobian"], sorted({i % n_q for i in named.values()})
        at_position = at_velocity = _free_changes(mass, rows[: motion.system.n_constraints], places)
        if motion.system.n_velocity_constraints:
            at_velocity = _free_changes(mass, rows, places)
        s, positions = y[n:].reshape(-1, n), {k: i for k, i in named.items() if i < n_q}
        if positions:
            for k, i in positions.items():
                s[k, :n_q] += (given[k, i] - s[k, i]) * at_position[i]
            s[:, n_q : 2 * n_q] = given[:, n_q : 2 * n_q]
            s = projected(motion, params, start.t, y)[n:].reshape(-1, n)  # velocities after positions
        for k, i in named.items():
            j = n_q + i % n_q
            s[k, n_q : 2 * n_q] += (given[k, j] - s[k, j]) * at_velocity[i % n_q]
        return np.concatenate([state, s.ravel()])

    def write(self, record) -> None:
        """Do nothing: this form has no record."""


def _free_changes(mass: np.ndarray, rows: np.ndarray, places: list[int]) -> dict[int, np.ndarray]:
    """For each coordinate, the smallest change in the norm of M that the constraints allow and that changes it by 1.

    Zero for coordinates determined by the constraints.
    """
    n, n_c = mass.shape[0], rows.shape[0]
    matrix, units = np.zeros((n + n_c, n + n_c)), np.zeros((n + n_c, len(places)))
    matrix[:n, :n], matrix[:n, n:], matrix[n:, :n] = mass, rows.T, rows
    units[places, range(len(places))] = 1.0
    found = {}
    for i, change in zip(places, np.linalg.solve(matrix, units)[:n].T, strict=True):
        is_free = change[i] * (mass[i, i] or np.max(np.abs(mass))) > _DETERMINED
        found[i] = change / change[i] if is_free else np.zeros(n)
    return found


@dataclass(frozen=True, eq=False)
class VariationalProjection(Formulation):
    """Coordinate projection of a mechanism and its sensitivities."""

    motion: VariationalMotion
    control: bool = True
    half_explicit: bool = False
    name = "variational_projection"
    ordinary = True

    def shape(self, system) -> Shape:
        """The underlying ODE."""
        return Shape(level(system.m, system.m), top=ACCELERATION)

    def dense(self, shape: Shape, assembly, start: ConsistentStart) -> Reformulation:
        """The variational equations; the constraints must be independent."""
        if list(assembly.rows) != list(range(assembly.given.n_lambda)):
            raise InvalidProblemError(
                "sensitivities of a mechanism need independent constraints, but some of these are redundant: "
                "remove them"
            )
        return VariationalReduction(self, shape, assembly, start)

    def sizes(self, params: Any, state: np.ndarray) -> np.ndarray:
        """Sizes of the parameters."""
        layout = self.motion.layout
        return scales(list(self.motion.columns), np.zeros(0) if layout is None else layout.numbers(params), state)


class MotionVariation(Variation):
    """Variational equations of a mechanism, integrated with projection onto the differentiated constraints."""

    def __init__(self, given: Differentiation):
        self.given, settings = given, given.settings
        try:
            self.motion = VariationalMotion(given.problem, given.columns)
        except Untraceable as reason:
            raise InvalidProblemError(
                f"sensitivities of a mechanism require traceable functions, but these cannot be traced: {reason}"
            ) from None
        method = _method(settings, given.problem)
        form = VariationalProjection(self.motion, given.wanted.errors, method.supports("semi_explicit"))
        system = given.primal.inner.problem
        self._plan = MechanismPlan(system, replace(settings, formulation=form, method=method))
        self._stiff: MechanismPlan | None = None  # the plan chosen automatically for stiff mechanisms
        if is_automatic(settings) and settings.fixed_step is None:
            implicit = named_method("radau", {})
            self._stiff = MechanismPlan(system, replace(settings, formulation=form, method=implicit))

    @property
    def layout(self) -> ParameterLayout | None:
        return self.motion.layout

    @property
    def dependencies(self) -> Dependencies:
        return self.motion.dependencies

    def with_given(self, given: Differentiation) -> MotionVariation:
        other, system = copy(self), given.primal.inner.problem
        other.given, other._plan = given, self._plan.with_problem(system)
        other._stiff = None if self._stiff is None else self._stiff.with_problem(system)
        return other

    def slope(self, t: float, y: np.ndarray, sign: float) -> np.ndarray:
        """(v, a, r') of a state."""
        full = np.concatenate([y, np.zeros(self.motion.total - self.motion.n)])
        return evaluated(self.motion.rate, self.given.problem.params, t, full)[: self.motion.n]

    # --- a run ------------------------------------------------------------------------------------------------------

    def base(self, request: Request) -> Any:
        """The solution alone if hidden switches may be passed, otherwise None; events do not require it."""
        return self.given.primal.solve(request) if self.given.switches(request.settings) else None

    def along(self, base: Any, request: Request) -> Any:
        """The solution over the same interval with sensitivities, which do not jump at hidden switches."""
        refuse_sliding(base)
        warn_of_switches(base.events)
        return self.run(_within_switches(base, request), self.given.starts)

    def run(self, request: Request, starts: np.ndarray, tau: np.ndarray | None = None) -> Any:
        if tau is not None:
            y0 = np.concatenate([np.atleast_1d(part) for part in request.initial])
            starts = starts - np.outer(tau, self.slope(request.span[0], y0, request.sign))
        plan = self._plan
        request, run_state = _begun(plan, request)
        if self._stiff is not None and _is_stiff(run_state, request):
            run_state.give_back()
            plan = self._stiff
            request, run_state = _begun(plan, request)
        run_state.assembly.sensitivities_at_start = starts, not request.settings.correct_initial
        segments = run(run_state, request)
        salvage = PostprocessGuard()
        t, states = outputs(request, segments, salvage)
        solution = finished(plan, request, run_state, segments, t, states, salvage)
        solution.as_stated(self.given.problem)
        solution.functions = FunctionTable({**self.given.words, "sensitivities": "exact derivatives"})
        solution.sensitivities = self._sensitivities(request, segments, solution)
        run_state.give_back()
        return delivered(solution, segments)

    def _sensitivities(self, request: Request, segments, solution) -> MechanicalSensitivities:
        n = self.motion.n
        first = [0 if i == 0 or request.times is not None else 1 for i in range(len(segments))]
        raw = np.concatenate(
            [s.outcome.y[n : self.motion.total, k:] for s, k in zip(segments, first, strict=True)], axis=1
        )
        parts = [s.outcome.dense for s in segments if s.outcome.dense is not None]
        dense = until_the_end(request, joined_dense_output(parts), segments[-1]) if parts else None
        if dense is not None:
            dense = replace(dense, coefficients=np.ascontiguousarray(dense.coefficients[:, n : self.motion.total]))
        params, raw = self.given.problem.params, raw[:, : solution.t.size]
        return MechanicalSensitivities(self.given.names, self.motion, params, solution, raw, dense)


def motion_plan(
    problem: MechanicalSystem, settings: Settings, make_plan: Callable[[Any, Settings], Plan]
) -> SensitivityPlan:
    """The plan of a mechanism with the sensitivities requested in `settings`."""
    assert settings.sensitivities is not None
    settings = with_corrector(settings, settings.sensitivities)
    return SensitivityPlan(MotionVariation(Differentiation.of(problem, settings, make_plan)))


def _begun(plan: MechanismPlan, request: Request) -> tuple[Request, Any]:
    """The request with the formulation and method of `plan`, and a run that is ready to start."""
    settings = replace(
        request.settings, sensitivities=None, formulation=plan.formulation, method=plan.method, switches="never"
    )
    request = replace(request, problem=plan.problem, settings=settings)
    return request, plan.begin(request)


def _is_stiff(run_state: Any, request: Request) -> bool:
    """Whether decay rates at the start would force an explicit method to take short steps over the whole interval."""
    start = run_state.start
    found = measure(run_state.assembly, start.t, np.concatenate([start.z, start.r]))
    if found is None or not found.sigF < 0.0:
        return False
    length = abs(request.span[1] - request.span[0])
    return -found.sigF * length > _MOST_EXPLICIT_STEPS * STABILITY_BOUND and -found.sigF > STIFF_GAIN * found.omegaF


def _method(settings: Settings, system: MechanicalSystem) -> Any:
    """An explicit method, or a half-explicit or implicit one if requested."""
    if is_automatic(settings):
        return named_method("dopri5", {"norm": "max"})
    automatic = isinstance(settings.method, str) and settings.method == "auto"
    method = named_method("dopri5" if automatic else settings.method, settings.options)
    if method.supports("semi_explicit"):
        if not system.n_lambda:
            raise InvalidProblemError(
                f"{type(method).__name__} is for constrained mechanisms, and this one has no constraints: its "
                "sensitivities are integrated by 'dopri5' and other explicit methods"
            )
        return method
    if not (method.supports("rate") or (method.supports("residual") and method.shares_newton_matrix)):
        raise InvalidProblemError(
            "sensitivities of mechanisms are integrated with projection by 'dopri5' and other explicit methods, "
            "by half-explicit ones such as 'hem5', and by 'dassl' and 'radau' if they are stiff, not by "
            f"{type(method).__name__}: omit method"
        )
    return method


def _within_switches(base: Any, request: Request) -> Request:
    """The request with steps no longer than the time between two switches, so that no branch is skipped."""
    times = np.unique([event.t for event in base.events if event.kind != "event"])
    if times.size < 2:
        return request
    shortest = max(float(np.diff(times).min()), _SHORTEST * abs(request.span[1] - request.span[0]))
    settings = request.settings
    return request.changed(settings=replace(settings, max_step=min(settings.max_step, 0.5 * shortest)))
