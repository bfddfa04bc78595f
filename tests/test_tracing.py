"""Plain functions become machine code by default: the same results, and nothing that lies gets through."""

import copy
import math
import pickle
import random
import re
import warnings
from collections import namedtuple
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import daedal
from daedal import library
from daedal.symbolic.tracing.parameters import ParameterLayout
from daedal.symbolic.tracing.problem import traced_problem
from library_models import default_model
from symbolic_tools import assert_same
from tiers import sampled

START = ([1.0, 0.0], [0.0, 0.0])


def pendulum(force=lambda t, q, v: [0.0, -9.81], constraint=lambda t, q: [q[0] ** 2 + q[1] ** 2 - 1.0], **options):
    return daedal.MechanicalSystem(1.0, force, constraint, n_q=2, n_constraints=1, **options)


def oscillator(residual, **options):
    return daedal.ImplicitDAE(residual, 2, **options)


def swing(t, y, yp):
    return [yp[0] - y[1], yp[1] + math.sin(y[0])]


def both(problem, span, initial, choice="auto", **options):
    """The same run with functions as they are and traced."""
    return tuple(daedal.solve(problem, span, initial, compile=compile, **options) for compile in ("never", choice))


# --- the same results -------------------------------------------------------------------------------------------------

# where DASSL and Radau differ by more than that at first
BY_RADAU = {"elastic_beam", "ring_modulator", "water_tubes", "wheelset"}
ONLY_TRACED = {  # refused, or solved after their index has been lowered, which takes a trace
    name
    for name, model in ((name, default_model(name)) for name in library.names())
    if isinstance(model.problem, daedal.ImplicitDAE) and (model.index is None or model.index >= 3)
    if "fixed_step" not in model.options
}
AS_THEY_ARE = {"cavity"}  # called in Python, as their options say: whole fields by NumPy, and a sparse Jacobian
SLOW = {"bowed_string", "painleve_rod", "friction_crank_slider"}  # seconds for the shortest stretch, in Python


@pytest.mark.parametrize("name", sampled(sorted(set(library.names()) - SLOW - ONLY_TRACED - AS_THEY_ARE), 2))
def test_library_problems_give_the_same_traced_and_untraced(name):
    model = library.get(name)
    t0, t1 = model.t_span
    span = (t0, t0 + (0.001 if "fixed_step" not in model.options else 1.0) * (t1 - t0))
    options = model.options | ({"method": "radau"} if name in BY_RADAU else {})
    plain, traced = both(model.problem, span, model.initial, **options)
    times = np.linspace(*span, 3)
    if isinstance(plain, daedal.MechanicalSolution):
        plain, traced = plain(times).y, traced(times).y
    else:
        plain, traced = (
            sol(times) if getattr(sol, "dense", None) is not None else sol.y[:, -1:] for sol in (plain, traced)
        )
    scale = np.max(np.abs(plain), axis=1, keepdims=True) + 1e-5  # what rests is known to the tolerance
    assert np.max(np.abs(traced - plain) / scale) < 1e-4


def test_what_is_not_traced_of_the_library_and_why():
    """What the page on tracing lists, and nothing else."""
    page = (Path(__file__).parent.parent / "docs" / "tracing.md").read_text(encoding="utf-8")
    listed = dict(re.findall(r"^\| `(\w+)` \| ([^|]+) \|$", page, re.MULTILINE))
    reasons = {}
    assert {name for name in library.names() if "compile" in default_model(name).options} == AS_THEY_ARE
    for name in set(library.names()) - AS_THEY_ARE:
        problem = library.get(name).problem
        tables = problem.functions.values() if isinstance(problem, daedal.hybrid.HybridProblem) else [problem.functions]
        untraced = [words for table in tables for words in table.values() if not words.startswith(("traced", "exact"))]
        for words in untraced:
            reasons[name] = words.partition(": ")[2].split(",")[0]
    assert reasons == listed and set(reasons) == {"chain_of_pendulums"}


def test_traced_functions_save_nothing_but_time():
    problem = pendulum()
    plain, traced = both(problem, (0.0, 2.0), START, rtol=1e-9, atol=1e-12, method="phem56")
    assert traced.stats.steps == plain.stats.steps
    assert traced.q[:, -1] == pytest.approx(plain.q[:, -1], abs=1e-8)
    assert traced.functions["constraint_jacobian"].startswith("exact derivative")


