"""Explain why an integration stopped: the troubleshooting guide of Brenan, Campbell and Petzold, section 5.3.2."""

from collections.abc import Callable
from typing import Any

import numpy as np

from daedal.analysis.causes import (
    Case,
    break_in_time,
    coarse_clock,
    discontinuity,
    drowned,
    fold,
    higher_index,
    inaccurate_differences,
    inconsistent_start,
    inconstant,
    masked_index_two,
    newton_trouble,
    singular_pencil,
    singularity,
    wrong_jacobian,
)
from daedal.analysis.probe import LARGEST_DENSE, Path, along, bad_equations, culprits, find_edge, flow, in_time
from daedal.analysis.wording import (
    FROM_ZERO,
    MOST_NAMED,
    Failure,
    counted,
    crawls,
    describe_inconsistency,
    equations,
    largest,
    listing,
    measured,
    more_steps,
    number,
    steps_left,
    stopped,
)
from daedal.kernels.endings import MEANINGS, Ending

__all__ = ["describe_inconsistency", "diagnose"]

_ROUNDOFF = np.finfo(float).eps
_OFTEN = 0.3  # number of failures per accepted step above which failures are frequent


def diagnose(problem: Any, failure: Failure, taken: frozenset[str] = frozenset(), stated: Any = None) -> str:
    """Describe a failure in three to eight lines: what happened, where, variables concerned, likely cause, remedies.

    The residual of `problem` is evaluated near the point of failure; an exception raised there is suppressed. `taken`
    are remedies already applied by the user, which are not suggested again: "correct_initial", "None". `stated` is the
    problem as given by the user, if `problem` was derived from it.
    """
    case = Case(problem, failure, taken, stated)
    speakers: dict[int, Callable[[Case], list[str]]] = {
        Ending.MAX_STEPS: _step_limit,
        Ending.STALLED: _step_limit,
        Ending.TOO_ACCURATE: _too_tight,
        Ending.ZERO_WEIGHT: _zero_weight,
        Ending.MATRIX_SINGULAR: _singular,
        Ending.UNEVALUABLE: _not_evaluable,
        Ending.KRYLOV_FAILED: _krylov,
    }
    speak = speakers.get(failure.code, _no_progress)
    with np.errstate(all="ignore"):
        return "\n".join([_what_happened(case), *_guarded(_components, case), *_guarded(speak, case)])


def _guarded(speak: Callable[[Case], list[str]], case: Case) -> list[str]:
    """The sentences returned by `speak`; an exception becomes a sentence, so that the partial solution is not lost."""
    try:
        return speak(case)
    except Exception as error:
        return [f"The search for the cause failed ({type(error).__name__}: {error})."]


def _what_happened(case: Case) -> str:
    failure = case.failure
    concerned = case.name(failure.component) if 0 <= failure.component < case.n else "a variable"
    meaning = MEANINGS.get(failure.code, "the integrator gave up").format(
        steps=counted(failure.steps, "step"), variable=concerned
    )
    details = " (the start)" if case.at_start else ""
    if failure.code not in (Ending.TOO_ACCURATE, Ending.ZERO_WEIGHT):
        details += f", step size {number(failure.h)}, order {failure.order}"
    return stopped(failure.t, f"{meaning}.", digits=4, details=details)


def _components(case: Case) -> list[str]:
    if case.failure.code in (Ending.MAX_STEPS, Ending.STALLED, Ending.TOO_ACCURATE, Ending.ZERO_WEIGHT):
        return []
    broken = np.flatnonzero(~np.isfinite(case.failure.tried_y))
    if broken.size:
        return [f"Not finite in the failed step: {case.names(broken)}."]
    worst = [j for j in largest(case.corrections) if case.corrections[j] > 1.0]
    if not worst:
        return []
    named = listing(f"{case.name(j)} ({number(case.corrections[j])})" for j in worst)
    return [f"Changed most in the failed step, in units of the tolerance: {named}."]


def _first_found(case: Case, *finders: Callable[[Case], list[str] | None]) -> list[str]:
    for find in finders:
        found = find(case)
        if found:
            return found
    return []


