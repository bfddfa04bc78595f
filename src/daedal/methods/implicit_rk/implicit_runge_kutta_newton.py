r"""The stages of an implicit Runge-Kutta step for F(t, y, y') = 0 in compiled code.

The unknowns are the slopes of the stages (Brenan, Campbell and Petzold (4.1.2)),

    F(t_n + c_i h, y_n + h sum_j a_ij Y'_j, Y'_i) = 0,

found block by block: the stages of a block depend on each other, and on those of earlier blocks. The simplified Newton
method has the matrix I (x) F_y' + h A (x) F_y with F_y and F_y' at the start of the step. Where it fails with constant
steps, which cannot be shortened, derivatives at all stages and of every iteration take its place.
"""

from __future__ import annotations

import numpy as np

from daedal.kernels.compilation import caller, entry, inlined, part
from daedal.kernels.dense import LU
from daedal.kernels.linear import LINEAR
from daedal.kernels.matrix import BANDED, MATRIX, factor, solve
from daedal.kernels.newton import CONVERGED, DIVERGED
from daedal.kernels.norms import wrms
from daedal.kernels.records import (
    ADDRESS,
    FLOAT,
    INTEGER,
    Struct,
    at,
    integer_rows,
    optional,
    record_at,
)
from daedal.kernels.signatures import f64, i64
from daedal.kernels.system import residual
from daedal.kernels.vectors import power, smallest
from daedal.methods.implicit_rk.implicit_stages import MOST_DEGREE, PLACES
from daedal.methods.partial_derivatives import separate
from daedal.methods.run_record import RUN, STEP

IRK = Struct(
    "IRK",
    [
        ("linear", at(LINEAR)),
        ("linearise", ADDRESS),
        ("form", ADDRESS),
        ("correct", ADDRESS),
        # the method
        ("n", INTEGER),
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
        ("doubling", INTEGER),  # whether the error is found by two steps of half the size
        ("embedded", f64["s"]),  # else weights of the slopes in the error
        ("filtering", INTEGER),  # and the block whose matrix filters it, or -1
        ("end_slope", f64["s + 1"]),
        ("straight", INTEGER),  # whether the slopes of stages are too rough to be extrapolated
        ("halves", f64["2 * s", "s + 1"]),  # slopes of the whole step at the stages of its halves
        ("degree", INTEGER),
        ("inner", optional(f64["2 * (degree - 1)", "s + 1"])),
        # the polynomial of the step by its values at equidistant points, the last one first, and its defect: where it
        # is looked for, with weights of the values and of the slopes; the matrix F_y + (g/h) F_y' and its h, or 0
        ("points", f64[MOST_DEGREE + 1, "n"]),
        ("inside", optional(f64[PLACES])),
        ("inside_value", optional(f64[PLACES, "g"])),
        ("inside_slope", optional(f64[PLACES, "g"])),
        ("g", INTEGER),
        ("inherits", INTEGER),  # whether errors of algebraic variables are passed on to the next step
        ("inside_inherited", optional(f64[PLACES])),  # by which factors, at the places inside
        ("of_halves", FLOAT),  # and in the difference of a step and its halves
        ("factor", ADDRESS),
        ("h_matrix", FLOAT),
        # matrices of Newton's method: for steps, then for their halves
        ("n_matrices", INTEGER),
        ("matrices", i64["2 * n_matrices"]),  # their addresses
        ("places", i64["2 * n_matrices"]),  # addresses of the places of their blocks
        ("factored", f64["2 * n_matrices"]),  # the step for which they are factored, or 0
        ("level", INTEGER),  # 1 for halves
        # dF/dy and dF/dy', entry by entry: at the start, or at every stage
        ("entries", INTEGER),
        ("rows", i64["entries"]),
        ("columns", i64["entries"]),
        ("place", i64["entries"]),
        ("f_y", f64["s + 1", "entries"]),
        ("f_yp", f64["s + 1", "entries"]),
        ("look", ADDRESS),  # working memory of `first_look`
        ("slot", INTEGER),  # which of them; the last one belongs to projections
        ("at_stages", INTEGER),  # whether they are those of the stages
        ("stage_t", FLOAT),
        ("jacobian_known", INTEGER),
        ("jacobian_fresh", INTEGER),  # whether it is one of this step
        # slopes, with that of the start in front: of the step, of its halves, and a guess
        *[(name, f64["s + 1", "n"]) for name in ("whole", "first", "second", "guess")],
        ("r", f64["s", "n"]),
        ("hat", f64["s * n"]),
        *[(name, f64["n"]) for name in ("stage_y", "stage_yp", "residual", "middle", "secant", "weights", "inherited")],
        ("power", f64["n"]),  # index class of each variable, less one
        ("some_powers", INTEGER),
        ("searches", INTEGER),  # whether the owner of the run is to find the powers at the start
        ("suspicious", INTEGER),  # whether it is to look at the equations in any case
        # the block that is being solved
        ("block", INTEGER),
        ("h", FLOAT),
        ("slowest", FLOAT),  # rate of convergence in this step
        ("rate_factor", FLOAT),  # rate / (1 - rate)
        ("trouble", INTEGER),  # steps that are not to grow, since Newton's method has failed
        # projection: which unknown is which multiplier, which equation which constraint, or -1, and which derivative
        # stands in an equation; the directions of the multipliers, and constraints times these
        ("projects", INTEGER),
        ("n_z", INTEGER),
        ("multiplier", optional(i64["n"])),
        ("constraint", optional(i64["n"])),
        ("derivative", optional(i64["n"])),
        ("end_value", f64["s"]),  # weights of slopes in the end of multipliers
        ("direction", optional(f64["n", "n_z"])),
        ("lu", LU),
    ],
)

