"""Fundamental matrices of w' = M(t) w on a grid, and integrals of the norms of Green's functions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from daedal.problem_conditioning.matrices import at_gauss_points, norm

_A1, _A2 = 0.25 - np.sqrt(3.0) / 6.0, 0.25 + np.sqrt(3.0) / 6.0
_PER_OCTAVE = 4  # points in each halving of the distance s = t - tau, where the kernel may fall steeply
_MOST_OCTAVES = 60
_ROUND_OFF = 1e-9
_TAYLOR_RADIUS, _TAYLOR_DEGREE = 0.5, 14  # remainder below 1e-16
_RESOLVED = 0.05  # |M| times the shortest distance


def exponential(matrices: np.ndarray) -> np.ndarray:
    """The exponentials of a stack of small matrices: a Taylor polynomial, scaled and squared, by products alone."""
    largest = float(np.max(norm(matrices), initial=0.0))
    if not np.isfinite(largest):
        return np.full_like(matrices, np.nan)
    squarings = int(max(0.0, np.ceil(np.log2(max(largest, 1e-300) / _TAYLOR_RADIUS))))
    scaled = matrices / 2.0**squarings
    unit = np.broadcast_to(np.eye(matrices.shape[-1]), matrices.shape)
    result = unit
    for k in range(_TAYLOR_DEGREE, 0, -1):
        result = unit + scaled @ result / k
    for _ in range(squarings):
        result = result @ result
    return result


def step(samples: np.ndarray, h: float) -> np.ndarray:
    """The fundamental matrix over an interval of length h, from M at its nodes.

    The commutator-free exponential method of order 4 (S. Blanes, P. C. Moan, Appl. Numer. Math. 56, 2006); exact for
    constant M, however stiff.
    """
    if samples.shape[-1] == 0:
        return np.zeros(samples.shape[1:])
    first, second = at_gauss_points(samples)
    with np.errstate(all="ignore"):
        late, early = exponential(h * np.array([_A1 * first + _A2 * second, _A2 * first + _A1 * second]))
        return late @ early


def short_times(M: np.ndarray, h: float) -> tuple[np.ndarray, np.ndarray]:
    """Distances tau from 0 to |h|, graded towards 0, and exp(tau M) there (with the sign of h)."""
    size = float(norm(M)) * abs(h)
    octaves = int(np.clip(np.ceil(np.log2(max(size, 1e-300) / _RESOLVED)), 1, _MOST_OCTAVES))
    first = abs(h) * 2.0 ** (-octaves + np.arange(_PER_OCTAVE) / _PER_OCTAVE)
    if M.shape[0] == 0:
        return np.array([0.0, abs(h)]), np.zeros((2, 0, 0))
    with np.errstate(all="ignore"):
        powers = exponential(np.sign(h) * first[:, None, None] * M)
        tau, found = [np.zeros(1), first], [np.eye(M.shape[0])[None], powers]
        for k in range(1, octaves):
            powers = powers @ powers
            tau.append(first * 2.0**k)
            found.append(powers)
        tau.append(np.array([abs(h)]))
        found.append((powers @ powers)[:1])
    return np.concatenate(tau), np.concatenate(found)


def pieces(left: np.ndarray, right: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Integrals over pieces on which a function runs from left to right like an exponential: the logarithmic mean."""
    low, high = np.minimum(left, right), np.maximum(left, right)
    near = high - low <= 1e-6 * high
    with np.errstate(all="ignore"):
        logarithmic = (high - low) / np.log(high / np.maximum(low, 1e-300 + 1e-12 * high))
    return lengths * np.where(near, 0.5 * (low + high), np.where(np.isfinite(high), logarithmic, np.inf))


class Kernel:
    """k(t, s) = L(t) Phi(t, s) R(s) on a grid, with the fundamental matrix Phi of w' = M(t) w.

    Parameters
    ----------
    t : numpy.ndarray, shape (N,)
        The grid.
    steps : numpy.ndarray, shape (N - 1, n, n)
        Fundamental matrices from each point to the next.
    M : numpy.ndarray, shape (N, n, n)
        The matrix of the equation on the grid.
    """

    def __init__(self, t: np.ndarray, steps: np.ndarray, M: np.ndarray):
        self.t, self.steps, self.M = t, steps, M
        self._short = [short_times(M[k], t[k] - t[k - 1]) for k in range(1, t.size)]

    def from_start(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """L(t) Phi(t, t0) R(t0) on the grid."""
        found = [right]
        with np.errstate(all="ignore"):
            for one in self.steps:
                found.append(one @ found[-1])
            return left @ np.array(found)

    def growth(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """The norm of L(t) Phi(t, t0) R(t0) on the grid; a peak inside the first interval counts for its end."""
        values = norm(self.from_start(left, right))
        with np.errstate(all="ignore"):
            inside = norm(left[0] @ self._short[0][1] @ right)
        if np.max(inside) > (1.0 + _ROUND_OFF) * max(values[0], values[1]):
            values[1] = np.max(inside)
        return values

    def integrals(self, kernels: Sequence[tuple[np.ndarray, np.ndarray]]) -> list[np.ndarray]:
        """For each pair (L, R) on the grid, the integrals of |L(t) Phi(t, s) R(s)| over s from t0 to t, for all t."""
        lengths = np.abs(np.diff(self.t))
        results = [np.zeros(self.t.size) for _ in kernels]
        carried = [right[:1] for _, right in kernels]
        with np.errstate(all="ignore"):
            for k, one in enumerate(self.steps, start=1):
                tau, short = self._short[k - 1]
                for place, (left, right) in enumerate(kernels):
                    moved = one @ carried[place]  # Phi(t_k, s) R(s) for all s of the grid before t_k
                    far = norm(left[k] @ moved)
                    near = norm(left[k] @ short @ right[k])
                    total = np.sum(pieces(far[:-1], far[1:], lengths[: k - 1]))
                    results[place][k] = total + np.sum(pieces(near[:-1], near[1:], np.diff(tau)))
                    carried[place] = np.concatenate([moved, right[k : k + 1]])
        return results
