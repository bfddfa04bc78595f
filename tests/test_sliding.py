"""Filippov's solutions: the four cases at a surface, sliding as a DAE of index 2, and what cannot be decided."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import njit

import daedal
from daedal import library


def run(problem, t1, x0, tol=1e-8, **options):
    return daedal.solve(problem, (0.0, t1), problem.entry((0.0, t1), x0), rtol=tol, atol=tol, **options)


def steady(above, below, surface=lambda t, x: x[0], **options):
    """x' = above or below, constant."""
    return daedal.hybrid.Filippov(lambda t, x: np.array([above]), lambda t, x: np.array([below]), surface, 1, **options)


# --- sliding --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [{}, {"sliding": "closed"}, {"gradient": lambda t, x: [1.0, 1.0]}, {"sliding_method": "phem56"}],
    ids=["index2", "closed", "gradient", "half-explicit"],
)
def test_relay_slides_as_its_closed_solution(options):
    model = library.relay_control()
    relay = daedal.hybrid.Filippov(
        lambda t, x: [x[1], -1.0], lambda t, x: [x[1], 1.0], lambda t, x: x[0] + x[1], 2, **options
    )
    sol = run(relay, 3.0, [0.5, 0.0])
    assert [event.target for event in sol.events] == ["sliding"]
    assert sol.events[0].t == pytest.approx(model.extra["switch"], abs=1e-9)
    for t in (0.2, 0.41, 0.42, 1.0, 2.0, 3.0):
        state, expected = sol(t), model.extra["exact"](t)
        np.testing.assert_allclose(state[:2], expected[:2], atol=2e-7)
        assert state[-1] == pytest.approx(expected[-1], abs=5e-4 if "sliding_method" in options else 1e-5)
    on = sol.mode == "sliding"
    limit = 1e-6 if options.get("sliding") == "closed" else 1e-10
    assert np.max(np.abs(sol["x[0]"] + sol["x[1]"])[on]) < limit


def test_error_of_sliding_falls_with_the_tolerance():
    model = library.relay_control()
    errors = []
    for tol in (1e-4, 1e-6, 1e-8):
        sol = daedal.solve(model.problem, model.t_span, model.initial, rtol=tol, atol=tol)
        errors.append(np.max(np.abs(sol["x1"][-1] - model.reference.y[0])))
    assert errors[2] < 1e-2 * errors[0]
    assert np.all(np.array(errors) < [1e-3, 1e-5, 1e-7])


def test_oscillator_with_friction_has_the_events_of_its_closed_solution():
    model = library.friction_oscillator()
    problem = model.extra["filippov"]
    sol = run(problem, 9.0, [3.0, 4.0], 1e-9)
    np.testing.assert_allclose(sol.events.t, model.extra["events"], atol=1e-6, rtol=0.0)
    assert [event.target for event in sol.events] == ["below", *["sliding", "below"] * 4]
    sliding = [segment for segment in sol.segments if segment.mode == "sliding"]
    for segment in sliding:
        assert segment.solution.y[3, -1] == pytest.approx(0.0, abs=1e-6)  # nu = 0 at the slip, as (7.6) has it
        assert np.all(segment.solution.y[3] > -1e-6) and np.all(segment.solution.y[3] < 1.0)


def test_control_leaves_at_one_where_the_upper_side_begins_to_pull_away():
    # a1 = t - 1, a2 = 2: nu = 2/(3 - t) reaches 1 at t = 1, then x = (t - 1)^2/2
    problem = daedal.hybrid.Filippov(lambda t, x: [t - 1.0], lambda t, x: [2.0], lambda t, x: x[0], 1)
    sol = run(problem, 2.0, [0.0])
    assert sol.events.rows()[0][1:] == ("nu = 1", "transition", "sliding", "above", "enclosed")
    assert sol.events[0].t == pytest.approx(1.0, abs=1e-9)
    assert sol.y[0, -1] == pytest.approx(0.5, abs=1e-7)
    assert sol(0.5)[-1] == pytest.approx(0.8, abs=1e-7)


def test_a_moving_surface_is_followed():
    # s = x - sin t: slides as long as |cos t| < 2
    problem = daedal.hybrid.Filippov(lambda t, x: [-2.0], lambda t, x: [2.0], lambda t, x: x[0] - np.sin(t), 1)
    sol = run(problem, 10.0, [3.0])
    assert sol.mode[-1] == "sliding"
    assert sol.y[0, -1] == pytest.approx(math.sin(10.0), abs=1e-7)
    assert sol["nu"][-1] == pytest.approx(0.5 - 0.25 * math.cos(10.0), abs=1e-6)


