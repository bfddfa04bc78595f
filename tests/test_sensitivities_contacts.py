"""Sensitivities through dry friction and unilateral contacts: stick, slip, impacts, and coefficients as parameters."""

import numpy as np
import pytest

import daedal
from daedal import InvalidProblemError
from daedal.errors import SensitivityWarning
from run_differences import derivative, relative_error

TIGHT = {"rtol": 1e-11, "atol": 1e-12}
USUAL = {"rtol": 1e-9, "atol": 1e-11}


def on_a_belt(data):
    """A block on a spring that a belt takes along until it slips."""
    block = daedal.MechanicalSystem(
        1.0, lambda t, q, v, p: [-p["k"] * q[0] - p["c"] * v[0]], n_q=1, params=data, names=["x"]
    )
    return daedal.hybrid.Friction(
        block,
        [1.0],
        lambda s, p: p["mu"],
        mu_static=lambda p: 1.5 * p["mu"],
        normal=lambda t, q, v, p: p["N"],
        speed=0.2,
    )


def test_stick_slip_with_the_coefficient_of_friction_as_a_parameter():
    data, times = {"k": 1.0, "c": 0.01, "N": 1.0, "mu": 0.4}, np.linspace(0.0, 14.0, 8)

    def run(values, **options):
        problem = on_a_belt(values)
        return daedal.solve(problem, (0.0, 14.0), problem.entry((0.0, 14.0), ([0.0], [0.2])), t_eval=times, **options)

    sol = run(data, sensitivities=["k", "N", "mu"], **USUAL)
    assert [event.target for event in sol.events] == ["slip-", "stick", "slip-"]
    for name in ("k", "mu"):
        ahead, behind = (run(data | {name: data[name] + h}, **TIGHT).y[:2] for h in (1e-4, -1e-4))
        assert relative_error(sol.sensitivity(name)[:2], (ahead - behind) / 2e-4) < 1e-5
    while_it_sticks = sol.sensitivity("mu")[1, [0, 1, 4]]
    assert while_it_sticks == pytest.approx(0.0, abs=1e-12)  # the speed is that of the belt
    first = sol.events[0]  # k 0.2 t + c 0.2 = 1.5 mu N
    assert first.sensitivity["mu"] == pytest.approx(1.5 / 0.2, rel=1e-7)


def test_friction_whose_normal_force_is_a_multiplier():
    """A bead on a parabola with friction: forces depend on the multiplier."""
    data, times = {"m": 1.3, "mu": 0.15, "g": 9.81}, np.linspace(0.0, 0.3, 4)

    def direction(t, q, p):
        return np.array([1.0, 2.0 * q[0]]) / np.sqrt(1.0 + 4.0 * q[0] ** 2)

    def run(values, **options):
        bead = daedal.MechanicalSystem(
            lambda t, q, p: p["m"] * np.eye(2),
            lambda t, q, v, p: [0.0, -p["m"] * p["g"]],
            lambda t, q, p: [(q[1] - q[0] ** 2) / np.sqrt(1.0 + 4.0 * q[0] ** 2)],
            n_q=2,
            n_constraints=1,
            params=values,
        )
        problem = daedal.hybrid.Friction(bead, direction, lambda s, p: p["mu"], constraint=0)
        begin = problem.entry((0.0, 0.3), ([1.0, 1.0], [0.0, 0.0]))
        return daedal.solve(problem, (0.0, 0.3), begin, t_eval=times, **options)

    sol = run(data, sensitivities=["m", "mu"], rtol=1e-8)
    ahead, behind = (run(data | {"mu": data["mu"] + h}, rtol=1e-9, atol=1e-10).y for h in (1e-3, -1e-3))
    assert np.abs(sol.sensitivity("mu") - (ahead - behind) / 2e-3).max() < 1e-4
    assert np.abs(sol.sensitivity("m")).max() < 1e-9  # the mass does not matter


