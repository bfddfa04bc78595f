"""What stands in for the modules numpy and math, and for some builtin functions, while a function is traced."""

import math
from functools import partial, reduce
from types import ModuleType
from typing import Any

import numpy as np

from daedal.symbolic.arrays import apply_ufunc, is_symbolic
from daedal.symbolic.expression import Expression, apply, choose
from daedal.symbolic.numpy_functions import FUNCTIONS, apply_function
from daedal.symbolic.untraceable import Untraceable

# --- numpy ------------------------------------------------------------------------------------------------------------


def numpy_stand_in(value: Any) -> Any:
    """What is called in place of something found in NumPy."""
    if value in (np.float64, np.double):
        return Float
    if isinstance(value, np.ufunc):
        return UniversalFunction(value)
    if not callable(value):
        return value
    if value in FUNCTIONS:
        return FUNCTIONS[value]
    return value if isinstance(value, type) else partial(_call_function, value)


def _call_function(function, *arguments, **options):
    return apply_function(function, arguments, options)


class UniversalFunction:
    """A universal function of NumPy, and its methods, on numbers and symbols."""

    def __init__(self, ufunc: np.ufunc):
        self._ufunc = ufunc

    def __call__(self, *inputs, **options):
        n_in = self._ufunc.nin
        if len(inputs) > n_in:
            inputs, options["out"] = inputs[:n_in], tuple(inputs[n_in:])
        return self._apply("__call__", *inputs, **options)

    def _apply(self, method: str, *inputs, **options):
        out = options.pop("out", None)
        if out is not None:
            options["out"] = out if isinstance(out, tuple) else (out,)
        return apply_ufunc(self._ufunc, method, inputs, options)

    def __getattr__(self, name: str):
        if name in ("reduce", "accumulate", "outer", "at", "reduceat"):
            return partial(self._apply, name)
        return getattr(self._ufunc, name)


class NumpyModule(ModuleType):
    """The module numpy, or a module inside of it, for a trace."""

    def __init__(self, module: ModuleType):
        super().__init__(module.__name__)
        object.__setattr__(self, "_module", module)

    def __getattr__(self, name: str):
        value = getattr(self._module, name)
        if isinstance(value, ModuleType):
            return Forbidden("uses random numbers") if name == "random" else NumpyModule(value)
        return numpy_stand_in(value)

    def __setattr__(self, name: str, value):
        raise Untraceable(f"stores to {self._module.__name__}.{name}")


# --- math -------------------------------------------------------------------------------------------------------------

