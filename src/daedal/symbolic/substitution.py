"""A copy of a user's function in which numpy, math and whatever else must not see symbols is exchanged.

The user's objects are never touched: functions are made anew from their code with other globals and closures,
containers and arrays are copied, instances get a derived class. What is reached from a function (helpers, closures,
methods, modules, partial functions, Numba dispatchers) is exchanged in the same way.
"""

import builtins
import dis
import functools
import io
import math
import sys
from types import BuiltinFunctionType, CellType, CodeType, FunctionType, MethodType, ModuleType, SimpleNamespace
from typing import Any

import numpy as np

from daedal.symbolic.arrays import Array, wrapped
from daedal.symbolic.expression import Expression
from daedal.symbolic.piecewise import polynomial_pieces
from daedal.symbolic.stand_ins import (
    BUILTINS,
    Float,
    Forbidden,
    MathModule,
    NumpyModule,
    math_stand_in,
    numpy_stand_in,
)
from daedal.symbolic.untraceable import Untraceable, place
from daedal.symbolic.witness import Witness

_HARMLESS = (
    "abc array bisect builtins cmath collections collections_abc contextlib copy dataclasses decimal enum fractions "
    "functools heapq itertools math numbers operator re statistics string struct textwrap types typing weakref"
)
_OUTSIDE_WORLD = {
    **{
        name: f"uses {name.lstrip('_')}"
        for name in sys.stdlib_module_names - {"__main__"}
        if name.lstrip("_") not in _HARMLESS.split()
    },
    **dict.fromkeys(("random", "secrets", "uuid"), "uses random numbers"),
    **dict.fromkeys(("time", "datetime"), "asks for the time"),
    **dict.fromkeys(("logging", "warnings"), "writes messages"),
    "cmath": "uses complex numbers",
}
"""What a trace must not do, since it runs a function on every path and does not know which one will be taken."""
_KEPT = {"numpy", "scipy", "numba", "llvmlite", *sys.stdlib_module_names} - {"__main__"}
"""Modules whose Python functions are called as they are."""
_LARGEST_ARRAY = 1_000_000  # entries of an array of constants that is made an array of symbols


