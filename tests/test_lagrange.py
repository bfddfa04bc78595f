"""Mechanical systems from energies: the equations of Lagrange, compared with those written by hand."""

import pickle

import numpy as np
import pytest

import daedal

G = 9.81


def double_kinetic(q, v):
    return v[0] ** 2 + 0.5 * v[1] ** 2 + v[0] * v[1] * np.cos(q[0] - q[1])


def double_potential(q):
    return -G * (2.0 * np.cos(q[0]) + np.cos(q[1]))


def test_the_double_pendulum_has_its_textbook_equations():
    system = daedal.lagrange(double_kinetic, double_potential, 2)
    q, v = np.array([0.4, -0.7]), np.array([1.3, 0.2])
    c, s = np.cos(q[0] - q[1]), np.sin(q[0] - q[1])
    np.testing.assert_allclose(system.mass(0.0, q), [[2.0, c], [c, 1.0]], rtol=1e-15)
    expected = [-s * v[1] ** 2 - 2 * G * np.sin(q[0]), s * v[0] ** 2 - G * np.sin(q[1])]
    np.testing.assert_allclose(system.force(0.0, q, v), expected, rtol=1e-14)


def test_energy_is_kept():
    system = daedal.lagrange(double_kinetic, double_potential, 2)
    sol = daedal.solve(system, (0.0, 3.0), ([2.0, 1.0], [0.0, 0.0]), rtol=1e-9, atol=1e-11)
    energy = [double_kinetic(q, v) + double_potential(q) for q, v in zip(sol.q.T, sol.v.T)]
    assert np.ptp(energy) < 1e-6


def test_constraints_bring_their_exact_derivatives():
    """A point on a sphere that grows, in Cartesian coordinates."""
    system = daedal.lagrange(
        lambda q, v, t, p: 0.5 * p[0] * (v @ v),
        lambda q, t, p: p[0] * G * q[2],
        3,
        constraints=lambda q, t: [q @ q - (1.0 + 0.1 * np.sin(t)) ** 2],
        params=np.array([2.0]),
    )
    t, q, v, p = 0.3, np.array([0.5, 0.6, -0.7]), np.array([0.1, -0.2, 0.3]), np.array([2.0])
    r, rate, second = 1.0 + 0.1 * np.sin(t), 0.1 * np.cos(t), -0.1 * np.sin(t)
    assert system.n_constraints == 1
    np.testing.assert_allclose(system.constraint_jacobian(t, q, p), 2.0 * q[None, :])
    np.testing.assert_allclose(system.constraint_t(t, q, p), [-2.0 * r * rate])
    np.testing.assert_allclose(system.acceleration_bias(t, q, v, p), [-2.0 * v @ v + 2.0 * (rate**2 + r * second)])
    assert system.check(t, r * q / np.sqrt(q @ q), None)


