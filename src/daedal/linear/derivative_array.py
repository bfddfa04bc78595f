"""Derivative arrays of A(t) x' + B(t) x = f(t).

With Taylor coefficients c_i = c^(i)/i! of everything, the equations of orders 0 to j - 1 are

    script A_j (x_1, ..., x_j) = -script B_j x_0 + (f_0, ..., f_{j-1}),

where block (i, l) of script A_j is l A_{i-l+1} + B_{i-l} (Brenan, Campbell and Petzold, (2.4.6)).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from daedal.linear.rank import RankDecision, decision_table, rank_decision
from daedal.linear.scaling import scale_pencil
from daedal.linear.words import Shown
from daedal.tabular import Tabular


@dataclass(frozen=True, repr=False)
class DerivativeArray(Shown):
    """The first `j` equations of the array at one time, and what their ranks say.

    Attributes
    ----------
    t : float
    j : int
        How many: the equations and their first j - 1 derivatives.
    A : numpy.ndarray, shape (j m, j n)
        The matrix of the unknowns x_1, ..., x_j, multiples of the derivatives of x.
    B : numpy.ndarray, shape (j m, n)
        The matrix of x.
    f : numpy.ndarray, shape (j m,)
        The right-hand sides.
    """

    t: float
    j: int
    A: np.ndarray
    B: np.ndarray
    f: np.ndarray
    tolerance: float

    @property
    def n(self) -> int:
        """The number of unknowns."""
        return self.B.shape[1]

    @cached_property
    def rank(self) -> RankDecision:
        """The rank of A."""
        return rank_decision(self.A, tolerance=self.tolerance, what=f"the array of {self.j}")

    @cached_property
    def tail(self) -> RankDecision:
        """The rank of A without the columns of x'."""
        scale = self.rank.singular_values[0] if self.rank.singular_values.size else 0.0
        name = f"the array of {self.j} without x'"
        return rank_decision(self.A[:, self.n :], scale=scale, tolerance=self.tolerance, what=name)

    @cached_property
    def all_columns(self) -> RankDecision:
        """The rank of [A, B]."""
        name = f"the array of {self.j} with x"
        return rank_decision(np.hstack([self.A, self.B]), tolerance=self.tolerance, what=name)

    @property
    def decisions(self) -> tuple[RankDecision, ...]:
        """These three."""
        return self.rank, self.tail, self.all_columns

    @property
    def clear(self) -> bool:
        """Whether the numbers decide them."""
        return all(decision.clear for decision in self.decisions)

    @property
    def one_full(self) -> bool:
        """Whether the array determines x': rank A = n + rank of A without the columns of x'."""
        return self.rank.rank == self.n + self.tail.rank

    @property
    def full_row_rank(self) -> bool:
        """Whether no combination of the equations is without unknowns."""
        return self.all_columns.rank == len(self.B)

    @cached_property
    def constraints(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, RankDecision]:
        """What the array says of x alone, after x', x'', ... have been eliminated (theorem 2.4.8).

        Returns
        -------
        W, g : numpy.ndarray
            Orthonormal rows: W x = g.
        rest : numpy.ndarray
            Combinations of right-hand sides that have to vanish.
        decision : RankDecision
            Their number.
        """
        left = np.linalg.svd(self.A)[0][:, self.rank.rank :].T
        matrix, values = left @ self.B, left @ self.f
        U, s, Vt = np.linalg.svd(matrix) if len(matrix) else (np.zeros((0, 0)), np.zeros(0), np.eye(self.n))
        scale = max(float(np.linalg.norm(self.B, 2)), np.finfo(float).tiny)
        decision = rank_decision(
            s, scale=scale, tolerance=self.tolerance, what=f"constraints from the array of {self.j}"
        )
        r = decision.rank
        return Vt[:r], (U.T @ values)[:r] / s[:r], (U.T @ values)[r:], decision

    def title(self) -> str:
        found = "determines x' (1-full)" if self.one_full else "does not determine x' (not 1-full)"
        return f"Derivative array of {self.j} at t = {self.t:g}: {found}"

    def tables(self) -> list[Tabular]:
        return [decision_table(self.decisions)]

    def __repr__(self) -> str:
        return f"<{self.title()}>"


def determine_rates(arrays: Sequence[DerivativeArray]) -> bool:
    """Whether arrays at several times are 1-full, with the same rank."""
    return all(array.one_full for array in arrays) and len({array.rank.rank for array in arrays}) == 1


def array_matrices(A: np.ndarray, B: np.ndarray, f: np.ndarray, j: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """script A_j, script B_j and the right-hand sides from Taylor coefficients, (2.4.6)."""
    m, n = A.shape[1:]
    matrix = np.zeros((j, m, j, n))
    for i in range(j):
        for l in range(1, min(i + 1, j) + 1):
            matrix[i, :, l - 1] = l * A[i - l + 1] + (B[i - l] if i >= l else 0.0)
    return matrix.reshape(j * m, j * n), B[:j].reshape(j * m, n), f[:j].ravel()


def balanced_array(
    A: np.ndarray, B: np.ndarray, f: np.ndarray, j: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
    """The same with equations and unknowns of each order in units of their own; and the unit of x_1.

    The factors l in the blocks, and coefficients that change fast, would make small singular values of large arrays.
    """
    m, n = A.shape[1:]
    matrix, columns, right = array_matrices(A, B, f, j)
    blocks = np.linalg.norm(matrix.reshape(j, m, j, n), axis=(1, 3))
    scaled = scale_pencil(blocks, np.zeros_like(blocks))
    rows, units = np.repeat(scaled.rows * scaled.time, m), np.repeat(scaled.columns, n)
    return matrix * rows[:, None] * units, columns * rows[:, None], right * rows, float(scaled.columns[0])
