"""Explicit Runge-Kutta steps of eight members at once, as in :mod:`daedal.methods.explicit.runge_kutta_step`.

Rows of arrays have one number for each lane. Values needed by one lane are computed in all lanes.
"""

from math import inf

from daedal.kernels.arithmetic import EIGHT
from daedal.kernels.compilation import caller, inlined, part
from daedal.kernels.lanes import LANES, absolute, all_less, at, put, spread, where_less
from daedal.kernels.records import ADDRESS, INTEGER, Struct, data_of
from daedal.kernels.records import at as reference
from daedal.kernels.signatures import f64, i32, i64
from daedal.methods.explicit.runge_kutta_step import TABLEAU, StepAccess, explicit_steps
from daedal.methods.one_step import sums_of

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
"""Machine code in lanes: the function, its block, and the positions of its n results and statuses."""

STEPS = Struct(
    "STEPS",
    [
        ("n", INTEGER),
        ("positions", INTEGER),  # number of positions of a mechanism, with slopes (v, a); otherwise 0
        ("stages", INTEGER),
        ("more_stages", INTEGER),  # additional stages for dense output
        ("is_dense", INTEGER),  # whether the additional stages are evaluated
        ("watches_stiffness", INTEGER),
        ("slopes", CODE),
        ("tableau", reference(TABLEAU)),  # tableau of an explicit method, as in a single run
        ("rtol", f64["n"]),
        ("atol", f64["n"]),
        ("included", f64["n"]),
        # rows of lanes
        ("t", f64[LANES]),
        ("h", f64[LANES]),
        ("t_end", f64[LANES]),  # end of the step
        ("t_stage", f64[LANES]),
        ("known", f64[LANES]),  # 1 if the slope at the start of the step is known, otherwise 0
        ("accepted", f64[LANES]),  # 1 or 0
        ("bad", f64[LANES]),  # nonzero if something could not be evaluated
        ("size", f64[LANES]),  # size of the error
        ("stiffness", f64[LANES]),  # |lambda|, or -1
        ("phi", f64[1, "n", LANES]),  # y at the start of the step
        ("y", f64["n", LANES]),
        ("k", f64["stages + more_stages", "n", LANES]),
        *[(name, f64["n", LANES]) for name in ("inverse_weights", "scale", "error", "scratch")],
    ],
)
"""The data of eight steps, with the field names of RUN."""

_call = caller(i32(i64, i64))


@part
def copy_rows(target, source, n):
    """Copy n rows."""
    for i in range(n):
        put(target[i], at(source[i]))


@part
def larger(a, b):
    """The larger number of each lane."""
    return where_less(a, b, b, a)


@part
def run_code(code, t):
    """Run code on its block at the times `t`."""
    _call(code.address, data_of(t), data_of(code.block))


@part
def evaluate(code, t, bad):
    """Run code on its block; returns `bad`, set to 1 in lanes that failed or have a result that is not finite."""
    run_code(code, t)
    one = spread(1.0)
    bad = where_less(spread(0.0), at(code.status), one, bad)
    for i in range(code.n):
        bad = where_less(absolute(at(code.result[i])), spread(inf), bad, one)
    return bad


@inlined
def _tableau(steps):
    return steps.tableau


@inlined
def _slopes(steps):
    return steps.k


@inlined
def _stage(steps):
    return steps.slopes.block


@part
def _evaluate(steps, t, i):
    put(steps.t_stage, t)
    put(steps.bad, evaluate(steps.slopes, steps.t_stage, at(steps.bad)))
    _slopes_to(steps, steps.k[i])
    return 0


@part
def size_of_error(steps, maximum):
    """The norm of the error in units of the tolerance, with the larger of |y| at both ends of the step."""
    set_scales(steps)
    return size_in(maximum, steps.error, steps.scale)


_, _, size_in, set_scales, stiffness = sums_of(EIGHT)
_stages, _dense_stages, _size_of_estimate = explicit_steps(
    EIGHT, StepAccess(_tableau, _slopes, _stage, _evaluate, size_of_error)
)


@part
def _slopes_to(steps, k):
    """Write the slopes of the stage to the block of the code."""
    n, nx = steps.n, steps.positions
    copy_rows(k, steps.slopes.block[nx:], nx)
    copy_rows(k[nx:], steps.slopes.result, n - nx)


@part
def attempt(steps):
    """Compute the stages, y at the end of the step and the size of its error."""
    n, h, t, y, k = steps.n, at(steps.h), at(steps.t), steps.y, steps.k
    put(steps.bad, set_weights(steps))
    known = at(steps.known)
    if not all_less(spread(0.5), known):
        copy_rows(steps.slopes.block, steps.phi[0], n)
        put(steps.bad, evaluate(steps.slopes, steps.t, at(steps.bad)))
        _slopes_to(steps, steps.scratch)
        for i in range(n):
            old, new = at(k[0, i]), at(steps.scratch[i])
            put(k[0, i], where_less(spread(0.5), known, old, new))
    _stages(steps, t, h)
    copy_rows(y, steps.slopes.block, n)
    bad = at(steps.bad)
    for i in range(n):
        bad = where_less(absolute(at(y[i])), spread(inf), bad, spread(1.0))
    put(steps.bad, bad)
    size = _size_of_estimate(steps, h)
    put(steps.size, size)
    if steps.is_dense:
        _dense_stages(steps, t, h)
        put(steps.bad, where_less(spread(1.0), size, bad, at(steps.bad)))
    if steps.watches_stiffness:
        put(steps.stiffness, stiffness(steps, h, k, steps.tableau.a, steps.scratch))


@part
def set_weights(steps):
    """1 / (rtol |y| + atol) at the start of the step; returns 1 in lanes in which this is infinite, otherwise 0."""
    rtol, atol, bad = steps.rtol, steps.atol, spread(0.0)
    for i in range(steps.n):
        weight = rtol[i] * absolute(at(steps.phi[0, i])) + atol[i]
        bad = where_less(spread(0.0), weight, bad, spread(1.0))
        put(steps.inverse_weights[i], 1.0 / weight)
    return bad


@part
def take_over(steps):
    """Make the end of the step the start of the next step in accepted lanes."""
    n, half, accepted = steps.n, spread(0.5), at(steps.accepted)
    last = steps.k[steps.stages - 1]
    for i in range(n):
        start, k = steps.phi[0, i], steps.k[0, i]
        put(start, where_less(half, accepted, at(steps.y[i]), at(start)))
        put(k, where_less(half, accepted, at(last[i]), at(k)))
