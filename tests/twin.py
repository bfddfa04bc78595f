"""Runs in the manual and in the examples, made twice while they are tried: traced, and with functions as they are."""

from collections import Counter
from contextlib import contextmanager

import numpy as np
import pytest

import daedal
from daedal.drive.traced import TracedPlan

ALLOWED = 500.0
"""How far two runs may be apart, in units of the tolerance for one step; multipliers are compared as well."""
UNSTABLE = {"higher-index.md": 1000.0, "discontinuities.md": 1000.0, "gradients.md": 1e4}
"""The same where a pendulum has the second derivative of its constraint alone, where bounces pile up, and where a
pendulum is swung up to where it cannot stay."""
INDEX_3 = 20.0
"""How much more DASSL errs on a crank-slider of index 3, with and without exact derivatives."""
LONG, MOST_STEPS, SHORTEST = 200_000, 10_000, 0.01
"""Steps times the square of the unknowns, as Jacobians by differences cost, beyond which only the beginning of a run is
made twice; steps beyond which that is as short as it may be (chaos goes apart in many of them); the least part."""
MANY = 4
"""Runs with the same functions of which all are made twice; of further ones the 8th, the 16th and so on."""


class Twin:
    """Solves every request once more with functions as they are; notes how far apart the two are, and what is refused.

    Runs with hidden switches are compared up to the first one: friction as it is written takes millions of steps.

    A stand-in for ``TracedPlan.solve``.
    """

    def __init__(self):
        self.gaps: list[float] = []
        self.refused: dict[str, str] = {}
        self._solve = TracedPlan.solve
        self._seen: Counter = Counter()

    def __call__(self, plan: TracedPlan, request):
        if plan.traced is None or not plan.traced.functions or not self._is_due(plan, request):
            return self._solve(plan, request)
        self.refused |= {name: reason.reason for name, reason in plan.traced.refused.items()}
        try:
            solution = self._solve(plan, request)
        except daedal.DaedalError as error:
            with pytest.raises(type(error)):
                plan._plan(None).solve(request)
            raise
        compared, (t0, t1) = solution, request.span
        work = solution.stats.steps * request.problem.n**2
        part = SHORTEST if solution.stats.steps > MOST_STEPS else max(SHORTEST, LONG / max(work, 1))
        end = t0 + part * (t1 - t0) if part < 1.0 else t1
        switch = next((event.t for event in solution.events if event.kind != "event"), t1)
        end = min(end, switch, key=lambda t: abs(t - t0))
        if end != t1:
            request = request.changed(span=(t0, end), times=None)
            compared = self._solve(plan, request)
        self.gaps.append(gap(request, plan._plan(None).solve(request), compared))
        return solution

    def _is_due(self, plan: TracedPlan, request) -> bool:
        """Whether a run is made twice: searches call the same functions again and again."""
        functions = (getattr(request.problem, name, None) for name in plan.traced.functions)
        codes = (getattr(function, "__code__", id(function)) for function in functions)
        key = (type(request.problem), request.problem.n, repr(request.settings.method), *codes)
        self._seen[key] += 1
        count = self._seen[key]
        return count <= MANY or count & (count - 1) == 0


def gap(request, plain, traced) -> float:
    """The largest difference of final values, in units of the tolerance.

    With given times the last one that both have reached counts: an event may come at one of them, to round-off.
    """
    if plain.t.size == 0 or traced.t.size == 0:
        return 0.0 if plain.t.size == traced.t.size else np.inf
    beyond = abs(plain.t.size - traced.t.size)
    shared = min(plain.t.size, traced.t.size) - 1 if request.times is not None and beyond == 1 else -1
    a, b = (
        np.asarray(sol.integrated[shared] if hasattr(sol, "integrated") else sol.y[:, shared])
        for sol in (plain, traced)
    )
    tolerance = np.max(request.settings.rtol) * np.max(np.abs(a), initial=0.0) + np.max(request.settings.atol)
    if "Index3" in str(getattr(plain, "formulation", "")):
        tolerance *= INDEX_3
    return float(np.max(np.abs(a - b), initial=0.0) / tolerance)


@contextmanager
def made_twice(page: str = ""):
    """Make runs twice, and hold them against each other at the end; yields the :class:`Twin`."""
    twin = Twin()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TracedPlan, "solve", lambda plan, request: twin(plan, request))
        yield twin
    assert not twin.refused
    assert max(twin.gaps, default=0.0) <= UNSTABLE.get(page, ALLOWED)
