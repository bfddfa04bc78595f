"""The driver: composes problem, initial values, method and events into a solution."""

from __future__ import annotations

import time
from dataclasses import replace
from math import inf, isfinite, isinf
from typing import Any

import numpy as np

from daedal.errors import IntegrationError, InvalidProblemError, Unevaluable
from daedal.hybrid.driver import solve_hybrid
from daedal.hybrid.problem import HybridProblem
from daedal.hybrid.tables import solve_between
from daedal.problems import (
    HessenbergDAE,
    ImplicitDAE,
    LinearDAE,
    MechanicalSystem,
    SecondOrderDAE,
    SemiExplicitDAE,
)
from daedal.problems.checks import check_flag, check_number, check_positive, check_real, check_tolerances
from daedal.progress import Progress
from daedal.solution import DenseOutput, History, Solution, Statistics

_LARGEST_WITH_DENSE_OUTPUT = 1000
_FEWEST_SPACINGS = 1e4  # of floats in t_span
_SHORTEST_SPAN = 1e-300  # below it, step sizes and their reciprocals leave the range of floats


def solve(
    problem,
    t_span,
    initial,
    *,
    method="auto",
    formulation="auto",
    rtol=1e-6,
    atol=1e-9,
    t_eval=None,
    events=None,
    progress=False,
    max_steps=100_000,
    first_step=None,
    max_step=None,
    t_stop=None,
    fixed_step=None,
    dense_output=None,
    correct_initial=False,
    breakpoints=None,
    **method_options,
) -> Solution:
    r"""Solve an initial value problem for a differential-algebraic equation.

    Parameters
    ----------
    problem : ImplicitDAE, SemiExplicitDAE, LinearDAE, SecondOrderDAE, MechanicalSystem, HessenbergDAE, HybridProblem
        What is to be solved.
    t_span : (float, float)
        Start and end; the end may lie before the start.
    initial : tuple
        (y0, yp0), or (y0, z0) for a semi-explicit problem, (q0, v0) for a mechanism. The second may be None: it is then
        computed (velocities are zero, as far as the constraints allow). For a Hessenberg problem z0, or (z0, y0); for
        one of second order (x0, xp0); for a hybrid one (mode, initial values of the mode).
    method : str or method object
        "auto", "dassl", or an instance such as ``DASSL(max_order=2)``. For mechanisms also the half-explicit "phem56",
        "hedop5", "hem5", "hem4" and "hem3", which solve semi-explicit problems of index 2 as well, and for formulations
        that are ordinary differential equations the explicit "dopri5" and "rk4". "modified_bdf" and "collocation" solve
        problems of second order and mechanisms without going to first order. The automatic choice is DASSL for
        first-order problems and modified BDF for second-order ones; for mechanisms it begins with PHEM56 and hands over
        to DASSL where that is stiff.
    formulation : str or formulation object
        How the problem is rewritten before it is discretised. Mechanisms and Hessenberg problems: "auto", "ggl",
        "projection", "baumgarte", ..., or an instance such as ``Baumgarte(gamma=5.0)``. Linear problems:
        :class:`StabilisedReduction`. "auto" and "none" leave first-order problems as they are.
    rtol, atol : float or array (n,)
        The local error of component i is kept below rtol[i] \|y_i\| + atol[i], in the root-mean-square sense; for a
        mechanism y is (q, v, r), and the automatic choice takes the maximum.
    t_eval : array, optional
        Output times. Every step is stored if it is not given.
    events : Event, callable or list of them, optional
        Switching functions to be located; see :class:`Event`.
    progress : bool
        Show a progress bar with the model time.
    max_steps : int
        Give up after so many steps.
    first_step, max_step : float, optional
        First and largest step size.
    t_stop : float, optional
        The equations are never evaluated beyond this time; the end of `t_span` by default. Infinity lets the last step
        go past the end and interpolates.
    fixed_step : float, optional
        Constant step size, constant order `max_order`, no error control.
    dense_output : bool, optional
        Keep what ``sol(t)`` needs. By default kept for up to 1000 unknowns.
    correct_initial : bool
        Move inconsistent initial values to consistent ones (the differential variables stay) instead of refusing them.
    breakpoints : Table, array, or list of them, optional
        Times at which right-hand sides have kinks or jumps: the run ends a piece there and begins anew, without a step
        across. Functions must be continuous from the right. The result is a :class:`HybridSolution`.
    **method_options
        Options of the method when it is given by name, e.g. ``linear_solver="gmres"``.

    Returns
    -------
    Solution
        A :class:`MechanicalSolution` for a mechanism.

    Raises
    ------
    InvalidProblemError
        Wrong input; the message names the argument.
    InconsistentInitialError
        The initial values violate the equations; the message names them.
    IntegrationError
        The integration failed; the message says why, and ``.solution`` holds what was computed.

    Examples
    --------
    >>> import numpy as np
    >>> import daedal
    >>> problem = daedal.ImplicitDAE(lambda t, y, yp: [yp[0] + y[1], y[0] - y[1]], 2)
    >>> sol = daedal.solve(problem, (0.0, 2.0), ([1.0, 1.0], None), t_eval=np.linspace(0.0, 2.0, 5), rtol=1e-8)
    >>> print(sol.y[0].round(5))
    [1.      0.60653 0.36788 0.22313 0.13534]
    """
    if breakpoints is not None or isinstance(problem, HybridProblem):
        hybrid: Any = (solve_hybrid if breakpoints is None else solve_between)(**locals())
        return hybrid
    began = time.perf_counter()
    wishes: dict[str, Any] = {}
    if isinstance(problem, LinearDAE):
        from daedal.formulations.linear_reduction import first_order

        problem, initial, wishes = first_order(problem, formulation, _check_span(t_span)[0], initial)
        formulation = "none"
    constrained = isinstance(problem, (MechanicalSystem, HessenbergDAE))
    second_order = isinstance(problem, SecondOrderDAE)
    if not constrained and not second_order and not isinstance(problem, (ImplicitDAE, SemiExplicitDAE)):
        raise InvalidProblemError(
            "problem must be an ImplicitDAE, a SemiExplicitDAE, a LinearDAE, a SecondOrderDAE, a MechanicalSystem or a "
            f"HessenbergDAE, got {type(problem).__name__}"
        )
    if not constrained and formulation not in ("auto", "none", None):
        if second_order:
            raise InvalidProblemError(
                f"formulation={formulation!r} is for mechanisms: a SecondOrderDAE is solved as it stands. State the "
                "mechanism as a MechanicalSystem to choose its formulation"
            )
        raise InvalidProblemError(f"unknown formulation {formulation!r}; first-order problems take 'auto' or 'none'")
    span = _check_span(t_span)
    if constrained:
        method = _check_constrained(method, method_options)
    elif second_order:
        from daedal.choice import second_order_method

        method = second_order_method(method, method_options)
    else:
        method = _check_method(method, method_options, isinstance(problem, SemiExplicitDAE))
    if wishes:
        left_open = [name for name in method.options() if _is_open(getattr(method, name))]
        kept = {name: value for name, value in wishes.items() if name in left_open}
        method = replace(method, **kept)
    if not second_order:
        rtol, atol = check_tolerances(problem.n, rtol, atol)
    times = _check_times(t_eval, span)
    if dense_output is not None:
        dense_output = check_flag(dense_output, "dense_output")
    correct_initial = check_flag(correct_initial, "correct_initial")
    first_step, max_step = _check_steps(first_step, max_step, span)
    t_stop = _check_stop(t_stop, span)
    if isinstance(max_steps, bool) or not isinstance(max_steps, (int, np.integer)) or max_steps < 1:
        raise InvalidProblemError(f"max_steps must be a positive integer, got {max_steps!r}")
    if fixed_step is not None:
        fixed_step = _check_fixed_step(fixed_step, span, max_steps)
    if constrained or second_order:
        from daedal.request import Request

        request = Request(
            problem,
            span,
            initial,
            rtol,
            atol,
            times,
            events,
            progress,
            int(max_steps),
            first_step,
            max_step,
            t_stop,
            fixed_step,
            dense_output,
            correct_initial,
            began,
        )
        if second_order:
            from daedal.second_order_run import solve_second_order

            return solve_second_order(request, method)
        from daedal.constrained_run import solve_constrained

        return solve_constrained(request, formulation, method)

    from daedal.events.event import gather_events
    from daedal.initial.consistent import prepare_initial, split_initial
    from daedal.methods.step_size import first_step_size
    from daedal.methods.task import Equations, Task
    from daedal.methods.workspace import Workspace

    implicit = problem.implicit()
    y0, yp0 = split_initial(problem, initial)
    semi_explicit = problem if isinstance(problem, SemiExplicitDAE) else None
    run = method.prepare(Equations(implicit.n, problem=implicit, semi_explicit=semi_explicit))
    workspace = run.workspace or Workspace(implicit)
    try:
        masked = _masked(problem, method, span[0], y0, yp0)
        if fixed_step is None:
            trial = (1.0 if span[1] > span[0] else -1.0) * (first_step or 0.0) or first_step_size(
                *span, y0, np.zeros(implicit.n) if yp0 is None else yp0, rtol, atol, max_step
            )
            y0, yp0 = prepare_initial(problem, workspace, span, initial, rtol, atol, trial, correct_initial, masked)
        else:
            y0, yp0 = _start_of_fixed_steps(problem, workspace, span, y0, yp0, rtol * np.abs(y0) + atol)
    except Unevaluable as error:
        functions = "f or g" if isinstance(problem, SemiExplicitDAE) else "residual"
        message = f"{functions} cannot be evaluated at the initial values (t = {span[0]:g}): {error}"
        raise InvalidProblemError(message.rstrip(": ")) from error
    searched = workspace.counts()
    task = Task(
        t_span=span,
        y0=y0,
        yp0=yp0,
        rtol=rtol,
        atol=atol,
        t_eval=times,
        switching=gather_events(events, problem, span[0], y0, yp0),
        max_steps=int(max_steps),
        first_step=first_step,
        max_step=max_step,
        t_stop=t_stop,
        dense=implicit.n <= _LARGEST_WITH_DENSE_OUTPUT if dense_output is None else bool(dense_output),
        progress=Progress(progress, span),
        excluded=masked,
        fixed_step=fixed_step,
    )
    if method.nonnegative is not False:
        _check_signs(problem, task, method.nonnegative_mask(implicit))
    try:
        outcome = run.integrate(task)
    finally:
        task.progress.close()
    if outcome.exception is not None:
        raise outcome.exception
    outcome.counts += searched
    solution = _solution(problem, method, task, outcome, time.perf_counter() - began)
    if solution.status == "failed":
        raise IntegrationError(solution.message, solution)
    return solution


