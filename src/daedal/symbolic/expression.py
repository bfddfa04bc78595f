"""Symbols that behave as NumPy scalars: arithmetic, powers, comparisons, universal functions."""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable
from typing import Any

import numpy as np

from daedal.symbolic.compositions import COMPOSITIONS, LOGICAL
from daedal.symbolic.graph import Graph, evaluate
from daedal.symbolic.kinds import BOOL, FLOAT64, INT, KINDS, NUMPY, TYPES, UNKNOWN, Number, joined
from daedal.symbolic.kinds import FLOAT as FLOAT
from daedal.symbolic.operations import FUNCTIONS
from daedal.symbolic.untraceable import Untraceable, asked_by_user, note_text, refuse_caught


def kind_of(value: Any) -> int:
    """Kind of an expression or a number."""
    if type(value) is Expression:
        return value.kind
    known = KINDS.get(type(value))
    if known is not None:
        return known
    if isinstance(value, np.ndarray) or isinstance(value, Number):
        return FLOAT64
    return NUMPY + INT if isinstance(value, np.integer) else INT if isinstance(value, int) else FLOAT


class Expression:
    """A node of the graph that represents a float.

    Attributes
    ----------
    graph : Graph
    node : int
    kind : int
        Kind of the value in Python. Only truth values are conditions of the graph.

    Examples
    --------
    >>> import numpy as np
    >>> from daedal.symbolic.expression import symbol
    >>> from daedal.symbolic.graph import Graph
    >>> x = symbol(Graph(), "x", 0)
    >>> np.sin(x) + 2.0 * x**2
    <expression of 4 operations>
    """

    __slots__ = ("graph", "kind", "node")

    def __init__(self, graph: Graph, node: int, kind: int = FLOAT64):
        self.graph, self.node, self.kind = graph, node, kind

    # --- arithmetic: written out, since tracing spends most of its time here ------------------------------------------

    def __add__(self, other):
        b = _operand(self.graph, other)
        if b is None or self.kind != FLOAT64:
            return NotImplemented if b is None else _arithmetic("add", self, other)
        return Expression(self.graph, self.graph.add(self.node, b))

    __radd__ = __add__

    def __sub__(self, other):
        b = _operand(self.graph, other)
        if b is None or self.kind != FLOAT64:
            return NotImplemented if b is None else _arithmetic("subtract", self, other)
        return Expression(self.graph, self.graph.subtract(self.node, b))

    def __rsub__(self, other):
        a = _operand(self.graph, other)
        if a is None or self.kind != FLOAT64:
            return NotImplemented if a is None else _arithmetic("subtract", other, self)
        return Expression(self.graph, self.graph.subtract(a, self.node))

    def __mul__(self, other):
        b = _operand(self.graph, other)
        if b is None or self.kind != FLOAT64:
            return NotImplemented if b is None else _arithmetic("multiply", self, other)
        return Expression(self.graph, self.graph.multiply(self.node, b))

    __rmul__ = __mul__

    def __truediv__(self, other):
        b = _operand(self.graph, other)
        if b is None or self.kind != FLOAT64:
            return NotImplemented if b is None else _arithmetic("divide", self, other)
        return Expression(self.graph, self.graph.divide(self.node, b))

    def __rtruediv__(self, other):
        a = _operand(self.graph, other)
        if a is None or self.kind != FLOAT64:
            return NotImplemented if a is None else _arithmetic("divide", other, self)
        return Expression(self.graph, self.graph.divide(a, self.node))

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
        return apply("negative", self)

    def __pos__(self):
        return apply("positive", self)

    def __abs__(self):
        return apply("absolute", self)

    def __floor__(self):
        return whole("floor", self)

    def __ceil__(self):
        return whole("ceil", self)

    def __trunc__(self):
        return whole("trunc", self)

    def __round__(self, digits=None):
        if digits:
            raise Untraceable("rounds a value to digits", remedy="use np.rint of a multiple", jumps=True)
        return whole("rint", self) if digits is None else apply("rint", self)

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
        return _binary("bitwise_and", self, other)

    def __or__(self, other):
        return _binary("bitwise_or", self, other)

    def __xor__(self, other):
        return _binary("bitwise_xor", self, other)

    __rand__, __ror__, __rxor__ = __and__, __or__, __xor__

    def __invert__(self):
        return apply("invert", self)

    # --- operations that need the number itself -----------------------------------------------------------------------

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
            f"needs the number of a value of {self.graph.origin(self.node)} (it is stored in a float array created "
            "elsewhere, or passed to an unknown function)",
            remedy="use functions of numpy and math, and fill arrays created in the function",
        )

    def __int__(self):
        value = known_value(self)
        if value is not None:
            return int(value)
        reason = f"converts {self.graph.origin(self.node)} to an integer"
        raise Untraceable(reason, remedy="use np.floor, or an event", jumps=True)

    def __index__(self):
        if self.kind == BOOL:  # 0 or 1
            return int(bool(self))
        values = whole_values(self.graph, self.node) if self.kind & 3 == INT else None
        if values is not None and len(values) <= _MOST_INDICES:
            return next((k for k in values[:-1] if bool(self == k)), values[-1])
        reason = f"uses {self.graph.origin(self.node)} as an index or a count"
        raise Untraceable(reason, remedy="use np.interp, a Table or np.where", jumps=True)

    def __complex__(self):
        raise Untraceable(f"converts {self.graph.origin(self.node)} to a complex number")

    def __hash__(self):
        reason = f"uses {self.graph.origin(self.node)} as a key of a dictionary or set"
        raise Untraceable(reason, remedy="use np.where", jumps=True)

    def __repr__(self) -> str:
        if self.graph.is_constant(self.node):
            return repr(self.graph.data[self.node])
        note_text(self.graph.origin(self.node))
        return f"<expression of {self.graph.count([self.node])} operations>"

    def __format__(self, _: str) -> str:  # f"{x:.3f}" in an error message
        return repr(self)

    # --- as a NumPy scalar --------------------------------------------------------------------------------------------

    shape, ndim, size = (), 0, 1

    @property  # type: ignore[misc]
    def __class__(self):
        """The class for ``isinstance`` and single dispatch."""
        return TYPES.get(self.kind, float)

    @property
    def dtype(self):
        if not asked_by_user():
            return np.dtype(object)
        if self.kind < NUMPY:
            raise AttributeError(f"'{TYPES[self.kind].__name__}' object has no attribute 'dtype'")
        return np.dtype(self.__class__)

    @property
    def real(self):
        return self

    T = real

    @property
    def imag(self):
        return 0.0

    def item(self):
        return Expression(self.graph, self.node, self.kind & 3)

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
    # NumPy's loops over object arrays call the method named like the universal function
    setattr(Expression, _name, lambda self, *others, _name=_name: apply(_name, self, *others))


