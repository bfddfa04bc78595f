"""General linear methods for DAEs with constant steps: multistage methods that pass several values between steps.

L. Wunderlich, Numerical Solution of Second Order Differential-Algebraic Equations, diploma thesis, TU Berlin (2005),
appendix A; E. Hairer, G. Wanner, Solving Ordinary Differential Equations II, section V.3 (multistep collocation).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from daedal.common.tabular import plural
from daedal.errors import IntegrationError, InvalidProblemError
from daedal.methods.multistep.multistep_formula import MultistepFormula
from daedal.methods.tableau import RungeKuttaTableau
from daedal.problems import ImplicitDAE, SemiExplicitDAE
from daedal.problems.checks import check_finite, check_size

_EXACT = 1e-10  # relative residual below which an order condition is satisfied
_ITERATIONS = 15
_INCREMENT = 2.0**-26
_MOST = 12  # highest order that is checked


@dataclass(frozen=True, eq=False)
class GeneralLinearMethod:
    r"""A general linear method with k values and s stages (thesis, (A.1)).

    .. math::

        Y_i = \sum_j \tilde a_{ij}\, y_{n,j} + h \sum_j \tilde b_{ij} K_j, \qquad
        y_{n+1,i} = \sum_j a_{ij}\, y_{n,j} + h \sum_j b_{ij} K_j, \qquad F(t_n + c_i h, Y_i, K_i) = 0,

    where :math:`y_{n,j}` approximates :math:`y(t_n + d_j h)`.

    Parameters
    ----------
    A, B : array (k, k) and (k, s)
        Coefficients of the new values.
    A_stages, B_stages : array (s, k) and (s, s)
        Coefficients of the stages, :math:`\tilde a` and :math:`\tilde b`.
    c : array (s,)
        Nodes of the stages, relative to the step size.
    d : array (k,)
        Times of the carried values, relative to the step size; the first is 0, the end of the previous step.
    name : str
        Name of the method.

    Examples
    --------
    >>> import daedal
    >>> method = daedal.studies.GeneralLinearMethod.collocation([1 / 3, 1.0], steps=2)
    >>> method.order, method.stage_order, method.stiffly_accurate, method.zero_stable
    (3, 3, True, True)
    """

    A: Any
    B: Any
    A_stages: Any
    B_stages: Any
    c: Any
    d: Any = (0.0,)
    name: str = "general linear method"

    def __post_init__(self):
        d, c = (np.atleast_1d(np.asarray(x, dtype=float)) for x in (self.d, self.c))
        k, s = d.size, c.size
        shapes = {"A": (k, k), "B": (k, s), "A_stages": (s, k), "B_stages": (s, s)}
        for name, shape in shapes.items():
            matrix = np.asarray(getattr(self, name), dtype=float)
            if matrix.shape != shape or not np.isfinite(matrix).all():
                raise InvalidProblemError(
                    f"{name} must be finite and have the shape {shape} for {k} values d and {s} stages c, "
                    f"got {matrix.shape}"
                )
            object.__setattr__(self, name, matrix)
        if d[0] != 0.0:
            raise InvalidProblemError(f"d must start with 0, the end of the previous step, got {d[0]:g}")
        object.__setattr__(self, "c", c)
        object.__setattr__(self, "d", d)

    # --- other methods in this form

    @classmethod
    def from_runge_kutta(cls, tableau: RungeKuttaTableau) -> GeneralLinearMethod:
        """Convert a Runge-Kutta method: one value, A = 1."""
        given = tableau.floats()
        s = given["b"].size
        return cls([[1.0]], [given["b"]], np.ones((s, 1)), given["a"], given["c"], name=tableau.name)

    @classmethod
    def from_multistep(cls, formula: MultistepFormula) -> GeneralLinearMethod:
        r"""Convert a linear multistep method (thesis, A.2): k values, and a stage for each evaluation of f.

        BDF has one stage. For other methods :math:`\tilde b` is singular, which is unsuitable for DAEs.
        """
        given, k = formula.floats(), formula.k
        alpha, beta = -given["rho"][1:] / given["rho"][0], given["sigma"] / given["rho"][0]
        s = k + 1 if np.any(beta[1:]) else 1
        A, B = np.eye(k, k=-1), np.zeros((k, s))
        A[0], B[0] = alpha, beta[:s]
        A_stages, B_stages = np.vstack([alpha, np.eye(k)])[:s], np.vstack([beta[:s], np.zeros((k, s))])[:s]
        return cls(A, B, A_stages, B_stages, 1.0 - np.arange(s), -np.arange(k), name=formula.name)

    @classmethod
    def collocation(cls, c: Sequence[float], steps: int = 1) -> GeneralLinearMethod:
        """Multistep collocation: the polynomial through the last `steps` values that satisfies the equations at c.

        The stage order is ``len(c) + steps - 1``; the method is stiffly accurate if the last c is 1. With ``steps=1``
        these are the collocation Runge-Kutta methods.
        """
        nodes, k = np.asarray(c, dtype=float), check_size(steps, "steps")
        if nodes.ndim != 1 or np.unique(nodes).size != nodes.size or not np.isfinite(nodes).all():
            raise InvalidProblemError(f"c={c!r} must contain distinct finite numbers")
        degree = nodes.size + k
        d = -np.arange(k, dtype=float)
        powers = np.arange(degree)
        conditions = np.vstack([d[:, None] ** powers, powers * nodes[:, None] ** np.maximum(powers - 1, 0)])
        ends = np.r_[nodes, 1.0, d[:-1]][:, None] ** powers  # stages, then the new values
        weights = np.linalg.solve(conditions.T, ends.T).T
        s = nodes.size
        return cls(
            weights[s:, :k], weights[s:, k:], weights[:s, :k], weights[:s, k:], nodes, d, f"{k}-step collocation"
        )

    # --- properties of the coefficients -------------------------------------------------------------------------------

    def _degree(self, points, values, slopes) -> int:
        """Largest m up to which all powers x^m at `points` follow exactly from values at d and slopes at c."""
        for m in range(1, _MOST + 1):
            exact = values @ self.d**m + m * (slopes @ self.c ** (m - 1))
            if np.abs(exact - points**m).max() > _EXACT * max(1.0, np.abs(points**m).max()):
                return m - 1
        return _MOST

    @property
    def order(self) -> int:
        """p: largest degree of polynomials continued exactly; the order if the stage order is at least p - 1."""
        return self._degree(self.d + 1.0, self.A, self.B)

    @property
    def stage_order(self) -> int:
        """q: largest degree of polynomials reproduced exactly by the stages."""
        return self._degree(self.c, self.A_stages, self.B_stages)

    def stability_matrix(self, z: complex) -> np.ndarray:
        r"""M(z) = A + z B (I - z B~)^{-1} A~ of a step for y' = lambda y, z = h lambda; z may be infinite."""
        if np.isinf(z):
            return self.A - self.B @ np.linalg.solve(self.B_stages, self.A_stages)
        return self.A + z * self.B @ np.linalg.solve(np.eye(self.c.size) - z * self.B_stages, self.A_stages)

    @property
    def zero_stable(self) -> bool:
        """Whether the eigenvalues of A lie in the unit disc, and those on its boundary are simple."""
        return _bounded_powers(self.A)

    @property
    def regular(self) -> bool:
        """Whether the matrix B_stages is nonsingular, as DAEs require."""
        return bool(np.linalg.cond(self.B_stages) < 1e12)

    @property
    def strictly_stable_at_infinity(self) -> bool:
        """Whether the spectral radius of M(infinity) is less than 1."""
        return self.regular and bool(np.abs(np.linalg.eigvals(self.stability_matrix(np.inf))).max() < 1.0 - 1e-9)

    @property
    def stiffly_accurate(self) -> bool:
        """Whether every new value is a stage or a carried value."""
        stages = np.hstack([self.A_stages, self.B_stages])
        carried = np.hstack([np.eye(self.d.size), np.zeros((self.d.size, self.c.size))])
        known = np.vstack([stages, carried])
        return all(np.abs(known - row).max(axis=1).min() < _EXACT for row in np.hstack([self.A, self.B]))

    def predicted(self, index: int) -> tuple[int, ...] | None:
        """Orders of the variables of a DAE in Hessenberg form, from y to the multiplier; None if unknown.

        Theorems A.0.8 (index 1), A.0.10 (index 2) and A.0.11 (index 3) of the thesis.
        """
        p, q = self.order, self.stage_order
        if not (self.regular and self.zero_stable):
            return None
        if index == 1:
            return (p, p) if self.stiffly_accurate else self._index_1_not_stiffly_accurate()
        if index == 2 and self.stiffly_accurate and p >= 2 and q >= 1 and self.strictly_stable_at_infinity:
            return min(p, q + 1), min(p, q)  # the slopes of stages, and hence z, have an error of h^q
        if index == 3 and q >= 3 and p >= q and self.strictly_stable_at_infinity:
            return q, q, q - 1
        return None

    def _index_1_not_stiffly_accurate(self) -> tuple[int, int] | None:
        p, q, matrix = self.order, self.stage_order, self.stability_matrix(np.inf)
        if not _bounded_powers(matrix):
            return None
        one = np.abs(np.linalg.eigvals(matrix) - 1.0).min() < 1e-9
        return p, min(p - 1, q) if one else min(p, q + 1)

    def second_order(self) -> dict[str, np.ndarray]:
        """Coefficients (A.16) for y'' = f(t, y, y'): the method for (y, y'), with the slopes of y eliminated.

        The keys ``a, b, d`` and ``e, f`` belong to the new y and y', ``a_stages`` to ``f_stages`` to the stages.
        """
        A, B, U, C = self.A, self.B, self.A_stages, self.B_stages
        new = {"a": A, "b": B @ U, "d": B @ C, "e": A, "f": B}
        stages = {"a_stages": U, "b_stages": C @ U, "d_stages": C @ C, "e_stages": U, "f_stages": C}
        return new | stages


