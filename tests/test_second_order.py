"""SecondOrderDAE: the problem class, its start, its first-order form, and what must not change the solution."""

import copy
import math
import pickle
import threading

import numba
import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

import daedal
from daedal import SecondOrderDAE
from daedal.initial.variable_kinds import detect_order

DIRECT = ["modified_bdf", "collocation"]
ALL = [*DIRECT, "dassl"]


def pendulum(t, x, xp, xpp):
    return [xpp[0] + 2.0 * x[0] * x[2], xpp[1] + 2.0 * x[1] * x[2] + 9.81, x[0] ** 2 + x[1] ** 2 - 1.0]


def swing(t, x, xp, xpp):
    return xpp + np.array([1.0, 4.0]) * x


def knife_edge(t, x, xp, xpp):
    """A velocity constraint: x, y, angle, force across the edge."""
    s, c = np.sin(x[2]), np.cos(x[2])
    return [xpp[0] - x[3] * s, xpp[1] + x[3] * c, xpp[2], xp[1] * c - xp[0] * s]


@numba.njit
def scaled_swing(t, x, xp, xpp, p):
    return p[0] * xpp + x


PENDULUM = SecondOrderDAE(pendulum, 3, names=["x", "y", "lam"])
START = ([1.0, 0.0, 0.0], [0.0, 0.0, 0.0])
SWING = SecondOrderDAE(swing, 2)
SWING_START = ([1.0, 0.5], [0.0, 0.0])


def exact_swing(t):
    return np.array([np.cos(t), 0.5 * np.cos(2.0 * t)])


# --- the class --------------------------------------------------------------------------------------------------------


def test_the_residual_is_checked_and_named():
    assert np.array_equal(SWING.evaluate(0, [1, 2], [0, 0], [3, 4]), [4.0, 12.0])
    assert PENDULUM.label(2) == "lam"
    assert SWING.label(1) == "x[1]"


def test_copies_keep_what_they_do_not_change():
    changed = PENDULUM.with_order([2, 2, 0]).with_params(None)
    assert changed.names == PENDULUM.names
    assert changed.order.tolist() == [2, 2, 0]
    assert PENDULUM.order is None


def test_a_problem_and_its_solution_can_be_pickled():
    assert pickle.loads(pickle.dumps(PENDULUM)).names == ("x", "y", "lam")
    local = SecondOrderDAE(lambda t, x, xp, xpp: xpp + x, 1)  # a residual that cannot be pickled
    sol = daedal.solve(local, (0.0, 1.0), ([1.0], [0.0]))
    for same in (pickle.loads(pickle.dumps(sol)), copy.deepcopy(sol)):
        assert np.array_equal(same.xpp, sol.xpp)
        assert np.array_equal(same.at(0.3).xp, sol.at(0.3).xp)


def test_a_failure_can_be_pickled_with_its_solution():
    with pytest.raises(daedal.IntegrationError) as caught:
        daedal.solve(PENDULUM, (0.0, 1.0), START, max_steps=5)
    assert pickle.loads(pickle.dumps(caught.value)).solution.x.shape == (3, 6)


# --- shapes and names -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", DIRECT)
def test_shapes_and_names_of_a_solution(method):
    sol = daedal.solve(PENDULUM, (0.0, 0.5), START, method=method, t_eval=np.linspace(0.0, 0.5, 6))
    assert sol.names == ("x", "y", "lam", "x'", "y'")
    assert sol.x.shape == sol.xp.shape == sol.xpp.shape == (3, 6)
    assert sol.y.shape == sol.yp.shape == (5, 6)
    assert np.array_equal(sol["y'"], sol.xp[1])
    assert np.all(sol.xp[2] == 0.0)
    assert "Solution of 3 variables" in repr(sol)
    assert sol._repr_html_().startswith("<div>")
    state = sol.at(0.3)
    assert state.x.shape == (3,)
    assert sol.at([0.1, 0.2]).xpp.shape == (3, 2)
    assert state.xpp[0] == pytest.approx(-2.0 * state.x[0] * state.x[2], abs=0.02)


@pytest.mark.parametrize("method", ALL)
def test_dense_output_and_output_times_agree(method):
    times = np.array([0.0, 0.1, 1.7, 2.0])
    sol = daedal.solve(SWING, (0.0, 2.0), SWING_START, method=method, rtol=1e-8, atol=1e-10)
    at_times = daedal.solve(SWING, (0.0, 2.0), SWING_START, method=method, rtol=1e-8, atol=1e-10, t_eval=times)
    assert np.allclose(at_times.x, sol.at(times).x, atol=1e-9)
    assert np.allclose(at_times.x, exact_swing(times), atol=1e-6)
    assert daedal.solve(SWING, (0.0, 2.0), SWING_START, method=method, t_eval=[]).x.shape == (2, 0)


