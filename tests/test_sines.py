"""Sines and cosines that are computed four at a time, in quick code."""

import math

import numpy as np
import pytest

from daedal.symbolic.emission import emit
from daedal.symbolic.graph import Graph
from daedal.symbolic.instructions import LIMIT
from daedal.symbolic.machine import compile_function

N = 7  # four and three: the last group is not full


@pytest.fixture(scope="module")
def codes():
    """The code of N sines and cosines: quick, and by the C library."""
    graph = Graph()
    x = [graph.argument("x", k) for k in range(N)]
    nodes = np.array([graph.apply(name, i) for name in ("sin", "cos") for i in x])
    return [compile_function(graph, {"x": N}, {"y": nodes}, quick=quick) for quick in (True, False)]


def _values(code, x):
    return code(0.0, x=x)[1]["y"]


def _text(n, *, quick):
    """The program of n sines."""
    graph = Graph()
    x = [graph.argument("x", k) for k in range(n)]
    results = [(n + k, graph.apply("sin", i)) for k, i in enumerate(x)]
    return emit(graph, None, dict(zip(x, range(n))), results, [], 2 * n, quick=quick).text


def test_quick_code_calls_the_library_only_in_its_slow_branch():
    quick, plain = (_text(3, quick=quick) for quick in (True, False))
    assert "@sines" not in plain and plain.count("call double @llvm.sin") == 3
    assert quick.split("quick:")[1].split("slow:")[0].count("call") == 0
    assert quick.split("@daedal_entry")[1].count("call") == 1


def test_one_angle_alone_is_left_to_the_library():
    assert "@sines" not in _text(1, quick=True)
    assert _text(5, quick=True).split("@daedal_entry")[1].count("call double @llvm.sin") == 1


@pytest.mark.parametrize("size", [1e-300, 1e-8, 1e-3, 1.0, 30.0, 1e3, LIMIT])
def test_values_differ_from_those_of_the_library_by_one_unit_at_most(codes, size):
    rng = np.random.default_rng(int(math.log10(size)) + 400)
    for _ in range(300):
        x = rng.uniform(-size, size, N)
        quick, plain = (_values(code, x) for code in codes)
        assert np.all(np.abs(quick - plain) <= np.spacing(np.abs(plain)))


def test_multiples_of_a_right_angle_keep_all_digits(codes):
    rng = np.random.default_rng(3)
    for _ in range(500):
        x = np.rint(rng.uniform(-6e4, 6e4, N)) * (math.pi / 2) + rng.normal(size=N) * 10.0 ** rng.uniform(-17, 0)
        quick, plain = (_values(code, x) for code in codes)
        assert np.all(np.abs(quick - plain) <= np.spacing(np.abs(plain)))


def test_large_angles_infinities_and_nan_are_those_of_the_library_bit_by_bit(codes):
    x = np.array([0.5, 1e6, -1e300, np.inf, np.nan, 2e5, -1e22])
    quick, plain = (_values(code, x) for code in codes)
    quick, plain = np.delete(quick, [0, 1, 2, 3, 7, 8, 9, 10]), np.delete(plain, [0, 1, 2, 3, 7, 8, 9, 10])
    np.testing.assert_array_equal(quick, plain)
    np.testing.assert_array_equal(_values(codes[0], np.array([1e6] * N)), _values(codes[1], np.array([1e6] * N)))


def test_the_sine_is_odd_and_keeps_the_sign_of_zero(codes):
    x = np.array([0.0, 1e-310, 0.3, 1.0, 2.0, 77.7, 9e4])
    there, back = _values(codes[0], x), _values(codes[0], -x)
    np.testing.assert_array_equal(back[:N], -there[:N])
    np.testing.assert_array_equal(np.signbit(back[:N]), ~np.signbit(there[:N]))
    np.testing.assert_array_equal(back[N:], there[N:])


def test_angles_that_depend_on_sines_are_left_to_the_library():
    graph = Graph()
    x = [graph.argument("x", k) for k in range(2)]
    inner = [graph.apply("sin", i) for i in x]
    outer = [graph.apply("cos", graph.add(i, x[0])) for i in inner]
    code = compile_function(graph, {"x": 2}, {"y": np.array(outer)}, quick=True)
    for values in ([0.3, -1.2], [2e5, 1.0]):
        expected = np.cos(np.sin(values) + values[0])
        np.testing.assert_allclose(_values(code, values), expected, rtol=0, atol=1e-15 + 1e-16 * abs(values[0]))
