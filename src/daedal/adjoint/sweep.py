r"""The adjoint equations, integrated backwards over the steps of a solution.

.. math::

    (E^T \mu)' = A^T \mu + g_y, \qquad E^T \mu (T) = -(h_y + A^T \nu), \quad \nu^T E = 0,

for the cost :math:`\int g\, dt + h(y(T))`; :math:`\nu` belongs to algebraic variables in h. Then

.. math::

    \frac{dJ}{dp} = h_p + \nu^T B(T) + \int (g_p + \mu^T B)\, dt - (E^T \mu)^T s \,\big|_{t_0}

(Y. Cao, S. Li, L. Petzold, R. Serban, Adjoint sensitivity analysis for differential-algebraic equations, SIAM J. Sci.
Comput. 24, 2003). Each step of the solution is one of Radau IIA with three stages, which is stable however stiff the
problem is; the last one is divided towards the end, where adjoint variables may begin with a layer.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import linalg, sparse
from scipy.sparse import linalg as sparse_linalg

from daedal.adjoint.equations import Linearised
from daedal.errors import InvalidProblemError

_ROOT6 = np.sqrt(6.0)
# Radau IIA of order 5: E. Hairer, G. Wanner, Solving Ordinary Differential Equations II, Table IV.5.6
_C = np.array([(4.0 - _ROOT6) / 10.0, (4.0 + _ROOT6) / 10.0, 1.0])
_A = np.array(
    [
        [(88.0 - 7.0 * _ROOT6) / 360.0, (296.0 - 169.0 * _ROOT6) / 1800.0, (-2.0 + 3.0 * _ROOT6) / 225.0],
        [(296.0 + 169.0 * _ROOT6) / 1800.0, (88.0 + 7.0 * _ROOT6) / 360.0, (-2.0 - 3.0 * _ROOT6) / 225.0],
        [(16.0 - _ROOT6) / 36.0, (16.0 + _ROOT6) / 36.0, 1.0 / 9.0],
    ]
)
_B = _A[-1]
_LAYERS = 24  # how often the last step is halved towards the end
DENSE = 60  # unknowns up to which matrices are dense
_SMALL = 12  # unknowns up to which all steps are solved at once
_TOGETHER = 32  # steps that are halved together
_MOST_HALVINGS = 5
_SINGULAR = 1e-10
_PORTION = 4e6  # numbers in the matrices of the steps that are treated together


def graded(times: np.ndarray) -> np.ndarray:
    """The ends of steps, the last one divided towards the end of the run."""
    times = np.unique(times)
    last = times[-1] - times[-2]
    return np.concatenate([times[:-1], times[-1] - last * 0.5 ** np.arange(1.0, _LAYERS + 1.0), times[-1:]])


class Part(NamedTuple):
    """What some steps give: E^T mu where they begin, and their parts of the cost and of its gradient."""

    w: np.ndarray
    value: float
    gradient: np.ndarray


class Sweep:
    """Backward integration; what it has found so far."""

    def __init__(self, equations: Linearised, params: Any, rtol: float):
        self._equations, self._params, self._rtol = equations, params, rtol
        self.value = 0.0
        self.gradient = np.zeros(len(equations.labels))
        self.w = np.zeros(equations.n)

    def begin(self, solution: Any, t: float) -> None:
        """The end of the run: terminal values that are consistent with the final cost."""
        equations = self._equations
        y, yp = (part[0] for part in equations.points(solution, np.array([t])))
        e, a = equations.sparse(equations.evaluated(t, y, yp, self._params))
        left = linalg.null_space(e.toarray()) if equations.n <= DENSE else _zero_columns(e)
        seen = np.asarray(abs(e).sum(axis=1)).ravel() > 0.0
        _check_index(e, a, left)
        h_y, h_p, h = equations.final(t, y, yp, self._params)
        self.value += h
        self.gradient += h_p
        self.w = -h_y
        if left.shape[1] and np.any(h_y[~seen]):
            lifted = a @ left  # A^T nu for nu = left x: it takes away what E^T cannot reach
            found, *_ = np.linalg.lstsq(lifted[~seen], -h_y[~seen], rcond=None)
            self.w = -(h_y + lifted @ found)
            self.gradient += equations.jump(t, y, yp, left @ found, self._params)
        self.w = np.where(seen, self.w, 0.0)

    def over(self, solution: Any, times: np.ndarray) -> None:
        """Back over the steps between `times`, which increase; in portions, the last one first.

        Every portion is computed with steps that are halved until its result no longer changes.
        """
        n = self._equations.n
        portion = min(_TOGETHER, max(1, int(_PORTION / (9 * n * n if n <= DENSE else n))))
        for end in range(times.size - 1, 0, -portion):
            grid = times[max(end - portion, 0) : end + 1]
            coarse = self._portion(solution, grid)
            for _ in range(_MOST_HALVINGS):
                grid = np.sort(np.concatenate([grid, 0.5 * (grid[1:] + grid[:-1])]))
                fine = self._portion(solution, grid)
                settled = self._is_settled(coarse, fine)
                coarse = fine
                if settled:
                    break
            self.w = coarse.w
            self.value += coarse.value
            self.gradient += coarse.gradient

    def _is_settled(self, coarse: Part, fine: Part) -> bool:
        """Whether the last halving, of a method of order 5, has changed nothing that counts."""
        near = 10.0 * self._rtol
        return (
            np.abs(fine.w - coarse.w).max(initial=0.0) <= near * np.abs(fine.w).max(initial=0.0)
            and abs(fine.value - coarse.value) <= near * (abs(self.value) + abs(fine.value))
            and bool(
                np.all(
                    np.abs(fine.gradient - coarse.gradient) <= near * (np.abs(self.gradient) + np.abs(fine.gradient))
                )
            )
        )

    def _portion(self, solution: Any, times: np.ndarray) -> Part:
        equations, params = self._equations, self._params
        sizes = np.diff(times)
        places = times[1:, None] - sizes[:, None] * _C
        places[:, -1] = times[:-1]
        flat = places.ravel()
        y, yp = equations.points(solution, flat)
        values = np.array(
            [equations.evaluated(float(t), own, rate, params) for t, own, rate in zip(flat, y, yp, strict=True)]
        )
        slopes = equations.slopes(values).reshape(sizes.size, 3, -1)
        pulled = sizes[:, None, None] * np.einsum("ij,kjn->kin", _A, slopes)
        back = self._dense if equations.n <= DENSE else self._sparse
        w, mu = back(values, sizes, pulled)
        weights = np.multiply.outer(sizes, _B).ravel()
        found = np.zeros_like(self.gradient)
        for weight, t, own, rate, adjoint in zip(weights, flat, y, yp, mu.reshape(flat.size, -1), strict=True):
            found += weight * equations.by_parameters(float(t), own, rate, adjoint, params)
        return Part(w, float(weights @ values[:, -1]), found)

    def _dense(self, values: np.ndarray, sizes: np.ndarray, pulled: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """w at the beginning, and mu at all stages: E_i^T mu_i + h sum_j a_ij A_j^T mu_j = w - h sum_j a_ij g_j."""
        n, steps = self._equations.n, sizes.size
        e, a = (part.reshape(steps, 3, n, n) for part in self._equations.dense(values))
        matrix = np.einsum("k,ij,kjab->kiajb", sizes, _A, a)
        stage = np.arange(3)
        matrix[:, stage, :, stage, :] += e.transpose(1, 0, 2, 3)
        matrix = matrix.reshape(steps, 3 * n, 3 * n)
        known = -pulled.reshape(steps, 3 * n)
        mu, w = np.empty((steps, 3 * n)), self.w
        if n <= _SMALL:  # all steps at once, as functions of w
            unit = np.broadcast_to(np.tile(np.eye(n), (3, 1)), (steps, 3 * n, n))
            found = np.linalg.solve(matrix, np.concatenate([unit, known[:, :, None]], axis=2))
        for k in reversed(range(steps)):
            mu[k] = (
                found[k, :, :n] @ w + found[k, :, n]
                if n <= _SMALL
                else np.linalg.solve(matrix[k], np.tile(w, 3) + known[k])
            )
            w = e[k, 2] @ mu[k, 2 * n :]
        return w, mu.reshape(steps, 3, n)

    def _sparse(self, values: np.ndarray, sizes: np.ndarray, pulled: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The same with sparse matrices."""
        n = self._equations.n
        mu, w = np.empty((sizes.size, 3, n)), self.w
        for k in reversed(range(sizes.size)):
            stages = [self._equations.sparse(values[3 * k + j]) for j in range(3)]
            blocks = [
                [sizes[k] * _A[i, j] * a + (e if i == j else 0.0 * e) for j, (e, a) in enumerate(stages)]
                for i in range(3)
            ]
            right = (w - pulled[k]).ravel()
            mu[k] = sparse_linalg.splu(sparse.block_array(blocks, format="csc")).solve(right).reshape(3, n)
            w = stages[2][0] @ mu[k, 2]
        return w, mu


def _check_index(e: Any, a: Any, left: np.ndarray) -> None:
    """Index 1: the equations that E does not see determine the variables that it does not see (e is E^T, a is A^T)."""
    right = linalg.null_space(e.toarray().T) if e.shape[0] <= DENSE else _zero_columns(e.T)
    if not right.shape[1]:
        return
    sizes = np.linalg.svd(left.T @ (a.T @ right), compute_uv=False)
    if left.shape[1] != right.shape[1] or sizes[-1] <= _SINGULAR * sizes[0]:
        raise InvalidProblemError(
            "gradient: the problem has index 2 or more. State a mechanism as a MechanicalSystem, or reduce the index "
            "first, daedal.reduce_index(problem)"
        )


def _zero_columns(e: Any) -> np.ndarray:
    """Unit vectors of equations without derivatives, one column each; e is E^T."""
    columns = np.flatnonzero(np.asarray(abs(e).sum(axis=0)).ravel() == 0.0)
    found = np.zeros((e.shape[0], columns.size))
    found[columns, np.arange(columns.size)] = 1.0
    return found
