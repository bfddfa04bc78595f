"""Dry friction in mechanisms: stick and slip against closed solutions, and the paradoxes of rigid contacts."""

import math
import warnings
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import daedal
from daedal import library
from test_violin import SAMPLES, SWITCHES


def run(problem, t1, initial, tol=1e-8, **options):
    return daedal.solve(problem, (0.0, t1), problem.entry((0.0, t1), initial), rtol=tol, atol=tol, **options)


def solved(model, tol, t1=None):
    span = model.t_span if t1 is None else (0.0, t1)
    return daedal.solve(model.problem, span, model.initial, rtol=tol, atol=tol)


def targets(sol):
    return [event.target for event in sol.events]


# --- against closed solutions ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("tol", [1e-7, 1e-9])
def test_events_of_the_friction_oscillator(tol):
    model = library.friction_oscillator()
    sol = solved(model, tol)
    np.testing.assert_allclose(sol.events.t, model.extra["events"], atol=1e-6, rtol=0.0)
    assert targets(sol) == ["slip-", *["stick", "slip-"] * 4]
    np.testing.assert_allclose(sol.y[:2, -1], model.reference.y[:2], atol=100.0 * tol)


def test_a_period_in_which_adhesion_fails_is_not_stepped_over():
    # It stands still from 5.6 on, and nothing but the force changes: a step over the whole period would see no failure.
    model = library.friction_oscillator()
    sol = solved(model, 1e-5)
    assert len(sol.events) == 9
    assert sol.events[6].t == pytest.approx(model.extra["events"][6], abs=1e-3)


@pytest.mark.parametrize(
    "parameters",
    [{}, {"mu": 0.02, "mu_static": 0.4}, {"angle": -0.2, "speed": 1.0}, {"mass": 10.0, "stiffness": 1e4, "t1": 3.0}],
    ids=["default", "little sliding friction", "downhill", "stiff spring"],
)
def test_block_on_an_inclined_plane(parameters):
    model = library.stick_slip_block(**parameters)
    sol = solved(model, 1e-10)
    assert len(model.extra["events"]) >= 4
    np.testing.assert_allclose(sol.events.t, model.extra["events"], atol=1e-6, rtol=0.0)
    assert targets(sol) == (["slip+", "stick"] * len(sol.events))[: len(sol.events)]
    for t in np.linspace(0.0, model.t_span[1], 37):
        state = sol(t)
        np.testing.assert_allclose([state.q[0], state.v[0]], model.extra["exact"](t), atol=1e-6)


def test_a_sliding_block_comes_to_rest_and_stays():
    block = daedal.MechanicalSystem(2.0, lambda t, q, v: [0.0], n_q=1, names=["x"])
    sol = run(daedal.hybrid.Friction(block, [1.0], 0.5, normal=2.0 * 9.81), 5.0, ([0.0], [-3.0]))
    assert targets(sol) == ["stick"]
    assert sol.events[0].t == pytest.approx(3.0 / (0.5 * 9.81), abs=1e-9)
    assert sol["x"][-1] == pytest.approx(-9.0 / (2.0 * 0.5 * 9.81), abs=1e-8)
    assert sol.v[0, -1] == pytest.approx(0.0, abs=1e-12)


def test_a_block_on_a_steep_plane_does_not_stop():
    # tan(angle) = 1 > mu: uphill, through zero, downhill
    g, mu = 9.81, 0.3
    weight = g * math.sqrt(0.5)
    block = daedal.MechanicalSystem(1.0, lambda t, q, v: [-weight], n_q=1, names=["x"])
    sol = run(daedal.hybrid.Friction(block, [1.0], mu, normal=weight), 2.0, ([0.0], [5.0]))
    up = 5.0 / (weight * (1.0 + mu))
    assert targets(sol) == ["slip-"]
    assert sol.events[0].t == pytest.approx(up, abs=1e-9)
    expected = 0.5 * 5.0 * up - 0.5 * weight * (1.0 - mu) * (2.0 - up) ** 2
    assert sol["x"][-1] == pytest.approx(expected, abs=1e-8)


