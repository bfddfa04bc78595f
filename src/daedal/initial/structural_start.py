"""Consistent values of index-1 and index-2 problems from their structure, by linear systems of the problem's size.

With Pryce's offsets c_i, d_j of 0 and 1 (:mod:`daedal.index.structure.signature`) the equations fall into three stages,
each with a submatrix of the system Jacobian J_ij = d f_i / d x_j^(d_j - c_i):

    f_i = 0, c_i = 1:                          the constraints of the states, the x_j with d_j = 1;
    f_i = 0, c_i = 0,   f_i' = 0, c_i = 1:     these determine x_j' of the states, and x_j itself where d_j = 0;
    f_i' = 0, c_i = 0,  f_i'' = 0, c_i = 1:    these determine x_j' where d_j = 0 (J. D. Pryce, Numerical Algorithms 19,
                                               1998, 195-211, for Taylor series of any order).

The stages are exact and sparse. If J is singular at a point, though not structurally, a matrix Z with Z J = 0 combines
the second stage F into additional constraints Z F = 0 on the states; Z F' = 0 completes the stage. Everything else is
handled by the derivative array (:mod:`daedal.initial.jet`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.linalg import lapack, lstsq, qr
from scipy.sparse.linalg import LinearOperator, onenormest, splu

from daedal.errors import StructurallySingularError
from daedal.index.structure.derivative_array import NonlinearDerivativeArray
from daedal.index.structure.equilibration import equilibrate, scaled
from daedal.index.structure.signature import DulmageMendelsohn, StructuralSignature
from daedal.index.structure.system_equations import SystemEquations
from daedal.initial.newton_start import InitialResult, weighted_size

_LARGEST_DENSE = 100  # number of unknowns up to which dense factors are faster
_SINGULAR = 1e-12  # reciprocal condition number below which a scaled matrix counts as singular
_ITERATIONS = 12
_CONVERGED = 1e-14  # correction, relative to the value, up to which it counts as round-off
_ROUNDOFF = 1e2 * float(np.finfo(float).eps)
_LARGEST_RANK = 600  # number of unknowns up to which ranks are computed, with dense matrices
_RANK, _ZERO = 1e-8, 1e-12  # pivots relative to the largest one: the smallest nonzero pivot, and the round-off of zero
_LEFT = 1e-8  # residual, relative to the terms of an equation, above which a start is not found
_SMALL = 1e-4  # value relative to the largest one, in balanced units, below which digits are ignored
_EQUAL = 1e-10  # last correction, relative to the value, below which an iteration has converged
_VISIBLE = 1e4  # size assumed for a zero value, in units of its weight
_SLOWEST = 0.5  # ratio of successive corrections above which an iteration is stopped


class StructuralStart:
    """The stages of a problem with its parameters."""

    def __init__(self, structure: _StartStructure, params: np.ndarray | None):
        self._structure, self._params = structure, params

    @classmethod
    def of(cls, equations: SystemEquations) -> StructuralStart | None:
        """The stages of a problem, built once for all parameters; None if its structure does not fit."""
        with equations.lock:
            if cls not in equations.levels:
                equations.levels[cls] = _made(equations)
            structure = equations.levels[cls]
        return None if structure is None else cls(structure, equations.params)

    @property
    def has_hidden_constraints(self) -> bool:
        """Whether some equations are differentiated: index 2."""
        return bool(self._structure.hidden.size)

    def solve(self, t: float, y: np.ndarray, yp: np.ndarray, weights: np.ndarray, reach: float) -> InitialResult | None:
        """Consistent y and y' near given ones: states are unchanged, or change as little as the constraints require.

        None if the stages fail, or if states change by a weighted size of more than `reach`.
        """
        stages = _Stages(self._structure, self._params, t, y, yp)
        with np.errstate(all="ignore"):
            if not stages.constrain(weights, reach):
                return None
            if stages.determine(weights):
                found = stages.differentiate()
            else:
                stages = _Stages(self._structure, self._params, t, y, yp)
                found = y.size <= _LARGEST_RANK and stages.constrain(weights, reach) and stages.combine(weights, reach)
        if not found:
            return None
        return InitialResult(stages.y, stages.yp, True, 0.0, guesses=self._structure.guesses)


class _StartStructure:
    """Data of the equations: offsets, and the stages as machine code."""

    def __init__(self, equations: SystemEquations, signature: StructuralSignature):
        c, d, n = signature.c, signature.d, equations.n
        self.n, self.states, self.hidden = n, d == 1, np.flatnonzero(c == 1)
        leading = [(i, j, k) for i, row in enumerate(signature.leading()) for j, k in row.items()]
        self.rows, self.columns = (np.array([place[k] for place in leading]) for k in (0, 1))
        once = [equations.equation(i, int(c[i])) for i in range(n)]
        self.constraints = equations.evaluator([equations.equation(int(i)) for i in self.hidden])
        self.values = equations.evaluator(once)
        self.entries = equations.evaluator([equations.partials[i][j, k] for i, j, k in leading])
        self.rates = equations.evaluator(equations.rates(once))
        self.guesses = _hidden_unknowns(signature)
        self.array = NonlinearDerivativeArray(equations, c + 1)
        place = {entry: k for k, entry in enumerate(self.array.rows)}
        self.once = np.array([place[i, int(c[i])] for i in range(n)])
        self.twice = np.array([place[i, int(c[i]) + 1] for i in range(n)])
        self.highest = d * n + np.arange(n)


def _hidden_unknowns(signature: StructuralSignature) -> np.ndarray:
    """The unknowns determined only by hidden constraints."""
    free = np.flatnonzero(signature.d == 0)
    place = {int(j): k for k, j in enumerate(free)}
    stated = [row for row, c in zip(signature.sigma, signature.c, strict=True) if c == 0 and not any(row.values())]
    parts = DulmageMendelsohn.of([[place[j] for j in row if j in place] for row in stated], free.size)
    found = np.zeros(signature.d.size, dtype=bool)
    found[free[parts.under.columns]] = bool(np.any(signature.c))
    return found


def _made(equations: SystemEquations) -> _StartStructure | None:
    try:
        signature = StructuralSignature.of(equations)
    except StructurallySingularError:
        return None
    applies = equations.order == 1 and signature.d.max(initial=0) <= 1 and signature.c.max(initial=0) <= 1
    return _StartStructure(equations, signature) if applies and not signature.vanished else None


class _Stages:
    """The values of x, x' while the stages are solved at one start."""

    def __init__(self, structure: _StartStructure, params: Any, t: float, y: np.ndarray, yp: np.ndarray):
        self.structure, self.params, self.t = structure, params, t
        self.y, self.yp = y.copy(), yp.copy()
        self._factors: _StartFactors | None = None

    def _at(self, code: Any) -> np.ndarray:
        """Evaluate machine code at the current values, with zero second derivatives."""
        found: np.ndarray = code(self.t, np.array([self.y, self.yp, np.zeros(self.structure.n)]), self.params)
        return found

    def _jacobian(self) -> sp.csr_array:
        made = self.structure
        return sp.csr_array((self._at(made.entries), (made.rows, made.columns)), shape=(made.n, made.n))

    def _matrix(self) -> Any:
        """System Jacobian, dense if small and sparse otherwise."""
        made = self.structure
        if made.n > _LARGEST_DENSE:
            return self._jacobian()
        matrix = np.zeros((made.n, made.n))
        matrix[made.rows, made.columns] = self._at(made.entries)
        return matrix

    def constrain(self, weights: np.ndarray, reach: float) -> bool:
        """Correct the states so that they satisfy their constraints; return whether they do."""
        made = self.structure
        if not made.hidden.size:
            return True
        states, last, given = np.flatnonzero(made.states), np.inf, self.y.copy()
        for _ in range(_ITERATIONS):
            residual = self._at(made.constraints)
            matrix = self._jacobian()[made.hidden][:, states]
            if not (np.isfinite(residual).all() and np.isfinite(matrix.data).all()):
                return False
            if np.all(np.abs(residual) <= _ROUNDOFF * (abs(matrix) @ np.abs(self.y[states]))):
                return True
            change = _shortest(matrix, residual, weights[states]) if reach > 0.0 else None
            if change is None:
                return False
            self.y[states] -= change
            if not weighted_size(self.y - given, weights) <= reach:
                return False
            size = float(np.max(np.abs(change) / weights[states]))
            if not size <= _SLOWEST * last:
                return size <= _EQUAL * _VISIBLE
            last = size
        return False

    def determine(self, weights: np.ndarray) -> bool:
        """Compute the derivatives of the states, and the other unknowns; return whether the iteration has converged."""
        last, made = np.inf, self.structure
        for _ in range(_ITERATIONS):
            residual, matrix = self._at(made.values), self._matrix()
            self._factors = _StartFactors.of(matrix) if np.isfinite(residual).all() else None
            if self._factors is None:
                return False
            size = self._change(self._factors.solve(residual), weights, self._factors.columns)
            if size <= _CONVERGED or not size <= _SLOWEST * last:
                return size <= _EQUAL
            last = size
        return False

    def _highest(self) -> np.ndarray:
        """The unknowns of the second stage."""
        return np.where(self.structure.states, self.yp, self.y)

    def _change(self, change: np.ndarray, weights: np.ndarray, units: np.ndarray) -> float:
        """Subtract a change from the highest derivatives, and return its relative size; `units` balance the
        equations."""
        states = self.structure.states
        self.yp[states] -= change[states]
        self.y[~states] -= change[~states]
        highest = np.abs(self._highest())
        sizes = np.maximum(
            np.maximum(highest, _VISIBLE * weights), _SMALL * units * np.max(highest / units, initial=0.0)
        )
        size = np.abs(change) / sizes
        return float(np.max(np.where(np.isfinite(size), size, np.inf), initial=0.0))

    def differentiate(self) -> bool:
        """Compute the derivatives of the unknowns that are not states; return whether they are finite."""
        free = ~self.structure.states
        if free.any():
            self.yp[free] = 0.0
            assert self._factors is not None
            self.yp[free] = -self._factors.solve(self._at(self.structure.rates))[free]
        return bool(np.isfinite(self.yp).all())

    # --- singular system Jacobian -------------------------------------------------------------------------------------

    def combine(self, weights: np.ndarray, reach: float) -> bool:
        """Solve the second stage and the derivatives of its combinations Z F; return whether this succeeded."""
        made, last, given = self.structure, np.inf, self.y.copy()
        states = np.flatnonzero(made.states)
        for _ in range(_ITERATIONS):
            once, twice, matrices = self._array()
            if not all(np.isfinite(values).all() for values in (once, twice, *matrices)):
                return False
            of_highest, of_states, further = matrices
            rows, columns = equilibrate(of_highest)
            combining = _left_kernel(rows[:, None] * of_highest * columns)
            if combining is None:
                return False
            combining = combining * rows
            sizes = np.abs(of_states) @ np.maximum(np.abs(self.y[states]), weights[states])
            violation, terms = (
                combining @ once,
                np.abs(combining) @ (sizes + np.abs(of_highest) @ np.abs(self._highest())),
            )
            moving = np.any(np.abs(violation) > _ROUNDOFF * terms)
            if moving:
                change = _shortest(sp.csr_array(combining @ of_states), violation, weights[states]) if reach else None
                if change is None:
                    return False
                self.y[states] -= change
                if not weighted_size(self.y - given, weights) <= reach:
                    return False
                once = once - of_states @ change
            added = combining @ further * columns
            sizes = 1.0 / np.maximum(np.abs(added).max(axis=1, initial=0.0), 1e-300)
            matrix = np.vstack([rows[:, None] * of_highest * columns, sizes[:, None] * added])
            right = np.concatenate([rows * once, sizes * (combining @ twice)])
            scaled_change, _, rank, _ = lstsq(matrix, right, cond=_RANK, lapack_driver="gelsy")
            if rank < made.n:
                return False
            size = self._change(columns * scaled_change, weights, columns)
            if not moving and (size <= _CONVERGED or not size <= _SLOWEST * last):
                left = np.abs(matrix @ scaled_change - right) <= _LEFT * (np.abs(matrix) @ np.abs(scaled_change) + 1.0)
                return bool(size <= _EQUAL and left.all()) and self._slopes(
                    rows[:, None] * of_highest * columns, rows, columns
                )
            last = size
        return False

    def _array(self) -> tuple[np.ndarray, np.ndarray, tuple[np.ndarray, ...]]:
        """The second stage F and its derivative F', with Jacobians of F for its unknowns and the states, and of F' for
        its unknowns."""
        made = self.structure
        jet = np.zeros((made.array.highest + 1, made.n))
        jet[:2] = self.y, self.yp
        residual = made.array.residual(self.t, jet, self.params)
        jacobian = made.array.jacobian(self.t, jet, self.params)
        once, twice = jacobian[made.once], jacobian[made.twice]
        states = np.flatnonzero(made.states)
        matrices = once[:, made.highest], once[:, states], twice[:, made.highest]
        return residual[made.once], residual[made.twice], tuple(matrix.toarray() for matrix in matrices)

    def _slopes(self, matrix: np.ndarray, rows: np.ndarray, columns: np.ndarray) -> bool:
        """Set the derivatives of unknowns that are not states, with minimum norm; return whether they are finite."""
        free = ~self.structure.states
        if free.any():
            self.yp[free] = 0.0
            rates = lstsq(matrix, rows * self._at(self.structure.rates), cond=_RANK, lapack_driver="gelsy")[0]
            self.yp[free] = -(columns * rates)[free]
        return bool(np.isfinite(self.yp).all())


