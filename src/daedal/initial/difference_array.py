"""The derivative array of functions that cannot be traced, by differences: consistent values up to index 3.

F and its partial derivatives are sampled along the Taylor polynomial of x from t0 on, at the points of Chebyshev on the
side of the run, and the interpolating polynomials are differentiated at t0 (Leimkuhler, Petzold and Gear's D_h of high
order; Brenan, Campbell and Petzold, section 5.3.4). A long stretch of few points loses fewer digits than a short one.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import comb, factorial
from typing import Any

import numpy as np
import scipy.sparse as sp

from daedal.initial.array_newton import solve_array
from daedal.initial.newton import InitialResult
from daedal.initial.structure import evaluate_or_nan, partials_of

HIGHEST_INDEX = 3
_POINTS = 7
_STRETCHES = 10.0 ** np.arange(2.0, -6.1, -0.5)  # lengths that are tried, in units of the time scale
_RANK = 1e-6  # singular values below it count as zero: partial derivatives have errors
_SATISFIED = 1e-6
_ROUNDS = 3


@dataclass
class DifferenceArray:
    """F, F', ..., F^(times) at t for x, x', ..., x^(times + 1), by differences over a stretch of time."""

    problem: Any
    times: int
    stretch: float

    def __post_init__(self):
        self.n, self.highest = self.problem.n, self.times + 1
        points = 0.5 * (1.0 - np.cos(np.pi * np.arange(_POINTS) / (_POINTS - 1)))
        inverse = np.linalg.inv(np.vander(points, increasing=True))
        self._taus = self.stretch * points
        self._rules = [factorial(r) * inverse[r] / self.stretch**r for r in range(self.times + 1)]

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of the Jacobian."""
        return self.n * (self.times + 1), self.n * (self.highest + 1)

    def residual(self, t: float, jet: np.ndarray) -> np.ndarray:
        """All equations, NaN where they cannot be evaluated on the way."""
        samples = np.array([evaluate_or_nan(self.problem, t + tau, *_path(jet, tau)) for tau in self._taus])
        return np.concatenate([samples[0], *(rule @ samples for rule in self._rules[1:])])

    def jacobian(self, t: float, jet: np.ndarray) -> sp.csr_array:
        """Their derivatives with respect to x, x', ..., block by block as those of the exact array."""
        samples = [partials_of(self.problem, t + tau, *_path(jet, tau)) for tau in self._taus]
        slopes, values = (np.array(matrices) for matrices in zip(*samples, strict=True))
        blocks = [[np.tensordot(rule, matrices, 1) for rule in self._rules] for matrices in (values, slopes)]
        n, found = self.n, np.zeros(self.shape)
        for r in range(self.times + 1):
            for k in range(r + 1):
                for s in range(2):
                    column = (s + r - k) * n
                    found[r * n : (r + 1) * n, column : column + n] += comb(r, k) * blocks[s][k]
        return sp.csr_array(found)


def difference_array_initial(
    problem, t: float, y: np.ndarray, yp: np.ndarray, *, fixed, fixed_slope=None, weights, index: int, side: float = 1.0
) -> InitialResult:
    """Consistent y and y' of a problem whose index is known, with some of them held.

    Parameters
    ----------
    index : int
        2 or 3; equations are differentiated once less. Derivatives of algebraic variables are not determined by that.
    side : float
        On which side of t the equations may be evaluated.
    """
    times, n = index - 1, problem.n
    jet = np.zeros((times + 2, n))
    jet[:2] = y, yp
    held = np.zeros(jet.shape, dtype=bool)
    held[0], held[1] = fixed, False if fixed_slope is None else fixed_slope
    free, tiers = np.flatnonzero(~held.ravel()), [np.arange(jet.size) < n]
    values, rates = np.abs(jet[:2]).max(axis=1)
    time = values / rates if values > 0.0 and rates > 0.0 else 1.0
    sizes = np.maximum(np.abs(y), 1e3 * weights) / time ** np.arange(times + 2.0)[:, None]
    found = None
    for _ in range(_ROUNDS):  # the values change the path, and that the best stretch
        array = _best_array(problem, times, t, jet, side * time)
        point = solve_array(array, t, jet, free, tiers, sizes.ravel(), rank=_RANK, tolerance=_SATISFIED)
        if point is None:
            break
        jet = point.jet
        found = point if point.satisfied else found
    if found is None:
        return InitialResult(y, yp, False, np.inf)
    return InitialResult(found.jet[0], found.jet[1], True, 0.0)


def _path(jet: np.ndarray, tau: float) -> tuple[np.ndarray, np.ndarray]:
    """x and x' at t0 + tau by Taylor's polynomial."""
    powers = [tau**k / factorial(k) for k in range(len(jet))]
    return powers @ jet, powers[:-1] @ jet[1:]


def _best_array(problem, times: int, t: float, jet: np.ndarray, time: float) -> DifferenceArray:
    """The array whose highest derivatives change least when its stretch is halved."""
    best, least = DifferenceArray(problem, times, 1e-2 * time), np.inf
    for stretch in time * _STRETCHES:
        here, half = (DifferenceArray(problem, times, stretch * part).residual(t, jet) for part in (1.0, 0.5))
        change = float(np.linalg.norm((here - half)[-problem.n :]))
        if change < least:
            best, least = DifferenceArray(problem, times, stretch), change
    return best
