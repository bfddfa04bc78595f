"""Report which equations given values violate, and how to correct the values."""

from typing import Any

import numpy as np

from daedal.analysis.index import judge, partials
from daedal.analysis.probe import LARGEST_DENSE, Probe
from daedal.analysis.wording import FROM_ZERO, MOST_NAMED, equations, largest, listing, number, ordinal, variable

_NEGLIGIBLE = 1e-3  # fraction of the worst violation
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
