"""Compiled hooks after every accepted step: monitoring of the selection, projection onto all equations.

For each block of derivatives the matrix B of its equations and the rows S of integrated unknowns give the tangents X
with B X = 0, S X = 1: the dependence of the other derivatives on the integrated ones. In units of the sizes of the
variables, X is of order 1 for a good selection and grows without bound as the selection becomes singular; the run then
stops and continues with another selection.
"""

import numpy as np

from daedal.kernels.callbacks import NATIVE
from daedal.kernels.compilation import caller, entry, part
from daedal.kernels.dense import LU, factor_lu, solve_lu
from daedal.kernels.records import ADDRESS, FLOAT, INTEGER, Struct, at, data_of, floats, record_at
from daedal.kernels.signatures import boolean, f64, i64, void
from daedal.kernels.system import HOOK, HOOK_CHANGED, HOOK_DONE, HOOK_STOP, call_hook
from daedal.kernels.vectors import add_product, copy

BLOCK = Struct(
    "BLOCK",
    [
        ("columns", INTEGER),
        ("equations", INTEGER),
        ("places", i64["columns"]),  # indices of the columns in y
        ("values", f64["equations", "columns"]),  # B, row by row
        ("rows", f64["columns - equations", "columns"]),  # S
        ("matrix", LU),
        ("work", f64["columns"]),
    ],
)

WATCH = Struct(
    "WATCH",
    [
        ("n", INTEGER),
        ("code", ADDRESS),  # code for the matrices B
        ("block", f64["n"]),
        ("blocks", INTEGER),
        ("addresses", i64["blocks"]),
        ("scale", f64["n"]),  # the largest sizes of y so far
        ("limit", FLOAT),
    ],
)

_call = caller(NATIVE)


@entry(HOOK)
def watch_hook(record, t, h, y):
    """Return HOOK_STOP if dependent derivatives change too much with the integrated ones, otherwise HOOK_DONE."""
    watch = record_at(record, WATCH)
    n = watch.n
    point, scale, given = floats(y, n), watch.scale, watch.block
    for i in range(n):
        given[i] = point[i]
        scale[i] = max(scale[i], abs(point[i]))
    if _call(watch.code, t, data_of(watch.block)) != 0:
        return HOOK_STOP
    addresses = watch.addresses
    for k in range(watch.blocks):
        if not _amplification(record_at(addresses[k], BLOCK), scale) <= watch.limit:
            return HOOK_STOP
    return HOOK_DONE


@part
def _amplification(block, scale):
    """The largest entry of X, in units of `scale`; infinite if undetermined."""
    n, m = block.columns, block.equations
    places, work = block.places, block.work
    values, rows = block.values, block.rows
    by_columns = block.matrix.data
    for j in range(n):
        size = scale[places[j]]
        for i in range(m):
            by_columns[j, i] = values[i, j] * size
        for i in range(n - m):
            by_columns[j, m + i] = rows[i, j] * size
    for i in range(n):  # rows of equal size, for pivoting
        largest = 0.0
        for j in range(n):
            largest = max(largest, abs(by_columns[j, i]))
        for j in range(n):
            by_columns[j, i] /= largest if largest > 0.0 else 1.0
    if factor_lu(block.matrix) != 0:
        return np.inf
    found = 0.0
    for k in range(m, n):
        for i in range(n):
            work[i] = 1.0 if i == k else 0.0
        solve_lu(block.matrix, work)
        for j in range(n):
            if not abs(work[j]) < np.inf:
                return np.inf
            found = max(found, abs(work[j]))
    return found


# --- projection of points onto all equations of a prolonged system, in compiled code ----------------------------------

EQUATIONS = Struct(
    "EQUATIONS",
    [
        ("n", INTEGER),
        ("m", INTEGER),  # number of equations
        ("code", ADDRESS),
        ("block", f64["n"]),  # u, followed by the memory of `f`, `entries` and `rate`
        ("f", f64["m"]),
        ("entries", f64["count"]),  # entries of df/du
        ("rate", f64["m"]),  # partial derivative of f with respect to time
        ("count", INTEGER),
        ("entry_rows", i64["count"]),
        ("entry_columns", i64["count"]),
        ("matrix", LU),
        ("work", f64["n"]),
        ("held", f64["n - m"]),
        ("before", f64["n"]),  # the given point
    ],
)

