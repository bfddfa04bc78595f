"""Projection of points onto all equations of a prolonged system, in compiled code."""

import numpy as np

from daedal.kernels.callbacks import NATIVE
from daedal.kernels.compilation import caller, entry, part
from daedal.kernels.dense import LU, factor_lu, solve_lu
from daedal.kernels.records import ADDRESS, INTEGER, Struct, data_of, record_at
from daedal.kernels.signatures import boolean, f64, i64, void
from daedal.kernels.vectors import add_product, copy

EQUATIONS = Struct(
    "EQUATIONS",
    [
        ("n", INTEGER),
        ("m", INTEGER),  # number of equations
        ("code", ADDRESS),
        ("block", f64["n"]),  # u, followed by the values below, at these addresses
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

_call = caller(NATIVE)


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