@pytest.mark.parametrize("method", ALL)
def test_backwards_in_time(method):
    sol = daedal.solve(SWING, (2.0, 0.0), (exact_swing(2.0), [-math.sin(2.0), -math.sin(4.0)]), method=method)
    assert sol.t[-1] == 0.0
    assert np.allclose(sol.x[:, -1], [1.0, 0.5], atol=1e-4)


def test_variables_of_all_orders():
    """x0'' = -x1, x1' = x0', x2 = x1: x0 = cos t."""
    mixed = SecondOrderDAE(lambda t, x, xp, xpp: [xpp[0] + x[1], xp[1] - xp[0], x[2] - x[1]], 3)
    for method in ALL:
        sol = daedal.solve(mixed, (0.0, 2.0), ([1.0, 1.0, 5.0], [0.0, 7.0, 0.0]), method=method)
        assert sol.names == ("x[0]", "x[1]", "x[2]", "x[0]'")
        assert np.allclose(sol.x, np.cos(sol.t), atol=1e-4)
        assert np.allclose(sol.xp[:2], -np.sin(sol.t), atol=1e-3)


@pytest.mark.parametrize("method", DIRECT)
def test_first_order_and_algebraic_equations_are_solved_too(method):
    decay = SecondOrderDAE(lambda t, x, xp, xpp: [xp[0] + x[0]], 1)
    assert daedal.solve(decay, (0.0, 1.0), ([1.0], None), method=method).x[0, -1] == pytest.approx(
        math.exp(-1), abs=1e-5
    )
    algebraic = SecondOrderDAE(lambda t, x, xp, xpp: [x[0] - np.sin(t), x[1] + x[0] - 1.0], 2)
    sol = daedal.solve(algebraic, (0.0, 1.0), ([0.0, 1.0], None), method=method)
    assert np.allclose(sol.x, [np.sin(sol.t), 1.0 - np.sin(sol.t)], atol=1e-6)


@pytest.mark.parametrize("method", DIRECT)
def test_a_velocity_constraint(method):
    edge = SecondOrderDAE(knife_edge, 4)
    sol = daedal.solve(edge, (0.0, 1.0), ([0.0, 0.0, 0.0, 0.0], [1.0, 0.0, 1.0, 0.0]), method=method)
    assert np.allclose(sol.x[:3, -1], [math.sin(1.0), 1.0 - math.cos(1.0), 1.0], atol=1e-5)


# --- parameters, compiled functions, matrices -------------------------------------------------------------------------


@pytest.mark.parametrize("method", ALL)
def test_parameters_of_plain_and_compiled_functions(method):
    compiled = SecondOrderDAE(scaled_swing, 1, params=[0.25])
    plain = SecondOrderDAE(lambda t, x, xp, xpp, p: p["m"] * xpp + x, 1, params={"m": 0.25})
    for problem in (compiled, plain, compiled.with_params([1.0]).with_params([0.25])):
        sol = daedal.solve(problem, (0.0, 1.0), ([1.0], [0.0]), method=method)
        assert sol.x[0, -1] == pytest.approx(math.cos(2.0), abs=1e-4)


def chain(n, **structure):
    laplacian = scipy.sparse.diags_array([np.ones(n - 1), np.full(n, -2.0), np.ones(n - 1)], offsets=[-1, 0, 1]).tocsc()
    return SecondOrderDAE(
        lambda t, x, xp, xpp: xpp + 0.1 * xp - 50.0 * (laplacian @ x), n, **structure
    ), 50.0 * laplacian


def chain_variants(n):
    matrix = chain(n)[1]
    eye, off = np.eye(n), np.full(n, -50.0)

    def dense(t, x, xp, xpp, c1, c2):
        return (c2 + 0.1 * c1) * eye - matrix.toarray()

    def band(t, x, xp, xpp, c1, c2):
        return np.array([off, np.full(n, c2 + 0.1 * c1 + 100.0), off])

    def sparse(t, x, xp, xpp, c1, c2):
        return scipy.sparse.csc_array((c2 + 0.1 * c1) * scipy.sparse.eye_array(n) - matrix)

    return {
        "jacobian": chain(n, jacobian=dense)[0],
        "bandwidth": chain(n, bandwidth=(1, 1))[0],
        "band": chain(n, bandwidth=(1, 1), jacobian=band)[0],
        "sparsity": chain(n, sparsity=matrix)[0],
        "sparse": chain(n, sparsity=matrix, jacobian=sparse)[0],
    }


