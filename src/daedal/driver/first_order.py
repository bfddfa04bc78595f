"""Plans and runs of first-order problems: F(t, y, y') = 0, semi-explicit, and linear in implicit form."""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from daedal.analysis.index import is_clearly_index_1
from daedal.analysis.thresholds import LEAST_PROGRESS
from daedal.common.messages import warn
from daedal.common.progress import Progress
from daedal.driver.event_view import switching_functions
from daedal.driver.finish import delivered
from daedal.driver.first_order_choice import (
    FAILURES,
    FirstOrderChoice,
    automatic_methods,
    explicit_methods,
    first_explicit,
    first_method,
    is_automatic,
)
from daedal.driver.first_order_output import RUNAWAY, finished, methods_of
from daedal.driver.invariants import InvariantProjection, Invariants
from daedal.driver.low_index import LARGEST_EXAMINED
from daedal.driver.plan_stages import Plan
from daedal.driver.request import Request, Settings
from daedal.driver.run_segments import LARGEST_KEPT, PreparedSegment, RunState, Segment, keeps_dense_output, run
from daedal.driver.solution_checks import contradict, in_words, lost_sign
from daedal.errors import DerivativeWarning, IntegrationError, InvalidProblemError, NotFiniteError, Unevaluable
from daedal.index.reduction import WAYS
from daedal.initial.array_start import all_slopes
from daedal.initial.consistent import check_start, complete, prepare_initial
from daedal.initial.unknown_z import start_with_z
from daedal.initial.variable_kinds import algebraic_variables, missing_entry, refuse_wrong_algebraic
from daedal.mechanics.formulations.linear_reduction import first_order
from daedal.methods.named_methods import named_method
from daedal.methods.step_size import first_step_size
from daedal.methods.task import Equations, Outcome, Task
from daedal.methods.workspace import Workspace
from daedal.problems import ODE, ImplicitDAE, LinearDAE, SemiExplicitDAE
from daedal.problems.checks import check_tolerances
from daedal.problems.compile import with_numbers
from daedal.solution.solution import Solution

_RESOLVED = 100.0  # smallest first step, in units of (floating-point spacing at t) / rtol
_ROUND_OFF = 1e-12  # largest relative difference between a given derivative and the computed one
_UNCHANGED = 10.0  # largest change of a differential variable at a jump of the inputs, in tolerances
_MOST_RUNS = 4  # maximum number of pooled runs of a method
_MOST_REPEATED = 10_000  # largest number of steps of a failed run that is repeated from the start


