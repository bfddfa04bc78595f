"""Replacements for the modules numpy and math and for some builtins while a function is traced."""

from __future__ import annotations

import math
from functools import partial, reduce
from types import ModuleType
from typing import Any

import numpy as np

from daedal.symbolic.arrays import Array, apply_ufunc, is_symbolic
from daedal.symbolic.expression import Expression, apply, asked, choose, known_value
from daedal.symbolic.kinds import BOOL, FLOAT, FLOAT64, INT, Number
from daedal.symbolic.numpy_functions import FUNCTIONS, apply_function
from daedal.symbolic.untraceable import Untraceable, refuse_caught

# --- numpy ------------------------------------------------------------------------------------------------------------


def numpy_replacement(value: Any) -> Any:
    """Replacement for an object found in NumPy."""
    if value is np.float64:
        return Float64
    if isinstance(value, np.ufunc):
        return UniversalFunction(value)
    if not callable(value):
        return value
    if value in FUNCTIONS:
        return FUNCTIONS[value]
    if value in (np.seterr, np.seterrcall):
        return Forbidden(f"calls np.{value.__name__}")
    if value is np.errstate:
        return _error_state
    return value if isinstance(value, type) else partial(_call_function, value)


def _call_function(function, *arguments, **options):
    return apply_function(function, arguments, options)


def _error_state(**options):
    if not {"raise", "call"}.isdisjoint(map(str, options.values())):
        raise Untraceable("makes np.errstate raise exceptions", remedy="use np.where, or a condition")
    return np.errstate(**options)


class UniversalFunction:
    """A NumPy universal function, and its methods, on numbers and symbols."""

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
    """The module numpy, or one of its submodules, in a trace."""

    def __init__(self, module: ModuleType):
        super().__init__(module.__name__)
        object.__setattr__(self, "_module", module)

    def __getattr__(self, name: str):
        value = getattr(self._module, name)
        if isinstance(value, ModuleType):
            return Forbidden("uses random numbers", memory="np.random") if name == "random" else NumpyModule(value)
        return numpy_replacement(value)

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
"""Functions of math that raise where NumPy returns infinity, from which a finite result could still follow."""


def math_replacement(function) -> Any:
    """Replacement for a function of the module math."""
    if not callable(function):
        return function
    name = function.__name__

    def call(*arguments, **options):
        arguments = tuple(_scalar(value) for value in arguments)
        if not is_symbolic(arguments) and not is_symbolic(list(options.values())):
            return function(*map(_plain_number, arguments), **options)
        if name in _CAUGHT:
            refuse_caught()
        result = _math_on_symbols(name, arguments, **options)
        if name in _RAISING and type(result) is Expression and not result.graph.regular[result.node]:
            result.graph.hazards.append(result.node)
        return result

    call.__name__ = name
    return call


_CAUGHT = {*_RAISING, "sqrt", "asin", "acos", "acosh", "atanh", "floor", "ceil", "trunc", "tan", "gamma", "lgamma"}


def _scalar(value):
    """Convert an array of one entry to a scalar, as functions of math do."""
    return value.item() if isinstance(value, np.ndarray) and value.size == 1 else value


def _is_scalar(value) -> bool:
    return type(value) is Expression or isinstance(value, (bool, int, float, np.number, np.bool_))


def _plain_number(value):
    return [*map(_plain_number, value)] if isinstance(value, (list, np.ndarray)) else value


def _math_on_symbols(name: str, arguments: tuple, **options):
    """Apply a function of math, whose result is a Python number."""
    result = _math_function(name, arguments, **options)
    if type(result) is not Expression:
        return result
    node = result.graph.number(result.node) if name == "prod" else result.node
    if name == "prod":
        return Expression(result.graph, node, result.kind)
    if result.graph.is_condition(node):
        return asked(Expression(result.graph, node, BOOL))
    return Expression(result.graph, node, INT if name in ("floor", "ceil", "trunc") else FLOAT)


def _math_function(name: str, arguments: tuple, **options):
    if name == "log":
        logarithm = apply("log", arguments[0]) if type(arguments[0]) is Expression else math.log(arguments[0])
        return logarithm if len(arguments) == 1 else logarithm / math_replacement(math.log)(arguments[1])
    if name == "hypot":
        return _hypot(arguments)
    if name == "dist":
        return _hypot([a - b for a, b in zip(*arguments, strict=True)])
    if name in ("fsum", "prod"):
        return sum(arguments[0]) if name == "fsum" else _product(arguments[0], options.get("start", 1))
    if name == "modf":
        whole = apply("trunc", arguments[0])
        return arguments[0] - whole, whole
    if name not in _UFUNC_OF_MATH:
        raise Untraceable(f"calls math.{name} on a value; the function is not supported")
    return apply(_UFUNC_OF_MATH[name], *arguments)


def _product(values, start):
    """The product of values."""
    product = start
    for value in values:
        product = product * value
    return product


def _hypot(values):
    if len(values) == 1:
        return abs(values[0])
    if len(values) == 2:
        return apply("hypot", *values) if is_symbolic(list(values)) else math.hypot(*values)
    return reduce(lambda a, b: apply("hypot", a, b) if is_symbolic([a, b]) else math.hypot(a, b), values)


