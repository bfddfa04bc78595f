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
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from importlib.machinery import EXTENSION_SUFFIXES
from types import BuiltinFunctionType, CellType, CodeType, FunctionType, MethodType, ModuleType, SimpleNamespace
from typing import Any

import numpy as np

from daedal.symbolic.arrays import Array, wrapped
from daedal.symbolic.dependencies import Dependencies, entries, same_entries
from daedal.symbolic.expression import Expression
from daedal.symbolic.piecewise import polynomial_pieces
from daedal.symbolic.sparse_constants import SparseConstant
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

_OUTSIDE_WORLD = {
    **dict.fromkeys(("random", "secrets", "uuid"), "uses random numbers"),
    **dict.fromkeys(("time", "datetime"), "asks for the time"),
    **dict.fromkeys(("logging", "warnings"), "writes messages"),
    **dict.fromkeys(("os", "sys", "io", "pathlib", "subprocess", "socket", "shutil", "ctypes", "sqlite3"), "uses {}"),
    **dict.fromkeys(("threading", "_thread", "queue", "multiprocessing", "asyncio", "concurrent", "urllib"), "uses {}"),
    **dict.fromkeys(("signal", "_signal", "faulthandler", "gc", "atexit", "inspect", "traceback"), "uses {}"),
    "cmath": "uses complex numbers",
}
"""What a trace must not do, since it runs a function on every path and does not know which one will be taken."""
_KEPT = {"numpy", "scipy", "numba", "llvmlite", *sys.stdlib_module_names} - {"__main__"}
"""Modules whose Python functions are called as they are."""
_ARRAYS_OF_THEIR_OWN = {"xarray", "jax", "jaxlib", "dask"}
"""Packages in plain Python whose objects stand for numbers."""
_PACKAGE = __name__.split(".")[0] + "."
_LARGEST_ARRAY = 1_000_000  # entries of an array of constants that is made an array of symbols


