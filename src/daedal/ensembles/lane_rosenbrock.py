"""Rosenbrock steps of eight members at once, bit-identical to :mod:`daedal.methods.rosenbrock.rosenbrock_step`.

Machine code computes the whole step: (y, y', h) -> y, increments, defect [, z].
"""

from math import inf

from daedal.ensembles.lane_steps import copy_rows, larger, run_code, set_weights, size_of_error
from daedal.kernels.compilation import part
from daedal.kernels.lanes import LANES, absolute, at, put, spread, where_less
from daedal.kernels.records import INTEGER, Struct
from daedal.kernels.signatures import f64
from daedal.methods.rosenbrock.rosenbrock_step import STUBBORN

LINEAR_STEPS = Struct(
    "LINEAR_STEPS",
    [
        ("stages", INTEGER),
        ("n", INTEGER),
        ("quasilinear", INTEGER),  # whether z is one of the results
        ("slope", f64["stages"]),  # weights of increments in h y' at the end
        # rows of lanes
        ("yp", f64["n", LANES]),
        ("failures", f64[LANES]),  # failures of the current step
    ],
)
"""Data of Rosenbrock methods in addition to STEPS."""


@part
def attempt_linear(linear, steps):
    """Compute y at the end of the step and the size of its error."""
    n, block, one = steps.n, steps.slopes.block, spread(1.0)
    copy_rows(block, steps.phi[0], n)
    copy_rows(block[n:], linear.yp, n)
    put(block[2 * n], at(steps.h))
    run_code(steps.slopes, steps.t)
    bad = where_less(spread(0.0), at(steps.slopes.status), one, set_weights(steps))
    copy_rows(steps.y, steps.slopes.result, n)
    last = steps.slopes.result[n * linear.stages :]
    stubborn = spread(STUBBORN - 0.5)
    for j in range(n):
        y, u, defect = at(steps.y[j]), at(last[j]), absolute(at(last[n + j]))
        for value in (absolute(y), absolute(u), defect):
            bad = where_less(value, spread(inf), bad, one)
        error = where_less(at(linear.failures), stubborn, larger(absolute(u), defect), u)
        put(steps.error[j], error)
    put(steps.size, size_of_error(steps, 0))
    put(steps.bad, bad)


@part
def take_over_linear(linear, steps):
    """Make the end of the step the start of the next step in accepted lanes."""
    n, half, accepted, h = steps.n, spread(0.5), at(steps.accepted), at(steps.h)
    slope, u = linear.slope, steps.slopes.result[n:]
    for j in range(n):
        start, yp = steps.phi[0][j], linear.yp[j]
        put(start, where_less(half, accepted, at(steps.y[j]), at(start)))
        new = spread(0.0)
        if linear.quasilinear:
            new = at(steps.slopes.result[n * (linear.stages + 2) + j])
        else:
            for i in range(linear.stages):
                new = new + slope[i] / h * at(u[n * i + j])
        put(yp, where_less(half, accepted, new, at(yp)))
