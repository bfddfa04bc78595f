r"""Equations of motion A(t, q) v' + B(t, q) \lambda = f brought to the form of mechanics by multiples of their rows.

Numbers d > 0 and an order of the rows are looked for with which M = d A is symmetric and the columns of d B span the
same space as the rows of the constraints' Jacobian K, so that forces of the constraints do no work on motions that
these allow: d B = K^T S with a regular S (Lagrange's equations of the first kind). Matrices are known at a few points
in general position; what holds at all of them is taken to hold everywhere.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

_SAME = 1e-9  # relative difference of what is equal but for round-off
_EXACT = 1e-13  # of factors that are 1, but for round-off
_FULL = 1e-10  # ratio of singular values below which a matrix has not full rank
_MISSING = 1e6  # the price of an entry that is zero, against logarithms of the others


@dataclass(frozen=True)
class Balance:
    """Which row belongs to which velocity, and by what it is multiplied.

    Attributes
    ----------
    order : numpy.ndarray
        For each velocity its row.
    factors : numpy.ndarray
        The multiples of these rows, in the same order.
    shares : numpy.ndarray or None
        The inverse of S, by which the multipliers of a :class:`MechanicalSystem` give those of the equations; None if
        it is another one at every point.
    """

    order: np.ndarray
    factors: np.ndarray
    shares: np.ndarray | None

    def agrees_with(self, other: Balance) -> bool:
        """Whether the rows are balanced in the same way."""
        if not np.array_equal(self.order, other.order) or (self.shares is None) != (other.shares is None):
            return False
        pairs = [(self.factors, other.factors)]
        if self.shares is not None and other.shares is not None:
            pairs.append((self.shares, other.shares))
        return all(np.allclose(one, another, rtol=_SAME, atol=0.0) for one, another in pairs)


def find_balance(a: np.ndarray, b: np.ndarray, k: np.ndarray) -> Balance | None:
    """Order and multiples of the rows of A and B, (points, n, n) and (points, n, m), for constraints K (points, m, n).

    Examples
    --------
    >>> import numpy as np
    >>> from daedal.index.reduction.balance import find_balance
    >>> q = np.array([[0.6, 0.8], [1.0, 2.0], [-0.5, 0.3]])
    >>> a = np.tile([[0.0, -1.0], [3.0, 0.0]], (3, 1, 1))  # -y'' - 2 y lam = ..., 3 x'' + 6 x lam = ...
    >>> b = np.stack([-2.0 * q[:, 1], 6.0 * q[:, 0]], axis=1)[:, :, None]
    >>> found = find_balance(a, b, q[:, None, :])
    >>> found.order, found.factors
    (array([1, 0]), array([ 1., -3.]))
    """
    if not (has_full_rank(k) and has_full_rank(b.transpose(0, 2, 1))):
        return None
    order = _rows_of_velocities(a)
    if order is None:
        return None
    a, b = a[:, order], b[:, order]
    parts = _parts(np.any(a != 0.0, axis=0))
    factors = _symmetric(a, parts)
    if factors is None:
        return None
    free = [_kernel(matrix) for matrix in k]
    factors = _without_work(b, free, factors, parts)
    if factors is None or not _is_definite(factors[:, None] * a, free):
        return None
    return Balance(order, factors, _shares(factors[:, None] * b, k))


def _shares(b: np.ndarray, k: np.ndarray) -> np.ndarray | None:
    """The constant matrix with K^T = B T."""
    found = [np.linalg.lstsq(force, gradient.T, rcond=None)[0] for force, gradient in zip(b, k, strict=True)]
    first = found[0]
    if any(np.any(np.abs(other - first) > _SAME * np.max(np.abs(first), axis=1, keepdims=True)) for other in found):
        return None
    return _rounded(np.where(np.abs(first) <= _EXACT * np.max(np.abs(first), axis=1, keepdims=True), 0.0, first))


def _rows_of_velocities(a: np.ndarray) -> np.ndarray | None:
    """The row of each velocity: in a positive definite matrix the diagonal has the largest product of all transversals.

    That follows from m_ij^2 < m_ii m_jj, and multiples of rows leave it so.
    """
    from scipy.optimize import linear_sum_assignment

    with np.errstate(divide="ignore"):
        price = -np.mean(np.log(np.abs(a)), axis=0)
    price = np.where(np.isfinite(price), price, _MISSING) - _SAME * np.eye(a.shape[1])  # if in doubt, as they stand
    rows, columns = linear_sum_assignment(price)
    if np.any(price[rows, columns] > 0.5 * _MISSING):
        return None
    return rows[np.argsort(columns)]


def _parts(pattern: np.ndarray) -> np.ndarray:
    """For each row the number of its block, of those into which a matrix falls apart."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    return connected_components(csr_array(pattern | pattern.T), directed=False)[1]


