"""Plan of a run with sensitivities, by problem class."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from copy import copy
from dataclasses import replace
from importlib import import_module
from typing import Any

import numpy as np

from daedal.driver.plan_stages import Plan
from daedal.driver.request import Request, Settings
from daedal.driver.second_order_plan import converted
from daedal.errors import InconsistentInitialError, IntegrationError, InvalidProblemError
from daedal.events.event import Event, named_events
from daedal.hybrid.hybrid_problem import HybridProblem
from daedal.initial.second_order_start import orders_at_start, split_second_order, tolerance_of_y
from daedal.mechanics.hessenberg_workspace import HessenbergWorkspace
from daedal.methods.named_methods import named_method
from daedal.problems import HessenbergDAE, ImplicitDAE, LinearDAE, MechanicalSystem, SecondOrderDAE, SemiExplicitDAE
from daedal.problems.arguments import StateArguments, in_standard_form
from daedal.problems.checks import check_tolerances, check_vector
from daedal.problems.second_order_form import SecondOrderForm, natural_form
from daedal.sensitivity.differentiation import Differentiation, scales
from daedal.sensitivity.jumps import timed_events
from daedal.sensitivity.result import LinearSensitivities
from daedal.solution.solution import SecondOrderSolution
from daedal.symbolic.dependencies import Dependencies
from daedal.symbolic.tracing.parameters import ParameterLayout

PLANS: dict[type, str] = {
    ImplicitDAE: "daedal.sensitivity.first_order_variation:first_order_plan",
    SemiExplicitDAE: "daedal.sensitivity.first_order_variation:first_order_plan",
    SecondOrderDAE: "daedal.sensitivity.sensitivity_plan:CompanionPlan",
    MechanicalSystem: "daedal.sensitivity.motion_variation:motion_plan",
    HessenbergDAE: "daedal.sensitivity.sensitivity_plan:homogeneous_plan",
    HybridProblem: "daedal.sensitivity.modes_variation:modes_plan",
}
"""Factories of plans, imported when needed: ``plan(problem, settings, make_plan)``."""


def sensitivity_plan(problem: Any, settings: Settings, make_plan: Callable[[Any, Settings], Plan]) -> Plan:
    """A plan that integrates the variational equations together with the problem.

    `make_plan` is the driver's function, for problems with and without sensitivities.
    """
    if isinstance(problem, LinearDAE):
        problem = problem.semi_explicit()
    name = next((PLANS[kind] for kind in type(problem).__mro__ if kind in PLANS), None)
    if name is None:
        raise InvalidProblemError(
            "sensitivities are computed for an ODE, a MassMatrixDAE, an ImplicitDAE, a SemiExplicitDAE, a LinearDAE, a "
            "SecondOrderDAE, a MechanicalSystem, a HessenbergDAE and a HybridProblem, not for a "
            f"{type(problem).__name__}"
        )
    module, _, plan = name.partition(":")
    return getattr(import_module(module), plan)(problem, settings, make_plan)


# --- one plan for a problem with its variational equations, for all problem classes -----------------------------------

# The class-specific part is a `Variation`: construction of the variational equations and their integration over an
# interval without jumps. The plan combines it with the driver's facilities: a run of the problem alone if events or
# switches may interrupt it, and the times of events as functions of the parameters.


class Variation(ABC):
    """The variational equations of a class of problems."""

    given: Differentiation
    times_events = True  # whether derivatives of event times are computed

    @property
    def layout(self) -> ParameterLayout | None:
        """Layout of the parameters in the variational equations; None if the equations are valid for one set only."""
        return None

    @property
    def dependencies(self) -> Dependencies:
        """External values read by the functions."""
        return Dependencies()

    def is_current(self) -> bool:
        """Whether captured external values are unchanged since the functions were traced."""
        if self.layout is not None and not self.layout.fits(self.given.problem.params):
            return False
        return self.dependencies.are_unchanged()

    def with_given(self, given: Differentiation) -> Variation:
        """A copy for other parameters."""
        other = copy(self)
        other.given = given
        return other

    def at_start(self, request: Request) -> Variation:
        """The form of the equations required by the start of a run."""
        return self

    @abstractmethod
    def base(self, request: Request) -> Any:
        """The solution of the problem alone, if sensitivities are computed along it; None if they are computed
        together."""

    @abstractmethod
    def along(self, base: Any, request: Request) -> Any:
        """The given solution with its sensitivities."""

    def run(self, request: Request, starts: np.ndarray, tau: np.ndarray | None = None) -> Any:
        """The solution with its sensitivities, over an interval without jumps.

        `starts` are the sensitivities of the initial values. If `tau`, the derivatives of the initial time, is given,
        `starts` are total derivatives of the state.
        """
        raise NotImplementedError

    def slope(self, t: float, y: np.ndarray, sign: float) -> np.ndarray:
        """y' of a state."""
        raise NotImplementedError