def _left_kernel(matrix: np.ndarray) -> np.ndarray | None:
    """An orthonormal basis of the rows z with z A = 0; None if the rank is unclear, or zero."""
    q, r, _ = qr(matrix, pivoting=True)
    sizes = np.abs(np.diag(r))
    rank = int(np.sum(sizes > _RANK * sizes[0]))
    if rank in (0, len(matrix)) or np.any(sizes[rank:] > _ZERO * sizes[0]):
        return None
    return q[:, rank:].T


class _StartFactors:
    """Dense or sparse factors of a matrix with scaled rows and columns."""

    def __init__(self, rows: np.ndarray, columns: np.ndarray, factors: Any):
        self._rows, self.columns, self._of = rows, columns, factors

    @classmethod
    def of(cls, matrix: Any) -> _StartFactors | None:
        """Factorise a matrix; None if it is nearly singular."""
        n, is_dense = matrix.shape[0], isinstance(matrix, np.ndarray)
        if not np.isfinite(matrix if is_dense else matrix.data).all():
            return None
        if n <= _LARGEST_DENSE:
            dense = matrix if is_dense else matrix.toarray()
            rows, columns = equilibrate(dense)
            dense = scaled(dense, rows, columns)
            lu, pivots, _ = lapack.dgetrf(dense)
            return cls(rows, columns, (lu, pivots)) if reciprocal_condition(dense, lu) > _SINGULAR else None
        rows, columns = equilibrate(matrix)
        balanced = sp.csc_array(scaled(matrix, rows, columns))
        try:
            factors = splu(balanced)
        except RuntimeError:  # exactly singular
            return None
        transposed = LinearOperator((n, n), factors.solve, rmatvec=lambda x: factors.solve(x, "T"), dtype=float)
        size = abs(balanced).sum(axis=0).max() * onenormest(transposed)
        return cls(rows, columns, factors) if size * _SINGULAR < 1.0 else None

    def solve(self, right: np.ndarray) -> np.ndarray:
        scaled_right = self._rows * right
        if isinstance(self._of, tuple):
            return self.columns * lapack.dgetrs(*self._of, scaled_right)[0]
        return self.columns * self._of.solve(scaled_right)


def _shortest(matrix: sp.csr_array, right: np.ndarray, weights: np.ndarray) -> np.ndarray | None:
    """The solution of A x = b with the smallest 2-norm of x / weights; None if the rows of A are dependent."""
    weighted = sp.csr_array(scaled(matrix, np.ones(matrix.shape[0]), weights))
    factors = _StartFactors.of(sp.csr_array(weighted @ weighted.T))
    return None if factors is None else weights * (weighted.T @ factors.solve(right))


def reciprocal_condition(matrix: np.ndarray, lu: np.ndarray | None = None) -> float:
    """An estimate of 1 / (|A| |A^-1|) in the 1-norm; 0 for a singular matrix."""
    lu = lapack.dgetrf(matrix)[0] if lu is None else lu
    return float(lapack.dgecon(lu, np.abs(matrix).sum(axis=0).max())[0]) if np.diag(lu).all() else 0.0
