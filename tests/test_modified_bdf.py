"""Modified BDF on prescribed grids: coefficients, orders on all kinds of grids, multipliers after every change.

Sources: J. Sand, Appl. Numer. Math. 42 (2002) 411-424; L. Wunderlich, Numerical solution of second order
differential-algebraic equations, diploma thesis, TU Berlin, 2005 (tables and equations are numbered as there).
"""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import daedal
from daedal import SecondOrderDAE, solve
from daedal.methods import ModifiedBDF
from daedal.methods.bdf.modified_bdf_formulas import SAND, acceleration_weights

GRIDS = ("constant", "smooth", "blocks", "alternating", "random")
EXACT = 3  # the accuracy of a velocity that is given


# --- two bodies on circles with known solutions -------------------------------------------------------------------


def circle(t, x, xp, xpp):
    """Example 2.4.7: x = (sin t^2, cos t^2), lambda = -4 t^2."""
    return np.array([xpp[0] - 2 * x[1] - x[2] * x[0], xpp[1] + 2 * x[0] - x[2] * x[1], x[0] ** 2 + x[1] ** 2 - 1])


def body(t, x, xp, xpp):
    """Example 1, (8.1): x = (sin t, cos t), lambda = sin t cos t."""
    return np.array(
        [
            xpp[0] + x[0] + 2 * x[0] * xp[0] * xp[1] + 2 * x[0] * x[2],
            xpp[1] + xp[0] - 2 * x[0] * x[1] ** 2 + 2 * x[1] * x[2],
            x[0] ** 2 + x[1] ** 2 - 1,
        ]
    )


def circle_exact(t):
    return np.array([np.sin(t**2), np.cos(t**2), -4 * t**2]), 2 * t * np.array([np.cos(t**2), -np.sin(t**2), 0 * t])


def body_exact(t):
    return np.array([np.sin(t), np.cos(t), np.sin(t) * np.cos(t)]), np.array([np.cos(t), -np.sin(t), 0 * t])


PROBLEMS = {
    "circle": (SecondOrderDAE(circle, 3).compiled("numba"), circle_exact, 1.0),
    "body": (SecondOrderDAE(body, 3).compiled("numba"), body_exact, 0.0),
}


def run(name, grid, **options):
    """The solution on t_0 + grid."""
    problem, exact, t0 = PROBLEMS[name]
    times = t0 + grid
    return solve(problem, (times[0], times[-1]), exact(t0), method=ModifiedBDF(grid=times, **options))


def errors(name, sol):
    """Errors of positions, velocities and multiplier at all nodes, shape (3, nt)."""
    x, xp = PROBLEMS[name][1](sol.t)
    dx, dv = np.abs(sol.x - x), np.abs(sol.xp - xp)[:2]
    return np.array([dx[:2].max(axis=0), dv.max(axis=0), dx[2]])


