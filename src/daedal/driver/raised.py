"""Exceptions of user functions that the reduced equations of a run do not raise."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from daedal.driver.finish import terminal_event
from daedal.driver.request import Request
from daedal.methods.task import Outcome


def until_raised(problem: Any, request: Request, outcome: Outcome) -> Outcome:
    """Truncate the output before the first point at which a function of the problem raises, and add the exception.

    Parameters
    ----------
    problem : problem
        The problem as given by the user.
    request : Request
    outcome : Outcome
        Outcome of a segment, in the unknowns of the problem. With dense output, step ends are checked too, since there
        may be few output times.
    """
    implicit, sign, dense = problem.implicit(), request.sign, outcome.dense
    for t, y, yp in _points(request, outcome):
        try:
            implicit.evaluate(t, y, yp)
        except Exception as error:
            kept = sign * (outcome.t - t) < 0.0
            return replace(
                outcome,
                t=outcome.t[kept],
                y=outcome.y[:, kept],
                yp=outcome.yp[:, kept],
                events=[event for event in outcome.events if sign * (event.t - t) < 0.0],
                dense=None if dense is None else replace(dense, t_end=t),
                exception=error,
            )
    return outcome


def _points(request: Request, outcome: Outcome) -> Iterator[tuple[float, np.ndarray, np.ndarray]]:
    """Stored points and step ends up to the end of the run, in order."""
    t, y, yp = outcome.t, outcome.y.T, outcome.yp.T
    if outcome.dense is not None:
        last = terminal_event(outcome)
        ends, end = outcome.dense.ends, request.span[1] if last is None else last.t
        ends = ends[~np.isin(ends, t) & (request.sign * (ends - end) <= 0.0)]
        values, slopes = outcome.dense.evaluate(ends)
        t, y, yp = np.concatenate([t, ends]), np.concatenate([y, values]), np.concatenate([yp, slopes])
    for i in np.argsort(request.sign * t, kind="stable"):
        yield float(t[i]), y[i], yp[i]
