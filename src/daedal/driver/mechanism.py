"""Plans and runs of mechanisms and Hessenberg problems; each segment has one formulation and one method."""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np

from daedal.common.progress import Progress
from daedal.driver.choice import MethodChoice
from daedal.driver.event_view import EventsOf, EventView, switching_functions
from daedal.driver.finish import delivered
from daedal.driver.mechanism_output import PostprocessGuard, finished, outputs
from daedal.driver.mechanism_start import MechanismStarts
from daedal.driver.plan_stages import Plan
from daedal.driver.request import Request, Settings
from daedal.driver.run_segments import PreparedSegment, RunState, Segment, keeps_dense_output, run
from daedal.errors import InvalidProblemError
from daedal.kernels.endings import Ending
from daedal.mechanics.formulations.reformulation import Reformulation, attach_monitor
from daedal.mechanics.formulations.second_order_forms import second_order_form
from daedal.mechanics.hessenberg_workspace import prepare_hessenberg
from daedal.mechanics.setting import ConsistentStart
from daedal.mechanics.sparse.sparse_workspace import is_sparse
from daedal.methods.named_methods import named_method
from daedal.methods.task import Equations, Outcome, Task
from daedal.problems import HessenbergDAE, MechanicalSystem
from daedal.problems.checks import check_tolerances
from daedal.symbolic.tracing.function import SwitchedParams

_ORDINARY = "index1, baumgarte, projection, state_space, essential or loetstedt"


class MechanismPlan(Plan):
    """Data that do not depend on the start: tolerances, the user's method, and pooled assemblies."""

    def __init__(self, problem: MechanicalSystem | HessenbergDAE, settings: Settings):
        self.problem: Any = problem
        self.formulation = settings.formulation
        self.rtol, self.atol = check_tolerances(problem.n, settings.rtol, settings.atol)
        automatic = isinstance(settings.method, str) and settings.method == "auto"
        self.method: Any = "auto"
        if not automatic or settings.options:
            self.method = named_method("dassl" if automatic else settings.method, settings.options)
        self.names = tuple(problem.label(i) for i in range(problem.n))
        self.starts = MechanismStarts(problem) if isinstance(problem, MechanicalSystem) else None
        self._sparse: bool | None = None
        # formulation and method of the first segment, by weight matrix of the projections
        self.forms: dict[Any, tuple] = {}

    def with_problem(self, problem) -> MechanismPlan:
        other = copy(self)
        other.problem = problem
        other.starts = None if self.starts is None else self.starts.with_system(problem)
        return other

    def solve(self, request: Request, tracker=None, known: dict[str, bool] | None = None):
        """The solution of a request; the run is repeated if the constraints differ from what the start suggested.

        `tracker`, if given, tracks the switches of the equations; `known` is passed to :meth:`begin`.
        """
        run_state: Any = self.begin(request, known)
        if tracker is not None:
            from daedal.driver.switched_mechanism import ArcEvaluator, SwitchedMechanismRunState

            run_state = SwitchedMechanismRunState(run_state, tracker)
        segments = run(run_state, request)
        found = learned(segments[-1])
        if found:
            run_state.give_back()
            return self.solve(request, tracker, {**(known or {}), **found})
        salvage = PostprocessGuard()
        t, states = outputs(request, segments, salvage)
        solution = finished(self, request, run_state, segments, t, states, salvage)
        if tracker is not None and len(run_state.arcs) > 1:
            solution.evaluate_with(ArcEvaluator(run_state))
        run_state.give_back()
        return delivered(solution, segments)

    def begin(self, request: Request, known: dict[str, bool] | None = None) -> MechanismRunState:
        problem = self.problem
        if isinstance(problem, HessenbergDAE):
            assembly, start, notes = prepare_hessenberg(problem, request.span[0], request.initial)
            start = start.towards(request.sign)
        elif self._is_sparse(request):
            from daedal.driver.sparse import begin_sparse

            return begin_sparse(self, request)
        else:
            assert self.starts is not None
            assembly, start, notes = self.starts.begin(request, known)
        return MechanismRunState(self, request, assembly, start, notes, MethodChoice(self, assembly, request))

    def _is_sparse(self, request: Request) -> bool:
        """Whether the functions return sparse matrices, determined at the first start."""
        if self._sparse is None:
            self._sparse = is_sparse(self.problem, request.span[0], request.initial)
        return self._sparse