def solve_dae(F, t_span, y0, yp0, *, params=None, jacobian=None, names=None, algebraic=None, **options) -> Solution:
    """Solve F(t, y, y') = 0: the short cut for :class:`ImplicitDAE` and :func:`solve`.

    Parameters
    ----------
    F : callable
        ``F(t, y, yp) -> array (n,)``, or ``F(t, y, yp, p)`` with `params`.
    t_span : (float, float)
    y0, yp0 : array (n,)
        Initial values; `yp0` may be None.
    params, jacobian, names, algebraic
        See :class:`ImplicitDAE`.
    **options
        See :func:`solve`.

    Examples
    --------
    >>> import daedal
    >>> def circle(t, y, yp):
    ...     return [yp[0] - y[1], y[0] ** 2 + y[1] ** 2 - 1.0]
    >>> sol = daedal.solve_dae(circle, (0.0, 1.0), [0.0, 1.0], None)
    >>> print(f"{sol.y[0, -1]:.4f}")
    0.8415
    """
    if y0 is None:
        raise InvalidProblemError("y0 is missing")
    y0 = check_real(y0, "y0", "hold real numbers")
    problem = ImplicitDAE(F, y0.size, params=params, jacobian=jacobian, names=names, algebraic=algebraic)
    return solve(problem, t_span, (y0, yp0), **options)


