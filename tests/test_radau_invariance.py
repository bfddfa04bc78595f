"""What must not change a run of Radau IIA (units, order of unknowns, threads, output), and how it fails."""

import math
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import daedal
from daedal.methods import Radau

Y0, YP0 = np.array([1.0, 0.0, 0.0]), np.array([-0.04, 0.04, 0.0])
ATOL = np.array([1e-9, 1e-13, 1e-9])


def robertson(t, y, yp):
    back = 1e4 * y[1] * y[2]
    return np.array([yp[0] + 0.04 * y[0] - back, yp[1] - 0.04 * y[0] + back + 3e7 * y[1] ** 2, y.sum() - 1.0])


def jacobian(t, y, yp, cj):
    return np.array(
        [[cj + 0.04, -1e4 * y[2], -1e4 * y[1]], [-0.04, cj + 1e4 * y[2] + 6e7 * y[1], 1e4 * y[1]], [1.0, 1.0, 1.0]]
    )


def solve_robertson(**options):
    problem = daedal.ImplicitDAE(robertson, 3, jacobian=jacobian)
    return daedal.solve(problem, (0.0, 4e3), (Y0, YP0), **({"method": "radau", "rtol": 1e-6, "atol": ATOL} | options))


@settings(max_examples=10)
@given(st.lists(st.integers(-20, 20), min_size=3, max_size=3))
def test_units_of_the_unknowns_do_not_matter(exponents):
    s = 2.0 ** np.array(exponents)
    scaled = daedal.ImplicitDAE(
        lambda t, y, yp: robertson(t, y / s, yp / s),
        3,
        jacobian=lambda t, y, yp, cj: jacobian(t, y / s, yp / s, cj) / s,
    )
    sol = daedal.solve(scaled, (0.0, 4e3), (Y0 * s, YP0 * s), method="radau", rtol=1e-6, atol=ATOL * s)
    expected = solve_robertson()
    np.testing.assert_array_equal(sol.history.h, expected.history.h)
    np.testing.assert_array_equal(sol.y, expected.y * s[:, None])


@settings(max_examples=8)
@given(st.integers(-30, 30))
def test_unit_of_time_does_not_matter(exponent):
    s = 2.0**exponent
    scaled = daedal.ImplicitDAE(
        lambda t, y, yp: robertson(t / s, y, yp * s),
        3,
        jacobian=lambda t, y, yp, cj: jacobian(t / s, y, yp * s, cj * s),
    )
    sol = daedal.solve(scaled, (0.0, 4e3 * s), (Y0, YP0 / s), method="radau", rtol=1e-6, atol=ATOL)
    expected = solve_robertson()
    np.testing.assert_array_equal(sol.history.h, expected.history.h * s)
    np.testing.assert_array_equal(sol.y, expected.y)


@settings(max_examples=8)
@given(st.integers(-20, 20))
def test_unit_of_time_does_not_matter_for_variables_of_index_2(exponent):
    """Their errors count by h in units of the time in which the others change, not by h."""
    s = 2.0**exponent

    def problem(unit):
        return daedal.SemiExplicitDAE(
            lambda t, y, z: np.array([y[1] + (z[0] - 1.0) * y[0], -y[0] + (z[0] - 1.0) * y[1]]) / unit,
            lambda t, y, z: [y @ y - 1.0],
            2,
            1,
        )

    options = {"method": "radau", "rtol": 1e-6, "atol": 1e-6}
    sol = daedal.solve(problem(s), (0.0, 5.0 * s), ([0.6, 0.8], [1.0]), first_step=0.01 * s, **options)
    expected = daedal.solve(problem(1.0), (0.0, 5.0), ([0.6, 0.8], [1.0]), first_step=0.01, **options)
    np.testing.assert_allclose(sol.history.h, expected.history.h * s, rtol=1e-6)
    np.testing.assert_allclose(sol.y, expected.y, rtol=1e-8, atol=1e-8)


@settings(max_examples=6)
@given(st.permutations(range(3)), st.permutations(range(3)))
def test_order_of_unknowns_and_equations_matters_at_rounding_level_only(unknowns, equations):
    back = np.argsort(unknowns)
    permuted = daedal.ImplicitDAE(
        lambda t, y, yp: robertson(t, y[back], yp[back])[list(equations)],
        3,
        jacobian=lambda t, y, yp, cj: jacobian(t, y[back], yp[back], cj)[list(equations)][:, list(unknowns)],
    )
    p = list(unknowns)
    options = {"method": "radau", "rtol": 1e-5, "atol": (100.0 * ATOL)[p], "first_step": 1e-3}
    sol = daedal.solve(permuted, (0.0, 4e2), (Y0[p], YP0[p]), **options)
    expected = daedal.solve(
        daedal.ImplicitDAE(robertson, 3, jacobian=jacobian), (0.0, 4e2), (Y0, YP0), **(options | {"atol": 100.0 * ATOL})
    )
    np.testing.assert_allclose(sol.y[back, -1], expected.y[:, -1], rtol=1e-6)
    assert sol.stats.steps == expected.stats.steps


