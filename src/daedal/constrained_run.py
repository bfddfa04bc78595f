"""The driver for constrained systems: consistent start, formulation, method, segments, and the way back to q and v."""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from types import SimpleNamespace
from typing import Any

import numpy as np

from daedal.analysis.singular import describe
from daedal.choice import Choice, named_method
from daedal.errors import IntegrationError, InvalidProblemError
from daedal.formulations.reduction import Reduction, attach_monitor
from daedal.formulations.sparse import SparseAssembly, is_sparse
from daedal.formulations.sparse_start import explain_sparse
from daedal.mechanical_solution import RawOutput
from daedal.mechanics.assembly import Assembly, check_point, constraint_probe, same_at
from daedal.mechanics.hessenberg import prepare_hessenberg
from daedal.mechanics.start import Start
from daedal.problems import HessenbergDAE
from daedal.problems.checks import check_vector
from daedal.progress import Progress
from daedal.solution import DenseOutput, History, Statistics

_ORDINARY = "index1, baumgarte, projection, state_space, essential or loetstedt"
_LARGEST_WITH_DENSE_OUTPUT = 1000
_CHECKED_POINTS = 8
_MOST_IDLE = 10  # restarts without a step
_BEFORE = " before projection"
_NOISE = 1e-6  # positions below this part of atol count as zero
_FAR_OFF = 1e3  # drift before projection, in units of the tolerance


@dataclass
class Request:
    """The checked arguments of :func:`daedal.solve`."""

    problem: Any
    span: tuple[float, float]
    initial: Any
    rtol: np.ndarray
    atol: np.ndarray
    times: np.ndarray | None
    events: Any
    progress: Any
    max_steps: int
    first_step: float | None
    max_step: float
    t_stop: float
    fixed_step: float | None
    dense_output: bool | None
    correct_initial: bool
    began: float


@dataclass
class Segment:
    """A stretch of the run with one formulation, method and chart."""

    reduction: Reduction
    outcome: Any
    method: Any
    formulation: Any
    stats: Statistics
    signal: int = 0  # what the hook said when it stopped the run
    singular: Any = None  # the singular configuration in which it ended
    stuck: bool = False  # whether it was the last of several that did not get ahead


class Salvage:
    """Runs what evaluates the model once more when the run is over: no failure there may lose what was computed."""

    def __init__(self):
        self.notes: list[str] = []
        self.interrupted = False
        self._reasons: set[str] = set()

    def attempt(self, what: str, action, default=None):
        """The result of ``action()``, or `default` and a note, one for each reason."""
        try:
            return action()
        except KeyboardInterrupt:
            self.interrupted = True
            note, reason = f"Interrupted while {what}.", ""
        except Exception as error:  # anything may be raised by the user's functions
            reason = f"{type(error).__name__}: {error}".rstrip(": ")
            note = f"Failed while {what}: {reason}."
        if reason not in self._reasons:
            self._reasons.add(reason)
            self.notes.append(note)
        return default


def solve_constrained(request: Request, formulation, method):
    """Solve a constrained system; see :func:`daedal.solve`."""
    from daedal.choice import Choice

    if is_sparse(request.problem, request.span[0], request.initial):
        assembly, start, notes, choice = _prepare_sparse(request, formulation, method)
    else:
        assembly, start, notes = _prepare(request)
        choice = Choice(assembly, formulation, method, request)
    progress = Progress(request.progress, request.span)
    try:
        segments = _integrate(request, assembly, start, choice, progress)
    finally:
        progress.close()
    if not _stayed_autonomous(request, assembly, segments):
        request.problem.__dict__["_autonomous"][request.span] = False
        return solve_constrained(request, formulation, method)
    solution = _solution(request, assembly, segments, [*notes, *choice.notes])
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
    t, states = _outputs(request, segments, Salvage())
    for i in np.unique(np.linspace(0, t.size - 1, min(t.size, _CHECKED_POINTS)).astype(int)):
        q = states[i, : assembly.nx]
        try:
            if not np.array_equal(probe(float(t[i]), q), probe(request.span[0], q)):
                return False
        except (Exception, KeyboardInterrupt):  # the run is over, and nothing that happens here may lose it
            continue
    return True


