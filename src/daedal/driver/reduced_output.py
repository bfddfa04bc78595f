"""Solution of a reduced problem in the user's unknowns, and explanation of failures."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from daedal.analysis.wording import FROM_ZERO
from daedal.common.tabular import derivative_name, listing
from daedal.driver.finish import (
    ending,
    joined_history,
    joined_outcome,
    joined_statistics,
    terminal_event,
    until_the_end,
)
from daedal.driver.first_order_output import complaint, methods_of
from daedal.driver.request import Request
from daedal.driver.run_segments import Segment
from daedal.index.reduction.prolongation import Block
from daedal.index.reduction.reduced_problem import ReducedProblem
from daedal.index.structure.derivative_array import equation_in_words
from daedal.methods.task import Outcome
from daedal.problems import SemiExplicitDAE
from daedal.solution.solution import Solution
from daedal.solution.status import Status

_MOST_POINTS, _MOST_NAMED = 50, 6
# singular value of the scaled system Jacobian below which a failed run is attributed to a singular point
_NEARLY_SINGULAR = 1e-6


Selections = list[tuple[float, ReducedProblem]]
"""Selections of derivatives with their start times, in order."""


def in_the_users_unknowns(selections: Selections, outcome: Outcome, sizes: np.ndarray) -> Outcome:
    """Output of a segment in the user's unknowns, projected onto all equations. Step polynomials are not projected."""
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
    """y and y' of the original problem at output points, computed with the selection valid at each time.

    Points that cannot be projected are returned as integrated.
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
    stats = joined_statistics(request, segments)
    segment, outcome, problem = segments[-1], joined_outcome(request, segments), plan.original
    success, status, message = ending(request, segments, lambda: explain(plan, request, segments))
    if status == "finished":
        message += complaint(stats)
    return Solution(
        t=outcome.t,
        y=outcome.y,
        yp=outcome.yp,
        success=success,
        status=Status(status),
        message=" ".join([message, *plan.reduction.words, *notes]),
        stats=stats,
        names=tuple(problem.label(i) for i in range(problem.n)),
        method=methods_of(segments),
        drift=_drift(plan.reduction, outcome),
        events=outcome.events,
        history=joined_history(segments),
        dense=until_the_end(request, outcome.dense, segment),
        n_differential=problem.n_y if isinstance(problem, SemiExplicitDAE) else None,
    )


def _drift(reduction: ReducedProblem, outcome: Outcome) -> dict[str, float]:
    """Largest residual of the explicit and hidden constraints at some output points."""
    largest = np.zeros(2)
    for i in np.unique(np.linspace(0, outcome.t.size - 1, min(outcome.t.size, _MOST_POINTS)).astype(int)):
        u = reduction.around(outcome.y[:, i], outcome.yp[:, i])
        largest = np.fmax(largest, reduction.largest_residual(float(outcome.t[i]), u))
    return {"constraint": float(largest[0]), "hidden": float(largest[1])}


# --- failures ---------------------------------------------------------------------------------------------------------


def explain(plan, request: Request, segments: list[Segment]) -> str:
    """Explanation of a failure in terms of the user's equations and unknowns."""
    from daedal.analysis.diagnosis import diagnose

    segment, reduction = segments[-1], plan.reduction
    outcome = segment.outcome
    if segment.singular is not None:
        return _singular(segment.singular.t, *_named(reduction, segment.singular.block))
    failure = replace(outcome.failure, t_span=request.span, steps=sum(part.outcome.steps for part in segments))
    u = reduction.all_unknowns(failure.y[None], failure.yp[None])[0]
    found = reduction.regularity(failure.t, u)
    if found is not None and found.smallest < _NEARLY_SINGULAR:
        c, d, names = reduction.prolongation.c, reduction.prolongation.d, reduction.prolongation.equations.names
        words = [equation_in_words(i, c[i]) for i in found.equations]
        return _singular(failure.t, words, [derivative_name(names[j], d[j]) for j in found.unknowns])
    return _translated(diagnose(plan.implicit, failure, request.remedies_taken), reduction.equation_words)


def at_start(reduction: ReducedProblem, t: float, block: Block) -> str:
    """Message for a run that cannot start, since its start is a singular point."""
    equations, unknowns = (_few(words) for words in _named(reduction, block))
    return (
        f"the initial values at t = {t:g} are a singular point: {equations} {FROM_ZERO} do not fully determine "
        f"{unknowns} there. Remedy: start at another point, or check for redundant equations"
    )


def _named(reduction: ReducedProblem, block: Block) -> tuple[list[str], list[str]]:
    words = [equation_in_words(i, r) for i, r in block.equations]
    return words, [reduction.prolongation.names[k] for k in block.columns]


def _few(words: list[str]) -> str:
    return listing(words[:_MOST_NAMED], len(words))


def _singular(t: float, equations: list[str], unknowns: list[str]) -> str:
    return (
        f"Stopped at t = {t:.6g}: {_few(equations)} {FROM_ZERO} no longer determine {_few(unknowns)}. The index "
        "changes here, or the solution passes a singular point, after which it need not be unique.\n"
        "Remedy: end the run before this point (t_span, or a terminal event), or reformulate the equations so that "
        "they remain independent there."
    )


def _translated(message: str, words: list[str]) -> str:
    """A message with the numbers of reduced equations replaced by words about the user's equations."""

    def in_given_words(match: re.Match) -> str:
        numbers = [int(k) for k in re.findall(r"\d+", match.group(2))]
        if any(k >= len(words) for k in numbers):
            return match.group(0)
        named = listing(dict.fromkeys(words[k] for k in numbers))
        return named[0].upper() + named[1:] if match.group(1) == "E" else named

    return re.sub(r"\b([Ee])quations? (\d+(?:, \d+)*(?: and \d+)?)\b(?! differentiated)", in_given_words, message)


# --- exceptions of user functions -------------------------------------------------------------------------------------


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
