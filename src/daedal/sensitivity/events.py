"""Sensitivities of first-order problems through events, which change nothing but have times that depend on parameters.

The problem is solved first, with its events; the sensitivities follow over the same interval. At an event
:math:`g(t^*, y(t^*), p) = 0` holds for all p, so that

.. math::

    \\frac{d t^*}{d p} = -\\frac{g_y s + g_p}{g_t + g_y y'} .
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from daedal.drive.request import Request
from daedal.solution import Solution


def solve_through_events(plan: Any, request: Request) -> Solution:
    """The solution with its events, and sensitivities at its output points."""
    base = plan.primal.solve(request)
    end = float(base.t[-1]) if base.status == "event" and base.t.size else request.span[1]
    span = (request.span[0], end)
    times = None if request.times is None else base.t
    inner = replace(request, span=span, times=times, t_stop=end, settings=replace(request.settings, events=None))
    found = plan.stretch(inner, *plan.start(inner), plan.starts)
    return replace(
        found, success=base.success, status=base.status, message=base.message, events=base.events, drift=base.drift
    )
