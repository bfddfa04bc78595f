"""Sensitivities through events and modes: bouncing ball, stick-slip, times of events, grazing."""

import warnings

import numpy as np
import pytest

import daedal
from daedal import InvalidProblemError
from daedal.errors import SensitivityWarning
from run_differences import derivative, relative_error


def bouncing_ball(data):
    ball = daedal.MechanicalSystem(
        lambda t, q, p: [[1.0]], lambda t, q, v, p: [-p["g"]], n_q=1, params=data, names=["height"]
    )
    reset = daedal.hybrid.Transition(
        "free", "free", lambda t, q, v: q[0], direction=-1, reset=lambda t, q, v, p: ([0.0], -p["e"] * v), name="bounce"
    )
    return daedal.hybrid.HybridProblem({"free": ball}, [reset])


def closed_ball(t, g, e):
    """Height, velocity and times of the bounces, from height 1."""
    speed, begin, bounces = np.sqrt(2.0 * g), np.sqrt(2.0 / g), [np.sqrt(2.0 / g)]
    if t < begin:
        return 1.0 - 0.5 * g * t * t, -g * t, bounces
    while True:
        speed *= e
        if t < begin + 2.0 * speed / g:
            rest = t - begin
            return speed * rest - 0.5 * g * rest * rest, speed - g * rest, bounces
        begin += 2.0 * speed / g
        bounces.append(begin)


def test_bouncing_ball():
    data, times = {"g": 9.81, "e": 0.8}, np.array([0.3, 0.6, 1.2, 1.7, 2.0])
    options = {"rtol": 1e-9, "atol": 1e-11}
    sol = daedal.solve(bouncing_ball(data), (0.0, 2.0), ("free", ([1.0], [0.0])), sensitivities=True, **options)
    for name in data:

        def exact(value, name=name):
            states = [closed_ball(t, **(data | {name: value})) for t in times]
            return np.array([state[:2] for state in states]).T

        expected = derivative(exact, data[name], 1e-3)
        assert relative_error(sol.sensitivity(name, times), expected) < 1e-7
        bounces = derivative(
            lambda value, name=name: np.array(closed_ball(2.0, **(data | {name: value}))[2]), data[name]
        )
        assert [event.sensitivity[name] for event in sol.events] == pytest.approx(bounces, rel=1e-7, abs=1e-9)
    assert sol.sensitivity("g").shape == sol.y.shape
    assert np.isfinite(sol.sensitivity("e")).all()


def stick_slip(data):
    def above(t, y, p):
        return np.array([y[1], -p["k"] * y[0] - p["mu"] * (1.0 + 0.2 * (y[1] - p["v0"]))])

    def below(t, y, p):
        return np.array([y[1], -p["k"] * y[0] + p["mu"] / (1.0 + (p["v0"] - y[1]))])

    return daedal.hybrid.Filippov(above, below, lambda t, y, p: y[1] - p["v0"], 2, params=data)


def test_stick_slip():
    """Through the surface, onto it, along it and off again."""
    data, times = {"k": 1.0, "mu": 0.4, "v0": 0.2}, np.array([2.0, 5.0, 6.2, 8.0])
    start = [1.5, 0.0]
    sol = daedal.solve(stick_slip(data), (0.0, 8.0), start, sensitivities=["mu"], t_eval=times, rtol=1e-8, atol=1e-10)
    assert [event.target for event in sol.events] == ["above", "sliding", "below"]

    def run(mu):
        return daedal.solve(stick_slip(data | {"mu": mu}), (0.0, 8.0), start, t_eval=times, rtol=1e-11, atol=1e-12).y[
            :2
        ]

    expected = (run(0.4 + 1e-3) - run(0.4 - 1e-3)) / 2e-3
    assert relative_error(sol.sensitivity("mu")[:2], expected) < 1e-4
    at = sol.events[1].t
    assert sol.sensitivity("mu", at + 0.1)[1] == pytest.approx(0.0, abs=1e-12)  # it sticks to the belt
    assert abs(sol.sensitivity("mu", at - 0.1)[1]) > 1e-2


def test_times_of_events():
    problem = daedal.ImplicitDAE(lambda t, y, yp, p: [yp[0] + p["k"] * y[0]], 1, params={"k": 1.3, "c": 0.2})
    event = daedal.Event(lambda t, y, yp, p: y[0] - p["c"], terminal=True, name="low")
    sol = daedal.solve(problem, (0.0, 5.0), ([1.0], None), events=event, sensitivities=True, rtol=1e-9, atol=1e-11)
    assert sol.status == "event"
    at = np.log(5.0) / 1.3
    assert sol.events[0].sensitivity["k"] == pytest.approx(-at / 1.3, rel=1e-7)
    assert sol.events[0].sensitivity["c"] == pytest.approx(-1.0 / (1.3 * 0.2), rel=1e-7)
    assert sol.sensitivity("k")[0, -1] == pytest.approx(-at * 0.2, rel=1e-7)


def test_times_of_events_of_mechanisms():
    problem = daedal.MechanicalSystem(
        lambda t, q, p: [[1.0]], lambda t, q, v, p: [-p["g"]], n_q=1, params={"g": 9.81}, names=["height"]
    )
    event = daedal.Event(lambda t, q, v: q[0], name="floor", terminal=True)
    sol = daedal.solve(problem, (0.0, 5.0), ([1.0], [0.0]), events=event, sensitivities=["g", "height(0)"], rtol=1e-9)
    fall = np.sqrt(2.0 / 9.81)
    assert sol.events[0].sensitivity["g"] == pytest.approx(-0.5 * fall / 9.81, rel=1e-7)
    assert sol.events[0].sensitivity["height(0)"] == pytest.approx(0.5 * fall, rel=1e-7)