class SensitivityPlan(Plan):
    """A driver plan for a problem together with its variational equations."""

    def __init__(self, variation: Variation):
        self.variation = variation

    @property
    def problem(self) -> Any:
        """The problem, with variable parameters."""
        return self.variation.given.problem

    def is_current(self) -> bool:
        return self.variation.is_current() and self.variation.given.primal.is_current()

    def with_problem(self, problem: Any) -> SensitivityPlan | None:
        layout, given = self.variation.layout, self.variation.given.with_problem(problem)
        if given is None or layout is None or not layout.fits(given.problem.params):
            return None
        return SensitivityPlan(self.variation.with_given(given))

    def solve(self, request: Request) -> Any:
        """Integrate the problem with its sensitivities; first alone if they are computed along its solution."""
        bare = request.changed(problem=self.problem, sensitivities=None)
        variation = self.variation.at_start(bare)
        base = variation.base(bare)
        if base is None:
            found = variation.run(bare, variation.given.starts)
        elif base.status == "interrupted":
            return base
        else:
            found = variation.along(base, bare)
        if variation.times_events and request.settings.events is not None and found.dense is not None:
            found.events = timed_events(variation.given, variation.slope, bare, found)
        return found


# --- sensitivities of second-order DAEs via the companion form --------------------------------------------------------

# With :math:`u = \dot x` for the variables of order 2 the problem :math:`F(t, x, \dot x, \ddot x, p) = 0` becomes one
# of first order in :math:`y = (x, u)`, whose variational equations are those of :mod:`daedal.sensitivity.variational`.
# Rows of y are those of the solution, so no conversion back is needed.


class CompanionPlan(Plan):
    """A plan for a second-order DAE with its variational equations.

    `make_plan(problem, settings)` makes the plan of the companion form with its sensitivities.
    """

    def __init__(self, problem: SecondOrderDAE, settings: Settings, make_plan: Any):
        self.problem, self._settings, self._make_plan = problem, settings, make_plan
        if not (isinstance(settings.method, str) and settings.method == "auto"):
            method = named_method(settings.method, settings.options)
            if not method.supports("residual"):
                raise InvalidProblemError(
                    "sensitivities of a SecondOrderDAE are computed in its first-order form, by 'dassl', 'radau' "
                    f"and others, not by {type(method).__name__}: omit method"
                )
        self._inner: dict[bytes, SensitivityPlan] = {}

    def is_current(self) -> bool:
        return all(plan.is_current() for plan in self._inner.values())

    def with_problem(self, problem: SecondOrderDAE) -> CompanionPlan | None:
        other = CompanionPlan(problem, self._settings, self._make_plan)
        for key, plan in self._inner.items():
            shared = plan.with_problem(plan.problem.with_params(problem.params))
            if shared is None:
                return None
            other._inner[key] = shared
        return other

    def solve(self, request: Request) -> SecondOrderSolution:
        """Solve the companion form with its sensitivities, and return the solution in x, x' and x''."""
        x0, xp0, _ = split_second_order(self.problem, request.initial)
        form = natural_form(orders_at_start(self.problem, request.span[0], x0, xp0)[0])
        plan = self._plan(form)
        tolerances = {name: tolerance_of_y(form, getattr(request.settings, name), name) for name in ("rtol", "atol")}
        y0 = np.concatenate([x0, xp0])[form.source]
        events = [_of_companion(event, form) for event in named_events(request.settings.events)] or None
        inner = request.changed(problem=plan.problem, initial=(y0, None), events=events, **tolerances)
        try:
            return converted(form, plan.solve(inner))
        except IntegrationError as error:
            if error.solution is not None:
                error.solution = converted(form, error.solution)
            raise

    def _plan(self, form: SecondOrderForm) -> SensitivityPlan:
        assert form.problem.order is not None
        key = form.problem.order.tobytes()
        if key not in self._inner:
            settings = replace(self._settings, events=None)
            tolerances = {name: tolerance_of_y(form, getattr(settings, name), name) for name in ("rtol", "atol")}
            made = self._make_plan(companion(form), replace(settings, **tolerances))
            self._inner[key] = made
        return self._inner[key]