def test_a_skate_is_nonholonomic():
    """A blade on an inclined plane slides on a cycloid (Caratheodory): x = g/(2 w^2) sin^2(w t)."""
    g, w = 2.0, 1.5
    system = daedal.lagrange(
        lambda q, v: 0.5 * (v @ v),
        lambda q: -g * q[0],
        3,
        velocity_constraints=lambda q, v: [v[0] * np.sin(q[2]) - v[1] * np.cos(q[2])],
    )
    sol = daedal.solve(system, (0.0, 2.0), ([0.0, 0.0, 0.0], [0.0, 0.0, w]), rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(sol.q[0], g / (2 * w**2) * np.sin(w * sol.t) ** 2, atol=1e-6)


def test_forces_parameters_and_time_take_part():
    system = daedal.lagrange(
        lambda q, v, t, p: 0.5 * (p[0] + t) * v[0] ** 2,
        None,
        1,
        forces=lambda q, v, t, p: [-p[1] * v[0] + np.cos(t)],
        params=np.array([2.0, 0.5]),
    )
    assert system.mass(1.0, np.zeros(1), np.array([2.0, 0.5])) == pytest.approx(3.0)
    assert system.force(1.0, np.zeros(1), np.ones(1), np.array([2.0, 0.5])) == pytest.approx(-1.0 - 0.5 + np.cos(1.0))
    assert system.force(1.0, np.zeros(1), np.ones(1), np.array([2.0, 1.5])) == pytest.approx(-1.0 - 1.5 + np.cos(1.0))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((lambda q, v: v[0] ** 4, None), "quadratic in the velocities"),
        ((lambda q, v: [v[0] ** 2, 1.0], None), "kinetic returned an array of shape"),
        (
            (lambda q, v: [0.0, 1.0][v[0]] * v[0], None),
            "kinetic cannot be differentiated.*index.*test_lagrange.py line",
        ),
        ((lambda q, v: v[0] ** 2, lambda a, b, c, d, e: 0.0), "potential has the arguments"),
        ((lambda q, v: v[0] ** 2, 1.0), "potential must be"),
    ],
)
def test_what_is_no_lagrangian_is_refused(arguments, message):
    with pytest.raises(daedal.InvalidProblemError, match=message):
        daedal.lagrange(*arguments, 1)


@pytest.mark.parametrize("q", [0, 2.5, "two", None])
def test_the_number_of_coordinates_must_be_one(q):
    with pytest.raises(daedal.InvalidProblemError, match=r"q must be|functions of time"):
        daedal.lagrange(lambda q, v: v @ v, None, q)
    assert daedal.lagrange(lambda q, v: v @ v, None, np.int64(2)).n_q == 2


def test_velocity_constraints_must_be_linear():
    with pytest.raises(daedal.InvalidProblemError, match="linear in the velocities"):
        daedal.lagrange(lambda q, v: v @ v, None, 2, velocity_constraints=lambda q, v: [v[0] * v[1]])


def test_functions_of_a_lagrangian_system_can_be_traced_themselves_and_pickled():
    from daedal.symbolic.graph import evaluate
    from daedal.symbolic.mechanism_dynamics import Mechanism

    system = daedal.lagrange(double_kinetic, double_potential, 2)
    mechanism = Mechanism(system.mass, lambda t, q, v: 2.0 * system.force(t, q, v), n_q=2)
    q, v = np.array([0.4, -0.7]), np.array([1.3, 0.2])
    found = evaluate(mechanism.graph, mechanism.force, {"t": 0.0, "q": q, "v": v})
    np.testing.assert_allclose(found, 2.0 * system.force(0.0, q, v), rtol=1e-14)
    again = pickle.loads(pickle.dumps(system.force))
    np.testing.assert_array_equal(again(0.0, q, v), system.force(0.0, q, v))


def test_a_pendulum_of_ten_links_is_formed_in_one_pass():
    n = 10

    def kinetic(q, v):
        total, x, y = 0.0, 0.0, 0.0
        for i in range(n):
            x, y = x + np.cos(q[i]) * v[i], y + np.sin(q[i]) * v[i]
            total += 0.5 * (x**2 + y**2)
        return total

    system = daedal.lagrange(kinetic, lambda q: -G * sum((n - i) * np.cos(q[i]) for i in range(n)), n)
    q = np.linspace(0.1, 1.0, n)
    expected = [[(n - max(i, j)) * np.cos(q[i] - q[j]) for j in range(n)] for i in range(n)]
    np.testing.assert_allclose(system.mass(0.0, q), expected, rtol=1e-13, atol=1e-14)
    v = np.linspace(-1.0, 1.0, n)
    coriolis = [
        -sum((n - max(i, j)) * np.sin(q[i] - q[j]) * v[j] ** 2 for j in range(n)) - G * (n - i) * np.sin(q[i])
        for i in range(n)
    ]
    np.testing.assert_allclose(system.force(0.0, q, v), coriolis, rtol=1e-12, atol=1e-12)
