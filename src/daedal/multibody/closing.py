r"""Closing loops: the nearest zero of conditions that may depend on each other, by the Levenberg-Marquardt method.

A step is :math:`-V\, s / (s^2 + \mu)\, U^T r` with the singular values s of the Jacobian :math:`U s V^T`, which is the
one of smallest norm for :math:`\mu = 0` (Gauss and Newton); :math:`\mu` grows where the residual does not shrink
(Nocedal and Wright, *Numerical Optimization*, 10.3). Steps are bounded, so that the branch near the guess is found.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

CLOSED = 1e-10
"""Conditions, scaled to gradients of norm 1, count as satisfied up to here."""
_LONGEST = 0.5
_RANK = 1e-10
_MOST = 120
_AMPLITUDES = (0.02, 0.3, 1.0, 3.0)


class Closed(NamedTuple):
    """Where the search ended, and the norm of the conditions there."""

    x: np.ndarray
    size: float

    @property
    def found(self) -> bool:
        """Whether the conditions are satisfied."""
        return self.size <= CLOSED


Conditions = Callable[[np.ndarray], np.ndarray]


def nearest_zero(residual: Conditions, jacobian: Conditions, x: np.ndarray) -> Closed:
    """A zero of `residual` near `x`, or where it is smallest there."""
    r = residual(x)
    size, damping = float(np.linalg.norm(r)), 0.0
    for _ in range(_MOST):
        if size == 0.0 or not np.isfinite(size):
            break
        U, s, V = np.linalg.svd(jacobian(x), full_matrices=False)
        largest = float(s[0]) if s.size else 0.0
        if largest == 0.0:
            break
        s, along = np.where(s > _RANK * largest, s, 0.0), U.T @ r
        if np.linalg.norm(s * along) <= 1e-13 * largest * size and size > CLOSED:
            break  # the gradient of the squares vanishes
        moved = None
        for _ in range(12):
            share = np.divide(s, s**2 + damping, out=np.zeros_like(s), where=s > 0.0)
            step = -V.T @ (share * along)
            longest = float(np.max(np.abs(step), initial=0.0))
            step *= min(1.0, _LONGEST / longest) if longest > 0.0 else 1.0
            ahead = residual(x + step)
            if np.linalg.norm(ahead) < size:
                moved = x + step
                break
            if size <= CLOSED:
                break
            damping = max(4.0 * damping, 1e-4 * largest**2)
        if moved is None:
            break
        before, size, x, r = size, float(np.linalg.norm(ahead)), moved, ahead
        damping = damping * 0.1 if damping > 1e-8 * largest**2 else 0.0
        if size > CLOSED and before - size < 1e-10 * before:
            break
    return Closed(x, size if np.isfinite(size) else np.inf)


def search(residual: Conditions, jacobian: Conditions, x: np.ndarray, accepted: Callable[[np.ndarray], bool]) -> Closed:
    """The zero nearest to `x` that is accepted, also from points farther and farther away; or the best that was found.

    Where no zero is accepted, one that is not is better than none.
    """
    best = nearest_zero(residual, jacobian, x)
    if (best.found and accepted(best.x)) or x.size == 0:
        return best
    generator = np.random.default_rng(17)
    tries = 6 if x.size <= 60 else 1
    for amplitude in _AMPLITUDES:
        ends = [
            nearest_zero(residual, jacobian, x + amplitude * generator.uniform(-1.0, 1.0, x.size)) for _ in range(tries)
        ]
        good = [end for end in ends if end.found and accepted(end.x)]
        if good:
            return min(good, key=lambda end: float(np.linalg.norm(end.x - x)))
        best = min([best, *ends], key=lambda end: end.size if not end.found else 0.0)
    return best
