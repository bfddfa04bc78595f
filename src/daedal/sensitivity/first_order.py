"""Sensitivities of first-order problems: the variational equations are integrated beside the problem.

Newton's matrix of both is block triangular with equal blocks on its diagonal. DASSL and Radau do without the others:
one factorisation serves all, and what is neglected is nilpotent (Maly and Petzold's simultaneous corrector). Rosenbrock
methods need the whole matrix; their steps are straight-line code, which eliminates each block once. Explicit and
half-explicit methods take the equations in the form of :mod:`daedal.sensitivity.explicit`.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from daedal.analysis.thresholds import SHARPEST_IN_ONE
from daedal.driver.any_index import ReducedForm
from daedal.driver.first_order import FirstOrderPlan, FirstOrderRunState
from daedal.driver.first_order_choice import is_automatic
from daedal.driver.request import Request, SensitivityRequest, Settings
from daedal.driver.stages import Plan
from daedal.driver.traced import linear_solver_of
from daedal.errors import IntegrationError, InvalidProblemError
from daedal.initial.structure import partials_of
from daedal.methods import named_method
from daedal.problems import ImplicitDAE, SemiExplicitDAE
from daedal.problems.checks import check_tolerances
from daedal.problems.compile import with_numbers
from daedal.sensitivity.differences import differenced_problem
from daedal.sensitivity.explicit import ExplicitForm
from daedal.sensitivity.parameters import Column, columns_of, given_starts, scales, with_floats
from daedal.sensitivity.result import Sensitivities
from daedal.sensitivity.start import consistent_sensitivities, sensitivities_of_array
from daedal.sensitivity.variational import Variational, variational_problem
from daedal.solution.solution import DenseOutput, Solution
from daedal.symbolic import Untraceable
from daedal.symbolic.tracing.first_order import traced_implicit
from daedal.symbolic.tracing.problem import traced_problem

UNTESTED = 1e100
"""An absolute tolerance that everything meets, for methods whose error test takes no mask."""
_LARGEST_STEP_IN_ONE = 24  # unknowns, sensitivities included, of Rosenbrock steps that are one piece of machine code


@dataclass
class Kept:
    """What is made in the first run and serves all plans that differ in the values of the parameters alone."""

    plan: Any = None
    problem: Any = None  # the variational equations as machine code
    explicit: ExplicitForm | None = None  # the same for explicit and half-explicit methods


class FirstOrderSensitivity(Plan):
    """A plan for a problem with its variational equations.

    Parameters
    ----------
    problem : ImplicitDAE or SemiExplicitDAE
    settings : Settings
        With what is wanted as `sensitivities`.
    make_plan : callable
        ``make_plan(problem, settings)``, for the problem without sensitivities.
    columns : list of Column, optional
        What is differentiated by, where others have found out.
    """

    modes: np.ndarray | None = None  # of the switches, where they are set

    def __init__(
        self,
        problem: ImplicitDAE | SemiExplicitDAE,
        settings: Settings,
        make_plan: Any,
        columns: list[Column] | None = None,
    ):
        self.problem = with_floats(problem)
        self.settings, self._make_plan = settings, make_plan
        assert settings.sensitivities is not None
        self.wanted: SensitivityRequest = settings.sensitivities
        self._bare = with_corrector(replace(settings, sensitivities=None), self.wanted)
        if settings.fixed_step is not None and settings.formulation == "auto":
            self._bare = replace(self._bare, formulation="none")
        self.primal = make_plan(self.problem, self._bare)
        self.columns = columns_of(self.wanted, self.problem) if columns is None else columns
        self.names = tuple(column.name for column in self.columns)
        self.starts = np.zeros((len(self.columns), problem.n))
        if columns is None:
            self.starts = given_starts(self.wanted, self.columns, problem.n)
        self.variational: Variational = self._make_variational()
        self._kept = Kept()
        self._judged: ReducedForm | None = None  # what the start has asked for

    # --- plans ------------------------------------------------------------------------------------------------------

    def _make_variational(self) -> Variational:
        if self._bare.compile != "never":
            try:
                return variational_problem(self.problem, self.columns)
            except Untraceable:
                if self._bare.compile == "always":
                    raise
        return differenced_problem(self.problem, self.columns)

    @property
    def stands(self) -> bool:
        """Whether the problem is solved as it stands, not in other unknowns."""
        return self.primal.as_stated

    @property
    def m(self) -> int:
        """How many sensitivities there are."""
        return len(self.columns)

    def is_current(self) -> bool:
        """Whether the functions read the same from outside as when they were traced."""
        layout = self.variational.layout
        if layout is not None and not layout.fits(self.problem.params):
            return False
        return self.variational.dependencies.are_unchanged() and self.primal.is_current()

    def with_problem(self, problem: Any) -> FirstOrderSensitivity | None:
        """The plan for the same problem with other parameters, or None if it must be made anew."""
        problem = with_floats(problem)
        layout = self.variational.layout
        shared = self.primal.with_problem(problem)
        if layout is None or not layout.fits(problem.params) or shared is None:
            return None
        other = copy(self)
        other.problem, other.primal = problem, shared
        if not self.variational.is_exact:
            other.variational, other._kept = differenced_problem(problem, self.columns), Kept()
        return other

    def _takes_copies(self) -> bool:
        """Whether one matrix serves the problem and its sensitivities, which the method decides."""
        bare, total = self._bare, self.variational.problem.n
        if not is_automatic(bare):
            return self._method.takes_copies
        sharp = float(np.min(bare.rtol)) < SHARPEST_IN_ONE
        return total > _LARGEST_STEP_IN_ONE or sharp or bare.fixed_step is not None or not self.variational.is_exact

    def _plan(self, settings: Settings) -> Any:
        """The plan for the variational equations, for the tolerances of one run."""
        if self._judged is not None:
            return self._judged.enlarged(self.numbered(self.variational.problem), 1 + self.m, settings)
        if not self.stands:
            return self._make_plan(self.numbered(self.variational.problem), settings)
        kept = self._kept
        if kept.plan is None:
            problem = self.traced_problem() if self.explicit is None else self._traced_explicit(self.explicit)
            kept.plan = FirstOrderPlan(problem, replace(settings, formulation="none"), self._wishes())
            _ = kept.plan.names  # of all unknowns, once for all runs
        plan = kept.plan.with_problem(self.numbered(kept.plan.problem))
        plan.rtol, plan.atol = check_tolerances(plan.problem.n, settings.rtol, settings.atol)
        plan.sharpest = float(np.min(plan.rtol))
        return plan

    def traced_problem(self) -> ImplicitDAE:
        """The variational equations as machine code, with the matrix that the method takes."""
        if self._kept.problem is None:
            problem = self.variational.problem
            if self._takes_copies():
                object.__setattr__(problem, "copies", 1 + self.m)
            if self.variational.is_exact:
                problem = traced_implicit(problem, linear_solver_of(self._bare), always=True).problem
            self._kept.problem = problem
        return self._kept.problem

    @property
    def explicit(self) -> ExplicitForm | None:
        """The variational equations for a method that does not take residuals."""
        if is_automatic(self._bare) or self._method.works_on("residual"):
            return None
        if self._kept.explicit is None:
            if isinstance(self.problem, SemiExplicitDAE) and not self.variational.is_exact:
                raise InvalidProblemError(
                    f"sensitivities by {type(self._method).__name__} need exact derivatives of the constraints, and "
                    "functions cannot be traced, or compile='never' was given: use method='dassl' or 'radau'"
                )
            self._kept.explicit = ExplicitForm(self.problem, self.variational)
        return self._kept.explicit

    @property
    def is_half_explicit(self) -> bool:
        """Whether stages impose the constraints."""
        return self.explicit is not None and isinstance(self.problem, SemiExplicitDAE)

    def _traced_explicit(self, form: ExplicitForm) -> Any:
        traced = traced_problem(form.problem, "always") if self.variational.is_exact else None
        return form.problem if traced is None else traced.problem

    @property
    def _method(self) -> Any:
        """The method that was asked for, DASSL where options of it were."""
        return named_method("dassl" if self._bare.method == "auto" else self._bare.method, self._bare.options)

    def partials(self, t: float, y: np.ndarray, yp: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """dF/dy' and dF/dy of the problem itself."""
        found = self.primal.inner.implicit.exact_partials(t, y, yp) if self.stands else None
        return partials_of(self.problem.implicit(), t, y, yp) if found is None else found

    def _wishes(self) -> dict[str, Any]:
        if self.wanted.control:
            return {}
        return {"error_test": np.arange(self.variational.problem.n) < self.problem.n}

    def numbered(self, problem: Any) -> Any:
        """A problem with the parameters of this plan, as numbers, and the modes of its switches."""
        if problem.params is None:  # differences know the parameters themselves
            return problem
        return with_numbers(problem, self.with_modes(self.variational.numbers(self.problem.params)))

    def with_modes(self, numbers: np.ndarray | None) -> np.ndarray | None:
        """Numbers of the parameters, and after them the modes of the switches."""
        return numbers if self.modes is None else np.append([] if numbers is None else numbers, self.modes)

    def on_branches(self) -> FirstOrderSensitivity:
        """The plan of a problem whose switches are set, to begin with to none of their branches."""
        other = copy(self)
        other.variational = variational_problem(self.problem, self.columns, follow=self.primal.traced.n_switches)
        other.modes, other._kept = np.full(len(other.variational.switches), np.nan), Kept()
        return other

    # --- a run ------------------------------------------------------------------------------------------------------

    def solve(self, request: Request) -> Solution:
        """Integrate the problem with its sensitivities; with events, the problem first, to know where they are."""
        bare = replace(request, problem=self.problem, settings=replace(request.settings, sensitivities=None))
        judged = self.primal.judged(bare)
        if (
            judged is not None and judged.form is not None
        ):  # the start asks for other unknowns, in the variational equations as well
            other = copy(self)
            other.primal, other._judged = judged, judged.form
            return other.solve(request)
        if self._may_jump(bare):
            from daedal.sensitivity.events import solve_through_events

            return solve_through_events(self, bare)
        return self.stretch(bare, *self.start(bare), self.starts)

    def _may_jump(self, request: Request) -> bool:
        """Whether events or switches interrupt the run."""
        traced = self.primal.traced
        switches = traced is not None and traced.n_switches and request.settings.switches != "never"
        return request.settings.events is not None or bool(switches)

    def start(self, request: Request) -> tuple[np.ndarray, np.ndarray]:
        """Consistent y0 and y0', as the problem without sensitivities begins."""
        t0 = request.span[0]
        if self.stands:
            plan = self.primal.inner
            run_state = FirstOrderRunState(plan, replace(request, problem=plan.problem))
            y0, yp0 = run_state.y0, run_state.yp0
            run_state.give_back()
            return np.array(y0), np.array(yp0)
        from daedal.initial.consistent import consistent_initial, split_initial

        y0, yp0 = split_initial(self.problem, request.initial)
        return consistent_initial(self.problem.implicit(), t0, (y0, yp0))

    def stretch(self, request: Request, y0: np.ndarray, yp0: np.ndarray, s0: np.ndarray) -> Solution:
        """The solution with its sensitivities from a consistent start, over an interval in which nothing jumps."""
        t0, initial = request.span[0], request.initial
        settings = self._tolerances(with_corrector(request.settings, self.wanted), y0)
        problem = self.numbered(self.variational.problem)
        if self._judged is None:
            s, sp = consistent_sensitivities(self, problem, t0, y0, yp0, s0)
        else:
            s, sp = sensitivities_of_array(problem, t0, y0, yp0, s0, self._judged.order)
        slopes: np.ndarray | None = np.concatenate([yp0, sp.ravel()])
        if initial[1] is None and self._begins_with_slopes():
            slopes = None
        initial = np.concatenate([y0, s.ravel()]), slopes
        form = self.explicit
        if form is not None:
            problem, initial = self.numbered(form.problem), form.started(initial[0])
            settings = self._explicit_tolerances(form, settings)
        inner = replace(request, problem=problem, initial=initial, settings=settings)
        try:
            found = self._plan(settings).solve(inner)
        except IntegrationError as error:
            if error.solution is not None:
                error.solution = self._split(error.solution, s)
            raise
        return self._split(found, s)

    # --- as a mode of a hybrid problem ------------------------------------------------------------------------------

    def slope(self, t: float, y: np.ndarray, sign: float) -> np.ndarray:
        """y' of a state."""
        initial = (y[: self.problem.n_y], y[self.problem.n_y :]) if self._is_semi_explicit else (y, None)
        settings = replace(self._bare, events=None, correct_initial=True)
        end = t + sign * max(1e-3, 1e-3 * abs(t))
        return self.start(Request(self.problem, settings, (t, end), initial, t_stop=end))[1]

    @property
    def _is_semi_explicit(self) -> bool:
        return isinstance(self.problem, SemiExplicitDAE)

    def from_total(self, request: Request, y0: np.ndarray, total: np.ndarray, tau: np.ndarray) -> Solution:
        """A stretch from d(state)/dp at a start whose time depends on p as well, with the derivatives `tau`."""
        y0, yp0 = self.start(request)
        return self.stretch(request, y0, yp0, total - np.outer(tau, yp0))

    def stacked(self, solution: Solution) -> np.ndarray:
        """All sensitivities of a solution, (m, n, nt)."""
        return solution.sensitivities.values

    def _begins_with_slopes(self) -> bool:
        return not is_automatic(self._bare) and self._method.begins_with_slopes

    def _tolerances(self, settings: Settings, y0: np.ndarray) -> Settings:
        """Sensitivities have the relative tolerance of their variable, and its absolute one over the parameter."""
        n, m = self.problem.n, self.m
        rtol, atol = check_tolerances(n, settings.rtol, settings.atol)
        numbers = self.variational.numbers(self.problem.params)
        sizes = scales(self.columns, np.zeros(0) if numbers is None else numbers, y0)
        own = atol / sizes[:, None]
        return replace(
            settings,
            rtol=np.tile(rtol, 1 + m),
            atol=np.concatenate([atol, own.ravel()]),
            switches="never",
            correct_initial=False,
        )

    def _explicit_tolerances(self, form: ExplicitForm, settings: Settings) -> Settings:
        """Those of the form; without a mask, sensitivities are left out of the error test by their tolerance."""
        rtol, atol = np.array(settings.rtol), np.array(settings.atol)
        if not self.wanted.control:
            n, share = self.problem.n, 1.0 / np.sqrt(1.0 + self.m)  # what is left out counts in mean squares
            rtol[:n], atol[:n], atol[n:] = share * rtol[:n], share * atol[:n], UNTESTED
        return replace(settings, rtol=form.own(rtol), atol=form.own(atol))

    def _split(self, found: Solution, starts: np.ndarray) -> Solution:
        """The solution of the problem itself, which holds its sensitivities."""
        n, m, nt = self.problem.n, self.m, found.t.size
        if self.explicit is not None:
            found = self.explicit.in_order(found)
        semi_explicit = isinstance(self.problem, SemiExplicitDAE)
        dense = found.dense
        sensitivities = Sensitivities(
            self.names,
            found.t,
            np.ascontiguousarray(found.y[n:].reshape(m, n, nt)),
            np.ascontiguousarray(found.yp[n:].reshape(m, n, nt)),
            None if dense is None else _columns(dense, slice(n, None)),
            starts,
        )
        solution = Solution(
            t=found.t,
            y=np.ascontiguousarray(found.y[:n]),
            yp=np.ascontiguousarray(found.yp[:n]),
            success=found.success,
            status=found.status,
            message=" ".join([found.message, *self.notes]),
            stats=found.stats,
            names=tuple(self.problem.label(i) for i in range(n)),
            method=found.method,
            drift=found.drift,
            events=found.events,
            history=found.history,
            dense=None if dense is None else _columns(dense, slice(0, n)),
            n_differential=self.problem.n_y if semi_explicit else None,
            functions=self.words,
        )
        solution.sensitivities = sensitivities
        return solution

    @property
    def words(self) -> Any:
        """How functions and their derivatives were evaluated."""
        traced = self.primal.traced
        words = {} if traced is None else dict(traced.words)
        from daedal.common.tabular import FunctionTable

        exact = self.variational.is_exact
        return FunctionTable(words | {"sensitivities": "exact derivatives" if exact else "differences"})

    @property
    def notes(self) -> list[str]:
        """What there is to say about the sensitivities."""
        notes = []
        idle = [self.names[k] for k in self.variational.idle if not self.starts[k].any()]
        if idle:
            notes.append(f"{', '.join(idle)} does not occur in the equations: the sensitivity is zero.")
        if not self.variational.is_exact:
            notes.append("Sensitivities were computed with difference quotients, since functions could not be traced.")
        return notes


def with_corrector(settings: Settings, wanted: SensitivityRequest) -> Settings:
    """Settings whose method finds sensitivities in the way that is wanted, as a step of DASSL or Radau can."""
    if wanted.corrector in ("auto", "simultaneous"):
        return settings
    automatic = isinstance(settings.method, str) and settings.method == "auto"
    method = named_method("dassl" if automatic else settings.method, settings.options)
    if not method.takes_copies:
        raise InvalidProblemError(
            f"sensitivity_method='{wanted.corrector}' is for 'dassl' and 'radau', not for {type(method).__name__}"
        )
    return replace(settings, method=replace(method, corrector=wanted.corrector), options={})


def _columns(dense: DenseOutput, part: slice) -> DenseOutput:
    return replace(dense, coefficients=np.ascontiguousarray(dense.coefficients[:, part]))
