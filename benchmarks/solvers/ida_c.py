"""IDA called straight from its C library with a compiled residual: what IDA itself costs, without any binding.

No package offers this to a Python user; it is the floor for every IDA binding. The library is the one scikit-sundae
ships in its wheel, the residual is compiled by Numba to a C function, and Python only sets up and starts the run.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from ctypes import byref, c_double, c_int, c_int64, c_long, c_void_p
from functools import cache
from importlib.metadata import files
from typing import Any

import numpy as np

from benchmarks.cases import Case
from benchmarks.solvers.base import Level, Outcome, SolveFailure, Solver


@cache
def library(part: str) -> ctypes.CDLL:
    """One of the SUNDIALS libraries in scikit-sundae's wheel, for example ``ida``."""
    import sksundae.ida  # noqa: F401 - loads the libraries with their dependencies

    found = [f for f in files("scikit-sundae") or () if f.name.startswith(f"libsundials_{part}-")]
    if not found:
        raise ImportError(f"this build of scikit-sundae does not contain libsundials_{part}")
    return ctypes.CDLL(str(found[0].locate()))


def call(part: str, name: str, *arguments: Any, returns: Any = c_int) -> Any:
    """A SUNDIALS function by name; integers are passed as pointers or 64-bit indices."""
    function = library(part)[name]
    function.restype = returns
    return function(*arguments)


def c_residual(case: Case) -> Any:
    """The residual as a C function with IDA's signature."""
    import numba
    from numba import carray, float64, int32, types

    data = library("core").N_VGetArrayPointer
    data.argtypes, data.restype = [c_void_p], ctypes.POINTER(c_double)
    plain = case.compiled_residual or case.residual
    function, n, size = plain if hasattr(plain, "py_func") else numba.njit(plain), case.n, len(case.params)

    @numba.cfunc(int32(float64, types.voidptr, types.voidptr, types.voidptr, types.CPointer(float64)))
    def residual(t: float, y: Any, yp: Any, out: Any, p: Any) -> int:
        values = function(t, carray(data(y), n), carray(data(yp), n), carray(p, size))
        result = carray(data(out), n)
        for i in range(n):
            result[i] = values[i]
        return 0

    return residual


class IdaC(Solver):
    name = "ida-c"
    label = "IDA in C, compiled residual (floor)"
    package = "sksundae"
    requires = ("numba",)
    callbacks = "compiled"

    def __init__(self, case: Case, counting: bool = False) -> None:
        super().__init__(case)
        self.residual = c_residual(self.case)

    @classmethod
    def handles(cls, case: Case) -> bool:
        return case.linear == "dense"

    def prepare(self, level: Level) -> Callable[[], Any]:
        case, (t0, t1) = self.case, self.case.t_span
        n, address = c_int64(case.n), c_void_p(self.residual.address)
        params = np.ascontiguousarray(case.params, float)
        differential = np.ones(case.n)
        differential[list(case.algebraic)] = 0.0

        def vector(values: np.ndarray, context: c_void_p) -> c_void_p:
            return c_void_p(
                call("nvecserial", "N_VMake_Serial", n, c_void_p(values.ctypes.data), context, returns=c_void_p)
            )

        def solve() -> Any:
            context = c_void_p()
            call("core", "SUNContext_Create", c_int(0), byref(context))
            call("core", "SUNContext_ClearErrHandlers", context)
            values, slopes = case.y0.copy(), case.yp0.copy()
            y, yp, mask = (vector(v, context) for v in (values, slopes, differential))
            memory = c_void_p(call("ida", "IDACreate", context, returns=c_void_p))
            call("ida", "IDAInit", memory, address, c_double(t0), y, yp)
            call("ida", "IDASetUserData", memory, c_void_p(params.ctypes.data))
            call("ida", "IDASStolerances", memory, c_double(level.rtol), c_double(level.atol))
            call("ida", "IDASetMaxNumSteps", memory, c_long(10**7))
            matrix = c_void_p(call("sunmatrixdense", "SUNDenseMatrix", n, n, context, returns=c_void_p))
            linear = c_void_p(call("sunlinsoldense", "SUNLinSol_Dense", y, matrix, context, returns=c_void_p))
            call("ida", "IDASetLinearSolver", memory, linear, matrix)
            if case.masked:
                call("ida", "IDASetId", memory, mask)
                call("ida", "IDASetSuppressAlg", memory, c_int(1))
            t = c_double(t0)
            flag = call("ida", "IDASolve", memory, c_double(t1), byref(t), y, yp, c_int(1))
            counts = [c_long() for _ in range(3)]
            for name, count in zip(("ResEvals", "LinResEvals", "Steps"), counts, strict=True):
                call("ida", f"IDAGetNum{name}", memory, byref(count))
            call("ida", "IDAFree", byref(memory))
            call("core", "SUNLinSolFree", linear)
            call("core", "SUNMatDestroy", matrix)
            for v in (y, yp, mask):
                call("core", "N_VDestroy", v)
            call("core", "SUNContext_Free", byref(context))
            return flag, t.value, values, [count.value for count in counts]

        return solve

    def outcome(self, raw: Any) -> Outcome:
        flag, t, y, counts = raw
        if flag < 0:
            raise SolveFailure(f"IDASolve returned {flag} at t = {t:g}")
        return Outcome(y, counts[0] + counts[1], counts[2])
