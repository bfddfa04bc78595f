r"""The stages of an implicit Runge-Kutta step in compiled code: their linear systems, and Newton's method for them.

The stages satisfy the coupled equations F(t_i, y_i, y'_i) = 0 with y_i and y'_i linear in the unknowns, which are
deviations of the stages from the start of the step, or their slopes; or F(t_i, x_i, x'_i, x''_i) = 0. The simplified
Newton method has the matrix sum_k W_k (x) F_k / h^k, where F_0 = F_y, F_1 = F_y' (and F_2 = F_x'') at the start of the
step, and the W_k are functions of the matrix A of the method. A transformation T makes them block triangular (Hairer,
Wanner: Solving Ordinary Differential Equations II, IV.8), with a real system

    sum_k w_k F_k / h^k    for each real eigenvalue, and a complex one for each pair,

each of n unknowns. Equal eigenvalues, as in singly implicit methods, share factors. The blocks are usually decoupled;
if A is not diagonalisable, blocks are coupled to later ones by F_0.

The record of a method starts with the fields of `STAGES`, including the functions that evaluate its stages.
"""

from __future__ import annotations

import numpy as np

from daedal.kernels.callbacks import UNEVALUABLE
from daedal.kernels.compilation import caller, entry, part
from daedal.kernels.complex_matrix import COMPLEX_MATRIX, factor_complex, solve_complex
from daedal.kernels.convergence import CONTINUE, CONVERGED, DIVERGED, ROUND_OFF, UNKNOWN, expect_full, judge, start
from daedal.kernels.linear import LINEAR
from daedal.kernels.matrix import BANDED, MATRIX, factor, solve
from daedal.kernels.norms import wrms
from daedal.kernels.records import ADDRESS, FLOAT, INTEGER, Struct, at, float_rows, optional, record_at
from daedal.kernels.signatures import f64, i64
from daedal.kernels.vectors import smallest
from daedal.methods.one_step import ATTEMPT
from daedal.methods.partial_derivatives import separate
from daedal.methods.run_record import RUN

SHARPEST = 2e10  # size of y, in units of the tolerance, above which errors may be round-off
_NEW_MATRICES = 60  # maximum number of iterations with a new matrix in each
_LEFT = 1e-6  # size of corrections, in units of the tolerance, that may be round-off
_ROUNDINGS = 50.0 * np.finfo(np.float64).eps  # round-off of a residual, including the transformation of the stages

STAGE_SYSTEM = Struct(
    "STAGE_SYSTEM",
    [
        ("m", INTEGER),  # stages
        ("levels", INTEGER),
        ("blocks", INTEGER),
        ("first", i64["blocks"]),  # row of the transformed stages; -1 for an additional matrix of the method
        ("width", i64["blocks"]),  # 1 for a real block, 2 for a complex one
        ("matrix", i64["blocks"]),  # the address of its matrix
        ("factors", i64["blocks"]),  # 0 if an earlier block has the same matrix
        ("weights", f64["blocks", "levels", 2]),  # w_k, real and imaginary part
        ("transform", f64["m", "m"]),
        ("inverse", f64["m", "m"]),
        ("coupled", INTEGER),
        ("coupling", optional(f64["m", "m"])),  # weights of F_0 above the blocks
    ],
)

