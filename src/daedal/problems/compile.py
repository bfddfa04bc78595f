"""Passing a user's functions through Numba."""

from __future__ import annotations

import numpy as np

from daedal.errors import InvalidProblemError
from daedal.kernels.functions import is_compiled


def compiled_function(function):
    """`function` as a Numba-compiled function; one that already is stays as it is."""
    if is_compiled(function):
        return function
    import numba

    return numba.njit(function)


def compiled_params(params):
    """Parameters as the float array that compiled functions need."""
    if params is None:
        return None
    try:
        return np.ascontiguousarray(params, dtype=float)
    except (TypeError, ValueError) as error:
        raise InvalidProblemError(f"compiled functions need params as an array of floats: {error}") from error
