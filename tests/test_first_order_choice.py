"""The automatic choice of the method for first-order problems, and what it hands over for."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.sparse import csc_array

import daedal
from daedal import library
from daedal.analysis.thresholds import FIRST_LOOK, LOW_ORDER, MOST_LOW, SOON
from daedal.driver import first_order, first_order_choice
from daedal.driver.first_order_choice import _Watch, first_method

RADAU, DASSL = daedal.methods.Radau().title, daedal.methods.DASSL().title


def decay(t, y, yp):
    return yp + np.arange(1.0, y.size + 1.0) * y


def solve_decay(n=2, problem=None, **options):
    start = np.ones(n)
    problem = daedal.ImplicitDAE(decay, n) if problem is None else problem
    return daedal.solve(problem, (0.0, 1.0), (start, -np.arange(1.0, n + 1.0)), **options)


# --- the first method -------------------------------------------------------------------------------------------------


SHARP = {"rtol": 1e-9, "atol": 1e-11}


def test_small_problems_with_exact_derivatives_are_solved_by_radau():
    sol = solve_decay(**SHARP)
    assert sol.method == RADAU
    np.testing.assert_allclose(sol.y[:, -1], np.exp([-1.0, -2.0]), rtol=1e-8)


@pytest.mark.parametrize("rtol", [1e-3, 1e-6])
def test_a_few_digits_of_a_small_problem_are_left_to_rosenbrock_methods(rtol):
    coarse = solve_decay(rtol=rtol, atol=1e-2 * rtol)
    assert coarse.method == daedal.methods.Rosenbrock().title
    np.testing.assert_allclose(coarse.y[:, -1], np.exp([-1.0, -2.0]), rtol=rtol)
    assert solve_decay(20, rtol=1e-4, atol=1e-6).method == RADAU
    moving = daedal.ImplicitDAE(lambda t, y, yp: [(1.0 + y[0] ** 2) * yp[0] + y[0]], 1)  # dF/dy' is not constant
    assert daedal.solve(moving, (0.0, 1.0), ([1.0], [-0.5]), rtol=1e-4).method == RADAU
    hessenberg = library.hessenberg_index2()  # index 2
    assert daedal.solve(hessenberg.problem, hessenberg.t_span, hessenberg.initial, rtol=1e-4).method == RADAU


def test_differences_are_left_to_dassl_unless_the_tolerance_is_sharp():
    assert solve_decay(compile="never").method == DASSL
    assert solve_decay(compile="never", rtol=1e-9, atol=1e-11).method == RADAU


def test_sparse_and_large_full_matrices_are_left_to_dassl():
    diagonal = daedal.ImplicitDAE(decay, 30, sparsity=csc_array(np.eye(30)))
    assert solve_decay(30, diagonal).method == DASSL

    def matrix(t, y, yp, cj):
        return np.diag(cj + np.arange(1.0, y.size + 1.0))

    for n, name in ((50, "radau"), (150, "dassl")):
        assert first_method(daedal.ImplicitDAE(decay, n, jacobian=matrix), np.array([1e-6])) == name
    band = daedal.ImplicitDAE(decay, 150, jacobian=matrix, bandwidth=(0, 0))
    assert first_method(band, np.array([1e-6])) == "radau"


def test_options_and_fixed_steps_are_those_of_dassl():
    assert solve_decay(method="dassl", max_order=3).method == daedal.methods.DASSL(max_order=3).title
    assert solve_decay(fixed_step=0.1).method == DASSL


def test_events_are_looked_for_in_steps_that_are_short_enough():
    def event(t, y):
        return y[0] - 0.5

    sharp = {"rtol": 1e-9, "atol": 1e-11}
    assert solve_decay(events=event, rtol=1e-2).method == DASSL
    assert solve_decay(events=event).method == daedal.methods.Rosenbrock().title
    assert solve_decay(events=event, **sharp).method == RADAU
    assert solve_decay(events=daedal.Event(event, terminal=True), **sharp).method == DASSL


def test_prepared_solvers_choose_like_solve():
    solver = daedal.prepare(daedal.ImplicitDAE(decay, 2))
    sol = solver.solve((0.0, 1.0), ([1.0, 1.0], [-1.0, -2.0]))
    again = solver.solve((0.0, 1.0), ([1.0, 1.0], [-1.0, -2.0]))
    assert sol.method == daedal.methods.Rosenbrock().title
    np.testing.assert_array_equal(sol.y, again.y)
    np.testing.assert_array_equal(sol.y, solve_decay().y)


# --- higher index -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("compile", ["auto", "never"])
@pytest.mark.parametrize("rtol", [1e-4, 1e-6, 1e-9])
def test_jays_problem_takes_few_steps(rtol, compile):
    """Variable-step BDF stays at orders 1 and 2 here, with 2464 steps at 1e-6 (tests/test_jay.py)."""
    model = library.jay_index2()
    sol = daedal.solve(model.problem, model.t_span, model.initial, rtol=rtol, atol=rtol, compile=compile)
    exact = np.array([np.ravel(model.extra["exact"](t))[:3] for t in sol.t]).T
    assert sol.method == RADAU and sol.stats.steps < 60
    assert np.abs(sol.y - exact)[:2].max() < 10.0 * rtol
    assert np.abs(sol.y - exact)[2].max() < 100.0 * rtol


@pytest.mark.parametrize("rtol", [1e-4, 1e-6, 1e-8])
def test_plain_index_two_is_as_accurate_as_asked(rtol):
    model = library.hessenberg_index2()
    sol = daedal.solve(model.problem, model.t_span, model.initial, rtol=rtol, atol=rtol)
    reference = daedal.solve(model.problem, model.t_span, model.initial, rtol=1e-11, atol=1e-11)
    assert sol.stats.steps < 40
    np.testing.assert_allclose(sol.y, reference(sol.t), rtol=30.0 * rtol, atol=30.0 * rtol)


@pytest.mark.parametrize(("name", "steps"), [("tppc2", 60), ("tppc3", 60)])
def test_trajectory_control_does_not_crawl(name, steps):
    model = library.get(name)
    results = [
        daedal.solve(model.problem, model.t_span, model.initial, rtol=rtol, atol=rtol, correct_initial=True)
        for rtol in (1e-6, 1e-8)
    ]
    assert all(sol.success and sol.stats.steps < steps for sol in results)
    coarse, fine = (sol.y[:, -1] for sol in results)
    np.testing.assert_allclose(coarse, fine, rtol=1e-4, atol=1e-4 * np.abs(fine).max())


def sliding_pivot():
    """A pendulum of length 1 whose pivot slides on y = sin(x)/2, stated with the constraints of its velocities only.

    Unknowns are the pivot (a, b), the mass (x, y), their velocities and the two forces; index 2.
    """

    def residual(t, z, zp):
        a, b, x, y, va, vb, vx, vy, force, rod = z
        return [
            *(zp[0] - va, zp[1] - vb, zp[2] - vx, zp[3] - vy),
            zp[4] + 0.5 * math.cos(a) * force - 2.0 * (x - a) * rod,
            zp[5] + 9.81 - force - 2.0 * (y - b) * rod,
            zp[6] + 2.0 * (x - a) * rod,
            zp[7] + 9.81 + 2.0 * (y - b) * rod,
            vb - 0.5 * math.cos(a) * va,
            (x - a) * (vx - va) + (y - b) * (vy - vb),
        ]

    start = np.array([0.5, 0.5 * math.sin(0.5), 1.5, 0.5 * math.sin(0.5), 0.0, 0.0, 0.0, 0.0, 0.0, 0.0])
    return daedal.ImplicitDAE(residual, 10), start


def test_an_implicit_problem_of_index_2_is_noticed_and_solved():
    problem, start = sliding_pivot()
    sol = daedal.solve(problem, (0.0, 5.0), (start, None), rtol=1e-6, atol=1e-6, correct_initial=True)
    fine = daedal.solve(problem, (0.0, 5.0), (start, None), rtol=1e-9, atol=1e-9, correct_initial=True)
    assert sol.success and sol.t[-1] == 5.0 and sol.stats.steps < 600
    a, b, x, y, va, vb, vx, vy = sol.y[:8]
    np.testing.assert_allclose(b, 0.5 * np.sin(a), atol=1e-5)
    np.testing.assert_allclose((x - a) ** 2 + (y - b) ** 2, 1.0, atol=1e-5)
    energy = 0.5 * (va**2 + vb**2 + vx**2 + vy**2) + 9.81 * (b + y)
    np.testing.assert_allclose(energy, energy[0], atol=1e-3)
    np.testing.assert_allclose(sol.y[:8, -1], fine.y[:8, -1], atol=1e-3)


# --- what the run shows -----------------------------------------------------------------------------------------------


def reaches_order(orders, sizes, longest=math.inf):
    """The steps at which a watch stops a run that has these orders and sizes at its looks; None if it does not."""
    watch = _Watch(FIRST_LOOK, longest)
    for order, size in zip(orders, sizes, strict=True):
        steps = watch.due
        if watch.stops(steps, 0, order, size):
            return steps
    return None


def test_low_orders_are_seen_after_some_looks():
    assert reaches_order([2, 1, 2, 2], [1.0] * 4) == FIRST_LOOK * 2 ** (MOST_LOW - 1)
    assert reaches_order([2, 2, LOW_ORDER + 1, 2, 2], [1.0] * 5) is None
    assert reaches_order([1, 1, 1, 1], [1.0, 2 * SOON, 4 * SOON**2, 8 * SOON**3]) is None
    assert reaches_order([1, 1, 1, 1], [1.0] * 4, longest=1.0) is None


def test_rejections_are_seen_at_once():
    watch = _Watch(FIRST_LOOK, 0.0)
    assert not watch.stops(25, 25, 3, 1.0)
    assert watch.stops(50, 51, 3, 1.0) and "26 attempts failed against 25 accepted steps" in watch.reason


@pytest.fixture
def stuck(monkeypatch):
    """A choice that begins with a DASSL of order 2."""
    methods = {"dassl": daedal.methods.DASSL(max_order=2), "radau": daedal.methods.Radau()}
    monkeypatch.setattr(first_order_choice, "first_method", lambda problem, rtol: "dassl")
    monkeypatch.setattr("daedal.driver.first_order.first_method", lambda problem, rtol: "dassl")
    monkeypatch.setattr("daedal.driver.first_order.automatic_methods", lambda wishes: methods)


@pytest.mark.parametrize("backward", [False, True])
def test_low_orders_hand_over_in_mid_run(stuck, backward):
    problem = daedal.ImplicitDAE(lambda t, y, yp: [yp[0] - y[1], yp[1] + y[0]], 2)
    span = (0.0, -20.0) if backward else (0.0, 20.0)
    sol = daedal.solve(problem, span, ([0.0, 1.0], [1.0, 0.0]), rtol=1e-7, atol=1e-7)
    assert sol.method == "DASSL, then Radau"
    assert "DASSL was replaced by Radau at t = " in sol.message
    assert np.all(np.diff(sol.t) * (-1.0 if backward else 1.0) > 0.0) and sol.t[-1] == span[1]
    np.testing.assert_allclose(sol.y[0], np.sin(sol.t), atol=1e-4)
    times = np.linspace(*span, 333)
    np.testing.assert_allclose(sol(times)[0], np.sin(times), atol=1e-4)
    asked = daedal.solve(problem, span, ([0.0, 1.0], [1.0, 0.0]), rtol=1e-7, atol=1e-7, t_eval=times)
    np.testing.assert_array_equal(asked.t, times)
    np.testing.assert_array_equal(asked.y, sol(times))
    assert asked.stats.steps == sol.stats.steps == sol.history.h.size


def test_events_are_neither_lost_nor_doubled_where_methods_change(stuck):
    problem = daedal.ImplicitDAE(lambda t, y, yp: [yp[0] - y[1], yp[1] + y[0]], 2)
    sol = daedal.solve(problem, (0.0, 20.0), ([0.0, 1.0], [1.0, 0.0]), rtol=1e-7, atol=1e-7, events=lambda t, y: y[0])
    assert sol.method == "DASSL, then Radau"
    np.testing.assert_allclose([event.t for event in sol.events], np.pi * np.arange(1, 7), atol=1e-4)


def test_the_limit_of_steps_counts_both_methods(stuck):
    problem = daedal.ImplicitDAE(lambda t, y, yp: [yp[0] - y[1], yp[1] + y[0]], 2)
    with pytest.raises(daedal.IntegrationError) as caught:
        daedal.solve(problem, (0.0, 1e3), ([0.0, 1.0], [1.0, 0.0]), rtol=1e-7, atol=1e-7, max_steps=120)
    assert caught.value.solution.stats.steps == 120 and "limit of 120 steps" in str(caught.value)


def test_what_stops_one_method_is_tried_with_the_other(monkeypatch):
    """Radau is given a matrix of the wrong sign behind t = 1/2, so that its Newton method fails there."""
    original = daedal.methods.Radau.prepare

    def prepare(self, equations):
        run = original(self, equations)
        inner = run.integrate
        run.integrate = lambda task: inner(task) if task.t_span[0] > 0.0 else _failed(inner, task)
        return run

    def _failed(inner, task):
        from dataclasses import replace

        from daedal.kernels.endings import Ending

        outcome = inner(replace(task, t_span=(0.0, 0.5), t_stop=0.5))
        outcome.reason = Ending.NEWTON_FAILED
        return outcome

    monkeypatch.setattr(daedal.methods.Radau, "prepare", prepare)
    sol = solve_decay(problem=daedal.ImplicitDAE(decay, 2, names=["a", "b"]), **SHARP)
    assert sol.method == "Radau, then DASSL"
    assert "Radau was replaced by DASSL at t = 0.5: Newton's iteration for the next step did not" in sol.message
    np.testing.assert_allclose(sol.y, np.exp(np.outer([-1.0, -2.0], sol.t)), atol=1e-4)


def test_what_stops_both_methods_is_told_once():
    problem = daedal.ImplicitDAE(lambda t, y, yp: [yp[0] - y[0] ** 2], 1)
    with pytest.raises(daedal.IntegrationError, match="singularity") as caught:
        daedal.solve(problem, (0.0, 2.0), ([1.0], [1.0]))
    message = str(caught.value)
    assert "(the start)" not in message and "replaced by" not in message
    assert caught.value.solution.t[-1] == pytest.approx(1.0, abs=1e-6)


# --- signs that the tolerance does not resolve ------------------------------------------------------------------------


@pytest.mark.parametrize("t1", [4e10, 1e11])
@pytest.mark.parametrize(("rtol", "atol"), [(1e-3, 1e-5), (1e-4, 1e-5), (1e-4, 1e-6), (1e-6, 1e-5)])
def test_robertson_with_a_coarse_atol_does_not_end_in_negative_concentrations(rtol, atol, t1):
    """Below its atol y1 may take either sign, and the negative one grows to -1e7."""
    model = library.robertson()
    sol = daedal.solve(model.problem, (0.0, t1), model.initial, rtol=rtol, atol=atol)
    assert sol.success and sol.y.min() > -atol
    np.testing.assert_allclose(sol.y[2, -1], 1.0, atol=1e-5)


def test_a_sign_that_was_not_resolved_is_told():
    model = library.robertson()
    sol = daedal.solve(model.problem, (0.0, 1e11), model.initial, method="radau", rtol=1e-6, atol=1e-5)
    assert sol.y.min() < -1e6  # what a method that was asked for finds, but not without a word
    assert "y1 was below its atol from t = " in sol.message and "Use a smaller atol" in sol.message
    automatic = daedal.solve(model.problem, (0.0, 1e11), model.initial, rtol=1e-9, atol=3e-5)
    assert "This is the result of DASSL instead of Radau" in automatic.message
    assert automatic.y.min() > -1e-3
    coarser = daedal.solve(model.problem, (0.0, 1e11), model.initial, rtol=1e-9, atol=1e-4)
    assert coarser.y.min() < -1e6 and "y1 was below its atol from t = " in coarser.message  # DASSL finds it as well


@pytest.mark.parametrize("rtol", [1e-4, 1e-6])
def test_what_went_astray_begins_anew_with_dassl(rtol):
    """An atol above the largest value of y2: the others follow a branch that explodes."""
    model = library.robertson()
    sol = daedal.solve(model.problem, (0.0, 40.0), model.initial, rtol=rtol, atol=1e-3)
    assert sol.method == DASSL and "Rosenbrock (RODAS5P), order 5 had stopped at t = 0.00" in sol.message
    assert sol.y[0, -1] == pytest.approx(0.7158, abs=1e-3)


def test_the_index_is_judged_for_the_parameters_of_a_run():
    problem = daedal.ImplicitDAE(
        lambda t, y, yp, p: [yp[0] - y[1], p[0] * y[1] + y[0] - np.cos(t)], 2, params=np.array([1.0])
    )
    found = {}
    for order in ((1.0, 0.0), (0.0, 1.0)):
        solver = daedal.prepare(problem)
        for p in order:
            sol = solver.solve((0.0, 1.0), ([1.0, 0.0], None), np.array([p]))
            found.setdefault(p, []).append((sol.method, sol.y[:, -1].tolist()))
    assert found[0.0][0] == found[0.0][1] and found[1.0][0] == found[1.0][1]
    assert "Radau" in found[0.0][0][0] and "Rosenbrock" in found[1.0][0][0]
    method = daedal.prepare(problem, method="rosenbrock")
    method.solve((0.0, 1.0), ([1.0, 0.0], None), np.array([1.0]))
    with pytest.raises(daedal.InvalidProblemError, match="index 2"):
        method.solve((0.0, 1.0), ([1.0, 0.0], None), np.array([0.0]))


def test_a_sign_that_changes_for_a_reason_is_left_alone():
    """A pulse up, a rest within atol, a pulse down."""

    def residual(t, y, yp):
        return [yp[0] + y[0] - 20.0 * (math.exp(-((t - 1.0) ** 2)) - math.exp(-((t - 30.0) ** 2)))]

    slope = 20.0 * (math.exp(-1.0) - math.exp(-900.0))
    sol = daedal.solve(daedal.ImplicitDAE(residual, 1), (0.0, 33.0), ([0.0], [slope]), rtol=1e-9, atol=1e-2, max_step=1)
    inside = np.abs(sol.y[0]) <= 1e-2
    assert inside.sum() > 8 and sol.y.max() > 1.0 and sol.y.min() < -1.0
    assert sol.method == RADAU and "Use a smaller" not in sol.message
    assert sol.message.endswith("changed its sign; a second run, with DASSL, has the same result.")


def rests_and_pulses(*pulses):
    """y' = -y + pulses of these signs, 28 apart: rests within atol between them."""

    def residual(t, y, yp):
        return [yp[0] + y[0] - 20.0 * sum(sign * math.exp(-((t - 1.0 - 28 * k) ** 2)) for k, sign in enumerate(pulses))]

    return daedal.ImplicitDAE(residual, 1), (0.0, 28.0 * len(pulses)), ([0.0], [20.0 * math.exp(-1.0)])


