"""Derivatives that were not given: by differences and complex steps they are right, or the run says they are not."""

from math import cos, pi, sin

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import daedal
from daedal.mechanics.system_workspace import SystemWorkspace
from daedal.problems.coefficients import derivatives_by_differences

GRAVITY = 9.81


def point(constraint, **given):
    """A point of mass 1 in the plane under gravity."""
    return daedal.MechanicalSystem(
        1.0, lambda t, q, v: [0.0, -GRAVITY], constraint, n_q=2, n_constraints=1, names=["x", "y"], **given
    )


def energy(sol):
    return 0.5 * np.sum(sol.v**2, axis=0) + GRAVITY * sol.q[1]


def bead(shape, slope, x0, speed, constraint=None, t_end=1.0, **options):
    system = point(constraint or (lambda t, q: [q[1] - shape(q[0])]))
    return daedal.solve(system, (0.0, t_end), ([x0, shape(x0)], [speed, speed * slope(x0)]), **options)


# --- coordinates -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("x0", [0.0, 10.0, 20.0, 100.0, 1000.0, 1e6])
def test_a_bead_follows_bumps_that_are_short_beside_its_coordinate(x0):
    sol = bead(lambda x: 0.1 * sin(2 * pi * x), lambda x: 0.2 * pi * cos(2 * pi * x), x0, 2.0, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(sol.q[:, -1] - [x0, 0.0], [2.10176225, 0.05967069], atol=1e-6)
    assert np.ptp(energy(sol)) < 1e-5


@pytest.mark.parametrize("turns", [0, 10, 1000])
def test_a_rod_falls_whatever_the_number_of_turns(turns):
    def constraint(t, q):
        return [q[0] - cos(q[2]), q[1] - sin(q[2])]

    mass, angle = np.diag([1.0, 1.0, 1e-3]), 2.0 * pi * turns
    system = daedal.MechanicalSystem(mass, lambda t, q, v: [0.0, -GRAVITY, 0.0], constraint, n_q=3, n_constraints=2)
    sol = daedal.solve(system, (0.0, 1.0), ([1.0, 0.0, angle], np.zeros(3)))
    np.testing.assert_allclose(sol.q[:, -1] - [0.0, 0.0, angle], [-0.9861428, -0.1658985, -2.9749236], atol=1e-5)


@pytest.mark.parametrize("turns", [0, 10, 1000])
def test_an_impact_sees_the_gradient_at_large_angles(turns):
    """The tip of a rod of length 1 that turns about the origin and moves upwards hits the ground."""
    system = daedal.MechanicalSystem(np.eye(2), lambda t, q, v: [0.0, 0.0], n_q=2)
    q, v = [2.0 * pi * turns + 0.5, -sin(0.5)], np.array([-1.0, 0.0])
    _, after = daedal.hybrid.Impact(system, lambda t, q: sin(q[0]) + q[1], 0.0)(0.0, q, v)
    normal = np.array([cos(0.5), 1.0])
    np.testing.assert_allclose(after, v - normal * (normal @ v) / (normal @ normal), atol=1e-8)


@pytest.mark.parametrize("beside", [0.0, 1e6, 1e7])
def test_the_increment_of_an_angle_does_not_follow_from_lengths(beside):
    def constraint(t, q):
        return [q[0] - beside - sin(q[2]), q[1] + cos(q[2])]

    mass = np.diag([1.0, 1.0, 1e-3])
    system = daedal.MechanicalSystem(mass, lambda t, q, v: [0.0, -GRAVITY, 0.0], constraint, n_q=3, n_constraints=2)
    sol = daedal.solve(system, (0.0, 3.0), ([beside + sin(1.0), -cos(1.0), 1.0], np.zeros(3)))
    assert abs(sol.q[2, -1] + 0.82135) < 1e-5


@pytest.mark.parametrize("x0", [0.0, 1e-9, 1e-4])
def test_a_start_near_zero_does_not_make_increments_tiny(x0):
    sol = bead(lambda x: 0.3 * sin(2 * x), lambda x: 0.6 * cos(2 * x), x0, 3.0, t_end=2.0)
    np.testing.assert_allclose(sol.q[:, -1] - [x0, 0.0], [6.15512667, -0.07599791], atol=1e-3)
    exact = np.array([_multiplier(q, v) for q, v in zip(sol.q.T, sol.v.T, strict=True)])
    np.testing.assert_allclose(sol.lam[0], exact, atol=1e-6 * np.max(np.abs(exact)))


def _multiplier(q, v):
    """lam of the bead on y = 0.3 sin 2x: a = f - G^T lam, G a = gamma."""
    gradient = np.array([-0.6 * cos(2 * q[0]), 1.0])
    gamma = -1.2 * sin(2 * q[0]) * v[0] ** 2
    return (gradient @ [0.0, -GRAVITY] - gamma) / (gradient @ gradient)


@given(
    length=st.floats(-8.0, 8.0).map(lambda k: 10.0**k),
    place=st.floats(-1e3, 1e3),
    offset=st.floats(-1e3, 1e3),
)
def test_gradients_and_biases_in_any_unit(length, place, offset):
    """g = y - l sin(x / l) at x = l place: all derivatives to seven digits, with x and y of any size."""
    x = length * place
    system = point(lambda t, q: [q[1] - length * sin(q[0] / length)])
    q, v = np.array([x, length * (sin(x / length) + offset)]), length * np.array([1.0, 0.3])
    values = SystemWorkspace(system, 0.0, q).evaluate(0.0, np.concatenate([q, v]))
    np.testing.assert_allclose(values["jacobian"], [[-cos(x / length), 1.0]], atol=1e-7)
    np.testing.assert_allclose(values["level"][1] / length, [0.3 - cos(x / length)], atol=1e-7)
    np.testing.assert_allclose(values["bias"] / length, [sin(x / length)], atol=1e-4)


# --- time ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("formulation", ["auto", "ggl"])
def test_a_drive_that_begins_later(formulation):
    def drive(t):
        return 0.1 * (1.0 - cos(20.0 * (t - 1.0))) ** 2 if t > 1.0 else 0.0

    def speed(t):
        return 4.0 * (1.0 - cos(20.0 * (t - 1.0))) * sin(20.0 * (t - 1.0)) if t > 1.0 else 0.0

    system = point(lambda t, q: [q[1] - drive(t)])
    sol = daedal.solve(system, (0.0, 3.0), ([0.0, 0.0], [1.0, 0.0]), formulation=formulation)
    np.testing.assert_allclose(sol.v[1], [speed(t) for t in sol.t], atol=1e-6)


def ramp(t, begin=9.55, end=9.85):
    s = min(max((t - begin) / (end - begin), 0.0), 1.0)
    return s**3 * (10.0 - 15.0 * s + 6.0 * s * s)


def ramp_speed(t, begin=9.55, end=9.85):
    s = min(max((t - begin) / (end - begin), 0.0), 1.0)
    return 30.0 * s * s * (1.0 - s) ** 2 / (end - begin)


@pytest.mark.parametrize("options", [{}, {"formulation": "ggl"}, {"formulation": "projection"}])
def test_a_drive_that_moves_only_for_a_while(options):
    sol = daedal.solve(point(lambda t, q: [q[1] - ramp(t)]), (0.0, 10.0), ([0.0, 0.0], [1.0, 0.0]), **options)
    assert abs(sol.q[1, -1] - 1.0) < 1e-6
    np.testing.assert_allclose(sol.v[1], [ramp_speed(t) for t in sol.t], atol=1e-4)


@pytest.mark.parametrize(("frequency", "t_end"), [(1e6, 1e-5), (100.0, 1.0), (1.0, 5.0), (1e-9, 5.0), (1e-9, 1e9)])
def test_drives_of_any_frequency(frequency, t_end):
    system = daedal.MechanicalSystem(
        1.0, lambda t, q, v: [0.0], lambda t, q: [q[0] - sin(frequency * t)], n_q=1, n_constraints=1
    )
    sol = daedal.solve(system, (0.0, t_end), ([0.0], [frequency]))
    np.testing.assert_allclose(sol.v[0], frequency * np.cos(frequency * sol.t), atol=1e-7 * frequency)
    size = max(frequency**2, 1e-12)
    np.testing.assert_allclose(sol.lam[0], frequency**2 * np.sin(frequency * sol.t), atol=1e-5 * size)


@pytest.mark.parametrize("t0", [1e6, 1e9, 1e12])
def test_times_far_from_zero(t0):
    sol = daedal.solve(point(lambda t, q: [q[0] - sin(t - t0)]), (t0, t0 + 5.0), ([0.0, 0.0], [1.0, 0.0]))
    np.testing.assert_allclose(sol.v[0], np.cos(sol.t - t0), atol=1e-6)
    np.testing.assert_allclose(sol.lam[0], np.sin(sol.t - t0), atol=1e-6)


def test_a_constraint_that_jumps_is_named():
    system = point(lambda t, q: [q[1] - (0.0 if t < 0.5 else 1.0)], constraint_names=["floor"])
    with pytest.raises(daedal.IntegrationError, match=r"'floor' changes by .* derivatives predict") as caught:
        daedal.solve(system, (0.0, 1.0), ([0.0, 0.0], [1.0, 0.0]))
    assert caught.value.solution.t[-1] < 0.55


# --- complex steps ---------------------------------------------------------------------------------------------------


def compiled(constraint):
    import numba

    force = numba.njit(lambda t, q, v: np.array([0.0, -9.81]))
    return daedal.MechanicalSystem(1.0, force, numba.njit(constraint), n_q=2, n_constraints=1)


@pytest.mark.parametrize(
    ("constraint", "t0", "speed"),
    [
        (lambda t, q: np.array([q[1] - abs(t)]), 1.0, 1.0),
        (lambda t, q: np.array([q[1] - max(t, 0.5)]), 1.0, 1.0),
        (lambda t, q: np.array([q[1] - abs(q[0]) - 0.0 * t.real]), 1.0, 8.0),
        (lambda t, q: np.array([q[1] - np.where(t > 0.5, t * t, 0.25)]), 1.0, 2.0),
    ],
)
def test_functions_that_are_not_analytic_are_differenced(constraint, t0, speed):
    q0 = [1.0, 0.0]
    q0[1] = -float(constraint(t0, np.array(q0))[0])
    sol = daedal.solve(compiled(constraint), (t0, t0 + 1.0), (q0, [8.0, speed]))
    rates = [
        -(constraint(t + 1e-6, q + 1e-6 * v * [1.0, 0.0]) - constraint(t - 1e-6, q - 1e-6 * v * [1.0, 0.0]))[0] / 2e-6
        for t, q, v in zip(sol.t, sol.q.T, sol.v.T, strict=True)
    ]
    np.testing.assert_allclose(sol.v[1], rates, atol=1e-6)


def test_the_complex_step_is_given_up_where_it_turns_out_wrong():
    """|t| is analytic to the complex step for nobody, but t + |t - 1| - (t - 1) hides it until t = 1."""

    def constraint(t, q):
        return np.array([q[1] - (t + (0.5 * (abs(t - 1.0) + (t - 1.0))) ** 3)])

    sol = daedal.solve(compiled(constraint), (0.0, 2.0), ([0.0, 0.0], [1.0, 1.0]))
    np.testing.assert_allclose(sol.v[1], 1.0 + 3.0 * np.maximum(sol.t - 1.0, 0.0) ** 2, atol=1e-5)


# --- coefficients of linear problems ---------------------------------------------------------------------------------


@pytest.mark.parametrize("frequency", [1e-6, 1.0, 100.0, 100.0 * pi, 1e6])
def test_derivatives_of_coefficients(frequency):
    t = 0.3
    found = derivatives_by_differences(lambda s: np.array([[sin(frequency * s)]]), t, 2)[:, 0, 0]
    expected = [frequency * cos(frequency * t), -(frequency**2) * sin(frequency * t)]
    np.testing.assert_allclose(found[0], expected[0], atol=1e-9 * frequency)
    np.testing.assert_allclose(found[1], expected[1], atol=1e-6 * frequency**2)


@pytest.mark.parametrize("frequency", [1.0, 100.0])
def test_hessenberg_problems_of_any_frequency(frequency):
    problem = daedal.HessenbergDAE(
        A=[[0.0, 1.0], [0.0, 0.0]],
        B=[[0.0], [1.0]],
        C=[[0.0, 1.0]],
        q=[0.0, 0.0],
        r=lambda t: np.array([-cos(frequency * t)]),
        n_x=2,
        n_y=1,
    )
    sol = daedal.solve(problem, (0.0, 0.3), [0.0, 1.0])
    np.testing.assert_allclose(sol.y[0], np.sin(frequency * sol.t) / frequency, atol=1e-6)
    np.testing.assert_allclose(sol.lam[0], -frequency * np.sin(frequency * sol.t), atol=1e-5 * frequency)


def test_linear_problems_of_any_frequency():
    frequency = 1000.0
    problem = daedal.LinearDAE(
        A=[[0.0]], B=[[1.0]], C=[[1.0]], D=[[0.0]], p=[0.0], q=lambda t: [-sin(frequency * t)], n_x=1, n_y=1
    )
    sol = daedal.solve(problem, (0.0, 0.02), ([0.0], [frequency]), formulation="stabilised_reduction")
    np.testing.assert_allclose(sol.y[0], np.sin(frequency * sol.t), atol=1e-4)
    np.testing.assert_allclose(sol.y[1], frequency * np.cos(frequency * sol.t), atol=1e-3 * frequency)


# --- cost ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_q", [2, 6, 10])
def test_an_evaluation_takes_two_calls_for_a_coordinate_and_few_more(n_q):
    from daedal.mechanics.constrained import BIAS, JACOBIAN, POSITION, VELOCITY
    from daedal.mechanics.manifold import evaluate_point

    calls = [0]

    def constraint(t, q):
        calls[0] += 1
        return [np.sum(np.sin(q)) - 0.1]

    system = daedal.MechanicalSystem(1.0, lambda t, q, v: np.zeros(n_q), constraint, n_q=n_q, n_constraints=1)
    q = np.linspace(0.1, 1.0, n_q)
    assembly = SystemWorkspace(system, 0.0, q, autonomous=True)
    none = np.zeros(0)
    calls[0] = 0
    evaluate_point(
        assembly.record.address,
        0.0,
        np.concatenate([q, q]),
        none,
        none,
        np.zeros(1),
        POSITION | JACOBIAN | VELOCITY | BIAS,
    )
    assert calls[0] <= 2 * n_q + 8


def test_the_search_for_increments_is_short():
    calls = [0]

    def constraint(t, q):
        calls[0] += 1
        return [q[1] - 0.3 * sin(2.0 * q[0])]

    SystemWorkspace(point(constraint), 0.0, np.array([0.3, 0.2]))
    assert calls[0] < 150


def test_contact_coordinates_are_returned_and_found_in_few_calls():
    calls = [0]

    def foot(t, q, s):
        calls[0] += 1
        return [(q[0] - s[0]) - (q[1] - 0.5 * cos(s[0])) * 0.5 * sin(s[0])]

    system = daedal.MechanicalSystem(
        1.0,
        lambda t, q, v, s: [0.0, -GRAVITY],
        lambda t, q, s: [(q[1] - 0.5 * cos(s[0])) - 0.5 * sin(s[0]) * (s[0] - q[0])],
        n_q=2,
        n_constraints=1,
        contact=foot,
        n_s=1,
        contact_guess=lambda t, q: [q[0]],
    )
    sol = daedal.solve(system, (0.0, 0.5), ([1.0, 0.5 * cos(1.0)], None), rtol=1e-8)
    assert calls[0] < 250 * sol.stats.residual_evaluations
    np.testing.assert_allclose(sol.s[0], sol.q[0], atol=1e-7)
