"""Object code of kernels: found in the package or the user's cache, or compiled; then loaded into the process.

A *unit* is a module with entries. Its object code is named by its inputs: all its sources, the processor level, and the
version of this format. It is searched for

1. in the folder ``objects`` of the package, which in a wheel holds all units, built from the sources next to them;
2. in the user's cache (:mod:`daedal.common.object_store`), which other checkouts and processes share;
3. otherwise it is compiled in a separate process, by :mod:`daedal.kernels.building`, and stored in the cache.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import threading
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import llvmlite
import llvmlite.binding as llvm

from daedal.common import object_store as store
from daedal.errors import DaedalError
from daedal.kernels.levels import initialise, levels_of_unit, machine_for, triple
from daedal.kernels.sources import edited, forget, located, note_states, source_stamp

FORMAT = "daedal kernels 2"
RAISED = "daedal_kernel_raised"
"""Symbol called by an entry that raises an exception; object code that refers to it is rejected."""
SHIPPED = Path(__file__).resolve().parent / "objects"
# first bytes of object code on Linux, macOS and Windows
_BEGINNINGS = b"\x7fELF", b"\xcf\xfa\xed\xfe", b"d\x86", b"d\xaa"
_PACKAGE = Path(__file__).resolve().parent.parent
if not SHIPPED.is_dir() and os.environ.get("DAEDAL_KERNELS") != "build":
    note_states()  # a compiling process compares sources itself
_LOCK = threading.RLock()  # LLVM's engines are not thread-safe
_loaded: dict[tuple[str, int], Any] = {}  # the engine of each execution of a unit, or the reason for its failure


class KernelBuildError(DaedalError):
    """A kernel could not be compiled on this machine."""


class SourceMismatch(KernelBuildError):
    """A compiling process finds another module than the one imported in this process."""


def _after_fork():
    """Replace a lock that another thread held when the process was forked, since it would never be released."""
    global _LOCK
    _LOCK = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


class Compiled(NamedTuple):
    """A unit at one level, with the data needed to load it."""

    unit: str
    level: str
    key: str
    triple: str
    entries: list[str]
    mentioned: list[str]  # external symbols
    versions: dict[str, str]
    seconds: list[float]  # seconds of translation by Numba, and of optimisation and code generation
    code: bytes

    def packed(self) -> bytes:
        """File format: one line that describes the code, then the code."""
        described = {name: value for name, value in self._asdict().items() if name != "code"}
        return json.dumps(described).encode() + b"\n" + self.code

    @classmethod
    def unpacked(cls, content: bytes) -> Compiled:
        """Read the file format."""
        head, _, code = content.partition(b"\n")
        return cls(**json.loads(head), code=code)

    def is_for(self, unit: str, level: str) -> bool:
        """Whether this is object code of a unit for a level on this platform."""
        described = (self.unit, self.level, self.triple) == (unit, level, triple())
        return described and self.code.startswith(_BEGINNINGS)


def address_of(entry: Any) -> int:
    """The address of the C function of an :class:`~daedal.kernels.compilation.Entry`."""
    with _LOCK:
        address = _engine(entry.unit, entry.execution).get_function_address(entry.symbol)
    if not address:
        raise ImportError(f"the machine code of {entry.unit} has no {entry.__name__}")
    return address


def _engine(unit: str, execution: Any = None) -> Any:
    which = unit, 0 if execution is None else execution.number
    if which not in _loaded:
        try:
            _loaded[which] = _load(unit, execution)
        except SourceMismatch as error:
            _loaded[which] = error
    if isinstance(_loaded[which], SourceMismatch):
        raise _loaded[which]
    return _loaded[which]


def _load(unit: str, execution: Any) -> Any:
    if not unit.startswith("daedal."):
        forget()  # forget the sources of an earlier execution of the module
    compiled = find(unit) or _compile(unit)
    if execution is not None and execution.is_outdated():
        raise SourceMismatch(f"{source_of(unit)} was changed after it was imported")
    for name in compiled.mentioned:
        if name.startswith("daedal."):
            llvm.add_symbol(name, _engine(name.rpartition(".")[0]).get_function_address(name))
        elif name.startswith("daedal_"):
            from daedal.kernels.externals import address_of_routine

            llvm.add_symbol(name, address_of_routine(name.removeprefix("daedal_")))
    initialise()
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine_for(compiled.level))
    # LLVM now searches the whole process for symbols
    absent = [name for name in compiled.mentioned if llvm.address_of_symbol(name) is None]
    if absent:
        raise ImportError(f"{unit} needs {', '.join(absent)}, which this process does not provide")
    engine.add_object_file(llvm.ObjectFileRef.from_data(compiled.code))
    engine.finalize_object()
    return engine


def find(unit: str) -> Compiled | None:
    """The unit from the package or the user's cache, or None."""
    for level in levels_of_unit(unit) if SHIPPED.is_dir() else ():
        path = shipped_path(SHIPPED, unit, level)
        found = _understood(store.read(path), unit, level, path)
        if found is not None:
            return found
    return kept(unit, levels_of_unit(unit)[0])


def kept(unit: str, level: str) -> Compiled | None:
    """The unit from the user's cache, or None."""
    name = key(unit, level)
    found = _understood(store.load(name), unit, level, name)
    return found if found is None or found.key == name else None


def _understood(content: bytes | None, unit: str, level: str, place: Path | str) -> Compiled | None:
    """The object code in a file's content, or None if it is invalid."""
    if content is None:
        return None
    try:
        found = Compiled.unpacked(content)
        if found.is_for(unit, level):
            return found
    except (TypeError, ValueError):
        pass
    store.say_once(f"{place} is not the object code of {unit} for {level}; it is compiled again")
    return None


def shipped_path(folder: Path, unit: str, level: str) -> Path:
    """The file of a unit in a folder of a package."""
    return folder / f"{unit}.{level}.o"


def key(unit: str, level: str) -> str:
    """The name of a unit in the user's cache; raises an error if its sources differ from the imported modules."""
    made_from = [FORMAT, llvmlite.__version__, unit, level, triple(), source_stamp(source_of(unit))]
    if edited:
        names = ", ".join(sorted(str(path.relative_to(_PACKAGE.parent)) for path in edited))
        raise SourceMismatch(f"{names} changed after Daedal was imported. Remedy: restart Python")
    digest = hashlib.sha256("\n".join(made_from).encode())
    return f"kernel-{digest.hexdigest()}"


def source_of(unit: str) -> Path:
    """The file of a unit: the one from which it was imported or would be imported."""
    if unit.startswith("daedal."):
        return _PACKAGE.parent / Path(*unit.split(".")).with_suffix(".py")
    file = getattr(sys.modules.get(unit), "__file__", None)
    path = Path(file).resolve() if file else located(unit)
    if unit == "__main__" or path is None or path.suffix != ".py" or not path.is_file():
        raise SourceMismatch(f"{unit} is not a module with its own file")
    return path


@cache
def all_units() -> tuple[str, ...]:
    """The names of all units of the package."""
    files = (file for file in sorted(_PACKAGE.rglob("*.py")) if "\n@entry(" in file.read_text(encoding="utf-8"))
    return tuple(".".join(("daedal", *file.relative_to(_PACKAGE).with_suffix("").parts)) for file in files)


def _compile(unit: str) -> Compiled:
    from daedal.kernels.building import build

    return build([unit])[unit]