@pytest.mark.parametrize("method", ["modified_bdf", "dassl"])
def test_every_structure_of_the_matrix_gives_the_same(method):
    n = 30
    initial = (np.exp(-(((np.arange(n) - 15.0) / 4.0) ** 2)), np.zeros(n))
    reference = daedal.solve(chain(n)[0], (0.0, 1.0), initial, method=method)
    for name, problem in chain_variants(n).items():
        sol = daedal.solve(problem, (0.0, 1.0), initial, method=method)
        assert np.allclose(sol.x[:, -1], reference.x[:, -1], atol=1e-6), name


@pytest.mark.parametrize("method", ["modified_bdf", "dassl"])
def test_five_hundred_unknowns(method):
    n = 500
    problem, _ = chain(n, bandwidth=(1, 1))
    initial = (np.exp(-(((np.arange(n) - 250.0) / 20.0) ** 2)), np.zeros(n))
    sol = daedal.solve(problem, (0.0, 0.5), initial, method=method, rtol=1e-5, atol=1e-7)
    assert sol.stats.residual_evaluations < 1000
    assert np.allclose(sol.x[:, -1], sol.x[::-1, -1][np.r_[n - 1, : n - 1]], atol=1e-4)  # symmetric about 250


# --- the first-order form ---------------------------------------------------------------------------------------------


def test_equations_keep_their_numbers_in_the_companion_form():
    companion = PENDULUM.with_order([2, 2, 0]).first_order()
    y, yp = np.array([0.6, -0.8, 3.0, 0.1, 0.2]), np.array([1.0, 2.0, 0.0, 4.0, 5.0])
    values = companion.evaluate(0.0, y, yp)
    assert np.allclose(values[:3], PENDULUM.evaluate(0.0, y[:3], [0.1, 0.2, 0.0], [4.0, 5.0, 0.0]))
    assert np.allclose(values[3:], yp[:2] - y[3:])
    assert companion.algebraic.tolist() == [False, False, True, False, False]
    assert PENDULUM.with_order([2, 2, 0]).first_order([2, 2, 2]).n == 6


@pytest.mark.parametrize("variant", ["jacobian", "band", "sparse"])
def test_the_matrix_of_the_companion_form_is_the_derivative(variant):
    n, cj = 4, 3.0
    companion = chain_variants(n)[variant].with_order([2] * n).first_order()
    y, yp = np.linspace(0.0, 1.0, 2 * n), np.linspace(1.0, 3.0, 2 * n)
    matrix = companion.jacobian(0.0, y, yp, cj)
    matrix = matrix.toarray() if scipy.sparse.issparse(matrix) else matrix
    for j, unit in enumerate(np.eye(2 * n)):
        column = companion.evaluate(0.0, y + unit, yp + cj * unit) - companion.evaluate(0.0, y, yp)
        assert np.allclose(matrix[:, j], column)


# --- the start --------------------------------------------------------------------------------------------------------


def test_the_start_is_completed():
    sol = daedal.solve(PENDULUM, (0.0, 0.1), ([0.6, -0.8, 99.0], [0.8, 0.6, 0.0]))
    assert np.array_equal(sol.x[:2, 0], [0.6, -0.8])
    assert sol.x[2, 0] == pytest.approx(0.5 * (1.0 + 0.8 * 9.81), rel=1e-8)  # 2 lam = v^2 - g y
    assert np.allclose(sol.xpp[:2, 0], [-2.0 * 0.6 * sol.x[2, 0], 1.6 * sol.x[2, 0] - 9.81])


@pytest.mark.parametrize("length", [1e-2, 1.0, 1e3, 1e7])
def test_the_start_does_not_depend_on_the_length_of_the_interval(length):
    with pytest.raises(daedal.IntegrationError) as caught:
        daedal.solve(PENDULUM, (0.0, length), ([0.6, -0.8, 0.0], [0.8, 0.6, 0.0]), max_steps=1)
    assert caught.value.solution.x[2, 0] == pytest.approx(0.5 * (1.0 + 0.8 * 9.81), rel=1e-6)


def test_values_within_the_tolerance_are_moved_onto_the_constraint():
    sol = daedal.solve(PENDULUM, (0.0, 0.5), ([0.6001, -0.8, 0.0], [0.8, 0.6, 0.0]), rtol=1e-3, atol=1e-3)
    assert abs(np.sum(sol.x[:2, 0] ** 2) - 1.0) < 1e-14
    assert np.allclose(sol.x[:2, 0], [0.6, -0.8], atol=2e-4)


