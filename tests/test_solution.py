"""What comes out of a run: layout, dense output, pickling, display, partial results, and memory."""

import copy
import math
import pickle
import tracemalloc
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import numpy as np
import pytest
import scipy.sparse

import daedal


def decay(t, y, yp):
    return yp + y


def slope(t, y, z):
    return -z


def constraint(t, y, z):
    return z - y


def solve_decay(residual=decay, t_span=(0.0, 1.0), y0=(1.0,), yp0=(-1.0,), **options):
    return daedal.solve_dae(residual, t_span, y0, yp0, **options)


def solve_semi_explicit(**options):
    problem = daedal.SemiExplicitDAE(slope, constraint, 1, 1, names=["level", "flow"])
    return daedal.solve(problem, (0.0, 1.0), ([1.0], [1.0]), **options)


@pytest.fixture(scope="module")
def sol():
    return solve_decay()


@pytest.fixture(scope="module")
def failed():
    with pytest.raises(daedal.IntegrationError) as caught:
        solve_decay(max_steps=10, method="dassl", events=lambda t, y: y[0] - 0.9999)
    return caught.value


# --- layout ---------------------------------------------------------------------------------------------------------


def test_layout_is_that_of_scipy():
    sol = solve_semi_explicit(t_eval=[0.0, 0.5, 1.0])
    assert sol.t.tolist() == [0.0, 0.5, 1.0]
    assert sol.y.shape == sol.yp.shape == (2, 3)
    assert sol.z.shape == (1, 3)
    assert np.array_equal(sol.z[0], sol.y[1])
    assert np.array_equal(sol["flow"], sol.y[1])
    assert sol.names == ("level", "flow")
    assert np.allclose(sol.y[0], np.exp(-sol.t), rtol=1e-5)
    assert np.allclose(sol.yp[0], -np.exp(-sol.t), rtol=1e-3)
    assert sol.success
    assert sol.status == "finished"
    assert sol.drift["constraint"] < 1e-8


def test_what_does_not_exist_is_told(sol):
    with pytest.raises(KeyError, match="no variable 'speed'"):
        sol["speed"]
    with pytest.raises(KeyError, match="speed"):
        sol.stats["speed"]
    with pytest.raises(AttributeError, match="SemiExplicitDAE"):
        _ = sol.z


def test_statistics_can_be_read_both_ways(sol):
    stats = sol.stats
    assert {key: stats[key] for key in stats.keys()} == {key: getattr(stats, key) for key in stats.keys()}
    assert stats.steps == sol.t.size - 1 == sol.history.t.size
    assert stats.residual_evaluations > stats.jacobian_residual_evaluations == 0  # the matrix is exact
    assert stats.rejected == stats.newton_failures + stats.error_test_failures


def test_residual_evaluations_are_what_the_user_counts():
    calls = 0

    def counted(t, y, yp):
        nonlocal calls
        calls += 1
        return yp + y

    stats = solve_decay(counted).stats
    assert stats.residual_evaluations <= calls <= stats.residual_evaluations + 5  # a few to check shapes at the start


def test_no_output_times_means_no_output():
    empty = solve_decay(t_eval=[])
    assert empty.success
    assert empty.y.shape == (1, 0)
    assert "nothing stored" in repr(empty)


# --- dense output ---------------------------------------------------------------------------------------------------


def test_dense_output_has_the_layout_of_the_argument(sol):
    assert sol(0.5).shape == (1,)
    assert sol([0.5]).shape == (1, 1)
    assert sol(np.linspace(0.0, 1.0, 7)).shape == (1, 7)
    assert sol([]).shape == (1, 0)
    assert sol(1).shape == (1,)


def test_dense_output_agrees_with_the_steps_and_takes_any_order(sol):
    assert np.allclose(sol(sol.t), sol.y, rtol=1e-12)
    times = np.array([0.9, 0.0, 0.3, 1.0, 0.3])
    assert np.allclose(sol(times)[0], np.exp(-times), rtol=1e-5)
    assert np.array_equal(sol(times)[0], [sol(t)[0] for t in times])
    assert np.allclose(sol(times, derivative=True)[0], -np.exp(-times), rtol=1e-3)


def test_dense_output_of_a_backward_run():
    back = solve_decay(t_span=(1.0, 0.0), y0=[math.exp(-1.0)], yp0=[-math.exp(-1.0)])
    assert np.allclose(back([0.2, 0.8])[0], np.exp([-0.2, -0.8]), rtol=1e-5)


