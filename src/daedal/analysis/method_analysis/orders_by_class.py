"""Orders of Runge-Kutta methods: simplifying assumptions, and conditions from trees, in exact arithmetic."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from daedal.analysis.order_conditions.trees import (
    Evaluation,
    Sides,
    differential,
    index_1,
    index_2_across,
    index_2_y,
    index_2_z,
)
from daedal.methods.exact_numbers import Quadratic
from daedal.methods.tableau import RungeKuttaTableau

TOLERANCE, SHARP = 1e-10, 1e-13
"""A sum of floats below this threshold, relative to its terms, counts as zero: the first value is for printed
coefficients, which often have 12 digits, the second for coefficients accurate to all digits."""
_SINGULAR = 1e-12

Row = list[Any]
Matrix = list[Row]


@dataclass(frozen=True)
class Numbers:
    """The arithmetic of coefficients, with a test for zero."""

    exact: bool
    tolerance: float = TOLERANCE

    @classmethod
    def of(cls, values: Iterable[Any]) -> Numbers:
        """The arithmetic for given coefficients: exact for integers, fractions and elements of one quadratic field.

        >>> Numbers.of([Fraction(1, 3), 2]).exact, Numbers.of([0.5]).exact
        (True, False)
        """
        listed = list(values)
        fields = {x.d for x in listed if isinstance(x, Quadratic)}
        return cls(len(fields) <= 1 and all(isinstance(x, int | Fraction | Quadratic) for x in listed))

    def enter(self, x: Any) -> Any:
        """Convert a coefficient to this arithmetic."""
        if not self.exact:
            return float(x)
        return Fraction(x) if isinstance(x, int) else x

    def row(self, values: Iterable[Any]) -> Row:
        """A row of coefficients."""
        return [self.enter(x) for x in values]

    def zero(self, x: Any, scale: float = 1.0) -> bool:
        """Whether a result is zero; for floats relative to a scale."""
        return not x if self.exact else abs(x) <= self.tolerance * max(1.0, scale)

    def equal(self, x: Any, y: Any, scale: float = 0.0) -> bool:
        """Whether two results are equal."""
        return self.zero(x - y, 0.0 if self.exact else max(scale, abs(float(y))))

    def inverse(self, a: Matrix) -> Matrix | None:
        """The inverse by elimination with pivots; None for a singular matrix."""
        n = len(a)
        one, zero = self.enter(1), self.enter(0)
        rows = [[*row, *(one if i == j else zero for j in range(n))] for i, row in enumerate(a)]
        for k in range(n):
            pivot = max(range(k, n), key=lambda i: abs(float(rows[i][k])) if not self.exact else bool(rows[i][k]))
            size = rows[pivot][k]
            if not size or (not self.exact and abs(size) < _SINGULAR):
                return None
            rows[k], rows[pivot] = rows[pivot], rows[k]
            rows[k] = [x / size for x in rows[k]]
            for i in range(n):
                if i != k and (factor := rows[i][k]):
                    rows[i] = [x - factor * y for x, y in zip(rows[i], rows[k])]
        return [row[n:] for row in rows]

    def determinant_polynomial(self, a: Matrix) -> Row:
        r"""The coefficients of :math:`\det(I - z A)`, lowest power first, by Faddeev and LeVerrier's recursion."""
        n = len(a)
        one = self.enter(1)
        coefficients = [one]
        power = [[one if i == j else one - one for j in range(n)] for i in range(n)]
        for k in range(1, n + 1):
            power = [[dot(row, column) for column in zip(*power)] for row in a]
            c = -sum((power[i][i] for i in range(1, n)), power[0][0]) / self.enter(k)
            coefficients.append(c)
            for i in range(n):
                power[i][i] = power[i][i] + c
        return coefficients


def dot(x: Sequence[Any], y: Sequence[Any]) -> Any:
    """The sum of products."""
    first, *others = zip(x, y)
    return sum((p * q for p, q in others), first[0] * first[1])


def times(a: Matrix, x: Sequence[Any]) -> Row:
    """A matrix times a vector."""
    return [dot(row, x) for row in a]


def size(x: Sequence[Any], y: Sequence[Any]) -> float:
    """The sum of the absolute products, the scale for round-off in their sum."""
    return sum(abs(float(p) * float(q)) for p, q in zip(x, y))


# --- Butcher's simplifying assumptions, and the algebraic orders of Brenan, Campbell and Petzold ----------------------

# .. math::
#
#     B(p):\ \sum_i b_i c_i^{k-1} = \tfrac1k, \qquad C(q):\ \sum_j a_{ij} c_j^{k-1} = \tfrac1k c_i^k, \qquad
#     D(r):\ \sum_i b_i c_i^{k-1} a_{ij} = \tfrac1k b_j (1 - c_j^k)
#
# for k up to p, q, r.

