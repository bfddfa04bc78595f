"""Tolerances that do not control what they are to control: too large for a variable, too small for a method."""

from __future__ import annotations

from typing import Any

import numpy as np

from daedal.common.messages import warn
from daedal.common.tabular import listing

_LEAST_STEPS = 4  # of a run that may have shown how large its variables become
_NOISE = 1e-6  # of atol: what is smaller is round-off
_STATED = 1e-4  # of atol: a start that is larger is meant
_SEEN = 1e-4  # part of its values to which a variable is to be known absolutely
_FEW = 3  # turns that say nothing
_WIGGLES = 0.3  # part of the points at which noise turns back; a motion does so at fewer
_MOST_NAMED = 6
_SHARPEST = {"modified_bdf": 3e-9}
"""Smallest rtol of methods that differentiate positions numerically: below it, round-off decides."""


class ToleranceWarning(UserWarning):
    """A tolerance is too large, or too small, for what it is to control."""


def warn_below_atol(solution: Any, settings: Any) -> None:
    """Name the variables whose values, at all steps, are no more than their `atol`, but something other than noise."""
    y, names = solution.y, solution.names
    if solution.stats.steps < _LEAST_STEPS or not y.shape[1]:
        return
    atol = np.asarray(settings.atol, dtype=float)
    sizes = np.abs(y)
    largest = sizes.max(axis=1, initial=0.0)
    here = largest <= atol
    if not here.any() or not solution.success or settings.fixed_step is not None or y.shape[0] != len(names):
        return
    begun = (y[:, 0] != 0.0) | (sizes[:, -1] < largest)  # not those that begin at 0 and have only just left it
    small = np.flatnonzero(here & begun & (largest > _NOISE * atol))
    if not small.size:
        return
    if solution.dense is not None and solution.dense.coefficients.shape[1] == len(names):
        y = np.column_stack([y[:, :1], solution.dense.coefficients[solution.dense.starts].T])
    elif solution.history is None or y.shape[1] <= solution.history.t.size:
        return
    atol = np.broadcast_to(atol, largest.shape)
    largest = np.abs(y).max(axis=1)
    small = small[largest[small] <= atol[small]]
    if not small.size:
        return
    slopes = np.diff(y[small], axis=1)
    turns = np.count_nonzero(slopes[:, 1:] * slopes[:, :-1] < 0.0, axis=1)
    stated = np.abs(y[small, 0]) > _STATED * atol[small]
    small = small[stated | (turns <= np.maximum(_FEW, _WIGGLES * y.shape[1]))]
    if not small.size:
        return
    shown = [f"{names[i]} (at most {largest[i]:.2g}, atol {atol[i]:.2g})" for i in small[:_MOST_NAMED]]
    verb, it, matters = ("exceeds", "it", "it matters") if small.size == 1 else ("exceed", "them", "they matter")
    warn(
        f"{listing(shown, small.size)} never {verb} the absolute tolerance: errors of {it} are not controlled. "
        f"Remedy: if {matters}, give atol as a vector, with about {_SEEN * largest[small].min():.0e} for {it}, or "
        "choose other units",
        ToleranceWarning,
    )


def warn_unsuitable(solution: Any, settings: Any) -> None:
    """Warn of a tolerance above all values, and of one that the chosen method cannot keep."""
    loosest = np.max(settings.rtol)
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
            f"method={name!r} takes velocities and accelerations from differences of positions, with their round-off, "
            f"and does not keep rtol={asked:.2g}: errors are those of about {sharpest:.0e}, or larger. Remedy: "
            "method='radau', or a larger rtol",
            ToleranceWarning,
        )