@pytest.mark.parametrize("method", DIRECT)
def test_inconsistent_values_are_corrected_on_request(method):
    sol = daedal.solve(PENDULUM, (0.0, 0.5), ([1.2, 0.0, 0.0], [1.0, 2.0, 0.0]), method=method, correct_initial=True)
    assert np.allclose(sol.x[:2, 0], [1.0, 0.0], atol=1e-12)
    assert np.allclose(sol.xp[:2, 0], [0.0, 2.0], atol=1e-8)


def test_consistent_values_near_given_ones():
    x, xp, xpp = daedal.consistent_initial(PENDULUM, 0.0, ([3.0, -4.0, 7.0], [1.0, 0.0, 0.0]))
    assert np.allclose(x[:2], [0.6, -0.8], atol=1e-12)
    assert np.allclose(xp[:2], [0.64, 0.48], atol=1e-7)
    assert np.max(np.abs(PENDULUM.evaluate(0.0, x, xp, xpp))) < 1e-8
    assert x[:2] @ xpp[:2] + xp[:2] @ xp[:2] == pytest.approx(0.0, abs=1e-7)
    assert daedal.solve(PENDULUM, (0.0, 0.1), (x, xp, xpp)).success


def test_chosen_values_are_kept():
    x, xp, _ = daedal.consistent_initial(PENDULUM, 0.0, ([0.6, -0.5, 0.0], [1.0, 0.0, 0.0]), fixed=["x", "x'"])
    assert np.allclose(x[:2], [0.6, -0.8])
    assert np.allclose(xp[:2], [1.0, 0.75], atol=1e-7)
    mask, _, _ = daedal.consistent_initial(PENDULUM, 0.0, ([0.6, -0.5, 0.0], None), fixed=[True, False, False])
    assert np.allclose(mask[:2], [0.6, -0.8])


def test_the_equations_are_not_asked_for_times_before_the_start():
    times = []

    def residual(t, x, xp, xpp):
        times.append(t)
        return [xpp[0] + x[1], x[0] - math.sqrt(t + 1.0)]

    daedal.solve(SecondOrderDAE(residual, 2), (0.0, 1.0), ([1.0, 0.25], [0.5, 0.0]))
    assert min(times) >= 0.0
    assert max(times) <= 1.0


def test_a_residual_that_is_not_defined_beside_the_start():
    edge = SecondOrderDAE(lambda t, x, xp, xpp: [xpp[0] + x[0] - 1e-3 * math.sqrt(1.0001 - x[0] ** 2)], 1)
    sol = daedal.solve(edge, (0.0, 1.0), ([1.0], [0.0]))
    assert 0.0 < sol.x[0, -1] - math.cos(1.0) < 1e-3 * (1.0 - math.cos(1.0))  # what 1e-3 in place of the root gives


@pytest.mark.parametrize("factor", [1e-24, 1e-12, 1.0, 1e12])
def test_orders_are_found_in_any_units(factor):
    def residual(t, x, xp, xpp):
        return [factor * xpp[0] + xp[1] - 9.81, factor * x[2] + xp[1], x[0] + x[2]]

    found = detect_order(SecondOrderDAE(residual, 3), 0.0, np.array([1.0, 2.0, 3.0]), np.zeros(3))
    assert found.tolist() == [2, 1, 0]


# --- what must not change the solution --------------------------------------------------------------------------------


@given(permutation=st.permutations(range(3)), rows=st.permutations(range(3)), method=st.sampled_from(DIRECT))
def test_the_order_of_unknowns_and_equations_does_not_matter(permutation, rows, method):
    back = np.argsort(permutation)

    def shuffled(t, x, xp, xpp):
        return np.array(pendulum(t, x[back], xp[back], xpp[back]))[list(rows)]

    x0, xp0 = np.array([0.6, -0.8, 0.0]), np.array([0.8, 0.6, 0.0])
    p = list(permutation)
    sol = daedal.solve(SecondOrderDAE(shuffled, 3), (0.0, 0.5), (x0[p], xp0[p]), method=method, rtol=1e-7)
    reference = daedal.solve(PENDULUM, (0.0, 0.5), (x0, xp0), method=method, rtol=1e-7)
    assert np.allclose(sol.x[back][:2, -1], reference.x[:2, -1], atol=1e-5)
    assert sol.x[back][2, -1] == pytest.approx(reference.x[2, -1], abs=0.01)


