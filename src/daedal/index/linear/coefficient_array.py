"""Derivative arrays of A(t) x' + B(t) x = f(t).

With Taylor coefficients c_i = c^(i)/i! of all functions, the equations of orders 0 to j - 1 are

    script A_j (x_1, ..., x_j) = -script B_j x_0 + (f_0, ..., f_{j-1}),

where block (i, l) of script A_j is l A_{i-l+1} + B_{i-l} (Brenan, Campbell and Petzold, (2.4.6)).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import comb, factorial
from typing import TYPE_CHECKING, Any

import numpy as np

from daedal.common.tabular import Tabular, plural
from daedal.errors import InconsistentInitialError, InvalidProblemError
from daedal.index.linear.exact_solution import Consistency, consistency
from daedal.index.linear.rank import (
    RankDecision,
    TitledTables,
    decision_table,
    numbers,
    rank_decision,
    require_clear,
    scale_pencil,
)

if TYPE_CHECKING:
    from daedal.index.linear.time_dependent import TimeVarying


@dataclass(frozen=True, repr=False)
class DerivativeArray(TitledTables):
    """The first `j` equations of the array at one time, with their ranks.

    Attributes
    ----------
    t : float
    j : int
        The number of equations: the original ones and their first j - 1 derivatives.
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
            The decision about their number.
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

    Otherwise the factors l in the blocks, and rapidly changing coefficients, would cause small singular values of large
    arrays.
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
        The rank of the array of n + 1 equations at each time.
    one_full : tuple of bool
        Whether that array determines x'.
    full_row_rank : tuple of bool
        Whether every equation of the arrays of 1 to n + 1 equations contains unknowns.
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


def solvability(system: TimeVarying, times: np.ndarray) -> Solvability:
    """The conditions of theorems 2.4.6 and 2.4.7, at the given times."""
    largest = system.n + 1
    pencils = [system.pencil(t) for t in times]
    arrays = [[system.array(t, j) for j in range(1, largest + 1)] for t in times]
    last = [row[-1] for row in arrays]
    unclear = [d for pencil in pencils for d in pencil.decisions if not d.clear]
    unclear += [d for array in last for d in array.decisions if not d.clear]
    return Solvability(
        times,
        tuple(pencil.index for pencil in pencils),
        tuple(array.rank.rank for array in last),
        tuple(array.one_full for array in last),
        tuple(all(array.full_row_rank for array in row) for row in arrays),
        next((j for j in range(largest) if determine_rates([row[j] for row in arrays])), None),
        tuple(unclear),
    )


# --- consistent initial values of time-varying systems, from the derivative array -------------------------------------

_MET = 1e-8  # relative residual of equations that can be satisfied


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


def array_consistency(system: TimeVarying, x0: Any, t: float, tolerance: float) -> Consistency:
    """Test values against W^T B x = W^T f, where W^T A = 0 (theorem 2.4.8), and project them onto the nearest ones."""
    given = np.asarray(x0, dtype=float)
    if given.shape != (system.n,) or not np.all(np.isfinite(given)):
        raise InvalidProblemError(f"x0 must be a vector of {system.n} finite numbers")
    array = system.full_array(t)
    columns = system.series(t, 1).columns
    W, g, rest, _ = array.constraints
    if np.any(np.abs(rest) > _MET * max(float(np.max(np.abs(array.f), initial=0.0)), np.finfo(float).tiny)):
        raise InconsistentInitialError(
            f"the right-hand side is contradictory at t = {t:g}: an equation without unknowns is violated by "
            f"{np.max(np.abs(rest)):.3g} in scaled units"
        )
    scaled = given / columns
    x = (scaled - W.T @ (W @ scaled - g)) * columns
    return consistency(t, given, W / columns, g, x, system.names, columns, tolerance)


