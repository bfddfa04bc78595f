"""Scaling of rows and columns such that ranks do not depend on units."""

from typing import Any

import numpy as np
import scipy.sparse as sp

_SWEEPS = 30
_ENOUGH = 0.1
_ROUND_OFF = -25.0  # logarithm of the relative size of a coefficient that may be a round-off of zero
_KEPT = 0.1  # weight of the equations log D = 0, which keep unknowns near their original units
_LARGEST_DENSE = 150  # number of equations up to which least squares are solved with dense matrices


def equilibrate(matrix: Any, units: tuple[np.ndarray, np.ndarray] | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Factors of rows and columns after which the largest entry of each is near 1 (D. Ruiz, report RAL-TR-2001-034).

    Zero rows and columns get the factor 1. The matrix may be sparse. The factors are not unique; those near `units`, if
    given, are chosen.

    Examples
    --------
    >>> import numpy as np
    >>> from daedal.index.structure.equilibration import equilibrate
    >>> matrix = np.array([[1e6, 2e-6], [0.0, 1e-12]])
    >>> rows, columns = equilibrate(matrix)
    >>> np.abs(rows[:, None] * matrix * columns).max(axis=0).round(1)
    array([1., 1.])
    """
    rows, columns = (np.ones(size) for size in matrix.shape) if units is None else units
    sizes = scaled(abs(matrix), rows, columns)
    for _ in range(_SWEEPS):
        by_row, by_column = _largest(sizes, 1), _largest(sizes, 0)
        if max(np.abs(by_row - 1.0).max(initial=0.0), np.abs(by_column - 1.0).max(initial=0.0)) < _ENOUGH:
            break
        rows, columns = rows / np.sqrt(by_row), columns / np.sqrt(by_column)
        sizes = scaled(abs(matrix), rows, columns)
    return rows, columns


def natural_units(
    rows: np.ndarray, columns: np.ndarray, orders: np.ndarray, coefficients: np.ndarray, n: int
) -> tuple[np.ndarray, np.ndarray, float]:
    r"""Logarithms of factors for n equations and unknowns, and of a time T, that make all coefficients similar in size.

    The coefficient :math:`a` of :math:`x_j^{(l)}` in equation i becomes :math:`R_i\, a\, D_j T^{-l}`, and the sum of
    squares of their logarithms is minimised (A. R. Curtis, J. K. Reid, J. Inst. Math. Appl. 10, 1972, with the time as
    one more unit). The result is nearly independent of the units of unknowns, equations and time: a small weight of D =
    1 prevents units from growing along a chain of a hundred equations. Coefficients smaller than the rest by many
    orders of magnitude are ignored, since they may be round-off of zero.

    Examples
    --------
    Here 3e-6 i' = v and 5e3 v = i, in badly scaled units:

    >>> import numpy as np
    >>> from daedal.index.structure.equilibration import natural_units
    >>> rows, columns, orders = np.array([0, 0, 1, 1]), np.array([0, 1, 1, 0]), np.array([1, 0, 0, 0])
    >>> R, D, T = natural_units(rows, columns, orders, np.array([3e-6, 1.0, 5e3, 1.0]), 2)
    >>> print(f"{np.exp(T):.2f}")  # the time constant
    0.01
    """
    sizes = np.abs(coefficients)
    usable = np.flatnonzero((sizes > 0.0) & np.isfinite(sizes))
    rows, columns, orders, logs = rows[usable], columns[usable], orders[usable], np.log(sizes[usable])
    found = np.zeros(2 * n + 1)
    kept = sp.csr_array((np.full(n, _KEPT), (np.arange(n), n + np.arange(n))), shape=(n, 2 * n + 1))
    for _ in range(2):
        if not logs.size:
            break
        entries = np.arange(logs.size)
        places = np.tile(entries, 3), np.concatenate([rows, n + columns, np.full(logs.size, 2 * n)])
        values = np.concatenate([np.ones(2 * logs.size), -orders.astype(float)])
        matrix = sp.csr_array((values, places), shape=(logs.size, 2 * n + 1))
        found = _least_squares(sp.vstack([matrix, kept]), np.concatenate([-logs, np.zeros(n)]))
        left = logs + matrix @ found
        counts = left > _ROUND_OFF
        if counts.all():
            break
        rows, columns, orders, logs = rows[counts], columns[counts], orders[counts], logs[counts]
    return found[:n], found[n : 2 * n], float(found[2 * n])


def _least_squares(matrix: Any, right: np.ndarray) -> np.ndarray:
    if matrix.shape[1] <= 2 * _LARGEST_DENSE + 1:
        return np.linalg.lstsq(matrix.toarray(), right, rcond=1e-10)[0]
    from scipy.sparse.linalg import lsmr

    return lsmr(matrix, right, atol=1e-10, btol=1e-10)[0]


def scaled(matrix: Any, rows: np.ndarray, columns: np.ndarray) -> Any:
    """A matrix, dense or sparse, times factors of its rows and columns."""
    if sp.issparse(matrix):
        return sp.diags_array(rows) @ matrix @ sp.diags_array(columns)
    return rows[:, None] * matrix * columns


def _largest(sizes: Any, axis: int) -> np.ndarray:
    if 0 in sizes.shape:
        return np.ones(sizes.shape[1 - axis])
    found = sizes.max(axis=axis)
    found = found.toarray().ravel() if sp.issparse(found) else found
    return np.where(found > 0.0, found, 1.0)
