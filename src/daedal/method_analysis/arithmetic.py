"""Matrices of coefficients in one arithmetic: exact if all numbers lie in one quadratic field, floats otherwise."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from daedal.methods.quadratic import Quadratic

TOLERANCE, SHARP = 1e-10, 1e-13
"""A sum of floats counts as zero below the first, relative to its terms, as printed coefficients often have 12 digits;
below the second if coefficients turn out to be correct to all digits."""
_SINGULAR = 1e-12

Row = list[Any]
Matrix = list[Row]


@dataclass(frozen=True)
class Numbers:
    """How coefficients are computed with, and when a result is zero."""

    exact: bool
    tolerance: float = TOLERANCE

    @classmethod
    def of(cls, values: Iterable[Any]) -> Numbers:
        """Exact for integers, fractions and numbers of one quadratic field.

        >>> Numbers.of([Fraction(1, 3), 2]).exact, Numbers.of([0.5]).exact
        (True, False)
        """
        listed = list(values)
        fields = {x.d for x in listed if isinstance(x, Quadratic)}
        return cls(len(fields) <= 1 and all(isinstance(x, int | Fraction | Quadratic) for x in listed))

    def enter(self, x: Any) -> Any:
        """A coefficient as it is computed with."""
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
    """The sum of the absolute products, which round-off in their sum is relative to."""
    return sum(abs(float(p) * float(q)) for p, q in zip(x, y))
