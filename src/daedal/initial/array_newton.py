"""The Gauss-Newton method on a derivative array, with corrections that leave alone what need not move.

The array determines x and x' but not the highest derivatives, so that the linear systems have many solutions (Brenan,
Campbell and Petzold, section 5.3.4; B. Leimkuhler, L. R. Petzold and C. W. Gear, SIAM J. Numer. Anal. 28, 1991). Among
them the one is taken that changes the states least, then the algebraic variables, then everything else.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import splu

from daedal.index.structure.equilibration import equilibrate, scaled

RANK = 1e-11
"""Singular values below this part of the largest count as zero, after rows and columns have been scaled."""
SATISFIED = 1e-10
"""Part of the terms of an equation that its residual may be."""
LARGEST_DENSE = 400
"""Unknowns of an array beyond which its matrices are sparse."""
_STIFF = 1e-2  # by how much entries of a tier shall change less than others
_DIAGONAL = 1e-10
_TINY = 1e-300
_ITERATIONS = 60
_MOVED = 1e-3  # part of a change that an entry must have for the change to be worth making for it
_SHORTEST = 2.0**-20  # part of a correction
_EPS = float(np.finfo(float).eps)


class JetEquations(Protocol):
    """Equations and their derivatives, for x, x', ... in the rows of `jet`."""

    def residual(self, t: float, jet: np.ndarray) -> np.ndarray: ...

    def jacobian(self, t: float, jet: np.ndarray) -> Any: ...


@dataclass(frozen=True)
class ArrayPoint:
    """Where the iteration ended.

    Attributes
    ----------
    jet : numpy.ndarray, shape (k + 1, n)
        x, x', ..., x^(k).
    residual : numpy.ndarray
        What the equations of the array leave.
    terms : numpy.ndarray
        How large their terms are.
    satisfied : bool
        Whether all of them are satisfied up to round-off.
    stationary : bool
        If not, whether no small change of the free values would make the residual smaller.
    """

    jet: np.ndarray
    residual: np.ndarray
    terms: np.ndarray
    satisfied: bool
    stationary: bool = False


def solve_array(
    array: JetEquations,
    t: float,
    jet: np.ndarray,
    free: np.ndarray,
    tiers: Sequence[np.ndarray],
    sizes: np.ndarray,
    *,
    rank: float = RANK,
    tolerance: float = SATISFIED,
    units: Callable[[Any], tuple[np.ndarray, np.ndarray]] | None = None,
) -> ArrayPoint | None:
    """Values that satisfy the array, near given ones; None where it cannot be evaluated at these.

    Parameters
    ----------
    jet : numpy.ndarray, shape (array.highest + 1, n)
        Where the search begins.
    free : numpy.ndarray of int
        Columns of the array that may change.
    tiers : sequence of numpy.ndarray of bool
        Masks of columns that shall change as little as possible, those that matter most first.
    sizes : numpy.ndarray
        Sizes of all columns: changes are measured by them, and what a value of zero may be wrong by.
    rank, tolerance : float
        What singular values, and residuals, may be to count as zero; more than round-off where derivatives are known
        by differences.
    units : callable, optional
        Factors of rows and columns of the Jacobian from which its scaling begins.
    """
    with np.errstate(all="ignore"):  # on the way values may overflow
        return _iterate(array, t, jet, free, tiers, sizes, rank, tolerance, units)


