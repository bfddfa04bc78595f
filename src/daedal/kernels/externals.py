"""External functions called by compiled kernels through their symbols: LAPACK, which SciPy exports, and C.

The addresses of the symbols are resolved when object code is loaded.
"""

import ctypes
import importlib.util
import sys
from functools import cache
from importlib.machinery import ExtensionFileLoader, PathFinder
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import numpy as np

from daedal.kernels.compilation import MODE, caller, part
from daedal.kernels.signatures import i64, void


def address_of_routine(routine: str) -> int:
    """The address of a LAPACK routine in this process."""
    capsule = _cython_lapack().__pyx_capi__[routine]
    get_name = ctypes.pythonapi.PyCapsule_GetName
    get_name.restype, get_name.argtypes = ctypes.c_char_p, [ctypes.py_object]
    get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
    get_pointer.restype, get_pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return get_pointer(capsule, get_name(capsule))


@cache
def _cython_lapack() -> ModuleType:
    """SciPy's table of LAPACK, without the rest of ``scipy.linalg``, whose import takes a tenth of a second."""
    name = "scipy.linalg.cython_lapack"
    if name not in sys.modules:
        folder = Path(importlib.import_module("scipy").__file__ or "").parent / "linalg"
        found = PathFinder.find_spec("cython_lapack", [str(folder)])
        if found is not None and found.origin is not None:
            loader = ExtensionFileLoader(name, found.origin)
            spec = importlib.util.spec_from_file_location(name, found.origin, loader=loader)
            assert spec is not None
            sys.modules[name] = module = importlib.util.module_from_spec(spec)
            try:
                loader.exec_module(module)
            except ImportError:
                del sys.modules[name]
    return importlib.import_module(name)


def _routine(name: str, n_arguments: int):
    """A function for kernels that calls a routine with this many addresses."""
    if MODE == "build":
        from numba import types

        return types.ExternalFunction(f"daedal_{name}", types.void(*[types.intp] * n_arguments))
    call = caller(void(*[i64] * n_arguments))
    return lambda *arguments: call(address_of_routine(name), *arguments)


dgetrf = _routine("dgetrf", 6)  # m, n, a, lda, ipiv, info
dgetrs = _routine("dgetrs", 9)  # trans, n, nrhs, a, lda, ipiv, b, ldb, info
dgbtrf = _routine("dgbtrf", 8)  # m, n, kl, ku, ab, ldab, ipiv, info
dgbtrs = _routine("dgbtrs", 11)  # trans, n, kl, ku, nrhs, ab, ldab, ipiv, b, ldb, info
zgetrf = _routine("zgetrf", 6)  # complex counterpart of dgetrf
zgetrs = _routine("zgetrs", 9)
zgbtrf = _routine("zgbtrf", 8)
zgbtrs = _routine("zgbtrs", 11)

if not TYPE_CHECKING and MODE == "build":
    from numba import types

    next_after = types.ExternalFunction("nextafter", types.float64(types.float64, types.float64))
else:
    next_after = np.nextafter


@part
def spacing(x):
    """The distance from x >= 0 to the next larger number."""
    return next_after(x, np.inf) - x
