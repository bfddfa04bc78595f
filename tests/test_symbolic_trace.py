"""Plain functions as users write them, run on symbols: same values as in Python, or a reason why not."""

import functools
import itertools
import logging
import math
import math as m
import numbers
import operator
import queue
import random
import sys
import threading
import time
from collections import deque, namedtuple
from dataclasses import dataclass
from functools import partial
from math import atan2, sin
from types import SimpleNamespace

import numba
import numpy
import numpy as np
import pytest
import scipy.sparse
from numpy import cos

import daedal
import symbolic_tools
from daedal.symbolic import Graph, Untraceable, scalar_argument, trace, vector_argument
from daedal.symbolic.switches import switches
from symbolic_tools import assert_same, machine, points, traced

STIFFNESS = 3.0
MATRIX = np.array([[2.0, -1.0, 0.0], [-1.0, 2.0, -1.0], [0.0, -1.0, 2.0]])
SPARSE = scipy.sparse.csr_array(np.array([[2.0, 0.0, -1.0], [0.0, 0.0, 0.0], [0.5, 3.0, 0.0]]))
OLD_SPARSE = scipy.sparse.csc_matrix(np.array([[0.0, 1.0, 0.0], [2.0, 0.0, 0.0], [0.0, 0.0, 3.0]]))
ROAD = daedal.Table([-1.0, 0.0, 0.5, 2.0], [0.0, 0.3, -0.2, 0.1])
SPLINE = daedal.Table(np.linspace(-2.0, 2.0, 9), np.sin(np.linspace(-2.0, 2.0, 9)), kind="cubic")
STEPS = daedal.Table([-1.0, 0.0, 1.0], [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], kind="previous")
COMPILED_TABLE = ROAD.compiled()
XP, FP = np.array([-1.0, 0.0, 0.25, 1.0]), np.array([0.0, 2.0, -1.0, 0.5])


def helper(x, scale=2.0):
    return scale * math.sin(x) + np.cos(x)


@numba.njit
def compiled_helper(x):
    return np.sin(x) * x


class Spring:
    def __init__(self, k):
        self.k = k

    def force(self, x):
        return -self.k * np.sin(x) - self.damped(x)

    def damped(self, x):
        out = np.zeros(1)
        out[0] = math.tanh(x)
        return out[0]

    def __call__(self, t, q):
        return np.array([self.force(x) for x in q])


@dataclass(frozen=True)
class Body:
    mass: float
    offset: np.ndarray

    @property
    def weight(self):
        return 9.81 * self.mass

    def moment(self, angle):
        return self.weight * np.sqrt(self.offset @ self.offset) * np.sin(angle)


@dataclass
class State:
    x: float
    y: float

    def radius(self):
        return np.hypot(self.x, self.y)


SPRING, BODY = Spring(2.0), Body(1.5, np.array([0.3, 0.4]))


def filled(t, q):
    r = np.zeros(3)
    for i in range(3):
        r[i] = q[i] ** 2 + i
    r[1:] -= q[:2]
    r *= 2
    return r


def with_closure():
    lengths, weights = np.array([1.0, 2.0, 3.0]), [0.1, 0.2, 0.3]

    def inner(x):
        return weights[0] * x**3

    def function(t, q):
        return lengths * q + np.array([inner(x) for x in q]) * t

    return function


def local_import(t, q):
    import numpy as other

    return other.sin(q) + numpy.exp(-q)


def ways_to_fill(t, q):
    r, s, u = np.zeros(3), np.empty(3), np.zeros((3, 3))
    np.add.at(r, [0, 0, 2], q)
    s.fill(q[0])
    s.flat[1] = q[2]
    np.fill_diagonal(u, q)
    u[2, ::-1] += q
    np.dot(MATRIX, q, out=s)
    np.copyto(r, 2.0 * q, where=np.array([True, False, True]))
    np.subtract(r, 1.0, r)
    return u + r + s


def in_place(t, q):
    a = q.copy()
    a += 1.0
    a[0] *= 3
    a /= 2.0
    a -= np.array([1.0, 2.0, 3.0])
    np.multiply(a, 2.0, out=a)
    return a


def rotation(a):
    return np.array([[math.cos(a), -math.sin(a)], [math.sin(a), math.cos(a)]])


