"""NumPy's universal functions as compositions of the graph's operations, with NumPy's treatment of NaN."""

import math
from collections.abc import Callable

from daedal.symbolic.graph import Graph
from daedal.symbolic.operations import FUNCTIONS, OPERATIONS

Build = Callable[..., int]


def _simple(name: str) -> Build:
    if not OPERATIONS[name].kink:
        return lambda graph, *nodes: graph.apply(name, *nodes)

    def build(graph: Graph, *nodes: int) -> int:
        made = graph.apply(name, *nodes)
        graph.note_site(made)
        return made

    return build


def _compared(name: str, swapped: bool = False) -> Build:
    build = _simple(name)
    return (lambda graph, a, b: build(graph, b, a)) if swapped else build


def _remainder(graph: Graph, a: int, b: int) -> int:
    """a mod b with the sign of b, as Python has it: fmod, and one b more where the signs differ."""
    rest = graph.apply("fmod", a, b)
    graph.note_site(rest)
    below, divisor_below = graph.apply("less", rest, graph.zero), graph.apply("less", b, graph.zero)
    differ = _exclusive(graph, below, divisor_below)
    moved = graph.both(graph.apply("not_equal", rest, graph.zero), differ)
    return graph.where(moved, graph.add(rest, b), rest)


def _floor_divide(graph: Graph, a: int, b: int) -> int:
    quotient = graph.divide(graph.subtract(a, _remainder(graph, a, b)), b)
    below = graph.apply("floor", quotient)
    graph.note_site(below)
    half = graph.apply("less", graph.constant(0.5), graph.subtract(quotient, below))
    return graph.where(half, graph.add(below, graph.one), below)


def _exclusive(graph: Graph, a: int, b: int) -> int:
    return graph.either(graph.both(a, graph.opposite(b)), graph.both(graph.opposite(a), b))


def _is_nan(graph: Graph, a: int) -> int:
    return graph.apply("not_equal", a, a)


def _is_infinite(graph: Graph, a: int) -> int:
    return graph.apply("equal", graph.apply("absolute", a), graph.constant(math.inf))


def _ignoring_nan(name: str) -> Build:
    build = _simple(name)

    def chosen(graph: Graph, a: int, b: int) -> int:
        return graph.where(_is_nan(graph, a), b, graph.where(_is_nan(graph, b), a, build(graph, a, b)))

    return chosen


def _heaviside(graph: Graph, a: int, at_zero: int) -> int:
    below = graph.apply("less", a, graph.zero)
    graph.note_site(below)
    at = graph.apply("equal", a, graph.zero)
    step = graph.where(below, graph.zero, graph.where(at, at_zero, graph.one))
    return graph.where(_is_nan(graph, a), a, step)


def _logarithm_of_sum(base: float) -> Build:
    """log(e^a + e^b), and the same for base 2, without overflow."""

    def build(graph: Graph, a: int, b: int) -> int:
        larger = graph.apply("maximum", a, b)
        less = graph.apply("minimum", a, b)
        scale = graph.constant(math.log(base))
        apart = graph.apply("exp", graph.multiply(scale, graph.subtract(less, larger)))
        equal = graph.apply("equal", a, b)  # infinities too
        rest = graph.where(equal, graph.constant(math.log(2.0)), graph.apply("log1p", apart))
        return graph.add(larger, graph.divide(rest, scale))

    return build


def _clip(graph: Graph, a: int, low: int, high: int) -> int:
    return COMPOSITIONS["minimum"](graph, COMPOSITIONS["maximum"](graph, a, low), high)


def _times(factor: float) -> Build:
    return lambda graph, a: graph.multiply(a, graph.constant(factor))


def _same(graph: Graph, a: int) -> int:
    return a


COMPOSITIONS: dict[str, Build] = {
    **{name: _simple(name) for name in FUNCTIONS},
    "add": Graph.add,
    "subtract": Graph.subtract,
    "multiply": Graph.multiply,
    "divide": Graph.divide,
    "true_divide": Graph.divide,
    "negative": Graph.negative,
    "power": Graph.power,
    "float_power": Graph.power,
    "positive": _same,
    "conjugate": _same,
    "fabs": _simple("absolute"),
    "square": lambda graph, a: graph.multiply(a, a),
    "reciprocal": lambda graph, a: graph.divide(graph.one, a),
    "remainder": _remainder,
    "floor_divide": _floor_divide,
    "fmax": _ignoring_nan("maximum"),
    "fmin": _ignoring_nan("minimum"),
    "heaviside": _heaviside,
    "logaddexp": _logarithm_of_sum(math.e),
    "logaddexp2": _logarithm_of_sum(2.0),
    "clip": _clip,
    "deg2rad": _times(math.pi / 180.0),
    "radians": _times(math.pi / 180.0),
    "rad2deg": _times(180.0 / math.pi),
    "degrees": _times(180.0 / math.pi),
    "less": _compared("less"),
    "less_equal": _compared("less_equal"),
    "greater": _compared("less", swapped=True),
    "greater_equal": _compared("less_equal", swapped=True),
    "equal": _compared("equal"),
    "not_equal": _compared("not_equal"),
    "isnan": _is_nan,
    "isinf": _is_infinite,
    "isfinite": lambda graph, a: graph.is_finite(a),
}
"""What is built of operands that are numbers."""

LOGICAL: dict[str, Build] = {
    "logical_and": Graph.both,
    "logical_or": Graph.either,
    "logical_not": Graph.opposite,
    "logical_xor": _exclusive,
    "bitwise_and": Graph.both,
    "bitwise_or": Graph.either,
    "bitwise_xor": _exclusive,
    "invert": Graph.opposite,
}
"""What is built of conditions; NumPy has the bitwise functions for arrays of truth values."""
