r"""Half-explicit Runge-Kutta steps for y' = f(t, y, z), 0 = g(t, y), in compiled code.

Brasey and Hairer (2.1), (2.2): the constraint at the point of stage i determines Z_i,

    g(t_0 + cb_i h, y_0 + h sum_{j<i} ab_ij k_j + h ab_ii f(Y_i, Z_i)) = 0,

by a simplified Newton method whose matrix g_y f_z is formed once for a step. Rows of g that contain z (the auxiliary
equations 0 = k(y, z, u) of (1.4)) are imposed at (Y_i, Z_i).

Inside the step, y is a polynomial that matches values and slopes at both ends and slopes at two interior points. Error
estimates of half-explicit methods do not detect errors of quantities determined by the constraint, which the stages
satisfy exactly; therefore the error test includes the slope defect, at the second interior point, of the polynomial
constructed without that point.

If (y, z) holds a solution and its sensitivities, copies of the leading unknowns, the full matrix is block triangular
with equal diagonal blocks. One block is used for all; the neglected blocks are nilpotent and cost one iteration.
"""

from __future__ import annotations

import numpy as np

from daedal.kernels.callbacks import CALLBACK, RAISED, UNEVALUABLE, fetch, nothing
from daedal.kernels.compilation import entry, part
from daedal.kernels.dense import LU, factor_lu, solve_lu
from daedal.kernels.endings import Ending
from daedal.kernels.five_point import DIVISOR, PLACES, WEIGHTS
from daedal.kernels.records import FLOAT, INTEGER, Struct, record_at
from daedal.kernels.signatures import f64, i64
from daedal.kernels.system import HOOK_CHANGED, after_step
from daedal.kernels.vectors import copy
from daedal.methods.half_explicit.half_explicit_step import NODES, TWO_ESTIMATES
from daedal.methods.one_step import ATTEMPT, close_polynomial, combine
from daedal.methods.run_record import RUN, STEP, differences

_CALLBACK_RAISED, _UNEVALUABLE = int(Ending.CALLBACK_RAISED), int(Ending.UNEVALUABLE)
_MAX_ITERATIONS = 25
# relative change of y caused by an increment of z: target, smallest, largest
_MOVE, _LEAST_MOVE, _LARGEST_MOVE = 1e-6, 1e-8, 1e-2
_MOST_TRIALS, _FURTHER = 8, 1e6
_NEGLIGIBLE = 1e-3  # stalled changes below this fraction of the tolerance count as round-off
_ROUNDOFF_LEVEL = 1e-13
_STANDSTILL = 1e-10  # change of the leading unknowns, relative to z, below which they count as converged
_FLOW_INCREMENT = 0.1  # increment of differences along the flow, as a fraction of the step
_FIRST, _SECOND = 0.4, 0.75  # points where the slope of a step is checked
# maximum of theta^2 (1 - theta)^3, the form of the error, divided by its slope at the second point
_ERROR_PER_DEFECT = 0.4**2 * 0.6**3 / (_SECOND * (1.0 - _SECOND) ** 2 * (5.0 * _SECOND - 2.0))

GENERAL = Struct(
    "GENERAL",
    [
        ("n_y", INTEGER),
        ("n_z", INTEGER),
        ("copies", INTEGER),
        ("stages", INTEGER),
        ("known_first", INTEGER),
        ("error_kind", INTEGER),
        ("maximum_norm", INTEGER),
        ("a", f64["stages", "stages"]),
        ("ab", f64["stages", "stages"]),
        ("c", f64["stages"]),
        ("cb", f64["stages"]),
        ("e", f64["stages"]),
        ("e2", f64["stages"]),
        ("f", CALLBACK),
        ("g", CALLBACK),
        ("contains_z", i64["n_z"]),  # 1 for the rows of g that depend on z
        ("k", f64["stages + 2", "n_y"]),
        ("stage", f64["n_y"]),
        ("bar", f64["n_y"]),
        ("middle", f64["n_y"]),  # y and its slope inside the step
        ("middle_slope", f64["n_y"]),
        # c_4 and c_5: the step is its cubic plus theta^2 (1 - theta)^2 (c_4 + c_5 (1 - theta))
        ("quartic", f64["n_y"]),
        ("quintic", f64["n_y"]),
        ("first_z", f64["n_z"]),
        ("second_z", f64["n_z"]),
        ("z", f64["n_z"]),
        ("z_start", f64["n_z"]),
        ("residual", f64["n_z"]),
        ("base", f64["n_z"]),  # residual and `bar` while a matrix is formed
        ("base_bar", f64["n_y"]),
        ("shifted", f64["n_z"]),
        ("slope", f64["n_y"]),
        ("matrix", LU),
        ("matrix_known", INTEGER),
        ("moved", FLOAT),  # change of the stage point in the last Newton iteration, in units of the tolerance
    ],
)


