"""NumPy's functions that need more than its own loops over objects: creation, choice, norms, small linear systems."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from daedal.symbolic.arrays import Array, apply_ufunc, array_of, is_symbolic, numbers, plain, wrapped
from daedal.symbolic.dense_solve import solve_dense
from daedal.symbolic.expression import Expression, apply, choose
from daedal.symbolic.piecewise import interpolate
from daedal.symbolic.untraceable import Untraceable

_LARGEST_SOLVED = 12  # unknowns of a linear system with symbols that np.linalg.solve is traced for


def apply_function(function, arguments, options) -> Any:
    """A function of NumPy on symbols: ours if there is one, otherwise NumPy's own on arrays of objects."""
    if function in FUNCTIONS:
        return FUNCTIONS[function](*arguments, **options)
    arguments, options = [_deep_plain(value) for value in arguments], {k: _deep_plain(v) for k, v in options.items()}
    implementation = getattr(function, "_implementation", function)
    if not any(is_symbolic(value) for value in (*arguments, *options.values())):
        arguments, options = [_deep_numbers(v) for v in arguments], {k: _deep_numbers(v) for k, v in options.items()}
    return wrapped(implementation(*arguments, **options))


def _deep_plain(value):
    """Sequences of arrays stay sequences; those of scalars become arrays."""
    return type(value)(_deep_plain(entry) for entry in value) if _has_arrays(value) else plain(value)


def _has_arrays(value) -> bool:
    return isinstance(value, (list, tuple)) and any(isinstance(x, np.ndarray) or _has_arrays(x) for x in value)


def _deep_numbers(value):
    if isinstance(value, (list, tuple)) and any(isinstance(entry, np.ndarray) for entry in value):
        return type(value)(numbers(entry) for entry in value)
    return numbers(value)


# --- creation ---------------------------------------------------------------------------------------------------------


def _real(dtype) -> bool:
    """Whether an array of this type would hold reals, for which symbols are kept."""
    if dtype is None or (isinstance(dtype, type) and issubclass(dtype, float)):
        return True
    kind = np.dtype(dtype)
    if kind.kind in "fc" and kind != np.float64:
        raise Untraceable(f"uses numbers of type {kind}", remedy="use ordinary floats")
    return kind.kind in "fO"


def _filled(value):
    def create(shape, dtype=None, order="C", **options):
        if not _real(dtype):
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
    if not kept or not _real(dtype):
        return np.full(shape, fill_value, dtype=dtype)
    made = np.empty(shape, dtype=object).view(Array)
    made[...] = plain(fill_value)
    return made


def _full_like(prototype, fill_value, dtype=None, order="K", subok=True, shape=None, **options):
    prototype = prototype if isinstance(prototype, np.ndarray) else np.asarray(plain(prototype))
    return _full(prototype.shape if shape is None else shape, fill_value, prototype.dtype if dtype is None else dtype)


def _made_by(function):
    """A creation function of numbers, whose result takes symbols."""

    def create(*arguments, dtype=None, **options):
        if any(is_symbolic(value) for value in arguments):
            raise Untraceable(f"np.{function.__name__} of a value")
        if dtype is not None and not _real(dtype):
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
    if not _real(dtype):
        if is_symbolic(values):
            raise Untraceable(f"makes numbers of type {np.dtype(dtype)} of a value")
        return np.array(values, dtype=dtype, ndmin=ndmin)
    if isinstance(values, np.ndarray) and values.dtype == object and ndmin <= values.ndim:
        return (plain(values).copy() if copy else plain(values)).view(Array)
    made = array_of(values) if is_symbolic(values) else np.array(values, dtype=None if dtype is None else float)
    if ndmin > made.ndim:
        made = made.reshape((1,) * (ndmin - made.ndim) + made.shape)
    return made if made.dtype == object else (made.astype(object).view(Array) if made.dtype.kind == "f" else made)


def _as_array(values, dtype=None, order=None, **options):
    return _array(values, dtype, copy=False)


def _copy(values, order="K", subok=False):
    return _array(values)


# --- choice and reduction ---------------------------------------------------------------------------------------------


def _where(condition, *choices):
    if len(choices) != 2:
        return np.where(numbers(plain(condition)))
    return wrapped(np.frompyfunc(choose, 3, 1)(plain(condition), *(plain(value) for value in choices)))