def matrices(t, q):
    a = rotation(q[0]) @ rotation(q[1]).T
    b = np.zeros((2, 2))
    b[:, 0] = q[:2]
    b[1] += q[1:]
    return a @ b + np.outer(q[:2], q[1:]) + np.diag(q[:2]) + np.eye(2) * q[2]


def vectors(t, q):
    e = np.cross(q, [0.0, 1.0, 2.0])
    return np.concatenate([e, [np.dot(q, e), q @ q, np.linalg.norm(q), q.sum(), np.sum(q**2), sum(q), np.prod(q)]])


def stacks(t, q):
    return np.vstack([np.stack([q, 2 * q]), np.hstack([q[:1], q[1:]])[None, :], np.tile(q[0], 3)[None, :]]).ravel()


def local_objects(t, q):
    state = State(q[0], q[1])
    state.x = state.x * 2.0
    return np.array([state.radius(), BODY.moment(q[2]), SPRING.force(q[0])])


def keyword_only(t, q, *, k=2.0, f=math.cos):
    return [k * f(x) for x in q]


def recursive(t, q):
    def power(x, n):
        return x if n == 1 else x * power(x, n - 1)

    return [power(x, 5) for x in q]


def branch(t, q):
    if q[0] > 0.0:
        return np.array([q[0], q[1] * 2.0])
    elif q[1] > 0.0 and q[0] < -0.5:
        return np.array([-q[0], 0.0])
    return np.array([0.0, 1.0])


def newton(t, q):
    x = 1.0
    for _ in range(20):
        step = (x * x - (2.0 + q[0])) / (2.0 * x)
        x = x - step
        if abs(step) < 1e-12:
            break
    return [x]


def masked(t, q):
    r = q * 2.0
    r[r < 0.0] = 0.0
    return r


def whole_numbers(t, q):
    n = np.zeros(3, dtype=int)
    for i in range(3):
        n[i] = 2 - i
    return q[n] * n + np.arange(3) + np.arange(3.0) * q


def searched(t, q):
    i = np.searchsorted(XP, q[0], side="right") - 1
    return [FP[i] + q[0], FP[np.searchsorted(XP, q[1])]]


def constants_first(t, q):
    k = np.linalg.inv(MATRIX) @ np.ones(3)
    return k * q + np.linalg.solve(MATRIX, [1.0, 2.0, 3.0]) + np.linalg.norm(MATRIX)


