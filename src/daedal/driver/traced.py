"""Plans with machine code, verified against the user's functions."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import suppress
from copy import copy
from dataclasses import dataclass, replace
from math import inf
from typing import Any

import numpy as np

from daedal.common.messages import warn
from daedal.common.tabular import FunctionTable
from daedal.driver.plan_stages import Plan
from daedal.driver.request import Request, Settings
from daedal.driver.run_points import bits_of, point_of, points_of, start_of
from daedal.errors import (
    DaedalError,
    DerivativeWarning,
    IntegrationError,
    InvalidProblemError,
    StatefulFunctionWarning,
    SwitchWarning,
    TraceWarning,
)
from daedal.kernels.functions import CodedFunction
from daedal.mechanics.sparse.sparse_workspace import is_sparse
from daedal.problems import LinearDAE, MechanicalSystem, SemiExplicitDAE
from daedal.problems.compile import with_numbers
from daedal.solution.constrained_solution import ConstrainedSolution
from daedal.symbolic.tracing.agreement import (
    Disagreement,
    beside,
    disagreement,
    infinite_derivatives,
    irregular_derivatives,
    jump_words,
    stateful_words,
    wrong_entry,
)
from daedal.symbolic.tracing.function import SwitchedParams
from daedal.symbolic.tracing.problem import traced_problem, untraced_words
from daedal.symbolic.tracing.switched import SwitchedProblem, switched_problem

_SAME_BRANCH = 1e-3  # fraction of the terms of an equation by which its values on two branches may differ
_BRIEF = 1e-9  # fraction of the interval: on shorter arcs, round-off determines the sign of a switching function
_NEAR = 1e-13  # fraction of the time within which a point counts as the end of an arc, where either branch may apply
_MOST_ARCS = 100  # largest number of arcs that are checked
_SHARES = (
    1e-2,
    -3e-2,
)  # displacements from the start of the points that are checked, relative to the sizes of the variables
_LONG = 2000  # number of steps from which every run is checked at two points, which then costs at most a few percent


@dataclass
class _Findings:
    """Results of checks of machine code, shared by plans with different parameters."""

    compared: bool = False  # whether the code was checked at a start
    held: bool = False  # whether the code was checked along a run
    refuted: bool = False  # whether a difference was found, so that the functions are called instead


class Form(ABC):
    """Another form of a problem, solved instead of the original equations."""

    @abstractmethod
    def solve(self, plan: TracedPlan, request: Request) -> Any:
        """The solution of a request, in the unknowns of the plan's problem."""

    @abstractmethod
    def with_problem(self, plan: TracedPlan, numbers: np.ndarray) -> Form | None:
        """The form for a plan with other parameters, or None if it must be rebuilt."""


