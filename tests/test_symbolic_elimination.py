"""Elimination on the graph against LAPACK; its cost along chains; the seven-body mechanism."""

import math
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from daedal.library import squeezer
from daedal.symbolic import Graph, scalar_argument, trace, vector_argument
from daedal.symbolic.derivative import acceleration_bias, jacobian
from daedal.symbolic.elimination import StructurallySingular, augmented, rows_of, solve
from daedal.symbolic.machine import BAD_PIVOT, compile_function


def solved(matrix, right, n_first=0):
    """Values of the solution and the quality of pivots for a matrix of numbers, through symbols for its entries."""
    n = len(matrix)
    graph = Graph()
    entries = {(i, j): graph.argument("a", i * n + j) for i in range(n) for j in range(n) if matrix[i, j] != 0.0}
    if np.array_equal(matrix, matrix.T):
        entries = {(i, j): entries[min(i, j), max(i, j)] for i, j in entries}
    rows = [{j: entries[i, j] for j in range(n) if (i, j) in entries} for i in range(n)]
    result = solve(graph, rows, [[graph.argument("b", i) for i in range(n)]], n_first)
    code = compile_function(graph, {"a": n * n, "b": n}, {"x": result.solutions[0], "quality": [result.quality]})
    _, found = code(0.0, a=matrix.ravel(), b=right)
    return found["x"], found["quality"][0]


def mechanism(n, m, seed, density=0.5, symmetric=True):
    """A random [[M, B], [K, 0]] with positive definite M."""
    rng = np.random.default_rng(seed)
    a = rng.normal(size=(n, n)) * (rng.random((n, n)) < density)
    mass = a @ a.T + np.eye(n)
    g = rng.normal(size=(m, n)) * (rng.random((m, n)) < density) + np.eye(m, n)
    b = g if symmetric else g + 0.1 * rng.normal(size=(m, n)) * (g != 0.0)
    return np.block([[mass, b.T], [g, np.zeros((m, m))]]), rng.normal(size=n + m)


@given(st.integers(1, 8), st.integers(0, 5), st.integers(0, 1000), st.booleans())
def test_augmented_systems_are_solved_as_by_lapack(n, m, seed, symmetric):
    m = min(n, m)
    matrix, right = mechanism(n, m, seed, symmetric=symmetric)
    x, quality = solved(matrix, right, n)
    assert np.abs(matrix @ x - right).max() <= 1e-12 / quality * (1.0 + np.abs(matrix).max() * np.abs(x).max())
    assert 0.0 < quality <= 1.0


@pytest.mark.parametrize("copies", ["equal", "combined"])
def test_dependent_constraints_show_in_the_quality_of_pivots(copies):
    matrix, right = mechanism(6, 3, 1, density=1.0)
    matrix[8, :6] = matrix[7, :6] if copies == "equal" else matrix[6, :6] - 2.0 * matrix[7, :6]
    matrix[:6, 8] = matrix[8, :6]
    _, quality = solved(matrix, right, 6)
    assert not quality > 1e-13


def test_a_massless_coordinate_waits_for_its_constraint():
    """M is singular, but positive definite on the kernel of G: the pivot comes from an eliminated multiplier."""
    matrix = np.array([[1.0, 0.0, 1.0], [0.0, 0.0, 1.0], [1.0, 1.0, 0.0]])
    x, _ = solved(matrix, np.array([1.0, 2.0, 3.0]), 2)
    assert np.allclose(matrix @ x, [1.0, 2.0, 3.0], rtol=1e-14)


def test_without_any_pivot_on_the_diagonal_the_pivoted_solver_is_asked_for():
    with pytest.raises(StructurallySingular):
        solved(np.array([[0.0, 1.0], [1.0, 0.0]]), np.ones(2))


def test_a_bad_pivot_is_told_by_the_status():
    graph = Graph()
    q = vector_argument(graph, "q", 2)
    rows = [{0: graph.one, 2: q[0].node}, {1: graph.one, 2: q[1].node}, {0: q[0].node, 1: q[1].node}]
    result = solve(graph, rows, [[graph.one, graph.one, graph.zero]], 2)
    bad = graph.opposite(graph.apply("less", graph.constant(1e-10), result.quality))
    code = compile_function(graph, {"q": 2}, {"x": result.solutions[0]}, statuses=[(bad, BAD_PIVOT)])
    assert code(0.0, q=[1.0, 2.0])[0] == 0
    assert code(0.0, q=[0.0, 0.0])[0] == BAD_PIVOT
    assert code(0.0, q=[math.nan, 0.0])[0] == BAD_PIVOT


def chain(n):
    """Accelerations of a chain of n planar bodies in absolute coordinates: graph, matrix, right side."""
    graph = Graph()
    t, q, v = scalar_argument(graph, "t"), vector_argument(graph, "q", 3 * n), vector_argument(graph, "v", 3 * n)

    def joints(t, q):
        g, x, y = [], 0.0, 0.0
        for i in range(n):
            c, s = 0.5 * math.cos(q[3 * i + 2]), 0.5 * math.sin(q[3 * i + 2])
            g += [q[3 * i] - c - x, q[3 * i + 1] - s - y]
            x, y = q[3 * i] + c, q[3 * i + 1] + s
        return g

    g = trace(joints, (t, q))
    positions, velocities = [x.node for x in q], [x.node for x in v]
    rows = jacobian(graph, g.nodes, positions)
    gamma = acceleration_bias(graph, g.nodes, t.node, positions, velocities)
    mass = [{i: graph.constant((1.0, 1.0, 1.0 / 12.0)[i % 3])} for i in range(3 * n)]
    force = [graph.constant(-9.81 if i % 3 == 1 else 0.0) for i in range(3 * n)]
    return graph, augmented(3 * n, mass, rows, rows), [*force, *gamma]


