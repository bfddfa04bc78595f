r"""The stages of steps backwards: 3 n linear equations each.

.. math::

    E_i^T \mu_i + h \sum_j a_{ij} A_j^T \mu_j = w - h \sum_j a_{ij} g_j , \qquad i = 1, 2, 3 .

Small systems are solved as they stand, and so are narrow bands. Of others the matrix with E and A of one stage in the
place of all is block diagonal in the eigenvectors of :math:`(a_{ij})^{-1}`, with the blocks :math:`d_k E^T + h A^T`,
one real and a pair of complex ones (Hairer and Wanner II, section IV.8). Its factors solve the system by iteration, and
serve further steps for as long as that converges.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse
from scipy.linalg import lapack

from daedal.adjoint.equations import Linearised
from daedal.adjoint.storage import bandwidth, check_regular, sparse_solver, storage_for
from daedal.kernels.dense import dense_lu

_ROOT6 = np.sqrt(6.0)
# Radau IIA of order 5: E. Hairer, G. Wanner, Solving Ordinary Differential Equations II, Table IV.5.6
NODES = np.array([(4.0 - _ROOT6) / 10.0, (4.0 + _ROOT6) / 10.0, 1.0])
TABLEAU = np.array(
    [
        [(88.0 - 7.0 * _ROOT6) / 360.0, (296.0 - 169.0 * _ROOT6) / 1800.0, (-2.0 + 3.0 * _ROOT6) / 225.0],
        [(296.0 + 169.0 * _ROOT6) / 1800.0, (88.0 + 7.0 * _ROOT6) / 360.0, (-2.0 - 3.0 * _ROOT6) / 225.0],
        [(16.0 - _ROOT6) / 36.0, (16.0 + _ROOT6) / 36.0, 1.0 / 9.0],
    ]
)
WEIGHTS = TABLEAU[-1]
SMALL = 16  # unknowns up to which the 3 n equations are solved as they stand
_PRECISE = 1e-3  # relative residual of a solution, in parts of rtol
NARROW = 4  # diagonals on each side of a band up to which the same is done
_STALE, _MOST_ITERATIONS = 4, 12  # iterations with factors of another step, and with those of this one
_SLOWEST = 0.2  # the rate of an iteration that goes on


def steps_for(equations: Linearised, rtol: float) -> Any:
    """Steps in the way that suits the problem."""
    if equations.n <= SMALL:
        return SmallSteps(equations)
    if max(bandwidth(list(equations.places))) <= NARROW:
        return BandedSteps(equations)
    return SplitSteps(equations, rtol)


class SmallSteps:
    """Compiled steps with dense matrices of all stages together."""

    def __init__(self, equations: Linearised):
        self._lu = dense_lu(3 * equations.n)
        self._e, self._a = (np.array(places[::-1], dtype=np.int64) for places in equations.places)

    def back(self, values: np.ndarray, sizes: np.ndarray, known: np.ndarray, w: np.ndarray):
        """w where the steps begin, and mu at all stages, (steps, 3, n)."""
        from daedal.adjoint.batch import small_steps

        w, mu = w.copy(), np.empty((sizes.size, 3 * w.size))
        address = self._lu.data.ctypes.data
        check_regular(small_steps(address, TABLEAU, self._e, self._a, values, sizes, known, w, mu))
        return w, mu.reshape(sizes.size, 3, -1)


class BandedSteps:
    """All stages together, node by node, so that a narrow band stays one."""

    def __init__(self, equations: Linearised):
        (e_rows, e_columns), (a_rows, a_columns) = equations.places
        self._n, self._split, self._end = equations.n, e_rows.size, e_rows.size + a_rows.size
        self._e = e_columns, e_rows
        below, above = bandwidth([(e_columns, e_rows), (a_columns, a_rows)])
        self._below, self._above = 3 * below + 2, 3 * above + 2
        stage = np.arange(3)
        self._e_places = [self._place(3 * e_columns + i, 3 * e_rows + i) for i in stage]
        self._a_places = [[self._place(3 * a_columns + i, 3 * a_rows + j) for j in stage] for i in stage]

    def _place(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """Where entries stand in LAPACK's storage, column by column."""
        return columns * (2 * self._below + self._above + 1) + self._below + self._above + rows - columns

    def back(self, values: np.ndarray, sizes: np.ndarray, known: np.ndarray, w: np.ndarray):
        """w where the steps begin, and mu at all stages, (steps, 3, n)."""
        n, below, above = self._n, self._below, self._above
        mu = np.empty((sizes.size, 3, n))
        for k in reversed(range(sizes.size)):
            band = np.zeros(3 * n * (2 * below + above + 1))
            for j, row in enumerate(values[3 * k : 3 * k + 3]):
                for i in range(3):
                    band[self._a_places[i][j]] = sizes[k] * TABLEAU[i, j] * row[self._split : self._end]
                band[self._e_places[j]] += row[: self._split]
            lu, pivots, info = lapack.dgbtrf(band.reshape(3 * n, -1).T, below, above, overwrite_ab=True)
            check_regular(info)
            found = lapack.dgbtrs(lu, below, above, (w - known[k]).T.ravel(), pivots, overwrite_b=True)[0]
            mu[k] = found.reshape(n, 3).T
            w = np.bincount(self._e[0], values[3 * k + 2, : self._split] * mu[k, 2][self._e[1]], n)
        return w, mu


