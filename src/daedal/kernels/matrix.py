"""The iteration matrix G = dF/dy + cj dF/dy': evaluation by differences or a user's function, factorisation, solution.

One interface serves dense, banded and general sparse storage. `data` holds, column by column,

    DENSE     all n rows,
    BANDED    LAPACK's band storage with 2 ml + mu + 1 rows,
    SPARSE    the entries of the pattern (compressed columns), factored by a callback.

If the unknowns are copies of n leading ones, such as a solution and its sensitivities, G is that of the leading ones:
the diagonal blocks are equal, and Newton's method neglects the others (Maly, Petzold: Appl. Numer. Math. 20 (1996)
57-79, the simultaneous corrector).

Difference quotients perturb whole groups of columns that share no row (Curtis, Powell and Reid).
"""

from math import copysign, sqrt

import numpy as np

from daedal.kernels.callbacks import CALLBACK, UNEVALUABLE, call, call_with, is_given
from daedal.kernels.compilation import inlined, part
from daedal.kernels.dense import (
    ARGUMENTS,
    INFO,
    ML,
    MODE,
    MU,
    ONE,
    ROWS,
    SINGULAR,
    N,
    argument,
    factor_dense,
    solve_dense,
)
from daedal.kernels.externals import dgbtrf, dgbtrs
from daedal.kernels.records import FLOAT, INTEGER, Struct, data_of, float_rows, floats
from daedal.kernels.signatures import f64, i64
from daedal.kernels.system import SYSTEM, rescale_rows, residual
from daedal.kernels.vectors import copy, largest

DENSE, BANDED, SPARSE = 0, 1, 2

JACOBIAN_UNEVALUABLE = -3

MATRIX = Struct(
    "MATRIX",
    [
        ("kind", INTEGER),
        ("n", INTEGER),
        ("total", INTEGER),  # number of unknowns of the system: n, or a multiple of it
        ("ml", INTEGER),
        ("mu", INTEGER),
        ("size", INTEGER),
        ("data", f64["size"]),
        ("pivots", i64["n"]),
        ("lapack", i64[ARGUMENTS]),
        ("groups", INTEGER),
        ("group_start", i64["groups + 1"]),
        ("group_columns", i64["n"]),
        ("column_start", i64["n + 1"]),
        ("entries", INTEGER),  # number of entries in the pattern
        ("rows", i64["entries"]),
        ("position", i64["entries"]),
        ("jacobian", CALLBACK),
        ("factor", CALLBACK),
        ("solve", CALLBACK),
        ("has_own_residual", INTEGER),
        ("own", SYSTEM),
        ("weight_share", FLOAT),
        ("central", INTEGER),  # whether difference quotients are central
        ("keeps_slope", INTEGER),  # whether dF/dy' is stored in addition to G
        ("has_slope", INTEGER),
        ("slope", f64["size"]),  # dF/dy', stored like G
        ("base", f64["total"]),
        ("shifted_y", f64["total"]),
        ("shifted_yp", f64["total"]),
        ("shifted_r", f64["total"]),
        ("increment", f64["n"]),
        ("opposite", f64["total"]),
    ],
)

_SQRT_ROUNDOFF = sqrt(np.finfo(float).eps)
_CUBE_ROOT = np.finfo(float).eps ** (1.0 / 3.0)
_DROWNING = 100.0 * np.finfo(float).eps


@part
def increment(y, yp, h, inverse_weight, weight_share):
    """delta_j = sign(h y'_j) max(sqrt(u) |y_j|, sqrt(u) |h y'_j|, share w_j), made exactly representable.

    BCP section 5.2.2 has share = sqrt(u), which is lost in round-off if y_j = 0 occurs with large terms; share = 1
    (IDA) is too coarse if |y_j| is far below its tolerance. The default is their geometric mean u^(1/4).
    """
    slope = h * yp
    size = max(abs(y), abs(slope)) * _SQRT_ROUNDOFF
    if inverse_weight > 0.0:
        size = max(size, weight_share / inverse_weight)
    return (y + copysign(size, slope)) - y


