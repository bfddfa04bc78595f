"""Methods on given grids: Sand's modified implicit Euler method, and multipliers after step size changes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from daedal.common.public_names import with_old_keywords
from daedal.errors import IntegrationError, InvalidProblemError
from daedal.problems.checks import check_callable, check_real, check_size
from daedal.problems.mechanical import MechanicalSystem

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


_ITERATIONS = 20
_STEP = 2.0**-26


@dataclass(frozen=True)
class ModifiedEulerResult:
    """Result of :func:`modified_euler`: y[j] is the j-th derivative, shape (d, n, nt); lam of shape (n_lam, nt).

    Examples
    --------
    >>> import numpy as np
    >>> import daedal
    >>> run = daedal.studies.modified_euler(
    ...     lambda t, y, lam: [-9.81 - lam[0]], lambda t, y: [y[0, 0]], np.linspace(0.0, 1.0, 11), [[0.0], [0.0]], 1
    ... )
    >>> print(run.t.size, run.lam[0, -1].round(6))
    11 -9.81
    """

    t: np.ndarray
    y: np.ndarray
    lam: np.ndarray


def modified_euler(
    f: Callable[..., Any], g: Callable[..., Any], times: ArrayLike, initial: Any, n_lambda: int
) -> ModifiedEulerResult:
    r"""Modified implicit Euler method of Sand for :math:`y^{(d)} = f(t, y, \dots, y^{(d-1)}, \lambda)`, :math:`0 = g`.

    .. math::

        \hat y_{j+1,n} = \frac{\hat y_{j,n} - \hat y_{j,n-1}}{(t_n - t_{n-1-j})/(j + 1)}, \quad j = 0 \dots d - 1,
        \qquad \hat y_{d,n} = f(t_n, \hat y_n, \lambda_n), \qquad 0 = g(t_n, \hat y_n),

    with :math:`t_m = t_0` for m < 0: the mean of the last j + 1 step sizes replaces the current one in implicit Euler.
    For constant steps both methods are identical. For constraints on y, which give index d + 1, the method converges
    with order 1 in all variables on every grid, whereas multipliers of implicit Euler have errors of O(1).

    Parameters
    ----------
    f : callable
        ``f(t, y, lam) -> array (n,)`` with y of shape (d, n), the derivatives 0 to d - 1.
    g : callable
        ``g(t, y) -> array (n_lambda,)``. Constraints on derivatives require constant steps: :math:`\hat y_j` is the
        value at a time between the last points.
    times : array
        The grid, strictly monotone.
    initial : array (d, n)
        Consistent y and its derivatives up to d - 1 at the first time.
    n_lambda : int
        Number of multipliers.

    References
    ----------
    J. Sand, Appl. Numer. Math. 42 (2002) 411-424; L. Wunderlich, diploma thesis, TU Berlin, 2005, Theorem 3.3.3.

    Examples
    --------
    A third derivative with a constraint, index 4; the multiplier is accurate after the first step:

    >>> import numpy as np
    >>> import daedal
    >>> run = daedal.studies.modified_euler(
    ...     lambda t, y, lam: lam, lambda t, y: y[0] - np.sin(t), [0.0, 0.01, 0.015, 0.03], [[0.0], [1.0], [0.0]], 1
    ... )
    >>> print(np.abs(run.lam[0, 1:] + np.cos(run.t[1:])).max() < 0.01)
    True
    """
    check_callable(f, "f")
    check_callable(g, "g")
    n_lambda = check_size(n_lambda, "n_lambda")
    t = check_real(times, "times", "contain increasing times").reshape(-1)
    start = check_real(initial, "initial", "have the shape (d, n)")
    if start.ndim != 2 or not np.all(np.isfinite(start)):
        raise InvalidProblemError(f"initial must be finite and have the shape (d, n), got shape {start.shape}")
    steps = np.diff(t)
    if t.size < 2 or not (np.all(steps > 0.0) or np.all(steps < 0.0)):
        raise InvalidProblemError("times must be at least two strictly monotone times")
    d, n = start.shape
    y, lam = np.zeros((d, n, t.size)), np.zeros((n_lambda, t.size))
    y[:, :, 0] = start
    for i in range(1, t.size):
        means = [(t[i] - t[max(i - 1 - j, 0)]) / (j + 1) for j in range(d)]
        y[:, :, i], lam[:, i] = _step(f, g, t[i], np.array(means), y[:, :, i - 1], lam[:, i - 1])
        if not np.all(np.isfinite(y[:, :, i])):
            partial = ModifiedEulerResult(t[:i], y[:, :, :i], lam[:, :i])
            message = f"Newton's method failed in the step to t = {t[i]:g}"
            raise IntegrationError(message, partial)  # type: ignore[arg-type]
    lam[:, 0] = np.nan
    return ModifiedEulerResult(t, y, lam)


def _derivatives(change: np.ndarray, means: np.ndarray, past: np.ndarray) -> np.ndarray:
    """Derivatives 0 to d for a change of y since the last point."""
    d, n = past.shape
    result = np.zeros((d + 1, n))
    result[0] = past[0] + change
    result[1] = change / means[0]
    for j in range(1, d):
        result[j + 1] = (result[j] - past[j]) / means[j]
    return result


def _step(f, g, t: float, means: np.ndarray, past: np.ndarray, lam: np.ndarray):
    """Solve for the changes of y and lam by Newton's method; constraints are weighted like the highest derivative."""
    n, weight = past.shape[1], 1.0 / float(np.prod(means))

    def equations(unknowns: np.ndarray) -> np.ndarray:
        levels = _derivatives(unknowns[:n], means, past)
        return np.concatenate(
            [
                levels[-1] - np.asarray(f(t, levels[:-1], unknowns[n:]), dtype=float),
                weight * np.asarray(g(t, levels[:-1]), dtype=float).reshape(-1),
            ]
        )

    unknowns = np.concatenate([means[0] * past[1] if past.shape[0] > 1 else np.zeros(n), lam])
    scale = np.concatenate([np.full(n, float(np.prod(means))), np.ones(lam.size)])
    before = np.inf
    for _ in range(_ITERATIONS):
        base = equations(unknowns)
        matrix = np.empty((base.size, unknowns.size))
        for i in range(unknowns.size):
            delta = np.zeros(unknowns.size)
            delta[i] = max(_STEP * abs(unknowns[i]), 1e-4 * abs(scale[i]))
            matrix[:, i] = (equations(unknowns + delta) - base) / delta[i] * scale[i]
        try:
            correction = scale * np.linalg.solve(matrix, base)
        except np.linalg.LinAlgError:
            break
        unknowns = unknowns - correction
        size = float(np.max(np.abs(correction / scale)))
        if size <= 1e-13 * max(1.0, float(np.max(np.abs(unknowns / scale)))) or size >= 0.5 * before:
            if size <= 1e-6 * max(1.0, float(np.max(np.abs(unknowns / scale)))):
                return _derivatives(unknowns[:n], means, past)[:-1], unknowns[n:]
        before = size
    return np.full_like(past, np.nan), lam


