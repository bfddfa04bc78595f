"""A switching surface: its value, and its rate along a motion."""

import warnings
from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np

from daedal.errors import InvalidProblemError
from daedal.kernels.functions import is_compiled
from daedal.problems.checks import check_callable, check_vector
from daedal.problems.compile import last_argument

_TINY = 1e-100  # of complex steps
_STEP = float(np.finfo(float).eps) ** (1.0 / 3.0)  # of central differences
_AGREEMENT = 1e-4  # between complex steps and differences; a function that drops imaginary parts does not reach it


class Surface:
    """s(t, x) = 0. Derivatives by complex steps if the function takes them, otherwise by differences."""

    def __init__(self, function, gradient, params, n: int):
        if gradient is not None:
            check_callable(gradient, "gradient")
        self._function, self._gradient, self._params, self._n = function, gradient, params, n

    def _call(self, t, x):
        value = self._function(t, x, *last_argument(self._function, self._params))
        if np.size(value) != 1:
            raise InvalidProblemError(
                f"surface returned {np.size(value)} values; it must return one. Where several surfaces intersect the "
                "equations do not determine how a solution slides, and this is not treated. Remedy: a HybridProblem "
                "with a mode for each side of each surface, if solutions only cross them"
            )
        return np.reshape(value, -1)[0]

    def value(self, t: float, x) -> float:
        """s(t, x)."""
        return float(self._call(t, x))

    def rate(self, t: float, x, slope) -> float:
        """s_x slope + s_t."""
        if self._gradient is not None:
            row = self._gradient(t, x, *last_argument(self._gradient, self._params))
            return float(check_vector(row, self._n, "gradient") @ slope) + self._along(t, x, np.zeros(self._n), 1.0)
        return self._along(t, x, slope, 1.0)

    def size(self, t: float, x, slope) -> float:
        """|s_x| |slope| + |s_t|: that of the terms of which the rate is the sum."""
        units = np.eye(self._n) * np.where(slope == 0.0, 1.0, slope)[:, None]
        parts = [self._along(t, x, unit, 0.0) for unit, entry in zip(units, slope, strict=True) if entry != 0.0]
        return float(np.sum(np.abs(parts))) + abs(self._along(t, x, np.zeros(self._n), 1.0))

    def _along(self, t: float, x, slope, speed: float) -> float:
        """The derivative along (speed, slope)."""
        if not self._takes_complex:
            return self._difference(t, x, slope, speed)
        try:
            found = self._complex_step(t, x, slope, speed)
        except Exception:  # of a branch that does not take complex numbers
            return self._difference(t, x, slope, speed)
        # zero is also what a branch that drops imaginary parts gives
        return found if found != 0.0 else self._difference(t, x, slope, speed)

    @cached_property
    def _takes_complex(self) -> bool:
        """Whether the function takes complex numbers, as points that depend on nothing but its size show."""
        verdicts = []
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # of imaginary parts that are dropped
            for t, sign in ((0.3, 1.0), (0.7, -1.0), (1.1, 0.4)):
                x, slope = sign * np.cos(0.2 + 0.3 * np.arange(self._n)), np.cos(0.7 + 1.3 * np.arange(self._n))
                try:
                    other = self._difference(t, x, slope, 1.0)
                except Exception:  # not defined there
                    continue
                try:
                    found = self._complex_step(t, x, slope, 1.0)
                except Exception:
                    return False
                verdicts.append(abs(other - found) <= _AGREEMENT * abs(other))
        return bool(verdicts) and all(verdicts)

    def _complex_step(self, t: float, x, slope, speed: float) -> float:
        return float(np.imag(self._call(t + 1j * _TINY * speed, x + 1j * _TINY * slope)) / _TINY)

    def _difference(self, t: float, x, slope, speed: float) -> float:
        scale = max(abs(t), float(np.max(np.abs(x), initial=0.0)), 1.0)
        h = _STEP * scale / max(float(np.max(np.abs(slope), initial=0.0)), abs(speed), 1e-300)
        return float((self._call(t + h * speed, x + h * slope) - self._call(t - h * speed, x - h * slope)) / (2.0 * h))


def compiler(*functions) -> Callable[[Any], Any]:
    """Numba's compiler if all the functions that are called are compiled, otherwise nothing."""
    if all(is_compiled(function) for function in functions if function is not None):
        import numba

        return numba.njit
    return lambda function: function
