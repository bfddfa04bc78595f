"""Mechanisms found in residuals: whatever the order and the scale of the equations, and nothing that is not one."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import daedal
from daedal.index.reduction.mechanism import recognise_mechanism
from daedal.index.structure.equations import SystemEquations
from daedal.library import car_axis, fekete, flexible_slider_crank, planar_pendulum, seven_body
from residual_models import as_residual

L1, L2, M1, M2, G = 1.0, 0.7, 2.0, 0.5, 9.81


def recognised(residual, n, **options):
    return recognise_mechanism(SystemEquations(daedal.ImplicitDAE(residual, n, **options)))


def double_pendulum(t, y, yp):
    """Two masses on two rods; the second multiplier and the second constraint belong to a length, not to its square."""
    x1, y1, x2, y2, u1, w1, u2, w2, a, b = y
    dx, dy = x2 - x1, y2 - y1
    return [
        yp[0] - u1,
        yp[1] - w1,
        yp[2] - u2,
        yp[3] - w2,
        M1 * yp[4] + a * x1 - b * dx,
        M1 * yp[5] + a * y1 - b * dy + M1 * G,
        M2 * yp[6] + b * dx,
        M2 * yp[7] + b * dy + M2 * G,
        x1 * x1 + y1 * y1 - L1**2,
        np.sqrt(dx * dx + dy * dy) - L2,
    ]


def residual_of_motion(found, problem, seed=1):
    """The equations at a point of the mechanism's motion, given back in the unknowns of the problem.

    Away from the constraints: only these may be left.
    """
    system, rng = found.system.compiled(backend="trace"), np.random.default_rng(seed)
    q, v, r = (rng.uniform(0.3, 1.0, size) for size in (system.n_q, system.n_q, system.n_r))
    point = system.at(0.4, q, v, r=r)
    x, xp = found.at(0.4, q, v, r)
    expected = found.unknowns(v, point.acceleration, point.rate, xp[list(found.roles.multipliers)])
    np.testing.assert_allclose(xp, expected, rtol=1e-6, atol=1e-9 * np.abs(expected).max())
    if found.shares is not None:
        np.testing.assert_allclose(found.shares @ point.multipliers, x[list(found.roles.multipliers)], rtol=1e-6)
    values = problem.evaluate(0.4, x, xp)
    size = max(1.0, np.abs(point.force).max(), np.abs(point.reaction).max())
    return np.delete(values, [int(name.split()[1]) for name in system.constraint_names]) / size


@pytest.mark.parametrize("model", [planar_pendulum, seven_body, fekete, car_axis, flexible_slider_crank])
def test_mechanisms_of_the_library_are_found_in_their_residuals(model):
    system = model().problem
    problem = as_residual(system)
    found = recognise_mechanism(SystemEquations(problem))
    assert found is not None and found.is_plain
    assert (found.system.n_q, found.system.n_constraints) == (system.n_q, system.n_constraints)
    assert found.system.names == system.names
    assert np.abs(residual_of_motion(found, problem)).max() < 1e-9


@given(st.randoms(use_true_random=False), st.lists(st.floats(0.01, 100.0), min_size=20, max_size=20))
@settings(max_examples=15, deadline=None)
def test_order_scale_and_sign_do_not_matter(random, sizes):
    n = 10
    rows, columns = random.sample(range(n), n), random.sample(range(n), n)
    factors = np.array([random.choice([-1.0, 1.0]) * size for size in sizes[:n]])
    units = np.array([random.choice([-1.0, 1.0]) * size for size in sizes[n:]])

    def residual(t, y, yp):
        x, xp = [None] * n, [None] * n
        for k, j in enumerate(columns):
            x[j], xp[j] = units[k] * y[k], units[k] * yp[k]
        values = double_pendulum(t, x, xp)
        return [factor * values[i] for factor, i in zip(factors, rows, strict=True)]

    problem = daedal.ImplicitDAE(residual, n)
    found = recognise_mechanism(SystemEquations(problem))
    assert found is not None
    assert (found.system.n_q, found.system.n_constraints) == (4, 2)
    scale = np.abs(np.delete(factors, [int(name.split()[1]) for name in found.system.constraint_names]))
    assert (np.abs(residual_of_motion(found, problem)) / scale).max() < 1e-6


def test_equations_that_are_solved_for_the_accelerations():
    def solved(t, y, yp):
        values = double_pendulum(t, y, yp)
        return [*values[:4], *(value / m for value, m in zip(values[4:8], (M1, M1, M2, M2))), *values[8:]]

    found = recognised(solved, 10)
    assert found is not None
    np.testing.assert_allclose(np.diag(found.system.mass) / found.system.mass[0, 0], np.array([M1, M1, M2, M2]) / M1)


def test_rows_of_a_full_mass_matrix_in_another_order():
    """Elliptic pendulum: a slider with a mass on a rod, in (s, angle) and a redundant height."""

    def residual(t, y, yp):
        _, phi, h, u, w, z, lam = y
        c, d = np.cos(phi), np.sin(phi)
        return [
            3.0 * yp[5] + lam - 1.0,
            2.0 * c * yp[3] + 2.0 * yp[4] + 19.62 * d + d * lam,
            yp[0] - u,
            yp[1] - w,
            5.0 * (5.0 * yp[3] + 2.0 * c * yp[4] - 2.0 * d * w * w),
            yp[2] - z,
            h - c,
        ]

    found = recognised(residual, 7)
    assert found is not None
    mass = found.system.mass(0.0, np.array([0.0, 0.3, 0.0]))
    np.testing.assert_allclose(mass, mass.T)
    np.testing.assert_allclose(mass[0, 1] / mass[1, 1], np.cos(0.3))
    assert np.abs(residual_of_motion(found, daedal.ImplicitDAE(residual, 7))).max() < 1e-12


def test_velocity_constraints_further_states_and_motors():
    """A skate on ice, driven by a motor with a current of its own, which also integrates the position."""

    def residual(t, y, yp):
        x, _, phi, u, w, omega, current, path, lam = y
        s, c = np.sin(phi), np.cos(phi)
        return [
            path - yp[7] + x - path,
            yp[0] - u,
            yp[1] - w,
            yp[2] - omega,
            2.0 * yp[3] - s * lam - current * c,
            2.0 * yp[4] + c * lam - current * s,
            0.1 * yp[5] - 0.01,
            0.5 * yp[6] + current - 1.0 + u,
            w * c - u * s,
        ]

    problem = daedal.ImplicitDAE(residual, 9)
    found = recognise_mechanism(SystemEquations(problem))
    assert found is not None
    assert (found.system.n_q, found.system.n_velocity_constraints, found.system.n_r) == (3, 1, 2)
    assert np.abs(residual_of_motion(found, problem)).max() < 1e-12
    assert found.words == (
        "a mechanism with 3 coordinates (y[0], y[1], y[2]), 1 velocity constraint and 2 first-order states"
    )


def ggl(t, y, yp, *, push=None, rate=None):
    """Gear, Gupta and Leimkuhler's form of a mass on an ellipse that changes with time, with a force that remembers."""
    x, z, u, w, lam, mu, memory = y
    a = 1.0 + 0.1 * np.sin(t)
    along = (x / a, 2.0 * z) if push is None else push(x, z, a)
    speed = x * u / a + 2.0 * z * w - 0.05 * np.cos(t) * x * x / a**2 if rate is None else rate(x, z, u, w, a)
    return [
        3.0 * (yp[0] - u - along[0] * mu),
        w - yp[1] + along[1] * mu,
        yp[2] + lam * x / a - memory,
        yp[3] + lam * 2.0 * z + G,
        0.5 * x * x / a + z * z - 1.0,
        -2.0 * speed,
        yp[6] - u,
    ]


