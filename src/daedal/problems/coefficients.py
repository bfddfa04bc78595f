"""Coefficients of linear problems: constants or functions of time, with checked shapes and derivatives."""

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from daedal.errors import InvalidProblemError
from daedal.problems.checks import check_real

_ROUNDOFF = float(np.finfo(float).eps)


def coefficient_at(name: str, value: Any, t: float, shape: tuple[int, ...]) -> np.ndarray:
    """Value at `t` of a coefficient that is a constant or a function of t."""
    result = value(t) if callable(value) else value
    if result is None:
        verb = "returned" if callable(value) else "is"
        raise InvalidProblemError(f"{name} {verb} None; expected an array of shape {shape}")
    array = check_real(result, name, f"hold real numbers, shape {shape}")
    if [k for k in array.shape if k != 1] != [k for k in shape if k != 1]:
        raise InvalidProblemError(f"{name} has shape {array.shape}; expected {shape}")
    return array.reshape(shape)


def derivative_at(name: str, value: Any, derivative: Callable[..., Any] | None, t: float, shape: tuple[int, ...]):
    """Derivative of a coefficient: given, zero for a constant, or by finite differences."""
    if derivative is not None:
        return coefficient_at(f"{name}_derivative", derivative, t, shape)
    if not callable(value):
        return np.zeros(shape)
    return derivatives_by_differences(lambda s: coefficient_at(name, value, s, shape), t, 1)[0]


_FIRST = 0.02  # first increment, for |t| up to 1000; proportional to |t| beyond
_RATIO, _MOST_TRIED = 8.0, 24
_GOOD = 1e-8  # relative error up to which an increment is accepted; the returned derivatives are far more accurate


def derivatives_by_differences(function: Callable[[float], np.ndarray], t: float, m: int) -> np.ndarray:
    """Derivatives 1..m of a function of time, from an interpolating polynomial through 9 or more points around t.

    The increment adapts to the function: it is reduced until the polynomial through fewer points agrees, and increased
    if rounding errors dominate. The points are not equidistant, since an oscillation sampled at whole periods would
    appear constant.
    """
    here = np.asarray(function(t), dtype=float)
    h = _FIRST * max(1.0, abs(t) * 1e-3)
    best, least, towards = np.zeros((m, *here.shape)), np.inf, 0
    for _ in range(_MOST_TRIED):
        found, error, noise = _from_polynomial(function, here, t, h, m)
        if error + noise < least:
            best, least = found, error + noise
        if max(error, noise) <= _GOOD:
            break
        direction = -1 if error > noise else 1
        if direction == -towards:  # no further improvement between these two increments
            break
        towards, h = direction, h * _RATIO**direction
    return best


def _from_polynomial(function, here: np.ndarray, t: float, h: float, m: int):
    """Derivatives with increment h, their disagreement with those from fewer points, and their rounding errors.

    Both errors are relative to the typical derivatives, k! / h^k times the largest change of the function within h.
    """
    half = 4 + m // 2
    side = np.arange(1.0, half + 1)
    side += 0.2 * np.sin(2.4 * side)
    nodes = np.concatenate([-side[::-1], [0.0], side])
    moves = (t + h * nodes) - t
    samples = [here if move == 0.0 else np.asarray(function(t + move), dtype=float) for move in moves]
    changes = np.array([(sample - here).ravel() for sample in samples])
    if not np.all(np.isfinite(changes)):
        return np.full((m, *here.shape), np.nan), np.inf, 0.0
    size, largest = np.max(np.abs(changes), initial=0.0), np.max(np.abs(here), initial=0.0)
    if size == 0.0:
        return np.zeros((m, *here.shape)), 0.0, 0.0
    taylor = np.linalg.solve(np.vander(moves / h, increasing=True), changes)[1 : m + 1]
    inner = np.linalg.solve(np.vander(moves[1:-1] / h, increasing=True), changes[1:-1])[1 : m + 1]
    factors = np.array([prod(range(1, k + 1)) / h**k for k in range(1, m + 1)])[:, None]
    # t is rounded too: a function that changes by `size` over h has this relative error
    noise = _ROUNDOFF * (largest + size + size * abs(t) / h) / size
    found = (factors * taylor).reshape((m, *here.shape))
    return found, float(np.max(np.abs(taylor - inner)) / size), float(noise)
