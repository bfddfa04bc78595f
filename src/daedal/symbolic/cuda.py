"""The graph as C source: one statement per node, in macros that CUDA C and plain C define differently.

A function has the signature ``int name(real t, const real* a, ..., real* result)`` in terms of `PRELUDE`: ``real`` is
``double``, or ``float`` if SINGLE is defined; EMITTED and TABLE are storage qualifiers of code and tables. Values equal
those of the same operations in Python, infinities and NaN included, up to rounding in the math library and contraction
of products and sums by the compiler. Sine and cosine of the same angle are computed together; those of a sum of two
such angles follow from the addition theorems.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from importlib.resources import files

from daedal.symbolic.emission import depth_first
from daedal.symbolic.graph import Graph
from daedal.symbolic.operations import ARITHMETIC, CONDITIONS, FUNCTIONS, TABLES

PRELUDE = (files("daedal.symbolic") / "templates" / "prelude.c").read_text(encoding="utf-8")
"""Definitions that emitted functions require, for both languages."""

_OPERATORS = {"add": "+", "subtract": "-", "multiply": "*", "divide": "/", "negative": "-"}
_COMPARISONS = {"less": "<", "less_equal": "<=", "equal": "==", "not_equal": "!="}
_LOGICAL = {"logical_and": "&", "logical_or": "|"}
_CHOICES = {"sign": "SIGN", "maximum": "MAXIMUM", "minimum": "MINIMUM"}
_WAVES = ("sin", "cos")
_WORD, _VALUE = re.compile(r"(?<![\w.])[A-Za-z_]\w*"), re.compile(r"const (?:real|int) (\w+) = ")


def c_function(
    graph: Graph,
    name: str,
    arguments: Mapping[str, Sequence[int]],
    results: Mapping[str, Sequence[int]],
    statuses: Sequence[tuple[int, int]] = (),
    time: int | None = None,
) -> str:
    """Write a C function that computes results from arguments.

    Parameters
    ----------
    graph : Graph
        The graph.
    name : str
        Name of the function.
    arguments : mapping
        Input arrays: for each name the nodes of its entries.
    results : mapping
        Output arrays, likewise.
    statuses : sequence of (condition, code)
        The return value is the code of the first condition that holds, otherwise 0.
    time : int, optional
        Node of the time, the first argument.

    Examples
    --------
    >>> from daedal.symbolic import Graph
    >>> from daedal.symbolic.cuda import c_function
    >>> graph = Graph()
    >>> x = [graph.argument("x", k) for k in range(2)]
    >>> print(c_function(graph, "f", {"x": x}, {"y": [graph.multiply(x[0], graph.add(x[0], x[1]))]}))
    EMITTED int f(real t, const real* RESTRICT x, real* RESTRICT y) {
      (void)t;
      const real x0 = x[0] + x[1];
      const real x1 = x[0] * x0;
      y[0] = x1;
      return 0;
    }
    <BLANKLINE>
    """
    return _Function(graph, name, arguments, results, statuses, time).text()


def c_formula(graph: Graph, name: str, arguments: Mapping[str, int], result: int, *, double: bool = False) -> str:
    """Write a C function of scalars, ``real name(real a, ...)``; if `double`, of doubles even if real is float.

    Powers use ``power`` of the prelude, which on a GPU is accurate to only a few digits.

    Examples
    --------
    >>> from daedal.symbolic import Graph
    >>> from daedal.symbolic.cuda import c_formula
    >>> graph = Graph()
    >>> a, b = graph.argument("a", 0), graph.argument("b", 0)
    >>> print(c_formula(graph, "f", {"a": a, "b": b}, graph.multiply(a, b), double=True))
    FUNCTION double f(double a, double b) {
      const double x0 = a * b;
      return x0;
    }
    <BLANKLINE>
    """
    kind, function = "double" if double else "real", _Function(graph, name, {}, {"": [result]}, (), None)
    function.names |= {node: argument for argument, node in arguments.items()}
    body = [line.replace("pow(", "power(") for line in function.body()]
    if double:
        body = [re.sub(r"\breal\b", "double", line).replace("NUMBER(", "(double)(") for line in body]
        body = [line.replace("RECIPROCAL(", "1 / (") for line in body]
    head = f"FUNCTION {kind} {name}({', '.join(f'{kind} {argument}' for argument in arguments)}) {{"
    return "\n".join([head, *(f"  {line}" for line in [*body, f"return {function.names[result]};"]), "}", ""])


class _Function:
    def __init__(self, graph: Graph, name: str, arguments, results, statuses, time):
        self.graph, self.name, self.arguments, self.results = graph, name, arguments, results
        self.statuses = [(condition, code) for condition, code in statuses if condition != graph.false]
        self.names = {node: f"{array}[{k}]" for array, nodes in arguments.items() for k, node in enumerate(nodes)}
        if time is not None:
            self.names[time] = "t"
        outputs = [*(condition for condition, _ in self.statuses), *(x for nodes in results.values() for x in nodes)]
        self.order = depth_first(graph, outputs)
        self.waves: dict[int, set[str]] = {}  # for each angle whether its sine and cosine are needed
        for i in self.order:
            if graph.operations[i] in _WAVES:
                self.waves.setdefault(graph.operands[i][0], set()).add(graph.operations[i])
        self.pairs: dict[int, tuple[str, str]] = {}
        self.lines: list[str] = []
        self.tables: dict[tuple[float, ...], str] = {}
        self.fresh = 0

    def body(self) -> list[str]:
        """Lines that compute the results."""
        for i in self.order:
            if i not in self.names:
                self._compute(i)
        return self.lines

    def text(self) -> str:
        self.body()
        for array, nodes in self.results.items():
            self.lines += [f"{array}[{k}] = {self.names[node]};" for k, node in enumerate(nodes)]
        status = "0"
        for condition, code in reversed(self.statuses):
            status = f"{self.names[condition]} ? {code} : {status}"
        self.lines.append(f"return {status};")
        arrays = [f"const real* RESTRICT {array}" for array in self.arguments]
        arrays += [f"real* RESTRICT {array}" for array in self.results]
        head = f"EMITTED int {self.name}(real t, {', '.join(arrays)}) {{"
        self._drop_unused(["t", *self.arguments, *self.results])
        return "\n".join([*self._table_lines(), head, *(f"  {line}" for line in self.lines), "}", ""])

    def _drop_unused(self, arguments: Sequence[str]) -> None:
        """Remove unused values and mark unused arguments, since compilers warn about both."""
        used, kept = set[str](), list[str]()
        for line in reversed(self.lines):
            value = _VALUE.match(line)
            if value is None or value[1] in used:
                used.update(_WORD.findall(line))
                kept.append(line)
        unused = [f"(void){argument}" for argument in arguments if argument not in used]
        self.lines = [*([f"{', '.join(unused)};"] if unused else []), *reversed(kept)]

    def _table_lines(self) -> list[str]:
        return [
            f"TABLE real {name}[{len(values)}] = {{{', '.join(map(c_number, values))}}};"
            for values, name in self.tables.items()
        ]

    def _compute(self, i: int):
        graph, operation = self.graph, self.graph.operations[i]
        if operation == "constant":
            self.names[i] = c_number(graph.data[i])
        elif operation in ("true", "false"):
            self.names[i] = "1" if operation == "true" else "0"
        elif operation == "argument":
            raise KeyError(f"{self.name} depends on {graph.data[i]}, which is not one of its arguments")
        elif operation in _WAVES and self._are_both(angle := graph.operands[i][0]):
            self.names[i] = self._pair(angle)[_WAVES.index(operation)]
        else:
            kind = "int" if graph.is_condition(i) else "real"
            value = self._value(i, operation, [self.names[k] for k in graph.operands[i]])
            self.lines.append(f"const {kind} {self._new(i)} = {value};")

    def _new(self, i: int) -> str:
        self.names[i] = self._fresh()
        return self.names[i]

    def _fresh(self) -> str:
        self.fresh += 1
        return f"x{self.fresh - 1}"

    # --- sines and cosines --------------------------------------------------------------------------------------------

    def _are_both(self, angle: int) -> bool:
        """Whether both the sine and the cosine of an angle are needed, directly or for the angles of sums."""
        return len(self.waves[angle]) == 2 or angle in self.pairs or self._summands(angle) is not None

    def _summands(self, angle: int) -> tuple[int, int] | None:
        """The two summands of an angle; None unless sines or cosines of both are also needed directly."""
        operands = self.graph.operands[angle]
        if self.graph.operations[angle] not in ("add", "subtract") or not all(x in self.waves for x in operands):
            return None
        return operands[0], operands[1]

    def _pair(self, angle: int) -> tuple[str, str]:
        """Names of sine and cosine; those of a sum are computed from its summands at a tenth of the cost."""
        if angle not in self.pairs:
            sine, cosine = self._fresh(), self._fresh()
            parts = self._summands(angle)
            if parts is None:
                self.lines.append(f"real {sine}, {cosine};")
                self.lines.append(f"SINE_AND_COSINE({self.names[angle]}, {sine}, {cosine});")
            else:
                (s_a, c_a), (s_b, c_b) = self._pair(parts[0]), self._pair(parts[1])
                plus, minus = "+-" if self.graph.operations[angle] == "add" else "-+"
                self.lines.append(f"const real {sine} = {s_a} * {c_b} {plus} {c_a} * {s_b};")
                self.lines.append(f"const real {cosine} = {c_a} * {c_b} {minus} {s_a} * {s_b};")
            self.pairs[angle] = sine, cosine
        return self.pairs[angle]

    def _value(self, i: int, operation: str, operands: list[str]) -> str:
        if operation == "negative":
            return f"-{operands[0]}"
        if operation == "divide" and self.graph.operands[i][0] == self.graph.one:
            return f"RECIPROCAL({operands[1]})"
        if operation in ARITHMETIC:
            return f" {_OPERATORS[operation]} ".join(operands)
        if operation == "where":
            return "{} ? {} : {}".format(*operands)
        if operation == "logical_not":
            return f"!{operands[0]}"
        if operation in CONDITIONS:
            return f" {(_COMPARISONS | _LOGICAL)[operation]} ".join(operands)
        if operation in TABLES:
            table = self.graph.data[i]
            name = self.tables.setdefault(table, f"{self.name}_table_{len(self.tables)}")
            return f"{operation}({operands[0]}, {name}, {len(table)})"
        word = _CHOICES.get(operation) or FUNCTIONS[operation].code.removeprefix("llvm.")
        return f"{word}({', '.join(operands)})"


def c_number(value: float) -> str:
    """C literal that reproduces a float exactly."""
    if math.isnan(value):
        return "NOT_A_NUMBER"
    if math.isinf(value):
        return "INFINITE" if value > 0.0 else "(-INFINITE)"
    return f"NUMBER({value.hex()})"
