"""Messages: names and numbers; where a failed run stopped; which equations given values violate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import ceil, inf, log10
from typing import Any

import numpy as np

from daedal.analysis.index import judge, partials
from daedal.analysis.probe import LARGEST_DENSE, Probe
from daedal.common.tabular import listing
from daedal.kernels.endings import Ending

MOST_NAMED = 3
FROM_ZERO = "(numbered from 0)"
_LONGEST_VECTOR = 20


def number(x: float) -> str:
    """A number with four digits, as used in sentences."""
    return f"{x:.4g}"


def variable(problem: Any, j: int) -> str:
    """The name of variable j, or ``y[j]``."""
    return str(problem.names[j]) if problem.names else f"y[{j}]"


def variables(problem: Any, which: Sequence[int]) -> str:
    """The names of the first few variables of `which`, in the order of the problem."""
    return listing((variable(problem, j) for j in sorted(which[:MOST_NAMED])), len(which))


def equations(which: Sequence[int], most: int = MOST_NAMED) -> str:
    """``equation 4``, ``equations 4 and 5``; numbered from 0, as in NumPy."""
    return ("equation " if len(which) == 1 else "equations ") + listing(map(str, sorted(which[:most])), len(which))


def powers(which: Sequence[int], n: int) -> str:
    """A vector of n entries, 1 for those of `which` and 0 for all others, in source form."""
    if n <= _LONGEST_VECTOR:
        return f"[{', '.join('1' if i in which else '0' for i in range(n))}]"
    return f"np.isin(np.arange({n}), {sorted(which)}).astype(float)"


def counted(count: int, noun: str) -> str:
    """``1 step``, ``3 steps``."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


def measured(x: float, unit: str) -> str:
    """``1 unit``, ``1.5 units``: a number of four digits with its unit."""
    shown = number(x)
    return f"{shown} {unit}{'' if shown == '1' else 's'}"


def ordinal(count: int) -> str:
    """``first``, ``second``, ``third``, ``4th``."""
    return {1: "first", 2: "second", 3: "third"}.get(count, f"{count}th")


def largest(values: np.ndarray) -> list[int]:
    """Indices of the few largest finite values, largest first, without those negligible compared with the largest
    one."""
    sizes = np.where(np.isfinite(values), np.abs(values), 0.0)
    order = np.argsort(-sizes, kind="stable")[:MOST_NAMED]
    return [int(i) for i in order if sizes[i] > 1e-3 * sizes[order[0]]]


# --- the state of an integrator at a failure, and the sentence "Stopped at t = ..." -----------------------------------


@dataclass(frozen=True)
class Failure:
    """The state of a run that could not continue: the input of the diagnosis."""

    code: Ending  # why the run ended: DASSL's IDID
    # last good time, step size and order of the failed attempt
    t: float
    h: float
    order: int
    # the last good values
    y: np.ndarray
    yp: np.ndarray
    tried_y: np.ndarray  # the values of the failed attempt (may hold NaN)
    correction: np.ndarray  # y - y(0) of the failed attempt, whose weighted norm is tested
    weights: np.ndarray  # rtol |y| + atol
    cj: float  # leading coefficient of the failed attempt
    # totals of the run
    steps: int
    error_test_failures: int
    newton_failures: int
    # failures during the last step
    attempt_error_failures: int
    attempt_newton_failures: int
    first_step_failures: int  # failures before the first step was accepted
    t_span: tuple[float, float]
    component: int = -1  # the variable concerned (Ending.ZERO_WEIGHT), otherwise -1
    # whether the user's jacobian, not the residual, returned NaN or could not be evaluated (Ending.UNEVALUABLE)
    jacobian_unevaluable: bool = False
    start: tuple[float, np.ndarray, np.ndarray] | None = None  # t, y and y' at the start of the run
    included: np.ndarray = field(default_factory=lambda: np.zeros(0))


_SETTLED = 50  # steps after which the step size is representative; the first ones are short and grow
# a run crawls if the remaining steps exceed _CRAWLING times the accepted ones, and _MANY
_CRAWLING, _MANY = 20.0, 1e6


def stopped(t: float, reason: str, *, digits: int = 6, details: str = "") -> str:
    """``Stopped at t = 1.5, step size 0.01: the reason``; `details` follow the time."""
    return f"Stopped at t = {t:.{digits}g}{details}: {reason}"


