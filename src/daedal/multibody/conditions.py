"""The conditions of a model in chosen coordinates, evaluated with exact derivatives where they can be traced."""

from __future__ import annotations

from typing import Any

import numpy as np

from daedal.errors import InvalidProblemError


class Conditions:
    r"""g(t, q) = 0 and :math:`\hat G(t, q) v + \hat g(t, q) = 0` of a system, with their derivatives.

    Attributes
    ----------
    exact : bool
        Whether derivatives come from the traced functions, not from differences.
    """

    def __init__(self, system: Any):
        bare = system.replaced(mass=1.0, force=_no_force(system.n_q), **_NO_STATES)
        self.n_q, self.n_g, self.n_hat = system.n_q, system.n_constraints, system.n_velocity_constraints
        self.names = list(system.constraint_names or ())
        self._system, self.exact = bare, not self.n_g + self.n_hat
        if not self.exact:
            try:
                self._system, self.exact = bare.compiled(backend="trace"), True
            except InvalidProblemError:  # too large, or branches
                pass

    def value(self, t: float, q: np.ndarray) -> np.ndarray:
        """g."""
        if not self.n_g:
            return np.zeros(0)
        return self._ask("constraint", t, q) if self.exact else np.asarray(self._system.constraint(t, q), dtype=float)

    def jacobian(self, t: float, q: np.ndarray) -> np.ndarray:
        r"""K, the rows of G and of :math:`\hat G`."""
        if not self.exact:
            return self._system.at(t, q).jacobian
        rows = [self._ask("constraint_jacobian", t, q)] if self.n_g else []
        rows += [self._ask("velocity_jacobian", t, q)] if self.n_hat else []
        return np.concatenate([np.zeros((0, self.n_q)), *rows])

    def speed(self, t: float, q: np.ndarray) -> np.ndarray:
        r"""k, with K v + k = 0: :math:`g_t` and :math:`\hat g`."""
        if not self.exact:
            return self._system.at(t, q).velocity
        rows = [self._ask("constraint_t", t, q)] if self.n_g else []
        rows += [self._ask("velocity_constraint", t, q, np.zeros(self.n_q))] if self.n_hat else []
        return np.concatenate([np.zeros(0), *rows])

    def bias(self, t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        r""":math:`\gamma`, with :math:`K \ddot q = \gamma`."""
        if not self.exact:
            return self._system.at(t, q, v).bias
        rows = [self._ask("acceleration_bias", t, q, v)] if self.n_g else []
        rows += [self._ask("velocity_bias", t, q, v)] if self.n_hat else []
        return np.concatenate([np.zeros(0), *rows])

    def _ask(self, name: str, t: float, *arguments: np.ndarray) -> np.ndarray:
        function = getattr(self._system, name)
        if not hasattr(function, "evaluate"):
            return np.asarray(function(t, *arguments), dtype=float)
        status, values = function.evaluate(t, *arguments)
        return values if status == 0 else np.asarray(function(t, *arguments), dtype=float)


_NO_STATES = {
    "state_rate": None,
    "n_r": 0,
    "algebraic": None,
    "n_w": 0,
    "force_uses_multipliers": False,
    "force_sparsity": None,
}


def _no_force(n: int):
    def force(t, q, v):
        return np.zeros(n)

    return force
