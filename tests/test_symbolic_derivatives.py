"""Exact derivatives: of every operation and of random expressions, against 40 digits of mpmath."""

import math

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from daedal.symbolic import Graph, scalar_argument, trace, vector_argument
from daedal.symbolic.derivative import acceleration_bias, directional, gradient, jacobian, sparsity
from daedal.symbolic.graph import evaluate
from daedal.symbolic.machine import compile_function
from symbolic_tools import extended, machine, points, traced


def along_two_lines(result, q, direction, other):
    """First derivative along a direction and second along two, exact and by differences of 40 digits."""
    graph = result.graph
    rate = [graph.constant(x) for x in direction]
    variables = [graph.argument("q", k) for k in range(len(q))]
    first = directional(graph, result.nodes, dict(zip(variables, rate)))
    second = directional(graph, first, dict(zip(variables, [graph.constant(x) for x in other])))

    def value(s, r):
        return extended(
            graph,
            result.nodes,
            q=[x + s * d + r * e for x, d, e in zip(q, map(mpmath.mpf, direction), map(mpmath.mpf, other))],
        )[0]

    exact = extended(graph, [first[0], second[0]], q=q)
    return exact, (mpmath.diff(value, (0, 0), (1, 0)), mpmath.diff(value, (0, 0), (1, 1)))


def close(a, b, digits=13):
    return abs(a - b) <= mpmath.mpf(10) ** -digits * (1 + abs(b))


OPERATIONS = {
    **{
        name: getattr(np, name)
        for name in ("sin", "cos", "tan", "exp", "exp2", "expm1", "sinh", "cosh", "tanh", "cbrt")
    },
    **{
        name: getattr(np, name)
        for name in ("log", "log2", "log10", "log1p", "sqrt", "arcsin", "arccos", "arctan", "arctanh")
    },
    **{name: getattr(np, name) for name in ("arcsinh", "abs", "sign", "floor", "square", "reciprocal")},
    "arccosh": lambda x: np.arccosh(1.0 + x),
    "erf": math.erf,
    "erfc": math.erfc,
    "division": lambda x: (1.0 + x) / (2.0 - x * x),
    "arctan2": lambda x: np.arctan2(x, 1.0 - x),
    "hypot": lambda x: np.hypot(x, 1.0 - x),
    "powers": lambda x: x**3 + x**-2 + x**1.5 + x**0.5 + 2.0**x + x**x + x**20,
    "extremes": lambda x: np.maximum(x, 0.2) * np.minimum(x * x, 0.5) + max(x, 0.1),
    "where": lambda x: np.where(x > 0.25, np.sin(x), x**2),
    "copysign": lambda x: np.copysign(x, x - 0.2),
    "fmod": lambda x: np.fmod(x * 7.0, 0.7),
    "interp": lambda x: np.interp(x, [0.0, 0.35, 1.0], [0.0, 3.0, 1.0]),
}


@pytest.mark.parametrize("name", OPERATIONS)
@pytest.mark.parametrize("x", [0.3, 0.57])
def test_derivatives_of_each_operation(name, x):
    result = traced(lambda t, q: [OPERATIONS[name](q[0])], 1)
    exact, reference = along_two_lines(result, [x], [1.0], [1.0])
    assert close(exact[0], reference[0])
    assert close(exact[1], reference[1], 11)


UNARY = [
    np.sin,
    np.cos,
    np.tanh,
    np.arctan,
    np.exp,
    lambda x: np.sqrt(1.0 + x * x),
    lambda x: np.log(1.5 + np.sin(x)),
    abs,
    math.erf,
]
BINARY = [
    lambda a, b: a + b,
    lambda a, b: a - b,
    lambda a, b: a * b,
    lambda a, b: a / (2.0 + np.cos(b)),
    lambda a, b: np.arctan2(a, 1.5 + np.sin(b)),
    lambda a, b: np.hypot(a, b + 0.25),
    lambda a, b: (1.5 + np.sin(a)) ** np.cos(b),
    np.maximum,
    lambda a, b: np.where(a < b, np.tanh(a), b * b),
]
LEAVES = st.one_of(st.sampled_from([0, 1, 2]), st.sampled_from([0.5, -1.25, 2.0, 0.0, 1.0]).map(lambda x: ("c", x)))
TREES = st.recursive(
    LEAVES,
    lambda children: st.one_of(
        st.tuples(st.sampled_from(range(len(UNARY))), children),
        st.tuples(st.sampled_from(range(len(BINARY))), children, children),
    ),
    max_leaves=8,
)


def grown(tree, q):
    if isinstance(tree, int):
        return q[tree]
    if tree[0] == "c":
        return tree[1]
    if len(tree) == 2:
        return UNARY[tree[0]](np.tanh(grown(tree[1], q)))
    return BINARY[tree[0]](np.tanh(grown(tree[1], q)), grown(tree[2], q))


VECTORS = st.lists(st.floats(-1.5, 1.5).map(lambda x: round(x, 3) + 0.0001), min_size=3, max_size=3)


@settings(max_examples=150)
@given(TREES, VECTORS, VECTORS, VECTORS)
def test_random_expressions_value_and_two_derivatives(tree, q, direction, other):
    def function(t, q):
        return [grown(tree, q) + 0.0 * q[0]]

    result = traced(function, 3)
    expected = function(0.7, np.array(q))[0]
    status, found = machine(result, 3)(0.7, q)
    assert status == 0
    assert found[0] == pytest.approx(expected, rel=1e-13, abs=1e-13)
    assert close(extended(result.graph, result.nodes, q=q)[0], mpmath.mpf(float(expected)), 13)
    exact, reference = along_two_lines(result, q, direction, other)
    assert close(exact[0], reference[0])
    assert close(exact[1], reference[1], 10)


