"""Problems of any index, reduced and solved as first-order problems of index 1, whose selection may change."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from daedal.analysis.thresholds import LEAST_PROGRESS
from daedal.common.progress import Progress
from daedal.driver.event_view import switching_functions
from daedal.driver.finish import delivered
from daedal.driver.first_order import FirstOrderPlan, FirstOrderRunState, check_signs
from daedal.driver.first_order_choice import FAILURES, FirstOrderChoice
from daedal.driver.first_order_output import methods_of
from daedal.driver.reduced_output import at_start, finished, in_the_users_unknowns, until_raised
from daedal.driver.reduced_start import consistent_start, given_values, inside_options
from daedal.driver.request import Request, Settings
from daedal.driver.run_segments import PreparedSegment, Segment, blas_threads, run
from daedal.errors import IntegrationError, InvalidProblemError
from daedal.index.reduction.prolongation import Block
from daedal.index.reduction.recognition import is_silent
from daedal.index.reduction.reduced_problem import ReducedProblem
from daedal.index.reduction.selection import SingularBlock
from daedal.kernels.endings import Ending
from daedal.methods.task import Outcome
from daedal.problems.checks import check_tolerances
from daedal.problems.compile import with_numbers
from daedal.solution.solution import Solution
from daedal.symbolic.tracing.problem import traced_problem

LIMIT, GROWTH = 1.5, 2.0
"""Thresholds for the change of dependent derivatives per change of the integrated ones, relative to their sizes: the
selection changes if this exceeds the first threshold and has grown by the second. A pendulum is then 56 degrees from
the optimal point of its selection. Measured with a pendulum passing over the top, at rtol 1e-4 and 1e-7: first
thresholds from 1.2 to 2 have equal cost; 4 requires 15 to 40 % more steps; 8 requires up to twice as many and, with
DASSL, loses two digits. A change requires a new matrix but no restart."""
_LEAST_GAIN = 2.0 * GROWTH  # a restart is worthwhile if it reduces the amplification below the limit by this factor


@dataclass(frozen=True)
class Singular:
    """No valid selection exists: the equations of a block do not determine their unknowns."""

    t: float
    block: Block


class ReducedPlan(FirstOrderPlan):
    """Plan for a reduced problem, with its machine code.

    Parameters
    ----------
    reduction : ReducedProblem
    settings : Settings
        As given by the user, for the unknowns of the original problem.
    """

    def __init__(self, reduction: ReducedProblem, settings: Settings):
        self.reduction, self.settings, self.original = reduction, settings, reduction.original
        given = check_tolerances(reduction.n, settings.rtol, settings.atol)
        self.tolerances = tuple(map(reduction.tolerance, given))  # rtol and atol of all unknowns
        rtol, atol = map(reduction.inside, self.tolerances)
        solver = settings.options.get("linear_solver", getattr(settings.method, "linear_solver", "auto"))
        traced = traced_problem(reduction.problem, "always", solver)
        assert traced is not None
        inner = replace(inside_options(reduction, settings), rtol=rtol, atol=atol, formulation="none")
        super().__init__(traced.problem, inner)
        if (
            len(self.methods) > 1 and self.first == "rosenbrock"
        ):  # with Rosenbrock methods, errors accumulate over many selection changes, and code takes long to generate
            self.first = "radau"

    def with_reduction(self, reduction: ReducedProblem) -> ReducedPlan:
        """The plan for another selection, which shares prepared data."""
        params = reduction.problem.params
        problem = self.problem if params is None else with_numbers(self.problem, params)
        other = super().with_problem(problem)
        assert isinstance(other, ReducedPlan)
        other.reduction = reduction
        return other

    def with_original(self, problem: Any, numbers: np.ndarray) -> ReducedPlan:
        """The plan for the same problem with other parameters."""
        other = copy(self)
        other._runs, other._plain, other.original = self._runs, None, problem
        other.reduction = self.reduction.with_numbers(problem, numbers)
        return other

    def given(self, request: Request) -> tuple[np.ndarray, np.ndarray | None]:
        """y and, if given, y' of the original problem at the start; NaN where unknown."""
        return given_values(self.original, request)

    def solve(self, request: Request, tracker=None) -> Solution:
        with blas_threads(self.implicit.n):
            run_state = ReducedRunState(self, request)
        segments, notes = run(run_state, request), run_state.choice.notes
        run_state.give_back()
        try:
            return delivered(finished(run_state.plan, request, segments, notes), segments)
        except IntegrationError as error:
            if not self._may_repeat(request, segments):
                raise
            return self._repeated_with_dassl(request, error, methods_of(segments))

    def _with_dassl(self, request: Request) -> Solution:
        again = request.changed(method="dassl")
        return type(self)(self.reduction, again.settings).solve(again)

    def prepared(self, method):
        """A prepared run that monitors its selection."""
        watch = self.reduction.watch()
        if watch is None:
            return super().prepared(method)
        ready = method.prepare(replace(self.equations, hook=watch.hook))
        ready.equations, ready.watch = self.equations, watch
        return ready