def _prepare(request: Request):
    """The assembled system, its consistent start, and what there is to say about it."""
    if isinstance(request.problem, HessenbergDAE):
        return prepare_hessenberg(request.problem, request.span[0], request.initial)
    return prepare_mechanical(request)


def _prepare_sparse(request: Request, formulation, method):
    """The same for a system with sparse matrices, and the formulation and method for it."""
    from daedal.choice import named_method
    from daedal.formulations.sparse_forms import SparseChoice, checked_choice
    from daedal.formulations.sparse_start import sparse_start
    from daedal.initial.mechanical import split_mechanical

    automatic = isinstance(method, str) and method == "auto"
    method = named_method("dassl", {}) if automatic else method
    checked_choice(formulation, method)
    q0, v0, *_ = split_mechanical(request.initial)
    assembly, start, notes = sparse_start(request.problem, request.span, q0, v0, correct=request.correct_initial)
    return assembly, start, notes, SparseChoice(assembly, start, request, formulation, method, automatic)


def prepare_mechanical(request: Request):
    """Consistent values of a mechanical system; redundant constraints are set aside."""
    from daedal.initial.given_derivatives import check_given
    from daedal.initial.mechanical import check_start, split_mechanical

    system, t0 = request.problem, request.span[0]
    q0, v0, r0, w0 = split_mechanical(request.initial)
    check_given(system, *check_point(system, t0, q0, v0), consistent=not request.correct_initial)
    ready = _ready_start(system, request.span, q0, v0, r0, w0)
    if ready is not None:
        check_given(system, *check_point(system, t0, q0, v0))
        return *ready, []
    atol = request.atol[: 2 * system.n_q]
    values = check_start(system, t0, q0, v0, r0=r0, w0=w0, correct=request.correct_initial, atol=atol)
    check_given(system, t0, values.q, values.v)
    autonomous = looks_autonomous(system, request.span, values.q, values.v)
    assembly = Assembly(system, t0, values.q, rows=values.rows, autonomous=autonomous)
    assembly.choose_weight(assembly.evaluate(t0, np.concatenate([values.q, values.v]), values.r))
    start = assembly.start(t0, np.concatenate([values.q, values.v, values.r]), np.concatenate([values.w, values.lam]))
    return assembly, start, list(values.notes)


def _ready_start(system, span, q0, v0, r0, w0):
    """Assembly and start if the given values are consistent to round-off and clearly regular, else None.

    Most starts are, and then the search for consistent values and redundant constraints can be spared.
    """
    if system.contact is not None or v0 is None or system.n_w or system.force_uses_multipliers:
        return None
    t, q, v = check_point(system, span[0], q0, v0)
    r = np.zeros(system.n_r) if r0 is None else check_vector(r0, system.n_r, "r0")
    if w0 is not None:
        check_vector(w0, system.n_w, "w0")
    assembly = Assembly(system, t, q, autonomous=looks_autonomous(system, span, q, v))
    z = np.concatenate([q, v])
    values = assembly.evaluate(t, z, r)
    if values is None:
        return None
    if system.n_lambda:
        jacobian, level = values["jacobian"], values["level"]
        norms = np.linalg.norm(jacobian, axis=1)
        limits = 1e-13 * norms * np.array([[np.max(np.abs(q))], [np.max(np.abs(v))]])
        if not (np.all(norms > 0.0) and np.all(np.abs(level) <= limits)):
            return None
        if np.min(np.abs(np.diag(np.linalg.qr(jacobian.T / norms, mode="r")))) < 1e-3:
            return None
    try:
        factor = np.linalg.cholesky(values["mass"])
    except np.linalg.LinAlgError:
        return None
    if np.min(np.diag(factor) ** 2 / np.diag(values["mass"])) < 1e-6:
        return None
    assembly.choose_weight(values)
    start = assembly.start(t, np.concatenate([z, r]))
    return (assembly, start) if np.all(np.isfinite(start.a)) else None


