"""The standard canonical form of a solvable time-varying system, near a time at which ranks are constant."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from daedal.errors import InvalidProblemError
from daedal.linear.rank import RankDecision, decision_table
from daedal.linear.series import compress, constant, inverse, product, rate
from daedal.linear.words import Shown
from daedal.tabular import Tabular, plural


@dataclass(frozen=True, repr=False)
class StandardCanonicalForm(Shown):
    """``diag(I, N(t)) y' + diag(C(t), I) y = P(t) f`` with x = Q(t) y and strictly upper triangular N.

    Brenan, Campbell and Petzold, definition 2.4.5 and theorem 2.4.4. All functions are power series about `t`: arrays
    of Taylor coefficients.

    Attributes
    ----------
    t : float
    P, Q, C, N : numpy.ndarray, shape (count, rows, columns)
    index : int
        The number of diagonal blocks of N, which is the index of the system.
    decisions : tuple of RankDecision
    """

    t: float
    P: np.ndarray
    Q: np.ndarray
    C: np.ndarray
    N: np.ndarray
    index: int
    decisions: tuple[RankDecision, ...]

    @property
    def n_finite(self) -> int:
        """The size of the differential part, which is the number of initial values that can be chosen."""
        return self.C.shape[1]

    def title(self) -> str:
        return f"Standard canonical form near t = {self.t:g}: diag(I, N) y' + diag(C, I) y = P f, index {self.index}"

    def tables(self) -> list[Tabular]:
        rows = [
            ("differential part", f"{self.n_finite} of {self.P.shape[1]}"),
            ("Taylor coefficients", str(len(self.N))),
        ]
        return [Tabular("ll", rows), decision_table(self.decisions)]

    def __repr__(self) -> str:
        return f"<{self.title()}>"


def standard_canonical_form(t: float, A: np.ndarray, B: np.ndarray, tolerance: float) -> StandardCanonicalForm:
    """Remove constraints pass by pass, with smooth transformations of equations and unknowns.

    The active part, first in A and B, loses in each pass its equations without derivatives B2 x = f2 and as many
    unknowns; x = Q y changes B to B Q + A Q'.
    """
    n = A.shape[1]
    sizes = [float(np.linalg.norm(X[0], 2)) or 1.0 for X in (A, B)]
    P, Q = constant(np.eye(n), len(A)), constant(np.eye(n), len(A))
    decisions: list[RankDecision] = []
    levels: list[int] = []
    active = n
    while active:
        name = f", pass {len(levels)}" if levels else ""
        top = compress(A[:, :active, :active], tolerance, sizes[0], f"A{name}")
        decisions += top.decisions
        removed = active - top.rank
        if removed == 0:
            break
        left = _embedded(top.left, n)
        A, B, P = product(left, A), product(left, B), product(left, P)
        A[:, top.rank : active, :active] = 0.0
        constraints = compress(B[:, top.rank : active, :active], tolerance, sizes[1], f"the constraints{name}")
        decisions += constraints.decisions
        if constraints.rank < removed:
            raise InvalidProblemError(
                f"the system is not solvable near t = {t:g}: of {plural(removed, 'equation')} without derivatives only "
                f"{constraints.rank} count as independent, so that a function in the solution is free and the "
                "right-hand side has to satisfy a condition"
            )
        # [kernel, right inverse]: B2 Q = [0, I]
        solved = product(constraints.inverse, constraints.left)
        right = _embedded(np.concatenate([constraints.kernel, solved], axis=2), n)
        A, B = _changed(A, B, right)
        P, Q = P[: len(B)], product(Q, right)[: len(B)]
        left = constant(np.eye(n), len(B))
        left[:, : top.rank, top.rank : active] = -B[:, : top.rank, top.rank : active]
        A, B, P = product(left, A), product(left, B), product(left, P)
        levels.append(removed)
        active = top.rank
    return _decoupled(t, A, B, P, Q, active, len(levels), decisions)


def _embedded(X: np.ndarray, n: int) -> np.ndarray:
    """diag(X, I) of size n."""
    result = constant(np.eye(n), len(X))
    result[:, : X.shape[1], : X.shape[2]] = X
    return result


def _changed(A: np.ndarray, B: np.ndarray, Q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The coefficients after x = Q y: A Q and B Q + A Q'; one Taylor coefficient less."""
    count = len(A) - 1
    return product(A, Q)[:count], product(B, Q)[:count] + product(A, rate(Q))


def _decoupled(t, A, B, P, Q, k, index, decisions) -> StandardCanonicalForm:
    """From [A11 G; 0 N], [B11 0; 0 I] to the form, with y1 + K y2 for y1 where K = G + (K' + C K) N."""
    n = A.shape[1]
    left = _embedded(inverse(A[:, :k, :k]), n)
    A, B, P = product(left, A), product(left, B), product(left, P)
    C, G, N = B[:, :k, :k], A[:, :k, k:], A[:, k:, k:]
    K = L = np.zeros_like(G)
    for _ in range(index + 1):  # N is nilpotent, also together with d/dt, so that this comes to an end
        count = len(K) - 1
        L = rate(K) + product(C, K)[:count]
        K = G[:count] + product(L, N[:count])
    count = len(K) - 1
    L = rate(K) + product(C, K)[:count]
    left, right = constant(np.eye(n), count), constant(np.eye(n), count)
    left[:, :k, k:], right[:, :k, k:] = L, -K[:count]
    P, Q = product(left, P), product(Q, right)
    return StandardCanonicalForm(t, P, Q, C[:count], N[:count], index, tuple(decisions))
