"""Linear stability of Runge-Kutta and multistep methods, from zeros located without computing them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from math import comb
from typing import Any

import numpy as np
from numpy.polynomial import polynomial as poly

from daedal.analysis.method_analysis.orders_by_class import ExactCoefficients, Numbers, Row
from daedal.methods.exact_numbers import (
    Polynomial,
    Quadratic,
    add,
    common_divisor,
    derivative,
    division,
    product,
    scaled,
    trimmed,
    value,
)

# Sturm's theorem counts real zeros. For the half-plane, :math:`p(\mathrm i y) = f_0(y) + \mathrm i f_1(y)` with real
# polynomials: their greatest common divisor contains the zeros in pairs :math:`\pm z`, among them those on the axis,
# and the Cauchy index of the remaining quotient counts the others on each side (Routh and Hurwitz; F. R. Gantmacher,
# The Theory of Matrices II, XV). A Moebius transform maps the half-plane to the unit disc.


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
    """The number of distinct real zeros in (low, high], by Sturm's theorem; None denotes infinity.

    >>> real_zeros([Fraction(-2), Fraction(0), Fraction(1)], Fraction(0))
    1
    """
    polynomial = trimmed(p)
    return _cauchy_index(polynomial, derivative(polynomial), low, high) if len(polynomial) > 1 else 0


def _cauchy_index(p: Sequence[Any], q: Sequence[Any], low: Any = None, high: Any = None) -> int:
    """The Cauchy index of q/p: the number of jumps from -infinity to +infinity minus the number of opposite jumps."""
    chain = [trimmed(p), trimmed(q)]
    while chain[-1]:
        chain.append(scaled(division(chain[-2], chain[-1])[1], Fraction(-1)))
    return _changes(chain, low, -1) - _changes(chain, high, 1)


def _changes(chain: Sequence[Polynomial], x: Any, side: int) -> int:
    """The number of sign changes along a chain of polynomials at x; None denotes infinity with the sign `side`."""
    signs = []
    for p in chain:
        if p:
            signs.append(sign(value(p, x)) if x is not None else sign(p[-1]) * side ** (len(p) - 1))
    nonzero = [s for s in signs if s]
    return sum(a != b for a, b in pairwise(nonzero))


def nonnegative(p: Sequence[Any], low: Any, high: Any = None) -> bool:
    """Whether p(x) >= 0 for all x between low and high (None: infinity), i.e. whether p has no zero of odd order
    inside.

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
    for end in (low, high):  # zeros at the ends are harmless
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
    """Number of zeros left of the imaginary axis (inside the unit circle), on it, and right of it (outside).

    `simple`: whether the zeros on the boundary are simple.
    """

    inside: int
    boundary: int
    outside: int
    simple: bool


def half_plane(p: Sequence[Any]) -> Location:
    """The location of the zeros: Re z < 0, = 0, > 0.

    >>> half_plane([Fraction(-1), Fraction(1), Fraction(-1), Fraction(1)])  # (z - 1)(z^2 + 1)
    Location(inside=0, boundary=2, outside=1, simple=True)
    """
    polynomial = trimmed(p)
    n = len(polynomial) - 1
    # multiplied by (-i)^n, the leading term is real: f_0 has degree n, f_1 a lower degree
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
    """The number of real zeros, counted with multiplicity, and whether all are simple."""
    total, simple = 0, True
    for k, factor in enumerate(_square_free_factors(paired), 1):
        found = real_zeros(factor)
        total += k * found
        simple = simple and (k == 1 or not found)
    return total, simple


