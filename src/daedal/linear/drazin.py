"""The Drazin inverse."""

from __future__ import annotations

from typing import Any

import numpy as np

from daedal.errors import InvalidProblemError
from daedal.linear.pencil import Pencil
from daedal.linear.rank import TOLERANCE
from daedal.linear.words import check_matrix


def drazin_inverse(M: Any, *, tolerance: float = TOLERANCE) -> np.ndarray:
    r"""The Drazin inverse of a square matrix.

    :math:`M^D M M^D = M^D`, :math:`M M^D = M^D M` and :math:`M^{\nu+1} M^D = M^\nu`, where :math:`\nu` is the index
    of M, the smallest power whose rank the next one does not lower. For a regular matrix it is the inverse.

    Parameters
    ----------
    M : array_like, shape (n, n)
    tolerance : float
        See :func:`daedal.linear.rank_decision`.

    Raises
    ------
    UnclearRankError
        If the numbers do not decide which eigenvalues vanish.

    Notes
    -----
    The eigenvalue 0 of M is the infinite eigenvalue of the pencil :math:`\lambda M + I`; with its Weierstrass form
    :math:`M^D = Q\, \mathrm{diag}(C, 0)\, Q^{-1}`.

    Examples
    --------
    >>> from daedal import linear
    >>> linear.drazin_inverse([[2.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.0, 0.0, 0.0]])
    array([[0.5, 0. , 0. ],
           [0. , 0. , 0. ],
           [0. , 0. , 0. ]])
    """
    matrix = check_matrix(M, "M")
    if matrix.shape[0] != matrix.shape[1]:
        raise InvalidProblemError(f"M must be square, but its shape is {matrix.shape}")
    form = Pencil(matrix, np.eye(len(matrix)), tolerance=tolerance).weierstrass()
    k = form.n_finite
    return form.Q[:, :k] @ form.C @ np.linalg.inv(form.Q)[:k] + 0.0
