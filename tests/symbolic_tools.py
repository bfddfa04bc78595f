"""Shared by the tests of symbolic/: a function of (t, q) traced, compiled, and compared with itself in Python."""

import numpy as np

from daedal.symbolic import Graph, scalar_argument, trace, vector_argument
from daedal.symbolic.machine import RAISES, compile_function, may_raise


def traced(function, n, *more):
    """The trace of ``function(t, q[, ...])``."""
    graph = Graph()
    return trace(function, (scalar_argument(graph, "t"), vector_argument(graph, "q", n), *more))


def machine(result, n):
    """Machine code ``f(t, q) -> (status, array)`` for a trace."""
    graph = result.graph
    status = may_raise(graph, result.nodes, result.raises)
    code = compile_function(graph, {"q": n}, {"result": result.array}, statuses=[(status, RAISES)])

    def call(t, q):
        status, results = code(t, q=q)
        return status, results["result"]

    return call


def assert_same(function, points, tolerance=1e-13):
    """The traced function has the values of the original: to round-off, with the same NaN and infinities."""
    n = len(points[0])
    call = machine(traced(function, n), n)
    for q in points:
        with np.errstate(all="ignore"):
            expected = np.asarray(function(0.7, np.array(q, dtype=float)), dtype=float)
        status, found = call(0.7, q)
        assert found.shape == expected.shape
        np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)
        assert status == 0 or not np.isfinite(expected).all()


def points(n, count=4, low=-1.5, high=1.5, seed=0):
    """Some points of a box."""
    return np.random.default_rng(seed).uniform(low, high, (count, n))
