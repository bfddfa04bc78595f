r"""The left sides of the conditions for given coefficients.

With :math:`A' = (\bar a_{ij})`, whose row i belongs to the point where the constraint determines :math:`Z_i`, and
:math:`\omega = A'^{-1}`, a tree with meagre root has at stage i the value

.. math::

    \Phi_i([u_1, \dots]_y) = \prod_{u\ \text{meagre}} \sum_j a_{ij}\Phi_j(u) \prod_{u\ \text{fat}} \sum_j
    \omega_{ij}\Psi_j(u), \qquad \Psi_j([u_1, \dots]_z) = \prod_u \sum_k \bar a_{jk}\Phi_k(u).

In partitioned methods :math:`Z_1 = z_0` has no expansion in h: :math:`\omega` is the inverse of the rest of A', with a
row and a column of zeros.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from daedal.errors import InvalidProblemError
from daedal.methods.tableau import HalfExplicitTableau
from daedal.order_conditions.exact import Arithmetic
from daedal.order_conditions.trees import Tree

Matrix = list[list[Any]]


class Evaluation:
    """Values of trees for one method, from its matrices a, ab = A' and omega; common subtrees are computed once."""

    def __init__(self, a: Matrix, ab: Matrix, b: Sequence[Any], omega: Matrix, one: Any):
        self.a, self.ab, self.b, self.omega = a, ab, b, omega
        self.s, self.one, self.zero = len(b), one, one - one
        self._sums: dict[tuple[str, Tree], list[Any]] = {}
        self._values: dict[Tree, list[Any]] = {}

    @classmethod
    def half_explicit(cls, tableau: HalfExplicitTableau, arithmetic: Arithmetic) -> Evaluation:
        """For a half-explicit method; `omega` is the inverse of the lower triangle A'."""
        enter = arithmetic.enter
        zero, one = enter(Fraction(0)), enter(Fraction(1))

        def square(rows: Sequence[Sequence[Any]]) -> Matrix:
            return [[*map(enter, row), *[zero] * (tableau.s - len(row))] for row in rows]

        ab = square(tableau.constraint_rows)
        omega = _inverse(tableau, ab, zero, one)
        return cls(square(tableau.a), ab, [enter(x) for x in tableau.b], omega, one)

    def _times(self, name: str, tree: Tree) -> list[Any]:
        """One of the matrices a, ab, omega times the values of a tree."""
        if (name, tree) not in self._sums:
            self._sums[name, tree] = [self.dot(row, self.values(tree)) for row in getattr(self, name)]
        return self._sums[name, tree]

    def dot(self, row: Sequence[Any], values: Sequence[Any]) -> Any:
        """The sum of products."""
        return sum((x * y for x, y in zip(row, values) if x), self.zero)

    def values(self, tree: Tree) -> list[Any]:
        """The values of a tree at the stages, if its root is meagre, or at the points of the constraint."""
        if tree not in self._values:
            values = [self.one] * self.s
            for child in tree.children:
                matrix = "ab" if tree.fat else ("omega" if child.fat else "a")
                values = [x * y for x, y in zip(values, self._times(matrix, child))]
            self._values[tree] = values
        return self._values[tree]

    def at_end(self, tree: Tree, enter: Any) -> Any:
        """The value at (y_1, z_1): z_1 solves the hidden constraint, and has the expansion of the solution."""
        value = self.one
        for child in tree.children:
            value = value * (enter(child.right_side) if child.fat else self.dot(self.b, self.values(child)))
        return value


def _inverse(tableau: HalfExplicitTableau, ab: Matrix, zero: Any, one: Any) -> Matrix:
    """The inverse of A', a lower triangle, by forward substitution; without the first stage if that is explicit."""
    first, s = 1 if tableau.partitioned else 0, tableau.s
    omega = [[zero] * s for _ in range(s)]
    for i in range(first, s):
        pivot = ab[i][i]
        if not pivot:
            raise InvalidProblemError(_singular(tableau, i))
        for j in range(first, i + 1):
            known = sum((ab[i][k] * omega[k][j] for k in range(j, i)), zero)
            omega[i][j] = ((one if i == j else zero) - known) / pivot
    return omega


def _singular(tableau: HalfExplicitTableau, i: int) -> str:
    if tableau.partitioned:
        pivot = f"ab_{i + 1},{i + 1}"
    else:
        pivot = f"a_{i + 2},{i + 1}" if i + 1 < tableau.s else f"b_{i + 1}"
    return (
        f"{tableau.name} is not a half-explicit method: {pivot} = 0, so that no constraint determines Z_{i + 1} "
        "(condition (2.3) of Brasey and Hairer)."
    )
