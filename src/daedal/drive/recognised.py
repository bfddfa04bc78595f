"""Problems in whose equations a mechanism was recognised: solved as it, told in their own unknowns."""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np

from daedal.drive.event_view import EventsOf
from daedal.drive.mechanism import MechanismPlan
from daedal.drive.request import Request, Settings
from daedal.drive.traced import TracedPlan
from daedal.errors import IntegrationError
from daedal.index_reduction.mechanism import RecognisedMechanism, recognise_mechanism
from daedal.index_reduction.recognised_solution import RecognisedSolution
from daedal.initial.consistent import split_initial
from daedal.mechanical_solution import MechanicalSolution
from daedal.problems.checks import check_tolerances
from daedal.structure.equations import Equations
from daedal.symbolic import Untraceable


def plan_of_mechanism(problem: Any, settings: Settings) -> RecognisedPlan | None:
    """The plan for the mechanism that a problem describes; None if it describes none."""
    try:
        found = recognise_mechanism(Equations(problem))
    except Untraceable:
        return None
    return None if found is None else RecognisedPlan(problem, found, settings)


class RecognisedPlan:
    """What does not depend on the start: the mechanism, and the plan for it.

    Parameters
    ----------
    problem : ImplicitDAE or SemiExplicitDAE
        As the user stated it.
    found : RecognisedMechanism
    settings : Settings
    """

    def __init__(self, problem: Any, found: RecognisedMechanism, settings: Settings):
        self.problem, self.found = problem, found
        self._tolerances = self._own_tolerances(settings)
        self._plan = TracedPlan(found.system, replace(settings, **self._tolerances), MechanismPlan)

    def with_problem(self, problem: Any, numbers: np.ndarray | None) -> RecognisedPlan | None:
        """The plan for the problem with other parameters, given by their numbers too; None if it must be made anew."""
        if not self.found.is_plain:
            return None
        other = copy(self)
        other.problem, other.found = problem, self.found.with_params(numbers)
        plan = self._plan.with_problem(other.found.system)
        if plan is None:
            return None
        other._plan = plan
        return other

    def _own_tolerances(self, settings: Settings) -> dict[str, Any]:
        """Those of (q, v, r)."""
        roles = self.found.roles
        rtol, atol = check_tolerances(self.problem.n, settings.rtol, settings.atol)
        scale = np.ones(self.problem.n)
        scale[list(roles.velocities)] = np.abs(roles.factors)
        places = [*roles.positions, *roles.velocities, *roles.states]
        return {"rtol": rtol[places], "atol": (atol * scale)[places]}

    def solve(self, request: Request) -> RecognisedSolution:
        """Solve the mechanism; everything that comes back is in the unknowns of the problem."""
        try:
            return self._told(self._plan.solve(self._of_mechanism(request)))
        except IntegrationError as error:
            told = self._told(error.solution)
            raise IntegrationError(told.message, told) from None
        except Exception as error:  # of a function of the user's
            if isinstance(getattr(error, "solution", None), MechanicalSolution):
                error.solution = self._told(error.solution)  # type: ignore[attr-defined]
            raise

    def _of_mechanism(self, request: Request) -> Request:
        found, problem, events = self.found, self.problem, request.settings.events
        n = found.system.n_q

        def arguments(t: float, state: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            return found.at(t, *(np.ascontiguousarray(part) for part in np.split(state, [n, 2 * n])))

        y0, _ = split_initial(problem, request.initial)
        return request.changed(
            problem=found.system,
            initial=found.initial(y0),
            events=None if events is None else EventsOf(events, problem, arguments),
            **self._tolerances,
        )

    def _told(self, solution: Any) -> RecognisedSolution:
        return RecognisedSolution(self.found, solution, getattr(self.problem, "n_y", None))
