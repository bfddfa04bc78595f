"""Signs that a tolerance does not resolve: variables that pass through values below their atol and change them there.

A variable that decays towards zero, such as a concentration, is free to take either sign once it lies below its atol.
Where one of the signs leads to a solution that grows (Robertson's reaction), a run follows it for the rest of the
interval with every step as accurate as asked for. No test of a single step can see that; afterwards it shows.
"""

from __future__ import annotations

import numpy as np

from daedal.solution.solution import Solution

_LONG = 5  # points below atol, one after the other: a variable that crosses zero has fewer; as many before and after
_FAR = 10.0  # atol, which it has to exceed before and after
_CONTRADICTION = 1e3  # tolerances by which two runs differ that have followed different solutions


def lost_sign(solution: Solution, atol: np.ndarray) -> tuple[int, float, float] | None:
    """A variable that came out of a stretch below its atol with the other sign, and the ends of the stretch.

    One that changes its sign again is an oscillation through zero, whose sign the equations determine.
    """
    dense = solution.dense
    if (solution.t if dense is None else dense.ends).size < 2 * _LONG:
        return None
    t, y = (solution.t, solution.y) if dense is None else (dense.ends, dense.coefficients[dense.starts].T)
    for i in np.flatnonzero((y.min(axis=1) < -atol) & (y.max(axis=1) > atol)):
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
    """Whether two runs of one problem differ at their ends, or at t, by more than their errors explain."""
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
    """What has happened, and the remedy."""
    return (
        f"{name} lay below its atol from t = {stretch[0]:.4g} to {stretch[1]:.4g} and came out with the other sign: "
        "the tolerance does not tell which solution that is. Choose a smaller atol for it."
    )
