"""How inner loops become machine code: functions in Numba's subset of Python, compiled when Daedal is built.

Three decorators mark them. :func:`entry` is a function that is entered from outside, by address from other kernels or
from Python, and has a declared signature; :func:`part` is called from compiled functions only; :func:`inlined` is a
part that is copied into its callers before compilation. The entries of a file are a *unit*: one piece of object code,
which :mod:`daedal.kernels.units` loads when an address is first needed.

In which way they run is decided when the module is imported, by the environment variable ``DAEDAL_KERNELS``:

* unset: object code is loaded, and Numba is never imported. Parts are plain functions.
* ``python``: everything is interpreted, with bounds checked by NumPy; slow, for debugging and for tests of kernels.
* ``build``: the decorators are Numba's; only processes that compile (:mod:`daedal.kernels.compiler`) have this.
"""

from __future__ import annotations

import ctypes
import os
import sys
import threading
from collections.abc import Callable
from functools import cached_property
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from daedal import first_use
from daedal.kernels.signatures import Signature

MODE = os.environ.get("DAEDAL_KERNELS", "objects")
if MODE not in ("objects", "python", "build"):
    raise ImportError(f"DAEDAL_KERNELS={MODE!r} is not known; it is 'python' or not set")

_CTYPES: dict[str, Any] = {
    "f64": ctypes.c_double,
    "i64": ctypes.c_int64,
    "i32": ctypes.c_int32,
    "boolean": ctypes.c_bool,
    "void": None,
}


_CONVERT = {"f64": float, "i64": int, "i32": int, "boolean": bool}


def c_function_type(signature: Signature) -> Any:
    """The type by which ctypes calls a C function with this signature."""
    return ctypes.CFUNCTYPE(_CTYPES[signature.result.name], *[_CTYPES[kind.name] for kind in signature.arguments])


class Entry:
    """A compiled function that is entered from outside.

    Attributes
    ----------
    py_func : callable
        The function as it is written, under the name that Numba gives it.
    unit : str
        The module that holds it.
    """

    def __init__(self, function: Callable[..., Any], signature: Signature):
        self.py_func, self.signature = function, signature
        self.__name__ = self.__qualname__ = function.__name__
        self.__doc__, self.__module__ = function.__doc__, function.__module__
        self.unit: str = function.__module__

    @property
    def symbol(self) -> str:
        """The name of the function in the object code."""
        return f"{self.unit}.{self.__name__}"

    @cached_property
    def address(self) -> int:
        """Where the C function is; its code is loaded when this is first asked for."""
        if self._is_interpreted:
            self._callback = c_function_type(self.signature)(_recorded(self.py_func))  # lives as long as the entry
            return ctypes.cast(self._callback, ctypes.c_void_p).value or 0
        with first_use.counted():
            from daedal.kernels.units import address_of

            return address_of(self)

    @cached_property
    def call(self) -> Callable[..., Any]:
        """The function as Python calls it, without a look-up."""
        if self._is_interpreted:
            return self.py_func
        if self.signature.is_plain:
            return c_function_type(self.signature)(self.address)
        with first_use.counted():
            from daedal.kernels.calls import callable_from_python

            return callable_from_python(self)

    @cached_property
    def _is_interpreted(self) -> bool:
        """Whether all kernels are, or this one stands where a process that compiles could not import it."""
        if MODE == "python" or self.unit.startswith("daedal."):
            return MODE == "python"
        if self.unit != "__main__" and _can_be_imported(self.unit):
            return False
        print(
            f"daedal: {self.__name__} runs interpreted; to be compiled, it has to stand in a module, a file of its own",
            file=sys.stderr,
        )
        return True

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


_raised = threading.local()  # the first exception of interpreted entries that were called by address


def _recorded(function):
    def call(*arguments):
        try:
            return function(*arguments)
        except BaseException as error:
            _raised.error = getattr(_raised, "error", None) or error
            return -1

    return call


def _can_be_imported(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except (ImportError, ValueError):
        return False


if not TYPE_CHECKING and MODE == "build":
    from daedal.kernels.compiler import caller, entry, inlined, part
else:

    def part(function):
        """A part of kernels: called from compiled functions only."""
        return function

    def inlined(function):
        """A part that is copied into its callers before compilation: for one-liners."""
        return function

    def entry(signature: Signature):
        """Decorator: a compiled function with this signature, entered by address or from Python."""
        return lambda function: Entry(function, signature)

    def caller(signature: Signature):
        """A function for kernels that calls the C function with this signature: ``call(address, ...)``."""
        kind, convert = c_function_type(signature), [_CONVERT[kind.name] for kind in signature.arguments]

        def call(address, *arguments):
            return kind(int(address))(*[to(argument) for to, argument in zip(convert, arguments, strict=True)])

        return call
