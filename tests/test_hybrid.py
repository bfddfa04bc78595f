"""Runs through modes: against closed forms, across problem classes, at points of accumulation, and what is stored."""

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import daedal
from daedal.events.accumulation import AccumulationWatch
from interrupts import computed_until

G = 9.81


def fall(t, q, v):
    return np.array([0.0, -9.81])


def free(n_q=2, **options):
    return daedal.MechanicalSystem(1.0, fall, n_q=n_q, names=["x", "y"], **options)


def impact(restitution, **options):
    return daedal.hybrid.Transition(
        "flight",
        "flight",
        guard=lambda t, q, v: q[1],
        direction=-1,
        reset=lambda t, q, v: (q, [v[0], -restitution * v[1]]),
        name="impact",
        **options,
    )


def impact_times(count, restitution):
    """Of a ball that is dropped from height 1."""
    first = np.sqrt(2.0 / G)
    return first + np.concatenate([[0.0], np.cumsum(2.0 * first * restitution ** np.arange(1, count))])


def bouncing(restitution=0.8, *more, modes=None):
    return daedal.hybrid.HybridProblem({"flight": free(), **(modes or {})}, [impact(restitution), *more])


DROPPED = ("flight", ([0.0, 1.0], [1.0, 0.0]))


def one(rate, **options):
    """y' = rate, as an implicit problem."""
    return daedal.ImplicitDAE(lambda t, y, yp: [yp[0] - rate], 1, **options)


# --- bouncing balls -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["auto", "dopri5", "phem56", "dassl"])
def test_impact_times_agree_with_the_closed_form(method):
    sol = daedal.solve(bouncing(), (0.0, 3.9), DROPPED, method=method, rtol=1e-12, atol=1e-12)
    expected = impact_times(len(sol.events), 0.8)
    assert sol.status == "finished" and sol.success
    assert len(sol.events) == 14
    np.testing.assert_allclose(sol.events.t, expected, atol=1e-10)
    assert set(sol.events[3].__dict__) >= {"y", "y_after"}
    assert sol.events[3].y_after[3] == pytest.approx(-0.8 * sol.events[3].y[3], rel=1e-12)


