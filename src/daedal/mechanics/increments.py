"""Difference increments along a direction of a large system, found by trial once per start.

Fourth-order quotients with growing increments are compared, at the point and near it, and the increment with the best
agreement before disagreement begins is kept: an increment of whole periods is never reached. Systems with dense
matrices have increments per coordinate, which are adapted during the run (:mod:`.differences`).
"""

import numpy as np

from daedal.kernels.five_point import five_point

_ROUNDOFF = float(np.finfo(float).eps)
_OFFSETS = np.array([0.0, 0.37, -0.61])  # at a point of symmetry all quotients agree, so nearby points are tried too
_SHARES = 10.0 ** np.arange(-9.0, -0.5, 0.5)
_WORSE = 1e3  # multiple of the smallest disagreement at which the search ends


def best_increment(function, scale: float) -> float:
    """The increment h for which the quotients of ``function(h)`` with h and h/2 agree best.

    ``function(s)`` is a vector, evaluated at the displacement s; it may raise beyond its domain.
    """
    best, smallest = 1e-3 * scale, np.inf
    for h in scale * _SHARES:
        try:
            differences = [_quotient(function, h, s) - _quotient(function, 0.5 * h, s) for s in _OFFSETS * h]
        except Exception:  # beyond the domain a user function may raise anything
            break
        error = np.max(np.abs(differences), initial=0.0) + _ROUNDOFF / h
        if not np.isfinite(error) or error > _WORSE * smallest:
            break
        if error <= 2.0 * smallest:  # among equally good ones, the longest: second differences use it too
            best, smallest = h, min(error, smallest)
    return float(best)


def _quotient(function, h: float, s: float) -> np.ndarray:
    """The central difference quotient of fourth order at the displacement s."""
    return five_point(lambda move: function(s + move), h)


def typical_size(q: np.ndarray) -> np.ndarray:
    """A size for every coordinate: its own unless that is small relative to the others."""
    largest = float(np.max(np.abs(q), initial=0.0))
    return np.maximum(np.abs(q), largest) if largest > 0.0 else np.ones_like(q)
