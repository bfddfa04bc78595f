"""What decides between formulations: measured against closed forms, and the table of cases of the stability paper."""

import math

import numpy as np
import pytest

import daedal
from daedal.analysis.decision import decision
from daedal.analysis.measures import Measures, amplification, measure
from daedal.mechanics.hessenberg_workspace import HessenbergWorkspace
from daedal.mechanics.system_workspace import SystemWorkspace

H = 0.01
TIMES = np.linspace(0.0, 1.0, 11)


def example1(nu: float, a: float = -1.0) -> daedal.HessenbergDAE:
    """Example 1 of Ascher and Petzold: the constraint turns with the rate nu, B = C^T."""

    def C(t):
        return np.array([[math.sin(nu * t), math.cos(nu * t)]])

    def C_derivatives(t):
        return nu * np.array([[[math.cos(nu * t), -math.sin(nu * t)]]])

    def q(t):
        return math.exp(t) * ((1.0 - a) + C(t)[0] / (2.0 - t))

    def r(t):
        return -math.exp(t) * C(t).sum(axis=1)

    def r_derivatives(t):
        return -math.exp(t) * (C(t).sum(axis=1) + C_derivatives(t)[0].sum(axis=1))[None]

    return daedal.HessenbergDAE(
        a * np.eye(2), lambda t: C(t).T, C, q, r, n_x=2, n_y=1, C_derivatives=C_derivatives, r_derivatives=r_derivatives
    )


def example2(nu: float) -> daedal.HessenbergDAE:
    """Example 2: B turns fast against C, R'S = -nu/(2 - t)."""

    def q(t):
        return math.exp(t) * np.array([1.0 + nu, 1.0 + (nu - 1.0) / (2.0 - t)])

    return daedal.HessenbergDAE(
        np.zeros((2, 2)),
        lambda t: np.array([[(2.0 - t) * nu], [nu - 1.0]]),
        lambda t: np.array([[t + 2.0, t * t - 4.0]]),
        q,
        lambda t: np.array([-(t * t + t - 2.0) * math.exp(t)]),
        n_x=2,
        n_y=1,
        C_derivatives=lambda t: np.array([[[1.0, 2.0 * t]]]),
        r_derivatives=lambda t: np.array([[-(t * t + 3.0 * t - 1.0) * math.exp(t)]]),
    )


def along(problem) -> list[Measures]:
    """Samples along the exact solution e^t (1, 1)."""
    if isinstance(problem, daedal.HessenbergDAE):
        assembly = HessenbergWorkspace(problem)
        return [measure(assembly, t, math.exp(t) * np.ones(2)) for t in TIMES]
    assembly = SystemWorkspace(problem, 0.0, np.ones(2))
    return [measure(assembly, t, math.exp(t) * np.ones(4)) for t in TIMES]


def example3(nu, kappa):
    return daedal.library.stability_example3(nu=nu, kappa=kappa).problem


# problem, largest s, v, w, h fc over [0, 1], cond M at 0, case
TABLE = [
    (example2(1.0), 0.0, 0.005, 0.005, 0.007, None, 1),
    (example3(1.0, 1.0), 0.01, 0.01, 0.005, 0.01, 18.0, 1),
    (example1(1.0), 0.01, 0.0, 0.01, 0.01, None, 1),
    (example1(1000.0), 0.01, 0.0, 10.0, 10.0, None, 2),
    (example1(1.0, a=-1000.0), 10.0, 0.0, 0.01, 0.01, None, 3),
    (example2(100.0), 0.0, 0.995, 0.005, 1.05, None, 1),
    (example2(1000.0), 0.0, 10.0, 0.005, 10.5, None, 4),
    (example3(100.0, 0.0), 0.0, 2.0, 0.005, 1.4, 2.5e5, 4),
    (example3(100.0, 1.0), 1.0, 2.0, 0.005, 1.4, 2.5e5, 4),
    (example3(100.0, 2.0), 2.0, 2.0, 0.005, 1.4, 2.5e5, 4),
    (example3(1000.0, 0.0), 0.0, 20.0, 0.005, 14.0, 2.5e7, 4),
    (example3(1000.0, 1.0), 10.0, 20.0, 0.005, 14.0, 2.5e7, 4),
    (example3(1000.0, 2.0), 20.0, 20.0, 0.005, 14.0, 2.5e7, 4),
]


@pytest.mark.parametrize(("problem", "s", "v", "w", "fc", "cond", "case"), TABLE)
def test_measurements_and_cases_of_the_examples_are_those_of_the_table(problem, s, v, w, fc, cond, case):
    samples = along(problem)
    verdict = decision(samples, H)
    assert verdict.case == case
    assert verdict.s == pytest.approx(s, rel=0.01, abs=1e-5)
    assert verdict.v == pytest.approx(v, rel=0.015, abs=1e-5)
    assert verdict.w == pytest.approx(w, rel=0.05, abs=1e-5)
    assert H * max(sample.fc for sample in samples) == pytest.approx(fc, rel=0.07)
    if cond is None:
        assert math.isnan(samples[0].condM)
    else:
        assert samples[0].condM == pytest.approx(cond, rel=0.02)
    assert max(sample.V_CT for sample in samples) < 1e-12 * max(sample.fc for sample in samples)


