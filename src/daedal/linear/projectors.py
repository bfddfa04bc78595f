"""Projector chains: the tractability index of a pencil, and the canonical projector of index 1."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from daedal.errors import InvalidProblemError
from daedal.linear.rank import RankDecision, decision_table, rank_decision
from daedal.linear.words import Shown
from daedal.tabular import Tabular

if TYPE_CHECKING:
    from daedal.linear.pencil import Pencil


@dataclass(frozen=True, repr=False)
class MatrixChain(Shown):
    """A_0 = A, B_0 = B, A_{i+1} = A_i + B_i Q_i, B_{i+1} = B_i (I - Q_i), with projectors Q_i onto the kernel of A_i.

    E. Griepentrog, R. März, Differential-Algebraic Equations and Their Numerical Treatment, Teubner 1986.

    Attributes
    ----------
    index : int or None
        The tractability index: the first i for which A_i is regular; None if there is none.
    matrices : tuple of numpy.ndarray
        A_0, A_1, ...
    projectors : tuple of numpy.ndarray
        Q_0, Q_1, ..., orthogonal ones.
    decisions : tuple of RankDecision
    """

    index: int | None
    matrices: tuple[np.ndarray, ...]
    projectors: tuple[np.ndarray, ...]
    decisions: tuple[RankDecision, ...]
    B: np.ndarray

    @property
    def canonical_projector(self) -> np.ndarray:
        """For index 1, the projector onto ker A along {x: B x in range A}: Q A_1^{-1} B (J. Wijckmans, section 4.1)."""
        if self.index != 1:
            raise InvalidProblemError(f"the canonical projector is that of index 1, and the index is {self.index}")
        return self.projectors[0] @ np.linalg.solve(self.matrices[1], self.B)

    def title(self) -> str:
        return "No tractability index" if self.index is None else f"Tractability index {self.index}"

    def tables(self) -> list[Tabular]:
        return [decision_table(self.decisions)]

    def __repr__(self) -> str:
        return f"<{self.title()}>"


def matrix_chain(pencil: Pencil) -> MatrixChain:
    """Follow the chain until its matrix is regular, up to the number of unknowns."""
    A, B = pencil.A, pencil.B
    n = A.shape[1]
    if A.shape[0] != n:
        raise InvalidProblemError("the matrix chain needs as many equations as unknowns")
    matrices: list[np.ndarray] = [A]
    projectors: list[np.ndarray] = []
    decisions: list[RankDecision] = []
    for i in range(n + 1):
        _, s, Vt = np.linalg.svd(matrices[-1])
        decision = rank_decision(s, tolerance=pencil.tolerance, what=f"A_{i}")
        decisions.append(decision)
        if decision.rank == n:
            return MatrixChain(i, tuple(matrices), tuple(projectors), tuple(decisions), pencil.B)
        kernel = Vt[decision.rank :]
        projectors.append(kernel.T @ kernel)
        matrices.append(matrices[-1] + B @ projectors[-1])
        B = B - B @ projectors[-1]
    return MatrixChain(None, tuple(matrices), tuple(projectors), tuple(decisions), pencil.B)
