"""Problems of index 3 as they stand, with defaults: positions are far below the tolerance, multipliers near it."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import solve_ivp

import daedal
from daedal.analysis.index import structural_classes
from daedal.library import squeezer, vehicles

GRAVITY = 9.81
TOLERANCES = (1e-4, 1e-6, 1e-8)


def pendulum(t, y, yp):
    x, z, u, v, tension = y
    return [yp[0] - u, yp[1] - v, yp[2] + tension * x, yp[3] + tension * z + GRAVITY, x * x + z * z - 1.0]


@pytest.fixture(scope="module")
def pendulum_at_10():
    """The angle as an ODE."""
    options = {"method": "DOP853", "rtol": 1e-13, "atol": 1e-13}
    angle, speed = solve_ivp(lambda t, w: [w[1], -GRAVITY * np.sin(w[0])], (0, 10), [np.pi / 2, 0], **options).y[:, -1]
    sin, cos = np.sin(angle), np.cos(angle)
    return np.array([sin, -cos, speed * cos, speed * sin, speed**2 + GRAVITY * cos])


@pytest.mark.parametrize("rtol", TOLERANCES)
@pytest.mark.parametrize("options", [{}, {"atol": 1e-6}], ids=["default atol", "atol 1e-6"])
def test_a_pendulum_of_index_3_reaches_the_end(rtol, options, pendulum_at_10):
    # At the start one velocity is not of index 2, and the multiplier, near zero, has the tolerance atol.
    start = [1.0, 0, 0, 0, 0], [0, 0, 0, -GRAVITY, 0]
    sol = daedal.solve(daedal.ImplicitDAE(pendulum, 5), (0, 10), start, rtol=rtol, formulation="none", **options)
    errors = np.abs(sol.y[:, -1] - pendulum_at_10) / max(rtol, options.get("atol", 0.0))
    assert errors[:2].max() < 1.0
    assert errors[2:4].max() < 10.0
    assert errors[4] < 1000.0
    assert sol.stats.steps < 2000


def of_index_3(model, mass, force, constraint, jacobian):
    """A mechanism of the library as F(t, y, y') = 0 in positions, velocities and multipliers, with its start."""
    params, n = model.problem.params, len(model.initial[0])

    def residual(t, y, yp):
        q, v, lam = y[:n], y[n : 2 * n], y[2 * n :]
        inertia = mass(t, q, params) @ yp[n : 2 * n]
        balance = inertia - force(t, q, v, params) + jacobian(t, q, params).T @ lam
        return np.concatenate([yp[:n] - v, balance, constraint(t, q, params)])

    truth = daedal.solve(model.problem, model.t_span, model.initial, rtol=1e-11, atol=1e-12)
    (q, v), lam, t = (np.asarray(part, dtype=float) for part in model.initial[:2]), truth.lam[:, 0], model.t_span[0]
    push = force(t, q, v, params) - jacobian(t, q, params).T @ lam
    start = np.concatenate([q, v, lam]), np.concatenate([v, np.linalg.solve(mass(t, q, params), push), 0.0 * lam])
    end = np.concatenate([truth.q[:, -1], truth.v[:, -1], truth.lam[:, -1]])
    return daedal.ImplicitDAE(residual, start[0].size), start, end


def seven_body():
    parts = squeezer.squeezer_mass, squeezer.squeezer_force, squeezer.loops, squeezer.loops_jacobian
    return daedal.library.seven_body(), *parts


def car_axis():
    model = daedal.library.car_axis()
    mass = np.array(model.problem.mass)
    return model, lambda t, q, p: mass, vehicles.axis_force, vehicles.axis_constraint, vehicles.axis_jacobian


@pytest.mark.parametrize("mechanism", [seven_body, car_axis])
def test_mechanisms_of_index_3_reach_the_end(mechanism):
    model, *functions = mechanism()
    problem, start, end = of_index_3(model, *functions)
    n = len(model.initial[0])
    for rtol in TOLERANCES:
        sol = daedal.solve(problem, model.t_span, start, rtol=rtol, formulation="none")
        errors = np.abs(sol.y[:, -1] - end) / (rtol * np.abs(end) + 1e-3 * rtol)
        assert errors[:n].max() < 1.0
        assert errors[n : 2 * n].max() < 100.0
        assert errors[2 * n :].max() < 1000.0


@given(st.integers(1, 4), st.integers(0, 3), st.randoms(use_true_random=False))
@settings(deadline=None)
def test_structural_classes_of_chains(length, more, random):
    """y0 = f, y1 = y0', ... beside ODEs, in any order of equations and variables."""
    n = length + more
    in_e, in_b = np.zeros((n, n), bool), np.zeros((n, n), bool)
    in_b[range(length), range(length)] = True
    in_e[range(1, length), range(length - 1)] = True
    in_e[range(length, n), range(length, n)] = True
    classes = np.concatenate([1.0 + np.arange(length), np.ones(more)])
    rows, columns = random.sample(range(n), n), random.sample(range(n), n)
    assert np.array_equal(structural_classes(in_e[rows][:, columns], in_b[rows][:, columns]), classes[columns])


def test_structural_classes_of_a_singular_pencil():
    nothing = np.zeros((2, 2), bool)
    assert np.array_equal(structural_classes(nothing, nothing), [1.0, 1.0])
