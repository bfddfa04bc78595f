"""Shared by the tests of symbolic/: a function of (t, q) traced, compiled, and compared with itself in Python."""

import mpmath
import numpy as np

from daedal.symbolic import Graph, scalar_argument, trace, vector_argument
from daedal.symbolic.graph import evaluate
from daedal.symbolic.machine import RAISES, compile_function, may_raise

UNIT = 1.0  # read by a function that is traced
mpmath.mp.dps = 40
EXTENDED = {
    "add": lambda a, b: a + b,
    "subtract": lambda a, b: a - b,
    "multiply": lambda a, b: a * b,
    "divide": lambda a, b: mpmath.mpf(a) / b,
    "negative": lambda a: -a,
    "cbrt": lambda a: mpmath.sign(a) * mpmath.cbrt(abs(a)),
    "exp2": lambda a: mpmath.mpf(2) ** a,
    "log2": lambda a: mpmath.log(a, 2),
    "log1p": lambda a: mpmath.log(1 + a),
    "arcsin": mpmath.asin,
    "arccos": mpmath.acos,
    "arctan": mpmath.atan,
    "arcsinh": mpmath.asinh,
    "arccosh": mpmath.acosh,
    "arctanh": mpmath.atanh,
    "arctan2": mpmath.atan2,
    "absolute": abs,
    "power": lambda a, b: mpmath.power(a, b),
    "copysign": lambda a, b: abs(a) if b >= 0 else -abs(a),
    "fmod": lambda a, b: a - b * (mpmath.floor(a / b) if a / b >= 0 else mpmath.ceil(a / b)),
    "remainder": lambda a, b: a - b * mpmath.floor(a / b),
    "floor_divide": lambda a, b: mpmath.floor(a / b),
    "minimum": min,
    "maximum": max,
    "less": lambda a, b: a < b,
    "less_equal": lambda a, b: a <= b,
    "equal": lambda a, b: a == b,
    "not_equal": lambda a, b: a != b,
    **{name: getattr(mpmath, name) for name in ("sqrt", "exp", "expm1", "log", "log10", "sin", "cos", "tan", "sinh")},
    **{name: getattr(mpmath, name) for name in ("cosh", "tanh", "erf", "erfc", "sign", "floor", "ceil", "hypot")},
}


def extended(graph, nodes, *, t="0.7", **arguments):
    """Nodes at a time and other arguments, with 40 digits."""
    given = {name: list(map(mpmath.mpf, values)) for name, values in arguments.items()}
    return evaluate(graph, nodes, {"t": mpmath.mpf(t), **given}, EXTENDED)


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
