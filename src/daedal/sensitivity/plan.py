"""The plan of a run with sensitivities, by the class of the problem."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from daedal.driver.request import Settings
from daedal.errors import InvalidProblemError
from daedal.hybrid.problem import HybridProblem
from daedal.problems import HessenbergDAE, ImplicitDAE, LinearDAE, MechanicalSystem, SecondOrderDAE, SemiExplicitDAE


def sensitivity_plan(problem: Any, settings: Settings, make_plan: Callable[[Any, Settings], Any]) -> Any:
    """A plan that integrates the variational equations beside the problem.

    `make_plan` makes the plan of a problem without them.
    """
    if isinstance(problem, LinearDAE):
        problem = problem.semi_explicit()
    if isinstance(problem, (ImplicitDAE, SemiExplicitDAE)):
        from daedal.sensitivity.first_order import FirstOrderSensitivity

        return FirstOrderSensitivity(problem, settings, make_plan)
    if isinstance(problem, SecondOrderDAE):
        from daedal.sensitivity.second_order import SecondOrderSensitivity

        return SecondOrderSensitivity(problem, settings, make_plan)
    if isinstance(problem, MechanicalSystem):
        from daedal.sensitivity.mechanism import MechanismSensitivity

        return MechanismSensitivity(problem, settings, make_plan)
    if isinstance(problem, HessenbergDAE):
        from daedal.sensitivity.hessenberg import HessenbergSensitivity

        return HessenbergSensitivity(problem, settings, make_plan)
    if isinstance(problem, HybridProblem):
        from daedal.sensitivity.hybrid import HybridSensitivity

        return HybridSensitivity(problem, settings, make_plan)
    raise InvalidProblemError(
        "sensitivities are computed for an ODE, a MassMatrixDAE, an ImplicitDAE, a SemiExplicitDAE, a LinearDAE, a "
        "SecondOrderDAE, a MechanicalSystem, a HessenbergDAE and a HybridProblem, not for a "
        f"{type(problem).__name__}"
    )
