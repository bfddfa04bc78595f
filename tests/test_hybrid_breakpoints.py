"""Events and transitions at break points: what has another sign behind the point than before has fired there."""

import numpy as np
import pytest

import daedal

STEADY = daedal.ImplicitDAE(lambda t, y, yp: [yp[0] - 1.0], 1, names=["y"])
SPANS = {"there": (0.0, 2.0), "back": (2.0, 0.0)}


def step(t):
    return 1.0 if t >= 1.0 else -1.0


def solve(event, span=(0.0, 2.0), problem=STEADY, initial=([0.0], [1.0]), breakpoints=(1.0,), **options):
    return daedal.solve(problem, span, initial, breakpoints=list(breakpoints), events=event, **options)


@pytest.mark.parametrize("span", SPANS.values(), ids=SPANS)
@pytest.mark.parametrize("function", [lambda t, y: t - 1.0, lambda t, y: step(t), lambda t, y, yp: 1e9 * step(t)])
def test_a_terminal_event_at_a_break_point_ends_the_run(function, span):
    sol = solve(daedal.Event(function, terminal=True, name="there"), span)
    assert sol.status == "event" and "'there' stopped the integration at t = 1" in sol.message
    assert sol.events.t == pytest.approx([1.0], abs=1e-15)
    assert sol.t[-1] == pytest.approx(1.0, abs=1e-15)


@pytest.mark.parametrize("direction", [-1, 0, 1])
def test_the_direction_counts(direction):
    sol = solve(daedal.Event(lambda t, y: step(t), direction=direction, name="step"))
    assert len(sol.events) == (direction >= 0)
    assert all(event.direction == 1 and event.kind == "event" for event in sol.events)


def test_a_zero_that_is_touched_does_not_count():
    touching = solve(daedal.Event(lambda t, y: -((t - 1.0) ** 2)))
    arriving = solve(daedal.Event(lambda t, y: min(t - 1.0, 0.0), name="stays"))
    assert len(touching.events) == 0
    assert len(arriving.events) == 1


def test_nothing_fires_twice():
    names = ["time", "jump", "state"]
    sol = solve(
        [
            daedal.Event(lambda t, y: t - 1.0, name="time"),
            daedal.Event(lambda t, y: step(t), name="jump"),
            daedal.Event(lambda t, y: y[0] - 1.0, name="state"),
        ]
    )
    assert sorted(event.name for event in sol.events) == sorted(names)


def test_jumps_at_several_break_points_and_those_between():
    points = [0.25, 0.5, 1.0, 1.5]
    wave = daedal.Event(lambda t, y: (-1.0) ** np.searchsorted(points, t, side="right"), name="wave")
    sol = solve([wave, daedal.Event(lambda t, y: t - 0.7, name="between")], breakpoints=points)
    assert sol.events.named("wave").t.tolist() == points
    assert sol.events.named("between").t == pytest.approx([0.7], abs=1e-14)
    assert [event.direction for event in sol.events.named("wave")] == [-1, 1, -1, 1]


@pytest.mark.parametrize("k", [1, 2, 3])
def test_occurrences_are_counted_over_all_pieces(k):
    points = [0.5, 1.0, 1.5]
    wave = daedal.Event(lambda t, y: (-1.0) ** np.searchsorted(points, t, side="right"), terminal=k)
    vector = daedal.Event(lambda t, y: [t + 1.0, np.sin(2.0 * np.pi * t - 0.3)], terminal=k, name="v")
    sol = solve(wave, breakpoints=points)
    assert sol.status == "event" and sol.events[-1].t == points[k - 1] and len(sol.events) == k
    sol = solve(vector, breakpoints=points)
    assert sol.status == "event" and [event.name for event in sol.events] == ["v[1]"] * k
    assert sol.events[-1].t == pytest.approx((0.3 + (k - 1) * np.pi) / (2.0 * np.pi), abs=1e-9)


CLASSES = {
    "implicit": (
        daedal.ImplicitDAE(lambda t, y, yp: [yp[0] - y[1], y[1] - step(t)], 2),
        ([0.0, -1.0], [-1.0, 0.0]),
        lambda t, y: y[1],
    ),
    "semi-explicit": (
        daedal.SemiExplicitDAE(lambda t, y, z: [z[0]], lambda t, y, z: [z[0] - step(t)], 1, 1),
        ([0.0], [-1.0]),
        lambda t, y, z: z[0],
    ),
    "mechanical": (
        daedal.MechanicalSystem(1.0, lambda t, q, v: [0.0], n_q=1),
        ([0.0], [1.0]),
        lambda t, q, v: v[0] * step(t),
    ),
    "second order": (
        daedal.SecondOrderDAE(lambda t, x, xp, xpp: [xpp[0]], 1),
        ([0.0], [1.0]),
        lambda t, x, xp: t - xp[0],
    ),
}


