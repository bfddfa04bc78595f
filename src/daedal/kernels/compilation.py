"""Compilation of inner loops: functions in Numba's subset of Python, compiled when Daedal is built.

Three decorators mark them. :func:`entry` is a function called from outside, by address from other kernels or from
Python, with a declared signature; :func:`part` is called only from compiled functions; :func:`inlined` is a part that
is copied into its callers before compilation. The entries of a file are a *unit*: one piece of object code, which
:mod:`daedal.kernels.units` loads when an address is first needed.

The execution mode is set at import by the environment variable ``DAEDAL_KERNELS``:

* unset: object code is loaded, and Numba is never imported. Parts are plain functions.
* ``python``: everything is interpreted, with bounds checked by NumPy; slow, for debugging and for tests of kernels.
* ``build``: the decorators are Numba's; only compiling processes (:mod:`daedal.kernels.compiler`) use this.
"""

from __future__ import annotations

import ctypes
import os
import sys
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from daedal.common import first_use
from daedal.kernels.signatures import Signature

MODE = os.environ.get("DAEDAL_KERNELS") or "objects"
if MODE not in ("objects", "python", "build"):
    raise ImportError(f"DAEDAL_KERNELS={MODE!r} is unknown; it must be 'python' or unset")

_CTYPES: dict[str, Any] = {
    "f64": ctypes.c_double,
    "i64": ctypes.c_int64,
    "i32": ctypes.c_int32,
    "boolean": ctypes.c_bool,
    "void": None,
}


_CONVERT = {"f64": float, "i64": int, "i32": int, "boolean": bool}


def c_function_type(signature: Signature) -> Any:
    """The ctypes type of a C function with this signature."""
    return ctypes.CFUNCTYPE(_CTYPES[signature.result.name], *[_CTYPES[kind.name] for kind in signature.arguments])


_T = TypeVar("_T")


class _computed_once(Generic[_T]):
    """`functools.cached_property` without the lock of Python 3.11, which a process forked meanwhile could not release.

    Threads that access it simultaneously may compute the value more than once.
    """

    def __init__(self, function: Callable[[Any], _T]):
        self._function, self._name, self.__doc__ = function, function.__name__, function.__doc__

    def __get__(self, instance: Any, owner: type | None = None) -> _T:
        if instance is None:
            return self  # type: ignore[return-value]
        return instance.__dict__.setdefault(self._name, self._function(instance))


class Execution:
    """One execution of a module with entries. Reloading the module starts another one."""

    def __init__(self, number: int, file: str):
        self.number, self.names, self._file = number, set[str](), file
        self._saved = self._state_of_file()

    def is_outdated(self) -> bool:
        """Whether the file of the module has changed since it was executed."""
        return self._state_of_file() != self._saved

    def _state_of_file(self) -> tuple[int, ...]:
        try:
            found = os.stat(self._file)
        except (OSError, ValueError):
            return ()
        return found.st_mtime_ns, found.st_size, found.st_ino


_executions: dict[str, Execution] = {}


def _execution(function: Callable[..., Any]) -> Execution:
    """The execution of a new entry: the next one if the entry's name is already defined."""
    unit, name, current = function.__module__, function.__name__, _executions.get(function.__module__)
    if current is None or name in current.names:
        number = 0 if current is None else current.number + 1
        current = _executions[unit] = Execution(number, function.__code__.co_filename)
    current.names.add(name)
    return current


class Entry:
    """A compiled function that can be called from outside.

    Attributes
    ----------
    py_func : callable
        The function as written, under the name that Numba uses.
    unit : str
        The module that contains it.
    execution : Execution
        The execution of the module that defined it.
    """

    def __init__(self, function: Callable[..., Any], signature: Signature):
        self.py_func, self.signature = function, signature
        self.__name__ = self.__qualname__ = function.__name__
        self.__doc__, self.__module__ = function.__doc__, function.__module__
        self.unit: str = function.__module__
        self.execution = _execution(function)

    @property
    def symbol(self) -> str:
        """The name of the function in the object code."""
        return f"{self.unit}.{self.__name__}"

    @_computed_once
    def address(self) -> int:
        """The address of the C function; its code is loaded on first access."""
        return self._compiled or ctypes.cast(self._callback, ctypes.c_void_p).value or 0

    @_computed_once
    def call(self) -> Callable[..., Any]:
        """The function to be called from Python, stored without further look-up."""
        if self._compiled is None:
            return self.py_func
        if self.signature.is_plain:
            return c_function_type(self.signature)(self._compiled)
        with first_use.counted():
            from daedal.kernels.calls import callable_from_python

            return callable_from_python(self)

    @_computed_once
    def _compiled(self) -> int | None:
        """The address of the compiled function.

        None if all kernels are interpreted, or if the entry is not part of Daedal and a compiling process cannot
        import its module.
        """
        if MODE == "python":
            return None
        with first_use.counted():
            from daedal.kernels.units import SourceMismatch, address_of

            try:
                return address_of(self)
            except SourceMismatch as error:
                if self.unit.startswith("daedal."):
                    raise
                reason = error
        from daedal.common.object_store import say_once

        say_once(
            f"{self.__name__} runs interpreted; to be compiled, it must be in a module file that other processes "
            f"can import: {reason}"
        )
        return None

    @_computed_once
    def _callback(self) -> Any:
        """The interpreted function as a C function with the lifetime of the entry."""
        return c_function_type(self.signature)(_recorded(self.py_func))

    def __call__(self, *arguments):
        result = self.call(*arguments)
        error = getattr(_raised, "error", None)
        if error is not None:
            _raised.error = None
            raise error
        return result

    def __reduce__(self) -> str:
        return self.__name__

    def __repr__(self) -> str:
        return f"<compiled {self.symbol}: {self.signature}>"


_raised = threading.local()  # the first exception of an interpreted entry that was called by address


def _recorded(function):
    _watch_callbacks()

    def interpreted_entry(*arguments):
        try:
            if getattr(_raised, "error", None) is not None:
                return -1  # an exception reported by ctypes did not reach the caller
            return function(*arguments)
        except BaseException as error:
            _record(error)
            return -1

    return interpreted_entry


def _record(error: BaseException | None):
    _raised.error = getattr(_raised, "error", None) or error


def _watch_callbacks():
    """Record also exceptions that an interrupt raises in a callback just outside the block that records exceptions.

    ctypes prints such an exception by `sys.unraisablehook` and continues.
    """
    others = sys.unraisablehook
    if getattr(others, "records_entries", False):
        return

    def hook(unraisable):
        if "interpreted_entry" in f"{unraisable.err_msg} {unraisable.object!r}":
            _record(unraisable.exc_value)
        else:
            others(unraisable)

    hook.records_entries = True
    sys.unraisablehook = hook


if not TYPE_CHECKING and MODE == "build":
    from daedal.kernels.compiler import caller, entry, inlined, part
else:

    def part(function):
        """A part of kernels, called only from compiled functions."""
        return function

    def inlined(function):
        """A part that is copied into its callers before compilation; for one-liners."""
        return function

    def entry(signature: Signature):
        """Decorator: a compiled function with this signature, called by address or from Python."""
        return lambda function: Entry(function, signature)

    def caller(signature: Signature):
        """A function for kernels that calls a C function with this signature: ``call(address, ...)``."""
        kind, convert = c_function_type(signature), [_CONVERT[kind.name] for kind in signature.arguments]

        def call(address, *arguments):
            return kind(int(address))(*[to(argument) for to, argument in zip(convert, arguments, strict=True)])

        return call