_TOLERANCE = 1e-3  # of Newton's method, in units of the error tolerance
_MOST, _POLISHING = 15, 60  # iterations; the latter of constant steps, which end at round-off
_NOISE = 30.0 * np.finfo(np.float64).eps
_STALLED, _STALLS = 0.9, 2
_ROUNDING = 0.1  # corrections, in units of the tolerance, that may be round-off if they do not fall
_ROUNDING_FIXED = 1e-2  # the same with constant steps, as long as derivatives at the stages are left to try
_PLATEAU = 300.0  # the same in units of the round-off of y
_WILD = 10.0  # by which corrections may grow once
_LOOK = 2
_UNKNOWN = 1.0  # rate / (1 - rate) before a rate has been seen

_call = caller(STEP)


@entry(STEP)
def irk_linearise(address):
    """F_y and F_y' at the point in `stage_t`, `stage_y`, `stage_yp`."""
    run = record_at(address, RUN)
    method = record_at(run.method, IRK)
    return _linearise(run.system, method.linear, run, method)


@entry(STEP)
def irk_form(address):
    """The matrix of a block, factored."""
    run = record_at(address, RUN)
    return _form(run.system, record_at(run.method, IRK), run.t)


@entry(STEP)
def irk_correct(address):
    """r := the correction of the slopes of a block."""
    run = record_at(address, RUN)
    return _correct(record_at(run.method, IRK), run.n, run.t)


@part
def _linearise(system, linear, run, method):
    y, yp, r, h = method.stage_y, method.stage_yp, method.residual, method.h
    f_y, f_yp = method.f_y[method.slot], method.f_yp[method.slot]
    method.h_matrix = 0.0
    return separate(system, linear.matrix, run, method.stage_t, y, yp, r, 1.0 / h, h, method.place, f_y, f_yp)


@inlined
def _matrix_number(method):
    """Which matrix belongs to the block and the level."""
    return method.level * method.n_matrices + method.block_matrix[method.block]


@part
def _form(system, method, t):
    """delta_ij F_y' / h + a_ij F_y for the stages i, j of the block."""
    number, entries = _matrix_number(method), method.entries
    size = method.block_size[method.block]
    begin = method.block_first[method.block]
    matrix = record_at(method.matrices[number], MATRIX)
    places = integer_rows(method.places[number], size, entries)
    data, a = matrix.data, method.a
    f_y, f_yp = method.f_y, method.f_yp
    factored = method.factored
    factored[number] = 0.0
    if matrix.kind == BANDED:
        data[:] = 0.0
    for j in range(size):
        for i in range(size):
            slot = begin + i if method.at_stages else 0
            weight = a[begin + i, begin + j]
            for e in range(entries):
                value = weight * f_y[slot, e]
                if i == j:
                    value += f_yp[slot, e] / method.h
                data[places[j, e] + i] = value
    system.factorisations += 1
    method.rate_factor = _UNKNOWN
    status = factor(matrix, t)
    if status == 0 and not method.at_stages:
        factored[number] = method.h
    return status


@part
def _correct(method, n, t):
    """The unknowns of all stages of a component stand together."""
    size = method.block_size[method.block]
    matrix = record_at(method.matrices[_matrix_number(method)], MATRIX)
    r, hat = method.r, method.hat[: size * n]
    for i in range(size):
        for j in range(n):
            hat[size * j + i] = r[i, j]
    status = solve(matrix, t, hat)
    for i in range(size):
        for j in range(n):
            r[i, j] = hat[size * j + i]
    return status


@part
def linearise_at_start(run, method, address, h):
    """F_y and F_y' at the start of the step."""
    n = run.n
    y, yp, start, slope = method.stage_y, method.stage_yp, run.phi[0], run.yp
    for j in range(n):
        y[j], yp[j] = start[j], slope[j]
    method.stage_t, method.slot, method.h, method.at_stages, method.jacobian_known = run.t, 0, h, 0, 0
    method.factored[:] = 0.0
    status = _call(method.linearise, address)
    if status == 0:
        method.jacobian_known = 1
        method.jacobian_fresh = 1
    return status


@part
def solve_stages(system, run, method, address, t0, t1, h, start, k):
    """The slopes of all stages of a step from t0 to t1 = t0 + h, in the rows of k behind the first; `k` is a guess."""
    n, guess = run.n, method.guess
    for i in range(method.s + 1):
        for j in range(n):
            guess[i, j] = k[i, j]
    for block in range(method.blocks):
        method.block = block
        if block == 0 and method.known:
            for j in range(n):
                k[1, j] = k[0, j]
            continue
        status = _solve_block(system, run, method, address, t0, t1, h, start, k, guess)
        if status != CONVERGED:
            return status
    return CONVERGED


