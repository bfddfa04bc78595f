"""DASSL's control of order and step size, replayed from the computed points by an independent implementation.

The replay knows the accepted points (t, y) only. From them it forms the modified divided differences in extended
precision and applies the rules of Brenan, Campbell and Petzold, sections 5.2.3 and 5.2.4; every accepted step must pass
the error test, and the next step must be tried with the order and the step size that the rules give.
"""

import math
from itertools import pairwise

import numpy as np
import pytest

import daedal
from daedal import library

EXTENDED = np.longdouble


BOOK = {"error_test": "all"}  # nothing is evaluated but what the book's algorithm asks for


class Spy:
    """A problem whose residual keeps the times at which it is called."""

    def __init__(self, problem):
        self.times = []
        tail = () if problem.params is None else (problem.params,)

        def residual(t, y, yp):
            self.times.append(t)
            return problem.residual(t, y, yp, *tail)

        self.problem = daedal.ImplicitDAE(
            residual, problem.n, jacobian=problem.jacobian, algebraic=problem.algebraic, names=problem.names
        )

    def attempts(self, sol):
        """For every accepted step the step sizes tried, in order; the last one was accepted."""
        times = np.array(self.times)
        ends = np.concatenate([[sol.t[0]], sol.history.t])
        # Calls before the integration are made at the start; after that every attempt is a run of equal times.
        runs = times[np.concatenate([[True], np.diff(times) != 0.0])]
        runs = list(runs[runs != ends[0]])
        result = []
        for start, end in pairwise(ends):
            tried = []
            while True:
                t = runs.pop(0)
                tried.append(t - start)
                if abs(t - end) <= 1e-14 * abs(end):
                    break
            result.append(tried)
        assert not runs
        return result


class Replay:
    """The differences at every accepted point, from the points alone."""

    def __init__(self, sol, rtol, atol, first_step):
        y0, yp0 = sol.y[:, 0], sol.yp[:, 0]
        self.t = np.concatenate([[sol.t[0] - first_step, sol.t[0]], sol.history.t]).astype(EXTENDED)
        self.y = np.concatenate([[y0 - first_step * yp0], [y0], sol.y[:, 1:].T]).astype(EXTENDED)
        self.h, self.order = sol.history.h, sol.history.order
        self.rtol, self.atol = rtol, atol

    def differences(self, step, count):
        """phi_1 .. phi_count and psi_1 .. psi_{count-1} after step number `step` (from 1)."""
        last = step + 1
        t, y = self.t[last - count + 1 : last + 1][::-1], self.y[last - count + 1 : last + 1][::-1]
        table, result, scale = y.copy(), [y[0]], EXTENDED(1.0)
        for level in range(1, count):
            table = (table[:-1] - table[1:]) / (t[:-level] - t[level:])[:, None]
            scale *= t[0] - t[level]
            result.append(scale * table[0])
        return np.array(result), t[0] - t[1:]

    def norm(self, step, v):
        """The weighted norm with the weights at the beginning of the step."""
        weights = self.rtol * np.abs(self.y[step]) + self.atol
        return float(np.sqrt(np.mean((v / weights) ** 2)))

    def judge(self, step, k):
        """Error of the step, error estimates at order k and below, and the terms by which orders are compared."""
        phi, psi = self.differences(step, k + 2)
        h = float(self.h[step - 1])
        alpha = h / psi.astype(float)
        sigma = np.ones(k + 2)
        for i in range(1, k + 1):
            sigma[i] = i * sigma[i - 1] * alpha[i]
        leading = sum(1.0 / j for j in range(1, k + 1))
        size = self.norm(step, phi[k + 1])
        constant = max(alpha[k], abs(alpha[k] - leading + np.sum(alpha[:k])))
        estimates = {k: sigma[k] * size}
        terms = {k: (k + 1) * sigma[k] * size}
        for lower in (k - 1, k - 2):
            if lower >= 1:
                estimates[lower] = sigma[lower] * self.norm(step, phi[lower + 1])
                terms[lower] = (lower + 1) * estimates[lower]
        return constant * size, estimates, terms


