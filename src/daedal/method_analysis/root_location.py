r"""Where the zeros of a polynomial with exact coefficients lie, proved without computing them.

Sturm's theorem counts real zeros. For the half-plane, :math:`p(\mathrm i y) = f_0(y) + \mathrm i f_1(y)` with real
polynomials: their greatest common divisor has the zeros that come in pairs :math:`\pm z`, among them those on the axis,
and the Cauchy index of the quotient of the rest says how many of the others lie on each side (Routh and Hurwitz; F. R.
Gantmacher, The Theory of Matrices II, XV). A Moebius transform makes the unit disc of the half-plane.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from math import comb
from typing import Any

from daedal.methods.exact_polynomials import (
    Polynomial,
    add,
    common_divisor,
    derivative,
    division,
    product,
    scaled,
    trimmed,
    value,
)
from daedal.methods.quadratic import Quadratic


def sign(x: Any) -> int:
    """The sign of an exact number.

    >>> sign(Quadratic(-7, 5, 2)), sign(Quadratic(7, -5, 2)), sign(Fraction(0))
    (1, -1, 0)
    """
    if not isinstance(x, Quadratic):
        return (x > 0) - (x < 0)
    p, q = sign(x.p), sign(x.q)
    if p * q >= 0:
        return p or q
    return p if x.p**2 > x.d * x.q**2 else q


def real_zeros(p: Sequence[Any], low: Any = None, high: Any = None) -> int:
    """The number of different real zeros in (low, high], by Sturm's theorem; None stands for infinity.

    >>> real_zeros([Fraction(-2), Fraction(0), Fraction(1)], Fraction(0))
    1
    """
    polynomial = trimmed(p)
    return _cauchy_index(polynomial, derivative(polynomial), low, high) if len(polynomial) > 1 else 0


def _cauchy_index(p: Sequence[Any], q: Sequence[Any], low: Any = None, high: Any = None) -> int:
    """The Cauchy index of q/p: jumps from -infinity to +infinity less those back."""
    chain = [trimmed(p), trimmed(q)]
    while chain[-1]:
        chain.append(scaled(division(chain[-2], chain[-1])[1], Fraction(-1)))
    return _changes(chain, low, -1) - _changes(chain, high, 1)


def _changes(chain: Sequence[Polynomial], x: Any, side: int) -> int:
    """Changes of sign along a chain at x, or at infinity on a side."""
    signs = []
    for p in chain:
        if p:
            signs.append(sign(value(p, x)) if x is not None else sign(p[-1]) * side ** (len(p) - 1))
    nonzero = [s for s in signs if s]
    return sum(a != b for a, b in pairwise(nonzero))


def nonnegative(p: Sequence[Any], low: Any, high: Any = None) -> bool:
    """Whether p(x) >= 0 for all x between low and high, None for infinity: it has no zero of odd order inside.

    >>> nonnegative([Fraction(1), Fraction(-2), Fraction(1)], Fraction(0)), nonnegative([Fraction(-1)], Fraction(0))
    (True, False)
    """
    polynomial = trimmed(p)
    if not polynomial:
        return True
    odd: Polynomial = [Fraction(1)]
    for k, factor in enumerate(_square_free_factors(polynomial), 1):
        if k % 2:
            odd = product(odd, factor)
    for end in (low, high):  # a zero at an end does no harm
        if end is not None and not value(odd, end):
            odd = division(odd, [-end, Fraction(1)])[0]
    if real_zeros(odd, low, high):
        return False
    if high is None:
        return sign(polynomial[-1]) > 0
    inner = [low + (high - low) * Fraction(k, len(polynomial) + 1) for k in range(1, len(polynomial) + 1)]
    return any(sign(value(polynomial, x)) > 0 for x in inner)


def _square_free_factors(p: Polynomial) -> list[Polynomial]:
    """Factors f_1, f_2, ... with p = f_1 f_2^2 f_3^3 ... up to a constant (Yun)."""
    common = common_divisor(p, derivative(p))
    rest = division(p, common)[0]
    factors = []
    while len(rest) > 1:
        shared = common_divisor(rest, common)
        factors.append(division(rest, shared)[0])
        common, rest = division(common, shared)[0] if len(shared) > 1 else common, shared
    return factors


@dataclass(frozen=True)
class Location:
    """How many zeros lie left of the imaginary axis (inside of the unit circle), upon it, and on the other side.

    `simple` says whether those on the boundary are simple.
    """

    inside: int
    boundary: int
    outside: int
    simple: bool


def half_plane(p: Sequence[Any]) -> Location:
    """Where the zeros lie: Re z < 0, = 0, > 0.

    >>> half_plane([Fraction(-1), Fraction(1), Fraction(-1), Fraction(1)])  # (z - 1)(z^2 + 1)
    Location(inside=0, boundary=2, outside=1, simple=True)
    """
    polynomial = trimmed(p)
    n = len(polynomial) - 1
    # Multiplied by (-i)^n the leading term is real: f_0 has degree n, f_1 less
    parts: tuple[Polynomial, Polynomial] = ([], [])
    for k, x in enumerate(polynomial):
        turns = (k - n) % 4
        parts[turns % 2].extend([Fraction(0)] * (k - len(parts[turns % 2])))
        parts[turns % 2].append(-x if turns in (2, 3) else x)
    f0, f1 = trimmed(parts[0]), trimmed(parts[1])
    if f1:
        paired = common_divisor(f0, f1)
        balance = _cauchy_index(division(f0, paired)[0], division(f1, paired)[0])
    else:
        paired, balance = scaled(f0, 1 / f0[-1]), 0
    degree = len(paired) - 1
    boundary, simple = _on_axis(paired)
    off = (degree - boundary) // 2  # pairs +-z, one on each side
    rest = n - degree
    # arg p(iy) increases by pi for each zero on the left: the index of f_1/f_0 is -(left - right)
    left, right = (rest - balance) // 2, (rest + balance) // 2
    return Location(left + off, boundary, right + off, simple)


def _on_axis(paired: Polynomial) -> tuple[int, bool]:
    """The number of real zeros, counted with their order, and whether all are simple."""
    total, simple = 0, True
    for k, factor in enumerate(_square_free_factors(paired), 1):
        found = real_zeros(factor)
        total += k * found
        simple = simple and (k == 1 or not found)
    return total, simple


def unit_disc(p: Sequence[Any]) -> Location:
    """Where the zeros of a polynomial of full degree lie: inside of the unit circle, upon it, outside.

    >>> unit_disc([Fraction(1, 2), Fraction(-3, 2), Fraction(1)])  # (z - 1)(z - 1/2)
    Location(inside=1, boundary=1, outside=0, simple=True)
    """
    polynomial = trimmed(p)
    n = len(polynomial) - 1
    # z = (1 + w)/(1 - w), times (1 - w)^n
    transformed: Polynomial = []
    for k, x in enumerate(polynomial):
        term = product(_binomial(1, k), _binomial(-1, n - k))
        transformed = add(transformed, scaled(term, x))
    lost = n - (len(transformed) - 1)  # zeros at z = -1 have gone to infinity
    found = half_plane(transformed) if len(transformed) > 1 else Location(0, 0, 0, True)
    return Location(found.inside, found.boundary + lost, found.outside, found.simple and lost <= 1)


def _binomial(sign_: int, n: int) -> Polynomial:
    return [Fraction(comb(n, k) * sign_**k) for k in range(n + 1)]