def _check_span(t_span) -> tuple[float, float]:
    expected = "be a pair (t0, t1) of numbers"
    ends = check_real(t_span, "t_span", expected)
    if ends.shape != (2,):
        raise InvalidProblemError(f"t_span must {expected}, got {t_span!r}")
    t0, t1 = ends.tolist()
    if not (isfinite(t0) and isfinite(t1)):
        raise InvalidProblemError(f"t_span must be finite, got ({t0}, {t1})")
    if t0 == t1:
        raise InvalidProblemError(f"t_span is empty: it starts and ends at {t0}")
    if not _SHORTEST_SPAN <= abs(t1 - t0) < inf:
        raise InvalidProblemError(f"t_span ({t0}, {t1}) has a length outside the range of floats; rescale the time")
    spacing = float(np.spacing(max(abs(t0), abs(t1))))
    if abs(t1 - t0) < _FEWEST_SPACINGS * spacing:
        raise InvalidProblemError(
            f"t_span ({t0}, {t1}) cannot be resolved: floats near {t1:g} are {spacing:.2g} apart. Shift the time, for "
            "example so that it begins with 0"
        )
    return t0, t1


def _is_open(option) -> bool:
    """Whether the user has left an option to the formulation."""
    return option is None or (isinstance(option, str) and option == "auto")


