"""The graph of scalar operations traced from a user function.

Nodes are integers; operation, operands and datum of a node are stored in parallel lists; operands precede the nodes
that use them. A dictionary from (operation, operands, datum) to the node makes every subexpression unique. Constants
are folded with NumPy's arithmetic. Simplifications preserve values, infinities and NaN included, with two exceptions:
the sign of a zero may change, and overflow inside a factor of an exact zero is ignored. A graph belongs to one trace
and one thread.
"""

import struct
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from daedal.symbolic.operations import CONDITIONS, OPERATIONS, TABLES
from daedal.symbolic.untraceable import Untraceable, kink_site

MOST_NODES = 1_000_000
"""Maximum number of nodes of a graph, derivatives included; functions that need more are called in Python."""
_EXPANDED_POWERS = range(-16, 17)


class Graph:
    """A hash-consed graph of scalar operations.

    Examples
    --------
    >>> from daedal.symbolic.graph import Graph
    >>> graph = Graph()
    >>> x = graph.argument("x", 0)
    >>> graph.add(x, x) == graph.add(x, x)
    True
    """

    def __init__(self, most_nodes: int = MOST_NODES):
        self.operations: list[str] = []
        self.operands: list[tuple[int, ...]] = []
        self.data: list[Any] = []
        self.regular: list[bool] = []
        self.sites: dict[int, str] = {}  # source lines of kinks
        self.hazards: list[int] = []  # values of functions that raise in Python if the values are not finite
        self.scalars: set[str] = set()  # names of scalar arguments
        self.known: dict[int, float] = {}  # arguments with known numbers, such as parameters
        # arguments whose numbers were used: the graph is valid only for these numbers
        self.fixed: dict[int, float] = {}
        self.decide: Callable[[int], bool] = self._refuse_branch
        self.asks_truths = False  # whether comparisons of Python numbers are decided immediately, as True or False
        self.most_nodes = most_nodes
        self.reads = 0  # number of reads of single array entries, as by Python loops
        self.for_each_read = 0  # number of nodes that each read adds to the limit
        self.n_arguments = 0
        self._nodes: dict[Any, int] = {}
        self.zero, self.one = self.constant(0.0), self.constant(1.0)
        self.true, self.false = self.node("true"), self.node("false")

    def __len__(self) -> int:
        return len(self.operations)

    # --- nodes ----------------------------------------------------------------------------------------------------

    def node(self, operation: str, operands: tuple[int, ...] = (), datum: Any = None) -> int:
        """The node of this operation on these operands, created if new."""
        key = (operation, operands, datum)
        found = self._nodes.get(key)
        return self._append(key, operation, operands, datum) if found is None else found

    def _append(self, key, operation: str, operands: tuple[int, ...], datum: Any) -> int:
        made = len(self.operations)
        if made >= self.most_nodes and made >= self.most:
            raise Untraceable(f"needs more than {self.most} operations", too_long=True)
        self._nodes[key] = made
        self.operations.append(operation)
        self.operands.append(operands)
        self.data.append(datum)
        known = OPERATIONS.get(operation)
        self.regular.append((known is None or known.regular) and all(self.regular[i] for i in operands))
        return made

    @property
    def most(self) -> int:
        """Current limit on the number of nodes, including the allowance for single reads."""
        allowed = self.n_arguments + self.for_each_read * self.reads if self.for_each_read else 0
        return max(self.most_nodes, min(allowed, MOST_NODES))

    def constant(self, value: float) -> int:
        """Node of a number."""
        value = float(value)
        key = value if value == value and value != 0.0 else struct.pack("d", value)  # 0.0 and -0.0 are equal, NaN never
        found = self._nodes.get(key)
        if found is None:
            found = self._append(key, "constant", (), value)
            self.regular[found] = abs(value) < np.inf
        return found

    def argument(self, name: str, index: int) -> int:
        """Entry `index` of the argument `name`."""
        return self.node("argument", (), (name, index))

    def is_constant(self, i: int) -> bool:
        return self.operations[i] == "constant"

    def is_condition(self, i: int) -> bool:
        return self.operations[i] in CONDITIONS

    def is_zero(self, i: int) -> bool:
        return self.operations[i] == "constant" and self.data[i] == 0.0

    def _refuse_branch(self, condition: int) -> bool:
        raise Untraceable(f"branches on {self.origin(condition)}", remedy="use np.where, or an event")

    def origin(self, i: int) -> str:
        """Description of the arguments on which a value depends."""
        read = [self.data[k] for k in self.needed([i]) if self.operations[k] == "argument"]
        names = [name if name in self.scalars else f"{name}[{index}]" for name, index in read]
        return ", ".join(names[:3]) + " and others" * (len(names) > 3) if names else "a constant"

    # --- arithmetic -------------------------------------------------------------------------------------------------

    def add(self, a: int, b: int) -> int:
        operations, data = self.operations, self.data
        if operations[a] == "constant":
            if operations[b] == "constant":
                return self.constant(data[a] + data[b])
            if data[a] == 0.0:
                return b
        elif operations[b] == "constant" and data[b] == 0.0:
            return a
        if operations[b] == "negative":
            return self.subtract(a, self.operands[b][0])
        if operations[a] == "negative":
            return self.subtract(b, self.operands[a][0])
        return self.node("add", (a, b) if a < b else (b, a))

    def subtract(self, a: int, b: int) -> int:
        operations, data = self.operations, self.data
        if operations[b] == "constant":
            if operations[a] == "constant":
                return self.constant(data[a] - data[b])
            if data[b] == 0.0:
                return a
        if self.is_zero(a):
            return self.negative(b)
        if a == b and self.regular[a]:
            return self.zero
        if operations[b] == "negative":
            return self.add(a, self.operands[b][0])
        return self.node("subtract", (a, b))

    def multiply(self, a: int, b: int) -> int:
        operations, data = self.operations, self.data
        if operations[b] == "constant":
            a, b = b, a
        if operations[a] == "constant":
            value = data[a]
            if operations[b] == "constant":
                return self.constant(value * data[b])
            if value == 1.0:
                return b
            if value == -1.0:
                return self.negative(b)
            if value == 0.0 and self.regular[b]:
                return self.zero
            if operations[b] == "negative":
                return self.multiply(self.constant(-value), self.operands[b][0])
        if operations[a] == "negative":
            return self.negative(self.multiply(self.operands[a][0], b))
        if operations[b] == "negative":
            return self.negative(self.multiply(a, self.operands[b][0]))
        return self.node("multiply", (a, b) if a < b else (b, a))

    def divide(self, a: int, b: int) -> int:
        operations, data = self.operations, self.data
        if operations[b] == "constant":
            value = data[b]
            if operations[a] == "constant":
                with np.errstate(all="ignore"):
                    return self.constant(np.float64(data[a]) / value)
            if value == 1.0:
                return a
            if value == -1.0:
                return self.negative(a)
        if operations[a] == "negative":
            return self.negative(self.divide(self.operands[a][0], b))
        if operations[b] == "negative":
            return self.negative(self.divide(a, self.operands[b][0]))
        made = self.node("divide", (a, b))
        if operations[b] == "constant" and data[b] != 0.0:
            self.regular[made] = self.regular[a]
        return made

    def negative(self, a: int) -> int:
        if self.operations[a] == "constant":
            return self.constant(-self.data[a])
        if self.operations[a] == "negative":
            return self.operands[a][0]
        return self.node("negative", (a,))

    def power(self, a: int, b: int) -> int:
        """a ** b; small integer exponents by multiplication, 1/2 by the square root, as NumPy does for arrays."""
        if self.is_constant(b) and not self.is_constant(a):
            exponent = self.data[b]
            if exponent == 0.5:
                return self.apply("sqrt", a)
            if exponent in _EXPANDED_POWERS:
                expanded = self._whole_power(a, abs(int(exponent)))
                return expanded if exponent >= 0.0 else self.divide(self.one, expanded)
        return self.apply("power", a, b)

    def _whole_power(self, a: int, exponent: int) -> int:
        if exponent < 2:
            return a if exponent else self.one
        half = self._whole_power(a, exponent // 2)
        square = self.multiply(half, half)
        return self.multiply(square, a) if exponent % 2 else square

    # --- functions, conditions, tables ------------------------------------------------------------------------------

    def apply(self, operation: str, *operands: int) -> int:
        """Apply a non-arithmetic operation to nodes."""
        if all(self.is_constant(i) for i in operands):
            with np.errstate(all="ignore"):
                value = OPERATIONS[operation].evaluate(*(np.float64(self.data[i]) for i in operands))
            return self.truth(bool(value)) if operation in CONDITIONS else self.constant(value)
        return self.node(operation, operands)

    def truth(self, value: bool) -> int:
        return self.true if value else self.false

    def both(self, a: int, b: int) -> int:
        """The condition a and b."""
        if self.false in (a, b):
            return self.false
        if a == self.true or a == b:
            return b
        return a if b == self.true else self.node("logical_and", (min(a, b), max(a, b)))

    def either(self, a: int, b: int) -> int:
        """The condition a or b."""
        if self.true in (a, b):
            return self.true
        if a == self.false or a == b:
            return b
        return a if b == self.false else self.node("logical_or", (min(a, b), max(a, b)))

    def opposite(self, a: int) -> int:
        """The condition not a."""
        if a in (self.true, self.false):
            return self.truth(a == self.false)
        return self.operands[a][0] if self.operations[a] == "logical_not" else self.node("logical_not", (a,))

    def where(self, condition: int, a: int, b: int) -> int:
        """The number a if the condition holds, otherwise b."""
        if condition == self.true or a == b:
            return a
        if condition == self.false:
            return b
        if self.operations[condition] == "logical_not":
            return self.where(self.operands[condition][0], b, a)
        return self.node("where", (condition, a, b))

    def number(self, i: int) -> int:
        """A condition as 0 or 1; numbers are unchanged."""
        return self.where(i, self.one, self.zero) if self.is_condition(i) else i

    def condition(self, i: int) -> int:
        """The condition that a number is not zero."""
        return i if self.is_condition(i) else self.apply("not_equal", i, self.zero)

    def is_finite(self, i: int) -> int:
        """The condition that i is neither infinite nor NaN."""
        return self.apply("less_equal", self.apply("absolute", i), self.constant(np.finfo(float).max))

    def locate(self, x: int, points: Iterable[float]) -> int:
        """Number of increasing `points` that are not greater than x."""
        table = tuple(map(float, points))
        if self.is_constant(x):
            return self.constant(OPERATIONS["locate"].evaluate(self.data[x], table))
        return self.node("locate", (x,), table)

    def pick(self, index: int, values: Iterable[float]) -> int:
        """values[index] of a table of numbers."""
        table = tuple(map(float, values))
        if len(set(table)) == 1 and table[0] == table[0] and self.operations[index] == "locate":
            if len(table) > len(self.data[index]):
                return self.constant(table[0])
        if self.is_constant(index):
            return self.constant(OPERATIONS["pick"].evaluate(self.data[index], table))
        made = self.node("pick", (index,), table)
        if self.operations[index] == "locate" and len(table) > len(self.data[index]):
            self.regular[made] = self.regular[index]
        return made

    def note_site(self, i: int):
        """Record the source line that created a switching function."""
        if i not in self.sites:
            site = kink_site()
            if site:
                self.sites[i] = site

    # --- dependencies -------------------------------------------------------------------------------------------------

    def needed(self, outputs: Iterable[int]) -> list[int]:
        """All nodes needed to compute the outputs, operands first."""
        seen = set(outputs)
        waiting = list(seen)
        while waiting:
            for i in self.operands[waiting.pop()]:
                if i not in seen:
                    seen.add(i)
                    waiting.append(i)
        return sorted(seen)

    def count(self, outputs: Iterable[int]) -> int:
        """Number of operations needed to compute the outputs from the arguments."""
        return sum(bool(self.operands[i]) for i in self.needed(outputs))


def evaluate(
    graph: Graph,
    nodes: Iterable[int],
    arguments: Mapping[str, Any],
    operations: Mapping[str, Callable[..., Any]] | None = None,
) -> list[Any]:
    """Values of nodes at given arguments.

    Parameters
    ----------
    graph : Graph
        The graph.
    nodes : iterable of int
        Nodes to evaluate.
    arguments : mapping
        For each argument name a vector, or a number for a scalar argument.
    operations : mapping, optional
        Replaces NumPy's functions, for example by those of an extended precision library.
    """
    wanted = list(nodes)
    known = {name: operation.evaluate for name, operation in OPERATIONS.items()} | dict(operations or {})
    values: dict[int, Any] = {}
    with np.errstate(all="ignore"):
        for i in graph.needed(wanted):
            operation, datum = graph.operations[i], graph.data[i]
            operands = [values[k] for k in graph.operands[i]]
            if operation == "argument":
                vector = arguments[datum[0]]
                values[i] = vector[datum[1]] if hasattr(vector, "__getitem__") else vector
            elif operation == "constant":
                values[i] = datum
            elif operation == "where":
                values[i] = operands[1] if operands[0] else operands[2]
            elif operation in TABLES:
                values[i] = known[operation](operands[0], datum)
            else:
                values[i] = known[operation](*operands)
    return [values[i] for i in wanted]
