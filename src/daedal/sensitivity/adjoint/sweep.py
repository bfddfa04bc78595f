r"""Backward integration of the adjoint equations over the steps of a solution.

.. math::

    (E^T \mu)' = A^T \mu + g_y, \qquad E^T \mu (T) = -(h_y + A^T \nu), \quad \nu^T E = 0,

for the cost :math:`\int g\, dt + h(y(T))`; :math:`\nu` accounts for algebraic variables in h. Then

.. math::

    \frac{dJ}{dp} = h_p + \nu^T B(T) + \int (g_p + \mu^T B)\, dt - (E^T \mu)^T s \,\big|_{t_0}

(Y. Cao, S. Li, L. Petzold, R. Serban, Adjoint sensitivity analysis for differential-algebraic equations, SIAM J. Sci.
Comput. 24, 2003). The method is Radau IIA with three stages, which is stable for any stiffness, on the steps of the
solution; the last step is subdivided towards the end, where adjoint variables may have a boundary layer.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy import linalg, sparse
from scipy.linalg import lapack
from scipy.sparse import linalg as sparse_linalg

import daedal
from daedal.errors import IntegrationError, InvalidProblemError
from daedal.kernels.dense import dense_lu
from daedal.sensitivity.adjoint.costs import LinearisedRun, bandwidth, check_regular, sparse_solver, storage_for

# .. math::
#
#     E_i^T \mu_i + h \sum_j a_{ij} A_j^T \mu_j = w - h \sum_j a_{ij} g_j , \qquad i = 1, 2, 3 .
#
# Small and narrow-banded systems are solved directly. For others, the matrix with E and A of one stage for all stages
# is block diagonal in the eigenvectors of :math:`(a_{ij})^{-1}`, with the blocks :math:`d_k E^T + h A^T`, one real and
# a pair of complex ones (Hairer and Wanner II, section IV.8). Its factors solve the system by iteration, and are reused
# while the iteration converges.

_RADAU = daedal.methods.coefficients("radau5")  # Radau IIA of order 5
assert isinstance(_RADAU, daedal.methods.RungeKuttaTableau)
NODES, TABLEAU = (np.array(values, dtype=float) for values in (_RADAU.c, _RADAU.a))
WEIGHTS = TABLEAU[-1]
SMALL = 16  # number of unknowns up to which the 3 n equations are solved together
_PRECISE = 1e-3  # relative residual at which the iteration has converged, as a fraction of rtol
NARROW = 4  # number of diagonals on each side of a band up to which all stages are solved together
_STALE, _MOST_ITERATIONS = 4, 12  # maximum number of iterations with the factors of another step, and of this step
_SLOWEST = 0.2  # convergence rate above which the iteration is abandoned


def steps_for(equations: LinearisedRun, rtol: float) -> Any:
    """The stepping strategy for the size and structure of a problem."""
    if equations.n <= SMALL:
        return SmallSteps(equations)
    if max(bandwidth(list(equations.places))) <= NARROW:
        return BandedSteps(equations)
    return SplitSteps(equations, rtol)


class SmallSteps:
    """Compiled steps with the dense matrix of all stages."""

    def __init__(self, equations: LinearisedRun):
        self._lu = dense_lu(3 * equations.n)
        self._e, self._a = (np.array(places[::-1], dtype=np.int64) for places in equations.places)

    def back(self, values: np.ndarray, sizes: np.ndarray, known: np.ndarray, w: np.ndarray):
        """w at the start of the steps, and mu at all stages, (steps, 3, n)."""
        from daedal.sensitivity.adjoint.adjoint_loops import small_steps

        w, mu = w.copy(), np.empty((sizes.size, 3 * w.size))
        address = self._lu.data.ctypes.data
        check_regular(small_steps(address, TABLEAU, self._e, self._a, values, sizes, known, w, mu))
        return w, mu.reshape(sizes.size, 3, -1)


class BandedSteps:
    """All stages together, interleaved so that a narrow band stays narrow."""

    def __init__(self, equations: LinearisedRun):
        (e_rows, e_columns), (a_rows, a_columns) = equations.places
        self._n, self._split, self._end = equations.n, e_rows.size, e_rows.size + a_rows.size
        self._e = e_columns, e_rows
        below, above = bandwidth([(e_columns, e_rows), (a_columns, a_rows)])
        self._below, self._above = 3 * below + 2, 3 * above + 2
        stage = np.arange(3)
        self._e_places = [self._place(3 * e_columns + i, 3 * e_rows + i) for i in stage]
        self._a_places = [[self._place(3 * a_columns + i, 3 * a_rows + j) for j in stage] for i in stage]

    def _place(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """Positions of entries in LAPACK's storage, by columns."""
        return columns * (2 * self._below + self._above + 1) + self._below + self._above + rows - columns

    def back(self, values: np.ndarray, sizes: np.ndarray, known: np.ndarray, w: np.ndarray):
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
    """Steps with one real and one complex factorisation, which are reused while the iteration converges."""

    def __init__(self, equations: LinearisedRun, rtol: float):
        self._n, self._precise = equations.n, _PRECISE * rtol
        (e_rows, e_columns), (a_rows, a_columns) = equations.places
        self._storage = storage_for([(e_columns, e_rows), (a_columns, a_rows)], equations.n)
        self._split, self._end = e_rows.size, e_rows.size + a_rows.size
        rates, vectors = np.linalg.eig(np.linalg.inv(TABLEAU))
        # the real eigenvalue, and one of the complex pair
        chosen = [int(np.argmin(np.abs(rates.imag))), int(np.argmax(rates.imag))]
        self._rates, self._vectors = (float(rates[chosen[0]].real), rates[chosen[1]]), vectors[:, chosen]
        self._inverse = (np.linalg.inv(vectors) @ np.linalg.inv(TABLEAU))[chosen]
        self._factors: list[Any] = []

    def back(self, values: np.ndarray, sizes: np.ndarray, known: np.ndarray, w: np.ndarray):
        mu = np.empty((sizes.size, 3, self._n))
        for k in reversed(range(sizes.size)):
            stages = [self._matrices(row) for row in values[3 * k : 3 * k + 3]]
            mu[k] = self._step(stages, float(sizes[k]), w - known[k])
            w = self._storage.product(stages[2][0], mu[k, 2])
        return w, mu

    def _matrices(self, row: np.ndarray) -> tuple[Any, Any]:
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
        """The solution by iteration with existing factors; None without convergence."""
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
        """Solve all 3 n equations together, if E or A change strongly within a step."""
        pairs = [(self._storage.as_sparse(e), self._storage.as_sparse(a)) for e, a in stages]
        blocks = [
            [h * TABLEAU[i, j] * a + (e if i == j else 0.0 * e) for j, (e, a) in enumerate(pairs)] for i in range(3)
        ]
        self._factors = []
        return sparse_solver(sparse.block_array(blocks, format="csc"))(right.ravel()).reshape(3, -1)


