"""The monitoring algorithm, and the examples for which switching functions were invented (Wijckmans chapter 7)."""

import math

import numpy as np
import pytest

import daedal
from daedal import Event, library

CLOCK = daedal.ImplicitDAE(lambda t, y, yp: [yp[0] - 1.0], 1)  # y = t
LOCATIONS = ["roots", "monitoring", "auto"]


def clock(events, t_span=(0.0, 10.0), **options):
    return daedal.solve(CLOCK, t_span, ([t_span[0]], [1.0]), events=events, **options)


def monitored(function, **options):
    return Event(function, location="monitoring", **options)


# --- the examples -----------------------------------------------------------------------------------------------


def switched_by_hand(model, location, tol):
    """The modes of a model that switches at given times, one after the other: steps, and error at the end."""
    t, x = model.t_span[0], model.extra["exact"](0.0)
    steps = 0
    for rate, instant in zip(model.extra["modes"], (*model.extra["switches"], math.inf), strict=True):
        problem = daedal.ImplicitDAE(lambda t, x, xp, rate=rate: [xp[0] - rate], 1)
        event = Event(lambda t, x, instant=instant: t - min(instant, 1e3), terminal=True, location=location)
        options = {"method": "dassl", "rtol": tol, "atol": tol}
        sol = daedal.solve(problem, (t, model.t_span[1]), (x, [rate]), events=event, **options)
        t, x, steps = sol.t[-1], sol.y[:, -1], steps + sol.stats.steps
    assert t == model.t_span[1]
    return steps, abs(x[0] - model.reference.y[0])


def test_a_ramp_that_is_ignored_costs_rejected_steps():
    """Example 7.1."""
    model = library.switched_ramp()
    options = {"rtol": 1e-4, "atol": 1e-4}
    ignored = daedal.solve(model.extra["ignoring"], model.t_span, ([10.0], [0.0]), switches="never", **options)
    switched = daedal.solve(model.problem, model.t_span, model.initial, **options)
    assert ignored.stats.rejected >= 10 and switched.stats.rejected == 0
    assert switched.y[0, -1] == pytest.approx(60.0, abs=1e-10)
    assert abs(ignored.y[0, -1] - 60.0) > 1e-5


@pytest.mark.parametrize("tol", [1e-2, 1e-4, 1e-6, 1e-8, 1e-10])
def test_a_pulse_that_is_ignored_is_lost(tol):
    """Example 7.2, Table 7.2, first column: the error is exactly 5, whatever the tolerance."""
    model = library.switched_pulse()
    options = {"rtol": tol, "atol": tol, "switches": "never", "method": "dassl"}
    ignored = daedal.solve(model.extra["ignoring"], model.t_span, ([0.0], [5.0]), **options)
    assert model.reference.y[0] - ignored.y[0, -1] == pytest.approx(5.0, abs=1e-10)


@pytest.mark.parametrize(
    ("tol", "steps", "error"),
    [(1e-2, 39, 0.11), (1e-4, 58, 0.81e-2), (1e-6, 82, 0.14e-5), (1e-8, 103, 0.11e-6), (1e-10, 111, 0.29e-8)],
)
def test_a_pulse_is_seen_with_switching_functions(tol, steps, error):
    """Table 7.2, last column: the printed steps and errors, which ours need not reach."""
    model = library.switched_pulse()
    found_steps, found_error = switched_by_hand(model, "monitoring", tol)
    assert 0.6 * steps < found_steps < 1.5 * steps
    assert found_error < 2.0 * error
    for location in ("roots", "auto"):  # the roots of a function of time are exact
        assert switched_by_hand(model, location, tol)[1] < 1e-10


def degenerate(location, tol, sliding=True):
    """Example 7.6 by the event loop (7.4), with or without its sliding mode: steps, error, place of the event."""
    model = library.degenerate_switch()
    modes, sides, t_end = model.extra["modes"], model.extra["sides"], model.t_span[1]
    options = {"method": "dassl", "rtol": tol, "atol": tol}
    surface = Event(model.extra["switching"], terminal=True, direction=-1, location=location)
    first = daedal.solve(modes["cubic"], model.t_span, model.initial[1], events=surface, **options)
    t, x, steps = first.t[-1], first.y[:, -1], first.stats.steps
    if sliding and sides(t)[1] > 0.0:
        exit_ = Event(lambda t, x: sides(t)[1], terminal=True, location=location)
        sol = daedal.solve(modes["sliding"], (t, t_end), (x, [0.0]), events=exit_, **options)
        t, x, steps = sol.t[-1], sol.y[:, -1], steps + sol.stats.steps
    sol = daedal.solve(modes["sine"], (t, t_end), (x, None), **options)
    return steps + sol.stats.steps, abs(sol.y[0, -1] - model.reference.y[0]), first.t[-1]


