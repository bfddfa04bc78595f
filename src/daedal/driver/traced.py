"""A run with functions that are machine code, held against the user's own functions."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from copy import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from daedal.common.messages import warn
from daedal.common.tabular import FunctionTable
from daedal.driver.request import Request, Settings
from daedal.errors import DaedalError, IntegrationError
from daedal.initial.mechanical import split_mechanical
from daedal.kernels.functions import CodedFunction
from daedal.mechanics.sparse.assembly import is_sparse
from daedal.problems import HessenbergDAE, LinearDAE, MechanicalSystem, SecondOrderDAE, SemiExplicitDAE
from daedal.problems.compile import with_numbers
from daedal.solution.constrained_solution import ConstrainedSolution
from daedal.symbolic.tracing import DerivativeWarning, StatefulFunctionWarning, SwitchWarning, TraceWarning
from daedal.symbolic.tracing.agreement import (
    Disagreement,
    beside,
    disagreement,
    infinite_derivatives,
    irregular_derivatives,
    wrong_entry,
)
from daedal.symbolic.tracing.modal import Moded
from daedal.symbolic.tracing.problem import traced_problem, untraced_words
from daedal.symbolic.tracing.stateful import stateful_words
from daedal.symbolic.tracing.switched import SwitchedProblem, switched_problem
from daedal.symbolic.tracing.tracer import TracedProblem

_SAME_BRANCH = 1e-3  # part of the terms of an equation by which two branches may differ next to a surface
_MOST_STRETCHES = 100  # that are looked at
_SHARES = (1e-2, -3e-2)  # of the sizes of the variables, for the points beside the start


@dataclass
class _Seen:
    """What plans of one problem with different parameters know together."""

    compared: bool = False  # whether code and functions were compared at a start
    refuted: bool = False  # whether they differed anywhere: the functions are called from then on
    runs: int = 0


class TracedPlan:
    """A plan for machine code, and one for the functions as they are, for when they disagree.

    Parameters
    ----------
    problem : object
        As the user stated it.
    settings : Settings
    make : callable
        ``make(problem, settings)``, a plan that calls functions as they are given.
    """

    def __init__(self, problem: Any, settings: Settings, make: Callable[[Any, Settings], Any]):
        self.problem, self.settings, self._make = problem, settings, make
        self.as_stated = True  # and not in other unknowns
        self.traced: TracedProblem | None = None
        if settings.compile != "never":
            self.traced = traced_problem(problem, settings.compile, _linear_solver(settings))
        self._untraced = untraced_words(problem)
        self._sparse: bool | None = None
        self._plans: dict[Any, Any] = {}  # by the derivatives that are left out; None is for functions as they are
        self._switched: list[SwitchedProblem | None] = []  # one, once it is known
        self._seen = _Seen()
        self._infinite: tuple[Any, tuple[str, ...]] = None, ()  # the last start, and what was infinite there
        self._plan(() if self.traced is not None and self.traced.functions else None)

    @property
    def _irregular(self) -> tuple[str, ...]:
        """Derivatives that can be infinite, among them those that were made on demand."""
        return () if self.traced is None else irregular_derivatives(self.traced)

    @property
    def inner(self) -> Any:
        """The plan for machine code, or for the functions as they are where there is none."""
        return self._plan(() if self.traced is not None and self.traced.functions else None)

    def is_current(self) -> bool:
        """Whether the functions read the same from outside as when they were traced."""
        if self.traced is not None:
            return self.traced.is_current(self.problem.params)
        return all(f.is_current() for f in vars(self.problem).values() if hasattr(f, "is_current"))

    def with_problem(self, problem: Any) -> TracedPlan | None:
        """The plan for the same problem with other parameters, or None if it must be made anew."""
        if self.traced is not None and not self.traced.is_current(problem.params):
            return None  # another structure, or something outside has changed
        other = copy(self)
        other.problem = problem
        other._plans = {}
        for key, plan in self._plans.items():
            shared = getattr(plan, "with_problem", None)
            if shared is None:
                return None
            params = problem.params
            if isinstance(plan.problem.params, Moded):
                params = plan.problem.params.fresh(params)
            other._plans[key] = shared(with_numbers(plan.problem, params) if key is not None else problem)
        return other

    def direct(self) -> Any | None:
        """The plan of every run, where none needs a look at its start, or switches that are followed; else None."""
        traced = self.traced
        if traced is None or not traced.functions or self._irregular or self._seen.refuted:
            return None
        if traced.layout is not None and traced.layout.fixed:
            return None
        if self.settings.switches != "never" and self.switched is not None:
            return None
        return self._plan(())

    def machine_system(self) -> MechanicalSystem | None:
        """The mechanism whose functions are all machine code, where a run would use them; else None."""
        plan = self.direct() if isinstance(self.problem, MechanicalSystem) else None
        coded = plan is not None and all(
            isinstance(f, CodedFunction) for f in vars(plan.problem).values() if callable(f)
        )
        return plan.problem if plan is not None and coded else None

    def solve(self, request: Request):
        """Solve with machine code; where it turns out to differ from the functions, with these."""
        traced = self.traced
        for name, reason in {} if traced is None else traced.refused.items():
            if reason.memory:
                warn(stateful_words(name, getattr(self.problem, name, None), reason), StatefulFunctionWarning)
        if traced is None or not traced.functions or self._is_sparse(request):
            words = self._untraced if traced is None or traced.functions else self._words(())
            return self._told(self._plan(None).solve(request), words)
        if self._seen.refuted:
            return self._told(self._plan(None).solve(request), self._untraced)
        found, left_out = self._look_at_start(request)
        if found is not None:
            return self._repeated(request, found)
        try:
            solution = self._solve(left_out, request)
        except IntegrationError as error:
            found = self._compare_along(request, error.solution)
            if found is None:
                return self._without_irregular(request, left_out, error)
        else:
            found = self._compare_along(request, solution)
            if found is None:
                return self._told(solution, self._words(left_out))
        return self._repeated(request, found)

    def _without_irregular(self, request: Request, left_out: tuple[str, ...], error: IntegrationError):
        """After a failure: once more with differences for derivatives that can be infinite; else the failure stands."""
        if self._irregular and left_out != self._irregular:
            with suppress(IntegrationError):
                return self._told(self._plan(self._irregular).solve(request), self._words(self._irregular))
        self._told(error.solution, self._words(left_out))
        raise error

    # --- comparison -------------------------------------------------------------------------------------------------

    def _look_at_start(self, request: Request) -> tuple[Disagreement | None, tuple[str, ...]]:
        """Whether code and functions differ there, and the derivatives that are infinite; the last answer is kept."""
        traced, irregular = self.traced, self._irregular
        if traced is None or (self._seen.compared and not irregular):
            return None, ()
        numbers = None if traced.layout is None else traced.layout.numbers(self.problem.params).tobytes()
        at = irregular, numbers, request.span[0], _bits(request.initial)
        known, infinite = self._infinite  # read once: other threads may write it
        if self._seen.compared and at[-1] is not None and known == at:
            return None, infinite
        start = _start(self.problem, request)
        found = None if start is None else self._compare_at_start(*start)
        if start is None or found is not None or not irregular:
            return found, ()
        infinite = infinite_derivatives(traced, self.problem.params, *start)
        self._infinite = at, infinite
        return None, infinite

    def _compare_at_start(self, t: float, point: dict[str, Any]) -> Disagreement | None:
        if self._seen.compared:
            return None
        assert self.traced is not None
        for at in (point, *(beside(point, share) for share in _SHARES)):
            found = disagreement(self.traced, self.traced.functions, self.problem.params, t, at)
            if found is not None:
                return found
        self._seen.compared = True
        wrong = wrong_entry(self.traced, self.problem, t, beside(point, _SHARES[0]))
        if wrong is not None:
            warn(
                f"jacobian is not the derivative of the equations near t = {t:.6g}: {wrong} (dF/dy + cj dF/dy' and its "
                "kin, all factors 1). It is used as it is. Remedy: correct it, or leave it out, then it is computed",
                DerivativeWarning,
            )
        return None

    def _compare_along(self, request: Request, solution) -> Disagreement | None:
        """At a few points of the solution; what functions read from outside must not have changed meanwhile.

        Functions are called in the runs number 1, 2, 4, 8, ... of a plan: in a study of parameters they would take
        longer than the runs themselves.
        """
        assert self.traced is not None
        if solution is None:
            return None
        seen = self._seen
        seen.runs += 1
        if self.traced.plain and seen.runs & (seen.runs - 1) == 0:
            for t, point in _points(self.problem, solution):
                found = disagreement(self.traced, self.traced.plain, self.problem.params, t, point)
                if found is not None:
                    return found
        if (self.traced.refused or request.settings.events is not None) and not self.is_current():
            return Disagreement("something that the functions read from outside", None, float(request.span[1]))
        return None

    def _repeated(self, request: Request, found: Disagreement):
        self._seen.refuted = True
        warn(
            f"{found} is not what it was when the functions were traced. The run is repeated with the functions as "
            "they are, and so are all later ones; compile='never' does so at once",
            TraceWarning,
        )
        return self._told(self._plan(None).solve(request), self._untraced)

    # --- plans ------------------------------------------------------------------------------------------------------

    def _solve(self, left_out: tuple[str, ...], request: Request):
        """With the switches followed if there are any; where that fails, with the functions as they are written."""
        settings = request.settings
        switched = None if settings.switches == "never" or settings.fixed_step is not None else self.switched
        if switched is None:
            return self._plan(left_out).solve(request)
        from daedal.driver.switching import Follower, Unfollowable

        base = self._plan(left_out, followed=True)
        moded = base.problem.params.fresh(self.problem.params)
        plan = base.with_problem(with_numbers(base.problem, moded))
        follower, failure = Follower(switched, moded, request), None
        try:
            solution = plan.solve(request, follower)
            if self._took_its_branches(switched, follower, solution):
                solution.slides_from = follower.first_slide
                return solution
        except Unfollowable as reason:
            warn(f"switches are not followed: {reason}", SwitchWarning)
        except DaedalError as error:  # it may come from the switches, or be raised again
            if follower.stopped:
                raise
            failure = error
        solution = self._plan(left_out).solve(request)
        if failure is not None:
            first = str(failure).splitlines()[0].split(". ")[0].rstrip(".")
            warn(f"switches are not followed, since that run stopped: {first}", SwitchWarning)
        return solution

    def _took_its_branches(self, switched: SwitchedProblem, follower: Any, solution: Any) -> bool:
        """Whether the functions in the modes of a stretch are within it what they are as written.

        They are not where a switching function stays on its surface, and the function there is that of neither side.
        """
        sign = follower.request.sign
        begins = [t for t, _, _ in follower.history]
        for (begin, modes, along), end in zip(follower.history[:_MOST_STRETCHES], [*begins[1:], np.inf * sign]):
            inside = np.flatnonzero((sign * (solution.t - begin) > 0.0) & (sign * (solution.t - end) < 0.0))
            if along or not inside.size:
                continue
            places = {int(inside[inside.size * k // 4]) for k in (1, 2, 3)}
            if not any(self._is_as_written(switched, modes, solution, i) for i in places):
                return False
        return True

    def _is_as_written(self, switched: SwitchedProblem, modes: np.ndarray, solution: Any, i: int) -> bool:
        t, point = _point(self.problem, solution, i)
        written = Moded(self.problem.params, modes.size)
        taken = written.fresh(self.problem.params)
        taken.modes[:] = modes
        for name, function in switched.traced.functions.items():
            arrays = [point[argument] for argument in switched.traced.arguments[name]]
            scaled = [np.multiply(a, 1.0 + _SAME_BRANCH) for a in arrays]
            (status, one), (other_status, other) = (function.evaluate(t, *arrays, p) for p in (written, taken))
            terms = np.abs(function.evaluate(t, *scaled, taken)[1] - other)  # times _SAME_BRANCH
            if status == other_status == 0 and np.any(np.abs(one - other) > terms):
                return False
        return True

    @property
    def switched(self) -> SwitchedProblem | None:
        """The problem with its switches set by data; None where there are none, or too many."""
        if not self._switched:
            traced, found = self.traced, None
            if traced is not None and traced.n_switches:
                found = switched_problem(self.problem, traced, self.settings.compile, _linear_solver(self.settings))
            if found is not None:
                found.switches = [replace(one, text=named_variables(one.text, self.problem)) for one in found.switches]
            self._switched.append(found)
        return self._switched[0]

    def _plan(self, left_out: tuple[str, ...] | None, followed: bool = False):
        key = (left_out, "followed") if followed else left_out
        if key not in self._plans:
            problem = self.problem
            if left_out is not None:
                source = self.switched.traced if followed and self.switched else self.traced
                assert source is not None
                problem = _without(source.problem, left_out)
            self._plans[key] = self._make(problem, self.settings)
        return self._plans[key]

    def _is_sparse(self, request: Request) -> bool:
        """Whether the matrices of a mechanism are sparse, which its functions tell."""
        if self._sparse is None:
            mechanism = isinstance(self.problem, MechanicalSystem)
            self._sparse = mechanism and is_sparse(self.problem, request.span[0], request.initial)
        return self._sparse

    def _words(self, left_out: tuple[str, ...]) -> FunctionTable:
        assert self.traced is not None
        differenced = {name: "differences: the derivative is infinite somewhere" for name in left_out}
        return FunctionTable(self._untraced | self.traced.words | differenced)

    def _told(self, solution, functions: FunctionTable):
        if solution is not None:
            solution.functions = functions
            if isinstance(solution, ConstrainedSolution):
                solution.as_stated(self.problem)
        return solution


class SemiExplicitPlan:
    """A plan for a linear problem that is solved as it was stated: for x' = f, 0 = g, its coefficients within f and g.

    Their matrix is exact where they can be traced; where not, it is put together from the coefficients in Python.
    """

    def __init__(self, problem: LinearDAE, settings: Settings, make: Callable[[Any, Settings], Any]):
        stated = problem.semi_explicit()
        self._plan = TracedPlan(replace(stated, jacobian=None), settings, make)
        if self._plan.traced is None or "jacobian" not in self._plan.traced.derivatives:
            self._plan = TracedPlan(stated, settings, make)

    def is_current(self) -> bool:
        """Whether the coefficients read the same from outside as when they were traced."""
        return self._plan.is_current()

    def solve(self, request: Request):
        """Solve the problem in f and g."""
        return self._plan.solve(request.changed(problem=self._plan.problem))


def _without(problem: Any, names: tuple[str, ...]) -> Any:
    """The problem without some of its derivatives."""
    if not names:
        return problem
    if isinstance(problem, SemiExplicitDAE):
        from daedal.problems.semi_explicit import adopt_stacked

        other = copy(problem)
        adopt_stacked(other, _without(problem.implicit(), names))
    else:
        other = copy(problem)
        for name in (*names, "straight_line"):  # which has the derivatives in it
            object.__setattr__(other, name, None)
    return other


def _linear_solver(settings: Settings) -> Any:
    """The user's choice, by name or as an option of the method."""
    return settings.options.get("linear_solver", getattr(settings.method, "linear_solver", "auto"))


