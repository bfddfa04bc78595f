"""Explicit Runge-Kutta steps of eight members at once, with the bits of `runge_kutta_step`.

Rows of arrays have one number for each lane. Sums have the same terms in the same order as those of single
members; what one lane needs is computed in all of them, and taken over where it is needed.
"""

from math import inf

from daedal.kernels.compilation import caller, part
from daedal.kernels.lanes import LANES, absolute, all_less, at, put, root, spread, where_less
from daedal.kernels.records import ADDRESS, INTEGER, Struct, data_of, float_rows
from daedal.kernels.signatures import f64, i32, i64
from daedal.methods.explicit.runge_kutta_step import SHARE

CODE = Struct(
    "CODE",
    [
        ("address", ADDRESS),
        ("size", INTEGER),
        ("n", INTEGER),
        ("block", f64["size", LANES]),
        ("result", f64["n", LANES]),
        ("status", f64[LANES]),
    ],
)
"""Machine code in lanes: the function, its block, and where its n results and its statuses stand there."""

SUMS = Struct(
    "SUMS",
    [
        ("rows", INTEGER),
        ("count", INTEGER),
        ("weights", f64["count"]),
        ("places", i64["count"]),
        ("first", i64["rows + 1"]),
    ],
)
"""Coefficients that are not zero, row by row: weights, the numbers of their slopes, and where rows begin."""

STEPS = Struct(
    "STEPS",
    [
        ("n", INTEGER),
        ("nx", INTEGER),  # of a mechanism, whose slopes are (v, a); or 0
        ("stages", INTEGER),
        ("maximum_norm", INTEGER),
        ("two_errors", INTEGER),
        ("dense_stages", INTEGER),  # that must be evaluated, since runs with dense output have them
        ("watches_stiffness", INTEGER),
        ("slopes", CODE),
        ("a", SUMS),
        ("e", SUMS),  # the estimate, and the second one
        ("a_dense", SUMS),
        ("c", f64["stages + dense_stages"]),
        ("rtol", f64["n"]),
        ("atol", f64["n"]),
        ("included", f64["n"]),
        # rows of lanes
        ("t", f64[LANES]),
        ("h", f64[LANES]),
        ("t_end", f64[LANES]),  # of the step
        ("t_stage", f64[LANES]),
        ("known", f64[LANES]),  # 1 where the slope at the start of the step is known, else 0
        ("accepted", f64[LANES]),  # 1 or 0
        ("bad", f64[LANES]),  # not 0 where something could not be evaluated
        ("size", f64[LANES]),  # of the error
        ("stiffness", f64[LANES]),  # |lambda|, or -1
        ("start", f64["n", LANES]),
        ("y", f64["n", LANES]),
        ("k", f64["stages + dense_stages", "n", LANES]),
        ("weights", f64["n", LANES]),
        ("work", f64["n", LANES]),
    ],
)

_call = caller(i32(i64, i64))


@part
def copy_rows(target, source, n):
    """n rows."""
    for i in range(n):
        put(target[i], at(source[i]))


@part
def larger(a, b):
    """The larger number of each lane."""
    return where_less(a, b, b, a)


@part
def run_code(code, t):
    """Run code on its block, at the times `t`."""
    _call(code.address, data_of(t), data_of(code.block))


@part
def evaluate(code, t, bad):
    """Run code on its block; returns `bad`, with 1 where it did not succeed or a result is not finite."""
    run_code(code, t)
    one = spread(1.0)
    bad = where_less(spread(0.0), at(code.status), one, bad)
    for i in range(code.n):
        bad = where_less(absolute(at(code.result[i])), spread(inf), bad, one)
    return bad


@part
def _combine(sums, row, k, n, start, h, target):
    """target = start + h sum_j w_j k_j, or the sum alone where start has no rows; four components at a time."""
    begin, end = sums.first[row], sums.first[row + 1]
    weights, places, i = sums.weights[begin:end], sums.places[begin:end], 0
    while i + 4 <= n:
        a, b, c, d = spread(0.0), spread(0.0), spread(0.0), spread(0.0)
        for j in range(weights.size):
            weight, slope = spread(weights[j]), k[places[j]]
            a = a + weight * at(slope[i])
            b = b + weight * at(slope[i + 1])
            c = c + weight * at(slope[i + 2])
            d = d + weight * at(slope[i + 3])
        if start.size > 0:
            a, b = at(start[i]) + h * a, at(start[i + 1]) + h * b
            c, d = at(start[i + 2]) + h * c, at(start[i + 3]) + h * d
        put(target[i], a)
        put(target[i + 1], b)
        put(target[i + 2], c)
        put(target[i + 3], d)
        i += 4
    while i < n:
        a = spread(0.0)
        for j in range(weights.size):
            a = a + weights[j] * at(k[places[j], i])
        put(target[i], at(start[i]) + h * a if start.size > 0 else a)
        i += 1


@part
def _slopes_to(steps, k):
    """The slopes of the stage in the block of the code."""
    n, nx = steps.n, steps.nx
    copy_rows(k, steps.slopes.block[nx:], nx)
    copy_rows(k[nx:], steps.slopes.result, n - nx)