@pytest.mark.parametrize("location", LOCATIONS)
@pytest.mark.parametrize(
    ("tol", "steps", "error"), [(1e-2, 40, 0.2e-1), (1e-4, 64, 0.14e-2), (1e-6, 98, 0.47e-6), (1e-8, 130, 0.1e-6)]
)
def test_a_degenerate_switch_costs_no_accuracy(location, tol, steps, error):
    """Example 7.6, Table 7.3. The source's root finding fails below 1e-4 (Table 7.1); that of Daedal does not."""
    found_steps, found_error, _ = degenerate(location, tol)
    assert found_steps < 1.2 * steps
    assert found_error < 4.0 * error


@pytest.mark.parametrize("location", LOCATIONS)
def test_without_the_sliding_mode_a_degenerate_switch_costs_a_third_of_the_digits(location):
    """An error e of x moves the event by e^(1/3), and from there x is too large by 1 - cos(t - 3), about e^(2/3) / 2.

    The errors of both runs are some 30 tolerances.
    """
    for tol in (1e-4, 1e-6, 1e-8):
        _, error, t = degenerate(location, tol, sliding=False)
        assert tol < (3.0 - t) ** 3 < 40.0 * tol
        assert error == pytest.approx(1.0 - math.cos(t - 3.0), abs=30.0 * tol)


def test_models_of_the_library_switch_by_themselves():
    for name in ("switched_ramp", "switched_pulse", "degenerate_switch"):
        model = library.get(name)
        sol = daedal.solve(model.problem, model.t_span, model.initial, rtol=1e-8, atol=1e-8)
        assert model.reference.error(sol.y[:, -1]).max() < 1e-6
        for t in np.linspace(*model.t_span, 9):
            np.testing.assert_allclose(sol(t), model.extra["exact"](t), atol=1e-5)
    for name, t1 in (("switched_ramp", 10.0), ("switched_pulse", 5.0), ("degenerate_switch", 3.0)):
        with pytest.raises(daedal.InvalidProblemError, match="t1"):
            library.get(name, t1=t1)


# --- where root finding has nothing to find ---------------------------------------------------------------------


def tank(location, tol=1e-6):
    """A tank with a leak and a pump, x' = -1 - sqrt(x), which is empty at 2 (1 - log 2); no equation holds below."""
    problem = daedal.ImplicitDAE(
        lambda t, x, xp: [xp[0] + 1.0 + math.sqrt(x[0])] if x[0] >= 0.0 else [math.nan], 1, names=["level"]
    )
    empty = Event(lambda t, x: x[0], terminal=True, direction=-1, location=location, name="empty")
    return daedal.solve(problem, (0.0, 2.0), ([1.0], [-2.0]), events=empty, method="dassl", rtol=tol, atol=tol)


def test_equations_that_end_at_the_surface_defeat_root_finding():
    with pytest.raises(daedal.IntegrationError, match="could not be evaluated"):
        tank("roots")


@pytest.mark.parametrize("location", ["monitoring", "auto"])
@pytest.mark.parametrize("tol", [1e-3, 1e-6, 1e-9])
def test_equations_that_end_at_the_surface_can_be_monitored(location, tol):
    sol = tank(location, tol)
    assert sol.status == "event" and sol.events[0].direction == -1
    assert 0.0 <= sol.y[0, -1] <= tol
    assert sol.t[-1] == pytest.approx(2.0 * (1.0 - math.log(2.0)), abs=50.0 * tol)


# --- the rules --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("delta", [1e-2, 1e-5, 1e-8])
def test_event_is_the_end_of_a_step_in_the_layer(delta):
    sol = clock(monitored(lambda t, y: 2.0 * (y[0] - 4.3), delta=delta))
    (event,) = sol.events
    assert abs(2.0 * (event.y[0] - 4.3)) <= delta
    assert event.t in sol.t and event.direction == 1


def test_layer_is_as_wide_as_the_relative_tolerance_by_default():
    for tol in (1e-3, 1e-7):
        (event,) = clock(monitored(lambda t, y: y[0] - 4.3), rtol=tol).events
        assert abs(event.t - 4.3) <= tol


@pytest.mark.parametrize(("direction", "count"), [(0, 3), (-1, 2), (1, 1)])
def test_direction_is_that_of_the_approach(direction, count):
    sol = clock(monitored(lambda t, y: math.sin(t), direction=direction))
    assert len(sol.events) == count
    expected = {0: [1, 2, 3], -1: [1, 3], 1: [2]}[direction]
    np.testing.assert_allclose([event.t for event in sol.events], math.pi * np.array(expected), atol=1e-6)
    assert [event.direction for event in sol.events] == [-1 if k % 2 else 1 for k in expected]


def test_a_run_that_begins_in_the_layer_begins_after_the_event():
    surface = monitored(lambda t, y: math.sin(t), delta=1e-4, terminal=True)
    first = clock(surface)
    again = clock(surface, (first.t[-1], 10.0))
    assert [sol.t[-1] for sol in (first, again)] == pytest.approx([math.pi, 2.0 * math.pi], abs=2e-4)


