"""What runs through modes keep from one to the next: the plans of the modes, whatever the parameters are."""

from __future__ import annotations

from typing import Any

import numpy as np

from daedal.driver.request import Request, Settings
from daedal.driver.solver import described, plan_for
from daedal.driver.stages import Plan, Recent
from daedal.mechanics.setting import missing_derivatives, plain_setting
from daedal.problems.compile import differ_in_parameters_only

_MOST_PLANS = 32
_LARGEST_SETTLED = 100  # coordinates and multipliers, whose matrices are dense there


class HybridPlan(Plan):
    """A plan for each mode that was reached, shared by the problems that differ in their parameters alone.

    Parameters
    ----------
    problem : HybridProblem
    """

    def __init__(self, problem: Any, settings: Settings | None = None):
        self.problem = problem
        self._own, self._shared = Recent(_MOST_PLANS), Recent(_MOST_PLANS)  # by mode and what a plan depends on

    def with_problem(self, problem: Any) -> HybridPlan:
        """The plan for the same problem with other parameters."""
        other = HybridPlan(problem)
        other._shared = self._shared
        return other

    def solve(self, request: Request):
        """Run through the modes."""
        from daedal.hybrid.run import solve_hybrid

        return solve_hybrid(request, self)

    def stretch(self, mode: str, request: Request):
        """The solution of a stretch in one mode."""
        return described(self.plan(mode, request.problem, request.settings).solve, request)

    def plan(self, mode: str, problem: Any, settings: Settings) -> Any:
        """The plan of a mode, whose problem this is."""
        key = mode, *settings.key
        plan = self._own.get(key)
        if plan is None or not plan.is_current():
            plan = self._found(key, problem, settings)
            self._own.keep(key, plan)
        return plan

    def settled(self, mode: str, request: Request, t: float, y: np.ndarray) -> np.ndarray | None:
        """A state of a mechanism on the constraints of a mode, if it is near them and these are traced; else None."""
        plan = self.plan(mode, request.problem, request.settings)
        system = plan.machine_system()
        if system is None or system.contact is not None or system.n_w or system.force_uses_multipliers:
            return None
        if missing_derivatives(system) or (system.velocity_constraint is not None and system.velocity_bias is None):
            return None
        if hasattr(system.mass, "tocsr") or system.n_q + system.n_lambda > _LARGEST_SETTLED:
            return None
        from daedal.mechanics.settling import settle

        moved = y.copy()
        with plan.inner.starts.pool.lend(system, plain_setting(system, y[: system.n_q])) as assembly:
            projector = assembly.projector("M")  # which has to live as long as the call lasts
            good = settle(assembly.address, projector.address, t, moved)
            raised, assembly.bridge.exception = assembly.bridge.exception, None
        if isinstance(raised, KeyboardInterrupt):
            raise raised
        return moved if good and raised is None else None

    def _found(self, key: tuple, problem: Any, settings: Settings) -> Any:
        """A plan of this mode with other parameters, adapted; or a new one."""
        known = self._shared.get(key)
        if known is not None and known.is_current():
            if known.problem is problem:
                return known
            plan = known.with_problem(problem) if differ_in_parameters_only(known.problem, problem) else None
            if plan is not None:
                return plan
        plan = plan_for(problem, settings)
        self._shared.keep(key, plan)
        return plan