# --- costs that switch along a solution: steps end there, and jumps are rejected --------------------------------------

_BISECTIONS = 40
_JUMP = 1e-6  # smallest jump of the running cost that is rejected, relative to its size along the solution


def with_kinks(equations: Any, solution: Any, times: np.ndarray, numbers: np.ndarray) -> np.ndarray:
    """Ends of steps, including the times at which the running cost changes branch; raises if it jumps."""
    if not equations.cost_switches:
        return times
    found = []
    grid = np.unique(np.concatenate([times, 0.5 * (times[1:] + times[:-1])]))
    values = equations.cost_with_switches(solution, grid, numbers)
    sides = _sides(equations, values)
    size = np.abs(values[:, -1]).max(initial=0.0)
    for k in np.flatnonzero(np.any(sides[1:] != sides[:-1], axis=1)):
        low, high = grid[k], grid[k + 1]
        for _ in range(_BISECTIONS):
            middle = 0.5 * (low + high)
            if not low < middle < high:
                break
            there = equations.cost_with_switches(solution, np.array([low, middle]), numbers)
            same = np.array_equal(*_sides(equations, there))
            low, high = (middle, high) if same else (low, middle)
        before, after = equations.cost_with_switches(solution, np.array([low, high]), numbers)[:, -1]
        if abs(after - before) > _JUMP * max(size, abs(before), abs(after)):
            raise InvalidProblemError(
                f"cost is not differentiable: it jumps from {before:.6g} to {after:.6g} at t = {high:.6g}, where "
                f"{equations.cost_switches[0].site} changes branch. Remedy: make cost continuous, for example with "
                "np.maximum, np.abs or np.tanh"
            )
        found.append(high)
    return np.unique(np.concatenate([times, found]))


