"""Problems of higher index with machine code for the reduced problem, held against the user's own functions."""

from __future__ import annotations

from typing import Any

from daedal.drive.reduced import ReducedPlan
from daedal.drive.request import Request, Settings
from daedal.drive.traced import TracedPlan
from daedal.index_reduction.reduced import ReducedProblem


class AnyIndexPlan(TracedPlan):
    """A plan for the reduced problem, beside that for the problem as it stands.

    The latter is for constant steps, which show what a method does with the problem as it is, and for functions that
    turn out to be others than when they were traced.

    Parameters
    ----------
    plan : TracedPlan
        That of the problem as it stands.
    reduction : ReducedProblem
    settings : Settings
        As the user gave them.
    """

    def __init__(self, plan: TracedPlan, reduction: ReducedProblem, settings: Settings):
        vars(self).update(vars(plan))
        self._reduced, self._asked = ReducedPlan(reduction, settings), settings.formulation != "auto"

    @property
    def _irregular(self) -> tuple[str, ...]:
        """Derivatives of the problem as it stands are not used."""
        return ()

    def with_problem(self, problem: Any) -> AnyIndexPlan | None:
        """The plan for the same problem with other parameters, or None if it must be made anew."""
        other = super().with_problem(problem)
        if not isinstance(other, AnyIndexPlan) or self.traced is None or self.traced.layout is None:
            return None
        other._reduced = self._reduced.with_original(problem, self.traced.layout.numbers(problem.params))
        return other

    def solve(self, request: Request):
        """Solve the reduced problem; where functions differ from what was traced, the problem as it stands."""
        if self.traced is None or not self.traced.functions:  # compiled functions, which do not change
            return self._told(self._solve((), request), self._untraced)
        return super().solve(request)

    def _solve(self, left_out: tuple[str, ...], request: Request):
        if request.settings.fixed_step is not None and not self._asked:
            return super()._solve(left_out, request)
        return self._reduced.solve(request)