_MOST_INDICES = 16  # maximum number of values of an index, each of which is traced on a separate path


def whole_values(graph: Graph, node: int) -> range | None:
    """Possible integer values of a node, if they follow from sums of conditions, choices and remainders."""
    operation, operands = graph.operations[node], graph.operands[node]
    if operation == "constant":
        value = graph.data[node]
        return range(int(value), int(value) + 1) if value.is_integer() and abs(value) < 2.0**52 else None
    if graph.is_condition(node):
        return range(2)
    if operation == "remainder":
        divisor = whole_values(graph, operands[1])
        return range(divisor[0]) if divisor is not None and len(divisor) == 1 and divisor[0] > 0 else None
    if operation not in ("add", "subtract", "negative", "where"):
        return None
    a, b = (whole_values(graph, i) for i in (operands[-2:] * 2)[:2])
    if a is None or b is None:
        return None
    if operation == "add":
        return range(a[0] + b[0], a[-1] + b[-1] + 1)
    if operation == "subtract":
        return range(a[0] - b[-1], a[-1] - b[0] + 1)
    if operation == "negative":
        return range(-a[-1], -a[0] + 1)
    return range(min(a[0], b[0]), max(a[-1], b[-1]) + 1)


def symbol(graph: Graph, name: str, index: int) -> Expression:
    """Entry `index` of the argument `name` as an expression."""
    return Expression(graph, graph.argument(name, index))


