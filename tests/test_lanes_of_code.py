"""Machine code in lanes: eight members at once, each with the bits that it has alone."""

import ctypes

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from daedal.kernels.lanes import LANES
from daedal.symbolic import Graph
from daedal.symbolic.emission import WIDTH
from daedal.symbolic.machine import compile_function
from daedal.symbolic.operations import CONDITIONS, OPERATIONS, TABLES

_SIGNATURE = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p)
_TABLE = (-2.0, -0.5, 0.0, 0.7, 3.0)
_TIMES = (0.0, 1.0, 2.0, 3.0, 0.5, -1.0, 1e3, 2.5)


def in_lanes(code, x, p):
    """Statuses and results of all lanes: (LANES,) and (LANES, n)."""
    block, times = np.zeros((code.size, LANES)), np.array(_TIMES)
    block[code.slices["x"]], block[code.slices["p"]] = x.T, p
    told = _SIGNATURE(code.address)(times.ctypes.data, block.ctypes.data)
    statuses = block[code.slices["status"]][0]
    assert bool(told) == bool(statuses.any())
    return statuses, block[code.slices["y"]].T


def check_bits(graph, results, x, p=0.5, statuses=(), **options):
    single, wide = (
        compile_function(graph, {"x": x.shape[1]}, {"y": results}, {"p": 1}, statuses, lanes=lanes, **options)
        for lanes in (False, True)
    )
    told, values = in_lanes(wide, x, p)
    for k in range(LANES):
        status, found = single(_TIMES[k], x=x[k], p=[p])
        assert status == told[k]
        assert found["y"].tobytes() == values[k].tobytes()


@pytest.mark.parametrize("operation", sorted(set(OPERATIONS) - {"true", "false"}))
def test_every_operation_has_the_bits_that_it_has_alone(operation):
    graph = Graph()
    x = [graph.argument("x", k) for k in range(3)]
    conditions = [graph.apply("less", x[0], x[1]), graph.apply("less", x[1], x[2])]
    if operation in TABLES:
        node = getattr(graph, operation)(x[0], _TABLE)
    elif operation == "where":
        node = graph.where(conditions[0], x[1], x[2])
    elif operation.startswith("logical"):
        node = graph.where(graph.apply(operation, *conditions[: 1 if operation == "logical_not" else 2]), x[0], x[2])
    elif operation in CONDITIONS:
        node = graph.where(graph.apply(operation, x[0], x[1]), x[1], x[2])
    else:
        function = OPERATIONS[operation].evaluate
        node = graph.apply(operation, *x[: getattr(function, "nin", 1)])
    values = np.array([[0.3, -1.2, 2.0], [-0.0, 0.0, 1.0], [np.nan, 1.0, -7.5], [1e300, np.inf, 0.9]])
    values = np.concatenate([values, values[::-1] + 0.25])
    check_bits(graph, [node], values)


def test_kernels_and_code_have_the_same_lanes():
    assert LANES == WIDTH


def test_time_parameters_and_statuses_are_those_of_each_lane():
    graph = Graph()
    x, p, t = graph.argument("x", 0), graph.argument("p", 0), graph.argument("t", 0)
    result = graph.add(graph.multiply(t, x), p)
    statuses = [(graph.apply("less", x, graph.zero), 1), (graph.apply("less", x, graph.one), 2)]
    check_bits(
        graph,
        [result, graph.one],
        np.array([[2.0], [-1.0], [0.5], [3.0], [-3.0], [1.0], [0.0], [0.25]]),
        statuses=statuses,
    )


@settings(max_examples=30, deadline=None)
@given(st.lists(st.floats(-1e6, 1e6), min_size=2 * LANES, max_size=2 * LANES), st.booleans())
def test_sines_of_one_lane_do_not_depend_on_its_neighbours(numbers, quick):
    graph = Graph()
    x = [graph.argument("x", k) for k in range(2)]
    nodes = [graph.apply(name, angle) for angle in (*x, graph.add(*x)) for name in ("sin", "cos")]
    check_bits(graph, nodes, np.array(numbers).reshape(LANES, 2), quick=quick)


def test_long_programs_hand_values_and_conditions_on_in_lanes():
    graph, rng = Graph(), np.random.default_rng(1)
    x = [graph.argument("x", k) for k in range(4)]
    nodes = list(x)
    for _ in range(3000):
        a, b = rng.integers(max(0, len(nodes) - 300), len(nodes), 2)
        value = graph.add(graph.multiply(nodes[a], graph.constant(rng.uniform(-0.7, 0.7))), nodes[b])
        if rng.random() < 0.1:
            value = graph.where(graph.apply("less", nodes[a], nodes[b]), value, nodes[0])
        nodes.append(graph.apply("sin", value) if rng.random() < 0.05 else value)
    check_bits(graph, nodes[-40:], rng.normal(size=(LANES, 4)), quick=True)
