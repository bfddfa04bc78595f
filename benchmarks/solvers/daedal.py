"""Daedal itself, with the residual in plain Python or compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.solvers.base import Level, Outcome, SolveFailure, Solver


class Daedal(Solver):
    name = "daedal"
    label = "Daedal DASSL"
    package = "daedal"
    callbacks = "python"

    @classmethod
    def handles(cls, case: Any) -> bool:
        return case.interpreted or cls.callbacks == "compiled"

    @classmethod
    def levels(cls, case: Any, rtols: tuple[float, ...]) -> list[Level]:
        """Looser and tighter tolerances than the others', so that their errors fall on Daedal's line."""
        tighter = (rtols[-1] / 10.0, rtols[-1] / 100.0) if case.linear == "dense" else (rtols[-1] / 10.0,)
        return super().levels(case, (10.0 * rtols[0], *rtols, *tighter))

    def prepare(self, level: Level) -> Callable[[], Any]:
        import daedal

        case = self.case
        problem = daedal.ImplicitDAE(
            case.residual, case.n, params=case.params, algebraic=list(case.algebraic) or None, sparsity=case.sparsity
        )
        if self.callbacks == "compiled":
            problem = problem.compiled()
        options: dict[str, Any] = {
            "rtol": level.rtol,
            "atol": level.atol,
            "max_steps": 10**7,
            "linear_solver": case.linear,
        }
        options |= {"t_eval": [case.t_span[1]], "dense_output": False}
        if case.masked:
            options["error_test"] = "differential"
        if case.preconditioner is not None:
            options["preconditioner"] = case.preconditioner.daedal()
        return lambda: daedal.solve(problem, case.t_span, (case.y0, case.yp0), method="dassl", **options)

    def outcome(self, raw: Any) -> Outcome:
        if not raw.success:
            raise SolveFailure(raw.message)
        return Outcome(np.array(raw.y[:, -1]), int(raw.stats.residual_evaluations), int(raw.stats.steps))


class DaedalCompiled(Daedal):
    name = "daedal-compiled"
    label = "Daedal DASSL"
    callbacks = "compiled"
