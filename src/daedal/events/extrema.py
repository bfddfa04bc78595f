"""Sign changes inside a step that the signs at its ends do not reveal: pairs of crossings, and contacts.

One value at the midpoint of the step and the parabola through the three show whether a function turns back towards
zero. Only then is its extremum on the interpolant located, by successive parabolas, until the sign has changed or a
sign change is excluded.
"""

from math import isfinite

import numpy as np

from daedal.events.switching import MUTED, evaluate_on, same_sign
from daedal.kernels.compilation import inlined, part
from daedal.kernels.vectors import copy

_MARGIN = 0.25  # fraction of the step by which the parabola may misplace an extremum
_CLEAR = 0.7  # an extremum above this fraction of the smallest observed value is not near zero
_NEAR_END = 0.01
_MOST_PARABOLAS = 25
_NARROW = 1e-7  # fraction of the step at which the search for an extremum ends


@part
def first_reversal(system, roots, left, right, t_end, psi, phi, k):
    """Find a point in (left, right) at which a function has a sign that it has at neither end.

    Returns (place, touching, status), with place = `right` if there is none; ``roots.high`` contains the values there.
    `touching` is the index of a function that comes closer than its delta to zero there without changing sign, or -1.
    """
    n = roots.n
    low, high, middle, trial, last = (
        roots.low,
        roots.high,
        roots.middle,
        roots.trial,
        roots.last,
    )
    aim, interior = roots.aim, roots.interior
    touch, delta = roots.touch, roots.delta
    place, touching, asked = right, -1, False
    for i in range(n):
        asked = asked or (interior[i] != 0 and aim[i] != MUTED and same_sign(low[i], last[i]))
    if not asked:
        return place, touching, 0
    status = evaluate_on(system, roots, 0.5 * (left + right), t_end, psi, phi, k, middle)
    if status != 0:
        return place, touching, status
    for i in range(n):
        if not (interior[i] and aim[i] != MUTED and same_sign(low[i], last[i])):
            continue
        x, value, allowed = 0.5, 0.0, delta[i] if touch[i] else 0.0
        if same_sign(low[i], middle[i]):
            x, value, status = _lowest(system, roots, i, left, right - left, t_end, psi, phi, k, allowed)
            if status != 0:
                return place, touching, status
        found = left + x * (right - left)
        if value <= allowed and abs(found - left) < abs(place - left):
            status = evaluate_on(system, roots, found, t_end, psi, phi, k, trial)
            if status != 0:
                return place, touching, status
            place, touching = found, i if value > 0.0 else -1
            copy(high, trial)
    return place, touching, 0


@part
def _lowest(system, roots, i, left, length, t_end, psi, phi, k, allowed):
    """Follow function i, multiplied by its sign to be positive, to its extremum or to the first value below zero.

    Returns (x, value, status), where the place of the value is left + x length. The search stops as soon as a parabola
    remains above zero, or above `allowed`.
    """
    sign = 1.0 if roots.low[i] > 0.0 else -1.0
    xa, xm, xb = 0.0, 0.5, 1.0
    fa, fm, fb = sign * roots.low[i], sign * roots.middle[i], sign * roots.last[i]
    u = _turning(fa, fm, fb, roots.fired[i] != 0, allowed)
    if u < 0.0:
        return xm, np.inf, 0
    if not (fm < fa and fm < fb):  # the lowest value is at an end: test for a lower one next to it
        value, status = _value(system, roots, i, left + u * length, t_end, psi, phi, k, sign)
        edge = 1.0 - _NEAR_END if u > 0.5 else _NEAR_END
        if status == 0 and value >= min(fa, fb) and u != edge:
            u = edge
            value, status = _value(system, roots, i, left + u * length, t_end, psi, phi, k, sign)
        if status != 0 or value >= min(fa, fb):
            return xm, np.inf, status
        if u > 0.5:
            xa, fa = xm, fm
        else:
            xb, fb = xm, fm
        xm, fm = u, value
    for _ in range(_MOST_PARABOLAS):
        x, least = _vertex(xa, fa, xm, fm, xb, fb)
        if fm <= 0.0 or not least < max(_CLEAR * fm, allowed) or xb - xa < _NARROW:
            break
        if abs(x - xm) < 1e-3 * (xb - xa):
            x = xm + 0.05 * ((xb - xm) if xb - xm > xm - xa else (xa - xm))
        value, status = _value(system, roots, i, left + x * length, t_end, psi, phi, k, sign)
        if status != 0:
            return x, value, status
        if value < fm:
            if x > xm:
                xa, fa = xm, fm
            else:
                xb, fb = xm, fm
            xm, fm = x, value
        elif x > xm:
            xb, fb = x, value
        else:
            xa, fa = x, value
    return xm, fm, 0


@part
def _value(system, roots, i, t, t_end, psi, phi, k, sign):
    """Value at t of function i, multiplied by `sign`, and the status of the evaluation."""
    trial = roots.trial
    status = evaluate_on(system, roots, t, t_end, psi, phi, k, trial)
    return sign * trial[i], status


@inlined
def _turning(fa, fm, fb, just_fired, allowed):
    """Point at which the parabola through three equidistant values comes near zero, or -1."""
    u, curvature = -1.0, fa - 2.0 * fm + fb
    if curvature > 0.0 and isfinite(curvature):
        vertex = 0.5 + 0.25 * (fa - fb) / curvature
        least = fm - 0.125 * (fb - fa) ** 2 / curvature
        near = least < max(_CLEAR * min(fa, fm, fb), allowed)
        inside = -_MARGIN < vertex < 1.0 + _MARGIN
        leaving = just_fired and vertex < 0.5 and fa <= fm  # functions that have just fired move away from zero
        if near and inside and not leaving:
            u = vertex
            if vertex <= 0.0:
                u = _NEAR_END
            elif vertex >= 1.0:
                u = 1.0 - _NEAR_END
    return u


@inlined
def _vertex(xa, fa, xm, fm, xb, fb):
    """Place and value of the extremum of the parabola through three points, of which the middle one is the lowest."""
    p, q = (fm - fa) / (xm - xa), (fb - fm) / (xb - xm)
    curvature = (q - p) / (xb - xa)
    slope = p + curvature * (xm - xa)  # slope at xm
    x, least = xm, fm
    if curvature > 0.0:
        x = xm - 0.5 * slope / curvature
        least = fm - 0.25 * slope * slope / curvature
    return x, least
