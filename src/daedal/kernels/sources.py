"""The sources of a unit: its file, and the files imported when it is loaded.

Imports are followed into the files of Daedal and of a user's own modules. An installed package is represented by the
list of its files with their digests, ``RECORD``, which changes when the package is upgraded.
"""

import ast
import hashlib
import os
import re
import sys
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent.parent
_COMPILER = [
    _PACKAGE / "kernels" / f"{name}.py" for name in ("compiler", "compiler_memory", "compiler_lanes", "levels")
]
# imports at the top of a file, whose names are visible to kernels, not imports in functions
_IMPORT = re.compile(r"^(?:from|import) [^\n(]*(?:\([^)]*\))?", re.MULTILINE)


@cache
def source_stamp(path: Path, package: Path = _PACKAGE) -> str:
    """A digest of a file with kernels, of all its direct and indirect imports, and of the compiler settings."""
    digest = hashlib.sha256()
    for source in [*sources(path, package), *_COMPILER]:
        digest.update(_read(source).encode())
    return digest.hexdigest()


def sources(path: Path, package: Path = _PACKAGE) -> list[Path]:
    """A file and all its direct and indirect imports when loaded."""
    found, waiting = [], [path]
    while waiting:
        found.append(waiting.pop())
        waiting += sorted(set(_imported(found[-1], package)) - {*found, *waiting})
    return found


def changed(path: Path, package: Path = _PACKAGE) -> bool:
    """Whether a source of the unit in a file has changed since this process first read it."""
    try:
        return any(file.read_text(encoding="utf-8") != _read(file) for file in [*sources(path, package), *_COMPILER])
    except (OSError, ValueError):
        return True


def forget():
    """Reread all files at the next use."""
    for function in (source_stamp, _read, _imported, _foreign, _record):
        function.cache_clear()


@cache
def _read(path: Path) -> str:
    text = path.read_text(encoding="utf-8")
    if _states.get(str(path)) not in (None, _state(path.stat())):
        edited.add(path)
    return text


_states: dict[str, tuple[int, int]] = {}  # times and sizes of the files of the package, once they are noted
edited = set[Path]()
"""Files that changed before they were read here: object code of them might not fit the imported modules."""


def note_states():
    """Note the times and sizes of all files of the package."""
    folders = [str(_PACKAGE)]
    while folders:
        with os.scandir(folders.pop()) as entries:
            for entry in entries:
                if entry.name.endswith(".py"):
                    _states[entry.path] = _state(entry.stat())
                elif entry.is_dir() and entry.name != "__pycache__":
                    folders.append(entry.path)


def _state(found: os.stat_result) -> tuple[int, int]:
    return found.st_mtime_ns, found.st_size


@cache
def _imported(path: Path, package: Path) -> tuple[Path, ...]:
    """The files imported by a file: modules, and the modules that define names imported from packages."""
    found = (place for statement in _IMPORT.findall(_read(path)) for place in _places(statement, path, package))
    return tuple(place for place in found if place is not None)


def _places(statement: str, path: Path, package: Path) -> Iterator[Path | None]:
    """The files of an import of modules, and of names that may be modules; none if the line is no import."""
    try:
        [node] = ast.parse(statement).body
    except (SyntaxError, ValueError):
        return
    if isinstance(node, ast.Import):
        yield from (_place(alias.name, path, package) for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        ends = ["", *(f".{alias.name}" for alias in node.names)]
        if not node.level:
            yield from (_place(f"{node.module}{end}", path, package) for end in ends)
        elif node.level <= len(path.parents):
            dotted = (f"{node.module or ''}{end}".split(".") for end in ends)
            yield from (_file(path.parents[node.level - 1].joinpath(*parts)) for parts in dotted)


def _place(name: str, path: Path, package: Path) -> Path | None:
    """The file of a module or package of this project; None for others, whose code kernels do not contain."""
    first, *rest = name.split(".")
    if first != package.name:
        return None if path.is_relative_to(package) else _foreign(name)
    return _file(package.joinpath(*rest)) if rest else None


def _file(place: Path) -> Path | None:
    """The file of the module or package at a path."""
    files = (place / "__init__.py", place.with_name(f"{place.name}.py"))
    return next((file for file in files if file.is_file()), None)


@cache
def _foreign(name: str) -> Path | None:
    """The source of an external module whose parts kernels may contain: its file, or the record of its package."""
    first = name.partition(".")[0]
    if first in sys.stdlib_module_names or first == _PACKAGE.name:
        return None
    path = located(name)
    if path is None or not {"site-packages", "dist-packages"} & set(path.parts):
        return path
    folder = next(place for place in path.parents if place.name in ("site-packages", "dist-packages"))
    return _record(first, folder)


@cache
def _record(name: str, folder: Path) -> Path | None:
    """The RECORD file of the distribution that installed a package or module in a folder, if any."""
    records = sorted(folder.glob("*.dist-info/RECORD"))
    same_name = [file for file in records if re.split("[-.]", file.parent.name)[0].lower() == name.lower()]
    holds = re.compile(rf"^{re.escape(name)}(?:/|\.py,)", re.MULTILINE)
    return next((file for file in (*same_name, *records) if holds.search(_read(file))), None)


def located(name: str) -> Path | None:
    """The source file of a module as found by a new process, or None; nothing is imported."""
    first, *rest = name.split(".")
    try:
        top = find_spec(first)
    except (ImportError, ValueError, AttributeError):
        return None
    if top is None:
        return None
    if top.submodule_search_locations is None:
        path = Path(top.origin) if top.origin and not rest else None
    else:
        folders = (Path(folder) for folder in top.submodule_search_locations)
        files = (_file(folder.joinpath(*rest)) for folder in folders)
        path = next((file for file in files if file is not None), None)
    return path.resolve() if path is not None and path.suffix == ".py" and path.is_file() else None
