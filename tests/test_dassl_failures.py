"""Points at which the equations cannot be evaluated, and unknowns that must not become negative."""

import math

import numba
import numpy as np
import pytest

import daedal

# --- Unevaluable, NaN and infinity ----------------------------------------------------------------------------


def raises(y):
    raise daedal.Unevaluable(f"square root of {y}")


OUTSIDE = {"raises": raises, "nan": lambda y: math.nan, "infinity": lambda y: math.inf, "minus": lambda y: -math.inf}


def emptying(outside, visits):
    """y' = -2 sqrt(y), y = (1 - t)^2: large steps look below the bottom of the tank."""

    def residual(t, y, yp):
        if y[0] < 0.0:
            visits.append(t)
            return [outside(y[0])]
        return [yp[0] + 2.0 * math.sqrt(y[0])]

    return residual


def solve_emptying(residual, **options):
    return daedal.solve_dae(residual, (0.0, 0.999), [1.0], [-2.0], rtol=1e-3, atol=1e-3, **options, method="dassl")


@pytest.mark.parametrize("outside", OUTSIDE.values(), ids=OUTSIDE.keys())
def test_point_that_cannot_be_evaluated_costs_a_step_and_not_the_run(outside):
    visits = []
    sol = solve_emptying(emptying(outside, visits))
    assert visits
    assert sol.success
    assert sol.stats.newton_failures > 0
    np.testing.assert_allclose(sol.y[0], (1.0 - sol.t) ** 2, atol=2e-3)


def test_every_way_to_say_it_gives_the_same_run():
    runs = [solve_emptying(emptying(outside, []), compile="never") for outside in OUTSIDE.values()]

    @numba.njit
    def compiled(t, y, yp):
        r = np.empty(1)
        r[0] = yp[0] + 2.0 * math.sqrt(y[0]) if y[0] >= 0.0 else np.nan
        return r

    runs.append(solve_emptying(compiled, compile="never"))
    for other in runs[1:]:
        np.testing.assert_array_equal(other.t, runs[0].t)
        np.testing.assert_array_equal(other.y, runs[0].y)


def test_domain_that_really_ends_stops_the_run_there():
    with pytest.raises(daedal.IntegrationError) as failure:
        daedal.solve_dae(
            lambda t, y, yp: [yp[0] + 1.0 if y[0] > 0.5 else math.nan], (0.0, 1.0), [1.0], [-1.0], method="dassl"
        )
    sol = failure.value.solution
    assert sol.t[-1] == pytest.approx(0.5, abs=1e-3)
    np.testing.assert_allclose(sol.y[0], 1.0 - sol.t, atol=1e-8)


@pytest.mark.parametrize("structure", [{}, {"bandwidth": (0, 0)}])
def test_difference_quotients_turn_back_at_the_border_of_the_domain(structure):
    """The increment follows the sign of y' and would leave the domain; the other side serves as well."""
    outside = []

    def residual(t, y, yp):
        if y[0] < 1.0 - t - 1e-12:  # just below the solution
            outside.append(t)
            raise daedal.Unevaluable
        return [yp[0] + 1.0, yp[1] + y[1]]

    problem = daedal.ImplicitDAE(residual, 2, **structure)
    sol = daedal.solve(problem, (0.0, 1.0), ([1.0, 1.0], [-1.0, -1.0]), compile="never", method="dassl")
    assert len(outside) == sol.stats.jacobian_evaluations
    assert sol.stats.newton_failures == 0
    assert sol.y[1, -1] == pytest.approx(math.exp(-1.0), rel=1e-5)


def test_jacobian_with_nan_is_a_step_failure():
    calls = []

    def jacobian(t, y, yp, cj):
        calls.append(t)
        return [[math.nan]] if 3 <= len(calls) <= 4 else [[cj + 1.0]]

    problem = daedal.ImplicitDAE(lambda t, y, yp: [yp[0] + y[0]], 1, jacobian=jacobian)
    sol = daedal.solve(problem, (0.0, 1.0), ([1.0], [-1.0]), method="dassl")
    assert sol.stats.newton_failures == 2
    assert sol.y[0, -1] == pytest.approx(math.exp(-1.0), rel=1e-5)


