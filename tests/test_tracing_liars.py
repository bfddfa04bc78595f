"""Functions that lie, in every class of problem: each lie is found, said, and the problem solved all the same."""

import math
import random
import warnings
from types import SimpleNamespace

import numpy as np
import pytest

import daedal
from daedal.symbolic.tracing.agreement import disagreement

# --- lies: each takes an honest function and returns one with the same values -----------------------------------------


def counting(honest):
    calls = [0]

    def lying(t, *arguments):
        calls[0] += 1
        return honest(t, *arguments)

    return lying


def remembering(honest):
    memory = SimpleNamespace(last=0.0)

    def lying(t, *arguments):
        memory.last = t
        return honest(t, *arguments)

    return lying


last_seen = 0.0


def storing(honest):
    def lying(t, *arguments):
        global last_seen
        last_seen = t
        return honest(t, *arguments)

    return lying


def gambling(honest):
    def lying(t, *arguments):
        return np.asarray(honest(t, *arguments)) * (1.0 + 1e-15 * random.random())

    return lying


def drawing(honest):
    generator = np.random.default_rng(7)

    def lying(t, *arguments):
        return np.asarray(honest(t, *arguments)) * (1.0 + 1e-15 * generator.random())

    return lying


def mutating(honest):
    def lying(t, *arguments):
        result = np.asarray(honest(t, *arguments))
        arguments[0][0] = 17.0
        return result

    return lying


def reshaping(honest):
    """Its values are right, but not always in a vector."""

    def lying(t, first, *arguments):
        result = np.asarray(honest(t, first, *arguments))
        return result if first[0] < 0.9 else result.reshape(1, 1, -1)

    return lying


LIES = {
    counting: "changes 'calls', which is defined outside it",
    remembering: "attribute",
    storing: "global",
    gambling: "random",
    drawing: "random",
    mutating: "changes its arguments",
}


# --- problems with one function that may lie --------------------------------------------------------------------------


def implicit(lie):
    return daedal.ImplicitDAE(lie(lambda t, y, yp: [yp[0] - y[1], yp[1] + np.sin(y[0])]), 2), ([1.0, 0.0], None)


def semi_explicit(lie):
    f = lie(lambda t, y, z: [y[1], -z[0]])
    return daedal.SemiExplicitDAE(f, lambda t, y, z: [z[0] - np.sin(y[0])], 2, 1), ([1.0, 0.0], None)


def semi_explicit_constraint(lie):
    g = lie(lambda t, y, z: [z[0] - np.sin(y[0])])
    return daedal.SemiExplicitDAE(lambda t, y, z: [y[1], -z[0]], g, 2, 1), ([1.0, 0.0], None)


def second_order(lie):
    residual = lie(lambda t, x, xp, xpp: [xpp[0] + np.sin(x[0])])
    return daedal.SecondOrderDAE(residual, 1, order=[2]), ([1.0], [0.0])


def force(lie):
    return daedal.MechanicalSystem(1.0, lie(lambda t, q, v: [-np.sin(q[0])]), n_q=1), ([1.0], [0.0])


def mass(lie):
    honest = lie(lambda t, q: np.eye(2) * (1.0 + t))
    system = daedal.MechanicalSystem(
        honest, lambda t, q, v: [0.0, -9.81], lambda t, q: [q @ q - 1.0], n_q=2, n_constraints=1
    )
    return system, ([1.0, 0.0], [0.0, 0.0])


def constraint(lie):
    honest = lie(lambda t, q: [q[0] ** 2 + q[1] ** 2 - 1.0])
    system = daedal.MechanicalSystem(1.0, lambda t, q, v: [0.0, -9.81], honest, n_q=2, n_constraints=1)
    return system, ([1.0, 0.0], [0.0, 0.0])


PROBLEMS = {
    implicit: "residual",
    semi_explicit: "f",
    semi_explicit_constraint: "g",
    second_order: "residual",
    force: "force",
    mass: "mass",
    constraint: "constraint",
}


@pytest.mark.parametrize("make", PROBLEMS, ids=lambda make: make.__name__)
@pytest.mark.parametrize("lie", LIES, ids=lambda lie: lie.__name__)
def test_a_lie_is_found_and_the_problem_is_solved(make, lie):
    options = {"rtol": 1e-8, "atol": 1e-10}
    problem, start = make(lie)
    sol = daedal.solve(problem, (0.0, 1.0), start, **options)
    name = PROBLEMS[make]
    assert sol.functions[name].startswith("Python: ") and LIES[lie] in sol.functions[name]
    others = [words for other, words in sol.functions.items() if other != name]
    assert all(words.startswith(("traced", "exact")) for words in others)
    honest, start = make(lambda function: function)
    plain = daedal.solve(honest, (0.0, 1.0), start, compile="never", **options)
    np.testing.assert_allclose(end(sol), end(plain), atol=1e-6)


PUSH = 0.0


def pushed(honest):
    def reading(t, *arguments):
        return np.asarray(honest(t, *arguments)) + PUSH

    return reading


def end(solution):
    return np.concatenate([solution.q[:, -1], solution.v[:, -1]] if hasattr(solution, "q") else [solution.y[:, -1]])


