"""Problems recognised as mechanisms and solved as such, with results in the original unknowns."""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np

from daedal.analysis.probe import Probe
from daedal.analysis.wording import FROM_ZERO, MOST_NAMED, listing, number
from daedal.driver.event_view import EventsOf
from daedal.driver.finish import clear_frames
from daedal.driver.mechanism import MechanismPlan
from daedal.driver.plan_stages import Plan
from daedal.driver.reduced_start import GivenStart
from daedal.driver.reduction_choice import reduced_plan
from daedal.driver.request import Request, Settings
from daedal.driver.run_segments import Begun
from daedal.driver.traced import Form, TracedPlan, add_note
from daedal.errors import InconsistentInitialError, IntegrationError
from daedal.index.reduction.recognised_solution import RecognisedSolution
from daedal.index.reduction.recognition import RecognisedMechanism
from daedal.initial.consistent import split_initial
from daedal.problems.checks import check_tolerances
from daedal.problems.compile import with_numbers
from daedal.solution.mechanical_solution import MechanicalSolution

_VIOLATED = 1e-3  # residuals above this fraction of the largest one are named
_POINTS = 50  # maximum number of output points that are checked
_WRONG = 1e-6  # residual, relative to the terms of its equation, up to which the equation is satisfied
_ROUNDOFF = 1e-12  # residuals below this fraction of the largest term of all equations count as zero


