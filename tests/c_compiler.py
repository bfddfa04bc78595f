"""Integrators in C compiled for this machine, where it has a compiler."""

from __future__ import annotations

import ctypes
import hashlib
import shutil
import subprocess
from contextlib import nullcontext
from pathlib import Path

import numpy as np

COMPILER = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")


def library(source: str, folder: Path) -> ctypes.CDLL:
    """The library made of a source, without contraction of products and sums."""
    path = folder / f"{hashlib.sha256(source.encode()).hexdigest()[:16]}.so"
    if not path.exists():
        path.with_suffix(".c").write_text(source, encoding="utf-8")
        options = ["-std=c99", "-O1", "-ffp-contract=off", "-fPIC", "-shared", "-w"]
        subprocess.run([COMPILER, *options, path.with_suffix(".c"), "-o", path, "-lm"], check=True)
    return ctypes.CDLL(str(path))


def kernel(source: str, folder: Path):
    """The integrator of a source, called with NumPy's arrays and numbers."""
    run = library(source, folder).run
    run.restype = None

    def call(*arguments):
        run(*[_as_c(value) for value in arguments])

    return call


def _as_c(value):
    if value is None:
        return ctypes.c_void_p()
    if isinstance(value, np.ndarray):
        return ctypes.c_void_p(value.ctypes.data)
    return ctypes.c_double(value) if isinstance(value, np.floating) else ctypes.c_int(int(value))


class HostEngine:
    """Stands for a GPU: the same kernels, compiled for this machine."""

    xp, name = np, "C"

    def __init__(self, folder: Path):
        self._folder = folder

    def device(self):
        return nullcontext()

    def kernel(self, source: str):
        return kernel(source, self._folder)

    def free_memory(self) -> int:
        return 1 << 30

    def fetched(self, array):
        return np.array(array)