@pytest.mark.parametrize("restitution", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("rtol", [1e-4, 1e-8, 1e-12])
def test_zeno_point_is_reported(restitution, rtol):
    sol = daedal.solve(bouncing(restitution), (0.0, 20.0), DROPPED, rtol=rtol, atol=1e-3 * rtol)
    first = np.sqrt(2.0 / G)
    point = first * (1.0 + restitution) / (1.0 - restitution)
    assert sol.status == "zeno" and not sol.success
    assert abs(sol.t[-1] - point) < 2.0 * rtol * point + 1e-9
    found = float(sol.message.split("accumulate at t = ")[1].split()[0])
    assert found == pytest.approx(point, abs=1e-3 * rtol * point + 2e-9)
    assert "guard='zeno'" in sol.message


@settings(max_examples=25, deadline=None)
@given(
    restitution=st.floats(0.05, 0.98),
    height=st.floats(1e-3, 1e3),
    start=st.floats(-1e2, 1e2),
    direction=st.sampled_from([-1, 0]),
)
def test_impacts_of_any_ball_from_any_height_at_any_time(restitution, height, start, direction):
    problem = daedal.hybrid.HybridProblem(
        {"flight": free()},
        [
            daedal.hybrid.Transition(
                "flight",
                "flight",
                lambda t, q, v: q[1],
                direction,
                lambda t, q, v: (q, [v[0], -restitution * v[1]]),
                "impact",
            )
        ],
    )
    expected = start + np.sqrt(height) * impact_times(5, restitution)
    end = expected[4] + 0.5 * (expected[4] - expected[3]) * restitution
    initial = ("flight", ([0.0, height], [1.0, 0.0]))
    sol = daedal.solve(problem, (start, end), initial, rtol=1e-10, atol=1e-12)
    assert sol.status == "finished" and sol.n_events == 5
    np.testing.assert_allclose(sol.events.t, expected, atol=1e-8 * np.sqrt(height) + 1e-10)


@pytest.mark.parametrize("atol", [1e-9, 1e-14])
def test_a_mode_can_follow_the_zeno_point(atol):
    rest = free().replaced(constraint=lambda t, q: [q[1]], n_constraints=1)
    problem = bouncing(0.5, daedal.hybrid.Transition("flight", "rest", "zeno", name="rests"), modes={"rest": rest})
    sol = daedal.solve(problem, (0.0, 3.0), DROPPED, rtol=1e-8, atol=atol)
    point = 3.0 * np.sqrt(2.0 / G)
    assert sol.status == "finished" and sol.mode[-1] == "rest"
    assert sol.events[-1].kind == "zeno" and sol.events[-1].t == pytest.approx(point, abs=1e-9)
    assert sol.q[0, -1] == pytest.approx(3.0, abs=1e-7) and sol.q[1, -1] == pytest.approx(0.0, abs=1e-12)
    assert sol.lam[0, -1] == pytest.approx(-G) and np.isnan(sol.lam[0, 0])


def test_the_end_may_lie_before_the_zeno_point():
    sol = daedal.solve(bouncing(0.5), (0.0, 1.3), DROPPED, rtol=1e-8)
    assert sol.status == "finished" and sol.t[-1] == 1.3


def test_a_ball_in_a_box_meets_both_walls_of_a_corner_at_once():
    def wall(i, low):
        return daedal.hybrid.Transition(
            "flight",
            "flight",
            (lambda t, q, v: q[i] + 1.0) if low else (lambda t, q, v: 1.0 - q[i]),
            direction=-1,
            reset=lambda t, q, v: (q, [-v[0], v[1]] if i == 0 else [v[0], -v[1]]),
            name=f"{'xy'[i]}{'-' if low else '+'}",
        )

    ball = daedal.MechanicalSystem(1.0, lambda t, q, v: [0.0, 0.0], n_q=2)
    walls = [wall(i, low) for i in (0, 1) for low in (True, False)]
    problem = daedal.hybrid.HybridProblem({"flight": ball}, walls)
    sol = daedal.solve(problem, (0.0, 7.5), ("flight", ([0.0, 0.0], [1.0, 1.0])), rtol=1e-10)
    assert sol.n_events == 8
    np.testing.assert_allclose(sol.events.named("x+").t, [1.0, 5.0], atol=1e-10)
    taken = sol.events.named("y+")
    np.testing.assert_allclose([e.t for e in taken if e.kind != "not taken"], [1.0, 5.0], atol=1e-10)
    np.testing.assert_allclose(sol.q[:, -1], [-0.5, -0.5], atol=1e-9)
    np.testing.assert_allclose(sol.v[:, -1], [1.0, 1.0], atol=1e-9)


def test_time_may_run_backwards():
    ball = free()
    rise = daedal.hybrid.Transition(
        "flight", "flight", lambda t, q, v: q[1], -1, lambda t, q, v: (q, [v[0], -v[1]]), "bounce"
    )
    problem = daedal.hybrid.HybridProblem({"flight": ball}, [rise])
    there = daedal.solve(problem, (0.0, 2.0), DROPPED, rtol=1e-11, atol=1e-12)
    back = daedal.solve(problem, (2.0, 0.0), ("flight", (there.q[:, -1], there.v[:, -1])), rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(back.events.t[::-1], there.events.t, atol=1e-9)
    np.testing.assert_allclose(back.y[:, -1], there.y[:, 0], atol=1e-8)


def test_a_guard_of_both_directions_is_not_met_again_where_it_was_left():
    """The state lies a rounding error beyond the guard after an impact and crosses it a second time on its way back."""
    problem = daedal.hybrid.HybridProblem(
        {"flight": free()},
        [
            daedal.hybrid.Transition(
                "flight", "flight", lambda t, q, v: q[1], 0, lambda t, q, v: (q, [v[0], -0.8 * v[1]]), "hit"
            )
        ],
    )
    sol = daedal.solve(problem, (0.0, 3.0), DROPPED, rtol=1e-10)
    np.testing.assert_allclose(sol.events.t, impact_times(len(sol.events), 0.8), atol=1e-9)
    assert len(sol.events) == 6


def test_the_first_step_of_a_stretch_may_be_longer_than_the_stretch():
    sol = daedal.solve(bouncing(0.02), (0.0, 0.46), DROPPED, rtol=1e-8)
    np.testing.assert_allclose(sol.events.t, impact_times(len(sol.events), 0.02), atol=1e-9)
    assert len(sol.events) == 1
    sol = daedal.solve(bouncing(0.02), (0.0, 0.4704), DROPPED, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(sol.events.t[:3], impact_times(3, 0.02), atol=1e-10)


# --- other problems ------------------------------------------------------------------------------------------------


def heated(power, kind):
    names = ["temperature"]
    if kind == "implicit":
        return daedal.ImplicitDAE(lambda t, y, yp: [yp[0] - power + 0.1 * (y[0] - 10.0)], 1, names=names)
    return daedal.SemiExplicitDAE(
        lambda t, y, z: [z[0] - 0.1 * (y[0] - 10.0)], lambda t, y, z: [z[0] - power], 1, 1, names=[*names, "power"]
    )


@pytest.mark.parametrize("kinds", [("implicit", "implicit"), ("semi", "semi"), ("implicit", "semi")], ids="-".join)
def test_a_thermostat_switches_at_the_times_of_the_closed_form(kinds):
    guards = {
        "implicit": (lambda t, y: y[0] - 22.0, lambda t, y: y[0] - 18.0),
        "semi": (lambda t, y, z: y[0] - 22.0, lambda t, y, z: y[0] - 18.0),
    }
    problem = daedal.hybrid.HybridProblem(
        {"on": heated(2.0, kinds[0]), "off": heated(0.0, kinds[1])},
        [
            daedal.hybrid.Transition("on", "off", guards[kinds[0]][0], direction=1, name="hot"),
            daedal.hybrid.Transition("off", "on", guards[kinds[1]][1], direction=-1, name="cold"),
        ],
    )
    sol = daedal.solve(problem, (0.0, 30.0), ("on", ([15.0], None)), rtol=1e-9, atol=1e-10)
    expected = 10.0 * np.log(15.0 / 8.0) + 10.0 * np.log(1.5) * np.arange(len(sol.events))
    assert len(sol.events) == 6 and sol.mode[-1] == "on"
    np.testing.assert_allclose(sol.events.t, expected, atol=2e-7)
    assert [e.target for e in sol.events[:2]] == ["off", "on"]
    assert np.all(sol["temperature"] < 22.0 + 1e-6)


def circle(t, q):
    return np.array([0.5 * (q[0] ** 2 + q[1] ** 2 - 1.0)])


def string_pendulum(project=True, reset=None):
    taut = free().replaced(constraint=circle, n_constraints=1, constraint_names=["string"])
    return daedal.hybrid.HybridProblem(
        {"taut": taut, "slack": free()},
        [
            daedal.hybrid.Transition("taut", "slack", lambda t, q, v, lam: lam[0], direction=-1, name="goes slack"),
            daedal.hybrid.Transition(
                "slack", "taut", lambda t, q, v: circle(t, q)[0], 1, reset, name="pulls taut", project=project
            ),
        ],
    )


STRUCK = ("taut", ([0.0, -1.0], [np.sqrt(3.5 * G), 0.0]))


def test_a_pendulum_on_a_string_flies_when_the_string_goes_slack():
    """Lambda vanishes at the height (v0^2 - 2 g)/(3 g) = 1/2; the parabola from there ends at the bottom."""
    sol = daedal.solve(string_pendulum(), (0.0, 1.5), STRUCK, rtol=1e-10, atol=1e-12)
    slack, taut = sol.events
    assert (slack.name, taut.name) == ("goes slack", "pulls taut")
    np.testing.assert_allclose(slack.y, [np.sqrt(0.75), 0.5, -0.5 * np.sqrt(G / 2), np.sqrt(0.75 * G / 2)], atol=1e-8)
    assert taut.t - slack.t == pytest.approx(4.0 * np.sqrt(0.75 * G / 2.0) / G, abs=1e-8)
    # Perfectly inelastic: the radial velocity is lost, the tangential one kept.
    np.testing.assert_allclose(taut.y_after, [0.0, -1.0, taut.y[2], 0.0], atol=1e-7)
    assert sol.drift["position"] < 1e-12
    assert list(dict.fromkeys(sol.mode.tolist())) == ["taut", "slack"] and sol.mode[-1] == "taut"


def test_a_reset_that_violates_the_constraints_of_its_target_is_refused():
    with pytest.raises(daedal.IntegrationError, match=r"(?s)'pulls taut'.*'string'.*project=True") as caught:
        daedal.solve(string_pendulum(project=False), (0.0, 1.5), STRUCK, rtol=1e-8)
    assert isinstance(caught.value.__cause__, daedal.InconsistentInitialError)
    assert caught.value.solution.t[-1] == pytest.approx(1.26405617, abs=1e-6)
    assert caught.value.solution.events[0].name == "goes slack"


def test_a_reset_onto_the_constraints_is_taken_as_it_is():
    def tangential(t, q, v):
        return q, v - (q @ v) * q / (q @ q)

    given = daedal.solve(string_pendulum(False, tangential), (0.0, 1.5), STRUCK, rtol=1e-8)
    projected = daedal.solve(string_pendulum(), (0.0, 1.5), STRUCK, rtol=1e-8)
    np.testing.assert_allclose(given.y[:, -1], projected.y[:, -1], atol=1e-5)


def test_modes_of_different_dimension_are_matched_by_names():
    falling = daedal.ImplicitDAE(lambda t, y, yp: [yp[0] - y[1], yp[1] + G], 2, names=["h", "w"])
    sinking = daedal.ImplicitDAE(lambda t, y, yp: [yp[0] + 1.0], 1, names=["h"])
    problem = daedal.hybrid.HybridProblem(
        {"falling": falling, "sinking": sinking},
        [
            daedal.hybrid.Transition("falling", "sinking", lambda t, y: y[0], direction=-1, name="splash"),
            daedal.hybrid.Transition(
                "sinking", "falling", lambda t, y: y[0] + 1.0, -1, lambda t, y: [2.0, 0.0], "again"
            ),
        ],
    )
    sol = daedal.solve(problem, (0.0, 2.0), ("falling", ([2.0, 0.0], None)), rtol=1e-9)
    splash = np.sqrt(4.0 / G)
    np.testing.assert_allclose(sol.events.t, [splash, splash + 1.0], atol=1e-8)
    assert sol.names == ("h", "w") and sol.y.shape == (2, sol.t.size)
    assert np.isnan(sol["w"][sol.mode == "sinking"]).all() and np.isfinite(sol["w"][sol.mode == "falling"]).all()
    assert sol(splash + 0.5).shape == (1,)
    between = sol(np.array([0.1, splash + 0.5]))
    np.testing.assert_allclose(between, [[2.0 - 0.5 * G * 0.01, -0.5], [-0.1 * G, np.nan]], atol=1e-7)
    with pytest.raises(AttributeError, match="coordinates"):
        sol.q  # noqa: B018


def test_the_target_may_be_chosen_at_the_switch_and_each_has_its_reset():
    problem = daedal.hybrid.HybridProblem(
        {"up": one(1.0), "slow": one(-1.0), "fast": one(-10.0)},
        [
            daedal.hybrid.Transition(
                "up",
                lambda t, y: "fast" if t > 1.5 else "slow",
                lambda t, y: y[0] - 1.0,
                direction=1,
                reset={"fast": lambda t, y: y + 1.0},
                name="turn",
            ),
            daedal.hybrid.Transition(["slow", "fast"], "up", lambda t, y: y[0], direction=-1, name="back"),
        ],
    )
    sol = daedal.solve(problem, (0.0, 3.5), ("up", [0.0]), rtol=1e-10)
    np.testing.assert_allclose(sol.events.t, [1.0, 2.0, 3.0, 3.2], atol=1e-8)
    assert [e.target for e in sol.events] == ["slow", "up", "fast", "up"]


def test_a_transition_without_a_target_ends_the_run():
    problem = daedal.hybrid.HybridProblem(
        {"a": one(1.0)}, [daedal.hybrid.Transition("a", None, lambda t, y: y[0] - 1.0, name="there")]
    )
    sol = daedal.solve(problem, (0.0, 3.0), ("a", [0.0]))
    assert sol.status == "event" and sol.success and "'there'" in sol.message
    assert sol.t[-1] == pytest.approx(1.0)


def test_the_first_of_several_transitions_at_once_is_taken():
    def at(name, target):
        return daedal.hybrid.Transition("a", target, lambda t, y: t - 1.0, direction=1, name=name)

    modes = {"a": one(1.0), "b": one(2.0), "c": one(3.0)}
    for order, target in ((("to b", "to c"), "b"), (("to c", "to b"), "c")):
        problem = daedal.hybrid.HybridProblem(modes, [at(name, name[-1]) for name in order])
        sol = daedal.solve(problem, (0.0, 2.0), ("a", [0.0]))
        assert sol.mode[-1] == target
        assert {e.name: e.kind for e in sol.events} == {order[0]: "transition", order[1]: "not taken"}


def test_guards_may_be_vectors_with_parameters():
    problem = daedal.ImplicitDAE(lambda t, y, yp, p: [yp[0] - p[0]], 1, params=np.array([1.0, 2.0]))
    hybrid = daedal.hybrid.HybridProblem(
        {"a": problem},
        [
            daedal.hybrid.Transition(
                "a",
                "a",
                lambda t, y, yp, p: [y[0] - p[1], t - 1.0],
                direction=[1, 1],
                reset=lambda t, y, yp, p: 0.0 * y - p[0],
                name="both",
            )
        ],
    )
    sol = daedal.solve(hybrid, (0.0, 3.0), ("a", [0.0]))
    np.testing.assert_allclose(sol.events.t, [1.0], atol=1e-6)
    assert sol.y[0, -1] == pytest.approx(1.0, abs=1e-6)


def test_a_mode_of_a_second_order_problem():
    oscillator = daedal.SecondOrderDAE(lambda t, x, xp, xpp: [xpp[0] + x[0]], 1, names=["x"])
    problem = daedal.hybrid.HybridProblem(
        {"a": oscillator},
        [daedal.hybrid.Transition("a", "a", lambda t, x, xp: x[0], -1, lambda t, x, xp: (x, -xp), "bounce")],
    )
    sol = daedal.solve(problem, (0.0, 6.0), ("a", ([1.0], [0.0])), rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(sol.events.t, [0.5 * np.pi, 1.5 * np.pi], atol=1e-5)
    assert sol.names == ("x", "x'")
    assert sol["x"][-1] == pytest.approx(abs(np.cos(6.0)), abs=1e-5)


def test_a_linear_mode_and_one_in_hessenberg_form():
    """x' = -x + y with y = 2 - x, then x'' = y with x = cos t prescribed."""
    linear = daedal.LinearDAE([[-1.0]], [[1.0]], [[1.0]], [[1.0]], [0.0], [-2.0], n_x=1, n_y=1)
    driven = daedal.HessenbergDAE([[0.0]], [[1.0]], [[1.0]], [0.0], lambda t: np.array([-np.cos(t)]), n_x=1, n_y=1)
    problem = daedal.hybrid.HybridProblem(
        {"linear": linear, "driven": driven},
        [
            daedal.hybrid.Transition(
                "linear", "driven", lambda t, x, y: y[0] - 1.5, -1, lambda t, x, y: [np.cos(t)], "drive"
            ),
            daedal.hybrid.Transition("driven", "linear", lambda t, z: z[0], -1, lambda t, z: (z, None), "release"),
        ],
    )
    sol = daedal.solve(problem, (0.0, 1.9), ("linear", ([0.0], None)), rtol=1e-9, atol=1e-10)
    # x = 1 - exp(-2 t) until y = 1 + exp(-2 t) = 1.5; cos t reaches 0 at pi/2.
    np.testing.assert_allclose(sol.events.t, [0.5 * np.log(2.0), 0.5 * np.pi], atol=1e-7)
    assert sol(1.9)[0] == pytest.approx(1.0 - np.exp(-2.0 * (1.9 - 0.5 * np.pi)), abs=1e-6)


def test_a_mode_has_its_own_method_and_tolerances():
    slow = daedal.hybrid.Mode(free(), method="dassl", rtol=1e-4)
    problem = daedal.hybrid.HybridProblem({"flight": slow}, [impact(0.8)])
    sol = daedal.solve(problem, (0.0, 1.0), DROPPED, method="dopri5", rtol=1e-10)
    assert {segment.solution.method.split(",")[0] for segment in sol.segments} == {"DASSL"}


# --- the start of a mode ----------------------------------------------------------------------------------------------


def test_a_mode_that_begins_on_the_wrong_side_is_left_at_once():
    modes = {"a": one(1.0), "b": one(2.0)}
    leave = daedal.hybrid.Transition("a", "b", lambda t, y: y[0] - 1.0, direction=1, name="leave")
    sol = daedal.solve(daedal.hybrid.HybridProblem(modes, [leave]), (0.0, 1.0), ("a", [5.0]))
    assert sol.events[0].kind == "immediate" and sol.events[0].t == 0.0
    assert sol.y[0, -1] == pytest.approx(7.0)
    lazy = daedal.hybrid.Transition("a", "b", lambda t, y: y[0] - 1.0, direction=1, name="leave", immediate=False)
    sol = daedal.solve(daedal.hybrid.HybridProblem(modes, [lazy]), (0.0, 1.0), ("a", [5.0]))
    assert len(sol.events) == 0 and sol.y[0, -1] == pytest.approx(6.0)


@pytest.mark.parametrize(("rate", "count"), [(1.0, 0), (-1.0, 1)])
def test_a_guard_that_starts_at_zero_fires_only_if_it_leaves_to_the_wrong_side(rate, count):
    problem = daedal.hybrid.HybridProblem(
        {"a": one(rate), "b": one(0.0)}, [daedal.hybrid.Transition("a", "b", lambda t, y: y[0], direction=-1)]
    )
    sol = daedal.solve(problem, (0.0, 1.0), ("a", [0.0]))
    assert sol.n_events == count


def test_output_at_the_start_shows_the_mode_after_immediate_transitions():
    problem = daedal.hybrid.HybridProblem(
        {"a": one(1.0), "b": one(2.0)},
        [daedal.hybrid.Transition("a", "b", lambda t, y: y[0] - 1.0, 1, lambda t, y: y + 1.0, "leave")],
    )
    sol = daedal.solve(problem, (0.0, 1.0), ("a", [5.0]), t_eval=[0.0, 1.0])
    np.testing.assert_allclose(sol.y[0], [6.0, 8.0])
    assert sol.mode.tolist() == ["b", "b"]


def test_consistent_states_serve_as_initial_values():
    start = daedal.consistent_initial(string_pendulum().modes["taut"].problem, 0.0, ([0.1, -1.0], [1.0, 0.0]))
    sol = daedal.solve(string_pendulum(), (0.0, 0.1), ("taut", start))
    np.testing.assert_allclose(sol.q[:, 0], start.q)


def test_a_ball_at_rest_on_the_ground_leaves_to_the_wrong_side():
    """Velocity zero: the direction is that of the acceleration."""
    landed = free().replaced(constraint=lambda t, q: [q[1]], n_constraints=1)
    to_ground = daedal.hybrid.Transition("flight", "landed", lambda t, q, v: q[1], direction=-1, project=True)
    problem = daedal.hybrid.HybridProblem({"flight": free(), "landed": landed}, [to_ground])
    sol = daedal.solve(problem, (0.0, 1.0), ("flight", ([0.0, 0.0], [1.0, 0.0])))
    assert sol.events[0].kind == "immediate" and sol.mode[-1] == "landed"


# --- runs that do not get ahead ---------------------------------------------------------------------------------------


def test_a_loop_of_immediate_transitions_is_reported():
    problem = daedal.hybrid.HybridProblem(
        {"a": one(1.0), "b": one(-1.0)},
        [
            daedal.hybrid.Transition("a", "b", lambda t, y: y[0], direction=1, name="up"),
            daedal.hybrid.Transition("b", "a", lambda t, y: y[0], direction=1, name="down"),
        ],
    )
    with pytest.raises(
        daedal.IntegrationError, match=r"loop of immediate transitions at t = 0: a \(up\) -> b \(down\)"
    ):
        daedal.solve(problem, (0.0, 1.0), ("a", ([2.0], None)))


def test_a_plastic_impact_needs_a_mode_of_contact():
    with pytest.raises(daedal.IntegrationError, match=r"(?s)loop.*t = 0\.4515.*impact.*y = .*contact") as caught:
        daedal.solve(bouncing(0.0), (0.0, 1.0), DROPPED)
    assert caught.value.solution.t[-1] == pytest.approx(np.sqrt(2.0 / G))


@pytest.mark.parametrize("width", [0.0, 1e-8])
def test_chattering_is_detected(width):
    problem = daedal.hybrid.HybridProblem(
        {"below": one(1.0), "above": one(-1.0)},
        [
            daedal.hybrid.Transition("below", "above", lambda t, y: y[0] - width, direction=1, name="up"),
            daedal.hybrid.Transition("above", "below", lambda t, y: y[0] + width, direction=-1, name="down"),
        ],
    )
    with pytest.raises(daedal.IntegrationError, match="Filippov") as caught:
        daedal.solve(problem, (0.0, 10.0), ("below", [-1.0]), atol=1e-12, dense_output=False)
    assert caught.value.solution.status in ("chattering", "failed")
    assert caught.value.solution.t[-1] == pytest.approx(1.0, abs=1e-4)


def test_fast_switching_that_gets_ahead_is_no_chattering():
    problem = daedal.hybrid.HybridProblem(
        {"up": one(1.0), "down": one(-1.0)},
        [
            daedal.hybrid.Transition("up", "down", lambda t, y: y[0] - 1e-3, direction=1),
            daedal.hybrid.Transition("down", "up", lambda t, y: y[0] + 1e-3, direction=-1),
        ],
    )
    sol = daedal.solve(problem, (0.0, 1.2), ("up", [0.0]), t_eval=[1.2], dense_output=False)
    assert sol.status == "finished" and sol.n_events == 600


def test_a_guard_that_is_only_touched_does_not_fire():
    """A ball thrown up to just below, and just above, a ceiling."""
    for gap, count in ((1e-6, 0), (-1e-5, 1)):
        ceiling = daedal.hybrid.Transition(
            "flight",
            "flight",
            lambda t, q, v, top=1.0 + gap: top - q[1],
            -1,
            lambda t, q, v: (q, [v[0], -v[1]]),
            "ceiling",
        )
        problem = daedal.hybrid.HybridProblem({"flight": free()}, [ceiling])
        up = ("flight", ([0.0, 0.0], [1.0, np.sqrt(2.0 * G)]))
        sol = daedal.solve(problem, (0.0, 0.9), up, rtol=1e-9, atol=1e-12)
        assert sol.n_events == count


def test_the_number_of_transitions_is_limited():
    with pytest.raises(daedal.IntegrationError, match="max_events") as caught:
        daedal.solve(bouncing(), (0.0, 3.9), DROPPED, max_events=3)
    assert caught.value.solution.n_events == 3


# --- what is stored ---------------------------------------------------------------------------------------------------


def test_output_times_get_the_state_after_a_transition():
    problem = daedal.hybrid.HybridProblem(
        {"a": one(0.0)}, [daedal.hybrid.Transition("a", "a", lambda t, y: t - 1.0, 1, lambda t, y: y + 1.0, "jump")]
    )
    times = np.linspace(0.0, 2.0, 9)
    sol = daedal.solve(problem, (0.0, 2.0), ("a", [0.0]), t_eval=times)
    np.testing.assert_array_equal(sol.t, times)
    when = sol.events[0].t
    np.testing.assert_allclose(sol.y[0], np.where(times >= when, 1.0, 0.0), atol=1e-9)
    assert sol(when)[0] == pytest.approx(1.0) and sol(when - 1e-9)[0] == pytest.approx(0.0)
    assert sol.mode_at(0.5) == "a"


@pytest.mark.parametrize("target", ["a", None])
@pytest.mark.parametrize("end", [1.0, 1.5])
def test_no_output_time_is_lost_at_a_transition(target, end):
    """The guard is exactly zero at an output time, which may be the end of the run or of the interval."""
    problem = daedal.hybrid.HybridProblem(
        {"a": one(0.0)}, [daedal.hybrid.Transition("a", target, lambda t, y: t - 1.0, 1, lambda t, y: y + 1.0, "jump")]
    )
    times = np.array([0.0, 0.5, 1.0, 1.5])
    times = times[times <= end]
    sol = daedal.solve(problem, (0.0, end), ("a", [0.0]), t_eval=times)
    reached = end if target == "a" else sol.events[0].t
    np.testing.assert_array_equal(sol.t, times[times <= reached])
    assert sol.n_events == 1 and np.all(np.diff(sol.t) > 0.0)


@pytest.mark.parametrize("dense", [None, False])
def test_points_of_t_eval_agree_with_the_dense_output(dense):
    times = np.linspace(0.0, 3.5, 50)
    whole = daedal.solve(bouncing(), (0.0, 3.5), DROPPED, rtol=1e-9)
    points = daedal.solve(bouncing(), (0.0, 3.5), DROPPED, rtol=1e-9, t_eval=times, dense_output=dense)
    np.testing.assert_array_equal(points.t, times)
    np.testing.assert_allclose(points.y, whole(times).y, atol=1e-8)
    assert bool(points.segments) == (dense is None)


def test_nothing_but_output_points_is_kept_if_nothing_else_is_asked_for():
    options = {"t_eval": [3.5], "dense_output": False, "record_events": False}
    sol = daedal.solve(bouncing(), (0.0, 3.5), DROPPED, **options)
    assert (len(sol.segments), len(sol.events), sol.n_events, sol.y.shape) == (0, 0, 9, (4, 1))
    assert len(sol._chunks) == 1
    with pytest.raises(daedal.InvalidProblemError, match="dense_output"):
        sol(1.0)


def test_recorded_events_stand_in_the_table():
    apex = daedal.Event(lambda t, q, v: v[1], direction=-1, name="apex")
    sol = daedal.solve(bouncing(), (0.0, 2.0), DROPPED, events=apex, rtol=1e-10)
    assert [e.kind for e in sol.events.named("apex")] == ["event"] * 3
    hits = impact_times(4, 0.8)
    np.testing.assert_allclose(sol.events.named("apex").t, 0.5 * (hits[:3] + hits[1:]), atol=1e-8)
    assert np.all(np.diff(sol.events.t) > 0.0)
    stop = daedal.Event(lambda t, q, v: q[0] - 0.7, terminal=True, name="far")
    sol = daedal.solve(bouncing(), (0.0, 2.0), DROPPED, events={"flight": [apex, stop]})
    assert sol.status == "event" and sol.t[-1] == pytest.approx(0.7, abs=1e-6)


def test_occurrences_of_an_event_are_counted_across_transitions():
    def apex(t, q, v):
        return v[1]

    second = daedal.Event(apex, direction=-1, terminal=2)
    sol = daedal.solve(bouncing(), (0.0, 3.0), DROPPED, events=[lambda t, q, v: q[0] - 0.1, second])
    assert sol.status == "event" and [e.name for e in sol.events] == ["event 0", "impact", "apex", "impact", "apex"]


def test_compiled_functions_give_the_same():
    sol = daedal.solve(bouncing().compiled(), (0.0, 2.0), DROPPED, rtol=1e-9)
    np.testing.assert_allclose(sol.events.t, impact_times(3, 0.8), atol=1e-9)


def test_the_table_prints_and_exports(tmp_path):
    sol = daedal.solve(bouncing(), (0.0, 4.0), DROPPED, rtol=1e-8)
    lines = repr(sol.events).splitlines()
    assert lines[0].split() == ["t", "name", "kind", "source", "target", "located"]
    assert lines[1].split() == ["0.451523641", "impact", "transition", "flight", "flight", "enclosed"]
    assert "<table" in sol.events._repr_html_()
    text = sol.events.to_csv(tmp_path / "events.csv")
    assert (tmp_path / "events.csv").read_text(encoding="utf-8") == text
    assert len(text.splitlines()) == len(sol.events) + 1
    assert len(sol.events[:3]) == 3 and len(sol.events.rows()) == len(sol.events)
    assert repr(daedal.solution.EventTable()) == "no events"


def test_statistics_are_summed_and_the_solution_can_be_stored():
    sol = daedal.solve(bouncing(), (0.0, 2.0), DROPPED)
    assert sol.stats.steps == sum(segment.solution.stats.steps for segment in sol.segments)
    assert "transitions" in repr(sol) and "impact" not in repr(sol)
    again = pickle.loads(pickle.dumps(sol))
    np.testing.assert_array_equal(again.y, sol.y)
    assert again.events[0].name == "impact"


def test_plots_show_variables_and_modes():
    pytest.importorskip("matplotlib")
    sol = daedal.solve(string_pendulum(), (0.0, 2.0), STRUCK)
    figure = sol.plot(variables=["x", "y'"], panels="each", pyplot=False, title="Pendulum on a string")
    assert [text.get_text() for text in figure.axes[-1].get_yticklabels()] == ["taut", "slack"]
    breaks = [np.isnan(axes.lines[0].get_ydata()[:-1]).sum() for axes in figure.axes[:2]]
    assert breaks == [0, 1]  # y' jumps when the string pulls
    from daedal.viz import plot_modes

    assert len(plot_modes(sol, pyplot=False).axes) == 1
    assert "<img" in sol._repr_html_()


# --- failures ---------------------------------------------------------------------------------------------------------


def test_a_failed_stretch_hands_back_what_was_computed():
    blow_up = daedal.ImplicitDAE(lambda t, y, yp: [float(yp[0]) - float(y[0]) * float(y[0])], 1)
    problem = daedal.hybrid.HybridProblem(
        {"a": one(1.0), "b": blow_up}, [daedal.hybrid.Transition("a", "b", lambda t, y: y[0] - 1.0, direction=1)]
    )
    with pytest.raises(daedal.IntegrationError, match="In mode 'b', which began at t = 1") as caught:
        daedal.solve(problem, (0.0, 5.0), ("a", [0.0]))
    sol = caught.value.solution
    assert isinstance(sol, daedal.HybridSolution) and sol.status == "failed"
    assert sol.t[-1] == pytest.approx(2.0, abs=1e-2) and len(sol.segments) == 2


@pytest.mark.parametrize("where", ["guard", "reset", "target", "problem"])
def test_exceptions_of_the_user_arrive_unchanged(where):
    class MineError(Exception):
        pass

    def bad(t, y):
        if t > 0.5:
            raise MineError(where)
        return y[0] - 1.0

    def failing(t, y, yp):
        if t > 0.5 and where == "problem":
            raise MineError(where)
        return [yp[0] - 1.0]

    transition = daedal.hybrid.Transition(
        "a",
        bad if where == "target" else "a",
        bad if where == "guard" else lambda t, y: y[0] - 1.0,
        direction=1,
        reset=bad if where == "reset" else None,
    )
    problem = daedal.hybrid.HybridProblem({"a": daedal.ImplicitDAE(failing, 1)}, [transition])
    with pytest.raises(MineError, match=where) as caught:
        daedal.solve(problem, (0.0, 3.0), ("a", ([0.0], [1.0])))
    if where in ("reset", "target"):
        assert caught.value.solution.t[-1] == pytest.approx(1.0)


def test_an_interrupt_carries_what_was_computed():
    def stop(t, q, v):
        if t > 1.0:
            raise KeyboardInterrupt
        return q, -0.8 * v

    problem = daedal.hybrid.HybridProblem(
        {"flight": free()}, [daedal.hybrid.Transition("flight", "flight", lambda t, q, v: q[1], -1, stop, "impact")]
    )
    sol = computed_until(lambda: daedal.solve(problem, (0.0, 3.0), DROPPED))
    assert sol.status == "interrupted" and not sol.success
    assert sol.t[-1] == pytest.approx(impact_times(2, 0.8)[1])


def test_many_transitions_cost_no_more_than_few_steps_each():
    """What a stretch needs does not depend on how many went before."""
    ball = daedal.MechanicalSystem(1.0, lambda t, q, v: [0.0], n_q=1)
    walls = daedal.hybrid.Transition(
        "f", "f", lambda t, q, v: [1.0 + q[0], 1.0 - q[0]], -1, lambda t, q, v: (q, -v), "wall"
    )
    problem = daedal.hybrid.HybridProblem({"f": ball}, [walls])
    sol = daedal.solve(problem, (0.0, 800.0), ("f", ([0.0], [1.0])), t_eval=[800.0], dense_output=False)
    assert sol.n_events == 400
    assert sol.stats.steps < 3 * sol.n_events + 20
    np.testing.assert_allclose(sol.events.t, 1.0 + 2.0 * np.arange(400), atol=1e-7)


@pytest.mark.parametrize("y0", [17.0, 18.0, 18.5, 20.0])
def test_a_period_is_no_accumulation(y0):
    """Intervals that are equal up to round-off shrink by a factor of exactly 1, or nearly."""
    heating = daedal.ImplicitDAE(lambda t, y, yp: [yp[0] + y[0] - 30.0], 1, names=["temperature"])
    cooling = daedal.ImplicitDAE(lambda t, y, yp: [yp[0] + y[0] - 10.0], 1, names=["temperature"])
    thermostat = daedal.hybrid.HybridProblem(
        {"on": heating, "off": cooling},
        [
            daedal.hybrid.Transition("on", "off", guard=lambda t, y: y[0] - 21.0, direction=1, name="warm"),
            daedal.hybrid.Transition("off", "on", guard=lambda t, y: y[0] - 19.0, direction=-1, name="cold"),
        ],
    )
    sol = daedal.solve(thermostat, (0.0, 20.0), ("on", ([y0], None)), rtol=1e-4)
    assert sol.status == "finished" and sol.n_events > 90


def test_the_watch_takes_equal_and_vanishing_intervals():
    for times in (
        [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0],
        np.cumsum([1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0 - 1e-16]),
        np.cumsum([0.0, 1.0, 0.0, 1.0, 0.0, 1.0, 0.5]),
        np.cumsum([0.0, 1.0 + 2e-16, 1.0, 1.0, 1.0, 1.0, 1.0]),
    ):
        watch = AccumulationWatch((0.0, 20.0), 1e-4, 100)
        assert [watch.add("tick", float(t)) for t in times] == [None] * 7
