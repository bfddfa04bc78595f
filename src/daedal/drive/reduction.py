"""Whether a problem is reduced before it is solved."""

from __future__ import annotations

from typing import Any

from daedal.drive.request import Settings
from daedal.index_reduction.reduce import REDUCTIONS, reduce_index
from daedal.structure.equations import Equations
from daedal.structure.signature import Signature


def reduced_plan(problem: Any, settings: Settings):
    """The plan for the reduced problem; None where it is solved as it stands."""
    from daedal.drive.reduced import ReducedPlan

    formulation = settings.formulation
    if formulation in ("none", None) or settings.compile == "never":
        return None
    equations = Equations(problem)
    if formulation == "auto" and Signature.of(equations).index < 3:
        return None
    return ReducedPlan(reduce_index(problem, formulation), settings)
