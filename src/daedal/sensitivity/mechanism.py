"""Sensitivities of mechanisms: positions, velocities and their sensitivities by a method with projection.

Explicit and implicit methods integrate the accelerations. Half-explicit methods impose the velocity constraints and
their derivatives in every stage, with the multipliers and their sensitivities as algebraic variables.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from daedal.analysis.thresholds import STABILITY_BOUND, STIFF_GAIN
from daedal.common.tabular import FunctionTable
from daedal.driver.finish import delivered, joined_dense_output, until_the_end
from daedal.driver.mechanism import MechanismPlan
from daedal.driver.mechanism_output import PostprocessGuard, finished, outputs
from daedal.driver.request import Request, Settings
from daedal.driver.run import run
from daedal.driver.stages import Plan
from daedal.errors import InvalidProblemError
from daedal.kernels.functions import store_vector
from daedal.mechanics.formulations.formulation import ACCELERATION, Formulation, Shape, level
from daedal.mechanics.formulations.reduction import Reduction
from daedal.mechanics.start import Start
from daedal.methods import named_method
from daedal.problems import ImplicitDAE, MechanicalSystem, SemiExplicitDAE
from daedal.sensitivity.events import refuse_sliding, timed_events, warn_of_switches
from daedal.sensitivity.first_order import UNTESTED, with_corrector
from daedal.sensitivity.mechanical_result import MechanicalSensitivities
from daedal.sensitivity.motion import VariationalMotion
from daedal.sensitivity.parameters import Column, columns_of, given_starts, scales, with_floats
from daedal.symbolic import Untraceable

_MOST_EXPLICIT_STEPS = 2000.0  # that stability asks for; beyond them an implicit method is faster


class VariationalReduction(Reduction):
    """The motion with its sensitivities as an ordinary differential equation, projected after every step."""

    formulation: VariationalProjection

    def __init__(self, formulation: VariationalProjection, shape: Shape, assembly, start: Start):
        motion = self._motion = formulation.motion
        self._n_z = motion.system.n_lambda * (1 + len(motion.columns)) if formulation.half_explicit else 0
        super().__init__(formulation, shape, assembly, motion.total + self._n_z, motion.n, self._make_hook(assembly))
        self.begin(start)

    def _make_hook(self, assembly):
        if not self._motion.corrections:
            return None
        from daedal.kernels.records import Record
        from daedal.sensitivity.projection import CORRECTIONS, correct_all

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
        """Y' - rate(t, Y) = 0, for implicit methods; one matrix serves the motion and its sensitivities."""
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
        """None: it is an ordinary differential equation."""
        return {}

    @property
    def excluded(self) -> np.ndarray | None:
        """Sensitivities, where their errors are not controlled."""
        if self.formulation.control or self.formulation.half_explicit:
            return None
        return np.arange(self.n) >= self.n_state

    def tolerances(self, rtol: np.ndarray, atol: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Those of the state, and for sensitivities the absolute ones over the size of the parameter."""
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

    def unknowns(self, start: Start) -> tuple[np.ndarray, np.ndarray]:
        """The start with consistent sensitivities, and the derivatives of all."""
        motion, params = self._motion, self.assembly.given.params
        y = np.concatenate([start.z, start.r, self.assembly.sensitivities_at_start.ravel()])
        y = projected(motion, params, start.t, y)
        slope = evaluated(motion.rate, params, start.t, y)
        if not self.formulation.half_explicit:
            return y, slope
        n_q, n_c, m = motion.system.n_q, motion.system.n_lambda, len(motion.columns)
        found = evaluated(motion.dynamics, params, start.t, y).reshape(m, -1)[:, n_q : n_q + n_c]
        return np.concatenate([y, start.lam, found.ravel()]), np.concatenate([slope, np.zeros(self._n_z)])

    def write(self, record) -> None:
        """There is no record of a form."""


def evaluated(function: Any, params: Any, t: float, y: np.ndarray) -> np.ndarray:
    """The value of one of the functions of a motion."""
    arguments = (y,) if function.layout is None else (y, params)
    status, values = function.evaluate(t, *arguments)
    if status != 0:
        return function(t, *arguments)
    return values


def projected(motion: VariationalMotion, params: Any, t: float, y: np.ndarray) -> np.ndarray:
    """Sensitivities that satisfy the differentiated constraints at the (q, v) in front of them."""
    n = motion.n
    for function in motion.corrections[-2:]:
        y = np.concatenate([y[:n], y[n:] + evaluated(function, params, t, y)[n:]])
    return y


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

    def dense(self, shape: Shape, assembly, start: Start) -> Reduction:
        """The only form that there is."""
        if list(assembly.rows) != list(range(assembly.given.n_lambda)):
            raise InvalidProblemError(
                "sensitivities of a mechanism need independent constraints, and some of these depend on others: leave "
                "the superfluous ones out"
            )
        return VariationalReduction(self, shape, assembly, start)

    def sizes(self, params: Any, state: np.ndarray) -> np.ndarray:
        """The sizes of the parameters."""
        layout = self.motion.layout
        return scales(list(self.motion.columns), np.zeros(0) if layout is None else layout.numbers(params), state)


class MechanismSensitivity(Plan):
    """A plan for a mechanism with its variational equations.

    Parameters
    ----------
    problem : MechanicalSystem
    settings : Settings
        With what is wanted as `sensitivities`.
    make_plan : callable
        ``make_plan(problem, settings)``, for the problem without sensitivities.
    columns : list of Column, optional
        What is differentiated by, where others have found out.
    """

    def __init__(
        self, problem: MechanicalSystem, settings: Settings, make_plan: Any, columns: list[Column] | None = None
    ):
        assert settings.sensitivities is not None
        self.problem, self.wanted = with_floats(problem), settings.sensitivities
        bare = with_corrector(replace(settings, sensitivities=None), self.wanted)
        self.primal = make_plan(self.problem, bare)
        self.columns = columns_of(self.wanted, self.problem) if columns is None else columns
        self.starts = np.zeros((len(self.columns), problem.n))
        if columns is None:
            self.starts = given_starts(self.wanted, self.columns, problem.n)
        try:
            self.motion = VariationalMotion(self.problem, self.columns)
        except Untraceable as reason:
            raise InvalidProblemError(
                f"sensitivities of a mechanism are derived from its functions, which cannot be traced here: {reason}"
            ) from None
        method = _method(bare, self.problem)
        form = VariationalProjection(self.motion, self.wanted.control, method.works_on("semi_explicit"))
        inner = self.primal.inner.problem
        self._inner = MechanismPlan(inner, replace(bare, formulation=form, method=method))
        self._stiff: MechanismPlan | None = None  # what the automatic choice takes instead where that pays
        if _is_automatic(bare) and bare.fixed_step is None:
            implicit = named_method("radau", {})
            self._stiff = MechanismPlan(inner, replace(bare, formulation=form, method=implicit))

    def is_current(self) -> bool:
        """Whether the functions read the same from outside as when they were traced."""
        layout = self.motion.layout
        if layout is not None and not layout.fits(self.problem.params):
            return False
        return self.motion.dependencies.are_unchanged()

    def with_problem(self, problem: MechanicalSystem) -> MechanismSensitivity | None:
        """The plan for the same problem with other parameters, or None if it must be made anew."""
        problem = with_floats(problem)
        shared, layout = self.primal.with_problem(problem), self.motion.layout
        if shared is None or layout is None or not layout.fits(problem.params):
            return None
        other = copy(self)
        other.problem, other.primal = problem, shared
        other._inner = self._inner.with_problem(shared.inner.problem)
        other._stiff = None if self._stiff is None else self._stiff.with_problem(shared.inner.problem)
        return other

    # --- as a mode of a hybrid problem ------------------------------------------------------------------------------

    def slope(self, t: float, y: np.ndarray, sign: float) -> np.ndarray:
        """(v, a, r') of a state."""
        full = np.concatenate([y, np.zeros(self.motion.total - self.motion.n)])
        return evaluated(self.motion.rate, self.problem.params, t, full)[: self.motion.n]

    def from_total(self, request: Request, y0: np.ndarray, total: np.ndarray, tau: np.ndarray):
        """A stretch from d(state)/dp at a start whose time depends on p as well, with the derivatives `tau`."""
        slope = self.slope(request.span[0], y0, request.sign)
        return self.solve(request, total - np.outer(tau, slope))

    def stacked(self, solution) -> np.ndarray:
        """All sensitivities of a solution, (m, n, nt)."""
        return solution.sensitivities.values

    # --- a run ------------------------------------------------------------------------------------------------------

    def solve(self, request: Request, starts: np.ndarray | None = None):
        """Begin, run, finish; `starts` are sensitivities at the start."""
        plan, traced = self._inner, self.primal.traced
        if traced is not None and traced.n_switches and request.settings.switches != "never" and starts is None:
            base = self.primal.solve(request.changed(sensitivities=None, problem=self.problem))
            refuse_sliding(base)
            warn_of_switches(base.events)
        request, run_state = _begun(plan, request)
        if self._stiff is not None and _is_stiff(run_state, request):
            run_state.give_back()
            plan = self._stiff
            request, run_state = _begun(plan, request)
        run_state.assembly.sensitivities_at_start = self.starts if starts is None else starts
        segments = run(run_state, request)
        salvage = PostprocessGuard()
        t, states = outputs(request, segments, salvage)
        solution = finished(plan, request, run_state, segments, t, states, salvage)
        solution.as_stated(self.problem)
        words = {} if traced is None else traced.words
        solution.functions = FunctionTable({**words, "sensitivities": "exact derivatives"})
        solution.sensitivities = self._sensitivities(request, segments, solution)
        if request.settings.events is not None and solution.dense is not None:
            found = solution.sensitivities
            solution.events = timed_events(
                self, request, solution, lambda t: np.array([found.at(k, t).y for k in range(len(self.columns))])
            )
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
        names = tuple(column.name for column in self.columns)
        return MechanicalSensitivities(
            names, self.motion, self.problem.params, solution, raw[:, : solution.t.size], dense
        )


def _begun(plan: MechanismPlan, request: Request) -> tuple[Request, Any]:
    """The request of a plan, and its run, which is about to start."""
    settings = replace(
        request.settings, sensitivities=None, formulation=plan.formulation, method=plan.method, switches="never"
    )
    request = replace(request, problem=plan.problem, settings=settings)
    return request, plan.begin(request)


def _is_stiff(run_state: Any, request: Request) -> bool:
    """Whether what decays at the start would keep an explicit method from long steps over the whole interval."""
    from daedal.analysis.measures import measure

    start = run_state.start
    found = measure(run_state.assembly, start.t, np.concatenate([start.z, start.r]))
    if found is None or not found.sigF < 0.0:
        return False
    length = abs(request.span[1] - request.span[0])
    return -found.sigF * length > _MOST_EXPLICIT_STEPS * STABILITY_BOUND and -found.sigF > STIFF_GAIN * found.omegaF


def _is_automatic(settings: Settings) -> bool:
    return isinstance(settings.method, str) and settings.method == "auto" and not settings.options


def _method(settings: Settings, system: MechanicalSystem) -> Any:
    """An explicit method, or a half-explicit or implicit one where that is asked for."""
    if _is_automatic(settings):
        return named_method("dopri5", {"norm": "max"})
    automatic = isinstance(settings.method, str) and settings.method == "auto"
    method = named_method("dopri5" if automatic else settings.method, settings.options)
    if method.works_on("semi_explicit"):
        if not system.n_lambda:
            raise InvalidProblemError(
                f"{type(method).__name__} is for constraints, and there are none: sensitivities of this mechanism are "
                "integrated by 'dopri5' and other explicit methods"
            )
        return method
    if not (method.works_on("rate") or (method.works_on("residual") and method.takes_copies)):
        raise InvalidProblemError(
            "sensitivities of mechanisms are integrated with projection by 'dopri5' and other explicit methods, by "
            "half-explicit ones such as 'hem5', and by 'dassl' and 'radau' where they are stiff, not by "
            f"{type(method).__name__}: leave method out"
        )
    return method
