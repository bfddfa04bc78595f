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
from daedal.errors import DaedalError, IntegrationError
from daedal.index_reduction.mechanism import RecognisedMechanism, recognise_mechanism
from daedal.index_reduction.recognised_solution import RecognisedSolution
from daedal.initial.consistent import split_initial
from daedal.mechanical_solution import MechanicalSolution
from daedal.problems import ImplicitDAE, SemiExplicitDAE
from daedal.problems.checks import check_tolerances
from daedal.structure.equations import Equations
from daedal.symbolic import Untraceable

_MOST_UNKNOWNS = 1500  # of problems in which mechanisms are looked for


def plan_of_mechanism(problem: Any, traced: Any, request: Request) -> RecognisedPlan | None:
    """The plan for the mechanism that a problem describes; None if it describes none, or the user chose a method.

    `traced` is the problem with its functions as machine code.
    """
    if not isinstance(problem, (ImplicitDAE, SemiExplicitDAE)) or not _is_open(request.settings):
        return None
    if problem.n > _MOST_UNKNOWNS or not _may_be_mechanism(problem, traced.implicit(), request):
        return None
    try:
        found = recognise_mechanism(Equations(problem))
    except Untraceable:
        return None
    return None if found is None else RecognisedPlan(problem, found, request.settings)


def _is_open(settings: Settings) -> bool:
    """Whether equations and method are Daedal's to choose."""
    automatic = all(isinstance(x, str) and x == "auto" for x in (settings.method, settings.formulation))
    return automatic and not settings.options and settings.fixed_step is None


def _may_be_mechanism(problem: Any, implicit: ImplicitDAE, request: Request) -> bool:
    """A quick look at the start: whether an equation contains neither derivatives nor unknowns without derivatives.

    Such are constraints on positions and velocities, and problems of index 1 have none.
    """
    try:
        y0, yp0 = split_initial(problem, request.initial)
    except DaedalError:  # which the run will raise with more to say
        return False
    partials = implicit.exact_partials(request.span[0], y0, np.zeros(y0.size) if yp0 is None else yp0)
    if partials is None:
        return True
    by_slopes, by_values = partials
    algebraic = ~np.any(by_slopes, axis=0)
    return bool(algebraic.any() and np.any(~by_slopes.any(axis=1) & ~by_values[:, algebraic].any(axis=1)))


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
