"""The staircase form of a pencil: its structure at infinity and its singular part, by orthogonal transformations.

In each step the unknowns that A leaves out come first, then the equations in which B ties them: these rows and columns
are removed, and the rest is looked at again (P. Van Dooren, Linear Algebra and its Applications 27, 1979, 103-140).
With s the number of columns and r the number of rows removed in a step, s[1] >= r[1] >= s[2] >= r[2] >= ..., and
there are

    s[i] - r[i]      blocks L of size i - 1 (right minimal indices: unknowns that nothing determines),
    r[i] - s[i+1]    infinite blocks of size i (nilpotent Jordan blocks, index i).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from daedal.linear.rank import RankDecision, rank_decision


@dataclass(frozen=True)
class Step:
    """One step of the staircase, on the pencil that the steps before have left.

    Attributes
    ----------
    columns, rows : int
        How many are removed.
    left, right : numpy.ndarray
        The orthogonal transformations of this step: ``left.T @ (A, B) @ right`` has the rows and columns that are
        removed first.
    sizes : numpy.ndarray
        For each column that is removed, how large it would be in B if nothing cancelled.
    A, B : numpy.ndarray
        The pencil after that transformation.
    """

    columns: int
    rows: int
    sizes: np.ndarray
    left: np.ndarray
    right: np.ndarray
    A: np.ndarray
    B: np.ndarray


@dataclass(frozen=True)
class Staircase:
    """``left.T @ (A, B) @ right``, block upper triangular: rows and columns of the steps, then the rest.

    In the rest A has full column rank.
    """

    A: np.ndarray
    B: np.ndarray
    left: np.ndarray
    right: np.ndarray
    steps: tuple[Step, ...]
    decisions: tuple[RankDecision, ...]

    @property
    def rows(self) -> int:
        """How many rows the steps have removed."""
        return sum(step.rows for step in self.steps)

    @property
    def columns(self) -> int:
        """How many columns the steps have removed."""
        return sum(step.columns for step in self.steps)

    @property
    def rest(self) -> tuple[np.ndarray, np.ndarray]:
        """What is left of A and B."""
        return self.A[self.rows :, self.columns :], self.B[self.rows :, self.columns :]

    @property
    def minimal_indices(self) -> tuple[int, ...]:
        """The sizes of the blocks L."""
        return tuple(i for i, step in enumerate(self.steps) for _ in range(step.columns - step.rows))

    @property
    def infinite_blocks(self) -> tuple[int, ...]:
        """The sizes of the nilpotent Jordan blocks, largest first."""
        following = [step.columns for step in self.steps[1:]] + [0]
        counts = [step.rows - after for step, after in zip(self.steps, following)]
        return tuple(size for size in range(len(counts), 0, -1) for _ in range(counts[size - 1]))


def staircase(A: np.ndarray, B: np.ndarray, tolerance: float, names: tuple[str, str] = ("A", "B")) -> Staircase:
    """The staircase form of a pencil whose entries are near 1.

    Parameters
    ----------
    A, B : numpy.ndarray, shape (m, n)
    tolerance : float
        Singular values below this part of the norm of A count as zero, and so do those of B after its columns have been
        divided by the sizes that they would have if nothing cancelled.
    names : pair of str
        How A and B are called in the decisions.
    """
    m, n = A.shape
    norm_A = float(np.linalg.norm(A, 2)) if A.size else 0.0
    column_norms = np.linalg.norm(B, axis=0)
    A, B = A.copy(), B.copy()
    left, right = np.eye(m), np.eye(n)
    steps: list[Step] = []
    decisions: list[RankDecision] = []
    i = j = 0
    while j < n:
        step_name = f", step {len(steps) + 1}" if steps else ""
        _, s, Vt = np.linalg.svd(A[i:, j:])
        decision = rank_decision(s, scale=norm_A, tolerance=tolerance, what=names[0] + step_name)
        decisions.append(decision)
        rank, null = decision.rank, n - j - decision.rank
        if null == 0:
            break
        V = np.concatenate([Vt[rank:], Vt[:rank]]).T
        A[:, j:], B[:, j:], right[:, j:] = A[:, j:] @ V, B[:, j:] @ V, right[:, j:] @ V
        A[i:, j : j + null] = 0.0
        sizes = column_norms @ np.abs(right[:, j : j + null])
        sizes[sizes == 0.0] = 1.0
        U, s, _ = np.linalg.svd(B[i:, j : j + null] / sizes)
        decision = rank_decision(s, scale=1.0, tolerance=tolerance, what=f"{names[1]} on ker {names[0]}{step_name}")
        decisions.append(decision)
        rows = decision.rank
        A[i:], B[i:], left[:, i:] = U.T @ A[i:], U.T @ B[i:], left[:, i:] @ U
        B[i + rows :, j : j + null] = 0.0
        A[i:, j : j + null] = 0.0
        steps.append(Step(null, rows, sizes, U, V, A[i:, j:].copy(), B[i:, j:].copy()))
        i, j = i + rows, j + null
    return Staircase(A, B, left, right, tuple(steps), tuple(decisions))
