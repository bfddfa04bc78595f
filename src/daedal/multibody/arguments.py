"""Checks of the numbers that parts of a machine are given; messages name the part."""

from __future__ import annotations

from typing import Any

import numpy as np

from daedal.errors import InvalidProblemError
from daedal.problems.checks import check_finite, check_positive


def positive(value: Any, what: str) -> float:
    """A positive, finite number."""
    return check_positive(check_finite(value, what), what)


def of_shape(values: Any, shape: tuple[int, ...], what: str):
    """What a function of the user returned, if it has the expected shape."""
    found = np.shape(values)
    if found != shape or values is None or isinstance(values, str):
        expected = "a number" if shape == () else f"numbers of shape {shape}"
        raise InvalidProblemError(f"{what} returned {values!r}; expected {expected}")
    return values