TRACED = {
    "filled": filled,
    "closure": with_closure(),
    "globals": lambda t, q: -STIFFNESS * q + MATRIX @ q,
    "helpers": lambda t, q: [helper(x) + helper(x, scale=t) for x in q],
    "numba": lambda t, q: [compiled_helper(x) for x in q],
    "numba throughout": numba.njit(lambda t, q: np.array([q[0] * t, compiled_helper(q[1])])),
    "names": lambda t, q: [sin(q[0]), cos(q[1]), atan2(q[0], q[1]), m.pi * q[0], numpy.sinh(q[2])],
    "local import": local_import,
    "in place": in_place,
    "matrices": matrices,
    "vectors": vectors,
    "stacks": stacks,
    "objects": local_objects,
    "a method": SPRING.__call__,
    "an object": SPRING,
    "partial": partial(lambda k, t, q: k * np.sin(q), 3.0),
    "keyword": keyword_only,
    "recursion": recursive,
    "reduce": lambda t, q: [functools.reduce(operator.mul, q), math.prod(q), math.fsum(q), math.dist(q, [0, 0, 0])],
    "extremes": lambda t, q: [max(q), min(q[0], 0.2), max(0.0, -q[1]), np.max(q), q.min(), np.minimum(q[0], q[1])],
    "choices": lambda t, q: np.where(q > 0.2, q**2, np.where(np.abs(q) < 0.1, 0.0, -q)) + np.clip(q, -0.3, 0.4),
    "logic": lambda t, q: np.where((q[0] > 0) & (q[1] < 0) | ~(q[2] > 0.5), 1.0, np.where(np.any(q > 1.0), 2.0, q)),
    "conditions as numbers": lambda t, q: (q > 0) * q + (q[0] < 0.3) - 2 * (q >= 0.1),
    "signs": lambda t, q: np.sign(q) + np.copysign(q, -q[::-1]) + np.heaviside(q, 0.5) + abs(q),
    "rounding": lambda t, q: np.floor(3 * q) + np.ceil(q) + np.trunc(2 * q) + np.rint(5 * q) + math.floor(q[0]),
    "remainders": lambda t, q: [
        q[0] % 0.3,
        q[1] // 0.4,
        np.mod(q[2], -0.7),
        math.fmod(q[0], 0.2),
        divmod(q[1], 0.3)[1],
    ],
    "masked": masked,
    "integers": whole_numbers,
    "interpolation": lambda t, q: np.interp(q, XP, FP) + np.interp(q[0], XP, FP, left=-7.0, right=7.0),
    "values of a table that are not known": lambda t, q: [np.interp(q[0], [-1.0, 0.0, 1.0], q)],
    "table": lambda t, q: [ROAD(q[0]), SPLINE(q[1]), *STEPS(q[2]), ROAD(t), COMPILED_TABLE(q[0])],
    "searched": searched,
    "known algebra": constants_first,
    "solve": lambda t, q: np.linalg.solve(MATRIX + np.outer(q, q), q) + (np.linalg.inv(rotation(q[0])) @ q[:2])[0],
    "determinant": lambda t, q: [np.linalg.det(rotation(q[0]) * q[1]), np.linalg.det(MATRIX * q[0] + np.eye(3))],
    "norms": lambda t, q: [
        np.linalg.norm(q, 1),
        np.linalg.norm(q, np.inf),
        np.linalg.norm(q, 3),
        np.linalg.norm(q) ** 2,
    ],
    "einsum": lambda t, q: np.einsum("ij,j->i", MATRIX, q) + np.trace(MATRIX) * np.roll(q, 1) + np.cumsum(q),
    "float()": lambda t, q: [float(q[0]) * float(2), np.float64(q[1]), q[2].item()],
    "types": lambda t, q: (
        np.asarray(q, dtype=float) + np.array(list(q), dtype=np.float64) + np.zeros_like(q) + q.dtype.itemsize
    ),
    "isinstance": lambda t, q: [1.0 * isinstance(q[0], float), 1.0 * isinstance(q, np.ndarray), q[0]],
    "powers": lambda t, q: [
        *(abs(q[0]) ** k for k in (0, 1, 2, 3, 7, -1, -2, 0.5, 1.5, 2.2, 17)),
        2.0 ** q[1],
        q[2] ** 4,
    ],
    "power of a negative": lambda t, q: [(-abs(q[0]) - 0.1) ** 3, pow(q[1], 2), math.pow(abs(q[2]), 0.3)],
    "special": lambda t, q: [math.erf(q[0]), math.erfc(q[1]), math.expm1(q[2]), np.log1p(abs(q[0])), np.cbrt(q[1])],
    "angles": lambda t, q: [
        math.radians(q[0]),
        np.rad2deg(q[1]),
        np.arctan2(q[0], q[2]),
        math.hypot(*q),
        np.arcsin(q[0] / 2),
    ],
    "mean": lambda t, q: [np.mean(q), q.mean(), np.diff(q)[0], np.ptp(q)],
    "namespaces": lambda t, q: [SETTINGS.k * q[0], POINT.masses @ q[:2] * POINT.x, len(HISTORY) + q[1]],
    "kinds of numbers": lambda t, q: [q[0] if np.isscalar(t) and isinstance(q[0], numbers.Real) else 0.0, np.ndim(t)],
    "rounded": lambda t, q: [*np.round(q, 1), round(q[0])],
    "ways to fill": ways_to_fill,
    "blocks": lambda t, q: np.block([[np.outer(q, q), q[:, None]], [q[None, :], np.zeros((1, 1))]]),
    "methods of universal functions": lambda t, q: np.add.outer(q, q) + np.multiply.reduce(q) + np.add.accumulate(q),
    "more functions": lambda t, q: [
        *np.sinc(q),
        np.logaddexp(*q[:2]),
        np.logaddexp2(*q[:2]),
        *np.linspace(q[0], q[1], 4),
    ],
    "vectorised": lambda t, q: np.vectorize(lambda x: x * np.sin(x))(q),
    "constants of the system": lambda t, q: (
        q + sys.float_info.epsilon + np.finfo(float).eps + np.finfo(float).max * 0.0
    ),
    "sparse matrices": lambda t, q: (
        SPARSE @ q + SPARSE.T.dot(q) - (2.0 * SPARSE) @ (q * q) + q @ SPARSE + SPARSE @ np.ones(3)
    ),
    "sparse products": lambda t, q: SPARSE @ np.outer(q, q) + SPARSE.toarray() * q[0] + OLD_SPARSE * q,
    "time only": lambda t, q: [math.cos(t), 1.0],
    "branch": branch,
    "while": newton,
    "generator": lambda t, q: np.fromiter((x * 2 for x in q), dtype=object),
    "sorted": lambda t, q: sorted(q),
    "comparison chain": lambda t, q: [1.0 if -0.2 < q[0] < 0.9 else 2.0],
}


