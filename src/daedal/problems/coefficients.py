"""Coefficients of linear problems: constants or functions of time, with checked shapes and derivatives."""

from collections.abc import Callable
from typing import Any

import numpy as np

from daedal.errors import InvalidProblemError
from daedal.problems.checks import check_real


def coefficient_at(name: str, value: Any, t: float, shape: tuple[int, ...]) -> np.ndarray:
    """A coefficient, constant or a function of t, at `t`."""
    result = value(t) if callable(value) else value
    if result is None:
        verb = "returned" if callable(value) else "is"
        raise InvalidProblemError(f"{name} {verb} None; expected an array of shape {shape}")
    array = check_real(result, name, f"hold real numbers, shape {shape}")
    if [k for k in array.shape if k != 1] != [k for k in shape if k != 1]:
        raise InvalidProblemError(f"{name} has shape {array.shape}; expected {shape}")
    return array.reshape(shape)


def derivative_at(name: str, value: Any, derivative: Callable[..., Any] | None, t: float, shape: tuple[int, ...]):
    """The derivative of a coefficient: given, zero for a constant, or by differences."""
    if derivative is not None:
        return coefficient_at(f"{name}_derivative", derivative, t, shape)
    if not callable(value):
        return np.zeros(shape)
    return derivatives_by_differences(lambda s: coefficient_at(name, value, s, shape), t, 1)[0]


def derivatives_by_differences(function: Callable[[float], np.ndarray], t: float, m: int) -> np.ndarray:
    """Derivatives 1..m of a smooth function of time, from the polynomial through 9 or more points around t."""
    h = 0.02 * max(1.0, abs(t) * 1e-3)
    half = 4 + m // 2
    nodes = np.arange(-half, half + 1)
    samples = np.array([function(t + h * node) for node in nodes])
    taylor = np.linalg.solve(np.vander(nodes.astype(float), increasing=True), samples.reshape(nodes.size, -1))
    factorial, result = 1.0, []
    for k in range(1, m + 1):
        factorial *= k
        result.append((factorial * taylor[k] / h**k).reshape(samples.shape[1:]))
    return np.array(result)