_UFUNC_OF_MATH = {
    **{name: name for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh", "sqrt", "cbrt", "erf", "erfc", "copysign")},
    **{name: name for name in ("exp", "exp2", "expm1", "log2", "log10", "log1p", "fmod", "floor", "ceil", "trunc")},
    **{name: name for name in ("isnan", "isinf", "isfinite", "degrees", "radians", "fabs")},
    "asin": "arcsin",
    "acos": "arccos",
    "atan": "arctan",
    "asinh": "arcsinh",
    "acosh": "arccosh",
    "atanh": "arctanh",
    "atan2": "arctan2",
    "pow": "power",
}
_RAISING = {"exp", "exp2", "expm1", "sinh", "cosh", "log", "log2", "log10", "log1p", "pow", "fmod", "atanh"}
"""Functions of math that raise where NumPy has an infinity, from which a finite result could still be made."""


def math_stand_in(function) -> Any:
    """What is called in place of a function of the module math."""
    if not callable(function):
        return function
    name = function.__name__

    def call(*arguments, **options):
        arguments = tuple(_scalar(value) for value in arguments)
        if not is_symbolic(arguments):
            return function(*arguments, **options)
        result = _math_on_symbols(name, arguments)
        if name in _RAISING and type(result) is Expression and not result.graph.regular[result.node]:
            result.graph.hazards.append(result.node)
        return result

    call.__name__ = name
    return call


def _scalar(value):
    """math takes arrays of one entry as numbers."""
    return value.item() if isinstance(value, np.ndarray) and value.size == 1 else value


def _math_on_symbols(name: str, arguments: tuple):
    if name == "log":
        logarithm = apply("log", arguments[0]) if type(arguments[0]) is Expression else math.log(arguments[0])
        return logarithm if len(arguments) == 1 else logarithm / math_stand_in(math.log)(arguments[1])
    if name == "hypot":
        return _hypot(arguments)
    if name == "dist":
        return _hypot([a - b for a, b in zip(*arguments, strict=True)])
    if name in ("fsum", "prod"):
        return sum(arguments[0]) if name == "fsum" else reduce(lambda a, b: a * b, *arguments)
    if name == "modf":
        whole = apply("trunc", arguments[0])
        return arguments[0] - whole, whole
    if name not in _UFUNC_OF_MATH:
        raise Untraceable(f"calls math.{name} on a value, which is not among the known functions")
    return apply(_UFUNC_OF_MATH[name], *arguments)


def _hypot(values):
    if len(values) == 1:
        return abs(values[0])
    if len(values) == 2:
        return apply("hypot", *values) if is_symbolic(list(values)) else math.hypot(*values)
    return reduce(lambda a, b: apply("hypot", a, b) if is_symbolic([a, b]) else math.hypot(a, b), values)


class MathModule(ModuleType):
    """The module math for a trace."""

    def __init__(self):
        super().__init__("math")

    def __getattr__(self, name: str):
        return math_stand_in(getattr(math, name))


# --- builtins ---------------------------------------------------------------------------------------------------------


class _FloatKind(type):
    def __instancecheck__(cls, value):
        return isinstance(value, float) or type(value) is Expression

    def __subclasscheck__(cls, other):
        return issubclass(other, float)

    def __eq__(cls, other):
        return other is cls or other is float or other is np.float64

    def __hash__(cls):
        return hash(float)


class Float(float, metaclass=_FloatKind):
    """In place of ``float``: a value stays the expression that it is."""

    def __new__(cls, value=0.0):
        value = _scalar(value)
        return value if type(value) is Expression else float(value)


def _extreme(function, larger: bool):
    def call(*arguments, **options):
        values = list(arguments[0] if len(arguments) == 1 else arguments)
        if options or not is_symbolic(values):
            return function(values, **options)

        def better(kept, other):  # Python keeps the first of equals
            return choose((other > kept) if larger else (other < kept), other, kept)

        return reduce(better, values)

    return call


class Forbidden:
    """Raises on every use, and says what a traced function must not do; constants of a module can be read."""

    def __init__(self, reason: str, module: ModuleType | None = None):
        self.__dict__.update(_reason=reason, _module=module)

    def _refuse(self, *arguments, **options):
        raise Untraceable(self._reason)

    __call__ = __iter__ = __next__ = __enter__ = __getitem__ = __setitem__ = __setattr__ = __bool__ = _refuse
    __add__ = __sub__ = __mul__ = __truediv__ = __floordiv__ = __mod__ = __pow__ = __matmul__ = _refuse
    __radd__ = __rsub__ = __rmul__ = __rtruediv__ = __rfloordiv__ = __rmod__ = __rpow__ = __rmatmul__ = _refuse
    __neg__ = __pos__ = __abs__ = __lt__ = __le__ = __gt__ = __ge__ = __len__ = __float__ = __array__ = _refuse

    def __getattr__(self, name: str):
        if name.startswith("__"):  # what Python itself looks for
            raise AttributeError(name)
        if self._module is None:
            self._refuse()
        value = getattr(self._module, name, None)
        return value if isinstance(value, (int, float, str, tuple)) else self


_BUILTINS_OUTSIDE = {
    "print": "prints",
    "input": "reads input",
    "open": "opens a file",
    "exec": "executes text",
    "eval": "evaluates text",
    "globals": "uses the dictionary of globals",
}
BUILTINS: dict[str, Any] = {
    "max": _extreme(max, larger=True),
    "min": _extreme(min, larger=False),
    "float": Float,
    **{name: Forbidden(reason) for name, reason in _BUILTINS_OUTSIDE.items()},
}
"""Builtin functions that are exchanged."""
