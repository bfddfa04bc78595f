"""Projection of points onto the level set c(t, y) = c_0, in compiled code.

Newton's method with the smallest correction in units of the tolerance: the rows of C W, C = dc/dy and W = diag(w), are
orthonormalised, C W = L Q, so that dy = -W Q^T L^{-1} (c - c_0). A row that depends on earlier ones is skipped.
"""

import numpy as np

from daedal.kernels.callbacks import CALLBACK, UNEVALUABLE, fetch, nothing
from daedal.kernels.compilation import entry, part
from daedal.kernels.records import INTEGER, Struct, data_of, floats, record_at
from daedal.kernels.signatures import f64, i64
from daedal.kernels.system import HOOK, HOOK_CHANGED, HOOK_DONE
from daedal.kernels.vectors import add_product, copy

LEVEL_SET = Struct(
    "LEVEL_SET",
    [
        ("n", INTEGER),
        ("m", INTEGER),
        ("values", CALLBACK),  # c(t, y)
        ("derivatives", CALLBACK),  # dc/dy, column by column
        ("wanted", f64["m"]),  # c_0
        ("rtol", f64["n"]),
        ("atol", f64["n"]),
        ("found", f64["m"]),
        ("matrix", f64["n", "m"]),
        ("weights", f64["n"]),
        ("rows", f64["m", "n"]),  # Q
        ("lower", f64["m", "m"]),  # L; 0 on the diagonal for skipped rows
        ("terms", f64["m"]),  # sum_j |C_ij y_j|, the scale of the round-off of c_i
        ("before", f64["n"]),
    ],
)

_MOST_ITERATIONS = 10
_ROUND_OFF = 8.0 * np.finfo(float).eps
_DEPENDENT = 1e-10  # size of a row after orthogonalisation, relative to its original size, that counts as zero


@part
def _factor(level, t, y):
    """Evaluate C at y and factor C W = L Q by Gram-Schmidt with reorthogonalisation."""
    status = fetch(level.derivatives, t, y, nothing(), nothing(), floats(data_of(level.matrix), level.n * level.m))
    if status != 0:
        return status
    n, m = level.n, level.m
    matrix, rows, lower, weights, terms = level.matrix, level.rows, level.lower, level.weights, level.terms
    for i in range(m):
        size, terms[i] = 0.0, 0.0
        for j in range(n):
            rows[i, j] = matrix[j, i] * weights[j]
            size += rows[i, j] * rows[i, j]
            terms[i] += abs(matrix[j, i] * y[j])
        size = np.sqrt(size)
        for k in range(i):
            lower[i, k] = 0.0
        for _ in range(2):
            for k in range(i):
                share = add_product(0.0, rows[i], rows[k])
                lower[i, k] += share
                for j in range(n):
                    rows[i, j] -= share * rows[k, j]
        rest = np.sqrt(add_product(0.0, rows[i], rows[i]))
        if rest <= _DEPENDENT * size:
            lower[i, i] = 0.0
            for j in range(n):
                rows[i, j] = 0.0
            continue
        lower[i, i] = rest
        for j in range(n):
            rows[i, j] /= rest
    return 0


@part
def _correct(level, y):
    """Correct y by one iteration; returns the size of the correction in units of the tolerance."""
    n, m = level.n, level.m
    found, rows, lower, weights = level.found, level.rows, level.lower, level.weights
    for i in range(m):  # found = L^{-1} found
        if lower[i, i] == 0.0:
            found[i] = 0.0
            continue
        for k in range(i):
            found[i] -= lower[i, k] * found[k]
        found[i] /= lower[i, i]
    size = 0.0
    for j in range(n):
        change = 0.0
        for i in range(m):
            change += rows[i, j] * found[i]
        size = max(size, abs(change))
        y[j] -= weights[j] * change
    return size


@part
def _project(level, t, y):
    """Project y in place. Returns 0, or a status, and y is then unchanged."""
    n, m = level.n, level.m
    found, wanted, terms, weights = level.found, level.wanted, level.terms, level.weights
    copy(level.before, y)
    for j in range(n):
        weights[j] = level.rtol[j] * abs(y[j]) + level.atol[j]
        if not weights[j] > 0.0:
            weights[j] = 1e-300
    previous, status = np.inf, 0
    for iteration in range(_MOST_ITERATIONS):
        status = fetch(level.values, t, y, nothing(), nothing(), found)
        if status == 0 and iteration < 2:  # the second matrix is accurate to the square of the drift
            status = _factor(level, t, y)
        if status != 0:
            break
        close = 1
        for i in range(m):
            found[i] -= wanted[i]
            if not abs(found[i]) <= _ROUND_OFF * max(abs(wanted[i]), terms[i]):
                close = 0
        if close:
            break
        size = _correct(level, y)
        if not size < np.inf:
            status = UNEVALUABLE
            break
        if iteration > 1 and size >= 0.5 * previous:  # round-off
            break
        previous = size
    if status != 0:
        copy(y, level.before)
        return status
    return 0


@entry(HOOK)
def level_set_hook(record, t, h, y):
    """Project an accepted step."""
    level = record_at(record, LEVEL_SET)
    point = floats(y, level.n)
    status = _project(level, t, point)
    if status != 0:
        return status
    before = level.before
    for j in range(level.n):
        if point[j] != before[j]:
            return HOOK_CHANGED
    return HOOK_DONE


@entry(f64(i64, f64[:], f64[:, :], i64[:]))
def project_rows(record, times, points, statuses):
    """Project the rows of `points`, one for each time, in place; returns the largest remaining |c - c_0|."""
    level, drift = record_at(record, LEVEL_SET), 0.0
    for k in range(times.size):
        statuses[k] = _project(level, times[k], points[k])
        if fetch(level.values, times[k], points[k], nothing(), nothing(), level.found) == 0:
            for i in range(level.m):
                drift = max(drift, abs(level.found[i] - level.wanted[i]))
    return drift
