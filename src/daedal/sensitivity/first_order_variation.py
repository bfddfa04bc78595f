"""Sensitivities of first-order problems: variational equations integrated together with the problem.

Newton's matrix of the combined system is block triangular with equal blocks on its diagonal. DASSL and Radau omit the
off-diagonal blocks: all use one factorisation, and the neglected part is nilpotent (Maly and Petzold's simultaneous
corrector).
Rosenbrock methods need the whole matrix; their steps are straight-line code, which eliminates each block once. Explicit
and half-explicit methods use the equations in the form of :class:`daedal.sensitivity.variational.ExplicitForm`.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from copy import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from daedal.analysis.thresholds import SHARPEST_IN_ONE
from daedal.common.tabular import FunctionTable
from daedal.driver.any_index import ReducedForm
from daedal.driver.first_order import FirstOrderPlan, FirstOrderRunState
from daedal.driver.first_order_choice import is_automatic
from daedal.driver.options import Sensitivities
from daedal.driver.plan_stages import Plan
from daedal.driver.request import Request, Settings
from daedal.driver.traced import linear_solver_of
from daedal.errors import IntegrationError, InvalidProblemError
from daedal.initial.consistent import consistent_initial, split_initial
from daedal.initial.variable_kinds import partials_of
from daedal.methods.named_methods import named_method
from daedal.problems import ImplicitDAE, SemiExplicitDAE
from daedal.problems.checks import check_tolerances
from daedal.problems.compile import with_numbers
from daedal.sensitivity.consistent_sensitivities import consistent_sensitivities, sensitivities_of_array
from daedal.sensitivity.differentiation import Differentiation, scales
from daedal.sensitivity.jumps import Unfollowed, refuse_sliding, solve_through_switches, warn_of_switches
from daedal.sensitivity.result import FirstOrderSensitivities
from daedal.sensitivity.sensitivity_plan import SensitivityPlan, Variation
from daedal.sensitivity.variational import ExplicitForm, Variational, differenced_problem, variational_problem
from daedal.solution.solution import DenseOutput, Solution
from daedal.symbolic import Untraceable
from daedal.symbolic.dependencies import Dependencies
from daedal.symbolic.tracing.parameters import ParameterLayout
from daedal.symbolic.tracing.problem import traced_problem
from daedal.symbolic.tracing.traced_first_order import traced_implicit

UNTESTED = 1e100
"""An absolute tolerance that is always met, for methods whose error test has no mask."""
_LARGEST_STEP_IN_ONE = 24  # number of unknowns, sensitivities included, up to which a Rosenbrock step is one function
_MOST_ITERATIONS = 20
_INSIDE = (0.25, 0.5, 0.75)  # fractions of an arc at which its branches are determined


@dataclass
class Kept:
    """Objects created in the first run and shared by all plans that differ only in parameter values."""

    plan: Any = None
    problem: Any = None  # the variational equations as machine code
    explicit: ExplicitForm | None = None  # form for explicit and half-explicit methods


class FirstOrderVariation(Variation):
    """Variational equations of an ImplicitDAE or a SemiExplicitDAE, and their integration.

    `variational` are the equations, by default with exact derivatives, or difference quotients if functions cannot be
    traced.
    """

    def __init__(self, given: Differentiation, variational: Variational | None = None):
        self.given = given
        self.variational = _variational(given) if variational is None else variational
        self._kept = Kept()
        self._judged: ReducedForm | None = None  # the reduced form, if initial values require it

    @property
    def problem(self) -> Any:
        """The differentiated problem."""
        return self.given.problem

    @property
    def m(self) -> int:
        """Number of sensitivities."""
        return len(self.given.columns)

    @property
    def layout(self) -> ParameterLayout | None:
        return self.variational.layout

    @property
    def dependencies(self) -> Dependencies:
        return self.variational.dependencies

    def with_given(self, given: Differentiation) -> FirstOrderVariation:
        other = copy(self)
        other.given = given
        if not self.variational.is_exact:
            other.variational, other._kept = differenced_problem(given.problem, given.columns), Kept()
        return other

    # --- plans ------------------------------------------------------------------------------------------------------

    def _takes_copies(self) -> bool:
        """Whether the method uses one matrix for the problem and its sensitivities."""
        bare, total = self.given.settings, self.variational.problem.n
        if not is_automatic(bare):
            return self._method.shares_newton_matrix
        sharp = float(np.min(bare.rtol)) < SHARPEST_IN_ONE
        return total > _LARGEST_STEP_IN_ONE or sharp or bare.fixed_step is not None or not self.variational.is_exact

    def _plan(self, settings: Settings) -> Any:
        """The plan for the variational equations, with the tolerances of one run."""
        if self._judged is not None:
            return self._judged.enlarged(self.numbered(self.variational.problem), 1 + self.m, settings)
        if not self.given.primal.as_stated:
            return self.given.make_plan(self.numbered(self.variational.problem), settings)
        kept = self._kept
        if kept.plan is None:
            problem = self.traced_problem() if self.explicit is None else self._traced_explicit(self.explicit)
            kept.plan = FirstOrderPlan(problem, replace(settings, formulation="none"), self._wishes())
            _ = kept.plan.names  # names of all unknowns, created once for all runs
        plan = kept.plan.with_problem(self.numbered(kept.plan.problem))
        plan.rtol, plan.atol = check_tolerances(plan.problem.n, settings.rtol, settings.atol)
        plan.sharpest = float(np.min(plan.rtol))
        return plan

    def traced_problem(self) -> ImplicitDAE:
        """The variational equations as machine code, with the matrix form of the method."""
        if self._kept.problem is None:
            problem = self.variational.problem
            if self._takes_copies():
                object.__setattr__(problem, "copies", 1 + self.m)
            if self.variational.is_exact:
                problem = traced_implicit(problem, linear_solver_of(self.given.settings), always=True).problem
            self._kept.problem = problem
        return self._kept.problem

    @property
    def explicit(self) -> ExplicitForm | None:
        """The variational equations in explicit form if the method does not use residuals; otherwise None."""
        if is_automatic(self.given.settings) or self._method.supports("residual"):
            return None
        if self._kept.explicit is None:
            if isinstance(self.problem, SemiExplicitDAE) and not self.variational.is_exact:
                raise InvalidProblemError(
                    f"sensitivities by {type(self._method).__name__} need exact derivatives of the constraints, "
                    "but functions cannot be traced, or compile='never' was given: use method='dassl' or 'radau'"
                )
            self._kept.explicit = ExplicitForm(self.problem, self.variational)
        return self._kept.explicit

    @property
    def is_half_explicit(self) -> bool:
        """Whether constraints are imposed at the stages."""
        return self.explicit is not None and isinstance(self.problem, SemiExplicitDAE)

    def _traced_explicit(self, form: ExplicitForm) -> Any:
        traced = traced_problem(form.problem, "always") if self.variational.is_exact else None
        return form.problem if traced is None else traced.problem

    @property
    def _method(self) -> Any:
        """The requested method, or DASSL if DASSL options were given."""
        return named_method(
            "dassl" if self.given.settings.method == "auto" else self.given.settings.method, self.given.settings.options
        )

    def partials(self, t: float, y: np.ndarray, yp: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """dF/dy' and dF/dy of the problem itself."""
        found = self.given.primal.inner.implicit.exact_partials(t, y, yp) if self.given.primal.as_stated else None
        return partials_of(self.problem.implicit(), t, y, yp) if found is None else found

    def _wishes(self) -> dict[str, Any]:
        if self.given.wanted.errors:
            return {}
        return {"error_test": np.arange(self.variational.problem.n) < self.problem.n}

    def numbered(self, problem: Any) -> Any:
        """A problem with the parameters of this plan as numbers."""
        if problem.params is None:  # the difference form contains parameters
            return problem
        return with_numbers(problem, self.variational.numbers(self.problem.params))

    # --- a run ------------------------------------------------------------------------------------------------------

    def at_start(self, request: Request) -> FirstOrderVariation:
        """The equations in the reduced form, if the start requires it."""
        judged = self.given.primal.judged(request)
        if judged is None or judged.form is None:
            return self
        other = copy(self)
        other.given, other._judged = replace(self.given, primal=judged), judged.form
        return other

    def base(self, request: Request) -> Solution | None:
        """The solution alone if events or switches may interrupt the run, otherwise None."""
        if request.settings.events is None and not self.given.switches(request.settings):
            return None
        return self.given.primal.solve(request)

    def along(self, base: Solution, request: Request) -> Solution:
        """The solution over the same interval with sensitivities, which jump at switches that can be tracked."""
        refuse_sliding(base)
        kinds = {event.kind for event in base.events}
        if "switch" in kinds and self.variational.is_exact and self.given.primal.as_stated:
            with suppress(Unfollowed, Untraceable):
                return solve_through_switches(BranchVariation(self), request, base)
        warn_of_switches(base.events)
        end = float(base.t[-1]) if base.status == "event" and base.t.size else request.span[1]
        times = None if request.times is None else base.t
        inner = request.changed(span=(request.span[0], end), times=times, t_stop=end, events=None)
        found = self.run(inner, self.given.starts)
        kept = {name: getattr(base, name) for name in ("success", "status", "events", "drift")}
        return replace(found, **kept, message=" ".join([base.message, *self.notes]))

    def run(self, request: Request, starts: np.ndarray, tau: np.ndarray | None = None) -> Solution:
        y0, yp0 = self.start(request)
        return self.from_start(request, y0, yp0, starts if tau is None else starts - np.outer(tau, yp0))

    def start(self, request: Request) -> tuple[np.ndarray, np.ndarray]:
        """Consistent y0 and y0', as for the problem without sensitivities."""
        t0 = request.span[0]
        if self.given.primal.as_stated:
            plan = self.given.primal.inner
            run_state = FirstOrderRunState(plan, replace(request, problem=plan.problem))
            start = np.array(run_state.y0), np.array(run_state.yp0)
            run_state.give_back()
            return start
        y0, yp0 = split_initial(self.problem, request.initial)
        return consistent_initial(self.problem.implicit(), t0, (y0, yp0))

    def from_start(self, request: Request, y0: np.ndarray, yp0: np.ndarray, s0: np.ndarray) -> Solution:
        """The solution with its sensitivities from a consistent start, over an interval without jumps."""
        t0, initial = request.span[0], request.initial
        settings = self._tolerances(with_corrector(request.settings, self.given.wanted), y0)
        problem = self.numbered(self.variational.problem)
        if self._judged is None:
            s, sp = consistent_sensitivities(self, problem, t0, y0, yp0, s0)
        else:
            s, sp = sensitivities_of_array(problem, t0, y0, yp0, s0, self._judged.order)
        slopes: np.ndarray | None = np.concatenate([yp0, sp.ravel()])
        if initial[1] is None and self._begins_with_slopes():
            slopes = None
        initial = np.concatenate([y0, s.ravel()]), slopes
        form = self.explicit
        if form is not None:
            problem, initial = self.numbered(form.problem), form.started(initial[0])
            settings = self._explicit_tolerances(form, settings)
        inner = replace(request, problem=problem, initial=initial, settings=settings)
        try:
            found = self._plan(settings).solve(inner)
        except IntegrationError as error:
            if error.solution is not None:
                error.solution = self._split(error.solution, s)
            raise
        return self._split(found, s)

    def slope(self, t: float, y: np.ndarray, sign: float) -> np.ndarray:
        semi_explicit = isinstance(self.problem, SemiExplicitDAE)
        initial = (y[: self.problem.n_y], y[self.problem.n_y :]) if semi_explicit else (y, None)
        settings = replace(self.given.settings, events=None, correct_initial=True)
        end = t + sign * max(1e-3, 1e-3 * abs(t))
        return self.start(Request(self.problem, settings, (t, end), initial, t_stop=end))[1]

    def _begins_with_slopes(self) -> bool:
        return not is_automatic(self.given.settings) and self._method.begins_with_slopes

    def _tolerances(self, settings: Settings, y0: np.ndarray) -> Settings:
        """Settings for the whole system: sensitivities use the relative tolerance of their variable, and its absolute
        tolerance divided by the size of the parameter."""
        n, m = self.problem.n, self.m
        rtol, atol = check_tolerances(n, settings.rtol, settings.atol)
        numbers = self.variational.numbers(self.problem.params)
        sizes = scales(self.given.columns, np.zeros(0) if numbers is None else numbers, y0)
        own = atol / sizes[:, None]
        return replace(
            settings,
            rtol=np.tile(rtol, 1 + m),
            atol=np.concatenate([atol, own.ravel()]),
            switches="never",
            correct_initial=False,
        )

    def _explicit_tolerances(self, form: ExplicitForm, settings: Settings) -> Settings:
        """Settings for the explicit form, in which a large tolerance excludes sensitivities from the error test."""
        rtol, atol = np.array(settings.rtol), np.array(settings.atol)
        if not self.given.wanted.errors:
            # excluded components are still counted in the mean square
            n, share = self.problem.n, 1.0 / np.sqrt(1.0 + self.m)
            rtol[:n], atol[:n], atol[n:] = share * rtol[:n], share * atol[:n], UNTESTED
        return replace(settings, rtol=form.own(rtol), atol=form.own(atol))

    def _split(self, found: Solution, starts: np.ndarray) -> Solution:
        problem, m, nt = self.problem, self.m, found.t.size
        n = problem.n
        if self.explicit is not None:
            found = self.explicit.in_order(found)
        dense = found.dense
        sensitivities = FirstOrderSensitivities(
            self.given.names,
            found.t,
            np.ascontiguousarray(found.y[n:].reshape(m, n, nt)),
            np.ascontiguousarray(found.yp[n:].reshape(m, n, nt)),
            None if dense is None else _columns(dense, slice(n, None)),
            starts,
        )
        return replace(
            found,
            y=np.ascontiguousarray(found.y[:n]),
            yp=np.ascontiguousarray(found.yp[:n]),
            message=" ".join([found.message, *self.notes]),
            names=tuple(problem.label(i) for i in range(n)),
            dense=None if dense is None else _columns(dense, slice(0, n)),
            n_differential=problem.n_y if isinstance(problem, SemiExplicitDAE) else None,
            functions=self.words,
            sensitivities=sensitivities,
        )

    @property
    def words(self) -> FunctionTable:
        """Description of how functions and their derivatives were evaluated."""
        how = "exact derivatives" if self.variational.is_exact else "differences"
        return FunctionTable(self.given.words | {"sensitivities": how})

    @property
    def notes(self) -> list[str]:
        """Notes on the sensitivities for the message of the solution."""
        notes = []
        idle = [self.given.names[k] for k in self.variational.idle if not self.given.starts[k].any()]
        if idle:
            notes.append(f"{', '.join(idle)} does not occur in the equations: the sensitivity is zero.")
        if not self.variational.is_exact:
            notes.append("Sensitivities were computed with difference quotients, since functions could not be traced.")
        if self.problem.invariants is not None:
            notes.append("Invariants are not imposed in runs with sensitivities.")
        return notes