_EQUATIONS = (coarse_clock, inconstant, break_in_time, singular_pencil, higher_index, wrong_jacobian, discontinuity)


def _no_progress(case: Case) -> list[str]:
    finders = (*_EQUATIONS, inconsistent_start, singularity, fold, masked_index_two, newton_trouble, drowned)
    found = _first_found(case, *finders)
    if found:
        return found
    if case.at_start and not case.taken:
        found = [
            "Likely cause: inconsistent initial values, or equations that change abruptly at the start.",
            "Remedy: let Daedal compute the initial values (correct_initial=True, or None as the second part of "
            "initial).",
        ]
    else:
        found = [
            (
                "Likely cause: the solution or the equations are not smooth here, or the tolerances are tighter than "
                "the accuracy of the residual."
            ),
            "Remedy: loosen rtol and atol; inspect the partial solution (error.solution).",
        ]
    return _not_analysed(case) + found


def _not_analysed(case: Case) -> list[str]:
    if case.n <= LARGEST_DENSE:
        return []
    return [
        f"The index was not examined: this is done for up to {LARGEST_DENSE} unknowns, and this problem has {case.n}."
    ]


def _step_limit(case: Case) -> list[str]:
    failure = case.failure
    t0, t1 = failure.t_span
    rest = steps_left(failure, failure.t_span)
    lines = [
        (
            f"The run covered {number(100.0 * case.elapsed / case.span)} % of the interval from {number(t0)} to "
            f"{number(t1)}; at the last step size the rest requires about {measured(np.ceil(rest), 'step')} more."
        )
    ]
    crawling = crawls(failure, rest)
    if crawling or failure.error_test_failures + failure.newton_failures > _OFTEN * failure.steps:
        found = _first_found(case, *_EQUATIONS, newton_trouble)
        if found:
            return lines + found
    if not crawling:
        return lines + [f"Remedy: {more_steps(failure, failure.t_span)}."]
    return (
        lines
        + _not_analysed(case)
        + [
            "Likely cause: the steps are far too short for this interval: a fast oscillation, a singularity, or "
            "tolerances that are too tight.",
            (
                "Remedy: inspect the partial solution (error.solution); loosen rtol and atol, or set atol by the size "
                "of each variable."
            ),
        ]
    )


def _too_tight(case: Case) -> list[str]:
    failure = case.failure
    ratio = np.abs(failure.y) / case.weights
    factor = 1000.0 * _ROUNDOFF * np.sqrt(np.mean(ratio**2))
    named = listing(
        f"{case.name(j)} = {number(failure.y[j])} with tolerance {number(case.weights[j])}" for j in largest(ratio)
    )
    return [
        f"Likely cause: rtol or atol is too small: {named}. Double precision has about 16 digits; DASSL needs some "
        "of them.",
        f"Remedy: multiply rtol and atol by {number(max(factor, 10.0))} or more; rtol below 1e-13 is seldom useful.",
    ]


def _zero_weight(case: Case) -> list[str]:
    j = case.failure.component
    name, which = (case.name(j), f"atol[{j}]") if 0 <= j < case.n else ("a variable", "atol")
    return [
        f"Likely cause: atol is zero for {name}, and {name} is zero here, so that no error would be allowed.",
        (
            f"Remedy: make {which} positive: the size below which {name} is negligible. atol may be an array with one "
            "entry per variable."
        ),
    ]


def _singular(case: Case) -> list[str]:
    found = _first_found(case, singular_pencil, wrong_jacobian, higher_index, inaccurate_differences)
    return found or _not_analysed(case) + [
        "Likely cause: an equation that repeats others (in a discretised partial differential equation often a "
        "boundary condition stated twice), or one that is missing.",
        "Remedy: count equations and unknowns, and check jacobian, sparsity and bandwidth if you gave them.",
    ]


