"""Plans for problems of higher index, and for problems whose index is determined at the start."""

from __future__ import annotations

from contextlib import suppress
from functools import cached_property
from typing import Any

import numpy as np

from daedal.analysis.index import is_clearly_index_1
from daedal.analysis.undetermined import in_words, undetermined
from daedal.common.messages import warn
from daedal.driver.first_order_choice import FAILURES, is_automatic
from daedal.driver.low_index import LARGEST_EXAMINED, LOWEST_REDUCED, has_low_index
from daedal.driver.plan_stages import Plan, Wrapped
from daedal.driver.reduced_start import given_values, option_for_higher_index
from daedal.driver.request import Request, Settings
from daedal.driver.traced import Form, TracedPlan
from daedal.errors import (
    DaedalError,
    InconsistentInitialError,
    IntegrationError,
    InvalidProblemError,
    StructurallySingularError,
    SwitchWarning,
)
from daedal.index.structure.system_equations import UnfollowedSwitches
from daedal.initial.consistent import NO_UNIQUE_SOLUTION
from daedal.initial.newton_start import nearest_point
from daedal.problems import ODE, ImplicitDAE, SemiExplicitDAE
from daedal.problems.compile import with_numbers
from daedal.solution.status import Status

_ELSEWHERE = 3  # number of random points at which a misleading structure is confirmed
_MOST_REPEATED = 10_000  # largest number of steps of a failed run that is repeated in another form


class ReducedForm(Form):
    """The reduced problem, solved instead of the original equations, with two exceptions.

    Runs with constant steps solve the original equations, since they serve to study a method on the problem as given;
    so do runs whose functions have changed since they were traced.

    Parameters
    ----------
    plan : ReducedPlan or ReducedSecondOrder
        Plan of the reduced problem.
    asked : bool
        Whether the user requested the reduction.
    """

    def __init__(self, plan: Any, asked: bool):
        self._plan, self._asked = plan, asked

    def with_problem(self, plan: TracedPlan, numbers: np.ndarray) -> ReducedForm | None:
        other = self._plan.with_original(plan.problem, numbers)
        return None if other is None else ReducedForm(other, self._asked)

    @property
    def order(self) -> int:
        """Number of times that the strangeness-free form differentiates all equations."""
        return self._plan.reduction.mu

    def enlarged(self, problem: Any, times: int, settings: Settings) -> Any:
        """Plan for several copies of the equations, for example with the variational equations."""
        from daedal.driver.reduced_plan import ReducedPlan
        from daedal.index.reduction.reduce import analysed
        from daedal.index.reduction.strangeness_free import StrangenessFreeProblem

        own = self._plan.reduction
        return ReducedPlan(StrangenessFreeProblem(problem, *analysed(problem), (own.mu, times * own.a)), settings)

    def solve(self, plan: TracedPlan, request: Request) -> Any:
        """Solve the reduced problem."""
        settings = request.settings
        if settings.fixed_step is not None and not self._asked:
            return plan.solve_as_given(request)
        if settings.switches != "never" and settings.fixed_step is None:
            message = self._unfollowed.warning(self._plan.reduction.equations, request.span)
            if message is not None:
                warn(message, SwitchWarning)
        return self._plan.solve(request)

    @cached_property
    def _unfollowed(self) -> UnfollowedSwitches:
        return UnfollowedSwitches(self._plan.reduction.equations)


class SingularPlan(Wrapped):
    """Plan for a problem without a unique solution: the message of a failed run includes the reason.

    A run that reaches its end has computed an arbitrary solution and is also reported as failed.

    Parameters
    ----------
    plan : TracedPlan
        Plan of the problem as given.
    reason : DaedalError
        The cause: equations that are over- and underdetermined, or that do not determine the solution.
    """

    as_stated = False

    def __init__(self, plan: TracedPlan, reason: DaedalError):
        super().__init__(plan)
        self._reason = str(reason)  # the exception itself would keep its traceback frames alive
        self._is_structural = isinstance(reason, StructurallySingularError)

    def solve(self, request: Request):
        """Solve the problem as given, as far as possible; raises even if the end was reached."""
        try:
            solution = self.plan.solve(request)
            if solution.success:
                solution.success, solution.status = False, Status("failed")
                raise IntegrationError("The end was reached, but the computed values are arbitrary.", solution)
            return solution
        except (InconsistentInitialError, IntegrationError) as error:
            what_stopped, _, known = str(error).partition(NO_UNIQUE_SOLUTION)
            reason = self._reason if self._is_structural else known or self._reason_at(request)
            error.args = (f"{what_stopped.rstrip()}\n{NO_UNIQUE_SOLUTION}{reason}",)
            solution = getattr(error, "solution", None)
            if solution is not None:
                solution.message = str(error)
            raise

    def _reason_at(self, request: Request) -> str:
        """The reason, followed by the variables that are undetermined at the start."""
        y, yp = given_values(self.problem, request)
        y, yp = np.nan_to_num(y), np.zeros(y.size) if yp is None else yp
        t0, t1 = request.span
        found = undetermined(self.problem, [(t0, y, yp)], abs(t1 - t0))
        return self._reason if found is None else in_words(self.problem, found)


