r"""The left sides of the conditions for given coefficients.

With :math:`A' = (\bar a_{ij})`, whose row i belongs to the point where the constraint determines :math:`Z_i`, and
:math:`\omega = A'^{-1}`, a tree with meagre root has at stage i the value

.. math::

    \Phi_i([u_1, \dots]_y) = \prod_{u\ \text{meagre}} \sum_j a_{ij}\Phi_j(u) \prod_{u\ \text{fat}} \sum_j
    \omega_{ij}\Psi_j(u), \qquad \Psi_j([u_1, \dots]_z) = \prod_u \sum_k \bar a_{jk}\Phi_k(u).

In partitioned methods :math:`Z_1 = z_0` has no expansion in h: :math:`\omega` is the inverse of the rest of A', with a
row and a column of zeros.
"""

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from daedal.errors import InvalidProblemError
from daedal.methods.tableau import HalfExplicitTableau
from daedal.order_conditions.exact import Arithmetic
from daedal.order_conditions.trees import Tree

Matrix = list[list[Any]]


class Evaluation:
    """Values of trees for one tableau; subtrees in common are computed once."""

    def __init__(self, tableau: HalfExplicitTableau, arithmetic: Arithmetic):
        enter = arithmetic.enter
        self.zero, self.one = enter(Fraction(0)), enter(Fraction(1))
        self.s = tableau.s
        self.a = self._square([[enter(x) for x in row] for row in tableau.a])
        self.ab = self._square([[enter(x) for x in row] for row in tableau.constraint_rows])
        self.b = [enter(x) for x in tableau.b]
        self.omega = self._inverse(tableau)
        self._sums: dict[tuple[str, Tree], list[Any]] = {}
        self._values: dict[Tree, list[Any]] = {}

    def _square(self, rows: Sequence[Sequence[Any]]) -> Matrix:
        return [[*row, *[self.zero] * (self.s - len(row))] for row in rows]

    def _inverse(self, tableau: HalfExplicitTableau) -> Matrix:
        """The inverse of A', a lower triangle, by forward substitution; without the first stage if that is explicit."""
        first = 1 if tableau.partitioned else 0
        omega = self._square([[]] * self.s)
        for i in range(first, self.s):
            pivot = self.ab[i][i]
            if not pivot:
                raise InvalidProblemError(_singular(tableau, i))
            for j in range(first, i + 1):
                known = sum((self.ab[i][k] * omega[k][j] for k in range(j, i)), self.zero)
                omega[i][j] = ((self.one if i == j else self.zero) - known) / pivot
        return omega

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


def _singular(tableau: HalfExplicitTableau, i: int) -> str:
    if tableau.partitioned:
        pivot = f"ab_{i + 1},{i + 1}"
    else:
        pivot = f"a_{i + 2},{i + 1}" if i + 1 < tableau.s else f"b_{i + 1}"
    return (
        f"{tableau.name} is not a half-explicit method: {pivot} = 0, so that no constraint determines Z_{i + 1} "
        "(condition (2.3) of Brasey and Hairer)."
    )
