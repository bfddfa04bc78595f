r"""Zeros of polynomials as nodes: exact where they lie in a quadratic field, to 60 digits otherwise."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from daedal.methods.exact_polynomials import add, derivative, division, scaled, shifted_legendre, value
from daedal.methods.quadratic import Quadratic

_BITS = 200  # of approximate zeros
_NEWTON = 8  # iterations, from 50 bits to 200 with ample reserve


def zeros(p: Sequence[Any]) -> tuple[tuple[Any, ...], bool]:
    """The real zeros of a polynomial with rational coefficients, in ascending order, and whether they are exact.

    Zeros at 0, 1/2 and 1 are divided out; of what is left the zeros are exact if its degree is at most 2.

    Examples
    --------
    >>> zeros([Fraction(1), Fraction(-6), Fraction(6)])
    (((3 - √3)/6, (3 + √3)/6), True)
    """
    rest, found = list(p), []
    for root in (Fraction(0), Fraction(1, 2), Fraction(1)):
        while len(rest) > 1 and not value(rest, root):
            rest = division(rest, [-root, Fraction(1)])[0]
            found.append(root)
    exact = len(rest) <= 3
    more = _by_formula(rest) if exact else _by_newton(rest)
    return tuple(sorted([*found, *more], key=float)), exact


def _by_formula(p: Sequence[Fraction]) -> list[Any]:
    if len(p) == 1:
        return []
    if len(p) == 2:
        return [-p[0] / p[1]]
    c, b, a = p
    discriminant = b * b - 4 * a * c
    square = discriminant.numerator * discriminant.denominator  # sqrt(m/n) = sqrt(m n)/n
    free, factor = _square_free(square)
    if free == 1:
        half = Fraction(factor, discriminant.denominator)
        return [(-b - half) / (2 * a), (-b + half) / (2 * a)]
    q = Fraction(factor, discriminant.denominator) / (2 * a)
    return [Quadratic(-b / (2 * a), sign * q, free) for sign in (-1, 1)]


def _square_free(n: int) -> tuple[int, int]:
    """n = free * factor^2."""
    factor = 1
    for k in range(2, math.isqrt(n) + 1):
        while n % (k * k) == 0:
            n, factor = n // (k * k), factor * k
    return n, factor


def _by_newton(p: Sequence[Fraction]) -> list[Fraction]:
    slope = derivative(p)
    roots = np.roots([float(x) for x in reversed(p)])
    return [polished(p, slope, Fraction(float(root.real))) for root in roots]


def polished(p: Sequence[Fraction], slope: Sequence[Fraction], x: Fraction) -> Fraction:
    """A zero to 60 digits by Newton's method, from a good approximation."""
    for _ in range(_NEWTON):
        x = x - value(p, x) / value(slope, x)
        x = Fraction(round(x * 2**_BITS), 2**_BITS)
    return x


def gauss_nodes(s: int) -> tuple[tuple[Any, ...], bool]:
    """Zeros of the shifted Legendre polynomial P_s."""
    return zeros(shifted_legendre(s))


def right_radau_nodes(s: int) -> tuple[tuple[Any, ...], bool]:
    """Zeros of P_s - P_{s-1}; the last one is 1."""
    return zeros(add(shifted_legendre(s), scaled(shifted_legendre(s - 1), Fraction(-1))))


def left_radau_nodes(s: int) -> tuple[tuple[Any, ...], bool]:
    """Zeros of P_s + P_{s-1}; the first one is 0."""
    return zeros(add(shifted_legendre(s), shifted_legendre(s - 1)))


def lobatto_nodes(s: int) -> tuple[tuple[Any, ...], bool]:
    """Zeros of P_s - P_{s-2}; the first is 0 and the last is 1."""
    return zeros(add(shifted_legendre(s), scaled(shifted_legendre(s - 2), Fraction(-1))))
