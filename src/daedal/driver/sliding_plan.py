"""Equations of first-order problems along switching surfaces, prepared when a run first slides."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from daedal.driver.switch_tracking import SwitchTracker, Unfollowable
from daedal.errors import Unevaluable
from daedal.events.event import SwitchingFunctions
from daedal.methods.named_methods import named_method
from daedal.methods.task import Equations, Outcome
from daedal.problems.compile import machine_value, with_numbers
from daedal.symbolic.tracing.mixture import SLACK
from daedal.symbolic.tracing.sliding import sliding_implicit

_ITERATIONS = 20  # maximum number of Newton iterations for consistent values
_CONVERGED = 1e-12  # relative correction below which Newton's method has converged
_SHARE = 1e-2  # atol of the integrals of the fractions, relative to rtol times the interval


class SlidingEquations:
    """Equations along some surfaces, with branch fractions as rates of additional unknowns."""

    def __init__(self, plan, tracker: SwitchTracker, surfaces: list[int], problems: tuple[Any, Any]):
        self._plan, self._follower, self.surfaces = plan, tracker, surfaces
        self.n, self.k = plan.implicit.n, len(surfaces)
        problem, self._begin = (with_numbers(problem, tracker.moded) for problem in problems)
        method = (
            plan.method if plan.method.supports("residual") and len(plan.methods) == 1 else named_method("dassl", {})
        )
        self.ready = method.prepare(Equations(self.n + self.k, problem=problem))
        self.shares = self._found = np.full(self.k, 0.5)

    def found(self, t: float, y: np.ndarray, yp: np.ndarray) -> np.ndarray:
        """Fractions of all switches as computed by :meth:`consistent`; NaN for switches that do not slide."""
        shares = np.full(len(self._follower.switches), np.nan)
        shares[self.surfaces] = self._found
        return shares

    @classmethod
    def family(cls, plan, tracker: SwitchTracker) -> Callable[[list[int]], SlidingEquations | SlidingRate | None]:
        """A cached function that maps surfaces to the equations along them."""
        made: dict[tuple[int, ...], SlidingEquations] = {}
        ordinary = plan.ordinary is not None and tracker.switched.closed is not None
        rate = SlidingRate(plan, tracker) if ordinary else None

        def along(surfaces: list[int]) -> SlidingEquations | SlidingRate | None:
            key = tuple(sorted(surfaces))
            if not key:
                return None
            if rate is not None:
                return rate
            if key not in made:
                problems = tracker.switched.along(key, sliding_implicit)
                if problems is None:
                    raise Unfollowable("the equations along a surface are too large, or nonlinear in the fractions")
                made[key] = cls(plan, tracker, list(key), problems)
            return made[key]

        return along

    def consistent(self, t: float, y: np.ndarray, yp: np.ndarray, algebraic: np.ndarray):
        """Consistent y and y' along the surfaces, with given differential variables; stores the fractions."""
        state, slope = np.append(y, np.zeros(self.k)), np.append(yp, self.shares)
        free, moded = np.append(algebraic, np.zeros(self.k, dtype=bool)), self._follower.moded
        function, matrix = self._begin.residual, self._begin.jacobian
        self._found = np.full(self.k, np.nan)
        for _ in range(_ITERATIONS):
            try:
                still, whole = (matrix(t, state, slope, cj, moded) for cj in (0.0, 1.0))
                missing = function(t, state, slope, moded)
            except Unevaluable:
                return y, yp
            if not all(np.isfinite(x).all() for x in (still, whole, missing)):
                return y, yp
            system = np.where(free, still, whole - still)
            move = np.linalg.lstsq(system, missing, rcond=None)[0]
            state, slope = state - np.where(free, move, 0.0), slope - np.where(free, 0.0, move)
            if np.all(np.abs(move) <= _CONVERGED * (np.abs(np.where(free, state, slope)) + _CONVERGED)):
                self._found = slope[self.n :]
                break
        self.shares = np.clip(slope[self.n :], 0.0, 1.0)
        return state[: self.n], slope[: self.n]

    def task(self, run_state) -> dict[str, Any]:
        """Task overrides, which exclude algebraic variables from the error test, since they may have index 2."""
        plan, (t0, t1) = self._plan, run_state.request.span
        share = _SHARE * float(plan.rtol.max()) * abs(t1 - t0)
        excluded = np.append(run_state.algebraic(), np.zeros(self.k, dtype=bool))
        return {
            "y0": np.append(run_state.y0, np.zeros(self.k)),
            "yp0": np.append(run_state.yp0, self.shares),
            "rtol": np.append(plan.rtol, np.zeros(self.k)),
            "atol": np.append(plan.atol, np.full(self.k, share)),
            "excluded": excluded if excluded.any() else None,
            "index_2": bool(excluded.any()),
        }

    def functions(self, own: SwitchingFunctions | None) -> SwitchingFunctions:
        """The user's events, the ends of modes, and the events that fractions reach 0 or 1."""
        n, k, tracker = self.n, self.k, self._follower
        cut_own = None
        if own is not None:
            inner = own.evaluate
            cut_own = replace(own, evaluate=lambda t, y, yp: inner(t, y[:n], yp[:n]), plain=None)
        base = tracker.functions(n + k, cut_own, lambda t, y, yp: (y[:n], yp[:n]), leading=True)
        evaluate = base.evaluate

        def joined(t, y, yp):
            nu = yp[n:]
            return np.concatenate([np.atleast_1d(evaluate(t, y, yp)), nu + SLACK, 1.0 - nu + SLACK])

        names = tuple(tracker.switches[j].name for j in self.surfaces)
        return base.extended(joined, (*names, *names))

    def shortened(self, outcome: Outcome) -> Outcome:
        """The outcome without the additional unknowns."""
        n = self.n
        outcome.y, outcome.yp, outcome.y_reached = outcome.y[:n], outcome.yp[:n], outcome.y_reached[:n]
        if outcome.dense is not None:
            kept = np.ascontiguousarray(outcome.dense.coefficients[:, :n])
            outcome.dense = replace(outcome.dense, coefficients=kept)
        return outcome

    def left(self, outcome, n_own: int) -> list[tuple[int, int]]:
        """Surfaces that were left, with the side (-1 or 1) of each; changes the kind of their events to "leaves"."""
        outcome.events = [replace(event, y=event.y[: self.n], yp=event.yp[: self.n]) for event in outcome.events]
        return leaving(outcome, n_own, self._follower, self.surfaces)