def _sides(equations: Any, values: np.ndarray) -> np.ndarray:
    """For each time and switching function, the number of the interval between switching points with its value."""
    columns = []
    for j, switch in enumerate(equations.cost_switches):
        u = values[:, j]
        inside = np.floor((u - switch.phase) / switch.period) if switch.period else np.searchsorted(switch.points, u)
        columns.append(inside)
    return np.array(columns).T


# --- terminal values of the adjoint variables, consistent with the final cost -----------------------------------------

# .. math::
#
#     E^T \mu (T) = -(h_y + A^T \nu), \qquad \nu^T E = 0 .
#
# For index 1, :math:`\nu` removes the final cost of algebraic variables, which is not in the range of :math:`E^T`. For
# index 2 in Hessenberg form, where the equations without derivatives do not contain the variables without derivatives,
# it follows from the hidden constraint of the adjoint equations, :math:`0 = R^T (A^T \mu + g_y)` with :math:`E R = 0`
# (Y. Cao, S. Li, L. Petzold, R. Serban, SIAM J. Sci. Comput. 24, 2003, section 3).

_SINGULAR = 1e-10
_REMEDY = "Use a MechanicalSystem for a mechanism, or reduce the index first with daedal.reduce_index(problem)"


def terminal_values(
    e: Any, a: Any, h_y: np.ndarray, g_y: np.ndarray, *, constant: bool
) -> tuple[np.ndarray, Any, bool]:
    """E^T mu at the end, nu (None if zero), and whether constraints restrict differential variables (index 2).

    `e` and `a` are E^T and A^T, sparse for large problems; `h_y` and `g_y` are the gradients of final and running cost.
    `constant` states whether E is constant.
    """
    left, right = _null_space(e), _null_space(e.T)  # nu^T E = 0, and E R = 0
    if not right.shape[1]:
        return -h_y, None, False
    # Jacobian of the equations without derivatives with respect to the algebraic variables
    hidden = right.T @ (a @ left)
    if left.shape[1] == right.shape[1] and _is_regular(hidden):
        missing = right.T @ h_y
        if not np.any(missing):
            return -h_y, None, False
        nu = left @ _solved(hidden, -missing)
        return -(h_y + a @ nu), nu, False
    if not constant or _largest(hidden) > _SINGULAR * _largest(a):
        raise InvalidProblemError(
            f"gradient: the problem has index 2 or more, and is not in Hessenberg form of index 2. {_REMEDY}"
        )
    return *_of_index_2(e, a, h_y, g_y, left, right), True


def _of_index_2(e: Any, a: Any, h_y: np.ndarray, g_y: np.ndarray, left: Any, right: Any) -> tuple[np.ndarray, Any]:
    backwards = _pseudo_inverse(e)  # mu = E^{T+} w + the component in the kernel of E^T
    product = right.T @ (a @ (backwards @ (a @ left)))
    if not _is_regular(product):
        raise InvalidProblemError(f"gradient: the problem has index 3 or more. {_REMEDY}")
    if np.abs(right.T @ h_y).max(initial=0.0) > _SINGULAR * max(np.abs(h_y).max(initial=0.0), 1e-300):
        raise InvalidProblemError(
            "gradient: final_cost depends on variables of index 2 or more, whose final values follow from "
            f"derivatives of constraints. {_REMEDY}, or use them in cost"
        )
    nu = left @ _solved(product, right.T @ g_y - right.T @ (a @ (backwards @ h_y)))
    return -(h_y + a @ nu), nu


def _null_space(e: Any) -> Any:
    """Vectors x with e x = 0; for large matrices only unit vectors."""
    n = e.shape[0]
    if not sparse.issparse(e):
        return linalg.null_space(e)
    columns = np.flatnonzero(np.asarray(abs(e).sum(axis=0)).ravel() == 0.0)
    return sparse.csc_array((np.ones(columns.size), (columns, np.arange(columns.size))), shape=(n, columns.size))


