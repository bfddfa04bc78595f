r"""Linear stability of Runge-Kutta methods: :math:`R(z) = P(z)/Q(z)`, :math:`P = \det(I - zA + z 1 b^T)`, :math:`Q =
\det(I - zA)` (Hairer and Wanner II, IV.3).

A method is A-stable if :math:`E(y) = |Q(\mathrm i y)|^2 - |P(\mathrm i y)|^2 \ge 0` for all real y and Q has no zero
with :math:`\mathrm{Re}\, z \le 0`. With exact coefficients both are proved, by Sturm sequences in :math:`y^2`; with
floats they are sampled.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.polynomial import polynomial as poly

from daedal.method_analysis.arithmetic import Row
from daedal.method_analysis.root_location import half_plane, nonnegative
from daedal.method_analysis.simplifying import Method
from daedal.methods.exact_polynomials import add, common_divisor, division, product, scaled, trimmed

_SAMPLES = np.concatenate([[0.0], np.logspace(-4, 5, 2000)])
_GROWTH = 1e-9  # what round-off may add to |R| = 1
_POLE = 1e-8
_ROUNDOFF, _LIMIT = 1e-13, 1e-8  # of leading coefficients that vanish, and of R at infinity relative to 1
_BISECTIONS = 40


@dataclass(frozen=True)
class LinearStability:
    r"""What :math:`y' = \lambda y` says about a method.

    Attributes
    ----------
    a_stable : bool
        Stable for all :math:`\lambda` with Re :math:`\lambda \le 0`.
    l_stable : bool
        A-stable, and fast decay is damped at once.
    angle : float
        The largest :math:`\alpha` in degrees with stability for :math:`|\arg(-\lambda)| \le \alpha`; 90 if it is
        A-stable, 0 if no sector is stable.
    proved : bool
        Whether A-stability was decided with exact numbers; the angle below 90 degrees is always computed.
    at_infinity : number
        The factor for :math:`\lambda \to \infty`.
    """

    a_stable: bool
    l_stable: bool
    angle: float
    proved: bool
    at_infinity: Any


def stability_function(method: Method) -> tuple[Row, Row]:
    """Numerator and denominator of R, lowest power first, without common factors if they are exact."""
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
    """Without leading coefficients that are round-off."""
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


def linear_stability(method: Method) -> LinearStability:
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
    """Whether |R| <= 1 on the ray at an angle from the negative axis, and no pole lies in the sector."""
    # R is analytic in the sector and bounded: its maximum lies on the rays
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
    """The largest stable sector, by bisection; 0 if not even the negative axis is stable."""
    if not _sampled(p, q, 0.0):
        return 0.0
    low, high = 0.0, 90.0
    for _ in range(_BISECTIONS):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if _sampled(p, q, middle) else (low, middle)
    return low