class Substitution:
    """What stands in for the objects that a traced function reaches, for one run of it on symbols."""

    def __init__(self, witness: Witness | None = None):
        self.witness = Witness() if witness is None else witness
        self._made: dict[int, Any] = {}  # by the identity of the original
        self._alive: list[Any] = []  # originals, so that identities stay theirs
        self._globals: dict[int, dict[str, Any]] = {}
        self._copies: list[tuple[Any, Any, str]] = []  # containers: the copy, what was in it, and what they are
        self._numpy, self._math = NumpyModule(np), MathModule()
        self._builtins = {**vars(builtins), **BUILTINS, "__import__": self._import}

    def _import(self, name, globals=None, locals=None, fromlist=(), level=0):
        return self.of(builtins.__import__(name, globals, locals, fromlist, level))

    def of(self, value: Any, name: str = "") -> Any:
        """What stands in for `value`, which the function knows as `name`."""
        if value is None or isinstance(value, (bool, int, float, str, bytes, complex, Expression, CodeType)):
            return value
        if id(value) not in self._made:
            self._alive.append(value)
            self._made[id(value)] = value  # in case it reaches itself
            self._made[id(value)] = self._stand_in(value, name)
        return self._made[id(value)]

    def _stand_in(self, value: Any, name: str) -> Any:
        if isinstance(value, ModuleType):
            return self._module(value)
        if value is float:
            return Float
        home = (getattr(value, "__module__", None) or "").split(".")[0]
        if callable(value) and home in _OUTSIDE_WORLD and not isinstance(value, type):
            return Forbidden(_OUTSIDE_WORLD[home].format(home))
        if isinstance(value, np.ndarray):
            if not isinstance(value, Array):  # parameters as symbols
                self.witness.numbers(value)
            return _constant_array(value)
        if isinstance(value, np.ufunc) or (callable(value) and home == "numpy"):
            return numpy_stand_in(value)
        if isinstance(value, BuiltinFunctionType):
            return self._builtin(value, value.__name__)
        if isinstance(value, (np.random.Generator, np.random.RandomState)):
            return Forbidden("uses random numbers")
        if isinstance(value, io.IOBase):
            return Forbidden("reads or writes a file")
        if isinstance(value, (list, dict, set)):
            return self._container(value, name)
        if type(value) is tuple:
            return tuple(self.of(entry, name) for entry in value)
        if isinstance(value, functools.partial):
            keywords = {key: self.of(entry) for key, entry in value.keywords.items()}
            return functools.partial(self.of(value.func), *(self.of(entry) for entry in value.args), **keywords)
        if hasattr(value, "py_func"):
            return self.of(value.py_func)
        if isinstance(value, functools._lru_cache_wrapper):
            return self.of(value.__wrapped__)
        if isinstance(value, MethodType):
            return MethodType(self.of(value.__func__), self.of(value.__self__))
        if type(value) is SimpleNamespace:
            return self._namespace(value, name)
        if home in _KEPT:
            return value
        if isinstance(value, FunctionType):
            return self._function(value)
        if hasattr(type(value), "polynomial_pieces"):
            return self._table(value)
        if isinstance(value, type):
            return self._class(value)
        return self._instance(value)

    def _module(self, module: ModuleType) -> Any:
        if module is math:
            return self._math
        name = module.__name__.split(".")[0]
        if name == "numpy":
            return self._numpy if module is np else NumpyModule(module)
        if name in _OUTSIDE_WORLD:
            return Forbidden(_OUTSIDE_WORLD[name].format(name))
        return _Module(module, self)

    def _builtin(self, value: Any, name: str) -> Any:
        if getattr(math, name, None) is value:
            return math_stand_in(value)
        if self._builtins.get(name) is not value and getattr(builtins, name, None) is value:
            return self._builtins[name]
        owner = getattr(value, "__self__", None)  # a method such as list.append, which would change its owner
        if owner is not None and not isinstance(owner, ModuleType):
            replaced = self.of(owner)
            return getattr(replaced, name) if replaced is not owner else value
        return value

    # --- functions and objects ----------------------------------------------------------------------------------------

    def _function(self, function: FunctionType) -> FunctionType:
        refuse_stores(function)
        self.witness.attribute(function, "__code__")
        if function.__defaults__ or function.__kwdefaults__:
            self.witness.attribute(function, "__defaults__")
            self.witness.attribute(function, "__kwdefaults__")
        if function.__dict__:
            self.witness.entries(function.__dict__)
        namespace = self._globals_of(function)
        cells = tuple(CellType() for _ in function.__closure__ or ())
        made = FunctionType(function.__code__, namespace, function.__name__, None, cells or None)
        self._made[id(function)] = made
        made.__defaults__ = None if function.__defaults__ is None else tuple(map(self.of, function.__defaults__))
        if function.__kwdefaults__:
            made.__kwdefaults__ = {key: self.of(value) for key, value in function.__kwdefaults__.items()}
        made.__qualname__, made.__module__ = function.__qualname__, function.__module__
        for key, value in vars(function).items():
            made.__dict__[key] = self.of(value)
        self._copies.append((made.__dict__, dict(made.__dict__), f"attributes of {function.__name__}"))
        for cell, original, name in zip(cells, function.__closure__ or (), function.__code__.co_freevars):
            self.witness.cell(original)
            try:
                cell.cell_contents = self.of(original.cell_contents, name)
            except ValueError:  # a name that has not been bound yet
                continue
        for name in _names(function.__code__):
            if name in function.__globals__ or hasattr(builtins, name):
                self.witness.name(function.__globals__, name)
            if name in function.__globals__:
                namespace[name] = self.of(function.__globals__[name], name)
        return made

    def _globals_of(self, function: FunctionType) -> dict[str, Any]:
        original = function.__globals__
        if id(original) not in self._globals:
            self._alive.append(original)
            self._globals[id(original)] = {**original, "__builtins__": self._builtins}
        return self._globals[id(original)]

    def _class(self, kind: type) -> type:
        """A derived class whose methods are exchanged; classes that forbid it stay as they are."""
        methods: dict[str, Any] = {}
        for base in reversed(kind.__mro__[:-1]):
            if base.__module__.split(".")[0] in _KEPT:
                continue
            for name, member in vars(base).items():
                if isinstance(member, (staticmethod, classmethod)):
                    methods[name] = type(member)(self.of(member.__func__))
                elif isinstance(member, property) and member.fget is not None:
                    methods[name] = property(self.of(member.fget))
                elif isinstance(member, FunctionType):
                    methods[name] = self.of(member)
        try:
            return type(kind)(kind.__name__, (kind,), {"__slots__": (), **methods, "__module__": kind.__module__})
        except TypeError:
            return kind

    def _instance(self, value: Any) -> Any:
        """A copy of an object of a user's class that refuses to be changed."""
        kind = self.of(type(value))
        if kind is type(value):
            return value

        def refuse(self, name, *value):
            raise Untraceable(f"stores to the attribute '{name}' of an object that lives outside of it")

        guarded = type(kind)(kind.__name__, (kind,), {"__slots__": (), "__setattr__": refuse, "__delattr__": refuse})
        try:
            copy = object.__new__(guarded)
        except TypeError:
            return value
        self._made[id(value)] = copy
        names = [name for base in type(value).__mro__ for name in _slots(base) if hasattr(value, name)]
        self.witness.entries(getattr(value, "__dict__", {}))
        for name in names:
            self.witness.attribute(value, name)
        for name in (*getattr(value, "__dict__", ()), *names):
            object.__setattr__(copy, name, self.of(getattr(value, name), name))
        return copy

    def _namespace(self, value: SimpleNamespace, name: str) -> SimpleNamespace:
        copy = self._made[id(value)] = SimpleNamespace()
        self.witness.entries(value.__dict__)
        copy.__dict__.update({key: self.of(entry, key) for key, entry in value.__dict__.items()})
        self._copies.append((copy.__dict__, dict(copy.__dict__), f"'{name}'" if name else "a namespace"))
        return copy

    def _container(self, value: Any, name: str) -> Any:
        if type(value) not in (list, dict, set):
            return value
        copy: Any = type(value)()
        self._made[id(value)] = copy
        self.witness.entries(value)
        if isinstance(value, dict):
            copy.update({key: self.of(entry, name) for key, entry in value.items()})
        elif isinstance(value, list):
            copy.extend(self.of(entry, name) for entry in value)
        else:
            copy.update(value)
        self._copies.append((copy, type(value)(copy), f"'{name}'" if name else f"a {type(value).__name__}"))
        return copy

    def _table(self, table: Any):
        pieces = table.polynomial_pieces()

        def call(t):
            return polynomial_pieces(t, *pieces) if type(t) is Expression else wrapped(table(t))

        return call

    def check_unchanged(self):
        """Refuse a function that has changed a container, which it does not own, or attributes of a function."""
        for copy, before, what in self._copies:
            entries, kept = (copy.items(), before.items()) if isinstance(copy, dict) else (copy, before)
            flat = list(entries) if isinstance(copy, (list, dict)) else sorted(map(id, entries))
            old = list(kept) if isinstance(copy, (list, dict)) else sorted(map(id, kept))
            if len(flat) != len(old) or not all(_same(a, b) for a, b in zip(flat, old)):
                raise Untraceable(f"changes {what}, which lives outside of it", "")


