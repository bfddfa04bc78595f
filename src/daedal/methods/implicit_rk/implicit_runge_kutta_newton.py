r"""The stages of an implicit Runge-Kutta step for F(t, y, y') = 0 in compiled code.

The unknowns are the slopes of the stages (Brenan, Campbell and Petzold (4.1.2)),

    F(t_n + c_i h, y_n + h sum_j a_ij Y'_j, Y'_i) = 0,

solved block by block: the stages of a block depend on each other and on those of earlier blocks. Newton's method is
that of `stages`, with derivatives at the start of the step. If it fails with constant steps, which cannot be shortened,
derivatives at all stages are updated in every iteration instead, in one matrix for all stages of a block.
"""

from __future__ import annotations

import numpy as np

from daedal.kernels.compilation import caller, entry, part
from daedal.kernels.convergence import CONVERGED, DIVERGED, SIMPLIFIED, TO_ROUNDOFF, expect
from daedal.kernels.dense import LU
from daedal.kernels.matrix import BANDED, MATRIX, factor, solve
from daedal.kernels.norms import wrms
from daedal.kernels.records import (
    ADDRESS,
    FLOAT,
    INTEGER,
    Struct,
    data_of,
    float_rows,
    floats,
    integer_rows,
    optional,
    record_at,
)
from daedal.kernels.signatures import f64, i64
from daedal.kernels.system import residual
from daedal.methods.implicit_rk.implicit_stages import MOST_DEGREE, PLACES
from daedal.methods.implicit_rk.stages import STAGE_FIELDS
from daedal.methods.one_step import ATTEMPT
from daedal.methods.partial_derivatives import separate
from daedal.methods.run_record import RUN, STEP

IRK = Struct(
    "IRK",
    [
        *STAGE_FIELDS,
        # the method
        ("s", INTEGER),
        ("order", INTEGER),
        ("known", INTEGER),  # whether the slope of the first stage is y' at the start
        ("a", f64["s", "s"]),
        ("b", f64["s"]),
        ("c", f64["s"]),
        ("blocks", INTEGER),
        ("block_first", i64["blocks"]),
        ("block_size", i64["blocks"]),
        ("block_matrix", i64["blocks"]),
        ("doubling", INTEGER),  # whether the error is estimated by two half steps
        ("embedded", f64["s"]),  # weights of the slopes in the error, if not estimated by half steps
        ("filtering", INTEGER),  # block whose matrix filters the error, or -1
        ("end_slope", f64["s + 1"]),
        ("straight", INTEGER),  # whether the slopes of stages are too rough to extrapolate
        (
            "halves",
            f64["2 * s", "s + 1"],
        ),  # weights that extrapolate the slopes of the step to the stages of its halves
        ("degree", INTEGER),
        ("inner", optional(f64["2 * (degree - 1)", "s + 1"])),
        # the step polynomial by its values at equidistant points, last one first, and its defect: sample points,
        # weights of the values and of the slopes; the matrix F_y + (g/h) F_y' and its h, or 0
        ("points", f64[MOST_DEGREE + 1, "n"]),
        ("inside", optional(f64[PLACES])),
        ("inside_value", optional(f64[PLACES, "g"])),
        ("inside_slope", optional(f64[PLACES, "g"])),
        ("g", INTEGER),
        ("inherits", INTEGER),  # whether errors of algebraic variables propagate to the next step
        ("inside_inherited", optional(f64[PLACES])),  # amplification factors at the inner points
        ("of_halves", FLOAT),  # amplification factors in the difference between a step and its halves
        ("factor_defect", ADDRESS),
        # stage systems: for steps, then for their halves
        ("n_matrices", INTEGER),
        ("level", INTEGER),  # 1 for halves
        # constant steps: one matrix for all stages of a block, with derivatives at each of them, if needed
        ("at_stages", INTEGER),
        ("form", ADDRESS),  # function that solves with this matrix
        ("linearise_there", ADDRESS),
        ("matrices", i64["n_matrices"]),  # addresses, and block positions; 0 with variable steps
        ("places", i64["n_matrices"]),
        ("f_y", f64["s + 1", "entries"]),  # dF/dy and dF/dy' at every stage; the last ones are for projections
        ("f_yp", f64["s + 1", "entries"]),
        ("slot", INTEGER),  # row of `f_y` and `f_yp` to compute
        ("stage_t", FLOAT),
        # slopes, preceded by that of the start: of the step, of its halves, and a guess
        *[(name, f64["s + 1", "n"]) for name in ("whole", "first", "second", "guess")],
        *[(name, f64["n"]) for name in ("middle", "secant", "inherited")],
        ("unsettled", INTEGER),  # whether the owner of the run must check the equations
        # the current block: start of its step, addresses of y there and of slopes
        ("block", INTEGER),
        ("t0", FLOAT),
        ("h", FLOAT),
        ("start", ADDRESS),
        ("slopes", ADDRESS),
        ("slowest", FLOAT),  # convergence rate in this step
        ("trouble", INTEGER),  # number of steps that must not grow after a Newton failure
        # projection: multiplier of each unknown, constraint of each equation, or -1, and the derivative in each
        # equation; directions of the multipliers, and constraints applied to them
        ("projects", INTEGER),
        ("n_z", INTEGER),
        ("multiplier", optional(i64["n"])),
        ("constraint", optional(i64["n"])),
        ("derivative", optional(i64["n"])),
        ("end_value", f64["s"]),  # weights of slopes in the end values of multipliers
        ("direction", optional(f64["n", "n_z"])),
        ("lu", LU),
    ],
)

