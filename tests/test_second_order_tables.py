"""The tables of Wunderlich's thesis, and the control of step size and order.

Source: L. Wunderlich, Numerical solution of second order differential-algebraic equations, diploma thesis, TU Berlin,
2005. Tables 2.2 to 3.2 belong to example 2.4.7, tables 8.1 to 8.5 to example 1. The bands of the latter are those of an
independent implementation of the same rules: norms and first steps of the thesis are not known in detail.
"""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import daedal
from daedal import Collocation, MechanicalSystem, ModifiedBDF, SecondOrderDAE, solve
from daedal.methods.thesis_control import step_after_failure, step_after_success

# --- example 2.4.7: prescribed steps ------------------------------------------------------------------------------


def circle(t, x, xp, xpp):
    return np.array([xpp[0] - 2 * x[1] - x[2] * x[0], xpp[1] + 2 * x[0] - x[2] * x[1], x[0] ** 2 + x[1] ** 2 - 1])


CIRCLE = SecondOrderDAE(circle, 3, names=["y1", "y2", "lam"]).compiled()
CIRCLE_START = ([np.sin(1.0), np.cos(1.0), -4.0], [2 * np.cos(1.0), -2 * np.sin(1.0), 0.0])


def lambda_errors(family, steps, order):
    grid = 1.0 + np.concatenate([[0.0], np.cumsum(steps)])
    method = ModifiedBDF(grid=grid, max_order=order, family=family)
    sol = solve(CIRCLE, (1.0, grid[-1]), CIRCLE_START, method=method)
    return np.abs(sol.x[2] + 4.0 * sol.t**2)[1:]


def assert_printed(found, printed):
    """2.5e-4 relative for entries above 1, which are printed with four digits, else 1.5 of the last digit."""
    shown = [(a, b) for a, b in zip(found, printed, strict=True) if b is not None]
    for a, b in shown:
        assert abs(a - b) <= (2.5e-4 * b if b > 1.0 else 1.5e-4), (a, b)


TABLE_2_2 = {
    0.005: [2.0400, 0.0409, 0.0419, 0.0429, None, 0.0451, None, 0.0474, None, 0.0497],
    0.01: [2.0810, 0.0836, 0.0877, 0.0921, 0.0967],
}


@pytest.mark.parametrize("h", TABLE_2_2)
def test_table_2_2(h):
    """Implicit Euler with constant steps; printed 0.0474 and 0.0836 are 0.0473 and 0.0835."""
    assert_printed(lambda_errors("ordinary", np.full(round(0.05 / h), h), 1), TABLE_2_2[h])


STEPS_2_3 = 1e-3 * np.array([1, 1, 0.2, 0.04, 0.008, 0.008, 0.016, 0.032, 0.064, 0.064])
TABLE_2_3 = [2.0080, 0.0080, 8.0303, 8.0348, 8.0357, 0.0001, 1.0047, 1.0048, 1.0052, 0.0006]
TABLE_3_1 = [0.0080, 0.0120, 0.0057, 0.0012, 0.0003, 0.0001, 0.0002, 0.0004, 0.0007, 0.0008]


def test_table_2_3():
    assert_printed(lambda_errors("ordinary", STEPS_2_3, 1), TABLE_2_3)


@pytest.mark.parametrize("family", ["sand", "direct"])
def test_table_3_1(family):
    """The direct formula of order 1 is Sand's."""
    assert_printed(lambda_errors(family, STEPS_2_3, 1), TABLE_3_1)


TABLE_3_2 = {
    ("ordinary", 0.005): [2.0400, 4.0190, 1.0120, 0.0012, None, 0.0013, None, 0.0013, None, 0.0014],
    ("sand", 0.005): [0.0402, 0.0010, 0.0010, 0.0009, None, 0.0009, None, 0.0009, None, 0.0010],
    ("ordinary", 0.01): [2.0810, 4.0350, 1.0280, 0.0052, 0.0054],
    ("sand", 0.01): [0.0809, 0.0041, 0.0041, 0.0038, 0.0038],
}


