"""Problems of any index: reduced, then solved as first-order problems of index 1, in segments of one selection each."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from daedal.drive.event_view import switching_functions
from daedal.drive.finish import delivered
from daedal.drive.first_order import FirstOrderCourse, FirstOrderPlan
from daedal.drive.first_order_choice import FAILURES, FirstOrderChoice
from daedal.drive.first_order_output import methods_of
from daedal.drive.reduced_output import finished, in_the_users_unknowns
from daedal.drive.reduced_start import consistent_start
from daedal.drive.request import Request, Settings
from daedal.drive.run import Segment, run
from daedal.errors import IntegrationError
from daedal.index_reduction.reduced import ReducedProblem
from daedal.index_reduction.selection import SingularBlock
from daedal.index_reduction.watch import PivotWatch
from daedal.kernels.endings import Ending
from daedal.problems.checks import check_tolerances
from daedal.problems.compile import with_numbers
from daedal.progress import Progress
from daedal.solution import Solution
from daedal.tracing.problem import traced_problem

LIMIT = 4.0
"""Of the change of dependent derivatives with those that are integrated, in units of their sizes: where it is larger,
others are selected. A pendulum is then between 45 and 76 degrees away from where the selection was the best one."""
_EXCHANGED = 1e-6  # part of the interval that a run must have advanced before another exchange at a failure


class ReducedPlan(FirstOrderPlan):
    """A plan for the reduced problem, with machine code for it.

    Parameters
    ----------
    reduction : ReducedProblem
    settings : Settings
        As the user gave them, for the unknowns of the original problem.
    """

    def __init__(self, reduction: ReducedProblem, settings: Settings):
        self.reduction, self.settings, self.original = reduction, settings, reduction.original
        tolerances = check_tolerances(reduction.n, settings.rtol, settings.atol)
        rtol, atol = (reduction.inside(reduction.tolerance(values)) for values in tolerances)
        solver = settings.options.get("linear_solver", getattr(settings.method, "linear_solver", "auto"))
        traced = traced_problem(reduction.problem, "always", solver)
        assert traced is not None
        inner = replace(settings, rtol=rtol, atol=atol, formulation="none")
        super().__init__(traced.problem, inner)
        self.original_names = tuple(self.original.label(i) for i in range(self.original.n))

    def with_reduction(self, reduction: ReducedProblem) -> ReducedPlan:
        """The plan for another selection; what is ready is shared."""
        if reduction.problem.params is None:
            return self
        other = super().with_problem(with_numbers(self.problem, reduction.problem.params))
        other.reduction = reduction
        return other

    def with_problem(self, problem) -> ReducedPlan:
        """The plan for the same problem with other parameters, which fit."""
        from copy import copy

        other = copy(self)
        other._runs, other._plain, other.original = self._runs, None, problem
        layout = self.reduction.prolongation.equations.layout
        other.reduction = self.reduction.with_numbers(layout.numbers(problem.params))
        return other

    def solve(self, request: Request, follower=None) -> Solution:
        """Begin, run, finish."""
        course = ReducedCourse(self, request)
        segments, notes = run(course, request), course.notes
        course.give_back()
        try:
            return delivered(finished(course.plan, request, segments, notes), segments)
        except IntegrationError as error:
            if not self._may_begin_anew(request, segments):
                raise
            return self._from_the_start(request, error, methods_of(segments))

    def _with_dassl(self, request: Request) -> Solution:
        again = request.changed(method="dassl")
        return ReducedPlan(self.reduction, again.settings).solve(again)

    def prepared(self, method):
        """A run with a watch over the selection."""
        if not self.reduction.tied:
            return super().prepared(method)
        watch = PivotWatch(self.reduction)
        ready = method.prepare(replace(self.equations, hook=watch.hook))
        ready.equations, ready.watch = self.equations, watch
        return ready


class ReducedCourse(FirstOrderCourse):
    """One run: a segment for every method and for every selection."""

    plan: ReducedPlan

    def _begin(self):
        plan, request, t = self.plan, self.request, self.request.span[0]
        u = consistent_start(plan.reduction, request, plan.settings)
        rtol, atol = (plan.reduction.tolerance(x) for x in check_tolerances(plan.reduction.n, plan.settings.rtol, plan.settings.atol))
        self._floor = np.divide(atol, rtol, out=np.ones_like(atol), where=rtol > 0.0)
        self._sizes = np.maximum(np.abs(u), self._floor)
        self._limit, self._exchanged_at = LIMIT, np.nan
        self.exchanges = 0
        self.singular: SingularBlock | None = None
        self.excluded, self._automatic = None, False
        self._select(t, u)
        self.choice = FirstOrderChoice(self.plan, request, False, (self.y0, self.yp0), False)
        self._take()

    @property
    def notes(self) -> list[str]:
        """What there is to say about the run, besides how it ended."""
        return self.choice.notes

    def _select(self, t: float, u: np.ndarray) -> bool:
        """Take the selection that suits a point best, and begin there; whether it is another one."""
        reduction = self.plan.reduction
        before = reduction._chosen
        after = reduction.selected(t, u, self._sizes)
        same = before is not None and all(np.array_equal(a, b) for a, b in zip(before, after.chosen, strict=True))
        if not same:
            self.plan = self.plan.with_reduction(after)
        self.y0, self.yp0 = self.plan.reduction.start(t, u)
        return not same

    def _take(self):
        super()._take()
        watch = getattr(self.ready, "watch", None)
        if watch is not None:
            watch.begin(self.plan.reduction, self.plan.reduction.inside(self._sizes), self._limit)

    def segment(self, earlier: list[Segment], progress: Progress) -> Segment:
        plan, request = self.plan, self.request
        switching = None
        if request.settings.events is not None:
            n = plan.reduction.n
            switching = switching_functions(
                request,
                plan.original,
                self._t,
                self.y0[:n],
                self.yp0[:n],
                lambda t, y, yp: (y[:n], yp[:n]),
                earlier,
                leading=True,
            )
        outcome = self.ready.integrate(self.task(switching, progress, **self.left(earlier, request.span[1])))
        return Segment(plan.equations, in_the_users_unknowns(plan.reduction, outcome), self.choice.method, None)

    def goes_on(self, segment: Segment) -> bool:
        outcome = segment.outcome
        if outcome.reason == Ending.HOOK_STOPPED:
            return self._exchange(segment)
        if outcome.reason in FAILURES and self._exchange(segment):
            return True
        return super().goes_on(segment)

    def _exchange(self, segment: Segment) -> bool:
        """Go on with another selection; of the same one only if the run was stopped for the sake of it."""
        outcome, request, plan = segment.outcome, self.request, self.plan
        t, reduction, stopped = outcome.t_reached, plan.reduction, outcome.reason == Ending.HOOK_STOPPED
        if not stopped:
            if abs(t - self._exchanged_at) <= _EXCHANGED * abs(request.span[1] - request.span[0]):
                return False
            self._exchanged_at = t
        watch = getattr(self.ready, "watch", None)
        if watch is not None:
            sizes = self._sizes[reduction._inside]
            self._sizes[reduction._inside] = np.maximum(sizes, watch.scale)
        slope = self.ready.slope() if outcome.steps else self.yp0
        u, _, found = reduction.exact(np.array([t]), reduction.all_unknowns(outcome.y_reached[None], slope[None]))
        try:
            changed = self._select(t, u[0]) if found[0] else False
        except SingularBlock as singular:
            segment.singular = self.singular = singular
            singular.t = t
            return False
        if not changed:
            if not stopped:
                return False
            self._limit = 10.0 * max(watch.amplification, self._limit)
        else:
            self._limit = LIMIT
            self.exchanges += 1
        self._t = t
        self.plan.give_back(self.choice.method, self.ready, self.workspace)
        self._take()
        return True