class MechanismForm(Form):
    """Form of a problem that is solved as the mechanism which its equations describe.

    The solution is inserted into the original equations; if it does not satisfy them, the problem is solved as given.

    Parameters
    ----------
    plan : TracedPlan
        Plan of the problem as given.
    found : RecognisedMechanism
        The mechanism described by its equations.
    """

    def __init__(self, plan: TracedPlan, found: RecognisedMechanism):
        self.problem, self.found = plan.problem, found
        self._general: Plan | None = (
            None  # plan without recognition, for runs whose motion does not satisfy the equations
        )
        self._tolerances = self._own_tolerances(plan.settings)
        self._inner = TracedPlan(found.system, replace(plan.settings, **self._tolerances), MechanismPlan)

    def with_problem(self, plan: TracedPlan, numbers: np.ndarray) -> MechanismForm | None:
        if not self.found.is_plain:
            return None
        other = copy(self)
        other.problem, other._general = plan.problem, None
        other.found = self.found.with_params(numbers)
        inner = self._inner.with_problem(other.found.system)
        if inner is None:
            return None
        other._inner = inner
        return other

    def _own_tolerances(self, settings: Settings) -> dict[str, Any]:
        """Settings with tolerances for (q, v, r)."""
        roles = self.found.roles
        rtol, atol = check_tolerances(self.problem.n, settings.rtol, settings.atol)
        scale = np.ones(self.problem.n)
        scale[list(roles.velocities)] = np.abs(roles.factors)
        places = [*roles.positions, *roles.velocities, *roles.states]
        return {"rtol": rtol[places], "atol": (atol * scale)[places]}

    def solve(self, plan: TracedPlan, request: Request) -> Any:
        """Solve the mechanism, with the result in the unknowns of the problem.

        Runs with constant steps, which are for studying a method, solve the problem as given.
        """
        if request.settings.fixed_step is not None:
            return plan.solve_as_given(request)
        solution, error = self._as_mechanism(request)
        traced = plan.traced
        problem = plan.problem  # compiled functions, if available
        if traced is not None and traced.functions:
            problem = with_numbers(traced.problem, problem.params)
        if not solves(problem, solution, traced is not None and traced.n_switches > 0):
            note = "The equations resemble those of a mechanism, but its motion does not satisfy them."
            return add_note(self._as_any_other(plan).solve(request), note)
        if request.settings.dense_output is False:
            solution.dense = solution.mechanical.dense = None
        if error is not None:
            raise error
        return solution

    def _as_any_other(self, plan: TracedPlan) -> Plan:
        """The plan for a problem that proves not to be a mechanism."""
        if self._general is None:
            stated = copy(plan)
            stated.form, stated.as_stated = None, True
            self._general = reduced_plan(plan.problem, plan.settings, stated, recognise=False)
        return self._general

    def _as_mechanism(self, request: Request) -> tuple[RecognisedSolution, IntegrationError | None]:
        """Solution of the mechanism, and the error that ended its run or None."""
        own = self._of_mechanism(request)
        if request.times is not None:  # output times may be few, so the equations are tested at all steps
            own = own.changed(dense_output=None)
        try:
            return self._carried_back(self._inner.solve(own)), None
        except Begun as begun:
            begun.carried_back = self._carried_back
            raise
        except InconsistentInitialError as error:
            raise self._in_words(own, error) from None
        except IntegrationError as error:
            solution = self._carried_back(error.solution)
            clear_frames(error)
            return solution, IntegrationError(solution.message, solution)
        except Exception as error:  # exceptions of user functions
            if isinstance(getattr(error, "solution", None), MechanicalSolution):
                error.solution = self._carried_back(error.solution)  # type: ignore[attr-defined]
            raise

    def _of_mechanism(self, request: Request) -> Request:
        found, problem, events = self.found, self.problem, request.settings.events
        n = found.system.n_q

        def arguments(t: float, state: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            return found.at(t, *(np.ascontiguousarray(part) for part in np.split(state, [n, 2 * n])))

        y0, yp0 = split_initial(problem, request.initial)
        initial = found.initial(y0)
        if yp0 is not None:
            self._check_slopes(request, y0, yp0, arguments(request.span[0], np.concatenate(initial)))
        return request.changed(
            problem=found.system,
            initial=initial,
            events=None if events is None else EventsOf(events, problem, arguments),
            **self._tolerances,
        )

    def _check_slopes(self, request: Request, y: np.ndarray, yp: np.ndarray, consistent: tuple[np.ndarray, np.ndarray]):
        """Raise InconsistentInitialError if given multipliers or derivatives contradict positions and velocities.

        Derivatives of multipliers do not occur in the equations and are not checked.
        """
        occurs = np.ones(y.size, dtype=bool)
        occurs[[*self.found.roles.multipliers, *self.found.roles.stabilisers]] = False
        start = GivenStart(self.problem, request, y, np.where(occurs, yp, np.nan), *consistent)
        if not start.is_tolerated():
            residual = np.asarray(self.problem.evaluate(request.span[0], y, yp))
            start.refuse([f"equation {i}" for i in range(y.size)], residual, range(y.size))

    def _in_words(self, request: Request, error: InconsistentInitialError) -> InconsistentInitialError:
        """The error for initial values of the mechanism, in terms of the equations and unknowns of the problem."""
        found, t, (q, v, *further) = self.found, request.span[0], request.initial
        rows = [found.constraint_rows[i] for i in error.equations]
        traced = self._inner.traced
        point = (found.system if traced is None else traced.problem).at(t, q, v, r=further[0] if further else None)
        n = found.system.n_constraints
        values = dict(zip([f"equation {k}" for k in found.constraint_rows], [*point.constraint, *point.velocity[n:]]))
        slopes = [f"the first time derivative of equation {k}" for k in found.constraint_rows[:n]]
        values |= dict(zip(slopes, point.velocity[:n]))
        largest = max(map(abs, values.values()), default=0.0)
        wrong = [f"{name} ({number(x)})" for name, x in values.items() if abs(x) > max(_VIOLATED * largest, _ROUNDOFF)]
        if not wrong:
            return InconsistentInitialError(str(error), rows, error.residual)
        message = (
            f"The initial values violate the equations at t = {number(t)}. Violated {FROM_ZERO}, with the residual "
            f"that should be 0: {listing(wrong[: 2 * MOST_NAMED], len(wrong))}.\n"
            f"The equations are those of {found.words}. "
            "Remedy: use daedal.consistent_initial(problem, t0, (y0, yp0), fixed=[...]), which keeps the named "
            "values and corrects the others, or pass correct_initial=True."
        )
        return InconsistentInitialError(message, rows, error.residual)

    def _carried_back(self, solution: Any) -> RecognisedSolution:
        return RecognisedSolution(self.found, solution, getattr(self.problem, "n_y", None))


# --- check of the solution --------------------------------------------------------------------------------------------


def solves(problem: Any, solution: RecognisedSolution, switches: bool) -> bool:
    """Whether the residual vanishes along the solution, relative to the terms of each equation, without a pole.

    The form of the mass matrix and of the constraint forces was tested at a few points far from the run; terms that
    vanish there may matter here. Where forces have `switches` and the solution slides on their surface, the original
    residual does not vanish, and the matrices are tested instead.
    """
    times, y, yp = solution.sampled(_POINTS)
    good = np.isfinite(y).all(axis=0) & np.isfinite(yp).all(
        axis=0
    )  # points at which the run reported an exception are skipped
    times, y, yp = times[good], y[:, good], yp[:, good]
    if not times.size:
        return True
    probe, terms = Probe(problem), np.zeros(problem.n)
    points = zip(times.tolist(), y.T.copy(), yp.T.copy(), strict=True)
    residuals = np.nan_to_num(np.abs([probe.sample(*point) for point in points]))
    for k in np.argsort(residuals.max(axis=1))[::-1]:
        if not np.any(residuals > _WRONG * terms + _ROUNDOFF * np.max(terms)):
            break
        terms = np.maximum(terms, probe.terms(times[k], y[:, k], yp[:, k]))
    else:
        if not (switches and solution.is_balanced(times, y)):
            return False
    return not solution.passes_a_pole(times, y)
