"""Small functions of every style at many points: a trace has Python's values, or says why there is none."""

import enum
import functools
import math
import operator
import random
import statistics
import types
from contextlib import suppress

import numpy as np
import pytest
import scipy.interpolate
import scipy.signal
import scipy.special

from daedal.symbolic import Untraceable
from symbolic_tools import machine, traced

RNG = np.random.default_rng(3)
POINTS = [*RNG.uniform(-3.0, 3.0, (200, 4)), *np.round(RNG.uniform(-3.0, 3.0, (60, 4)) * 2.0) / 2.0]
TABLE = np.array([0.5, -1.0, 2.0, 4.0, 8.0, 3.0])
GRID = np.array([-2.0, -1.0, 0.5, 1.0, 2.5])
MASK = np.array([True, False, True])
KNOTS, HEIGHTS = np.array([-2.0, -1.0, 0.0, 0.5, 2.0]), np.array([1.0, -1.0, 0.5, 2.0, 1.0])
SPLINES = {
    "cubic": scipy.interpolate.CubicSpline(KNOTS, HEIGHTS),
    "clamped": scipy.interpolate.CubicSpline(KNOTS, HEIGHTS, bc_type="clamped"),
    "periodic": scipy.interpolate.CubicSpline(KNOTS, HEIGHTS, bc_type="periodic"),
    "pchip": scipy.interpolate.PchipInterpolator(KNOTS, HEIGHTS),
    "akima": scipy.interpolate.Akima1DInterpolator(KNOTS, HEIGHTS, extrapolate=True),
    "pieces": scipy.interpolate.PPoly(np.array([[1.0, 2.0], [0.5, -1.0]]), np.array([-1.0, 0.0, 1.0])),
    "vector": scipy.interpolate.CubicSpline(KNOTS, np.stack([HEIGHTS, HEIGHTS**2], axis=1)),
    "basis": scipy.interpolate.make_interp_spline(KNOTS, HEIGHTS),
    "basis vector": scipy.interpolate.make_interp_spline(KNOTS, np.stack([HEIGHTS, HEIGHTS**2], axis=1), k=2),
    "fitted": scipy.interpolate.UnivariateSpline(KNOTS, HEIGHTS, s=0.1),
}
LINES = {
    kind: scipy.interpolate.interp1d(KNOTS, HEIGHTS, kind=kind, fill_value=fill, bounds_error=False)
    for kind, fill in {
        "linear": "extrapolate",
        "nearest": (1.0, 2.0),
        "nearest-up": "extrapolate",
        "previous": (0.0, -1.0),
        "next": 3.0,
        "zero": (5.0, 6.0),
        "slinear": (5.0, 6.0),
        "quadratic": "extrapolate",
        "cubic": "extrapolate",
    }.items()
}
BOUNDED = scipy.interpolate.interp1d(KNOTS, HEIGHTS)
normal, uniform = RNG.normal, random.Random(1).random


class Way(enum.Enum):
    UP = 1.0
    DOWN = -1.0


@functools.singledispatch
def of_kind(x):
    return 1.0


@of_kind.register
def _(x: np.floating):
    return 2.0


@of_kind.register
def _(x: int):
    return 3.0


def caught(y):
    try:
        return math.acos(y[0])
    except ValueError:
        return 7.0


def caught_in_a_helper(t, y):
    def helper(x):
        return math.log(x)

    try:
        return [helper(y[0])]
    except (ValueError, OverflowError):
        return [-1.0]


def caught_division(t, y):
    try:
        return [1.0 / math.floor(t)]
    except ZeroDivisionError:
        return [5.0]


def suppressed(t, y):
    x = 3.0
    with suppress(ValueError):
        x = math.sqrt(y[0])
    return [x]


def with_errstate(t, y):
    with np.errstate(all="ignore"):
        x = np.sqrt(y[0])
    return [0.0 if np.isnan(x) else x]


def stored_conditions(t, y):
    r = np.zeros(2)
    r[0] = y[0] > 1.0
    r[1] = y[1] > 1.0
    return [r[0] + r[1], r @ r, r.sum()]