def test_belt_stribeck_and_curve_agree():
    def block(t, q, v):
        return [-4.0 * q[0]]

    system = daedal.MechanicalSystem(1.0, block, n_q=1, names=["x"])
    stribeck = daedal.hybrid.Friction(system, [1.0], 0.5, normal=2.0, mu_static=1.0, stribeck=0.3, speed=0.7)
    curve = daedal.hybrid.Friction(
        system, [1.0], lambda s: 0.5 + 0.5 * math.exp(-((s / 0.3) ** 2)), normal=2.0, speed=lambda t: 0.7
    )
    one, other = (run(problem, 6.0, ([0.0], [0.7]), 1e-9) for problem in (stribeck, curve))
    # sticks to the belt until 4 x = mu_static N
    assert targets(one)[0] == "slip-"
    assert one.events[0].t == pytest.approx(0.5 / 0.7, abs=1e-8)
    np.testing.assert_allclose(other.events.t, one.events.t, atol=1e-6)
    np.testing.assert_allclose(other.q[0, -1], one.q[0, -1], atol=1e-6)
    slipping = next(segment for segment in one.segments if segment.mode == "slip-")
    state = slipping.state(np.array([slipping.t0 + 0.2]))
    s = state.v[0, 0] - 0.7
    assert state.a[0, 0] == pytest.approx(
        -4.0 * state.q[0, 0] + 2.0 * (0.5 + 0.5 * math.exp(-((s / 0.3) ** 2))), abs=1e-6
    )


def test_energy_that_friction_takes():
    # pendulum with friction in its pivot: the loss is mu N times the way
    pendulum = daedal.MechanicalSystem(1.0, lambda t, q, v: [-math.sin(q[0])], n_q=1, names=["phi"])
    sol = run(daedal.hybrid.Friction(pendulum, [1.0], 0.1, normal=1.0), 30.0, ([2.0], [0.0]), 1e-10)
    energy = 0.5 * sol.v[0] ** 2 - np.cos(sol.q[0])
    way = np.concatenate([[0.0], np.cumsum(np.abs(np.diff(sol.q[0])))])
    np.testing.assert_allclose(energy + 0.1 * way, energy[0], atol=1e-7)
    assert sol.mode[-1] == "stick" and abs(math.sin(sol.q[0, -1])) < 0.1


# --- the violin -----------------------------------------------------------------------------------------------------


@cache
def bowed(tol):
    return solved(library.bowed_string(), tol)


def test_sixteen_events_of_the_bowed_string():
    sol = bowed(1e-9)
    np.testing.assert_allclose(sol.events.t, SWITCHES[:, 0], atol=1e-7, rtol=0.0)
    assert targets(sol) == ["stick", "slip-"] * 8
    np.testing.assert_allclose([event.y[9] for event in sol.events], SWITCHES[:, 1], atol=1e-7)
    for t, (u, v, _) in SAMPLES.items():
        state = sol(t)
        np.testing.assert_allclose([state.q[9], state.v[9]], [u, v], atol=1e-6)


def test_bowed_string_is_that_of_play_violin():
    sol, by_hand = bowed(1e-6), library.play_violin(12.0, 1e-6)
    assert len(sol.events) == len(by_hand.switches) == 16
    np.testing.assert_allclose(sol.events.t[:6], [switch.t for switch in by_hand.switches[:6]], atol=1e-5)


def test_near_graze_of_the_string_is_passed():
    # u' - v has a maximum of -9.3e-4 at t = 4.1825
    sol = solved(library.bowed_string(), 1e-4, 4.6)
    assert targets(sol) == ["stick", "slip-", "stick", "slip-", "stick"]
    np.testing.assert_allclose(sol.events.t, SWITCHES[:5, 0], atol=5e-3)


@pytest.mark.slow
def test_compiled_string_gives_the_same():
    sol = solved(library.bowed_string(t1=3.0, compiled=True), 1e-8)
    np.testing.assert_allclose(sol.events.t, SWITCHES[:3, 0], atol=1e-7)


# --- the normal force is a multiplier -------------------------------------------------------------------------------


def floor(mu, push=0.0, **options):
    """A point mass on a floor, y = 0, pushed along x."""
    system = daedal.MechanicalSystem(
        2.0,
        lambda t, q, v: [push, -2.0 * 9.81],
        lambda t, q: [q[1]],
        n_q=2,
        n_constraints=1,
        names=["x", "y"],
        constraint_names=["floor"],
    )
    return daedal.hybrid.Friction(system, [1.0, 0.0], mu, constraint="floor", **options)


@pytest.mark.parametrize("unilateral", [False, True])
def test_normal_force_from_a_multiplier(unilateral):
    problem = floor(0.4, unilateral=unilateral)
    sol = run(problem, 2.0, ([0.0, 0.0], [3.0, 0.0]))
    assert sol.events[0].t == pytest.approx(3.0 / (0.4 * 9.81), abs=1e-8)
    assert targets(sol) == ["stick"]
    assert sol["x"][-1] == pytest.approx(9.0 / (2.0 * 0.4 * 9.81), abs=1e-7)
    np.testing.assert_allclose(sol.lam[0], -2.0 * 9.81, atol=1e-6)