@pytest.mark.parametrize("name", CLASSES)
def test_variables_that_jump_at_a_break_point_fire(name):
    problem, initial, function = CLASSES[name]
    sol = solve(daedal.Event(function, terminal=True), problem=problem, initial=initial)
    assert sol.status == "event" and sol.events[0].t == pytest.approx(1.0, abs=1e-15)


# --- transitions ------------------------------------------------------------------------------------------------------


def modes(guard, target="late", **options):
    late = daedal.ImplicitDAE(lambda t, y, yp: [yp[0] + 1.0], 1, names=["y"])
    way = daedal.hybrid.Transition("early", target, guard, name="switch", **options)
    return daedal.hybrid.HybridProblem({"early": STEADY, "late": late}, [way])


@pytest.mark.parametrize("immediate", [True, False])
@pytest.mark.parametrize("direction", [0, 1])
@pytest.mark.parametrize("guard", [lambda t, y: t - 1.0, lambda t, y: step(t)])
def test_a_guard_that_changes_its_sign_at_a_break_point_is_a_transition(guard, direction, immediate):
    problem = modes(guard, direction=direction, immediate=immediate)
    sol = solve(None, problem=problem, initial=("early", ([0.0], [1.0])))
    assert [(e.t, e.kind, e.target) for e in sol.events] == [(1.0, "transition", "late")]
    assert sol.y[0, -1] == pytest.approx(0.0, abs=1e-9)


def test_an_instant_at_a_break_point_is_marked_once():
    sol = solve(None, problem=modes(lambda t, y: t - 1.0, "early", direction=1), initial=("early", ([0.0], [1.0])))
    assert sol.events.t.tolist() == [1.0] and sol.status == "finished"


def test_a_terminal_event_goes_before_a_transition():
    sol = solve(
        daedal.Event(lambda t, y: step(t), terminal=True, name="stop"),
        problem=modes(lambda t, y: step(t), direction=1),
        initial=("early", ([0.0], [1.0])),
    )
    assert sol.status == "event" and [event.name for event in sol.events] == ["stop"]


def test_a_transition_just_before_a_break_point_is_not_undone():
    """The rest of the piece cannot be resolved, and the reset must survive it."""
    place = float(np.nextafter(1.0, 0.0)) - 1e-13
    problem = modes(lambda t, y: t - place, direction=1, reset=lambda t, y: ([5.0], [-1.0]))
    sol = solve(None, problem=problem, initial=("early", ([0.0], [1.0])))
    assert sol.y[0, -1] == pytest.approx(4.0, abs=1e-9)


def test_max_events_holds_for_all_pieces_together():
    back = daedal.hybrid.Transition("late", "early", lambda t, y: np.sin(40.0 * t), direction=1, name="back")
    way = daedal.hybrid.Transition("early", "late", lambda t, y: np.sin(40.0 * t), direction=-1, name="there")
    problem = daedal.hybrid.HybridProblem({"early": STEADY, "late": STEADY}, [way, back])
    with pytest.raises(daedal.IntegrationError, match="10 transitions"):
        solve(None, problem=problem, initial=("early", ([0.0], [1.0])), breakpoints=[0.5, 1.0, 1.5], max_events=10)


def test_output_times_and_segments_of_a_hybrid_problem():
    times = np.linspace(0.0, 2.0, 9)
    problem = modes(lambda t, y: t - 0.6, direction=1)
    sol = solve(None, problem=problem, initial=("early", ([0.0], [1.0])), t_eval=times)
    np.testing.assert_array_equal(sol.t, times)
    np.testing.assert_allclose(sol.y[0], np.where(times < 0.6, times, 1.2 - times), atol=1e-8)
    assert [segment.mode for segment in sol.segments] == ["early", "late", "late"]
    np.testing.assert_allclose(sol(times)[0], sol.y[0], atol=1e-9)


@pytest.mark.parametrize("at", [1.3, 1.0 / 3.0, 2.9999])
@pytest.mark.parametrize("span", [(0.0, 3.0), (3.0, 0.0)], ids=["forwards", "backwards"])
@pytest.mark.parametrize("stored", ["every step", "t_eval", "dense"])
def test_an_event_in_the_instant_of_a_break_point_stops_there_to_the_bit(at, span, stored):
    spring = daedal.MechanicalSystem(1.0, lambda t, q, v: [-q[0]], n_q=1)
    oscillator = daedal.ImplicitDAE(lambda t, y, yp: [yp[0] - y[1], yp[1] + y[0]], 2)
    options = {"t_eval": [span[0], at, span[1]]} if stored == "t_eval" else {"dense_output": stored == "dense" or None}
    for sign in (1.0, -1.0):
        stop = daedal.Event(lambda t, y, sign=sign: sign * (t - at), terminal=True)
        for problem, start in ((spring, ([1.0], [0.0])), (oscillator, ([1.0, 0.0], None))):
            sol = daedal.solve(problem, span, start, events=stop, breakpoints=[at], **options)
            assert sol.status == "event" and sol.t[-1] == at and sol.events[-1].t == at
            assert sol.y[0, -1] == pytest.approx(np.cos(at - span[0]), abs=1e-4)
