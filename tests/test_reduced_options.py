"""Options with a value for every unknown, where a problem is solved reduced to index 1."""

import numpy as np
import pytest

import daedal


def residual(t, y, yp):
    """A pendulum with a force across its rod that grows with the multiplier: index 3, no mechanism."""
    x, z, u, w, lam = y
    return [yp[0] - u, yp[1] - w, yp[2] + lam * (x + 0.1 * z), yp[3] + lam * z + 1.0, x**2 + z**2 - 1.0]


PROBLEM = daedal.ImplicitDAE(residual, 5, names=["x", "z", "u", "w", "lam"])
START = [0.6, -0.8, 0.0, 0.0, 0.0], None


def solve(**options):
    return daedal.solve(PROBLEM, (0.0, 0.5), START, rtol=1e-5, atol=1e-7, correct_initial=True, **options)


@pytest.mark.parametrize("given", [[False] * 4 + [True], [-1], ["lam"], [4]])
@pytest.mark.parametrize("as_object", [False, True])
def test_masks_have_the_length_of_the_users_unknowns(given, as_object):
    options = (
        {"method": daedal.methods.DASSL(nonnegative=given)} if as_object else {"method": "dassl", "nonnegative": given}
    )
    sol, plain = solve(**options), solve(method="dassl")
    assert "Solved by dummy derivatives in 7 unknowns" in sol.message
    np.testing.assert_array_equal(sol.y, plain.y)  # lam is positive


def test_a_variable_that_is_negative_is_the_one_that_was_named():
    with pytest.raises(daedal.InvalidProblemError, match=r"z = -0\.8 is negative at the start"):
        solve(method="dassl", nonnegative=[1])
    with pytest.raises(daedal.InvalidProblemError, match=r"nonnegative is a mask of shape \(7,\); expected \(5,\)"):
        solve(method="dassl", nonnegative=[False] * 7)


def test_error_tests_leave_out_what_they_are_told_to():
    steps = [solve(method="dassl", error_test=given).stats.steps for given in (["x", "z"], range(5))]
    assert steps[0] < steps[1] == solve(method="dassl").stats.steps
    with pytest.raises(daedal.InvalidProblemError, match=r"error_test is a mask of shape \(3,\); expected \(5,\)"):
        solve(method="dassl", error_test=[True] * 3)


@pytest.mark.parametrize("option", ["variable_index", "newton_weights", "row_scaling"])
def test_powers_of_the_step_size_are_for_the_problem_as_it_stands(option):
    with pytest.raises(daedal.InvalidProblemError, match=f"{option} scales by powers of the step size .* Omit "):
        solve(method="dassl", formulation="dummy_derivatives", **{option: [1] * 5})
    with pytest.raises(daedal.InvalidProblemError, match=rf"{option} has shape \(7,\); expected \(5,\)"):
        solve(method="dassl", **{option: [1] * 7})


def test_index_classes_are_used_as_they_were_given():
    sol = solve(method="radau", variable_index=[1, 1, 2, 2, 3])
    np.testing.assert_array_equal(sol.y, solve(method="radau", variable_index=[1, 1, 2, 2, 3], formulation="none").y)
    np.testing.assert_allclose(sol.y[:, -1], solve().y[:, -1], atol=1e-3)
