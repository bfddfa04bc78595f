"""Runs in the manual and in the examples, made twice while they are tried: traced, and with functions as they are."""

from collections import Counter
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import pytest

import daedal
from daedal.driver.run_points import points_of
from daedal.driver.traced import TracedPlan
from daedal.problems.checks import full_matrix
from daedal.problems.compile import last_argument

ALLOWED = 20.0
"""How far two runs may be apart, in units of the tolerance for one step: a run adds up the errors of its steps, and
with and without exact derivatives it takes other steps. Multipliers are compared as well."""
REFINED = (1e-2, 1e-4)
"""Where runs are farther apart, as chaos, bounces and a higher index make them, both are repeated with these parts of
their tolerances. Runs of the same functions come together then; if they do not, the functions differ."""
FINEST = 1e-11
INDEX_3 = 20.0
"""How much more DASSL errs on a crank-slider of index 3, with and without exact derivatives."""
LONG, MOST_STEPS, SHORTEST = 200_000, 10_000, 0.01
"""Steps times the square of the unknowns, as Jacobians by differences cost, beyond which only the beginning of a run is
made twice; steps beyond which that is as short as it may be (chaos goes apart in many of them); the least part."""
DIRECTIONS, DERIVATIVE = 3, 1e-4
"""Directions in which derivatives are compared with differences, and the error of them that is not round-off."""
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
        self.wrong: list[str] = []
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
        plain = plan._plan(None).solve(request)
        found = gap(request, plain, compared)
        for part in REFINED:
            if found <= ALLOWED:
                break
            found = min(found, self._gap_at(part, plan, request))
        self.gaps.append(found)
        points = list(points_of(plan.problem, compared))
        self.wrong += wrong_derivatives(plan, points[:-1] if end == switch != t1 else points)
        return solution

    def _gap_at(self, part: float, plan: TracedPlan, request) -> float:
        """How far runs with a part of the tolerances are apart, in units of what the run itself asks for."""
        asked = request.settings
        finer = replace(
            asked, rtol=np.maximum(part * np.asarray(asked.rtol), FINEST), atol=part * np.asarray(asked.atol)
        )
        repeated, request = TracedPlan(plan.problem, finer, plan._make), replace(request, settings=finer)
        try:
            traced, plain = self._solve(repeated, request), repeated._plan(None).solve(request)
        except daedal.DaedalError:  # not to be had so accurately
            return np.inf
        return gap(replace(request, settings=asked), plain, traced)

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


def wrong_derivatives(plan: TracedPlan, points) -> list[str]:
    """Matrices of the traced problem that are not what differences of the functions as they are say, in words.

    In a few random directions at the middle and the end of a run, unless that is a switch. Newton's method comes to the
    right solution with a
    matrix that is not quite right, only later.
    """
    found, rng = [], np.random.default_rng(1)
    for t, point in points:
        if "yp" in point or ("xp" in point and "z" in point):
            found += _wrong_matrix_of_newton(plan, t, point, rng)
        elif "q" in point:
            found += _wrong_matrix_of_constraints(plan, t, point["q"], rng)
    return found


def _wrong_matrix_of_newton(plan, t, point, rng) -> list[str]:
    traced, plain = plan.inner.problem.implicit(), plan.problem.implicit()
    if traced.jacobian is None:
        return []
    y = point["y"] if "yp" in point else np.concatenate([point["y"], point["z"]])
    yp, cj, last = point.get("yp", point.get("xp")), 3.0, last_argument(traced.jacobian, traced.params)
    matrix = full_matrix(traced, traced.jacobian(t, y.copy(), yp.copy(), cj, *last))
    return _not_the_derivative("Newton's method", matrix, lambda d: plain.evaluate(t, y + d, yp + cj * d), y, rng)


def _wrong_matrix_of_constraints(plan, t, q, rng) -> list[str]:
    system, stated = plan.inner.problem, plan.problem
    if system.constraint_jacobian is None or stated.constraint is None:
        return []
    last = [last_argument(function, system.params) for function in (system.constraint_jacobian, stated.constraint)]
    matrix = np.asarray(system.constraint_jacobian(t, q.copy(), *last[0]), dtype=float)
    return _not_the_derivative(
        "the constraints", matrix, lambda d: np.asarray(stated.constraint(t, q + d, *last[1]), dtype=float), q, rng
    )


def _not_the_derivative(what, matrix, function, at, rng) -> list[str]:
    """Central differences of two lengths, which must agree with each other before they say anything."""
    size = np.maximum(np.abs(at), 1e-3 * np.max(np.abs(at), initial=1.0))  # beyond the round-off of constants
    for _ in range(DIRECTIONS):
        direction = size * rng.choice([-1.0, 1.0], at.size) * rng.uniform(0.5, 1.0, at.size)
        slopes = [(function(h * direction) - function(-h * direction)) / (2.0 * h) for h in (1e-5, 2e-5)]
        scale = np.abs(matrix) @ np.abs(direction) + np.max(np.abs(slopes[0]), initial=0.0) * 1e-6
        sure = np.abs(slopes[0] - slopes[1]) <= 1e-5 * scale
        wrong = sure & (np.abs(matrix @ direction - slopes[0]) > DERIVATIVE * scale)
        if wrong.any():
            return [f"equation {int(np.argmax(wrong))} in the matrix of {what}"]
    return []


@contextmanager
def made_twice():
    """Make runs twice, and hold them against each other at the end; yields the :class:`Twin`."""
    twin = Twin()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TracedPlan, "solve", lambda plan, request: twin(plan, request))
        yield twin
    assert not twin.refused
    assert not twin.wrong
    assert max(twin.gaps, default=0.0) <= ALLOWED