@pytest.mark.parametrize("family, h", TABLE_3_2)
def test_table_3_2(family, h):
    """Order 1 in the first step, then 2."""
    assert_printed(lambda_errors(family, np.full(round(0.05 / h), h), 2), TABLE_3_2[family, h])


def test_positions_at_the_end_of_table_3_2():
    """2.0e-5 for ordinary, 9.2e-6 for modified BDF at t = 1.05, h = 0.005."""
    for family, expected in (("ordinary", 2.0e-5), ("sand", 9.2e-6)):
        sol = solve(CIRCLE, (1.0, 1.05), CIRCLE_START, method=ModifiedBDF(2, family), fixed_step=0.005)
        exact = np.array([np.sin(1.05**2), np.cos(1.05**2)])
        assert np.max(np.abs(sol.x[:2, -1] - exact)) == pytest.approx(expected, rel=0.06)


# --- example 1: with step control ---------------------------------------------------------------------------------


def original(t, x, xp, xpp):
    """(8.1) in (q1, q2, lambda)."""
    return np.array(
        [
            xpp[0] + x[0] + 2 * x[0] * xp[0] * xp[1] + 2 * x[0] * x[2],
            xpp[1] + xp[0] - 2 * x[0] * x[1] ** 2 + 2 * x[1] * x[2],
            x[0] ** 2 + x[1] ** 2 - 1,
        ]
    )


def stabilised(t, x, xp, xpp):
    """(8.4), GGL of second order, in (q1, q2, eta, lambda), with eta' where the thesis prints lambda'."""
    q1, q2, eta, lam, slope = x[0], x[1], x[2], x[3], xp[2]
    u1, u2 = xp[0] + 2 * q1 * eta, xp[1] + 2 * q2 * eta
    return np.array(
        [
            xpp[0] + q1 + 2 * q1 * u1 * u2 + 2 * q1 * lam + 2 * xp[0] * eta + 2 * q1 * slope,
            xpp[1] + u1 - 2 * q1 * q2**2 + 2 * q2 * lam + 2 * xp[1] * eta + 2 * q2 * slope,
            q1**2 + q2**2 - 1,
            2 * q1 * u1 + 2 * q2 * u2,
        ]
    )


def extended(t, x, xp, xpp):
    """(8.5), the minimal extension, in (q1, q2, w1, w2, lambda)."""
    q1, q2, w1, w2, lam, v1 = x[0], x[1], x[2], x[3], x[4], xp[0]
    f1, f2 = -q1 - 2 * q1 * v1 * w1 - 2 * q1 * lam, -v1 + 2 * q1 * q2**2 - 2 * q2 * lam
    return np.array(
        [
            xpp[0] - f1,
            w2 - f2,
            q1**2 + q2**2 - 1,
            2 * q1 * v1 + 2 * q2 * w1,
            2 * v1**2 + 2 * q1 * f1 + 2 * w1**2 + 2 * q2 * f2,
        ]
    )


ORIGINAL = SecondOrderDAE(original, 3, names=["q1", "q2", "lam"]).compiled()
STABILISED = SecondOrderDAE(stabilised, 4).compiled()
EXTENDED = SecondOrderDAE(extended, 5).compiled()
TIMES = np.linspace(0.0, 1.0, 11)
ATOL_8_1 = [1e-4, 1e-4, 1e-2, 1e-2, 1e-2]
RUNS = {  # problem, start, position of lambda, rtol, atol
    "8.1": (ORIGINAL, ([0.0, 1.0, 0.0], [1.0, 0.0, 0.0]), 2, 1e-4, ATOL_8_1),
    "8.3": (EXTENDED, ([0.0, 1.0, 0.0, -1.0, 0.0], [1.0, 0, 0, 0, 0]), 4, 1e-4, [1e-4, 1e-4, 1e-3, 1e-2, 1e-2, 1e-2]),
    "8.4": (ORIGINAL.with_order([2, 2, 2]), ([0.0, 1.0, 0.0], [1.0, 0.0, 1.0]), 2, 1e-4, [*ATOL_8_1, 1e-1]),
}


