r"""Sensitivities of linear Hessenberg DAEs to their initial values.

A change of the initial values of :math:`x^{(m)} = \sum_j A_j x^{(j-1)} + B y + q,\; 0 = C x + r` changes the solution
by a solution of the homogeneous problem, with :math:`q = 0` and :math:`r = 0`, which does not depend on the solution:
the variational equations are integrated separately, with the same formulation and method, and satisfy :math:`C s = 0`
and its derivatives as the solution does :math:`C x + r = 0`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from daedal.driver.plan_stages import Plan
from daedal.driver.request import Request, Settings
from daedal.errors import InconsistentInitialError
from daedal.mechanics.hessenberg_assembly import HessenbergAssembly
from daedal.problems import HessenbergDAE
from daedal.problems.checks import check_tolerances, check_vector
from daedal.sensitivity.differentiation import Differentiation, scales
from daedal.sensitivity.result import LinearSensitivities
from daedal.sensitivity.variation import SensitivityPlan, Variation


class HomogeneousVariation(Variation):
    """The homogeneous problem of a HessenbergDAE, with one run for every column.

    Parameters
    ----------
    given : Differentiation
    """

    times_events = False

    def __init__(self, given: Differentiation):
        self.given, problem = given, given.problem
        self._homogeneous = replace(problem, q=np.zeros(problem.n_x), r=np.zeros(problem.n_y), r_derivatives=None)
        self._plan = given.make_plan(self._homogeneous, replace(given.settings, events=None))

    def is_current(self) -> bool:
        """Whether captured external values are unchanged since the functions were traced."""
        return self._plan.is_current()

    def base(self, request: Request) -> Any:
        """The solution."""
        return self.given.primal.solve(request)

    def along(self, base: Any, request: Request) -> Any:
        """The homogeneous solutions over the interval covered by the solution."""
        given, n = self.given, self.given.problem.n
        t0, end = request.span[0], float(base.t[-1])
        span = (t0, end) if end != t0 else request.span
        z0 = check_vector(np.concatenate(np.atleast_1d(request.initial), axis=None), n, "initial")
        rtol, atol = check_tolerances(n, request.settings.rtol, request.settings.atol)
        assembly, found = HessenbergAssembly(self._homogeneous), []
        for start, size in zip(given.starts, scales(given.columns, np.zeros(0), z0), strict=True):
            state = start[None].copy()
            if assembly.project(np.array([t0]), state, weight="I")[0] != 0:
                raise InconsistentInitialError(
                    f"no initial sensitivities satisfy the differentiated constraints at t = {t0:g}: C B is singular"
                )
            own = request.changed(
                problem=self._homogeneous, initial=state[0], events=None, rtol=rtol, atol=atol / size,
                span=span, times=base.t,
            )  # fmt: skip
            found.append(self._plan.solve(own))
        base.sensitivities = LinearSensitivities(given.names, tuple(found))
        return base


def homogeneous_plan(
    problem: HessenbergDAE, settings: Settings, make_plan: Callable[[Any, Settings], Plan]
) -> SensitivityPlan:
    """The plan of a HessenbergDAE with the sensitivities requested in `settings`."""
    return SensitivityPlan(HomogeneousVariation(Differentiation.of(problem, settings, make_plan)))
