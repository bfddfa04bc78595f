"""Numbers written to many places at once, in compiled code."""

from __future__ import annotations

from daedal.kernels.compilation import entry
from daedal.kernels.records import floats, integers
from daedal.kernels.signatures import i64, void


@entry(void(i64, i64, i64, i64))
def scatter(values, places, count, n):
    """Write value ``pairs[2 k + 1]`` to the address ``pairs[2 k]``, for k < count; there are n values."""
    given, pairs = floats(values, n), integers(places, 2 * count)
    for k in range(count):
        floats(pairs[2 * k], 1)[0] = given[pairs[2 * k + 1]]