@pytest.mark.parametrize("name", TRACED)
def test_a_traced_function_has_the_values_of_the_original(name):
    function = TRACED[name]
    original = function.py_func if hasattr(function, "py_func") else function
    assert_same(original, points(3))
    assert traced(function, 3).shape == np.shape(original(0.7, points(3)[0]))


SPECIAL = [
    [math.nan, 1.0],
    [math.inf, 1.0],
    [-math.inf, -1.0],
    [0.0, 0.0],
    [-0.0, math.inf],
    [1e200, -1e200],
    [-1.0, math.nan],
]
ON_SPECIAL_POINTS = {
    "products with zero": lambda t, q: [0.0 * (1.0 / q[0]), 0 * np.log(q[0]), (q[0] / q[1]) * 0.0],
    "differences": lambda t, q: [np.exp(q[0]) - np.exp(q[0]), q[0] / q[0], 0.0 / q[1], 1.0 / q[0] - 1.0 / q[0]],
    "functions": lambda t, q: [
        np.sqrt(q[0]),
        np.log(q[0]),
        np.exp(q[0]),
        np.tanh(q[1]),
        np.arctan(q[0]),
        np.log1p(q[1]),
    ],
    "powers": lambda t, q: [q[0] ** 2, q[0] ** -1, q[0] ** 1.5, np.abs(q[1]) ** 0.5, q[0] ** 0],
    "extremes": lambda t, q: [
        np.maximum(q[0], q[1]),
        np.minimum(q[0], q[1]),
        np.fmax(q[0], q[1]),
        np.fmin(*q),
        max(q),
        min(q),
    ],
    "signs": lambda t, q: [np.sign(q[0]), np.abs(q[0]), np.sign(q[1]), np.heaviside(q[0], 0.5)],
    "choices": lambda t, q: [
        np.where(q[0] > q[1], 1.0, 2.0),
        np.where(q[0] <= q[1], 1.0, 2.0),
        np.where(q[0] != q[1], 1, 2),
    ],
    "tests": lambda t, q: [
        np.where(np.isnan(q[0]), 1, 2),
        np.where(np.isfinite(q[0]), 1, 2),
        np.where(np.isinf(q[1]), 1, 2),
    ],
    "rounding": lambda t, q: [np.floor(q[0]), np.rint(q[1]), np.arctan2(q[0], q[1]), np.hypot(q[0], q[1])],
    "interpolation": lambda t, q: [np.interp(q[0], XP, FP), np.interp(q[1], XP, FP)],
}


@pytest.mark.parametrize("name", ON_SPECIAL_POINTS)
def test_infinities_and_nan_are_those_of_numpy(name):
    assert_same(ON_SPECIAL_POINTS[name], SPECIAL)


# --- what cannot be traced --------------------------------------------------------------------------------------------

CALLS, RNG, LOG, TOTAL = [0], np.random.default_rng(0), {}, 0
COUNTS = np.zeros(1)
SETTINGS, HISTORY, COUNTER = SimpleNamespace(calls=0, counts=[0], k=2.0), deque(maxlen=3), itertools.count()
LOGGER, QUEUE = logging.getLogger("test"), queue.Queue()
POINT = namedtuple("Point", "x masses")(1.0, np.ones(2))


def counts_in_a_list(t, q):
    CALLS[0] += 1
    return q


def counts_in_a_dictionary(t, q):
    LOG["calls"] = LOG.get("calls", 0) + 1
    return q


def counts_in_an_array(t, q):
    COUNTS[0] += 1
    return q


def counts_in_a_global(t, q):
    global TOTAL
    TOTAL += 1
    return q


def counts_in_an_attribute(t, q):
    counts_in_an_attribute.calls = 1
    return q