def test_operations_grow_linearly_along_chains():
    counts = {}
    for n in (5, 10, 20, 40, 80):
        graph, rows, right = chain(n)
        result = solve(graph, rows, [right], 3 * n)
        counts[n] = graph.count([*result.solutions[0], result.quality])
    growth = [(counts[2 * n] - counts[n]) / n for n in (5, 10, 20, 40)]
    assert max(growth) <= 1.05 * min(growth), counts


def test_a_long_chain_in_pieces_agrees_with_lapack():
    n = 40
    graph, rows, right = chain(n)
    result = solve(graph, rows, [right], 3 * n)
    entries = [(i, j, x) for i, row in enumerate(rows) for j, x in row.items()]
    results = {"x": result.solutions[0], "K": [x for *_, x in entries], "b": right}
    code = compile_function(graph, {"q": 3 * n, "v": 3 * n}, results)
    assert code.operations > 2000  # more than one piece
    rng = np.random.default_rng(0)
    _, found = code(0.0, q=rng.random(3 * n), v=rng.random(3 * n))
    matrix = np.zeros((5 * n, 5 * n))
    for (i, j, _), value in zip(entries, found["K"]):
        matrix[i, j] = value
    expected = np.linalg.solve(matrix, found["b"])
    np.testing.assert_allclose(found["x"], expected, rtol=1e-10, atol=1e-10 * np.abs(expected).max())


def test_seven_bodies_from_plain_functions_to_accelerations(capsys):
    """M, f, G, gamma and the accelerations with multipliers; how long it takes is printed, not asserted."""
    started = time.perf_counter()
    graph = Graph()
    t, p = scalar_argument(graph, "t"), vector_argument(graph, "p", 1)
    q, v = vector_argument(graph, "q", 7), vector_argument(graph, "v", 7)
    mass = trace(squeezer.squeezer_mass, (t, q, p), (7, 7))
    force = trace(squeezer.squeezer_force, (t, q, v, p), (7,))
    loops = trace(squeezer.loops, (t, q, p), (6,))
    positions, velocities = [x.node for x in q], [x.node for x in v]
    rows = jacobian(graph, loops.nodes, positions)
    gamma = acceleration_bias(graph, loops.nodes, t.node, positions, velocities)
    g = [[row.get(j, graph.zero) for j in range(7)] for row in rows]
    result = solve(graph, augmented(7, rows_of(graph, mass.array), rows, rows), [[*force.nodes, *gamma]], 7)
    differentiated = time.perf_counter()
    terms = compile_function(
        graph, {"q": 7, "v": 7}, {"M": mass.array, "f": force.nodes, "G": g, "gamma": gamma}, {"p": 1}
    )
    code = compile_function(graph, {"q": 7, "v": 7}, {"x": result.solutions[0]}, {"p": 1})
    compiled = time.perf_counter()

    rng = np.random.default_rng(0)
    state, params = {"q": rng.random(7), "v": rng.random(7)}, np.array([0.033])
    _, found = terms(0.0, **state, p=params)
    np.testing.assert_allclose(found["M"], squeezer.squeezer_mass(0.0, state["q"], params), rtol=1e-13)
    np.testing.assert_allclose(found["f"], squeezer.squeezer_force(0.0, *state.values(), params), rtol=1e-13)
    np.testing.assert_allclose(found["G"], squeezer.loops_jacobian(0.0, state["q"], params), rtol=1e-13, atol=1e-17)
    np.testing.assert_allclose(found["gamma"], squeezer.loops_bias(0.0, *state.values(), params), rtol=1e-12)
    matrix = np.block([[found["M"], found["G"].T], [found["G"], np.zeros((6, 6))]])
    expected = np.linalg.solve(matrix, np.concatenate([found["f"], found["gamma"]]))
    np.testing.assert_allclose(code(0.0, **state, p=params)[1]["x"], expected, rtol=1e-11)

    with capsys.disabled():
        print(
            f"\nseven-body mechanism: trace, derivatives, elimination {1e3 * (differentiated - started):.1f} ms, code "
            f"{1e3 * (compiled - differentiated):.1f} ms; M, f, G, gamma {per_call(terms, state, params):.2f} us "
            f"({terms.operations} operations), accelerations {per_call(code, state, params):.2f} us ({code.operations})"
        )


def per_call(code, state, params, n=20_000):
    """Microseconds for a call from compiled code."""
    from daedal.sensitivity.adjoint.adjoint_loops import evaluate_many

    block = np.zeros(code.size)
    for name, values in {**state, "p": params}.items():
        block[code.slices[name]] = values
    times, nothing = np.zeros(n), np.zeros((n, 0))
    seconds = []
    for _ in range(5):
        started = time.perf_counter()
        evaluate_many(code.address, times, nothing, block, 0, nothing)
        seconds.append(time.perf_counter() - started)
    return 1e6 * min(seconds) / n
