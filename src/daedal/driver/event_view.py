"""Events in terms of the problem's variables, whatever the method integrates."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from daedal.driver.request import Request
from daedal.driver.run_segments import Segment
from daedal.events.event import Enclosed, SwitchingFunctions, gather_events, named_events, standard_functions
from daedal.symbolic.tracing.enclosures import enclosed_event

_OWN = ("daedal.driver", "daedal.events", "daedal.hybrid")  # functions with memory, made from others
_LARGEST = 1000  # number of unknowns up to which events are traced for enclosures


@dataclass(frozen=True)
class EventView:
    """The arguments of event functions: (t, y, y'), or (t, y[:n_y], y[n_y:]), and the parameters."""

    shown_by: Any  # the problem whose functions define the argument names
    params: Any
    n_y: int | None = None


@dataclass(frozen=True, eq=False)
class EventsOf:
    """Events of a problem other than the integrated one.

    ``arguments(t, state)`` returns the unknowns of that problem and their derivatives from the integrated state.
    """

    events: Any
    view: Any
    arguments: Callable[[float, np.ndarray], tuple[np.ndarray, np.ndarray]]


def switching_functions(
    request: Request, view, t: float, y0, yp0, recover=None, earlier: list[Segment] | None = None, *, leading=False
) -> SwitchingFunctions | None:
    """The user's events as functions of the integrated unknowns, with the occurrences in earlier segments.

    ``recover(t, y, yp)`` returns the event arguments from the unknowns of the method. Compiled events bypass this if
    the problem's variables are the `leading` unknowns.
    """
    functions = gather_events(request.settings.events, view, t, y0, yp0)
    if functions is None:
        return None
    if (recover is None or leading) and request.settings.compile != "never":
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


def with_bounds(functions: SwitchingFunctions, events: Any, view: Any, n: int) -> SwitchingFunctions:
    """The user's events with enclosures for those that can be traced; y has length n."""
    n_y, enclosed, first = getattr(view, "n_y", None), [], 0
    if n > _LARGEST:
        return functions
    sizes = {"y": n, "yp": n} if n_y is None else {"y": n_y, "z": n - n_y}
    stated = zip(named_events(events), standard_functions(events, view), functions.sizes, strict=True)
    for event, (function, count), size in stated:
        if not str(getattr(event.function, "__module__", "")).startswith(_OWN):
            made = enclosed_event(event.function, function, count, sizes, n, view.params)
            if made is not None:
                enclosed.append(Enclosed(made.program, first, made.read, view.params))
        first += size
    return functions.with_enclosed(*enclosed)
