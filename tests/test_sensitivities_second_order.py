"""Sensitivities of second-order DAEs, and of mechanisms by implicit methods."""

import numpy as np
import pytest

import daedal
from daedal import InvalidProblemError
from run_differences import derivative, relative_error


def oscillator():
    def residual(t, x, xp, xpp, p):
        return [p["m"] * xpp[0] + p["c"] * xp[0] + p["k"] * x[0]]

    return daedal.SecondOrderDAE(residual, 1, params={"m": 1.0, "c": 0.4, "k": 4.0}, names=["x"])


def motion(t, m=1.0, c=0.4, k=4.0, x=1.0, v=0.0):
    d = 0.5 * c / m
    w = np.sqrt(k / m - d * d)
    a, b = x, (v + d * x) / w
    envelope = np.exp(-d * t)
    x = envelope * (a * np.cos(w * t) + b * np.sin(w * t))
    return np.array([x, -d * x + envelope * w * (b * np.cos(w * t) - a * np.sin(w * t))])


@pytest.mark.parametrize("method", ["auto", "dassl", "radau"])
def test_a_damped_oscillation_has_the_sensitivities_of_its_closed_form(method):
    names = ["k", "c", "x(0)", "x'(0)"]
    sol = daedal.solve(
        oscillator(), (0.0, 3.0), ([1.0], [0.0]), sensitivities=names, method=method, rtol=1e-8, atol=1e-10
    )
    assert isinstance(sol, daedal.SecondOrderSolution) and sol.sensitivity("k").shape == sol.y.shape
    for name, argument, at in (("k", "k", 4.0), ("c", "c", 0.4), ("x(0)", "x", 1.0), ("x'(0)", "v", 0.0)):
        expected = derivative(lambda z, argument=argument: motion(sol.t, **{argument: z}), at)
        assert relative_error(sol.sensitivity(name), expected) < 1e-6
    half = derivative(lambda k: motion(1.5, k=k), 4.0)
    assert sol.sensitivity("k", 1.5) == pytest.approx(half.ravel(), abs=1e-6)


def test_a_pendulum_of_index_3_in_second_order_form():
    def residual(t, x, xp, xpp, p):
        return [
            xpp[0] + 2.0 * x[0] * x[2],
            xpp[1] + 2.0 * x[1] * x[2] + p["g"],
            x[0] ** 2 + x[1] ** 2 - p["L"] ** 2,
        ]

    problem = daedal.SecondOrderDAE(residual, 3, params={"g": 9.81, "L": 1.0}, names=["x", "y", "lam"])
    start = ([1.0, 0.0, 0.0], [0.0, 0.0, 0.0])
    sol = daedal.solve(problem, (0.0, 1.0), start, sensitivities=["g"], rtol=1e-8, atol=1e-10, t_eval=[0.5, 1.0])
    pendulum = daedal.MechanicalSystem(
        1.0,
        lambda t, q, v, p: [0.0, -p["g"]],
        lambda t, q, p: [q[0] ** 2 + q[1] ** 2 - p["L"] ** 2],
        n_q=2,
        n_constraints=1,
        params={"g": 9.81, "L": 1.0},
    )
    other = daedal.solve(
        pendulum, (0.0, 1.0), (start[0][:2], start[1][:2]), sensitivities=["g"], rtol=1e-10, t_eval=[0.5, 1.0]
    )
    s = other.sensitivity("g")
    assert relative_error(sol.sensitivity("g"), np.concatenate([s.q, s.lam, s.v])) < 1e-6


def test_events_of_second_order_problems_know_their_parameters():
    low = daedal.Event(lambda t, x, xp, p: x[0] - 0.05 * p["k"], terminal=True, direction=-1, name="low")
    sol = daedal.solve(oscillator(), (0.0, 3.0), ([1.0], [0.0]), sensitivities=["k"], events=low, rtol=1e-9, atol=1e-11)
    t = sol.events[0].t
    slope, by_k = motion(t)[1], derivative(lambda k: motion(t, k=k)[0], 4.0)
    assert sol.events[0].sensitivity["k"] == pytest.approx(-(by_k - 0.05) / slope, rel=1e-6)


def test_parameters_of_a_second_order_model_are_fitted():
    t = np.linspace(0.0, 4.0, 30)
    found = daedal.fit(oscillator(), {"t": t, "x": motion(t, c=0.3, k=5.0)[0]}, ["c", "k"], initial=([1.0], [0.0]))
    assert found.params == pytest.approx({"c": 0.3, "k": 5.0}, rel=1e-5)


def test_methods_of_second_order_are_refused():
    with pytest.raises(InvalidProblemError, match="omit method"):
        daedal.solve(oscillator(), (0.0, 1.0), ([1.0], [0.0]), sensitivities=["k"], method="modified_bdf")


def damped_pendulum(c):
    return daedal.MechanicalSystem(
        lambda t, q, p: p["m"] * np.eye(2),
        lambda t, q, v, p: [-p["c"] * v[0], -p["m"] * p["g"] - p["c"] * v[1]],
        lambda t, q, p: [q[0] ** 2 + q[1] ** 2 - p["L"] ** 2],
        n_q=2,
        n_constraints=1,
        params={"m": 1.0, "g": 9.81, "L": 1.0, "c": c},
    )


@pytest.mark.parametrize(("method", "largest"), [("dassl", 1e-5), ("radau", 1e-7)])
def test_implicit_methods_have_the_same_sensitivities_of_a_mechanism(method, largest):
    """The same projection: differentiated constraints hold to round-off, multipliers included."""
    problem, start = damped_pendulum(0.1), ([1.0, 0.0], [0.0, 0.0])
    exact = daedal.solve(problem, (0.0, 2.0), start, sensitivities=True, rtol=1e-11, atol=1e-12, t_eval=[1.0, 2.0])
    sol = daedal.solve(
        problem, (0.0, 2.0), start, sensitivities=True, method=method, rtol=1e-8, atol=1e-10, t_eval=[1.0, 2.0]
    )
    for name in problem.params:
        found, expected = sol.sensitivity(name), exact.sensitivity(name)
        assert np.abs(found.y - expected.y).max() < largest
        assert np.abs(found.lam - expected.lam).max() < 10.0 * largest
    assert np.abs(np.sum(sol.q * sol.sensitivity("L").q, axis=0) - 1.0).max() < 1e-13


def test_stiff_mechanisms_are_integrated_implicitly():
    """A pendulum in honey: 12 000 steps of an explicit method, a few dozen of Radau."""
    sol = daedal.solve(
        damped_pendulum(2000.0), (0.0, 20.0), ([1.0, 0.0], [0.0, 0.0]), sensitivities=["g"], rtol=1e-7, t_eval=[20.0]
    )
    assert "Radau" in sol.method and sol.stats.steps < 200
    explicit = daedal.solve(
        damped_pendulum(2000.0),
        (0.0, 20.0),
        ([1.0, 0.0], [0.0, 0.0]),
        sensitivities=["g"],
        rtol=1e-7,
        t_eval=[20.0],
        method="dopri5",
    )
    assert relative_error(sol.sensitivity("g").q, explicit.sensitivity("g").q) < 1e-5
