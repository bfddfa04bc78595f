"""Solution of a constrained system from the segments of its run, with q and v recovered from the unknowns."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from daedal.analysis.dependent_constraints import describe
from daedal.analysis.mechanism_failure import explain_sparse
from daedal.driver.finish import (
    ending,
    join_labels,
    joined_dense_output,
    joined_history,
    joined_statistics,
    modified_differences,
    until_the_end,
)
from daedal.driver.request import Request
from daedal.driver.run_segments import MOST_IDLE, Segment
from daedal.mechanics.formulations.reformulation import Reformulation
from daedal.mechanics.setting import LockedWorkspace, WorkspacePool
from daedal.solution.constrained_solution import HessenbergSolution, RawOutput
from daedal.solution.mechanical_solution import MechanicalSolution
from daedal.solution.solution import DenseOutput
from daedal.solution.status import Status

_BEFORE = " before projection"
_NOISE = 1e-6  # a note is omitted if no position exceeds this multiple of its atol
_FAR_OFF = 1e3  # drift before projection, in tolerances, above which a note is added


class PostprocessGuard:
    """Evaluates user functions after the run, where exceptions must not discard the computed results.

    Interrupts are caught as well, except during evaluation on demand.
    """

    def __init__(self, *, late: bool = False):
        self.notes: list[str] = []
        self.interrupted = False
        self._late = late
        self._reasons: set[str] = set()

    def attempt(self, what: str, action, default=None):
        """The result of ``action()``; after an exception, `default`, with one note per reason."""
        try:
            return action()
        except KeyboardInterrupt:
            if self._late:
                raise
            self.interrupted = True
            note, reason = f"Interrupted while {what}.", ""
        except Exception as error:  # users' functions may raise anything
            reason = f"{type(error).__name__}: {error}".rstrip(": ")
            note = f"Failed while {what}: {reason}."
        if reason not in self._reasons:
            self._reasons.add(reason)
            self.notes.append(note)
        return default


def finished(plan, request: Request, run_state, segments: list[Segment], t, states, salvage: PostprocessGuard):
    """The solution of a run, with its message; derived quantities are computed on demand."""
    assembly = run_state.assembly
    success, status, message = salvage.attempt(
        "searching for the cause of the failure",
        lambda: ending(request, segments, lambda: _reason(request, assembly, segments)),
        (False, "failed", f"Stopped at t = {segments[-1].outcome.t_reached:.10g}."),
    )
    dense = salvage.attempt("preparing the dense output", lambda: _dense(segments))
    if salvage.interrupted and success:
        success, status = False, "interrupted"
    kind = HessenbergSolution if assembly.linear else MechanicalSolution
    return kind(
        system=plan.problem,
        evaluator=evaluator_of(plan, assembly),
        output=Output(request, segments, run_state.notes, t, states, salvage),
        t=t,
        success=success,
        status=Status(status),
        ending=message,
        stats=joined_statistics(request, segments),
        names=plan.names,
        method=join_labels([type(s.method).__name__ for s in segments]),
        formulation=join_labels([_name(s.formulation) for s in segments]),
        history=joined_history(segments),
        dense=until_the_end(request, dense, segments[-1]),
    )


class Output:
    """Projected states, drift, events and notes, computed on demand from the stored points."""

    def __init__(self, request: Request, segments: list[Segment], notes, t, states, salvage: PostprocessGuard):
        self._settings, self._each_step, self._salvage = request.settings, request.times is None, salvage
        self._t, self.states, self._notes = t, states, notes
        self._stored = [(s.outcome.t, s.outcome.y, s.equations.names) for s in segments]
        self._events = salvage.attempt(
            "completing the events",
            lambda: [(event, _state_of(event, s)) for s in segments for event in s.outcome.events],
            [],
        )

    def projected(self, assembly) -> tuple[np.ndarray, dict[str, float], list[str]]:
        """States (z, r) projected onto the constraints, in columns; drift before and after; notes."""
        settings, t, states = self._settings, self._t, self.states.copy()
        salvage, notes, drift = PostprocessGuard(late=True), list(self._notes), {}
        if assembly.n_c and t.size:
            what = "projecting the output onto the constraints"
            drift = salvage.attempt(what, lambda: assembly.drift(t, states, _BEFORE), {})
            notes += salvage.attempt(what, lambda: _far_off(settings, assembly, states, t, drift), [])
            salvage.attempt(what, lambda: _project(assembly, t, states, salvage.notes))
            drift = salvage.attempt(what, lambda: assembly.drift(t, states), {}) | drift
        notes += _unresolved(settings, assembly, states)
        return np.ascontiguousarray(states.T), drift, [*notes, *self._salvage.notes, *salvage.notes]

    def events(self, assembly) -> list:
        return PostprocessGuard(late=True).attempt(
            "completing the events", lambda: [_complete(event, state, assembly) for event, state in self._events], []
        )

    def raw(self) -> RawOutput | None:
        """The unknowns of the formulation by name; empty unless all segments have the same formulation."""
        _, y, names = self._stored[0]
        if any(part[2] != names for part in self._stored):
            return None
        first = [0 if i == 0 or not self._each_step else 1 for i in range(len(self._stored))]
        return RawOutput(
            np.concatenate([t[k:] for k, (t, _, _) in zip(first, self._stored, strict=True)]),
            np.concatenate([y[:, k:] for k, (_, y, _) in zip(first, self._stored, strict=True)], axis=1),
            tuple(names or (f"unknowns[{i}]" for i in range(y.shape[0]))),
        )


def evaluator_of(plan, assembly):
    """Evaluator of the system of a solution, with a separate assembly; not thread-safe."""
    if assembly.is_sparse or plan.starts is None:
        return LockedWorkspace(assembly)
    return WorkspacePool(plan.starts.pool, plan.problem, assembly.setting)


def _project(assembly, t: np.ndarray, states: np.ndarray, notes: list[str]):
    """Project the output; points that cannot be projected remain as integrated, with a note."""
    failed = np.flatnonzero(assembly.project(t, states, weight=assembly.output_weight))
    if failed.size:
        notes.append(
            f"{failed.size} of {t.size} output points, the first at t = {t[failed[0]]:.6g}, could not be projected "
            f"onto the constraints and are returned as integrated."
        )


def _far_off(settings, assembly, states: np.ndarray, t: np.ndarray, drift: dict[str, float]) -> list[str]:
    """Add a note if the drift exceeds what the tolerances explain."""
    if settings.fixed_step is not None or assembly.is_sparse:
        return []
    nx, n = assembly.nx, assembly.m * assembly.nx
    rtol, atol = np.max(settings.rtol), np.max(settings.atol)
    gradients = assembly.gradients(float(t[-1]), states[-1])
    if gradients is None:
        return []
    gradient = float(np.max(np.linalg.norm(gradients, axis=1)))
    for name, plural, first in (("position", "positions", 0), ("velocity", "velocities", n - nx)):
        size = float(np.max(np.abs(states[:, first : first + nx])))
        allowed = gradient * (rtol * size + atol)
        found = drift.get(name + _BEFORE, 0.0)
        if allowed > 0.0 and found > _FAR_OFF * allowed:
            return [
                f"Before projection the {plural} violated the constraints by {found:.2g}, far more than the tolerances "
                "explain: check for constraints that jump or have kinks in time, for wrong derivatives (system.check), "
                "or use another formulation (auto, ggl)."
            ]
    return []


def _unresolved(settings, assembly, states: np.ndarray) -> list[str]:
    """Add a note if all positions stay below atol, so that the error test has no effect."""
    if settings.fixed_step is not None or states.shape[0] == 0:
        return []
    largest = np.max(np.abs(states[:, : assembly.nx]), axis=0)
    atol = np.broadcast_to(np.asarray(settings.atol, dtype=float), (states.shape[1],))[: assembly.nx]
    in_units = float(np.max(largest / np.maximum(atol, np.finfo(float).tiny)))
    if not _NOISE < in_units <= 1.0:
        return []
    return [
        f"No position exceeds its atol (the largest value is {np.max(largest):.2g}), so that the error test had no "
        "effect: choose atol well below the size of the variables."
    ]


def _name(formulation) -> str:
    return type(formulation).__name__


def outputs(request, segments: list[Segment], salvage: PostprocessGuard):
    """Times and states (z, r) of all segments, without duplicates at their boundaries."""
    times, states = [], []
    for i, segment in enumerate(segments):
        t, y = segment.outcome.t, segment.outcome.y
        if i and request.times is None:
            t, y = t[1:], y[:, 1:]
        found = salvage.attempt("recovering the output", lambda s=segment, t=t, y=y: s.equations.states(t, y))
        if found is None:
            found = _one_by_one(segment.equations, t, y, salvage)
        times.append(t[: found.shape[0]])
        states.append(found)
    joined, all_states = (times[0], states[0]) if len(times) == 1 else (np.concatenate(times), np.concatenate(states))
    singular = segments[-1].singular
    if singular is None:
        return joined, all_states
    before = request.sign * (joined - singular.t) < 0.0
    return joined[before], all_states[before]


def _one_by_one(reduction: Reformulation, t: np.ndarray, y: np.ndarray, salvage: PostprocessGuard) -> np.ndarray:
    """The states up to the first that cannot be recovered."""
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


def _state_of(event, segment: Segment) -> np.ndarray:
    return segment.equations.states(np.array([event.t]), event.y[:, None].copy())


def _complete(event, state: np.ndarray, assembly):
    state = state.copy()
    if assembly.n_c:
        assembly.project(np.array([event.t]), state, weight=assembly.output_weight)
    start = assembly.start(event.t, state[0])
    return replace(event, y=state[0], yp=np.concatenate([start.slope, start.rate]))


def _reason(request: Request, assembly, segments: list[Segment]) -> str:
    """Message of a run that failed."""
    last = segments[-1]
    if last.stuck:
        return _stuck(last)
    if last.unexplained:
        return last.unexplained
    if last.singular is not None:
        return describe(assembly, last.singular)
    if assembly.is_sparse:
        return explain_sparse(assembly, last.equations, last.outcome.failure)
    from daedal.analysis.mechanism_failure import explain

    return explain(request, assembly, segments)


def _stuck(segment: Segment) -> str:
    return (
        f"Stopped at t = {segment.outcome.t_reached:.10g}: {_name(segment.formulation)} was restarted {MOST_IDLE} "
        "times without progress. Remedy: use another formulation (auto, ggl), or change its parameters, "
        "for example a larger restart."
    )


def _dense(segments: list[Segment]) -> DenseOutput | None:
    """The polynomials of (z, r) in all segments."""
    if any(s.outcome.dense is None and s.outcome.steps for s in segments):
        return None
    return joined_dense_output([_state_polynomials(s) for s in segments if s.outcome.dense is not None])


def _state_polynomials(segment: Segment) -> DenseOutput:
    """Dense output of (z, r) in a segment, from the leading unknowns or by interpolation of recovered states."""
    dense, reduction = segment.outcome.dense, segment.equations
    assert dense is not None
    if reduction.recover is None and dense.coefficients.shape[1] == reduction.n_state:
        return dense
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
    recovered = reduction.states(nodes[order], values[order].T)
    states = np.empty_like(recovered)
    states[order] = recovered
    for step, start in enumerate(dense.starts):
        k = int(dense.orders[step])
        modified_differences(states[start : start + k + 1], dense.psi[step])
    return replace(dense, coefficients=states)