def stopped_step(failure, reason: str, span: tuple[float, float], by: str = "") -> str:
    """The sentences for a failed step, with its size and the completed fraction of the interval; `by` ends the last."""
    done = (failure.t - span[0]) / (span[1] - span[0])
    head = stopped(failure.t, reason, details=f", step size {abs(failure.h):.3g}")
    return f"{head}. The run covered {100.0 * done:.3g} % of the interval{by}."


def fixed_step_failed(failure, step: float) -> str:
    """The message if Newton's method fails for a step of constant size."""
    reason = f"Newton's method did not converge for the next step of the constant size {step:.4g}"
    return (
        f"{stopped(failure.t, reason)}. Likely cause: the step is too long for the fastest component, the "
        "solution grows without bound, or the method is not stable for these equations. Remedy: use a "
        "smaller fixed_step; if that makes it worse, use another method."
    )


def steps_left(failure, span: tuple[float, float]) -> float:
    """The number of remaining steps, if all have the size of the last one."""
    return abs(span[1] - failure.t) / abs(failure.h) if failure.h else inf


def crawls(failure, rest: float) -> bool:
    """Whether progress is too slow to reach the end."""
    return failure.steps >= _SETTLED and not rest <= max(_CRAWLING * failure.steps, _MANY)


def enough_steps(failure, rest: float) -> int:
    """A step limit that suffices to reach the end, rounded to a power of ten."""
    return 10 ** ceil(log10(1.5 * max(failure.steps + rest, 1.0)))


def more_steps(failure, span: tuple[float, float]) -> str:
    """Remedy for reaching the step limit, with the number of steps needed if all have the size of the last one."""
    if failure.steps < _SETTLED:
        return "raise max_steps (the first steps are short, and grow), or loosen rtol and atol"
    rest = steps_left(failure, span)
    if crawls(failure, rest):
        return "loosen rtol and atol; the steps are far too short for this interval"
    return f"raise the limit, for example max_steps={enough_steps(failure, rest)}, or loosen rtol and atol"


# --- which equations given values violate, and how to correct the values ----------------------------------------------

_NEGLIGIBLE = 1e-3  # violations up to this fraction of the worst one are not reported
NEEDED = "Required changes"


def describe_inconsistency(
    problem: Any,
    t: float,
    y: np.ndarray,
    yp: np.ndarray,
    residual: np.ndarray,
    correction: np.ndarray,
    weights: np.ndarray,
    taken: frozenset[str] = frozenset(),
) -> tuple[str, tuple[int, ...]]:
    """A message about values that do not satisfy ``F(t, y, y') = 0``, and the violated equations, worst first.

    `correction` is a change of `y`, of either sign, that would reduce the residual; it is used only if no better change
    can be computed. `weights`, ``rtol |y| + atol``, are negligible changes of `y`. `taken` are remedies already applied
    by the user: "correct_initial", and "None" for values to be computed.
    """
    probe = Probe(problem)
    with np.errstate(all="ignore"):
        try:
            return _describe(probe, t, y, yp, residual, correction, weights, taken)
        except Exception as error:  # the inconsistency is reported even if its details cannot be computed
            return (
                (
                    f"The initial values do not satisfy the equations at t = {number(t)}. The search for the violated "
                    f"equations failed ({type(error).__name__}: {error})."
                ),
                (),
            )


def _describe(probe, t, y, yp, residual, correction, weights, taken):
    problem = probe.problem
    E, B = _partials(probe, t, y, yp, weights)
    sizes = np.abs(np.nan_to_num(residual, nan=np.inf))
    if B is not None:
        tolerated = np.abs(B) @ weights
        sizes = sizes / np.where(tolerated > 0.0, tolerated, np.min(weights))
    order = np.argsort(-sizes, kind="stable")
    violated = tuple(int(i) for i in order if sizes[i] > _NEGLIGIBLE * min(sizes[order[0]], 1e300))
    lines = [f"The initial values do not satisfy the equations at t = {number(t)}."]
    if violated:
        named = listing((f"equation {i} ({number(residual[i])})" for i in violated[:MOST_NAMED]), len(violated))
        lines.append(f"Violated {FROM_ZERO}, with the residual that should be 0: {named}.")
    changes, stuck = _needed_changes(problem, y, yp, residual, weights, E, B)
    if not changes:
        changes = [f"{variable(problem, j)} by {number(abs(correction[j]))}" for j in largest(correction / weights)]
    if changes:
        example = ", for example" if stuck else ""
        lines.append(f"{NEEDED} (to first order{example}): {listing(changes)}.")
    return "\n".join([*lines, *_hidden(E, B), _remedy(stuck, taken)]), violated


