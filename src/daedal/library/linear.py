"""Linear DAEs ``H x' + G x = f(t)`` with constant matrices and sinusoidal sources: the form of linear circuits."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

import daedal

Array = np.ndarray


class Source(NamedTuple):
    """The signal ``offset + amplitude * sin(frequency * t + phase)``; `frequency` is angular."""

    offset: float = 0.0
    amplitude: float = 0.0
    frequency: float = 0.0
    phase: float = 0.0

    def __call__(self, t: float, derivative: int = 0) -> float:
        """The value at `t`, or that of a time derivative."""
        angle = self.frequency * t + self.phase + derivative * np.pi / 2.0
        oscillation = self.amplitude * self.frequency**derivative * np.sin(angle)
        return float(oscillation + (self.offset if derivative == 0 else 0.0))


def residual(t, x, xp, p):
    """``H x' + G x - f(t)``; the parameters hold four counts, the entries of H and of G, and the sources (`_pack`)."""
    n, n_h, n_g, n_f = int(p[0]), int(p[1]), int(p[2]), int(p[3])
    r = np.zeros(n)
    k = 4
    for _ in range(n_h):
        r[int(p[k])] += p[k + 2] * xp[int(p[k + 1])]
        k += 3
    for _ in range(n_g):
        r[int(p[k])] += p[k + 2] * x[int(p[k + 1])]
        k += 3
    for _ in range(n_f):
        r[int(p[k])] -= p[k + 1] + p[k + 2] * np.sin(p[k + 3] * t + p[k + 4])
        k += 5
    return r


def jacobian(t, x, xp, cj, p):
    """``G + cj H``."""
    n, n_h, n_g = int(p[0]), int(p[1]), int(p[2])
    matrix = np.zeros((n, n))
    k = 4
    for _ in range(n_h):
        matrix[int(p[k]), int(p[k + 1])] += cj * p[k + 2]
        k += 3
    for _ in range(n_g):
        matrix[int(p[k]), int(p[k + 1])] += p[k + 2]
        k += 3
    return matrix


def linear_dae(H: Array, G: Array, sources: Mapping[int, Source], names: Sequence[str]) -> daedal.ImplicitDAE:
    """The problem ``H x' + G x = f(t)``; `sources` gives ``f`` by equation."""
    algebraic = np.flatnonzero(~np.any(H != 0.0, axis=0))
    params = _pack(np.asarray(H, dtype=float), np.asarray(G, dtype=float), sources)
    return daedal.ImplicitDAE(residual, len(H), jacobian=jacobian, params=params, algebraic=algebraic, names=names)


def _pack(H: Array, G: Array, sources: Mapping[int, Source]) -> Array:
    packed = [float(len(H)), float(np.count_nonzero(H)), float(np.count_nonzero(G)), float(len(sources))]
    for matrix in (H, G):
        for row, column in np.argwhere(matrix):
            packed += [float(row), float(column), float(matrix[row, column])]
    for row, source in sources.items():
        packed += [float(row), *map(float, source)]
    return np.array(packed)


def response(A: Array, inputs: Sequence[tuple[Array, Source]], x0: Array) -> Callable[[float, int], Array]:
    """Closed solution of ``x' = A x + sum b_k s_k(t)``, ``x(0) = x0``, for a stable matrix A.

    Returns ``x(t, derivative)``: stationary oscillations, and the rest that decays with ``exp(A t)``.
    """
    from scipy.linalg import expm

    identity = np.eye(len(A))
    constant = np.zeros(len(A))
    phasors = []
    for b, source in inputs:
        constant -= np.linalg.solve(A, b * source.offset)
        amplitude = source.amplitude * np.exp(1j * source.phase) * b
        phasors.append((source.frequency, np.linalg.solve(1j * source.frequency * identity - A, amplitude)))

    def stationary(t: float, derivative: int) -> Array:
        x = constant if derivative == 0 else np.zeros(len(A))
        for omega, phasor in phasors:
            x = x + np.imag((1j * omega) ** derivative * phasor * np.exp(1j * omega * t))
        return x

    rest = x0 - stationary(0.0, 0)

    def x(t: float, derivative: int = 0) -> Array:
        return stationary(t, derivative) + np.linalg.matrix_power(A, derivative) @ expm(A * t) @ rest

    return x
