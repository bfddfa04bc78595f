"""Events as functions of the problem's variables, for runs that integrate other variables."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from daedal.driver.request import Request
from daedal.driver.run_segments import Segment
from daedal.events.event import (
    Enclosed,
    GuardEvent,
    SwitchingFunctions,
    gather_events,
    named_events,
    standard_functions,
)
from daedal.symbolic.tracing.switching_functions import enclosed_event

_OWN = (
    "daedal.driver",
    "daedal.events",
    "daedal.hybrid",
)  # modules whose functions have memory or wrap other functions: not traced
_LARGEST = 1000  # number of unknowns up to which events are traced for enclosures of their values


@dataclass(frozen=True)
class EventView:
    """Arguments of event functions: (t, y, y') or (t, y[:n_y], y[n_y:]), and the parameters."""

    shown_by: Any  # the problem whose functions define the argument names
    params: Any
    n_y: int | None = None


@dataclass(frozen=True, eq=False)
class EventsOf:
    """Events of a problem whose variables are not integrated.

    ``arguments(t, state)`` returns the unknowns of the problem and their derivatives from the integrated state.
    """

    events: Any
    view: Any
    arguments: Callable[[float, np.ndarray], tuple[np.ndarray, np.ndarray]]


def switching_functions(
    request: Request, view, t: float, y0, yp0, recover=None, earlier: list[Segment] | None = None, *, leading=False
) -> SwitchingFunctions | None:
    """The user's events as functions of the integrated unknowns, with their occurrences in earlier segments.

    ``recover(t, y, yp)`` returns the event arguments from the unknowns of the method. Compiled events bypass this if
    the problem's variables are the `leading` unknowns.
    """
    bounded = (recover is None or leading) and request.settings.compile != "never"
    guards = _guards_alone(request.settings.events, view, y0.size) if bounded else None
    if guards is not None:
        request.event_names[:] = guards.names
        return guards
    functions = gather_events(request.settings.events, view, t, y0, yp0)
    if functions is None:
        return None
    if bounded:
        functions = with_bounds(functions, request.settings.events, view, y0.size)
    request.event_names[:] = functions.names
    for segment in earlier or ():
        for event in segment.outcome.events:
            if event.kind == "event":
                functions.occurred[event.index] += 1
    if recover is None:
        return functions
    inner = functions.evaluate

    def evaluate(t, y, yp):
        return inner(t, *recover(t, y, yp))

    return replace(functions, evaluate=evaluate, plain=evaluate if leading else None)


def _guards_alone(events: Any, view: Any, n: int) -> SwitchingFunctions | None:
    """The guards of a mode, prepared for runs without user events."""
    only = events[0] if isinstance(events, list) and len(events) == 1 else None
    if not isinstance(only, GuardEvent) or not only.is_own or n > _LARGEST:
        return None
    return only.guards.switching(only, _sizes(view, n), n, view.params)


def _sizes(view: Any, n: int) -> dict[str, int]:
    n_y = getattr(view, "n_y", None)
    return {"y": n, "yp": n} if n_y is None else {"y": n_y, "z": n - n_y}


def with_bounds(functions: SwitchingFunctions, events: Any, view: Any, n: int) -> SwitchingFunctions:
    """The user's events with enclosures for those that can be traced; y has length n."""
    enclosed, first, sizes = [], 0, _sizes(view, n)
    if n > _LARGEST:
        return functions
    stated = zip(named_events(events), standard_functions(events, view), functions.sizes, strict=True)
    for event, (function, count), size in stated:
        if isinstance(event, GuardEvent) and event.is_own:
            bounds = event.guards.traced(sizes, n, view.params)
            if bounds is not None and bounds.program is not None:
                enclosed.append(Enclosed(bounds.program, first, bounds.read, view.params))
        elif not str(getattr(event.function, "__module__", "")).startswith(_OWN):
            made = enclosed_event(event.function, function, count, sizes, n, view.params)
            if made is not None:
                enclosed.append(Enclosed(made.program, first, made.read, view.params))
        first += size
    return functions.with_enclosed(*enclosed)