def _check_constrained(method, options: dict[str, Any]):
    """A method for constrained systems, or "auto"."""
    from daedal.methods import named_method

    if isinstance(method, str) and method == "auto" and not options:
        return method
    return named_method("dassl" if isinstance(method, str) and method == "auto" else method, options)


def _check_method(method, options: dict[str, Any], semi_explicit: bool = False):
    """A method for first-order problems."""
    from daedal.methods import named_method

    if isinstance(method, type):
        raise InvalidProblemError(f"method must be a name or a method object such as DASSL(), got {method!r}")
    chosen = named_method("dassl" if isinstance(method, str) and method == "auto" else method, options)
    if chosen.works_on("residual") or (semi_explicit and chosen.works_on("semi_explicit")):
        return chosen
    name = type(chosen).__name__
    if chosen.works_on("semi_explicit"):
        raise InvalidProblemError(
            "half-explicit methods need constraints that can be told from the differential equations: state the "
            "problem as a MechanicalSystem or as a SemiExplicitDAE of index 2, or use method='dassl'"
        )
    if chosen.works_on("second_order"):
        raise InvalidProblemError(
            f"{name} is for equations of second order: state the problem as a SecondOrderDAE or a MechanicalSystem, or "
            "use method='dassl'"
        )
    raise InvalidProblemError(
        f"{name} is for ordinary differential equations y' = f(t, y), such as forms of a MechanicalSystem; use "
        "method='dassl'"
    )


def _check_times(t_eval, span) -> np.ndarray | None:
    if t_eval is None:
        return None
    times = check_real(t_eval, "t_eval", "be a sequence of times").reshape(-1)
    if times.size and not (times.min() >= min(span) and times.max() <= max(span)):
        if not np.isfinite(times).all():
            raise InvalidProblemError("t_eval holds values that are not finite")
        raise InvalidProblemError(f"t_eval must lie within t_span {span}")
    ahead = times[1:] > times[:-1] if span[1] > span[0] else times[1:] < times[:-1]
    if not ahead.all():
        raise InvalidProblemError("t_eval must be strictly monotone in the direction of integration")
    return times


def _check_steps(first_step, max_step, span) -> tuple[float | None, float]:
    max_step = inf if max_step is None else check_positive(max_step, "max_step")
    if first_step is None:
        return None, max_step
    first_step, length = check_positive(first_step, "first_step"), abs(span[1] - span[0])
    if first_step > length:
        raise InvalidProblemError(f"first_step = {first_step:g} is longer than t_span ({length:g})")
    return first_step, max_step


def _check_stop(t_stop, span) -> float:
    if t_stop is None:
        return span[1]
    stop = check_number(t_stop, "t_stop")
    sign = 1.0 if span[1] > span[0] else -1.0
    if isinf(stop):
        return sign * inf
    if not sign * (stop - span[1]) >= 0.0:
        raise InvalidProblemError(
            f"t_stop = {stop:g} lies before {span[1]:g}, the end of t_span; it must not be passed"
        )
    return stop


def _check_fixed_step(fixed_step, span, max_steps) -> float:
    step, length = check_positive(fixed_step, "fixed_step"), abs(span[1] - span[0])
    if length / step > max_steps + 0.5:
        raise InvalidProblemError(
            f"fixed_step = {step:g} takes {length / step:.4g} steps, more than max_steps = {max_steps}; "
            "use longer steps or a larger max_steps"
        )
    count = round(length / step)
    if count < 1 or abs(count * step - length) > 1e-8 * length:
        raise InvalidProblemError(f"fixed_step = {step:g} does not divide the interval of length {length:g}")
    return length / count