def test_a_stabilised_form():
    problem = daedal.ImplicitDAE(lambda t, y, yp: ggl(t, y, yp), 7)
    found = recognise_mechanism(SystemEquations(problem))
    assert found is not None
    assert (found.roles.stabilisers, found.roles.multipliers, found.roles.states) == ((5,), (4,), (6,))
    assert found.system.n_velocity_constraints == 0
    x, xp = found.at(0.4, np.array([0.4, 0.7]), np.array([0.3, -0.2]), np.array([0.1]))
    assert x[5] == xp[5] == 0.0
    assert np.abs(problem.evaluate(0.4, x, xp)[[0, 1, 2, 3, 6]]).max() < 1e-13


OTHERS = {
    "velocity constraint without g_t": {"rate": lambda x, z, u, w, a: x * u / a + 2.0 * z * w},
    "velocity constraint of another surface": {"rate": lambda x, z, u, w, a: x * w - z * u},
    "push along the surface": {"push": lambda x, z, a: (2.0 * z, -x / a)},
}


@pytest.mark.parametrize("change", OTHERS.values(), ids=OTHERS)
def test_other_forms_with_two_multipliers(change):
    assert recognised(lambda t, y, yp: ggl(t, y, yp, **change), 7) is None


def test_a_problem_of_second_order_and_a_semi_explicit_one():
    def second(t, x, xp, xpp):
        return [xpp[0] + 2.0 * x[0] * x[2], xpp[1] + 2.0 * x[1] * x[2] + G, x[0] ** 2 + x[1] ** 2 - 1.0]

    assert recognise_mechanism(SystemEquations(daedal.SecondOrderDAE(second, 3))) is None  # is solved as it stands

    def f(t, y, z):
        return [y[2], y[3], -y[0] * z[0], -y[1] * z[0] - G]

    semi_explicit = daedal.SemiExplicitDAE(f, lambda t, y, z: [y[0] ** 2 + y[1] ** 2 - 1.0], 4, 1)
    assert recognise_mechanism(SystemEquations(semi_explicit)) is not None


