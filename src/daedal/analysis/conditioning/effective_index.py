"""The effective index: algebraic variables that behave as if small numbers in the equations were zero.

The cascade of section 4.5 of Wijckmans: a constraint in which y has small coefficients is differentiated as if y were
absent; variables well determined by the derivative have effective index 2; the procedure continues with the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from daedal.analysis.conditioning.semi_explicit_form import norm
from daedal.common.tabular import times
from daedal.index.linear.rank import RankDecision


@dataclass(frozen=True)
class GeneralisedSVD:
    """C = X S U^T and D = X T V^T, see :func:`generalised_svd`."""

    X: np.ndarray  # shape (m, m): nonsingular if the rows of (C, D) are independent
    S: np.ndarray  # shape (m, n)
    T: np.ndarray  # shape (m,): the diagonal of the second factor, largest first
    # Orthogonal, with as many rows as C and D have columns
    U: np.ndarray
    V: np.ndarray


def generalised_svd(C: np.ndarray, D: np.ndarray) -> GeneralisedSVD:
    r"""C = X S U^T, D = X T V^T with :math:`S S^T + T^2 = I`, T diagonal with :math:`t_1 \ge t_2 \ge \dots \ge 0`.

    C has the shape (m, n), D the shape (m, k); both have at least as many columns as rows. A small :math:`t_i` belongs
    to a combination of constraints in which y is nearly absent compared with x. The numbers do not depend on scaling or
    combination of constraints.

    Wijckmans, section 4.5. An orthogonal basis of the row space of (C, D) comes from a QR factorisation (C. F. Van
    Loan, SIAM J. Numer. Anal. 13, 1976; C. C. Paige and M. A. Saunders, SIAM J. Numer. Anal. 18, 1981); the singular
    values of its lower part are those of T, which makes the columns of the upper part orthogonal.

    Examples
    --------
    >>> import numpy as np
    >>> from daedal.analysis.conditioning.effective_index import generalised_svd
    >>> generalised_svd(np.eye(2), np.diag([1.0, 1e-6])).T
    array([7.07106781e-01, 1.00000000e-06])
    """
    m, n = C.shape
    q, r = np.linalg.qr(np.vstack([C.T, D.T]))
    V, T, Wt = np.linalg.svd(q[n:])
    upper = (q[:n] @ Wt.T)[:, ::-1]  # columns of decreasing norm, so that QR only normalises them
    U, s = np.linalg.qr(upper, mode="complete")
    k = min(m, n)
    signs = np.where(np.diagonal(s) < 0.0, -1.0, 1.0)
    U[:, :k] = (U[:, :k] * signs)[:, ::-1]
    S = np.zeros((m, n))
    S[np.arange(m - k, m), np.arange(k)] = np.abs(np.diagonal(s))[::-1]
    return GeneralisedSVD(r.T @ Wt.T, S, T, U, V)


# --- computing the effective index ------------------------------------------------------------------------------------

THRESHOLD = 1e-3  # relative size below which y counts as absent from a constraint
ROUND_OFF = 1e-10  # threshold for the index of the original equations
_MARGIN = 10.0  # a number within this factor of the threshold makes the decision ambiguous
_NOISE = 1e-13  # products that cancel to less than this fraction are zero
_SHARE = 0.1  # smallest sum of squared components for which a variable belongs to a level


@dataclass(frozen=True)
class IndexLevel:
    """Algebraic variables of one effective index."""

    index: int
    directions: np.ndarray  # shape (n_y, k), orthonormal: combinations of algebraic variables with this index
    # The decisive numbers: the t_i of the GSVD for index 1, singular values for higher indices
    decision: RankDecision


@dataclass(frozen=True)
class EffectiveIndex:
    """The index of each algebraic variable with small numbers set to zero; see :func:`effective_index`."""

    # The highest index of a variable; None if differentiation leaves some variables undetermined
    index: int | None
    levels: tuple[IndexLevel, ...]  # one for each round, even if no variable has this index
    # Shape (n_y, k): directions not determined by any number of differentiations; the equations are nearly singular
    undetermined: np.ndarray = field(repr=False)
    threshold: float

    @property
    def clear(self) -> bool:
        """Whether no number lies near the threshold."""
        return all(level.decision.clear for level in self.levels)

    def of_variables(self, basis: np.ndarray | None = None) -> list[int | None]:
        """The index of each variable: the highest level in whose directions its squared components sum to 0.1 or more.

        The columns of `basis` span the algebraic variables in the space of the unknowns; unknowns without a component
        in this subspace have index 0.
        """
        n = self.undetermined.shape[0] if basis is None else basis.shape[0]
        found: list[int | None] = [0] * n
        groups: list[tuple[int | None, np.ndarray]] = [(level.index, level.directions) for level in self.levels]
        for index, directions in [*groups, (None, self.undetermined)]:
            members = directions if basis is None else basis @ directions
            for j in np.flatnonzero(np.sum(members**2, axis=1) >= _SHARE):
                found[j] = index
        return found


def effective_index(
    A: np.ndarray,
    B: np.ndarray,
    C: np.ndarray,
    D: np.ndarray,
    *,
    C_rate: np.ndarray | None = None,
    threshold: float = THRESHOLD,
) -> EffectiveIndex:
    """The effective index of x' = A x + B y, 0 = C x + D y at one point, Wijckmans section 4.5.

    `C_rate` is the time derivative of C, zero by default; derivatives of higher order are neglected. For index
    1, the threshold applies to the diagonal of T in the GSVD C = X S U^T, D = X T V^T; for index 2, to the singular
    values of (S U^T)_2 B V_2; for higher indices, to those of the corresponding products for the remaining variables.
    The singular values of a product are divided by the norms of its two factors.

    Examples
    --------
    >>> import numpy as np
    >>> from daedal.analysis.conditioning.effective_index import effective_index
    >>> A, B, C = np.zeros((1, 1)), -np.eye(1), np.eye(1)
    >>> effective_index(A, B, C, D=np.array([[-1e-6]])).index
    2
    """
    if D.size == 0:
        return EffectiveIndex(0, (), np.zeros((0, 0)), threshold)
    independent, rows_of = _independent_rows(C, D)
    k = len(independent)
    factors = generalised_svd(independent[:, : C.shape[1]], independent[:, C.shape[1] :])
    m = D.shape[1]
    T, rows = np.zeros(m), np.zeros((m, C.shape[1]))  # zero for constraints that follow from the others
    T[:k], rows[:k] = factors.T, factors.S @ factors.U.T
    rates = np.zeros_like(rows)
    if C_rate is not None:
        rates[:k] = np.linalg.solve(factors.X, rows_of @ C_rate)
    decision = _decided(T, 1.0, threshold, "y relative to x in the constraints")
    r = decision.rank
    levels = [IndexLevel(1, factors.V[:, :r], decision)]
    A = A - B @ factors.V[:, :r] @ (rows[:r] / T[:r, None])
    B, C, C_rate, directions = B @ factors.V[:, r:], rows[r:], rates[r:], factors.V[:, r:]
    for index in range(2, A.shape[0] + 2):
        if directions.shape[1] == 0:
            break
        u, s, vt = np.linalg.svd(C @ B)
        decision = _decided(
            s, float(norm(C) * norm(B)), threshold, f"y in the constraints, differentiated {times(index - 1)}"
        )
        r = decision.rank
        derived = C @ A + C_rate
        if norm(derived) <= _NOISE * norm(C) * norm(A):
            derived = np.zeros_like(derived)
        levels.append(IndexLevel(index, directions @ vt[:r].T, decision))
        A = A - B @ vt[:r].T @ ((u[:, :r].T @ derived) / s[:r, None])
        B, C, directions = B @ vt[r:].T, u[:, r:].T @ derived, directions @ vt[r:].T
        C_rate = np.zeros_like(C)
    highest = max((level.index for level in levels if level.directions.shape[1]), default=0)
    return EffectiveIndex(highest if directions.shape[1] == 0 else None, tuple(levels), directions, threshold)


def _independent_rows(C: np.ndarray, D: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """An orthonormal basis of the rows of (C, D), and the row combinations that form it."""
    both = np.hstack([C, D])
    sizes = np.linalg.norm(both, axis=1)
    scales = 1.0 / np.where(sizes > 0.0, sizes, 1.0)
    u, s, vt = np.linalg.svd(scales[:, None] * both, full_matrices=False)
    rank = int(np.sum(s > _NOISE * s[0]))
    return vt[:rank], (u[:, :rank] / s[:rank]).T * scales


def highest(found: Sequence[EffectiveIndex]) -> EffectiveIndex:
    """The highest index among several points; undetermined counts as highest."""
    return max(found, key=lambda one: np.inf if one.index is None else one.index)


def _decided(values: np.ndarray, scale: float, threshold: float, what: str) -> RankDecision:
    """The number of values that exceed the threshold after division by a scale."""
    relative = np.abs(values) / scale if scale > 0.0 else np.zeros_like(values)
    counts = [int(np.sum(relative > threshold * factor)) for factor in (1.0, _MARGIN, 1.0 / _MARGIN)]
    return RankDecision(what, counts[0], relative, threshold, counts[1], counts[2])
