"""DOP853: its coefficients, its order with constant steps and between them, what it computes exactly.

Source: Hairer, Norsett and Wanner, Solving Ordinary Differential Equations I, sections II.5, II.6 and II.10.
"""

import numpy as np
import pytest

import daedal
from daedal import ODE, library
from daedal.analysis.order_conditions.trees import rooted_trees
from daedal.methods import DOP853
from daedal.methods.explicit.runge_kutta import _DOP853 as TABLEAU

STAGES = np.zeros((16, 16))
for _i, _row in enumerate(TABLEAU.a):
    STAGES[_i, : len(_row)] = _row


def padded(weights):
    return np.append(weights, np.zeros(16 - len(weights)))


def elementary_weight(tree):
    """The vector Phi of a rooted tree (HNW II.2): the product of A times those of its branches."""
    value = np.ones(16)
    for branch in tree.children:
        value = value * (STAGES @ elementary_weight(branch))
    return value


def defect(weights, order, theta=1.0):
    """Largest violation of the conditions of one order, for the value at theta h."""
    conditions = [(elementary_weight(tree), float(tree.right_side)) for tree in rooted_trees(order)]
    return max(abs(weights @ phi - theta**order * right) for phi, right in conditions)


def test_the_step_satisfies_all_conditions_up_to_order_8():
    np.testing.assert_allclose(STAGES.sum(axis=1), TABLEAU.c, atol=2e-14)
    assert sum(len(list(rooted_trees(p))) for p in range(1, 9)) == 200
    for p in range(1, 9):
        assert defect(padded(TABLEAU.b), p) < 2e-14
    assert defect(padded(TABLEAU.b), 9) > 1e-6


@pytest.mark.parametrize(("difference", "order"), [("e", 5), ("e3", 3)])
def test_embedded_methods(difference, order):
    weights = padded(np.array(TABLEAU.b) - np.array(getattr(TABLEAU, difference)))
    for p in range(1, order + 1):
        assert defect(weights, p) < 1e-14
    assert defect(weights, order + 1) > 1e-5


@pytest.mark.parametrize("theta", [0.15, 0.5, 0.9])
def test_dense_output_has_order_7(theta):
    for p in range(1, 8):
        assert defect(TABLEAU.inner(theta), p, theta) < 2e-13
    assert defect(TABLEAU.inner(theta), 8, theta) > 1e-8


def test_dense_output_joins_values_and_slopes():
    np.testing.assert_allclose(TABLEAU.inner(0.0), 0.0, atol=1e-15)
    np.testing.assert_allclose(TABLEAU.inner(1.0), padded(TABLEAU.b), atol=1e-13)
    small = 1e-7  # second derivatives of the weights are some hundreds
    np.testing.assert_allclose(TABLEAU.inner(small) / small, np.eye(16)[0], atol=1e-4)
    np.testing.assert_allclose((TABLEAU.inner(1.0) - TABLEAU.inner(1.0 - small)) / small, np.eye(16)[12], atol=1e-4)


RICCATI = ODE(lambda t, y: [y[0] * np.cos(t), -2.0 * t * y[1] ** 2], 2)  # exp(sin t), 1/(1 + t^2)


def exact(t):
    return np.array([np.exp(np.sin(t)), 1.0 / (1.0 + t * t)])


def test_order_8_by_halving_constant_steps():
    errors = []
    for h in (0.2, 0.1):
        sol = daedal.solve(RICCATI, (0.0, 2.0), exact(0.0), method="dop853", fixed_step=h)
        errors.append(np.abs(sol.y[:, -1] - exact(2.0)))
    assert np.all(np.log2(errors[0] / errors[1]) > 7.7)


def test_the_polynomial_of_a_step_errs_with_the_eighth_power_of_its_length():
    """Order 7: the local error is of order 8."""
    errors = []
    for h in (0.4, 0.2):
        sol = daedal.solve(RICCATI, (0.3, 0.3 + h), exact(0.3), method="dop853", fixed_step=h)
        times = 0.3 + h * np.linspace(0.05, 0.95, 19)
        errors.append(np.max(np.abs(sol(times) - exact(times))))
    assert 7.3 < np.log2(errors[0] / errors[1]) < 9.0


def test_polynomials_are_exact():
    """Of degree 8 at the end of a step, of degree 7 inside of it."""
    quadrature = ODE(lambda t, y: [8.0 * t**7, 7.0 * t**6], 2)
    sol = daedal.solve(quadrature, (1.0, 2.0), [1.0, 1.0], method="dop853", fixed_step=1.0)
    np.testing.assert_allclose(sol.y[:, -1], [256.0, 128.0], rtol=1e-14)
    times = np.linspace(1.0, 2.0, 11)
    np.testing.assert_allclose(sol(times)[1], times**7, rtol=1e-13)


def test_stages_for_dense_output_are_computed_where_they_are_used():
    """Twelve evaluations for a step; three more for each that an output time lies in."""

    def evaluations(**options):
        sol = daedal.solve(RICCATI, (0.0, 2.0), exact(0.0), method="dop853", fixed_step=0.1, **options)
        return sol.stats.residual_evaluations, sol.y[:, -1].tobytes()

    plain, at_end = evaluations(dense_output=False)
    some, _ = evaluations(dense_output=False, t_eval=[0.55, 1.02, 1.03, 1.5])
    dense, at_dense_end = evaluations(dense_output=True)
    events, _ = evaluations(dense_output=False, events=lambda t, y: y[0] - 1.5)
    assert some - plain == 2 * 3
    assert dense - plain == events - plain == 20 * 3
    assert at_end == at_dense_end


def test_errors_follow_the_tolerance():
    for rtol in (1e-6, 1e-9, 1e-12):
        sol = daedal.solve(RICCATI, (0.0, 6.0), exact(0.0), method="dop853", rtol=rtol, atol=rtol)
        assert np.max(np.abs(sol.y - exact(sol.t))) < 30.0 * rtol


def test_mechanisms_in_forms_that_are_ordinary():
    model = library.planar_pendulum(t1=10.0)
    steps = {}
    for method in ("dop853", "dopri5"):
        sol = daedal.solve(model.problem, model.t_span, model.initial, method=method, rtol=1e-10, atol=1e-10)
        assert np.max(np.abs(sol.y[:, -1] - model.extra["exact"](10.0))) < 1e-8
        assert sol.drift["position"] < 1e-9
        steps[method] = sol.stats.steps
    assert 4 * steps["dop853"] < steps["dopri5"]


def test_the_norm_is_checked():
    with pytest.raises(daedal.InvalidProblemError, match="norm must be one of"):
        DOP853(norm="l1")
