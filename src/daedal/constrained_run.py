"""The driver for constrained systems: segments with one formulation and method each."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from types import SimpleNamespace

import numpy as np

from daedal.choice import Choice, named_method
from daedal.constrained_output import MOST_IDLE, Salvage, assemble_solution, outputs
from daedal.constrained_start import prepare, prepare_sparse
from daedal.errors import IntegrationError, InvalidProblemError
from daedal.formulations.reduction import Reduction, attach_monitor
from daedal.mechanics.assembly import Assembly, constraint_probe
from daedal.mechanics.sparse.assembly import SparseAssembly, is_sparse
from daedal.mechanics.start import Start
from daedal.progress import Progress
from daedal.request import Request, Segment

_ORDINARY = "index1, baumgarte, projection, state_space, essential or loetstedt"
_LARGEST_WITH_DENSE_OUTPUT = 1000
_CHECKED_POINTS = 8


def solve_constrained(request: Request, formulation, method):
    """Solve a constrained system; see :func:`daedal.solve`."""
    if is_sparse(request.problem, request.span[0], request.initial):
        assembly, start, notes, choice = prepare_sparse(request, formulation, method)
    else:
        assembly, start, notes = prepare(request)
        choice = Choice(assembly, formulation, method, request)
    progress = Progress(request.progress, request.span)
    try:
        segments = _integrate(request, assembly, start, choice, progress)
    finally:
        progress.close()
    if not _stayed_autonomous(request, assembly, segments):
        known = request.problem.__dict__["_autonomous"]
        known.update(dict.fromkeys([*known, request.span], False))
        return solve_constrained(request, formulation, method)
    solution = assemble_solution(request, assembly, segments, [*notes, *choice.notes])
    exception = segments[-1].outcome.exception
    if exception is not None:
        with suppress(AttributeError, TypeError):  # exceptions with slots take no attributes
            exception.solution = solution
        raise exception
    if solution.status == "failed":
        raise IntegrationError(solution.message, solution)
    return solution


def _stayed_autonomous(request: Request, assembly, segments) -> bool:
    """Whether constraints that were taken not to depend on time do not do so at points of the solution either."""
    probe = None
    if not assembly.linear and isinstance(assembly, Assembly) and assembly.record["autonomous"]:
        probe = constraint_probe(request.problem, segments[0].reduction.y0[: assembly.nx])
    if probe is None:
        return True
    t, states = outputs(request, segments, Salvage())
    for i in np.unique(np.linspace(0, t.size - 1, min(t.size, _CHECKED_POINTS)).astype(int)):
        q = states[i, : assembly.nx]
        try:
            if not np.array_equal(probe(float(t[i]), q), probe(request.span[0], q)):
                return False
        except KeyboardInterrupt:
            segments[-1].outcome.interrupted = True
            return True
        except Exception:  # the run is over, and nothing that happens here may lose it
            continue
    return True


def _integrate(request: Request, assembly, start: Start, choice, progress) -> list[Segment]:
    """Integrate segment by segment, until the end, a failure or a terminal event."""
    segments: list[Segment] = []
    idle = 0
    direction = 1 if request.span[1] > request.span[0] else -1
    while True:
        try:
            start.direction = direction
            segment = _next_segment(request, assembly, start, choice, progress, segments)
            segments.append(segment)
            outcome = segment.outcome
            if outcome.interrupted or outcome.exception is not None or not choice.goes_on(segment):
                return segments
            idle = 0 if outcome.t_reached != start.t else idle + 1
            segment.stuck = idle >= MOST_IDLE
            if segment.stuck:
                return segments
            start = _restart(assembly, segment)
        except KeyboardInterrupt:
            if not segments:
                raise
            segments[-1].outcome.interrupted = True
            return segments
        except Exception as error:
            if not segments:
                raise
            segments[-1].outcome.exception = error
            return segments


def _next_segment(request: Request, assembly, start: Start, choice, progress, segments: list[Segment]) -> Segment:
    formulation, method = choice.formulation, choice.method
    if choice.changed:
        reduction = _reduce(formulation, assembly, start, method)
    else:
        reduction = segments[-1].reduction.restart(start)
    choice.changed = False
    watched = request.fixed_step is None or not assembly.linear
    if assembly.n_c and watched and not isinstance(assembly, SparseAssembly):
        earlier = segments[-1].reduction.monitor.array("norms") if segments else 0.0
        attach_monitor(reduction, amplification=choice.watches_amplification, usual_norms=earlier)
    steps = request.max_steps - sum(segment.stats.steps for segment in segments)
    if choice.step_limit is not None:
        steps = min(steps, choice.step_limit)
    outcome, task = _run_segment(request, assembly, start, reduction, method, progress, steps, segments)
    stats = task.workspace.statistics(outcome.integrator, 0.0)
    signal = int(task.workspace.system["hook_signal"])
    return Segment(reduction, outcome, method, formulation, stats, signal)


def _reduce(formulation, assembly, start: Start, method) -> Reduction:
    """The problem rewritten, as an equation of the order that the method solves."""
    if not getattr(method, "second_order", False):
        return formulation.reduce(assembly, start)
    from daedal.formulations.second_order_forms import second_order_form

    return second_order_form(formulation, assembly, start, project=getattr(method, "projection", "never") != "never")


def _restart(assembly, segment: Segment) -> Start:
    """Consistent values at the end of a segment."""
    integrator = segment.outcome.integrator
    t = float(integrator["t"])
    state = segment.reduction.states(np.array([t]), integrator.array("phi")[0][:, None].copy())
    if assembly.n_c:
        assembly.project(np.array([t]), state, weight=assembly.output_weight)
    return assembly.start(t, state[0])


def _run_segment(request, assembly, start, reduction, method, progress, max_steps, earlier: list[Segment]):
    from daedal.methods.task import Task
    from daedal.methods.workspace import Workspace

    if method.name in ("dopri5", "rk4") and reduction.rate is None:
        raise InvalidProblemError(
            f"{type(method).__name__} is explicit and needs a formulation that is an ordinary differential equation: "
            f"{_ORDINARY}"
        )
    if method.name == "dassl":
        wished = {name: value for name, value in reduction.options.items() if getattr(method, name) is None}
        method = replace(method, **wished) if wished else method
        if request.fixed_step is not None and method.max_order > 1 and method.starting_values is None:
            left = max(1, round(abs(request.span[1] - start.t) / request.fixed_step))
            method = replace(method, max_order=min(method.max_order, left))
            method = replace(method, starting_values=_starting_values(request, assembly, start, reduction, method))
    problem, span = reduction.problem, (start.t, request.span[1])
    if getattr(method, "second_order", False):
        workspace = method.workspace(problem)
    else:
        workspace = Workspace(problem, **method.workspace_options(problem))
    rtol, atol = _tolerances(request, assembly, reduction, start)
    times, later = request.times, bool(earlier)
    if later:
        sign = 1.0 if span[1] > span[0] else -1.0
        times = None if times is None else times[sign * (times - start.t) > 0.0]
    excluded = reduction.excluded
    if method.name == "dassl" and not isinstance(method.error_test, str):
        excluded = method.excluded(problem)
    elif method.error_test == "all":
        excluded = None
    dense = problem.n <= _LARGEST_WITH_DENSE_OUTPUT if request.dense_output is None else bool(request.dense_output)
    task = Task(
        workspace=workspace,
        t_span=span,
        y0=reduction.y0,
        yp0=reduction.yp0,
        rtol=rtol,
        atol=atol,
        t_eval=times,
        switching=_switching(request, assembly, reduction, start, earlier),
        max_steps=max_steps,
        first_step=request.first_step if not later else None,
        max_step=request.max_step,
        t_stop=request.t_stop,
        dense=dense,
        progress=progress,
        excluded=excluded,
        rate=reduction.rate,
    )
    if request.fixed_step is None:
        return method.integrate(task), task
    return method.integrate_fixed(task, request.fixed_step), task


def _starting_values(request, assembly, start: Start, reduction: Reduction, method):
    """The unknowns at t0, t0 + h, ... for a multistep method, from an accurate run of the underlying ODE."""
    if reduction.pack is None:
        raise InvalidProblemError(
            "multipliers that are derivatives of unknowns have no natural starting values: pass starting_values"
        )
    sign = 1.0 if request.span[1] > request.span[0] else -1.0
    times = start.t + sign * request.fixed_step * np.arange(method.max_order)
    size = max(1.0, float(np.max(np.abs(start.z), initial=0.0)))
    accurate = replace(
        request,
        span=(float(times[0]), float(times[-1])),
        rtol=np.full(request.rtol.size, 1e-13),
        atol=np.full(request.atol.size, 1e-14 * size),
        times=times,
        events=None,
        max_step=abs(request.fixed_step) / 4.0,
        t_stop=float(times[-1]),
        fixed_step=None,
    )
    choice = Choice(assembly, "projection", named_method("dopri5", {}), accurate)
    segments = _integrate(accurate, assembly, start, choice, Progress(False, accurate.span))
    outcome = segments[-1].outcome
    if outcome.interrupted:
        raise KeyboardInterrupt
    if outcome.exception is not None:
        raise outcome.exception
    t, states = outputs(accurate, segments, Salvage())
    if t.size < times.size:
        raise InvalidProblemError(
            f"accurate starting values for BDF{method.max_order} could not be computed; pass starting_values"
        )
    values = [reduction.pack(assembly.start(float(t[i]), states[i]))[0] for i in range(t.size)]
    return np.array(values).T


def _tolerances(request, assembly, reduction: Reduction, start: Start):
    """Tolerances of the unknowns: the user's for (z, r), for multipliers relative to their size at the start."""
    n, n_state = reduction.n, assembly.n_state
    rtol, atol = np.full(n, request.rtol.max()), np.full(n, request.atol.max())
    if reduction.recover is None:
        rtol[:n_state], atol[:n_state] = request.rtol, request.atol
        if n > n_state:
            size = np.max(np.abs(start.lam), initial=0.0) + np.max(np.abs(start.a), initial=0.0)
            atol[n_state:] = np.maximum(rtol[n_state:] * size, 1e-300) + request.atol.max()
            if reduction.multiplier_sizes is not None:
                sizes, units = reduction.multiplier_sizes(start)
                own = rtol[0] * sizes + request.atol.max() * units
                atol[n_state : n_state + own.size] = np.maximum(own, 1e-300)
    return rtol, atol


def _switching(request, assembly, reduction: Reduction, start: Start, earlier: list[Segment]):
    """The user's events, as functions of (t, q, v), with what has happened in earlier segments."""
    if request.events is None:
        return None
    from daedal.events.event import gather_events

    n, split = assembly.m * assembly.nx, (assembly.m - 1) * assembly.nx
    view = SimpleNamespace(n_y=split or None, params=request.problem.params)
    functions = gather_events(request.events, view, start.t, start.z, start.slope)
    if functions is None:
        return None
    for segment in earlier:
        for event in segment.outcome.events:
            functions.occurred[event.index] += 1
    inner = functions.evaluate

    def evaluate(t, y, yp):
        state = reduction.states(np.array([t]), np.ascontiguousarray(y[:, None]))[0]
        return inner(t, state[:n], state[:n])

    return replace(functions, evaluate=evaluate, plain=evaluate if reduction.recover is None else None)
