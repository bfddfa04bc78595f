"""Copies of user functions in which numpy, math and other objects that must not be given symbols are replaced.

User objects are never modified: functions are copied with other globals and closures, containers and arrays are copied,
instances get a derived class. Objects reached from a function (helpers, closures, methods, modules, partial functions,
Numba dispatchers) are replaced in the same way.
"""

import array
import builtins
import contextlib
import dis
import enum
import functools
import io
import math
import numbers
import os
import re
import sys
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from functools import partial
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from types import (
    BuiltinFunctionType,
    CellType,
    CodeType,
    FunctionType,
    GetSetDescriptorType,
    MappingProxyType,
    MemberDescriptorType,
    MethodType,
    ModuleType,
    SimpleNamespace,
)
from typing import Any

import numpy as np

from daedal.symbolic.arrays import Array, SparseConstant, plain, wrapped
from daedal.symbolic.dependencies import Dependencies, Memory, entries, same_entries
from daedal.symbolic.expression import Expression
from daedal.symbolic.kinds import Number
from daedal.symbolic.piecewise import interpolant_replacement, polynomial_pieces, scipy_replacement
from daedal.symbolic.replacements import (
    BUILTINS,
    Forbidden,
    MathModule,
    NumpyModule,
    math_replacement,
    numpy_replacement,
)
from daedal.symbolic.untraceable import Untraceable, is_of_user, place, truth_by_identity

_OUTSIDE_WORLD = {
    **dict.fromkeys(("random", "secrets", "uuid"), "uses random numbers"),
    **dict.fromkeys(("time", "datetime"), "reads the clock"),
    **dict.fromkeys(("logging", "warnings"), "writes messages"),
    **dict.fromkeys(("os", "sys", "io", "pathlib", "subprocess", "socket", "shutil", "ctypes", "sqlite3"), "uses {}"),
    **dict.fromkeys(("threading", "_thread", "queue", "multiprocessing", "asyncio", "concurrent", "urllib"), "uses {}"),
    **dict.fromkeys(("signal", "_signal", "faulthandler", "gc", "atexit", "inspect", "traceback"), "uses {}"),
    "cmath": "uses complex numbers",
    **dict.fromkeys(("contextvars", "_contextvars", "weakref", "_ctypes", "configparser", "shelve"), "uses {}"),
}
"""Operations that a trace must not perform, since it runs a function on every path without knowing which one will be
taken."""
_KEPT = {"numpy", "scipy", "numba", "llvmlite", *sys.stdlib_module_names} - {"__main__"}
"""Modules whose Python functions are called unchanged."""
_ARRAYS_OF_THEIR_OWN = {"xarray", "jax", "jaxlib", "dask"}
"""Pure Python packages whose objects represent numbers."""
_PACKAGE = __name__.split(".")[0] + "."
_LARGEST_ARRAY = 1_000_000  # size up to which a constant array is converted to an array of symbols


