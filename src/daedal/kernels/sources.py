"""The sources of a unit: the file that holds it and all files of the package that it imports when it is loaded."""

import ast
import hashlib
import re
import sysconfig
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent.parent
_COMPILER = [
    _PACKAGE / "kernels" / f"{name}.py" for name in ("compiler", "compiler_memory", "compiler_lanes", "levels")
]
# An import at the head of a file, whose names kernels see, not one in a function.
_IMPORT = re.compile(r"^(?:from|import) [^\n(]*(?:\([^)]*\))?", re.MULTILINE)


@cache
def source_stamp(path: Path, package: Path = _PACKAGE) -> str:
    """A digest of a file with kernels, of all files of the package that it imports, directly or not, and of how these
    are compiled."""
    digest = hashlib.sha256()
    for source in [*sources(path, package), *_COMPILER]:
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
    if first != package.name:
        return _foreign(name)
    if not rest:
        return None
    place = package.joinpath(*rest)
    files = (place.with_suffix(".py"), place / "__init__.py")
    return next((file for file in files if file.is_file()), None)


@cache
def _foreign(name: str) -> Path | None:
    """The file of a module that is neither Python's own nor installed: a user's, whose parts kernels may contain."""
    try:
        found = find_spec(name)
    except (ImportError, ValueError, AttributeError):
        return None
    if found is None or found.origin is None or not found.origin.endswith(".py"):
        return None
    path = Path(found.origin).resolve()
    installed = {Path(place).resolve() for place in sysconfig.get_paths().values()}
    return None if any(place in path.parents for place in installed) or path.is_relative_to(_PACKAGE) else path
