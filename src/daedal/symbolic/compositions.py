"""NumPy's universal functions composed of the graph's operations, with NumPy's treatment of NaN."""

import math
from collections.abc import Callable
from fractions import Fraction

from daedal.symbolic.graph import Graph
from daedal.symbolic.operations import ARITHMETIC, FUNCTIONS, OPERATIONS

Build = Callable[..., int]


def _simple(name: str) -> Build:
    if not OPERATIONS[name].kink:
        return lambda graph, *nodes: graph.apply(name, *nodes)

    def build(graph: Graph, *nodes: int) -> int:
        made = graph.apply(name, *nodes)
        graph.note_site(made)
        return made

    return build


_ROUNDED = ("floor", "ceil", "trunc", "rint", "floor_divide")


def _compared(name: str, swapped: bool = False) -> Build:
    """A comparison; if a rounded value is compared with a constant, the unrounded value is compared instead."""
    simple = _simple(name)

    def build(graph: Graph, a: int, b: int) -> int:
        a, b = (b, a) if swapped else (a, b)
        for value, number in ((a, b), (b, a)):
            if _is_rounded(graph, value) and graph.is_constant(number) and abs(graph.data[number]) < 2.0**52:
                return _compared_whole(graph, name, value, graph.data[number], value == a)
        return simple(graph, a, b)

    return build


def _is_rounded(graph: Graph, i: int) -> bool:
    """Whether a value is rounded, so that its operand can be compared instead."""
    if graph.operations[i] != "floor_divide":
        return graph.operations[i] in _ROUNDED
    divisor = graph.operands[i][1]
    return graph.is_constant(divisor) and 0.0 < graph.data[divisor] < 1e280


def _compared_whole(graph: Graph, name: str, rounded: int, number: float, first: bool) -> int:
    if name in ("equal", "not_equal"):
        if not number.is_integer():
            return graph.truth(name == "not_equal")
        same = graph.both(*(_compared_whole(graph, "less_equal", rounded, number, side) for side in (True, False)))
        return same if name == "equal" else graph.opposite(same)
    operation, strict = graph.operations[rounded], name == "less"
    value = graph.operands[rounded][0]
    if first:  # rounded <= most
        most = math.ceil(number) - 1.0 if strict else float(math.floor(number))
        bound, excluded = most, False
        if operation == "rint":
            bound, excluded = most + 0.5, most % 2.0 == 1.0
        elif operation in ("floor", "floor_divide") or (operation == "trunc" and most >= 0.0):
            bound, excluded = most + 1.0, True
    else:  # rounded >= least
        least = math.floor(number) + 1.0 if strict else float(math.ceil(number))
        bound, excluded = least, False
        if operation == "rint":
            bound, excluded = least - 0.5, least % 2.0 == 1.0
        elif operation == "ceil" or (operation == "trunc" and least <= 0.0):
            bound, excluded = least - 1.0, True
    if operation == "floor_divide":
        bound = _least_multiple(bound, graph.data[graph.operands[rounded][1]])
    limit = graph.constant(bound)
    return _simple("less" if excluded else "less_equal")(graph, *((value, limit) if first else (limit, value)))


def _least_multiple(times: float, divisor: float) -> float:
    """The smallest float x with x // divisor >= times."""
    exact = Fraction(times) * Fraction(divisor)
    found = float(exact)
    return found if Fraction(found) >= exact else math.nextafter(found, math.inf)


def _exclusive(graph: Graph, a: int, b: int) -> int:
    return graph.either(graph.both(a, graph.opposite(b)), graph.both(graph.opposite(a), b))


_BELOW = {"sqrt": 0.0, "log": 0.0, "log2": 0.0, "log10": 0.0, "log1p": -1.0, "arccosh": 1.0}
_BEYOND_ONE = ("arcsin", "arccos", "arctanh")
_PASSING = {
    *ARITHMETIC,
    *_BELOW,
    *_BEYOND_ONE,
    "exp",
    "exp2",
    "expm1",
    "sin",
    "cos",
    "tan",
    "tanh",
    "arctan",
    "absolute",
}
_DEEPEST = 200  # maximum number of nodes searched for operations that can give NaN


