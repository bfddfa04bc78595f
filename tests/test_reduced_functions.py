"""Exceptions of the user's functions, and switches, in problems that are reduced before they are solved."""

import numpy as np
import pytest

import daedal


class OutOfRange(Exception):
    """Raised by a model."""


def chain(k, value, check=lambda t, y: None):
    """y0' = y1, ..., 0 = y0 - value(t): index k."""

    def residual(t, y, yp):
        check(t, y)
        return [yp[i] - y[i + 1] for i in range(k - 1)] + [y[0] - value(t)]

    return daedal.ImplicitDAE(residual, k)


def only_before(end):
    def check(t, y):
        if t > end:
            raise OutOfRange(f"valid to t = {end}")

    return check


@pytest.mark.parametrize("formulation", ["auto", "dummy_derivatives"])
@pytest.mark.parametrize("k", [3, 4])
def test_exception_of_time_arrives_with_what_was_computed(k, formulation):
    problem = chain(k, np.sin, only_before(1.0))
    with pytest.raises(OutOfRange, match="valid to t = 1") as caught:
        daedal.solve(problem, (0.0, 2.0), ([0.0, 1.0, 0.0, -1.0][:k], None), formulation=formulation)
    solution = caught.value.solution
    assert solution.status == "failed"
    assert 0.0 < solution.t[-1] <= 1.0
    np.testing.assert_allclose(solution.y[0], np.sin(solution.t), atol=1e-6)


def test_exception_between_output_times_arrives():
    def check(t, y):
        if 0.9 < t < 1.3:
            raise OutOfRange

    with pytest.raises(OutOfRange):
        daedal.solve(chain(4, np.sin, check), (0, 2), ([0.0, 1, 0, -1], None), t_eval=[0.0, 2.0], max_step=0.1)


def test_exception_behind_the_end_does_not_arrive():
    start = ([0.0, 1.0, 0.0, -1.0], None)
    assert daedal.solve(chain(4, np.sin, only_before(1.0)), (0, 1), start).status == "finished"
    stop = daedal.Event(lambda t, y, yp: t - 1.0, terminal=True)
    assert daedal.solve(chain(4, np.sin, only_before(1.001)), (0, 2), start, events=[stop]).status == "event"


def test_exception_of_the_state_arrives_backwards():
    def check(t, y):
        if y[0] <= -0.5:
            raise OutOfRange("below the floor")

    with pytest.raises(OutOfRange, match="below the floor") as caught:
        daedal.solve(chain(4, np.sin, check), (0.0, -2.0), ([0.0, 1.0, 0.0, -1.0], None))
    assert caught.value.solution.y[0].min() > -0.5


def test_exception_of_a_pendulum_arrives():
    """Without it the equations would be recognised as those of a mechanism."""

    def pendulum(t, s, sp):
        x, y, u, v, lam = s
        if y < -0.5:
            raise OutOfRange
        return [sp[0] - u, sp[1] - v, sp[2] + lam * x, sp[3] + lam * y + 1.0, x * x + y * y - 1.0]

    with pytest.raises(OutOfRange):
        daedal.solve(daedal.ImplicitDAE(pendulum, 5), (0.0, 2.0), ([1.0, 0, 0, 0, 0], None))


def test_exception_of_a_second_order_problem_arrives():
    def residual(t, x, xp, xpp):
        if t > 0.5:
            raise OutOfRange
        return [xpp[0] - x[1], xpp[1] - x[2], x[0] - np.sin(t)]

    problem = daedal.SecondOrderDAE(residual, 3)
    with pytest.raises(OutOfRange):
        daedal.solve(problem, (0, 1), ([0.0, 0.0, 0.0], [1.0, -1.0, 1.0]), formulation="dummy_derivatives")


def driven(rate):
    """Index 4, beside w' = rate(t)."""

    def residual(t, s, sp):
        x, y, a, z = s[:4]
        return [sp[0] - y, sp[1] - a, sp[2] - z, x - 0.01 * t, sp[4] - rate(t)]

    return daedal.ImplicitDAE(residual, 5)


def pulse(t):
    return np.where((t > 5.03) & (t < 5.04), 100.0, 0.0)


PULSE, BEFORE = driven(pulse), ([0.0, 0.01, 0.0, 0.0, 0.0], None)


def test_switches_of_a_reduced_problem_are_told_once():
    with pytest.warns(daedal.errors.SwitchWarning) as told:
        daedal.solve(PULSE, (0.0, 10.0), BEFORE)
    [warning] = told
    assert warning.filename == __file__
    for words in ("5.03 < t at test_reduced_functions.py:", "t < 5.04", "breakpoints", "formulation='none'"):
        assert words in str(warning.message)


@pytest.mark.filterwarnings("error::daedal.errors.SwitchWarning")
@pytest.mark.parametrize("options", [{"breakpoints": [5.03, 5.04]}, {"formulation": "none"}])
def test_the_remedies_find_the_pulse_and_are_silent(options):
    solution = daedal.solve(PULSE, (0.0, 10.0), BEFORE, **options)
    assert solution.y[4, -1] == pytest.approx(1.0, abs=1e-6)


@pytest.mark.filterwarnings("error::daedal.errors.SwitchWarning")
def test_nothing_is_told_of_switches_that_are_not_met_or_not_wanted():
    assert daedal.solve(PULSE, (0.0, 5.0), BEFORE).status == "finished"
    assert daedal.solve(PULSE, (0.0, 10.0), BEFORE, switches="never").status == "finished"
    later = driven(lambda t: np.floor(t / 3.0))
    assert daedal.solve(later, (0.0, 3.0), BEFORE).status == "finished"


@pytest.mark.parametrize("rate", [lambda t: np.floor(t / 2.0), lambda t: np.abs(np.cos(t)), lambda t: max(t, 1.0)])
def test_whole_numbers_curved_conditions_and_kinks_are_told(rate):
    with pytest.warns(daedal.errors.SwitchWarning, match="not tracked"):
        daedal.solve(driven(rate), (0.0, 3.0), BEFORE)


def test_switches_of_the_state_and_of_second_order_problems_are_told():
    def residual(t, x, xp, xpp):
        return [xpp[0] - x[1], xpp[1] - x[2], x[0] - np.sin(t), xp[3] + np.abs(x[3] - 0.5)]

    problem = daedal.SecondOrderDAE(residual, 4)
    with pytest.warns(daedal.errors.SwitchWarning, match="test_reduced_functions"):
        daedal.solve(problem, (0, 1), ([0.0, 0, 0, 1.0], [1.0, -1.0, 1.0, -0.5]), formulation="dummy_derivatives")
