"""Scaling of rows and columns, so that units do not decide about ranks."""

import numpy as np

_SWEEPS = 30
_ENOUGH = 0.1


def equilibrate(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Factors of rows and columns after which the largest entry of each is near 1 (D. Ruiz, report RAL-TR-2001-034).

    Rows and columns of zeros get the factor 1.

    Examples
    --------
    >>> import numpy as np
    >>> from daedal.structure.equilibration import equilibrate
    >>> matrix = np.array([[1e6, 2e-6], [0.0, 1e-12]])
    >>> rows, columns = equilibrate(matrix)
    >>> np.abs(rows[:, None] * matrix * columns).max(axis=0).round(1)
    array([1., 1.])
    """
    sizes = np.abs(matrix)
    rows, columns = np.ones(sizes.shape[0]), np.ones(sizes.shape[1])
    for _ in range(_SWEEPS):
        by_row, by_column = _largest(sizes, 1), _largest(sizes, 0)
        if max(np.abs(by_row - 1.0).max(initial=0.0), np.abs(by_column - 1.0).max(initial=0.0)) < _ENOUGH:
            break
        rows, columns = rows / np.sqrt(by_row), columns / np.sqrt(by_column)
        sizes = np.abs(rows[:, None] * matrix * columns)
    return rows, columns


def _largest(sizes: np.ndarray, axis: int) -> np.ndarray:
    found = sizes.max(axis=axis, initial=0.0)
    return np.where(found > 0.0, found, 1.0)