def _iterate(
    array: JetEquations, t: float, jet, free, tiers, sizes, rank: float, tolerance: float, units
) -> ArrayPoint | None:
    z, shape = jet.ravel().copy(), jet.shape
    residual = array.residual(t, jet)
    if not np.all(np.isfinite(residual)):
        return None
    stationary = False
    for _ in range(_ITERATIONS):
        jacobian = array.jacobian(t, z.reshape(shape))
        if not np.all(np.isfinite(jacobian.data)):
            return None
        terms = abs(jacobian) @ np.maximum(np.abs(z), sizes)
        if np.all(np.abs(residual) <= _EPS * terms) or free.size == 0:
            stationary = free.size == 0
            break
        matrix = jacobian[:, free]
        reach = np.maximum(np.abs(z), sizes)[free]
        if free.size <= LARGEST_DENSE:
            begin = None if units is None else units(jacobian)
            factors = equilibrate(matrix.toarray(), begin and (begin[0], begin[1][free]))
            rows, step = _dense_step(matrix.toarray(), factors, residual, reach, [tier[free] for tier in tiers], rank)
        else:
            rows, step = _sparse_step(matrix, residual, reach, [tier[free] for tier in tiers])
        step[np.abs(step) <= 2.0 * _EPS * reach] = 0.0
        predicted = np.linalg.norm(rows * (residual + matrix @ step))
        old, factor = np.linalg.norm(rows * residual), 1.0
        stationary = bool(predicted > 0.999 * old)
        if stationary:
            break
        while factor >= _SHORTEST:
            trial = z.copy()
            trial[free] += factor * step
            found = array.residual(t, trial.reshape(shape))
            if np.all(np.isfinite(found)) and np.linalg.norm(rows * found) <= (1.0 - 1e-4 * factor) * old:
                break
            factor *= 0.5
        else:
            break
        z, residual = trial, found
    satisfied = bool(np.all(np.abs(residual) <= tolerance * terms))
    return ArrayPoint(z.reshape(shape), residual, terms, satisfied, stationary)


def _dense_step(matrix: np.ndarray, factors, residual, reach: np.ndarray, tiers: Sequence[np.ndarray], rank: float):
    """Factors of the equations, and the correction that leaves alone what need not move."""
    rows, columns = factors
    measures = [(columns / reach, tier) for tier in tiers]
    solution = preferred_solution(scaled(matrix, rows, columns), -rows * residual, measures, rank)
    return rows, columns * solution


def _sparse_step(matrix: Any, residual: np.ndarray, reach: np.ndarray, tiers: Sequence[np.ndarray]):
    """The same for large arrays: the shortest correction in a norm in which the tiers count much more than the rest.

    The least-squares problem is regularised by a small diagonal, since equations may depend on each other.
    """
    weights = reach.copy()
    for tier in tiers:
        weights[tier] *= _STIFF
    rows = 1.0 / np.maximum(abs(scaled(matrix, np.ones(matrix.shape[0]), weights)).max(axis=1).toarray().ravel(), _TINY)
    balanced = scaled(matrix, rows, weights)
    m, n = balanced.shape
    system = sp.block_array([[sp.eye_array(n), balanced.T], [balanced, -_DIAGONAL * sp.eye_array(m)]], format="csc")
    right = np.concatenate([np.zeros(n), -rows * residual])
    return rows, weights * splu(system).solve(right)[:n]


def preferred_solution(
    matrix: np.ndarray, right: np.ndarray, tiers: Sequence[tuple[np.ndarray, np.ndarray]], tolerance: float = RANK
) -> np.ndarray:
    """The least-squares solution in which the entries of each tier in turn are as small as those before allow.

    Parameters
    ----------
    matrix, right : numpy.ndarray
        Scaled, so that ranks have a meaning.
    tiers : sequence of (factors, mask)
        Entries, and by what they are multiplied before they are measured.
    tolerance : float
        Part of the largest singular value below which others count as zero.
    """
    u, s, vt = np.linalg.svd(matrix, full_matrices=True)
    rank = int(np.sum(s > tolerance * s[0])) if s.size else 0
    solution = vt[:rank].T @ ((u[:, :rank].T @ right) / s[:rank])
    kernel = vt[rank:].T
    for factors, mask in tiers:
        if kernel.shape[1] == 0 or not mask.any():
            continue
        measured = factors[mask, None] * kernel[mask]
        _, s, wt = np.linalg.svd(measured, full_matrices=True)
        moved = int(np.sum(s > _MOVED * factors[mask].max()))
        if moved:
            change = np.linalg.lstsq(measured @ wt[:moved].T, -factors[mask] * solution[mask], rcond=None)[0]
            solution = solution + kernel @ (wt[:moved].T @ change)
        kernel = kernel @ wt[moved:].T
    return solution
