r"""Stability of multistep methods: where the zeros of :math:`\rho`, :math:`\sigma` and :math:`\rho - z\sigma` lie."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from daedal.method_analysis.arithmetic import Numbers, Row
from daedal.method_analysis.root_location import nonnegative, sign, unit_disc
from daedal.methods.exact_polynomials import add, product, scaled

_POINTS = 20_001  # on the upper half of the unit circle
_REFINEMENTS = 4
_ROUNDOFF = 1e-9
_CLUSTER = 1e-5  # floats: zeros nearer than this are taken for a multiple one
_RAY = np.logspace(-6, 6, 400)


@dataclass(frozen=True)
class MultistepStability:
    r"""What the zeros say.

    Attributes
    ----------
    zero_stable : bool
        The zeros of :math:`\rho` lie in the unit disc, those on the circle are simple.
    stable_at_infinity : bool
        Those of :math:`\sigma` lie inside, and it has full degree.
    a_stable, l_stable : bool
        For the test equation.
    angle : float
        The angle of the largest stable sector in degrees, computed numerically from the root locus.
    parasitic : float or None
        The largest modulus of the zeros of :math:`\rho` other than 1; None if there are none.
    sigma : float
        The largest modulus of the zeros of :math:`\sigma`; infinite for explicit methods.
    proved : bool
        Whether all but the numbers were decided exactly.
    """

    zero_stable: bool
    stable_at_infinity: bool
    a_stable: bool
    l_stable: bool
    angle: float
    parasitic: float | None
    sigma: float
    proved: bool


def multistep_stability(numbers: Numbers, rho: Row, sigma: Row) -> MultistepStability:
    """Stability of a method with coefficients in descending order of powers."""
    moduli = np.abs(_roots(sigma)) if sigma[0] else np.array([math.inf])
    others = np.sort(np.abs(_without_one(_roots(rho))))
    if numbers.exact:
        disc = unit_disc(rho[::-1])
        zero_stable = not disc.outside and disc.simple
        infinity = bool(sigma[0]) and unit_disc(sigma[::-1]).inside == len(sigma) - 1
        a_stable = _proved_a_stable(rho, sigma)
    else:
        zero_stable = _numerically_zero_stable(_roots(rho))
        infinity = bool(sigma[0]) and bool(np.all(moduli < 1.0 - _ROUNDOFF))
        a_stable = zero_stable and _sampled(rho, sigma, 90.0)
    a_stable = a_stable and zero_stable
    angle = 90.0 if a_stable else _angle(rho, sigma) if zero_stable else 0.0
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


def _without_one(roots: np.ndarray) -> np.ndarray:
    """Without the zero that is nearest to 1."""
    return np.delete(roots, np.argmin(np.abs(roots - 1.0))) if roots.size else roots


def _numerically_zero_stable(roots: np.ndarray) -> bool:
    size = np.abs(roots)
    on_circle = roots[size > 1.0 - _CLUSTER]
    distances = np.abs(on_circle[:, None] - on_circle[None, :]) + np.eye(on_circle.size)
    return bool(np.all(size <= 1.0 + _ROUNDOFF) and np.all(distances > _CLUSTER))


def _proved_a_stable(rho: Row, sigma: Row) -> bool:
    r"""Whether the zeros of :math:`\rho - z\sigma` stay inside the unit circle for Re z < 0.

    They are inside for z = -1, none comes from infinity as :math:`\alpha_0/\beta_0 > 0`, and none crosses the circle,
    where :math:`\mathrm{Re}\,\rho\bar\sigma \ge 0`, a polynomial in the cosine of the angle.
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


def _angle(rho: Row, sigma: Row) -> float:
    r"""The smallest angle between the negative axis and the root locus :math:`z = \rho/\sigma`, :math:`|\zeta| = 1`."""
    a, b = (np.array(x, dtype=float) for x in (rho, sigma))
    low, high = 0.0, math.pi
    angle = 90.0
    for _ in range(_REFINEMENTS):
        theta = np.linspace(low, high, _POINTS)[1:]
        zeta = np.exp(1j * theta)
        with np.errstate(divide="ignore", invalid="ignore"):
            z = np.polyval(a, zeta) / np.polyval(b, zeta)
        left = np.where(np.isfinite(z) & (z.real < -_ROUNDOFF), np.abs(np.angle(-z, deg=True)), 90.0)
        best = int(np.argmin(left))
        angle = min(angle, float(left[best]))
        low, high = theta[max(best - 2, 0)], theta[min(best + 2, theta.size - 1)]
    return angle if angle > _ROUNDOFF and _sampled(rho, sigma, 0.999 * angle) else 0.0


def _sampled(rho: Row, sigma: Row, degrees: float) -> bool:
    """Whether the method is stable on the rays at an angle and on the negative axis."""
    for turn in (0.0, math.radians(degrees)):
        for z in -_RAY * np.exp(1j * turn):
            polynomial = np.array(rho, dtype=complex) - z * np.array(sigma, dtype=complex)
            if np.any(np.abs(np.roots(polynomial)) > 1.0 + 1e-7):
                return False
    return True