def unit_grid(kind, n, seed=0):
    """n steps from 0 to 1; successive steps have ratios in [1/4, 4] if random, in [2/3, 3/2] if gentle."""
    i = np.arange(n)
    steps = {
        "constant": np.ones(n),
        "smooth": 1.0 + 0.5 * np.sin(2.0 * np.pi * i / n),
        "blocks": np.where(i // 4 % 2, 2.0, 1.0),
        "alternating": np.where(i % 2, 2.0, 1.0),
        "random": 2.0 ** np.random.default_rng(seed).uniform(-1.0, 1.0, n),
        "gentle": 1.5 ** np.random.default_rng(seed).uniform(-0.5, 0.5, n),
    }[kind]
    times = np.concatenate([[0.0], np.cumsum(steps)])
    return times / times[-1]


START = 0.25


def started_grid(kind, n, seed=0):
    """A start with t_i = (i / m)^2 / 4, whose first steps are O(h^2), then a grid of the kind up to 1.

    The first step has order 1 or 2 for lack of data, the next one order 2 or 3 and so on. With steps of O(h^2) there
    what they leave is below O(h^5), and all that is measured after t = 1/4 is the order on the grid.
    """
    m = n // 2
    return np.concatenate([START * (np.arange(m + 1) / m) ** 2, START + (1.0 - START) * unit_grid(kind, n, seed)[1:]])


def measured_orders(name, kind, counts, **options):
    """Observed orders of positions, velocities and multiplier after the start; mean of four random grids."""
    seeds = range(4) if kind in ("random", "gentle") else (0,)
    logs = []
    for n in counts:
        sols = [run(name, started_grid(kind, n, seed), **options) for seed in seeds]
        after = [errors(name, sol)[:, sol.t - sol.t[0] > START].max(axis=1) for sol in sols]
        logs.append(np.mean(np.log(after), axis=0))
    return -np.polyfit(np.log(counts), logs, 1)[0]


# --- coefficients -------------------------------------------------------------------------------------------------


def weights(t, nodes, k, orders):
    return acceleration_weights(SAND, t, nodes, k, orders)


def alphas(times, case):
    """alpha_1, alpha_2 of the formula BDF(case) on times t_n > t_{n-1} > ...; None at a pole."""
    *past, k = case
    orders = np.array([*reversed(past), EXACT], dtype=np.int64)
    found, b0, _, b2 = weights(times[0], np.array(times[1:]), k, orders)
    if not found:
        return None
    h, before = times[0] - times[1], times[1] - times[2]
    second = b2 * before * (h + before)
    return h * b0 - second / (h + before), second


def table_3_3(times, case):
    """The printed formulas, with the sign of BDF(1,2,2) corrected; None at a pole."""
    t, t1, t2, t3, t4 = times
    a, b = 2 * t - t1 - t2, 2 * t1 - t2 - t3
    if case == (2, 1):
        return 2.0, 0.0
    if case == (1, 1):
        return 2 * (t - t1) / (t - t2), 0.0
    if case == (3, 1, 2):
        return 2 * (t2 - t) / a, 2 * a
    if case == (1, 2, 2):
        first = 2 * (3 * t - t1 - t2 - t3) * (t - t1) * (t2 - t3) / (a * (t - t3) * b) + 2 * (t1 - t2) / b
        return first, 2 * (t - t2) * (t1 - t2) * (2 * (t - t1) * a - (t - t3) * (t1 - t2)) / (b * a * (t - t3))
    if case == (2, 2, 2):
        bottom = a * (t - t3) * (t1 - t2) - (t - t1) * (t1 - t4) * (t2 - t3)
        return 1.0, (t - t2) * (t1 - t2) * (2 * a * (t - t1) - (t1 - t2) * (t - t3)) / bottom
    if case == (1, 1, 2):
        last = (t1 - t3) * (t - t3)
        first = 2 * (3 * t - t1 - t2 - t3) * (t - t1) / (a * (t - t3)) - 2 * a * (t1 - t2) / last
        return first, 2 * a * (t - t2) * (t1 - t2) / last
    d = (t - t3) * (t1 - t2) - (t1 - t4) * (t2 - t3)
    return 2 * (t1 - t2) * (t2 - t) / d + 2 * (t - t1) / a, 2 * a * (t - t2) * (t1 - t2) / d


CASES = [(2, 1), (1, 1), (3, 1, 2), (1, 2, 2), (2, 2, 2), (1, 1, 2), (2, 1, 2)]
ratios = st.lists(st.floats(-2.0, 2.0), min_size=4, max_size=4).map(lambda logs: 2.0 ** np.array(logs))


def past_times(steps):
    """t_n, t_{n-1}, ... for the steps h_n, h_{n-1}, ..."""
    return 0.7 - np.concatenate([[0.0], np.cumsum(steps)])


@pytest.mark.parametrize("case", CASES, ids=str)
@given(steps=ratios)
def test_the_seven_formulas_agree_with_table_3_3(case, steps):
    times = past_times(steps)
    computed = alphas(times, case)
    if computed is None:  # a pole, of which only two formulas have any
        assert case in ((2, 2, 2), (2, 1, 2))
        assume(False)
    # as the terms cancel near a pole, what is compared loses as many digits as the coefficients grow
    size = max(1.0, np.max(np.abs(computed)))
    np.testing.assert_allclose(computed, table_3_3(times, case), rtol=1e-10 * size, atol=1e-10)


@pytest.mark.parametrize(
    "case, expected",
    [
        ((2, 1), (2, 0)),
        ((1, 1), (1, 0)),
        ((3, 1, 2), (-4 / 3, 6)),
        ((1, 2, 2), (10 / 9, 4 / 9)),
        ((2, 2, 2), (1, 1)),
        ((1, 1, 2), (1 / 3, 2)),
    ],
    ids=str,
)
def test_coefficients_for_constant_steps(case, expected):
    h = 0.125
    np.testing.assert_allclose(alphas(past_times(np.full(4, h)), case), (expected[0], expected[1] * h), rtol=1e-12)


def test_poles_are_found_and_left_alone():
    assert alphas(past_times(np.ones(4)), (2, 1, 2)) is None
    assert alphas(past_times(np.array([1.0, 2.0, 4.0, 8.0])), (2, 2, 2)) is None  # three halvings
    # a run over such a grid gives the multiplier all the same
    halvings = 1e-3 * np.concatenate([[0], np.cumsum([8, 8, 8, 8, 8, 4, 2, 1, 1, 1, 1, 1, 1])])
    sol = run("circle", halvings, family="sand")
    assert errors("circle", sol)[2].max() < 0.2
    back_and_forth = 1e-3 * np.arange(14.0)
    sol = run("circle", back_and_forth, family="sand", orders=[1, 2, 2, 2, 1, 2, 2, 1, 2, 1, 2, 2, 2])
    assert errors("circle", sol)[2].max() < 0.1


# --- exactness, on the numbers that the integrator computes -------------------------------------------------------


def derivatives_of_polynomial(t, x, xp, xpp, p):
    """x_0 is the polynomial with coefficients p; x_1 and x_2 are what the formulas make of its derivatives."""
    value = 0.0
    for c in p[::-1]:
        value = value * t + c
    return np.array([x[0] - value, x[1] - xpp[0], x[2] - xp[0]])


DERIVATIVES = SecondOrderDAE(derivatives_of_polynomial, 3, params=np.zeros(7), order=[2, 0, 0]).compiled("numba")


def differentiate(coefficients, grid, **options):
    """x'' and x' as a method computes them on a grid, and the exact ones."""
    coefficients = np.pad(np.array(coefficients, dtype=float), (0, 7 - len(coefficients)))  # one length: compiled once
    p = np.polynomial.Polynomial(coefficients)
    p1, p2 = p.deriv(), p.deriv(2)
    initial = ([p(grid[0]), p2(grid[0]), p1(grid[0])], [p1(grid[0]), 0.0, 0.0], [p2(grid[0]), 0.0, 0.0])
    method = ModifiedBDF(grid=grid, **options)
    sol = solve(DERIVATIVES.with_params(coefficients), (grid[0], grid[-1]), initial, method=method)
    return sol.x[1:], np.array([p2(sol.t), p1(sol.t)])


coefficient_lists = st.lists(st.floats(-1.0, 1.0), min_size=6, max_size=6).map(lambda tail: [1.0, *tail])
step_logs = st.lists(st.floats(-1.0, 1.0), min_size=12, max_size=12)


def grid_of(logs, scale=1.0):
    return np.concatenate([[0.0], np.cumsum(scale * 2.0 ** np.array(logs))])


@pytest.mark.parametrize("k", [1, 2, 3, 4, 5])
@given(logs=step_logs, coefficients=coefficient_lists)
def test_direct_formulas_are_exact_for_degree_k_plus_1_on_every_grid(k, logs, coefficients):
    computed, exact = differentiate(coefficients[: k + 2], grid_of(logs, 0.1), max_order=k)
    # the first steps have lower orders; x' for k > 3 is BDF of order k, exact for degree k only
    np.testing.assert_allclose(computed[0, k:], exact[0, k:], atol=1e-8)
    if k <= 3:
        np.testing.assert_allclose(computed[1, k:], exact[1, k:], atol=1e-9)
    # and not exact for one degree more: the test can fail
    if k < 5:
        computed, exact = differentiate([1.0] + [0.0] * (k + 1) + [1.0], grid_of(logs, 0.1), max_order=k)
        assert np.max(np.abs(computed[0, k:] - exact[0, k:])) > 1e-6


@given(logs=step_logs, orders=st.lists(st.integers(1, 5), min_size=12, max_size=12))
def test_direct_formulas_do_not_care_about_the_orders_of_the_past(logs, orders):
    computed, exact = differentiate([1.0, -2.0, 3.0], grid_of(logs, 0.1), orders=orders)
    np.testing.assert_allclose(computed[0], exact[0], atol=1e-8)


@given(logs=step_logs, orders=st.lists(st.integers(1, 2), min_size=12, max_size=12))
def test_sands_formulas_are_exact_whatever_the_orders_of_the_past(logs, orders):
    grid = grid_of(logs, 0.1)
    computed, exact = differentiate([1.0, -2.0, 3.0], grid, family="sand", orders=orders)
    np.testing.assert_allclose(computed[0], exact[0], rtol=1e-8)
    computed, exact = differentiate([1.0, 0.0, 0.0, 1.0], grid, family="sand")  # order 1 in the first step and at poles
    off = np.abs(computed[0] - exact[0])[2:] > 1e-7
    assert off.sum() < 6 and not off[:2].any()


@pytest.mark.parametrize("family", ["direct", "sand"])
def test_a_start_at_zero(family):
    """x = t^3: everything is zero at the start, which says nothing about the size of anything."""
    computed, exact = differentiate([0.0, 0.0, 0.0, 1.0], 0.1 * np.arange(13.0), family=family, max_order=2)
    np.testing.assert_allclose(computed[0, 2:], exact[0, 2:], atol=1e-9)


def test_ordinary_bdf_is_not_even_consistent_after_a_change_of_step():
    """p'' = 6 comes out as 3 in the first step, and as 6 (h + h') / (2 h) after each change."""
    grid = np.array([0.0, 0.1, 0.2, 0.3, 0.35, 0.4])
    computed, _ = differentiate([1.0, -2.0, 3.0], grid, family="ordinary", max_order=1)
    np.testing.assert_allclose(computed[0, 1:], [3.0, 6.0, 6.0, 9.0, 6.0], rtol=1e-9)


@pytest.mark.parametrize("k", [1, 2])
def test_sand_equals_ordinary_bdf_for_constant_steps_and_order(k):
    """Spec of the family: alpha = 1, or (1, h), once all velocities of the past have order k."""
    coefficients, grid = [0.3, 1.0, -2.0, 3.0, 1.5], np.arange(10) * 0.125
    sand, _ = differentiate(coefficients, grid, family="sand", max_order=k)
    ordinary, _ = differentiate(coefficients, grid, family="ordinary", max_order=k)
    np.testing.assert_allclose(sand[:, 4:], ordinary[:, 4:], rtol=1e-10, atol=1e-10)
    assert np.max(np.abs(sand[0, 1:3] - ordinary[0, 1:3])) > 0.1


# --- orders -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", GRIDS)
@pytest.mark.parametrize("k", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("name", PROBLEMS)
def test_order_k_in_positions_velocities_and_multipliers_on_every_grid(name, k, kind):
    counts = {1: (160, 320, 640), 2: (80, 160, 320), 3: (160, 320, 640), 4: (40, 80, 160), 5: (40, 80, 160)}[k]
    if name == "body" and k > 2:
        counts = (20, 40, 80) if k < 5 else (15, 30, 60)
    orders = measured_orders(name, kind, counts, max_order=k)
    assert np.all(orders > k - 0.45), orders


@pytest.mark.parametrize("k", [1, 2, 3, 4, 5])
def test_with_given_starting_values_the_order_holds_from_the_first_step_on(k):
    """All nodes but the given ones; the multiplier takes a few steps to forget the round-off of given values."""

    def start(t):
        x, xp = circle_exact(t)
        return np.concatenate([x, xp[:2]])

    worst = []
    for n in (160, 320, 640) if k == 3 else (40, 80, 160):
        sol = run("circle", unit_grid("constant", n), max_order=k, starting_values=start)
        worst.append(errors("circle", sol)[:, k + 2 :].max(axis=1))
    orders = np.log2(np.array(worst[:-1]) / np.array(worst[1:])).mean(axis=0)
    assert np.all(orders > k - 0.45), orders


@pytest.mark.parametrize("kind", [*GRIDS[:-1], "gentle"])
@pytest.mark.parametrize("k", [1, 2])
@pytest.mark.parametrize("name", PROBLEMS)
def test_sands_family_has_order_k_on_grids_without_poles(name, k, kind):
    """Poles of order 2 lie on grids that shrink by 2 three times, or with ratios 1, 1/4, 1."""
    orders = measured_orders(name, kind, (80, 160, 320), family="sand", max_order=k)
    assert np.all(orders > k - 0.2), orders


@pytest.mark.parametrize("kind", ["blocks", "alternating", "random"])
def test_ordinary_bdf_loses_the_multiplier(kind):
    counts = (80, 160, 320)
    first = measured_orders("circle", kind, counts, family="ordinary", max_order=1)
    second = measured_orders("circle", kind, counts, family="ordinary", max_order=2)
    assert np.all(first[:2] > 0.8) and first[2] < 0.2
    assert np.all(second[:2] > 1.8) and second[2] < 1.3


def test_ordinary_bdf_finds_the_multiplier_with_constant_steps_after_the_first_ones():
    for k in (1, 2):
        worst = [
            errors("circle", run("circle", unit_grid("constant", n), family="ordinary", max_order=k))[:, 5:].max(axis=1)
            for n in (320, 640)
        ]
        assert np.all(np.log2(worst[0] / worst[1]) > k - 0.2)


@pytest.mark.parametrize(
    "name, k, expected",
    [
        ("circle", 1, (2.4e-2, 1.7e-1, 7.8e-1)),
        ("circle", 2, (2.8e-4, 1.5e-3, 4.9e-3)),
        ("body", 1, (2.1e-3, 7.3e-3, 8.0e-3)),
        ("body", 2, (1.2e-5, 2.4e-5, 2.3e-5)),
    ],
)
def test_errors_of_sands_family_with_320_constant_steps(name, k, expected):
    """Recomputed independently, to two digits, largest errors of the second half (where they do not grow, of all)."""
    found = errors(name, run(name, unit_grid("constant", 320), family="sand", max_order=k))[:, 20:].max(axis=1)
    np.testing.assert_allclose(found, expected, rtol=0.06)


# --- multipliers after changes of step and order ------------------------------------------------------------------


@given(
    logs=st.lists(st.floats(-1.0, 1.0), min_size=24, max_size=24),
    orders=st.lists(st.integers(1, 5), min_size=24, max_size=24),
    name=st.sampled_from(sorted(PROBLEMS)),
)
def test_no_multiplier_is_ever_off_by_order_one(logs, orders, name):
    """Steps of 1e-3 give errors of 1e-2 in lambda, whatever the grid and the orders, at every single node."""
    sol = run(name, grid_of(logs, 1e-3), orders=orders)
    assert errors(name, sol)[2].max() < 0.05
    assert np.array_equal(sol.history.order[1:], np.minimum(orders, np.arange(2, 26))[1:])


@given(
    logs=st.lists(st.floats(-1.0, 1.0), min_size=24, max_size=24),
    orders=st.lists(st.integers(1, 2), min_size=24, max_size=24),
    name=st.sampled_from(sorted(PROBLEMS)),
)
def test_no_multiplier_of_sands_family_is_off_by_order_one(logs, orders, name):
    sol = run(name, grid_of(logs, 1e-3), family="sand", orders=orders)
    assert errors(name, sol)[2].max() < 0.2


def test_ordinary_multipliers_are_off_by_order_one_however_small_the_steps():
    for name, least in (("circle", 1.9), ("body", 0.2)):
        for scale in (1e-2, 1e-3, 1e-4):
            for k in (1, 2):
                sol = run(name, scale * np.arange(6.0), family="ordinary", max_order=k)
                assert errors(name, sol)[2][1:4].max() > least
                assert errors(name, run(name, scale * np.arange(6.0)))[2].max() < 10.0 * scale


def test_velocities_of_order_1_are_those_of_midpoints():
    """Theorem 3.3.3: off by O(h) at t_n, but by O(h^2) from (x_n - x_{n-1}) / h, in the first steps."""
    off = []
    for h in (1e-2, 5e-3):
        sol = run("circle", h * np.arange(5.0), family="sand", max_order=1)
        x, xp = circle_exact(sol.t)
        off.append([np.abs(sol.xp - np.diff(x, prepend=0) / h)[0, 1:].max(), np.abs(sol.xp - xp)[0, 1:].max()])
    middle, end = np.log2(np.array(off[0]) / np.array(off[1]))
    assert middle > 1.8 and 0.8 < end < 1.2


# --- output -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("controller", ["default", "thesis"])
def test_the_interpolant_goes_through_the_nodes(controller):
    problem, exact, _ = PROBLEMS["body"]
    options = {"method": ModifiedBDF(controller=controller), "rtol": 1e-4, "atol": [1e-4, 1e-4, 1e-2, 1e-2, 1e-2]}
    sol = solve(problem, (0.0, 3.0), exact(0.0), **options)
    np.testing.assert_allclose(sol(sol.t), sol.y, atol=1e-12)
    before = sol(np.nextafter(sol.t[1:], 0.0))
    after = sol(np.nextafter(sol.t[:-1], 9.0))
    np.testing.assert_allclose(before, sol.y[:, 1:], atol=1e-10)
    np.testing.assert_allclose(after[:2, 1:], sol.y[:2, 1:-1], atol=1e-10)  # positions are continuous
    times = np.linspace(0.0, 3.0, 400)
    x, xp = exact(times)
    state = sol.at(times)
    assert np.max(np.abs(state.x - x)[:2]) < 2.0 * np.max(errors("body", sol)[0]) + 1e-4
    assert np.max(np.abs(state.xp - xp)[:2]) < 2.0 * np.max(errors("body", sol)[1]) + 1e-2
    requested = solve(problem, (0.0, 3.0), exact(0.0), t_eval=times, **options)
    np.testing.assert_allclose(requested.y, sol(times), rtol=1e-12, atol=1e-12)


@given(coefficients=coefficient_lists, logs=step_logs)
def test_the_interpolant_reproduces_polynomials(coefficients, logs):
    """Of degree 4 with order 3, positions and their two derivatives, between nodes."""
    p = np.polynomial.Polynomial(coefficients[:5] + [0.0, 0.0])
    grid = grid_of(logs, 0.1)
    initial = ([p(0.0), p.deriv(2)(0.0), p.deriv()(0.0)], [p.deriv()(0.0), 0, 0], [p.deriv(2)(0.0), 0, 0])
    problem = DERIVATIVES.with_params(p.coef)
    sol = solve(problem, (0.0, grid[-1]), initial, method=ModifiedBDF(grid=grid, max_order=3))
    times = np.linspace(grid[4], grid[-1], 50)
    state = sol.at(times)
    for computed, exact in ((state.x[0], p), (state.xp[0], p.deriv()), (state.xpp[0], p.deriv(2))):
        np.testing.assert_allclose(computed, exact(times), atol=1e-7)


def test_bad_grids_and_orders_are_refused():
    problem, exact, _ = PROBLEMS["body"]
    for options in ({"grid": [0.0, 0.5]}, {"grid": [0.0, 0.6, 0.5, 1.0]}, {"grid": [0.0, 1.0], "orders": [6]}):
        with pytest.raises(daedal.InvalidProblemError, match=r"grid|orders"):
            solve(problem, (0.0, 1.0), exact(0.0), method=ModifiedBDF(**options))
    with pytest.raises(daedal.InvalidProblemError, match="grid or fixed_step"):
        solve(problem, (0.0, 1.0), exact(0.0), method=ModifiedBDF(family="ordinary"))


@pytest.mark.parametrize("tolerances", [{}, {"rtol": 1e-5, "atol": 1e-10}])
@pytest.mark.parametrize("mass, length, angle", [(2.0, 1.0, np.pi / 2), (0.7, 2.3, 1.1), (1.3, 0.4, 2.3)])
def test_velocities_that_pass_zero_do_not_stop_it(mass, length, angle, tolerances):
    """Where a velocity passes zero its tolerance falls to `atol`, below what Newton's method has left in the past."""
    pendulum = daedal.MechanicalSystem(
        mass=mass,
        force=lambda t, q, v: [0.0, -mass * 9.81],
        constraint=lambda t, q: [0.5 * (q[0] ** 2 + q[1] ** 2 - length**2)],
        constraint_jacobian=lambda t, q: [[q[0], q[1]]],
        n_q=2,
        n_constraints=1,
    )
    start = ([length * np.sin(angle), -length * np.cos(angle)], [0.0, 0.0])
    sol = daedal.solve(pendulum, (0.0, 10.0), start, method="modified_bdf", **tolerances)
    assert sol.success and sol.stats.rejected < sol.stats.steps / 4


@pytest.mark.parametrize("size", [1.0, 1e3, 1e10, 1e45, 1e100])
def test_a_start_from_rest_at_a_large_position(size):
    """Round-off of x, divided by h, exceeds the tolerance of a velocity near zero; longer steps have less of it."""
    oscillator = daedal.SecondOrderDAE(lambda t, x, xp, xpp: [xpp[0] + x[0]], 1)
    sol = daedal.solve(oscillator, (0.0, 10.0), ([size], [0.0]))
    assert sol.y[0, -1] / size == pytest.approx(np.cos(10.0), abs=1e-5)
    assert sol.stats.steps < 600