# --- points -----------------------------------------------------------------------------------------------------------


def _start(problem: Any, request: Request) -> tuple[float, dict[str, Any]] | None:
    """Where the run starts, as arguments of functions by name; None if the values are refused, by the run itself."""
    try:
        if isinstance(problem, MechanicalSystem):
            q, v, r, w = split_mechanical(request.initial)
            parts = {"q": (q, problem.n_q), "v": (v, problem.n_q), "r": (r, problem.n_r), "w": (w, problem.n_w)}
            parts |= {"lam": (None, problem.n_lambda), "a": (None, problem.n_q)}
        elif isinstance(problem, (HessenbergDAE, LinearDAE)):  # coefficients depend on nothing but the time
            parts = {}
        elif isinstance(problem, SemiExplicitDAE):
            y, z = request.initial
            parts = {"y": (y, problem.n_y), "z": (z, problem.n_z), "xp": (None, problem.n)}
        else:
            first, second = request.initial
            names = ("x", "xp", "xpp") if isinstance(problem, SecondOrderDAE) else ("y", "yp")
            parts = {name: (None, problem.n) for name in names} | {
                names[0]: (first, problem.n),
                names[1]: (second, problem.n),
            }
        vectors = {name: _vector(values, n) for name, (values, n) in parts.items()}
    except (TypeError, ValueError):
        return None
    return request.span[0], vectors | _FACTORS