Order = float
"""An integer, or infinity."""


@dataclass(frozen=True)
class ExactCoefficients:
    """A tableau without idle stages, in the arithmetic of the analysis; `omega` is the inverse of a, or None."""

    a: Matrix
    b: Row
    c: Row
    omega: Matrix | None
    numbers: Numbers

    @classmethod
    def of(cls, tableau: RungeKuttaTableau) -> ExactCoefficients:
        """The tableau in exact arithmetic or in floats, with a tolerance based on the accuracy of the sums of weights
        and rows."""
        numbers = Numbers.of([x for row in (*tableau.a, tableau.b, tableau.c) for x in row])
        a, b, c = [numbers.row(row) for row in tableau.a], numbers.row(tableau.b), numbers.row(tableau.c)
        if not numbers.exact:
            defects = [sum(b) - 1.0, *(sum(row) - node for row, node in zip(a, c))]
            if max(map(abs, defects)) < SHARP:
                numbers = Numbers(exact=False, tolerance=SHARP)
        return cls(a, b, c, numbers.inverse(a), numbers)

    @property
    def s(self) -> int:
        """The number of stages."""
        return len(self.b)

    def powers(self, k: int) -> Row:
        """The nodes raised to the power k."""
        return [x**k if k else self.numbers.enter(1) for x in self.c]


def _highest(holds: Callable[[int], bool], limit: int, first: int = 1) -> Order:
    """The last of first, first + 1, ... up to which all conditions hold; infinity if all up to the limit hold."""
    for k in range(first, limit + 1):
        if not holds(k):
            return k - 1
    return math.inf


def quadrature_order(method: ExactCoefficients) -> Order:
    """The largest p with B(p); at most 2s for s nodes."""

    def holds(k: int) -> bool:
        return method.numbers.equal(dot(method.b, method.powers(k - 1)), method.numbers.enter(Fraction(1, k)))

    return _highest(holds, 2 * method.s + 1)


def stage_order(method: ExactCoefficients) -> Order:
    """The largest q with C(q); infinite only for explicit Euler."""
    numbers = method.numbers

    def holds(k: int) -> bool:
        powers, ends = method.powers(k - 1), method.powers(k)
        return all(
            numbers.equal(dot(row, powers), end / numbers.enter(k), size(row, powers))
            for row, end in zip(method.a, ends)
        )

    return _highest(holds, 2 * method.s + 1)


def transposed_order(method: ExactCoefficients) -> Order:
    """The largest r with D(r)."""
    numbers = method.numbers

    def holds(k: int) -> bool:
        weights = [x * y for x, y in zip(method.b, method.powers(k - 1))]
        right = [x * (1 - y) / numbers.enter(k) for x, y in zip(method.b, method.powers(k))]
        return all(numbers.equal(dot(weights, column), x) for column, x in zip(zip(*method.a), right))

    return _highest(holds, 2 * method.s + 1)


def algebraic_order(method: ExactCoefficients, index: int) -> Order | None:
    r"""The algebraic order :math:`k_{a,\nu}` of index :math:`\nu` (Proposition 4.2.1); None if A is singular.

    First :math:`b^T A^{-i} 1 = b^T A^{-\nu} c^{\nu-i} / (\nu-i)!` for :math:`1 \le i < \nu`, then :math:`b^T A^{-\nu}
    c^i = i!/(i-\nu+1)!` for :math:`i = \nu, \dots, k_{a,\nu}`; 0 if one of the first conditions fails. The difference
    of the two sides of the last condition satisfies a recursion in i with at most :math:`s + \nu` terms: if it vanishes
    that many times in a row, it vanishes for all i.
    """
    if method.omega is None:
        return None
    numbers = method.numbers
    weights = [method.b]
    for _ in range(index):
        weights.append([dot(weights[-1], column) for column in zip(*method.omega)])
    for i in range(1, index):
        power = method.powers(index - i)
        right = dot(weights[index], power) / numbers.enter(math.factorial(index - i))
        if not numbers.equal(sum(weights[i][1:], weights[i][0]), right, size(weights[index], power)):
            return 0

    def holds(i: int) -> bool:
        power = method.powers(i)
        expected: Any = numbers.enter(math.perm(i, index - 1))
        return numbers.equal(dot(weights[index], power), expected, size(weights[index], power))

    return _highest(holds, 2 * index + method.s, first=index)