class SlidingRate:
    """Ordinary differential equations along any surfaces of a problem, with fractions in closed form."""

    def __init__(self, plan, tracker: SwitchTracker):
        closed = tracker.switched.closed
        assert closed is not None  # see `family`
        self._follower, self._closed, self._plan = tracker, closed, plan
        self._problem = with_numbers(self._closed.problem, tracker.moded)
        self._ready: dict[Any, Any] = {}
        self._method: Any = None
        self._is_stiff = False

    def is_stiff(self):
        self._is_stiff = True

    def consistent(self, t: float, y: np.ndarray, yp: np.ndarray, algebraic: np.ndarray):
        """y, unchanged, and y' along the surfaces; NaN if no fractions keep the solution on them."""
        slope = machine_value(self._problem.f, self._problem.params, t, y)
        return y, np.full(y.size, np.nan) if slope is None else slope

    def found(self, t: float, y: np.ndarray, yp: np.ndarray) -> np.ndarray:
        """Fractions of all switches; NaN for those whose surfaces do not allow sliding."""
        shares, k = np.full(len(self._follower.switches), np.nan), len(self._closed.surfaces)
        shares[list(self._closed.surfaces)] = self._closed.balance(t, y, yp, self._follower.moded)[k:]
        return shares

    def task(self, run_state) -> dict[str, Any]:
        """Prepare the method; there are no task overrides."""
        method = named_method("dassl", {}) if self._is_stiff else run_state.choice.method
        if method not in self._ready:
            equations = Equations(self._plan.implicit.n, problem=self._problem, rate=self._problem.f)
            self._ready[method] = method.prepare(equations)
        self._method = method
        return {}

    def functions(self, own: SwitchingFunctions | None) -> SwitchingFunctions:
        """The user's events, the ends of modes, and the events that fractions reach 0 or 1."""
        return self._follower.functions(self._plan.implicit.n, own, along=True)

    @property
    def ready(self) -> Any:
        return self._ready[self._method]

    def shortened(self, outcome: Outcome) -> Outcome:
        """The outcome unchanged, since there are no additional unknowns."""
        return outcome

    def left(self, outcome, n_own: int) -> list[tuple[int, int]]:
        """The surfaces that were left, each with the side; changes the kind of their events to "leaves"."""
        return leaving(outcome, n_own, self._follower, self._closed.surfaces)


def leaving(outcome, n_own: int, tracker: SwitchTracker, surfaces: Sequence[int]) -> list[tuple[int, int]]:
    """The surfaces that were left, each with the side; changes the kind of their events to "leaves"."""
    first, k, found = n_own + 2 * tracker.switched.count, len(surfaces), []
    for i, event in enumerate(outcome.events):
        place = event.index - first
        if place >= 0 and event.kind == "event":
            j, side = surfaces[place % k], -1 if place < k else 1
            found.append((j, side))
            outcome.events[i] = replace(event, index=n_own + j, direction=side, terminal=False, kind="leaves")
    return found
