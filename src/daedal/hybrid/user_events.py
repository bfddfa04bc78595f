"""The events that a user gave to a run through modes: counted over all stretches, and looked for at break points."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from daedal.errors import InvalidProblemError
from daedal.events.event import Event, functions_of, named_events
from daedal.hybrid.by_mode import ByMode
from daedal.hybrid.messages import some
from daedal.hybrid.state_form import StateForm

_LOOK = (1e-6, 1e-4, 1e-2, 1e-1)  # parts of a step at which one looks to which side a function leaves zero


@dataclass(frozen=True)
class Fired:
    """A function that changed its sign: its name, to which side, and whether that ends the run."""

    name: str
    direction: int
    terminal: bool


@dataclass(frozen=True)
class Instant:
    """A time, and the state there: the stacked vector, and y' of an implicit problem."""

    t: float
    y: np.ndarray
    yp: np.ndarray | None


class UserEvents:
    """The events of one mode; `occurred` counts those of all modes, by name."""

    def __init__(self, events: Sequence[Event], form: StateForm, occurred: dict[str, int]):
        self.events, self._form, self._occurred = tuple(events), form, occurred
        self._calls: list[Callable[..., Any]] | None = None

    def count(self, name: str):
        """Note that a function fired."""
        self._occurred[name] = self._occurred.get(name, 0) + 1

    def still_to_come(self, now: Instant) -> list[Event]:
        """The events of the next stretch: of those that end the run at their k-th occurrence the rest of the k."""
        if not self._occurred:
            return list(self.events)
        return [self._rest(i, now) if _counts(event) else event for i, event in enumerate(self.events)]

    def _rest(self, i: int, now: Instant) -> Event:
        functions = functions_of(self.events[i], i, self._values(i, now).size)
        left = [k if k < 2 else max(1, k - self._occurred.get(name, 0)) for name, _, k in functions]
        return replace(self.events[i], terminal=left)

    def across(self, end: Instant, begin: Instant, step: float) -> list[Fired]:
        """What fired at a break point: functions that have different signs before and behind it.

        Those that are zero behind it have the sign that they take after a small part of `step`; if they stay at zero
        they have arrived there.
        """
        found = []
        for i, event in enumerate(self.events):
            before, behind = self._values(i, end), self._values(i, begin)
            for j, (name, direction, terminal) in enumerate(functions_of(event, i, before.size)):
                if before[j] == 0.0 or before[j] * behind[j] > 0.0:
                    continue
                side = 1 if before[j] < 0.0 else -1
                if direction in (0, side) and (behind[j] != 0.0 or self._leaves_to(side, i, j, begin, step)):
                    self.count(name)
                    found.append(Fired(name, side, 0 < terminal <= self._occurred[name]))
        return found

    def _leaves_to(self, side: int, i: int, j: int, begin: Instant, step: float) -> bool:
        """Whether function j of event i, which is zero, leaves to a side, or stays.

        Next to a zero its sign may be round-off: that counts in which two places agree.
        """
        motion, seen = self._form.motion(begin.t, begin.y, begin.yp), 0.0
        for part in _LOOK:
            ahead = motion(part * step)
            value = 0.0 if ahead is None else self._values(i, Instant(begin.t + part * step, *ahead))[j]
            if value * seen > 0.0:
                break
            seen = value or seen
        return bool(seen * side >= 0.0)

    def _values(self, i: int, at: Instant) -> np.ndarray:
        if self._calls is None:
            self._calls = [
                self._form.bind(e.function, f"events[{k}]", sees_all=False) for k, e in enumerate(self.events)
            ]
        return np.atleast_1d(np.asarray(self._calls[i](at.t, self._form.seen(at.y), at.yp), dtype=float))


def _counts(event: Event) -> bool:
    """Whether an event ends the run at an occurrence behind the first."""
    return bool(np.max(event.terminal) > 1)


def events_by_mode(events, forms: Mapping[str, StateForm]) -> ByMode[UserEvents]:
    """The user's events for each mode: the same for all, or given in a dict."""
    occurred: dict[str, int] = {}
    if not isinstance(events, dict):
        named = named_events(events)
        return ByMode(forms, lambda name: UserEvents(named, forms[name], occurred))
    for name in events:
        if name not in forms:
            raise InvalidProblemError(f"events: {name!r} is not a mode; there are {some(forms)}")
    return ByMode(forms, lambda name: UserEvents(named_events(events.get(name)), forms[name], occurred))


def names_of(events: Iterable[UserEvents]) -> list[str]:
    """The names of the events of all modes, each once; the functions of a vector share one."""
    given = [event.name for mode in events for event in mode.events]
    return list(dict.fromkeys(name for one in given for name in ([one] if isinstance(one, str) else one)))