def filled_mask(t, y):
    m = np.zeros(3, dtype=bool)
    m[0] = y[0] > 0.0
    m[1:] = y[1:] > 1.0
    return np.where(m, y, 0.0)


def by_size(t, y):
    out = np.zeros(3, dtype=y.dtype)
    out[:] = y
    return out * (2.0 if y.dtype.kind == "f" else 3.0)


def counted(t, y):
    n = 0
    for x in y:
        if x > 0.0:
            n += 1
    return [n, n % 2, n & 1]


def clipped(t, y):
    r = y.copy()
    np.clip(r, -1.0, 1.0, out=r)
    return r


def summed_into(t, y):
    r = np.zeros(1)
    np.sum(y, out=r[0:1].reshape(()))
    return r


def matched(t, y):
    match (t > 0, y[0] > 0):
        case (True, True):
            return [1.0]
        case _:
            return [0.0]


def matched_times(t, y):
    match (t > 0.5, t < 1.5, y[0] > 0):
        case (True, True, _):
            return [1.0]
        case (False, True, False):
            return [3.0]
        case _:
            return [math.isfinite(t) is True and (t > -1.0) is not False]


FLAGS = types.SimpleNamespace(on=True)


def flagged(t, y):
    return [y[0] if FLAGS.on is True else 0.0, 1.0 if t > 0 else 0.0]


