"""Runs of mechanisms with switches, in arcs between switches."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from daedal.common.progress import Progress
from daedal.driver.finish import cut, delivered
from daedal.driver.mechanism_output import PostprocessGuard, finished, outputs
from daedal.driver.run_segments import PreparedSegment, RunState, Segment
from daedal.driver.sliding_plan import leaving
from daedal.driver.switch_tracking import JUMP, ONE_STEP, SwitchTracker, Unfollowable
from daedal.events.event import EventRecord, SwitchingFunctions
from daedal.kernels.endings import Ending
from daedal.mechanics.setting import WorkspacePool
from daedal.mechanics.system_workspace import SystemWorkspace
from daedal.methods.task import Outcome, Task
from daedal.problems.compile import with_numbers
from daedal.symbolic.tracing.function import SwitchedParams
from daedal.symbolic.tracing.mixture import SLACK
from daedal.symbolic.tracing.sliding import sliding_system

_FARTHEST = 1e3  # times the tolerances: largest change by a projection onto the constraints of a new branch


@dataclass(frozen=True)
class Arc:
    """The start of an arc."""

    t: float
    modes: np.ndarray
    run_state: tuple[int, ...]
    further: int  # number of additional states, the integrals of the fractions


class SwitchedMechanismRunState(RunState):
    """One run in arcs, each with the equations of one branch or of sliding between two branches.

    Parameters
    ----------
    run_state : MechanismRunState
        The run before its start.
    tracker : SwitchTracker
    """

    def __init__(self, run_state, tracker: SwitchTracker):
        self.base, self.current, self.tracker = run_state, run_state, tracker
        self.plan, self.request, self.assembly = run_state.plan, run_state.request, run_state.assembly
        self.along: dict[tuple[int, ...], Any] = {}  # run states of sliding arcs, keyed by their surfaces
        self.arcs: list[Arc] = []
        self._earlier: list[Segment] = []  # earlier segments of the current arc
        self._hint: float | None = None
        self._closed = tracker.switched.closed
        start = run_state.start
        self._state, self._t = np.concatenate([start.z, start.r]), start.t
        run_state.in_arcs = self
        tracker.start(self._t, (self._state,), self._rates)
        self._begin_arc()

    @property
    def t(self) -> float:
        return self.current.start.t

    @property
    def notes(self) -> list[str]:
        """Notes on the start, the formulation, the method and the switches."""
        return [*self.base.notes, *self.tracker.notes]

    def give_back(self):
        """Return the assemblies to the pool."""
        self.base.give_back()
        for run_state in self.along.values():
            run_state.give_back()

    # --- an arc ----------------------------------------------------------------------------------------------------

    def prepared(self, earlier: list[Segment], progress: Progress) -> PreparedSegment:
        self._all = earlier
        inner = self.current.prepared(self._earlier, progress)

        def finish(outcome: Outcome) -> Segment:
            segment = inner.finish(outcome)
            self._earlier.append(segment)
            return replace(segment, equations=_OwnStates(segment.equations, self._state.size))

        return replace(inner, finish=finish)

    def restarts(self, t: float, segment: Segment) -> bool:
        self._t, self._state = t, segment.equations.last_state(segment.outcome)[1][0].copy()
        self._begin_arc()
        return True

    def delivered(self, segments: list[Segment]):
        salvage = PostprocessGuard()
        t, states = outputs(self.request, segments, salvage)
        return delivered(finished(self.plan, self.request, self, segments, t, states, salvage), segments)

    def task(self, task: Task, reduction) -> Task:
        """The task of a segment, changed to end where a mode ends."""
        tracker, request, t = self.tracker, self.request, task.t_span[0]
        end = tracker.horizon(t)
        times = request.times
        if times is not None:
            ahead, before = request.sign * (times - t), request.sign * (times - end)
            times = times[((ahead > 0.0) | (not self._all)) & (before <= 0.0)]
        n, own = reduction.n, task.switching
        if own is not None:
            own.occurred[:] = 0
            for event in (event for segment in self._all for event in segment.outcome.events):
                if event.kind == "event":
                    own.occurred[event.index] += 1
        self._n_own = 0 if own is None else own.direction.size
        leading = reduction.recover is None

        def state(t, y, yp):
            return (reduction.states(np.array([t]), np.ascontiguousarray(y[:, None]))[0],)

        closed = tracker.is_along and self._closed is not None
        switching = own
        if tracker.watches_state:
            switching = tracker.functions(n, own, None if leading else state, along=closed)
            if tracker.sliding and not closed:
                switching = self._with_shares(switching, reduction)
        limit = request.settings.max_steps
        if limit is not None:
            limit -= sum(segment.outcome.steps for segment in self._all)
            limit = limit if task.max_steps is None else min(limit, task.max_steps)
        first, self._hint = (self._hint, None) if self._all else (request.settings.first_step, None)
        return replace(
            task,
            t_span=(t, end),
            t_stop=task.t_stop if end == request.span[1] else end,
            t_eval=times,
            switching=switching,
            max_steps=task.max_steps if limit is None else limit,
            first_step=None if first is None else min(first, abs(end - t)),
        )

    def _with_shares(self, base: SwitchingFunctions, reduction) -> SwitchingFunctions:
        """The given events, and the events that fractions reach 0 or 1."""
        k, assembly = len(self.tracker.sliding), self.current.assembly
        evaluate = base.evaluate

        def joined(t, y, yp):
            state = reduction.states(np.array([t]), np.ascontiguousarray(y[:, None]))[0]
            nu = assembly.accelerate(t, state)[1][0][-k:]
            if not np.isfinite(nu).all():
                raise Unfollowable(f"the forces along a surface cannot be computed at t = {t:g}")
            return np.concatenate([np.atleast_1d(evaluate(t, y, yp)), nu + SLACK, 1.0 - nu + SLACK])

        names = tuple(self.tracker.switches[j].name for j in self._surfaces)
        return base.extended(joined, (*names, *names))

    # --- between arcs --------------------------------------------------------------------------------------

    def continues(self, segment: Segment) -> bool:
        outcome, tracker, request = segment.outcome, self.tracker, self.request
        surfaces = self._surfaces if self._closed is None else self._closed.surfaces
        left = leaving(outcome, self._n_own, tracker, surfaces)
        last = outcome.events[-1] if outcome.events else None
        outcome.events, ended = tracker.as_user_events(outcome.events, self._n_own)
        stopped = any(event.terminal for event in outcome.events) or tracker.is_at_end(outcome.events)
        at_event = outcome.reason == Ending.EVENT_STOP
        at_time = outcome.reason == Ending.FINISHED and request.sign * (request.span[1] - outcome.t_reached) > 0.0
        if stopped or not (at_event or at_time):
            inner = self._earlier[-1]
            if not stopped and self.current.continues(inner):
                return True
            segment.singular, segment.unexplained = inner.singular, inner.unexplained
            tracker.finish()
            return False
        equations = segment.equations
        if at_event and last is not None:
            self._t, y = last.t, last.y
        else:
            self._t, y = outcome.t_reached, outcome.y_reached
        state = equations.states(np.array([self._t]), np.ascontiguousarray(y[:, None]))
        self._state = state[0].copy()
        clocked = tracker.clock(self._t)
        for j, direction in clocked:
            name, yp = tracker.switches[j].name, np.zeros_like(y)
            record = EventRecord(self._t, y, yp, self._n_own + j, name, direction, False, "switch", located="known")
            outcome.events.append(record)
        outcome.dense = cut(outcome.dense, self._t)
        one_step = any(segment.method.supports(form) for form in ("rate", "mechanism"))
        self._hint = abs(outcome.h_last) if one_step and outcome.h_last else None
        self._switch(outcome, ended, left, [j for j, _ in clocked])
        segment.stopped = tracker.stopped
        if tracker.stopped:
            tracker.finish()
        return not tracker.stopped

    def _switch(self, outcome, ended: list[tuple[int, int]], left: list[tuple[int, int]], clocked: list[int]):
        tracker, before = self.tracker, set(self.tracker.sliding) - {j for j, _ in left}
        tracker.cross(self._t, ended, left)
        tracker.stay(self._t, (self._state,), self.plan.rtol * np.abs(self._state) + self.plan.atol, self._move)
        if tracker.stopped:
            return
        tables = [
            j for j in clocked if tracker.switches[j].kind == "locate"
        ]  # time-dependent tables, after which nothing can be reused
        tracker.judge(
            self._t, [*tables, *[j for j, _ in ended]], outcome.steps, JUMP if self._hint is None else ONE_STEP
        )
        begun = {tracker.switches[j].name for j in tracker.sliding if j not in before}
        outcome.events = [
            replace(event, kind="slides") if event.kind == "switch" and event.name in begun else event
            for event in outcome.events
        ]
        self._begin_arc()

    def _move(self, state: np.ndarray):
        self._state = state

    def _begin_arc(self):
        """Start an arc in the current modes, with consistent values."""
        tracker = self.tracker
        self._surfaces = sorted({*tracker.sliding, *tracker.held})
        run_state = self._course()
        if run_state is not self.current:
            self._earlier = []
            run_state.choice.changed = True
            self.current = run_state
        weights = self.plan.rtol * np.abs(self._state) + self.plan.atol
        tracker.settle(self._t, lambda: (self._state,), weights)
        run_state.assembly.bridge.refresh()
        state = np.append(self._state, np.zeros(self._further))[None]
        if run_state.assembly.n_c:
            run_state.assembly.project(np.array([self._t]), state, weight=run_state.assembly.output_weight)
            moved = state[0, : self._state.size]
            if np.any(np.abs(moved - self._state) > _FARTHEST * weights):
                raise Unfollowable(f"a constraint jumps with the switch at t = {self._t:g}")
            self._state = moved.copy()
        run_state.start = run_state.assembly.start(self._t, state[0]).towards(self.request.sign)
        tracker.band(self._t, (self._state,), weights)
        self.arcs.append(Arc(self._t, tracker.moded.modes.copy(), self._key, self._further))

    @property
    def _key(self) -> tuple[int, ...]:
        """Key of the run state for the current equations."""
        return tuple(self._surfaces) if self._closed is None or not self._surfaces else self._closed.surfaces

    @property
    def _further(self) -> int:
        """Number of additional states of the run."""
        return len(self._surfaces) if self._closed is None else 0

    def _course(self):
        key = self._key
        if not key:
            return self.base
        if key not in self.along and self._closed is not None:
            self._begin_along(key, with_numbers(self._closed.problem, self.tracker.moded), 0)
        if key not in self.along:
            made = self.tracker.switched.along(key, sliding_system)
            if made is None:
                raise Unfollowable("the equations along a surface are too large, or nonlinear in the fractions")
            self._begin_along(key, with_numbers(made, self.tracker.moded), len(key))
        return self.along[key]

    def _begin_along(self, key: tuple[int, ...], system, k: int):
        """Create the run state of sliding with k additional states and multipliers."""
        from daedal.driver.mechanism import MechanismPlan

        request, n = self.request, system.n_q
        q, v, r = self._state[:n], self._state[n : 2 * n], np.append(self._state[2 * n :], np.zeros(k))
        lam = np.append(np.zeros(system.n_lambda - k), np.full(k, 0.5))
        wider = {name: self._wider(getattr(request.settings, name), k) for name in ("rtol", "atol")}
        part = request.changed(
            problem=system,
            span=(self._t, request.span[1]),
            initial=(q, v, r, None, lam),
            correct_initial=True,
            **wider,
        )
        run_state = MechanismPlan(system, part.settings).begin(part)
        run_state.in_arcs = self
        self.along[key] = run_state

    def _rates(self) -> tuple[np.ndarray, np.ndarray] | None:
        """u' of all switches in the current modes, and the fractions of the sliding switches."""
        tracker = self.tracker
        self._surfaces = sorted({*tracker.sliding, *tracker.held})
        assembly, k = self._course().assembly, len(self._surfaces)
        assembly.bridge.refresh()
        a, lam, rate, _, status = assembly.accelerate(self._t, np.append(self._state, np.zeros(self._further)))
        if status[0] != 0:
            return None
        n_r = self._state.size - 2 * a.shape[1]
        shares = np.full(len(tracker.switches), np.nan)
        if k and self._closed is not None:
            surfaces = list(self._closed.surfaces)
            shares[surfaces] = self._closed.balance(self._t, self._state, tracker.moded)[len(surfaces) :]
        elif k:
            shares[self._surfaces] = lam[0][-k:]
        if not np.isfinite(shares[tracker.sliding]).all():
            return None
        return tracker.switched.rates(self._t, self._state, a[0], rate[0, :n_r], tracker.moded), shares

    @staticmethod
    def _wider(tolerance, k: int):
        return tolerance if np.ndim(tolerance) == 0 else np.append(tolerance, np.full(k, np.max(tolerance)))


