"""Sums of slopes and norms of errors, for one run and for eight in parallel (:mod:`daedal.kernels.arithmetic`)."""

from __future__ import annotations

from typing import Any, NamedTuple

from daedal.kernels.arithmetic import NumberOperations
from daedal.kernels.compilation import inlined, part
from daedal.kernels.records import data_of, floats


class Sums(NamedTuple):
    """The functions returned by :func:`sums_of`."""

    combine: Any
    weighted_sum: Any
    size_in: Any
    set_scales: Any
    stiffness: Any


def sums_of(number: NumberOperations) -> Sums:
    """The sums and norms for vectors of the given number type."""
    width, vector, get, put, spread, absolute, root, larger, where_less, _ = number

    @inlined
    def weighted_sum(row, count, k, first, last, target):
        """target = sum_j row_j k_j for the components from `first` to `last`, slope by slope."""
        combine_at(data_of(row), count, data_of(k), k.shape[1], 0, 1.0, first, last, data_of(target))

    @inlined
    def combine(row, count, k, start, h, first, last, target):
        """target = start + h sum_j row_j k_j for the components from `first` to `last`."""
        combine_at(data_of(row), count, data_of(k), k.shape[1], data_of(start), h, first, last, data_of(target))

    @part
    def combine_at(row, count, k, n, start, h, first, last, target):
        """`combine` and `weighted_sum` as functions of addresses, whose constant offsets cost nothing; sums stay in
        registers, four at a time."""
        weights, i = floats(row, count), first
        while i + 4 <= last:
            a, b, c, d = spread(0.0), spread(0.0), spread(0.0), spread(0.0)
            at = k + width * i
            for j in range(count):
                weight = weights[j]
                if weight != 0.0:
                    slopes = vector(at, 4)
                    a = a + weight * get(slopes, 0)
                    b = b + weight * get(slopes, 1)
                    c = c + weight * get(slopes, 2)
                    d = d + weight * get(slopes, 3)
                at += width * n
            if start != 0:
                origin = vector(start + width * i, 4)
                a, b = get(origin, 0) + h * a, get(origin, 1) + h * b
                c, d = get(origin, 2) + h * c, get(origin, 3) + h * d
            result = vector(target + width * i, 4)
            put(result, 0, a)
            put(result, 1, b)
            put(result, 2, c)
            put(result, 3, d)
            i += 4
        while i < last:
            a, at = spread(0.0), k + width * i
            for j in range(count):
                if weights[j] != 0.0:
                    a = a + weights[j] * get(vector(at, 1), 0)
                at += width * n
            total = a if start == 0 else get(vector(start + width * i, 1), 0) + h * a
            put(vector(target + width * i, 1), 0, total)
            i += 1

    @part
    def size_in(maximum, v, scale):
        """The weighted norm of a vector: the maximum, or the root mean square."""
        total, n = spread(0.0), v.shape[0]
        for i in range(n):
            value = absolute(get(v, i) * get(scale, i))
            total = larger(total, value) if maximum else total + value * value
        return total if maximum else root(total / float(n))

    @part
    def set_scales(run):
        """``run.scale`` = 1 / (rtol |y| + atol), with the larger |y| of the two ends of the step; 0 if excluded."""
        start, y, scale = run.phi[0], run.y, run.scale
        rtol, atol, included = run.rtol, run.atol, run.included
        for i in range(run.n):
            largest = larger(absolute(get(y, i)), absolute(get(start, i)))
            put(scale, i, included[i] / (rtol[i] * largest + atol[i]))

    @part
    def stiffness(run, h, k, a, change):
        """|lambda| from the last two stages, both at the end of the step; -1 if unknown.

        The stages differ by d, their slopes by J d: DOPRI5's recipe is |lambda| = |J d| / |d| (HW IV.2). For a
        mechanism, d = (dq, dv) and J d = (dv, da), and lambda^2 = |da| / |dq|, which is that of a vibration in any
        phase, whereas |J d| / |d| can take any value up to its square.
        """
        n, s, nx, y, zero = run.n, a.shape[0], run.positions, run.y, spread(0.0)
        combine(a[s - 2], s - 2, k, run.phi[0], h, 0, n, change)
        for i in range(n):
            put(change, i, get(y, i) - get(change, i))
        largest = spread(-1.0)
        if nx > 0:
            squared = growth(k[s - 1], k[s - 2], nx, 2 * nx, change, 0)
            largest = where_less(squared, zero, largest, root(larger(squared, zero)))
        if n > 2 * nx:
            largest = larger(largest, growth(k[s - 1], k[s - 2], 2 * nx, n, change, 2 * nx))
        return largest

    @part
    def growth(last, before, first, end, change, origin):
        """The difference of two slopes in some components divided by `change` in those from `origin` on; -1 for 0/0."""
        top, bottom, zero = spread(0.0), spread(0.0), spread(0.0)
        for j in range(first, end):
            difference, moved = get(last, j) - get(before, j), get(change, origin + j - first)
            top = top + difference * difference
            bottom = bottom + moved * moved
        ratio = top / where_less(zero, bottom, bottom, spread(1.0))
        return where_less(zero, bottom, root(ratio), spread(-1.0))

    return Sums(combine, weighted_sum, size_in, set_scales, stiffness)
