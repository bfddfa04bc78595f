"""SymPy expressions as nodes of a graph; differentiation takes place on the graph, not in SymPy."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import reduce
from typing import Any

from daedal.errors import InvalidProblemError
from daedal.symbolic.graph import Graph
from daedal.symbolic.graph_functions import GraphFunction


def nodes_from_sympy(graph: Graph, expressions: Sequence[Any], symbols: Mapping[Any, int]) -> list[int]:
    """Convert expressions to nodes.

    Parameters
    ----------
    graph : Graph
        Graph of the nodes.
    expressions : sequence
        SymPy expressions or numbers.
    symbols : mapping
        Nodes of symbols, of functions of time such as ``q1(t)``, and of their derivatives.

    Examples
    --------
    >>> import sympy
    >>> from daedal.symbolic.graph import evaluate
    >>> from daedal.symbolic.graph import Graph
    >>> from daedal.symbolic.sympy_expressions import nodes_from_sympy
    >>> x, graph = sympy.Symbol("x"), Graph()
    >>> nodes = nodes_from_sympy(graph, [sympy.sin(x) ** 2, sympy.Rational(1, 3)], {x: graph.argument("q", 0)})
    >>> [round(float(value), 6) for value in evaluate(graph, nodes, {"q": [0.5]})]
    [0.229849, 0.333333]
    """
    return _translated(graph, expressions, dict(symbols))


class Symbols:
    """A graph with nodes for the time, for unknowns with their derivatives, and for parameters by name.

    Parameters
    ----------
    time : Symbol
    parameters : iterable of str
        Names of known parameters, in order; other symbols become further parameters.
    """

    def __init__(self, time: Any, parameters: Iterable[str] = ()):
        self.graph = Graph()
        self._made: dict[Any, int] = {time: self.graph.argument("t", 0)}
        self.parameters = list(parameters)

    def vector(self, name: str, symbols: Sequence[Any]) -> list[int]:
        """The nodes of symbols that are the entries of a vector."""
        made = [self.graph.argument(name, k) for k in range(len(symbols))]
        self._made |= dict(zip(symbols, made, strict=True))
        return made

    def translated(self, expressions: Sequence[Any]) -> list[int]:
        """Convert expressions to nodes; common subexpressions are converted once."""
        return _translated(self.graph, expressions, self._made, self._parameter)

    def function(self, name: str, nodes: Any, arguments: Mapping[str, int]) -> GraphFunction:
        """A function of nodes, created after all conversions."""
        params = ("p", len(self.parameters)) if self.parameters else None
        return GraphFunction(name, self.graph, nodes, arguments, params, self.parameters)

    def _parameter(self, symbol: Any) -> int:
        if symbol.name not in self.parameters:
            self.parameters.append(symbol.name)
        return self.graph.argument("p", self.parameters.index(symbol.name))


Other = Callable[[Any], int] | None
"""Function that returns the node of an unknown symbol, or None to reject the symbol."""


def _translated(graph: Graph, expressions: Sequence[Any], made: dict[Any, int], other: Other = None) -> list[int]:
    import sympy

    wanted = [sympy.sympify(expression) for expression in expressions]
    for expression in wanted:
        _make(graph, expression, made, other)
    return [made[expression] for expression in wanted]


def _make(graph: Graph, expression: Any, made: dict[Any, int], other: Other):
    """Convert an expression, operands first, without recursion, since expressions of models may be deeply nested."""
    waiting = [expression]
    while waiting:
        current = waiting[-1]
        if current in made:
            waiting.pop()
            continue
        missing = [operand for operand in _operands(current) if operand not in made]
        if missing:
            waiting += missing
        else:
            waiting.pop()
            if other is not None and current.is_Symbol:
                made[current] = other(current)
            else:
                made[current] = _node(graph, current, made)


def _operands(expression: Any) -> list[Any]:
    if expression.is_Number or expression.is_NumberSymbol or (expression.is_Boolean and not expression.args):
        return []
    if type(expression).__name__ == "Piecewise":
        return [part for pair in expression.args for part in pair.args]
    return list(expression.args)


def _node(graph: Graph, expression: Any, made: Mapping[Any, int]) -> int:
    name = type(expression).__name__
    if expression.is_Number or expression.is_NumberSymbol:
        return graph.constant(float(expression))
    if name in ("BooleanTrue", "BooleanFalse"):
        return graph.truth(name == "BooleanTrue")
    if name == "Piecewise":
        return _piecewise(graph, expression, made)
    if name not in _RULES or not expression.args:
        kind = "the symbol" if expression.is_Symbol or expression.is_Function else "the expression"
        raise InvalidProblemError(f"{kind} {expression} is neither an unknown nor a parameter")
    return _RULES[name](graph, *(made[operand] for operand in expression.args))


def _piecewise(graph: Graph, expression: Any, made: Mapping[Any, int]) -> int:
    result = graph.constant(float("nan"))
    for pair in reversed(expression.args):
        value, condition = pair.args
        result = graph.where(made[condition], made[value], result)
    return result


def _folded(operation: str) -> Callable[..., int]:
    return lambda graph, *nodes: reduce(getattr(graph, operation), nodes)


def _applied(operation: str) -> Callable[..., int]:
    return lambda graph, *nodes: reduce(lambda a, b: graph.apply(operation, a, b), nodes)


def _function(operation: str) -> Callable[..., int]:
    return lambda graph, *nodes: graph.apply(operation, *nodes)


def _reciprocal(operation: str) -> Callable[..., int]:
    return lambda graph, a: graph.divide(graph.one, graph.apply(operation, a))


def _product(graph: Graph, *nodes: int) -> int:
    """Products with factors x^-k, which SymPy uses for quotients, as divisions."""
    numerator, divisors = graph.one, []
    for i in nodes:
        if graph.operations[i] == "divide" and graph.operands[i][0] == graph.one:
            divisors.append(graph.operands[i][1])
        else:
            numerator = graph.multiply(numerator, i)
    return reduce(graph.divide, divisors, numerator)


_SAME = "sin cos tan sinh cosh tanh exp log sign floor erf erfc".split()
_ARC = {"asin": "arcsin", "acos": "arccos", "atan": "arctan", "atan2": "arctan2"}
_AREA = {"asinh": "arcsinh", "acosh": "arccosh", "atanh": "arctanh"}
_RULES: dict[str, Callable[..., int]] = {
    **{name: _function(name) for name in _SAME},
    **{name: _function(operation) for name, operation in (_ARC | _AREA).items()},
    "ceiling": _function("ceil"),
    "Abs": _function("absolute"),
    "Add": _folded("add"),
    "Mul": _product,
    "Pow": Graph.power,
    "Max": _applied("maximum"),
    "Min": _applied("minimum"),
    "cot": _reciprocal("tan"),
    "sec": _reciprocal("cos"),
    "csc": _reciprocal("sin"),
    "StrictLessThan": _function("less"),
    "LessThan": _function("less_equal"),
    "StrictGreaterThan": lambda graph, a, b: graph.apply("less", b, a),
    "GreaterThan": lambda graph, a, b: graph.apply("less_equal", b, a),
    "Equality": _function("equal"),
    "Unequality": _function("not_equal"),
    "And": _folded("both"),
    "Or": _folded("either"),
    "Not": Graph.opposite,
}
"""Maps the name of a SymPy class to the construction of its nodes."""
