r"""The linear systems of Radau IIA in compiled code: F_y and F_y', factors for every eigenvalue of W, corrections.

The simplified Newton method for the stages has the matrix I (x) F_y + (W / h) (x) F_y'. With T^{-1} W T block diagonal
it falls apart (Hairer, Wanner: Solving Ordinary Differential Equations II, IV.8) into

    (F_y + (g/h) F_y') x = b                                    for the real eigenvalue g,
    (F_y + ((a + ib)/h) F_y') (x_1 + i x_2) = b_1 + i b_2       for each pair a +- ib.

The latter is a real system of 2n unknowns; taken in turn, x_1[0], x_2[0], x_1[1], ..., they leave a band a band, and
what is sparse has the same structure with blocks of 2 x 2. So all of them are matrices of the same kind.
"""

from __future__ import annotations

import numpy as np

from daedal.kernels.compilation import entry, inlined, part
from daedal.kernels.linear import LINEAR
from daedal.kernels.matrix import BANDED, MATRIX, factor, solve
from daedal.kernels.records import ADDRESS, FLOAT, INTEGER, Struct, at, record_at
from daedal.kernels.signatures import f64, i64
from daedal.methods.one_step import ATTEMPT
from daedal.methods.partial_derivatives import separate
from daedal.methods.run_record import RUN

MOST_STAGES, MOST_PAIRS = 7, 3
_ROUNDINGS = 50.0 * np.finfo(np.float64).eps  # of a residual, with what the transformation of the stages adds

RADAU = Struct(
    "RADAU",
    [
        ("linear", at(LINEAR)),
        ("linearise", ADDRESS),
        ("factor", ADDRESS),
        ("correct", ADDRESS),
        ("first", MATRIX),
        ("second", MATRIX),
        ("third", MATRIX),
        # dF/dy and dF/dy', entry by entry, and the places of an entry in the matrices
        ("entries", INTEGER),
        ("f_y", f64["entries"]),
        ("f_yp", f64["entries"]),
        ("look", ADDRESS),  # working memory of `first_look`
        ("rows", i64["entries"]),
        ("columns", i64["entries"]),
        ("place", i64["entries"]),
        ("pair_place", i64["entries"]),  # of the upper left entry of its 2 x 2 block
        ("pair_next", i64["entries"]),  # of the upper right one
        # the methods, one after the other; of tables the first rows and columns are in use
        ("stages", i64[3]),
        ("c", f64[3, MOST_STAGES]),
        ("w", f64[3, MOST_STAGES, MOST_STAGES]),
        ("d", f64[3, MOST_STAGES]),
        ("gamma", f64[3]),
        ("pairs", f64[3, MOST_PAIRS, 2]),
        ("transform", f64[3, MOST_STAGES, MOST_STAGES]),
        ("inverse", f64[3, MOST_STAGES, MOST_STAGES]),
        ("share", f64[3]),
        ("middle", f64[3]),
        ("value", f64[3, MOST_STAGES]),
        ("slope", f64[3, MOST_STAGES]),
        ("scheme", INTEGER),  # which of them is in use
        ("lowest", INTEGER),
        ("highest", INTEGER),
        # stages: deviations from the start, residuals and corrections, corrections of the decoupled systems
        ("n", INTEGER),
        ("z", f64[MOST_STAGES, "n"]),
        ("r", f64[MOST_STAGES, "n"]),
        ("hat", f64[f"{MOST_STAGES} * n"]),
        *[(name, f64["n"]) for name in ("stage_y", "stage_yp", "residual", "defect")],
        ("weights", f64["n"]),  # of corrections
        ("others", f64["n"]),  # plain ones of variables of index 2 and 3
        ("power", f64["n"]),  # of h: 1 and 2 for these
        ("roundoff", f64["n"]),  # how far that of F reaches into each variable
        ("leading", INTEGER),  # unknowns that are found first; all of them by default
        ("some_powers", INTEGER),
        ("searches", INTEGER),  # whether the owner of the run is to find the powers at the start
        # state
        ("h_matrix", FLOAT),  # 0: no factors
        ("scheme_matrix", INTEGER),
        ("jacobian_known", INTEGER),
        ("jacobian_fresh", INTEGER),  # whether it is one of this step
        ("iterations", INTEGER),
        ("rate", FLOAT),
        ("rate_factor", FLOAT),  # rate / (1 - rate)
        ("smooth_rate", FLOAT),  # for the choice of the stages
        ("troubled", INTEGER),  # whether Newton's method has failed since the last step
        ("since_change", INTEGER),  # steps with these stages
        ("h_before", FLOAT),
        ("error_before", FLOAT),
    ],
)


@inlined
def stages_of(method):
    return method.stages[method.scheme]


@inlined
def gamma_of(method):
    return method.gamma[method.scheme]


@inlined
def _pair(method, p):
    return method.first if p == 0 else method.second if p == 1 else method.third


@entry(ATTEMPT)
def radau_linearise(address, t, h):
    """F_y and F_y' at the start of the step."""
    run = record_at(address, RUN)
    method = record_at(run.method, RADAU)
    return _linearise(run.system, method.linear, run, method, h)


