"""Derivative arrays of A(t) x' + B(t) x = f(t).

With Taylor coefficients c_i = c^(i)/i! of all functions, the equations of orders 0 to j - 1 are

    script A_j (x_1, ..., x_j) = -script B_j x_0 + (f_0, ..., f_{j-1}),

where block (i, l) of script A_j is l A_{i-l+1} + B_{i-l} (Brenan, Campbell and Petzold, (2.4.6)).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from daedal.common.tabular import Tabular, plural
from daedal.index.linear.rank import (
    RankDecision,
    TitledTables,
    decision_table,
    numbers,
    rank_decision,
    scale_pencil,
)

if TYPE_CHECKING:
    pass


@dataclass(frozen=True, repr=False)
class DerivativeArray(TitledTables):
    """The derivative array of size `j` at one time, with its ranks.

    Attributes
    ----------
    t : float
    j : int
        The size of the array: it contains the original equations and their first j - 1 derivatives.
    A : numpy.ndarray, shape (j m, j n)
        The matrix of the unknowns x_1, ..., x_j, multiples of the derivatives of x.
    B : numpy.ndarray, shape (j m, n)
        The matrix of x.
    f : numpy.ndarray, shape (j m,)
        The right-hand sides.

    Examples
    --------
    >>> import daedal
    >>> system = daedal.linear.TimeVarying(lambda t: [[1, t], [0, 0]], lambda t: [[0, 0], [1, t]], n=2)
    >>> array = system.array(0.5, 2)
    >>> print(array.j, array.A.shape)
    2 (4, 4)
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
        return rank_decision(self.A, tolerance=self.tolerance, what=f"the array of size {self.j}")

    @cached_property
    def tail(self) -> RankDecision:
        """The rank of A without the columns of x'."""
        scale = self.rank.singular_values[0] if self.rank.singular_values.size else 0.0
        name = f"the array of size {self.j} without x'"
        return rank_decision(self.A[:, self.n :], scale=scale, tolerance=self.tolerance, what=name)

    @cached_property
    def all_columns(self) -> RankDecision:
        """The rank of [A, B]."""
        name = f"the array of size {self.j} with x"
        return rank_decision(np.hstack([self.A, self.B]), tolerance=self.tolerance, what=name)

    @property
    def decisions(self) -> tuple[RankDecision, ...]:
        """The decisions `rank`, `tail` and `all_columns`."""
        return self.rank, self.tail, self.all_columns

    @property
    def clear(self) -> bool:
        """Whether all rank decisions are unambiguous."""
        return all(decision.clear for decision in self.decisions)

    @property
    def one_full(self) -> bool:
        """Whether the array determines x': rank A = n + rank of A without the columns of x'."""
        return self.rank.rank == self.n + self.tail.rank

    @property
    def full_row_rank(self) -> bool:
        """Whether every combination of the equations contains an unknown."""
        return self.all_columns.rank == len(self.B)

    @cached_property
    def constraints(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, RankDecision]:
        """The constraints on x alone, after eliminating x', x'', ... (theorem 2.4.8).

        Returns
        -------
        W, g : numpy.ndarray
            Orthonormal rows: W x = g.
        rest : numpy.ndarray
            Combinations of right-hand sides that must vanish.
        decision : RankDecision
            The decision about the number of constraints.
        """
        left = np.linalg.svd(self.A)[0][:, self.rank.rank :].T
        matrix, values = left @ self.B, left @ self.f
        U, s, Vt = np.linalg.svd(matrix) if len(matrix) else (np.zeros((0, 0)), np.zeros(0), np.eye(self.n))
        scale = max(float(np.linalg.norm(self.B, 2)), np.finfo(float).tiny)
        decision = rank_decision(
            s, scale=scale, tolerance=self.tolerance, what=f"constraints from the array of size {self.j}"
        )
        r = decision.rank
        return Vt[:r], (U.T @ values)[:r] / s[:r], (U.T @ values)[r:], decision

    def title(self) -> str:
        found = "determines x' (1-full)" if self.one_full else "does not determine x' (not 1-full)"
        return f"Derivative array of size {self.j} at t = {self.t:g}: {found}"

    def tables(self) -> list[Tabular]:
        return [decision_table(self.decisions)]


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
    """The array with equations and unknowns of each order in balanced units; also returns the unit of x_1.

    In the original units the factors l in the blocks, and rapidly changing coefficients, would cause small singular
    values of large arrays.
    """
    m, n = A.shape[1:]
    matrix, columns, right = array_matrices(A, B, f, j)
    blocks = np.linalg.norm(matrix.reshape(j, m, j, n), axis=(1, 3))
    scaled = scale_pencil(blocks, np.zeros_like(blocks))
    rows, units = np.repeat(scaled.rows * scaled.time, m), np.repeat(scaled.columns, n)
    return matrix * rows[:, None] * units, columns * rows[:, None], right * rows, float(scaled.columns[0])


# --- solvability of a time-varying system, which the pencils at fixed times do not determine --------------------------


