"""Ranks of a derivative array at a point: the differentiation index, the strangeness index, characteristic values.

Columns of the array are split into the unknowns x of the problem in first-order form (including x' if x'' occurs),
their derivatives, and higher derivatives. With Z the left kernel of the columns above x,

    a = rank Z^T F_x     equations between t and x that the array contains: the constraints, hidden ones included,
    corank combinations of all equations without unknowns: they follow from others, or contradict them,
    T                    the kernel of Z^T F_x: directions in which x may move, d = rank F_x' T of which move by
                         themselves.

Differentiation index: the smallest number of differentiations for which the array determines x', that is, is 1-full
(Brenan, Campbell and Petzold, definition 2.5.1 and proposition 2.5.1; S. L. Campbell and C. W. Gear, Numer. Math. 72,
1995). Strangeness index: the smallest one for which d = n - a - v, where v is the growth of the corank (P. Kunkel and
V. Mehrmann, Differential-Algebraic Equations, EMS 2006, hypothesis 4.2). Both are defined at points that satisfy the
array, and assume constant ranks in a neighbourhood.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from daedal.index.linear.rank import RankDecision, rank_decision
from daedal.index.structure.derivative_array import NonlinearDerivativeArray
from daedal.index.structure.equilibration import equilibrate
from daedal.index.structure.system_equations import SystemEquations

TOLERANCE = 1e-9
"""Singular values below this fraction of the largest count as zero, after scaling rows and columns."""
_DOMINANT = 0.3  # smallest entry of a vector that is named, relative to the largest
_OPEN = 1e-6  # smallest component of an undetermined derivative in the kernel of the array


class Weakest(NamedTuple):
    """The most doubtful contribution to a rank: dominant equations and unknowns, numbered from 0."""

    equations: tuple[int, ...]
    unknowns: tuple[int, ...]


@dataclass(frozen=True)
class ArrayRanks:
    """Ranks of the array of one order at a point."""

    times: int  # number of differentiations of the equations
    open_rates: tuple[int, ...]  # unknowns with derivatives not determined by the array; none if it is 1-full
    # Constraints, differential equations, and equations that follow from the others or contradict them
    a: int
    d: int
    v: int
    missing: int  # number of equations in neither group; 0 if the array contains all constraints
    corank: int  # corank of the whole array
    # Shape (a, rows): combinations of the rows of the array that contain x only
    constraints: np.ndarray = field(repr=False)
    redundant: np.ndarray = field(repr=False)  # shape (corank, rows): combinations of the rows that vanish identically
    columns: np.ndarray = field(repr=False)  # the columns of x
    # Shape (columns of x, degrees of freedom): directions of free motion of x, orthonormal in units of `sizes`
    tangent: np.ndarray = field(repr=False)
    sizes: np.ndarray = field(repr=False)  # sizes of x that balance the equations
    decisions: tuple[RankDecision, ...] = field(repr=False)  # the ranks, each with its gap
    # for each rank, the equations and unknowns of its smallest nonzero singular value
    weakest: tuple[Weakest, ...] = field(repr=False)

    @property
    def one_full(self) -> bool:
        """Whether the array determines x'."""
        return not self.open_rates

    @property
    def degrees_of_freedom(self) -> int:
        """The dimension of the values of x that satisfy the constraints."""
        return self.tangent.shape[1]


@dataclass(frozen=True)
class Characteristics:
    """Integers that describe a problem at a time; see :class:`~daedal.initial.local_structure.LocalStructure`."""

    index: int | None
    strangeness_index: int | None
    d: int
    a: int
    v: int
    degrees_of_freedom: int

    @classmethod
    def of(cls, ranks: Sequence[ArrayRanks]) -> Characteristics:
        """Characteristic values from the ranks of the arrays of all orders at a point."""
        index = next((entry.times for entry in ranks if entry.one_full), None)
        mu = next((entry.times for entry in ranks if entry.missing == 0), None)
        settled = ranks[-1 if mu is None else mu]
        return cls(index, mu, settled.d, settled.a, settled.v, settled.degrees_of_freedom)

    def settled(self, ranks: Sequence[ArrayRanks]) -> ArrayRanks:
        """The ranks of the first array that contains all constraints; of the last one if there is none."""
        return ranks[-1 if self.strangeness_index is None else self.strangeness_index]

    def used(self, ranks: Sequence[ArrayRanks]) -> Sequence[ArrayRanks]:
        """The ranks that determine the characteristic values: up to the first array that determines x', or all."""
        return ranks if self.index is None else ranks[: self.index + 1]

    def __str__(self) -> str:
        index = "no index" if self.index is None else f"index {self.index}"
        return f"{index}, strangeness index {self.strangeness_index} (d = {self.d}, a = {self.a}, v = {self.v})"


