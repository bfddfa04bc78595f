"""The solvers of pydiffsol on models in its language DiffSL, compiled by LLVM."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from benchmarks.cases import Case
from benchmarks.solvers.base import Level, Outcome, SolveFailure, Solver
from benchmarks.symbolic import STATEMENTS


class DiffsolBDF(Solver):
    name = "pydiffsol-bdf"
    label = "pydiffsol BDF"
    package = "pydiffsol"
    callbacks = "compiled"
    method: ClassVar[str] = "bdf"

    def __init__(self, case: Case, counting: bool = False) -> None:
        import pydiffsol

        super().__init__(case)
        self.statement = STATEMENTS[case.name]()
        self.ode = pydiffsol.Ode(self.statement.diffsl(), matrix_type=pydiffsol.nalgebra_dense)
        self.ode.ode_solver = getattr(pydiffsol, self.method)

    @classmethod
    def handles(cls, case: Case) -> bool:
        return case.name in STATEMENTS

    def prepare(self, level: Level) -> Callable[[], Any]:
        ode, none, end = self.ode, np.array([]), np.array([self.case.t_span[1]])

        def call() -> Any:
            ode.rtol, ode.atol = level.rtol, level.atol
            return ode.solve_dense(none, end)

        return call

    def outcome(self, raw: Any) -> Outcome:
        y = np.asarray(raw.ys)[:, -1]
        if not np.all(np.isfinite(y)):
            raise SolveFailure("returned values that are not finite")
        return Outcome(self.statement.restore(y))


class DiffsolEsdirk(DiffsolBDF):
    name = "pydiffsol-esdirk34"
    label = "pydiffsol ESDIRK34"
    family = "ESDIRK"
    method = "esdirk34"


class DiffsolTrBDF2(DiffsolBDF):
    name = "pydiffsol-tr_bdf2"
    label = "pydiffsol TR-BDF2"
    family = "SDIRK"
    method = "tr_bdf2"
