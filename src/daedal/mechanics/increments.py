"""Difference increments along a direction of a large system, found by trial once per start.

Fourth-order quotients with growing increments are compared, at the point and near it. The search stops before quotients
disagree and returns the increment with the best agreement, so it never reaches whole periods. Systems with dense
matrices have increments per coordinate, which are adapted during the run (:mod:`.differences`).
"""

import numpy as np

from daedal.kernels.five_point import five_point

_ROUNDOFF = float(np.finfo(float).eps)
_OFFSETS = np.array([0.0, 0.37, -0.61])  # nearby points, since all quotients agree at a point of symmetry
_SHARES = 10.0 ** np.arange(-9.0, -0.5, 0.5)
_WORSE = 1e3  # multiple of the smallest disagreement above which the search ends


def best_increment(function, scale: float) -> float:
    """The increment h for which the quotients of ``function(h)`` with h and h/2 agree best.

    ``function(s)`` is a vector, evaluated at the displacement s; it may raise outside its domain.
    """
    best, smallest = 1e-3 * scale, np.inf
    for h in scale * _SHARES:
        try:
            differences = [_quotient(function, h, s) - _quotient(function, 0.5 * h, s) for s in _OFFSETS * h]
        except Exception:  # user functions may raise anything outside their domain
            break
        error = np.max(np.abs(differences), initial=0.0) + _ROUNDOFF / h
        if not np.isfinite(error) or error > _WORSE * smallest:
            break
        if error <= 2.0 * smallest:  # among equally good increments, the longest also suits second differences
            best, smallest = h, min(error, smallest)
    return float(best)


def _quotient(function, h: float, s: float) -> np.ndarray:
    """The central difference quotient of fourth order at the displacement s."""
    return five_point(lambda move: function(s + move), h)


def typical_size(q: np.ndarray) -> np.ndarray:
    """Size of every coordinate: its absolute value, unless that is small relative to the others."""
    largest = float(np.max(np.abs(q), initial=0.0))
    return np.maximum(np.abs(q), largest) if largest > 0.0 else np.ones_like(q)