def known_first_stage_order(method: ExactCoefficients) -> Order | None:
    r"""The algebraic order of index 1 if the first stage is known and the other stages' :math:`\bar A` is invertible.

    The conditions are :math:`\bar b^T \bar A^{-1} a = b_1` and :math:`\bar b^T \bar A^{-1} \bar c^j = 1` (4.2.21). They
    apply to methods such as Lobatto IIIA, whose first stage is the end of the last step. None for other methods.
    """
    rows = [i for i, row in enumerate(method.a) if not any(row)]
    if len(rows) != 1:
        return None
    (known,) = rows
    others = [i for i in range(method.s) if i != known]
    numbers = method.numbers
    inverse = numbers.inverse([[method.a[i][j] for j in others] for i in others]) if others else None
    if inverse is None:
        return None
    b, c = [method.b[i] for i in others], [method.c[i] for i in others]
    if not numbers.equal(dot(b, times(inverse, [method.a[i][known] for i in others])), method.b[known]):
        return None
    weights = [dot(b, column) for column in zip(*inverse)]
    return _highest(lambda j: numbers.equal(dot(weights, [x**j for x in c]), numbers.enter(1)), method.s + 1)


# --- orders from trees: for differential equations, and for DAEs of index 1 and 2 in Hessenberg form ------------------

HIGHEST_TREES = 10  # highest order verified by rooted trees, of which 719 have this order
# highest order verified by trees with fat vertices, whose number grows fivefold with each order
HIGHEST_CONSTRAINED = 6


@dataclass(frozen=True)
class OrderFound:
    """An order, how it was found, and whether it may be even higher."""

    order: int
    reason: str
    at_least: bool = False


def evaluation(method: ExactCoefficients) -> Evaluation:
    """Values of trees for the coefficients; trees with fat vertices need `omega`."""
    return Evaluation(method.a, method.a, method.b, method.omega or [], method.numbers.enter(1))


def differential_order(method: ExactCoefficients) -> OrderFound:
    r"""The order for y' = f(y).

    B(p), C(q) and D(r) give order p if :math:`p \le q + r + 1` and :math:`p \le 2q + 2` (Butcher 1964; Hairer, Norsett
    and Wanner I, Theorem II.7.4), and the order never exceeds that of the quadrature. If the two differ, the conditions
    of trees decide.
    """
    p, q, r = quadrature_order(method), stage_order(method), transposed_order(method)
    lower = int(min(p, q + r + 1, 2 * q + 2))
    if lower == p:
        return OrderFound(lower, f"B({p:g}), C({_text(q)}), D({_text(r)})")
    order, last = order_by_trees(differential, evaluation(method), method.numbers, int(min(p, HIGHEST_TREES)))
    if order < lower:
        return OrderFound(lower, f"B({p:g}), C({_text(q)}), D({_text(r)})", at_least=True)
    return OrderFound(order, f"rooted trees up to order {last}", at_least=order == HIGHEST_TREES < p)


def index_1_order(method: ExactCoefficients, limit: int) -> int:
    r"""The k with :math:`z_1 - z(t_1) = O(h^{k+1})` for y' = f(y, z), 0 = g(y, z), up to a limit."""
    return order_by_trees(index_1, evaluation(method), method.numbers, min(limit, HIGHEST_TREES))[0]


def index_2_orders(method: ExactCoefficients, limit: int) -> tuple[int, int]:
    r"""The orders of convergence of y and z for y' = f(y, z), 0 = g(y) and :math:`|R(\infty)| < 1`, up to a limit.

    If the error of a step is :math:`O(h^{k+1})` along the constraint and :math:`O(h^{w+1})` across it, where it is
    damped by :math:`R(\infty)` instead of accumulating, y converges with order min(k, w + 1) (Hairer and Wanner II,
    VII.4). An error of y across the constraint, divided by h, becomes an error of z, which converges with order min(k,
    w, m + 1) if its own error in a step is :math:`O(h^{m+1})`.
    """
    trees, numbers, limit = evaluation(method), method.numbers, min(limit, HIGHEST_CONSTRAINED)
    along = order_by_trees(index_2_y, trees, numbers, limit)[0]
    across = order_by_trees(index_2_across, trees, numbers, limit)[0]
    own = order_by_trees(index_2_z, trees, numbers, limit - 1)[0]
    return min(along, across + 1), min(along, across, own + 1)


def order_by_trees(
    conditions: Callable[[Evaluation, int], Sides], trees: Evaluation, numbers: Numbers, limit: int
) -> tuple[int, int]:
    """The order up to which all conditions hold, and the order of the last conditions checked."""
    for k in range(1, limit + 1):
        if not all(numbers.equal(left, numbers.enter(right)) for left, right in conditions(trees, k)):
            return k - 1, k
    return limit, limit


def _text(order: Order) -> str:
    return "∞" if order == float("inf") else f"{order:g}"
