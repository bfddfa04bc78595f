"""The coefficients of a half-explicit Runge-Kutta method in one value, exact where they are exact."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from daedal.errors import InvalidProblemError
from daedal.methods.quadratic import quadratic_from_sympy

_ROUNDOFF = 1e-12  # of sums of coefficients that are given as floats

Number = Any
"""int, Fraction, Quadratic, a SymPy number, or float."""


def as_coefficient(value: Any) -> Number:
    """A coefficient as it is kept: integers and texts such as ``"1/3"`` become fractions, other numbers stay.

    >>> as_coefficient("3/40")
    Fraction(3, 40)
    """
    if isinstance(value, str | int) and not isinstance(value, bool):
        return Fraction(value)
    if isinstance(value, np.floating):
        return float(value)
    if isinstance(value, np.integer):
        return Fraction(int(value))
    return quadratic_from_sympy(value) if hasattr(value, "free_symbols") else value


def coefficients(values: Iterable[Any]) -> tuple[Number, ...]:
    """A row of coefficients as it is kept."""
    return tuple(as_coefficient(value) for value in values)


@dataclass(frozen=True, repr=False)
class HalfExplicitTableau:
    r"""Coefficients of a half-explicit Runge-Kutta method with s stages.

    Attributes
    ----------
    name : str
        What the method is called.
    a : tuple of tuples
        Row i holds :math:`a_{i1}, \dots, a_{i,i-1}`; the first row is empty.
    b : tuple
        The s weights of :math:`y_1`.
    c : tuple
        The nodes of the stages, :math:`c_i = \sum_j a_{ij}`; computed if not given.
    ab : tuple of tuples, or None
        Only for partitioned methods: row i holds :math:`\bar a_{i1}, \dots, \bar a_{ii}`, the weights of the point
        whose constraint determines :math:`Z_i`. The first row is empty, because :math:`Z_1 = z_0` is known.
    bhat : tuple, or None
        Weights of an embedded solution that does not satisfy the constraint and has to be projected.
    second_bhat : tuple, or None
        Weights of a second, coarse embedded solution; the error is then err1^2 / (err1 + 0.01 err2), with the exponent
        of a method of order p - 1, as in Brasey's code.
    dense : tuple of tuples, or None
        :math:`y(t_0 + \theta h) \approx y_0 + h \sum_i b_i(\theta) f(Y_i, Z_i)`, where row i holds the coefficients of
        :math:`\theta, \theta^2, \dots` in :math:`b_i`. A row s + 1, if there is one, belongs to :math:`f(y_1, z_1)`.
    order : int
        The order of the method in y.
    embedded_stage : int, or None
        The stage, counted from 1, that serves as embedded solution: it satisfies the constraint and has c = 1.
    embedded_order : int, or None
        The order of the embedded solution, be it a stage or made with `bhat`.

    Examples
    --------
    >>> heun = HalfExplicitTableau("Heun", a=((), (1,)), b=("1/2", "1/2"))
    >>> heun.c, heun.exact
    ((Fraction(0, 1), Fraction(1, 1)), True)
    >>> heun.floats()["b"]
    array([0.5, 0.5])
    """

    name: str
    a: tuple[tuple[Number, ...], ...]
    b: tuple[Number, ...]
    c: tuple[Number, ...] = ()
    ab: tuple[tuple[Number, ...], ...] | None = None
    bhat: tuple[Number, ...] | None = None
    second_bhat: tuple[Number, ...] | None = None
    dense: tuple[tuple[Number, ...], ...] | None = None
    order: int = 0
    embedded_stage: int | None = None
    embedded_order: int | None = None

    def __post_init__(self) -> None:
        s = len(self.b)
        self._keep("b", coefficients(self.b))
        self._keep("a", self._triangle("a", self.a, 0))
        self._keep("c", self._of_length("c", self.c, s) if self.c else tuple(sum(row, Fraction(0)) for row in self.a))
        if self.ab is not None:
            self._keep("ab", self._triangle("ab", self.ab, 1))
            if self.b not in [(*row, *[Fraction(0)] * (s - len(row))) for row in self.ab]:
                raise InvalidProblemError(f"{self.name}: b must be one of the rows of ab, so that g(y_1) = 0")
        if self.bhat is not None:
            self._keep("bhat", self._of_length("bhat", self.bhat, s))
        if self.second_bhat is not None:
            self._keep("second_bhat", self._of_length("second_bhat", self.second_bhat, s))
        if self.dense is not None:
            if len(self.dense) not in (s, s + 1):
                raise InvalidProblemError(f"{self.name}: dense has {len(self.dense)} rows for {s} stages")
            degree = len(self.dense[0])
            self._keep("dense", tuple(self._of_length("a row of dense", row, degree) for row in self.dense))

    def _keep(self, field: str, value: Any) -> None:
        object.__setattr__(self, field, value)

    def _of_length(self, what: str, values: Iterable[Any], length: int) -> tuple[Number, ...]:
        row = coefficients(values)
        if len(row) != length:
            raise InvalidProblemError(f"{self.name}: {what} must have {length} entries, and has {len(row)}")
        return row

    def _triangle(self, what: str, rows: Sequence[Iterable[Any]], first: int) -> tuple[tuple[Number, ...], ...]:
        """The rows of a lower triangle, also from a full matrix; the first row, of an explicit stage, is empty."""
        if len(rows) != len(self.b):
            raise InvalidProblemError(f"{self.name}: there are {len(rows)} rows of {what} and {len(self.b)} weights b")
        kept = []
        for i, row in enumerate(map(coefficients, rows)):
            length = i + first if i else 0
            if any(row[length:]):
                raise InvalidProblemError(f"{self.name}: row {i + 1} of {what} has more than {length} entries")
            kept.append(self._of_length(f"row {i + 1} of {what}", row[:length], length))
        return tuple(kept)

    def __repr__(self) -> str:
        return self.name

    @property
    def s(self) -> int:
        """The number of stages."""
        return len(self.b)

    @property
    def partitioned(self) -> bool:
        """Whether the stages have points of their own for the constraint."""
        return self.ab is not None

    @property
    def constraint_rows(self) -> tuple[tuple[Number, ...], ...]:
        r"""Row i holds the weights of the point whose constraint determines :math:`Z_i`, be it a stage or not."""
        return self.ab if self.ab is not None else (*self.a[1:], self.b)

    @property
    def cb(self) -> tuple[Number, ...]:
        """The nodes of the points where the constraint is imposed."""
        return tuple(sum(row, Fraction(0)) for row in self.constraint_rows)

    @property
    def exact(self) -> bool:
        """Whether every coefficient is an exact number."""
        return not any(isinstance(value, float) for value in self._coefficients())

    @cached_property
    def fault(self) -> str | None:
        """Why no run with these coefficients can converge, or None: weights or nodes that do not add up."""
        rows = {"b": self.b, "bhat": self.bhat, "second_bhat": self.second_bhat}
        sums = {f"the weights {name}": (sum(row, Fraction(0)), 1) for name, row in rows.items() if row is not None}
        for i, (row, node) in enumerate(zip(self.a, self.c, strict=True), 1):
            sums[f"the entries of row {i} of a"] = sum(row, Fraction(0)), node
        for k, column in enumerate(zip(*(self.dense or ()), strict=True), 1):
            sums[f"the coefficients of theta^{k} in dense"] = sum(column, Fraction(0)), int(k == 1)
        for what, (found, expected) in sums.items():
            if abs(float(found - expected)) > _ROUNDOFF:
                return f"{what} add up to {float(found):.10g}, not to {float(expected):.10g}"
        return None

    def _coefficients(self) -> Iterator[Number]:
        rows = [*self.a, *self.constraint_rows, self.b, self.c, self.bhat or (), *(self.dense or ())]
        return (value for row in rows for value in row)

    def weights(self, theta: Any) -> tuple[Number, ...]:
        r"""The weights :math:`b_i(\theta)` of the dense output."""
        if self.dense is None:
            raise InvalidProblemError(f"{self.name} has no dense output of its own")
        theta = as_coefficient(theta)
        return tuple(sum((x * theta ** (k + 1) for k, x in enumerate(row)), Fraction(0)) for row in self.dense)

    def floats(self) -> dict[str, np.ndarray]:
        """The coefficients as arrays of floats: a, ab (s by s), b, c, cb; bhat, second_bhat, dense where they exist."""
        arrays = {
            "a": _square(self.a, self.s),
            "ab": _square(self.constraint_rows, self.s),
            "b": np.array(self.b, dtype=float),
            "c": np.array(self.c, dtype=float),
            "cb": np.array(self.cb, dtype=float),
        }
        if self.bhat is not None:
            arrays["bhat"] = np.array(self.bhat, dtype=float)
        if self.second_bhat is not None:
            arrays["second_bhat"] = np.array(self.second_bhat, dtype=float)
        if self.dense is not None:
            arrays["dense"] = np.array(self.dense, dtype=float)
        return arrays


def _square(rows: Sequence[Sequence[Number]], s: int) -> np.ndarray:
    matrix = np.zeros((s, s))
    for i, row in enumerate(rows):
        matrix[i, : len(row)] = [float(value) for value in row]
    return matrix
