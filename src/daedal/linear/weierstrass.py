"""The Weierstrass form of a regular pencil, and the shuffle that lowers its index."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from daedal.linear.rank import rank_decision, require_clear
from daedal.linear.words import Shown, numbers
from daedal.tabular import Tabular

if TYPE_CHECKING:
    from daedal.linear.pencil import Pencil


@dataclass(frozen=True, repr=False)
class WeierstrassForm(Shown):
    r"""``P A Q = diag(I, N)``, ``P B Q = diag(C, I)`` with nilpotent N (Brenan, Campbell and Petzold, theorem 2.3.2).

    With :math:`x = Q y` the system :math:`A x' + B x = f` becomes :math:`y_1' + C y_1 = f_1`, :math:`N y_2' + y_2 =
    f_2`.

    Attributes
    ----------
    P, Q : numpy.ndarray, shape (n, n)
        The transformations.
    C : numpy.ndarray, shape (n_finite, n_finite)
        Its eigenvalues are the finite eigenvalues of the pencil, with the other sign.
    N : numpy.ndarray
        Nilpotent and block upper triangular, with zero blocks on the diagonal.
    blocks : tuple of int
        The sizes of the Jordan blocks of N, largest first.
    condition_P, condition_Q : float
        Condition numbers of P and Q, for equations and unknowns in units in which the entries of A and B are near 1.
    error : float
        The largest error in the four blocks of ``P A Q`` and ``P B Q``, in these units.
    """

    P: np.ndarray
    Q: np.ndarray
    C: np.ndarray
    N: np.ndarray
    blocks: tuple[int, ...]
    condition_P: float
    condition_Q: float
    error: float

    @property
    def n_finite(self) -> int:
        """The size of the finite part, which is the number of initial values that can be chosen."""
        return len(self.C)

    @property
    def index(self) -> int:
        """The nilpotency of N."""
        return max(self.blocks, default=0)

    @property
    def projector(self) -> np.ndarray:
        """The projector onto the finite part along the infinite one."""
        return self.Q[:, : self.n_finite] @ np.linalg.inv(self.Q)[: self.n_finite]

    def title(self) -> str:
        return f"Weierstrass form: P A Q = diag(I, N), P B Q = diag(C, I), index {self.index}"

    def tables(self) -> list[Tabular]:
        rows = [
            ("finite part", f"{self.n_finite} of {len(self.P)}; eigenvalues of -C: {numbers(_eigenvalues(-self.C))}"),
            ("nilpotent blocks", ", ".join(map(str, self.blocks)) or "none"),
            ("condition", f"{self.condition_P:.2g} of P, {self.condition_Q:.2g} of Q"),
            ("error", f"{self.error:.1e}"),
        ]
        return [Tabular("ll", rows)]

    def __repr__(self) -> str:
        return f"<{self.title()}>"


def _eigenvalues(matrix: np.ndarray) -> np.ndarray:
    return np.linalg.eigvals(matrix) if matrix.size else np.zeros(0)


def weierstrass_form(pencil: Pencil) -> WeierstrassForm:
    """The form from the staircase, whose two parts are decoupled by a generalised Sylvester equation."""
    stairs, scaled = pencil.stairs, pencil.scaled
    k = stairs.rows  # the size of the infinite part, which comes first in the staircase
    A, B = stairs.A, stairs.B
    A_inf, A_12, A_fin = A[:k, :k], A[:k, k:], A[k:, k:]
    B_inf, B_12, B_fin = B[:k, :k], B[:k, k:], B[k:, k:]
    R, L = np.zeros(A_12.shape), np.zeros(A_12.shape)
    inverse_B = np.linalg.inv(B_inf)
    inverse_A = np.linalg.inv(A_fin)
    # A_inf R + L A_fin = -A_12, B_inf R + L B_fin = -B_12: inverse_B A_inf is nilpotent, so that this comes to an end.
    for _ in range(len(stairs.steps) + 2):
        R = -inverse_B @ (B_12 + L @ B_fin)
        L = -(A_12 + A_inf @ R) @ inverse_A
    V, U = stairs.right, stairs.left
    Q = np.hstack([V[:, k:] + V[:, :k] @ R, V[:, :k]])
    P = np.vstack([inverse_A @ U[:, k:].T, inverse_B @ (U[:, :k].T + L @ U[:, k:].T)])
    level = np.repeat(np.arange(len(stairs.steps)), [step.rows for step in stairs.steps])
    N, C = np.where(level[:, None] < level, inverse_B @ A_inf, 0.0), inverse_A @ B_fin
    finite = len(C)
    at_A, at_B = P @ scaled.A @ Q, P @ scaled.B @ Q
    at_A[:finite, :finite] -= np.eye(finite)
    at_A[finite:, finite:] -= N
    at_B[:finite, :finite] -= C
    at_B[finite:, finite:] -= np.eye(k)
    time = np.concatenate([np.full(finite, scaled.time), np.ones(k)])
    return WeierstrassForm(
        P=time[:, None] * P * scaled.rows,
        Q=scaled.columns[:, None] * Q,
        C=scaled.time * C,
        N=N / scaled.time,
        blocks=stairs.infinite_blocks,
        condition_P=float(np.linalg.cond(P)),
        condition_Q=float(np.linalg.cond(Q)),
        error=float(max(np.abs(at_A).max(), np.abs(at_B).max())),
    )


def shuffle(A: np.ndarray, B: np.ndarray, tolerance: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """One pass of the shuffle algorithm: the equations without derivatives are replaced by their derivatives.

    Returns
    -------
    A, B : numpy.ndarray
        The new matrices (Brenan, Campbell and Petzold, theorem 2.3.3).
    combinations : numpy.ndarray
        The equations without derivatives, as combinations of the given ones: one row each. They stand last.
    """
    U, s, _ = np.linalg.svd(A)
    decision = rank_decision(s, tolerance=tolerance, what="A")
    require_clear([decision], "the shuffle")
    rank = decision.rank
    kept, combinations = U[:, :rank].T, U[:, rank:].T
    constraints = combinations @ B
    return np.vstack([kept @ A, constraints]), np.vstack([kept @ B, np.zeros_like(constraints)]), combinations
