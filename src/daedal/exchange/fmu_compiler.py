"""C compilers for the binary of an FMU."""

from __future__ import annotations

import importlib.util
import platform
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from daedal.errors import DaedalError, InvalidProblemError

NAMES = ("cc", "gcc", "clang")
"""Programs to search for, in this order; the module ziglang is tried last."""
FLAGS = ("-O2", "-shared", "-fPIC", "-fvisibility=hidden", "-ffp-contract=off", "-std=c99")


@dataclass(frozen=True)
class Compiler:
    """A C compiler: its name, and the command that calls it."""

    name: str
    command: tuple[str, ...]

    def __str__(self) -> str:
        return " ".join(self.command)


def found_compiler(wanted: str | None) -> Compiler | None:
    """The compiler with the given name or path, or the first one found; None if there is none."""
    if wanted is not None:
        if wanted == "ziglang":
            if importlib.util.find_spec("ziglang") is None:
                raise InvalidProblemError("compiler='ziglang' is not installed: pip install ziglang")
            return _zig()
        path = shutil.which(wanted)
        if path is None:
            raise InvalidProblemError(f"compiler={wanted!r} is not found; name a program on the path, or 'ziglang'")
        return Compiler(wanted, (path,))
    for name in NAMES:
        path = shutil.which(name)
        if path is not None:
            return Compiler(name, (path,))
    return _zig() if importlib.util.find_spec("ziglang") is not None else None


def _zig() -> Compiler:
    return Compiler("ziglang", (sys.executable, "-m", "ziglang", "cc"))


def folder_of_platform(version: str) -> tuple[str, str]:
    """The folder of binaries for this platform, and the file extension of libraries."""
    system, machine = platform.system(), platform.machine().lower()
    bits = "64" if sys.maxsize > 2**32 else "32"
    name, ending = {"Windows": ("win", ".dll"), "Darwin": ("darwin", ".dylib")}.get(system, ("linux", ".so"))
    if version == "2.0":
        return f"{name}{bits}", ending
    architecture = {"arm64": "aarch64", "aarch64": "aarch64"}.get(machine, "x86_64" if bits == "64" else "x86")
    return f"{architecture}-{'windows' if name == 'win' else name}", ending


def compiled(compiler: Compiler, source: str, identifier: str, ending: str) -> bytes:
    """Compile a source to a shared library."""
    with tempfile.TemporaryDirectory() as folder:
        path, library = Path(folder) / f"{identifier}.c", Path(folder) / f"{identifier}{ending}"
        path.write_text(source, encoding="utf-8")
        command = [*compiler.command, *FLAGS, str(path), "-o", str(library), "-lm"]
        done = subprocess.run(command, capture_output=True, text=True, cwd=folder, check=False)
        if done.returncode != 0 or not library.exists():
            raise DaedalError(
                f"export_fmu: the compiler {compiler} cannot compile the sources of the FMU:\n{done.stderr[-2000:]}"
            )
        return library.read_bytes()
