"""Plan and run of second-order DAEs, solved directly or in first-order form."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from daedal.analysis.wording import more_steps
from daedal.common.progress import Progress
from daedal.common.tabular import plural
from daedal.driver.event_view import EventView, switching_functions
from daedal.driver.finish import delivered, ending, joined_history, joined_statistics, until_the_end
from daedal.driver.first_order import FirstOrderPlan
from daedal.driver.plan_stages import Plan
from daedal.driver.request import Request, Settings
from daedal.driver.run_segments import Begun, PreparedSegment, RunState, Segment, keeps_dense_output, run
from daedal.errors import IntegrationError, InvalidProblemError, Unevaluable
from daedal.initial.second_order_start import (
    complete_start,
    error_weights,
    orders_at_start,
    split_second_order,
    tolerance_of_y,
)
from daedal.kernels.endings import Ending
from daedal.methods.named_methods import named_method
from daedal.methods.task import Equations, Task
from daedal.problems import SecondOrderDAE
from daedal.problems.checks import check_tolerances
from daedal.problems.second_order_form import SecondOrderForm, natural_form
from daedal.solution.solution import SecondOrderSolution
from daedal.solution.status import Status

_SHORTEST_SPAN = 1e-140
# rtol below which the first-order form is used, since round-off in second differences of positions matters
_SHARP = 3e-9
_LARGEST_CHECKED = 200  # number of variables up to which starts are checked for hidden constraints
_WRONG_JACOBIAN = [
    "Likely cause: the given jacobian is wrong, since it disagrees with finite differences of the residual.",
    "Remedy: correct jacobian, which must return dF/dx + c1 dF/dx' + c2 dF/dx'', or omit it.",
]


class SecondOrderPlan(Plan):
    """Plan for a second-order DAE: its checked method."""

    def __init__(self, problem: SecondOrderDAE, settings: Settings):
        if settings.formulation not in ("auto", "none", None):
            raise InvalidProblemError(
                f"formulation={settings.formulation!r} is for mechanisms: a SecondOrderDAE accepts 'auto', 'none' "
                "or an index reduction such as 'dummy_derivatives'. Define the mechanism as a MechanicalSystem "
                "to choose its formulation"
            )
        self.problem, method = problem, settings.method
        if isinstance(method, str) and method == "auto":
            sharp = np.min(settings.rtol) < _SHARP and settings.fixed_step is None and not settings.options
            method = "radau" if sharp else "modified_bdf"
        self.method = named_method(method, settings.options).for_second_order()
        if not (self.method.supports("second_order") or self.method.supports("residual")):
            raise InvalidProblemError(
                f"{type(self.method).__name__} cannot solve a SecondOrderDAE; use modified_bdf or collocation, or "
                "dassl for its first-order form. All of them solve a MechanicalSystem"
            )

    def solve(self, request: Request) -> SecondOrderSolution:
        run_state = _SecondOrderRunState(self, request)
        if not self.method.supports("second_order"):
            return run_state.through_first_order()
        return run_state.delivered(run(run_state, request))


class _SecondOrderRunState(RunState):
    """One run of a second-order DAE, in one segment."""

    def __init__(self, plan: SecondOrderPlan, request: Request):
        length = abs(request.span[1] - request.span[0])
        if length < _SHORTEST_SPAN:
            raise InvalidProblemError(
                f"t_span has the length {length:g}: squares of step sizes leave the range of floats; rescale the time"
            )
        self.request, self.method = request, plan.method
        x0, xp0, xpp0 = split_second_order(plan.problem, request.initial)
        problem, self._found = orders_at_start(plan.problem, request.span[0], x0, xp0)
        self.form = form = natural_form(problem)
        tolerances = (tolerance_of_y(form, getattr(request.settings, name), name) for name in ("rtol", "atol"))
        self.rtol, self.atol = check_tolerances(form.n, *tolerances)
        self.y0, self.yp0, self._known = self._start(x0, xp0, xpp0)
        if self._known and not np.any(problem.order == 1):
            self.form = replace(form, start_order=2)

    def _start(self, x0, xp0, xpp0) -> tuple[np.ndarray, np.ndarray, bool]:
        """y and y' at the start, and whether second derivatives are known."""
        form, request = self.form, self.request
        problem, t0, correct = form.problem, request.span[0], request.settings.correct_initial
        x, xp, xpp = x0, xp0, np.zeros(problem.n) if xpp0 is None else xpp0
        known = xpp0 is not None
        if problem.n <= _LARGEST_CHECKED or correct:
            weights = error_weights(form, x0, xp0, self.rtol, self.atol)
            length = request.span[1] - t0
            try:
                start = complete_start(problem, t0, x0, xp0, xpp0, length, weights, correct=correct)
            except Unevaluable as error:
                message = f"residual cannot be evaluated at the initial values (t = {t0:g}): {error}"
                raise InvalidProblemError(message.rstrip(": ")) from error
            if start.complete:
                x, xp, xpp, known = start.x, start.xp, start.xpp, True
        return np.concatenate([x, xp])[form.source], np.concatenate([xp, xpp])[form.source], known

    @property
    def t(self) -> float:
        return self.request.span[0]

    def delivered(self, segments: list[Segment]) -> SecondOrderSolution:
        return delivered(_finished(self, segments), segments)

    def prepared(self, earlier: list[Segment], progress: Progress) -> PreparedSegment:
        request, settings, form = self.request, self.request.settings, self.form
        order, n = form.problem.order, form.problem.n
        excluded = None
        if np.any(order > self._found):
            excluded = (order > self._found)[np.where(form.source < n, form.source, form.source - n)]
        task = Task(
            t_span=request.span,
            y0=self.y0,
            yp0=self.yp0,
            rtol=self.rtol,
            atol=self.atol,
            t_eval=request.times,
            switching=None if settings.events is None else switching_of_form(request, form, self.y0, self.yp0),
            max_steps=settings.max_steps,
            first_step=settings.first_step,
            max_step=settings.max_step,
            t_stop=request.t_stop,
            fixed_step=settings.fixed_step,
            dense=keeps_dense_output(request, form.n),
            progress=progress,
            excluded=excluded,
        )
        ready = self.method.prepare(Equations(form.n, second_order=form))
        return PreparedSegment(ready, task, lambda outcome: Segment(form, outcome, self.method, None), form)

    def through_first_order(self) -> SecondOrderSolution:
        """Solve the companion form by an implicit method, which computes y' if unknown."""
        form, request = self.form, self.request
        known = self._known or form.problem.n <= _LARGEST_CHECKED
        problem = form.problem.first_order()
        inner = request.changed(
            problem=problem,
            initial=(self.y0, self.yp0 if known else None),
            method=self.method,
            rtol=self.rtol,
            atol=self.atol,
            events=events_of_form(request, form, self.y0, self.yp0),
            options={},
        )
        try:
            return converted(form, FirstOrderPlan(problem, inner.settings).solve(inner))
        except Begun as begun:
            begun.carried_back = partial(converted, form)
            raise
        except IntegrationError as error:
            lines = [line for line in str(error).split("\n") if "daedal.SecondOrderDAE(" not in line]
            also = "Or" if any(line.startswith("Remedy") for line in lines) else "Remedy:"
            lines.append(
                f"{also} use method='modified_bdf' or 'collocation', which solve the problem directly; this was its "
                "first-order form."
            )
            message = "\n".join(lines)
            solution = converted(form, error.solution)
            solution.message = message
            raise IntegrationError(message, solution) from error