# --- problems whose index is determined at the start ------------------------------------------------------------------


def is_judged_locally(problem: Any, settings: Settings, plan: TracedPlan) -> bool:
    """Whether to determine the index at the start: for traced problems of moderate size that may have constraints."""
    automatic = isinstance(settings.formulation, str) and settings.formulation == "auto"
    traced = plan.traced is not None and bool(plan.traced.functions)
    kind = isinstance(problem, (ImplicitDAE, SemiExplicitDAE)) and not isinstance(problem, ODE)
    if not (automatic and traced and kind and 1 < problem.n <= LARGEST_EXAMINED) or problem.implicit().copies > 1:
        return False
    return option_for_higher_index(settings) is None


def judged_locally(problem: Any, settings: Settings, plan: TracedPlan) -> Plan:
    """A plan that determines the index at the start if :func:`is_judged_locally`, otherwise `plan`."""
    return LocallyJudgedPlan(plan) if is_judged_locally(problem, settings, plan) else plan


class UnsettledPlan(Wrapped):
    """Plan for a problem with hidden constraints that could not be satisfied near the start.

    A run that reaches its end has ignored these constraints, and its values are meaningless.
    """

    as_stated = False

    def __init__(self, plan: TracedPlan, reason: InconsistentInitialError):
        super().__init__(plan)
        self._reason = str(reason)  # the exception itself would keep its traceback frames alive

    def solve(self, request: Request):
        """Solve the problem as given; raise if a run reaches its end, or does not leave the start."""
        try:
            solution = self.plan.solve(request)
        except IntegrationError as error:
            if error.solution.stats.steps:
                raise
            solution = None
        if solution is None or solution.success:
            raise InconsistentInitialError(self._reason)
        return solution


