"""The truck: its forces against virtual work, its equilibrium, its motion against the reference.

The lengths of the elements are written down here once more, without the tables of the library, so that their
derivatives, by complex steps, are independent of the forces under test.
"""

from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import daedal
from daedal import library
from daedal.library.vehicles import COORDINATES, ELEMENTS, MASSES

VERTICAL = np.array([row[0][0] == "z" for row in COORDINATES])
STIFFNESS, DAMPING, NOMINAL = np.array([row[3:] for row in ELEMENTS], dtype=float).T
PLAIN, AIR_SPRING = library.truck(), library.truck(pneumatic=True)
BOTH = pytest.mark.parametrize("model", [PLAIN, AIR_SPRING], ids=["linear", "pneumatic"])

small = st.floats(-0.05, 0.05)
shifts = st.lists(small, min_size=9, max_size=9).map(np.array)
rates = st.lists(st.floats(-1.0, 1.0), min_size=9, max_size=9).map(np.array)
times = st.floats(0.0, 20.0)


def lengths(q, rear, front):
    """Lengths of the elements 10, 12, 30, 23, 24, 42, 25 on roads of height `rear` and `front`."""
    z1, z2, a2, z3, z4, a4, x5, z5, a5 = q

    def on(x, z, angle, px, pz):
        c, s = np.cos(angle), np.sin(angle)
        return np.array([x + c * px - s * pz, z + s * px + c * pz])

    def distance(point, other):
        return np.sqrt(np.sum((point - other) ** 2))  # not a norm: arguments may be complex

    return np.array(
        [
            z1 - rear,
            distance(on(0.0, z2, a2, -2.06, -1.34), np.array([-2.06, z1])),
            z3 - front,
            distance(on(0.0, z2, a2, 2.44, -1.34), np.array([2.44, z3])),
            distance(on(2.74, z4, a4, -0.8, 0.0), on(0.0, z2, a2, 1.94, 0.0)),
            distance(on(2.74, z4, a4, 0.9, 0.0), on(0.0, z2, a2, 3.64, 0.0)),
            distance(on(x5, z5, a5, 2.44, 0.0), on(0.0, z2, a2, 0.98, 0.0)),
        ]
    )


def height(s):
    """Height of the road, s seconds after the hump is reached at 15 m/s; s may be complex."""
    return 0.001 * s**6 * np.exp(-s) if s.real > 0.0 else 0.0 * s


def roads(t):
    return height(t - 2.0 / 15.0 - 0.3), height(t - 2.0 / 15.0)


def tensions(length, rate, pneumatic):
    force = STIFFNESS * length + DAMPING * rate + NOMINAL
    if pneumatic:
        static, air = 2.711e5 * 0.16 - 8.4924838e4, 1e5 * 0.0562
        ratio = (1.0 + 39.13228 * 0.16) / (1.0 + 39.13228 * length[3])
        force[3] = (static + air) * ratio**1.4 - air + 38537.0 * rate[3]
    return force


def force(model, t, q, v, params=None):
    return model.problem.force(t, q, v, model.problem.params if params is None else params)


# --- the equations ----------------------------------------------------------------------------------------------------


@BOTH
@given(shift=shifts, v=rates, t=times)
def test_forces_follow_from_virtual_work(model, shift, v, t):
    """f = -M g e_z - sum F dL/dq."""
    q, step = model.initial[0] + shift, 1e-30
    rate = lengths(q + 1j * step * v, *roads(t + 1j * step)).imag / step
    gradient = np.stack([lengths(q + 1j * step * e, *roads(t)).imag / step for e in np.eye(9)], axis=1)
    expected = -9.81 * MASSES * VERTICAL - tensions(lengths(q, *roads(t)), rate, model is AIR_SPRING) @ gradient
    np.testing.assert_allclose(force(model, t, q, v), expected, atol=1e-7)  # of about 1e6 N


@BOTH
def test_start_is_an_equilibrium(model):
    point = model.problem.at(0.0, *model.initial)
    residual = point.force - point.jacobian.T @ point.multipliers
    assert np.max(np.abs(residual)) < 1e-9 * np.sum(MASSES[VERTICAL]) * 9.81
    np.testing.assert_allclose(point.acceleration, 0.0, atol=1e-10)
    # Printed with the opposite sign: M p'' = f + G^T lambda
    np.testing.assert_allclose(-point.multipliers, [0.0, 6.80562088888888e4], rtol=1e-13, atol=1e-8)
    np.testing.assert_allclose(point.multipliers, model.extra["start_lam"], atol=1e-8)


def test_tyres_carry_the_weight():
    tyres = tensions(lengths(PLAIN.initial[0], 0.0, 0.0), np.zeros(7), False)[[0, 2]]
    assert np.sum(tyres) == pytest.approx(-18000.0 * 9.81, rel=1e-12)


