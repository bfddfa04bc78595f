"""The driver for second-order DAEs: directly, or through their first-order form."""

from __future__ import annotations

import time
from dataclasses import replace
from math import inf
from typing import Any

import numpy as np

from daedal.errors import IntegrationError, InvalidProblemError, Unevaluable
from daedal.initial.second_order import (
    complete_start,
    error_weights,
    orders_at_start,
    split_second_order,
    tolerance_of_y,
)
from daedal.kernels.endings import Ending
from daedal.methods.task import Equations, Task
from daedal.problems.checks import check_tolerances
from daedal.problems.second_order_form import SecondOrderForm, natural_form
from daedal.progress import Progress
from daedal.request import Request
from daedal.second_order_solution import SecondOrderSolution
from daedal.solution import History

_LARGEST_WITH_DENSE_OUTPUT = 1000
_SHORTEST_SPAN = 1e-140
_LARGEST_CHECKED = 200  # variables up to which hidden constraints of the start are looked for
_WRONG_JACOBIAN = [
    "Likely cause: the given jacobian is wrong: it does not fit difference quotients of the residual.",
    "Remedy: correct jacobian, which must return dF/dx + c1 dF/dx' + c2 dF/dx'', or leave it out.",
]


def solve_second_order(request: Request, method):
    """Solve a SecondOrderDAE; see :func:`daedal.solve`."""
    problem, t0 = request.problem, request.span[0]
    length = abs(request.span[1] - t0)
    if length < _SHORTEST_SPAN:
        raise InvalidProblemError(
            f"t_span has the length {length:g}: squares of step sizes leave the range of floats; rescale the time"
        )
    x0, xp0, xpp0 = split_second_order(problem, request.initial)
    problem, found = orders_at_start(problem, t0, x0, xp0)
    form = natural_form(problem)
    given = problem.order
    rtol, atol = check_tolerances(
        form.n, tolerance_of_y(form, request.rtol, "rtol"), tolerance_of_y(form, request.atol, "atol")
    )
    y0, yp0, known = _start(form, request, x0, xp0, xpp0, rtol, atol)
    if known and not np.any(given == 1):
        form = replace(form, start_order=2)
    if not method.works_on("second_order"):
        slope = yp0 if known or problem.n <= _LARGEST_CHECKED else None
        return _through_first_order(request, form, method, rtol, atol, y0, slope)
    task = _task(request, form, method, rtol, atol, y0, yp0)
    if np.any(given > found):
        task.excluded = (given > found)[np.where(form.source < problem.n, form.source, form.source - problem.n)]
    try:
        outcome = method.prepare(Equations(form.n, second_order=form)).integrate(task)
    finally:
        task.progress.close()
    if outcome.exception is not None:
        raise outcome.exception
    solution = _solution(request, form, method, task, outcome)
    if solution.status == "failed":
        raise IntegrationError(solution.message, solution)
    return solution


def _start(form: SecondOrderForm, request: Request, x0, xp0, xpp0, rtol, atol) -> tuple[np.ndarray, np.ndarray, bool]:
    """y and y' at the start, and whether second derivatives are known."""
    problem, t0 = form.problem, request.span[0]
    x, xp, xpp = x0, xp0, np.zeros(problem.n) if xpp0 is None else xpp0
    known = xpp0 is not None
    if problem.n <= _LARGEST_CHECKED or request.correct_initial:
        weights = error_weights(form, x0, xp0, rtol, atol)
        length, correct = request.span[1] - t0, request.correct_initial
        try:
            start = complete_start(problem, t0, x0, xp0, xpp0, length, weights, correct=correct)
        except Unevaluable as error:
            message = f"residual cannot be evaluated at the initial values (t = {t0:g}): {error}"
            raise InvalidProblemError(message.rstrip(": ")) from error
        if start.complete:
            x, xp, xpp, known = start.x, start.xp, start.xpp, True
    return np.concatenate([x, xp])[form.source], np.concatenate([xp, xpp])[form.source], known