def test_backward_integration_is_forward_integration_of_the_mirrored_problem():
    def residual(t, y, yp):
        return [yp[0] - y[1], yp[1] + np.sin(y[0]) + 0.1 * y[1] - np.cos(t)]

    forward = daedal.ImplicitDAE(residual, 2)
    mirrored = daedal.ImplicitDAE(lambda t, y, yp: residual(-t, y, [-yp[0], -yp[1]]), 2)
    options = {"method": "radau", "rtol": 1e-8, "atol": 1e-8}
    a = daedal.solve(forward, (0.0, 10.0), ([1.0, 0.0], None), **options)
    b = daedal.solve(mirrored, (0.0, -10.0), ([1.0, 0.0], None), **options)
    np.testing.assert_allclose(a.t, -b.t, rtol=1e-7)  # round-off of F, in units of the tolerance
    np.testing.assert_allclose(a(a.t), b(-a.t), rtol=1e-8, atol=1e-12)


def test_threads_and_repetitions_give_the_same_bits():
    expected = solve_robertson()
    with ThreadPoolExecutor(4) as pool:
        runs = list(pool.map(lambda _: solve_robertson(), range(8)))
    for sol in runs:
        np.testing.assert_array_equal(sol.y, expected.y)
        np.testing.assert_array_equal(sol.t, expected.t)


def test_output_does_not_change_the_steps():
    expected, times = solve_robertson(), np.geomspace(1e-3, 4e3, 37)
    sol = solve_robertson(t_eval=times, dense_output=False)
    assert sol.stats.steps == expected.stats.steps
    np.testing.assert_array_equal(sol.y, expected(times))


def test_limits_of_the_steps():
    sol = solve_robertson(max_step=200.0, first_step=1e-5)
    assert np.max(sol.history.h) <= 200.0 and sol.history.h[0] == 1e-5
    with pytest.raises(daedal.IntegrationError, match="the limit of 5 steps was reached"):
        solve_robertson(max_steps=5)


def test_break_points_are_ends_of_steps():
    problem = daedal.ImplicitDAE(lambda t, y, yp: [yp[0] - (1.0 if t < 0.3 else -2.0)], 1)
    options = {"method": "radau", "breakpoints": [0.3], "rtol": 1e-9, "atol": 1e-9}
    sol = daedal.solve(problem, (0.0, 1.0), ([0.0], None), **options)
    assert sol.y[0, -1] == pytest.approx(0.3 - 1.4, abs=1e-10)


# --- failures ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("outside", [math.nan, math.inf])
def test_point_that_cannot_be_evaluated_costs_a_step_and_not_the_run(outside):
    visits = []

    def emptying(t, y, yp):
        if y[0] < 0.0:
            visits.append(t)
            return [outside]
        return [yp[0] + 2.0 * math.sqrt(y[0])]

    problem = daedal.ImplicitDAE(emptying, 1)
    options = {"method": "radau", "rtol": 1e-3, "atol": 1e-3, "compile": "never", "first_step": 0.9}
    sol = daedal.solve(problem, (0.0, 0.999), ([1.0], [-2.0]), **options)
    assert visits and sol.success
    np.testing.assert_allclose(sol.y[0], (1.0 - sol.t) ** 2, atol=5e-3)


def test_end_of_the_domain_stops_the_run_with_what_was_computed():
    problem = daedal.ImplicitDAE(lambda t, y, yp: [yp[0] - y[0] ** 2], 1)
    with pytest.raises(daedal.IntegrationError, match=r"Stopped at t = 1\b|Stopped at t = 0.99") as failure:
        daedal.solve(problem, (0.0, 2.0), ([1.0], None), method="radau")
    sol = failure.value.solution
    far = sol.y[0] < 1e3
    assert np.count_nonzero(far) > 10
    np.testing.assert_allclose(sol.y[0, far], 1.0 / (1.0 - sol.t[far]), rtol=1e-3)


def test_exceptions_arrive_unchanged():
    class Broken(Exception):
        pass

    def residual(t, y, yp):
        if t > 0.5:
            raise Broken("here")
        return [yp[0] + y[0]]

    problem = daedal.ImplicitDAE(residual, 1)
    with pytest.raises(Broken, match="here") as failure:
        daedal.solve(problem, (0.0, 1.0), ([1.0], None), method="radau", compile="never")
    assert failure.value.solution.t[-1] <= 0.5


def test_singular_problem_is_named():
    problem = daedal.ImplicitDAE(lambda t, y, yp: [yp[0] + y[0], yp[0] + y[0]], 2)
    with pytest.raises(daedal.DaedalError, match=r"singular|determine"):
        daedal.solve(problem, (0.0, 1.0), ([1.0, 1.0], [-1.0, 0.0]), method="radau")


def test_kinds_of_matrices_that_a_problem_does_not_have_are_refused():
    problem = daedal.ImplicitDAE(lambda t, y, yp: yp + y, 2)
    with pytest.raises(daedal.InvalidProblemError, match="needs bandwidth"):
        daedal.solve(problem, (0.0, 1.0), ([1.0, 1.0], None), method=Radau(linear_solver="banded"), compile="never")