def counts_in_an_object(t, q):
    SPRING.k = 2.0
    return q


def appends(t, q):
    CALLS.append(q[0])
    return q


def counts_outside():
    calls = 0

    def function(t, q):
        nonlocal calls
        calls += 1
        return q

    return function


def mutates(t, q):
    q[0] = 0.0
    return q


def hides(t, q):
    try:
        x = int(q[0])
    except TypeError:
        x = 0
    return q * x


def too_many_paths(t, q):
    return [x if x > 0 else 0.0 for x in np.concatenate([q + k for k in range(4)])]


def prints(t, q):
    print(q[0])
    return q


class Memory:
    def __init__(self):
        self.last = None

    def __call__(self, t, q):
        self.last = q
        return q


def shapes(t, q):
    return np.array([q[0]]) if q[0] > 0 else np.array([q[0], 1.0])


def unset(t, q):
    r = np.empty(3)
    r[0] = q[0]
    return r


def counts_in_a_namespace(t, q):
    SETTINGS.calls = 1
    return q


def changes_what_is_in_a_namespace(t, q):
    SETTINGS.counts[0] += 1
    return q


def remembers(t, q):
    HISTORY.append(t)
    return q


def counts_in_a_tuple(t, q):
    POINT.masses[0] = 1.0
    return q


def advances(t, q):
    return q * next(COUNTER)


def counts_in_a_class(t, q):
    Spring.count = 1
    return q


def counts_behind_the_back(t, q):
    SPRING.__dict__["k"] = 3.0
    return q


def logs(t, q):
    LOGGER.warning("called")
    return q


def puts(t, q):
    QUEUE.put(t)
    return q


def stores_by_name(t, q):
    globals()["TOTAL"] = 1
    return q


UNTRACEABLE = {
    "class": (counts_in_a_class, "attributes of the class Spring"),
    "behind the back": (counts_behind_the_back, "attributes of a Spring"),
    "log": (logs, "writes messages"),
    "queue": (puts, "uses queue"),
    "globals()": (stores_by_name, "dictionary of globals"),
    "namespace": (counts_in_a_namespace, "stores to the attribute 'calls'"),
    "in a namespace": (changes_what_is_in_a_namespace, "changes 'counts'"),
    "deque": (remembers, "changes 'HISTORY'"),
    "named tuple": (counts_in_a_tuple, "stores into an array defined outside"),
    "iterator": (advances, "advances the iterator 'COUNTER'"),
    "list": (counts_in_a_list, "changes 'CALLS'"),
    "append": (appends, "changes 'CALLS'"),
    "dictionary": (counts_in_a_dictionary, "changes 'LOG'"),
    "array": (counts_in_an_array, "stores into an array defined outside"),
    "global": (counts_in_a_global, "stores to the global variable 'TOTAL'"),
    "nonlocal": (counts_outside(), "stores to the outer variable 'calls'"),
    "function attribute": (counts_in_an_attribute, "attributes of counts_in_an_attribute"),
    "object": (counts_in_an_object, "stores to the attribute 'k'"),
    "own attribute": (Memory(), "stores to the attribute 'last'"),
    "argument": (mutates, "changes its arguments"),
    "swallowed": (hides, "catches exceptions"),
    "np.random": (lambda t, q: q + np.random.default_rng().random(), "random numbers"),
    "generator": (lambda t, q: q + RNG.random(), "random numbers"),
    "random": (lambda t, q: q + random.random(), "random numbers"),
    "time": (lambda t, q: q + time.time(), "reads the clock"),
    "print": (prints, "prints"),
    "paths": (too_many_paths, r"branches on q\[\d\], with more than 64 paths"),
    "index": (lambda t, q: [[1.0, 2.0][q[0]]], r"uses q\[0\] as an index"),
    "key": (lambda t, q: [{0.0: 1.0}[q[0] + t]], r"uses t, q\[0\] as a key"),
    "shapes": (shapes, "different shapes"),
    "unset": (unset, "never set"),
    "nothing": (lambda t, q: None, "returns None"),
    "unknown": (lambda t, q: [math.gamma(q[0])], "math.gamma"),
    "text": (lambda t, q: [q[0] + "1"], "TypeError"),
    "ragged": (lambda t, q: [q, q[0]], "not known|lengths"),
}