def _task(request: Request, form: SecondOrderForm, method, rtol, atol, y0, yp0):
    from types import SimpleNamespace

    from daedal.events.event import gather_events

    problem = form.problem
    view = SimpleNamespace(n_y=None, params=problem.params)
    switching = gather_events(request.events, view, request.span[0], x_of(form, y0), xp_of(form, y0, yp0))
    if switching is not None:
        inner = switching.evaluate
        switching = replace(switching, evaluate=lambda t, y, yp: inner(t, x_of(form, y), xp_of(form, y, yp)))
    dense = form.n <= _LARGEST_WITH_DENSE_OUTPUT if request.dense_output is None else bool(request.dense_output)
    return Task(
        t_span=request.span,
        y0=y0,
        yp0=yp0,
        rtol=rtol,
        atol=atol,
        t_eval=request.times,
        switching=switching,
        max_steps=request.max_steps,
        first_step=request.first_step,
        max_step=request.max_step,
        t_stop=request.t_stop,
        dense=dense,
        progress=Progress(request.progress, request.span),
        fixed_step=request.fixed_step,
    )


def x_of(form: SecondOrderForm, y: np.ndarray) -> np.ndarray:
    """x from y."""
    return form.split(y)[0]


def xp_of(form: SecondOrderForm, y: np.ndarray, yp: np.ndarray) -> np.ndarray:
    """x' from y and y'."""
    xp, slope = form.split(y)[1], form.split(yp)[0]
    return np.where(form.problem.order == 2, xp, slope)


def _through_first_order(request: Request, form: SecondOrderForm, method, rtol, atol, y0, yp0):
    """DASSL on the companion form; y' is left to it if it is not known."""
    from daedal.solve import solve

    try:
        inner = solve(
            form.problem.first_order(),
            request.span,
            (y0, yp0),
            method=method,
            rtol=rtol,
            atol=atol,
            t_eval=request.times,
            events=_first_order_events(request, form, y0, yp0),
            progress=request.progress,
            max_steps=request.max_steps,
            first_step=request.first_step,
            max_step=None if request.max_step == inf else request.max_step,
            t_stop=request.t_stop,
            fixed_step=request.fixed_step,
            dense_output=request.dense_output,
            correct_initial=request.correct_initial,
        )
    except IntegrationError as error:
        message = (
            f"{error}\nThis is the first-order form: method='modified_bdf' or 'collocation' solve the problem directly."
        )
        solution = _converted(form, error.solution)
        solution.message = message
        raise IntegrationError(message, solution) from error
    return _converted(form, inner)


def _first_order_events(request: Request, form: SecondOrderForm, y0, yp0):
    """The events as functions of the unknowns of the companion form."""
    if request.events is None:
        return None
    from types import SimpleNamespace

    from daedal.events.event import Event, gather_events

    problem = form.problem
    view = SimpleNamespace(n_y=None, params=problem.params)
    slope = np.zeros(form.n) if yp0 is None else yp0
    functions = gather_events(request.events, view, request.span[0], x_of(form, y0), xp_of(form, y0, slope))
    if functions is None:
        return None
    return Event(
        lambda t, y, yp: functions.evaluate(t, x_of(form, y), xp_of(form, y, yp)),
        terminal=functions.terminal.tolist(),
        direction=functions.direction.tolist(),
        name=list(functions.names),
        inside=["extrema" if inside else "ends" for inside in functions.interior],
        touch=functions.touch.tolist(),
        location=[("roots", "monitoring", "auto")[place] for place in functions.location],
        delta=[None if np.isnan(delta) else delta for delta in functions.delta.tolist()],
        tol=[tolerance or None for tolerance in functions.tolerance.tolist()],
    )


def _converted(form: SecondOrderForm, solution) -> SecondOrderSolution:
    fields = {name: getattr(solution, name) for name in solution.__dataclass_fields__}
    return SecondOrderSolution(form=form, **fields)


