"""Checks of the numbers that parts of a machine are given; messages name the part."""

from __future__ import annotations

from typing import Any

from daedal.problems.checks import check_finite, check_positive


def positive(value: Any, what: str) -> float:
    """A positive, finite number."""
    return check_positive(check_finite(value, what), what)