@pytest.mark.parametrize("sliding", ["index2", "closed"])
def test_sliding_with_algebraic_variables(sliding):
    # 0 = y - x1^2; x2' = -/+ (1 + y) on either side of x2 = 0, x1' = -x1: nu = 1/2 while it slides
    problem = daedal.hybrid.Filippov(
        lambda t, x, y: [-x[0], -1.0 - y[0]],
        lambda t, x, y: [-x[0], 1.0 + y[0]],
        lambda t, x: x[1],
        2,
        constraint=lambda t, x, y: [y[0] - x[0] ** 2],
        n_y=1,
        names=["a", "b", "square"],
        sliding=sliding,
    )
    sol = daedal.solve(problem, (0.0, 2.0), problem.entry((0.0, 2.0), ([1.0, 0.3], [1.0])), rtol=1e-8, atol=1e-8)
    # b = 0.3 - t - (1 - e^(-2t))/2 = 0
    t = sol.events[0].t
    assert 0.3 - t - 0.5 * (1.0 - math.exp(-2.0 * t)) == pytest.approx(0.0, abs=1e-8)
    assert sol.mode[-1] == "sliding"
    np.testing.assert_allclose(
        [sol[name][-1] for name in ("a", "b", "square", "nu")], [math.exp(-2.0), 0.0, math.exp(-4.0), 0.5], atol=1e-7
    )


@pytest.mark.slow
def test_compiled_functions_give_the_same():
    model = library.relay_control()
    compiled = daedal.hybrid.Filippov(
        njit(lambda t, x, p: np.array([x[1], -p[0]])),
        njit(lambda t, x, p: np.array([x[1], p[0]])),
        njit(lambda t, x, p: x[0] + x[1]),
        2,
        params=np.array([1.0]),
    ).compiled()
    sol = run(compiled, 3.0, [0.5, 0.0])
    np.testing.assert_allclose([sol["x[0]"][-1], sol["nu"][-1]], model.extra["exact"](3.0)[[0, 2]], atol=2e-7)


# --- the four cases -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("above", "below", "mode"),
    [(1.0, 2.0, "above"), (-1.0, -2.0, "below"), (-1.0, 2.0, "sliding"), (0.0, 2.0, "sliding"), (1.0, 0.0, "above")],
    ids=["up", "down", "sliding", "tangent above", "tangent below"],
)
def test_rates_decide_where_a_run_begins(above, below, mode):
    problem = steady(above, below)
    assert problem.entry((0.0, 1.0), [0.0])[0] == mode
    assert problem.rates(0.0, [0.0]) == (above, below)


@pytest.mark.parametrize(("x0", "above", "below"), [(1.0, -1.0, -2.0), (-1.0, 2.0, 1.0)], ids=["down", "up"])
def test_crossing_is_exact(x0, above, below):
    sol = run(steady(above, below), 2.0, [x0])
    assert [event.target for event in sol.events] == ["below" if x0 > 0.0 else "above"]
    assert sol.events[0].t == pytest.approx(1.0, abs=1e-12)
    assert sol.y[0, -1] == pytest.approx(below if x0 > 0.0 else above, abs=1e-10)


def test_degenerate_crossing_of_the_source():
    # example 7.6: both rates vanish at the triple zero of s
    problem = daedal.hybrid.Filippov(
        lambda t, x: [3.0 * (t - 3.0) ** 2], lambda t, x: [math.sin(t - 3.0)], lambda t, x: 2.0 - x[0], 1
    )
    sol = run(problem, 4.0, [-25.0])
    assert sol.y[0, -1] == pytest.approx(3.0 - math.cos(1.0), abs=1e-5)
    assert sol.mode[-1] == "below"


# --- what cannot be decided -----------------------------------------------------------------------------------------


def test_a_repelling_surface_is_reported():
    with pytest.raises(daedal.InconsistentInitialError, match=r"repels on both sides.*a1 = 1 > 0 > a2 = -1"):
        steady(1.0, -1.0).entry((0.0, 1.0), [0.0])


def test_a_surface_that_begins_to_repel_ends_the_run_with_what_was_computed():
    # a1 = t - 1 and a2 = 1 - t change their signs together
    problem = daedal.hybrid.Filippov(lambda t, x: [t - 1.0], lambda t, x: [1.0 - t], lambda t, x: x[0], 1)
    with pytest.raises(daedal.DaedalError, match=r"at t = 1(\.0|$| )") as caught:
        run(problem, 2.0, [0.0])
    assert caught.value.solution.t[-1] == pytest.approx(1.0, abs=1e-6)


def test_degenerate_rates_are_reported():
    with pytest.raises(daedal.InconsistentInitialError, match="both sides are tangential to the surface"):
        steady(0.0, 0.0).entry((0.0, 1.0), [0.0])


