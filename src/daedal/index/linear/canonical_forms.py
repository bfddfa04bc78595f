"""Structures of a pencil: staircase and Weierstrass form, projector chains, nilpotency."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from daedal.common.tabular import Tabular
from daedal.errors import InvalidProblemError
from daedal.index.linear.rank import (
    RankDecision,
    TitledTables,
    check_matrix,
    decision_table,
    numbers,
    rank_decision,
    require_clear,
)

if TYPE_CHECKING:
    from daedal.index.linear.pencil import Pencil

# In each step the unknowns in the kernel of A come first, then the equations in which B contains them: these rows and
# columns are removed, and the procedure is repeated on the rest (P. Van Dooren, Linear Algebra and its Applications 27,
# 1979, 103-140). With s the number of columns and r the number of rows removed in a step, s[1] >= r[1] >= s[2] >= r[2]
# >= ..., and there are
#
#     s[i] - r[i] blocks L of size i - 1 (right minimal indices: undetermined unknowns),
#     r[i] - s[i+1]    infinite blocks of size i (nilpotent Jordan blocks, index i).

_LEAST_SIZE = 1e-3  # columns smaller than this, relative to the largest, may consist of rounding errors


@dataclass(frozen=True)
class Step:
    """One step of the staircase, applied to the pencil remaining from the previous steps."""

    # the numbers of columns and rows removed
    columns: int
    rows: int
    sizes: np.ndarray  # for each removed column, its size in B without cancellation
    # the orthogonal transformations of this step: ``left.T @ (A, B) @ right`` has the removed rows and columns first
    left: np.ndarray
    right: np.ndarray
    # the pencil after the transformations
    A: np.ndarray
    B: np.ndarray


@dataclass(frozen=True)
class Staircase:
    """``left.T @ (A, B) @ right``, block upper triangular: rows and columns of the steps, then the rest.

    The remaining A has full column rank.
    """

    A: np.ndarray
    B: np.ndarray
    left: np.ndarray
    right: np.ndarray
    steps: tuple[Step, ...]
    decisions: tuple[RankDecision, ...]

    @property
    def rows(self) -> int:
        """The total number of rows removed."""
        return sum(step.rows for step in self.steps)

    @property
    def columns(self) -> int:
        """The total number of columns removed."""
        return sum(step.columns for step in self.steps)

    @property
    def rest(self) -> tuple[np.ndarray, np.ndarray]:
        """The remaining A and B."""
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
    """The staircase form of an m x n pencil whose entries are near 1; `names` name A and B in the rank decisions.

    Singular values of A below `tolerance` times its norm count as zero; so do singular values of B below `tolerance`,
    after its columns are divided by their sizes without cancellation.
    """
    m, n = A.shape
    norm_A = float(np.linalg.norm(A, 2)) if A.size else 0.0
    column_norms = np.linalg.norm(B, axis=0)
    least = _LEAST_SIZE * float(np.max(column_norms, initial=0.0)) or 1.0
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
        sizes = np.maximum(column_norms @ np.abs(right[:, j : j + null]), least)
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


# --- the Weierstrass form of a regular pencil, and the shuffle that lowers its index ----------------------------------


@dataclass(frozen=True, repr=False)
class WeierstrassForm(TitledTables):
    r"""``P A Q = diag(I, N)``, ``P B Q = diag(C, I)`` with nilpotent N (Brenan, Campbell and Petzold, theorem 2.3.2).

    With :math:`x = Q y` the system :math:`A x' + B x = f` becomes :math:`y_1' + C y_1 = f_1`, :math:`N y_2' + y_2 =
    f_2`.

    Attributes
    ----------
    P, Q : numpy.ndarray, shape (n, n)
        The transformations.
    C : numpy.ndarray, shape (n_finite, n_finite)
        Its eigenvalues are the negated finite eigenvalues of the pencil.
    N : numpy.ndarray
        Nilpotent and block upper triangular, with zero blocks on the diagonal.
    blocks : tuple of int
        The sizes of the Jordan blocks of N, largest first.
    condition_P, condition_Q : float
        Condition numbers of P and Q, in units of equations and unknowns in which the entries of A and B are near 1.
    error : float
        The largest error in the four blocks of ``P A Q`` and ``P B Q``, in these units.

    Examples
    --------
    >>> import numpy as np
    >>> from daedal import linear
    >>> A, B = [[1.0, 1.0], [0.0, 0.0]], [[0.0, 1.0], [1.0, 0.0]]
    >>> form = linear.Pencil(A, B).weierstrass()
    >>> print((form.P @ A @ form.Q).round(12) + 0.0)
    [[1. 0.]
     [0. 0.]]
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
        """The size of the finite part, which is the number of free initial values."""
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


def _eigenvalues(matrix: np.ndarray) -> np.ndarray:
    return np.linalg.eigvals(matrix) if matrix.size else np.zeros(0)