SAME = {
    "a setting that is True": flagged,
    "is True": lambda t, y: [1.0 if (t > 0) is True else 0.0, 1.0 if (y[0] > 0) is True else 0.0],
    "case True": matched,
    "case True of times": matched_times,
    "a count as an index": lambda t, y: [[0.0, 5.0, 2.0][sum(t > x for x in (0.3, 1.2))]],
    "a remainder as an index": lambda t, y: [[1.0, -2.0, 4.0][math.floor(3.0 * t) % 3]],
    "a chosen index": lambda t, y: [(1.0, -2.0, 4.0)[2 if t > 1.0 else -1 if t < 0.0 else 1]],
    "rounded values compared": lambda t, y: [
        round(t) == 1,
        t // 0.3 == 3,
        t // 0.1 >= 10,
        divmod(t, 0.7)[0] < 2,
        np.rint(2.0 * y[0]) <= 1,
    ],
    # truth values
    "bits of a whole number": lambda t, y: [math.floor(t) & 1, math.floor(t) & 7],
    "sum of truth values": lambda t, y: [(y[0] > 2.2) + (y[0] > 2.5), (y[0] > 0) + (y[1] > 0) + (y[2] > 0)],
    "sum of Python's truth values": lambda t, y: [(t > 1.0) + (t > 2.0), (t > 0) + (y[0] > 0)],
    "sums of truth values": lambda t, y: [sum([y[0] > 0, y[1] > 0]), np.sum(y > 0), (y > 0).sum(), (y > 0).mean()],
    "counts": lambda t, y: [np.count_nonzero(y > 0.5), np.sum([y[0] > 0, y[1] > 1]), len([x for x in y if x > 0])],
    "truth values added by arrays": lambda t, y: ((y > 0) + (y > 1)) * 1.0,
    "added by np.add": lambda t, y: [np.add(y[0] > 0, y[1] > 0), np.add(y > 0, y > 1)[2]],
    "truth values multiplied": lambda t, y: [(y[0] > 0) * (y[1] > 0), ((y > 0) * (y < 1))[0], ((y > 0) * 2.0)[1]],
    "product with a truth value": lambda t, y: [(y[0] > 0) * (y[1] > 0) + (y[2] > 0), (t > 0) * (t < 1) + (t > -1)],
    "matrix of truth values": lambda t, y: (
        (np.array([[y[0] > 0, y[1] > 0], [y[1] > 1, y[2] > 0]]) @ np.array([y[0] > -1, y[1] > -1])) * 1.0
    ),
    "product of truth values": lambda t, y: [
        (y > 0) @ (y > 1),
        np.dot(y > 0, y > -1),
        (y > 0) @ y,
        (y > 0) @ TABLE[:3],
    ],
    "inverted": lambda t, y: [1.0 * ~(y[0] > 0), np.where(~(y > 0), y, 0)[1], float(not (t > 0)), (not y[1] > 0) + 1],
    "logic": lambda t, y: [
        (y[0] > 0) & (t > 0),
        (y[0] > 0) | (y[1] > 0),
        (y[0] > 0) ^ (y[1] > 0),
        np.logical_xor(y[0], y[1] > 0),
        np.logical_and(y[0] > 0, 3.0),
    ],
    "truth values as exponents": lambda t, y: [2.0 ** (y[0] > 0), (y[0] > 0) / 2, (y[0] > 0) - 1.0, -1.0 * (y[1] > 0)],
    "any and all": lambda t, y: [any(y > 0), all(y > 0), np.any(y > 1), (y > 0).all(), (y > 2).any() + (y > 1).any()],
    "stored truth values": stored_conditions,
    "a mask that is filled": filled_mask,
    "truth values chosen": lambda t, y: [
        np.where(y[0] > 0, y[1] > 0, y[2] > 0) + np.True_,
        np.where(MASK, y > 0, 1)[0],
    ],
    "mixed arrays": lambda t, y: [np.array([y[0] > 0, 1.0])[0] + np.array([y[1] > 0, 1.0])[0]],
    "joined arrays": lambda t, y: np.concatenate([y > 0, y[:1]]) + np.concatenate([y > 1, y[1:2]]),
    "joined masks": lambda t, y: (np.concatenate([y > 0, y > 1]) + np.concatenate([y > 1, y > 2])) * 1.0,
    "equal to": lambda t, y: [(y[0] > 0) == (y[1] > 0), (y[0] > 0) == True, (y[0] > 0) != 0, y[0] == 0.5],  # noqa: E712
    "a truth value in an index": lambda t, y: [TABLE[int(t > 0)], (y[0], y[1])[t > 0]],
    "counted by branches": counted,
    # whole numbers
    "parity": lambda t, y: [math.floor(t) % 2, math.floor(t) // 2, -math.floor(t) % 3, math.ceil(y[0]) & 3],
    "sign of the remainder": lambda t, y: [y[0] % 1.0, y[0] % -0.7, -y[1] // 0.3, divmod(t, 0.4)[1], math.fmod(t, 0.4)],
    "rounding": lambda t, y: [round(t), round(y[0]), math.trunc(t), np.rint(y[1]), np.fix(y[2]), math.ceil(t)],
    "remainder of arrays": lambda t, y: np.concatenate([y % 0.3, np.mod(y, -0.4), np.fmod(y, 0.4), y // 0.7]),
    "signs of zero": lambda t, y: [math.copysign(1, x) for x in (t // 2, t % 2, y[0] // 2, y[0] % -2, y[1] % y[2])],
    "remainder by a value": lambda t, y: [y[0] % (abs(y[1]) + 0.1), y[0] // (abs(y[1]) + 0.1), t % (y[2] ** 2 + 0.2)],
    # look-ups
    "searchsorted": lambda t, y: [TABLE[np.searchsorted(GRID, y[0])], TABLE[np.searchsorted(GRID, t, side="right")]],
    "searchsorted among values": lambda t, y: [
        TABLE[np.searchsorted(np.array([-1.0, y[1] ** 2, 10.0]), y[0])],
        np.searchsorted([0.0, abs(y[2])], t, side="right"),
    ],
    "searchsorted of arrays": lambda t, y: TABLE[np.searchsorted(GRID, y)] * y,
    "method searchsorted": lambda t, y: [TABLE[GRID.searchsorted(t)], GRID.searchsorted(y[1], side="right") & 1],
    "digitize": lambda t, y: [TABLE[np.digitize(y[0], GRID)], np.digitize(t, GRID, right=True), *np.digitize(y, GRID)],
    "digitize decreasing": lambda t, y: [np.digitize(y[0], GRID[::-1]), np.digitize(y[0], GRID[::-1], right=True)],
    "heaviside": lambda t, y: [np.heaviside(y[0], 0.5), *np.heaviside(y, y[0])],
    "select": lambda t, y: np.concatenate(
        [np.select([y > 1, y > 0], [y, 2 * y], 3.0), np.select([y > 1, y[0] > 1], [2.0, y[1]])]
    ),
    "piecewise": lambda t, y: np.concatenate(
        [np.piecewise(y, [y < 0, y >= 1], [lambda x: x**2, 3.0]), np.piecewise(y, [y < 0], [-1.0, lambda x: 2 * x])]
    ),
    "piecewise of a number": lambda t, y: [
        float(np.piecewise(y[0], [y[0] < 0, y[0] >= 0], [lambda x: -x, lambda x: x**2])),
        float(np.piecewise(t, [t < 0, t >= 1], [lambda x, a: a * x, 3.0], 2.0)),
    ],
    "isnan": with_errstate,
    "nan_to_num": lambda t, y: [
        np.nan_to_num(np.sqrt(y[0])),
        np.nan_to_num(np.log(y[0]), nan=3.0, neginf=-1.0),
        np.nan_to_num(y[1] / 0.0, posinf=5.0, neginf=-4.0),
    ],
    "interp": lambda t, y: [np.interp(y[0], GRID, TABLE[:5]), *np.interp(y, GRID, TABLE[:5], left=0.0, right=-1.0)],
    "square": lambda t, y: [scipy.signal.square(t), scipy.signal.square(3 * y[0] + 0.1, 0.3), *scipy.signal.square(y)],
    "sawtooth": lambda t, y: [
        scipy.signal.sawtooth(t),
        scipy.signal.sawtooth(3 * y[0] + 0.1, 0.3),
        *scipy.signal.sawtooth(y, 0.0),
    ],
    # keywords
    "sum where": lambda t, y: [
        np.sum(y, where=MASK),
        np.sum(y, initial=2.0),
        y.sum(initial=1.0),
        np.sum(y, where=y > 0),
    ],
    "extremes where": lambda t, y: [
        np.max(y, initial=0.5),
        y.max(initial=2.0),
        np.min(y, where=MASK, initial=9.0),
        np.prod(y, initial=3.0),
        np.max(y, where=y > 0, initial=-1.0),
    ],
    "means": lambda t, y: [np.mean(y, where=MASK), y.mean(), np.mean(y, axis=0), np.mean(np.outer(y, y), axis=(0, 1))],
    "any where": lambda t, y: [np.any(y > 0, where=MASK), np.all(y > 0, where=MASK)],
    "starts": lambda t, y: [math.prod(y, start=2.0), sum(y, 3.0), sum(y, start=1.0)],
    "clip": lambda t, y: [*np.clip(y, -1, 1), *y.clip(0.0), *np.clip(y, None, 0.5), *np.clip(y, a_min=0, a_max=1)],
    "clip into": clipped,
    "sum into": summed_into,
    "extremes": lambda t, y: [max(y, key=abs), min(y, key=lambda x: x * x), max(*y, 1.0), max(y, default=0)],
    "where of a ufunc": lambda t, y: [
        *np.add(y, 1.0, where=MASK, out=np.zeros(3)),
        *np.sqrt(y, where=y > 0, out=np.ones(3)),
    ],
    "axes": lambda t, y: [*np.sum(np.outer(y, y), axis=0), *np.max(np.outer(y, y), axis=1), np.sum(np.outer(y, y))],
    "several axes": lambda t, y: [np.sum(np.outer(y, y), axis=(0, 1)), np.max(np.outer(y, y), axis=(0, 1))],
    # kinds
    "isinstance": lambda t, y: [
        float(isinstance(y[0], np.floating)),
        float(isinstance(t, np.floating)),
        float(isinstance(t, float)),
        float(isinstance(math.floor(t), int)),
        float(isinstance(y[0] > 0, np.bool_)),
        float(isinstance(t > 0, bool)),
        float(isinstance(y[0], (int, float))),
        float(isinstance(math.sin(y[0]), np.floating)),
    ],
    "type": lambda t, y: [
        float(type(y[0]) is np.float64),
        float(type(t) is float),
        float(type(y) is np.ndarray),
        float(type(t + y[0]) is np.float64),
        float(type(t) in (int, float)),
        float(issubclass(type(y[0]), float)),
    ],
    "singledispatch": lambda t, y: [of_kind(y[0]), of_kind(t), of_kind(math.floor(t)), of_kind(math.cos(y[0]))],
    "dtype": by_size,
    "issubdtype": lambda t, y: y * (2.0 if np.issubdtype(y.dtype, np.floating) else 3.0),
    "dtype is float": lambda t, y: y * (2.0 if y.dtype == float else 3.0) + (y.dtype == np.float64),
    "dtype of a mask": lambda t, y: [1.0 if (y > 0).dtype == bool else 2.0, float((y * 2).dtype.kind == "f")],
    "dtype of a number": lambda t, y: [float(y[0].dtype == float), float(np.asarray(y).dtype.itemsize)],
    "results of dtype": lambda t, y: np.array(y, dtype=y.dtype) + np.zeros(3, y.dtype) + np.ones_like(y, dtype=y.dtype),
    "iscomplexobj": lambda t, y: [y[0] if np.isrealobj(y) and not np.iscomplexobj(y) else 0.0, np.ndim(y), np.size(t)],
    "enum": lambda t, y: [y[0] * (Way.UP if y[1] > 0 else Way.DOWN).value],
    "hasattr": lambda t, y: [float(hasattr(y[0], "dtype")), float(hasattr(t, "dtype")), float(hasattr(y, "shape"))],
    "copies": lambda t, y: [np.array(y, copy=True)[0], np.asarray(y, copy=True)[1], np.copy(y)[2], y.astype(float)[0]],
    # special functions
    "expit": lambda t, y: [*scipy.special.expit(10 * y), scipy.special.expit(t), scipy.special.expit(-300.0 * y[0])],
    "special": lambda t, y: [
        scipy.special.erf(y[0]),
        scipy.special.erfc(y[1]),
        scipy.special.log1p(abs(y[0])),
        scipy.special.expm1(y[0]),
        scipy.special.xlogy(abs(y[0]), abs(y[1])),
        scipy.special.xlogy(0.0, y[1] * 0.0),
        scipy.special.xlog1py(y[0], abs(y[1])),
        scipy.special.logit(abs(np.sin(y[0])) * 0.9 + 0.01),
        scipy.special.log_expit(30 * y[0]),
        scipy.special.entr(abs(y[0])),
        scipy.special.cbrt(y[0]),
        scipy.special.exp2(y[0]),
        scipy.special.ndtr(y[0]),
        scipy.special.exprel(y[0]),
        scipy.special.rel_entr(abs(y[0]), abs(y[1]) + 0.1),
        scipy.special.sinc(y[0]) if hasattr(scipy.special, "sinc") else 0.0,
    ],
    "sums of exponentials": lambda t, y: [scipy.special.logsumexp(y), *scipy.special.softmax(y)],
    # interpolants
    "cubic spline": lambda t, y: [SPLINES["cubic"](y[0]), SPLINES["cubic"](t, 1), *SPLINES["cubic"](y)],
    "other splines": lambda t, y: [
        SPLINES["pchip"](t),
        SPLINES["akima"](y[0]),
        SPLINES["clamped"](y[1], extrapolate=False) if -2 < y[1] < 2 else 0.0,
        SPLINES["periodic"](3.0 * t),
        SPLINES["pieces"](y[2]),
        SPLINES["cubic"].derivative()(y[0]),
        SPLINES["cubic"].antiderivative()(y[0]),
    ],
    "vectors of splines": lambda t, y: np.concatenate([SPLINES["vector"](t), SPLINES["vector"](y)[1]]),
    "basis splines": lambda t, y: [SPLINES["basis"](y[0]), SPLINES["basis"](t, 2), SPLINES["fitted"](y[1])],
    "vectors of basis splines": lambda t, y: SPLINES["basis vector"](t),
    "interp1d": lambda t, y: [LINES[kind](y[0]) for kind in LINES] + [LINES[kind](t) for kind in LINES],
    "interp1d at its points": lambda t, y: [LINES[kind](np.rint(y[0])) for kind in LINES],
    "interp1d with bounds": lambda t, y: [BOUNDED(y[0])],
    # styles
    "star": lambda t, y: [*map(math.sin, y), *(x * 2 for x in y)],
    "zip": lambda t, y: [a * b for a, b in zip(y, y[::-1])],
    "operator": lambda t, y: [operator.mul(y[0], y[1]), operator.itemgetter(1)(y), operator.truth(y[0] > 0)],
    "statistics": lambda t, y: [statistics.fmean(list(y)) if False else y[0]],
    "match": lambda t, y: [{True: y[0], False: y[1]}[bool(t > 0)]],
    "comparison of arrays": lambda t, y: [np.array_equal(y > 0, MASK), np.all((y > 0) == MASK)],
    "cumulative": lambda t, y: [*np.cumsum(y > 0), *np.cumsum(y), *np.cumprod(y)],
    "differences": lambda t, y: [*np.diff(y), np.trapezoid(y), *np.diff(y, 2)],
    "angles": lambda t, y: [*np.degrees(y), math.remainder(1.5, 1.0)],
    "polynomials": lambda t, y: [np.polyval(TABLE, y[0]), np.polynomial.polynomial.polyval(y[1], TABLE)],
    "sorting": lambda t, y: [*np.sort(y), *sorted(y), np.median(y)],
    "flips": lambda t, y: [*np.flip(y), *y[::-1], *np.roll(y, 1), *np.repeat(y, 2), *np.tile(y, 2)],
    "kron": lambda t, y: [*np.kron(y[:2], y[1:]), *np.outer(y, y).ravel(), *np.inner(np.eye(3), y), np.vdot(y, y)],
    "norms": lambda t, y: [np.linalg.norm(y), np.linalg.norm(y, 1), np.linalg.norm(y, np.inf), np.hypot(*y[:2])],
    "nested branches": lambda t, y: [y[0] if y[0] > 0 else y[1] if y[1] > 0 else y[2]],
    "chained": lambda t, y: [1.0 if -1 < y[0] < 1 else 0.0, 1.0 if y[0] > 0 or (y[1] > 0 and t < 0) else 0.0],
    "short circuit": lambda t, y: [(y[0] > 0 and y[1]) or y[2], y[0] and y[1], y[0] or 3.0, not y[0]],
    "ternary with numbers": lambda t, y: [y[0] * (t > 0) + y[1] * (t <= 0), (t > 0) and 2.0, (y[0] > 0) or 5.0],
    "min of truth": lambda t, y: [
        max(y[0] > 0, y[1] > 0) + 1,
        min(t > 0, t > 1),
        np.maximum(y > 0, y > 1)[0] + np.True_,
    ],
    "abs of truth": lambda t, y: [abs(t > 0) + abs(t > 1), np.abs(y[0] > 0) + (y[0] > 1), +(t > 0) + (t > 1)],
}


@pytest.mark.parametrize("name", SAME)
@pytest.mark.filterwarnings("ignore:numpy.fix is deprecated")
def test_a_trace_has_the_values_of_python(name):
    function = SAME[name]
    call = machine(traced(function, 3), 3)
    for t, *y in np.array(POINTS).tolist():
        with np.errstate(all="ignore"):
            try:
                expected = np.asarray(function(t, np.array(y)), dtype=float)
            except (ValueError, ArithmeticError):
                assert call(t, y)[0] != 0  # Python is asked
                continue
        status, found = call(t, y)
        if status == 0 or np.isfinite(expected).all():
            assert status == 0
            np.testing.assert_allclose(found, expected, rtol=1e-13, atol=1e-13)


REFUSED = {
    "formatted key": (lambda t, y: [{"0": 1.0, "1": 2.0}.get(f"{math.floor(t)}", 3.0)], "converts .* to text"),
    "parsed text": (lambda t, y: [float(f"{y[0]:.1f}")], "converts .* to text|not known"),
    "text of a value": (lambda t, y: [float(len(str(y[0])))], "converts .* to text"),
    "text of an array": (lambda t, y: [float(len(str(y)))], "converts .* to text"),
    "caught": (lambda t, y: [caught(y)], "catches exceptions"),
    "caught in a helper": (caught_in_a_helper, "catches exceptions"),
    "caught division": (caught_division, "catches exceptions"),
    "suppressed": (suppressed, "suppress"),
    "float32": (lambda t, y: y.astype(np.float32) * 1.1, "float32"),
    "float32 array": (lambda t, y: np.array(y, dtype=np.float32) * 1.1, "float32"),
    "a number of float32": (lambda t, y: [np.float32(y[0]) * 1.1], "float32|needs the number"),
    "difference of truth values": (lambda t, y: [(y[0] > 0) - (y[1] > 0)], "subtract"),
    "minus a truth value": (lambda t, y: [-(y[0] > 0)], "negative"),
    "bits": (lambda t, y: [math.floor(t) | 1], "bits"),
    "more bits": (lambda t, y: [math.floor(t) & 5], "bits"),
    "shifted bits": (lambda t, y: [math.floor(t) >> 1], "bits|TypeError"),
    "random numbers of a method": (lambda t, y: [normal()], "random"),
    "random numbers of random": (lambda t, y: [uniform()], "random"),
    "gamma": (lambda t, y: [scipy.special.gamma(y[0])], "gamma"),
    "hash": (lambda t, y: [{0.0: 1.0}.get(t, 2.0)], "key"),
    "allclose": (lambda t, y: [float(np.allclose(y, 0.0))], "allclose"),
    "percentile": (lambda t, y: [np.percentile(y, 30)], "not known|needs the number|integer"),
    "histogram": (lambda t, y: np.histogram(y, bins=2)[0] * 1.0, "linspace"),
    "difference of masks": (lambda t, y: np.diff(y > 0) * 1.0, "truth values"),
    "options of a sum": (lambda t, y: [np.sum(y, dtype=np.float32)], "float32"),
    "an index without bounds": (lambda t, y: [[1.0, 2.0, 3.0][math.floor(t)]], "as an index"),
    "piecewise of whole numbers": (
        lambda t, y: [float(np.piecewise(math.floor(t), [t > 1, t <= 1], [0.5, 1.5]))],
        "whole numbers",
    ),
    "raising errstate": (lambda t, y: [raising(y[0])], "errstate|catches"),
}


def raising(x):
    with np.errstate(all="raise"):
        try:
            return np.sqrt(x)
        except FloatingPointError:
            return 4.0


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_traced_has_a_reason(name):
    function, reason = REFUSED[name]
    with pytest.raises(Untraceable, match=reason):
        traced(function, 3)


@pytest.mark.parametrize("compare", [operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne])
def test_rounded_values_are_compared_as_in_python(compare):
    def function(t, y):
        rounded = [math.floor(y[0]), math.ceil(y[0]), math.trunc(y[0]), int(y[0])]
        return [float(compare(x, k)) for x in rounded for k in (-1, 0, 1, 0.5, -0.5)] + [float(compare(1, rounded[0]))]

    call = machine(traced(function, 1), 1)
    for x in [*np.linspace(-2.5, 2.5, 41), math.nan, math.inf]:
        if math.isfinite(x):
            np.testing.assert_array_equal(call(0.0, [x])[1], function(0.0, [x]))


@pytest.mark.parametrize("name", ["cubic", "clamped", "pchip", "akima", "pieces"])
def test_piecewise_polynomials_have_the_bits_of_scipy(name):
    spline = SPLINES[name]
    call = machine(traced(lambda t, y: [spline(y[0])], 1), 1)
    for x in [*KNOTS, *RNG.uniform(-3.0, 3.0, 200)]:
        assert call(0.0, [x])[1][0] == spline(x)
