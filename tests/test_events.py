"""Root finding as in DASSLRT: order, direction, multiplicity, resolution, the start, and what an event leaves alone."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import daedal
from daedal import Event

UNIT_ROUNDOFF = np.finfo(float).eps
CLOCK = daedal.ImplicitDAE(lambda t, y, yp: [yp[0] - 1.0], 1)  # y = t, which the interpolant reproduces
OSCILLATOR = daedal.ImplicitDAE(lambda t, y, yp: [yp[0] - y[1], yp[1] + y[0]], 2)  # y = (sin t, cos t)


def clock(events, t1=10.0, **options):
    return daedal.solve(CLOCK, (0.0, t1), ([0.0], [1.0]), events=events, **options)


def oscillate(events, t1=20.0, **options):
    options = {"rtol": 1e-9, "atol": 1e-9} | options
    return daedal.solve(OSCILLATOR, (0.0, t1), ([0.0, 1.0], [1.0, 0.0]), events=events, **options)


def times(sol):
    return np.array([event.t for event in sol.events])


# --- where ----------------------------------------------------------------------------------------------------


@given(st.lists(st.floats(1e-3, 9.9), min_size=1, max_size=8, unique_by=lambda c: round(c, 6)))
def test_roots_come_in_the_order_of_time_whichever_function_they_belong_to(places):
    """Large steps hold several roots of different functions."""
    sol = clock([Event(lambda t, y, c=c: y[0] - c) for c in places])
    found = times(sol)
    assert [event.index for event in sol.events] == list(np.argsort(places))
    assert np.all(np.diff(found) > 0.0)
    np.testing.assert_allclose(found, np.sort(places), rtol=1e-12)


@given(st.floats(1e-6, 9.99))
def test_root_is_located_to_the_resolution_from_behind(place):
    """The right end of a bracket of 100 u (|t| + |h|): g has changed its sign there."""
    sol = clock(lambda t, y: t - place)
    (event,) = sol.events
    width = 100.0 * UNIT_ROUNDOFF * (abs(sol.t[-1]) + np.max(sol.history.h))
    assert 0.0 <= event.t - place <= width


@pytest.mark.parametrize("power", [1, 3, 7])
def test_flat_and_steep_functions_are_located_to_the_resolution(power):
    """The Illinois algorithm must not creep on functions that are far from straight."""
    for function in (
        lambda t, y: (t - 3.3) ** power,
        lambda t, y: math.copysign(abs(t - 3.3) ** (1.0 / power), t - 3.3),
        lambda t, y: math.expm1(power * (t - 3.3)),
    ):
        sol = clock(function, method="dassl")  # whose steps are searched at once
        (event,) = sol.events
        assert abs(event.t - 3.3) < 1e-11
        assert sol.stats.event_evaluations < sol.stats.steps + 150


def test_jump_of_a_switching_function_is_located():
    sol = clock(lambda t, y: -1.0 if t < 4.0 else 1.0)
    (event,) = sol.events
    assert 0.0 <= event.t - 4.0 < 1e-10


def test_times_of_a_nonlinear_solution_agree_with_closed_forms():
    sol = oscillate([Event(lambda t, y: y[0], name="sine"), Event(lambda t, y: y[1] - 0.5, name="cosine")])
    sine = [event.t for event in sol.events if event.name == "sine"]
    cosine = [event.t for event in sol.events if event.name == "cosine"]
    np.testing.assert_allclose(sine, math.pi * np.arange(1, 7), atol=1e-6)
    third = math.pi / 3.0
    expected = sorted([third + 2.0 * math.pi * k for k in range(4)] + [2.0 * math.pi * k - third for k in range(1, 4)])
    np.testing.assert_allclose(cosine, [t for t in expected if t < 20.0], atol=1e-6)


def test_located_times_converge_with_the_tolerance():
    errors = [
        np.max(np.abs(times(oscillate(lambda t, y: y[0], rtol=tol, atol=tol)) - math.pi * np.arange(1, 7)))
        for tol in (1e-4, 1e-6, 1e-8)
    ]
    assert errors[0] > 10.0 * errors[1] > 100.0 * errors[2]


def test_falling_body_reaches_the_ground_when_it_must():
    problem = daedal.ImplicitDAE(lambda t, y, yp: [yp[0] - y[1], yp[1] + 9.81], 2)
    ground = Event(lambda t, y: y[0], terminal=True, direction=-1)
    sol = daedal.solve(problem, (0.0, 10.0), ([5.0, 3.0], [3.0, -9.81]), events=ground, rtol=1e-10, atol=1e-12)
    expected = (3.0 + math.sqrt(9.0 + 2.0 * 9.81 * 5.0)) / 9.81
    assert sol.events[0].t == pytest.approx(expected, rel=1e-8)


@pytest.mark.slow
def test_ten_thousand_events_in_one_run():
    sol = clock(lambda t, y: math.sin(10.0 * math.pi * t), t1=1000.05, max_step=0.07)
    assert len(sol.events) == 10_000
    np.testing.assert_allclose(times(sol), 0.1 * np.arange(1, 10_001), atol=1e-9)


# --- which ----------------------------------------------------------------------------------------------------


def test_functions_with_the_same_root_fire_together():
    sol = clock([lambda t, y: y[0] - 2.5, lambda t, y: 10.0 * (2.5 - t), lambda t, y: t - 7.0])
    together = [event for event in sol.events if abs(event.t - 2.5) < 1e-10]
    assert [event.index for event in together] == [0, 1]
    assert [event.direction for event in together] == [1, -1]
    assert together[0].t == together[1].t
    assert [event.index for event in sol.events] == [0, 1, 2]


@pytest.mark.parametrize(("direction", "expected"), [(0, [1, 2, 3, 4, 5, 6]), (1, [2, 4, 6]), (-1, [1, 3, 5])])
def test_direction_selects_the_crossings(direction, expected):
    sol = oscillate(Event(lambda t, y: y[0], direction=direction))
    np.testing.assert_allclose(times(sol), math.pi * np.array(expected), atol=1e-6)
    for event, k in zip(sol.events, expected):
        assert event.direction == (1 if k % 2 == 0 else -1)


def test_direction_is_meant_in_the_direction_of_integration():
    """Backwards the sine falls where it rises forwards."""
    sol = daedal.solve(
        OSCILLATOR,
        (0.0, -20.0),
        ([0.0, 1.0], [1.0, 0.0]),
        events=Event(lambda t, y: y[0], direction=-1),
        rtol=1e-9,
        atol=1e-9,
    )
    np.testing.assert_allclose(times(sol), -math.pi * np.array([2.0, 4.0, 6.0]), atol=1e-6)


def test_vector_of_functions_has_directions_and_names_of_its_own():
    event = Event(
        lambda t, y: np.array([y[0], y[1], y[0] - y[1]]),
        direction=[1, -1, 0],
        terminal=[False, False, False],
        name=["sine up", "cosine down", "diagonal"],
    )
    sol = oscillate(event, t1=6.5)
    named = [(record.name, round(record.t / math.pi, 6)) for record in sol.events]
    assert named == [("diagonal", 0.25), ("cosine down", 0.5), ("diagonal", 1.25), ("sine up", 2.0)]


def test_terminal_event_ends_the_run_there():
    sol = oscillate([Event(lambda t, y: y[1]), Event(lambda t, y: y[0], terminal=True, name="stop")])
    assert sol.status == "event"
    assert sol.success
    assert "stop" in sol.message
    assert sol.t[-1] == sol.events[-1].t == pytest.approx(math.pi, abs=1e-6)
    np.testing.assert_array_equal(sol.y[:, -1], sol.events[-1].y)
    np.testing.assert_allclose(times(sol), [math.pi / 2.0, math.pi], atol=1e-6)


def test_terminal_component_of_a_vector_ends_the_run():
    sol = oscillate(Event(lambda t, y: y, terminal=[False, True]))  # sine goes on, cosine stops
    assert sol.t[-1] == pytest.approx(math.pi / 2.0, abs=1e-6)
    assert sol.events[-1].index == 1


def test_requested_output_ends_with_a_terminal_event():
    sol = oscillate(Event(lambda t, y: y[0], terminal=True), t_eval=np.arange(0.0, 20.0))
    np.testing.assert_array_equal(sol.t[:4], [0.0, 1.0, 2.0, 3.0])
    assert sol.t[-1] <= math.pi + 1e-6


# --- the start and exact zeros --------------------------------------------------------------------------------


def test_root_at_the_start_is_skipped():
    sol = oscillate(lambda t, y: y[0], t1=4.0)
    np.testing.assert_allclose(times(sol), [math.pi], atol=1e-6)


def test_function_that_starts_at_zero_and_rises_may_fall_back_through_zero():
    """g = t (1 - t): zero at the start, positive, and a root at 1."""
    sol = clock(lambda t, y: t * (1.0 - t))
    np.testing.assert_allclose(times(sol), [1.0], rtol=1e-12)
    assert sol.events[0].direction == -1


def test_function_that_stays_zero_is_no_event_and_its_later_crossing_is():
    """g vanishes on [0, 3], is negative until 6 and positive after."""

    def g(t, y):
        return 0.0 if t <= 3.0 else t - 6.0

    sol = clock(g, max_step=0.5)
    np.testing.assert_allclose(times(sol), [6.0], rtol=1e-12)
    assert not clock(lambda t, y: 0.0).events


def test_restart_at_a_root_does_not_find_it_again():
    first = oscillate(Event(lambda t, y: y[0], terminal=True))
    again = daedal.solve(
        OSCILLATOR,
        (first.t[-1], 20.0),
        (first.y[:, -1], first.yp[:, -1]),
        events=Event(lambda t, y: y[0], terminal=True),
        rtol=1e-9,
        atol=1e-9,
    )
    assert again.t[-1] == pytest.approx(2.0 * math.pi, abs=1e-6)


@pytest.mark.parametrize("place", [0.25, 0.5, 1.0])
def test_root_exactly_at_the_end_of_a_step_counts_once(place):
    """Steps of 1/4 on a constant solution end at the roots to the last bit."""
    problem = daedal.ImplicitDAE(lambda t, y, yp: [yp[0]], 1)
    for function in (lambda t, y: t - place, lambda t, y: (t - place) ** 3):
        sol = daedal.solve(problem, (0.0, 2.0), ([1.0], [0.0]), events=function, first_step=0.25, max_step=0.25)
        assert 0.25 in sol.history.t
        assert len(sol.events) == 1
        assert abs(sol.events[0].t - place) < 1e-10


def test_root_at_the_end_of_the_interval_counts():
    sol = clock(lambda t, y: t - 2.0, t1=2.0)
    assert [event.t for event in sol.events] == [2.0]


@pytest.mark.parametrize("place", [0.25, 0.7123, 1.0])
def test_zero_that_is_touched_and_not_crossed_counts_on_demand(place):
    """Inside of a step, and where one ends."""
    problem = daedal.ImplicitDAE(lambda t, y, yp: [yp[0]], 1)
    for function in (lambda t, y: (t - place) ** 2, lambda t, y: -((t - place) ** 4)):
        run = {"t_span": (0.0, 2.0), "initial": ([1.0], [0.0]), "first_step": 0.25, "max_step": 0.25}
        assert not daedal.solve(problem, events=function, **run).events
        sol = daedal.solve(problem, events=Event(function, touch=True, delta=1e-6), **run)
        assert len(sol.events) == 1
        assert abs(sol.events[0].t - place) < 0.04
        assert sol.events[0].direction == (-1 if function(0.0, None) > 0.0 else 1)


def test_zero_touched_at_the_end_of_the_run_counts():
    """Nobody knows whether it would be crossed."""
    assert [event.t for event in clock(lambda t, y: (t - 2.0) ** 2, t1=2.0).events] == [2.0]


def test_zero_that_rounding_makes_flat_is_a_contact():
    """1 - sin t is exactly zero on an interval of 1e-8 around its contact."""
    assert not clock(lambda t, y: 1.0 - math.sin(t)).events
    assert not clock(lambda t, y: (1.0 - math.sin(t)) * 1e-200).events


def test_function_that_reaches_zero_and_stays_there_is_an_event():
    sol = clock(lambda t, y: max(3.3 - t, 0.0))
    assert times(sol) == pytest.approx([3.3], abs=1e-10)
    assert sol.events[0].direction == -1


# --- inside of a step -----------------------------------------------------------------------------------------


@given(st.floats(0.5, 9.5), st.floats(-5.0, -0.5))
def test_parabolas_are_seen_however_narrow_they_dip_below_zero(place, exponent):
    """Steps of the clock are up to 5 long."""
    half = 10.0**exponent
    sol = clock(lambda t, y: (t - place) ** 2 - half**2)
    expected = [t for t in (place - half, place + half) if 0.0 < t < 10.0]
    np.testing.assert_allclose(times(sol), expected, atol=1e-9)


@pytest.mark.parametrize("tol", [1e-2, 1e-5, 1e-8])
@pytest.mark.parametrize("depth", [0.3, 1e-2, 1e-5])
def test_dips_of_a_wave_are_all_seen(tol, depth):
    sol = oscillate(lambda t, y: math.cos(t) + 1.0 - depth, t1=100.0, rtol=tol, atol=tol)
    half, dips = math.acos(1.0 - depth), math.pi * np.arange(1, 32, 2)
    np.testing.assert_allclose(times(sol), np.sort(np.concatenate([dips - half, dips + half])), atol=1e-8)


@pytest.mark.parametrize("method", ["rosenbrock", "radau"])
@pytest.mark.parametrize("tol", [1e-3, 1e-6, 1e-8])
@pytest.mark.parametrize("depth", [0.1, 1e-3, 1e-5])
def test_dips_within_long_steps_of_one_step_methods_are_all_seen(method, tol, depth):
    """Steps are searched in pieces, by the degree of their polynomials."""
    sol = oscillate(lambda t, y: math.cos(t + 0.7) + 1.0 - depth, t1=100.0, rtol=tol, atol=tol, method=method)
    half, dips = math.acos(1.0 - depth), math.pi * np.arange(1, 32, 2) - 0.7
    np.testing.assert_allclose(times(sol), np.sort(np.concatenate([dips - half, dips + half])), atol=1e-8)


def test_rosenbrock_methods_begin_where_they_see_events():
    stiff = daedal.ImplicitDAE(lambda t, y, yp: [yp[0] + 50.0 * (y[0] - math.cos(t))], 1)
    for rtol, chosen in ((1e-2, daedal.methods.DASSL()), (1e-4, daedal.methods.Rosenbrock())):
        start = {"t_span": (0.0, 20.0), "initial": ([1.0], [0.0]), "rtol": rtol}
        sol = daedal.solve(stiff, events=lambda t, y: y[0] - 0.5, **start)
        assert sol.method.split(",")[0] == chosen.title.split(",")[0]
        assert len(sol.events) == 7


def test_ends_alone_miss_pairs_of_crossings_and_cost_half():
    def function(t, y):
        return (t - 7.0) ** 2 - 1e-4

    ends, extrema = clock(Event(function, inside="ends")), clock(function)
    assert not ends.events and len(extrema.events) == 2

    def far(t, y):
        return 2.0 + math.sin(t)

    ends, extrema = (clock(event, method="dassl") for event in (Event(far, inside="ends"), far))
    assert ends.stats.event_evaluations == ends.stats.steps + 1
    assert extrema.stats.event_evaluations <= 2 * extrema.stats.steps + 10


def test_many_turns_in_one_step_are_seen_in_order():
    """Two functions, one dips, the other crosses before, between and after."""
    events = [lambda t, y: (t - 7.0) ** 2 - 0.01, lambda t, y: t - 6.8, lambda t, y: t - 7.0, lambda t, y: 7.2 - t]
    sol = clock(events)
    np.testing.assert_allclose(times(sol), [6.8, 6.9, 7.0, 7.1, 7.2], atol=1e-10)
    assert [event.index for event in sol.events] == [1, 0, 2, 0, 3]


# --- how often, how exactly, how fast -------------------------------------------------------------------------


@pytest.mark.parametrize("occurrence", [1, 2, 5])
def test_terminal_may_be_the_number_of_an_occurrence(occurrence):
    sol = oscillate(Event(lambda t, y: y[0], terminal=occurrence))
    np.testing.assert_allclose(times(sol), math.pi * np.arange(1, occurrence + 1), atol=1e-6)
    assert sol.status == "event" and sol.t[-1] == sol.events[-1].t
    assert [event.terminal for event in sol.events] == [False] * (occurrence - 1) + [True]


def test_terminal_occurrence_that_is_not_reached():
    sol = oscillate(Event(lambda t, y: y[0], terminal=100))
    assert sol.status == "finished" and len(sol.events) == 6 and not any(event.terminal for event in sol.events)


def test_occurrences_are_counted_for_each_function_in_its_direction():
    sol = oscillate([Event(lambda t, y: y, terminal=[3, 2], direction=[0, 1])], t1=30.0)
    assert sol.t[-1] == pytest.approx(3.0 * math.pi, abs=1e-6) and sol.events[-1].index == 0


def test_terminal_attribute_counts_as_in_scipy():
    def crossing(t, y):
        return y[0]

    crossing.terminal = 3
    assert oscillate(crossing).t[-1] == pytest.approx(3.0 * math.pi, abs=1e-6)


@pytest.mark.parametrize("tol", [1e-1, 1e-3, 1e-6])
def test_location_may_be_coarse(tol):
    def function(t, y):
        return math.exp(t) - 30.0

    exact, coarse = clock(function), clock(Event(function, tol=tol))
    assert 0.0 <= coarse.events[0].t - exact.events[0].t <= tol
    assert coarse.stats.event_evaluations <= exact.stats.event_evaluations


def test_compiled_functions_find_the_same_events():
    numba = pytest.importorskip("numba")

    def one(t, y):
        return y[0] - 0.3

    def two(t, y, yp):
        return np.array([yp[0], t - 3.0])

    plain = oscillate([one, two])
    compiled = oscillate([numba.njit(one), numba.njit(two)])
    assert [event.index for event in compiled.events] == [event.index for event in plain.events]
    np.testing.assert_allclose(times(compiled), times(plain), rtol=1e-13)
    assert compiled.stats.event_evaluations == plain.stats.event_evaluations


def test_compiled_functions_have_parameters():
    numba = pytest.importorskip("numba")
    problem = daedal.ImplicitDAE(lambda t, y, yp, p: [yp[0] - p[0]], 1, params=np.array([2.0, 3.0]))
    level = numba.njit(lambda t, y, yp, p: y[0] - p[1])
    sol = daedal.solve(problem, (0.0, 4.0), ([0.0], [2.0]), events=level)
    assert times(sol) == pytest.approx([1.5])


def test_errors_of_compiled_functions_reach_the_user():
    numba = pytest.importorskip("numba")

    @numba.njit
    def raising(t, y):
        if t > 1.0:
            raise ValueError("compiled")
        return 1.0

    @numba.njit
    def undefined(t, y):
        return np.nan if t > 1.0 else 1.0

    with pytest.raises(ValueError, match="compiled"):
        clock(raising)
    with pytest.raises(daedal.InvalidProblemError, match="undefined returned nan"):
        clock(undefined)


@pytest.mark.slow
def test_a_hundred_thousand_events_of_a_compiled_function():
    numba = pytest.importorskip("numba")
    problem = daedal.ImplicitDAE(numba.njit(lambda t, y, yp: np.array([yp[0] - 1.0])), 1)
    event = numba.njit(lambda t, y: math.sin(10.0 * math.pi * t))
    options = {"max_step": 0.07, "max_steps": 10**6, "dense_output": False, "t_eval": [0.0]}
    sol = daedal.solve(problem, (0.0, 10_000.05), ([0.0], [1.0]), events=event, **options)
    assert len(sol.events) == 100_000 and sol.t.size == 1
    np.testing.assert_allclose(times(sol), 0.1 * np.arange(1, 100_001), atol=1e-9)


# --- what events leave alone, and what they see ---------------------------------------------------------------


def test_events_do_not_change_the_steps():
    plain = oscillate(None)
    watched = oscillate([lambda t, y: y[0], lambda t, y: y[0] * y[1], lambda t, y: t - 3.0])
    np.testing.assert_array_equal(watched.t, plain.t)
    np.testing.assert_array_equal(watched.y, plain.y)
    assert watched.stats.residual_evaluations == plain.stats.residual_evaluations


def test_state_at_an_event_is_that_of_the_dense_output():
    sol = oscillate(lambda t, y: y[0] - 0.3)
    assert len(sol.events) > 4
    for event in sol.events:
        np.testing.assert_array_equal(event.y, sol(event.t))
        np.testing.assert_array_equal(event.yp, sol(event.t, derivative=True))
        assert event.y[0] == pytest.approx(0.3, abs=1e-12)


@settings(max_examples=10)
@given(st.lists(st.floats(0.1, 19.9), min_size=2, max_size=30, unique=True))
def test_requested_output_does_not_move_events(requested):
    expected = times(oscillate(lambda t, y: y[0]))
    np.testing.assert_array_equal(times(oscillate(lambda t, y: y[0], t_eval=np.sort(requested))), expected)


def test_functions_may_use_derivatives_and_parameters():
    problem = daedal.ImplicitDAE(lambda t, y, yp, p: [yp[0] - y[1], yp[1] + p[0] * y[0]], 2, params=np.array([4.0]))
    events = [lambda t, y, yp: yp[0], lambda t, y, yp, p: y[0] - 1.0 / p[0]]
    sol = daedal.solve(problem, (0.0, 1.5), ([0.0, 1.0], [1.0, 0.0]), events=events, rtol=1e-9, atol=1e-9)
    named = {event.index: event.t for event in reversed(sol.events)}
    assert named[0] == pytest.approx(math.pi / 4.0, abs=1e-5)  # y = sin(2 t) / 2
    assert named[1] == pytest.approx(math.asin(0.5) / 2.0, abs=1e-6)


def test_functions_of_semi_explicit_problems_see_y_and_z():
    problem = daedal.SemiExplicitDAE(lambda t, y, z: [z[0]], lambda t, y, z: [z[0] + y[0]], 1, 1)
    sol = daedal.solve(
        problem, (0.0, 3.0), ([1.0], [-1.0]), events=[lambda t, y, z: z[0] + 0.5, lambda t, y: y[0] - 0.25]
    )
    found = {event.index: event.t for event in sol.events}
    assert found[0] == pytest.approx(math.log(2.0), abs=1e-4)
    assert found[1] == pytest.approx(math.log(4.0), abs=1e-4)


def test_attributes_of_a_function_are_understood_as_scipy_does():
    def up(t, y):
        return y[0]

    up.direction = 1
    up.terminal = True
    sol = oscillate(up)
    assert sol.t[-1] == pytest.approx(2.0 * math.pi, abs=1e-6)
    assert sol.events[0].name == "up"


def test_exception_of_a_function_reaches_the_user():
    def g(t, y):
        if t > 1.0:
            raise KeyError("in the event")
        return 1.0

    with pytest.raises(KeyError, match="in the event"):
        clock(g)


def test_bouncing_ball_restarts_at_every_impact():
    """Mode changes by restarts: the impact times form a geometric series."""
    problem = daedal.ImplicitDAE(lambda t, y, yp: [yp[0] - y[1], yp[1] + 1.0], 2)
    ground = Event(lambda t, y: y[0], terminal=True, direction=-1)
    restitution, t, y, impacts = 0.8, 0.0, np.array([0.5, 0.0]), []
    for _ in range(8):
        sol = daedal.solve(problem, (t, 100.0), (y, [y[1], -1.0]), events=ground, rtol=1e-10, atol=1e-12)
        t, y = sol.t[-1], np.array([0.0, -restitution * sol.y[1, -1]])
        impacts.append(t)
    expected = 1.0 + np.concatenate([[0.0], np.cumsum(2.0 * restitution ** np.arange(1, 8))])
    np.testing.assert_allclose(impacts, expected, rtol=1e-8)


@pytest.mark.parametrize(("depth", "rtol"), [(1e-4, 1e-6), (1e-5, 1e-8), (1e-6, 1e-8)])
def test_shallow_pairs_inside_one_step_are_both_found(depth, rtol):
    """About shallow roots a function is exactly zero for several floats; that is no contact without crossing."""
    phase, limit = 0.3, 1.0 - depth
    sol = daedal.solve_dae(
        lambda t, y, yp: [yp[0] - y[1], yp[1] + y[0]],
        (0.0, 10.0),
        [np.cos(phase), -np.sin(phase)],
        [-np.sin(phase), -np.cos(phase)],
        rtol=rtol,
        events=daedal.Event(lambda t, y: y[0] + limit),
    )
    width = np.arccos(limit)
    wanted = [np.pi - width, np.pi + width, 3.0 * np.pi - width, 3.0 * np.pi + width]
    assert [event.t + phase for event in sol.events] == pytest.approx(wanted, abs=2e-3)
