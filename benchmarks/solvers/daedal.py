"""Daedal itself, with residuals as they are written or compiled by Numba."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.solvers.base import Level, Outcome, SolveFailure, Solver


class Daedal(Solver):
    """Given the plain residual, which it traces; that of the large problems is compiled already.

    The method is Daedal's choice where matrices are dense, and DASSL with the linear solver of the case elsewhere.
    """

    name = "daedal"
    label = "Daedal"
    package = "daedal"
    callbacks = "python"

    @classmethod
    def handles(cls, case: Any) -> bool:
        return True

    @classmethod
    def levels(cls, case: Any, rtols: tuple[float, ...]) -> list[Level]:
        """Looser and tighter tolerances than the others', so that their errors fall on Daedal's line."""
        tighter = (rtols[-1] / 10.0, rtols[-1] / 100.0) if case.linear == "dense" else (rtols[-1] / 10.0,)
        return super().levels(case, (10.0 * rtols[0], *rtols, *tighter))

    def prepare(self, level: Level) -> Callable[[], Any]:
        import daedal

        problem, initial, options = self.stated()
        options |= {"rtol": level.rtol, "atol": level.atol, "max_steps": 10**7}
        options |= {"t_eval": [self.case.t_span[1]], "dense_output": False}
        if self.callbacks == "compiled":
            problem = problem.compiled("numba")
            options["compile"] = "never"
        return lambda: daedal.solve(problem, self.case.t_span, initial, **options)

    def stated(self) -> tuple[Any, Any, dict[str, Any]]:
        """The problem in plain functions, its initial values and the options that are its own."""
        import daedal

        case = self.case
        problem = daedal.ImplicitDAE(
            case.residual, case.n, params=case.params, algebraic=list(case.algebraic) or None, sparsity=case.sparsity
        )
        return problem, (case.y0, case.yp0), self.method_options()

    def method_options(self) -> dict[str, Any]:
        """The method and its options."""
        return {} if self.case.linear == "dense" else self.dassl_options()

    def dassl_options(self) -> dict[str, Any]:
        """DASSL as the case asks for it."""
        options: dict[str, Any] = {"method": "dassl", "linear_solver": self.case.linear}
        if self.case.masked:
            options["error_test"] = "differential"
        if self.case.preconditioner is not None:
            options["preconditioner"] = self.case.preconditioner.daedal()
        return options

    def outcome(self, raw: Any) -> Outcome:
        if not raw.success:
            raise SolveFailure(raw.message)
        return Outcome(np.array(raw.y[:, -1]), int(raw.stats.residual_evaluations), int(raw.stats.steps))


class DaedalDASSL(Daedal):
    name = "daedal-dassl"
    label = "Daedal DASSL"

    @classmethod
    def handles(cls, case: Any) -> bool:
        return case.linear == "dense"

    def method_options(self) -> dict[str, Any]:
        return self.dassl_options()


class DaedalNumba(DaedalDASSL):
    name = "daedal-numba"
    label = "Daedal DASSL, Numba residual"
    callbacks = "compiled"

    @classmethod
    def handles(cls, case: Any) -> bool:
        return case.interpreted
