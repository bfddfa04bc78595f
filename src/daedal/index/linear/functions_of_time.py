"""Functions of time with all derivatives: truncated Taylor series, coefficients of linear systems, right-hand sides."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import comb, factorial, perm
from typing import Any

import numpy as np
from numpy.polynomial import chebyshev

from daedal.errors import InvalidProblemError

# NumPy's functions call methods of objects: ``np.sin(t)`` becomes ``t.sin()``. For the recurrences see A. Griewank, A.
# Walther, Evaluating Derivatives, SIAM 2008, chapter 13.


class Taylor:
    """c[0] + c[1] (t - t0) + c[2] (t - t0)^2 + ..., up to the length of c.

    Comparisons use c[0]: a function with branches is differentiated in the branch that contains t0.

    Examples
    --------
    >>> import numpy as np
    >>> from daedal.index.linear.functions_of_time import Taylor
    >>> np.exp(2.0 * Taylor.variable(0.0, 4)).c
    array([1.        , 2.        , 2.        , 1.33333333])
    """

    __slots__ = ("c",)

    def __init__(self, c: Any):
        self.c = np.asarray(c, dtype=float)

    @classmethod
    def variable(cls, t: float, count: int) -> Taylor:
        """The series of t, with `count` coefficients."""
        c = np.zeros(count)
        c[:2] = [t, 1.0][:count]
        return cls(c)

    def _of(self, other: Any) -> np.ndarray | None:
        if isinstance(other, Taylor):
            return other.c
        if isinstance(other, (int, float, np.integer, np.floating)):
            c = np.zeros(self.c.size)
            c[0] = other
            return c
        return None

    def __add__(self, other: Any) -> Any:
        c = self._of(other)
        return NotImplemented if c is None else Taylor(self.c + c)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        c = self._of(other)
        return NotImplemented if c is None else Taylor(self.c - c)

    def __rsub__(self, other: Any) -> Any:
        c = self._of(other)
        return NotImplemented if c is None else Taylor(c - self.c)

    def __mul__(self, other: Any) -> Any:
        c = self._of(other)
        return NotImplemented if c is None else Taylor(np.convolve(self.c, c)[: self.c.size])

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Any:
        c = self._of(other)
        return NotImplemented if c is None else Taylor(_quotient(self.c, c))

    def __rtruediv__(self, other: Any) -> Any:
        c = self._of(other)
        return NotImplemented if c is None else Taylor(_quotient(c, self.c))

    def __pow__(self, power: Any) -> Any:
        if isinstance(power, Taylor):
            return (power * self.log()).exp()
        if isinstance(power, (int, np.integer)) or float(power).is_integer():
            result, base = Taylor(np.eye(1, self.c.size)[0]), self if power >= 0 else 1.0 / self
            for _ in range(abs(int(power))):
                result = result * base
            return result
        return (float(power) * self.log()).exp()

    def __rpow__(self, base: Any) -> Taylor:
        return (float(np.log(base)) * self).exp()

    def __neg__(self) -> Taylor:
        return Taylor(-self.c)

    def __pos__(self) -> Taylor:
        return self

    def __abs__(self) -> Taylor:
        return -self if self.c[0] < 0.0 else self

    def __lt__(self, other: Any) -> bool:
        return bool(self.c[0] < _value(other))

    def __le__(self, other: Any) -> bool:
        return bool(self.c[0] <= _value(other))

    def __gt__(self, other: Any) -> bool:
        return bool(self.c[0] > _value(other))

    def __ge__(self, other: Any) -> bool:
        return bool(self.c[0] >= _value(other))

    def exp(self) -> Taylor:
        c = np.zeros_like(self.c)
        c[0] = np.exp(self.c[0])
        rate = self.c * np.arange(self.c.size)
        for k in range(1, c.size):
            c[k] = rate[1 : k + 1] @ c[k - 1 :: -1][:k] / k
        return Taylor(c)

    def log(self) -> Taylor:
        return self._integral(np.log(self.c[0]), Taylor(np.eye(1, self.c.size)[0]) / self)

    def sqrt(self) -> Taylor:
        c = np.zeros_like(self.c)
        c[0] = np.sqrt(self.c[0])
        for k in range(1, c.size):
            c[k] = (self.c[k] - c[1:k] @ c[k - 1 : 0 : -1]) / (2.0 * c[0])
        return Taylor(c)

    def _sine_and_cosine(self, sign: float) -> tuple[np.ndarray, np.ndarray]:
        """(sin, cos) for sign -1, (sinh, cosh) for +1."""
        s, c = np.zeros_like(self.c), np.zeros_like(self.c)
        first = (np.sin, np.cos) if sign < 0.0 else (np.sinh, np.cosh)
        s[0], c[0] = (function(self.c[0]) for function in first)
        rate = self.c * np.arange(self.c.size)
        for k in range(1, s.size):
            s[k] = rate[1 : k + 1] @ c[k - 1 :: -1][:k] / k
            c[k] = sign * (rate[1 : k + 1] @ s[k - 1 :: -1][:k]) / k
        return s, c

    def sin(self) -> Taylor:
        return Taylor(self._sine_and_cosine(-1.0)[0])

    def cos(self) -> Taylor:
        return Taylor(self._sine_and_cosine(-1.0)[1])

    def tan(self) -> Taylor:
        return self.sin() / self.cos()

    def sinh(self) -> Taylor:
        return Taylor(self._sine_and_cosine(1.0)[0])

    def cosh(self) -> Taylor:
        return Taylor(self._sine_and_cosine(1.0)[1])

    def tanh(self) -> Taylor:
        return self.sinh() / self.cosh()

    def arctan(self) -> Taylor:
        return self._integral(np.arctan(self.c[0]), 1.0 / (1.0 + self * self))

    def _integral(self, value: float, slope: Taylor) -> Taylor:
        """The function with the given value whose derivative with respect to self is given."""
        rate = np.convolve(slope.c, (self.c * np.arange(self.c.size))[1:])[: self.c.size - 1]
        return Taylor(np.concatenate([[value], rate / np.arange(1, self.c.size)]))


def _value(other: Any) -> float:
    return float(other.c[0]) if isinstance(other, Taylor) else float(other)


def _quotient(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    c = np.zeros_like(a)
    for k in range(a.size):
        c[k] = (a[k] - c[:k] @ b[k:0:-1]) / b[0]
    return c


# --- functions of time and their derivatives: the coefficients of linear systems and their right-hand sides -----------

_DEGREE = 24  # degree of the interpolation polynomial of a function without derivatives
_RADII = 0.5 ** np.arange(14)  # radii of the intervals tried, in units of the given radius
_TRIED = 8  # number of coefficients of the series with which a function is called to test whether it accepts series
_SMALL = 1e-13  # a polynomial whose last coefficients are below this, relative to the largest, resolves the function


class Coefficient:
    """A vector or matrix that depends on time, with its Taylor series.

    Parameters
    ----------
    value : array_like or callable
        A constant, or a function of t. A function composed of NumPy functions and operators is called with a Taylor
        series and thus differentiated exactly. Otherwise it is interpolated near t, which loses digits.
    shape : tuple of int
    name : str
        Name for messages.
    derivatives : sequence of callables, or callable, optional
        The first, second, ... derivative as functions of t, or a single function of t and the order.
    radius : float
        The radius of the interval around t on which a function may be evaluated for interpolation.

    Examples
    --------
    >>> import numpy as np
    >>> from daedal.index.linear.functions_of_time import Coefficient
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
        """Whether derivatives at t have no truncation error: they are given, or the function accepts a Taylor
        series."""
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
        """Call the function with a Taylor series; None if it does not accept one or returns a different value."""
        try:
            values = np.array(self.value(Taylor.variable(t, count)), dtype=object)
        except Exception:  # the function accepts numbers, but need not accept other arguments
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
        """Interpolate in Chebyshev points on the largest interval on which the polynomial resolves the function."""
        nodes = chebyshev.chebpts1(_DEGREE + 1)
        best, best_tail, cause = None, np.inf, None
        for radius in self.radius * _RADII:
            try:
                values = np.stack([self(t + radius * node) for node in nodes])
            except Exception as error:  # outside the domain of the function
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
                f"{self.name} cannot be called near t = {t:g}, as its interpolation requires ({cause}). Remedy: "
                "specify its derivatives"
            ) from cause
        series, radius = best
        result = np.zeros((count, series.shape[1]))
        for k in range(count):  # derivatives of the polynomial at the middle of the interval
            result[k] = chebyshev.chebval(0.0, chebyshev.chebder(series, k)) / factorial(k) / radius**k
        result[0] = self(t).ravel()
        return result.reshape(count, *self.shape)


