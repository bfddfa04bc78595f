"""Bounds of graphs over boxes hold every value that the graph takes there."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from daedal.events.event import Enclosed
from daedal.events.record import _enclosure
from daedal.kernels.callbacks import Bridge
from daedal.kernels.intervals import enclose
from daedal.symbolic.graph import Graph
from daedal.symbolic.operations import CONDITIONS, FUNCTIONS, OPERATIONS
from daedal.symbolic.tracing.switching_functions import Enclosure

POINTS, VALUES = (-1.5, -0.2, 0.0, 0.7, 2.5), (3.0, -1.0, 0.5, 2.0, -4.0, 1.0)
TWO = {"power", "arctan2", "hypot", "copysign", "fmod", "remainder", "floor_divide", "minimum", "maximum"}
OPERATIONS_OF_ONE = sorted(set(FUNCTIONS) - TWO)
OPERATIONS_OF_TWO = sorted([*TWO, "add", "subtract", "multiply", "divide", "less", "less_equal"])


class Bounds:
    """A function of y[0], y[1] as a graph, with its bounds over a box."""

    def __init__(self, make):
        self.graph = Graph()
        self.node = make(self.graph, self.graph.argument("y", 0), self.graph.argument("y", 1))
        if self.graph.is_condition(self.node):
            self.node = self.graph.number(self.node)
        self.program = Enclosure(self.graph, [self.node], {"y": 2}, 2, {})
        self.record = _enclosure(Enclosed(self.program, 0), Bridge(), 0)

    def over(self, box):
        """Lower and upper bound of the value, whether it is steady, and the bounds of the rate."""
        program = self.record._alive["program"]
        lower, upper, steady = (program.array(name) for name in ("lower", "upper", "steady"))
        for node, place in zip(self.program.nodes, self.program.places):
            lower[node], upper[node] = box[place]
        assert enclose(program.address) == 0
        value, rate = int(self.program.values[0]), int(self.program.rates[0])
        return lower[value], upper[value], bool(steady[value]), lower[rate], upper[rate]

    def at(self, values):
        """The value of the graph at a point."""
        graph, found = self.graph, {}
        for i in graph.needed([self.node]):
            operation, operands, datum = graph.operations[i], graph.operands[i], graph.data[i]
            if operation == "argument":
                found[i] = values[datum[1]]
            elif operation == "constant":
                found[i] = datum
            else:
                table = (datum,) if operation in ("locate", "pick") else ()
                found[i] = OPERATIONS[operation].evaluate(*[np.float64(found[k]) for k in operands], *table)
        return float(found[self.node])


def check(bounds, box, seed=0):
    """All values at sampled points are in the bounds, and differences follow from the bounds of the rate."""
    lower, upper, steady, slowest, fastest = bounds.over(box)
    assert lower <= upper
    draw = np.random.default_rng(seed)
    ends = np.array(box[:2])
    alone = [bounds.over(boxes(*[(x, x) for x in point])) for point in ends.T]
    with np.errstate(invalid="ignore"):
        rounding = sum(one[1] - one[0] for one in alone)  # of the values at the ends
    shares = np.vstack([draw.random((40, 2)), [[0, 0], [1, 1], [0, 1], [1, 0]]])
    with np.errstate(all="ignore"):
        for share in shares:
            value = bounds.at(ends[:, 0] + share * (ends[:, 1] - ends[:, 0]))
            if not math.isnan(value):
                assert lower - 1e-300 <= value <= upper + 1e-300, (box, value, lower, upper)
            else:
                assert lower == -np.inf and upper == np.inf
        begin, end = bounds.at(ends[:, 0]), bounds.at(ends[:, 1])  # along the diagonal, in unit time
        wide = all(b - a == 0.0 or b - a > 1e-4 for a, b in ends)
        if steady and wide and np.isfinite([slowest, fastest, begin, end, rounding]).all():
            slack = 1e-9 * (abs(begin) + abs(end) + abs(slowest) + abs(fastest)) + rounding
            assert slowest - slack <= end - begin <= fastest + slack, box


intervals = st.tuples(
    st.one_of(st.floats(-4.0, 4.0), st.sampled_from([0.0, -0.0, 1.0, -1.0, 0.5, 1e3, -1e3, 1e9])),
    st.one_of(st.sampled_from([0.0, 1e-12, 1e-3, 0.1, 1.0, 7.0]), st.floats(0.0, 3.0)),
).map(lambda pair: (pair[0], pair[0] + pair[1]))


def boxes(x, y):
    """Bounds of y, y' = the extent of the box, and y'' = 0."""
    return (x, y, (x[1] - x[0],) * 2, (y[1] - y[0],) * 2, (0.0, 0.0), (0.0, 0.0))


