"""Runs of first-order problems with switches, with one segment for each arc between switches."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from daedal.common.progress import Progress
from daedal.driver.event_view import EventView, switching_functions
from daedal.driver.finish import cut, delivered, joined_dense_output, line
from daedal.driver.first_order import FirstOrderPlan, FirstOrderRunState
from daedal.driver.first_order_choice import FAILURES
from daedal.driver.first_order_output import finished
from daedal.driver.request import Request
from daedal.driver.run_segments import PreparedSegment, Segment
from daedal.driver.sliding_plan import SlidingEquations, SlidingRate
from daedal.driver.switch_tracking import JUMP, KINK, PlannedArc, SwitchTracker, Unfollowable
from daedal.events.event import EventRecord
from daedal.initial.array_start import exact_array_initial
from daedal.initial.consistent import best_slope, complete, from_structure, index_above_one
from daedal.initial.newton_start import InitialResult, nearest_point, newton_initial
from daedal.initial.variable_kinds import LARGEST_DENSE, algebraic_variables
from daedal.kernels.endings import Ending
from daedal.methods.run import OneStepRun
from daedal.methods.task import ALIKE, ARC_NUMBERS, Outcome
from daedal.problems.compile import with_numbers
from daedal.solution.solution import DenseOutput, Solution

_SHORT = 1e-6  # fraction of the interval: artificial step size in the search for consistent values
_REACH = 1.0  # times the tolerances: largest correction of the state after a switch
_MOST_ARCS = 512  # maximum number of arcs in one call of the compiled loop
_CONTINUOUS = 10.0  # largest change of y' times the step size, in tolerances, that does not count as a jump


class SwitchedRunState(FirstOrderRunState):
    """One run in arcs, each with the equations of one branch or of sliding between two branches."""

    def __init__(self, plan: FirstOrderPlan, request: Request, tracker: SwitchTracker):
        self.searches = not all(tracker.switched.in_time)  # switches that depend on time only need no search
        super().__init__(plan, request)
        self.tracker = tracker
        self._algebraic: np.ndarray | None = None
        self._index_2: bool | None = None  # None before the first restart
        self._along: SlidingEquations | SlidingRate | None = None
        self._sliding = SlidingEquations.family(plan, tracker)
        self._searched: Any = 0
        self._dense: DenseOutput | None = None  # dense output of the last arc
        self._most_arcs, self._steps_before = 1, 0  # arcs in the next call, steps of the last call before its last arc
        self._arc, self._end = self._t, request.span[1]  # start and end of the last arc
        self._restarted: dict[
            Any, Any
        ] = {}  # result of the last restart, keyed by the state from which it was computed
        y0, yp0 = self.y0, self.yp0
        tracker.start(self._t, (y0, yp0), self._rates)
        self.y0, self.yp0 = y0, yp0
        if tracker.is_along:
            self._restart()
        self._settle()

    # --- an arc ----------------------------------------------------------------------------------------------------

    def delivered(self, segments: list[Segment]) -> Solution:
        further = [*self.notes, *self.tracker.notes]
        notes = self.choice.notes
        projection = self.ready.projection
        return delivered(
            finished(self.plan, self.request, segments, self.excluded, notes, further, projection), segments
        )

    def prepared(self, earlier: list[Segment], progress: Progress) -> PreparedSegment:
        plan, tracker, along = self.plan, self.tracker, self._along
        end = self._end = tracker.horizon(self._t)
        arcs = tracker.planned(end, self._most_arcs) if along is None and self._chains_arcs() else []
        changes = self.left(earlier, arcs[-1].end if arcs else end) | self.resolved(end)
        if earlier and self.choice.method.is_multistep and changes["first_step"] is None:
            changes["first_step"] = self.step_by_scale(end)
        own = self._own_events(earlier)
        if along is None:
            switching = tracker.functions(plan.implicit.n, own) if tracker.watches_state else own
            if arcs:
                changes |= self._chained(arcs, end)
            ready, task = self.ready, self.task(switching, progress, **changes)
        else:
            task = self.task(along.functions(own), progress, **(changes | along.task(self) | {"watch": None}))
            ready = along.ready
        self._n_own = n_own = 0 if own is None else own.direction.size
        self._keep_invariants()

        def finish(outcome: Outcome) -> Segment:
            outcome = outcome if along is None else along.shortened(outcome)
            outcome.counts += self._searched
            self._left_by = [] if along is None else along.left(outcome, n_own)
            self._last = outcome.events[-1] if outcome.events else None
            outcome.events, self._ended = tracker.as_user_events(outcome.events, n_own)
            self._steps_before = 0
            if task.arcs is not None:
                self._pass(outcome, arcs, task.arcs)
            return Segment(plan.equations, outcome, self.choice.method, None)

        return PreparedSegment(ready, task, finish, plan.equations)

    def _chains_arcs(self) -> bool:
        """Whether one call of the compiled loop can pass through several arcs, since only times end them."""
        ready, request = self.ready, self.request
        return (
            not self.tracker.watches_state
            and self.plan.ordinary is not None
            and request.settings.events is None
            and not request.begins_only
            and isinstance(ready, OneStepRun)
            and ready.workspace is None
            and ready.equations.hook is None
            and ready.projection is None
            and len(ready.bridge.parameters) == 1
        )

    def _chained(self, arcs: list[PlannedArc], end: float) -> dict[str, Any]:
        """The task of several arcs, of which the current one ends at `end`."""
        [(_, _, read)] = self.ready.bridge.parameters
        moded, switches = self.tracker.moded, self.tracker.switches
        as_found, count, n = moded.modes.copy(), read(moded).size, self.y0.size
        rows = np.zeros((len(arcs), ARC_NUMBERS + count + 3 * n))
        for row, arc in zip(rows, arcs, strict=True):
            moded.modes[:] = arc.modes[0]
            row[0], row[1] = arc.end, any(switches[j].is_kink_in_time for j, _ in arc.switched)
            row[ARC_NUMBERS : ARC_NUMBERS + count] = read(moded)
        rows[0, ARC_NUMBERS + count :][:n] = self.yp0
        moded.modes[:] = as_found
        return {"t_span": (self._t, end), "t_stop": end, "arcs": rows}

    def _pass(self, outcome: Outcome, arcs: list[PlannedArc], rows: np.ndarray):
        """Record the arcs that a call has started in addition to the first one."""
        count, n, tracker = outcome.arcs, self.y0.size, self.tracker
        for arc, row in zip(arcs[:count], rows):
            self._t, self.y0, self.yp0 = arc.begin, row[-2 * n : -n].copy(), row[-n:].copy()
            outcome.events += [self._switch_event(j, direction) for j, direction in arc.switched]
        tracker.passed(arcs[:count])
        if count:
            self._arc, self._end, self._steps_before = (
                arcs[count - 1].begin,
                arcs[count - 1].end,
                int(rows[count - 1, 2]),
            )
        self._most_arcs = min(2 * self._most_arcs, _MOST_ARCS) if count == len(arcs) else 1

    def _switch_event(self, j: int, direction: int) -> EventRecord:
        """The event of switch j at the current time, which was known in advance."""
        at = self._t, self.y0, self.yp0
        name = self.tracker.switches[j].name
        return EventRecord(*at, self._n_own + j, name, direction, False, "switch", located="known")

    def restarts(self, t: float, segment: Segment) -> bool:
        n = self.plan.implicit.n
        self._t, self.y0, self.yp0 = t, segment.outcome.y_reached[:n].copy(), self.ready.slope()[:n]
        self._restart()
        self._settle()
        return True

    def _own_events(self, earlier: list[Segment]):
        if self.request.settings.events is None:
            return None
        problem = self.plan.problem
        view = EventView(problem, self.tracker.moded.given, getattr(problem, "n_y", None))
        return switching_functions(self.request, view, self._t, self.y0, self.yp0, earlier=earlier)

    # --- between arcs --------------------------------------------------------------------------------------

    def _reach_end(self, outcome: Outcome):
        """End an arc that stopped within the rounding of t before a switch, where slopes may be infinite."""
        failure, short = outcome.failure, self._end - outcome.t_reached
        if failure is None or failure.code not in FAILURES or abs(short) > self.least_step(self._end):
            return
        n = self.plan.implicit.n
        y, change = outcome.y_reached[:n], self.ready.slope()[:n] * short
        if np.all(self.algebraic() | (np.abs(change) <= self.plan.rtol * np.abs(y) + self.plan.atol)):
            if outcome.dense is not None:
                rest = line((outcome.t_reached, outcome.y_reached), (self._end, outcome.y_reached), outcome.dense)
                outcome.dense = joined_dense_output([outcome.dense, rest])
            outcome.failure, outcome.reason, outcome.t_reached = None, Ending.FINISHED, self._end

    def _passes_start(self, outcome: Outcome) -> bool:
        """Move the start of an arc slightly ahead if infinite slopes prevent it.

        Returns whether the start was moved, and the state changes by no more than a few tolerances in between.
        """
        failure, arc = outcome.failure, self._arc
        if failure is None:
            return False
        ahead = 0.1 * self.least_step(arc) * self.request.sign
        stuck = failure.code in FAILURES and abs(outcome.t_reached - arc) < abs(ahead)
        if not stuck or self._t != arc or arc == self.request.span[0] or abs(self._end - arc) < 10.0 * abs(ahead):
            return False
        y = self.y0
        self._t = arc + ahead
        self._restart()
        change = np.where(self.algebraic(), 0.0, ahead * self.yp0)
        self.y0 = self.y0 + change
        if self._dense is not None:
            outcome.dense = line((arc, y), (self._t, self.y0), self._dense)
        return bool(np.all(np.abs(change) <= 3.0 * (self.plan.rtol * np.abs(self.y0) + self.plan.atol)))

    def continues(self, segment: Segment) -> bool:
        self._reach_end(segment.outcome)
        self._dense = segment.outcome.dense or self._dense
        if self._along is None and (super().continues(segment) or self._passes_start(segment.outcome)):
            return True  # the arc is repeated with another method
        outcome, tracker, request = segment.outcome, self.tracker, self.request
        if outcome.reason == Ending.STIFF and isinstance(self._along, SlidingRate):
            self._along.is_stiff()
            self._restarted = {}
            self._t, self.y0 = outcome.t_reached, outcome.y_reached.copy()
            self._restart()
            return True
        stopped = any(event.terminal for event in outcome.events) or tracker.is_at_end(outcome.events)
        reached = outcome.reason == Ending.FINISHED
        if stopped or not (reached or outcome.reason == Ending.EVENT_STOP):
            tracker.finish()
            return False
        event = self._last if outcome.reason == Ending.EVENT_STOP else None
        n = self.plan.implicit.n
        if event is None:
            t, y, yp = outcome.t_reached, outcome.y_reached[:n], None
        else:
            t, y, yp = event.t, event.y[:n], event.yp[:n]
        if reached and request.sign * (request.span[1] - t) <= 0.0:
            tracker.finish()
            return False
        self._t, self.y0 = t, y.copy()
        self.yp0 = self.yp0 if yp is None else yp.copy()
        clocked = tracker.clock(t)
        outcome.events += [self._switch_event(j, direction) for j, direction in clocked]
        outcome.dense = cut(outcome.dense, t)
        self._searched = 0
        self._cross(outcome, [j for j, _ in clocked])
        segment.stopped = tracker.stopped
        if tracker.stopped:
            tracker.finish()
        return not tracker.stopped

    def _cross(self, outcome, clocked: list[int]):
        """Continue with the branches or surfaces after a switch."""
        tracker, t, y, yp = self.tracker, self._t, self.y0, self.yp0
        self._arc = t
        before = [j for j in tracker.sliding if j not in [left for left, _ in self._left_by]]
        tracker.cross(t, self._ended, self._left_by)
        weights = self.plan.rtol * np.abs(y) + self.plan.atol
        tracker.stay(t, (y, yp), weights, self._move)
        if tracker.stopped:
            return
        y = self.y0
        for j in tracker.sliding:
            if j not in before:
                self._tell(outcome, j)
        self.y0, self.yp0 = y, yp
        self._restart()
        self._settle()
        steps = outcome.steps - self._steps_before
        if self._ended:
            change = np.where(self.algebraic(), 0.0, (self.yp0 - yp) * outcome.h_last / np.maximum(weights, 1e-300))
            smooth = float(np.max(np.abs(change), initial=0.0)) <= _CONTINUOUS
            tracker.judge(t, [j for j, _ in self._ended], steps, KINK if smooth else JUMP)
        kinks = [j for j in clocked if tracker.switches[j].is_kink_in_time]
        if kinks and np.all(np.abs(self.yp0 - yp) <= ALIKE * np.maximum(np.abs(yp), np.abs(self.yp0))):
            tracker.judge(t, kinks, steps, KINK)  # after jumps in time, nothing can be reused

    def _move(self, y: np.ndarray):
        self.y0 = y

    def _tell(self, outcome, j: int):
        """Change the kind of the event at which the solution starts to slide on switch j to "slides"."""
        name = self.tracker.switches[j].name
        for i, event in enumerate(outcome.events):
            if event.kind == "switch" and event.t == self._t and event.name == name:
                outcome.events[i] = replace(event, kind="slides")

    # --- consistent values --------------------------------------------------------------------------------------------

    def _rates(self) -> tuple[np.ndarray, np.ndarray] | None:
        """u' of all switches in the current modes, and the fractions of the sliding switches."""
        tracker = self.tracker
        self._restart()
        point = self._t, self.y0, self.yp0
        rates = tracker.switched.rates(*point, tracker.moded)
        if self._along is None:
            return rates, np.full(rates.size, np.nan)
        shares = self._along.found(*point)
        return (rates, shares) if np.isfinite(shares[tracker.sliding]).all() else None

    def _restart(self):
        """Compute y' and algebraic variables in the current modes, with given differential variables."""
        tracker = self.tracker
        given: tuple[Any, ...] = self._t, self.y0.tobytes(), self.yp0.tobytes(), tracker.moded.modes.tobytes()
        given += (*tracker.sliding, *tracker.held), len(tracker.sliding)
        if given not in self._restarted:
            self._complete()
            self._restarted = {given: (self.y0, self.yp0, self._along)}
        self.y0, self.yp0, self._along = self._restarted[given]

    def _complete(self):
        self._along = self._sliding([*self.tracker.sliding, *self.tracker.held])
        weights = self.plan.rtol * np.abs(self.y0) + self.plan.atol
        if np.any(weights <= 0.0):
            return
        h = _SHORT * (self.request.span[1] - self._t)
        if self._along is not None:
            self.y0, self.yp0 = self._along.consistent(self._t, self.y0, self.yp0, self.algebraic())
            return
        if self.plan.ordinary is not None:
            self.yp0 = self.plan.ordinary.slope(self._t, self.y0)
            return
        workspace = self.workspace
        assert workspace is not None
        workspace.begin()
        if self.excluded is not None:
            # index 2: the state satisfies the constraints to the tolerance, and the first step corrects it
            return
        found = from_structure(self.plan.implicit, self._t, self.y0, self.yp0, weights, False, _REACH)
        if found is not None:
            self.y0, self.yp0 = found.y, found.yp
            return
        result = newton_initial(workspace, self._t, self.y0, self.yp0, self.algebraic(), h, weights)
        if not result.converged or self._has_index_2(result, h, weights):
            beyond = self._from_beyond(h, weights)
            result = beyond if beyond.converged else result
        if not result.converged:
            result = complete(workspace, self._t, self.y0, self.yp0, h, weights, reach=_REACH)
        self._searched = self._searched + workspace.counts()
        if not result.converged:
            result = self._unchanged(weights)
        if not result.converged:
            raise Unfollowable(f"no consistent values were found after the switch at t = {self._t:g}")
        self.y0, self.yp0 = result.y, result.yp

    def _unchanged(self, weights: np.ndarray) -> InitialResult:
        """y unchanged, since it satisfies constraints of higher index to the tolerance, and y' from least squares."""
        problem, point = self.plan.implicit, (self._t, self.y0)
        slope = best_slope(problem, *point, self.yp0)
        left, moved = problem.evaluate(*point, slope), problem.evaluate(self._t, self.y0 + weights, slope)
        good = bool(np.all(np.abs(left) <= np.abs(moved - left)))
        return InitialResult(self.y0, slope, good, np.inf)

    def _has_index_2(self, result: InitialResult, h: float, weights: np.ndarray) -> bool:
        """Whether y' must satisfy a hidden constraint; determined at the first restart, then cached."""
        if self._index_2 is None:
            plan, t = self.plan, self._t
            may_be = plan.implicit.n <= LARGEST_DENSE and not plan.is_plain(t, result.y, result.yp)
            self._index_2 = may_be and index_above_one(plan.implicit, t, result, self.algebraic(), weights, abs(h))
        return self._index_2

    def _from_beyond(self, h: float, weights: np.ndarray) -> InitialResult:
        """Consistent values from the derivative array slightly after t, where the original functions take the branches.

        Variables of index 2 depend on the derivative of a constraint, which may jump at a kink.
        """
        failed = found = InitialResult(self.y0, self.yp0, False, np.inf)
        if self.plan.implicit.copies > 1:
            return failed  # sensitivities have different jump conditions
        written, given = self.tracker.switched.as_written.implicit(), self.request.problem
        problem = written if given.params is None else with_numbers(written, given.params)
        none, slope = np.zeros(self.y0.size, dtype=bool), self.yp0
        for _ in range(2):  # the second time with the slope after the switch
            ahead = exact_array_initial(problem, self._t + h, self.y0 + h * slope, slope, fixed=none, weights=weights)
            if ahead is None or not ahead.converged:
                return failed
            found, slope = ahead, np.where(self.algebraic(), 0.0, ahead.yp)
        point = nearest_point(self.plan.implicit, self._t, found.y - h * found.yp, found.yp)
        if point is None or np.any(~self.algebraic() & (np.abs(point[0] - self.y0) > weights)):
            return failed  # differential variables must not jump
        return replace(found, y=point[0], yp=point[1])

    def algebraic(self) -> np.ndarray:
        """Mask of the algebraic variables, determined at the first restart."""
        if self._algebraic is None:
            self._algebraic = algebraic_variables(self.plan.implicit, self._t, self.y0, self.yp0)
        return self._algebraic

    def _settle(self):
        """Make the modes consistent with the state: a jump of algebraic variables may trigger other switches."""
        first = True

        def point():
            nonlocal first
            if not first:
                self._restart()
            first = False
            return self.y0, self.yp0

        self.tracker.settle(self._t, point, self.plan.rtol * np.abs(self.y0) + self.plan.atol)
