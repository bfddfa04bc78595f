"""Choice of the method for first-order problems, by the user or from structure, tolerance and the run."""

from __future__ import annotations

from typing import Any

import numpy as np

from daedal.analysis.thresholds import (
    FIRST_LOOK,
    LARGEST_DENSE,
    LARGEST_IN_ONE,
    LEAST_PROGRESS,
    LOW_ORDER,
    MOST_LOW,
    MOST_REJECTED,
    SEEN_BY_ROSENBROCK,
    SHARP_FOR_ORDER_8,
    SHARP_WITH_DIFFERENCES,
    SHARP_WITH_EVENTS,
    SHARPEST_IN_ONE,
    SOON,
    STUCK_BELOW,
)
from daedal.driver.request import Request, Settings
from daedal.driver.run_segments import Segment
from daedal.events.event import named_events
from daedal.kernels.endings import MEANINGS, Ending
from daedal.methods.named_methods import named_method

FAILURES = (
    *(Ending.ERROR_TEST_FAILED, Ending.NEWTON_FAILED, Ending.MATRIX_SINGULAR, Ending.ERROR_THEN_NEWTON_FAILED),
    *(Ending.UNEVALUABLE, Ending.STALLED, Ending.TOO_ACCURATE),
)
_MOST_CHANGES = 20  # maximum number of method changes in one run
_FIRST_LOOKS = {
    "radau": 4 * FIRST_LOOK,
    **dict.fromkeys(("rosenbrock", "dopri5", "dop853"), 16 * FIRST_LOOK),
}  # number of steps before the first check of a method, larger for cheaper steps


def is_automatic(settings: Settings) -> bool:
    """Whether Daedal chooses the method; with options of a method, "auto" denotes DASSL."""
    return isinstance(settings.method, str) and settings.method == "auto" and not settings.options


def automatic_methods(wishes: dict[str, Any]) -> dict[str, Any]:
    """The methods of the automatic choice by name, with the options in `wishes`."""
    return {name: named_method(name, {}).with_defaults(wishes) for name in ("rosenbrock", "radau", "dassl")}


