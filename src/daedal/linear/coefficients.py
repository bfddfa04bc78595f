"""Functions of time and their derivatives: the coefficients of linear systems and their right-hand sides."""

from __future__ import annotations

from collections.abc import Sequence
from math import factorial
from typing import Any

import numpy as np
from numpy.polynomial import chebyshev

from daedal.errors import InvalidProblemError
from daedal.linear.taylor import Taylor

_DEGREE = 24  # of the polynomial through a function without derivatives
_RADII = 0.5 ** np.arange(14)  # of the intervals on which it is tried, in units of the given radius
_TRIED = 8  # Taylor coefficients with which it is seen whether a function takes a series
_SMALL = 1e-13  # last coefficients of a polynomial that represents the function


class Coefficient:
    """A vector or matrix that depends on time, with its Taylor series.

    Parameters
    ----------
    value : array_like or callable
        A constant, or a function of t. A function that calculates with NumPy's functions and operators is called with a
        Taylor series and so differentiated exactly. If it cannot take one, it is interpolated near t, which costs
        digits.
    shape : tuple of int
    name : str
        For messages.
    derivatives : sequence of callables, or callable, optional
        The first, second, ... derivative as functions of t, or one function of t and the order.
    radius : float
        The size of the interval around t on which a function may be called to be interpolated.

    Examples
    --------
    >>> import numpy as np
    >>> from daedal.linear.coefficients import Coefficient
    >>> Coefficient(lambda t: [np.sin(t), t**2], (2,), "f").taylor(0.0, 4)
    array([[ 0.        ,  0.        ],
           [ 1.        ,  0.        ],
           [ 0.        ,  1.        ],
           [-0.16666667,  0.        ]])
    """

    def __init__(self, value: Any, shape: tuple[int, ...], name: str, *, derivatives: Any = None, radius: float = 0.5):
        self.shape, self.name, self.radius = shape, name, radius
        self.value, self.derivatives = value, derivatives
        if not callable(value):
            self.constant: np.ndarray | None = self._checked(value, "")
        else:
            self.constant = None

    def _checked(self, value: Any, where: str) -> np.ndarray:
        try:
            array = np.array(value, dtype=float)
        except (TypeError, ValueError) as error:
            raise InvalidProblemError(f"{self.name}{where} is not an array of real numbers: {error}") from None
        if array.shape != self.shape:
            raise InvalidProblemError(f"{self.name}{where} must have the shape {self.shape}, not {array.shape}")
        if not np.all(np.isfinite(array)):
            raise InvalidProblemError(f"{self.name}{where} holds values that are not finite")
        return array

    def __call__(self, t: float) -> np.ndarray:
        """The value at t."""
        return self.constant.copy() if self.constant is not None else self._checked(self.value(t), f" at t = {t:g}")

    def exact(self, t: float) -> bool:
        """Whether derivatives at t have no truncation errors: they are given, or the function takes a Taylor series."""
        if self.constant is not None or self.derivatives is not None:
            return True
        return self._by_series(t, _TRIED, self(t)) is not None

    def taylor(self, t: float, count: int) -> np.ndarray:
        """The first Taylor coefficients at t, the derivatives divided by factorials: array (count, *shape)."""
        first = self(t)
        if count == 1:
            return first[None]
        if self.constant is not None:
            return np.concatenate([first[None], np.zeros((count - 1, *self.shape))])
        if self.derivatives is not None:
            rest = [self._given(t, k) / factorial(k) for k in range(1, count)]
            return np.stack([first, *rest])
        found = self._by_series(t, count, first)
        return self._by_interpolation(t, count) if found is None else found

    def derivative(self, t: float, order: int) -> np.ndarray:
        """The derivative of this order at t."""
        return self(t) if order == 0 else self.taylor(t, order + 1)[order] * factorial(order)

    def _given(self, t: float, order: int) -> np.ndarray:
        where = f", derivative {order}, at t = {t:g}"
        if callable(self.derivatives):
            return self._checked(self.derivatives(t, order), where)
        assert isinstance(self.derivatives, Sequence)
        if order > len(self.derivatives):
            raise InvalidProblemError(
                f"derivative {order} of {self.name} is needed, but only {len(self.derivatives)} were given"
            )
        return self._checked(self.derivatives[order - 1](t), where)

    def _by_series(self, t: float, count: int, first: np.ndarray) -> np.ndarray | None:
        """By calling the function with a Taylor series; None if it does not take one, or has another value then."""
        try:
            values = np.array(self.value(Taylor.variable(t, count)), dtype=object)
        except Exception:  # the function works for numbers, as was seen, and need not work for anything else
            return None
        if values.shape != self.shape:
            return None
        result = np.zeros((count, *self.shape))
        for place in np.ndindex(*self.shape):
            entry: Any = values[place]
            if isinstance(entry, Taylor):
                result[(slice(None), *place)] = entry.c
            else:
                result[(0, *place)] = entry
        if not (np.all(np.isfinite(result)) and np.allclose(result[0], first, rtol=1e-9, atol=1e-12)):
            return None
        return result

    def _by_interpolation(self, t: float, count: int) -> np.ndarray:
        """By a polynomial through Chebyshev points, on the largest interval on which it represents the function."""
        nodes = chebyshev.chebpts1(_DEGREE + 1)
        best, best_tail, cause = None, np.inf, None
        for radius in self.radius * _RADII:
            try:
                values = np.stack([self(t + radius * node) for node in nodes])
            except Exception as error:  # outside of where the function is defined
                cause = error
                continue
            series = chebyshev.chebfit(nodes, values.reshape(_DEGREE + 1, -1), _DEGREE)
            size = max(float(np.max(np.abs(series))), np.finfo(float).tiny)
            tail = float(np.max(np.abs(series[-3:]))) / size
            if tail < best_tail:
                best, best_tail = (series, radius), tail
            if tail < _SMALL:
                break
        if best is None:
            raise InvalidProblemError(
                f"{self.name} cannot be called near t = {t:g} and has no derivatives there; give them ({cause})"
            ) from cause
        series, radius = best
        result = np.zeros((count, series.shape[1]))
        for k in range(count):  # derivatives of the polynomial at the middle of the interval
            result[k] = chebyshev.chebval(0.0, chebyshev.chebder(series, k)) / factorial(k) / radius**k
        result[0] = self(t).ravel()
        return result.reshape(count, *self.shape)
