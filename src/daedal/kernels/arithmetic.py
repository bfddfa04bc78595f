"""Operations for algorithms that run with one number or with eight in parallel.

A function ``make(number)`` defines an algorithm once, as parts of kernels that use the operations of `number`;
``make(ONE)`` returns them for single runs, ``make(EIGHT)`` for the lanes of :mod:`daedal.kernels.lanes`. Operations and
their order are the same, so results are bit-identical. A vector has one row for each component: a number, or `LANES`
numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from daedal.kernels import lanes
from daedal.kernels.compilation import inlined
from daedal.kernels.records import float_rows, floats


class NumberOperations(NamedTuple):
    """The operations on a number."""

    width: int
    """Size of a row in bytes."""
    vector: Callable[[Any, Any], Any]
    """``vector(address, n)``: the n rows at an address."""
    get: Callable[[Any, Any], Any]
    """The number in a row of a vector."""
    put: Callable[[Any, Any, Any], None]
    """Write a number to a row of a vector."""
    spread: Callable[[Any], Any]
    """Convert a float to a number of this type."""
    absolute: Callable[[Any], Any]
    root: Callable[[Any], Any]
    larger: Callable[[Any, Any], Any]
    """The second number if the first is smaller, otherwise the first."""
    where_less: Callable[[Any, Any, Any, Any], Any]
    """``where_less(a, b, x, y)``: x if a < b, otherwise y."""
    all_less: Callable[[Any, Any], Any]
    """Whether a < b, in all lanes."""


# --- one number -------------------------------------------------------------------------------------------------------


@inlined
def _get(vector, i):
    return vector[i]


@inlined
def _put(vector, i, value):
    vector[i] = value


@inlined
def _spread(number):
    return number


@inlined
def _where_less(a, b, if_less, otherwise):
    return if_less if a < b else otherwise


@inlined
def _all_less(a, b):
    return a < b


ONE = NumberOperations(8, floats, _get, _put, _spread, abs, np.sqrt, max, _where_less, _all_less)


# --- eight numbers ----------------------------------------------------------------------------------------------------


@inlined
def _rows(address, n):
    return float_rows(address, n, lanes.LANES)


@inlined
def _get_lanes(rows, i):
    return lanes.at(rows[i])


@inlined
def _put_lanes(rows, i, value):
    lanes.put(rows[i], value)


@inlined
def _larger_lanes(a, b):
    return lanes.where_less(a, b, b, a)


EIGHT = NumberOperations(
    8 * lanes.LANES,
    _rows,
    _get_lanes,
    _put_lanes,
    lanes.spread,
    lanes.absolute,
    lanes.root,
    _larger_lanes,
    lanes.where_less,
    lanes.all_less,
)
