"""Checks of a solution: tolerances too large for a variable or too small for a method, and lost signs.

A variable that decays towards zero, such as a concentration, may take either sign once it is below its atol. If one
sign leads to a growing solution (Robertson's reaction), a run follows it for the rest of the interval, with every step
within tolerance. No test of a single step can detect this, only a test of the whole solution.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from daedal.common.messages import warn
from daedal.common.tabular import listing
from daedal.errors import ToleranceWarning
from daedal.solution.solution import Solution

_LEAST_STEPS = 4  # smallest number of points from which the sizes of variables are estimated
_NOISE = 1e-6  # times atol: a variable whose values are all smaller counts as round-off
_ROUNDING = 100.0 * np.finfo(float).eps  # times the largest value of all variables: smaller values are round-off
_STATED = 1e-4  # times atol: a variable with a larger start value is never taken for round-off
_SEEN = 1e-4  # proposed atol, as a fraction of the values of a variable
_FEW = 3  # number of turning points up to which a variable is never taken for round-off
_WIGGLES = 0.3  # number of turning points per output point above which a variable counts as round-off
_MOST_NAMED = 6
_NEGLIGIBLE = 1e-2  # times rtol: spacing of floats relative to a step, below which nothing is checked
_UNRESOLVED = 3.0  # change of a solution between adjacent floats of t, in tolerances, above which a warning is issued
_ERRORS = 2.0  # times atol: size that errors of initially smaller variables reach with explicit methods
_SHARPEST = {"modified_bdf": 3e-9}
"""Smallest rtol of methods that differentiate positions numerically; for smaller values, round-off dominates."""
_LONG = 5  # number of consecutive points below atol, and of points above atol before and after them
_FAR = 10.0  # times atol: size that a variable whose sign is lost exceeds before and after the interval below atol
_CONTRADICTION = 1e3  # difference in tolerances above which two runs have computed different solutions


def warn_below_atol(solution: Any, settings: Any) -> None:
    """Warn about variables that stay below their `atol` during the whole run, unless they are pure round-off."""
    y, names = solution.y, solution.names
    if solution.stats.steps < _LEAST_STEPS or not y.shape[1]:
        return
    atol = np.asarray(settings.atol, dtype=float)
    sizes = np.abs(y)
    largest = sizes.max(axis=1, initial=0.0)
    if (largest > _ERRORS * atol).all():
        return
    most = np.where(sizes[:, 0] <= atol, _ERRORS if str(solution.method).startswith("DOP") else 1.0, 1.0) * atol
    here = largest <= most
    if not here.any() or not solution.success or settings.fixed_step is not None or y.shape[0] != len(names):
        return
    begun = (y[:, 0] != 0.0) | (sizes[:, -1] < largest)  # not those that started at 0 and are largest at the end
    least = _NOISE * atol if np.any(largest > _NOISE * atol) else 0.0  # unless all values are that small
    least = np.maximum(least, _ROUNDING * largest.max())
    small = np.flatnonzero(here & begun & (largest > least))
    if not small.size:
        return
    if solution.dense is not None and solution.dense.coefficients.shape[1] == len(names):
        y = np.column_stack([y[:, :1], solution.dense.coefficients[solution.dense.starts].T])
    elif solution.history is None or y.shape[1] <= solution.history.t.size:
        return
    atol = np.broadcast_to(atol, largest.shape)
    largest = np.abs(y).max(axis=1)
    small = small[largest[small] <= most[small]]
    if not small.size:
        return
    slopes = np.diff(y[small], axis=1)
    turns = np.count_nonzero(slopes[:, 1:] * slopes[:, :-1] < 0.0, axis=1)
    stated = np.abs(y[small, 0]) > _STATED * atol[small]
    kept = stated | (turns <= np.maximum(_FEW, _WIGGLES * y.shape[1]))
    small = small[kept]
    if not small.size:
        return
    shown = [f"{names[i]} (at most {largest[i]:.2g}, atol {atol[i]:.2g})" for i in small[:_MOST_NAMED]]
    one = small.size == 1
    verb, errors = ("exceeds", "its errors are") if one else ("exceed", "their errors are")
    it, matters = ("it", "it matters") if one else ("them", "they matter")
    how = "never" if np.all(largest[small] <= atol[small]) else "hardly"
    least = np.where(stated[kept], sizes[small, 0], largest[small]).min()
    warn(
        f"{listing(shown, small.size)} {how} {verb} the absolute tolerance, so that {errors} not controlled. "
        f"Remedy: if {matters}, pass atol as a vector with about {_SEEN * least:.0e} for {it}, or "
        "choose other units",
        ToleranceWarning,
    )


def warn_unresolved_time(solution: Any, settings: Any) -> None:
    """Warn if a solution changes by more than its tolerance between adjacent floats of t."""
    t, y = solution.t, solution.y
    if solution.stats.steps < _LEAST_STEPS or t.size < _LEAST_STEPS or y.shape[1] != t.size:
        return
    begin, end = float(t[0]), float(t[-1])
    spacing = math.ulp(max(abs(begin), abs(end)))
    sharpest = settings.rtol if type(settings.rtol) is float else np.min(settings.rtol)
    if not spacing * t.size > _NEGLIGIBLE * sharpest * abs(end - begin):
        return
    steps, changes = np.abs(np.diff(t)), np.abs(np.diff(y, axis=1))
    tolerance = np.max(np.abs(y), axis=1) * settings.rtol + settings.atol
    changed = np.max(changes[:, steps > 0.0] / steps[steps > 0.0] * spacing / tolerance[:, None], axis=0)
    usual = float(np.median(changed))
    if not usual > _UNRESOLVED:
        return
    warn(
        f"floats near t = {t[-1]:.4g} are {spacing:.2g} apart, and the solution changes by {usual:.2g} tolerances "
        f"between them: rtol={sharpest:.2g} cannot be achieved. Remedy: measure time from the start of the interval "
        f"(t_span[0] = 0), or use larger tolerances",
        ToleranceWarning,
    )


def warn_unsuitable(solution: Any, settings: Any) -> None:
    """Warn about a tolerance above all values, or one that the chosen method cannot achieve."""
    loosest = settings.rtol if type(settings.rtol) is float else np.max(settings.rtol)
    if loosest >= 1.0 and settings.fixed_step is None:
        warn(
            f"rtol={loosest:.3g} allows errors as large as the values themselves. Remedy: use a smaller rtol, such as "
            "the default, 1e-6, and limit absolute errors by atol",
            ToleranceWarning,
        )
    name = settings.method if isinstance(settings.method, str) else getattr(settings.method, "name", "")
    sharpest = _SHARPEST.get(name)
    if sharpest is None or settings.fixed_step is not None or getattr(settings.method, "grid", None) is not None:
        return
    asked = np.min(settings.rtol)
    if solution is not None and asked < sharpest:
        warn(
            f"method={name!r} computes velocities and accelerations from differences of positions, which amplify "
            f"round-off, and cannot achieve rtol={asked:.2g}: errors correspond to about {sharpest:.0e}, or larger. "
            "Remedy: use method='radau', or a larger rtol",
            ToleranceWarning,
        )


# --- lost signs -------------------------------------------------------------------------------------------------------


def lost_sign(solution: Solution, atol: np.ndarray) -> tuple[int, float, float] | None:
    """A variable whose sign changed while it was below its atol, with start and end of this interval; None if there is
    none.

    A variable that changes sign repeatedly oscillates, and its sign is resolved.
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
    """Whether two solutions of a problem differ by more than their errors at t, by default at their ends."""
    a, b = (solution.y[:, -1] if t is None else _value(solution, t) for solution in (one, other))
    size = np.minimum(np.abs(a), np.abs(b))
    return bool(np.any(np.abs(a - b) > _CONTRADICTION * (rtol * size + atol)))


def _value(solution: Solution, t: float) -> np.ndarray:
    """y at t or, without dense output, at the last output point before t."""
    if solution.dense is not None:
        return solution(t)
    sign = 1.0 if solution.t[-1] >= solution.t[0] else -1.0
    return solution.y[:, max(int(np.searchsorted(sign * solution.t, sign * t, side="right")) - 1, 0)]


def in_words(name: str, interval: tuple[float, float]) -> str:
    """Sentences on a lost sign, with the remedy."""
    return (
        f"{name} was below its atol from t = {interval[0]:.4g} to {interval[1]:.4g} and then changed sign: the "
        "tolerance does not determine which solution this is. Use a smaller atol for it."
    )
