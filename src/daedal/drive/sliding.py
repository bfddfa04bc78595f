"""First-order problems along the surfaces between branches: made ready when a run first slides there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from daedal.drive.switching import Follower
from daedal.events.event import SwitchingFunctions
from daedal.initial.consistent import complete
from daedal.methods.task import Equations, Task
from daedal.problems.compile import with_numbers
from daedal.tracing.sliding import sliding_implicit

_SHARE = 1e-2  # of the relative tolerance, for the integral of nu in units of the interval


class SlidingEquations:
    """The equations along some surfaces, with the shares of the branches above them as further unknowns' rates."""

    def __init__(self, plan, follower: Follower, surfaces: list[int], problem):
        self._plan, self._follower, self.surfaces = plan, follower, surfaces
        self.n, self.k = plan.implicit.n, len(surfaces)
        self.problem = with_numbers(problem, follower.moded)
        self._ready = plan.method.with_wishes({}).prepare(Equations(self.n + self.k, problem=self.problem))
        self.workspace = self._ready.workspace
        self.shares = np.full(self.k, 0.5)

    @classmethod
    def family(cls, plan, follower: Follower) -> Callable[[list[int]], SlidingEquations | None]:
        """A function from surfaces to the equations along them, which are kept for the run."""
        made: dict[tuple[int, ...], SlidingEquations] = {}

        def along(surfaces: list[int]) -> SlidingEquations | None:
            key = tuple(sorted(surfaces))
            if not key:
                return None
            if key not in made:
                problem = sliding_implicit(follower.switched, key)
                assert problem is not None
                made[key] = cls(plan, follower, list(key), problem)
            return made[key]

        return along

    def consistent(self, t: float, y: np.ndarray, yp: np.ndarray, weights: np.ndarray, h: float) -> np.ndarray:
        """y' along the surfaces; the shares are kept."""
        state, slope = np.append(y, np.zeros(self.k)), np.append(yp, np.full(self.k, 0.5))
        self.workspace.begin()
        result = complete(self.workspace, t, state, slope, h, np.append(weights, np.full(self.k, h)))
        found = result.yp if result.converged else slope
        self.shares = np.clip(found[self.n :], 0.0, 1.0)
        return found[: self.n]

    def start(self, course) -> dict[str, Any]:
        """What differs in the task."""
        plan, (t0, t1) = self._plan, course.request.span
        share = _SHARE * float(plan.rtol.max()) * abs(t1 - t0)
        excluded = course.excluded
        return {
            "y0": np.append(course.y0, np.zeros(self.k)),
            "yp0": np.append(course.yp0, self.shares),
            "rtol": np.append(plan.rtol, np.zeros(self.k)),
            "atol": np.append(plan.atol, np.full(self.k, share)),
            "excluded": None if excluded is None else np.append(excluded, np.zeros(self.k, dtype=bool)),
        }

    def functions(self, own: SwitchingFunctions | None) -> SwitchingFunctions:
        """Events: the user's, the ends of modes, and shares that reach 0 or 1."""
        n, k, follower = self.n, self.k, self._follower
        cut_own = None
        if own is not None:
            inner = own.evaluate
            cut_own = replace(own, evaluate=lambda t, y, yp: inner(t, y[:n], yp[:n]), plain=None)
        base = follower.functions(n + k, cut_own, lambda t, y, yp: (y[:n], yp[:n]))
        evaluate = base.evaluate

        def joined(t, y, yp):
            nu = yp[n:]
            return np.concatenate([np.atleast_1d(evaluate(t, y, yp)), nu, 1.0 - nu])

        names = tuple(follower.switches[j].name for j in self.surfaces)
        return base.extended(joined, (*names, *names))

    def integrate(self, task: Task):
        """Integrate, and keep what belongs to the problem."""
        outcome, n = self._ready.integrate(task), self.n
        outcome.y, outcome.yp, outcome.y_reached = outcome.y[:n], outcome.yp[:n], outcome.y_reached[:n]
        if outcome.dense is not None:
            kept = np.ascontiguousarray(outcome.dense.coefficients[:, :n])
            outcome.dense = replace(outcome.dense, coefficients=kept)
        return outcome

    def left(self, outcome, n_own: int) -> list[tuple[int, int]]:
        """The surfaces that were left, and to which side; their events are taken out."""
        first = n_own + 2 * self._follower.switched.count
        found, kept = [], []
        for event in outcome.events:
            event = replace(event, y=event.y[: self.n], yp=event.yp[: self.n])
            place = event.index - first
            if place < 0:
                kept.append(event)
                continue
            j, side = self.surfaces[place % self.k], -1 if place < self.k else 1
            found.append((j, side))
            kept.append(replace(event, index=n_own + j, direction=side, terminal=False, kind="leaves"))
        outcome.events = kept
        return found
