"""NumPy functions that object loops do not support: creation, choice, norms, small linear systems."""

from __future__ import annotations

import functools
import math
import operator
from typing import Any

import numpy as np

from daedal.symbolic.arrays import (
    Array,
    apply_ufunc,
    array_of,
    holds_objects,
    is_mask,
    is_symbolic,
    nodes_of,
    numbers,
    plain,
    real_type,
    wrapped,
)
from daedal.symbolic.expression import Expression, apply, choose, kind_of
from daedal.symbolic.kinds import BOOL, FLOAT, INT, NUMPY, UNKNOWN
from daedal.symbolic.piecewise import interpolate
from daedal.symbolic.untraceable import Untraceable, refuse_caught


def solve_dense(a: np.ndarray, b: np.ndarray):
    """Solve a x = b for a square matrix of expressions and numbers; b is a vector or a matrix."""
    graph = next(x.graph for x in (*a.flat, *b.flat) if type(x) is Expression)
    sites = dict(graph.sites)
    n = len(a)
    rows = [[*a[i], *np.atleast_1d(b[i])] for i in range(n)]
    for k in range(n):
        for i in range(k + 1, n):
            if not _is_zero(rows[i][k]):
                larger = abs(rows[i][k]) > abs(rows[k][k])
                rows[k], rows[i] = _exchanged(larger, rows[k], rows[i])
        for i in range(k + 1, n):
            if not _is_zero(rows[i][k]):
                multiplier = rows[i][k] / rows[k][k]
                rows[i] = [x - multiplier * y if j > k else 0.0 for j, (x, y) in enumerate(zip(rows[i], rows[k]))]
    x = np.empty((n, len(rows[0]) - n), dtype=object)
    for k in reversed(range(n)):
        for c in range(x.shape[1]):
            rest = sum((rows[k][j] * x[j, c] for j in range(k + 1, n)), start=0.0)
            x[k, c] = (rows[k][n + c] - rest) / rows[k][k]
    graph.sites = sites  # row exchanges are not switches: the solution does not jump
    return array_of(x).reshape(b.shape)


def _is_zero(x) -> bool:
    return type(x) is not Expression and x == 0.0


def _exchanged(exchange, first: list, second: list) -> tuple[list, list]:
    if isinstance(exchange, (bool, np.bool_)):
        return (second, first) if exchange else (first, second)
    pairs = list(zip(first, second))
    return [choose(exchange, y, x) for x, y in pairs], [choose(exchange, x, y) for x, y in pairs]


_LONGEST_SEARCHED = 64  # maximum number of symbolic points of np.searchsorted
_LARGEST_SOLVED = 12  # maximum number of unknowns for tracing np.linalg.solve


def apply_function(function, arguments, options) -> Any:
    """Apply a NumPy function to symbols: the version in this module, or else NumPy's on object arrays."""
    if function in FUNCTIONS:
        return FUNCTIONS[function](*arguments, **options)
    arguments, options = [_deep_plain(value) for value in arguments], {k: _deep_plain(v) for k, v in options.items()}
    implementation = getattr(function, "_implementation", function)
    if function in _COUNTING:
        arguments = [_as_counted(value) for value in arguments]
    if function not in _SHAPING and any(map(_has_truth, (*arguments, *options.values()))):
        raise Untraceable(f"calls np.{function.__name__} on truth values", remedy="multiply them by 1.0")
    if not any(is_symbolic(value) for value in (*arguments, *options.values())):
        arguments, options = [_deep_numbers(v) for v in arguments], {k: _deep_numbers(v) for k, v in options.items()}
    return wrapped(implementation(*arguments, **options))


_SHAPING = {
    *(np.concatenate, np.stack, np.hstack, np.vstack, np.append, np.roll, np.flip, np.reshape, np.ravel, np.transpose),
    *(np.squeeze, np.expand_dims, np.take, np.repeat, np.tile, np.atleast_1d, np.broadcast_to, np.delete, np.insert),
    *(np.dot, np.inner, np.vdot, np.einsum, np.outer, np.tensordot, np.compress, np.ndim, np.shape, np.size),
}
"""Functions that treat truth values like numbers."""


_COUNTING = {np.cumsum, np.cumprod, np.trace, np.average}
"""Functions that count True as 1 and False as 0, so that arrays of truth values are converted to numbers first."""