def _symmetric(a: np.ndarray, parts: np.ndarray) -> np.ndarray | None:
    """Multiples d with d_i a_ij = d_j a_ji and d_i a_ii > 0, free by a factor for each part; None if there are none."""
    n = a.shape[1]
    factors = np.zeros(n)
    for part in range(parts.max(initial=-1) + 1):
        rows = np.flatnonzero(parts == part)
        factors[rows[0]] = np.sign(a[0, rows[0], rows[0]])
        waiting = [rows[0]]
        while waiting:
            i = waiting.pop()
            for j in np.flatnonzero(np.any(a[:, i] != 0.0, axis=0)):
                if factors[j] == 0.0:
                    point = int(np.argmax(np.abs(a[:, i, j] * a[:, j, i])))
                    if a[point, j, i] == 0.0:
                        return None
                    factors[j] = _rounded(factors[i] * a[point, i, j] / a[point, j, i])
                    waiting.append(j)
    m = factors[:, None] * a
    diagonal = m[:, np.arange(n), np.arange(n)]
    if not np.all(diagonal > 0.0):
        return None
    size = np.sqrt(diagonal[:, :, None] * diagonal[:, None, :])
    return factors if np.all(np.abs(m - m.transpose(0, 2, 1)) <= _SAME * size) else None


def _without_work(b: np.ndarray, free: list[np.ndarray], factors: np.ndarray, parts: np.ndarray) -> np.ndarray | None:
    """The same with a further positive factor for each part, such that d B does no work on free motions."""
    forces = factors[:, None] * b
    forces = forces / np.max(np.abs(forces), axis=(0, 1))  # the size of multipliers does not matter
    touched = np.array([np.any(b[:, parts == part] != 0.0, axis=(0, 1)) for part in range(parts.max() + 1)])
    groups = _parts(touched @ touched.T)
    shares = np.ones(touched.shape[0])
    for group in range(groups.max() + 1):
        own = np.flatnonzero(groups == group)
        rows = [parts == part for part in own]
        points = zip(free, forces, strict=True)
        work = np.concatenate([np.stack([(z[i].T @ force[i]).ravel() for i in rows], axis=1) for z, force in points])
        if np.any(np.abs(work.sum(axis=1)) > _SAME):
            found = _null_vector(work)
            if found is None:
                return None
            shares[own] = found
    return factors * shares[parts]


def _null_vector(matrix: np.ndarray) -> np.ndarray | None:
    """The only positive vector that a matrix maps to zero, with the first entry 1; None if it is not the only one."""
    size = np.linalg.norm(matrix, axis=0)
    if matrix.shape[1] < 2 or not np.all(size > 0.0):
        return None
    _, values, vectors = np.linalg.svd(matrix / size, full_matrices=True)
    values = np.concatenate([values, np.zeros(matrix.shape[1] - values.size)])
    if values[-1] > _SAME * values[0] or values[-2] <= np.sqrt(_SAME) * values[0]:
        return None
    found = vectors[-1] / size
    found = found / found[0]
    return _rounded(found) if np.all(found > 0.0) else None


def _rounded(values: np.ndarray) -> np.ndarray:
    """Values with those next to 1 and -1 made exactly so."""
    unit = np.sign(values)
    return np.where(np.abs(values - unit) <= _EXACT, unit, values)


def _is_definite(m: np.ndarray, free: list[np.ndarray]) -> bool:
    """Whether M is positive definite on the motions that the constraints allow."""
    for matrix, z in zip(m, free, strict=True):
        if z.shape[1]:
            scaled = np.sqrt(np.diag(matrix))[:, None] * z
            basis = np.linalg.qr(scaled)[0]
            unit = matrix / np.sqrt(np.outer(np.diag(matrix), np.diag(matrix)))
            if np.linalg.eigvalsh(basis.T @ unit @ basis)[0] <= _FULL:
                return False
    return True


def _kernel(k: np.ndarray) -> np.ndarray:
    """An orthonormal basis of the kernel of a matrix of full rank."""
    return np.linalg.svd(k, full_matrices=True)[2][k.shape[0] :].T


def has_full_rank(matrices: np.ndarray) -> bool:
    """Whether the rows are independent at all points."""
    size = np.linalg.norm(matrices, axis=2, keepdims=True)
    if matrices.shape[1] > matrices.shape[2] or not np.all(size > 0.0):
        return False
    values = np.linalg.svd(matrices / size, compute_uv=False)
    return bool(np.all(values[:, -1] > _FULL * values[:, 0]))
