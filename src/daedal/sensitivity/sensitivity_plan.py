"""Plan of a run with sensitivities, by problem class."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from daedal.driver.plan_stages import Plan
from daedal.driver.request import Settings
from daedal.errors import InvalidProblemError
from daedal.hybrid.hybrid_problem import HybridProblem
from daedal.problems import HessenbergDAE, ImplicitDAE, LinearDAE, MechanicalSystem, SecondOrderDAE, SemiExplicitDAE

PLANS: dict[type, str] = {
    ImplicitDAE: "daedal.sensitivity.first_order_variation:first_order_plan",
    SemiExplicitDAE: "daedal.sensitivity.first_order_variation:first_order_plan",
    SecondOrderDAE: "daedal.sensitivity.companion_plan:CompanionPlan",
    MechanicalSystem: "daedal.sensitivity.motion_variation:motion_plan",
    HessenbergDAE: "daedal.sensitivity.homogeneous_variation:homogeneous_plan",
    HybridProblem: "daedal.sensitivity.modes_variation:modes_plan",
}
"""Factories of plans, imported when needed: ``plan(problem, settings, make_plan)``."""


def sensitivity_plan(problem: Any, settings: Settings, make_plan: Callable[[Any, Settings], Plan]) -> Plan:
    """A plan that integrates the variational equations together with the problem.

    `make_plan` is the driver's function, for problems with and without sensitivities.
    """
    if isinstance(problem, LinearDAE):
        problem = problem.semi_explicit()
    name = next((PLANS[kind] for kind in type(problem).__mro__ if kind in PLANS), None)
    if name is None:
        raise InvalidProblemError(
            "sensitivities are computed for an ODE, a MassMatrixDAE, an ImplicitDAE, a SemiExplicitDAE, a LinearDAE, a "
            "SecondOrderDAE, a MechanicalSystem, a HessenbergDAE and a HybridProblem, not for a "
            f"{type(problem).__name__}"
        )
    module, _, plan = name.partition(":")
    return getattr(import_module(module), plan)(problem, settings, make_plan)
