"""Scaling of rows and columns, so that units do not decide about ranks."""

from typing import Any

import numpy as np
import scipy.sparse as sp

_SWEEPS = 30
_ENOUGH = 0.1


def equilibrate(matrix: Any, units: tuple[np.ndarray, np.ndarray] | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Factors of rows and columns after which the largest entry of each is near 1 (D. Ruiz, report RAL-TR-2001-034).

    Rows and columns of zeros get the factor 1. The matrix may be sparse. There are many such factors; those near
    `units`, where they are given, are found.

    Examples
    --------
    >>> import numpy as np
    >>> from daedal.structure.equilibration import equilibrate
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