def looks_autonomous(system, span, q: np.ndarray, v: np.ndarray) -> bool:
    """Whether the constraints give the same at many times of the interval, so that they need not be differenced in t.

    What was integrated is checked for it again at the end of the run.
    """
    if system.n_lambda == 0 or (system.constraint_t is not None and system.velocity_constraint is None):
        return False
    known = system.__dict__.setdefault("_autonomous", {})
    if span not in known:
        times = span[0] + (span[1] - span[0]) * np.linspace(0.0, 1.0, 24) ** 1.5
        if len(known) > 100:
            known.clear()
        known[span] = same_at(constraint_probe(system, q, v), times, q)
    return known[span]


def _integrate(request: Request, assembly, start: Start, choice, progress) -> list[Segment]:
    """Integrate segment by segment, until the end, a failure or a terminal event."""
    segments: list[Segment] = []
    idle = 0
    assembly.direction = 1 if request.span[1] > request.span[0] else -1
    while True:
        try:
            segment = _next_segment(request, assembly, start, choice, progress, segments)
            segments.append(segment)
            outcome = segment.outcome
            if outcome.interrupted or outcome.exception is not None or not choice.goes_on(segment):
                return segments
            idle = 0 if outcome.t_reached != start.t else idle + 1
            segment.stuck = idle >= _MOST_IDLE
            if segment.stuck:
                return segments
            if segment.reduction.monitor is not None:
                assembly.usual_norms = segment.reduction.monitor.array("norms").copy()
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
    reduction = formulation.reduce(assembly, start) if choice.changed else segments[-1].reduction.restart(start)
    choice.changed = False
    watched = request.fixed_step is None or not assembly.linear
    if assembly.n_c and watched and not isinstance(assembly, SparseAssembly):
        attach_monitor(reduction, assembly, start, amplification=choice.watches_amplification)
    steps = request.max_steps - sum(segment.stats.steps for segment in segments)
    if choice.step_limit is not None:
        steps = min(steps, choice.step_limit)
    outcome, task = _run_segment(request, assembly, start, reduction, method, progress, steps, bool(segments))
    stats = task.workspace.statistics(outcome.integrator, 0.0)
    signal = int(task.workspace.system["hook_signal"])
    return Segment(reduction, outcome, method, formulation, stats, signal)


def _restart(assembly, segment: Segment) -> Start:
    """Consistent values at the end of a segment."""
    integrator = segment.outcome.integrator
    t = float(integrator["t"])
    state = segment.reduction.states(np.array([t]), integrator.array("phi")[0][:, None].copy())
    if assembly.n_c:
        assembly.project(np.array([t]), state, weight=assembly.output_weight)
    return assembly.start(t, state[0])


def _run_segment(request, assembly, start, reduction, method, progress, max_steps, later):
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
    workspace = Workspace(problem, **method.workspace_options(problem))
    rtol, atol = _tolerances(request, assembly, reduction, start)
    times = request.times
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
        switching=_switching(request, assembly, reduction, start),
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
    damping = assembly.record.array("damping").copy()
    assembly.damp(np.zeros_like(damping))
    choice = Choice(assembly, "projection", named_method("dopri5", {}), accurate)
    segments = _integrate(accurate, assembly, start, choice, Progress(False, accurate.span))
    outcome = segments[-1].outcome
    if outcome.interrupted:
        raise KeyboardInterrupt
    if outcome.exception is not None:
        raise outcome.exception
    t, states = _outputs(accurate, segments, Salvage())
    if t.size < times.size:
        raise InvalidProblemError(
            f"accurate starting values for BDF{method.max_order} could not be computed; pass starting_values"
        )
    values = [reduction.pack(assembly.start(float(t[i]), states[i]))[0] for i in range(t.size)]
    assembly.damp(damping)
    return np.array(values).T


def _tolerances(request, assembly, reduction: Reduction, start: Start):
    """Tolerances of the unknowns: the user's for (z, r), for multipliers relative to their size at the start."""
    n, n_state = reduction.problem.n, assembly.n_state
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


