"""Second-order problems of any index: their equations are differentiated as they are, without going to first order.

What is integrated is a problem of index 1 in x, x', x'' and, where equations ask for them, higher derivatives. Only
derivatives that the equations determine become unknowns, so that the pitfalls of order reduction, by which the index of
a second-order DAE can grow, do not arise (Wunderlich, section 2.1).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from daedal.driver.reduced import ReducedPlan
from daedal.driver.request import Request, Settings
from daedal.driver.second_order import converted, events_of_form
from daedal.errors import IntegrationError
from daedal.index.reduction.reduced import ReducedProblem
from daedal.index.structure.equations import SystemEquations
from daedal.index.structure.signature import StructuralSignature
from daedal.initial.orders import check_order
from daedal.initial.second_order_start import split_second_order, tolerance_of_y
from daedal.problems import SecondOrderDAE
from daedal.problems.second_order_form import natural_form
from daedal.solution.solution import SecondOrderSolution


class _Plan(ReducedPlan):
    """A plan for (x, x'), part of which may not be known."""

    def given(self, request: Request) -> tuple[np.ndarray, np.ndarray | None]:
        """What the request has, which was checked."""
        return request.initial


class ReducedSecondOrder:
    """What does not depend on the start: the reduced problem, in which (x, x' of variables of order 2) come first."""

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
        """It is made anew for other parameters."""
        return None

    def solve(self, request: Request) -> SecondOrderSolution:
        """Solve, and tell it in x, x' and x''."""
        form, (x0, xp0, _) = self.form, split_second_order(self.form.problem, request.initial)
        y0 = np.concatenate([x0, np.full(x0.size, np.nan) if request.initial[1] is None else xp0])[form.source]
        given = {name: getattr(self._settings, name) for name in ("rtol", "atol")}
        inner = request.changed(problem=form.problem.first_order(), initial=(y0, None), **given)
        if request.settings.events is not None:
            inner = inner.changed(events=events_of_form(request, form, np.nan_to_num(y0), np.zeros(form.n)))
        try:
            return converted(form, self._plan.solve(inner))
        except IntegrationError as error:
            solution = converted(form, error.solution)
            raise IntegrationError(str(error), solution) from error
