"""Formulations in fewer unknowns: state space, minimal extension, the essential underlying ODE."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from math import comb
from typing import Any

import numpy as np

from daedal.errors import InvalidProblemError
from daedal.kernels.functions import NativeFunction, store_vector
from daedal.mechanics.formulations.dense_forms import refuse_singular_mass
from daedal.mechanics.formulations.formulation import ACCELERATION, MINIMAL_EXTENSION, Formulation, Shape, level
from daedal.mechanics.formulations.reformulation import Reformulation
from daedal.mechanics.setting import ConsistentStart
from daedal.problems import HessenbergDAE, ImplicitDAE
from daedal.problems.checks import check_callable, check_positive
from daedal.problems.coefficients import coefficient_at, derivatives_by_differences

_COORDINATES = ("lu", "qr", "svd", "essential")


@dataclass(frozen=True)
class StateSpace(Formulation):
    r"""Coordinate partitioning: an ordinary differential equation for :math:`\tilde u = \tilde R q`,
    :math:`\tilde w = \tilde R v` with constant :math:`\tilde R`, Ascher and Petzold (3.15) to (3.17), Wehage and Haug.

    The other coordinates follow from the constraints at every evaluation, so there is no drift. When :math:`[\tilde R;
    G]` becomes ill-conditioned, a new :math:`\tilde R` is chosen and the run continues with it.

    Parameters
    ----------
    coordinates : {"qr", "lu", "svd", "essential"} or matrix
        Choice of :math:`\tilde R`: an orthonormal basis of the kernel of G (by QR or SVD), a subset of the coordinates
        (LU with pivoting), rows with :math:`\tilde R B = 0` at the start of each chart, or a given matrix, which is
        never changed.
    restart : float
        A new chart is chosen when the condition number, which limits accuracy, has grown by this factor; 3 to 5 works
        well.

    Examples
    --------
    >>> import daedal
    >>> model = daedal.library.planar_pendulum(gravity=9.81)
    >>> form = daedal.formulations.StateSpace()
    >>> sol = daedal.solve(model.problem, (0.0, 1.0), model.initial, formulation=form)
    >>> print(sol.formulation, sol.q[:, -1].round(3))
    StateSpace [-0.986 -0.165]
    """

    coordinates: Any = "qr"
    restart: float = 4.0
    name = "state_space"
    ordinary = True

    def shape(self, system) -> Shape:
        restart = _checked_limit(self.restart) if isinstance(self.coordinates, str) else np.inf
        return Shape(level(system.m, system.m), top=ACCELERATION, restart=restart, charts=True)

    def dense(self, shape: Shape, assembly, start: ConsistentStart) -> Reformulation:
        """Charts, the first of which is centred at the start."""
        return ChartReduction(self, shape, assembly, start)

    def rows(self, assembly, start: ConsistentStart) -> tuple[np.ndarray, np.ndarray]:
        """R~ for the lower levels and for the highest one."""
        nx, n_c, n_g = assembly.nx, assembly.n_c, assembly.n_g
        if not isinstance(self.coordinates, str):
            matrix = np.atleast_2d(np.asarray(self.coordinates, dtype=float))
            if matrix.shape != (nx - n_c, nx) or n_g != n_c:
                raise InvalidProblemError(f"coordinates has shape {matrix.shape}; expected ({nx - n_c}, {nx})")
            return matrix, matrix
        if self.coordinates not in _COORDINATES:
            raise InvalidProblemError(
                f"unknown coordinates '{self.coordinates}'; known: {', '.join(_COORDINATES)}, or a matrix"
            )
        if self.coordinates == "essential":
            refuse_singular_mass(f"formulation={self.name!r}", "choose 'state_space'", assembly, start)
        values = assembly.evaluate(start.t, start.z, start.r, start.w, start.lam)
        if values is None:
            raise InvalidProblemError(f"the system cannot be evaluated at t = {start.t:g}")
        return (
            complement(values["jacobian"][:n_g], self.coordinates, values["mass"]),
            complement(values["jacobian"], self.coordinates, values["mass"]),
        )


def complement(jacobian: np.ndarray, kind: str, mass: np.ndarray) -> np.ndarray:
    """Rows that complete those of `jacobian` to a regular matrix."""
    from scipy.linalg import null_space, qr

    rows, n = jacobian.shape
    if rows == 0:
        return np.eye(n)
    if kind == "lu":
        columns = qr(jacobian, mode="r", pivoting=True)[1]
        return np.eye(n)[np.sort(columns[rows:])]
    if kind == "svd":
        return null_space(jacobian).T[: n - rows]
    basis = qr(jacobian.T)[0][:, rows:].T
    if kind == "essential":
        b = np.linalg.solve(mass, jacobian.T)
        return basis @ (np.eye(n) - b @ np.linalg.solve(jacobian @ b, jacobian))
    return basis


def tolerances_along(tangents: np.ndarray, given: np.ndarray) -> np.ndarray:
    """Tolerances of coordinates that move z along the columns of `tangents`, from those of z.

    1 / tolerance^2 is the mean of 1 / given^2, weighted with the squares of a column.
    """
    if not given.size or given.min() == given.max():
        return np.full(tangents.shape[1], given.max(initial=0.0))
    with np.errstate(divide="ignore"):
        inverse = np.where(tangents == 0.0, 0.0, tangents / given[:, None])
        return np.linalg.norm(tangents, axis=0) / np.linalg.norm(inverse, axis=0)


def _checked_limit(restart) -> float:
    limit = check_positive(restart, "restart")
    if limit <= 1.0:
        raise InvalidProblemError(f"restart must be greater than 1, got {limit:g}: every chart starts at 1")
    return limit


class ChartReduction(Reformulation):
    """The state-space form on one chart: y = (R~ z_1, ..., R~ z_m, r)."""

    def __init__(self, formulation: StateSpace, shape: Shape, assembly, start: ConsistentStart):
        m, nx, n_g, n_c = assembly.m, assembly.nx, assembly.n_g, assembly.n_c
        n = (m - 1) * (nx - n_g) + (nx - n_c) + assembly.n_r
        if n == 0:
            raise InvalidProblemError("the constraints leave no degree of freedom; there is nothing to integrate")
        self._coordinates = formulation
        super().__init__(formulation, shape, assembly, n, n)
        self.begin(start)
        if n_c:
            from daedal.mechanics.formulations.charts import chart_hook

            self._own_hook = chart_hook, self.record

    def make_record(self):
        """Create the CHART record."""
        from daedal.kernels.dense import dense_lu
        from daedal.kernels.records import Record
        from daedal.mechanics.formulations.charts import CHART

        assembly, nx = self.assembly, self.assembly.nx
        return Record.allocated(
            CHART,
            system=assembly.record,
            n=self.n,
            n_low=nx - assembly.n_g,
            n_top=nx - assembly.n_c,
            matrix=dense_lu(nx),
            limit=self.shape.restart,
        )

    @cached_property
    def problem(self) -> ImplicitDAE:
        """y' - rate(t, y) = 0."""
        from daedal.mechanics.formulations.charts import chart_residual

        return ImplicitDAE(self.native(chart_residual), self.n)

    @cached_property
    def rate(self) -> NativeFunction:
        """Function that computes y' at (t, y)."""
        from daedal.mechanics.formulations.charts import chart_rate

        return self.native(chart_rate)

    def choose(self, start: ConsistentStart) -> None:
        """Choose a chart centred at the start."""
        self._rows = self._coordinates.rows(self.assembly, start)

    def write(self, record) -> None:
        """Write the rows of the chart, and its first point."""
        for name, rows in zip(("low_rows", "top_rows"), self._rows, strict=True):
            record.array(name)[:] = rows
        for name in ("condition", "low_sign", "sign"):
            record[name] = 0
        self._keep(record, self.unknowns(self.start)[0])

    def _keep(self, record, y: np.ndarray) -> None:
        """Use the start as the first point of Newton's method."""
        record.array("z")[:], record.array("y")[:] = self.start.z, y
        record["t"] = self.start.t

    def unknowns(self, start: ConsistentStart) -> tuple[np.ndarray, np.ndarray]:
        """Chart coordinates of a start, and their derivatives."""
        m, nx, (low, top) = self.assembly.m, self.assembly.nx, self._rows
        z, slope, rows = start.z.reshape(m, nx), start.slope.reshape(m, nx), [low] * (m - 1) + [top]
        y = np.concatenate([*[rows[j] @ z[j] for j in range(m)], start.r])
        return y, np.concatenate([*[rows[j] @ slope[j] for j in range(m)], start.rate])

    def tolerances(self, rtol: np.ndarray, atol: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Tolerances of the coordinates, level by level, and of r."""
        start, (m, nx) = self.start, (self.assembly.m, self.assembly.nx)
        K = self.assembly.evaluate(start.t, start.z, start.r, start.w, start.lam)["jacobian"]
        tangents = [np.linalg.inv(np.vstack([rows, K[: nx - len(rows)]]))[:, : len(rows)] for rows in self._rows]

        def along(given: np.ndarray) -> np.ndarray:
            levels = [tolerances_along(tangents[j == m - 1], given[j * nx : (j + 1) * nx]) for j in range(m)]
            return np.concatenate([*levels, given[m * nx :]])

        return along(rtol), along(atol)

    def recover(self, times: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Map back to (z, r), starting from the last known point or, if nearer, the start of the chart."""
        from daedal.mechanics.formulations.charts import recover_points

        assembly = self.assembly
        states = np.empty((times.size, assembly.n_state))
        statuses = np.zeros(times.size, dtype=np.int64)
        if times.size and abs(times[0] - self.start.t) < abs(times[0] - float(self.record["t"])):
            self._keep(self.record, self.y0)
        memory = np.empty(2 * int(self.record["n"]) + assembly.m * assembly.nx)
        rows = np.ascontiguousarray(y.T)
        recover_points(self.record.address, assembly.record.address, times, rows, states, statuses, memory)
        assembly.bridge.raise_pending()
        return states


@dataclass(frozen=True)
class MinimalExtension(Formulation):
    r"""The strangeness-free form of index 1 by minimal extension, Wunderlich (7.13).

    With :math:`G \Pi = [G_1\; G_2]`, :math:`G_2` regular, the derivatives of the dependent coordinates :math:`p_2` and
    velocities become algebraic unknowns, and all three levels of the constraints are equations. When :math:`G_2`
    becomes nearly singular, new dependent coordinates are chosen.

    Parameters
    ----------
    restart : float
        New dependent coordinates are chosen when an entry of :math:`G_2^{-1} G_1` exceeds this.

    Examples
    --------
    >>> import daedal
    >>> model = daedal.library.planar_pendulum(gravity=9.81)
    >>> form = daedal.formulations.MinimalExtension()
    >>> sol = daedal.solve(model.problem, (0.0, 1.0), model.initial, formulation=form)
    >>> print(sol.formulation, sol.q[:, -1].round(3))
    MinimalExtension [-0.986 -0.165]
    """

    restart: float = 10.0
    name = "minimal_extension"

    def shape(self, system) -> Shape:
        if system.m != 2 or system.linear:
            raise InvalidProblemError("the minimal extension is defined for mechanical systems")
        restart = _checked_limit(self.restart) if system.n_c else self.restart
        return Shape(level(1, 2), n_top=system.n_c, variant=MINIMAL_EXTENSION, restart=restart)


# --- the essential underlying ODE: R B = 0 eliminates the multipliers from the equations for u = R x ------------------

_LARGEST_RB = 1e-8


@dataclass(frozen=True)
class EssentialODE(Formulation):
    r"""The essential underlying ODE in :math:`w_j = R\, x^{(j-1)}` with :math:`R B = 0`, Ascher and Petzold (2.19) to
    (2.21):

    .. math::

        w_j' = R z_{j+1} + R' z_j, \qquad w_m' = \sum_j R A_j z_j + R' z_m + R q, \qquad
        z_j = S w_j - F \Bigl( r^{(j-1)} + \sum_{l<j} \tbinom{j-1}{l-1} C^{(j-l)} z_l \Bigr),

    where :math:`(S\; F)` is the inverse of :math:`\binom{R}{C}`. It has as many equations as degrees of freedom, no
    drift, and needs one differentiation of the constraints fewer than other ODE forms.

    Parameters
    ----------
    R, R_derivative : callable, optional
        For a :class:`HessenbergDAE`: ``R(t)``, shape (n_x - n_y, n_x), smooth and with :math:`R B = 0`, and its
        derivative (by differences if it is not given). Without `R`, :math:`R = Q (I - B (C B)^{-1} C)` is used with
        the rows Q of an orthonormal basis of ker C at the start of a chart; R' then needs B', formed by differences.
    restart : float
        A new chart is chosen when the condition number of :math:`\binom{Q}{C}` has grown by this factor.

    Notes
    -----
    How well it can be integrated depends on R: the :math:`w_j` may vary much faster than x. For a nonlinear mechanism
    R changes with the state; it is then constant on each chart, with :math:`R B = 0` at its start.

    Examples
    --------
    >>> import daedal
    >>> model = daedal.library.stability_example2(nu=10.0)
    >>> form = daedal.formulations.EssentialODE(R=model.extra["R"], R_derivative=model.extra["R_derivative"])
    >>> sol = daedal.solve(model.problem, model.t_span, model.initial, formulation=form, method="dopri5")
    >>> print(f"{sol.y[0, -1]:.5f}")
    2.71828
    """

    R: Callable[..., Any] | None = None
    R_derivative: Callable[..., Any] | None = None
    restart: float = 4.0
    name = "essential"
    ordinary = True

    def shape(self, system) -> Shape:
        if not system.linear:
            if self.R is not None:
                raise InvalidProblemError("R is for linear problems (HessenbergDAE); that of a mechanism is computed")
            return StateSpace("essential", self.restart).shape(system)
        restart = check_positive(self.restart, "restart")
        return Shape(level(system.m, system.m), top=ACCELERATION, restart=restart, charts=True)

    def dense(self, shape: Shape, assembly, start: ConsistentStart) -> Reformulation:
        """A linear ODE, or charts with R B = 0 at their start."""
        if not assembly.linear:
            return StateSpace("essential", self.restart).dense(shape, assembly, start)
        return LinearReduction(self, shape, assembly, start)

    def basis(self, problem: HessenbergDAE, t0: float) -> _GivenBasis | _ComputedBasis:
        """R and R' from t0 onwards."""
        if self.R is None:
            return _ComputedBasis(problem, t0, self.restart)
        return _GivenBasis(problem, t0, self.R, self.R_derivative)


class _ChartCoefficients:
    """The coefficients of a Hessenberg DAE at one time, by name."""

    def __init__(self, problem: HessenbergDAE, t: float):
        m, nx, ny = problem.order, problem.n_x, problem.n_y
        shapes = {"A": (m, nx, nx), "B": (nx, ny), "q": (nx,), "C": (m + 1, ny, nx), "r": (m + 1, ny)}
        values, begin = problem.coefficients(t), 0
        for name, shape in shapes.items():
            size = int(np.prod(shape))
            setattr(self, name, values[begin : begin + size].reshape(shape))
            begin += size

    A: np.ndarray
    B: np.ndarray
    q: np.ndarray
    C: np.ndarray
    r: np.ndarray


class _GivenBasis:
    """R and R' given by the user."""

    def __init__(self, problem: HessenbergDAE, t0: float, R, R_derivative):
        check_callable(R, "R")
        if R_derivative is not None:
            check_callable(R_derivative, "R_derivative")
        self._shape = (problem.n_x - problem.n_y, problem.n_x)
        self._R, self._R_derivative = R, R_derivative
        b, rows = _ChartCoefficients(problem, t0).B, self.rows(t0)
        product = np.max(np.abs(rows @ b))
        if product > _LARGEST_RB * np.max(np.abs(rows)) * np.max(np.abs(b)):
            raise InvalidProblemError(f"R B must vanish, but its largest entry at t = {t0:g} is {product:.3g}")

    def rows(self, t: float) -> np.ndarray:
        return self._checked("R", self._R(t))

    def at(self, t: float, c: _ChartCoefficients) -> tuple[np.ndarray, np.ndarray]:
        """R and R'."""
        if self._R_derivative is not None:
            return self.rows(t), self._checked("R_derivative", self._R_derivative(t))
        return self.rows(t), derivatives_by_differences(self.rows, t, 1)[0]

    def condition(self, t: float) -> float:
        return 1.0

    def _checked(self, name: str, value) -> np.ndarray:
        matrix = np.atleast_2d(np.asarray(value, dtype=float))
        if matrix.shape != self._shape:
            raise InvalidProblemError(f"{name} has shape {matrix.shape}; expected {self._shape}")
        return matrix

    limit = np.inf


class _ComputedBasis:
    r"""R = Q H with constant rows Q, H = I - F C, F = B (C B)^{-1}.

    With N, the first columns of the inverse of (Q; C), R N = I and C N = 0, so that
    R' = -(Q F C' N) R - R B' (C B)^{-1} C.
    """

    def __init__(self, problem: HessenbergDAE, t0: float, limit: float):
        self._problem = problem
        self._b = lambda t: coefficient_at("B", problem.B, t, (problem.n_x, problem.n_y))
        c = _ChartCoefficients(problem, t0)
        self._q = complement(c.C[0], "qr", np.eye(problem.n_x))
        self.limit = limit * max(self.condition(t0), 1.0)

    def at(self, t: float, c: _ChartCoefficients) -> tuple[np.ndarray, np.ndarray]:
        """R and R'."""
        q, b = self._q, c.B
        cb_inverse = np.linalg.inv(c.C[0] @ b)
        qf = q @ b @ cb_inverse
        n = np.linalg.inv(np.vstack([q, c.C[0]]))[:, : q.shape[0]]
        rows = q - qf @ c.C[0]
        b_rate = derivatives_by_differences(self._b, t, 1)[0]
        return rows, -(qf @ c.C[1] @ n) @ rows - rows @ b_rate @ cb_inverse @ c.C[0]

    def condition(self, t: float) -> float:
        """Condition number of (Q; C) with the rows of C normalised."""
        rows = coefficient_at("C", self._problem.C, t, (self._problem.n_y, self._problem.n_x))
        scaled = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-300)
        return float(np.linalg.cond(np.vstack([self._q, scaled])))


