"""Trajectory control in inertial coordinates: the same motion as in those that rotate with the Earth."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import daedal
from daedal import library
from daedal.library.control import inertial_residual, motion, to_inertial, to_relative

MODEL = library.tppc2(form="inertial")
PARAMS = MODEL.problem.params
RELATIVE = library.tppc2()

states = st.tuples(
    st.floats(0.0, 3e5),
    st.floats(-3.0, 3.0),
    st.floats(-1.4, 1.4),
    st.floats(500.0, 3e4),
    st.floats(-1.4, 1.4),
    st.floats(-3.0, 3.0),
    st.floats(-0.5, 0.5),
    st.floats(-3.0, 3.0),
).map(np.array)


def angle(difference):
    return np.mod(difference + math.pi, 2.0 * math.pi) - math.pi


@given(states, st.floats(0.0, 300.0))
def test_there_and_back(y, t):
    difference = to_relative(t, to_inertial(t, y, PARAMS), PARAMS) - y
    difference[1] = angle(difference[1])
    np.testing.assert_allclose(difference / np.array([2e7, 1, 1, 3e4, 1e2, 1e2, 1, 1]), 0.0, atol=1e-12)


@given(states, st.floats(0.0, 300.0))
def test_the_motion_is_that_in_relative_coordinates(y, t):
    """d/dt of the converted state, with the slopes of (6.3.4), satisfies (6.3.3)."""
    slope, h = np.array([*motion(t, y[:6], y[6:], PARAMS), 0.0, 0.0]), 1e-3
    after, before = (to_inertial(t + s * h, y + s * h * slope, PARAMS) for s in (1.0, -1.0))
    position, velocity = np.split(((after - before) / (2.0 * h))[:6], 2)
    F = inertial_residual(t, to_inertial(t, y, PARAMS), np.array([*position, *velocity, 0.0, 0.0]), PARAMS)
    size = 1.0 + np.max(np.abs(slope[3:6]) * [1.0, y[3], y[3]])
    np.testing.assert_allclose(F[:6] / size, 0.0, atol=2e-4)


def test_the_constraints_are_flight_path_angle_and_azimuth():
    t, y = 120.0, np.array([5e4, 0.3, -0.2, 7e3, -0.05, 1.1, 0.05, 0.4])
    F = inertial_residual(t, to_inertial(t, y, PARAMS), np.zeros(8), PARAMS)
    relative = RELATIVE.problem.evaluate(t, y, np.zeros(8))
    np.testing.assert_allclose(F[6:], relative[6:], atol=1e-14)


def test_reference_is_that_of_the_other_forms():
    assert MODEL.reference.t == RELATIVE.reference.t
    values = MODEL.extra["relative"](MODEL.reference.t, MODEL.reference.y)
    np.testing.assert_allclose(values, RELATIVE.reference.y, rtol=1e-11)


@pytest.mark.parametrize("rtol", [1e-6, 1e-8])
def test_solution_with_the_options_of_the_library(rtol):
    sol = daedal.solve(MODEL.problem, MODEL.t_span, MODEL.initial, **(MODEL.options | {"rtol": rtol, "atol": rtol}))
    found = MODEL.extra["relative"](sol.t[-1], sol.y[:, -1])
    error = RELATIVE.reference.error(found)
    assert np.all(error[:4] < 20.0 * rtol) and np.all(error[4:6] < 0.1 * rtol) and np.all(error[6:] < 100.0 * rtol)