def _as_counted(value: Any) -> Any:
    return plain(value.view(Array).astype(float)) if isinstance(value, np.ndarray) and holds_objects(value) else value


def _has_truth(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return any(map(_has_truth, value))
    entries = value.flat if isinstance(value, np.ndarray) and holds_objects(value) else (value,)
    return any(type(entry) is Expression and entry.kind & 3 == BOOL for entry in entries)


def _deep_plain(value):
    """Convert sequences of arrays entrywise, sequences of scalars to arrays."""
    return type(value)(_deep_plain(entry) for entry in value) if _has_arrays(value) else plain(value)


def _has_arrays(value) -> bool:
    return isinstance(value, (list, tuple)) and any(isinstance(x, np.ndarray) or _has_arrays(x) for x in value)


def _deep_numbers(value):
    if isinstance(value, (list, tuple)) and any(isinstance(entry, np.ndarray) for entry in value):
        return type(value)(numbers(entry) for entry in value)
    return numbers(value)


# --- creation ---------------------------------------------------------------------------------------------------------


def _filled(value):
    def create(shape, dtype=None, order="C", **options):
        if not real_type(dtype):
            return np.full(shape, 0 if value is None else value, dtype=dtype)
        made = np.empty(shape, dtype=object)
        made.fill(value)
        return made.view(Array)

    return create


def _filled_like(value):
    def create(prototype, dtype=None, order="K", subok=True, shape=None, **options):
        prototype = prototype if isinstance(prototype, np.ndarray) else np.asarray(plain(prototype))
        return _filled(value)(prototype.shape if shape is None else shape, prototype.dtype if dtype is None else dtype)

    return create


def _full(shape, fill_value, dtype=None, order="C", **options):
    kept = dtype is not None or isinstance(fill_value, (float, np.floating, Expression, Array))
    if not kept or not real_type(dtype):
        return np.full(shape, fill_value, dtype=dtype)
    made = np.empty(shape, dtype=object).view(Array)
    made[...] = plain(fill_value)
    return made


def _full_like(prototype, fill_value, dtype=None, order="K", subok=True, shape=None, **options):
    prototype = prototype if isinstance(prototype, np.ndarray) else np.asarray(plain(prototype))
    return _full(prototype.shape if shape is None else shape, fill_value, prototype.dtype if dtype is None else dtype)


def _made_by(function):
    """A creation function for numbers whose result can store symbols."""

    def create(*arguments, dtype=None, **options):
        if any(is_symbolic(value) for value in arguments):
            raise Untraceable(f"np.{function.__name__} of a value")
        if dtype is not None and not real_type(dtype):
            options["dtype"] = dtype
        return wrapped(function(*arguments, **options))

    return create


def _linspace(start, stop, num=50, endpoint=True, **options):
    if not (is_symbolic(start) or is_symbolic(stop)) or options:
        return _made_by(np.linspace)(start, stop, num, endpoint, **options)
    step = (stop - start) / (num - 1 if endpoint else num)
    points = [start + k * step for k in range(num)]
    return array_of([*points[:-1], stop] if endpoint else points)


def _vectorize(function, *arguments, **options):
    if arguments or options:
        raise Untraceable("uses options of np.vectorize")

    def call(*values):
        return wrapped(np.frompyfunc(function, len(values), 1)(*(plain(_array(value)) for value in values)))

    return call


def _array(values, dtype=None, *, copy=True, order="K", subok=False, ndmin=0, like=None):
    if not real_type(dtype):
        if is_symbolic(values):
            raise Untraceable(f"makes numbers of type {np.dtype(dtype)} of a value")
        return np.array(values, dtype=dtype, ndmin=ndmin)
    if isinstance(values, np.ndarray) and holds_objects(values) and ndmin <= values.ndim:
        if dtype is not None and is_mask(values):
            return values.astype(float)
        return (plain(values).copy() if copy else plain(values)).view(Array)
    made = array_of(values) if is_symbolic(values) else np.array(values, dtype=None if dtype is None else float)
    if ndmin > made.ndim:
        made = made.reshape((1,) * (ndmin - made.ndim) + made.shape)
    return made if holds_objects(made) else (made.astype(object).view(Array) if made.dtype.kind == "f" else made)


def _as_array(values, dtype=None, order=None, *, copy=None, **options):
    return _array(values, dtype, copy=bool(copy))


def _copy(values, order="K", subok=False):
    return _array(values)


# --- choice and reduction ---------------------------------------------------------------------------------------------


def _where(condition, *choices):
    if len(choices) != 2:
        return np.where(numbers(plain(condition)))
    return wrapped(np.frompyfunc(choose, 3, 1)(plain(condition), *(plain(value) for value in choices)))


def _select(conditions, choices, default=0):
    result = default
    for condition, choice in zip(reversed(conditions), reversed(choices), strict=True):
        result = _where(condition, choice, result)
    return result


def _piecewise(x, conditions, functions, *arguments, **options):
    """np.piecewise: NumPy passes some entries to each function; here each function gets all entries and must treat them
    alike."""
    values, conditions = _array(x), conditions if isinstance(conditions, (list, tuple)) else [conditions]
    if any(kind_of(entry) == UNKNOWN or kind_of(entry) & 3 < FLOAT for entry in (values.flat if values.ndim else [x])):
        raise Untraceable("calls np.piecewise with whole numbers, which rounds its results", remedy="use floats")
    if values.ndim and not isinstance(conditions[0], (list, np.ndarray)):
        conditions = [np.asarray(conditions)]
    if len(functions) == len(conditions) + 1:
        conditions = [*conditions, ~functools.reduce(operator.or_, map(_array, conditions))]
    result = _filled_like(0.0)(values, float)
    for condition, function in zip(conditions, functions, strict=True):
        found = function(values, *arguments, **options) if callable(function) else function
        if callable(function) and values.ndim:
            _check_entries(function, values, found, arguments, options)
        result = _where(condition, found, result)
    return result


def _check_entries(function, values, found, arguments, options):
    graph = next(entry.graph for entry in values.flat if type(entry) is Expression)
    for k in range(values.size):
        alone = function(values.reshape(-1)[k : k + 1], *arguments, **options)
        if nodes_of(graph, alone)[0] != nodes_of(graph, np.broadcast_to(plain(found), values.shape))[k]:
            raise Untraceable("calls np.piecewise with a function of all entries together", remedy="use np.where")


def _clip(values, a_min=None, a_max=None, out=None, *, min=None, max=None):
    low, high = (min if a_min is None else a_min), (max if a_max is None else a_max)
    result = values if isinstance(values, np.ndarray) or type(values) is Expression else _array(values)
    result = result if low is None else apply_ufunc(np.maximum, "__call__", [result, low], {})
    result = result if high is None else apply_ufunc(np.minimum, "__call__", [result, high], {})
    if out is not None:
        out[...] = result
    return result if out is None else out


def _reduced(ufunc):
    def reduce(values, axis=None, dtype=None, out=None, keepdims=False, initial=np._NoValue, where=True):
        values = values if isinstance(values, np.ndarray) else _array(values)
        options = {"axis": axis, "dtype": dtype, "keepdims": keepdims, "initial": initial, "where": where}
        result = apply_ufunc(ufunc, "reduce", [values], options)
        if out is not None:
            out[...] = result
        return result if out is None else out

    return reduce


def _mean(values, axis=None, dtype=None, out=None, keepdims=False, *, where=True):
    values = values if isinstance(values, np.ndarray) else _array(values)
    counted = np.ones(values.shape).astype(object).view(Array)
    count = _reduced(np.add)(counted, axis, keepdims=keepdims, where=where)
    mean = _reduced(np.add)(values, axis, dtype, keepdims=keepdims, where=where) / count
    if out is not None:
        out[...] = mean
    return mean if out is None else out


def _count(values, axis=None, *, keepdims=False):
    values = values if isinstance(values, np.ndarray) else _array(values)
    return _reduced(np.add)(apply_ufunc(np.not_equal, "__call__", [values, 0], {}), axis, keepdims=keepdims)


def _array_equal(a, b, equal_nan=False):
    if equal_nan:
        raise Untraceable("uses equal_nan of np.array_equal")
    a, b = _array(a), _array(b)
    return a.shape == b.shape and _reduced(np.logical_and)(apply_ufunc(np.equal, "__call__", [a, b], {}))


def _norm(x, ord=None, axis=None, keepdims=False):
    """Norms that are sums, maxima and roots; for matrices the Frobenius norm."""
    x = x if isinstance(x, np.ndarray) else _array(x)

    def reduce(ufunc, values):
        return _reduced(ufunc)(values, axis, keepdims=keepdims)

    if axis is None and x.ndim == 2 and ord not in (None, "fro"):
        raise Untraceable(f"np.linalg.norm of a matrix with ord={ord!r}")
    size = apply_ufunc(np.absolute, "__call__", [x], {})
    if ord in (None, "fro", 2):
        return apply_ufunc(np.sqrt, "__call__", [reduce(np.add, x * x)], {})
    if ord == 1:
        return reduce(np.add, size)
    if ord in (np.inf, -np.inf):
        return reduce(np.maximum if ord > 0 else np.minimum, size)
    return apply_ufunc(np.power, "__call__", [reduce(np.add, size**ord), 1.0 / ord], {})


def _cross(a, b, *arguments, **options):
    a, b = (value if isinstance(value, np.ndarray) else _array(value) for value in (a, b))
    if a.shape != (3,) or b.shape != (3,):
        return wrapped(np.cross._implementation(plain(a), plain(b), *arguments, **options))  # type: ignore[attr-defined]
    return array_of([a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]])