STAGE_FIELDS = (
    ("linear", at(LINEAR)),
    # functions with the signature ATTEMPT: those below, and those of the method
    *[(name, ADDRESS) for name in ("solve", "iterate", "linearise", "factor", "correct", "residuals", "predict")],
    ("n", INTEGER),
    ("most_stages", INTEGER),
    ("leading", INTEGER),  # number of unknowns solved for first; all by default
    # F_0, F_1, ..., entry by entry
    ("levels", INTEGER),
    ("entries", INTEGER),
    ("derivatives", f64["levels", "entries"]),
    *[(name, i64["entries"]) for name in ("rows", "columns", "place")],
    ("jacobian_known", INTEGER),
    ("jacobian_fresh", INTEGER),  # whether the Jacobian is that of this step
    ("look", ADDRESS),  # working memory of `after_first_look`
    # systems of stages, one of which is current; the h of their factors, and the matrix of `linear`, or 0
    ("count", INTEGER),
    ("current", INTEGER),
    ("systems", i64["count"]),
    ("gamma", f64["count"]),
    ("factored", f64["count + 1"]),
    ("shared", INTEGER),  # whether they share matrices
    # unknowns, from which `unit` times a correction is subtracted, and corrections
    ("z", ADDRESS),
    ("unit", FLOAT),
    ("r", f64["most_stages", "n"]),
    ("hat", f64["most_stages * n"]),
    ("flat", INTEGER),  # whether to predict the values at the start of the step
    ("may_be_flat", INTEGER),
    *[(name, f64["n"]) for name in ("stage_y", "stage_yp", "residual")],
    # Newton's test: weights; weights of variables that must converge as well, and the effect of the round-off of F on
    # each
    ("weights", f64["n"]),
    ("others", f64["n"]),
    ("roundoff", f64["n"]),
    ("power", f64["n"]),  # index class of each variable minus one
    ("some_powers", INTEGER),  # whether some variables must converge as well
    ("discounts", INTEGER),  # whether the effect of the round-off of F is subtracted from corrections
    ("sharp", INTEGER),  # whether, for a tight tolerance, `discounts` applies to all variables
    ("searches", INTEGER),  # whether the run must determine the powers at the start
    ("unknown", FLOAT),  # rate / (1 - rate) for variables with a power, before a rate has been observed
)

STAGES = Struct("STAGES", STAGE_FIELDS)
"""The first fields of the record of a method whose stages are solved together."""

_call = caller(ATTEMPT)


# --- linear systems ---------------------------------------------------------------------------------------------------


@entry(ATTEMPT)
def linearise_first_order(address, t, h):
    """Compute F_y and F_y' at the start of the step."""
    run = record_at(address, RUN)
    stages = record_at(run.method, STAGES)
    return _linearise(run.system, stages.linear, run, stages, h)


@entry(ATTEMPT)
def factor_systems(address, t, h):
    """Factor all systems of the stages for a step h."""
    run = record_at(address, RUN)
    stages = record_at(run.method, STAGES)
    factored, current = stages.factored, stages.current
    if stages.shared:
        factored[:] = 0.0
    factored[current] = 0.0
    status = _factor(run.system, stages, record_at(stages.systems[current], STAGE_SYSTEM), t, h)
    if status != 0:
        return status
    factored[current] = h
    # without sensitivities, which are computed after the other unknowns
    together = stages.discounts and stages.leading == stages.n
    stages.sharp = 1 if together and wrms(run.phi[0], run.inverse_weights) > SHARPEST else 0
    if stages.discounts and (stages.some_powers or stages.sharp):
        return _reach_of_roundoff(stages.linear, run, stages, t)
    return 0


@entry(ATTEMPT)
def correct_stages(address, t, h):
    """Replace r by the solution of the stage systems with this right-hand side."""
    run = record_at(address, RUN)
    stages = record_at(run.method, STAGES)
    return _correct(stages, record_at(stages.systems[stages.current], STAGE_SYSTEM), t)


@part
def _linearise(system, linear, run, stages, h):
    f, place, cj = stages.derivatives, stages.place, stages.gamma[stages.current] / h
    stages.jacobian_known = 0
    stages.factored[:] = 0.0
    status = separate(system, linear.matrix, run, run.t, run.phi[0], run.yp, stages.residual, cj, h, place, f[0], f[1])
    if status == 0:
        stages.jacobian_known = 1
        stages.jacobian_fresh = 1
    return status


@part
def _factor(system, stages, blocks, t, h):
    for b in range(blocks.blocks):
        if blocks.factors[b]:
            system.factorisations += 1
            if blocks.width[b] == 1:
                status = _factor_real(stages, blocks, b, t, h)
            else:
                status = _factor_pair(stages, blocks, b, t, h)
            if status != 0:
                return status
    return 0


