"""A user's functions as compiled ones: by Numba, or by tracing."""

from copy import copy
from weakref import WeakKeyDictionary

import numpy as np

from daedal.errors import InvalidProblemError
from daedal.kernels.functions import is_compiled, parameter_vector

_compiled: WeakKeyDictionary = WeakKeyDictionary()


def compiled_function(function):
    """`function` as a Numba-compiled function, always the same one; what is compiled already, or None, stays so."""
    if function is None or is_compiled(function):
        return function
    import numba

    if function not in _compiled:
        _compiled[function] = numba.njit(function)
    return _compiled[function]


def check_backend(backend: str) -> str:
    """The compiler that was asked for."""
    if backend not in ("trace", "numba"):
        raise InvalidProblemError(f"backend must be 'trace' or 'numba', got {backend!r}")
    return backend


def by_trace(problem):
    """The same problem with functions that are machine code, and with exact derivatives."""
    from daedal.tracing.problem import compiled_by_trace

    return compiled_by_trace(problem)


def function_table(problem):
    """How each function of a problem is evaluated."""
    from daedal.tracing.problem import words

    return words(problem)


def compiled_params(params):
    """Parameters in the form that compiled functions need."""
    return None if params is None else parameter_vector(params)


def last_argument(function, params) -> tuple:
    """What `function` is called with behind the state: nothing, or the parameters, in the form that it needs."""
    if params is None:
        return ()
    return (parameter_vector(params) if is_compiled(function) else params,)


class ParametersOfRun:
    """Parameters that Daedal itself hands to machine code, and may change between the stretches of a run."""


def with_numbers(problem, params):
    """The same problem with other parameters; without new checks where they are numbers of the same shape as before."""
    before = problem.params
    if isinstance(params, ParametersOfRun):
        other = copy(problem)
        object.__setattr__(other, "params", params)
        return other
    try:
        numbers = np.asarray(params, dtype=float)
        same = np.asarray(before).dtype.kind == "f" and numbers.shape == np.shape(before)
    except (TypeError, ValueError):
        same = False
    if not same or isinstance(params, dict):
        return problem.with_params(params)
    other = copy(problem)
    object.__setattr__(other, "params", params if type(params) is type(before) else numbers)
    return other