@inlined
def _increment(matrix, y, yp, h, inverse_weight):
    """The increment of one-sided quotients or, larger, of central ones, whose error is of order delta^2."""
    if not matrix.central:
        return increment(y, yp, h, inverse_weight, matrix.weight_share)
    size = max(abs(y), abs(h * yp)) * _CUBE_ROOT
    if inverse_weight > 0.0:
        size = max(size, 1.0 / inverse_weight)
    return (y + size) - y


@part
def form(system, matrix, t, y, yp, r, cj, h, inverse_weights):
    """Form and factor G at (t, y, y'); `r` is the residual there. Returns 0, a callback status, or SINGULAR."""
    rescale_rows(system, cj, r)
    system.jacobians += 1
    matrix.has_slope = 0
    if matrix.keeps_slope:
        status = fill(system, matrix, t, y, yp, r, 2.0 * cj, h, inverse_weights)
        if status != 0:
            return status
        copy(matrix.slope, matrix.data)
    status = fill(system, matrix, t, y, yp, r, cj, h, inverse_weights)
    if status != 0:
        return status
    if matrix.keeps_slope:
        data, slope = matrix.data, matrix.slope
        for e in range(matrix.size):
            slope[e] = (slope[e] - data[e]) / cj
        matrix.has_slope = 1
    system.factorisations += 1
    return factor(matrix, t)


@part
def factor(matrix, t):
    """Factor the matrix in `data`; returns 0, a callback status, or SINGULAR."""
    if matrix.kind == DENSE:
        return factor_dense(matrix)
    if matrix.kind == BANDED:
        return _factor_banded(matrix)
    return call(matrix.factor, t)


@part
def fill(system, matrix, t, y, yp, r, cj, h, inverse_weights):
    """The entries of G, by the user's function or by differences."""
    if is_given(matrix.jacobian):
        return _form_by_user(system, matrix, t, y, yp, cj)
    if matrix.has_own_residual:
        base = matrix.base
        status = residual(matrix.own, t, y, yp, base)
        if status != 0:
            return status
        return _difference_groups(matrix.own, matrix, t, y, yp, base, cj, h, inverse_weights)
    if matrix.kind == DENSE:
        return _difference_dense(system, matrix, t, y, yp, r, cj, h, inverse_weights)
    return _difference_groups(system, matrix, t, y, yp, r, cj, h, inverse_weights)