_TOLERANCE = 1e-3  # Newton tolerance, in units of the error tolerance
_MOST, _POLISHING = 15, 60  # maximum number of iterations: to the tolerance; to round-off (constant steps)
_NOISE = 30.0 * np.finfo(np.float64).eps
_ROUNDING = 0.1  # stagnating corrections, in units of the tolerance, that may be round-off
_ROUNDING_FIXED = 1e-5  # replaces _ROUNDING with constant steps, unless derivatives at the stages are used
_PLATEAU = 300.0  # largest size of these stagnating corrections, in units of the round-off of y
# remaining corrections of variables of index 2 and 3, and the last correction including them
_FOLLOWING, _SMALL = 3e-3, 1e-2

_call, _call_step = caller(ATTEMPT), caller(STEP)


@part
def solve_all_stages(system, run, method, address, t0, t1, h, start, k):
    """Compute the slopes of all stages of a step from t0 to t1 = t0 + h in rows 1.. of k, which contain a guess."""
    n, guess = run.n, method.guess
    for i in range(method.s + 1):
        for j in range(n):
            guess[i, j] = k[i, j]
    method.t0, method.h, method.start, method.slopes = t0, h, data_of(start), data_of(k)
    for block in range(method.blocks):
        if block == 0 and method.known:
            for j in range(n):
                k[1, j] = k[0, j]
            continue
        take_block(method, block)
        status = _solve_block(run, method, address, t1, h, start)
        if status != CONVERGED:
            if status == DIVERGED:
                _give_up(run, method, h, start, k)
            return status
    return CONVERGED


@part
def take_block(method, block):
    """Make a block of stages the current one."""
    method.block = block
    method.current = method.level * method.n_matrices + method.block_matrix[block]


@part
def _solve_block(run, method, address, t1, h, start):
    """Solve for the slopes of a block; with constant steps, retry failures with derivatives at the stages."""
    progress, weights = run.newton, method.weights
    method.z, method.unit = method.slopes + 8 * run.n * (method.block_first[method.block] + 1), 1.0 / h
    noise = _NOISE * max(wrms(start, weights), 1.0 if run.fixed else 0.0)
    rounding = max(_ROUNDING_FIXED if run.fixed else _ROUNDING, _PLATEAU * noise)
    tolerance = max(_TOLERANCE, noise)
    if run.fixed:
        expect(progress, TO_ROUNDOFF, _POLISHING, tolerance, noise, rounding)
    else:
        expect(progress, SIMPLIFIED, _MOST, tolerance, noise, rounding)
    progress.follow_tolerance, progress.follow_below, progress.follow_last = _FOLLOWING, _SMALL, np.inf
    status = _call(method.solve, address, t1, h)
    method.slowest = max(method.slowest, progress.worst)
    if status != DIVERGED or not run.fixed:
        return status
    usual = method.correct
    progress.rounding = max(_ROUNDING, _PLATEAU * noise)
    method.at_stages, method.correct = 1, method.form
    status = _call(method.predict, address, t1, h)
    if status == 0:
        status = _call(method.iterate, address, t1, h)
    method.at_stages, method.correct = 0, usual
    return status