@settings(max_examples=80)
@given(TREES, TREES, VECTORS)
def test_forward_and_reverse_mode_agree_on_random_expressions(first, second, q):
    result = traced(lambda t, q: [grown(first, q) + q[0], grown(second, q) * q[1]], 3)
    graph = result.graph
    variables = [graph.argument("q", k) for k in range(3)]
    rows = jacobian(graph, result.nodes, variables)
    for node, row, pattern in zip(result.nodes, rows, sparsity(graph, result.nodes, variables)):
        forward = [row.get(k, graph.zero) for k in range(3)]
        assert set(row) <= set(pattern)
        a, b = extended(graph, forward, q=q), extended(graph, gradient(graph, node, variables), q=q)
        assert all(close(x, y, 30) for x, y in zip(a, b))


def test_at_a_kink_the_derivative_is_that_of_the_branch_taken():
    result = traced(
        lambda t, q: [abs(q[0]), max(q[0], q[1]), np.maximum(q[0], q[1]), np.where(q[0] >= 0, 2 * q[0], 3 * q[0])], 2
    )
    graph = result.graph
    variables = [graph.argument("q", k) for k in range(2)]
    rows = [[row.get(k, graph.zero) for k in range(2)] for row in jacobian(graph, result.nodes, variables)]
    values = np.array([evaluate(graph, row, {"q": [0.0, 0.0]}) for row in rows])
    assert values.tolist() == [[1, 0], [1, 0], [1, 0], [2, 0]]


def test_a_branch_that_is_not_taken_leaves_no_nan_in_derivatives():
    result = traced(lambda t, q: [np.where(q[0] > 0, np.sqrt(q[0]), 0.0)], 1)
    graph = result.graph
    x = graph.argument("q", 0)
    for derivative in ([jacobian(graph, result.nodes, [x])[0][0]], gradient(graph, result.nodes[0], [x])):
        assert evaluate(graph, derivative, {"q": [-1.0]})[0] == 0.0


def test_the_acceleration_bias_of_a_moving_constraint():
    """g = x cos(2 t) + x y - t^3: all terms of gamma by hand."""
    graph = Graph()
    t, q, v = scalar_argument(graph, "t"), vector_argument(graph, "q", 2), vector_argument(graph, "v", 2)
    g = trace(lambda t, q: [q[0] * math.cos(2 * t) + q[0] * q[1] - t**3], (t, q))
    gamma = acceleration_bias(graph, g.nodes, t.node, [x.node for x in q], [x.node for x in v])
    time, (x, _), (a, b) = 0.3, (0.4, 0.7), (1.1, -0.6)
    [found] = evaluate(graph, gamma, {"t": time, "q": [x, 0.7], "v": [a, b]})
    expected = -2 * a * b + 4 * a * math.sin(2 * time) + 4 * x * math.cos(2 * time) + 6 * time
    assert found == pytest.approx(expected, rel=1e-14)


def test_sparsity_is_found():
    n = 6
    result = traced(lambda t, q: [q[i] ** 2 + (q[i + 1] if i < n - 1 else 0.0) + 0.0 * q[0] for i in range(n)], n)
    variables = [result.graph.argument("q", k) for k in range(n)]
    assert sparsity(result.graph, result.nodes, variables) == [[i, i + 1] if i < n - 1 else [i] for i in range(n)]


def test_a_graph_of_1e5_operations_is_traced_and_differentiated():
    """Sums over all unknowns go backwards, local couplings forwards: neither grows as the square."""
    n = 10_000

    def network(t, q):
        flow = np.sin(q[1:] - q[:-1]) * 0.3 + q[1:] * q[:-1]
        rate = -q * q
        rate[1:] -= flow
        rate[:-1] += flow
        return np.concatenate([rate, [np.sum(q**2 * np.cos(q))]])

    result = traced(network, n)
    graph = result.graph
    variables = [graph.argument("q", k) for k in range(n)]
    assert graph.count(result.nodes) > 1e5
    rows = jacobian(graph, result.nodes[:-1], variables)
    assert sum(map(len, rows)) == 3 * n - 2
    total = gradient(graph, result.nodes[-1], variables)
    q = points(n, 1)[0]
    last = evaluate(graph, total, {"q": q})
    assert np.allclose(last, 2 * q * np.cos(q) - q**2 * np.sin(q), rtol=1e-13, atol=1e-13)


def test_machine_code_of_derivatives_agrees_with_complex_steps():
    def function(t, q):
        return np.array([np.exp(q[0]) * np.sin(q[1]), q[0] / (1.0 + q[1] ** 2), np.sqrt(2.0 + q[0] * q[1])])

    result = traced(function, 2)
    graph = result.graph
    rows = jacobian(graph, result.nodes, [graph.argument("q", k) for k in range(2)])
    code = compile_function(graph, {"q": 2}, {"J": [[row.get(k, graph.zero) for k in range(2)] for row in rows]})
    for q in points(2):
        columns = [function(0.7, q + 1e-200j * np.eye(2)[k]).imag * 1e200 for k in range(2)]
        np.testing.assert_allclose(code(0.7, q=q)[1]["J"], np.array(columns).T, rtol=1e-13, atol=1e-14)


def test_a_table_of_one_value_is_a_constant():
    graph = Graph()
    x = graph.argument("x", 0)
    place = graph.locate(x, [0.0, 1.0])
    assert graph.pick(place, [2.0, 2.0, 2.0]) == graph.constant(2.0)
    assert not graph.is_constant(graph.pick(place, [2.0, 3.0, 2.0]))
    assert not graph.is_constant(graph.pick(x, [2.0, 2.0, 2.0]))  # an index that may lie outside of the table
    assert not graph.is_constant(graph.pick(place, [math.nan] * 3))