class _OwnStates:
    """Equations of a run whose additional states are omitted from (z, r)."""

    def __init__(self, equations, n_state: int):
        self._equations, self.n_state = equations, n_state

    def __getattr__(self, name: str) -> Any:
        return getattr(self._equations, name)

    def states(self, times: np.ndarray, y: np.ndarray) -> np.ndarray:
        return np.ascontiguousarray(self._equations.states(times, y)[:, : self.n_state])

    def last_state(self, outcome) -> tuple[float, np.ndarray]:
        t, state = self._equations.last_state(outcome)
        return t, state[:, : self.n_state]


# --- evaluation after the run -----------------------------------------------------------------------------------------


class ArcEvaluator:
    """Evaluates the system of a solution with the equations of each arc.

    Parameters
    ----------
    run_state : SwitchedMechanismRunState
        The completed run.
    """

    def __init__(self, run_state):
        self._begins = np.array([arc.t for arc in run_state.arcs])
        self._arcs, self._sign = run_state.arcs, run_state.request.sign
        self._given = run_state.tracker.moded.given
        self._courses = {(): run_state.base, **run_state.along}

    @contextmanager
    def lend(self):
        """``with evaluator.lend() as assembly``."""
        moded = self._courses[()].plan.problem.params.fresh(self._given)
        lenders = {}
        for key, run_state in self._courses.items():
            system = with_numbers(run_state.plan.problem, moded)
            lenders[key] = WorkspacePool(run_state.plan.starts.pool, system, run_state.assembly.setting)
        with lenders[()].lend() as base:
            yield _ArcAssembly(base, lenders, moded, self)

    def groups(self, times: np.ndarray):
        """(arc, indices of its times) for the arcs that contain any of the times; a switch is in the later arc."""
        found = np.searchsorted(self._sign * self._begins, self._sign * times, side="right") - 1
        for i in np.unique(np.maximum(found, 0)):
            yield self._arcs[i], np.flatnonzero(np.maximum(found, 0) == i)


