"""Exact derivatives on the graph: Jacobians, directional and time derivatives, gradients, sparsity.

Forward mode carries a small dictionary {variable: derivative} for each node, reverse mode one adjoint for each node and
output. Both create nodes of the same graph, so that functions and derivatives share common subexpressions. At kinks the
derivative is that of the branch taken: it is 1 for |x| at 0, that of x for max(x, y) at x = y, and 0 for sign at 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence

from daedal.symbolic.graph import Graph
from daedal.symbolic.operations import CONDITIONS

Row = dict[int, int]
"""A sparse row of a Jacobian: maps the index of a variable to the node of the derivative."""


def jacobian(graph: Graph, outputs: Sequence[int], variables: Sequence[int]) -> list[Row]:
    """The rows of d outputs / d variables, without structural zeros.

    Uses forward or reverse mode, whichever needs fewer products: the cost of a node is the number of variables that it
    depends on (forward) or the number of outputs that depend on it (reverse).
    """
    forward, reverse = _costs(graph, outputs, variables)
    if forward <= 2 * reverse:
        return _forward(graph, outputs, {v: {k: graph.one} for k, v in enumerate(variables)})
    positions = {v: k for k, v in enumerate(variables)}
    return [_reverse(graph, output, positions) for output in outputs]


def directional(graph: Graph, outputs: Sequence[int], direction: Mapping[int, int]) -> list[int]:
    """Derivatives of outputs along a direction {variable: its rate}.

    With {t: 1, q: v} this is the time derivative along a motion.
    """
    rows = _forward(graph, outputs, {v: {0: rate} for v, rate in direction.items()})
    return [row.get(0, graph.zero) for row in rows]


def gradient(graph: Graph, output: int, variables: Sequence[int]) -> list[int]:
    """Gradient of a scalar, at the cost of a few evaluations."""
    row = _reverse(graph, output, {v: k for k, v in enumerate(variables)})
    return [row.get(k, graph.zero) for k in range(len(variables))]


def acceleration_bias(
    graph: Graph, constraints: Sequence[int], t: int, q: Sequence[int], v: Sequence[int]
) -> list[int]:
    """gamma = -(G v)_q v - 2 G_t v - g_tt: minus the second derivative of g along a motion without acceleration."""
    direction = {t: graph.one, **dict(zip(q, v))}
    rates = directional(graph, constraints, direction)
    return [graph.negative(rate) for rate in directional(graph, rates, direction)]


def sparsity(graph: Graph, outputs: Sequence[int], variables: Sequence[int]) -> list[list[int]]:
    """For each output, the indices of the variables on which it depends, including conditions of choices."""
    patterns = _patterns(graph, graph.needed(outputs), {v: 1 << k for k, v in enumerate(variables)})
    return [_bits(patterns.get(output, 0)) for output in outputs]


# --- sweeps -----------------------------------------------------------------------------------------------------------


def _forward(graph: Graph, outputs: Sequence[int], seeds: Mapping[int, Row]) -> list[Row]:
    rows: dict[int, Row] = {i: row for i, row in seeds.items()}
    for i in graph.needed(outputs):
        if i in seeds:
            continue
        inner = [rows.get(k) for k in graph.operands[i]]
        if not any(inner):
            continue
        row = _row(graph, i, [entry or {} for entry in inner])
        if row:
            rows[i] = row
    return [dict(rows.get(output, {})) for output in outputs]


def _row(graph: Graph, i: int, inner: list[Row]) -> Row:
    operation, operands = graph.operations[i], graph.operands[i]
    if operation == "add" or operation == "subtract":
        combine, alone = (graph.add, None) if operation == "add" else (graph.subtract, graph.negative)
        return _merged(graph, inner[0], inner[1], combine, alone)
    choice = _CHOICES.get(operation)
    if choice is not None:
        condition, first, second = choice(graph, operands, inner)
        keys = dict.fromkeys([*first, *second])
        chosen = {k: graph.where(condition, first.get(k, graph.zero), second.get(k, graph.zero)) for k in keys}
        return {k: x for k, x in chosen.items() if not graph.is_zero(x)}
    row: Row = {}
    for partial, entries in zip(partials(graph, i, [bool(entry) for entry in inner]), inner):
        if entries and not graph.is_zero(partial):
            scaled = {k: graph.multiply(partial, x) for k, x in entries.items()}
            row = _merged(graph, row, scaled, graph.add, None) if row else scaled
    return {k: x for k, x in row.items() if not graph.is_zero(x)}


def _merged(graph: Graph, first: Row, second: Row, combine: Callable[[int, int], int], alone) -> Row:
    row = dict(first)
    for k, x in second.items():
        if k in row:
            row[k] = combine(row[k], x)
            if graph.is_zero(row[k]):
                del row[k]
        else:
            row[k] = x if alone is None else alone(x)
    return row


def _reverse(graph: Graph, output: int, positions: Mapping[int, int]) -> Row:
    """One row of a Jacobian.

    An adjoint is a dictionary {condition: value}: a contribution through a choice counts only if the condition holds.
    Multiplying by zero instead would fail, since branches not taken may have infinite derivatives.
    """
    needed = graph.needed([output])
    depends = _patterns(graph, needed, {i: 1 for i in needed if i in positions}, through_conditions=False)
    adjoints: dict[int, dict[int, int]] = {output: {graph.true: graph.one}} if output in depends else {}
    row: Row = {}
    for i in reversed(needed):
        adjoint = adjoints.pop(i, None)
        if adjoint is None:
            continue
        if i in positions:
            total = graph.zero
            for condition, value in adjoint.items():
                total = graph.add(total, graph.where(condition, value, graph.zero))
            if not graph.is_zero(total):
                row[positions[i]] = total
            continue
        wanted = [depends.get(k, 0) != 0 for k in graph.operands[i]]
        for operand, holds, partial in _links(graph, i, wanted):
            target = adjoints.setdefault(operand, {})
            for condition, value in adjoint.items():
                both, share = graph.both(condition, holds), graph.multiply(partial, value)
                target[both] = graph.add(target[both], share) if both in target else share
    return dict(sorted(row.items()))


def _links(graph: Graph, i: int, wanted: list[bool]) -> Iterable[tuple[int, int, int]]:
    """Dependencies of a node as (operand, condition, partial derivative if the condition holds)."""
    operation, operands = graph.operations[i], graph.operands[i]
    if operation in _CHOICES:
        unit = [{k: graph.one} if want else {} for k, want in enumerate(wanted)]
        condition, first, second = _CHOICES[operation](graph, operands, unit)
        for holds, side in ((condition, first), (graph.opposite(condition), second)):
            yield from ((operands[k], holds, partial) for k, partial in side.items())
        return
    for operand, partial, want in zip(operands, partials(graph, i, wanted), wanted):
        if want and not graph.is_zero(partial):
            yield operand, graph.true, partial


# --- partial derivatives ----------------------------------------------------------------------------------------------


def partials(graph: Graph, i: int, wanted: Sequence[bool]) -> list:
    """Partial derivatives of a node with respect to its operands; None for those not `wanted`."""
    operation, operands = graph.operations[i], graph.operands[i]
    if operation in _FLAT:
        return [graph.zero for _ in operands]
    rule = _PARTIALS[operation]
    return [rule[k](graph, i, *operands) if want else None for k, want in enumerate(wanted)]


def _reciprocal(graph: Graph, a: int) -> int:
    return graph.divide(graph.one, a)


def _difference_of_squares(graph: Graph, a: int) -> int:
    """1 - a^2 without cancellation near 1."""
    return graph.multiply(graph.subtract(graph.one, a), graph.add(graph.one, a))


def _one_plus_square(graph: Graph, a: int) -> int:
    return graph.add(graph.one, graph.multiply(a, a))


def _squares(graph: Graph, a: int, b: int) -> int:
    return graph.add(graph.multiply(a, a), graph.multiply(b, b))


def _logarithmic(base: float):
    return lambda g, i, a: g.divide(g.constant(1.0 / math.log(base)), a)


def _gaussian(factor: float):
    return lambda g, i, a: g.multiply(g.constant(factor), g.apply("exp", g.negative(g.multiply(a, a))))


def _power_by_exponent(graph: Graph, i: int, a: int, b: int) -> int:
    """a^b log a, with value 0 at a = 0."""
    at_zero = graph.apply("equal", a, graph.zero)
    return graph.where(at_zero, graph.zero, graph.multiply(i, graph.apply("log", a)))


def _power_by_base(graph: Graph, i: int, a: int, b: int) -> int:
    return graph.multiply(b, graph.power(a, graph.subtract(b, graph.one)))


def _signs(graph: Graph, i: int, a: int, b: int) -> int:
    return graph.multiply(graph.apply("copysign", graph.one, a), graph.apply("copysign", graph.one, b))


_FLAT = {"sign", "floor", "ceil", "trunc", "rint", "floor_divide", "locate", "pick", *CONDITIONS}

_PARTIALS: dict[str, tuple[Callable[..., int], ...]] = {
    "add": (lambda g, i, a, b: g.one, lambda g, i, a, b: g.one),
    "subtract": (lambda g, i, a, b: g.one, lambda g, i, a, b: g.constant(-1.0)),
    "multiply": (lambda g, i, a, b: b, lambda g, i, a, b: a),
    "divide": (lambda g, i, a, b: _reciprocal(g, b), lambda g, i, a, b: g.negative(g.divide(i, b))),
    "negative": (lambda g, i, a: g.constant(-1.0),),
    "sqrt": (lambda g, i, a: g.divide(g.constant(0.5), i),),
    "cbrt": (lambda g, i, a: g.divide(g.constant(1.0 / 3.0), g.multiply(i, i)),),
    "exp": (lambda g, i, a: i,),
    "exp2": (lambda g, i, a: g.multiply(g.constant(math.log(2.0)), i),),
    "expm1": (lambda g, i, a: g.apply("exp", a),),
    "log": (lambda g, i, a: _reciprocal(g, a),),
    "log2": (_logarithmic(2.0),),
    "log10": (_logarithmic(10.0),),
    "log1p": (lambda g, i, a: _reciprocal(g, g.add(g.one, a)),),
    "sin": (lambda g, i, a: g.apply("cos", a),),
    "cos": (lambda g, i, a: g.negative(g.apply("sin", a)),),
    "tan": (lambda g, i, a: _one_plus_square(g, i),),
    "arcsin": (lambda g, i, a: _reciprocal(g, g.apply("sqrt", _difference_of_squares(g, a))),),
    "arccos": (lambda g, i, a: g.negative(_reciprocal(g, g.apply("sqrt", _difference_of_squares(g, a)))),),
    "arctan": (lambda g, i, a: _reciprocal(g, _one_plus_square(g, a)),),
    "sinh": (lambda g, i, a: g.apply("cosh", a),),
    "cosh": (lambda g, i, a: g.apply("sinh", a),),
    "tanh": (lambda g, i, a: _difference_of_squares(g, i),),
    "arcsinh": (lambda g, i, a: _reciprocal(g, g.apply("sqrt", _one_plus_square(g, a))),),
    "arccosh": (
        lambda g, i, a: _reciprocal(
            g, g.multiply(g.apply("sqrt", g.subtract(a, g.one)), g.apply("sqrt", g.add(a, g.one)))
        ),
    ),
    "arctanh": (lambda g, i, a: _reciprocal(g, _difference_of_squares(g, a)),),
    "erf": (_gaussian(2.0 / math.sqrt(math.pi)),),
    "erfc": (_gaussian(-2.0 / math.sqrt(math.pi)),),
    "power": (_power_by_base, _power_by_exponent),
    "arctan2": (
        lambda g, i, a, b: g.divide(b, _squares(g, a, b)),
        lambda g, i, a, b: g.negative(g.divide(a, _squares(g, a, b))),
    ),
    "hypot": (lambda g, i, a, b: g.divide(a, i), lambda g, i, a, b: g.divide(b, i)),
    "copysign": (_signs, lambda g, i, a, b: g.zero),
    "fmod": (lambda g, i, a, b: g.one, lambda g, i, a, b: g.negative(g.apply("trunc", g.divide(a, b)))),
    "remainder": (lambda g, i, a, b: g.one, lambda g, i, a, b: g.negative(g.apply("floor_divide", a, b))),
}

Choice = Callable[[Graph, tuple[int, ...], list[Row]], tuple[int, Row, Row]]


def _absolute(graph: Graph, operands: tuple[int, ...], inner: list[Row]) -> tuple[int, Row, Row]:
    minus = {k: graph.negative(x) for k, x in inner[0].items()}
    return graph.apply("less", operands[0], graph.zero), minus, inner[0]


_CHOICES: dict[str, Choice] = {
    "where": lambda graph, operands, inner: (operands[0], inner[1], inner[2]),
    "maximum": lambda graph, operands, inner: (graph.apply("less_equal", *operands[::-1]), inner[0], inner[1]),
    "minimum": lambda graph, operands, inner: (graph.apply("less_equal", *operands), inner[0], inner[1]),
    "absolute": _absolute,
}
"""For each operation with two branches, a function that returns the condition of the first branch and the derivatives
of both."""


# --- dependencies -----------------------------------------------------------------------------------------------------


def _patterns(graph: Graph, needed: Sequence[int], seeds: Mapping[int, int], through_conditions: bool = True) -> Row:
    """For each node, the bit mask of the seeds on which it depends."""
    patterns: Row = {}
    for i in needed:
        pattern = seeds.get(i, 0)
        if through_conditions or graph.operations[i] not in _FLAT:
            for k in graph.operands[i]:
                pattern |= patterns.get(k, 0)
        if pattern:
            patterns[i] = pattern
    return patterns


def _costs(graph: Graph, outputs: Sequence[int], variables: Sequence[int]) -> tuple[int, int]:
    needed = graph.needed(outputs)
    below = _patterns(graph, needed, {v: 1 << k for k, v in enumerate(variables)}, through_conditions=False)
    above: Row = {}
    for k, output in enumerate(outputs):
        above[output] = above.get(output, 0) | 1 << k
    reverse = 0
    for i in reversed(needed):
        if i in below and i in above:  # nodes used only by signs or conditions have no adjoint
            reverse += above[i].bit_count()
            for operand in graph.operands[i]:
                above[operand] = above.get(operand, 0) | above[i]
    return sum(pattern.bit_count() for pattern in below.values()), reverse


def _bits(pattern: int) -> list[int]:
    found = []
    while pattern:
        lowest = pattern & -pattern
        found.append(lowest.bit_length() - 1)
        pattern ^= lowest
    return found