class ReducedRunState(FirstOrderRunState):
    """One run of a reduced problem, with one segment per method; selections change within segments."""

    plan: ReducedPlan
    _singular: Singular | None = None
    _lower: tuple[np.ndarray, np.ndarray] | None = None  # u and sizes from which the run continues after a stop

    def _begin(self):
        plan, request, t = self.plan, self.request, self.request.span[0]
        reduction = plan.reduction
        u = consistent_start(reduction, request, *plan.given(request))
        rtol, atol = plan.tolerances
        self._least = np.divide(atol, rtol, out=np.ones_like(atol), where=rtol > 0.0)
        self._sizes = np.maximum(np.abs(u), self._least)
        self._failed_at = np.nan
        tested = plan.method.error_test
        excluded = reduction.excluded | (False if isinstance(tested, str) else plan.method.excluded(plan.implicit))
        self.excluded = excluded if excluded.any() else None
        self._automatic = reduction.result_index > 1
        try:
            self._select(t, u)
        except SingularBlock as singular:
            raise InvalidProblemError(at_start(reduction, t, singular.block)) from None
        self.y0, self.yp0 = self.plan.reduction.start(t, u, self._sizes)
        self.choice = FirstOrderChoice(self.plan, request, self._automatic, (self.y0, self.yp0), False)
        self._take()

    def _take(self):
        super()._take()
        self._watch(self.plan.reduction)

    def _watch(self, reduction: ReducedProblem):
        watch = getattr(self.ready, "watch", None)
        if watch is not None:
            watch.begin(reduction, reduction.inside(self._sizes), self._limit)

    # --- selections ---------------------------------------------------------------------------------------------------

    def _select(self, t: float, u: np.ndarray) -> bool:
        """Choose the best selection at a point; return whether it has changed."""
        before, after = self.plan.reduction, self.plan.reduction.selected(t, u, self._sizes)
        self._limit = max(LIMIT, GROWTH * after.amplification(t, u, self._sizes))
        if after.selects_like(before):
            return False
        self.plan = self.plan.with_reduction(after)
        return True

    def _resume(self) -> bool:
        """Change the selection after the monitor has stopped the run; return whether the run can continue."""
        if not self.plan.reduction.unknowns_stay:
            return False
        t, y = self.ready.reached()
        try:
            changed = self._reselect(t, y)
        except SingularBlock as singular:
            self._singular = Singular(t, singular.block)
            return False
        self._lower = self._lowered(t, y)
        if self._lower is not None:
            return False
        if changed:
            self._selections.append((t, self.plan.reduction))
            assert self.workspace is not None
            self.workspace.adopt(self.plan.implicit)
            self.workspace.bridge.refresh()
            self.ready.adopt(self.plan.equations)
        self._watch(self.plan.reduction)
        return True

    def _reselect(self, t: float, y: np.ndarray) -> bool:
        reduction = self.plan.reduction
        watch = getattr(self.ready, "watch", None)
        if watch is not None:
            self._sizes = reduction.enlarged(self._sizes, watch.scale)
        u = reduction.all_unknowns(y[None], self.ready.slope()[None])[0]
        self._sizes = np.maximum(self._sizes, np.abs(u))
        return self._select(t, u)

    def _lowered(self, t: float, y: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
        """u with small derivatives where the equations leave them open, and its sizes; None if little is gained.

        Otherwise these derivatives may grow with every new selection, until the equations have no solution near them.
        """
        reduction, slope = self.plan.reduction, self.ready.slope()
        if self._limit <= GROWTH * LIMIT:
            return None
        u = reduction.lowered(t, reduction.all_unknowns(y[None], slope[None])[0], slope, self._sizes)
        if u is None:
            return None
        sizes = np.append(self._sizes[: reduction.n], np.maximum(np.abs(u), self._least)[reduction.n :])
        try:
            gain = self._limit / reduction.selected(t, u, sizes).amplification(t, u, sizes)
        except SingularBlock:
            return None
        return (u, sizes) if gain > _LEAST_GAIN else None

    # --- segments -----------------------------------------------------------------------------------------------------

    def delivered(self, segments: list[Segment]) -> Solution:
        return delivered(finished(self.plan, self.request, segments, self.choice.notes), segments)

    def prepared(self, earlier: list[Segment], progress: Progress) -> PreparedSegment:
        plan, request, n = self.plan, self.request, self.plan.reduction.n
        switching = None
        if request.settings.events is not None:
            there = self._t, self.y0[:n], self.yp0[:n]
            switching = switching_functions(
                request, plan.original, *there, lambda t, y, yp: (y[:n], yp[:n]), earlier, leading=True
            )
        check_signs(plan, self.y0)
        self._selections, self._singular = [(self._t, plan.reduction)], None
        changes = self.left(earlier, request.span[1]) | {"resume": self._resume}

        def finish(outcome: Outcome) -> Segment:
            stored = in_the_users_unknowns(self._selections, outcome, self._sizes)
            if not is_silent(plan.reduction.equations):
                stored = until_raised(plan.original, request, stored)
            segment = Segment(plan.equations, stored, self.choice.method, None)
            segment.singular = self._singular
            return segment

        return PreparedSegment(self.ready, self.task(switching, progress, **changes), finish, plan.equations)

    def restarts(self, t: float, segment: Segment) -> bool:
        return False

    def continues(self, segment: Segment) -> bool:
        if segment.singular is not None:
            return False
        return self._changes_selection(segment) or super().continues(segment)

    def _changes_selection(self, segment: Segment) -> bool:
        """Choose another selection after a failure or a stop by the monitor; return whether the run continues."""
        outcome, (t0, t1) = segment.outcome, self.request.span
        t, before = outcome.t_reached, self.plan.reduction
        watched = outcome.reason == Ending.HOOK_STOPPED
        if not (watched or outcome.reason in FAILURES) or not outcome.steps:
            return False
        if not watched and abs(t - self._failed_at) <= LEAST_PROGRESS * abs(t1 - t0):
            return False
        try:
            changed = self._reselect(t, outcome.y_reached)
        except SingularBlock as singular:
            segment.singular = Singular(t, singular.block)
            return False
        if not changed and not watched:
            return False
        self._t, self.y0, self.yp0 = t, outcome.y_reached, self.ready.slope()
        if not watched:
            self._failed_at = t
        if not before.unknowns_stay:
            u = before.all_unknowns(self.y0[None], self.yp0[None])[0]
            self.y0, self.yp0 = self.plan.reduction.start(t, u, self._sizes)
        elif self._lower is not None:
            u, self._sizes = self._lower
            self._lower = None
            self._select(t, u)
            self.y0, self.yp0 = self.plan.reduction.start(t, u, self._sizes)
        self.plan.give_back(self.choice.method, self.ready, self.workspace)
        self._take()
        return True
