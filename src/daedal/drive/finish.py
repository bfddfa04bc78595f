"""The end of a run: how it ended, in words, and what its segments stored, joined."""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import fields, replace

import numpy as np

from daedal.analysis.endings import stopped
from daedal.drive.request import Request
from daedal.drive.run import Segment
from daedal.errors import IntegrationError
from daedal.solution import DenseOutput, History, Statistics

_COUNTERS = tuple(f.name for f in fields(Statistics) if f.name != "seconds")


def ending(request: Request, segments: list[Segment], explain) -> tuple[bool, str, str]:
    """Success, status and message; ``explain()`` says why a run failed."""
    outcome = segments[-1].outcome
    if outcome.interrupted:
        return False, "interrupted", f"Interrupted at t = {outcome.t_reached:g}; this is what was computed until then."
    if outcome.exception is not None:
        return False, "failed", "a function of the model raised an exception"
    last_one = segments[-1]
    if outcome.failure is not None or last_one.stuck or last_one.singular is not None or last_one.unexplained:
        return False, "failed", _explained(explain, outcome)
    last = terminal_event(outcome)
    if last is not None:
        return True, "event", f"The event '{last.name}' stopped the integration at t = {last.t:.10g}."
    return True, "finished", f"The end of the interval, t = {request.span[1]:g}, was reached."


def _explained(explain, outcome) -> str:
    """What `explain` says; whatever happens to it, what was computed is not lost."""
    try:
        return explain()
    except KeyboardInterrupt:
        reason = "was interrupted"
    except Exception as error:
        reason = f"failed ({type(error).__name__}: {error})"
    return stopped(outcome.t_reached, f"the run could not go on. The cause was looked for, but the search {reason}.")


def delivered(solution, segments: list[Segment]):
    """The solution, or the error that goes with it."""
    exception = segments[-1].outcome.exception
    if exception is not None:
        if hasattr(exception, "solution"):  # of a run inside a function of the model
            raise exception
        with suppress(AttributeError, TypeError):  # exceptions with slots take no attributes
            exception.solution = solution  # type: ignore[attr-defined]
        raise exception
    if solution.status == "failed":
        raise IntegrationError(solution.message, solution)
    return solution


def terminal_event(outcome):
    """The event that ended the run, or None."""
    return next((event for event in reversed(outcome.events) if event.terminal), None)


def until_the_end(request: Request, dense: DenseOutput | None, segment: Segment) -> DenseOutput | None:
    """The dense output without what lies beyond a terminal event, a singular position or the end of `t_span`."""
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


def joined_dense_output(parts: list[DenseOutput]) -> DenseOutput | None:
    """The polynomials of all segments as one."""
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