@pytest.mark.parametrize("name", UNTRACEABLE)
def test_what_cannot_be_traced_is_said(name):
    function, reason = UNTRACEABLE[name]
    with pytest.raises(Untraceable, match=reason):
        traced(function, 3)


def test_nothing_of_the_users_is_changed_by_a_trace():
    before = dict(vars(SPRING)), list(CALLS), dict(LOG), COUNTS.copy(), TOTAL, dict(globals()), repr(COUNTER)
    for function, _ in UNTRACEABLE.values():
        try:
            traced(function, 3)
        except Untraceable:
            pass
    assert (vars(SPRING), CALLS, LOG, TOTAL) == (before[0], before[1], before[2], before[4])
    assert np.array_equal(COUNTS, before[3])
    assert (repr(COUNTER), list(HISTORY), SETTINGS.calls, SETTINGS.counts) == (before[6], [], 0, [0])
    assert all(globals()[name] is value for name, value in before[5].items())
    assert not hasattr(counts_in_an_attribute, "calls") and not hasattr(Spring, "count") and QUEUE.empty()


def test_a_refusal_names_the_line():
    line = too_many_paths.__code__.co_firstlineno + 1
    with pytest.raises(Untraceable, match=rf"test_symbolic_trace.py line {line}.*np.where, or an event") as caught:
        traced(too_many_paths, 3)
    assert caught.value.site == f"test_symbolic_trace.py line {line}"


def test_a_changed_global_and_a_changed_closure_are_seen_by_the_next_trace(monkeypatch):
    function = TRACED["globals"]
    monkeypatch.setitem(globals(), "STIFFNESS", 5.0)
    assert_same(function, points(3))
    k = 1.0

    def closure(t, q):
        return k * q

    assert_same(closure, points(3))
    k = 2.0
    assert_same(closure, points(3))


class Counter:
    count = 0

    def __call__(self, t, q):
        Counter.count = Counter.count + 1
        return q


def test_a_class_that_counts_in_its_own_methods_is_found_and_left_alone():
    with pytest.raises(Untraceable, match="attributes of the class Counter"):
        traced(Counter(), 3)
    assert Counter.count == 0


class Reader:
    factor = 2.0

    def __init__(self):
        self.gain, self.weights = 1.0, [1.0, 2.0]

    def __call__(self, t, q):
        return self.factor * self.gain * q[0] * self.weights[1] * np.ones(1)


def watched_helper(x, k=2.0):
    return STIFFNESS * x * k


def watched():
    """A function that reads something of every kind, and ways to change what it reads."""
    offset, table, levels, reader = 1.0, {"a": 1.0}, np.array([1.0, 2.0]), Reader()

    def function(t, q):
        return reader(t, q) + watched_helper(q[0]) * offset * table["a"] * levels[0] * symbolic_tools.UNIT + ROAD(t)

    def rebind():
        nonlocal offset
        offset = 3.0

    return function, {
        "global of a helper": lambda patch: patch.setitem(globals(), "STIFFNESS", 7.0),
        "default of a helper": lambda patch: patch.setattr(watched_helper, "__defaults__", (3.0,)),
        "helper": lambda patch: patch.setitem(globals(), "watched_helper", lambda x: x),
        "closure": lambda patch: rebind(),
        "dictionary": lambda patch: patch.setitem(table, "a", 5.0),
        "array": lambda patch: levels.__setitem__(0, 9.0),
        "attribute": lambda patch: patch.setattr(reader, "gain", 5.0),
        "list of an object": lambda patch: reader.weights.__setitem__(1, 5.0),
        "class attribute": lambda patch: patch.setattr(Reader, "factor", 5.0),
        "method": lambda patch: patch.setattr(Reader, "__call__", lambda self, t, q: q),
        "module": lambda patch: patch.setattr(symbolic_tools, "UNIT", 2.0),
    }


@pytest.mark.parametrize("change", watched()[1])
def test_a_trace_knows_when_something_that_it_read_has_changed(change, monkeypatch):
    function, changes = watched()
    result = traced(function, 2)
    monkeypatch.setitem(globals(), "SOMETHING_ELSE", 1.0)
    assert result.is_current
    changes[change](monkeypatch)
    assert not result.is_current
    assert_same(function, points(2))


# --- branches ---------------------------------------------------------------------------------------------------------