class LocallyJudgedPlan(Wrapped):
    """A plan for a problem as given, and for its strangeness-free form if the structure is misleading.

    The structural index can be smaller than the index, since structural analysis includes terms that vanish on the
    solution. Therefore ranks are determined at a point near the start that satisfies the equations; problems of index 3
    and more, and those with misleading structure, are reduced. If the method is automatic and a run fails to converge,
    it is repeated in the strangeness-free form.

    Parameters
    ----------
    plan : TracedPlan
        Plan of the problem as given.
    misleads : bool
        Whether the problem appears to have no unique solution at random points; if this is true at the start too, runs
        raise an error.
    """

    def __init__(self, plan: TracedPlan, misleads: bool = False):
        super().__init__(plan)
        self._misleads = misleads
        self.as_stated = not misleads
        self._known: tuple[Any, Plan | None] = None, None  # the last start and its plan
        self._forms: dict[tuple[int, int], TracedPlan] = {}  # keyed by their characteristic values

    def with_problem(self, problem: Any) -> LocallyJudgedPlan | None:
        """The plan for the same problem with other parameters, or None if it must be rebuilt."""
        other = super().with_problem(problem)
        if not isinstance(other, LocallyJudgedPlan):
            return None
        other._known = None, None
        forms = {values: form.with_problem(problem) for values, form in self._forms.items()}
        other._forms = {values: form for values, form in forms.items() if form is not None}
        return other

    def direct(self, irregular: bool = False) -> Any | None:
        """The innermost plan; None unless the problem is always solved as given."""
        return None if self._forms or self._misleads else super().direct(irregular)

    def solve(self, request: Request):
        """Solve the problem as given, or reduced."""
        other = self.judged(request)
        if other is not None:
            with suppress(InvalidProblemError):  # matrices are singular at the start
                return other.solve(request)
        try:
            return self.plan.solve(request)
        except IntegrationError as error:
            steps, settings = error.solution.stats.steps, request.settings
            is_open = is_automatic(settings) and settings.fixed_step is None
            if not is_open or error.ending not in FAILURES or steps > _MOST_REPEATED:
                raise
            return self._repeated_in_other_form(request, error, f"had stopped at t = {error.solution.t[-1]:.4g}")
        except InconsistentInitialError as error:
            return self._repeated_in_other_form(
                self._with_states(request), error, "did not allow the initial values to be completed"
            )

    def judged(self, request: Request) -> Plan | None:
        """The plan for this start if it differs from this plan; the last result is cached."""
        try:
            y, yp = given_values(self.problem, request)
        except InvalidProblemError:
            return None  # invalid values are rejected by the run
        at = request.span[0], y.tobytes(), None if yp is None else yp.tobytes()
        known = self._known  # read once: other threads may write it
        if known[0] != at:
            known = self._known = at, self._judge(request, y, yp)
        return known[1]

    def _judge(self, request: Request, y: np.ndarray, yp: np.ndarray | None) -> Plan | None:
        if not self._misleads and self._is_clear(request.span[0], y, yp):
            return None
        try:
            return self._form(request, y, yp, LOWEST_REDUCED)
        except DaedalError as error:
            from daedal.index.reduction.strangeness_free import UndeterminedError

            if isinstance(error, InconsistentInitialError) and self._is_never_clear(request, y):
                return UnsettledPlan(self.plan, error)
            return SingularPlan(self.plan, error) if self._misleads and isinstance(error, UndeterminedError) else None

    def _is_clear(self, t: float, y: np.ndarray, yp: np.ndarray | None) -> bool:
        """Whether the index is clearly 0 or 1 at the point nearest to y and y' that satisfies the equations at t."""
        assert self.traced is not None
        implicit = self.traced.problem.implicit()
        y = np.where(np.isfinite(y), y, 0.0)
        point = nearest_point(implicit, t, y, np.zeros(y.size) if yp is None else yp)
        return point is None or is_clearly_index_1(
            *point[2:]
        )  # without such a point, the index is checked after a failure

    def _is_never_clear(self, request: Request, y: np.ndarray) -> bool:
        """Whether the structure suggests index 0 or 1, but the index is not clearly 0 or 1 at several random times."""
        orders = None if self.traced is None or self.traced.orders is None else self.traced.orders()
        if orders is None or not has_low_index(orders, y.size):
            return False
        begin, end = request.span
        times = begin + (end - begin) * np.random.default_rng(0).random(_ELSEWHERE)
        return not any(self._is_clear(float(t), y, None) for t in times)

    def _form(self, request: Request, y: np.ndarray, yp: np.ndarray | None, lowest: int) -> TracedPlan | None:
        """A plan for the strangeness-free form if the index is at least `lowest` or the structure is misleading.

        If the structure is misleading, terms that vanish on the solution enter the Newton matrix, and a method for
        index 2 may leave the solution.
        """
        from daedal.driver.reduced_plan import ReducedPlan
        from daedal.index.reduction.reduce import analysed
        from daedal.index.reduction.strangeness_free import StrangenessFreeProblem, characteristic_values_near, index_of

        assert self.traced is not None
        coded, params = self.traced.problem, self.problem.params
        equations, signature = analysed(coded if params is None else with_numbers(coded, params))
        unknown = np.full(y.size, np.nan)
        try:
            values = characteristic_values_near(
                equations, request.span[0], np.array([y, unknown if yp is None else yp])
            )
        except (
            InconsistentInitialError
        ):  # too far from the solution to find a consistent point, but the ranks are known
            if signature.index > 1:
                raise
            values = characteristic_values_near(equations, request.span[0], unknown)
        if index_of(*values) < lowest and index_of(*values) <= max(signature.index, 1):
            return None
        if values not in self._forms:
            reduction = StrangenessFreeProblem(self.problem, equations, signature, values)
            self._forms[values] = self.plan.in_form(
                ReducedForm(ReducedPlan(reduction, self.plan.settings), asked=False)
            )
        return self._forms[values]

    def _with_states(self, request: Request) -> Request:
        """The request without derivatives, so that values of unknowns that are not certainly states are guesses."""
        orders = None if self.traced is None or self.traced.orders is None else self.traced.orders()
        states = set() if orders is None else {j for row in orders for j, order in row.items() if order}
        if not request.settings.correct_initial or orders is None or len(states) == self.problem.n:
            return request
        second = request.initial[1] if isinstance(self.problem, SemiExplicitDAE) else None
        return request.changed(correct_initial=False, initial=(request.initial[0], second))

    def _repeated_in_other_form(self, request: Request, error: DaedalError, what: str):
        """Run in the strangeness-free form; if that fails too, raise `error`. `what` describes the first failure."""
        try:
            form = self._form(request, *given_values(self.problem, request), LOWEST_REDUCED - 1)
            solution = None if form is None else form.solve(request)
        except DaedalError:
            solution = None
        if solution is None:
            raise error
        solution.message += f" The problem as given {what}."
        return solution