def _switching(request, assembly, reduction: Reduction, start: Start):
    """The user's events, as functions of (t, q, v)."""
    if request.events is None:
        return None
    from daedal.events.event import gather_events

    n, split = assembly.m * assembly.nx, (assembly.m - 1) * assembly.nx
    view = SimpleNamespace(n_y=split or None, params=request.problem.params)
    functions = gather_events(request.events, view, start.t, start.z, start.slope)
    if functions is None:
        return None
    inner = functions.evaluate

    def evaluate(t, y, yp):
        state = reduction.states(np.array([t]), np.ascontiguousarray(y[:, None]))[0]
        return inner(t, state[:n], state[:n])

    return replace(functions, evaluate=evaluate)


def _solution(request, assembly, segments: list[Segment], notes):
    salvage = Salvage()
    t, states = _outputs(request, segments, salvage)
    drift: dict[str, float] = {}
    if assembly.n_c and t.size:
        what = "projecting the output onto the constraints"
        drift = salvage.attempt(what, lambda: assembly.drift(t, states, _BEFORE), {})
        notes = [*notes, *salvage.attempt(what, lambda: _far_off(request, assembly, states, t, drift), [])]
        salvage.attempt(what, lambda: _project(assembly, t, states, salvage.notes))
        drift = salvage.attempt(what, lambda: assembly.drift(t, states), {}) | drift
    success, status, message = salvage.attempt(
        "looking for the reason of the failure",
        lambda: _ending(request, assembly, segments),
        (False, "failed", f"Stopped at t = {segments[-1].outcome.t_reached:.10g}."),
    )
    dense = salvage.attempt("preparing the dense output", lambda: _dense(segments, assembly))
    events = salvage.attempt(
        "completing the events", lambda: [_event(e, s, assembly) for s in segments for e in s.outcome.events], []
    )
    if salvage.interrupted and success:
        success, status = False, "interrupted"
    notes = [*notes, *_unresolved(request, assembly, states), *salvage.notes]
    message = " ".join([message, *notes])
    return assembly.solution(
        t=t,
        y=np.ascontiguousarray(states.T),
        success=success,
        status=status,
        message=message,
        stats=_statistics(segments, time.perf_counter() - request.began),
        names=tuple(assembly.state_names()),
        method=_told([type(s.method).__name__ for s in segments]),
        formulation=_told([_name(s.formulation) for s in segments]),
        notes=notes,
        drift=drift,
        events=events,
        history=_history(segments),
        dense=_until_the_end(request, dense, segments[-1]),
        raw=_raw(request, segments),
    )


def _project(assembly, t: np.ndarray, states: np.ndarray, notes: list[str]):
    """Project the output; what cannot be projected stays as it was integrated, and is noted."""
    failed = np.flatnonzero(assembly.project(t, states, weight=assembly.output_weight))
    if failed.size:
        notes.append(
            f"{failed.size} of {t.size} output points, the first at t = {t[failed[0]]:.6g}, could not be projected "
            "onto the constraints: they are as they were integrated."
        )


def _far_off(request: Request, assembly, states: np.ndarray, t: np.ndarray, drift: dict[str, float]) -> list[str]:
    """A note if what was integrated is farther from the constraints than the tolerances can explain."""
    if request.fixed_step is not None or isinstance(assembly, SparseAssembly):
        return []
    nx, n = assembly.nx, assembly.m * assembly.nx
    values = assembly.evaluate(float(t[-1]), states[-1, :n], states[-1, n:])
    if values is None:
        return []
    gradient = float(np.max(np.linalg.norm(values["jacobian"], axis=1)))
    for name, first in (("position", 0), ("velocity", n - nx)):
        size = float(np.max(np.abs(states[:, first : first + nx])))
        allowed = gradient * (float(request.rtol.max()) * size + float(request.atol.max()))
        found = drift.get(name + _BEFORE, 0.0)
        if allowed > 0.0 and found > _FAR_OFF * allowed:
            return [
                f"Before projection the {name}s were off the constraints by {found:.2g}, far more than the tolerances "
                "explain: look for constraints that jump or have kinks in time, for wrong derivatives (system.check), "
                "or take another formulation (auto, ggl)."
            ]
    return []


