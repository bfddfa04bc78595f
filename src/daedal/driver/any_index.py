"""Higher-index problems solved through a compiled reduced problem, verified against the user's functions."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from daedal.analysis.undetermined import in_words, undetermined
from daedal.common.messages import warn
from daedal.driver.plan_stages import Wrapped
from daedal.driver.reduced_start import given_values
from daedal.driver.request import Request, Settings
from daedal.driver.traced import Form, TracedPlan
from daedal.errors import (
    DaedalError,
    InconsistentInitialError,
    IntegrationError,
    StructurallySingularError,
    SwitchWarning,
)
from daedal.index.structure.system_equations import UnfollowedSwitches
from daedal.initial.consistent import NO_UNIQUE_SOLUTION
from daedal.solution.status import Status


class ReducedForm(Form):
    """The reduced problem, used instead of the original equations.

    The original equations are solved with constant steps, which are for studying a method on the problem as given, and
    if the functions have changed since they were traced.

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
            return plan.solve_as_stated(request)
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