def test_all_first_order_and_second_order_classes_are_traced():
    implicit = oscillator(swing)
    semi = daedal.SemiExplicitDAE(lambda t, y, z: [z[0]], lambda t, y, z: [z[0] + y[0] * np.cos(t)], 1, 1)
    second = daedal.SecondOrderDAE(lambda t, x, xp, xpp: [xpp[0] + math.sin(x[0])], 1)
    for problem, initial in ((implicit, ([1.0, 0.0], None)), (semi, ([1.0], None)), (second, ([1.0], [0.0]))):
        plain, traced = both(problem, (0.0, 2.0), initial, rtol=1e-8, atol=1e-10)
        assert traced.y[:, -1] == pytest.approx(plain.y[:, -1], abs=1e-6)
        assert all(words.startswith(("traced", "exact")) for words in traced.functions.values()), traced.functions
    assert semi.functions["jacobian"].startswith("exact derivative")


def test_exact_derivatives_need_no_residuals_for_matrices():
    plain, traced = both(oscillator(swing), (0.0, 5.0), ([1.0, 0.0], None))
    assert plain.stats.jacobian_residual_evaluations > 0
    assert traced.stats.jacobian_residual_evaluations == 0


@pytest.mark.parametrize("scale", [lambda q: 1.0, lambda q: np.sqrt(1.0 + q[0] ** 2) / (2.0 + q[1])])
def test_velocity_constraints_have_exact_derivatives(scale):
    def knife_edge(t, q, v):
        return [(v[0] * np.sin(q[2]) - v[1] * np.cos(q[2])) * scale(q)]

    system = daedal.MechanicalSystem(
        1.0,
        lambda t, q, v: [0.5, 0.0, 0.0],
        n_q=3,
        velocity_constraint=knife_edge,
        n_velocity_constraints=1,
    )
    plain, traced = both(system, (0.0, 2.0), ([0.0, 0.0, 0.3], [0.0, 0.0, 1.0]), rtol=1e-8, atol=1e-10)
    assert traced.functions["velocity_jacobian"].startswith("exact derivative")
    assert traced.functions["velocity_bias"].startswith("exact derivative")
    assert traced.q[:, -1] == pytest.approx(plain.q[:, -1], abs=1e-6)


def test_coefficients_of_linear_problems_have_exact_derivatives():
    def C(t):
        return [[np.cos(t), np.sin(t)]]

    def r(t):
        return [-np.exp(-t) * np.cos(3.0 * t)]

    problem = daedal.HessenbergDAE([np.zeros((2, 2))] * 2, [[1.0], [0.5]], C, [0.0, 1.0], r, n_x=2, n_y=1, order=2)
    exact = traced_problem(problem).problem
    for t in (0.3, 2.0):
        found = exact.C_derivatives(t)
        assert found[0] == pytest.approx(np.array([[-np.sin(t), np.cos(t)]]), abs=1e-15)
        assert found[1] == pytest.approx(-np.array(C(t)), abs=1e-15)
        assert exact.coefficients(t) == pytest.approx(problem.coefficients(t), abs=1e-7)
    assert problem.functions["C"].startswith("traced") and "A" not in problem.functions
    linear = daedal.LinearDAE(
        lambda t: [[-1.0 - np.sin(t)]],
        [[1.0]],
        lambda t: [[2.0 + np.cos(t)]],
        [[0.0]],
        [0.0],
        lambda t: [-t],
        n_x=1,
        n_y=1,
    )
    made = traced_problem(linear)
    assert made.problem.derivative("C", 0.5) == pytest.approx(np.array([[-np.sin(0.5)]]), abs=1e-15)
    sol = daedal.solve(linear, (0.0, 1.0), ([0.0], None), formulation="stabilised_reduction")
    assert sol.functions["C_derivative"].startswith("exact derivative") and sol.functions["C"] == "Python"
    sol = daedal.solve(linear, (0.0, 1.0), ([0.0], None))
    assert sol.functions["f"].startswith("traced") and sol.functions["jacobian"].startswith("exact derivative")


