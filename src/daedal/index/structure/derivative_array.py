"""The derivative array F = 0, dF/dt = 0, ..., d^kF/dt^k = 0 with its Jacobian, as machine code, and its ranks.

All blocks of the Jacobian come from the partial derivatives of F and their total derivatives with respect to time,

    d F^(r) / d x^(l) = sum_s binomial(r, l - s) (d/dt)^(r - l + s) F_{x^(s)},

since differentiation with respect to time and to x^(l) commute up to one step, d(F')/dx^(l) = (dF/dx^(l))' +
dF/dx^(l-1). For linear systems it is (2.4.6) of Brenan, Campbell and Petzold without the factorials of Taylor
coefficients, and the inflated pair (M_k, N_k) of Kunkel and Mehrmann.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import comb
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from daedal.common.tabular import derivative_name, times
from daedal.index.linear.rank import RankDecision, rank_decision
from daedal.index.structure.equilibration import equilibrate, natural_units
from daedal.index.structure.system_equations import SystemEquations

_FEW_ERRORS = 8.0 * float(np.finfo(float).eps)
_ALTOGETHER = 0.1  # relative change above which an entry counts as round-off of zero


@dataclass(frozen=True)
class _Level:
    """The equations differentiated r times, and the total derivatives of order r of the entries of their Jacobian."""

    rows: np.ndarray  # indices of the equations
    residual: Callable
    entries: Callable
    row: np.ndarray  # equation, order of the derivative and unknown of each entry
    order: np.ndarray
    column: np.ndarray


class NonlinearDerivativeArray:
    """Equations, differentiated up to given numbers of times, and their Jacobian with respect to x, x', x'', ...

    `times` is the number of differentiations of all equations, or of each of them. `rows` are pairs (i, r), equation i
    differentiated r times: the given equations, then their first derivatives, ... `highest` is the highest derivative
    of the unknowns provided for in the array.

    Examples
    --------
    >>> import daedal
    >>> from daedal.index.structure.derivative_array import NonlinearDerivativeArray
    >>> from daedal.index.structure.system_equations import SystemEquations
    >>> problem = daedal.ImplicitDAE(lambda t, y, yp: [yp[0] - y[1], y[0] ** 2 - t], 2)
    >>> array = NonlinearDerivativeArray(SystemEquations(problem), 1)
    >>> jet = [[1.0, 0.5], [0.5, 3.0], [0.0, 0.0]]
    >>> array.residual(1.0, jet)
    array([ 0.,  0., -3.,  0.])
    >>> array.jacobian(1.0, jet).toarray()[3]  # of 2 x x' - 1 with respect to x, x', x''
    array([1., 0., 2., 0., 0., 0.])
    """

    def __init__(self, equations: SystemEquations, times: int | Sequence[int] | np.ndarray):
        n = equations.n
        self.equations, self.n = equations, n
        self.times = np.broadcast_to(np.asarray(times, dtype=np.int64), n).copy()
        self.highest = int(self.times.max(initial=0)) + equations.order
        orders = range(int(self.times.max(initial=0)) + 1)
        self._levels = [_level(equations, np.flatnonzero(self.times >= r), r) for r in orders]
        self.rows = [(int(i), r) for r, level in enumerate(self._levels) for i in level.rows]
        self._source, self._factor, self._place = self._assembly()

    def extended(self) -> NonlinearDerivativeArray:
        """The array with one more derivative of all equations."""
        return NonlinearDerivativeArray(self.equations, int(self.times.max()) + 1)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of the Jacobian; the column of x_j^(l) is l n + j."""
        return len(self.rows), self.n * (self.highest + 1)

    def residual(self, t: float, jet, params: np.ndarray | None = None) -> np.ndarray:
        """All equations at t for the derivatives in the rows of `jet`, optionally with other parameters."""
        numbers = self.equations.params if params is None else params
        return np.concatenate([level.residual(t, jet, numbers) for level in self._levels])

    def jacobian(self, t: float, jet, params: np.ndarray | None = None) -> sp.csr_array:
        """The derivatives of all equations with respect to x, x', ..., x^(highest)."""
        numbers = self.equations.params if params is None else params
        values = np.concatenate([level.entries(t, jet, numbers) for level in self._levels])
        entries = self._factor * values[self._source]
        # entries at the same position are added
        return sp.csr_array(sp.coo_array((entries, self._place), shape=self.shape))

    def settled_jacobian(self, t: float, jet, params: np.ndarray | None = None) -> sp.csr_array:
        """The Jacobian without entries that are round-off of zero.

        Terms that vanish on the solution leave such entries, for example those with r in (1 + cos x') r = 0, and
        scaling would make them as large as the others. An entry counts as round-off if it changes completely when x,
        x', ... change by a few rounding errors.
        """
        found, jet = self.jacobian(t, jet, params), np.asarray(jet, dtype=float)
        errors = _FEW_ERRORS * np.cos(np.arange(jet.size) ** 2.0).reshape(jet.shape)
        nearby = self.jacobian(t, jet * (1.0 + errors), params)
        found.data[np.abs(found.data - nearby.data) > _ALTOGETHER * np.abs(found.data)] = 0.0
        return found

    @property
    def order(self) -> np.ndarray:
        """The order of the derivative of each column."""
        return np.arange(self.shape[1]) // self.n

    @property
    def excess(self) -> np.ndarray:
        """For each column x_j^(l) the excess of l over the highest derivative of x_j in the problem (at least 1).

        Negative for the unknowns of the problem in first-order form, 0 for their derivatives: x' of x.
        """
        return self.order - np.tile(np.maximum(self.equations.orders, 1), self.highest + 1)

    def units(self, jacobian) -> tuple[np.ndarray, np.ndarray]:
        """Factors of rows and columns that measure unknowns, equations and time in units of the problem.

        With t = T s and x_j = D_j y_j, x_j^(k) is measured in units of D_j T^(-k), and equation i differentiated r
        times in T^(-r) / R_i. These units make all coefficients of the equations similar in size
        (:func:`~daedal.index.structure.equilibration.natural_units`).
        """
        entries = sp.coo_array(jacobian)
        rows, columns = entries.coords
        numbers, levels = np.array(self.rows).T
        kept = levels[rows] == 0
        rows, columns = rows[kept], columns[kept]
        equation, unknown, time = natural_units(
            numbers[rows], columns % self.n, self.order[columns], entries.data[kept], self.n
        )
        order = self.order
        return (
            np.exp(equation[numbers] + time * levels),
            np.exp(np.tile(unknown, self.highest + 1) - time * order),
        )

    def time_units(self, jacobian) -> tuple[np.ndarray, np.ndarray]:
        """Factors of rows and columns that measure time in a unit of the problem.

        With t = T s, x^(k) is measured in units of T^(-k) and equations differentiated r times in T^(-r). T balances
        the terms with x and x' of each equation, on average of the logarithms. Unknowns keep their units, in which
        changes are compared.
        """
        entries = sp.coo_array(jacobian)
        (rows, columns), sizes = entries.coords, np.abs(entries.data)
        levels = np.array([r for _, r in self.rows])
        kept = (levels[rows] == 0) & (sizes > 0.0) & np.isfinite(sizes)
        rows, orders, logs = rows[kept], self.order[columns[kept]], np.log(sizes[kept])
        count = np.maximum(np.bincount(rows, minlength=len(levels)), 1)
        spread = orders - (np.bincount(rows, orders, len(levels)) / count)[rows]
        weight = float(spread @ spread)
        unit = float(spread @ logs) / weight if weight > 0.0 else 0.0
        return np.exp(unit * levels), np.exp(-unit * self.order)

    def words(self, row: int) -> str:
        """The equation of a row: ``equation 2``, ``equation 2 differentiated twice``."""
        i, r = self.rows[row]
        return equation_in_words(i, r)

    def node(self, column: int) -> int:
        """The node of the derivative of a column."""
        order, j = divmod(column, self.n)
        return self.equations.unknown(j, order)

    def label(self, column: int) -> str:
        """The derivative of a column: ``x''``."""
        order, j = divmod(int(column), self.n)
        return derivative_name(self.equations.names[j], order)

    def _assembly(self) -> tuple[np.ndarray, np.ndarray, tuple[np.ndarray, np.ndarray]]:
        """Index arrays that assemble the entries of all levels with their factors."""
        starts = np.cumsum([0, *(level.row.size for level in self._levels)])
        first_rows = np.cumsum([0, *(level.rows.size for level in self._levels)])
        parts = []
        for r, target in enumerate(self._levels):
            position = np.full(self.n, -1)
            position[target.rows] = np.arange(target.rows.size)
            for k in range(r + 1):  # entries differentiated k times multiply x^(s + r - k)
                level = self._levels[k]
                used = np.flatnonzero(position[level.row] >= 0)
                rows = first_rows[r] + position[level.row[used]]
                columns = (level.order[used] + r - k) * self.n + level.column[used]
                parts.append((starts[k] + used, np.full(used.size, float(comb(r, k))), rows, columns))
        source, factor, rows, columns = (np.concatenate(part) for part in zip(*parts, strict=True))
        return source, factor, (rows, columns)