class Substitution:
    """Replacements for the objects that a traced function reaches, for one run on symbols.

    Parameters
    ----------
    dependencies : Dependencies
        Records what is read.
    memory : Memory, optional
        Records what is changed; None forbids changes.
    """

    def __init__(self, dependencies: Dependencies, memory: Memory | None = None):
        self.dependencies, self.memory = dependencies, memory
        self.by_identity = ""  # site at which a function compares by identity with True or False
        self._made: dict[int, Any] = {}  # keyed by the identity of the original
        self._noted: set[int] = set()
        self._alive: list[Any] = []  # originals, kept alive so that their identities stay valid
        self._globals: dict[int, dict[str, Any]] = {}
        self._copies: list[tuple[Any, Any, str]] = []  # containers: the copy, its original content and a description
        self._numpy, self._math = NumpyModule(np), MathModule()
        self._builtins = {**vars(builtins), **BUILTINS, "__import__": self._import}

    def _import(self, name, globals=None, locals=None, fromlist=(), level=0):
        return self.of(builtins.__import__(name, globals, locals, fromlist, level))

    def of(self, value: Any, name: str = "") -> Any:
        """Replacement for `value`, for which the function uses the name `name`."""
        if value is None or isinstance(value, (bool, int, float, str, bytes, complex, Expression, CodeType)):
            return value
        if id(value) not in self._made:
            self._alive.append(value)
            self._made[id(value)] = value  # for self-references
            self._made[id(value)] = self._replacement(value, name)
        return self._made[id(value)]

    def _replacement(self, value: Any, name: str) -> Any:
        if isinstance(value, ModuleType):
            return self._module(value)
        if value is float or value is int or value is type:
            return BUILTINS[value.__name__]
        if value is contextlib.suppress:
            return Forbidden("suppresses exceptions")
        owner = getattr(value, "__self__", None)
        if type(owner).__module__.startswith("numpy.random"):
            return Forbidden("uses random numbers", memory=name or "random numbers")
        home = _home(value) or ("" if isinstance(value, FunctionType) else _home(type(value)))
        if home in _OUTSIDE_WORLD:
            return Forbidden(_OUTSIDE_WORLD[home].format(home), memory=_drawn(home))
        foreign = _foreign_package(value)
        if foreign:
            return Forbidden(f"uses {foreign}, whose code accepts only numbers")
        if isinstance(value, np.ndarray) and hasattr(value, "mask"):  # masked array; importing np.ma is slow
            raise Untraceable("uses a masked array")
        if isinstance(value, np.ndarray):
            if type(value) is not Array and value.dtype == object:
                return self._object_array(value)
            if not isinstance(value, Array):  # parameters as symbols
                self.dependencies.array(value)
            if self.memory is not None and value.dtype.kind in "fi":
                made = value.astype(object).view(Array)
                return (
                    self.memory.begin(value, "", made, partial(plain, made)) if value.size <= _LARGEST_ARRAY else made
                )
            return _constant_array(value)
        if home == "scipy" and hasattr(value, "tocsr") and not isinstance(value, type) and value.dtype.kind in "fi":
            self._note(value)
            return SparseConstant(value)
        if home == "scipy":
            found = scipy_replacement(value) if callable(value) else None
            if found is None and (found := interpolant_replacement(value)) is not None:
                self._note(value)
            if found is not None:
                return found
        if isinstance(value, np.vectorize):
            return numpy_replacement(np.vectorize)(self.of(value.pyfunc))
        if isinstance(value, np.ufunc) or (callable(value) and home == "numpy"):
            if not hasattr(value, "__name__"):  # for example a polynomial
                self._note(value)
                return value
            return numpy_replacement(value)
        if isinstance(value, BuiltinFunctionType):
            return self._builtin(value, value.__name__)
        if type(value).__module__.startswith("numpy.random"):
            return Forbidden("uses random numbers", memory=name or "random numbers")
        if isinstance(value, io.IOBase):
            return Forbidden("reads or writes a file")
        if isinstance(value, Iterator):
            return Forbidden(f"advances the iterator '{name}', which is defined outside it", memory=name)
        if isinstance(value, (list, dict, set, deque, bytearray)):
            return self._container(value, name)
        if isinstance(value, tuple):
            inner = [self.of(entry, name) for entry in value]
            return type(value)._make(inner) if hasattr(value, "_make") else tuple(inner)
        if isinstance(value, functools.partial):
            keywords = {key: self.of(entry) for key, entry in value.keywords.items()}
            self.dependencies.container(value.keywords)
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
            return self._kept(value)
        if isinstance(value, FunctionType):
            return self._function(value)
        if hasattr(type(value), "polynomial_pieces"):
            return self._table(value)
        if isinstance(value, type):
            return self._class(value)
        return self._instance(value)

    def _kept(self, value: Any) -> Any:
        """Return an object of the standard library, NumPy or SciPy unchanged if it is immutable; otherwise raise."""
        kind = type(value)
        if isinstance(value, _CONSTANT) or _home(kind) in ("numba", "llvmlite"):
            return value
        owner = getattr(value, "__self__", None)
        if callable(value) and owner is not None and not isinstance(owner, (type, ModuleType)):
            replaced = self.of(owner)
            return replaced if isinstance(replaced, Forbidden) else getattr(replaced, value.__name__)
        if isinstance(value, MappingProxyType):
            self.dependencies.container(value)
            return MappingProxyType({key: self.of(entry) for key, entry in value.items()})
        if isinstance(value, array.array):
            self.dependencies.reading(value, array.array.tobytes)
            return tuple(value)
        if isinstance(value, frozenset):
            return value if all(map(_is_constant, value)) else Forbidden("reads a set of objects")
        if kind.__module__.split(".")[0] in ("numpy", "scipy"):
            self._note(value)
            return value
        if hasattr(value, "__dict__"):
            return self._instance(value)
        if kind.__module__ in ("functools", "operator") or callable(value):
            return value
        return Forbidden(f"reads a {kind.__name__}, which may change")

    def _note(self, value: Any):
        """Record a dependency on all contents of an object of another package."""
        if id(value) in self._noted or isinstance(value, (*_CONSTANT, ModuleType)):
            return
        self._noted.add(id(value))
        self._alive.append(value)
        if isinstance(value, np.ndarray):
            if value.dtype == object:
                self.dependencies.reading(value, _entries_of_array)
                self._note(value.reshape(-1).tolist())
            else:
                self.dependencies.array(value)
        elif isinstance(value, (FunctionType, MethodType)) and _home(value) not in _KEPT:
            self.of(value)
        elif isinstance(value, (list, tuple, dict, set, frozenset, deque)):
            if not isinstance(value, (tuple, frozenset)):
                self.dependencies.container(value)
            for entry in entries(value):
                self._note(entry)
        elif hasattr(value, "__dict__") or any(map(_slots, type(value).__mro__)):
            names = [name for base in type(value).__mro__ for name in _slots(base) if hasattr(value, name)]
            self.dependencies.attributes(value, names)
            for held in (getattr(value, "__dict__", {}), [getattr(value, name) for name in names]):
                if isinstance(held, dict):
                    self.dependencies.container(held)
                for entry in entries(held):
                    self._note(entry)
        elif not callable(value):
            raise Untraceable(f"reads a {type(value).__name__}, which may change")

    def _module(self, module: ModuleType) -> Any:
        if module is math:
            return self._math
        name = module.__name__.split(".")[0]
        if name == "numpy":
            return self._numpy if module is np else NumpyModule(module)
        if name in _OUTSIDE_WORLD:
            return Forbidden(_OUTSIDE_WORLD[name].format(name), module, memory=_drawn(name))
        return _Module(module, self)

    def _builtin(self, value: Any, name: str) -> Any:
        if getattr(math, name, None) is value:
            return math_replacement(value)
        if self._builtins.get(name) is not value and getattr(builtins, name, None) is value:
            return self._builtins[name]
        owner = getattr(value, "__self__", None)  # a method such as list.append, which would change its owner
        if owner is not None and not isinstance(owner, ModuleType):
            replaced = self.of(owner)
            return getattr(replaced, name) if replaced is not owner else value
        return value

    # --- functions and objects ----------------------------------------------------------------------------------------

    def _function(self, function: FunctionType) -> FunctionType:
        if self.memory is None:
            refuse_stores(function)
        self.dependencies.cells(function)
        if not _is_own(function):
            self.dependencies.function(function)
            self.dependencies.names(function.__globals__, _names(function.__code__))
            self.dependencies.container(vars(function))
        if is_of_user(function.__code__):
            self.by_identity = next(filter(None, map(truth_by_identity, _codes(function.__code__))), self.by_identity)
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
                cell.cell_contents = self._begin(
                    original, "", self.of(original.cell_contents, name), partial(getattr, cell, "cell_contents")
                )
            except ValueError:  # a name not yet bound
                continue
        with self._parts_of(function):
            for name in _names(function.__code__):
                if name in function.__globals__:
                    held = self.of(function.__globals__[name], name)
                    read = partial(namespace.get, name)
                    namespace[name] = self._begin(function.__globals__, name, held, read)
        return made

    def _begin(self, owner: Any, key: Any, value: Any, read) -> Any:
        return value if self.memory is None else self.memory.begin(owner, key, value, read)

    @contextmanager
    def _parts_of(self, value: Any):
        """A context in which reads by a function or class of this package are not recorded, since its code is
        constant."""
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
        """A derived class whose methods are replaced; classes that cannot be subclassed are returned unchanged."""
        if kind in (Expression, Number) or isinstance(kind, enum.EnumMeta):
            return kind
        if kind.__init_subclass__ is not object.__init_subclass__ and "__init_subclass__" in _members(kind):
            return kind  # the hook might register the derived class
        try:
            made = type(kind)(kind.__name__, (kind,), {"__slots__": (), "__module__": kind.__module__})
        except TypeError:
            return kind
        self._made[id(kind)] = made
        for name, member in _members(kind).items():
            with self._parts_of(kind):
                exchanged = self._member(member, name)
            if exchanged is not member:
                setattr(made, name, exchanged)
        for base in kind.__mro__[:-1]:
            if not _is_own(base) and _module_of(base).split(".")[0] not in _KEPT:
                self.dependencies.container(vars(base))
        self._copies.append((vars(made), dict(vars(made)), f"attributes of the class {kind.__name__}"))
        return made

    def _member(self, member: Any, name: str) -> Any:
        if isinstance(member, (staticmethod, classmethod)):
            return type(member)(self.of(member.__func__))
        if isinstance(member, property) and member.fget is not None:
            return property(self.of(member.fget))
        if isinstance(member, FunctionType):
            return self.of(member)
        is_held = isinstance(member, (list, dict, set, deque, np.ndarray)) or _home(type(member)) not in _KEPT
        return self.of(member, name) if is_held and not name.startswith("_") else member

    def _instance(self, value: Any) -> Any:
        """A copy of an instance of a user class that refuses changes."""
        kind = self.of(type(value))
        new = SimpleNamespace.__new__ if isinstance(value, SimpleNamespace) else object.__new__

        def refuse(self, name, *value):
            raise Untraceable(f"stores to the attribute '{name}' of an object defined outside it", memory=name)

        members: dict[str, Any] = {"__slots__": (), "__module__": kind.__module__}
        if self.memory is None:
            members |= {"__setattr__": refuse, "__delattr__": refuse}
        try:
            guard = new(type(kind)(kind.__name__, (kind,), members))
        except TypeError:  # members of an Enum, objects of extension modules
            return value if isinstance(value, enum.Enum) else Forbidden(f"reads a {kind.__name__}, which may change")
        self._made[id(value)] = guard
        names = [name for base in type(value).__mro__ for name in _slots(base) if hasattr(value, name)]
        self.dependencies.attributes(value, names)
        if not _is_frozen(type(value)):
            self.dependencies.container(getattr(value, "__dict__", {}))
        if self.memory is not None:  # changed class attributes become attributes of the object
            numbers = [name for name, member in _members(type(value)).items() if isinstance(member, (int, float))]
            names += [name for name in numbers if hasattr(guard, "__dict__") and name not in vars(value)]
        for name in (*getattr(value, "__dict__", ()), *names):
            held = self._begin(value, name, self.of(getattr(value, name), name), partial(getattr, guard, name))
            object.__setattr__(guard, name, held)
        attributes = getattr(guard, "__dict__", {})
        self._copies.append((attributes, dict(attributes), f"attributes of a {kind.__name__}"))
        return guard

    def _container(self, value: Any, name: str) -> Any:
        if isinstance(value, (dict, set)) and not all(map(_is_constant, value)):
            return Forbidden(
                f"reads '{name}', which has objects as its {'keys' if isinstance(value, dict) else 'entries'}"
            )
        if getattr(value, "__dict__", None):
            self._note(vars(value))
        self.dependencies.container(value)
        copied = copy(value)
        self._made[id(value)] = copied
        if isinstance(value, (list, deque, dict)):
            for key, entry in value.items() if isinstance(value, dict) else enumerate(value):
                copied[key] = self._begin(value, key, self.of(entry, name), partial(_entry, copied, key))
        if self.memory is not None:
            return self.memory.container(value, copied)
        self._copies.append((copied, copy(copied), f"'{name}'" if name else f"a {type(value).__name__}"))
        return copied

    def _object_array(self, values: np.ndarray) -> np.ndarray:
        self.dependencies.reading(values, _entries_of_array)
        made = np.empty(values.shape, dtype=object)
        made.reshape(-1)[:] = [self.of(entry) for entry in values.reshape(-1)]
        made.flags.writeable = False
        return made

    def _table(self, table: Any):
        pieces = table.polynomial_pieces()
        for values in pieces:
            self.dependencies.array(values)

        def call(t):
            return polynomial_pieces(t, *pieces) if type(t) is Expression else wrapped(table(t))

        return call

    def check_unchanged(self):
        """Raise if a function has changed a container that it does not own, or attributes of a function."""
        if self.memory is not None:
            return self.memory.collect()
        for copied, before, what in self._copies:
            if not same_entries(entries(copied), entries(before)):
                raise Untraceable(f"changes {what}, which is defined outside it", "", memory=what.strip("'"))