def _all_close(*arguments, **options):
    raise Untraceable("compares values by np.allclose", remedy="use np.where, or an event")


# --- small linear systems ---------------------------------------------------------------------------------------------


def _solve(a, b):
    refuse_caught()
    a, b = _array(a), _array(b)
    if a.ndim != 2 or b.ndim > 2 or len(a) > _LARGEST_SOLVED:
        raise Untraceable(f"np.linalg.solve of a matrix of shape {a.shape} with symbols")
    return solve_dense(a, b)


def _inverse(a):
    a = _array(a)
    return _solve(a, _eye(len(a)))


def _determinant(a):
    """The determinant by Laplace expansion, without divisions, for matrices up to order 3."""
    a = _array(a)
    if a.ndim != 2 or a.shape[0] != a.shape[1] or len(a) > 3:
        raise Untraceable(f"np.linalg.det of a matrix of shape {a.shape} with symbols")
    if len(a) < 3:
        return a[0, 0] if len(a) == 1 else a[0, 0] * a[1, 1] - a[0, 1] * a[1, 0]
    return a[0] @ _cross(a[1], a[2])


def _numeric_or(function, ours):
    """NumPy's function if all arguments are numbers, otherwise the version for symbols."""

    def call(*arguments, **options):
        if any(is_symbolic(value) for value in arguments):
            return ours(*arguments, **options)
        return wrapped(function(*(numbers(plain(value)) for value in arguments), **options))

    return call


