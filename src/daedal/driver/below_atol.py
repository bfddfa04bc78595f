"""Tolerances that lose control of the error: too large for a variable, or too small for a method."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from daedal.common.messages import warn
from daedal.common.tabular import listing
from daedal.errors import ToleranceWarning

_LEAST_STEPS = 4  # number of points in a run needed to judge the size of its variables
_NOISE = 1e-6  # times atol: smaller values count as round-off
_ROUNDING = 100.0 * np.finfo(float).eps  # times the largest of all values: smaller values count as round-off
_STATED = 1e-4  # times atol: a larger start value counts as intended
_SEEN = 1e-4  # fraction of its values to which a variable should be accurate
_FEW = 3  # fewer turning points are inconclusive
_WIGGLES = 0.3  # fraction of turning points that identifies noise; motions have fewer
_MOST_NAMED = 6
_NEGLIGIBLE = 1e-2  # times rtol: smaller spacings of t, as fractions of a step, do not matter
_UNRESOLVED = 3.0  # tolerances between neighbouring times from which a warning is given
_ERRORS = 2.0  # times atol: with explicit methods, errors of variables that started smaller grow to this size
_SHARPEST = {"modified_bdf": 3e-9}
"""Smallest rtol of methods that differentiate positions numerically; below it round-off dominates."""


def warn_below_atol(solution: Any, settings: Any) -> None:
    """Find the variables that stay below their `atol` throughout but are not just round-off."""
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
    begun = (y[:, 0] != 0.0) | (sizes[:, -1] < largest)  # excluding those that started at 0 and have hardly changed
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
    verb, it, matters = ("exceeds", "it", "it matters") if small.size == 1 else ("exceed", "them", "they matter")
    how = "never" if np.all(largest[small] <= atol[small]) else "hardly"
    least = np.where(stated[kept], sizes[small, 0], largest[small]).min()
    warn(
        f"{listing(shown, small.size)} {how} {verb} the absolute tolerance: errors of {it} are not controlled. "
        f"Remedy: if {matters}, give atol as a vector, with about {_SEEN * least:.0e} for {it}, or "
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
            f"rtol={loosest:.3g} allows errors as large as the values themselves. Remedy: rtol is relative, 1e-6 by "
            "default; absolute errors are limited by atol",
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
            f"Remedy: "
            "method='radau', or a larger rtol",
            ToleranceWarning,
        )
