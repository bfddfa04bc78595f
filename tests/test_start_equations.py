"""Initial values from additional equations: steady states, given derivatives, energies; any class and index."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import daedal


def reactor(t, y, p):
    """An ignited stirred tank: concentration and temperature."""
    c, temperature = y
    rate = 7.2e10 * np.exp(-8750.0 / temperature) * c
    return [1.0 - c - rate, 350.0 - temperature + 209.0 * rate + 2.09 * (p["cooling"] - temperature)]


REACTOR = daedal.ODE(reactor, 2, params={"cooling": 305.0}, names=["c", "T"])
PENDULUM = daedal.MechanicalSystem(
    1.0,
    lambda t, q, v: [0.0, -9.81],
    lambda t, q: [q[0] ** 2 + q[1] ** 2 - 1.0],
    n_q=2,
    n_constraints=1,
    names=["x", "y"],
)


def pendulum(t, s, sp):
    x, y, u, v, lam = s
    return [sp[0] - u, sp[1] - v, sp[2] + lam * x, sp[3] + lam * y + 9.81, x * x + y * y - 1.0]


IMPLICIT = daedal.ImplicitDAE(pendulum, 5, names="x y u v lam")


@settings(max_examples=6, deadline=None)
@given(st.floats(0.05, 0.95), st.floats(300.0, 420.0))
def test_steady_states_are_found_from_far_away(c, temperature):
    y, yp = daedal.consistent_initial(REACTOR, 0.0, ([c, temperature], None), equations="steady")
    assert np.max(np.abs(REACTOR.slope(0.0, y) / [1.0, 350.0])) < 1e-9 and np.max(np.abs(yp)) < 1e-9
    assert abs(y[1] - 378.0479624) < 1e-6


def test_steady_states_of_mechanisms_and_of_index_three():
    start = daedal.consistent_initial(PENDULUM, 0.0, ([0.3, -0.9], None), equations="steady")
    assert np.allclose(start.q, [0.0, -1.0], atol=1e-10) and np.allclose(start.lam, 4.905) and not start.v.any()
    y, yp = daedal.consistent_initial(IMPLICIT, 0.0, ([0.3, -0.9, 0.0, 0.0, 9.0], None), equations="steady")
    assert np.allclose(y, [0.0, -1.0, 0.0, 0.0, 9.81], atol=1e-10) and np.allclose(yp, 0.0, atol=1e-10)


def test_a_steady_state_stays():
    initial = daedal.consistent_initial(REACTOR, 0.0, ([0.5, 350.0], None), equations="steady")
    sol = daedal.solve(REACTOR, (0.0, 10.0), initial, rtol=1e-8)
    assert np.max(np.abs(sol.y[:, -1] - initial[0])) < 1e-5


def test_values_and_derivatives_by_name():
    y, yp = daedal.consistent_initial(REACTOR, 0.0, ([0.6, 320.0], None), fixed=["c"], equations={"T'": 0.0})
    assert y[0] == 0.6 and abs(yp[1]) < 1e-9 and np.allclose(yp, REACTOR.slope(0.0, y), atol=1e-9)
    other, _ = daedal.consistent_initial(REACTOR, 0.0, ([0.5, 320.0], None), equations=[{"c": 0.6}, {"T'": 0.0}])
    assert np.allclose(other, y, rtol=1e-9)


def test_functions_of_all_classes():
    energy = 3.0
    y, _ = daedal.consistent_initial(
        IMPLICIT,
        0.0,
        ([0.6, -0.8, 0.8, 0.6, 9.0], None),
        fixed=["x", "y"],
        equations=lambda t, y: 0.5 * (y[2] ** 2 + y[3] ** 2) + 9.81 * y[1] - energy,
    )
    assert np.allclose(y[:2], [0.6, -0.8]) and np.isclose(0.5 * (y[2] ** 2 + y[3] ** 2) - 9.81 * 0.8, energy)
    assert abs(0.6 * y[2] - 0.8 * y[3]) < 1e-10  # the velocity is tangential
    start = daedal.consistent_initial(
        PENDULUM, 0.0, ([0.6, -0.8], [0.8, 0.6]), fixed=["x", "y"], equations=lambda t, q, v: 0.5 * v @ v - energy
    )
    assert np.isclose(0.5 * start.v @ start.v, energy) and abs(start.q @ start.v) < 1e-12
    semi = daedal.SemiExplicitDAE(lambda t, y, z: [z[0] - y[0]], lambda t, y, z: [z[0] ** 3 + z[0] - 2.0 * y[0]], 1, 1)
    y, z = daedal.consistent_initial(semi, 0.0, ([3.0], None), equations="steady")
    assert np.allclose([y[0], z[0]], 1.0)
    y, z = daedal.consistent_initial(semi, 0.0, ([3.0], [2.0]), equations=lambda t, y, z: z[0] - 1.5)
    assert np.allclose([y[0], z[0]], [2.4375, 1.5])
    cooled = daedal.consistent_initial(
        REACTOR, 0.0, ([0.5, 350.0], None), equations=lambda t, y, p: [y[1] - p["cooling"], y[0] - 0.25]
    )
    assert np.allclose(cooled[0], [0.25, 305.0])


def test_fewer_equations_leave_the_nearest_values():
    chain = daedal.ODE(lambda t, y: [y[1] - y[0], y[0] - y[1]], 2)  # every point with y0 = y1 is steady
    y, _ = daedal.consistent_initial(chain, 0.0, ([1.0, 2.0], None), equations="steady")
    assert np.isclose(y[0], y[1]) and 1.0 < y[0] < 2.0


def test_contradictions_are_named():
    with pytest.raises(daedal.InconsistentInitialError, match=r"contradict each other .*equations\[2\]"):
        daedal.consistent_initial(REACTOR, 0.0, ([0.5, 350.0], None), equations=["steady", {"c": 0.5}])


@pytest.mark.parametrize(
    ("equations", "message"),
    [
        ("stead", "known: 'steady'"),
        ({"q": 1.0}, "no variable 'q'"),
        ({"c": np.nan}, r"equations\['c'\]"),
        (3.0, "equations must be"),
        ([], "equations must be"),
        (lambda t, y: None, "equations returned"),
        (lambda t, y: np.nan * y[0], "equations: number 0 is nan"),
    ],
)
def test_mistakes(equations, message):
    with pytest.raises(daedal.InvalidProblemError, match=message):
        daedal.consistent_initial(REACTOR, 0.0, ([0.5, 350.0], None), equations=equations)


def test_fixed_values_and_sizes_are_checked():
    with pytest.raises(daedal.InvalidProblemError, match="Remedy: use equations='steady'"):
        daedal.consistent_initial(REACTOR, 0.0, ([0.5, 350.0], None), fixed="derivative", equations="steady")
    for initial in (([0.3, -0.9, 0.0], None), ([0.3, -0.9], [0.0])):
        with pytest.raises(daedal.InvalidProblemError, match=r"[qv]0"):
            daedal.consistent_initial(PENDULUM, 0.0, initial, equations="steady")
    by_mask, _ = daedal.consistent_initial(
        REACTOR, 0.0, ([0.6, 320.0], None), fixed=[True, False], equations={"T'": 0.0}
    )
    by_name, _ = daedal.consistent_initial(REACTOR, 0.0, ([0.6, 320.0], None), fixed=["c"], equations={"T'": 0.0})
    assert np.array_equal(by_mask, by_name)


def test_exceptions_of_the_user_arrive():
    def raising(t, y):
        raise RuntimeError("mine")

    with pytest.raises(RuntimeError, match="mine"):
        daedal.consistent_initial(REACTOR, 0.0, ([0.5, 350.0], None), equations=raising)
    opaque = daedal.ODE(lambda t, y: np.linalg.eigvals([[y[0]]]), 1)
    with pytest.raises(daedal.InvalidProblemError, match="can be traced"):
        daedal.consistent_initial(opaque, 0.0, ([0.5], None), equations="steady")