def unit_disc(p: Sequence[Any]) -> Location:
    """The location of the zeros of a polynomial of full degree: inside the unit circle, on it, outside.

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
    lost = n - (len(transformed) - 1)  # zeros at z = -1 are mapped to infinity
    found = half_plane(transformed) if len(transformed) > 1 else Location(0, 0, 0, True)
    return Location(found.inside, found.boundary + lost, found.outside, found.simple and lost <= 1)


def _binomial(sign_: int, n: int) -> Polynomial:
    return [Fraction(comb(n, k) * sign_**k) for k in range(n + 1)]


# --- Runge-Kutta methods: R(z) = P(z)/Q(z), P = det(I - zA + z 1 b^T), Q = det(I - zA) (HW IV.3) ----------------------

# A method is A-stable if :math:`E(y) = |Q(\mathrm i y)|^2 - |P(\mathrm i y)|^2 \ge 0` for all real y and Q has no zero
# with :math:`\mathrm{Re}\, z \le 0`. With exact coefficients both are proved, by Sturm sequences in :math:`y^2`; with
# floats they are sampled.

_SAMPLES = np.concatenate([[0.0], np.logspace(-4, 5, 2000)])
_GROWTH = 1e-9  # allowance for round-off in |R| = 1
_POLE = 1e-8
_ROUNDOFF, _LIMIT = 1e-13, 1e-8  # tolerances for vanishing leading coefficients, and for R at infinity relative to 1
_BISECTIONS = 40


@dataclass(frozen=True)
class LinearStability:
    r"""Properties of a method on :math:`y' = \lambda y`."""

    a_stable: bool  # stable for all \lambda with Re \lambda \le 0
    l_stable: bool  # A-stable, and fast decay is damped immediately
    # The largest \alpha in degrees with stability for |\arg(-\lambda)| \le \alpha; 90 if it is A-stable, 0 if no sector
    # is stable
    angle: float
    proved: bool  # whether A-stability was decided in exact arithmetic; the angle below 90 degrees is always numerical
    at_infinity: Any  # the factor for \lambda \to \infty


def stability_function(method: ExactCoefficients) -> tuple[Row, Row]:
    """Numerator and denominator of R, lowest power first, without common factors if exact."""
    numbers = method.numbers
    q = numbers.determinant_polynomial(method.a)
    p = numbers.determinant_polynomial([[x - y for x, y in zip(row, method.b)] for row in method.a])
    if not numbers.exact:
        return _trimmed_floats(p, q)
    p, q = trimmed(p), trimmed(q)
    common = common_divisor(p, q)
    p, q = division(p, common)[0], division(q, common)[0]
    return scaled(p, 1 / q[0]), scaled(q, 1 / q[0])


def _trimmed_floats(p: Row, q: Row) -> tuple[Row, Row]:
    """Remove leading coefficients that are round-off."""
    while len(q) > 1 and abs(q[-1]) < _ROUNDOFF:
        q = q[:-1]
    while len(p) > 1 and abs(p[-1]) < (_LIMIT * abs(q[len(p) - 1]) if len(p) <= len(q) else _ROUNDOFF):
        p = p[:-1]
    return p, q


def at_infinity(p: Row, q: Row, zero: Any) -> Any:
    """The limit of P/Q; infinite if P has the higher degree."""
    if len(p) > len(q):
        return math.inf
    return p[-1] / q[-1] if len(p) == len(q) else zero


def linear_stability(method: ExactCoefficients) -> LinearStability:
    """A-stability, L-stability and the angle of a Runge-Kutta method."""
    p, q = stability_function(method)
    limit = at_infinity(p, q, method.numbers.enter(0))
    exact = method.numbers.exact
    stable = _proved(p, q) if exact else _sampled(p, q, 90.0)
    if stable:
        angle = 90.0
    else:
        angle = _angle(np.array(p, dtype=float), np.array(q, dtype=float))
    vanishes = not limit if exact else abs(limit) < _GROWTH
    return LinearStability(stable, stable and vanishes, angle, exact, limit)


def _proved(p: Row, q: Row) -> bool:
    poles = half_plane(q) if len(q) > 1 else None
    if poles is not None and (poles.inside or poles.boundary):
        return False
    return nonnegative(add(_square_on_axis(q), scaled(_square_on_axis(p), Fraction(-1))), Fraction(0))


def _square_on_axis(p: Row) -> Row:
    """|p(iy)|^2 as a polynomial in w = y^2."""
    even = [x if k % 2 == 0 else -x for k, x in enumerate(p[0::2])]
    odd = [x if k % 2 == 0 else -x for k, x in enumerate(p[1::2])]
    return add(product(even, even), [Fraction(0), *product(odd, odd)])


def _sampled(p: Any, q: Any, degrees: float) -> bool:
    """Whether |R| <= 1 on the ray at an angle from the negative axis, with no pole in the sector."""
    # R is analytic in the sector and bounded: its maximum is attained on the rays
    p, q = np.asarray(p, dtype=float), np.asarray(q, dtype=float)
    if p.size > q.size:
        return False
    poles = poly.polyroots(q) if q.size > 1 else np.array([])
    if np.any(np.abs(np.angle(-poles, deg=True)) <= degrees + _POLE):
        return False
    z = -_SAMPLES * np.exp(1j * math.radians(degrees))
    growth = np.abs(poly.polyval(z, p) / poly.polyval(z, q))
    limit = abs(p[-1] / q[-1]) if p.size == q.size else 0.0
    return bool(max(growth.max(), limit) <= 1.0 + _GROWTH)


def _angle(p: np.ndarray, q: np.ndarray) -> float:
    """The largest stable sector, by bisection; 0 if the method is unstable on the negative axis."""
    if not _sampled(p, q, 0.0):
        return 0.0
    low, high = 0.0, 90.0
    for _ in range(_BISECTIONS):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if _sampled(p, q, middle) else (low, middle)
    return low


# --- multistep methods: location of the zeros of rho, sigma and rho - z sigma -----------------------------------------

_POINTS = 20_001  # number of points of the root locus, on the upper half of the unit circle
_REFINEMENTS = 4
_ROOT_ROUNDOFF = 1e-9
_CLUSTER = 1e-5  # for floats: zeros closer than this count as one multiple zero
_RAY = np.logspace(-6, 6, 400)


@dataclass(frozen=True)
class MultistepStability:
    r"""Stability of a multistep method from the location of zeros."""

    zero_stable: bool  # the zeros of \rho lie in the unit disc, and those on the circle are simple
    stable_at_infinity: bool  # whether the zeros of \sigma lie inside the unit disc, and it has full degree
    # For the test equation
    a_stable: bool
    l_stable: bool
    angle: float  # the angle of the largest stable sector in degrees, computed numerically from the root locus
    parasitic: float | None  # the largest modulus of the zeros of \rho other than 1; None if there are none
    sigma: float  # the largest modulus of the zeros of \sigma; infinite for explicit methods
    proved: bool  # whether everything except the numbers was decided exactly


def multistep_stability(numbers: Numbers, rho: Row, sigma: Row) -> MultistepStability:
    """Stability of a method with coefficients in descending order of powers."""
    moduli = np.abs(_roots(sigma)) if sigma[0] else np.array([math.inf])
    roots = _roots(rho)
    others = np.sort(np.abs(np.delete(roots, np.argmin(np.abs(roots - 1.0))) if roots.size else roots))
    if numbers.exact:
        disc = unit_disc(rho[::-1])
        zero_stable = not disc.outside and disc.simple
        infinity = bool(sigma[0]) and unit_disc(sigma[::-1]).inside == len(sigma) - 1
        a_stable = _proved_a_stable(rho, sigma)
    else:
        zero_stable = _numerically_zero_stable(roots)
        infinity = bool(sigma[0]) and bool(np.all(moduli < 1.0 - _ROOT_ROUNDOFF))
        a_stable = zero_stable and _sampled_roots(rho, sigma, 90.0)
    a_stable = a_stable and zero_stable
    angle = 90.0 if a_stable else _locus_angle(rho, sigma) if zero_stable else 0.0
    return MultistepStability(
        zero_stable,
        infinity,
        a_stable,
        a_stable and not any(sigma[1:]),
        angle,
        float(others[-1]) if others.size else None,
        float(moduli.max()) if moduli.size else 0.0,
        numbers.exact,
    )


def _roots(coefficients: Row) -> np.ndarray:
    return np.roots([float(x) for x in coefficients])


def _numerically_zero_stable(roots: np.ndarray) -> bool:
    size = np.abs(roots)
    on_circle = roots[size > 1.0 - _CLUSTER]
    distances = np.abs(on_circle[:, None] - on_circle[None, :]) + np.eye(on_circle.size)
    return bool(np.all(size <= 1.0 + _ROOT_ROUNDOFF) and np.all(distances > _CLUSTER))


def _proved_a_stable(rho: Row, sigma: Row) -> bool:
    r"""Whether the zeros of :math:`\rho - z\sigma` stay inside the unit circle for Re z < 0.

    They are inside for z = -1, none comes from infinity since :math:`\alpha_0/\beta_0 > 0`, and none crosses the
    circle, where :math:`\mathrm{Re}\,\rho\bar\sigma \ge 0`, a polynomial in the cosine of the angle.
    """
    if sign(rho[0]) * sign(sigma[0]) <= 0:
        return False
    at_minus_one = [x + y for x, y in zip(rho, sigma)]
    if unit_disc(at_minus_one[::-1]).inside != len(rho) - 1:
        return False
    return nonnegative(_real_part(rho, sigma), Fraction(-1), Fraction(1))


def _real_part(rho: Row, sigma: Row) -> list[Any]:
    r""":math:`\mathrm{Re}\,\rho\bar\sigma = \sum_{jl} \alpha_j \beta_l \cos((j - l)\theta)`, a polynomial in cos."""
    chebyshev: list[list[Any]] = [[Fraction(1)], [Fraction(0), Fraction(1)]]
    while len(chebyshev) < len(rho):
        twice = product([Fraction(0), Fraction(2)], chebyshev[-1])
        chebyshev.append(add(twice, scaled(chebyshev[-2], Fraction(-1))))
    total: list[Any] = []
    for j, x in enumerate(rho):
        for l, y in enumerate(sigma):
            total = add(total, scaled(chebyshev[abs(j - l)], x * y))
    return total


def _locus_angle(rho: Row, sigma: Row) -> float:
    r"""The smallest angle between the negative axis and the root locus :math:`z = \rho/\sigma`, :math:`|\zeta| = 1`."""
    a, b = (np.array(x, dtype=float) for x in (rho, sigma))
    low, high = 0.0, math.pi
    angle = 90.0
    for _ in range(_REFINEMENTS):
        theta = np.linspace(low, high, _POINTS)[1:]
        zeta = np.exp(1j * theta)
        with np.errstate(divide="ignore", invalid="ignore"):
            z = np.polyval(a, zeta) / np.polyval(b, zeta)
        left = np.where(np.isfinite(z) & (z.real < -_ROOT_ROUNDOFF), np.abs(np.angle(-z, deg=True)), 90.0)
        best = int(np.argmin(left))
        angle = min(angle, float(left[best]))
        low, high = theta[max(best - 2, 0)], theta[min(best + 2, theta.size - 1)]
    return angle if angle > _ROOT_ROUNDOFF and _sampled_roots(rho, sigma, 0.999 * angle) else 0.0


def _sampled_roots(rho: Row, sigma: Row, degrees: float) -> bool:
    """Whether the method is stable on the rays at an angle and on the negative axis."""
    for turn in (0.0, math.radians(degrees)):
        for z in -_RAY * np.exp(1j * turn):
            polynomial = np.array(rho, dtype=complex) - z * np.array(sigma, dtype=complex)
            if np.any(np.abs(np.roots(polynomial)) > 1.0 + 1e-7):
                return False
    return True
