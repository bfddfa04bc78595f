"""Which unknowns a linear system determines, although it does not determine all of them.

A matrix [A H] is 1-full with respect to the columns of A if [A H] (a, h) = b fixes a, whatever h is: rank [A H] =
columns of A + rank H (Brenan, Campbell and Petzold, definition 2.4.7 and the test after proposition 2.4.2).
"""

from __future__ import annotations

import numpy as np

from daedal.structure.equilibration import equilibrate

RANK = 1e-9
"""Singular values below this part of the largest count as zero, after rows and columns have been scaled."""


def undetermined(matrix: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Those of the `columns` whose unknowns the system leaves open: none of them if it is 1-full.

    Examples
    --------
    x + y = ..., y + z = ..., y - z = ... fixes all; without the last equation nothing.

    >>> import numpy as np
    >>> from daedal.structure.one_full import undetermined
    >>> matrix = np.array([[1.0, 1.0, 0.0], [0.0, 1.0, 1.0], [0.0, 1.0, -1.0]])
    >>> undetermined(matrix, np.array([0])), undetermined(matrix[:2], np.array([0, 1]))
    (array([], dtype=int64), array([0, 1]))
    """
    if matrix.shape[0] == 0:
        return columns
    rows, factors = equilibrate(matrix)
    _, s, vt = np.linalg.svd(rows[:, None] * matrix * factors)
    rank = int(np.sum(s > RANK * s[0]))
    kernel = vt[rank:]
    return columns[np.linalg.norm(kernel[:, columns], axis=0) > np.sqrt(RANK)]