def test_function_that_stays_in_its_layer_fires_once():
    sol = clock(monitored(lambda t, y: max(2.0 - t, 0.0) + 1e-9 * math.sin(50.0 * t)), max_step=0.1)
    assert len(sol.events) == 1 and 0.0 <= sol.events[0].t - 2.0 <= 0.1  # the first end of a step in the layer


def test_layer_that_is_entered_and_left_on_the_same_side_is_an_event():
    """The algorithm speaks of arrival in the layer, not of a change of sign."""
    sol = clock(monitored(lambda t, y: (t - 3.0) ** 2 + 1e-3, delta=1e-2), max_step=0.05)
    assert len(sol.events) == 1 and 2.8 < sol.events[0].t < 3.0 and sol.events[0].direction == -1


@pytest.mark.parametrize("location", LOCATIONS)
def test_jumps_are_located(location):
    sol = clock(Event(lambda t, y: -1.0 if t < 4.0 else 1.0, location=location))
    assert [event.t for event in sol.events] == pytest.approx([4.0], abs=1e-10)


def test_several_functions_with_layers_and_roots():
    events = [monitored(lambda t, y: y[0] - 2.0), lambda t, y: y[0] - 3.0, monitored(lambda t, y: 4.0 - y[0])]
    sol = clock(events)
    assert [(event.index, event.direction) for event in sol.events] == [(0, 1), (1, 1), (2, -1)]
    np.testing.assert_allclose([event.t for event in sol.events], [2.0, 3.0, 4.0], atol=1e-6)


def test_vector_may_mix_the_ways():
    event = Event(lambda t, y: np.array([t - 2.0, t - 3.0]), location=["monitoring", "roots"], delta=[1e-3, None])
    first, second = clock(event).events
    assert 0.0 < abs(first.t - 2.0) <= 1e-3
    assert second.t == pytest.approx(3.0, abs=1e-11)


def test_functions_may_use_derivatives():
    problem = daedal.ImplicitDAE(lambda t, y, yp: [yp[0] - math.cos(t)], 1)
    event = monitored(lambda t, y, yp: yp[0], delta=1e-6)
    sol = daedal.solve(problem, (0.0, 4.0), ([0.0], [1.0]), events=event, rtol=1e-8, atol=1e-8)
    assert [e.t for e in sol.events] == pytest.approx([math.pi / 2.0], abs=2e-6)


def test_pairs_of_crossings_inside_of_a_step_are_roots():
    sol = clock(monitored(lambda t, y: (t - 7.0) ** 2 - 1e-4, delta=1e-12))
    np.testing.assert_allclose([event.t for event in sol.events], [6.99, 7.01], atol=1e-6)


# --- the automatic choice ---------------------------------------------------------------------------------------


def test_automatic_choice_is_root_finding_where_the_function_is_straight():
    def function(t, y):
        return y[0] - 4.3

    automatic, roots = clock(Event(function, location="auto")), clock(Event(function))
    np.testing.assert_array_equal(automatic.t, roots.t)
    assert automatic.events[0].t == roots.events[0].t


def test_automatic_choice_repeats_steps_where_it_is_not():
    def flat(t, y):
        return (y[0] - 6.3) ** 3

    assert clock(Event(flat)).stats.rejected == 0
    sol = clock(Event(flat, location="auto"))
    assert sol.stats.rejected > 0
    assert abs(flat(0.0, sol.events[0].y)) <= 1e-6


# --- what it leaves behind, and bad input -----------------------------------------------------------------------


def test_later_runs_of_the_same_problem_are_not_watched():
    before = clock(None)
    clock(monitored(lambda t, y: y[0] - 4.3))
    after = clock(None)
    np.testing.assert_array_equal(after.t, before.t)


def test_exception_in_a_monitored_function_reaches_the_user():
    def g(t, y):
        if t > 1.0:
            raise KeyError("in the layer")
        return 1.0

    with pytest.raises(KeyError, match="in the layer"):
        clock(monitored(g))


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"location": "root"}, "location"),
        ({"location": ["roots", "auto"]}, "location"),
        ({"inside": "middle"}, "inside"),
        ({"touch": "yes"}, "touch"),
        ({"delta": 0.0}, "delta"),
        ({"delta": math.nan}, "delta"),
        ({"delta": "wide"}, "delta"),
        ({"tol": -1.0}, "tol"),
        ({"tol": [1e-3, 1e-3]}, "tol"),
        ({"terminal": -1}, "terminal"),
        ({"terminal": 1.5}, "terminal"),
        ({"direction": 2}, "direction"),
    ],
    ids=lambda value: value if isinstance(value, str) else "-".join(f"{k}_{v}" for k, v in value.items()),
)
def test_bad_options_are_named(options, named):
    with pytest.raises(daedal.InvalidProblemError, match=rf"events\[0\]\.{named}"):
        clock(Event(lambda t, y: y[0] - 4.3, **options))