def _select(conditions, choices, default=0):
    result = default
    for condition, choice in zip(reversed(conditions), reversed(choices)):
        result = _where(condition, choice, result)
    return result


def _clip(values, low=None, high=None, out=None, *, min=None, max=None):
    low, high = (min if low is None else low), (max if high is None else high)
    result = values if low is None else apply_ufunc(np.maximum, "__call__", [values, low], {})
    return result if high is None else apply_ufunc(np.minimum, "__call__", [result, high], {})


def _reduced(ufunc):
    def reduce(values, axis=None, dtype=None, out=None, keepdims=False, **options):
        values = values if isinstance(values, np.ndarray) else _array(values)
        if axis is None and not keepdims:
            values, axis = values.ravel(), 0
        return apply_ufunc(ufunc, "reduce", [values], {"axis": axis, "keepdims": keepdims})

    return reduce


def _mean(values, axis=None, dtype=None, out=None, keepdims=False):
    values = values if isinstance(values, np.ndarray) else _array(values)
    count = values.size if axis is None else values.shape[axis]
    return _reduced(np.add)(values, axis, keepdims=keepdims) / count


def _norm(x, ord=None, axis=None, keepdims=False):
    """The norms that are sums, maxima and roots; of matrices Frobenius' norm."""
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
        return wrapped(np.cross._implementation(plain(a), plain(b), *arguments, **options))
    return array_of([a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]])


def _all_close(*arguments, **options):
    raise Untraceable("compares values by np.allclose", remedy="use np.where, or an event")


# --- small linear systems ---------------------------------------------------------------------------------------------


def _solve(a, b):
    a, b = _array(a), _array(b)
    if a.ndim != 2 or b.ndim > 2 or len(a) > _LARGEST_SOLVED:
        raise Untraceable(f"np.linalg.solve of a matrix of shape {a.shape} with symbols")
    return solve_dense(a, b)


def _inverse(a):
    a = _array(a)
    return _solve(a, _eye(len(a)))


def _determinant(a):
    """Laplace's expansion up to order 3, which divides by nothing."""
    a = _array(a)
    if a.ndim != 2 or a.shape[0] != a.shape[1] or len(a) > 3:
        raise Untraceable(f"np.linalg.det of a matrix of shape {a.shape} with symbols")
    if len(a) < 3:
        return a[0, 0] if len(a) == 1 else a[0, 0] * a[1, 1] - a[0, 1] * a[1, 0]
    return a[0] @ _cross(a[1], a[2])


def _numeric_or(function, ours):
    """NumPy's function where all are numbers, ours on symbols."""

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
    if is_symbolic(points) or type(x) is not Expression or sorter is not None:
        raise Untraceable("np.searchsorted among values")
    graph, table = x.graph, numbers(plain(_array(points)))
    if side == "left":  # points below x are those that are not beyond -x from the other side
        mirrored = graph.locate(graph.negative(graph.number(x.node)), -table[::-1])
        return Expression(graph, graph.subtract(graph.constant(len(table)), mirrored))
    return Expression(graph, graph.locate(graph.number(x.node), table))


def _sinc(x):
    y = math.pi * _where(apply_ufunc(np.equal, "__call__", [x, 0.0], {}), 1.0e-20, x)
    return apply_ufunc(np.sin, "__call__", [y], {}) / y


def _nan_to_num(x, *arguments, **options):
    if type(x) is not Expression and not isinstance(x, np.ndarray):
        x = _array(x)
    return _each(lambda value: choose(apply("isnan", value), 0.0, value) if type(value) is Expression else value, x)


def _each(function, x):
    """A function of scalars, of a scalar or of every entry."""
    return function(x) if type(x) is Expression else wrapped(np.frompyfunc(function, 1, 1)(plain(x)))


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
    np.clip: _clip,
    np.interp: _numeric_or(np.interp, _interp),
    np.searchsorted: _numeric_or(np.searchsorted, _searchsorted),
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
    np.cross: _numeric_or(np.cross, _cross),
    np.allclose: _numeric_or(np.allclose, _all_close),
    np.isclose: _numeric_or(np.isclose, _all_close),
    np.linalg.norm: _numeric_or(np.linalg.norm, _norm),
    np.linalg.solve: _numeric_or(np.linalg.solve, _solve),
    np.linalg.inv: _numeric_or(np.linalg.inv, _inverse),
    np.linalg.det: _numeric_or(np.linalg.det, _determinant),
}
"""From NumPy's function to what a trace calls in its place."""
