"""LAPACK for compiled kernels, through the function pointers that SciPy exports.

The addresses are registered under symbol names when this module is imported; kernels refer to the names only, so that
their machine code can be cached.
"""

import ctypes

import llvmlite.binding as llvm
from numba import types
from scipy.linalg import cython_lapack


def _address(routine: str) -> int:
    capsule = cython_lapack.__pyx_capi__[routine]
    get_name = ctypes.pythonapi.PyCapsule_GetName
    get_name.restype, get_name.argtypes = ctypes.c_char_p, [ctypes.py_object]
    get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
    get_pointer.restype, get_pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return get_pointer(capsule, get_name(capsule))


def _external(routine: str, n_arguments: int) -> types.ExternalFunction:
    symbol = f"daedal_{routine}"
    llvm.add_symbol(symbol, _address(routine))
    return types.ExternalFunction(symbol, types.void(*[types.intp] * n_arguments))


dgetrf = _external("dgetrf", 6)  # m, n, a, lda, ipiv, info
dgetrs = _external("dgetrs", 9)  # trans, n, nrhs, a, lda, ipiv, b, ldb, info
dgbtrf = _external("dgbtrf", 8)  # m, n, kl, ku, ab, ldab, ipiv, info
dgbtrs = _external("dgbtrs", 11)  # trans, n, kl, ku, nrhs, ab, ldab, ipiv, b, ldb, info