@part
def slope_times(matrix, v, result):
    """result = dF/dy' v, with the matrix stored by :func:`form`."""
    n = matrix.n
    for i in range(matrix.total):
        result[i] = 0.0
    if matrix.kind == DENSE:
        columns = float_rows(data_of(matrix.slope), n, n)
        for k in range(matrix.total // n):
            first = k * n
            for j in range(n):
                for i in range(n):
                    result[first + i] += columns[j, i] * v[first + j]
        return
    slope, column_start, rows, position = matrix.slope, matrix.column_start, matrix.rows, matrix.position
    for k in range(matrix.total // n):
        first = k * n
        for j in range(n):
            for entry in range(column_start[j], column_start[j + 1]):
                result[first + rows[entry]] += slope[position[entry]] * v[first + j]


@part
def _form_by_user(system, matrix, t, y, yp, cj):
    n = matrix.n
    ml, mu = matrix.ml, matrix.mu
    width = ml + mu + 1
    length = n * n if matrix.kind == DENSE else n * width if matrix.kind == BANDED else matrix.size
    state = 2 * matrix.total
    block = floats(matrix.jacobian.block, state + 1 + length)
    block[state] = cj
    given = block[state + 1 :]
    status = call_with(matrix.jacobian, t, y, yp, block[state : state + 1])
    if status != 0:
        return JACOBIAN_UNEVALUABLE if status == UNEVALUABLE else status
    scale, data = system.row_scale, matrix.data
    if matrix.kind == DENSE:
        columns, source = float_rows(data_of(data), n, n), float_rows(data_of(given), n, n)
        for j in range(n):
            for i in range(n):
                columns[j, i] = source[j, i] * scale[i]
    elif matrix.kind == BANDED:
        columns, source = float_rows(data_of(data), n, width + ml), float_rows(data_of(given), n, width)
        for j in range(n):
            columns[j] = 0.0
            for i in range(max(0, j - mu), min(n, j + ml + 1)):
                columns[j, ml + mu + i - j] = source[j, mu + i - j] * scale[i]
    else:
        rows = matrix.rows
        for e in range(matrix.size):
            data[e] = given[e] * scale[rows[e]]
    check = 0.0  # entries of a banded matrix outside the band are ignored
    for e in range(matrix.size):
        check += data[e] * 0.0
    return 0 if check == 0.0 else JACOBIAN_UNEVALUABLE


@part
def _difference_dense(system, matrix, t, y, yp, r, cj, h, inverse_weights):
    n, leading = matrix.n, y[: matrix.n]
    columns = float_rows(data_of(matrix.data), n, n)
    shifted = matrix.shifted_r
    for j in range(n):
        delta = _increment(matrix, y[j], yp[j], h, inverse_weights[j])
        y_j, yp_j = y[j], yp[j]
        if matrix.central and not _may_drown(delta, leading):
            status = _central_column(system, matrix, t, y, yp, cj, j, delta, columns[j])
            if status == 0:
                continue
            if status != UNEVALUABLE:
                return status
        turned, second = False, False
        while True:
            y[j] = y_j + delta
            yp[j] = yp_j + cj * delta
            system.jacobian_residuals += 1
            status = residual(system, t, y, yp, shifted)
            y[j], yp[j] = y_j, yp_j
            if status == UNEVALUABLE and not turned:
                delta, turned = -delta, True
                continue
            # F may be undefined at this distance, so the first quotient must suffice
            if status == UNEVALUABLE and second:
                break
            if status != 0:
                return status
            for i in range(n):
                if not second or columns[j, i] == 0.0:
                    columns[j, i] = (shifted[i] - r[i]) / delta
            if second or not _may_drown(delta, leading):
                break
            delta, second = _enlarged(delta, leading), True
    return 0


@part
def _central_column(system, matrix, t, y, yp, cj, j, delta, column):
    """(F(+delta) - F(-delta)) / 2 delta for column j; UNEVALUABLE if F is not defined on both sides."""
    n = matrix.n
    shifted, before = matrix.shifted_r, matrix.opposite
    y_j, yp_j = y[j], yp[j]
    status = 0
    for side in (-1.0, 1.0):
        y[j] = y_j + side * delta
        yp[j] = yp_j + side * cj * delta
        system.jacobian_residuals += 1
        status = residual(system, t, y, yp, shifted)
        y[j], yp[j] = y_j, yp_j
        if status != 0:
            break
        if side < 0.0:
            copy(before, shifted)
    if status == 0:
        for i in range(n):
            column[i] = (shifted[i] - before[i]) / (2.0 * delta)
    return status


@inlined
def _may_drown(delta, y):
    """Whether an increment is so small that adding it to the largest component has no effect."""
    return abs(delta) < _DROWNING * largest(y)


@inlined
def _enlarged(delta, y):
    """A larger increment, relative to the largest component, to recompute entries that were zero."""
    return copysign(_SQRT_ROUNDOFF * largest(y), delta)


@part
def _difference_groups(system, matrix, t, y, yp, r, cj, h, inverse_weights):
    n, data = matrix.n, matrix.data
    if matrix.kind == BANDED:
        data[:] = 0.0
    group_start, group_columns = matrix.group_start, matrix.group_columns
    column_start, rows, position = matrix.column_start, matrix.rows, matrix.position
    shifted_y, shifted_yp = matrix.shifted_y, matrix.shifted_yp
    shifted_r, opposite, deltas = matrix.shifted_r, matrix.opposite, matrix.increment
    copy(shifted_y, y)
    copy(shifted_yp, yp)
    size = largest(y[:n])
    for group in range(matrix.groups):
        first, last = group_start[group], group_start[group + 1]
        for place in range(first, last):
            j = group_columns[place]
            deltas[j] = _increment(matrix, y[j], yp[j], h, inverse_weights[j])
        turned, second, behind = False, False, 0.0
        while True:
            for place in range(first, last):
                j = group_columns[place]
                shifted_y[j] = y[j] + deltas[j]
                shifted_yp[j] = yp[j] + cj * deltas[j]
            system.jacobian_residuals += 1
            status = residual(system, t, shifted_y, shifted_yp, shifted_r)
            if status == 0 and matrix.central and not turned:
                # Central quotient: F on the opposite side replaces F at the centre, which doubles the distance.
                for place in range(first, last):
                    j = group_columns[place]
                    shifted_y[j] = y[j] - deltas[j]
                    shifted_yp[j] = yp[j] - cj * deltas[j]
                system.jacobian_residuals += 1
                other = residual(system, t, shifted_y, shifted_yp, opposite)
                if other != 0 and other != UNEVALUABLE:
                    return other
                behind = 1.0 if other == 0 else 0.0
            if status == UNEVALUABLE and not turned:
                turned = True
                for place in range(first, last):
                    deltas[group_columns[place]] *= -1.0
                continue
            if status == UNEVALUABLE and second:
                break
            if status != 0:
                return status
            again = False
            for place in range(first, last):
                j = group_columns[place]
                for entry in range(column_start[j], column_start[j + 1]):
                    if not second or data[position[entry]] == 0.0:
                        i = rows[entry]
                        before = opposite[i] if behind else r[i]
                        data[position[entry]] = (shifted_r[i] - before) / (deltas[j] * (1.0 + behind))
                if not second and abs(deltas[j]) < _DROWNING * size:
                    again = True
                    deltas[j] = copysign(_SQRT_ROUNDOFF * size, deltas[j])
            if not again:
                break
            second = True
        for place in range(first, last):
            j = group_columns[place]
            shifted_y[j] = y[j]
            shifted_yp[j] = yp[j]
    return 0


@part
def _factor_banded(matrix):
    dgbtrf(
        argument(matrix, N),
        argument(matrix, N),
        argument(matrix, ML),
        argument(matrix, MU),
        data_of(matrix.data),
        argument(matrix, ROWS),
        data_of(matrix.pivots),
        argument(matrix, INFO),
    )
    return SINGULAR if matrix.lapack[INFO] != 0 else 0


@part
def _solve_once(matrix, t, b):
    n = matrix.n
    if matrix.kind == SPARSE:
        block = floats(matrix.solve.block, n)
        copy(block, b[:n])
        status = call(matrix.solve, t)
        copy(b, block)
        return status
    if matrix.kind == BANDED:
        dgbtrs(
            argument(matrix, MODE),
            argument(matrix, N),
            argument(matrix, ML),
            argument(matrix, MU),
            argument(matrix, ONE),
            data_of(matrix.data),
            argument(matrix, ROWS),
            data_of(matrix.pivots),
            b.ctypes.data,
            argument(matrix, N),
            argument(matrix, INFO),
        )
        return 0
    solve_dense(matrix, b)
    return 0


@part
def solve(matrix, t, b):
    """b := G^{-1} b with the current factors, copy by copy; returns 0 or a callback status."""
    n = matrix.n
    if matrix.total > n:
        for k in range(matrix.total // n):
            status = _solve_once(matrix, t, b[k * n : (k + 1) * n])
            if status != 0:
                return status
        return 0
    return _solve_once(matrix, t, b)