@given(exponent=st.integers(-12, 12), method=st.sampled_from(ALL))
def test_the_unit_of_time_does_not_matter(exponent, method):
    unit = 2.0 ** (3 * exponent)
    slow = SecondOrderDAE(lambda t, x, xp, xpp: unit**2 * xpp + np.array([1.0, 4.0]) * x, 2)
    tolerances = {"rtol": 1e-7, "atol": np.array([1.0, 1.0, 1.0 / unit, 1.0 / unit]) * 1e-9}
    sol = daedal.solve(slow, (0.0, unit), SWING_START, method=method, **tolerances)
    assert np.allclose(sol.x[:, -1], exact_swing(1.0), atol=1e-5)
    assert np.allclose(sol.xp[:, -1] * unit, [-math.sin(1.0), -math.sin(2.0)], atol=1e-4)


@given(exponent=st.integers(-12, 12))
def test_the_unit_of_length_does_not_matter(exponent):
    size = 2.0 ** (3 * exponent)

    def scaled(t, x, xp, xpp):
        return [
            xpp[0] + 2.0 * x[0] * x[2],
            xpp[1] + 2.0 * x[1] * x[2] + 9.81 * size,
            x[0] ** 2 + x[1] ** 2 - size**2,
        ]

    tolerances = {"rtol": 1e-7, "atol": np.array([size, size, 1.0, size, size]) * 1e-9}
    initial = ([0.6 * size, -0.8 * size, 0.0], [0.8 * size, 0.6 * size, 0.0])
    sol = daedal.solve(SecondOrderDAE(scaled, 3), (0.0, 0.5), initial, **tolerances)
    reference = daedal.solve(PENDULUM, (0.0, 0.5), ([0.6, -0.8, 0.0], [0.8, 0.6, 0.0]), rtol=1e-7)
    assert np.allclose(sol.x[:2, -1] / size, reference.x[:2, -1], atol=1e-5)


@given(scale=st.integers(-40, 40))
def test_the_scale_of_an_equation_does_not_matter(scale):
    def scaled(t, x, xp, xpp):
        first, second, constraint = pendulum(t, x, xp, xpp)
        return [first, 2.0**-scale * second, 2.0**scale * constraint]

    initial = ([0.6, -0.8, 0.0], [0.8, 0.6, 0.0])
    sol = daedal.solve(SecondOrderDAE(scaled, 3), (0.0, 0.3), initial, rtol=1e-7)
    reference = daedal.solve(PENDULUM, (0.0, 0.3), initial, rtol=1e-7)
    assert np.allclose(sol.x[:2, -1], reference.x[:2, -1], atol=1e-5)


@pytest.mark.parametrize("method", ALL)
def test_the_same_run_gives_the_same_bits_in_any_thread(method):
    reference = daedal.solve(SWING, (0.0, 3.0), SWING_START, method=method).y
    found = []

    def work():
        found.extend(daedal.solve(SWING, (0.0, 3.0), SWING_START, method=method).y for _ in range(3))

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 9
    assert all(np.array_equal(y, reference) for y in found)


# --- events -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ALL)
def test_events_with_their_options(method):
    events = [
        daedal.Event(lambda t, x: x[0], terminal=2, name="zero"),
        daedal.Event(lambda t, x, xp: [xp[0], x[1] - 0.5], direction=[1, 0], touch=[False, True], delta=1e-4),
    ]
    sol = daedal.solve(SWING, (0.0, 20.0), SWING_START, method=method, events=events, rtol=1e-7, atol=1e-9)
    assert sol.status == "event"
    fired = [(event.name, event.t) for event in sol.events]
    expected = [("zero", math.pi / 2), ("event 1[0]", math.pi), ("event 1[1]", math.pi), ("zero", 1.5 * math.pi)]
    assert {name for name, _ in fired} == {name for name, _ in expected}
    for name, t in expected:
        assert min(abs(t - found) for which, found in fired if which == name) < 2e-3
    assert sol.t[-1] == sol.events[-1].t
    with pytest.raises(daedal.InvalidProblemError, match="t must lie in"):
        sol(sol.t[-1] + 0.1)


@pytest.mark.parametrize("method", ALL)
def test_events_by_monitoring(method):
    layer = daedal.Event(lambda t, x: x[0], location="monitoring", delta=1e-3, terminal=True)
    sol = daedal.solve(SWING, (0.0, 20.0), SWING_START, method=method, events=layer)
    assert abs(sol.x[0, -1]) <= 1e-3
    assert abs(sol.t[-1] - math.pi / 2) < 2e-3


def test_an_event_is_called_with_the_initial_values_not_with_zeros():
    for method in ALL:
        sol = daedal.solve(SWING, (0.0, 1.0), SWING_START, method=method, events=lambda t, x: math.log(x[0]) + 0.1)
        assert sol.events[0].t == pytest.approx(math.acos(math.exp(-0.1)), abs=1e-4)