def method_of(table, controller):
    return Collocation("radau", 2, controller=controller) if table == "8.4" else ModifiedBDF(controller=controller)


def run(table, controller, scale=1.0, **options):
    problem, start, _, rtol, atol = RUNS[table]
    method = method_of(table, controller)
    tolerances = {"rtol": scale * rtol, "atol": scale * np.array(atol)}
    return solve(problem, (0.0, 1.0), start, method=method, t_eval=TIMES, t_stop=np.inf, **tolerances, **options)


def cumulative(sol):
    """Steps needed to reach 0.1, 0.2, ..., 1."""
    starts = sol.history.t - sol.history.h
    return [int(np.sum(starts < t - 1e-12)) for t in TIMES[1:]]


def deviations(sol, multiplier):
    return np.abs(sol.x[0] - np.sin(sol.t)), np.abs(sol.x[multiplier] - np.sin(sol.t) * np.cos(sol.t))


def test_table_8_1():
    sol = run("8.1", "thesis")
    steps, (q1, lam) = cumulative(sol), deviations(sol, 2)
    assert steps[:2] == [13, 14] and 18 <= steps[-1] <= 30
    assert q1.max() <= 1.2e-3 and lam.max() <= 2e-2
    assert list(sol.history.order) == [1] + [2] * (len(sol.history.order) - 1)
    assert sol.stats.rejected <= 6


@pytest.mark.parametrize("first_step", [0.98e-4, 1.118e-4, 1.39e-4, 1.414e-4, 1.94e-4])
def test_table_8_1_for_all_first_steps_of_its_pattern(first_step):
    """Four start steps and then doubling: 13 steps to 0.1, 14 to 0.2."""
    steps = cumulative(run("8.1", "thesis", first_step=first_step))
    assert steps[:2] == [13, 14] and 18 <= steps[-1] <= 30


def test_table_8_2():
    """GGL at the thesis' loose tolerances. The printed failure (q1 off by 1.27) is not one of the method."""
    options = {"rtol": [1e-2, 1e-2, 1e-1, 1, 1, 1], "atol": [1e-3, 1e-3, 1e-2, 1, 1, 1]}
    for controller in ("thesis", "default"):
        method = ModifiedBDF(controller=controller)
        sol = solve(STABILISED, (0.0, 1.0), ([0, 1, 0, 0], [1, 0, 0, 0]), method=method, t_eval=TIMES, **options)
        q1, lam = deviations(sol, 3)
        assert q1.max() <= 1e-2 and lam.max() <= 0.2
        assert sol.stats.steps <= 25
        assert np.abs(sol.x[2]).max() < 1e-2  # eta


def test_table_8_3():
    sol = run("8.3", "thesis")
    steps, (q1, lam) = cumulative(sol), deviations(sol, 4)
    assert steps[:2] == [13, 14] and 21 <= steps[-1] <= 37
    assert q1.max() <= 1.2e-3 and lam.max() <= 1e-2


@pytest.mark.parametrize("first_step", [1.2e-4, 1.39e-4, 1.5e-4])
def test_tables_8_4_and_8_5(first_step):
    sol = run("8.4", "thesis", first_step=first_step)
    steps, (q1, lam) = cumulative(sol), deviations(sol, 2)
    assert steps[:2] == [12, 13] and 18 <= steps[-1] <= 24
    assert q1.max() <= 3e-5 and lam.max() <= 4e-3
    assert np.abs(sol.xp[:2] - [np.cos(TIMES), -np.sin(TIMES)]).max() <= 2e-4
    assert np.abs(sol.xp[2] - np.cos(2.0 * TIMES)).max() <= 2e-1


