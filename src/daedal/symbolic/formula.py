"""Formulas for nodes of the graph: sums of products with like terms collected; the caller chooses the names.

Derivatives created on the graph contain many terms such as x * u + x * u, which become 2*x*u. Other operations
(functions, powers with other exponents, choices) remain, with formulas as arguments.
"""

from __future__ import annotations

from collections.abc import Callable

from daedal.symbolic.graph import Graph

Monomial = tuple[tuple[int, int], ...]
"""A product of powers: pairs (node, exponent), sorted."""
Sum = dict[Monomial, float]

_MOST_TERMS = 6  # maximum number of terms of a sum that is multiplied out
_NAMES = {"absolute": "abs", "minimum": "min", "maximum": "max", "locate": "table"}
_BETWEEN = {"less": "<", "less_equal": "<=", "equal": "==", "not_equal": "!=", "logical_and": "and", "logical_or": "or"}


class Formulas:
    """Formulas of the nodes of one graph.

    Parameters
    ----------
    graph : Graph
    name : callable
        ``name(argument, index)``: the name of an entry of an argument.

    Examples
    --------
    >>> from daedal.symbolic.formula import Formulas
    >>> from daedal.symbolic.graph import Graph
    >>> graph = Graph()
    >>> x, u = graph.argument("x", 0), graph.argument("u", 0)
    >>> product = graph.multiply(x, u)
    >>> Formulas(graph, lambda argument, index: argument).text(graph.add(product, graph.add(product, x)))
    '2*x*u + x'
    """

    def __init__(self, graph: Graph, name: Callable[[str, int], str]):
        self.graph, self.name = graph, name
        self._sums: dict[int, Sum] = {}

    def text(self, i: int) -> str:
        """Formula of a node."""
        return self._written(self.terms(i))

    def is_zero(self, i: int) -> bool:
        """Whether all terms cancel."""
        return not self.terms(i)

    def terms(self, i: int) -> Sum:
        """A node as a sum {product: coefficient}."""
        for k in self.graph.needed([i]):
            if k not in self._sums:
                self._sums[k] = self._sum(k)
        return self._sums[i]

    def _sum(self, i: int) -> Sum:
        operation, operands = self.graph.operations[i], self.graph.operands[i]
        if operation == "constant":
            return {(): self.graph.data[i]} if self.graph.data[i] != 0.0 else {}
        parts = [self._sums[k] for k in operands]
        if operation == "add":
            return _added(parts[0], parts[1], 1.0)
        if operation == "subtract":
            return _added(parts[0], parts[1], -1.0)
        if operation == "negative":
            return {monomial: -factor for monomial, factor in parts[0].items()}
        if operation == "multiply" and self._may_expand(*parts):
            return _multiplied(*parts)
        if operation == "multiply":
            return _multiplied(*(self._as_factor(k) for k in operands))
        if operation == "divide" and parts[1]:
            divisor = parts[1] if len(parts[1]) == 1 else self._as_factor(operands[1])
            ((monomial, factor),) = divisor.items()
            inverse = {tuple((node, -power) for node, power in monomial): 1.0 / factor}
            return _multiplied(parts[0] if len(parts[0]) <= _MOST_TERMS else self._as_factor(operands[0]), inverse)
        return {((i, 1),): 1.0}

    def _may_expand(self, first: Sum, second: Sum) -> bool:
        few, many = sorted((len(first), len(second)))
        return few <= 1 and many <= _MOST_TERMS

    def _as_factor(self, i: int) -> Sum:
        """A sum of several terms, as one factor."""
        terms = self._sums[i]
        return terms if len(terms) <= 1 else {((i, 1),): 1.0}

    def _written(self, terms: Sum) -> str:
        text = ""
        for monomial, factor in terms.items():
            sign = "-" if factor < 0.0 else "+"
            product = self._product(monomial, abs(factor))
            text += f" {sign} {product}" if text else ("-" if factor < 0.0 else "") + product
        return text or "0"

    def _product(self, monomial: Monomial, factor: float) -> str:
        above = [self._power(node, power) for node, power in monomial if power > 0]
        below = [self._power(node, -power) for node, power in monomial if power < 0]
        if factor != 1.0 or not above:
            above.insert(0, f"{factor:.6g}")
        divisor = below[0] if len(below) == 1 else f"({'*'.join(below)})"
        return "*".join(above) + (f"/{divisor}" if below else "")

    def _power(self, node: int, power: int) -> str:
        return self._atom(node) + (f"**{power}" if power != 1 else "")

    def _atom(self, i: int) -> str:
        graph, operation, operands = self.graph, self.graph.operations[i], self.graph.operands[i]
        if operation == "argument":
            return self.name(*graph.data[i])
        parts = [self._written(self._sums[k]) if not graph.is_condition(k) else self._atom(k) for k in operands]
        if operation in ("add", "subtract", "negative", "multiply", "divide"):
            return f"({self._written(self._sums[i])})"
        if operation in _BETWEEN:
            return f"({parts[0]} {_BETWEEN[operation]} {parts[1]})"
        if operation == "power":
            return f"({parts[0]})**({parts[1]})"
        return f"{_NAMES.get(operation, operation)}({', '.join(parts)})"


def _added(first: Sum, second: Sum, sign: float) -> Sum:
    found = dict(first)
    for monomial, factor in second.items():
        total = found.get(monomial, 0.0) + sign * factor
        if abs(total) <= 1e-15 * abs(factor):
            found.pop(monomial, None)
        else:
            found[monomial] = total
    return found


def _multiplied(first: Sum, second: Sum) -> Sum:
    found: Sum = {}
    for a, p in first.items():
        for b, q in second.items():
            powers = dict(a)
            for node, power in b:
                powers[node] = powers.get(node, 0) + power
            monomial = tuple(sorted((node, power) for node, power in powers.items() if power))
            found = _added(found, {monomial: p * q}, 1.0)
    return found