def test_force_that_sticking_takes():
    state = floor(0.4, push=5.0).at(0.0, [0.0, 0.0], [0.0, 0.0])
    assert state.sticks and state.holding == pytest.approx(5.0) and state.capacity == pytest.approx(0.4 * 2.0 * 9.81)
    assert not floor(0.4, push=8.0).at(0.0, [0.0, 0.0], [0.0, 0.0]).sticks
    assert floor(0.4, push=8.0).entry((0.0, 1.0), ([0.0, 0.0], [0.0, 0.0]))[0] == "slip+ (lam < 0)"
    assert floor(0.4, push=-8.0).entry((0.0, 1.0), ([0.0, 0.0], [0.0, 0.0]))[0] == "slip- (lam < 0)"


def test_normal_force_that_changes_its_sign():
    # N = -10 cos t in a guide: v' = -0.2 |10 cos t|
    system = daedal.MechanicalSystem(
        1.0, lambda t, q, v: [0.0, -10.0 * math.cos(t)], lambda t, q: [q[1]], n_q=2, n_constraints=1
    )
    sol = run(daedal.hybrid.Friction(system, [1.0, 0.0], 0.2, constraint=0), 4.0, ([0.0, 0.0], [3.0, 0.0]))
    assert targets(sol) == ["slip+ (lam > 0)", "stick"]
    assert sol.events[0].t == pytest.approx(0.5 * math.pi, abs=1e-8)
    # 3 = 2 + 2 (1 - sin t)
    assert sol.events[1].t == pytest.approx(5.0 * math.pi / 6.0, abs=1e-7)


def test_lift_off_ends_the_run():
    system = daedal.MechanicalSystem(1.0, lambda t, q, v: [0.0, t - 1.0], lambda t, q: [q[1]], n_q=2, n_constraints=1)
    sol = run(
        daedal.hybrid.Friction(system, [1.0, 0.0], 0.1, constraint=0, unilateral=True), 3.0, ([0.0, 0.0], [5.0, 0.0])
    )
    assert sol.status == "event" and sol.events[-1].name == "lift-off in slip+"
    assert sol.t[-1] == pytest.approx(1.0, abs=1e-9)
    assert sol.v[0, -1] == pytest.approx(5.0 - 0.05, abs=1e-8)


# --- Painleve's paradox ---------------------------------------------------------------------------------------------


def test_branches_at_the_start_of_the_crank_slider():
    model = library.friction_crank_slider()
    q, v = model.initial[1]
    state = model.problem.at(0.0, q, v)
    np.testing.assert_allclose(state.branches[-1], model.extra["branches"], rtol=1e-6)
    assert state.branches[1] == ()
    with pytest.warns(daedal.errors.NonUniqueWarning, match="multipliers -2.31619, 81.6512"):
        assert model.problem.entry(model.t_span, (q, v))[0] == "slip- (lam < 0)"


@pytest.mark.slow
def test_first_event_of_the_crank_slider():
    model = library.friction_crank_slider(t1=4.0)
    sol = solved(model, 1e-8)
    stops = [event.t for event in sol.events if event.source[:5] != (event.target or "")[:5]]
    np.testing.assert_allclose(stops, model.extra["turns"], atol=1e-5)
    assert stops[0] == pytest.approx(0.8428, abs=5e-5)
    notes = model.problem.notes(sol)
    assert len(notes) == 1 and "not unique" in notes[0] and "81.65" in notes[0]


@pytest.mark.slow
def test_the_slider_cannot_stick_where_the_source_lets_it():
    # both slips, each with its own normal force, accelerate it to the same side
    model = library.friction_crank_slider()
    sol = solved(model, 1e-9)
    stop = next(event for event in sol.events if event.name == "end of slip-")
    state = model.problem.at(stop.t, stop.y[:6], stop.y[6:12])
    rates = [state.mobility * (state.holding - sigma * 20.0 * abs(state.branches[sigma][0])) for sigma in (1, -1)]
    np.testing.assert_allclose(rates, [0.0838, 0.514], rtol=5e-3)
    assert not state.sticks


@pytest.mark.parametrize("mu", [0.5, 2.0])
@pytest.mark.parametrize("slip", [1.0, -1.0])
@pytest.mark.parametrize("rate", [0.0, 2.0])
def test_normal_force_of_the_rod(mu, slip, rate):
    model = library.painleve_rod(mu=mu, slip=slip, rate=rate)
    state = model.problem.at(0.0, *model.initial[1])
    branch = state.branches[1 if slip > 0.0 else -1]
    if model.extra["paradox"]:
        assert branch == () and mu > 4.0 / 3.0 and slip < 0.0
    else:
        assert -branch[0] == pytest.approx(model.extra["normal"], rel=1e-9)


