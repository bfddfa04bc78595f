"""How Daedal's inner loops are compiled: lazily, once, and cached on disk.

The entry points are ``@kernel`` functions: Numba in nopython mode, with the GIL released and the machine code cached.
What they call are ``@part`` functions, which need no Python wrapper and no cache of their own. Numba decides whether
a cached kernel is stale from the file that holds it alone; here the stamp covers that file and all that it imports,
because a kernel inlines functions of other files.
"""

import ast
import hashlib
import inspect
import re
import sys
from collections.abc import Iterator
from functools import cache, cached_property
from pathlib import Path

import numba
from llvmlite import ir
from numba import types
from numba.core import event as numba_event
from numba.core.ccallback import CFunc
from numba.core.sigutils import normalize_signature
from numba.extending import intrinsic

_PACKAGE = Path(__file__).resolve().parent.parent
# An import at the head of a file, whose names kernels see: not one inside of a function.
_IMPORT = re.compile(r"^(?:from|import) [^\n(]*(?:\([^)]*\))?", re.MULTILINE)


@cache
def source_stamp(path: Path, package: Path = _PACKAGE) -> str:
    """A digest of a file with kernels and of all files of the package that it imports, directly or not."""
    digest = hashlib.sha256()
    for source in sources(path, package):
        digest.update(_read(source).encode())
    return digest.hexdigest()


def sources(path: Path, package: Path = _PACKAGE) -> list[Path]:
    """A file and all files of the package that it imports when it is loaded, directly or not."""
    found, waiting = [], [path]
    while waiting:
        found.append(waiting.pop())
        waiting += sorted(set(_imported(found[-1], package)) - {*found, *waiting})
    return found


@cache
def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8")


@cache
def _imported(path: Path, package: Path) -> tuple[Path, ...]:
    """The files of the package that a file imports: modules, and what stands behind the names of a package."""
    names = [name for statement in _IMPORT.findall(_read(path)) for name in _names(statement, path, package)]
    return tuple(place for name in names if (place := _place(name, package)) is not None)


def _names(statement: str, path: Path, package: Path) -> Iterator[str]:
    """The dotted names behind an import, of modules and of what may be a module; none for a line that is no import."""
    try:
        [node] = ast.parse(statement).body
    except (SyntaxError, ValueError):
        return
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        base = node.module or ""
        if node.level and path.is_relative_to(package.parent):
            above = path.relative_to(package.parent).parts[: -node.level]
            base = ".".join([*above, *([base] if base else [])])
        yield base
        yield from (f"{base}.{alias.name}" for alias in node.names)


def _place(name: str, package: Path) -> Path | None:
    """The file of a module or package, if the name is one of ours."""
    first, *rest = name.split(".")
    if first != package.name or not rest:
        return None
    place = package.joinpath(*rest)
    files = (place.with_suffix(".py"), place / "__init__.py")
    return next((file for file in files if file.is_file()), None)


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


def caller(signature):
    """A function for kernels that calls the C function with this signature at an address: ``call(address, ...)``."""
    to_ir = {types.int32: ir.IntType(32), types.int64: ir.IntType(64), types.float64: ir.DoubleType()}
    function_type = ir.FunctionType(to_ir[signature.return_type], [to_ir[argument] for argument in signature.args])

    def codegen(context, builder, _, args):
        return builder.call(builder.inttoptr(args[0], function_type.as_pointer()), args[1:])

    made = signature.return_type(types.int64, *signature.args), codegen
    arguments = ", ".join(f"argument_{i}" for i in range(len(signature.args)))
    return intrinsic(eval(f"lambda typingctx, address, {arguments}: made", {"made": made}))  # the arity spelt out


def _enable_caching(compiled, function):
    """Cache on disk, with a stamp of all sources; where no place is writable, do without."""
    from daedal.kernels.cache import CheckedCacheFile, say_once  # no code of kernels: not part of their stamps

    try:
        compiled.enable_caching()
    except RuntimeError:
        say_once("no writable place for compiled code: it will be compiled anew in every process")
        return
    cached = getattr(compiled, "_cache", None)
    if hasattr(cached, "_cache_file"):
        stamp = source_stamp(Path(inspect.getfile(function)).resolve())
        cached._cache_file = CheckedCacheFile(cached.cache_path, cached._impl.filename_base, stamp)


class _Announcer(numba_event.Listener):
    """Says on stderr that a kernel is being compiled, so that a first run is not mistaken for a hang."""

    def __init__(self, announced: dict[tuple[str, str], str]):
        self._announced = announced

    def on_start(self, event):
        what = self._announced.pop(_full_name(event.data["dispatcher"]), None)
        if what is not None:
            print(
                f"daedal: compiling {what} (once; later runs load it from the cache) ...", file=sys.stderr, flush=True
            )

    def on_end(self, event):
        pass


def _full_name(dispatcher) -> tuple[str, str]:
    return dispatcher.py_func.__module__, dispatcher.py_func.__qualname__


_announced: dict[tuple[str, str], str] = {}
numba_event.register("numba:compile", _Announcer(_announced))


def announce(dispatcher, what: str):
    """Announce on stderr when `dispatcher` has to be compiled, i.e. was not found in the cache."""
    _announced[_full_name(dispatcher)] = what
    return dispatcher
