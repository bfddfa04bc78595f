"""Problems that are solved as they stand: F(t, y, y') = 0, semi-explicit ones, and linear ones made implicit."""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from daedal.analysis.endings import fixed_step_failed
from daedal.drive.event_view import switching_functions
from daedal.drive.finish import delivered, ending, joined_history, joined_outcome, joined_statistics, until_the_end
from daedal.drive.request import Request, Settings
from daedal.drive.run import LARGEST_KEPT, Course, Segment, keeps_dense_output, run
from daedal.errors import InvalidProblemError, Unevaluable
from daedal.formulations.linear_reduction import first_order
from daedal.initial.consistent import check_start, complete, prepare_initial, split_initial
from daedal.initial.structure import algebraic_variables
from daedal.initial.unknown_z import evaluable_guesses
from daedal.kernels.endings import Ending
from daedal.methods import named_method
from daedal.methods.step_size import first_step_size
from daedal.methods.task import Equations, Task
from daedal.methods.workspace import Workspace
from daedal.problems import ImplicitDAE, LinearDAE, SemiExplicitDAE
from daedal.problems.checks import check_tolerances
from daedal.problems.compile import with_numbers
from daedal.progress import Progress
from daedal.solution import Solution, Statistics

_MOST_RUNS = 4  # kept for their next use
_SETTLED = 10  # steps with which a multistep method finds its order
_UNRESOLVED = 10.0  # tolerances that the interpolation of variables outside of the error test may err in silence