def known_value(value: Expression) -> float | None:
    """Evaluate an expression of known arguments, which become fixed; None if it depends on other arguments."""
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
    """Node of an expression or a real number; None for anything else."""
    kind = type(value)
    if kind is Expression:
        if value.graph is not graph:
            raise Untraceable("uses a value from another trace")
        return value.node
    if (
        kind is float
        or kind is int
        or kind is bool
        or kind is Number
        or isinstance(value, (np.floating, np.integer, np.bool_, int))
    ):
        return graph.truth(bool(value)) if kind is bool or isinstance(value, np.bool_) else graph.constant(value)
    if isinstance(value, float):
        return graph.constant(value)
    return node_of(graph, value.item()) if isinstance(value, np.ndarray) and value.ndim == 0 else None


def _operand(graph: Graph, value: Any) -> int | None:
    kind = type(value)
    if kind is Expression and value.kind == FLOAT64 and value.graph is graph:
        return value.node
    if kind is float or kind is int or kind is Number:
        return graph.constant(value)
    node = node_of(graph, value)
    return None if node is None else graph.number(node)


_ON_TRUTH: dict[str, Callable[..., int]] = {"add": Graph.either, "multiply": Graph.both}
_ON_TRUTH |= {"maximum": Graph.either, "minimum": Graph.both, "absolute": lambda graph, a: a}
"""NumPy's arithmetic on truth values."""
_BITWISE = ("bitwise_and", "bitwise_or", "bitwise_xor", "invert")
_KEEP_KIND = {"add", "subtract", "multiply", "negative", "positive", "absolute", "remainder", "floor_divide", "square"}
_KEEP_KIND |= {"maximum", "minimum", "conjugate", "fmax", "fmin", "clip", "sign"}
_RAISE = ("divide", "remainder", "floor_divide", "power")
"""Operations that raise on Python floats but give infinities or NaN in NumPy."""


def _arithmetic(name: str, *values):
    """Apply an operation to scalars, according to their kinds."""
    kind = kind_of(values[0])
    for value in values[1:]:
        kind = joined(kind, kind_of(value))
    graph = next(value.graph for value in values if type(value) is Expression)
    nodes = _nodes(graph, name, values)
    if kind == NUMPY and name in ("subtract", "negative", "positive"):
        raise Untraceable(f"applies {name} to truth values, which NumPy refuses")
    if kind == NUMPY and name in _ON_TRUTH:
        return Expression(graph, _ON_TRUTH[name](graph, *nodes), NUMPY)
    if kind & 3 == BOOL and kind == UNKNOWN & ~3 and name in ("add", "positive"):
        raise Untraceable("adds truth values that are Python's on some paths and NumPy's on others")
    node = COMPOSITIONS[name](graph, *(graph.number(i) for i in nodes))
    if kind < NUMPY and name in _RAISE and not graph.regular[node]:
        refuse_caught()
        graph.hazards.append(node)
    whole_power = name == "power" and graph.is_constant(nodes[1]) and graph.data[nodes[1]] >= 0.0
    if name not in _KEEP_KIND and not whole_power:
        return Expression(graph, node, kind | FLOAT)
    return Expression(graph, node, kind | INT if kind & 3 == BOOL else kind)


def _binary(name: str, a, b):
    graph = a.graph if type(a) is Expression else b.graph
    if node_of(graph, a) is None or node_of(graph, b) is None:
        return NotImplemented
    if name in COMPOSITIONS and name not in _COMPARISONS:
        return _arithmetic(name, a, b)
    return apply(name, a, b)


_COMPARISONS = ("less", "less_equal", "greater", "greater_equal", "equal", "not_equal", "isnan", "isinf", "isfinite")


