"""Reusable solvers, and plans composed of stages."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from importlib import import_module
from math import inf
from typing import TYPE_CHECKING, Any, Generic, TypeVar, Unpack, overload
from weakref import ref

from daedal.common import first_use
from daedal.driver.finish import clear_frames
from daedal.driver.options import SolverOptions, takes
from daedal.driver.plan_stages import Plan, Recent
from daedal.driver.request import Request, Settings, check_span, checked_request, checked_settings
from daedal.driver.solution_checks import warn_below_atol, warn_unresolved_time, warn_unsuitable
from daedal.errors import IntegrationError, InvalidProblemError
from daedal.hybrid.hybrid_problem import HybridProblem
from daedal.mechanics.formulations.linear_reduction import is_as_stated
from daedal.problems import (
    HessenbergDAE,
    ImplicitDAE,
    LinearDAE,
    MechanicalSystem,
    SecondOrderDAE,
    SemiExplicitDAE,
)
from daedal.problems.compile import with_other_params
from daedal.problems.named_inputs import jumps_of, require_inputs
from daedal.problems.preparable import Preparable, prepared_of
from daedal.problems.problem_sources import Problem, ProblemSource, is_source, problem_and_start, problem_of
from daedal.problems.symbols import given_params
from daedal.solution.quantities import Tabulated
from daedal.solution.schema import is_plain
from daedal.solution.solution import Solution

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from daedal.hybrid.hybrid_solution import HybridSolution
    from daedal.solution.constrained_solution import HessenbergSolution
    from daedal.solution.mechanical_solution import MechanicalSolution
    from daedal.solution.solution import SecondOrderSolution


@overload
def prepare(
    problem: MechanicalSystem | ProblemSource[MechanicalSystem | HybridProblem], **options: Unpack[SolverOptions]
) -> Solver[MechanicalSolution]: ...
@overload
def prepare(problem: HybridProblem, **options: Unpack[SolverOptions]) -> Solver[HybridSolution]: ...
@overload
def prepare(problem: SecondOrderDAE, **options: Unpack[SolverOptions]) -> Solver[SecondOrderSolution]: ...
@overload
def prepare(problem: HessenbergDAE, **options: Unpack[SolverOptions]) -> Solver[HessenbergSolution]: ...
@overload
def prepare(problem: Problem | ProblemSource[Problem], **options: Unpack[SolverOptions]) -> Solver[Solution]: ...
@takes(SolverOptions)
def prepare(problem: Any, **options: Unpack[SolverOptions]) -> Any:
    """Prepare a solver for many runs of one problem.

    Everything independent of interval, initial values and parameters is done once, such as argument checks, the choice
    of method and formulation, callbacks and workspaces: :doc:`/guide/prepared`.

    Parameters
    ----------
    problem : ImplicitDAE, SemiExplicitDAE, MechanicalSystem, ODE, ...
        As for :func:`daedal.solve`.

    {options}

    Returns
    -------
    Solver
        ``solver.solve(t_span, initial)`` returns exactly what ``daedal.solve(problem, t_span, initial, ...)`` returns.

    Examples
    --------
    >>> import daedal
    >>> decay = daedal.ImplicitDAE(lambda t, y, yp, p: [yp[0] + p[0] * y[0]], 1, params=[1.0])
    >>> solver = daedal.prepare(decay, rtol=1e-8)
    >>> for rate in (1.0, 2.0):
    ...     sol = solver.solve((0.0, 1.0), ([1.0], [-rate]), params=[rate])
    ...     print(f"{sol.y[0, -1]:.5f}")
    0.36788
    0.13534
    """
    return Solver(problem, checked_settings(**options))


Found = TypeVar("Found", covariant=True)


class Solver(Generic[Found]):
    """A problem with method, formulation and tolerances, prepared for runs from any start.

    Created by :func:`daedal.prepare`. A solver cannot be modified and is thread-safe, since every run uses a separate
    workspace.

    Every run first checks, in microseconds, the global and captured values that the functions use, and traces the
    functions again if any has changed; :meth:`refresh` forces this.

    Examples
    --------
    >>> import daedal
    >>> decay = daedal.ImplicitDAE(lambda t, y, yp, p: [yp[0] + p["k"] * y[0]], 1, params={"k": 1.0})
    >>> solver = daedal.prepare(decay, rtol=1e-8)
    >>> print(f"{solver.solve((0.0, 1.0), [1.0]).y[0, -1]:.4f}")
    0.3679
    >>> print(f"{solver.with_params({'k': 2.0}).solve((0.0, 1.0), [1.0]).y[0, -1]:.4f}")
    0.1353
    """

    def __init__(self, problem: Any, settings: Settings):
        self._source = problem if is_source(problem) else None
        self._problem, self._settings = problem_of(problem), settings
        self._stated = self._problem  # the problem before parameters and inputs were replaced
        # with inputs that jump, each segment has a separate plan
        self._plan = None if jumps_of(self._problem) else plan_for(self._problem, settings)

    @property
    def problem(self) -> Any:
        """The problem that is solved."""
        return self._problem

    def solve(
        self,
        t_span: ArrayLike,
        initial: Any,
        params: Any = None,
        *,
        inputs: Mapping[str, Any] | None = None,
        hold: str = "zero",
        t_eval: ArrayLike | None = None,
        t_stop: float | None = None,
        progress: bool = False,
    ) -> Found:
        """Solve from `initial` over `t_span`, optionally with other parameters and inputs.

        See :func:`daedal.solve`.
        """
        if self._source is not None:
            _, initial = problem_and_start(self._source, initial, check_span(t_span)[0], params, inputs, hold)
        if params is not None:
            return self.with_params(params).solve(
                t_span, initial, inputs=inputs, hold=hold, t_eval=t_eval, t_stop=t_stop, progress=progress
            )
        if inputs is not None:
            return self.with_inputs(inputs, hold=hold).solve(
                t_span, initial, t_eval=t_eval, t_stop=t_stop, progress=progress
            )
        request = checked_request(
            self._problem, self._settings, t_span, initial, t_eval=t_eval, t_stop=t_stop, progress=progress
        )
        jumps = with_jumps(None, self._problem)
        if jumps is not None:
            return solve_pieces(request, jumps, self._stated)
        if self._plan is None or not self._plan.is_current():
            self._plan = make_plan(self._problem, self._settings)
        return complete_or_raise(described(self._plan.solve, request))

    def refresh(self) -> None:
        """Trace the functions again.

        Only needed if Numba-compiled functions or other machine code depend on values that have changed.
        """
        if self._plan is not None:
            self._plan = make_plan(self._problem, self._settings)

    @property
    def plan(self) -> Plan:
        """Data of the solver that do not depend on the start."""
        return self._plan or make_plan(self._problem, self._settings)

    def with_params(self, params: Any) -> Solver[Found]:
        """A solver for the same problem with other parameters, which shares prepared data."""
        return self._with(with_other_params(self._problem, params))

    def with_inputs(
        self, values: Mapping[str, Any] | None = None, /, *, hold: str = "zero", **named: Any
    ) -> Solver[Found]:
        """A solver for the same problem with other inputs, which shares prepared data."""
        require_inputs(self._problem)
        return self._with(self._problem.with_inputs(values, hold=hold, **named))

    def _with(self, problem: Any) -> Solver[Found]:
        other: Solver[Found] = object.__new__(Solver)
        other._problem, other._settings, other._source = problem, self._settings, None
        other._stated = self._stated
        shared = None if self._plan is None else self._plan.with_problem(problem)
        other._plan = None if jumps_of(problem) else shared or make_plan(problem, self._settings)
        return other

    def __repr__(self) -> str:
        settings = self._settings
        what = f"method={settings.method!r}, formulation={settings.formulation!r}"
        return f"Solver({type(self._problem).__name__}, {what}, rtol={settings.rtol!r}, atol={settings.atol!r})"

    def __getstate__(self) -> dict[str, Any]:
        return {"problem": self._source or self._problem, "settings": self._settings}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["problem"], state["settings"])  # type: ignore[misc]


@dataclass(frozen=True)
class PlanStages:
    """The stages of a solution for a class of problems; plans are named as "module:class"."""

    method: str  # plan that chooses the method and runs it
    traced: bool = True  # whether functions are compiled, and verified against the user's functions
    reduced: bool = False  # whether equations of higher index are reformulated
    # plan used instead of all stages, unless a formulation was chosen
    restated: str | None = None


_FIRST_ORDER = PlanStages("daedal.driver.first_order:FirstOrderPlan", reduced=True)
STAGES: dict[type, PlanStages] = {
    ImplicitDAE: _FIRST_ORDER,
    SemiExplicitDAE: _FIRST_ORDER,
    LinearDAE: PlanStages(
        "daedal.driver.first_order:LinearPlan",
        restated="daedal.driver.traced:RestatedPlan",
    ),
    SecondOrderDAE: PlanStages(
        "daedal.driver.second_order_plan:SecondOrderPlan",
        reduced=True,
    ),
    MechanicalSystem: PlanStages("daedal.driver.mechanism:MechanismPlan"),
    HessenbergDAE: PlanStages("daedal.driver.mechanism:MechanismPlan"),
    HybridProblem: PlanStages("daedal.hybrid.mode_plans:HybridPlan", traced=False),
}


def make_plan(problem, settings: Settings) -> Plan:
    """The plan of a problem, composed of its stages: all that does not depend on the start, including machine code."""
    stages = next((STAGES[kind] for kind in type(problem).__mro__ if kind in STAGES), None)
    if stages is None:
        raise InvalidProblemError(
            "problem must be an ImplicitDAE, a SemiExplicitDAE, a LinearDAE, a SecondOrderDAE, a MechanicalSystem, a "
            f"HessenbergDAE or a HybridProblem, got {type(problem).__name__}"
        )
    if settings.sensitivities is not None:
        from daedal.sensitivity.sensitivity_plan import sensitivity_plan

        return sensitivity_plan(problem, settings, make_plan)
    method = _named(stages.method)
    if not stages.traced:
        return method(problem, settings)
    if stages.restated is not None and is_as_stated(settings.formulation):
        return _named(stages.restated)(problem, settings, _named(_FIRST_ORDER.method))
    from daedal.driver.traced import TracedPlan

    if not stages.reduced:
        return TracedPlan(problem, settings, method)
    from daedal.driver.low_index import is_reduction, may_be_reduced

    as_given = replace(settings, formulation="none") if is_reduction(settings.formulation) else settings
    plan = TracedPlan(problem, as_given, method)
    if may_be_reduced(problem, settings, plan.traced):
        from daedal.driver.reduction_choice import reduced_plan

        return reduced_plan(problem, settings, plan)
    from daedal.driver.any_index import judged_locally

    return judged_locally(problem, settings, plan)


def _named(name: str) -> Any:
    module, _, kind = name.partition(":")
    return getattr(import_module(module), kind)


# --- caches -----------------------------------------------------------------------------------------------------

_LATER: dict[Any, tuple[str, ...]] = {
    ImplicitDAE: ("daedal.methods.run", "daedal.kernels.builders", "daedal.methods.workspace"),
    MechanicalSystem: (
        "daedal.mechanics.readiness",
        "daedal.mechanics.formulations.dense_forms",
        "daedal.mechanics.formulations.monitor",
    )
    + (
        "daedal.mechanics.inspection",
        "daedal.methods.run",
        "daedal.methods.explicit.runge_kutta",
        "daedal.kernels.builders",
    ),
}
"""Modules that runs would import late; they are imported with the plan, so that the time counts as first use."""
_MOST_PROBLEMS, _MOST_PLANS = 32, 8  # maximum number of problems with cached plans, and of plans per problem
_LARGEST_PLANNED = 10_000  # number of unknowns up to which plans are cached
_keeping = Recent(_MOST_PROBLEMS)  # weak references to the problems with cached plans


def plan_for(problem, settings: Settings) -> Plan:
    """The plan for a problem and settings, cached with the problem."""
    plans = prepared_of(problem).get("plans") if isinstance(problem, Preparable) else None
    plan = None if plans is None else plans.get(settings.key)
    if plan is not None and plan.is_current():
        return plan
    with first_use.counted():
        plan = make_plan(problem, settings)
        for module in _LATER.get(type(problem), _LATER[ImplicitDAE]):
            import_module(module)
    if getattr(problem, "n", inf) <= _LARGEST_PLANNED:
        prepared_of(problem).setdefault("plans", Recent(_MOST_PLANS)).keep(settings.key, plan)
        for other in _keeping.keep(ref(problem, _keeping.drop), None):
            found = other()
            if found is not None:
                prepared_of(found).pop("plans", None)
    return plan


def solve_request(request: Request, stated: Any = None):
    """The solution of a request, by a cached plan if possible; raises KeyboardInterrupt after an interrupted run.

    `stated` is the same problem with its original parameters, for which the plan is cached.
    """
    before = first_use.seconds()
    solution = described(lambda request: _plan_of(request, stated).solve(request), request)
    once = first_use.seconds() - before
    if once > 0.0 and isinstance(solution, Tabulated):
        solution.stats = replace(solution.stats, first_use=once)
    complete_or_raise(solution)
    warn_unsuitable(solution, request.settings)
    if type(solution) is Solution:
        warn_below_atol(solution, request.settings)
        warn_unresolved_time(solution, request.settings)
    return solution


def with_jumps(breakpoints: Any, problem: Any) -> Any:
    """Break points, with those of the problem's inputs; None if there are none."""
    jumps = jumps_of(problem)
    if not jumps:
        return breakpoints
    given = [] if breakpoints is None else breakpoints if isinstance(breakpoints, (list, tuple)) else [breakpoints]
    return [*given, *jumps]