@pytest.mark.parametrize("make", PROBLEMS, ids=lambda make: make.__name__)
def test_a_changed_global_is_seen_by_the_next_run(make, monkeypatch):
    options = {"rtol": 1e-8, "atol": 1e-10, "correct_initial": True}
    problem, start = make(pushed)
    solver = daedal.prepare(problem, **options)
    before = daedal.solve(problem, (0.0, 1.0), start, **options)
    assert before.functions[PROBLEMS[make]].startswith("traced")
    np.testing.assert_allclose(end(solver.solve((0.0, 1.0), start)), end(before), atol=1e-12)
    monkeypatch.setitem(globals(), "PUSH", 1e-2)
    after = daedal.solve(problem, (0.0, 1.0), start, **options)
    plain = daedal.solve(problem, (0.0, 1.0), start, compile="never", **options)
    assert after.functions[PROBLEMS[make]].startswith("traced")
    assert np.abs(end(after) - end(before)).max() > 1e-3
    np.testing.assert_allclose(end(after), end(plain), atol=1e-6)
    np.testing.assert_allclose(end(solver.solve((0.0, 1.0), start)), end(plain), atol=1e-6)


@pytest.mark.parametrize("make", PROBLEMS, ids=lambda make: make.__name__)
def test_results_of_different_shapes_are_refused_as_without_tracing(make):
    problem, start = make(reshaping)
    name = PROBLEMS[make]
    messages = []
    for choice in ("never", "auto"):
        with pytest.raises(daedal.InvalidProblemError, match="shape") as caught:
            daedal.solve(problem, (0.0, 1.0), start, compile=choice)
        messages.append(str(caught.value))
    assert messages[0] == messages[1] and messages[0].startswith(name)
    assert "shape" in problem.functions[name]


@pytest.mark.parametrize("lie", [lie for lie in LIES if lie is not mutating], ids=lambda lie: lie.__name__)
def test_coefficients_of_linear_problems_may_lie_too(lie):
    """x' = -x + y, x + y = q(t) with q = sin: x' = sin t - 2 x."""
    options = {"rtol": 1e-8, "atol": 1e-10}
    q = lie(lambda t: [-math.sin(t)])
    problem = daedal.LinearDAE([[-1.0]], [[1.0]], [[1.0]], [[1.0]], [0.0], q, n_x=1, n_y=1)
    sol = daedal.solve(problem, (0.0, 1.0), ([0.0], [0.0]), **options)
    assert sol.y[0, -1] == pytest.approx((np.exp(-2.0) + 2 * np.sin(1.0) - np.cos(1.0)) / 5, abs=1e-7)
    stabilised = daedal.solve(problem, (0.0, 1.0), ([0.0], [0.0]), formulation="stabilised_reduction", **options)
    assert stabilised.y[0, -1] == pytest.approx(sol.y[0, -1], abs=1e-6)
    assert LIES[lie] in problem.functions["g"] and problem.functions["f"].startswith("traced")


def vanishing(t, y, z):
    """Constraints that cancel to round-off near z = y."""
    return [z[0] ** 3 - y[0] ** 3, np.sin(z[1]) ** 5 - np.sin(y[1]) ** 5]


@pytest.mark.parametrize("method", ["dassl", "radau", "rosenbrock"])
def test_constraints_that_cancel_to_round_off_are_no_lie(method):
    """Machine code and Python differ by round-off of the terms, which is far more than that of their difference."""
    problem, start = daedal.SemiExplicitDAE(lambda t, y, z: -z, vanishing, 2, 2), ([1.1, 0.7], [1.1, 0.7])
    with warnings.catch_warnings():
        warnings.simplefilter("error", daedal.errors.TraceWarning)
        for rtol in (1e-3, 1e-6, 1e-9):
            sol = daedal.solve(problem, (0.0, 1.0), start, method=method, rtol=rtol, atol=rtol)
            np.testing.assert_allclose(sol.y[:2, -1], np.exp(-1.0) * np.array(start[0]), rtol=100.0 * rtol)
    assert problem.functions["g"].startswith("traced")


@pytest.mark.parametrize("off", [0.0, 1e-16, 1e-12, 1e-9, 1e-3])
@pytest.mark.parametrize(("lie", "component"), [(0.0, None), (1e-15, None), (1e-9, 1), (1e-6, 1)])
def test_a_lie_beside_terms_that_cancel_is_seen(off, lie, component):
    """A difference of 1e-9 is no round-off of terms of size 1, however small their difference is."""

    def rounded_otherwise(t, y, z):
        sines = np.sin(z[1]), np.sin(y[1])
        first = z[0] * z[0] * z[0] - y[0] * y[0] * y[0]
        return 0, np.array([first, sines[0] ** 4 * sines[0] - sines[1] ** 4 * sines[1] + lie])

    function = SimpleNamespace(evaluate=rounded_otherwise, reference=vanishing)
    y = np.array([1.1, 0.7])
    traced = SimpleNamespace(layout=None, arguments={"g": ("y", "z")})
    found = disagreement(traced, {"g": function}, None, 1.0, {"y": y, "z": y * (1.0 + off)})
    assert (None if found is None else found.component) == component
