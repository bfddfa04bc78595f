"""Symbols that behave as NumPy scalars: arithmetic, powers, comparisons, universal functions."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np

from daedal.symbolic.compositions import COMPOSITIONS, LOGICAL
from daedal.symbolic.evaluate import evaluate
from daedal.symbolic.graph import Graph
from daedal.symbolic.operations import FUNCTIONS
from daedal.symbolic.untraceable import Untraceable


class Expression:
    """A value of the graph, in place of a float.

    Examples
    --------
    >>> import numpy as np
    >>> from daedal.symbolic.expression import symbol
    >>> from daedal.symbolic.graph import Graph
    >>> x = symbol(Graph(), "x", 0)
    >>> np.sin(x) + 2.0 * x**2
    <expression of 4 operations>
    """

    __slots__ = ("graph", "node")

    def __init__(self, graph: Graph, node: int):
        self.graph, self.node = graph, node

    # --- arithmetic: written out, since most of the time of a trace is spent here -----------------------------------

    def __add__(self, other):
        b = _operand(self.graph, other)
        return NotImplemented if b is None else Expression(self.graph, self.graph.add(_number(self), b))

    __radd__ = __add__

    def __sub__(self, other):
        b = _operand(self.graph, other)
        return NotImplemented if b is None else Expression(self.graph, self.graph.subtract(_number(self), b))

    def __rsub__(self, other):
        a = _operand(self.graph, other)
        return NotImplemented if a is None else Expression(self.graph, self.graph.subtract(a, _number(self)))

    def __mul__(self, other):
        b = _operand(self.graph, other)
        return NotImplemented if b is None else Expression(self.graph, self.graph.multiply(_number(self), b))

    __rmul__ = __mul__

    def __truediv__(self, other):
        b = _operand(self.graph, other)
        return NotImplemented if b is None else Expression(self.graph, self.graph.divide(_number(self), b))

    def __rtruediv__(self, other):
        a = _operand(self.graph, other)
        return NotImplemented if a is None else Expression(self.graph, self.graph.divide(a, _number(self)))

    def __pow__(self, other, modulus=None):
        return NotImplemented if modulus is not None else _binary("power", self, other)

    def __rpow__(self, other):
        return _binary("power", other, self)

    def __mod__(self, other):
        return _binary("remainder", self, other)

    def __rmod__(self, other):
        return _binary("remainder", other, self)

    def __floordiv__(self, other):
        return _binary("floor_divide", self, other)

    def __rfloordiv__(self, other):
        return _binary("floor_divide", other, self)

    def __divmod__(self, other):
        return self // other, self % other

    def __rdivmod__(self, other):
        return other // self, other % self

    def __neg__(self):
        return Expression(self.graph, self.graph.negative(_number(self)))

    def __pos__(self):
        return self

    def __abs__(self):
        return apply("absolute", self)

    def __floor__(self):
        return apply("floor", self)

    def __ceil__(self):
        return apply("ceil", self)

    def __trunc__(self):
        return apply("trunc", self)

    def __round__(self, digits=None):
        if digits:
            raise Untraceable("rounds a value to digits")
        return apply("rint", self)

    # --- conditions ---------------------------------------------------------------------------------------------------

    def __lt__(self, other):
        return _binary("less", self, other)

    def __le__(self, other):
        return _binary("less_equal", self, other)

    def __gt__(self, other):
        return _binary("greater", self, other)

    def __ge__(self, other):
        return _binary("greater_equal", self, other)

    def __eq__(self, other):
        return _binary("equal", self, other)

    def __ne__(self, other):
        return _binary("not_equal", self, other)

    def __and__(self, other):
        return _binary("logical_and", self, other)

    def __or__(self, other):
        return _binary("logical_or", self, other)

    def __xor__(self, other):
        return _binary("logical_xor", self, other)

    __rand__, __ror__, __rxor__ = __and__, __or__, __xor__

    def __invert__(self):
        if not self.graph.is_condition(self.node):
            raise TypeError("~ is for conditions, not for real numbers")
        return apply("logical_not", self)

    # --- what a value would be needed for -----------------------------------------------------------------------------

    def __bool__(self):
        condition = self.graph.condition(self.node)
        if condition in (self.graph.true, self.graph.false):
            return condition == self.graph.true
        return self.graph.decide(condition)

    def __float__(self):
        value = known_value(self)
        if value is not None:
            return value
        raise Untraceable(
            f"needs the number behind a value of {self.graph.origin(self.node)} (it goes to a float array made "
            "elsewhere, or to a function that is not known)",
            remedy="use functions of numpy and math, and fill arrays that the function makes itself",
        )

    def __int__(self):
        value = known_value(self)
        if value is not None:
            return int(value)
        raise Untraceable(f"makes an integer of {self.graph.origin(self.node)}", remedy="use np.floor, or an event")

    def __index__(self):
        raise Untraceable(
            f"uses {self.graph.origin(self.node)} as an index or a count", remedy="use np.interp, a Table or np.where"
        )

    def __complex__(self):
        raise Untraceable(f"makes a complex number of {self.graph.origin(self.node)}")

    def __hash__(self):
        raise Untraceable(f"uses {self.graph.origin(self.node)} as a key of a dictionary or set")

    def __repr__(self) -> str:
        if self.graph.is_constant(self.node):
            return repr(self.graph.data[self.node])
        return f"<expression of {self.graph.count([self.node])} operations>"

    def __format__(self, _: str) -> str:  # f"{x:.3f}" in the message of an error
        return repr(self)

    # --- as a NumPy scalar --------------------------------------------------------------------------------------------

    shape, ndim, size, dtype = (), 0, 1, np.dtype(object)

    @property
    def real(self):
        return self

    T = real

    @property
    def imag(self):
        return 0.0

    def item(self):
        return self

    def copy(self):
        return self

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return self

    def __array_ufunc__(self, ufunc, method, *inputs, **options):
        from daedal.symbolic.arrays import apply_ufunc

        return apply_ufunc(ufunc, method, inputs, options)

    def __array_function__(self, function, types, arguments, options):
        from daedal.symbolic.numpy_functions import apply_function

        return apply_function(function, arguments, options)


numbers.Real.register(Expression)

for _name in (*FUNCTIONS, "square", "reciprocal", "conjugate", "deg2rad", "rad2deg", "isnan", "isinf", "isfinite"):
    # NumPy's loops over arrays of objects call a method of the universal function's name.
    setattr(Expression, _name, lambda self, *others, _name=_name: apply(_name, self, *others))


def symbol(graph: Graph, name: str, index: int) -> Expression:
    """Entry `index` of the argument `name` as an expression."""
    return Expression(graph, graph.argument(name, index))


def known_value(value: Expression) -> float | None:
    """The number behind a value that depends on known arguments alone, which are then fixed; otherwise None."""
    graph = value.graph
    read = [i for i in graph.needed([value.node]) if graph.operations[i] == "argument"]
    if any(i not in graph.known for i in read):
        return None
    graph.fixed.update({i: graph.known[i] for i in read})
    arguments: dict[str, dict[int, float]] = {}
    for i in read:
        name, index = graph.data[i]
        arguments.setdefault(name, {})[index] = graph.known[i]
    return float(evaluate(graph, [value.node], arguments)[0])


def node_of(graph: Graph, value: Any) -> int | None:
    """The node of an expression or a real number; None if it is neither."""
    kind = type(value)
    if kind is Expression:
        if value.graph is not graph:
            raise Untraceable("uses a value of another trace, which was kept somewhere")
        return value.node
    if kind is float or kind is int or kind is bool or isinstance(value, (np.floating, np.integer, np.bool_, int)):
        return graph.truth(bool(value)) if kind is bool or isinstance(value, np.bool_) else graph.constant(value)
    if isinstance(value, float):
        return graph.constant(value)
    return node_of(graph, value.item()) if isinstance(value, np.ndarray) and value.ndim == 0 else None


def _operand(graph: Graph, value: Any) -> int | None:
    kind = type(value)
    if kind is float or kind is int:
        return graph.constant(value)
    node = node_of(graph, value)
    return None if node is None else graph.number(node)


def _number(value: Expression) -> int:
    return value.graph.number(value.node)


def _binary(name: str, a, b):
    graph = a.graph if type(a) is Expression else b.graph
    if node_of(graph, a) is None or node_of(graph, b) is None:
        return NotImplemented
    return apply(name, a, b)


def apply(name: str, *values):
    """The universal function `name` of scalars, at least one of which is an expression."""
    graph = next(value.graph for value in values if type(value) is Expression)
    nodes = _nodes(graph, name, values)
    if name in LOGICAL:
        return Expression(graph, LOGICAL[name](graph, *(graph.condition(i) for i in nodes)))
    if name not in COMPOSITIONS:
        raise Untraceable(f"calls {name} on a value, which is not among the known functions")
    return Expression(graph, COMPOSITIONS[name](graph, *(graph.number(i) for i in nodes)))


def choose(condition, a, b):
    """`a` where the condition holds, otherwise `b`, for scalars."""
    if type(condition) is not Expression:
        return a if condition else b
    graph = condition.graph
    first, second = (graph.number(i) for i in _nodes(graph, "np.where", (a, b)))
    return Expression(graph, graph.where(graph.condition(condition.node), first, second))


def _nodes(graph: Graph, name: str, values: tuple) -> list[int]:
    nodes = []
    for value in values:
        node = node_of(graph, value)
        if node is None:
            raise Untraceable(f"applies {name} to a value and {type(value).__name__}")
        nodes.append(node)
    return nodes