class TracedPlan(Plan):
    """A plan with machine code, and another that calls the functions if code and functions disagree.

    Parameters
    ----------
    problem : object
        The problem as given by the user.
    settings : Settings
    make : callable
        ``make(problem, settings)`` returns a plan that calls the given functions.
    """

    form: Form | None = None

    def __init__(self, problem: Any, settings: Settings, make: Callable[[Any, Settings], Any]):
        self.problem, self.settings, self._make = problem, settings, make
        if settings.compile != "never":
            self.traced = traced_problem(problem, settings.compile, linear_solver_of(settings))
        self._untraced, self._traced_params = untraced_words(problem), problem.params
        self._sparse: bool | None = None
        self._plans: dict[Any, Any] = {}  # keyed by the omitted derivatives; None for the original functions
        self._switched: list[SwitchedProblem | None] = []  # empty, or the result of `switched`
        self._findings = _Findings()
        # the last start, and the derivatives that are infinite there
        self._infinite: tuple[Any, tuple[str, ...]] = None, ()
        self._plan(() if self.traced is not None and self.traced.functions else None)

    def in_form(self, form: Form) -> TracedPlan:
        """A plan that solves the problem in another form."""
        if getattr(self.problem, "invariants", None) is not None:
            raise InvalidProblemError(
                "invariants are imposed on problems of index 0 and 1, but this one has a higher index or is singular. "
                "Remedy: omit invariants, or reduce the problem by hand to index 1"
            )
        other = copy(self)
        other.form, other.as_stated = form, False
        return other

    @property
    def _irregular(self) -> tuple[str, ...]:
        """Names of derivatives that can be infinite; none if the problem is solved in another form."""
        return () if self.traced is None or self.form is not None else irregular_derivatives(self.traced)

    @property
    def inner(self) -> Any:
        return self._plan(() if self.traced is not None and self.traced.functions else None)

    def is_current(self) -> bool:
        if self.traced is not None:
            return self.traced.is_current(self.problem.params)
        return all(f.is_current() for f in vars(self.problem).values() if hasattr(f, "is_current"))

    def with_problem(self, problem: Any) -> TracedPlan | None:
        """The plan for the same problem with other parameters, or None if it must be rebuilt."""
        traced = self.traced
        if traced is not None and not traced.is_current(problem.params):
            return None
        other = copy(self)
        other.problem = problem
        other._plans = {}
        for key, plan in self._plans.items():
            params = problem.params
            if isinstance(plan.problem.params, SwitchedParams):
                params = plan.problem.params.fresh(params)
            shared = plan.with_problem(with_numbers(plan.problem, params) if key is not None else other._original())
            if shared is None:
                return None
            other._plans[key] = shared
        if self.form is not None:
            if traced is None or traced.layout is None:
                return None
            other.form = self.form.with_problem(other, traced.layout.numbers(problem.params))
            return None if other.form is None else other
        return other

    def direct(self, irregular: bool = False) -> Any | None:
        """The plan of the method, if all runs use it without checks of the start or tracking of switches; or None."""
        traced = self.traced
        if traced is None or not traced.functions or self._findings.refuted:
            return None
        if self._irregular and not irregular:
            return None
        if self.form is not None or (traced.layout is not None and traced.layout.fixed):
            return None
        if self.settings.switches != "never" and self.switched is not None:
            return None
        return self._plan(())

    def machine_system(self) -> MechanicalSystem | None:
        plan = self.direct() if isinstance(self.problem, MechanicalSystem) else None
        coded = plan is not None and all(
            isinstance(f, CodedFunction) for f in vars(plan.problem).values() if callable(f)
        )
        return plan.problem if plan is not None and coded else None

    def solve(self, request: Request):
        """Solve with machine code, or with the original functions if code and functions differ."""
        traced = self.traced
        if self.form is not None and (traced is None or not traced.functions):
            return self._described(self.form.solve(self, request), self._untraced)
        if traced is not None and traced.refused:
            self._warn_of_refused(request)
        if traced is None or not traced.functions or self._is_sparse(request):
            words = self._untraced if traced is None or traced.functions else self._words(())
            return self._described(self._plan(None).solve(request), words)
        if self._findings.refuted:
            return self._described(self._plan(None).solve(request), self._untraced)
        found, left_out = self._check_start(request)
        if found is not None:
            return self._repeated(request, found)
        try:
            if self.form is None:
                solution = self.solve_as_given(request, left_out)
            else:
                solution = self.form.solve(self, request)
        except IntegrationError as error:
            found = self._compare_along(request, error.solution)
            if found is None:
                return self._without_irregular(request, left_out, error)
        else:
            found = self._compare_along(request, solution)
            if found is None:
                return self._described(solution, self._words(left_out))
        return self._repeated(request, found)

    def _warn_of_refused(self, request: Request):
        assert self.traced is not None
        for name, reason in self.traced.refused.items():
            if reason.memory:
                warn(stateful_words(name, getattr(self.problem, name, None), reason), StatefulFunctionWarning)
            elif reason.jumps and request.settings.switches != "never" and request.settings.max_step == inf:
                interval = abs(request.span[1] - request.span[0])
                warn(jump_words(name, getattr(self.problem, name, None), reason, interval), SwitchWarning)

    def _without_irregular(self, request: Request, left_out: tuple[str, ...], error: IntegrationError):
        """Repeat a failed run with differences for derivatives that can be infinite; if that fails, raise `error`."""
        if self._irregular and left_out != self._irregular:
            with suppress(IntegrationError):
                solution = self._plan(self._irregular).solve(request)
                add_note(solution, "A first run, with exact derivatives that can be infinite, stopped.")
                return self._described(solution, self._words(self._irregular))
        self._described(error.solution, self._words(left_out))
        raise error

    # --- comparison -------------------------------------------------------------------------------------------------

    def _check_start(self, request: Request) -> tuple[Disagreement | None, tuple[str, ...]]:
        """The disagreement of code and functions at the start, and the names of infinite derivatives there."""
        traced, irregular = self.traced, self._irregular
        if traced is None or (self._findings.compared and not irregular):
            return None, ()
        numbers = None if traced.layout is None else traced.layout.numbers(self.problem.params).tobytes()
        at = irregular, numbers, request.span[0], bits_of(request.initial)
        known, infinite = self._infinite  # read once: other threads may write it
        if self._findings.compared and at[-1] is not None and known == at:
            return None, infinite
        start = start_of(self.problem, request)
        found = None if start is None else self._compare_at_start(*start)
        if start is None or found is not None or not irregular:
            return found, ()
        if isinstance(self.problem, SemiExplicitDAE) and request.initial[1] is None:  # z is only a guess
            return found, ()
        infinite = infinite_derivatives(traced, self.problem.params, *start)
        self._infinite = at, infinite
        return None, infinite

    def _compare_at_start(self, t: float, point: dict[str, Any]) -> Disagreement | None:
        if self._findings.compared:
            return None
        assert self.traced is not None
        for at in (point, *(beside(point, share) for share in _SHARES)):
            found = disagreement(self.traced, self.traced.functions, self.problem.params, t, at)
            if found is not None:
                return found
        self._findings.compared = True
        wrong = wrong_entry(self.traced, self.problem, t, beside(point, _SHARES[0]))
        if wrong is not None:
            warn(
                f"jacobian is not the derivative of the equations near t = {t:.6g}: {wrong}, in dF/dy + cj dF/dy' or "
                "the corresponding matrix with all factors equal to 1. It is used unchanged. Remedy: correct "
                "jacobian, or omit it to have it computed",
                DerivativeWarning,
            )
        return None

    def _compare_along(self, request: Request, solution) -> Disagreement | None:
        """The disagreement of code and functions at two points of a solution, or a changed global value; None if none.

        Points are checked in the first run and in later long runs; in the short runs of a parameter study, the check
        would take longer than the runs.
        """
        assert self.traced is not None
        if solution is None:
            return None
        if self.traced.plain and solution.t.size and (not self._findings.held or solution.stats.steps >= _LONG):
            self._findings.held = True
            for t, point in points_of(self.problem, solution):
                found = disagreement(self.traced, self.traced.plain, self.problem.params, t, point)
                if found is not None:
                    return found
        if (self.traced.refused or request.settings.events is not None) and not self.is_current():
            return Disagreement("a captured or global value", None, float(request.span[1]))
        return None

    def _repeated(self, request: Request, found: Disagreement):
        self._findings.refuted = True
        warn(
            f"{found} has changed since the functions were traced. The run is repeated with the original "
            "functions, which all later runs use too. Remedy: pass compile='never' to use them from the start",
            TraceWarning,
        )
        return self._described(self._plan(None).solve(request), self._untraced)

    # --- as given -----------------------------------------------------------------------------------------------

    def solve_as_given(self, request: Request, left_out: tuple[str, ...] = ()):
        """Solve the problem as given: track its switches or, if that fails, use the original functions."""
        settings = request.settings
        switched = None if settings.switches == "never" or settings.fixed_step is not None else self.switched
        if switched is None:
            return self._plan(left_out).solve(request)
        from daedal.driver.switch_tracking import SwitchTracker, Unfollowable

        base = self._plan(left_out, followed=True)
        moded = base.problem.params.fresh(self.problem.params)
        plan = base.with_problem(with_numbers(base.problem, moded))
        tracker, failure, note = SwitchTracker(switched, moded, request), None, ""
        try:
            solution = plan.solve(request, tracker)
            left_at = self._leaves_its_branches(switched, tracker, solution)
            if left_at is None:
                solution.slides_from = tracker.first_slide
                return solution
            note = (
                f"Hidden switches are not tracked, since a first run left the branches of the original functions at "
                f"t = {left_at:.6g}."
            )
            warn(note, SwitchWarning)
        except Unfollowable as reason:
            warn(f"switches are not tracked: {reason}", SwitchWarning)
        except DaedalError as error:  # may be caused by the switches
            if tracker.stopped:
                raise
            failure = error
        solution = self._plan(left_out).solve(request)
        if failure is not None:
            first = str(failure).splitlines()[0].split(". ")[0].rstrip(".")
            warn(f"switches are not tracked, since a run that tracked them stopped: {first}", SwitchWarning)
        return add_note(solution, note) if note else solution

    def _leaves_its_branches(self, switched: SwitchedProblem, tracker: Any, solution: Any) -> float | None:
        """A time at which the functions in the modes of an arc differ from the original ones; None if there is none.

        They differ if a switching function stays on its surface, where the original value is that of neither side.
        """
        sign, (t0, t1) = tracker.request.sign, tracker.request.span
        brief, near = _BRIEF * abs(t1 - t0), _NEAR * max(abs(t0), abs(t1))
        ahead, begins = sign * solution.t, [t for t, _, _ in tracker.history]
        for (begin, modes, along), end in zip(tracker.history[:_MOST_ARCS], [*begins[1:], t1]):
            first = int(np.searchsorted(ahead, sign * begin + near, side="right"))
            size = int(np.searchsorted(ahead, sign * end - near, side="left")) - first
            if along or size <= 0 or abs(end - begin) <= brief:
                continue
            places = sorted({first + size * k // 4 for k in (1, 2, 3)})
            if not any(self._is_as_written(switched, modes, solution, i) for i in places):
                return float(solution.t[first + size // 2])
        return None

    def _is_as_written(self, switched: SwitchedProblem, modes: np.ndarray, solution: Any, i: int) -> bool:
        t, point = point_of(self.problem, solution, i)
        written = SwitchedParams(self.problem.params, modes.size)
        taken = written.fresh(self.problem.params)
        taken.modes[:] = modes
        for name, function in switched.traced.functions.items():
            arrays = [point[argument] for argument in switched.traced.arguments[name]]
            scaled = [np.multiply(a, 1.0 + _SAME_BRANCH) for a in arrays]
            (status, one), (other_status, other) = (function.evaluate(t, *arrays, p) for p in (written, taken))
            terms = np.abs(function.evaluate(t, *scaled, taken)[1] - other)  # sizes of the terms times _SAME_BRANCH
            if status == other_status == 0 and np.any(np.abs(one - other) > terms):
                return False
        return True

    @property
    def switched(self) -> SwitchedProblem | None:
        """The problem with modes as parameters; None if it has no switches, or too many."""
        if not self._switched:
            traced, found = self.traced, None
            if traced is not None and traced.n_switches:
                found = switched_problem(self.problem, traced, self.settings.compile, linear_solver_of(self.settings))
            if found is not None:
                found.switches = [replace(one, text=named_variables(one.text, self.problem)) for one in found.switches]
            self._switched.append(found)
        return self._switched[0]

    def _plan(self, left_out: tuple[str, ...] | None, followed: bool = False):
        key = (left_out, "followed") if followed else left_out
        if key not in self._plans:
            problem = self._original()
            if left_out is not None:
                source = self.switched.traced if followed and self.switched else self.traced
                assert source is not None
                problem = _without(source.problem, left_out)
                # plans that track switches receive their parameters later
                if self.problem.params is not self._traced_params and not followed:
                    problem = with_numbers(problem, self.problem.params)
            self._plans[key] = self._make(problem, self.settings)
        return self._plans[key]

    def _original(self) -> Any:
        """The problem with its original functions, and the sparsity of a residual that is too long for machine code."""
        if self.traced is None or not self.traced.structure or self._findings.refuted:
            return self.problem
        problem = copy(self.problem)
        for name, value in self.traced.structure.items():
            object.__setattr__(problem, name, value)
        return problem

    def _is_sparse(self, request: Request) -> bool:
        """Whether the functions of a mechanism return sparse matrices."""
        if self._sparse is None:
            mechanism = isinstance(self.problem, MechanicalSystem)
            self._sparse = mechanism and is_sparse(self.problem, request.span[0], request.initial)
        return self._sparse

    def _words(self, left_out: tuple[str, ...]) -> FunctionTable:
        assert self.traced is not None
        differenced = {name: "differences: the derivative is infinite somewhere" for name in left_out}
        return FunctionTable(self._untraced | self.traced.words | differenced)

    def _described(self, solution, functions: FunctionTable):
        if solution is not None:
            solution.functions = functions
            if isinstance(solution, ConstrainedSolution):
                solution.as_stated(self.problem)
        return solution


class RestatedPlan(Plan):
    """A plan for a linear problem solved as given: x' = f, 0 = g, with coefficients in f and g.

    The matrix is exact if the coefficients can be traced; otherwise it is assembled from them in Python.
    """

    def __init__(self, problem: LinearDAE, settings: Settings, make: Callable[[Any, Settings], Any]):
        stated = problem.semi_explicit()
        self.problem = problem
        self._plan = TracedPlan(replace(stated, jacobian=None), settings, make)
        if self._plan.traced is None or "jacobian" not in self._plan.traced.derivatives:
            self._plan = TracedPlan(stated, settings, make)

    def is_current(self) -> bool:
        """Whether captured data of the coefficients are unchanged since they were traced."""
        return self._plan.is_current()

    def solve(self, request: Request):
        return self._plan.solve(request.changed(problem=self._plan.problem))


def add_note(solution: Any, note: str) -> Any:
    """Append a sentence to the message of a solution."""
    solution.message = f"{solution.message} {note}"
    return solution


def _without(problem: Any, names: tuple[str, ...]) -> Any:
    if not names:
        return problem
    if isinstance(problem, SemiExplicitDAE):
        from daedal.problems.semi_explicit import adopt_stacked

        other = copy(problem)
        adopt_stacked(other, _without(problem.implicit(), names))
    else:
        other = copy(problem)
        for name in (*names, "straight_line"):  # the straight-line code contains the derivatives
            object.__setattr__(other, name, None)
    return other


def linear_solver_of(settings: Settings) -> Any:
    """The linear solver chosen by the user, as an option or as an attribute of the method."""
    return settings.options.get("linear_solver", getattr(settings.method, "linear_solver", "auto"))


def named_variables(text: str, problem: Any) -> str:
    """A condition with the user's variable names: ``level < 1`` for ``y[0] < 1``."""
    if getattr(problem, "names", None) is None:
        return text
    first = {"q": 0, "v": getattr(problem, "n_q", 0), "y": 0, "z": getattr(problem, "n_y", 0), "x": 0}

    def label(found: re.Match[str]) -> str:
        place = first[found[1]] + int(found[2])
        return str(problem.label(place)) if place < problem.n else found[0]

    return re.sub(r"\b([qvyzx])\[(\d+)\]", label, text)
