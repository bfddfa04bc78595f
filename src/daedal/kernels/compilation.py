"""How Daedal's inner loops are compiled: lazily, once, and cached on disk.

The entry points are ``@kernel`` functions: Numba in nopython mode, with the GIL released and the machine code cached.
What they call are ``@part`` functions, which need no Python wrapper and no cache of their own. Numba decides whether
a cached kernel is stale from the file that holds it alone; here the stamp covers that file and all that it imports,
because a kernel inlines functions of other files.
"""

from __future__ import annotations

import hashlib
import inspect
import re
import sys
from functools import cache, cached_property
from pathlib import Path

import numba
from numba.core import event as numba_event
from numba.core.ccallback import CFunc
from numba.core.sigutils import normalize_signature

_PACKAGE = Path(__file__).resolve().parent.parent
_IMPORT = re.compile(r"^from daedal\.(kernels|mechanics|events|methods|formulations)\.(\w+) import", re.MULTILINE)


@cache
def _source_stamp(path: Path) -> str:
    """A digest of a file with kernels and of all files with kernels that it imports, directly or not."""
    digest, seen, waiting = hashlib.sha256(), {path}, [path]
    while waiting:
        source = waiting.pop().read_text(encoding="utf-8")
        digest.update(source.encode())
        imported = [_PACKAGE / room / f"{module}.py" for room, module in _IMPORT.findall(source)]
        waiting += sorted(set(imported) - seen)
        seen.update(imported)
    return digest.hexdigest()


def part(function):
    """Compile `function` as a part of kernels: called from compiled code only, it lives inside their caches."""
    return numba.njit(nogil=True, error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)(function)


def inlined(function):
    """A part that is copied into its callers before compilation: for one-liners, which would cost more to compile."""
    return numba.njit(inline="always")(function)


def kernel(function):
    """Compile `function` on first use, callable from Python, and keep the machine code for later processes."""
    dispatcher = numba.njit(nogil=True, error_model="numpy")(function)
    _enable_caching(dispatcher, function)
    return dispatcher


class Pointer:
    """A function with a C signature, compiled (or loaded from the cache) when its address is first asked for."""

    def __init__(self, function, signature):
        self._function = function
        self._signature = signature

    @cached_property
    def _compiled(self):
        compiled = CFunc(
            self._function, normalize_signature(self._signature), locals={}, options={"error_model": "numpy"}
        )
        _enable_caching(compiled, self._function)
        compiled.compile()
        return compiled

    @property
    def address(self) -> int:
        """Where other kernels reach the function."""
        return self._compiled.address


def pointer(signature):
    """Decorator: a kernel that others call through a pointer, so that its code is compiled once for all of them."""
    return lambda function: Pointer(function, signature)


def _enable_caching(compiled, function):
    """Cache on disk, with a stamp of all sources; where no place is writable, do without."""
    try:
        compiled.enable_caching()
    except RuntimeError:
        _say_once("no writable place for compiled code: it will be compiled anew in every process")
        return
    cache_file = getattr(getattr(compiled, "_cache", None), "_cache_file", None)
    if cache_file is not None:
        cache_file._source_stamp = _source_stamp(Path(inspect.getfile(function)).resolve())


@cache
def _say_once(message: str):
    print(f"daedal: {message}", file=sys.stderr, flush=True)


class _Announcer(numba_event.Listener):
    """Says on stderr that a kernel is being compiled, so that a first run is not mistaken for a hang."""

    def __init__(self, announced: dict[str, str]):
        self._announced = announced

    def on_start(self, event):
        name = event.data["dispatcher"].py_func.__qualname__
        what = self._announced.pop(name, None)
        if what is not None:
            print(
                f"daedal: compiling {what} (once; later runs load it from the cache) ...", file=sys.stderr, flush=True
            )

    def on_end(self, event):
        pass


_announced: dict[str, str] = {}
numba_event.register("numba:compile", _Announcer(_announced))


def announce(dispatcher, what: str):
    """Announce on stderr when `dispatcher` has to be compiled, i.e. was not found in the cache."""
    _announced[dispatcher.py_func.__qualname__] = what
    return dispatcher