def _check_signs(problem, task, nonnegative: np.ndarray):
    """Values that are to be kept nonnegative must be so at the start, up to the tolerance."""
    negative = np.flatnonzero((nonnegative != 0) & (task.y0 < -task.atol))
    if negative.size:
        i = int(negative[0])
        raise InvalidProblemError(
            f"{problem.label(i)} = {task.y0[i]:g} is negative at the start, although it is to be kept nonnegative"
        )


def _masked(problem, method, t0, y0, yp0) -> np.ndarray | None:
    """The components that the method's error test leaves out."""
    from daedal.initial.structure import algebraic_variables

    implicit = problem.implicit()
    choice = method.error_test
    if not isinstance(choice, str):
        return method.excluded(implicit)
    if choice == "all":
        return None
    if choice == "auto":
        if isinstance(problem, SemiExplicitDAE) and not _constraint_determines_z(problem, t0, y0):
            return implicit.algebraic
        return None
    return algebraic_variables(implicit, t0, y0, np.zeros(implicit.n) if yp0 is None else yp0)


def _constraint_determines_z(problem: SemiExplicitDAE, t0, x0) -> bool:
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


def _start_of_fixed_steps(problem, workspace, span, y0, yp0, weights):
    """The start of constant steps: taken as it is, an unknown y'_0 completed where that is possible."""
    from daedal.initial.consistent import check_start, complete

    start = np.zeros(workspace.n) if yp0 is None else yp0
    check_start(problem, workspace, span[0], y0, start)
    if yp0 is None and np.all(weights > 0.0):
        result = complete(workspace, span[0], y0, start, 1e-6 * (span[1] - span[0]), weights)
        if result.converged:
            start = result.yp
    return y0, start


def _solution(problem, method, task, outcome, seconds) -> Solution:
    stats = replace(outcome.stats, seconds=seconds)
    if outcome.interrupted:
        success, status = False, "interrupted"
        message = f"Interrupted at t = {outcome.t_reached:g}; this is what was computed until then."
    elif outcome.failure is not None:
        from daedal.analysis.diagnosis import diagnose

        success, status = False, "failed"
        message = diagnose(problem.implicit(), outcome.failure)
    elif outcome.events and (stopping := [e for e in outcome.events[-len(task.switching.names) :] if e.terminal]):
        last = stopping[-1]
        success, status = True, "event"
        message = f"The event '{last.name}' stopped the integration at t = {last.t:.10g}."
    else:
        success, status, message = True, "finished", f"The end of the interval, t = {task.t_span[1]:g}, was reached."
        message += _complaint(stats)
    semi_explicit = isinstance(problem, SemiExplicitDAE)
    return Solution(
        t=outcome.t,
        y=outcome.y,
        yp=outcome.yp,
        success=success,
        status=status,
        message=message,
        stats=stats,
        names=tuple(problem.label(i) for i in range(problem.n)),
        method=f"{type(method).__name__}, order up to {method.max_order}",
        drift={"constraint": _constraint_drift(problem, outcome)} if semi_explicit else None,
        events=outcome.events,
        history=None if outcome.history is None else History(*outcome.history),
        dense=_until_the_end(task, outcome),
        n_differential=problem.n_y if semi_explicit else None,
    )


def _complaint(stats: Statistics) -> str:
    """A hint for runs that came through, but only just."""
    if stats.steps < 1000 or stats.rejected < 0.3 * stats.steps:
        return ""
    return (
        f" But {stats.rejected} attempts were rejected beside {stats.steps} accepted steps: look for variables of "
        "index 2 or higher (then error_test='differential'), discontinuities (then events) or too small an atol."
    )


def _until_the_end(task, outcome) -> DenseOutput | None:
    """The dense output without what the last step computed beyond a terminal event or the end of `t_span`."""
    if outcome.dense is None:
        return None
    if outcome.events and any(event.terminal for event in outcome.events[-len(task.switching.names) :]):
        return replace(outcome.dense, t_end=outcome.events[-1].t)
    if task.sign * (outcome.dense.ends[-1] - task.t_span[1]) > 0.0:
        return replace(outcome.dense, t_end=task.t_span[1])
    return outcome.dense


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