def _interp(x, xp, fp, left=None, right=None, period=None):
    if period is not None:
        raise Untraceable("np.interp with a period")
    x = x if isinstance(x, (Expression, np.ndarray)) else _array(x)
    return _each(lambda value: interpolate(value, xp, fp, left, right), x)


def _searchsorted(points, x, side="left", sorter=None):
    if sorter is not None:
        raise Untraceable("np.searchsorted with a sorter")
    if is_symbolic(points):
        return _search_values(_array(points), x, side)
    table = np.asarray(numbers(plain(_array(points))), dtype=float)

    def search(value):
        if type(value) is not Expression:
            return np.searchsorted(table, value, side)
        graph, x = value.graph, value.graph.number(value.node)
        if side == "left":  # points below x are those not greater than -x in the reversed order
            found = graph.locate(graph.negative(x), -table[::-1])
            count = graph.subtract(graph.constant(len(table)), found)
        else:
            found = count = graph.locate(x, table)
        graph.note_site(found)
        return Expression(graph, count, NUMPY + INT)

    return _each(search, x if isinstance(x, (Expression, np.ndarray)) else _array(x))


def _search_values(points, x, side):
    """Number of symbolic points below x, or not greater than x; the points are assumed to increase."""
    if len(points) > _LONGEST_SEARCHED:
        raise Untraceable(f"np.searchsorted among more than {_LONGEST_SEARCHED} values that are not known")
    compare = operator.lt if side == "left" else operator.le

    def search(value):
        return sum((compare(point, value) for point in points), start=np.int64(0))

    return _each(search, x if isinstance(x, (Expression, np.ndarray)) else _array(x))