@entry(STEP)
def general_begin(address):
    """Compute z and the slope at the start."""
    run = record_at(address, RUN)
    method = record_at(run.method, GENERAL)
    n_y, n_z = method.n_y, method.n_z
    y, z_start = run.y, method.z_start
    for i in range(n_z):
        z_start[i] = y[n_y + i]
    slopes = method.k
    first = slopes[0 if method.known_first else method.stages + 1]
    status = _evaluate(run.system, method.f, run.t, y[:n_y], z_start, first)
    if status != 0:
        return _CALLBACK_RAISED if status == RAISED else _UNEVALUABLE
    return 0


@entry(ATTEMPT)
def general_attempt(address, t, h):
    """Compute the stages from phi_0, y_1 and its error."""
    run = record_at(address, RUN)
    return _attempt(run.system, record_at(run.method, GENERAL), run, t, h)


@entry(ATTEMPT)
def general_accept(address, t, h):
    """Compute z at the end of the step, and store the polynomial of the step."""
    run = record_at(address, RUN)
    return _accept(run.system, record_at(run.method, GENERAL), run, t, h)


@part
def _evaluate(system, callback, t, y, z, target):
    """target = f or g at (t, y, z)."""
    system.residuals += 1
    return fetch(callback, t, y, z, nothing(), target)


@part
def _stage_residual(system, method, run, t, h, i, stage, z, slope, residual):
    """Rows without z: g at the stage point, divided by h ab_ii. Rows with z: g at the stage. `slope` becomes f."""
    n_y, n_z = method.n_y, method.n_z
    ab, cb, start = method.ab, method.cb, differences(run)[0]
    k, bar, own = method.k, method.bar, method.shifted
    rtol, atol, contains = run.rtol, run.atol, method.contains_z
    status = _evaluate(system, method.f, t, stage, z, slope)
    if status != 0:
        return status
    moved, largest, change = 0.0, 0.0, 0.0
    for j in range(n_y):
        value = ab[i, i] * slope[j]
        for l in range(i):
            if ab[i, l] != 0.0:
                value += ab[i, l] * k[l, j]
        value = start[j] + h * value
        move = abs(value - bar[j])
        moved = max(moved, move / (rtol[j] * max(abs(value), abs(start[j])) + atol[j]))
        largest, change = max(largest, abs(value)), max(change, move)
        bar[j] = value
    method.moved = 0.0 if change <= _ROUNDOFF_LEVEL * largest else moved
    status = _evaluate(system, method.g, run.t + cb[i] * h, bar, z, residual)
    if status != 0:
        return status
    mixed = False
    for row in range(n_z):
        residual[row] /= h * ab[i, i]
        mixed = mixed or contains[row] != 0
    if mixed:
        status = _evaluate(system, method.g, t, stage, z, own)
        for row in range(n_z):
            if contains[row]:
                residual[row] = own[row]
    return status


