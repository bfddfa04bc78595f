r"""Butcher's simplifying assumptions, and the algebraic orders of Brenan, Campbell and Petzold.

.. math::

    B(p):\ \sum_i b_i c_i^{k-1} = \tfrac1k, \qquad C(q):\ \sum_j a_{ij} c_j^{k-1} = \tfrac1k c_i^k, \qquad
    D(r):\ \sum_i b_i c_i^{k-1} a_{ij} = \tfrac1k b_j (1 - c_j^k)

for k up to p, q, r.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from daedal.method_analysis.arithmetic import SHARP, Matrix, Numbers, Row, dot, size, times
from daedal.methods.runge_kutta_tableau import RungeKuttaTableau

Order = float
"""An integer, or infinity."""


@dataclass(frozen=True)
class Method:
    """A tableau without idle stages, in the arithmetic that is computed with; `omega` is the inverse of a, or None."""

    a: Matrix
    b: Row
    c: Row
    omega: Matrix | None
    numbers: Numbers

    @classmethod
    def of(cls, tableau: RungeKuttaTableau) -> Method:
        """In exact arithmetic or in floats, with a tolerance that suits how well weights and rows add up."""
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
        """The nodes to the power k."""
        return [x**k if k else self.numbers.enter(1) for x in self.c]


def _highest(holds: Callable[[int], bool], limit: int, first: int = 1) -> Order:
    """The last of first, first + 1, ... up to which all hold; infinity if they do up to the limit."""
    for k in range(first, limit + 1):
        if not holds(k):
            return k - 1
    return math.inf


def quadrature_order(method: Method) -> Order:
    """The largest p with B(p); no rule with s nodes has more than 2s."""

    def holds(k: int) -> bool:
        return method.numbers.equal(dot(method.b, method.powers(k - 1)), method.numbers.enter(Fraction(1, k)))

    return _highest(holds, 2 * method.s + 1)


def stage_order(method: Method) -> Order:
    """The largest q with C(q); infinite only for explicit Euler."""
    numbers = method.numbers

    def holds(k: int) -> bool:
        powers, ends = method.powers(k - 1), method.powers(k)
        return all(
            numbers.equal(dot(row, powers), end / numbers.enter(k), size(row, powers))
            for row, end in zip(method.a, ends)
        )

    return _highest(holds, 2 * method.s + 1)


def transposed_order(method: Method) -> Order:
    """The largest r with D(r)."""
    numbers = method.numbers

    def holds(k: int) -> bool:
        weights = [x * y for x, y in zip(method.b, method.powers(k - 1))]
        right = [x * (1 - y) / numbers.enter(k) for x, y in zip(method.b, method.powers(k))]
        return all(numbers.equal(dot(weights, column), x) for column, x in zip(zip(*method.a), right))

    return _highest(holds, 2 * method.s + 1)


def algebraic_order(method: Method, index: int) -> Order | None:
    r"""The algebraic order :math:`k_{a,\nu}` of index :math:`\nu` (Proposition 4.2.1); None if A is singular.

    First :math:`b^T A^{-i} 1 = b^T A^{-\nu} c^{\nu-i} / (\nu-i)!` for :math:`1 \le i < \nu`, then :math:`b^T A^{-\nu}
    c^i = i!/(i-\nu+1)!` for :math:`i = \nu, \dots, k_{a,\nu}`; 0 if one of the first fails. The difference of both
    sides of the last satisfies a recursion in i with at most :math:`s + \nu` terms: if it vanishes so often, it does so
    for all i.
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


def known_first_stage_order(method: Method) -> Order | None:
    r"""The algebraic order of index 1 if one stage is known and the others are :math:`\bar A`, which is invertible.

    :math:`\bar b^T \bar A^{-1} a = b_1` and :math:`\bar b^T \bar A^{-1} \bar c^j = 1` (4.2.21), for methods such as
    Lobatto IIIA, whose first stage is the end of the last step. None for all others.
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
