"""Consistent values at the start of a run of a constrained system."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np


@dataclass
class ConsistentStart:
    """Consistent values at the start of a run: z = (q, v), r, w, accelerations, and multipliers of the rows in use."""

    t: float
    z: np.ndarray
    a: np.ndarray
    lam: np.ndarray
    r: np.ndarray = field(default_factory=lambda: np.zeros(0))
    rate: np.ndarray = field(default_factory=lambda: np.zeros(0))
    w: np.ndarray = field(default_factory=lambda: np.zeros(0))
    direction: int = 1  # direction of time: -1 for backward integration, which changes the sign of damping

    def towards(self, sign: float) -> ConsistentStart:
        """A copy with the given direction of time."""
        return self if sign * self.direction > 0 else replace(self, direction=int(sign))

    @property
    def slope(self) -> np.ndarray:
        """z'."""
        nx = self.a.size
        return np.concatenate([self.z[nx:], self.a])