def _pseudo_inverse(e: Any) -> Any:
    """Pseudo-inverse of E^T; raises an error if E is large and not diagonal."""
    if not sparse.issparse(e):
        return np.linalg.pinv(e)
    diagonal = e.diagonal()
    if abs(e - sparse.diags_array(diagonal)).max() > 0.0:
        raise InvalidProblemError(f"gradient: a problem of index 2 of this size must be semi-explicit. {_REMEDY}")
    return sparse.diags_array(np.where(diagonal == 0.0, 0.0, 1.0 / np.where(diagonal == 0.0, 1.0, diagonal)))


def _largest(matrix: Any) -> float:
    return float(abs(matrix).max()) if matrix.shape[0] and matrix.shape[1] else 0.0


def _is_regular(matrix: Any) -> bool:
    if matrix.shape[0] != matrix.shape[1]:
        return False
    if sparse.issparse(matrix):
        matrix = _equilibrated(matrix.tocsc())
        if matrix is None:
            return False
        try:
            pivots = np.abs(sparse_linalg.splu(matrix).U.diagonal())
        except RuntimeError:
            return False
        return bool(pivots.min() > _SINGULAR * pivots.max())
    sizes = np.linalg.svd(matrix, compute_uv=False)
    return bool(sizes[-1] > _SINGULAR * sizes[0])


def _equilibrated(matrix: Any) -> Any:
    """The matrix with rows scaled to size 1; None if one is zero."""
    sizes = abs(matrix).max(axis=1).toarray().ravel()
    return None if np.any(sizes == 0.0) else (sparse.diags_array(1.0 / sizes) @ matrix).tocsc()


def _solved(matrix: Any, right: np.ndarray) -> np.ndarray:
    return sparse_linalg.spsolve(matrix.tocsc(), right) if sparse.issparse(matrix) else np.linalg.solve(matrix, right)


# --- backward integration ---------------------------------------------------------------------------------------------

_LAYERS = 24  # maximum number of times that the last step is halved towards the end
_RESOLVED = 0.1  # product of step and fastest rate below which all rates are resolved
# ratio of the difference between the results with steps and with halved steps to the error of the latter: 2^3 - 1 for
# stiff problems
_FINER = 7.0
_TOGETHER = 32  # number of steps halved together
_MOST_HALVINGS = 6
_PORTION = 4e6  # maximum number of matrix entries in a batch of steps


def graded(times: np.ndarray, fastest: float) -> np.ndarray:
    """Ends of steps, where the last one is subdivided towards the end of the run until all rates are resolved."""
    times = np.unique(times)
    last = times[-1] - times[-2]
    halvings = np.clip(np.ceil(np.log2(max(last * fastest, 1.0) / _RESOLVED)), 1.0, _LAYERS)
    return np.concatenate([times[:-1], times[-1] - last * 0.5 ** np.arange(1.0, halvings + 1.0), times[-1:]])


class SweepPart(NamedTuple):
    """Result of some steps: E^T mu at their start, and their contributions to the cost and its gradient."""

    w: np.ndarray
    value: float
    gradient: np.ndarray


