"""Coefficients of a tableau in one arithmetic: exact where they are exact, floats otherwise."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from daedal.methods.quadratic import Quadratic


@dataclass(frozen=True)
class Arithmetic:
    """How coefficients enter a computation and how results leave it.

    Attributes
    ----------
    enter, leave : callable
        Conversions.
    exact : bool
        Whether a result is zero only if it is exactly zero.
    """

    enter: Callable[[Any], Any]
    leave: Callable[[Any], Any]
    exact: bool


def _same(value: Any) -> Any:
    return value


def choose_arithmetic(values: Iterable[Any], exact: bool) -> Arithmetic:
    """Fractions and numbers of one quadratic field compute themselves; for the others SymPy finds the field."""
    values = list(values)
    if not exact or any(isinstance(value, float) for value in values):
        return Arithmetic(float, _same, exact=False)
    roots = {value.d for value in values if isinstance(value, Quadratic)}
    if len(roots) <= 1 and all(isinstance(value, int | Fraction | Quadratic) for value in values):
        return Arithmetic(_same, _same, exact=True)
    import sympy

    domain, elements = sympy.construct_domain([sympy.sympify(x) for x in values], extension=True, field=True)
    known = dict(zip(values, elements))

    def enter(value: Any) -> Any:
        return known[value] if value in known else domain.from_sympy(sympy.sympify(value))

    return Arithmetic(enter, domain.to_sympy, exact=True)
