"""Compilation of a user's functions, by Numba or by tracing."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from copy import copy
from dataclasses import replace
from types import FunctionType
from typing import Any, Self
from weakref import WeakKeyDictionary

import numpy as np

from daedal.common.tabular import FunctionTable
from daedal.errors import InvalidProblemError
from daedal.kernels.functions import CodedFunction, is_compiled, parameter_vector
from daedal.problems.preparable import Preparable
from daedal.problems.symbols import Driven, given_params, renewed

_compiled: WeakKeyDictionary = WeakKeyDictionary()
_FLOATS = (float, np.float64)


def compiled_function(function):
    """`function` compiled by Numba, cached per function; compiled functions and None are returned unchanged."""
    if function is None or is_compiled(function):
        return function
    if not isinstance(function, FunctionType):
        raise InvalidProblemError(
            f"Numba compiles plain functions only, got {function!r}; use compiled(backend='trace') instead"
        )
    if function not in _compiled:
        _compiled[function] = numba_module().njit(function)
    return _compiled[function]


def numba_module() -> Any:
    """Import Numba; raise if it is not installed."""
    try:
        import numba
    except ImportError as error:
        raise InvalidProblemError(
            "Numba is not installed: `pip install numba`, or use tracing, which does not need it"
        ) from error
    return numba


class Traceable(Preparable):
    """A problem that describes how its functions are evaluated."""

    @property
    def functions(self) -> FunctionTable:
        """How each function is evaluated by default: traced, or the reason why not."""
        from daedal.symbolic.tracing.problem import words

        return words(self)

    def __repr__(self) -> str:
        from daedal.problems.description import problem_line

        return problem_line(self)

    def _repr_html_(self) -> str:
        from daedal.problems.description import problem_html

        return problem_html(self)

    def with_params(self, params) -> Self:
        """Raise, since the functions of this problem take no parameters."""
        raise InvalidProblemError(
            f"params: the functions of a {type(self).__name__} take no parameters; pass varying values by a closure, "
            f"or define the problem as a SemiExplicitDAE or an ImplicitDAE"
        )


class Compilable(Traceable, ABC):
    """A problem with parameters, whose functions can be compiled."""

    def compiled(self, backend: str = "trace") -> Self:
        """The same problem with compiled functions.

        Parameters
        ----------
        backend : {"trace", "numba"}
            Traced functions are machine code, with the derivatives that were not given; later changes of globals or
            closures have no effect on them. ``"numba"`` passes the functions through ``numba.njit``, which needs Numba
            (``pip install daedal[numba]``).
        """
        if backend == "numba":
            return self._by_numba()
        if backend != "trace":
            raise InvalidProblemError(f"backend must be 'trace' or 'numba', got {backend!r}")
        from daedal.symbolic.tracing.problem import compiled_by_trace

        return compiled_by_trace(self)

    def with_params(self, params) -> Self:
        """The same problem with other parameters; a mapping replaces those that it names."""
        problem: Any = self
        return replace(problem, params=renewed(problem.params, params))

    @abstractmethod
    def _by_numba(self) -> Self:
        """The same problem with functions passed through ``numba.njit``."""


def compiled_functions(problem: Any, names) -> dict[str, Any]:
    """Arguments of a problem, with the named functions and the parameters in compiled form."""
    functions = {name: compiled_function(getattr(problem, name)) for name in names}
    return {**functions, "params": compiled_params(problem.params)}


def compiled_params(params):
    """Parameters in the form required by compiled functions."""
    return None if params is None else parameter_vector(params)


def last_argument(function, params) -> tuple:
    """Parameters passed to `function` after the state: none, or the parameters in the required form."""
    if params is None:
        return ()
    return (parameter_vector(params) if is_compiled(function) else params,)


def with_other_params(problem, params):
    """The same problem with the parameters of one run; the problem must have been defined with parameters."""
    if not isinstance(params, Driven) and given_params(getattr(problem, "params", None)) is None:
        raise InvalidProblemError(
            "params is given, but the problem has no parameters: define it with params=... and add parameters as the "
            "last argument of its functions; problem.with_params(...) then replaces them"
        )
    return with_numbers(problem, params)


def machine_value(function, params, t: float, *arguments) -> np.ndarray | None:
    """Evaluate the machine code of a function without checks; None if there is none, or if it falls back to Python."""
    if not isinstance(function, CodedFunction):
        return None
    status, values = function.evaluate(t, *arguments, *last_argument(function, params))
    return values if status == 0 else None


class ParametersOfRun:
    """Parameters that Daedal passes to machine code and may change between segments of a run."""


def with_numbers(problem, params):
    """The same problem with other parameters; numbers of unchanged shape are not checked again."""
    before = problem.params
    if isinstance(params, (ParametersOfRun, Driven)):
        return with_known_params(problem, params)
    if isinstance(params, Mapping) and isinstance(before, Mapping) and isinstance(problem, Compilable):
        after = renewed(before, params)
        if all(type(value) is float and type(after[name]) in _FLOATS for name, value in before.items()):
            return with_known_params(problem, after)
    try:
        numbers = np.asarray(params, dtype=float)
        same = np.asarray(before).dtype.kind == "f" and numbers.shape == np.shape(before)
    except (TypeError, ValueError):
        same = False
    if not same or isinstance(params, dict) or not isinstance(problem, Compilable):
        return problem.with_params(params)
    return with_known_params(problem, params if type(params) is type(before) else numbers)


def with_known_params(problem, params):
    """The same problem with parameters whose structure has already been checked."""
    other = copy(problem)
    object.__setattr__(other, "params", params)
    return other


def differ_in_parameters_only(one: Any, other: Any) -> bool:
    """Whether two problems have the same functions, sizes and constants, so that they can share compiled code."""
    if one is other:
        return True
    first, second = vars(one), vars(other)
    return type(one) is type(other) and all(
        name == "params" or _is_same(value, second.get(name)) for name, value in first.items()
    )


def _is_same(one: Any, other: Any) -> bool:
    if one is other:
        return True
    if isinstance(one, np.ndarray):
        return isinstance(other, np.ndarray) and np.array_equal(one, other)
    return type(one) in (int, bool, str, tuple) and bool(one == other)
