"""Output of DASSL: requested times, dense output, end and stop times, the history of steps."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import daedal
from daedal import library


def residual(t, y, yp):
    """y1 = sin t, y2 = cos t, z = y1 y2."""
    return [yp[0] - y[1], yp[1] + y[0], y[2] - y[0] * y[1]]


INITIAL = ([0.0, 1.0, 0.0], [1.0, 0.0, 1.0])


def solve(t_span=(0.0, 10.0), **options):
    return daedal.solve(daedal.ImplicitDAE(residual, 3), t_span, INITIAL, **options, method="dassl")


@settings(max_examples=20)
@given(st.lists(st.floats(0.0, 10.0), min_size=1, max_size=40, unique=True))
def test_output_does_not_depend_on_the_requested_times(times):
    """The steps are the same, and the values those of the dense output, whatever is asked for."""
    times = np.sort(times)
    every_step = solve()
    sol = solve(t_eval=times)
    np.testing.assert_array_equal(sol.t, times)
    np.testing.assert_array_equal(sol.history.t, every_step.history.t)
    np.testing.assert_allclose(sol.y, every_step(times), rtol=1e-13, atol=1e-13)
    np.testing.assert_allclose(sol.yp, every_step(times, derivative=True), rtol=1e-3, atol=1e-3)


def test_same_time_gives_the_same_bits_in_every_set_of_times():
    coarse, fine = solve(t_eval=np.linspace(0.0, 10.0, 11)), solve(t_eval=np.linspace(0.0, 10.0, 501))
    np.testing.assert_array_equal(coarse.y, fine.y[:, ::50])
    np.testing.assert_array_equal(coarse.yp, fine.yp[:, ::50])


def test_every_step_is_stored_without_requested_times():
    sol = solve()
    np.testing.assert_array_equal(sol.t[1:], sol.history.t)
    np.testing.assert_allclose(np.cumsum(sol.history.h), sol.history.t, rtol=1e-12)
    assert sol.t[0] == 0.0
    assert sol.t[-1] == 10.0
    assert sol.stats.steps == sol.history.t.size


def test_stored_derivatives_satisfy_the_equations():
    """y' at the steps is that of the corrector, not the slope of the interpolant."""
    sol = solve(rtol=1e-6, atol=1e-9)
    F = np.array([residual(t, y, yp) for t, y, yp in zip(sol.t[1:], sol.y.T[1:], sol.yp.T[1:])])
    # Newton's method stops when y is right to a fraction of the tolerance; y' and F see the rest multiplied by cj.
    harmonic = np.cumsum(1.0 / np.arange(1.0, 6.0))
    cj = harmonic[sol.history.order - 1] / sol.history.h
    assert np.max(np.abs(F[:, :2]) / cj[:, None]) < 1e-6
    assert np.max(np.abs(F[:, 2])) < 1e-6
    slope = sol(sol.t[1:], derivative=True)
    assert np.max(np.abs(slope - sol.yp[:, 1:])) > 1e-7


def test_dense_output_is_continuous_and_accurate_between_steps():
    sol = solve(rtol=1e-7, atol=1e-9)
    t = np.linspace(0.0, 10.0, 1001)
    exact = np.array([np.sin(t), np.cos(t), np.sin(t) * np.cos(t)])
    np.testing.assert_allclose(sol(t), exact, atol=2e-5)
    np.testing.assert_allclose(sol(t, derivative=True)[0], np.cos(t), atol=1e-3)
    inner = sol.history.t[:-1]
    before, after = sol(inner * (1.0 - 1e-15)), sol(inner * (1.0 + 1e-15))
    np.testing.assert_allclose(after, before, atol=1e-12)
    np.testing.assert_array_equal(sol(sol.t[1:]), sol.y[:, 1:])


def test_dense_output_keeps_its_layout():
    sol = solve()
    assert sol(1.0).shape == (3,)
    assert sol(np.array([1.0, 0.5])).shape == (3, 2)
    np.testing.assert_array_equal(sol(np.array([1.0, 0.5]))[:, 0], sol(1.0))
    with pytest.raises(daedal.InvalidProblemError, match="must lie in the integrated interval"):
        sol(10.5)


@pytest.mark.parametrize("direction", [1.0, -1.0])
def test_equations_are_never_evaluated_beyond_the_end(direction):
    times = []

    def spied(t, y, yp):
        times.append(t)
        return residual(t, y, yp)

    daedal.solve(daedal.ImplicitDAE(spied, 3), (0.0, 3.0 * direction), INITIAL, rtol=1e-4, method="dassl")
    assert max(direction * t for t in times) == 3.0


def test_equations_that_end_with_the_interval_are_solved_to_the_end():
    def residual(t, y, yp):
        return [yp[0] - math.sqrt(1.0 - t)]  # raises beyond 1

    sol = daedal.solve_dae(residual, (0.0, 1.0), [0.0], [1.0], method="dassl")
    assert sol.y[0, -1] == pytest.approx(2.0 / 3.0, rel=1e-4)


