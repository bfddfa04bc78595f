r"""Forms that impose one combination of a constraint and its derivatives, :math:`\sum_l \alpha_l\, g^{(l)} = 0`.

Index 3, 2 and 1 of a mechanism, Baumgarte's stabilisation (Ascher and Petzold section 3.1) and the partial reduction
to index 2 (3.11).
"""

from dataclasses import dataclass
from math import comb
from typing import Any

from daedal.errors import InvalidProblemError
from daedal.formulations.formulation import Formulation
from daedal.formulations.shape import ACCELERATION, Shape, level, lowered
from daedal.problems.checks import check_finite, check_real


@dataclass(frozen=True)
class Index3(Formulation):
    r"""The constraint as it stands: index m + 1, that is 3 for a mechanism.

    BDF converges on it at constant step, but its step control suffers: velocities and multipliers carry errors of size
    1/h and 1/h^2 after every change of the step. Kept for comparison; ask for GGL instead.

    Parameters
    ----------
    multipliers : {"value", "derivative"}
        "derivative" writes :math:`\lambda = \psi'` with :math:`\psi` as the unknown, which lowers the index by one.
    """

    multipliers: str = "value"
    name = "index3"

    def shape(self, system) -> Shape:
        """g = 0."""
        psi = lowered(self.multipliers)
        classes = (1, 2, 2 if psi else 3) if system.m == 2 else None
        return Shape(level(0, system.m), n_top=system.n_c, lowered=psi, classes=classes)


@dataclass(frozen=True)
class Index2(Formulation):
    r"""The constraint on the velocity level, :math:`g^{(m-1)} + \dots = 0`: index 2, positions drift.

    Parameters
    ----------
    gamma : float
        With :math:`\gamma > 0` the combination :math:`(d/dt + \gamma)^{m-1} g = 0` (3.11) damps the drift;
        0 is the plain, unstabilised form.
    multipliers : {"value", "derivative"}
        "derivative" writes :math:`\lambda = \psi'`.
    """

    gamma: float = 0.0
    multipliers: str = "value"
    name = "index2"

    def shape(self, system) -> Shape:
        """(d/dt + gamma)^(m-1) g = 0."""
        gamma = check_finite(self.gamma, "gamma")
        if gamma < 0.0:
            raise InvalidProblemError(f"gamma must not be negative, got {gamma:g}: the drift would grow")
        k = system.m - 1
        levels = (*[comb(k, j) * gamma ** (k - j) for j in range(k + 1)], 0.0)
        return Shape(levels, n_top=system.n_c, lowered=lowered(self.multipliers))


@dataclass(frozen=True)
class Baumgarte(Formulation):
    r"""Baumgarte's stabilisation :math:`g^{(m)} + \sum_{l<m} \alpha_l g^{(l)} = 0`: an ordinary differential equation.

    Parameters
    ----------
    gamma : float, optional
        The polynomial :math:`(\tau + \gamma)^m`; 1 by default.
    alpha, beta : float, optional
        For a mechanism: :math:`\ddot g + 2 \alpha \dot g + \beta^2 g = 0`.
    coefficients : sequence of float, optional
        :math:`\alpha_0, \dots, \alpha_{m-1}` of a general polynomial.

    Notes
    -----
    Roots of the polynomial must not have positive real parts. Too small a gamma leaves drift, too large a one makes
    the equation stiff: :math:`\gamma h` should stay below 1 with an explicit method.
    """

    gamma: float | None = None
    alpha: float | None = None
    beta: float | None = None
    coefficients: Any = None
    name = "baumgarte"
    ordinary = True

    def shape(self, system) -> Shape:
        """The polynomial, with the accelerations of the augmented system."""
        return Shape((*self._polynomial(system.m), 1.0), top=ACCELERATION)

    def _polynomial(self, m: int) -> tuple[float, ...]:
        """:math:`\\alpha_0, .., \\alpha_{m-1}`."""
        import numpy as np

        given = [self.gamma is not None, self.alpha is not None or self.beta is not None, self.coefficients is not None]
        if sum(given) > 1:
            raise InvalidProblemError("give one of gamma, (alpha, beta) and coefficients")
        if self.coefficients is not None:
            values = check_real(self.coefficients, "coefficients", f"hold alpha_0 .. alpha_{m - 1}").reshape(-1)
            if values.size != m:
                got = f"{values.size} number{'' if values.size == 1 else 's'}"
                raise InvalidProblemError(f"coefficients must hold alpha_0 .. alpha_{m - 1}, got {got}")
            if not np.all(np.isfinite(values)):
                raise InvalidProblemError("coefficients holds values that are not finite")
            result = tuple(values.tolist())
        elif given[1]:
            if m != 2:
                raise InvalidProblemError("alpha and beta belong to constraints that are differentiated twice")
            alpha = check_finite(self.alpha if self.alpha is not None else self.beta, "alpha")
            beta = check_finite(self.beta if self.beta is not None else alpha, "beta")
            result = (beta**2, 2.0 * alpha)
        else:
            gamma = check_finite(1.0 if self.gamma is None else self.gamma, "gamma")
            result = tuple(comb(m, j) * gamma ** (m - j) for j in range(m))
        roots = np.roots([1.0, *result[::-1]])
        if np.any(roots.real > 1e-8 * max(1.0, float(np.max(np.abs(roots))))):
            raise InvalidProblemError("Baumgarte's polynomial has a root with positive real part: the drift would grow")
        return result


@dataclass(frozen=True)
class Index1(Formulation):
    """The constraint on the acceleration level: an ordinary differential equation whose positions and velocities drift.

    The drift of the position grows linearly with an error in the velocity (Ascher and Petzold section 3.1).
    """

    name = "index1"
    ordinary = True

    def shape(self, system) -> Shape:
        """g^(m) = 0."""
        return Shape(level(system.m, system.m), top=ACCELERATION)
