"""Passing a user's functions through Numba."""

from weakref import WeakKeyDictionary

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


def compiled_params(params):
    """Parameters in the form that compiled functions need."""
    return None if params is None else parameter_vector(params)


def last_argument(function, params) -> tuple:
    """What `function` is called with behind the state: nothing, or the parameters, in the form that it needs."""
    if params is None:
        return ()
    return (parameter_vector(params) if is_compiled(function) else params,)