def _bounded_powers(matrix: np.ndarray) -> bool:
    values = np.linalg.eigvals(matrix)
    on_circle = values[np.abs(np.abs(values) - 1.0) <= 1e-7]
    simple = all(np.sum(np.abs(on_circle - value) < 1e-5) == 1 for value in on_circle)
    return bool(np.abs(values).max() <= 1.0 + 1e-7) and simple


# --- a run with constant steps


@dataclass(frozen=True)
class GeneralLinearResult:
    """Result of :func:`general_linear`: times t, and y with shape (n, steps + 1).

    Examples
    --------
    >>> import daedal
    >>> problem = daedal.ODE(lambda t, y: [-y[0]], 1)
    >>> method = daedal.studies.GeneralLinearMethod.from_runge_kutta(daedal.methods.coefficients("radau5"))
    >>> run = daedal.studies.general_linear(problem, method, (0.0, 1.0), 10, lambda t: [1.0])
    >>> print(run.t[-1], run.y[0, -1].round(6))
    1.0 0.367879
    """

    t: np.ndarray
    y: np.ndarray


def general_linear(
    problem: Any, method: GeneralLinearMethod, t_span: tuple[float, float], steps: int, start: Any
) -> GeneralLinearResult:
    """Solve F(t, y, y') = 0 by a general linear method with constant steps, for comparison with theory.

    Parameters
    ----------
    problem : ImplicitDAE or SemiExplicitDAE
        The problem.
    method : GeneralLinearMethod
        The method.
    t_span : (float, float)
        Start and end of the run.
    steps : int
        Number of steps of equal size.
    start : callable
        ``start(t)`` returns y(t), at the start and, for methods that carry several values, at earlier times.

    Examples
    --------
    Three steps of BDF, order 3, on a problem of index 2:

    >>> import numpy as np
    >>> import daedal
    >>> problem = daedal.ImplicitDAE(lambda t, y, yp: [yp[0] - y[1], y[0] - np.sin(t)], 2)
    >>> method = daedal.studies.GeneralLinearMethod.from_multistep(daedal.methods.coefficients("bdf3"))
    >>> for steps in (20, 40):
    ...     run = daedal.studies.general_linear(problem, method, (0.0, 1.0), steps, lambda t: [np.sin(t), np.cos(t)])
    ...     print(f"{abs(run.y[1, -1] - np.cos(1.0)):.1e}")
    2.5e-05
    3.2e-06
    """
    if not isinstance(problem, (ImplicitDAE, SemiExplicitDAE)):
        raise InvalidProblemError(
            f"general_linear supports ImplicitDAE and SemiExplicitDAE, not {type(problem).__name__}"
        )
    implicit, steps = problem.implicit(), check_size(steps, "steps")
    t0, t1 = (check_finite(t, "t_span") for t in t_span)
    h = (t1 - t0) / steps
    values = np.array([np.asarray(start(t0 + d * h), dtype=float) for d in method.d])
    if values.shape != (method.d.size, implicit.n):
        raise InvalidProblemError(
            f"start(t) must return {plural(implicit.n, 'number')}, got an array of shape {values.shape[1:]}"
        )
    t, y = t0 + h * np.arange(steps + 1), np.empty((implicit.n, steps + 1))
    y[:, 0] = values[0]
    slopes = np.zeros((method.c.size, implicit.n))
    for i in range(steps):
        found = _stage_slopes(implicit, method, t[i], h, values, slopes)
        if found is None:
            message = f"Newton's method for the stages failed in the step from t = {t[i]:g}"
            raise IntegrationError(message, GeneralLinearResult(t[: i + 1], y[:, : i + 1]))  # type: ignore[arg-type]
        slopes = found
        values = method.A @ values + h * method.B @ slopes
        y[:, i + 1] = values[0]
    return GeneralLinearResult(t, y)