class _Module(ModuleType):
    """A user module, or a module of another package, whose functions are replaced on access."""

    def __init__(self, module: ModuleType, substitution: Substitution):
        super().__init__(module.__name__)
        object.__setattr__(self, "_daedal", (module, substitution))

    def __getattr__(self, name: str):
        module, substitution = self._daedal
        substitution.dependencies.names(vars(module), (name,))
        return substitution.of(getattr(module, name), name)

    def __setattr__(self, name: str, value):
        raise Untraceable(f"stores to {self.__name__}.{name}")


_CONSTANT: Any = (
    *(type(None), bool, int, float, complex, str, bytes, type, range, slice, np.generic, np.dtype, np.ufunc, enum.Enum),
    *(numbers.Number, re.Pattern, FunctionType, BuiltinFunctionType, type(...), type(NotImplemented)),
    *(GetSetDescriptorType, MemberDescriptorType),
)
"""Immutable types of the standard library and NumPy."""


DRAWN = ("random", "secrets", "uuid", "time", "datetime")
"""Modules whose results differ from call to call."""


def _drawn(module: str) -> str:
    return module if module in DRAWN else ""


def _entry(container: Any, key: Any) -> Any:
    try:
        return container[key]
    except LookupError:
        return None


def _is_constant(value: Any) -> bool:
    """Whether a key of a dictionary or an entry of a set is immutable."""
    return all(map(_is_constant, value)) if isinstance(value, (tuple, frozenset)) else isinstance(value, _CONSTANT)