@pytest.mark.parametrize("unilateral", [True, False])
def test_inconsistent_rod_is_reported(unilateral):
    model = library.painleve_rod(slip=-1.0, unilateral=unilateral)
    assert model.extra["paradox"]
    with pytest.raises(daedal.InconsistentInitialError, match="no motion satisfies the law of friction"):
        model.problem.entry(model.t_span, model.initial[1])
    with pytest.raises(daedal.DaedalError, match="Painleve's paradox"):
        daedal.solve(model.problem, model.t_span, model.initial, **model.options)


def test_rod_below_the_critical_coefficient_moves():
    model = library.painleve_rod(mu=0.5)
    sol = daedal.solve(model.problem, model.t_span, model.initial, **model.options)
    assert sol.success and sol.drift["position"] < 1e-8
    assert np.all(sol.lam[0] < 0.0)  # pressed to the floor


def test_paradox_on_the_way_ends_the_run_with_what_was_computed():
    # a force along (1, 2) presses on the guide: with mu = 1 two normal forces while 1 - t > 0, and none later
    system = daedal.MechanicalSystem(1.0, lambda t, q, v: [3.0, 1.0 - t], lambda t, q: [q[1]], n_q=2, n_constraints=1)
    problem = daedal.hybrid.Friction(system, [1.0, 2.0], 1.0, constraint=0)
    state = problem.at(0.0, [0.0, 0.0], [5.0, 0.0])
    np.testing.assert_allclose(state.branches[1], [1.0 / 3.0, -1.0])
    with (
        pytest.warns(daedal.errors.NonUniqueWarning),
        pytest.raises(daedal.DaedalError, match="no motion satisfies") as caught,
    ):
        run(problem, 3.0, ([0.0, 0.0], [5.0, 0.0]))
    sol = caught.value.solution
    assert sol.t[-1] == pytest.approx(1.0, abs=1e-6)
    assert sol.v[0, -1] == pytest.approx(5.0 + 3.0 - 1.0 / 6.0, abs=1e-6)


# --- symmetry -------------------------------------------------------------------------------------------------------


@settings(max_examples=8, deadline=None)
@given(st.floats(1.0, 4.0), st.floats(0.5, 4.0), st.sampled_from([1e-3, 10.0, 1e5]))
def test_reflection_and_units_change_nothing(x0, v0, unit):
    def oscillator(scale, sign):
        system = daedal.MechanicalSystem(
            scale,
            lambda t, q, v: [scale * (2.0 * sign * math.cos(math.pi * t) - q[0] - 0.2 * v[0])],
            n_q=1,
            names=["x"],
        )
        return daedal.hybrid.Friction(system, [1.0], 2.0, normal=scale, mu_static=2.5)

    plain = run(oscillator(1.0, 1.0), 5.0, ([x0], [v0]), 1e-9)
    heavy = run(oscillator(unit, 1.0), 5.0, ([x0], [v0]), 1e-9)
    mirror = run(oscillator(1.0, -1.0), 5.0, ([-x0], [-v0]), 1e-9)
    assert targets(heavy) == targets(plain)
    np.testing.assert_allclose(heavy.events.t, plain.events.t, atol=1e-6)
    np.testing.assert_allclose(mirror.events.t, plain.events.t, atol=1e-9)
    np.testing.assert_allclose(mirror.q[0, -1], -plain.q[0, -1], atol=1e-9)
    assert targets(mirror) == [{"slip+": "slip-", "slip-": "slip+"}.get(name, name) for name in targets(plain)]


def test_scaling_the_direction_is_scaling_the_coefficient():
    # e -> c e multiplies force and relative velocity
    system = library.friction_oscillator().problem.system
    plain = run(daedal.hybrid.Friction(system, [1.0], 4.0, normal=1.0), 5.0, ([3.0], [4.0]), 1e-9)
    scaled = run(daedal.hybrid.Friction(system, [-8.0], 0.5, normal=1.0), 5.0, ([3.0], [4.0]), 1e-9)
    np.testing.assert_allclose(scaled.events.t, plain.events.t, atol=1e-7)


# --- bad input ------------------------------------------------------------------------------------------------------

