"""What random problems are made of: smooth functions of time, well-conditioned matrices, units and intervals."""

from __future__ import annotations

import numpy as np


class Signals:
    """n smooth functions of a time of size 1: sums of two oscillations and a drift, with derivatives."""

    def __init__(self, rng: np.random.Generator, n: int, fastest: float = 3.0):
        self.amplitude = rng.uniform(0.3, 1.0, (n, 2))
        self.frequency = rng.uniform(0.2, fastest, (n, 2))
        self.phase = rng.uniform(0.0, 2.0 * np.pi, (n, 2))
        self.drift = rng.normal(size=n)

    def __call__(self, s, order: int = 0) -> np.ndarray:
        """The derivative of the given order at s, a number or a vector; one row for each function."""
        s = np.asarray(s, dtype=float)
        angle = np.multiply.outer(self.frequency, s) + self._like(self.phase, s) + 0.5 * np.pi * order
        waves = np.sum(self._like(self.amplitude * self.frequency**order, s) * np.sin(angle), axis=1)
        polynomial = (0.2 * np.multiply.outer(self.drift, s), 0.2 * self._like(self.drift, s) + 0.0 * s)
        return waves + polynomial[order] if order < 2 else waves

    @staticmethod
    def _like(values: np.ndarray, s: np.ndarray) -> np.ndarray:
        return values.reshape(values.shape + (1,) * s.ndim)


def regular(rng: np.random.Generator, n: int, spread: float = 3.0) -> np.ndarray:
    """A matrix with singular values between 1/spread and spread."""
    left, right = (np.linalg.qr(rng.normal(size=(n, n)))[0] for _ in range(2))
    return left * spread ** rng.uniform(-1.0, 1.0, n) @ right


def damped(rng: np.random.Generator, n: int) -> np.ndarray:
    """A matrix whose exponential does not grow: a symmetric part below zero, now and then stiff."""
    stiffness = 10.0 ** rng.uniform(-1.0, 3.0 if rng.random() < 0.3 else 0.5, n)
    turn, turned = rng.normal(size=(n, n)), np.linalg.qr(rng.normal(size=(n, n)))[0]
    return -turned * stiffness @ turned.T + 0.5 * (turn - turn.T)


def unit(rng: np.random.Generator, decades: float) -> float:
    """1 in a third of the cases, otherwise a power of ten up to so many decades away."""
    return 1.0 if rng.random() < 1 / 3 else float(10.0 ** rng.uniform(-decades, decades))


class Clock:
    """An interval in some unit of time, forward or backward, that does not begin at zero; s counts units from t0."""

    def __init__(self, rng: np.random.Generator, length: float):
        self.length = length
        self.second = unit(rng, 9.0) * (1.0 if rng.random() < 0.8 else -1.0)
        self.t0 = abs(self.second) * (0.0 if rng.random() < 0.5 else rng.uniform(-5.0, 5.0))
        self.t_span = self.t0, self.t0 + self.second * length
        inside = np.sort(rng.uniform(0.0, length, 12))
        self.t_eval = np.append(self.t0 + self.second * inside, self.t_span[1])

    def s(self, t):
        """The time counted from the start, in units."""
        return (np.asarray(t) - self.t0) / self.second


def tolerance(rng: np.random.Generator) -> float:
    """A relative tolerance that users ask for."""
    return float(10.0 ** rng.uniform(-8.0, -3.0))
