"""SUNDIALS IDA through scikit-sundae, with a Python residual or one compiled by Numba."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.cases import Array, Case
from benchmarks.solvers.base import Level, Outcome, ResidualSolver, SolveFailure


class Sundae(ResidualSolver):
    name = "sksundae"
    label = "scikit-sundae IDA"
    package = "sksundae"
    module = "sksundae.ida"
    callbacks = "python"

    def prepare(self, level: Level) -> Callable[[], Any]:
        from sksundae.ida import IDA

        case, (t0, t1), fill = self.case, self.case.t_span, self.fill
        options: dict[str, Any] = {
            "rtol": level.rtol,
            "atol": level.atol,
            "max_num_steps": 10**7,
            "algebraic_idx": list(case.algebraic) or None,
        }
        options["linsolver"] = case.linear
        if case.linear == "sparse":
            options["sparsity"] = case.sparsity
        elif case.linear == "gmres":
            options["precond"] = self.preconditioner()

        def call() -> Any:
            solver = IDA(fill, **options)
            solver.init_step(t0, case.y0, case.yp0)
            return solver.step(t1)

        return call

    @classmethod
    def handles(cls, case: Case) -> bool:
        return case.interpreted or cls.callbacks == "compiled"

    def preconditioner(self) -> Any:
        from sksundae.ida import IDAPrecond

        preconditioner = self.case.preconditioner
        factors: list[Any] = [None]

        def setup(t: float, y: Array, yp: Array, residual: Array, cj: float) -> None:
            factors[0] = preconditioner.setup(t, y, yp, cj)

        def solve(
            t: float, y: Array, yp: Array, residual: Array, right: Array, out: Array, cj: float, delta: float
        ) -> None:
            out[:] = preconditioner.solve(factors[0], right)

        return IDAPrecond(setup, solve)

    def outcome(self, raw: Any) -> Outcome:
        if not raw.success:
            raise SolveFailure(str(raw.message))
        return Outcome(np.ravel(raw.y[-1] if np.ndim(raw.y) > 1 else raw.y), raw.nfev)


class SundaeNumba(Sundae):
    name = "sksundae-numba"
    label = "scikit-sundae IDA, Numba residual"
    callbacks = "compiled"
    requires = ("numba",)