def _unresolved(request: Request, assembly, states: np.ndarray) -> list[str]:
    """A note if no position ever exceeds its atol, so that the tolerances ask for nothing."""
    if request.fixed_step is not None or states.shape[0] == 0:
        return []
    largest = np.max(np.abs(states[:, : assembly.nx]), axis=0)
    in_units = float(np.max(largest / np.maximum(request.atol[: assembly.nx], np.finfo(float).tiny)))
    if not _NOISE < in_units <= 1.0:
        return []
    return [
        f"No position exceeds its atol (the largest value is {np.max(largest):.2g}), so that the error test asked for "
        "nothing: choose atol well below the size of the variables."
    ]


def _raw(request, segments: list[Segment]) -> RawOutput | None:
    """The unknowns of the formulation, where all segments have the same."""
    names = [segment.reduction.problem.names for segment in segments]
    if any(name != names[0] for name in names):
        return None
    first = [0 if i == 0 or request.times is not None else 1 for i in range(len(segments))]
    return RawOutput(
        np.concatenate([s.outcome.t[k:] for k, s in zip(first, segments, strict=True)]),
        np.concatenate([s.outcome.y[:, k:] for k, s in zip(first, segments, strict=True)], axis=1),
        tuple(names[0] or ()),
    )


def _name(formulation) -> str:
    return type(formulation).__name__


def _told(names: list[str]) -> str:
    """The names in order, each run of equal ones once."""
    return ", then ".join(name for i, name in enumerate(names) if i == 0 or name != names[i - 1])


def _outputs(request, segments: list[Segment], salvage: Salvage):
    """Times and states (z, r) of all segments; the first point of later ones is the last of those before."""
    times, states = [], []
    for i, segment in enumerate(segments):
        t, y = segment.outcome.t, segment.outcome.y
        if i and request.times is None:
            t, y = t[1:], y[:, 1:]
        found = salvage.attempt("recovering the output", lambda s=segment, t=t, y=y: s.reduction.states(t, y))
        if found is None:
            found = _one_by_one(segment.reduction, t, y, salvage)
        times.append(t[: found.shape[0]])
        states.append(found)
    joined, all_states = np.concatenate(times), np.concatenate(states)
    singular = segments[-1].singular
    if singular is None:
        return joined, all_states
    sign = 1.0 if request.span[1] > request.span[0] else -1.0
    before = sign * (joined - singular.t) < 0.0
    return joined[before], all_states[before]


def _one_by_one(reduction: Reduction, t: np.ndarray, y: np.ndarray, salvage: Salvage) -> np.ndarray:
    """The states up to the first one that cannot be recovered."""
    rows: list[np.ndarray] = []
    for i in range(t.size):
        row = salvage.attempt(
            f"recovering the output at t = {t[i]:.6g}",
            lambda i=i: reduction.states(t[i : i + 1], np.ascontiguousarray(y[:, i : i + 1])),
        )
        if row is None:
            break
        rows.append(row)
    return np.concatenate(rows) if rows else np.empty((0, reduction.n_state))


def _event(event, segment: Segment, assembly):
    """The event with the state of the system, (q, v, r), in place of the unknowns of the formulation."""
    state = segment.reduction.states(np.array([event.t]), event.y[:, None].copy())
    if assembly.n_c:
        assembly.project(np.array([event.t]), state, weight=assembly.output_weight)
    start = assembly.start(event.t, state[0])
    return replace(event, y=state[0], yp=np.concatenate([start.slope, start.rate]))


def _ending(request, assembly, segments: list[Segment]) -> tuple[bool, str, str]:
    outcome = segments[-1].outcome
    if outcome.interrupted:
        return False, "interrupted", f"Interrupted at t = {outcome.t_reached:g}; this is what was computed until then."
    if outcome.exception is not None:
        return False, "failed", "a function of the model raised an exception"
    if segments[-1].stuck:
        return False, "failed", _stuck(segments[-1])
    if segments[-1].singular is not None:
        return False, "failed", describe(assembly, segments[-1].singular)
    if outcome.failure is not None and isinstance(assembly, SparseAssembly):
        return False, "failed", explain_sparse(assembly, segments[-1].reduction, outcome.failure)
    if outcome.failure is not None:
        from daedal.analysis.mechanism_failure import explain

        return False, "failed", explain(request, assembly, segments)
    stopping = [event for event in outcome.events if event.terminal]
    if stopping:
        last = stopping[-1]
        return True, "event", f"The event '{last.name}' stopped the integration at t = {last.t:.10g}."
    return True, "finished", f"The end of the interval, t = {request.span[1]:g}, was reached."