@pytest.mark.parametrize("t_stop", [10.0, 10.03, 11.0, math.inf])
def test_stop_time_is_not_passed_and_the_end_is_interpolated(t_stop):
    times = []

    def spied(t, y, yp):
        times.append(t)
        return residual(t, y, yp)

    sol = daedal.solve(daedal.ImplicitDAE(spied, 3), (0.0, 10.0), INITIAL, t_stop=t_stop, max_step=0.2, method="dassl")
    assert sol.t[-1] == 10.0
    assert max(times) <= min(t_stop, 10.0 + 0.2)
    assert (max(times) > 10.0) == (t_stop > 10.0)
    np.testing.assert_allclose(sol.y[:2, -1], [math.sin(10.0), math.cos(10.0)], atol=1e-4)


def test_end_of_the_interval_influences_the_run_only_through_the_first_step():
    """With a given first step and a distant stop time, a longer interval repeats the steps of the shorter one."""
    options = {"first_step": 1e-3, "t_stop": 100.0}
    short, long = solve((0.0, 5.0), **options), solve((0.0, 10.0), **options)
    count = short.history.h.size
    np.testing.assert_array_equal(long.history.h[:count], short.history.h)


def test_history_is_kept_with_dense_output_and_left_out_without():
    times = np.linspace(0.0, 10.0, 5)
    assert solve(t_eval=times, dense_output=True).history is not None
    without = solve(t_eval=times, dense_output=False)
    assert without.history is None
    np.testing.assert_array_equal(without.y, solve(t_eval=times).y)
    with pytest.raises(daedal.InvalidProblemError, match="dense_output=True"):
        without(1.0)


def test_many_steps_fill_many_buffers():
    """The run returns to Python between buffers; nothing is lost or doubled at the seams."""
    sol = solve((0.0, 400.0), rtol=1e-8, atol=1e-10)
    assert sol.stats.steps > 5000
    assert np.all(np.diff(sol.t) > 0.0)
    assert sol.t.size == sol.stats.steps + 1
    np.testing.assert_allclose(np.cumsum(sol.history.h), sol.history.t, rtol=1e-9)
    np.testing.assert_allclose(sol.y[0], np.sin(sol.t), atol=1e-3)


def test_requested_times_may_lie_denser_than_the_steps():
    times = np.linspace(0.0, 1.0, 20_001)
    sol = solve((0.0, 1.0), t_eval=times)
    np.testing.assert_allclose(sol.y[0], np.sin(times), atol=1e-5)


def test_drift_of_a_semi_explicit_problem_is_its_largest_constraint_residual():
    model = library.robertson(t1=100.0, form="semi-explicit")
    sol = daedal.solve(model.problem, model.t_span, model.initial, rtol=1e-4, atol=1e-8, method="dassl")
    largest = np.max(np.abs(np.sum(sol.y, axis=0) - 1.0))
    assert 0.0 < sol.drift["constraint"] <= largest < 1e-9


@pytest.mark.parametrize("error_test", ["differential", [0]])
def test_what_the_error_test_leaves_out_is_named_where_the_steps_do_not_resolve_it(error_test):
    """A triangular wave beside a smooth variable: right at the steps, and said to be uncertain between them."""

    def wave(t):
        return abs((t + 0.37) % 2.0 - 1.0)

    problem = daedal.ImplicitDAE(lambda t, y, yp: [yp[0] + y[0] - np.cos(t), y[1] - wave(t)], n=2)
    start, times = ([0.5, wave(0.0)], [0.5, -1.0]), np.linspace(0.0, 10.0, 2001)
    tolerances = {"rtol": 1e-5, "atol": 1e-5, "switches": "never"}  # which would meet the kinks
    sol = daedal.solve(problem, (0.0, 10.0), start, method=daedal.methods.DASSL(error_test=error_test), **tolerances)
    np.testing.assert_allclose(sol.y[1], wave(sol.t), atol=1e-4)
    worst = np.max(np.abs(sol(times)[1] - wave(times)))
    assert worst > 0.01 and "Between steps, y[1] may be wrong by about" in sol.message
    said = float(sol.message.split("wrong by about ")[1].split()[0])
    assert 0.2 * worst < said < 5.0 * worst
    # the remedies help
    kinks = np.arange(0.63, 10.0, 1.0)
    tested = daedal.solve(problem, (0.0, 10.0), start, method=daedal.methods.DASSL(error_test="all"), **tolerances)
    broken = daedal.solve(
        problem, (0.0, 10.0), start, method=daedal.methods.DASSL(error_test=error_test), breakpoints=kinks, **tolerances
    )
    for better in (tested, broken):
        assert "Between steps" not in better.message
        np.testing.assert_allclose(better(times)[1], wave(times), atol=1e-3)


def test_nothing_is_said_where_the_steps_resolve_what_the_error_test_leaves_out():
    problem = daedal.ImplicitDAE(lambda t, y, yp: [yp[0] + y[0] - np.cos(t), y[1] - y[0] ** 2], n=2)
    sol = daedal.solve(
        problem, (0.0, 10.0), ([0.5, 0.25], None), method=daedal.methods.DASSL(error_test="differential")
    )
    assert "Between steps" not in sol.message
