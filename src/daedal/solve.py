"""The driver: composes problem, initial values, method and events into a solution."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from daedal.errors import IntegrationError, InvalidProblemError
from daedal.problems import ImplicitDAE, SemiExplicitDAE
from daedal.problems.checks import check_vector
from daedal.progress import Progress
from daedal.solution import History, Solution

_METHODS = ("auto", "dassl")
_LARGEST_WITH_DENSE_OUTPUT = 1000


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
    **method_options,
) -> Solution:
    r"""Solve an initial value problem for a differential-algebraic equation.

    Parameters
    ----------
    problem : ImplicitDAE or SemiExplicitDAE
        What is to be solved.
    t_span : (float, float)
        Start and end; the end may lie before the start.
    initial : tuple
        (y0, yp0), or (y0, z0) for a semi-explicit problem. The second may be None: it is then computed.
    method : str or method object
        "auto", "dassl", or an instance such as ``DASSL(max_order=2)``.
    formulation : str
        How the problem is rewritten before it is discretised; "auto" and "none" leave first-order problems as they are.
    rtol, atol : float or array (n,)
        The local error of component i is kept below rtol[i] \|y_i\| + atol[i], in the root-mean-square sense.
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
        The equations are never evaluated beyond this time; the end of `t_span` by default. Infinity lets the last step go past
        the end and interpolates.
    fixed_step : float, optional
        Constant step size, constant order `max_order`, no error control.
    dense_output : bool, optional
        Keep what ``sol(t)`` needs. By default kept for up to 1000 unknowns.
    correct_initial : bool
        Move inconsistent initial values to consistent ones (the differential variables stay) instead of refusing them.
    **method_options
        Options of the method when it is given by name, e.g. ``linear_solver="gmres"``.

    Returns
    -------
    Solution

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
    if not isinstance(problem, (ImplicitDAE, SemiExplicitDAE)):
        raise InvalidProblemError(
            f"problem must be an ImplicitDAE or a SemiExplicitDAE, got {type(problem).__name__}"
        )
    if formulation not in ("auto", "none", None):
        raise InvalidProblemError(f"unknown formulation {formulation!r}; first-order problems take 'auto' or 'none'")
    span = _check_span(t_span)
    method = _check_method(method, method_options)
    rtol, atol = _check_tolerances(problem, rtol, atol)
    times = _check_times(t_eval, span)
    first_step, max_step = _check_steps(first_step, max_step, span)
    if isinstance(max_steps, bool) or not isinstance(max_steps, (int, np.integer)) or max_steps < 1:
        raise InvalidProblemError(f"max_steps must be a positive integer, got {max_steps!r}")

    from daedal.events.event import gather_events
    from daedal.initial.consistent import prepare_initial, split_initial
    from daedal.methods.task import Task, first_step_size
    from daedal.methods.workspace import Workspace

    began = time.perf_counter()
    implicit = problem.implicit()
    y0, yp0 = split_initial(problem, initial)
    workspace = Workspace(implicit, **method.workspace_options(implicit))
    masked = _masked(problem, method, span[0], y0, yp0)
    if fixed_step is None:
        trial = first_step_size(span, y0, yp0, rtol * np.abs(y0) + atol, first_step, max_step)
        y0, yp0 = prepare_initial(problem, workspace, span, initial, rtol, atol, trial, correct_initial, masked)
    else:
        if events is not None:
            raise InvalidProblemError("events are not located with fixed_step; leave one of them out")
        y0, yp0 = _start_of_fixed_steps(workspace, span, y0, yp0)
    task = Task(
        workspace=workspace,
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
        t_stop=_check_stop(t_stop, span),
        dense=implicit.n <= _LARGEST_WITH_DENSE_OUTPUT if dense_output is None else bool(dense_output),
        progress=Progress(progress, span),
        excluded=masked,
    )
    try:
        if fixed_step is None:
            outcome = method.integrate(task)
        else:
            outcome = method.integrate_fixed(task, _check_fixed_step(fixed_step, span))
    finally:
        task.progress.close()
    if outcome.exception is not None:
        raise outcome.exception
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
    >>> sol = daedal.solve_dae(lambda t, y, yp: [yp[0] - y[1], y[0] ** 2 + y[1] ** 2 - 1.0], (0.0, 1.0), [0.0, 1.0], None)
    >>> print(f"{sol.y[0, -1]:.4f}")
    0.8415
    """
    if y0 is None:
        raise InvalidProblemError("y0 is missing")
    n = np.size(y0)
    problem = ImplicitDAE(F, n, params=params, jacobian=jacobian, names=names, algebraic=algebraic)
    return solve(problem, t_span, (y0, yp0), **options)


def _check_span(t_span) -> tuple[float, float]:
    try:
        t0, t1 = (float(t) for t in t_span)
    except (TypeError, ValueError):
        raise InvalidProblemError(f"t_span must be a pair (t0, t1) of numbers, got {t_span!r}") from None
    if not (np.isfinite(t0) and np.isfinite(t1)):
        raise InvalidProblemError(f"t_span must be finite, got ({t0}, {t1})")
    if t0 == t1:
        raise InvalidProblemError(f"t_span is empty: it starts and ends at {t0}")
    return t0, t1


def _check_method(method, options: dict[str, Any]):
    from daedal.methods.dassl import DASSL

    if isinstance(method, str):
        if method.lower() not in _METHODS:
            raise InvalidProblemError(f"unknown method '{method}'; known: {', '.join(_METHODS)}")
        try:
            return DASSL(**options)
        except TypeError:
            known = DASSL.__dataclass_fields__
            unknown = [name for name in options if name not in known]
            raise InvalidProblemError(
                f"unknown option {', '.join(unknown)}; options of solve and of DASSL ({', '.join(known)}) are accepted"
            ) from None
    if options:
        raise InvalidProblemError(
            f"options {', '.join(options)} go with a method given by name; here they belong inside {type(method).__name__}(...)"
        )
    if not isinstance(method, DASSL):
        raise InvalidProblemError(f"method must be a name or a method object such as DASSL(), got {method!r}")
    return method


def _check_tolerances(problem, rtol, atol) -> tuple[np.ndarray, np.ndarray]:
    result = []
    for name, value in (("rtol", rtol), ("atol", atol)):
        array = np.asarray(value, dtype=float) if np.ndim(value) == 0 else None
        vector = np.full(problem.n, float(array)) if array is not None else check_vector(value, problem.n, name)
        if not np.all(np.isfinite(vector)) or np.any(vector < 0.0):
            raise InvalidProblemError(f"{name} must be finite and not negative, got {value!r}")
        result.append(vector)
    if np.any(result[0] <= 0.0):
        raise InvalidProblemError(f"rtol must be positive, got {rtol!r}")
    smallest = 10.0 * np.finfo(float).eps
    if np.any(result[0] < smallest):
        raise InvalidProblemError(f"rtol = {np.min(result[0]):g} is below what double precision can deliver; use {smallest:.1g} or more")
    return result[0], result[1]


def _check_times(t_eval, span) -> np.ndarray | None:
    if t_eval is None:
        return None
    try:
        times = np.array(t_eval, dtype=float).reshape(-1)
    except (TypeError, ValueError) as error:
        raise InvalidProblemError(f"t_eval must be a sequence of times: {error}") from error
    low, high = min(span), max(span)
    if not np.all(np.isfinite(times)):
        raise InvalidProblemError("t_eval holds values that are not finite")
    if times.size and not (np.all(times >= low) and np.all(times <= high)):
        raise InvalidProblemError(f"t_eval must lie within t_span {span}")
    sign = 1.0 if span[1] > span[0] else -1.0
    if np.any(sign * np.diff(times) <= 0.0):
        raise InvalidProblemError("t_eval must be strictly monotone in the direction of integration")
    return times


def _check_steps(first_step, max_step, span) -> tuple[float | None, float]:
    for name, value in (("first_step", first_step), ("max_step", max_step)):
        if value is not None and not (np.isscalar(value) and value > 0.0):
            raise InvalidProblemError(f"{name} must be positive, got {value!r}")
    length = abs(span[1] - span[0])
    if first_step is not None and first_step > length:
        raise InvalidProblemError(f"first_step = {first_step:g} is longer than t_span ({length:g})")
    return (None if first_step is None else float(first_step)), (np.inf if max_step is None else float(max_step))


def _check_stop(t_stop, span) -> float:
    sign = 1.0 if span[1] > span[0] else -1.0
    if t_stop is None:
        return span[1]
    stop = float(t_stop)
    if np.isinf(stop):
        return sign * np.inf
    if np.isnan(stop) or sign * (stop - span[1]) < 0.0:
        raise InvalidProblemError(f"t_stop = {t_stop} lies before the end of t_span; it must not be passed, nor fall short")
    return stop


def _check_fixed_step(fixed_step, span) -> float:
    if not np.isscalar(fixed_step) or not np.isfinite(fixed_step) or fixed_step <= 0.0:
        raise InvalidProblemError(f"fixed_step must be a positive number, got {fixed_step!r}")
    length = abs(span[1] - span[0])
    count = round(length / fixed_step)
    if count < 1 or abs(count * fixed_step - length) > 1e-8 * length:
        raise InvalidProblemError(f"fixed_step = {fixed_step:g} does not divide the interval of length {length:g}")
    return length / count


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
    """Whether dg/dz looks nonsingular (index 1): every row of g must respond to z, and for few z the rank is checked."""
    y, z = x0[: problem.n_y], x0[problem.n_y :]
    base = problem.constraint(t0, y, z)
    step = 1e-6 * np.maximum(1.0, np.abs(z))
    if problem.n_z > 100:
        pattern = np.where(np.arange(problem.n_z) % 2, 1.0, 0.7)
        return bool(np.all(problem.constraint(t0, y, z + step * pattern) != base))
    matrix = np.empty((problem.n_z, problem.n_z))
    for j in range(problem.n_z):
        moved = z.copy()
        moved[j] += step[j]
        matrix[:, j] = (problem.constraint(t0, y, moved) - base) / step[j]
    if not np.all(np.isfinite(matrix)):
        return True
    largest = np.max(np.abs(matrix), axis=1)
    if np.any(largest == 0.0):
        return False
    return int(np.linalg.matrix_rank(matrix / largest[:, None], tol=1e-8)) == problem.n_z


def _start_of_fixed_steps(workspace, span, y0, yp0):
    start = np.zeros(workspace.n) if yp0 is None else yp0
    workspace.check_functions(span[0], y0, start)
    return y0, start


def _solution(problem, method, task, outcome, seconds) -> Solution:
    from daedal.analysis.diagnosis import diagnose

    if outcome.interrupted:
        success, status = False, "interrupted"
        message = f"Interrupted at t = {outcome.t_reached:g}; this is what was computed until then."
    elif outcome.failure is not None:
        success, status = False, "failed"
        message = diagnose(task.workspace.problem, outcome.failure)
    elif outcome.events and outcome.events[-1].terminal:
        last = outcome.events[-1]
        success, status, message = True, "event", f"The event '{last.name}' stopped the integration at t = {last.t:.10g}."
    else:
        success, status, message = True, "finished", f"The end of the interval, t = {task.t_span[1]:g}, was reached."
        message += _complaint(task, outcome)
    semi_explicit = isinstance(problem, SemiExplicitDAE)
    return Solution(
        t=outcome.t,
        y=outcome.y,
        yp=outcome.yp,
        success=success,
        status=status,
        message=message,
        stats=task.workspace.statistics(outcome.integrator, seconds),
        names=tuple(problem.label(i) for i in range(problem.n)),
        method=f"{type(method).__name__}, order up to {method.max_order}",
        drift={"constraint": _constraint_drift(problem, outcome)} if semi_explicit else None,
        events=outcome.events,
        history=None if outcome.history is None else History(*outcome.history),
        dense=outcome.dense,
        n_differential=problem.n_y if semi_explicit else None,
    )


def _complaint(task, outcome) -> str:
    """A hint for runs that came through, but only just."""
    stats = task.workspace.statistics(outcome.integrator)
    if stats.steps < 1000 or stats.rejected < 0.3 * stats.steps:
        return ""
    return (
        f" But {stats.rejected} attempts were rejected beside {stats.steps} accepted steps: look for variables of index 2 or "
        "higher (then error_test='differential'), discontinuities (then events) or too small an atol."
    )


def _constraint_drift(problem: SemiExplicitDAE, outcome) -> float:
    """Largest |g| over at most 200 of the output points."""
    count = outcome.t.size
    chosen = np.unique(np.linspace(0, count - 1, min(count, 200)).astype(int)) if count else []
    split = problem.n_y
    return max(
        (float(np.max(np.abs(problem.constraint(outcome.t[i], outcome.y[:split, i], outcome.y[split:, i])))) for i in chosen),
        default=0.0,
    )
