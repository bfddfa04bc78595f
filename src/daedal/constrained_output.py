"""From the segments of a run of a constrained system to its solution: the way back to q and v, and how it ended."""

from __future__ import annotations

import time
from dataclasses import fields, replace

import numpy as np

from daedal.analysis.singular import describe
from daedal.analysis.sparse_failure import explain_sparse
from daedal.formulations.reduction import Reduction
from daedal.mechanical_solution import RawOutput
from daedal.mechanics.sparse.assembly import SparseAssembly
from daedal.request import Request, Segment
from daedal.solution import DenseOutput, History, Statistics

MOST_IDLE = 10  # restarts without a step
_BEFORE = " before projection"
_NOISE = 1e-6  # positions below this part of atol count as zero
_FAR_OFF = 1e3  # drift before projection, in units of the tolerance


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


def assemble_solution(request, assembly, segments: list[Segment], notes):
    salvage = Salvage()
    t, states = outputs(request, segments, salvage)
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
    for name, plural, first in (("position", "positions", 0), ("velocity", "velocities", n - nx)):
        size = float(np.max(np.abs(states[:, first : first + nx])))
        allowed = gradient * (float(request.rtol.max()) * size + float(request.atol.max()))
        found = drift.get(name + _BEFORE, 0.0)
        if allowed > 0.0 and found > _FAR_OFF * allowed:
            return [
                f"Before projection the {plural} were off the constraints by {found:.2g}, far more than the tolerances "
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
    names = [segment.reduction.names for segment in segments]
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


def outputs(request, segments: list[Segment], salvage: Salvage):
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
        f"Stopped at t = {segment.outcome.t_reached:.10g}: {_name(segment.formulation)} was set up anew {MOST_IDLE} "
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
