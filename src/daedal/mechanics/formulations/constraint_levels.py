"""Formulations in all coordinates: the constraint levels are imposed, stabilised, regularised or projected onto."""

from dataclasses import dataclass
from math import comb
from typing import Any

import numpy as np

from daedal.errors import InvalidProblemError
from daedal.mechanics.formulations.formulation import (
    ACCELERATION,
    FUEHRER_LEIMKUHLER,
    HANKE,
    KNORRENSCHILD,
    PENALTY,
    Formulation,
    ProjectedSteps,
    Shape,
    level,
    lowered,
)
from daedal.problems.checks import check_finite, check_positive, check_real

# Index 3, 2 and 1 of a mechanism, Baumgarte's stabilisation (Ascher and Petzold section 3.1) and the partial reduction
# to index 2 (3.11).


@dataclass(frozen=True)
class Index3(Formulation):
    r"""The original constraint: index m + 1, that is 3 for a mechanism.

    BDF converges for it at constant step size, but step size control suffers: velocities and multipliers carry errors
    of size 1/h and 1/h^2 after every change of the step size. For comparison only; use GGL instead.

    Parameters
    ----------
    multipliers : {"value", "derivative"}
        "derivative" writes :math:`\lambda = \psi'` with :math:`\psi` as the unknown, which lowers the index by one.

    Examples
    --------
    >>> import daedal
    >>> model = daedal.library.planar_pendulum(gravity=9.81)
    >>> form = daedal.formulations.Index3()
    >>> sol = daedal.solve(model.problem, (0.0, 1.0), model.initial, formulation=form)
    >>> print(sol.formulation, sol.q[:, -1].round(3))
    Index3 [-0.986 -0.165]
    """

    multipliers: str = "value"
    name = "index3"

    def shape(self, system) -> Shape:
        psi = lowered(self.multipliers)
        classes = (1, 2, 2 if psi else 3) if system.m == 2 else None
        return Shape(level(0, system.m), n_top=system.n_c, lowered=psi, classes=classes)


@dataclass(frozen=True)
class Index2(Formulation):
    r"""The constraint at velocity level, :math:`g^{(m-1)} + \dots = 0`: index 2, positions drift.

    Parameters
    ----------
    gamma : float
        With :math:`\gamma > 0` the combination :math:`(d/dt + \gamma)^{m-1} g = 0` (3.11) damps the drift;
        0 is the plain, unstabilised form.
    multipliers : {"value", "derivative"}
        "derivative" writes :math:`\lambda = \psi'`.

    Examples
    --------
    >>> import daedal
    >>> model = daedal.library.planar_pendulum(gravity=9.81)
    >>> form = daedal.formulations.Index2()
    >>> sol = daedal.solve(model.problem, (0.0, 1.0), model.initial, formulation=form)
    >>> print(sol.formulation, sol.q[:, -1].round(3))
    Index2 [-0.986 -0.165]
    """

    gamma: float = 0.0
    multipliers: str = "value"
    name = "index2"

    def shape(self, system) -> Shape:
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

    Examples
    --------
    >>> import daedal
    >>> model = daedal.library.planar_pendulum(gravity=9.81)
    >>> form = daedal.formulations.Baumgarte(gamma=5.0)
    >>> sol = daedal.solve(model.problem, (0.0, 1.0), model.initial, formulation=form)
    >>> print(sol.formulation, sol.q[:, -1].round(3))
    Baumgarte [-0.986 -0.165]
    """

    gamma: float | None = None
    alpha: float | None = None
    beta: float | None = None
    coefficients: Any = None
    name = "baumgarte"
    ordinary = True

    def shape(self, system) -> Shape:
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
                raise InvalidProblemError("alpha and beta apply to constraints that are differentiated twice")
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
    """The constraint at acceleration level: an ordinary differential equation whose positions and velocities drift.

    An error in the velocity lets the position drift linearly (Ascher and Petzold section 3.1).

    Examples
    --------
    >>> import daedal
    >>> model = daedal.library.planar_pendulum(gravity=9.81)
    >>> form = daedal.formulations.Index1()
    >>> sol = daedal.solve(model.problem, (0.0, 1.0), model.initial, formulation=form)
    >>> print(sol.formulation, sol.q[:, -1].round(3))
    Index1 [-0.986 -0.165]
    """

    name = "index1"
    ordinary = True

    def shape(self, system) -> Shape:
        return Shape(level(system.m, system.m), top=ACCELERATION)


# --- forms with separate multipliers for the lower levels, so that all levels of a constraint hold at once ------------


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

    Examples
    --------
    >>> import daedal
    >>> model = daedal.library.planar_pendulum(gravity=9.81)
    >>> form = daedal.formulations.GGL()
    >>> sol = daedal.solve(model.problem, (0.0, 1.0), model.initial, formulation=form)
    >>> print(sol.formulation, sol.q[:, -1].round(3))
    GGL [-0.986 -0.165]
    """

    projection: Any = "GT"
    multipliers: str = "value"
    name = "ggl"

    def shape(self, system) -> Shape:
        m = system.m
        return Shape(
            level(m - 1, m), n_top=system.n_c, low=m - 1, projection=self.projection, lowered=lowered(self.multipliers)
        )