def _krylov(case: Case) -> list[str]:
    return _first_found(case, singular_pencil, higher_index) or [
        "Likely cause: the preconditioner is too far from dF/dy + cj dF/dy' for GMRES to reach its tolerance.",
        "Remedy: give a better preconditioner (ILUPreconditioner, BandedPreconditioner, BlockDiagonalPreconditioner "
        "or your own Preconditioner), allow more iterations "
        f"(linear_solver=daedal.linear_solvers.GMRES(basis_size={min(case.n, 40)}, "
        'restarts=10)), or use a direct solver (linear_solver="sparse").',
    ]


def _not_evaluable(case: Case) -> list[str]:
    if case.failure.jacobian_unevaluable:
        return [
            "Likely cause: jacobian, not the residual, returned NaN or an infinity, or raised daedal.Unevaluable.",
            "Remedy: check jacobian near this point, or omit it: finite differences are then used.",
        ]
    found = inconstant(case)
    if found:
        return found
    bad, complaint = bad_equations(case.probe, *case.point)
    if bad:
        reason = complaint or f"NaN or infinity in {equations(bad)} {FROM_ZERO}"
        below = _below_zero(case)
        if below:
            verb = "has" if len(below) == 1 else "have"
            return [
                f"Likely cause: {case.names(below)} {verb} become negative by less than the tolerance: {reason}.",
                _domain_remedy(case, below, case.failure.y, case.failure.t),
            ]
        return [
            f"The equations cannot be evaluated at the last good point either: {reason}.",
            "Remedy: evaluate the residual there by hand; error.solution holds the values.",
        ]
    passing = in_time(*case.point, case.h, case.failure.t_span)
    if find_edge(case.probe, passing) is None:
        found = singularity(case)
        if found:
            return found
    for path in (passing, *_paths_ahead(case)):
        edge = find_edge(case.probe, path)
        if edge is None:
            continue
        t, y, _ = path(edge.good)
        guilty = culprits(case.probe, path, edge)
        passed = [f"{case.name(j)} = {number(y[j])}" for j in guilty[:MOST_NAMED]] or [f"t = {number(t)}"]
        if edge.complaint:
            what = f"the residual raises {edge.complaint}"
        else:
            verb = "gives" if len(edge.equations) == 1 else "give"
            what = f"{equations(edge.equations)} {FROM_ZERO} {verb} NaN or infinity"
        return [f"Likely cause: beyond {listing(passed)}, {what}.", _domain_remedy(case, guilty, y, t)]
    found = fold(case)
    if found:
        return found
    return [
        (
            "Cause not found. The equations can be evaluated at the last good point, along the solution beyond it, "
            "and between it and the failed step."
        ),
        "Remedy: evaluate the residual near this point by hand; error.solution holds the values.",
    ]


def _below_zero(case: Case) -> list[int]:
    """Slightly negative variables for which the equations are undefined, although they are defined at zero."""
    t, y, yp = case.point
    below = (y < 0.0) & (np.abs(y) <= 100.0 * case.weights)
    clipped = np.where(below, 0.0, y)
    return [int(j) for j in np.flatnonzero(below)] if np.all(np.isfinite(case.probe.residual(t, clipped, yp))) else []


def _paths_ahead(case: Case) -> list[Path]:
    """Paths along the solution, and towards the values of the failed step."""
    failure = case.failure
    paths = [flow(*case.point, case.h, failure.t_span)]
    step = failure.tried_y - failure.y
    if np.all(np.isfinite(step)) and np.any(step):
        paths.append(along(*case.point, 2.0 * step))
    return paths


def _domain_remedy(case: Case, guilty, y, t) -> str:
    if not guilty:
        return (
            f"Remedy: end t_span before t = {number(t)}, or define the residual beyond it; check roots, "
            "logarithms and divisions that contain t."
        )
    vanishing = [j for j in guilty if abs(y[j]) <= 100.0 * case.weights[j]]
    if vanishing:
        listed = ", ".join(map(str, vanishing[:MOST_NAMED]))
        return (
            f"Remedy: if {case.names(vanishing)} must not become negative, use method='dassl' with "
            f"nonnegative=[{listed}]; if the model ends here, stop with a terminal event (events=...)."
        )
    return (
        "Remedy: if the model ends here, stop before this point with a terminal event (events=...); otherwise check "
        "roots, logarithms and divisions in the residual, or the statement that raises the exception."
    )
