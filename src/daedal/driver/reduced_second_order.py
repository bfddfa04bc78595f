"""Second-order problems of any index, differentiated without reduction to first order.

The integrated problem has index 1 in x, x', x'' and, if equations require them, higher derivatives. Only derivatives
determined by the equations become unknowns, which avoids the increase of the index by order reduction (Wunderlich,
section 2.1).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from daedal.driver.reduced_plan import ReducedPlan
from daedal.driver.request import Request, Settings
from daedal.driver.run_segments import Begun
from daedal.driver.second_order_plan import converted, events_of_form
from daedal.errors import IntegrationError
from daedal.index.reduction.reduced_problem import ReducedProblem
from daedal.index.structure.signature import StructuralSignature
from daedal.index.structure.system_equations import SystemEquations
from daedal.initial.second_order_start import split_second_order, tolerance_of_y
from daedal.initial.variable_kinds import check_order
from daedal.problems import SecondOrderDAE
from daedal.problems.second_order_form import natural_form
from daedal.solution.solution import SecondOrderSolution


class _Plan(ReducedPlan):
    """A reduced plan whose initial values (x, x') may be partly unknown."""

    def given(self, request: Request) -> tuple[np.ndarray, np.ndarray | None]:
        return request.initial


class ReducedSecondOrder:
    """Plan for a second-order problem; its leading unknowns are x, and x' of variables of order 2."""

    def __init__(
        self,
        make: Callable[..., ReducedProblem],
        problem: SecondOrderDAE,
        equations: SystemEquations,
        signature: StructuralSignature,
        settings: Settings,
    ):
        found = np.minimum(equations.orders, 2)
        self.form = form = natural_form(problem.with_order(check_order(problem, found)))
        leading = [(int(s) % problem.n, int(s) // problem.n) for s in form.source]
        tolerances = {name: tolerance_of_y(form, getattr(settings, name), name) for name in ("rtol", "atol")}
        self._settings = replace(settings, **tolerances)
        self.reduction = make(form.problem.first_order(), equations, signature, leading)
        self._plan = _Plan(self.reduction, self._settings)

    def with_original(self, problem: Any, numbers: np.ndarray) -> None:
        return None

    def solve(self, request: Request) -> SecondOrderSolution:
        """The solution of a request, in x, x' and x''."""
        form, (x0, xp0, _) = self.form, split_second_order(self.form.problem, request.initial)
        y0 = np.concatenate([x0, np.full(x0.size, np.nan) if request.initial[1] is None else xp0])[form.source]
        given = {name: getattr(self._settings, name) for name in ("rtol", "atol")}
        inner = request.changed(problem=form.problem.first_order(), initial=(y0, None), **given)
        if request.settings.events is not None:
            inner = inner.changed(events=events_of_form(request, form, np.nan_to_num(y0), np.zeros(form.n)))
        try:
            return converted(form, self._plan.solve(inner))
        except Begun as begun:
            begun.carried_back = partial(converted, form)
            raise
        except IntegrationError as error:
            solution = converted(form, error.solution)
            raise IntegrationError(str(error), solution) from error