@pytest.mark.parametrize("t", [-0.1, 1.1, math.nan, math.inf, [0.5, 2.0], None])
def test_times_outside_the_interval_are_refused(sol, t):
    with pytest.raises(daedal.InvalidProblemError, match=r"\[0\.0, 1\.0\]"):
        sol(t)


@pytest.mark.parametrize("t", ["noon", 1j, [[0.5]], np.array([0.5 + 1j])])
def test_times_must_be_numbers_or_a_vector(sol, t):
    with pytest.raises(daedal.InvalidProblemError, match="t must be"):
        sol(t)


def test_dense_output_ends_where_the_run_ended():
    stopped = solve_decay(events=daedal.Event(lambda t, y: y[0] - 0.5, terminal=True))
    assert abs(stopped(stopped.t[-1])[0] - 0.5) < 1e-9
    with pytest.raises(daedal.InvalidProblemError, match="integrated interval"):
        stopped(stopped.t[-1] + 1e-3)
    beyond = solve_decay(t_stop=math.inf)
    assert beyond.t[-1] == 1.0
    with pytest.raises(daedal.InvalidProblemError, match="integrated interval"):
        beyond(1.0 + 1e-3)


def test_without_dense_output_the_remedy_is_named():
    sparing = solve_decay(dense_output=False)
    with pytest.raises(daedal.InvalidProblemError, match="dense_output=True"):
        sparing(0.5)
    assert np.array_equal(sparing.y, solve_decay().y)
    assert np.array_equal(solve_decay(dense_output=False, t_eval=[0.3]).y, solve_decay(t_eval=[0.3]).y)


def test_output_times_and_dense_output_agree():
    times = np.linspace(0.0, 1.0, 13)
    some = solve_decay(t_eval=times)
    assert np.allclose(some.y, some(times), rtol=1e-12)


# --- partial results ------------------------------------------------------------------------------------------------


def test_a_failed_run_is_complete_up_to_its_end(failed):
    part = failed.solution
    assert str(failed) == part.message
    assert (part.success, part.status) == (False, "failed")
    assert part.stats.steps == part.history.t.size == part.t.size - 1 == 10
    assert np.allclose(part(part.t), part.y, rtol=1e-12)
    assert len(part.events) == 1
    assert "failed" in repr(part)


def test_a_run_that_failed_before_its_first_step_holds_the_start():
    with pytest.raises(daedal.IntegrationError) as caught:
        solve_decay(lambda t, y, yp: yp + y if t == 0.0 else [math.nan])
    part = caught.value.solution
    assert part.t.tolist() == [0.0]
    assert part.y.tolist() == [[1.0]]
    assert part.yp.tolist() == [[-1.0]]
    assert "failed" in repr(part)
    with pytest.raises(daedal.InvalidProblemError):
        part(0.5)


# --- pickling -------------------------------------------------------------------------------------------------------

COPIES = pytest.mark.parametrize("duplicate", [lambda x: pickle.loads(pickle.dumps(x)), copy.deepcopy, copy.copy])


@COPIES
def test_a_solution_can_be_copied_and_pickled(duplicate):
    original = solve_semi_explicit(events=lambda t, y: y[0] - 0.5)
    twin = duplicate(original)
    for name in ("t", "y", "yp", "z"):
        assert np.array_equal(getattr(twin, name), getattr(original, name))
    assert np.array_equal(twin([0.3, 0.7]), original([0.3, 0.7]))
    assert twin.stats == original.stats
    assert twin.drift == original.drift
    assert repr(twin) == repr(original)
    assert twin.events[0].t == original.events[0].t


@COPIES
def test_an_integration_error_keeps_its_message_and_solution(failed, duplicate):
    twin = duplicate(failed)
    assert type(twin) is daedal.IntegrationError
    assert str(twin) == str(failed)
    assert np.array_equal(twin.solution.y, failed.solution.y)


@COPIES
def test_an_inconsistency_keeps_its_equations(duplicate):
    with pytest.raises(daedal.InconsistentInitialError) as caught:
        solve_decay(yp0=[3.0])
    twin = duplicate(caught.value)
    assert str(twin) == str(caught.value)
    assert twin.equations == (0,)
    assert twin.residual.tolist() == [4.0]


@COPIES
@pytest.mark.parametrize(
    "problem", [daedal.ImplicitDAE(decay, 1), daedal.SemiExplicitDAE(slope, constraint, 1, 1)], ids=["F", "f, g"]
)
def test_a_problem_can_be_copied_and_pickled(problem, duplicate):
    initial = ([1.0], [-1.0] if isinstance(problem, daedal.ImplicitDAE) else [1.0])
    assert np.array_equal(
        daedal.solve(duplicate(problem), (0.0, 1.0), initial).y, daedal.solve(problem, (0.0, 1.0), initial).y
    )


