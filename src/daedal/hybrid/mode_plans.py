"""Settings and plan of each mode of a run, created on first use."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np

from daedal.driver.plan_stages import Plan, Recent
from daedal.driver.request import Request, Settings, checked_settings
from daedal.driver.solver import described, plan_for
from daedal.errors import InvalidProblemError
from daedal.mechanics.setting import missing_derivatives, plain_setting
from daedal.problems.checks import check_flag
from daedal.problems.compile import differ_in_parameters_only

T = TypeVar("T")


class ByMode(Mapping[str, T]):
    """A mapping over the modes of a problem; a function of the name creates each value once."""

    def __init__(self, modes: Mapping[str, Any], make: Callable[[str], T]):
        self._modes, self._make = modes, make
        self._made: dict[str, T] = {}

    def __getitem__(self, name: str) -> T:
        if name not in self._made:
            if name not in self._modes:
                raise KeyError(name)
            self._made[name] = self._make(name)
        return self._made[name]

    def __contains__(self, name: object) -> bool:
        return name in self._modes

    def __iter__(self) -> Iterator[str]:
        return iter(self._modes)

    def __len__(self) -> int:
        return len(self._modes)


# --- settings of a run and of its modes -------------------------------------------------------------------------------


_MAX_EVENTS = 10**6


@dataclass(frozen=True)
class RunSettings:
    """Settings of the whole run; `common` are the settings of modes without options."""

    max_events: int
    record_events: bool
    common: Settings

    @classmethod
    def of(cls, settings: Settings) -> RunSettings:
        """Settings from a request, whose options include those of hybrid runs."""
        options = dict(settings.options)
        max_events = _check_count(options.pop("max_events", _MAX_EVENTS))
        record_events = check_flag(options.pop("record_events", True), "record_events")
        return cls(max_events, record_events, replace(settings, options=options, events=None))

    @property
    def rtol(self) -> float:
        """The smallest relative tolerance."""
        return float(np.min(_numbers(self.common.rtol, "rtol")))


class ModeSettings:
    """Request of the arcs in a mode, without time, state and events."""

    def __init__(self, request: Request, common: Settings, name: str):
        mode = request.problem.modes[name]
        own = checked_settings(**mode.options)
        shared = {option: request.problem.tolerance(name, getattr(common, option)) for option in ("rtol", "atol")}
        settings = replace(common, **shared | {option: getattr(own, option) for option in mode.options})
        self.request = request.changed(problem=mode.problem, settings=settings, progress=False, event_names=[])
        self._rtol, self._atol = _numbers(settings.rtol, "rtol"), _numbers(settings.atol, "atol")

    def weights(self, y: np.ndarray) -> np.ndarray:
        """rtol |y| + atol; vectors of another length are replaced by the smallest rtol and the largest atol."""
        rtol, atol = self.tolerances(y.shape)
        return np.maximum(rtol * np.abs(y) + atol, 1e-300)

    def tolerances(self, shape: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
        """Tolerances of a state: a number or one for each entry."""
        rtol = self._rtol if self._rtol.shape in ((), shape) else self._rtol.min()
        atol = self._atol if self._atol.shape in ((), shape) else self._atol.max()
        return rtol, atol


def _numbers(value, name: str) -> np.ndarray:
    try:
        numbers = np.asarray(value, dtype=float)
    except (TypeError, ValueError):
        numbers = np.empty(0)
    if not numbers.size:
        raise InvalidProblemError(f"{name} must be a number or a vector of numbers, got {value!r}")
    return numbers


def _check_count(value) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 1:
        raise InvalidProblemError(f"max_events must be a positive integer, got {value!r}")
    return int(value)


# --- plans of the modes, shared by runs with all parameter values -----------------------------------------------------


_MOST_PLANS = 32
_LARGEST_SETTLED = 100  # number of coordinates and multipliers up to which matrices are dense


class HybridPlan(Plan):
    """A plan for each mode visited, shared by problems that differ only in parameters.

    Parameters
    ----------
    problem : HybridProblem
    """

    def __init__(self, problem: Any, settings: Settings | None = None):
        self.problem = problem
        self.guards: dict[Any, Any] = {}  # traced guards, by mode and lengths; see `Guards`
        self._own, self._shared = Recent(_MOST_PLANS), Recent(_MOST_PLANS)  # plans by mode and dependencies

    def with_problem(self, problem: Any) -> HybridPlan:
        """The plan for the same problem with other parameters."""
        other = HybridPlan(problem)
        other._shared, other.guards = self._shared, self.guards
        return other

    def solve(self, request: Request):
        """Run through the modes."""
        from daedal.hybrid.hybrid_run import solve_hybrid

        return solve_hybrid(request, self)

    def stretch(self, mode: str, request: Request):
        """Solution of an arc in one mode."""
        return described(self.plan(mode, request.problem, request.settings).solve, request)

    def plan(self, mode: str, problem: Any, settings: Settings) -> Any:
        """Plan for the problem of a mode."""
        key = mode, *settings.key
        plan = self._own.get(key)
        if plan is None or not plan.is_current():
            plan = self._found(key, problem, settings)
            self._own.keep(key, plan)
        return plan

    def settled(self, mode: str, request: Request, t: float, y: np.ndarray) -> np.ndarray | None:
        """The state of a mechanism projected onto the constraints of a mode.

        None if the state is too far away, or the mechanism has no suitable machine code.
        """
        plan = self.plan(mode, request.problem, request.settings)
        system = plan.machine_system()
        if system is None or system.contact is not None or system.n_w or system.force_uses_multipliers:
            return None
        if missing_derivatives(system) or (system.velocity_constraint is not None and system.velocity_bias is None):
            return None
        if hasattr(system.mass, "tocsr") or system.n_q + system.n_lambda > _LARGEST_SETTLED:
            return None
        from daedal.mechanics.readiness import settle

        moved = y.copy()
        with plan.inner.starts.pool.lend(system, plain_setting(system, y[: system.n_q])) as assembly:
            projector = assembly.projector("M")  # must stay alive during the call
            good = settle(assembly.address, projector.address, t, moved)
            raised, assembly.bridge.exception = assembly.bridge.exception, None
        if isinstance(raised, KeyboardInterrupt):
            raise raised
        return moved if good and raised is None else None

    def in_machine_code(self, mode: str, request: Request, t: float, y: np.ndarray) -> Any:
        """The problem of a mode with machine code and exact derivatives, if they are finite at a point."""
        plan, problem = self.plan(mode, request.problem, request.settings).direct(irregular=True), request.problem
        if plan is None or type(plan.problem) is not type(problem):
            return problem
        exact = plan.problem.implicit().exact_partials(t, y, np.zeros(y.size))
        return problem if exact is None or not np.isfinite(exact).all() else plan.problem

    def _found(self, key: tuple, problem: Any, settings: Settings) -> Any:
        """The plan for a problem: that stored under `key`, adapted to other parameters if necessary, or a new one."""
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
