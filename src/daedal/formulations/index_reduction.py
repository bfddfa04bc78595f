r"""Forms that impose one combination of a constraint and its derivatives, :math:`\sum_l \alpha_l\, g^{(l)} = 0`.

Index 3, 2 and 1 of a mechanism, Baumgarte's stabilisation (Ascher and Petzold section 3.1) and the partial reduction
to index 2 (3.11).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import comb
from typing import Any

from daedal.errors import InvalidProblemError
from daedal.formulations.reduction import Reduction, Shape, Start, build
from daedal.problems.checks import check_finite, check_real

_MULTIPLIERS = ("value", "derivative")


def lowered(multipliers: str) -> bool:
    """Whether multipliers are unknowns themselves or derivatives of unknowns, lam = psi' (which lowers the index)."""
    if multipliers not in _MULTIPLIERS:
        raise InvalidProblemError(f"multipliers must be 'value' or 'derivative', got {multipliers!r}")
    return multipliers == "derivative"


def index_options(assembly, n: int, classes: tuple[int, ...]) -> dict[str, Any]:
    """DASSL's options for unknowns whose index classes are given for z_1..z_m, r and the multipliers.

    The error estimate of class i is multiplied by h^(i-1) (Wijckmans section 6.3), the multipliers are left out.
    """
    m, nx = assembly.m, assembly.nx
    variable_index = [c for j in range(m) for c in [classes[j]] * nx] + [1] * assembly.n_r
    variable_index += [classes[-1]] * (n - len(variable_index))
    return {"variable_index": variable_index, "newton_weights": [c - 1.0 for c in variable_index]}


@dataclass(frozen=True)
class Index3:
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

    def reduce(self, assembly, start: Start) -> Reduction:
        """The form for an assembled system."""
        shape = Shape(n_top=assembly.n_c, alpha=(1.0,), lowered=lowered(self.multipliers))
        reduction = build(assembly, start, shape)
        if assembly.m == 2:
            classes = (1, 2, 2 if shape.lowered else 3)
            reduction.options |= index_options(assembly, reduction.problem.n, classes)
        return reduction


@dataclass(frozen=True)
class Index2:
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

    def damping(self) -> float:
        """Gamma, checked."""
        gamma = check_finite(self.gamma, "gamma")
        if gamma < 0.0:
            raise InvalidProblemError(f"gamma must not be negative, got {gamma:g}: the drift would grow")
        return gamma

    def reduce(self, assembly, start: Start) -> Reduction:
        """The form for an assembled system."""
        k = assembly.m - 1
        gamma = self.damping()
        alpha = tuple(comb(k, j) * (assembly.direction * gamma) ** (k - j) for j in range(k + 1))
        shape = Shape(n_top=assembly.n_c, alpha=alpha, lowered=lowered(self.multipliers))
        return build(assembly, start, shape)


@dataclass(frozen=True)
class Baumgarte:
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

    def polynomial(self, m: int) -> tuple[tuple[float, ...], float]:
        """:math:`\\alpha_0, .., \\alpha_{m-1}`, and the coefficient for velocity constraints."""
        import numpy as np

        given = [self.gamma is not None, self.alpha is not None or self.beta is not None, self.coefficients is not None]
        if sum(given) > 1:
            raise InvalidProblemError("give one of gamma, (alpha, beta) and coefficients")
        if self.coefficients is not None:
            values = check_real(self.coefficients, "coefficients", f"hold alpha_0 .. alpha_{m - 1}").reshape(-1)
            if values.size != m:
                raise InvalidProblemError(f"coefficients must hold alpha_0 .. alpha_{m - 1}, got {values.size} numbers")
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
        return result, result[-1] / m

    def reduce(self, assembly, start: Start) -> Reduction:
        """The form for an assembled system."""
        from daedal.formulations.residuals import TOP_ACCELERATION

        damping, velocity = self.polynomial(assembly.m)
        m, direction = assembly.m, assembly.direction
        assembly.damp([*[value * direction ** (m - j) for j, value in enumerate(damping)], direction * velocity])
        return build(assembly, start, Shape(top=TOP_ACCELERATION))


@dataclass(frozen=True)
class Index1:
    """The constraint on the acceleration level: an ordinary differential equation whose positions and velocities drift.

    The drift of the position grows linearly with an error in the velocity (Ascher and Petzold section 3.1).
    """

    name = "index1"

    def reduce(self, assembly, start: Start) -> Reduction:
        """The form for an assembled system."""
        return Baumgarte(gamma=0.0).reduce(assembly, start)
