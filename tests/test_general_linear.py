"""General linear methods: coefficients, stability, and orders on DAEs by class of variable; corrected multipliers."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import daedal
from daedal.studies import GeneralLinearMethod

BDF3 = GeneralLinearMethod.from_multistep(daedal.methods.coefficients("bdf3"))
RADAU = GeneralLinearMethod.from_runge_kutta(daedal.methods.coefficients("radau_iia2"))
TWO_STEP = GeneralLinearMethod.collocation([1 / 3, 1.0], steps=2)
THREE = GeneralLinearMethod.collocation([0.4, 1.0], steps=3)


def observed(problem, method, exact, steps=(20, 40)):
    """The order of the first variable at t = 1."""
    errors = [
        np.abs(daedal.studies.general_linear(problem, method, (0.0, 1.0), n, exact).y[:, -1] - exact(1.0))
        for n in steps
    ]
    return np.log2(errors[0][0] / errors[1][0])


# --- coefficients ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "order", "stage_order"), [(BDF3, 3, 3), (RADAU, 3, 2), (TWO_STEP, 3, 3), (THREE, 4, 4)]
)
def test_orders_of_coefficients(method, order, stage_order):
    assert (method.order, method.stage_order) == (order, stage_order)
    assert method.zero_stable and method.stiffly_accurate and method.strictly_stable_at_infinity


def test_collocation_with_one_step_is_radau_iia():
    method = GeneralLinearMethod.collocation([1 / 3, 1.0])
    for name in ("A", "B", "A_stages", "B_stages"):
        np.testing.assert_allclose(getattr(method, name), getattr(RADAU, name), atol=1e-14)


@given(st.integers(1, 3), st.lists(st.floats(0.05, 0.95), min_size=1, max_size=3, unique_by=lambda x: round(x, 1)))
def test_collocation_has_stage_order_s_plus_k_minus_1(k, inner):
    method = GeneralLinearMethod.collocation([*inner, 1.0], steps=k)
    assert method.stage_order >= len(inner) + k and method.stiffly_accurate


def test_stability_matrix_of_runge_kutta_is_its_stability_function():
    z = -0.7 + 0.3j
    expected = (1.0 + z / 3.0) / (1.0 - 2.0 * z / 3.0 + z * z / 6.0)
    np.testing.assert_allclose(RADAU.stability_matrix(z), [[expected]], rtol=1e-13)
    np.testing.assert_allclose(RADAU.stability_matrix(np.inf), [[0.0]], atol=1e-13)


def test_eigenvalues_of_multistep_are_the_roots_of_rho_minus_z_sigma():
    z = -0.5
    rho = np.array([11 / 6, -3.0, 1.5, -1 / 3]) - z * np.array([1.0, 0.0, 0.0, 0.0])
    values = np.linalg.eigvals(BDF3.stability_matrix(z))
    np.testing.assert_allclose(np.sort_complex(values), np.sort_complex(np.roots(rho)), atol=1e-12)


def test_adams_method_is_a_general_linear_method_that_daes_do_not_admit():
    method = GeneralLinearMethod.from_multistep(daedal.methods.coefficients("adams_moulton2"))
    assert method.order == 3 and not method.regular and method.predicted(1) is None
    ode = daedal.ImplicitDAE(lambda t, y, yp: [yp[0] + y[0]], 1)
    assert observed(ode, method, lambda t: np.exp([-t])) == pytest.approx(3.0, abs=0.2)


def test_unstable_methods_are_told():
    method = GeneralLinearMethod.from_multistep(daedal.methods.coefficients("bdf7"))
    assert not method.zero_stable and method.predicted(2) is None


def test_second_order_form_is_that_of_the_thesis():
    """(A.18): A = B = E = 1, D = b A, F = b, and c, A^2 in the stages."""
    form = RADAU.second_order()
    A, b, c = RADAU.B_stages, RADAU.B, RADAU.c[:, None]
    expected = {"a": 1.0, "b": 1.0, "d": b @ A, "e": 1.0, "f": b, "a_stages": 1.0, "b_stages": c, "d_stages": A @ A}
    for name, value in expected.items():
        np.testing.assert_allclose(form[name], np.broadcast_to(value, form[name].shape), atol=1e-14)


# --- orders on DAEs ---------------------------------------------------------------------------------------------------

INDEX_1 = daedal.ImplicitDAE(
    lambda t, y, yp: [yp[0] - y[1] - y[0], np.sinh(y[1]) - np.sinh(math.cos(t) - math.sin(t))], 2
)


def pendulum(t, y, yp):
    """Arevalo and Loetstedt's particle: y = (sin t^2, cos t^2), index 3."""
    return [yp[0] - y[2], yp[1] - y[3], yp[2] - 2 * y[1] - y[4] * y[0], yp[3] + 2 * y[0] - y[4] * y[1],
            y[0] ** 2 + y[1] ** 2 - 1.0]  # fmt: skip