@dataclass(frozen=True, repr=False)
class Solvability(TitledTables):
    """Properties of derivative arrays and pencils at several times.

    Attributes
    ----------
    times : numpy.ndarray
    local_indices : tuple of (int or None)
        The index of the pencil at each time; None where it is singular.
    ranks : tuple of int
        The rank of the array of size n + 1 at each time.
    one_full : tuple of bool
        Whether that array determines x'.
    full_row_rank : tuple of bool
        Whether every combination of equations in the arrays of size 1 to n + 1 contains unknowns.
    index : int or None
        The index over all times.
    decisions : tuple of RankDecision
        The ambiguous decisions.

    Examples
    --------
    >>> import daedal
    >>> system = daedal.linear.TimeVarying(lambda t: [[1, t], [0, 0]], lambda t: [[0, 0], [1, t]], n=2)
    >>> found = system.solvability([0.0, 0.5, 1.0])
    >>> print(found.solvable, found.regular)
    True False
    """

    times: np.ndarray
    local_indices: tuple[int | None, ...]
    ranks: tuple[int, ...]
    one_full: tuple[bool, ...]
    full_row_rank: tuple[bool, ...]
    index: int | None
    decisions: tuple[RankDecision, ...]

    @property
    def regular(self) -> bool:
        """Whether the pencil is regular at all times, as implicit methods require."""
        return all(index is not None for index in self.local_indices)

    @property
    def solvable(self) -> bool:
        """Whether all conditions hold: the array is 1-full with constant rank and, including x, has full row rank."""
        return all(self.one_full) and all(self.full_row_rank) and len(set(self.ranks)) == 1

    @property
    def clear(self) -> bool:
        """Whether all rank decisions are unambiguous."""
        return not self.decisions

    def title(self) -> str:
        verdict = f"solvable, index {self.index}" if self.solvable else "not solvable"
        singular = sum(index is None for index in self.local_indices)
        pencil = (
            "regular" if singular == 0 else f"singular at {'all' if singular == self.times.size else singular} of them"
        )
        doubt = "" if self.clear else f"; unclear: {self.decisions[0]}"
        return f"At {plural(self.times.size, 'time')}: {verdict}; the pencil is {pencil}{doubt}"

    def tables(self) -> list[Tabular]:
        rows = [
            (f"{t:g}", "singular" if local is None else local, rank, "yes" if full else "no", "yes" if rows else "no")
            for t, local, rank, full, rows in zip(
                self.times, self.local_indices, self.ranks, self.one_full, self.full_row_rank
            )
        ]
        return [
            Tabular("rrrrr", rows, ("t", "local index", "rank of array", "determines x'", ("no redundant equation")))
        ]


# --- consistent initial values of time-varying systems, from the derivative array -------------------------------------


@dataclass(frozen=True, repr=False)
class InitialValues(TitledTables):
    """x and x' at one time, as determined by the equations and the given entries.

    Attributes
    ----------
    t : float
    x, rates : numpy.ndarray
        x and x'. Free entries are chosen to minimise the norm of all derivatives.
    free : tuple of str
        Undetermined entries, such as ``x[0]`` or ``x[1]'``.
    decision : RankDecision
        The rank of the equations.

    Examples
    --------
    >>> import daedal
    >>> system = daedal.linear.TimeVarying(lambda t: [[1, t], [0, 0]], lambda t: [[0, 0], [1, t]], [1, 2], n=2)
    >>> start = system.initial_values(0.5)
    >>> print(start.x.round(4), start.free)
    [ 2.5 -1. ] ()
    """

    t: float
    x: np.ndarray
    rates: np.ndarray
    free: tuple[str, ...]
    decision: RankDecision
    names: tuple[str, ...]

    def title(self) -> str:
        free = f"free: {', '.join(self.free)}" if self.free else "all determined"
        return f"Initial values at t = {self.t:g}, {free}"

    def tables(self) -> list[Tabular]:
        rows = [(name, f"{x:.6g}", f"{rate:.6g}") for name, x, rate in zip(self.names, self.x, self.rates)]
        return [Tabular("lrr", rows, ("unknown", "value", "derivative"))]


# --- completions: ordinary differential equations that contain all solutions of a time-varying system -----------------


@dataclass(frozen=True, repr=False)
class Completion(TitledTables):
    """``x' = G x + g`` at one time: the least-squares completion.

    x' is taken from the least-squares solution of the derivative array (Brenan, Campbell and Petzold, (2.4.7); I. Okay,
    S. L. Campbell, P. Kunkel, Linear Algebra and its Applications 425, 2007).

    Attributes
    ----------
    t : float
    G, g : numpy.ndarray
    j : int
        Size of the derivative array.
    additional : numpy.ndarray, shape (a, a)
        The additional dynamics: a violation e of the constraints obeys e' = `additional` e.

    Examples
    --------
    >>> import daedal
    >>> system = daedal.linear.TimeVarying(lambda t: [[1, t], [0, 0]], lambda t: [[0, 0], [1, t]], n=2)
    >>> completion = system.completion(0.5)
    >>> print(completion.G.shape, completion.j)
    (2, 2) 3
    """

    t: float
    G: np.ndarray
    g: np.ndarray
    j: int
    additional: np.ndarray

    @property
    def additional_eigenvalues(self) -> np.ndarray:
        """The eigenvalues of the additional dynamics; a positive real part makes violations grow."""
        return np.linalg.eigvals(self.additional) if self.additional.size else np.zeros(0)

    def title(self) -> str:
        return f"Completion x' = G x + g at t = {self.t:g}, from the derivative array of size {self.j}"

    def tables(self) -> list[Tabular]:
        values = self.additional_eigenvalues
        verdict = "violations of the constraints grow" if np.any(values.real > 1e-6) else "they do not grow initially"
        rows = [
            ("free initial values", f"{len(self.G)}, and {len(self.G) - len(values)} in the system itself"),
            ("additional dynamics", f"{plural(len(values), 'eigenvalue')}: {numbers(values)}"),
        ]
        if len(values):
            rows.append(("", verdict))
        return [Tabular("ll", rows)]
