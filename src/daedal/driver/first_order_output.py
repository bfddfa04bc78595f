"""Solution of a first-order run, with notes on what the user should know."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from daedal.analysis.wording import fixed_step_failed, stopped
from daedal.driver.finish import ending, join_labels, joined_history, joined_outcome, joined_statistics, until_the_end
from daedal.driver.request import Request
from daedal.driver.run_segments import Segment
from daedal.kernels.endings import Ending
from daedal.problems import SemiExplicitDAE
from daedal.solution.solution import Solution, Statistics
from daedal.solution.status import Status

RUNAWAY = 1e10
"""Growth of a variable after the failure of a method, beyond which the result is not taken for the solution."""
_SIGNIFICANT = 1e3  # size of a variable, in units of atol, above which its growth is judged
_SETTLED = 10  # number of steps after which the order of a multistep method is meaningful
_UNRESOLVED = (
    10.0  # interpolation error of variables outside the error test, in tolerances, above which a note is added
)


def finished(
    plan, request: Request, segments: list[Segment], excluded, notes: list[str], further: list[str], projection=None
) -> Solution:
    """The solution from all segments; `notes` describe changes of the method."""
    stats = joined_statistics(request, segments)
    while len(segments) > 1 and not segments[-1].outcome.steps and all(s.outcome.failure for s in segments[-2:]):
        segments, notes = segments[:-1], notes[:-1]
    segment, outcome = segments[-1], joined_outcome(request, segments)

    def explain() -> str:
        from daedal.analysis.diagnosis import diagnose

        if outcome.reason == Ending.STIFF:
            remedy = (
                "Remedy: use method='auto', which switches to implicit methods, or an implicit method such as 'radau'."
            )
            return stopped(outcome.t_reached, f"the equations are stiff there. {remedy}")
        step = request.settings.fixed_step
        if step is not None and outcome.failure.code == Ending.NEWTON_FAILED:
            return fixed_step_failed(outcome.failure, step)
        steps = sum(part.outcome.steps for part in segments)
        start = (outcome.t[0], outcome.y[:, 0], outcome.yp[:, 0]) if outcome.t.size else None
        failure = replace(outcome.failure, t_span=request.span, steps=steps, start=start)
        return diagnose(plan.implicit, failure, request.remedies_taken, request.problem)

    success, status, message = ending(request, segments, explain)
    if success and segment.may_be_singular and outcome.t.size:
        arbitrary = _arbitrary(plan, request, outcome)
        if arbitrary:
            success, status = False, "failed"
            message = f"{message} However, the computed values are arbitrary: {arbitrary}."
    left_at = runaway(plan, segments, outcome) if success else None
    if left_at is not None:
        success, status = False, "failed"
        message = (
            f"{message} However, the run has probably left the solution at t = {left_at:.6g}, where a method failed: "
            "afterwards, variables grew to more than 1e10 times their previous values. Remedy: set max_step to a "
            "hundredth of the interval, so that Newton's method starts closer to the solution, and check the initial "
            "values."
        )
    if status == "finished":
        message += complaint(stats, plan.ordinary is not None)
        if segment.method.is_multistep:
            message += _between_steps(plan, outcome, excluded)
    problem, drift = plan.semi_explicit, {}
    if problem is not None:
        drift["constraint"] = _constraint_drift(problem, outcome)
    if projection is not None:
        outcome.y, drift["invariants"] = projection.onto(outcome.t, outcome.y)
        changing = projection.invariants.along(outcome.t, outcome.y, outcome.yp, plan.problem.params)
        if success and changing:
            success, status, message = False, "failed", f"{message} However, {changing}."
    message = " ".join([message, *notes, *further])
    return Solution(
        t=outcome.t,
        y=outcome.y,
        yp=outcome.yp,
        success=success,
        status=Status(status),
        message=message,
        stats=stats,
        names=plan.names,
        method=methods_of(segments),
        drift=drift or None,
        events=outcome.events,
        history=joined_history(segments),
        dense=until_the_end(request, outcome.dense, segment),
        n_differential=None if problem is None else problem.n_y,
    )


def runaway(plan, segments: list[Segment], outcome) -> float | None:
    """The time of the first failure of a method after which variables grew beyond all bounds; None otherwise."""
    failed = [segment.outcome.t_reached for segment in segments[:-1] if segment.outcome.failure is not None]
    if not failed or not outcome.t.size:
        return None
    sign = 1.0 if outcome.t[-1] >= outcome.t[0] else -1.0
    before = sign * outcome.t <= sign * failed[0]
    if not before.any():
        return None
    atol = plan.atol if plan.atol.size == len(outcome.y) else np.max(plan.atol)
    sizes = np.abs(outcome.y[:, before]).max(axis=1)
    grown = (np.abs(outcome.y[:, -1]) > RUNAWAY * sizes) & (sizes > _SIGNIFICANT * atol)
    return failed[0] if grown.any() else None


def methods_of(segments: list[Segment]) -> str:
    """Names of the methods used, in order."""
    if len(segments) == 1:
        return segments[0].method.title
    methods = [segment.method for segment in segments if segment.outcome.steps] or [segments[-1].method]
    if all(method is methods[0] for method in methods):
        return methods[0].title
    return join_labels([type(method).__name__ for method in methods])


def complaint(stats: Statistics, ordinary: bool = False) -> str:
    """A sentence on runs with many rejected attempts, such as more than accepted steps; otherwise empty."""
    if stats.rejected <= stats.steps and (stats.steps < 1000 or stats.rejected < 0.3 * stats.steps):
        return ""
    cause = "" if ordinary else "variables of index 2 or higher (use method='dassl' with error_test='differential'), "
    return (
        f" However, {stats.rejected} attempts were rejected for {stats.steps} accepted steps: check for {cause}"
        "discontinuities (use events) or an atol that is too small."
    )


def _arbitrary(plan, request: Request, outcome) -> str:
    """Description of the unknowns that are undetermined at the start; they may later dominate the solution."""
    from daedal.analysis.undetermined import in_words, undetermined

    start = outcome.t[0], outcome.y[:, 0], outcome.yp[:, 0]
    found = undetermined(plan.implicit, [start], abs(request.span[1] - request.span[0]))
    return "" if found is None else in_words(plan.problem, found)


def _between_steps(plan, outcome, excluded: np.ndarray | None) -> str:
    """A sentence on variables outside the error test whose interpolation between steps is inaccurate; otherwise empty.

    The polynomial of a step, extrapolated to the end of the next step, misses the value there by a difference of order
    k + 1. For equal steps, the interpolation error of degree k at the middle of a step is 1/(8k) of this difference.
    """
    dense = outcome.dense
    if excluded is None or dense is None or dense.ends.size < _SETTLED:
        return ""
    left_out = np.flatnonzero(excluded) if excluded.dtype == bool else np.asarray(excluded)
    if left_out.size == 0:
        return ""
    steps = np.arange(_SETTLED - 2, dense.ends.size - 1)
    predicted = dense.evaluate_steps(dense.ends[steps + 1], steps)[0][:, left_out]
    reached = dense.coefficients[dense.starts[steps + 1]][:, left_out]
    missed = np.abs(reached - predicted) / (8.0 * dense.orders[steps + 1])[:, None]
    ratio = missed / (plan.rtol[left_out] * np.max(np.abs(reached), axis=0) + plan.atol[left_out])
    step, i = np.unravel_index(np.argmax(ratio), ratio.shape)
    if not ratio[step, i] > _UNRESOLVED:
        return ""
    return (
        f" Between steps, {plan.names[left_out[i]]} may be wrong by about {missed[step, i]:.1g} near "
        f"t = {dense.ends[steps[step] + 1]:.4g}: it is not in the error test, and the steps are too long for its "
        "interpolation. Its values at the steps are not affected (t_eval=None); for values in between use "
        "method='dassl' with error_test='all', a max_step, or breakpoints at its kinks."
    )


def _constraint_drift(problem: SemiExplicitDAE, outcome) -> float:
    """Largest |g| over at most 200 output points, skipping those where g cannot be evaluated."""
    count, split = outcome.t.size, problem.n_y
    largest = np.nan
    for i in np.unique(np.linspace(0, count - 1, min(count, 200)).astype(int)):
        try:
            residual = problem.constraint(outcome.t[i], outcome.y[:split, i], outcome.y[split:, i])
        except Exception:  # the run is over; exceptions must not discard its results
            continue
        except KeyboardInterrupt:
            break
        largest = np.fmax(largest, np.max(np.abs(residual)))
    return float(largest)