def particle(t):
    s, c = math.sin(t * t), math.cos(t * t)
    return np.array([s, c, 2 * t * c, -2 * t * s, -4 * t * t])


def hessenberg_2(t, y, yp):
    """u' = w u^2 ..., constraint on u: exact (sin t + 2, cos t)."""
    u = np.sin(t) + 2.0
    return [yp[0] - y[1] * (y[0] / u) ** 2, y[0] ** 2 - u**2]


@pytest.mark.parametrize("method", [BDF3, RADAU, TWO_STEP, THREE], ids=lambda method: method.name)
def test_orders_on_index_1_are_the_predicted_ones(method):
    found = observed(INDEX_1, method, lambda t: np.array([math.sin(t), math.cos(t) - math.sin(t)]))
    assert found == pytest.approx(method.predicted(1)[0], abs=0.35)


@pytest.mark.parametrize("method", [BDF3, RADAU, TWO_STEP, THREE], ids=lambda method: method.name)
def test_orders_on_index_2_are_the_predicted_ones(method):
    problem = daedal.ImplicitDAE(hessenberg_2, 2)
    errors = []
    for steps in (20, 40):
        run = daedal.studies.general_linear(
            problem, method, (0.0, 1.0), steps, lambda t: [math.sin(t) + 2.0, math.cos(t)]
        )
        errors.append(np.abs(run.y[1, steps // 2 :] - np.cos(run.t[steps // 2 :])).max())
    assert math.log2(errors[0] / errors[1]) == pytest.approx(method.predicted(2)[1], abs=0.35)


@pytest.mark.parametrize("method", [BDF3, TWO_STEP], ids=lambda method: method.name)
def test_orders_on_index_3_reach_the_predicted_ones(method):
    """q in positions and velocities, q - 1 or more in the multiplier."""
    problem = daedal.ImplicitDAE(pendulum, 5)
    errors = []
    for steps in (40, 80):
        run = daedal.studies.general_linear(problem, method, (1.0, 1.5), steps, particle)
        errors.append(np.abs(run.y[:, -1] - particle(1.5)))
    found = np.log2([errors[0][part].max() / errors[1][part].max() for part in ([0, 1], [2, 3], [4])])
    assert np.all(found > np.array(method.predicted(3)) - 0.35)


def test_stages_that_cannot_be_computed_end_the_run():
    problem = daedal.ImplicitDAE(lambda t, y, yp: [y[0] - t, y[0] - t], 2)
    with pytest.raises(daedal.IntegrationError, match="the stages failed in the step from t = 0"):
        daedal.studies.general_linear(problem, RADAU, (0.0, 1.0), 4, lambda t: [t, 0.0])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"A": [[1.0, 2.0]]}, r"A must be finite and have the shape \(1, 1\)"),
        ({"B_stages": [[np.nan, 0.0], [0.0, 1.0]]}, "B_stages must be finite"),
        ({"d": [1.0]}, "d must start with 0"),
    ],
)
def test_wrong_coefficients_are_refused(change, message):
    given_ = {name: getattr(RADAU, name) for name in ("A", "B", "A_stages", "B_stages", "c", "d")}
    with pytest.raises(daedal.InvalidProblemError, match=message):
        GeneralLinearMethod(**(given_ | change))


# --- the correction of Arevalo and Loetstedt ------------------------------------------------------------------------