@part
def _factor_real(stages, blocks, b, t, h):
    matrix, weights = record_at(blocks.matrix[b], MATRIX), blocks.weights[b]
    data, place, f = matrix.data, stages.place, stages.derivatives
    first, second = weights[0, 0], weights[1, 0] / h
    if matrix.kind == BANDED:
        data[:] = 0.0
    for e in range(stages.entries):
        data[place[e]] = first * f[0, e] + second * f[1, e]
    if stages.levels > 2:
        third = weights[2, 0] / (h * h)
        for e in range(stages.entries):
            data[place[e]] += third * f[2, e]
    return factor(matrix, t)


@part
def _factor_pair(stages, blocks, b, t, h):
    matrix, weights = record_at(blocks.matrix[b], COMPLEX_MATRIX), blocks.weights[b]
    data, place, f = matrix.data, stages.place, stages.derivatives
    if matrix.kind == BANDED:
        data[:] = 0.0
    for q in range(2):
        first, second = weights[0, q], weights[1, q] / h
        for e in range(stages.entries):
            data[2 * place[e] + q] = first * f[0, e] + second * f[1, e]
        if stages.levels > 2:
            third = weights[2, q] / (h * h)
            for e in range(stages.entries):
                data[2 * place[e] + q] += third * f[2, e]
    return factor_complex(matrix, t)


@part
def _correct(stages, blocks, t):
    """r := T (the block triangular systems)^{-1} T^{-1} r; real and imaginary parts are interleaved."""
    n, m = stages.n, blocks.m
    r, hat, transform, inverse = stages.r, stages.hat, blocks.transform, blocks.inverse
    for b in range(blocks.blocks - 1, -1, -1):
        first, width = blocks.first[b], blocks.width[b]
        if first < 0:
            continue
        for q in range(width):
            begin = first * n + q
            for j in range(n):
                value = 0.0
                for l in range(m):
                    value += inverse[first + q, l] * r[l, j]
                hat[begin + width * j] = value
        if blocks.coupled:
            _couple(stages, blocks, b)
        right = hat[first * n : (first + width) * n]
        if width == 1:
            status = solve(record_at(blocks.matrix[b], MATRIX), t, right)
        else:
            status = solve_complex(record_at(blocks.matrix[b], COMPLEX_MATRIX), t, right)
        if status != 0:
            return status
    for i in range(m):
        for j in range(n):
            r[i, j] = 0.0
    for b in range(blocks.blocks):
        first, width = blocks.first[b], blocks.width[b]
        if first < 0:
            continue
        for q in range(width):
            begin = first * n + q
            for i in range(m):
                weight = transform[i, first + q]
                for j in range(n):
                    r[i, j] += weight * hat[begin + width * j]
    return 0


@part
def _couple(stages, blocks, b):
    """Move F_0 times the solutions of later blocks to the right-hand side."""
    n, entries, first, width = stages.n, stages.entries, blocks.first[b], blocks.width[b]
    hat, coupling, total = stages.hat, blocks.coupling, stages.stage_yp
    f, rows, columns = stages.derivatives, stages.rows, stages.columns
    for q in range(width):
        for j in range(n):
            total[j] = 0.0
        for c in range(b + 1, blocks.blocks):
            for p in range(blocks.width[c]):
                weight, begin = coupling[first + q, blocks.first[c] + p], blocks.first[c] * n + p
                if weight != 0.0:
                    for j in range(n):
                        total[j] += weight * hat[begin + blocks.width[c] * j]
        for e in range(entries):
            hat[first * n + q + width * rows[e]] -= f[0, e] * total[columns[e]]