def test_coefficients_of_a_hessenberg_problem_are_one_call():
    calls = []

    def counted(t):
        calls.append(t)
        return [[1.0], [0.5 + 0.0 * t]]

    given = {"n_x": 2, "n_y": 1, "order": 1}
    arguments = ([[0.0, 1.0], [-1.0, 0.0]], lambda t: [[1.0 + t], [0.5]], [[1.0, 1.0]], [0.0, 0.0], lambda t: [-1.0])
    traced = daedal.HessenbergDAE(*arguments, **given)
    lying = daedal.HessenbergDAE(arguments[0], counted, *arguments[2:], **given)
    assert traced_problem(traced).problem.coefficients(0.5) == pytest.approx(traced.coefficients(0.5))
    assert lying.functions["B"].startswith("Python: changes 'calls'")
    plain, fast = both(traced, (0.0, 1.0), [0.5, 0.5], rtol=1e-8, atol=1e-10)
    assert fast.y[:, -1] == pytest.approx(plain.y[:, -1], abs=1e-8)
    sol = daedal.solve(lying, (0.0, 1.0), [0.5, 0.5])
    assert sol.success and calls


def test_structure_is_found_where_it_pays():
    n = 60

    def diffusion(t, y, yp):
        r = np.zeros(n)
        for i in range(n):
            left = y[i - 1] if i > 0 else 0.0
            right = y[i + 1] if i < n - 1 else 0.0
            r[i] = yp[i] - 100.0 * (left - 2.0 * y[i] + right)
        return r

    problem = daedal.ImplicitDAE(diffusion, n)
    assert traced_problem(problem).problem.bandwidth == (1, 1)
    y0 = np.sin(np.pi * np.arange(1, n + 1) / (n + 1))
    plain, traced = both(problem, (0.0, 0.5), (y0, None))
    assert traced.y[:, -1] == pytest.approx(plain.y[:, -1], abs=1e-4)
    assert traced_problem(problem, linear_solver="dense").problem.bandwidth is None


def grid(n, neighbours):
    """n unknowns, each with its neighbours, in a plain loop."""

    def rate(y, i):
        return -y[i] + sum(0.1 * math.cos(y[j]) for j in neighbours[i])

    return rate


@pytest.mark.parametrize("kind", ["implicit", "semi-explicit"])
@pytest.mark.parametrize("structure", ["band", "scattered"])
def test_large_problems_in_plain_loops_get_banded_and_sparse_matrices(kind, structure):
    n = 200
    if structure == "band":
        neighbours = [[j for j in (i - 1, i + 2) if 0 <= j < n] for i in range(n)]
    else:
        neighbours = np.random.default_rng(1).integers(0, n, (n, 3)).tolist()
    rate, y0 = grid(n, neighbours), np.linspace(0.5, 1.0, n)
    if kind == "implicit":
        problem = daedal.ImplicitDAE(lambda t, y, yp: [yp[i] - rate(y, i) for i in range(n)], n)
        initial = (y0, None)
        implicit = traced_problem(problem).problem
    else:
        problem = daedal.SemiExplicitDAE(
            lambda t, y, z: [rate(y, i) + (z[0] if i == n - 1 else 0.0) for i in range(n)],
            lambda t, y, z: [z[0] ** 3 + z[0] - y[n - 1]],
            n_y=n,
            n_z=1,
        )
        initial = (y0, None)
        implicit = traced_problem(problem).problem.implicit()
    pattern = {(i, j) for i in range(n) for j in [i, *neighbours[i]]}
    if kind == "semi-explicit":
        pattern |= {(n - 1, n), (n, n - 1), (n, n)}
    if structure == "band":
        assert implicit.bandwidth == (1, 2) and implicit.sparsity is None
    else:
        assert implicit.bandwidth is None and set(zip(*implicit.sparsity.nonzero())) == pattern
    y, yp = np.linspace(-1.0, 2.0, implicit.n), np.ones(implicit.n)
    slope, of_y = implicit.exact_partials(0.0, y, yp)
    found = set(zip(*np.nonzero(of_y)))
    assert found <= pattern and len(found) > 0.9 * len(pattern)
    np.testing.assert_allclose(slope, np.diag([1.0] * n + [0.0] * (implicit.n - n)), atol=1e-9)
    sol = daedal.solve(problem, (0.0, 1.0), initial)
    assert sol.success and sol.stats.jacobian_residual_evaluations == 0


