"""Daedal on mechanisms, which it takes as they are: its own choice, and three formulations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from benchmarks.solvers.base import Level, Outcome, SolveFailure, Solver


class DaedalAuto(Solver):
    name = "daedal-auto"
    label = "Daedal auto"
    package = "daedal"
    callbacks = "python"
    family = "Runge-Kutta"
    form = "as it is"
    formulation: ClassVar[str] = "auto"
    method: ClassVar[str] = "auto"

    def __init__(self, case: Any, counting: bool = False) -> None:
        self.case = case

    @classmethod
    def handles(cls, case: Any) -> bool:
        return case.mechanism is not None

    @classmethod
    def levels(cls, case: Any, rtols: tuple[float, ...]) -> list[Level]:
        """Looser and tighter tolerances than the others', so that their errors fall on Daedal's line."""
        return super().levels(case, (10.0 * rtols[0], *rtols, rtols[-1] / 10.0, rtols[-1] / 100.0))

    def prepare(self, level: Level) -> Callable[[], Any]:
        import daedal

        model = self.case.mechanism.model(self.callbacks == "compiled")
        options: dict[str, Any] = {"rtol": level.rtol, "atol": level.atol, "max_steps": 10**7}
        options |= {"t_eval": [model.t_span[1]], "dense_output": False}
        options |= {"formulation": self.formulation, "method": self.method}
        return lambda: daedal.solve(model.problem, model.t_span, model.initial, **options)

    def outcome(self, raw: Any) -> Outcome:
        if not raw.success:
            raise SolveFailure(raw.message)
        return Outcome(np.array(raw.y[:, -1]), int(raw.stats.residual_evaluations), int(raw.stats.steps))


class DaedalProjection(DaedalAuto):
    name = "daedal-dopri5"
    label = "Daedal DOPRI5 with projection"
    marker = "d"
    formulation = "projection"
    method = "dopri5"


class DaedalGGL(DaedalAuto):
    name = "daedal-ggl"
    label = "Daedal GGL with DASSL"
    family = "BDF"
    formulation = "ggl"
    method = "dassl"


class DaedalInvariants(DaedalGGL):
    name = "daedal-invariants"
    label = "Daedal projected invariants with DASSL"
    marker = "X"
    formulation = "projected_invariants"


class DaedalModifiedBDF(DaedalGGL):
    name = "daedal-modified-bdf"
    label = "Daedal modified BDF"
    marker = "P"
    formulation = "auto"
    method = "modified_bdf"


class DaedalCollocation(DaedalAuto):
    name = "daedal-collocation"
    label = "Daedal collocation (Radau, 3 stages)"
    marker = "s"
    method = "collocation"


class DaedalAutoCompiled(DaedalAuto):
    name = "daedal-auto-compiled"
    callbacks = "compiled"


class DaedalProjectionCompiled(DaedalProjection):
    name = "daedal-dopri5-compiled"
    callbacks = "compiled"


class DaedalGGLCompiled(DaedalGGL):
    name = "daedal-ggl-compiled"
    callbacks = "compiled"


class DaedalInvariantsCompiled(DaedalInvariants):
    name = "daedal-invariants-compiled"
    callbacks = "compiled"


class DaedalModifiedBDFCompiled(DaedalModifiedBDF):
    name = "daedal-modified-bdf-compiled"
    callbacks = "compiled"


class DaedalCollocationCompiled(DaedalCollocation):
    name = "daedal-collocation-compiled"
    callbacks = "compiled"