def _home(value: Any) -> str:
    home = getattr(value, "__module__", None)
    return home.split(".")[0] if isinstance(home, str) else ""


def _entries_of_array(values: np.ndarray) -> list[Any]:
    return values.reshape(-1).tolist()


def _module_of(value: Any) -> str:
    """Name of the module that defines a function, a class, or the class of an object."""
    for holder in (value, type(value)):
        name = getattr(holder, "__module__", None)
        if isinstance(name, str):
            return name
    return ""


def _foreign_package(value: Any) -> str:
    """Package of compiled code that a function, a class or an object belongs to; empty for pure Python.

    Objects of such packages hold pointers; copying them, or replacing their numbers by symbols, would crash the
    process.
    """
    kinds = value.__mro__ if isinstance(value, type) else (value, *type(value).__mro__)
    return next((module for module in map(_module_of, kinds) if _is_foreign(module)), "").split(".")[0]


@functools.lru_cache(maxsize=4096)
def _is_foreign(name: str) -> bool:
    """Whether a module is compiled, wraps one, or belongs to an installed package that has compiled modules."""
    home = name.split(".")[0]
    if home in _KEPT or home == "__main__" or f"{home}." == _PACKAGE:
        return False
    if home in _ARRAYS_OF_THEIR_OWN or _is_compiled(name) or _wraps_compiled_code(name, home):
        return True
    path = Path(getattr(sys.modules.get(home), "__file__", None) or "")
    installed = {"site-packages", "dist-packages"} & set(path.parts)
    return bool(installed) and path.name == "__init__.py" and _has_compiled_modules(path.parent)


