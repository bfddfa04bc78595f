r"""Exact numbers :math:`p + q\sqrt{d}` with rational p and q: coefficients such as those on Radau nodes."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from fractions import Fraction
from typing import Any

_BITS = 400  # of the root, for a value as a float


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
        """The other number in this field; None if it does not belong to it."""
        if isinstance(other, Quadratic):
            return other if other.d == self.d else None
        return Quadratic(other, 0, self.d) if isinstance(other, int | Fraction) else None

    def _beyond(self, operation: Callable[[Any, Any], Any], other: Any) -> Any:
        """The operation outside of the field: with floats, or with a number of another field, which SymPy combines."""
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
        """To the last digit, also where p and q sqrt(d) cancel."""
        root = Fraction(math.isqrt(self.d << 2 * _BITS), 1 << _BITS)
        return float(self.p + self.q * root)

    def __abs__(self) -> Quadratic:
        return -self if float(self) < 0.0 else self

    def _sympy_(self) -> Any:
        """What ``sympy.sympify`` makes of it."""
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
    """A number of SymPy as a float, a fraction or a number of a quadratic field, if it is one of these."""
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
