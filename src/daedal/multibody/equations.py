r"""The equations of motion of a system and their derivatives at a point.

Derivatives of the balance :math:`M a + K^T \lambda - f`, of :math:`-f_d`, of :math:`K v + k` and of
:math:`K a - \gamma` with respect to q, v and r, for given a and :math:`\lambda`. The second derivatives of the
constraints are among them, :math:`(K^T \lambda)_q`. They are exact if the functions can be traced.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from daedal.errors import InvalidProblemError
from daedal.multibody.conditions import Conditions


class Derivatives(NamedTuple):
    """Blocks of rows, each with columns for q, v and r."""

    balance: np.ndarray
    states: np.ndarray  # of -f_d
    speeds: np.ndarray  # of K v + k
    accelerations: np.ndarray  # of K a - gamma


class MotionEquations:
    """Mass, forces and conditions of a system, and their derivatives.

    Attributes
    ----------
    exact : bool
        Whether derivatives come from the traced functions, not from differences.
    """

    def __init__(self, system: Any, conditions: Conditions):
        if system.n_w or system.n_s or system.force_uses_multipliers:
            raise InvalidProblemError(
                "this analysis is for machines without algebraic variables and without forces that depend on "
                "reactions, such as dry friction in joints; leave these forces out"
            )
        self.system, self.conditions = system, conditions
        self.n, self.n_r = system.n_q, system.n_r
        self._function = self._traced()
        self.exact = self._function is not None

    def _traced(self) -> Any:
        try:
            linearisation = self.system.compiled(backend="trace").linearisation
        except InvalidProblemError:
            return None
        return None if linearisation is None else linearisation.function(2)

    def mass(self, t: float, q: np.ndarray) -> np.ndarray:
        """M."""
        mass = self.system.mass
        matrix = mass(t, q) if callable(mass) else mass
        return np.asarray(matrix.toarray() if hasattr(matrix, "toarray") else matrix, dtype=float)

    def force(self, t: float, q: np.ndarray, v: np.ndarray, r: np.ndarray) -> np.ndarray:
        """f."""
        return np.asarray(self.system.force(t, q, v, *self._given(r)), dtype=float)

    def state_rate(self, t: float, q: np.ndarray, v: np.ndarray, r: np.ndarray) -> np.ndarray:
        r""":math:`f_d`, the rate of r."""
        return np.asarray(self.system.state_rate(t, q, v, r), dtype=float) if self.n_r else np.zeros(0)

    def _given(self, r: np.ndarray) -> tuple:
        return (r,) if self.n_r else ()

    def derivatives(self, t: float, q, v, r, a, lam) -> Derivatives:
        """All blocks at a point."""
        if self._function is not None:
            multipliers = (lam,) if lam.size else ()
            rows = self._function(t, q, v, *self._given(r), *multipliers, a)
        else:
            rows = self._differences(t, q, v, r, a, lam)
        ends = np.cumsum([self.n, self.n_r, lam.size, lam.size])
        return Derivatives(*(rows[end - size : end] for end, size in zip(ends, (self.n, self.n_r, lam.size, lam.size))))

    def _differences(self, t: float, q, v, r, a, lam) -> np.ndarray:
        x, n = np.concatenate([q, v, r]), self.n

        def rows(x):
            q, v, r = x[:n], x[n : 2 * n], x[2 * n :]
            K = self.conditions.jacobian(t, q)
            balance = self.mass(t, q) @ a + K.T @ lam - self.force(t, q, v, r)
            speeds = K @ v + self.conditions.speed(t, q)
            return np.concatenate(
                [balance, -self.state_rate(t, q, v, r), speeds, K @ a - self.conditions.bias(t, q, v)]
            )

        columns = []
        for k in range(x.size):
            h = 6e-6 * max(1.0, abs(x[k]))
            step = np.zeros(x.size)
            step[k] = h
            columns.append((rows(x + step) - rows(x - step)) / (2.0 * h))
        return np.column_stack(columns)


def null_space(matrix: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """Directions of the coordinates that conditions allow: an orthonormal basis in coordinates divided by `scale`."""
    if not matrix.size:
        return np.diag(scale)
    scaled = matrix * scale
    norms = np.linalg.norm(scaled, axis=1)
    scaled = scaled / np.where(norms > 1e-12 * norms.max(), norms, np.inf)[:, None]
    _, s, V = np.linalg.svd(scaled, full_matrices=True)
    rank = int(np.sum(s > 1e-9 * max(float(s.max(initial=0.0)), 1e-300)))
    return scale[:, None] * V[rank:].T
