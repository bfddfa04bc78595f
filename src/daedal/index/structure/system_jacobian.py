"""Pryce's system Jacobian, which decides whether the signature method is valid: its values and singular values.

J_ij = d f_i / d x_j^(sigma_ij) where d_j - c_i = sigma_ij, otherwise 0: the derivative of f_i^(c_i) with respect to
x_j^(d_j) (J. D. Pryce, BIT 41, 2001, equation (9) and lemma 3.7).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sparse
from scipy.sparse.linalg import LinearOperator, norm, onenormest, splu

from daedal.index.linear.rank import RankDecision, rank_decision
from daedal.index.structure.equilibration import equilibrate
from daedal.index.structure.signature import (
    DulmageMendelsohn,
    StructuralSignature,
    SystemPart,
    best_transversal,
    random_points,
    smallest_duals,
)
from daedal.index.structure.system_equations import SystemEquations
from daedal.symbolic.graph import evaluate

SINGULAR, REGULAR = 1e-12, 1e-8
"""Limits for the smallest singular value of a block, relative to the largest: below the first the block is singular,
above the second it is nonsingular; in between, round-off cannot be distinguished from a small number with certainty."""
# numbers of unknowns of a block up to which all its singular values are always computed, and computed on demand
_DENSE, _LARGEST_DENSE = 200, 1200
_DOUBTFUL = 1e-4  # estimated singular value below which it is computed, since the estimate may be too low


@dataclass(frozen=True)
class Regularity:
    """Whether the system Jacobian is nonsingular, with the decisive numbers."""

    # The smallest singular value of its worst diagonal block, relative to the largest, after scaling
    smallest: float
    verdict: str  # "nonsingular", "singular" or "unclear"
    deficiency: int  # number of singular values that count as zero
    # Rows and columns in the worst block's singular vectors of the smallest singular value
    equations: list[int]
    unknowns: list[int]
    # The smallest relative singular value taken as nonzero and the largest taken as zero (0 if there is none)
    gap: tuple[float, float]
    singular_blocks: list[SystemPart]  # equations and unknowns of the diagonal blocks that are singular

    def __bool__(self) -> bool:
        return self.verdict == "nonsingular"


class SystemJacobian:
    """The system Jacobian of a signature.

    Examples
    --------
    >>> import daedal
    >>> from daedal.index.structure.system_equations import SystemEquations
    >>> from daedal.index.structure.signature import StructuralSignature, best_transversal, smallest_duals
    >>> from daedal.index.structure.system_jacobian import SystemJacobian
    >>> equations = SystemEquations(daedal.ImplicitDAE(lambda t, y, yp: [yp[0] - y[1], y[0] ** 2 - t], 2))
    >>> jacobian = SystemJacobian(equations, StructuralSignature.of(equations))
    >>> jacobian.matrix(1.0, [[1.0, 0.5], [0.5, 0.0]]).toarray()
    array([[ 1., -1.],
           [ 2.,  0.]])
    >>> jacobian.regularity(1.0, [[1.0, 0.5], [0.5, 0.0]]).verdict
    'nonsingular'
    >>> jacobian.regularity(0.0, [[0.0, 0.5], [0.5, 0.0]]).verdict
    'singular'
    """

    def __init__(self, equations: SystemEquations, signature: StructuralSignature):
        self.equations, self.signature = equations, signature
        partials = equations.partials
        leading = signature.leading()
        self.rows = [{j: partials[i][j, k] for j, k in row.items()} for i, row in enumerate(leading)]
        self.nodes = [node for row in self.rows for node in row.values()]

    @cached_property
    def decomposition(self) -> DulmageMendelsohn:
        """The fine block-triangular form of the pattern of this matrix."""
        return DulmageMendelsohn.of(self.rows, self.equations.n)

    @cached_property
    def _machine_code(self):
        return self.equations.evaluator(self.nodes)

    def matrix(self, t: float, derivatives: Any) -> sparse.csr_array:
        """The matrix at t and x, x', ... (one row for each derivative)."""
        return self._with_values(self._machine_code(t, derivatives))

    def regularity(self, t: float, derivatives: Any) -> Regularity:
        """Whether the matrix is nonsingular at t and x, x', ..."""
        return regularity(self.matrix(t, derivatives), self.decomposition)

    @cached_property
    def _samples(self) -> list[tuple[dict[str, np.ndarray], sparse.csr_array]]:
        found = []
        points = random_points(self.equations, self.equations.order)
        for k in range(points["t"].shape[1]):
            here = {name: vector[:, k] for name, vector in points.items()}
            values = np.array(evaluate(self.equations.graph, self.nodes, here), dtype=float)
            if np.all(np.isfinite(values)):
                found.append((here, self._with_values(values)))
        return found

    @property
    def points(self) -> list[dict[str, np.ndarray]]:
        """Random points, not necessarily consistent, at which the matrix is defined, each as arguments of the graph."""
        return [point for point, _ in self._samples]

    @property
    def samples(self) -> list[sparse.csr_array]:
        """The values of the matrix at `points`."""
        return [matrix for _, matrix in self._samples]

    @cached_property
    def generic(self) -> Regularity:
        """The regularity at the best of some random points.

        If the matrix is singular at all of them, it is identically singular, and the signature method fails.
        """
        best = Regularity(0.0, "unclear", 0, [], [], (np.nan, np.nan), [])
        for matrix in self.samples:
            found = regularity(matrix, self.decomposition)
            if found.smallest >= best.smallest:
                best = found
            if best:
                break
        return best

    def _with_values(self, values: np.ndarray) -> sparse.csr_array:
        n = self.equations.n
        indptr = np.cumsum([0, *map(len, self.rows)])
        columns = np.fromiter((j for row in self.rows for j in row), np.int64, len(self.nodes))
        return sparse.csr_array((values, columns, indptr), shape=(n, n))