@pytest.mark.parametrize(("t", "expected"), [(0.01, 4.0), (0.5, 5.6), (1.0, 8.9)])
def test_one_step_amplification_of_example_2(t, expected):
    assembly = HessenbergWorkspace(example2(1000.0))
    before, now = (measure(assembly, time, np.ones(2)) for time in (t - H, t))
    assert amplification(before, now, "B") == pytest.approx(expected, rel=0.02)
    assert amplification(before, now, "CT") <= 1.0


def double_pendulum(m1, m2, angles, rates):
    """Two point masses on rods of length 1, in Cartesian coordinates: the assembly and the state."""
    system = daedal.MechanicalSystem(
        [m1, m1, m2, m2],
        lambda t, q, v: [0.0, -9.81 * m1, 0.0, -9.81 * m2],
        lambda t, q: [q[0] ** 2 + q[1] ** 2 - 1.0, (q[2] - q[0]) ** 2 + (q[3] - q[1]) ** 2 - 1.0],
        n_q=4,
        n_constraints=2,
    )
    (s1, s2), (c1, c2) = np.sin(angles), np.cos(angles)
    q = np.array([s1, -c1, s1 + s2, -c1 - c2])
    v = np.array([c1 * rates[0], s1 * rates[0], c1 * rates[0] + c2 * rates[1], s1 * rates[0] + s2 * rates[1]])
    return SystemWorkspace(system, 0.0, q), np.concatenate([q, v])


@pytest.mark.parametrize(("ratio", "expected"), [(1e-8, 2.35), (1e8, 1.21)])
def test_widely_spread_masses_alone_do_not_make_the_turning_fast(ratio, expected):
    assembly, state = double_pendulum(ratio, 1.0, (0.7, 1.5), (1.0, 2.0))
    found = measure(assembly, 0.0, state)
    assert found.condM == pytest.approx(1e8, rel=1e-6)
    assert found.V_B == pytest.approx(expected, abs=0.006)


@pytest.mark.parametrize("ratio", [1e-8, 1e-4, 1e-2])
def test_light_bodies_between_aligned_links_make_the_turning_fast(ratio):
    """V_B = sqrt(5) a / (a^2 + ratio) at the angle a between the links, up to a part of the size of the ratio."""
    a = 1e-4
    assembly, state = double_pendulum(ratio, 1.0, (0.7, 0.7 + a), (1.0, 2.0))
    expected = math.sqrt(5.0) * a / (a**2 + ratio)
    assert measure(assembly, 0.0, state).V_B == pytest.approx(expected, rel=2.0 * ratio + 1e-6)


def test_units_of_length_mass_and_constraints_do_not_change_what_is_measured():
    found = []
    for length, mass, scale in ((1.0, 1.0, 1.0), (1e3, 1e-3, 1e4)):
        system = daedal.MechanicalSystem(
            mass,
            lambda t, q, v, L=length, m=mass: [-0.3 * m * v[0], -9.81 * L * m],
            lambda t, q, L=length, c=scale: [c * (q[0] ** 2 + q[1] ** 2 - L * L)],
            n_q=2,
            n_constraints=1,
        )
        state = length * np.array([0.6, -0.8, 1.6, 1.2])
        found.append(measure(SystemWorkspace(system, 0.0, state[:2]), 0.0, state))
    for name in ("kap1", "kapC", "rot", "sigF", "omegaF", "fc"):
        assert getattr(found[1], name) == pytest.approx(getattr(found[0], name), rel=1e-5)
    assert found[0].rot == pytest.approx(2.0, rel=1e-7)


def test_the_frozen_part_has_the_tension_of_the_rod():
    # x'' = -2 lam x at fixed lam: tangential stiffness 2 lam/m, here with damping c along the tangent
    c, q, v = 0.5, np.array([0.0, -1.0]), np.array([3.0, 0.0])
    system = daedal.MechanicalSystem(
        1.0,
        lambda t, q, v: [-c * v[0], -9.81 - c * v[1]],
        lambda t, q: [q @ q - 1.0],
        n_q=2,
        n_constraints=1,
    )
    found = measure(SystemWorkspace(system, 0.0, q), 0.0, np.concatenate([q, v]))
    stiffness = 9.81 + 9.0  # 2 lam, the force of the rod
    assert found.sigF == pytest.approx(-c / 2, rel=1e-6)
    assert found.omegaF == pytest.approx(math.sqrt(stiffness - c * c / 4), rel=1e-6)