def array_ranks(array: NonlinearDerivativeArray, t: float, jet: np.ndarray) -> list[ArrayRanks]:
    """The ranks of the arrays of all orders up to that of `array`, at one point.

    Examples
    --------
    >>> import daedal
    >>> from daedal.index.structure.characteristics import array_ranks
    >>> from daedal.index.structure.derivative_array import NonlinearDerivativeArray
    >>> from daedal.index.structure.system_equations import SystemEquations
    >>> problem = daedal.ImplicitDAE(lambda t, y, yp: [yp[0] - y[1], y[0] - t**2], 2)
    >>> array = NonlinearDerivativeArray(SystemEquations(problem), 2)
    >>> [(ranks.one_full, ranks.a) for ranks in array_ranks(array, 0.0, [[0, 0], [0, 2], [2, 0], [0, 0]])]
    [(False, 1), (False, 2), (True, 2)]
    """
    jacobian = array.settled_jacobian(t, jet)
    matrix, units = jacobian.toarray(), array.units(jacobian)
    levels = np.array([r for _, r in array.rows])
    found: list[ArrayRanks] = []
    for k in range(int(array.times.max()) + 1):
        columns = array.order <= k + array.equations.order
        part, measured = matrix[np.ix_(levels <= k, columns)], (units[0][levels <= k], units[1][columns])
        found.append(_ranks(k, part, measured, array.excess[columns], array, found[-1].corank if found else 0))
    return found


def open_rates(array: NonlinearDerivativeArray, t: float, jet: np.ndarray) -> np.ndarray:
    """Unknowns with derivatives that the array does not determine at a point; none if it is 1-full."""
    above = np.flatnonzero(array.excess >= 0)
    jacobian = array.settled_jacobian(t, jet)
    (rows, columns), matrix = array.units(jacobian), jacobian.toarray()[:, above]
    return _open(_kernels(matrix, equilibrate(matrix, (rows, columns[above])))[1], above, array.excess, array.n)


def _ranks(
    k: int, matrix: np.ndarray, units: Any, excess: np.ndarray, array: NonlinearDerivativeArray, corank_before: int
) -> ArrayRanks:
    base, above = np.flatnonzero(excess < 0), np.flatnonzero(excess >= 0)
    rows, columns = equilibrate(matrix, units)
    scaled = rows[:, None] * matrix * columns
    further, factors = equilibrate(scaled[:, above])
    left, kernel, upper, last = _kernels(scaled[:, above], (further, factors), f"the derivatives in {_array(k)}")
    numbers = np.array([i for i, _ in array.rows])
    weakest = [Weakest(dominant(last[0], numbers), dominant(last[1], above % array.n))]
    # combinations of equations that contain only x, relative to their terms
    terms = further[:, None] * scaled[:, base]
    left = left / _nonzero(np.abs(left) @ np.linalg.norm(terms, axis=1))[:, None]
    combining, s, tt = np.linalg.svd(left @ terms)
    lower = rank_decision(s, scale=1.0, tolerance=TOLERANCE, what=f"the constraints in {_array(k)}")
    if lower.rank:
        last = combining.T[lower.rank - 1] @ left, tt[lower.rank - 1]
        weakest.append(Weakest(dominant(last[0], numbers), dominant(last[1], base % array.n)))
    else:
        weakest.append(Weakest((), ()))
    left, a, tangent, sizes = combining.T @ left, lower.rank, tt[lower.rank :].T, columns[base]
    left[:a] -= left[:a] @ np.linalg.pinv(left[a:]) @ left[a:]  # remove components that follow from the others
    left = left * further * rows
    # the differential equations in the directions left by the constraints
    leading = _leading(matrix[: array.n], excess, base) * sizes
    dynamics = (leading @ tangent) / _nonzero(np.linalg.norm(leading, axis=1))[:, None]
    w, s, _ = np.linalg.svd(dynamics)
    moving = rank_decision(s, scale=1.0, tolerance=TOLERANCE, what=f"the dynamics with {_array(k)}")
    last = w[:, max(moving.rank - 1, 0)] if w.size else np.zeros(0)
    weakest.append(Weakest(dominant(last[: array.n], np.arange(array.n)), dominant(last @ leading, base % array.n)))
    corank = len(left) - a
    v = corank - corank_before
    return ArrayRanks(
        times=k,
        open_rates=tuple(int(j) for j in _open(kernel, above, excess, array.n)),
        a=a,
        d=moving.rank,
        v=v,
        missing=len(leading) - a - v - moving.rank,
        corank=corank,
        constraints=left[:a],
        redundant=left[a:],
        columns=base,
        tangent=tangent,
        sizes=sizes,
        decisions=(upper, lower, moving),
        weakest=tuple(weakest),
    )


