"""Polynomials with exact coefficients: lists of numbers, lowest power first, without zeros at the end."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import comb
from typing import Any

Polynomial = list[Any]


def trimmed(p: Sequence[Any]) -> Polynomial:
    """Without leading zeros; the polynomial 0 is empty.

    >>> trimmed([1, 2, 0])
    [1, 2]
    """
    q = list(p)
    while q and not q[-1]:
        q.pop()
    return q


def add(p: Sequence[Any], q: Sequence[Any]) -> Polynomial:
    """The sum."""
    n = max(len(p), len(q))
    padded = ([*x, *[Fraction(0)] * (n - len(x))] for x in (p, q))
    return trimmed([x + y for x, y in zip(*padded)])


def scaled(p: Sequence[Any], factor: Any) -> Polynomial:
    """The multiple."""
    return trimmed([factor * x for x in p])


def product(p: Sequence[Any], q: Sequence[Any]) -> Polynomial:
    """The product."""
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
    """The derivative."""
    return [k * x for k, x in enumerate(p)][1:]


def integral(p: Sequence[Any]) -> Polynomial:
    """The integral from 0."""
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
    """The polynomial that is 1 at node j and 0 at the others."""
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