def equation_in_words(i: int, often: int) -> str:
    """``equation 2``, ``equation 2 differentiated twice``; numbered from 0."""
    return f"equation {i} differentiated {times(often)}" if often else f"equation {i}"


def _level(equations: SystemEquations, rows: np.ndarray, times: int) -> _Level:
    key = times, rows.tobytes()
    with equations.lock:
        if key not in equations.levels:
            places = [(int(i), j, s) for i in rows for j, s in equations.partials[i]]
            nodes = [equations.partials[i][j, s] for i, j, s in places]
            for _ in range(times):
                nodes = equations.rates(nodes)
            residual = equations.evaluator([equations.equation(int(i), times) for i in rows])
            where = np.array(places, dtype=np.int64).reshape(-1, 3)
            entries = equations.evaluator(nodes)
            equations.levels[key] = _Level(rows, residual, entries, where[:, 0], where[:, 2], where[:, 1])
        return equations.levels[key]


# --- ranks of a derivative array at a point: the differentiation index, the strangeness index, characteristic values --

# Columns of the array are split into the unknowns x of the problem in first-order form (including x' if x'' occurs),
# their derivatives, and higher derivatives. With Z the left kernel of the columns above x,
#
#     a = rank Z^T F_x     equations between t and x that the array contains: the constraints, hidden ones included,
#     corank combinations of all equations without unknowns: they follow from others, or contradict them,
#     T                    the kernel of Z^T F_x: directions in which x may move, d = rank F_x' T of which move by
#                          themselves.
#
# Differentiation index: the smallest number of differentiations for which the array determines x', that is, is 1-full
# (Brenan, Campbell and Petzold, definition 2.5.1 and proposition 2.5.1; S. L. Campbell and C. W. Gear, Numer. Math. 72,
# 1995). Strangeness index: the smallest one for which d = n - a - v, where v is the growth of the corank (P. Kunkel and
# V. Mehrmann, Differential-Algebraic Equations, EMS 2006, hypothesis 4.2). Both are defined at points that satisfy the
# array, and assume constant ranks in a neighbourhood.

TOLERANCE = 1e-9
"""Singular values below this fraction of the largest count as zero, after scaling rows and columns."""
_DOMINANT = 0.3  # entry of a singular vector, relative to the largest, above which its equation or unknown is named
_OPEN = 1e-6  # component in the kernel of the array above which a derivative counts as undetermined


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
    missing: int  # number of equations in none of these groups; 0 if the array contains all constraints
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
        """The ranks that determine the characteristic values: up to the first array that is 1-full, otherwise all."""
        return ranks if self.index is None else ranks[: self.index + 1]

    def __str__(self) -> str:
        index = "no index" if self.index is None else f"index {self.index}"
        return f"{index}, strangeness index {self.strangeness_index} (d = {self.d}, a = {self.a}, v = {self.v})"


def array_ranks(array: NonlinearDerivativeArray, t: float, jet: np.ndarray) -> list[ArrayRanks]:
    """The ranks of the arrays of all orders up to that of `array`, at one point.

    Examples
    --------
    >>> import daedal
    >>> from daedal.index.structure.derivative_array import array_ranks
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
    # combinations of equations that contain only x, each divided by the sizes of its terms
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