@part
def _reach_of_roundoff(linear, run, stages, t):
    """The effect of the round-off of F, about eps (|F_y| |y| + |F_y'| |y'|), on the variables.

    Constraints propagate it to variables of index 2 and 3 divided by h and h^2. The inverse is applied to it with equal
    and with alternating signs, as in Higham's condition estimator (Accuracy and Stability of Numerical Algorithms, 2nd
    ed., SIAM 2002, 15.3), to avoid cancellation.
    """
    n, roundoff, trial = run.n, stages.roundoff, stages.residual
    f, rows, columns = stages.derivatives, stages.rows, stages.columns
    y, yp = run.phi[0], run.yp
    for j in range(n):
        roundoff[j] = 0.0
    for alternating in range(2):
        for i in range(n):
            trial[i] = 0.0
        for k in range(n // linear.matrix.n):
            first = k * linear.matrix.n
            for e in range(stages.entries):
                j = first + columns[e]
                trial[first + rows[e]] += _ROUNDINGS * (abs(f[0, e] * y[j]) + abs(f[1, e] * yp[j]))
        if alternating:
            for i in range(n // 2):
                trial[2 * i + 1] = -trial[2 * i + 1]
        status = solve(linear.matrix, t, trial)
        if status != 0:
            return status
        for j in range(n):
            roundoff[j] = max(roundoff[j], abs(trial[j]))
    return 0


# --- Newton's method --------------------------------------------------------------------------------------------------


@entry(ATTEMPT)
def solve_stages(address, t, h):
    """Solve for the unknowns of the stages; retry if derivatives are outdated or cannot be evaluated at the start."""
    run = record_at(address, RUN)
    return _solve(run.system, run, record_at(run.method, STAGES), address, t, h)


@entry(ATTEMPT)
def iterate_stages(address, t, h):
    """Solve for the unknowns of the stages with the current matrices, starting from the current values."""
    run = record_at(address, RUN)
    return _staggered(run.system, run, record_at(run.method, STAGES), address, t, h)


@part
def _solve(system, run, stages, address, t, h):
    stages.flat = 0
    while True:
        if not stages.jacobian_known:
            status = _call(stages.linearise, address, t, h)
            if status != 0:
                return status
        if stages.factored[stages.current] != h:
            status = _call(stages.factor, address, t, h)
            run.newton.factor = UNKNOWN
            if status != 0 and (stages.jacobian_fresh or status < 0):
                return status
            if status != 0:
                stages.jacobian_known = 0
                continue
        status = _call(stages.predict, address, t, h)
        if status == 0:
            status = _staggered(system, run, stages, address, t, h)
        if status == DIVERGED and not stages.jacobian_fresh:
            stages.jacobian_known = 0
            continue
        if status == UNEVALUABLE and stages.may_be_flat and not stages.flat and run.newton.iterations == 0:
            stages.flat = 1  # the polynomial of the last step leaves the domain of the equations
            continue
        if status == DIVERGED and stages.may_be_flat and run.fixed and not stages.some_powers:
            return _with_new_matrices(system, stages.linear, run, stages, address, t, h)
        return status


@part
def _with_new_matrices(system, linear, run, stages, address, t, h):
    """Newton's method from the start of the step, with new derivatives at the last stage in every iteration.

    For constant steps, which cannot be shortened: derivatives at both ends of the step may differ strongly.
    """
    progress, r, f = run.newton, stages.r, stages.derivatives
    m, n = record_at(stages.systems[stages.current], STAGE_SYSTEM).m, stages.n
    z, cj = float_rows(stages.z, m, n), stages.gamma[stages.current] / h
    expect_full(progress, _NEW_MATRICES, progress.noise, _LEFT, 0.3)
    start(progress, UNKNOWN)
    stages.flat = 1
    status = _call(stages.predict, address, t, h)
    while status == 0:
        status = _call(stages.residuals, address, t, h)
        if status == 0:
            y, yp = stages.stage_y, stages.stage_yp
            status = separate(system, linear.matrix, run, t, y, yp, stages.residual, cj, h, stages.place, f[0], f[1])
        stages.factored[:] = 0.0
        if status == 0:
            status = _call(stages.factor, address, t, h)
        if status == 0:
            status = _call(stages.correct, address, t, h)
        if status != 0:
            break
        system.newton_iterations += 1
        total = 0.0
        for i in range(m):
            total += wrms(r[i], stages.weights) ** 2
            for j in range(n):
                z[i, j] -= stages.unit * r[i, j]
        verdict = judge(progress, np.sqrt(total / m), 0.0)
        if verdict != CONTINUE:
            status = CONVERGED if verdict == ROUND_OFF else verdict
            break
    stages.jacobian_known = 0
    stages.factored[:] = 0.0
    return status


@part
def _staggered(system, run, stages, address, t, h):
    """Solve for all unknowns together, or for the leading ones and then the others, which are their sensitivities."""
    n, progress = stages.n, run.newton
    leading = n if stages.some_powers else stages.leading
    status = _iterate(system, run, stages, address, t, h, 0, leading)
    if status != CONVERGED or leading == n:
        return status
    rate, factor_of_rate, iterations = progress.rate, progress.factor, progress.iterations
    progress.factor = UNKNOWN
    status = _iterate(system, run, stages, address, t, h, leading, n)
    progress.rate, progress.factor = rate, factor_of_rate
    progress.iterations = max(iterations, progress.iterations)
    return status


@part
def _iterate(system, run, stages, address, t, h, first, last):
    """Apply Newton's method to some of the unknowns of all stages."""
    progress, r, weights = run.newton, stages.r, stages.weights
    m = record_at(stages.systems[stages.current], STAGE_SYSTEM).m
    z = float_rows(stages.z, m, stages.n)
    # Variables of index 2 and 3 inherit remaining corrections of others divided by h: their rate is measured.
    known = stages.unknown if stages.some_powers else progress.factor
    start(progress, max(known, np.finfo(np.float64).eps) ** 0.8)
    progress.followers = stages.some_powers
    while True:
        status = _call(stages.residuals, address, t, h)
        if status != 0:
            return status
        system.newton_iterations += 1
        status = _call(stages.correct, address, t, h)
        if status != 0:
            return status
        total, rest = 0.0, 0.0
        for i in range(m):
            if stages.some_powers:
                all_of_it, part_of_others = _beyond_roundoff(stages, r[i])
                total += all_of_it
                rest += part_of_others
            else:
                total += wrms(r[i, first:last], weights[first:last]) ** 2
        verdict = judge(progress, np.sqrt(total / m), np.sqrt(rest / m))
        if verdict == DIVERGED:
            return CONVERGED if stages.sharp and _is_roundoff(stages, m) else DIVERGED
        if verdict == ROUND_OFF:
            return CONVERGED
        for i in range(m):
            for j in range(first, last):
                z[i, j] -= stages.unit * r[i, j]
        if verdict != CONTINUE:
            return CONVERGED


@part
def _is_roundoff(stages, m):
    """Whether the corrections of all stages are smaller than the effect of the round-off of F."""
    for i in range(m):
        for j in range(stages.n):
            if not abs(stages.r[i, j]) <= stages.roundoff[j]:
                return False
    return True


@part
def _beyond_roundoff(stages, correction):
    """Mean squares of a correction in both weights, minus the effect of the round-off of F."""
    n, roundoff = correction.size, stages.roundoff
    weights, others = stages.weights, stages.others
    total, rest = 0.0, 0.0
    for j in range(n):
        size = abs(correction[j])
        size = 0.0 if size <= roundoff[j] else size - roundoff[j]  # NaN is preserved
        total += (size * weights[j]) ** 2
        rest += (size * others[j]) ** 2
    return total / n, rest / n


@part
def share_of_class(run, method, h):
    """Factor of the errors of variables of index 2; those of index 3 use its square.

    Hairer and Wanner (VII.6) use h, which depends on the unit of time. Here it is min(1, h / tau), where tau is the
    time in which the variables of index 1 change by their size. It must decrease with h: y' at the start of a step,
    which the estimate uses, contains the error of such variables from the previous step.
    """
    n = run.n
    y, yp = run.phi[0], run.yp
    weights, power = run.inverse_weights, method.power
    size, slope, lowest = 0.0, 0.0, smallest(power)  # only of index 1, unless all variables have an index-2 component
    for i in range(n):
        if power[i] == lowest:
            size += (y[i] * weights[i]) ** 2
            slope += (yp[i] * weights[i]) ** 2
    return abs(h) * np.sqrt(slope / size) if slope * h * h < size else 1.0
