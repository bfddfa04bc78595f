"""The Gauss-Newton method on a derivative array, with corrections that leave alone what need not move.

The array determines x and x' but not the highest derivatives, so that the linear systems have many solutions (Brenan,
Campbell and Petzold, section 5.3.4; B. Leimkuhler, L. R. Petzold and C. W. Gear, SIAM J. Numer. Anal. 28, 1991). Among
them the one is taken that changes the states least, then the algebraic variables, then everything else.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from daedal.structure.derivative_array import DerivativeArray
from daedal.structure.equilibration import equilibrate

RANK = 1e-11
"""Singular values below this part of the largest count as zero, after rows and columns have been scaled."""
SATISFIED = 1e-10
"""Part of the terms of an equation that its residual may be."""
_ITERATIONS = 60
_MOVED = 1e-9  # part of a change that an entry must have to count as changed
_SHORTEST = 2.0**-20  # part of a correction
_EPS = float(np.finfo(float).eps)


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
    array: DerivativeArray,
    t: float,
    jet: np.ndarray,
    free: np.ndarray,
    tiers: Sequence[np.ndarray],
    sizes: np.ndarray,
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
    """
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
        matrix = jacobian[:, free].toarray()
        rows, columns = equilibrate(matrix)
        scaled = rows[:, None] * matrix * columns
        step = columns * preferred_solution(
            scaled, -rows * residual, [(columns / np.maximum(np.abs(z), sizes)[free], tier[free]) for tier in tiers]
        )
        reach = np.maximum(np.abs(z), sizes)[free]
        step[np.abs(step) <= 2.0 * _EPS * reach] = 0.0
        predicted = np.linalg.norm(rows * (residual + matrix @ step))
        old, factor = np.linalg.norm(rows * residual), 1.0
        stationary = bool(predicted > 0.999 * old)
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
    satisfied = bool(np.all(np.abs(residual) <= SATISFIED * terms))
    return ArrayPoint(z.reshape(shape), residual, terms, satisfied, stationary)


def preferred_solution(
    matrix: np.ndarray, right: np.ndarray, tiers: Sequence[tuple[np.ndarray, np.ndarray]]
) -> np.ndarray:
    """The least-squares solution in which the entries of each tier in turn are as small as those before allow.

    Parameters
    ----------
    matrix, right : numpy.ndarray
        Scaled, so that ranks have a meaning.
    tiers : sequence of (factors, mask)
        Entries, and by what they are multiplied before they are measured.
    """
    u, s, vt = np.linalg.svd(matrix, full_matrices=True)
    rank = int(np.sum(s > RANK * s[0])) if s.size else 0
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