class AdjointSweep:
    """Backward integration with its results so far."""

    def __init__(self, equations: LinearisedRun, rtol: float):
        self._equations, self._rtol = equations, rtol
        self._numbers = np.zeros(0)
        self._steps = steps_for(equations, rtol)
        self.value = 0.0
        self.gradient = np.zeros(len(equations.labels))
        self.w = np.zeros(equations.n)
        self.fastest = np.inf  # bound for the rates at the end
        self.is_bound = False  # whether constraints restrict the initial values of differential variables

    def take(self, params: Any) -> None:
        """Use the given parameters and inputs from now on."""
        self._numbers = self._equations.numbers(params)

    def begin(self, solution: Any, t: float, slope: np.ndarray | None = None) -> None:
        """Start at the end of the run: terminal values consistent with the final cost.

        `slope` is the gradient of a further cost of the unknowns at the end.
        """
        point = self._point(solution, t)
        h_y, h_p, h = self._equations.final(t, point, self._numbers)
        self.value += h
        self.gradient += h_p
        self._restart(t, point, h_y if slope is None else h_y + slope)

    def add_cost(self, solution: Any, t: float, slope: np.ndarray) -> None:
        """Add a cost of the unknowns at the current time `t`, with the given gradient.

        If only inputs jump, the gradient is zero, and adjoint variables of index 2 are made consistent with the inputs.
        """
        self._restart(t, self._point(solution, t), slope - self.w)

    def _point(self, solution: Any, t: float) -> np.ndarray:
        return np.concatenate(self._equations.points(solution, np.array([t])), axis=1)[0]

    def _restart(self, t: float, point: np.ndarray, slope: np.ndarray) -> None:
        equations = self._equations
        values = equations.evaluated(np.array([t]), point[None], self._numbers)[0]
        e, a = equations.transposed(values)
        running = equations.slopes(values)
        self.w, nu, self.is_bound = terminal_values(e, a, slope, running, constant=equations.is_constant)
        self.fastest = _fastest(e, a)
        if nu is not None:
            self.gradient += equations.jump(t, np.concatenate([point, nu]), self._numbers)

    def over(self, solution: Any, times: np.ndarray) -> None:
        """Integrate backward over the steps between increasing `times`, in batches, starting with the last.

        Every batch is computed with every second step, with all steps, and with halved steps until its result
        converges.
        """
        times = with_kinks(self._equations, solution, times, self._numbers)
        portion = min(_TOGETHER, max(1, int(_PORTION / self._equations.n**1.5)))
        for end in range(times.size - 1, 0, -portion):
            grid = times[max(end - portion, 0) : end + 1]
            coarse = self._portion(solution, np.unique(np.append(grid[::-2], grid[0])))
            for halving in range(_MOST_HALVINGS):
                if halving or grid.size == 2:
                    grid = np.sort(np.concatenate([grid, 0.5 * (grid[1:] + grid[:-1])]))
                fine = self._portion(solution, grid)
                settled = self._is_settled(coarse, fine)
                coarse = fine
                if settled:
                    break
            self.w = coarse.w
            self.value += coarse.value
            self.gradient += coarse.gradient
        if not (np.isfinite(self.w).all() and np.isfinite(self.gradient).all()):
            raise IntegrationError("gradient: the equations or a cost cannot be evaluated along the solution", solution)

    def _is_settled(self, coarse: SweepPart, fine: SweepPart) -> bool:
        """Whether the last halving changed the result by less than the tolerance, given the error ratio."""
        near = 10.0 * _FINER * self._rtol
        gradient = np.abs(self.gradient) + np.abs(fine.gradient)
        return (
            np.abs(fine.w - coarse.w).max(initial=0.0) <= near * np.abs(fine.w).max(initial=0.0)
            and abs(fine.value - coarse.value) <= near * (abs(self.value) + abs(fine.value))
            and bool(np.all(np.abs(fine.gradient - coarse.gradient) <= near * gradient))
        )

    def _portion(self, solution: Any, times: np.ndarray) -> SweepPart:
        equations, numbers = self._equations, self._numbers
        sizes = np.diff(times)
        places = times[1:, None] - sizes[:, None] * NODES
        places[:, -1] = times[:-1]
        flat = places.ravel()
        points = np.concatenate(equations.points(solution, flat), axis=1)
        values = equations.evaluated(flat, points, numbers)
        slopes = equations.slopes(values).reshape(sizes.size, 3, -1)
        known = sizes[:, None, None] * np.einsum("ij,kjn->kin", TABLEAU, slopes)
        w, mu = self._steps.back(values, sizes, known, self.w)
        weights = np.multiply.outer(sizes, WEIGHTS).ravel()
        points = np.concatenate([points, mu.reshape(flat.size, -1)], axis=1)
        return SweepPart(w, float(weights @ values[:, -1]), equations.by_parameters(flat, weights, points, numbers))


def _fastest(e: Any, a: Any) -> float:
    """Bound for the rates of E^T mu' = A^T mu; infinite if there are algebraic variables."""
    sizes, rates = (np.asarray(abs(matrix).sum(axis=1)).ravel() for matrix in (e, a))
    if np.any(sizes != np.abs(e.diagonal())) or np.any(sizes == 0.0):
        return float(np.inf)
    return float(np.max(rates / sizes))
