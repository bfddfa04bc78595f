"""SymPy's expressions on the graph, against SymPy's own evaluation."""

import numpy as np
import pytest
import sympy
from sympy.physics.mechanics import dynamicsymbols

from daedal.errors import InvalidProblemError
from daedal.symbolic import Graph
from daedal.symbolic.derivative import jacobian
from daedal.symbolic.graph import evaluate
from daedal.symbolic.sympy_expressions import nodes_from_sympy

x, y, z = sympy.symbols("x y z")
EXPRESSIONS = [
    sympy.sin(x) * sympy.cos(y) - sympy.tan(z) / 3,
    x**2 / (1 + y**2) ** 3 - sympy.sqrt(z + 5) + x ** sympy.Rational(-3, 2),
    sympy.exp(-x) * sympy.log(y + 3) + sympy.pi * sympy.E,
    sympy.atan2(x, y) + sympy.asin(x / 3) + sympy.acos(y / 3) + sympy.atan(z),
    sympy.Abs(x - y) + sympy.sign(z) + sympy.Max(x, y, z) - sympy.Min(x, 0.3),
    sympy.Piecewise((x, x > y), (y**2, (y > z) & (x < 5)), (z, True)),
    sympy.sinh(x) + sympy.cosh(y) - sympy.tanh(z) + sympy.asinh(x) + sympy.erf(y),
    sympy.floor(3 * x) + sympy.ceiling(y) + sympy.sec(x) + sympy.cot(y),
    sympy.Rational(1, 3) + x * y * z / (x + 1),
    sympy.Integer(7),
]


def test_values_are_those_of_sympy():
    graph = Graph()
    nodes = nodes_from_sympy(graph, EXPRESSIONS, {s: graph.argument("q", k) for k, s in enumerate((x, y, z))})
    for point in np.random.default_rng(0).uniform(0.1, 1.5, (5, 3)):
        expected = [float(e.subs(dict(zip((x, y, z), point))).evalf()) for e in EXPRESSIONS]
        np.testing.assert_allclose(np.array(evaluate(graph, nodes, {"q": point}), dtype=float), expected, rtol=1e-13)


def test_derivatives_are_those_of_sympy():
    graph = Graph()
    variables = [graph.argument("q", k) for k in range(3)]
    smooth = [EXPRESSIONS[k] for k in (0, 1, 2, 3, 6, 8)]
    rows = jacobian(graph, nodes_from_sympy(graph, smooth, dict(zip((x, y, z), variables))), variables)
    point = {"q": [0.4, 0.9, 1.2]}
    for expression, row in zip(smooth, rows):
        for k, symbol in enumerate((x, y, z)):
            expected = float(expression.diff(symbol).subs(dict(zip((x, y, z), point["q"]))).evalf())
            found = float(evaluate(graph, [row.get(k, graph.zero)], point)[0])
            assert found == pytest.approx(expected, rel=1e-12, abs=1e-13)


def test_functions_of_time_and_their_derivatives_are_symbols():
    q, t = dynamicsymbols("q"), dynamicsymbols._t
    graph = Graph()
    known = {q: graph.argument("q", 0), q.diff(t): graph.argument("v", 0), t: graph.argument("t", 0)}
    [node] = nodes_from_sympy(graph, [q.diff(t) ** 2 * sympy.sin(q) + t], known)
    assert evaluate(graph, [node], {"q": [0.5], "v": [2.0], "t": 1.0})[0] == pytest.approx(4.0 * np.sin(0.5) + 1.0)


def test_common_subexpressions_are_shared_over_all_expressions():
    graph = Graph()
    a = sympy.sin(x + y) ** 2
    nodes = nodes_from_sympy(graph, [a * z, a + z, a], {s: graph.argument("q", k) for k, s in enumerate((x, y, z))})
    assert graph.count(nodes) == 5


def test_an_expression_deeper_than_pythons_stack():
    deep = x
    for _ in range(3000):
        deep = sympy.sin(deep, evaluate=False)
    graph = Graph()
    [node] = nodes_from_sympy(graph, [deep], {x: graph.argument("q", 0)})
    assert graph.count([node]) == 3000


@pytest.mark.parametrize("expression", [x + sympy.Symbol("unknown"), sympy.gamma(x), sympy.Function("f")(x)])
def test_what_is_not_known_is_named(expression):
    graph = Graph()
    with pytest.raises(InvalidProblemError, match="is neither an unknown nor a parameter"):
        nodes_from_sympy(graph, [expression], {x: graph.argument("q", 0)})
