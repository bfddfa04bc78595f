"""The Gauss-Newton method for a derivative array, with minimal changes of the values.

The array determines x and x' but not the highest derivatives, so that the linear systems have many solutions (Brenan,
Campbell and Petzold, section 5.3.4; B. Leimkuhler, L. R. Petzold and C. W. Gear, SIAM J. Numer. Anal. 28, 1991). The
chosen solution changes first the states, then the algebraic variables, then all other values as little as possible.
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
"""Singular values below this fraction of the largest count as zero, after scaling rows and columns."""
SATISFIED = 1e-10
"""Residual, as a fraction of the terms of an equation, below which it counts as satisfied."""
LARGEST_DENSE = 400
"""Number of unknowns of an array above which its matrices are sparse."""
_STIFF = 1e-2  # unit of changes of the entries of a tier, relative to the unit of all other entries
_DIAGONAL = 1e-10
_TINY = 1e-300
_ITERATIONS = 60
_NEGLIGIBLE = 1e-9  # coefficient, relative to its equation, below which only a huge value of the unknown has an effect
_NEARBY, _ALTERED = (
    1e-5,
    0.1,
)  # relative perturbation of values, and largest relative change of a stable coefficient
_MOVED = 1e-3  # fraction of its norm by which a direction of the kernel must move a tier to be used for it
_SHORTEST = 2.0**-20  # smallest fraction of a correction that is attempted
_EPS = float(np.finfo(float).eps)


class JetEquations(Protocol):
    """Equations and their derivatives, as functions of x, x', ... in the rows of `jet`."""

    def residual(self, t: float, jet: np.ndarray) -> np.ndarray: ...

    def settled_jacobian(self, t: float, jet: np.ndarray) -> Any: ...


@dataclass(frozen=True)
class ArrayPoint:
    """Final point of the Gauss-Newton iteration.

    Attributes
    ----------
    jet : numpy.ndarray, shape (k + 1, n)
        x, x', ..., x^(k).
    residual : numpy.ndarray
        Residual of the equations of the array.
    terms : numpy.ndarray
        Sizes of the terms of these equations.
    satisfied : bool
        Whether all equations are satisfied to round-off.
    stationary : bool
        Whether an iteration without solution ended where no small change of the free values reduces the residual.
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
    """Solve the array for values near given ones; None if it cannot be evaluated at the given values.

    Parameters
    ----------
    jet : numpy.ndarray, shape (array.highest + 1, n)
        Starting point.
    free : numpy.ndarray of int
        Columns of the array that may change.
    tiers : sequence of numpy.ndarray of bool
        Masks of columns to be changed as little as possible, most important first.
    sizes : numpy.ndarray
        Sizes of all columns, which scale changes and the errors of zero values.
    rank, tolerance : float
        Limits below which singular values and residuals count as zero; larger than round-off if derivatives are finite
        differences.
    units : callable, optional
        Initial row and column factors of the Jacobian for its scaling.
    """
    with np.errstate(all="ignore"):  # intermediate values may overflow
        return _iterate(array, t, jet, free, tiers, sizes, rank, tolerance, units)


def _iterate(
    array: JetEquations, t: float, jet, free, tiers, sizes, rank: float, tolerance: float, units
) -> ArrayPoint | None:
    z, shape = jet.ravel().copy(), jet.shape
    residual = array.residual(t, jet)
    if not np.all(np.isfinite(residual)):
        return None
    stationary, every = False, free
    for _ in range(_ITERATIONS):
        jacobian = array.settled_jacobian(t, z.reshape(shape))
        if not np.all(np.isfinite(jacobian.data)):
            return None
        terms = abs(jacobian) @ np.maximum(np.abs(z), sizes)
        if np.all(np.abs(residual) <= _EPS * terms) or every.size == 0:
            stationary = every.size == 0
            break
        if units is not None:  # sizes balance the equations
            shares = scaled(abs(jacobian), 1.0 / np.maximum(terms, _TINY), sizes).max(axis=0).toarray().ravel()
            free = every[shares[every] > _NEGLIGIBLE]
            if free.size < every.size:
                free = np.union1d(free, every[_is_stable(array, t, z, shape, sizes, jacobian)[every]])
            if not free.size:
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


def _is_stable(array: JetEquations, t: float, z, shape, sizes, jacobian) -> np.ndarray:
    """Whether each column has a coefficient that hardly changes nearby, so that it does not vanish on the solution."""
    shift = _NEARBY * np.cos(np.arange(z.size) ** 2.0) * np.maximum(np.abs(z), sizes)
    nearby = abs(array.settled_jacobian(t, (z + shift).reshape(shape)) - jacobian)
    return ((abs(jacobian) - nearby / _ALTERED).max(axis=0).toarray().ravel()) > 0.0


def _dense_step(matrix: np.ndarray, factors, residual, reach: np.ndarray, tiers: Sequence[np.ndarray], rank: float):
    """Row factors of the equations, and the correction with minimal changes, for a dense matrix."""
    rows, columns = factors
    measures = [(columns / reach, tier) for tier in tiers]
    solution = preferred_solution(scaled(matrix, rows, columns), -rows * residual, measures, rank)
    return rows, columns * solution


def _sparse_step(matrix: Any, residual: np.ndarray, reach: np.ndarray, tiers: Sequence[np.ndarray]):
    """Row factors of the equations, and the minimum-norm correction, in which changes of the tiers cost much more.

    The least-squares problem is regularised by a small diagonal, since equations may be dependent.
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
    """The least-squares solution that minimises the entries of each tier in turn, subject to the previous ones.

    Parameters
    ----------
    matrix, right : numpy.ndarray
        Scaled, so that ranks are meaningful.
    tiers : sequence of (factors, mask)
        Factors by which all entries are measured, and the mask of the entries of the tier.
    tolerance : float
        Fraction of the largest singular value below which a singular value counts as zero.
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