# --- right-hand sides f(t) with all derivatives -----------------------------------------------------------------------


@dataclass(frozen=True)
class QuasiPolynomial:
    """The real part of a sum of terms ``vector * t**power * exp(rate * t)`` with complex vectors and rates.

    Created by :func:`polynomial`, :func:`exponential`, :func:`sine` and by adding such functions. Systems with such
    right-hand sides are solved without quadrature.

    Attributes
    ----------
    terms : tuple of (vector, power, rate)

    Examples
    --------
    >>> from daedal import linear
    >>> f = linear.polynomial([1.0], [2.0]) + linear.exponential([3.0], -1.0)
    >>> print(type(f).__name__, f(0.0))
    QuasiPolynomial [4.]
    """

    terms: tuple[tuple[np.ndarray, int, complex], ...]

    @property
    def n(self) -> int:
        """The number of components."""
        return self.terms[0][0].size

    def __call__(self, t: float) -> np.ndarray:
        return self.derivative(t, 0)

    def derivative(self, t: float, order: int) -> np.ndarray:
        """The derivative of this order at t, by Leibniz' rule."""
        total = np.zeros(self.n, dtype=complex)
        for vector, power, rate in self.terms:
            factor = sum(
                comb(order, j) * perm(power, j) * t ** (power - j) * rate ** (order - j)
                for j in range(min(order, power) + 1)
            )
            total += vector * factor * np.exp(rate * t)
        return total.real

    def taylor(self, t: float, count: int) -> np.ndarray:
        """The first Taylor coefficients at t, array (count, n)."""
        return np.stack([self.derivative(t, k) / factorial(k) for k in range(count)])

    def __add__(self, other: Any) -> QuasiPolynomial:
        if not isinstance(other, QuasiPolynomial):
            return NotImplemented
        if other.n != self.n:
            raise InvalidProblemError(f"right-hand sides of lengths {self.n} and {other.n} cannot be added")
        return QuasiPolynomial(self.terms + other.terms)

    def times(self, matrix: np.ndarray) -> QuasiPolynomial:
        """``matrix @ f``."""
        return QuasiPolynomial(tuple((matrix @ vector, power, rate) for vector, power, rate in self.terms))