@part
def _increment(system, method, run, t, h, j, stage, z, base_slope):
    """An increment of z_j that changes h f slightly, but by more than the round-off of y in g."""
    slope, largest, scale = method.middle_slope, 0.0, 0.0
    n_y = method.n_y // method.copies
    for l in range(method.n_z // method.copies):
        largest = max(largest, abs(z[l]))
    for l in range(n_y):
        scale = max(scale, abs(stage[l]), abs(h * base_slope[l]))
    kept, usual = z[j], max(1e-7 * max(abs(z[j]), 1e-3 * largest), 1e-3 * run.atol[method.n_y + j])
    if usual == 0.0:
        usual = 1e-7
    delta = usual
    for _ in range(_MOST_TRIALS):
        z[j] = kept + delta
        status = _evaluate(system, method.f, t, stage, z, slope)
        z[j] = kept
        if status != 0:
            return usual
        move = 0.0
        for l in range(n_y):
            size = max(abs(stage[l]), abs(h * base_slope[l]))
            if size == 0.0:  # a variable that is zero is assumed to be as large as the others
                size = scale
            if size > 0.0:
                move = max(move, abs(h * (slope[l] - base_slope[l])) / size)
        if _LEAST_MOVE <= move <= _LARGEST_MOVE:
            return delta
        delta *= _MOVE / move if move > 0.0 else _FURTHER
    return usual  # f does not depend on z_j


@part
def _form_matrix(system, method, run, t, h, i, stage, z, slope, residual):
    """The derivative of the residual with respect to z, by differences; `slope` and `residual` are evaluated at z."""
    n_y, n_z, leading = method.n_y, method.n_z, method.matrix.n
    columns, base_slope = method.matrix.data, method.middle
    base, bar = method.base, method.base_bar
    copy(base, residual)
    copy(bar, method.bar)
    for l in range(n_y):
        base_slope[l] = slope[l]
    for j in range(leading):
        kept, delta = z[j], _increment(system, method, run, t, h, j, stage, z, base_slope)
        z[j] = kept + delta
        status = _stage_residual(system, method, run, t, h, i, stage, z, slope, residual)
        z[j] = kept
        if status != 0:
            return status
        for row in range(leading):
            columns[j, row] = (residual[row] - base[row]) / delta
    for row in range(n_z):
        residual[row] = base[row]
    for l in range(n_y):
        method.bar[l] = bar[l]
    method.matrix_known = 1
    system.jacobians += 1
    system.factorisations += 1
    return UNEVALUABLE if factor_lu(method.matrix) != 0 else 0


@part
def _improve(method, z, residual):
    """Correct z; return the sizes of the correction (copies are rescaled), of its leading entries, and of z."""
    n, size, change, leading = method.matrix.n, 0.0, 0.0, 0.0
    for k in range(method.copies):
        part = residual[k * n : (k + 1) * n]
        solve_lu(method.matrix, part)
        own, moved = 0.0, 0.0
        for j in range(n):
            z[k * n + j] -= part[j]
            own = max(own, abs(z[k * n + j]))
            moved = max(moved, abs(part[j]))
        if not moved < np.inf:
            return moved, moved, own
        if k == 0:
            leading = moved
        if size == 0.0:
            size, change = own, moved
        elif own > 0.0:
            change = max(change, moved * size / own)
    return change, leading, size


@part
def _solve_stage(system, method, run, t, h, i, stage, z, slope):
    """Compute Z_i by simplified Newton iterations, with a new matrix if they converge slowly."""
    residual, late = method.residual, 1 if method.copies == 1 else 2
    before, change, size, fresh = np.inf, np.inf, 0.0, False
    leading, leading_before = np.inf, np.inf
    for iteration in range(_MAX_ITERATIONS):
        status = _stage_residual(system, method, run, t, h, i, stage, z, slope, residual)
        if status != 0:
            return status
        # Rounding errors of g enter z divided by h, which bounds the attainable accuracy.
        stalled = iteration > late and change >= 0.3 * before and method.moved <= _NEGLIGIBLE
        if change <= 1e-14 * size or stalled:
            return 0
        # Copies lag the leading unknowns by one iteration; once these have converged, no new matrix is needed.
        moving = method.copies == 1 or leading > _STANDSTILL * size
        if iteration > 1 and leading > 0.2 * leading_before and moving:
            if fresh and leading > 2.0 * leading_before:
                return UNEVALUABLE
            method.matrix_known = 0
        before, leading_before = change, leading
        if not method.matrix_known:
            status = _form_matrix(system, method, run, t, h, i, stage, z, slope, residual)
            if status != 0:
                return status
            fresh = True
        system.newton_iterations += 1
        change, leading, size = _improve(method, z, residual)
        if not change < np.inf:
            return UNEVALUABLE
    return UNEVALUABLE


@part
def _hidden(system, method, t, h, y, z, slope, enough):
    """Compute z at a point from g_y f + g_t = 0 (3.6), by differences along the flow; rows with z use g = 0 itself."""
    n_y, n_z = method.n_y, method.n_z
    residual, own, bar = method.residual, method.shifted, method.bar
    contains = method.contains_z
    before, delta, late = np.inf, _FLOW_INCREMENT * h, 0 if method.copies == 1 else 1
    for iteration in range(_MAX_ITERATIONS):
        status = _evaluate(system, method.f, t, y, z, slope)
        if status != 0:
            return status
        for row in range(n_z):
            residual[row] = 0.0
        for side in range(4):
            move = PLACES[side] * delta
            weight = WEIGHTS[side] / (DIVISOR * delta)
            for j in range(n_y):
                bar[j] = y[j] + move * slope[j]
            status = _evaluate(system, method.g, t + move, bar, z, own)
            if status != 0:
                return status
            for row in range(n_z):
                residual[row] += weight * own[row]
        status = _evaluate(system, method.g, t, y, z, own)
        if status != 0:
            return status
        for row in range(n_z):
            if contains[row]:
                residual[row] = own[row]
        change, _, size = _improve(method, z, residual)
        if change <= enough * max(size, 1e-300) or (iteration > late and change >= 0.5 * before):
            break
        before = change
    return _evaluate(system, method.f, t, y, z, slope)


@part
def _attempt(system, method, run, t, h):
    """All stages from phi_0; y_1 in run.y and the multiplier of the last stage in method.z."""
    n_y, n_z, s = method.n_y, method.n_z, method.stages
    start, y, k = differences(run)[0], run.y, method.k
    a, c, stage = method.a, method.c, method.stage
    z, z_start, bar = method.z, method.z_start, method.bar
    method.matrix_known = 0
    for i in range(n_z):
        z[i] = z_start[i]
    for i in range(method.known_first, s):
        combine(a[i], i, k, start, h, 0, n_y, stage)
        status = _solve_stage(system, method, run, run.t + c[i] * h, h, i, stage, z, k[i])
        if status != 0:
            return status
    for j in range(n_y):
        y[j] = stage[j] if method.known_first else bar[j]
    if not run.fixed:
        run.error_of_step = _error(method, run, h)
        if not run.error_of_step <= 1.0:
            return 0
    return _look_inside(system, method, run, t, h)


@part
def _look_inside(system, method, run, t, h):
    """Slopes and z at the end and at two interior points, and the interpolation error computed from them."""
    n_y, n_z, s = method.n_y, method.n_z, method.stages
    y, k, slope = run.y, method.k, method.slope
    z, z_start, missing = method.z, method.z_start, method.middle
    first_z, second_z = method.first_z, method.second_z
    quartic, quintic = method.quartic, method.quintic
    if method.known_first:
        for j in range(n_y):
            slope[j] = k[s - 1, j]
    else:
        status = _hidden(system, method, t, h, y[:n_y], z, slope, 1e-12)
        if status != 0:
            return status
    for j in range(n_y):
        quartic[j], quintic[j] = 0.0, 0.0
    for i in range(n_z):
        first_z[i] = z_start[i] + _FIRST * (z[i] - z_start[i])
    status = _missing_slope(system, method, run, h, _FIRST, first_z)
    if status != 0:
        return status
    for j in range(n_y):
        quartic[j] = missing[j] / (2.0 * _FIRST * (1.0 - _FIRST) * (1.0 - 2.0 * _FIRST))
    for i in range(n_z):
        second_z[i] = z_start[i] + _SECOND * (z[i] - z_start[i])
        second_z[i] += _SECOND * (1.0 - _SECOND) * _bulge(z_start[i], first_z[i], z[i])
    status = _missing_slope(system, method, run, h, _SECOND, second_z)
    if status != 0:
        return status
    total, start, rtol, atol = 0.0, differences(run)[0], run.rtol, run.atol
    for j in range(n_y):
        # theta^2 (1 - theta)^3 has zero slope at the first point, so the value found there is unaffected
        quintic[j] = missing[j] / (_SECOND * (1.0 - _SECOND) ** 2 * (2.0 - 5.0 * _SECOND))
        value = _ERROR_PER_DEFECT * abs(missing[j]) / (rtol[j] * max(abs(y[j]), abs(start[j])) + atol[j])
        total = max(total, value) if method.maximum_norm else total + value * value
    if not run.fixed:
        run.error_of_step = max(run.error_of_step, total if method.maximum_norm else np.sqrt(total / n_y))
    return 0


@part
def _missing_slope(system, method, run, h, theta, z):
    """z at t_0 + theta h, and the defect of the current polynomial in h y' there, stored in ``method.middle``."""
    n_y, s = method.n_y, method.stages
    middle, middle_slope = method.middle, method.middle_slope
    k = method.k
    first, last, y = k[0 if method.known_first else s + 1], method.slope, run.y
    for j in range(n_y):
        middle[j] = _inside(method, run, y[j], h, theta, j)
    status = _hidden(system, method, run.t + theta * h, h, middle, z, middle_slope, 1e-10)
    for j in range(n_y):
        slope = 6.0 * theta * (1.0 - theta) * (y[j] - differences(run)[0, j])
        slope += h * ((1.0 - theta) * (1.0 - 3.0 * theta) * first[j] + theta * (3.0 * theta - 2.0) * last[j])
        slope += method.quartic[j] * 2.0 * theta * (1.0 - theta) * (1.0 - 2.0 * theta)
        middle[j] = h * middle_slope[j] - slope
    return status


@part
def _inside(method, run, end, h, theta, j):
    """The polynomial of the step at t_0 + theta h; phi_0 are the values at its start."""
    s = method.stages
    first = method.k[0 if method.known_first else s + 1, j]
    start, last = differences(run)[0, j], method.slope[j]
    change, u = end - start, theta * (theta - 1.0)
    cubic = u * ((1.0 - 2.0 * theta) * change + h * ((theta - 1.0) * first + theta * last))
    higher = method.quartic[j] + (1.0 - theta) * method.quintic[j]
    return start + theta * change + cubic + u * u * higher


@part
def _bulge(start, first, end):
    """The b for which start + theta (end - start) + theta (1 - theta) b passes through the first interior point."""
    return (first - start - _FIRST * (end - start)) / (_FIRST * (1.0 - _FIRST))


@part
def _size(method, run, h, weights, start, y):
    n_y, s = method.n_y, method.stages
    k, rtol, atol = method.k, run.rtol, run.atol
    total = 0.0
    for j in range(n_y):
        value = 0.0
        for i in range(s):
            value += weights[i] * k[i, j]
        value = abs(h * value) / (rtol[j] * max(abs(y[j]), abs(start[j])) + atol[j])
        total = max(total, value) if method.maximum_norm else total + value * value
    return total if method.maximum_norm else np.sqrt(total / n_y)


@part
def _error(method, run, h):
    """The error of the step in units of the tolerance."""
    start, y = differences(run)[0], run.y
    size = _size(method, run, h, method.e, start, y)
    if method.error_kind == TWO_ESTIMATES and size > 0.0:
        size = size * size / (size + 0.01 * _size(method, run, h, method.e2, start, y))
    return size


@part
def _accept(system, method, run, t, h):
    n_y, n_z, s = method.n_y, method.n_z, method.stages
    y, yp, k = run.y, run.yp, method.k
    z, z_start, slope = method.z, method.z_start, method.slope
    for i in range(n_z):
        y[n_y + i] = z[i]
    if system.hook != 0:
        status = after_step(system, t, h, y)
        if status != 0 and status != HOOK_CHANGED:
            return status
    _keep_polynomial(method, run, y, z_start, h)
    for j in range(n_y):
        yp[j] = slope[j]
        k[0 if method.known_first else s + 1, j] = slope[j]
    for i in range(n_z):
        y[n_y + i] = z[i]
        z_start[i] = z[i]
    close_polynomial(run, h, NODES)
    return 0


@part
def _keep_polynomial(method, run, y, z_start, h):
    """The polynomial of the step by its values at equidistant points: y, and the cubic through four values of z."""
    phi, yp, n_y, n_z = differences(run), run.yp, method.n_y, method.n_z
    first_z, second_z = method.first_z, method.second_z
    for j in range(n_y):
        for q in range(NODES - 1, 0, -1):
            phi[q, j] = _inside(method, run, y[j], h, 1.0 - q / NODES, j)
        phi[NODES, j], phi[0, j] = phi[0, j], y[j]
    for i in range(n_z):
        j = n_y + i
        change, bulge = y[j] - z_start[i], _bulge(z_start[i], first_z[i], y[j])
        third = second_z[i] - z_start[i] - _SECOND * change - _SECOND * (1.0 - _SECOND) * bulge
        third /= _SECOND * (1.0 - _SECOND) * (_SECOND - _FIRST)
        for q in range(NODES + 1):
            theta = 1.0 - q / NODES
            phi[q, j] = z_start[i] + theta * (change + (1.0 - theta) * (bulge + (theta - _FIRST) * third))
        yp[j] = (change - bulge - (1.0 - _FIRST) * third) / h