def test_grazing_events_are_named():
    problem = daedal.ImplicitDAE(lambda t, y, yp, p: [yp[0] - y[1], yp[1] + p["k"] * y[0]], 2, params={"k": 1.0})
    event = daedal.Event(lambda t, y: y[0] + 1.0 - 1e-13, name="graze", touch=True, delta=1e-6)
    with pytest.warns(SensitivityWarning, match=r"'graze' at t = 3\.14.* only touches"):
        sol = daedal.solve(problem, (0.0, 4.0), ([1.0, 0.0], None), sensitivities=True, events=event)
    assert np.isnan(sol.events[0].sensitivity["k"])


def test_grazing_transitions_end_the_sensitivities():
    mode = daedal.ImplicitDAE(lambda t, y, yp, p: [yp[0] - 3.0 * p["c"] * (t - 1.0) ** 2], 1, params={"c": 1.0})
    touch = daedal.hybrid.Transition("one", "two", lambda t, y: y[0] + 1e-18, direction=1, name="touch")
    problem = daedal.hybrid.HybridProblem({"one": mode, "two": mode}, [touch])
    with pytest.warns(SensitivityWarning, match="'touch'"):
        sol = daedal.solve(problem, (0.0, 2.0), ("one", ([-1.0], None)), sensitivities=True)
    assert np.isfinite(sol.sensitivity("c", 0.5)).all() and np.isnan(sol.sensitivity("c", 1.9)).all()


def test_jumps_at_hidden_switches():
    """y = t up to c, and c + (t - c) / 2 from there on."""
    problem = daedal.ImplicitDAE(lambda t, y, yp, p: [yp[0] - (1.0 if y[0] < p["c"] else 0.5)], 1, params={"c": 0.5})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sol = daedal.solve(problem, (0.0, 2.0), ([0.0], None), sensitivities=True)
    assert sol.sensitivity("c", [0.2, 0.6, 1.9]) == pytest.approx(np.array([[0.0, 0.5, 0.5]]), abs=1e-9)
    assert "zero" not in sol.message


def test_hidden_switches_of_index_1():
    """A spring that becomes stiffer beyond a gap, with its force as an algebraic variable that jumps."""

    def residual(t, y, yp, p):
        k = np.where(y[0] > p["gap"], p["k2"], p["k1"])
        return [yp[0] - y[1], yp[1] + y[2] + 0.1 * y[1], y[2] - k * y[0]]

    data, times = {"k1": 1.0, "k2": 3.0, "gap": 0.3}, np.array([0.5, 3.0, 5.0, 9.0])
    problem = daedal.ImplicitDAE(residual, 3, params=data)
    start = ([1.0, 0.0, 3.0], None)
    sol = daedal.solve(problem, (0.0, 9.0), start, sensitivities=["k1", "gap"], t_eval=times, rtol=1e-8, atol=1e-10)
    assert [event.kind for event in sol.events] == ["switch"] * 3
    solver = daedal.prepare(problem, rtol=1e-12, atol=1e-13)
    for name in ("k1", "gap"):
        expected = derivative(
            lambda value, name=name: solver.solve((0.0, 9.0), start, params={name: value}, t_eval=times).y,
            data[name],
            1e-3,
        )
        assert relative_error(sol.sensitivity(name), expected) < 1e-6


def test_hidden_switches_of_mechanisms_are_said():
    problem = daedal.MechanicalSystem(
        1.0, lambda t, q, v, p: [-p["k"] * q[0] - (0.5 if q[0] > 0.0 else 0.0)], n_q=1, params={"k": 1.0}
    )
    with pytest.warns(SensitivityWarning, match="change branch at t = 1"):
        daedal.solve(problem, (0.0, 2.0), ([1.0], [0.0]), sensitivities=True)


def test_branches_of_forces_are_not_stepped_over():
    """A hat of a force over (0.4, 0.6): v = p / 10 at the end."""
    hat = daedal.MechanicalSystem(
        1.0, lambda t, q, v, p: [p[0] * max(0.0, 1.0 - abs(10.0 * t - 5.0))], n_q=1, params=np.array([2.0])
    )
    with pytest.warns(SensitivityWarning, match="change branch at t = 0.4"):
        sol = daedal.solve(hat, (0.0, 1.0), ([0.0], [0.0]), sensitivities=[0])
    assert sol.sensitivity(0).v[0, -1] == pytest.approx(0.1, rel=1e-3)


def test_unknown_names_are_refused():
    with pytest.raises(InvalidProblemError, match="did you mean 'g'"):
        daedal.solve(bouncing_ball({"g": 9.81, "e": 0.5}), (0.0, 1.0), ("free", ([1.0], [0.0])), sensitivities=["gg"])


def test_sensitivities_along_a_hidden_sliding_surface_are_refused_where_it_begins():
    """y_0 reaches 0 at t = 1 / (p - 1/2) = 2 and stays there; Filippov's form has the sensitivities."""

    def rate(t, y, p):
        return [0.5 - np.sign(y[0]) * p[0], y[0]]

    problem = daedal.ODE(rate, 2, params=np.array([1.0]))
    with pytest.raises(InvalidProblemError, match=r"from t = 2 on .* slides .*daedal\.\S*Filippov"):
        daedal.solve(problem, (0.0, 3.0), [1.0, 0.0], sensitivities=[0])
    sol = daedal.solve(problem, (0.0, 1.9), [1.0, 0.0], sensitivities=[0])
    assert sol.sensitivity(0)[0, -1] == pytest.approx(-1.9)