def _wraps_compiled_code(name: str, home: str) -> bool:
    """Whether a module has imported a compiled module of the same package, as modules generated by SWIG do."""
    held = vars(sys.modules[name]).values() if name in sys.modules else ()
    others = {one.__name__ for one in held if isinstance(one, ModuleType)}
    return any(other.split(".")[0] in (home, f"_{home}") and _is_compiled(other) for other in others)


def _has_compiled_modules(folder: Path) -> bool:
    """Whether a package has compiled modules, loaded or not, since earlier runs determine which ones are loaded."""
    suffixes = tuple(EXTENSION_SUFFIXES)
    return any(file.endswith(suffixes) for _, _, files in os.walk(folder) for file in files)


def _is_compiled(name: str) -> bool:
    path = getattr(sys.modules.get(name), "__file__", None)
    return isinstance(path, str) and path.endswith(tuple(EXTENSION_SUFFIXES))


def _is_own(value: Any) -> bool:
    """Whether a function or class belongs to this package, whose code is constant."""
    return _module_of(value).startswith(_PACKAGE)


def _is_frozen(kind: type) -> bool:
    """Whether objects of a class of this package have constant attributes."""
    parameters = getattr(kind, "__dataclass_params__", None)
    return _is_own(kind) and parameters is not None and parameters.frozen


def _constant_array(values: np.ndarray) -> np.ndarray:
    """An external array, which can be read and copied but not written to."""
    symbolic = values.dtype.kind == "f" and values.size <= _LARGEST_ARRAY and type(values) is np.ndarray
    view: np.ndarray = values.astype(object).view(Array) if symbolic else values.view()
    view.flags.writeable = False
    return view


def _members(kind: type) -> dict[str, Any]:
    """Attributes defined by a class and its bases, without those of the standard library."""
    members: dict[str, Any] = {}
    for base in reversed(kind.__mro__[:-1]):
        if _module_of(base).split(".")[0] not in _KEPT:
            members |= vars(base)
    return members


def _slots(kind: type) -> tuple[str, ...]:
    slots = vars(kind).get("__slots__", ())
    names = (slots,) if isinstance(slots, str) else tuple(slots)
    # `_prepared` is a cache derived from the problem (problems/preparable.py)
    return tuple(name for name in names if name not in ("__dict__", "__weakref__", "_prepared"))


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
    """Description, name and line of the first store to an external name; None if there is none."""
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
    """Raise for functions that bind `global` or `nonlocal` names."""
    found = _stores(function.__code__)
    if found is not None:
        said, name, line = found
        raise Untraceable(f"{said} variable '{name}'", place(function.__code__.co_filename, line), memory=name)
