"""Which method solves a first-order problem: the user's, or what structure, tolerance and the run itself ask for."""

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
from daedal.methods import named_method

FAILURES = (
    *(Ending.ERROR_TEST_FAILED, Ending.NEWTON_FAILED, Ending.MATRIX_SINGULAR, Ending.ERROR_THEN_NEWTON_FAILED),
    *(Ending.UNEVALUABLE, Ending.STALLED, Ending.TOO_ACCURATE),
)
_MOST_CHANGES = 20  # of the method in one run
_FIRST_LOOKS = {
    "radau": 4 * FIRST_LOOK,
    **dict.fromkeys(("rosenbrock", "dopri5", "dop853"), 16 * FIRST_LOOK),
}  # the cheaper the steps, the later


def is_automatic(settings: Settings) -> bool:
    """Whether the method is Daedal's to choose; options that are given are DASSL's, and with them it is chosen."""
    return isinstance(settings.method, str) and settings.method == "auto" and not settings.options


def automatic_methods(wishes: dict[str, Any]) -> dict[str, Any]:
    """The methods between which is chosen, by name."""
    return {name: named_method(name, {}).with_wishes(wishes) for name in ("rosenbrock", "radau", "dassl")}


def first_method(problem: Any, rtol: np.ndarray) -> str:
    """The method to begin with, from the structure of F(t, y, y') = 0 and the tolerance; see docs/methods.

    Radau IIA needs few steps, which cost several factorisations of larger matrices and, where derivatives are
    differences, many evaluations; DASSL many cheap ones. Steps of Rosenbrock methods are one piece of machine code for
    small problems M y' = f(t, y) that were traced, the fastest way to a few digits.
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
    """What ordinary differential equations may begin with; "constant" is for constant steps, which nothing stops."""
    watched = {"stop_when_stiff": True}
    found = {name: named_method(name, watched) for name in ("dopri5", "dop853")}
    return found | {"constant": named_method("dopri5", {})}


def first_explicit(rtol: np.ndarray) -> str:
    """The explicit method to begin with: the one of order 8 where the tolerance is sharp."""
    return "dop853" if float(np.min(rtol)) <= SHARP_FOR_ORDER_8 else "dopri5"


def _may_end_it(events: Any) -> bool:
    """Whether one of the events is terminal, so that all the rest of the run depends on its being seen."""
    return any(np.any(event.terminal) for event in named_events(events))


def _sees(name: str, events: Any, switches: bool, rtol: float) -> bool:
    """Whether the steps of a method are short enough for the events and switches that are looked for."""
    if name == "rosenbrock":
        return rtol <= SEEN_BY_ROSENBROCK or (events is None and not switches)
    return not switches and (events is None or (rtol <= SHARP_WITH_EVENTS and not _may_end_it(events)))


class FirstOrderChoice:
    """The method of the current segment, and whether another one goes on.

    Ordinary differential equations begin with an explicit method, which stops where its steps have met the limit of
    stability fifteen times (Hairer and Wanner IV.2); then the method goes on with which other problems begin.

    A method that fails, or that shows while it runs that it does not suit the problem, hands over to the other one:
    DASSL where its order stays at 1 and 2, and all of them where more steps are rejected than accepted. DASSL and
    Rosenbrock methods hand over to Radau, Radau to DASSL. What fails with both where it stands has failed.
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
            if not index_2 and not _sees(implicit, settings.events, switches, rtol):
                implicit = "dassl"
            name = name if explicit else implicit
        elif len(self._methods) > 1:
            name = "constant" if explicit else "dassl"
        self._stiff = implicit  # what goes on where an explicit method cannot
        self.method = self._methods[name]
        self._sharp = rtol <= STUCK_BELOW
        self._watch: _Watch | None = None
        self._changes, self._failed_at = 0, np.nan

    def watch(self) -> _Watch | None:
        """One who looks at the next segment, for longer each time that the method was changed."""
        if self._is_open:
            longest = self._request.settings.max_step if self._sharp and self.method.needs_past else 0.0
            first = _FIRST_LOOKS.get(self.method.name, FIRST_LOOK)
            self._watch = _Watch(first * 2**self._changes, longest)
        return self._watch

    def goes_on(self, segment: Segment) -> bool:
        """Whether the run goes on with another method; it is chosen then."""
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
            why = "the equations are stiff there, and stability limits explicit steps"
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
    """Looks at the steps of a run, after so many and then after twice as many again and again.

    Low orders are minded in steps that are shorter than `longest` and do not become longer.
    """

    def __init__(self, first: int, longest: float):
        self.due, self.reason = first, ""
        self._longest = longest
        self._steps = self._failures = self._low = 0
        self._size = 0.0

    def stops(self, steps: int, failures: int, degree: int, size: float) -> bool:
        """Whether another method should go on."""
        taken, failed = steps - self._steps, failures - self._failures
        stuck = degree <= LOW_ORDER and size < min(0.99 * self._longest, SOON * self._size or np.inf)
        self._low = self._low + 1 if stuck else 0
        self._steps, self._failures, self._size, self.due = steps, failures, size, 2 * steps
        if failed > MOST_REJECTED * taken:
            self.reason = f"{failed} attempts failed beside {taken} steps"
        elif self._low >= MOST_LOW:
            self.reason = f"the order was no higher than {degree} after {steps} steps"
        return self.reason != ""