PARTICLE = daedal.MechanicalSystem(
    lambda t, q: np.eye(2),
    lambda t, q, v: [2.0 * q[1], -2.0 * q[0]],
    lambda t, q: [0.5 * (q[0] ** 2 + q[1] ** 2 - 1.0)],
    n_q=2,
    n_constraints=1,
)


def implicit_euler(steps):
    """The particle from t = 1 on: positions, velocities and multipliers (of -G^T lambda) as implicit Euler has them."""
    t = 1.0 + np.r_[0.0, np.cumsum(steps)]
    y = particle(1.0)[:4]
    states, lam = [y], [np.nan]
    for h in steps:
        x = np.append(y, -4.0)
        for _ in range(20):  # Newton's method
            q, v, force = x[:2], x[2:4], x[4]
            r = np.r_[q - y[:2] - h * v, v - y[2:] - h * (2.0 * q[[1, 0]] * [1, -1] + force * q), 0.5 * (q @ q - 1.0)]
            J = np.zeros((5, 5))
            J[:2, :2], J[:2, 2:4] = np.eye(2), -h * np.eye(2)
            J[2:4, :2] = -h * (np.array([[0.0, 2.0], [-2.0, 0.0]]) + force * np.eye(2))
            J[2:4, 2:4], J[2:4, 4], J[4, :2] = np.eye(2), -h * q, q
            x = x - np.linalg.solve(J, r)
        y = x[:4]
        states.append(y)
        lam.append(-x[4])
    states = np.array(states).T
    return t, states[:2], states[2:], np.array(lam)


def test_correction_repairs_the_multipliers_of_table_2_3():
    """Steps 1, 1, 0.2, 0.04, 0.008 times 1e-3: errors of 2.0, 0.008, 8.0 and 8.0 are printed without correction."""
    t, q, v, lam = implicit_euler(1e-3 * np.array([1.0, 1.0, 0.2, 0.04, 0.008, 0.008]))
    printed = [2.0080, 0.0080, 8.0303, 8.0348, 8.0357, 0.0001]
    np.testing.assert_allclose(np.abs(lam[1:] - 4.0 * t[1:] ** 2), printed, atol=6e-4)
    corrected = daedal.studies.corrected_multipliers(PARTICLE, t, q, v)[0]
    assert np.abs(corrected[1:] - 4.0 * t[1:] ** 2).max() < 0.02


def test_corrected_multipliers_have_order_1_on_alternating_steps():
    errors = []
    for n in (40, 80):
        t, q, v, lam = implicit_euler(np.tile([2.0, 1.0], n // 2) / (3.0 * n))
        corrected = daedal.studies.corrected_multipliers(PARTICLE, t, q, v)[0]
        errors.append([np.abs(x[1:] - 4.0 * t[1:] ** 2).max() for x in (lam, corrected)])
    orders = np.log2(np.array(errors[0]) / errors[1])
    assert abs(orders[0]) < 0.2 and orders[1] == pytest.approx(1.0, abs=0.15)


@pytest.mark.parametrize("order", [1, 2, 3])
def test_correction_has_its_order_on_exact_positions(order):
    errors = []
    for n in (20, 40):
        t = 1.0 + np.r_[0.0, np.cumsum(np.tile([1.5, 0.5], n // 2))] / n
        states = np.array([particle(x) for x in t]).T
        found = daedal.studies.corrected_multipliers(PARTICLE, t, states[:2], states[2:4], order=order)[0]
        errors.append(np.abs(found - 4.0 * t**2)[-1])
    assert math.log2(errors[0] / errors[1]) == pytest.approx(order, abs=0.4)


def test_correction_refuses_wrong_shapes():
    with pytest.raises(daedal.InvalidProblemError, match=r"q must have the shape \(2, 3\)"):
        daedal.studies.corrected_multipliers(PARTICLE, [0.0, 0.1, 0.2], np.zeros((3, 3)), np.zeros((2, 3)))
    with pytest.raises(daedal.InvalidProblemError, match="strictly monotone"):
        daedal.studies.corrected_multipliers(PARTICLE, [0.0, 0.0], np.zeros((2, 2)), np.zeros((2, 2)))
