"""The plan of a run with sensitivities, by the class of the problem."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from daedal.driver.request import Settings
from daedal.errors import InvalidProblemError
from daedal.hybrid.problem import HybridProblem
from daedal.problems import HessenbergDAE, ImplicitDAE, LinearDAE, MechanicalSystem, SecondOrderDAE, SemiExplicitDAE
from daedal.sensitivity.variation import SensitivityPlan

# The module and the class for each class of problems; a run loads what it needs.
_VARIATIONS: dict[type, tuple[str, str]] = {
    ImplicitDAE: ("first_order_variation", "FirstOrderVariation"),
    SemiExplicitDAE: ("first_order_variation", "FirstOrderVariation"),
    MechanicalSystem: ("motion_variation", "MotionVariation"),
    HessenbergDAE: ("homogeneous_variation", "HomogeneousVariation"),
    HybridProblem: ("modes_variation", "ModesVariation"),
}


def sensitivity_plan(problem: Any, settings: Settings, make_plan: Callable[[Any, Settings], Any]) -> Any:
    """A plan that integrates the variational equations of a problem beside it.

    `make_plan` is the driver's, for problems with sensitivities and without.
    """
    if isinstance(problem, LinearDAE):
        problem = problem.semi_explicit()
    if isinstance(problem, SecondOrderDAE):
        from daedal.sensitivity.companion_plan import CompanionPlan

        return CompanionPlan(problem, settings, make_plan)
    for kind, (module, name) in _VARIATIONS.items():
        if isinstance(problem, kind):
            variation = getattr(import_module(f"daedal.sensitivity.{module}"), name)
            return SensitivityPlan(variation.of(problem, settings, make_plan))
    raise InvalidProblemError(
        "sensitivities are computed for an ODE, a MassMatrixDAE, an ImplicitDAE, a SemiExplicitDAE, a LinearDAE, a "
        "SecondOrderDAE, a MechanicalSystem, a HessenbergDAE and a HybridProblem, not for a "
        f"{type(problem).__name__}"
    )