def _hidden(E, B) -> list[str]:
    """A warning that a higher index imposes further conditions in addition to F = 0."""
    found = None if E is None else judge(E, B)
    if found is None or found.index is None or found.index < 2:
        return []
    rows = [i for i, count in found.constraints if count == found.index - 1]
    derivatives = (
        "first time derivative" if found.index == 2 else f"time derivatives up to the {ordinal(found.index - 1)}"
    )
    return [
        f"The problem has index {found.index} (judged locally, from dF/dy and dF/dy'): the initial values must also "
        f"satisfy the {derivatives} of {equations(rows)}."
    ]


def _remedy(stuck: bool, taken: frozenset[str]) -> str:
    if stuck or "correct_initial" in taken:
        return (
            "Remedy: correct y0 itself; neither derivatives nor algebraic variables can compensate for it. "
            "daedal.consistent_initial(problem, t0, initial, fixed=[...]) finds values; `fixed` lists the "
            "variables to keep."
        )
    computed = "" if "None" in taken else " with None as the second part of initial (yp0 or z0) Daedal computes it;"
    return (
        f"Remedy: correct_initial=True moves algebraic variables and derivatives to consistent values;{computed} "
        "daedal.consistent_initial shows the values beforehand."
    )


def _partials(probe, t, y, yp, weights):
    if probe.n > LARGEST_DENSE:
        return None, None
    E, B = partials(probe.residual, t, y, yp, weights=weights)
    return (E, B) if np.all(np.isfinite(E)) and np.all(np.isfinite(B)) else (None, None)


def _needed_changes(problem, y, yp, residual, weights, E, B) -> tuple[list[str], bool]:
    """Changes of algebraic variables and derivatives that satisfy the equations, or, if there are none, changes of y.

    Returns the changes in words and whether the differential variables themselves must change.
    """
    if E is None or not np.all(np.isfinite(residual)):
        return [], False
    algebraic = ~np.any(E != 0.0, axis=0)
    scale_y = np.maximum(np.abs(y), 1e3 * weights)
    scale_yp = np.maximum(np.abs(yp), scale_y)
    columns = np.where(algebraic, B, E) * np.where(algebraic, scale_y, scale_yp)
    change, unsatisfied = _least_squares(columns, -residual)
    if np.any(unsatisfied):
        rows = ~np.any(E != 0.0, axis=1)
        dy, _ = _least_squares(B[rows] * scale_y, -residual[rows])
        return _in_words(problem, dy * scale_y, weights, ""), True
    change = change * np.where(algebraic, scale_y, scale_yp)
    words = _in_words(problem, np.where(algebraic, change, 0.0), weights, "")
    words += _in_words(problem, np.where(algebraic, 0.0, change), 1e-6 * scale_yp, "'")
    return words[:MOST_NAMED], False


def _least_squares(matrix, right):
    """The least-norm least-squares solution, and a mask of the rows that it does not satisfy."""
    if right.size == 0:
        return np.zeros(matrix.shape[1]), np.zeros(0, dtype=bool)
    if not np.all(np.isfinite(matrix)):
        return np.zeros(matrix.shape[1]), np.ones(right.size, dtype=bool)
    size = np.abs(matrix).max(axis=1)
    size = np.where(size > 0.0, size, 1.0)
    solution = np.linalg.lstsq(matrix / size[:, None], right / size, rcond=1e-10)[0]
    rest = np.abs(matrix @ solution - right)
    return solution, rest > 1e-6 * np.abs(right).max() + 1e-6 * np.abs(right)


def _in_words(problem, change, weights, prime) -> list[str]:
    return [
        f"{variable(problem, j)}{prime} by {number(change[j])}"
        for j in largest(change / weights)
        if abs(change[j]) > weights[j]
    ]