@pytest.mark.parametrize("name", OPERATIONS_OF_ONE)
def test_bounds_of_an_operation_hold_its_values(name):
    bounds = Bounds(lambda graph, x, y: graph.apply(name, x))

    @settings(max_examples=60, deadline=None, database=None, derandomize=True)
    @given(intervals)
    def holds(x):
        check(bounds, boxes(x, (0.0, 0.0)))

    holds()


@pytest.mark.parametrize("name", OPERATIONS_OF_TWO)
def test_bounds_of_an_operation_on_two_operands_hold_its_values(name):
    maker = name if name in ("add", "subtract", "multiply", "divide") else None
    bounds = Bounds(lambda graph, x, y: getattr(graph, maker)(x, y) if maker else graph.apply(name, x, y))

    @settings(max_examples=100, deadline=None, database=None, derandomize=True)
    @given(intervals, st.one_of(intervals, st.sampled_from([(2.0, 2.0), (-3.0, -3.0), (0.5, 0.5)])))
    def holds(x, y):
        check(bounds, boxes(x, y))

    holds()


COMPOSED = {
    "where": lambda g, x, y: g.where(g.apply("less", x, y), g.multiply(x, x), g.apply("sin", y)),
    "table": lambda g, x, y: g.pick(g.locate(x, POINTS), VALUES),
    "interpolated": lambda g, x, y: g.add(y, g.multiply(x, g.pick(g.locate(x, POINTS), VALUES))),
    "conditions": lambda g, x, y: g.both(g.apply("less", x, y), g.opposite(g.apply("less", y, g.constant(0.5)))),
    "either": lambda g, x, y: g.either(g.apply("less_equal", x, g.zero), g.apply("not_equal", y, y)),
    "polynomial": lambda g, x, y: g.subtract(g.power(x, g.constant(4.0)), g.multiply(y, g.power(x, g.constant(3.0)))),
    "number": lambda g, x, y: g.where(g.apply("equal", g.apply("sqrt", x), g.apply("sqrt", x)), g.one, y),
}


@pytest.mark.parametrize("name", COMPOSED)
def test_bounds_of_choices_and_tables_hold_their_values(name):
    bounds = Bounds(COMPOSED[name])

    @settings(max_examples=100, deadline=None, database=None, derandomize=True)
    @given(intervals, intervals)
    def holds(x, y):
        check(bounds, boxes(x, y))

    holds()


def test_every_operation_of_the_graph_has_bounds():
    from daedal.kernels.intervals import CODES

    assert set(OPERATIONS) <= {*CODES, "true", "false"}
    assert set(CONDITIONS) <= set(OPERATIONS)


def test_bounds_are_narrow_where_operands_are():
    bounds = Bounds(lambda g, x, y: g.divide(g.apply("sin", g.multiply(x, x)), g.apply("exp", y)))
    for width in (1e-2, 1e-4, 1e-6):
        lower, upper, steady, _, _ = bounds.over(boxes((1.0, 1.0 + width), (0.3, 0.3 + width)))
        assert steady and upper - lower < 4.0 * width