class Substitution:
    """What stands in for the objects that a traced function reaches, for one run of it on symbols.

    Parameters
    ----------
    dependencies : Dependencies
        Notes what is reached.
    """

    def __init__(self, dependencies: Dependencies):
        self.dependencies = dependencies
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
        home = _module_of(value).split(".")[0]
        if home in _OUTSIDE_WORLD:
            return Forbidden(_OUTSIDE_WORLD[home].format(home))
        foreign = _foreign_package(value)
        if foreign:
            return Forbidden(f"uses {foreign}, whose code works on numbers only")
        if isinstance(value, np.ndarray) and hasattr(value, "mask"):  # masked; np.ma takes long to load
            raise Untraceable("uses a masked array")
        if isinstance(value, np.ndarray):
            if not isinstance(value, Array):  # parameters as symbols
                self.dependencies.array(value)
            return _constant_array(value)
        if home == "scipy" and hasattr(value, "tocsr") and not isinstance(value, type) and value.dtype.kind in "fi":
            if isinstance(getattr(value, "data", None), np.ndarray):
                self.dependencies.array(value.data)
            return SparseConstant(value)
        if isinstance(value, np.ufunc) or (callable(value) and home == "numpy"):
            return numpy_stand_in(value)
        if isinstance(value, BuiltinFunctionType):
            return self._builtin(value, value.__name__)
        if type(value).__module__.startswith("numpy.random"):
            return Forbidden("uses random numbers")
        if isinstance(value, io.IOBase):
            return Forbidden("reads or writes a file")
        if isinstance(value, Iterator):
            return Forbidden(f"advances the iterator '{name}', which lives outside of it")
        if isinstance(value, (list, dict, set, deque, bytearray)):
            return self._container(value, name)
        if isinstance(value, tuple):
            made = [self.of(entry, name) for entry in value]
            return type(value)._make(made) if hasattr(value, "_make") else tuple(made)
        if isinstance(value, functools.partial):
            keywords = {key: self.of(entry) for key, entry in value.keywords.items()}
            return functools.partial(self.of(value.func), *(self.of(entry) for entry in value.args), **keywords)
        if hasattr(type(value), "on_symbols"):
            return value.on_symbols
        if hasattr(value, "py_func"):
            return self.of(value.py_func)
        if isinstance(value, functools._lru_cache_wrapper):
            return self.of(value.__wrapped__)
        if isinstance(value, MethodType):
            return MethodType(self.of(value.__func__), self.of(value.__self__))
        if home in _KEPT and not isinstance(value, SimpleNamespace):
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
            return Forbidden(_OUTSIDE_WORLD[name].format(name), module)
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
        self.dependencies.cells(function)
        if not _is_own(function):
            self.dependencies.function(function)
            self.dependencies.names(function.__globals__, _names(function.__code__))
            self.dependencies.container(vars(function))
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
            try:
                cell.cell_contents = self.of(original.cell_contents, name)
            except ValueError:  # a name that has not been bound yet
                continue
        with self._parts_of(function):
            for name in _names(function.__code__):
                if name in function.__globals__:
                    namespace[name] = self.of(function.__globals__[name], name)
        return made

    @contextmanager
    def _parts_of(self, value: Any):
        """Within this, what a function or class reaches is not noted if it belongs to this package: it is constant."""
        noted = self.dependencies
        if _is_own(value):
            self.dependencies = Dependencies()
        try:
            yield
        finally:
            self.dependencies = noted

    def _globals_of(self, function: FunctionType) -> dict[str, Any]:
        original = function.__globals__
        if id(original) not in self._globals:
            self._alive.append(original)
            self._globals[id(original)] = {**original, "__builtins__": self._builtins}
        return self._globals[id(original)]

    def _class(self, kind: type) -> type:
        """A derived class whose methods are exchanged; classes that forbid it stay as they are."""
        if kind.__init_subclass__ is not object.__init_subclass__ and "__init_subclass__" in _members(kind):
            return kind  # derived classes are counted somewhere
        try:
            made = type(kind)(kind.__name__, (kind,), {"__slots__": (), "__module__": kind.__module__})
        except TypeError:
            return kind
        self._made[id(kind)] = made
        for name, member in _members(kind).items():
            with self._parts_of(kind):
                exchanged = self._member(member)
            if exchanged is not member:
                setattr(made, name, exchanged)
        for base in kind.__mro__[:-1]:
            if not _is_own(base) and _module_of(base).split(".")[0] not in _KEPT:
                self.dependencies.container(vars(base))
        self._copies.append((vars(made), dict(vars(made)), f"attributes of the class {kind.__name__}"))
        return made

    def _member(self, member: Any) -> Any:
        if isinstance(member, (staticmethod, classmethod)):
            return type(member)(self.of(member.__func__))
        if isinstance(member, property) and member.fget is not None:
            return property(self.of(member.fget))
        return self.of(member) if isinstance(member, FunctionType) else member

    def _instance(self, value: Any) -> Any:
        """A copy of an object of a user's class that refuses to be changed."""
        kind = self.of(type(value))
        new = SimpleNamespace.__new__ if isinstance(value, SimpleNamespace) else object.__new__

        def refuse(self, name, *value):
            raise Untraceable(f"stores to the attribute '{name}' of an object that lives outside of it")

        members = {"__slots__": (), "__setattr__": refuse, "__delattr__": refuse, "__module__": kind.__module__}
        try:
            guard = new(type(kind)(kind.__name__, (kind,), members))
        except TypeError:  # members of an Enum, objects of extension modules
            return value
        self._made[id(value)] = guard
        names = [name for base in type(value).__mro__ for name in _slots(base) if hasattr(value, name)]
        self.dependencies.attributes(value, names)
        if not _is_frozen(type(value)):
            self.dependencies.container(getattr(value, "__dict__", {}))
        for name in (*getattr(value, "__dict__", ()), *names):
            object.__setattr__(guard, name, self.of(getattr(value, name), name))
        attributes = getattr(guard, "__dict__", {})
        self._copies.append((attributes, dict(attributes), f"attributes of a {kind.__name__}"))
        return guard

    def _container(self, value: Any, name: str) -> Any:
        self.dependencies.container(value)
        copied = copy(value)
        self._made[id(value)] = copied
        if isinstance(value, (list, deque, dict)):
            for key, entry in value.items() if isinstance(value, dict) else enumerate(value):
                copied[key] = self.of(entry, name)
        self._copies.append((copied, copy(copied), f"'{name}'" if name else f"a {type(value).__name__}"))
        return copied

    def _table(self, table: Any):
        pieces = table.polynomial_pieces()
        for array in pieces:
            self.dependencies.array(array)

        def call(t):
            return polynomial_pieces(t, *pieces) if type(t) is Expression else wrapped(table(t))

        return call

    def check_unchanged(self):
        """Refuse a function that has changed a container, which it does not own, or attributes of a function."""
        for copied, before, what in self._copies:
            if not same_entries(entries(copied), entries(before)):
                raise Untraceable(f"changes {what}, which lives outside of it", "")