def test_positions_are_told_from_what_they_are_integrated_to():
    """r' = q is no velocity of r, and v' = -k q no velocity of v."""

    def residual(t, y, yp):
        _, v, q, lam, x, u = y
        return [yp[0] - q, yp[2] - v, yp[1] + 4.0 * q + lam, yp[4] - u, yp[5] + x - lam, q - x - np.sin(t)]

    problem = daedal.ImplicitDAE(residual, 6)
    found = recognise_mechanism(SystemEquations(problem))
    assert found is not None
    assert (found.roles.positions, found.roles.velocities, found.roles.states) == ((2, 4), (1, 5), (0,))
    assert np.abs(residual_of_motion(found, problem)).max() < 1e-13


def test_parameters_go_on():
    def residual(t, y, yp, p):
        x, z, u, w, lam = y
        m, g = p["mass"], p["g"]
        return [yp[0] - u, yp[1] - w, m * yp[2] + lam * x, m * yp[3] + lam * z + m * g, x * x + z * z - 1.0]

    found = recognised(residual, 5, params={"mass": 3.0, "g": 9.81})
    assert found is not None and found.is_plain
    point = found.system.with_params(np.array([2.0, 5.0])).at(0.0, [0.6, 0.8], [0.0, 0.0])
    np.testing.assert_allclose(point.mass, 2.0 * np.eye(2))
    np.testing.assert_allclose(point.force, [0.0, -10.0])


def test_what_holds_for_these_parameters_only():
    def residual(t, y, yp, p):
        x, z, u, w, lam = y
        return [
            yp[0] - u,
            yp[1] - w,
            p[0] * yp[2] + p[2] * x * yp[3] + p[1] * lam * x,
            p[0] * yp[3] + p[1] * lam * z + G,
            x * x + z * z - 1.0,
        ]

    for params in ([2.0, 1.0, 0.0], [2.0, 3.0, 0.0]):
        found = recognised(residual, 5, params=np.array(params))
        assert found is not None and not found.is_plain
        np.testing.assert_allclose(found.shares, [[2.0 / params[1]]])
    assert recognised(residual, 5, params=np.array([2.0, 1.0, 0.5])) is None
    fixed = [lambda t, y, yp, p, k=k: residual(t, y, yp, [p[0], k, 0.0]) for k in (1.0, 3.0)]
    assert all(recognised(f, 5, params=np.array([2.0])).is_plain for f in fixed)