class SplitSteps:
    """Steps with one real and one complex factorisation, which are kept while they serve."""

    def __init__(self, equations: Linearised, rtol: float):
        self._n, self._precise = equations.n, _PRECISE * rtol
        (e_rows, e_columns), (a_rows, a_columns) = equations.places
        self._storage = storage_for([(e_columns, e_rows), (a_columns, a_rows)], equations.n)
        self._split, self._end = e_rows.size, e_rows.size + a_rows.size
        rates, vectors = np.linalg.eig(np.linalg.inv(TABLEAU))
        chosen = [int(np.argmin(np.abs(rates.imag))), int(np.argmax(rates.imag))]  # the real one, and one of the pair
        self._rates, self._vectors = (float(rates[chosen[0]].real), rates[chosen[1]]), vectors[:, chosen]
        self._inverse = (np.linalg.inv(vectors) @ np.linalg.inv(TABLEAU))[chosen]
        self._factors: list[Any] = []

    def back(self, values: np.ndarray, sizes: np.ndarray, known: np.ndarray, w: np.ndarray):
        """w where the steps begin, and mu at all stages, (steps, 3, n)."""
        mu = np.empty((sizes.size, 3, self._n))
        for k in reversed(range(sizes.size)):
            stages = [self._matrices(row) for row in values[3 * k : 3 * k + 3]]
            mu[k] = self._step(stages, float(sizes[k]), w - known[k])
            w = self._storage.product(stages[2][0], mu[k, 2])
        return w, mu

    def _matrices(self, row: np.ndarray) -> tuple[Any, Any]:
        """E^T and A^T."""
        storage = self._storage
        return storage.matrix(0, row[: self._split]), storage.matrix(1, row[self._split : self._end])

    def _step(self, stages: list[tuple[Any, Any]], h: float, right: np.ndarray) -> np.ndarray:
        product = self._storage.product

        def applied(mu: np.ndarray) -> np.ndarray:
            forces = np.array([product(a, row) for (_, a), row in zip(stages, mu, strict=True)])
            return np.array([product(e, row) for (e, _), row in zip(stages, mu, strict=True)]) + h * (TABLEAU @ forces)

        mu = self._iterated(applied, right, _STALE) if self._factors else None
        if mu is None:
            e, a = stages[1]
            self._factors = [self._storage.factored(rate * e + h * a) for rate in self._rates]
            mu = self._iterated(applied, right, _MOST_ITERATIONS)
        return self._whole(stages, h, right) if mu is None else mu

    def _iterated(self, applied: Callable, right: np.ndarray, most: int) -> np.ndarray | None:
        """The solution, by iteration with the factors at hand; None if that does not converge."""
        mu, rest = np.zeros_like(right), right
        size = before = float(np.abs(right).max(initial=0.0))
        for _ in range(most):
            mu = mu + self._solved(rest)
            rest = right - applied(mu)
            left = float(np.abs(rest).max(initial=0.0))
            if left <= self._precise * size:
                return mu
            if not left < _SLOWEST * before:
                return None
            before = left
        return None

    def _solved(self, right: np.ndarray) -> np.ndarray:
        parts = self._inverse @ right
        real, pair = self._factors[0](parts[0].real), self._factors[1](parts[1])
        return np.outer(self._vectors[:, 0].real, real) + 2.0 * np.outer(self._vectors[:, 1], pair).real

    def _whole(self, stages: list[tuple[Any, Any]], h: float, right: np.ndarray) -> np.ndarray:
        """All 3 n equations at once, where E or A change much within a step."""
        pairs = [(self._storage.as_sparse(e), self._storage.as_sparse(a)) for e, a in stages]
        blocks = [
            [h * TABLEAU[i, j] * a + (e if i == j else 0.0 * e) for j, (e, a) in enumerate(pairs)] for i in range(3)
        ]
        self._factors = []
        return sparse_solver(sparse.block_array(blocks, format="csc"))(right.ravel()).reshape(3, -1)