def _stage_slopes(problem: ImplicitDAE, method: GeneralLinearMethod, t, h, values, slopes) -> np.ndarray | None:
    """Solve for the slopes of all stages by Newton's method with difference quotients; None if it fails."""
    s, n = slopes.shape
    base, C = method.A_stages @ values, method.B_stages

    def residual(k: np.ndarray) -> np.ndarray:
        Y = base + h * C @ k
        return np.concatenate([problem.evaluate(t + c * h, Y[i], k[i]) for i, c in enumerate(method.c)])

    k, last = slopes.copy(), np.inf
    for _ in range(_ITERATIONS):
        r = residual(k)
        increments = _INCREMENT * np.maximum(1.0, np.abs(k).ravel())
        columns = []
        for j, increment in enumerate(increments):
            moved = k.copy()
            moved.flat[j] += increment
            columns.append((residual(moved) - r) / (moved.flat[j] - k.flat[j]))
        try:
            correction = np.linalg.solve(np.array(columns).T, r)
        except np.linalg.LinAlgError:
            return None
        k = k - correction.reshape(s, n)
        size = np.abs(correction).max() / max(1.0, np.abs(k).max())
        if not np.isfinite(size):
            return None
        if size < 1e-14 or (size < 1e-6 and size >= 0.3 * last):
            return k
        last = size
    return None