def initial_values(system: TimeVarying, t: float, x: dict[int, float], rates: dict[int, float]) -> InitialValues:
    """Solve the derivative array with the given entries in the least-squares sense, with minimal norm."""
    n, j = system.n, system.full_array(t).j
    local = system.series(t, j, with_f=True)
    A, B, f, unit = balanced_array(local.A, local.B, local.f, j)
    user, values = [], []
    for offset, entries, size in ((0, x, 1.0), (n, rates, local.unit / unit)):
        for i, value in entries.items():
            if not 0 <= i < n:
                raise InvalidProblemError(f"unknown {i} does not exist: unknowns are numbered from 0 to {n - 1}")
            user.append(np.eye(1, n * (j + 1), offset + i)[0])
            values.append(value * size / local.columns[i])
    matrix = np.vstack([np.hstack([B, A]), *user])
    right = np.concatenate([f, values])
    U, s, Vt = np.linalg.svd(matrix)
    decision = rank_decision(s, tolerance=system.tolerance(t), what="array and given entries")
    require_clear([decision], "the completion of initial values")
    r = decision.rank
    found = Vt[:r].T @ ((U.T @ right)[:r] / s[:r])
    residual = np.abs(matrix @ found - right)
    if np.max(residual, initial=0.0) > _MET * max(float(np.max(np.abs(right), initial=0.0)), np.finfo(float).tiny):
        raise InconsistentInitialError(
            f"the given entries of x and x' at t = {t:g} contradict the equations, by {np.max(residual):.3g} in scaled "
            "units; give fewer of them"
        )
    loose = np.linalg.norm(Vt[r:, : 2 * n], axis=0) > _MET
    labels = [*system.names, *(f"{name}'" for name in system.names)]
    free = tuple(label for label, is_loose in zip(labels, loose) if is_loose)
    return InitialValues(
        t, found[:n] * local.columns, found[n : 2 * n] * local.columns * unit / local.unit, free, decision, system.names
    )


# --- completions: ordinary differential equations that contain all solutions of a time-varying system -----------------

_STEP = 1e-3  # increment for derivatives of constraints, in units of the local time
_NODES = ((-2, 1.0 / 12.0), (-1, -2.0 / 3.0), (1, 2.0 / 3.0), (2, -1.0 / 12.0))


@dataclass(frozen=True, repr=False)
class Completion(TitledTables):
    """``x' = G x + g`` at one time: the least-squares completion.

    x' is that of the least-squares solution of the derivative array (Brenan, Campbell and Petzold, (2.4.7); I. Okay, S.
    L. Campbell, P. Kunkel, Linear Algebra and its Applications 425, 2007).

    Attributes
    ----------
    t : float
    G, g : numpy.ndarray
    j : int
        Order of the derivative array.
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
        return f"Completion x' = G x + g at t = {self.t:g}, from the derivative array of {self.j}"

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


def completion(system: TimeVarying, t: float, stabilisation: float) -> Completion:
    """Solve the array by least squares, in the original units of the system."""
    array = system.full_array(t)
    j = array.j
    G, g = _least_squares(system, t, j, array.rank.rank, stabilisation)
    reference = _constraint_rows(system, t, j)
    unit = system.series(t, j).unit
    step = _STEP * (unit if np.isfinite(unit) else 1.0)
    change = np.zeros_like(reference)
    for k, weight in _NODES if len(reference) else ():
        near = _constraint_rows(system, t + k * step, j)
        # A basis of the constraints that does not depend on their computation: its component along the reference is I.
        change += weight / step * np.linalg.solve(near @ reference.T, near)
    additional = (change + reference @ G) @ reference.T
    return Completion(t, G, g, j, additional)


def _constraint_rows(system: TimeVarying, t: float, j: int) -> np.ndarray:
    """Orthonormal rows of W with W x = g, in original units."""
    W = system.array(t, j).constraints[0] / system.series(t, 1).columns
    return np.linalg.qr(W.T)[0].T


def _least_squares(system: TimeVarying, t: float, j: int, rank: int, shift: float) -> tuple[np.ndarray, np.ndarray]:
    A, B, f = array_matrices(system.A.taylor(t, j), system.B.taylor(t, j), system.f.taylor(t, j), j)
    # Row i: (d/dt + shift)^i of the equations instead of their Taylor coefficients.
    weights = [[comb(i, k) * shift ** (i - k) * factorial(k) if k <= i else 0.0 for k in range(j)] for i in range(j)]
    mix = np.kron(np.array(weights), np.eye(system.shape[0]))
    A, B, f = mix @ A, mix @ B, mix @ f
    U, s, Vt = np.linalg.svd(A)
    first = Vt[:rank].T[: system.n] / s[:rank] @ U[:, :rank].T
    return -first @ B, first @ f
