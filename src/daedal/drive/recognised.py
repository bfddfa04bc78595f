"""Problems in whose equations a mechanism was recognised: solved as it, told in their own unknowns."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from daedal.drive.event_view import EventsOf
from daedal.drive.mechanism import MechanismPlan
from daedal.drive.request import Request, Settings
from daedal.drive.traced import TracedPlan
from daedal.errors import IntegrationError
from daedal.index_reduction.mechanism import RecognisedMechanism
from daedal.index_reduction.recognised_solution import RecognisedSolution
from daedal.initial.consistent import split_initial
from daedal.mechanical_solution import MechanicalSolution
from daedal.problems.checks import check_tolerances


class RecognisedPlan(TracedPlan):
    """What does not depend on the start: the mechanism, and the plan for it.

    Machine code is held against the user's functions as for any problem; between the comparisons the mechanism is
    solved.

    Parameters
    ----------
    plan : TracedPlan
        That of the problem as it stands.
    found : RecognisedMechanism
        What its equations describe.
    """

    def __init__(self, plan: TracedPlan, found: RecognisedMechanism):
        vars(self).update(vars(plan))
        self.found = found
        self._tolerances = self._own_tolerances(plan.settings)
        self._inner = TracedPlan(found.system, replace(plan.settings, **self._tolerances), MechanismPlan)

    @property
    def _irregular(self) -> tuple[str, ...]:
        """Derivatives of the problem are not used, and those of the mechanism are not looked at here."""
        return ()

    def with_problem(self, problem: Any) -> RecognisedPlan | None:
        """The plan for the same problem with other parameters, or None if it must be made anew."""
        other, layout = super().with_problem(problem), None if self.traced is None else self.traced.layout
        if not isinstance(other, RecognisedPlan) or not self.found.is_plain:
            return None
        other.found = self.found.with_params(None if layout is None else layout.numbers(problem.params))
        inner = self._inner.with_problem(other.found.system)
        if inner is None:
            return None
        other._inner = inner
        return other

    def _own_tolerances(self, settings: Settings) -> dict[str, Any]:
        """Those of (q, v, r)."""
        roles = self.found.roles
        rtol, atol = check_tolerances(self.problem.n, settings.rtol, settings.atol)
        scale = np.ones(self.problem.n)
        scale[list(roles.velocities)] = np.abs(roles.factors)
        places = [*roles.positions, *roles.velocities, *roles.states]
        return {"rtol": rtol[places], "atol": (atol * scale)[places]}

    def _solve(self, left_out: tuple[str, ...], request: Request) -> RecognisedSolution:
        """Solve the mechanism; everything that comes back is in the unknowns of the problem."""
        try:
            return self._carried_back(self._inner.solve(self._of_mechanism(request)))
        except IntegrationError as error:
            solution = self._carried_back(error.solution)
            raise IntegrationError(solution.message, solution) from None
        except Exception as error:  # of a function of the user's
            if isinstance(getattr(error, "solution", None), MechanicalSolution):
                error.solution = self._carried_back(error.solution)  # type: ignore[attr-defined]
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

    def _carried_back(self, solution: Any) -> RecognisedSolution:
        return RecognisedSolution(self.found, solution, getattr(self.problem, "n_y", None))