def _digitize(x, bins, right=False):
    if is_symbolic(bins):
        raise Untraceable("np.digitize among values", remedy="use np.searchsorted")
    points = np.asarray(numbers(plain(_array(bins))), dtype=float)
    side = "left" if right else "right"
    if len(points) > 1 and points[0] > points[-1]:
        return len(points) - _searchsorted(points[::-1], x, side)
    return _searchsorted(points, x, side)


def _sinc(x):
    y = math.pi * _where(apply_ufunc(np.equal, "__call__", [x, 0.0], {}), 1.0e-20, x)
    return apply_ufunc(np.sin, "__call__", [y], {}) / y


def _nan_to_num(x, copy=True, nan=0.0, posinf=None, neginf=None):
    largest = float(np.finfo(float).max)
    ends = (np.inf, largest if posinf is None else posinf), (-np.inf, -largest if neginf is None else neginf)

    def finite(value):
        if type(value) is not Expression:
            return float(np.nan_to_num(value, nan=nan, posinf=posinf, neginf=neginf))
        if value.graph.regular[value.node]:
            return value
        result = value
        for end, replaced in ends:
            result = choose(value == end, replaced, result)
        return choose(apply("isnan", value), nan, result)

    result = _each(finite, x if isinstance(x, (Expression, np.ndarray)) else _array(x))
    if not copy and isinstance(x, np.ndarray):
        x[...] = result
        return x
    return result


def _each(function, x):
    """Apply a scalar function to a scalar or to every entry."""
    return wrapped(function(x) if type(x) is Expression else np.frompyfunc(function, 1, 1)(plain(x)))


_eye = _made_by(np.eye)
FUNCTIONS: dict[Any, Any] = {
    np.zeros: _filled(0.0),
    np.ones: _filled(1.0),
    np.empty: _filled(None),
    np.full: _full,
    np.zeros_like: _filled_like(0.0),
    np.ones_like: _filled_like(1.0),
    np.empty_like: _filled_like(None),
    np.full_like: _full_like,
    np.array: _array,
    np.asarray: _as_array,
    np.asanyarray: _as_array,
    np.ascontiguousarray: _as_array,
    np.asarray_chkfinite: _as_array,
    np.copy: _copy,
    np.eye: _eye,
    np.identity: _made_by(np.identity),
    np.linspace: _linspace,
    np.vectorize: _vectorize,
    np.arange: _made_by(np.arange),
    np.isscalar: lambda value: type(value) is Expression or np.isscalar(value),
    np.where: _where,
    np.select: _select,
    np.piecewise: _piecewise,
    np.clip: _clip,
    np.interp: _numeric_or(np.interp, _interp),
    np.searchsorted: _numeric_or(np.searchsorted, _searchsorted),
    np.digitize: _numeric_or(np.digitize, _digitize),
    np.sinc: _numeric_or(np.sinc, _sinc),
    np.nan_to_num: _numeric_or(np.nan_to_num, _nan_to_num),
    np.sum: _reduced(np.add),
    np.prod: _reduced(np.multiply),
    np.max: _reduced(np.maximum),
    np.min: _reduced(np.minimum),
    np.amax: _reduced(np.maximum),
    np.amin: _reduced(np.minimum),
    np.any: _reduced(np.logical_or),
    np.all: _reduced(np.logical_and),
    np.mean: _mean,
    np.count_nonzero: _numeric_or(np.count_nonzero, _count),
    np.array_equal: _numeric_or(np.array_equal, _array_equal),
    np.cross: _numeric_or(np.cross, _cross),
    np.allclose: _numeric_or(np.allclose, _all_close),
    np.isclose: _numeric_or(np.isclose, _all_close),
    np.linalg.norm: _numeric_or(np.linalg.norm, _norm),
    np.linalg.solve: _numeric_or(np.linalg.solve, _solve),
    np.linalg.inv: _numeric_or(np.linalg.inv, _inverse),
    np.linalg.det: _numeric_or(np.linalg.det, _determinant),
}
"""Maps a NumPy function to its replacement in a trace."""
