"""The derivative array F = 0, dF/dt = 0, ..., d^kF/dt^k = 0 with its Jacobian, as machine code.

All blocks of the Jacobian come from the partial derivatives of F and their total derivatives with respect to time,

    d F^(r) / d x^(l) = sum_s binomial(r, l - s) (d/dt)^(r - l + s) F_{x^(s)},

since differentiation with respect to time and to x^(l) commute up to one step, d(F')/dx^(l) = (dF/dx^(l))' +
dF/dx^(l-1). For linear systems it is (2.4.6) of Brenan, Campbell and Petzold without the factorials of Taylor
coefficients, and the inflated pair (M_k, N_k) of Kunkel and Mehrmann.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import comb

import numpy as np
import scipy.sparse as sp

from daedal.common.tabular import derivative_name, times
from daedal.index.structure.equilibration import natural_units
from daedal.index.structure.system_equations import SystemEquations

_FEW_ERRORS = 8.0 * float(np.finfo(float).eps)
_ALTOGETHER = 0.1  # relative change of an entry that is round-off


@dataclass(frozen=True)
class _Level:
    """The equations differentiated r times, and the total derivatives of order r of the entries of their Jacobian."""

    rows: np.ndarray  # equations
    residual: Callable
    entries: Callable
    row: np.ndarray  # equation, order of the derivative and unknown of each entry
    order: np.ndarray
    column: np.ndarray


class NonlinearDerivativeArray:
    """Equations, differentiated up to given numbers of times, and their Jacobian with respect to x, x', x'', ...

    Parameters
    ----------
    equations : Equations
    times : int or sequence of int
        Number of differentiations of all equations, or of each of them.

    Attributes
    ----------
    rows : list of (i, r)
        Equation i differentiated r times, in the order of the rows: the given equations, then their first derivatives,
        ...
    highest : int
        The highest derivative of the unknowns provided for in the array.

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
        scaling would make them as large as the others. An entry counts as round-off if it changes altogether when x,
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
        times in T^(-r) / R_i. They make all coefficients of the equations similar in size
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