@BOTH
@given(shift=shifts, v=rates)
def test_dampers_take_energy_and_springs_store_it(model, shift, v):
    """The power of all forces is the loss in the dampers plus the change of what height and springs hold."""
    q, step = model.initial[0] + shift, 1e-30
    rate = lengths(q + 1j * step * v, 0.0, 0.0).imag / step
    length = lengths(q, 0.0, 0.0)
    stored = tensions(length, 0.0 * rate, model is AIR_SPRING) @ rate + 9.81 * MASSES[VERTICAL] @ v[VERTICAL]
    assert force(model, 0.0, q, v) @ v == pytest.approx(-stored - DAMPING @ rate**2, abs=1e-6)


@BOTH
@given(shift=shifts, v=rates, t=times, lift=small, speed=small)
def test_only_the_tyres_feel_that_the_whole_truck_rises(model, shift, v, t, lift, speed):
    q = model.initial[0] + shift
    change = force(model, t, q + lift * VERTICAL, v + speed * VERTICAL) - force(model, t, q, v)
    expected = np.zeros(9)
    expected[0] = -44e5 * lift - 600.0 * speed
    expected[3] = -22e5 * lift - 300.0 * speed
    np.testing.assert_allclose(change, expected, atol=1e-7)


@BOTH
@given(shift=shifts, v=rates, t=times, part=st.floats(-1.0, 2.0), seed=st.integers(0, 99))
def test_force_is_affine_in_the_constants_of_the_elements(model, shift, v, t, part, seed):
    q, one = model.initial[0] + shift, np.array(model.problem.params)
    other = one.copy()
    changed = [0, *range(4, 25)]  # gravity and the elements
    other[changed] *= np.random.default_rng(seed).uniform(0.5, 1.5, len(changed))
    between = force(model, t, q, v, (1.0 - part) * one + part * other)
    expected = (1.0 - part) * force(model, t, q, v, one) + part * force(model, t, q, v, other)
    scale = np.max(np.abs(one)) + np.max(np.abs(other))
    np.testing.assert_allclose(between, expected, atol=1e-13 * scale)


def test_air_spring_is_as_stiff_as_the_steel_spring_it_replaces():
    step = 1e-6
    e = np.eye(9)[3]
    stiffness = [
        -(force(model, 0.0, model.initial[0] + step * e, 0.0 * e) - force(model, 0.0, model.initial[0], 0.0 * e))[3]
        / step
        - 22e5
        for model in (PLAIN, AIR_SPRING)
    ]
    np.testing.assert_allclose(stiffness, 2.711e5, rtol=2e-4)


@BOTH
@given(shift=shifts, v=rates)
def test_derivatives_of_the_joint(model, shift, v):
    system, q, step = model.problem, model.initial[0] + shift, 1e-30
    p = np.array(system.params)
    jacobian = np.stack([system.constraint(0.0, q + 1j * step * e, p).imag / step for e in np.eye(9)], axis=1)
    point = system.at(0.0, q, v)
    np.testing.assert_allclose(point.jacobian, jacobian, atol=1e-14)
    turning = system.constraint_jacobian(0.0, q + 1j * step * v, p).imag / step
    np.testing.assert_allclose(point.bias, -turning @ v, atol=1e-13)


@BOTH
def test_compiled_functions_give_the_same(model):
    rng = np.random.default_rng(4)
    t, q, v = 5.0, model.initial[0] + rng.uniform(-0.05, 0.05, 9), rng.normal(size=9)
    plain, compiled = model.problem.at(t, q, v), model.problem.compiled("numba").at(t, q, v)
    for name in ("mass", "force", "constraint", "jacobian", "bias"):
        np.testing.assert_allclose(getattr(compiled, name), getattr(plain, name), rtol=1e-12, atol=1e-9, err_msg=name)


def test_road_is_that_of_the_source():
    road = PLAIN.extra["road"]
    np.testing.assert_allclose(road(5.0), roads(5.0), rtol=1e-13)
    np.testing.assert_array_equal(road(0.1), [0.0, 0.0])
    assert road([0.1, 5.0, 20.0]).shape == (2, 3)
    assert road(6.0 + 2.0 / 15.0)[1] == pytest.approx(0.1157, abs=1e-4)  # the top
    # The road is a function of the place: at half the speed it takes twice the time to the same point
    np.testing.assert_allclose(library.truck(speed=7.5).extra["road"](10.0), road(5.0), rtol=1e-13)


def test_other_roads_have_no_reference():
    for parameters in ({"speed": 20.0}, {"hump": 0.0}, {"t1": 10.0}):
        assert library.truck(**parameters).reference is None


@pytest.mark.parametrize("parameters", [{"speed": 0.0}, {"t1": -1.0}, {"hump": float("nan")}, {"hump": "high"}])
def test_wrong_parameters_are_refused(parameters):
    with pytest.raises(daedal.InvalidProblemError, match=next(iter(parameters))):
        library.truck(**parameters)


# --- the motion -------------------------------------------------------------------------------------------------------


@cache
def compiled_truck(pneumatic=False):
    return library.truck(pneumatic=pneumatic, compiled=True)