class FirstOrderPlan:
    """What does not depend on the start: method, tolerances, and runs that are made ready once and used again."""

    def __init__(
        self, problem: ImplicitDAE | SemiExplicitDAE, settings: Settings, wishes: dict[str, Any] | None = None
    ):
        if settings.formulation not in ("auto", "none", None):
            raise InvalidProblemError(
                f"unknown formulation {settings.formulation!r}; first-order problems take 'auto' or 'none'"
            )
        self.problem, self.implicit = problem, problem.implicit()
        self.semi_explicit = problem if isinstance(problem, SemiExplicitDAE) else None
        self.method = _checked_method(settings, self.semi_explicit is not None)
        if wishes:
            self.method = self.method.with_wishes(wishes)
        self.rtol, self.atol = check_tolerances(problem.n, settings.rtol, settings.atol)
        keeps_sign = self.method.nonnegative is not False
        self.nonnegative: Any = self.method.nonnegative_mask(self.implicit) if keeps_sign else None
        self.equations = Equations(self.implicit.n, problem=self.implicit, semi_explicit=self.semi_explicit)
        self._runs: list = []

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the unknowns."""
        return tuple(self.problem.label(i) for i in range(self.problem.n))

    def with_problem(self, problem) -> FirstOrderPlan:
        """The plan for the same problem with other parameters; what is ready is shared."""
        other = copy(self)
        other.problem, other.implicit = problem, with_numbers(self.implicit, problem.params)
        other.semi_explicit = None if self.semi_explicit is None else problem
        other.equations = replace(self.equations, problem=other.implicit, semi_explicit=other.semi_explicit)
        return other

    def solve(self, request: Request, follower=None) -> Solution:
        """Begin, run, finish; `follower` knows the switches of the equations."""
        ready, workspace = self._take()
        if follower is None:
            course = FirstOrderCourse(self, request, ready, workspace)
        else:
            from daedal.drive.switched_first_order import SwitchedCourse

            course = SwitchedCourse(self, request, ready, workspace, follower)
        segments, excluded = run(course, request), course.excluded
        if len(self._runs) < _MOST_RUNS and ready.reusable and self.implicit.n <= LARGEST_KEPT:
            self._runs.append((ready, workspace))
        del course, ready, workspace  # of a large problem nothing but its output is left
        notes = [] if follower is None else follower.notes
        return delivered(_finished(self, request, segments, excluded, notes), segments)

    def _take(self) -> tuple[Any, Workspace]:
        """A run that is ready and a workspace for the search of initial values, for the caller alone."""
        try:
            ready, workspace = self._runs.pop()
            if ready.equations is not self.equations:
                workspace.adopt(self.implicit)
                ready.adopt(self.equations)
            workspace.begin()
        except IndexError:
            ready = self.method.prepare(self.equations)
            workspace = ready.workspace or Workspace(self.implicit)
        return ready, workspace

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_runs": []}


class LinearPlan:
    """Linear problems: rewritten where they start, then solved like any other of first order."""

    def __init__(self, problem: LinearDAE, settings: Settings):
        self.problem = problem

    def solve(self, request: Request) -> Solution:
        """Rewrite, then solve."""
        settings = request.settings
        problem, initial, wishes = first_order(self.problem, settings.formulation, request.span[0], request.initial)
        inner = replace(settings, formulation="none")
        plan = FirstOrderPlan(problem, inner, wishes)
        return plan.solve(replace(request, problem=problem, settings=inner, initial=initial))


def _checked_method(settings: Settings, semi_explicit: bool):
    """A method for first-order problems."""
    if isinstance(settings.method, type):
        raise InvalidProblemError(f"method must be a name or a method object such as DASSL(), got {settings.method!r}")
    method = "dassl" if isinstance(settings.method, str) and settings.method == "auto" else settings.method
    chosen = named_method(method, settings.options)
    if chosen.works_on("residual") or (semi_explicit and chosen.works_on("semi_explicit")):
        return chosen
    if chosen.works_on("semi_explicit"):
        raise InvalidProblemError(
            "half-explicit methods need constraints that can be told from the differential equations: state the "
            "problem as a MechanicalSystem or as a SemiExplicitDAE of index 2, or use method='dassl'"
        )
    if chosen.works_on("second_order"):
        raise InvalidProblemError(
            f"{type(chosen).__name__} is for equations of second order: state the problem as a SecondOrderDAE or a "
            "MechanicalSystem, or use method='dassl'"
        )
    raise InvalidProblemError(
        f"{type(chosen).__name__} is for ordinary differential equations y' = f(t, y), such as forms of a "
        "MechanicalSystem; use method='dassl'"
    )


class FirstOrderCourse(Course):
    """One run, in one segment."""

    def __init__(self, plan: FirstOrderPlan, request: Request, ready, workspace: Workspace):
        self.plan, self.request, self.ready, self.workspace = plan, request, ready, workspace
        try:
            self._begin()
        except Unevaluable as error:
            functions = "f or g" if plan.semi_explicit is not None else "residual"
            message = f"{functions} cannot be evaluated at the initial values (t = {request.span[0]:g}): {error}"
            raise InvalidProblemError(message.rstrip(": ")) from error

    def _begin(self):
        """Consistent initial values."""
        plan, request, settings = self.plan, self.request, self.request.settings
        problem, span, workspace = plan.problem, request.span, self.workspace
        y0, yp0 = split_initial(problem, request.initial)
        unknown_z = plan.semi_explicit is not None and request.initial[1] is None
        if plan.semi_explicit is not None and unknown_z:
            y0 = next(evaluable_guesses(plan.semi_explicit, span[0], y0))
        self.excluded = _excluded(plan, span[0], y0, yp0)
        choice = plan.method.error_test
        self._automatic = isinstance(choice, str) and choice == "auto"
        weights = plan.rtol * np.abs(y0) + plan.atol
        if settings.fixed_step is None:
            trial = request.sign * (settings.first_step or 0.0) or first_step_size(
                *span, y0, np.zeros(y0.size) if yp0 is None else yp0, plan.rtol, plan.atol, settings.max_step
            )
            self.y0, self.yp0 = prepare_initial(
                problem, workspace, span[0], y0, yp0, weights, trial, settings.correct_initial, self.excluded, unknown_z
            )
        else:
            self.y0, self.yp0 = _start_of_fixed_steps(problem, workspace, span, y0, yp0, weights)

    @property
    def t(self) -> float:
        return self.request.span[0]

    def segment(self, earlier: list[Segment], progress: Progress) -> Segment:
        plan, request = self.plan, self.request
        switching = None
        if request.settings.events is not None:
            switching = switching_functions(request, plan.problem, request.span[0], self.y0, self.yp0)
        if plan.nonnegative is not None:
            _check_signs(plan, self.y0)
        searched = self.workspace.counts()
        outcome = self.ready.integrate(self.task(switching, progress))
        outcome.counts += searched
        return Segment(plan.equations, outcome, plan.method, None)

    def task(self, switching, progress: Progress, **changes) -> Task:
        """What the method is to do, from the start to the end; a part of the run has other values of some."""
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
        }
        return Task(**(values | changes), switching=switching, progress=progress)


def _excluded(plan: FirstOrderPlan, t0: float, y0: np.ndarray, yp0) -> np.ndarray | None:
    """The components that the method's error test leaves out."""
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
    """Whether dg/dz looks nonsingular (index 1): every row of g must respond to z, and for few z the rank is checked.

    Where g cannot be evaluated on either side of z, it is taken to be so.
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
    """g(t, y, z + shift) - g(t, y, z), or the other way where g is not defined there; None if it is on neither side."""
    for sign in (1.0, -1.0):
        try:
            change = sign * (problem.constraint(t, y, z + sign * shift) - base)
        except Exception:  # beyond the boundary of its domain g may raise anything
            continue
        if np.isfinite(change).all():
            return change
    return None


def _check_signs(plan: FirstOrderPlan, y0: np.ndarray):
    """Values that are to be kept nonnegative must be so at the start, up to the tolerance."""
    negative = np.flatnonzero(plan.nonnegative & (y0 < -plan.atol))
    if negative.size:
        i = int(negative[0])
        raise InvalidProblemError(
            f"{plan.names[i]} = {y0[i]:g} is negative at the start, although it is to be kept nonnegative"
        )


def _start_of_fixed_steps(problem, workspace, span, y0, yp0, weights):
    """The start of constant steps: taken as it is, an unknown y'_0 completed where that is possible."""
    start = np.zeros(y0.size) if yp0 is None else yp0
    check_start(problem, workspace, span[0], y0, start)
    if yp0 is None and np.all(weights > 0.0):
        result = complete(workspace, span[0], y0, start, 1e-6 * (span[1] - span[0]), weights)
        if result.converged:
            start = result.yp
    return y0, start


