"""Object code of kernels: found in the package, in the user's cache, or compiled; then loaded into the process.

A *unit* is a module with entries. Its object code is named by what it is made from: the sources that it can reach, the
level of the processor, and the version of this format. It is looked for

1. in the folder ``objects`` of the package, where a wheel has all units; these belong to the sources beside them;
2. in the user's cache (:mod:`daedal.object_store`), which other checkouts and processes share;
3. otherwise it is compiled in a process of its own, by :mod:`daedal.kernels.building`, and kept in the cache.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import threading
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import llvmlite
import llvmlite.binding as llvm

from daedal import object_store as store
from daedal.kernels.levels import initialise, levels_of_unit, machine_for, triple
from daedal.kernels.sources import source_stamp

FORMAT = "daedal kernels 1"
RAISED = "daedal_kernel_raised"
"""What an entry would call where it raised an exception; object code that mentions it is refused."""
SHIPPED = Path(__file__).resolve().parent / "objects"
_PACKAGE = Path(__file__).resolve().parent.parent
_LOCK = threading.RLock()  # LLVM's engines are not made for threads
_loaded: dict[str, Any] = {}


def _after_fork():
    """A lock that another thread held when the process was forked is never released."""
    global _LOCK
    _LOCK = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


class Compiled(NamedTuple):
    """A unit at one level, with what has to be known to load it."""

    unit: str
    level: str
    triple: str
    entries: list[str]
    mentioned: list[str]  # symbols of others
    versions: dict[str, str]
    seconds: list[float]  # of translation by Numba, of optimisation and code generation
    code: bytes

    def packed(self) -> bytes:
        """As a file: one line that describes the code, then the code."""
        described = {name: value for name, value in self._asdict().items() if name != "code"}
        return json.dumps(described).encode() + b"\n" + self.code

    @classmethod
    def unpacked(cls, content: bytes) -> Compiled:
        """What was packed."""
        head, _, code = content.partition(b"\n")
        return cls(**json.loads(head), code=code)


def address_of(entry: Any) -> int:
    """The address of the C function of an :class:`~daedal.kernels.compilation.Entry`."""
    with _LOCK:
        address = _engine(entry.unit).get_function_address(entry.symbol)
    if not address:
        raise ImportError(f"the machine code of {entry.unit} has no {entry.__name__}")
    return address


def _engine(unit: str) -> Any:
    if unit not in _loaded:
        compiled = find(unit) or _compile(unit)
        for name in compiled.mentioned:
            if name.startswith("daedal."):
                llvm.add_symbol(name, _engine(name.rpartition(".")[0]).get_function_address(name))
            elif name.startswith("daedal_"):
                from daedal.kernels.externals import address_of_routine

                llvm.add_symbol(name, address_of_routine(name.removeprefix("daedal_")))
        initialise()
        engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine_for(compiled.level))
        # only now does LLVM look for symbols in the whole process
        absent = [name for name in compiled.mentioned if llvm.address_of_symbol(name) is None]
        if absent:
            raise ImportError(f"{unit} needs {', '.join(absent)}, which this process does not have")
        engine.add_object_file(llvm.ObjectFileRef.from_data(compiled.code))
        engine.finalize_object()
        _loaded[unit] = engine
    return _loaded[unit]


def find(unit: str) -> Compiled | None:
    """The unit as the package or the user's cache has it, or None."""
    for level in levels_of_unit(unit) if SHIPPED.is_dir() else ():
        content = store.read(shipped_path(SHIPPED, unit, level))
        if content is not None:
            return Compiled.unpacked(content)
    content = store.load(key(unit, levels_of_unit(unit)[0]))
    found = None if content is None else Compiled.unpacked(content)
    return found if found is None or found.unit == unit else None


def shipped_path(folder: Path, unit: str, level: str) -> Path:
    """The file of a unit in a folder of a package."""
    return folder / f"{unit}.{level}.o"


@cache
def key(unit: str, level: str) -> str:
    """The name of a unit in the user's cache."""
    made_from = [FORMAT, llvmlite.__version__, unit, level, triple(), source_stamp(source_of(unit))]
    digest = hashlib.sha256("\n".join(made_from).encode())
    return f"kernel-{digest.hexdigest()}"


def source_of(unit: str) -> Path:
    """The file that holds a unit."""
    if unit.startswith("daedal."):
        return _PACKAGE.parent / Path(*unit.split(".")).with_suffix(".py")
    found = importlib.util.find_spec(unit)
    if found is None or found.origin is None:
        raise ModuleNotFoundError(f"there is no unit {unit!r}")
    return Path(found.origin).resolve()


@cache
def all_units() -> tuple[str, ...]:
    """The names of all units of the package."""
    files = (file for file in sorted(_PACKAGE.rglob("*.py")) if "\n@entry(" in file.read_text(encoding="utf-8"))
    return tuple(".".join(("daedal", *file.relative_to(_PACKAGE).with_suffix("").parts)) for file in files)


def _compile(unit: str) -> Compiled:
    from daedal.kernels.building import build

    return build([unit])[unit]