@entry(ATTEMPT)
def irk_predict(address, t, h):
    """Set the slopes of the block to their guess."""
    run = record_at(address, RUN)
    method = record_at(run.method, IRK)
    n, begin, guess = run.n, method.block_first[method.block], method.guess
    k = float_rows(method.slopes, method.s + 1, n)
    for i in range(begin, begin + method.block_size[method.block]):
        for j in range(n):
            k[i + 1, j] = guess[i + 1, j]
    return 0


@entry(ATTEMPT)
def irk_residuals(address, t, h):
    """r_i = F at the stages of the block, with derivatives if requested."""
    run = record_at(address, RUN)
    return _residuals(run.system, run, record_at(run.method, IRK), address, t, h)


@part
def _residuals(system, run, method, address, t1, h):
    n, y, yp = run.n, method.stage_y, method.stage_yp
    begin = method.block_first[method.block]
    count = method.block_size[method.block]
    a, c, r = method.a, method.c, method.r
    start, k = floats(method.start, n), float_rows(method.slopes, method.s + 1, n)
    for i in range(begin, begin + count):
        for j in range(n):
            y[j] = 0.0
            yp[j] = k[i + 1, j]
        for l in range(begin + count):
            weight = a[i, l]
            if weight != 0.0:
                for j in range(n):
                    y[j] += weight * k[l + 1, j]
        for j in range(n):
            y[j] = start[j] + h * y[j]
        time = t1 if c[i] == 1.0 else method.t0 + c[i] * h
        status = residual(system, time, y, yp, r[i - begin])
        if status == 0 and method.at_stages:
            method.stage_t, method.slot = time, i
            status = _call_step(method.linearise_there, address)
        if status != 0:
            return status
    return 0


@part
def _give_up(run, method, h, start, k):
    """Store the last correction for messages."""
    n, last = run.n, method.block_size[method.block] - 1
    r, correction, y = method.r, run.correction, run.y
    for j in range(n):
        correction[j] = r[last, j]
        y[j] = start[j] + h * k[method.s, j]
    run.cj = 1.0 / h


# --- derivatives at every stage ---------------------------------------------------------------------------------------


@entry(STEP)
def irk_linearise_there(address):
    """Compute F_y and F_y' at the point in `stage_t`, `stage_y`, `stage_yp`, in the rows `slot`."""
    run = record_at(address, RUN)
    method = record_at(run.method, IRK)
    return _linearise_there(run.system, method.linear, run, method)


@part
def _linearise_there(system, linear, run, method):
    y, yp, r, h, place = method.stage_y, method.stage_yp, method.residual, method.h, method.place
    f_y, f_yp = method.f_y[method.slot], method.f_yp[method.slot]
    method.factored[method.count] = 0.0
    return separate(system, linear.matrix, run, method.stage_t, y, yp, r, 1.0 / h, h, place, f_y, f_yp)


@entry(ATTEMPT)
def irk_correct_coupled(address, t, h):
    """Compute the correction r of the slopes of a block, whose matrix is delta_ij F_y' / h + a_ij F_y."""
    run = record_at(address, RUN)
    return _correct_coupled(run.system, record_at(run.method, IRK), run.n, t, h)


@part
def _correct_coupled(system, method, n, t, h):
    number, entries = method.block_matrix[method.block], method.entries
    begin, size = method.block_first[method.block], method.block_size[method.block]
    matrix = record_at(method.matrices[number], MATRIX)
    places = integer_rows(method.places[number], size, entries)
    data, a = matrix.data, method.a
    f_y, f_yp = method.f_y, method.f_yp
    r, hat = method.r, method.hat[: size * n]
    if matrix.kind == BANDED:
        data[:] = 0.0
    for j in range(size):
        for i in range(size):
            weight = a[begin + i, begin + j]
            for e in range(entries):
                value = weight * f_y[begin + i, e]
                if i == j:
                    value += f_yp[begin + i, e] / h
                data[places[j, e] + i] = value
    system.factorisations += 1
    status = factor(matrix, t)
    if status != 0:
        return status
    for i in range(size):  # ordered by component: all stages of a component are adjacent
        for j in range(n):
            hat[size * j + i] = r[i, j]
    status = solve(matrix, t, hat)
    for i in range(size):
        for j in range(n):
            r[i, j] = hat[size * j + i]
    return status
