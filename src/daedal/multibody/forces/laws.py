"""Characteristics of springs and dampers: a number, a table or a function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from daedal import Table
from daedal.errors import InvalidProblemError
from daedal.problems.checks import check_finite, check_real


def law_of(given: Any, what: str) -> float | Table | Callable[[Any], Any]:
    """A characteristic: a factor, a table from pairs (x, force), or a function of x."""
    if isinstance(given, Table) or callable(given):
        return given
    if isinstance(given, (list, tuple, np.ndarray)):
        pairs = check_real(given, what, "be a number, pairs (x, force), a Table or a function")
        if pairs.ndim != 2 or pairs.shape[1] != 2:
            raise InvalidProblemError(
                f"{what} as a table must be pairs (x, force), got an array of shape {pairs.shape}"
            )
        try:
            return Table(pairs[:, 0], pairs[:, 1])
        except InvalidProblemError as error:
            raise InvalidProblemError(f"{what}: {error}") from None
    return check_finite(given, what)


def value_of(law, x):
    """The force at x."""
    return law(x) if callable(law) else law * x


def energy_of(law, x) -> float:
    """The integral of the force from 0 to x."""
    if not callable(law):
        return 0.5 * law * x**2
    from scipy.integrate import quad

    low, high = sorted((0.0, float(x)))
    inside = [p for p in law.times if low < p < high] if isinstance(law, Table) else None
    return float(quad(law, 0.0, float(x), points=inside or None, limit=200)[0])