# --- multipliers of index 3 after a change of step size, corrected as by Arevalo and Loetstedt ------------------------


@with_old_keywords(system="problem")
def corrected_multipliers(
    problem: MechanicalSystem, t: ArrayLike, q: ArrayLike, v: ArrayLike, order: int = 1
) -> np.ndarray:
    r"""Compute multipliers from positions computed by BDF on any grid, with error :math:`O(h^k)`.

    BDF of order k on the index-3 form computes positions and velocities with errors :math:`O(h^k)` on every grid.
    However, BDF differentiates twice by the same formula: after a change of step size or order, the errors of
    velocities from different steps do not match, and the multipliers have errors of :math:`O(h^{k-1})`, :math:`O(1)`
    for k = 1. Arevalo and Loetstedt correct the multipliers after such a change. Here the acceleration is computed from
    positions alone, by the polynomial :math:`p_n` through the last k + 2 positions:

    .. math::

        a_n = \ddot p_n(t_n), \qquad G M^{-1} G^T \lambda_n = G M^{-1} (f(t_n, q_n, v_n) - M a_n).

    Parameters
    ----------
    problem : MechanicalSystem
        A system with position constraints.
    t : array (nt,)
        The grid, strictly monotone.
    q, v : array (n_q, nt)
        Positions and velocities.
    order : int
        The order k of BDF.

    Returns
    -------
    numpy.ndarray, shape (n_constraints, nt)
        Multipliers; ``nan`` at the start. Where fewer than k + 2 positions are available, the initial velocity is used.

    References
    ----------
    C. Arevalo, P. Loetstedt, Improving the accuracy of BDF methods for index 3 differential-algebraic equations, BIT 35
    (1995), pp. 297-308; L. Wunderlich, diploma thesis, TU Berlin (2005), section 2.4.
    :class:`daedal.methods.ModifiedBDF` needs no correction.

    Examples
    --------
    >>> import numpy as np
    >>> import daedal
    >>> weight = daedal.MechanicalSystem(
    ...     lambda t, q: np.eye(1), lambda t, q, v: [0.0], lambda t, q: [q[0] - np.sin(t)], n_q=1, n_constraints=1
    ... )
    >>> t = np.array([0.0, 0.01, 0.02, 0.022])
    >>> lam = daedal.studies.corrected_multipliers(weight, t, np.sin([t]), np.cos([t]))
    >>> print(np.abs(lam[0, 1:] - np.sin(t[1:])).max() < 0.02)
    True
    """
    if not isinstance(problem, MechanicalSystem):
        raise InvalidProblemError(f"problem must be a MechanicalSystem, got {type(problem).__name__}")
    order = check_size(order, "order")
    t = check_real(t, "t", "contain increasing times").reshape(-1)
    q, v = check_real(q, "q", "have the shape (n_q, nt)"), check_real(v, "v", "have the shape (n_q, nt)")
    if t.size < 2 or not (np.all(np.diff(t) > 0.0) or np.all(np.diff(t) < 0.0)):
        raise InvalidProblemError("t must be at least two strictly monotone times")
    for name, array in (("q", q), ("v", v)):
        if array.shape != (problem.n_q, t.size):
            raise InvalidProblemError(f"{name} must have the shape {(problem.n_q, t.size)}, got {array.shape}")
    result = np.full((problem.n_constraints, t.size), np.nan)
    for n in range(1, t.size):
        first = max(n - order - 1, 0)
        slope = v[:, 0] if n < order + 1 else None
        acceleration = _second_derivative(t[first : n + 1] - t[n], q[:, first : n + 1], slope)
        result[:, n] = _multipliers(problem, t[n], q[:, n], v[:, n], acceleration)
    return result


def _second_derivative(t: np.ndarray, q: np.ndarray, slope: np.ndarray | None) -> np.ndarray:
    """Second derivative at t = 0 of the polynomial through q at the times t, with an optional slope at the first."""
    size = abs(t[0])
    powers = np.arange(t.size + (slope is not None))
    rows, values = (t[:, None] / size) ** powers, q.T
    if slope is not None:
        rows = np.vstack([rows, powers * (t[0] / size) ** np.maximum(powers - 1, 0)])
        values = np.vstack([values, size * slope])
    return 2.0 * np.linalg.solve(rows, values)[2] / size**2


def _multipliers(system: MechanicalSystem, t: float, q: np.ndarray, v: np.ndarray, a: np.ndarray) -> np.ndarray:
    """Solve M a = f - G^T lambda for lambda by least squares in the norm of M^{-1}."""
    point = system.at(t, q, v)
    G = point.jacobian[: system.n_constraints]
    inverse = np.linalg.solve(point.mass, np.column_stack([G.T, point.force]))
    return np.linalg.solve(G @ inverse[:, :-1], G @ (inverse[:, -1] - a))