class FirstOrderPlan(Plan):
    """Data that do not depend on the start: method, tolerances, and pooled runs."""

    def __init__(
        self, problem: ImplicitDAE | SemiExplicitDAE, settings: Settings, wishes: dict[str, Any] | None = None
    ):
        if settings.formulation not in ("auto", "none", None):
            raise InvalidProblemError(
                f"unknown formulation {settings.formulation!r}; first-order problems accept 'auto', 'none', or an "
                f"index reduction: {', '.join(map(repr, WAYS))}"
            )
        self.problem, self.implicit = problem, problem.implicit()
        self.semi_explicit = problem if isinstance(problem, SemiExplicitDAE) else None
        self.ordinary = problem if isinstance(problem, ODE) else None
        self.rtol, self.atol = check_tolerances(problem.n, settings.rtol, settings.atol)
        if is_automatic(settings):
            self.methods, self.first = automatic_methods(wishes or {}), first_method(self.implicit, self.rtol)
            if self.ordinary is not None:
                self.methods, self.first = self.methods | explicit_methods(), first_explicit(self.rtol)
        else:
            method = _checked_method(settings, self.forms).with_defaults(wishes or {})
            self.methods, self.first = {method.name: method}, method.name
        self.method = self.methods[self.first]
        keeps_sign = self.method.nonnegative is not False
        self.nonnegative: Any = self.method.nonnegative_mask(self.implicit) if keeps_sign else None
        self.equations = self._equations()
        # the rank of small traced problems has already been checked
        judged = getattr(self.implicit.jacobian, "is_derivative", False) and problem.n <= LARGEST_EXAMINED
        self.examines_rank = self.ordinary is None and not judged
        self.sharpest = float(np.min(self.rtol))
        self._wishes = wishes
        self.structure_is_checked = False
        self._plain: tuple[Any, bool] | None = None  # the last start, and whether its index is clearly 0 or 1
        self._runs: dict[int, list] = {}  # keyed by the identity of their method
        # the invariants, and the number of equations preserved by steps; shared by plans with other parameters
        self._kept: list[tuple[Invariants, int]] = []

    def _equations(self) -> Equations:
        rate = None if self.ordinary is None else self.ordinary.f
        return Equations(self.implicit.n, problem=self.implicit, rate=rate, semi_explicit=self.semi_explicit)

    @property
    def forms(self) -> tuple[str, ...]:
        known = {"semi_explicit": self.semi_explicit, "rate": self.ordinary}
        return ("residual", *[form for form, problem in known.items() if problem is not None])

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the unknowns."""
        return tuple(self.problem.label(i) for i in range(self.problem.n))

    def with_problem(self, problem) -> FirstOrderPlan:
        """The plan for the same problem with other parameters, which shares prepared data."""
        other = copy(self)
        # copies use __getstate__, which drops pooled runs
        other._runs, other._kept, other._plain = self._runs, self._kept, None
        other.problem, other.implicit = problem, with_numbers(self.implicit, problem.params)
        other.semi_explicit = None if self.semi_explicit is None else problem
        other.ordinary = None if self.ordinary is None else problem
        other.equations = other._equations()
        return other

    def solve(self, request: Request, tracker=None) -> Solution:
        """The solution of a request; `tracker`, if given, tracks the switches of the equations."""
        if tracker is None:
            run_state = FirstOrderRunState(self, request)
        else:
            from daedal.driver.switched_first_order import SwitchedRunState

            run_state = SwitchedRunState(self, request, tracker)
        segments, excluded, notes = run(run_state, request), run_state.excluded, run_state.choice.notes
        of_methods, projection = run_state.notes, run_state.ready.projection
        later = None if projection is None else run_state.give_back  # another run would change the projection
        if later is None:
            run_state.give_back()
        del run_state  # for large problems, keep only the output
        further = of_methods if tracker is None else [*of_methods, *tracker.notes]
        try:
            solution = delivered(finished(self, request, segments, excluded, notes, further, projection), segments)
        except IntegrationError as error:
            if tracker is not None or not self._may_repeat(request, segments):
                raise
            return self._repeated_with_dassl(request, error, methods_of(segments))
        finally:
            if later is not None:
                later()
        may_lose = request.settings.fixed_step is None and not (tracker is not None and tracker.has_slid)
        lost = lost_sign(solution, self.atol) if may_lose and solution.t.size else None
        if lost is None:
            return solution
        is_open = tracker is None and len(self.methods) > 1
        others = is_open and any(segment.method.name != "dassl" for segment in segments)
        return self._checked_with_dassl(request, solution, lost, others)

    def _checked_with_dassl(
        self, request: Request, solution: Solution, lost: tuple[int, float, float], repeats: bool
    ) -> Solution:
        """The solution after the sign of a variable was lost; its message includes the result of a DASSL run.

        The DASSL solution is returned instead if it does not lose the sign and agrees with the given solution up to the
        interval in which the sign was lost.
        """
        variable, begin, end = lost
        doubt = in_words(self.names[variable], (begin, end))
        if not repeats:
            solution.message += f" {doubt}"
            return solution
        try:
            other = self._with_dassl(request)
        except IntegrationError as error:
            solution.message += f" {doubt} A second run, with DASSL, stopped at t = {_end(error, request):.4g}."
            return solution
        if not contradict(solution, other, self.rtol, self.atol):
            solution.message += (
                f" {self.names[variable]} was below its atol from t = {begin:.4g} to {end:.4g} and then changed its "
                "sign; a second run, with DASSL, has the same result."
            )
            return solution
        if lost_sign(other, self.atol) is None and not contradict(solution, other, self.rtol, self.atol, begin):
            other.message += f" This is the result of DASSL instead of {solution.method}: {doubt}"
            return other
        solution.message += f" {doubt} A second run, with DASSL, ends at other values."
        return solution

    def _may_repeat(self, request: Request, segments: list[Segment]) -> bool:
        """Whether to repeat a run in which methods other than DASSL failed."""
        steps = sum(segment.outcome.steps for segment in segments)
        is_open = len(self.methods) > 1 and request.settings.fixed_step is None and segments[0].method.name != "dassl"
        return is_open and segments[-1].outcome.reason in FAILURES and steps <= _MOST_REPEATED

    def _repeated_with_dassl(self, request: Request, error: IntegrationError, methods: str) -> Solution:
        """Repeat the run with DASSL after the failure of other methods: they may have left the solution, or DASSL may
        find the cause."""
        try:
            solution = self._with_dassl(request)
        except IntegrationError as other:
            behind = request.sign * (_end(error, request) - _end(other, request))
            raise (error if behind > LEAST_PROGRESS * abs(request.span[1] - request.span[0]) else other) from None
        known = error.solution.y
        if known.size and solution.y.size:
            atol = self.atol if self.atol.size == len(known) else np.max(self.atol)  # a reduced form has other unknowns
            sizes = np.abs(known).max(axis=1) + atol
            if np.any(np.abs(solution.y[:, -1]) > RUNAWAY * sizes):
                raise error
        solution.message += f" {methods} had stopped at t = {_end(error, request):.4g}."
        return solution

    def _with_dassl(self, request: Request) -> Solution:
        again = request.changed(method="dassl")
        return FirstOrderPlan(self.problem, again.settings, self._wishes).solve(again)

    def is_plain(self, t: float, y: np.ndarray, yp: np.ndarray | None) -> bool:
        """Whether the index at the start is clearly 0 or 1; the last result is cached."""
        if self.ordinary is not None:
            return True
        start = t, y.tobytes(), None if yp is None else yp.tobytes()
        known = self._plain
        if known is None or known[0] != start:
            partials = self.implicit.exact_partials(t, y, np.zeros(y.size) if yp is None else yp)
            known = self._plain = start, partials is not None and is_clearly_index_1(*partials)
        return known[1]

    def give_back(self, method, ready, workspace: Workspace | None):
        """Return a run to the pool."""
        waiting = self._runs.setdefault(id(method), [])
        n = self.implicit.n // self.implicit.copies  # the pool distinguishes solvers with and without sensitivities
        if len(waiting) < _MOST_RUNS and ready.reusable and n <= LARGEST_KEPT:
            waiting.append((ready, workspace))

    def take(self, method) -> tuple[Any, Workspace | None]:
        """A prepared run and a workspace for initial values, for exclusive use by the caller.

        Explicit methods for ordinary differential equations compute slopes from f and have no workspace.
        """
        try:
            ready, workspace = self._runs.get(id(method), []).pop()
            if ready.projection is not None and ready.projection.invariants is not self._kept[0][0]:
                raise IndexError  # the functions have changed
            if ready.equations is not self.equations:
                if workspace is not None:
                    workspace.adopt(self.implicit)
                ready.adopt(self.equations)
            if workspace is not None:
                workspace.begin()
        except IndexError:
            ready = self.prepared(method)
            workspace = ready.workspace
            if workspace is None and not method.supports("rate"):
                workspace = Workspace(self.implicit)
        return ready, workspace

    def prepared(self, method):
        if not self._kept:
            return method.prepare(self.equations)
        projection = InvariantProjection(*self._kept[0], self.problem.params, self.rtol, self.atol)
        ready = method.prepare(replace(self.equations, hook=projection.hook))
        ready.equations, ready.projection = self.equations, projection
        return ready

    def invariants_at(self, t: float, y: np.ndarray) -> Invariants | None:
        """The invariants of the problem, traced when needed; None if it has none."""
        if self.problem.invariants is None:
            return None
        params = self.problem.params
        if not self._kept or not self._kept[0][0].is_current(params):
            invariants = Invariants(self.problem)
            self._kept[:] = [(invariants, invariants.at(t, y, params).size)]
        return self._kept[0][0]

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_runs": {}, "_kept": []}


class LinearPlan(Plan):
    """Plan for linear problems, which are reformulated at the start, then solved like other first-order problems."""

    def __init__(self, problem: LinearDAE, settings: Settings):
        self.problem = problem

    def solve(self, request: Request) -> Solution:
        settings = request.settings
        problem, initial, wishes = first_order(self.problem, settings.formulation, request.span[0], request.initial)
        inner = replace(settings, formulation="none")
        plan = FirstOrderPlan(problem, inner, wishes)
        return plan.solve(replace(request, problem=problem, settings=inner, initial=initial))


def _end(error: IntegrationError, request: Request) -> float:
    """The time reached by a failed run."""
    solution = error.solution
    return float(solution.t[-1]) if solution is not None and solution.t.size else request.span[0]


def _checked_method(settings: Settings, forms: tuple[str, ...]):
    """The method of the settings, after checks that it accepts one of the forms of the equations."""
    if isinstance(settings.method, type):
        raise InvalidProblemError(f"method must be a name or a method object such as DASSL(), got {settings.method!r}")
    automatic = isinstance(settings.method, str) and settings.method == "auto"
    chosen = named_method("dassl" if automatic else settings.method, settings.options)
    if any(map(chosen.supports, forms)):
        return chosen
    if chosen.supports("semi_explicit"):
        raise InvalidProblemError(
            "half-explicit methods need constraints separated from the differential equations: define the "
            "problem as a MechanicalSystem or as a SemiExplicitDAE of index 2, or use method='dassl'"
        )
    if chosen.supports("second_order"):
        raise InvalidProblemError(
            f"{type(chosen).__name__} needs second-order equations: define the problem as a SecondOrderDAE or a "
            "MechanicalSystem, or use method='dassl'"
        )
    if chosen.supports("mechanism"):
        raise InvalidProblemError(
            f"{type(chosen).__name__} needs a mechanism: use a MechanicalSystem, or method='dassl'"
        )
    raise InvalidProblemError(
        f"{type(chosen).__name__} needs ordinary differential equations y' = f(t, y): define the problem as an "
        "ODE or as a MechanicalSystem, which has such forms, or use method='dassl'"
    )


class FirstOrderRunState(RunState):
    """One run of a first-order problem, with one segment per method."""

    searches = False  # whether to search for switches within steps
    _invariants: Invariants | None = None
    _wanted: np.ndarray | None = None  # values of the invariants at the start of the run

    def __init__(self, plan: FirstOrderPlan, request: Request):
        self.plan, self.request, self._t = plan, request, request.span[0]
        self.notes: list[str] = []
        try:
            with np.errstate(all="ignore"):  # trial values in the search for a start may lie outside the domain
                self._begin()
        except Unevaluable as error:
            functions = "f or g" if plan.semi_explicit is not None else "residual" if plan.ordinary is None else "f"
            message = f"{functions} cannot be evaluated at the initial values (t = {request.span[0]:g}): {error}"
            raise NotFiniteError(message.rstrip(": ")) from error

    def _begin(self):
        plan, request, settings = self.plan, self.request, self.request.settings
        problem, span = plan.problem, request.span
        y0, yp0 = request.stacked(problem)
        self._check_structure(y0, np.zeros(y0.size) if yp0 is None else yp0)
        unknown_z = plan.semi_explicit is not None and request.initial[1] is None
        if plan.semi_explicit is not None and unknown_z:
            y0 = start_with_z(plan.semi_explicit, plan.implicit, span[0], y0)
        self.excluded = _excluded(plan, span[0], y0, yp0)
        tested = plan.method.error_test
        self._automatic = isinstance(tested, str) and tested == "auto"
        index_2 = self.excluded is not None and self._automatic
        self.choice = FirstOrderChoice(plan, request, index_2, (y0, yp0), self.searches)
        self._invariants = plan.invariants_at(span[0], y0)
        self._take()
        if plan.ordinary is not None:
            slope, given = _finite_slope(plan, span[0], y0), None if settings.correct_initial else yp0
            if given is None or np.all(np.abs(given - slope) <= _ROUND_OFF * np.abs(slope)):
                self.y0, self.yp0 = y0, slope
                return
        workspace = self.workspace or Workspace(plan.implicit)
        if settings.fixed_step is None and yp0 is not None and not settings.correct_initial:
            if workspace.is_consistent(span[0], y0, yp0):
                self.y0, self.yp0 = y0, yp0
                return
        weights = plan.rtol * np.abs(y0) + plan.atol
        if settings.fixed_step is None:
            self.y0, self.yp0 = y0, np.zeros(y0.size) if yp0 is None else yp0
            shortest = settings.first_step or self.resolved(span[1]).get("first_step") or self.step_by_scale(span[1])
            trial = request.sign * shortest
            self.y0, self.yp0 = prepare_initial(
                problem, workspace, span[0], y0, yp0, weights, trial, settings.correct_initial, self.excluded, unknown_z
            )
        else:
            self.y0, self.yp0 = _start_of_fixed_steps(problem, workspace, span, y0, yp0, weights)
        if yp0 is None and self.choice.method.begins_with_slopes:
            self.yp0 = all_slopes(plan.implicit, span[0], self.y0, self.yp0, weights, request.sign, self.choice.method)

    def _check_structure(self, y0: np.ndarray, yp0: np.ndarray):
        """Check the structure given by the user, once per plan, with the derivatives at the start."""
        plan, given = self.plan, self.request.problem
        if plan.structure_is_checked or not isinstance(given, ImplicitDAE):
            return
        plan.structure_is_checked, t0 = True, self.request.span[0]
        if given.algebraic is not None:
            refuse_wrong_algebraic(plan.implicit, t0, y0, yp0)
        found = None
        if given.sparsity is not None or given.bandwidth is not None:
            found = missing_entry(plan.implicit, t0, y0, yp0)
        if found is not None:
            (i, j), what = found, "sparsity" if given.sparsity is not None else "bandwidth"
            warn(
                f"{what} omits row {i}, column {j}, but equation {i} depends on {plan.names[j]} or its derivative "
                f"at t = {t0:.6g}: the matrices of Newton's method are wrong, and steps may fail or become very "
                f"small. "
                f"Remedy: correct {what}, or omit it; it is then determined if the functions can be traced",
                DerivativeWarning,
            )

    def _take(self):
        """A run of the chosen method."""
        self.ready, self.workspace = self.plan.take(self.choice.method)

    def give_back(self):
        """Make prepared data available to later runs."""
        self.plan.give_back(self.choice.method, self.ready, self.workspace)

    @property
    def t(self) -> float:
        return self._t

    def delivered(self, segments: list[Segment]) -> Solution:
        notes = self.choice.notes
        projection = self.ready.projection
        return delivered(
            finished(self.plan, self.request, segments, self.excluded, notes, self.notes, projection), segments
        )

    def prepared(self, earlier: list[Segment], progress: Progress) -> PreparedSegment:
        plan, request = self.plan, self.request
        switching = None
        if request.settings.events is not None:
            switching = switching_functions(request, plan.problem, self._t, self.y0, self.yp0, earlier=earlier)
        check_signs(plan, self.y0)
        self._keep_invariants()
        searched = 0 if self.workspace is None else self.workspace.counts()

        def finish(outcome: Outcome) -> Segment:
            outcome.counts += searched
            self.notes += [note for note in self.ready.notes if note not in self.notes]
            examined = outcome.failure is None and plan.examines_rank
            doubtful = examined and self.workspace is not None and self.workspace.pivots_vanish()
            return Segment(plan.equations, outcome, self.choice.method, None, may_be_singular=doubtful)

        task = self.task(switching, progress, **(self.left(earlier, request.span[1]) | self.resolved(request.span[1])))
        return PreparedSegment(self.ready, task, finish, plan.equations)

    def _keep_invariants(self):
        """Prepare the projection of the next segment onto the invariants at the start of the run."""
        if self._invariants is None:
            return
        params = self.plan.problem.params
        if self._wanted is None:
            self._wanted = self._invariants.start(self._t, self.y0, self.yp0, params, self.request.span)
        self.ready.projection.begin(self._wanted, params)

    _differential: np.ndarray | None = None  # mask of the variables that are continuous where inputs jump

    def restarts(self, t: float, segment: Segment) -> bool:
        plan, y = self.plan, segment.outcome.y_reached
        if plan.ordinary is not None:
            self._t, self.y0, self.yp0 = t, y, _finite_slope(plan, t, y)
            return True
        if self.workspace is None or self.excluded is not None or self.request.settings.fixed_step is not None:
            return False
        self.workspace.begin()
        weights, slope = plan.rtol * np.abs(y) + plan.atol, self.ready.slope()
        trial = abs(segment.outcome.h_last) or self.request.settings.max_step
        problem = plan.problem
        y0, yp0 = prepare_initial(problem, self.workspace, t, y, slope, weights, trial, True)
        if self._differential is None:
            semi = isinstance(problem, SemiExplicitDAE)
            is_algebraic = None if semi else algebraic_variables(problem.implicit(), t, y, slope)
            self._differential = np.arange(y.size) < problem.n_y if is_algebraic is None else ~is_algebraic
        if np.any(np.abs(y0 - y)[self._differential] > _UNCHANGED * weights[self._differential]):
            return False  # the caller explains why no algebraic variables satisfy the equations
        self._t, self.y0, self.yp0 = t, y0, yp0
        return True

    def resolved(self, end: float) -> dict[str, Any]:
        """first_step = :meth:`least_step` as an option, if :meth:`step_by_scale` is smaller; otherwise no options.

        Algebraic variables of index 2 are derivatives of constraints, and are sensitive to the rounding of t.
        """
        settings = self.request.settings
        if self._t == 0.0 or self.plan.ordinary is not None or settings.fixed_step is not None or settings.first_step:
            return {}
        least = self.least_step(self._t)
        return {"first_step": min(least, abs(end - self._t))} if least > self.step_by_scale(end) else {}

    def least_step(self, t: float) -> float:
        """Smallest step in which the rounding of t changes slopes by less than their relative tolerance."""
        return _RESOLVED * float(np.spacing(abs(t)) / max(np.min(self.plan.rtol), np.finfo(float).eps))

    def step_by_scale(self, end: float) -> float:
        """First step size at order 1, from the scale of the solution."""
        plan, limit = self.plan, abs(end - self._t)
        step = first_step_size(self._t, end, self.y0, self.yp0, plan.rtol, plan.atol, self.request.settings.max_step)
        return min(abs(step), limit)

    def left(self, earlier: list[Segment], end: float) -> dict[str, Any]:
        request = self.request
        if not earlier and end == request.span[1]:
            return {}
        changes: dict[str, Any] = {"t_span": (self._t, end)}
        if earlier:
            changes["first_step"] = None
        if end != request.span[1]:
            changes["t_stop"] = end
        if request.times is not None:
            ahead, before = request.sign * (request.times - self._t), request.sign * (request.times - end)
            changes["t_eval"] = request.times[((ahead > 0.0) | (not earlier)) & (before <= 0.0)]
        if request.settings.max_steps is not None:
            taken = sum(segment.outcome.steps for segment in earlier)
            changes["max_steps"] = max(request.settings.max_steps - taken, 1)  # 0 would mean no limit
        return changes

    def continues(self, segment: Segment) -> bool:
        ready, workspace, method = self.ready, self.workspace, self.choice.method
        if not self.choice.continues(segment):
            return False
        outcome = segment.outcome
        if outcome.steps:
            self._t, self.y0, self.yp0 = outcome.t_reached, outcome.y_reached, ready.slope()
        self.plan.give_back(method, ready, workspace)
        self._take()
        return True

    def task(self, switching, progress: Progress, **changes) -> Task:
        """The task of the method from the start to the end; segments override some values."""
        plan, request, settings = self.plan, self.request, self.request.settings
        values: dict[str, Any] = {
            "t_span": request.span,
            "y0": self.y0,
            "yp0": self.yp0,
            "rtol": plan.rtol,
            "atol": plan.atol,
            "t_eval": request.times,
            "max_steps": settings.max_steps,
            "first_step": settings.first_step,
            "max_step": settings.max_step,
            "t_stop": request.t_stop,
            "fixed_step": settings.fixed_step,
            "dense": keeps_dense_output(request, plan.implicit.n),
            "excluded": self.excluded,
            "index_2": self.excluded is not None and self._automatic,
            "watch": self.choice.watch(),
        }
        return Task(**(values | changes), switching=switching, progress=progress)


def _finite_slope(plan: FirstOrderPlan, t0: float, y0: np.ndarray) -> np.ndarray:
    """f at the start, which must be finite."""
    assert plan.ordinary is not None
    slope = plan.ordinary.slope(t0, y0)
    if not np.isfinite(slope).all():
        i = int(np.flatnonzero(~np.isfinite(slope))[0])
        raise NotFiniteError(
            f"f is not finite at the initial values (t = {t0:g}): the derivative of {plan.names[i]} is {slope[i]}"
        )
    return slope


def _excluded(plan: FirstOrderPlan, t0: float, y0: np.ndarray, yp0) -> np.ndarray | None:
    """Mask of the components excluded from the error test."""
    implicit, choice = plan.implicit, plan.method.error_test
    if not isinstance(choice, str):
        return plan.method.excluded(implicit)
    if choice == "auto":
        problem = plan.semi_explicit
        return None if problem is None or constraint_determines_z(problem, t0, y0) else implicit.algebraic
    if choice == "all":
        return None
    return algebraic_variables(implicit, t0, y0, np.zeros(implicit.n) if yp0 is None else yp0)


def constraint_determines_z(problem: SemiExplicitDAE, t0: float, x0: np.ndarray) -> bool:
    """Whether dg/dz appears nonsingular (index 1): every row of g depends on z and, for few z, the rank is full.

    Also true if g cannot be evaluated on either side of z.
    """
    y, z, many = x0[: problem.n_y], x0[problem.n_y :], problem.n_z > 100
    base = problem.constraint(t0, y, z)
    step = 1e-6 * np.maximum(1.0, np.abs(z))
    shifts = [np.where(np.arange(problem.n_z) % 2, 1.0, 0.7) * step] if many else np.diag(step)
    changes = [_change_of_constraint(problem, t0, y, z, shift, base) for shift in shifts]
    if any(change is None for change in changes):
        return True
    if many:
        return bool(np.all(changes[0] != 0.0))
    matrix = np.array(changes) / step[:, None]
    largest = np.max(np.abs(matrix), axis=0)
    if np.any(largest == 0.0):
        return False
    return int(np.linalg.matrix_rank(matrix / largest, tol=1e-8)) == problem.n_z


def _change_of_constraint(problem: SemiExplicitDAE, t, y, z, shift, base) -> np.ndarray | None:
    """g(t, y, z + shift) - g(t, y, z), or the opposite difference if that is undefined; None if both are."""
    for sign in (1.0, -1.0):
        try:
            change = sign * (problem.constraint(t, y, z + sign * shift) - base)
        except Exception:  # g may raise any exception outside its domain
            continue
        if np.isfinite(change).all():
            return change
    return None


def check_signs(plan: FirstOrderPlan, y0: np.ndarray):
    """Check that nonnegative variables are nonnegative at the start, up to the tolerance."""
    if plan.nonnegative is None:
        return
    negative = np.flatnonzero(plan.nonnegative & (y0 < -plan.atol))
    if negative.size:
        i = int(negative[0])
        raise InvalidProblemError(
            f"{plan.names[i]} = {y0[i]:g} is negative at the start, although it is declared nonnegative"
        )


def _start_of_fixed_steps(problem, workspace, span, y0, yp0, weights):
    """Initial values for constant steps: given values unchanged, and an unknown y'_0 computed if possible."""
    start = np.zeros(y0.size) if yp0 is None else yp0
    check_start(problem, workspace, span[0], y0, start)
    if yp0 is None and np.all(weights > 0.0):
        result = complete(workspace, span[0], y0, start, 1e-6 * (span[1] - span[0]), weights)
        if result.converged:
            start = result.yp
    return y0, start
