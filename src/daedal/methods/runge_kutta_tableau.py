"""The coefficients of any Runge-Kutta method in one value, exact where they are exact."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from daedal.errors import InvalidProblemError
from daedal.methods.tableau import Number, coefficients

ROUNDOFF = 1e-10
"""Sums of coefficients that are given as floats count as equal up to this; printed tables often have 12 digits."""


@dataclass(frozen=True, repr=False)
class RungeKuttaTableau:
    r"""Coefficients of a Runge-Kutta method, explicit or implicit, with s stages.

    .. math::

        Y_i = y_0 + h \sum_j a_{ij} f(t_0 + c_j h, Y_j), \qquad y_1 = y_0 + h \sum_i b_i f(t_0 + c_i h, Y_i)

    Parameters
    ----------
    a : sequence of sequences
        The matrix, row by row; a row may end early, what is missing is zero. Integers, fractions, texts such as
        ``"5/12"`` and numbers of SymPy stay exact; floats make the tableau a numerical one.
    b : sequence
        The weights.
    c : sequence, optional
        The nodes; the sums of the rows of `a` if not given.
    name : str
        What the method is called.
    embedded : sequence, optional
        Weights of a method of lower order with the same stages, with which the error is estimated.

    Examples
    --------
    >>> import daedal
    >>> radau = daedal.RungeKuttaTableau([["5/12", "-1/12"], ["3/4", "1/4"]], ["3/4", "1/4"], name="Radau IIA")
    >>> radau.c, radau.exact, radau.stiffly_accurate
    ((Fraction(1, 3), Fraction(1, 1)), True, True)
    """

    a: Sequence[Sequence[Number]]
    b: Sequence[Number]
    c: Sequence[Number] = ()
    name: str = "Runge-Kutta method"
    embedded: Sequence[Number] = ()

    def __post_init__(self) -> None:
        b = as_row(self.b, f"{self.name}: b")
        matrix = _listed(self.a, f"{self.name}: a")
        rows = [as_row(row, f"{self.name}: row {i} of a") for i, row in enumerate(matrix, 1)]
        s = len(b)
        if not any(b):
            raise InvalidProblemError(f"{self.name}: one of the weights b must not be zero")
        if len(rows) != s:
            raise InvalidProblemError(f"{self.name}: there are {len(rows)} rows of a and {s} weights b")
        for i, row in enumerate(rows, 1):
            if len(row) > s:
                raise InvalidProblemError(f"{self.name}: row {i} of a has {len(row)} entries, and there are {s} stages")
        a = tuple((*row, *[Fraction(0)] * (s - len(row))) for row in rows)
        c = as_row(self.c, f"{self.name}: c") or tuple(sum(row, Fraction(0)) for row in a)
        if len(c) != s:
            raise InvalidProblemError(f"{self.name}: c must have {s} entries, and has {len(c)}")
        embedded = as_row(self.embedded, f"{self.name}: embedded")
        if len(embedded) not in (0, s):
            raise InvalidProblemError(f"{self.name}: embedded must have {s} weights, and has {len(embedded)}")
        for field, kept in (("a", a), ("b", b), ("c", c), ("embedded", embedded)):
            object.__setattr__(self, field, kept)

    def __repr__(self) -> str:
        return self.name

    @property
    def s(self) -> int:
        """The number of stages."""
        return len(self.b)

    @property
    def exact(self) -> bool:
        """Whether every coefficient is an exact number."""
        return not any(isinstance(x, float) for row in (*self.a, self.b, self.c, self.embedded) for x in row)

    @property
    def explicit(self) -> bool:
        """Whether each stage needs earlier ones only."""
        return not any(any(row[i:]) for i, row in enumerate(self.a))

    @property
    def diagonally_implicit(self) -> bool:
        """Whether the stages are found one after the other."""
        return not any(any(row[i + 1 :]) for i, row in enumerate(self.a))

    @property
    def stiffly_accurate(self) -> bool:
        """Whether a stage at c = 1 is the new point: its row of `a` is b."""
        return any(
            same(node, Fraction(1)) and all(same(x, y) for x, y in zip(row, self.b))
            for row, node in zip(self.a, self.c)
        )

    def floats(self) -> dict[str, np.ndarray]:
        """The coefficients as arrays of floats: a (s by s), b, c."""
        return {name: np.array(getattr(self, name), dtype=float) for name in ("a", "b", "c")}

    def permuted(self, order: Sequence[int]) -> RungeKuttaTableau:
        """The same method with its stages in another order, counted from 0."""
        a = [[self.a[i][j] for j in order] for i in order]
        b, c, embedded = ([row[i] for i in order] if row else [] for row in (self.b, self.c, self.embedded))
        return RungeKuttaTableau(a, b, c, self.name, embedded)

    def adjoint(self) -> RungeKuttaTableau:
        r"""The adjoint method, a step backwards inverted: :math:`a^*_{ij} = b_j - a_{s+1-i,s+1-j}` with reversed b.

        A method that is its own adjoint is symmetric (Hairer, Norsett and Wanner I, II.8).

        Examples
        --------
        >>> import daedal
        >>> euler = daedal.formula("explicit_euler")
        >>> euler.adjoint().a == daedal.formula("backward_euler").a
        True
        """
        b = self.b[::-1]
        a = [[bj - x for bj, x in zip(b, row[::-1])] for row in self.a[::-1]]
        return RungeKuttaTableau(a, b, [1 - x for x in self.c[::-1]], f"adjoint of {self.name}")

    def reduced(self) -> RungeKuttaTableau:
        """The method without stages that do nothing: those that y_1 does not depend on, and copies of others.

        Stages without influence are left out (Dahlquist and Jeltsch), stages that are equal for every problem are
        taken together (Hundsdorfer and Spijker; Hairer and Wanner II, IV.12).

        Examples
        --------
        >>> import daedal
        >>> twice = daedal.RungeKuttaTableau([["1/2", "1/2"], ["1/2", "1/2"]], ["1/2", "1/2"])
        >>> twice.reduced().a, twice.reduced().b
        (((Fraction(1, 1),),), (Fraction(1, 1),))
        """
        used = {i for i, x in enumerate(self.b) if x}
        while more := {j for i in used for j, x in enumerate(self.a[i]) if x} - used:
            used |= more
        kept = sorted(used)
        classes = self._classes(kept)
        if len(classes) == self.s:
            return self
        first = [one[0] for one in classes]
        a = [[sum((self.a[i][j] for j in one), Fraction(0)) for one in classes] for i in first]
        b = [sum((self.b[j] for j in one), Fraction(0)) for one in classes]
        return RungeKuttaTableau(a, b, [self.c[i] for i in first], self.name)

    def _classes(self, kept: Sequence[int]) -> list[list[int]]:
        """Stages that are equal for every problem: the coarsest partition whose classes have equal sums in each row."""
        classes = [list(kept)] if kept else []
        while True:
            finer: list[list[int]] = []
            for one in classes:
                groups: list[tuple[list[Any], list[int]]] = []
                for i in one:
                    mark = [self.c[i], *(sum((self.a[i][j] for j in other), Fraction(0)) for other in classes)]
                    for known, members in groups:
                        if all(same(x, y) for x, y in zip(known, mark)):
                            members.append(i)
                            break
                    else:
                        groups.append((mark, [i]))
                finer += [members for _, members in groups]
            if len(finer) == len(classes):
                return sorted(classes)
            classes = finer


def same(x: Any, y: Any) -> bool:
    """Whether two coefficients are equal: exactly, or up to round-off if one of them is a float."""
    if isinstance(x, float) or isinstance(y, float):
        return abs(float(x) - float(y)) <= ROUNDOFF * max(1.0, abs(float(x)))
    return bool(x == y)


def _listed(values: Any, what: str) -> list[Any]:
    if isinstance(values, str) or not hasattr(values, "__iter__"):
        raise InvalidProblemError(f"{what} must be a sequence, got {values!r}")
    return list(values)


def as_row(values: Any, what: str) -> tuple[Number, ...]:
    """Coefficients as they are kept, which must be real and finite."""
    try:
        row = coefficients(_listed(values, what))
        finite = np.isfinite([float(x) for x in row])
    except (TypeError, ValueError, ZeroDivisionError):
        raise InvalidProblemError(f"{what} must hold real numbers or texts such as '1/3', got {values!r}") from None
    if not np.all(finite):
        raise InvalidProblemError(f"{what} must hold finite numbers, got {values!r}")
    return row
