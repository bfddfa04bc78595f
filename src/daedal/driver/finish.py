"""The end of a run: the reason for termination, and the concatenated output of its segments."""

from __future__ import annotations

import time
import traceback
from contextlib import suppress
from dataclasses import fields, replace

import numpy as np

from daedal.analysis.wording import stopped
from daedal.driver.request import Request
from daedal.driver.run_segments import Segment
from daedal.errors import IntegrationError
from daedal.kernels.endings import Ending
from daedal.methods.task import Outcome
from daedal.solution.solution import DenseOutput, History, Statistics

_COUNTERS = tuple(f.name for f in fields(Statistics) if f.name not in ("seconds", "first_use"))


def ending(request: Request, segments: list[Segment], explain) -> tuple[bool, str, str]:
    """Success, status and message; ``explain()`` returns the cause of a failure."""
    outcome = segments[-1].outcome
    if outcome.interrupted:
        return False, "interrupted", f"Interrupted at t = {outcome.t_reached:g}; partial results are kept."
    if outcome.exception is not None:
        return False, "failed", "a function of the model raised an exception"
    last_one = segments[-1]
    if last_one.stopped:
        return False, "failed", stopped(outcome.t_reached, f"{last_one.stopped}.")
    failed = outcome.failure is not None or outcome.reason == Ending.STIFF
    if failed or last_one.stuck or last_one.singular is not None or last_one.unexplained:
        return False, "failed", _explained(explain, outcome)
    last = terminal_event(outcome)
    if last is not None:
        return True, "event", f"The event '{last.name}' stopped the integration at t = {last.t:.10g}."
    return True, "finished", f"The end of the interval, t = {request.span[1]:g}, was reached."


def _explained(explain, outcome) -> str:
    """The result of ``explain()``, or its exception in words: an exception must not discard the computed solution."""
    try:
        return explain()
    except KeyboardInterrupt:
        reason = "was interrupted"
    except Exception as error:
        reason = f"failed ({type(error).__name__}: {error})"
    return stopped(outcome.t_reached, f"The run could not continue. The search for the cause {reason}.")


def delivered(solution, segments: list[Segment]):
    """Return the solution; if the run failed, raise the error with the solution attached."""
    exception = segments[-1].outcome.exception
    if exception is not None:
        if hasattr(exception, "solution"):  # raised in a function of the model
            raise exception
        with suppress(AttributeError, TypeError):  # exceptions with slots do not accept attributes
            exception.solution = solution  # type: ignore[attr-defined]
        raise exception
    if solution.status == "failed":
        error = IntegrationError(solution.message, solution)
        error.ending = segments[-1].outcome.reason
        try:
            raise error
        finally:
            del error  # the traceback refers to this frame
    return solution


def clear_frames(error: BaseException | None) -> None:
    """Clear the variables of the frames in tracebacks, which refer to the error and keep its solution in memory."""
    while error is not None:
        traceback.clear_frames(error.__traceback__)
        error = error.__cause__ or error.__context__


def join_labels(names: list[str]) -> str:
    """The names in order, without consecutive repetitions."""
    return ", then ".join(name for i, name in enumerate(names) if i == 0 or name != names[i - 1])


def terminal_event(outcome):
    """The event that ended the run, or None."""
    return next((event for event in reversed(outcome.events) if event.terminal), None) if outcome.events else None


def until_the_end(request: Request, dense: DenseOutput | None, segment: Segment) -> DenseOutput | None:
    """The dense output truncated at a terminal event, a singular position or the end of `t_span`."""
    if dense is None:
        return None
    if segment.singular is not None:
        return replace(dense, t_end=segment.singular.t)
    last = terminal_event(segment.outcome)
    if last is not None:
        return replace(dense, t_end=last.t)
    if request.sign * (dense.ends[-1] - request.span[1]) > 0.0:
        return replace(dense, t_end=request.span[1])
    return dense


def joined_statistics(request: Request, segments: list[Segment]) -> Statistics:
    """The counters of all segments."""
    seconds = time.perf_counter() - request.began
    if len(segments) == 1:
        return segments[0].outcome.statistics(seconds)
    parts = [segment.outcome.statistics() for segment in segments]
    return Statistics(**{name: sum(getattr(part, name) for part in parts) for name in _COUNTERS}, seconds=seconds)