def replay(sol, rtol, atol, attempts, max_order=5):
    """Check every step; returns how often each rule was used."""
    replayed = Replay(sol, rtol, atol, attempts[0][0])
    order, h = sol.history.order, sol.history.h
    initial_phase, constant_steps, previous_order = True, 0, 0
    previous_step = 0.0
    seen = {"raised": 0, "lowered": 0, "doubled": 0, "kept": 0, "reduced": 0}
    for step in range(1, order.size + 1):
        k, tried = int(order[step - 1]), attempts[step - 1]
        if len(tried) > 1:
            initial_phase = False
            constant_steps = 0
        if h[step - 1] != previous_step or k != previous_order:
            constant_steps = 0
        constant_steps = min(constant_steps + 1, previous_order + 2)
        error, estimates, terms = replayed.judge(step, k)
        assert error <= 1.0 + 1e-6, f"step {step} was accepted with error {error}"

        # The order and the step size of the next attempt
        lowered = (k > 2 and max(terms[k - 1], terms[k - 2]) <= terms[k]) or (k == 2 and terms[1] <= 0.5 * terms[2])
        if lowered or k == max_order:
            initial_phase = False
        if initial_phase:
            new_order, factor = k + 1, 2.0
        else:
            new_order = k - 1 if lowered else k
            estimate = estimates[new_order]
            just_raised = k == previous_order + 1
            if not lowered and k < max_order and k + 1 < constant_steps and not just_raised:
                above = replayed.norm(step, replayed.differences(step, k + 3)[0][k + 2])
                terms[k + 1], estimates[k + 1] = above, above / (k + 2)
                if k > 1 and terms[k - 1] <= min(terms[k], terms[k + 1]):
                    new_order = k - 1
                elif terms[k + 1] < (terms[k] if k > 1 else 0.5 * terms[k]):
                    new_order = k + 1
                estimate = estimates[new_order]
            ratio = (2.0 * estimate + 0.0001) ** (-1.0 / (new_order + 1))
            factor = 2.0 if ratio >= 2.0 else 1.0 if ratio > 1.0 else max(0.5, min(0.9, ratio))
            seen["raised"] += new_order > k
            seen["lowered"] += new_order < k
        if step == order.size:
            break
        next_h = attempts[step][0]
        at_the_end = step >= order.size - 2  # the last steps are fitted to the end of the interval
        if not at_the_end:
            assert next_h / h[step - 1] == pytest.approx(factor, rel=1e-6), f"step size after step {step}"
            seen["doubled"] += factor == 2.0
            seen["kept"] += factor == 1.0
            seen["reduced"] += factor < 1.0
        if len(attempts[step]) == 1:
            assert order[step] == new_order, f"order after step {step}"
        previous_order, previous_step = k, h[step - 1]
    return seen


def solve_and_replay(problem, t_span, initial, rtol, atol, max_order=5, **options):
    spy = Spy(problem)
    sol = daedal.solve(
        spy.problem,
        t_span,
        initial,
        rtol=rtol,
        atol=atol,
        max_order=max_order,
        error_test="all",
        **options,
        method="dassl",
    )
    return sol, replay(sol, rtol, atol, spy.attempts(sol), max_order)


def van_der_pol(t, y, yp):
    return [yp[0] - y[1], yp[1] - 5.0 * (1.0 - y[0] ** 2) * y[1] + y[0]]


@pytest.mark.parametrize("remember_rate", [True, False])
@pytest.mark.parametrize("rtol", [1e-4, 1e-7])
def test_order_and_step_follow_the_rules_on_van_der_pol(rtol, remember_rate):
    problem = daedal.ImplicitDAE(van_der_pol, 2)
    _, seen = solve_and_replay(problem, (0.0, 20.0), ([2.0, 0.0], [0.0, -2.0]), rtol, rtol, remember_rate=remember_rate)
    assert min(seen.values()) > 0  # every rule was used