@part
def attempt(steps):
    """Stages, y at the end of the step and the size of its error, from `start`."""
    n, s, h, t = steps.n, steps.stages, at(steps.h), at(steps.t)
    bad, nodes, block, k, y = set_weights(steps), steps.c, steps.slopes.block, steps.k, steps.y
    known = at(steps.known)
    if not all_less(spread(0.5), known):
        copy_rows(block, steps.start, n)
        bad = evaluate(steps.slopes, steps.t, bad)
        _slopes_to(steps, steps.work)
        for i in range(n):
            old, new = at(k[0, i]), at(steps.work[i])
            put(k[0, i], where_less(spread(0.5), known, old, new))
    for i in range(1, s):
        _combine(steps.a, i, k, n, steps.start, h, block)
        put(steps.t_stage, t + nodes[i] * h)
        bad = evaluate(steps.slopes, steps.t_stage, bad)
        _slopes_to(steps, k[i])
    copy_rows(y, block, n)
    for i in range(n):
        bad = where_less(absolute(at(y[i])), spread(inf), bad, spread(1.0))
    size = _size_of_estimate(steps, 0, h)
    if steps.two_errors:
        other = _size_of_estimate(steps, 1, h)
        smaller = size * (size / root(size * size + SHARE * other * other))
        size = where_less(spread(0.0), size, smaller, size)
    put(steps.size, size)
    for i in range(steps.dense_stages):
        _combine(steps.a_dense, i, k, n, steps.start, h, block)
        put(steps.t_stage, t + nodes[s + i] * h)
        found = evaluate(steps.slopes, steps.t_stage, bad)
        bad = where_less(spread(1.0), size, bad, found)
        _slopes_to(steps, k[s + i])
    put(steps.bad, bad)
    if steps.watches_stiffness:
        _look_for_stiffness(steps, h)


@part
def set_weights(steps):
    """1 / (rtol |y| + atol) at the start of the step; returns 1 in lanes where that is infinite, else 0."""
    rtol, atol, bad = steps.rtol, steps.atol, spread(0.0)
    for i in range(steps.n):
        weight = rtol[i] * absolute(at(steps.start[i])) + atol[i]
        bad = where_less(spread(0.0), weight, bad, spread(1.0))
        put(steps.weights[i], 1.0 / weight)
    return bad


@part
def _size_of_estimate(steps, row, h):
    """The size of h sum_i e_i k_i."""
    n, error = steps.n, steps.work
    _combine(steps.e, row, steps.k, n, float_rows(0, 0, LANES), h, error)
    for i in range(n):
        put(error[i], at(error[i]) * h)
    return size_of_error(steps, error)


@part
def size_of_error(steps, error):
    """The norm of an error in units of the tolerance, with the larger of |y| at both ends of the step."""
    n, total = steps.n, spread(0.0)
    rtol, atol, included = steps.rtol, steps.atol, steps.included
    for i in range(n):
        y, start = at(steps.y[i]), at(steps.start[i])
        scale = included[i] / (rtol[i] * larger(absolute(y), absolute(start)) + atol[i])
        value = at(error[i]) * scale
        total = larger(total, absolute(value)) if steps.maximum_norm else total + value * value
    return total if steps.maximum_norm else root(total / float(n))


@part
def take_over(steps):
    """In lanes that were accepted, the end of the step is the start of the next one."""
    n, half, accepted = steps.n, spread(0.5), at(steps.accepted)
    last = steps.k[steps.stages - 1]
    for i in range(n):
        start, k = steps.start[i], steps.k[0, i]
        put(start, where_less(half, accepted, at(steps.y[i]), at(start)))
        put(k, where_less(half, accepted, at(last[i]), at(k)))


@part
def size_of_change(steps, change):
    """The norm of a change in the weights at the start of the step."""
    total = spread(0.0)
    for i in range(steps.n):
        value = absolute(at(change[i]) * at(steps.weights[i]))
        total = larger(total, value) if steps.maximum_norm else total + value * value
    return total if steps.maximum_norm else root(total / float(steps.n))


@part
def _look_for_stiffness(steps, h):
    """|lambda| from the last two stages, both at the end of the step; -1 where it is not known."""
    n, s, nx, zero = steps.n, steps.stages, steps.nx, spread(0.0)
    _combine(steps.a, s - 2, steps.k, n, steps.start, h, steps.work)
    top, bottom = zero, zero
    last, before = steps.k[s - 1], steps.k[s - 2]
    for i in range(n - nx):  # of a mechanism, changes of accelerations and of positions
        difference = at(last[nx + i]) - at(before[nx + i])
        top = top + difference * difference
        moved = at(steps.y[i]) - at(steps.work[i])
        bottom = bottom + moved * moved
    growth = root(top / bottom)
    growth = root(growth) if nx > 0 else growth
    put(steps.stiffness, where_less(zero, bottom, growth, spread(-1.0)))
