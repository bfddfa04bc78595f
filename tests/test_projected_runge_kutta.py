"""Implicit Runge-Kutta methods for constrained problems: projection for index 2, index 3, mechanisms, second order."""

import math

import numpy as np
import pytest

import daedal
from daedal import ImplicitDAE, InvalidProblemError, SemiExplicitDAE
from daedal.methods import Collocation, ImplicitRungeKutta

# --- index 2: projection ----------------------------------------------------------------------------------------------

JAY = SemiExplicitDAE(
    lambda t, y, z: [y[0] * y[1] ** 2 * z[0] ** 2, y[0] ** 2 * y[1] ** 2 - 3.0 * y[1] ** 2 * z[0]],
    lambda t, y, z: [y[0] ** 2 * y[1] - 1.0],
    2,
    1,
)


def jay_errors(name, steps, projection="always"):
    """Of y and z at the end; y = (exp t, exp -2t), z = exp 2t."""
    method = ImplicitRungeKutta(name, projection=projection)
    sol = daedal.solve(JAY, (0.0, 0.5), (np.ones(2), np.ones(1)), method=method, fixed_step=0.5 / steps)
    error = np.abs(sol.y[:, -1] - np.exp([0.5, -1.0, 1.0]))
    return error[:2].max(), error[2]


@pytest.mark.parametrize(
    ("name", "steps", "order_y", "order_z"),
    [
        ("implicit_midpoint", 64, 2, 1),
        ("gauss2", 32, 4, 2),
        ("gauss3", 8, 6, 3),
        ("radau_ia3", 64, 4, 2),
        ("sirk3", 64, 3, 2),
        ("radau3", 32, 3, 2),
        ("radau5", 16, 5, 3),
    ],
)
def test_projected_methods_are_superconvergent(name, steps, order_y, order_z):
    """2s for Gauss (Ascher and Petzold 1991), and the orders that stiffly accurate methods have anyhow."""
    coarse, fine = jay_errors(name, steps), jay_errors(name, 2 * steps)
    orders = np.log2(np.divide(coarse, fine))
    assert np.all(np.abs(orders - [order_y, order_z]) < [0.45, 0.35]), orders


def test_without_projection_gauss_loses_its_order():
    coarse, fine = (jay_errors("gauss2", steps, "never") for steps in (32, 64))
    assert abs(math.log2(coarse[0] / fine[0]) - 2.0) < 0.1 and fine[1] > 0.9 * coarse[1] > 0.1


def test_projection_leaves_methods_alone_that_end_on_the_constraints():
    for name in ("radau5", "sirk2"):
        np.testing.assert_allclose(jay_errors(name, 8), jay_errors(name, 8, "never"), rtol=1e-5)


def test_projected_methods_are_explicit_where_the_constraint_forces_turn_fast():
    """Ascher and Petzold 1993, Example 2, as it stands for nu = 100 and 1000, and after reformulation, their (4.7)."""

    def errors(nu, formulation):
        model = daedal.library.get("stability_example2", nu=nu)
        found = []
        for name in ("implicit_midpoint", "gauss2", "radau3", "backward_euler"):
            method = ImplicitRungeKutta(name, projection="always")
            sol = daedal.solve(
                model.problem, (0.0, 1.0), model.initial, method=method, formulation=formulation, fixed_step=0.01
            )
            found.append(np.max(np.abs(sol.y[:, -1] - model.extra["exact"](1.0)[0])))
        return found

    np.testing.assert_allclose(errors(100.0, "index2"), [9.49e-5, 5.83e-9, 1.28e-7, 1.382e-4], rtol=2e-3)
    np.testing.assert_allclose(errors(1000.0, "index2"), [2.1e121, 1.9e61, 3.2e10, 9.2e73], rtol=0.05)
    np.testing.assert_allclose(
        errors(1000.0, "projected_invariants"), [3.396e-5, 6.184e-8, 1.880e-8, 1.355e-5], rtol=1e-3
    )


def test_projected_gauss_with_variable_steps():
    errors = []
    for rtol in (1e-5, 1e-7, 1e-9):
        method = ImplicitRungeKutta("gauss3", projection="always")
        sol = daedal.solve(JAY, (0.0, 1.0), (np.ones(2), np.ones(1)), method=method, rtol=rtol, atol=rtol)
        errors.append(np.max(np.abs(sol.y[:2] - np.exp(np.outer([1.0, -2.0], sol.t)))))
        assert sol.success and errors[-1] < 10.0 * rtol and sol.drift["constraint"] < 1e-12
    assert errors[2] < 1e-2 * errors[0]


def test_a_pendulum_of_index_2_over_many_periods():
    """Positions drift where only the velocity constraint is stated; the projected method keeps it to round-off."""
    for method in (ImplicitRungeKutta("radau5"), ImplicitRungeKutta("gauss3", projection="always")):
        sol = daedal.solve(
            SemiExplicitDAE(
                lambda t, y, z: [y[2], y[3], -y[0] * z[0], -y[1] * z[0] - 9.81],
                lambda t, y, z: [y[0] * y[2] + y[1] * y[3]],
                4,
                1,
            ),
            (0.0, 10.0),
            ([1.0, 0.0, 0.0, 0.0], None),
            method=method,
            rtol=1e-8,
            atol=1e-8,
        )
        energy = 0.5 * (sol.y[2] ** 2 + sol.y[3] ** 2) + 9.81 * sol.y[1]
        assert np.max(np.abs(energy)) < 1e-4 and sol.drift["constraint"] < 1e-9


