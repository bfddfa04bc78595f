"""Contact coordinates: elimination of s, for plain and compiled functions."""

import math
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import daedal
from daedal.mechanics.contact import contact_coordinates, solve_small, without_contact

# A point above the curve (s, cos s): h says that the normal at s goes through the point, g that it lies on the curve.


def foot(t, q, s, p):
    h = np.empty(1, s.dtype)
    h[0] = (q[0] - s[0]) - (q[1] - p[0] * np.cos(s[0])) * p[0] * np.sin(s[0])
    return h


def distance(t, q, s, p):
    g = np.empty(1, s.dtype)
    g[0] = (q[1] - p[0] * np.cos(s[0])) * np.cos(p[1] * t) - (q[0] - s[0]) * 0.3
    return g


def weight(t, q, v, r, s, p):
    return np.array([r[0], -9.81 + s[0]])


def lag(t, q, v, r, s, p):
    return np.array([s[0] - r[0]])


def near(t, q, p):
    return 0.9 * q[:1]


def on_curve(**changes):
    data = dict(
        n_q=2,
        n_constraints=1,
        contact=foot,
        n_s=1,
        contact_guess=near,
        state_rate=lag,
        n_r=1,
        params=np.array([0.5, 0.2]),
    )
    return daedal.MechanicalSystem(np.array([1.0, 2.0]), weight, distance, **(data | changes))


def derivatives(t, q, p):
    """s, and G = g_q - g_s h_s^-1 h_q by hand."""
    s = contact_coordinates(on_curve(), t, q)[0]
    height, slope, c = q[1] - p[0] * math.cos(s), p[0] * math.sin(s), math.cos(p[1] * t)
    h_q = np.array([1.0, -slope])
    h_s = -1.0 - slope * slope - height * p[0] * math.cos(s)
    g_q, g_s = np.array([-0.3, c]), slope * c + 0.3
    return s, g_q - g_s / h_s * h_q


