"""DDASPK through scikits-odes-daepack."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.solvers.base import Level, Outcome, ResidualSolver, SolveFailure

# DDASPK stops after every 500 steps with this code and goes on when it is called again with INFO(1) = 1.
MANY_STEPS = -1


class Ddaspk(ResidualSolver):
    name = "ddaspk"
    label = "scikits-odes DDASPK"
    package = "scikits_odes_daepack"
    module = "scikits_odes_daepack.ddaspkint"
    callbacks = "python"

    def prepare(self, level: Level) -> Callable[[], Any]:
        from scikits_odes_daepack.ddaspkint import ddaspk

        case, (t0, t1) = self.case, self.case.t_span
        options: dict[str, Any] = {"rtol": level.rtol, "atol": level.atol}
        if case.masked:
            options |= {"algebraic_vars_idx": list(case.algebraic), "exclude_algvar_from_error": True}
        fill = self.fill

        def call() -> Any:
            solver = ddaspk(fill, **options)
            solver.init_step(t0, case.y0, case.yp0)
            y = np.empty(case.n)
            flag, t = solver.step(t1, y)
            while flag == MANY_STEPS:
                solver.info[0] = 1
                flag, t = solver.step(t1, y)
            return flag, t, y, solver.messages.get(flag, "")

        return call

    def outcome(self, raw: Any) -> Outcome:
        flag, t, y, message = raw
        if flag < 0:
            raise SolveFailure(f"{message} (t = {t:g})")
        return Outcome(y)