def regularity(matrix: sparse.csr_array, decomposition: DulmageMendelsohn) -> Regularity:
    """Whether a matrix is nonsingular, by diagonal blocks, after scaling of rows and columns."""
    scaled = _balanced(matrix)
    smallest, equations, unknowns = np.inf, list[int](), list[int]()
    deficiency, kept, dropped, singular = 0, np.inf, 0.0, list[SystemPart]()
    for block in decomposition.blocks:
        values, left, right = _singular_values(scaled, block)
        deficiency += int(np.sum(values < SINGULAR))
        kept = min([kept, *values[values >= SINGULAR]])
        dropped = max([dropped, *values[values < SINGULAR]])
        if values[-1] < SINGULAR:
            singular.append(block)
        if values[-1] < smallest:
            smallest, equations, unknowns = values[-1], _large(left, block.rows), _large(right, block.columns)
    verdict = "singular" if smallest < SINGULAR else "nonsingular" if smallest > REGULAR else "unclear"
    gap = float(kept), float(dropped)
    return Regularity(float(smallest), verdict, deficiency, equations, unknowns, gap, singular)


def _balanced(matrix: sparse.csr_array) -> sparse.csr_array:
    """Scale rows and columns by powers of 2 so that no entry is much above 1 and those on a transversal are about 1.

    The transversal is that of the largest product (I. S. Duff and J. Koster, SIAM J. Matrix Anal. Appl. 22, 2001,
    973-996); a matrix without one is singular and remains unchanged.
    """
    entries = matrix.tocoo()
    used = entries.data != 0.0
    rows, columns, data = entries.row[used], entries.col[used], entries.data[used]
    exponents = np.rint(np.log2(np.abs(data))).astype(np.int64)
    try:
        transversal = best_transversal(rows, columns, exponents, matrix.shape[0])
    except ValueError:
        return matrix
    by_row, by_column = smallest_duals(rows, columns, exponents, transversal)
    scaled = np.ldexp(data, by_row[rows] - by_column[columns])
    return sparse.csr_array((scaled, (rows, columns)), shape=matrix.shape)