@pytest.mark.parametrize("name", ["radau5", "lobatto_iiic4"])
def test_a_pendulum_of_index_3_from_rest_with_default_tolerances(name):
    """The multiplier begins with 0 and is known to round-off / h^2, far more than atol."""
    problem = ImplicitDAE(
        lambda t, y, yp: [
            yp[0] - y[2],
            yp[1] - y[3],
            yp[2] + y[4] * y[0],
            yp[3] + y[4] * y[1] + 9.81,
            y[0] ** 2 + y[1] ** 2 - 1.0,
        ],
        5,
    )
    start = [1.0, 0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, -9.81, 0.0]
    sol = daedal.solve(problem, (0.0, 5.0), start, method=ImplicitRungeKutta(name), rtol=1e-4)
    energy = 0.5 * (sol.y[2] ** 2 + sol.y[3] ** 2) + 9.81 * sol.y[1]
    assert sol.success and np.max(np.abs(energy)) < 1e-3


# --- second order -----------------------------------------------------------------------------------------------------


PENDULUM_MODEL = daedal.library.get("planar_pendulum")
PENDULUM = daedal.solve(PENDULUM_MODEL.problem, (0.0, 2.0), PENDULUM_MODEL.initial, rtol=1e-12, atol=1e-12)


def test_second_order_problems_go_to_collocation_where_the_coefficients_are_its_own():
    model = daedal.library.get("body_on_circle")
    for name, method in (("radau5", Collocation("radau", 3)), ("gauss2", Collocation("gauss", 2))):
        own, other = (
            daedal.solve(model.problem, (0.0, 1.0), model.initial, method=m, fixed_step=0.02)
            for m in (ImplicitRungeKutta(name), method)
        )
        assert np.array_equal(own.x, other.x) and own.method == other.method
    method = ImplicitRungeKutta("lobatto_iiic3")
    sol = daedal.solve(model.problem, (0.0, 1.0), model.initial, method=method, rtol=1e-6, atol=1e-8)
    assert sol.method.startswith("ImplicitRungeKutta, Lobatto IIIC")
    np.testing.assert_allclose(sol.x[:2, -1], [np.sin(1.0), np.cos(1.0)], atol=1e-6)


@pytest.mark.parametrize("formulation", ["ggl", "index2", "index1", "baumgarte", "projected_invariants"])
@pytest.mark.parametrize("name", ["radau5", "gauss2", "lobatto_iiic3"])
def test_first_order_formulations_of_a_mechanism(name, formulation):
    sol = daedal.solve(
        PENDULUM_MODEL.problem,
        (0.0, 2.0),
        PENDULUM_MODEL.initial,
        method=ImplicitRungeKutta(name),
        formulation=formulation,
        rtol=1e-6,
        atol=1e-6,
    )
    np.testing.assert_allclose(sol.q[:, -1], PENDULUM.q[:, -1], atol=1e-5)
    np.testing.assert_allclose(sol.lam[:, -1], PENDULUM.lam[:, -1], atol=1e-5)


def test_mechanisms_as_they_stand_go_to_collocation_as_well():
    own, other = (
        daedal.solve(
            PENDULUM_MODEL.problem, (0.0, 2.0), PENDULUM_MODEL.initial, method=method, formulation="index3", rtol=1e-6
        )
        for method in (ImplicitRungeKutta("gauss2"), Collocation("gauss", 2))
    )
    assert np.array_equal(own.q, other.q) and own.method == other.method


# --- what is refused -------------------------------------------------------------------------------------------------


def test_projection_is_for_index_2_in_hessenberg_form():
    decay = ImplicitDAE(lambda t, y, yp: [yp[0] + y[0]], 1)
    with pytest.raises(InvalidProblemError, match="index 2 in Hessenberg form"):
        daedal.solve(decay, (0.0, 1.0), ([1.0], [-1.0]), method=ImplicitRungeKutta("gauss2", projection="always"))
    index_1 = SemiExplicitDAE(lambda t, y, z: [-z[0]], lambda t, y, z: [z[0] - y[0]], 1, 1)
    with pytest.raises(InvalidProblemError, match="use projection='never'"):
        daedal.solve(index_1, (0.0, 1.0), ([1.0], None), method=ImplicitRungeKutta("gauss2", projection="always"))


def test_variable_steps_of_methods_that_need_not_converge_are_refused():
    with pytest.raises(InvalidProblemError, match=r"Gauss, 2 stages.*index 2.*projection='always'"):
        daedal.solve(JAY, (0.0, 0.5), (np.ones(2), np.ones(1)), method=ImplicitRungeKutta("gauss2"))


def test_projected_runs_go_backward_in_time_and_give_the_same_bits_again():
    method = ImplicitRungeKutta("gauss3", projection="always")
    runs = [daedal.solve(JAY, (0.5, 0.0), (np.exp([0.5, -1.0]), np.exp([1.0])), method=method) for _ in range(2)]
    assert np.array_equal(runs[0].y, runs[1].y)
    np.testing.assert_allclose(runs[0].y[:2, -1], 1.0, atol=1e-4)