@pytest.fixture
def second_runs(monkeypatch):
    """The second runs that are made, by the method of the first."""
    made, again = [], first_order.FirstOrderPlan._with_dassl
    monkeypatch.setattr(
        first_order.FirstOrderPlan, "_with_dassl", lambda self, request: made.append(self.first) or again(self, request)
    )
    return made


def test_oscillation_through_zero_is_no_unresolved_sign(second_runs):
    options = {"rtol": 1e-9, "atol": 1e-2, "max_step": 1}
    once = daedal.solve(*rests_and_pulses(1.0, -1.0), **options)
    assert second_runs == ["radau"] and "second run" in once.message
    again = daedal.solve(*rests_and_pulses(1.0, -1.0, 1.0), **options)
    assert second_runs == ["radau"] and "sign" not in again.message and again.method == RADAU


def test_a_run_with_dassl_is_not_repeated_with_it(second_runs, monkeypatch):
    monkeypatch.setattr(first_order, "first_method", lambda problem, rtol: "dassl")
    sol = daedal.solve(*rests_and_pulses(1.0, -1.0), rtol=1e-9, atol=1e-2, max_step=1)
    assert sol.method == DASSL and second_runs == []
    assert "then changed sign" in sol.message and "second run" not in sol.message


def test_a_second_run_that_differs_before_the_sign_was_lost_replaces_nothing(monkeypatch):
    again = first_order.FirstOrderPlan._with_dassl

    def worse(self, request):
        found = again(self, request)
        found.y, found.dense = found.y + 100.0, None
        return found

    monkeypatch.setattr(first_order.FirstOrderPlan, "_with_dassl", worse)
    sol = daedal.solve(*rests_and_pulses(1.0, -1.0), rtol=1e-9, atol=1e-2, max_step=1)
    assert sol.method == RADAU and abs(sol.y[0, -1]) < 1.0
    assert sol.message.endswith("A second run, with DASSL, ends at other values.")


@pytest.mark.parametrize(("last", "left"), [(3e11, 0.5), (3e8, None)])
def test_growth_beyond_all_bounds_after_a_failure_is_no_solution(last, left):
    """As in the family index_two of the soak, numbers 700147 and 700567."""
    from daedal.driver.first_order_output import runaway

    def segment(failure, t):
        return SimpleNamespace(outcome=SimpleNamespace(failure=failure, t_reached=t))

    outcome = SimpleNamespace(t=np.array([0.0, 0.5, 1.0]), y=np.array([[1.0, 2.0, last], [0.0, 1.0, 1.0]]))
    plan = SimpleNamespace(atol=np.full(2, 1e-9))
    assert runaway(plan, [segment("error test", 0.5), segment(None, 1.0)], outcome) == left
    assert runaway(plan, [segment(None, 1.0)], outcome) is None
