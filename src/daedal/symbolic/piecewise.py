"""Functions given by tables: ``np.interp``, and tables of polynomial pieces such as :class:`daedal.Table`."""

from typing import Any

import numpy as np

from daedal.symbolic.arrays import array_of, is_symbolic, numbers, plain
from daedal.symbolic.expression import Expression, choose
from daedal.symbolic.untraceable import Untraceable

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

    def summed(table) -> Expression:  # in the order of SciPy's PPoly, with the same bits
        value, power = Expression(graph, graph.pick(place, table[:, 0])), s
        for k in range(1, table.shape[1]):
            value = value + Expression(graph, graph.pick(place, table[:, k])) * power
            power = power * s
        return value

    table = np.asarray(coefficients, dtype=float)
    if table.ndim == 2:
        return summed(table)
    return array_of([summed(table[:, :, j]) for j in range(table.shape[2])])
