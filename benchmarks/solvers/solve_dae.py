"""Radau IIA and BDF of solve_dae, written in Python."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks.cases import Case
from benchmarks.solvers.base import Level, Outcome, ResidualSolver, SolveFailure


class SolveDaeBDF(ResidualSolver):
    name = "solve_dae-bdf"
    label = "solve-dae BDF"
    package = "solve_dae"
    module = "solve_dae.integrate"
    callbacks = "python"
    method = "BDF"

    def prepare(self, level: Level) -> Callable[[], Any]:
        from solve_dae.integrate import solve_dae

        case, function = self.case, self.function
        options = {"rtol": level.rtol, "atol": level.atol, "t_eval": [case.t_span[1]], "jac_sparsity": self.sparsity()}
        return lambda: solve_dae(function, case.t_span, case.y0, case.yp0, method=self.method, **options)

    def sparsity(self) -> Any:
        """The structure in the form it is asked for: one matrix for dF/dy and one for dF/dy'."""
        return None if self.case.sparsity is None else (self.case.sparsity, self.case.sparsity)

    def outcome(self, raw: Any) -> Outcome:
        if not raw.success:
            raise SolveFailure(str(raw.message))
        return Outcome(raw.y[:, -1], raw.nfev)


class SolveDaeRadau(SolveDaeBDF):
    name = "solve_dae-radau"
    label = "solve-dae Radau"
    family = "Radau"
    method = "Radau"


class SolveDaeBDFSparse(SolveDaeBDF):
    name = "solve_dae-bdf-sparse"
    label = "solve-dae BDF, Numba residual"
    callbacks = "compiled"

    @classmethod
    def handles(cls, case: Case) -> bool:
        return case.linear == "sparse"
