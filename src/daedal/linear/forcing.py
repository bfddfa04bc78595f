"""Right-hand sides f(t) with all derivatives: polynomials, exponentials, sines, sums of products of them, functions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import comb, factorial, perm
from typing import Any

import numpy as np

from daedal.errors import InvalidProblemError
from daedal.linear.coefficients import Coefficient


@dataclass(frozen=True)
class QuasiPolynomial:
    """The real part of a sum of terms ``vector * t**power * exp(rate * t)`` with complex vectors and rates.

    Made by :func:`polynomial`, :func:`exponential`, :func:`sine` and by adding such functions. Systems with such
    right-hand sides are solved without quadrature.

    Attributes
    ----------
    terms : tuple of (vector, power, rate)
    """

    terms: tuple[tuple[np.ndarray, int, complex], ...]

    @property
    def n(self) -> int:
        """The number of components."""
        return self.terms[0][0].size

    def __call__(self, t: float) -> np.ndarray:
        return self.derivative(t, 0)

    def derivative(self, t: float, order: int) -> np.ndarray:
        """The derivative of this order at t, by the rule of Leibniz."""
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
            raise InvalidProblemError(f"right-hand sides of {self.n} and {other.n} components cannot be added")
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
    >>> from daedal import linear
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
    >>> from daedal import linear
    >>> linear.exponential([2.0], -1.0).derivative(0.0, 3)
    array([-2.])
    """
    return QuasiPolynomial(((_vector(amplitude, "amplitude"), 0, complex(rate)),))


def sine(amplitude: Any, frequency: float = 1.0, phase: float = 0.0) -> QuasiPolynomial:
    """The vector ``amplitude * sin(frequency * t + phase)``.

    Examples
    --------
    >>> from daedal import linear
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
            raise InvalidProblemError(f"f must have {n} components, one for each equation, but it has {f.n}")
        return f
    function = Coefficient(f, (n,), "f", derivatives=derivatives)
    return function if function.constant is None else polynomial(function.constant)