def test_solutions_and_errors_come_back_from_other_processes():
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        good = pool.submit(solve_decay)
        bad = pool.submit(solve_decay, max_steps=3)
        assert np.array_equal(good.result(timeout=120).y, solve_decay().y)
        error = bad.exception(timeout=120)
    assert isinstance(error, daedal.IntegrationError)
    assert error.solution.stats.steps == 3


# --- display --------------------------------------------------------------------------------------------------------


def test_repr_says_how_it_ended(sol):
    text = repr(sol)
    assert "finished" in text
    assert "0 to 1" in text
    assert f"{sol.stats.steps} accepted" in text
    assert sol.message in text


@pytest.mark.parametrize("kind", ["finished", "failed", "empty", "many variables"])
def test_notebooks_show_a_table(sol, failed, kind):
    pytest.importorskip("daedal.viz.pages")
    shown = {
        "finished": lambda: sol,
        "failed": lambda: failed.solution,
        "empty": lambda: solve_decay(t_eval=[]),
        "many variables": lambda: solve_decay(y0=np.ones(50), yp0=-np.ones(50), names=[f"<{i}>" for i in range(50)]),
    }[kind]()
    html = shown._repr_html_()
    assert "<table" in html
    assert shown.status.reason in html
    assert "<0>" not in html  # names are escaped


# --- size and memory ------------------------------------------------------------------------------------------------


def heat_rod(n):
    """Heat on a rod of n inner points with ends at 0, starting from the first eigenvector of the discrete problem."""
    scale = (n + 1.0) ** 2 / math.pi**2

    def residual(t, y, yp):
        result = yp + 2.0 * scale * y
        result[1:] -= scale * y[:-1]
        result[:-1] -= scale * y[1:]
        return result

    shape = np.sin(math.pi * np.arange(1, n + 1) / (n + 1))
    rate = 4.0 * scale * math.sin(math.pi / (2 * (n + 1))) ** 2
    return daedal.ImplicitDAE(residual, n, bandwidth=(1, 1)), (shape, -rate * shape), rate


def peak_memory(problem, initial, rtol):
    tracemalloc.start()
    try:
        sol = daedal.solve(problem, (0.0, 1.0), initial, rtol=rtol, atol=rtol, t_eval=[1.0])
        return sol, tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_memory_for_100000_unknowns_does_not_grow_with_the_steps():
    n = 100_000
    problem, initial, rate = heat_rod(n)
    few, peak_few = peak_memory(problem, initial, 1e-2)
    many, peak_many = peak_memory(problem, initial, 1e-6)
    assert many.stats.steps > 3 * few.stats.steps
    assert peak_many < peak_few + 8 * n  # one vector of slack
    assert peak_many < 82 * 8 * n
    assert np.allclose(many.y[:, -1], math.exp(-rate) * initial[0], atol=1e-4)
    assert many.dense is None
    assert many.history is None


def test_10000_unknowns_on_a_grid_with_a_sparse_matrix():
    m = 100
    scale = (m + 1.0) ** 2 / math.pi**2
    line = scipy.sparse.diags_array([1.0, -2.0, 1.0], offsets=[-1, 0, 1], shape=(m, m))
    eye = scipy.sparse.eye_array(m)
    laplacian = (scale * (scipy.sparse.kron(line, eye) + scipy.sparse.kron(eye, line))).tocsr()
    shape = np.sin(math.pi * np.arange(1, m + 1) / (m + 1))
    start = np.outer(shape, shape).ravel()
    rate = 8.0 * scale * math.sin(math.pi / (2 * (m + 1))) ** 2
    problem = daedal.ImplicitDAE(lambda t, y, yp: yp - laplacian @ y, m * m, sparsity=laplacian)
    sol = daedal.solve(problem, (0.0, 1.0), (start, None), rtol=1e-4, atol=1e-6)
    assert sol.stats.jacobian_residual_evaluations <= 12 * sol.stats.jacobian_evaluations  # colours, not columns
    assert np.allclose(sol.y[:, -1], math.exp(-rate) * start, atol=1e-3)


def test_too_many_unknowns_of_unknown_structure_are_told_what_to_say():
    n = 10_000
    with pytest.raises(daedal.InvalidProblemError, match="algebraic"):
        daedal.solve(daedal.ImplicitDAE(decay, n, bandwidth=(0, 0)), (0.0, 1.0), (np.ones(n), None))
