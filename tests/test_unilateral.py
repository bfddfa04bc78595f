"""Contacts that open and close: blocks, ladders, strings, and which contacts stay closed."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import daedal

G = 9.81
WIDTH, HEIGHT = 0.5, 0.3  # half of those of the block
INERTIA = (WIDTH**2 + HEIGHT**2) / 3.0


def point(n=2):
    return daedal.MechanicalSystem(1.0, lambda t, q, v: [0.0] * (n - 1) + [-G], n_q=n)


def block(restitution, law="newton", **options):
    """A block whose two lower corners touch the table."""
    system = daedal.MechanicalSystem(
        [1.0, 1.0, INERTIA], lambda t, q, v: [0.0, -G, 0.0], n_q=3, names=["x", "y", "phi"]
    )
    corners = [
        daedal.hybrid.Contact(
            lambda t, q, s=s: q[1] + s * WIDTH * np.sin(q[2]) - HEIGHT * np.cos(q[2]), restitution, name=name
        )
        for s, name in ((-1.0, "left"), (1.0, "right"))
    ]
    return daedal.hybrid.UnilateralProblem(system, corners, law=law, **options)


def corners(q):
    return np.array([q[1] + s * WIDTH * np.sin(q[2]) - HEIGHT * np.cos(q[2]) for s in (-1.0, 1.0)])


def energy(y):
    return 0.5 * (y[3] ** 2 + y[4] ** 2 + INERTIA * y[5] ** 2) + G * y[1]


# --- a block on a table -----------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("law", ["newton", "poisson"])
@pytest.mark.parametrize("e", [0.0, 0.3, 0.6])
def test_a_block_that_is_thrown_on_a_table_comes_to_rest(e, law):
    start = ([0.0, 1.0, 0.2], [1.0, 0.0, 0.0])
    sol = daedal.solve(block(e, law), (0.0, 5.0), ("free", start), rtol=1e-8, atol=1e-10)
    assert sol.mode[-1] == "left + right"
    np.testing.assert_allclose(sol.q[:, -1], [5.0, HEIGHT, 0.0], atol=1e-7)  # nothing acts along the table
    np.testing.assert_allclose(sol.v[:, -1], [1.0, 0.0, 0.0], atol=1e-7)
    assert corners(sol.q).min() > -1e-8
    losses = [energy(event.y) - energy(event.y_after) for event in sol.events if event.kind == "transition"]
    assert min(losses) > -1e-8
    names = {event.name for event in sol.events}
    assert {"left closes", "right closes"} <= names


@pytest.mark.slow
@settings(max_examples=10)
@given(st.floats(-0.4, 0.4), st.floats(-2.0, 2.0), st.sampled_from([0.0, 0.4]))
def test_blocks_never_fall_through_the_table(angle, spin, e):
    start = ([0.0, 1.2, angle], [0.0, 0.0, spin])
    sol = daedal.solve(block(e), (0.0, 1.0), ("free", start), rtol=1e-7, atol=1e-9)
    assert corners(sol.q).min() > -1e-6
    mirror = ([0.0, 1.2, -angle], [0.0, 0.0, -spin])
    other = daedal.solve(block(e), (0.0, 1.0), ("free", mirror), rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(other.q[:, -1], sol.q[:, -1] * [1.0, 1.0, -1.0], atol=1e-4)


def test_a_block_that_falls_flat_hits_with_both_corners_at_once():
    sol = daedal.solve(block(0.5), (0.0, 0.6), ("free", ([0.0, 1.0, 0.0], [0.0, 0.0, 0.0])), rtol=1e-10, atol=1e-12)
    t = math.sqrt(2.0 * (1.0 - HEIGHT) / G)
    first = next(event for event in sol.events if event.kind == "transition")
    assert first.t == pytest.approx(t, abs=1e-10)
    np.testing.assert_allclose(first.y_after[3:], [0.0, 0.5 * G * t, 0.0], atol=1e-9)
    assert np.abs(sol.q[2]).max() < 1e-9


@pytest.mark.parametrize("e", [0.0, 0.5, 0.9])
def test_a_ball_whose_coordinate_vanishes_with_the_gap(e):
    """At the impact the position is zero up to round-off, and tells nothing about its own size."""
    problem = daedal.hybrid.UnilateralProblem(point(1), daedal.hybrid.Contact(lambda t, q: q[0], e, name="floor"))
    sol = daedal.solve(problem, (0.0, 12.0), ("free", ([1.0], [0.0])), rtol=1e-12, atol=1e-14)
    assert sol.events[-1].t == pytest.approx(math.sqrt(2.0 / G) * (1.0 + e) / (1.0 - e), abs=1e-10)
    assert sol.mode[-1] == "floor" and sol.q[0, -1] == 0.0


@pytest.mark.parametrize("e", [0.1, 0.4, 0.6, 0.7])
def test_a_last_bounce_that_closes_the_contact_ends_the_accumulation(e):
    """A ball that moves sideways too: whether a bounce or the limit of them closes the contact, the run goes on."""
    ball = daedal.MechanicalSystem(1.0, lambda t, q, v: [0.0, -9.81], n_q=2, names=["x", "y"])
    problem = daedal.hybrid.UnilateralProblem(
        ball, daedal.hybrid.Contact(lambda t, q: q[1], restitution=e, name="floor")
    )
    sol = daedal.solve(problem, (0.0, 4.0), ("free", ([0.0, 1.0], [1.0, 0.0])))
    assert sol.status == "finished" and sol.mode[-1] == "floor"
    assert sol["x"][-1] == pytest.approx(4.0, abs=1e-5) and abs(sol["y"][-1]) < 1e-8


def test_slow_impacts_are_plastic():
    def count(speed):
        problem = daedal.hybrid.UnilateralProblem(
            point(1), daedal.hybrid.Contact(lambda t, q: q[0], 0.9, name="floor"), rest_speed=speed
        )
        sol = daedal.solve(problem, (0.0, 20.0), ("free", ([1.0], [0.0])), rtol=1e-8)
        assert sol.mode[-1] == "floor"
        return len(sol.events)

    # speeds after impacts: 4.43 * 0.9^k
    assert count(2.0) == math.ceil(math.log(2.0 / math.sqrt(2.0 * G)) / math.log(0.9)) + 1
    assert count(0.0) > 60


def test_a_start_in_the_wrong_mode_is_put_right():
    problem = daedal.hybrid.UnilateralProblem(point(1), daedal.hybrid.Contact(lambda t, q: q[0], name="floor"))
    sol = daedal.solve(problem, (0.0, 1.0), ("free", ([0.0], [0.0])))
    assert sol.mode[-1] == "floor" and sol.q[0, -1] == 0.0
    lifted = daedal.MechanicalSystem(1.0, lambda t, q, v: [+1.0], n_q=1)
    problem = daedal.hybrid.UnilateralProblem(lifted, daedal.hybrid.Contact(lambda t, q: q[0], name="floor"))
    sol = daedal.solve(problem, (0.0, 1.0), ("floor", ([0.0], [0.0])), rtol=1e-9)
    assert sol.mode[-1] == "free" and sol.q[0, -1] == pytest.approx(0.5, abs=1e-8)


# --- opening ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("angle", [0.6, 1.2, 1.5])
def test_a_ladder_leaves_the_wall_at_two_thirds_of_its_height(angle):
    model = daedal.library.sliding_ladder(angle)
    sol = daedal.solve(model.problem, (0.0, 3.0), model.initial, rtol=1e-10, atol=1e-12)
    event = sol.events[0]
    assert event.name == "wall opens" and event.target == "floor"
    assert event.y[2] == pytest.approx(model.extra["leaving_angle"], abs=1e-8)


def test_a_ball_is_thrown_off_a_vibrating_table():
    """It leaves where the table is accelerated downwards by g: a w^2 sin(w t) = g."""
    a, w = 0.1, 12.0
    problem = daedal.hybrid.UnilateralProblem(
        point(1), daedal.hybrid.Contact(lambda t, q: q[0] - a * np.sin(w * t), name="table")
    )
    sol = daedal.solve(problem, (0.0, 0.5), ("table", ([0.0], [a * w])), rtol=1e-10, atol=1e-12)
    t = math.asin(G / (a * w**2)) / w
    assert sol.events[0].name == "table opens"
    assert sol.events[0].t == pytest.approx(t, abs=1e-8)
    s = 0.04
    flight = a * math.sin(w * t) + a * w * math.cos(w * t) * s - 0.5 * G * s * s
    assert sol(t + s).q[0] == pytest.approx(flight, abs=1e-8)


@pytest.mark.parametrize("e", [0.0, 0.5])
def test_a_string_goes_slack_and_taut_again(e):
    """v0^2 = 3.5 g: slack at cos = 1/2 above the pivot, then a parabola, taut again where it meets the circle."""
    string = daedal.hybrid.Contact(lambda t, q: 1.0 - q[0] ** 2 - q[1] ** 2, restitution=e, name="string")
    problem = daedal.hybrid.UnilateralProblem(point(), string)
    start = ("string", ([0.0, -1.0], [math.sqrt(3.5 * G), 0.0]))
    sol = daedal.solve(problem, (0.0, 4.0), start, rtol=1e-10, atol=1e-12)
    slack, taut = sol.events[:2]
    assert (slack.name, taut.name) == ("string opens", "string closes")
    assert slack.y[1] == pytest.approx(0.5, abs=1e-8)
    flight = 4.0 * math.sqrt(0.5 * G) * math.sqrt(0.75) / G  # v^2 = g / 2 there; |q + v t - g t^2 / 2| = 1
    assert taut.t - slack.t == pytest.approx(flight, abs=1e-8)
    q, v = taut.y[:2], taut.y[2:]
    normal = q @ v
    assert taut.y_after[:2] @ taut.y_after[2:] == pytest.approx(-e * normal, abs=1e-8)
    tangent = np.array([-q[1], q[0]])
    assert tangent @ taut.y_after[2:] == pytest.approx(tangent @ v, abs=1e-8)
    assert sol.mode[-1] == "string"
    assert np.max(np.sum(sol.q**2, axis=0)) < 1.0 + 1e-9


def test_a_bead_on_a_wire_between_stops_bounces_for_ever():
    """With a constraint of its own: a bead on the line y = x, elastic stops at x = 0 and x = 1."""
    bead = daedal.MechanicalSystem(
        1.0, lambda t, q, v: [0.0, 0.0], lambda t, q: [q[1] - q[0]], n_q=2, n_constraints=1, names=["x", "y"]
    )
    stops = [
        daedal.hybrid.Contact(lambda t, q: q[0], 1.0, gradient=lambda t, q: [1.0, 0.0], name="lower"),
        daedal.hybrid.Contact(lambda t, q: 1.0 - q[0], 1.0, gradient=lambda t, q: [-1.0, 0.0], name="upper"),
    ]
    sol = daedal.solve(
        daedal.hybrid.UnilateralProblem(bead, stops), (0.0, 10.25), ("free", ([0.5, 0.5], [1.0, 1.0])), rtol=1e-9
    )
    np.testing.assert_allclose(sol.events.t, 0.5 + np.arange(10), atol=1e-8)
    np.testing.assert_allclose(sol.v[:, -1], [1.0, 1.0], atol=1e-9)


def test_three_legs_share_the_load():
    """Closed contacts that depend on each other: a rod on three supports stays at rest."""
    rod = daedal.MechanicalSystem([1.0, 0.1], lambda t, q, v: [-G, 0.0], n_q=2)
    legs = [daedal.hybrid.Contact(lambda t, q, s=s: q[0] + s * q[1], name=f"leg {s:g}") for s in (-1.0, 0.0, 1.0)]
    sol = daedal.solve(
        daedal.hybrid.UnilateralProblem(rod, legs), (0.0, 2.0), ("free", ([0.5, 0.0], [0.0, 0.0])), rtol=1e-8
    )
    assert sol.q[0].min() > -1e-9 and abs(sol.q[0, -1]) < 1e-9 and abs(sol.q[1, -1]) < 1e-9


def test_parameters_reach_the_gap():
    ball = daedal.MechanicalSystem(1.0, lambda t, q, v, p: [-p["g"]], n_q=1, params={"g": G, "floor": -1.0})
    floor = daedal.hybrid.Contact(lambda t, q, p: q[0] - p["floor"], 0.5, name="floor")
    sol = daedal.solve(daedal.hybrid.UnilateralProblem(ball, floor), (0.0, 1.0), ("free", ([0.0], [0.0])), rtol=1e-10)
    assert sol.events[0].t == pytest.approx(math.sqrt(2.0 / G), abs=1e-9)


# --- bad input --------------------------------------------------------------------------------------------------------


def with_states():
    return daedal.MechanicalSystem(1.0, lambda t, q, v, r: [r[0]], n_q=1, state_rate=lambda t, q, v, r: [0.0], n_r=1)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: daedal.hybrid.UnilateralProblem(point(), lambda t, q: q[0], creep=0.0), "creep must be positive"),
        (lambda: daedal.hybrid.UnilateralProblem(point(), []), "contacts is empty"),
        (lambda: daedal.hybrid.UnilateralProblem(None, lambda t, q: q[0]), "must be a MechanicalSystem"),
        (lambda: daedal.hybrid.UnilateralProblem(with_states(), lambda t, q: q[0]), "additional states r"),
        (
            lambda: daedal.hybrid.UnilateralProblem(point(), daedal.hybrid.Contact(lambda t, q: q[0], name="free")),
            "'free' is the name",
        ),
        (
            lambda: daedal.hybrid.UnilateralProblem(point(), [daedal.hybrid.Contact(lambda t, q: q[0], name="a")] * 2),
            "'a' is given twice",
        ),
        (lambda: daedal.hybrid.UnilateralProblem(point(), lambda t, q: q[0], rest_speed=-1.0), "must not be negative"),
        (lambda: daedal.hybrid.UnilateralProblem(point(), lambda t, q: q[0], law="hertz"), "unknown law"),
    ],
    ids=range(8),
)
def test_bad_input(call, message):
    with pytest.raises(daedal.InvalidProblemError, match=message):
        call()


@pytest.mark.parametrize("step", [0.125, 0.25, 0.5, 1.0])
def test_a_gap_that_is_zero_at_the_very_end_of_a_step_is_a_contact(step):
    """The gap is 1 - t^2 up to round-off, and steps end at t = 1."""
    ball = daedal.MechanicalSystem(1.0, lambda t, q, v: [-2.0], n_q=1)
    problem = daedal.hybrid.UnilateralProblem(ball, daedal.hybrid.Contact(lambda t, q: q[0], 0.5, name="floor"))
    sol = daedal.solve(problem, (0.0, 1.5), ([1.0], [0.0]), first_step=step, max_step=step)
    assert [event.t for event in sol.events] == [pytest.approx(1.0, abs=1e-12)]
    assert sol.y[0, -1] == pytest.approx(0.5 - 0.25, abs=1e-9)