def switching_of_form(request: Request, form: SecondOrderForm, y0: np.ndarray, yp0: np.ndarray):
    """The user's events in x and x', as functions of y."""

    def recover(t, y, yp):
        return x_of(form, y), xp_of(form, y, yp)

    view, t = EventView(form.problem, form.problem.params), request.span[0]
    x0, xp0 = recover(t, y0, yp0)
    return switching_functions(request, view, t, x0, xp0, recover)


def events_of_form(request: Request, form: SecondOrderForm, y0: np.ndarray, yp0: np.ndarray):
    """The user's events as an event of a first-order problem in y; None if there are none."""
    functions = None if request.settings.events is None else switching_of_form(request, form, y0, yp0)
    if functions is None:
        return None
    from daedal.events.event import GuardEvent

    return GuardEvent(
        functions.evaluate,
        terminal=functions.terminal.tolist(),
        direction=functions.direction.tolist(),
        name=list(functions.names),
        inside=["extrema" if inside else "ends" for inside in functions.interior],
        touch=functions.touch.tolist(),
        location=[("roots", "monitoring", "auto")[place] for place in functions.location],
        delta=[None if np.isnan(delta) else delta for delta in functions.delta.tolist()],
        tol=[tolerance or None for tolerance in functions.tolerance.tolist()],
        held=functions.held,
    )


def x_of(form: SecondOrderForm, y: np.ndarray) -> np.ndarray:
    return form.split(y)[0]


