"""The coefficients of Runge-Kutta and half-explicit methods, exact where possible."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from daedal.common.tabular import plural
from daedal.errors import InvalidProblemError
from daedal.methods.exact_numbers import quadratic_from_sympy

_ROUNDOFF = 1e-12  # round-off of sums of floating-point coefficients of half-explicit methods
ROUNDOFF = 1e-10
"""Difference up to which sums of floating-point coefficients count as equal; printed tables often have 12 digits."""

Number = Any
"""int, Fraction, Quadratic, a SymPy number, or float."""


def as_coefficient(value: Any) -> Number:
    """The stored form of a coefficient: integers and strings like ``"1/3"`` become fractions, others are unchanged.

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
    """The stored form of a row of coefficients."""
    return tuple(as_coefficient(value) for value in values)


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
    """The stored form of coefficients, which must be real and finite."""
    try:
        row = coefficients(_listed(values, what))
        finite = np.isfinite([float(x) for x in row])
    except (TypeError, ValueError, ZeroDivisionError):
        raise InvalidProblemError(
            f"{what} must contain real numbers or strings such as '1/3', got {values!r}"
        ) from None
    if not np.all(finite):
        raise InvalidProblemError(f"{what} must contain finite numbers, got {values!r}")
    return row


class _Tableau:
    """Common part of all tableaux: a name, s stages, rows of coefficients."""

    name: str
    b: Sequence[Number]

    def _keep(self, **fields: Any) -> None:
        """Replace the given coefficients by their stored form."""
        for field, value in fields.items():
            object.__setattr__(self, field, value)

    def _coefficients(self) -> Iterator[Number]:
        raise NotImplementedError

    def __repr__(self) -> str:
        return self.name

    @property
    def s(self) -> int:
        """The number of stages."""
        return len(self.b)

    @property
    def exact(self) -> bool:
        """Whether every coefficient is an exact number."""
        return not any(isinstance(value, float) for value in self._coefficients())