class _ArcAssembly:
    start = SystemWorkspace.start

    def __init__(
        self, base: SystemWorkspace, lenders: dict[tuple, WorkspacePool], moded: SwitchedParams, evaluator: ArcEvaluator
    ):
        self._base, self._lenders, self._moded, self._evaluator = base, lenders, moded, evaluator

    def __getattr__(self, name: str) -> Any:
        return getattr(self._base, name)

    def accelerate(self, times, states, guesses=None):
        """a, lam, r' and w at the rows of `states`, as in :meth:`SystemWorkspace.accelerate`."""
        base = self._base
        times, states = np.atleast_1d(np.asarray(times, dtype=float)), np.atleast_2d(states)
        results = [np.full((times.size, k), np.nan) for k in (base.nx, base.n_c, base.n_r, base.n_w)]
        statuses = np.ones(times.size, dtype=np.int64)
        for arc, at in self._evaluator.groups(times):
            self._moded.modes[:] = arc.modes
            with self._lenders[arc.run_state].lend() as assembly:
                assembly.bridge.refresh()
                shares = np.zeros((at.size, arc.further))
                *found, status = assembly.accelerate(times[at], np.hstack([states[at], shares]))
            for target, values in zip(results, found, strict=True):
                target[at] = values[:, : target.shape[1]]
            statuses[at] = status
        self._moded.modes[:] = np.nan
        base.bridge.refresh()
        return *results, statuses