class MathModule(ModuleType):
    """The module math in a trace."""

    def __init__(self):
        super().__init__("math")

    def __getattr__(self, name: str):
        return math_replacement(getattr(math, name))


# --- builtins ---------------------------------------------------------------------------------------------------------


class _FloatKind(type):
    stands_for: type

    def __instancecheck__(cls, value):
        return isinstance(value, float) or type(value) is Expression

    def __subclasscheck__(cls, other):
        return issubclass(other, float)

    def __eq__(cls, other):
        return other is cls or other is cls.stands_for

    def __hash__(cls):
        return hash(cls.stands_for)


class Float(float, metaclass=_FloatKind):
    """Replaces ``float``: an expression stays an expression."""

    stands_for, dtype = float, np.dtype(float)

    def __new__(cls, value=0.0):
        value = _scalar(value)
        if type(value) is not Expression:
            return float(value)
        return Expression(value.graph, value.graph.number(value.node), FLOAT)


class _IntKind(_FloatKind):
    def __instancecheck__(cls, value):
        return isinstance(value, int)

    def __subclasscheck__(cls, other):
        return other is cls or issubclass(other, int)


class Int(int, metaclass=_IntKind):
    """Replaces ``int``, which truncates."""

    stands_for, dtype = int, np.dtype(int)

    def __new__(cls, value=0, *base):
        value = _scalar(value)
        if type(value) is not Expression:
            return int(value, *base)
        known = known_value(value)
        if known is not None:
            return int(known)
        refuse_caught()
        whole = value.graph.number(value.node) if value.kind & 3 <= INT else apply("trunc", value).node
        return Expression(value.graph, whole, INT)


class _Float64Kind(_FloatKind):
    def __instancecheck__(cls, value):
        return isinstance(value, np.float64)

    def __subclasscheck__(cls, other):
        return other is cls or issubclass(other, np.float64)


class Float64(float, metaclass=_Float64Kind):
    """Replaces ``np.float64``."""

    stands_for, dtype = np.float64, np.dtype(float)

    def __new__(cls, value=0.0):
        if isinstance(value, (np.ndarray, list, tuple)):
            return FUNCTIONS[np.array](value, dtype=float)
        if type(value) is not Expression:
            return Number(value)
        return Expression(value.graph, value.graph.number(value.node))


def _refuse_unknown(value, differs: bool):
    if type(value) is Expression and value.kind > FLOAT64 and differs:
        raise Untraceable(f"uses the type of {value.graph.origin(value.node)}, which differs between paths")


def _isinstance(value, kinds):
    """Replaces ``isinstance`` for values."""
    _refuse_unknown(value, issubclass(float, kinds) != issubclass(np.float64, kinds))
    return isinstance(value, kinds)


def _type(*arguments):
    """Replaces ``type`` for values."""
    if len(arguments) != 1:
        return type(*arguments)
    value = arguments[0]
    if type(value) is Array:
        return np.ndarray
    _refuse_unknown(value, True)
    found = value.__class__ if type(value) in (Expression, Number) else type(value)
    return {float: Float, int: Int, np.float64: Float64}.get(found, found)


def _extreme(function, larger: bool):
    def call(*arguments, key=None, **options):
        values = list(arguments[0] if len(arguments) == 1 else arguments)
        keys = values if key is None else [key(value) for value in values]
        if not is_symbolic(keys) or not all(map(_is_scalar, [*values, *keys])):
            return function(values, key=key, **options)

        def better(kept, other):  # Python keeps the first of equal values
            chosen = (other[0] > kept[0]) if larger else (other[0] < kept[0])
            return tuple(choose(chosen, a, b) for a, b in zip(other, kept))

        return reduce(better, zip(keys, values))[1]

    return call


class Forbidden:
    """Replaces an object that a traced function must not use: every use raises, except reading module constants."""

    def __init__(self, reason: str, module: ModuleType | None = None, memory: str = ""):
        self.__dict__.update(_reason=reason, _module=module, _memory=memory)

    def _refuse(self, *arguments, **options):
        raise Untraceable(self._reason, memory=self._memory)

    __call__ = __iter__ = __next__ = __enter__ = __getitem__ = __setitem__ = __setattr__ = __bool__ = _refuse
    __add__ = __sub__ = __mul__ = __truediv__ = __floordiv__ = __mod__ = __pow__ = __matmul__ = _refuse
    __radd__ = __rsub__ = __rmul__ = __rtruediv__ = __rfloordiv__ = __rmod__ = __rpow__ = __rmatmul__ = _refuse
    __neg__ = __pos__ = __abs__ = __lt__ = __le__ = __gt__ = __ge__ = __len__ = __float__ = __array__ = _refuse

    def __getattr__(self, name: str):
        if name.startswith("__"):  # attributes read by Python itself
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
    "int": Int,
    "type": _type,
    "isinstance": _isinstance,
    **{name: Forbidden(reason) for name, reason in _BUILTINS_OUTSIDE.items()},
}
"""Replacements of builtin functions."""
