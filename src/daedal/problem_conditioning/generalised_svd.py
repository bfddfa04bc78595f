"""The generalised singular value decomposition of the two coefficient matrices of a constraint."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class GeneralisedSVD:
    """C = X S U^T and D = X T V^T, see :func:`generalised_svd`.

    Attributes
    ----------
    X : numpy.ndarray, shape (m, m)
        Regular if the rows of (C, D) are independent.
    S : numpy.ndarray, shape (m, n)
    T : numpy.ndarray, shape (m,)
        The diagonal of the second factor, largest first.
    U, V : numpy.ndarray
        Orthogonal, of as many rows as C and D have columns.
    """

    X: np.ndarray
    S: np.ndarray
    T: np.ndarray
    U: np.ndarray
    V: np.ndarray


def generalised_svd(C: np.ndarray, D: np.ndarray) -> GeneralisedSVD:
    r"""C = X S U^T, D = X T V^T with :math:`S S^T + T^2 = I`, T diagonal with :math:`t_1 \ge t_2 \ge \dots \ge 0`.

    A small :math:`t_i` belongs to a combination of constraints in which y hardly occurs beside x. The numbers do not
    depend on how the constraints are scaled or combined.

    Parameters
    ----------
    C : numpy.ndarray, shape (m, n)
    D : numpy.ndarray, shape (m, k)
        With at least as many columns as rows.

    Notes
    -----
    Wijckmans, section 4.5. An orthogonal basis of the row space of (C, D) comes from a QR factorisation (C. F. Van
    Loan, SIAM J. Numer. Anal. 13, 1976; C. C. Paige and M. A. Saunders, SIAM J. Numer. Anal. 18, 1981); the singular
    values of its lower part are those of T, and the columns of the upper part are orthogonal then.

    Examples
    --------
    >>> import numpy as np
    >>> from daedal.problem_conditioning.generalised_svd import generalised_svd
    >>> generalised_svd(np.eye(2), np.diag([1.0, 1e-6])).T
    array([7.07106781e-01, 1.00000000e-06])
    """
    m, n = C.shape
    q, r = np.linalg.qr(np.vstack([C.T, D.T]))
    V, T, Wt = np.linalg.svd(q[n:])
    upper = (q[:n] @ Wt.T)[:, ::-1]  # columns of decreasing length, so that QR only normalises them
    U, s = np.linalg.qr(upper, mode="complete")
    k = min(m, n)
    signs = np.where(np.diagonal(s) < 0.0, -1.0, 1.0)
    U[:, :k] = (U[:, :k] * signs)[:, ::-1]
    S = np.zeros((m, n))
    S[np.arange(m - k, m), np.arange(k)] = np.abs(np.diagonal(s))[::-1]
    return GeneralisedSVD(r.T @ Wt.T, S, T, U, V)