def apply(name: str, *values):
    """Apply the operation `name` to scalars, at least one of which is an expression."""
    graph = next(value.graph for value in values if type(value) is Expression)
    if name in _BITWISE:
        return _bitwise(graph, name, values)
    nodes = _nodes(graph, name, values)
    python = all(kind_of(value) < NUMPY for value in values)
    if name in LOGICAL:
        found = LOGICAL[name](graph, *(graph.condition(i) for i in nodes))
        return asked(Expression(graph, found, BOOL if python else NUMPY))
    if name not in COMPOSITIONS:
        raise Untraceable(f"calls {name} on a value; the function is not supported")
    if name not in _COMPARISONS:
        return _arithmetic(name, *values)
    found = COMPOSITIONS[name](graph, *(graph.number(i) for i in nodes))
    unknown = any(kind_of(value) > FLOAT64 for value in values) and FLOAT64 not in map(kind_of, values)
    return asked(Expression(graph, found, UNKNOWN & ~3 if unknown else BOOL if python else NUMPY))


def asked(condition: Expression):
    """The condition as True or False if the function compares truth values by identity; otherwise unchanged."""
    if not condition.graph.asks_truths or condition.kind == NUMPY:
        return condition
    if condition.kind != BOOL:
        raise Untraceable(
            "tests by 'is' or 'case' whether a value is True, but the value is a Python bool on some paths only"
        )
    return bool(condition)


def whole(name: str, value):
    """Convert to a Python integer."""
    return Expression(value.graph, apply(name, value).node, INT)


def as_numpy(name: str, *values):
    """Apply the operation as NumPy's universal function would, regardless of the kinds."""
    return apply(name, *(from_array(value) for value in values))


def from_array(value):
    """Convert a scalar read from an array."""
    kind = type(value)
    if kind is Expression:
        return (
            value
            if value.kind >= NUMPY and value.kind <= FLOAT64
            else Expression(value.graph, value.node, value.kind & 3 | NUMPY)
        )
    if kind is float:
        return Number(value)
    return np.bool_(value) if kind is bool else np.int64(value) if kind is int and abs(value) < 2**63 else value


def _bitwise(graph: Graph, name: str, values: tuple):
    """Apply the logical operation to truth values; for integers, only the lowest bits are combined."""
    kinds = [kind_of(value) for value in values]
    nodes = _nodes(graph, name, values)
    together = max(kind & 3 for kind in kinds), any(kind & NUMPY for kind in kinds) * NUMPY
    if together[0] == BOOL and (name != "invert" or together[1]):
        return Expression(graph, LOGICAL[name](graph, *(graph.condition(i) for i in nodes)), sum(together))
    numbers = [graph.number(i) for i in nodes]
    if together[0] <= INT and name == "invert":
        return Expression(graph, graph.subtract(graph.constant(-1.0), numbers[0]), INT | together[1])
    mask = [k for k in (0, 1) if graph.is_constant(numbers[k])]
    size = graph.data[numbers[mask[0]]] + 1.0 if mask else 0.0
    if together[0] == INT and name == "bitwise_and" and size > 0.0 and math.frexp(size)[0] == 0.5:
        rest = graph.apply("remainder", numbers[1 - mask[0]], graph.constant(size))
        graph.note_site(rest)
        return Expression(graph, rest, INT | together[1])
    raise Untraceable(f"uses the bits of {graph.origin(next(i for i in nodes if not graph.is_constant(i)))}")


def choose(condition, a, b):
    """`a` if the condition holds, otherwise `b`, for scalars."""
    if type(condition) is not Expression:
        return a if condition else b
    graph, holds = condition.graph, condition.graph.condition(condition.node)
    first, second = _nodes(graph, "np.where", (a, b))
    kinds = kind_of(a), kind_of(b)
    if graph.is_condition(first) and graph.is_condition(second):
        node = graph.either(graph.both(holds, first), graph.both(graph.opposite(holds), second))
    else:
        node = graph.where(holds, graph.number(first), graph.number(second))
    if kinds[0] == kinds[1]:
        return Expression(graph, node, kinds[0])
    ranks = max(kind & 3 for kind in kinds)
    return Expression(graph, node, UNKNOWN & ~3 | ranks)


def _nodes(graph: Graph, name: str, values: tuple) -> list[int]:
    nodes = []
    for value in values:
        node = node_of(graph, value)
        if node is None:
            raise Untraceable(f"applies {name} to a value and {type(value).__name__}")
        nodes.append(node)
    return nodes
