"""How far to move a coordinate in a difference quotient: found by trying, once for a start.

A fixed fraction of |q_j| fails where a length is zero or an angle large. Here the fourth-order quotients of decreasing
increments are compared, at the point and beside it, and the increment is kept where they agree best.
"""

import numpy as np

from daedal.kernels.five_point import five_point

_ROUNDOFF = float(np.finfo(float).eps)
_OFFSETS = np.array([0.0, 0.37, -0.61])  # about a point of symmetry all quotients agree, so others are looked at too
_SHARES = 10.0 ** -np.arange(1.0, 6.5, 0.5)


def best_increment(function, scale: float) -> float:
    """The increment h for which the quotients of ``function(h)`` with h and h/2 agree best.

    ``function(s)`` is a vector, evaluated at the displacement s; it may raise beyond its domain.
    """
    best, smallest = 1e-3 * scale, np.inf
    for h in scale * _SHARES:
        try:
            differences = [_quotient(function, h, s) - _quotient(function, 0.5 * h, s) for s in _OFFSETS * h]
        except Exception:  # beyond the domain of the user's function anything may be raised
            continue
        error = np.max(np.abs(differences), initial=0.0) + _ROUNDOFF / h
        if np.isfinite(error) and error < 0.5 * smallest:
            best, smallest = h, error
    return float(best)


def _quotient(function, h: float, s: float) -> np.ndarray:
    """The central difference quotient of fourth order at the displacement s."""
    return five_point(lambda move: function(s + move), h)


def typical_size(q: np.ndarray) -> np.ndarray:
    """A size for every coordinate: its own where that is not small beside the others."""
    largest = float(np.max(np.abs(q), initial=0.0))
    return np.maximum(np.abs(q), largest) if largest > 0.0 else np.ones_like(q)