@part
def _solve_block(system, run, method, address, t0, t1, h, start, k, guess):
    """Old derivatives lead to a second try, constant steps to a third one with derivatives at the stages."""
    n = run.n
    first, size = method.block_first, method.block_size
    begin, count = first[method.block], size[method.block]
    method.at_stages = 0
    while True:
        if not method.at_stages:
            if not method.jacobian_known:
                status = linearise_at_start(run, method, address, h)
                if status != 0:
                    return status
            method.h = h
            if method.factored[_matrix_number(method)] != h:
                status = _call(method.form, address)
                if status != 0 and not method.jacobian_fresh and status > 0:
                    method.jacobian_known = 0
                    continue
                if status != 0:
                    return status
        status = _iterate(system, run, method, address, t0, t1, h, start, k)
        if status != DIVERGED:
            break
        if not method.at_stages and not method.jacobian_fresh:
            method.jacobian_known = 0
        elif run.fixed and not method.at_stages:
            method.at_stages = 1
        else:
            break
        for i in range(begin, begin + count):
            for j in range(n):
                k[i + 1, j] = guess[i + 1, j]
    if method.at_stages:
        method.jacobian_known = 0
        method.at_stages = 0
    return status


@part
def _residuals(system, run, method, address, t0, t1, h, start, k):
    """r_i = F at the stages of the block, with derivatives if they are wanted."""
    n, y, yp = run.n, method.stage_y, method.stage_yp
    begin = method.block_first[method.block]
    count = method.block_size[method.block]
    a, c, r = method.a, method.c, method.r
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
        time = t1 if c[i] == 1.0 else t0 + c[i] * h
        status = residual(system, time, y, yp, r[i - begin])
        if status == 0 and method.at_stages:
            method.stage_t, method.slot = time, i
            status = _call(method.linearise, address)
        if status != 0:
            return status
    return 0


@part
def _iterate(system, run, method, address, t0, t1, h, start, k):
    """Newton's method for the block from the guess in k."""
    n = run.n
    begin = method.block_first[method.block]
    count = method.block_size[method.block]
    r, weights = method.r, method.weights
    most = _POLISHING if run.fixed else _MOST
    noise = _NOISE * max(wrms(start, weights), 1.0 if run.fixed else 0.0)
    rounding = max(_ROUNDING_FIXED if run.fixed and not method.at_stages else _ROUNDING, _PLATEAU * noise)
    tolerance = max(_TOLERANCE, noise)
    method.rate_factor = max(method.rate_factor, np.finfo(np.float64).eps) ** 0.8
    before, stalls, rest = 0.0, 0, np.inf
    for m in range(1, most + 1):
        status = _residuals(system, run, method, address, t0, t1, h, start, k)
        if status == 0 and method.at_stages:
            status = _call(method.form, address)
        if status != 0:
            return status
        system.newton_iterations += 1
        status = _call(method.correct, address)
        if status != 0:
            return status
        size = _size(method, r, count, weights, True)
        if not size < np.inf:
            return _diverged(run, method, h, start, k)
        for i in range(count):
            for j in range(n):
                k[begin + i + 1, j] -= r[i, j] / h
        if size <= noise:
            return CONVERGED
        if m > 1:
            ratio = size / before
            stalls = stalls + 1 if ratio > _STALLED else 0
            rest = _size(method, r, count, weights, False) if method.some_powers else size
            if rest <= rounding and (stalls >= _STALLS or (stalls > 0 and not run.fixed)):
                return CONVERGED
            if rest > rounding and (ratio > _WILD or (m > _LOOK and stalls >= _STALLS)):
                return _diverged(run, method, h, start, k)
            if stalls == 0:
                method.rate_factor = ratio / (1.0 - ratio)
            expected = method.rate_factor * rest * power(min(ratio, 1.0), most - m)
            if m > _LOOK and stalls == 0 and not run.fixed and expected > rounding:
                return _diverged(run, method, h, start, k)
            method.slowest = max(method.slowest, ratio)
        if method.rate_factor * size <= tolerance and not run.fixed:
            return CONVERGED
        before = size
    return CONVERGED if rest <= rounding else _diverged(run, method, h, start, k)


@part
def _size(method, r, count, weights, everything):
    """The norm of the corrections of a block; without variables of a higher index, whose round-off is divided by h."""
    total, power = 0.0, method.power
    lowest = smallest(power)
    for i in range(count):
        for j in range(weights.size):
            if everything or power[j] == lowest:
                total += (r[i, j] * weights[j]) ** 2
    return np.sqrt(total / (count * weights.size))


@part
def _diverged(run, method, h, start, k):
    """Keep the last correction for messages."""
    n, last = run.n, method.block_size[method.block] - 1
    r, correction, y = method.r, run.correction, run.y
    for j in range(n):
        correction[j] = r[last, j]
        y[j] = start[j] + h * k[method.s, j]
    run.cj = 1.0 / h
    return DIVERGED
