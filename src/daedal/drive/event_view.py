"""What the user's events see of a run: the variables of the problem, whatever the method integrates."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from daedal.drive.request import Request
from daedal.drive.run import Segment
from daedal.events.event import SwitchingFunctions, gather_events


@dataclass(frozen=True)
class EventView:
    """The arguments of event functions: (t, y, y'), or (t, y[:n_y], y[n_y:]), and the parameters."""

    shown_by: Any  # the problem whose functions show what the user calls the arguments
    params: Any
    n_y: int | None = None


@dataclass(frozen=True, eq=False)
class EventsOf:
    """Events of another problem than the one that is integrated.

    ``arguments(t, state)`` gives the unknowns of that problem and their derivatives, in the state of this one.
    """

    events: Any
    view: Any
    arguments: Callable[[float, np.ndarray], tuple[np.ndarray, np.ndarray]]


def switching_functions(
    request: Request, view, t: float, y0, yp0, recover=None, earlier: list[Segment] | None = None, *, leading=False
) -> SwitchingFunctions | None:
    """The user's events as functions of what the method integrates, with what has happened in earlier segments.

    ``recover(t, y, yp)`` gives the arguments of the events from the unknowns of the method. Where the variables of the
    problem are the `leading` unknowns, compiled events are called without it.
    """
    functions = gather_events(request.settings.events, view, t, y0, yp0)
    if functions is None:
        return None
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