def test_both_sides_of_a_branch_are_traced():
    assert traced(branch, 2).paths == 4
    assert_same(branch, [*points(2, 20), [0.0, 0.0], [-0.5, 1.0]])


def guarded(t, q):
    if q[0] < 0.0:
        raise ValueError(f"q[0] = {q[0]:.3f} is below zero")
    return np.array([math.sqrt(q[0]), q[1]])


def test_where_the_function_raises_python_is_asked():
    call = machine(traced(guarded, 2), 2)
    assert call(0.0, [4.0, 1.0])[0] == 0
    assert call(0.0, [-1.0, 1.0])[0] == 1


@pytest.mark.parametrize(
    ("function", "good", "bad"),
    [
        (lambda t, q: [1.0 / (1.0 + math.exp(q[0]))], 1.0, 1000.0),  # OverflowError although the quotient is finite
        (lambda t, q: [math.exp(math.log(q[0]))], 1.0, 0.0),
        (lambda t, q: [math.sqrt(q[0])], 1.0, -1.0),
        (lambda t, q: [1.0 / math.sin(q[0])], 1.0, 0.0),
        (lambda t, q: [math.cosh(q[0]) if q[0] < 800.0 else 0.0], 900.0, 790.0),
    ],
)
def test_where_math_raises_python_is_asked(function, good, bad):
    call = machine(traced(function, 1), 1)
    assert call(0.0, [good])[0] == 0
    assert call(0.0, [bad])[0] == 1
    with pytest.raises(ArithmeticError if bad != -1.0 and bad != 0.0 else (ValueError, ArithmeticError)):
        function(0.0, [bad])


def test_switching_functions_are_found_with_their_lines():
    def friction(t, q):
        f = np.zeros(3)
        f[0] = -np.sign(q[0])
        f[1] = max(0.0, -q[1])
        if q[2] > 0.25:
            f[2] = abs(q[0]) + ROAD(t)
        return f

    result = traced(friction, 3)
    found = switches(result.graph, result.nodes)
    first = friction.__code__.co_firstlineno
    lines = {(switch.operation, switch.site.split()[-1], switch.points) for switch in found}
    assert lines == {
        ("sign", str(first + 2), (0.0,)),
        ("less", str(first + 3), (0.0,)),
        ("less", str(first + 4), (0.25,)),
        ("locate", str(first + 5), tuple(ROAD.times)),
    }


# --- limits, parameters, threads --------------------------------------------------------------------------------------


def test_a_function_with_too_many_operations_is_refused():
    graph = Graph(most_nodes=1000)
    with pytest.raises(Untraceable, match="needs more than 1000 operations"):
        trace(
            lambda q: [functools.reduce(lambda a, k: np.sin(a) * k, range(1000), q[0])],
            [vector_argument(graph, "q", 1)],
        )


def test_parameters_that_count_are_fixed_and_the_others_stay_symbols():
    def function(t, q, p):
        return [p[1] * x for x in q[: int(p[0])]]

    graph = Graph()
    t, q = scalar_argument(graph, "t"), vector_argument(graph, "q", 4)
    result = trace(function, (t, q, vector_argument(graph, "p", 2, [3.0, 7.0])))
    assert result.shape == (3,)
    assert graph.fixed == {graph.argument("p", 0): 3.0}


def test_parameters_of_any_kind_are_read():
    result = traced(lambda t, q, p: [p["k"] * q[0], p["body"].weight], 2, {"k": 2.0, "body": BODY})
    assert np.allclose(machine(result, 2)(0.0, [3.0, 0.0])[1], [6.0, BODY.weight])


def test_traces_in_many_threads_do_not_meet():
    found = {}

    def work(k):
        def function(t, q):
            return [k * math.sin(q[0]) + (q[1] if q[0] > 0 else k)]

        found[k] = [machine(traced(function, 2), 2)(0.0, [1.0, 2.0])[1][0] for _ in range(5)]

    threads = [threading.Thread(target=work, args=(k,)) for k in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {k: [k * math.sin(1.0) + 2.0] * 5 for k in range(6)}


def test_equal_functions_make_equal_graphs():
    first, second = traced(TRACED["vectors"], 3), traced(TRACED["vectors"], 3)
    assert (first.nodes, first.graph.operations, first.graph.operands) == (
        second.nodes,
        second.graph.operations,
        second.graph.operands,
    )
