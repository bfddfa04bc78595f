r"""Where adjoint variables begin: values at the end of the run that are consistent with the final cost.

.. math::

    E^T \mu (T) = -(h_y + A^T \nu), \qquad \nu^T E = 0 .

For index 1, :math:`\nu` takes away what :math:`E^T` cannot reach: the final cost of algebraic variables. For index 2 in
Hessenberg form, where the equations without derivatives do not contain the variables without derivatives, it is found
from the hidden constraint of the adjoint equations, :math:`0 = R^T (A^T \mu + g_y)` with :math:`E R = 0` (Y. Cao,
S. Li, L. Petzold, R. Serban, SIAM J. Sci. Comput. 24, 2003, section 3).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import linalg, sparse
from scipy.sparse import linalg as sparse_linalg

from daedal.errors import InvalidProblemError

_SINGULAR = 1e-10
_REMEDY = "State a mechanism as a MechanicalSystem, or reduce the index first, daedal.reduce_index(problem)"


def terminal_values(
    e: Any, a: Any, h_y: np.ndarray, g_y: np.ndarray, *, constant: bool
) -> tuple[np.ndarray, Any, bool]:
    """E^T mu at the end, nu (None if it vanishes), and whether constraints bind differential variables (index 2).

    Parameters
    ----------
    e, a : arrays
        E^T and A^T; sparse ones of large problems.
    h_y, g_y : numpy.ndarray
        Gradients of final and running cost.
    constant : bool
        Whether E is constant.
    """
    left, right = _null_space(e), _null_space(e.T)  # nu^T E = 0, and E R = 0
    if not right.shape[1]:
        return -h_y, None, False
    hidden = right.T @ (a @ left)  # of the equations without derivatives, by the variables without derivatives
    if left.shape[1] == right.shape[1] and _is_regular(hidden):
        missing = right.T @ h_y
        if not np.any(missing):
            return -h_y, None, False
        nu = left @ _solved(hidden, -missing)
        return -(h_y + a @ nu), nu, False
    if not constant or _largest(hidden) > _SINGULAR * _largest(a):
        raise InvalidProblemError(
            f"gradient: the problem has index 2 or more, and not the form of Hessenberg's index 2. {_REMEDY}"
        )
    return *_of_index_2(e, a, h_y, g_y, left, right), True


def _of_index_2(e: Any, a: Any, h_y: np.ndarray, g_y: np.ndarray, left: Any, right: Any) -> tuple[np.ndarray, Any]:
    backwards = _pseudo_inverse(e)  # mu = E^{T+} w + what E does not see
    product = right.T @ (a @ (backwards @ (a @ left)))
    if not _is_regular(product):
        raise InvalidProblemError(f"gradient: the problem has index 3 or more. {_REMEDY}")
    if np.abs(right.T @ h_y).max(initial=0.0) > _SINGULAR * max(np.abs(h_y).max(initial=0.0), 1e-300):
        raise InvalidProblemError(
            "gradient: final_cost depends on variables of index 2 or more, whose final values follow from derivatives "
            f"of constraints. {_REMEDY}, or take them into cost"
        )
    nu = left @ _solved(product, right.T @ g_y - right.T @ (a @ (backwards @ h_y)))
    return -(h_y + a @ nu), nu


def _null_space(e: Any) -> Any:
    """Vectors x with e x = 0; of large matrices those that are unit vectors."""
    n = e.shape[0]
    if not sparse.issparse(e):
        return linalg.null_space(e)
    columns = np.flatnonzero(np.asarray(abs(e).sum(axis=0)).ravel() == 0.0)
    return sparse.csc_array((np.ones(columns.size), (columns, np.arange(columns.size))), shape=(n, columns.size))


def _pseudo_inverse(e: Any) -> Any:
    """Of E^T; of large matrices, whose entries must stand on a diagonal."""
    if not sparse.issparse(e):
        return np.linalg.pinv(e)
    diagonal = e.diagonal()
    if abs(e - sparse.diags_array(diagonal)).max() > 0.0:
        raise InvalidProblemError(f"gradient: a problem of index 2 of this size must be semi-explicit. {_REMEDY}")
    return sparse.diags_array(np.where(diagonal == 0.0, 0.0, 1.0 / np.where(diagonal == 0.0, 1.0, diagonal)))


def _largest(matrix: Any) -> float:
    return float(abs(matrix).max()) if matrix.shape[0] and matrix.shape[1] else 0.0


def _is_regular(matrix: Any) -> bool:
    if matrix.shape[0] != matrix.shape[1]:
        return False
    if sparse.issparse(matrix):
        matrix = _equilibrated(matrix.tocsc())
        if matrix is None:
            return False
        try:
            pivots = np.abs(sparse_linalg.splu(matrix).U.diagonal())
        except RuntimeError:
            return False
        return bool(pivots.min() > _SINGULAR * pivots.max())
    sizes = np.linalg.svd(matrix, compute_uv=False)
    return bool(sizes[-1] > _SINGULAR * sizes[0])


def _equilibrated(matrix: Any) -> Any:
    """With rows of size 1; None if one is zero."""
    sizes = abs(matrix).max(axis=1).toarray().ravel()
    return None if np.any(sizes == 0.0) else (sparse.diags_array(1.0 / sizes) @ matrix).tocsc()


def _solved(matrix: Any, right: np.ndarray) -> np.ndarray:
    return sparse_linalg.spsolve(matrix.tocsc(), right) if sparse.issparse(matrix) else np.linalg.solve(matrix, right)