def run(model, tolerance, **options):
    return daedal.solve(model.problem, model.t_span, model.initial, rtol=tolerance, atol=tolerance, **options)


@pytest.mark.parametrize("pneumatic", [False, True])
@pytest.mark.parametrize("options", [{}, {"formulation": "ggl", "method": "dassl"}], ids=["auto", "ggl"])
def test_errors_follow_the_tolerance(pneumatic, options):
    model = compiled_truck(pneumatic)
    for tolerance in (1e-4, 1e-6, 1e-8, 1e-10):
        sol = run(model, tolerance, **options)
        assert np.max(np.abs(sol.y[:, -1] - model.reference.y)) < 10.0 * tolerance
        # Multipliers are computed from the state: stiff springs (1e6 N/m) magnify its errors
        np.testing.assert_allclose(sol.lam[:, -1], model.extra["lam"], atol=1e7 * tolerance)
        assert sol.drift["position"] < 1e-12


def test_errors_follow_the_tolerance_all_the_way():
    """At the end the truck is nearly at rest; errors are largest on the hump."""
    model, t = compiled_truck(), np.linspace(0.0, 20.0, 101)
    exact = run(model, 1e-12, method="phem56", t_eval=t).y
    for options in ({}, {"formulation": "ggl", "method": "dassl"}):
        for tolerance in (1e-4, 1e-6, 1e-8):
            assert np.max(np.abs(run(model, tolerance, t_eval=t, **options).y - exact)) < 30.0 * tolerance


@pytest.mark.parametrize("pneumatic", [False, True])
def test_two_methods_agree_with_the_reference(pneumatic):
    model = compiled_truck(pneumatic)
    for options in ({"method": "phem56"}, {"formulation": "projection", "method": "dopri5"}):
        error = np.abs(run(model, 1e-11, **options).y[:, -1] - model.reference.y)
        assert np.max(error) < 3e-11


def test_reference_multipliers_follow_from_the_reference():
    for model in (PLAIN, AIR_SPRING):
        q, v = model.reference.y[:9], model.reference.y[9:]
        point = model.problem.at(20.0, q, v)
        np.testing.assert_allclose(point.multipliers, model.extra["lam"], rtol=1e-11, atol=1e-7)
        np.testing.assert_allclose(point.constraint, 0.0, atol=1e-15)
        np.testing.assert_allclose(point.velocity, 0.0, atol=1e-15)


def test_cabin_follows_the_hump_and_comes_to_rest():
    model = compiled_truck()
    t = np.linspace(0.0, 20.0, 401)
    sol = run(model, 1e-7, t_eval=t)
    rise = sol["z4"] - 2.9
    road = model.extra["road"](t)[1]
    assert np.max(np.abs(rise - road)) < 0.015  # pitch adds to the 12 cm
    assert np.corrcoef(rise, road)[0, 1] > 0.98
    assert t[np.argmax(rise)] == pytest.approx(t[np.argmax(road)], abs=0.6)
    assert np.max(rise) == pytest.approx(np.max(road), abs=6e-3)
    # What is left of the hump at the end
    assert abs(rise[-1]) < 2.0 * np.max(model.extra["road"](20.0)) < 5e-4
    np.testing.assert_allclose(sol.q[:, -1], model.initial[0], atol=5e-4)
    np.testing.assert_allclose(sol.lam[:, -1], model.extra["start_lam"], atol=50.0)


def test_on_a_flat_road_nothing_moves():
    model = library.truck(hump=0.0, compiled=True)
    sol = run(model, 1e-8)
    np.testing.assert_allclose(sol.q, model.initial[0][:, None] * np.ones_like(sol.t), atol=1e-10)


def test_dropped_truck_loses_energy_until_it_stands():
    model = library.truck(hump=0.0, compiled=True)
    q0 = model.initial[0] + 0.05 * VERTICAL
    t = np.linspace(0.0, 20.0, 201)
    sol = daedal.solve(model.problem, model.t_span, (q0, np.zeros(9)), rtol=1e-8, atol=1e-8, t_eval=t)

    def energy(q, v):
        length = lengths(q, 0.0, 0.0)
        springs = 0.5 * STIFFNESS @ length**2 + NOMINAL @ length
        return 0.5 * MASSES @ v**2 + 9.81 * MASSES[VERTICAL] @ q[VERTICAL] + springs

    held = np.array([energy(q, v) for q, v in zip(sol.q.T, sol.v.T)]) - energy(*model.initial)
    assert held[0] == pytest.approx(0.5 * 66e5 * 0.05**2, rel=1e-8)  # in the tyres
    assert np.all(np.diff(held) < 1e-6 * held[0])
    assert abs(held[-1]) < 1e-6 * held[0]


def test_slow_road_and_fast_wheels_make_the_truck_mildly_stiff():
    model = compiled_truck()
    implicit = run(model, 1e-4, formulation="ggl", method="dassl").stats.steps
    explicit = run(model, 1e-4, method="phem56").stats.steps
    assert implicit < 0.3 * explicit