def _same(a, b) -> bool:
    if isinstance(a, tuple) and isinstance(b, tuple) and len(a) == len(b):
        return all(x is y for x, y in zip(a, b))
    return a is b or (type(a) is int and type(b) is int and a == b)


class _Module(ModuleType):
    """A module of the user's, or of another package, whose functions are exchanged when they are asked for."""

    def __init__(self, module: ModuleType, substitution: Substitution):
        super().__init__(module.__name__)
        object.__setattr__(self, "_daedal", (module, substitution))

    def __getattr__(self, name: str):
        module, substitution = self._daedal
        substitution.witness.attribute(module, name)
        return substitution.of(getattr(module, name), name)

    def __setattr__(self, name: str, value):
        raise Untraceable(f"stores to {self.__name__}.{name}")


def _constant_array(values: np.ndarray) -> np.ndarray:
    """An array that lives outside: it can be read and copied, not written to."""
    symbolic = values.dtype.kind == "f" and values.size <= _LARGEST_ARRAY and type(values) is np.ndarray
    view: np.ndarray = values.astype(object).view(Array) if symbolic else values.view()
    view.flags.writeable = False
    return view


def _slots(kind: type) -> tuple[str, ...]:
    slots = vars(kind).get("__slots__", ())
    names = (slots,) if isinstance(slots, str) else tuple(slots)
    return tuple(name for name in names if name not in ("__dict__", "__weakref__"))


def _codes(code: CodeType):
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


def _names(code: CodeType) -> set[str]:
    return {name for part in _codes(code) for name in part.co_names}


_STORING = {dis.opmap[name] for name in ("STORE_GLOBAL", "DELETE_GLOBAL", "STORE_DEREF", "DELETE_DEREF")}


@functools.lru_cache(maxsize=1024)
def _stores(code: CodeType) -> tuple[str, str, int] | None:
    """The first store to something outside: what is said of it, the name, the line."""
    outside = set(code.co_freevars)
    for part in _codes(code):
        if _STORING.isdisjoint(part.co_code[::2]):
            continue
        line = part.co_firstlineno
        for instruction in dis.get_instructions(part):
            position = instruction.positions
            line = (position.lineno if position is not None else None) or line
            if instruction.opname in ("STORE_GLOBAL", "DELETE_GLOBAL"):
                return "stores to the global", str(instruction.argval), line
            if instruction.opname in ("STORE_DEREF", "DELETE_DEREF") and instruction.argval in outside:
                return "stores to the outer", str(instruction.argval), line
    return None


def refuse_stores(function: FunctionType):
    """Refuse a function whose code has `global` or `nonlocal` names that it binds."""
    found = _stores(function.__code__)
    if found is not None:
        said, name, line = found
        raise Untraceable(f"{said} variable '{name}'", place(function.__code__.co_filename, line))
