"""Functions given by tables, and SciPy functions and interpolants, on symbols: np.interp, waveforms, splines, sums."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import reduce
from typing import Any

import numpy as np

from daedal.symbolic.arrays import apply_ufunc, array_of, is_symbolic, numbers, plain, wrapped
from daedal.symbolic.expression import Expression, apply, choose
from daedal.symbolic.untraceable import Untraceable, refuse_caught

_LONGEST_CHAIN = 64  # maximum number of points of a table with symbolic values


def interpolate(x, points, values, left=None, right=None):
    """``np.interp`` of a scalar: linear between known points, constant outside."""
    if is_symbolic(points):
        raise Untraceable("np.interp between points that depend on values", remedy="use known points")
    xp = np.asarray(numbers(plain(points)), dtype=float)
    left, right = values[0] if left is None else left, values[-1] if right is None else right
    if is_symbolic(values):
        inside = _chain(x, xp, values)
    else:
        fp = np.asarray(numbers(plain(values)), dtype=float)
        slopes = np.concatenate([[0.0], np.diff(fp) / np.diff(xp), [0.0]])
        begins, heights = np.concatenate([xp[:1], xp]), np.concatenate([fp[:1], fp])
        inside = polynomial_pieces(x, xp, begins, np.stack([heights, slopes], axis=1))
    return choose(x < xp[0], left, choose(x > xp[-1], right, inside))


def _chain(x, points: np.ndarray, values):
    """Linear pieces with symbolic values, with one choice per piece."""
    if len(points) > _LONGEST_CHAIN:
        raise Untraceable(f"np.interp between more than {_LONGEST_CHAIN} values that are not known")
    result = values[-1] + 0.0 * x  # NaN if x is NaN
    for k in range(len(points) - 2, -1, -1):
        slope = (values[k + 1] - values[k]) / (points[k + 1] - points[k])
        result = choose(x < points[k + 1], slope * (x - points[k]) + values[k], result)
    return result


def polynomial_pieces(x: Expression, points, begins, coefficients) -> Any:
    """sum_k c[i, k] (x - begins[i])^k on piece i (one piece more than points); c may hold vectors."""
    graph = x.graph
    place = graph.locate(graph.number(x.node), points) if len(points) else graph.zero
    graph.note_site(place)
    s = x - Expression(graph, graph.pick(place, begins))

    def summed(table) -> Expression:  # adds in the order of SciPy's PPoly, for identical bits
        value, power = Expression(graph, graph.pick(place, table[:, 0])), s
        for k in range(1, table.shape[1]):
            value = value + Expression(graph, graph.pick(place, table[:, k])) * power
            power = power * s
        return value

    table = np.asarray(coefficients, dtype=float)
    if table.ndim == 2:
        return summed(table)
    return array_of([summed(table[:, :, j]) for j in range(table.shape[2])])


def _each(function: Callable[..., Any], x: Any) -> Any:
    """Apply a scalar function to a scalar or to every entry; it may return an array."""
    if not isinstance(x, (list, tuple, np.ndarray)):
        return function(x)
    entries = plain(array_of(x) if isinstance(x, (list, tuple)) else x)
    found = [function(entry) for entry in entries.reshape(-1)]
    return array_of(found).reshape(entries.shape + np.shape(plain(found[0])))


# --- functions --------------------------------------------------------------------------------------------------------


def _square(t, duty=0.5):
    """Square wave of period 2 pi: 1 on the first fraction `duty` of each period, -1 on the rest."""
    end = _share(duty) * 2 * math.pi
    return wrapped(_each(lambda x: choose(_phase(x) < end, 1.0, -1.0), t))


def _sawtooth(t, width=1):
    """Sawtooth wave of period 2 pi: from -1 to 1 on the first fraction `width` of each period, and back on the rest."""
    share = _share(width)

    def wave(x):
        phase = _phase(x)
        up = phase / (math.pi * share) - 1 if share > 0 else -1.0
        down = (math.pi * (share + 1) - phase) / (math.pi * (1 - share)) if share < 1 else 1.0
        return choose(phase < share * 2 * math.pi, up, down)

    return wrapped(_each(wave, t))


def _phase(x):
    return apply_ufunc(np.remainder, "__call__", [x, 2 * math.pi], {})


def _share(value) -> float:
    if is_symbolic(value) or np.ndim(value) or not 0 <= value <= 1:
        raise Untraceable(
            "calls a waveform of scipy.signal with a duty cycle or width that is not a number between 0 and 1"
        )
    return float(value)


def _logsumexp(a, axis=None, **options):
    if options or (axis is not None and np.ndim(a) != 1):
        raise Untraceable("calls scipy.special.logsumexp with options")
    values = plain(array_of(a) if isinstance(a, (list, tuple)) else a).reshape(-1)
    return wrapped(reduce(lambda x, y: apply("logaddexp", x, y) if is_symbolic([x, y]) else np.logaddexp(x, y), values))


def _softmax(x, axis=None):
    return np.exp(x - _logsumexp(x, axis))


FUNCTIONS: dict[tuple[str, str], Any] = {
    ("signal", "square"): _square,
    ("signal", "sawtooth"): _sawtooth,
    ("special", "logsumexp"): _logsumexp,
    ("special", "softmax"): _softmax,
}
"""Replacements of SciPy functions, by package and name."""


def scipy_replacement(value: Any) -> Any:
    """Replacement for a SciPy function; None if there is none."""
    parts = (getattr(value, "__module__", None) or "").split(".")
    ours = FUNCTIONS.get((parts[1] if len(parts) > 1 else "", getattr(value, "__name__", "")))
    if ours is None:
        return None

    def call(*arguments, **options):
        return (ours if is_symbolic(list(arguments)) else value)(*arguments, **options)

    return call


# --- interpolants -----------------------------------------------------------------------------------------------------


class Interpolant:
    """Replacement for a SciPy interpolant, such as a ``CubicSpline``: piecewise polynomials on symbols."""

    def __init__(self, original: Any, pieces: Callable[..., Any]):
        self._original, self._pieces = original, pieces

    def __call__(self, x, *arguments, **options):
        def value(entry):
            if type(entry) is Expression:
                return self._pieces(self._original, entry, *arguments, **options)
            return wrapped(np.asarray(self._original(entry, *arguments, **options)))

        if is_symbolic(list(arguments)) or is_symbolic(list(options.values())):
            raise Untraceable("calls an interpolant of SciPy with a value among its options")
        if (
            np.ndim(plain(x))
            and getattr(self._original, "axis", 0) != 0
            and not isinstance(self._original, _step_kind())
        ):
            raise Untraceable("calls an interpolant of SciPy along another axis with an array")
        return wrapped(_each(value, x))

    def __getattr__(self, name: str):
        found = getattr(self._original, name)
        if name not in ("derivative", "antiderivative"):
            return found
        return lambda *orders: Interpolant(found(*orders), self._pieces)


def interpolant_replacement(value: Any) -> Interpolant | None:
    """Replacement for a SciPy interpolant; None for other objects."""
    kinds = [kind.__name__ for kind in type(value).__mro__ if kind.__module__.startswith("scipy.interpolate")]
    pieces = next((_INTERPOLANTS[kind] for kind in kinds if kind in _INTERPOLANTS), None)
    return None if pieces is None else Interpolant(value, pieces)


def _step_kind() -> type:
    from scipy.interpolate import interp1d

    return interp1d


def _polynomials(spline, x, nu=0, extrapolate=None):
    """A ``PPoly``: on each piece a polynomial in the distance from its left end."""
    pieces = spline.derivative(nu) if nu > 0 else spline.antiderivative(-nu) if nu < 0 else spline
    coefficients = np.asarray(pieces.c)
    if pieces.x[0] > pieces.x[-1] or np.iscomplexobj(coefficients):
        raise Untraceable("calls an interpolant of SciPy with decreasing points or complex values")
    extrapolate = spline.extrapolate if extrapolate is None else extrapolate
    return _continued(x, np.asarray(pieces.x), np.moveaxis(coefficients[::-1], 0, 1), extrapolate)


def _basis_spline(spline, x, nu=0, extrapolate=None):
    """A ``BSpline``, with the derivatives at the left ends of all pieces as coefficients."""
    if spline.k == 0 and nu == 0:  # intervals of the pieces; the last may begin at the last point
        steps, inner = np.asarray(spline.c)[:, None], spline.t[1 : len(spline.c)]
        return polynomial_pieces(x, inner, np.zeros(len(steps)), steps.reshape(*steps.shape[:2], -1)[..., 0])
    points = np.unique(spline.t[spline.k : len(spline.t) - spline.k])
    orders = range(nu, spline.k + 1)
    rows = [spline(points[:-1], n, extrapolate=True) / math.factorial(n - nu) for n in orders]
    table = np.stack(rows, axis=1) if rows else np.zeros((len(points) - 1, 1))
    return _continued(x, points, table, spline.extrapolate if extrapolate is None else extrapolate)


def _fitted_spline(spline, x, nu=0, ext=None):
    from scipy.interpolate import BSpline

    if (spline.ext if ext is None else ext) not in (0, "extrapolate"):
        raise Untraceable("calls a spline of SciPy that does not extrapolate")
    return _basis_spline(BSpline(*spline._eval_args), x, nu, True)


def _continued(x: Expression, points: np.ndarray, table: np.ndarray, extrapolate: Any) -> Any:
    """Polynomials with coefficients ``table[piece, power, ...]`` and the requested behaviour outside the range."""
    shape, inside = table.shape[2:], x
    if extrapolate == "periodic":
        inside = points[0] + (x - points[0]) % (points[-1] - points[0])
    rows = table.reshape(*table.shape[:2], -1)
    found = polynomial_pieces(inside, points[1:-1], points[:-1], rows if shape else rows[:, :, 0])
    if not extrapolate:
        known = (x >= points[0]) & (x <= points[-1])
        found = _each(lambda value: choose(known, value, math.nan), found)
    return found.reshape(shape) if shape else found


def _one_dimensional(interpolation, x):
    """``interp1d``: linear, piecewise constant or a spline."""
    kind, points, values = interpolation._kind, np.asarray(interpolation.x), np.asarray(interpolation.y, dtype=float)
    if values.ndim != 1:
        raise Untraceable("calls interp1d with several values at each point", remedy="use one for each, or CubicSpline")
    if kind == "spline":
        found = np.ravel(_basis_spline(interpolation._spline, x, 0, True))[0]
    elif kind == "linear":
        table = np.stack([values[:-1], np.diff(values) / np.diff(points)], axis=1)
        found = polynomial_pieces(x, points[1:-1], points[:-1], table)
    elif kind in ("previous", "next"):
        found = _steps(x, points[1:] if kind == "previous" else points[:-1], values, left=kind == "next")
    else:
        found = _steps(x, interpolation.x_bds, values, left=kind == "nearest")
    if interpolation._extrapolate:
        return found
    below, above = (
        float(np.ravel(fill)[0]) for fill in (interpolation._fill_value_below, interpolation._fill_value_above)
    )
    if interpolation.bounds_error:
        refuse_caught()
        outside = choose((x < points[0]) | (x > points[-1]), math.nan, 0.0)
        x.graph.hazards.append(outside.node)  # falls back to Python for x outside the points
    return choose(x < points[0], below, choose(x > points[-1], above, found))


def _steps(x: Expression, points: np.ndarray, values: np.ndarray, left: bool) -> Any:
    """Piecewise constant: values[i] after i points; if `left`, a point equal to x does not count."""
    if left:
        x, points, values = -x, -points[::-1], values[::-1]
    return polynomial_pieces(x, points, np.zeros(len(values)), values[:, None])


_INTERPOLANTS: dict[str, Callable[..., Any]] = {
    "PPoly": _polynomials,
    "BSpline": _basis_spline,
    "UnivariateSpline": _fitted_spline,
    "interp1d": _one_dimensional,
}