def weierstrass_form(pencil: Pencil) -> WeierstrassForm:
    """The form obtained from the staircase, whose two parts are decoupled by a generalised Sylvester equation."""
    stairs, scaled = pencil.stairs, pencil.scaled
    k = stairs.rows  # the size of the infinite part, which comes first in the staircase
    A, B = stairs.A, stairs.B
    A_inf, A_12, A_fin = A[:k, :k], A[:k, k:], A[k:, k:]
    B_inf, B_12, B_fin = B[:k, :k], B[:k, k:], B[k:, k:]
    R, L = np.zeros(A_12.shape), np.zeros(A_12.shape)
    inverse_B = np.linalg.inv(B_inf)
    inverse_A = np.linalg.inv(A_fin)
    # A_inf R + L A_fin = -A_12, B_inf R + L B_fin = -B_12: inverse_B A_inf is nilpotent, so the iteration terminates.
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
    """One pass of the shuffle algorithm: replace the equations without derivatives by their derivatives.

    Returns the new A and B (Brenan, Campbell and Petzold, theorem 2.3.3), and the equations without derivatives, which
    come last, as combinations of the given ones.
    """
    U, s, _ = np.linalg.svd(A)
    decision = rank_decision(s, tolerance=tolerance, what="A")
    require_clear([decision], "the shuffle")
    rank = decision.rank
    kept, combinations = U[:, :rank].T, U[:, rank:].T
    constraints = combinations @ B
    return np.vstack([kept @ A, constraints]), np.vstack([kept @ B, np.zeros_like(constraints)]), combinations


# --- projector chains: tractability index of a pencil, and canonical projector of index 1 ----------------------------


@dataclass(frozen=True, repr=False)
class MatrixChain(TitledTables):
    """A_0 = A, B_0 = B, A_{i+1} = A_i + B_i Q_i, B_{i+1} = B_i (I - Q_i), with projectors Q_i onto the kernel of A_i.

    E. Griepentrog, R. März, Differential-Algebraic Equations and Their Numerical Treatment, Teubner 1986.

    Attributes
    ----------
    index : int or None
        The tractability index: the first i for which A_i is regular; None if there is none.
    matrices : tuple of numpy.ndarray
        A_0, A_1, ...
    projectors : tuple of numpy.ndarray
        Q_0, Q_1, ..., orthogonal projectors.
    decisions : tuple of RankDecision

    Examples
    --------
    >>> from daedal import linear
    >>> pencil = linear.Pencil([[1, 0, 0], [0, 1, 0], [0, 0, 0]], [[0, 0, 1], [1, 0, 0], [0, 1, 0]])
    >>> chain = pencil.matrix_chain()
    >>> print(chain.index, len(chain.matrices))
    3 4
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
            raise InvalidProblemError(f"the canonical projector requires index 1; the index is {self.index}")
        return self.projectors[0] @ np.linalg.solve(self.matrices[1], self.B)

    def title(self) -> str:
        return "No tractability index" if self.index is None else f"Tractability index {self.index}"

    def tables(self) -> list[Tabular]:
        return [decision_table(self.decisions)]


def matrix_chain(pencil: Pencil) -> MatrixChain:
    """The chain of a square pencil up to its first regular matrix; at most A_n is examined for n unknowns."""
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


# --- nilpotency from the sparsity pattern alone -----------------------------------------------------------------------


def triangular_order(N: Any) -> np.ndarray | None:
    """An order of rows and columns in which a structurally nilpotent matrix is strictly upper triangular.

    A matrix is structurally nilpotent if it remains nilpotent for any values of its nonzero entries, i.e. if and only
    if a permutation makes it strictly triangular (Brenan, Campbell and Petzold, theorem 2.3.6), or equivalently if its
    graph has no cycle.

    Parameters
    ----------
    N : array_like, shape (n, n)

    Returns
    -------
    numpy.ndarray or None
        ``N[np.ix_(order, order)]`` is strictly upper triangular; None if there is no such order.

    Examples
    --------
    >>> from daedal.index import linear
    >>> linear.triangular_order([[0, 0, 0], [2, 0, 0], [3, 4, 0]]).tolist()
    [2, 1, 0]
    >>> linear.triangular_order([[1, -1], [1, -1]]) is None  # nilpotent, but not by its structure
    True
    """
    matrix = check_matrix(N, "N")
    n = len(matrix)
    if matrix.shape != (n, n):
        raise InvalidProblemError(f"N must be square, but its shape is {matrix.shape}")
    waiting = np.count_nonzero(matrix, axis=0)  # for each column, the number of nonzero entries in rows not placed yet
    order: list[int] = []
    ready = [int(j) for j in np.flatnonzero(waiting == 0)]
    while ready:
        i = ready.pop()
        order.append(i)
        for j in np.flatnonzero(matrix[i]):
            waiting[j] -= 1
            if waiting[j] == 0:
                ready.append(int(j))
    return np.array(order) if len(order) == n else None  # rows on a cycle are never placed
