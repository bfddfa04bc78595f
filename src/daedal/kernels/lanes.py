"""Eight numbers at a time: a type for kernels that performs one computation for eight members of an ensemble.

A value is one AVX-512 register, or two independent ones of half the size; each *lane* belongs to one member. Operations
act on all lanes exactly as on single numbers, so that results in a lane are bit-identical to a separate run. In
interpreted kernels a value is an array.
"""

from typing import TYPE_CHECKING

import numpy as np

from daedal.kernels.compilation import MODE

LANES = 8
"""Number of lanes of a value, the same as in machine code (`daedal.symbolic.emission.WIDTH`)."""

if not TYPE_CHECKING and MODE == "build":
    from daedal.kernels.compiler_lanes import absolute, all_less, at, put, root, spread, where_less
else:
    absolute, root = np.abs, np.sqrt

    def at(row):
        """The value in a row of an array."""
        return row.copy()

    def put(row, value):
        """Write a value to a row."""
        row[:] = value

    def spread(number):
        """The same number in all lanes."""
        return np.full(LANES, number)

    def where_less(a, b, if_less, otherwise):
        """In each lane the first value if a < b there, otherwise the second, also if a or b is NaN."""
        return np.where(a < b, if_less, otherwise)

    def all_less(a, b):
        """Whether a < b in all lanes."""
        return bool(np.all(a < b))


__all__ = ["LANES", "absolute", "all_less", "at", "put", "root", "spread", "where_less"]