@entry(ATTEMPT)
def radau_factor(address, t, h):
    """The factors of all systems for a step h."""
    run = record_at(address, RUN)
    method = record_at(run.method, RADAU)
    linear = method.linear
    status = _factor(run.system, linear, method, t, h)
    return _reach_of_roundoff(linear, run, method, t) if status == 0 and method.some_powers else status


@entry(ATTEMPT)
def radau_correct(address, t, h):
    """r := the correction of the stages."""
    run = record_at(address, RUN)
    method = record_at(run.method, RADAU)
    return _correct(method.linear, method, run.n, t)


@part
def _linearise(system, linear, run, method, h):
    y, yp, r, place, f_y, f_yp = run.phi[0], run.yp, method.residual, method.place, method.f_y, method.f_yp
    method.jacobian_known = 0
    method.h_matrix = 0.0
    status = separate(system, linear.matrix, run, run.t, y, yp, r, gamma_of(method) / h, h, place, f_y, f_yp)
    if status != 0:
        return status
    method.jacobian_known = 1
    method.jacobian_fresh = 1
    return 0


@part
def _factor(system, linear, method, t, h):
    matrix, scheme = linear.matrix, method.scheme
    f_y, f_yp = method.f_y, method.f_yp
    data, place = matrix.data, method.place
    first, following = method.pair_place, method.pair_next
    g = gamma_of(method) / h
    if matrix.kind == BANDED:
        data[:] = 0.0
    for e in range(method.entries):
        data[place[e]] = f_y[e] + g * f_yp[e]
    method.h_matrix = 0.0
    system.factorisations += 1
    status = factor(matrix, t)
    if status != 0:
        return status
    pairs = method.pairs[scheme]
    for p in range(stages_of(method) // 2):
        pair = _pair(method, p)
        columns = pair.data
        a, b = pairs[p, 0] / h, pairs[p, 1] / h
        if pair.kind == BANDED:
            columns[:] = 0.0
        for e in range(method.entries):
            real, imaginary = f_y[e] + a * f_yp[e], b * f_yp[e]
            columns[first[e]] = real
            columns[first[e] + 1] = imaginary
            columns[following[e]] = -imaginary
            columns[following[e] + 1] = real
        system.factorisations += 1
        status = factor(pair, t)
        if status != 0:
            return status
    method.h_matrix = h
    method.scheme_matrix = scheme
    return 0


@part
def _reach_of_roundoff(linear, run, method, t):
    """How far the round-off of F, about eps (|F_y| |y| + |F_y'| |y'|), reaches into the variables.

    Constraints pass it on to variables of index 2 and 3 divided by h and h^2. The inverse acts on it with equal signs
    and with alternating ones, as in Higham's estimate of condition numbers (Accuracy and Stability of Numerical
    Algorithms, 2nd ed., SIAM 2002, 15.3), lest it should cancel.
    """
    n, roundoff, trial = run.n, method.roundoff, method.residual
    f_y, f_yp = method.f_y, method.f_yp
    rows, columns = method.rows, method.columns
    y, yp = run.phi[0], run.yp
    for j in range(n):
        roundoff[j] = 0.0
    for alternating in range(2):
        for i in range(n):
            trial[i] = 0.0
        for k in range(n // linear.matrix.n):
            first = k * linear.matrix.n
            for e in range(method.entries):
                j = first + columns[e]
                trial[first + rows[e]] += _ROUNDINGS * (abs(f_y[e] * y[j]) + abs(f_yp[e] * yp[j]))
        if alternating:
            for i in range(n // 2):
                trial[2 * i + 1] = -trial[2 * i + 1]
        status = solve(linear.matrix, t, trial)
        if status != 0:
            return status
        for j in range(n):
            roundoff[j] = max(roundoff[j], abs(trial[j]))
    return 0


@part
def _correct(linear, method, n, t):
    """r := T (the decoupled systems)^{-1} T^{-1} r; parts of a pair stand in turn."""
    s = stages_of(method)
    r, hat = method.r, method.hat
    transform, inverse = method.transform[method.scheme], method.inverse[method.scheme]
    for i in range(s):
        begin, stride = _where(i, n)
        for j in range(n):
            value = 0.0
            for l in range(s):
                value += inverse[i, l] * r[l, j]
            hat[begin + stride * j] = value
    status = solve(linear.matrix, t, hat[:n])
    if status != 0:
        return status
    for p in range(s // 2):
        status = solve(_pair(method, p), t, hat[(1 + 2 * p) * n : (3 + 2 * p) * n])
        if status != 0:
            return status
    for i in range(s):
        for j in range(n):
            r[i, j] = 0.0
    for l in range(s):
        begin, stride = _where(l, n)
        for i in range(s):
            weight = transform[i, l]
            for j in range(n):
                r[i, j] += weight * hat[begin + stride * j]
    return 0


@inlined
def _where(i, n):
    """Where row i of the transformed stages begins, and how far its components are apart."""
    return (0, 1) if i == 0 else ((1 + 2 * ((i - 1) // 2)) * n + (i - 1) % 2, 2)