def test_stiffness_of_further_states_is_seen_and_algebraic_ones_follow():
    system = daedal.MechanicalSystem(
        1.0,
        lambda t, q, v, r, w: [r[0] - w[0]],
        n_q=1,
        state_rate=lambda t, q, v, r, w: [-500.0 * (r[0] - q[0])],
        n_r=1,
        algebraic=lambda t, q, v, r, w: [w[0] - 40.0 * v[0]],
        n_w=1,
    )
    found = measure(SystemWorkspace(system, 0.0, np.ones(1)), 0.0, np.array([1.0, 0.0, 1.0]))
    expected = np.linalg.eigvals([[0.0, 1.0, 0.0], [0.0, -40.0, 1.0], [500.0, 0.0, -500.0]])
    assert found.sigF == pytest.approx(min(expected.real), rel=1e-6)


def test_mass_that_is_singular_off_the_constraints_is_no_obstacle():
    def system(mass):
        return daedal.MechanicalSystem(
            mass, lambda t, q, v: [0.0, -1.0, 0.0], lambda t, q: [q[2] - q[0] * q[1]], n_q=3, n_constraints=1
        )

    state = np.array([1.0, 2.0, 2.0, 0.5, 0.3, 1.3])
    light, none = (
        measure(SystemWorkspace(system(mass), 0.0, state[:3]), 0.0, state)
        for mass in ([1.0, 1.0, 1e-9], [1.0, 1.0, 0.0])
    )
    for name in ("rot", "V_B", "fc", "omegaF", "sigF"):
        assert getattr(none, name) == pytest.approx(getattr(light, name), rel=1e-5, abs=1e-4)


def test_friction_changes_the_direction_in_which_multipliers_act():
    mu = 0.4
    system = daedal.MechanicalSystem(
        1.0,
        lambda t, q, v, lam: [mu * lam[0], -9.81],
        lambda t, q: [q[1] - 0.1 * math.sin(q[0])],
        n_q=2,
        n_constraints=1,
        force_uses_multipliers=True,
    )
    state = np.array([0.5, 0.1 * math.sin(0.5), 1.0, 0.1 * math.cos(0.5)])
    found = measure(SystemWorkspace(system, 0.0, state[:2]), 0.0, state)
    C = np.array([-0.1 * math.cos(0.5), 1.0])
    assert np.allclose(found.geometry.B[:, 0], C - [mu, 0.0], rtol=1e-6)


def test_dependent_constraints_are_reported_and_nothing_is_recommended():
    q = np.array([1.0, 1.0, 0.0])
    system = daedal.MechanicalSystem(
        1.0, lambda t, q, v: np.zeros(3), lambda t, q: [q[0] - q[1], (q[0] - q[1]) * q[0]], n_q=3, n_constraints=2
    )
    found = measure(SystemWorkspace(system, 0.0, q), 0.0, np.concatenate([q, np.zeros(3)]))
    assert found.kap1 > 1e12
    verdict = decision([found], 0.1)
    assert verdict.case == "singular" and "linearly dependent" in verdict.reasons[0]


def sample(**values) -> Measures:
    return Measures(0.0, 2, 1.0, **({"rot": 0.0, "sigF": 0.0, "omegaF": 0.0, "V_B": 0.0, "condM": 1.0} | values))


@pytest.mark.parametrize(
    ("values", "case", "formulation", "method"),
    [
        ({}, 1, "projection", "dopri5"),
        ({"rot": 0.5}, 2, "projection", "dopri5"),
        ({"rot": 5.0}, 2, "ggl", "dassl"),
        ({"sigF": -1.5}, 3, "projection", "dopri5"),
        ({"sigF": -5.0}, 3, "ggl", "dassl"),
        ({"sigF": -1.5, "rot": 2.0}, 3, "ggl", "dassl"),
        ({"omegaF": 50.0}, 3, "ggl", "dassl"),
        ({"omegaF": 50.0, "unknowns": 3}, 3, "index3", "collocation"),
        ({"omegaF": 50.0, "unknowns": 301}, 3, "ggl", "dassl"),
        ({"omegaF": 50.0, "sigF": -60.0, "unknowns": 3}, 3, "ggl", "dassl"),
        ({"V_B": 0.7}, 4, "projection", "dopri5"),
        ({"V_B": 7.0}, 4, "projected_invariants", "dassl"),
        ({"V_B": 7.0, "sigF": -100.0}, 4, "projected_invariants", "dassl"),
        ({"sigF": math.nan, "V_B": math.nan}, 1, "projection", "dopri5"),
    ],
)
def test_rules(values, case, formulation, method):
    verdict = decision([sample(), sample(**values), sample()], [1.0, 1.0, 1.0])
    assert (verdict.case, verdict.formulation.name, verdict.method.name) == (case, formulation, method)
    assert verdict.reasons
    assert formulation not in verdict.forbidden


def test_explicit_steps_in_case_4_are_projected_along_the_rows_of_the_constraints():
    verdict = decision([sample(V_B=0.7)], 1.0)
    assert verdict.explicit and verdict.formulation.weight == "I"
    assert decision([sample()], 1.0).formulation.weight == "M"


def test_a_short_step_in_a_fast_phase_counts_as_such():
    assert decision([sample(), sample(sigF=-1e4)], [1.0, 1e-5]).case == 1
    assert decision([sample(), sample(sigF=-1e4)], 1.0).case == 3