def first_order_plan(problem: Any, settings: Settings, make_plan: Callable[[Any, Settings], Plan]) -> SensitivityPlan:
    """The plan of an ImplicitDAE or a SemiExplicitDAE with the sensitivities requested in `settings`."""
    assert settings.sensitivities is not None
    settings = with_corrector(settings, settings.sensitivities)
    if settings.fixed_step is not None and settings.formulation == "auto":
        settings = replace(settings, formulation="none")
    return SensitivityPlan(FirstOrderVariation(Differentiation.of(problem, settings, make_plan)))


class BranchVariation(FirstOrderVariation):
    """Variational equations with switches set by data, on the branches of one arc."""

    def __init__(self, plain: FirstOrderVariation):
        given = plain.given
        count = given.primal.traced.n_switches
        super().__init__(given, variational_problem(given.problem, given.columns, follow=count))
        self.modes = np.full(len(self.variational.switches), np.nan)

    def numbered(self, problem: Any) -> Any:
        return with_numbers(problem, self._with_modes(self.variational.numbers(self.problem.params)))

    def _with_modes(self, numbers: np.ndarray | None) -> np.ndarray:
        return np.concatenate([np.zeros(0) if numbers is None else numbers, self.modes])

    def values(self, t: float, y: np.ndarray, yp: np.ndarray, numbers: np.ndarray | None = None) -> np.ndarray:
        """The switching functions."""
        rest = np.zeros(self.variational.problem.n - y.size)
        given = self.variational.numbers(self.problem.params) if numbers is None else numbers
        assert self.variational.switch_values is not None
        point = np.concatenate([y, rest]), np.concatenate([yp, rest])
        return self.variational.switch_values(t, *point, self._with_modes(given))

    def set_between(self, base: Solution, a: float, b: float):
        """Select the branches that contain a solution between two times."""
        self.modes[:] = np.nan
        found = []
        for share in _INSIDE:
            t = a + share * (b - a)
            u = self.values(t, base(t), base(t, derivative=True))
            found.append([switch.mode_at(float(x)) for switch, x in zip(self.variational.switches, u, strict=True)])
        if any(modes != found[0] for modes in found):
            raise Unfollowed
        self.modes[:] = found[0]

    def partials(self, t: float, y: np.ndarray, yp: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """dF/dy' and dF/dy on these branches."""
        rest, n = np.zeros(self.variational.problem.n - y.size), y.size
        problem = self.numbered(self.traced_problem())
        found = problem.exact_partials(t, np.concatenate([y, rest]), np.concatenate([yp, rest]))
        if found is None:
            raise Unfollowed
        return found[0][:n, :n], found[1][:n, :n]

    def completed(self, t: float, y: np.ndarray, yp: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Algebraic variables and slopes of differential ones, by Newton's method."""
        y, yp, n = y.copy(), yp.copy(), y.size
        rest, problem = np.zeros(self.variational.problem.n - n), self.numbered(self.variational.problem)
        for _ in range(_MOST_ITERATIONS):
            left = problem.evaluate(t, np.concatenate([y, rest]), np.concatenate([yp, rest]))[:n]
            e, a = self.partials(t, y, yp)
            algebraic = ~np.any(e, axis=0)
            try:
                change = np.linalg.solve(np.where(algebraic, a, e), -left)
            except np.linalg.LinAlgError:
                raise Unfollowed from None
            y, yp = y + np.where(algebraic, change, 0.0), yp + np.where(algebraic, 0.0, change)
            if np.all(np.abs(change) <= 1e-13 * np.maximum(np.abs(np.where(algebraic, y, yp)), 1e-300)):
                break
        return y, yp


def _variational(given: Differentiation) -> Variational:
    if given.settings.compile != "never":
        try:
            return variational_problem(given.problem, given.columns)
        except Untraceable:
            if given.settings.compile == "always":
                raise
    return differenced_problem(given.problem, given.columns)


def with_corrector(settings: Settings, wanted: Sensitivities) -> Settings:
    """Settings whose method uses the requested corrector for sensitivities, which DASSL and Radau support."""
    if wanted.method in ("auto", "simultaneous"):
        return settings
    automatic = isinstance(settings.method, str) and settings.method == "auto"
    method = named_method("dassl" if automatic else settings.method, settings.options)
    if not method.shares_newton_matrix:
        raise InvalidProblemError(
            f"sensitivity_method='{wanted.method}' applies to 'dassl' and 'radau', not to {type(method).__name__}"
        )
    return replace(settings, method=replace(method, corrector=wanted.method), options={})


def _columns(dense: DenseOutput, part: slice) -> DenseOutput:
    return replace(dense, coefficients=np.ascontiguousarray(dense.coefficients[:, part]))