def test_large_graphs_are_traced_in_bounded_time_or_refused_by_the_limit():
    from daedal.symbolic import Graph, trace, vector_argument
    from daedal.symbolic.derivative import jacobian

    n = 6000

    def chain(y):
        return [np.exp(-y[i]) * y[i] ** 2 - (y[i - 1] - 2.0 * y[i] + y[(i + 1) % n]) * np.sin(y[i]) for i in range(n)]

    graph = Graph()
    nodes = trace(chain, [vector_argument(graph, "y", n)], (n,)).nodes
    rows = jacobian(graph, nodes, [graph.argument("y", k) for k in range(n)])
    assert len(graph.operations) > 100_000 and all(len(row) == 3 for row in rows)
    looped = daedal.ImplicitDAE(lambda t, y, yp: [yp[i] - x for i, x in enumerate(chain(y))], n)
    assert "traced" in looped.functions["residual"] and "exact derivative" in looped.functions["jacobian"]
    vectors = daedal.ImplicitDAE(lambda t, y, yp: yp - np.exp(-y) * np.sin(y) ** 2, n)
    assert "needs more than 20000 operations" in vectors.functions["residual"]


def test_results_that_stand_in_many_places_are_stored_in_pieces():
    n = 70

    def residual(t, y, yp, p):
        total = sum(y[k] for k in range(n))
        return [yp[i] + p[0] * total + 3.0 * t for i in range(n)]

    problem = daedal.ImplicitDAE(residual, n, params=[0.5])
    made = traced_problem(problem).derivatives["jacobian"]
    status, found = made.evaluate(0.0, np.ones(n), np.ones(n), 2.0, [0.25])
    assert status == 0
    np.testing.assert_allclose(found, 0.25 * np.ones((n, n)) + 2.0 * np.eye(n), rtol=1e-15)


@pytest.mark.parametrize("n", [1200, 2500], ids=["derivative too long", "function too long"])
def test_differences_of_long_functions_are_grouped(n):
    def residual(t, y, yp):
        flows = np.diff(y)
        return yp - np.concatenate([flows, [0.0]]) + np.concatenate([[0.0], flows]) + np.exp(-y) * y**3

    problem = daedal.ImplicitDAE(lambda t, y, yp, p: residual(t, y, p * yp), n, params=1.0)
    for scale in (1.0, 2.0):
        sol = daedal.solve(problem, (0.0, 0.1), (np.ones(n), None), method="dassl", params=scale)
        assert sol.success
        assert 0 < sol.stats.jacobian_residual_evaluations <= 4 * sol.stats.jacobian_evaluations


def test_products_with_sparse_matrices_are_those_of_dense_ones():
    rng = np.random.default_rng(0)
    matrix = rng.normal(size=(7, 12)) * (rng.random((7, 12)) < 0.15)
    matrix[3] = 0.0
    block = rng.normal(size=(12, 3))
    for function in (
        lambda t, y: matrix @ y,
        lambda t, y: y[:7] @ matrix,
        lambda t, y: (matrix @ (block * y[:, None])).ravel(),
        lambda t, y: np.dot(matrix, np.exp(y)),
    ):
        assert_same(function, rng.normal(size=(3, 12)))


def test_given_sparsity_and_bandwidth_are_kept():
    from scipy.sparse import csc_array

    pattern = csc_array(np.ones((2, 2)))
    for structure in ({"sparsity": pattern}, {"bandwidth": (1, 1)}):
        problem = oscillator(swing, **structure)
        plain, traced = both(problem, (0.0, 2.0), ([1.0, 0.0], None))
        assert traced.y[:, -1] == pytest.approx(plain.y[:, -1], abs=1e-4)
        assert traced.stats.jacobian_residual_evaluations == 0


# --- what cannot be traced --------------------------------------------------------------------------------------------


def test_untraceable_functions_are_named_with_the_reason_and_the_others_are_traced():
    calls = []

    def force(t, q, v):
        calls.append(t)
        return [0.0, -9.81]

    sol = daedal.solve(pendulum(force), (0.0, 1.0), START)
    assert len(calls) > 50
    assert sol.functions["force"].startswith("Python: changes 'calls'")
    assert sol.functions["constraint"].startswith("traced")
    assert "Python: changes 'calls'" in str(sol) and "traced" in str(sol)


def test_always_raises_with_the_reason_and_never_leaves_functions_alone():
    def noisy(t, y, yp):
        return [yp[0] + y[0] + 0.0 * random.random(), yp[1]]

    with pytest.raises(daedal.InvalidProblemError, match="residual cannot be traced: uses random numbers"):
        daedal.solve(oscillator(noisy), (0.0, 1.0), ([1.0, 0.0], None), compile="always")
    sol = daedal.solve(oscillator(swing), (0.0, 1.0), ([1.0, 0.0], None), compile="never")
    assert sol.functions == {"residual": "Python"}
    with pytest.raises(daedal.InvalidProblemError, match="compile must be one of"):
        daedal.solve(oscillator(swing), (0.0, 1.0), ([1.0, 0.0], None), compile="maybe")


