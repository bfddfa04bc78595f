"""The integral in the variation of constants, for right-hand sides that are not known in closed form."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from daedal.messages import warn

_TOLERANCE, _WORST = 1e-11, 1e-8  # relative error that is asked for, and from which on its estimate is told
_INTERVALS = 400  # at most
_EQUAL = 64  # intervals of equal length to begin with, so that short pulses are seen
_LARGEST_CONDITION = 1e3  # of eigenvectors by which exponentials may be computed


def variation_of_constants(
    C: np.ndarray, f: Callable[[float], np.ndarray], start: np.ndarray, t0: float, t: float
) -> np.ndarray:
    """y(t) of y' + C y = f: exp(-C (t - t0)) y(t0) plus the integral of exp(-C (t - s)) f(s).

    The exponential changes within 1/|lambda| of one end of the interval, lambda the largest eigenvalue: adaptive
    quadrature that begins with equal intervals may never look there. It begins with a grid that is geometric towards
    both ends. A ``scipy.integrate.IntegrationWarning`` tells where the tolerance is not met.
    """
    from scipy.integrate import IntegrationWarning, quad_vec

    if t == t0:
        return start
    eigenvalues, vectors = np.linalg.eig(C)
    exponential = _exponential(C, eigenvalues, vectors)
    length = min(abs(t - t0), 1.0 / max(float(np.max(np.abs(eigenvalues))), np.finfo(float).tiny))
    grid = _grid(t0, t, length)
    size = max(float(np.max(np.abs(f(s)))) for s in grid) * length
    integral, error = quad_vec(
        lambda s: exponential(s - t) @ f(s),
        min(t0, t),
        max(t0, t),
        epsabs=max(_TOLERANCE * size, np.finfo(float).tiny),
        epsrel=_TOLERANCE,
        norm="max",
        limit=_INTERVALS,
        points=grid[1:-1],
    )[:2]
    allowed = _WORST * max(float(np.max(np.abs(integral))), size)
    if not error <= allowed:
        warn(
            f"the integral of f from t = {t0:g} to {t:g} has an estimated error of {error:.2g}, above {allowed:.2g}. "
            "Remedy: begin anew, with t0 and x0, where f jumps or changes fast, or give f in closed form "
            "(linear.polynomial, linear.exponential, linear.sine)",
            IntegrationWarning,
        )
    return exponential(t0 - t) @ start + (integral if t > t0 else -integral)


def _exponential(C: np.ndarray, eigenvalues: np.ndarray, vectors: np.ndarray) -> Callable[[float], np.ndarray]:
    """exp(C s) as a function of s, by eigenvectors where they are well conditioned."""
    from scipy.linalg import expm

    if np.linalg.cond(vectors) > _LARGEST_CONDITION:
        return lambda s: expm(C * s)
    inverse = np.linalg.inv(vectors)
    return lambda s: ((vectors * np.exp(eigenvalues * s)) @ inverse).real


def _grid(t0: float, t: float, length: float) -> np.ndarray:
    """From t0 to t: equal intervals, and towards both ends shorter ones, down to a length, each twice the next."""
    span = t - t0
    halvings = int(np.ceil(np.log2(abs(span) / length))) if length < abs(span) else 0
    graded = 0.5 ** np.arange(1.0, halvings + 1.0)
    shares = np.unique(np.concatenate([np.linspace(0.0, 1.0, _EQUAL + 1), graded, 1.0 - graded]))
    grid = t0 + span * shares
    return np.concatenate([[t0], grid[1:-1], [t]])
