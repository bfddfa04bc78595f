"""Unresolved signs: variables that change sign while below their atol.

A variable that decays towards zero, such as a concentration, may take either sign once it is below its atol. If one
sign leads to a growing solution (Robertson's reaction), a run follows it for the rest of the interval, with every step
within tolerance. No test of a single step can detect this, only a test of the whole solution.
"""

from __future__ import annotations

import numpy as np

from daedal.solution.solution import Solution

_LONG = 5  # consecutive points below atol: a variable crossing zero has fewer; the same number before and after
_FAR = 10.0  # times atol: level that must be exceeded before and after
_CONTRADICTION = 1e3  # difference of two runs, in tolerances, above which they have followed different solutions


def lost_sign(solution: Solution, atol: np.ndarray) -> tuple[int, float, float] | None:
    """A variable whose sign changed within an interval in which it was below its atol, and the ends of the interval.

    A variable that changes sign repeatedly oscillates through zero, and the equations determine its sign.
    """
    dense = solution.dense
    if (solution.t if dense is None else dense.ends).size < 2 * _LONG:
        return None
    t, y = (solution.t, solution.y) if dense is None else (dense.ends, dense.coefficients[dense.starts].T)
    negative = np.flatnonzero(y.min(axis=1) < -atol)
    for i in negative[y[negative].max(axis=1) > atol[negative]] if negative.size else ():
        large = np.flatnonzero(np.abs(y[i]) > atol[i])
        changes = np.flatnonzero(y[i, large[1:]] * y[i, large[:-1]] < 0.0)
        if changes.size != 1:
            continue
        first = int(changes[0]) + 1
        before, after = large[first - 1], large[first]
        if after - before > _LONG and min(first, large.size - first) >= _LONG:
            if min(np.max(np.abs(y[i, :after])), np.max(np.abs(y[i, after:]))) > _FAR * atol[i]:
                return int(i), float(t[before]), float(t[after])
    return None


def contradict(one: Solution, other: Solution, rtol: np.ndarray, atol: np.ndarray, t: float | None = None) -> bool:
    """Whether two runs of one problem differ at their ends, or at t, by more than their errors."""
    a, b = (solution.y[:, -1] if t is None else _value(solution, t) for solution in (one, other))
    size = np.minimum(np.abs(a), np.abs(b))
    return bool(np.any(np.abs(a - b) > _CONTRADICTION * (rtol * size + atol)))


def _value(solution: Solution, t: float) -> np.ndarray:
    """y at t; without dense output at the last output point before it."""
    if solution.dense is not None:
        return solution(t)
    sign = 1.0 if solution.t[-1] >= solution.t[0] else -1.0
    return solution.y[:, max(int(np.searchsorted(sign * solution.t, sign * t, side="right")) - 1, 0)]


def in_words(name: str, stretch: tuple[float, float]) -> str:
    """A description, with the remedy."""
    return (
        f"{name} was below its atol from t = {stretch[0]:.4g} to {stretch[1]:.4g} and then changed sign: the "
        "tolerance does not determine which solution this is. Use a smaller atol for it."
    )