def rolling_wheel():
    """A wheel on a hill y = cos(x), with its point of contact as a contact coordinate."""
    return daedal.MechanicalSystem(
        1.0,
        lambda t, q, v, s: [0.0, -9.81],
        lambda t, q, s: [(q[0] - s[0]) ** 2 + (q[1] - np.cos(s[0])) ** 2 - 0.01],
        n_q=2,
        n_constraints=1,
        contact=lambda t, q, s: [(q[0] - s[0]) - np.sin(s[0]) * (q[1] - np.cos(s[0]))],
        n_s=1,
    )


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (rolling_wheel, "belongs to a system with contact coordinates, which require an iteration"),
        (lambda: library.get("chain_of_pendulums").problem, "belongs to a system with sparse matrices"),
        (
            lambda: daedal.MechanicalSystem(np.ones(501), lambda t, q, v: -q, n_q=501),
            "belongs to a system with more than 500 coordinates",
        ),
    ],
)
def test_systems_that_are_not_traced_say_why(make, reason):
    system = make()
    assert set(system.functions.values()) == {f"Python: {reason}"}
    with pytest.raises(daedal.InvalidProblemError, match=f"compile='always': force cannot be traced: {reason}"):
        daedal.solve(system, (0.0, 1.0), (np.zeros(system.n_q), None), compile="always")


def test_a_table_says_how_functions_are_evaluated():
    table = pendulum().functions
    assert table["force"].startswith("traced, ")
    assert str(table).splitlines()[0].split()[0] == "force"


# --- functions that lie -----------------------------------------------------------------------------------------------


def counting():
    count = [0]

    def residual(t, y, yp):
        count[0] += 1
        return swing(t, y, yp)

    return residual


def mutating():
    def residual(t, y, yp):
        y[0] = math.sin(y[0])
        return [yp[0] - y[1], yp[1] + y[0]]

    return residual


def rolling():
    generator = np.random.default_rng(1)

    def residual(t, y, yp):
        return [yp[0] - y[1] + 1e-12 * generator.random(), yp[1] + math.sin(y[0])]

    return residual


@pytest.mark.parametrize(
    ("make", "reason"), [(counting, "changes"), (mutating, "changes its arguments"), (rolling, "random")]
)
def test_functions_that_lie_are_found_and_solved_as_they_are(make, reason):
    sol = daedal.solve(oscillator(make()), (0.0, 2.0), ([1.0, 0.0], [0.0, -math.sin(1.0)]))
    honest = daedal.solve(oscillator(swing), (0.0, 2.0), ([1.0, 0.0], [0.0, -math.sin(1.0)]), compile="never")
    assert sol.functions["residual"].startswith("Python: ") and reason in sol.functions["residual"]
    assert sol.y[:, -1] == pytest.approx(honest.y[:, -1], abs=1e-4)


def test_results_of_different_shapes_are_refused_as_before():
    def shapeless(t, y, yp):
        return [yp[0], yp[1]] if t < 0.5 else [yp[0]]

    with pytest.raises(daedal.InvalidProblemError, match="shape"):
        daedal.solve(oscillator(shapeless), (0.0, 1.0), ([1.0, 0.0], [0.0, 0.0]))


STIFFNESS = 1.0


def test_a_changed_global_is_seen_by_the_next_run():
    global STIFFNESS

    def spring(t, y, yp):
        return [yp[0] - y[1], yp[1] + STIFFNESS * y[0]]

    problem = oscillator(spring)
    for STIFFNESS in (1.0, 4.0):
        sol = daedal.solve(problem, (0.0, 1.0), ([1.0, 0.0], None), rtol=1e-9, atol=1e-12)
        assert sol.y[0, -1] == pytest.approx(math.cos(math.sqrt(STIFFNESS)), abs=1e-6)
        assert sol.functions["residual"].startswith("traced")