@pytest.mark.parametrize("table", RUNS)
def test_the_default_controller_needs_fewer_steps_for_the_same_accuracy(table):
    """The same method with tolerances made smaller until q1 and lambda are at least as good as the thesis'."""
    options = {"first_step": 1.39e-4} if table == "8.4" else {}
    thesis, multiplier = run(table, "thesis", **options), RUNS[table][2]
    wanted = [e.max() for e in deviations(thesis, multiplier)]
    for scale in (1.0, 0.5, 0.2, 0.1, 0.01, 1e-3, 5e-4, 2e-4, 1e-4):
        sol = run(table, "default", scale)
        if all(e.max() <= limit for e, limit in zip(deviations(sol, multiplier), wanted, strict=True)):
            break
    else:
        pytest.fail("never as accurate")
    assert sol.stats.steps < thesis.stats.steps
    assert sol.stats.rejected <= thesis.stats.rejected


# --- the columns of DASSL -----------------------------------------------------------------------------------------


def example_force(t, q, v):
    return np.array([-q[0] - 2 * q[0] * v[0] * v[1], -v[0] + 2 * q[0] * q[1] ** 2])


def unit_circle(t, q):
    return np.array([q[0] ** 2 + q[1] ** 2 - 1.0])


MECHANISM = MechanicalSystem(1.0, example_force, unit_circle, n_q=2, n_constraints=1).compiled()


def test_dassl_column_of_table_8_1():
    """On the first-order form of index 3 DASSL needs more steps than modified BDF, and its multiplier is useless.

    Printed: 59 steps against 26, lambda off by up to 2.3e-1 against 6e-3. Daedal's DASSL leaves lambda out of the error
    test of index-3 problems, so it needs fewer steps; the relation stays.
    """
    options = {"rtol": 1e-4, "atol": [1e-4, 1e-4, 1.0, 1e-2, 1e-2], "t_eval": TIMES, "t_stop": np.inf}
    dassl = solve(ORIGINAL, (0.0, 1.0), RUNS["8.1"][1], method="dassl", **options)
    q1, lam = deviations(dassl, 2)
    modified = run("8.1", "thesis")
    assert 20 <= dassl.stats.steps <= 80 and dassl.stats.steps > modified.stats.steps
    assert q1.max() <= 5e-3 and 2e-2 <= lam.max() <= 0.5
    assert lam.max() > 3.0 * deviations(modified, 2)[1].max()


@pytest.mark.parametrize(
    "formulation, printed_q, printed_lam", [("ggl", 4.7e-4, 3.1e-3), ("minimal_extension", 2e-4, 1.4e-3)]
)
def test_dassl_columns_of_tables_8_2_and_8_3(formulation, printed_q, printed_lam):
    """Printed errors, and not more steps than printed for the minimal extension (30; 433 for GGL)."""
    sol = solve(
        MECHANISM,
        (0.0, 1.0),
        ([0, 1], [1, 0]),
        method="dassl",
        formulation=formulation,
        rtol=1e-4,
        atol=1e-4,
        t_eval=TIMES,
    )
    assert np.abs(sol.q[0] - np.sin(TIMES)).max() <= printed_q
    assert np.abs(sol.lam[0] - np.sin(TIMES) * np.cos(TIMES)).max() <= printed_lam
    assert sol.stats.steps <= 35


# --- the rules of the thesis --------------------------------------------------------------------------------------


def test_step_after_a_failure():
    """c = 1: 0.9 (2 EST)^(-1/(k+1)) within [1/4, 0.9]; afterwards a quarter."""
    rule = step_after_failure.py_func
    assert rule(1.0, 2, 4.0, 1) == pytest.approx(0.9 * 8.0 ** (-1 / 3))
    assert rule(1.0, 1, 2.0, 1) == pytest.approx(0.45)
    assert rule(1.0, 2, 1e6, 1) == 0.25
    assert rule(1.0, 2, 0.501, 1) == pytest.approx(0.9, rel=1e-3)
    assert rule(1.0, 2, 1.1, 2) == rule(1.0, 1, 1e3, 3) == 0.25
    assert rule(-2.0, 2, 4.0, 1) == pytest.approx(-1.8 * 8.0 ** (-1 / 3))