@pytest.mark.slow
@given(x=st.floats(-1.0, 1.0), y=st.floats(0.3, 1.0), t=st.floats(0.0, 3.0))
def test_the_gradient_accounts_for_the_contact_coordinate(x, y, t):
    q, p = np.array([x, y]), np.array([0.5, 0.2])
    system = on_curve()
    s, G = derivatives(t, q, p)
    assert abs(foot(t, q, np.array([s]), p)[0]) < 1e-15
    point = system.at(t, q, [0.4, -0.2], r=[0.1])
    np.testing.assert_allclose(point.jacobian[0], G, rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(point.force, [0.1, -9.81 + s])
    np.testing.assert_allclose(point.rate, [s - 0.1])


@pytest.mark.soak  # the functions of test_a_mixture_of_compiled_and_plain_functions_works, all of them
def test_compiled_and_plain_functions_agree():
    plain, compiled = on_curve(), on_curve().compiled("numba")
    t, q, v = 0.3, [0.4, 0.7], [1.0, -0.5]
    a, b = (system.at(t, q, v, r=[0.2]) for system in (plain, compiled))
    for name in ("constraint", "jacobian", "velocity", "bias", "force", "acceleration", "multipliers", "rate"):
        np.testing.assert_allclose(getattr(a, name), getattr(b, name), rtol=1e-7, atol=1e-9, err_msg=name)
    inner = without_contact(compiled)
    assert hasattr(inner.constraint, "signatures") and hasattr(inner.force, "signatures")
    np.testing.assert_allclose(b.jacobian[0], derivatives(t, q, plain.params)[1], rtol=1e-13)  # complex step


def test_a_mixture_of_compiled_and_plain_functions_works():
    import numba

    mixed = on_curve(contact=numba.njit(foot))
    np.testing.assert_allclose(
        mixed.at(0.0, [0.4, 0.7], r=[0.0]).force[1], -9.81 + derivatives(0.0, [0.4, 0.7], mixed.params)[0]
    )


def test_the_reduced_system_is_made_once_and_not_pickled():
    system = plain_track()
    assert without_contact(system) is without_contact(system)
    assert without_contact(without_contact(system)) is without_contact(system)
    assert "_without_contact" not in system.__getstate__()
    again = pickle.loads(pickle.dumps(on_curve()))
    assert contact_coordinates(again, 0.0, [0.4, 0.7]) == contact_coordinates(on_curve(), 0.0, [0.4, 0.7])


def plain_track(**changes):
    data = dict(n_q=2, n_constraints=1, contact=lambda t, q, s: [s[0] ** 3 + s[0] - q[0]], n_s=1)
    data |= changes
    return daedal.MechanicalSystem(
        1.0, data.pop("force", lambda t, q, v, s: [0.0, -9.81]), lambda t, q, s: [q[1] - s[0] ** 2], **data
    )


@given(x=st.floats(-1e6, 1e6))
def test_newton_reaches_round_off_from_afar(x):
    s = contact_coordinates(plain_track(), 0.0, [x, 0.0])[0]
    assert abs(s**3 + s - x) <= 1e-14 * abs(x) + 1e-300


def test_all_extra_variables_stand_in_their_order():
    seen = []

    def force(t, q, v, r, w, s, lam, p):
        seen.append((len(r), len(w), len(s), len(lam), p))
        return [r[0], w[0]]

    system = daedal.MechanicalSystem(
        1.0,
        force,
        lambda t, q, s, p: [q[1] - s[0]],
        n_q=2,
        n_constraints=1,
        contact=lambda t, q, s, p: [s[0] - p * q[0], s[1] + s[0]],
        n_s=2,
        contact_guess=[1.0, 1.0],
        state_rate=lambda t, q, v, r, w, s, lam, p: [s[1], w[0], 0.0],
        n_r=3,
        algebraic=lambda t, q, v, r, w, s, lam, p: [w[0] - 2.0 * s[0] - r[1]],
        n_w=1,
        force_uses_multipliers=True,
        params=3.0,
    )
    start = daedal.consistent_initial(system, 0.0, ([0.5, 1.5], [1.0, 3.0], [0.1, 0.2, 0.3]))
    assert set(seen) == {(3, 1, 2, 1, 3.0)}
    np.testing.assert_allclose(start.w, [3.2], rtol=1e-12)
    np.testing.assert_allclose(start.r_rate, [-1.5, 3.2, 0.0], rtol=1e-12)
    np.testing.assert_allclose(system.at(0.0, start.q).jacobian, [[-3.0, 1.0]], rtol=1e-10)


def test_given_derivatives_are_called_with_s():
    system = plain_track(
        constraint_jacobian=lambda t, q, s: [[-2.0 * s[0] / (3.0 * s[0] ** 2 + 1.0), 1.0]],
        constraint_t=lambda t, q, s: [0.0],
        acceleration_bias=lambda t, q, v, s: [(2.0 - 6.0 * s[0] ** 2) / (3.0 * s[0] ** 2 + 1.0) ** 3 * v[0] ** 2],
    )
    report = system.check(0.0, [2.0, 1.0], [1.0, 0.5])
    assert report.ok, report


def test_a_contact_without_solution_is_refused_and_gives_nan():
    system = plain_track(contact=lambda t, q, s: [s[0] ** 2 + 1.0 + q[0] ** 2])
    with pytest.raises(daedal.InconsistentInitialError, match="contact_guess"):
        contact_coordinates(system, 0.0, [0.0, 0.0])
    with pytest.raises(daedal.InconsistentInitialError, match="contact_guess"):
        daedal.consistent_initial(system, 0.0, ([0.0, 0.0], None))
    assert np.isnan(without_contact(system).constraint(0.0, np.zeros(2))).all()
    with pytest.raises(daedal.InconsistentInitialError, match="contact_guess"):
        contact_coordinates(plain_track(contact=lambda t, q, s: [math.nan]), 0.0, [0.0, 0.0])


def test_a_bad_guess_is_refused():
    with pytest.raises(daedal.InvalidProblemError, match="contact_guess"):
        contact_coordinates(plain_track(contact_guess=[1.0, 2.0]), 0.0, [0.0, 0.0])


@given(seed=st.integers(0, 200), n=st.integers(1, 6), is_complex=st.booleans())
def test_small_systems_are_solved(seed, n, is_complex):
    random = np.random.default_rng(seed)
    A, b = random.standard_normal((n, n)), random.standard_normal(n)
    if is_complex:
        A, b = A + 1j * random.standard_normal((n, n)), b + 0j
    x = b.copy()
    assert solve_small(A.copy(), x)
    np.testing.assert_allclose(A @ x, b, atol=1e-9 * np.max(np.abs(x)))
    assert not solve_small(np.zeros((n, n)), b)