_MOST_ITERATIONS = 8
_ROUNDOFF = 4.0 * np.finfo(float).eps
_SMALL, _SLOW = 1e-9, 0.3  # corrections below _SMALL that shrink by less than _SLOW count as round-off


@part
def _factor(equations, t, u, fixed):
    """Evaluate at u and factor [df/du; fixed]; returns whether this succeeded."""
    n, m, count = equations.n, equations.m, equations.count
    copy(equations.block, u)
    if _call(equations.code, t, data_of(equations.block)) != 0:
        return False
    by_columns, entries = equations.matrix.data, equations.entries
    rows, columns = equations.entry_rows, equations.entry_columns
    by_columns[:, :] = 0.0
    for e in range(count):
        by_columns[columns[e], rows[e]] = entries[e]
    for i in range(n - m):
        for j in range(n):
            by_columns[j, m + i] = fixed[i, j]
    return factor_lu(equations.matrix) == 0


@part
def project_point(equations, t, u, fixed, scale):
    """Newton's method for f = 0 with fixed values `fixed` u; returns whether it converged."""
    n, m = equations.n, equations.m
    work, held = equations.work, equations.held
    for i in range(n - m):
        held[i] = add_product(0.0, fixed[i], u)
    before = np.inf
    for _ in range(_MOST_ITERATIONS):
        if not _factor(equations, t, u, fixed):
            return False
        copy(work[:m], equations.f)
        for i in range(n - m):
            work[m + i] = add_product(-held[i], fixed[i], u)
        solve_lu(equations.matrix, work)
        size = 0.0
        for j in range(n):
            if not abs(work[j]) < np.inf:
                return False
            size = max(size, abs(work[j]) / scale[j])
        for j in range(n):
            u[j] -= work[j]
        if size <= _ROUNDOFF or (size <= _SMALL and size >= _SLOW * before):
            return True
        before = size
    return False


@entry(void(i64, f64[:], f64[:, :], f64[:, :], f64[:, :], f64[:], f64[:, :], boolean[:]))
def project_points(system, times, points, fixed, following, scale, slopes, found):
    """Project points onto f = 0, keeping `fixed` u, and find u' there: f_t + f_u u' = 0, fixed u' = following u."""
    equations = record_at(system, EQUATIONS)
    n, m = equations.n, equations.m
    before, work = equations.before, equations.work
    for k in range(times.size):
        copy(before, points[k])
        good = project_point(equations, times[k], points[k], fixed, scale) and _factor(
            equations, times[k], points[k], fixed
        )
        found[k] = good
        if not good:
            copy(points[k], before)
            slopes[k, :] = np.nan
            continue
        rate = equations.rate
        for i in range(m):
            work[i] = -rate[i]
        for i in range(n - m):
            work[m + i] = add_product(0.0, following[i], points[k])
        solve_lu(equations.matrix, work)
        copy(slopes[k], work)


# --- projection of accepted steps onto all equations of a prolonged system, in compiled code --------------------------

PROJECTING = Struct(
    "PROJECTING",
    [
        ("equations", at(EQUATIONS)),
        ("fixed", f64["equations.n - equations.m", "equations.n"]),  # combinations of unknowns that are fixed
        ("scale", f64["equations.n"]),
        ("before", f64["equations.n"]),
        ("watch", ADDRESS),  # watch for the selection; 0 if there is none
        ("watch_record", ADDRESS),
    ],
)


@entry(HOOK)
def projecting_hook(record, t, h, y):
    """Project an accepted step, unless the watch stops the run because another selection is needed."""
    projecting = record_at(record, PROJECTING)
    if projecting.watch != 0:
        signal = call_hook(projecting.watch, projecting.watch_record, t, h, y)
        if signal >= HOOK_STOP:
            return signal
    equations, before = projecting.equations, projecting.before
    n, point = equations.n, floats(y, equations.n)
    for i in range(n):
        before[i] = point[i]
    if project_point(equations, t, point, projecting.fixed, projecting.scale):
        return HOOK_CHANGED
    for i in range(n):
        point[i] = before[i]
    return HOOK_DONE