@pytest.mark.parametrize("max_order", [1, 2, 3, 4, 5])
def test_order_and_step_follow_the_rules_up_to_the_maximal_order(max_order):
    model = library.pendulum(form="index1")
    sol, seen = solve_and_replay(model.problem, (0.0, 3.0), model.initial, 1e-5, 1e-5, max_order)
    assert sol.history.order.max() == max_order
    assert seen["doubled"] > 0


def test_order_and_step_follow_the_rules_on_robertson():
    model = library.robertson(t1=1e5)
    atol = np.array([1e-8, 1e-12, 1e-8])
    _, seen = solve_and_replay(model.problem, model.t_span, model.initial, 1e-5, atol)
    assert seen["doubled"] > 10


def test_initial_phase_raises_the_order_and_doubles_the_step():
    """Until the differences stop falling: the point before the start lies on the tangent, not on the curve."""
    options = {"first_step": 2.0**-6, "rtol": 1e-2, "atol": 1e-2}
    sol = daedal.solve_dae(lambda t, y, yp: [yp[0] - math.cos(t)], (0.0, 10.0), [0.0], [1.0], **options, method="dassl")
    np.testing.assert_array_equal(sol.history.order[:5], [1, 2, 3, 4, 3])
    np.testing.assert_array_equal(sol.history.h[:4], 2.0 ** np.arange(-6.0, -2.0))


def test_first_step_is_a_thousandth_of_the_interval_for_slow_solutions():
    sol = daedal.solve_dae(lambda t, y, yp: [yp[0] + 1e-9 * y[0]], (0.0, 5.0), [1.0], [-1e-9], method="dassl")
    assert sol.history.h[0] == 5e-3


def test_first_step_is_half_the_inverse_of_the_weighted_slope_for_fast_solutions():
    rtol, atol = 1e-3, 1e-4
    sol = daedal.solve_dae(
        lambda t, y, yp: [yp[0] + 3.0 * y[0]], (0.0, 5.0), [2.0], [-6.0], rtol=rtol, atol=atol, method="dassl"
    )
    assert sol.history.h[0] == pytest.approx(0.5 / (6.0 / (rtol * 2.0 + atol)), rel=1e-14)


def test_no_step_is_longer_than_max_step():
    sol = daedal.solve_dae(
        lambda t, y, yp: [yp[0] + y[0]], (0.0, 5.0), [1.0], [-1.0], rtol=1e-3, max_step=0.07, method="dassl"
    )
    assert sol.history.h.max() <= 0.07
    assert np.sum(sol.history.h == 0.07) > 20


# --- failures -------------------------------------------------------------------------------------------------


def failures_at_a_jump(size, max_order=5):
    """Step sizes tried and the order at the step over a jump in the derivative; the error test alone fails."""

    def jump(t, y, yp):
        return [yp[0] + y[0] - (0.0 if t < 1.0 else size)]

    spy = Spy(daedal.ImplicitDAE(jump, 1, jacobian=lambda t, y, yp, cj: [[1.0 + cj]]))
    sol = daedal.solve(
        spy.problem, (0.0, 2.0), ([1.0], [-1.0]), rtol=1e-6, atol=1e-6, max_order=max_order, **BOOK, method="dassl"
    )
    assert sol.stats.newton_failures == 0
    tried = spy.attempts(sol)
    hardest = max(range(len(tried)), key=lambda i: len(tried[i]))
    return np.array(tried[hardest]), sol.history.order[hardest], sol


@pytest.mark.parametrize("size", [1.0, 1e3, 1e6])
def test_first_failure_cuts_by_the_estimate_and_later_ones_by_four(size):
    tried, order, _ = failures_at_a_jump(size)
    factors = tried[1:] / tried[:-1]
    assert factors.size >= 3
    assert 0.25 - 1e-9 <= factors[0] <= 0.9 + 1e-9
    np.testing.assert_allclose(factors[1:], 0.25, rtol=1e-6)
    assert order == 1  # from the third failure on