@dataclass(frozen=True, repr=False)
class HalfExplicitTableau(_Tableau):
    r"""Coefficients of a half-explicit Runge-Kutta method with s stages.

    Attributes
    ----------
    name : str
        Name of the method.
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
        Weights of an embedded solution that does not satisfy the constraint and must be projected.
    second_bhat : tuple, or None
        Weights of a second, coarse embedded solution; the error is then err1^2 / (err1 + 0.01 err2), with the exponent
        of a method of order p - 1, as in Brasey's code.
    dense : tuple of tuples, or None
        :math:`y(t_0 + \theta h) \approx y_0 + h \sum_i b_i(\theta) f(Y_i, Z_i)`, where row i holds the coefficients of
        :math:`\theta, \theta^2, \dots` in :math:`b_i`. An optional row s + 1 multiplies :math:`f(y_1, z_1)`.
    order : int
        The order of the method in y.
    embedded_stage : int, or None
        The stage, counted from 1, used as embedded solution: it satisfies the constraint and has c = 1.
    embedded_order : int, or None
        The order of the embedded solution, given by a stage or by `bhat`.

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
        self._keep(b=coefficients(self.b))
        self._keep(a=self._triangle("a", self.a, 0))
        self._keep(c=self._of_length("c", self.c, s) if self.c else tuple(sum(row, Fraction(0)) for row in self.a))
        if self.ab is not None:
            self._keep(ab=self._triangle("ab", self.ab, 1))
            if self.b not in [(*row, *[Fraction(0)] * (s - len(row))) for row in self.ab]:
                raise InvalidProblemError(f"{self.name}: b must be one of the rows of ab, so that g(y_1) = 0")
        if self.bhat is not None:
            self._keep(bhat=self._of_length("bhat", self.bhat, s))
        if self.second_bhat is not None:
            self._keep(second_bhat=self._of_length("second_bhat", self.second_bhat, s))
        if self.dense is not None:
            if len(self.dense) not in (s, s + 1):
                raise InvalidProblemError(
                    f"{self.name}: dense has {plural(len(self.dense), 'row')} for {plural(s, 'stage')}"
                )
            degree = len(self.dense[0])
            self._keep(dense=tuple(self._of_length("a row of dense", row, degree) for row in self.dense))

    def _of_length(self, what: str, values: Iterable[Any], length: int) -> tuple[Number, ...]:
        row = coefficients(values)
        if len(row) != length:
            raise InvalidProblemError(f"{self.name}: {what} must have {plural(length, 'entry')}, but has {len(row)}")
        return row

    def _triangle(self, what: str, rows: Sequence[Iterable[Any]], first: int) -> tuple[tuple[Number, ...], ...]:
        """The rows of a lower triangle, possibly from a full matrix; the first row, of an explicit stage, is empty."""
        if len(rows) != len(self.b):
            raise InvalidProblemError(
                f"{self.name}: {plural(len(rows), 'row')} of {what}, but {plural(len(self.b), 'weight')} b"
            )
        kept = []
        for i, row in enumerate(map(coefficients, rows)):
            length = i + first if i else 0
            if any(row[length:]):
                raise InvalidProblemError(f"{self.name}: row {i + 1} of {what} has more than {length} entries")
            kept.append(self._of_length(f"row {i + 1} of {what}", row[:length], length))
        return tuple(kept)

    @property
    def partitioned(self) -> bool:
        """Whether the constraint is imposed at points other than the stages."""
        return self.ab is not None

    @property
    def constraint_rows(self) -> tuple[tuple[Number, ...], ...]:
        r"""Row i holds the weights of the point whose constraint determines :math:`Z_i`, whether it is a stage or
        not."""
        return self.ab if self.ab is not None else (*self.a[1:], self.b)

    @property
    def cb(self) -> tuple[Number, ...]:
        """The nodes of the points where the constraint is imposed."""
        return tuple(sum(row, Fraction(0)) for row in self.constraint_rows)

    @cached_property
    def fault(self) -> str | None:
        """Why no run with these coefficients can converge: inconsistent sums of weights or nodes. None if they are
        consistent."""
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
            raise InvalidProblemError(f"{self.name} has no dense output")
        theta = as_coefficient(theta)
        return tuple(sum((x * theta ** (k + 1) for k, x in enumerate(row)), Fraction(0)) for row in self.dense)

    def floats(self) -> dict[str, np.ndarray]:
        """The coefficients as arrays of floats: a, ab (s by s), b, c, cb; bhat, second_bhat, dense if they exist."""
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


# --- the coefficients of any Runge-Kutta method, exact where possible -------------------------------------------------


@dataclass(frozen=True, repr=False)
class RungeKuttaTableau(_Tableau):
    r"""Coefficients of a Runge-Kutta method, explicit or implicit, with s stages.

    .. math::

        Y_i = y_0 + h \sum_j a_{ij} f(t_0 + c_j h, Y_j), \qquad y_1 = y_0 + h \sum_i b_i f(t_0 + c_i h, Y_i)

    Parameters
    ----------
    a : sequence of sequences
        The matrix, row by row; omitted entries at the end of a row are zero. Integers, fractions, strings such as
        ``"5/12"`` and SymPy numbers stay exact; floats make the tableau numerical.
    b : sequence
        The weights.
    c : sequence, optional
        The nodes; by default the row sums of `a`.
    name : str
        Name of the method.
    embedded : sequence, optional
        Weights of a lower-order method with the same stages, for the error estimate.

    Examples
    --------
    >>> import daedal
    >>> radau = daedal.methods.RungeKuttaTableau([["5/12", "-1/12"], ["3/4", "1/4"]], ["3/4", "1/4"], name="Radau IIA")
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
            raise InvalidProblemError(f"{self.name}: {plural(len(rows), 'row')} of a, but {plural(s, 'weight')} b")
        for i, row in enumerate(rows, 1):
            if len(row) > s:
                raise InvalidProblemError(f"{self.name}: row {i} of a has {plural(len(row), 'entry')}, but s = {s}")
        a = tuple((*row, *[Fraction(0)] * (s - len(row))) for row in rows)
        c = as_row(self.c, f"{self.name}: c") or tuple(sum(row, Fraction(0)) for row in a)
        if len(c) != s:
            raise InvalidProblemError(f"{self.name}: c must have {plural(s, 'entry')}, but has {len(c)}")
        embedded = as_row(self.embedded, f"{self.name}: embedded")
        if len(embedded) not in (0, s):
            raise InvalidProblemError(f"{self.name}: embedded must have {plural(s, 'weight')}, but has {len(embedded)}")
        self._keep(a=a, b=b, c=c, embedded=embedded)

    def _coefficients(self) -> Iterator[Number]:
        return (x for row in (*self.a, self.b, self.c, self.embedded) for x in row)

    @property
    def explicit(self) -> bool:
        """Whether each stage depends only on earlier ones."""
        return not any(any(row[i:]) for i, row in enumerate(self.a))

    @property
    def diagonally_implicit(self) -> bool:
        """Whether the stages can be solved one after the other."""
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
        """The same method with the given order of stages, counted from 0."""
        a = [[self.a[i][j] for j in order] for i in order]
        b, c, embedded = ([row[i] for i in order] if row else [] for row in (self.b, self.c, self.embedded))
        return RungeKuttaTableau(a, b, c, self.name, embedded)

    def adjoint(self) -> RungeKuttaTableau:
        r"""The adjoint method, the inverse of a step with -h: :math:`a^*_{ij} = b_j - a_{s+1-i,s+1-j}` with reversed b.

        A method that is its own adjoint is symmetric (Hairer, Norsett and Wanner I, II.8).

        Examples
        --------
        >>> import daedal
        >>> euler = daedal.methods.coefficients("explicit_euler")
        >>> euler.adjoint().a == daedal.methods.coefficients("backward_euler").a
        True
        """
        b = self.b[::-1]
        a = [[bj - x for bj, x in zip(b, row[::-1])] for row in self.a[::-1]]
        return RungeKuttaTableau(a, b, [1 - x for x in self.c[::-1]], f"adjoint of {self.name}")

    def reduced(self) -> RungeKuttaTableau:
        """The method without redundant stages: those that do not affect y_1, and copies of others.

        Stages without influence are removed (Dahlquist and Jeltsch), stages that are equal for every problem are merged
        (Hundsdorfer and Spijker; Hairer and Wanner II, IV.12).

        Examples
        --------
        >>> import daedal
        >>> twice = daedal.methods.RungeKuttaTableau([["1/2", "1/2"], ["1/2", "1/2"]], ["1/2", "1/2"])
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