class MechanismRunState(RunState):
    """One run of a constrained system: its assembly, current state, formulation and method."""

    def __init__(
        self, plan: MechanismPlan, request: Request, assembly, start: ConsistentStart, notes: list[str], choice
    ):
        self.plan, self.request, self.assembly, self.start, self.choice = plan, request, assembly, start, choice
        self._notes = notes
        self.in_arcs: Any = None  # the run in arcs, which modifies tasks, if switches are tracked
        self._in_place = False  # whether the next segment reuses the records of the previous one
        self._usual_norms: Any = 0.0  # norms of the rows of K seen in earlier segments

    @property
    def t(self) -> float:
        return self.start.t

    @property
    def notes(self) -> list[str]:
        """Notes on the start, the formulation and the method."""
        return [*self._notes, *self.choice.notes]

    def give_back(self):
        """Return the assembly, with its prepared data, to the pool."""
        if self.plan.starts is not None and not self.assembly.is_sparse:
            self.plan.starts.pool.give_back(self.assembly)

    # --- a segment --------------------------------------------------------------------------------------------------

    def prepared(self, earlier: list[Segment], progress: Progress) -> PreparedSegment:
        reduction, ready, task = self.made_ready(earlier, progress)

        def finish(outcome: Outcome) -> Segment:
            choice = self.choice
            self._notes += [note for note in ready.notes if note not in self._notes]
            choice.changed = False
            return Segment(reduction, outcome, choice.method, choice.formulation, outcome.signal)

        return PreparedSegment(ready, task, finish, reduction)

    def restarts(self, t: float, segment: Segment) -> bool:
        self.assembly.bridge.refresh()
        self.start, self._in_place = self._restart(segment), segment.equations.recover is None
        return True

    def delivered(self, segments: list[Segment]):
        salvage = PostprocessGuard()
        t, states = outputs(self.request, segments, salvage)
        return delivered(finished(self.plan, self.request, self, segments, t, states, salvage), segments)

    def made_ready(self, earlier: list[Segment], progress: Progress) -> tuple[Reformulation, Any, Task]:
        choice, assembly, settings = self.choice, self.assembly, self.request.settings
        reduction = self._reduction(earlier)
        watched = assembly.n_c and (settings.fixed_step is None or not assembly.linear) and not assembly.is_sparse
        if watched and (reduction.monitor is None or earlier):
            attach_monitor(
                reduction,
                amplification=choice.watches_amplification,
                usual_norms=self._usual_norms,
                changes=settings.fixed_step is None,
            )
        method = self._adapted_method(reduction)
        ready = self._ready(reduction, method)
        steps = settings.max_steps
        if steps is not None:
            steps -= sum(segment.outcome.steps for segment in earlier)
        if choice.step_limit is not None:
            steps = choice.step_limit if steps is None else min(steps, choice.step_limit)
        return reduction, ready, self._task(reduction, method, earlier, steps, progress)

    def _reduction(self, earlier: list[Segment]) -> Reformulation:
        """The reformulated problem, of first or second order as required by the method."""
        choice, assembly, start = self.choice, self.assembly, self.start
        if not choice.changed:
            before, in_place = earlier[-1].equations, self._in_place
            self._in_place = False
            if not in_place and (self.in_arcs is None or before.recover is not None):
                return before.restart(start)
            before.begin(start, self._usual_norms)
            return before
        if choice.method.supports("second_order"):
            return second_order_form(choice.formulation, assembly, start, project=choice.method.projection != "never")
        kept = assembly.prepared.get(choice.pair) if not earlier else None
        if kept is not None:
            kept[0].begin(start)
            return kept[0]
        return choice.formulation.reduce(assembly, start)

    def _ready(self, reduction: Reformulation, method):
        """The method prepared for the equations; it is cached with the assembly for the first segment."""
        prepared, pair = self.assembly.prepared, self.choice.pair
        if pair in prepared and prepared[pair][0] is reduction:
            return prepared[pair][1]
        ready = method.prepare(_equations(reduction, method, self.assembly))
        if ready.reusable and not self.assembly.is_sparse:
            prepared.clear()
            prepared[pair] = reduction, ready
        return ready

    def _adapted_method(self, reduction: Reformulation):
        method, settings = self.choice.method, self.request.settings
        if method.supports("rate") and reduction.rate is None:
            raise InvalidProblemError(
                f"{type(method).__name__} is explicit and needs a formulation that is an ordinary differential "
                f"equation: {_ORDINARY}"
            )
        method = method.with_defaults(reduction.options)
        if settings.fixed_step is not None and method.needs_starting_values:
            left = max(1, round(abs(self.request.span[1] - self.start.t) / settings.fixed_step))
            method = replace(method, max_order=min(method.max_order, left))
            method = replace(method, starting_values=self._starting_values(reduction, method))
        return method

    def _task(self, reduction: Reformulation, method, earlier, max_steps: int | None, progress) -> Task:
        request, settings, start = self.request, self.request.settings, self.start
        rtol, atol = self._tolerances(reduction)
        times = request.times
        if earlier and times is not None:
            times = times[request.sign * (times - start.t) > 0.0]
        excluded = reduction.excluded
        if not isinstance(method.error_test, str):
            excluded = method.excluded(reduction.problem)
        elif method.error_test == "all":
            excluded = None
        task = Task(
            t_span=(start.t, request.span[1]),
            y0=reduction.y0,
            yp0=reduction.yp0,
            rtol=rtol,
            atol=atol,
            t_eval=times,
            switching=None if settings.events is None else self._switching(reduction, earlier),
            max_steps=max_steps,
            first_step=None if earlier else settings.first_step,
            max_step=settings.max_step,
            t_stop=request.t_stop,
            fixed_step=settings.fixed_step,
            dense=keeps_dense_output(request, reduction.n),
            progress=progress,
            excluded=excluded,
            suspect=self._suspect(reduction) if getattr(method, "stop_when_stiff", False) else None,
            guess=np.concatenate([start.w, start.lam]) if self.assembly.is_coupled else None,
        )
        return task if self.in_arcs is None else self.in_arcs.task(task, reduction)

    def _suspect(self, reduction: Reformulation):
        """The function that an explicit method calls if stability seems to limit its steps."""

        def suspect(t: float, y: np.ndarray, h: float) -> int:
            return self.choice.check_stiffness(t, h, reduction.states(np.array([t]), y[:, None])[0])

        return suspect

    def _tolerances(self, reduction: Reformulation):
        """Tolerances of the unknowns: the user's for (z, r), and for multipliers relative to their initial size."""
        plan, start = self.plan, self.start
        n, n_state = reduction.n, self.assembly.n_state
        if reduction.tolerances is not None:
            return reduction.tolerances(plan.rtol, plan.atol)
        if reduction.recover is None and n == n_state:
            return plan.rtol, plan.atol
        largest_rtol, largest_atol = plan.rtol.max(), plan.atol.max()
        rtol, atol = np.full(n, largest_rtol), np.full(n, largest_atol)
        if reduction.recover is None:
            rtol[:n_state], atol[:n_state] = plan.rtol, plan.atol
            size = np.max(np.abs(start.lam), initial=0.0) + np.max(np.abs(start.a), initial=0.0)
            atol[n_state:] = np.maximum(rtol[n_state:] * size, 1e-300) + largest_atol
            if reduction.multiplier_sizes is not None:
                sizes, units = reduction.multiplier_sizes(start)
                own = rtol[0] * sizes + largest_atol * units
                atol[n_state : n_state + own.size] = np.maximum(own, 1e-300)
        return rtol, atol

    def _switching(self, reduction: Reformulation, earlier: list[Segment]):
        assembly, start, events = self.assembly, self.start, self.request.settings.events
        n, split = assembly.m * assembly.nx, (assembly.m - 1) * assembly.nx
        foreign = isinstance(events, EventsOf)

        def recover(t, y, yp):
            state = reduction.states(np.array([t]), np.ascontiguousarray(y[:, None]))[0]
            return events.arguments(t, state) if foreign else (state[:n], state[:n])

        if foreign:
            y0, yp0 = events.arguments(start.t, np.concatenate([start.z, start.r]))
            own = self.request.changed(events=events.events)
            return switching_functions(own, events.view, start.t, y0, yp0, recover, earlier)
        params = self.plan.problem.params
        given = params.given if isinstance(params, SwitchedParams) else params
        view = EventView(self.plan.problem, given, split or None)
        leading = reduction.recover is None
        return switching_functions(self.request, view, start.t, start.z, start.slope, recover, earlier, leading=leading)

    def _starting_values(self, reduction: Reformulation, method):
        """Unknowns at t0, t0 + h, ... for a multistep method, from an accurate solution by coordinate projection."""
        if reduction.pack is None:
            raise InvalidProblemError(
                "multipliers that are derivatives of unknowns have no natural starting values: pass starting_values"
            )
        request, assembly, start = self.request, self.assembly, self.start
        h = request.settings.fixed_step
        assert h is not None
        times = start.t + request.sign * h * np.arange(method.max_order)
        size = max(1.0, float(np.max(np.abs(start.z), initial=0.0)))
        accurate = request.changed(
            span=(float(times[0]), float(times[-1])),
            times=times,
            t_stop=float(times[-1]),
            progress=False,
            method="dopri5",
            formulation="projection",
            rtol=1e-13,
            atol=1e-14 * size,
            events=None,
            first_step=None,
            max_step=abs(h) / 4.0,
            fixed_step=None,
            dense_output=False,
            options={},
        )
        plan = MechanismPlan(self.plan.problem, accurate.settings)
        segments = run(
            MechanismRunState(plan, accurate, assembly, start, [], MethodChoice(plan, assembly, accurate)), accurate
        )
        outcome = segments[-1].outcome
        if outcome.interrupted:
            raise KeyboardInterrupt
        if outcome.exception is not None:
            raise outcome.exception
        t, states = outputs(accurate, segments, PostprocessGuard())
        if t.size < times.size:
            raise InvalidProblemError(
                f"accurate starting values for BDF{method.max_order} could not be computed; pass starting_values"
            )
        return np.array([reduction.pack(assembly.start(float(t[i]), states[i]))[0] for i in range(t.size)]).T

    # --- from segment to segment ------------------------------------------------------------------------------------

    def continues(self, segment: Segment) -> bool:
        if not self.choice.continues(segment):
            if segment.equations.inspection is not None and segment.outcome.reason == Ending.HOOK_STOPPED:
                self._explain(segment)
            return False
        if segment.equations.monitor is not None:
            self._usual_norms = segment.equations.monitor.array("norms").copy()
        self.start = self._restart(segment)
        return True

    def _explain(self, segment: Segment):
        from daedal.mechanics.inspection import UNEXPLAINED, unexplained

        if segment.signal == UNEXPLAINED:
            segment.unexplained = unexplained(self.assembly, segment.equations.inspection, segment.outcome.t_reached)

    def _restart(self, segment: Segment) -> ConsistentStart:
        """Consistent values at the end of a segment."""
        t, state = segment.equations.last_state(segment.outcome)
        if self.assembly.n_c:
            self.assembly.project(np.array([t]), state, weight=self.assembly.output_weight)
        return self.assembly.start(t, state[0]).towards(self.request.sign)


def learned(segment: Segment) -> dict[str, bool]:
    """Properties of the constraints found in a segment, which require a new run; empty if there are none."""
    if segment.outcome.reason != Ending.HOOK_STOPPED:
        return {}
    from daedal.mechanics.inspection import DEPENDS_ON_TIME, NOT_ANALYTIC

    return {DEPENDS_ON_TIME: {"autonomous": False}, NOT_ANALYTIC: {"analytic": False}}.get(segment.signal, {})


def _equations(reduction: Reformulation, method, assembly) -> Equations:
    second_order = method.supports("second_order")
    return Equations(
        n=reduction.n,
        problem=reduction.problem if method.supports("residual") else None,
        second_order=reduction.problem if second_order else None,
        rate=reduction.rate if method.supports("rate") else None,
        mechanism=assembly,
        semi_explicit=reduction.semi_explicit if method.supports("semi_explicit") else None,
        hook=reduction.hook,
        bridge=assembly.bridge,
        params=assembly.given.params,
    )
