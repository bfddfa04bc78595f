r"""Exact numbers :math:`p + q\sqrt{d}`, polynomials with these coefficients, and their zeros as nodes."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from fractions import Fraction
from math import comb
from typing import Any

import numpy as np

_BITS = 400  # precision of the root when converting to float


class Quadratic:
    r"""The number :math:`p + q\sqrt{d}` of the field :math:`\mathbb{Q}(\sqrt{d})`.

    Arithmetic with integers, fractions and numbers of the same field is exact and stays in the field, so that zero is
    recognised with certainty. With a float the result is a float.

    Examples
    --------
    >>> s = Quadratic(0, 1, 6)
    >>> 1 / (4 - s)
    (4 + √6)/10
    >>> (4 - s) * (4 + s) == 10
    True
    """

    __slots__ = ("d", "p", "q")

    def __init__(self, p: Any, q: Any, d: int):
        self.p, self.q, self.d = Fraction(p), Fraction(q), d

    def _embed(self, other: Any) -> Quadratic | None:
        """Convert a number to this field; None if it does not belong to it."""
        if isinstance(other, Quadratic):
            return other if other.d == self.d else None
        return Quadratic(other, 0, self.d) if isinstance(other, int | Fraction) else None

    def _beyond(self, operation: Callable[[Any, Any], Any], other: Any) -> Any:
        """Operations that leave the field: with floats, or with numbers of other fields, via SymPy."""
        if isinstance(other, float):
            return operation(float(self), other)
        return operation(self._sympy_(), other._sympy_()) if isinstance(other, Quadratic) else NotImplemented

    def __add__(self, other: Any) -> Any:
        x = self._embed(other)
        return self._beyond(operator.add, other) if x is None else Quadratic(self.p + x.p, self.q + x.q, self.d)

    __radd__ = __add__

    def __neg__(self) -> Quadratic:
        return Quadratic(-self.p, -self.q, self.d)

    def __sub__(self, other: Any) -> Any:
        return self + (-other)

    def __rsub__(self, other: Any) -> Any:
        return (-self) + other

    def __mul__(self, other: Any) -> Any:
        x = self._embed(other)
        if x is None:
            return self._beyond(operator.mul, other)
        return Quadratic(self.p * x.p + self.d * self.q * x.q, self.p * x.q + self.q * x.p, self.d)

    __rmul__ = __mul__

    def _inverse(self) -> Quadratic:
        norm = self.p**2 - self.d * self.q**2
        return Quadratic(self.p / norm, -self.q / norm, self.d)

    def __truediv__(self, other: Any) -> Any:
        x = self._embed(other)
        return self._beyond(operator.truediv, other) if x is None else self * x._inverse()

    def __rtruediv__(self, other: Any) -> Any:
        return other / float(self) if isinstance(other, float) else self._inverse() * other

    def __pow__(self, exponent: int) -> Any:
        return math.prod([self] * exponent, start=Quadratic(1, 0, self.d))

    def __eq__(self, other: object) -> bool:
        x = self._embed(other)
        if x is None:
            return float(self) == other if isinstance(other, float) else NotImplemented
        return self.p == x.p and self.q == x.q

    def __hash__(self) -> int:
        return hash((self.p, self.q, self.d)) if self.q else hash(self.p)

    def __bool__(self) -> bool:
        return bool(self.p or self.q)

    def __float__(self) -> float:
        """Convert to a float, accurate to the last digit even if p and q sqrt(d) nearly cancel."""
        root = Fraction(math.isqrt(self.d << 2 * _BITS), 1 << _BITS)
        return float(self.p + self.q * root)

    def __abs__(self) -> Quadratic:
        return -self if float(self) < 0.0 else self

    def _sympy_(self) -> Any:
        """Conversion for ``sympy.sympify``."""
        import sympy

        return sympy.Rational(self.p) + sympy.Rational(self.q) * sympy.sqrt(self.d)

    def __repr__(self) -> str:
        if not self.q:
            return str(self.p)
        scale = math.lcm(self.p.denominator, self.q.denominator)
        p, q = int(self.p * scale), int(self.q * scale)
        root = f"{abs(q) if abs(q) != 1 else ''}√{self.d}"
        if not p:
            return ("-" if q < 0 else "") + root + (f"/{scale}" if scale != 1 else "")
        text = f"{p} {'-' if q < 0 else '+'} {root}"
        return text if scale == 1 else f"({text})/{scale}"


def quadratic_from_sympy(value: Any) -> Any:
    """Convert a SymPy number to a float, fraction or number of a quadratic field if possible."""
    if value.is_Float:
        return float(value)
    if not value.is_number:
        return value
    parts = value.expand().as_coefficients_dict()
    rational = parts.pop(1, 0)
    if not parts:
        return Fraction(int(rational.p), int(rational.q))
    (root, factor), *others = parts.items()
    if others or not (root**2).is_Integer or not root.is_real:
        return value
    p, q = (Fraction(int(x.p), int(x.q)) if x else Fraction(0) for x in (rational, factor))
    return Quadratic(p, q, int(root**2))


# --- polynomials with exact coefficients: lists of numbers, lowest power first, without trailing zeros ----------------

Polynomial = list[Any]


def trimmed(p: Sequence[Any]) -> Polynomial:
    """Strip leading zeros; the zero polynomial is empty.

    >>> trimmed([1, 2, 0])
    [1, 2]
    """
    q = list(p)
    while q and not q[-1]:
        q.pop()
    return q


def add(p: Sequence[Any], q: Sequence[Any]) -> Polynomial:
    """Sum of two polynomials."""
    n = max(len(p), len(q))
    padded = ([*x, *[Fraction(0)] * (n - len(x))] for x in (p, q))
    return trimmed([x + y for x, y in zip(*padded)])


def scaled(p: Sequence[Any], factor: Any) -> Polynomial:
    """Product of a polynomial and a number."""
    return trimmed([factor * x for x in p])


def product(p: Sequence[Any], q: Sequence[Any]) -> Polynomial:
    """Product of two polynomials."""
    result: Polynomial = [Fraction(0)] * (len(p) + len(q) - 1) if p and q else []
    for i, x in enumerate(p):
        for j, y in enumerate(q):
            result[i + j] = result[i + j] + x * y
    return trimmed(result)


def division(p: Sequence[Any], q: Sequence[Any]) -> tuple[Polynomial, Polynomial]:
    """Quotient and remainder.

    >>> division([Fraction(-1), Fraction(0), Fraction(1)], [Fraction(1), Fraction(1)])
    ([Fraction(-1, 1), Fraction(1, 1)], [])
    """
    remainder = trimmed(p)
    quotient: Polynomial = [Fraction(0)] * max(0, len(remainder) - len(q) + 1)
    while len(remainder) >= len(q):
        shift, factor = len(remainder) - len(q), remainder[-1] / q[-1]
        quotient[shift] = factor
        for i, x in enumerate(q[:-1]):
            remainder[shift + i] = remainder[shift + i] - factor * x
        remainder = trimmed(remainder[:-1])
    return trimmed(quotient), remainder


def common_divisor(p: Sequence[Any], q: Sequence[Any]) -> Polynomial:
    """The greatest common divisor, with leading coefficient 1."""
    a, b = trimmed(p), trimmed(q)
    while b:
        a, b = b, division(a, b)[1]
    return scaled(a, 1 / a[-1]) if a else a


def derivative(p: Sequence[Any]) -> Polynomial:
    """Derivative of a polynomial."""
    return [k * x for k, x in enumerate(p)][1:]


def integral(p: Sequence[Any]) -> Polynomial:
    """Integral of a polynomial from 0."""
    return [Fraction(0), *(x / Fraction(k) for k, x in enumerate(p, 1))]


def value(p: Sequence[Any], x: Any) -> Any:
    """The value at x, by Horner's scheme.

    >>> value([1, 0, 2], Fraction(1, 2))
    Fraction(3, 2)
    """
    result: Any = Fraction(0)
    for coefficient in reversed(p):
        result = result * x + coefficient
    return result


def lagrange(nodes: Sequence[Any], j: int) -> Polynomial:
    """The Lagrange polynomial of node j: 1 at this node, 0 at the others."""
    result: Polynomial = [Fraction(1)]
    for i, node in enumerate(nodes):
        if i != j:
            factor = 1 / (nodes[j] - node)
            result = product(result, [-node * factor, factor])
    return result


def shifted_legendre(s: int) -> Polynomial:
    """The Legendre polynomial of degree s on [0, 1], with the value 1 at 1.

    >>> [int(x) for x in shifted_legendre(2)]
    [1, -6, 6]
    """
    return [Fraction((-1) ** (s + k) * comb(s, k) * comb(s + k, k)) for k in range(s + 1)]


def laguerre(s: int) -> Polynomial:
    """The Laguerre polynomial of degree s.

    >>> [str(x) for x in laguerre(3)]
    ['1', '-3', '3/2', '-1/6']
    """
    terms, factorial = [], 1
    for k in range(s + 1):
        factorial *= max(k, 1)
        terms.append(Fraction((-1) ** k * comb(s, k), factorial))
    return terms


# --- zeros of polynomials as nodes: exact in a quadratic field, otherwise to 60 digits -----------------

_NODE_BITS = 200  # precision of approximate zeros
_NEWTON = 8  # Newton iterations, more than enough for 50 bits to become 200


def zeros(p: Sequence[Any]) -> tuple[tuple[Any, ...], bool]:
    """The real zeros of a polynomial with rational coefficients, in ascending order, and whether they are exact.

    Zeros at 0, 1/2 and 1 are divided out; the remaining zeros are exact if the quotient has degree at most 2.

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
    """Return (free, factor) with n = free * factor^2 and square-free `free`."""
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
        x = Fraction(round(x * 2**_NODE_BITS), 2**_NODE_BITS)
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