def _singular_values(matrix: sparse.csr_array, block: SystemPart) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The singular values of a block relative to the largest, and the vectors of the smallest.

    For a block too large for a singular value decomposition only the smallest value, estimated from the inverse.
    """
    size = len(block.rows)
    if size == 1:
        start, end = matrix.indptr[block.rows[0]], matrix.indptr[block.rows[0] + 1]
        here = matrix.indices[start:end] == block.columns[0]
        return np.minimum(np.abs(matrix.data[start:end][here]).sum(keepdims=True), 1.0), np.ones(1), np.ones(1)
    part = matrix[block.rows][:, block.columns]
    if size <= _DENSE:
        return _decomposed(part)
    try:
        factors = splu(part.tocsc())
    except RuntimeError:  # exactly singular
        return np.zeros(1), np.zeros(size), np.zeros(size)
    inverse = LinearOperator(part.shape, factors.solve, rmatvec=lambda x: factors.solve(x, trans="T"), dtype=float)
    size_of_inverse, vector = onenormest(inverse, compute_w=True)
    other = factors.solve(vector, trans="T")
    estimate = 1.0 / (size_of_inverse * norm(part, 1))
    if estimate < _DOUBTFUL and size <= _LARGEST_DENSE:
        return _decomposed(part)
    return np.array([estimate]), other / np.abs(other).max(), vector / np.abs(vector).max()


def _decomposed(part: sparse.csr_array) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    left, values, right = np.linalg.svd(part.toarray())
    return values / (values[0] or 1.0), left[:, -1], right[-1]


def _large(vector: np.ndarray, members: Sequence[int]) -> list[int]:
    """The members whose entries are not much smaller than the largest."""
    sizes = np.abs(vector)
    return [member for member, size in zip(members, sizes, strict=True) if size > 1e-3 * sizes.max()]


# --- the tractability index of März up to 2, from a chain of matrices and projectors at a point -----------------------

# For A x' + B x = q with A = F_x', B = F_x and Q_0, Q_1 projectors onto the kernels of A and of G_1, P = I - Q,
#
#     G_0 = A,   G_1 = A + B Q_0,   G_2 = G_1 + B P_0 Q_1,
#
# the index is the first i for which G_i is nonsingular (R. März, Numerical methods for differential algebraic
# equations, Acta Numerica 1, 1992). The derivative of a varying projector adds to B a matrix in the range of G_1, which
# does not affect the nonsingularity of G_2. The index is computed only if the kernel of A is constant: the unknowns
# whose derivatives occur have independent columns in A.

LARGEST = 400
"""Number of unknowns above which dense matrices are not formed."""
_TRACTABILITY_TOLERANCE = 1e-10


@dataclass(frozen=True)
class Tractability:
    """The tractability index at a point."""

    index: int | None  # 0, 1 or 2; None if it is higher
    decisions: list[RankDecision]  # the ranks of G_0, G_1, G_2, up to the last one needed


def tractability(equations: SystemEquations, t: float, derivatives: np.ndarray) -> Tractability | None:
    """The index at a point; None if not applicable: order 2, a possibly rotating kernel, too many unknowns.

    Examples
    --------
    >>> import daedal
    >>> from daedal.index.structure.system_equations import SystemEquations
    >>> from daedal.index.structure.system_jacobian import tractability
    >>> problem = daedal.SemiExplicitDAE(lambda t, y, z: [z[0]], lambda t, y, z: [y[0] - t], 1, 1)
    >>> tractability(SystemEquations(problem), 0.0, [[0.0, 1.0], [1.0, 0.0]]).index
    2
    """
    n, matrices = equations.n, linearisation(equations, t, derivatives)
    if matrices is None:
        return None
    A, B = matrices
    dynamic = sorted({j for row in equations.partials for j, k in row if k == 1})
    decisions = [_rank(A[:, dynamic], "F_x'")]
    if decisions[0].rank < len(dynamic):
        return None
    P = np.diag(np.isin(np.arange(n), dynamic).astype(float))
    G, index = A, 0
    while decisions[-1].rank < n and index < 2:
        Q = np.eye(n) - P if index == 0 else P @ _kernel_projector(G, decisions[-1].rank)
        G, index = G + B @ Q, index + 1
        decisions.append(_rank(G, f"G_{index}"))
    return Tractability(index if decisions[-1].rank == n else None, decisions)


def linearisation(
    equations: SystemEquations, t: float, derivatives: np.ndarray
) -> tuple[np.ndarray, np.ndarray] | None:
    """F_x' and F_x at a point; None for order 2, too many unknowns, or nonfinite values."""
    n = equations.n
    if equations.order > 1 or n > LARGEST:
        return None
    places = [(i, j, k, node) for i, row in enumerate(equations.partials) for (j, k), node in row.items()]
    values = equations.values([node for *_, node in places], t, derivatives)
    matrices = np.zeros((2, n, n))
    for (i, j, k, _), value in zip(places, values, strict=True):
        matrices[k, i, j] = value
    return (matrices[1], matrices[0]) if np.all(np.isfinite(matrices)) else None


def _rank(matrix: np.ndarray, what: str) -> RankDecision:
    rows, columns = equilibrate(matrix)
    return rank_decision(rows[:, None] * matrix * columns, tolerance=_TRACTABILITY_TOLERANCE, what=what)


def _kernel_projector(matrix: np.ndarray, rank: int) -> np.ndarray:
    rows, columns = equilibrate(matrix)
    kernel = np.linalg.svd(rows[:, None] * matrix * columns)[2][rank:].T * columns[:, None]
    orthonormal, _ = np.linalg.qr(kernel)
    return orthonormal @ orthonormal.T
