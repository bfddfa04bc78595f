r"""How sensitivities jump where a mode ends.

A guard :math:`g(t, y, p)` ends a mode at :math:`t^*(p)`, and a reset map R takes the state over:

.. math::

    \tau = \frac{d t^*}{d p} = -\frac{g_y s^- + g_p}{g_t + g_y y'^-}, \qquad
    \frac{d y^+}{d p} = R_t \tau + R_y (s^- + y'^- \tau) + R_p, \qquad
    s^+ = \frac{d y^+}{d p} - y'^+ \tau

(the saltation matrix; Leine and Nijmeijer: Dynamics and Bifurcations of Non-Smooth Mechanical Systems, Springer 2004,
chapter 7). Where the guard is only touched, :math:`g_t + g_y y' = 0`, there is no derivative.

Guards and reset maps are functions of a user's; they are differentiated along one direction each, by the central
formula of order 4.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

SHARE = float(np.finfo(float).eps) ** 0.2
_FASTER = 1e3  # than time and parameters a state may change, to be the measure
_STENCIL = ((1.0, 2.0 / 3.0), (-1.0, -2.0 / 3.0), (2.0, -1.0 / 12.0), (-2.0, 1.0 / 12.0))
GRAZING = 1e-4
"""Rate of a guard, in parts of its size over the stretch, below which it is only touched."""


@dataclass(frozen=True)
class Point:
    """A time, a state and the parameters, or a direction in which they change."""

    t: float
    y: np.ndarray
    theta: np.ndarray

    def moved(self, along: Point, length: float) -> Point:
        """The point so far along a direction."""
        return Point(self.t + length * along.t, self.y + length * along.y, self.theta + length * along.theta)


def derivative_along(function: Callable[[Point], np.ndarray], at: Point, along: Point, time_scale: float) -> np.ndarray:
    """The derivative of a function of a point along a direction."""
    changes = [abs(along.t) / time_scale]
    changes += [abs(d) / (abs(x) or 1.0) for d, x in zip(along.theta, at.theta, strict=True)]
    of_state, fastest = _largest(along.y) / (_largest(at.y) or 1.0), max(changes)
    fastest = max(fastest, min(of_state, _FASTER * fastest) if fastest else of_state)  # a state may pass through zero
    if fastest == 0.0:
        return np.zeros_like(np.atleast_1d(np.asarray(function(at), dtype=float)))
    delta = SHARE / fastest
    total = 0.0
    for multiple, weight in _STENCIL:
        total = total + weight / delta * np.atleast_1d(np.asarray(function(at.moved(along, multiple * delta)), float))
    return np.asarray(total)


def event_time(
    guard: Callable[[Point], np.ndarray], at: Point, slope: np.ndarray, s: np.ndarray, time_scale: float, size: float
) -> tuple[np.ndarray, bool]:
    """The derivatives of the time of an event, one for each row of `s`, and whether the guard is only touched.

    `size` is that of the guard over the stretch of length `time_scale` which it ends.
    """
    none = np.zeros_like(at.theta)
    rates = derivative_along(guard, at, Point(1.0, slope, none), time_scale)
    values = np.atleast_1d(np.asarray(guard(at), dtype=float))
    fired = int(np.argmin(np.abs(values) / np.maximum(np.abs(rates), 1e-300)))
    rate = float(rates[fired])
    if abs(rate) * time_scale <= GRAZING * size:
        return np.full(s.shape[0], np.nan), True
    changes = [
        derivative_along(guard, at, Point(0.0, row, np.eye(s.shape[0])[k]), time_scale)[fired]
        for k, row in enumerate(s)
    ]
    return -np.array(changes) / rate, False


def _largest(values: np.ndarray) -> float:
    return float(np.max(np.abs(values), initial=0.0))