@pytest.mark.parametrize("kind", ["closure", "array", "list", "attribute"])
def test_whatever_else_changed_outside_is_seen_by_the_next_run(kind):
    k, values, entries, bundle = 1.0, np.array([1.0]), [1.0], SimpleNamespace(k=1.0)
    stiffness = {
        "closure": lambda: k,
        "array": lambda: values[0],
        "list": lambda: entries[0],
        "attribute": lambda: bundle.k,
    }[kind]
    problem = oscillator(lambda t, y, yp: [yp[0] - y[1], yp[1] + stiffness() * y[0]])
    for number in (1.0, 4.0):
        k, values[0], entries[0], bundle.k = number, number, number, number
        sol = daedal.solve(problem, (0.0, 1.0), ([1.0, 0.0], None), rtol=1e-9, atol=1e-12)
        assert sol.y[0, -1] == pytest.approx(math.cos(math.sqrt(number)), abs=1e-6)


def test_a_function_that_changes_what_another_reads_is_found_after_the_run():
    state = {"k": 1.0}

    def force(t, q, v):
        return [-state["k"] * q[0]]

    def mass(t, q):
        state["k"] = 1.0 if t < 0.5 else 4.0  # not traceable, and the force depends on it
        return [[1.0]]

    system = daedal.MechanicalSystem(mass, force, n_q=1)
    with pytest.warns(daedal.errors.TraceWarning, match="force, component 0, at t = "):
        sol = daedal.solve(system, (0.0, 1.0), ([1.0], [0.0]), rtol=1e-8, atol=1e-10)
    assert set(sol.functions.values()) == {"Python"}
    at = (math.cos(0.5), -math.sin(0.5))
    exact = at[0] * math.cos(1.0) + at[1] / 2.0 * math.sin(1.0)
    assert sol.q[0, -1] == pytest.approx(exact, abs=1e-4)


# --- what functions raise ---------------------------------------------------------------------------------------------


class Broken(Exception):
    pass


def test_exceptions_arrive_unchanged():
    def residual(t, y, yp):
        if t > 0.5:
            raise Broken("beyond the table")
        return swing(t, y, yp)

    problem = oscillator(residual)
    assert problem.functions["residual"].startswith("traced")
    with pytest.raises(Broken, match="beyond the table"):
        daedal.solve(problem, (0.0, 1.0), ([1.0, 0.0], None))


def test_unevaluable_points_and_nan_shorten_the_step():
    def falling(t, y, yp):
        if y[0] < 0.0:
            raise daedal.Unevaluable
        return [yp[0] + np.sqrt(y[0])]

    problem = daedal.ImplicitDAE(falling, 1)
    plain, traced = both(problem, (0.0, 1.5), ([1.0], None), rtol=1e-6)
    assert traced.functions["residual"].startswith("traced")
    assert traced.y[0, -1] == pytest.approx((1.0 - 0.75) ** 2, abs=1e-4)
    assert plain.y[0, -1] == pytest.approx(traced.y[0, -1], abs=1e-4)


def test_infinite_derivatives_at_the_start_are_left_to_differences():
    problem = daedal.ImplicitDAE(lambda t, y, yp: [yp[0] - 1.0 - np.sqrt(np.abs(y[0]))], 1)
    plain, traced = both(problem, (0.0, 1.0), ([0.0], [1.0]))
    assert traced.functions["jacobian"] == "differences: the derivative is infinite somewhere"
    assert traced.y[0, -1] == pytest.approx(plain.y[0, -1], abs=1e-4)


def test_a_run_through_infinite_derivatives_is_tried_with_differences_as_well():
    """x' = -2 sqrt(|x|) comes to rest at 0, where the derivative is infinite."""
    problem = daedal.ImplicitDAE(lambda t, y, yp: [yp[0] + 2.0 * np.sqrt(np.abs(y[0]))], 1)

    def outcome(compile):
        try:
            return daedal.solve(problem, (0.0, 0.9999), ([1.0], [-2.0]), rtol=1e-3, atol=1e-3, compile=compile).status
        except daedal.IntegrationError:
            return "failed"

    assert outcome("auto") == outcome("never")


# --- parameters -------------------------------------------------------------------------------------------------------

Pair = namedtuple("Pair", "k m")


@dataclass
class Data:
    k: float
    m: float
    kind: str = "linear"


STRUCTURES = {
    "array": (lambda k, m: np.array([k, m]), lambda p: (p[0], p[1])),
    "list": (lambda k, m: [k, m], lambda p: (p[0], p[1])),
    "dict": (lambda k, m: {"k": k, "inner": {"m": [m]}}, lambda p: (p["k"], p["inner"]["m"][0])),
    "dataclass": (lambda k, m: Data(k, m), lambda p: (p.k, p.m)),
    "namedtuple": (lambda k, m: Pair(k, m), lambda p: (p.k, p.m)),
    "namespace": (lambda k, m: SimpleNamespace(k=k, m=np.array([m, 0.0])), lambda p: (p.k, p.m[0])),
    "number": (lambda k, m: k / m, lambda p: (p, 1.0)),
}