def xp_of(form: SecondOrderForm, y: np.ndarray, yp: np.ndarray) -> np.ndarray:
    xp, slope = form.split(y)[1], form.split(yp)[0]
    return np.where(form.problem.order == 2, xp, slope)


def converted(form: SecondOrderForm, solution) -> SecondOrderSolution:
    """Convert the solution of a first-order problem in y to one of the second-order problem."""
    fields = {name: getattr(solution, name) for name in solution.__dataclass_fields__}
    return SecondOrderSolution(order=form.problem.order, source=form.source, **fields)


def _finished(run_state: _SecondOrderRunState, segments: list[Segment]) -> SecondOrderSolution:
    request, form, method = run_state.request, run_state.form, run_state.method
    [segment] = segments
    outcome = segment.outcome
    success, status, message = ending(request, segments, lambda: explain(request, form, method, outcome.failure))
    return SecondOrderSolution(
        order=form.problem.order,
        source=form.source,
        t=outcome.t,
        y=outcome.y,
        yp=outcome.yp,
        success=success,
        status=Status(status),
        message=message,
        stats=joined_statistics(request, segments),
        names=form.names,
        method=method.title,
        events=outcome.events,
        history=joined_history(segments),
        dense=until_the_end(request, outcome.dense, segment),
    )


def explain(request: Request, form: SecondOrderForm, method, failure) -> str:
    """Message with the cause of failure and a remedy."""
    causes, failure = _causes(form, failure)
    what, remedy = {
        Ending.ZERO_WEIGHT: (
            f"{form.label(max(failure.component, 0))} and its atol are zero, which allows no error",
            f"set atol of {form.label(max(failure.component, 0))} to the largest error that does not matter; "
            "atol may be an array with an entry for each of (x, x')",
        ),
        Ending.MAX_STEPS: (
            f"the limit of {plural(request.settings.max_steps or 0, 'step')} was reached",
            more_steps(failure, request.span),
        ),
        Ending.STALLED: (Ending.STALLED.meaning, "loosen rtol and atol, or increase max_steps"),
        Ending.ERROR_TEST_FAILED: (
            "the error estimate stayed above the tolerance for every step size",
            "check for a blow-up near this time, and stop before it with a terminal event (events=...)",
        ),
        Ending.NEWTON_FAILED: (
            "Newton's method did not converge for any step size",
            "check the equations and the Jacobian near this time; constraints may become dependent here",
        ),
        Ending.MATRIX_SINGULAR: (
            "the iteration matrix is singular",
            "check for redundant or missing equations, and for variables that no equation determines",
        ),
        Ending.UNEVALUABLE: (
            "the equations could not be evaluated at the next step, for any step size",
            "check for square roots, logarithms or quotients that leave their domain near this time",
        ),
    }.get(failure.code, (f"the method gave up (code {failure.code})", "try another method"))
    done = (failure.t - request.span[0]) / (request.span[1] - request.span[0])
    head = (
        f"Stopped at t = {failure.t:.6g}, step size {abs(failure.h):.3g}: {what}. The run covered {100.0 * done:.3g} % "
        f"of the interval with {type(method).__name__}."
    )
    return "\n".join([head, *(causes or [f"Remedy: {remedy}."])])


def _causes(form: SecondOrderForm, failure) -> tuple[list[str], Any]:
    """Lines with cause and remedy, from the equations near the failure, and the failure with its revised code."""
    from daedal.analysis.causes import (
        Case,
        break_in_time,
        discontinuity,
        inconstant,
        singular_pencil,
        singularity,
        wrong_jacobian,
    )
    from daedal.analysis.diagnosis import diagnose
    from daedal.analysis.probe import find_edge, flow

    if failure.code == Ending.ZERO_WEIGHT:
        return [], failure
    try:
        companion = form.problem.first_order()
        case = Case(companion, failure)
        with np.errstate(all="ignore"):
            ahead = flow(*case.point, case.h, failure.t_span)
            if (
                failure.code in (Ending.NEWTON_FAILED, Ending.ERROR_TEST_FAILED)
                and find_edge(case.probe, ahead) is not None
            ):
                failure = replace(failure, code=Ending.UNEVALUABLE)
            if failure.code == Ending.UNEVALUABLE:
                return diagnose(companion, failure).split("\n")[-2:], failure
            if wrong_jacobian(Case(companion, replace(failure, cj=1.0 / case.h))):
                return _WRONG_JACOBIAN, failure
            for finder in (inconstant, break_in_time, singular_pencil, discontinuity, singularity):
                found = finder(case)
                if found:
                    return found, failure
    except Exception:  # user functions may raise anything
        pass
    return [], failure
