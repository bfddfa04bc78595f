r"""Forms with multipliers of their own for the lower levels, so that all levels of a constraint hold at once."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from daedal.errors import InvalidProblemError
from daedal.formulations.formulation import Formulation
from daedal.formulations.shape import ACCELERATION, FUEHRER_LEIMKUHLER, Shape, level, lowered


@dataclass(frozen=True)
class GGL(Formulation):
    r"""The stabilised index-2 form of Gear, Gupta and Leimkuhler,

    .. math:: \dot q = v + D \mu, \quad M \dot v = f - G^T \lambda, \quad 0 = g(t, q), \quad 0 = G v + g_t,

    in general :math:`z_j' = z_{j+1} + D \mu_j` with all of :math:`g = g' = \dots = g^{(m-1)} = 0`
    (Ascher and Petzold (2.18), (4.15)). The multipliers :math:`\mu` vanish for the exact solution.

    Parameters
    ----------
    projection : {"GT", "B", "unit"}, matrix or function
        D: the transpose of G, :math:`B = M^{-1} G^T`, unit vectors, or a given :math:`D` or :math:`D(t, q)`.
    multipliers : {"value", "derivative"}
        "derivative" makes both multipliers derivatives of the unknowns: index 1.
    """

    projection: Any = "GT"
    multipliers: str = "value"
    name = "ggl"

    def shape(self, system) -> Shape:
        """g^(m-1) = 0 with lam, lower levels with mu."""
        m = system.m
        return Shape(
            level(m - 1, m), n_top=system.n_c, low=m - 1, projection=self.projection, lowered=lowered(self.multipliers)
        )


@dataclass(frozen=True)
class ProjectedInvariants(Formulation):
    r"""Projected invariants of Ascher and Petzold (3.25), (3.27): the constraints as invariants of the underlying ODE.

    .. math:: z_j' = z_{j+1} + D \mu_j, \qquad z_m' = a(t, z) + D \mu_m, \qquad g^{(j-1)} = 0, \; j = 1 \dots k

    with the accelerations a of the augmented system. With :math:`D = G^T` stiff methods stay stiff methods where the
    constraint forces turn quickly, which no form that re-imposes the constraint through :math:`B = M^{-1} G^T` does.

    Parameters
    ----------
    k : int, optional
        How many levels are imposed, 1 to m; all by default.
    projection : {"CT", "B", "unit"}, matrix or function
        D.
    """

    k: int | None = None
    projection: Any = "CT"
    name = "projected_invariants"

    def shape(self, system) -> Shape:
        """g^(j) = 0, j < k, beside the underlying ODE."""
        m = system.m
        k = m if self.k is None else self.k
        if isinstance(k, bool) or not isinstance(k, (int, np.integer)) or k not in range(1, m + 1):
            raise InvalidProblemError(f"k must be 1 to {m}, got {self.k!r}")
        return Shape(
            level(m - 1, m),
            top=ACCELERATION,
            n_top=system.n_c if k == m else system.n_c - system.n_g,
            low=min(k, m - 1),
            projection=self.projection,
        )


@dataclass(frozen=True)
class FuehrerLeimkuhler(Formulation):
    r"""The form of Fuehrer and Leimkuhler, Wijckmans (6.13): projection along the normals of both manifolds.

    .. math::

        \dot q = v + G^T \mu + (G v)_q^T \tau, \quad M \dot v = f - G^T \lambda + G^T \tau, \quad
        0 = g, \quad 0 = G v + g_t,

    with :math:`\lambda` from the acceleration level; :math:`\mu = \tau = 0` for the exact solution. Solving the
    overdetermined system of all levels by BDF in the sense of least squares is equivalent to it.

    Parameters
    ----------
    multipliers : {"value", "derivative"}
        "derivative" makes :math:`\mu` and :math:`\tau` derivatives of the unknowns: index 1.
    """

    multipliers: str = "value"
    name = "fuehrer_leimkuhler"

    def shape(self, system) -> Shape:
        """g = 0 and G v + g_t = 0 beside the underlying ODE."""
        if system.m != 2 or system.linear:
            raise InvalidProblemError("the form of Fuehrer and Leimkuhler is made for mechanical systems")
        return Shape(
            level(1, 2),
            top=ACCELERATION,
            n_top=system.n_c,
            low=1,
            variant=FUEHRER_LEIMKUHLER,
            lowered=lowered(self.multipliers),
        )


@dataclass(frozen=True)
class Overdetermined(Formulation):
    r"""All levels of the constraints at once: an overdetermined DAE, solved in the sense of least squares.

    Multiplying the discretised equations by R with :math:`R B = 0` is the stabilised form (2.18) with D = B; their
    least-squares solution is the form of Fuehrer and Leimkuhler (Ascher and Petzold section 3.4, Wijckmans (6.14)).

    Parameters
    ----------
    resolution : {"least_squares", "essential"}
        How a solution is chosen.
    """

    resolution: str = "least_squares"
    name = "overdetermined"

    def shape(self, system) -> Shape:
        """That of the equivalent form."""
        if self.resolution == "essential":
            return GGL(projection="B").shape(system)
        if self.resolution != "least_squares":
            raise InvalidProblemError(f"resolution must be 'least_squares' or 'essential', got {self.resolution!r}")
        if system.m == 2 and not system.linear:
            return FuehrerLeimkuhler().shape(system)
        return ProjectedInvariants(projection="CT").shape(system)