# --- the end ----------------------------------------------------------------------------------------------------------


def _finished(plan: FirstOrderPlan, request: Request, segments: list[Segment], excluded, notes) -> Solution:
    segment, outcome = segments[-1], joined_outcome(request, segments)
    stats = joined_statistics(request, segments)

    def explain() -> str:
        from daedal.analysis.diagnosis import diagnose

        step = request.settings.fixed_step
        if step is not None and outcome.failure.code == Ending.NEWTON_FAILED:
            return fixed_step_failed(outcome.failure, step)
        return diagnose(plan.implicit, outcome.failure, request.remedies_taken)

    success, status, message = ending(request, segments, explain)
    if status == "finished":
        message += _complaint(stats) + _between_steps(plan, outcome, excluded)
    message = " ".join([message, *notes])
    problem = plan.semi_explicit
    return Solution(
        t=outcome.t,
        y=outcome.y,
        yp=outcome.yp,
        success=success,
        status=status,
        message=message,
        stats=stats,
        names=plan.names,
        method=plan.method.title,
        drift=None if problem is None else {"constraint": _constraint_drift(problem, outcome)},
        events=outcome.events,
        history=joined_history(segments),
        dense=until_the_end(request, outcome.dense, segment),
        n_differential=None if problem is None else problem.n_y,
    )


def _complaint(stats: Statistics) -> str:
    """A warning for runs that came through, but only just; always where attempts failed more often than not."""
    if stats.rejected <= stats.steps and (stats.steps < 1000 or stats.rejected < 0.3 * stats.steps):
        return ""
    return (
        f" But {stats.rejected} attempts were rejected beside {stats.steps} accepted steps: look for variables of "
        "index 2 or higher (then error_test='differential'), discontinuities (then events) or too small an atol."
    )


def _between_steps(plan: FirstOrderPlan, outcome, excluded: np.ndarray | None) -> str:
    """A hint where the steps do not resolve what the error test has left out: no test controls its interpolation.

    The polynomial of a step, continued to the end of the next one, misses the value there by a difference of order
    k + 1; of that the next polynomial, of degree k, errs by 1/(8k) in the middle of its step, if steps are equal.
    """
    dense = outcome.dense
    if excluded is None or dense is None or not plan.method.needs_past or dense.ends.size < _SETTLED:
        return ""
    left_out = np.flatnonzero(excluded) if excluded.dtype == bool else np.asarray(excluded)
    if left_out.size == 0:
        return ""
    steps = np.arange(_SETTLED - 2, dense.ends.size - 1)
    predicted = dense.evaluate_steps(dense.ends[steps + 1], steps)[0][:, left_out]
    reached = dense.coefficients[dense.starts[steps + 1]][:, left_out]
    missed = np.abs(reached - predicted) / (8.0 * dense.orders[steps + 1])[:, None]
    ratio = missed / (plan.rtol[left_out] * np.max(np.abs(reached), axis=0) + plan.atol[left_out])
    step, i = np.unravel_index(np.argmax(ratio), ratio.shape)
    if not ratio[step, i] > _UNRESOLVED:
        return ""
    return (
        f" Between steps {plan.names[left_out[i]]} may be wrong by about {missed[step, i]:.1g} near "
        f"t = {dense.ends[steps[step] + 1]:.4g}: the error test leaves it out, and the steps are too long for its "
        "interpolation. Its values at the steps are not concerned (t_eval=None); for those in between take "
        "error_test='all', a max_step, or breakpoints at its kinks."
    )


def _constraint_drift(problem: SemiExplicitDAE, outcome) -> float:
    """Largest |g| over at most 200 of the output points; those where g cannot be evaluated are left out."""
    count, split = outcome.t.size, problem.n_y
    largest = np.nan
    for i in np.unique(np.linspace(0, count - 1, min(count, 200)).astype(int)):
        try:
            residual = problem.constraint(outcome.t[i], outcome.y[:split, i], outcome.y[split:, i])
        except Exception:  # the run is over, and nothing that happens here may lose it
            continue
        except KeyboardInterrupt:
            break
        largest = np.fmax(largest, np.max(np.abs(residual)))
    return float(largest)