@pytest.mark.parametrize("kind", STRUCTURES)
def test_parameters_of_any_structure_change_without_another_trace(kind):
    make, read = STRUCTURES[kind]

    def residual(t, y, yp, p):
        k, m = read(p)
        return [yp[0] - y[1], m * yp[1] + k * y[0]]

    problem = oscillator(residual, params=make(1.0, 1.0))
    solver = daedal.prepare(problem, rtol=1e-9, atol=1e-12)
    for k, m in ((4.0, 1.0), (9.0, 4.0)):
        exact = math.cos(math.sqrt(k / m))
        for sol in (
            solver.solve((0.0, 1.0), ([1.0, 0.0], None), params=make(k, m)),
            daedal.solve(problem.with_params(make(k, m)), (0.0, 1.0), ([1.0, 0.0], None), rtol=1e-9, atol=1e-12),
        ):
            assert sol.functions["residual"].startswith("traced")
            assert sol.y[0, -1] == pytest.approx(exact, abs=1e-6)
    layout = ParameterLayout(make(1.0, 2.0))
    assert layout.fits(make(3.0, 4.0)) and layout.numbers(make(3.0, 4.0)).size == layout.count


def test_parameters_that_decide_the_structure_are_traced_anew():
    def residual(t, y, yp, p):
        rate = sum(p["rate"] for _ in range(int(p["times"]))) if p["kind"] == "sum" else 7.0
        return [yp[0] + rate * y[0]]

    problem = daedal.ImplicitDAE(residual, 1, params={"rate": 0.5, "times": 2.0, "kind": "sum"})
    solver = daedal.prepare(problem, rtol=1e-9, atol=1e-12)
    cases = (({"rate": 0.5, "times": 3.0, "kind": "sum"}, 1.5), ({"rate": 0.5, "times": 2.0, "kind": "other"}, 7.0))
    for params, rate in cases:
        sol = solver.solve((0.0, 1.0), ([1.0], None), params=params)
        assert sol.y[0, -1] == pytest.approx(math.exp(-rate), abs=1e-6)


def test_parameters_changed_in_place_are_seen():
    params = {"k": 1.0}
    problem = oscillator(lambda t, y, yp, p: [yp[0] - y[1], yp[1] + p["k"] * y[0]], params=params)
    for params["k"] in (1.0, 4.0):
        sol = daedal.solve(problem, (0.0, 1.0), ([1.0, 0.0], None), rtol=1e-9, atol=1e-12)
        assert sol.y[0, -1] == pytest.approx(math.cos(math.sqrt(params["k"])), abs=1e-6)


# --- explicit compilation, pickles, threads ---------------------------------------------------------------------------


def test_compiled_by_trace_is_for_good():
    scale = [1.0]
    problem = oscillator(lambda t, y, yp: [yp[0] - y[1], yp[1] + scale[0] * y[0]]).compiled(backend="trace")
    assert problem.functions["residual"].startswith("traced")
    scale[0] = 4.0
    sol = daedal.solve(problem, (0.0, 1.0), ([1.0, 0.0], [0.0, -1.0]), rtol=1e-9, atol=1e-12)
    assert sol.y[0, -1] == pytest.approx(math.cos(1.0), abs=1e-6)
    with pytest.raises(daedal.InvalidProblemError, match="backend"):
        oscillator(swing).compiled(backend="c")


def module_level_residual(t, y, yp):
    return swing(t, y, yp)


def test_problems_solvers_and_solutions_are_stored():
    problem = oscillator(module_level_residual)
    solver = daedal.prepare(problem)
    sol = solver.solve((0.0, 1.0), ([1.0, 0.0], None))
    for stored in (problem, problem.compiled(backend="trace"), solver):
        again = pickle.loads(pickle.dumps(stored))
        solve = getattr(again, "solve", None) or (lambda *request, p=again: daedal.solve(p, *request))
        assert np.array_equal(solve((0.0, 1.0), ([1.0, 0.0], None)).y, sol.y)
    again = pickle.loads(pickle.dumps(sol))
    assert np.array_equal(again.y, sol.y) and again.functions == sol.functions
    assert copy.copy(problem).functions == problem.functions