def _affine_map(problem: HessenbergDAE, c: _ChartCoefficients, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Z and zeta with z = Z w + zeta, (2.21), of shapes (m, n_x, m n_u) and (m, n_x)."""
    m, nx, nu = problem.order, problem.n_x, rows.shape[0]
    inverse = np.linalg.inv(np.vstack([rows, c.C[0]]))
    s, f = inverse[:, :nu], inverse[:, nu:]
    z, zeta = np.zeros((m, nx, m * nu)), np.zeros((m, nx))
    for j in range(m):
        z[j, :, j * nu : (j + 1) * nu] = s
        residual = c.r[j].copy()
        for i in range(j):
            z[j] -= comb(j, i) * f @ c.C[j - i] @ z[i]
            residual += comb(j, i) * c.C[j - i] @ zeta[i]
        zeta[j] = -f @ residual
    return z, zeta


class LinearReduction(Reformulation):
    """The formulation w' = K(t) w + k(t) of (2.20), with K and k computed from the coefficients of the problem."""

    def __init__(self, formulation: EssentialODE, shape: Shape, assembly, start: ConsistentStart):
        if assembly.nx == assembly.n_c:
            raise InvalidProblemError("the constraints leave no degree of freedom; there is nothing to integrate")
        from daedal.mechanics.formulations.charts import linear_hook

        self._problem: HessenbergDAE = assembly.given
        self._essential = formulation
        n = assembly.m * (assembly.nx - assembly.n_c)
        super().__init__(formulation, shape, assembly, n, n)
        self.begin(start)
        self._own_hook = linear_hook, self.record

    def make_record(self):
        """Create the LINEAR_ODE record."""
        from daedal.kernels.records import Record
        from daedal.mechanics.formulations.charts import LINEAR_ODE

        n, function = self.n, self.assembly.bridge.function
        size = n * n + n
        coefficients = function(lambda t, w: self._coefficients(t), (1,), (size,), store_vector("coefficients", size))
        condition = function(lambda t, w: [self._basis.condition(t)], (1,), (1,), store_vector("condition", 1))
        system = self.assembly.record
        return Record(LINEAR_ODE, n=n, system=system, coefficients=coefficients, condition=condition)

    @cached_property
    def problem(self) -> ImplicitDAE:
        """w' - K w - k = 0."""
        from daedal.mechanics.formulations.charts import linear_residual

        return ImplicitDAE(self.native(linear_residual), self.n, names=self.names)

    @cached_property
    def rate(self) -> NativeFunction:
        """Function that computes w' at (t, w)."""
        from daedal.mechanics.formulations.charts import linear_rate

        return self.native(linear_rate)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of w."""
        m = self._problem.order
        return tuple(f"w{j + 1}[{i}]" for j in range(m) for i in range(self.n // m))

    def choose(self, start: ConsistentStart) -> None:
        """Choose R from the start onwards."""
        self._basis = self._essential.basis(self._problem, start.t)

    def write(self, record) -> None:
        """Write the condition number at which a new chart is needed."""
        record["limit"] = self._basis.limit

    def unknowns(self, start: ConsistentStart) -> tuple[np.ndarray, np.ndarray]:
        """w and w' at a start."""
        n, problem = self.n, self._problem
        rows = self._basis.at(start.t, _ChartCoefficients(problem, start.t))[0]
        w = (start.z.reshape(problem.order, problem.n_x) @ rows.T).ravel()
        values = self._coefficients(start.t)
        return w, values[: n * n].reshape(n, n) @ w + values[n * n :]

    def _coefficients(self, t: float) -> np.ndarray:
        """K by rows, then k."""
        m, n = self._problem.order, self.n
        nu = n // m
        c = _ChartCoefficients(self._problem, t)
        rows, rows_rate = self._basis.at(t, c)
        z, zeta = _affine_map(self._problem, c, rows)
        matrix, vector = np.zeros((n, n)), np.zeros(n)
        for j in range(m):
            here = slice(j * nu, (j + 1) * nu)
            matrix[here], vector[here] = rows_rate @ z[j], rows_rate @ zeta[j]
            if j < m - 1:
                matrix[here, (j + 1) * nu : (j + 2) * nu] += np.eye(nu)
        last = slice((m - 1) * nu, n)
        matrix[last] += rows @ np.einsum("jab,jbc->ac", c.A, z)
        vector[last] += rows @ (np.einsum("jab,jb->a", c.A, zeta) + c.q)
        return np.concatenate([matrix.ravel(), vector])

    pack = None

    def tolerances(self, rtol: np.ndarray, atol: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Tolerances of w, level by level."""
        problem, t = self._problem, self.start.t
        c = _ChartCoefficients(problem, t)
        rows = self._basis.at(t, c)[0]
        tangents = np.linalg.inv(np.vstack([rows, c.C[0]]))[:, : len(rows)]

        def along(given: np.ndarray) -> np.ndarray:
            levels = given.reshape(problem.order, problem.n_x)
            return np.concatenate([tolerances_along(tangents, one) for one in levels])

        return along(rtol), along(atol)

    def recover(self, times: np.ndarray, w: np.ndarray) -> np.ndarray:
        """z from w."""
        states = np.empty((times.size, self._problem.n))
        for k, t in enumerate(times):
            c = _ChartCoefficients(self._problem, float(t))
            z, zeta = _affine_map(self._problem, c, self._basis.at(float(t), c)[0])
            states[k] = (z @ w[:, k] + zeta).ravel()
        return states