def _is_nan(graph: Graph, a: int) -> int:
    """Condition that a value is NaN; the end of the domain of a root, a logarithm and so on becomes a switch."""
    found = graph.apply("not_equal", a, a)
    if graph.regular[a]:
        return found
    waiting, seen = [a], {a}
    while waiting and len(seen) < _DEEPEST:
        i = waiting.pop()
        operation, operands = graph.operations[i], graph.operands[i]
        outside = []
        if operation in _BELOW:
            outside = [graph.apply("less", operands[0], graph.constant(_BELOW[operation]))]
        elif operation in _BEYOND_ONE:
            outside = [
                graph.apply("less", operands[0], graph.constant(-1.0)),
                graph.apply("less", graph.one, operands[0]),
            ]
        elif operation == "power" and graph.is_constant(operands[1]) and not graph.data[operands[1]].is_integer():
            outside = [graph.apply("less", operands[0], graph.zero)]
        for condition in outside:
            graph.note_site(condition)
            found = graph.either(found, condition)
        for k in operands if operation in _PASSING else ():
            if k not in seen and not graph.regular[k]:
                seen.add(k)
                waiting.append(k)
    return found


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
    """log(e^a + e^b), and its base-2 version, without overflow."""

    def build(graph: Graph, a: int, b: int) -> int:
        larger = graph.apply("maximum", a, b)
        less = graph.apply("minimum", a, b)
        scale = graph.constant(math.log(base))
        apart = graph.apply("exp", graph.multiply(scale, graph.subtract(less, larger)))
        equal = graph.apply("equal", a, b)  # also handles infinities
        rest = graph.where(equal, graph.constant(math.log(2.0)), graph.apply("log1p", apart))
        return graph.add(larger, graph.divide(rest, scale))

    return build


def _clip(graph: Graph, a: int, low: int, high: int) -> int:
    return COMPOSITIONS["minimum"](graph, COMPOSITIONS["maximum"](graph, a, low), high)


def _expit(graph: Graph, a: int) -> int:
    """1/(1 + e^-a), without overflow."""
    less = graph.apply("exp", graph.negative(graph.apply("absolute", a)))
    numerator = graph.where(graph.apply("less", a, graph.zero), less, graph.one)
    return graph.divide(numerator, graph.add(graph.one, less))


def _log_expit(graph: Graph, a: int) -> int:
    less = graph.apply("exp", graph.negative(graph.apply("absolute", a)))
    negative = graph.where(graph.apply("less", a, graph.zero), a, graph.zero)
    return graph.subtract(negative, graph.apply("log1p", less))


def _logit(graph: Graph, a: int) -> int:
    return graph.apply("log", graph.divide(a, graph.subtract(graph.one, a)))


def _times_logarithm(name: str) -> Build:
    """a log b, which is 0 for a = 0."""

    def build(graph: Graph, a: int, b: int) -> int:
        is_zero = graph.both(graph.apply("equal", a, graph.zero), graph.apply("equal", b, b))
        return graph.where(is_zero, graph.zero, graph.multiply(a, graph.apply(name, b)))

    return build


def _entropy(graph: Graph, a: int) -> int:
    outside = graph.where(graph.apply("less", a, graph.zero), graph.constant(-math.inf), a)  # 0 at 0, NaN for NaN
    inside = graph.negative(graph.multiply(a, graph.apply("log", a)))
    return graph.where(graph.apply("less", graph.zero, a), inside, outside)


def _relative_entropy(graph: Graph, a: int, b: int) -> int:
    positive = graph.both(graph.apply("less", graph.zero, a), graph.apply("less", graph.zero, b))
    inside = graph.multiply(a, graph.apply("log", graph.divide(a, b)))
    vanishes = graph.both(graph.apply("equal", a, graph.zero), graph.apply("less_equal", graph.zero, b))
    outside = graph.where(vanishes, graph.zero, graph.constant(math.inf))
    unknown = graph.either(graph.apply("not_equal", a, a), graph.apply("not_equal", b, b))
    return graph.where(positive, inside, graph.where(unknown, graph.add(a, b), outside))


def _normal_distribution(graph: Graph, a: int) -> int:
    scaled = graph.multiply(a, graph.constant(-math.sqrt(0.5)))
    return graph.multiply(graph.constant(0.5), graph.apply("erfc", scaled))


def _relative_exponential(graph: Graph, a: int) -> int:
    quotient = graph.divide(graph.apply("expm1", a), a)
    return graph.where(graph.apply("equal", a, graph.zero), graph.one, quotient)


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
    "fmax": _ignoring_nan("maximum"),
    "fmin": _ignoring_nan("minimum"),
    "heaviside": _heaviside,
    "logaddexp": _logarithm_of_sum(math.e),
    "logaddexp2": _logarithm_of_sum(2.0),
    "clip": _clip,
    "expit": _expit,
    "log_expit": _log_expit,
    "logit": _logit,
    "xlogy": _times_logarithm("log"),
    "xlog1py": _times_logarithm("log1p"),
    "entr": _entropy,
    "rel_entr": _relative_entropy,
    "ndtr": _normal_distribution,
    "exprel": _relative_exponential,
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
"""Compositions with numeric operands."""

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
"""Compositions with Boolean operands; NumPy's bitwise functions have this effect on Boolean arrays."""