def test_every_rejection_is_counted():
    _, _, sol = failures_at_a_jump(1.0)
    spied = Spy(daedal.ImplicitDAE(van_der_pol, 2))
    other = daedal.solve(spied.problem, (0.0, 20.0), ([2.0, 0.0], [0.0, -2.0]), **BOOK, method="dassl")
    rejected = sum(len(tried) - 1 for tried in spied.attempts(other))
    assert other.stats.rejected == rejected > 0
    assert sol.stats.error_test_failures == sol.stats.rejected > 0


class Obstacle:
    """y' = -y, spoiled in `count` attempts in a row, of which the first is the one that passes t = 0.5."""

    def __init__(self, count, spoiled):
        self.count, self.spoiled, self.seen, self.calls = count, spoiled, [], 0

    def residual(self, t, y, yp):
        self.calls += 1
        if (t > 0.5 or self.seen) and t not in self.seen and len(self.seen) <= self.count:
            self.seen.append(t)
        if t in self.seen[: self.count]:
            return self.spoiled(self.calls, y, yp)
        return [yp[0] + y[0]]

    def tried(self):
        """Step sizes of the step over the obstacle."""
        spy = Spy(daedal.ImplicitDAE(self.residual, 1, jacobian=lambda t, y, yp, cj: [[1.0 + cj]]))
        sol = daedal.solve(spy.problem, (0.0, 1.0), ([1.0], [-1.0]), rtol=1e-4, atol=1e-4, **BOOK, method="dassl")
        assert sol.stats.newton_failures == self.count
        assert sol.y[0, -1] == pytest.approx(math.exp(-1.0), abs=1e-3)
        return np.array(max(spy.attempts(sol), key=len))


def wild(call, y, yp):
    return [yp[0] + y[0] + 1e12 * (-1.0) ** call]


def not_a_number(call, y, yp):
    return [math.nan]


def infinite(call, y, yp):
    return [-math.inf]


def unevaluable(call, y, yp):
    raise daedal.Unevaluable("not beyond one half")


@pytest.mark.parametrize("spoiled", [wild, not_a_number, infinite, unevaluable])
def test_newton_failure_or_an_evaluation_that_fails_quarters_the_step(spoiled):
    tried = Obstacle(6, spoiled).tried()
    assert tried.size == 7
    np.testing.assert_allclose(tried[1:] / tried[:-1], 0.25, rtol=1e-9)


@pytest.mark.parametrize("spoiled", [wild, unevaluable])
def test_ten_failures_in_a_row_are_the_end(spoiled):
    assert Obstacle(9, spoiled).tried().size == 10
    with pytest.raises(daedal.IntegrationError) as failure:
        Obstacle(10, spoiled).tried()
    assert failure.value.solution.stats.newton_failures == 10
    assert failure.value.solution.t[-1] <= 0.5


@pytest.mark.parametrize(("damping", "frequency"), [(10.0, 100.0), (10.0, 500.0), (100.0, 1000.0)])
def test_order_falls_near_the_imaginary_axis(damping, frequency):
    """Orders above 2 are unstable there with large steps: DASSL has to notice it by itself (BCP section 5.2.3)."""
    model = library.damped_oscillator(damping=damping, frequency=frequency)
    options = {"rtol": 1e-4, "atol": 1e-4, "remember_rate": False}
    automatic = daedal.solve(model.problem, (0.0, 20.0), model.initial, **options, method="dassl")
    second = daedal.solve(model.problem, (0.0, 20.0), model.initial, max_order=2, **options, method="dassl")
    assert automatic.history.order.max() == 5  # as long as there is something to resolve
    assert automatic.history.order[-1] <= 2
    assert automatic.stats.steps < 0.6 * second.stats.steps


def test_error_weights_are_those_at_the_beginning_of_the_step():
    """A growing solution with a relative tolerance: the replay would notice weights taken at the end of the step."""
    sol, _ = solve_and_replay(
        daedal.ImplicitDAE(lambda t, y, yp: [yp[0] - y[0]], 1), (0.0, 5.0), ([1.0], [1.0]), 1e-5, 1e-300
    )
    assert math.isclose(sol.y[0, -1], math.exp(5.0), rel_tol=1e-3)