def companion(form: SecondOrderForm) -> ImplicitDAE:
    """F = 0 and x' - u = 0 as a traceable function of (t, y, y') and the parameters."""
    problem = form.problem
    assert problem.order is not None
    n, residual = problem.n, getattr(problem.residual, "original", problem.residual)
    velocities = np.flatnonzero(problem.order == 2).tolist()
    place = {i: n + k for k, i in enumerate(velocities)}

    def stacked(t, y, yp, *params):
        xp = np.array([y[place[i]] if i in place else yp[i] for i in range(n)])
        xpp = np.array([yp[place[i]] if i in place else 0.0 for i in range(n)])
        found = np.asarray(residual(t, y[:n], xp, xpp, *params))
        return np.concatenate([found, np.array([yp[i] - y[place[i]] for i in velocities])])

    def with_params(t, y, yp, p):
        return stacked(t, y, yp, p)

    def alone(t, y, yp):
        return stacked(t, y, yp)

    return ImplicitDAE(
        alone if problem.params is None else with_params,
        form.n,
        params=problem.params,
        algebraic=np.concatenate([problem.order == 0, np.zeros(len(velocities), dtype=bool)]),
        names=form.names,
    )


def _of_companion(event: Event, form: SecondOrderForm) -> Event:
    """Convert an event of x and x' to an event of y and y'."""
    function, second = event.function, form.problem.order == 2
    arguments = StateArguments(form.problem, form.problem.params is not None, False)
    standard, count = in_standard_form(function, arguments.of(function, f"event '{event.name}'"), False)

    def variables(y: np.ndarray, yp: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        x, xp = form.split(np.asarray(y))
        return x, np.where(second, xp, form.split(np.asarray(yp))[0])

    def alone(t, y, yp):
        return standard(t, *variables(y, yp)[: count - 1])

    def with_params(t, y, yp, p):
        return standard(t, *variables(y, yp), p)

    chosen: Callable[..., Any] = with_params if count > 3 else alone
    return replace(event, function=chosen)


# --- sensitivities of linear Hessenberg DAEs to their initial values --------------------------------------------------

# A change of the initial values of :math:`x^{(m)} = \sum_j A_j x^{(j-1)} + B y + q,\; 0 = C x + r` changes the solution
# by a solution of the homogeneous problem, with :math:`q = 0` and :math:`r = 0`, which does not depend on the solution:
# the variational equations are integrated separately, with the same formulation and method, and satisfy :math:`C s = 0`
# and its derivatives as the solution does :math:`C x + r = 0`.


class HomogeneousVariation(Variation):
    """The homogeneous problem of a HessenbergDAE, with one run for every column."""

    times_events = False

    def __init__(self, given: Differentiation):
        self.given, problem = given, given.problem
        self._homogeneous = replace(problem, q=np.zeros(problem.n_x), r=np.zeros(problem.n_y), r_derivatives=None)
        self._plan = given.make_plan(self._homogeneous, replace(given.settings, events=None))

    def is_current(self) -> bool:
        return self._plan.is_current()

    def base(self, request: Request) -> Any:
        """The solution."""
        return self.given.primal.solve(request)

    def along(self, base: Any, request: Request) -> Any:
        """The homogeneous solutions over the interval covered by the solution."""
        given, n = self.given, self.given.problem.n
        t0, end = request.span[0], float(base.t[-1])
        span = (t0, end) if end != t0 else request.span
        z0 = check_vector(np.concatenate(np.atleast_1d(request.initial), axis=None), n, "initial")
        rtol, atol = check_tolerances(n, request.settings.rtol, request.settings.atol)
        assembly, found = HessenbergWorkspace(self._homogeneous), []
        for start, size in zip(given.starts, scales(given.columns, np.zeros(0), z0), strict=True):
            state = start[None].copy()
            if assembly.project(np.array([t0]), state, weight="I")[0] != 0:
                raise InconsistentInitialError(
                    f"no initial sensitivities satisfy the differentiated constraints at t = {t0:g}: C B is singular"
                )
            own = request.changed(
                problem=self._homogeneous, initial=state[0], events=None, rtol=rtol, atol=atol / size,
                span=span, times=base.t,
            )  # fmt: skip
            found.append(self._plan.solve(own))
        base.sensitivities = LinearSensitivities(given.names, tuple(found))
        return base


def homogeneous_plan(
    problem: HessenbergDAE, settings: Settings, make_plan: Callable[[Any, Settings], Plan]
) -> SensitivityPlan:
    """The plan of a HessenbergDAE with the sensitivities requested in `settings`."""
    return SensitivityPlan(HomogeneousVariation(Differentiation.of(problem, settings, make_plan)))