def _solution(request: Request, form: SecondOrderForm, method, task, outcome) -> SecondOrderSolution:
    stats = replace(outcome.stats, seconds=time.perf_counter() - request.began)
    stopping = [event for event in outcome.events if event.terminal]
    if outcome.interrupted:
        success, status = False, "interrupted"
        message = f"Interrupted at t = {outcome.t_reached:g}; this is what was computed until then."
    elif outcome.failure is not None:
        success, status, message = False, "failed", explain(request, form, method, outcome.failure)
    elif stopping:
        success, status = True, "event"
        message = f"The event '{stopping[-1].name}' stopped the integration at t = {stopping[-1].t:.10g}."
    else:
        success, status = True, "finished"
        message = f"The end of the interval, t = {request.span[1]:g}, was reached."
    dense = outcome.dense
    if dense is not None and stopping:
        dense = replace(dense, t_end=stopping[-1].t)
    elif dense is not None and task.sign * (dense.ends[-1] - request.span[1]) > 0.0:
        dense = replace(dense, t_end=request.span[1])
    return SecondOrderSolution(
        form=form,
        t=outcome.t,
        y=outcome.y,
        yp=outcome.yp,
        success=success,
        status=status,
        message=message,
        stats=stats,
        names=form.names,
        method=f"{type(method).__name__}, order up to {method.max_order}",
        events=outcome.events,
        history=None if outcome.history is None else History(*outcome.history),
        dense=dense,
    )


def explain(request: Request, form: SecondOrderForm, method, failure) -> str:
    """Why the run stopped, in words."""
    causes, failure = _causes(form, failure)
    what, remedy = {
        Ending.ZERO_WEIGHT: (
            f"{form.label(max(failure.component, 0))} is zero, and so is its atol: no error at all would be allowed",
            "make atol positive, the size below which a variable does not matter",
        ),
        Ending.MAX_STEPS: (
            f"the limit of {request.max_steps} steps was reached",
            "raise max_steps, or loosen rtol and atol",
        ),
        Ending.ERROR_TEST_FAILED: (
            "the error estimate stayed above the tolerance, however short the step",
            "look for a discontinuity or a blow-up near this time (then events)",
        ),
        Ending.NEWTON_FAILED: (
            "Newton's method did not converge, however short the step",
            "check the equations and the Jacobian near this time; constraints may become dependent here",
        ),
        Ending.MATRIX_SINGULAR: (
            "the iteration matrix is singular",
            "look for redundant or missing equations, and for variables that no equation determines",
        ),
        Ending.UNEVALUABLE: (
            "the equations could not be evaluated at the next step, however short",
            "look for square roots, logarithms or quotients that leave their domain near this time",
        ),
    }.get(failure.code, (f"the method gave up (code {failure.code})", "try another method"))
    done = (failure.t - request.span[0]) / (request.span[1] - request.span[0])
    head = (
        f"Stopped at t = {failure.t:.6g}, step size {abs(failure.h):.3g}: {what}. The run covered {100.0 * done:.3g} % "
        f"of the interval with {type(method).__name__}."
    )
    return "\n".join([head, *(causes or [f"Remedy: {remedy}."])])


def _causes(form: SecondOrderForm, failure) -> tuple[list[str], Any]:
    """Cause and remedy, from the equations near the point of failure; and the failure in the light of them.

    They are looked for in the companion form, whose y is that of the run.
    """
    from daedal.analysis.causes import Case, discontinuity, singular_pencil, singularity, wrong_jacobian
    from daedal.analysis.diagnosis import diagnose
    from daedal.analysis.probe import find_edge, flow

    if failure.code == Ending.ZERO_WEIGHT:
        return [], failure
    try:
        companion = form.problem.first_order()
        case = Case(companion, failure)
        with np.errstate(all="ignore"):
            ahead = flow(*case.point, case.h, failure.t_span)
            stuck = failure.code in (Ending.NEWTON_FAILED, Ending.ERROR_TEST_FAILED)
            if stuck and find_edge(case.probe, ahead) is not None:
                failure = replace(failure, code=Ending.UNEVALUABLE)
            if failure.code == Ending.UNEVALUABLE:
                return diagnose(companion, failure).split("\n")[-2:], failure
            if wrong_jacobian(Case(companion, replace(failure, cj=1.0 / case.h))):
                return _WRONG_JACOBIAN, failure
            for finder in (singular_pencil, discontinuity, singularity):
                found = finder(case)
                if found:
                    return found, failure
    except Exception:  # the run is over, and nothing that happens here may lose it
        pass
    return [], failure