class _Module(ModuleType):
    """A module of the user's, or of another package, whose functions are exchanged when they are asked for."""

    def __init__(self, module: ModuleType, substitution: Substitution):
        super().__init__(module.__name__)
        object.__setattr__(self, "_daedal", (module, substitution))

    def __getattr__(self, name: str):
        module, substitution = self._daedal
        substitution.dependencies.names(vars(module), (name,))
        return substitution.of(getattr(module, name), name)

    def __setattr__(self, name: str, value):
        raise Untraceable(f"stores to {self.__name__}.{name}")


def _module_of(value: Any) -> str:
    """The name of the module in which a function, a class, or the class of an object was defined."""
    for holder in (value, type(value)):
        name = getattr(holder, "__module__", None)
        if isinstance(name, str):
            return name
    return ""


def _foreign_package(value: Any) -> str:
    """The package of compiled code that a function, a class or an object belongs to; empty for plain Python.

    Objects of such packages hold pointers: copies of them, or symbols in place of numbers, crash the process.
    """
    kinds = value.__mro__ if isinstance(value, type) else (value, *type(value).__mro__)
    return next((module for module in map(_module_of, kinds) if _is_foreign(module)), "").split(".")[0]


@functools.lru_cache(maxsize=4096)
def _is_foreign(name: str) -> bool:
    """Whether a module is compiled, or belongs to an installed package that has compiled modules."""
    home = name.split(".")[0]
    if home in _KEPT or home == "__main__" or f"{home}." == _PACKAGE:
        return False
    if home in _ARRAYS_OF_THEIR_OWN or _is_compiled(name):
        return True
    path = getattr(sys.modules.get(home), "__file__", None) or ""
    installed = "site-packages" in path or "dist-packages" in path
    return installed and any(module.startswith(f"{home}.") and _is_compiled(module) for module in list(sys.modules))


def _is_compiled(name: str) -> bool:
    path = getattr(sys.modules.get(name), "__file__", None)
    return isinstance(path, str) and path.endswith(tuple(EXTENSION_SUFFIXES))


def _is_own(value: Any) -> bool:
    """Whether a function or class belongs to this package, whose code does not change."""
    return _module_of(value).startswith(_PACKAGE)


def _is_frozen(kind: type) -> bool:
    """Whether objects of a class of this package keep the attributes that they have."""
    parameters = getattr(kind, "__dataclass_params__", None)
    return _is_own(kind) and parameters is not None and parameters.frozen


def _constant_array(values: np.ndarray) -> np.ndarray:
    """An array that lives outside: it can be read and copied, not written to."""
    symbolic = values.dtype.kind == "f" and values.size <= _LARGEST_ARRAY and type(values) is np.ndarray
    view: np.ndarray = values.astype(object).view(Array) if symbolic else values.view()
    view.flags.writeable = False
    return view


def _members(kind: type) -> dict[str, Any]:
    """What a class and its bases define, without those of the standard library."""
    members: dict[str, Any] = {}
    for base in reversed(kind.__mro__[:-1]):
        if _module_of(base).split(".")[0] not in _KEPT:
            members |= vars(base)
    return members


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
