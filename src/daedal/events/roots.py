"""Roots of switching functions on the interpolant of a step, as in DASSLRT (BCP section 5.3.3).

A sign change between the two ends of a step is followed to its leftmost root by the Illinois algorithm of Hiebert and
Shampine, for a vector of functions at once. The located time is the right end of the final bracket.
"""

from __future__ import annotations

from math import copysign, isfinite

import numpy as np

from daedal.kernels.callbacks import CALLBACK, call
from daedal.kernels.compilation import inlined, part
from daedal.kernels.interpolation import newton_polynomial
from daedal.kernels.records import ADDRESS, INTEGER, floats, integers

_RESOLUTION = 100.0 * np.finfo(float).eps
_MAX_BISECTIONS = 200

ROOTS = np.dtype(
    [
        ("n", INTEGER),
        ("size", INTEGER),  # length of the state
        ("functions", CALLBACK),
        ("direction", ADDRESS),
        ("terminal", ADDRESS),
        ("low", ADDRESS),
        ("high", ADDRESS),
        ("trial", ADDRESS),
        ("fired", ADDRESS),
        ("y", ADDRESS),
        ("yp", ADDRESS),
    ]
)
"""The switching functions g(t, y, y'), their values at both ends of the search interval, and which of them fired."""


@part
def _evaluate_on(system, roots, t, t_end, psi, phi, k, values):
    """values = g(t, y(t), y'(t)) on the polynomial of the last step."""
    n = roots.size
    block = floats(roots.functions.block, 2 * n + roots.n)
    y, yp = floats(roots.y, n), floats(roots.yp, n)
    newton_polynomial(t, t_end, psi, phi, k, y, yp)
    for i in range(n):
        block[i] = y[i]
        block[n + i] = yp[i]
    system.event_evaluations += 1
    status = call(roots.functions, t)
    for i in range(roots.n):
        values[i] = block[2 * n + i]
    return status


@inlined
def _copy(source, target):
    for i in range(source.size):
        target[i] = source[i]


@inlined
def resolution(t, h):
    """The length below which two times are not told apart: 100 u (|t| + |h|)."""
    return _RESOLUTION * (abs(t) + abs(h))


@part
def begin(system, roots, t, t_end, psi, phi, k, h):
    """Values at the left end of a search; a function that vanishes there is looked at a resolution further on."""
    low, trial = floats(roots.low, roots.n), floats(roots.trial, roots.n)
    status = _evaluate_on(system, roots, t, t_end, psi, phi, k, low)
    if status != 0:
        return status
    for i in range(roots.n):
        if low[i] == 0.0:
            ahead = t + copysign(resolution(t, h), h)
            status = _evaluate_on(system, roots, ahead, t_end, psi, phi, k, trial)
            for j in range(roots.n):
                if low[j] == 0.0:
                    low[j] = trial[j]
            break
    return status


@inlined
def _crosses(low, high, direction):
    """Whether the sign changes in the wanted direction."""
    if not (low < 0.0 < high or high < 0.0 < low):
        return False
    return direction == 0 or (high > low) == (direction > 0)


@inlined
def _arrives(low, high, direction):
    """Whether the function reaches exactly zero from the wanted side."""
    return high == 0.0 and low != 0.0 and (direction == 0 or (low < 0.0) == (direction > 0))


@part
def locate(system, roots, t_low, t_high, t_end, psi, phi, k):
    """Find the first root in (t_low, t_high] given the values at t_low.

    Returns (found, time, status); the functions that fired are marked in ``roots.fired`` with the sign of their
    change, and ``roots.low`` holds the values at the right end of the searched interval.
    """
    low_values, high_values, trial = (
        floats(roots.low, roots.n),
        floats(roots.high, roots.n),
        floats(roots.trial, roots.n),
    )
    directions, fired = integers(roots.direction, roots.n), integers(roots.fired, roots.n)
    status = _evaluate_on(system, roots, t_high, t_end, psi, phi, k, high_values)
    if status != 0:
        return False, t_high, status
    left, right = t_low, t_high
    alpha, last_side, side, last_leader = 1.0, -1, -1, -1
    resolved = resolution(t_end, t_high - t_low)
    found = False
    width = np.inf
    for _ in range(_MAX_BISECTIONS):
        leader, steepest, arrived = -1, -1.0, False
        for i in range(roots.n):
            if _crosses(low_values[i], high_values[i], directions[i]):
                share = abs(high_values[i] / (high_values[i] - low_values[i]))
                if leader < 0 or share > steepest:
                    leader, steepest = i, share
            elif _arrives(low_values[i], high_values[i], directions[i]):
                arrived = True
        if leader < 0:
            found = arrived
            break
        found = True
        if abs(right - left) <= resolved:
            break
        if leader != last_leader:
            alpha = 1.0
        elif side == last_side:
            alpha = 2.0 * alpha if side == 0 else 0.5 * alpha
        last_leader, last_side = leader, side
        high = high_values[leader]
        middle = right - (right - left) * high / (high - alpha * low_values[leader])
        width_before, width = width, abs(right - left)
        slow = width > 0.5 * width_before
        if slow or not isfinite(middle) or not isfinite(high_values[leader]) or not isfinite(low_values[leader]):
            middle = 0.5 * (left + right)
        if abs(middle - left) < resolved and abs(right - left) > 10.0 * resolved:
            middle = left + 0.1 * (right - left)
        status = _evaluate_on(system, roots, middle, t_end, psi, phi, k, trial)
        if status != 0:
            return False, middle, status
        on_the_left = False
        for i in range(roots.n):
            direction = directions[i]
            if _crosses(low_values[i], trial[i], direction) or _arrives(low_values[i], trial[i], direction):
                on_the_left = True
        if on_the_left:
            right, side = middle, 1
            _copy(trial, high_values)
        else:
            left, side = middle, 0
            _copy(trial, low_values)
    for i in range(roots.n):
        low, high, direction = low_values[i], high_values[i], directions[i]
        fired[i] = 0
        if found and (_crosses(low, high, direction) or _arrives(low, high, direction)):
            fired[i] = 1 if high > low else -1
    if not found:
        _copy(high_values, low_values)
        return False, t_high, 0
    return True, right, 0