# --- what is no mechanism ---------------------------------------------------------------------------------------------


def pendulum(t, y, yp, *, mass=None, first=None, second=None, constraint=None, rate=None):
    """A pendulum in which one thing can be changed."""
    x, z, u, w, lam = y
    changes = {0: rate, 2: first, 3: second, 4: constraint}
    values = [yp[0] - u, yp[1] - w, yp[2] + lam * x, yp[3] + lam * z + G, x * x + z * z - 1.0]
    return [values[i] if changes.get(i) is None else changes[i](x, z, u, w, lam, yp) for i in range(5)]


NO_MECHANISMS = {
    "mass not symmetric": {"first": lambda x, z, u, w, lam, yp: yp[2] + 0.5 * x * yp[3] + lam * x},
    "mass depends on the velocity": {"first": lambda x, z, u, w, lam, yp: (1.0 + u * u) * yp[2] + lam * x},
    "mass negative": {"first": lambda x, z, u, w, lam, yp: -yp[2] + lam * x},
    "inertia nonlinear in the acceleration": {"first": lambda x, z, u, w, lam, yp: yp[2] + yp[2] ** 3 + lam * x},
    "sign of the acceleration": {"first": lambda x, z, u, w, lam, yp: yp[2] + np.sign(yp[2]) + lam * x},
    "a branch on the multiplier": {
        "first": lambda x, z, u, w, lam, yp: yp[2] + lam * x + np.where(lam > 1e3, 1.0, 0.0)
    },
    "multiplier nonlinear": {"first": lambda x, z, u, w, lam, yp: yp[2] + lam**3 * x},
    "friction with the multiplier": {
        "first": lambda x, z, u, w, lam, yp: yp[2] + lam * x + 0.1 * lam * np.tanh(100.0 * u)
    },
    "forces that do work": {"first": lambda x, z, u, w, lam, yp: yp[2] + 1.001 * lam * x + 0.001 * lam},
    "forces turned by a right angle": {
        "first": lambda x, z, u, w, lam, yp: yp[2] - lam * z,
        "second": lambda x, z, u, w, lam, yp: yp[3] + lam * x + G,
    },
    "velocity constraint nonlinear": {"constraint": lambda x, z, u, w, lam, yp: u * u + w * w - 1.0},
    "velocity constraint for other forces": {"constraint": lambda x, z, u, w, lam, yp: x * w - z * u - 1.0},
    "constraint on accelerations": {"constraint": lambda x, z, u, w, lam, yp: u * u + w * w - lam - G * z},
    "kinematics not constant": {"rate": lambda x, z, u, w, lam, yp: yp[0] - (1.0 + x) * u},
    "kinematics with an offset": {"rate": lambda x, z, u, w, lam, yp: yp[0] - u + 0.5},
    "multiplier in the kinematics": {"rate": lambda x, z, u, w, lam, yp: yp[0] - u + 0.1 * lam},
}


@pytest.mark.parametrize("change", NO_MECHANISMS.values(), ids=NO_MECHANISMS)
def test_near_misses_are_left_to_the_general_reduction(change):
    assert recognised(lambda t, y, yp: pendulum(t, y, yp), 5) is not None
    assert recognised(lambda t, y, yp: pendulum(t, y, yp, **change), 5) is None


TERMS = {
    "q": lambda t, y, yp: y[0] * y[3],
    "v": lambda t, y, yp: y[4] * y[7],
    "a": lambda t, y, yp: yp[6],
    "q a": lambda t, y, yp: y[1] * yp[5],
    "v a": lambda t, y, yp: y[5] * yp[7],
    "lam": lambda t, y, yp: y[8],
    "q lam": lambda t, y, yp: y[2] * y[9],
    "v lam": lambda t, y, yp: y[4] * y[8],
    "lam lam": lambda t, y, yp: y[8] * y[9],
    "q'": lambda t, y, yp: yp[0],
    "t": lambda t, y, yp: np.sin(t),
    "|lam|": lambda t, y, yp: np.abs(y[9]),
    "sign a": lambda t, y, yp: np.sign(yp[4]),
}