POINT = daedal.MechanicalSystem(1.0, lambda t, q, v: [0.0], n_q=1)


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({}, "either normal, a force, or constraint"),
        ({"normal": 1.0, "constraint": 0}, "either normal, a force, or constraint"),
        ({"constraint": 0}, "constraint 0 does not exist"),
        ({"constraint": "rail"}, "constraint='rail': the constraints of the system have no names"),
        ({"normal": 1.0, "mu": -0.1}, "mu must not be negative"),
        ({"normal": 1.0, "mu": math.nan}, "mu"),
        ({"normal": 1.0, "mu_static": 0.1}, "mu_static = 0.1 is less"),
        ({"normal": 1.0, "stribeck": 0.0}, "stribeck"),
        ({"normal": 1.0, "stribeck": 1.0, "mu": lambda s: 0.3}, "stribeck: mu is already a curve"),
        ({"normal": 1.0, "direction": [0.0]}, "direction is zero"),
        ({"normal": 1.0, "direction": [1.0, 0.0]}, "direction has shape"),
        ({"normal": 1.0, "unilateral": True}, "unilateral=True requires constraint"),
        ({"normal": 1.0, "problem": 3}, "problem must be a MechanicalSystem"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_bad_arguments_are_named(options, match):
    arguments = {"problem": POINT, "direction": [1.0], "mu": 0.3} | options
    with pytest.raises(daedal.InvalidProblemError, match=match):
        daedal.hybrid.Friction(arguments.pop("problem"), arguments.pop("direction"), arguments.pop("mu"), **arguments)


@pytest.mark.parametrize(
    ("span", "initial", "error", "match"),
    [
        ((1.0, 0.0), ([0.0], [1.0]), daedal.InvalidProblemError, "backwards"),
        ((0.0, 1.0), 3.0, daedal.InvalidProblemError, "initial must be a pair"),
        ((0.0, 1.0), ([0.0, 1.0], [1.0]), daedal.InvalidProblemError, "q has shape"),
        ((0.0, 1.0), ("slip-", ([0.0], [1.0])), daedal.InconsistentInitialError, "relative velocity is 1"),
    ],
    ids=["backwards", "number", "shape", "wrong side"],
)
def test_bad_starts_are_named(span, initial, error, match):
    problem = daedal.hybrid.Friction(POINT, [1.0], 0.3, normal=1.0)
    with pytest.raises(error, match=match):
        problem.entry(span, initial)


def test_a_direction_that_the_constraints_forbid_is_reported():
    system = daedal.MechanicalSystem(1.0, lambda t, q, v: [0.0, 0.0], lambda t, q: [q[0]], n_q=2, n_constraints=1)
    problem = daedal.hybrid.Friction(system, [1.0, 0.0], 0.3, normal=1.0)
    with pytest.raises(daedal.InvalidProblemError, match="constraints alone determine the relative velocity"):
        problem.entry((0.0, 1.0), ([0.0, 0.0], [0.0, 1.0]))


def test_unique_motions_give_no_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error", daedal.errors.NonUniqueWarning)
        sol = run(floor(0.4), 1.0, ([0.0, 0.0], [3.0, 0.0]))
    assert sol.y[0, -1] == pytest.approx(3.0**2 / (2.0 * 0.4 * 9.81), rel=1e-7)  # where friction has stopped it


# --- tolerances, and runs before --------------------------------------------------------------------------------------


def pulled_block():
    block = daedal.MechanicalSystem(1.0, lambda t, q, v: [20.0 * (0.5 * t - q[0])], n_q=1, names=["x"])
    return daedal.hybrid.Friction(block, [1.0], mu=0.2, mu_static=0.3, normal=9.81)


def test_tolerances_may_be_vectors():
    """The mode "stick" has one variable more than those of slip."""
    problem = pulled_block()
    plain = daedal.solve(problem, (0.0, 6.0), ([0.0], [0.0]), rtol=1e-8, atol=1e-9)
    vector = daedal.solve(problem, (0.0, 6.0), ([0.0], [0.0]), rtol=[1e-8, 1e-8], atol=[1e-9, 1e-9])
    assert [event.name for event in vector.events] == [event.name for event in plain.events]
    np.testing.assert_allclose(vector.events.t, plain.events.t, atol=1e-7)


def test_a_run_does_not_depend_on_what_ran_before():
    fresh, used = pulled_block(), pulled_block()
    daedal.solve(used, (0.0, 2.0), ([3.0], [-1.0]))
    runs = [daedal.solve(problem, (0.0, 3.0), ([0.0], [0.0])) for problem in (fresh, used)]
    np.testing.assert_array_equal(runs[0].t, runs[1].t)
    np.testing.assert_array_equal(runs[0].y, runs[1].y)