def test_singular_matrix_is_survived_twice_and_reported_the_third_time():
    def solve(bad):
        calls = []

        def jacobian(t, y, yp, cj):
            calls.append(t)
            return [[0.0]] if 3 <= len(calls) < 3 + bad else [[cj + 1.0]]

        problem = daedal.ImplicitDAE(lambda t, y, yp: [yp[0] + y[0]], 1, jacobian=jacobian)
        return daedal.solve(problem, (0.0, 1.0), ([1.0], [-1.0]), method="dassl")

    assert solve(2).stats.newton_failures == 2
    with pytest.raises(daedal.IntegrationError, match="singular"):
        solve(3)


# --- nonnegativity --------------------------------------------------------------------------------------------


def decay(**options):
    return daedal.solve_dae(
        lambda t, y, yp: [yp[0] + 5.0 * y[0], yp[1] + 4.0 * y[1]],
        (0.0, 20.0),
        [1.0, 1.0],
        [-5.0, -4.0],
        rtol=1e-3,
        atol=1e-3,
        **options,
        method="dassl",
    )


def test_nonnegative_unknowns_stay_so():
    free, kept = decay(), decay(nonnegative=True)
    assert np.min(free.y) < 0.0  # otherwise there is nothing to keep
    assert np.min(kept.y) == 0.0
    np.testing.assert_allclose(kept.y[0], np.exp(-5.0 * kept.t), atol=5e-3)


@pytest.mark.parametrize("chosen", [[0], [True, False]])
def test_only_the_chosen_unknowns_are_kept_nonnegative(chosen):
    sol = decay(nonnegative=chosen)
    assert np.min(sol.y[0]) >= 0.0
    assert np.min(sol.y[1]) < 0.0


def test_values_are_clipped_by_less_than_the_newton_tolerance():
    """y' = -5 wants to cross zero; a step may be clipped by a third of the error weight, no more."""
    atol = 1e-2
    sol = daedal.solve_dae(
        lambda t, y, yp: [yp[0] + 5.0], (0.0, 0.3), [1.0], [-5.0], atol=atol, nonnegative=True, method="dassl"
    )
    at_zero = sol.y[0, :-1] == 0.0
    assert np.sum(at_zero) > 10
    assert np.max(5.0 * sol.history.h[at_zero]) <= 0.33 * atol * (1.0 + 1e-9)
    assert sol.stats.newton_failures > 0  # longer steps were refused


# --- how many steps ---------------------------------------------------------------------------------------------------


@numba.njit
def falling(t, y, yp):
    return np.array([yp[0] + y[0]])


def test_a_run_takes_as_many_steps_as_it_needs():
    problem = daedal.ImplicitDAE(falling, 1)
    sol = daedal.solve(
        problem, (0.0, 1.0), ([1.0], [-1.0]), max_step=1.0 / 120_000, t_eval=[1.0], dense_output=False, method="dassl"
    )
    assert sol.stats.steps > 100_000
    assert sol.y[0, -1] == pytest.approx(np.exp(-1.0), rel=1e-6)


def test_a_run_stops_where_steps_no_longer_advance():
    problem = daedal.ImplicitDAE(falling, 1)
    with pytest.raises(
        daedal.IntegrationError, match="100000 steps have advanced by less than a thousandth"
    ) as failure:
        daedal.solve(
            problem, (0.0, 1.0), ([1.0], [-1.0]), max_step=1e-9, dense_output=False, t_eval=[1.0], method="dassl"
        )
    assert failure.value.solution.stats.steps == 100_000
    with pytest.raises(daedal.IntegrationError, match="limit of 500 steps"):
        daedal.solve(problem, (0.0, 1.0), ([1.0], [-1.0]), max_step=1e-9, max_steps=500, method="dassl")