def _stuck(segment: Segment) -> str:
    return (
        f"Stopped at t = {segment.outcome.t_reached:.10g}: {_name(segment.formulation)} was set up anew {_MOST_IDLE} "
        "times without getting ahead. Remedy: take another formulation (auto, ggl), or give its parameters other "
        "values, for example a larger restart."
    )


def _statistics(segments: list[Segment], seconds: float) -> Statistics:
    totals = {f.name: sum(getattr(s.stats, f.name) for s in segments) for f in fields(Statistics)}
    return Statistics(**(totals | {"seconds": seconds}))


def _history(segments: list[Segment]) -> History | None:
    parts = [s.outcome.history for s in segments if s.outcome.history is not None]
    if not parts:
        return None
    return History(*[np.concatenate([part[i] for part in parts]) for i in range(3)])


def _dense(segments: list[Segment], assembly) -> DenseOutput | None:
    """The polynomials of all segments, for (z, r)."""
    parts = [_state_polynomials(s) for s in segments if s.outcome.dense is not None]
    if not parts or any(s.outcome.dense is None and s.outcome.integrator["steps"] for s in segments):
        return None
    offsets = np.concatenate([[0], np.cumsum([p.coefficients.shape[0] for p in parts])[:-1]])
    return DenseOutput(
        parts[0].t0,
        np.concatenate([p.ends for p in parts]),
        np.concatenate([p.orders for p in parts]),
        np.concatenate([p.starts + offset for p, offset in zip(parts, offsets, strict=True)]),
        np.concatenate([p.psi for p in parts]),
        np.concatenate([p.coefficients for p in parts]),
    )


def _state_polynomials(segment: Segment) -> DenseOutput:
    """The dense output of a segment, for (z, r): the leading unknowns, or interpolated through recovered points."""
    dense, reduction = segment.outcome.dense, segment.reduction
    if reduction.recover is None:
        return replace(dense, coefficients=np.ascontiguousarray(dense.coefficients[:, : reduction.n_state]))
    nodes = np.concatenate(
        [
            end - np.concatenate([[0.0], psi[:k]])
            for end, k, psi in zip(dense.ends, dense.orders, dense.psi, strict=True)
        ]
    )
    values, _ = dense.evaluate_steps(nodes, np.repeat(np.arange(dense.ends.size), dense.orders + 1))
    order = np.argsort(nodes if dense.ends[-1] >= dense.t0 else -nodes, kind="stable")
    states = np.empty((nodes.size, 0))
    recovered = reduction.states(nodes[order], values[order].T)
    states = np.empty_like(recovered)
    states[order] = recovered
    for step, start in enumerate(dense.starts):
        k = int(dense.orders[step])
        _modified_differences(states[start : start + k + 1], dense.psi[step])
    return replace(dense, coefficients=states)


def _modified_differences(rows: np.ndarray, psi: np.ndarray):
    """Turn values at t_n, t_n - psi_0, t_n - psi_1, ... into the coefficients of the Newton form, in place."""
    nodes = np.concatenate([[0.0], psi])
    count = rows.shape[0]
    for order in range(1, count):
        for j in range(count - 1, order - 1, -1):
            rows[j] = (rows[j - 1] - rows[j]) / (nodes[j] - nodes[j - order])
    factor = 1.0
    for j in range(1, count):
        factor *= psi[j - 1]
        rows[j] *= factor


def _until_the_end(request, dense: DenseOutput | None, segment: Segment) -> DenseOutput | None:
    if dense is None:
        return None
    if segment.singular is not None:
        return replace(dense, t_end=segment.singular.t)
    stopping = [event for event in segment.outcome.events if event.terminal]
    if stopping:
        return replace(dense, t_end=stopping[-1].t)
    sign = 1.0 if request.span[1] > request.span[0] else -1.0
    if sign * (dense.ends[-1] - request.span[1]) > 0.0:
        return replace(dense, t_end=request.span[1])
    return dense