@dataclass(frozen=True)
class ProjectedInvariants(Formulation):
    r"""Projected invariants of Ascher and Petzold (3.25), (3.27): the constraints as invariants of the underlying ODE.

    .. math:: z_j' = z_{j+1} + D \mu_j, \qquad z_m' = a(t, z) + D \mu_m, \qquad g^{(j-1)} = 0, \; j = 1 \dots k

    with the accelerations a of the augmented system. With :math:`D = G^T` stiff methods remain effective for rapidly
    rotating constraint forces, unlike with all forms that impose the constraint through :math:`B = M^{-1} G^T`.

    Parameters
    ----------
    k : int, optional
        Number of levels imposed, 1 to m; all by default.
    projection : {"CT", "B", "unit"}, matrix or function
        The directions D.

    Examples
    --------
    >>> import daedal
    >>> model = daedal.library.planar_pendulum(gravity=9.81)
    >>> form = daedal.formulations.ProjectedInvariants(projection="CT")
    >>> sol = daedal.solve(model.problem, (0.0, 1.0), model.initial, formulation=form)
    >>> print(sol.formulation, sol.q[:, -1].round(3))
    ProjectedInvariants [-0.986 -0.165]
    """

    k: int | None = None
    projection: Any = "CT"
    name = "projected_invariants"

    def shape(self, system) -> Shape:
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

    with :math:`\lambda` from the acceleration level; :math:`\mu = \tau = 0` for the exact solution. It is equivalent to
    the least-squares solution of the overdetermined system of all levels by BDF.

    Parameters
    ----------
    multipliers : {"value", "derivative"}
        "derivative" makes :math:`\mu` and :math:`\tau` derivatives of the unknowns: index 1.

    Examples
    --------
    >>> import daedal
    >>> model = daedal.library.planar_pendulum(gravity=9.81)
    >>> form = daedal.formulations.FuehrerLeimkuhler()
    >>> sol = daedal.solve(model.problem, (0.0, 1.0), model.initial, formulation=form)
    >>> print(sol.formulation, sol.q[:, -1].round(3))
    FuehrerLeimkuhler [-0.986 -0.165]
    """

    multipliers: str = "value"
    name = "fuehrer_leimkuhler"

    def shape(self, system) -> Shape:
        if system.m != 2 or system.linear:
            raise InvalidProblemError("the form of Fuehrer and Leimkuhler is defined for mechanical systems")
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
    r"""All levels of the constraints at once: an overdetermined DAE, solved in the least-squares sense.

    Multiplying the discretised equations by R with :math:`R B = 0` is the stabilised form (2.18) with D = B; their
    least-squares solution is the form of Fuehrer and Leimkuhler (Ascher and Petzold section 3.4, Wijckmans (6.14)).

    Parameters
    ----------
    resolution : {"least_squares", "essential"}
        How a solution is selected.

    Examples
    --------
    >>> import daedal
    >>> model = daedal.library.planar_pendulum(gravity=9.81)
    >>> form = daedal.formulations.Overdetermined()
    >>> sol = daedal.solve(model.problem, (0.0, 1.0), model.initial, formulation=form)
    >>> print(sol.formulation, sol.q[:, -1].round(3))
    Overdetermined [-0.986 -0.165]
    """

    resolution: str = "least_squares"
    name = "overdetermined"

    def shape(self, system) -> Shape:
        if self.resolution == "essential":
            return GGL(projection="B").shape(system)
        if self.resolution != "least_squares":
            raise InvalidProblemError(f"resolution must be 'least_squares' or 'essential', got {self.resolution!r}")
        if system.m == 2 and not system.linear:
            return FuehrerLeimkuhler().shape(system)
        return ProjectedInvariants(projection="CT").shape(system)


# --- regularisations: a small parameter instead of an exact constraint (Wijckmans section 6.1.1) ----------------------


def _small(value, name: str) -> float:
    return check_finite(check_positive(value, name), name)


def _check_mechanical(system, name: str):
    if system.m != 2 or system.linear:
        raise InvalidProblemError(f"{name} is defined for mechanical systems")


@dataclass(frozen=True)
class Loetstedt(Formulation):
    r"""Loetstedt's penalty: stiff springs instead of constraints, :math:`M \ddot q = f - \varepsilon^{-1} G^T g`.

    The constraint is satisfied to :math:`O(\varepsilon)`, with fast oscillations unless the initial values are chosen
    suitably; velocity constraints become dampers.

    Parameters
    ----------
    epsilon : float
        Compliance of the springs.

    Examples
    --------
    >>> import daedal
    >>> model = daedal.library.planar_pendulum(gravity=9.81)
    >>> form = daedal.formulations.Loetstedt()
    >>> sol = daedal.solve(model.problem, (0.0, 1.0), model.initial, formulation=form)
    >>> print(sol.formulation, sol.q[:, -1].round(3))
    Loetstedt [-0.986 -0.165]
    """

    epsilon: float = 1e-6
    name = "loetstedt"
    ordinary = True
    stiff = True

    def shape(self, system) -> Shape:
        _check_mechanical(system, "Loetstedt's penalty")
        return Shape(level(0, 2), variant=PENALTY, compliance=_small(self.epsilon, "epsilon"))


@dataclass(frozen=True)
class Knorrenschild(Formulation):
    r"""Knorrenschild's regularisation (6.4), :math:`0 = g(q + (\varepsilon + \mu) \dot q + \mu \varepsilon \ddot q)`.

    Parameters
    ----------
    epsilon, mu : float
        The two small time constants.

    Examples
    --------
    >>> import daedal
    >>> model = daedal.library.planar_pendulum(gravity=9.81)
    >>> form = daedal.formulations.Knorrenschild()
    >>> sol = daedal.solve(model.problem, (0.0, 1.0), model.initial, formulation=form)
    >>> print(sol.formulation, sol.q[:, -1].round(3))
    Knorrenschild [-0.986 -0.165]
    """

    epsilon: float = 1e-3
    mu: float = 1e-3
    name = "knorrenschild"

    def shape(self, system) -> Shape:
        return _regularised(self, KNORRENSCHILD, system)


@dataclass(frozen=True)
class Hanke(Formulation):
    r"""Hanke's regularisation (6.5), :math:`\dot q = v + \mu \dot v`, :math:`0 = g(q + \varepsilon \dot q + \mu
    \varepsilon \dot v)`.

    Parameters
    ----------
    epsilon, mu : float
        The two small time constants.

    Examples
    --------
    >>> import daedal
    >>> model = daedal.library.planar_pendulum(gravity=9.81)
    >>> form = daedal.formulations.Hanke()
    >>> sol = daedal.solve(model.problem, (0.0, 1.0), model.initial, formulation=form)
    >>> print(sol.formulation, sol.q[:, -1].round(3))
    Hanke [-0.984 -0.18 ]
    """

    epsilon: float = 1e-3
    mu: float = 1e-3
    name = "hanke"

    def shape(self, system) -> Shape:
        return _regularised(self, HANKE, system)


def _regularised(form, variant: int, system) -> Shape:
    _check_mechanical(system, type(form).__name__)
    epsilon, mu = _small(form.epsilon, "epsilon"), check_finite(form.mu, "mu")
    if mu < 0.0:
        raise InvalidProblemError(f"mu must not be negative, got {mu:g}")
    # For steps much longer than epsilon and mu, these forms behave like the index-3 form.
    return Shape(level(0, 2), n_top=system.n_c, variant=variant, small_times=(epsilon, mu), classes=(1, 2, 3))


# --- projection: the underlying ODE, with every step projected onto the constraints -----------------------------------


def _is_integer(value) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


@dataclass(frozen=True)
class CoordinateProjection(Formulation):
    r"""Integrate the underlying ODE and project after every step, Ascher and Petzold (4.16) to (4.20).

    The projected point is the nearest one in the norm of W: :math:`p = \tilde p - W^{-1} G^T (G W^{-1} G^T)^{-1} g`,
    followed by the same for the velocities. With backward Euler this is equivalent to projected invariants with
    :math:`D = W^{-1} G^T`.

    Parameters
    ----------
    weight : {"M", "I"} or matrix
        W: the mass matrix, the identity, or a given matrix.
    levels : int, optional
        1 projects positions only; by default positions and velocities.

    Examples
    --------
    >>> import daedal
    >>> model = daedal.library.planar_pendulum(gravity=9.81)
    >>> form = daedal.formulations.CoordinateProjection()
    >>> sol = daedal.solve(model.problem, (0.0, 1.0), model.initial, formulation=form)
    >>> print(sol.formulation, sol.q[:, -1].round(3))
    CoordinateProjection [-0.986 -0.165]
    """

    weight: Any = "M"
    levels: int | None = None
    name = "projection"
    ordinary = True

    def shape(self, system) -> Shape:
        levels = self.levels
        if levels is not None and (not _is_integer(levels) or levels not in range(1, system.m + 1)):
            raise InvalidProblemError(f"levels must be 1 to {system.m}, got {self.levels!r}")
        return Shape(level(system.m, system.m), top=ACCELERATION, steps=ProjectedSteps(self.weight, levels))


@dataclass(frozen=True)
class VelocityConstraints(Formulation):
    r"""The index-2 form for half-explicit methods, which enforce :math:`G v + g_t = 0` at every stage.

    Positions drift slowly and are projected occasionally.

    Parameters
    ----------
    weight : {"M", "I"} or matrix
        Norm of the projection.
    projection : {"drift", "always", "never"}
        When to project.
    rtol, atol : float
        With "drift": distances from the constraints up to atol + rtol max |q| are tolerated.
    """

    weight: Any = "M"
    projection: str = "drift"
    rtol: float = 5e-8
    atol: float = 5e-11
    name = "velocity_constraints"
    ordinary = True

    def shape(self, system) -> Shape:
        steps = None
        if self.projection != "never":
            watched = self.projection == "drift" and system.n_g
            steps = ProjectedSteps(self.weight, None, *((self.rtol, self.atol) if watched else ()))
        return Shape(level(system.m, system.m), top=ACCELERATION, steps=steps)