def joined_history(segments: list[Segment]) -> History | None:
    """The steps of all segments."""
    parts = [s.outcome.history for s in segments if s.outcome.history is not None]
    if len(parts) < 2:
        return History(*parts[0]) if parts else None
    return History(*[np.concatenate([part[i] for part in parts]) for i in range(3)])


def joined_outcome(request: Request, segments: list[Segment]) -> Outcome:
    """Concatenate the output of segments with the same unknowns. The last segment gives the reason for termination."""
    last = segments[-1].outcome
    if len(segments) == 1:
        return last
    outcomes = [segment.outcome for segment in segments]
    first = [
        int(i > 0 and request.times is None) for i in range(len(outcomes))
    ]  # omits the first point of a segment, which is the last point of the previous one
    kept = [o for o in outcomes if o.dense is not None]
    return replace(
        last,
        t=np.concatenate([o.t[k:] for o, k in zip(outcomes, first, strict=True)]),
        y=np.concatenate([o.y[:, k:] for o, k in zip(outcomes, first, strict=True)], axis=1),
        yp=np.concatenate([o.yp[:, k:] for o, k in zip(outcomes, first, strict=True)], axis=1),
        events=[event for o in outcomes for event in o.events],
        dense=None
        if any(o.dense is None and o.steps for o in outcomes)
        else joined_dense_output([o.dense for o in kept if o.dense is not None]),
    )


def cut(dense: DenseOutput | None, t: float) -> DenseOutput | None:
    """Dense output truncated at `t` in the last step, whose polynomial is expressed about `t`."""
    if dense is None or dense.ends[-1] == t:
        return dense
    last, k, start = dense.ends.size - 1, int(dense.orders[-1]), int(dense.starts[-1])
    nodes = t - np.concatenate([[0.0], dense.psi[last, :k]])
    rows, _ = dense.evaluate_steps(nodes, np.full(k + 1, last))
    modified_differences(rows, dense.psi[last])
    coefficients, ends = dense.coefficients.copy(), dense.ends.copy()
    coefficients[start : start + k + 1], ends[-1] = rows, t
    return replace(dense, coefficients=coefficients, ends=ends)


def line(begin: tuple[float, np.ndarray], end: tuple[float, np.ndarray], like: DenseOutput) -> DenseOutput:
    """Dense output of one linear step, with the array `psi` as wide as in `like`."""
    (t0, y0), (t, y) = begin, end
    psi = np.zeros((1, like.psi.shape[1]))
    psi[0, 0] = t - t0
    rows = np.array([y, y0])
    modified_differences(rows, psi[0, :1])
    return DenseOutput(t0, np.array([t]), np.array([1]), np.array([0]), psi, rows)


def modified_differences(rows: np.ndarray, psi: np.ndarray):
    """Convert values at t_n, t_n - psi_0, t_n - psi_1, ... to the coefficients of the Newton form, in place."""
    nodes = np.concatenate([[0.0], psi])
    count = rows.shape[0]
    for order in range(1, count):
        for j in range(count - 1, order - 1, -1):
            rows[j] = (rows[j - 1] - rows[j]) / (nodes[j] - nodes[j - order])
    factor = 1.0
    for j in range(1, count):
        factor *= psi[j - 1]
        rows[j] *= factor


def joined_dense_output(parts: list[DenseOutput]) -> DenseOutput | None:
    """Concatenate the polynomials of all segments."""
    if len(parts) < 2:
        return parts[0] if parts else None
    offsets = np.concatenate([[0], np.cumsum([p.coefficients.shape[0] for p in parts])[:-1]])
    return DenseOutput(
        parts[0].t0,
        np.concatenate([p.ends for p in parts]),
        np.concatenate([p.orders for p in parts]),
        np.concatenate([p.starts + offset for p, offset in zip(parts, offsets, strict=True)]),
        np.concatenate([p.psi for p in parts]),
        np.concatenate([p.coefficients for p in parts]),
    )