def test_a_ball_of_unilateral_contacts():
    """Impacts, against the closed form: h = 1 - g t^2 / 2, then bounces with 0.8 of the speed."""
    times = np.array([0.3, 0.6, 1.2, 1.7])
    ball = daedal.MechanicalSystem(1.0, lambda t, q, v, p: [-p["g"]], n_q=1, params={"g": 9.81}, names=["height"])
    problem = daedal.hybrid.UnilateralProblem(
        ball, daedal.hybrid.Contact(lambda t, q: q[0], restitution=0.8, name="floor")
    )
    sol = daedal.solve(problem, (0.0, 1.7), ([1.0], [0.0]), sensitivities=["g"], t_eval=times, **USUAL)

    def height(g):
        fall = np.sqrt(2.0 / g)
        speed, begin = 0.8 * g * fall, fall
        states = []
        for t in times:
            while t > begin + 2.0 * speed / g and t > fall:
                begin, speed = begin + 2.0 * speed / g, 0.8 * speed
            rest = t - begin
            own = (1.0 - 0.5 * g * t * t, -g * t) if t < fall else (speed * rest - 0.5 * g * rest**2, speed - g * rest)
            states.append(own)
        return np.array(states).T

    assert relative_error(sol.sensitivity("g"), derivative(height, 9.81, 1e-3)) < 1e-7
    assert sol.events[0].sensitivity["g"] == pytest.approx(-0.5 * np.sqrt(2.0) * 9.81**-1.5, rel=1e-7)


def shaken_puck(data):
    puck = daedal.MechanicalSystem(
        1.0, lambda t, q, v, p: [p["push"] * np.sin(3.0 * t), -p["g"]], n_q=2, params=data, names=["x", "y"]
    )
    ice = daedal.hybrid.Contact(lambda t, q, p: q[1] - p["level"], tangent=[1.0, 0.0], mu=0.3, name="ice")
    return daedal.hybrid.UnilateralProblem(puck, ice)


def test_a_puck_that_lands_slips_sticks_and_slips_again():
    data, times = {"push": 4.0, "g": 9.81, "level": 0.05}, np.linspace(0.1, 2.4, 7)

    def run(values, **options):
        return daedal.solve(shaken_puck(values), (0.0, 2.5), ([0.0, 0.3], [0.4, 0.0]), t_eval=times, **options)

    sol = run(data, sensitivities=["level"], **USUAL)
    modes = [event.target for event in sol.events]
    assert modes[0] == "ice slips+" and "ice sticks" in modes and modes[-1].startswith("ice slips")
    ahead, behind = (run(data | {"level": data["level"] + h}, **USUAL).y for h in (1e-5, -1e-5))
    expected = (ahead - behind) / 2e-5
    assert np.abs(sol.sensitivity("level") - expected).max() < 1e-4 * np.abs(expected).max()


def test_behind_an_accumulation_of_impacts_there_are_no_sensitivities():
    ball = daedal.MechanicalSystem(1.0, lambda t, q, v, p: [-p["g"]], n_q=1, params={"g": 9.81}, names=["height"])
    problem = daedal.hybrid.UnilateralProblem(
        ball, daedal.hybrid.Contact(lambda t, q: q[0], restitution=0.2, name="floor")
    )
    with pytest.warns(SensitivityWarning, match="accumulate"):
        sol = daedal.solve(problem, (0.0, 1.0), ([1.0], [0.0]), sensitivities=["g"])
    assert np.isfinite(sol.sensitivity("g", 0.5)).all() and np.isnan(sol.sensitivity("g", 0.95)).all()


def test_a_coefficient_that_takes_parameters_needs_some():
    block = daedal.MechanicalSystem(1.0, lambda t, q, v: [0.0], n_q=1)
    with pytest.raises(InvalidProblemError, match="has no params"):
        daedal.hybrid.Friction(block, [1.0], lambda s, p: p["mu"], normal=1.0)