def _vector(value: Any, name: str) -> np.ndarray:
    array = np.atleast_1d(np.asarray(value, dtype=float))
    if array.ndim != 1 or not np.all(np.isfinite(array)):
        raise InvalidProblemError(f"{name} must be a vector of finite numbers")
    return array.astype(complex)


def polynomial(*coefficients: Any) -> QuasiPolynomial:
    """The vector ``c0 + c1 t + c2 t**2 + ...``.

    Examples
    --------
    >>> from daedal.index import linear
    >>> linear.polynomial([1.0, 0.0], [0.0, 2.0])(3.0)
    array([1., 6.])
    """
    if not coefficients:
        raise InvalidProblemError("polynomial needs at least one coefficient")
    vectors = [_vector(c, f"coefficient {k}") for k, c in enumerate(coefficients)]
    if len({vector.size for vector in vectors}) > 1:
        raise InvalidProblemError("the coefficients of a polynomial must have the same length")
    return QuasiPolynomial(tuple((vector, k, 0j) for k, vector in enumerate(vectors)))


def exponential(amplitude: Any, rate: float = 1.0) -> QuasiPolynomial:
    """The vector ``amplitude * exp(rate * t)``.

    Examples
    --------
    >>> from daedal.index import linear
    >>> linear.exponential([2.0], -1.0).derivative(0.0, 3)
    array([-2.])
    """
    return QuasiPolynomial(((_vector(amplitude, "amplitude"), 0, complex(rate)),))


def sine(amplitude: Any, frequency: float = 1.0, phase: float = 0.0) -> QuasiPolynomial:
    """The vector ``amplitude * sin(frequency * t + phase)``.

    Examples
    --------
    >>> from daedal.index import linear
    >>> f = linear.polynomial([1.0, 0.0]) + linear.sine([0.0, 1.0], 2.0)
    >>> f.derivative(0.0, 1)
    array([0., 2.])
    """
    vector = -1j * np.exp(1j * phase) * _vector(amplitude, "amplitude")
    return QuasiPolynomial(((vector, 0, 1j * float(frequency)),))


def as_forcing(f: Any, n: int, derivatives: Sequence[Any] | Any = None) -> QuasiPolynomial | Coefficient:
    """A right-hand side of n components: none, a constant, one of the functions above, or a function of t."""
    if f is None:
        return polynomial(np.zeros(n))
    if isinstance(f, QuasiPolynomial):
        if f.n != n:
            raise InvalidProblemError(f"f must have length {n}, the number of equations, but its length is {f.n}")
        return f
    function = Coefficient(f, (n,), "f", derivatives=derivatives)
    return function if function.constant is None else polynomial(function.constant)