def test_several_surfaces_are_refused():
    problem = steady(1.0, -1.0, lambda t, x: [x[0], x[0] - 1.0])
    with pytest.raises(daedal.InvalidProblemError, match=r"surface returned 2 values.*several surfaces intersect"):
        problem.entry((0.0, 1.0), [0.5])


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ({"n": 0}, "n must"),
        ({"sliding": "fast"}, "sliding must be one of index2, closed"),
        ({"n_y": 1}, "constraint and n_y"),
        ({"names": ["nu"]}, "'nu' and"),
        ({"surface": 3.0}, "surface"),
        ({"gradient": 1.0}, "gradient"),
    ],
    ids=["n", "sliding", "constraint", "names", "surface", "gradient"],
)
def test_bad_arguments_are_named(arguments, match):
    given_ = {"surface": lambda t, x: x[0], "n": 1} | arguments
    with pytest.raises(daedal.InvalidProblemError, match=match):
        daedal.hybrid.Filippov(lambda t, x: [1.0], lambda t, x: [1.0], **given_)


def test_backwards_is_refused():
    with pytest.raises(daedal.InvalidProblemError, match="backwards"):
        steady(-1.0, 1.0).entry((1.0, 0.0), [0.0])


def test_exceptions_of_the_user_arrive_unchanged():
    def surface(t, x):
        if t > 0.5:
            raise ZeroDivisionError("mine")
        return x[0] + 10.0

    with pytest.raises(ZeroDivisionError, match="mine"):
        run(steady(1.0, 1.0, surface), 1.0, [0.0])


# --- rates without a gradient ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "surface",
    [lambda t, x: x[0] ** 2 * x[1] - np.sin(t), lambda t, x: abs(x[0]) * abs(x[0]) * float(x[1]) - math.sin(t)],
    ids=["complex steps", "differences"],
)
def test_rates_of_a_surface(surface):
    problem = daedal.hybrid.Filippov(lambda t, x: [1.0, 2.0], lambda t, x: [x[1], -x[0]], surface, 2)
    t, x = 0.7, np.array([1.3, -0.4])
    expected = [2.0 * x[0] * x[1] * f[0] + x[0] ** 2 * f[1] - math.cos(t) for f in ((1.0, 2.0), (x[1], -x[0]))]
    np.testing.assert_allclose(problem.rates(t, x), expected, rtol=1e-8)


# --- symmetry -------------------------------------------------------------------------------------------------------


@settings(max_examples=10, deadline=None)
@given(st.floats(0.1, 0.45), st.floats(-0.05, 0.3), st.sampled_from([1e-3, 7.0, 1e4]))
def test_scaling_the_surface_and_reflection_change_nothing(a, b, factor):
    x0 = np.array([a, b])
    plain = run(library.relay_control().problem, 1.0, x0)
    scaled = daedal.hybrid.Filippov(
        lambda t, x: [x[1], -1.0], lambda t, x: [x[1], 1.0], lambda t, x: factor * (x[0] + x[1]), 2
    )
    mirrored = daedal.hybrid.Filippov(lambda t, x: [x[1], -1.0], lambda t, x: [x[1], 1.0], lambda t, x: x[0] + x[1], 2)
    other = run(scaled, 1.0, x0)
    np.testing.assert_allclose(other.events.t, plain.events.t, atol=1e-9)
    np.testing.assert_allclose(other.y[:2, -1], plain.y[:2, -1], atol=1e-6)
    mirror = run(mirrored, 1.0, -x0)
    np.testing.assert_allclose(mirror.events.t, plain.events.t, atol=1e-9)
    np.testing.assert_allclose(mirror.y[:2, -1], -plain.y[:2, -1], atol=1e-7)
    np.testing.assert_allclose(mirror["nu"][-1], 1.0 - plain["nu"][-1], atol=1e-6)


def test_rates_do_not_depend_on_what_was_asked_before():
    """A function that takes complex numbers in one branch only: each point has its own derivative."""

    def surface(t, x):
        return x[0] ** 3 if x[0].real > 0.0 else float(abs(x[0])) - 2.0 * x[1]

    def relay():
        return daedal.hybrid.Filippov(lambda t, x: [1.0, 1.0], lambda t, x: [1.0, -1.0], surface, 2)

    points = [np.array(x) for x in ([0.5, 0.2], [-0.5, 0.1], [0.0, 1.0], [2.0, -1.0])]
    alone = [relay().rates(0.0, x) for x in points]
    for order in ([0, 1, 2, 3], [3, 2, 1, 0], [1, 3, 0, 2]):
        used = relay()
        assert {i: used.rates(0.0, points[i]) for i in order} == dict(enumerate(alone))
