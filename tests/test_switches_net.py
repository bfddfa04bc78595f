"""Switching functions that stay on their surface: the functions are taken as they are written."""

import numpy as np
import pytest

import daedal


def both(problem, span, start):
    """With switches followed, output at every step and at the end alone; and left alone."""
    ways = ({}, {"t_eval": [span[1]]}, {"switches": "never"})
    return [daedal.solve(problem, span, start, **way) for way in ways]


@pytest.mark.parametrize(
    "rate, expected",
    [
        (lambda y: np.sign(y), 0.0),
        (lambda y: 1.0 if y > 0 else -1.0 if y < 0 else 0.0, 0.0),
        (lambda y: (1.0 if y > 0 else 0.0) + (5.0 if y >= 0 else 0.0), 5.0),
        (lambda y: (1.0 if y <= 0 else 0.0) + (5.0 if y >= 0 else 0.0), 6.0),
        (lambda y: 1.0 if y < float("nan") else 2.0, 2.0),
    ],
)
def test_a_variable_that_stays_at_zero(rate, expected):
    problem = daedal.ImplicitDAE(lambda t, y, yp: [yp[0], yp[1] - rate(y[0])], 2)
    for sol in both(problem, (0.0, 1.0), ([0.0, 0.0], None)):
        assert sol.y[1, -1] == pytest.approx(expected, abs=1e-6)


def test_a_dead_zone_inside_of_a_sign():
    system = daedal.MechanicalSystem(mass=1.0, force=lambda t, q, v: [-0.5 * np.sign(max(0.0, q[0] - 1.0))], n_q=1)
    for sol in both(system, (0.0, 1.0), ([0.0], [0.5])):
        np.testing.assert_allclose([sol.q[0, -1], sol.v[0, -1]], [0.5, 0.5], atol=1e-6)


def test_a_dead_zone_that_is_entered_and_left():
    """A stop at x = 1 that pulls back by sign(max(0, x - 1)): 0 outside, whichever way it is passed."""
    system = daedal.MechanicalSystem(mass=1.0, force=lambda t, q, v: [-0.5 * np.sign(max(0.0, q[0] - 1.0))], n_q=1)
    # v = 0.5 until x = 1 at t = 1; then v = 0.5 - 0.5 (t - 1): back at x = 1 at t = 3 with v = -0.5
    for sol in both(system, (0.0, 5.0), ([0.5], [0.5]))[:2]:
        np.testing.assert_allclose([sol.q[0, -1], sol.v[0, -1]], [0.0, -0.5], atol=1e-5)


def test_an_idle_direction_beside_friction():
    def force(t, q, v):
        return [-0.5 * np.sign(v[0]) - 0.3 * np.sign(v[1]), 0.0]

    system = daedal.MechanicalSystem(mass=1.0, force=force, n_q=2)
    for sol in both(system, (0.0, 1.0), ([0.0, 0.0], [2.0, 0.0])):
        assert sol.v[0, -1] == pytest.approx(1.5, abs=1e-6)


def test_a_clock_is_followed_however_fast_it_is():
    """A pulse-width modulation whose mean is 0.3; the limit cycle begins from 0."""
    period = 1e-3
    problem = daedal.ImplicitDAE(lambda t, y, yp: [yp[0] + y[0] - (1.0 if t % period < 0.3 * period else 0.0)], 1)
    sol = daedal.solve(problem, (0.0, 1.0), ([0.0], None))
    assert sol.y[0, -1] == pytest.approx(0.3 * (1.0 - np.exp(-1.0)), abs=1e-3)


def test_misspelt_parameters_are_refused():
    problem = daedal.ImplicitDAE(lambda t, y, yp, p: [yp[0] + p["k"] * y[0]], 1, params={"k": 1.0}, names=["x"])
    with pytest.raises(daedal.InvalidProblemError, match="'K' is not among the parameters"):
        daedal.solve(problem, (0.0, 1.0), {"x": 1.0}, params={"K": 5.0})
    with pytest.raises(daedal.InvalidProblemError, match="did you mean 'k'"):
        problem.with_params({"K": 5.0})
