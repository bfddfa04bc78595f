"""The tractability index of März up to 2, from a chain of matrices and projectors at a point.

For A x' + B x = q with A = F_x', B = F_x and Q_0, Q_1 projectors onto the kernels of A and of G_1, P = I - Q,

    G_0 = A,   G_1 = A + B Q_0,   G_2 = G_1 + B P_0 Q_1,

the index is the first i for which G_i is nonsingular (R. März, Numerical methods for differential algebraic equations,
Acta Numerica 1, 1992). The derivative of a projector that varies adds to B a matrix in the range of G_1, which does not
change whether G_2 is nonsingular. It is defined here where the kernel of A does not change: the unknowns whose
derivatives occur have independent columns in A.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from daedal.linear.rank import RankDecision, rank_decision
from daedal.structure.equations import Equations
from daedal.structure.equilibration import equilibrate

LARGEST = 400
"""Unknowns beyond which dense matrices are not made."""
_TOLERANCE = 1e-10


@dataclass(frozen=True)
class Tractability:
    """The tractability index at a point.

    Attributes
    ----------
    index : int or None
        0, 1 or 2; None if it is higher.
    decisions : list of RankDecision
        The ranks of G_0, G_1, G_2, as far as they were needed.
    """

    index: int | None
    decisions: list[RankDecision]


def tractability(equations: Equations, t: float, derivatives: np.ndarray) -> Tractability | None:
    """The index at a point; None where it does not apply: order 2, a kernel that may turn, too many unknowns.

    Examples
    --------
    >>> import daedal
    >>> from daedal.structure.equations import Equations
    >>> from daedal.structure.tractability import tractability
    >>> problem = daedal.SemiExplicitDAE(lambda t, y, z: [z[0]], lambda t, y, z: [y[0] - t], 1, 1)
    >>> tractability(Equations(problem), 0.0, [[0.0, 1.0], [1.0, 0.0]]).index
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


def linearisation(equations: Equations, t: float, derivatives: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """F_x' and F_x at a point; None for order 2, too many unknowns, or values that are not finite."""
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
    return rank_decision(rows[:, None] * matrix * columns, tolerance=_TOLERANCE, what=what)


def _kernel_projector(matrix: np.ndarray, rank: int) -> np.ndarray:
    """A projector onto the kernel."""
    rows, columns = equilibrate(matrix)
    kernel = np.linalg.svd(rows[:, None] * matrix * columns)[2][rank:].T * columns[:, None]
    orthonormal, _ = np.linalg.qr(kernel)
    return orthonormal @ orthonormal.T
