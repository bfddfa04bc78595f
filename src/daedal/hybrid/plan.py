"""What runs through modes keep from one to the next: the plans of the modes, whatever the parameters are."""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock
from typing import Any

import numpy as np

from daedal.driver.request import Request, Settings
from daedal.driver.solver import described, plan_for
from daedal.driver.traced import TracedPlan
from daedal.mechanics.setting import missing_derivatives, plain_setting
from daedal.problems.compile import differ_in_parameters_only

_MOST_PLANS = 32
_LARGEST_SETTLED = 100  # coordinates and multipliers, whose matrices are dense there


class HybridPlan:
    """A plan for each mode that was reached, shared by the problems that differ in their parameters alone.

    Parameters
    ----------
    problem : HybridProblem
    """

    def __init__(self, problem: Any):
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
        if plan is None or not _is_current(plan):
            plan = self._found(key, problem, settings)
            self._own.keep(key, plan)
        return plan

    def settled(self, mode: str, request: Request, t: float, y: np.ndarray) -> np.ndarray | None:
        """A state of a mechanism on the constraints of a mode, if it is near them and these are traced; else None."""
        plan = self.plan(mode, request.problem, request.settings)
        system = plan.machine_system() if isinstance(plan, TracedPlan) else None
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
        if hasattr(known, "with_problem") and _is_current(known):
            if known.problem is problem:
                return known
            plan = known.with_problem(problem) if differ_in_parameters_only(known.problem, problem) else None
            if plan is not None:
                return plan
        plan = plan_for(problem, settings)
        self._shared.keep(key, plan)
        return plan


class Recent:
    """Values by key, from any thread; the least recently used leave where there are too many."""

    def __init__(self, most: int):
        self._most, self._guard = most, Lock()
        self._values: OrderedDict[Any, Any] = OrderedDict()

    def get(self, key: Any) -> Any:
        """The value of a key, or None."""
        with self._guard:
            if key in self._values:
                self._values.move_to_end(key)
            return self._values.get(key)

    def keep(self, key: Any, value: Any) -> None:
        """Keep a value for its next use."""
        with self._guard:
            self._values[key] = value
            self._values.move_to_end(key)
            while len(self._values) > self._most:
                self._values.popitem(last=False)


def _is_current(plan: Any) -> bool:
    check = getattr(plan, "is_current", None)
    return check is None or check()