def solve_pieces(request: Request, breakpoints: Any, stated: Any = None):
    """The solution of a request, segment by segment between break points.

    `stated` is the original problem; plans are cached with it.
    """
    if request.settings.sensitivities is not None:
        from daedal.sensitivity.modes_variation import solve_pieces as solve_varied

        def solve(request: Request):
            return solve_varied(request, breakpoints, make_plan, stated or request.problem)

    else:
        from daedal.hybrid.hybrid_run import solve_between

        def solve(request: Request):
            return solve_between(request, breakpoints)

    return complete_or_raise(described(solve, request))


def complete_or_raise(solution):
    """Return the solution; if the user interrupted the run, raise KeyboardInterrupt with the partial solution."""
    if getattr(solution, "status", None) == "interrupted":
        interrupt: Any = KeyboardInterrupt(solution.message)
        interrupt.solution = solution
        try:
            raise interrupt
        finally:
            del interrupt, solution  # the traceback refers to this frame
    return solution


def described(run, request: Request):
    """The solution ``run(request)``, or the partial solution of its error, with event names and parameters added."""
    try:
        solution = run(request)
    except BaseException as error:
        _describe(getattr(error, "solution", None), request)
        if isinstance(error, KeyboardInterrupt) and not hasattr(error, "solution"):
            error.solution = None  # type: ignore[attr-defined]
        if isinstance(error, IntegrationError):
            clear_frames(error)
        raise
    return _describe(solution, request)


def _describe(solution, request: Request):
    if isinstance(solution, Tabulated):
        params = given_params(getattr(request.problem, "params", None))
        solution.event_names = solution.event_names or tuple(request.event_names)
        solution.params = params if is_plain(params) else None
    return solution


def _plan_of(request: Request, stated: Any):
    if stated is not None:
        with suppress(Exception):  # functions may fail with the original parameters
            other = plan_for(stated, request.settings).with_problem(request.problem)
            if other is not None:
                return other
    return plan_for(request.problem, request.settings)
