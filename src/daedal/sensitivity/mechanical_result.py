"""Sensitivities of the solution of a mechanism: of positions, velocities, accelerations and multipliers."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from daedal.errors import InvalidProblemError
from daedal.problems.checks import check_real
from daedal.sensitivity.result import column_of
from daedal.solution.solution import DenseOutput


@dataclass(frozen=True)
class MechanicalSensitivity:
    """The derivatives of a motion with respect to one parameter; ``numpy.asarray`` of it is `y`.

    Attributes
    ----------
    q, v, a, lam, r, reaction : numpy.ndarray
        Derivatives of what :class:`MechanicalSolution` has under the same names, with the same shapes.
    """

    q: np.ndarray
    v: np.ndarray
    a: np.ndarray
    lam: np.ndarray
    r: np.ndarray
    reaction: np.ndarray

    @property
    def y(self) -> np.ndarray:
        """Those of (q, v, r), stacked."""
        return np.concatenate([self.q, self.v, self.r])

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return np.asarray(self.y, dtype=dtype)


class MechanicalSensitivities:
    """The sensitivities that belong to a solution; projected and completed when they are asked for."""

    def __init__(self, names: tuple[str, ...], motion: Any, params: Any, solution: Any, raw, dense: DenseOutput | None):
        self.names, self._motion, self._params, self._solution = names, motion, params, solution
        self._raw, self.dense = raw, dense

    @cached_property
    def _stored(self) -> list[MechanicalSensitivity]:
        return self._completed(self._solution.t, self._solution.y, self._raw)

    @property
    def values(self) -> np.ndarray:
        """Those of (q, v, r) at the output points, shape (m, n, nt)."""
        return np.array([part.y for part in self._stored])

    def at(self, parameter: Any, t: Any = None) -> MechanicalSensitivity:
        """The sensitivity to a parameter at the output points, or at the times `t`."""
        k = column_of(self.names, parameter)
        if t is None:
            return self._stored[k]
        if self.dense is None:
            raise InvalidProblemError("no dense output was kept; call solve with dense_output=True")
        times = check_real(t, "t", "be a number or a vector")
        flat = np.atleast_1d(times).astype(float)
        states = self._solution.states(flat)
        found = self._completed(flat, states, self.dense.evaluate(flat)[0].T)[k]
        if times.ndim:
            return found
        return MechanicalSensitivity(
            *(getattr(found, name)[:, 0].copy() for name in MechanicalSensitivity.__annotations__)
        )

    def _completed(self, times: np.ndarray, states: np.ndarray, raw: np.ndarray) -> list[MechanicalSensitivity]:
        """On the differentiated constraints at `states`, with the sensitivities of a, lam and reactions."""
        from daedal.sensitivity.mechanism import evaluated, projected

        motion, params = self._motion, self._params
        n, n_q, m = motion.n, motion.system.n_q, len(self.names)
        n_c = motion.system.n_lambda
        found = np.empty((m, n, times.size))
        further = np.empty((m, 2 * n_q + n_c, times.size))
        for i, t in enumerate(times):
            y = projected(motion, params, float(t), np.concatenate([states[:, i], raw[:, i]]))
            found[:, :, i] = y[n:].reshape(m, n)
            further[:, :, i] = evaluated(motion.dynamics, params, float(t), y).reshape(m, -1)
        return [
            MechanicalSensitivity(
                q=s[:n_q],
                v=s[n_q : 2 * n_q],
                a=x[:n_q],
                lam=x[n_q : n_q + n_c],
                r=s[2 * n_q :],
                reaction=x[n_q + n_c :],
            )
            for s, x in zip(found, further, strict=True)
        ]

    def __getstate__(self) -> dict[str, Any]:
        """What was computed; machine code stays behind, and with it the sensitivities between the output points."""
        return {"names": self.names, "_stored": self._stored, "dense": None, "_solution": None, "_raw": self._raw}
