r"""Sensitivities of second-order DAEs via the companion form.

With :math:`u = \dot x` for the variables of order 2 the problem :math:`F(t, x, \dot x, \ddot x, p) = 0` becomes one of
first order in :math:`y = (x, u)`, whose variational equations are those of :mod:`daedal.sensitivity.variational`. Rows
of y are those of the solution, so no conversion back is needed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from daedal.driver.plan_stages import Plan
from daedal.driver.request import Request, Settings
from daedal.driver.second_order_plan import converted
from daedal.errors import IntegrationError, InvalidProblemError
from daedal.events.event import Event, named_events
from daedal.initial.second_order_start import orders_at_start, split_second_order, tolerance_of_y
from daedal.methods.named_methods import named_method
from daedal.problems import ImplicitDAE, SecondOrderDAE
from daedal.problems.arguments import StateArguments, in_standard_form
from daedal.problems.second_order_form import SecondOrderForm, natural_form
from daedal.sensitivity.variation import SensitivityPlan
from daedal.solution.solution import SecondOrderSolution


class CompanionPlan(Plan):
    """A plan for a second-order DAE with its variational equations.

    Parameters
    ----------
    problem : SecondOrderDAE
    settings : Settings
        With the requested `sensitivities`.
    make_plan : callable
        ``make_plan(problem, settings)``, used for the companion form with its sensitivities.
    """

    def __init__(self, problem: SecondOrderDAE, settings: Settings, make_plan: Any):
        self.problem, self._settings, self._make_plan = problem, settings, make_plan
        if not (isinstance(settings.method, str) and settings.method == "auto"):
            method = named_method(settings.method, settings.options)
            if not method.supports("residual"):
                raise InvalidProblemError(
                    "sensitivities of a SecondOrderDAE are computed in its first-order form, by 'dassl', 'radau' "
                    f"and others, not by {type(method).__name__}: omit method"
                )
        self._inner: dict[bytes, SensitivityPlan] = {}

    def is_current(self) -> bool:
        """Whether captured external values are unchanged since the functions were traced."""
        return all(plan.is_current() for plan in self._inner.values())

    def with_problem(self, problem: SecondOrderDAE) -> CompanionPlan | None:
        """The plan for the same problem with other parameters, or None if it must be rebuilt."""
        other = CompanionPlan(problem, self._settings, self._make_plan)
        for key, plan in self._inner.items():
            shared = plan.with_problem(plan.problem.with_params(problem.params))
            if shared is None:
                return None
            other._inner[key] = shared
        return other

    def solve(self, request: Request) -> SecondOrderSolution:
        """Solve the companion form with its sensitivities, and return the solution in x, x' and x''."""
        x0, xp0, _ = split_second_order(self.problem, request.initial)
        form = natural_form(orders_at_start(self.problem, request.span[0], x0, xp0)[0])
        plan = self._plan(form)
        tolerances = {name: tolerance_of_y(form, getattr(request.settings, name), name) for name in ("rtol", "atol")}
        y0 = np.concatenate([x0, xp0])[form.source]
        events = [_of_companion(event, form) for event in named_events(request.settings.events)] or None
        inner = request.changed(problem=plan.problem, initial=(y0, None), events=events, **tolerances)
        try:
            return converted(form, plan.solve(inner))
        except IntegrationError as error:
            if error.solution is not None:
                error.solution = converted(form, error.solution)
            raise

    def _plan(self, form: SecondOrderForm) -> SensitivityPlan:
        assert form.problem.order is not None
        key = form.problem.order.tobytes()
        if key not in self._inner:
            settings = replace(self._settings, events=None)
            tolerances = {name: tolerance_of_y(form, getattr(settings, name), name) for name in ("rtol", "atol")}
            made = self._make_plan(companion(form), replace(settings, **tolerances))
            self._inner[key] = made
        return self._inner[key]


def companion(form: SecondOrderForm) -> ImplicitDAE:
    """F = 0 and x' - u = 0 as a traceable function of (t, y, y') and the parameters."""
    problem = form.problem
    assert problem.order is not None
    n, residual = problem.n, getattr(problem.residual, "original", problem.residual)
    velocities = np.flatnonzero(problem.order == 2).tolist()
    place = {i: n + k for k, i in enumerate(velocities)}

    def stacked(t, y, yp, *params):
        xp = np.array([y[place[i]] if i in place else yp[i] for i in range(n)])
        xpp = np.array([yp[place[i]] if i in place else 0.0 for i in range(n)])
        found = np.asarray(residual(t, y[:n], xp, xpp, *params))
        return np.concatenate([found, np.array([yp[i] - y[place[i]] for i in velocities])])

    def with_params(t, y, yp, p):
        return stacked(t, y, yp, p)

    def alone(t, y, yp):
        return stacked(t, y, yp)

    return ImplicitDAE(
        alone if problem.params is None else with_params,
        form.n,
        params=problem.params,
        algebraic=np.concatenate([problem.order == 0, np.zeros(len(velocities), dtype=bool)]),
        names=form.names,
    )


def _of_companion(event: Event, form: SecondOrderForm) -> Event:
    """Convert an event of x and x' to an event of y and y'."""
    function, second = event.function, form.problem.order == 2
    arguments = StateArguments(form.problem, form.problem.params is not None, False)
    standard, count = in_standard_form(function, arguments.of(function, f"event '{event.name}'"), False)

    def variables(y: np.ndarray, yp: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        x, xp = form.split(np.asarray(y))
        return x, np.where(second, xp, form.split(np.asarray(yp))[0])

    def alone(t, y, yp):
        return standard(t, *variables(y, yp)[: count - 1])

    def with_params(t, y, yp, p):
        return standard(t, *variables(y, yp), p)

    chosen: Callable[..., Any] = with_params if count > 3 else alone
    return replace(event, function=chosen)
