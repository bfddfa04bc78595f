"""Functions of time stored as data: a polynomial through Chebyshev points on each step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

_DEGREES = (5, 9, 14, 20)  # degrees of the polynomials, tried in this order
_AGREED = 1e-11  # tolerated difference between polynomial and function, relative to the size of a row
_NOISE = 1e-4  # lower bound of the size of a row when errors are tested, as a fraction of the largest row of its block
_LARGEST = 1 << 23  # maximum number of stored values: 64 MB
_CHECKED = 40  # number of steps on which degrees are tried
_BETWEEN = np.array([-0.97, -0.31, 0.53])  # test points in [-1, 1]


@dataclass(frozen=True)
class Pieces:
    """Blocks of rows as polynomials on the steps of a run, stored as values at Chebyshev points of the first kind.

    The barycentric formula is that of Berrut and Trefethen, SIAM Review 46 (2004), (4.2) and (5.3). No node lies at the
    end of a step, so functions may be discontinuous between steps.

    Attributes
    ----------
    ends : numpy.ndarray, shape (steps + 1,)
        Boundaries of the steps, increasing.
    forward : bool
        The direction of the run: at the end of a step, the polynomial of this step is used, not that of the next.
    sizes : numpy.ndarray
        Numbers of rows of the blocks.
    values : numpy.ndarray, shape (rows, steps, degree + 1)
    """

    ends: np.ndarray
    forward: bool
    sizes: np.ndarray
    values: np.ndarray

    @classmethod
    def of(cls, function: Callable[[np.ndarray], Sequence[np.ndarray]], ends: np.ndarray, *, forward: bool) -> Pieces:
        """Fit a function that returns blocks of rows at given times; the degree is chosen for round-off accuracy."""
        tried = np.unique(np.linspace(0, ends.size - 2, min(_CHECKED, ends.size - 1)).astype(int))
        times = _within(ends[tried], ends[tried + 1], _BETWEEN).ravel()
        exact = [np.asarray(block) for block in function(times)]
        sizes = np.array([block.shape[0] for block in exact], dtype=np.int64)
        degrees = [d for d in _DEGREES if sizes.sum() * (ends.size - 1) * (d + 1) <= _LARGEST] or _DEGREES[:1]
        for degree in degrees:
            pairs = np.column_stack([ends[tried], ends[tried + 1]])
            sample = _sampled(function, pairs[:, 0], pairs[:, 1], degree)
            found = _interpolated(
                sample, np.repeat(np.arange(tried.size), _BETWEEN.size), np.tile(_BETWEEN, tried.size)
            )
            if degree == degrees[-1] or _agree(found, np.concatenate(exact), sizes):
                break
        return cls(ends, forward, sizes, _sampled(function, ends[:-1], ends[1:], degree))

    def evaluate(self, times: np.ndarray) -> list[np.ndarray]:
        """The blocks at `times`, one column each."""
        inner = self.ends[1:-1]
        step = np.searchsorted(inner, times, side="left" if self.forward else "right")
        begin, end = self.ends[step], self.ends[step + 1]
        found = _interpolated(self.values, step, (2.0 * times - begin - end) / (end - begin))
        return np.split(found, np.cumsum(self.sizes)[:-1])


def _points(degree: int) -> np.ndarray:
    return -np.cos((2 * np.arange(degree + 1) + 1) * np.pi / (2 * degree + 2))


def _within(begin: np.ndarray, end: np.ndarray, points: np.ndarray) -> np.ndarray:
    """Points of [-1, 1] mapped to several intervals, one row for each interval."""
    return 0.5 * (begin + end)[:, None] + 0.5 * (end - begin)[:, None] * points


def _sampled(function, begin: np.ndarray, end: np.ndarray, degree: int) -> np.ndarray:
    times = _within(begin, end, _points(degree))
    blocks = np.concatenate([np.asarray(block) for block in function(times.ravel())])
    return np.ascontiguousarray(blocks.reshape(blocks.shape[0], *times.shape))


def _interpolated(values: np.ndarray, step: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Evaluate the polynomials of given steps at points x of [-1, 1], (rows, len(x))."""
    degree = values.shape[2] - 1
    places = np.arange(degree + 1)
    weights = (-1.0) ** places * np.sin((2 * places + 1) * np.pi / (2 * degree + 2))
    distance = x[:, None] - _points(degree)
    hit = distance == 0.0
    distance[hit] = 1.0
    shares = np.where(hit.any(axis=1)[:, None], hit.astype(float), weights / distance)
    shares /= shares.sum(axis=1, keepdims=True)
    return np.einsum("mj,rmj->rm", shares, values[:, step])


def _agree(found: np.ndarray, exact: np.ndarray, sizes: np.ndarray) -> bool:
    begin = 0
    for size in sizes.tolist():
        here, there = found[begin : begin + size], exact[begin : begin + size]
        begin += size
        if not size or not np.isfinite(there).all():
            continue
        rows = np.max(np.abs(there), axis=1, initial=0.0)
        allowed = _AGREED * np.maximum(rows, _NOISE * rows.max(initial=0.0))
        if np.any(np.max(np.abs(here - there), axis=1, initial=0.0) > allowed):
            return False
    return True