_FACTORS = {"cj": 1.0, "c1": 1.0, "c2": 1.0}


def _bits(initial: Any) -> list | None:
    """Initial values as something that can be compared; None if they are not vectors of floats."""
    known = isinstance(initial, (tuple, list))
    if not known or not all([x is None or (type(x) is np.ndarray and x.dtype == np.float64) for x in initial]):
        return None
    return [None if x is None else (x.shape, x.tobytes()) for x in initial]


def _vector(values: Any, n: int) -> np.ndarray:
    vector = np.zeros(n) if values is None else np.array(values).reshape(-1)
    if np.iscomplexobj(vector):
        raise ValueError
    vector = vector.astype(float)
    if vector.size != n or not np.isfinite(vector).all():
        raise ValueError
    return vector


def _points(problem: Any, solution: Any) -> Iterator[tuple[float, dict[str, Any]]]:
    """The middle and the end of a solution, as arguments of functions by name."""
    count = solution.t.size
    for i in sorted({count // 2, count - 1}) if count else ():
        yield _point(problem, solution, i)


def _point(problem: Any, solution: Any, i: int) -> tuple[float, dict[str, Any]]:
    """One point of a solution."""
    point: dict[str, Any]
    if isinstance(problem, MechanicalSystem):
        state, n = solution.integrated[i], problem.n_q
        further = {"w": np.ones(problem.n_w), "lam": np.ones(problem.n_lambda)}
        point = {"q": state[:n], "v": state[n : 2 * n], "r": state[2 * n :], **further}
    elif isinstance(problem, (HessenbergDAE, LinearDAE)):
        point = {}
    elif isinstance(problem, SemiExplicitDAE):
        y = solution.y[:, i]
        point = {"y": y[: problem.n_y], "z": y[problem.n_y :], "xp": _slope(solution, i)}
    elif isinstance(problem, SecondOrderDAE):
        point = dict(zip(("x", "xp", "xpp"), solution.split(i)))
    else:
        point = {"y": solution.y[:, i], "yp": _slope(solution, i)}
    point["cj"] = point["c1"] = point["c2"] = 1.0
    return float(solution.t[i]), point


def _slope(solution: Any, i: int) -> np.ndarray:
    """y' at one point, without all others where it is computed only now."""
    single = getattr(solution, "slope", None)
    return solution.yp[:, i] if single is None else single(i)


def named_variables(text: str, problem: Any) -> str:
    """A condition in words, with the names that the user gave to variables: ``level < 1`` for ``y[0] < 1``."""
    if getattr(problem, "names", None) is None:
        return text
    first = {"q": 0, "v": getattr(problem, "n_q", 0), "y": 0, "z": getattr(problem, "n_y", 0), "x": 0}

    def label(found: re.Match[str]) -> str:
        place = first[found[1]] + int(found[2])
        return str(problem.label(place)) if place < problem.n else found[0]

    return re.sub(r"\b([qvyzx])\[(\d+)\]", label, text)