def first_method(problem: Any, rtol: np.ndarray) -> str:
    """The initial method from the structure of F(t, y, y') = 0 and the tolerance; see docs/methods.

    Radau IIA needs few but expensive steps: several factorisations of larger matrices and, with difference Jacobians,
    many evaluations. DASSL takes many cheap ones. For small traced problems M y' = f(t, y), a Rosenbrock step is one
    compiled function, which is fastest at low accuracy.
    """
    code, sharpest = problem.linearly_implicit, float(np.min(rtol))
    if code is not None and problem.n <= LARGEST_IN_ONE and sharpest >= SHARPEST_IN_ONE and code.constant_mass:
        return "rosenbrock"
    if problem.sparsity is not None or (problem.bandwidth is None and problem.n // problem.copies > LARGEST_DENSE):
        return "dassl"
    if problem.jacobian is None and sharpest > SHARP_WITH_DIFFERENCES:
        return "dassl"
    return "radau"


def explicit_methods() -> dict[str, Any]:
    """Explicit methods for the start by name; "constant" is for constant steps, without a stiffness test."""
    watched = {"stop_when_stiff": True}
    found = {name: named_method(name, watched) for name in ("dopri5", "dop853")}
    return found | {"constant": named_method("dopri5", {})}


def first_explicit(rtol: np.ndarray) -> str:
    """The initial explicit method: order 8 for tight tolerances."""
    return "dop853" if float(np.min(rtol)) <= SHARP_FOR_ORDER_8 else "dopri5"


def _may_end_it(events: Any) -> bool:
    """Whether some event is terminal, so that the rest of the run depends on its detection."""
    return any(np.any(event.terminal) for event in named_events(events))


def _detects(name: str, events: Any, switches: bool, rtol: float) -> bool:
    """Whether the steps of a method are short enough to detect the events and switches."""
    if name == "rosenbrock":
        return rtol <= SEEN_BY_ROSENBROCK or (events is None and not switches)
    return not switches and (events is None or (rtol <= SHARP_WITH_EVENTS and not _may_end_it(events)))


class FirstOrderChoice:
    """Method of the current segment, and choice of the next one.

    Ordinary differential equations start with an explicit method, which stops when stability has limited its steps
    fifteen times (Hairer and Wanner IV.2), and is then replaced by an implicit method, that with which other problems
    start.

    A method that fails or performs badly is replaced: DASSL if its order remains at 1 or 2, and any method if more
    steps are rejected than accepted. DASSL and Rosenbrock methods are replaced by Radau, Radau by DASSL. The run fails
    if both fail at the same point.
    """

    def __init__(
        self, plan, request: Request, index_2: bool, start: tuple[np.ndarray, np.ndarray | None], switches: bool
    ):
        self._methods: dict[str, Any] = plan.methods
        self._request = request
        self.notes: list[str] = []
        settings, rtol = request.settings, plan.sharpest
        self._is_open = len(self._methods) > 1 and settings.fixed_step is None
        name, explicit = plan.first, len(self._methods) > 1 and plan.ordinary is not None
        implicit = first_method(plan.implicit, plan.rtol) if explicit else name
        if self._is_open:
            if index_2 or (implicit == "rosenbrock" and not plan.is_plain(request.span[0], *start)):
                implicit = "radau"
            if not index_2 and not _detects(implicit, settings.events, switches, rtol):
                implicit = "dassl"
            name = name if explicit else implicit
        elif len(self._methods) > 1:
            name = "constant" if explicit else "dassl"
        self._stiff = implicit  # replacement for an explicit method
        self.method = self._methods[name]
        self._sharp = rtol <= STUCK_BELOW
        self._watch: _Watch | None = None
        self._changes, self._failed_at = 0, np.nan

    def watch(self) -> _Watch | None:
        """A monitor for the next segment; its checks become rarer with every change of method."""
        if self._is_open:
            longest = self._request.settings.max_step if self._sharp and self.method.is_multistep else 0.0
            first = _FIRST_LOOKS.get(self.method.name, FIRST_LOOK)
            self._watch = _Watch(first * 2**self._changes, longest)
        return self._watch

    def continues(self, segment: Segment) -> bool:
        """Whether another segment follows; if so, select its method."""
        outcome, watch = segment.outcome, self._watch
        if watch is None or self._changes >= _MOST_CHANGES:
            return False
        t = outcome.t_reached
        if outcome.reason in FAILURES:
            span = self._request.span
            if abs(t - self._failed_at) <= LEAST_PROGRESS * abs(span[1] - span[0]):
                return False
            self._failed_at = t
            why = MEANINGS[outcome.reason]
        elif outcome.reason == Ending.TROUBLED:
            why = watch.reason
        elif outcome.reason == Ending.STIFF:
            why = "the equations are stiff and stability limits explicit steps"
        else:
            return False
        before = self.method
        other = "dassl" if before.name == "radau" else "radau"
        self.method = self._methods[self._stiff if before.explicit else other]
        self._changes += 1
        names = type(before).__name__, type(self.method).__name__
        self.notes.append(f"{names[0]} was replaced by {names[1]} at t = {t:.4g}: {why}.")
        return True


class _Watch:
    """Checks a run after a number of steps, then after twice as many, and so on.

    A low order is a reason to change the method only if steps are shorter than `longest` and do not grow.
    """

    def __init__(self, first: int, longest: float):
        self.due, self.reason = first, ""
        self._longest = longest
        self._steps = self._failures = self._low = 0
        self._size = 0.0

    def stops(self, steps: int, failures: int, degree: int, size: float) -> bool:
        """Record the progress since the last check; return whether another method should take over."""
        taken, failed = steps - self._steps, failures - self._failures
        stuck = degree <= LOW_ORDER and size < min(0.99 * self._longest, SOON * self._size or np.inf)
        self._low = self._low + 1 if stuck else 0
        self._steps, self._failures, self._size, self.due = steps, failures, size, 2 * steps
        if failed > MOST_REJECTED * taken:
            self.reason = f"{failed} attempts failed against {taken} accepted steps"
        elif self._low >= MOST_LOW:
            self.reason = f"the order was no higher than {degree} after {steps} steps"
        return self.reason != ""