def test_threads_trace_and_solve_at_once():
    def work(k):
        problem = oscillator(lambda t, y, yp: [yp[0] - y[1], yp[1] + k * y[0]])
        return daedal.solve(problem, (0.0, 1.0), ([1.0, 0.0], None)).y[:, -1]

    numbers = [1.0 + 0.1 * i for i in range(8)]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(work, numbers))
    assert all(np.array_equal(a, work(k)) for a, k in zip(found, numbers))


def test_the_same_problem_stated_anew_gives_the_same_bits():
    def run():
        return daedal.solve(pendulum(), (0.0, 1.0), START).q

    first = run()
    daedal.solve(oscillator(swing), (0.0, 1.0), ([1.0, 0.0], None))
    assert np.array_equal(first, run())


def test_nothing_is_said_where_nothing_is_wrong():
    with warnings.catch_warnings():
        warnings.simplefilter("error", daedal.errors.TraceWarning)
        problem = pendulum()
        daedal.solve(problem, (0.0, 1.0), START)
    assert problem.functions["constraint"].startswith("traced")  # and so compared with Python


@pytest.mark.parametrize("start", [np.array([1.0 + 1.0j, 0.0]), np.array([1.0 + 0.0j, 0.0]), [1.0 + 0.0j, 0.0]])
def test_complex_initial_values_are_refused_without_a_warning(start):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(daedal.InvalidProblemError, match="y0 must hold 2 real numbers"):
            daedal.solve(oscillator(swing), (0.0, 1.0), (start, None))


def test_constants_that_overflow_are_folded_without_a_warning():
    large, zero = np.array([1e300])[0], np.zeros(1)[0]

    def residual(t, y, yp):
        with np.errstate(all="ignore"):
            ends = np.array([y[0], large]) * np.array([1.0, large]), np.array([y[1], large]) / np.array([1.0, zero])
        return [yp[0] - np.minimum(ends[1], y[1])[0], yp[1] + np.minimum(ends[0], 10.0)[0]]

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sol = daedal.solve(oscillator(residual), (0.0, 1.0), ([1.0, 0.0], None), rtol=1e-9, atol=1e-12)
    assert sol.functions["residual"].startswith("traced")
    assert sol.y[0, -1] == pytest.approx(math.cos(1.0), abs=1e-7)


def test_hybrid_runs_are_traced_mode_by_mode():
    def counted(t, q, v):
        calls.append(t)
        return [-9.81 + 2.0 * v[0] ** 2]

    calls = []
    modes = {
        "free": daedal.MechanicalSystem(1.0, lambda t, q, v: [-9.81], n_q=1),
        "braked": daedal.MechanicalSystem(1.0, counted, n_q=1),
    }
    ball = daedal.hybrid.HybridProblem(
        modes, [daedal.hybrid.Transition("free", "braked", lambda t, q, v: q[0] - 0.5, direction=-1)]
    )
    assert ball.functions["free"]["force"].startswith("traced")
    sol = daedal.solve(ball, (0.0, 0.5), ("free", ([1.0], [0.0])), rtol=1e-8, atol=1e-10)
    assert sol.functions["free"]["force"] == "traced, 0 operations"
    assert sol.functions["braked"]["force"].startswith("Python: changes 'calls'")
    assert sol.events[0].t == pytest.approx(math.sqrt(1.0 / 9.81), abs=1e-6)
    assert "free: traced, 0 operations" in str(sol) and "braked: Python: changes 'calls'" in str(sol)
    plain = daedal.solve(ball, (0.0, 0.5), ("free", ([1.0], [0.0])), rtol=1e-8, atol=1e-10, compile="never")
    assert plain.functions["free"]["force"] == "Python"
    assert sol.q[0, -1] == pytest.approx(plain.q[0, -1], abs=1e-7)


def test_functions_with_many_results_are_called_as_they_are():
    """A dense matrix of a million entries would be a million instructions, and minutes of code generation."""
    n = 300
    problem = daedal.ImplicitDAE(lambda t, y, yp: yp + y, n, jacobian=lambda t, y, yp, cj: (1.0 + cj) * np.eye(n))
    assert problem.functions["residual"].startswith("traced")
    assert "has 90000 results" in problem.functions["jacobian"]
    sol = daedal.solve(problem, (0.0, 1.0), (np.ones(n), -np.ones(n)))
    np.testing.assert_allclose(sol.y[:, -1], np.exp(-1.0), rtol=1e-4)