@given(st.integers(0, 9), st.sampled_from(sorted(TERMS)), st.floats(0.1, 3.0))
@settings(max_examples=25, deadline=None)
def test_whatever_is_recognised_has_the_motions_of_the_problem(row, term, factor):
    """A term too many somewhere: often no mechanism is left, and if there is one it is that of all equations."""

    def residual(t, y, yp):
        values = double_pendulum(t, y, yp)
        values[row] = values[row] + factor * TERMS[term](t, y, yp)
        return values

    problem = daedal.ImplicitDAE(residual, 10)
    found = recognise_mechanism(SystemEquations(problem))
    if found is not None:
        assert np.abs(residual_of_motion(found, problem)).max() < 1e-8
    if term in ("v a", "v lam", "lam lam", "|lam|", "sign a"):
        assert found is None
    if term in ("q", "v", "t") and 4 <= row < 8:
        assert found is not None


def test_functions_that_raise_are_left_alone():
    def residual(t, y, yp):
        if y[0] > 10.0:
            raise ValueError("too far")
        return pendulum(t, y, yp)

    assert recognised(residual, 5) is None


def test_dependent_constraints_are_no_mechanism():
    def residual(t, y, yp):
        values = pendulum(t, y[:5], yp[:5])
        values[2] += y[5] * y[0]
        values[3] += y[5] * y[1]
        return [*values, 3.0 * values[4]]

    assert recognised(residual, 6) is None


def test_problems_without_multipliers_or_velocities():
    assert recognised(lambda t, y, yp: [yp[0] - y[1], yp[1] + y[0]], 2) is None
    assert recognised(lambda t, y, yp: [yp[0] + y[1], y[0] - np.sin(t)], 2) is None


SWITCHED_MATRICES = {
    "friction from some time on": {
        "first": lambda t, x, z, lam, yp: yp[2] + lam * x - (0.3 if t > 5.0 else 0.0) * lam * z
    },
    "friction somewhere": {"first": lambda t, x, z, lam, yp: yp[2] + lam * x - np.maximum(0.0, -x - 9.0) * lam * z},
    "mass not symmetric later": {"first": lambda t, x, z, lam, yp: yp[2] + np.maximum(0.0, t - 2.0) * yp[3] + lam * x},
    "another constraint somewhere": {"constraint": lambda t, x, z, lam, yp: x * x + z * z - 1.0 + abs(x + z - 9.0)},
}


@pytest.mark.parametrize("change", SWITCHED_MATRICES.values(), ids=SWITCHED_MATRICES)
def test_matrices_with_switches_are_left_alone(change):
    """They have the form of mechanics at all points that are looked at."""

    def residual(t, y, yp):
        values = pendulum(t, y, yp)
        for name, row in {"first": 2, "constraint": 4}.items():
            if name in change:
                values[row] = change[name](t, y[0], y[1], y[4], yp)
        return values

    assert recognised(residual, 5) is None


def test_forces_with_switches_are_those_of_a_mechanism():
    def residual(t, y, yp):
        values = pendulum(t, y, yp)
        values[2] = values[2] + (0.3 if t > 0.5 else 0.0) * y[2] + np.sign(y[2])
        return values

    assert recognised(residual, 5) is not None


@pytest.mark.parametrize(
    ("force", "seen"),
    [
        (lambda t: 1.0 / (0.5 - t) + math.log(t), True),
        (lambda t: math.exp(-1.0 / (t * t)), False),
        (lambda t: 1.0 / (1.0 + 1.0 / t), False),
    ],
)
def test_what_python_refuses_to_divide_hides_no_mechanism_unless_a_finite_result_could_follow(force, seen):
    def residual(t, y, yp):
        x, z, u, w, tension = y
        return [yp[0] - u, yp[1] - w, yp[2] + tension * x, yp[3] + tension * z + force(t), x * x + z * z - 1.0]

    assert (recognised(residual, 5) is not None) == seen
