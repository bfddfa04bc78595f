"""SUNDIALS IDAS through sundials4py, with a Python residual or one compiled by Numba."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.cases import Case
from benchmarks.solvers.base import Level, Outcome, ResidualSolver, SolveFailure


class Sundials(ResidualSolver):
    name = "sundials4py"
    label = "sundials4py IDAS"
    package = "sundials4py"
    module = "sundials4py.idas"
    callbacks = "python"

    @classmethod
    def handles(cls, case: Case) -> bool:
        return case.linear != "sparse" and (
            case.interpreted or cls.callbacks == "compiled"
        )  # no sparse LU in this package

    def prepare(self, level: Level) -> Callable[[], Any]:
        from sundials4py import core, idas

        case, (t0, t1) = self.case, self.case.t_span
        fill, array = self.fill, core.N_VGetArrayPointer

        def residual(t: float, y: Any, yp: Any, out: Any, _: Any) -> int:
            fill(t, array(y), array(yp), array(out))
            return 0

        preconditioner = case.preconditioner
        factors: list[Any] = [None]

        def setup(t: float, y: Any, yp: Any, out: Any, cj: float, _: Any) -> int:
            factors[0] = preconditioner.setup(t, array(y), array(yp), cj)
            return 0

        def precondition(
            t: float, y: Any, yp: Any, res: Any, right: Any, out: Any, cj: float, delta: float, _: Any
        ) -> int:
            array(out)[:] = preconditioner.solve(factors[0], array(right))
            return 0

        differential = np.ones(case.n)
        differential[list(case.algebraic)] = 0.0

        def call() -> Any:
            _, context = core.SUNContext_Create(0)
            core.SUNContext_ClearErrHandlers(context)
            y, yp = core.N_VNew_Serial(case.n, context), core.N_VNew_Serial(case.n, context)
            array(y)[:], array(yp)[:] = case.y0, case.yp0
            solver = idas.IDACreate(context)
            memory = solver.get()
            idas.IDAInit(memory, residual, t0, y, yp)
            idas.IDASStolerances(memory, level.rtol, level.atol)
            idas.IDASetMaxNumSteps(memory, 10**7)
            if case.linear == "gmres":
                linear, matrix = core.SUNLinSol_SPGMR(y, core.SUN_PREC_LEFT, 0, context), None
            else:
                matrix = core.SUNDenseMatrix(case.n, case.n, context)
                linear = core.SUNLinSol_Dense(y, matrix, context)
            idas.IDASetLinearSolver(memory, linear, matrix)
            if case.linear == "gmres":
                idas.IDASetPreconditioner(memory, setup, precondition)
            if case.masked:
                mask = core.N_VNew_Serial(case.n, context)
                array(mask)[:] = differential
                idas.IDASetId(memory, mask)
                idas.IDASetSuppressAlg(memory, 1)
            flag, t = idas.IDASolve(memory, t1, y, yp, idas.IDA_NORMAL)
            counts = [f(memory)[1] for f in (idas.IDAGetNumResEvals, idas.IDAGetNumLinResEvals, idas.IDAGetNumSteps)]
            return flag, t, array(y).copy(), counts

        return call

    def outcome(self, raw: Any) -> Outcome:
        flag, t, y, counts = raw
        if flag < 0:
            raise SolveFailure(f"IDASolve returned {flag} at t = {t:g}")
        return Outcome(y, counts[0] + counts[1], counts[2])


class SundialsNumba(Sundials):
    name = "sundials4py-numba"
    label = "sundials4py IDAS, Numba residual"
    callbacks = "compiled"
    requires = ("numba",)
