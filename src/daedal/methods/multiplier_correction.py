r"""Multipliers of index 3 after a change of step size, corrected in the manner of Arevalo and Loetstedt."""

from __future__ import annotations

import numpy as np

from daedal.errors import InvalidProblemError
from daedal.problems.checks import check_real, check_size
from daedal.problems.mechanical import MechanicalSystem


def corrected_multipliers(system: MechanicalSystem, t, q, v, order: int = 1) -> np.ndarray:
    r"""Multipliers from positions that BDF has computed on any grid, right to :math:`O(h^k)`.

    BDF of order k on the index-3 form finds positions and velocities to :math:`O(h^k)` on every grid. But it
    differentiates twice, by the same formula, once for each of the last steps: where the step size or the order has
    changed, the errors of velocities do not fit together, and the multipliers are wrong by :math:`O(1)` (by
    :math:`O(h^{k-1})` for k > 1). Arevalo and Loetstedt correct them after such a change. Here that is done by the
    accelerations that belong to the positions, the second derivative of the polynomial through the last k + 2 of them:

    .. math::

        a_n = \ddot p_n(t_n), \qquad G M^{-1} G^T \lambda_n = G M^{-1} (f(t_n, q_n, v_n) - M a_n).

    Parameters
    ----------
    system : MechanicalSystem
        With its constraints on positions.
    t : array (nt,)
        The grid, strictly monotone.
    q, v : array (n_q, nt)
        Positions and velocities.
    order : int
        The order k of BDF.

    Returns
    -------
    numpy.ndarray, shape (n_constraints, nt)
        In the first points, where there are fewer than k + 2, the velocity at the start takes part; at the start itself
        multipliers are ``nan``.

    References
    ----------
    C. Arevalo, P. Loetstedt, Improving the accuracy of BDF methods for index 3 differential-algebraic equations, BIT 35
    (1995), pp. 297-308; L. Wunderlich, diploma thesis, TU Berlin (2005), section 2.4. :class:`daedal.ModifiedBDF` needs
    no correction.

    Examples
    --------
    >>> import numpy as np
    >>> import daedal
    >>> weight = daedal.MechanicalSystem(
    ...     lambda t, q: np.eye(1), lambda t, q, v: [0.0], lambda t, q: [q[0] - np.sin(t)], n_q=1, n_constraints=1
    ... )
    >>> t = np.array([0.0, 0.01, 0.02, 0.022])
    >>> lam = daedal.corrected_multipliers(weight, t, np.sin([t]), np.cos([t]))
    >>> print(np.abs(lam[0, 1:] - np.sin(t[1:])).max() < 0.02)
    True
    """
    if not isinstance(system, MechanicalSystem):
        raise InvalidProblemError(f"system must be a MechanicalSystem, got {type(system).__name__}")
    order = check_size(order, "order")
    t = check_real(t, "t", "hold increasing times").reshape(-1)
    q, v = check_real(q, "q", "have the shape (n_q, nt)"), check_real(v, "v", "have the shape (n_q, nt)")
    if t.size < 2 or not (np.all(np.diff(t) > 0.0) or np.all(np.diff(t) < 0.0)):
        raise InvalidProblemError("t must hold at least two times, strictly monotone")
    for name, array in (("q", q), ("v", v)):
        if array.shape != (system.n_q, t.size):
            raise InvalidProblemError(f"{name} must have the shape {(system.n_q, t.size)}, got {array.shape}")
    result = np.full((system.n_constraints, t.size), np.nan)
    for n in range(1, t.size):
        first = max(n - order - 1, 0)
        slope = v[:, 0] if n < order + 1 else None
        acceleration = _second_derivative(t[first : n + 1] - t[n], q[:, first : n + 1], slope)
        result[:, n] = _multipliers(system, t[n], q[:, n], v[:, n], acceleration)
    return result


def _second_derivative(t: np.ndarray, q: np.ndarray, slope: np.ndarray | None) -> np.ndarray:
    """At t = 0, of the polynomial through the values q at the times t, and with a slope at the first."""
    size = abs(t[0])
    powers = np.arange(t.size + (slope is not None))
    rows, values = (t[:, None] / size) ** powers, q.T
    if slope is not None:
        rows = np.vstack([rows, powers * (t[0] / size) ** np.maximum(powers - 1, 0)])
        values = np.vstack([values, size * slope])
    return 2.0 * np.linalg.solve(rows, values)[2] / size**2


def _multipliers(system: MechanicalSystem, t: float, q: np.ndarray, v: np.ndarray, a: np.ndarray) -> np.ndarray:
    """lambda with M a = f - G^T lambda, in the norm of M^{-1}."""
    point = system.at(t, q, v)
    G = point.jacobian[: system.n_constraints]
    inverse = np.linalg.solve(point.mass, np.column_stack([G.T, point.force]))
    return np.linalg.solve(G @ inverse[:, :-1], G @ (inverse[:, -1] - a))
