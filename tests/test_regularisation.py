"""Problems with a small parameter: how far their solutions are from those of the problem."""

import numpy as np
import pytest
from scipy.sparse import csc_array

import daedal


def chain(index):
    """y_1 = sin t, y_{k+1} = y_k': a nilpotent pencil of that index."""

    def residual(t, y, yp):
        return [y[0] - np.sin(t), *(yp[k] - y[k + 1] for k in range(index - 1))]

    def jacobian(t, y, yp, cj):
        matrix = np.zeros((index, index))
        matrix[0, 0] = 1.0
        for k in range(index - 1):
            matrix[k + 1, k], matrix[k + 1, k + 1] = cj, -1.0
        return matrix

    return daedal.ImplicitDAE(residual, index, jacobian=jacobian)


def waves(t, index):
    return np.array([np.sin(t + 0.5 * np.pi * k) for k in range(index)])


@pytest.mark.parametrize("index", [1, 2, 3])
def test_pencil_regularisation_converges_for_any_index(index):
    errors = []
    for epsilon in (1e-2, 1e-3):
        near = daedal.formulations.regularise(chain(index), epsilon)
        sol = daedal.solve(near, (0.0, 1.0), (waves(0.0, index), None), rtol=1e-9, atol=1e-11)
        errors.append(np.abs(sol.y[:, -1] - waves(1.0, index)).max())
    assert np.log10(errors[0] / errors[1]) == pytest.approx(1.0, abs=0.05)


def test_regularised_pencil_is_a_plus_epsilon_b():
    """(A + epsilon B) y' + B y = f, and its Jacobian."""
    rng = np.random.default_rng(0)
    A, B = rng.normal(size=(2, 3, 3))
    problem = daedal.ImplicitDAE(lambda t, y, yp: A @ yp + B @ y, 3, jacobian=lambda t, y, yp, cj: B + cj * A)
    near = daedal.formulations.regularise(problem, 0.1)
    y, yp, cj = rng.normal(size=3), rng.normal(size=3), 2.0
    np.testing.assert_allclose(near.evaluate(0.0, y, yp), (A + 0.1 * B) @ yp + B @ y, atol=1e-14)
    np.testing.assert_allclose(near.jacobian(0.0, y, yp, cj), B + cj * (A + 0.1 * B), atol=1e-14)


def circle(**options):
    """x' = f(x) - g_x mu, g = (|x|^2 - 1)/2 with an oscillator, BCP (3.3.15): g_x f_mu = -|x|^2."""
    return daedal.SemiExplicitDAE(
        lambda t, y, z: [y[1] - 0.3 * z[0] * y[0], -y[0] - 0.3 * z[0] * y[1]],
        lambda t, y, z: [0.5 * (y[0] ** 2 + y[1] ** 2 - (1.0 + 0.2 * np.sin(t)))],
        2,
        1,
        **options,
    )


def test_penalty_violates_the_constraint_by_epsilon_z():
    errors = []
    for epsilon in (1e-2, 1e-3):
        near = daedal.formulations.regularise(circle(), epsilon, by="penalty")
        sol = daedal.solve(near, (0.0, 2.0), ([1.0, 0.0], None), rtol=1e-9, atol=1e-11)
        end, z = sol.y[:2, -1], sol.z[0, -1]
        g = 0.5 * (end @ end - (1.0 + 0.2 * np.sin(2.0)))
        assert g == pytest.approx(epsilon * z, rel=1e-5)
        errors.append(abs(g))
    assert np.log10(errors[0] / errors[1]) == pytest.approx(1.0, abs=0.05)


def test_penalty_of_the_wrong_sign_is_unstable():
    near = daedal.formulations.regularise(circle(), 0.05, by="penalty", sign=-1)
    try:
        sol = daedal.solve(near, (0.0, 2.0), ([1.0, 0.0], None), rtol=1e-6, atol=1e-8)
    except daedal.IntegrationError as error:
        sol = error.solution
    assert np.abs(sol.z).max() > 10.0


def test_penalty_keeps_jacobian_and_sparsity():
    def jacobian(t, x, xp, cj):
        return np.array([[cj + 0.3 * x[2], -1.0, 0.3 * x[0]], [1.0, cj + 0.3 * x[2], 0.3 * x[1]], [x[0], x[1], 0.0]])

    near = daedal.formulations.regularise(circle(jacobian=jacobian), 0.1, by="penalty")
    x = np.array([0.6, 0.8, 0.5])
    expected = jacobian(0.0, x, x, 2.0) + np.diag([0.0, 0.0, -0.1])
    np.testing.assert_allclose(near.jacobian(0.0, x, x, 2.0), expected)
    pattern = csc_array(np.array([[1.0, 1.0, 1.0], [1.0, 1.0, 1.0], [1.0, 1.0, 0.0]]))
    sparse = circle(jacobian=lambda t, x, xp, cj: csc_array(jacobian(t, x, xp, cj)), sparsity=pattern)
    near = daedal.formulations.regularise(sparse, 0.1, by="penalty")
    assert near.sparsity.nnz == 9
    np.testing.assert_allclose(near.jacobian(0.0, x, x, 2.0).toarray(), expected)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((chain(2), -1.0), "epsilon"),
        ((chain(2), 0.1, "spring"), "'pencil', 'penalty'"),
        ((chain(2), 0.1, "penalty"), "SemiExplicitDAE"),
        ((circle(), 0.1, "penalty", 2), "sign must be 1 or -1"),
        ((daedal.library.get("crank_slider").problem, 0.1), "Knorrenschild"),
    ],
)
def test_wrong_arguments_are_refused(arguments, message):
    with pytest.raises(daedal.InvalidProblemError, match=message):
        daedal.formulations.regularise(*arguments)