def _kernels(matrix: np.ndarray, factors: tuple[np.ndarray, np.ndarray], what: str = ""):
    """Left and right kernel of a matrix, scaled by row and column factors, and the decision about its rank."""
    u, s, vt = np.linalg.svd(factors[0][:, None] * matrix * factors[1])
    decision = rank_decision(s, tolerance=TOLERANCE, what=what)
    last = max(decision.rank - 1, 0)
    return u[:, decision.rank :].T, vt[decision.rank :], decision, (u[:, last], vt[last])


def _open(kernel: np.ndarray, above: np.ndarray, excess: np.ndarray, n: int) -> np.ndarray:
    """Unknowns with derivatives in the right kernel of the columns `above` x."""
    moving = np.linalg.norm(kernel, axis=0) > _OPEN
    return np.sort(above[moving & (excess[above] == 0)] % n)


def dominant(vector: np.ndarray, numbers: np.ndarray) -> tuple[int, ...]:
    """The equations or unknowns with the largest entries of a singular vector, largest first."""
    sizes = np.abs(vector)
    order = np.argsort(-sizes, kind="stable")
    large = [int(numbers[k]) for k in order if sizes[k] > _DOMINANT * sizes[order[0]]] if sizes.size else []
    return tuple(dict.fromkeys(large))


def _leading(matrix: np.ndarray, excess: np.ndarray, base: np.ndarray) -> np.ndarray:
    """The leading matrix of the problem in first-order form: equations, and x' = w where x'' occurs."""
    n = len(matrix)
    below = base[excess[base] < -1]
    found = np.zeros((n + below.size, base.size))
    for place, column in enumerate(base):
        if excess[column] == -1:
            found[:n, place] = matrix[:, column + n]
        else:
            found[n + np.searchsorted(below, column), place] = 1.0
    return found


def _array(k: int) -> str:
    return "the equations" if k == 0 else f"the array of order {k}"


def _nonzero(sizes: np.ndarray) -> np.ndarray:
    return np.where(sizes > 0.0, sizes, 1.0)


# --- the tractability index of März up to 2, from a chain of matrices and projectors at a point -----------------------

# For A x' + B x = q with A = F_x', B = F_x and Q_0, Q_1 projectors onto the kernels of A and of G_1, P = I - Q,
#
#     G_0 = A,   G_1 = A + B Q_0,   G_2 = G_1 + B P_0 Q_1,
#
# the index is the first i for which G_i is nonsingular (R. März, Numerical methods for differential algebraic
# equations, Acta Numerica 1, 1992). The derivative of a varying projector adds to B a matrix in the range of G_1, which
# does not affect the nonsingularity of G_2. It is computed only if the kernel of A is constant: the unknowns whose
# derivatives occur have independent columns in A.

LARGEST = 400
"""Number of unknowns above which dense matrices are not formed."""
_TOLERANCE = 1e-10


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
    >>> from daedal.index.structure.characteristics import tractability
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
    return rank_decision(rows[:, None] * matrix * columns, tolerance=_TOLERANCE, what=what)


def _kernel_projector(matrix: np.ndarray, rank: int) -> np.ndarray:
    rows, columns = equilibrate(matrix)
    kernel = np.linalg.svd(rows[:, None] * matrix * columns)[2][rank:].T * columns[:, None]
    orthonormal, _ = np.linalg.qr(kernel)
    return orthonormal @ orthonormal.T