def test_step_after_a_success():
    """Doubled after two in a row whatever the error; after the first one by r: 2, unchanged, or clip(r, 0.5, 0.9)."""
    rule = step_after_success.py_func
    assert rule(1.0, 2, 0.999, 2) == rule(1.0, 1, 0.999, 5) == 2.0
    assert rule(1.0, 2, 1.0 / 16.0, 1) == 2.0  # r = 2
    assert rule(1.0, 2, 0.4, 1) == 1.0
    assert rule(1.0, 1, 0.72, 1) == pytest.approx(1.44**-0.5)
    assert rule(1.0, 2, 0.55, 1) == 0.9
    assert rule(1.0, 1, 1.0, 1) == pytest.approx(2.0**-0.5)


def test_start_and_doubling_of_the_thesis_controller():
    """Four equal steps BDF(2,1), (3,1,2), (1,2,2), (2,2,2), then doubling until the first failure."""
    sol = run("8.1", "thesis", first_step=1e-4)
    h = sol.history.h
    np.testing.assert_allclose(h[:4], 1e-4, rtol=1e-12)
    growth = h[4:12] / h[3:11]
    np.testing.assert_allclose(growth, 2.0, rtol=1e-10)


def kicked(t, x, xp, xpp):
    """A jump of the force at t = 1: no step across it passes the error test at order 2."""
    return np.array([xpp[0] + x[0] - (1e6 if t > 1.0 else 0.0)])


def test_order_drops_to_1_after_the_third_failure_in_a_row():
    problem = SecondOrderDAE(kicked, 1, order=[2]).compiled()
    method = ModifiedBDF(controller="thesis")
    sol = solve(problem, (0.0, 1.5), ([1.0], [0.0]), method=method, rtol=1e-3, atol=[1e-3, 1e3], max_steps=20000)
    order, t = sol.history.order, sol.history.t
    assert np.all(order[1:][t[1:] < 0.8] == 2)
    dropped = np.flatnonzero(order[1:] == 1) + 1
    assert dropped.size and np.all(np.abs(t[dropped] - 1.0) < 0.2)
    assert order[-1] == 2  # and comes back


# --- the default controller ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("tol", [1e-3, 1e-5, 1e-7, 1e-9])
def test_no_regular_rejections(tol):
    sol = solve(CIRCLE, (1.0, 4.0), CIRCLE_START, rtol=tol, atol=tol)
    assert sol.stats.rejected <= 0.1 * sol.stats.steps + 4
    ratios = sol.history.h[1:] / sol.history.h[:-1]
    assert ratios.max() <= 4.0 + 1e-9
    exact = np.array([np.sin(sol.t**2), np.cos(sol.t**2)])
    assert np.abs(sol.x[:2] - exact).max() < 1000.0 * tol


@given(factor=st.floats(-5.0, 5.0))
def test_a_change_of_the_unit_of_time_changes_nothing(factor):
    """t = c s with c a power of two."""

    def scaled(t, x, xp, xpp, c):
        v1, v2 = xp[0] / c[0], xp[1] / c[0]
        return np.array(
            [
                xpp[0] / c[0] ** 2 + x[0] + 2 * x[0] * v1 * v2 + 2 * x[0] * x[2],
                xpp[1] / c[0] ** 2 + v1 - 2 * x[0] * x[1] ** 2 + 2 * x[1] * x[2],
                x[0] ** 2 + x[1] ** 2 - 1,
            ]
        )

    runs = []
    for c in (1.0, 2.0 ** round(factor)):
        problem, atol = SecondOrderDAE(scaled, 3, params=np.array([c])), [1e-6, 1e-6, 1e-6, 1e-6 * c, 1e-6 * c]
        runs.append(solve(problem, (0.0, 2.0 / c), ([0, 1, 0], [c, 0, 0]), rtol=1e-6, atol=atol))
    one, other = runs
    assert abs(one.stats.steps - other.stats.steps) <= 3  # decisions on the edge may fall differently
    np.testing.assert_allclose(other.x[:2, -1], one.x[:2, -1], atol=2e-5)


def test_invalid_controllers_are_refused():
    with pytest.raises(daedal.InvalidProblemError, match="controller"):
        ModifiedBDF(controller="mine")
    with pytest.raises(daedal.InvalidProblemError, match="sand"):
        ModifiedBDF(controller="thesis", family="direct")
